"""Tries an installed Kiln: with NumPy, with MLX, and from the command line. Needs no compiler and no test framework."""

import importlib.metadata
import json
import shutil
import subprocess
import sys
from typing import Any

import kiln
import kiln.mlx
import mlx.core as mx
import numpy as np

BODY = """
    uint i = thread_position_in_grid.x;
    y[i] = exp(x[i]) + T(simd_sum(x[i]) > 0 ? 1 : 0);
"""
COMPILERS = ("cc", "gcc", "g++", "c++", "clang", "clang++", "ld", "as", "nvcc")


def main() -> None:
    found = [name for name in COMPILERS if shutil.which(name)]
    assert not found, f"there are compilers on the path: {found}"
    assert importlib.metadata.version("kiln-jit") == kiln.__version__

    x = np.linspace(-3, 3, 100, dtype=np.float32)
    lanes = np.concatenate([np.full(32, x[k : k + 32].sum()) for k in range(0, 100, 32)])[:100]
    expected = np.exp(x.astype(np.float64)) + (lanes > 0)
    call: dict[str, Any] = {
        "output_shapes": [(100,)],
        "output_dtypes": ["float32"],
        "grid": (100, 1, 1),
        "threadgroup": (64, 1, 1),
        "template": [("T", "float32")],
    }
    kernel = kiln.metal_kernel("try_numpy", ["x"], ["y"], BODY)
    (y,) = kernel(inputs=[x], **call)
    np.testing.assert_allclose(y, expected, rtol=1e-6)
    # The installed compiler is known by its build ID, which tools that strip or pack libraries must leave.
    assert kernel.history[0].not_stored == "", kernel.history[0].not_stored
    print(f"NumPy: compiled in {kernel.history[0].compile_ms:.1f} ms, right")

    with kiln.mlx.install():
        # MLX's types say of its kernels that they are objects.
        mlx_kernel: Any = mx.fast.metal_kernel(name="try_mlx", input_names=["x"], output_names=["y"], source=BODY)
        (z,) = mlx_kernel(inputs=[mx.array(x)], **call)
        np.testing.assert_array_equal(np.array(z), y)
    print("MLX: the same")

    try:
        kiln.metal_kernel("wrong", [], ["y"], "y[0] = missing;")(inputs=[], **call)
    except kiln.CompileError as error:
        assert "source:1:8: error: use of undeclared identifier 'missing'" in str(error), error
        print("compile errors: named by line")
    else:
        raise AssertionError("a wrong body compiled")

    done = subprocess.run(
        [sys.executable, "-m", "kiln", "doctor", "--json"], capture_output=True, text=True, check=True
    )
    report = json.loads(done.stdout)
    usable = [row["name"] for key in ("compiler", "targets", "array_libraries") for row in report[key] if row["usable"]]
    assert {"libkiln_compiler.so", "cpu", "numpy", "mlx"} <= set(usable), report
    print(f"doctor: {', '.join(usable)} usable")


if __name__ == "__main__":
    main()
