#include "overlaps.h"

#include "core/array_layout.h"
#include "core/text.h"
#include "kiln/error.h"

namespace kiln::python {
namespace {

struct Range {
  uintptr_t begin, end;
};

Range range_of(const InputArray& array) {
  ElementRange bytes = byte_range(array.shape, array.strides, array.dtype);
  auto data = reinterpret_cast<uintptr_t>(array.data);
  return {data + static_cast<uintptr_t>(bytes.first), data + static_cast<uintptr_t>(bytes.end)};
}

}  // namespace

bool overlap(const InputArray& one, const InputArray& other) {
  Range first = range_of(one), second = range_of(other);
  bool is_empty = first.begin == first.end || second.begin == second.end;
  return !is_empty && first.begin < second.end && second.begin < first.end;
}

void check_overlaps(std::string_view prefix, std::span<const NamedArray> inputs, std::span<const NamedArray> outputs) {
  for (size_t o = 0; o < outputs.size(); ++o) {
    auto check = [&](const NamedArray& other, std::string_view what) {
      if (overlap(outputs[o].array, other.array))
        throw ValueError(concat(prefix, "The memory of ", what, " `", other.name.text(), "` and of output `",
                                outputs[o].name.text(), "` overlap."));
    };
    for (const NamedArray& input : inputs) check(input, "input");
    for (const NamedArray& output : outputs.first(o)) check(output, "output");
  }
}

}  // namespace kiln::python
