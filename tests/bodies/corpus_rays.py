"""Rays: distances, triangles, boxes, volumes and paths of light."""

import math

import numpy as np

from bodies import body

# ---- Ray marching of signed distances


@body(
    """
    uint2 pixel = thread_position_in_grid.xy;
    uint2 size = threads_per_grid.xy;
    // A pinhole camera above the floor that looks slightly down.
    float2 uv = (2.0f * (float2(pixel) + 0.5f) - float2(size)) / float(size.y);
    float3 origin = float3(0.0f, 1.2f, -3.5f);
    float3 dir = normalize(float3(uv.x, -uv.y - 0.25f, 1.6f));

    Hit hit = march(origin, dir, 0.01f, 20.0f);
    uint at = pixel.y * size.x + pixel.x;
    material[at] = uchar(hit.material);
    if (hit.material == NOTHING) {
      depth[at] = -1.0f;
      shade[at] = 0.25f + 0.5f * saturate(dir.y * 0.5f + 0.5f);
      return;
    }
    float3 p = origin + hit.t * dir;
    float3 n = normal_of(p);
    float3 light = normalize(float3(LIGHT));
    float lambert = saturate(dot(n, light));
    float shadow = soft_shadow(p + 0.02f * n, light);
    float occlusion = ambient(p, n);
    float albedo;
    switch (hit.material) {
      case SPHERE: albedo = 0.75f; break;
      case BOX: albedo = 0.5f; break;
      case TORUS: albedo = 0.875f; break;
      default: {
        // A chequered floor.
        int2 square = int2(floor(p.xz));
        albedo = ((square.x + square.y) & 1) ? 0.375f : 0.625f;
      }
    }
    depth[at] = hit.t;
    shade[at] = albedo * (0.2f * occlusion + 0.8f * lambert * shadow) + 0.05f;
    """,
    header="""
#define LIGHT 0.6f, 0.8f, -0.5f
enum Material { NOTHING, FLOOR, SPHERE, BOX, TORUS };

struct Hit {
  float t;
  int material;
};

inline float sd_sphere(float3 p, float radius) { return length(p) - radius; }

inline float sd_round_box(float3 p, float3 half_size, float round) {
  float3 q = abs(p) - half_size;
  return length(max(q, 0.0f)) + min(max(q.x, max(q.y, q.z)), 0.0f) - round;
}

inline float sd_torus(float3 p, float2 radii) {
  float2 q = float2(length(p.xz) - radii.x, p.y);
  return length(q) - radii.y;
}

// Distance and material of what is nearest.
inline float2 scene(float3 p) {
  float2 best = float2(p.y, FLOOR);
  auto closer = [&best](float d, Material m) {
    if (d < best.x) best = float2(d, float(m));
  };
  closer(sd_sphere(p - float3(-1.1f, 0.7f, 0.2f), 0.7f), SPHERE);
  closer(sd_round_box(p - float3(0.9f, 0.5f, 0.6f), float3(0.4f, 0.4f, 0.4f), 0.1f), BOX);
  closer(sd_torus(p - float3(0.1f, 0.25f, -1.0f), float2(0.5f, 0.2f)), TORUS);
  return best;
}

inline Hit march(float3 origin, float3 dir, float near, float far) {
  Hit hit = {near, NOTHING};
  for (int i = 0; i < 96; ++i) {
    float2 d = scene(origin + hit.t * dir);
    if (d.x < 0.0005f * hit.t) {
      hit.material = int(d.y);
      break;
    }
    hit.t += d.x;
    if (hit.t > far) break;
  }
  return hit;
}

// The gradient, from the corners of a tetrahedron.
inline float3 normal_of(float3 p) {
  const float e = 0.005f;
  float3 n = float3(0.0f);
  for (int i = 0; i < 4; ++i) {
    float3 corner = 2.0f * float3((i + 3) >> 1 & 1, i >> 1 & 1, i & 1) - 1.0f;
    n += corner * scene(p + e * corner).x;
  }
  return normalize(n);
}

inline float soft_shadow(float3 p, float3 light) {
  float visible = 1.0f, t = 0.02f;
  for (int i = 0; i < 24; ++i) {
    float d = scene(p + t * light).x;
    visible = min(visible, 8.0f * d / t);
    t += clamp(d, 0.05f, 0.25f);
    if (visible < 0.001f) return 0.0f;
  }
  visible = saturate(visible);
  return visible * visible * (3.0f - 2.0f * visible);
}

inline float ambient(float3 p, float3 n) {
  float sum = 0.0f, weight = 1.0f;
  for (int i = 1; i <= 4; ++i) {
    float h = 0.08f * i;
    sum += weight * (h - scene(p + h * n).x);
    weight *= 0.5f;
  }
  return saturate(1.0f - 1.5f * sum);
}
""",
    outputs={
        "depth": ((20, 27), "float32"),
        "shade": ((20, 27), "float32"),
        "material": ((20, 27), "uint8"),
    },
    grid=(27, 20, 1),
    threadgroup=(8, 8, 1),
    tolerance=1e-4,
    constructs="structure.switch structure.lambda structure.helper_function functions.length functions.normalize "
    "functions.clamp functions.saturate functions.floor reconvergence.divergent_trip_count "
    "reconvergence.return_in_helper_loop structure.early_return",
)
def march_signed_distances():
    def scene(p):
        q = np.abs(p - [0.9, 0.5, 0.6]) - 0.4
        box = np.linalg.norm(np.maximum(q, 0), axis=-1) + np.minimum(q.max(axis=-1), 0) - 0.1
        r = p - [0.1, 0.25, -1.0]
        torus = np.hypot(np.hypot(r[..., 0], r[..., 2]) - 0.5, r[..., 1]) - 0.2
        ball = np.linalg.norm(p - [-1.1, 0.7, 0.2], axis=-1) - 0.7
        return np.stack([p[..., 1], ball, box, torus])

    y, x = np.mgrid[:20, :27] + 0.5
    d = np.stack([(2 * x - 27) / 20, -(2 * y - 20) / 20 - 0.25, np.full((20, 27), 1.6)], axis=-1)
    d /= np.linalg.norm(d, axis=-1, keepdims=True)
    origin = np.array([0, 1.2, -3.5])
    t, running, hit = np.full((20, 27), 0.01), np.ones((20, 27), bool), np.zeros((20, 27), bool)
    for _ in range(96):
        distance = scene(origin + t[..., None] * d).min(axis=0)
        hit |= running & (distance < 0.0005 * t)
        running &= ~hit
        t = np.where(running, t + distance, t)
        running &= t <= 20
    p = origin + t[..., None] * d
    material = np.where(hit, scene(p).argmin(axis=0) + 1, 0)
    corners = np.array([[1, -1, -1], [-1, -1, 1], [-1, 1, -1], [1, 1, 1]])
    n = sum(corner * scene(p + 0.005 * corner).min(axis=0)[..., None] for corner in corners)
    n /= np.linalg.norm(n, axis=-1, keepdims=True)
    light = np.array([0.6, 0.8, -0.5]) / np.linalg.norm([0.6, 0.8, -0.5])

    visible, s, dark = np.ones((20, 27)), np.full((20, 27), 0.02), np.zeros((20, 27), bool)
    for _ in range(24):
        distance = scene(p + 0.02 * n + s[..., None] * light).min(axis=0)
        visible = np.minimum(visible, 8 * distance / s)
        s += np.clip(distance, 0.05, 0.25)
        dark |= visible < 0.001
    visible = np.clip(visible, 0, 1)
    shadow = np.where(dark, 0, visible**2 * (3 - 2 * visible))
    occluded = sum(0.5 ** (i - 1) * (0.08 * i - scene(p + 0.08 * i * n).min(axis=0)) for i in range(1, 5))
    squares = np.floor(p[..., [0, 2]]).astype(int).sum(axis=-1)
    albedo = np.choose(material, [0, np.where(squares % 2, 0.375, 0.625), 0.75, 0.5, 0.875])
    shade = albedo * (0.2 * np.clip(1 - 1.5 * occluded, 0, 1) + 0.8 * np.clip(n @ light, 0, 1) * shadow) + 0.05
    sky = 0.25 + 0.5 * np.clip(d[..., 1] / 2 + 0.5, 0, 1)
    return np.where(hit, t, -1), np.where(hit, shade, sky), material.astype(np.uint8)


# ---- Volumes


def _volume_inputs(rng):
    counts = np.array([0, 40, 33, 1, 70, 64, 5, 31, 100, 12], np.int32)
    total = int(counts.sum())
    packed = np.stack([np.cumsum(counts) - counts, counts], axis=1).astype(np.int32)
    return {
        "sigmas": (rng.exponential(size=total) * 4).astype(np.float16),
        "rgbs": rng.uniform(0.1, 1, (total, 3)).astype(np.float16),
        "deltas": rng.uniform(0.01, 0.08, total).astype(np.float32),
        "ts": rng.uniform(1, 4, total).astype(np.float32),
        "rays": packed,
        "threshold": 0.02,
    }


@body(
    """
    // One simdgroup for each ray, 32 samples at a time; the transmittance is a scan of products.
    uint ray = thread_position_in_grid.y;
    if (ray >= uint(rays_shape[0])) return;
    ushort lane = thread_index_in_simdgroup;
    int first = rays[2 * ray], count = rays[2 * ray + 1];
    float t = 1.0f;
    float4 sum = 0.0f;  // Colour and depth.
    float opacity = 0.0f;
    int used = 0;
    for (int start = 0; start < count; start += 32) {
      int i = first + start + lane;
      bool active = start + lane < count;
      float alpha = active ? 1.0f - metal::precise::exp(-float(sigmas[i]) * deltas[i]) : 0.0f;
      float before = t * simd_prefix_exclusive_product(1.0f - alpha);
      // A sample behind too much fog does not count, nor does any after it.
      active = active && before >= threshold;
      float weight = active ? alpha * before : 0.0f;
      float3 rgb = active ? float3(rgbs[3 * i], rgbs[3 * i + 1], rgbs[3 * i + 2]) : float3(0.0f);
      float4 own = weight * float4(rgb, active ? ts[i] : 0.0f);
      sum += float4(simd_sum(own.x), simd_sum(own.y), simd_sum(own.z), simd_sum(own.w));
      opacity += simd_sum(weight);
      uint here = popcount(uint(ulong(simd_ballot(active))));
      used += here;
      t = simd_broadcast(before * (1.0f - alpha), 31);
      if (t < threshold) break;
    }
    if (lane < 4) accumulated[5 * ray + lane] = sum[lane];
    if (lane == 4) accumulated[5 * ray + 4] = opacity;
    if (simd_is_first()) samples[ray] = used;
    """,
    inputs=_volume_inputs,
    outputs={"accumulated": ((10, 5), "float32"), "samples": ((10,), "int32")},
    grid=(32, 12, 1),
    threadgroup=(32, 4, 1),
    tolerance=2e-6,
    constructs="simdgroup.prefix_exclusive_product simdgroup.ballot simdgroup.broadcast simdgroup.sum "
    "simdgroup.is_first functions.popcount functions.precise structure.return_before_simd reconvergence.call_before_break",
)
def volume_rendering(sigmas, rgbs, deltas, ts, rays, threshold):
    out, samples = np.zeros((10, 5)), np.zeros(10, np.int32)
    for ray, (first, count) in enumerate(rays):
        left = 1.0
        for i in range(first, first + count):
            if left < threshold:
                break
            alpha = -math.expm1(-float(sigmas[i]) * float(deltas[i]))
            out[ray] += alpha * left * np.array([*rgbs[i].astype(np.float64), ts[i], 1])
            left *= 1 - alpha
            samples[ray] += 1
    return out, samples


# ---- Triangles and boxes


def _triangle_inputs(rng):
    count = 75
    centres = np.concatenate([rng.uniform(-2, 2, (count, 2)), rng.uniform(3, 8, (count, 1))], axis=1)
    corners = centres[:, None] + rng.normal(size=(count, 3, 3)) * 0.6
    directions = np.concatenate([rng.uniform(-0.4, 0.4, (50, 2)), np.ones((50, 1))], axis=1)
    return {
        "origins": (rng.normal(size=(50, 3)) * 0.1).astype(np.float32),
        "directions": directions.astype(np.float32),
        "triangles": corners.astype(np.float32),
    }


def _nearest_triangles(origins, directions, triangles):
    """Distance and number of the nearest triangle of each ray (infinite, -1), by solving for the three unknowns."""
    o, d = origins.astype(np.float64), directions.astype(np.float64)
    a, b, c = triangles.astype(np.float64).transpose(1, 0, 2)
    matrix = np.stack(np.broadcast_arrays(-d[:, None], (b - a)[None], (c - a)[None]), axis=-1)
    t, u, v = np.moveaxis(np.linalg.solve(matrix, (o[:, None] - a[None])[..., None])[..., 0], -1, 0)
    hit = (u >= 0) & (v >= 0) & (u + v <= 1) & (t > 0)
    t = np.where(hit, t, np.inf)
    nearest = t.argmin(axis=1)
    rows = np.arange(len(o))
    found = hit[rows, nearest]
    return t[rows, nearest], np.where(found, nearest, -1), u[rows, nearest], v[rows, nearest]


@body(
    """
    // Every ray against every triangle, which the threadgroup reads together, 32 at a time.
    threadgroup Triangle shared_triangles[32];
    uint ray = thread_position_in_grid.x;
    uint local = thread_position_in_threadgroup.x;
    int total = triangles_shape[0];
    bool valid = ray < uint(origins_shape[0]);
    float3 origin = valid ? get(origins, ray) : float3(0);
    float3 dir = valid ? get(directions, ray) : float3(0, 0, 1);
    float best = INFINITY;
    int nearest = -1;
    float2 bary = float2(0);
    for (int first = 0; first < total; first += 32) {
      if (local < 32 && first + int(local) < total) {
        int k = first + int(local);
        float3 a = get(triangles, 3 * k);
        shared_triangles[local] = {a, get(triangles, 3 * k + 1) - a, get(triangles, 3 * k + 2) - a};
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
      int here = min(32, total - first);
      for (int j = 0; j < here; ++j) {
        float t;
        float2 uv;
        if (intersects(shared_triangles[j], origin, dir, t, uv) && t < best) {
          best = t;
          nearest = first + j;
          bary = uv;
        }
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    if (!valid) return;
    distances[ray] = best;
    indices[ray] = nearest;
    barycentric[2 * ray] = bary.x;
    barycentric[2 * ray + 1] = bary.y;
    """,
    header="""
struct Triangle {
  float3 corner, edge1, edge2;
};

METAL_FUNC float3 get(device const float* from, int i) { return float3(from[3 * i], from[3 * i + 1], from[3 * i + 2]); }

// Möller and Trumbore.
METAL_FUNC bool intersects(threadgroup const Triangle& tri, float3 origin, float3 dir, thread float& t,
                           thread float2& uv) {
  float3 p = cross(dir, tri.edge2);
  float det = dot(tri.edge1, p);
  if (abs(det) < 1e-9f) return false;
  float inv = 1.0f / det;
  float3 s = origin - tri.corner;
  uv.x = dot(s, p) * inv;
  if (uv.x < 0.0f || uv.x > 1.0f) return false;
  float3 q = cross(s, tri.edge1);
  uv.y = dot(dir, q) * inv;
  if (uv.y < 0.0f || uv.x + uv.y > 1.0f) return false;
  t = dot(tri.edge2, q) * inv;
  return t > 0.0f;
}
""",
    inputs=_triangle_inputs,
    outputs={
        "distances": ((50,), "float32"),
        "indices": ((50,), "int32"),
        "barycentric": ((50, 2), "float32"),
    },
    grid=(64, 1, 1),
    threadgroup=(64, 1, 1),
    tolerance=2e-4,
    constructs="address_spaces.threadgroup_struct address_spaces.threadgroup_reference_to_helper functions.cross "
    "functions.dot structure.struct types.INFINITY mlx.METAL_FUNC address_spaces.thread",
)
def ray_triangle_tests(origins, directions, triangles):
    t, nearest, u, v = _nearest_triangles(origins, directions, triangles)
    bary = np.where(nearest[:, None] >= 0, np.stack([u, v], axis=1), 0)
    return t, nearest.astype(np.int32), bary


def _build_tree(triangles):
    """A tree of boxes, split at the median: 6 floats for the box of each node, and (left, right) or (~first, count)."""
    boxes: list[np.ndarray] = []
    links: list[tuple[int, int]] = []
    order: list[int] = []
    centres = triangles.mean(axis=1)

    def add(own):
        node = len(boxes)
        points = triangles[own].reshape(-1, 3)
        boxes.append(np.concatenate([points.min(axis=0), points.max(axis=0)]))
        links.append((0, 0))
        if len(own) <= 3:
            links[node] = (~len(order), len(own))
            order.extend(own)
        else:
            axis = np.ptp(centres[own], axis=0).argmax()
            ranked = own[np.argsort(centres[own, axis], kind="stable")]
            links[node] = (add(ranked[: len(own) // 2]), add(ranked[len(own) // 2 :]))
        return node

    add(np.arange(len(triangles)))
    return np.array(boxes, np.float32), np.array(links, np.int32), np.array(order, np.int32)


def _tree_inputs(rng):
    inputs = _triangle_inputs(rng)
    boxes, links, order = _build_tree(inputs["triangles"])
    return inputs | {"boxes": boxes, "links": links, "order": order}


@body(
    """
    uint ray = thread_position_in_grid.x;
    float3 origin = float3(((device const packed_float3*)origins)[ray]);
    float3 dir = float3(((device const packed_float3*)directions)[ray]);
    Slabs slabs(origin, dir);
    device const packed_float3* corners = (device const packed_float3*)triangles;
    device const packed_float3* bounds = (device const packed_float3*)boxes;

    int stack[STACK];
    int top = 0;
    stack[top++] = 0;
    float best = INFINITY;
    int nearest = -1;
    int tests = 0;
    while (top > 0) {
      int node = stack[--top];
      int2 link = ((device const int2*)links)[node];
      if (link.x < 0) {
        // A leaf.
        for (int k = 0; k < link.y; ++k) {
          int id = order[~link.x + k];
          ++tests;
          float t = hit_distance(origin, dir, float3(corners[3 * id]), float3(corners[3 * id + 1]),
                                 float3(corners[3 * id + 2]));
          if (t < best) {
            best = t;
            nearest = id;
          }
        }
        continue;
      }
      // The nearer child is looked at first: it is pushed last.
      float t_left = slabs.entry(float3(bounds[2 * link.x]), float3(bounds[2 * link.x + 1]), best);
      float t_right = slabs.entry(float3(bounds[2 * link.y]), float3(bounds[2 * link.y + 1]), best);
      int near = link.x, far = link.y;
      if (t_right < t_left) {
        float swap = t_left;
        t_left = t_right;
        t_right = swap;
        near = link.y;
        far = link.x;
      }
      if (t_right < INFINITY) stack[top++] = far;
      if (t_left < INFINITY) stack[top++] = near;
    }
    distances[ray] = best;
    indices[ray] = nearest;
    // At least one ray must have been spared tests.
    fewer[ray] = tests < triangles_shape[0];
    """,
    template=[("STACK", 16)],
    header="""
struct Slabs {
  float3 origin, inverse;
  Slabs(float3 o, float3 d) : origin(o), inverse(1.0f / d) {}

  // Where the ray enters the box; infinite where it does not, or only behind `limit`.
  float entry(float3 low, float3 high, float limit) const thread {
    float3 a = (low - origin) * inverse, b = (high - origin) * inverse;
    float3 first = min(a, b), last = max(a, b);
    float enter = max(max3(first.x, first.y, first.z), 0.0f);
    float leave = min(min3(last.x, last.y, last.z), limit);
    return enter <= leave * 1.0000004f ? enter : INFINITY;
  }
};

inline float hit_distance(float3 origin, float3 dir, float3 a, float3 b, float3 c) {
  float3 e1 = b - a, e2 = c - a;
  float3 n = cross(e1, e2);
  float det = -dot(dir, n);
  if (det == 0.0f) return INFINITY;
  float inv = 1.0f / det;
  float3 s = origin - a;
  float3 m = cross(s, dir);
  float u = dot(e2, m) * inv, v = -dot(e1, m) * inv;
  float t = dot(s, n) * inv;
  return u >= 0.0f && v >= 0.0f && u + v <= 1.0f && t > 0.0f ? t : INFINITY;
}
""",
    inputs=_tree_inputs,
    outputs={"distances": ((50,), "float32"), "indices": ((50,), "int32"), "fewer": ((50,), "bool")},
    grid=(50, 1, 1),
    threadgroup=(25, 1, 1),
    tolerance=3e-6,
    constructs="structure.while structure.dynamic_local_array types.packed_vectors "
    "functions.min3 functions.max3 functions.cross address_spaces.cast_to_vector",
)
def bounding_volume_hierarchy(origins, directions, triangles, boxes, links, order):
    t, nearest, _, _ = _nearest_triangles(origins, directions, triangles)
    return t, nearest.astype(np.int32), np.ones(50, bool)


# ---- Paths of light


def _philox(counter, key):
    """Four words of 32 bits for each counter: ten rounds."""
    x = [np.asarray(c, np.uint64) for c in counter]
    k0, k1 = key
    low = np.uint64(0xFFFFFFFF)
    for _ in range(10):
        a, b = x[0] * np.uint64(0xD2511F53), x[2] * np.uint64(0xCD9E8D57)
        high_a, high_b, shift = a >> np.uint64(32), b >> np.uint64(32), np.uint64(k0)
        x = [high_b ^ x[1] ^ shift, b & low, high_a ^ x[3] ^ np.uint64(k1), a & low]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return x


_SPHERES = [
    # Centre, radius, colour, light
    ((0.0, -100.0, 4.0), 99.0, (0.7, 0.7, 0.7), 0.0),
    ((0.0, 0.0, 4.0), 1.0, (0.9, 0.4, 0.3), 0.0),
    ((-1.75, -0.25, 3.5), 0.75, (0.3, 0.8, 0.4), 0.0),
    ((1.5, -0.5, 3.0), 0.5, (0.4, 0.5, 0.9), 0.0),
    ((1.0, 3.5, 2.5), 1.5, (0.0, 0.0, 0.0), 8.0),
]


def _sphere_table():
    rows = []
    for (x, y, z), r, (red, green, blue), light in _SPHERES:
        rows.append(f"  {{float4({x}f, {y}f, {z}f, {r}f), float3({red}f, {green}f, {blue}f), {light}f}},")
    return "\n".join(rows)


@body(
    """
    uint2 pixel = thread_position_in_grid.xy;
    uint index = pixel.y * threads_per_grid.x + pixel.x;
    float3 total = float3(0.0f);
    int bounces = 0;
    for (uint sample = 0; sample < SAMPLES; ++sample) {
      float4 jitter = Random(index, sample, 0, SEED).uniform();
      float2 place = (float2(pixel) + jitter.xy) / float2(threads_per_grid.xy) * 2.0f - 1.0f;
      float3 origin = float3(0.0f, 0.25f, -1.0f);
      float3 dir = normalize(float3(place.x, -place.y, 1.75f));
      float3 throughput = float3(1.0f);
      float3 light = float3(0.0f);
      for (uint depth = 0; depth < MAX_DEPTH; ++depth) {
        Nearest hit = trace(origin, dir);
        if (hit.id < 0) {
          light += throughput * sky(dir);
          break;
        }
        Sphere s = spheres[hit.id];
        if (s.light > 0.0f) {
          light += throughput * s.light;
          break;
        }
        ++bounces;
        float3 p = origin + hit.t * dir;
        float3 n = (p - s.ball.xyz) / s.ball.w;
        throughput *= s.colour;
        float4 dice = Random(index, sample, depth + 1, SEED).uniform();
        // Russian roulette: dark paths end early, and those that go on carry more.
        if (depth > 1) {
          float survival = clamp(max3(throughput.x, throughput.y, throughput.z), 0.05f, 0.95f);
          if (dice.z >= survival) break;
          throughput /= survival;
        }
        dir = around(n, cosine_hemisphere(dice.xy));
        origin = p + 0.001f * n;
      }
      total += light;
    }
    total /= float(SAMPLES);
    image[3 * index] = total.x;
    image[3 * index + 1] = total.y;
    image[3 * index + 2] = total.z;
    bounce_count[index] = bounces;
    """,
    header="""
// A generator without a state (Philox with four words and ten rounds): the counter says what a number is for.
struct Random {
  uint4 x;

  Random(uint pixel, uint sample, uint purpose, uint seed) {
    x = uint4(pixel, sample, purpose, 0);
    uint2 key = uint2(seed, 0x2545f491u);
#pragma unroll
    for (int round = 0; round < 10; ++round) {
      uint2 low = uint2(0xd2511f53u * x.x, 0xcd9e8d57u * x.z);
      uint2 high = uint2(mulhi(0xd2511f53u, x.x), mulhi(0xcd9e8d57u, x.z));
      x = uint4(high.y ^ x.y ^ key.x, low.y, high.x ^ x.w ^ key.y, low.x);
      key += uint2(0x9e3779b9u, 0xbb67ae85u);
    }
  }

  // In [0, 1): 24 bits.
  float4 uniform() const thread { return float4(x >> 8) * 0x1p-24f; }
};

struct Sphere {
  float4 ball;
  float3 colour;
  float light;
};

constant Sphere spheres[] = {
"""
    + _sphere_table()
    + """
};
constant constexpr int SPHERES = sizeof(spheres) / sizeof(Sphere);

struct Nearest {
  float t;
  int id;
};

Nearest trace(float3 origin, float3 dir) {
  Nearest best = {1e20f, -1};
  for (int i = 0; i < SPHERES; ++i) {
    float3 to = spheres[i].ball.xyz - origin;
    float radius = spheres[i].ball.w;
    float b = dot(to, dir);
    // The distance of the centre from the ray, which keeps its digits for the large sphere.
    float3 off = to - b * dir;
    float d = (radius - length(off)) * (radius + length(off));
    if (d <= 0.0f) continue;
    float root = metal::sqrt(d);
    float t = b - root > 0.0005f ? b - root : b + root;
    if (t > 0.0005f && t < best.t) {
      best.t = t;
      best.id = i;
    }
  }
  return best;
}

inline float3 sky(float3 dir) {
  return mix(float3(1.0f, 0.9f, 0.8f), float3(0.4f, 0.6f, 1.0f), 0.5f * (dir.y + 1.0f)) * 0.6f;
}

inline float3 cosine_hemisphere(float2 u) {
  float cosine, r = metal::sqrt(u.x);
  float sine = sincos(2.0f * M_PI_F * u.y, cosine);
  return float3(r * cosine, r * sine, metal::sqrt(1.0f - u.x));
}

// A frame around a normal, without a branch.
inline float3 around(float3 n, float3 v) {
  float s = copysign(1.0f, n.z);
  float a = -1.0f / (s + n.z), b = n.x * n.y * a;
  float3 t = float3(1.0f + s * n.x * n.x * a, s * b, -s * n.x);
  float3 u = float3(b, s + n.y * n.y * a, -n.y);
  return normalize(v.x * t + v.y * u + v.z * n);
}
""",
    template=[("SAMPLES", 3), ("MAX_DEPTH", 6), ("SEED", 20240229)],
    outputs={"image": ((12, 16, 3), "float32"), "bounce_count": ((12, 16), "int32")},
    grid=(16, 12, 1),
    threadgroup=(16, 4, 1),
    tolerance=5e-5,
    constructs="address_spaces.constant_array functions.mulhi functions.copysign functions.sincos functions.mix "
    "functions.max3 types.uint4 types.M_constants literals.hexadecimal_float structure.constexpr structure.struct "
    "structure.pragma_unroll",
)
def path_tracing():
    seed = 20240229
    index = np.arange(12 * 16)
    total, bounces = np.zeros((192, 3)), np.zeros(192, np.int32)
    centres, radii, colours, lights = (np.array(part, np.float64) for part in zip(*_SPHERES, strict=True))

    def uniform(sample, purpose):
        words = _philox([index, sample, purpose, 0], (seed, 0x2545F491))
        return [(w >> np.uint64(8)).astype(np.float64) / 2**24 for w in words]

    for sample in range(3):
        jx, jy, _, _ = uniform(sample, 0)
        place = np.stack([(index % 16 + jx) / 8 - 1, 1 - (index // 16 + jy) / 6, np.full(192, 1.75)], axis=1)
        d = place / np.linalg.norm(place, axis=1, keepdims=True)
        o = np.tile([0, 0.25, -1.0], (192, 1))
        carried, alive = np.ones((192, 3)), np.ones(192, bool)
        for depth in range(6):
            to = centres - o[:, None]
            b = np.einsum("psk,pk->ps", to, d)
            under = b**2 - (to**2).sum(axis=2) + radii**2
            root = np.sqrt(under)
            t = np.where(b - root > 0.0005, b - root, b + root)
            t = np.where((under > 0) & (t > 0.0005), t, np.inf)
            nearest = t.argmin(axis=1)
            far = np.isinf(t.min(axis=1))
            up = (d[:, 1:2] + 1) / 2
            sky = 0.6 * (np.array([1, 0.9, 0.8]) * (1 - up) + np.array([0.4, 0.6, 1]) * up)
            seen = np.where(far[:, None], sky, lights[nearest][:, None])
            ends = far | (lights[nearest] > 0)
            total += np.where((alive & ends)[:, None], carried * seen, 0)
            alive &= ~ends
            bounces += alive
            p = o + np.where(far, 0, t.min(axis=1))[:, None] * d
            n = (p - centres[nearest]) / radii[nearest][:, None]
            carried = carried * colours[nearest]
            u, v, dice, _ = uniform(sample, depth + 1)
            if depth > 1:
                survival = np.clip(carried.max(axis=1), 0.05, 0.95)
                alive &= dice < survival
                carried /= survival[:, None]
            sign = np.copysign(1, n[:, 2])
            a = -1 / (sign + n[:, 2])
            one = np.stack([1 + sign * n[:, 0] ** 2 * a, sign * n[:, 0] * n[:, 1] * a, -sign * n[:, 0]], axis=1)
            two = np.cross(n, one)
            angle = 2 * np.pi * v
            d = (
                np.sqrt(u)[:, None] * (np.cos(angle)[:, None] * one + np.sin(angle)[:, None] * two)
                + np.sqrt(1 - u)[:, None] * n
            )
            o = p + 0.001 * n
    return (total / 3).reshape(12, 16, 3), bounces.reshape(12, 16)
