"""Tables of constants of every width, with indices of every type, in and out of bounds, and of sizes around registers."""

import numpy as np

from bodies import DTYPES, body

# Elements: registers of 8 and 16 words end at these sizes or near them, and 512 bytes are the most that are held.
for _type, _dtype, _size in (
    ("uchar", "uint8", 16),
    ("char", "int8", 33),
    ("uchar", "uint8", 65),
    ("uchar", "uint8", 256),
    ("uchar", "uint8", 513),
    ("short", "int16", 1),
    ("short", "int16", 89),
    ("ushort", "uint16", 256),
    ("half", "float16", 31),
    ("bfloat", "bfloat16", 17),
    ("bool", "bool", 11),
    ("float", "float32", 16),
    ("int", "int32", 40),
    ("float", "float32", 128),
    ("uint", "uint32", 129),
    ("long", "int64", 8),
):
    _values = np.random.default_rng(_size).integers(0, 2 if _type == "bool" else 100, _size)
    if _dtype.startswith("int"):
        _values -= 50

    def _looked_up(k, values=_values, dtype=_dtype):
        inside = (k >= 0) & (k < len(values))
        found = np.where(inside, values[np.clip(k, 0, len(values) - 1)], 0)
        return found.astype(DTYPES[dtype])

    body(
        """
        uint i = thread_position_in_grid.x;
        out[i] = TABLE[k[i]];
        """,
        name=f"table_of_{_size}_{_type}",
        header=f"constant {_type} TABLE[{_size}] = {{{', '.join(f'{_type}({v})' for v in _values)}}};",
        inputs=lambda rng, size=_size: {"k": rng.integers(-size // 3 - 2, size + size // 3 + 3, 500, np.int32)},
        outputs={"out": ((500,), _dtype)},
        grid=(500, 1, 1),
        threadgroup=(96, 1, 1),
        constructs="address_spaces.constant_array",
    )(_looked_up)

_SQUARES = "constant ushort SQUARES[20] = {" + ", ".join(str(i * i) for i in range(20)) + "};"

for _name, _index in (
    ("long", "k[i]"),
    ("ulong", "ulong(k[i])"),
    ("uint", "uint(k[i])"),
    ("short", "short(k[i])"),
    ("uchar", "uchar(k[i])"),
    ("shifted", "k[i] + 3"),
    ("before", "int(k[i]) - 4"),
    ("reversed", "19 - k[i]"),
    ("masked", "k[i] & 15"),
):

    def _squares(k, index=_name):
        at = {
            "long": lambda: k,
            "ulong": lambda: np.where(k < 0, 99, k),
            "uint": lambda: k.astype(np.uint32).astype(np.int64),
            "short": lambda: k.astype(np.int16).astype(np.int64),
            "uchar": lambda: k.astype(np.uint8).astype(np.int64),
            "shifted": lambda: np.where(k > 100, 99, k + 3),
            "before": lambda: k.astype(np.int32).astype(np.int64) - 4,
            "reversed": lambda: np.where(abs(k) > 100, 99, 19 - k),
            "masked": lambda: k & 15,
        }[index]()
        return np.where((at >= 0) & (at < 20), at * at, 0).astype(np.uint16)

    body(
        f"""
        uint i = thread_position_in_grid.x;
        if (i % 7 == 3) {{
          out[i] = 1;
          return;
        }}
        ushort sum = 0;
        for (uint j = 0; j < i % 5; ++j) sum += SQUARES[{_index}];
        out[i] = sum;
        """,
        name=f"table_with_an_index_{_name}",
        header=_SQUARES,
        inputs=lambda rng: {
            "k": np.concatenate(
                [
                    rng.integers(-30, 40, 290),
                    [2**31 - 1, -(2**31), 2**32 + 3, 2**32 - 1, -1, 2**62, -(2**62), 19, 20, 0],
                ]
            ).astype(np.int64)
        },
        outputs={"out": ((300,), "uint16")},
        grid=(300, 1, 1),
        threadgroup=(96, 1, 1),
        constructs="address_spaces.constant_array",
    )(
        lambda k, of=_squares: np.where(
            np.arange(300) % 7 == 3, 1, of(k).astype(np.int64) * (np.arange(300) % 5)
        ).astype(np.uint16)
    )


# Constant indices, too: directly, through a function and its argument, before and behind the table, and as an index.
@body(
    """
    uint i = thread_position_in_grid.x;
    int own[4] = {1, 2, 3, 4};
    own[SEVEN[7]] = 77;
    own[at(x[i] & 1 ? 8 : 6)] += 10;
    out[4 * i] = SEVEN[27] + at(27) + at(-1) + at(1 << 30);
    out[4 * i + 1] = behind(x[i]);
    out[4 * i + 2] = own[x[i] & 3];
    out[4 * i + 3] = SEVEN[6] + at(4);
    """,
    header="""
    constant int SEVEN[7] = {3, -1, 4, 1, -5, 9, 2};
    inline int at(int k) { return SEVEN[k]; }
    inline int behind(int v) { return v > 5 ? SEVEN[7] - v : SEVEN[v + 7]; }
    """,
    inputs=lambda rng: {"x": rng.integers(0, 12, 200, np.int32)},
    outputs={"out": ((200, 4), "int32")},
    grid=(200, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="address_spaces.constant_array",
)
def constant_indices_beyond_a_table(x):
    own = np.tile([77, 2, 3, 4], (200, 1))
    own[np.arange(200), np.where(x & 1, 0, 2)] += 10
    return np.stack([0 * x, np.where(x > 5, -x, 0), own[np.arange(200), x & 3], np.full(200, 2 - 5)], 1)
