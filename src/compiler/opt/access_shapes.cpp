#include "compiler/opt/access_shapes.h"

#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/ModuleSlotTracker.h>
#include <llvm/Support/raw_ostream.h>

#include "compiler/vectorize/widener_guards.h"
#include "compiler/vectorize/widener_lane_sums.h"
#include "compiler/vectorize/widener_thread_code.h"
#include "compiler/vectorize/widener_tile_addresses.h"
#include "core/text.h"

namespace kiln {

using namespace llvm;
using namespace widening;

static std::string list_of(ArrayRef<uint64_t> numbers) {
  std::string text;
  for (uint64_t number : numbers) text += concat(text.empty() ? "" : " ", number);
  return text;
}

// Its name; otherwise as IR that is printed has it: a number, a constant.
static std::string name_of(const Value& value, ModuleSlotTracker& slots) {
  if (value.hasName()) return value.getName().str();
  std::string text;
  raw_string_ostream stream(text);
  value.printAsOperand(stream, /*PrintType=*/false, slots);
  return text;
}

std::vector<std::pair<std::string, std::string>> access_shapes(Function& function, FunctionAnalysisManager& analyses) {
  ThreadCode code(function, analyses);
  const StructuredFlow& flow = code.flow;
  const DataLayout& layout = code.layout;
  Strides& strides = code.strides;
  Wrapping& wrapping = code.wrapping;
  AddressPatterns& patterns = code.patterns;
  const LaneSums lane_sums(flow, layout);
  TileAddresses tile_addresses(code);
  ModuleSlotTracker slots(function.getParent());
  slots.incorporateFunction(function);
  std::vector<std::pair<std::string, std::string>> shapes;
  for (Instruction& access : instructions(function)) {
    if (!isa<LoadInst, StoreInst>(access)) continue;
    std::vector<std::string> found;
    auto [allowed, address] = guarded_address_of(access);
    if (!flow.is_divergent(address)) {
      found.push_back("uniform");
    } else if (std::optional<int64_t> stride = strides.stride_of(address)) {
      found.push_back(concat("stride ", *stride));
      if (strides.has_piece(address)) found.push_back("but at a border");
      if (strides.has_negative_offset(address)) found.push_back("from a negative offset");
      if (!wrapping.never_wraps(address)) found.push_back("may wrap");
    } else if (std::optional<Pattern> pattern = patterns.pattern_of(address)) {
      found.push_back(concat("pattern ", list_of(pattern->offsets)));
      if (unsigned length = strip_of(*pattern, layout.getTypeStoreSize(getLoadStoreType(&access))))
        found.push_back(concat("strips of ", length));
      if (!wrapping.never_wraps(address)) found.push_back("may wrap");
    }
    if (std::optional<LaneGuard> guard = lane_guard_of(allowed, flow)) {
      if (patterns.have_equal_strides(guard->offset, address)) found.push_back("guarded alike");
      if (std::optional<uint64_t> end = wrapping.end_of_extension(guard->offset))
        found.push_back(concat("extended below ", *end));
    }
    if (std::optional<LaneOffsets> rows = tile_addresses.lane_offsets_of_access(access); rows && rows->pitch)
      found.push_back(concat("rows ", list_of(rows->rows), " with offsets ", list_of(rows->offsets)));
    if (found.empty())
      if (std::optional<LaneSum> sum =
              lane_sums.lane_sum_of(address, layout.getTypeStoreSize(getLoadStoreType(&access)))) {
        std::string text = sum->is_quotient ? "quotient" : "sum";
        for (const LaneTerm& term : sum->terms)
          text += concat(" ", term.factor, " * ", name_of(*term.number, slots),
                         lane_sums.has_position(term.number) ? "" : " (of data)");
        if (sum->constant != 0) text += concat(" + ", sum->constant);
        found.push_back(text);
      }
    std::string shape;
    for (const std::string& one : found) shape += concat(shape.empty() ? "" : ", ", one);
    const Value* named = isa<StoreInst>(access) ? cast<StoreInst>(access).getValueOperand() : &access;
    shapes.push_back({name_of(*named, slots), shape.empty() ? "unknown" : shape});
  }
  return shapes;
}

}  // namespace kiln
