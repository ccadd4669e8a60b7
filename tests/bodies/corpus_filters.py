"""Filters of images: smoothing, medians, edges, morphology, sharpening, dithering, sums of rectangles."""

import numpy as np

from bodies import DTYPES, Dtype, body


def _picture(rng, height, width, channels=None):
    """Something with smooth parts and edges, in [0, 1]."""
    y, x = np.mgrid[:height, :width]
    parts = [
        0.5 + 0.3 * np.sin(x / 5 + c) * np.cos(y / 7 - c) + 0.2 * ((x // 9 + y // 6 + c) % 2)
        for c in range(channels or 1)
    ]
    picture = np.stack(parts, axis=-1) * 0.85 + rng.random((height, width, channels or 1)) * 0.1
    return picture.astype(np.float32)[..., 0] if channels is None else picture.astype(np.float32)


def _clamped(image, dy, dx):
    """The image moved, with its edges repeated."""
    height, width = image.shape[:2]
    rows = np.clip(np.arange(height) + dy, 0, height - 1)
    columns = np.clip(np.arange(width) + dx, 0, width - 1)
    return image[rows][:, columns]


# ---- Smoothing


for _dtype in ("float32", "float16"):

    def _gaussian(image, sigma, _dtype=_dtype):
        weights = np.exp(-0.5 * (np.arange(-4, 5) / float(sigma)) ** 2)
        weights /= weights.sum()
        image = image.astype(np.float64)
        rows = sum(w * _clamped(image, 0, d) for w, d in zip(weights, range(-4, 5), strict=True))
        return sum(w * _clamped(rows, d, 0) for w, d in zip(weights, range(-4, 5), strict=True))

    body(
        """
    // Both passes of a separable Gaussian in one launch. A tile and its halo come into threadgroup memory, rows are smoothed
    // into a second tile, columns on the way out.
    constexpr int W = TILE_W + 2 * RADIUS, H = TILE_H + 2 * RADIUS;
    threadgroup T source[H][W + 1];       // a column more, so that columns lie in different banks
    threadgroup float smoothed[H][TILE_W];
    const int2 t = int2(thread_position_in_threadgroup.xy);
    const int2 origin = int2(threadgroup_position_in_grid.xy) * int2(TILE_W, TILE_H) - RADIUS;
    const int2 size = int2(image_shape[1], image_shape[0]);
    const int index = t.y * TILE_W + t.x;

    for (int j = index; j < W * H; j += TILE_W * TILE_H) {
      int2 at = clamp(origin + int2(j % W, j / W), int2(0), size - 1);
      source[j / W][j % W] = image[at.y * size.x + at.x];
    }
    float weights[RADIUS + 1];
    float total = 0;
    #pragma unroll
    for (int j = 0; j <= RADIUS; ++j) {
      weights[j] = metal::precise::exp(-0.5f * float(j * j) / (sigma * sigma));
      total += j == 0 ? weights[j] : 2 * weights[j];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    for (int y = t.y; y < H; y += TILE_H) {
      float sum = weights[0] * float(source[y][t.x + RADIUS]);
      #pragma unroll
      for (int j = 1; j <= RADIUS; ++j)
        sum += weights[j] * (float(source[y][t.x + RADIUS - j]) + float(source[y][t.x + RADIUS + j]));
      smoothed[y][t.x] = sum / total;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    const int2 at = origin + RADIUS + t;
    if (at.x >= size.x || at.y >= size.y) return;
    float sum = weights[0] * smoothed[t.y + RADIUS][t.x];
    #pragma unroll
    for (int j = 1; j <= RADIUS; ++j)
      sum += weights[j] * (smoothed[t.y + RADIUS - j][t.x] + smoothed[t.y + RADIUS + j][t.x]);
    out[at.y * size.x + at.x] = T(sum / total);
    """,
        name=f"gaussian_with_halo_{_dtype}",
        template=[("T", Dtype(_dtype)), ("RADIUS", 4), ("TILE_W", 16), ("TILE_H", 8)],
        inputs=lambda rng, _dtype=_dtype: {"image": (_picture(rng, 29, 37) + 0.1).astype(DTYPES[_dtype]), "sigma": 1.7},
        outputs={"out": ((29, 37), _dtype)},
        grid=(48, 32, 1),
        threadgroup=(16, 8, 1),
        tolerance=2e-6 if _dtype == "float32" else 2**-10.5,
        constructs="address_spaces.threadgroup_array_of_T address_spaces.threadgroup_2d_array functions.clamp "
        "barriers.between_two_loops functions.precise types.int2 structure.pragma_unroll",
    )(_gaussian)


@body(
    """
    // Smoothing that keeps edges: a neighbour counts by its distance and by how alike its colour is.
    const int2 at = int2(thread_position_in_grid.xy);
    const int height = image_shape[0], width = image_shape[1];
    const packed_float3 centre = pixel(image, at, image_strides);
    float3 sum = 0;
    float weights = 0;
    for (int dy = -radius; dy <= radius; ++dy) {
      for (int dx = -radius; dx <= radius; ++dx) {
        int2 q = at + int2(dx, dy);
        if (any(q < 0) || q.x >= width || q.y >= height) continue;
        float3 colour = pixel(image, q, image_strides);
        float3 difference = colour - centre;
        float likeness = dot(difference, difference) * range_scale;
        float nearness = float(dx * dx + dy * dy) * space_scale;
        float w = exp(-(likeness + nearness));
        sum = fma(float3(w), colour, sum);
        weights += w;
      }
    }
    ((device packed_float3*)out)[at.y * width + at.x] = sum / weights;
    """,
    header="""
// A pixel of an image whose channels are planes, rows, or anything else that strides can say.
inline float3 pixel(const device float* image, int2 at, const constant int64_t* strides) {
  const device float* p = image + at.y * strides[0] + at.x * strides[1];
  return float3(p[0], p[strides[2]], p[2 * strides[2]]);
}
""",
    inputs=lambda rng: {
        # Planes, seen as pixels, and every second column of them.
        "image": np.ascontiguousarray(_picture(rng, 14, 42, 3).transpose(2, 0, 1)).transpose(1, 2, 0)[:, ::2],
        "radius": 2,
        "range_scale": 18.0,
        "space_scale": 0.15,
    },
    outputs={"out": ((14, 21, 3), "float32")},
    grid=(21, 14, 1),
    threadgroup=(8, 8, 1),
    ensure_row_contiguous=False,
    tolerance=3e-6,
    constructs="layouts.strided layouts.shape_arguments types.packed_vectors functions.any functions.dot functions.exp "
    "reconvergence.divergent_trip_count",
)
def bilateral_filter(image, radius, range_scale, space_scale):
    image = image.astype(np.float64)
    y, x = np.mgrid[:14, :21]
    total, weights = np.zeros((14, 21, 3)), np.zeros((14, 21, 1))
    for dy in range(-radius, radius + 1):
        for dx in range(-radius, radius + 1):
            inside = (y + dy >= 0) & (y + dy < 14) & (x + dx >= 0) & (x + dx < 21)
            moved = _clamped(image, dy, dx)
            like = ((moved - image) ** 2).sum(axis=-1)
            w = np.where(inside, np.exp(-(like * range_scale + (dx * dx + dy * dy) * space_scale)), 0)[..., None]
            total, weights = total + w * moved, weights + w
    return total / weights


# ---- Ranks


@body(
    """
    // The median of 5 x 5 bytes. 25 values are too many to sort: an exchange that leaves a value which cannot be the median
    // any more drops it.
    const int2 at = int2(thread_position_in_grid.xy);
    const int width = x_shape[1], height = x_shape[0];
    uchar p[25];
    #pragma unroll
    for (int dy = 0; dy < 5; ++dy) {
      const device uchar* row = x + clamp(at.y + dy - 2, 0, height - 1) * width;
      #pragma unroll
      for (int dx = 0; dx < 5; ++dx) p[5 * dy + dx] = row[clamp(at.x + dx - 2, 0, width - 1)];
    }
    // Of 14 values the smallest has 13 above it, and the largest 13 below: neither is the median of 25. Without them,
    // and with one more each time, the same holds of 13, 12, ... 3.
    DROP(14, 14) DROP(13, 15) DROP(12, 16) DROP(11, 17) DROP(10, 18) DROP(9, 19)
    DROP(8, 20) DROP(7, 21) DROP(6, 22) DROP(5, 23) DROP(4, 24)
    y[at.y * width + at.x] = median3(p[0], p[1], p[2]);
    """,
    header="""
#define EXCHANGE(a, b)         \\
  {                            \\
    uchar low = min(a, b);     \\
    b = max(a, b);             \\
    a = low;                   \\
  }

// Moves the smallest of the first N to p[0], the largest to p[N - 1]; then the next value takes the place of the smallest,
// and the largest is left behind.
#define DROP(N, NEXT)                                               \\
  {                                                                 \\
    _Pragma("unroll")                                               \\
    for (int i = 0; i < N / 2; ++i) EXCHANGE(p[i], p[N - 1 - i])    \\
    _Pragma("unroll")                                               \\
    for (int i = 1; i < (N + 1) / 2; ++i) EXCHANGE(p[0], p[i])      \\
    _Pragma("unroll")                                               \\
    for (int i = N / 2; i < N - 1; ++i) EXCHANGE(p[i], p[N - 1])    \\
    p[0] = p[NEXT];                                                 \\
  }
""",
    inputs=lambda rng: {"x": (_picture(rng, 11, 22) * 255 * rng.choice([0, 1, 1, 1, 1], (11, 22))).astype(np.uint8)},
    outputs={"y": ((11, 22), "uint8")},
    grid=(22, 11, 1),
    threadgroup=(8, 4, 1),
    constructs="types.uchar functions.median3 structure.multi_line_macro_in_header structure._Pragma structure.pragma_unroll "
    "functions.min functions.max functions.clamp",
)
def median_of_twenty_five(x):
    around = [_clamped(x, dy, dx) for dy in range(-2, 3) for dx in range(-2, 3)]
    return np.sort(np.stack(around), axis=0)[12]


# ---- Edges


@body(
    """
    // Canny's edges in one launch for an image of one tile: smoothing, gradients, thinning across the edge, then weak edges
    // that hang together with strong ones. Integers all the way, so that ties are ties.
    threadgroup int grey[SIDE][SIDE];
    threadgroup int strength[SIDE + 2][SIDE + 2];
    threadgroup uchar state[SIDE][SIDE];
    threadgroup atomic_int changed;
    const int2 t = int2(thread_position_in_threadgroup.xy);
    const int index = t.y * SIDE + t.x;

    // Five taps each way: 1 4 6 4 1, first along rows.
    {
      int sum = 0;
      CANNY_TAPS(raw[t.y * SIDE + clamp(t.x + j, 0, SIDE - 1)])
      grey[t.y][t.x] = sum;
    }
    for (int j = index; j < (SIDE + 2) * (SIDE + 2); j += SIDE * SIDE) strength[j / (SIDE + 2)][j % (SIDE + 2)] = 0;
    if (index == 0) atomic_store_explicit(&changed, 0, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    int smooth;
    {
      int sum = 0;
      CANNY_TAPS(grey[clamp(t.y + j, 0, SIDE - 1)][t.x])
      smooth = (sum + 128) >> 8;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    grey[t.y][t.x] = smooth;
    threadgroup_barrier(mem_flags::mem_threadgroup);

    // Sobel's gradient.
    const int up = max(t.y - 1, 0), down = min(t.y + 1, SIDE - 1), left = max(t.x - 1, 0), right = min(t.x + 1, SIDE - 1);
    const int gx = grey[up][right] + 2 * grey[t.y][right] + grey[down][right]
                 - grey[up][left] - 2 * grey[t.y][left] - grey[down][left];
    const int gy = grey[down][left] + 2 * grey[down][t.x] + grey[down][right]
                 - grey[up][left] - 2 * grey[up][t.x] - grey[up][right];
    const int own = abs(gx) + abs(gy);
    strength[t.y + 1][t.x + 1] = own;
    threadgroup_barrier(mem_flags::mem_threadgroup);

    // Which of four directions the gradient has: |gy / gx| against tan 22.5 degrees and its inverse, as 53 / 128.
    int2 step;
    const int ax = abs(gx), ay = abs(gy);
    if (ay * 128 < ax * 53) step = int2(1, 0);
    else if (ax * 128 < ay * 53) step = int2(0, 1);
    else if ((gx ^ gy) >= 0) step = int2(1, 1);
    else step = int2(1, -1);
    const int ahead = strength[t.y + 1 + step.y][t.x + 1 + step.x];
    const int behind = strength[t.y + 1 - step.y][t.x + 1 - step.x];
    // On a plateau the one behind is kept.
    const bool ridge = own > ahead && own >= behind;
    enum { kNone = 0, kWeak = 1, kStrong = 2 };
    state[t.y][t.x] = !ridge || own < low ? kNone : own < high ? kWeak : kStrong;
    threadgroup_barrier(mem_flags::mem_threadgroup);

    // Hysteresis: strength spreads to weak neighbours until nothing changes.
    for (int round = 1;; ++round) {
      bool rises = false;
      if (state[t.y][t.x] == kWeak) {
        for (int dy = -1; dy <= 1 && !rises; ++dy)
          for (int dx = -1; dx <= 1; ++dx) {
            const int y = t.y + dy, x = t.x + dx;
            if (y < 0 || x < 0 || y >= SIDE || x >= SIDE) continue;
            if (state[y][x] == kStrong) rises = true;
          }
      }
      if (rises) atomic_store_explicit(&changed, round, memory_order_relaxed);
      threadgroup_barrier(mem_flags::mem_threadgroup);
      if (rises) state[t.y][t.x] = kStrong;
      const bool stop = atomic_load_explicit(&changed, memory_order_relaxed) != round;
      threadgroup_barrier(mem_flags::mem_threadgroup);
      if (stop) {
        if (index == 0) rounds[0] = round;
        break;
      }
    }
    edges[index] = state[t.y][t.x] == kStrong ? 255 : 0;
    gradients[index] = own;
    """,
    header="""
#define CANNY_TAPS(at)                                             \\
  for (int j = -2; j <= 2; ++j) {                                  \\
    const int weight = j == 0 ? 6 : (j == -1 || j == 1) ? 4 : 1;   \\
    sum += weight * int(at);                                       \\
  }
""",
    template=[("SIDE", 30)],
    inputs=lambda rng: {
        "raw": np.clip(
            160
            * ((np.hypot(*(np.mgrid[:30, :30] - 14)) < 9.5) ^ (np.mgrid[:30, :30][1] > 20))
            * np.linspace(0.25, 1, 30)
            + rng.integers(0, 25, (30, 30)),
            0,
            255,
        ).astype(np.uint8),
        "low": 90,
        "high": 300,
    },
    outputs={"edges": ((30, 30), "uint8"), "gradients": ((30, 30), "int32"), "rounds": ((1,), "int32")},
    grid=(30, 30, 1),
    threadgroup=(30, 30, 1),
    constructs="barriers.with_break barriers.run_time_trip_count address_spaces.threadgroup_small_array functions.abs "
    "synchronisation.threadgroup_atomics address_spaces.threadgroup_2d_array structure.multi_line_macro_in_header "
    "barriers.loop_variables_across",
)
def canny_edges(raw, low, high):
    taps = dict(zip(range(-2, 3), (1, 4, 6, 4, 1), strict=True))
    image = raw.astype(int)
    image = sum(w * _clamped(image, 0, d) for d, w in taps.items())
    image = (sum(w * _clamped(image, d, 0) for d, w in taps.items()) + 128) // 256
    gx = sum(w * (_clamped(image, d, 1) - _clamped(image, d, -1)) for d, w in ((-1, 1), (0, 2), (1, 1)))
    gy = sum(w * (_clamped(image, 1, d) - _clamped(image, -1, d)) for d, w in ((-1, 1), (0, 2), (1, 1)))
    ax, ay = abs(gx), abs(gy)
    strength = ax + ay
    padded = np.pad(strength, 1)

    def neighbour(dy, dx):
        return padded[1 + dy : 31 + dy, 1 + dx : 31 + dx]

    flat, steep = ay * 128 < ax * 53, ax * 128 < ay * 53
    same = (gx < 0) == (gy < 0)
    cases = [(flat, 0, 1), (~flat & steep, 1, 0), (~flat & ~steep & same, 1, 1), (~flat & ~steep & ~same, -1, 1)]
    ridge = np.zeros((30, 30), bool)
    for where, dy, dx in cases:
        ridge |= where & (strength > neighbour(dy, dx)) & (strength >= neighbour(-dy, -dx))
    weak, strong = ridge & (strength >= low), ridge & (strength >= high)
    rounds = 1
    while True:
        grown = np.pad(strong, 1)
        grown = weak & np.any([grown[a : a + 30, b : b + 30] for a in range(3) for b in range(3)], axis=0)
        if (grown == strong).all():
            break
        strong, rounds = grown, rounds + 1
    return np.where(strong, 255, 0).astype(np.uint8), strength.astype(np.int32), np.array([rounds], np.int32)


# ---- Shapes


for _name, _first in (("opening", 0), ("closing", 1)):

    def _morphology(x, _first=_first):
        def along(image, axis, largest):
            moved = [_clamped(image, *((d, 0) if axis == 0 else (0, d))) for d in range(-3, 4)]
            return np.max(moved, axis=0) if largest else np.min(moved, axis=0)

        for largest in (_first, 1 - _first):
            x = along(along(x, 1, largest), 0, largest)
        return x

    body(
        """
    // Opening (or closing) of grey values by a square of 2 R + 1, as van Herk has it: three comparisons a value whatever R is.
    // A line is cut into pieces of 2 R + 1; minima run from each piece's beginning forwards, from its end backwards, and a
    // window, which meets two pieces, is the smaller of one of each. A thread has a line: rows first, then columns.
    constexpr int SPAN = 2 * R + 1;
    threadgroup ushort image[SIDE][SIDE + 1];
    threadgroup ushort forwards[(SIDE + 4 * R) * SIDE], backwards[(SIDE + 4 * R) * SIDE];
    const int t = thread_index_in_threadgroup;
    for (int y = 0; y < SIDE; ++y) image[y][t] = x[(threadgroup_position_in_grid.y * SIDE + y) * SIDE + t];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    #pragma unroll
    for (int pass = 0; pass < 2; ++pass) {
      const bool largest = (pass == 0) == (FIRST == 1);
      van_herk<SIDE, SPAN>(&image[t][0], 1, forwards + t, backwards + t, largest);
      threadgroup_barrier(mem_flags::mem_threadgroup);
      van_herk<SIDE, SPAN>(&image[0][t], SIDE + 1, forwards + t, backwards + t, largest);
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    for (int j = 0; j < SIDE; ++j) y[(threadgroup_position_in_grid.y * SIDE + j) * SIDE + t] = image[j][t];
    """,
        name=f"morphological_{_name}",
        header="""
// A line of N, whose neighbours are `step` apart. Both scratch lines have a place for each thread side by side.
template <int N, int SPAN>
void van_herk(
    threadgroup ushort* line, int step, threadgroup ushort* forwards, threadgroup ushort* backwards, bool largest) {
  constexpr int R = SPAN / 2;
  constexpr int PADDED = ((N + 2 * R + SPAN - 1) / SPAN) * SPAN;
  // Maxima are minima of the complement.
  ushort flip = largest ? 0xffff : 0, best = 0;
  for (int j = 0; j < PADDED; ++j) {
    ushort v = line[clamp(j - R, 0, N - 1) * step] ^ flip;
    best = j % SPAN == 0 ? v : min(v, best);
    forwards[j * N] = best;
    backwards[j * N] = v;
  }
  for (int j = PADDED - 2; j >= 0; --j)
    if (j % SPAN != SPAN - 1) backwards[j * N] = min(backwards[j * N], backwards[(j + 1) * N]);
  for (int j = 0; j < N; ++j) line[j * step] = min(backwards[j * N], forwards[(j + 2 * R) * N]) ^ flip;
}
""",
        template=[("R", 3), ("SIDE", 32), ("FIRST", _first)],
        inputs=lambda rng: {
            "x": (_picture(rng, 32, 32) * 65535 * rng.choice([0.1, 1, 1, 1], (32, 32))).astype(np.uint16)
        },
        outputs={"y": ((32, 32), "uint16")},
        grid=(32, 1, 1),
        threadgroup=(32, 1, 1),
        constructs="address_spaces.threadgroup_pointer_to_helper structure.explicit_template_arguments types.ushort "
        "address_spaces.threadgroup_small_array barriers.in_unrolled_loop",
    )(_morphology)


# ---- Sharpening, dithering, sums


@body(
    """
    // Unsharp mask on luminance: out = in + amount * (in - blurred), where the difference exceeds a threshold; halves of RGBA,
    // a pixel a thread, its alpha as it is.
    const ushort2 at = ushort2(thread_position_in_grid.xy);
    const ushort2 size = ushort2(threads_per_grid.xy);
    device const half4* pixels = (device const half4*)image;
    const half4 own = pixels[at.y * size.x + at.x];
    const half3 luma = half3(0.25h, 0.5h, 0.25h);
    float blurred = 0;
    #pragma unroll
    for (short dy = -1; dy <= 1; ++dy)
      #pragma unroll
      for (short dx = -1; dx <= 1; ++dx) {
        ushort2 q = ushort2(clamp(short2(at) + short2(dx, dy), short2(0), short2(size) - short2(1)));
        // 1 2 1 both ways.
        float weight = float((2 - abs(int(dx))) * (2 - abs(int(dy)))) * 0.0625f;
        blurred += weight * float(dot(pixels[q.y * size.x + q.x].rgb, luma));
      }
    float detail = float(dot(own.rgb, luma)) - blurred;
    float kept = copysign(fdim(fabs(detail), threshold), detail);
    half3 sharp = half3(clamp(float3(own.rgb) + amount * kept, 0.0f, 1.0f));
    ((device half4*)out)[at.y * size.x + at.x] = half4(sharp, own.a);
    """,
    inputs=lambda rng: {
        "image": (np.round(_picture(rng, 13, 19, 4) * 64) / 64).clip(0, 1).astype(np.float16),
        "amount": 1.5,
        "threshold": 0.015625,
    },
    outputs={"out": ((13, 19, 4), "float16")},
    grid=(19, 13, 1),
    threadgroup=(16, 4, 1),
    constructs="types.half4 types.half3 types.ushort2 types.short2 functions.fdim functions.copysign functions.dot "
    "types.rgba functions.fabs literals.half_suffix",
)
def unsharp_mask(image, amount, threshold):
    # Multiples of 1/64 and weights that are powers of two: but for the last step all is exact.
    picture = image.astype(np.float64)
    grey = picture[..., :3] @ [0.25, 0.5, 0.25]
    blurred = sum((2 - abs(dy)) * (2 - abs(dx)) / 16 * _clamped(grey, dy, dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1))
    detail = grey - blurred
    kept = np.sign(detail) * np.maximum(abs(detail) - threshold, 0)
    sharp = np.clip(picture[..., :3] + amount * kept[..., None], 0, 1)
    return np.concatenate([sharp, picture[..., 3:]], axis=-1).astype(np.float16)


@body(
    """
    // Ordered dithering to LEVELS grey levels by Bayer's matrix of 8 x 8, whose entries are the bits of x ^ y and y
    // interleaved and reversed. Two levels are packed eight pixels a byte as well, the first pixel highest.
    const uint2 at = thread_position_in_grid.xy;
    const uint width = image_shape[1];
    const uint a = at.x ^ at.y, b = at.y;
    const uint interleaved = (a & 1) << 5 | (b & 1) << 4 | (a & 2) << 2 | (b & 2) << 1 | (a & 4) >> 1 | (b & 4) >> 2;
    const bool inside = at.x < width;
    const uint value = inside ? image[at.y * width + at.x] : 0;
    // value / 255 * (LEVELS - 1) + (interleaved + 0.5) / 64, rounded down, in integers.
    const uint level = (value * (LEVELS - 1) * 128 + (2 * interleaved + 1) * 255) / (255 * 128);
    if (inside) levels[at.y * width + at.x] = uchar(level);
    // A simdgroup is a row of 32: each eighth lane writes a byte.
    const uint lane = thread_index_in_simdgroup;
    const uint on = uint(simd_vote::vote_t(simd_ballot(inside && level >= LEVELS / 2)));
    if ((lane & 7) == 0 && inside) packed[at.y * ((width + 7) / 8) + at.x / 8] = reverse_bits(on >> lane) >> 24;
    """,
    template=[("LEVELS", 4)],
    inputs=lambda rng: {"image": (_picture(rng, 17, 45).clip(0, 1) * 255).astype(np.uint8)},
    outputs={"levels": ((17, 45), "uint8"), "packed": ((17, 6), "uint8")},
    grid=(64, 17, 1),
    threadgroup=(32, 4, 1),
    constructs="simdgroup.ballot simdgroup.vote functions.reverse_bits types.uint2 launch.edge_threadgroups types.uchar",
)
def ordered_dithering(image):
    bayer = np.zeros((1, 1), int)
    while len(bayer) < 8:
        bayer = np.block([[4 * bayer, 4 * bayer + 2], [4 * bayer + 3, 4 * bayer + 1]])
    y, x = np.mgrid[:17, :45]
    levels = np.floor(image / 255 * 3 + (bayer[y % 8, x % 8] + 0.5) / 64 + 1e-9).astype(np.uint8)
    return levels, np.packbits(levels >= 2, axis=1)


@body(
    """
    // The integral image of a tile, then mean and variance of the square of 2 R + 1 around each pixel (less at the edges), and
    // Sauvola's threshold with them: what is dark against its surroundings.
    threadgroup uint sums[SIDE + 1][SIDE + 1];
    threadgroup uint squares[SIDE + 1][SIDE + 1];
    const int t = thread_position_in_threadgroup.x, row = thread_position_in_threadgroup.y;
    // Row sums: a simdgroup is a row.
    const uint v = image[row * SIDE + t];
    sums[row + 1][t + 1] = simd_prefix_inclusive_sum(v);
    squares[row + 1][t + 1] = simd_prefix_inclusive_sum(v * v);
    if (row == 0) sums[0][t + 1] = squares[0][t + 1] = 0;
    if (t == 0) {
      sums[row + 1][0] = squares[row + 1][0] = 0;
      if (row == 0) sums[0][0] = squares[0][0] = 0;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    // Column sums: doubling steps, all rows at once.
    for (int step = 1; step < SIDE; step *= 2) {
      uint a = row >= step ? sums[row + 1 - step][t + 1] : 0, b = row >= step ? squares[row + 1 - step][t + 1] : 0;
      threadgroup_barrier(mem_flags::mem_threadgroup);
      sums[row + 1][t + 1] += a;
      squares[row + 1][t + 1] += b;
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    const int x0 = max(t - R, 0), x1 = min(t + R + 1, SIDE), y0 = max(row - R, 0), y1 = min(row + R + 1, SIDE);
    auto rectangle = [&](threadgroup uint (&table)[SIDE + 1][SIDE + 1]) {
      return table[y1][x1] - table[y0][x1] - table[y1][x0] + table[y0][x0];
    };
    const float area = float((x1 - x0) * (y1 - y0));
    const float mean = float(rectangle(sums)) / area;
    const float variance = float(rectangle(squares)) / area - mean * mean;
    const float limit = mean * (1.0f + k * (sqrt(max(variance, 0.0f)) / 128.0f - 1.0f));
    means[row * SIDE + t] = mean;
    limits[row * SIDE + t] = limit;
    integral[row * SIDE + t] = sums[row + 1][t + 1];
    """,
    template=[("R", 4), ("SIDE", 32)],
    inputs=lambda rng: {"image": (_picture(rng, 32, 32).clip(0, 1) * 255).astype(np.uint8), "k": 0.25},
    outputs={"means": ((32, 32), "float32"), "limits": ((32, 32), "float32"), "integral": ((32, 32), "uint32")},
    grid=(32, 32, 1),
    threadgroup=(32, 32, 1),
    tolerance=2e-6,
    constructs="structure.lambda structure.auto simdgroup.prefix_inclusive_sum barriers.scan functions.sqrt "
    "address_spaces.threadgroup_reference_to_helper",
)
def sauvola_by_integral_image(image, k):
    image = image.astype(np.float64)
    means, deviations = np.zeros((32, 32)), np.zeros((32, 32))
    for y in range(32):
        for x in range(32):
            part = image[max(y - 4, 0) : y + 5, max(x - 4, 0) : x + 5]
            means[y, x], deviations[y, x] = part.mean(), part.std()
    return means, means * (1 + k * (deviations / 128 - 1)), image.cumsum(axis=0).cumsum(axis=1)
