#include "runtime/launch_text.h"

#include <charconv>
#include <cstdint>
#include <limits>
#include <string>

#include "core/dtype_table.h"
#include "core/json.h"
#include "core/text.h"
#include "kiln/error.h"

namespace kiln {
namespace {

Dtype dtype_named(std::string_view name) {
  for (const DtypeRow& row : kDtypes)
    if (row.name == name) return row.dtype;
  throw ValueError(concat("there is no dtype ", name));
}

std::vector<std::string> read_names(const Json& list) {
  std::vector<std::string> result;
  for (const Json& item : list.as_list()) result.push_back(item.as_string());
  return result;
}

std::optional<bool> read_optional_bool(const Json& value) {
  return value.is_null() ? std::nullopt : std::optional(value.as_bool());
}

const Json& item(const Json& list, size_t i) {
  if (i >= list.as_list().size()) throw ValueError("a list is too short");
  return list.as_list()[i];
}

size_t read_size(const Json& value) {
  if (value.as_integer() < 0) throw ValueError("a size is negative");
  return static_cast<size_t>(value.as_integer());
}

std::vector<Inclusion> read_inclusions(const Json& list, size_t text_bytes, size_t files) {
  std::vector<Inclusion> result;
  size_t last = 0;
  for (const Json& entry : list.as_list()) {
    size_t begin = read_size(item(entry, 0)), end = read_size(item(entry, 1)), file = read_size(item(entry, 2));
    if (begin < last || end < begin || end > text_bytes || file >= files)
      throw ValueError("a text has no such inclusion");
    result.push_back({begin, end, static_cast<uint32_t>(file)});
    last = end;
  }
  return result;
}

KernelFiles read_files(const Json& value, const KernelSpec& spec) {
  KernelFiles files;
  files.source_path = value["source"].as_string();
  files.header_path = value["header"].as_string();
  files.include_dirs = read_names(value["include_dirs"]);
  const Json& included = value["included"];
  for (const Json& file : included.as_list())
    files.included.push_back({item(file, 0).as_string(), item(file, 1).as_string(), {}});
  size_t count = files.included.size();
  for (size_t i = 0; i < count; ++i)
    files.included[i].inclusions = read_inclusions(item(item(included, i), 2), files.included[i].text.size(), count);
  files.source_inclusions = read_inclusions(value["source_inclusions"], spec.source.size(), count);
  files.header_inclusions = read_inclusions(value["header_inclusions"], spec.header.size(), count);
  return files;
}

MathMode math_mode_named(std::string_view name) {
  if (name == "safe") return MathMode::kSafe;
  if (name == "relaxed") return MathMode::kRelaxed;
  if (name == "fast") return MathMode::kFast;
  throw ValueError(concat("there is no math_mode ", name));
}

// As the constructor of Python's Kernel takes it.
KernelSpec read_kernel(const Json& value) {
  KernelSpec spec;
  const std::string& dialect = value["dialect"].as_string();
  if (dialect != "metal" && dialect != "cuda") throw ValueError(concat("there is no dialect ", dialect));
  spec.dialect = dialect == "metal" ? Dialect::kMetal : Dialect::kCuda;
  spec.name = value["name"].as_string();
  spec.input_names = read_names(value["input_names"]);
  spec.output_names = read_names(value["output_names"]);
  spec.source = value["source"].as_string();
  spec.header = value["header"].as_string();
  spec.ensure_row_contiguous = value["ensure_row_contiguous"].as_bool();
  spec.atomic_outputs = value["atomic_outputs"].as_bool();
  spec.shared_memory = value["shared_memory"].as_integer();
  spec.compile_options.math_mode = math_mode_named(value["math_mode"].as_string());
  spec.compile_options.bounds = read_optional_bool(value["bounds"]);
  spec.compile_options.specialize = read_optional_bool(value["specialize"]);
  spec.style = value["always_shapes"].as_bool() ? SignatureStyle::kAlways : SignatureStyle::kWhereUsed;
  if (const Json* batched = value.find("batched_inputs"))
    for (const Json& flag : batched->as_list()) spec.part.batched_inputs.push_back(flag.as_bool());
  if (const Json* axis = value.find("sliced_axis")) {
    if (axis->as_integer() < -1 || axis->as_integer() > 2) throw ValueError("a grid has no such axis");
    spec.part.sliced_axis = static_cast<int>(axis->as_integer());
  }
  if (const Json* files = value.find("files")) spec.files = read_files(*files, spec);
  return spec;
}

TemplateValue read_template_value(const Json& value) {
  if (value.is_bool()) return value.as_bool();
  if (value.is_integer()) return value.as_integer();
  return dtype_named(value.as_string());
}

// As Python prints it, in quotation marks: JSON has no infinity.
Number read_number(std::string_view text) {
  const char *begin = text.data(), *end = begin + text.size();
  int64_t integer = 0;
  if (auto [at, error] = std::from_chars(begin, end, integer); error == std::errc() && at == end) return integer;
  uint64_t large = 0;
  if (auto [at, error] = std::from_chars(begin, end, large); error == std::errc() && at == end) return large;
  double number = 0;
  if (auto [at, error] = std::from_chars(begin, end, number); error == std::errc() && at == end) return number;
  throw ValueError(concat("`", text, "` is no number"));
}

LaunchText read_launch(const Json& value) {
  LaunchText launch;
  launch.kernel = read_kernel(value["kernel"]);
  for (const Json& pair : value["template"].as_list())
    launch.template_arguments.push_back({item(pair, 0).as_string(), read_template_value(item(pair, 1))});
  for (const Json& output : value["outputs"].as_list())
    launch.outputs.push_back({dtype_named(item(output, 0).as_string()), read_size(item(output, 1))});
  if (const Json& number = value["init_value"]; !number.is_null()) launch.init_value = read_number(number.as_string());
  return launch;
}

}  // namespace

LaunchText parse_launch_text(std::string_view text) {
  try {
    return read_launch(Json::parse(text));
  } catch (const ValueError& error) {
    throw ValueError(concat("[kiln] The text of a launch cannot be read, as another version of Kiln may have written ",
                            "it: ", error.what(), "."));
  }
}

}  // namespace kiln
