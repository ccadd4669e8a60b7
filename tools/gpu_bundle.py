#!/usr/bin/env python3
"""Makes a folder, and an archive of it, with which a machine with an NVIDIA GPU runs Kiln's tests.

That machine needs Python of the version that this is run for, PyTorch and the driver: no network, no compiler, no
toolkit. The package is built for its Python here, where there may be another; `libkiln_compiler.so`, which knows no
Python, is taken from the build that is there. What the tests need besides (pytest and the like) comes as wheels.

    python tools/gpu_bundle.py /usr/bin/python3.12
    -> build/gpu/kiln-gpu.tar.xz
On the machine:
    tar xf kiln-gpu.tar.xz && python3 kiln-gpu/run.py --out results

MLX's library with its CUDA back end, which is as large as all the rest, goes by itself:

    pip download --no-deps 'mlx-cuda-13==0.32.4'
    python3 kiln-gpu/run.py --out results --mlx-cuda mlx_cuda_13-0.32.4-py3-none-manylinux_2_35_x86_64.whl
It needs CUDA's libraries of the same major version, as PyTorch brings them. Without it, or where MLX is installed on the
machine, nothing else changes.
"""

import argparse
import lzma
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "gpu"
BUNDLE = FOLDER / "kiln-gpu"

# What the tests import besides what such a machine has (NumPy comes with PyTorch).
WHEELS = (
    "flatbuffers",
    "pytest",
    "hypothesis",
    "ml_dtypes",
    "iniconfig",
    "pluggy",
    "packaging",
    "pygments",
    "sortedcontainers",
)
TESTS = (
    "approximate_roots.py",
    "conftest.py",
    "function_definitions.py",
    "gpu.py",
    "guarded_pages.py",
    "jax_transformations.py",
    "launch_bodies.py",
    "matrix_bodies.py",
    "mlx_kernels.py",
    "mlx_transformations.py",
    "random_memory_bodies.py",
    "random_memory_check.py",
    "random_picture_bodies.py",
    "random_row_bodies.py",
    "torch_arrays.py",
    "torch_transformations.py",
    "transformation_table.py",
)
# Kiln's part for MLX is built against MLX for the CPU, and serves both.
MLX = "0.32.4"


def run(*command: str | Path) -> None:
    subprocess.run(
        [str(part) for part in command],
        check=True,
        cwd=ROOT,
        # cmake and ninja of the environment come first.
        env={**os.environ, "PATH": f"{sysconfig.get_path('scripts')}:{os.environ['PATH']}"},
    )


def build(python: str) -> Path:
    """The package for that Python, in a folder of its own."""
    environment = FOLDER / "env"
    if not (environment / "bin" / "python").exists():
        run(python, "-m", "venv", environment)
        run(
            *(environment / "bin" / "python", "-m", "pip", "install", "-q"),
            *("nanobind==3.1.0", "numpy>=2.0", f"mlx[cpu]=={MLX}"),
        )
    folder = FOLDER / "build"
    run(
        *("cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DKILN_BUILD_PYTHON=ON"),
        f"-DPython_EXECUTABLE={environment / 'bin' / 'python'}",
    )
    run("cmake", "--build", folder, "--target", "kiln", "kiln_torch", "_core", "_mlx")
    return folder


def collect(built: Path, python: str) -> None:
    here = Path((ROOT / "build" / ".stamps" / "build-dir").read_text().strip())
    shutil.rmtree(BUNDLE, ignore_errors=True)
    package = BUNDLE / "package" / "kiln"
    shutil.copytree(ROOT / "python" / "kiln", package, ignore=shutil.ignore_patterns("__pycache__"))
    for library in [
        *(built / "lib").glob("_*.so"),
        *(built / "lib").glob("libkiln.so.*.*.*"),
        built / "lib" / "libkiln_torch.so",
    ]:
        shutil.copy(library, package)
    shutil.copy(here / "lib" / "libkiln_compiler.so", package)
    # For `python -m bench.gpu.main`, with what run.py puts on the paths.
    shutil.copytree(ROOT / "bench", BUNDLE / "bench", ignore=shutil.ignore_patterns("__pycache__", "results"))
    library = next(package.glob("libkiln.so.*"))
    run(
        *(
            "c++",
            "-std=c++20",
            "-O2",
            "-I",
            ROOT / "include",
            ROOT / "bench" / "gpu" / "launch_cost.cpp",
            library,
            "-ldl",
        ),
        *("-o", BUNDLE / "bench" / "gpu" / "launch_cost"),
    )
    tests = BUNDLE / "tests"
    shutil.copytree(ROOT / "tests" / "bodies", tests / "bodies", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "tests" / "math_reference.py", tests)
    (tests / "python").mkdir()
    for file in [
        *(ROOT / "tests" / "python" / name for name in TESTS),
        *(ROOT / "tests" / "python").glob("test_gpu_*"),
    ]:
        shutil.copy(file, tests / "python")
    shutil.copy(ROOT / "tools" / "gpu_tests.py", BUNDLE / "run.py")
    version = subprocess.run(
        [python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], check=True, capture_output=True, text=True
    ).stdout.strip()
    run(
        *(sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:"),
        *("--python-version", version, "--implementation", "cp", "-d", BUNDLE / "wheels"),
        *("--platform", "manylinux_2_17_x86_64", "--platform", "manylinux_2_27_x86_64"),
        *("--platform", "manylinux_2_28_x86_64", "--platform", "manylinux_2_35_x86_64", *WHEELS, f"mlx=={MLX}"),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "python", nargs="?", default=sys.executable, help="a Python of the version that the machine has"
    )
    python = parser.parse_args().python
    collect(build(python), python)
    archive = FOLDER / "kiln-gpu.tar.xz"
    # Links would be copies elsewhere; libkiln.so is found by the name that the modules ask for.
    with lzma.open(archive, "wb", preset=6) as file, tarfile.open(fileobj=file, mode="w") as tar:
        tar.add(BUNDLE, BUNDLE.name)
    print(f"{archive}: {archive.stat().st_size / 2**20:.1f} MiB")


if __name__ == "__main__":
    main()
