"""The text that MLX itself generates for a call.

A kernel of MLX's own, traced by ``mx.export_function`` for a GPU, prints its text without any GPU being there.
"""

from __future__ import annotations

import re
from typing import Any

import mlx.core as mx

# MLX's own, whatever `kiln.mlx.install()` puts in its place later.
_metal_kernel = mx.fast.metal_kernel
_export_function = mx.export_function


def generate(tmp_path, capfd, *, inputs, kernel, **call) -> str:
    """What MLX prints for a call; ``kernel`` has the keywords of ``metal_kernel``."""
    # MLX's types say of kernels that they are objects.
    made: Any = _metal_kernel(name="k", **kernel)

    def traced(*arrays):
        # A function to export takes an array at least.
        return made(inputs=list(arrays[1:]), verbose=True, stream=mx.gpu, **call)

    capfd.readouterr()
    _export_function(str(tmp_path / "traced.mlxfn"), traced, mx.array(0), *inputs)
    printed = capfd.readouterr().out
    text = re.fullmatch(r"Generated source code for `k`:\n```\n(.*)\n```\n", printed, re.DOTALL)
    assert text, printed
    return text[1]


def normalized(text: str) -> str:
    """The text with one name for the function, and one blank for each run of white space."""
    name = re.search(r"\[\[kernel\]\] void (\w+)\(", text)
    assert name, text
    return " ".join(re.sub(rf"\b{name[1]}\b", "FUNCTION", text).split())
