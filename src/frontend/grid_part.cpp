#include "frontend/grid_part.h"

#include <algorithm>
#include <array>

#include "core/text.h"
#include "frontend/lexer.h"
#include "kiln/error.h"

namespace kiln {
namespace {

constexpr std::array<std::string_view, 3> kAxes = {"x", "y", "z"};
constexpr std::string_view kBatch = "kiln_batch";

// What of CUDA's is the launch's grid wherever it stands: in functions of the header, and in what has it by a call.
constexpr std::array<std::string_view, 2> kGlobals = {"blockIdx", "gridDim"};
constexpr std::array<std::string_view, 1> kCalls = {"cooperative_groups"};

template <size_t N>
void refuse_names(const std::array<std::string_view, N>& names, std::string_view text, std::string_view where,
                  std::string_view kernel_name) {
  TokenList tokens(text);
  for (const Token& token : tokens) {
    if (!token.is_identifier() || std::ranges::find(names, token.text) == names.end()) continue;
    int64_t line = 1;
    if (token.text.data() >= text.data() && token.text.data() < text.data() + text.size())
      line += std::count(text.data(), token.text.data(), '\n');
    throw UnsupportedError(concat("[cuda_kernel] `", kernel_name, "`: ", where, ":", line, ": `", token.text,
                                  "` is of the whole launch here, and the body's grid is a part of it (a batch as an "
                                  "axis of the grid, or a slice)."));
  }
}

}  // namespace

std::string part_size_name(std::string_view output) { return concat("kiln_size_", output); }

std::vector<std::string> part_inputs(const GridPart& part, const std::vector<std::string>& output_names) {
  std::vector<std::string> names;
  if (part.has_batch()) {
    names.insert(names.end(), {std::string(kPartDepth), std::string(kPartDepthGroups)});
    for (const std::string& output : output_names) names.push_back(part_size_name(output));
  }
  if (part.is_slice())
    for (std::string_view name : {kSliceBegin, kSliceGroup, kSliceThreads, kSliceGroups, kSliceGroupThreads})
      names.emplace_back(name);
  return names;
}

void check_part(Dialect dialect, const KernelText& text, std::string_view kernel_name) {
  // Metal's attributes are parameters, which only the body sees.
  if (dialect == Dialect::kMetal) return;
  refuse_names(kGlobals, text.header(), "header", kernel_name);
  refuse_names(kCalls, text.header(), "header", kernel_name);
  refuse_names(kCalls, text.body(), "source", kernel_name);
  for (const IncludedFile& file : text.files().included) {
    refuse_names(kGlobals, file.text, file.path, kernel_name);
    refuse_names(kCalls, file.text, file.path, kernel_name);
  }
}

bool PartText::needs(std::string_view attribute, bool body_uses) const {
  if (body_uses) return true;
  auto uses = [&](std::string_view name) { return request_.text.body_uses(name); };
  if (attribute == "thread_position_in_grid") return request_.part.has_batch();
  if (attribute == "dispatch_threads_per_threadgroup")
    return request_.part.is_slice() &&
           (uses("dispatch_quadgroups_per_threadgroup") || uses("dispatch_simdgroups_per_threadgroup"));
  return false;
}

std::string PartText::parameter(std::string_view name) const {
  return dialect_ == Dialect::kMetal ? concat("uint(", name, ")") : concat("(unsigned int)", name, "[0]");
}

// Two declarations: after its own declarator a name is the new one, so the value is computed outside of its scope.
void PartText::declare(std::string_view type, std::string_view name, std::string_view value) {
  outer_ += concat("  ", type, " kiln_body_", name, " = ", value, ";\n");
  inner_ += concat("  ", type, " ", name, " = kiln_body_", name, ";\n");
}

void PartText::declare_pointer(std::string_view type, std::string_view name, std::string_view stride) {
  std::string_view element = dialect_ == Dialect::kMetal ? "__kiln::element" : "__kiln_element";
  declare(type, name, concat(element, "(", name, ", int64_t(", kBatch, ") * ", stride, ")"));
}

void PartText::declare_output(std::string_view type, std::string_view name) {
  std::string size = part_size_name(name);
  declare_pointer(type, name, dialect_ == Dialect::kMetal ? concat("int64_t(", size, ")") : concat(size, "[0]"));
}

void PartText::declare_without_first(std::string_view type, std::string_view name) {
  outer_ += concat("  ", type, " kiln_body_", name, " = ", name, ";\n  for (int i = 0; i < ", kMaxCudaDimensions - 1,
                   "; ++i) kiln_body_", name, "[i] = ", name, "[i + 1];\n");
  inner_ += concat("  const ", type, " ", name, " = kiln_body_", name, ";\n");
}

std::string PartText::with_component(std::string_view type, std::string_view vector, int axis,
                                     std::string_view value) const {
  std::array<std::string, 3> components;
  for (size_t i = 0; i < kAxes.size(); ++i)
    components[i] = static_cast<int>(i) == axis ? std::string(value) : concat(vector, ".", kAxes[i]);
  return concat(type, "(", components[0], ", ", components[1], ", ", components[2], ")");
}

void PartText::declare_attribute(std::string_view name) {
  const GridPart& part = request_.part;
  auto declare_component = [&](int axis, std::string_view value) {
    declare("uint3", name, with_component("uint3", name, axis, value));
  };
  if (part.has_batch()) {
    constexpr int kZ = 2;
    if (name == "thread_position_in_grid")
      declare_component(kZ, concat(name, ".z - ", kBatch, " * ", parameter(kPartDepth)));
    else if (name == "threadgroup_position_in_grid")
      declare_component(kZ, concat(name, ".z - ", kBatch, " * ", parameter(kPartDepthGroups)));
    else if (name == "threads_per_grid" || name == "grid_size")
      declare_component(kZ, parameter(kPartDepth));
    else if (name == "threadgroups_per_grid")
      declare_component(kZ, parameter(kPartDepthGroups));
    return;
  }
  int axis = part.sliced_axis;
  std::string own = concat(name, ".", kAxes[static_cast<size_t>(axis)]);
  // That of the whole grid, which a slice may be too short for.
  std::string threads =
      with_component("uint3", "dispatch_threads_per_threadgroup", axis, parameter(kSliceGroupThreads));
  if (name == "thread_position_in_grid")
    declare_component(axis, concat(own, " + ", parameter(kSliceBegin)));
  else if (name == "threadgroup_position_in_grid")
    declare_component(axis, concat(own, " + ", parameter(kSliceGroup)));
  else if (name == "threads_per_grid" || name == "grid_size")
    declare_component(axis, parameter(kSliceThreads));
  else if (name == "threadgroups_per_grid")
    declare_component(axis, parameter(kSliceGroups));
  else if (name == "dispatch_threads_per_threadgroup")
    declare("uint3", name, threads);
  else
    declare("uint", name,
            concat("(", threads, ".x * ", threads, ".y * ", threads, ".z + ",
                   name == "dispatch_simdgroups_per_threadgroup" ? "31) / 32" : "3) / 4"));
}

void PartText::declare_block_positions() {
  const GridPart& part = request_.part;
  int axis = part.has_batch() ? 2 : part.sliced_axis;
  std::string own = concat("blockIdx.", kAxes[static_cast<size_t>(axis)]);
  std::string position = part.has_batch() ? concat(own, " - ", kBatch, " * ", parameter(kPartDepthGroups))
                                          : concat(own, " + ", parameter(kSliceGroup));
  declare("uint3", "blockIdx", with_component("make_uint3", "blockIdx", axis, position));
  declare("dim3", "gridDim",
          with_component("dim3", "gridDim", axis, parameter(part.has_batch() ? kPartDepthGroups : kSliceGroups)));
}

std::string PartText::before() const {
  if (request_.part.is_whole()) return "";
  std::string text;
  if (request_.part.has_batch())
    text = concat("  const unsigned int ", kBatch, " = ",
                  dialect_ == Dialect::kMetal ? concat("thread_position_in_grid.z / ", parameter(kPartDepth))
                                              : concat("blockIdx.z / ", parameter(kPartDepthGroups)),
                  ";\n");
  // The inner block is the body's, which may declare such names itself.
  return concat(text, outer_, "  {\n", inner_, "  {\n");
}

std::string PartText::after() const { return request_.part.is_whole() ? "" : "  }\n  }\n"; }

}  // namespace kiln
