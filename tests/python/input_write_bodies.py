"""Bodies that write an input, each with the line of the write and with what the input holds afterwards.

Run as a program, it launches all of them with the engine and the instruction set of its environment.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import kiln
import numpy as np

Array = np.ndarray[Any, Any]

N = 64
METAL_INDEX = "uint i = thread_position_in_grid.x;\n"
CUDA_INDEX = "int i = blockIdx.x * blockDim.x + threadIdx.x;\n"


class Body(NamedTuple):
    """`y` is an output of 64 float32, `x` holds 0 to 63 as float32, and `cache` is what is written."""

    source: str
    place: str
    """Where the first write stands: "source:2:3"."""
    expected: Callable[[Array, Array], Array]
    """The cache afterwards, of the cache before and of x."""
    cache: Array = np.linspace(5, 9, N, dtype=np.float32)
    header: str = ""
    dialect: str = "metal"

    @property
    def text(self) -> str:
        return (METAL_INDEX if self.dialect == "metal" else CUDA_INDEX) + self.source + "\ny[i] = x[i];"


def _x(_: Array, x: Array) -> Array:
    return x


def _plus(number: float) -> Callable[[Array, Array], Array]:
    return lambda cache, _: (cache + cache.dtype.type(number)).astype(cache.dtype)


def _counts(cache: Array, _: Array) -> Array:
    after = cache.copy()
    after[0] += N
    return after


def _first_half(cache: Array, x: Array) -> Array:
    after = cache.copy()
    after[:32] = x[:32]
    return after


def _integers(dtype: str, count: int = N) -> Array:
    return np.arange(count).astype(dtype)


METAL = {
    "C cast": Body("((device float*)cache)[i] = x[i];", "source:2:27", _x),
    "const_cast": Body("const_cast<device float*>(cache)[i] = x[i];", "source:2:37", _x),
    "reinterpret_cast": Body(
        "device uint* p = reinterpret_cast<device uint*>(const_cast<device float*>(cache));\np[i] = as_type<uint>(x[i]);",
        "source:3:6",
        _x,
    ),
    "compound assignment": Body("((device float*)cache)[i] += 3;", "source:2:27", _plus(3)),
    "increment": Body("++((device int*)cache)[i];", "source:2:1", _plus(1), _integers("int32")),
    "variable": Body("device float* c = (device float*)cache;\nc += i;\n*c = x[i];", "source:4:4", _x),
    "volatile": Body("*(volatile device float*)(cache + i) = x[i];", "source:2:38", _x),
    "vector": Body(
        "if (i % 4 == 0) ((device float4*)cache)[i / 4] = *(const device float4*)(x + i);", "source:2:48", _x
    ),
    "packed vector": Body(
        "if (i % 4 == 0) *(device packed_float4*)(cache + i) = packed_float4(x[i], x[i + 1], x[i + 2], x[i + 3]);",
        "source:2:53",
        _x,
    ),
    "component": Body(
        "if (i % 2 == 0) {\n  ((device float2*)cache)[i / 2].y = x[i + 1];\n  ((device float2*)cache)[i / 2].x = x[i];\n}",
        "source:3:34",
        _x,
    ),
    "structure": Body(
        "if (i % 2 == 0) ((device Pair*)cache)[i / 2] = Pair{x[i], x[i + 1]};",
        "source:2:46",
        _x,
        header="struct Pair { float a, b; };",
    ),
    "integer": Body("*(device float*)((ulong)cache + 4 * i) = x[i];", "source:2:40", _x),
    "integer in halves": Body(
        "ulong a = (ulong)(cache + i);\nuint low = uint(a), high = uint(a >> 32);\n"
        "*(device float*)((ulong(high) << 32) | low) = x[i];",
        "source:4:45",
        _x,
    ),
    "function of the header": Body(
        "put((device float*)cache, i, x[i]);",
        "header:2:9",
        _x,
        header="void put(device float* to, uint i, float value) {\n  to[i] = value;\n}",
    ),
    "template of the header": Body(
        "put(const_cast<device float*>(cache) + i, x[i]);",
        "header:1:72",
        _x,
        header="template <typename P, typename V> void put(P to, V value) { if (1) *to = value; }",
    ),
    "member": Body(
        "View view{(device float*)cache};\nview.set(i, x[i]);",
        "header:1:71",
        _x,
        header="struct View { device float* data; void set(uint i, float v) { data[i] = v; } };",
    ),
    "lambda": Body("auto put = [&](uint k) { ((device float*)cache)[k] = x[k]; };\nput(i);", "source:2:52", _x),
    "macro": Body("PUT(cache, i, x[i]);", "source:2:1", _x, header="#define PUT(p, k, v) ((device float*)(p))[k] = (v)"),
    "loop": Body(
        "device float* p = (device float*)cache;\nif (i == 0)\n  for (uint k = 0; k < 64; ++k, ++p) *p = x[k];",
        "source:4:41",
        _x,
    ),
    "input or output": Body(
        "device float* p = i < 32 ? (device float*)cache : y;\np[i] = x[i];", "source:3:6", _first_half
    ),
    "array of pointers": Body(
        "device float* p[2] = {(device float*)cache, y};\np[i / 32][i] = x[i];", "source:3:14", _first_half
    ),
    "array of structures": Body(
        "View v[2] = {{x, (device float*)cache}, {x, y}};\nv[i / 32].to[i] = v[i / 32].from[i];",
        "source:3:17",
        _first_half,
        header="struct View { const device float* from; device float* to; };",
    ),
    "array of integers": Body(
        "size_t address[2] = {(size_t)cache, (size_t)y};\n*(device float*)(address[i / 32] + 4 * i) = x[i];",
        "source:3:43",
        _first_half,
    ),
    "half": Body("((device half*)cache)[i] = half(x[i]);", "source:2:26", lambda c, x: x.astype("float16"),
                 _integers("float16")),
    "int64": Body("((device int64_t*)cache)[i] -= 5;", "source:2:29", _plus(-5), _integers("int64")),
    "bool": Body("((device bool*)cache)[i] = i % 3 == 0;", "source:2:26", lambda c, x: x % 3 == 0,
                 np.zeros(N, bool)),
    "few elements": Body(
        "if (i < 5) ((device float*)cache)[i] = x[i];", "source:2:38", lambda c, x: x[:5], np.ones(5, np.float32)
    ),
    "no dimensions": Body(
        "if (i == 0) *(device float*)&cache = x[7];", "source:2:36", lambda c, x: x[7], np.array(1, np.float32)
    ),
    "atomic add": Body(
        "atomic_fetch_add_explicit((device atomic_uint*)cache, 1u, memory_order_relaxed);",
        "source:2:1", _counts, _integers("uint32"),
    ),
    "atomic store": Body(
        "atomic_store_explicit((device atomic_uint*)cache + i, uint(x[i]), memory_order_relaxed);",
        "source:2:1", lambda c, x: x.astype("uint32"), np.zeros(N, np.uint32),
    ),
    "atomic exchange": Body(
        "atomic_exchange_explicit((device atomic_int*)&cache[i], 9, memory_order_relaxed);",
        "source:2:1", lambda c, x: np.full(N, 9), _integers("int32"),
    ),
    "atomic float": Body(
        "atomic_fetch_add_explicit((device atomic_float*)(cache + i % 8), 1.0f, memory_order_relaxed);",
        "source:2:1", lambda c, x: np.full(8, 8), np.zeros(8, np.float32),
    ),
    "compare and exchange": Body(
        "int expected = 3;\natomic_compare_exchange_weak_explicit((device atomic_int*)cache + i, &expected, 100,"
        " memory_order_relaxed, memory_order_relaxed);",
        "source:3:1", lambda c, x: np.where(c == 3, 100, c), _integers("int32"),
    ),
    "matrix": Body(
        "simdgroup_float8x8 m = make_filled_simdgroup_matrix<float, 8, 8>(2.5f);\n"
        "if (i < 32) simdgroup_store(m, (device float*)cache, 8);",
        "source:3:13", lambda c, x: np.full(N, 2.5),
    ),
    "beside a barrier": Body(
        "threadgroup float t[64];\nt[i] = x[i];\nthreadgroup_barrier(mem_flags::mem_threadgroup);\n"
        "((device float*)cache)[i] = t[63 - i];",
        "source:5:27", lambda c, x: x[::-1],
    ),
}  # fmt: skip

CUDA = {
    "const_cast": Body("const_cast<float*>(cache)[i] = x[i];", "source:2:30", _x, dialect="cuda"),
    "C cast": Body("*((float*)cache + i) = x[i];", "source:2:22", _x, dialect="cuda"),
    "reinterpret_cast": Body(
        "auto* p = reinterpret_cast<unsigned*>(const_cast<float*>(cache));\np[i] = __float_as_uint(x[i]);",
        "source:3:6", _x, dialect="cuda",
    ),
    "float4": Body(
        "if (i % 4 == 0) ((float4*)cache)[i / 4] = ((const float4*)x)[i / 4];", "source:2:41", _x, dialect="cuda"
    ),
    "integer": Body("*(float*)((uintptr_t)cache + 4 * i) = x[i];", "source:2:37", _x, dialect="cuda"),
    "device function": Body(
        "put((float*)cache, i, x[i]);", "header:2:9", _x, dialect="cuda",
        header="__device__ void put(float* to, int i, float value) {\n  to[i] = value;\n}",
    ),
    "atomicAdd": Body("atomicAdd((int*)cache, 1);", "source:2:1", _counts, _integers("int32"), dialect="cuda"),
    "atomicExch": Body(
        "atomicExch((float*)&cache[i], x[i]);", "source:2:1", _x, dialect="cuda"
    ),
    "atomicCAS": Body(
        "atomicCAS((int*)cache + i, 5, 70);", "source:2:1", lambda c, x: np.where(c == 5, 70, c), _integers("int32"),
        dialect="cuda",
    ),
    "memcpy": Body("if (i == 0) memcpy((void*)cache, x, 256);", "source:2:13", _x, dialect="cuda"),
    "memset": Body(
        "if (i == 0) memset((void*)(cache + 32), 0, 128);", "source:2:13",
        lambda c, x: np.where(np.arange(N) < 32, c, 0), dialect="cuda",
    ),
    "few elements": Body(
        "if (i < 3) ((float*)cache)[i] = x[i];", "source:2:31", lambda c, x: x[:3], np.ones(3, np.float32), dialect="cuda"
    ),
    "input or output": Body(
        "float* p = i < 32 ? (float*)cache : y;\np[i] = x[i];", "source:3:6", _first_half, dialect="cuda"
    ),
    "beside a barrier": Body(
        "__shared__ float t[64];\nt[threadIdx.x] = x[i];\n__syncthreads();\n((float*)cache)[i] = t[63 - threadIdx.x];",
        "source:5:20", lambda c, x: x[::-1], dialect="cuda",
    ),
}  # fmt: skip

BODIES = {**METAL, **{f"CUDA, {name}": body for name, body in CUDA.items()}}

X = np.arange(N, dtype=np.float32)
CALL: dict[str, Any] = {"grid": (N, 1, 1), "threadgroup": (N, 1, 1)}


def make(body: Body, library: Any = kiln, **options: Any) -> Any:
    arguments = (f"writes_{body.dialect}", ["x", "cache"], ["y"], body.text, body.header)
    make_kernel = library.metal_kernel if body.dialect == "metal" else library.cuda_kernel
    return make_kernel(*arguments, compile_options=options or None)


def launch(kernel: Any, x: Any, cache: Any, shape: Any = (N,), dtype: Any = "float32") -> Any:
    return kernel(inputs=[x, cache], output_shapes=[shape], output_dtypes=[dtype], **CALL)[0]


def check(name: str, **options: Any) -> None:
    """Launches a body whose cache is writable, and compares it."""
    body = BODIES[name]
    kernel = make(body, writable_inputs=["cache"], **options)
    cache, x = body.cache.copy(), X.copy()
    y = launch(kernel, x, cache)
    expected = body.expected(body.cache, X)
    np.testing.assert_array_equal(cache, expected, err_msg=name)
    np.testing.assert_array_equal(x, X, err_msg=name)
    # Where the body writes one or the other.
    rest = slice(None)
    np.testing.assert_array_equal(y[rest], X[rest], err_msg=name)


if __name__ == "__main__":
    for body_name in BODIES:
        check(body_name)
    print(len(BODIES))
