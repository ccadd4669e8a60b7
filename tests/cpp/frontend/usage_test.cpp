// docs/language.md 1.2: what a body uses is decided on tokens, and a name that it declares in its outermost block is
// its own.
#include "frontend/usage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace kiln {
namespace {

using Names = std::vector<std::string>;

bool uses(const std::string& body, std::string_view name, const std::string& header = "") {
  return KernelText(header, body).body_uses(name);
}

Names declared(const std::string& body) {
  TokenList tokens(body);
  Names names;
  for (std::string_view name : outermost_declarations(tokens)) names.emplace_back(name);
  return names;
}

Names own(const std::string& text) {
  TokenList tokens(text);
  Names names;
  for (std::string_view name : namespace_names(tokens)) names.emplace_back(name);
  return names;
}

// ---- Uses

TEST(Usage, IsOfWholeTokens) {
  EXPECT_TRUE(uses("int n = x_shape[0];", "x_shape"));
  EXPECT_FALSE(uses("int max_x_shape = 1;", "x_shape"));
  EXPECT_FALSE(uses("int n = x_shape2[0];", "x_shape"));
  EXPECT_FALSE(uses("int n = max_shape;", "x_shape"));
  EXPECT_FALSE(uses("uint3 t = dispatch_threads_per_threadgroup;", "threads_per_threadgroup"));
  EXPECT_TRUE(uses("uint3 t = dispatch_threads_per_threadgroup;", "dispatch_threads_per_threadgroup"));
}

TEST(Usage, IsNotInCommentsAndStrings) {
  EXPECT_FALSE(uses("// x_shape\nint n = 1; /* x_shape */", "x_shape"));
  EXPECT_FALSE(uses("log(\"x_shape\"); log(R\"(x_shape)\"); int c = 'x';", "x_shape"));
  EXPECT_TRUE(uses("/* no */ int n = x_shape[0]; // yes", "x_shape"));
}

TEST(Usage, CountsMembersAndPreprocessorLines) {
  EXPECT_TRUE(uses("int n = p.x_shape;", "x_shape"));
  EXPECT_TRUE(uses("int n = p->x_shape;", "x_shape"));
  EXPECT_TRUE(uses("#define N x_shape[0]\nint n = N;", "x_shape"));
  EXPECT_TRUE(uses("#define N \\\n  x_shape[0]\nint n = N;", "x_shape"));
}

TEST(Usage, SeesNamesThatASpliceCuts) { EXPECT_TRUE(uses("int n = x_sh\\\nape[0];", "x_shape")); }

TEST(Usage, DoesNotSearchTheHeader) { EXPECT_FALSE(uses("int n = f();", "x_shape", "int f() { return x_shape[0]; }")); }

TEST(Usage, EndsWhereTheBodyDeclaresTheNameItself) {
  EXPECT_FALSE(uses("uint grid_size = 3; out[0] = grid_size;", "grid_size"));
  // In an inner block it shadows, and outside of it the parameter is meant.
  EXPECT_TRUE(uses("{ uint grid_size = 3; } out[0] = grid_size.x;", "grid_size"));
  EXPECT_TRUE(uses("if (a) { uint grid_size = 3; out[0] = grid_size; }", "grid_size"));
  EXPECT_TRUE(uses("for (uint grid_size = 0; grid_size < 3; ++grid_size) {}", "grid_size"));
}

// ---- Declarations, form by form

TEST(Declarations, OfVariables) {
  EXPECT_EQ(declared("int a;"), Names{"a"});
  EXPECT_EQ(declared("int a = 1;"), Names{"a"});
  EXPECT_EQ(declared("int a(1);"), Names{"a"});
  EXPECT_EQ(declared("int a{1};"), Names{"a"});
  EXPECT_EQ(declared("T a = T(0);"), Names{"a"});
  EXPECT_EQ(declared("unsigned a; unsigned long long b; long int c; signed char d;"), (Names{"a", "b", "c", "d"}));
  EXPECT_EQ(declared("uint8_t a; half b; bfloat c; size_t d;"), (Names{"a", "b", "c", "d"}));
  EXPECT_EQ(declared("const int a = 1; volatile int b; int const c = 2; static int d;"), (Names{"a", "b", "c", "d"}));
}

TEST(Declarations, OfSeveralAtOnce) {
  EXPECT_EQ(declared("int a, b = 2, c[3], *d, &e = a;"), (Names{"a", "b", "c", "d", "e"}));
  EXPECT_EQ(declared("float a = f(1, 2), b = g[1, 2], c{1, 2}, d;"), (Names{"a", "b", "c", "d"}));
  EXPECT_EQ(declared("T a = pick<1, 2>(x), b;"), (Names{"a", "b"}));
  EXPECT_EQ(declared("bool a = i < n, b = j > m;"), (Names{"a", "b"}));
}

TEST(Declarations, OfArrays) {
  EXPECT_EQ(declared("float a[4];"), Names{"a"});
  EXPECT_EQ(declared("float a[2][N + 1] = {{1, 2}, {3, 4}};"), Names{"a"});
  EXPECT_EQ(declared("threadgroup float a[32]; threadgroup T b[4][8]; threadgroup atomic_int c;"),
            (Names{"a", "b", "c"}));
  EXPECT_EQ(declared("array<float, 4> a = {1, 2, 3, 4};"), Names{"a"});
  EXPECT_EQ(declared("constexpr constant int a[] = {1, 2};"), Names{"a"});
}

TEST(Declarations, OfPointersAndReferences) {
  EXPECT_EQ(declared("device float* a = x; const device T* b = y; threadgroup T* c = z;"), (Names{"a", "b", "c"}));
  EXPECT_EQ(declared("device float *const a = x;"), Names{"a"});
  EXPECT_EQ(declared("float** a; float* const* b;"), (Names{"a", "b"}));
  EXPECT_EQ(declared("float& a = x; const float& b = y; auto&& c = f();"), (Names{"a", "b", "c"}));
  EXPECT_EQ(declared("threadgroup float (&a)[4] = s; float (*b)[4] = &s2;"), (Names{"a", "b"}));
  EXPECT_EQ(declared("float (*a)(float) = &f; float (&b)(float) = g;"), (Names{"a", "b"}));
  EXPECT_EQ(declared("float device* a = x; device const float4* b = (device const float4*)x;"), (Names{"a", "b"}));
}

TEST(Declarations, OfAuto) {
  EXPECT_EQ(declared("auto a = 1; const auto b = 2; auto* c = &a; constexpr auto d = 3;"), (Names{"a", "b", "c", "d"}));
  EXPECT_EQ(declared("auto a = [](int x) { int inner = x; return inner; };"), Names{"a"});
  EXPECT_EQ(declared("decltype(x) a = x; decltype(auto) b = (x);"), (Names{"a", "b"}));
}

TEST(Declarations, OfStructuredBindings) {
  EXPECT_EQ(declared("auto [a, b] = f();"), (Names{"a", "b"}));
  EXPECT_EQ(declared("const auto& [a, b] = f(); auto&& [c] = g();"), (Names{"a", "b", "c"}));
  EXPECT_EQ(declared("auto [a, b](p); auto [c, d]{p};"), (Names{"a", "b", "c", "d"}));
}

TEST(Declarations, OfTemplateTypes) {
  EXPECT_EQ(declared("vec<T, 4> a; metal::vec<float, 2> b(1); ::metal::float4 c;"), (Names{"a", "b", "c"}));
  EXPECT_EQ(declared("ConditionalType<(N > 4), int, float>::type a;"), Names{"a"});
  EXPECT_EQ(declared("array<vec<T, 2>, 3> a;"), Names{"a"});
  EXPECT_EQ(declared("typename Limits<T>::type a;"), Names{"a"});
}

TEST(Declarations, OfTypes) {
  EXPECT_EQ(declared("using A = float4; typedef float B; typedef metal::vec<float, 4> C; typedef int D[3];"),
            (Names{"A", "B", "C", "D"}));
  EXPECT_EQ(declared("typedef float A, *B;"), (Names{"A", "B"}));
  EXPECT_EQ(declared("typedef float (*A)(float); typedef float (&B)[4];"), (Names{"A", "B"}));
  EXPECT_EQ(declared("typedef struct { int inner; } A;"), Names{"A"});
  EXPECT_EQ(declared("struct A { int inner; int f() { int more; return more; } };"), Names{"A"});
  EXPECT_EQ(declared("struct A { int inner; } a, b[2];"), (Names{"A", "a", "b"}));
  EXPECT_EQ(declared("struct { int inner; } a;"), Names{"a"});
  EXPECT_EQ(declared("struct A : B { int inner; }; class C { public: int d; }; union D { int a; float b; } e;"),
            (Names{"A", "C", "D", "e"}));
  EXPECT_EQ(declared("union { int i; float f; } a;"), Names{"a"});
  EXPECT_EQ(declared("struct A a; enum B b;"), (Names{"a", "b"}));
}

TEST(Declarations, OfEnumerators) {
  EXPECT_EQ(declared("enum A { b, c = 2, d = f(1, 2) };"), (Names{"A", "b", "c", "d"}));
  EXPECT_EQ(declared("enum { a = 1 } b;"), (Names{"a", "b"}));
  EXPECT_EQ(declared("enum A : uint { b };"), (Names{"A", "b"}));
  // Those of a scoped enumeration are not in the block.
  EXPECT_EQ(declared("enum class A { b }; enum struct C : uint { d };"), (Names{"A", "C"}));
}

TEST(Declarations, OfOtherNames) {
  EXPECT_EQ(declared("using metal::exp; using a::b::c;"), (Names{"exp", "c"}));
  EXPECT_EQ(declared("using namespace metal;"), Names());
  EXPECT_EQ(declared("namespace a = metal;"), Names{"a"});
  EXPECT_EQ(declared("float f(float);"), Names{"f"});
}

TEST(Declarations, BehindAttributesAndAlignment) {
  EXPECT_EQ(declared("[[maybe_unused]] int a = 1; int b [[maybe_unused]] = 2;"), (Names{"a", "b"}));
  EXPECT_EQ(declared("alignas(16) float a[4]; __attribute__((aligned(16))) float b[4];"), (Names{"a", "b"}));
}

TEST(Declarations, BehindPragmasAndMacrosOfLoops) {
  EXPECT_EQ(declared("MLX_MTL_PRAGMA_UNROLL\nfor (int i = 0; i < 4; ++i) { int inner; }\nuint a = 3;"), Names{"a"});
  EXPECT_EQ(declared("MLX_MTL_PRAGMA_UNROLL\nfor (int i = 0; i < 4; ++i) s += i;\nuint a = 3;"), Names{"a"});
  EXPECT_EQ(declared("_Pragma(\"unroll\") for (int i = 0; i < 4; ++i) { int inner; } uint a = 3;"), Names{"a"});
  EXPECT_EQ(declared("_Pragma(\"clang fp contract(off)\") uint a = 3;"), Names{"a"});
  EXPECT_EQ(declared("#pragma unroll\nfor (int i = 0; i < 4; ++i) {}\nuint a = 3;"), Names{"a"});
}

TEST(Declarations, AmongStatements) {
  EXPECT_EQ(declared("f(x); int a; g(); int b;"), (Names{"a", "b"}));
  EXPECT_EQ(declared("if (x) { int inner; } else { int inner; } int a;"), Names{"a"});
  EXPECT_EQ(declared("if (x) return; int a;"), Names{"a"});
  EXPECT_EQ(declared("if constexpr (N > 3) { int inner; } else if (y) y = 2; int a;"), Names{"a"});
  EXPECT_EQ(declared("for (int i = 0; i < 3; ++i) { int inner; } int a;"), Names{"a"});
  EXPECT_EQ(declared("while (int inner = f()) --x; int a;"), Names{"a"});
  EXPECT_EQ(declared("do { int inner; } while (x); int a;"), Names{"a"});
  EXPECT_EQ(declared("switch (x) { case 1: int inner; break; default: break; } int a;"), Names{"a"});
  EXPECT_EQ(declared("{ int inner; } int a;"), Names{"a"});
  EXPECT_EQ(declared("x = 3; *p = 4; ++i; (void)x; a[i] = {1, 2}; x += y * z; int b;"), Names{"b"});
  EXPECT_EQ(declared("[&] { int inner; }(); int a;"), Names{"a"});
  EXPECT_EQ(declared("static_assert(N > 3, \"too small\"); int a;"), Names{"a"});
  EXPECT_EQ(declared(";;; int a;"), Names{"a"});
  EXPECT_EQ(declared("p.x_shape = 3; p->x_shape = 4; ns::x_shape(5); x_shape[2] = 1; x_shape = y;"), Names());
}

TEST(Declarations, OfACondition) {
  // As in C++, what a controlled statement without braces declares is in a block of its own.
  EXPECT_EQ(declared("if (x) int a = 3;"), Names());
  EXPECT_EQ(declared("if (x) y = 1; else int a = 3;"), Names());
  EXPECT_EQ(declared("for (;;) int a = 3;"), Names());
}

TEST(Declarations, AreNotOnPreprocessorLines) {
  EXPECT_EQ(declared("#define A int b;\nint c;"), Names{"c"});
  EXPECT_EQ(declared("int a\n#if 1\n = 1\n#endif\n; int b;"), (Names{"a", "b"}));
}

TEST(Declarations, EndWithTheTextWhateverIsMissing) {
  EXPECT_EQ(declared("int a"), Names{"a"});
  EXPECT_EQ(declared("int a = (1"), Names{"a"});
  EXPECT_EQ(declared("} int a;"), Names{"a"});
  EXPECT_EQ(declared(") ] int a;"), Names{"a"});
  EXPECT_EQ(declared("struct A {"), Names{"A"});
  EXPECT_EQ(declared("typedef"), Names());
  EXPECT_EQ(declared("using"), Names());
  EXPECT_EQ(declared("auto ["), Names());
  EXPECT_EQ(declared("enum {"), Names());
  EXPECT_EQ(declared("vec<float"), Names());
  EXPECT_EQ(declared("enum A { b"), (Names{"A", "b"}));
}

// ---- Functions of the header

TEST(NamespaceNames, AreFunctions) {
  EXPECT_EQ(own("float f(float x) { return g(x); }\ninline T* h(int);"), (Names{"f", "h"}));
  EXPECT_EQ(own("template <typename T>\nmetal::vec<T, 2> f(T x) { return x; }"), Names{"f"});
  EXPECT_EQ(own("const float& f(float);"), Names{"f"});
}

TEST(NamespaceNames, AreVariables) {
  EXPECT_EQ(own("constant int b = c(1);\nconstant float t[2] = {1, 2};"), (Names{"b", "t"}));
  EXPECT_EQ(own("template <class T>\nconstexpr constant bool is_empty_v = is_empty<T>::value;"), Names{"is_empty_v"});
}

TEST(NamespaceNames, AreTypes) {
  EXPECT_EQ(own("struct A { int f(); };\nclass B : A {};\nunion C;\nenum class D { e };"), (Names{"A", "B", "C", "D"}));
  EXPECT_EQ(own("template <typename T, class U = void>\nstruct swap { T x; };"), Names{"swap"});
  EXPECT_EQ(own("struct alignas(16) A { int x; };"), Names{"A"});
  EXPECT_EQ(own("using A = int;\ntypedef float B;\ntemplate <class... T>\nusing void_t = void;"),
            (Names{"A", "B", "void_t"}));
}

TEST(NamespaceNames, AreNoSpecialisations) {
  EXPECT_EQ(own("template <>\nstruct is_integral<A> { };\ntemplate <class T>\nstruct C<T*> : D {};"), Names());
}

TEST(NamespaceNames, AreMacrosToo) {
  EXPECT_EQ(own("#define erf(x) my_erf(x)\n#define N 3\nfloat f();"), (Names{"erf", "N", "f"}));
}

TEST(NamespaceNames, AreThoseThatNoQualificationNeeds) {
  EXPECT_EQ(own("namespace mine { float erf(float x); }"), Names{"mine"});
  EXPECT_EQ(own("namespace metal::mine { float erf(float x); }"), Names());
  EXPECT_EQ(own("namespace metal { float erf(float x); namespace { struct A {}; } }\nfloat g();"),
            (Names{"metal", "erf", "A", "g"}));
  EXPECT_EQ(own("extern \"C\" { float erf(float x); }"), Names{"erf"});
}

// ---- KernelText

TEST(KernelText, ListsTheIdentifiersOfHeaderAndBody) {
  KernelText text("float f(float x) { return x; }\n#define M g\n", "out[0] = f(a.xy);");
  const Names expected = {"M", "a", "define", "f", "float", "g", "out", "return", "x", "xy"};
  EXPECT_EQ(text.identifiers(), expected);
  EXPECT_TRUE(std::ranges::is_sorted(text.identifiers()));
  EXPECT_EQ(text.own_names(), (Names{"f", "M"}));
  EXPECT_FALSE(text.pastes_tokens());
}

TEST(KernelText, SaysWhetherTokensArePasted) {
  EXPECT_TRUE(KernelText("#define CAT(a, b) a##b", "").pastes_tokens());
  EXPECT_TRUE(KernelText("", "#define CAT(a, b) a ## b\n").pastes_tokens());
  EXPECT_FALSE(KernelText("// a##b", "log(\"a##b\");").pastes_tokens());
}

}  // namespace
}  // namespace kiln
