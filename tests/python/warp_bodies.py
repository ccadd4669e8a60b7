"""CUDA bodies whose warps part: at `_sync` functions in several branches, and in loops that wait for one another.

Each has a reference, computed for one warp of values, and says whether the SIMD engine takes it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import kiln
import numpy as np

LANE = np.arange(32)
HEAD = "int i = blockIdx.x * blockDim.x + threadIdx.x, t = threadIdx.x, lane = t % 32, v = x[i], r = 0;\n"
FULL = 0xFFFFFFFF


@dataclass
class WarpBody:
    source: str
    expected: Callable[[np.ndarray], np.ndarray]  # of a block's values
    simd: bool
    threads: int = 64
    header: str = ""


BODIES: dict[str, WarpBody] = {}


def body(name, source, *, simd, threads=64, header=""):
    def add(expected):
        BODIES[name] = WarpBody(HEAD + source, expected, simd, threads, header)
        return expected

    return add


def per_warp(function):
    """A reference for a block of one for a warp."""
    return lambda x: np.concatenate([np.asarray(function(warp)) for warp in x.reshape(-1, 32)])


def bits(flags):
    return sum(1 << int(lane) for lane in np.flatnonzero(flags))


def signed(values):
    return np.asarray(values, np.uint64).astype(np.uint32).view(np.int32)


# ---- Calls in several branches meet

body(
    "halves_swap",
    "if (lane < 16) r = __shfl_xor_sync(~0u, v, 16); else r = __shfl_xor_sync(~0u, v, 16); y[i] = r;",
    simd=False,
)(per_warp(lambda w: w[LANE ^ 16]))

body(
    "odd_and_even_lanes_swap",
    "if (lane & 1) r = 2 * __shfl_xor_sync(~0u, v, 1); else r = 3 * __shfl_xor_sync(~0u, v, 1); y[i] = r;",
    simd=False,
)(per_warp(lambda w: np.where(LANE & 1, 2, 3) * w[LANE ^ 1]))

body(
    "branch_by_data",
    "if (v > 50) r = __shfl_down_sync(~0u, v, 1); else r = -__shfl_down_sync(~0u, v, 1); y[i] = r;",
    simd=False,
)(per_warp(lambda w: np.where(w > 50, 1, -1) * w[np.minimum(LANE + 1, 31)]))

body(
    "three_branches",
    """
    if (lane < 8) r = __shfl_sync(~0u, v, 31 - lane);
    else if (lane < 20) r = __shfl_sync(~0u, v, 31 - lane) + 1000;
    else r = __shfl_sync(~0u, v, 31 - lane) + 2000;
    y[i] = r;
    """,
    simd=False,
)(per_warp(lambda w: w[31 - LANE] + np.select([LANE < 8, LANE < 20], [0, 1000], 2000)))

body(
    "switch",
    """
    switch (v & 3) {
      case 0: r = __shfl_up_sync(~0u, v, 4); break;
      case 1: r = 100 + __shfl_up_sync(~0u, v, 4); break;
      case 2: r = 200 + __shfl_up_sync(~0u, v, 4); break;
      default: r = 300 + __shfl_up_sync(~0u, v, 4);
    }
    y[i] = r;
    """,
    simd=False,
)(per_warp(lambda w: w[np.where(LANE < 4, LANE, LANE - 4)] + 100 * (w & 3)))

body(
    "ballots",
    "if (lane % 3) r = __ballot_sync(~0u, v > 50); else r = __ballot_sync(~0u, v <= 20); y[i] = r;",
    simd=False,
)(per_warp(lambda w: signed([bits(np.where(LANE % 3, w > 50, w <= 20))] * 32)))

body(
    "votes",
    """
    if (lane & 2) r = __any_sync(~0u, v == 1000); else r = __any_sync(~0u, v >= 0);
    if (lane & 4) r += 2 * __all_sync(~0u, v >= 0); else r += 2 * __all_sync(~0u, v < 1000);
    y[i] = r;
    """,
    simd=False,
)(per_warp(lambda w: [3] * 32))

body(
    "reductions",
    "if (v & 1) r = __reduce_add_sync(~0u, v); else r = __reduce_add_sync(~0u, -v); y[i] = r;",
    simd=False,
)(per_warp(lambda w: [np.where(w & 1, w, -w).sum()] * 32))

body(
    "masked_reductions",
    """
    unsigned m = lane < 16 ? 0xffff : 0xffff0000;
    if (v & 1) r = __reduce_max_sync(m, v); else r = __reduce_max_sync(m, v + 7);
    y[i] = r;
    """,
    simd=False,
)(per_warp(lambda w: np.repeat((w + np.where(w & 1, 0, 7)).reshape(2, 16).max(1), 16)))

body(
    "matches",
    "if (lane < 11) r = __match_any_sync(~0u, v & 3); else r = __match_any_sync(~0u, v & 3); y[i] = r;",
    simd=False,
)(per_warp(lambda w: signed([bits(w & 3 == a & 3) for a in w])))

body(
    "match_all",
    """
    int same;
    if (lane < 11) r = __match_all_sync(~0u, v >= 0, &same); else r = __match_all_sync(~0u, v >= 0, &same);
    y[i] = same + 2 * (r == -1);
    """,
    simd=False,
)(per_warp(lambda w: [3] * 32))

body(
    "syncwarp_orders_shared_memory",
    """
    __shared__ int s[64];
    if (lane < 16) { s[t] = v; __syncwarp(); r = s[t ^ 16]; } else { s[t] = 2 * v; __syncwarp(); r = s[t ^ 16]; }
    y[i] = r;
    """,
    simd=False,
)(per_warp(lambda w: (w * np.where(LANE < 16, 1, 2))[LANE ^ 16]))

body(
    "half_masks_in_both_halves",
    """
    if (lane < 16) { for (int d = 8; d; d /= 2) v += __shfl_down_sync(0xffff, v, d, 16); }
    else { for (int d = 8; d; d /= 2) v += __shfl_down_sync(0xffff0000, v, d, 16); }
    y[i] = v;
    """,
    simd=True,
)(per_warp(lambda w: np.concatenate([tree_down(w[:16]), tree_down(w[16:])])))


def tree_down(values):
    values = values.copy()
    distance = len(values) // 2
    while distance:
        source = np.arange(len(values)) + distance
        values = values + values[np.where(source < len(values), source, np.arange(len(values)))]
        distance //= 2
    return values


body(
    "loops_of_different_lengths",
    """
    int turns = lane < 16 ? 2 : 4;
    for (int k = 0; k < turns; ++k) r += __shfl_xor_sync(~0u, v + k, 16);
    if (lane < 16) { r += __shfl_xor_sync(~0u, v + 10, 16); r += __shfl_xor_sync(~0u, v + 20, 16); }
    y[i] = r;
    """,
    simd=False,
)(per_warp(lambda w: 4 * w[LANE ^ 16] + np.where(LANE < 16, 0 + 1 + 2 + 3, 0 + 1 + 10 + 20)))

body(
    "a_later_call_of_the_same_function",
    """
    if (lane < 16) r = __shfl_xor_sync(~0u, v, 16);
    r += 1000;
    if (lane >= 16) r += __shfl_xor_sync(~0u, v, 16);
    y[i] = r;
    """,
    simd=False,
)(per_warp(lambda w: w[LANE ^ 16] + 1000))

body(
    "helpers",
    "r = lane % 5 < 2 ? first(v) : second(v); y[i] = r;",
    header="""
    __device__ int first(int v) { return __shfl_xor_sync(0xffffffffu, v, 31) + 1; }
    __device__ int second(int v) { return __shfl_xor_sync(0xffffffffu, v, 31) + 2; }
    """,
    simd=False,
)(per_warp(lambda w: w[LANE ^ 31] + np.where(LANE % 5 < 2, 1, 2)))

body(
    "a_mask_of_a_ballot_in_both_branches",
    """
    unsigned m = __ballot_sync(~0u, v >= 0);
    if (lane & 1) r = __shfl_xor_sync(m, v, 1); else r = __shfl_xor_sync(m, v, 1);
    y[i] = r;
    """,
    simd=False,
)(per_warp(lambda w: w[LANE ^ 1]))

body(
    "doubles",
    "double d = v; if (lane < 16) d = __shfl_xor_sync(~0u, d, 16); else d = __shfl_xor_sync(~0u, d, 16); y[i] = (int)d;",
    simd=False,
)(per_warp(lambda w: w[LANE ^ 16]))

body(
    "tiles_in_branches",
    """
    auto tile = cg::tiled_partition<8>(cg::this_thread_block());
    if (v & 1) r = tile.shfl(v, 3); else r = tile.shfl(v, 3) + 500;
    y[i] = r;
    """,
    simd=False,
)(per_warp(lambda w: w[LANE & ~7 | 3] + np.where(w & 1, 0, 500)))

body(
    "the_others_return_behind_a_call",
    """
    if (lane >= 16) { y[i] = __shfl_xor_sync(~0u, v, 16); return; }
    y[i] = __shfl_xor_sync(~0u, v, 16) + 5;
    """,
    simd=False,
)(per_warp(lambda w: w[LANE ^ 16] + np.where(LANE < 16, 5, 0)))

# ---- What the SIMD engine keeps

body("all_come", "y[i] = __shfl_xor_sync(~0u, v, 5);", simd=True)(per_warp(lambda w: w[LANE ^ 5]))

body(
    "the_others_have_returned",
    "if (lane >= 20) { y[i] = -1; return; } y[i] = __reduce_add_sync(~0u, v) + __popc(__ballot_sync(~0u, 1));",
    simd=True,
)(per_warp(lambda w: np.where(LANE < 20, w[:20].sum() + 20, -1)))


def _guarded(w):
    v = w.astype(np.int64)
    here = LANE < 20
    for d in (16, 8, 4, 2, 1):
        other = np.where(here[LANE ^ d], v[LANE ^ d], 0)
        v = v + (other & 0xFF)
    return np.where(here, v, -1)


body(
    "a_guard_at_the_end",
    "y[i] = -1; if (lane < 20) { for (int d = 16; d; d /= 2) v += __shfl_xor_sync(~0u, v, d) & 0xff; y[i] = v; }",
    simd=True,
)(per_warp(_guarded))

body(
    "a_block_reduction",
    """
    __shared__ int s[32];
    for (int d = 16; d; d /= 2) v += __shfl_down_sync(0xffffffff, v, d);
    if (lane == 0) s[t / 32] = v;
    __syncthreads();
    if (t < 32) {
      v = t < blockDim.x / 32 ? s[t] : 0;
      for (int d = 16; d; d /= 2) v += __shfl_down_sync(0xffffffff, v, d);
      if (t == 0) s[0] = v;
    }
    __syncthreads();
    y[i] = s[0];
    """,
    threads=128,
    simd=True,
)(lambda x: np.full(len(x), x.sum()))

body(
    "a_mask_of_a_ballot_and_its_branch",
    """
    unsigned m = __ballot_sync(~0u, v > 50);
    if (v > 50) { r = __reduce_add_sync(m, v); }
    y[i] = r + __shfl_sync(~0u, v, 0);
    """,
    simd=True,
)(per_warp(lambda w: np.where(w > 50, w[w > 50].sum(), 0) + w[0]))

body(
    "the_active_mask_in_branches",
    """
    if (v & 1) { unsigned m = __activemask(); r = __reduce_add_sync(m, v); __syncwarp(m); }
    else { unsigned m = __activemask(); r = __reduce_min_sync(m, v); __syncwarp(m); }
    y[i] = r + __popc(__activemask());
    """,
    simd=True,
)(per_warp(lambda w: np.where(w & 1, w[w % 2 == 1].sum(), w[w % 2 == 0].min(initial=0x7FFFFFFF)) + 32))

body(
    "coalesced_groups_in_a_loop",
    """
    for (int k = 0; k < 4; ++k)
      if (v >> k & 1) { auto g = cg::coalesced_threads(); r += g.size() + g.shfl(v, 0); }
    y[i] = r + __shfl_sync(~0u, v, 1);
    """,
    simd=True,
)(
    per_warp(
        lambda w: (
            sum(np.where(w >> k & 1, bits(w >> k & 1).bit_count() + w[np.argmax(w >> k & 1)], 0) for k in range(4))
            + w[1]
        )
    )
)

body(
    "tiles_that_part_as_a_whole",
    """
    auto tile = cg::tiled_partition<8>(cg::this_thread_block());
    if (t / 8 % 2) r = cg::reduce(tile, v, cg::plus<int>()); else r = tile.shfl(v, 2);
    tile.sync();
    y[i] = r;
    """,
    simd=True,
)(per_warp(lambda w: np.where(LANE // 8 % 2, np.repeat(w.reshape(4, 8).sum(1), 8), w[LANE & ~7 | 2])))

body(
    "warps_part_as_a_whole",
    """
    __shared__ int s[4];
    if (t / 32 == 1) { r = __reduce_add_sync(~0u, v); if (lane == 0) s[0] = r; }
    else { r = __reduce_max_sync(~0u, v); if (lane == 0) s[1] = r; }
    __syncthreads();
    y[i] = s[0] + 1000 * s[1];
    """,
    simd=True,
)(lambda x: np.full(64, x[32:].sum() + 1000 * x[:32].max()))

# ---- Locks, flags and tickets

body(
    "a_lock_of_all_threads",
    """
    __shared__ int lock, count;
    if (t == 0) lock = count = 0;
    __syncthreads();
    while (atomicCAS(&lock, 0, 1) != 0);
    count = count + v;
    atomicExch(&lock, 0);
    __syncthreads();
    y[i] = count;
    """,
    simd=False,
)(lambda x: np.full(len(x), x.sum()))

body(
    "a_lock_taken_by_an_exchange",
    """
    __shared__ int lock, count;
    if (t == 0) lock = count = 0;
    __syncthreads();
    while (atomicExch(&lock, 1) == 1) __threadfence_block();
    count += v;
    __threadfence_block();
    lock = 0;
    __syncthreads();
    y[i] = count;
    """,
    simd=False,
)(lambda x: np.full(len(x), x.sum()))

body(
    "a_lock_with_a_flag",
    """
    __shared__ int lock, count;
    if (t == 0) lock = count = 0;
    __syncthreads();
    bool done = false;
    while (!done) {
      if (atomicCAS(&lock, 0, 1) == 0) { count += v; atomicExch(&lock, 0); done = true; }
    }
    __syncthreads();
    y[i] = count;
    """,
    simd=False,
)(lambda x: np.full(len(x), x.sum()))

body(
    "a_lock_for_each_of_some_places",
    """
    __shared__ int lock[4], count[4];
    if (t < 4) lock[t] = count[t] = 0;
    __syncthreads();
    int k = v & 3;
    while (atomicCAS(&lock[k], 0, 1) != 0);
    count[k] += v;
    atomicExch(&lock[k], 0);
    __syncthreads();
    y[i] = count[k];
    """,
    simd=False,
)(lambda x: np.array([x[x & 3 == a & 3].sum() for a in x]))

body(
    "a_ticket_lock",
    """
    __shared__ unsigned ticket, serving, count;
    if (t == 0) ticket = serving = count = 0;
    __syncthreads();
    unsigned mine = atomicAdd(&ticket, 1u);
    while (*(volatile unsigned*)&serving != mine);
    count += v;
    atomicAdd(&serving, 1u);
    __syncthreads();
    y[i] = count;
    """,
    simd=False,
)(lambda x: np.full(len(x), x.sum()))

body(
    "each_thread_waits_for_the_next",
    """
    __shared__ volatile int ready[64];
    ready[t] = 0;
    __syncthreads();
    if (t < 63) while (ready[t + 1] == 0);
    r = t < 63 ? ready[t + 1] + 1 : 1;
    ready[t] = r;
    y[i] = r;
    """,
    simd=False,
)(lambda x: np.arange(64, 0, -1))

body(
    "each_thread_waits_for_the_one_before",
    """
    __shared__ volatile int ready[64];
    ready[t] = 0;
    __syncthreads();
    if (t > 0) { int got; do got = ready[t - 1]; while (got == 0); r = got; }
    ready[t] = r + 1;
    y[i] = r + 1;
    """,
    simd=False,
)(lambda x: np.arange(1, 65))

body(
    "one_lane_produces_and_the_others_wait",
    """
    __shared__ int value;
    __shared__ volatile int flag;
    if (t == 0) flag = 0;
    __syncthreads();
    if (t != 63) { while (!flag); r = value; } else { value = v; __threadfence(); flag = 1; r = v; }
    y[i] = r;
    """,
    simd=False,
)(lambda x: np.full(64, x[63]))

body(
    "a_lock_that_is_held_at_a_syncwarp",
    """
    __shared__ int lock, count;
    if (t == 0) lock = count = 0;
    __syncthreads();
    if (lane == 0) while (atomicCAS(&lock, 0, 1) != 0);
    __syncwarp();
    if (lane == 5) count += v;
    __syncwarp();
    if (lane == 0) atomicExch(&lock, 0);
    __syncthreads();
    y[i] = count;
    """,
    threads=128,
    simd=False,
)(lambda x: np.full(len(x), x[5::32].sum()))

body(
    "a_warp_waits_for_another_one",
    """
    __shared__ volatile int flag;
    if (t == 0) flag = 0;
    __syncthreads();
    if (t < 32) { while (flag != 32); r = 1; } else { atomicAdd((int*)&flag, 1); r = 2; }
    y[i] = r;
    """,
    simd=False,
)(lambda x: np.where(np.arange(64) < 32, 1, 2))

# ---- Loops that retry, and end on either engine

body(
    "a_maximum_by_compare_exchange",
    """
    __shared__ int best;
    if (t == 0) best = 0;
    __syncthreads();
    int old = best, assumed;
    do { assumed = old; old = atomicCAS(&best, assumed, max(assumed, v)); } while (old != assumed);
    __syncthreads();
    y[i] = best;
    """,
    simd=True,
)(lambda x: np.full(64, x.max()))

body(
    "a_sum_of_floats_by_compare_exchange",
    """
    __shared__ float sum;
    if (t == 0) sum = 0;
    __syncthreads();
    int* bits = (int*)&sum;
    int old = *bits, assumed;
    do {
      assumed = old;
      old = atomicCAS(bits, assumed, __float_as_int(__int_as_float(assumed) + v));
    } while (old != assumed);
    __syncthreads();
    old = *bits;
    do {
      assumed = old;
      old = atomicCAS(bits, assumed, __float_as_int(__int_as_float(assumed) + 1));
    } while (old != assumed);
    __syncthreads();
    y[i] = (int)sum;
    """,
    simd=True,
)(lambda x: np.full(64, x.sum() + 64))

body(
    "a_flag_that_is_read_by_a_compare_exchange",
    """
    __shared__ int flag;
    if (t == 0) flag = 0;
    __syncthreads();
    if (t == 40) { atomicExch(&flag, 7); r = 7; }
    else { int seen = 0; do seen = atomicCAS(&flag, seen, seen); while (seen != 7); r = seen + 1; }
    y[i] = r;
    """,
    simd=False,
)(lambda x: np.where(np.arange(64) == 40, 7, 8))

body(
    "a_retry_that_also_waits",
    """
    __shared__ int count;
    __shared__ volatile int open;
    if (t == 0) count = open = 0;
    __syncthreads();
    if (t == 63) open = 1;
    int old = 0, assumed;
    do { assumed = old; old = atomicCAS(&count, assumed, assumed + 1); } while (old != assumed || !open);
    __syncthreads();
    y[i] = count >= 64;
    """,
    simd=False,
)(lambda x: np.ones(64, np.int32))

body(
    "a_retry_with_a_volatile_load",
    """
    __shared__ int best;
    if (t == 0) best = 0;
    __syncthreads();
    int old;
    do old = *(volatile int*)&best; while (old < v && atomicCAS(&best, old, v) != old);
    __syncthreads();
    y[i] = best;
    """,
    simd=False,
)(lambda x: np.full(64, x.max()))

body(
    "a_queue",
    """
    __shared__ int next;
    __shared__ int seen[256];
    for (int k = t; k < 256; k += 64) seen[k] = 0;
    if (t == 0) next = 0;
    __syncthreads();
    int k;
    while ((k = atomicAdd(&next, 1)) < 256) seen[k] = k;
    __syncthreads();
    y[i] = seen[t] + seen[t + 192];
    """,
    simd=True,
)(lambda x: 2 * np.arange(64) + 192)

body(
    "a_hash_table",
    """
    __shared__ int keys[128];
    keys[t] = keys[t + 64] = -1;
    __syncthreads();
    int slot = v * 7 & 127;
    for (;;) {
      int old = atomicCAS(&keys[slot], -1, v);
      if (old == -1 || old == v) break;
      slot = slot + 1 & 127;
    }
    __syncthreads();
    y[i] = keys[slot];
    """,
    simd=True,
)(lambda x: x)

# ---- Tiles of a number that has the lane's below, and above it what is not of the lane alone

TILES = """
unsigned mask = 0xffu << (lane & 24), n = {number};
if ({goes}) r = __shfl_sync(mask, lane * 3 + v, 1, 8); else r = __shfl_sync(mask, lane * 5 + 2000, 0, 8);
y[i] = r;
"""


def in_tiles(goes):
    def of_warp(w):
        goes_first = goes(w)
        passed = np.where(goes_first, LANE * 3 + w, LANE * 5 + 2000)
        return np.where(goes_first, passed[LANE // 8 * 8 + 1], passed[LANE // 8 * 8])

    return per_warp(of_warp)


body(
    "tiles_by_data_above_the_lane",
    TILES.format(number="((unsigned)v << 5) | lane", goes="n / 24 % 5 == 1"),
    simd=False,
)(in_tiles(lambda w: ((w << 5) | LANE) // 24 % 5 == 1))
body("tiles_by_a_sum_with_data", TILES.format(number="v * 32 + lane", goes="n >> 3 & 4"), simd=False)(
    in_tiles(lambda w: (w * 32 + LANE) >> 3 & 4 != 0)
)
body("tiles_by_loaded_data", TILES.format(number="(unsigned)x[i ^ 5] * 64 + lane", goes="n >> 6 & 1"), simd=False)(
    in_tiles(lambda w: w[LANE ^ 5] & 1 != 0)
)
body(
    "tiles_behind_a_loop_that_lanes_leave_one_by_one",
    """
    unsigned mask = 0xffu << (lane & 24), n = 0;
    int k = 0;
    do { n = (unsigned)x[k] * 32 + lane; ++k; y[i] = n; } while (k < v);
    if (n / 24 % 2 == 1) r = __shfl_sync(mask, lane * 3 + v, 1, 8); else r = __shfl_sync(mask, lane * 5 + 2000, 0, 8);
    y[i] = r;
    """,
    simd=False,
)(in_tiles(lambda w: (values()[np.maximum(w, 1) - 1].astype(np.int64) * 32 + LANE) // 24 % 2 == 1))
body("tiles_by_one_number_of_all", TILES.format(number="(unsigned)x[0] * 32 + lane", goes="n >> 3 & 1"), simd=True)(
    in_tiles(lambda w: LANE >> 3 & 1 != 0)
)


def values(seed=4, blocks=2, threads=64):
    return np.random.default_rng(seed).integers(0, 100, blocks * threads).astype(np.int32)


def result(name):
    """What the body gives for two blocks, and the launch."""
    body = BODIES[name]
    kernel = kiln.cuda_kernel(name=name, input_names=["x"], output_names=["y"], source=body.source, header=body.header)
    x = values(threads=body.threads)
    (y,) = kernel(
        inputs=[x],
        grid=(len(x), 1, 1),
        threadgroup=(body.threads, 1, 1),
        output_shapes=[x.shape],
        output_dtypes=[np.int32],
    )
    return y, kernel.history[-1].engine, kernel.history[-1].engine_reason


def expected(name):
    body = BODIES[name]
    x = values(threads=body.threads).astype(np.int64)
    return np.concatenate([np.asarray(body.expected(block)) for block in x.reshape(-1, body.threads)])
