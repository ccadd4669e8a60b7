#include "compiler/device_library.h"

#include <algorithm>

#include "core/cpu_image.h"
#include "core/sha256.h"
#include "core/text.h"

// Embedded by `src/compiler/CMakeLists.txt`.
extern "C" const char kiln_metal_library_begin[];
extern "C" const char kiln_metal_library_end[];
extern "C" const char kiln_cuda_library_begin[];
extern "C" const char kiln_cuda_library_end[];

namespace kiln {
namespace {

constexpr std::string_view kAfter = "after/";
// CUDA's alone; the last one includes all of its library.
constexpr std::string_view kCuda = "cuda/", kSharedWithNvrtc = "nvrtc/", kCudaLibrary = "cuda/library.h";
// The one part there that is no function's.
constexpr std::string_view kPackedFunctions = "after/packed_functions.h";

// Members that read and write several components at once, or one by its second name, as properties of
// __kiln::members::swizzles, which vec and packed_vec derive from.
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
    text_ += concat("  __declspec(property(get = __get_", name, repeats ? "" : concat(", put = __put_", name), ")) ",
                    type, " ", name, ";\n");
  }

  std::string text() const {
    return concat("namespace __kiln::members {\ntemplate <class Vector, class T, int N>\nstruct swizzles {\n", text_,
                  "};\n}\n");
  }

 private:
  std::string text_;
};

// The file name without folder and ending is the function that the part defines.
std::string_view function_of(const DeviceLibraryPart& part) {
  std::string_view name = part.name.substr(part.name.rfind('/') + 1);
  return name.substr(0, name.find('.'));
}

// Whether the unit needs a part below `after/`.
bool is_wanted(const DeviceLibraryPart& part, const KernelUnit& unit) {
  const std::vector<std::string>& names = unit.identifiers;
  if (part.name == kPackedFunctions)
    return std::any_of(names.begin(), names.end(), [](const std::string& name) { return name.starts_with("packed_"); });
  std::string_view function = function_of(part);
  bool mentioned = unit.pastes_tokens || std::binary_search(names.begin(), names.end(), function);
  bool own = std::find(unit.own_functions.begin(), unit.own_functions.end(), function) != unit.own_functions.end();
  return mentioned && !own;
}

}  // namespace

std::string device_library_umbrella(Dialect dialect) {
  std::string text;
  for (const DeviceLibraryPart& part : device_library()) {
    if (dialect == Dialect::kCuda && part.name == kCudaLibrary) return std::string(part.text);
    if (!part.name.starts_with(kAfter) && !part.name.starts_with(kCuda) && !part.name.starts_with(kSharedWithNvrtc))
      text += concat("#include \"", part.name, "\"\n");
  }
  // CpuExchange is declared a second time, as Exchange. CUDA's library has the same.
  return text + concat("static_assert(static_cast<unsigned>(__kiln::Exchange::exclusive_scan) == ",
                       static_cast<uint32_t>(CpuExchange::kExclusiveScan), ");\n");
}

std::string_view precompiled_device_library(Dialect dialect) {
  if (dialect == Dialect::kCuda)
    return {kiln_cuda_library_begin, static_cast<size_t>(kiln_cuda_library_end - kiln_cuda_library_begin)};
  return {kiln_metal_library_begin, static_cast<size_t>(kiln_metal_library_end - kiln_metal_library_begin)};
}

std::string text_before_kernel(const KernelUnit& unit) {
  if (unit.dialect == Dialect::kCuda) return "";
  SwizzleWriter swizzles;
  for (const std::string& identifier : unit.identifiers) {
    if (identifier.size() > 4) continue;
    // vec itself has the components x, y, z and w.
    if (identifier.size() > 1) swizzles.add(identifier, "xyzw");
    swizzles.add(identifier, "rgba");
  }
  std::string text = swizzles.text();
  for (const DeviceLibraryPart& part : device_library()) {
    if (part.name.starts_with(kAfter) && is_wanted(part, unit)) text += concat("#include \"kiln/", part.name, "\"\n");
  }
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
