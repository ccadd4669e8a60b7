"""Sampling of images and volumes: interpolation, textures, grids of features, contours and surfaces."""

import math

import numpy as np

from bodies import DTYPES, Dtype, body


@body(
    """
    // Samples of a volume at points in [-1, 1], as a neural network's grid sample: (N, C, D, H, W), any strides.
    uint point = thread_position_in_grid.x, channel = thread_position_in_grid.y, batch = thread_position_in_grid.z;
    uint points = threads_per_grid.x, channels = threads_per_grid.y;
    const device float* coordinate = grid + (batch * points + point) * 3;
    int3 size = int3(volume_shape[4], volume_shape[3], volume_shape[2]);
    float3 p = float3(coordinate[0], coordinate[1], coordinate[2]);
    if (ALIGN_CORNERS)
      p = (p + 1.0f) * 0.5f * float3(size - 1);
    else
      p = ((p + 1.0f) * float3(size) - 1.0f) * 0.5f;
    if (BORDER) p = clamp(p, 0.0f, float3(size - 1));
    float3 base = floor(p);
    float3 w = p - base;
    int3 low = int3(base);

    // Signed 64-bit indices: strides may be negative.
    int64_t start = int64_t(batch) * volume_strides[0] + int64_t(channel) * volume_strides[1];
    float sum = 0.0f;
    for (int corner = 0; corner < 8; ++corner) {
      int3 step = int3(corner & 1, (corner >> 1) & 1, corner >> 2);
      int3 at = low + step;
      float3 factors = select(1.0f - w, w, step == 1);
      bool inside = all(at >= 0) && all(at < size);
      if (!inside) continue;
      int64_t place = start + at.z * volume_strides[2] + at.y * volume_strides[3] + at.x * volume_strides[4];
      sum += factors.x * factors.y * factors.z * float(volume[place]);
    }
    out[(batch * channels + channel) * points + point] = sum;
    """,
    template=[("ALIGN_CORNERS", False), ("BORDER", False)],
    inputs=lambda rng: {
        # Channels last in memory, and upside down.
        "volume": np.moveaxis(rng.uniform(1, 2, (2, 5, 6, 7, 3)).astype(np.float16), 4, 1)[:, :, ::-1],
        "grid": rng.uniform(-1, 1, (2, 30, 3)).astype(np.float32),
    },
    ensure_row_contiguous=False,
    outputs={"out": ((2, 3, 30), "float32")},
    grid=(30, 3, 2),
    threadgroup=(16, 3, 2),
    tolerance=5e-6,
    constructs="layouts.strided layouts.negative_strides functions.select functions.all functions.floor "
    "types.vector_comparison types.int3 types.half types.int64_t",
)
def trilinear_samples(volume, grid):
    out = np.zeros((2, 3, 30))
    size = np.array([7, 6, 5])
    for b in range(2):
        for k in range(30):
            p = ((grid[b, k].astype(np.float64) + 1) * size - 1) / 2
            # The weight of every voxel is a product of three tents.
            tents = [np.maximum(0, 1 - np.abs(np.arange(n) - c)) for n, c in zip(size, p, strict=True)]
            out[b, :, k] = np.einsum("czyx,x,y,z->c", volume[b].astype(np.float64), *tents)
    return out


for _dtype, _sharpness in (("float32", -1), ("float16", -2)):

    def _bicubic(x, _sharpness=_sharpness):
        a = _sharpness / 4

        def kernel(t):
            t = np.abs(t)
            near = (a + 2) * t**3 - (a + 3) * t**2 + 1
            return np.where(t <= 1, near, np.where(t < 2, a * t**3 - 5 * a * t**2 + 8 * a * t - 4 * a, 0))

        def matrix(inner, outer):
            m = np.zeros((outer, inner))
            for i in range(outer):
                at = (i + 0.5) * inner / outer - 0.5
                for j in range(math.floor(at) - 1, math.floor(at) + 3):
                    m[i, min(max(j, 0), inner - 1)] += kernel(at - j)
            return m

        return np.einsum("ih,jw,hwc->ijc", matrix(9, 17), matrix(11, 14), x.astype(np.float64))

    body(
        """
    uint3 at = thread_position_in_grid;
    int channels = x_shape[2], height = x_shape[0], width = x_shape[1];
    float2 scale = float2(width, height) / float2(OUT_W, OUT_H);
    float2 p = (float2(at.yz) + 0.5f) * scale - 0.5f;
    float2 base = floor(p), f = p - base;
    constexpr float a = SHARPNESS * 0.25f;
    float4 wx = cubic_weights(f.x, a), wy = cubic_weights(f.y, a);
    int4 columns = clamp(int4(base.x) + int4(-1, 0, 1, 2), 0, width - 1);
    int4 rows = clamp(int4(base.y) + int4(-1, 0, 1, 2), 0, height - 1);
    float sum = 0;
    #pragma unroll
    for (int i = 0; i < 4; ++i) {
      device const T* line = x + rows[i] * width * channels + at.x;
      float4 taps = float4(line[columns[0] * channels], line[columns[1] * channels], line[columns[2] * channels],
                           line[columns[3] * channels]);
      sum += wy[i] * dot(wx, taps);
    }
    y[(at.z * OUT_W + at.y) * channels + at.x] = T(sum);
    """,
        name=f"bicubic_resize_{_dtype}",
        header="""
// Weights of the pixels at -1, 0, 1 and 2 for a point at t in [0, 1); a = -1/2 is that of Catmull and Rom.
static float4 cubic_weights(float t, float a) {
  float4 d = float4(1 + t, t, 1 - t, 2 - t);
  float4 inner = ((a + 2) * d - (a + 3)) * d * d + 1;
  float4 outer = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
  return float4(outer.x, inner.y, inner.z, outer.w);
}
""",
        template=[("T", Dtype(_dtype)), ("OUT_W", 14), ("OUT_H", 17), ("SHARPNESS", _sharpness)],
        inputs=lambda rng, _dtype=_dtype: {"x": rng.uniform(1, 3, (9, 11, 3)).astype(DTYPES[_dtype])},
        outputs={"y": ((17, 14, 3), _dtype)},
        grid=(3, 14, 17),
        threadgroup=(3, 8, 8),
        tolerance=3e-6 if _dtype == "float32" else 2**-10,
        constructs="types.int4 types.component_index functions.clamp functions.dot structure.pragma_unroll "
        "structure.constexpr types.mixed_operands functions.scalar_for_vector",
    )(_bicubic)


@body(
    """
    // A modulated deformable convolution of 3 x 3, one thread for each output pixel and channel.
    int x = thread_position_in_grid.x, y = thread_position_in_grid.y, o = thread_position_in_grid.z;
    const int h_out = out_size[0], w_out = out_size[1];
    if (x >= w_out || y >= h_out) return;
    const int channels = image_shape[0], height = image_shape[1], width = image_shape[2];
    const int per_group = channels / GROUPS;
    float total = bias[o];
    for (int k = 0; k < 9; ++k) {
      const int ky = k / 3, kx = k % 3;
      for (int group = 0; group < GROUPS; ++group) {
        const int plane = ((group * 9 + k) * 2 * h_out + y) * w_out + x;
        const float dy = offsets[plane], dx = offsets[plane + h_out * w_out];
        const float amount = mask[((group * 9 + k) * h_out + y) * w_out + x];
        const float py = y * STRIDE - PAD + ky * DILATION + dy, px = x * STRIDE - PAD + kx * DILATION + dx;
        // Wholly outside.
        if (py <= -1.0f || px <= -1.0f || py >= height || px >= width) continue;
        const Bilinear taps(py, px, height, width);
        for (int c = group * per_group; c < (group + 1) * per_group; ++c)
          total += weight[(o * channels + c) * 9 + k] * amount * taps(image + c * height * width);
      }
    }
    out[(o * h_out + y) * w_out + x] = total;
    """,
    header="""
class Bilinear {
 public:
  Bilinear(float y, float x, int height, int width) thread {
    int y0 = int(floor(y)), x0 = int(floor(x));
    float fy = y - y0, fx = x - x0;
    bool4 inside = bool4(y0 >= 0 && x0 >= 0, y0 >= 0 && x0 + 1 < width, y0 + 1 < height && x0 >= 0,
                         y0 + 1 < height && x0 + 1 < width);
    float4 w = float4((1 - fy) * (1 - fx), (1 - fy) * fx, fy * (1 - fx), fy * fx);
    weights = select(float4(0), w, inside);
    int at = y0 * width + x0;
    places = select(int4(0), int4(at, at + 1, at + width, at + width + 1), inside);
  }
  float operator()(const device float* plane) const thread {
    return dot(weights, float4(plane[places.x], plane[places.y], plane[places.z], plane[places.w]));
  }

 private:
  float4 weights;
  int4 places;
};
""",
    template=[("GROUPS", 2), ("STRIDE", 1), ("PAD", 2), ("DILATION", 2)],
    inputs=lambda rng: {
        "image": rng.uniform(0.5, 1.5, (4, 8, 9)).astype(np.float32),
        "offsets": rng.uniform(-2.5, 2.5, (36, 8, 9)).astype(np.float32),
        "mask": rng.uniform(0, 1, (18, 8, 9)).astype(np.float32),
        "weight": rng.uniform(0.1, 1, (3, 4, 3, 3)).astype(np.float32),
        "bias": np.array([0.5, 1, 2], np.float32),
        "out_size": np.array([8, 9], np.int32),
    },
    outputs={"out": ((3, 8, 9), "float32")},
    grid=(16, 8, 3),
    threadgroup=(16, 4, 1),
    tolerance=5e-6,
    constructs="structure.operator structure.struct types.bool4 functions.select functions.dot layouts.few_elements "
    "structure.early_return",
)
def deformable_convolution_of_an_image(image, offsets, mask, weight, bias, out_size):
    out = np.tile(bias.astype(np.float64)[:, None, None], (1, 8, 9))
    offsets = offsets.reshape(2, 9, 2, 8, 9).astype(np.float64)
    for y in range(8):
        for x in range(9):
            for k in range(9):
                for g in range(2):
                    py, px = offsets[g, k, :, y, x] + [y - 2 + k // 3 * 2, x - 2 + k % 3 * 2]
                    wy = np.maximum(0, 1 - np.abs(np.arange(8) - py))
                    wx = np.maximum(0, 1 - np.abs(np.arange(9) - px))
                    taps = wy @ image[2 * g : 2 * g + 2].astype(np.float64) @ wx
                    out[:, y, x] += weight.reshape(3, 4, 9)[:, 2 * g : 2 * g + 2, k] @ taps * mask[9 * g + k, y, x]
    return out


def _pyramid(rng):
    """A texture of 16 x 16 with all its smaller levels, one after another, 4 bytes a texel."""
    levels = [rng.integers(0, 256, (16, 16, 4))]
    while len(levels[-1]) > 1:
        last = levels[-1]
        levels.append((last[::2, ::2] + last[1::2, ::2] + last[::2, 1::2] + last[1::2, 1::2] + 2) // 4)
    return levels


@body(
    """
    // Trilinear filtering: of the two levels nearest to the footprint, four texels each.
    uint i = thread_position_in_grid.x;
    float2 at = float2(uv[2 * i], uv[2 * i + 1]);
    float4 slopes = *(device const float4*)(duv + 4 * i);
    float2 across = slopes.xy * SIZE, down = slopes.zw * SIZE;
    // The longer side of the footprint in texels of the largest level.
    float rho = max(length(across), length(down));
    constexpr int LEVELS = 32 - __builtin_clz(unsigned(SIZE));
    float lod = clamp(log2(max(rho, 1e-6f)), 0.0f, float(LEVELS - 1));
    int low = min(int(lod), LEVELS - 2);
    float between = lod - low;
    Texture texture{(device const uchar4*)texels, SIZE};
    float4 colour = mix(texture.bilinear(at, low), texture.bilinear(at, low + 1), between);
    device packed_float4* out = (device packed_float4*)rgba;
    out[i] = packed_float4(colour);
    lods[i] = lod;
    """,
    header="""
struct Texture {
  device const uchar4* texels;
  int size;

  // Levels lie one after another, the largest first.
  int offset(int level) const {
    int at = 0;
    for (int l = 0; l < level; ++l) {
      int side = size >> l;
      at += side * side;
    }
    return at;
  }
  float4 fetch(int2 at, int level) const {
    int side = size >> level;
    // Repeated in x, mirrored in y; sizes are powers of two.
    at.x &= side - 1;
    int period = at.y & (2 * side - 1);
    at.y = period < side ? period : 2 * side - 1 - period;
    return float4(texels[offset(level) + at.y * side + at.x]) / 255.0f;
  }
  float4 bilinear(float2 uv, int level) const {
    float2 p = uv * float(size >> level) - 0.5f;
    float2 base = floor(p);
    float2 f = p - base;
    int2 i = int2(base);
    float4 top = mix(fetch(i, level), fetch(i + int2(1, 0), level), f.x);
    float4 bottom = mix(fetch(i + int2(0, 1), level), fetch(i + int2(1, 1), level), f.x);
    return mix(top, bottom, f.y);
  }
};
""",
    template=[("SIZE", 16)],
    inputs=lambda rng: {
        "texels": np.concatenate([level.reshape(-1, 4) for level in _pyramid(rng)]).astype(np.uint8),
        "uv": rng.uniform(-1.5, 2.5, (60, 2)).astype(np.float32),
        "duv": (np.exp(rng.uniform(-4, 1, (60, 1))) * rng.normal(size=(60, 4))).astype(np.float32),
    },
    outputs={"rgba": ((60, 4), "float32"), "lods": ((60,), "float32")},
    grid=(60, 1, 1),
    threadgroup=(32, 1, 1),
    tolerance=5e-6,
    constructs="functions.mix functions.log2 functions.length types.uchar4 structure.struct address_spaces.device "
    "types.packed_vectors structure.builtins functions.floor",
)
def mip_filtering(texels, uv, duv):
    levels, at = [], 0
    for level in range(5):
        side = 16 >> level
        levels.append(texels[at : at + side * side].reshape(side, side, 4) / 255)
        at += side * side
    uv, duv = uv.astype(np.float64), duv.astype(np.float64) * 16
    rho = np.maximum(np.hypot(duv[:, 0], duv[:, 1]), np.hypot(duv[:, 2], duv[:, 3]))
    lods = np.clip(np.log2(rho), 0, 4)
    rgba = np.zeros((60, 4))
    for i, (u, v) in enumerate(uv):
        for level, image in enumerate(levels):
            share = max(0, 1 - abs(level - lods[i]))
            side = len(image)
            # Repeated and mirrored often enough that nothing is outside.
            wide = np.tile(np.concatenate([image, image[::-1]]), (4, 6, 1))
            x, y = u * side - 0.5 + 3 * side, v * side - 0.5 + 4 * side
            wx = np.maximum(0, 1 - np.abs(np.arange(6 * side) - x))
            wy = np.maximum(0, 1 - np.abs(np.arange(8 * side) - y))
            rgba[i] += share * np.einsum("y,x,yxc->c", wy, wx, wide)
    return rgba, lods


def _hash_table(rng, dtype):
    return {
        "points": rng.uniform(0, 1, (40, 3)).astype(np.float32),
        "table": rng.uniform(0.5, 1.5, (6, 128, 2)).astype(dtype),
        "growth": 1.5,
    }


for _dtype, _element in (("float32", "float2"), ("float16", "half2")):

    def _encoding(points, table, growth):
        out = np.zeros((40, 6, 2))
        table = table.astype(np.float64)
        for level in range(6):
            cells = int(np.floor(np.float32(4) * np.float32(growth) ** level))
            for i, p in enumerate(points):
                place = p.astype(np.float64) * cells
                base = np.floor(place).astype(int)
                for corner in np.ndindex(2, 2, 2):
                    x, y, z = (int(c) for c in base + corner)
                    if (cells + 1) ** 3 <= 128:
                        at = (z * (cells + 1) + y) * (cells + 1) + x
                    else:
                        at = (x ^ y * 2654435761 ^ z * 805459861) & 127
                    weight = np.prod(1 - np.abs(place - base - corner))
                    out[i, level] += weight * table[level, at]
        return out

    body(
        """
    // One thread for each point and level; each corner's features are read as one vector.
    uint point = thread_position_in_grid.x, level = thread_position_in_grid.y;
    if (point >= uint(points_shape[0])) return;
    Level grid(level, growth, TABLE);
    float3 p = float3(points[3 * point], points[3 * point + 1], points[3 * point + 2]) * float(grid.cells);
    float3 base = floor(p), f = p - base;
    uint3 cell = uint3(base);
    using V = metal::vec<T, FEATURES>;
    device const V* features = (device const V*)table + level * TABLE;
    metal::vec<float, FEATURES> sum = 0;
    #pragma unroll
    for (uint corner = 0; corner < 8; ++corner) {
      uint3 bits = uint3(corner, corner >> 1, corner >> 2) & 1u;
      float3 w = float3(bits) * f + float3(1 - bits) * (1.0f - f);
      V read = features[grid.index(cell + bits)];
      sum += w.x * w.y * w.z * metal::vec<float, FEATURES>(read);
    }
    ((device V*)encoded)[point * threads_per_grid.y + level] = V(sum);
    """,
        name=f"hash_grid_encoding_{_dtype}",
        header="""
struct Level {
  uint cells, size;
  bool dense;

  Level(uint number, float growth, uint table_size) : size(table_size) {
    float scale = 4.0f;
    for (uint l = 0; l < number; ++l) scale *= growth;
    cells = uint(floor(scale));
    uint side = cells + 1;
    dense = side * side * side <= size;
  }

  // The coarse levels fit into the table; of the others' points some share an entry.
  uint index(uint3 p) const thread {
    if (dense) return (p.z * (cells + 1) + p.y) * (cells + 1) + p.x;
    return (p.x ^ (p.y * 2654435761u) ^ (p.z * 805459861u)) & (size - 1);
  }
};
""",
        template=[("T", Dtype(_dtype)), ("TABLE", 128), ("FEATURES", 2)],
        inputs=lambda rng, _dtype=_dtype: _hash_table(rng, _dtype),
        outputs={"encoded": ((40, 6, 2), _dtype)},
        grid=(64, 6, 1),
        threadgroup=(32, 2, 1),
        tolerance=5e-6 if _dtype == "float32" else 2**-10,
        constructs="types.vec types.uint3 types.float3 structure.using structure.struct literals.integer "
        "structure.early_return address_spaces.cast_to_vector",
    )(_encoding)


# ---- Contours and surfaces


@body(
    """
    // The line at `level` through each square of a field: its length, and how many pieces it has. Corners are counted
    // around, from the lower left; the table has for each case up to two pairs of edges.
    int2 at = int2(thread_position_in_grid.xy);
    int width = field_shape[1];
    float v[4];
    v[0] = field[at.y * width + at.x];
    v[1] = field[at.y * width + at.x + 1];
    v[2] = field[(at.y + 1) * width + at.x + 1];
    v[3] = field[(at.y + 1) * width + at.x];
    uint kind = 0;
    for (uint c = 0; c < 4; ++c) kind |= uint(v[c] > level) << c;
    char4 edges = EDGES[kind];
    // A saddle: the middle decides which corners belong together.
    if ((kind == 5 || kind == 10) && (v[0] + v[1] + v[2] + v[3]) * 0.25f > level) edges = edges.xwzy;
    float total = 0;
    uchar pieces = 0;
    for (int k = 0; k < 4 && edges[k] >= 0; k += 2) {
      float2 ends[2];
      for (int e = 0; e < 2; ++e) {
        int edge = edges[k + e];
        float a = v[edge], b = v[(edge + 1) & 3];
        float t = (level - a) / (b - a);
        ends[e] = mix(CORNERS[edge], CORNERS[(edge + 1) & 3], t);
      }
      total += distance(ends[0], ends[1]);
      ++pieces;
    }
    uint index = at.y * threads_per_grid.x + at.x;
    lengths[index] = total;
    counts[index] = pieces;
    """,
    header="""
constant float2 CORNERS[4] = {float2(0, 0), float2(1, 0), float2(1, 1), float2(0, 1)};
// Edge e goes from corner e to the next one.
constant char4 EDGES[16] = {
    char4(-1, -1, -1, -1), char4(3, 0, -1, -1), char4(0, 1, -1, -1), char4(3, 1, -1, -1),
    char4(1, 2, -1, -1),   char4(3, 0, 1, 2),   char4(0, 2, -1, -1), char4(3, 2, -1, -1),
    char4(2, 3, -1, -1),   char4(2, 0, -1, -1), char4(0, 1, 2, 3),   char4(2, 1, -1, -1),
    char4(1, 3, -1, -1),   char4(1, 0, -1, -1), char4(0, 3, -1, -1), char4(-1, -1, -1, -1),
};
""",
    inputs=lambda rng: {"field": rng.normal(size=(13, 18)).astype(np.float32), "level": 0.1},
    outputs={"lengths": ((12, 17), "float32"), "counts": ((12, 17), "uint8")},
    grid=(17, 12, 1),
    threadgroup=(8, 4, 1),
    tolerance=1e-5,
    constructs="address_spaces.constant_vector types.char4 types.component_index functions.distance functions.mix "
    "types.swizzle_read structure.dynamic_local_array",
)
def marching_squares(field, level):
    lengths, counts = np.zeros((12, 17)), np.zeros((12, 17), np.uint8)
    level = np.float32(level)
    corners = np.array([[0, 0], [1, 0], [1, 1], [0, 1]], float)
    for y, x in np.ndindex(12, 17):
        v = np.array([field[y, x], field[y, x + 1], field[y + 1, x + 1], field[y + 1, x]], np.float64)
        cuts = {}
        for e in range(4):
            f = (e + 1) % 4
            if (v[e] > level) != (v[f] > level):
                cuts[e] = corners[e] + (corners[f] - corners[e]) * (level - v[e]) / (v[f] - v[e])
        if len(cuts) == 4:
            # Each piece cuts off a corner that is on the other side than the middle.
            middle = v.mean() > level
            odd = [c for c in range(4) if (v[c] > level) != middle]
            lengths[y, x] = sum(np.linalg.norm(cuts[c] - cuts[(c + 3) % 4]) for c in odd)
        elif cuts:
            a, b = cuts.values()
            lengths[y, x] = np.linalg.norm(a - b)
        counts[y, x] = len(cuts) // 2
    return lengths, counts


_TETRAHEDRA = [(0, 1, 3, 7), (0, 1, 5, 7), (0, 2, 3, 7), (0, 2, 6, 7), (0, 4, 5, 7), (0, 4, 6, 7)]


@body(
    """
    // A surface by tetrahedra: each cube is cut into six, and of each the corners inside say where the surface is.
    // First every cube counts its triangles, then a scan says where they go, then they are written.
    threadgroup uint sums[32];
    uint3 cell = thread_position_in_threadgroup;
    uint3 cells = threads_per_threadgroup;
    uint rank = thread_index_in_threadgroup;

    Cube cube;
    MLX_MTL_PRAGMA_UNROLL
    for (uint c = 0; c < 8; ++c) {
      uint3 p = cell + uint3(c & 1, (c >> 1) & 1, c >> 2);
      cube.corners[c] = float4(float3(p), values[(p.z * (cells.y + 1) + p.y) * (cells.x + 1) + p.x] - iso);
    }
    uint own = 0;
    for (int t = 0; t < 6; ++t) {
      uint inside = popcount(cube.mask(t));
      own += inside == 0 || inside == 4 ? 0 : inside == 2 ? 2 : 1;
    }

    uint before = simd_prefix_exclusive_sum(own);
    if (thread_index_in_simdgroup == threads_per_simdgroup - 1) sums[simdgroup_index_in_threadgroup] = before + own;
    // The last simdgroup may be a part of one.
    if (rank == cells.x * cells.y * cells.z - 1) sums[simdgroup_index_in_threadgroup] = before + own;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint g = 0; g < simdgroup_index_in_threadgroup; ++g) before += sums[g];
    firsts[rank] = before;

    uint place = before;
    for (int t = 0; t < 6; ++t) {
      float3 points[4];
      int count = cube.cut(t, points);
      if (count < 3) continue;
      EMIT(points[0], points[1], points[2]);
      if (count == 4) EMIT(points[1], points[3], points[2]);
    }
    """,
    header="""
struct Cube {
  float4 corners[8];

  // Corners of each tetrahedron: all share the diagonal of the cube.
  static int corner(int tetrahedron, int k) {
    switch (tetrahedron * 4 + k) {
"""
    + "\n".join(f"      case {4 * t + k}: return {c};" for t, own in enumerate(_TETRAHEDRA) for k, c in enumerate(own))
    + """
      default: return 0;
    }
  }

  uint mask(int tetrahedron) const thread {
    uint bits = 0;
    for (int k = 0; k < 4; ++k) bits |= uint(corners[corner(tetrahedron, k)].w < 0.0f) << k;
    return bits;
  }

  static float3 crossing(float4 a, float4 b) {
    float t = a.w / (a.w - b.w);
    return mix(a.xyz, b.xyz, t);
  }

  // Points of the surface in a tetrahedron: none, three, or four as a strip.
  int cut(int tetrahedron, thread float3* points) const thread {
    uint bits = mask(tetrahedron);
#define C(k) corners[corner(tetrahedron, k)]
#define ONE(alone, a, b, c)              \\
  points[0] = crossing(C(alone), C(a)); \\
  points[1] = crossing(C(alone), C(b)); \\
  points[2] = crossing(C(alone), C(c)); \\
  return 3
#define TWO(a, b, c, d)              \\
  points[0] = crossing(C(a), C(c)); \\
  points[1] = crossing(C(a), C(d)); \\
  points[2] = crossing(C(b), C(c)); \\
  points[3] = crossing(C(b), C(d)); \\
  return 4
    switch (bits) {
      case 0x1: case 0xe: ONE(0, 1, 2, 3);
      case 0x2: case 0xd: ONE(1, 0, 2, 3);
      case 0x4: case 0xb: ONE(2, 0, 1, 3);
      case 0x8: case 0x7: ONE(3, 0, 1, 2);
      case 0x3: case 0xc: TWO(0, 1, 2, 3);
      case 0x5: case 0xa: TWO(0, 2, 1, 3);
      case 0x6: case 0x9: TWO(1, 2, 0, 3);
    }
#undef C
#undef ONE
#undef TWO
    return 0;
  }
};

#define EMIT(a, b, c)                                          \\
  do {                                                         \\
    float3 n = cross((b) - (a), (c) - (a));                    \\
    areas[place] = 0.5f * length(n);                           \\
    float3 middle = ((a) + (b) + (c)) / 3.0f;                  \\
    for (int d = 0; d < 3; ++d) centres[3 * place + d] = middle[d]; \\
    ++place;                                                   \\
  } while (false)
""",
    inputs=lambda rng: {
        # A ball with dents, not through any point of the grid.
        "values": (
            np.linalg.norm(np.mgrid[:6, :6, :7] - np.array([2.4, 2.6, 3.1])[:, None, None, None], axis=0)
            + rng.uniform(-0.3, 0.3, (6, 6, 7))
        ).astype(np.float32),
        "iso": 1.875,
    },
    outputs={
        "firsts": ((150,), "uint32"),
        "areas": ((700,), "float32"),
        "centres": ((700, 3), "float32"),
    },
    init_value=0,
    grid=(6, 5, 5),
    threadgroup=(6, 5, 5),
    tolerance=5e-5,
    constructs="structure.switch structure.multi_line_macro_in_header simdgroup.prefix_exclusive_sum simdgroup.partial "
    "functions.popcount functions.cross functions.length barriers.three_dimensions barriers.scan "
    "attributes.threads_per_simdgroup",
)
def marching_tetrahedra(values, iso):
    v = values.astype(np.float64) - iso
    firsts, areas, centres = np.zeros(150, np.uint32), np.zeros(700), np.zeros((700, 3))
    place = 0
    for number, (z, y, x) in enumerate(np.ndindex(5, 5, 6)):
        firsts[number] = place
        for own in _TETRAHEDRA:
            p = np.array([[x + (c & 1), y + (c >> 1 & 1), z + (c >> 2)] for c in own], float)
            w = np.array([v[int(c[2]), int(c[1]), int(c[0])] for c in p])
            inner, outer = np.flatnonzero(w < 0), np.flatnonzero(w >= 0)
            if not len(inner) or not len(outer):
                continue
            # The first corner is always in the first of the two sets.
            one, two = (inner, outer) if len(inner) == 1 or (len(inner) == 2 and inner[0] == 0) else (outer, inner)
            points = [p[i] + (p[j] - p[i]) * w[i] / (w[i] - w[j]) for i in one for j in two]
            for triangle in [points[:3]] if len(points) == 3 else [points[:3], [points[1], points[3], points[2]]]:
                a, b, c = triangle
                areas[place] = np.linalg.norm(np.cross(b - a, c - a)) / 2
                centres[place] = (a + b + c) / 3
                place += 1
    return firsts, areas, centres
