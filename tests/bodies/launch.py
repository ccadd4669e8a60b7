"""Grids without threads, and initial values of outputs (docs/language.md 2.1, 3.3)."""

from typing import Any

import numpy as np

from bodies import DTYPES, body

for _axis in range(3):
    _x, _y, _z = (0 if d == _axis else 8 for d in range(3))
    body(
        "out[thread_position_in_grid.x] = x[thread_position_in_grid.x];",
        name=f"zero_grid_{'xyz'[_axis]}",
        inputs=lambda rng: {"x": np.arange(8, dtype=np.float32)},
        outputs={"out": ((8,), "float32")},
        grid=(_x, _y, _z),
        threadgroup=(8, 1, 1),
        init_value=3,
        constructs="launch.zero_grid launch.init_value",
    )(lambda x: np.full(8, 3, np.float32))

# What a value becomes in each type: rounded to it, saturated, whether it is not 0.
_INITIAL: dict[float, dict[str, Any]] = {
    1.0: dict.fromkeys(DTYPES, 1),
    2.5: {"float16": 2.5, "bfloat16": 2.5, "float32": 2.5, "complex64": 2.5, "int32": 2, "uint8": 2, "bool": True},
    -7.0: {"int8": -7, "int64": -7, "float16": -7, "uint8": 0, "uint64": 0},
    70000.0: {"int8": 127, "uint16": 65535, "int32": 70000, "float16": np.inf, "float32": 70000},
    float("inf"): {"float32": np.inf, "bfloat16": np.inf, "int16": 32767, "uint32": 2**32 - 1},
    float("nan"): {"float16": np.nan, "float32": np.nan, "int32": 0},
    0.1: {"float16": 0.1, "bfloat16": 0.1, "float32": 0.1, "bool": True},
}


def _initial(value, dtypes):
    def reference():
        outputs = []
        for dtype, converted in dtypes.items():
            out = np.full(6, converted, DTYPES[dtype])
            out[1] = DTYPES[dtype].type(1)
            outputs.append(out)
        return tuple(outputs)

    return reference


for _number, (_value, _dtypes) in enumerate(_INITIAL.items()):
    body(
        "\n".join(f"{name}_out[1] = {'true' if name == 'bool' else 1};" for name in _dtypes),
        name=f"init_value_{_number}",
        outputs={f"{name}_out": ((6,), name) for name in _dtypes},
        grid=(1, 1, 1),
        threadgroup=(1, 1, 1),
        init_value=_value,
        constructs="launch.init_value",
    )(_initial(_value, _dtypes))


@body(
    """
    // Exactly the threads of the grid run: one more would write behind the array or raise the count.
    atomic_fetch_add_explicit(&count[0], 1u, memory_order_relaxed);
    uint3 at = thread_position_in_grid;
    uint place = at.x + 7 * (at.y + 11 * at.z);
    atomic_fetch_add_explicit(&count[1 + place], place, memory_order_relaxed);
    """,
    outputs={"count": ((1 + 7 * 11 * 13 + 50,), "uint32")},
    grid=(7, 11, 13),
    threadgroup=(4, 4, 4),
    atomic_outputs=True,
    init_value=0,
    constructs="launch.exact_grid launch.edge_threadgroups synchronisation.fetch_add",
)
def every_thread_once():
    return np.concatenate([[1001], np.arange(1001), np.zeros(50)]).astype(np.uint32)


_BARRIER_IN_HEADER = """
inline float total(float value, threadgroup float* shared, uint place) {
  shared[place] = value;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  return shared[0];
}
"""

for _name, _statement, _header in (
    ("barrier_in_dead_code", "if (N > 100) threadgroup_barrier(mem_flags::mem_threadgroup);", ""),
    ("barrier_in_unused_function", "", _BARRIER_IN_HEADER),
):
    for _threads in (32, 64, 1024):

        @body(
            f"""
            uint i = thread_position_in_grid.x;
            {_statement}
            out[i] = x[i] + N;
            """,
            name=f"{_name}_{_threads}",
            header=_header,
            inputs=lambda rng: {"x": np.arange(4096, dtype=np.float32)},
            outputs={"out": ((4096,), "float32")},
            template=[("N", 3)],
            grid=(4096, 1, 1),
            threadgroup=(_threads, 1, 1),
            init_value=-7,
            constructs="launch.exact_grid",
        )
        def barrier_that_nobody_meets(x):
            return x + 3
