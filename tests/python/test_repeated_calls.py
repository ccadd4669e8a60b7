"""A call after another of the same kernel: what is a new value is read anew, however much of the call is as before."""

from __future__ import annotations

import gc
import sys
import weakref
from typing import Any

import kiln
import numpy as np
import pytest

SOURCE = "uint i = thread_position_in_grid.x; out[i] = T(N) + T(threads_per_grid.x);"


def kernel() -> Any:
    return kiln.metal_kernel("repeated", ["x"], ["out"], SOURCE)


X = np.zeros(4, np.float32)


def call(of: Any, **changes: Any) -> Any:
    values: dict[str, Any] = {
        "inputs": [X],
        "output_shapes": [(4,)],
        "output_dtypes": ["float32"],
        "grid": (4, 1, 1),
        "threadgroup": (4, 1, 1),
        "template": [("T", "float32"), ("N", 1)],
        "init_value": 0,
    } | changes
    (out,) = of(**{name: value for name, value in values.items() if value is not None})
    return out


def by_keywords(of: Any, grid: Any, template: Any) -> Any:
    (out,) = of(
        inputs=[X],
        output_shapes=[(4,)],
        output_dtypes=["float32"],
        grid=grid,
        threadgroup=(4, 1, 1),
        template=template,
        init_value=0,
    )
    return out.tolist()


def test_lists_that_have_changed():
    of = kernel()
    grid, pair, shape = [4, 1, 1], ["N", 5], [4]
    template: list[Any] = [("T", "float32"), ("N", 1)]
    assert by_keywords(of, grid, template) == [5, 5, 5, 5]
    grid[0] = 2
    assert by_keywords(of, grid, template) == [3, 3, 0, 0]
    template[1] = ("N", 7)
    assert by_keywords(of, grid, template) == [9, 9, 0, 0]
    template[1] = pair
    assert by_keywords(of, grid, template) == [7, 7, 0, 0]
    pair[1] = 6
    assert by_keywords(of, grid, template) == [8, 8, 0, 0]
    assert call(of, output_shapes=[shape]).shape == (4,)
    shape[0] = 5
    assert call(of, output_shapes=[shape]).shape == (5,)


def test_ints_that_have_changed():
    class Size:
        value = 4

        def __index__(self) -> int:
            return self.value

    size = Size()
    of, grid, shape = kernel(), (size, 1, 1), (size,)
    assert call(of, grid=grid, output_shapes=[shape]).tolist() == [5, 5, 5, 5]
    size.value = 3
    assert call(of, grid=grid, output_shapes=[shape]).tolist() == [4, 4, 4]


def test_tuples_that_change_their_answer():
    class Turns(tuple):
        def __iter__(self) -> Any:
            return iter(answer)

    answer: tuple[Any, ...] = (4, 1, 1)
    of, grid = kernel(), Turns((1, 1, 1))
    assert call(of, grid=grid).tolist() == [5, 5, 5, 5]
    answer = (1, 1, 1)
    assert call(of, grid=grid).tolist() == [2, 0, 0, 0]


def test_keywords_that_come_and_go():
    of = kernel()
    out = np.empty(4, np.float32)
    for _ in range(2):
        assert call(of).tolist() == [5, 5, 5, 5]
        given = call(of, outputs=[out], output_shapes=None, output_dtypes=None)
        assert given is out
        assert call(of, output_dtypes=["int32"], template=[("N", 2), ("T", "int32")]).dtype == np.int32
        assert call(of, init_value=9, grid=(1, 1, 1)).tolist() == [2, 9, 9, 9]
        assert call(of, init_value=0.5, grid=(1, 1, 1)).tolist() == [2, 0.5, 0.5, 0.5]
        with pytest.raises(ValueError, match=r"\[metal_kernel\] "):
            call(of, output_shapes=[])


def test_template_that_shrinks():
    of = kiln.metal_kernel("shrinks", ["x"], ["out"], "out[0] = x[0] + N;", header="constant int N = 3;")
    changes = {"grid": (1, 1, 1), "output_shapes": [(1,)]}
    assert call(of, template=[("M", 1)], **changes).tolist() == [3]
    assert call(of, template=None, **changes).tolist() == [3]
    assert call(of, template=[], **changes).tolist() == [3]


def test_call_within_a_call():
    of = kernel()

    class Size:
        def __index__(self) -> int:
            assert call(of, grid=(1, 1, 1)).tolist() == [2, 0, 0, 0]
            return 4

    for _ in range(2):
        assert call(of, grid=(Size(), 1, 1)).tolist() == [5, 5, 5, 5]


def test_arrays_are_not_kept():
    of = kernel()
    x, out = np.zeros(4, np.float32), np.zeros(4, np.float32)
    before = sys.getrefcount(x), sys.getrefcount(out)
    for _ in range(2):
        call(of, inputs=[x], outputs=[out], output_shapes=None, output_dtypes=None)
        assert (sys.getrefcount(x), sys.getrefcount(out)) == before
    with pytest.raises(ValueError):
        call(of, inputs=[x], outputs=[out, out], output_shapes=None, output_dtypes=None)
    assert (sys.getrefcount(x), sys.getrefcount(out)) == before


def test_keyword_errors():
    of = kernel()
    for _ in range(2):
        with pytest.raises(TypeError) as raised:
            of([X])
        assert str(raised.value) == "[metal_kernel] The call takes keyword arguments only."
        with pytest.raises(TypeError) as raised:
            of()
        assert str(raised.value) == "[metal_kernel] The call is missing the argument `inputs`."
        with pytest.raises(TypeError) as raised:
            call(of, shape=1)
        assert str(raised.value) == "[metal_kernel] The call has no argument `shape`."
        with pytest.raises(TypeError) as raised:
            of(
                inputs=[X],
                output_shapes=[(4,)],
                output_dtypes=["float32"],
                grid=(4, 1, 1),
                threadgroup=(4, 1, 1),
                first=1,
                second=2,
            )
        assert str(raised.value) == "[metal_kernel] The call has no argument `first`."


def test_kernel_that_was_not_made():
    of: Any = kiln.Kernel.__new__(kiln.Kernel)
    calls: list[dict[str, Any]] = [{}, {"inputs": []}]
    for arguments in calls:
        with pytest.raises(TypeError) as raised:
            of(**arguments)
        assert str(raised.value) == "a Kernel is made by kiln.metal_kernel or kiln.cuda_kernel"
    with pytest.raises(TypeError):
        of(inputs=[X])


def test_a_kernel_s_class_cannot_be_changed():
    with pytest.raises(TypeError, match="immutable"):
        kiln.Kernel.__call__ = lambda self: "other"  # type: ignore[method-assign, assignment]


def test_classes_for_dtypes_are_not_kept():
    class Own(np.float32):
        pass

    of = kernel()
    assert call(of, output_dtypes=[Own]).dtype == np.float32
    before = weakref.ref(Own)
    Own.kernel = of  # type: ignore[attr-defined]
    del Own, of
    gc.collect()
    assert before() is None
