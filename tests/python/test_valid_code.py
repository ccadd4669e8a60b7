"""Code is valid LLVM IR at each stage: what is kept of it says where it is not."""

import bodies
import pytest
from bodies.runs import RUNS
from launch_bodies import compiled

_NAMES = sorted(body.name for body in bodies.all_bodies() if not body.template)


@pytest.mark.parametrize("name", [*RUNS, "runs_by_wide_numbers", "runs_with_loops_over_rows", *_NAMES[::25]])
def test_code_is_valid_at_each_stage(name):
    stages = compiled(name).stages()
    assert [stage for stage, code in stages.items() if "; This is no valid IR: " in code] == []
    assert "define " in stages["optimized"]
