#include "compiler/clang/device_library.h"

#include <algorithm>

#include "core/cpu_image.h"
#include "core/sha256.h"
#include "core/text.h"
#include "core/thread_values.h"
#include "device/engine/thread_values.h"

// Embedded by `src/compiler/CMakeLists.txt`.
extern "C" const char kiln_metal_library_begin[];
extern "C" const char kiln_metal_library_end[];
extern "C" const char kiln_cuda_library_begin[];
extern "C" const char kiln_cuda_library_end[];

namespace kiln {
namespace {

// The device library's numbers are core's.
#define KILN_ROW(name, in_library, components, scope) static_assert(__kiln::ThreadValue::in_library == k##name + 0u);
KILN_THREAD_VALUES(KILN_ROW)
#undef KILN_ROW
static_assert(__kiln::ThreadValue::numbers == kThreadValueNumbers);

constexpr std::string_view kAfter = "after/";
// Only for Metal's programs that include a header of this folder.
constexpr std::string_view kSimd = "simd/";
// Only for CUDA; kCudaLibrary includes its whole library.
constexpr std::string_view kCuda = "cuda/", kSharedWithNvrtc = "nvrtc/", kCudaLibrary = "cuda/library.h";

// A part below after/ that declares several names. Other parts declare one function, which the file is named after.
struct SeveralNames {
  std::string_view part;
  std::span<const std::string_view> names;  // a kernel needs the part if it mentions one of these; "a*" is a prefix
};
constexpr std::string_view kPackedNames[] = {"packed_*"};
constexpr std::string_view kPixelNames[] = {
    "r8unorm",    "r8snorm",     "r16unorm",   "r16snorm",    "rg8unorm",    "rg8snorm", "rg16unorm", "rg16snorm",
    "rgba8unorm", "srgba8unorm", "rgba8snorm", "rgba16unorm", "rgba16snorm", "rgb10a2",  "rg11b10f",  "rgb9e5"};
constexpr std::string_view kTraitNames[] = {"add_const",
                                            "add_const_t",
                                            "add_cv",
                                            "add_cv_t",
                                            "add_volatile",
                                            "add_volatile_t",
                                            "conjunction",
                                            "conjunction_v",
                                            "disjunction",
                                            "disjunction_v",
                                            "integer_sequence",
                                            "is_trivially_copyable",
                                            "is_trivially_copyable_v",
                                            "make_integer_sequence",
                                            "negation",
                                            "negation_v",
                                            "remove_addrspace",
                                            "remove_addrspace_t"};
constexpr std::string_view kUtilityNames[] = {"make_uniform", "move", "swap", "uniform"};
constexpr SeveralNames kSeveralNames[] = {{"after/packed_functions.h", kPackedNames},
                                          {"after/pixel_types.h", kPixelNames},
                                          {"after/type_traits.h", kTraitNames},
                                          {"after/utility.h", kUtilityNames}};

// Writes swizzles (members that access several components, or one component by its second name) as properties of
// __kiln::members::swizzles, from which vec and packed_vec derive.
class SwizzleWriter {
 public:
  // Adds `name` if its letters are all among `letters`.
  void add(std::string_view name, std::string_view letters) {
    size_t highest = 0;
    bool repeats = false;
    std::string read, write;
    for (size_t i = 0; i < name.size(); ++i) {
      size_t component = letters.find(name[i]);
      if (component == std::string_view::npos) return;
      highest = std::max(highest, component);
      repeats = repeats || name.find(name[i], i + 1) != std::string_view::npos;
      read += concat(i ? ", " : "", "v.", "xyzw"[component]);
      write += concat("v.", "xyzw"[component], " = value", name.size() == 1 ? "" : concat(".", "xyzw"[i]), "; ");
    }
    std::string type = name.size() == 1 ? "T" : concat("metal::vec<T, ", name.size(), ">");
    std::string check = concat("static_assert(", highest, " < N, \"the vector has no such component\"); ");
    text_ += concat("  __KILN_INLINE ", type, " __get_", name, "() const { ", check,
                    "auto& v = static_cast<const Vector&>(*this); return {", read, "}; }\n");
    if (!repeats)
      text_ += concat("  __KILN_INLINE ", type, " __put_", name, "(", type, " value) { ", check,
                      "auto& v = static_cast<Vector&>(*this); ", write, "return value; }\n");
    can_nest_ = can_nest_ || name.size() > 1;
    text_ += concat("  __declspec(property(get = __get_", name, repeats ? "" : concat(", put = __put_", name), ")) ",
                    type, " ", name, ";\n");
  }

  std::string text() const {
    return concat("namespace __kiln::members {\ntemplate <class Vector, class T, int N>\nstruct swizzles {\n", text_,
                  can_nest_ ? "  __KILN_NESTED_SWIZZLES\n" : "", "};\n}\n");
  }

 private:
  std::string text_;
  bool can_nest_ = false;  // a swizzle of one component is a number
};

// The function that the part defines: its file name without folder and extension.
std::string_view function_of(const DeviceLibraryPart& part) {
  std::string_view name = part.name.substr(part.name.rfind('/') + 1);
  return name.substr(0, name.find('.'));
}

bool mentions(const KernelUnit& unit, std::string_view name) {
  if (name.ends_with('*')) {
    name.remove_suffix(1);
    auto found = std::lower_bound(unit.identifiers.begin(), unit.identifiers.end(), name);
    return found != unit.identifiers.end() && found->starts_with(name);
  }
  return unit.pastes_tokens || std::binary_search(unit.identifiers.begin(), unit.identifiers.end(), name);
}

bool declares(const KernelUnit& unit, std::string_view name) {
  return std::find(unit.own_names.begin(), unit.own_names.end(), name) != unit.own_names.end();
}

// Includes the part if the unit mentions one of its names and does not declare that name. Names that the unit declares
// are defined as macros such as `__KILN_OWN_swap`, which make the part omit them.
std::string inclusion_of(const DeviceLibraryPart& part, const KernelUnit& unit) {
  const std::string_view function = function_of(part);
  std::span<const std::string_view> names(&function, 1);
  for (const SeveralNames& entry : kSeveralNames)
    if (entry.part == part.name) names = entry.names;
  std::string text;
  bool is_needed = false;
  for (std::string_view name : names) {
    bool own = declares(unit, name);
    if (own) text += concat("#define __KILN_OWN_", name, "\n");
    is_needed = is_needed || (!own && mentions(unit, name));
  }
  return is_needed ? concat(text, "#include \"kiln/", part.name, "\"\n") : "";
}

}  // namespace

std::string device_library_umbrella(Dialect dialect) {
  std::string text;
  for (const DeviceLibraryPart& part : device_library()) {
    if (dialect == Dialect::kCuda && part.name == kCudaLibrary) return std::string(part.text);
    if (!part.name.starts_with(kAfter) && !part.name.starts_with(kSimd) && !part.name.starts_with(kCuda) &&
        !part.name.starts_with(kSharedWithNvrtc))
      text += concat("#include \"", part.name, "\"\n");
  }
  // The device library declares CpuExchange again, as Exchange. CUDA's library has this assertion too.
  return text + concat("static_assert(static_cast<unsigned>(__kiln::Exchange::exclusive_scan) == ",
                       static_cast<uint32_t>(CpuExchange::kExclusiveScan), ");\n");
}

std::string_view precompiled_device_library(Dialect dialect) {
  if (dialect == Dialect::kCuda)
    return {kiln_cuda_library_begin, static_cast<size_t>(kiln_cuda_library_end - kiln_cuda_library_begin)};
  return {kiln_metal_library_begin, static_cast<size_t>(kiln_metal_library_end - kiln_metal_library_begin)};
}

std::string text_before_kernel(const KernelUnit& unit) {
  if (unit.dialect == Dialect::kCuda) {
    // Programs often define their own cuComplex, so only those that include cuComplex.h get this one.
    bool is_needed = std::ranges::find(unit.included_names, "cuComplex.h") != unit.included_names.end();
    return is_needed ? "#include \"kiln/cuda/cu_complex.h\"\n" : "";
  }
  SwizzleWriter swizzles;
  for (const std::string& identifier : unit.identifiers) {
    if (identifier.size() > 4) continue;
    // vec itself has the components x, y, z and w.
    if (identifier.size() > 1) swizzles.add(identifier, "xyzw");
    swizzles.add(identifier, "rgba");
  }
  std::string text = swizzles.text();
  for (const DeviceLibraryPart& part : device_library())
    if (part.name.starts_with(kAfter)) text += inclusion_of(part, unit);
  if (std::ranges::any_of(unit.included_names, [](std::string_view name) { return name.starts_with(kSimd); }))
    text += "#include \"kiln/simd/simd.h\"\n";
  return text;
}

std::string device_library_digest() {
  static const std::string digest = [] {
    Sha256 hash;
    for (const DeviceLibraryPart& part : device_library()) {
      hash.add(part.name);
      hash.add(part.text);
    }
    return hash.hex();
  }();
  return digest;
}

}  // namespace kiln
