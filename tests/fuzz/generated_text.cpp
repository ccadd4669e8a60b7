#include "generated_text.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "frontend/includes.h"
#include "frontend/signature.h"
#include "frontend/usage.h"

namespace kiln {
namespace {

using Pieces = std::span<const std::string_view>;

constexpr std::string_view kWords[] = {"float",
                                       "half",
                                       "bfloat",
                                       "int",
                                       "uint",
                                       "bool",
                                       "char",
                                       "ulong",
                                       "float2",
                                       "float3",
                                       "half4",
                                       "uint3",
                                       "bool2",
                                       "auto",
                                       "void",
                                       "const",
                                       "static",
                                       "constexpr",
                                       "volatile",
                                       "inline",
                                       "struct",
                                       "class",
                                       "union",
                                       "enum",
                                       "namespace",
                                       "using",
                                       "typedef",
                                       "template",
                                       "typename",
                                       "operator",
                                       "if",
                                       "else",
                                       "for",
                                       "while",
                                       "do",
                                       "switch",
                                       "case",
                                       "default",
                                       "break",
                                       "continue",
                                       "return",
                                       "goto",
                                       "new",
                                       "delete",
                                       "throw",
                                       "try",
                                       "this",
                                       "sizeof",
                                       "decltype",
                                       "static_assert",
                                       "device",
                                       "constant",
                                       "thread",
                                       "threadgroup",
                                       "kernel",
                                       "double",
                                       "long",
                                       "unsigned",
                                       "short",
                                       "alignas",
                                       "asm",
                                       "virtual",
                                       "friend",
                                       "public",
                                       "private",
                                       "extern",
                                       "mutable",
                                       "register",
                                       "noexcept",
                                       "requires",
                                       "__global__",
                                       "__device__",
                                       "__shared__",
                                       "__syncthreads",
                                       "__restrict__",
                                       "__attribute__",
                                       "__declspec",
                                       "_Pragma",
                                       "__builtin_alloca",
                                       "__kiln",
                                       "metal",
                                       "fast",
                                       "precise",
                                       "vec",
                                       "simdgroup_matrix",
                                       "texture2d",
                                       "packed_float3"};

constexpr std::string_view kNames[] = {"x",
                                       "s",
                                       "y",
                                       "x_shape",
                                       "x_strides",
                                       "x_ndim",
                                       "s_shape",
                                       "y_shape",
                                       "T",
                                       "N",
                                       "i",
                                       "a",
                                       "b",
                                       "f",
                                       "g",
                                       "M",
                                       "thread_position_in_grid",
                                       "threads_per_threadgroup",
                                       "thread_index_in_simdgroup",
                                       "simd_sum",
                                       "simd_shuffle",
                                       "quad_max",
                                       "threadgroup_barrier",
                                       "mem_flags",
                                       "mem_threadgroup",
                                       "simd_broadcast",
                                       "atomic_fetch_add_explicit",
                                       "memory_order_relaxed",
                                       "sin",
                                       "exp",
                                       "select",
                                       "clamp",
                                       "dot",
                                       "elem_to_loc",
                                       "ceildiv",
                                       "Limits",
                                       "numeric_limits",
                                       "as_type",
                                       "erf",
                                       "expm1",
                                       "xyz",
                                       "wzyx",
                                       "rg",
                                       "größe",
                                       "__LINE__",
                                       "__VA_ARGS__",
                                       "threadIdx",
                                       "blockDim",
                                       "__shfl_down_sync",
                                       "INFINITY",
                                       "UINT_MAX",
                                       "complex64_t",
                                       "float16_t"};

constexpr std::string_view kPunctuation[] = {"(",   ")",   "[",  "]",  "{",  "}",  "<",  ">",  ";",   ",",  ".",
                                             "->",  "::",  ":",  "?",  "=",  "==", "!=", "<=", ">=",  "<<", ">>",
                                             "<<=", ">>=", "+",  "-",  "*",  "/",  "%",  "&",  "|",   "^",  "~",
                                             "!",   "&&",  "||", "++", "--", "+=", "*=", "&=", "...", "[[", "]]",
                                             "#",   "##",  "@",  "$",  "`",  "\\", "<:", "%:", "<=>", "->*"};

constexpr std::string_view kLiterals[] = {"0",
                                          "1",
                                          "2u",
                                          "3l",
                                          "0x1F",
                                          "08",
                                          "1.5",
                                          "1e9",
                                          "1.5f",
                                          "2h",
                                          "1.5h",
                                          "1.5bf",
                                          "1e400h",
                                          "0x1p-3f",
                                          "1'000",
                                          "0b11",
                                          "1.",
                                          ".5",
                                          "1e",
                                          "0x",
                                          "1.5q",
                                          "99999999999999999999",
                                          "true",
                                          "false",
                                          "nullptr",
                                          "'a'",
                                          "'ab'",
                                          "\"text\"",
                                          "\"a\\\"b\"",
                                          "L\"wide\"",
                                          "u8R\"(raw)\"",
                                          "R\"x(a)\" )x\"",
                                          "R\"(\n#include \"a.h\"\n)\"",
                                          "R\"(never",
                                          "R\"toolongadelimiter12(a)\"",
                                          "\"open",
                                          "'open",
                                          "\"\\\n\"",
                                          "1.0_x"};

constexpr std::string_view kBlanks[] = {" ",
                                        "\n",
                                        "\t",
                                        "\r\n",
                                        "\\\n",
                                        "\\ \n",
                                        "\\\r\n",
                                        "/**/",
                                        "// x_shape\n",
                                        "// \\\n x_ndim\n",
                                        "/* \n */",
                                        "/* open",
                                        "\v\f",
                                        "/\\\n/ cut\n",
                                        "\xc3\xa9",
                                        "\xe2\x80\xa8",
                                        "\xef\xbb\xbf"};

constexpr std::string_view kLines[] = {"#define M 1",
                                       "#define M(a) (a + M)",
                                       "#define M(a, ...) a __VA_ARGS__",
                                       "#define f(a) g(a) g(a)",
                                       "#define g(a) f(a) a",
                                       "#define a b b",
                                       "#define b i i",
                                       "#define T float",
                                       "#define N(a) a##1",
                                       "#define M #a",
                                       "#undef M",
                                       "#undef x",
                                       "#define x y",
                                       "#define simd_sum simd_max",
                                       "#define if while",
                                       "#define",
                                       "#define 1",
                                       "#define M(",
                                       "#if 1",
                                       "#if 0",
                                       "#ifdef M",
                                       "#ifndef M",
                                       "#if M > 1 && defined(N)",
                                       "#if x_shape",
                                       "#if 1 / 0",
                                       "#if (",
                                       "#elif 1",
                                       "#else",
                                       "#endif",
                                       "#include \"a.h\"",
                                       "#include \"b.h\"",
                                       "#include <a.h>",
                                       "#include \"c.h\"",
                                       "#include <metal_stdlib>",
                                       "#include M",
                                       "#include",
                                       "#include \"a.h",
                                       "#import \"a.h\"",
                                       "#include_next \"a.h\"",
                                       "#if __has_include(\"a.h\")",
                                       "#if __has_include(<c.h>)",
                                       "#include \"kernel.metal\"",
                                       "#include \"kiln_include_0\"",
                                       "#include <simd/simd.h>",
                                       "#include \"utils.h\"",
                                       "#include <MetalPerformancePrimitives/a.h>",
                                       "#pragma once",
                                       "#pragma unroll",
                                       "#pragma clang loop unroll(full)",
                                       "#pragma METAL fp contract(off)",
                                       "#pragma METAL",
                                       "#pragma clang fp contract(fast)",
                                       "#pragma pack(1)",
                                       "#pragma push_macro(\"M\")",
                                       "#line 7",
                                       "#line 2147483647",
                                       "#line 1 \"kernel.metal\"",
                                       "# 5 \"other\"",
                                       "#error no",
                                       "#warning no",
                                       "#",
                                       "##",
                                       "#unknown",
                                       "#embed \"a.h\"",
                                       "_Pragma(\"clang loop unroll_count(2)\")",
                                       "#pragma clang diagnostic push",
                                       "#pragma GCC poison i",
                                       "#ident \"a\""};

constexpr std::string_view kStatements[] = {
    "uint i = thread_position_in_grid.x;",
    "y[i] = x[i] + s;",
    "float a = 1;",
    "float3 b = float3(a, 2, 3);",
    "y[0] = b.zyx.y;",
    "for (int k = 0; k < 3; ++k) {",
    "while (a < 3) {",
    "do { a += 1; } while (a < 3);",
    "if (i < 2) {",
    "} else {",
    "}",
    "switch (i) { case 1: a = 2; break; default: a = 3; }",
    "threadgroup float shared[32];",
    "threadgroup_barrier(mem_flags::mem_threadgroup);",
    "a = simd_sum(a);",
    "a = simd_shuffle_xor(a, 1);",
    "return;",
    "continue;",
    "break;",
    "auto f = [&](float v) { return v * a; };",
    "a = f(a);",
    "struct S { float v; float get() const { return v; } };",
    "S q{1};",
    "enum { A, B };",
    "using R = float;",
    "const device float* p = x + i;",
    "device float* o = y;",
    "o[i] = p[0];",
    "atomic_fetch_add_explicit((device atomic_uint*)y, 1u, memory_order_relaxed);",
    "int z = x_shape[0] / x_ndim;",
    "z = int(elem_to_loc(i, x_shape, x_strides, x_ndim));",
    "float m[4]; m[z & 3] = a; a = m[i & 3];",
    "half h = 1.5h;",
    "bfloat w = bfloat(h);",
    "complex64_t c = {1, 2};",
    "y[i] = select(a, 2.0f, i > 1);",
    "goto end; end: a = 1;",
    "template <typename V> V g(V v) { return v; }",
    "float g(float v) { return v; }",
    "float g(float3 v) { return v.x; }",
    "template <int K> float t() { return K + t<K - 1>(); } template <> float t<0>() { return 0; }",
    "a = t<9>();",
    "constant float table[2] = {1, 2};",
    "static float kept;",
    "namespace n { float v = 1; }",
    "METAL_FUNC float g(device float* v) { return v[0]; }",
    "float g(threadgroup float* v) { return v[0]; }",
    "__shared__ float tile[32];",
    "int t = threadIdx.x + blockIdx.x * blockDim.x;",
    "__syncthreads();",
    "a = __shfl_down_sync(0xffffffff, a, 1);",
    "[[kernel]] void other() {}",
    "#pragma unroll\nfor (int k = 0; k < 2; ++k) a += k;",
    "float v[3] = {1, 2, 3}, *r = v;",
    "auto [l, n] = q;",
    "a = a > 1 ? 2 : ;",
    "a = (a, b).x;",
    "a = sizeof(float3);",
    "a = b[1][2];",
    "float4 four(a, b);",
    "four.xy = float2(1);",
    "if (i == 0) return;",
    "z = z / 0 + (z << 40) + int(1e30f);"};

struct Kind {
  Pieces pieces;
  size_t weight;
};

class Writer {
 public:
  Writer(Choices& choices, std::string& text) : choices_(choices), text_(text) {}

  void run(size_t pieces) {
    const Kind kinds[] = {{kStatements, 6}, {kPunctuation, 4}, {kNames, 3}, {kWords, 3},
                          {kLiterals, 2},   {kLines, 3},       {kBlanks, 2}};
    size_t weights = 3;
    for (const Kind& kind : kinds) weights += kind.weight;
    while (pieces-- > 0 && !choices_.empty() && text_.size() < kMostGeneratedBytes) {
      size_t drawn = choices_.below(weights);
      const Kind* chosen = nullptr;
      for (const Kind& kind : kinds) {
        if (drawn < kind.weight) {
          chosen = &kind;
          break;
        }
        drawn -= kind.weight;
      }
      if (chosen)
        add(*chosen);
      else if (drawn == 0)
        repeat();
      else if (drawn == 1)
        close();
      else
        add_many();
    }
    if (choices_.below(4) != 0) close();
  }

 private:
  void add(const Kind& kind) {
    std::string_view piece = kind.pieces[choices_.below(kind.pieces.size())];
    bool is_line = kind.pieces.data() == kLines;
    if (is_line && !text_.empty() && text_.back() != '\n') text_ += '\n';
    for (char c : piece) {
      if (c == '(' || c == '[' || c == '{') open_ += c == '(' ? ')' : c == '[' ? ']' : '}';
      if ((c == ')' || c == ']' || c == '}') && !open_.empty() && open_.back() == c) open_.pop_back();
    }
    text_ += piece;
    bool is_statement = kind.pieces.data() == kStatements;
    text_ += is_line || is_statement ? "\n" : choices_.below(8) == 0 ? "" : " ";
  }

  // What came before, once more.
  void repeat() {
    if (text_.empty()) return;
    size_t back = std::min(text_.size(), 1 + choices_.below(256));
    size_t length = std::min(back, 1 + choices_.below(64));
    text_ += text_.substr(text_.size() - back, length);
  }

  // One token many times: what is nested deep.
  void add_many() {
    const Pieces from = choices_.below(2) ? Pieces(kPunctuation) : Pieces(kWords);
    std::string_view piece = from[choices_.below(from.size())];
    for (size_t n = 1 + 4 * choices_.below(256); n > 0 && text_.size() < kMostGeneratedBytes; --n) {
      text_ += piece;
      text_ += ' ';
    }
  }

  void close() {
    while (!open_.empty()) {
      text_ += open_.back();
      if (open_.back() != '}') text_ += ';';
      open_.pop_back();
    }
    text_ += '\n';
  }

  Choices& choices_;
  std::string& text_;
  std::string open_;
};

std::vector<Inclusion> inclusions_of(const std::string& text) {
  std::vector<Inclusion> inclusions;
  for (const IncludeName& name : include_names(text, TokenList(text))) {
    if (name.name == "a.h") inclusions.push_back({name.begin, name.end, 0});
    if (name.name == "b.h") inclusions.push_back({name.begin, name.end, 1});
  }
  return inclusions;
}

void require(bool holds, const char* what, const GeneratedText& text) {
  if (holds) return;
  std::fprintf(stderr, "%s\n---- header\n%s\n---- body\n%s\n", what, text.header.c_str(), text.body.c_str());
  std::abort();
}

}  // namespace

GeneratedText generate_text(Choices& choices) {
  GeneratedText text;
  text.files.included = {{"a.h", "", {}}, {"b.h", "", {}}};
  Writer(choices, text.header).run(choices.below(16));
  for (IncludedFile& file : text.files.included) Writer(choices, file.text).run(choices.below(8));
  Writer(choices, text.body).run(kMostGeneratedBytes);
  text.files.header_inclusions = inclusions_of(text.header);
  text.files.source_inclusions = inclusions_of(text.body);
  for (IncludedFile& file : text.files.included) file.inclusions = inclusions_of(file.text);
  return text;
}

KernelUnit generate_unit(const GeneratedText& generated, Dialect dialect) {
  KernelText text(generated.header, generated.body, generated.files);
  require(std::ranges::is_sorted(text.identifiers()), "identifiers are not sorted", generated);
  for (const std::string& name : text.identifiers()) require(is_identifier(name), "no identifier", generated);

  TokenList tokens(generated.body);
  require(tokens.size() <= generated.body.size(), "more tokens than characters", generated);
  for (const Token& token : tokens) require(!token.text.empty(), "an empty token", generated);

  const std::string input_names[] = {"x", "s"}, output_names[] = {"y"};
  const InputType inputs[] = {{Dtype::kFloat32, false, false}, {Dtype::kFloat32, true, true}};
  const Dtype outputs[] = {Dtype::kFloat32};
  const TemplateArgument arguments[] = {{"R1", Dtype::kFloat16}, {"R2", 3}};
  SignatureRequest request{text, "k", input_names, inputs, output_names, outputs, arguments};
  KernelUnit unit = dialect == Dialect::kMetal ? write_metal(request) : write_cuda(request);

  // Header and body stand in the text as they were, and at the lines that the map says.
  require(unit.text.starts_with(generated.header), "the header has changed", generated);
  size_t begin = 0;
  for (int line = 1; line < unit.source_map.body_first_line; ++line) begin = unit.text.find('\n', begin) + 1;
  require(unit.text.compare(begin, generated.body.size(), generated.body) == 0, "the body has changed", generated);
  for (const Inclusion& inclusion : unit.inclusions)
    require(inclusion.begin < inclusion.end && inclusion.end <= unit.text.size(), "an inclusion is elsewhere",
            generated);
  return unit;
}

}  // namespace kiln
