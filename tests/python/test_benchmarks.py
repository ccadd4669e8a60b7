"""The kernels that `make bench-engines` measures are right, on both engines and as C++ by hand; at small sizes, without a
clock."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench import engines, guards, kernels, measure, passes


@pytest.mark.parametrize("name", kernels.PROBLEMS)
def test_a_kernel_gives_its_reference(name):
    engines.check_small(name, None)


def has_avx2() -> bool:
    return " avx2 " in Path("/proc/cpuinfo").read_text()


@pytest.mark.skipif(not has_avx2(), reason="the processor has no AVX2")
def test_the_simd_engine_takes_all_of_them():
    program = (
        "from bench import engines, kernels\nprint({engines.check_small(name, None) for name in kernels.PROBLEMS})"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "KILN_CPU_ENGINE": "simd"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("{'simd'}\n", "")


@pytest.mark.skipif(not has_avx2(), reason="the processor has no AVX2")
def test_cpp_by_hand_gives_the_references(tmp_path):
    if not engines.compilers():
        pytest.skip("there is no C++ compiler")
    library, _ = engines.compile_by_hand(tmp_path, "avx2")
    for name in kernels.PROBLEMS:
        engines.check_small(name, engines.ByHand(library))


def test_guards_are_measured_against_the_same_kernel_without(tmp_path):
    file = tmp_path / "some.py"
    file.write_text(
        "import types\nimport numpy as np\n"
        "KERNELS = {'ends': lambda: types.SimpleNamespace(name='ends', dialect='metal', header='', grid=(8, 1, 1),\n"
        "    body='y[thread_position_in_grid.x] = x[thread_position_in_grid.x + z[0]];', tg=(8, 1, 1), init=None,\n"
        "    inputs={'x': np.ones(8, np.float32), 'z': np.array([0, 0], np.int32)}, outputs={'y': ((8,), np.float32)},\n"
        "    atomic=False)}\n"
    )
    with_guards, without = guards._others(guards._from_file(str(file))["ends"])
    assert with_guards()[0].tolist() == without()[0].tolist() == [1] * 8
    (expected,), (found,) = (call() for call in guards._own("softmax", small=True))
    assert expected.tolist() == found.tolist()
    assert guards.table({"avx512": {"a": 1.0, "b": 4.0}, "avx2": {"a": 0.5, "b": 8.0}}) == (
        "| kernel | avx512 | avx2 |\n|---|---|---|\n| b | 4.00 | 8.00 |\n| a | 1.00 | 0.50 |\n"
        "| geometric mean of 2 | 2.00 | 2.00 |"
    )


def test_the_table_of_passes_has_those_of_the_pipeline():
    names = passes.optional_passes()
    assert "prefetch" in names and "tensor-products" in names
    assert all(passes.lines_of(name)[0] > 0 for name in names)
    made = passes.PAGE.read_text().partition(passes.BEGIN)[2].partition(passes.END)[0]
    rows = [line.split("`")[1] for line in made.splitlines() if line.startswith("| `")]
    assert rows and set(rows) == set(names)


def test_the_table_of_passes_leaves_out_those_that_were_removed():
    content = json.loads((measure.RESULTS / "passes.json").read_text())
    ratios = content["figures"]["avx2"]["removal"]["ratios"]
    ratios["no-such-pass"] = ratios["prefetch"]
    made = passes.page(content)
    assert "| `prefetch` |" in made
    assert "no-such-pass" not in made


@pytest.mark.skipif(not has_avx2(), reason="the processor has no AVX2")
def test_passes_are_counted_and_switched_off():
    counted = passes.firing("avx2", step=400)
    assert counted["bodies"] >= 4
    assert set(counted["fired"]) <= set(passes.optional_passes())
    assert all(0 < count <= counted["bodies"] for count in counted["fired"].values())
    cost = passes.removal(
        "avx2", [], ["simdgroup-loops"], ["tree reduction"], rounds=1, jobs=1, progress=lambda _: None
    )
    assert cost["kernels"] == ["bench: tree reduction"]
    assert list(cost["ratios"]["simdgroup-loops"]) == ["bench: tree reduction"]
