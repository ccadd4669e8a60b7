"""Steps in which simdgroups hand one another what they have, of more values than there are registers: what belongs to
one simdgroup, or to one register of it, is computed to its end before the next begins."""

import numpy as np

from bodies import DTYPES, body

_STEP = "for (uint step = 1; step < {threads}; step *= 2)"
_BARRIER = "threadgroup_barrier(mem_flags::mem_threadgroup);"


def _read(x, place):
    """Zero outside."""
    place = np.asarray(place) % 2**32
    return np.where(place < len(x), x[np.minimum(place, len(x) - 1)], 0).astype(x.dtype)


# ---- Scans, whose arrays end or whose index wraps somewhere in a threadgroup

for _name, _type, _dtype, _threads, _groups, _length, _first in (
    ("float", "float", "float32", 256, 3, 768, 0),
    ("int", "int", "int32", 256, 3, 768, 0),
    ("long", "long", "int64", 256, 2, 512, 0),
    ("half", "half", "float16", 256, 2, 512, 0),
    ("two_simdgroups", "float", "float32", 64, 3, 192, 0),
    ("four_simdgroups", "float", "float32", 128, 3, 384, 0),
    ("sixteen_simdgroups", "float", "float32", 512, 2, 1024, 0),
    ("over_the_end", "float", "float32", 256, 3, 700, 0),
    ("outside", "float", "float32", 256, 2, 300, 500),
    ("wrapping_in_a_threadgroup", "float", "float32", 256, 3, 800, 2**32 - 256 - 100),
    ("wrapping_between_threadgroups", "float", "float32", 256, 3, 800, 2**32 - 256),
    ("wrapping_in_a_simdgroup", "float", "float32", 256, 2, 800, 2**32 - 33),
):

    def _scan(x, first, threads=_threads, groups=_groups, dtype=_dtype):
        count = threads * groups
        rows = _read(x, int(first) + np.arange(count)).reshape(groups, threads)
        # The numbers are small and whole, so that sums have no order.
        return rows.astype(np.float64).cumsum(axis=1).astype(DTYPES[dtype]).ravel()

    body(
        f"""
        threadgroup {_type} sums[{_threads}];
        uint element = first + thread_position_in_grid.x, thread_index = thread_position_in_threadgroup.x;
        sums[thread_index] = x[element];
        {_BARRIER}
        {_STEP.format(threads=_threads)} {{
          {_type} before = thread_index >= step ? sums[thread_index - step] : {_type}(0);
          {_BARRIER}
          sums[thread_index] += before;
          {_BARRIER}
        }}
        out[thread_position_in_grid.x] = sums[thread_index];
        """,
        name=f"scan_step_by_step_{_name}",
        inputs=lambda rng, length=_length, first=_first, dtype=_dtype: {
            "x": rng.integers(-3, 4, length).astype(DTYPES[dtype]),
            "first": np.uint32(first),
        },
        outputs={"out": ((_threads * _groups,), _dtype)},
        grid=(_threads * _groups, 1, 1),
        threadgroup=(_threads, 1, 1),
        constructs="synchronisation.threadgroup_barrier",
    )(_scan)


# ---- Numbers whose sums depend on their order, zeros of both signs and NaNs: what is across two registers may be
# computed again rather than be brought together, and a sum with zero be left out where it changes nothing


for _name, _symbol, _operation in (
    ("sums", "+", np.add),
    ("differences", "-", np.subtract),
    ("products", "*", np.multiply),
):

    def _combined(x, operation=_operation):
        rows = x.reshape(-1, 256).copy()
        for step in 2 ** np.arange(8):
            before = np.zeros_like(rows)
            before[:, step:] = rows[:, :-step]
            # A product of what is before would be zero.
            if operation is np.multiply:
                before[:, :step] = 1
            rows = operation(before, rows)
        return rows.ravel()

    body(
        f"""
        threadgroup float values[256];
        uint element = thread_position_in_grid.x, thread_index = thread_position_in_threadgroup.x;
        values[thread_index] = x[element];
        {_BARRIER}
        {_STEP.format(threads=256)} {{
          float before = thread_index >= step ? values[thread_index - step] : {1 if _symbol == "*" else 0};
          {_BARRIER}
          values[thread_index] = before {_symbol} values[thread_index];
          {_BARRIER}
        }}
        out[element] = values[thread_index];
        """,
        name=f"{_name}_step_by_step_in_their_order",
        inputs=lambda rng: {
            "x": np.concatenate(
                [
                    rng.normal(size=256) * 2.0 ** rng.integers(-20, 20, 256),
                    np.full(256, -0.0),
                    np.where(rng.random(256) < 0.5, -0.0, 0.0),
                    np.where(rng.random(256) < 0.02, np.nan, rng.normal(size=256)),
                    np.where(rng.random(256) < 0.02, -np.inf, -0.0),
                ]
            ).astype(np.float32)
        },
        outputs={"out": ((5 * 256,), "float32")},
        grid=(5 * 256, 1, 1),
        threadgroup=(256, 1, 1),
        constructs="synchronisation.threadgroup_barrier",
    )(_combined)


# ---- Comparisons and choices between the steps; NaNs and both zeros are handed on


@body(
    f"""
    threadgroup float values[256];
    threadgroup int starts[256];
    uint i = thread_position_in_grid.x, thread_index = thread_position_in_threadgroup.x;
    values[thread_index] = x[i];
    starts[thread_index] = flags[i];
    {_BARRIER}
    {_STEP.format(threads=256)} {{
      float value = values[thread_index];
      int is_start = starts[thread_index];
      float before = 0;
      int started = 0;
      if (thread_index >= step) {{
        before = values[thread_index - step];
        started = starts[thread_index - step];
      }}
      {_BARRIER}
      if (!is_start) values[thread_index] = before > value ? before : value;
      starts[thread_index] = is_start | started;
      {_BARRIER}
    }}
    out[i] = values[thread_index];
    segments[i] = starts[thread_index];
    """,
    inputs=lambda rng: {
        "x": np.where(
            rng.random(512) < 0.2,
            rng.choice(np.array([0.0, -0.0, np.nan, np.inf, -np.inf], np.float32), 512),
            rng.normal(size=512).astype(np.float32),
        ),
        "flags": (rng.random(512) < 0.05).astype(np.int32),
    },
    outputs={"out": ((512,), "float32"), "segments": ((512,), "int32")},
    grid=(512, 1, 1),
    threadgroup=(256, 1, 1),
    constructs="synchronisation.threadgroup_barrier",
)
def largest_of_segments_step_by_step(x, flags):
    values, starts = x.reshape(2, 256).copy(), flags.reshape(2, 256).copy()
    for step in 2 ** np.arange(8):
        before, started = np.zeros_like(values), np.zeros_like(starts)
        before[:, step:], started[:, step:] = values[:, :-step], starts[:, :-step]
        values = np.where(starts == 0, np.where(before > values, before, values), values)
        starts = starts | started
    return values.ravel(), starts.ravel()


# ---- Numbers of several widths, so that not all vectors are of a register's lanes


@body(
    f"""
    threadgroup float values[256];
    threadgroup uchar marks[256];
    uint i = thread_position_in_grid.x, thread_index = thread_position_in_threadgroup.x;
    values[thread_index] = float(x[i]);
    marks[thread_index] = uchar(m[i]);
    {_BARRIER}
    {_STEP.format(threads=256)} {{
      float other = values[thread_index ^ step];
      uchar mark = marks[thread_index ^ step];
      {_BARRIER}
      values[thread_index] += other;
      marks[thread_index] ^= uchar(mark + step);
      {_BARRIER}
    }}
    sums[i] = half(values[thread_index]);
    out[i] = marks[thread_index] + long(values[255 - thread_index]) * 65536;
    """,
    inputs=lambda rng: {
        "x": rng.integers(-2, 3, 512).astype(np.float16),
        "m": rng.integers(0, 256, 512).astype(np.uint8),
    },
    outputs={"sums": ((512,), "float16"), "out": ((512,), "int64")},
    grid=(512, 1, 1),
    threadgroup=(256, 1, 1),
    constructs="synchronisation.threadgroup_barrier",
)
def widths_step_by_step(x, m):
    values, marks = x.astype(np.float32).reshape(2, 256), m.astype(np.int64).reshape(2, 256)
    for step in 2 ** np.arange(8):
        other = np.arange(256) ^ step
        values, marks = values + values[:, other], (marks ^ (marks[:, other] + step)) % 256
    return values.ravel().astype(np.float16), (marks + values[:, ::-1].astype(np.int64) * 65536).ravel()


# ---- Memory that changes is read and written in order: an output is read again, and written over


@body(
    f"""
    threadgroup float sums[256];
    uint i = thread_position_in_grid.x, thread_index = thread_position_in_threadgroup.x;
    sums[thread_index] = x[i];
    out[i] = -x[i];
    threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
    {_STEP.format(threads=256)} {{
      float before = thread_index >= step ? sums[thread_index - step] + out[i - step] : 0.5f;
      threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
      sums[thread_index] += before;
      out[i] = sums[thread_index] * 0.5f;
      threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
    }}
    out[i] = sums[thread_index];
    """,
    inputs=lambda rng: {"x": rng.integers(-3, 4, 512).astype(np.float32)},
    outputs={"out": ((512,), "float32")},
    grid=(512, 1, 1),
    threadgroup=(256, 1, 1),
    constructs="synchronisation.threadgroup_barrier",
)
def outputs_between_steps(x):
    sums = x.reshape(2, 256).copy()
    out = -sums
    for step in 2 ** np.arange(8):
        before = np.full_like(sums, 0.5)
        before[:, step:] = sums[:, :-step] + out[:, :-step]
        sums = sums + before
        out = sums * np.float32(0.5)
    return sums.ravel()


# ---- Results that want much of the same and are long themselves, so that they are computed in turns


def _entangled(seed):
    """Statements as (variable, other or None for a shift, lanes' distance, number), and how many variables there are."""
    rng = np.random.default_rng(seed)
    own, shared, steps = 4, 3, 60
    statements: list[tuple[int, int | None, int, int]] = []
    for step in range(steps):
        for name in range(own + shared):
            if rng.random() < 0.3:
                other = name if name < own else own + int(rng.integers(shared))
                statements.append((name, other, int(rng.choice([16, 8, 1, 24, 9])), 2 * step + 1))
            else:
                statements.append((name, None, step % 13 + 1, step * 41 + 5))
            if name < own and rng.random() < 0.1:
                statements.append((name, own + int(rng.integers(shared)), 0, 1))
    return statements, own + shared


for _seed in (2, 3):
    _statements, _count = _entangled(_seed)

    def _results(x, rounds, statements=_statements, count=_count):
        i = np.arange(64)
        values = [x[i + 7 * k] for k in range(count)]
        for _ in range(int(rounds)):
            for name, other, by, number in statements:
                if other is None:
                    values[name] = (values[name] ^ (values[name] << np.uint32(by))) + np.uint32(number)
                else:
                    values[name] = values[name] + values[other][i ^ by] * np.uint32(number)
        return sum(value * np.uint32(2 * k + 3) for k, value in enumerate(values)).astype(np.uint32)

    def _text(name, other, by, number):
        if other is None:
            return f"v{name} = (v{name} ^ (v{name} << {by})) + {number}u;"
        return f"v{name} += {f'simd_shuffle_xor(v{other}, {by})' if by else f'v{other}'} * {number}u;"

    body(
        "uint i = thread_position_in_grid.x;\n"
        + "".join(f"uint v{k} = x[i + {7 * k}];\n" for k in range(_count))
        + "for (int round = 0; round < rounds; ++round) {\n"
        + "\n".join(_text(*statement) for statement in _statements)
        + "\n}\nout[i] = "
        + " + ".join(f"v{k} * {2 * k + 3}u" for k in range(_count))
        + ";",
        name=f"entangled_chains_{_seed}",
        inputs=lambda rng: {"x": rng.integers(0, 2**32, 256, np.uint32), "rounds": np.int32(3)},
        outputs={"out": ((64,), "uint32")},
        grid=(64, 1, 1),
        threadgroup=(64, 1, 1),
        constructs="simdgroup.shuffle_xor",
    )(_results)


# ---- Loops whose values are zero, or the same as others, in some iterations


def _count_equal(x, rounds, count, other):
    states, equal = [x[7 * k : 7 * k + 64].copy() for k in range(count)], np.zeros(64, np.uint32)
    for _ in range(int(rounds)):
        for k, state in enumerate(states):
            equal += state == (0 if other is None else states[k - other])
            states[k] = state >> np.uint32(1)
    return equal


for _count, _name, _other in ((4, "zero", None), (4, "equal", 1), (32, "zero", None), (32, "equal", 1)):
    body(
        f"""
        uint i = thread_position_in_grid.x, states[{_count}], count = 0;
        for (uint k = 0; k < {_count}; ++k) states[k] = x[i + 7 * k];
        for (uint round = 0; round < rounds; ++round)
          for (uint k = 0; k < {_count}; ++k) {{
            count += states[k] == {0 if _other is None else f"states[(k + {_count - _other}) % {_count}]"};
            states[k] >>= 1;
          }}
        out[i] = count;
        """,
        name=f"loop_of_{_count}_values_that_become_{_name}",
        inputs=lambda rng: {"x": rng.integers(0, 40, 300).astype(np.uint32), "rounds": np.uint32(5)},
        outputs={"out": ((64,), "uint32")},
        grid=(64, 1, 1),
        threadgroup=(64, 1, 1),
        constructs="structure.dynamic_local_array",
    )(lambda x, rounds, count=_count, other=_other: _count_equal(x, rounds, count, other))


# ---- A loop of more values than registers that asks all lanes


def _asking_all(x):
    rows = x.reshape(-1, 2, 32)
    others = x.reshape(-1, 64)[:, ::-1].reshape(-1, 2, 32)
    last, total, turns = rows.copy(), np.zeros_like(rows), np.zeros_like(rows)
    for k in range(9):
        here = k < (rows & 7) + 2
        agree = (here <= (rows > 20 * k - 99)).all(axis=2, keepdims=True)
        last = np.where(here & agree, others - k, last)
        total = np.where(here, total + (rows ^ others), total)
        turns = np.where(here, turns + last, turns)
    return (total + 3 * turns + 5 * last).ravel()


body(
    """
    threadgroup int shared[64];
    uint i = thread_position_in_grid.x, t = thread_index_in_threadgroup;
    shared[t] = x[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    int own = x[i], other = shared[63 - t], last = own, total = 0, turns = 0, k = 0;
    do {
      if (simd_all(own > 20 * k - 99)) last = other - k;
      total += own ^ other;
      turns += last;
    } while (++k < (own & 7) + 2);
    out[i] = total + 3 * turns + 5 * last;
    """,
    name="loop_of_many_values_that_asks_all_lanes",
    inputs=lambda rng: {
        "x": rng.integers(-90, 90, 640, np.int32) + np.arange(640, dtype=np.int32) // 32 % 5 * 30,
    },
    outputs={"out": ((640,), "int32")},
    grid=(640, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="simdgroup.all reconvergence.divergent_trip_count",
)(_asking_all)
