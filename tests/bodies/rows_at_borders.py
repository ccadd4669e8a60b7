"""Rows of which a part lies before or behind their array, wherever the border is among the lanes, and operations that
one lane of a simdgroup does."""

import numpy as np

from bodies import DTYPES, body

_TYPES = (("float", "float32"), ("half", "float16"), ("uchar", "uint8"), ("long", "int64"))
_COUNT = 100  # threads
_LENGTH = 70  # of the arrays
_FAR = (2**40, -(2**40), 2**60 - 90, -(2**60))  # times 8 bytes they do not wrap
_SHIFTS = np.array([*range(-110, 80), *_FAR], np.int64)

for _type, _dtype in _TYPES:

    def _shifted(x, shifts):
        i = np.arange(_COUNT)
        out = np.zeros((len(shifts), _COUNT), x.dtype)
        some = np.zeros(_LENGTH, np.int32)
        for row, shift in enumerate(shifts.tolist()):
            place = [int(lane) + shift for lane in i]
            inside = np.array([0 <= p < _LENGTH for p in place])
            out[row, inside] = x[[p for p in place if 0 <= p < _LENGTH]]
            if -9 < shift < 9:
                stored = [p for lane, p in zip(i, place, strict=True) if 0 <= p < _LENGTH and lane % 3 == 1]
                some[stored] = np.array(stored, np.int32) + 1
        return out, some

    body(
        f"""
        ulong i = thread_position_in_grid.x;
        for (int row = 0; row < shifts_shape[0]; ++row) {{
          long shift = shifts[row];
          const device {_type}* from = x + shift;
          out[row * {_COUNT} + i] = from[i];
          if (shift > -9 && shift < 9 && i % 3 == 1) some[i + shift] = int(i + shift) + 1;
        }}
        """,
        name=f"rows_over_borders_{_type}",
        inputs=lambda rng, dtype=_dtype: {
            "x": rng.integers(1, 100, _LENGTH).astype(DTYPES[dtype]),
            "shifts": _SHIFTS,
        },
        outputs={"out": ((len(_SHIFTS), _COUNT), _dtype), "some": ((_LENGTH,), "int32")},
        init_value=0,
        grid=(_COUNT, 1, 1),
        threadgroup=(64, 1, 1),
        constructs="memory.load_outside memory.store_outside",
    )(_shifted)


@body(
    """
    uint i = thread_position_in_grid.x, lane = i % 32, row = i / 32;
    float kept = x[i];
    uint before = 1000 + lane;
    if (lane == 5) {
      before = atomic_fetch_add_explicit((device atomic_uint*)&counts[(row * 7 + lane) % 11], row + 1, memory_order_relaxed);
      uint expected = 3;
      if (atomic_compare_exchange_weak_explicit((device atomic_uint*)&flags[row + lane], &expected, lane + 40,
                                                memory_order_relaxed, memory_order_relaxed))
        kept += 0.5f;
      else
        kept = float(expected);
      uchar small[4] = {uchar(row), 2, 3, 4};
      kept += small[uint(x[i]) % 4];
    }
    old[i] = before;
    out[i] = kept;
    """,
    inputs=lambda rng: {"x": np.arange(96, dtype=np.float32)},
    outputs={
        "old": ((96,), "uint32"),
        "out": ((96,), "float32"),
        "counts": ((11,), "uint32"),
        "flags": ((10,), "uint32"),
    },
    init_value=0,
    grid=(96, 1, 1),
    threadgroup=(32, 1, 1),
    constructs="synchronisation.fetch_add address_spaces.cast_to_atomic",
)
def one_lane_does_it(x):
    old = (1000 + np.arange(96) % 32).astype(np.uint32)
    out = x.copy()
    counts, flags = np.zeros(11, np.uint32), np.zeros(10, np.uint32)
    for r in range(3):
        i = 32 * r + 5
        old[i] = counts[(r * 7 + 5) % 11]
        counts[(r * 7 + 5) % 11] += r + 1
        out[i] = 0 + [r, 2, 3, 4][int(x[i]) % 4]  # the flag is 0, not 3
    return old, out, counts, flags
