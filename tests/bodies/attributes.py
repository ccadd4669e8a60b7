"""All attributes, and which threads run (docs/language.md 1.3, 2.1)."""

import numpy as np

from bodies import body
from bodies.model import Threads

_VECTORS = (
    "dispatch_threads_per_threadgroup",
    "grid_origin",
    "grid_size",
    "thread_position_in_grid",
    "thread_position_in_threadgroup",
    "threadgroup_position_in_grid",
    "threadgroups_per_grid",
    "threads_per_grid",
    "threads_per_threadgroup",
)
_SCALARS = (
    "dispatch_quadgroups_per_threadgroup",
    "dispatch_simdgroups_per_threadgroup",
    "quadgroup_index_in_threadgroup",
    "quadgroups_per_threadgroup",
    "simdgroup_index_in_threadgroup",
    "simdgroups_per_threadgroup",
    "thread_execution_width",
    "thread_index_in_quadgroup",
    "thread_index_in_simdgroup",
    "thread_index_in_threadgroup",
    "threads_per_simdgroup",
)

#: All of MLX's text.
NAMES = sorted((*_VECTORS, *_SCALARS))

# Whether threads wait for one another decides how they are run, and so where the attributes come from.
_LAUNCHES = {
    "even": ((64, 4, 2), (32, 2, 2)),
    "edges": ((37, 5, 3), (16, 3, 2)),
    "clamped": ((5, 3, 2), (8, 8, 8)),
    "one_thread": ((1, 1, 1), (1024, 1, 1)),
    "long": ((100, 1, 1), (33, 1, 1)),
}


def _source(waits):
    lines = [
        "uint3 at = thread_position_in_grid;",
        "uint i = at.x + threads_per_grid.x * (at.y + threads_per_grid.y * at.z);",
    ]
    if waits:
        lines.append("threadgroup_barrier(mem_flags::mem_none);")
    for row, name in enumerate(_VECTORS):
        lines.append(f"((device uint*)vectors)[3 * ({len(_VECTORS)} * i + {row}) + 0] = {name}.x;")
        lines.append(f"((device uint*)vectors)[3 * ({len(_VECTORS)} * i + {row}) + 1] = {name}.y;")
        lines.append(f"((device uint*)vectors)[3 * ({len(_VECTORS)} * i + {row}) + 2] = {name}.z;")
    for row, name in enumerate(_SCALARS):
        lines.append(f"scalars[{len(_SCALARS)} * i + {row}] = {name};")
    return "\n".join(lines)


def _expected(grid, threadgroup):
    threads = Threads(grid, threadgroup)
    index = threads.thread_index_in_threadgroup
    members = threads.threads_per_threadgroup.prod(axis=-1)
    full = np.prod(threads.size)

    def everywhere(value):
        return np.broadcast_to(np.asarray(value, np.uint32), (*threads.shape, *np.shape(value)))

    values = {
        "dispatch_threads_per_threadgroup": everywhere(threads.size),
        "grid_origin": everywhere([0, 0, 0]),
        "grid_size": everywhere(grid),
        "thread_position_in_grid": threads.thread_position_in_grid,
        "thread_position_in_threadgroup": threads.thread_position_in_threadgroup,
        "threadgroup_position_in_grid": threads.threadgroup_position_in_grid,
        "threadgroups_per_grid": everywhere(threads.groups),
        "threads_per_grid": everywhere(grid),
        "threads_per_threadgroup": threads.threads_per_threadgroup,
        "dispatch_quadgroups_per_threadgroup": everywhere(-(-full // 4)),
        "dispatch_simdgroups_per_threadgroup": everywhere(-(-full // 32)),
        "quadgroup_index_in_threadgroup": index // 4,
        "quadgroups_per_threadgroup": (members + 3) // 4,
        "simdgroup_index_in_threadgroup": index // 32,
        "simdgroups_per_threadgroup": (members + 31) // 32,
        "thread_execution_width": everywhere(32),
        "thread_index_in_quadgroup": index % 4,
        "thread_index_in_simdgroup": index % 32,
        "thread_index_in_threadgroup": index,
        "threads_per_simdgroup": everywhere(32),
    }
    count = grid[0] * grid[1] * grid[2]
    vectors = np.zeros((count, len(_VECTORS), 3), np.uint32)
    scalars = np.zeros((count, len(_SCALARS)), np.uint32)
    place = threads.index[threads.live]
    for row, name in enumerate(_VECTORS):
        vectors[place, row] = values[name][threads.live]
    for row, name in enumerate(_SCALARS):
        scalars[place, row] = values[name][threads.live]
    return vectors, scalars


for _name, (_grid, _threadgroup) in _LAUNCHES.items():
    for _waits in (False, True):
        _count = _grid[0] * _grid[1] * _grid[2]
        body(
            _source(_waits),
            name=f"attributes_{_name}" + ("_with_barrier" if _waits else ""),
            outputs={
                "vectors": ((_count, len(_VECTORS), 3), "uint32"),
                "scalars": ((_count, len(_SCALARS)), "uint32"),
            },
            grid=_grid,
            threadgroup=_threadgroup,
            constructs=" ".join(f"attributes.{name}" for name in _VECTORS + _SCALARS)
            + (" launch.edge_threadgroups" if _name in ("edges", "long") else "")
            + (" launch.clamped_threadgroup" if _name in ("clamped", "one_thread") else ""),
        )(lambda grid=_grid, threadgroup=_threadgroup: _expected(grid, threadgroup))


@body(
    """
    // An attribute takes any integer type; a local of an attribute's name in an inner block is the block's.
    ushort lane = thread_index_in_simdgroup;
    ushort2 position = ushort2(thread_position_in_threadgroup.xy);
    int total = 0;
    {
      int threads_per_simdgroup = 5;
      total = threads_per_simdgroup;
    }
    struct { int thread_index_in_quadgroup; } own = {7};
    uint at = thread_position_in_grid.y * threads_per_grid.x + thread_position_in_grid.x;
    out[at] = lane + 100 * position.x + 1000 * position.y + 10000 * total + 100000 * own.thread_index_in_quadgroup;
    """,
    outputs={"out": ((4, 8), "int32")},
    grid=(8, 4, 1),
    threadgroup=(8, 2, 1),
    constructs="attributes.thread_index_in_simdgroup attributes.threads_per_grid types.ushort2",
)
def attributes_as_other_types():
    y, x = np.mgrid[:4, :8]
    lane = (y % 2) * 8 + x
    return (lane + 100 * x + 1000 * (y % 2) + 50000 + 700000).astype(np.int32)
