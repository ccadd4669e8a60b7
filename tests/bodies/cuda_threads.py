"""CUDA: threads of a block and of a warp, what they share and how they meet."""

import numpy as np

from bodies import Dtype, cuda_body


def _ints(count, low=0, high=100, dtype=np.int32):
    return lambda rng: {"x": rng.integers(low, high, count).astype(dtype)}


def _floats(*shape, dtype=np.float32):
    return lambda rng: {"x": rng.normal(size=shape).astype(dtype)}


@cuda_body(
    """
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < x_shape[0]) y[i] = 2 * x[i] + gridDim.x;
    """,
    inputs=_ints(70),
    outputs={"y": ((70,), "int32")},
    grid=(70, 1, 1),
    threadgroup=(32, 1, 1),
    constructs="cuda_indices.threadIdx cuda_indices.blockIdx cuda_indices.blockDim cuda_indices.gridDim",
)
def cuda_positions(x):
    return 2 * x + np.int32(3)


@cuda_body(
    """
    dim3 at(blockIdx.x * blockDim.x + threadIdx.x, blockIdx.y * blockDim.y + threadIdx.y, blockIdx.z);
    dim3 size(gridDim.x * blockDim.x, gridDim.y * blockDim.y);
    y[(at.z * size.y + at.y) * size.x + at.x] = at.x + 10 * at.y + 100 * at.z + 1000 * size.z;
    """,
    outputs={"y": ((3, 4, 8), "int32")},
    grid=(8, 4, 3),
    threadgroup=(4, 2, 1),
    constructs="cuda_indices.dim3 cuda_indices.three_dimensions",
)
def cuda_dim3():
    z, y, x = np.meshgrid(np.arange(3), np.arange(4), np.arange(8), indexing="ij")
    return (x + 10 * y + 100 * z + 1000).astype(np.int32)


@cuda_body(
    """
    __shared__ float tile[16][17];
    int col = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;
    if (row < x_shape[0] && col < x_shape[1]) tile[threadIdx.y][threadIdx.x] = x[row * x_shape[1] + col];
    __syncthreads();
    int out_col = blockIdx.y * 16 + threadIdx.x, out_row = blockIdx.x * 16 + threadIdx.y;
    if (out_row < x_shape[1] && out_col < x_shape[0]) y[out_row * x_shape[0] + out_col] = tile[threadIdx.x][threadIdx.y];
    """,
    inputs=_floats(40, 50),
    outputs={"y": ((50, 40), "float32")},
    grid=(50, 40, 1),
    threadgroup=(16, 16, 1),
    constructs="cuda_memory.shared_2d_array",
)
def cuda_transpose(x):
    return x.T


@cuda_body(
    """
    extern __shared__ int values[];
    values[threadIdx.x] = x[blockIdx.x * blockDim.x + threadIdx.x];
    __syncthreads();
    y[blockIdx.x * blockDim.x + threadIdx.x] = values[blockDim.x - 1 - threadIdx.x];
    """,
    shared_memory=256,
    inputs=_ints(128),
    outputs={"y": ((128,), "int32")},
    grid=(128, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="cuda_memory.dynamic_shared cuda_launch.shared_memory",
)
def cuda_dynamic_shared_memory(x):
    return x.reshape(2, 64)[:, ::-1].reshape(-1)


@cuda_body(
    """
    __shared__ float partial[256];
    int t = threadIdx.x;
    partial[t] = x[blockIdx.x * 256 + t];
    for (int half_size = 128; half_size > 0; half_size /= 2) {
      __syncthreads();
      if (t < half_size) partial[t] += partial[t + half_size];
    }
    if (t == 0) y[blockIdx.x] = partial[0];
    """,
    inputs=_floats(4, 256),
    outputs={"y": ((4,), "float32")},
    grid=(1024, 1, 1),
    threadgroup=(256, 1, 1),
    constructs="cuda_memory.shared_array cuda_structure.barrier_in_loop cuda_synchronisation.__syncthreads",
)
def cuda_tree_reduction(x):
    size = 128
    while size:
        x = x[:, :size] + x[:, size : 2 * size]
        size //= 2
    return x[:, 0]


@cuda_body(
    """
    int v = x[blockIdx.x * blockDim.x + threadIdx.x];
    int count = __syncthreads_count(v > 50), all = __syncthreads_and(v > 2), any = __syncthreads_or(v > 97);
    if (threadIdx.x == 0) {
      y[3 * blockIdx.x] = count;
      y[3 * blockIdx.x + 1] = all != 0;
      y[3 * blockIdx.x + 2] = any != 0;
    }
    """,
    inputs=_ints(256),
    outputs={"y": ((4, 3), "int32")},
    grid=(256, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="cuda_synchronisation.__syncthreads_count cuda_synchronisation.__syncthreads_and "
    "cuda_synchronisation.__syncthreads_or",
)
def cuda_voting_barriers(x):
    x = x.reshape(4, 64)
    return np.stack([(x > 50).sum(1), (x > 2).all(1), (x > 97).any(1)], 1).astype(np.int32)


@cuda_body(
    """
    int lane = threadIdx.x % warpSize, v = x[threadIdx.x];
    y[threadIdx.x] = __shfl_sync(0xffffffff, v, (lane + 5) % 32);
    y[64 + threadIdx.x] = __shfl_up_sync(~0u, v, 3);
    y[128 + threadIdx.x] = __shfl_down_sync(~0u, v, 4, 8);
    y[192 + threadIdx.x] = __shfl_xor_sync(~0u, v, 9);
    """,
    inputs=_ints(64),
    outputs={"y": ((4, 64), "int32")},
    grid=(64, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="cuda_warp.__shfl_sync cuda_warp.__shfl_up_sync cuda_warp.__shfl_down_sync cuda_warp.__shfl_xor_sync",
)
def cuda_shuffles(x):
    warps, lane = x.reshape(2, 32), np.arange(32)
    down = np.where(lane % 8 < 4, lane + 4, lane)
    sources = [(lane + 5) % 32, np.where(lane < 3, lane, lane - 3), down, lane ^ 9]
    return np.stack([warps[:, source].reshape(-1) for source in sources])


@cuda_body(
    """
    double v = x[threadIdx.x];
    y[threadIdx.x] = __shfl_xor_sync(~0u, v, 1);
    """,
    inputs=_floats(32, dtype=np.float64),
    outputs={"y": ((32,), "float64")},
    grid=(32, 1, 1),
    threadgroup=(32, 1, 1),
    constructs="cuda_warp.__shfl_xor_sync cuda_types.double",
)
def cuda_shuffle_of_double(x):
    return x[np.arange(32) ^ 1]


@cuda_body(
    """
    int v = x[threadIdx.x];
    unsigned odd = __ballot_sync(~0u, v & 1);
    y[threadIdx.x] = odd;
    y[32 + threadIdx.x] = __any_sync(~0u, v > 98) ? 1 : 0;
    y[64 + threadIdx.x] = __all_sync(~0u, v >= 0) ? 1 : 0;
    if (v & 1) y[96 + threadIdx.x] = __popc(__activemask() & odd) == __popc(__activemask());
    else y[96 + threadIdx.x] = 1;
    """,
    inputs=_ints(32),
    outputs={"y": ((4, 32), "uint32")},
    grid=(32, 1, 1),
    threadgroup=(32, 1, 1),
    constructs="cuda_warp.__ballot_sync cuda_warp.__any_sync cuda_warp.__all_sync cuda_warp.__activemask",
)
def cuda_votes(x):
    odd = np.sum((x & 1).astype(np.uint64) << np.arange(32, dtype=np.uint64))
    rows = [odd, (x > 98).any(), (x >= 0).all(), 1]
    return np.stack([np.full(32, row).astype(np.uint32) for row in rows])


@cuda_body(
    """
    int same = 0;
    y[threadIdx.x] = __match_any_sync(~0u, x[threadIdx.x]);
    y[32 + threadIdx.x] = __match_all_sync(~0u, x[threadIdx.x] < 100, &same);
    y[64 + threadIdx.x] = same != 0;
    """,
    inputs=_ints(32, 0, 6),
    outputs={"y": ((3, 32), "uint32")},
    grid=(32, 1, 1),
    threadgroup=(32, 1, 1),
    constructs="cuda_warp.__match_any_sync cuda_warp.__match_all_sync",
)
def cuda_matches(x):
    bits = np.uint64(1) << np.arange(32, dtype=np.uint64)
    any_ = np.array([(bits * (x == v)).sum() for v in x])
    return np.stack([any_.astype(np.uint32), np.full(32, 2**32 - 1, np.uint32), np.ones(32, np.uint32)])


@cuda_body(
    """
    unsigned v = x[threadIdx.x];
    int w = (int)v - 50;
    y[threadIdx.x] = __reduce_add_sync(~0u, v);
    y[32 + threadIdx.x] = __reduce_min_sync(~0u, w) + 100;
    y[64 + threadIdx.x] = __reduce_max_sync(~0u, v);
    y[96 + threadIdx.x] = __reduce_and_sync(~0u, v | 16);
    y[128 + threadIdx.x] = __reduce_or_sync(~0u, v);
    y[160 + threadIdx.x] = __reduce_xor_sync(~0u, v);
    """,
    inputs=_ints(32, dtype=np.uint32),
    outputs={"y": ((6, 32), "uint32")},
    grid=(32, 1, 1),
    threadgroup=(32, 1, 1),
    constructs="cuda_warp.__reduce_add_sync cuda_warp.__reduce_min_sync cuda_warp.__reduce_max_sync "
    "cuda_warp.__reduce_and_sync cuda_warp.__reduce_or_sync cuda_warp.__reduce_xor_sync",
)
def cuda_warp_reductions(x):
    rows = [x.sum(), int(x.min()) + 50, x.max(), np.bitwise_and.reduce(x | 16)]
    rows += [np.bitwise_or.reduce(x), np.bitwise_xor.reduce(x)]
    return np.stack([np.full(32, row, np.uint32) for row in rows])


@cuda_body(
    """
    __shared__ int cells[32];
    cells[threadIdx.x] = x[threadIdx.x];
    __syncwarp();
    int next = cells[(threadIdx.x + 1) & 31];
    __syncwarp();
    cells[threadIdx.x] = next + 1;
    __syncwarp();
    y[threadIdx.x] = cells[(threadIdx.x + 1) & 31];
    """,
    inputs=_ints(32),
    outputs={"y": ((32,), "int32")},
    grid=(32, 1, 1),
    threadgroup=(32, 1, 1),
    constructs="cuda_synchronisation.__syncwarp",
)
def cuda_syncwarp(x):
    return np.roll(x, -2) + np.int32(1)


@cuda_body(
    """
    auto grid = cooperative_groups::this_grid();
    auto block = cg::this_thread_block();
    auto i = grid.thread_rank();
    y[4 * i] = i;
    y[4 * i + 1] = block.thread_rank() + 1000 * block.size();
    y[4 * i + 2] = block.group_index().x + 10 * block.thread_index().y + 100 * block.dim_threads().x;
    y[4 * i + 3] = grid.size() + grid.num_blocks();
    """,
    outputs={"y": ((48, 4), "int64")},
    grid=(12, 4, 1),
    threadgroup=(6, 4, 1),
)
def cuda_group_ranks():
    i = np.arange(48)
    in_block = i % 24
    columns = [i, in_block + 24000, i // 24 + 10 * (in_block // 6) + 600, np.full(48, 50)]
    return np.stack(columns, 1).astype(np.int64)


@cuda_body(
    """
    auto block = cg::this_thread_block();
    auto tile = cg::tiled_partition<8>(block);
    int v = x[block.thread_rank()];
    int sum = cg::reduce(tile, v, cg::plus<int>());
    int low = cg::reduce(tile, v, cg::less<int>());
    int high = cg::reduce(tile, v, cg::greater<int>());
    y[block.thread_rank()] = sum + 1000 * low + 1000000 * high;
    y[64 + block.thread_rank()] = tile.meta_group_rank() + 100 * tile.meta_group_size() + 10000 * tile.thread_rank();
    y[128 + block.thread_rank()] = tile.shfl(v, 3) + 1000 * tile.shfl_xor(v, 5) + 1000000 * tile.ballot(v > 50);
    """,
    inputs=_ints(64),
    outputs={"y": ((3, 64), "int32")},
    grid=(64, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="cuda_cooperative_groups.tiled_partition",
)
def cuda_tiles(x):
    tiles = x.reshape(8, 8)
    reduced = tiles.sum(1) + 1000 * tiles.min(1) + 1000000 * tiles.max(1)
    rank = np.arange(64)
    places = rank // 8 + 800 + 10000 * (rank % 8)
    votes = ((tiles > 50) << np.arange(8)).sum(1)[:, None]
    exchanged = tiles[:, 3:4] + 1000 * tiles[:, np.arange(8) ^ 5] + 1000000 * votes
    return np.stack([np.repeat(reduced, 8), places, exchanged.reshape(-1)]).astype(np.int32)


@cuda_body(
    """
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    auto quad = cg::tiled_partition<4>(warp);
    int v = x[threadIdx.x], same = 0;
    unsigned all = quad.match_all(v >= 0, same);
    y[threadIdx.x] = quad.shfl_down(v, 1) + 1000 * quad.shfl_up(v, 1) + 1000000 * (int)quad.match_any(v);
    y[32 + threadIdx.x] = quad.any(v > 80) + 2 * quad.all(v > 10) + 4 * (int)all + 100 * quad.meta_group_rank();
    quad.sync();
    """,
    inputs=_ints(32),
    outputs={"y": ((2, 32), "int32")},
    grid=(32, 1, 1),
    threadgroup=(32, 1, 1),
    constructs="cuda_cooperative_groups.tiles_of_tiles",
)
def cuda_tiles_of_tiles(x):
    quads = x.reshape(8, 4)
    lane = np.arange(4)
    down, up = quads[:, np.minimum(lane + 1, 3)], quads[:, np.maximum(lane - 1, 0)]
    same = ((quads[:, :, None] == quads[:, None, :]) << lane).sum(2)
    votes = (quads > 80).any(1) + 2 * (quads > 10).all(1) + 60 + 100 * np.arange(8)
    return np.stack([(down + 1000 * up + 1000000 * same).reshape(-1), np.repeat(votes, 4)]).astype(np.int32)


@cuda_body(
    """
    int v = x[threadIdx.x];
    y[threadIdx.x] = 0;
    if (v % 3 == 0) {
      auto active = cg::coalesced_threads();
      int sum = cg::reduce(active, v, cg::plus<int>());
      y[threadIdx.x] = sum + 10000 * (active.thread_rank() == active.size() - 1) + 100000 * (active.ballot(1) + 1 == (1u << active.size()));
    }
    """,
    inputs=_ints(32),
    outputs={"y": ((32,), "int32")},
    grid=(32, 1, 1),
    threadgroup=(32, 1, 1),
)
def cuda_coalesced_threads(x):
    active = x % 3 == 0
    last = np.arange(32) == np.max(np.nonzero(active)[0], initial=-1)
    return np.where(active, x[active].sum() + 10000 * last + 100000, 0).astype(np.int32)


@cuda_body(
    """
    extern __shared__ int scratch[];
    auto block = cg::this_thread_block();
    int sum = sum_of(block, scratch, x[block.thread_rank()]);
    if (block.thread_rank() == 0) y[0] = sum;
    """,
    header="""
    __device__ int sum_of(cooperative_groups::thread_group g, int* scratch, int v) {
      for (int half_size = g.size() / 2; half_size > 0; half_size /= 2) {
        scratch[g.thread_rank()] = v;
        g.sync();
        if (g.thread_rank() < half_size) v += scratch[g.thread_rank() + half_size];
        g.sync();
      }
      return v;
    }
    """,
    shared_memory=512,
    inputs=_ints(128),
    outputs={"y": ((1,), "int32")},
    grid=(128, 1, 1),
    threadgroup=(128, 1, 1),
    constructs="cuda_cooperative_groups.thread_group",
)
def cuda_any_group(x):
    return np.array([x.sum()], np.int32)


@cuda_body(
    """
    struct Pair { float value; int index; bool used; };
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    Pair best{x[threadIdx.x], (int)threadIdx.x, true};
    for (int d = 16; d > 0; d /= 2) {
      Pair other = warp.shfl_down(best, d);
      if (other.value > best.value) best = other;
    }
    if (threadIdx.x == 0) { y[0] = best.index; y[1] = best.used; }
    """,
    inputs=_floats(32),
    outputs={"y": ((2,), "int32")},
    grid=(32, 1, 1),
    threadgroup=(32, 1, 1),
    constructs="cuda_structure.struct",
)
def cuda_shuffle_of_a_structure(x):
    return np.array([x.argmax(), 1], np.int32)


_ATOMICS = {
    "Add": ("int32", lambda old, v: old + v.sum()),
    "Sub": ("int32", lambda old, v: old - v.sum()),
    "Min": ("int32", lambda old, v: min(old, v.min())),
    "Max": ("int32", lambda old, v: max(old, v.max())),
    "And": ("uint32", lambda old, v: old & np.bitwise_and.reduce(v)),
    "Or": ("uint32", lambda old, v: old | np.bitwise_or.reduce(v)),
    "Xor": ("uint32", lambda old, v: old ^ np.bitwise_xor.reduce(v)),
}
for _name, (_dtype, _apply) in _ATOMICS.items():
    for _scope in ("", "_block", "_system"):

        def _atomic(x, apply=_apply, dtype=_dtype):
            return np.array([apply(np.dtype(dtype).type(21), x)]).astype(dtype)

        cuda_body(
            f"""
            __shared__ T cell;
            if (threadIdx.x == 0) cell = 21;
            __syncthreads();
            atomic{_name}{_scope}(&cell, x[threadIdx.x]);
            __syncthreads();
            if (threadIdx.x == 0) y[0] = cell;
            """,
            name=f"cuda_atomic{_name}{_scope}",
            template=[("T", Dtype(_dtype))],
            constructs="" if _scope else f"cuda_atomics.atomic{_name}",
            inputs=_ints(64, 1, 100, np.dtype(_dtype)),
            outputs={"y": ((1,), _dtype)},
            grid=(64, 1, 1),
            threadgroup=(64, 1, 1),
        )(_atomic)

for _dtype in ("float32", "float64", "uint64"):

    def _added(x):
        return x.sum(keepdims=True)

    cuda_body(
        "atomicAdd(&y[0], x[blockIdx.x * blockDim.x + threadIdx.x]);"
        if _dtype != "uint64"
        else "atomicAdd((unsigned long long*)y, (unsigned long long)x[blockIdx.x * blockDim.x + threadIdx.x]);",
        name=f"cuda_atomic_add_of_{_dtype}",
        init_value=0,
        constructs={"float32": "cuda_atomics.of_float", "float64": "cuda_atomics.of_double"}.get(_dtype, ""),
        inputs=_ints(200, dtype=np.dtype(_dtype)),
        outputs={"y": ((1,), _dtype)},
        grid=(200, 1, 1),
        threadgroup=(50, 1, 1),
    )(_added)


@cuda_body(
    """
    // Each adds through compare and exchange, and takes a ticket.
    int v = x[threadIdx.x], seen, before = y[0];
    do {
      seen = before;
      before = atomicCAS(&y[0], seen, seen + v);
    } while (before != seen);
    atomicInc((unsigned*)&y[1], 9);
    atomicDec((unsigned*)&y[2], 9);
    if (v == 99) atomicExch(&y[3], v);
    """,
    init_value=0,
    inputs=lambda rng: {"x": np.append(rng.integers(0, 99, 63), 99).astype(np.int32)},
    outputs={"y": ((4,), "int32")},
    grid=(64, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="cuda_atomics.atomicCAS cuda_atomics.atomicInc cuda_atomics.atomicDec cuda_atomics.atomicExch",
)
def cuda_compare_and_exchange(x):
    return np.array([x.sum(), 64 % 10, (-64) % 10, 99], np.int32)


@cuda_body(
    """
    __shared__ bool is_last;
    if (threadIdx.x == 0) {
      sums[blockIdx.x] = 0;
      for (int i = 0; i < 32; ++i) sums[blockIdx.x] += x[32 * blockIdx.x + i];
      __threadfence();
      is_last = atomicAdd(&counter[0], 1u) == gridDim.x - 1;
      if (is_last) {
        int total = 0;
        for (int b = 0; b < gridDim.x; ++b) total += ((volatile int*)sums)[b];
        y[0] = total;
      }
    }
    """,
    init_value=0,
    inputs=_ints(256),
    outputs={"sums": ((8,), "int32"), "counter": ((1,), "uint32"), "y": ((1,), "int32")},
    grid=(256, 1, 1),
    threadgroup=(32, 1, 1),
    constructs="cuda_memory.volatile cuda_launch.several_outputs",
)
def cuda_last_block(x):
    sums = x.reshape(8, 32).sum(1).astype(np.int32)
    return sums, np.array([8], np.uint32), sums.sum(keepdims=True).astype(np.int32)


@cuda_body(
    """
    __shared__ int values[64];
    int t = threadIdx.x, v = x[blockIdx.x * 64 + t], r;
    if (t % 32 < 16) r = __shfl_xor_sync(0xffffffff, v, 16);
    else r = -__shfl_xor_sync(0xffffffff, v, 16);
    if (v & 1) {
      values[t] = r;
      __syncwarp();
      r += values[t ^ 1];
    } else {
      values[t] = 2 * r;
      __syncwarp();
      r += 100 * values[t ^ 1];
    }
    y[blockIdx.x * 64 + t] = r;
    """,
    inputs=_ints(128),
    outputs={"y": ((128,), "int32")},
    grid=(128, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="cuda_warp.calls_in_branches",
)
def cuda_calls_in_branches(x):
    t = np.arange(128)
    swapped = x[t ^ 16] * np.where(t % 32 < 16, 1, -1)
    values = np.where(x & 1, swapped, 2 * swapped)
    return (swapped + np.where(x & 1, 1, 100) * values[t ^ 1]).astype(np.int32)


@cuda_body(
    """
    int t = threadIdx.x;
    volatile int* places = y;
    while (atomicCAS(&y[0], 0, 1) != 0);
    __threadfence();
    int mine = places[1];
    places[1] = mine + x[blockIdx.x * 64 + t];
    __threadfence();
    atomicExch(&y[0], 0);
    """,
    inputs=_ints(128),
    outputs={"y": ((2,), "int32")},
    init_value=0,
    grid=(128, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="cuda_atomics.lock",
)
def cuda_lock_of_all_threads(x):
    return np.array([0, x.sum()], np.int32)
