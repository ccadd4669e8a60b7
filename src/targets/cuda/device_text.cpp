#include "targets/cuda/device_text.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "core/sha256.h"

namespace kiln {
namespace {

struct Row {
  std::string_view part;  // file below src/device/nvrtc
  // A unit needs the part where its text has one of these identifiers; "a*": one that begins so.
  std::span<const std::string_view> names;
  std::string_view type;     // or where its signature or template arguments have this type
  std::string_view headers;  // CUDA's in its place; empty: it serves beside CUDA's too
  std::string_view base{};   // the part that this one needs, in the row above
  // or where it needs the base, and its text has one of these, which other parts have too
  std::span<const std::string_view> shared_names{};
};

constexpr std::string_view kHalfNames[] = {"__double2half",   "__float2half*",    "__half*", "__nv_half*",
                                           "__short_as_half", "__ushort_as_half", "half",    "nv_half*"};
// Of both types.
constexpr std::string_view kSmallFloatFunctions[] = {
    "__habs*",  "__hadd2*", "__hadd_*", "__hb*",     "__hcmadd", "__st*",  "__heq*",  "__hfma*",   "__hge*",
    "__hgt*",   "__high*",  "__hisinf", "__hisnan*", "__hle*",   "__hlt*", "__hmax*", "__hmin*",   "__hmul2*",
    "__hmul_*", "__hne*",   "__hsub2*", "__hsub_*",  "__ld*",    "__low*", "__shfl*", "atomicAdd", "h2*",
    "hceil",    "hcos",     "hexp*",    "hfloor",    "hlog*",    "hrcp",   "hrint",   "hrsqrt",    "hsin",
    "hsqrt",    "htanh*",   "htrunc",   "shfl*",     "reduce"};
constexpr std::string_view kHalfFunctions[] = {"__float22half2_rn",
                                               "__float2half2_rn",
                                               "__float2half_rd",
                                               "__float2half_ru",
                                               "__float2half_rz",
                                               "__floats2half2_rn",
                                               "__half2",
                                               "__half22float2",
                                               "__half2_raw",
                                               "__half2char_rz",
                                               "__half2half2",
                                               "__half2int*",
                                               "__half2ll*",
                                               "__half2short*",
                                               "__half2uchar_rz",
                                               "__half2uint*",
                                               "__half2ull*",
                                               "__half2ushort*",
                                               "__halves2half2",
                                               "__int2half*",
                                               "__ll2half*",
                                               "__nv_half2",
                                               "__short2half*",
                                               "__uint2half*",
                                               "__ull2half*",
                                               "__ushort2half*",
                                               "half2",
                                               "make_half2",
                                               "nv_half2",
                                               "CUDART_INF_FP16",
                                               "CUDART_NAN_FP16",
                                               "CUDART_MIN_DENORM_FP16",
                                               "CUDART_MAX_NORMAL_FP16",
                                               "CUDART_NEG_ZERO_FP16",
                                               "CUDART_ZERO_FP16",
                                               "CUDART_ONE_FP16"};
constexpr std::string_view kBfloatNames[] = {"__bfloat16*", "__float2bfloat16*", "__nv_bfloat16*", "nv_bfloat16*"};
constexpr std::string_view kBfloatFunctions[] = {
    "__bfloat162*",           "__bfloat16_as*",       "__double2bfloat16",    "__float22bfloat162_rn",
    "__float2bfloat162_rn",   "__float2bfloat16_rd",  "__float2bfloat16_ru",  "__float2bfloat16_rz",
    "__floats2bfloat162_rn",  "__halves2bfloat162",   "__int2bfloat16*",      "__ll2bfloat16*",
    "__nv_bfloat162*",        "__short2bfloat16*",    "__short_as_bfloat16",  "__uint2bfloat16*",
    "__ull2bfloat16*",        "__ushort2bfloat16*",   "__ushort_as_bfloat16", "make_bfloat162",
    "nv_bfloat162",           "CUDART_INF_BF16",      "CUDART_NAN_BF16",      "CUDART_MIN_DENORM_BF16",
    "CUDART_MAX_NORMAL_BF16", "CUDART_NEG_ZERO_BF16", "CUDART_ZERO_BF16",     "CUDART_ONE_BF16"};
constexpr std::string_view kGroupNames[] = {"cg", "cooperative_groups"};
constexpr std::string_view kComplexNames[] = {"complex128_t", "complex64_t", "complex_t", "is_complex*"};
constexpr std::string_view kUtilityNames[] = {"AlignedVector",
                                              "Limits",
                                              "LoopedElemToLoc",
                                              "Shape",
                                              "Strides",
                                              "elem_to_loc*",
                                              "inf",
                                              "is_aligned",
                                              "load_vector",
                                              "store_vector",
                                              "unsafe_load_vector",
                                              "unsafe_store_vector"};

constexpr std::string_view kHalfHeaders = "#include <cuda_fp16.h>\n#define __KILN_HALF 1\n";
constexpr std::string_view kBfloatHeaders = "#include <cuda_bf16.h>\n#define __KILN_BFLOAT16 1\n";
constexpr Row kRows[] = {
    {"half.cuh", kHalfNames, "__half", kHalfHeaders},
    {"half_functions.cuh", kHalfFunctions, "", kHalfHeaders, "half.cuh", kSmallFloatFunctions},
    {"bfloat16.cuh", kBfloatNames, "__nv_bfloat16", kBfloatHeaders},
    {"bfloat16_functions.cuh", kBfloatFunctions, "", kBfloatHeaders, "bfloat16.cuh", kSmallFloatFunctions},
    {"cooperative_groups.cuh", kGroupNames, "", "#include <cooperative_groups.h>\n"},
    {"complex.cuh", kComplexNames, "complex64_t", ""},
    {"utilities.cuh", kUtilityNames, "", ""},
};
constexpr std::string_view kTypes = "types.cuh";  // every unit's

// What MLX's headers include of CUDA's C++ library.
constexpr std::string_view kStandardHeaders =
    "#include <cuda/std/array>\n#include <cuda/std/complex>\n#include <cuda/std/limits>\n#include <cuda/std/tuple>\n"
    "#include <cuda/std/type_traits>\n#define __KILN_CUDA_STD 1\n";

constexpr std::string_view kGroupsAlias = "namespace mlx::core::cu {\nnamespace cg = cooperative_groups;\n}\n";

bool has_identifier(const KernelUnit& unit, std::string_view name) {
  bool is_beginning = name.ends_with('*');
  if (is_beginning) name.remove_suffix(1);
  auto found = std::lower_bound(unit.identifiers.begin(), unit.identifiers.end(), name);
  return found != unit.identifiers.end() && (is_beginning ? found->starts_with(name) : *found == name);
}

bool mentions_any(const KernelUnit& unit, std::span<const std::string_view> names) {
  return (unit.pastes_tokens && !names.empty()) ||  // any name may arise
         std::any_of(names.begin(), names.end(), [&](auto name) { return has_identifier(unit, name); });
}

bool mentions(const KernelUnit& unit, const Row& row) {
  return mentions_any(unit, row.names) || (!row.type.empty() && unit.text.find(row.type) != std::string::npos) ||
         std::any_of(unit.parameters.begin(), unit.parameters.end(), [&](const KernelParameter& parameter) {
           return std::find(row.names.begin(), row.names.end(), parameter.element) != row.names.end();
         });
}

// In the order of the table.
std::vector<const Row*> needed_parts(const KernelUnit& unit) {
  std::vector<const Row*> parts;
  for (const Row& row : kRows) {
    bool extends_needed = !parts.empty() && parts.back()->part == row.base;
    if (!mentions(unit, row) && !(extends_needed && mentions_any(unit, row.shared_names))) continue;
    if (!row.base.empty() && !extends_needed) parts.push_back(&row - 1);
    parts.push_back(&row);
  }
  return parts;
}

std::string_view text_of(std::string_view name) {
  auto parts = nvrtc_device_parts();
  return std::find_if(parts.begin(), parts.end(), [&](const NvrtcDevicePart& part) { return part.name == name; })->text;
}

// The part, with the parts that its text includes: NVRTC gets one text.
void append_part(std::string& text, std::string_view name) {
  constexpr std::string_view kInclude = "#include \"";
  std::string_view rest = text_of(name);
  for (size_t at = rest.find(kInclude); at != std::string_view::npos; at = rest.find(kInclude)) {
    text += rest.substr(0, at);
    rest.remove_prefix(at + kInclude.size());
    size_t end = rest.find('"');
    append_part(text, rest.substr(0, end));
    rest.remove_prefix(std::min(end + 2, rest.size()));
  }
  text += rest;
}

}  // namespace

// `include` is an identifier of preprocessor lines.
bool asks_for_cuda_headers(const KernelUnit& unit) {
  return has_identifier(unit, "cuda") || has_identifier(unit, "include");
}

NvrtcPrefix nvrtc_prefix(const KernelUnit& unit, bool with_cuda_headers) {
  NvrtcPrefix prefix;
  std::vector<const Row*> parts = needed_parts(unit);
  if (with_cuda_headers) {
    for (const Row* row : parts)
      if (row->base.empty()) prefix.text += row->headers;
    if (has_identifier(unit, "cuda")) prefix.text += kStandardHeaders;
    // A body's own `#include` stands within a function.
    if (std::ranges::find(unit.included_names, "cuComplex.h") != unit.included_names.end())
      prefix.text += "#include <cuComplex.h>\n";
  }
  append_part(prefix.text, kTypes);
  for (const Row* row : parts) {
    bool has_substitute = !row->headers.empty();
    if (!has_substitute || !with_cuda_headers) append_part(prefix.text, row->part);
    prefix.is_lean = prefix.is_lean || (has_substitute && !with_cuda_headers);
    if (row->part == "cooperative_groups.cuh") prefix.text += kGroupsAlias;
  }
  return prefix;
}

std::string nvrtc_device_digest(const std::vector<std::string>& options) {
  Sha256 hash;
  auto add = [&](std::string_view text) { hash.add(text); };
  for (const NvrtcDevicePart& part : nvrtc_device_parts()) {
    add(part.name);
    add(part.digest);
  }
  for (const Row& row : kRows) {
    for (std::string_view name : row.names) add(name);
    for (std::string_view name : row.shared_names) add(name);
    add(row.headers);
  }
  add(kStandardHeaders);
  add(kGroupsAlias);
  for (const std::string& option : options) add(option + '\0');
  return hash.hex();
}

}  // namespace kiln
