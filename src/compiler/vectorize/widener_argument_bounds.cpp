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

Value* ArgumentBounds::contain(Value* pointer, Value* address, uint64_t bytes, IRBuilder<>& builder) {
  const auto* data = dyn_cast<LoadInst>(getUnderlyingObject(pointer, /*MaxLookup=*/0));
  if (!data) return nullptr;
  APInt offset(64, 0);
  const Value* arguments = data->getPointerOperand()->stripAndAccumulateConstantOffsets(lanes_.layout(), offset, true);
  if (!is_arguments_of_launch(*arguments, from_) || offset.urem(sizeof(CpuArgument)) != offsetof(CpuArgument, data))
    return nullptr;
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
  const Range& range = place->second;
  Value* from_begin = builder.CreateSub(builder.CreatePtrToInt(address, builder.getInt64Ty()), range.begin);
  Value* room = builder.CreateBinaryIntrinsic(Intrinsic::usub_sat, range.bytes, builder.getInt64(bytes - 1));
  return builder.CreateICmpULT(from_begin, room);
}

}  // namespace kiln::widening
