"""Bodies whose lanes change one place by atomic operations (docs/design/simd-engine.md, Atomics)."""

import numpy as np

from bodies import body

# Those of which a simdgroup is one operation.
COMBINED: list[str] = []

_COUNT = 1000
_OPERATIONS = {
    "add": (np.add, 0),
    "sub": (np.subtract, 0),
    "and": (np.bitwise_and, -1),
    "or": (np.bitwise_or, 0),
    "xor": (np.bitwise_xor, 0),
    "max": (np.maximum, -(2**31)),
    "min": (np.minimum, 2**31 - 1),
}


# Numbers by which another neutral element, or another sign, gives another result.
_NUMBERS = {
    "max": {"int": (-1000, -1), "uint": (0, 2**32)},
    "min": {"int": (1, 1000), "uint": (1, 2**32)},
}


def _add(name, kind, operation, operand, of_x, place="out[0]", condition="true"):
    """All threads for which the condition holds change a place."""
    COMBINED.append(name)
    lowest_and_highest = _NUMBERS.get(operation, {"int": (-(2**31), 2**31), "uint": (0, 2**32)})[kind]
    combine, nothing = _OPERATIONS[operation]
    dtype = {"int": "int32", "uint": "uint32"}[kind]
    nothing = nothing % 2**32 if kind == "uint" and nothing >= -1 else (0 if kind == "uint" else nothing)

    @body(
        f"""
        uint i = thread_position_in_grid.x;
        if (i == 0) atomic_fetch_add_explicit(&out[1], 1, memory_order_relaxed);
        if ({condition}) atomic_fetch_{operation}_explicit(&{place}, {operand}, memory_order_relaxed);
        """,
        name=name,
        inputs=lambda rng: {"x": rng.integers(*lowest_and_highest, _COUNT).astype(dtype)},
        outputs={"out": ((2,), dtype)},
        grid=(_COUNT, 1, 1),
        threadgroup=(100, 1, 1),
        atomic_outputs=True,
        init_value=nothing,
        constructs=f"synchronisation.fetch_{operation}",
    )
    def _(x):
        i = np.arange(_COUNT)
        taken = {
            "true": i >= 0,
            "x[i] % 3 == 0": x % 3 == 0,
            "i % 32 < 5": i % 32 < 5,
            "i % 100 == 70": i % 100 == 70,
            "i < 500": i < 0,
        }[condition]
        with np.errstate(over="ignore"):
            whole = np.array(nothing).astype(np.int64)
            for value in of_x(x)[taken].astype(np.int64):
                whole = combine(whole, value)
        one = (nothing + 1) % 2**32
        return np.array([int(whole) % 2**32, one], np.uint64).astype(np.uint32).view(dtype)


for _operation in _OPERATIONS:
    for _kind in ("int", "uint"):
        _operand, _of_x = "x[i]", lambda x: x
        if _operation == "and":
            _operand, _of_x = f"~({_kind}(1) << (x[i] & 7))", lambda x: ~(1 << (x.astype(np.int64) & 7))
        _add(f"counts_{_operation}_{_kind}", _kind, _operation, _operand, _of_x)
        _add(f"counts_some_{_operation}_{_kind}", _kind, _operation, _operand, _of_x, condition="x[i] % 3 == 0")
        _add(f"counts_first_lanes_{_operation}_{_kind}", _kind, _operation, _operand, _of_x, condition="i % 32 < 5")
        _add(f"counts_few_{_operation}_{_kind}", _kind, _operation, _operand, _of_x, condition="i % 100 == 70")
        # Beyond the array.
        _add(
            f"counts_nowhere_{_operation}_{_kind}",
            _kind,
            _operation,
            _operand,
            _of_x,
            place="out[5]",
            condition="i < 500",
        )
    _add(f"counts_same_{_operation}", "int", _operation, "5", lambda x: np.full(_COUNT, 5), condition="x[i] % 3 == 0")
    _add(f"counts_all_same_{_operation}", "int", _operation, "5", lambda x: np.full(_COUNT, 5))


@body(
    """
    uint i = thread_position_in_grid.x;
    uint place = atomic_fetch_add_explicit(&count[0], 2, memory_order_relaxed) / 2;
    // Each place once, whichever thread has it.
    atomic_fetch_add_explicit(&taken[place], 1, memory_order_relaxed);
    if (x[i] > 50) {
        uint from_end = atomic_fetch_sub_explicit(&count[1], 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&taken[from_end + 2000], 1, memory_order_relaxed);
    }
    """,
    name="tickets",
    inputs=lambda rng: {"x": rng.integers(0, 100, _COUNT).astype(np.int32)},
    outputs={"count": ((2,), "uint32"), "taken": ((2001,), "uint32")},
    grid=(_COUNT, 1, 1),
    threadgroup=(100, 1, 1),
    atomic_outputs=True,
    init_value=0,
    constructs="synchronisation.fetch_add synchronisation.fetch_sub",
)
def _(x):
    few = int((x > 50).sum())
    taken = np.zeros(2001, np.uint32)
    taken[:_COUNT] += 1
    taken[2001 - few :] += 1
    return np.array([2 * _COUNT, -few % 2**32], np.uint64).astype(np.uint32), taken


@body(
    """
    threadgroup atomic_uint found;
    uint t = thread_position_in_threadgroup.x, i = thread_position_in_grid.x;
    if (t == 0) atomic_store_explicit(&found, 0, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (x[i] > 50) atomic_fetch_max_explicit(&found, uint(x[i]), memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    out[i] = atomic_load_explicit(&found, memory_order_relaxed) + x[i];
    """,
    name="largest_of_a_threadgroup",
    inputs=lambda rng: {"x": rng.integers(0, 100, 1024).astype(np.int32)},
    outputs={"out": ((1024,), "int32")},
    grid=(1024, 1, 1),
    threadgroup=(128, 1, 1),
    constructs="synchronisation.fetch_max synchronisation.threadgroup_barrier",
)
def _(x):
    groups = x.reshape(8, 128)
    return (groups + np.where(groups > 50, groups, 0).max(1, keepdims=True)).ravel()
