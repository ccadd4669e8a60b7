"""What a declaration puts into threadgroup memory: every form of a type, a declarator and an order of words.

Each thread writes its element, and after the barrier reads its neighbour's, which a variable of its own would not have.
"""

import numpy as np

from bodies import Dtype, body

_X = np.arange(64, dtype=np.float32) * 3 + 1

# A header, the declarations, and the expressions of what a thread writes and of what it reads: `v` is its value.
_FORMS = {
    # The type is defined in the declaration.
    "struct_here": ("", "threadgroup struct { float a[64]; } s;", "s.a[u] = v;", "s.a[u ^ 1]"),
    "named_struct_here": ("", "threadgroup struct P { float v; uint k; } t[64];", "t[u].v = v; t[u].k = u;", "t[u ^ 1].v"),
    "class_here": ("", "threadgroup class Q { public: float v; } t[64];", "t[u].v = v;", "t[u ^ 1].v"),
    "union_here": ("", "threadgroup union { float f[64]; uint b[64]; } s;", "s.f[u] = v;", "as_type<float>(s.b[u ^ 1])"),
    "enum_here": ("", "threadgroup enum E { A, B } t[64];", "t[u] = E(u / 2);", "x[int(t[u ^ 1]) * 2 + 1 - u % 2]"),
    "enum_behind": ("", "enum E { A, B } threadgroup t[64];", "t[u] = E(u / 2);", "x[int(t[u ^ 1]) * 2 + 1 - u % 2]"),
    "word_behind_struct": ("", "struct P { float v; } threadgroup t[64];", "t[u].v = v;", "t[u ^ 1].v"),
    "word_behind_union": ("", "union { float v; uint b; } threadgroup t[64];", "t[u].v = v;", "t[u ^ 1].v"),
    "struct_and_pointer_here": (
        "", "threadgroup struct P { float v; } t[64], *p;", "p = t + u; p->v = v;", "t[int(p - t) ^ 1].v"
    ),
    "aligned_struct_here": ("", "threadgroup struct alignas(16) P { float v; } t[64];", "t[u].v = v;", "t[u ^ 1].v"),
    "struct_of_struct_here": (
        "", "threadgroup struct { struct { float v[2]; } in[32]; } s;", "s.in[u / 2].v[u % 2] = v;",
        "s.in[u / 2].v[1 - u % 2]",
    ),
    # It is defined before.
    "struct_before": ("struct P { float v; uint k; };", "threadgroup struct P t[64];", "t[u].v = v;", "t[u ^ 1].v"),
    "class_before": ("class Q { public: float v; };", "threadgroup class Q t[64];", "t[u].v = v;", "t[u ^ 1].v"),
    "union_before": (
        "", "union U { float a[64]; uint b[64]; }; threadgroup union U t;", "t.a[u] = v;", "t.a[u ^ 1]"
    ),
    "union_by_name": ("union U { float a; uint b; };", "threadgroup U t[64];", "t[u].a = v;", "t[u ^ 1].a"),
    "enum_before": (
        "enum E { A, B };", "threadgroup enum E t[64];", "t[u] = E(u / 2);", "x[(int(t[u ^ 1]) * 2) + 1 - u % 2]"
    ),
    "enum_class": (
        "enum class E : uchar { A, B };", "threadgroup E t[64];", "t[u] = E(u / 2);", "x[int(t[u ^ 1]) * 2 + 1 - u % 2]"
    ),
    "member_of_namespace": (
        "namespace n { template <class T> struct P { T v; }; }", "threadgroup n::P<float> t[64];", "t[u].v = v;",
        "t[u ^ 1].v",
    ),
    # Several declarators: each is what its own type says.
    "pointer_then_array": ("", "threadgroup float *p, t[64];", "p = t + u; *p = v;", "t[int(p - t) ^ 1]"),
    "array_then_pointer": ("", "threadgroup float t[64], *p;", "p = t + u; *p = v;", "t[int(p - t) ^ 1]"),
    "array_then_initialized_pointer": ("", "threadgroup float t[64], *p = t + u;", "*p = v;", "t[int(p - t) ^ 1]"),
    "array_then_reference": ("", "threadgroup float t[64], &r = t[u];", "r = v;", "t[int(&r - t) ^ 1]"),
    "two_arrays": ("", "threadgroup float a[32], b[32];", "(u % 2 ? a : b)[u / 2] = v;", "(u % 2 ? b : a)[u / 2]"),
    "array_and_scalar": ("", "threadgroup float t[64], s;", "t[u] = v; if (u == 5) s = 2;", "t[u ^ 1] * (s - 1)"),
    "array_of_pointers": (
        "", "threadgroup float t[64]; threadgroup float *q[4];", "for (int k = 0; k < 4; ++k) q[k] = t + u; *q[u % 4] = v;",
        "t[int(q[1] - t) ^ 1]",
    ),
    "pointer_to_array": (
        "", "threadgroup float t[4][16]; threadgroup float (*p)[16] = t + u / 16;", "(*p)[u % 16] = v;",
        "t[int(p - t)][(u % 16) ^ 1]",
    ),
    "pointer_to_pointer": (
        "", "threadgroup float t[64]; threadgroup float *p = t + u, **pp = &p;", "**pp = v;", "t[int(*pp - t) ^ 1]"
    ),
    "shared_pointer": (
        "", "threadgroup float t[64]; threadgroup float* threadgroup sp;", "t[u] = v; if (u == 9) sp = t;", "sp[u ^ 1]"
    ),
    "shared_pointers_and_own_one": (
        "", "threadgroup float t[64]; threadgroup float* threadgroup sp[64], *p;", "p = t + u; *p = v; sp[u] = p;",
        "*sp[int(p - t) ^ 1]",
    ),
    "shared_pointer_to_device": (
        "", "const device float* threadgroup p[64];", "p[u] = x + u;", "*p[u ^ 1]"
    ),
    "parenthesized": ("", "threadgroup float (t)[64];", "t[u] = v;", "t[u ^ 1]"),
    # Aliases carry the address space.
    "typedef_of_element": ("", "typedef threadgroup float tgf; tgf t[64];", "t[u] = v;", "t[u ^ 1]"),
    "typedef_of_array": ("", "typedef threadgroup float tile[64]; tile t;", "t[u] = v;", "t[u ^ 1]"),
    "using_of_array": ("", "using tile = threadgroup float[64]; tile t;", "t[u] = v;", "t[u ^ 1]"),
    "using_in_header": ("using tile = threadgroup float[64];", "tile t;", "t[u] = v;", "t[u ^ 1]"),
    "using_of_using": ("using e = threadgroup float; using tile = e[64];", "tile t;", "t[u] = v;", "t[u ^ 1]"),
    "alias_template": ("template <class T, int N> using tile = threadgroup T[N];", "tile<float, 64> t;", "t[u] = v;", "t[u ^ 1]"),
    "alias_in_class": ("struct S { typedef threadgroup float type[64]; };", "S::type t;", "t[u] = v;", "t[u ^ 1]"),
    "alias_in_template": (
        "template <class T> struct S { using type = threadgroup T; };", "S<float>::type t[64];", "t[u] = v;", "t[u ^ 1]"
    ),
    "alias_of_pointer": (
        "", "typedef threadgroup float* tgp; threadgroup float t[64]; tgp p = t + u;", "*p = v;", "t[int(p - t) ^ 1]"
    ),
    "array_of_alias_of_pointer": (
        "typedef threadgroup float* tgp;", "threadgroup float t[64]; tgp q[2] = {t + u, t};", "*q[0] = v;",
        "q[1][int(q[0] - t) ^ 1]",
    ),
    "alias_without_it": ("typedef float tile_t[64];", "threadgroup tile_t t;", "t[u] = v;", "t[u ^ 1]"),
    "alias_template_without_it": (
        "template <class T> using tile_t = T[64];", "threadgroup tile_t<float> t;", "t[u] = v;", "t[u ^ 1]"
    ),
    "metal_array": ("", "threadgroup array<float, 64> t;", "t[u] = v;", "t[u ^ 1]"),
    "array_of_threadgroup_pointers": (
        "", "threadgroup float t[64]; array<threadgroup float*, 4> q;", "q[u % 4] = t + u; *q[u % 4] = v;",
        "t[int(q[u % 4] - t) ^ 1]",
    ),
    "decltype_of_array": ("", "threadgroup float a[64]; decltype(a) t;", "t[u] = v; a[u] = 0;", "t[u ^ 1] + a[u ^ 1]"),
    # Values that come from threadgroup memory are each thread's own.
    "auto_value": (
        "", "threadgroup float t[64];", "t[u] = v; auto mine = t[u]; mine += 1; auto* p = &t[u]; *p = mine - 1;", "t[u ^ 1]"
    ),
    "decltype_of_value": (
        "", "threadgroup float t[64];", "decltype(t[0] + 0) mine = v; for (uint k = 0; k < u; ++k) mine += 0; t[u] = mine;",
        "t[u ^ 1]",
    ),
    "deduced_value": (
        "template <class T> T same(T a) { T b = a; for (int k = 0; k < 3; ++k) b += 1; return b - 3; }",
        "threadgroup float t[64];", "t[u] = v; t[u] = same(t[u]);", "t[u ^ 1]",
    ),
    # The order of words.
    "word_behind_type": ("", "float threadgroup t[64];", "t[u] = v;", "t[u ^ 1]"),
    "word_behind_class": ("struct P { float v; };", "P threadgroup t[64];", "t[u].v = v;", "t[u ^ 1].v"),
    "words_between": ("", "unsigned threadgroup int t[64];", "t[u] = as_type<uint>(v);", "as_type<float>(t[u ^ 1])"),
    "static_before": ("", "static threadgroup float t[64];", "t[u] = v;", "t[u ^ 1]"),
    "static_behind": ("", "threadgroup static float t[64];", "t[u] = v;", "t[u ^ 1]"),
    "volatile": ("", "volatile threadgroup float t[64];", "t[u] = v;", "t[u ^ 1]"),
    "threadgroup_volatile": ("", "threadgroup volatile float t[64];", "t[u] = v;", "t[u ^ 1]"),
    "alignas_before": ("", "alignas(16) threadgroup float t[64];", "t[u] = v;", "t[u ^ 1]"),
    "alignas_behind": ("", "threadgroup alignas(16) float t[64];", "t[u] = v;", "((threadgroup float4*)t)[u / 4][(u % 4) ^ 1]"),
    "attribute_behind": (
        "", "threadgroup float t[64] __attribute__((aligned(16)));", "t[u] = v;", "((threadgroup float4*)t)[u / 4][(u % 4) ^ 1]"
    ),
    "macro_of_word": ("#define SHARED threadgroup", "SHARED float t[64];", "t[u] = v;", "t[u ^ 1]"),
    "macro_of_declaration": (
        "#define TILE(T, name, n) threadgroup T name[n]", "TILE(float, t, 64);", "t[u] = v;", "t[u ^ 1]"
    ),
    # Where declarations stand.
    "nested_block": ("", "float r; {", "threadgroup float t[64]; t[u] = v;", None),
    "behind_a_block": ("", "{ } threadgroup float t[64];", "t[u] = v;", "t[u ^ 1]"),
    "behind_an_if": ("", "if (u > 99) { y[0] = 1; } threadgroup float t[64];", "t[u] = v;", "t[u ^ 1]"),
    "pointer_in_for": (
        "", "threadgroup float t[64];", "for (threadgroup float* p = t + u; p == t + u; p += 64) *p = v;", "t[u ^ 1]"
    ),
    "pointer_in_if": ("", "threadgroup float t[64];", "if (threadgroup float* p = t + u; u < 64) *p = v;", "t[u ^ 1]"),
    "lambda_by_copy": ("", "threadgroup float t[64]; auto put = [=](float a) { t[u] = a; };", "put(v);", "t[u ^ 1]"),
    "lambda_by_reference": ("", "threadgroup float t[64]; auto put = [&](float a) { t[u] = a; };", "put(v);", "t[u ^ 1]"),
    "lambda_of_pointer": (
        "", "threadgroup float t[64]; auto put = [](threadgroup float* p, float a) { *p = a; };", "put(t + u, v);", "t[u ^ 1]"
    ),
    "in_lambda": (
        "", "auto tile = []() -> threadgroup float* { threadgroup float t[64]; return t; }; threadgroup float* t = tile();",
        "t[u] = v;", "t[u ^ 1]",
    ),
    "in_helper": (
        "inline threadgroup float* tile() { threadgroup float t[64]; return t; }", "threadgroup float* t = tile();",
        "t[u] = v;", "t[u ^ 1]",
    ),
    "parameter_of_array": (
        "void put(threadgroup float t[64], uint u, float v) { t[u] = v; }", "threadgroup float t[64];", "put(t, u, v);",
        "t[u ^ 1]",
    ),
    "reference_to_array": (
        "void put(threadgroup float (&t)[64], uint u, float v) { t[u] = v; }", "threadgroup float t[64];",
        "put(t, u, v);", "t[u ^ 1]",
    ),
    "member_pointer": (
        "struct View { threadgroup float* p; float get(uint k) const { return p[k]; } };",
        "threadgroup float t[64]; View w{t};", "w.p[u] = v;", "w.get(u ^ 1)",
    ),
    "conversion_to_pointer": (
        "struct View { threadgroup float* p; operator threadgroup float*() const { return p; } };",
        "threadgroup float t[64]; View w{t}; threadgroup float* q = w;", "q[u] = v;", "t[u ^ 1]",
    ),
    "template_argument": (
        "template <class P> struct View { P p; };", "threadgroup float t[64]; View<threadgroup float*> w{t};",
        "w.p[u] = v;", "w.p[u ^ 1]",
    ),
    "cast_by_all_means": (
        "", "threadgroup uint t[64];",
        "*(threadgroup float*)(t + u) = v; *reinterpret_cast<threadgroup float*>(&t[u]) += 0;",
        "*static_cast<threadgroup float*>((threadgroup void*)(t + (u ^ 1)))",
    ),
    # Member functions that say where their object lies.
    "member_functions": (
        "struct Q { float v; Q() threadgroup {} Q() thread {} float get() const threadgroup { return v; } "
        "float get() const thread { return v; } threadgroup Q& operator=(float a) threadgroup { v = a; return *this; } "
        "thread Q& operator=(float a) thread { v = a; return *this; } };",
        "threadgroup Q t[64]; Q mine;", "t[u] = v; mine = t[u].get();", "t[u ^ 1].get() + (mine.get() - v)",
    ),
    "defaulted_member_functions": (
        "struct Q { float v; Q() threadgroup = default; Q() thread = default; operator float() const threadgroup { return v; } };",
        "threadgroup Q t[64];", "t[u].v = v;", "float(t[u ^ 1])",
    ),
    # The constructor for threadgroup memory does nothing, another does.
    "constructors_by_address_space": (
        "struct Q { float v; Q() threadgroup {} Q() thread : v(2) {} };", "threadgroup Q t[64]; Q mine;",
        "t[u].v = v * mine.v;", "t[u ^ 1].v / 2",
    ),
    "constructors_by_address_space_reversed": (
        "struct Q { float v; constexpr Q() thread : v(2) {} constexpr Q() threadgroup = default; };",
        "threadgroup Q t[64]; Q mine;", "t[u].v = v * mine.v;", "t[u ^ 1].v / 2",
    ),
    "constructors_by_address_space_of_member": (
        "struct Q { float v; Q() { v = 2; } Q() threadgroup {} }; struct R { uint k; Q q; R() : k(1) {} R() threadgroup {} };",
        "threadgroup R t[64]; R mine;", "t[u].q.v = v * mine.q.v;", "t[u ^ 1].q.v / (mine.k + 1)",
    ),
    "constructors_by_address_space_of_template": (
        "template <class T> struct Q { T v; explicit Q(T a) : v(a) {} Q() threadgroup {} Q() thread { v = T(2); } };",
        "threadgroup Q<float> t[64]; Q<float> mine; Q<float> one(1);", "t[u].v = v * mine.v;", "t[u ^ 1].v / (one.v + 1)",
    ),
    "constructors_by_address_space_of_union": (
        "union S { float a[64]; uint b[64]; S() thread { b[1] = 2; } S() threadgroup {} };",
        "threadgroup S s; S mine;", "s.a[u] = v * mine.b[1];", "s.a[u ^ 1] / 2",
    ),
    # Constructors that do nothing.
    "empty_constructor": ("struct Q { float v; Q() {} Q(float a) : v(a) {} };", "threadgroup Q t[64];", "t[u].v = v;", "t[u ^ 1].v"),
    "empty_constructor_and_pointer": (
        "struct Q { float v; Q() {} };", "threadgroup Q t[64], *p;", "p = t + u; p->v = v;", "t[int(p - t) ^ 1].v"
    ),
    "constructor_of_member": (
        "struct Q { float v; Q() {} }; struct R { Q q; uint k; };", "threadgroup R t[64];", "t[u].q.v = v;", "t[u ^ 1].q.v"
    ),
    "constructor_of_array_member": (
        "struct Q { float v; Q() {} }; struct R { Q q[64]; };", "threadgroup R t;", "t.q[u].v = v;", "t.q[u ^ 1].v"
    ),
    "constructor_of_base": (
        "struct Q { float v; Q() {} }; struct R : Q { uint k; R() : Q() {} };", "threadgroup R t[64];", "t[u].v = v;",
        "t[u ^ 1].v",
    ),
    "inherited_constructor": (
        "struct Q { float v; Q() {} }; struct R : Q { uint k; };", "threadgroup R t[64];", "t[u].v = v;", "t[u ^ 1].v"
    ),
    "constructor_of_union": (
        "union S { float a[64]; uint b[64]; S() {} };", "threadgroup S s;", "s.a[u] = v;", "s.a[u ^ 1]"
    ),
    "union_of_objects": (
        "struct Q { float v; Q() {} }; union S { Q a[64]; uint b[64]; S() {} };", "threadgroup S s;", "s.a[u].v = v;",
        "s.a[u ^ 1].v",
    ),
    "constructor_of_template": (
        "template <class T> struct Q { T v; Q() {} Q(T a) : v(a) {} };", "threadgroup Q<float> t[64];", "t[u].v = v;",
        "t[u ^ 1].v",
    ),
    "constexpr_constructor_of_vectors": (
        "struct Q { float4 v; uint k; Q() {} };", "threadgroup Q t[64];", "t[u].v = float4(v); t[u].k = u;", "t[u ^ 1].v.y"
    ),
    "constructor_elsewhere": ("struct Q { float v; Q(); }; Q::Q() {}", "threadgroup Q t[64];", "t[u].v = v;", "t[u ^ 1].v"),
    "complex": ("", "threadgroup complex64_t t[64];", "t[u] = complex64_t(v, 1);", "t[u ^ 1].real"),
    "member_of_complex": (
        "struct S { complex64_t z[64]; };", "threadgroup S s;", "s.z[u] = complex64_t(v, 1);", "s.z[u ^ 1].real"
    ),
    "vectors": ("", "threadgroup float4 t[64];", "t[u] = float4(v);", "t[u ^ 1].z"),
    "atomics": ("", "threadgroup struct { atomic_uint n; float v[64]; } s;", "s.v[u] = v;", "s.v[u ^ 1]"),
}  # fmt: skip


def _add(name, header, declare, write, read):
    tail = f"y[i] = {read};" if read else "threadgroup_barrier(mem_flags::mem_threadgroup); r = t[u ^ 1]; } y[i] = r;"
    barrier = "threadgroup_barrier(mem_flags::mem_threadgroup);\n" if read else ""

    @body(
        "uint i = thread_position_in_grid.x, u = thread_position_in_threadgroup.x;\nfloat v = x[i];\n"
        f"{declare}\n{write}\n{barrier}{tail}",
        header=header,
        inputs=lambda rng: {"x": _X},
        outputs={"y": ((64,), "float32")},
        grid=(64, 1, 1),
        threadgroup=(64, 1, 1),
        constructs="address_spaces.threadgroup_declarations",
        name=f"threadgroup_{name}",
    )
    def _swapped(x):
        return x[np.arange(64) ^ 1]


for _name, _parts in _FORMS.items():
    _add(_name, *_parts)


# Types that depend on template arguments.
for _name, (_header, _declare) in {
    "T": ("", "threadgroup T t[N];"),
    "T_behind": ("", "T threadgroup t[N];"),
    "T_and_pointer": ("", "threadgroup T t[N], *p = t; p[u] = v;"),
    "typename": ("template <class T> struct X { typedef T type; };", "threadgroup typename X<T>::type t[N];"),
    "alias_template_of_T": ("template <class T, int N> using tile = threadgroup T[N];", "tile<T, N> t;"),
    "typename_with_it": ("template <class T> struct X { typedef threadgroup T type; };", "typename X<T>::type t[N];"),
    "class_template": ("template <class T, int N> struct Tile { T a[N]; Tile() {} };", "threadgroup Tile<T, N> s; threadgroup T* t = s.a;"),
    "helper_template": (
        "template <class T, int N> threadgroup T* tile() { threadgroup T t[N]; return t; }", "threadgroup T* t = tile<T, N>();"
    ),
    "helper_template_typename": (
        "template <class T> struct X { typedef threadgroup T type[64]; };"
        "template <class T> threadgroup T* tile() { typename X<T>::type t; return t; }",
        "threadgroup T* t = tile<T>();",
    ),
    "decltype_T": ("", "threadgroup T a[N]; decltype(a) t; a[u] = v;"),
}.items():  # fmt: skip

    @body(
        "uint u = thread_position_in_threadgroup.x;\nT v = x[u];\n" + _declare + "\nt[u] = v;\n"
        "threadgroup_barrier(mem_flags::mem_threadgroup);\ny[u] = t[u ^ 1];",
        header=_header,
        inputs=lambda rng: {"x": _X},
        template=[("N", 64), ("T", Dtype("float32"))],
        outputs={"y": ((64,), "float32")},
        grid=(64, 1, 1),
        threadgroup=(64, 1, 1),
        constructs="address_spaces.threadgroup_declarations_of_T",
        name=f"threadgroup_{_name}",
    )
    def _swapped_T(x):
        return x[np.arange(64) ^ 1]
