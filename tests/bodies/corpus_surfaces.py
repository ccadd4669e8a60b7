"""Surfaces of fields, with the tables that such kernels have, and shapes that bones move."""

import numpy as np

from bodies import body

# Corner c of a cube is at the bits of c; an edge is a pair of corners.
_EDGES = [(a, a | 1 << axis) for axis in range(3) for a in range(8) if not a >> axis & 1]


def _face_segments(inside):
    """The directed pieces of the surface's boundary on the six faces, as pairs of edges; seen from outside of the cube,
    what is inside lies to the right. Where a face has two corners inside that are no neighbours, they stay apart."""
    segments = []
    for axis in range(3):
        u, v = (axis + 1) % 3, (axis + 2) % 3
        for side in (0, 1):
            ring = [side << axis, side << axis | 1 << u, side << axis | 1 << u | 1 << v, side << axis | 1 << v]
            # Around as seen from outside.
            ring = ring if side else ring[::-1]
            pairs = [(ring[k], ring[(k + 1) % 4]) for k in range(4)]
            edges = [_EDGES.index((min(pair), max(pair))) for pair in pairs]
            for k in range(4):
                if inside[ring[k]] and not inside[ring[(k + 1) % 4]]:
                    # Leaves the inside across edge k; back to where the same run of corners inside began.
                    j = k
                    while inside[ring[j]]:
                        j = (j - 1) % 4
                    segments.append((edges[k], edges[j]))
    return segments


def _cases():
    """For each of the 256 sets of corners inside the triangles, as triples of edges."""
    for bits in range(256):
        following = dict(_face_segments([bool(bits >> c & 1) for c in range(8)]))
        triangles = []
        while following:
            first, at = next(iter(following.items()))
            loop = [first]
            del following[first]
            while at != first:
                loop.append(at)
                at = following.pop(at)
            triangles += [(loop[0], loop[k], loop[k + 1]) for k in range(1, len(loop) - 1)]
        yield triangles


def _case_table():
    lines = []
    for triangles in _cases():
        edges = [e for triangle in triangles for e in triangle]
        lines.append("    {" + ", ".join(map(str, edges + [-1] * (16 - len(edges)))) + "},")
    return "\n".join(lines)


def _cut_edges():
    return ", ".join(
        f"0x{sum(1 << e for e, (a, b) in enumerate(_EDGES) if (bits >> a & 1) != (bits >> b & 1)):03x}"
        for bits in range(256)
    )


def _density(rng):
    z, y, x = np.mgrid[:6, :7, :8].astype(float)
    balls = sum(
        1.2 / ((x - a) ** 2 + (y - b) ** 2 + (z - c) ** 2 + 0.5)
        for a, b, c in ((2, 2, 2.2), (5, 4.3, 3), (3.4, 5, 1.5))
    )
    return {"density": (balls + rng.uniform(0, 0.25, balls.shape)).astype(np.float32), "iso": 0.4}


@body(
    """
    // Marching cubes. A vertex is made once for each edge of a cell; then the table says which make triangles.
    uint3 cell = thread_position_in_grid;
    uint3 cells = threads_per_grid;
    uint nx = density_shape[2], ny = density_shape[1];
    float corner[8];
    uint kind = 0;
    #pragma unroll
    for (uint c = 0; c < 8; ++c) {
      uint3 p = cell + uint3(c & 1, c >> 1 & 1, c >> 2);
      corner[c] = density[(p.z * ny + p.y) * nx + p.x];
      kind |= corner[c] > iso ? 1u << c : 0u;
    }
    uint index = (cell.z * cells.y + cell.y) * cells.x + cell.x;
    uint cut = CUT_EDGES[kind];
    edges_cut[index] = ushort(cut);
    if (cut == 0) {
      triangle_counts[index] = 0;
      for (uint d = 0; d < 3; ++d) vector_areas[3 * index + d] = 8.0f;
      return;
    }
    float3 vertices[12];
    for (uint e = 0; e < 12; ++e) {
      if (!(cut >> e & 1)) continue;
      uint a = EDGE_ENDS[e].x, b = EDGE_ENDS[e].y;
      float t = (iso - corner[a]) / (corner[b] - corner[a]);
      vertices[e] = mix(float3(a & 1, a >> 1 & 1, a >> 2), float3(b & 1, b >> 1 & 1, b >> 2), t);
    }
    float3 area = float3(0.0f);
    uchar count = 0;
    for (constant const char* edge = TRIANGLES[kind]; *edge >= 0; edge += 3, ++count) {
      float3 a = vertices[edge[0]], b = vertices[edge[1]], c = vertices[edge[2]];
      area += 0.5f * cross(b - a, c - a);
    }
    triangle_counts[index] = count;
    for (uint d = 0; d < 3; ++d) vector_areas[3 * index + d] = 8.0f + area[d];
    // All cells' numbers are needed to make room for the triangles.
    atomic_fetch_add_explicit(reinterpret_cast<device atomic_uint*>(total), uint(count), memory_order_relaxed);
    """,
    header="""
// The corners that each of the twelve edges joins; corner c is at (c & 1, c >> 1 & 1, c >> 2).
constant uchar2 EDGE_ENDS[12] = {
    """
    + ", ".join(f"uchar2({a}, {b})" for a, b in _EDGES)
    + """
};

// Which edges the surface cuts, for each set of corners inside.
constant ushort CUT_EDGES[256] = {
    """
    + _cut_edges()
    + """
};

// The edges whose vertices make the triangles, three for each of at most five; -1 ends them.
constant char TRIANGLES[256][16] = {
"""
    + _case_table()
    + """
};
""",
    inputs=_density,
    outputs={
        "edges_cut": ((5, 6, 7), "uint16"),
        "triangle_counts": ((5, 6, 7), "uint8"),
        "vector_areas": ((5, 6, 7, 3), "float32"),
        "total": ((1,), "uint32"),
    },
    init_value=0,
    grid=(7, 6, 5),
    threadgroup=(7, 4, 4),
    tolerance=1e-6,
    constructs="address_spaces.large_constant_table address_spaces.constant address_spaces.constant_array types.uchar2 "
    "functions.cross functions.mix structure.reinterpret_cast synchronisation.fetch_add structure.dynamic_local_array",
)
def marching_cubes(density, iso):
    iso = np.float32(iso)
    cut, counts = np.zeros((5, 6, 7), np.uint16), np.zeros((5, 6, 7), np.uint8)
    areas = np.full((5, 6, 7, 3), 8.0)
    for z, y, x in np.ndindex(5, 6, 7):
        v = np.array([density[z + (c >> 2), y + (c >> 1 & 1), x + (c & 1)] for c in range(8)])
        inside = list(v > iso)
        if all(inside) or not any(inside):
            continue
        v = v.astype(np.float64)
        points = {}
        for e, (a, b) in enumerate(_EDGES):
            if inside[a] != inside[b]:
                p, q = (np.array([c & 1, c >> 1 & 1, c >> 2], float) for c in (a, b))
                points[e] = p + (q - p) * (iso - v[a]) / (v[b] - v[a])
        cut[z, y, x] = sum(1 << e for e in points)
        # The vector area follows from the boundary alone, however it is cut into triangles.
        segments = _face_segments(inside)
        begins, ends = (np.array([points[e] for e in side]) for side in zip(*segments, strict=True))
        areas[z, y, x] += np.cross(begins, ends).sum(axis=0) / 2
        # A loop of n edges makes n - 2 triangles.
        loops, following = 0, dict(segments)
        while following:
            loops += 1
            at = next(iter(following))
            while at in following:
                at = following.pop(at)
        counts[z, y, x] = len(segments) - 2 * loops
    return cut, counts, areas, np.array([counts.sum()], np.uint32)


# ---- Shapes that bones move


def _bones(rng):
    q = rng.normal(size=(6, 4))
    q[:, 3] = np.abs(q[:, 3]) + 2
    q /= np.linalg.norm(q, axis=1, keepdims=True)
    # The same turn with the other sign, to be found out.
    q[::2] *= -1
    weights = rng.uniform(0.1, 1, (60, 4))
    return {
        "rest": rng.uniform(-1, 1, (60, 3)).astype(np.float32),
        "turns": q.astype(np.float32),
        "moves": rng.uniform(4, 6, (6, 3)).astype(np.float32),
        "bone_ids": np.array([rng.choice(6, 4, replace=False) for _ in range(60)]).astype(np.uint8),
        "weights": (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32),
    }


@body(
    """
    // Skinning by dual quaternions: blended motions stay rigid.
    uint i = thread_position_in_grid.x;
    uchar4 ids = ((const device uchar4*)bone_ids)[i];
    float4 w = ((const device float4*)weights)[i];
    DualQuaternion sum = DualQuaternion::zero();
    float4 first = ((const device float4*)turns)[ids[0]];
    for (int k = 0; k < 4; ++k) {
      float4 q = ((const device float4*)turns)[ids[k]];
      float3 t = float3(moves[3 * ids[k]], moves[3 * ids[k] + 1], moves[3 * ids[k] + 2]);
      DualQuaternion bone = DualQuaternion::from(q, t);
      // q and -q are the same turn, but must not cancel.
      float side = dot(q, first) < 0.0f ? -1.0f : 1.0f;
      sum = sum + bone * (side * w[k]);
    }
    sum = sum.normalized();
    float3 p = float3(rest[3 * i], rest[3 * i + 1], rest[3 * i + 2]);
    float3 moved = sum.apply(p);
    for (int c = 0; c < 3; ++c) posed[3 * i + c] = moved[c];
    // Half of the way from standing still, by a spherical interpolation of the turn.
    float4 half_turn = slerp(float4(0, 0, 0, 1), sum.real, 0.5f);
    float3 v = rotate_by(half_turn, float3(0, 0, 1));
    for (int c = 0; c < 3; ++c) halfway[3 * i + c] = 2.0f + v[c];
    """,
    header="""
// Quaternions are (x, y, z, w).
inline float4 quat_mul(float4 a, float4 b) {
  return float4(a.w * b.xyz + b.w * a.xyz + cross(a.xyz, b.xyz), a.w * b.w - dot(a.xyz, b.xyz));
}
inline float4 quat_conjugate(float4 q) { return float4(-q.xyz, q.w); }
inline float3 rotate_by(float4 q, float3 v) {
  float3 t = 2.0f * cross(q.xyz, v);
  return v + q.w * t + cross(q.xyz, t);
}
inline float4 slerp(float4 a, float4 b, float t) {
  float c = dot(a, b);
  if (c < 0.0f) {
    b = -b;
    c = -c;
  }
  if (c > 0.9995f) return normalize(mix(a, b, t));
  float angle = acos(c);
  return (sin((1.0f - t) * angle) * a + sin(t * angle) * b) / sin(angle);
}

struct DualQuaternion {
  float4 real, dual;

  static DualQuaternion zero() { return {float4(0.0f), float4(0.0f)}; }
  // First the turn, then the move.
  static DualQuaternion from(float4 q, float3 t) { return {q, 0.5f * quat_mul(float4(t, 0.0f), q)}; }

  DualQuaternion operator+(DualQuaternion o) const { return {real + o.real, dual + o.dual}; }
  DualQuaternion operator*(float s) const { return {real * s, dual * s}; }
  DualQuaternion normalized() const {
    float inverse = rsqrt(dot(real, real));
    float4 r = real * inverse, d = dual * inverse;
    return {r, d - dot(r, d) * r};
  }
  float3 apply(float3 p) const { return rotate_by(real, p) + 2.0f * quat_mul(dual, quat_conjugate(real)).xyz; }
};
""",
    inputs=_bones,
    outputs={"posed": ((60, 3), "float32"), "halfway": ((60, 3), "float32")},
    grid=(60, 1, 1),
    threadgroup=(60, 1, 1),
    tolerance=5e-6,
    constructs="structure.operator structure.struct functions.cross functions.acos functions.sin functions.normalize "
    "functions.rsqrt types.uchar4 types.component_index types.swizzle_read",
)
def dual_quaternion_skinning(rest, turns, moves, bone_ids, weights):
    def left(q):
        """The matrix of the product by q from the left, for (x, y, z, w)."""
        x, y, z, w = q
        return np.array([[w, -z, y, x], [z, w, -x, y], [-y, x, w, z], [-x, -y, -z, w]])

    def matrix(q):
        x, y, z, w = q
        skew = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
        return np.eye(3) + 2 * w * skew + 2 * skew @ skew

    posed, halfway = np.zeros((60, 3)), np.zeros((60, 3))
    q, t = turns.astype(np.float64), moves.astype(np.float64)
    for i in range(60):
        real, dual = np.zeros(4), np.zeros(4)
        for k, w in zip(bone_ids[i], weights[i].astype(np.float64), strict=True):
            side = np.sign(q[k] @ q[bone_ids[i, 0]]) * w
            real += side * q[k]
            dual += side * left([*t[k], 0]) @ q[k] / 2
        norm = np.linalg.norm(real)
        real, dual = real / norm, dual / norm
        move = 2 * left(dual) @ (real * [-1, -1, -1, 1])
        posed[i] = matrix(real) @ rest[i].astype(np.float64) + move[:3]
        # Half of a turn is in the middle between nothing and the turn.
        middle = np.array([0, 0, 0, 1]) + real * np.copysign(1, real[3])
        halfway[i] = 2 + matrix(middle / np.linalg.norm(middle))[:, 2]
    return posed, halfway
