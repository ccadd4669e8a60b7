"""Floats of an array that many simdgroups change, row by row (docs/design/simd-engine.md, Atomics). Numbers are whole and
small, so that any order of sums gives the same."""

from __future__ import annotations

from typing import Any

import numpy as np

from bodies import body

# By name: whether nobody does anything else with the array, and how many places of the code change rows of it.
UPDATES: dict[str, tuple[bool, int]] = {}

_SIMDGROUPS = 1024
_COUNT = 32 * _SIMDGROUPS


def _add(
    name: str, is_own: bool, updates: str, places: Any, sign: int = 1, length: int = 1500, rows: int = 1, more: str = ""
) -> None:
    """`places(i)`: those that thread i adds x[i] to; outside of the array they are nobody's."""
    UPDATES[name] = is_own, rows
    thread = np.arange(_COUNT)

    def reference(x: Any) -> Any:
        out = np.zeros(length, np.float32)
        for place, takes_part in places(thread):
            inside = takes_part & (place >= 0) & (place < length)
            np.add.at(out, place[inside], sign * x[inside])
        return out

    update = "atomic_fetch_add_explicit" if sign > 0 else "atomic_fetch_sub_explicit"
    body(
        f"""
        int lane = thread_position_in_grid.x, row = thread_position_in_grid.y, i = 32 * row + lane;
        device atomic_float* to = (device atomic_float*)out;
        #define UPDATE(place) {update}(&to[place], x[i], memory_order_relaxed)
        {updates}
        {more}
        #undef UPDATE
        """,
        name=name,
        inputs=lambda rng: {"x": rng.integers(-8, 9, _COUNT).astype(np.float32)},
        outputs={"out": ((length,), "float32")},
        init_value=0,
        grid=(32, _SIMDGROUPS, 1),
        threadgroup=(32, 8, 1),
        constructs=f"synchronisation.fetch_{'add' if sign > 0 else 'sub'} address_spaces.cast_to_atomic",
    )(reference)


def _all(place: Any) -> Any:
    return place, np.ones(_COUNT, bool)


def _row(distance: int, first: int = 0, number: int = 7, step: int = 1) -> Any:
    return lambda i: [_all(i // 32 * step % number * distance + first + i % 32)]


_add("rows_of_one_lock", True, "UPDATE(row % 7 * 32 + lane);", _row(32))
_add("rows_of_two_locks", True, "UPDATE(row % 31 * 33 + 1 + lane);", _row(33, 1, 31))
_add("rows_in_pairs_of_floats", True, "UPDATE(row * 5 % 41 * 34 + lane);", _row(34, 0, 41, 5))
_add("rows_that_are_subtracted_from", True, "UPDATE(row % 7 * 40 + lane);", _row(40), sign=-1)
_add(
    "rows_of_some_lanes",
    True,
    "if ((lane * 5 + row) % 3 != 1) UPDATE(row % 7 * 35 + lane);",
    lambda i: [(i // 32 % 7 * 35 + i % 32, (i % 32 * 5 + i // 32) % 3 != 1)],
)
_add("rows_over_the_borders", True, "UPDATE(row % 60 * 29 - 50 + lane);", _row(29, -50, 60))
_add(
    "rows_and_single_lanes_of_them",
    True,
    "UPDATE(row % 13 * 37 + lane); if (lane == 3) UPDATE(row % 11 * 17 + lane);",
    lambda i: [_all(i // 32 % 13 * 37 + i % 32), (i // 32 % 11 * 17 + i % 32, i % 32 == 3)],
)
_add(
    "two_rows_that_overlap",
    True,
    "UPDATE(row % 13 * 16 + lane); UPDATE(row % 11 * 17 + lane);",
    lambda i: [_all(i // 32 % 13 * 16 + i % 32), _all(i // 32 % 11 * 17 + i % 32)],
    rows=2,
)
# Single lanes anywhere have atomics, which are quicker.
_add("single_lanes_alone", False, "UPDATE(i * 7 % 500);", lambda i: [_all(i * 7 % 500)], rows=0)
_add(
    "rows_and_single_lanes_anywhere",
    False,
    "UPDATE(row % 13 * 37 + lane); UPDATE(i * 7 % 500);",
    lambda i: [_all(i // 32 % 13 * 37 + i % 32), _all(i * 7 % 500)],
)
# Who reads, takes what was there, or stores, does not ask for a lock.
_add(
    "rows_that_are_read",
    False,
    "UPDATE(row % 7 * 32 + lane);",
    _row(32),
    more="if (i == 0 && atomic_load_explicit(&to[1499], memory_order_relaxed) != 0) UPDATE(1499);",
)
_add(
    "rows_of_which_someone_takes_what_was_there",
    False,
    "UPDATE(row % 7 * 32 + lane);",
    _row(32),
    more="if (atomic_fetch_add_explicit(&to[1400 + lane], 0, memory_order_relaxed) != 0) UPDATE(1499);",
)
_add("rows_beside_a_store", False, "UPDATE(row % 7 * 32 + lane);", _row(32), more="if (i == 0) out[1499] = 0;")
_add(
    "rows_at_an_address_that_is_chosen",
    False,
    "device atomic_float* from = to + 32; for (int k = 0; k < row % 3; ++k) from = from + 32 + k;"
    "atomic_fetch_add_explicit(&from[lane], x[i], memory_order_relaxed);",
    lambda i: [_all(32 + np.array([0, 32, 65])[i // 32 % 3] + i % 32)],
)
# What an address's bits lead to is not followed: they may be an address again.
_add(
    "rows_of_which_the_address_is_kept",
    False,
    "UPDATE(row % 7 * 32 + lane);",
    _row(32),
    more="threadgroup ulong kept[8]; kept[row % 8] = (ulong)out;"
    "if (*(threadgroup uint*)&kept[row % 8] == 0 && (kept[row % 8] >> 32) == 0) UPDATE(1499);",
)
