#include "compiler/ir/striped_atomics.h"

#include <llvm/IR/Module.h>

#include "core/cpu_image.h"

namespace kiln {
namespace {

using namespace llvm;

enum Parameter : unsigned { kLaunch, kRow, kOperands, kRowLanes, kOffset, kLimit, kPlace };

// The limit of an update without a guard.
constexpr uint64_t kNoLimit = uint64_t{1} << 61;

const char* name_of(const AtomicRMWInst& atomic) {
  switch (atomic.getOperation()) {
    case AtomicRMWInst::FAdd: return kAddToRow;
    case AtomicRMWInst::FSub: return kSubtractFromRow;
    default: return nullptr;
  }
}

Function& function_for(const AtomicRMWInst& atomic, Module& module) {
  const char* name = name_of(atomic);
  if (Function* made = module.getFunction(name)) return *made;
  LLVMContext& context = module.getContext();
  Type *pointer = PointerType::getUnqual(context), *number = Type::getInt64Ty(context);
  auto* type = FunctionType::get(Type::getVoidTy(context),
                                 {pointer, pointer, pointer, Type::getInt32Ty(context), number, number, number},
                                 /*isVarArg=*/false);
  Function* function = Function::Create(type, GlobalValue::ExternalLinkage, name, module);
  function->setDoesNotThrow();
  function->setDoesNotFreeMemory();
  function->setWillReturn();
  for (Parameter pointer : {kLaunch, kRow, kOperands}) function->addParamAttr(pointer, Attribute::NoCapture);
  for (Parameter pointer : {kLaunch, kOperands}) function->addParamAttr(pointer, Attribute::ReadOnly);
  return *function;
}

}  // namespace

bool is_striped_update(const AtomicRMWInst& atomic) {
  return atomic.getType()->isFloatTy() && atomic.use_empty() && name_of(atomic);
}

CallInst* update_striped_range(const AtomicRMWInst& atomic, Value* row, Value* operands, Value* lanes,
                               const std::optional<RangeGuard>& guard, const std::optional<UpdatedArray>& array,
                               IRBuilder<>& builder) {
  Function& function = function_for(atomic, *builder.GetInsertBlock()->getModule());
  Value* none = ConstantPointerNull::get(builder.getPtrTy());
  Value* number = builder.getInt64(0);
  Value* offset = guard ? guard->offset : number;
  Value* limit = guard ? guard->limit : builder.getInt64(kNoLimit);
  auto address = [&](Value* pointer) { return builder.CreatePtrToInt(pointer, builder.getInt64Ty()); };
  Value* place = array ? builder.CreateSub(address(row), address(array->begin)) : number;
  CallInst* call =
      builder.CreateCall(&function, {array ? array->launch : none, row, operands, lanes, offset, limit, place});
  // Stronger orderings also order accesses to other memory.
  if (atomic.getOrdering() == AtomicOrdering::Monotonic) call->setOnlyAccessesInaccessibleMemOrArgMem();
  return call;
}

Value* striped_range(const Instruction& instruction) {
  const auto* call = dyn_cast<CallInst>(&instruction);
  const Function* called = call ? call->getCalledFunction() : nullptr;
  bool is_update = called && (called->getName() == kAddToRow || called->getName() == kSubtractFromRow);
  return is_update ? call->getArgOperand(kRow) : nullptr;
}

bool uses_striped_lock(const Instruction& instruction) {
  return striped_range(instruction) && !isa<ConstantPointerNull>(cast<CallInst>(instruction).getArgOperand(kLaunch));
}

}  // namespace kiln
