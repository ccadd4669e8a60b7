"""``python -m kiln run --mac``: packages with Metal kernels see a Mac, all others the system as it is."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import textwrap

import pytest

REAL = [sys.platform, platform.system(), platform.machine()]
MAC = ["darwin", "Darwin", "arm64"]

KERNEL = """
def double(x):
    kernel = mx.fast.metal_kernel(
        name="double", input_names=["x"], output_names=["y"],
        source="uint i = thread_position_in_grid.x; y[i] = 2 * x[i];",
    )
    return kernel(inputs=[x], output_shapes=[x.shape], output_dtypes=[x.dtype], grid=(x.size, 1, 1),
                  threadgroup=(8, 1, 1), stream=mx.gpu)[0]
"""

# Packages that make kernels, each with a gate of another kind. Each has a list SEEN.
GATED = {
    "attributes": """
        import platform, sys
        import mlx.core as mx
        if sys.platform != "darwin" or platform.machine() != "arm64":
            raise ImportError("only on a Mac with Apple silicon")
        SEEN = [sys.platform, platform.system(), platform.machine()]
    """,
    "names": """
        from platform import machine, system
        from sys import platform
        import mlx.core as mx
        assert platform == "darwin" and system() == "Darwin", "only on a Mac"
        SEEN = [platform, system(), machine()]
    """,
    "aliases": """
        import platform as p, sys as s
        import mlx.core as mx
        _is_mac = getattr(s, "platform").startswith("darwin")
        SEEN = [s.platform, p.uname().system, p.uname().machine] if _is_mac else []
    """,
    "later": """
        import mlx.core as mx

        def seen():
            import os, platform, sys
            return [sys.platform, os.uname().sysname, os.uname().machine]

        SEEN = seen()
    """,
    "evaluated": """
        import importlib
        import mlx.core as mx
        names = {}
        exec("import sys, platform\\nSEEN = [sys.platform, platform.system(), platform.machine()]", globals(), names)
        SEEN = names["SEEN"]
    """,
    "versions": """
        import platform, sys
        import mlx.core as mx
        release, _, machine = platform.mac_ver()
        assert tuple(map(int, release.split("."))) >= (14, 0)
        assert platform.platform().startswith("macOS-") and platform.processor() == "arm"
        assert mx.device_info()["device_name"].startswith("Apple")
        assert mx.device_info()["architecture"].startswith("applegpu_")
        SEEN = [sys.platform, platform.system(), machine]
    """,
    "device": """
        import sys, platform
        import mlx.core as mx
        if "gpu" not in str(mx.default_device()) or not mx.metal.is_available():
            raise ImportError("no GPU")
        SEEN = [sys.platform, platform.system(), platform.machine()]
    """,
}
# Packages that make none, which see the system as it is.
OTHERS = {
    "plain": """
        import platform, sys
        SEEN = [sys.platform, platform.system(), platform.machine()]
    """,
    "with_arrays": """
        import os, sys
        from platform import machine
        import mlx.core as mx
        assert "gpu" not in str(mx.default_device())
        SEEN = [sys.platform, os.uname().sysname, machine()]
    """,
    "speaks_of_metal": """
        # A metal_kernel of another kind.
        import platform, sys
        SEEN = [sys.platform, platform.system(), platform.machine()]
    """,
}


def write(folder, name, text):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text))


@pytest.fixture
def packages(tmp_path):
    for name, text in GATED.items():
        write(tmp_path, f"{name}/__init__.py", f"from {name}.gate import SEEN\nfrom {name}.kernels import double\n")
        write(tmp_path, f"{name}/gate.py", text)
        write(tmp_path, f"{name}/kernels.py", "import mlx.core as mx\n" + KERNEL)
    for name, text in OTHERS.items():
        write(tmp_path, f"{name}.py", text)
    return tmp_path


def run(*arguments, cwd):
    done = subprocess.run(
        [sys.executable, "-m", "kiln", *arguments],
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=300,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_packages_that_make_kernels_see_a_mac(packages):
    write(
        packages,
        "program.py",
        f"""
        import importlib, json, platform, sys
        import mlx.core as mx
        seen = {{name: importlib.import_module(name).SEEN for name in {[*GATED, *OTHERS]}}}
        seen["program"] = [sys.platform, platform.system(), platform.machine()]
        import sysconfig, ctypes.util
        assert ctypes.util.find_library("c") == {__import__("ctypes.util").util.find_library("c")!r}
        doubled = {{name: importlib.import_module(name).double(mx.arange(8.0)).tolist() for name in {[*GATED]}}}
        print(json.dumps([seen, doubled, sys.argv[1:]]))
        """,
    )
    seen, doubled, arguments = json.loads(run("run", "--mac", "program.py", "--mac", "x", cwd=packages))
    assert seen == {**dict.fromkeys(GATED, MAC), **dict.fromkeys(OTHERS, REAL), "program": MAC}
    assert doubled == {name: [2.0 * i for i in range(8)] for name in GATED}
    assert arguments == ["--mac", "x"]


def test_named_packages_alone(packages):
    write(
        packages,
        "program.py",
        """
        import json, platform, sys
        import attributes, later, plain
        print(json.dumps([attributes.SEEN, later.SEEN, plain.SEEN, sys.platform]))
        """,
    )
    found = json.loads(run("run", "--mac=attributes,plain", "program.py", cwd=packages))
    assert found == [MAC, REAL, MAC, "darwin"]
    found = json.loads(run("record", "--output", "k.json", "--mac=attributes", "program.py", cwd=packages))
    assert found == [MAC, REAL, REAL, "darwin"]


def test_modules_that_run(packages):
    for name in ("names", "plain"):
        write(packages, f"{name}_tool/__init__.py", "")
        write(
            packages,
            f"{name}_tool/__main__.py",
            f"import json, sys, {name}\nprint(json.dumps([sys.platform, {name}.SEEN]))\n",
        )
    assert json.loads(run("run", "--mac", "-m", "names_tool", cwd=packages)) == ["darwin", MAC]
    assert json.loads(run("run", "--mac", "-m", "plain_tool", cwd=packages)) == ["darwin", REAL]


def test_suites_under_pytest(packages):
    write(
        packages,
        "tests/conftest.py",
        """
        import sys
        if sys.platform != "darwin":
            collect_ignore_glob = ["*"]
        """,
    )
    write(
        packages,
        "tests/test_device.py",
        """
        import platform, sys
        import _pytest.compat, pytest
        pytestmark = pytest.mark.skipif(sys.platform != "darwin", reason="needs a Mac")
        device = pytest.importorskip("device")
        import mlx.core as mx

        @pytest.mark.skipif("platform.system() != 'Darwin' or sys.platform != 'darwin'", reason="needs a Mac")
        def test_kernel():
            assert device.double(mx.arange(3)).tolist() == [0, 2, 4]

        @pytest.mark.parametrize("value", ["linux", "win32"])
        def test_patches(monkeypatch, value):
            monkeypatch.setattr(sys, "platform", value)
            assert sys.platform == value
            monkeypatch.undo()
            assert sys.platform == "darwin"

        def test_pytest_sees_the_system_as_it_is():
            names = {"__name__": "_pytest.compat"}
            exec("import sys; seen = sys.platform", names)
            assert names["seen"] == "linux"
        """,
    )
    printed = run("run", "--mac", "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests", cwd=packages)
    assert "4 passed" in printed and "skipped" not in printed
    # Tests of packages that make none are no Mac's.
    write(
        packages, "plain_tests/test_plain.py", "import sys, plain\n\ndef test():\n    assert sys.platform == 'linux'\n"
    )
    assert "1 passed" in run(
        "run", "--mac", "-m", "pytest", "-q", "-p", "no:cacheprovider", "plain_tests", cwd=packages
    )


def test_paths_that_ask_for_the_cpu_get_it(packages):
    write(
        packages,
        "choosing.py",
        "import mlx.core as mx\n"
        + KERNEL
        + "def path():\n"
        + "    return 'kernel' if 'gpu' in str(mx.default_device()) and mx.default_device() == mx.gpu else 'fallback'\n",
    )
    write(
        packages,
        "program.py",
        """
        import choosing, threading
        import mlx.core as mx
        assert choosing.path() == "kernel"
        with mx.stream(mx.cpu):
            assert choosing.path() == "fallback" and str(mx.default_device()) == "Device(cpu, 0)"
            with mx.stream(mx.gpu):
                assert choosing.path() == "kernel"
            assert choosing.path() == "fallback"
        assert choosing.path() == "kernel"
        with mx.stream(mx.Device(mx.cpu, 0)), mx.stream(mx.default_stream(mx.default_device())):
            assert choosing.path() == "fallback"
        mx.set_default_device(mx.cpu)
        assert choosing.path() == "fallback" and mx.default_device() == mx.cpu
        mx.set_default_device(mx.gpu)
        assert choosing.path() == "kernel"
        assert mx.default_device() == mx.gpu and mx.default_device() != mx.cpu and mx.cpu != mx.gpu
        assert mx.default_device().type == mx.gpu == mx.Device(mx.gpu) and hash(mx.gpu) == hash(mx.default_device())
        assert isinstance(mx.gpu, mx.Device) and isinstance(mx.default_stream(mx.cpu).device, mx.Device)
        assert mx.is_available(mx.gpu) and mx.device_count(mx.gpu) == 1
        assert (mx.arange(3, stream=mx.gpu) + 1).tolist() == [1, 2, 3]
        assert mx.add(mx.array(1), 2, stream=mx.new_stream(mx.gpu)).item() == 3
        print(choosing.double(mx.arange(4)).tolist())
        """,
    )
    assert run("run", "--mac", "program.py", cwd=packages) == "[0, 2, 4, 6]\n"
