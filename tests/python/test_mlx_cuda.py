"""Kiln's part for MLX needs of libmlx.so what MLX has with its CUDA back end too, and loads without that back end."""

import importlib.metadata
import subprocess
from pathlib import Path

import kiln.mlx
import mlx.core as mx
import pytest
from kiln import _libraries

LIST = Path(__file__).with_name("mlx_cuda_symbols.txt")
BACK_END = "_ZN3mlx4core2cu"


def needed():
    """Symbols of MLX that the module asks for, by whether they may be missing."""
    lines = subprocess.run(
        ["nm", "-D", "--undefined-only", str(_libraries.import_mlx().__file__)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    symbols: dict[bool, set[str]] = {True: set(), False: set()}
    for line in lines:
        kind, name = line.split()
        if "3mlx4core" in name:
            symbols[kind in "wv"].add(name)
    return symbols


def test_the_back_end_exports_what_is_needed():
    heading, *exported = LIST.read_text().splitlines()
    assert heading.split()[-1] == importlib.metadata.version("mlx"), (
        "tools/mlx_cuda_symbols.py makes the list for another version of MLX"
    )
    symbols = needed()
    assert not (symbols[True] | symbols[False]) - set(exported), "tools/mlx_cuda_symbols.py makes the list anew"


def test_only_the_back_end_may_be_missing():
    symbols = needed()
    assert {name for name in symbols[True] | symbols[False] if name.startswith(BACK_END)} == symbols[True]
    assert len(symbols[True]) == 5


@pytest.mark.skipif(mx.is_available(mx.gpu), reason="MLX has a GPU here")
def test_without_the_back_end_kernels_run_on_the_cpu():
    kernel = kiln.mlx.metal_kernel("k", ["a"], ["out"], "out[thread_position_in_grid.x] = 2 * a[0];")
    (out,) = kernel(
        inputs=[mx.ones((9,))], grid=(3, 1, 1), threadgroup=(1, 1, 1), output_shapes=[(3,)], output_dtypes=[mx.float32]
    )
    assert out.tolist() == [2, 2, 2]
    assert kernel.history[-1].target == "cpu"
