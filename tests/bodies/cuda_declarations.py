"""What `__shared__` declares: all variables of its declaration, whatever their types.

Each thread writes its element, and after the barrier reads its neighbour's, which a variable of its own would not have.
"""

import numpy as np

from bodies import cuda_body

# A header, the declarations, and the expressions of what a thread writes and of what it reads: `v` is its value.
_FORMS = {
    "struct_here": ("", "__shared__ struct { float a[64]; } s;", "s.a[u] = v;", "s.a[u ^ 1]"),
    "named_struct_here": ("", "__shared__ struct P { float v; unsigned k; } t[64];", "t[u].v = v;", "t[u ^ 1].v"),
    "class_here": ("", "__shared__ class Q { public: float v; } t[64];", "t[u].v = v;", "t[u ^ 1].v"),
    "union_here": ("", "__shared__ union { float f[64]; unsigned b[64]; } s;", "s.f[u] = v;", "__uint_as_float(s.b[u ^ 1])"),
    "enum_here": ("", "__shared__ enum E { P, Q } t[64];", "t[u] = E(u / 2);", "x[int(t[u ^ 1]) * 2 + 1 - u % 2]"),
    "enum_class_here": (
        "", "__shared__ enum class E : int { P, Q } t[64];", "t[u] = E(u / 2);", "x[int(t[u ^ 1]) * 2 + 1 - u % 2]"
    ),
    "word_behind_struct": ("", "struct P { float v; } __shared__ t[64];", "t[u].v = v;", "t[u ^ 1].v"),
    "word_behind_enum": ("", "enum E { P } __shared__ t[64];", "t[u] = E(u / 2);", "x[int(t[u ^ 1]) * 2 + 1 - u % 2]"),
    "struct_before": ("struct P { float v; };", "__shared__ struct P t[64];", "t[u].v = v;", "t[u ^ 1].v"),
    "union_before": ("union U { float a[64]; unsigned b[64]; };", "__shared__ union U t;", "t.a[u] = v;", "t.a[u ^ 1]"),
    "enum_before": ("enum E { P };", "__shared__ enum E t[64];", "t[u] = E(u / 2);", "x[int(t[u ^ 1]) * 2 + 1 - u % 2]"),
    "pointer_too": ("", "__shared__ float *p, t[64];", "t[u] = v; if (u == 7) p = t;", "p[u ^ 1]"),
    "pointer_behind": ("", "__shared__ float t[64], *p;", "t[u] = v; if (u == 7) p = t;", "p[u ^ 1]"),
    "array_of_pointers": ("", "__shared__ float t[64]; __shared__ float* q[64];", "t[u] = v; q[u] = t + u;", "*q[u ^ 1]"),
    "pointer_to_array": ("", "__shared__ float t[4][16], (*p)[16];", "t[u / 16][u % 16] = v; if (u == 0) p = t;", "p[u / 16][(u % 16) ^ 1]"),
    "two_arrays": ("", "__shared__ float a[32], b[32];", "(u % 2 ? a : b)[u / 2] = v;", "(u % 2 ? b : a)[u / 2]"),
    "typedef": ("typedef float tile_t[64];", "__shared__ tile_t t;", "t[u] = v;", "t[u ^ 1]"),
    "alias_template": ("template <class T> using tile_t = T[64];", "__shared__ tile_t<float> t;", "t[u] = v;", "t[u ^ 1]"),
    "decltype": ("", "__shared__ decltype(v + 0) t[64];", "t[u] = v;", "t[u ^ 1]"),
    "word_behind_type": ("", "float __shared__ t[64];", "t[u] = v;", "t[u ^ 1]"),
    "static": ("", "static __shared__ float t[64];", "t[u] = v;", "t[u ^ 1]"),
    "static_behind": ("", "__shared__ static float t[64];", "t[u] = v;", "t[u ^ 1]"),
    "volatile": ("", "__shared__ volatile float t[64];", "t[u] = v;", "t[u ^ 1]"),
    "alignas_behind": ("", "__shared__ alignas(16) float t[64];", "t[u] = v;", "((float4*)t)[u / 4].x * 0 + t[u ^ 1]"),
    "alignas_before": ("", "alignas(16) __shared__ float t[64];", "t[u] = v;", "((float4*)t)[u / 4].x * 0 + t[u ^ 1]"),
    "macro": ("#define TILE(name) __shared__ float name[64]", "TILE(t);", "t[u] = v;", "t[u ^ 1]"),
    "lambda_by_copy": ("", "__shared__ float t[64]; auto put = [=](float a) { t[u] = a; };", "put(v);", "t[u ^ 1]"),
    "in_helper": ("__device__ float* tile() { __shared__ float t[64]; return t; }", "float* t = tile();", "t[u] = v;", "t[u ^ 1]"),
    "in_template": (
        "template <class T> __device__ T* tile() { __shared__ T t[64]; return t; }", "float* t = tile<float>();",
        "t[u] = v;", "t[u ^ 1]",
    ),
    "empty_constructor": (
        "struct Q { float v; __device__ Q() {} __device__ Q(float a) : v(a) {} };", "__shared__ Q t[64];", "t[u].v = v;",
        "t[u ^ 1].v",
    ),
    "defaulted_constructor": (
        "struct Q { float v; Q() = default; __device__ Q(float a) : v(a) {} };", "__shared__ Q t[64];", "t[u].v = v;",
        "t[u ^ 1].v",
    ),
    "constructor_of_member": (
        "struct Q { float v; __device__ Q() {} }; struct R { Q q[2]; int k; };", "__shared__ R t[32];",
        "t[u / 2].q[u % 2].v = v;", "t[u / 2].q[1 - u % 2].v",
    ),
    "constructor_of_base": (
        "struct Q { float v; __device__ Q() {} }; struct R : Q { int k; };", "__shared__ R t[64];", "t[u].v = v;",
        "t[u ^ 1].v",
    ),
    "constructor_of_union": (
        "", "union S { float a[64]; unsigned b[64]; __device__ S() {} }; __shared__ S s;", "s.a[u] = v;", "s.a[u ^ 1]"
    ),
    "constructor_of_template": (
        "template <class T> struct Q { T v; __device__ Q() {} };", "__shared__ Q<float> t[64];", "t[u].v = v;", "t[u ^ 1].v"
    ),
}  # fmt: skip


def _add(name, header, declare, write, read):
    @cuda_body(
        f"int u = threadIdx.x;\nfloat v = x[u];\n{declare}\n{write}\n__syncthreads();\ny[u] = {read};",
        header=header,
        inputs=lambda rng: {"x": np.arange(64, dtype=np.float32) * 3 + 1},
        outputs={"y": ((64,), "float32")},
        grid=(64, 1, 1),
        threadgroup=(64, 1, 1),
        constructs="cuda_memory.shared_declarations",
        name=f"cuda_shared_{name}",
    )
    def _swapped(x):
        return x[np.arange(64) ^ 1]


for _name, _parts in _FORMS.items():
    _add(_name, *_parts)
