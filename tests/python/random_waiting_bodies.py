"""Random bodies whose threads work together, for comparing engines bit for bit.

`random_bodies` has threads that go their own ways. Here they meet: in functions of the simdgroup and of the quadgroup
under conditions and in loops, of every type; in threadgroup and device memory that is written before a barrier and read
behind it; in atomics. Rows of threadgroups are whole simdgroups, parts of them and several of them, and accesses go to
memory in strides, to elements of every size, backwards, beyond both ends, and to addresses that wrap.

What a body gives must not depend on the order of its threads. So a thread writes only where no other does (its own
places of each array); others read there only between two barriers, in blocks in which nobody writes; barriers stand
where all threads come that have not returned; of atomics that several threads share nobody looks at the result, and
each place knows one operation. Loops end whatever their bodies do. A NaN is written as a number, since its bits are
free.

Each statement is a line, or a block from a line that ends with a brace to one that begins with one, so that a program
can delete statements (`tools/compare_engines.py`). `WAIT` marks a barrier, which must stay in its block.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import kiln
import numpy as np

# Grid and threadgroup: one simdgroup, several, parts, rows that are whole simdgroups and others, edges that are cut.
SHAPES = [
    ((100, 1, 1), (32, 1, 1)),
    ((200, 1, 1), (64, 1, 1)),
    ((128, 1, 1), (128, 1, 1)),
    ((200, 1, 1), (72, 1, 1)),
    ((27, 20, 1), (16, 16, 1)),
    ((13, 7, 5), (8, 4, 2)),
    ((90, 3, 1), (40, 2, 1)),
    ((100, 3, 1), (96, 2, 1)),
    ((50, 5, 1), (32, 4, 1)),
    ((7, 1, 1), (32, 1, 1)),
    ((3, 70, 1), (1, 64, 1)),
]
PLACES = 256  # of threadgroup arrays, at least one for each thread

# Functions that a body may call. `look` reads the thread's own places only.
HEADER = """
struct Record {
  int count;
  float weight;
  ushort small;
};
METAL_FUNC uint bits(float v) { return isnan(v) ? 1 : as_type<uint>(v); }
METAL_FUNC uint bits(half v) { return isnan(v) ? 1 : as_type<ushort>(v); }
METAL_FUNC int early(int x, int k, uint lane) {
  if (x < 0) return k;
  for (int j = 0; j < 4; ++j) {
    if ((x >> j & 1) && k > j) return x + simd_sum(j + int(lane));
    x = x * 3 + 1;
  }
  return simd_max(x ^ k);
}
METAL_FUNC float sums(thread int* values, int count) {
  float sum = 0;
  for (int j = 0; j < (count & 7); ++j) {
    if (values[j] == 7) return sum;
    sum += values[j] * 0.5f;
  }
  return sum;
}
METAL_FUNC void exchange(thread int* first, thread int* second, bool really) {
  if (!really) return;
  int kept = *first;
  *first = *second;
  *second = kept;
}
METAL_FUNC int look(threadgroup int* values, uint place, int k) {
  if (k < 0) return values[place];
  if (k & 1) values[place] = k;
  return values[place] + k;
}
METAL_FUNC Record changed(Record r, int k) {
  if (k & 1) {
    r.count += k;
    return r;
  }
  r.weight *= 0.5f;
  r.small = ushort(k);
  return r;
}
template <typename T> METAL_FUNC T folded(T v, uint lane) {
  for (ushort d = 16; d > 0; d >>= 1) v += simd_shuffle_down(v, d);
  return lane == 0 ? v : simd_broadcast_first(v);
}
"""

BEGINNING = f"""
uint3 at = thread_position_in_grid, size = threads_per_grid;
uint i = at.x + size.x * (at.y + size.y * at.z);
uint t = thread_index_in_threadgroup, lane = thread_index_in_simdgroup, sg = simdgroup_index_in_threadgroup;
uint3 groups = threadgroups_per_grid, group = threadgroup_position_in_grid;
uint base = {PLACES} * (group.x + groups.x * (group.y + groups.y * group.z));
uint count = threads_per_threadgroup.x * threads_per_threadgroup.y * threads_per_threadgroup.z;
device atomic_int* shared_sums = (device atomic_int*)total;
device atomic_uint* own = (device atomic_uint*)mine + i;
"""

THREADGROUP_ARRAYS = {
    "s": f"threadgroup int s[{PLACES}]; for (uint k = t; k < {PLACES}; k += count) s[k] = int(k) * 7 - 300; WAIT;",
    "sh": f"threadgroup half sh[{2 * PLACES}]; for (uint k = t; k < {2 * PLACES}; k += count) sh[k] = half(k); WAIT;",
    "sb": f"threadgroup uchar sb[{4 * PLACES}]; for (uint k = t; k < {4 * PLACES}; k += count) sb[k] = k; WAIT;",
    "sv": f"threadgroup float4 sv[{PLACES}]; for (uint k = t; k < {PLACES}; k += count) sv[k] = float4(k); WAIT;",
    "sa": "threadgroup atomic_int sa[16]; for (uint k = t; k < 16; k += count) atomic_store_explicit(&sa[k], 0, RELAXED); WAIT;",
}
# What reads any place, and what writes the thread's own.
READS = {
    "s": [
        "a += s[{e} & 255];",
        "b ^= s[(t + 1) & 255];",
        "a -= s[255 - t];",
        "c += s[t ^ 5];",
        "a ^= s[(t * 3) & 255];",
    ],
    "sh": ["h += sh[{e} & 511];", "h = min(h, sh[2 * t]);", "f += sh[(2 * t + 3) & 511];", "f += sh[511 - t];"],
    "sb": ["b += sb[{e} & 1023];", "a += sb[4 * t + 3];", "a -= sb[(t * 4 + 9) & 1023];", "a += sb[t];"],
    "sv": ["f += sv[{e} & 255].x;", "g += sv[t ^ 1][{e} & 3];", "f += sv[255 - t].w;"],
    "scratch": ["a += scratch[base + ({e} & 255)];", "b -= scratch[base + (t ^ 3)];", "c ^= scratch[base + 255 - t];"],
}
WRITES = {
    "s": ["s[t] = {e};", "s[t] += {e};", "a += look(s, t, {e});", "b = look(s, t, {e});", "s[t] ^= s[t] << 3;"],
    "sh": [
        "sh[2 * t] = half({f});",
        "((threadgroup half2*)sh)[t] = half2(half({f}), h);",
        "sh[2 * t + ({e} & 1)] += h;",
    ],
    "sb": ["sb[4 * t + ({e} & 3)] = uchar({e});", "((threadgroup uchar4*)sb)[t] = uchar4({e});", "sb[4 * t] += 3;"],
    "sv": ["sv[t] = float4({f}, g, f, 1);", "sv[t].y = {f};", "sv[t][{e} & 3] = {f};"],
    "scratch": ["scratch[base + t] = {e};", "(scratch + base)[t] += {e};"],
}
BARRIERS = ["mem_flags::mem_threadgroup", "mem_flags::mem_device | mem_flags::mem_threadgroup"]

# Further variables: their beginnings, statements that change them ({e}: an int, {f}: a float, {c}: a bool, {l}: a lane),
# expressions of ints and floats, and ends. One type is one feature, which a body has or has not.
FEATURES: dict[str, tuple[str, list[str], list[str], list[str], list[str]]] = {
    "uint": (
        "uint u = i * 2654435761u;",
        [
            "u = u * 5u + uint({e});",
            "u ^= u >> ({e} & 31);",
            "u /= uint({e});",
            "u %= uint({e}) | 1u;",
            "u += popcount(u);",
        ],
        ["int(u >> 3)", "int(clz(u))", "int(u % 7u)", "(u > {e}u ? 1 : 2)".replace("{e}", "77")],
        ["float(u >> 8)"],
        ["u"],
    ),
    "long": (
        "long l = long(i) * 0x123456789l - 77;",
        [
            "l = l * 6364136223846793005l + {e};",
            "l >>= {e} & 63;",
            "l ^= l << 13;",
            "l = simd_sum(l);",
            "l = simd_max(l);",
            "l = simd_shuffle(l, {l});",
            "l = simd_prefix_exclusive_sum(l);",
            "l /= {e};",
        ],
        ["int(l)", "int(l >> 40)", "int(l > {e})".replace("{e}", "5")],
        ["float(l)"],
        ["uint(l)", "uint(l >> 32)"],
    ),
    "short": (
        "short n16 = short(i * 91);",
        [
            "n16 = short(n16 * 5 + {e});",
            "n16 = simd_sum(n16);",
            "n16 = simd_shuffle_xor(n16, {l});",
            "n16 = simd_prefix_inclusive_sum(n16);",
            "n16 = min(n16, short({e}));",
            "n16 >>= {e} & 15;",
            "n16 = quad_max(n16);",
        ],
        ["int(n16)"],
        ["float(n16)"],
        ["uint(n16)"],
    ),
    "uchar": (
        "uchar n8 = uchar(i);",
        [
            "n8 += uchar({e});",
            "n8 = simd_max(n8);",
            "n8 = simd_xor(n8);",
            "n8 = simd_shuffle_up(n8, {l});",
            "n8 = rotate(n8, uchar({e}));",
            "n8 = quad_broadcast(n8, {l} & 3);",
            "n8 = addsat(n8, uchar({e}));",
        ],
        ["int(n8)"],
        ["float(n8)"],
        ["uint(n8)"],
    ),
    "half": (
        "half h = half(f);",
        [
            "h = h * half(0.75h) + half({f});",
            "h = simd_sum(h);",
            "h = simd_min(h);",
            "h = simd_shuffle(h, {l});",
            "h = fma(h, half({f}), 1.0h);",
            "h = simd_prefix_inclusive_sum(h);",
            "h = {c} ? h : half({e});",
            "h = sqrt(abs(h));",
            "h = folded(h, lane);",
        ],
        ["int(h)"],
        ["float(h)"],
        ["bits(h)"],
    ),
    "short3": (
        "short3 v3(short(i), 3, -7);",
        [
            "v3 = v3.zxy + short3(short({e}));",
            "v3.xz = v3.yx * short2(3, short({e}));",
            "v3[uint({e}) % 3] += short({e});",
            "v3 = simd_sum(v3);",
            "v3 = simd_shuffle_down(v3, {l});",
            "v3 = max(v3, short3(short({e}), 2, 3));",
            "v3 = select(v3, v3.yzx, v3 > short3(short({e})));",
            "v3 >>= short3(1, 2, 3);",
        ],
        ["int(v3.x)", "int(v3[uint(a) % 3])", "int(dot(float3(v3), float3(1)))"],
        ["float(v3.y)"],
        ["uint(v3.x)", "uint(v3.y)", "uint(v3.z)"],
    ),
    "half4": (
        "half4 h4(half(f), 1, 2, half(c));",
        [
            "h4 = h4.wzyx * 0.5h + half4(half({e}));",
            "h4.yw = half2(half({f}), h4.x);",
            "h4[{e} & 3] = half({f});",
            "h4 = simd_sum(h4);",
            "h4 = simd_shuffle_xor(h4, {l});",
            "h4 = quad_sum(h4);",
            "h4 = fma(h4, h4.yyxx, half4(half({e})));",
        ],
        ["int(h4.z)"],
        ["float(h4.w)", "float(dot(h4, h4))"],
        ["bits(h4.x)", "bits(h4.y)", "bits(h4.z)", "bits(h4.w)"],
    ),
    "float3": (
        "float3 f3(f, 2, float(c));",
        [
            "f3 = f3.yzx * {f} + float3({f}, g, 1);",
            "f3.zx = float2({f}, f3.y);",
            "f3[uint({e}) % 3] = {f};",
            "f3 = simd_sum(f3);",
            "f3 = simd_max(f3);",
            "f3 = simd_broadcast(f3, {l});",
            "f3 = cross(f3, float3(1, f, 2));",
            "f3 = clamp(f3, -2.0f, float3({f}, 1, 1));",
            "f3 = simd_prefix_inclusive_sum(f3);",
            "f3 = select(f3, f3.zxy, f3 < float3({f}));",
        ],
        ["int(f3.x)", "int(all(f3 > float3(0)))"],
        ["f3.y", "dot(f3, float3(1, 2, 3))", "f3[uint(b) % 3]"],
        ["bits(f3.x)", "bits(f3.y)", "bits(f3.z)"],
    ),
    "uchar4": (
        "uchar4 c4(uchar(i), 3, 200, uchar(c));",
        [
            "c4 = c4.wxzy + uchar4(uchar({e}));",
            "c4[{e} & 3] ^= uchar({e});",
            "c4 = simd_shuffle(c4, {l});",
            "c4 = simd_or(c4);",
            "c4 = as_type<uchar4>({e});",
            "c4 = as_type<uchar4>(as_type<int>(c4) + {e});",
            "c4.xw = uchar2({e}, 3);",
        ],
        ["as_type<int>(c4)", "int(c4.y)"],
        ["float(c4.x)"],
        ["as_type<uint>(c4)"],
    ),
    "bool4": (
        "bool4 b4(i & 1, true, c > 9, false);",
        [
            "b4 = bool4({c}, b4.x, a > b, any(b4));",
            "b4 = b4.yxwz;",
            "b4 = !b4;",
            "b4[{e} & 3] = {c};",
            "a = any(b4) ? a : {e};",
            "b4 = b4 && bool4({c}, true, b4.w, true);",
            "b4.yz = bool2({c});",
        ],
        ["int(all(b4))", "int(b4.z)", "int(b4[b & 3])"],
        ["float(b4.x)"],
        ["uint(b4.x) + 2 * b4.y + 4 * b4.z + 8 * b4.w"],
    ),
    "int4": (
        "int4 i4(a, b, c, 5);",
        [
            "i4 = i4.yxwz * {e} + int4(1, a, 2, b);",
            "i4 = i4 / int4({e}, 3, a, 0);",
            "i4 = simd_prefix_exclusive_sum(i4);",
            "i4 = simd_shuffle(i4, {l});",
            "i4[{e} & 3] -= {e};",
            "i4 = ((const device int4*)n)[{e} & 63];",
            "i4 = ((const device int4*)n)[i];",
            "i4 = min(i4, i4.x);",
        ],
        ["i4.x", "i4[a & 3]", "(i4.y ^ i4.w)"],
        ["float(i4.z)"],
        ["uint(i4.x)", "uint(i4.y)", "uint(i4.z)", "uint(i4.w)"],
    ),
    "record": (
        "Record r = {int(i), 0.5f, 9};",
        [
            "r.count += {e};",
            "r.weight = {f};",
            "r = changed(r, {e});",
            "r.small = ushort({e});",
            "{ Record kept = r; kept.count = simd_sum(kept.count); r = kept; }",
        ],
        ["r.count", "int(r.small)"],
        ["r.weight"],
        ["uint(r.count)", "bits(r.weight)", "uint(r.small)"],
    ),
    "ints": (
        "int p[8] = {}; for (int k = 0; k < 8; ++k) p[k] = k * a;",
        [
            "p[{e} & 7] += {e};",
            "p[{e} & 7] = p[{e} & 7];",
            "g += sums(p, {e});",
            "exchange(&p[{e} & 7], &p[{e} & 7], {c});",
            "exchange(&a, &p[{e} & 7], {c});",
            "p[3] = simd_sum(p[3]);",
            "for (int k = 0; k < 8; ++k) p[k] ^= p[(k + 1) & 7];",
        ],
        ["p[a & 7]", "p[2]", "p[lane & 7]"],
        ["float(p[b & 7])"],
        [f"uint(p[{k}])" for k in range(8)],
    ),
    "chars": (
        "char pc[16]; for (int k = 0; k < 16; ++k) pc[k] = char(k * c);",
        ["pc[{e} & 15] += char({e});", "pc[{e} & 15] = pc[lane & 15];", "pc[i & 15] = char(simd_max({e}));"],
        ["int(pc[b & 15])", "int(pc[7])"],
        ["float(pc[a & 15])"],
        ["uint(pc[0]) + 3 * uint(pc[5])", "uint(pc[t & 15])", "uint(pc[9])"],
    ),
    "shorts": (
        "short ps[8] = {1, 2, 3};",
        ["ps[{e} & 7] = short({e});", "ps[{e} & 7] *= short({e});", "ps[t & 7] -= ps[{e} & 7];"],
        ["int(ps[a & 7])"],
        ["float(ps[1])"],
        ["uint(ps[0])", "uint(ps[t & 7])", "uint(ps[4])"],
    ),
    "longs": (
        "long pl[4] = {5, -1};",
        ["pl[{e} & 3] += {e};", "pl[{e} & 3] *= pl[{e} & 3] + 3;", "pl[1] = simd_min(pl[{e} & 3]);"],
        ["int(pl[a & 3] >> 7)"],
        ["float(pl[2])"],
        [f"uint(pl[{k}] ^ (pl[{k}] >> 32))" for k in range(4)],
    ),
    "float4s": (
        "float4 pf[4] = {}; pf[1] = float4(f);",
        [
            "pf[{e} & 3] = float4({f}, f, g, {f});",
            "pf[{e} & 3].zx = float2({f}, 2);",
            "pf[{e} & 3] += pf[{e} & 3].wzyx;",
            "pf[{e} & 3][{e} & 3] = {f};",
            "pf[lane & 3] = simd_shuffle_xor(pf[0], 1);",
        ],
        ["int(pf[a & 3].x)"],
        ["pf[b & 3].y", "pf[1][a & 3]"],
        [f"bits(pf[{k}].{x})" for k in range(4) for x in "xyzw"],
    ),
    "records": (
        "Record pr[4] = {};",
        [
            "pr[{e} & 3].count += {e};",
            "pr[{e} & 3].weight = {f};",
            "pr[{e} & 3] = changed(pr[{e} & 3], {e});",
            "pr[{e} & 3].small += ushort({e});",
            "pr[2] = pr[{e} & 3];",
        ],
        ["pr[a & 3].count", "int(pr[1].small)"],
        ["pr[b & 3].weight"],
        [f"uint(pr[{k}].count) ^ bits(pr[{k}].weight) ^ uint(pr[{k}].small)" for k in range(4)],
    ),
}

# Addresses: of the thread, of lanes in strides, backwards, from offset pointers, beyond the ends, and such that wrap.
INDICES = [
    "i",
    "t",
    "lane",
    "i + 1",
    "i - 5",
    "(uint)(i - 5)",
    "int(i) - 5",
    "2 * i",
    "2 * i + 1",
    "3 * i",
    "4 * i + 2",
    "8 * i",
    "8 * t + 7",
    "150 - int(i)",
    "199 - 2 * int(i)",
    "-int(i)",
    "i * 0x08000001u >> 3",
    "i * 0x40000001u",
    "i + 0xfffffff0u",
    "(i << 29) + i",
    "ulong(i) * 2",
    "long(i) - 3",
    "at.y * 17 + at.x",
    "at.x * 9 + at.y",
    "at.x",
    "at.y",
    "i / 2",
    "i % 5",
    "i % 64",
    "i / 64",
    "(i * 3) & 127",
    "lane * 4 + sg",
    "sg * 32 + lane",
    "sg",
    "7",
    "ushort(i * 3)",
    "uchar(i)",
    "base / 16 + t",
    "u7[1]",
    "i * u7[2]",
    "int(i) * u7[6]",
    "{e}",
    "{e} & 127",
]
LOADS = [
    ("int", "n[{x}]"),
    ("int", "int(xs[{x}])"),
    ("int", "int(xb[{x}])"),
    ("int", "int(xl[{x}])"),
    ("int", "int(xl[{x}] >> 20)"),
    ("int", "(n + i)[{e} & 15]"),
    ("int", "(n + 3 * i)[{k}]"),
    ("int", "int((xs + int(i) - 9)[{k}])"),
    ("int", "int((xb + 4 * i)[{k}])"),
    ("int", "int(((const device uchar*)n)[{x}])"),
    ("int", "int(((const device short*)n)[{x}])"),
    ("int", "int(((const device long*)n)[{x}] >> 9)"),
    ("int", "((const device int2*)n)[{x}].y"),
    ("int", "int(((const device uchar4*)xb)[{x}].z)"),
    ("int", "int(((const device short4*)xs)[{x}].w)"),
    ("int", "(xo + 10)[{x}]"),
    ("int", "u7[{e} & 7]"),
    ("int", "xo[-int(i)]"),
    ("float", "x[{x}]"),
    ("float", "float(xh[{x}])"),
    ("float", "(x + i)[{e} & 15]"),
    ("float", "(x + 2 * i)[{k}]"),
    ("float", "(x + (i - 9))[{k}]"),
    ("float", "((const device float2*)x)[{x}].x"),
    ("float", "((const device float4*)x)[{x}].z"),
    ("float", "float(((const device half4*)xh)[{x}].y)"),
    ("float", "float(((const device half2*)xh)[{x}].x)"),
    ("float", "dot(((const device float4*)x)[{x}], float4(1, 2, 3, 4))"),
]
# The thread's own places: i has 8 of w8, 3 of w16 from either end, 3 of wf (every `total`th), 2 of w64, 4 of wv. The
# arrays are a little too short for all threads.
STORES = [
    "w8[8 * i + ({e} & 7)] = uchar({e});",
    "w8[8 * i + 3] ^= uchar({e});",
    "((device uchar4*)w8)[2 * i + 1] = uchar4({e}, a, b, 1);",
    "((device int*)w8)[2 * i] = {e};",
    "((device long*)w8)[i] += {e};",
    "w16[3 * i + {k3}] = ushort({e});",
    "w16[3 * i + uint({e}) % 3] += 7;",
    "w16[6 * threads - 1 - 3 * i] = ushort({e});",
    "(w16 + 6 * threads)[-3 - int(3 * i)] = ushort({e});",
    "wf[i] = {f};",
    "wf[i + threads] = {f};",
    "wf[i + 2 * threads] += {f};",
    "wf[i + threads * (uint({e}) % 2)] = {f};",
    "wf[{c} ? i : 0x70000000u + i] = {f};",
    "(wf + i)[{c} ? 0u : threads] = {f};",
    "w64[2 * i] = {e};",
    "w64[2 * i + 1] += w64[2 * i] * {e};",
    "w64[2 * i + ({e} & 1)] ^= {e};",
    "((device float4*)wv)[i] = float4({f}, {f}, f, g);",
    "((device float2*)wv)[2 * i + 1] = float2({f}, 2);",
    "((device half4*)wv)[2 * i] = half4(half({e}));",
    "wv[4 * i + {k3}] = {f};",
    "wv[4 * i + ({e} & 3)] = {f};",
    "w16[uint(3 * i - 6) + 6] = ushort({e});",
    "(w64 + 2 * i)[{e} & 1] = {e};",
    "((device int*)w64)[4 * i + ({e} & 3)] = {e};",
    "((device uint2*)w64)[2 * i + 1] = uint2({e}, 1);",
    "((device uchar*)w16)[6 * i + {k3}] = uchar({e});",
    "((device half*)wv)[8 * i + 2 * {k3}] = half({e});",
    "f += wf[i];",
    "f -= wf[i + threads];",
    "a += w8[8 * i + ({e} & 7)];",
    "a ^= int(w64[2 * i + 1]);",
    "b += w16[3 * i + {k3}];",
    "g += ((device float4*)wv)[i].w;",
    "g += wv[4 * i + 2];",
]
ATOMICS = [
    "atomic_fetch_add_explicit(&shared_sums[{e} & 7], {e}, RELAXED);",
    "atomic_fetch_sub_explicit(&shared_sums[{e} & 7], {e}, RELAXED);",
    "atomic_fetch_add_explicit(&shared_sums[i & 7], 1, RELAXED);",
    "atomic_fetch_add_explicit(&shared_sums[3], a, RELAXED);",
    "atomic_fetch_add_explicit(&shared_sums[{c} ? 5 : 9999], a, RELAXED);",
    "atomic_fetch_min_explicit(&shared_sums[8 + ({e} & 7)], {e}, RELAXED);",
    "atomic_fetch_max_explicit(&shared_sums[16 + ({e} & 7)], {e}, RELAXED);",
    "atomic_fetch_and_explicit(&shared_sums[24 + (i & 7)], {e}, RELAXED);",
    "atomic_fetch_or_explicit(&shared_sums[32 + ({e} & 7)], {e}, RELAXED);",
    "atomic_fetch_xor_explicit(&shared_sums[40 + ({e} & 7)], {e}, RELAXED);",
    "a += int(atomic_fetch_add_explicit(own, uint({e}), RELAXED));",
    "b ^= int(atomic_exchange_explicit(own, uint({e}), RELAXED));",
    "b += int(atomic_fetch_max_explicit(own, uint({e}), RELAXED));",
    "c += int(atomic_load_explicit(own, RELAXED));",
    "{ uint kept = uint({e}); a += atomic_compare_exchange_weak_explicit(own, &kept, uint(b), RELAXED, RELAXED); b ^= int(kept); }",
    "{ int add = {e}, to = 48 + ({e} & 3), old = 0; while (!atomic_compare_exchange_weak_explicit(&shared_sums[to], &old, old + add, RELAXED, RELAXED)); }",
    "{ int most = {e}, to = 52 + ({e} & 3), old = 0; while (old < most && !atomic_compare_exchange_weak_explicit(&shared_sums[to], &old, most, RELAXED, RELAXED)); }",
    "atomic_fetch_add_explicit(&shared_sums[56 + ({e} & 7)], simd_sum({e}), RELAXED);",
    "if (simd_is_first()) atomic_fetch_add_explicit(&shared_sums[4], simd_sum({e}), RELAXED);",
    "if (lane == 0) atomic_fetch_add_explicit(&shared_sums[6], b, RELAXED);",
]
THREADGROUP_ATOMICS = [
    "atomic_fetch_add_explicit(&sa[{e} & 3], {e}, RELAXED);",
    "atomic_fetch_max_explicit(&sa[4 + ({e} & 3)], {e}, RELAXED);",
    "atomic_fetch_or_explicit(&sa[8 + ({e} & 3)], {e}, RELAXED);",
    "atomic_fetch_xor_explicit(&sa[12 + (t & 3)], {e}, RELAXED);",
    "atomic_fetch_add_explicit(&sa[1], 1, RELAXED);",
]
# Of an int and of a float, by name.
LANES_OF_INTS = [
    *(f"{g}_{o}({{e}})" for g in ("simd", "quad") for o in ("sum", "product", "min", "max", "and", "or", "xor")),
    *(f"{g}_prefix_{k}_sum({{e}})" for g in ("simd", "quad") for k in ("inclusive", "exclusive")),
    "simd_prefix_inclusive_product({e})",
    "simd_prefix_exclusive_product({e})",
    *(f"simd_{o}({{e}}, {{l}})" for o in ("shuffle", "shuffle_up", "shuffle_down", "shuffle_xor", "broadcast")),
    *(f"simd_shuffle_rotate_{o}({{e}}, {{l}})" for o in ("up", "down")),
    *(f"simd_shuffle_and_fill_{o}({{e}}, {{e}}, {{l}})" for o in ("up", "down")),
    *(f"quad_{o}({{e}}, {{l}} & 3)" for o in ("shuffle", "shuffle_up", "shuffle_down", "shuffle_xor", "broadcast")),
    "simd_broadcast_first({e})",
    "quad_broadcast_first({e})",
    "int(simd_vote::vote_t(simd_ballot({c})))",
    "int(simd_vote::vote_t(simd_active_threads_mask()))",
    "int(quad_vote::vote_t(quad_ballot({c})))",
    "popcount(int(simd_vote::vote_t(simd_ballot({c}))))",
    "int(simd_is_first())",
    "int(quad_is_first())",
    "folded({e}, lane)",
    "early({e}, {e}, lane)",
    "int(simd_sum(uint({e})))",
    "int(simd_max(uint({e})))",
    "int(simd_min(ushort({e})))",
    "int(simd_sum(char({e})))",
]
LANES_OF_FLOATS = [
    *(f"{g}_{o}({{f}})" for g in ("simd", "quad") for o in ("sum", "product", "min", "max")),
    *(f"{g}_prefix_{k}_sum({{f}})" for g in ("simd", "quad") for k in ("inclusive", "exclusive")),
    "simd_prefix_inclusive_product({f})",
    *(f"simd_{o}({{f}}, {{l}})" for o in ("shuffle", "shuffle_up", "shuffle_down", "shuffle_xor", "broadcast")),
    *(f"quad_{o}({{f}}, {{l}} & 3)" for o in ("shuffle", "shuffle_up", "shuffle_down", "shuffle_xor")),
    "simd_broadcast_first({f})",
    "float(simd_sum(half({f})))",
    "folded({f}, lane)",
]
LANES = ["0", "1", "5", "16", "31", "40", "lane", "ushort({e} & 31)", "ushort({e} & 7)", "ushort({e})", "31 - lane"]


class Body:
    """The text of one random body, and how it is launched."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        r = self.random = random.Random(seed)
        self.grid, self.threadgroup = r.choice(SHAPES)
        self.threads = self.grid[0] * self.grid[1] * self.grid[2]
        self.names = 0
        self.counters: list[str] = []
        # Most are small, since there are more of them in a second.
        self.depth, most, features = (3, 6, 3) if seed % 5 == 0 else (2, 3, 2)
        self.waits = r.random() < 0.65
        self.features = r.sample(list(FEATURES), r.randint(1, features))
        if "half" not in self.features:
            self.features.append("half")
        self.ints = [e for name in self.features for e in FEATURES[name][2]]
        self.floats = [e for name in self.features for e in FEATURES[name][3]]
        self.changes = [e for name in self.features for e in FEATURES[name][1]]
        self.memories = r.sample(["s", "sh", "sb", "sv", "scratch"], r.randint(0, 2) if self.waits else 0)
        self.has_threadgroup_atomics = self.waits and r.random() < 0.25
        self.source = "\n".join(
            [
                *BEGINNING.strip().split("\n"),
                f"uint threads = {self.threads}u;",
                *(THREADGROUP_ARRAYS[m] for m in self.memories if m in THREADGROUP_ARRAYS),
                *([THREADGROUP_ARRAYS["sa"]] if self.has_threadgroup_atomics else []),
                "int a = n[i], b = int(i), c = int(lane);",
                "float f = x[i], g = 0.5f;",
                *(FEATURES[name][0] for name in sorted(self.features, key=list(FEATURES).index)),
                *(line for _ in range(r.randint(2, most)) for line in self.together(2)),
                "uint hash = 2166136261u;",
                *(
                    f"hash = (hash ^ ({value})) * 16777619u;"
                    for value in [
                        *["uint(a)", "uint(b)", "uint(c)", "bits(f)", "bits(g)"],
                        *(value for name in self.features for value in FEATURES[name][4]),
                    ]
                ),
                "out[i] = hash;",
                *(
                    [
                        "{",
                        "WAIT;",
                        "if (t < 16) {",
                        "scratch[base + t] = atomic_load_explicit(&sa[t], RELAXED);",
                        "}",
                        "}",
                    ]
                    if self.has_threadgroup_atomics
                    else []
                ),
            ]
        )
        self.header = (
            "#define RELAXED memory_order_relaxed\n"
            f"#define WAIT threadgroup_barrier({r.choice(BARRIERS) if 'scratch' not in self.memories else BARRIERS[1]})\n"
            f"#define WAIT_SIMDGROUP simdgroup_barrier({BARRIERS[1]})\n" + HEADER
        )

    # ---- Expressions

    def fill(self, template: str, depth: int = 1) -> str:
        """The template with random expressions in its gaps."""
        gaps: dict[str, Callable[[], str]] = {
            "{e}": lambda: self.integer(depth),
            "{f}": lambda: self.floating(depth),
            "{c}": lambda: self.condition(),
            "{l}": lambda: self.fill(self.random.choice(LANES), 0),
            "{x}": lambda: self.fill(self.random.choice(INDICES), 0),
            "{k}": lambda: str(self.random.choice([-4, -1, 0, 1, 2, 5])),
            "{k3}": lambda: str(self.random.randint(0, 2)),
        }
        for gap, make in gaps.items():
            while gap in template:
                template = template.replace(gap, make(), 1)
        return template

    def load(self, kind: str, depth: int) -> str:
        return self.fill(self.random.choice([text for k, text in LOADS if k == kind]), depth)

    def integer(self, depth: int = 2) -> str:
        r = self.random
        if depth <= 0 or r.random() < 0.3:
            choices = ["a", "b", "c", "a", "b", str(r.randint(-9, 40)), "int(i)", "int(lane)", "u7[1]", "int(f)"]
            return r.choice([*choices, *self.ints, *self.counters, *self.counters])
        kind = r.random()
        if kind < 0.1:
            return self.fill(r.choice(LANES_OF_INTS), depth - 1)
        if kind < 0.25:
            return self.load("int", depth - 1)
        if kind < 0.35:
            one, two = self.integer(depth - 1), self.integer(0)
            return r.choice(
                [
                    f"abs({one})",
                    f"min({one}, {two})",
                    f"max({one}, {two})",
                    f"popcount({one})",
                    f"clz({one})",
                    f"clamp({one}, -5, 90)",
                    f"mulhi({one}, {two})",
                    f"rotate({one}, {two})",
                    f"({self.condition()} ? {one} : {two})",
                    f"int(uint({one}) / uint({two}))",
                    f"int(uint({one}) >> ({two} & 31))",
                    f"int(char({one}))",
                    f"int(ushort({one}))",
                    f"absdiff({one}, {two})",
                    f"hadd({one}, {two})",
                    f"int({self.floating(depth - 1)})",
                ]
            )
        operator = r.choice(["+", "-", "*", "+", "-", "/", "%", "&", "|", "^", "<<", ">>"])
        return f"({self.integer(depth - 1)} {operator} {self.integer(depth - 1)})"

    def floating(self, depth: int = 2) -> str:
        r = self.random
        if depth <= 0 or r.random() < 0.3:
            return r.choice(["f", "g", "f", "g", f"{r.uniform(-2, 2):.3f}f", "float(a)", "float(c)", *self.floats])
        kind = r.random()
        if kind < 0.1:
            return self.fill(r.choice(LANES_OF_FLOATS), depth - 1)
        if kind < 0.3:
            return self.load("float", depth - 1)
        if kind < 0.5:
            one, two = self.floating(depth - 1), self.floating(0)
            return r.choice(
                [
                    f"fma({one}, {two}, f)",
                    f"min({one}, {two})",
                    f"max({one}, {two})",
                    f"sqrt(abs({one}))",
                    f"float(half({one}))",
                    f"floor({one})",
                    f"rint({one})",
                    f"fract({one})",
                    f"({self.condition()} ? {one} : {two})",
                    f"clamp({one}, -1.0f, 8.0f)",
                    f"({one} / {two})",
                    f"mix({one}, {two}, 0.25f)",
                    f"float(bfloat({one}))",
                    f"exp(min({one}, 3.0f))",
                    f"step({one}, {two})",
                ]
            )
        return f"({self.floating(depth - 1)} {r.choice(['+', '-', '*'])} {self.floating(depth - 1)})"

    def condition(self) -> str:
        r = self.random
        return r.choice(
            [
                f"{self.integer(1)} {r.choice(['<', '>', '==', '!=', '<=', '>='])} {self.integer(1)}",
                f"{self.floating(1)} {r.choice(['<', '>=', '=='])} {self.floating(1)}",
                f"(b & {r.randint(1, 7)}) == {r.randint(0, 3)}",
                f"(c & {1 << r.randint(0, 4)}) != 0",
                f"i < {r.randint(1, self.threads)}u",
                f"lane {r.choice(['<', '>', '!='])} {r.randint(0, 31)}u",
                f"t {r.choice(['<', '>='])} {r.randint(1, 70)}u",
                "sg == 0",
                "h > 0.25h",
                "(a < b && f < g)",
                f"(c > {r.randint(0, 31)} || {self.integer(0)} > 3)",
                f"simd_any({self.integer(1)} > {r.randint(-9, 99)})",
                f"simd_all({self.integer(0)} < {r.randint(-9, 99)})",
                f"(simd_sum({self.integer(0)}) & 1) != 0",
                "simd_is_first()",
                f"isfinite({self.floating(0)})",
            ]
        )

    def uniform(self) -> str:
        """A condition on which all threads of a threadgroup agree."""
        r = self.random
        return r.choice(
            [
                f"u7[{r.randint(0, 6)}] {r.choice(['<', '>', '!='])} {r.randint(0, 6)}",
                "group.x == 0",
                "(group.x & 1) == 1",
                "scale > 2",
                "n[3] > n[4]",
                *(f"({name} & 1) == 0" for name in self.counters if name.startswith("turn")),
            ]
        )

    # ---- Statements

    def simple(self) -> str:
        r = self.random
        kind = r.random()
        if kind < 0.12:
            return f"{r.choice('abc')} {r.choice(['=', '+=', '^=', '-='])} {self.integer()};"
        if kind < 0.22:
            return f"{r.choice('fg')} {r.choice(['=', '+=', '-='])} {self.floating()};"
        if kind < 0.32:
            return self.fill(f"{r.choice('abc')} {r.choice(['=', '+=', '^='])} {r.choice(LANES_OF_INTS)};")
        if kind < 0.37:
            return self.fill(f"{r.choice('fg')} {r.choice(['=', '+='])} {r.choice(LANES_OF_FLOATS)};")
        if kind < 0.43:
            return f"{r.choice('abc')} {r.choice(['+=', '^='])} {self.load('int', 0)};"
        if kind < 0.48:
            return f"{r.choice('fg')} += {self.load('float', 0)};"
        if kind < 0.63:
            return self.fill(r.choice(STORES))
        if kind < 0.69:
            kinds = ATOMICS + THREADGROUP_ATOMICS * self.has_threadgroup_atomics
            return self.fill(r.choice(kinds), 0)
        if kind < 0.71:
            return "WAIT_SIMDGROUP;"
        if kind < 0.78 and self.memories:
            return self.fill(r.choice(WRITES[r.choice(self.memories)]))
        return self.fill(r.choice(self.changes))

    def block(self, depth: int, **inside: Any) -> list[str]:
        count = self.random.randint(1, 3)
        return [line for _ in range(count) for line in self.statement(depth, **inside)]

    def counted(self, name: str, depth: int, **inside: Any) -> list[str]:
        """A block in which a counter may be read."""
        self.counters.append(name)
        lines = self.block(depth, **inside)
        self.counters.pop()
        return lines

    def statement(self, depth: int, *, in_loop: bool = False, in_switch: bool = False, reads: str = "") -> list[str]:
        """One that threads may go through differently. In a block that `reads` a memory nobody writes to it."""
        r = self.random
        inside: dict[str, Any] = {"in_loop": in_loop, "in_switch": in_switch, "reads": reads}
        if reads and r.random() < 0.5:
            return [self.fill(r.choice(READS[reads]))]
        if depth == 0 or r.random() < 0.4:
            line = self.simple()
            return [line] if not reads or not self.writes(line, reads) else [self.fill(r.choice(READS[reads]))]
        kind = r.choice(["if", "if", "else", "for", "while", "do", "switch", "leave", "lanes", "strided"])
        if kind == "leave":
            how = [] if not in_loop else ["continue;"] if in_switch else ["break;", "continue;"]
            if not how or r.random() < 0.15:
                how = ["{ out[i] = uint(a) ^ bits(f); return; }"]
            if r.random() < 0.3:
                return self.certain(r.choice(how))
            return [f"if ({self.condition()}) {r.choice(how)}"]
        if kind == "if":
            return [f"if ({self.condition()}) {{", *self.block(depth - 1, **inside), "}"]
        if kind == "else":
            first = self.block(depth - 1, **inside)
            return [f"if ({self.condition()}) {{", *first, "} else {", *self.block(depth - 1, **inside), "}"]
        if kind == "switch":
            inside["in_switch"] = True
            lines = [f"switch ({self.integer(1)} & {r.choice([3, 7])}) {{"]
            for case in r.sample(range(4), 3):
                lines += [f"case {case}: {{", *self.block(depth - 1, **inside), "}"]
                if r.random() < 0.7:
                    lines.append("break;")
            return [*lines, "default: b += 1;", "}"]
        self.names += 1
        inside["in_loop"], inside["in_switch"] = True, False
        if kind in ("lanes", "strided"):
            return self.strided(depth, inside)
        name = f"k{self.names}"
        block = self.counted(name, depth - 1, **inside)
        most = r.randint(2, 5)
        if kind == "for":
            bound = r.choice(
                [str(most), f"min({most}, b & 7)", f"(c % {most + 1})", f"min({most}, u7[{r.randint(0, 3)}])"]
            )
            return [f"for (int {name} = 0; {name} < {bound}; ++{name}) {{", *block, "}"]
        if kind == "while":
            head = f"for (int {name} = 0; {name} < {most} && ({self.condition()}); ++{name}) {{"
            return [head, *block, "}"]
        return ["{", f"int {name} = 0;", "do {", *block, f"}} while (++{name} < {most} && ({self.condition()}));", "}"]

    def certain(self, leave: str) -> list[str]:
        """Threads leave behind an exchange; that all of them do is known only where a loop is unrolled."""
        r = self.random
        self.names += 1
        count, turns = f"count{self.names}", r.randint(2, 4)
        return [
            f"if ({self.condition()}) {{",
            f"int {count} = 0;",
            f"for (int k{self.names} = 0; k{self.names} < {turns}; ++k{self.names}) {count} += 2;",
            self.fill(f"{r.choice('abc')} ^= {r.choice(LANES_OF_INTS)};"),
            f"if ({count} == {2 * turns}) {leave}",
            self.simple(),
            "}",
        ]

    def strided(self, depth: int, inside: dict[str, Any]) -> list[str]:
        """A loop in which lanes take turns at elements, up or down."""
        r = self.random
        name = f"j{self.names}"
        end = r.choice(["u7[4]", "u7[5]", "64", "96", "100", "31", "n[7] & 63", "scale * 16"])
        head = r.choice(
            [
                f"for (uint {name} = lane; {name} < uint({end}); {name} += 32) {{",
                f"for (int {name} = int(lane); {name} < {end}; {name} += 32) {{",
                f"for (uint {name} = lane; {name} <= uint({end}); {name} += 32) {{",
                f"for (int {name} = {end} - 1 - int(lane); {name} >= 0; {name} -= 32) {{",
                f"for (int {name} = int(lane) + 96; {name} > {end}; {name} -= 32) {{",
                f"for (uint {name} = t; {name} < uint({end}); {name} += count) {{",
                f"for (uint {name} = lane * 4; {name} < uint({end}); {name} += 128) {{",
                f"for (uint {name} = sg * 32 + lane; {name} < uint({end}); {name} += 64) {{",
                f"for (ushort {name} = ushort(lane); {name} < ushort({end}); {name} += 32) {{",
                f"for (uint {name} = i; {name} < threads; {name} += 64) {{",
                f"for (ulong {name} = lane; {name} < ulong({end}); {name} += 32) {{",
                f"for (int {name} = int(lane) - 32; {name} < {end}; {name} += 32) {{",
            ]
        )
        bodies = [
            f"f += x[{name}];",
            f"a += n[{name}];",
            f"g = fma(x[{name}], x[{name} + 1], g);",
            f"a += simd_sum(n[{name}]);",
            f"b ^= int(xb[4 * {name} + 1]);",
            f"f += float(xh[{name}]) * float(xh[{name} / 2]);",
            f"if (n[{name}] > 30) break;",
            f"if (n[{name}] < -40) continue;",
            f"a ^= n[{name} % 64] + n[{name} / 32];",
            f"b += int({name} / 32) * 3 + int({name} % 96);",
            f"if ({name} > 63) a += 5;",
            f"if ({name} == 40) c = simd_max(a);",
        ]
        lines = r.sample(bodies, r.randint(1, 3))
        if r.random() < 0.3:
            lines += self.counted(f"int({name})", depth - 1, **inside)
        return [head, *lines, "}"]

    @staticmethod
    def writes(line: str, memory: str) -> bool:
        """Whether the line may write to a memory, judged by its names."""
        marks = {"s": ("s[t]", "look("), "sh": ("sh[", "sh)["), "sb": ("sb[", "sb)["), "sv": ("sv[",)}
        return any(mark in line for mark in marks.get(memory, ("scratch",)))

    def together(self, depth: int) -> list[str]:
        """One that all threads of the threadgroup go through that have not returned."""
        r = self.random
        kind = r.choice(["alone", "alone", "alone", "phase", "phase", "simdgroup", "for", "if", "while", "return"])
        if not self.waits and kind in ("phase", "simdgroup"):
            kind = "alone"
        if kind == "phase" and not self.memories:
            return ["WAIT;"]
        if kind == "return":
            return [f"if ({self.condition()}) {{ out[i] = uint(a) ^ bits(f); return; }}"]
        if kind == "alone" or depth == 0:
            return self.statement(self.depth)
        if kind == "phase":
            memory = r.choice(self.memories)
            return [
                "{",
                *(self.fill(r.choice(WRITES[memory])) for _ in range(r.randint(0, 1))),
                *self.block(1),
                "WAIT;",
                *self.reading(memory),
                "WAIT;",
                "}",
            ]
        if kind == "simdgroup":
            if "s" not in self.memories:
                return ["WAIT;"]
            head = r.choice(["{", "if ((t >> 5) == 1) {", f"if (sg != {r.randint(0, 3)}) {{", "if (simd_any(a > 9)) {"])
            place = r.choice(["lane ^ 1", f"({self.integer(1)} & 31)", "31 - lane", "(lane + 1) & 31"])
            write, read = f"s[t] = {self.integer()};", f"a += s[(t & ~31u) | ({place})];"
            return [head, write, "WAIT_SIMDGROUP; // WAIT", read, "WAIT_SIMDGROUP; // WAIT", "}"]
        inner = [line for _ in range(r.randint(1, 2)) for line in self.together(depth - 1)]
        if kind == "if":
            lines = [f"if ({self.uniform()}) {{", *inner]
            if r.random() < 0.4:
                lines += ["} else {", *self.together(depth - 1)]
            return [*lines, "}"]
        self.names += 1
        name = f"turn{self.names}"
        self.counters.append(name)
        inner = [line for _ in range(r.randint(1, 2)) for line in self.together(depth - 1)]
        if r.random() < 0.3:
            inner.append(f"if ({self.uniform()}) {r.choice(['break;', 'continue;'])}")
        self.counters.pop()
        bound = r.choice(["u7[0]", "u7[1]", "3", "scale"])
        if kind == "for":
            return [f"for (int {name} = 0; {name} < {bound}; ++{name}) {{", *inner, "}"]
        return [f"for (int {name} = 3; {name}-- > 0 && {self.uniform()};) {{", *inner, "}"]

    def reading(self, memory: str) -> list[str]:
        """Reads of what others have written, in any flow of control."""
        r = self.random
        lines = [self.fill(r.choice(READS[memory]))]
        if r.random() < 0.5:
            lines += self.statement(2, reads=memory)
        return lines


Outputs = dict[str, tuple[int, str]]


def inputs(seed: int) -> dict[str, Any]:
    """Shorter than threads reach. `u7` comes as constant memory, `xo` from its middle, backwards."""
    numbers = np.random.default_rng(seed)
    turned = numbers.integers(-50, 50, 150).astype(np.int32)
    return {
        "x": numbers.standard_normal(numbers.integers(60, 400)).astype(np.float32),
        "n": numbers.integers(-50, 50, numbers.integers(60, 400)).astype(np.int32),
        "xh": numbers.standard_normal(numbers.integers(60, 300)).astype(np.float16),
        "xs": numbers.integers(-(2**15), 2**15, numbers.integers(60, 300)).astype(np.int16),
        "xb": numbers.integers(0, 256, numbers.integers(60, 900)).astype(np.uint8),
        "xl": numbers.integers(-(2**62), 2**62, numbers.integers(60, 200)).astype(np.int64),
        "xo": turned[::-1],
        "u7": np.array(
            [
                *numbers.integers(0, 5, 4),
                *numbers.choice([0, 1, 31, 32, 33, 64, 95, 96, 100], 2),
                numbers.integers(-4, 9),
            ],
            np.int32,
        ),
        "scale": int(numbers.integers(0, 6)),
    }


def outputs(threads: int, grid: tuple[int, int, int], threadgroup: tuple[int, int, int]) -> Outputs:
    groups = 1
    for extent, size in zip(grid, threadgroup, strict=True):
        groups *= -(-extent // min(extent, size))
    return {
        "out": (threads, "uint32"),
        "w8": (8 * threads - 3, "uint8"),
        "w16": (6 * threads, "uint16"),
        "wf": (3 * threads - 7, "float32"),
        "w64": (2 * threads - 1, "int64"),
        "wv": (4 * threads - 6, "float32"),
        "scratch": (PLACES * groups, "int32"),
        "mine": (threads - 1, "uint32"),
        "total": (64, "int32"),
    }


def run(body: Body, source: str | None = None, header: str | None = None) -> tuple[list[np.ndarray], kiln.Launch]:
    """What the body gave, or another text in its place, and its launch."""
    arrays = inputs(body.seed)
    results = outputs(body.threads, body.grid, body.threadgroup)
    kernel = kiln.metal_kernel(
        f"random_waiting_{body.seed}",
        list(arrays),
        list(results),
        body.source if source is None else source,
        header=body.header if header is None else header,
        ensure_row_contiguous=False,
    )
    given = kernel(
        inputs=list(arrays.values()),
        output_shapes=[(size,) for size, _ in results.values()],
        output_dtypes=[dtype for _, dtype in results.values()],
        grid=body.grid,
        threadgroup=body.threadgroup,
        init_value=0,
    )
    return given, kernel.history[0]


def results(seed: int) -> tuple[list[np.ndarray], kiln.Launch]:
    """What the body of this seed gave, and its launch."""
    return run(Body(seed))
