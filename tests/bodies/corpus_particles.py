"""Particles: gravity, charges on meshes, fluids of particles, clusters."""

import numpy as np

from bodies import body


@body(
    """
    // Acceleration and jerk of stars, for Hermite's scheme, and a prediction by both; tiles in threadgroup memory.
    threadgroup Star tile[TILE];
    uint i = thread_position_in_grid.x, t = thread_position_in_threadgroup.x;
    uint stars = masses_shape[0];
    Star own = load_star(min(i, stars - 1), positions, velocities, masses);
    float3 acc = 0, jerk = 0;
    float potential = 0;
    float nearest = FLT_MAX;
    for (uint first = 0; first < stars; first += TILE) {
      threadgroup_barrier(mem_flags::mem_threadgroup);
      if (first + t < stars) tile[t] = load_star(first + t, positions, velocities, masses);
      threadgroup_barrier(mem_flags::mem_threadgroup);
      uint here = min(uint(TILE), stars - first);
      #pragma unroll 4
      for (uint j = 0; j < here; ++j) {
        float3 d = tile[j].position - own.position;
        float3 dv = tile[j].velocity - own.velocity;
        float r2 = dot(d, d) + SOFTENING * SOFTENING;
        float inv = rsqrt(r2);
        float m3 = tile[j].mass * inv * inv * inv;
        float rv = 3.0f * dot(d, dv) * inv * inv;
        acc = fma(float3(m3), d, acc);
        jerk += m3 * (dv - rv * d);
        bool self = first + j == i;
        potential -= self ? 0.0f : tile[j].mass * inv;
        nearest = self ? nearest : min(nearest, r2);
      }
    }
    if (i >= stars) return;
    float3 x = own.position + dt * (own.velocity + dt * (0.5f * acc + dt / 6.0f * jerk));
    float3 v = own.velocity + dt * (acc + 0.5f * dt * jerk);
    for (int c = 0; c < 3; ++c) {
      predicted[6 * i + c] = x[c];
      predicted[6 * i + 3 + c] = v[c];
    }
    potentials[i] = potential;
    // The longest step that the next encounter allows.
    steps[i] = metal::sqrt(metal::sqrt(nearest) / length(acc));
    int exponent;
    frexp(steps[i], exponent);
    levels[i] = char(exponent);
  """,
    header="""
#define SOFTENING 0.05f

struct Star {
  float3 position;
  float mass;
  float3 velocity;
};

inline Star load_star(uint i, device const float* x, device const float* v, device const float* m) {
  Star star;
  star.position = float3(x[3 * i], x[3 * i + 1], x[3 * i + 2]);
  star.velocity = float3(v[3 * i], v[3 * i + 1], v[3 * i + 2]);
  star.mass = m[i];
  return star;
}
""",
    template=[("TILE", 32)],
    inputs=lambda rng: {
        "positions": rng.uniform(-1, 1, (70, 3)).astype(np.float32) + np.float32(4),
        "velocities": (rng.normal(size=(70, 3)) * 0.2 + 2).astype(np.float32),
        "masses": rng.uniform(0.5, 1.5, 70).astype(np.float32) / np.float32(70),
        "dt": 0.125,
    },
    outputs={
        "predicted": ((70, 6), "float32"),
        "potentials": ((70,), "float32"),
        "steps": ((70,), "float32"),
        "levels": ((70,), "int8"),
    },
    grid=(96, 1, 1),
    threadgroup=(32, 1, 1),
    tolerance=1e-6,
    constructs="address_spaces.threadgroup_struct structure.pragma_unroll functions.rsqrt functions.frexp functions.fma "
    "types.FLT_constants types.char barriers.run_time_trip_count functions.length",
)
def hermite_prediction_of_stars(positions, velocities, masses, dt):
    x, v, m = (a.astype(np.float64) for a in (positions, velocities, masses))
    d, dv = x[None] - x[:, None], v[None] - v[:, None]
    r2 = (d**2).sum(axis=2) + 0.0025
    acc = np.einsum("j,ij,ijk->ik", m, r2**-1.5, d)
    falling = dv - 3 * ((d * dv).sum(axis=2) / r2)[..., None] * d
    jerk = np.einsum("j,ij,ijk->ik", m, r2**-1.5, falling)
    apart = r2 + np.where(np.eye(70) > 0, np.inf, 0)
    steps = np.sqrt(np.sqrt(apart.min(axis=1)) / np.linalg.norm(acc, axis=1))
    predicted = np.concatenate(
        [x + dt * v + dt**2 / 2 * acc + dt**3 / 6 * jerk, v + dt * acc + dt**2 / 2 * jerk], axis=1
    )
    return predicted, -(m / np.sqrt(apart)).sum(axis=1), steps, np.frexp(steps)[1].astype(np.int8)


@body(
    """
    // Charges on a mesh by a cloud of three cells in each direction. A threadgroup adds up its own mesh first.
    threadgroup atomic_int mesh[SIDE * SIDE];
    uint t = thread_index_in_threadgroup;
    for (uint k = t; k < SIDE * SIDE; k += threads_per_threadgroup.x)
      atomic_store_explicit(mesh + k, 0, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    uint i = thread_position_in_grid.x;
    float2 p = float2(places[2 * i], places[2 * i + 1]);
    int2 middle = int2(rint(p));
    float2 d = p - float2(middle);
    float2 w[3] = {0.5f * (0.5f - d) * (0.5f - d), 0.75f - d * d, 0.5f * (0.5f + d) * (0.5f + d)};
    // The cell in the middle gets what rounding leaves of the charge, so that none is lost.
    int left = int(charges[i] * UNIT);
    for (int dy = 0; dy < 3; ++dy)
      for (int dx = 0; dx < 3; ++dx) {
        if (dx == 1 && dy == 1) continue;
        int share = int(rint(charges[i] * UNIT * w[dx].x * w[dy].y));
        left -= share;
        int2 cell = (middle + int2(dx, dy) - 1 + SIDE) % SIDE;
        atomic_fetch_add_explicit(mesh + cell.y * SIDE + cell.x, share, memory_order_relaxed);
      }
    int2 own = middle % SIDE;
    atomic_fetch_add_explicit(mesh + own.y * SIDE + own.x, left, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint k = t; k < SIDE * SIDE; k += threads_per_threadgroup.x) {
      int own = atomic_load_explicit(mesh + k, memory_order_relaxed);
      if (own != 0) atomic_fetch_add_explicit(density + k, own, memory_order_relaxed);
    }
    """,
    header="#define SIDE 12\n#define UNIT 1048576.0f\n",
    # Places are sixteenths, so that the weights and the products are exact.
    inputs=lambda rng: {
        "places": (rng.integers(0, 12 * 16, (90, 2)) / 16).astype(np.float32),
        "charges": rng.choice([1.0, 0.5, -0.25], 90).astype(np.float32),
    },
    outputs={"density": ((12, 12), "int32")},
    atomic_outputs=True,
    init_value=0,
    grid=(90, 1, 1),
    threadgroup=(40, 1, 1),
    constructs="synchronisation.threadgroup_atomics synchronisation.fetch_add synchronisation.load synchronisation.store "
    "functions.rint types.int2 launch.edge_threadgroups address_spaces.threadgroup_atomic",
)
def particle_mesh_charges(places, charges):
    density = np.zeros((12, 12))
    for (x, y), charge in zip(places.astype(np.float64), charges.astype(np.float64), strict=True):
        # The weight of a cell is the spline of the second degree.
        def spline(d):
            d = np.abs(d)
            return np.where(d < 0.5, 0.75 - d * d, np.where(d < 1.5, (1.5 - d) ** 2 / 2, 0))

        columns = np.array([spline(np.arange(-1, 14) - c) for c in (x, y)])
        wide = charge * 2**20 * np.outer(columns[1], columns[0])
        for v, u in np.argwhere(wide):
            density[(v - 1) % 12, (u - 1) % 12] += wide[v, u]
    return density.astype(np.int32)


@body(
    """
    // Boris's step of charged particles in fields on a mesh, read by linear weights; velocities relative to that of light.
    uint i = thread_position_in_grid.x;
    if (i >= uint(velocities_shape[0])) return;
    float3 x = float3(places[3 * i], places[3 * i + 1], places[3 * i + 2]);
    float3 u = float3(velocities[3 * i], velocities[3 * i + 1], velocities[3 * i + 2]);
    // Fields are (z, y, x, 8): E and B with a number of padding each.
    int3 size = int3(fields_shape[2], fields_shape[1], fields_shape[0]);
    float3 base = floor(x), f = x - base;
    int3 low = int3(base);
    float3 e = 0.0f, b = 0.0f;
    for (int k = 0; k < 8; ++k) {
      int3 bits = int3(k, k >> 1, k >> 2) & 1;
      int3 at = (low + bits) % size;
      float w = (bits.x ? f.x : 1 - f.x) * (bits.y ? f.y : 1 - f.y) * (bits.z ? f.z : 1 - f.z);
      const device float4* cell = reinterpret_cast<const device float4*>(fields) + 2 * ((at.z * size.y + at.y) * size.x + at.x);
      e += w * cell[0].xyz;
      b += w * cell[1].xyz;
    }
    float h = 0.5f * charge_over_mass * dt;
    float3 minus = u + h * e;
    float gamma = metal::sqrt(1.0f + dot(minus, minus));
    float3 t = h / gamma * b;
    float3 s = 2.0f * t / (1.0f + dot(t, t));
    float3 prime = minus + cross(minus, t);
    float3 plus = minus + cross(prime, s);
    u = plus + h * e;
    float3 v = u * rsqrt(1.0f + dot(u, u));
    x += dt * v;
    // Around, once for each side.
    float3 span = float3(size);
    x -= span * floor(x / span);
    device packed_float3* out = (device packed_float3*)moved;
    out[2 * i] = packed_float3(x + 1.0f);
    out[2 * i + 1] = packed_float3(u + 4.0f);
    """,
    inputs=lambda rng: {
        "places": rng.uniform([0, 0, 0], [6, 5, 4], (50, 3)).astype(np.float32),
        "velocities": rng.normal(size=(50, 3)).astype(np.float32) * np.float32(0.8),
        "fields": rng.normal(size=(4, 5, 6, 8)).astype(np.float32),
        "charge_over_mass": -1.5,
        "dt": 0.4,
    },
    outputs={"moved": ((50, 2, 3), "float32")},
    grid=(64, 1, 1),
    threadgroup=(32, 1, 1),
    tolerance=5e-6,
    constructs="types.packed_vectors structure.reinterpret_cast functions.cross functions.floor functions.rsqrt "
    "functions.dot types.int3 structure.early_return",
)
def boris_push(places, velocities, fields, charge_over_mass, dt):
    x, u, wide = places.astype(np.float64), velocities.astype(np.float64), fields.astype(np.float64)
    dt = float(np.float32(dt))
    size = np.array([6, 5, 4])
    out = np.zeros((50, 2, 3))
    for i in range(50):
        # The weights are tents around the ring.
        tents = []
        for k in range(3):
            d = np.abs(np.arange(size[k]) - x[i, k])
            tents.append(np.maximum(0, 1 - np.minimum(d, size[k] - d)))
        field = np.einsum("zyxc,x,y,z->c", wide, *tents)
        e, b = field[:3], field[4:7]
        h = charge_over_mass * dt / 2
        minus = u[i] + h * e
        t = h * b / np.sqrt(1 + minus @ minus)
        # The turn in the magnetic field, by the Cayley transform of its generator.
        generator = np.array([[0, t[2], -t[1]], [-t[2], 0, t[0]], [t[1], -t[0], 0]])
        plus = np.linalg.solve(np.eye(3) - generator, (np.eye(3) + generator) @ minus)
        after = plus + h * e
        place = (x[i] + dt * after / np.sqrt(1 + after @ after)) % size
        out[i] = place + 1, after + 4
    return out


def _fluid(rng):
    x = rng.uniform(0, 2, (120, 2)).astype(np.float32)
    cells = (x[:, 1] // 0.25).astype(int) * 8 + (x[:, 0] // 0.25).astype(int)
    order = np.argsort(cells, kind="stable")
    d2 = ((x[:, None].astype(np.float64) - x[None]) ** 2).sum(axis=2)
    rho = 0.02 * 4 / (np.pi * 0.25**8) * (np.maximum(0.0625 - d2, 0) ** 3).sum(axis=1)
    return {
        "positions": x,
        "velocities": rng.normal(size=(120, 2)).astype(np.float32),
        "densities_in": rho.astype(np.float32),
        "order": order.astype(np.uint32),
        "cell_starts": np.searchsorted(cells[order], np.arange(65)).astype(np.int32),
        "dt": 0.05,
    }


@body(
    """
    // A fluid of particles: densities in a first pass, forces in a second, with particles sorted by cells. Both passes are
    // one text; PASS says which.
    uint i = thread_position_in_grid.x;
    if (i >= uint(order_shape[0])) return;
    device const packed_float2* x = (device const packed_float2*)positions;
    float2 own = float2(x[i]);
    int2 cell = int2(own / H);
    float density = 0.0f;
    float2 pressure_force = 0.0f, viscosity_force = 0.0f;
    for (int cy = max(cell.y - 1, 0); cy <= min(cell.y + 1, CELLS - 1); ++cy)
      for (int cx = max(cell.x - 1, 0); cx <= min(cell.x + 1, CELLS - 1); ++cx) {
        int c = cy * CELLS + cx;
        for (int k = cell_starts[c]; k < cell_starts[c + 1]; ++k) {
          uint j = order[k];
          float2 d = own - float2(x[j]);
          float r2 = dot(d, d);
          if (r2 >= H * H) continue;
          if constexpr (PASS == 0) {
            float rest = H * H - r2;
            density += MASS * POLY6 * rest * rest * rest;
          } else {
            if (j == i) continue;
            float r = metal::sqrt(max(r2, 1e-12f));
            float p = pressure_of(densities_in[i]) + pressure_of(densities_in[j]);
            pressure_force += -MASS * p / (2.0f * densities_in[j]) * SPIKY * (H - r) * (H - r) * d / r;
            float2 dv = float2(velocities[2 * j], velocities[2 * j + 1]) - float2(velocities[2 * i], velocities[2 * i + 1]);
            viscosity_force += VISCOSITY * MASS * dv / densities_in[j] * LAPLACIAN * (H - r);
          }
        }
      }
    if constexpr (PASS == 0) {
      result[2 * i] = density;
      result[2 * i + 1] = pressure_of(density);
    } else {
      float2 acceleration = (pressure_force + viscosity_force) / densities_in[i] + float2(0, -9.8f);
      float2 moved = own + dt * (float2(velocities[2 * i], velocities[2 * i + 1]) + dt * acceleration);
      result[2 * i] = moved.x + 1.0f;
      result[2 * i + 1] = moved.y + 1.0f;
    }
    """,
    header="""
#define H 0.25f
#define CELLS 8
#define MASS 0.02f
#define VISCOSITY 0.4f
// Normalisations of the kernels in the plane.
constant constexpr float POLY6 = 4.0f / (M_PI_F * H * H * H * H * H * H * H * H);
constant constexpr float SPIKY = -30.0f / (M_PI_F * H * H * H * H * H);
constant constexpr float LAPLACIAN = 40.0f / (M_PI_F * H * H * H * H * H);

inline float pressure_of(float density) { return max(2.0f * (density - 1.0f), 0.0f); }
""",
    template=[("PASS", 1)],
    inputs=_fluid,
    outputs={"result": ((120, 2), "float32")},
    grid=(128, 1, 1),
    threadgroup=(32, 1, 1),
    tolerance=2e-6,
    constructs="structure.if_constexpr structure.template_arguments types.packed_vectors types.float2 "
    "structure.constexpr",
)
def smoothed_particle_forces(positions, velocities, densities_in, order, cell_starts, dt):
    x, v, rho = (a.astype(np.float64) for a in (positions, velocities, densities_in))
    d = x[:, None] - x[None]
    r = np.sqrt((d**2).sum(axis=2)) + np.where(np.eye(120) > 0, 9, 0)
    near = np.where(r < 0.25, 0.25 - r, 0)
    p = np.maximum(2 * (rho - 1), 0)
    push = 0.02 * (p[:, None] + p) / (2 * rho) * 30 / (np.pi * 0.25**5) * near**2 / r
    drag = 0.4 * 0.02 / rho * 40 / (np.pi * 0.25**5) * near
    force = (push[..., None] * d).sum(axis=1) + (drag[..., None] * (v[None] - v[:, None])).sum(axis=1)
    acceleration = force / rho[:, None] + [0, -9.8]
    dt = float(np.float32(dt))
    return x + dt * (v + dt * acceleration) + 1


@body(
    """
    // One round of k-means: nearest centres, then sums and counts, first in threadgroup memory as 32-bit integers, then in
    // memory; the last threadgroup to come divides.
    threadgroup atomic_int sums[K * D];
    threadgroup atomic_uint counts[K];
    threadgroup float centre_cache[K * D];
    threadgroup bool last;
    uint t = thread_index_in_threadgroup, threads = threads_per_threadgroup.x;
    for (uint k = t; k < K * D; k += threads) {
      atomic_store_explicit(&sums[k], 0, memory_order_relaxed);
      if (k < K) atomic_store_explicit(&counts[k], 0u, memory_order_relaxed);
      centre_cache[k] = centres[k];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    uint i = thread_position_in_grid.x;
    if (i < uint(points_shape[0])) {
      float p[D];
      for (int d = 0; d < D; ++d) p[d] = points[i * D + d];
      int best = 0;
      float least = INFINITY;
      for (int k = 0; k < K; ++k) {
        float distance2 = 0;
        for (int d = 0; d < D; ++d) distance2 += (p[d] - centre_cache[k * D + d]) * (p[d] - centre_cache[k * D + d]);
        if (distance2 < least) {
          least = distance2;
          best = k;
        }
      }
      // Points are multiples of 1/256.
      for (int d = 0; d < D; ++d) atomic_fetch_add_explicit(&sums[best * D + d], int(p[d] * 256.0f), memory_order_relaxed);
      atomic_fetch_add_explicit(&counts[best], 1u, memory_order_relaxed);
      atomic_store_explicit(labels + i, best, memory_order_relaxed);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint k = t; k < K * D; k += threads) {
      atomic_fetch_add_explicit(totals + k, atomic_load_explicit(&sums[k], memory_order_relaxed), memory_order_relaxed);
      if (k < K)
        atomic_fetch_add_explicit(members + k, int(atomic_load_explicit(&counts[k], memory_order_relaxed)),
                                  memory_order_relaxed);
    }
    threadgroup_barrier(mem_flags::mem_device);
    if (t == 0) {
      atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
      last = uint(atomic_fetch_add_explicit(arrived, 1, memory_order_relaxed)) == threadgroups_per_grid.x - 1;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (!last) return;
    atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
    for (uint k = t; k < K * D; k += threads) {
      int count = atomic_load_explicit(members + k / D, memory_order_relaxed);
      int total = atomic_load_explicit(totals + k, memory_order_relaxed);
      float mean = count > 0 ? float(total) / (256.0f * float(count)) : centre_cache[k];
      atomic_store_explicit(new_centres + k, int(floor(mean * 65536.0f)), memory_order_relaxed);
    }
    """,
    template=[("K", 6), ("D", 3)],
    inputs=lambda rng: {
        "points": (rng.integers(-2048, 2048, (200, 3)) / 256).astype(np.float32),
        "centres": (rng.integers(-128, 128, (6, 3)) / 16).astype(np.float32),
    },
    outputs={
        "labels": ((200,), "int32"),
        "totals": ((6, 3), "int32"),
        "members": ((6,), "int32"),
        "arrived": ((1,), "int32"),
        "new_centres": ((6, 3), "int32"),
    },
    atomic_outputs=True,
    init_value=0,
    grid=(224, 1, 1),
    threadgroup=(32, 1, 1),
    constructs="synchronisation.last_arrival barriers.last_arrival synchronisation.threadgroup_atomics "
    "synchronisation.atomic_thread_fence address_spaces.threadgroup_scalar types.INFINITY functions.floor "
    "synchronisation.fetch_add",
)
def k_means_round(points, centres):
    d2 = ((points[:, None].astype(np.float64) - centres[None]) ** 2).sum(axis=2)
    labels = d2.argmin(axis=1)
    members = np.bincount(labels, minlength=6)
    totals = np.zeros((6, 3), np.int64)
    np.add.at(totals, labels, (points * 256).astype(np.int64))
    means = totals.astype(np.float32) / (np.float32(256) * np.maximum(members, 1).astype(np.float32)[:, None])
    fixed = np.floor(np.where(members[:, None] > 0, means, centres) * np.float32(65536))
    return (
        labels.astype(np.int32),
        totals.astype(np.int32),
        members.astype(np.int32),
        np.array([7], np.int32),
        fixed.astype(np.int32),
    )
