// docs/language.md 6.1: machine code is identified by everything that it depends on.
#include "cache/binary_id.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

namespace kiln {
namespace {

struct Case {
  KernelUnit unit;
  TargetSpec target{DeviceKind::kCpu, "x86-64-v3", "scalar"};
  std::string compiler = "LLVM 19";

  std::string id() const { return binary_id(unit, target, compiler); }
};

Case example() {
  Case c;
  c.unit.name = "k";
  c.unit.text = "[[kernel]] void k() {}";
  c.unit.entry = "k";
  c.unit.source_map = {1, 3, 2};
  c.unit.parameters = {{ParameterRole::kInput, 0, "x", "float", 4, 4, false},
                       {ParameterRole::kOutput, 0, "y", "float", 4, 4, false}};
  c.unit.attributes = {3, 4};
  c.unit.inclusions = {{1, 4, 0}};
  c.unit.included_files = {{"a.h", "int a;", {{1, 2, 0}}}};
  return c;
}

TEST(BinaryId, IsTheSameForTheSame) {
  EXPECT_EQ(example().id(), example().id());
  EXPECT_EQ(example().id().size(), 64u);
}

TEST(BinaryId, DoesNotDependOnWhereFilesLie) {
  Case elsewhere = example();
  elsewhere.unit.source_path = "k.metal";
  elsewhere.unit.header_path = "k.h";
  elsewhere.unit.include_dirs = {"include"};
  elsewhere.unit.included_files[0].path = "include/a.h";
  EXPECT_EQ(elsewhere.id(), example().id());
}

TEST(BinaryId, DependsOnEverythingThatCodeDependsOn) {
  const std::function<void(Case&)> changes[] = {
      [](Case&) {},
      [](Case& c) { c.unit.text += " "; },
      [](Case& c) { c.unit.entry = "k<float>"; },
      // Messages name the kernel, and a failure is remembered with its message.
      [](Case& c) { c.unit.name = "l"; },
      [](Case& c) { c.unit.dialect = Dialect::kCuda; },
      [](Case& c) { c.unit.math_mode = MathMode::kRelaxed; },
      [](Case& c) { c.unit.math_mode = MathMode::kFast; },
      [](Case& c) { c.unit.bounds_guards = false; },
      [](Case& c) { c.unit.form.rows_are_simdgroups = true; },
      [](Case& c) { c.unit.form.rows_are_simdgroup_pairs = true; },
      [](Case& c) { c.unit.form.is_one_row = true; },
      [](Case& c) { c.unit.form.threadgroups_are_even = true; },
      [](Case& c) { c.unit.form.arrays_are_plain = true; },
      [](Case& c) { c.unit.form.simdgroups = 8; },
      [](Case& c) { c.unit.form.simdgroups_are_full = true; },
      [](Case& c) { c.unit.dynamic_memory_bytes = 64; },
      [](Case& c) { c.target.engine = "simd"; },
      [](Case& c) { c.target.passes = "-prefetch"; },
      [](Case& c) { c.target.passes = "-prefetch,-widen"; },
      [](Case& c) { c.target.pass_limit = 0; },
      [](Case& c) { c.target.pass_limit = 1; },
      [](Case& c) { c.unit.source_map.header_lines = 2; },
      [](Case& c) { c.unit.source_map.body_first_line = 4; },
      [](Case& c) { c.unit.source_map.body_lines = 3; },
      [](Case& c) { c.unit.parameters.pop_back(); },
      [](Case& c) { c.unit.parameters[0].known_bytes = 64; },
      [](Case& c) { c.unit.parameters[0].role = ParameterRole::kShape; },
      [](Case& c) { c.unit.parameters[0].argument = 1; },
      [](Case& c) { c.unit.parameters[0].element = "int"; },
      [](Case& c) { c.unit.parameters[0].element_bytes = 8; },
      [](Case& c) { c.unit.parameters[0].alignment = 8; },
      [](Case& c) { c.unit.parameters[0].by_reference = true; },
      [](Case& c) { c.unit.parameters[0].is_writable_input = true; },
      [](Case& c) { c.unit.allows_input_stores = true; },
      [](Case& c) { c.unit.attributes = {3}; },
      [](Case& c) { c.unit.attributes = {3, 5}; },
      [](Case& c) { c.unit.inclusions.clear(); },
      [](Case& c) { c.unit.inclusions[0].begin = 2; },
      [](Case& c) { c.unit.inclusions[0].end = 5; },
      [](Case& c) { c.unit.inclusions[0].file = 1; },
      [](Case& c) { c.unit.included_files.clear(); },
      [](Case& c) { c.unit.included_files[0].text = "int b;"; },
      [](Case& c) { c.unit.included_files[0].inclusions.clear(); },
      [](Case& c) { c.unit.included_files.push_back({}); },
      [](Case& c) { c.target.cpu = "x86-64-v4"; },
      [](Case& c) { c.compiler = "LLVM 20"; },
      // What moves from one text to the next is not the same.
      [](Case& c) { c.unit.text += "k", c.unit.entry = ""; },
  };
  std::set<std::string> ids;
  for (const auto& change : changes) {
    Case c = example();
    change(c);
    ids.insert(c.id());
  }
  EXPECT_EQ(ids.size(), std::size(changes));
}

}  // namespace
}  // namespace kiln
