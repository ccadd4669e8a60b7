"""CUDA: warps, cooperative groups and atomics, in every form."""

from typing import Any

import numpy as np

from bodies import cuda_body

_WARP: dict[str, Any] = {"grid": (32, 1, 1), "threadgroup": (32, 1, 1)}
_BLOCK: dict[str, Any] = {"grid": (64, 1, 1), "threadgroup": (64, 1, 1)}
_LANE = np.arange(32)


def _ints(count, low=0, high=100, dtype=np.int32):
    return lambda rng: {"x": rng.integers(low, high, count).astype(dtype)}


# ---- Warps

_WORDS = {
    "int": "int32",
    "unsigned": "uint32",
    "long": "int64",
    "unsigned long": "uint64",
    "long long": "int64",
    "unsigned long long": "uint64",
    "float": "float32",
    "double": "float64",
}
for _type, _dtype in _WORDS.items():

    def _shuffled(x, dtype=_dtype):
        sources = [(_LANE * 7 + 3) % 32, np.where(_LANE < 5, _LANE, _LANE - 5)]
        sources += [np.where(_LANE % 16 < 12, (_LANE + 4) % 32, _LANE), _LANE ^ 21]
        same = (x[:, None] == x[None, :]) << np.arange(32, dtype=np.uint64)
        matched = same.sum(1).astype(np.uint32)
        return np.stack([x[source] for source in sources]).astype(dtype), np.stack([matched, np.zeros(32, np.uint32)])

    cuda_body(
        f"""
        {_type} v = x[threadIdx.x];
        int i = threadIdx.x, all = 7;
        y[i] = __shfl_sync(0xffffffff, v, i * 7 + 3);
        y[32 + i] = __shfl_up_sync(0xffffffff, v, 5);
        y[64 + i] = __shfl_down_sync(0xffffffff, v, 4, 16);
        y[96 + i] = __shfl_xor_sync(0xffffffff, v, 21);
        z[i] = __match_any_sync(0xffffffff, v);
        z[32 + i] = __match_all_sync(0xffffffff, v, &all) + all;
        """,
        name=f"cuda_exchanges_of_{_type.replace(' ', '_')}",
        inputs=_ints(32, 0, 9, np.dtype(_dtype)),
        outputs={"y": ((4, 32), _dtype), "z": ((2, 32), "uint32")},
        constructs="cuda_warp.__shfl_sync cuda_warp.__shfl_up_sync cuda_warp.__shfl_down_sync cuda_warp.__shfl_xor_sync "
        "cuda_warp.shuffle_types cuda_warp.match_types cuda_warp.__match_any_sync cuda_warp.__match_all_sync",
        **_WARP,
    )(_shuffled)


@cuda_body(
    """
    int i = threadIdx.x, v = x[i];
    y[i] = __shfl_sync(~0u, v, 5, 8);
    y[32 + i] = __shfl_up_sync(~0u, v, 3, 16);
    y[64 + i] = __shfl_down_sync(~0u, v, 1, 4);
    y[96 + i] = __shfl_xor_sync(~0u, v, 1, 2);
    y[128 + i] = __shfl_sync(~0u, v, -1, 32) + __shfl_sync(~0u, v, 37, 32);
    """,
    inputs=_ints(32),
    outputs={"y": ((5, 32), "int32")},
    constructs="cuda_warp.shuffle_width",
    **_WARP,
)
def cuda_shuffles_within_a_width(x):
    up = np.where(_LANE % 16 >= 3, _LANE - 3, _LANE)
    down = np.where(_LANE % 4 < 3, _LANE + 1, _LANE)
    return np.stack([x[_LANE // 8 * 8 + 5], x[up], x[down], x[_LANE ^ 1], np.full(32, x[31] + x[5])]).astype(np.int32)


@cuda_body(
    """
    int i = threadIdx.x, v = x[i];
    if (i % 3 == 0) {
      unsigned here = __activemask();
      y[i] = __reduce_add_sync(here, v) + 10000 * __popc(here);
    } else if (i < 16) {
      unsigned here = __ballot_sync(__activemask(), 1);
      y[i] = __shfl_sync(here, v, 31 - __clz(here));
    } else {
      unsigned here = __activemask();
      y[i] = __any_sync(here, v > 90) + 2 * __all_sync(here, v > 5) + 4 * __popc(__ballot_sync(here, v & 1));
    }
    """,
    inputs=_ints(32),
    outputs={"y": ((32,), "int32")},
    constructs="cuda_warp.masks_where_threads_part cuda_warp.__activemask cuda_warp.__ballot_sync cuda_warp.__any_sync "
    "cuda_warp.__all_sync cuda_warp.__reduce_add_sync",
    **_WARP,
)
def cuda_votes_where_threads_part(x):
    thirds, low = _LANE % 3 == 0, (_LANE % 3 != 0) & (_LANE < 16)
    high = ~thirds & ~low
    v = x[high]
    voted = int((v > 90).any()) + 2 * int((v > 5).all()) + 4 * int((v & 1).sum())
    last = x[np.flatnonzero(low)[-1]]
    return np.where(thirds, x[thirds].sum() + 10000 * thirds.sum(), np.where(low, last, voted)).astype(np.int32)


@cuda_body(
    """
    unsigned v = x[threadIdx.x], i = threadIdx.x, mask = 0x01010101u << (i & 7);
    int s = (int)v;
    y[i] = __reduce_add_sync(mask, v);
    y[32 + i] = __reduce_min_sync(mask, v);
    y[64 + i] = __reduce_max_sync(mask, v);
    y[96 + i] = __reduce_and_sync(mask, v);
    y[128 + i] = __reduce_or_sync(mask, v);
    y[160 + i] = __reduce_xor_sync(mask, v);
    z[i] = __reduce_add_sync(mask, s);
    z[32 + i] = __reduce_min_sync(mask, s);
    z[64 + i] = __reduce_max_sync(mask, s);
    """,
    inputs=lambda rng: {"x": rng.integers(0, 2**32, 32, np.uint32)},
    outputs={"y": ((6, 32), "uint32"), "z": ((3, 32), "int32")},
    constructs="cuda_warp.masks_of_parts cuda_warp.__reduce_add_sync cuda_warp.__reduce_min_sync cuda_warp.__reduce_max_sync "
    "cuda_warp.__reduce_and_sync cuda_warp.__reduce_or_sync cuda_warp.__reduce_xor_sync",
    **_WARP,
)
def cuda_reductions_of_parts(x):
    def rows(x, functions):
        return np.stack([np.tile(function.reduce(x.reshape(4, 8), axis=0, dtype=x.dtype), 4) for function in functions])

    orders = [np.add, np.minimum, np.maximum]
    return rows(x, [*orders, np.bitwise_and, np.bitwise_or, np.bitwise_xor]), rows(x.view(np.int32), orders)


# ---- Cooperative groups

_SIZES = (1, 2, 4, 8, 16, 32)
for _size in _SIZES:

    def _tile(x, size=_size):
        tiles, rank = x.reshape(-1, size), np.arange(64)
        first = rank // size * size
        last = np.maximum.accumulate(tiles, 1)
        before = np.cumsum(tiles, 1) - tiles
        y = [rank % size + 100 * size + 10000 * (rank // size), np.full(64, 64 // size)]
        y += [np.repeat(tiles.sum(1), size), np.cumsum(tiles, 1).reshape(-1), before.reshape(-1), last.reshape(-1)]
        y += [x[first + (rank % size + 1) % size], x[first + (size - 1)], x[rank ^ (size // 2)]]
        up = np.where(rank % size == 0, rank, rank - 1)
        votes = ((tiles > 50).astype(np.int64) << np.arange(size)).sum(1)
        y += [x[up], np.repeat(votes, size), np.repeat((tiles > 50).any(1) + 2 * (tiles > 50).all(1), size)]
        return np.stack(y).astype(np.uint32).view(np.int32)

    cuda_body(
        f"""
        auto tile = cg::tiled_partition<{_size}>(cg::this_thread_block());
        int v = x[threadIdx.x], i = threadIdx.x;
        y[i] = tile.thread_rank() + 100 * tile.size() + 10000 * tile.meta_group_rank();
        y[64 + i] = tile.meta_group_size() + 0 * tile.num_threads();
        y[128 + i] = cg::reduce(tile, v, cg::plus<int>());
        y[192 + i] = cg::inclusive_scan(tile, v);
        y[256 + i] = cg::exclusive_scan(tile, v);
        y[320 + i] = cg::inclusive_scan(tile, v, cg::greater<int>());
        y[384 + i] = tile.shfl(v, (tile.thread_rank() + 1) % {_size});
        y[448 + i] = tile.shfl(v, {_size} - 1);
        y[512 + i] = tile.shfl_xor(v, {_size // 2});
        y[576 + i] = tile.shfl_up(v, 1) + 0 * tile.shfl_down(v, 1);
        y[640 + i] = tile.ballot(v > 50);
        y[704 + i] = (tile.any(v > 50) != 0) + 2 * (tile.all(v > 50) != 0) + 0 * tile.match_any(v);
        tile.sync();
        """,
        name=f"cuda_tile_of_{_size}",
        inputs=_ints(64),
        outputs={"y": ((12, 64), "int32")},
        constructs="cuda_cooperative_groups.tiled_partition cuda_cooperative_groups.tile_ranks "
        "cuda_cooperative_groups.tile_shuffles cuda_cooperative_groups.reduce_by_lambda "
        "cuda_cooperative_groups.inclusive_scan cuda_cooperative_groups.exclusive_scan",
        **_BLOCK,
    )(_tile)


@cuda_body(
    """
    auto grid = cg::this_grid();
    auto block = cg::this_thread_block();
    unsigned long long i = grid.thread_rank();
    y[i] = block.thread_rank() + 100 * block.num_threads() + 10000 * (block.size() == block.num_threads());
    y[96 + i] = block.group_index().x + 10 * block.group_index().y + 100 * block.thread_index().x + 1000 * block.thread_index().y;
    y[192 + i] = block.dim_threads().x + 10 * block.dim_threads().y + 100 * block.group_dim().z;
    y[288 + i] = grid.block_rank() + 10 * grid.num_blocks() + 100 * grid.num_threads() + 100000 * (grid.size() == 96);
    y[384 + i] = grid.group_dim().x + 10 * grid.dim_blocks().y + 100 * grid.block_index().x;
    block.sync();
    """,
    outputs={"y": ((5, 96), "int32")},
    grid=(12, 8, 1),
    threadgroup=(6, 4, 1),
    constructs="cuda_cooperative_groups.this_grid cuda_cooperative_groups.this_thread_block",
)
def cuda_grid_and_block():
    i = np.arange(96)
    block, thread = i // 24, i % 24
    column, row = block % 2, block // 2
    rows = [thread + 12400, column + 10 * row + 100 * (thread % 6) + 1000 * (thread // 6), np.full(96, 146)]
    return np.stack([*rows, block + 40 + 9600 + 100000, 2 + 20 + 100 * column]).astype(np.int32)


@cuda_body(
    """
    auto tile = cg::tiled_partition<8>(cg::this_thread_block());
    int v = x[threadIdx.x], i = threadIdx.x, same = 0;
    y[i] = (tile.any(v == 3) != 0) + 2 * (tile.all(v < 5) != 0) + 4 * tile.ballot(v == 2);
    y[64 + i] = tile.match_any(v) + 1000 * tile.match_all(v < 9, same) + 1000000 * same;
    """,
    inputs=_ints(64, 0, 6),
    outputs={"y": ((2, 64), "int32")},
    constructs="cuda_cooperative_groups.tile_votes",
    **_BLOCK,
)
def cuda_votes_of_tiles(x):
    tiles, bit = x.reshape(8, 8), 1 << np.arange(8)
    votes = (tiles == 3).any(1) + 2 * (tiles < 5).all(1) + 4 * ((tiles == 2) * bit).sum(1)
    match = ((tiles[:, :, None] == tiles[:, None, :]) * bit).sum(2)
    return np.stack([np.repeat(votes, 8), match.reshape(-1) + 1255000]).astype(np.int32)


@cuda_body(
    """
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    int v = x[threadIdx.x], i = threadIdx.x, same = 0, n = 0;
    for (int sum : {cg::reduce(warp, v, cg::plus<int>()), cg::reduce(warp, v, cg::less<int>()),
                    cg::reduce(warp, v, cg::greater<int>()), cg::reduce(warp, v | 3, cg::bit_and<int>()),
                    cg::reduce(warp, v, cg::bit_or<int>()), cg::reduce(warp, v, cg::bit_xor<int>()),
                    cg::reduce(warp, v, [](int a, int b) { return a * b % 101; })})
      y[32 * n++ + i] = sum;
    y[224 + i] = __popc(warp.match_any(v & 3)) + 100 * (warp.match_all(7, same) == ~0u) + 1000 * same;
    """,
    inputs=_ints(32, 1),
    outputs={"y": ((8, 32), "int32")},
    constructs="cuda_cooperative_groups.reduce cuda_cooperative_groups.reduce_by_lambda",
    **_WARP,
)
def cuda_reductions_by_every_operation(x):
    product = 1
    for v in x:
        product = product * int(v) % 101
    functions = [np.bitwise_or.reduce(x), np.bitwise_xor.reduce(x), product]
    rows = [x.sum(), x.min(), x.max(), np.bitwise_and.reduce(x | 3), *functions]
    same = np.array([np.sum(x & 3 == v & 3) for v in x])
    return np.stack([*(np.full(32, row) for row in rows), same + 1100]).astype(np.int32)


@cuda_body(
    """
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    int i = threadIdx.x, v = x[i];
    double d = v;
    float2 pair = make_float2(v, -v);
    y[i] = cg::reduce(warp, d, cg::plus<double>());
    y[32 + i] = warp.shfl_down(pair, 2).y;
    y[64 + i] = cg::inclusive_scan(warp, (long long)v << 32) >> 32;
    y[96 + i] = float(cg::reduce(warp, __half(float(v)), cg::greater<__half>()));
    y[128 + i] = warp.shfl(make_double2(d, 2 * d), 3).y;
    y[160 + i] = cg::reduce(warp, (unsigned char)v, cg::less<unsigned char>());
    """,
    inputs=_ints(32),
    outputs={"y": ((6, 32), "float64")},
    **_WARP,
)
def cuda_groups_of_many_types(x):
    down = -x[np.where(_LANE < 30, _LANE + 2, _LANE)]
    rows = [x.sum(), down, np.cumsum(x), x.max(), 2 * x[3], x.min()]
    return np.stack([np.broadcast_to(row, 32) for row in rows]).astype(np.float64)


@cuda_body(
    """
    auto block = cg::this_thread_block();
    auto warp = cg::tiled_partition<32>(block);
    int i = threadIdx.x, v = x[i];
    auto half_of = cg::binary_partition(warp, v % 2 == 0);
    y[i] = half_of.size() + 100 * half_of.thread_rank() + 10000 * cg::reduce(half_of, 1, cg::plus<int>());
    auto label = cg::labeled_partition(warp, v % 5);
    y[64 + i] = label.size() + 100 * label.thread_rank() + 10000 * label.shfl(v, 0);
    auto five = cg::tiled_partition(cg::coalesced_threads(), 8);
    y[128 + i] = five.size() + 100 * five.thread_rank() + 10000 * cg::inclusive_scan(five, 1);
    y[192 + i] = cg::this_thread().size() + 10 * cg::this_thread().thread_rank();
    """,
    inputs=_ints(64),
    outputs={"y": ((4, 64), "int32")},
    constructs="cuda_cooperative_groups.binary_partition cuda_cooperative_groups.labeled_partition "
    "cuda_cooperative_groups.this_thread",
    **_BLOCK,
)
def cuda_partitions_of_a_warp(x):
    rows = np.zeros((4, 64), np.int64)
    for first in (0, 32):
        part = x[first : first + 32]
        for k in range(32):
            same = np.flatnonzero(part % 2 == part[k] % 2)
            rows[0, first + k] = len(same) + 100 * (same < k).sum() + 10000 * len(same)
            same = np.flatnonzero(part % 5 == part[k] % 5)
            rows[1, first + k] = len(same) + 100 * (same < k).sum() + 10000 * part[same[0]]
            rows[2, first + k] = 8 + 100 * (k % 8) + 10000 * (k % 8 + 1)
    rows[3] = 1
    return rows.astype(np.int32)


@cuda_body(
    """
    int i = threadIdx.x, v = x[i];
    y[i] = y[32 + i] = y[64 + i] = 0;
    if (v % 3 != 0) {
      cg::coalesced_group active = cg::coalesced_threads();
      unsigned last = active.size() - 1;
      y[i] = active.shfl(v, last) + 100 * active.shfl_up(v, 1) + 10000 * active.shfl_down(v, 2);
      y[32 + i] = active.any(v > 90) + 2 * active.all(v > 5) + 4 * __popc(active.ballot(v & 1)) + 1000 * __popc(active.match_any(v & 7));
      cg::coalesced_group part = cg::tiled_partition(active, 4);
      y[64 + i] = sum_of(part, v) + 0 * part.thread_rank() + 10000 * part.meta_group_rank();
    }
    """,
    header="""
    __device__ int sum_of(const cooperative_groups::coalesced_group& g, int v) {
      return cooperative_groups::reduce(g, v, cooperative_groups::plus<int>());
    }
    """,
    inputs=_ints(32),
    outputs={"y": ((3, 32), "int32")},
    constructs="cuda_cooperative_groups.coalesced_threads cuda_cooperative_groups.coalesced_group",
    **_WARP,
)
def cuda_coalesced_groups(x):
    rows = np.zeros((3, 32), np.int64)
    active = np.flatnonzero(x % 3 != 0)
    v = x[active].astype(np.int64)
    for rank, lane in enumerate(active):
        up, down = v[rank - 1 if rank else 0], v[rank + 2 if rank + 2 < len(v) else rank]
        rows[0, lane] = v[-1] + 100 * up + 10000 * down
        votes = int((v > 90).any()) + 2 * int((v > 5).all()) + 4 * int((v & 1).sum())
        rows[1, lane] = votes + 1000 * int((v & 7 == v[rank] & 7).sum())
        rows[2, lane] = v[rank // 4 * 4 : rank // 4 * 4 + 4].sum() + 10000 * (rank // 4)
    return rows.astype(np.int32)


@cuda_body(
    """
    __shared__ int cells[64];
    auto block = cg::this_thread_block();
    int i = block.thread_rank();
    cells[i] = x[i];
    auto token = block.barrier_arrive();
    int own = 2 * x[i];
    block.barrier_wait(std::move(token));
    y[i] = own + cells[63 - i];
    cg::sync(block);
    if (i == 0) cells[0] = 100;
    block.sync();
    y[64 + i] = cells[0] + cg::thread_rank(block) + 1000 * cg::group_size(block);
    """,
    inputs=_ints(64),
    outputs={"y": ((2, 64), "int32")},
    constructs="cuda_cooperative_groups.barrier_arrive cuda_cooperative_groups.sync cuda_cooperative_groups.free_functions",
    **_BLOCK,
)
def cuda_barriers_of_groups(x):
    return np.stack([2 * x + x[::-1], 64100 + np.arange(64)]).astype(np.int32)


@cuda_body(
    """
    extern __shared__ int scratch[];
    auto block = cg::this_thread_block();
    cg::thread_group tile = cg::tiled_partition(block, 8);
    cg::thread_block_tile<4> four = cg::tiled_partition<4>(cg::tiled_partition<16>(block));
    int v = x[threadIdx.x];
    y[threadIdx.x] = total(tile, scratch + threadIdx.x / 8 * 8, v);
    y[64 + threadIdx.x] = total(cg::tiled_partition<16>(block), scratch + threadIdx.x / 16 * 16, v);
    y[128 + threadIdx.x] = total(block, scratch, v) + 10000 * of_tile(four, v);
    """,
    header="""
    namespace cgs = cooperative_groups;
    __device__ int total(cgs::thread_group g, int* scratch, int v) {
      scratch[g.thread_rank()] = v;
      g.sync();
      int sum = 0;
      for (unsigned i = 0; i < g.size(); ++i) sum += scratch[i];
      g.sync();
      return sum;
    }
    __device__ int of_tile(const cgs::thread_block_tile<4>& tile, int v) { return tile.shfl(v, 2); }
    """,
    shared_memory=256,
    inputs=_ints(64),
    outputs={"y": ((3, 64), "int32")},
    constructs="cuda_cooperative_groups.thread_group cuda_cooperative_groups.tiled_partition_by_number "
    "cuda_cooperative_groups.thread_block_tile cuda_cooperative_groups.tiles_of_tiles cuda_launch.shared_memory",
    **_BLOCK,
)
def cuda_groups_as_parameters(x):
    eight, sixteen = np.repeat(x.reshape(8, 8).sum(1), 8), np.repeat(x.reshape(4, 16).sum(1), 16)
    return np.stack([eight, sixteen, x.sum() + 10000 * np.repeat(x.reshape(16, 4)[:, 2], 4)]).astype(np.int32)


@cuda_body(
    """
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    int i = threadIdx.x;
    cg::invoke_one(warp, [&] { atomicAdd(&y[0], 5); });
    int ticket = cg::invoke_one_broadcast(cg::coalesced_threads(), [&] { return atomicAdd(&y[1], 7) + 100; });
    y[2 + i] = ticket;
    """,
    init_value=0,
    outputs={"y": ((34,), "int32")},
    constructs="cuda_cooperative_groups.invoke_one",
    **_WARP,
)
def cuda_one_of_a_group():
    return np.array([5, 7] + [100] * 32, np.int32)


@cuda_body(
    """
    __shared__ float tile[96];
    auto block = cg::this_thread_block();
    cg::memcpy_async(block, tile, x + 96 * blockIdx.x, sizeof(float) * 96);
    cg::wait(block);
    float sum = 0;
    for (int i = 0; i < 3; ++i) sum += tile[(threadIdx.x + 33 * i) % 96];
    y[64 * blockIdx.x + threadIdx.x] = sum;
    """,
    inputs=lambda rng: {"x": rng.integers(0, 100, 192).astype(np.float32)},
    outputs={"y": ((2, 64), "float32")},
    grid=(128, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="cuda_cooperative_groups.memcpy_async",
)
def cuda_copies_of_a_group(x):
    places = (np.arange(64)[:, None] + 33 * np.arange(3)) % 96
    return x.reshape(2, 96)[:, places].sum(2)


# ---- Atomics


@cuda_body(
    """
    long long v = (long long)x[threadIdx.x] << 33;
    unsigned long long u = v;
    long long* s = reinterpret_cast<long long*>(y);
    unsigned long long* w = reinterpret_cast<unsigned long long*>(z);
    atomicMin(&s[0], -v);
    atomicMax(&s[1], v);
    atomicAnd(&s[2], ~v);
    atomicOr(&s[3], v);
    atomicXor(&s[4], v);
    atomicAdd(&w[0], u);
    atomicMin(&w[1], ~u);
    atomicMax(&w[2], u);
    atomicOr(&w[3], u);
    atomicXor(&w[4], u);
    atomicAnd(&w[5], u);
    if (threadIdx.x == 5) atomicExch(&w[6], 77ull);
    unsigned long long seen, before = w[7];
    do {
      seen = before;
      before = atomicCAS(&w[7], seen, seen + 3);
    } while (before != seen);
    """,
    init_value=0,
    inputs=_ints(64, 1),
    outputs={"y": ((5,), "int64"), "z": ((8,), "uint64")},
    constructs="cuda_atomics.of_64_bits cuda_atomics.by_compare_and_exchange",
    **_BLOCK,
)
def cuda_atomics_of_64_bits(x):
    v = x.astype(np.int64) << 33
    y = [(-v).min(), v.max(), 0, np.bitwise_or.reduce(v), np.bitwise_xor.reduce(v)]
    z = [v.sum(), 0, v.max(), np.bitwise_or.reduce(v), np.bitwise_xor.reduce(v), 0, 77, 192]
    return np.array(y, np.int64), np.array(z, np.uint64)


@cuda_body(
    """
    // A float's maximum by its bits, a sum, a half word's count, and a float that is exchanged.
    int i = threadIdx.x;
    float v = x[i];
    if (v >= 0) atomicMax(reinterpret_cast<int*>(&y[0]), __float_as_int(v));
    unsigned* word = reinterpret_cast<unsigned*>(&y[1]);
    unsigned seen, before = *word;
    do {
      seen = before;
      before = atomicCAS(word, seen, __float_as_uint(__uint_as_float(seen) + v));
    } while (before != seen);
    // Each takes out what the one before it left; what nobody took is left.
    atomicAdd(&y[3], atomicExch(&y[2], v));
    unsigned short* shorts = reinterpret_cast<unsigned short*>(n);
    unsigned short at, found = shorts[1];
    do {
      at = found;
      found = atomicCAS(&shorts[1], at, (unsigned short)(at + 3));
    } while (found != at);
    if (atomicAdd(&n[1], 1u) == 63) atomicAdd(&y[3], atomicExch(&y[2], 0.0f));
    """,
    init_value=0,
    inputs=lambda rng: {"x": rng.integers(1, 100, 64).astype(np.float32)},
    outputs={"y": ((4,), "float32"), "n": ((2,), "uint32")},
    constructs="cuda_atomics.by_compare_and_exchange cuda_atomics.of_16_bits cuda_atomics.atomicExch cuda_atomics.atomicCAS",
    **_BLOCK,
)
def cuda_atomics_by_bits(x):
    return np.array([x.max(), x.sum(), 0, x.sum()], np.float32), np.array([(64 * 3) << 16, 64], np.uint32)


@cuda_body(
    """
    int i = threadIdx.x, v = x[i];
    if (v % 2) {
      unsigned here = __activemask();
      int leader = __ffs(here) - 1, first = 0;
      if (i % 32 == leader) first = atomicAdd(&y[0], __popc(here));
      first = __shfl_sync(here, first, leader);
      y[1 + first + __popc(here & ((1u << i % 32) - 1))] = v;
    }
    """,
    init_value=0,
    inputs=_ints(32),
    outputs={"y": ((33,), "int32")},
    constructs="cuda_atomics.aggregated cuda_atomics.atomicAdd",
    **_WARP,
)
def cuda_aggregated_atomics(x):
    odd = x[x % 2 == 1]
    return np.concatenate([[len(odd)], odd, np.zeros(32 - len(odd))]).astype(np.int32)


@cuda_body(
    """
    int v = x[threadIdx.x];
    __nv_atomic_fetch_add(&y[0], v, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
    __nv_atomic_fetch_sub(&y[1], v, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_SYSTEM);
    __nv_atomic_fetch_min(&y[2], -v, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
    __nv_atomic_fetch_max(&y[3], v, __NV_ATOMIC_ACQ_REL, __NV_THREAD_SCOPE_DEVICE);
    __nv_atomic_fetch_and(&y[4], v, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_BLOCK);
    __nv_atomic_fetch_or(&y[5], v, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
    __nv_atomic_fetch_xor(&y[6], v, __NV_ATOMIC_SEQ_CST, __NV_THREAD_SCOPE_DEVICE);
    if (threadIdx.x == 3) __nv_atomic_exchange_n(&y[7], 9, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
    int seen = __nv_atomic_load_n(&y[8], __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
    while (!__nv_atomic_compare_exchange_n(&y[8], &seen, seen + v, false, __NV_ATOMIC_RELAXED, __NV_ATOMIC_RELAXED,
                                           __NV_THREAD_SCOPE_DEVICE)) {
    }
    __nv_atomic_thread_fence(__NV_ATOMIC_SEQ_CST, __NV_THREAD_SCOPE_DEVICE);
    if (threadIdx.x == 0) __nv_atomic_store_n(&y[9], 4, __NV_ATOMIC_RELEASE, __NV_THREAD_SCOPE_DEVICE);
    """,
    init_value=0,
    inputs=_ints(64),
    outputs={"y": ((10,), "int32")},
    constructs="cuda_atomics.__nv_atomic_load_n cuda_atomics.__nv_atomic_fetch_add cuda_atomics.__nv_atomic_exchange_n",
    **_BLOCK,
)
def cuda_atomics_with_orders(x):
    xor = np.bitwise_xor.reduce(x)
    return np.array([x.sum(), -x.sum(), -x.max(), x.max(), 0, np.bitwise_or.reduce(x), xor, 9, x.sum(), 4], np.int32)


for _scope in ("block", "system"):

    def _scoped(x):
        y = [
            x.sum(),
            -x.sum(),
            -x.max(),
            x.max(),
            0,
            np.bitwise_or.reduce(x),
            np.bitwise_xor.reduce(x),
            5,
            64,
            64 % 10,
            -64 % 10,
        ]
        return (
            np.array(y, np.int32),
            np.array([x.sum()], np.float32),
            np.array([(x.astype(np.int64) << 33).sum()], np.uint64),
        )

    cuda_body(
        f"""
        int v = x[threadIdx.x], seen, before = y[8];
        atomicAdd_{_scope}(&y[0], v);
        atomicSub_{_scope}(&y[1], v);
        atomicMin_{_scope}(&y[2], -v);
        atomicMax_{_scope}(&y[3], v);
        atomicAnd_{_scope}(&y[4], v);
        atomicOr_{_scope}(&y[5], v);
        atomicXor_{_scope}(&y[6], v);
        if (threadIdx.x == 9) atomicExch_{_scope}(&y[7], 5);
        do {{
          seen = before;
          before = atomicCAS_{_scope}(&y[8], seen, seen + 1);
        }} while (before != seen);
        atomicInc_{_scope}(reinterpret_cast<unsigned*>(&y[9]), 9u);
        atomicDec_{_scope}(reinterpret_cast<unsigned*>(&y[10]), 9u);
        atomicAdd_{_scope}(&f[0], float(v));
        atomicAdd_{_scope}(reinterpret_cast<unsigned long long*>(n), (unsigned long long)v << 33);
        """,
        name=f"cuda_atomics_of_{_scope}",
        init_value=0,
        inputs=_ints(64),
        outputs={"y": ((11,), "int32"), "f": ((1,), "float32"), "n": ((1,), "uint64")},
        constructs=f"cuda_atomics.{_scope}_scope",
        **_BLOCK,
    )(_scoped)
