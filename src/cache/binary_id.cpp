#include "cache/binary_id.h"

#include "core/sha256.h"

namespace kiln {

std::string binary_id(const KernelUnit& unit, const TargetSpec& target, std::string_view compiler_identity) {
  Sha256 hash;
  hash.add("kiln binary 6");
  hash.add(compiler_identity);
  hash.add(static_cast<uint64_t>(target.kind));
  hash.add(target.cpu);
  hash.add(target.engine);
  if (!target.passes.empty() || target.pass_limit) {
    hash.add(target.passes);
    hash.add(target.pass_limit ? *target.pass_limit + 1 : 0);
  }
  hash.add(static_cast<uint64_t>(unit.dialect));
  hash.add(static_cast<uint64_t>(unit.math_mode));
  hash.add(static_cast<uint64_t>(unit.form.packed()));
  hash.add(static_cast<uint64_t>(unit.bounds_guards));
  hash.add(static_cast<uint64_t>(unit.allows_input_stores));
  hash.add(unit.dynamic_memory_bytes);
  for (uint32_t threads : unit.known_grid) hash.add(static_cast<uint64_t>(threads));
  hash.add(unit.text);
  hash.add(unit.entry);
  // A failure is remembered with its message, which names the kernel.
  hash.add(unit.name);
  // Where header and body stand in the text: lines in run-time messages depend on it.
  hash.add(static_cast<uint64_t>(unit.source_map.header_lines));
  hash.add(static_cast<uint64_t>(unit.source_map.body_first_line));
  hash.add(static_cast<uint64_t>(unit.source_map.body_lines));
  // Not the paths: the same files in another folder make the same code.
  auto add_inclusions = [&](const std::vector<Inclusion>& inclusions) {
    hash.add(inclusions.size());
    for (const Inclusion& inclusion : inclusions) {
      hash.add(inclusion.begin);
      hash.add(inclusion.end);
      hash.add(static_cast<uint64_t>(inclusion.file));
    }
  };
  add_inclusions(unit.inclusions);
  hash.add(unit.included_files.size());
  for (const IncludedFile& file : unit.included_files) {
    hash.add(file.text);
    add_inclusions(file.inclusions);
  }
  hash.add(unit.parameters.size());
  for (const KernelParameter& parameter : unit.parameters) {
    hash.add(static_cast<uint64_t>(parameter.role));
    hash.add(static_cast<uint64_t>(parameter.argument));
    hash.add(parameter.element);
    hash.add(static_cast<uint64_t>(parameter.element_bytes));
    hash.add(static_cast<uint64_t>(parameter.alignment));
    hash.add(static_cast<uint64_t>(parameter.by_reference));
    hash.add(static_cast<uint64_t>(parameter.from_zero));
    hash.add(static_cast<uint64_t>(parameter.is_writable_input));
    hash.add(static_cast<uint64_t>(parameter.is_batch));
    hash.add(parameter.known_bytes);
    hash.add(parameter.values.size());
    for (int64_t value : parameter.values) hash.add(static_cast<uint64_t>(value));
  }
  hash.add(unit.attributes.size());
  for (uint8_t attribute : unit.attributes) hash.add(static_cast<uint64_t>(attribute));
  return hash.hex();
}

}  // namespace kiln
