"""Images as wholes: compression, sensors, colours, sizes, contrast, warps."""

import numpy as np

from bodies import DTYPES, Dtype, body

# ---- Compression

_LUMA_STEPS = """
  16, 11, 10, 16,  24,  40,  51,  61,
  12, 12, 14, 19,  26,  58,  60,  55,
  14, 13, 16, 24,  40,  57,  69,  56,
  14, 17, 22, 29,  51,  87,  80,  62,
  18, 22, 37, 56,  68, 109, 103,  77,
  24, 35, 55, 64,  81, 104, 113,  92,
  49, 64, 78, 87, 103, 121, 120, 101,
  72, 92, 95, 98, 112, 100, 103,  99,
"""
_CHROMA_STEPS = """
  17, 18, 24, 47, 99, 99, 99, 99,
  18, 21, 26, 66, 99, 99, 99, 99,
  24, 26, 56, 99, 99, 99, 99, 99,
  47, 66, 99, 99, 99, 99, 99, 99,
  99, 99, 99, 99, 99, 99, 99, 99,
  99, 99, 99, 99, 99, 99, 99, 99,
  99, 99, 99, 99, 99, 99, 99, 99,
  99, 99, 99, 99, 99, 99, 99, 99,
"""


@body(
    """
    // A threadgroup of 16 x 16 threads takes an area of 16 x 16 pixels: four blocks of luminance, one of each colour difference
    // at half the resolution. It writes what an encoder would (steps in zigzag order and their size in bits) and what a
    // decoder would make of it.
    threadgroup float blocks[6][8][9];
    threadgroup short2 chroma[16][16];
    const int2 t = int2(thread_position_in_threadgroup.xy);
    const int2 size = int2(image_shape[1], image_shape[0]);
    const int2 at = int2(threadgroup_position_in_grid.xy) * 16 + t;
    const uint area = threadgroup_position_in_grid.y * threadgroups_per_grid.x + threadgroup_position_in_grid.x;
    const int index = t.y * 16 + t.x;

    // Pixels beyond the edge repeat the last.
    const int2 inside = min(at, size - 1);
    device const uchar* pixel = image + (inside.y * size.x + inside.x) * 3;
    const short3 colour = to_ycc(short3(pixel[0], pixel[1], pixel[2]));
    blocks[(t.y / 8) * 2 + t.x / 8][t.y % 8][t.x % 8] = float(colour.x - 128);
    chroma[t.y][t.x] = colour.yz;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (index < 64) {
      const int2 c = int2(index % 8, index / 8);
      short2 sum = chroma[2 * c.y][2 * c.x] + chroma[2 * c.y][2 * c.x + 1]
                 + chroma[2 * c.y + 1][2 * c.x] + chroma[2 * c.y + 1][2 * c.x + 1];
      sum = (sum + 2) >> 2;
      blocks[4][c.y][c.x] = float(sum.x - 128);
      blocks[5][c.y][c.x] = float(sum.y - 128);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    // 48 lines of 8: rows, then columns.
    const bool has_line = index < 48;
    const int block = has_line ? index / 8 : 0, line = index % 8;
    Line v;
    if (has_line) {
      v.load(&blocks[block][line][0], 1);
      v.forward();
      v.store(&blocks[block][line][0], 1);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (has_line) {
      v.load(&blocks[block][0][line], 9);
      v.forward();
      v.store(&blocks[block][0][line], 9);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    // Steps of the size that the quality says. A place in zigzag order belongs to one thread, so that it writes its block in
    // order and puts back what a decoder will see.
    for (int j = index; j < 6 * 64; j += 256) {
      const int b = j / 64, order = j % 64, place = kZigzag[order];
      const int step = quantiser(b < 4 ? kLumaSteps[place] : kChromaSteps[place], quality);
      const float coefficient = blocks[b][place / 8][place % 8];
      const short level = short(rint(coefficient / float(step)));
      levels[(area * 6 + b) * 64 + order] = level;
      blocks[b][place / 8][place % 8] = float(level * step);
    }
    threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);

    if (index < 6) {
      // Runs of zeros and levels, both as Exp-Golomb codes, and a bit for the end.
      device const short* own = levels + (area * 6 + index) * 64;
      uint total = 1, run = 0;
      for (int j = 0; j < 64; ++j) {
        const int level = own[j];
        if (level == 0) {
          ++run;
          continue;
        }
        total += 1 + golomb_bits(run) + golomb_bits(level > 0 ? 2 * level - 1 : -2 * level);
        run = 0;
      }
      bits[area * 6 + index] = total;
    }

    if (has_line) {
      v.load(&blocks[block][0][line], 9);
      v.backward();
      v.store(&blocks[block][0][line], 9);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (has_line) {
      v.load(&blocks[block][line][0], 1);
      v.backward();
      v.store(&blocks[block][line][0], 1);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    if (at.x >= size.x || at.y >= size.y) return;
    const float y = blocks[(t.y / 8) * 2 + t.x / 8][t.y % 8][t.x % 8];
    const float cb = blocks[4][t.y / 2][t.x / 2], cr = blocks[5][t.y / 2][t.x / 2];
    const uchar3 rgb = to_rgb(int(rint(y)) + 128, int(rint(cb)), int(rint(cr)));
    device uchar* to = decoded + (at.y * size.x + at.x) * 3;
    to[0] = rgb.r;
    to[1] = rgb.g;
    to[2] = rgb.b;
    """,
    header=f"""
// The example tables of the standard: steps at quality 50.
constant uchar kLumaSteps[64] = {{{_LUMA_STEPS}}};
constant uchar kChromaSteps[64] = {{{_CHROMA_STEPS}}};
"""
    """
// Row by row, the place of the n-th coefficient along the zigzag.
constant uchar kZigzag[64] = {
   0,  1,  8, 16,  9,  2,  3, 10, 17, 24, 32, 25, 18, 11,  4,  5,
  12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13,  6,  7, 14, 21, 28,
  35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
  58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
};

inline int quantiser(int base, int quality) {
  int scale = quality < 50 ? 5000 / quality : 200 - 2 * quality;
  return clamp((base * scale + 50) / 100, 1, 255);
}

// Colours in fixed point of 8 bits.
inline short3 to_ycc(short3 c) {
  int r = c.r, g = c.g, b = c.b;
  return short3(
      (77 * r + 150 * g + 29 * b + 128) >> 8,
      ((-43 * r - 85 * g + 128 * b + 128) >> 8) + 128,
      ((128 * r - 107 * g - 21 * b + 128) >> 8) + 128);
}

inline uchar3 to_rgb(int y, int cb, int cr) {
  int3 c = int3(
      y + ((359 * cr + 128) >> 8),
      y - ((88 * cb + 183 * cr + 128) >> 8),
      y + ((454 * cb + 128) >> 8));
  return uchar3(clamp(c, 0, 255));
}

// Bits of n's Exp-Golomb code.
inline uint golomb_bits(uint n) { return 2 * (31 - clz(n + 1)) + 1; }

// Eight values and their cosine transform, both ways. Sums and differences of mirrored places first: even coefficients need
// the sums, odd ones the differences.
struct Line {
  float x[8];

  void load(const threadgroup float* from, int stride) {
    for (int i = 0; i < 8; ++i) x[i] = from[i * stride];
  }

  void store(threadgroup float* to, int stride) const {
    for (int i = 0; i < 8; ++i) to[i * stride] = x[i];
  }

  // cos(k pi / 16) / 2
#define C1 0.49039264f
#define C2 0.46193977f
#define C3 0.41573481f
#define C4 0.35355339f
#define C5 0.27778512f
#define C6 0.19134172f
#define C7 0.09754516f

  void forward() {
    const float s0 = x[0] + x[7], s1 = x[1] + x[6], s2 = x[2] + x[5], s3 = x[3] + x[4];
    const float d0 = x[0] - x[7], d1 = x[1] - x[6], d2 = x[2] - x[5], d3 = x[3] - x[4];
    const float a0 = s0 + s3, a1 = s1 + s2, a2 = s1 - s2, a3 = s0 - s3;
    x[0] = C4 * (a0 + a1);
    x[4] = C4 * (a0 - a1);
    x[2] = C2 * a3 + C6 * a2;
    x[6] = C6 * a3 - C2 * a2;
    x[1] = C1 * d0 + C3 * d1 + C5 * d2 + C7 * d3;
    x[3] = C3 * d0 - C7 * d1 - C1 * d2 - C5 * d3;
    x[5] = C5 * d0 - C1 * d1 + C7 * d2 + C3 * d3;
    x[7] = C7 * d0 - C5 * d1 + C3 * d2 - C1 * d3;
  }

  void backward() {
    const float e0 = C4 * (x[0] + x[4]), e1 = C4 * (x[0] - x[4]);
    const float e2 = C2 * x[2] + C6 * x[6], e3 = C6 * x[2] - C2 * x[6];
    const float s0 = e0 + e2, s1 = e1 + e3, s2 = e1 - e3, s3 = e0 - e2;
    const float d0 = C1 * x[1] + C3 * x[3] + C5 * x[5] + C7 * x[7];
    const float d1 = C3 * x[1] - C7 * x[3] - C1 * x[5] - C5 * x[7];
    const float d2 = C5 * x[1] - C1 * x[3] + C7 * x[5] + C3 * x[7];
    const float d3 = C7 * x[1] - C5 * x[3] + C3 * x[5] - C1 * x[7];
    x[0] = s0 + d0, x[7] = s0 - d0;
    x[1] = s1 + d1, x[6] = s1 - d1;
    x[2] = s2 + d2, x[5] = s2 - d2;
    x[3] = s3 + d3, x[4] = s3 - d3;
  }
};
""",
    inputs=lambda rng: {
        "image": (
            np.stack(
                [128 + 90 * np.sin(np.add.outer(np.arange(24) * (0.2 + c / 9), np.arange(40) * 0.3)) for c in range(3)],
                -1,
            )
            + rng.integers(-20, 21, (24, 40, 3))
        )
        .clip(0, 255)
        .astype(np.uint8),
        "quality": 70,
    },
    outputs={"levels": ((6, 6, 64), "int16"), "bits": ((6, 6), "uint32"), "decoded": ((24, 40, 3), "uint8")},
    grid=(48, 32, 1),
    threadgroup=(16, 16, 1),
    constructs="structure.struct address_spaces.constant_array address_spaces.threadgroup_2d_array functions.rint "
    "address_spaces.threadgroup_vectors types.short2 types.short3 types.uchar3 functions.clz synchronisation.mem_flags "
    "structure.define_in_header address_spaces.threadgroup_pointer_to_helper",
)
def jpeg_of_areas(image, quality):
    def steps(text):
        base = np.array([int(n) for n in text.replace(",", " ").split()]).reshape(8, 8)
        return np.clip((base * (200 - 2 * quality) + 50) // 100, 1, 255)

    k, n = np.arange(8)[:, None], np.arange(8)
    dct = np.cos((2 * n + 1) * k * np.pi / 16) / 2
    dct[0] /= np.sqrt(2)
    # Diagonals, up and down in turn.
    zigzag = sorted(np.ndindex(8, 8), key=lambda p: (sum(p), p[0] if sum(p) % 2 else p[1]))
    rows, columns = np.array(zigzag).T
    padded = np.pad(image, ((0, 8), (0, 8), (0, 0)), mode="edge").astype(int)
    r, g, b = padded[..., 0], padded[..., 1], padded[..., 2]
    luma = (77 * r + 150 * g + 29 * b + 128 >> 8) - 128
    chroma = [(w[0] * r + w[1] * g + w[2] * b + 128 >> 8) + 128 for w in ((-43, -85, 128), (128, -107, -21))]
    chroma = [(c.reshape(16, 2, 24, 2).sum(axis=(1, 3)) + 2 >> 2) - 128 for c in chroma]

    def coded(plane, table):
        blocks = plane.reshape(plane.shape[0] // 8, 8, -1, 8).swapaxes(1, 2)
        level = np.rint(dct @ blocks @ dct.T / table).astype(int)
        back = np.rint(dct.T @ (level * table) @ dct).astype(int)
        return level[..., rows, columns], back.swapaxes(1, 2).reshape(plane.shape)

    luma_levels, luma_back = coded(luma, steps(_LUMA_STEPS))
    (cb_levels, cb), (cr_levels, cr) = (coded(plane, steps(_CHROMA_STEPS)) for plane in chroma)
    levels = np.zeros((2, 3, 6, 64), int)
    for j in range(4):
        levels[:, :, j] = luma_levels[j // 2 :: 2, j % 2 :: 2]
    levels[:, :, 4], levels[:, :, 5] = cb_levels, cr_levels
    per_area = levels.reshape(6, 6, 64)

    def golomb(value):
        return 2 * (value + 1).bit_length() - 1

    def size(block):
        places = np.flatnonzero(block)
        runs = np.diff(places, prepend=-1) - 1
        values = block[places]
        return 1 + sum(
            1 + golomb(int(run)) + golomb(int(2 * v - 1 if v > 0 else -2 * v))
            for run, v in zip(runs, values, strict=True)
        )

    y, cb, cr = luma_back + 128, cb.repeat(2, axis=0).repeat(2, axis=1), cr.repeat(2, axis=0).repeat(2, axis=1)
    rgb = [y + (359 * cr + 128 >> 8), y - (88 * cb + 183 * cr + 128 >> 8), y + (454 * cb + 128 >> 8)]
    decoded = np.clip(np.stack(rgb, axis=-1), 0, 255)[:24, :40]
    return (
        per_area.astype(np.int16),
        np.array([[size(b) for b in a] for a in per_area], np.uint32),
        decoded.astype(np.uint8),
    )


# ---- Sensors


for _pattern, _name in enumerate(("rggb", "grbg")):

    def _demosaic(raw, black, gains, _pattern=_pattern):
        v = np.maximum(raw.astype(int) - black, 0)
        padded = np.pad(v, 2, mode="reflect")
        height, width = v.shape

        def convolved(kernel):
            return sum(
                kernel[j][i] * padded[j : j + height, i : i + width] for j in range(5) for i in range(5) if kernel[j][i]
            )

        # Sixteenths.
        green = [[0, 0, -2, 0, 0], [0, 0, 4, 0, 0], [-2, 4, 8, 4, -2], [0, 0, 4, 0, 0], [0, 0, -2, 0, 0]]
        along = [[0, 0, 1, 0, 0], [0, -2, 0, -2, 0], [-2, 8, 10, 8, -2], [0, -2, 0, -2, 0], [0, 0, 1, 0, 0]]
        across = np.array(along).T.tolist()
        corners = [[0, 0, -3, 0, 0], [0, 4, 0, 4, 0], [-3, 0, 12, 0, -3], [0, 4, 0, 4, 0], [0, 0, -3, 0, 0]]
        g, a, c, d = (np.clip(convolved(k) + 8 >> 4, 0, 65535) for k in (green, along, across, corners))
        y, x = np.mgrid[:height, :width]
        x = x + (_pattern == 1)
        red, blue = (y % 2 == 0) & (x % 2 == 0), (y % 2 == 1) & (x % 2 == 1)
        red_row = y % 2 == 0
        planes = [
            np.where(red, v, np.where(blue, d, np.where(red_row, a, c))),
            np.where(red | blue, g, v),
            np.where(blue, v, np.where(red, d, np.where(red_row, c, a))),
        ]
        return np.stack([np.minimum(p * int(w) >> 8, 65535) for p, w in zip(planes, gains, strict=True)], -1).astype(
            np.uint16
        )

    body(
        """
    // A sensor sees one colour in each place. The other two come from five by five neighbours: the same colour's mean, corrected
    // by how the place's own colour bends there.
    const int2 at = int2(thread_position_in_grid.xy);
    const int2 size = int2(raw_shape[1], raw_shape[0]);
    if (at.x >= size.x || at.y >= size.y) return;
    int v[5][5];
    for (int dy = 0; dy < 5; ++dy)
      for (int dx = 0; dx < 5; ++dx) {
        int2 q = mirrored(at + int2(dx, dy) - 2, size);
        v[dy][dx] = max(int(raw[q.y * size.x + q.x]) - black, 0);
      }
    const int own = v[2][2];
    const int sides = v[2][1] + v[2][3], ends = v[1][2] + v[3][2];
    const int far_sides = v[2][0] + v[2][4], far_ends = v[0][2] + v[4][2];
    const int corners = v[1][1] + v[1][3] + v[3][1] + v[3][3];
    // Of each filter sixteen times.
    const int cross = sixteenth(8 * own + 4 * (sides + ends) - 2 * (far_sides + far_ends));
    const int along = sixteenth(10 * own + 8 * sides - 2 * corners - 2 * far_sides + far_ends);
    const int across = sixteenth(10 * own + 8 * ends - 2 * corners - 2 * far_ends + far_sides);
    const int diagonal = sixteenth(12 * own + 4 * corners - 3 * (far_sides + far_ends));
    int3 rgb;
    switch (colour_at<PATTERN>(at)) {
      case kRed: rgb = int3(own, cross, diagonal); break;
      case kGreenOfRedRow: rgb = int3(along, own, across); break;
      case kGreenOfBlueRow: rgb = int3(across, own, along); break;
      default: rgb = int3(diagonal, cross, own);
    }
    rgb = min((rgb * int3(gains[0], gains[1], gains[2])) >> 8, 65535);
    for (int c = 0; c < 3; ++c) out[(at.y * size.x + at.x) * 3 + c] = ushort(rgb[c]);
    """,
        name=f"demosaic_{_name}",
        header="""
enum Site { kRed, kGreenOfRedRow, kGreenOfBlueRow, kBlue };

// PATTERN 0 begins with red, 1 with the green beside it.
template <int PATTERN>
inline Site colour_at(int2 at) {
  int x = at.x & 1, y = at.y & 1;
  if constexpr (PATTERN == 1) x ^= 1;
  return Site(2 * y + x);
}

// Without the edge itself twice, so that colours stay where they are.
inline int2 mirrored(int2 q, int2 size) {
  q = abs(q);
  return select(q, 2 * size - 2 - q, q >= size);
}

inline int sixteenth(int sum) { return clamp((sum + 8) >> 4, 0, 65535); }
""",
        template=[("PATTERN", _pattern)],
        inputs=lambda rng: {
            "raw": (
                500
                + 1500 * (1 + np.sin(np.add.outer(np.arange(15) / 3, np.arange(26) / 4)))
                + rng.integers(0, 900, (15, 26))
            ).astype(np.uint16),
            "black": 256,
            "gains": np.array([300, 256, 411], np.int32),
        },
        outputs={"out": ((15, 26, 3), "uint16")},
        grid=(32, 16, 1),
        threadgroup=(16, 8, 1),
        constructs="structure.switch structure.if_constexpr structure.explicit_template_arguments functions.select "
        "functions.abs types.int3 layouts.few_elements structure.early_return",
    )(_demosaic)


# ---- Colours


@body(
    """
    // sRGB in, six spaces out: linear light, HSV, HSL, CIE Lab (a and b from 128, as files keep them), Oklab's lightness, chroma
    // and hue, and YCoCg of linear light.
    const uint i = thread_position_in_grid.x;
    const uint count = threads_per_grid.x;
    const packed_float3 srgb = ((const device packed_float3*)colours)[i];
    device packed_float3* to = (device packed_float3*)out + i;
    #define WRITE(SPACE) to[int(SPACE) * count] = convert<SPACE>(float3(srgb));
    WRITE(Space::Linear)
    WRITE(Space::Hsv)
    WRITE(Space::Hsl)
    WRITE(Space::Lab)
    WRITE(Space::OkLch)
    WRITE(Space::YCoCg)
    #undef WRITE

    // And back from one of them, told at run time: hue turned, lightness kept.
    float3 turned;
    switch (Space(way)) {
      case Space::Hsv: {
        float3 c = to_hsv(float3(srgb));
        c.x = fract(c.x + turn);
        turned = from_hsv(c);
        break;
      }
      case Space::OkLch: {
        float3 c = to_oklch(to_linear(float3(srgb)));
        c.z += turn * 6.28318531f;
        turned = to_gamma(saturate(from_oklch(c)));
        break;
      }
      default:
        turned = float3(srgb);
    }
    ((device packed_float3*)changed)[i] = turned;
    """,
    header="""
enum class Space { Linear, Hsv, Hsl, Lab, OkLch, YCoCg };

// The curve of sRGB and its inverse.
inline float3 to_linear(float3 c) {
  float3 low = c / 12.92f;
  float3 high = powr((c + 0.055f) / 1.055f, float3(2.4f));
  return select(high, low, c <= 0.04045f);
}

inline float3 to_gamma(float3 c) {
  float3 low = c * 12.92f;
  float3 high = 1.055f * powr(c, float3(1.0f / 2.4f)) - 0.055f;
  return select(high, low, c <= 0.0031308f);
}

// Hue as a part of the circle: which of the three is largest says in which third, the other two where in it.
inline float hue(float3 c, float largest, float range) {
  if (range <= 0) return 0;
  float h;
  if (largest == c.r)
    h = (c.g - c.b) / range;
  else if (largest == c.g)
    h = (c.b - c.r) / range + 2;
  else
    h = (c.r - c.g) / range + 4;
  h /= 6;
  return h < 0 ? h + 1 : h;
}

inline float3 to_hsv(float3 c) {
  float largest = max3(c.r, c.g, c.b), range = largest - min3(c.r, c.g, c.b);
  return float3(hue(c, largest, range), largest > 0 ? range / largest : 0, largest);
}

inline float3 from_hsv(float3 c) {
  float3 k = fract(c.x + float3(1, 2.0f / 3, 1.0f / 3)) * 6 - 3;
  float3 pure = saturate(abs(k) - 1);
  return c.z * mix(float3(1), pure, c.y);
}

inline float3 to_hsl(float3 c) {
  float largest = max3(c.r, c.g, c.b), smallest = min3(c.r, c.g, c.b), range = largest - smallest;
  float lightness = (largest + smallest) / 2;
  float room = 1 - abs(2 * lightness - 1);
  return float3(hue(c, largest, range), room > 0 ? range / room : 0, lightness);
}

// Linear sRGB to XYZ, with white at D65; matrices are column after column.
constant float3x3 kToXyz = float3x3(
    float3(0.4124564, 0.2126729, 0.0193339), float3(0.3575761, 0.7151522, 0.1191920), float3(0.1804375, 0.0721750, 0.9503041));
constant float3 kWhite = float3(0.95047, 1.0, 1.08883);

inline float lab_curve(float t) {
  const float d = 6.0f / 29;
  return t > d * d * d ? powr(t, 1.0f / 3) : t / (3 * d * d) + 4.0f / 29;
}

inline float3 to_lab(float3 linear) {
  float3 xyz = (kToXyz * linear) / kWhite;
  float fx = lab_curve(xyz.x), fy = lab_curve(xyz.y), fz = lab_curve(xyz.z);
  return float3(116 * fy - 16, 500 * (fx - fy) + 128, 200 * (fy - fz) + 128);
}

// Oklab: cone responses, their cube roots, and a rotation.
inline float3 to_oklch(float3 c) {
  float l = 0.4122214708f * c.r + 0.5363325363f * c.g + 0.0514459929f * c.b;
  float m = 0.2119034982f * c.r + 0.6806995451f * c.g + 0.1073969566f * c.b;
  float s = 0.0883024619f * c.r + 0.2817188376f * c.g + 0.6299787005f * c.b;
  float3 root = powr(float3(l, m, s), float3(1.0f / 3));
  float lightness = dot(root, float3(0.2104542553, 0.7936177850, -0.0040720468));
  float a = dot(root, float3(1.9779984951, -2.4285922050, 0.4505937099));
  float b = dot(root, float3(0.0259040371, 0.7827717662, -0.8086757660));
  return float3(lightness, length(float2(a, b)), atan2(b, a));
}

inline float3 from_oklch(float3 c) {
  float cosine, sine = sincos(c.z, cosine);
  float a = c.y * cosine, b = c.y * sine;
  float3 root = float3(
      c.x + 0.3963377774f * a + 0.2158037573f * b,
      c.x - 0.1055613458f * a - 0.0638541728f * b,
      c.x - 0.0894841775f * a - 1.2914855480f * b);
  float3 lms = root * root * root;
  return float3(
      dot(lms, float3(4.0767416621, -3.3077115913, 0.2309699292)),
      dot(lms, float3(-1.2684380046, 2.6097574011, -0.3413193965)),
      dot(lms, float3(-0.0041960863, -0.7034186147, 1.7076147010)));
}

inline float3 to_ycocg(float3 c) {
  float co = c.r - c.b, middle = c.b + co / 2, cg = c.g - middle;
  return float3(middle + cg / 2, co + 1, cg + 1);
}

template <Space SPACE>
inline float3 convert(float3 srgb) {
  if constexpr (SPACE == Space::Hsv) return to_hsv(srgb);
  if constexpr (SPACE == Space::Hsl) return to_hsl(srgb);
  float3 linear = to_linear(srgb);
  if constexpr (SPACE == Space::Lab) return to_lab(linear);
  if constexpr (SPACE == Space::OkLch) return to_oklch(linear);
  if constexpr (SPACE == Space::YCoCg) return to_ycocg(linear);
  return linear;
}
""",
    # Away from grey, where hues mean nothing, and from red, where they wrap.
    inputs=lambda rng: {
        "colours": (
            np.array([[0.1, 0.5, 0.75], [0.2, 0.8, 0.35], [0.7, 0.55, 0.15], [0.5, 0.2, 0.7], [0.02, 0.3, 0.05]])[
                np.arange(60) % 5
            ]
            + rng.uniform(0, 0.12, (60, 3))
        ).astype(np.float32),
        "turn": 0.07,
        "way": 1,
    },
    outputs={"out": ((6, 60, 3), "float32"), "changed": ((60, 3), "float32")},
    grid=(60, 1, 1),
    threadgroup=(32, 1, 1),
    tolerance=1e-5,
    constructs="types.packed_vectors types.matrices functions.powr functions.select functions.max3 functions.min3 "
    "functions.fract functions.mix functions.saturate functions.sincos functions.atan2 functions.length "
    "structure.if_constexpr structure.switch address_spaces.constant_vector structure.define",
)
def colours_in_six_spaces(colours, turn, way):
    import colorsys

    c = colours.astype(np.float64)
    linear = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
    hsv = np.array([colorsys.rgb_to_hsv(*p) for p in c])
    hsl = np.array([colorsys.rgb_to_hls(*p) for p in c])[:, [0, 2, 1]]
    xyz = (
        linear
        @ np.array(
            [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
        ).T
        / [0.95047, 1, 1.08883]
    )
    f = np.where(xyz > (6 / 29) ** 3, np.cbrt(xyz), xyz / (3 * (6 / 29) ** 2) + 4 / 29)
    lab = np.stack([116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]) + 128, 200 * (f[:, 1] - f[:, 2]) + 128], axis=-1)
    cones = np.cbrt(
        linear
        @ np.array(
            [
                [0.4122214708, 0.5363325363, 0.0514459929],
                [0.2119034982, 0.6806995451, 0.1073969566],
                [0.0883024619, 0.2817188376, 0.6299787005],
            ]
        ).T
    )
    ok = (
        cones
        @ np.array(
            [
                [0.2104542553, 0.7936177850, -0.0040720468],
                [1.9779984951, -2.4285922050, 0.4505937099],
                [0.0259040371, 0.7827717662, -0.8086757660],
            ]
        ).T
    )
    lch = np.stack([ok[:, 0], np.hypot(ok[:, 1], ok[:, 2]), np.arctan2(ok[:, 2], ok[:, 1])], axis=-1)
    r, g, b = linear.T
    ycocg = np.stack([r / 4 + g / 2 + b / 4, r - b + 1, g - (r + b) / 2 + 1], axis=-1)
    changed = np.array([colorsys.hsv_to_rgb((h + turn) % 1, s, v) for h, s, v in hsv])
    return np.stack([linear, hsv, hsl, lab, lch, ycocg]), changed


# ---- Sizes


for _kind, _name in ((0, "catmull_rom"), (1, "lanczos")):

    def _resized(image, _kind=_kind):
        def weights(size, wanted):
            scale = size / wanted
            wide = max(scale, 1)
            at = (np.arange(wanted)[:, None] + 0.5) * scale - 0.5
            d = abs((np.arange(-20, size + 20) - at) / wide)
            if _kind == 1:
                w = np.where(d < 3, np.sinc(d) * np.sinc(d / 3), 0)
            else:
                w = np.where(
                    d < 1, 1.5 * d**3 - 2.5 * d**2 + 1, np.where(d < 2, -0.5 * d**3 + 2.5 * d**2 - 4 * d + 2, 0)
                )
            w /= w.sum(axis=1, keepdims=True)
            # Places outside count for the edge.
            folded = w[:, 20:-20].copy()
            folded[:, 0] += w[:, :20].sum(axis=1)
            folded[:, -1] += w[:, -20:].sum(axis=1)
            return folded

        image = image.astype(np.float64)
        rows = np.einsum("ij,njkc->nikc", weights(18, 13), image)
        return np.einsum("ij,nkjc->nkic", weights(14, 33), rows)

    body(
        """
    // Any size to any other. A thread computes one pixel of all channels; its filter is wider where the image shrinks, so that
    // nothing is skipped.
    const uint3 at = thread_position_in_grid;
    const int height = image_shape[1], width = image_shape[2];
    const float2 scale = float2(width, height) / float2(threads_per_grid.xy);
    const float2 wide = max(scale, 1.0f);
    const float2 centre = (float2(at.xy) + 0.5f) * scale - 0.5f;
    const int2 first = int2(ceil(centre - Kernel<KIND>::support * wide)), last = int2(floor(centre + Kernel<KIND>::support * wide));
    float column_weight[MOST], columns = 0;
    for (int x = first.x; x <= last.x; ++x) {
      float w = Kernel<KIND>::at((float(x) - centre.x) / wide.x);
      column_weight[x - first.x] = w;
      columns += w;
    }
    float sum[CHANNELS] = {}, rows = 0;
    for (int y = first.y; y <= last.y; ++y) {
      float w = Kernel<KIND>::at((float(y) - centre.y) / wide.y);
      rows += w;
      const device T* line = image + (at.z * height + clamp(y, 0, height - 1)) * width * CHANNELS;
      float part[CHANNELS] = {};
      for (int x = first.x; x <= last.x; ++x)
        for (int c = 0; c < CHANNELS; ++c)
          part[c] += column_weight[x - first.x] * float(line[clamp(x, 0, width - 1) * CHANNELS + c]);
      for (int c = 0; c < CHANNELS; ++c) sum[c] += w * part[c];
    }
    device T* to = out + ((at.z * threads_per_grid.y + at.y) * threads_per_grid.x + at.x) * CHANNELS;
    for (int c = 0; c < CHANNELS; ++c) to[c] = T(sum[c] / (rows * columns));
    """,
        name=f"resize_{_name}",
        header="""
// 0: a cubic through the points, 1: a sinc under a wider sinc.
template <int KIND>
struct Kernel {
  static constexpr constant float support = 2;
  static float at(float d) {
    d = fabs(d);
    if (d < 1) return fma(fma(1.5f, d, -2.5f), d * d, 1.0f);
    if (d < 2) return fma(fma(fma(-0.5f, d, 2.5f), d, -4.0f), d, 2.0f);
    return 0;
  }
};

template <>
struct Kernel<1> {
  static constexpr constant float support = 3;
  static float at(float d) {
    d = fabs(d);
    if (d >= 3) return 0;
    if (d < 1e-4f) return 1;
    return 3 * sinpi(d) * sinpi(d / 3) / (M_PI_F * M_PI_F * d * d);
  }
};
""",
        template=[("T", Dtype("float32")), ("KIND", _kind), ("CHANNELS", 3), ("MOST", 16)],
        inputs=lambda rng: {"image": rng.uniform(1, 2, (2, 18, 14, 3)).astype(DTYPES["float32"])},
        outputs={"out": ((2, 13, 33, 3), "float32")},
        grid=(33, 13, 2),
        threadgroup=(16, 4, 1),
        tolerance=3e-6,
        constructs="structure.template functions.sinpi functions.fma functions.ceil functions.floor types.float2 "
        "types.M_constants structure.dynamic_local_array reconvergence.divergent_trip_count",
    )(_resized)


# ---- Contrast


@body(
    """
    // Contrast-limited adaptive histogram equalisation. Tiles of SIDE / 2 squared have a histogram each; what is above the limit
    // is spread over all bins, the running sum is the tile's curve, and a pixel is between the curves of four tiles.
    constexpr uint TILE = SIDE / 2, BINS = 64;
    threadgroup atomic_uint histogram[4][BINS];
    threadgroup ushort curve[4][BINS];
    threadgroup atomic_uint excess[4];
    const uint t = thread_index_in_threadgroup;
    const int2 p = int2(thread_position_in_threadgroup.xy);
    device const uchar* in = image + threadgroup_position_in_grid.z * SIDE * SIDE;
    const uint value = in[p.y * SIDE + p.x];
    if (t < 4 * BINS) atomic_store_explicit(&histogram[t / BINS][t % BINS], 0u, memory_order_relaxed);
    if (t < 4) atomic_store_explicit(&excess[t], 0u, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const uint tile = (p.y / TILE) * 2 + p.x / TILE;
    atomic_fetch_add_explicit(&histogram[tile][value >> 2], 1u, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);

    uint own = 0;
    if (t < 4 * BINS) {
      own = atomic_load_explicit(&histogram[t / BINS][t % BINS], memory_order_relaxed);
      if (own > LIMIT) {
        atomic_fetch_add_explicit(&excess[t / BINS], own - LIMIT, memory_order_relaxed);
        own = LIMIT;
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (t < 4 * BINS) {
      const uint spread = atomic_load_explicit(&excess[t / BINS], memory_order_relaxed);
      own += spread / BINS + (t % BINS < spread % BINS ? 1 : 0);
      // Two simdgroups are a tile's bins: the second adds the first's sum.
      const uint sum = simd_prefix_inclusive_sum(own);
      atomic_store_explicit(&histogram[t / BINS][t % BINS], sum, memory_order_relaxed);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (t < 4 * BINS) {
      uint sum = atomic_load_explicit(&histogram[t / BINS][t % BINS], memory_order_relaxed);
      if (t % BINS >= 32) sum += atomic_load_explicit(&histogram[t / BINS][31], memory_order_relaxed);
      curve[t / BINS][t % BINS] = ushort(sum * 255 / (TILE * TILE));
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    // Where the pixel lies between the tiles' centres, in units of half a pixel.
    const int2 from = clamp(2 * p + 1 - int(TILE), 0, int(2 * TILE));
    const int bin = value >> 2;
    const int top = curve[0][bin] * (2 * TILE - from.x) + curve[1][bin] * from.x;
    const int bottom = curve[2][bin] * (2 * TILE - from.x) + curve[3][bin] * from.x;
    const int mixed = top * (2 * TILE - from.y) + bottom * from.y;
    out[threadgroup_position_in_grid.z * SIDE * SIDE + p.y * SIDE + p.x] = uchar(mixed / (4 * TILE * TILE));
    """,
    template=[("SIDE", 32), ("LIMIT", 10)],
    inputs=lambda rng: {
        "image": (70 + 30 * rng.random((2, 32, 32)) ** 2 + np.add.outer(np.arange(32), np.arange(32)) * 1.2).astype(
            np.uint8
        )
    },
    outputs={"out": ((2, 32, 32), "uint8")},
    grid=(32, 32, 2),
    threadgroup=(32, 32, 1),
    constructs="synchronisation.threadgroup_atomics address_spaces.threadgroup_atomic simdgroup.prefix_inclusive_sum "
    "address_spaces.threadgroup_small_array synchronisation.fetch_add barriers.three_dimensions structure.constexpr",
)
def adaptive_equalisation(image):
    results = []
    for picture in image.astype(int):
        curves = []
        for tile in (picture[:16, :16], picture[:16, 16:], picture[16:, :16], picture[16:, 16:]):
            counts = np.bincount(tile.ravel() // 4, minlength=64)
            excess = np.maximum(counts - 10, 0).sum()
            counts = np.minimum(counts, 10) + excess // 64 + (np.arange(64) < excess % 64)
            curves.append(counts.cumsum() * 255 // 256)
        y, x = (np.clip(2 * v + 1 - 16, 0, 32) for v in np.mgrid[:32, :32])
        a, b, c, d = (curve[picture // 4] for curve in curves)
        results.append(((a * (32 - x) + b * x) * (32 - y) + (c * (32 - x) + d * x) * y) // 1024)
    return np.array(results, np.uint8)


# ---- Warps


@body(
    """
    // A batch of images, each by its own projective map (output to input), with what lies outside as `border` says:
    // 0 nothing, 1 the edge's pixel, 2 mirrored, 3 round again.
    const uint3 at = thread_position_in_grid;
    const int2 size = int2(images_shape[2], images_shape[1]);
    device const float* m = maps + at.z * 9;
    const float3x3 map = float3x3(float3(m[0], m[3], m[6]), float3(m[1], m[4], m[7]), float3(m[2], m[5], m[8]));
    const float3 h = map * float3(float2(at.xy), 1.0f);
    const float2 from = h.xy / h.z;
    const float2 corner = floor(from), part = from - corner;
    const int2 first = int2(corner);
    float4 weights = float4((1 - part.x) * (1 - part.y), part.x * (1 - part.y), (1 - part.x) * part.y, part.x * part.y);
    float4 taps;
    #pragma clang loop unroll(full)
    for (int j = 0; j < 4; ++j) {
      int2 q = first + int2(j & 1, j >> 1);
      bool inside = true;
      switch (border) {
        case 1: q = clamp(q, int2(0), size - 1); break;
        case 2: q = int2(mirror(q.x, size.x), mirror(q.y, size.y)); break;
        case 3: q = ((q % size) + size) % size; break;
        default: inside = all(q >= 0) && all(q < size);
      }
      taps[j] = inside ? images[at.z * images_strides[0] + q.y * images_strides[1] + q.x * images_strides[2]] : 0.0f;
    }
    out[(at.z * threads_per_grid.y + at.y) * threads_per_grid.x + at.x] = 10 + dot(weights, taps);
    """,
    header="""
// 0 1 2 2 1 0 0 1 2 ...
inline int mirror(int i, int n) {
  int period = 2 * n;
  i = ((i % period) + period) % period;
  return i < n ? i : period - 1 - i;
}
""",
    inputs=lambda rng: {
        # Every image with its rows turned over.
        "images": rng.normal(size=(3, 9, 11)).astype(np.float32)[:, ::-1],
        "maps": np.array(
            [
                [[0.8, 0.3, -2.05], [-0.2, 0.9, 1.07], [0, 0, 1]],
                [[1, 0, 3.3], [0, 1, -2.4], [0.01, 0.02, 1]],
                [[-1.1, 0.02, 12.31], [0.05, -0.7, 9.13], [0, 0.004, 0.9]],
            ]
        ).astype(np.float32),
        "border": 2,
    },
    outputs={"out": ((3, 10, 12), "float32")},
    grid=(12, 10, 3),
    threadgroup=(8, 8, 2),
    ensure_row_contiguous=False,
    tolerance=2e-6,
    constructs="layouts.negative_strides layouts.strided types.matrices structure.pragma_clang_loop functions.all "
    "structure.switch types.float4 functions.dot layouts.shape_arguments",
)
def projective_warp(images, maps, border):
    assert border == 2
    out = np.zeros((3, 10, 12))
    y, x = np.mgrid[:10, :12]
    for n in range(3):
        padded = np.pad(images[n].astype(np.float64), 60, mode="symmetric")
        u, v, w = maps[n].astype(np.float64) @ np.stack([x.ravel(), y.ravel(), np.ones(120)])
        u, v = u / w + 60, v / w + 60
        i, j = np.floor(u).astype(int), np.floor(v).astype(int)
        a, b = u - i, v - j
        value = (1 - b) * ((1 - a) * padded[j, i] + a * padded[j, i + 1]) + b * (
            (1 - a) * padded[j + 1, i] + a * padded[j + 1, i + 1]
        )
        out[n] = 10 + value.reshape(10, 12)
    return out
