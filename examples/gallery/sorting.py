"""Sorting: a bitonic network in threadgroup memory, then merges across threadgroups.

A bitonic network compares fixed pairs in a fixed order, whatever the values are, so all threads of a threadgroup can
work at once: a step, a barrier, the next step. It sorts a tile, as many values as fit into threadgroup memory.

Neighbouring tiles are then merged until one sorted array is left. To keep all threads busy in a merge, each thread writes
its own part of the result. It finds the beginning of its part in the two runs by bisection: of the first d values of the
result, i come from the left run and d - i from the right one. There is one i for which neither run's next value is
smaller than a value already taken from the other.

On a CPU NumPy's sort is ten times faster: 262,144 floats take 10 ms here, 19 ms with `mx.sort` and 0.9 ms with
`numpy.sort` (two threads of an AMD EPYC, 27 November 2026). NumPy makes about n log n comparisons, with a sort that is
written for AVX-512. The network makes n log² n comparisons with a barrier after each step, and a merge compares one pair of
values at a time. That pays where thousands of threads run at once, as on a GPU.

What it shows of Metal and of Kiln:

* Barriers in nested loops whose bounds are template constants.
* `Limits<T>::max` of MLX's header: infinity or the largest integer fills the last tile, so that the body is the same for
  any length. Values after the end of the array are never stored.
* Threadgroups do not wait for one another within a launch, but launches run in order. Each merge is a separate launch, with
  the length of the runs as a Python int among its inputs.
* The launches are nodes of MLX's graph: `sort` returns at once.

The values are ordered by `<`. NaNs have no order, so the input must have none.
"""

from __future__ import annotations

from collections.abc import Sequence

import kiln.mlx
import mlx.core as mx
import numpy as np

from examples.gallery import common

TILE = 1024
ITEMS = 16

SORT_TILES = """
    threadgroup T tile[TILE];
    uint me = thread_position_in_threadgroup.x;
    uint begin = threadgroup_position_in_grid.x * TILE, count = x_shape[0];
    for (uint i = me; i < TILE; i += TILE / 2)
        tile[i] = begin + i < count ? x[begin + i] : T(Limits<T>::max);

    // After each round of the outer loop stretches of `length` are sorted, every second one downwards: two of them are
    // what the next round begins with. The last round has one stretch, upwards.
    for (uint length = 2; length <= TILE; length *= 2) {
        for (uint distance = length / 2; distance > 0; distance /= 2) {
            threadgroup_barrier(mem_flags::mem_threadgroup);
            // Each thread has one pair: the numbers below TILE without the bit `distance`, and with it.
            uint low = 2 * me - (me & (distance - 1)), high = low + distance;
            T a = tile[low], b = tile[high];
            bool upwards = (low & length) == 0;
            if (upwards ? b < a : a < b) {
                tile[low] = b;
                tile[high] = a;
            }
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = me; i < TILE; i += TILE / 2)
        if (begin + i < count) y[begin + i] = tile[i];
"""

MERGE = """
    uint count = x_shape[0], begin = thread_position_in_grid.x * ITEMS;
    // The two runs that this stretch of the result comes from; the last ones may be short or missing.
    uint left = begin / (2 * run) * (2 * run);
    uint right = min(left + run, count), end = min(right + run, count);
    uint lefts = right - left, rights = end - right;

    // How many of the result's values before `begin` come from the left run. Of equal values the left ones are first.
    uint before = begin - left;
    uint low = before > rights ? before - rights : 0, high = min(before, lefts);
    while (low < high) {
        uint middle = (low + high) / 2;
        if (x[right + before - 1 - middle] < x[left + middle])
            high = middle;
        else
            low = middle + 1;
    }
    uint i = low, j = before - low;
    for (uint place = begin; place < min(begin + ITEMS, end); ++place) {
        bool from_left = j == rights || (i < lefts && !(x[right + j] < x[left + i]));
        y[place] = from_left ? x[left + i] : x[right + j];
        i += from_left;
        j += !from_left;
    }
"""

sort_tiles_kernel = kiln.mlx.metal_kernel(name="sort_tiles", input_names=["x"], output_names=["y"], source=SORT_TILES)
merge_kernel = kiln.mlx.metal_kernel(name="merge", input_names=["x", "run"], output_names=["y"], source=MERGE)


def sort_tiles(x: mx.array) -> mx.array:
    """x, (n,), with each stretch of TILE values sorted."""
    (y,) = sort_tiles_kernel(
        inputs=[x],
        template=[("T", x.dtype), ("TILE", TILE)],
        grid=(-(-x.size // TILE) * (TILE // 2), 1, 1),
        threadgroup=(TILE // 2, 1, 1),
        output_shapes=[x.shape],
        output_dtypes=[x.dtype],
    )
    return y


def merge(x: mx.array, run: int) -> mx.array:
    """x, (n,), of sorted stretches of ``run`` values, with neighbours merged; run is a multiple of ITEMS."""
    (y,) = merge_kernel(
        inputs=[x, run],
        template=[("ITEMS", ITEMS)],
        grid=(-(-x.size // ITEMS), 1, 1),
        threadgroup=(256, 1, 1),
        output_shapes=[x.shape],
        output_dtypes=[x.dtype],
    )
    return y


def stages(x: mx.array) -> list[mx.array]:
    """x, (n,), after each launch; the last one is sorted."""
    result = [sort_tiles(x)]
    run = TILE
    while run < x.size:
        result.append(merge(result[-1], run))
        run *= 2
    return result


def sort(x: mx.array) -> mx.array:
    """x, (n,), sorted. Any real type, without NaNs."""
    return stages(x)[-1]


def main(argv: Sequence[str] | None = None) -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--size", type=int, default=1 << 18, help="values that are sorted for time (%(default)s)")
    options = parser.parse_args(argv)

    x = mx.random.normal((options.size,), key=mx.random.key(0))
    as_numpy = np.array(x)
    same = np.array_equal(np.array(sort(x)), np.sort(as_numpy))
    print(f"{options.size} floats in {len(stages(x))} launches; {'as' if same else 'NOT as'} numpy.sort has them")
    times = common.medians(
        {
            "Kiln": lambda: sort(x),
            "  of it the tiles": lambda: sort_tiles(x),
            "mx.sort": lambda: mx.sort(x),
            "numpy.sort": lambda: np.sort(as_numpy),
        },
        rounds=5,
    )
    for name, milliseconds in times.items():
        print(f"  {name:20}{milliseconds:8.2f} ms")

    shown = mx.random.uniform(shape=(16 * TILE,), key=mx.random.key(1))
    pictures = [shown, *stages(shown)]
    titles = ["before", *(f"runs of {TILE * 2**k}" for k in range(len(pictures) - 1))]
    figure = common.new_figure(11, 6.6)
    for axis, picture, title in zip(
        figure.subplots(2, 3, sharex=True, sharey=True).flat, pictures, titles, strict=True
    ):
        places = np.arange(shown.size)
        axis.scatter(
            places, np.array(picture), s=0.6, c=np.array(picture), cmap="viridis", linewidths=0, rasterized=True
        )
        axis.set_title(title, fontsize=10)
        axis.set(xlim=(0, shown.size), ylim=(0, 1), xticks=[0, shown.size // 2], yticks=[0, 0.5, 1])
    figure.supxlabel("place", fontsize=10)
    figure.supylabel("value", fontsize=10)
    common.save(figure, options.out, "sorting.png")


if __name__ == "__main__":
    main()
