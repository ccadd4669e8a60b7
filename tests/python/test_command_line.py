"""``python -m kiln``: what each command prints, for people and for programs."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import kiln
import numpy as np
import pytest
from kiln import _core

BODY = """\
threadgroup float sums[32];
uint i = thread_position_in_grid.x;
uint lane = thread_index_in_threadgroup;
float mine = x[i] * factor;
sums[lane] = mine;
threadgroup_barrier(mem_flags::mem_threadgroup);
y[i] = T(sums[31 - lane] + N * x_shape[0] + mine);
"""
ARGUMENTS = [
    *("--input", "x:float32:64", "--input", "factor:float32", "--output", "y:float16:64"),
    *("--template", "T=float16", "--template", "N=4", "--grid", "64,1,1", "--threadgroup", "32,1,1"),
]


def command(*arguments, cwd, environment=None):
    return subprocess.run(
        [sys.executable, "-m", "kiln", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=300,
        env={**os.environ, **(environment or {})},
    )


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "reverse.metal").write_text(BODY)
    return tmp_path


STAGES = ["clang", "guarded", "lanes", "components", "structured", "widened", "optimized", "assembly"]
if _core.cpu_engine() == "scalar":
    STAGES[2:6] = []


def the_same_in_python():
    kernel = kiln.metal_kernel("reverse", ["x", "factor"], ["y"], BODY)
    return kernel, {
        "inputs": [np.zeros(64, np.float32), 1.0],
        "output_shapes": [(64,)],
        "output_dtypes": ["float16"],
        "template": [("T", "float16"), ("N", 4)],
        "grid": (64, 1, 1),
        "threadgroup": (32, 1, 1),
    }


def test_show_as_json_is_what_python_has(folder):
    parts = ",".join(["text", *STAGES, "sizes"])
    done = command("show", "reverse.metal", *ARGUMENTS, "--parts", parts, "--json", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    shown = json.loads(done.stdout)
    kernel, call = the_same_in_python()
    compiled = kernel.compile(**call)
    stages = compiled.stages()
    assert list(stages) == STAGES
    assert shown == {
        "name": "reverse",
        "dialect": "metal",
        "text": kernel.source_for(**call),
        "target": "cpu",
        "architecture": compiled.architecture,
        "engine": compiled.engine,
        "engine_reason": compiled.engine_reason,
        "diagnostics": [],
        **stages,
        "sizes": {
            "code_bytes": len(compiled.machine_code),
            "threadgroup_memory_bytes": 32 * 4,
            "thread_memory_bytes": compiled.thread_memory_bytes,
        },
    }
    # `mine` outlives the barrier, but threadgroups are equal: simdgroups need not be suspended.
    assert shown["sizes"]["thread_memory_bytes"] == 0


def test_show_for_people(folder):
    done = command("show", "reverse.metal", *ARGUMENTS, cwd=folder)
    kernel, call = the_same_in_python()
    compiled = kernel.compile(**call)
    assert (done.returncode, done.stderr) == (0, "")
    text = kernel.source_for(**call).rstrip("\n")
    assert done.stdout == (
        f"==== text\n{text}\nreverse: cpu, {compiled.architecture}, {_core.cpu_engine()} engine\n"
        f"  machine code and constants {compiled.code_bytes:8} bytes\n"
        f"  threadgroup memory         {128:8} bytes\n"
        f"  memory of a waiting thread {compiled.thread_memory_bytes:8} bytes\n"
    )
    only = command("show", "reverse.metal", *ARGUMENTS, "--parts", "text", cwd=folder)
    assert only.stdout == f"{text}\n"


def test_shown_assembly_is_that_of_the_instruction_set(folder):
    """What an option changes, the shown code shows."""

    def assembly(*options, level="avx2"):
        done = command(
            "show", "reverse.metal", *ARGUMENTS, "--parts", "assembly", *options, cwd=folder,
            environment={"KILN_CPU_ISA": level},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "vcvtps2ph" in assembly()
    assert "vcvtps2ph" not in assembly(level="sse2")
    # A guard compares with the argument's extent.
    assert assembly("--bounds", "off").count("\tcmp") < assembly("--bounds", "on").count("\tcmp")


def test_show_takes_every_option_of_a_kernel(folder):
    (folder / "add.metal").write_text(
        "atomic_fetch_add_explicit(&y[0], one() + x[x_strides[0]], memory_order_relaxed);"
    )
    (folder / "one.h").write_text("inline int one() { return FLAG_ONE; }\n#define FLAG_ONE 1")
    done = command(
        *("show", "add.metal", "--header", "one.h", "--name", "my kernel", "--strided", "--atomic-outputs"),
        *("--input", "x:int32:2x3", "--output", "y:int32:1", "--math-mode", "fast", "--specialize", "off"),
        *("--parts", "text,optimized"),
        cwd=folder,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "python -m kiln show: [metal_kernel] `my kernel` does not compile.\n"
        "one.h:1:27: error: use of undeclared identifier 'FLAG_ONE'\n"
        "  inline int one() { return FLAG_ONE; }\n"
        f"{' ' * 28}^\n"
    )
    (folder / "one.h").write_text("inline int one() { return 1; }")
    done = command(
        *("show", "add.metal", "--header", "one.h", "--name", "my kernel", "--strided", "--atomic-outputs"),
        *("--input", "x:int32:2x3", "--output", "y:int32:1", "--math-mode", "fast", "--specialize", "off"),
        *("--parts", "text,optimized", "--json"),
        cwd=folder,
    )
    shown = json.loads(done.stdout)
    assert shown["name"] == "my kernel"
    assert "device atomic<int32_t>* y [[buffer(2)]]" in shown["text"]
    assert "atomicrmw volatile add" in shown["optimized"]


@pytest.mark.parametrize("shape", [(64,), (4, 3, 5), (7, 0, 2), ()])
def test_show_describes_row_contiguous_arrays(folder, shape):
    """Strides become constants in the code that is shown."""
    (folder / "strides.metal").write_text(
        "for (int d = 0; d < x_ndim; ++d) y[d] = x_strides[d];" if shape else "y[0] = x;"
    )
    described = f"x:float32:{'x'.join(map(str, shape))}" if shape else "x:float32"
    done = command(
        *("show", "strides.metal", "--strided", "--input", described, "--output", "y:int64:8"),
        *("--parts", "optimized", "--json"),
        cwd=folder,
    )
    kernel = kiln.metal_kernel(
        "strides", ["x"], ["y"], (folder / "strides.metal").read_text(), ensure_row_contiguous=False
    )
    compiled = kernel.compile(
        inputs=[np.zeros(shape, np.float32)],
        output_shapes=[(8,)],
        output_dtypes=["int64"],
        grid=(1, 1, 1),
        threadgroup=(1, 1, 1),
    )
    assert json.loads(done.stdout)["optimized"] == compiled.stages()["optimized"]


def test_show_takes_each_kind_of_argument(folder):
    (folder / "kinds.metal").write_text("y[0] = F ? T(x[0]) * N : G;")
    done = command(
        *("show", "kinds.metal", "--input", "x:bfloat16:8", "--output", "y:float32:1", "--parts", "text,sizes"),
        *("--template", "F=true", "--template", "G=false", "--template", "N=-3", "--template", "T=bfloat16", "--json"),
        cwd=folder,
    )
    assert (done.returncode, done.stderr) == (0, "")
    shown = json.loads(done.stdout)
    assert "const device bfloat16_t* x [[buffer(0)]]" in shown["text"]
    assert "template <bool F, bool G, int N, typename T>" in shown["text"]
    assert "<1, 0, -3, bfloat16_t>" in shown["text"]
    assert shown["sizes"]["code_bytes"] > 0


def test_show_of_cuda_has_its_text(folder):
    (folder / "c.cu").write_text("y[threadIdx.x] = x[threadIdx.x];")
    arguments = ("show", "c.cu", "--dialect", "cuda", "--input", "x:float64:8", "--output", "y:float64:8")
    done = command(*arguments, "--parts", "text", cwd=folder)
    assert done.returncode == 0
    assert "const double* x" in done.stdout
    done = command(*arguments, "--atomic-outputs", cwd=folder)
    assert (done.returncode, done.stderr) == (1, "python -m kiln show: --atomic-outputs is for the dialect metal\n")
    done = command(*arguments, "--parts", "text,clang", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert "@__kiln_value" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--input", "x"], "argument --input: expected NAME:DTYPE or NAME:DTYPE:SHAPE, such as x:float32:4x5, but got 'x'"),
        (["--input", "x:float:4"], "argument --input: 'float' is no dtype, in 'x:float:4'; those are bool, uint8, uint16, uint32, uint64, int8, int16, int32, int64, float16, bfloat16, float32, float64, complex64"),
        (["--output", "y:int8:4,5"], "argument --output: expected a shape such as 4x5 but got '4,5', in 'y:int8:4,5'"),
        (["--output", "y:int8:-4"], "argument --output: expected a shape such as 4x5 but got '-4', in 'y:int8:-4'"),
        (["--template", "T"], "argument --template: expected NAME=VALUE, such as T=float32 or N=4, but got 'T'"),
        (
            ["--template", "T=x"],
            "argument --template: 'x' is neither a dtype nor an int nor true or false, in 'T=x'",
        ),
        (["--grid", "4,5,6,7"], "argument --grid: expected one to three numbers such as 32,8,1 but got '4,5,6,7'"),
        (["--threadgroup", "4,5,-1"], "argument --threadgroup: expected one to three numbers such as 32,8,1 but got '4,5,-1'"),
        (["--parts", "ir"], "argument --parts: 'ir' is none of text, clang, guarded, lanes, components, structured, widened, optimized, assembly, passes, remarks, sizes"),
    ],
)  # fmt: skip
def test_show_refuses_what_it_cannot_read(folder, arguments, reason):
    done = command("show", "reverse.metal", *arguments, cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith(f"python -m kiln show: error: {reason}\n")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["missing.metal"], "[metal_kernel] Expected `source` to be a file but there is no missing.metal."),
        (["latin.metal"], "[metal_kernel] Expected `source` to be a file of UTF-8 but byte 3 of latin.metal is not."),
        (
            ["reverse.metal", "--header", "missing.h"],
            "[metal_kernel] Expected `header` to be a file but there is no missing.h.",
        ),
        (["reverse.metal"], "[metal_kernel] Must specify at least one output."),
        (
            ["reverse.metal", "--input", "y:int8", "--output", "y:int8"],
            "[metal_kernel] Name `y` is used twice.",
        ),
        (
            ["reverse.metal", "--output", "y:int8", "--threadgroup", "64,64,1"],
            "[metal_kernel] Expected `threadgroup` to have at most 1024 threads but got (64, 64, 1).",
        ),
        (
            ["reverse.metal", "--output", "y:float64"],
            "[metal_kernel] Metal has no double, but output `y` is float64.",
        ),
    ],
)
def test_show_says_what_is_wrong(folder, arguments, reason):
    (folder / "latin.metal").write_bytes(b"// \xe9")
    done = command("show", *arguments, cwd=folder)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"python -m kiln show: {reason}\n")
    as_json = command("show", *arguments, "--json", cwd=folder)
    assert (as_json.returncode, as_json.stderr) == (1, "")
    assert json.loads(as_json.stdout) == {"error": reason, "diagnostics": []}


def test_show_takes_cuda_in_a_file_named_so(folder):
    (folder / "twice.cu").write_text("int i = threadIdx.x;\ny[i] = 2 * x[i];\n")
    arguments = ("--input", "x:float32:8", "--output", "y:float32:8", "--parts", "text")
    done = command("show", "twice.cu", *arguments, cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert "__global__" in done.stdout and "[[kernel]]" not in done.stdout
    done = command("show", "twice.cu", *arguments, "--dialect", "metal", cwd=folder)
    assert "[[kernel]]" in done.stdout


def test_show_has_a_compile_error_as_json(folder):
    (folder / "wrong.metal").write_text("y[0] = 1;\ny[1] = z;\n")
    done = command("show", "wrong.metal", "--output", "y:int8:2", "--json", cwd=folder)
    assert done.returncode == 1
    assert json.loads(done.stdout)["diagnostics"] == [
        {
            "severity": "error",
            "message": "use of undeclared identifier 'z'",
            "text": "source",
            "line": 2,
            "column": 8,
            "source_line": "y[1] = z;",
            "file": "wrong.metal",
        }
    ]


def test_show_needs_no_array_library(folder):
    for library in ("numpy", "ml_dtypes", "mlx", "torch", "jax"):
        (folder / f"{library}.py").write_text("raise ModuleNotFoundError('missing')")
    as_usual = command("show", "reverse.metal", *ARGUMENTS, cwd=folder)
    done = command("show", "reverse.metal", *ARGUMENTS, cwd=folder, environment={"PYTHONPATH": str(folder)})
    assert (done.returncode, done.stderr) == (0, "") and done.stdout == as_usual.stdout


def test_doctor_as_json(tmp_path):
    done = command("doctor", "--json", cwd=tmp_path, environment={"KILN_CPU_THREADS": "2"})
    assert (done.returncode, done.stderr) == (0, "")
    report = json.loads(done.stdout)
    assert report["version"] == kiln.__version__
    headings = ["compiler", "cuda_compiler", "targets", "array_libraries", "compiled_before"]
    assert list(report) == ["version", "python", "platform", *headings, "settings", "unknown_variables"]
    assert report["compiled_before"] == [{"name": "disk", "usable": False, "detail": "KILN_CACHE is off"}]
    assert report["unknown_variables"] == []
    usable = {row["name"]: row["usable"] for key in headings for row in report[key]}
    assert usable["nvrtc"]
    assert usable["libkiln_compiler.so"] and usable["cpu"] and usable["numpy"]
    assert {"nvidia", "torch", "jax", "cupy"} <= usable.keys()
    settings = {row["variable"]: row["value"] for row in report["settings"]}
    assert settings["KILN_CPU_THREADS"] == "2"
    assert settings["KILN_BOUNDS"] is None


def test_doctor_lists_settings_that_are_set(tmp_path):
    settings = {variable: "" for variable, _, _ in _core.settings()}
    cache = {"KILN_CACHE": "off"}
    done = command("doctor", cwd=tmp_path, environment=settings | cache)
    assert re.search(r"\n\nSettings\n  KILN_CACHE = off: [^\n]+\n$", done.stdout)
    cache["KILN_CACHE_DIR"] = str(tmp_path)
    done = command("doctor", cwd=tmp_path, environment={**settings, "KILN_CACHE": ""} | {"HOME": str(tmp_path)})
    assert done.stdout.endswith("\n\nSettings\n  none is set; --settings lists them\n")
    done = command("doctor", "--settings", cwd=tmp_path, environment=settings | cache)
    lines = done.stdout.partition("\n\nSettings\n")[2].splitlines()
    assert [line.split()[0] for line in lines] == list(settings)
    assert f"  KILN_CACHE_DIR = {tmp_path}: " in done.stdout and "\n  KILN_BOUNDS is not set: " in done.stdout


def test_doctor_says_once_what_is_wrong_with_a_variable(tmp_path):
    done = command("doctor", cwd=tmp_path, environment={"KILN_CPU_ISA": "mmx"})
    reason = "environment variable KILN_CPU_ISA has the value `mmx`, expected sse2, sse4, avx2 or avx512"
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.count(reason) == 1
    assert f"libkiln_compiler.so  not usable  {reason}\n" in done.stdout
    assert "  mlx    not usable  for the same reason\n" in done.stdout


def test_doctor_names_variables_that_are_no_settings(tmp_path):
    done = command("doctor", cwd=tmp_path, environment={"KILN_CPU_THREAD": "2", "KILN_XYZ": "", "KILNS": "1"})
    assert done.returncode == 0
    assert done.stdout.endswith(
        "\n  KILN_CPU_THREAD is set, and is no setting; did you mean KILN_CPU_THREADS?\n"
        "  KILN_XYZ is set, and is no setting\n"
    )


PROGRAM = """\
import sys
import mlx.core as mx

twice = mx.fast.metal_kernel("twice", ["x"], ["y"], "y[thread_position_in_grid.x] = 2 * x[thread_position_in_grid.x];")
mx.fast.metal_kernel("unused", [], ["y"], "y[0] = 1;")
for _ in range(2):
    (y,) = twice(inputs=[mx.arange(4)], output_shapes=[(4,)], output_dtypes=[mx.int32], grid=(4, 1, 1), threadgroup=(2, 1, 1))
    print(y.tolist())
sys.exit(3)
"""


def test_run_reports_launches(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    done = command("run", "--report", "report.json", "program.py", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (3, "[0, 2, 4, 6]\n" * 2, "")
    kernels = json.loads((tmp_path / "report.json").read_text())
    assert [kernel["name"] for kernel in kernels] == ["twice", "unused"]
    assert kernels[1]["launches"] == []
    assert kernels[1]["totals"] == {
        "launches": 0, "compiled": 0, "compile_ms": 0, "run_ms": 0, "longest_run_ms": 0
    }  # fmt: skip
    first, second = kernels[0]["launches"]
    assert (first["target"], first["engine"]) == ("cpu", _core.cpu_engine())
    assert (first["code"], second["code"]) == ("compiled", "memory")
    fields = {"target", "engine", "engine_reason", "code", "specialized", "not_stored", "compile_ms", "run_ms"}
    assert set(first) == fields | {"grid", "threadgroup", "input_dtypes", "output_dtypes"}
    assert (first["grid"], first["threadgroup"]) == ([4, 1, 1], [2, 1, 1])
    assert (first["input_dtypes"], first["output_dtypes"]) == (["int32"], ["int32"])
    totals = kernels[0]["totals"]
    assert (totals["launches"], totals["compiled"]) == (2, 1)
    assert totals["compile_ms"] == first["compile_ms"] > 0
    assert totals["run_ms"] == pytest.approx(first["run_ms"] + second["run_ms"])
    assert totals["longest_run_ms"] == max(first["run_ms"], second["run_ms"])
    assert (first["not_stored"], second["not_stored"]) == ("KILN_CACHE is off", "")


def test_run_reports_what_is_still_in_flight(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM.replace("print(y.tolist())", "mx.async_eval(y)"))
    assert command("run", "--report", "report.json", "program.py", cwd=tmp_path).returncode == 3
    assert len(json.loads((tmp_path / "report.json").read_text())[0]["launches"]) == 2


def test_run_reports_once_where_the_program_forks(tmp_path):
    forks = "import os, sys\nif os.fork() == 0:\n    sys.exit(0)\nos.wait()\n"
    (tmp_path / "program.py").write_text(PROGRAM.replace("sys.exit(3)", forks))
    assert command("run", "--report", "report.json", "program.py", cwd=tmp_path).returncode == 0
    assert len(json.loads((tmp_path / "report.json").read_text())[0]["launches"]) == 2


def test_totals_have_launches_that_are_no_longer_listed(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM.replace("range(2)", "range(1100)"))
    assert command("run", "--report", "report.json", "program.py", cwd=tmp_path).returncode == 3
    twice, _ = json.loads((tmp_path / "report.json").read_text())
    assert (len(twice["launches"]), twice["totals"]["launches"], twice["totals"]["compiled"]) == (1000, 1100, 1)
    assert twice["totals"]["run_ms"] > sum(launch["run_ms"] for launch in twice["launches"])


def test_run_prints_a_summary(tmp_path):
    more = PROGRAM.replace("sys.exit(3)", "mx.eval(kernel())\nsys.exit(3)").replace(
        "for _ in", "def kernel():\n    return twice(inputs=[mx.arange(9.0)], output_shapes=[(9,)], "
        "output_dtypes=[mx.float16], grid=9, threadgroup=9)\nfor _ in"
    )  # fmt: skip
    (tmp_path / "program.py").write_text(more)
    done = command("run", "--summary", "program.py", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (3, "[0, 2, 4, 6]\n" * 2)
    engine = f"cpu {_core.cpu_engine()}"
    lines = re.sub(r"\d+\.\d+", "#", done.stderr).splitlines()
    assert [line.split("  ") for line in (re.sub("   +", "  ", line) for line in lines)] == [
        ["kernel", "launches", "run ms", "compiled", "compile ms", "target", "grid", "threadgroup", "dtypes"],
        ["twice", "3", "#", "2", "#", engine, "4x1x1 and 1 more", "2x1x1 and 1 more", "int32 -> int32 and 1 more"],
        ["unused", "0", "#", "0", "#"],
        ["total", "3", "#", "2", "#"],
    ]


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGUSR1", "SIGINT"])
def test_run_reports_where_a_signal_ends_the_program(tmp_path, name):
    # A shell starts what it leaves in the background with SIGINT ignored.
    python = "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    ends = f"import os, signal\n{python}os.kill(os.getpid(), signal.{name})\nimport time\ntime.sleep(60)\n"
    (tmp_path / "program.py").write_text(PROGRAM.replace("sys.exit(3)", ends))
    done = command("run", "--report", "report.json", "--summary", "program.py", cwd=tmp_path)
    # As without a report: Python makes an exception of SIGINT, and ends by it.
    assert done.returncode == -signal.Signals[name]
    assert json.loads((tmp_path / "report.json").read_text())[0]["totals"]["launches"] == 2
    assert done.stderr.startswith("kernel ") and "\ntwice " in done.stderr


def test_signals_that_a_program_handles_are_its_own(tmp_path):
    handles = (
        "import os, signal\n"
        "assert signal.getsignal(signal.SIGPIPE) == signal.SIG_IGN\n"
        "signal.signal(signal.SIGTERM, lambda *_: print('mine'))\n"
        "os.kill(os.getpid(), signal.SIGTERM)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    os.kill(os.getpid(), signal.SIGHUP)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    (tmp_path / "program.py").write_text(PROGRAM.replace("sys.exit(3)", handles))
    done = command("run", "--report", "report.json", "program.py", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith(f"mine\n{-signal.SIGHUP}\n")
    assert json.loads((tmp_path / "report.json").read_text())[0]["totals"]["launches"] == 2


def test_record_says_what_it_wrote_and_where(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    done = command("record", "program.py", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (3, "[0, 2, 4, 6]\n" * 2)
    assert done.stderr == "python -m kiln record: wrote 1 kernel with 1 call to kernels.json\n"
    ends = "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)\n"
    (tmp_path / "program.py").write_text(PROGRAM.replace("sys.exit(3)", ends))
    done = command("record", "--output", "k.json", "program.py", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (
        -signal.SIGTERM,
        "python -m kiln record: wrote 1 kernel with 1 call to k.json\n",
    )
    assert (tmp_path / "k.json").read_text() == (tmp_path / "kernels.json").read_text()


def test_compile_says_where_the_code_is(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    command("record", "program.py", cwd=tmp_path)
    cache = {"KILN_CACHE": "on", "KILN_CACHE_DIR": str(tmp_path / "cache")}
    done = command("compile", "kernels.json", cwd=tmp_path, environment=cache)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"compiled 1, found 0 that were compiled before; {tmp_path}/cache has it\n"
    done = command("compile", "kernels.json", "--bundle", "k.kiln", cwd=tmp_path, environment=cache)
    assert done.stdout.endswith("; k.kiln has 1 entry\n")
    # Nothing is stored, and nothing is said of it.
    done = command("compile", "kernels.json", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "compiled 1, found 0 that were compiled before\n")


def test_run_needs_a_report_that_can_be_written(tmp_path):
    (tmp_path / "program.py").write_text("print('ran')")
    done = command("run", "--report", "missing/report.json", "program.py", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "python -m kiln run: missing/report.json: No such file or directory\n"


FAILING = """\
def f():
    raise RuntimeError("no")
f()
"""


@pytest.mark.parametrize("how", [["program.py"], ["-m", "program"]], ids=["file", "module"])
def test_a_traceback_begins_in_the_program(tmp_path, how):
    """As without `python -m kiln run`."""
    (tmp_path / "program.py").write_text(FAILING)
    alone = subprocess.run([sys.executable, "program.py"], capture_output=True, text=True, cwd=tmp_path)
    done = command("run", *how, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    printed = alone.stderr.replace(str(tmp_path / "program.py"), "program.py")
    assert done.stderr.replace(str(tmp_path / "program.py"), "program.py") == printed
    assert printed.startswith('Traceback (most recent call last):\n  File "program.py", line 3, in <module>\n')


def test_a_traceback_with_a_cause_begins_in_the_program(tmp_path):
    (tmp_path / "program.py").write_text(
        "import runpy\ntry:\n    runpy.run_path('other.py')\nexcept ZeroDivisionError as error:\n"
        "    raise RuntimeError('no') from error\n"
    )
    (tmp_path / "other.py").write_text("1 / 0\n")
    done = command("run", "program.py", cwd=tmp_path)
    first, second = done.stderr.split("The above exception was the direct cause")
    # What the program itself runs by runpy is the program's.
    assert first.startswith('Traceback (most recent call last):\n  File "program.py", line 3, in <module>\n')
    assert "runpy" in first and 'File "other.py", line 1' in first
    assert 'Traceback (most recent call last):\n  File "program.py", line 5, in <module>\n' in second
    assert "_run.py" not in done.stderr


def test_a_program_that_is_no_python(tmp_path):
    (tmp_path / "program.py").write_text("x = = 1\n")
    alone = subprocess.run([sys.executable, "program.py"], capture_output=True, text=True, cwd=tmp_path)
    done = command("run", "program.py", cwd=tmp_path)
    assert done.returncode == alone.returncode == 1
    assert done.stderr == alone.stderr.replace(str(tmp_path / "program.py"), "program.py")


def test_an_exception_hook_of_the_program_is_called(tmp_path):
    (tmp_path / "program.py").write_text(
        "import sys\nsys.excepthook = lambda kind, error, trace: print('mine:', error)\n" + FAILING
    )
    done = command("run", "program.py", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (1, "mine: no\n", "")


@pytest.mark.parametrize("arguments", [[], ["doctor"], ["run"], ["show"], ["cpp"]])
def test_help(tmp_path, arguments):
    done = command(*arguments, "--help", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"usage: python -m kiln {' '.join(arguments)}".rstrip())


def test_help_is_what_no_command_prints(tmp_path):
    nothing, help = command(cwd=tmp_path), command("--help", cwd=tmp_path)
    assert (nothing.returncode, nothing.stdout, nothing.stderr) == (0, help.stdout, "")


def test_the_console_script(tmp_path):
    script = Path(sys.executable).with_name("kiln")
    (tmp_path / "program.py").write_text("import sys\nprint(sys.argv, sys.path[0])\nsys.exit(4)\n")
    for arguments in (["--version"], ["run", "program.py", "-x"], ["run", "-m", "program"], ["show", "none.metal"]):
        done, other = (
            subprocess.run([*start, *arguments], capture_output=True, text=True, cwd=tmp_path, timeout=300)
            for start in ([str(script)], [sys.executable, "-m", "kiln"])
        )
        assert (done.returncode, done.stdout, done.stderr) == (other.returncode, other.stdout, other.stderr)


def test_version(tmp_path):
    done = command("--version", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"Kiln {kiln.__version__}\n", "")


def test_run_without_a_program(tmp_path):
    done = command("run", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith("python -m kiln run: error: the following arguments are required: PROGRAM\n")


@pytest.mark.parametrize("name", ["nosuch", "nosuch.part", "package.nosuch", "alone.part", ".package", ""])
def test_run_of_a_module_that_is_not_there(tmp_path, name):
    (tmp_path / "alone.py").write_text("")
    (tmp_path / "package").mkdir()
    (tmp_path / "package/__init__.py").write_text("")
    done = command("run", "-m", name, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"python -m kiln run: no module named {name}\n")


def test_run_of_a_module_whose_package_fails(tmp_path):
    (tmp_path / "package").mkdir()
    (tmp_path / "package/__init__.py").write_text("import nosuch")
    (tmp_path / "package/part.py").write_text("")
    done = command("run", "-m", "package.part", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.endswith("ModuleNotFoundError: No module named 'nosuch'\n")


@pytest.mark.parametrize("arguments", [["show", "reverse.metal", *ARGUMENTS, "--parts", "assembly"], ["doctor"]])
def test_nobody_reads_what_is_printed(folder, arguments):
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "kiln", *arguments], stdout=write, stderr=subprocess.PIPE, cwd=folder, timeout=300
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (1, b"")
