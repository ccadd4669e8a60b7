"""What the documents and the demonstration say about themselves."""

import contextlib
import io
import math
import re
from pathlib import Path

import pytest

README = Path(__file__).parent.parent.parent / "README.md"


def test_the_readmes_first_program_prints_what_its_comment_says():
    program = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)[0]
    says = re.findall(r"^print\(.*\)  # (.*)$", program, re.MULTILINE)[0]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(program, {"__name__": "readme"})
    assert printed.getvalue() == f"{says}\n"


@pytest.mark.parametrize(
    ("losses", "parameters", "failures"),
    [
        ([1.0, 0.019], [1.0, 2.009], []),
        ([1.0, 0.02], [1.0, 2.0], ["the loss fell to 2.0 % of its start only, not below 2 %"]),
        ([1.0, math.nan], [1.0, 2.0], ["the loss fell to nan % of its start only, not below 2 %"]),
        ([1.0, 0.0], [1.0, 2.5], ["a parameter is off by 0.500, not by less than 0.01"]),
        ([1.0, 0.0], [1.0, math.nan], ["a parameter is off by nan, not by less than 0.01"]),
        ([1.0, 0.0], [math.nan, 2.0], ["a parameter is off by nan, not by less than 0.01"]),
        (
            [1.0, 3.0],
            [-1.0, 2.0],
            [
                "the loss fell to 300.0 % of its start only, not below 2 %",
                "a parameter is off by 2.000, not by less than 0.01",
            ],
        ),
    ],
)
def test_the_demonstration_says_what_it_did_not_reach(losses, parameters, failures):
    pytest.importorskip("matplotlib")
    from demo.learn import LearnReport

    assert LearnReport(losses, parameters, (1.0, 2.0)).failures() == failures
