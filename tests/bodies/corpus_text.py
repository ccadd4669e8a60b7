"""Text and sequences: encodings, structure, searches, alignments, matches."""

import base64

import numpy as np

from bodies import body

# ---- Encodings


@body(
    """
    // Base64 with '=' at the end, both ways: threads of y 0 encode three bytes each, those of y 1 decode four characters and
    // say where the first wrong one is.
    const uint i = thread_position_in_grid.x, row = thread_position_in_grid.z;
    if (thread_position_in_grid.y == 0) {
      const uint length = plain_lengths[row];
      if (3 * i >= length) return;
      device const uchar* in = plain + row * plain_shape[1] + 3 * i;
      const uint left = min(3u, length - 3 * i);
      const uint bits = uint(in[0]) << 16 | (left > 1 ? uint(in[1]) << 8 : 0) | (left > 2 ? uint(in[2]) : 0);
      uchar4 out;
      for (int j = 0; j < 4; ++j)
        out[j] = j <= int(left) ? uchar(kAlphabet[extract_bits(bits, 18 - 6 * j, 6)]) : uchar('=');
      ((device uchar4*)(encoded + row * (plain_shape[1] / 3 * 4)))[i] = out;
      return;
    }
    const uint length = coded_lengths[row];
    if (4 * i >= length) return;
    device const uchar4* in = (device const uchar4*)(coded + row * coded_shape[1]);
    const bool at_end = 4 * i + 4 >= length;
    const uchar4 quad = in[i];
    uint bits = 0, size = 3;
    for (uint j = 0; j < 4; ++j) {
      int digit = digit_of(quad[j]);
      if (quad[j] == '=' && at_end && j >= 2 && (j == 3 || quad.w == '=')) {
        digit = 0;
        --size;
      }
      if (digit < 0) {
        atomic_fetch_min_explicit((device atomic_uint*)(wrong + row), 4 * i + j, memory_order_relaxed);
        digit = 0;
      }
      bits = insert_bits(bits, uint(digit), 18 - 6 * j, 6);
    }
    device uchar* out = decoded + row * (coded_shape[1] / 4 * 3) + 3 * i;
    out[0] = uchar(bits >> 16);
    if (size > 1) out[1] = uchar(bits >> 8);
    if (size > 2) out[2] = uchar(bits);
    """,
    header="""
constant char kAlphabet[65] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

inline int digit_of(uchar c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}
""",
    inputs=lambda rng: {
        "plain": (plain := rng.integers(0, 256, (3, 90), np.uint8)),
        "plain_lengths": np.array([90, 89, 34], np.int32),
        "coded": np.array(
            [
                list(base64.b64encode(plain[0].tobytes())),
                list(base64.b64encode(plain[1, :68].tobytes()).ljust(120)),
                # A space, and a mark in the middle.
                list(
                    base64.b64encode(plain[2].tobytes())[:51]
                    + b" "
                    + base64.b64encode(plain[2].tobytes())[52:98]
                    + b"=" * 22
                ),
            ],
            np.uint8,
        ),
        "coded_lengths": np.array([120, 92, 120], np.int32),
    },
    outputs={"encoded": ((3, 120), "uint8"), "decoded": ((3, 90), "uint8"), "wrong": ((3,), "uint32")},
    grid=(30, 2, 3),
    threadgroup=(32, 1, 1),
    init_value=255,
    constructs="address_spaces.constant_array functions.extract_bits functions.insert_bits literals.integer types.uchar4 "
    "synchronisation.fetch_min structure.early_return address_spaces.cast_to_atomic",
)
def base64_both_ways(plain, plain_lengths, coded, coded_lengths):
    encoded, decoded = np.full((3, 120), 255, np.uint8), np.full((3, 90), 255, np.uint8)
    for row, n in enumerate(plain_lengths):
        text = base64.b64encode(plain[row, :n].tobytes())
        encoded[row, : len(text)] = list(text)
    decoded[0] = list(base64.b64decode(coded[0].tobytes()))
    decoded[1, :68] = list(base64.b64decode(coded[1, :92].tobytes()))
    # What is wrong counts as A; the first wrong one is the space, then the marks but for the end.
    text = coded[2].tobytes().replace(b" ", b"A")
    text = text[:-2].replace(b"=", b"A") + text[-2:]
    decoded[2, :88] = list(base64.b64decode(text))
    return encoded, decoded, np.array([255, 255, 51], np.uint32)


_TEXTS = [
    "Grüße, 世界! 🜁 и ещё 🦊🦊 — naïve façade ".encode() * 4,
    b"plain ascii only, nothing else to see here. " * 5,
    b"ok ok " * 20 + b"\xc3(" + "é".encode() * 10,
    b"ok" + "€".encode() * 30 + b"\xed\xa0\x80" + b"after",
    b"cut off at the end \xf0\x9f\xa6",
    b"too large \xf4\x90\x80\x80, overlong \xc0\xaf",
    "ü".encode() * 60 + b"\xbf" + b"x",
]


@body(
    """
    // UTF-8 to UTF-16. Each thread looks at one byte: whether a character begins there, whether it is a right one, and how many
    // units it needs; a scan says where they go. Texts with an error give its place instead.
    threadgroup uint group_units[32], group_characters[32];
    threadgroup atomic_uint first_wrong;
    const uint t = thread_index_in_threadgroup, text = threadgroup_position_in_grid.y;
    const uint lane = thread_index_in_simdgroup, group = simdgroup_index_in_threadgroup;
    const uint length = lengths[text];
    device const uchar* in = bytes + text * bytes_shape[1];
    if (t == 0) atomic_store_explicit(&first_wrong, length, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);

    uint point = 0, units = 0;
    bool right = true;
    if (t < length) {
      const uint lead = in[t];
      const uint size = sequence_size(lead);
      switch (size) {
        case 0: {
          // Nothing begins here: one of the three bytes before must reach this far.
          right = false;
          for (uint back = 1; back <= 3 && back <= t; ++back) {
            const uint before = sequence_size(in[t - back]);
            if (before == 0) continue;
            right = before != kNever && before > back;
            break;
          }
          break;
        }
        case 1:
          point = lead;
          units = 1;
          break;
        case kNever:
          right = false;
          break;
        default: {
          point = lead & (0x7fu >> size);
          right = t + size <= length;
          for (uint j = 1; j < size && right; ++j) {
            right = (in[t + j] & 0xc0) == 0x80;
            point = point << 6 | (in[t + j] & 0x3f);
          }
          // The shortest form only, no surrogates, nothing above the last plane.
          constexpr uint least[5] = {0, 0, 0x80, 0x800, 0x10000};
          right = right && point >= least[size] && point <= 0x10ffff && (point & ~0x7ffu) != 0xd800;
          units = size == 4 ? 2 : 1;
        }
      }
    }
    if (!right) atomic_fetch_min_explicit(&first_wrong, t, memory_order_relaxed);
    const uint before = simd_prefix_exclusive_sum(units);
    const uint characters = simd_sum(units > 0 ? 1u : 0u);
    if (lane == 31) group_units[group] = before + units;
    if (lane == 0) group_characters[group] = characters;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (group == 0) {
      const bool used = lane < simdgroups_per_threadgroup;
      const uint total = used ? group_units[lane] : 0;
      const uint sum = simd_prefix_exclusive_sum(total);
      const uint all = simd_sum(used ? group_characters[lane] : 0u);
      group_units[lane] = sum;
      if (lane == 31) {
        const uint wrong_at = atomic_load_explicit(&first_wrong, memory_order_relaxed);
        const bool fine = wrong_at == length;
        device uint* to = results + 3 * text;
        to[0] = wrong_at;
        to[1] = fine ? all : 0;
        to[2] = fine ? sum + total : 0;
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (units == 0 || atomic_load_explicit(&first_wrong, memory_order_relaxed) != length) return;
    device ushort* out = utf16 + text * bytes_shape[1] + group_units[group] + before;
    if (units == 1) {
      out[0] = ushort(point);
    } else {
      out[0] = ushort(0xd800 + ((point - 0x10000) >> 10));
      out[1] = ushort(0xdc00 + (point & 0x3ff));
    }
    """,
    header="""
enum : uint { kNever = 9 };

// Bytes of the character that begins with this one; 0 for those in the middle.
inline uint sequence_size(uint lead) {
  if (lead < 0x80) return 1;
  if (lead < 0xc0) return 0;
  if (lead < 0xf5) return lead < 0xc2 ? kNever : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  return kNever;
}
""",
    inputs=lambda rng: {
        "bytes": np.array([list(text.ljust(288, b"?")) for text in _TEXTS], np.uint8),
        "lengths": np.array([len(text) for text in _TEXTS], np.int32),
    },
    outputs={"utf16": ((7, 288), "uint16"), "results": ((7, 3), "uint32")},
    grid=(288, 7, 1),
    threadgroup=(288, 1, 1),
    init_value=0,
    constructs="structure.switch simdgroup.prefix_exclusive_sum attributes.simdgroups_per_threadgroup "
    "synchronisation.fetch_min synchronisation.threadgroup_atomics types.ushort structure.constexpr literals.integer",
)
def utf8_to_utf16(bytes, lengths):
    utf16, results = np.zeros((7, 288), np.uint16), []
    for row, n in enumerate(lengths):
        try:
            text = bytes[row, :n].tobytes().decode()
        except UnicodeDecodeError as error:
            results.append([error.start, 0, 0])
        else:
            units = np.frombuffer(text.encode("utf-16-le"), np.uint16)
            utf16[row, : len(units)] = units
            results.append([n, len(text), len(units)])
    return utf16, np.array(results, np.uint32)


_JSON = (
    rb'{"name": "a \"quoted\" {word}", "path": "C:\\", "list": [1, -2.5e3, [true, null], {"x": []}], "empty": {},'
    rb' "\\\"": "\\\\", "deep": [[[[{"k": "v]]"}]]]], "text": "brackets ][ and , : stay"}'
)


@body(
    """
    // Where a JSON text's tokens are: brackets, commas and colons that are not in strings, and strings' ends. A quote counts
    // unless an odd number of backslashes stands before it; whether a place is in a string is the parity of the quotes before
    // it, which is an exclusive or over bits; depth is a sum. Tokens are written in order, with their depth.
    threadgroup uint quotes_of[32], tokens_of[32];
    threadgroup int depth_of[32];
    const uint t = thread_index_in_threadgroup, lane = thread_index_in_simdgroup, group = simdgroup_index_in_threadgroup;
    const uint groups = simdgroups_per_threadgroup;
    const uint length = text_shape[0];
    const uchar c = t < length ? text[t] : uchar(' ');

    bool quote = c == '"';
    if (quote) {
      int slashes = 0;
      for (int at = int(t) - 1; at >= 0 && text[at] == 92; --at) ++slashes;
      quote = (slashes & 1) == 0;
    }
    uint bits = uint(uint64_t(simd_ballot(quote)));
    // Bit i becomes the parity of bits 0 to i.
    #define STEP(n) bits ^= bits << n;
    STEP(1) STEP(2) STEP(4) STEP(8) STEP(16)
    #undef STEP
    if (lane == 0) quotes_of[group] = bits >> 31;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    uint carried = 0;
    for (uint g = 0; g < group; ++g) carried ^= quotes_of[g];
    // An opening quote is inside of its string by this parity, a closing one is not.
    const bool in_string = ((bits >> lane) ^ carried) & 1;

    enum Kind : uchar { kNone, kOpen, kClose, kComma, kColon, kStringBegin, kStringEnd };
    Kind kind = kNone;
    if (quote) {
      kind = in_string ? kStringBegin : kStringEnd;
    } else if (!in_string) {
      switch (c) {
        case '{':
        case '[': kind = kOpen; break;
        case '}':
        case ']': kind = kClose; break;
        case ',': kind = kComma; break;
        case ':': kind = kColon; break;
        default: break;
      }
    }
    const int step = kind == kOpen ? 1 : kind == kClose ? -1 : 0;
    const int depth = simd_prefix_inclusive_sum(step);
    const uint is_token = kind != kNone;
    const uint number = simd_prefix_exclusive_sum(is_token);
    if (lane == 31) {
      depth_of[group] = depth;
      tokens_of[group] = number + is_token;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    int depth_before = 0;
    uint tokens_before = 0;
    for (uint g = 0; g < group; ++g) {
      depth_before += depth_of[g];
      tokens_before += tokens_of[g];
    }
    if (is_token) {
      const uint to = tokens_before + number;
      places[to] = ushort(t);
      kinds[to] = kind;
      // A closing bracket has the depth of its opening one.
      depths[to] = short(depth_before + depth + (kind == kClose ? 1 : 0));
    }
    if (t == threads_per_threadgroup.x - 1) {
      summary[0] = int(tokens_before + number + is_token);
      summary[1] = depth_before + depth;
      summary[2] = in_string;
    }
    """,
    inputs=lambda rng: {"text": np.frombuffer(_JSON, np.uint8)},
    outputs={
        "places": ((288,), "uint16"),
        "kinds": ((288,), "uint8"),
        "depths": ((288,), "int16"),
        "summary": ((3,), "int32"),
    },
    grid=(288, 1, 1),
    threadgroup=(288, 1, 1),
    init_value=0,
    constructs="simdgroup.ballot simdgroup.prefix_inclusive_sum simdgroup.prefix_exclusive_sum structure.switch "
    "structure.define address_spaces.threadgroup_array types.uchar literals.integer",
)
def json_tokens(text):
    places, kinds, depths = np.zeros(288, np.uint16), np.zeros(288, np.uint8), np.zeros(288, np.int16)
    at = count = depth = 0
    in_string = False
    source = text.tobytes().decode()
    while at < len(source):
        c, kind = source[at], 0
        if in_string:
            if c == "\\":
                at += 1
            elif c == '"':
                kind, in_string = 6, False
        elif c == '"':
            kind, in_string = 5, True
        else:
            kind = {"{": 1, "[": 1, "}": 2, "]": 2, ",": 3, ":": 4}.get(c, 0)
        depth += kind == 1
        if kind:
            places[count], kinds[count], depths[count] = at, kind, depth
            count += 1
        depth -= kind == 2
        at += 1
    return places, kinds, depths, np.array([count, depth, in_string], np.int32)


@body(
    """
    // Numbers of variable length (seven bits a byte, the lowest first, zigzag for the sign, differences of neighbours): each
    // byte without its highest bit ends a number, and the thread there reads backwards. Then the differences are added up.
    threadgroup uint ends_of[16];
    threadgroup long numbers[BYTES];
    threadgroup long sums_of[16];
    const uint t = thread_index_in_threadgroup, lane = thread_index_in_simdgroup, group = simdgroup_index_in_threadgroup;
    const uint row = threadgroup_position_in_grid.y, length = lengths[row];
    device const uint8_t* in = stream + row * BYTES;
    const bool ends = t < length && in[t] < 128;
    const uint bits = uint(uint64_t(simd_ballot(ends)));
    if (lane == 0) ends_of[group] = popcount(bits);
    numbers[t] = 0;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    uint before = popcount(bits & ((1u << lane) - 1)), total = 0;
    for (uint g = 0; g < BYTES / 32; ++g) {
      before += g < group ? ends_of[g] : 0;
      total += ends_of[g];
    }
    if (ends) {
      ulong value = in[t];
      for (int at = int(t) - 1; at >= 0 && in[at] >= 128; --at) value = value << 7 | (in[at] & 127);
      numbers[before] = long(value >> 1) ^ -long(value & 1);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    long sum = numbers[t];
    for (ushort distance = 1; distance < 32; distance *= 2) {
      const long below = simd_shuffle_up(sum, distance);
      sum += lane >= distance ? below : 0;
    }
    if (lane == 31) sums_of[group] = sum;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint g = 0; g < group; ++g) sum += sums_of[g];
    if (t < total) values[row * BYTES + t] = sum;
    if (t == 0) counts[row] = total;
    """,
    template=[("BYTES", 256)],
    inputs=lambda rng: {
        "stream": (made := [_varints(rng, sizes) for sizes in (8, 20, 60)])
        and np.array([list(stream.ljust(256, b"\x05")) for stream in made], np.uint8),
        "lengths": np.array([len(stream) for stream in made], np.uint32),
    },
    outputs={"values": ((3, 256), "int64"), "counts": ((3,), "uint32")},
    grid=(256, 3, 1),
    threadgroup=(256, 1, 1),
    init_value=0,
    constructs="simdgroup.ballot functions.popcount types.long types.ulong simdgroup.shuffle_up types.uint8_t "
    "address_spaces.threadgroup_array barriers.scan",
)
def varint_differences(stream, lengths):
    values, counts = np.zeros((3, 256), np.int64), []
    for row, n in enumerate(lengths):
        out, value, shift = [], 0, 0
        for byte in stream[row, :n].tolist():
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                out.append(value // 2 if value % 2 == 0 else -(value + 1) // 2)
                value = shift = 0
        values[row, : len(out)] = np.cumsum(out)
        counts.append(len(out))
    return values, np.array(counts, np.uint32)


def _varints(rng, bits):
    out = bytearray()
    while len(out) < 240:
        value = int(rng.integers(0, 2 ** int(rng.integers(1, bits))))
        while value >= 128:
            out.append(value & 127 | 128)
            value >>= 7
        out.append(value)
    return bytes(out)


# ---- Searches and alignments


@body(
    """
    // Where a pattern of up to 32 letters occurs with at most ERRORS letters wrong, missing or too many (Wu and Manber): bit j of
    // a word says that the first j + 1 letters end here, one word for each number of errors. A thread reads PIECE letters,
    // after as many before them as a match can have.
    threadgroup uint letter_bits[256];
    const uint t = thread_index_in_threadgroup;
    const int m = pattern_shape[0], n = text_shape[0];
    for (uint c = t; c < 256; c += threads_per_threadgroup.x) {
      uint bits = 0;
      for (int j = 0; j < m; ++j) bits |= uint(pattern[j] == c) << j;
      letter_bits[c] = bits;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const int begin = int(thread_position_in_grid.x) * PIECE, end = min(begin + PIECE, n);
    uint state[ERRORS + 1];
    MLX_MTL_PRAGMA_UNROLL
    for (int e = 0; e <= ERRORS; ++e) state[e] = (1u << e) - 1;
    for (int at = max(0, begin - m - ERRORS); at < end; ++at) {
      const uint own = letter_bits[text[at]];
      uint before = state[0];
      state[0] = (state[0] << 1 | 1) & own;
      int best = (state[0] >> (m - 1)) & 1 ? 0 : -1;
      MLX_MTL_PRAGMA_UNROLL
      for (int e = 1; e <= ERRORS; ++e) {
        const uint last = state[e];
        // Right, too many, wrong, missing.
        state[e] = ((last << 1 | 1) & own) | before | (before << 1) | (state[e - 1] << 1) | ((1u << e) - 1);
        before = last;
        if (best < 0 && ((state[e] >> (m - 1)) & 1)) best = e;
      }
      if (at >= begin) errors[at] = char(best);
    }
    """,
    template=[("ERRORS", 2), ("PIECE", 10)],
    inputs=lambda rng: {
        "text": np.frombuffer(
            b"the quick brown fox jumps over the lazy dog; the quik brwn fox, the quiet crown and a quick browser: "
            b"quickbrown, quuick brrown, QUICK BROWN, quack brow" + bytes(rng.integers(97, 123, 60).tolist()),
            np.uint8,
        ),
        "pattern": np.frombuffer(b"quick brown", np.uint8),
    },
    outputs={"errors": ((211,), "int8")},
    grid=(22, 1, 1),
    threadgroup=(22, 1, 1),
    constructs="mlx.MLX_MTL_PRAGMA_UNROLL address_spaces.threadgroup_array types.char structure.template_arguments "
    "attributes.threads_per_threadgroup",
)
def approximate_search(text, pattern):
    column, out = list(range(len(pattern) + 1)), []
    for letter in text:
        new = [0]
        for j, own in enumerate(pattern):
            new.append(min(column[j] + (own != letter), column[j + 1] + 1, new[j] + 1))
        column = new
        out.append(column[-1] if column[-1] <= 2 else -1)
    return np.array(out, np.int8)


_BLOSUM = """
   4, -1, -2, -2,  0, -1, -1,  0, -2, -1, -1, -1, -1, -2, -1,  1,  0, -3, -2,  0,
  -1,  5,  0, -2, -3,  1,  0, -2,  0, -3, -2,  2, -1, -3, -2, -1, -1, -3, -2, -3,
  -2,  0,  6,  1, -3,  0,  0,  0,  1, -3, -3,  0, -2, -3, -2,  1,  0, -4, -2, -3,
  -2, -2,  1,  6, -3,  0,  2, -1, -1, -3, -4, -1, -3, -3, -1,  0, -1, -4, -3, -3,
   0, -3, -3, -3,  9, -3, -4, -3, -3, -1, -1, -3, -1, -2, -3, -1, -1, -2, -2, -1,
  -1,  1,  0,  0, -3,  5,  2, -2,  0, -3, -2,  1,  0, -3, -1,  0, -1, -2, -1, -2,
  -1,  0,  0,  2, -4,  2,  5, -2,  0, -3, -3,  1, -2, -3, -1,  0, -1, -3, -2, -2,
   0, -2,  0, -1, -3, -2, -2,  6, -2, -4, -4, -2, -3, -3, -2,  0, -2, -2, -3, -3,
  -2,  0,  1, -1, -3,  0,  0, -2,  8, -3, -3, -1, -2, -1, -2, -1, -2, -2,  2, -3,
  -1, -3, -3, -3, -1, -3, -3, -4, -3,  4,  2, -3,  1,  0, -3, -2, -1, -3, -1,  3,
  -1, -2, -3, -4, -1, -2, -3, -4, -3,  2,  4, -2,  2,  0, -3, -2, -1, -2, -1,  1,
  -1,  2,  0, -1, -3,  1,  1, -2, -1, -3, -2,  5, -1, -3, -1,  0, -1, -3, -2, -2,
  -1, -1, -2, -3, -1,  0, -2, -3, -2,  1,  2, -1,  5,  0, -2, -1, -1, -1, -1,  1,
  -2, -3, -3, -3, -2, -3, -3, -3, -1,  0,  0, -3,  0,  6, -4, -2, -2,  1,  3, -1,
  -1, -2, -2, -1, -3, -1, -1, -2, -2, -3, -3, -1, -2, -4,  7, -1, -1, -4, -3, -2,
   1, -1,  1,  0, -1,  0,  0,  0, -1, -2, -2,  0, -1, -2, -1,  4,  1, -3, -2, -2,
   0, -1,  0, -1, -1, -1, -1, -2, -2, -1, -1, -1, -1, -2, -1,  1,  5, -2, -2,  0,
  -3, -3, -4, -4, -2, -2, -3, -2, -2, -3, -2, -3, -1,  1, -4, -3, -2, 11,  2, -3,
  -2, -2, -2, -3, -2, -1, -2, -3,  2, -1, -1, -2, -1,  3, -3, -2, -2,  2,  7, -1,
   0, -3, -3, -3, -1, -2, -2, -3, -3,  3,  1, -2,  1, -1, -2, -2,  0, -3, -1,  4,
"""


@body(
    """
    // Local alignment of two proteins (Smith and Waterman, gaps by Gotoh), a pair for each simdgroup. Lane l has row l of a
    // strip of 32 rows of the first protein and is l columns behind lane 0, so that what it needs from the row above is what
    // the lane below computed last. The strip's lowest row waits in threadgroup memory for the next strip.
    threadgroup short2 border[COLUMNS + 1];      // best score and best with a gap downwards, by column
    const int lane = thread_index_in_simdgroup, pair = threadgroup_position_in_grid.x;
    const int rows = first_lengths[pair], columns = second_lengths[pair];
    device const uchar* a = first + pair * first_shape[1];
    device const uchar* b = second + pair * second_shape[1];
    device uchar* way = ways + pair * first_shape[1] * COLUMNS;
    for (int j = lane; j <= columns; j += 32) border[j] = short2(0, kLow);
    simdgroup_barrier(mem_flags::mem_threadgroup);

    int best = 0, best_row = 0, best_column = 0;
    for (int strip = 0; strip < rows; strip += 32) {
      const int row = strip + lane;
      const uchar letter = row < rows ? a[row] : 0;
      int score = 0, across = kLow, down = kLow;   // of the last column
      int diagonal = 0;                            // of the row above, one column before
      for (int step = 0; step < columns + 31; ++step) {
        const int column = step - lane;
        int above = simd_shuffle_up(score, 1), above_down = simd_shuffle_up(down, 1);
        simdgroup_barrier(mem_flags::mem_threadgroup);  // lane 0 reads a column that lane 31 writes 31 steps later
        if (column < 0 || column >= columns) continue;
        if (lane == 0) {
          const short2 waiting = border[column + 1];
          above = waiting.x;
          above_down = waiting.y;
        }
        uchar flags = 0;
        // A gap goes on, or begins.
        if (across - kExtend > score - kOpen) flags |= kAcrossGoesOn;
        across = max(across - kExtend, score - kOpen);
        if (above_down - kExtend > above - kOpen) flags |= kDownGoesOn;
        down = max(above_down - kExtend, above - kOpen);
        const int matched = diagonal + kScores[letter * 20 + b[column]];
        score = max(max(0, matched), max(across, down));
        if (score == 0) flags |= kStop;
        else if (score == matched) flags |= kMatch;
        else if (score == across) flags |= kAcross;
        else flags |= kDown;
        diagonal = above;
        if (row < rows) {
          way[row * COLUMNS + column] = flags;
          if (score > best) {
            best = score;
            best_row = row;
            best_column = column;
          }
          if (lane == 31) border[column + 1] = short2(score, down);
        }
      }
      simdgroup_barrier(mem_flags::mem_threadgroup);
    }
    // The best of all; of equals the one in the first row, and there in the first column.
    const int top = simd_max(best);
    const int place = best == top ? best_row * 256 + best_column : 0x7fffffff;
    const int winner = simd_min(place);
    threadgroup_barrier(mem_flags::mem_device);

    if (lane == 0) {
      // Back from the end, by what the flags say.
      int row = winner / 256, column = winner % 256, same = 0, count = 0;
      uint state = kMatch;
      device uchar* to = operations + pair * operations_length;
      while (row >= 0 && column >= 0) {
        const uint flags = way[row * COLUMNS + column];
        switch (state) {
          case kMatch:
            state = flags & kFrom;
            if (state != kMatch) {
              if (state == kStop) break;
              continue;
            }
            same += a[row] == b[column];
            to[count++] = '=' + (a[row] == b[column] ? 0 : 'X' - '=');
            --row;
            --column;
            continue;
          case kAcross:
            to[count++] = 'I';
            --column;
            state = flags & kAcrossGoesOn ? kAcross : kMatch;
            continue;
          case kDown:
            to[count++] = 'D';
            --row;
            state = flags & kDownGoesOn ? kDown : kMatch;
            continue;
        }
        break;
      }
      device int* result = results + pair * 7;
      result[0] = top;
      result[1] = row + 1;
      result[2] = column + 1;
      result[3] = winner / 256 + 1;
      result[4] = winner % 256 + 1;
      result[5] = same;
      result[6] = count;
    }
    """,
    header="""
// BLOSUM62, letters in the order ARNDCQEGHILKMFPSTWYV.
constant char kScores[400] = {"""
    + _BLOSUM
    + """};

constant int kOpen = 11;
constant int kExtend = 1;
constant int kLow = -10000;

// Where a place's score comes from, and whether its gaps go on.
enum Way : uint { kStop = 0, kMatch = 1, kAcross = 2, kDown = 3, kFrom = 3, kAcrossGoesOn = 4, kDownGoesOn = 8 };
""",
    template=[("COLUMNS", 80)],
    inputs=lambda rng: {
        "first": (letters := rng.integers(0, 20, (3, 72)).astype(np.uint8)),
        # The same with parts changed, cut and put in; and something else.
        "second": np.concatenate(
            [
                np.concatenate(
                    [
                        rng.integers(0, 20, (2, 9)),
                        letters[:2, 5:30],
                        letters[:2, 34:60],
                        rng.integers(0, 20, (2, 5)),
                        letters[:2, 60:],
                    ],
                    axis=1,
                )[:, :72],
                rng.integers(0, 20, (1, 72)),
            ]
        ).astype(np.uint8)
        * (rng.random((3, 72)) < 0.9),
        "first_lengths": np.array([72, 41, 64], np.int32),
        "second_lengths": np.array([72, 70, 33], np.int32),
        "operations_length": 152,
    },
    outputs={"ways": ((3, 72, 80), "uint8"), "operations": ((3, 152), "uint8"), "results": ((3, 7), "int32")},
    grid=(96, 1, 1),
    threadgroup=(32, 1, 1),
    init_value=0,
    constructs="address_spaces.constant_array address_spaces.constant_scalar simdgroup.shuffle_up simdgroup.max simdgroup.min "
    "reconvergence.continue_before_call synchronisation.simdgroup_barrier types.short2 structure.switch types.char "
    "structure.while address_spaces.threadgroup_vectors",
)
def local_alignments(first, second, first_lengths, second_lengths, operations_length):
    scores = np.array([int(n) for n in _BLOSUM.replace(",", " ").split()]).reshape(20, 20)
    ways, operations = np.zeros((3, 72, 80), np.uint8), np.zeros((3, operations_length), np.uint8)
    results = []
    for p in range(3):
        a, b = first[p, : first_lengths[p]], second[p, : second_lengths[p]]
        shape = (len(a) + 1, len(b) + 1)
        h, e, f = np.zeros(shape, int), np.full(shape, -(10**6)), np.full(shape, -(10**6))
        for i in range(1, shape[0]):
            for j in range(1, shape[1]):
                e[i, j] = max(e[i, j - 1] - 1, h[i, j - 1] - 11)
                f[i, j] = max(f[i - 1, j] - 1, h[i - 1, j] - 11)
                matched = h[i - 1, j - 1] + scores[a[i - 1], b[j - 1]]
                h[i, j] = max(0, matched, e[i, j], f[i, j])
                came = 0 if h[i, j] == 0 else 1 + [matched, e[i, j], f[i, j]].index(h[i, j])
                came += 4 * (e[i, j - 1] - 1 > h[i, j - 1] - 11) + 8 * (f[i - 1, j] - 1 > h[i - 1, j] - 11)
                ways[p, i - 1, j - 1] = came
        end_i, end_j = i, j = divmod(int(h.argmax()), shape[1])
        text = ""
        while h[i, j] > 0:
            if ways[p, i - 1, j - 1] & 3 == 1:
                text += "=" if a[i - 1] == b[j - 1] else "X"
                i, j = i - 1, j - 1
            elif ways[p, i - 1, j - 1] & 3 == 2:
                # As long as the gap is worth it.
                length = next(k for k in range(1, j + 1) if h[i, j - k] - 10 - k == h[i, j])
                text, j = text + "I" * length, j - length
            else:
                length = next(k for k in range(1, i + 1) if h[i - k, j] - 10 - k == h[i, j])
                text, i = text + "D" * length, i - length
        operations[p, : len(text)] = list(text.encode())
        results.append([h.max(), i, j, end_i, end_j, text.count("="), len(text)])
    return ways, operations, np.array(results, np.int32)


@body(
    """
    // What an LZ compressor looks for, and its result. Each place finds its longest match among those before it (of equals the
    // nearest); one thread then goes from token to token, taking a match one place later where that is longer; tokens are
    // bytes: a control byte for eight tokens, a literal, or distance and length.
    threadgroup uchar window[SIZE + 4];
    threadgroup uchar length_at[SIZE + 1], distance_at[SIZE];
    const uint t = thread_index_in_threadgroup, block = threadgroup_position_in_grid.x;
    device const uchar* in = data + block * SIZE;
    window[t] = in[t];
    if (t < 4) window[SIZE + t] = 0;
    threadgroup_barrier(mem_flags::mem_threadgroup);

    const uint first_bytes = window[t] | uint(window[t + 1]) << 8 | uint(window[t + 2]) << 16;
    uint longest = 0, distance = 0;
    const uint room = min(SIZE - t, 255u);
    for (uint d = 1; d <= min(t, 255u); ++d) {
      const uint at = t - d;
      const uint bytes = window[at] | uint(window[at + 1]) << 8 | uint(window[at + 2]) << 16;
      if (bytes != first_bytes || room < 3) continue;
      uint length = 3;
      // What comes after may overlap what is matched.
      while (length < room && window[at + length] == window[t + length]) ++length;
      if (length > longest) {
        longest = length;
        distance = d;
      }
    }
    length_at[t] = uchar(longest);
    distance_at[t] = uchar(distance);
    if (t == 0) length_at[SIZE] = 0;
    threadgroup_barrier(mem_flags::mem_threadgroup);

    if (t == 0) {
      device uchar* out = packed + block * (SIZE + SIZE / 8);
      uint at = 0, size = 0, control = 0, tokens = 0;
      while (at < SIZE) {
        if (tokens % 8 == 0) {
          control = size++;
          out[control] = 0;
        }
        uint length = length_at[at];
        if (length > 0 && at + 1 < SIZE && length_at[at + 1] > length) length = 0;
        if (length > 0) {
          out[control] |= 1 << (tokens % 8);
          out[size++] = distance_at[at];
          out[size++] = uchar(length);
          at += length;
        } else {
          out[size++] = window[at++];
        }
        ++tokens;
      }
      sizes[2 * block] = size;
      sizes[2 * block + 1] = tokens;
    }
    """,
    template=[("SIZE", 256)],
    inputs=lambda rng: {
        "data": np.stack(
            [
                np.frombuffer(
                    (
                        b"to be or not to be, that is the question: whether 'tis nobler in the mind to suffer "
                        b"the slings and arrows of outrageous fortune, or to take arms against a sea of troubles, "
                        b"and by opposing end them. to die, to sleep no more; and by a sleep to say we end "
                        b"the heart"
                    )[:256],
                    np.uint8,
                ),
                rng.integers(0, 256, 256).astype(np.uint8),
                np.full(256, 7, np.uint8),
                np.tile(rng.integers(0, 3, 40), 7)[:256].astype(np.uint8),
            ]
        )
    },
    outputs={"packed": ((4, 288), "uint8"), "sizes": ((4, 2), "uint32")},
    grid=(4 * 256, 1, 1),
    threadgroup=(256, 1, 1),
    init_value=0,
    constructs="address_spaces.threadgroup_small_array structure.while types.uchar reconvergence.nested_loops "
    "reconvergence.continue_before_call structure.template_arguments",
)
def compression_by_matches(data):
    packed, sizes = np.zeros((4, 288), np.uint8), []
    for row in range(4):
        text = data[row].tobytes()

        def longest(at, text=text):
            best = (0, 0)
            for d in range(1, min(at, 255) + 1):
                if text[at - d : at - d + 3] != text[at : at + 3]:
                    continue
                n = 0
                while n < 255 and at + n < 256 and text[at + n] == text[at - d + n]:
                    n += 1
                best = max(best, (n, -d))
            return best if best[0] >= 3 else (0, 0)

        matches = [longest(at) for at in range(256)] + [(0, 0)]
        at, tokens = 0, []
        while at < 256:
            length, distance = matches[at]
            if length and length >= matches[at + 1][0]:
                tokens.append(bytes([-distance, length]))
                at += length
            else:
                tokens.append(text[at : at + 1])
                at += 1
        out = b""
        for first in range(0, len(tokens), 8):
            part = tokens[first : first + 8]
            out += bytes([sum((len(token) == 2) << j for j, token in enumerate(part))]) + b"".join(part)
        packed[row, : len(out)] = list(out)
        sizes.append((len(out), len(tokens)))
    return packed, np.array(sizes, np.uint32)
