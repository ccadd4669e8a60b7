"""Tiles that the threads of a threadgroup copy from device to threadgroup memory, an element a thread at a time.

On a GPU, such a loop may become copies of vectors, by other threads than the text says; here each thread then reads what
others have copied. Some loops must stay as they are: threads that read their own elements before the barrier, that do
not all copy, or whose elements are not adjacent.
"""

import numpy as np

from bodies import Dtype, body

_SOURCE = """
    threadgroup T tile[{rows} * {pitch}];
    uint t = thread_index_in_threadgroup, g = threadgroup_position_in_grid.x;
    constexpr uint each = {rows} * {depth} / {threads};
    float sum = 0;
    for (uint k = 0; k < {width}; k += {depth}) {{
        {copy}
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint j = 0; j < each; ++j) {{
            uint e = {rows} * {depth} - 1 - (t * each + j);
            sum += float(tile[e / {depth} * {pitch} + e % {depth}]) * float(1 + (k + j + t) % 3);
        }}
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }}
    y[g * {threads} + t] = sum;
"""
_LOOP = "for (uint i = {first}; i < {rows} * {depth}; i += {step})"
_TO = "tile[i / {depth} * {pitch} + i % {depth}]"
_FROM = "x[(g * {rows} + i / {depth}) * {width} + k + i % {depth}]"
_COPIES = {
    "rows": f"{_LOOP} {_TO} = {_FROM};".replace("{first}", "t").replace("{step}", "{threads}"),
    # The thread reads an element that it has copied itself.
    "read_at_once": (f"{_LOOP} {_TO} = {_FROM};\n        {{{{ uint i = t; sum += float({_TO}) * 0.0f; }}}}")
    .replace("{first}", "t")
    .replace("{step}", "{threads}"),
    "some_threads": f"if (t < 32) {_LOOP} {_TO} = {_FROM};".replace("{first}", "t").replace("{step}", "32"),
    "some_threadgroups": (f"if (g % 2 == 0) {_LOOP} {_TO} = {_FROM}; else {_LOOP} {_TO} = {_FROM};")
    .replace("{first}", "t")
    .replace("{step}", "{threads}"),
    "backwards": f"{_LOOP} {_TO} = {_FROM};".replace("{first}", "{threads} - 1 - t").replace("{step}", "{threads}"),
    "vectors": (
        "for (uint q = t; q < {rows} * {depth} / 4; q += {threads}) {{ uint i = 4 * q;"
        " *(threadgroup vec<T, 4>*)(&{to}) = *(const device vec<T, 4>*)(&{from}); }}"
    )
    .replace("{to}", _TO)
    .replace("{from}", _FROM),
}
# Threads in x and y, rows, depth and pitch of a tile, and dtype.
_SHAPES = {
    "halves": ((128, 1), 64, 32, 40, "float16"),
    "floats": ((128, 1), 32, 32, 36, "float32"),
    "bfloats": ((64, 1), 32, 16, 16, "bfloat16"),
    "bytes": ((64, 1), 64, 32, 48, "uint8"),
    "squares": ((16, 16), 64, 32, 40, "float16"),
    "small_squares": ((8, 8), 32, 16, 24, "float32"),
    "odd_pitch": ((128, 1), 32, 32, 33, "float16"),
    "three_rounds": ((128, 1), 12, 32, 32, "float32"),
}
_GROUPS, _TILES = 3, 2
_OF_COPIES = {"rows": list(_SHAPES), "vectors": ["halves", "floats", "squares"]}


def _add(copy: str, shape: str) -> None:
    (columns, lines), rows, depth, pitch, dtype = _SHAPES[shape]
    threads, width = columns * lines, depth * _TILES
    numbers = {"rows": rows, "depth": depth, "pitch": pitch, "width": width, "threads": threads}
    each = rows * depth // threads

    @body(
        _SOURCE.format(copy=_COPIES[copy].format(**numbers), **numbers),
        name=f"tile_copies_{copy}_{shape}",
        inputs=lambda rng: {"x": rng.integers(0, 16, (_GROUPS * rows, width)).astype(dtype)},
        outputs={"y": ((_GROUPS * threads,), "float32")},
        grid=(_GROUPS * columns, lines, 1),
        threadgroup=(columns, lines, 1),
        template=(("T", Dtype(dtype)),),
        constructs="attributes.thread_index_in_threadgroup",
    )
    def tile_copies(x):
        tiles = x.astype(np.float32).reshape(_GROUPS, rows, _TILES, depth)
        e = rows * depth - 1 - np.arange(rows * depth).reshape(threads, each)
        sums = np.zeros((_GROUPS, threads), np.float32)
        t, j = np.arange(threads)[:, None], np.arange(each)
        for tile in range(_TILES):
            factors = 1 + (tile * depth + j + t) % 3
            sums += (tiles[:, e // depth, tile, e % depth] * factors).sum(-1)
        return sums.reshape(-1)


for _copy in _COPIES:
    for _shape in _OF_COPIES.get(_copy, ["halves", "floats"]):
        _add(_copy, _shape)
