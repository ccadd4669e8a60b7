"""Inputs of libraries that Kiln does not know, which they export through DLPack in the CPU's memory."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import kiln
import kiln.mlx
import ml_dtypes
import mlx.core as mx
import numpy as np
import pytest
from interfaces import INTERFACES, Interface, Item

EIGHT = np.arange(8, dtype=np.float32)
DOUBLE = "uint i = thread_position_in_grid.x; out[i] = 2 * x[i];"
GATHER = "uint i = thread_position_in_grid.x; out[i] = x[elem_to_loc<int64_t>(i, x_shape, x_strides, x_ndim)];"


class Exported:
    """An array of a library of its own, around NumPy's."""

    def __init__(self, array):
        self.array = array
        self.exports = 0

    def __dlpack__(self, **keywords):
        self.exports += 1
        return self.array.__dlpack__(**keywords)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Old(Exported):
    """From before DLPack 1.0."""

    def __dlpack__(self, stream=None):  # type: ignore[override]
        return self.array.__dlpack__()


class Forwards:
    def __init__(self, array):
        self._array = array

    def __getattr__(self, name):
        return getattr(self._array, name)


# ---- Capsules made by hand, for what NumPy does not export


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class Managed(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    ]


new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class ByHand:
    """An array whose capsule has just these fields."""

    def __init__(self, memory, shape, strides=None, name=b"dltensor", major=1, flags=0, **fields):
        self.memory = memory  # keeps it
        given = {"device_type": 1, "device_id": 0, "code": 2, "bits": 32, "lanes": 1, "byte_offset": 0, **fields}
        address = None if memory is None else memory.ctypes.data
        dimensions = (ctypes.c_int64 * len(shape))(*shape)
        steps = None if strides is None else (ctypes.c_int64 * len(strides))(*strides)
        tensor = Tensor(data=address, ndim=len(shape), shape=dimensions, strides=steps, **given)
        self.managed = Managed(tensor) if name == b"dltensor" else Versioned(major, 0, None, None, flags, tensor)
        self.name, self.device = name, (given["device_type"], given["device_id"])

    def __dlpack__(self, **_):
        return new_capsule(ctypes.addressof(self.managed), self.name, None)

    def __dlpack_device__(self):
        return self.device


def call(x, source=DOUBLE, count=8, dtype: Any = "float32", module=kiln, **options):
    kernel = module.metal_kernel("k", ["x"], ["out"], source, **options)
    return kernel(inputs=[x], output_shapes=[(count,)], output_dtypes=[dtype], grid=count, threadgroup=8)[0]


@pytest.mark.parametrize("kind", [Exported, Old, Forwards])
@pytest.mark.parametrize("interface", INTERFACES, ids=lambda interface: interface.label)
def test_in_every_interface(kind, interface: Interface):
    body = DOUBLE if interface.generation != "cuda" else "int i = threadIdx.x; if (i < 8) out[i] = 2 * x[i];"
    result = interface.call("__call__", {"source": body}, inputs=Item(kind(EIGHT)))
    assert interface.first(result).tolist() == (2 * EIGHT).tolist()
    out = next(iter(result.values())) if interface.by_name else result[0]
    assert type(out) is (np.ndarray if interface.library == "numpy" else mx.array)


CUBE = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
READ_ONLY = CUBE.copy()
READ_ONLY.flags.writeable = False


@pytest.mark.parametrize(
    "array",
    [
        CUBE,
        CUBE.T,
        CUBE[:, 1:, ::2],
        CUBE[::-1, :, ::-1],
        np.broadcast_to(CUBE[0], (2, 3, 4)),
        READ_ONLY,
        CUBE[1, 2, 3],
        np.zeros((0, 3), np.float32),
    ],
    ids=["whole", "transposed", "stepped", "reversed", "broadcast", "read-only", "no dimensions", "empty"],
)
@pytest.mark.parametrize("contiguous", [True, False])
def test_views(array, contiguous):
    array = np.asarray(array)
    source = "out[0] = x;" if array.ndim == 0 else GATHER
    result = call(Exported(array), source, array.size, ensure_row_contiguous=contiguous)
    assert result.tolist() == array.ravel().tolist()


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "complex64"]
)
def test_dtypes(dtype):
    values = np.array([0, 1, 1, 0, 1, 0, 1, 1, 0]).astype(dtype)
    result = call(Exported(values), "uint i = thread_position_in_grid.x; out[i] = x[i];", 9, dtype)
    assert result.dtype == values.dtype and result.tolist() == values.tolist()


def test_bfloat16():
    bits = EIGHT.astype(ml_dtypes.bfloat16).view(np.uint16)
    result = call(ByHand(bits, (8,), code=4, bits=16))
    assert result.tolist() == (2 * EIGHT).tolist()


def test_what_mlx_itself_does_not_take():
    for array in (CUBE[::-1, :, ::-1], READ_ONLY):
        for kind in (Exported, Old) if array is not READ_ONLY else (Exported,):
            result = call(kind(array), GATHER, array.size, module=kiln.mlx)
            assert type(result) is mx.array and result.tolist() == array.ravel().tolist()
    for values in (np.arange(8.0)[::-1], np.arange(8, dtype=np.int16)[::-1], EIGHT.astype(np.complex64)[::-1]):
        dtype = "float32" if values.dtype == np.float64 else values.dtype.name
        result = call(Exported(values), "uint i = thread_position_in_grid.x; out[i] = x[i];", 8, dtype, kiln.mlx)
        assert result.tolist() == values.tolist()


def test_offsets_strides_and_alignment():
    memory = np.arange(16, dtype=np.float32)
    for name in (b"dltensor", b"dltensor_versioned"):
        assert call(ByHand(memory, (8,), name=name)).tolist() == (2 * memory[:8]).tolist()
        assert call(ByHand(memory, (8,), byte_offset=16, name=name)).tolist() == (2 * memory[4:12]).tolist()
        assert call(ByHand(memory, (8,), (2,), name=name, flags=1)).tolist() == (2 * memory[::2]).tolist()
    text = np.concatenate([np.zeros(1, np.uint8), memory.view(np.uint8)])
    assert call(ByHand(text, (8,), byte_offset=1)).tolist() == (2 * memory[:8]).tolist()
    matrix = ByHand(text, (2, 2), (1, 4), byte_offset=5)
    assert call(matrix, GATHER, 4, ensure_row_contiguous=False).tolist() == [1, 5, 2, 6]
    for pinned in (3, 11):  # in the CPU's memory, for a GPU
        assert call(ByHand(memory, (8,), device_type=pinned)).tolist() == (2 * memory[:8]).tolist()


def test_whose_arrays_come_out():
    both = kiln.metal_kernel("k", ["a", "b"], ["out"], "out[0] = a[1] + b[1];")
    call_both: Any = {"output_shapes": [(1,)], "grid": 1, "threadgroup": 1}
    for a, b in ((Exported(EIGHT), EIGHT), (EIGHT, Exported(EIGHT)), (Exported(EIGHT), Exported(EIGHT))):
        (out,) = both(inputs=[a, b], output_dtypes=["float32"], **call_both)
        assert type(out) is np.ndarray and out.tolist() == [2]
    (out,) = both(inputs=[Exported(EIGHT), mx.array(EIGHT)], output_dtypes=["float32"], **call_both)
    assert type(out) is mx.array and out.tolist() == [2]
    assert type(call(Exported(EIGHT), dtype=mx.float32)) is mx.array
    assert type(call(Exported(EIGHT), dtype=np.float32)) is np.ndarray


def test_given_outputs_do_not_overlap_them():
    memory = np.arange(12, dtype=np.float32)
    kernel = kiln.metal_kernel("k", ["x"], ["out"], DOUBLE)
    with pytest.raises(ValueError) as error:
        kernel(inputs=[Exported(memory[:8])], outputs=[memory[4:]], grid=8, threadgroup=8)
    assert str(error.value) == "[metal_kernel] The memory of input `x` and of output `out` overlap."


def test_memory_is_given_back():
    exported = Exported(np.arange(8, dtype=np.float32))
    references = sys.getrefcount(exported.array)
    call(exported)
    after = sys.getrefcount(exported.array)
    assert after == references
    assert exported.exports == 1


class Raises(Exported):
    def __init__(self, error, device=(1, 0)):
        super().__init__(EIGHT)
        self.error, self.device = error, device

    def __dlpack__(self, **_):
        raise self.error

    def __dlpack_device__(self):
        return self.device


class Gives(Exported):
    def __init__(self, capsule, device=(1, 0)):
        super().__init__(EIGHT)
        self.capsule, self.device = capsule, device

    def __dlpack__(self, **_):
        return self.capsule

    def __dlpack_device__(self):
        return self.device


ELSEWHERE = ", and arrays of a library that Kiln does not know are read in the CPU's memory only."
NO_DTYPE = ", which no kernel can take."
HERE = "test_dlpack_inputs."


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ByHand(EIGHT, (8,), device_type=2), f"is a {HERE}ByHand on the device cuda:0{ELSEWHERE}"),
        (lambda: ByHand(EIGHT, (8,), device_type=8), f"is a {HERE}ByHand on the device metal:0{ELSEWHERE}"),
        (
            lambda: ByHand(EIGHT, (8,), device_type=10, device_id=3),
            f"is a {HERE}ByHand on the device rocm:3{ELSEWHERE}",
        ),
        (
            lambda: ByHand(EIGHT, (8,), device_type=14),
            f"is a {HERE}ByHand on the device of DLPack's type 14{ELSEWHERE}",
        ),
        (lambda: Exported(np.zeros(8, np.complex128)), f"is a {HERE}Exported of dtype complex128{NO_DTYPE}"),
        (lambda: ByHand(EIGHT, (2,), lanes=4), f"is a {HERE}ByHand of dtype float32x4{NO_DTYPE}"),
        (lambda: ByHand(EIGHT, (8,), code=0, bits=4), f"is a {HERE}ByHand of dtype int4{NO_DTYPE}"),
        (lambda: ByHand(EIGHT, (8,), code=10, bits=8), f"is a {HERE}ByHand of dtype of DLPack's code 10{NO_DTYPE}"),
        (lambda: ByHand(EIGHT, (-8,)), f"is a {HERE}ByHand whose shape has a negative number."),
        (
            lambda: ByHand(EIGHT, (8,), name=b"dltensor_versioned", major=2),
            f"is a {HERE}ByHand exported by DLPack 2, and Kiln reads DLPack 1.",
        ),
        (lambda: Raises(BufferError("mine")), f"is a {HERE}Raises that cannot be exported by DLPack: mine"),
        (lambda: Raises(TypeError("mine")), f"is a {HERE}Raises that cannot be exported by DLPack: mine"),
        (
            lambda: Gives(3),
            f"is a {HERE}Gives whose `__dlpack__` gives 3 rather than an unused capsule.",
        ),
        (lambda: Gives(None, device=(1,)), f"is a {HERE}Gives whose `__dlpack_device__` gives no two ints."),
        (lambda: Gives(None, device=("cpu", 0)), f"is a {HERE}Gives whose `__dlpack_device__` gives no two ints."),
    ],
)
def test_refuses_what_it_cannot_read(make, message):
    with pytest.raises(TypeError) as error:
        call(make())
    assert str(error.value) == f"[metal_kernel] Input `x` {message}"
    assert call(EIGHT).tolist() == (2 * EIGHT).tolist()


def test_a_null_address_is_an_error():
    with pytest.raises(ValueError) as error:
        call(ByHand(None, (8,)))
    assert str(error.value) == "[metal_kernel] Input `x` has no memory: the address of its elements is null."
    assert call(ByHand(None, (0,)), count=0).tolist() == []
    kernel = kiln.mlx.metal_kernel("k", ["x"], ["out"], DOUBLE)
    with pytest.raises(ValueError) as error:
        kernel(inputs=[ByHand(None, (8,))], output_shapes=[(8,)], output_dtypes=[mx.float32], grid=8, threadgroup=8)
    assert str(error.value) == "[metal_kernel] Input `x` has no memory: the address of its elements is null."


def test_errors_of_the_program_pass_through():
    for own in (KeyboardInterrupt(), MemoryError()):
        with pytest.raises(type(own)) as error:
            call(Raises(own))
        assert error.value is own
    with pytest.raises(TypeError) as refused:
        call(Raises(RuntimeError("mine")))
    assert str(refused.value.__cause__) == "mine"


def test_classes_are_no_arrays():
    for kind in (Exported, np.ndarray, mx.array):
        with pytest.raises(TypeError, match="Expected `inputs` to be NumPy arrays or numbers but got"):
            call(kind)
