"""Where threads of a simdgroup store to one element, the last in the order of lanes decides (docs/design/meaning.md)."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from store_order_bodies import BODIES, expected
from test_instruction_sets import CONFIGURATIONS, LEVELS, has

TESTS = Path(__file__).parent


@pytest.fixture(scope="module")
def all_results():
    """By engine and instruction set."""
    program = (
        "import pickle, sys; sys.path.insert(0, sys.argv[1]); import store_order_bodies as s;"
        "sys.stdout.buffer.write(pickle.dumps({name: s.result(name) for name in s.BODIES}))"
    )
    found = {}
    for engine, isa in CONFIGURATIONS:
        if engine == "scalar" or has(LEVELS[isa]):
            done = subprocess.run(
                [sys.executable, "-c", program, str(TESTS)],
                env={**os.environ, "KILN_CPU_ENGINE": engine, "KILN_CPU_ISA": isa},
                capture_output=True,
                check=False,
            )
            assert done.returncode == 0, done.stderr.decode()
            found[engine, isa] = pickle.loads(done.stdout)
    return found


@pytest.mark.parametrize("name", BODIES)
def test_the_order_of_lanes_decides(name, all_results):
    for (engine, isa), results in all_results.items():
        outputs, ran_on = results[name]
        assert ran_on == engine
        for got, wanted in zip(outputs, expected(name), strict=True):
            np.testing.assert_array_equal(got, wanted, err_msg=f"{engine} {isa}")
