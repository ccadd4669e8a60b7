"""The compiler's passes as users and developers see them: what ran, what it did, and what happens without a pass.

Passes by themselves are tested below tests/compiler.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import kiln
import numpy as np
import pytest
from kiln import __main__ as command_line

ROOT = Path(__file__).resolve().parent.parent.parent
has_avx2 = "avx2" in Path("/proc/cpuinfo").read_text()

# A loop over guarded rows, sums of a simdgroup, a tile with barriers, and a divergent branch.
BODIES = {
    "map": "uint i = thread_position_in_grid.x; y[i] = x[i] * 2;",
    "sum": """
        uint i = thread_position_in_grid.x;
        float s = 0;
        for (uint k = 0; k < 16; ++k) s += x[(k * 64 + i) % 1024];
        y[i] = simd_sum(s);""",
    "tile": """
        threadgroup float t[256];
        uint i = thread_position_in_grid.x, l = thread_position_in_threadgroup.x;
        t[l] = x[i];
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint n = 128; n > 0; n /= 2) {
          if (l < n) t[l] += t[l + n];
          threadgroup_barrier(mem_flags::mem_threadgroup);
        }
        y[i] = t[0] + x[i];""",
    "branch": "uint i = thread_position_in_grid.x; if (x[i] > 0) y[i] = sqrt(x[i]); else y[i] = x[1023 - i];",
}
X = np.arange(-512, 512, dtype=np.float32)
EXPECTED = {
    "map": X * 2,
    "sum": np.repeat(X.reshape(16, 2, 32).sum(axis=(0, 2)), 32).reshape(2, 32).tolist(),
    "tile": (X.reshape(4, 256).sum(axis=1, keepdims=True) + X.reshape(4, 256)).ravel(),
    "branch": np.where(X > 0, np.sqrt(np.abs(X)), X[::-1]),
}
EXPECTED["sum"] = np.tile(np.array(EXPECTED["sum"], np.float32).ravel(), 16)


def call_of():
    return {
        "inputs": [X],
        "output_shapes": [X.shape],
        "output_dtypes": ["float32"],
        "grid": (1024, 1, 1),
        "threadgroup": (256, 1, 1),
    }


def kernel_of(name):
    return kiln.metal_kernel(name=name, input_names=["x"], output_names=["y"], source=BODIES[name])


def passes_of(name):
    return kernel_of(name).compile(**call_of()).passes()


def in_another_process(settings: dict[str, str]) -> dict:
    """Results and passes of each body, from a process with these settings. Of an error its message."""
    program = (
        "import json, kiln\n"
        "from test_passes import BODIES, call_of, kernel_of\n"
        "made = {}\n"
        "for name in BODIES:\n"
        "    kernel = kernel_of(name)\n"
        "    try:\n"
        "        (y,) = kernel(**call_of())\n"
        "    except kiln.UnsupportedError as error:\n"
        "        made[name] = str(error)\n"
        "        continue\n"
        "    passes = [(p.name, p.number, p.switched_off, p.fired) for p in kernel.compile(**call_of()).passes()]\n"
        "    made[name] = (y.tolist(), passes)\n"
        "print(json.dumps(made))\n"
    )
    paths = [str(ROOT), str(ROOT / "tests"), str(Path(__file__).parent)]
    done = subprocess.run(
        [sys.executable, "-c", program],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "KILN_VERIFY_PASSES": "on", **settings},
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", BODIES)
def test_passes_are_listed_in_their_order(name):
    passes = passes_of(name)
    names = [one.name for one in passes]
    # Guards come after inlining, code for x86 last.
    assert names.index("inline") < names.index("bounds-guards") < names.index("min-max-idiom")
    numbers = [one.number for one in passes if one.number is not None]
    assert numbers == list(range(1, len(numbers) + 1))
    assert not any(one.switched_off for one in passes)
    guards = next(one for one in passes if one.name == "bounds-guards")
    assert guards.fired and guards.number is None and guards.function == "__kiln_body"
    assert guards.instructions_after > guards.instructions_before > 0
    assert all(one.ms >= 0 for one in passes)
    assert repr(guards) == "<kiln.CompilePass bounds-guards, fired>"


@pytest.mark.skipif(not has_avx2, reason="the processor has no AVX2")
def test_a_pass_fires_where_its_code_is():
    fired = {name: {one.name for one in passes_of(name) if one.fired} for name in BODIES}
    assert all("widen" in names for names in fired.values())
    assert "simdgroup-loops" in fired["tile"] and "simdgroup-loops" not in fired["map"]
    # Its threadgroups are equal: simdgroups need not be suspended.
    assert "suspend-points" not in fired["tile"]
    assert "order-stores" in fired["map"]


def test_results_do_not_depend_on_optional_passes():
    for name, expected in EXPECTED.items():
        np.testing.assert_array_equal(kernel_of(name)(**call_of())[0], expected)
    for made in (in_another_process({"KILN_PASS_LIMIT": "0"}), in_another_process({"KILN_PASS_LIMIT": "5"})):
        for name, (y, _) in made.items():
            np.testing.assert_array_equal(np.array(y, np.float32), EXPECTED[name])


def test_a_limit_lets_the_first_optional_passes_run():
    for limit in (0, 3):
        for _, passes in in_another_process({"KILN_PASS_LIMIT": str(limit)}).values():
            optional = [(number, switched_off) for _, number, switched_off, _ in passes if number is not None]
            assert optional == [(number, number > limit) for number in range(1, len(optional) + 1)]
            assert not any(switched_off for _, number, switched_off, _ in passes if number is None)


@pytest.mark.skipif(not has_avx2, reason="the processor has no AVX2")
def test_a_pass_is_switched_off_by_its_name():
    made = in_another_process({"KILN_PASSES": "-simdgroup-loops,-order-stores"})
    for name, (y, passes) in made.items():
        np.testing.assert_array_equal(np.array(y, np.float32), EXPECTED[name])
        off = {one for one, _, switched_off, _ in passes if switched_off}
        assert off <= {"simdgroup-loops", "order-stores"}
    assert "simdgroup-loops" in {one for one, _, switched_off, _ in made["tile"][1] if switched_off}
    assert "order-stores" in {one for one, _, switched_off, _ in made["map"][1] if switched_off}


def test_a_pass_that_does_not_exist_or_is_needed_cannot_be_switched_off():
    for name in ("no-such-pass", "bounds-guards"):
        (message, *_) = in_another_process({"KILN_PASSES": f"-prefetch,-{name}"}).values()
        assert message.startswith(
            f"[metal_kernel] `map` uses what is not supported.\nerror: KILN_PASSES names the pass `{name}`; those that "
            "can be switched off are adjacent-loads, affine-lanes, asynchronous-copies, atomic-prefetch, bit-counts, "
        ), message


def test_the_ir_after_a_pass_is_a_stage():
    compiled = kernel_of("map").compile(**call_of())
    stages = compiled.stages(after=["inline", "bounds-guards", "no-such-pass"])
    assert list(stages)[:4] == ["clang", "after:inline", "after:bounds-guards", "guarded"]
    assert stages["after:bounds-guards"] == stages["guarded"]
    assert "after:no-such-pass" not in stages
    assert "after:inline" not in compiled.stages()


def show(tmp_path, capsys, monkeypatch, *options):
    body = tmp_path / "scale.metal"
    body.write_text(BODIES["map"])
    arrays = ["--input", "x:float32:1024", "--output", "y:float32:1024"]
    launch = ["--grid", "1024,1,1", "--threadgroup", "256,1,1"]
    monkeypatch.setattr(sys, "argv", ["kiln", "show", str(body), *arrays, *launch, *options])
    status = command_line.main()
    return status, capsys.readouterr()


def test_show_lists_passes(tmp_path, capsys, monkeypatch):
    status, shown = show(tmp_path, capsys, monkeypatch, "--parts", "passes")
    assert status == 0
    head, *rows = shown.out.splitlines()
    assert head == "    no.  fired          instructions       ms  pass, function"
    (guards,) = [row for row in rows if row.endswith("bounds-guards __kiln_body")]
    assert guards.split()[0] == "yes" and " -> " in guards
    status, shown = show(tmp_path, capsys, monkeypatch, "--parts", "passes", "--json")
    listed = json.loads(shown.out)["passes"]
    assert len(listed) == len(rows)
    assert set(listed[0]) == {
        *("name", "function", "fired", "number", "switched_off", "ms"),
        *("instructions_before", "instructions_after"),
    }


def test_show_prints_the_ir_after_a_pass(tmp_path, capsys, monkeypatch):
    status, shown = show(tmp_path, capsys, monkeypatch, "--parts", "after:bounds-guards")
    assert status == 0 and "define " in shown.out and "__kiln_body" in shown.out
    status, shown = show(tmp_path, capsys, monkeypatch, "--parts", "after:no-such-pass")
    assert (status, shown.err) == (1, "python -m kiln show: no pass 'no-such-pass' ran\n")


# A launch of whole simdgroups gets code of its own where threads work together, and what tells so are the names of each
# dialect. The same body in CUDA once ran at a quarter of the speed.
@pytest.mark.skipif(not has_avx2, reason="the scalar engine has other passes")
@pytest.mark.parametrize(
    ("metal", "cuda"),
    [
        (
            BODIES["tile"],
            """
            __shared__ float t[256];
            unsigned i = blockIdx.x * blockDim.x + threadIdx.x, l = threadIdx.x;
            t[l] = x[i];
            __syncthreads();
            for (unsigned n = 128; n > 0; n /= 2) {
              if (l < n) t[l] += t[l + n];
              __syncthreads();
            }
            y[i] = t[0] + x[i];""",
        ),
        (
            BODIES["tile"],
            """
            namespace cg = cooperative_groups;
            cg::thread_block block = cg::this_thread_block();
            __shared__ float t[256];
            unsigned i = blockIdx.x * blockDim.x + threadIdx.x, l = block.thread_rank();
            t[l] = x[i];
            block.sync();
            for (unsigned n = 128; n > 0; n /= 2) {
              if (l < n) t[l] += t[l + n];
              block.sync();
            }
            y[i] = t[0] + x[i];""",
        ),
    ],
    ids=["syncthreads", "cooperative groups"],
)
def test_one_body_in_both_dialects_gets_the_same_passes(metal, cuda):
    header = "#include <cooperative_groups.h>\n"
    kernels = [
        kiln.metal_kernel(name="tile", input_names=["x"], output_names=["y"], source=metal),
        kiln.cuda_kernel(name="tile", input_names=["x"], output_names=["y"], source=cuda, header=header),
    ]
    fired = []
    for kernel in kernels:
        (y,) = kernel(**call_of())
        np.testing.assert_array_equal(y, EXPECTED["tile"])
        fired.append({p.name for p in kernel.compile(**call_of()).passes() if p.fired and p.number})
    assert fired[0] == fired[1]
    assert "simdgroup-loops" in fired[0]


def test_what_does_not_change_in_the_outer_loop_is_loaded_before_it():
    # The inner loop is unrolled, and each of its loads is the same in all iterations of the outer one.
    kernel = kiln.metal_kernel(
        "nearest",
        ["x", "centres"],
        ["y"],
        """uint i = thread_position_in_grid.x;
        float best = INFINITY;
        for (uint k = 0; k < 32; ++k) {
            float sum = 0;
            for (uint j = 0; j < 4; ++j) sum += abs(x[i * 4 + j] - centres[k * 4 + j]);
            best = min(best, sum);
        }
        y[i] = best;""",
    )
    compiled = kernel.compile(
        inputs=[np.zeros((256, 4), np.float32), np.zeros((32, 4), np.float32)],
        output_shapes=[(256,)],
        output_dtypes=["float32"],
        grid=(256, 1, 1),
        threadgroup=(256, 1, 1),
    )
    loop = re.search(r"^(\S+):[^\n]*\n(?:  [^\n]*\n)*?  br i1 [^\n]*label %\1\b", compiled.stages()["structured"], re.M)
    assert loop
    assert loop[0].count("load float") == 4  # of the centre
