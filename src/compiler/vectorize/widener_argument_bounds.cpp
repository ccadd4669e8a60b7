#include "compiler/vectorize/widener_argument_bounds.h"

#include <llvm/Analysis/ValueTracking.h>

#include <cstddef>

#include "compiler/ir/invariant_loads.h"
#include "core/cpu_functions.h"
#include "core/cpu_image.h"

namespace kiln::widening {

bool is_arguments_of_launch(const Value& value, const Function& function) {
  const auto* load = dyn_cast<LoadInst>(&value);
  if (!load || !load->getType()->isPointerTy()) return false;
  APInt offset(64, 0);
  const Value* launch =
      load->getPointerOperand()->stripAndAccumulateConstantOffsets(function.getDataLayout(), offset, true);
  return launch == function.getArg(kCpuLaunch) && offset == offsetof(CpuLaunch, arguments);
}

std::optional<ArgumentRange> ArgumentBounds::range_of(Value* pointer) {
  const auto* data = dyn_cast<LoadInst>(getUnderlyingObject(pointer, /*MaxLookup=*/0));
  if (!data) return std::nullopt;
  APInt offset(64, 0);
  const Value* arguments = data->getPointerOperand()->stripAndAccumulateConstantOffsets(lanes_.layout(), offset, true);
  if (!is_arguments_of_launch(*arguments, from_) || offset.urem(sizeof(CpuArgument)) != offsetof(CpuArgument, data))
    return std::nullopt;
  const uint64_t argument = offset.getZExtValue();
  auto [place, is_new] = ranges_.try_emplace(argument);
  if (is_new) {
    IRBuilder<> entry(&lanes_.entry());
    Value* all =
        load_invariant(entry, entry.getPtrTy(), lanes_.function().getArg(kCpuLaunch), offsetof(CpuLaunch, arguments));
    auto field = [&](Type* type, uint64_t at) { return load_invariant(entry, type, all, argument + at); };
    Value* first = field(entry.getInt64Ty(), offsetof(CpuArgument, first_byte));
    Value* begin = entry.CreateGEP(entry.getInt8Ty(), field(entry.getPtrTy(), offsetof(CpuArgument, data)), first);
    place->second = {entry.CreatePtrToInt(begin, entry.getInt64Ty()),
                     entry.CreateSub(field(entry.getInt64Ty(), offsetof(CpuArgument, end_byte)), first)};
  }
  return place->second;
}

}  // namespace kiln::widening
