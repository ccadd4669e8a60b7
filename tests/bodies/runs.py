"""Runs of 64 threads whose rows lie within their arrays, beyond them, or across their borders, and whose last run is no
whole one."""

import numpy as np

from bodies import DTYPES, body

_ROWS = 9
_PLACES = 45
_THREADS = _PLACES * 64 + 32 + 7  # one piece more and a part of another
_STORED = _THREADS - 90  # the output ends within a run

_TYPES = (("float", "float32"), ("half", "float16"), ("uchar", "uint8"), ("long", "int64"))

RUNS = []


def _weights(places, place):
    row = places[place].astype(np.int64)
    weight = row * 3 + place
    weight = weight * weight - places[place // 2]
    return row, ((weight ^ (weight >> 3)) * 5 + places[place // 3] * 7) % 4


for _type, _dtype in _TYPES:
    for _number in ("int", "uint"):
        # Rows by the second are no multiple of 64 elements behind an array's beginning, as far as code knows.
        def _sampled(x, places, shifts, unsigned=_number == "uint"):
            to_third, to_stored = shifts.tolist() if unsigned else (128, 0)
            i = np.arange(_THREADS)
            place, channel = i // 64, i % 64
            flat = x.reshape(-1)

            def at(index):
                if unsigned:
                    index = index % 2**32
                inside = (index >= 0) & (index < flat.size)
                return np.where(inside, flat[np.clip(index, 0, flat.size - 1)], 0).astype(np.int64)

            row, weight = _weights(places, place)
            a = np.where((row >= 0) & (row < _ROWS), at(row * 64 + channel), 0)
            b = at((row + 1) * 64 + channel)
            c = at(row * 64 + channel + to_third)
            values = (a + b * weight + c * 2 + (row & 1)) % 256
            out = np.zeros(_STORED, x.dtype)
            stored = i + to_stored < _STORED
            out[(i + to_stored)[stored]] = values[stored].astype(x.dtype)
            return out

        RUNS.append(f"runs_sample_{_type}_by_{_number}")
        _to_third, _to_stored = ("shifts[0]", "shifts[1]") if _number == "uint" else ("128", "0")
        body(
            f"""
            uint i = thread_position_in_grid.x, place = i / 64;
            {_number} channel = i % 64, row = places[place];
            int weight = places[place] * 3 + int(place);
            weight = weight * weight - places[place / 2];
            weight = ((weight ^ (weight >> 3)) * 5 + places[place / 3] * 7) & 3;
            {_type} a = x[row * 64 + channel], b = x[(row + 1) * 64 + channel];
            {_type} c = x[row * 64 + channel + {_to_third}];
            a = row >= 0 && row < {_ROWS} ? a : {_type}(0);
            long value = long(a) + long(b) * weight + long(c) * 2 + (places[place] & 1);
            out[i + {_to_stored}] = {_type}(value & 255);
            """,
            name=RUNS[-1],
            inputs=lambda rng, dtype=_dtype: {
                "x": rng.integers(1, 30, (_ROWS, 64)).astype(DTYPES[dtype]),
                "places": rng.integers(-2, _ROWS + 1, _PLACES + 1).astype(np.int32),
                "shifts": np.array([-7, 64], np.int32),
            },
            outputs={"out": ((_STORED,), _dtype)},
            init_value=0,
            grid=(_THREADS, 1, 1),
            threadgroup=(64, 1, 1),
            constructs="memory.load_outside memory.store_outside",
        )(_sampled)


# Rows that a loop of the user's reads, in what all runs have in common, and only where a condition holds.
@body(
    """
    uint i = thread_position_in_grid.x, place = i / 64;
    int channel = i % 64, first = places[place], count = first & 3;
    int weight = first * first - places[place / 2] * 3 + places[place / 5];
    weight = (weight ^ (weight >> 2)) & 7;
    int sum = weight * x[first * 64 + channel];
    for (int k = 0; k < count; ++k) {
      int row = places[place + k];
      sum += x[row * 64 + channel] * (k + 1);
      if (row == 4) continue;
      sum -= x[(row + weight) * 64 + channel];
    }
    if (weight > 3) sum += x[channel] + x[weight * 64 + channel];
    out[i] = sum;
    """,
    inputs=lambda rng: {
        "x": rng.integers(-9, 9, (_ROWS, 64)).astype(np.int32),
        "places": rng.integers(-1, _ROWS + 1, _PLACES).astype(np.int32),
    },
    outputs={"out": ((_PLACES, 64), "int32")},
    grid=(_PLACES * 64, 1, 1),
    threadgroup=(192, 1, 1),
    constructs="memory.load_outside",
)
def runs_with_loops_over_rows(x, places):
    def number(at):
        return int(places[at]) if 0 <= at < len(places) else 0

    def row(at):
        return x[at].astype(np.int64) if 0 <= at < _ROWS else np.zeros(64, np.int64)

    out = np.zeros((_PLACES, 64), np.int32)
    for place in range(_PLACES):
        first = number(place)
        weight = first * first - number(place // 2) * 3 + number(place // 5)
        weight = (weight ^ (weight >> 2)) & 7
        values = weight * row(first)
        for k in range(first & 3):
            at = number(place + k)
            values = values + row(at) * (k + 1)
            if at != 4:
                values = values - row(at + weight)
        if weight > 3:
            values = values + row(0) + row(weight)
        out[place] = values
    return out


_WEIGHT = """
    uint i = thread_position_in_grid.x, place = i / 64;
    int channel = i % 64, row = places[place];
    int weight = row * 3 + int(place);
    weight = weight * weight - places[place / 2];
    weight = ((weight ^ (weight >> 3)) * 5 + places[place / 3] * 7) & 3;
"""


def _rows_of(x, first, stride):
    """Those of 64 elements from `first` rows on; zeros outside."""
    at = first[:, None] * stride + np.arange(64)
    flat = x.reshape(-1)
    return np.where((at >= 0) & (at < flat.size), flat[np.clip(at, 0, flat.size - 1)], 0).astype(np.int64)


# The address of a thread's element comes first, and its row's distance is added to that.
@body(
    _WEIGHT
    + """
    int a = x[long(channel) + row * 96], b = x[long(channel) + (row + 1) * 96];
    a = row >= 0 && row < 6 ? a : 0;
    out[i] = a + b * weight;
    """,
    inputs=lambda rng: {
        "x": rng.integers(-99, 99, (6, 96)).astype(np.int32),
        "places": rng.integers(-2, 8, _PLACES).astype(np.int32),
    },
    outputs={"out": ((_PLACES, 64), "int32")},
    grid=(_PLACES * 64, 1, 1),
    threadgroup=(192, 1, 1),
    constructs="memory.load_outside",
)
def runs_by_wide_numbers(x, places):
    row, weight = _weights(places, np.arange(_PLACES))
    a = np.where(((row >= 0) & (row < 6))[:, None], _rows_of(x, row, 96), 0)
    return (a + _rows_of(x, row + 1, 96) * weight[:, None]).astype(np.int32)


# A row that is read now and then, beside one that always is.
@body(
    _WEIGHT
    + """
    int a = x[row * 64 + channel], b = x[(row + 1) * 64 + channel];
    a = weight == 3 ? a : 0;
    out[i] = a + b * weight;
    """,
    inputs=lambda rng: {
        "x": rng.integers(-99, 99, (_ROWS, 64)).astype(np.int32),
        "places": rng.integers(0, _ROWS, _PLACES).astype(np.int32),
    },
    outputs={"out": ((_PLACES, 64), "int32")},
    grid=(_PLACES * 64, 1, 1),
    threadgroup=(192, 1, 1),
    constructs="memory.load_outside",
)
def runs_with_a_row_now_and_then(x, places):
    row, weight = _weights(places, np.arange(_PLACES))
    a = np.where((weight == 3)[:, None], _rows_of(x, row, 64), 0)
    return (a + _rows_of(x, row + 1, 64) * weight[:, None]).astype(np.int32)
