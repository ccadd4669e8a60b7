"""Functions of a simdgroup and of a quadgroup, for scalars and vectors of every type."""

import numpy as np

from bodies import DTYPES, body, model
from bodies.model import Threads
from bodies.types import FLOATS, INTEGERS, SCALARS, values

# A thread's ten elements: a scalar, then vectors of two, three and four.
_VECTORS = ((2, 1), (3, 3), (4, 6))
_GRID, _GROUP = (104, 1, 1), (72, 1, 1)
_COUNT = _GRID[0]
_THREADS = Threads(_GRID, _GROUP)


def _small(rng, dtype, shape):
    """Numbers whose sums and products over 32 threads stay in the range of floats."""
    if DTYPES[dtype].kind in "iub":
        return values(rng, dtype, shape)
    return (rng.choice([-1, 1], shape) * rng.uniform(0.75, 1.25, shape)).astype(np.float32).astype(DTYPES[dtype])


def _source(calls, element, condition, first):
    """Each call, with `{}` for its argument, for all ten elements."""
    lines = [
        "uint i = thread_position_in_grid.x;",
        "ushort lane = thread_index_in_simdgroup;",
        f"device const {SCALARS_IN_BUFFERS[element]}* in = x + 10 * i;",
        f"if ({condition}) {{",
    ]
    for row, call in enumerate(calls):
        at = f"{10 * len(calls)} * i + {10 * row}"
        lines.append(f"  out[{at}] = {call.format(f'{element}(in[0])', f'{element}({first})')};")
        for n, place in _VECTORS:
            loaded = f"{element}{n}({', '.join(f'in[{place + j}]' for j in range(n))})"
            lines.append(f"  {element}{n} r{row}_{n} = {call.format(loaded, f'{element}{n}({first})')};")
            lines += [f"  out[{at} + {place + j}] = r{row}_{n}[{j}];" for j in range(n)]
    return "\n".join([*lines, "}"])


# `char` is not the type of an int8 array's elements; the others are their own.
SCALARS_IN_BUFFERS = {name: "int8_t" if name == "char" else name for name in SCALARS}


def _family(name, calls, element, reference, constructs, condition="mask[i]"):
    """`reference(row, values, active)` gives the result of call `row`."""
    dtype = SCALARS[element]
    with_mask = "mask" in condition

    def expected(x, mask=None):
        active = _THREADS.live & (_THREADS.read(mask) != 0 if with_mask else True)
        out = np.zeros((_COUNT, len(calls), 10), DTYPES[dtype])
        for row in range(len(calls)):
            for c in range(10):
                result = reference(row, _THREADS.read(x[:, c]), active)
                _THREADS.write(result.astype(DTYPES[dtype]), active, out[:, row, c])
        return out

    body(
        _source(calls, element, condition, 3),
        name=f"{name}_{element}",
        inputs=lambda rng: {
            "x": _small(rng, dtype, (_COUNT, 10)),
            **({"mask": rng.integers(0, 3, _COUNT).astype(bool)} if with_mask else {}),
        },
        outputs={"out": ((_COUNT, len(calls), 10), dtype)},
        grid=_GRID,
        threadgroup=_GROUP,
        init_value=0,
        constructs=constructs + f" types.{element}2 types.{element}3 types.{element}4",
    )(expected)


# ---- Reductions and scans

_ARITHMETIC = ("sum", "product", "min", "max")
_BITWISE = ("and", "or", "xor")
_SCANS = [(operation, kind) for operation in ("sum", "product") for kind in ("inclusive", "exclusive")]

for _group, _width in (("simd", 32), ("quad", 4)):
    _section = "simdgroup" if _group == "simd" else "simdgroup.quad"
    for _element in {**INTEGERS, **FLOATS}:
        _family(
            f"{_group}_reductions",
            [f"{_group}_{operation}({{0}})" for operation in _ARITHMETIC],
            _element,
            lambda row, v, active, width=_width: model.reduce(_ARITHMETIC[row], v, active, width),
            " ".join(f"{_section}{'.' if _group == 'simd' else '_'}{operation}" for operation in _ARITHMETIC),
        )
        _family(
            f"{_group}_scans",
            [f"{_group}_prefix_{kind}_{operation}({{0}})" for operation, kind in _SCANS],
            _element,
            lambda row, v, active, width=_width: model.scan(
                _SCANS[row][0], v, active, _SCANS[row][1] == "exclusive", width
            ),
            " ".join(
                f"{_section}{'.' if _group == 'simd' else '_'}prefix_{kind}_{operation}" for operation, kind in _SCANS
            ),
        )
    for _element in INTEGERS:
        _family(
            f"{_group}_bitwise_reductions",
            [f"{_group}_{operation}({{0}})" for operation in _BITWISE],
            _element,
            lambda row, v, active, width=_width: model.reduce(_BITWISE[row], v, active, width),
            " ".join(f"{_section}{'.' if _group == 'simd' else '_'}{operation}" for operation in _BITWISE),
        )

# Zeros of both signs, infinities, NaNs and subnormals; results to the bit.
for _group, _width in (("simd", 32), ("quad", 4)):
    for _element, _bits in (("float", "uint"), ("half", "ushort")):
        _calls = [f"{_group}_{operation}(v)" for operation in _ARITHMETIC]
        _calls += [f"{_group}_prefix_{kind}_{operation}(v)" for operation, kind in _SCANS]
        _dtype = DTYPES[FLOATS[_element]]

        def _special_results(x, mask, width=_width, dtype=_dtype):
            values, active = _THREADS.read(x), _THREADS.live & (_THREADS.read(mask) != 0)
            results = [model.reduce(operation, values, active, width) for operation in _ARITHMETIC]
            results += [model.scan(operation, values, active, kind == "exclusive", width) for operation, kind in _SCANS]
            bits = np.dtype(f"uint{8 * dtype.itemsize}")
            out = np.zeros((_COUNT, len(results)), bits)
            for column, result in enumerate(results):
                result = np.where(np.isnan(result), 0, result).astype(dtype).view(bits) + np.isnan(result)
                _THREADS.write(result.astype(bits), active, out[:, column])
            return out

        body(
            "\n".join(
                [
                    "uint i = thread_position_in_grid.x;",
                    "if (mask[i]) {",
                    f"  {_element} v = x[i];",
                    *(f"  out[{len(_calls)} * i + {n}] = bits_of({call});" for n, call in enumerate(_calls)),
                    "}",
                ]
            ),
            # A NaN is 1, the bits of a subnormal that is no result.
            header=f"{_bits} bits_of({_element} v) {{ return isnan(v) ? 1 : as_type<{_bits}>(v); }}",
            name=f"{_group}_special_values_{_element}",
            inputs=lambda rng, dtype=_dtype: {
                # Few in a simdgroup are other than zeros.
                "x": np.where(
                    rng.integers(0, 40, _COUNT) > 0,
                    rng.choice([0.0, -0.0], _COUNT),
                    rng.choice([np.nan, np.inf, -np.inf, np.finfo(dtype).smallest_subnormal * 2, 1.5], _COUNT),
                ).astype(dtype),
                "mask": rng.integers(0, 3, _COUNT).astype(bool),
            },
            outputs={"out": ((_COUNT, len(_calls)), f"uint{8 * _dtype.itemsize}")},
            grid=_GRID,
            threadgroup=_GROUP,
            init_value=0,
            constructs="simdgroup.min simdgroup.max" if _group == "simd" else "simdgroup.quad_min simdgroup.quad_max",
        )(_special_results)

# ---- Shuffles


def _shuffle_calls(group, width):
    """Calls and, for lane l of a group of `width`, the lane that each takes from and whether it takes the filling."""
    last = width - 1

    def within(source):
        return lambda lane: (lane & ~last) | (source(lane & last) & last)

    return [
        (f"{group}_shuffle({{0}}, ushort(lane * 5 + 3) & {last})", within(lambda p: p * 5 + 3)),
        (f"{group}_broadcast({{0}}, 2)", within(lambda p: 2)),
        (f"{group}_shuffle_xor({{0}}, 3)", within(lambda p: p ^ 3)),
        (f"{group}_shuffle_up({{0}}, 1)", within(lambda p: np.where(p < 1, p, p - 1))),
        (f"{group}_shuffle_down({{0}}, 2)", within(lambda p: np.where(p + 2 > last, p, p + 2))),
        (f"{group}_shuffle_rotate_up({{0}}, 3)", within(lambda p: p - 3)),
        (f"{group}_shuffle_rotate_down({{0}}, 1)", within(lambda p: p + 1)),
        (f"{group}_broadcast_first({{0}})", within(lambda p: 0 * p)),
    ]


_SHUFFLED = ("shuffle", "broadcast", "shuffle_xor", "shuffle_up", "shuffle_down", "shuffle_rotate_up",
             "shuffle_rotate_down", "broadcast_first")  # fmt: skip

# Whole simdgroups: what a lane gets from one that is not there is not defined, but for the shifts, which keep a lane's
# own value where there is none to take.
_WHOLE = Threads((96, 1, 1), (96, 1, 1))


def _shuffle_family(name, calls, element, reference, constructs):
    dtype = SCALARS[element]

    def expected(x):
        out = np.zeros((96, len(calls), 10), DTYPES[dtype])
        for row in range(len(calls)):
            for c in range(10):
                _WHOLE.write(reference(row, _WHOLE.read(x[:, c])), None, out[:, row, c])
        return out

    body(
        _source(calls, element, "true", 1),
        name=f"{name}_{element}",
        inputs=lambda rng: {"x": values(rng, dtype, (96, 10))},
        outputs={"out": ((96, len(calls), 10), dtype)},
        grid=(96, 1, 1),
        threadgroup=(96, 1, 1),
        constructs=constructs,
    )(expected)


for _group, _width in (("simd", 32), ("quad", 4)):
    _prefix = "simdgroup." if _group == "simd" else "simdgroup.quad_"
    _calls = _shuffle_calls(_group, _width)
    for _element in SCALARS:
        _shuffle_family(
            f"{_group}_shuffles",
            [call for call, _ in _calls],
            _element,
            lambda row, v, calls=_calls: model.shuffle(v, calls[row][1](_WHOLE.lane)),
            " ".join(_prefix + name for name in _SHUFFLED),
        )

# The lane in its group, from which each takes; whether it takes the filling.
_FILLS = {
    "shuffle_and_fill_up": lambda place, delta, modulo: (place - delta, place % modulo < delta),
    "shuffle_and_fill_down": lambda place, delta, modulo: (place + delta, place % modulo + delta >= modulo),
}

for _group, _width, _delta, _segment in (("simd", 32, 3, 8), ("quad", 4, 1, 2)):

    def _fill_reference(row, v, width=_width, delta=_delta, segment=_segment):
        name = list(_FILLS)[row // 2]
        source, filled = _FILLS[name](_WHOLE.lane % width, delta, (width, segment)[row % 2])
        taken = model.shuffle(v, _WHOLE.lane // width * width + np.clip(source, 0, width - 1))
        # The filling is 1 in every lane.
        return np.where(filled, v.dtype.type(1), taken)

    for _element in SCALARS:
        _shuffle_family(
            f"{_group}_fills",
            [f"{_group}_{name}({{0}}, {{1}}, {_delta}{modulo})" for name in _FILLS for modulo in ("", f", {_segment}")],
            _element,
            _fill_reference,
            " ".join("simdgroup." + ("" if _group == "simd" else "quad_") + name for name in _FILLS),
        )


@body(
    """
    uint i = thread_position_in_grid.x;
    ushort lane = thread_index_in_simdgroup;
    // A window that slides over two rows: what one lacks comes from the other's end.
    float above = simd_shuffle_and_fill_up(x[i], y[i], 2, 16);
    float below = quad_shuffle_and_fill_down(x[i], y[i], 1);
    out[2 * i] = above;
    out[2 * i + 1] = below;
    """,
    inputs=lambda rng: {key: rng.normal(size=64).astype(np.float32) for key in "xy"},
    outputs={"out": ((64, 2), "float32")},
    grid=(64, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="simdgroup.shuffle_and_fill_up simdgroup.quad_shuffle_and_fill_down",
)
def fill_from_another_row(x, y):
    up = np.concatenate([y.reshape(4, 16)[:, 14:], x.reshape(4, 16)[:, :14]], axis=1).reshape(64)
    down = np.concatenate([x.reshape(16, 4)[:, 1:], y.reshape(16, 4)[:, :1]], axis=1).reshape(64)
    return np.stack([up, down], axis=1)


@body(
    """
    uint i = thread_position_in_grid.x;
    ushort lane = thread_index_in_simdgroup;
    ushort source = from[i];
    long wide = simd_shuffle(big[i], source);
    bool flag = simd_shuffle(flags[i], source);
    complex64_t z = simd_shuffle(numbers[i], source);
    bigs[i] = wide + simd_shuffle_xor(big[i], 1) + simd_shuffle_down(big[i], 4);
    out_flags[i] = flag != simd_shuffle_up(flags[i], 1);
    out_numbers[i] = z + simd_shuffle_down(numbers[i], 1);
    """,
    inputs=lambda rng: {
        "big": rng.integers(-(2**60), 2**60, 64, np.int64),
        "flags": rng.integers(0, 2, 64).astype(bool),
        "numbers": (rng.normal(size=64) + 1j * rng.normal(size=64)).astype(np.complex64),
        "from": rng.integers(0, 32, 64, np.uint16),
    },
    outputs={"bigs": ((64,), "int64"), "out_flags": ((64,), "bool"), "out_numbers": ((64,), "complex64")},
    grid=(64, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="simdgroup.shuffle simdgroup.run_time_lane mlx.shuffles types.complex64_t types.bool",
)
def shuffles_of_mlx(big, flags, numbers, **rest):
    threads = Threads((64, 1, 1), (64, 1, 1))
    lane, source = threads.lane, threads.read(rest["from"])
    big, flags, numbers = threads.read(big), threads.read(flags), threads.read(numbers)
    up, down = np.maximum(lane - 1, 0), np.where(lane < 31, lane + 1, lane)
    four = np.where(lane < 28, lane + 4, lane)
    bigs = model.shuffle(big, source) + model.shuffle(big, lane ^ 1) + model.shuffle(big, four)
    return (
        threads.write(bigs),
        threads.write(model.shuffle(flags, source) != model.shuffle(flags, up)),
        threads.write(model.shuffle(numbers, source) + model.shuffle(numbers, down)),
    )


# ---- Votes

_PARTIAL = Threads((77, 1, 1), (45, 1, 1))


@body(
    """
    uint i = thread_position_in_grid.x;
    int value = x[i];
    device int* row = out + 8 * i;
    if (value != 0) {
      row[0] = simd_all(value > 0) + 2 * simd_any(value > 3) + 4 * simd_is_first();
      row[1] = int(simd_vote::vote_t(simd_ballot(value & 1)));
      row[2] = int(simd_vote::vote_t(simd_active_threads_mask()));
      row[3] = simd_ballot(value < 3).any() + 2 * simd_ballot(value > -9).all() + 4 * simd_is_helper_thread();
      row[4] = simd_broadcast_first(value);
      row[5] = quad_all(value > 0) + 2 * quad_any(value > 3) + 4 * quad_is_first();
      row[6] = int(quad_vote::vote_t(quad_ballot(value & 1))) + 16 * int(quad_vote::vote_t(quad_active_threads_mask()));
      row[7] = quad_broadcast_first(value) + 100 * quad_is_helper_thread();
    }
    """,
    inputs=lambda rng: {"x": rng.integers(-3, 6, 77, np.int32)},
    outputs={"out": ((77, 8), "int32")},
    grid=(77, 1, 1),
    threadgroup=(45, 1, 1),
    init_value=-1,
    constructs="simdgroup.all simdgroup.any simdgroup.ballot simdgroup.vote simdgroup.is_first "
    "simdgroup.active_threads_mask simdgroup.is_helper_thread simdgroup.broadcast_first simdgroup.quad_all "
    "simdgroup.quad_any simdgroup.quad_ballot simdgroup.quad_active_threads_mask simdgroup.quad_is_first "
    "simdgroup.quad_broadcast_first simdgroup.quad_is_helper_thread simdgroup.partial reconvergence.under_a_condition",
)
def votes(x):
    threads = _PARTIAL
    v = threads.read(x)
    active = threads.live & (v != 0)
    first = model.first_active(active)
    quads = active.reshape(*threads.shape[:2], 8, 4)
    quad_values = v.reshape(quads.shape)

    def of_quads(value):
        return np.broadcast_to(value[..., None], quads.shape).reshape(threads.shape)

    quad_first = of_quads(quads.argmax(axis=-1) + 4 * np.arange(8))

    def quad_bits(condition):
        return of_quads(((condition & quads) << np.arange(4)).sum(axis=-1))

    rows = [
        model.all_of(v > 0, active) + 2 * model.any_of(v > 3, active) + 4 * (first == threads.lane),
        model.ballot(v & 1 != 0, active).astype(np.uint32).view(np.int32),
        model.ballot(active, active).astype(np.uint32).view(np.int32),
        model.any_of(v < 3, active) + 2 * (active | ~threads.live).all(axis=-1, keepdims=True),
        model.shuffle(v, first),
        of_quads(((quad_values > 0) | ~quads).all(axis=-1) + 2 * ((quad_values > 3) & quads).any(axis=-1))
        + 4 * (quad_first == threads.lane),
        quad_bits(quad_values & 1 != 0) + 16 * quad_bits(quads),
        model.shuffle(v, quad_first),
    ]
    out = np.full((77, 8), -1, np.int32)
    for column, value in enumerate(rows):
        threads.write(value.astype(np.int32), active, out[:, column])
    return out


# `all` asks for every thread of the group, `any` for one, whoever is active where they are asked.
@body(
    """
    uint i = thread_position_in_grid.x;
    int value = x[i];
    simd_vote here, there(5);
    quad_vote of_four;
    if (value < 4) {
      here = simd_ballot(value > -9);
      of_four = quad_ballot(value > -3);
    }
    device int* row = out + 6 * i;
    row[0] = here.all() + 2 * here.any();
    row[1] = of_four.all() + 2 * of_four.any();
    row[2] = simd_ballot(value > -9).all() + 2 * simd_ballot(value > 9).any();
    row[3] = quad_ballot(value > -9).all() + 2 * simd_active_threads_mask().all();
    row[4] = int(simd_vote::vote_t(there)) + 8 * there.any() + 16 * simd_vote(~0ul).all() + 32 * quad_vote(15).all();
    row[5] = int(quad_vote::vote_t(quad_vote(0x1234))) + 16 * quad_vote(16).any();
    """,
    inputs=lambda rng: {"x": rng.integers(-3, 6, 77, np.int32)},
    outputs={"out": ((77, 6), "int32")},
    grid=(77, 1, 1),
    threadgroup=(45, 1, 1),
    constructs="simdgroup.vote simdgroup.ballot simdgroup.quad_ballot simdgroup.active_threads_mask simdgroup.partial",
)
def votes_of_all(x):
    threads = _PARTIAL
    v = threads.read(x)
    voted = threads.live & (v < 4)

    def of(condition, width):
        split = (*threads.shape[:2], 32 // width, width)
        among = (condition & voted).reshape(split)
        every = (among | ~threads.live.reshape(split)).all(axis=-1, keepdims=True)
        both = every + 2 * among.any(axis=-1, keepdims=True)
        return np.where(voted, np.broadcast_to(both, split).reshape(threads.shape), 0)

    # A vote of no one: nothing is set.
    rows = [of(v > -9, 32), of(v > -3, 4), 1, 3, 5 + 8 + 16 + 32, 4]
    out = np.zeros((77, 6), np.int32)
    for column, value in enumerate(rows):
        threads.write(np.broadcast_to(np.asarray(value, np.int32), threads.shape), threads.live, out[:, column])
    return out


@body(
    """
    threadgroup float partial[32];
    uint row = threadgroup_position_in_grid.y;
    uint t = thread_position_in_threadgroup.x;
    uint width = x_shape[1];
    float own = 0;
    for (uint j = t; j < width; j += threads_per_threadgroup.x) own += x[row * width + j];
    own = simd_sum(own);
    if (thread_index_in_simdgroup == 0) partial[simdgroup_index_in_threadgroup] = own;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (simdgroup_index_in_threadgroup == 0) {
      own = thread_index_in_simdgroup < simdgroups_per_threadgroup ? partial[thread_index_in_simdgroup] : 0;
      own = simd_sum(own);
      if (thread_index_in_simdgroup == 0) sums[row] = own;
    }
    """,
    inputs=lambda rng: {"x": rng.normal(size=(6, 700)).astype(np.float32)},
    outputs={"sums": ((6,), "float32")},
    grid=(128, 6, 1),
    threadgroup=(128, 1, 1),
    constructs="simdgroup.sum attributes.simdgroups_per_threadgroup attributes.simdgroup_index_in_threadgroup "
    "address_spaces.threadgroup_array synchronisation.threadgroup_barrier",
)
def row_sums_in_two_levels(x):
    sums = []
    for row in x:
        own = np.zeros(128, np.float32)
        for start in range(0, 700, 128):
            part = row[start : start + 128]
            own[: len(part)] += part
        lanes = model.reduce("sum", own.reshape(4, 32), np.ones((4, 32), bool))[:, 0]
        final = np.zeros((1, 32), np.float32)
        final[0, :4] = lanes
        sums.append(model.reduce("sum", final, np.ones((1, 32), bool))[0, 0])
    return np.array(sums, np.float32)


# Of values that come from smaller types: the operation has its own type's bits.
for _narrow, _element in (("uint8", "uchar"), ("uint16", "ushort"), ("int8", "char")):

    def _widened(x):
        values = _THREADS.read(x).astype(np.int32)
        results = [
            model.reduce("sum", values, _THREADS.live),
            model.reduce("product", values, _THREADS.live, 4),
            model.reduce("min", values, _THREADS.live),
            model.reduce("max", values - 300, _THREADS.live),
            model.scan("sum", values, _THREADS.live, False),
            model.scan("product", values, _THREADS.live, True, 4),
            model.reduce("sum", values.astype(np.uint32), _THREADS.live).view(np.int32),
        ]
        out = np.zeros((_COUNT, len(results)), np.int32)
        for column, result in enumerate(results):
            _THREADS.write(result, None, out[:, column])
        return out

    body(
        """
        uint i = thread_position_in_grid.x;
        device int* results = out + 7 * i;
        results[0] = simd_sum(int(x[i]));
        results[1] = quad_product(int(x[i]));
        results[2] = simd_min(int(x[i]));
        results[3] = simd_max(int(x[i]) - 300);
        results[4] = simd_prefix_inclusive_sum(int(x[i]));
        results[5] = quad_prefix_exclusive_product(int(x[i]));
        results[6] = int(simd_sum(uint(x[i])));
        """,
        name=f"simd_reductions_of_widened_{_element}",
        inputs=lambda rng, dtype=_narrow: {"x": values(rng, dtype, (_COUNT,))},
        outputs={"out": ((_COUNT, 7), "int32")},
        grid=_GRID,
        threadgroup=_GROUP,
        constructs="simdgroup.sum simdgroup.min simdgroup.max simdgroup.quad_product simdgroup.prefix_inclusive_sum "
        f"simdgroup.quad_prefix_exclusive_product types.{_element}",
    )(_widened)
