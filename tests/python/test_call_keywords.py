"""Keywords of a call: grids and threadgroups of one to three dimensions or an int; verbose, wherever it prints."""

from __future__ import annotations

import io
import os
import sys
from typing import Any

import kiln
import kiln.mlx
import mlx.core as mx
import numpy as np
import pytest
from interfaces import EIGHT, INTERFACES

BODY = "uint3 n = threads_per_grid, t = threads_per_threadgroup; out[0] = n.x; out[1] = n.y; out[2] = n.z; " + (
    "out[3] = t.x; out[4] = t.y; out[5] = t.z; out[6] = out[7] = 0;"
)
CUDA = "out[0] = gridDim.x * blockDim.x; out[1] = gridDim.y * blockDim.y; out[2] = gridDim.z * blockDim.z; " + (
    "out[3] = blockDim.x; out[4] = blockDim.y; out[5] = blockDim.z; out[6] = out[7] = 0;"
)


class Index:
    def __index__(self):
        return 8


@pytest.mark.parametrize("interface", INTERFACES, ids=lambda interface: interface.label)
def test_dimensions_that_are_left_out_are_one(interface):
    made = {"source": CUDA if interface.generation == "cuda" else BODY}
    for grid, threadgroup, expected in (
        (8, 4, [8, 1, 1, 4, 1, 1]),
        ((8,), (2,), [8, 1, 1, 2, 1, 1]),
        ((8, 4), [2, 2], [8, 4, 1, 2, 2, 1]),
        ([8, 4, 2], (8, 4), [8, 4, 2, 8, 4, 1]),
        (np.int64(8), np.array(4), [8, 1, 1, 4, 1, 1]),
        (np.array([8, 2]), Index(), [8, 2, 1, 8, 1, 1]),
        (mx.array([8]), mx.array(8), [8, 1, 1, 8, 1, 1]),
    ):
        result = interface.call("__call__", made, grid=grid, threadgroup=threadgroup)
        assert interface.first(result).tolist() == [*expected, 0, 0]
        assert interface.call("source_for", made, grid=grid, threadgroup=threadgroup)


def test_a_grid_without_threads():
    kernel = kiln.metal_kernel("k", [], ["y"], "y[0] = 7;")
    for grid in (0, (0,), (8, 0)):
        (y,) = kernel(inputs=[], output_shapes=[(1,)], output_dtypes=["int32"], grid=grid, threadgroup=8, init_value=3)
        assert y.tolist() == [3]


def test_exported_with_dimensions_left_out(tmp_path):
    def function(a, grid, threadgroup):
        kernel: Any = mx.fast.metal_kernel("k", ["a"], ["out"], "out[0] = a[0];")
        return kernel(inputs=[a], output_shapes=[(1,)], output_dtypes=[mx.float32], grid=grid, threadgroup=threadgroup)

    texts = []
    all_extents: list[Any] = [((8, 1, 1), (4, 1, 1)), (8, 4), ((8,), (4,)), ([8, 1], np.array([4, 1]))]
    with kiln.mlx.install():
        for number, extents in enumerate(all_extents):
            path = tmp_path / f"{number}.mlxfn"
            mx.export_function(str(path), lambda a, e=extents: function(a, *e), mx.array(EIGHT))
            texts.append(len(path.read_bytes()))
    assert len(set(texts)) == 1


# ---- Printing the text


class Fails(io.TextIOBase):
    def __init__(self, error):
        self.error = error

    def write(self, text):
        raise self.error


def closed():
    stream = io.StringIO()
    stream.close()
    return stream


def pipe_without_reader():
    reader, writer = os.pipe()
    os.close(reader)
    return os.fdopen(writer, "w", buffering=1)


def call(module, name, **options):
    kernel = module.metal_kernel(name, ["x"], ["out"], "// größer\nout[thread_position_in_grid.x] = 2 * x[0];")
    keywords: dict[str, Any] = {"output_shapes": [(8,)], "output_dtypes": ["float32"], "grid": 8, "threadgroup": 8}
    (out,) = kernel(inputs=[EIGHT + 1], **keywords, **options)
    return np.array(out).tolist()


@pytest.mark.parametrize(
    "make",
    [
        closed,
        lambda: None,
        lambda: Fails(OSError("full")),
        lambda: Fails(RuntimeError("mine")),
        lambda: object(),
        pipe_without_reader,
        lambda: io.TextIOWrapper(io.BytesIO(), "utf-16-le", errors="strict"),
    ],
    ids=["closed", "None", "OSError", "RuntimeError", "no stream", "pipe", "UTF-16"],
)
@pytest.mark.parametrize("module", [kiln, kiln.mlx])
def test_verbose_never_ends_a_call(make, module, monkeypatch):
    stream = make()
    monkeypatch.setattr(sys, "stdout", stream)
    assert call(module, "k", verbose=True) == [2] * 8
    monkeypatch.undo()
    if isinstance(stream, io.TextIOWrapper) and make is pipe_without_reader:
        with pytest.raises(BrokenPipeError):
            stream.close()


@pytest.mark.parametrize("module", [kiln, kiln.mlx])
def test_verbose_without_stdout(module, monkeypatch):
    monkeypatch.delattr(sys, "stdout")
    assert call(module, "k", verbose=True) == [2] * 8


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp437"])
@pytest.mark.parametrize("module", [kiln, kiln.mlx])
def test_verbose_in_other_encodings(encoding, module, monkeypatch):
    printed = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(printed, encoding, errors="strict", write_through=True))
    assert call(module, "k → 1", verbose=True) == [2] * 8
    text = printed.getvalue().decode(encoding)
    assert text.startswith("Generated source code for `k \\u2192 1`:\n```\n")
    assert "// gr\\xf6\\xdfer\n" in text and text.endswith("```\n")


def test_verbose_passes_ctrl_c_through(monkeypatch):
    monkeypatch.setattr(sys, "stdout", Fails(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        call(kiln, "k", verbose=True)
    monkeypatch.undo()
    assert call(kiln, "k") == [2] * 8
