"""What the demonstration says about itself."""

import math

import pytest


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

    assert LearnReport(losses, parameters, (1.0, 2.0), "MLX").failures() == failures
