"""Kernels whose threads index arrays of their own by data: histograms, tables, stacks, sorts, sets.

For ``make bench-passes`` (``python -m bench.passes --kernels bench/private_arrays.py``) and for comparisons of the CPU's
engines. Each thread reads 32 numbers of a row of its own and writes one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

THREADS, ROW = 1 << 15, 32


@dataclass
class Problem:
    name: str
    body: str
    inputs: dict[str, np.ndarray]
    outputs: dict[str, tuple[tuple[int, ...], str]] = field(default_factory=lambda: {"y": ((THREADS,), "uint32")})
    grid: tuple[int, int, int] = (THREADS, 1, 1)
    tg: tuple[int, int, int] = (256, 1, 1)
    header: str = ""
    dialect: str = "metal"
    atomic: bool = False
    template: Any = None
    init: float | None = None
    math_mode: str | None = None


_BEGIN = "uint i = thread_position_in_grid.x; device const uint* row = x + i * 32;"

_BODIES = {
    "histogram": """
uint bins[16] = {};
for (int j = 0; j < 32; ++j) bins[row[j] & 15]++;
uint sum = 0;
for (int j = 0; j < 16; ++j) sum = sum * 3 + bins[j];
y[i] = sum;""",
    "histogram of remainders": """
uint bins[10] = {};
for (int j = 0; j < 32; ++j) bins[row[j] % 10]++;
uint sum = 0;
for (int j = 0; j < 10; ++j) sum = sum * 3 + bins[j];
y[i] = sum;""",
    "table": """
float table[64];
for (int j = 0; j < 64; ++j) table[j] = f[j] * float(i & 7);
float sum = 0;
for (int j = 0; j < 32; ++j) sum = sum * 0.5f + table[row[j] & 63];
y[i] = uint(sum * 100);""",
    "stack": """
uint stack[24], top = 0, sum = 0, bits = row[0];
stack[top++] = 1;
for (int n = 0; top > 0 && n < 60; ++n) {
  uint node = stack[--top];
  sum = sum * 7 + node;
  if (node < 1024) {
    if (bits >> (node % 13) & 1) stack[top++] = 2 * node;
    if (bits >> (node % 17) & 1) stack[top++] = 2 * node + 1;
  }
}
y[i] = sum;""",
    "insertion sort": """
uint sorted[16];
for (int j = 0; j < 16; ++j) {
  uint v = row[j];
  int at = j;
  for (; at > 0 && sorted[at - 1] > v; --at) sorted[at] = sorted[at - 1];
  sorted[at] = v;
}
uint sum = 0;
for (int j = 0; j < 16; ++j) sum = sum * 3 + sorted[j];
y[i] = sum;""",
    "delay line": """
float line[32] = {};
uint delay = row[0] % 31 + 1;
float sum = 0;
for (uint n = 0; n < 128; ++n) {
  float v = line[(n - delay) & 31] * 0.7f + float(row[n & 31] & 255);
  line[n & 31] = v;
  sum += v;
}
y[i] = uint(sum);""",
    "shuffle": """
uint order[16];
for (uint j = 0; j < 16; ++j) order[j] = j;
for (uint j = 15; j > 0; --j) {
  uint other = row[j] % (j + 1), kept = order[j];
  order[j] = order[other];
  order[other] = kept;
}
uint sum = 0;
for (int j = 0; j < 16; ++j) sum = sum * 5 + order[j];
y[i] = sum;""",
    "heap": """
float heap[8];
for (int j = 0; j < 8; ++j) heap[j] = 1e30f;
for (int j = 0; j < 32; ++j) {
  float v = float(row[j] >> 8);
  if (v >= heap[0]) continue;
  int at = 0;
  while (true) {
    int child = 2 * at + 1;
    if (child >= 8) break;
    if (child + 1 < 8 && heap[child + 1] > heap[child]) ++child;
    if (heap[child] <= v) break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = v;
}
float sum = 0;
for (int j = 0; j < 8; ++j) sum += heap[j];
y[i] = uint(sum);""",
    "stream cipher": """
uint state[64];
for (uint j = 0; j < 64; ++j) state[j] = j;
uint b = 0;
for (uint a = 0; a < 64; ++a) {
  b = (b + state[a] + (row[a & 15] & 63)) & 63;
  uint kept = state[a];
  state[a] = state[b];
  state[b] = kept;
}
uint sum = 0, a = 0;
b = 0;
for (int n = 0; n < 32; ++n) {
  a = (a + 1) & 63;
  b = (b + state[a]) & 63;
  uint kept = state[a];
  state[a] = state[b];
  state[b] = kept;
  sum = sum * 3 + state[(state[a] + state[b]) & 63];
}
y[i] = sum;""",
    "disjoint sets": """
uint parent[16];
for (uint j = 0; j < 16; ++j) parent[j] = j;
for (int e = 0; e < 24; ++e) {
  uint a = row[e] & 15, b = row[e] >> 4 & 15;
  while (parent[a] != a) a = parent[a];
  while (parent[b] != b) b = parent[b];
  if (a != b) parent[max(a, b)] = min(a, b);
}
uint sum = 0;
for (int j = 0; j < 16; ++j) sum = sum * 3 + parent[j];
y[i] = sum;""",
    "clipped polygon": """
float px[8], py[8];
int n = 4;
px[0] = 0, py[0] = 0, px[1] = 1, py[1] = 0, px[2] = 1, py[2] = 1, px[3] = 0, py[3] = 1;
for (int e = 0; e < 3; ++e) {
  float a = float(row[e] & 255) / 128 - 1, b = float(row[e] >> 8 & 255) / 128 - 1, c = -0.3f;
  float qx[8], qy[8];
  int m = 0;
  for (int j = 0; j < n; ++j) {
    int next = j + 1 == n ? 0 : j + 1;
    float here = a * px[j] + b * py[j] + c, there = a * px[next] + b * py[next] + c;
    if (here <= 0 && m < 8) qx[m] = px[j], qy[m++] = py[j];
    if ((here < 0) != (there < 0) && m < 8) {
      float t = here / (here - there);
      qx[m] = px[j] + t * (px[next] - px[j]), qy[m++] = py[j] + t * (py[next] - py[j]);
    }
  }
  n = m;
  for (int j = 0; j < n; ++j) px[j] = qx[j], py[j] = qy[j];
}
float sum = 0;
for (int j = 0; j < n; ++j) sum += px[j] * 3 + py[j];
y[i] = uint(sum * 1000);""",
}


def _problem(name: str, body: str) -> Problem:
    random = np.random.default_rng(7)
    inputs: dict[str, np.ndarray] = {"x": random.integers(0, 1 << 31, (THREADS, ROW)).astype(np.uint32)}
    if name == "table":
        inputs["f"] = random.random(64, np.float32)
    return Problem(name.replace(" ", "_"), _BEGIN + body, inputs)


KERNELS: dict[str, Callable[[], Problem]] = {name: partial(_problem, name, body) for name, body in _BODIES.items()}
