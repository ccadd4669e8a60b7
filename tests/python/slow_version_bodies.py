"""Long Metal bodies of whose accesses some are out of bounds, or whose last simdgroups have fewer than 32 threads.

The code for full simdgroups in bounds runs the rest as well, or one thread runs after the other
(``compiler/versioning/function_versioning.h``).
"""

from __future__ import annotations

from typing import Any

import kiln
import numpy as np
from guarded_pages import GuardedPages

WIDE = 96
# Long enough that the checked version is one thread's code.
MIX = "".join(f"s = s * a[{k % 8}] + a[{(3 * k + 1) % 8}] * {k}.25f;\n" for k in range(150))
READ = "float a[8];\n" + "".join(f"a[{k}] = x[p + {k}];\n" for k in range(8))
ROW = "uint i = thread_position_in_grid.x, p = i;\n"
ROWS = f"uint i = thread_position_in_grid.y * {WIDE} + thread_position_in_grid.x, p = i;\n"

BODIES: dict[str, str] = {
    "one_row": ROW + READ + "float s = 1;\n" + MIX + "y[i] = s;",
    "every_second": ROW + "p = 2 * i;\n" + READ + "float s = 1;\n" + MIX + "y[i] = s;",
    "before_the_first": ROW + "p = i - 3;\n" + READ + "float s = 1;\n" + MIX + "y[i] = s;",
    "rows": ROWS + READ + "float s = 1;\n" + MIX + "y[i] = s;",
    "some_store": ROW + READ + "float s = 1;\n" + MIX + "if (a[0] > 2) y[i] = s;",
    "two_outputs": ROW + READ + "float s = 1;\n" + MIX + "z[i] = int(a[1] * 100); y[i] = s;",
    "reads_what_it_wrote": ROW + READ + "float s = 1;\ny[i] = a[3];\n" + MIX + "y[i] = s + y[i] * 2;",
    "indexed": ROW + READ + "float s = x[uint(a[0] * 16)];\n" + MIX + "y[i] = s;",
    "positions": (
        ROW
        + READ
        + "float s = thread_position_in_threadgroup.x + 64 * thread_index_in_threadgroup;\n"
        + MIX
        + "y[i] = s + 1e30f * thread_position_in_threadgroup.x + 1e29f * thread_index_in_threadgroup;"
    ),
    "pairs": ROW + READ + "float s = 1;\n" + MIX + "z[2 * i] = 1; z[2 * i + 1] = int(s); y[i] = s;",
    "pairs_of_halves": (
        ROW + READ + "float s = 1;\n" + MIX + "h[2 * i] = half(1); h[2 * i + 1] = half(s * 0.001f); y[i] = a[2];"
    ),
    "every_fourth_half": ROW + READ + "float s = 1;\n" + MIX + "h[4 * i + 1] = half(s * 0.001f); y[i] = a[2];",
    "backwards": ROW + READ + "float s = 1;\n" + MIX + "y[i] = s; z[99 - i] = int(a[0] * 100);",
    "odd_places": ROW + READ + "float s = 1;\n" + MIX + "y[2 * i + 1] = s;",
    "constants": ROW + READ + "float s = 1;\n" + MIX + "h[2 * i] = 1.0h; h[2 * i + 1] = 2.0h; y[i] = s;",
    "halves": ROW + READ + "float s = 1;\n" + MIX + "h[i] = half(s * 0.001f); y[i] = a[2];",
}

# Grid and threadgroup.
LAUNCHES: dict[str, tuple[tuple[int, int, int], tuple[int, int, int]]] = {
    "whole": ((256, 1, 1), (64, 1, 1)),
    "one_more": ((257, 1, 1), (64, 1, 1)),
    "one_less": ((255, 1, 1), (32, 1, 1)),
    "few": ((5, 1, 1), (64, 1, 1)),
    "narrow_threadgroups": ((100, 1, 1), (20, 1, 1)),
    "rows": ((WIDE, 5, 1), (32, 2, 1)),
    "narrow_rows": ((43, 5, 1), (64, 2, 1)),
}
SIZES = {"y": (300, "float32"), "z": (200, "int32"), "h": (256, "float16")}
NUM_READ = 300


def result(name: str, launch: str, at_end: bool) -> tuple[list[np.ndarray], str, bool]:
    """The outputs, the engine, and whether one thread's code is there for simdgroups out of bounds."""
    grid, threadgroup = LAUNCHES[launch]
    x = np.random.default_rng(5).random(NUM_READ, np.float32) * 4
    # Reading beyond it is a fault.
    x = GuardedPages(x.nbytes).copy(x, at_end)
    source = BODIES[name]
    outputs = [out for out in SIZES if f"{out}[" in source]
    kernel = kiln.metal_kernel(name=f"slow_{name}", input_names=["x"], output_names=outputs, source=source)
    call: dict[str, Any] = {
        "inputs": [x],
        "output_shapes": [(SIZES[out][0],) for out in outputs],
        "output_dtypes": [SIZES[out][1] for out in outputs],
        "grid": grid,
        "threadgroup": threadgroup,
        "init_value": 7,
    }
    compiled = kernel.compile(**call)
    code = bytes(compiled.machine_code)
    if code not in _fired:  # the passes run again for their list
        _fired[code] = any(one.name == "scalar-slow-version" and one.fired for one in compiled.passes())
    return kernel(**call), compiled.engine, _fired[code]


_fired: dict[bytes, bool] = {}
"""Of machine code. Launches share it."""
