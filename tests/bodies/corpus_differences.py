"""Finite differences: waves, diffusion, flow and fields on grids."""

import numpy as np

from bodies import Dtype, body


@body(
    """
    // The wave equation, of the eighth order in space; a tile and its halo go through threadgroup memory.
    threadgroup float tile[TILE_Y + 2 * R][TILE_X + 2 * R];
    int nx = now_shape[1], ny = now_shape[0];
    int2 t = int2(thread_position_in_threadgroup.xy);
    int2 corner = int2(threadgroup_position_in_grid.xy) * int2(TILE_X, TILE_Y) - R;
    for (int y = t.y; y < TILE_Y + 2 * R; y += TILE_Y)
      for (int x = t.x; x < TILE_X + 2 * R; x += TILE_X) {
        // Mirrored at the edges.
        int2 p = abs(corner + int2(x, y));
        p.x = p.x < nx ? p.x : 2 * nx - 2 - p.x;
        p.y = p.y < ny ? p.y : 2 * ny - 2 - p.y;
        tile[y][x] = now[p.y * nx + p.x];
      }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    int2 g = corner + t + R;
    if (g.x >= nx || g.y >= ny) return;
    int2 c = t + R;
    float sum = 2.0f * STENCIL[0] * tile[c.y][c.x];
    #pragma unroll
    for (int k = 1; k <= R; ++k)
      sum += STENCIL[k] * ((tile[c.y][c.x - k] + tile[c.y][c.x + k]) + (tile[c.y - k][c.x] + tile[c.y + k][c.x]));
    int at = g.y * nx + g.x;
    // A sponge at the edges swallows what would come back.
    int edge = min(min(g.x, nx - 1 - g.x), min(g.y, ny - 1 - g.y));
    float damping = edge < SPONGE ? 1.0f - 0.02f * float((SPONGE - edge) * (SPONGE - edge)) : 1.0f;
    float ratio = speed[at] * dt / dx;
    next[at] = damping * (2.0f * now[at] - damping * before[at] + ratio * ratio * sum);
    """,
    header="""
#define R 4
constant float STENCIL[R + 1] = {-205.0f / 72.0f, 8.0f / 5.0f, -1.0f / 5.0f, 8.0f / 315.0f, -1.0f / 560.0f};
""",
    template=[("TILE_X", 16), ("TILE_Y", 8), ("SPONGE", 3)],
    inputs=lambda rng: {
        "now": rng.uniform(1, 2, (21, 29)).astype(np.float32),
        "before": rng.uniform(-1, 0, (21, 29)).astype(np.float32),
        "speed": rng.uniform(0.5, 1, (21, 29)).astype(np.float32),
        "dt": 0.01,
        "dx": 0.05,
    },
    outputs={"next": ((21, 29), "float32")},
    grid=(32, 24, 1),
    threadgroup=(16, 8, 1),
    tolerance=5e-6,
    constructs="address_spaces.threadgroup_2d_array address_spaces.constant_array structure.pragma_unroll functions.abs "
    "structure.early_return structure.define_in_header",
)
def wave_of_eighth_order(now, before, speed, dt, dx):
    ratio = speed.astype(np.float64) * dt / dx
    p = np.pad(now.astype(np.float64), 4, mode="reflect")
    stencil = [-205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560]
    full = np.array(stencil[:0:-1] + stencil)
    laplacian = sum(full[k] * (p[4:-4, k : k + 29] + p[k : k + 21, 4:-4]) for k in range(9))
    y, x = np.mgrid[:21, :29]
    edge = np.minimum(np.minimum(x, 28 - x), np.minimum(y, 20 - y))
    damping = 1 - 0.02 * np.maximum(0, 3 - edge) ** 2
    return damping * (2 * now.astype(np.float64) - damping * before + ratio**2 * laplacian)


@body(
    """
    // The Laplacian of a volume with any strides; it goes on at the other side. The planes behind and in front are kept in
    // registers while a thread walks along z.
    int x = thread_position_in_grid.x, y = thread_position_in_grid.y;
    int nz = u_shape[0], ny = u_shape[1], nx = u_shape[2];
    if (x >= nx || y >= ny) return;
    const int64_t sz = u_strides[0], sy = u_strides[1], sx = u_strides[2];
    const device T* column = u + y * sy + x * sx;
    const device T* west = u + y * sy + (x == 0 ? nx - 1 : x - 1) * sx;
    const device T* east = u + y * sy + (x == nx - 1 ? 0 : x + 1) * sx;
    const device T* south = u + (y == 0 ? ny - 1 : y - 1) * sy + x * sx;
    const device T* north = u + (y == ny - 1 ? 0 : y + 1) * sy + x * sx;
    float below = column[(nz - 1) * sz], here = column[0];
    for (int z = 0; z < nz; ++z) {
      int64_t at = z * sz;
      float above = column[z == nz - 1 ? 0 : at + sz];
      float around = (float(west[at]) + float(east[at])) + (float(south[at]) + float(north[at]));
      laplacian[(z * ny + y) * nx + x] = T((around + (below + above) - 6.0f * here) * inverse_h2);
      below = here;
      here = above;
    }
    """,
    template=[("T", Dtype("float32"))],
    inputs=lambda rng: {
        # Every other plane, from the last to the first, with y and x exchanged; eighths, so that nothing is rounded.
        "u": (rng.integers(-800, 800, (12, 9, 7)) / 8).astype(np.float32)[::-2].transpose(0, 2, 1),
        "inverse_h2": 4.0,
    },
    ensure_row_contiguous=False,
    outputs={"laplacian": ((6, 7, 9), "float32")},
    grid=(16, 8, 1),
    threadgroup=(16, 4, 1),
    constructs="layouts.strided layouts.negative_strides types.int64_t structure.template_arguments "
    "address_spaces.device_pointer_arithmetic structure.early_return",
)
def laplacian_of_a_strided_volume(u, inverse_h2):
    u = u.astype(np.float64)
    total = sum(np.roll(u, s, axis) for axis in range(3) for s in (1, -1)) - 6 * u
    # A sum of zeros may have another sign.
    return (total * inverse_h2 + 0.0).astype(np.float32)


@body(
    """
    // Maxwell's equations in the plane on Yee's grid: STEPS steps of the magnetic and the electric field, with a source
    // in the middle, and the average of each point's energy. One threadgroup has the whole field.
    threadgroup float ez[N][N], hx[N][N], hy[N][N];
    const uint2 t = thread_position_in_threadgroup.xy;
    const uint at = t.y * N + t.x;
    ez[t.y][t.x] = ez_in[at];
    hx[t.y][t.x] = h_in[2 * at];
    hy[t.y][t.x] = h_in[2 * at + 1];
    // Coefficients of a medium that conducts.
    const float loss = 0.5f * sigma[at] * dt / epsilon[at];
    const float keep = (1.0f - loss) / (1.0f + loss), take = dt / epsilon[at] / (1.0f + loss);
    float energy = 0.0f;
    for (int step = 0; step < STEPS; ++step) {
      threadgroup_barrier(mem_flags::mem_threadgroup);
      if (t.y + 1 < N) hx[t.y][t.x] -= dt * (ez[t.y + 1][t.x] - ez[t.y][t.x]);
      if (t.x + 1 < N) hy[t.y][t.x] += dt * (ez[t.y][t.x + 1] - ez[t.y][t.x]);
      threadgroup_barrier(mem_flags::mem_threadgroup);
      // The wall conducts perfectly: the field stays zero there.
      if (t.x > 0 && t.y > 0 && t.x + 1 < N && t.y + 1 < N) {
        float curl = (hy[t.y][t.x] - hy[t.y][t.x - 1]) - (hx[t.y][t.x] - hx[t.y - 1][t.x]);
        float e = keep * ez[t.y][t.x] + take * curl;
        if (t.x == N / 2 && t.y == N / 2) {
          float phase = float(step) / 3.0f - 1.0f;
          e += exp(-phase * phase);
        }
        ez[t.y][t.x] = e;
      }
      energy += epsilon[at] * ez[t.y][t.x] * ez[t.y][t.x] + hx[t.y][t.x] * hx[t.y][t.x] + hy[t.y][t.x] * hy[t.y][t.x];
    }
    ez_out[at] = ez[t.y][t.x];
    h_out[2 * at] = hx[t.y][t.x];
    h_out[2 * at + 1] = hy[t.y][t.x];
    mean_energy[at] = 0.5f * energy / STEPS;
    """,
    template=[("N", 20), ("STEPS", 6)],
    inputs=lambda rng: {
        "ez_in": np.pad(rng.uniform(0.5, 1, (18, 18)), 1).astype(np.float32),
        "h_in": rng.uniform(2, 3, (20, 20, 2)).astype(np.float32),
        "epsilon": rng.uniform(1, 3, (20, 20)).astype(np.float32),
        "sigma": rng.uniform(0, 0.2, (20, 20)).astype(np.float32),
        "dt": 0.25,
    },
    outputs={
        "ez_out": ((20, 20), "float32"),
        "h_out": ((20, 20, 2), "float32"),
        "mean_energy": ((20, 20), "float32"),
    },
    grid=(20, 20, 1),
    threadgroup=(20, 20, 1),
    tolerance=5e-5,
    constructs="address_spaces.threadgroup_2d_array barriers.in_loop functions.exp structure.template_arguments",
)
def maxwell_on_the_grid_of_yee(ez_in, h_in, epsilon, sigma, dt):
    ez, (hx, hy), energy = ez_in.astype(np.float64), np.moveaxis(h_in.astype(np.float64), 2, 0), np.zeros((20, 20))
    epsilon = epsilon.astype(np.float64)
    loss = sigma * dt / epsilon / 2
    for step in range(6):
        hx[:-1] -= dt * np.diff(ez, axis=0)
        hy[:, :-1] += dt * np.diff(ez, axis=1)
        curl = np.diff(hy, axis=1)[1:-1, :-1] - np.diff(hx, axis=0)[:-1, 1:-1]
        inner = ((1 - loss) * ez)[1:-1, 1:-1] + (dt / epsilon)[1:-1, 1:-1] * curl
        ez[1:-1, 1:-1] = inner / (1 + loss)[1:-1, 1:-1]
        ez[10, 10] += np.exp(-((step / 3 - 1) ** 2))
        energy += epsilon * ez**2 + hx**2 + hy**2
    return ez, np.stack([hx, hy], axis=2), energy / 12


@body(
    """
    // Advection along a line by WENO of the fifth order and three stages of Runge and Kutta; a line is a threadgroup.
    threadgroup float line[N + 6];
    threadgroup float flux[N + 1];
    const int t = thread_position_in_threadgroup.x;
    const int row = threadgroup_position_in_grid.x;
    const float a = speeds[row];
    const float start = u[row * N + t];
    float now = start;
    for (int stage = 0; stage < 3; ++stage) {
      line[t + 3] = now;
      // The line is a ring.
      if (t < 3) line[N + 3 + t] = now;
      if (t >= N - 3) line[t - (N - 3)] = now;
      threadgroup_barrier(mem_flags::mem_threadgroup);
      for (int f = t; f <= N; f += N) {
        // Face f lies between the cells f - 1 and f; the wind says which side counts.
        threadgroup const float* v = line + f;
        flux[f] = a >= 0.0f ? a * weno(v[0], v[1], v[2], v[3], v[4]) : a * weno(v[5], v[4], v[3], v[2], v[1]);
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
      float moved = now - dt_over_dx * (flux[t + 1] - flux[t]);
      switch (stage) {
        case 0: now = moved; break;
        case 1: now = 0.75f * start + 0.25f * moved; break;
        case 2: now = start / 3.0f + 2.0f / 3.0f * moved; break;
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    moved_u[row * N + t] = now;
    """,
    header="""
// The value at the right face of the cell of c.
inline float weno(float a, float b, float c, float d, float e) {
  float3 candidates = float3(2 * a - 7 * b + 11 * c, -b + 5 * c + 2 * d, 2 * c + 5 * d - e) / 6.0f;
  float3 bend = float3(a - 2 * b + c, b - 2 * c + d, c - 2 * d + e);
  float3 tilt = float3(a - 4 * b + 3 * c, b - d, 3 * c - 4 * d + e);
  float3 rough = 13.0f / 12.0f * bend * bend + 0.25f * tilt * tilt;
  float3 w = float3(0.1f, 0.6f, 0.3f) / ((rough + 1e-6f) * (rough + 1e-6f));
  return dot(w, candidates) / (w.x + w.y + w.z);
}
""",
    template=[("N", 50)],
    inputs=lambda rng: {
        "u": np.stack(
            [
                1 + np.exp(-(((np.arange(50) - 20) / 5) ** 2)),
                1.5 + (abs(np.arange(50) - 25) < 9),
                rng.uniform(1, 2, 50),
            ]
        ).astype(np.float32),
        "speeds": np.array([1, -0.75, 0.5], np.float32),
        "dt_over_dx": 0.5,
    },
    outputs={"moved_u": ((3, 50), "float32")},
    grid=(150, 1, 1),
    threadgroup=(50, 1, 1),
    tolerance=2e-6,
    constructs="address_spaces.threadgroup_array barriers.in_loop structure.switch types.float3 functions.dot "
    "types.mixed_operands",
)
def advection_by_weno(u, speeds, dt_over_dx):
    out = []
    # Shifts of the three stencils of one face; the coefficients come from polynomials through cell averages.
    for line, speed in zip(u.astype(np.float64), speeds.astype(np.float64), strict=True):
        line = line if speed > 0 else line[::-1]

        def rate(v, speed=speed):
            cells = [np.roll(v, s) for s in (2, 1, 0, -1, -2)]
            values, rough = [], []
            for k in range(3):
                x, y, z = cells[k : k + 3]
                # The parabola p with these averages: c0 + c1 t + c2 t^2 around the middle cell of the three.
                c2 = (x - 2 * y + z) / 2
                c1 = (z - x) / 2
                c0 = y - c2 / 12
                face = 1.5 - k
                values.append(c0 + c1 * face + c2 * face**2)
                centre = 1 - k
                slope = c1 + 2 * c2 * centre
                # Integrals over the cell of the squares of the first and the second derivative.
                rough.append(slope**2 + (2 * c2) ** 2 / 12 + (2 * c2) ** 2)
            weights = [g / (b + 1e-6) ** 2 for g, b in zip((0.1, 0.6, 0.3), rough, strict=True)]
            flux = abs(speed) * sum(w * p for w, p in zip(weights, values, strict=True)) / sum(weights)
            return v - dt_over_dx * (flux - np.roll(flux, 1))

        one = rate(line)
        two = 0.75 * line + 0.25 * rate(one)
        three = line / 3 + 2 / 3 * rate(two)
        out.append(three if speed > 0 else three[::-1])
    return np.array(out)


@body(
    """
    // Sweeps of red-black Gauss and Seidel with over-relaxation, in threadgroup memory, and the largest residual.
    constexpr int W = N + 2;
    threadgroup float p[W * W];
    threadgroup float maxima[32];
    int2 at = int2(thread_position_in_threadgroup.xy);
    int problem = threadgroup_position_in_grid.z;
    int rank = thread_index_in_threadgroup;
    for (int k = rank; k < W * W; k += N * N / 2) p[k] = boundary[problem * W * W + k];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    // Each thread has one red point and one black: neighbours in a row.
    for (int sweep = 0; sweep < SWEEPS; ++sweep) {
      for (int colour = 0; colour < 2; ++colour) {
        int y = at.y + 1, x = 2 * at.x + 1 + ((at.y + colour) & 1);
        int i = y * W + x;
        float gauss = 0.25f * ((p[i - 1] + p[i + 1]) + (p[i - W] + p[i + W]) + rhs[(problem * N + y - 1) * N + x - 1]);
        p[i] += OMEGA * (gauss - p[i]);
        threadgroup_barrier(mem_flags::mem_threadgroup);
      }
    }
    float worst = 0.0f;
    for (int side = 0; side < 2; ++side) {
      int y = at.y + 1, x = 2 * at.x + 1 + side, i = y * W + x;
      solution[(problem * N + y - 1) * N + x - 1] = p[i];
      float r = rhs[(problem * N + y - 1) * N + x - 1] + p[i - 1] + p[i + 1] + p[i - W] + p[i + W] - 4.0f * p[i];
      worst = metal::max(worst, metal::abs(r));
    }
    worst = simd_max(worst);
    if (simd_is_first()) maxima[simdgroup_index_in_threadgroup] = worst;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (rank == 0) {
      for (uint g = 1; g < simdgroups_per_threadgroup; ++g) worst = metal::max(worst, maxima[g]);
      small[problem] = worst < 0.25f;
    }
    """,
    header="#define OMEGA 1.5f\n",
    template=[("N", 14), ("SWEEPS", 6)],
    inputs=lambda rng: {
        "boundary": rng.uniform(1, 2, (2, 16, 16)).astype(np.float32),
        "rhs": rng.uniform(0, 0.5, (2, 14, 14)).astype(np.float32),
    },
    outputs={"solution": ((2, 14, 14), "float32"), "small": ((2,), "bool")},
    grid=(7, 14, 2),
    threadgroup=(7, 14, 1),
    tolerance=3e-6,
    constructs="barriers.nested_loop simdgroup.max simdgroup.is_first address_spaces.threadgroup_array "
    "attributes.simdgroups_per_threadgroup structure.constexpr functions.abs",
)
def red_black_gauss_seidel(boundary, rhs):
    p, rhs = boundary.astype(np.float64), rhs.astype(np.float64)
    y, x = np.mgrid[:14, :14]
    for _ in range(6):
        for colour in range(2):
            own = (x + y) % 2 == colour
            around = p[:, 1:-1, :-2] + p[:, 1:-1, 2:] + p[:, :-2, 1:-1] + p[:, 2:, 1:-1] + rhs
            inner = p[:, 1:-1, 1:-1]
            p[:, 1:-1, 1:-1] = np.where(own, inner + 1.5 * (around / 4 - inner), inner)
    around = p[:, 1:-1, :-2] + p[:, 1:-1, 2:] + p[:, :-2, 1:-1] + p[:, 2:, 1:-1] + rhs
    worst = np.abs(around - 4 * p[:, 1:-1, 1:-1]).max(axis=(1, 2))
    return p[:, 1:-1, 1:-1], worst < 0.25


@body(
    """
    // Reaction and diffusion of two substances (Gray and Scott): two steps in one launch, on a tile with a halo of two.
    threadgroup float2 cells[2][SIDE + 4][SIDE + 4];
    int2 t = int2(thread_position_in_threadgroup.xy);
    int2 size = int2(state_shape[1], state_shape[0]);
    int2 origin = int2(threadgroup_position_in_grid.xy) * SIDE - 2;
    const device float2* in = (const device float2*)state;
    FOR_TILE(0) {
      int2 p = (origin + int2(x, y) + size) % size;
      cells[0][y][x] = in[p.y * size.x + p.x];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    FOR_TILE(1) cells[1][y][x] = react(cells[0], x, y, feed, kill_rate);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    int2 own = int2(thread_position_in_grid.xy);
    if (any(own >= size)) return;
    ((device float2*)next)[own.y * size.x + own.x] = react(cells[1], t.x + 2, t.y + 2, feed, kill_rate);
    """,
    header="""
// Every place of the tile that is at least `margin` from its edge, by the threads in turn.
#define FOR_TILE(margin)                                           \\
  for (int y = t.y + margin; y < SIDE + 4 - margin; y += SIDE)     \\
    for (int x = t.x + margin; x < SIDE + 4 - margin; x += SIDE)

template <int W>
inline float2 react(threadgroup float2 (&c)[W][W], int x, int y, float feed, float kill_rate) {
  float2 here = c[y][x];
  float2 sides = c[y][x - 1] + c[y][x + 1] + c[y - 1][x] + c[y + 1][x];
  float2 corners = c[y - 1][x - 1] + c[y - 1][x + 1] + c[y + 1][x - 1] + c[y + 1][x + 1];
  float2 spread = 0.2f * sides + 0.05f * corners - here;
  float both = here.x * here.y * here.y;
  float2 change = float2(feed * (1.0f - here.x) - both, both - (feed + kill_rate) * here.y);
  return here + float2(0.8f, 0.4f) * spread + change;
}
""",
    template=[("SIDE", 8)],
    inputs=lambda rng: {
        "state": rng.uniform(0.2, 0.8, (19, 26, 2)).astype(np.float32),
        "feed": 0.055,
        "kill_rate": 0.062,
    },
    outputs={"next": ((19, 26, 2), "float32")},
    grid=(32, 24, 1),
    threadgroup=(8, 8, 1),
    tolerance=5e-6,
    constructs="structure.multi_line_macro_in_header address_spaces.threadgroup_reference_to_helper "
    "address_spaces.threadgroup_vectors functions.any structure.template types.float2",
)
def gray_scott(state, feed, kill_rate):
    a, b = np.moveaxis(state.astype(np.float64), 2, 0)
    feed, kill_rate = float(np.float32(feed)), float(np.float32(kill_rate))
    weights = np.array([[0.05, 0.2, 0.05], [0.2, -1, 0.2], [0.05, 0.2, 0.05]])

    def spread(v):
        return sum(weights[j, i] * np.roll(v, (j - 1, i - 1), (0, 1)) for j in range(3) for i in range(3))

    for _ in range(2):
        both = a * b * b
        a, b = (
            a + 0.8 * spread(a) - both + feed * (1 - a),
            b + 0.4 * spread(b) + both - (feed + kill_rate) * b,
        )
    return np.stack([a, b], axis=2)


# ---- Flow


@body(
    """
    // Lattice Boltzmann in the plane with nine speeds and two rates of relaxation; pull, bounce back, collide.
    int2 p = int2(thread_position_in_grid.xy);
    int nx = flags_shape[1], ny = flags_shape[0];
    if (p.x >= nx || p.y >= ny) return;
    int cells = nx * ny, here = p.y * nx + p.x;
    if (flags[here] == SOLID) {
      for (int q = 0; q < 9; ++q) f_out[q * cells + here] = W_OF(q);
      density[here] = 1.0f;
      speed[here] = 0.0f;
      return;
    }
    float f[9];
    MLX_MTL_PRAGMA_UNROLL
    for (int q = 0; q < 9; ++q) {
      int2 from = p - int2(CX[q], CY[q]);
      from.x = from.x < 0 ? nx - 1 : from.x == nx ? 0 : from.x;
      bool wall = from.y < 0 || from.y >= ny;
      int source = wall ? here : from.y * nx + from.x;
      if (wall || flags[source] == SOLID) {
        f[q] = f_in[OPPOSITE[q] * cells + here];
        // The upper wall is a lid that moves.
        if (from.y >= ny) f[q] += 6.0f * W_OF(q) * CX[q] * lid;
      } else {
        f[q] = f_in[q * cells + source];
      }
    }
    float rho = 0.0f;
    float2 momentum = float2(0.0f);
    MLX_MTL_PRAGMA_UNROLL
    for (int q = 0; q < 9; ++q) {
      rho += f[q];
      momentum += f[q] * float2(CX[q], CY[q]);
    }
    float2 u = momentum / rho;
    // What is the same in both directions relaxes at one rate, what differs at the other.
    const float even = 1.0f / tau;
    const float odd = 1.0f / (0.5f + MAGIC / (tau - 0.5f));
    float common = 1.0f - 1.5f * dot(u, u);
    float f_new[9];
    f_new[0] = f[0] - even * (f[0] - rho * W_OF(0) * common);
    #define PAIR(a, b)                                                        \\
      {                                                                       \\
        float cu = CX[a] * u.x + CY[a] * u.y;                                 \\
        float eq_even = rho * W_OF(a) * (common + 4.5f * cu * cu);            \\
        float eq_odd = rho * W_OF(a) * 3.0f * cu;                             \\
        float change_even = even * (0.5f * (f[a] + f[b]) - eq_even);          \\
        float change_odd = odd * (0.5f * (f[a] - f[b]) - eq_odd);             \\
        f_new[a] = f[a] - change_even - change_odd;                           \\
        f_new[b] = f[b] - change_even + change_odd;                           \\
      }
    PAIR(1, 3)
    PAIR(2, 4)
    PAIR(5, 7)
    PAIR(6, 8)
    #undef PAIR
    for (int q = 0; q < 9; ++q) f_out[q * cells + here] = f_new[q];
    density[here] = rho;
    speed[here] = length(u);
    """,
    header="""
#define SOLID 1
#define MAGIC 0.25f
#define W_OF(q) ((q) == 0 ? 4.0f / 9.0f : (q) < 5 ? 1.0f / 9.0f : 1.0f / 36.0f)
constant int CX[9] = {0, 1, 0, -1, 0, 1, -1, -1, 1};
constant int CY[9] = {0, 0, 1, 0, -1, 1, 1, -1, -1};
constant int OPPOSITE[9] = {0, 3, 4, 1, 2, 7, 8, 5, 6};
""",
    inputs=lambda rng: {
        "f_in": (
            np.array([16, 4, 4, 4, 4, 1, 1, 1, 1])[:, None, None] / 36 * rng.uniform(0.8, 1.2, (9, 11, 18))
        ).astype(np.float32),
        "flags": (rng.uniform(size=(11, 18)) < 0.15).astype(np.uint8),
        "tau": 0.8,
        "lid": 0.1,
    },
    outputs={
        "f_out": ((9, 11, 18), "float32"),
        "density": ((11, 18), "float32"),
        "speed": ((11, 18), "float32"),
    },
    grid=(32, 16, 1),
    threadgroup=(32, 4, 1),
    tolerance=3e-6,
    constructs="structure.multi_line_macro address_spaces.constant_array structure.early_return functions.length "
    "functions.dot mlx.MLX_MTL_PRAGMA_UNROLL",
)
def lattice_boltzmann_in_the_plane(f_in, flags, tau, lid):
    tau, lid = float(np.float32(tau)), float(np.float32(lid))
    c = np.array([[0, 0], [1, 0], [0, 1], [-1, 0], [0, -1], [1, 1], [-1, 1], [-1, -1], [1, -1]])
    w = np.array([16, 4, 4, 4, 4, 1, 1, 1, 1]) / 36
    back = [int(np.flatnonzero((c == -v).all(axis=1))[0]) for v in c]
    f_in = f_in.astype(np.float64)
    f = np.empty_like(f_in)
    solid = np.pad(flags.astype(bool), ((1, 1), (0, 0)), constant_values=True)
    for q, (cx, cy) in enumerate(c):
        blocked = np.roll(solid, (cy, cx), (0, 1))[1:-1]
        f[q] = np.where(blocked, f_in[back[q]], np.roll(f_in[q], (cy, cx), (0, 1)))
        if cy == -1:
            f[q, -1] += 6 * w[q] * cx * lid
    rho = f.sum(axis=0)
    u = np.einsum("qyx,qk->kyx", f, c) / rho
    cu = np.einsum("qk,kyx->qyx", c, u)
    equilibrium = w[:, None, None] * rho * (1 + 3 * cu + 4.5 * cu**2 - 1.5 * (u**2).sum(axis=0))
    off = f - equilibrium
    even, odd = (off + off[back]) / 2, (off - off[back]) / 2
    out = f - even / tau - odd / (0.5 + 0.25 / (tau - 0.5))
    wall = flags.astype(bool)
    out = np.where(wall, w[:, None, None], out)
    return out, np.where(wall, 1, rho), np.where(wall, 0, np.hypot(*u))


_SPEEDS = [(0, 0, 0)]
for _v in ((1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0), (1, -1, 0), (1, 0, 1), (1, 0, -1), (0, 1, 1), (0, 1, -1)):
    _SPEEDS += [_v, (-_v[0], -_v[1], -_v[2])]


@body(
    """
    // Lattice Boltzmann in space with nineteen speeds: a fluid under a force in a box that goes on at the other side, with
    // Smagorinsky's model of what is too small for the grid.
    const uint3 p = thread_position_in_grid;
    const uint3 n = threads_per_grid;
    const uint cells = n.x * n.y * n.z;
    const uint here = CELL(p.x, p.y, p.z);
    // Neighbours' coordinates.
    const uint xm = p.x == 0 ? n.x - 1 : p.x - 1, xp = p.x + 1 == n.x ? 0 : p.x + 1;
    const uint ym = p.y == 0 ? n.y - 1 : p.y - 1, yp = p.y + 1 == n.y ? 0 : p.y + 1;
    const uint zm = p.z == 0 ? n.z - 1 : p.z - 1, zp = p.z + 1 == n.z ? 0 : p.z + 1;

    // Populations are read from where they come.
    const float f0 = LOAD(0, p.x, p.y, p.z);
    const float f1 = LOAD(1, xm, p.y, p.z), f2 = LOAD(2, xp, p.y, p.z);
    const float f3 = LOAD(3, p.x, ym, p.z), f4 = LOAD(4, p.x, yp, p.z);
    const float f5 = LOAD(5, p.x, p.y, zm), f6 = LOAD(6, p.x, p.y, zp);
    const float f7 = LOAD(7, xm, ym, p.z), f8 = LOAD(8, xp, yp, p.z);
    const float f9 = LOAD(9, xm, yp, p.z), f10 = LOAD(10, xp, ym, p.z);
    const float f11 = LOAD(11, xm, p.y, zm), f12 = LOAD(12, xp, p.y, zp);
    const float f13 = LOAD(13, xm, p.y, zp), f14 = LOAD(14, xp, p.y, zm);
    const float f15 = LOAD(15, p.x, ym, zm), f16 = LOAD(16, p.x, yp, zp);
    const float f17 = LOAD(17, p.x, ym, zp), f18 = LOAD(18, p.x, yp, zm);

    // Density and velocity; half of the force acts before the collision.
    const float rho = f0 + (f1 + f2) + (f3 + f4) + (f5 + f6) + (f7 + f8) + (f9 + f10) + (f11 + f12) + (f13 + f14) +
                      (f15 + f16) + (f17 + f18);
    const float inv = 1.0f / rho;
    const float3 g = float3(force[0], force[1], force[2]);
    const float3 u = float3((f1 - f2) + (f7 - f8) + (f9 - f10) + (f11 - f12) + (f13 - f14),
                            (f3 - f4) + (f7 - f8) - (f9 - f10) + (f15 - f16) + (f17 - f18),
                            (f5 - f6) + (f11 - f12) - (f13 - f14) + (f15 - f16) - (f17 - f18)) * inv +
                     0.5f * g * inv;
    const float base = 1.0f - 1.5f * dot(u, u);

    // Equilibria, and the stress of what differs from them.
    float pxx = 0, pyy = 0, pzz = 0, pxy = 0, pxz = 0, pyz = 0;
#define EQUILIBRIUM(q, w, cx, cy, cz)                                     \\
    const float cu##q = SUM3(cx, cy, cz, u);                              \\
    const float e##q = (w) * rho * (base + 3.0f * cu##q + 4.5f * cu##q * cu##q); \\
    {                                                                     \\
      const float d = f##q - e##q;                                        \\
      pxx += (cx) * (cx) * d;                                             \\
      pyy += (cy) * (cy) * d;                                             \\
      pzz += (cz) * (cz) * d;                                             \\
      pxy += (cx) * (cy) * d;                                             \\
      pxz += (cx) * (cz) * d;                                             \\
      pyz += (cy) * (cz) * d;                                             \\
    }
    ALL_SPEEDS(EQUILIBRIUM)
#undef EQUILIBRIUM
    const float stress = metal::sqrt(pxx * pxx + pyy * pyy + pzz * pzz + 2.0f * (pxy * pxy + pxz * pxz + pyz * pyz));
    const float tau = 0.5f * (tau0 + metal::sqrt(tau0 * tau0 + 18.0f * M_SQRT2_F * SMAGORINSKY * inv * stress));
    const float omega = 1.0f / tau;

    // The force as Guo, Zheng and Shi have it.
    const float weight = 1.0f - 0.5f * omega;
    const float ug = dot(u, g);
#define COLLIDE(q, w, cx, cy, cz)                                                         \\
    {                                                                                     \\
      const float cg = SUM3(cx, cy, cz, g);                                               \\
      const float push = weight * (w) * (3.0f * (cg - ug) + 9.0f * cu##q * cg);           \\
      STORE(q) = f##q - omega * (f##q - e##q) + push;                                     \\
    }
    ALL_SPEEDS(COLLIDE)
#undef COLLIDE
    relaxation[here] = tau;
    densities[here] = rho;
    """,
    header="""
#define SMAGORINSKY 0.04f
#define CELL(i, j, k) (((k) * n.y + (j)) * n.x + (i))
#define LOAD(q, i, j, k) f_in[(q) * cells + CELL(i, j, k)]
#define STORE(q) f_out[(q) * cells + here]
#define SUM3(cx, cy, cz, v) ((cx) * v.x + (cy) * v.y + (cz) * v.z)

// Number, weight and velocity of each population.
#define ALL_SPEEDS(DO)             \\
  DO(0, 1.0f / 3.0f, 0, 0, 0)      \\
  DO(1, 1.0f / 18.0f, 1, 0, 0)     \\
  DO(2, 1.0f / 18.0f, -1, 0, 0)    \\
  DO(3, 1.0f / 18.0f, 0, 1, 0)     \\
  DO(4, 1.0f / 18.0f, 0, -1, 0)    \\
  DO(5, 1.0f / 18.0f, 0, 0, 1)     \\
  DO(6, 1.0f / 18.0f, 0, 0, -1)    \\
  DO(7, 1.0f / 36.0f, 1, 1, 0)     \\
  DO(8, 1.0f / 36.0f, -1, -1, 0)   \\
  DO(9, 1.0f / 36.0f, 1, -1, 0)    \\
  DO(10, 1.0f / 36.0f, -1, 1, 0)   \\
  DO(11, 1.0f / 36.0f, 1, 0, 1)    \\
  DO(12, 1.0f / 36.0f, -1, 0, -1)  \\
  DO(13, 1.0f / 36.0f, 1, 0, -1)   \\
  DO(14, 1.0f / 36.0f, -1, 0, 1)   \\
  DO(15, 1.0f / 36.0f, 0, 1, 1)    \\
  DO(16, 1.0f / 36.0f, 0, -1, -1)  \\
  DO(17, 1.0f / 36.0f, 0, 1, -1)   \\
  DO(18, 1.0f / 36.0f, 0, -1, 1)
""",
    inputs=lambda rng: {
        "f_in": (
            np.array([12] + [2] * 6 + [1] * 12)[:, None, None, None] / 36 * rng.uniform(0.8, 1.2, (19, 4, 5, 6))
        ).astype(np.float32),
        "force": np.array([0.002, -0.001, 0.003], np.float32),
        "tau0": 0.7,
    },
    outputs={
        "f_out": ((19, 4, 5, 6), "float32"),
        "relaxation": ((4, 5, 6), "float32"),
        "densities": ((4, 5, 6), "float32"),
    },
    grid=(6, 5, 4),
    threadgroup=(6, 5, 2),
    tolerance=2e-5,
    constructs="structure.multi_line_macro structure.multi_line_macro_in_header structure.token_pasting "
    "types.M_constants functions.dot functions.sqrt attributes.threads_per_grid",
)
def lattice_boltzmann_in_space(f_in, force, tau0):
    c = np.array(_SPEEDS)
    w = np.array([12] + [2] * 6 + [1] * 12) / 36
    f = np.stack([np.roll(f_in[q].astype(np.float64), v[::-1], (0, 1, 2)) for q, v in enumerate(_SPEEDS)])
    g = force.astype(np.float64)
    tau0 = float(np.float32(tau0))
    rho = f.sum(axis=0)
    u = (np.einsum("qzyx,qk->kzyx", f, c) + g[:, None, None, None] / 2) / rho
    cu = np.einsum("qk,kzyx->qzyx", c, u)
    wide = w[:, None, None, None]
    equilibrium = wide * rho * (1 + 3 * cu + 4.5 * cu**2 - 1.5 * (u**2).sum(axis=0))
    stress = np.einsum("qzyx,qi,qj->ijzyx", f - equilibrium, c, c)
    size = np.sqrt((stress**2).sum(axis=(0, 1)))
    tau = (tau0 + np.sqrt(tau0**2 + 18 * np.sqrt(2) * 0.04 * size / rho)) / 2
    cg = c @ g
    push = np.einsum("kzyx,k->zyx", u, g)
    source = (1 - 0.5 / tau) * wide * (3 * (cg[:, None, None, None] - push) + 9 * cu * cg[:, None, None, None])
    return f - (f - equilibrium) / tau + source, tau, rho


@body(
    """
    // One half of a sweep of the Ising model: 32 spins to a word, a thread for each word, of one colour of the board.
    uint column = thread_position_in_grid.x, row = thread_position_in_grid.y;
    uint columns = threads_per_grid.x, rows = threads_per_grid.y;
    uint at = row * columns + column;
    uint own = spins[at];
    uint up = spins[(row + rows - 1) % rows * columns + column];
    uint down = spins[(row + 1) % rows * columns + column];
    uint before = spins[row * columns + (column + columns - 1) % columns];
    uint after = spins[row * columns + (column + 1) % columns];
    uint left = (own << 1) | (before >> 31), right = (own >> 1) | (after << 31);

    // How many of the four neighbours differ, for all 32 spins at once, as a number of three bits.
    uint a = own ^ up, b = own ^ down, c = own ^ left, d = own ^ right;
    uint ab = a & b, cd = c & d, x = a ^ b, y = c ^ d;
    uint ones = x ^ y, carry = x & y;
    uint twos = ab ^ cd ^ carry;
    uint fours = ab & cd;

    // A spin that most neighbours oppose always turns; the others by chance.
    uint flip = twos | fours;
    uint none = ~(ones | twos | fours), single = ones & ~twos;
    uint colour_mask = ((row ^ uint(colour)) & 1) ? 0xaaaaaaaau : 0x55555555u;
    uint state = hash(at ^ hash(uint(step) * 2u + uint(colour)));
    for (uint bit = 0; bit < 32; ++bit) {
      uint chosen = 1u << bit;
      if (!(chosen & colour_mask)) continue;
      state = state * 747796405u + 2891336453u;
      uint word = ((state >> ((state >> 28) + 4)) ^ state) * 277803737u;
      word ^= word >> 22;
      uint limit = none & chosen ? uint(limits[1]) : uint(limits[0]);
      if ((none | single) & chosen && word < limit) flip |= chosen;
    }
    uint turned = own ^ (flip & colour_mask);
    next[at] = turned;
    atomic_fetch_add_explicit((device atomic_int*)magnetisation, 2 * int(popcount(turned)) - 32, memory_order_relaxed);
    """,
    header="""
inline uint hash(uint v) {
  v ^= v >> 16;
  v *= 0x7feb352du;
  v ^= v >> 15;
  v *= 0x846ca68bu;
  return v ^ (v >> 16);
}
""",
    inputs=lambda rng: {
        "spins": rng.integers(0, 2**32, (10, 3), np.uint32),
        # exp(-4 b) and exp(-8 b) of 2^32.
        "limits": (np.exp([-1.6, -3.2]) * 2**32).astype(np.uint32),
        "colour": 1,
        "step": 17,
    },
    outputs={"next": ((10, 3), "uint32"), "magnetisation": ((1,), "int32")},
    init_value=0,
    grid=(3, 10, 1),
    threadgroup=(3, 5, 1),
    constructs="functions.popcount address_spaces.cast_to_atomic synchronisation.fetch_add literals.integer "
    "types.uint layouts.few_elements",
)
def ising_model(spins, limits, colour, step):
    m = 0xFFFFFFFF

    def mixed(v):
        v = (v ^ v >> 16) * 0x7FEB352D & m
        v = (v ^ v >> 15) * 0x846CA68B & m
        return v ^ v >> 16

    # Spins one by one.
    board = (spins[:, :, None] >> np.arange(32, dtype=np.uint32) & 1).reshape(10, 96).astype(int)
    opposed = sum(board != np.roll(board, s, axis) for axis in range(2) for s in (1, -1))
    turned = board.copy()
    for row in range(10):
        for word in range(3):
            state = mixed((row * 3 + word) ^ mixed(step * 2 + colour))
            for bit in range(32):
                if (bit + row + colour) % 2:
                    continue
                state = (state * 747796405 + 2891336453) & m
                value = (state >> (state >> 28) + 4 ^ state) * 277803737 & m
                value ^= value >> 22
                x = word * 32 + bit
                if opposed[row, x] >= 2 or value < int(limits[1 - opposed[row, x]]):
                    turned[row, x] ^= 1
    bits = turned.reshape(10, 3, 32).astype(np.uint64) << np.arange(32, dtype=np.uint64)
    return bits.sum(axis=2).astype(np.uint32), np.array([2 * turned.sum() - 960], np.int32)
