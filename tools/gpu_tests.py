#!/usr/bin/env python3
"""Runs the tests that need an NVIDIA GPU: in a checkout with what is installed there, in a bundle that
`make gpu-bundle` has made with what the bundle has.

    python3 run.py --out results [arguments of pytest]

Writes into the folder `--out`: junit.xml, doctor.json, versions.txt of what the machine has, and transformations.json, what
came of each of the libraries' transformations: bench/results/gpu_transformations.json, of which docs/transformations.md
has its column of GPUs.
"""

import argparse
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
IS_BUNDLE = (HERE / "package").is_dir()
ROOT = HERE if IS_BUNDLE else HERE.parent


def install_wheels(folder: Path, mlx_cuda: Path | None) -> None:
    """Those that the machine lacks: what it has goes with its other packages."""
    missing = [
        wheel
        for wheel in sorted((HERE / "wheels").glob("*.whl"))
        if importlib.util.find_spec(wheel.name.partition("-")[0]) is None
        and (mlx_cuda or not wheel.name.startswith("mlx-"))  # whose library is in the other wheel
    ]
    if any(wheel.name.startswith("mlx-") for wheel in missing) and mlx_cuda:
        missing.append(mlx_cuda.resolve())
    if missing:
        subprocess.run(
            [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--target", folder, *missing],
            check=True,
        )


def cuda_libraries() -> list[str]:
    """The folders of CUDA's libraries among Python's packages, as PyTorch brings them: where MLX is installed apart
    from them, it does not find them."""
    packages = importlib.util.find_spec("nvidia")
    folders = packages.submodule_search_locations if packages else None
    return [str(path) for folder in folders or [] for path in sorted(Path(folder).glob("*/lib"))]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "gpu", help="a folder for the results")
    parser.add_argument("--mlx-cuda", type=Path, metavar="WHEEL", help="MLX's library with its CUDA back end")
    options, arguments = parser.parse_known_args()
    out = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    transformations = out / "transformations.json"
    transformations.unlink(missing_ok=True)  # to which each process of the tests adds
    environment = {**os.environ, "TESTS_GPU_TRANSFORMATIONS": str(transformations)}
    if IS_BUNDLE:
        install_wheels(HERE / "site", options.mlx_cuda)
        environment["PYTHONPATH"] = os.pathsep.join(
            [str(HERE / "package"), str(HERE / "site"), *filter(None, [environment.get("PYTHONPATH")])]
        )
        environment["LD_LIBRARY_PATH"] = os.pathsep.join(
            [
                str(HERE / "package" / "kiln"),
                *(cuda_libraries() if options.mlx_cuda else []),
                *filter(None, [environment.get("LD_LIBRARY_PATH")]),
            ]
        )

    def python(*command: str, **options):
        return subprocess.run([sys.executable, *command], env=environment, cwd=ROOT, check=False, **options)

    versions = (
        "import importlib, sys\nprint('python', sys.version)\n"
        "for name in ('numpy', 'torch', 'cupy', 'jax', 'mlx.core', 'ml_dtypes'):\n"
        "    try: print(name, importlib.import_module(name).__version__)\n"
        "    except Exception as error: print(name, error)\n"
    )
    with open(out / "versions.txt", "w") as file:
        python("-c", versions, stdout=file)
    with open(out / "doctor.json", "w") as file:
        python("-m", "kiln", "doctor", "--json", stdout=file)
    tests = sorted(str(path) for path in (ROOT / "tests" / "python").glob("test_gpu_*.py"))
    paths = [f"pythonpath={ROOT} {ROOT / 'tests'}"]
    return python(
        *("-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, f"--rootdir={ROOT}"),
        *(f"--override-ini={path}" for path in paths),
        *(f"--junitxml={out / 'junit.xml'}", *(arguments or []), *tests),
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
