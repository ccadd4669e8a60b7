"""docs/cache.md: machine code that one process compiles and another runs, by the cache on disk and by bundles.

What a file can do to the cache, and a disk, a user and a clock, is in tests/cpp/cache.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from kiln import _core

ROOT = Path(__file__).resolve().parent.parent.parent

PROGRAM = """
import sys
import kiln
import numpy as np

BODY = "uint i = thread_position_in_grid.x; y[i] = T(N * x[i] + x_shape[0]);"

def launch(body=BODY, n=4, dtype="float32"):
    kernel = kiln.metal_kernel("scale", ["x"], ["y"], body)
    x = np.arange(n, dtype=np.float32)
    (y,) = kernel(inputs=[x], template=[("T", dtype), ("N", 3)], output_shapes=[x.shape], output_dtypes=[dtype],
                  grid=(n, 1, 1), threadgroup=(n, 1, 1))
    assert y.tolist() == [3 * i + n for i in range(n)], y
    return kernel.history[0]

def compiler_is_open():
    return "compiler.so" in open("/proc/self/maps").read()
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "cache").mkdir(mode=0o700)
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "launch.py").write_text(
        "from program import *\nlast = launch()\nprint(last.code, compiler_is_open(), last.not_stored)"
    )
    return tmp_path


def environment(folder, **settings) -> dict[str, str]:
    return {**os.environ, "KILN_CACHE": "on", "KILN_CACHE_DIR": str(folder / "cache"), **settings}


def python(folder, *arguments, **settings) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment(folder, **settings),
        capture_output=True,
        text=True,
        timeout=300,
    )


def printed(folder, *arguments, **settings) -> str:
    done = python(folder, *arguments, **settings)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


def recorded(folder, output, *program) -> str:
    """What a program prints that is recorded."""
    done = python(folder, "-m", "kiln", "record", "--output", output, *program)
    assert done.returncode == 0
    assert re.fullmatch(rf"python -m kiln record: wrote \d kernels? with \d calls? to {output}\n", done.stderr)
    return done.stdout


def entries(folder) -> list[Path]:
    return sorted(path for path in (folder / "cache" / "v1").iterdir() if len(path.name) == 64)


def test_the_second_process_does_not_open_the_compiler(folder):
    assert printed(folder, "launch.py") == "compiled True \n"
    assert printed(folder, "launch.py") == "disk False \n"
    # Nor one that has no compiler.
    assert printed(folder, "launch.py", KILN_CACHE="read") == "disk False \n"


def test_without_settings_the_cache_is_the_users(folder):
    for variable, expected in (("XDG_CACHE_HOME", "given/kiln"), ("HOME", "given/.cache/kiln")):
        home = {"HOME": str(folder / "home"), "XDG_CACHE_HOME": "", variable: str(folder / "given")}
        assert printed(folder, "launch.py", KILN_CACHE_DIR="", **home) == "compiled True \n"
        assert (folder / expected / "v1").is_dir()
        shutil.rmtree(folder / "given")


def test_a_relative_xdg_folder_is_ignored(folder):
    printed(folder, "launch.py", KILN_CACHE_DIR="", XDG_CACHE_HOME="given", HOME=str(folder / "home"))
    assert not (folder / "given").exists()
    assert (folder / "home/.cache/kiln/v1").is_dir()


@pytest.mark.parametrize(
    ("mode", "reason"), [("off", "KILN_CACHE is off"), ("read", "KILN_CACHE is read")], ids=["off", "read"]
)
def test_nothing_is_stored_where_the_user_does_not_want_it(folder, mode, reason):
    assert printed(folder, "launch.py", KILN_CACHE=mode) == f"compiled True {reason}\n"
    assert list((folder / "cache").iterdir()) == []


def test_history_says_why_nothing_was_stored(folder):
    (folder / "cache").chmod(0o777)
    reason = f"{folder}/cache can be written by other users"
    assert printed(folder, "launch.py") == f"compiled True {reason}\n"
    assert f"disk  not usable  {reason}\n" in printed(folder, "-m", "kiln", "doctor")


def test_doctor_says_why_nothing_can_be_stored(folder):
    """On a disk that is full: of files, no byte may be written."""
    limited = (
        "import atexit, resource, runpy, signal, sys\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "before = resource.getrlimit(resource.RLIMIT_FSIZE)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))\n"
        # Who counts lines writes at the end.
        "atexit.register(resource.setrlimit, resource.RLIMIT_FSIZE, before)\n"
        "sys.argv = ['kiln', 'doctor']\n"
        "runpy.run_module('kiln', run_name='__main__')\n"
    )
    shown = printed(folder, "-c", limited)
    line = next(line for line in shown.splitlines() if line.startswith("  disk"))
    assert line.startswith(f"  disk  not usable  {folder}/cache, 0 kernels, ")
    assert re.search(rf"\n +nothing is stored: cannot write {folder}/cache/v1/.tmp-\S+: File too large\n", shown)


def test_doctor_tells_hits_and_misses(folder):
    printed(folder, "launch.py")
    printed(folder, "launch.py")
    report = json.loads(printed(folder, "-m", "kiln", "doctor", "--json"))
    (row,) = report["compiled_before"]
    assert (row["name"], row["usable"]) == ("disk", True)
    # Its own kernels missed, too: one for the compiler and one for each of cpu, numpy and mlx.
    assert row["detail"].startswith(f"{folder}/cache, 5 kernels, ")
    assert row["detail"].endswith("; 1 hit, 5 misses")
    # It tries the compiler also where its kernel is on disk.
    report = json.loads(printed(folder, "-m", "kiln", "doctor", "--json"))
    assert report["compiled_before"][0]["detail"].endswith("; 5 hits, 5 misses")
    done = python(folder, "-m", "kiln", "doctor", KILN_COMPILER="/nowhere/compiler.so")
    assert done.returncode == 1
    assert "libkiln_compiler.so  not usable" in done.stdout


def test_damaged_entries_are_compiled_anew(folder):
    printed(folder, "launch.py")
    (entry,) = entries(folder)
    good = entry.read_bytes()
    for content in (b"", good[:-1], good[:100], good[:500] + bytes([good[500] ^ 1]) + good[501:]):
        entry.write_bytes(content)
        assert printed(folder, "launch.py") == "compiled True \n"
        assert printed(folder, "launch.py") == "disk False \n"


def test_processes_that_start_together_share_what_they_compile(folder):
    (folder / "many.py").write_text(
        "from program import *\n"
        "for n in range(10):\n"
        "    print(launch(f'uint i = thread_position_in_grid.x; y[i] = T(N * x[i] + x_shape[0]); // {n}').code)\n"
    )
    running = [
        subprocess.Popen(
            [sys.executable, "many.py"],
            cwd=folder,
            env=environment(folder),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(6)
    ]
    codes = []
    for process in running:
        output, errors = process.communicate(timeout=300)
        assert (process.returncode, errors) == (0, "")
        codes += output.split()
    # One compiles each, and the others wait for it.
    assert codes.count("compiled") == 10 and codes.count("disk") == 50
    assert len(entries(folder)) == 10
    assert printed(folder, "-m", "kiln", "cache", "verify") == "10 kernels are undamaged\n"


def test_another_compiler_has_other_entries(folder):
    """The same file under another name has the same; with another build ID it has not."""
    from kiln import _core

    printed(folder, "launch.py")
    copy = folder / "compiler.so"
    shutil.copy(_core.compiler_path(), copy)
    assert printed(folder, "launch.py", KILN_COMPILER=str(copy)) == "disk False \n"
    content = copy.read_bytes()
    note = content.index(b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0") + 16
    with copy.open("r+b") as file:
        file.seek(note)
        file.write(bytes([content[note] ^ 1]))
    assert printed(folder, "launch.py", KILN_COMPILER=str(copy)) == "compiled True \n"
    assert len(entries(folder)) == 2


def test_code_belongs_to_the_compiler_that_made_it(folder):
    """The library is replaced between the look-up and its opening, as by an upgrade while a program runs."""
    from kiln import _core

    compiler = folder / "compiler.so"
    shutil.copy(_core.compiler_path(), compiler)
    (folder / "replace.py").write_text(
        "from program import *\nimport os\n"
        "launch()\n"  # on disk: the library is not opened
        "assert not compiler_is_open()\n"
        f"content = bytearray(open({str(compiler)!r}, 'rb').read())\n"
        "note = content.index(bytes.fromhex('040000001400000003000000474e5500')) + 16\n"
        "content[note] ^= 1\n"
        f"open('new.so', 'wb').write(content)\nos.rename('new.so', {str(compiler)!r})\n"
        "print(launch(n=5).code)\n"
    )
    settings = {"KILN_COMPILER": str(compiler)}
    printed(folder, "launch.py", **settings)
    assert printed(folder, "replace.py", **settings) == "compiled\n"
    items = json.loads(printed(folder, "-m", "kiln", "cache", "list", "--json", **settings))
    assert len({item["compiler"] for item in items}) == 2
    # It is found by who has the new compiler.
    (folder / "again.py").write_text("from program import *\nprint(launch(n=5).code, launch().code)")
    assert printed(folder, "again.py", **settings) == "disk compiled\n"


def test_text_reads_no_files(folder):
    """Without a folder to look in, nothing but the text that a kernel is given is compiled, wherever the files lie that
    its header names. Of what is included, the key has the content (test_files.py)."""
    (folder / "value.h").write_text("#define VALUE 1\n")
    (folder / "include.py").write_text(
        "import kiln\nimport numpy as np\nfor path in ('value.h', './value.h', sys_path):\n".replace(
            "sys_path", repr(str(folder / "value.h"))
        )
        + "    kernel = kiln.metal_kernel('k', ['x'], ['y'], 'y[0] = VALUE;', header=f'#include \"{path}\"\\n')\n"
        "    try:\n"
        "        kernel(inputs=[np.zeros(1, np.float32)], output_shapes=[(1,)], output_dtypes=['int32'],\n"
        "               grid=(1, 1, 1), threadgroup=(1, 1, 1))\n"
        "    except kiln.CompileError as error:\n"
        "        print(error.diagnostics[0].message)\n"
    )
    shown = printed(folder, "include.py").splitlines()
    where = "text is in no folder, and `include_dirs` names none"
    assert shown == [f"'{path}' file not found; {where}" for path in ("value.h", "./value.h", folder / "value.h")]


def test_the_second_demonstration_compiles_nothing(folder):
    pytest.importorskip("matplotlib")
    codes = []
    for n in range(2):
        done = python(
            folder, "-m", "kiln", "run", "--report", f"{n}.json", "-m", "demo.main", PYTHONPATH=str(ROOT)
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        kernels = json.loads((folder / f"{n}.json").read_text())
        assert all(len(kernel["launches"]) < 1000 for kernel in kernels)  # nothing was forgotten
        codes.append({launch["code"] for kernel in kernels for launch in kernel["launches"]})
    assert codes == [{"compiled", "memory"}, {"disk", "memory"}]


# ---- python -m kiln cache


def test_the_cache_is_shown(folder):
    assert printed(folder, "-m", "kiln", "cache") == (
        f"folder   {folder}/cache\nkernels  0\nsize     0 bytes of 1.0 GiB\nhits     0\nmisses   0\n"
    )
    printed(folder, "launch.py")
    printed(folder, "launch.py")
    size = entries(folder)[0].stat().st_size
    assert json.loads(printed(folder, "-m", "kiln", "cache", "--json", KILN_CACHE_SIZE="5M")) == {
        "mode": "on",
        "directory": str(folder / "cache"),
        "problem": "",
        "entries": 1,
        "bytes": size,
        "limit_bytes": 5 << 20,
        "hits": 1,
        "misses": 1,
    }
    assert printed(folder, "-m", "kiln", "cache", KILN_CACHE="off").endswith("\nIt is not used: KILN_CACHE is off.\n")
    assert printed(folder, "-m", "kiln", "cache", KILN_CACHE="read").endswith(
        "\nNothing is stored: KILN_CACHE is read.\n"
    )
    (folder / "cache").chmod(0o770)
    shown = printed(folder, "-m", "kiln", "cache")
    assert shown.endswith(f"\nIt is not used: {folder}/cache can be written by other users.\n")
    done = python(folder, "-m", "kiln", "cache", "clear")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"python -m kiln cache: {folder}/cache can be written by other users\n"


def test_the_cache_is_listed(folder):
    printed(folder, "launch.py")
    (entry,) = entries(folder)
    os.utime(entry, (1_600_000_000, 1_600_000_000))
    (item,) = json.loads(printed(folder, "-m", "kiln", "cache", "list", "--json"))
    assert item.pop("compile_ms") > 0
    assert item.pop("compiler").startswith("Kiln ")
    assert item.pop("architecture").startswith("x86-64")
    assert item == {
        "id": entry.name,
        "bytes": entry.stat().st_size,
        "last_used": 1_600_000_000,
        "problem": "",
        "kernel": "scale",
        "engine": _core.cpu_engine(),
    }
    shown = printed(folder, "-m", "kiln", "cache", "list", TZ="UTC")
    assert shown.startswith(f"{entry.name[:12]}  {entry.stat().st_size:9} bytes  used 2020-09-13 12:26  scale, x86-64")
    entry.write_bytes(b"")
    assert printed(folder, "-m", "kiln", "cache", "list").endswith(f"  {entry} is damaged\n")


def test_the_cache_is_verified(folder):
    printed(folder, "launch.py")
    assert printed(folder, "-m", "kiln", "cache", "verify") == "1 kernel is undamaged\n"
    (entry,) = entries(folder)
    entry.write_bytes(entry.read_bytes()[:-1])
    done = python(folder, "-m", "kiln", "cache", "verify")
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout == f"{entry} is damaged\n0 kernels are undamaged; what was damaged is removed\n"
    done = python(folder, "-m", "kiln", "cache", "verify", "--json")
    assert (done.returncode, json.loads(done.stdout)) == (0, {"valid": 0, "problems": []})


def test_the_cache_is_pruned_and_cleared(folder):
    (folder / "several.py").write_text("from program import *\nfor n in (4, 5, 6): launch(n=n)")
    printed(folder, "several.py")
    files = entries(folder)
    for age, file in enumerate(files):
        os.utime(file, (1_600_000_000 - age, 1_600_000_000 - age))
    sizes = [file.stat().st_size for file in files]
    shown = printed(folder, "-m", "kiln", "cache", "prune", "--size", str(sum(sizes) - 1))
    assert shown == f"removed 1 kernel, {sizes[2] / 1024:.1f} KiB\n"
    assert entries(folder) == files[:2]
    assert printed(folder, "-m", "kiln", "cache", "prune") == "removed 0 kernels, 0 bytes\n"
    removed = json.loads(printed(folder, "-m", "kiln", "cache", "clear", "--json"))
    assert removed == {"entries": 2, "bytes": sum(sizes[:2])}
    assert entries(folder) == []
    done = python(folder, "-m", "kiln", "cache", "prune", "--size", "much")
    assert done.returncode == 2
    assert done.stderr.endswith(
        "error: argument --size: expected a number of bytes such as 512M or 2G but got 'much'\n"
    )


# ---- Compiling ahead


@pytest.fixture
def recording(folder) -> Path:
    """Of a program with two kernels, one of which has code of its own for two shapes."""
    (folder / "several.py").write_text(
        "from program import *\n"
        "assert len(sys.argv) == 2\n"
        "codes = {launch(n=n).code for n in (4, 5)}\n"
        "codes.add(launch('uint i = thread_position_in_grid.x; y[i] = T(N * i + 4);').code)\n"
        "print(*sorted(codes))\n"
    )
    shown = recorded(folder, "kernels.json", "several.py", "argument")
    assert shown == "compiled\n"
    return folder / "kernels.json"


def test_a_recording_has_each_kernel_and_its_calls(folder, recording):
    content = json.loads(recording.read_text())
    assert (content["format"], content["version"]) == ("Kiln recording", 1)
    first, second = content["kernels"]
    assert (first["name"], first["input_names"], len(first["calls"])) == ("scale", ["x"], 2)
    assert first["calls"][1] == {
        "inputs": [["float32", [5], [1]]],
        "outputs": [["float32", [5]]],
        "template": [["T", "float32"], ["N", 3]],
        "input_names": [],
        "output_names": [],
        "specialized": True,
        "grid": [1, 1, 1],
        "threadgroup": [1, 1, 1],
    }
    assert [call["specialized"] for call in second["calls"]] == [False]


def test_a_recording_is_compiled_for_the_cache(folder, recording):
    shutil.rmtree(folder / "cache")
    assert printed(folder, "-m", "kiln", "compile", "kernels.json") == (
        f"compiled 3, found 0 that were compiled before; {folder}/cache has them\n"
    )
    assert printed(folder, "several.py", "argument") == "disk\n"
    assert printed(folder, "-m", "kiln", "compile", "kernels.json") == (
        f"compiled 0, found 3 that were compiled before; {folder}/cache has them\n"
    )
    # Nothing is recorded twice where it was found.
    recorded(folder, "again.json", "several.py", "argument")
    assert (folder / "again.json").read_text() == recording.read_text()


def test_a_bundle_serves_where_there_is_no_compiler(folder, recording):
    settings = {"KILN_CACHE": "off", "KILN_COMPILER": "/nowhere/compiler.so"}
    shown = printed(folder, "-m", "kiln", "compile", "kernels.json", "--bundle", "app.kiln", KILN_CACHE="off")
    # For two shapes and for any; and the kernel that uses none.
    assert shown == "compiled 4, found 0 that were compiled before; app.kiln has 4 entries\n"
    bundle = {**settings, "KILN_BUNDLE": "app.kiln"}
    assert printed(folder, "several.py", "argument", **bundle) == "bundle\n"
    # A shape that was not recorded runs code for any.
    (folder / "other.py").write_text("from program import *\nlast = launch(n=7)\nprint(last.code, last.specialized)")
    assert printed(folder, "other.py", **bundle) == "bundle False\n"
    # A kernel that was not recorded cannot be run.
    (folder / "missing.py").write_text("from program import *\nlaunch('y[0] = 1;')")
    done = python(folder, "missing.py", **bundle)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith(
        f" The bundle {folder}/app.kiln has no code for `scale` called like this."
    )
    done = python(folder, "missing.py", **settings, KILN_BUNDLE="none.kiln")
    assert done.stderr.splitlines()[-1].endswith(
        f" The bundle cannot be used: cannot open {folder}/none.kiln: No such file or directory."
    )
    doctor = python(folder, "-m", "kiln", "doctor", **bundle).stdout
    assert f"bundle  usable      {folder}/app.kiln, 4 entries\n" in doctor


def test_a_bundle_has_code_for_other_extents_than_those_that_were_recorded(folder):
    (folder / "rows.py").write_text(
        "import sys, kiln, numpy as np\n"
        "kernel = kiln.metal_kernel('rows', [], ['y'], 'y[thread_position_in_grid.x] = simd_sum(1);')\n"
        "for grid, threads in eval(sys.argv[1]):\n"
        "    call = dict(inputs=[], output_shapes=[(grid,)], output_dtypes=['int32'])\n"
        "    (y,) = kernel(**call, grid=(grid, 1, 1), threadgroup=(threads, 1, 1))\n"
        "    print(y[0], y[-1])\n"
    )
    recorded(folder, "kernels.json", "rows.py", "[(256, 64)]")
    (call,) = json.loads((folder / "kernels.json").read_text())["kernels"][0]["calls"]
    assert call["grid"] == call["threadgroup"] == [64, 1, 1]
    printed(folder, "-m", "kiln", "compile", "kernels.json", "--bundle", "app.kiln", KILN_CACHE="off")
    settings = {"KILN_CACHE": "off", "KILN_COMPILER": "/nowhere/compiler.so", "KILN_BUNDLE": "app.kiln"}
    shown = printed(folder, "rows.py", "[(256, 64), (200, 64), (7, 7), (96, 96)]", **settings)
    assert shown == "32 32\n32 8\n7 7\n32 32\n"


@pytest.mark.parametrize("stored", ["bundle", "disk"])
def test_code_made_ahead_serves_launches_with_equal_threadgroups(folder, stored):
    (folder / "reversed.py").write_text(
        "import kiln, numpy as np\n"
        "body = 'threadgroup int all[64]; uint t = thread_position_in_threadgroup.x;'\n"
        "body += 'all[t] = thread_position_in_grid.x; threadgroup_barrier(mem_flags::mem_threadgroup);'\n"
        "body += 'y[thread_position_in_grid.x] = all[63 - t];'\n"
        "kernel = kiln.metal_kernel('reversed', [], ['y'], body)\n"
        "call = dict(inputs=[], output_shapes=[(128,)], output_dtypes=['int32'])\n"
        "(y,) = kernel(**call, grid=(128, 1, 1), threadgroup=(64, 1, 1))\n"
        "assert (y == np.arange(128).reshape(2, 64)[:, ::-1].ravel()).all()\n"
        "print(kernel.history[-1].code)\n"
    )
    assert recorded(folder, "kernels.json", "reversed.py") == "compiled\n"
    shutil.rmtree(folder / "cache")
    if stored == "disk":
        printed(folder, "-m", "kiln", "compile", "kernels.json")
        assert printed(folder, "reversed.py") == "disk\n"
        return
    printed(folder, "-m", "kiln", "compile", "kernels.json", "--bundle", "app.kiln", KILN_CACHE="off")
    settings = {"KILN_CACHE": "off", "KILN_COMPILER": "/nowhere/compiler.so", "KILN_BUNDLE": "app.kiln"}
    assert printed(folder, "reversed.py", **settings) == "bundle\n"


def test_a_bundle_may_be_for_several_instruction_sets(folder, recording):
    shown = printed(
        folder, "-m", "kiln", "compile", "kernels.json", "--bundle", "app.kiln",
        "--architecture", "x86-64", "--architecture", "x86-64-v2",
    )  # fmt: skip
    assert shown.endswith("; app.kiln has 8 entries\n")
    settings = {"KILN_CACHE": "off", "KILN_COMPILER": "/nowhere/compiler.so", "KILN_BUNDLE": "app.kiln"}
    for level in ("sse2", "sse4"):
        assert printed(folder, "several.py", "argument", **settings, KILN_CPU_ISA=level) == "bundle\n"


@pytest.mark.parametrize("architecture", ["sm_75", "sm_90b", "arm64"])
def test_compiling_refuses_what_it_cannot_compile_for(folder, recording, architecture):
    done = python(folder, "-m", "kiln", "compile", "kernels.json", "--architecture", architecture)
    assert done.returncode == 1
    assert done.stderr == (
        "python -m kiln compile: Expected an architecture to be x86-64, x86-64-v2, x86-64-v3, x86-64-v4, or that of an "
        f"NVIDIA GPU from sm_80 on, but got `{architecture}`.\n"
    )


def test_compiling_makes_code_for_gpus_that_are_not_here(folder, recording):
    shown = printed(
        folder, "-m", "kiln", "compile", "kernels.json", "--bundle", "app.kiln",
        "--architecture", "sm_80", "--architecture", "sm_90a",
    )  # fmt: skip
    assert shown.endswith("; app.kiln has 8 entries\n")
    bundle = (folder / "app.kiln").read_bytes()
    assert bundle.count(b".target sm_80") == bundle.count(b".target sm_90a") == 4


def test_compiling_says_what_does_not_compile_and_what_is_not_stored(folder, recording):
    content: dict[str, Any] = json.loads(recording.read_text())
    content["kernels"][1]["source"] = "y[0] = nothing;"
    recording.write_text(json.dumps(content))
    done = python(folder, "-m", "kiln", "compile", "kernels.json", KILN_CACHE="read")
    assert done.returncode == 1
    assert done.stdout == f"compiled 0, found 2 that were compiled before; {folder}/cache has them\n"
    assert done.stderr.startswith(
        "python -m kiln compile: [metal_kernel] `scale` does not compile.\nsource:1:8: error: "
    )
    done = python(folder, "-m", "kiln", "compile", "kernels.json", KILN_CACHE="off")
    assert "python -m kiln compile: `scale` was not stored: KILN_CACHE is off\n" in done.stderr


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "kernels.json: No such file or directory"),
        (
            "{",
            "kernels.json is no recording: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
        ),
        ("[]", "kernels.json is no recording of python -m kiln record"),
        (
            '{"format": "Kiln recording", "version": 2}',
            "kernels.json was written by another version of Kiln, which writes recordings in another form",
        ),
        ('{"format": "Kiln recording", "version": 1}', "kernels.json is damaged"),
        ('{"format": "Kiln recording", "version": 1, "kernels": [3]}', "kernels.json is damaged"),
        ('{"format": "Kiln recording", "version": 1, "kernels": [{"calls": [{}]}]}', "kernels.json is damaged"),
    ],
)
def test_compiling_refuses_what_is_no_recording(folder, content, reason):
    if content is not None:
        (folder / "kernels.json").write_text(content)
    done = python(folder, "-m", "kiln", "compile", "kernels.json")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"python -m kiln compile: {reason}\n")


def test_record_writes_also_where_the_program_fails(folder):
    (folder / "fails.py").write_text("from program import *\nlaunch()\nsys.exit(3)")
    assert python(folder, "-m", "kiln", "record", "fails.py").returncode == 3
    assert len(json.loads((folder / "kernels.json").read_text())["kernels"]) == 1
    done = python(folder, "-m", "kiln", "record", "--output", "none/kernels.json", "fails.py")
    assert (done.returncode, done.stderr) == (
        2,
        "python -m kiln record: none/kernels.json: No such file or directory\n",
    )
    done = python(folder, "-m", "kiln", "record", "missing.py")
    assert (done.returncode, done.stderr) == (2, "python -m kiln record: no such file: missing.py\n")


def test_each_form_of_a_kernel_is_recorded_and_compiled(folder):
    """Names in the call, arguments of every kind, and the oldest form."""
    (folder / "forms.py").write_text(
        "import kiln\nimport numpy as np\n"
        "x = np.arange(12, dtype=np.int16).reshape(3, 4)\n"
        "kernel = kiln.metal_kernel('by_name', 'y[0] = T(x[x_strides[1]] + k) * (F ? N : 0);',\n"
        "                           ensure_row_contiguous=False)\n"
        "result = kernel(inputs={'x': x[::-1].T, 'k': 2.5}, template={'T': np.float16, 'N': -3, 'F': True},\n"
        "                output_shapes={'y': (1,)}, output_dtypes={'y': np.float16}, grid=(1, 1, 1),\n"
        "                threadgroup=(1, 1, 1))\n"
        "old = kiln.MetalKernel('old', 'uint i = thread_position_in_grid.x; y[i] = x[i] + x_ndim;', (12, 1, 1),\n"
        "                       (12, 1, 1), {'y': (12,)}, {'y': 'float32'})\n"
        "old(x=x)\n"
        "fast = kiln.metal_kernel('fast', ['x'], ['y'], 'atomic_fetch_add_explicit(&y[0], f(), memory_order_relaxed);',\n"
        "    header='inline int f() { return 1; }', atomic_outputs=True,\n"
        "    compile_options={'math_mode': 'fast', 'bounds': 'off', 'specialize': False})\n"
        "fast(inputs=[True], output_shapes=[(1,)], output_dtypes=['int32'], grid=(1, 1, 1), threadgroup=(1, 1, 1))\n"
        "print(*(launch.code for k in (kernel, old, fast) for launch in k.history))\n"
    )
    assert recorded(folder, "kernels.json", "forms.py") == "compiled compiled compiled\n"
    shutil.rmtree(folder / "cache")
    shown = printed(folder, "-m", "kiln", "compile", "kernels.json")
    assert shown == f"compiled 3, found 0 that were compiled before; {folder}/cache has them\n"
    assert printed(folder, "forms.py") == "disk disk disk\n"


def test_a_program_for_mlx_is_recorded(folder):
    (folder / "squares.py").write_text(
        "import mlx.core as mx\n"
        "kernel = mx.fast.metal_kernel(name='square', input_names=['x'], output_names=['y'],\n"
        "    source='uint i = thread_position_in_grid.x; y[i] = x[i] * x[i];')\n"
        "x = mx.arange(4)\n"
        "(y,) = kernel(inputs=[x], output_shapes=[x.shape], output_dtypes=[x.dtype], grid=(4, 1, 1),\n"
        "    threadgroup=(4, 1, 1))\n"
        "mx.async_eval(y)\n"
    )
    recorded(folder, "kernels.json", "squares.py")
    (kernel,) = json.loads((folder / "kernels.json").read_text())["kernels"]
    assert kernel["calls"][0]["inputs"] == [["int32", [4], [1]]]
