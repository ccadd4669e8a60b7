"""Atomics, fences and what they order."""

import numpy as np

from bodies import DTYPES, body

# ---- Every operation of every type, in both memories
#
# The results do not depend on the order in which threads come.

_OPERATIONS = {
    "add": (lambda values, start: start + values.sum()),
    "sub": (lambda values, start: start - values.sum()),
    "min": (lambda values, start: min(start, values.min())),
    "max": (lambda values, start: max(start, values.max())),
    "and": (lambda values, start: np.bitwise_and.reduce(values) & start),
    "or": (lambda values, start: np.bitwise_or.reduce(values) | start),
    "xor": (lambda values, start: np.bitwise_xor.reduce(values) ^ start),
}

for _name, _dtype, _operations in (
    ("int", "int32", list(_OPERATIONS)),
    ("uint", "uint32", list(_OPERATIONS)),
    ("float", "float32", ["add", "sub"]),
):
    _rows = len(_operations)

    def _start(dtype):
        return DTYPES[dtype].type(77)

    # The device's memory: an output of atomics.
    body(
        "\n".join(
            ["uint i = thread_position_in_grid.x;", f"{_name} v = x[i];"]
            + [
                f"atomic_fetch_{operation}_explicit(&out[{row}], v, memory_order_relaxed);"
                for row, operation in enumerate(_operations)
            ]
        ),
        name=f"atomic_{_name}_in_device_memory",
        inputs=lambda rng, dtype=_dtype: {"x": rng.integers(-500, 500, 300).astype(dtype)},
        outputs={"out": ((_rows,), _dtype)},
        grid=(300, 1, 1),
        threadgroup=(64, 1, 1),
        atomic_outputs=True,
        init_value=77,
        constructs=f"types.atomic_{_name} launch.atomic_outputs synchronisation.device_atomics "
        + " ".join(f"synchronisation.fetch_{operation}" for operation in _operations),
    )(
        lambda x, operations=_operations, dtype=_dtype: np.array(
            [_OPERATIONS[operation](x, _start(dtype)) for operation in operations], DTYPES[dtype]
        )
    )

    # Metal has no float atomics in threadgroup memory.
    if _name == "float":
        continue
    body(
        "\n".join(
            [
                f"threadgroup atomic_{_name} cells[{_rows}];",
                "uint i = thread_position_in_grid.x, t = thread_index_in_threadgroup;",
                f"if (t < {_rows}) atomic_store_explicit(&cells[t], 77, memory_order_relaxed);",
                "threadgroup_barrier(mem_flags::mem_threadgroup);",
                f"{_name} v = x[i];",
            ]
            + [
                f"atomic_fetch_{operation}_explicit(cells + {row}, v, memory_order_relaxed);"
                for row, operation in enumerate(_operations)
            ]
            + [
                "threadgroup_barrier(mem_flags::mem_threadgroup);",
                f"if (t < {_rows})",
                f"  out[threadgroup_position_in_grid.x * {_rows} + t] =",
                "      atomic_load_explicit(&cells[t], memory_order_relaxed);",
            ]
        ),
        name=f"atomic_{_name}_in_threadgroup_memory",
        inputs=lambda rng, dtype=_dtype: {"x": rng.integers(-500, 500, 240).astype(dtype)},
        outputs={"out": ((3, _rows), _dtype)},
        grid=(240, 1, 1),
        threadgroup=(80, 1, 1),
        constructs=f"types.atomic_{_name} address_spaces.threadgroup_atomic synchronisation.threadgroup_atomics "
        "synchronisation.load synchronisation.store "
        + " ".join(f"synchronisation.fetch_{operation}" for operation in _operations),
    )(
        lambda x, operations=_operations, dtype=_dtype: np.array(
            [[_OPERATIONS[operation](block, _start(dtype)) for operation in operations] for block in x.reshape(3, 80)],
            DTYPES[dtype],
        )
    )


@body(
    """
    uint i = thread_position_in_grid.x;
    atomic_min_explicit(&range[0], x[i], memory_order_relaxed);
    atomic_max_explicit(&range[1], x[i], memory_order_relaxed);
    """,
    inputs=lambda rng: {"x": rng.integers(2**40, 2**62, 100, np.uint64)},
    outputs={"range": ((2,), "uint64")},
    grid=(100, 1, 1),
    threadgroup=(32, 1, 1),
    atomic_outputs=True,
    init_value=2**50,
    constructs="types.atomic_ulong synchronisation.ulong_min_max launch.atomic_outputs",
)
def range_of_longs(x):
    return np.array([min(x.min(), 2**50), max(x.max(), 2**50)], np.uint64)


@body(
    """
    threadgroup atomic_bool found;
    uint i = thread_position_in_grid.x;
    uint group = threadgroup_position_in_grid.x;
    if (thread_index_in_threadgroup == 0) atomic_store_explicit(&found, false, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    // Exactly one of those who find something is the first.
    if (x[i] == 7) {
      bool expected = false;
      if (!atomic_exchange_explicit(&found, true, memory_order_relaxed))
        atomic_fetch_add_explicit((device atomic_uint*)&firsts[group], 1u, memory_order_relaxed);
      if (atomic_compare_exchange_weak_explicit((device atomic_bool*)&flags[group], &expected, true,
                                                memory_order_relaxed, memory_order_relaxed))
        atomic_fetch_add_explicit((device atomic_uint*)&firsts[group], 100u, memory_order_relaxed);
    }
    """,
    inputs=lambda rng: {"x": (rng.integers(0, 4, 128) * np.repeat([7, 1, 7, 2], 32)).astype(np.int32)},
    outputs={"flags": ((4,), "bool"), "firsts": ((4,), "uint32")},
    grid=(128, 1, 1),
    threadgroup=(32, 1, 1),
    init_value=0,
    constructs="types.atomic_bool synchronisation.exchange synchronisation.compare_exchange synchronisation.fetch_add "
    "address_spaces.threadgroup_atomic",
)
def one_first_finder(x):
    found = (x.reshape(4, 32) == 7).any(axis=1)
    return found, np.where(found, 101, 0).astype(np.uint32)


@body(
    """
    uint i = thread_position_in_grid.x;
    // What goes in comes out once, but for what is in at the end; and each ticket is drawn once.
    uint before = atomic_exchange_explicit(&cells[0], i + 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&cells[1], before, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_device);
    if (i == 0) {
      uint last = atomic_exchange_explicit(&cells[0], 0, memory_order_relaxed);
      atomic_fetch_add_explicit(&cells[1], last, memory_order_relaxed);
    }
    uint ticket = atomic_fetch_sub_explicit(&cells[2], 1u, memory_order_relaxed);
    atomic_fetch_add_explicit(&cells[3 + ~ticket + 1], 1u, memory_order_relaxed);
    """,
    outputs={"cells": ((103,), "uint32")},
    grid=(100, 1, 1),
    threadgroup=(100, 1, 1),
    atomic_outputs=True,
    init_value=0,
    constructs="synchronisation.exchange synchronisation.fetch_add synchronisation.fetch_sub",
)
def exchanges_and_tickets():
    return np.array([0, 5050, 2**32 - 100] + [1] * 100, np.uint32)


@body(
    """
    uint i = thread_position_in_grid.x;
    // A maximum of floats, by comparing and exchanging their bits.
    device atomic_uint* cell = (device atomic_uint*)&largest[i % 4];
    uint seen = atomic_load_explicit(cell, memory_order_relaxed);
    while (as_type<float>(seen) < x[i] &&
           !atomic_compare_exchange_weak_explicit(cell, &seen, as_type<uint>(x[i]), memory_order_relaxed,
                                                  memory_order_relaxed)) {
    }
    // A sum of products, one digit at a time.
    device atomic_int* product = (device atomic_int*)(products + i % 4);
    int old = atomic_load_explicit(product, memory_order_relaxed), next;
    do {
      next = old * 3 + 1;
    } while (!atomic_compare_exchange_weak_explicit(product, &old, next, memory_order_relaxed, memory_order_relaxed));
    """,
    inputs=lambda rng: {"x": rng.normal(size=64).astype(np.float32)},
    outputs={"largest": ((4,), "float32"), "products": ((4,), "int32")},
    grid=(64, 1, 1),
    threadgroup=(16, 1, 1),
    init_value=0,
    constructs="synchronisation.compare_exchange synchronisation.load address_spaces.cast_to_atomic structure.do "
    "structure.while types.as_type",
)
def compare_and_exchange(x):
    largest = np.maximum(x.reshape(16, 4).max(axis=0), 0)
    value = 0
    for _ in range(16):
        value = 3 * value + 1
    return largest, np.full(4, value, np.int64).astype(np.int32)


@body(
    """
    threadgroup uint message[2];
    threadgroup atomic_uint ready;
    uint t = thread_index_in_threadgroup;
    if (t == 0) atomic_store_explicit(&ready, 0, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (t == 32) {
      message[0] = 42;
      atomic_thread_fence(mem_flags::mem_threadgroup, memory_order_release);
      atomic_store_explicit(&ready, 1, memory_order_release);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
    if (t == 0) {
      uint seen = atomic_load_explicit(&ready, memory_order_acquire);
      atomic_thread_fence(mem_flags::mem_threadgroup, memory_order_acquire, thread_scope_threadgroup);
      atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
      out[0] = message[0] * seen;
      out[1] = atomic_exchange_explicit(&ready, 5, memory_order_acq_rel);
      out[2] = atomic_fetch_add_explicit(&ready, 6, memory_order_seq_cst);
      uint expected = 11;
      bool done = atomic_compare_exchange_weak_explicit(&ready, &expected, 12, memory_order_acq_rel,
                                                        memory_order_acquire);
      out[3] = done;
      done = atomic_compare_exchange_weak_explicit(&ready, &expected, 13, memory_order_relaxed, memory_order_relaxed);
      out[4] = 100 * done + expected;
      atomic_thread_fence(mem_flags::mem_none, memory_order_relaxed, thread_scope_simdgroup);
    }
    """,
    outputs={"out": ((5,), "uint32")},
    grid=(64, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="synchronisation.atomic_thread_fence synchronisation.memory_orders synchronisation.load "
    "synchronisation.store synchronisation.exchange synchronisation.compare_exchange synchronisation.fetch_add",
)
def all_memory_orders():
    return np.array([42, 1, 5, 1, 12], np.uint32)


# ---- Barriers and what they order


@body(
    """
    uint t = thread_index_in_threadgroup;
    uint base = threadgroup_position_in_grid.x * threads_per_threadgroup.x;
    scratch[base + t] = x[base + t] * 2;
    threadgroup_barrier(mem_flags::mem_device);
    int next = scratch[base + (t + 1) % threads_per_threadgroup.x];
    threadgroup_barrier(mem_flags::mem_device);
    scratch[base + t] = next;
    threadgroup_barrier(mem_flags(3));
    y[base + t] = scratch[base + threads_per_threadgroup.x - 1 - t];
    """,
    inputs=lambda rng: {"x": rng.integers(-99, 99, 100, np.int32)},
    outputs={"scratch": ((100,), "int32"), "y": ((100,), "int32")},
    grid=(100, 1, 1),
    threadgroup=(50, 1, 1),
    constructs="synchronisation.threadgroup_barrier synchronisation.mem_flags",
)
def barrier_over_device_memory(x):
    scratch = np.roll(2 * x.reshape(2, 50), -1, axis=1)
    return scratch.reshape(100), scratch[:, ::-1].reshape(100)


@body(
    """
    threadgroup float row[96];
    uint t = thread_index_in_threadgroup;
    ushort lane = thread_index_in_simdgroup;
    threadgroup float* mine = row + 32 * simdgroup_index_in_threadgroup;
    mine[lane] = x[t];
    simdgroup_barrier(mem_flags::mem_threadgroup);
    // Each simdgroup on its own: neighbours are exchanged, then sums of growing spans.
    for (ushort distance = 1; distance < 32; distance <<= 1) {
      float other = lane >= distance ? mine[lane - distance] : 0;
      simdgroup_barrier(mem_flags::mem_threadgroup);
      mine[lane] += other;
      simdgroup_barrier(mem_flags::mem_threadgroup);
    }
    y[t] = mine[31 - lane];
    """,
    inputs=lambda rng: {"x": rng.integers(-9, 9, 96).astype(np.float32)},
    outputs={"y": ((96,), "float32")},
    grid=(96, 1, 1),
    threadgroup=(96, 1, 1),
    constructs="synchronisation.simdgroup_barrier synchronisation.mem_flags barriers.scan",
)
def scan_by_simdgroup_barriers(x):
    return np.cumsum(x.reshape(3, 32), axis=1)[:, ::-1].reshape(96)


# ---- Across threadgroups


@body(
    """
    threadgroup float partial[64];
    threadgroup bool is_last;
    uint t = thread_index_in_threadgroup, group = threadgroup_position_in_grid.x;
    uint groups = threadgroups_per_grid.x;
    float own = 0;
    for (uint j = thread_position_in_grid.x; j < uint(x_shape[0]); j += threads_per_grid.x) own += x[j];
    partial[t] = own;
    for (uint stride = 32; stride > 0; stride /= 2) {
      threadgroup_barrier(mem_flags::mem_threadgroup);
      if (t < stride) partial[t] += partial[t + stride];
    }
    if (t == 0) {
      sums[group] = partial[0];
      atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
      device atomic_uint* arrived = (device atomic_uint*)count;
      is_last = atomic_fetch_add_explicit(arrived, 1, memory_order_relaxed) == groups - 1;
      atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
    if (!is_last) return;
    // The last to arrive adds up what all have written.
    partial[t] = t < groups ? sums[t] : 0;
    for (uint stride = 32; stride > 0; stride /= 2) {
      threadgroup_barrier(mem_flags::mem_threadgroup);
      if (t < stride) partial[t] += partial[t + stride];
    }
    if (t == 0) total[0] = partial[0];
    """,
    inputs=lambda rng: {"x": rng.integers(-50, 50, 5000).astype(np.float32)},
    outputs={"total": ((1,), "float32"), "sums": ((20,), "float32"), "count": ((1,), "uint32")},
    grid=(20 * 64, 1, 1),
    threadgroup=(64, 1, 1),
    init_value=0,
    constructs="synchronisation.last_arrival synchronisation.atomic_thread_fence synchronisation.fetch_add "
    "barriers.last_arrival barriers.tree_reduction address_spaces.threadgroup_scalar address_spaces.cast_to_atomic",
)
def sum_by_last_arrival(x):
    # Small integers: every order of addition gives the same.
    padded = np.zeros(5120, np.float32)
    padded[:5000] = x
    sums = padded.reshape(-1, 20, 64).sum(axis=(0, 2))
    return np.array([x.sum()], np.float32), sums, np.array([20], np.uint32)


@body(
    """
    threadgroup uint before;
    uint t = thread_index_in_threadgroup, group = threadgroup_position_in_grid.x;
    uint value = x[thread_position_in_grid.x];
    uint inclusive = simd_prefix_inclusive_sum(value);
    if (t == 31) {
      device atomic_uint* state = (device atomic_uint*)states;
      uint sum = 0;
      // Each threadgroup waits for the one before it, which has begun earlier.
      if (group > 0) {
        uint published;
        do {
          published = atomic_load_explicit(&state[group - 1], memory_order_acquire);
        } while (published == 0);
        sum = published - 1;
      }
      atomic_store_explicit(&state[group], sum + inclusive + 1, memory_order_release);
      before = sum;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    y[thread_position_in_grid.x] = before + inclusive;
    """,
    inputs=lambda rng: {"x": rng.integers(0, 100, 40 * 32, np.uint32)},
    outputs={"y": ((40 * 32,), "uint32"), "states": ((40,), "uint32")},
    grid=(40 * 32, 1, 1),
    threadgroup=(32, 1, 1),
    init_value=0,
    constructs="synchronisation.waiting_threadgroups simdgroup.prefix_inclusive_sum synchronisation.memory_orders "
    "address_spaces.threadgroup_scalar structure.do",
)
def chained_scan(x):
    total = np.cumsum(x).astype(np.uint32)
    return total, total[31::32] + np.uint32(1)


@body(
    """
    threadgroup atomic_uint bins[64];
    uint t = thread_index_in_threadgroup;
    atomic_store_explicit(&bins[t], 0u, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = thread_position_in_grid.x; i < image_shape[0]; i += threads_per_grid.x)
      atomic_fetch_add_explicit(&bins[image[i] >> 2], 1u, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    uint counted = atomic_load_explicit(&bins[t], memory_order_relaxed);
    if (counted) atomic_fetch_add_explicit(&histogram[t], counted, memory_order_relaxed);
    """,
    inputs=lambda rng: {"image": rng.integers(0, 256, 9000, np.uint8)},
    outputs={"histogram": ((64,), "uint32")},
    grid=(512, 1, 1),
    threadgroup=(64, 1, 1),
    atomic_outputs=True,
    init_value=0,
    constructs="synchronisation.fetch_add address_spaces.threadgroup_atomic launch.atomic_outputs types.atomic_uint",
)
def histogram_in_two_levels(image):
    return np.bincount(image >> 2, minlength=64).astype(np.uint32)


@body(
    """
    uint i = thread_position_in_grid.x;
    if (x[i] <= 0) return;
    volatile device atomic_int* counter = (volatile device atomic_int*)count;
    int place = atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
    kept[place] = x[i];
    """,
    inputs=lambda rng: {"x": np.where(rng.integers(0, 2, 200) == 1, 5, -1).astype(np.int32)},
    outputs={"kept": ((200,), "int32"), "count": ((1,), "int32")},
    grid=(200, 1, 1),
    threadgroup=(50, 1, 1),
    init_value=0,
    constructs="synchronisation.fetch_add address_spaces.cast_to_atomic structure.early_return",
)
def compaction(x):
    count = int((x > 0).sum())
    return np.where(np.arange(200) < count, 5, 0).astype(np.int32), np.array([count], np.int32)
