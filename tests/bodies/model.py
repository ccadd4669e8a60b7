"""How threads of a launch stand to one another, in NumPy: an independent reading of docs/language.md 2.1 and 2.3.

`Threads` lists the threads of a launch as an array of shape (threadgroups, simdgroups, 32); every attribute is an array
of that shape, and what a thread holds can be too. A function of a simdgroup takes the values and which threads are
active: those that execute the same dynamic instance of the call. A reference keeps these masks itself: a branch is an
`and`, a loop runs while any thread is left, a `break` takes a thread out of the loop's mask, `continue` out of that of
the iteration.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

LANES = 32


class Threads:
    """The threads of a launch. `live` says which of the 32 places of a simdgroup hold one."""

    def __init__(self, grid: tuple[int, int, int], threadgroup: tuple[int, int, int]) -> None:
        size = [max(1, min(g, t)) for g, t in zip(grid, threadgroup, strict=True)]
        groups = [-(-g // s) for g, s in zip(grid, size, strict=True)]
        full = size[0] * size[1] * size[2]
        places = -(-full // LANES) * LANES
        count = groups[0] * groups[1] * groups[2]
        shape = (count, places // LANES, LANES)
        self.shape = shape
        self.grid = grid
        self.size = size
        self.groups = groups
        self.live = np.zeros(shape, bool)
        vector = (*shape, 3)
        self.thread_position_in_threadgroup = np.zeros(vector, np.uint32)
        self.threadgroup_position_in_grid = np.zeros(vector, np.uint32)
        self.threads_per_threadgroup = np.zeros(vector, np.uint32)
        self.thread_index_in_threadgroup = np.zeros(shape, np.uint32)
        group = 0
        for z in range(groups[2]):
            for y in range(groups[1]):
                for x in range(groups[0]):
                    first = [x * size[0], y * size[1], z * size[2]]
                    real = [min(s, g - f) for s, g, f in zip(size, grid, first, strict=True)]
                    index = 0
                    for c in range(real[2]):
                        for b in range(real[1]):
                            for a in range(real[0]):
                                at = (group, index // LANES, index % LANES)
                                self.live[at] = True
                                self.thread_position_in_threadgroup[at] = (a, b, c)
                                self.threadgroup_position_in_grid[at] = (x, y, z)
                                self.threads_per_threadgroup[at] = real
                                self.thread_index_in_threadgroup[at] = index
                                index += 1
                    group += 1
        self.thread_position_in_grid = (
            self.threadgroup_position_in_grid * np.array(size, np.uint32) + self.thread_position_in_threadgroup
        )
        self.lane = np.broadcast_to(np.arange(LANES), shape)
        self.simdgroup = np.broadcast_to(np.arange(shape[1])[:, None], shape)
        position = self.thread_position_in_grid.astype(np.int64)
        #: Number of the thread in the grid, x fastest.
        self.index = position[..., 0] + grid[0] * (position[..., 1] + grid[1] * position[..., 2])

    def read(self, array: np.ndarray) -> np.ndarray:
        """An array of one element for each thread of the grid, as the threads hold it; 0 where there is no thread."""
        flat = np.asarray(array).reshape(-1)
        return np.where(self.live, flat[np.where(self.live, self.index, 0)], np.zeros((), flat.dtype))

    def write(self, values: np.ndarray, where: np.ndarray | None = None, into: np.ndarray | None = None) -> np.ndarray:
        """An array of one element for each thread of the grid; only the threads in `where` write."""
        values = np.broadcast_to(values, self.shape)
        if into is None:
            into = np.zeros(self.grid[0] * self.grid[1] * self.grid[2], values.dtype)
        mask = self.live if where is None else self.live & where
        into[self.index[mask]] = values[mask]
        return into


def _identity(operation: str, dtype: np.dtype) -> Any:
    if operation in ("sum", "or", "xor"):
        return dtype.type(0)
    if operation == "product":
        return dtype.type(1)
    if operation == "and":
        return np.invert(dtype.type(0))
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return dtype.type(limits.max if operation == "min" else limits.min)
    return dtype.type(np.inf if operation == "min" else -np.inf)


def _chosen(first: np.ndarray, second: np.ndarray, takes_second: np.ndarray) -> np.ndarray:
    """Metal's min and max: the first of two that are equal, and the other one of a NaN."""
    return np.where(takes_second | (first != first), second, first)


OPERATIONS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "sum": np.add,
    "product": np.multiply,
    "min": lambda a, b: _chosen(a, b, b < a),
    "max": lambda a, b: _chosen(a, b, b > a),
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


def reduce(operation: str, values: np.ndarray, active: np.ndarray, width: int = LANES) -> np.ndarray:
    """simd_sum and its like: pairs at lane xor 1, 2, 4, … of groups of `width` lanes, in the values' type. The lower
    lane's value is the first operand."""
    apply = OPERATIONS[operation]
    with np.errstate(all="ignore"):
        lanes = np.where(active, values, _identity(operation, values.dtype)).astype(values.dtype)
        distance = 1
        while distance < width:
            lower, upper = np.arange(LANES) & ~distance, np.arange(LANES) | distance
            lanes = apply(lanes[..., lower], lanes[..., upper]).astype(values.dtype)
            distance *= 2
    return lanes


def scan(operation: str, values: np.ndarray, active: np.ndarray, exclusive: bool, width: int = LANES) -> np.ndarray:
    """simd_prefix_inclusive_sum and its like: adds at lane distances 1, 2, 4, …"""
    apply = OPERATIONS[operation]
    identity = _identity(operation, values.dtype)
    place = np.arange(LANES) % width
    with np.errstate(all="ignore"):
        lanes = np.where(active, values, identity).astype(values.dtype)
        distance = 1
        while distance < width:
            moved = lanes[..., np.maximum(np.arange(LANES) - distance, 0)]
            lanes = np.where(place < distance, lanes, apply(moved, lanes)).astype(values.dtype)
            distance *= 2
    if exclusive:
        lanes = np.where(place == 0, identity, lanes[..., np.maximum(np.arange(LANES) - 1, 0)]).astype(values.dtype)
    return lanes


def shuffle(values: np.ndarray, source: np.ndarray | int) -> np.ndarray:
    """The value that lane `source` of the same simdgroup holds."""
    source = np.broadcast_to(np.asarray(source).astype(np.int64), values.shape)
    return np.take_along_axis(values, source, axis=-1)


def any_of(condition: np.ndarray, active: np.ndarray) -> np.ndarray:
    """simd_any: whether the condition holds in an active lane."""
    return np.broadcast_to((condition & active).any(axis=-1, keepdims=True), condition.shape)


def all_of(condition: np.ndarray, active: np.ndarray) -> np.ndarray:
    """simd_all: whether the condition holds in every active lane."""
    return np.broadcast_to((condition | ~active).all(axis=-1, keepdims=True), condition.shape)


def ballot(condition: np.ndarray, active: np.ndarray) -> np.ndarray:
    """simd_ballot: a bit for each active lane in which the condition holds."""
    bits = ((condition & active).astype(np.uint64) << np.arange(LANES, dtype=np.uint64)).sum(axis=-1, keepdims=True)
    return np.broadcast_to(bits.astype(np.uint64), condition.shape)


def first_active(active: np.ndarray) -> np.ndarray:
    """The lowest active lane of each simdgroup."""
    return np.broadcast_to(active.argmax(axis=-1)[..., None], active.shape)


def fma(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """a * b + c of float32, rounded once.

    The product is exact in float64. The sum is rounded to odd there: its last bit says whether something was lost,
    which is what rounding once more, to 24 bits, needs to know.
    """
    product = np.asarray(a, np.float32).astype(np.float64) * np.asarray(b, np.float32).astype(np.float64)
    addend = np.asarray(c, np.float32).astype(np.float64)
    total = product + addend
    part = total - product
    lost = (product - (total - part)) + (addend - part)
    bits = np.ascontiguousarray(total).view(np.int64)
    toward = np.where((lost > 0) == (total > 0), 1, -1)
    odd = np.where(np.isfinite(lost) & (lost != 0) & (bits & 1 == 0), bits + toward, bits)
    return odd.view(np.float64).astype(np.float32).reshape(np.shape(total))
