"""Short sides of branches that lanes take differently: nested, in chains, in loops, with loads at uniform indices."""

import numpy as np

from bodies import body

# ---- Arithmetic alone


@body(
    """
    uint i = thread_position_in_grid.x;
    int v = x[i], r = 11;
    if (v > 0) {
      r = v * 3;
      if (v & 1) {
        r += 7;
        if (v & 2) r ^= 0x55;
      } else if (v & 4) {
        r = -r;
      }
      r += v;
    }
    out[i] = r;
    """,
    inputs=lambda rng: {"x": rng.integers(-100, 100, 300, np.int32)},
    outputs={"out": ((300,), "int32")},
    grid=(300, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="types.int",
)
def nested_short_sides(x):
    r = x * 3
    odd = (x & 1) != 0
    r = np.where(odd, r + 7, np.where((x & 4) != 0, -r, r))
    r = np.where(odd & ((x & 2) != 0), r ^ 0x55, r)
    return np.where(x > 0, r + x, 11)


@body(
    """
    uint i = thread_position_in_grid.x;
    uint state = x[i], last = 0, most = 0;
    int steps = 0;
    while (state != 1 && steps < 60) {
      last = state;
      if ((state & 1) == 0) {
        state >>= 1;
      } else if ((state & 2) == 0) {
        state = (3 * state + 1) & 0xfff;
      } else if (state > 2000) {
        state -= 1000;
        if (most < state) most = state;
      } else {
        state = (5 * state + 1) & 0xfff;
      }
      ++steps;
    }
    out[4 * i] = state;
    out[4 * i + 1] = last;
    out[4 * i + 2] = most;
    out[4 * i + 3] = uint(steps);
    """,
    inputs=lambda rng: {"x": rng.integers(0, 4096, 200, np.uint32)},
    outputs={"out": ((800,), "uint32")},
    grid=(200, 1, 1),
    threadgroup=(96, 1, 1),
    constructs="structure.while",
)
def chains_in_loops_that_lanes_leave(x):
    out = []
    for start in x.tolist():
        state, last, most, steps = start, 0, 0, 0
        while state != 1 and steps < 60:
            last = state
            if state % 2 == 0:
                state //= 2
            elif state % 4 == 1:
                state = (3 * state + 1) % 4096
            elif state > 2000:
                state -= 1000
                most = max(most, state)
            else:
                state = (5 * state + 1) % 4096
            steps += 1
        out += [state, last, most, steps]
    return np.array(out, np.uint32)


# ---- Loads at uniform indices; what is out of bounds is zero


def _read(table, index):
    return int(table[index]) if 0 <= index < len(table) else 0


for _name, _length in (("within", 32), ("beyond", 20), ("empty", 1)):

    def _hashes(x, table):
        out = []
        for start in x.tolist():
            value, hashed, at = start, 1, 0
            while value:
                if value & 1:
                    hashed ^= _read(table, at)
                    if value & 2:
                        hashed = hashed * 3 + _read(table, at + 3) & 0xFFFFFFFF
                value >>= 1
                at += 1
            out += [hashed, at]
        return np.array(out, np.uint32)

    body(
        """
        uint i = thread_position_in_grid.x;
        uint value = x[i], hashed = 1, at = 0;
        while (value != 0) {
          if (value & 1) {
            hashed ^= table[at];
            if (value & 2) hashed = hashed * 3 + table[at + 3];
          }
          value >>= 1;
          ++at;
        }
        out[2 * i] = hashed;
        out[2 * i + 1] = at;
        """,
        name=f"tables_under_bits_{_name}",
        inputs=lambda rng, length=_length: {
            "x": rng.integers(0, 2**32, 300, np.uint32) >> rng.integers(0, 32, 300, np.uint32),
            "table": rng.integers(0, 2**32, length, np.uint32),
        },
        outputs={"out": ((600,), "uint32")},
        grid=(300, 1, 1),
        threadgroup=(64, 1, 1),
        constructs="structure.while",
    )(_hashes)


# Each simdgroup has a number of its own. For 0 no lane reads, and the index would be far from the array.
@body(
    """
    uint i = thread_position_in_grid.x, lane = thread_index_in_simdgroup;
    uint n = counts[threadgroup_position_in_grid.x];
    int r = -1;
    if (lane < n) {
      r = table[n - 1] + int(lane);
      if (lane + 1 < n) r -= table[n - 2];
    }
    if (n < lane && n < 21) r = table[20 - n];
    out[i] = r;
    """,
    inputs=lambda rng: {
        "counts": np.array([0, 1, 2, 31, 32, 0, 17, 40], np.uint32),
        "table": rng.integers(-1000, 1000, 30, np.int32),
    },
    outputs={"out": ((256,), "int32")},
    grid=(256, 1, 1),
    threadgroup=(32, 1, 1),
    constructs="attributes.thread_index_in_simdgroup",
)
def indices_that_the_branch_implies(counts, table):
    out = []
    for n in counts.tolist():
        for lane in range(32):
            r = -1
            if lane < n:
                r = _read(table, n - 1) + lane
                if lane + 1 < n:
                    r -= _read(table, n - 2)
            if n < lane and n < 21:
                r = _read(table, 20 - n)
            out.append(r)
    return np.array(out, np.int32)


# The inner branch is uniform, and so is the bound of a loop in a side.
@body(
    """
    uint i = thread_position_in_grid.x;
    int v = x[i], r = 0, kept = 5;
    for (int k = 0; k < 12; ++k) {
      if (v & (1 << k)) {
        if (flags[k] > 0) r += table[k * 3];
        kept = k;
      } else if (v < k * 50) {
        for (int j = 0; j < flags[k]; ++j) r ^= table[j + k];
      }
      if (r > 3000) break;
    }
    out[2 * i] = r;
    out[2 * i + 1] = kept;
    """,
    inputs=lambda rng: {
        "x": rng.integers(0, 4096, 200, np.int32),
        "flags": np.array([1, 0, 3, 0, 2, 1, 0, 0, 4, 1], np.int32),
        "table": rng.integers(0, 1000, 25, np.int32),
    },
    outputs={"out": ((400,), "int32")},
    grid=(200, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="types.int",
)
def uniform_branches_in_sides(x, flags, table):
    out = []
    for v in x.tolist():
        r, kept = 0, 5
        for k in range(12):
            if v >> k & 1:
                if _read(flags, k) > 0:
                    r += _read(table, k * 3)
                kept = k
            elif v < k * 50:
                for j in range(_read(flags, k)):
                    r ^= _read(table, j + k)
            if r > 3000:
                break
        out += [r, kept]
    return np.array(out, np.int32)


# Threadgroup memory that is written between the loads.
@body(
    """
    threadgroup int tile[64];
    uint i = thread_position_in_grid.x, t = thread_position_in_threadgroup.x;
    int v = x[i], r = 0;
    for (uint round = 0; round < 3; ++round) {
      tile[t] = v + int(round);
      threadgroup_barrier(mem_flags::mem_threadgroup);
      if (v & 1) r += tile[round * 20 + first];
      if (v & 2) {
        r ^= tile[round * 5];
        if (v & 4) r -= tile[63 - round];
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
      v = v * 5 + 1;
    }
    out[i] = r;
    """,
    inputs=lambda rng: {"x": rng.integers(0, 1000, 256, np.int32), "first": np.uint32(11)},
    outputs={"out": ((256,), "int32")},
    grid=(256, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="synchronisation.threadgroup_barrier",
)
def tiles_under_bits(x, first):
    v, r = x.reshape(4, 64), np.zeros((4, 64), np.int32)
    for k in range(3):
        tile = v + k
        at = k * 20 + int(first)
        r = np.where(v & 1, r + tile[:, at : at + 1], r)
        r = np.where(v & 2, r ^ tile[:, k * 5 : k * 5 + 1], r)
        r = np.where((v & 6) == 6, r - tile[:, 63 - k : 64 - k], r)
        v = v * 5 + 1
    return r.ravel()
