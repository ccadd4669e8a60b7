"""Gravity among thousands of bodies, with tiles in threadgroup memory.

Every body attracts every other one, so a step of n bodies computes n * n forces. Each thread has one body and reads all n.
The threads of a threadgroup read the same bodies, so they share them: each thread loads one body of a tile into
threadgroup memory, all wait at a barrier, use the tile, and wait again before the next tile overwrites it.

The bodies form two discs, each orbiting a heavy body, which pass each other. A step is a half kick, a drift and a half
kick (leapfrog), which prevents a drift of the energy: a gain in one half of an orbit is lost in the other. Forces are
softened by a small length, so that close encounters do not eject bodies.

What it shows of Metal and of Kiln:

* The same sum with tiles and without. Tiles help on a GPU; on a CPU the caches do the same. The program prints both times.
  The bits are the same.
* `threadgroup` arrays and `threadgroup_barrier(mem_flags::mem_threadgroup)`. All threads of a threadgroup must reach the
  same barrier; Kiln ends a launch in which only some can, and names the line.
* The last threadgroup of a grid is smaller if the threadgroup's size does not divide the grid. `threads_per_threadgroup`
  is the real size, and the tiles of that threadgroup are smaller, too.
* A `float4` for a body, its mass in `w`, read through a cast pointer.
* `dot` of vectors, and `rsqrt`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import NamedTuple

import kiln
import numpy as np
from numpy.typing import NDArray

from examples.gallery import common

TILE = 128
SOFTENING = 0.1

HEADER = """
// The acceleration that `other`, a place and a mass, gives to a body at `place`, and the potential there.
METAL_FUNC float4 pull(float4 other, float3 place, float softening) {
    float3 way = other.xyz - place;
    float inverse = rsqrt(dot(way, way) + softening * softening);
    float potential = other.w * inverse;
    return float4(potential * inverse * inverse * way, -potential);
}
"""

SOURCE = """
    threadgroup float4 tile[TILE];
    uint me = thread_position_in_grid.x, lane = thread_position_in_threadgroup.x;
    uint count = threads_per_grid.x, size = threads_per_threadgroup.x;
    const device float4* all = (const device float4*)bodies;

    float4 my = all[me], sum = 0;
    for (uint begin = 0; begin < count; begin += size) {
        // Behind the last body stands one without mass.
        tile[lane] = begin + lane < count ? all[begin + lane] : float4(0);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint i = 0; i < size; ++i)
            sum += pull(tile[i], my.xyz, softening);
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    // The body itself was among them: it does not pull itself, but it was counted in the potential.
    sum.w += my.w / softening;
    ((device float4*)field)[me] = sum;
"""

DIRECT = """
    uint me = thread_position_in_grid.x;
    const device float4* all = (const device float4*)bodies;
    float4 my = all[me], sum = 0;
    for (uint i = 0; i < threads_per_grid.x; ++i)
        sum += pull(all[i], my.xyz, softening);
    sum.w += my.w / softening;
    ((device float4*)field)[me] = sum;
"""

with_tiles, without_tiles = (
    kiln.metal_kernel(
        name=name, input_names=["bodies", "softening"], output_names=["field"], source=source, header=HEADER
    )
    for name, source in (("n_body", SOURCE), ("n_body_direct", DIRECT))
)


class Run(NamedTuple):
    """What ``simulate`` gives."""

    positions: NDArray[np.float32]
    """(frames, n, 3), the first as given."""
    energies: NDArray[np.float64]
    """(frames,), kinetic and potential, with the gravitational constant 1."""


def field_of(bodies: NDArray[np.float32], softening: float, kernel: kiln.Kernel = with_tiles) -> NDArray[np.float32]:
    """(n, 4): the acceleration of each body, and the potential of all others where it is.

    Args:
      bodies: (n, 4), at least 2: place and mass. An input of fewer than 8 numbers lies in `constant` memory, and the
        kernel's casts are for `device` memory.
      softening: a length that is added to distances, in squares.
      kernel: one of the two above. They add in the same order and give the same bits.
    """
    (field,) = kernel(
        inputs=[bodies, softening],
        template=[("TILE", TILE)],
        grid=(len(bodies), 1, 1),
        threadgroup=(TILE, 1, 1),
        output_shapes=[bodies.shape],
        output_dtypes=[np.float32],
    )
    return field


def simulate(
    bodies: NDArray[np.float32],
    velocities: NDArray[np.float32],
    frames: int,
    steps: int,
    step: float,
    softening: float = SOFTENING,
) -> Run:
    """Positions and energies at the start and after each ``steps`` leapfrog steps of length ``step``.

    Args:
      bodies: (n, 4): place and mass; not changed.
      velocities: (n, 3); not changed.
    """
    bodies, velocities = bodies.copy(), velocities.copy()
    field = field_of(bodies, softening)
    positions, energies = [], []
    for frame in range(frames):
        for _ in range(steps if frame else 0):
            velocities += np.float32(step / 2) * field[:, :3]
            bodies[:, :3] += np.float32(step) * velocities
            field = field_of(bodies, softening)
            velocities += np.float32(step / 2) * field[:, :3]
        mass = bodies[:, 3].astype(np.float64)
        kinetic = 0.5 * mass @ np.square(velocities.astype(np.float64)).sum(axis=1)
        # Each pair is in the potential of both.
        energies.append(kinetic + 0.5 * mass @ field[:, 3].astype(np.float64))
        positions.append(bodies[:, :3].copy())
    return Run(np.array(positions), np.array(energies))


def two_discs(n: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Bodies (n, 4) and velocities (n, 3): two discs of n / 2 bodies, always the same, that will pass each other."""
    generator = np.random.default_rng(8)
    bodies, velocities = [], []
    for side, tilt in ((-1, 0.3), (1, -0.9)):
        count = n // 2 if side < 0 else n - n // 2
        radius = np.sqrt(generator.uniform(0.3**2, 1, count))
        angle = generator.uniform(0, 2 * math.pi, count)
        mass = np.full(count, 0.05 / count)
        radius[0], mass[0] = 0, 1
        # Circles about the heavy body; what the light ones add is small.
        speed = np.sqrt(mass[0] * radius**2 / (radius**2 + SOFTENING**2) ** 1.5)
        place = np.stack([radius * np.cos(angle), radius * np.sin(angle), np.zeros(count)], axis=1)
        velocity = np.stack([-speed * np.sin(angle), speed * np.cos(angle), np.zeros(count)], axis=1)
        turn = np.array([[math.cos(tilt), 0, math.sin(tilt)], [0, 1, 0], [-math.sin(tilt), 0, math.cos(tilt)]])
        place, velocity = place @ turn.T, velocity @ turn.T
        place += side * np.array([1.3, 0.85, 0])
        velocity += side * np.array([-0.5, 0.05, 0])
        bodies.append(np.concatenate([place, mass[:, None]], axis=1))
        velocities.append(velocity)
    return np.concatenate(bodies).astype(np.float32), np.concatenate(velocities).astype(np.float32)


def main(argv: Sequence[str] | None = None) -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--size", type=int, default=1408, help="bodies (%(default)s)")
    parser.add_argument("--steps", type=int, default=40, help="steps from picture to picture (%(default)s)")
    options = parser.parse_args(argv)

    step, frames = 0.025, 6
    bodies, velocities = two_discs(options.size)
    start = time.perf_counter()
    run = simulate(bodies, velocities, frames, options.steps, step)
    seconds = time.perf_counter() - start

    count = options.steps * (frames - 1)
    drift = (run.energies - run.energies[0]) / abs(run.energies[0])
    times = common.medians(
        {
            "with tiles": lambda: field_of(bodies, SOFTENING),
            "without": lambda: field_of(bodies, SOFTENING, without_tiles),
        },
        rounds=5,
    )
    print(f"{options.size} bodies, {count} steps: {seconds:.2f} s")
    for name, milliseconds in times.items():
        rate = options.size**2 / milliseconds / 1e3
        print(f"{name:10} {milliseconds:7.2f} ms for all pulls once, {rate:.0f} million a second")
    print(f"energy {run.energies[0]:.5f} -> {run.energies[-1]:.5f}, at most {abs(drift).max():.1e} of it astray")

    figure = common.new_figure(12, 7.4)
    half = options.size // 2
    for axis, place, frame in zip(figure.subplots(2, 3).flat, run.positions, range(frames), strict=True):
        for part, colour in ((slice(0, half), "#ffb454"), (slice(half, None), "#6cb6ff")):
            axis.scatter(place[part, 0], place[part, 1], s=2.5, color=colour, linewidths=0, alpha=0.8)
        for centre in (0, half):
            axis.scatter(*place[centre, :2], s=25, color="white", zorder=3)
        axis.set(xlim=(-3.6, 3.6), ylim=(-3.1, 3.1), xticks=[], yticks=[], facecolor="#0b1020", aspect="equal")
        axis.set_title(f"time {frame * options.steps * step:.1f}, energy off by {drift[frame]:+.1e}", fontsize=10)
    common.save(figure, options.out, "n_body.png")


if __name__ == "__main__":
    main()
