"""Molecules: forces between atoms, lists of neighbours, constraints, and steps of their motion."""

import itertools
import math

import numpy as np

from bodies import body

_BOX = 6.0


def _atoms(rng, count, box=_BOX, apart=0.9):
    """Points in a periodic box, none too near to another."""
    points: list[np.ndarray] = []
    while len(points) < count:
        p = rng.uniform(0, box, 3)
        d = np.array(points).reshape(-1, 3) - p
        d -= box * np.round(d / box)
        if not len(points) or (d**2).sum(axis=1).min() > apart**2:
            points.append(p)
    return np.array(points).astype(np.float32)


def _neighbour_list(points, reach, box=_BOX, most=48):
    """All neighbours within `reach` of each atom, as a table filled up with -1, one column for each atom."""
    d = points[:, None].astype(np.float64) - points[None]
    d -= box * np.round(d / box)
    near = (d**2).sum(axis=2) < reach**2
    np.fill_diagonal(near, False)
    table = np.full((most, len(points)), -1, np.int32)
    for i, row in enumerate(near):
        own = np.flatnonzero(row)
        table[: len(own), i] = own
    return table, near.sum(axis=1).astype(np.int32)


def _pairs(points, box=_BOX):
    """Vectors from every atom to every other one through the nearest wall, and their lengths; infinite for itself."""
    p = points.astype(np.float64)
    d = p[None] - p[:, None]
    d -= box * np.round(d / box)
    r = np.sqrt((d**2).sum(axis=2))
    np.fill_diagonal(r, np.inf)
    return d, r


def _lennard_jones_inputs(rng):
    atoms = _atoms(rng, 60)
    neighbours, counts = _neighbour_list(atoms, 2.8)
    return {
        "positions": np.concatenate([atoms, rng.integers(0, 2, (60, 1))], axis=1).astype(np.float32),
        "neighbours": neighbours,
        "counts": counts,
        # Depth and diameter of each pair of kinds.
        "pair_table": np.array([[[1.0, 1.0], [0.75, 0.9]], [[0.75, 0.9], [0.5, 0.8]]], np.float32),
        "box": np.array([_BOX, _BOX, _BOX], np.float32),
        "dt": 0.002,
    }


@body(
    """
    uint i = thread_position_in_grid.x;
    uint atoms = positions_shape[0];
    if (i >= atoms) return;
    device const float4* p = reinterpret_cast<device const float4*>(positions);
    float4 own = p[i];
    Box periodic(float3(box[0], box[1], box[2]));
    int kind = int(own.w);
    float3 force = float3(0);
    float energy = 0, virial = 0;
    int inside = 0;
    int count = counts[i];
    for (int k = 0; k < count; ++k) {
      // The list is transposed, so that the threads of a simdgroup read one line.
      int j = neighbours[k * int(atoms) + int(i)];
      float4 other = p[j];
      float3 d = periodic.nearest(other.xyz - own.xyz);
      float r2 = length_squared(d);
      // The list reaches further than the forces, so that it need not be made at each step.
      if (r2 >= CUTOFF * CUTOFF) continue;
      ++inside;
      int at = (kind * 2 + int(other.w)) * 2;
      float depth = pair_table[at], diameter = pair_table[at + 1];
      float inv2 = 1.0f / r2;
      float s2 = diameter * diameter * inv2;
      float s6 = s2 * s2 * s2;
      float pressure = 24.0f * depth * (2.0f * s6 * s6 - s6);
      float fall = smooth(r2);
      float slope = smooth_slope(r2);
      float plain = 4.0f * depth * (s6 * s6 - s6);
      energy += 0.5f * plain * fall;
      float by_r2 = pressure * inv2 * fall - plain * slope;
      force -= by_r2 * d;
      virial += 0.5f * by_r2 * r2;
    }
    float3 moved = own.xyz + dt * force;
    for (int c = 0; c < 3; ++c) advanced[3 * i + c] = moved[c];
    energies[i] = 10.0f + energy;
    virials[i] = 100.0f + virial;
    contacts[i] = inside;
    """,
    header="""
#define CUTOFF 2.5f
#define SWITCH_ON 2.0f

struct Box {
  float3 size, inverse;
  Box(float3 s) : size(s), inverse(1.0f / s) {}
  float3 nearest(float3 d) const thread { return d - size * rint(d * inverse); }
};

// 1 below SWITCH_ON, 0 from CUTOFF on, in between a polynomial in r^2 that has no kinks.
inline float smooth(float r2) {
  constexpr float on = SWITCH_ON * SWITCH_ON, off = CUTOFF * CUTOFF, range = off - on;
  if (r2 <= on) return 1.0f;
  return (off - r2) * (off - r2) * (off + 2.0f * r2 - 3.0f * on) / (range * range * range);
}

// Its derivative by r, divided by r.
inline float smooth_slope(float r2) {
  constexpr float on = SWITCH_ON * SWITCH_ON, off = CUTOFF * CUTOFF, range = off - on;
  if (r2 <= on) return 0.0f;
  return 12.0f * (off - r2) * (on - r2) / (range * range * range);
}
""",
    inputs=_lennard_jones_inputs,
    outputs={
        "advanced": ((60, 3), "float32"),
        "energies": ((60,), "float32"),
        "virials": ((60,), "float32"),
        "contacts": ((60,), "int32"),
    },
    grid=(64, 1, 1),
    threadgroup=(32, 1, 1),
    tolerance=1e-5,
    constructs="functions.rint functions.length_squared structure.reinterpret_cast structure.constexpr structure.struct "
    "reconvergence.divergent_trip_count layouts.few_elements structure.early_return",
)
def lennard_jones_with_neighbours(positions, neighbours, counts, pair_table, box, dt):
    d, r = _pairs(positions[:, :3])
    kinds = positions[:, 3].astype(int)
    depth, diameter = np.moveaxis(pair_table.astype(np.float64)[kinds[:, None], kinds[None]], 2, 0)

    def energy(r):
        u = np.clip((r * r - 4) / 2.25, 0, 1)  # From 2^2 to 2.5^2
        s6 = (diameter / r) ** 6
        return 4 * depth * (s6 * s6 - s6) * (1 - 3 * u**2 + 2 * u**3)

    step = 1e-5
    slope = np.where(
        r < 9, (energy(r - 2 * step) - 8 * energy(r - step) + 8 * energy(r + step) - energy(r + 2 * step)), 0
    )
    slope /= 12 * step
    with np.errstate(invalid="ignore"):
        force = np.nansum(slope[..., None] * d / r[..., None], axis=1)
        virial = np.nansum(np.where(np.isfinite(r), -slope * r, 0), axis=1) / 2
    moved = positions[:, :3].astype(np.float64) + float(np.float32(dt)) * force
    return moved, 10 + energy(r).sum(axis=1) / 2, 100 + virial, (r < 2.5).sum(axis=1).astype(np.int32)


def _erfc(x):
    return np.vectorize(math.erfc)(x)


def _ewald_inputs(rng):
    atoms = _atoms(rng, 64, apart=0.7)
    excluded = np.zeros((64, 2), np.uint32)
    for first in range(0, 64, 4):
        # Molecules of four: their own atoms do not see one another.
        for i, j in itertools.permutations(range(first, first + 4), 2):
            excluded[i, j // 32] |= np.uint32(1 << j % 32)
    return {
        "positions": atoms,
        "charges": rng.choice([1.0, 0.5, 0.25], 64).astype(np.float32),
        "excluded": excluded,
        "alpha": 0.8,
        "box_length": _BOX,
    }


@body(
    """
    // Coulomb's forces of the real-space part of an Ewald sum, by tiles of 32 x 32 atoms: each lane has an atom of the
    // one side, those of the other side go round.
    uint tile = threadgroup_position_in_grid.x;
    uint lane = thread_index_in_simdgroup;
    uint blocks = (charges_shape[0] + 31) / 32;
    uint mine = tile * 32 + lane;
    float3 own = float3(positions[3 * mine], positions[3 * mine + 1], positions[3 * mine + 2]);
    float charge = charges[mine];
    float potential = 0.0f;
    float3 field = 0.0f;
    float two_over_root_pi = M_2_SQRTPI_F;
    for (uint block = 0; block < blocks; ++block) {
      uint start = block * 32 + lane;
      float4 other = float4(positions[3 * start], positions[3 * start + 1], positions[3 * start + 2], charges[start]);
      uint bits = excluded[mine * blocks + block];
      // Turned so that bit 0 belongs to the atom that the lane holds.
      bits = rotate(bits, 32u - lane);
      for (uint turn = 0; turn < 32; ++turn) {
        bool skip = (bits & 1) || (block == tile && turn == 0);
        bits = rotate(bits, 31u);
        float3 d = own - other.xyz;
        d -= box_length * rint(d / box_length);
        float r2 = dot(d, d);
        if (!skip && r2 < CUTOFF2) {
          float inv = rsqrt(r2), r = r2 * inv;
          float ar = alpha * r;
          float screened = erfc_of(ar) * inv;
          potential += other.w * screened;
          float g = screened + two_over_root_pi * alpha * exp(-ar * ar);
          field += other.w * g * inv * inv * d;
        }
        other = float4(simd_shuffle_rotate_down(other.x, 1), simd_shuffle_rotate_down(other.y, 1),
                       simd_shuffle_rotate_down(other.z, 1), simd_shuffle_rotate_down(other.w, 1));
      }
    }
    energies[mine] = 0.5f * charge * potential;
    // A short move along the force.
    for (int c = 0; c < 3; ++c) moved[3 * mine + c] = own[c] + 1.0f + 0.125f * charge * field[c];
    """,
    header="""
#define CUTOFF2 (2.9f * 2.9f)

// 1 - erf(x) for 0 <= x < 3, without the cancellation (a fit in 1 / (1 + x / 2); 1.2e-7 of the value).
inline float erfc_of(float x) {
  float t = 1.0f / (1.0f + 0.5f * x);
  constexpr float c[] = {-1.26551223f, 1.00002368f, 0.37409196f,  0.09678418f, -0.18628806f,
                         0.27886807f,  -1.13520398f, 1.48851587f, -0.82215223f, 0.17087277f};
  float p = c[9];
#pragma unroll
  for (int k = 8; k >= 0; --k) p = fma(p, t, c[k]);
  return t * exp(p - x * x);
}
""",
    inputs=_ewald_inputs,
    outputs={"energies": ((64,), "float32"), "moved": ((64, 3), "float32")},
    grid=(64, 1, 1),
    threadgroup=(32, 1, 1),
    tolerance=5e-6,
    constructs="simdgroup.shuffle_rotate_down functions.rotate functions.rint functions.rsqrt functions.exp "
    "functions.fma structure.pragma_unroll types.M_constants",
)
def ewald_in_real_space(positions, charges, excluded, alpha, box_length):
    d, r = _pairs(positions)
    bits = (excluded[:, np.arange(64) // 32] >> (np.arange(64, dtype=np.uint32) % 32)) & 1
    q = np.where((bits == 0) & (r < 2.9), charges.astype(np.float64), 0)
    a = float(np.float32(alpha))
    potential = _erfc(a * r) / r
    gaussian = 2 * a / math.sqrt(math.pi) * np.exp(-((a * r) ** 2))
    with np.errstate(invalid="ignore"):
        weight = np.where(np.isfinite(r), q * (potential + gaussian) / r**2, 0)
    field = -(weight[..., None] * d).sum(axis=1)
    own = charges.astype(np.float64)
    return own * (q * potential).sum(axis=1) / 2, positions + 1 + 0.125 * own[:, None] * field


# ---- Forces of bonds


def _chain_inputs(rng):
    """Shapes of a crooked chain of atoms."""
    count = 36
    shapes = []
    for _ in range(2):
        points = [np.full(3, 12.0)]
        direction = np.array([1.0, 0, 0])
        for _ in range(count - 1):
            direction = direction + rng.normal(size=3) * 0.8
            direction /= np.linalg.norm(direction)
            points.append(points[-1] + direction * rng.uniform(0.9, 1.2))
        shapes.append(points)
    return {
        "positions": np.array(shapes, np.float32),
        "bonds": np.array([(i, i + 1) for i in range(35)], np.int32),
        "bond_constants": np.stack([rng.uniform(80, 120, 35), rng.uniform(0.9, 1.1, 35)], axis=1).astype(np.float32),
        "angles": np.array([(i, i + 1, i + 2) for i in range(34)], np.int32),
        "angle_constants": np.stack([rng.uniform(20, 40, 34), rng.uniform(1.6, 2.2, 34)], axis=1).astype(np.float32),
        "dihedrals": np.array([(i, i + 1, i + 2, i + 3) for i in range(33)], np.int32),
        # Height, phase and number of the minima.
        "dihedral_constants": np.stack(
            [rng.uniform(1, 4, 33), rng.uniform(0, 3, 33), rng.integers(1, 4, 33)], axis=1
        ).astype(np.float32),
        "dt": 0.005,
    }


@body(
    """
    // One threadgroup for each shape of the molecule, one thread for each term, whatever its kind.
    threadgroup atomic_int sums[3 * MAX_ATOMS];
    threadgroup atomic_int terms[3];
    uint shape = threadgroup_position_in_grid.x, t = thread_position_in_threadgroup.x;
    uint threads = threads_per_threadgroup.x;
    uint atoms = positions_shape[1];
    for (uint k = t; k < 3 * atoms; k += threads) atomic_store_explicit(&sums[k], 0, memory_order_relaxed);
    if (t < 3) atomic_store_explicit(&terms[t], 0, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);

    Float own = positions + shape * 3 * atoms;
    uint n_bonds = bonds_shape[0], n_angles = angles_shape[0], n_dihedrals = dihedrals_shape[0];
    for (uint term = t; term < n_bonds + n_angles + n_dihedrals; term += threads) {
      if (term < n_bonds) {
        bond_term(term, own, bonds, bond_constants, sums, terms);
      } else if (term < n_bonds + n_angles) {
        angle_term(term - n_bonds, own, angles, angle_constants, sums, terms);
      } else {
        dihedral_term(term - n_bonds - n_angles, own, dihedrals, dihedral_constants, sums, terms);
      }
    }

    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint k = t; k < 3 * atoms; k += threads) {
      float force = atomic_load_explicit(&sums[k], memory_order_relaxed) / FORCE_SCALE;
      moved[shape * 3 * atoms + k] = own[k] + dt * force;
    }
    if (t < 3) energies[3 * shape + t] = atomic_load_explicit(&terms[t], memory_order_relaxed) / FORCE_SCALE;
    """,
    header="""
// Forces are added up as integers, so that the order of the threads does not matter: 2^-16 is the smallest step.
#define FORCE_SCALE 65536.0f
#define MAX_ATOMS 64

using Float = device const float*;
using Index = device const int*;

inline float3 position(Float p, int i) { return float3(p[3 * i], p[3 * i + 1], p[3 * i + 2]); }

// What every term adds to.
#define SUMS threadgroup atomic_int *forces, threadgroup atomic_int *energies

inline void add(threadgroup atomic_int* forces, int atom, float3 f) {
  int3 fixed = int3(rint(f * FORCE_SCALE));
  atomic_fetch_add_explicit(forces + 3 * atom + 0, fixed.x, memory_order_relaxed);
  atomic_fetch_add_explicit(forces + 3 * atom + 1, fixed.y, memory_order_relaxed);
  atomic_fetch_add_explicit(forces + 3 * atom + 2, fixed.z, memory_order_relaxed);
}

// Kind 0: bonds, 1: angles, 2: dihedrals.
inline void add_energy(threadgroup atomic_int* energies, int kind, float e) {
  atomic_fetch_add_explicit(energies + kind, int(rint(e * FORCE_SCALE)), memory_order_relaxed);
}

// k (r - r0)^2
inline void bond_term(int term, Float positions, Index bonds, Float constants, SUMS) {
  int i = bonds[2 * term], j = bonds[2 * term + 1];
  float k = constants[2 * term], rest = constants[2 * term + 1];
  float3 d = position(positions, j) - position(positions, i);
  float r = length(d);
  float stretch = r - rest;
  add_energy(energies, 0, k * stretch * stretch);
  float3 f = (2.0f * k * stretch / r) * d;
  add(forces, i, f);
  add(forces, j, -f);
}

// k (angle - angle0)^2 at the atom in the middle
inline void angle_term(int term, Float positions, Index angles, Float constants, SUMS) {
  int i = angles[3 * term], j = angles[3 * term + 1], k = angles[3 * term + 2];
  float3 a = position(positions, i) - position(positions, j);
  float3 b = position(positions, k) - position(positions, j);
  float inv_a = rsqrt(dot(a, a)), inv_b = rsqrt(dot(b, b));
  float3 ua = a * inv_a, ub = b * inv_b;
  // By the sine and the cosine: an arc cosine has no digits near a straight angle.
  float3 normal = cross(ua, ub);
  float sine = max(length(normal), 1e-4f), cosine = dot(ua, ub);
  float angle = atan2(sine, cosine);
  float off = angle - constants[2 * term + 1];
  float strength = constants[2 * term];
  add_energy(energies, 1, strength * off * off);
  float slope = 2.0f * strength * off / sine;
  float3 fi = slope * inv_a * (ub - cosine * ua);
  float3 fk = slope * inv_b * (ua - cosine * ub);
  add(forces, i, fi);
  add(forces, k, fk);
  add(forces, j, -(fi + fk));
}

// k (1 + cos(n phi - phase))
inline void dihedral_term(int term, Float positions, Index dihedrals, Float constants, SUMS) {
  device const packed_int4& atoms = reinterpret_cast<device const packed_int4*>(dihedrals)[term];
  int4 id = int4(atoms);
  float3 p[4];
#pragma unroll
  for (int c = 0; c < 4; ++c) p[c] = position(positions, id[c]);
  float3 b1 = p[1] - p[0], b2 = p[2] - p[1], b3 = p[3] - p[2];
  float3 m = cross(b1, b2), n = cross(b2, b3);
  float middle = length(b2);
  float phi = atan2(middle * dot(b1, n), dot(m, n));
  float height = constants[3 * term], phase = constants[3 * term + 1], minima = constants[3 * term + 2];
  float turn = minima * phi - phase;
  add_energy(energies, 2, height * (1.0f + cos(turn)));
  // The derivative by phi, with its sign turned.
  float torque = height * minima * sin(turn);

  // The outer atoms move at right angles to their planes; the inner ones keep forces and torques at zero.
  float m2 = dot(m, m), n2 = dot(n, n);
  float3 f1 = -torque * middle / m2 * m;
  float3 f4 = torque * middle / n2 * n;
  float along1 = dot(b1, b2) / (middle * middle), along3 = dot(b3, b2) / (middle * middle);
  float3 shared = along1 * f1 - along3 * f4;
  add(forces, id.x, f1);
  add(forces, id.y, -f1 - shared);
  add(forces, id.z, shared - f4);
  add(forces, id.w, f4);
}
""",
    inputs=_chain_inputs,
    outputs={"moved": ((2, 36, 3), "float32"), "energies": ((2, 3), "float32")},
    grid=(128, 1, 1),
    threadgroup=(64, 1, 1),
    tolerance=3e-5,
    constructs="types.atomic_int synchronisation.fetch_add synchronisation.threadgroup_atomics functions.atan2 "
    "functions.cross functions.rsqrt functions.sin functions.cos functions.rint structure.using types.packed_vectors "
    "structure.reinterpret_cast address_spaces.threadgroup_atomic",
)
def bonded_forces(positions, bonds, bond_constants, angles, angle_constants, dihedrals, dihedral_constants, dt):
    def terms(p):
        a, b = np.moveaxis(p[..., bonds, :], -2, 0)
        k, rest = bond_constants.astype(np.float64).T
        stretches = k * (np.linalg.norm(a - b, axis=-1) - rest) ** 2
        a, b, c = np.moveaxis(p[..., angles, :], -2, 0)
        k, rest = angle_constants.astype(np.float64).T
        u, v = a - b, c - b
        cosine = (u * v).sum(axis=-1) / np.linalg.norm(u, axis=-1) / np.linalg.norm(v, axis=-1)
        bends = k * (np.arccos(cosine) - rest) ** 2
        a, b, c, d = np.moveaxis(p[..., dihedrals, :], -2, 0)
        height, phase, minima = dihedral_constants.astype(np.float64).T
        # Seen along the bond in the middle: the angle from the one end to the other.
        axis = (c - b) / np.linalg.norm(c - b, axis=-1, keepdims=True)
        u = (a - b) - ((a - b) * axis).sum(axis=-1, keepdims=True) * axis
        v = (d - c) - ((d - c) * axis).sum(axis=-1, keepdims=True) * axis
        phi = np.arctan2((np.cross(axis, u) * v).sum(axis=-1), (u * v).sum(axis=-1))
        twists = height * (1 + np.cos(minima * phi - phase))
        return [part.sum(axis=-1) for part in (stretches, bends, twists)]

    # The gradient by differences: each coordinate in turn is moved.
    p = positions.astype(np.float64)
    step = 1e-4
    moves = np.eye(108).reshape(108, 1, 36, 3) * step
    up, down = sum(terms(p + moves)), sum(terms(p - moves))
    far_up, far_down = sum(terms(p + 2 * moves)), sum(terms(p - 2 * moves))
    slope = (8 * (up - down) - (far_up - far_down)) / (12 * step)
    return p - float(np.float32(dt)) * slope.T.reshape(2, 36, 3), np.stack(terms(p), axis=1)


# ---- Cells


@body(
    """
    // A cell list in one launch of one threadgroup: count, scan, place; then each cell is put in order, because the
    // atoms came in any.
    threadgroup atomic_uint counts[CELLS];
    threadgroup uint starts[CELLS + 1];
    threadgroup uint totals[32];
    uint t = thread_index_in_threadgroup, threads = threads_per_threadgroup.x;
    uint atoms = positions_shape[0];
    for (uint c = t; c < CELLS; c += threads) atomic_store_explicit(counts + c, 0, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);

    for (uint i = t; i < atoms; i += threads) {
      uint cell = cell_of<SIDE>(positions + 3 * i, box_length);
      cells[i] = ushort(cell);
      atomic_fetch_add_explicit(counts + cell, 1, memory_order_relaxed);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    uint carried = 0;
    for (uint base = 0; base < CELLS; base += threads) {
      uint own = base + t < CELLS ? atomic_load_explicit(counts + base + t, memory_order_relaxed) : 0;
      uint before = simd_prefix_exclusive_sum(own);
      if (thread_index_in_simdgroup == 31) totals[simdgroup_index_in_threadgroup] = before + own;
      threadgroup_barrier(mem_flags::mem_threadgroup);
      uint all = 0;
      for (uint g = 0; g < simdgroups_per_threadgroup; ++g) {
        if (g < simdgroup_index_in_threadgroup) before += totals[g];
        all += totals[g];
      }
      if (base + t < CELLS) {
        starts[base + t] = carried + before;
        atomic_store_explicit(counts + base + t, carried + before, memory_order_relaxed);
      }
      carried += all;
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    if (t == 0) starts[CELLS] = carried;

    for (uint i = t; i < atoms; i += threads) {
      uint place = atomic_fetch_add_explicit(counts + cells[i], 1, memory_order_relaxed);
      members[place] = ushort(i);
    }
    threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);

    for (uint c = t; c < CELLS; c += threads) {
      device ushort* own = members + starts[c];
      int count = int(starts[c + 1] - starts[c]);
      for (int i = 1; i < count; ++i) {
        ushort moving = own[i];
        int j = i - 1;
        while (j >= 0 && own[j] > moving) {
          own[j + 1] = own[j];
          --j;
        }
        own[j + 1] = moving;
      }
      firsts[c] = starts[c];
    }
    if (t == 0) firsts[CELLS] = starts[CELLS];
    """,
    header="""
template <int SIDE>
inline uint cell_of(device const float* p, float box_length) {
  int3 cell = int3(floor(float3(p[0], p[1], p[2]) * (SIDE / box_length)));
  // What has left the box comes in from the other side.
  cell = ((cell % SIDE) + SIDE) % SIDE;
  return uint((cell.z * SIDE + cell.y) * SIDE + cell.x);
}
#define CELLS (SIDE * SIDE * SIDE)
""",
    template=[("SIDE", 5)],
    inputs=lambda rng: {
        # Sixty-fourths, so that the products are exact.
        "positions": (rng.integers(-64, 11 * 64, (300, 3)) / 64).astype(np.float32),
        "box_length": 10.0,
    },
    outputs={"cells": ((300,), "uint16"), "members": ((300,), "uint16"), "firsts": ((126,), "uint32")},
    grid=(96, 1, 1),
    threadgroup=(96, 1, 1),
    constructs="barriers.scan synchronisation.threadgroup_atomics synchronisation.mem_flags "
    "simdgroup.prefix_exclusive_sum attributes.simdgroups_per_threadgroup structure.explicit_template_arguments "
    "address_spaces.device_pointer_arithmetic structure.while types.ushort",
)
def cell_list(positions, box_length):
    cell = np.floor(positions.astype(np.float64) / 2).astype(int) % 5
    cells = cell[:, 0] + 5 * cell[:, 1] + 25 * cell[:, 2]
    order = np.argsort(cells, kind="stable")
    firsts = np.searchsorted(cells[order], np.arange(126))
    return cells.astype(np.uint16), order.astype(np.uint16), firsts.astype(np.uint32)


# ---- Constraints and steps


def _waters(rng):
    """Molecules of three atoms: near their right shape after a step, and their right shape before it."""
    theta = math.radians(104.52) / 2
    shape = (
        np.array([[0, 0, 0], [math.sin(theta), math.cos(theta), 0], [-math.sin(theta), math.cos(theta), 0]]) * 0.9572
    )
    turns, _ = np.linalg.qr(rng.normal(size=(40, 3, 3)))
    before = shape @ turns + rng.uniform(3, 9, (40, 1, 3))
    return {
        "before": before.astype(np.float32),
        "after": (before + rng.normal(size=(40, 3, 3)) * 0.05).astype(np.float32),
        "inverse_masses": np.array([1 / 16, 1.0, 1.0], np.float32),
    }


@body(
    """
    // SHAKE for rigid molecules of three atoms: corrections along the old bonds until all three lengths are right.
    uint molecule = thread_position_in_grid.x;
    if (molecule >= uint(before_shape[0])) return;
    float3 old_bonds[3], p[3];
    float w[3];
    constexpr int FROM[3] = {0, 0, 1}, TO[3] = {1, 2, 2};
    for (int a = 0; a < 3; ++a) {
      p[a] = float3(after[9 * molecule + 3 * a], after[9 * molecule + 3 * a + 1], after[9 * molecule + 3 * a + 2]);
      w[a] = inverse_masses[a];
    }
    for (int b = 0; b < 3; ++b) {
      device const float* i = before + 9 * molecule + 3 * FROM[b];
      device const float* j = before + 9 * molecule + 3 * TO[b];
      old_bonds[b] = float3(i[0] - j[0], i[1] - j[1], i[2] - j[2]);
    }
    const float lengths2[3] = {BOND * BOND, BOND * BOND, ACROSS * ACROSS};
    int round = 0;
    bool converged = false;
    while (!converged && round < MAX_ROUNDS) {
      converged = true;
      #pragma unroll
      for (int b = 0; b < 3; ++b) {
        int i = FROM[b], j = TO[b];
        float3 d = p[i] - p[j];
        float off = dot(d, d) - lengths2[b];
        if (fabs(off) < 1e-6f * lengths2[b]) continue;
        converged = false;
        float g = off / (2.0f * (w[i] + w[j]) * dot(d, old_bonds[b]));
        p[i] -= g * w[i] * old_bonds[b];
        p[j] += g * w[j] * old_bonds[b];
      }
      ++round;
    }
    for (int a = 0; a < 3; ++a)
      for (int c = 0; c < 3; ++c) constrained[9 * molecule + 3 * a + c] = p[a][c];
    succeeded[molecule] = converged;
    """,
    header="""
#define BOND 0.9572f
#define ACROSS 1.5139f
constant int MAX_ROUNDS = 60;
""",
    inputs=_waters,
    outputs={"constrained": ((40, 3, 3), "float32"), "succeeded": ((40,), "bool")},
    grid=(64, 1, 1),
    threadgroup=(32, 1, 1),
    tolerance=1e-5,
    constructs="structure.constexpr structure.while reconvergence.divergent_trip_count address_spaces.constant_scalar "
    "structure.pragma_unroll functions.fabs structure.dynamic_local_array types.bool",
)
def shake_constraints(before, after, inverse_masses):
    # All three multipliers together, by Newton's method.
    old, p0 = before.astype(np.float64), after.astype(np.float64)
    w = inverse_masses.astype(np.float64)
    ends = [(0, 1), (0, 2), (1, 2)]
    goals = np.array([0.9572, 0.9572, 1.5139]) ** 2
    moves = np.zeros((40, 3, 3, 3))  # of atoms by multipliers
    for b, (i, j) in enumerate(ends):
        bond = old[:, i] - old[:, j]
        moves[:, i, :, b] -= w[i] * bond
        moves[:, j, :, b] += w[j] * bond
    g = np.zeros((40, 3))
    for _ in range(20):
        p = p0 + np.einsum("macb,mb->mac", moves, g)
        d = np.stack([p[:, i] - p[:, j] for i, j in ends], axis=1)
        slopes = np.stack([moves[:, i] - moves[:, j] for i, j in ends], axis=1)
        jacobian = 2 * np.einsum("mkc,mkcb->mkb", d, slopes)
        g -= np.linalg.solve(jacobian, ((d**2).sum(axis=2) - goals)[..., None])[..., 0]
    return p0 + np.einsum("macb,mb->mac", moves, g), np.ones(40, bool)


@body(
    """
    // Langevin dynamics in the order B A O A B of its parts, with noise that depends on the atom and the step only.
    uint atom = thread_position_in_grid.x;
    uint atoms = x_in_shape[0];
    if (atom >= atoms) return;
    float3 x = float3(x_in[3 * atom], x_in[3 * atom + 1], x_in[3 * atom + 2]);
    float3 v = float3(v_in[3 * atom], v_in[3 * atom + 1], v_in[3 * atom + 2]);
    float inverse_mass = 1.0f / masses[atom];
    float keep = exp(-friction * dt);
    float kick = metal::sqrt((1.0f - keep * keep) * temperature * inverse_mass);
    for (uint step = first_step; step < first_step + uint(STEPS); ++step) {
      v += 0.5f * dt * inverse_mass * trap(x, atom);
      x += 0.5f * dt * v;
      uint2 words[2] = {threefry(uint2(atom, step), uint2(seed, 0)), threefry(uint2(atom, step), uint2(seed, 1))};
      float2 one = normal_pair(words[0]), two = normal_pair(words[1]);
      v = keep * v + kick * float3(one, two.x);
      x += 0.5f * dt * v;
      v += 0.5f * dt * inverse_mass * trap(x, atom);
    }
    float speed2 = length_squared(v);
    float kinetic = 0.5f * masses[atom] * speed2;
    float sum = simd_sum(kinetic);
    if (thread_index_in_simdgroup == 0) kinetic_energy[simdgroup_index_in_threadgroup] = sum;
    for (int c = 0; c < 3; ++c) {
      x_out[3 * atom + c] = x[c];
      v_out[3 * atom + c] = 8.0f + v[c];
    }
    """,
    header="""
// Threefry with two words and 20 rounds.
inline uint2 threefry(uint2 counter, uint2 key) {
  const uint turns[8] = {13, 15, 26, 6, 17, 29, 16, 24};
  uint ks[3] = {key.x, key.y, 0x1bd11bdau ^ key.x ^ key.y};
  uint2 x = counter + key;
  for (uint round = 0; round < 20; ++round) {
    x.x += x.y;
    x.y = rotate(x.y, turns[round % 8]) ^ x.x;
    if (round % 4 == 3) {
      uint s = round / 4 + 1;
      x.x += ks[s % 3];
      x.y += ks[(s + 1) % 3] + s;
    }
  }
  return x;
}

// Two numbers of the normal distribution (Box and Muller); the first is never 0.
inline float2 normal_pair(uint2 words) {
  float u = float((words.x >> 9) + 1u) * 0x1p-23f;
  float angle = float(words.y >> 8) * 0x1p-23f;
  float r = metal::precise::sqrt(-2.0f * metal::precise::log(u));
  return r * float2(cospi(angle), sinpi(angle));
}

// Each atom is held by a spring at a place of its own.
inline float3 trap(float3 x, uint atom) {
  float3 home = float3(4.0f + 0.25f * float(atom % 4), 5.0f, 6.0f);
  return 2.0f * (home - x);
}
""",
    template=[("STEPS", 4)],
    inputs=lambda rng: {
        "x_in": (np.array([4, 5, 6]) + rng.normal(size=(64, 3)) * 0.3).astype(np.float32),
        "v_in": (rng.normal(size=(64, 3)) * 0.5).astype(np.float32),
        "masses": rng.uniform(1, 3, 64).astype(np.float32),
        "friction": 0.8,
        "temperature": 0.6,
        "dt": 0.1,
        "first_step": 1000,
        "seed": 77,
    },
    outputs={"x_out": ((64, 3), "float32"), "v_out": ((64, 3), "float32"), "kinetic_energy": ((2,), "float32")},
    grid=(64, 1, 1),
    threadgroup=(64, 1, 1),
    tolerance=3e-6,
    constructs="functions.sinpi functions.cospi functions.log functions.precise functions.rotate functions.exp "
    "literals.hexadecimal_float types.uint2 structure.dynamic_local_array simdgroup.sum",
)
def langevin_steps(x_in, v_in, masses, friction, temperature, dt, first_step, seed):
    def words(counter, key):
        x0, x1 = (np.asarray(c, np.uint32) + np.uint32(k) for c, k in zip(counter, key, strict=True))
        ks = [key[0], key[1], 0x1BD11BDA ^ key[0] ^ key[1]]
        for block in range(5):
            for turn in ((13, 15, 26, 6), (17, 29, 16, 24))[block % 2]:
                x0 = x0 + x1
                x1 = (x1 << np.uint32(turn) | x1 >> np.uint32(32 - turn)) ^ x0
            x0 = x0 + np.uint32(ks[(block + 1) % 3])
            x1 = x1 + np.uint32(ks[(block + 2) % 3]) + np.uint32(block + 1)
        return x0, x1

    def normals(key, step):
        x0, x1 = words((np.arange(64), np.full(64, step)), key)
        u = ((x0 >> np.uint32(9)) + np.uint32(1)) / 2.0**23
        angle = np.pi * (x1 >> np.uint32(8)) / 2.0**23
        return np.sqrt(-2 * np.log(u)) * np.stack([np.cos(angle), np.sin(angle)])

    x, v, m = x_in.astype(np.float64), v_in.astype(np.float64), masses.astype(np.float64)[:, None]
    friction, temperature, dt = (float(np.float32(value)) for value in (friction, temperature, dt))
    home = np.stack([4 + np.arange(64) % 4 / 4, np.full(64, 5.0), np.full(64, 6.0)], axis=1)
    for step in range(first_step, first_step + 4):
        v = v + dt / m * (home - x)
        x = x + dt / 2 * v
        noise = np.concatenate([normals((seed, 0), step), normals((seed, 1), step)])[:3].T
        v = v * np.exp(-friction * dt) + noise * np.sqrt(-np.expm1(-2 * friction * dt) * temperature / m)
        x = x + dt / 2 * v
        v = v + dt / m * (home - x)
    kinetic = (m * v**2).sum(axis=1).reshape(2, 32).sum(axis=1) / 2
    return x, 8 + v, kinetic
