"""Gaussian splatting: from ellipsoids in space to an image and back to their gradients."""

import math

import numpy as np

from bodies import Dtype, body

# What the kernels of a rasteriser share: an image is divided into square tiles.
TILES = """
#define TILE_SIDE 8
#define TILE_PIXELS (TILE_SIDE * TILE_SIDE)

struct TileRect {
  int2 low;
  int2 high;  // Behind the last.
  int count() const thread { return (high.x - low.x) * (high.y - low.y); }
};

// The tiles that a square of half-width `radius` around `centre` touches.
inline TileRect tiles_of(float2 centre, int radius, int2 tiles) {
  TileRect rect;
  float r = float(radius);
  rect.low.x = min(tiles.x, max(0, int((centre.x - r) / TILE_SIDE)));
  rect.low.y = min(tiles.y, max(0, int((centre.y - r) / TILE_SIDE)));
  rect.high.x = min(tiles.x, max(0, int((centre.x + r + TILE_SIDE - 1) / TILE_SIDE)));
  rect.high.y = min(tiles.y, max(0, int((centre.y + r + TILE_SIDE - 1) / TILE_SIDE)));
  return rect;
}
"""


def _tiles_of(centre, radius, tiles):
    """Low and high corners of the rectangle of tiles; the high one is behind the last."""
    low = np.clip(np.trunc((centre - radius) / 8), 0, tiles).astype(int)
    high = np.clip(np.trunc((centre + radius + 7) / 8), 0, tiles).astype(int)
    return low, high


def _rotations(q):
    """Matrices of quaternions (w, x, y, z), by what they do to the three axes."""
    q = q / np.linalg.norm(q, axis=1, keepdims=True)
    w, v = q[:, :1], q[:, 1:]
    columns = []
    for axis in np.eye(3):
        t = 2 * np.cross(v, axis)
        columns.append(axis + w * t + np.cross(v, t))
    return np.stack(columns, axis=2)


def _scene(rng):
    count = 100
    angle = 0.3
    view = np.eye(4)
    c, s = math.cos(angle), math.sin(angle)
    view[:3, :3] = np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])
    view[:3, 3] = [0.2, -0.1, 6]
    return {
        "means": rng.uniform(-3, 3, (count, 3)).astype(np.float32) + np.array([0, 0, -2.5], np.float32),
        "scales": np.exp(rng.uniform(-2.5, -0.5, (count, 3))).astype(np.float32),
        "quats": rng.normal(size=(count, 4)).astype(np.float32),
        "opacities": rng.normal(size=count).astype(np.float32) * 2 + 1,
        "view": view.astype(np.float32),
        "intrinsics": np.array([70, 75, 32.5, 23.25], np.float32),
        "width": 64,
        "height": 48,
        "near_plane": 1.5,
    }


@body(
    """
    uint idx = thread_position_in_grid.x;
    if (idx >= uint(means_shape[0])) return;

    // Everything that is culled leaves with a radius of 0, which init_value has written.
    Camera cam = load_camera(view, intrinsics, width, height);
    float3 p_world = load3(means, idx);
    float3 p = cam.to_view(p_world);
    if (p.z <= near_plane) return;

    float opacity = sigmoid(opacities[idx]);
    if (opacity < 1.0f / 255.0f) return;

    // Covariance in space: R S S^T R^T, the six entries above the diagonal.
    float4 q = float4(quats[4 * idx], quats[4 * idx + 1], quats[4 * idx + 2], quats[4 * idx + 3]);
    float3 s = load3(scales, idx);
    Symmetric3 sigma = covariance_of(q, s);

    // Covariance on the screen: J W sigma W^T J^T, with J the Jacobian of the projection at p. Far outside of the
    // frustum the linear approximation is no good, so that the direction is clamped first.
    float lim_x = 1.3f * 0.5f * float(width) / cam.fx;
    float lim_y = 1.3f * 0.5f * float(height) / cam.fy;
    float inv_z = 1.0f / p.z;
    float tx = p.z * clamp(p.x * inv_z, -lim_x, lim_x);
    float ty = p.z * clamp(p.y * inv_z, -lim_y, lim_y);
    float3 j0 = float3(cam.fx * inv_z, 0, -cam.fx * tx * inv_z * inv_z);
    float3 j1 = float3(0, cam.fy * inv_z, -cam.fy * ty * inv_z * inv_z);
    // Rows of J W.
    float3 t0 = cam.rotate_back(j0);
    float3 t1 = cam.rotate_back(j1);
    float3 st0 = sigma.times(t0);
    float3 st1 = sigma.times(t1);
    float3 cov = float3(dot(t0, st0), dot(t0, st1), dot(t1, st1));
    // A pixel is no point: every splat covers at least one.
    cov.x += LOW_PASS;
    cov.z += LOW_PASS;

    float det = cov.x * cov.z - cov.y * cov.y;
    if (det <= 0.0f) return;
    float inv_det = 1.0f / det;
    float3 conic = float3(cov.z, -cov.y, cov.x) * inv_det;

    // Eigenvalues of a symmetric 2 x 2 matrix.
    float mid = 0.5f * (cov.x + cov.z);
    float spread = metal::sqrt(max(0.1f, mid * mid - det));
    float lambda = max(mid + spread, mid - spread);
    int radius = int(ceil(3.0f * metal::sqrt(lambda)));
    float2 centre = float2(fma(cam.fx * p.x, inv_z, cam.cx), fma(cam.fy * p.y, inv_z, cam.cy));

    int2 tiles = int2(ceildiv(int(width), TILE_SIDE), ceildiv(int(height), TILE_SIDE));
    TileRect rect = tiles_of(centre, radius, tiles);
    int touched = rect.count();
    if (touched <= 0) return;

    depths[idx] = p.z;
    radii[idx] = radius;
    tiles_touched[idx] = touched;
    store2(means2d, idx, centre);
    conics[3 * idx + 0] = conic.x;
    conics[3 * idx + 1] = conic.y;
    conics[3 * idx + 2] = conic.z;
    """,
    header=TILES
    + """
#define LOW_PASS 0.3f

struct Camera {
  // World to view, by rows.
  float4 row[3];
  float fx, fy, cx, cy;
  int width, height;

  float3 to_view(float3 p) const thread {
    float4 h = float4(p, 1.0f);
    return float3(dot(row[0], h), dot(row[1], h), dot(row[2], h));
  }
  // The transpose of the rotation, for row vectors.
  float3 rotate_back(float3 v) const thread {
    return v.x * row[0].xyz + v.y * row[1].xyz + v.z * row[2].xyz;
  }
};

inline Camera load_camera(device const float* view, constant const float* intrinsics, int width, int height) {
  Camera cam;
#pragma unroll
  for (int r = 0; r < 3; ++r) cam.row[r] = float4(view[4 * r], view[4 * r + 1], view[4 * r + 2], view[4 * r + 3]);
  cam.fx = intrinsics[0];
  cam.fy = intrinsics[1];
  cam.cx = intrinsics[2];
  cam.cy = intrinsics[3];
  cam.width = width;
  cam.height = height;
  return cam;
}

inline float3 load3(device const float* from, uint i) {
  return float3(from[3 * i], from[3 * i + 1], from[3 * i + 2]);
}

inline void store2(device float* to, uint i, float2 v) {
  to[2 * i] = v.x;
  to[2 * i + 1] = v.y;
}

inline float sigmoid(float x) { return 1.0f / (1.0f + metal::exp(-x)); }

struct Symmetric3 {
  float xx, xy, xz, yy, yz, zz;
  float3 times(float3 v) const thread {
    return float3(xx * v.x + xy * v.y + xz * v.z, xy * v.x + yy * v.y + yz * v.z, xz * v.x + yz * v.y + zz * v.z);
  }
};

inline float3x3 rotation_of(float4 q) {
  q *= rsqrt(dot(q, q));
  float w = q.x, x = q.y, y = q.z, z = q.w;
  // Columns.
  return float3x3(float3(1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)),
                  float3(2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x)),
                  float3(2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)));
}

inline Symmetric3 covariance_of(float4 q, float3 s) {
  float3x3 r = rotation_of(q);
  float3 a = r[0] * s.x, b = r[1] * s.y, c = r[2] * s.z;
  Symmetric3 m;
#define ENTRY(i, j) (a.i * a.j + b.i * b.j + c.i * c.j)
  m.xx = ENTRY(x, x);
  m.xy = ENTRY(x, y);
  m.xz = ENTRY(x, z);
  m.yy = ENTRY(y, y);
  m.yz = ENTRY(y, z);
  m.zz = ENTRY(z, z);
#undef ENTRY
  return m;
}
""",
    inputs=_scene,
    outputs={
        "means2d": ((100, 2), "float32"),
        "depths": ((100,), "float32"),
        "conics": ((100, 3), "float32"),
        "radii": ((100,), "int32"),
        "tiles_touched": ((100,), "int32"),
    },
    init_value=0,
    grid=(128, 1, 1),
    threadgroup=(64, 1, 1),
    tolerance=1e-4,
    constructs="structure.early_return structure.struct structure.define_in_header types.matrices mlx.ceildiv "
    "functions.dot functions.clamp functions.ceil functions.fma functions.rsqrt functions.exp types.swizzle_read",
)
def splat_projection(means, scales, quats, opacities, view, intrinsics, width, height, near_plane):
    view = view.astype(np.float64)
    fx, fy, cx, cy = intrinsics.astype(np.float64)
    p = means.astype(np.float64) @ view[:3, :3].T + view[:3, 3]
    m = _rotations(quats.astype(np.float64)) * scales[:, None, :].astype(np.float64)
    sigma = m @ m.transpose(0, 2, 1)
    centres, conics = np.zeros((100, 2)), np.zeros((100, 3))
    depths, radii, touched = np.zeros(100), np.zeros(100, np.int32), np.zeros(100, np.int32)
    for i, (x, y, z) in enumerate(p):
        if z <= near_plane or 1 / (1 + math.exp(-opacities[i])) < 1 / 255:
            continue
        tx = z * np.clip(x / z, -0.65 * width / fx, 0.65 * width / fx)
        ty = z * np.clip(y / z, -0.65 * height / fy, 0.65 * height / fy)
        jacobian = np.array([[fx / z, 0, -fx * tx / z**2], [0, fy / z, -fy * ty / z**2]])
        t = jacobian @ view[:3, :3]
        cov = t @ sigma[i] @ t.T + 0.3 * np.eye(2)
        largest = np.trace(cov) / 2 + math.sqrt(max(0.1, (np.trace(cov) / 2) ** 2 - np.linalg.det(cov)))
        radius = math.ceil(3 * math.sqrt(largest))
        centre = np.array([fx * x / z + cx, fy * y / z + cy])
        low, high = _tiles_of(centre, radius, np.array([8, 6]))
        if (high <= low).any():
            continue
        inverse = np.linalg.inv(cov)
        centres[i], conics[i], depths[i] = centre, [inverse[0, 0], inverse[0, 1], inverse[1, 1]], z
        radii[i], touched[i] = radius, (high - low).prod()
    return centres, depths, conics, radii, touched


_HARMONICS = """
constant float SH_0 = 0.28209479177387814f;
constant float SH_1 = 0.4886025119029199f;
constant float SH_2[5] = {1.0925484305920792f, -1.0925484305920792f, 0.31539156525252005f, -1.0925484305920792f,
                          0.5462742152960396f};
constant float SH_3[7] = {-0.5900435899266435f, 2.890611442640554f, -0.4570457994644658f, 0.3731763325901154f,
                          -0.4570457994644658f, 1.445305721320277f, -0.5900435899266435f};

template <int DEGREE>
inline float3 harmonics(float3 d, thread const float3* sh) {
  float3 sum = SH_0 * sh[0];
  if constexpr (DEGREE > 0) {
    sum += SH_1 * (-d.y * sh[1] + d.z * sh[2] - d.x * sh[3]);
    if constexpr (DEGREE > 1) {
      float xx = d.x * d.x, yy = d.y * d.y, zz = d.z * d.z;
      float xy = d.x * d.y, yz = d.y * d.z, xz = d.x * d.z;
      sum += SH_2[0] * xy * sh[4] + SH_2[1] * yz * sh[5] + SH_2[2] * (2.0f * zz - xx - yy) * sh[6] +
             SH_2[3] * xz * sh[7] + SH_2[4] * (xx - yy) * sh[8];
      if constexpr (DEGREE > 2) {
        sum += SH_3[0] * d.y * (3.0f * xx - yy) * sh[9] + SH_3[1] * xy * d.z * sh[10] +
               SH_3[2] * d.y * (4.0f * zz - xx - yy) * sh[11] +
               SH_3[3] * d.z * (2.0f * zz - 3.0f * xx - 3.0f * yy) * sh[12] +
               SH_3[4] * d.x * (4.0f * zz - xx - yy) * sh[13] + SH_3[5] * d.z * (xx - yy) * sh[14] +
               SH_3[6] * d.x * (xx - 3.0f * yy) * sh[15];
      }
    }
  }
  return sum;
}
"""


def _legendre(degree, order, z):
    """The associated Legendre function with the phase of Condon and Shortley, by recurrence over the degree."""
    value = (-1.0) ** order * math.prod(range(1, 2 * order, 2)) * (1 - z * z) ** (order / 2)
    if degree == order:
        return value
    before, value = value, z * (2 * order + 1) * value
    for n in range(order + 2, degree + 1):
        before, value = value, ((2 * n - 1) * z * value - (n + order - 1) * before) / (n - order)
    return value


def _harmonic(degree, order, d):
    m = abs(order)
    norm = (2 * degree + 1) / (4 * math.pi) * math.factorial(degree - m) / math.factorial(degree + m)
    phi = np.arctan2(d[:, 1], d[:, 0])
    turn = 1 if m == 0 else math.sqrt(2) * (np.cos(m * phi) if order > 0 else np.sin(m * phi))
    return math.sqrt(norm) * turn * _legendre(degree, m, d[:, 2])


for _degree, _dtype in ((3, "float32"), (2, "float16")):

    def _colours(means, sh, eye, _degree=_degree):
        d = means.astype(np.float64) - eye
        d /= np.linalg.norm(d, axis=1, keepdims=True)
        basis = [_harmonic(n, m, d) for n in range(_degree + 1) for m in range(-n, n + 1)]
        colour = 0.5 + np.einsum("kn,nkc->nc", np.array(basis), sh[:, : len(basis)].astype(np.float64))
        bits = (colour < 0) @ np.array([1, 2, 4])
        return np.maximum(colour, 0), bits.astype(np.uint8)

    body(
        """
    uint idx = thread_position_in_grid.x;
    constexpr int COUNT = (DEGREE + 1) * (DEGREE + 1);
    float3 sh[16];
    // The table always has room for degree 3.
    const device T* own = sh_coefficients + idx * 48;
    MLX_MTL_PRAGMA_UNROLL
    for (int k = 0; k < COUNT; ++k) sh[k] = float3(own[3 * k], own[3 * k + 1], own[3 * k + 2]);
    float3 dir = float3(means[3 * idx], means[3 * idx + 1], means[3 * idx + 2]) - float3(eye[0], eye[1], eye[2]);
    dir = normalize(dir);
    float3 rgb = harmonics<DEGREE>(dir, sh) + 0.5f;
    // The backward pass must know which colours were clamped.
    bool3 dark = rgb < 0.0f;
    clamped[idx] = uchar(dark.x) | uchar(dark.y) << 1 | uchar(dark.z) << 2;
    rgb = select(rgb, float3(0.0f), dark);
    colours[3 * idx] = rgb.r;
    colours[3 * idx + 1] = rgb.g;
    colours[3 * idx + 2] = rgb.b;
    """,
        name=f"splat_colours_of_degree_{_degree}",
        header=_HARMONICS,
        template=[("T", Dtype(_dtype)), ("DEGREE", _degree)],
        inputs=lambda rng, _dtype=_dtype: {
            "means": rng.normal(size=(70, 3)).astype(np.float32) * 2,
            "sh_coefficients": (rng.normal(size=(70, 16, 3)) * 0.2).astype(_dtype),
            "eye": np.array([0.5, 0.25, -6], np.float32),
        },
        outputs={"colours": ((70, 3), "float32"), "clamped": ((70,), "uint8")},
        grid=(70, 1, 1),
        threadgroup=(32, 1, 1),
        tolerance=5e-6,
        constructs="structure.template structure.if_constexpr structure.explicit_template_arguments "
        "address_spaces.constant_array address_spaces.constant_scalar functions.normalize functions.select "
        "types.vector_comparison types.rgba types.bool3 mlx.MLX_MTL_PRAGMA_UNROLL",
    )(lambda means, sh_coefficients, eye, _f=_colours: _f(means, sh_coefficients, eye))


def _touched(rng):
    centres = (rng.integers(-64, 8 * 64, (50, 2)) / 8).astype(np.float32)
    radii = rng.integers(0, 14, 50).astype(np.int32)
    tiles = np.array([7, 5])
    counts = []
    for centre, radius in zip(centres, radii, strict=True):
        low, high = _tiles_of(centre, radius, tiles)
        counts.append(max(0, (high - low).prod()) if radius else 0)
    return centres, radii, np.cumsum(counts).astype(np.int32)


# How many pairs of a splat and a tile there are with the inputs below; a caller learns it from the last offset.
_PAIRS = 150


def _key_inputs(rng):
    centres, radii, offsets = _touched(np.random.default_rng(5))
    return {
        "centres": centres,
        "radii": radii,
        "depths": rng.uniform(0.5, 20, 50).astype(np.float32),
        "offsets": offsets,
        "tiles_x": 7,
        "tiles_y": 5,
    }


@body(
    """
    // A key for each tile that a splat touches: the tile above, the depth below, so that one sort does both.
    uint idx = thread_position_in_grid.x;
    int radius = radii[idx];
    if (radius <= 0) return;
    uint place = idx == 0 ? 0u : uint(offsets[idx - 1]);
    const device packed_float2* at = (const device packed_float2*)centres;
    TileRect rect = tiles_of(float2(at[idx]), radius, int2(tiles_x, tiles_y));
    // Depths are positive: their bits are in the order of their values.
    uint depth_bits = as_type<uint>(depths[idx]);
    for (int y = rect.low.y; y < rect.high.y; ++y) {
      for (int x = rect.low.x; x < rect.high.x; ++x) {
        ulong key = ulong(y * tiles_x + x);
        key <<= 32;
        key |= depth_bits;
        keys[place] = key;
        splats[place++] = int(idx);
      }
    }
    """,
    header=TILES,
    inputs=_key_inputs,
    outputs={"keys": ((_PAIRS,), "uint64"), "splats": ((_PAIRS,), "int32")},
    init_value=0,
    grid=(50, 1, 1),
    threadgroup=(32, 1, 1),
    constructs="types.ulong types.as_type types.packed_vectors reconvergence.divergent_trip_count "
    "structure.early_return structure.define_in_header",
)
def splat_tile_keys(centres, radii, depths, offsets, tiles_x, tiles_y):
    keys, splats = np.zeros(_PAIRS, np.uint64), np.zeros(_PAIRS, np.int32)
    place = 0
    for i, (centre, radius) in enumerate(zip(centres, radii, strict=True)):
        if radius == 0:
            continue
        low, high = _tiles_of(centre, radius, np.array([tiles_x, tiles_y]))
        for y in range(low[1], high[1]):
            for x in range(low[0], high[0]):
                keys[place] = (y * tiles_x + x) << 32 | int(depths[i].view(np.uint32))
                splats[place] = i
                place += 1
    return keys, splats


@body(
    """
    // Where each tile's splats begin and end among the sorted keys.
    uint i = thread_position_in_grid.x;
    uint count = sorted_keys_shape[0];
    if (i >= count) return;
    device int2* bounds = (device int2*)ranges;
    int tile = int(sorted_keys[i] >> 32);
    if (i == 0) {
      bounds[tile].x = 0;
    } else {
      int last = int(sorted_keys[i - 1] >> 32);
      if (last != tile) {
        bounds[last].y = i;
        bounds[tile].x = i;
      }
    }
    if (i == count - 1) bounds[tile].y = count;
    """,
    inputs=lambda rng: {
        "sorted_keys": np.sort(rng.choice([0, 1, 2, 5, 6, 9], 150) << 32 | rng.integers(0, 99, 150)).astype(np.uint64),
    },
    outputs={"ranges": ((12, 2), "int32")},
    init_value=0,
    grid=(192, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="address_spaces.cast_to_vector types.int2 structure.early_return",
)
def splat_tile_ranges(sorted_keys):
    tiles = (sorted_keys >> 32).astype(int)
    ranges = np.zeros((12, 2), np.int32)
    for tile in np.unique(tiles):
        ranges[tile] = tiles.searchsorted(tile), tiles.searchsorted(tile, "right")
    return ranges


# ---- The projection's gradient


def _projected(means, scales, quats, view, fx, fy):
    """Centres without the principal point, conics and depths, in float64."""
    p = means @ view[:3, :3].T + view[:3, 3]
    m = _rotations(quats) * scales[:, None, :]
    x, y, z = p.T
    zero = np.zeros_like(x)
    u, v = (np.clip(s, -0.65 * size / f, 0.65 * size / f) for s, size, f in ((x / z, 64, fx), (y / z, 48, fy)))
    jacobian = np.array([[fx / z, zero, -fx * u / z], [zero, fy / z, -fy * v / z]]).transpose(2, 0, 1)
    t = jacobian @ view[:3, :3] @ m
    inverse = np.linalg.inv(t @ t.transpose(0, 2, 1) + 0.3 * np.eye(2))
    conics = np.stack([inverse[:, 0, 0], inverse[:, 0, 1], inverse[:, 1, 1]], axis=1)
    return np.stack([fx * x / z, fy * y / z], axis=1), conics, z


def _projection_grads(rng):
    scene = _scene(rng)
    count = 48
    inputs = {key: scene[key][:count] for key in ("means", "scales", "quats")}
    inputs["means"] = (inputs["means"] * np.array([1, 0.75, 0.5])).astype(np.float32)
    # Balls have no turn.
    inputs["scales"] = (inputs["scales"] * np.array([0.5, 1, 2])).astype(np.float32)
    return inputs | {
        "view": scene["view"],
        "focal": np.array([70, 75], np.float32),
        "visible": (rng.uniform(size=count) < 0.85).astype(bool),
        "grad_centres": rng.uniform(0.5, 1, (count, 2)).astype(np.float32),
        "grad_conics": rng.uniform(50, 99, (count, 3)).astype(np.float32),
        "grad_depths": rng.uniform(0.5, 1, count).astype(np.float32),
    }


@body(
    """
    uint idx = thread_position_in_grid.x;
    if (idx >= uint(means_shape[0])) return;
    if (!visible[idx]) return;

    // What the forward pass computed is computed once more: it is cheaper than to have kept it.
    float3x3 w = view_rotation(view);
    float3 mean = fetch3(means, idx);
    float3 p = w * mean + float3(view[3], view[7], view[11]);
    float inv_z = 1.0f / p.z, inv_z2 = inv_z * inv_z;
    float fx = focal[0], fy = focal[1];
    float4 q_raw = *(const device float4*)(quats + 4 * idx);
    float norm = length(q_raw);
    float4 q = q_raw / norm;
    float3 s = fetch3(scales, idx);
    float3x3 r = quaternion_matrix(q);
    float3x3 m = float3x3(r[0] * s.x, r[1] * s.y, r[2] * s.z);
    float3x3 sigma = m * transpose(m);

    // T = J W has two rows. Far outside of the frustum the direction is clamped, as it was in the forward pass.
    float2 limit = 0.65f * float2(WIDTH, HEIGHT) / float2(fx, fy);
    float2 slope = p.xy * inv_z;
    float2 clamped = clamp(slope, -limit, limit);
    bool2 inside = clamped == slope;
    float2 at = p.z * clamped;
    float3 j0 = float3(fx * inv_z, 0.0f, -fx * at.x * inv_z2);
    float3 j1 = float3(0.0f, fy * inv_z, -fy * at.y * inv_z2);
    float3 t0 = j0 * w, t1 = j1 * w;
    float3 st0 = sigma * t0, st1 = sigma * t1;
    float a = dot(t0, st0) + LOW_PASS, b = dot(t0, st1), c = dot(t1, st1) + LOW_PASS;
    float inv_det = 1.0f / (a * c - b * b);
    float3 conic = float3(c, -b, a) * inv_det;

    // Through the inverse: d(X^-1) = -X^-1 dX X^-1, with G the gradient as a symmetric matrix.
    float3 g = fetch3(grad_conics, idx);
    float2x2 inverse = float2x2(float2(conic.x, conic.y), float2(conic.y, conic.z));
    float2x2 upstream = float2x2(float2(g.x, 0.5f * g.y), float2(0.5f * g.y, g.z));
    float2x2 d_cov = inverse * upstream * inverse;
    float ga = -d_cov[0][0], gb = -d_cov[0][1], gc = -d_cov[1][1];

    // cov = T sigma T^T: to T, and to sigma.
    float3 d_t0 = 2.0f * (ga * st0 + gb * st1);
    float3 d_t1 = 2.0f * (gb * st0 + gc * st1);
    float3x3 d_sigma = float3x3(0.0f);
    OUTER_ADD(d_sigma, ga, t0, t0);
    OUTER_ADD(d_sigma, gb, t0, t1);
    OUTER_ADD(d_sigma, gb, t1, t0);
    OUTER_ADD(d_sigma, gc, t1, t1);

    // T to J, and J to the point in view.
    float3 d_j0 = w * d_t0, d_j1 = w * d_t1;
    float2 gm = float2(grad_centres[2 * idx], grad_centres[2 * idx + 1]);
    float3 d_p;
    float2 d_at = -float2(d_j0.z * fx, d_j1.z * fy) * inv_z2;
    d_p.xy = gm * float2(fx, fy) * inv_z + select(float2(0.0f), d_at, inside);
    d_p.z = grad_depths[idx] - (gm.x * fx * p.x + gm.y * fy * p.y) * inv_z2 - (d_j0.x * fx + d_j1.y * fy) * inv_z2 +
            2.0f * (d_j0.z * fx * at.x + d_j1.z * fy * at.y) * inv_z2 * inv_z;
    // A clamped direction moves with the depth only.
    d_p.z += dot(select(d_at, float2(0.0f), inside), clamped);
    store3(grad_means, idx, transpose(w) * d_p);

    // sigma = M M^T, M = R S.
    float3x3 d_m = 2.0f * (d_sigma * m);
    store3(grad_scales, idx, float3(dot(d_m[0], r[0]), dot(d_m[1], r[1]), dot(d_m[2], r[2])));

    // R to the quaternion, element by element; then through the normalisation.
    float3x3 d_r = float3x3(d_m[0] * s.x, d_m[1] * s.y, d_m[2] * s.z);
    float x = q.y, y = q.z, z = q.w, real = q.x;
    float4 d_q;
    // D(i, j) is row i, column j.
    #define D(i, j) d_r[j][i]
    d_q.x = 2.0f * (x * (D(2, 1) - D(1, 2)) + y * (D(0, 2) - D(2, 0)) + z * (D(1, 0) - D(0, 1)));
    d_q.y = 2.0f * (y * (D(0, 1) + D(1, 0)) + z * (D(0, 2) + D(2, 0)) + real * (D(2, 1) - D(1, 2)) -
                    2.0f * x * (D(1, 1) + D(2, 2)));
    d_q.z = 2.0f * (x * (D(0, 1) + D(1, 0)) + z * (D(1, 2) + D(2, 1)) + real * (D(0, 2) - D(2, 0)) -
                    2.0f * y * (D(0, 0) + D(2, 2)));
    d_q.w = 2.0f * (x * (D(0, 2) + D(2, 0)) + y * (D(1, 2) + D(2, 1)) + real * (D(1, 0) - D(0, 1)) -
                    2.0f * z * (D(0, 0) + D(1, 1)));
    #undef D
    *(device float4*)(grad_quats + 4 * idx) = (d_q - dot(d_q, q) * q) / norm;
    """,
    header="""
#define LOW_PASS 0.3f

inline float3 fetch3(const device float* from, uint i) {
  return float3(from[3 * i], from[3 * i + 1], from[3 * i + 2]);
}
inline void store3(device float* to, uint i, float3 v) {
  for (uint c = 0; c < 3; ++c) to[3 * i + c] = v[c];
}

// The view's matrix comes by rows, Metal's are columns.
inline float3x3 view_rotation(const device float* view) {
  return float3x3(float3(view[0], view[4], view[8]), float3(view[1], view[5], view[9]),
                  float3(view[2], view[6], view[10]));
}

// Of a quaternion (w, x, y, z) of length 1.
inline float3x3 quaternion_matrix(float4 q) {
  float w = q[0], x = q[1], y = q[2], z = q[3];
  float3x3 m;
  m[0] = float3(1.0f - 2.0f * (y * y + z * z), 2.0f * (x * y + w * z), 2.0f * (x * z - w * y));
  m[1] = float3(2.0f * (x * y - w * z), 1.0f - 2.0f * (x * x + z * z), 2.0f * (y * z + w * x));
  m[2] = float3(2.0f * (x * z + w * y), 2.0f * (y * z - w * x), 1.0f - 2.0f * (x * x + y * y));
  return m;
}

// matrix += factor * column row^T
#define OUTER_ADD(matrix, factor, column, row)      \\
  do {                                              \\
    matrix[0] += (factor) * (row).x * (column);     \\
    matrix[1] += (factor) * (row).y * (column);     \\
    matrix[2] += (factor) * (row).z * (column);     \\
  } while (0)
""",
    template=[("WIDTH", 64), ("HEIGHT", 48)],
    inputs=_projection_grads,
    outputs={
        "grad_means": ((48, 3), "float32"),
        "grad_scales": ((48, 3), "float32"),
        "grad_quats": ((48, 4), "float32"),
    },
    init_value=0,
    grid=(64, 1, 1),
    threadgroup=(32, 1, 1),
    tolerance=5e-4,
    constructs="types.matrices types.matrix_arithmetic types.matrix_components functions.transpose functions.dot "
    "functions.length structure.multi_line_macro_in_header structure.early_return types.swizzle_write types.bool2 "
    "functions.select",
)
def splat_projection_backward(means, scales, quats, view, focal, visible, grad_centres, grad_conics, grad_depths):
    view, (fx, fy) = view.astype(np.float64), focal.astype(np.float64)
    given = [v.astype(np.float64) for v in (means, scales, quats)]

    def loss(p, s, q):
        centres, conics, depths = _projected(p, s, q, view, fx, fy)
        return (centres * grad_centres).sum(axis=1) + (conics * grad_conics).sum(axis=1) + depths * grad_depths

    grads = []
    for which, value in enumerate(given):
        columns = []
        for k in range(value.shape[1]):
            step = 1e-4 * np.linalg.norm(value, axis=1)

            def at(times, which=which, k=k, step=step):
                moved = [v.copy() for v in given]
                moved[which][:, k] += times * step
                return loss(*moved)

            # Of the sixth order.
            columns.append((45 * (at(1) - at(-1)) - 9 * (at(2) - at(-2)) + (at(3) - at(-3))) / (60 * step))
        grads.append(np.stack(columns, axis=1) * visible[:, None])
    return tuple(grads)
