"""Loops that load a tile into threadgroup memory, wait, sum over it, and wait.

The SIMD engine loads several tiles at a time and goes through them with a simdgroup's sums in registers, in groups of
sums where there are many (`compiler/workgroup/tile_multibuffering.h`). Some of these are such loops; others look like it, but a
tile has what an earlier one left there, or somebody else knows it. `BATCHED` says which.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bodies import body

# Elements of a tile, and of x; sums of a thread; how far one tile is from the next.
_SIZE, _LENGTH, _SUMS, _STEP = 77, 997, 11, 3
_FILL = f"for (uint i = t; i < {_SIZE}; i += threads)"
_WAIT = "threadgroup_barrier(mem_flags::mem_threadgroup);"
_PLACE = np.arange(_SIZE)


def _read(x: Any, k: int, base: int) -> Any:
    return x[(13 * k + _PLACE + base) % _LENGTH]


@dataclass
class _Group:
    """What a threadgroup has when it comes to a tile; t is its threads' index."""

    x: Any
    t: Any
    base: int
    tile: Any
    sums: Any


def _load_all(group: _Group, k: int) -> None:
    group.tile[:] = _read(group.x, k, group.base)


def _load_guarded(group: _Group, k: int) -> None:
    place = 40 * k + _PLACE + group.base
    group.tile[:] = np.where(place < _LENGTH, group.x[place % _LENGTH], 0)


def _load_two_of_three(group: _Group, k: int) -> None:
    group.tile[_PLACE % 3 != 1] = _read(group.x, k, group.base)[_PLACE % 3 != 1]


def _load_sometimes(group: _Group, k: int) -> None:
    which = (_PLACE + k) % 3 != 1
    group.tile[which] = _read(group.x, k, group.base)[which]


def _load_rotated(group: _Group, k: int) -> None:
    group.tile[(_PLACE + k) % _SIZE] = np.where(
        _PLACE % 2 == 0, _read(group.x, k, group.base), group.tile[(_PLACE + k) % _SIZE]
    )


def _load_by_first_sum(group: _Group, k: int) -> None:
    of_place = group.sums[0][_PLACE % len(group.t)]
    group.tile[:] = _read(group.x, k, group.base) + of_place % 8


def _add(group: _Group, k: int) -> None:
    for n in range(_SUMS):
        for j in range(4):
            group.sums[n] += group.tile[(group.t + 7 * j + n) % _SIZE] * group.tile[5 * j + n]


def _add_some(group: _Group, k: int) -> None:
    for n in range(_SUMS):
        for j in range(4):
            group.sums[n] += np.where((group.t + j) % 3 == 1, group.tile[(group.t + 7 * j + n) % _SIZE], 0)


def _add_many_times(group: _Group, k: int) -> None:
    for n in range(_SUMS):
        for j in range(4):
            group.sums[n] += np.where(j < group.t % 5, group.tile[(group.t + 7 * j + n) % _SIZE], 0)


def _add_others(group: _Group, k: int) -> None:
    for n in range(_SUMS):
        group.sums[n] += group.tile[(group.t + n) % _SIZE] * group.sums[(n + 4) % _SUMS]


def _add_neighbours(group: _Group, k: int) -> None:
    for n in range(_SUMS):
        group.sums[n] += group.tile[((group.t ^ 1) + n) % _SIZE]


_LOADS: dict[str, tuple[str, Callable[[_Group, int], None]]] = {
    "whole": (f"{_FILL} tile[i] = x[(13 * k + i + base) % {_LENGTH}];", _load_all),
    # Behind x there are zeros.
    "guarded": (f"{_FILL} tile[i] = x[40 * k + i + base];", _load_guarded),
    "two_of_three": (f"{_FILL} if (i % 3 != 1) tile[i] = x[(13 * k + i + base) % {_LENGTH}];", _load_two_of_three),
    "sometimes": (f"{_FILL} if ((i + k) % 3 != 1) tile[i] = x[(13 * k + i + base) % {_LENGTH}];", _load_sometimes),
    "rotated": (
        f"{_FILL} if (i % 2 == 0) tile[(i + k) % {_SIZE}] = x[(13 * k + i + base) % {_LENGTH}];",
        _load_rotated,
    ),
    "by_first_sum": (
        f"{_FILL} tile[i] = x[(13 * k + i + base) % {_LENGTH}] + passed[i % threads] % 8;",
        _load_by_first_sum,
    ),
}

_FOR_EACH_SUM = f"for (uint n = 0; n < {_SUMS}; ++n)"
_READS: dict[str, tuple[str, Callable[[_Group, int], None]]] = {
    "products": (
        f"for (uint j = 0; j < 4; ++j) {_FOR_EACH_SUM} sums[n] += tile[(t + 7 * j + n) % {_SIZE}] * tile[5 * j + n];",
        _add,
    ),
    "some": (
        f"for (uint j = 0; j < 4; ++j) if ((t + j) % 3 == 1) {_FOR_EACH_SUM} sums[n] += tile[(t + 7 * j + n) % {_SIZE}];",
        _add_some,
    ),
    "different_rounds": (
        f"for (uint j = 0; j < min(t % 5, 4u); ++j) {_FOR_EACH_SUM} sums[n] += tile[(t + 7 * j + n) % {_SIZE}];",
        _add_many_times,
    ),
    "others": (f"{_FOR_EACH_SUM} sums[n] += tile[(t + n) % {_SIZE}] * sums[(n + 4) % {_SUMS}];", _add_others),
    "neighbours": (
        f"{_FOR_EACH_SUM} sums[n] += simd_shuffle_xor(tile[(t + n) % {_SIZE}], ushort(1));",
        _add_neighbours,
    ),
}

# Name, load, read, whether the tile is filled before the loop, whether it is read behind it, whether the loop waits
# first, tiles, whether they are in batches.
_KINDS = [
    ("products", "whole", "products", False, False, False, 41, True),
    ("one_tile", "whole", "products", False, False, False, 1, True),
    ("no_tile", "whole", "products", False, False, False, 0, True),
    ("waits_first", "whole", "products", False, False, True, 20, True),
    ("guarded", "guarded", "products", False, False, False, 25, True),
    ("some_lanes", "whole", "some", False, False, False, 20, True),
    ("different_rounds", "whole", "different_rounds", False, False, False, 20, True),
    ("chained_sums", "whole", "others", False, False, False, 20, True),
    ("exchanged", "whole", "neighbours", False, False, False, 20, True),
    ("filled_before", "two_of_three", "products", True, False, False, 20, False),
    ("sometimes_written", "sometimes", "products", True, False, False, 20, False),
    ("rotated", "rotated", "products", True, False, False, 20, False),
    ("read_behind", "whole", "products", False, True, False, 20, False),
    ("by_first_sum", "by_first_sum", "products", False, False, False, 20, False),
]
# Grid and threadgroup.
_SHAPES = {
    "eight": ((512, 1, 1), (256, 1, 1)),
    "three": ((192, 1, 1), (96, 1, 1)),
    "rows": ((32, 8, 1), (16, 8, 1)),
    "cut": ((300, 1, 1), (128, 1, 1)),
}
# Names of bodies whose loop is one over batches, in threadgroups of more than one whole simdgroup.
BATCHED: dict[str, bool] = {}


def _source(load: str, read: str, is_filled: bool, is_read: bool, waits_first: bool) -> str:
    by_sum = load == "by_first_sum"
    pass_sum = f"passed[t] = sums[0]; {_WAIT}" if by_sum else ""
    steps = [_LOADS[load][0], _WAIT, _READS[read][0]]
    steps = [_WAIT, *steps] if waits_first else [*steps, _WAIT]
    return f"""
    threadgroup uint tile[{_SIZE}];
    {"threadgroup uint passed[256];" if by_sum else ""}
    uint t = thread_index_in_threadgroup, base = threadgroup_position_in_grid.x * 31;
    uint threads = threads_per_threadgroup.x * threads_per_threadgroup.y;
    uint sums[{_SUMS}];
    {_FOR_EACH_SUM} sums[n] = n;
    {f"{_FILL} tile[i] = 5 * i; {_WAIT}" if is_filled else ""}
    for (uint k = 0; k < uint(end[0]); k += {_STEP}) {{
        {pass_sum}
        {(chr(10) + 8 * " ").join(steps)}
    }}
    uint of_all = {f"tile[(t + 3) % {_SIZE}]" if is_read else "0"};
    {_FOR_EACH_SUM} of_all = 3 * of_all + sums[n];
    uint3 at = thread_position_in_grid;
    out[at.x + threads_per_grid.x * at.y] = of_all;
"""


def _threadgroup_of(x: Any, count: int, number: int, kind: tuple[Any, ...]) -> Any:
    _, load, read, is_filled, is_read, _, tiles, _ = kind
    group = _Group(
        x=x,
        t=np.arange(count),
        base=31 * number,
        tile=(5 * _PLACE if is_filled else 0 * _PLACE).astype(np.uint32),
        sums=[np.full(count, n, np.uint32) for n in range(_SUMS)],
    )
    for k in range(0, _STEP * tiles, _STEP):
        _LOADS[load][1](group, k)
        _READS[read][1](group, k)
    of_all = group.tile[(group.t + 3) % _SIZE] if is_read else np.zeros(count, np.uint32)
    for n in range(_SUMS):
        of_all = 3 * of_all + group.sums[n]
    return of_all


for _kind in _KINDS:
    for _shape, (_grid, _threadgroup) in _SHAPES.items():
        _name = f"tiles_{_kind[0]}_{_shape}"
        BATCHED[_name] = _kind[-1]
        _threads = _grid[0] * _grid[1]

        @body(
            _source(*_kind[1:6]),
            name=_name,
            inputs=lambda rng, tiles=_kind[6]: {
                "x": rng.integers(0, 1000, _LENGTH, np.uint32),
                "end": np.array([_STEP * tiles, 0], np.int32),
            },
            outputs={"out": ((_threads,), "uint32")},
            grid=_grid,
            threadgroup=_threadgroup,
            constructs="barriers.in_loop",
        )
        def _tiles(x, end, kind=_kind, grid=_grid, threadgroup=_threadgroup):
            result = np.zeros((grid[1], grid[0]), np.uint32)
            for number, first in enumerate(range(0, grid[0], threadgroup[0])):
                part = result[: threadgroup[1], first : first + threadgroup[0]]
                part[:] = _threadgroup_of(x, part.size, number, kind).reshape(part.shape)
            return result.reshape(-1)


# What others stored before the loop is read by later iterations behind the barriers of those before; what is stored
# behind the loop comes behind all that it read.
for _name, _reads, _writes in (
    (
        "before",
        "uint value = x[(13 * k + i) % 997]; if (k > 0) value += o[(t + 100) % 256]; tile[i] = value;",
        "",
    ),
    ("behind", "tile[i] = x[(13 * k + i) % 997];", "uint early = o[(t + 100 + k) % 256];"),
):

    @body(
        f"""
        threadgroup uint tile[77];
        uint t = thread_index_in_threadgroup;
        device uint* o = out + 256 * threadgroup_position_in_grid.x;
        uint sums[11];
        for (uint n = 0; n < 11; ++n) sums[n] = n;
        o[t] = x[t] * 3;
        {"threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);" if _writes else ""}
        for (uint k = 0; k < count; ++k) {{
          {_writes}
          {"threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);" if _writes else ""}
          for (uint i = t; i < 77; i += 256) {{ {_reads} }}
          threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
          for (uint n = 0; n < 11; ++n)
            for (uint j = 0; j < 4; ++j) sums[n] += tile[(t + 7 * j + n) % 77] * tile[5 * j + n];
          {"sums[3] += early;" if _writes else "threadgroup_barrier(mem_flags::mem_threadgroup);"}
        }}
        uint all = 0;
        for (uint n = 0; n < 11; ++n) all = 3 * all + sums[n];
        threadgroup_barrier(mem_flags::mem_device);
        o[t] = all;
        """,
        name=f"tiles_and_stores_{_name}",
        inputs=lambda rng: {"x": rng.integers(0, 1000, 997).astype(np.uint32), "count": np.uint32(20)},
        outputs={"out": ((512,), "uint32")},
        grid=(512, 1, 1),
        threadgroup=(256, 1, 1),
        constructs="barriers.in_loop",
    )
    def _stored_around(x: Any, count: Any, name: str = _name) -> Any:
        t = np.arange(256)
        stored = 3 * x[t]
        sums = np.tile(np.arange(11, dtype=np.uint32)[:, None], (1, 256))
        for k in range(int(count)):
            i = np.arange(77)
            tile = x[(13 * k + i) % 997]
            if name == "before" and k > 0:
                tile = tile + stored[(i + 100) % 256]
            for n in range(11):
                for j in range(4):
                    sums[n] += tile[(t + 7 * j + n) % 77] * tile[5 * j + n]
            if name == "behind":
                sums[3] += stored[(t + 100 + k) % 256]
        total = np.zeros(256, np.uint32)
        for n in range(11):
            total = 3 * total + sums[n]
        return np.tile(total, 2)


# Of a product of matrices, of which a thread makes eight rows of one column; with AVX2 in groups of two.
@body(
    """
    constexpr uint rows = 64, columns = 64, depth = 8, each = 8;
    threadgroup float a_tile[rows * depth], b_tile[depth * columns];
    uint inner = a_shape[1], width = b_shape[1], t = thread_position_in_threadgroup.x;
    uint column = t % columns, first_row = t / columns * each;
    const device float* a_from = a + threadgroup_position_in_grid.y * rows * inner;
    const device float* b_from = b + threadgroup_position_in_grid.x * columns;
    float sums[each] = {0};
    for (uint k = 0; k < inner; k += depth) {
        a_tile[t] = a_from[t / depth * inner + k + t % depth];
        b_tile[t] = b_from[(k + t / columns) * width + column];
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint i = 0; i < depth; ++i)
            for (uint row = 0; row < each; ++row)
                sums[row] = fma(a_tile[(first_row + row) * depth + i], b_tile[i * columns + column], sums[row]);
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    device float* to = out + (threadgroup_position_in_grid.y * rows + first_row) * width
                     + threadgroup_position_in_grid.x * columns + column;
    for (uint row = 0; row < each; ++row) to[row * width] = sums[row];
    """,
    name="tiles_of_a_product",
    inputs=lambda rng: {
        "a": rng.integers(-8, 9, (128, 40)).astype(np.float32),
        "b": rng.integers(-8, 9, (40, 192)).astype(np.float32),
    },
    outputs={"out": ((128, 192), "float32")},
    grid=(3 * 512, 2, 1),
    threadgroup=(512, 1, 1),
    constructs="synchronisation.threadgroup_barrier functions.fma",
)
def tiles_of_a_product(a: Any, b: Any) -> Any:
    return a @ b
