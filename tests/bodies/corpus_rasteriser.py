"""Gaussian splatting: the rasteriser of tiles, forward and backward."""

import numpy as np

from bodies import body
from bodies.corpus_splatting import TILES

_WIDTH, _HEIGHT = 20, 13
# Of each tile. No splat is in two, so that two simdgroups add to a gradient, whose order does not matter.
_LISTS = (150, 12, 15, 9, 0, 11)
_SPLATS = sum(_LISTS)


def _raster_inputs(rng):
    """Splats in the order of their depth, already listed by tile; in the first tile many of them, so that some pixels
    are opaque before the end and the list takes several batches."""
    tiles = np.repeat(np.arange(6), _LISTS)
    corners = np.stack([tiles % 3, tiles // 3], axis=1) * 8
    centres = corners + rng.uniform(-2, 10, (_SPLATS, 2))
    spread = rng.uniform(1.5, 4, (_SPLATS, 2))
    angle = rng.uniform(0, np.pi, _SPLATS)
    turn = np.moveaxis(np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]), 2, 0)
    inverse = (turn / spread[:, None] ** 2) @ turn.transpose(0, 2, 1)
    ends = np.cumsum(_LISTS)
    # The many are thin.
    opacity = rng.uniform(0.2, 1, _SPLATS) * np.where(tiles == 0, 0.35, 1)
    conic_opacity = np.stack([inverse[:, 0, 0], inverse[:, 0, 1], inverse[:, 1, 1], opacity], axis=1)
    return {
        "ranges": np.stack([ends - _LISTS, ends], axis=1).astype(np.int32),
        "ids": np.concatenate([rng.permutation(np.flatnonzero(tiles == tile)) for tile in range(6)]).astype(np.int32),
        "centres": centres.astype(np.float32),
        "conic_opacity": conic_opacity.astype(np.float32),
        "colours": rng.uniform(0.25, 1, (_SPLATS, 3)).astype(np.float32),
        "background": np.array([0.5, 0.25, 0.75], np.float32),
        "width": _WIDTH,
        "height": _HEIGHT,
    }


def _blended(ranges, ids, centres, conic_opacity, colours):
    """Of each pixel: the alphas of the tile's list, those that are skipped as 0, and how many of the list count."""
    for y in range(_HEIGHT):
        for x in range(_WIDTH):
            first, last = ranges[y // 8 * 3 + x // 8]
            own = ids[first:last]
            d = centres[own].astype(np.float64) - [x + 0.5, y + 0.5]
            a, b, c, opacity = conic_opacity[own].astype(np.float64).T
            density = np.exp(-0.5 * (a * d[:, 0] ** 2 + c * d[:, 1] ** 2) - b * d[:, 0] * d[:, 1])
            alpha = np.minimum(0.99, opacity * density)
            alpha[alpha < 1 / 255] = 0
            left = np.cumprod(1 - alpha)
            opaque = np.flatnonzero(left < 1e-3)
            used = opaque[0] if len(opaque) else len(own)
            yield y, x, own[:used], alpha[:used], density[:used], d[:used]


@body(
    """
    threadgroup float2 batch_xy[TILE_PIXELS];
    threadgroup float4 batch_conic[TILE_PIXELS];
    threadgroup packed_float3 batch_rgb[TILE_PIXELS];
    threadgroup atomic_uint finished;

    uint2 tile = threadgroup_position_in_grid.xy;
    uint2 local = thread_position_in_threadgroup.xy;
    uint rank = thread_index_in_threadgroup;
    uint2 pixel = tile * TILE_SIDE + local;
    bool inside = pixel.x < uint(width) && pixel.y < uint(height);
    float2 at = float2(pixel) + 0.5f;
    uint tiles_x = threadgroups_per_grid.x;

    int begin = ranges[2 * (tile.y * tiles_x + tile.x)];
    int end = ranges[2 * (tile.y * tiles_x + tile.x) + 1];
    int rounds = (end - begin + TILE_PIXELS - 1) / TILE_PIXELS;
    int left = end - begin;

    // A pixel outside of the image only helps to load.
    bool done = !inside;
    float transmittance = 1.0f;
    float3 colour = float3(0.0f);
    int seen = 0, last_contributor = 0;

    for (int round = 0; round < rounds; ++round, left -= TILE_PIXELS) {
      // Nobody may overwrite a batch that another one still reads; and when all are done, so is the tile.
      if (rank == 0) atomic_store_explicit(&finished, 0u, memory_order_relaxed);
      threadgroup_barrier(mem_flags::mem_threadgroup);
      if (done) atomic_fetch_add_explicit(&finished, 1u, memory_order_relaxed);
      threadgroup_barrier(mem_flags::mem_threadgroup);
      uint count = atomic_load_explicit(&finished, memory_order_relaxed);
      if (count == TILE_PIXELS) break;

      int place = begin + round * TILE_PIXELS + int(rank);
      if (place < end) {
        int id = ids[place];
        batch_xy[rank] = float2(centres[2 * id], centres[2 * id + 1]);
        batch_conic[rank] = ((const device float4*)conic_opacity)[id];
        batch_rgb[rank] = packed_float3(colours[3 * id], colours[3 * id + 1], colours[3 * id + 2]);
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);

      int here = min(TILE_PIXELS, left);
      for (int j = 0; !done && j < here; ++j) {
        ++seen;
        float2 d = batch_xy[j] - at;
        float4 q = batch_conic[j];
        float power = -0.5f * (q.x * d.x * d.x + q.z * d.y * d.y) - q.y * d.x * d.y;
        if (power > 0.0f) continue;
        float alpha = min(0.99f, q.w * metal::exp(power));
        if (alpha < 1.0f / 255.0f) continue;
        float next = transmittance * (1.0f - alpha);
        if (next < 0.001f) {
          done = true;
          continue;
        }
        colour += float3(batch_rgb[j]) * (alpha * transmittance);
        transmittance = next;
        last_contributor = seen;
      }
    }

    if (inside) {
      uint out = pixel.y * uint(width) + pixel.x;
      final_t[out] = transmittance;
      contributors[out] = last_contributor;
      float3 with_background = colour + transmittance * float3(background[0], background[1], background[2]);
      for (int c = 0; c < 3; ++c) image[out * 3 + c] = with_background[c];
    }
    """,
    header=TILES,
    inputs=_raster_inputs,
    outputs={
        "image": ((_HEIGHT, _WIDTH, 3), "float32"),
        "final_t": ((_HEIGHT, _WIDTH), "float32"),
        "contributors": ((_HEIGHT, _WIDTH), "int32"),
    },
    grid=(24, 16, 1),
    threadgroup=(8, 8, 1),
    tolerance=1e-5,
    constructs="barriers.with_break address_spaces.threadgroup_atomic address_spaces.threadgroup_vectors "
    "synchronisation.fetch_add synchronisation.load synchronisation.store types.packed_vectors "
    "reconvergence.divergent_trip_count structure.early_return",
)
def splat_rasteriser_forward(ranges, ids, centres, conic_opacity, colours, background, width, height):
    image, final, last = np.zeros((height, width, 3)), np.ones((height, width)), np.zeros((height, width), np.int32)
    for y, x, own, alpha, _, _ in _blended(ranges, ids, centres, conic_opacity, colours):
        left = np.concatenate([[1], np.cumprod(1 - alpha)])
        image[y, x] = (alpha * left[:-1]) @ colours[own].astype(np.float64) + left[-1] * background.astype(np.float64)
        final[y, x] = left[-1]
        last[y, x] = np.flatnonzero(alpha)[-1] + 1 if alpha.any() else 0
    return image, final, last


def _backward_inputs(rng):
    inputs = _raster_inputs(rng)
    final, last = np.ones((_HEIGHT, _WIDTH), np.float32), np.zeros((_HEIGHT, _WIDTH), np.int32)
    args = [inputs[key] for key in ("ranges", "ids", "centres", "conic_opacity", "colours")]
    for y, x, _, alpha, _, _ in _blended(*args):
        final[y, x] = np.prod(1 - alpha)
        last[y, x] = np.flatnonzero(alpha)[-1] + 1 if alpha.any() else 0
    shape = (_HEIGHT, _WIDTH, 3)
    # The gradient grows over the image, so that its parts do not cancel.
    ramp = np.linspace(0.5, 3, _WIDTH)[None, :, None] * np.linspace(1, 2, _HEIGHT)[:, None, None]
    return inputs | {
        "final_t": final,
        "contributors": last,
        "image_grad": (ramp * rng.uniform(0.5, 1.5, shape)).astype(np.float32),
    }


@body(
    """
    threadgroup Splat batch[TILE_PIXELS];

    const uint2 local = thread_position_in_threadgroup.xy;
    const uint2 pixel = threadgroup_position_in_grid.xy * TILE_SIDE + local;
    const uint rank = thread_index_in_threadgroup;
    const uint lane = thread_index_in_simdgroup;
    const bool inside = pixel.x < uint(width) && pixel.y < uint(height);
    const float2 at = float2(pixel.x + 0.5f, pixel.y + 0.5f);
    const uint tile = threadgroup_position_in_grid.y * threadgroups_per_grid.x + threadgroup_position_in_grid.x;
    const int begin = ranges[2 * tile], end = ranges[2 * tile + 1];
    const int rounds = (end - begin + TILE_PIXELS - 1) / TILE_PIXELS;

    // The list is walked from its end: the transmittance in front of a splat is that behind it by 1 - alpha.
    const uint out = pixel.y * uint(width) + pixel.x;
    float t_final = inside ? final_t[out] : 0.0f;
    float t = t_final;
    int last = inside ? contributors[out] : 0;
    float3 grad = inside ? float3(image_grad[3 * out], image_grad[3 * out + 1], image_grad[3 * out + 2]) : float3(0);
    float3 bg = float3(background[0], background[1], background[2]);
    float bg_dot = dot(bg, grad);
    // What lies behind the splat, already weighted, seen through everything that is behind it.
    float3 behind = float3(0.0f);
    float last_alpha = 0.0f;
    float3 last_colour = float3(0.0f);

    int to_do = end - begin;
    int contributor = to_do;
    for (int round = 0; round < rounds; ++round, to_do -= TILE_PIXELS) {
      threadgroup_barrier(mem_flags::mem_threadgroup);
      int place = end - 1 - round * TILE_PIXELS - int(rank);
      if (place >= begin) batch[rank] = load_splat(ids[place], centres, conic_opacity, colours);
      threadgroup_barrier(mem_flags::mem_threadgroup);

      int here = min(TILE_PIXELS, to_do);
      for (int j = 0; j < here; ++j) {
        --contributor;
        // All threads go through the whole loop, because their gradients are added up together.
        bool valid = inside && contributor < last;
        threadgroup const Splat& splat = batch[j];
        float2 d = splat.centre - at;
        float density = 0.0f, alpha = 0.0f;
        if (valid) {
          float power = splat.power(d);
          density = metal::exp(power);
          alpha = min(0.99f, splat.opacity * density);
          valid = power <= 0.0f && alpha >= 1.0f / 255.0f;
        }
        if (!simd_any(valid)) continue;

        Gradient g = no_gradient();
        if (valid) {
          t /= 1.0f - alpha;
          float weight = alpha * t;
          g.colour = weight * grad;

          behind = last_alpha * last_colour + (1.0f - last_alpha) * behind;
          last_alpha = alpha;
          last_colour = splat.colour;
          float d_alpha = t * dot(splat.colour - behind, grad);
          d_alpha -= t_final / (1.0f - alpha) * bg_dot;

          // Above 0.99 the minimum has no slope.
          if (splat.opacity * density < 0.99f) {
            g.opacity = density * d_alpha;
            float d_power = alpha * d_alpha;
            g.conic = float3(-0.5f * d.x * d.x, -d.x * d.y, -0.5f * d.y * d.y) * d_power;
            g.centre = -float2(splat.conic.x * d.x + splat.conic.y * d.y,
                               splat.conic.z * d.y + splat.conic.y * d.x) * d_power;
          }
        }

#define ADD_UP(field) g.field = simd_sum(g.field)
        ADD_UP(colour.x);
        ADD_UP(colour.y);
        ADD_UP(colour.z);
        ADD_UP(conic.x);
        ADD_UP(conic.y);
        ADD_UP(conic.z);
        ADD_UP(centre.x);
        ADD_UP(centre.y);
        ADD_UP(opacity);
#undef ADD_UP
        if (lane == 0) {
          const int id = splat.id;
          add(colour_grad, 3 * id + 0, g.colour.x);
          add(colour_grad, 3 * id + 1, g.colour.y);
          add(colour_grad, 3 * id + 2, g.colour.z);
          add(conic_grad, 4 * id + 0, g.conic.x);
          add(conic_grad, 4 * id + 1, g.conic.y);
          add(conic_grad, 4 * id + 2, g.conic.z);
          add(conic_grad, 4 * id + 3, g.opacity);
          add(centre_grad, 2 * id + 0, g.centre.x);
          add(centre_grad, 2 * id + 1, g.centre.y);
        }
      }
    }
    """,
    header=TILES
    + """
// One splat as a tile shares it.
struct Splat {
  float2 centre;
  float3 conic;
  float3 colour;
  float opacity;
  int id;

  float power(float2 d) const threadgroup {
    return -0.5f * (conic.x * d.x * d.x + conic.z * d.y * d.y) - conic.y * d.x * d.y;
  }
};

struct Gradient {
  float2 centre;
  float3 conic;
  float3 colour;
  float opacity;
};

inline Gradient no_gradient() {
  Gradient g;
  g.centre = float2(0.0f);
  g.conic = float3(0.0f);
  g.colour = float3(0.0f);
  g.opacity = 0.0f;
  return g;
}

inline Splat load_splat(int id, device const float* centres, device const float* conics, device const float* colours) {
  Splat s;
  s.id = id;
  s.centre = float2(centres[2 * id], centres[2 * id + 1]);
  float4 q = *(device const float4*)(conics + 4 * id);
  s.conic = q.xyz;
  s.opacity = q.w;
  s.colour = float3(colours[3 * id], colours[3 * id + 1], colours[3 * id + 2]);
  return s;
}

inline void add(device atomic_float* to, int at, float value) {
  atomic_fetch_add_explicit(to + at, value, memory_order_relaxed);
}
""",
    inputs=_backward_inputs,
    outputs={
        "centre_grad": ((_SPLATS, 2), "float32"),
        "conic_grad": ((_SPLATS, 4), "float32"),
        "colour_grad": ((_SPLATS, 3), "float32"),
    },
    atomic_outputs=True,
    init_value=0,
    grid=(24, 16, 1),
    threadgroup=(8, 8, 1),
    tolerance=2e-4,
    constructs="address_spaces.threadgroup_struct simdgroup.any simdgroup.sum synchronisation.fetch_add "
    "types.atomic_float launch.atomic_outputs barriers.with_continue structure.struct structure.define",
)
def splat_rasteriser_backward(
    ranges, ids, centres, conic_opacity, colours, background, width, height, final_t, contributors, image_grad
):
    centre, conic, colour = np.zeros((_SPLATS, 2)), np.zeros((_SPLATS, 4)), np.zeros((_SPLATS, 3))
    for y, x, own, alpha, density, d in _blended(ranges, ids, centres, conic_opacity, colours):
        grad = image_grad[y, x].astype(np.float64)
        left = np.concatenate([[1], np.cumprod(1 - alpha)])
        light = colours[own].astype(np.float64) @ grad
        parts = np.append(alpha * left[:-1] * light, left[-1] * (background.astype(np.float64) @ grad))
        behind = np.cumsum(parts[::-1])[::-1][1:]
        d_alpha = left[:-1] * light - behind / (1 - alpha)
        a, b, c, opacity = conic_opacity[own].astype(np.float64).T
        d_alpha[(alpha == 0) | (opacity * density >= 0.99)] = 0
        np.add.at(colour, own, (alpha * left[:-1])[:, None] * grad)
        u, v = d.T
        power = [u * u / -2, -u * v, v * v / -2]
        for k in range(3):
            np.add.at(conic[:, k], own, power[k] * alpha * d_alpha)
        np.add.at(conic[:, 3], own, density * d_alpha)
        np.add.at(centre[:, 0], own, -(a * u + b * v) * alpha * d_alpha)
        np.add.at(centre[:, 1], own, -(b * u + c * v) * alpha * d_alpha)
    return centre, conic, colour
