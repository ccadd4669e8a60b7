"""Metal and CUDA bodies and what they must compute.

Each body is a program as a user would write it, with the arguments of one call and a reference: a Python function that
computes the outputs from the inputs without Kiln. Nothing here knows an engine, a target or an array library, so that
every engine, target and library can be held against the same bodies; this package does not import kiln.

A module is a subject. A body is its reference, decorated::

    @body(
        "out[thread_position_in_grid.x] = 2 * x[thread_position_in_grid.x];",
        inputs=lambda rng: {"x": rng.integers(0, 100, 64, np.int32)},
        outputs={"out": ((64,), "int32")},
        grid=(64, 1, 1),
        threadgroup=(32, 1, 1),
        constructs="attributes.thread_position_in_grid",
    )
    def doubled(x):
        return 2 * x

`constructs` names rows of `tests/constructs.toml`: what the body proves. `tools/check_constructs.py` holds the two
against each other.
"""

from __future__ import annotations

import importlib
import pkgutil
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

_DTYPES = (
    *("bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"),
    *("float16", "float32", "complex64"),
)
DTYPES: dict[str, np.dtype] = {name: np.dtype(name) for name in _DTYPES} | {"bfloat16": np.dtype(ml_dtypes.bfloat16)}

# Those of CUDA bodies.
CUDA_DTYPES = DTYPES | {"float64": np.dtype(np.float64)}


class Dtype(str):
    """The name of a dtype, to tell it from other template arguments."""

    __slots__ = ()


@dataclass(frozen=True)
class Body:
    """One kernel, the arguments of one call, and what the call must give."""

    name: str
    source: str
    reference: Callable[..., Any]
    """Takes the inputs by name; gives the output, or a tuple of the outputs in their order."""
    outputs: Mapping[str, tuple[tuple[int, ...], str]]
    """Shape and dtype by name."""
    grid: tuple[int, int, int]
    threadgroup: tuple[int, int, int]
    constructs: tuple[str, ...]
    make_inputs: Callable[..., Mapping[str, Any]] = lambda rng: {}
    """Takes a generator of random numbers."""
    header: str = ""
    template: tuple[tuple[str, Dtype | int | bool], ...] = ()
    tolerance: float = 0
    """How far an element may be off: this part of the reference's magnitude. 0: the same bits (any NaN equals any)."""
    ensure_row_contiguous: bool = True
    atomic_outputs: bool = False
    init_value: float | None = None
    reads_around: bool = False
    """Whether it shows what lies beside a strided input's elements, so that a copy with other strides gives others."""
    shared_memory: int = 0
    """Of CUDA bodies: bytes."""
    compile_options: Mapping[str, Any] = field(default_factory=dict)
    subject: str = ""

    def inputs(self) -> dict[str, Any]:
        """The same arrays and Python scalars each time."""
        return dict(self.make_inputs(np.random.default_rng(zlib.crc32(self.name.encode()))))

    def expected(self) -> dict[str, np.ndarray]:
        """What the reference computes, by output name."""
        with np.errstate(all="ignore"):
            result = self.reference(**self.inputs())
        results = result if isinstance(result, tuple) else (result,)
        if len(results) != len(self.outputs):
            raise ValueError(f"body {self.name}: {len(results)} references for {len(self.outputs)} outputs")
        expected = {}
        for (name, (shape, dtype)), value in zip(self.outputs.items(), results, strict=True):
            value = np.asarray(value)
            if value.shape != tuple(shape):
                raise ValueError(f"body {self.name}: the reference for {name} has shape {value.shape}, not {shape}")
            with np.errstate(all="ignore"):
                converted = value.astype(CUDA_DTYPES[dtype])
            # A reference in a wider type would hide a rounding that the body does not do, or the other way round.
            if self.tolerance == 0 and value.dtype != converted.dtype:
                same = converted.astype(value.dtype) == value
                if not np.all(same | (value != value)):
                    raise ValueError(f"body {self.name}: the reference for {name} is {value.dtype}, not {dtype}")
            expected[name] = converted if self.tolerance == 0 else value
        return expected

    def mismatch(self, name: str, got: np.ndarray, expected: np.ndarray) -> str:
        """What is wrong with an output; empty if nothing."""
        shape, dtype = self.outputs[name]
        if got.shape != tuple(shape) or got.dtype != CUDA_DTYPES[dtype]:
            return f"{name} is {got.dtype}{list(got.shape)}, expected {dtype}{list(shape)}"
        wrong = ~_close(got, expected, self.tolerance)
        if not wrong.any():
            return ""
        where = tuple(int(i) for i in np.argwhere(wrong)[0])
        return (
            f"{name}: {int(wrong.sum())} of {wrong.size} elements are wrong, "
            f"the first at {list(where)}: {got[where]!r}, expected {expected[where]!r}"
        )


def _close(got: np.ndarray, expected: np.ndarray, tolerance: float) -> np.ndarray:
    if got.dtype.kind == "c":
        return _close(got.real, expected.real, tolerance) & _close(got.imag, expected.imag, tolerance)
    if got.dtype.kind in "biu":
        return np.asarray(got == expected)
    both_nan = (got != got) & (expected != expected)
    if tolerance == 0:
        bits = f"u{got.dtype.itemsize}"
        return (np.ascontiguousarray(got).view(bits) == np.ascontiguousarray(expected).view(bits)) | both_nan
    with np.errstate(all="ignore"):
        a, b = got.astype(np.float64), expected.astype(np.float64)
        rounded = expected.astype(got.dtype).astype(np.float64)  # what is too large is infinite
        smallest = float(ml_dtypes.finfo(got.dtype).smallest_normal)  # subnormals are equally far apart
        return (a == rounded) | (np.abs(a - b) <= tolerance * np.maximum(np.abs(b), smallest)) | both_nan


_bodies: dict[str, Body] = {}
_cuda_bodies: dict[str, Body] = {}


def body(
    source: str,
    *,
    outputs: Mapping[str, tuple[Sequence[int], str]],
    grid: tuple[int, int, int],
    threadgroup: tuple[int, int, int],
    constructs: str,
    name: str | None = None,
    inputs: Callable[..., Mapping[str, Any]] = lambda rng: {},
    template: Sequence[tuple[str, Dtype | int | bool]] = (),
    **options: Any,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers the decorated function as the reference of a body, whose name it gives unless `name` does."""
    return _register(
        _bodies,
        source=source,
        outputs=outputs,
        grid=grid,
        threadgroup=threadgroup,
        constructs=constructs,
        name=name,
        inputs=inputs,
        template=template,
        **options,
    )


def cuda_body(
    source: str, *, constructs: str = "", **options: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The same of a body in CUDA, which proves rows of the table's sections that begin with `cuda_`."""
    defaults: dict[str, Any] = {"name": None, "inputs": lambda rng: {}, "template": ()}
    return _register(_cuda_bodies, source=source, constructs=constructs, **(defaults | options))


def _register(
    table: dict[str, Body],
    *,
    outputs: Any,
    constructs: str,
    name: str | None,
    inputs: Any,
    template: Any,
    **options: Any,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(reference: Callable[..., Any]) -> Callable[..., Any]:
        made = Body(
            name=name or reference.__name__,
            reference=reference,
            outputs={key: (tuple(shape), dtype) for key, (shape, dtype) in outputs.items()},
            constructs=tuple(constructs.split()),
            make_inputs=inputs,
            template=tuple(template),
            subject=reference.__module__.rpartition(".")[2],
            **options,
        )
        if made.name in table:
            raise ValueError(f"there are two bodies of the name {made.name}")
        table[made.name] = made
        return reference

    return register


def _import_all() -> None:
    for module in sorted(module.name for module in pkgutil.iter_modules(__path__)):
        importlib.import_module(f"{__name__}.{module}")


def all_bodies() -> list[Body]:
    """Every Metal body, in the order of the subjects' names, then in that of their files."""
    _import_all()
    return list(_bodies.values())


def all_cuda_bodies() -> list[Body]:
    """Every CUDA body, likewise. Their modules' names have `cuda` in them."""
    _import_all()
    return list(_cuda_bodies.values())
