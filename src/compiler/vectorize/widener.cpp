#include "compiler/vectorize/widener.h"

#include <llvm/IR/IntrinsicInst.h>

#include "compiler/ir/guard_sinks.h"
#include "compiler/ir/guard_zeros.h"
#include "compiler/ir/pseudo_intrinsics.h"
#include "compiler/vectorize/widener_windows.h"

namespace kiln::widening {

namespace {

// Annotates one thread's code for the optimizer; has no effect.
bool is_note(const IntrinsicInst& intrinsic) {
  switch (intrinsic.getIntrinsicID()) {
    case Intrinsic::assume:
    case Intrinsic::lifetime_start:
    case Intrinsic::lifetime_end:
    case Intrinsic::experimental_noalias_scope_decl:
    case Intrinsic::dbg_declare:
    case Intrinsic::dbg_value: return true;
    default: return false;
  }
}

bool is_ordering_edge_condition(const Instruction& instruction) { return calls(instruction, kNeverFunction); }

}  // namespace

Widener::Widener(Function& from, Function& to, FunctionAnalysisManager& analyses, const WidenOptions& options)
    : code_(from, analyses),
      lanes_(to, code_.flow, options.vector_isa,
             [&arithmetic = arithmetic_](Instruction& instruction, IRBuilder<>& builder) {
               return arithmetic.widen(instruction, builder);
             }),
      blocks_(code_, options.is_full, lanes_),
      lane_scalars_(code_.strides, blocks_, lanes_),
      checks_(code_, lane_scalars_, lanes_),
      scratch_(lanes_),
      arithmetic_(checks_, lanes_),
      collectives_(options.sites, lanes_),
      atomic_memory_(from, options.alone_offset, options.is_output, code_.strides, scratch_, lanes_),
      lane_loops_(lane_scalars_, scratch_, atomic_memory_, lanes_),
      atomics_(code_.strides, lane_scalars_, checks_, atomic_memory_, lane_loops_, scratch_, lanes_),
      memory_(code_, any_of(options.sites, [](const ConvergencePoint& point) { return point.is_barrier; }),
              lane_scalars_, checks_, lane_loops_, scratch_, lanes_) {}

void Widener::run() {
  for (auto [old_argument, new_argument] : zip(code_.function.args(), lanes_.function().args()))
    lanes_.set_scalar(&old_argument, &new_argument);
  if (std::string reason = code_.flow.check_structure(code_.function); !reason.empty()) refuse(reason);
  blocks_.widen([this](Instruction& instruction, IRBuilder<>& builder) { widen_instruction(instruction, builder); });
  lane_scalars_.complete_phis();
  IRBuilder<>(&lanes_.entry()).CreateBr(blocks_.begin(&code_.function.getEntryBlock()));
}

// Uses of an address, and of what is computed from it.
static constexpr unsigned kMostUses = 16;

static bool is_guard_select(const Value* value) {
  const auto* select = dyn_cast<SelectInst>(value);
  return select && (is_zeros(select->getFalseValue()) || is_sink(select->getFalseValue()));
}

// Whether a number of 64 bits or an address serves accesses to threadgroup memory alone, and their guards. Most of
// these have a path without the lanes' own addresses, and where lanes access memory one by one, addresses are computed
// lane by lane. Other memory's scattered accesses have no other path as a rule, and vectors of addresses are faster
// there.
static bool serves_accesses(const Instruction& instruction, unsigned& steps) {
  const bool is_address = instruction.getType()->isPointerTy();
  if (!is_address && !instruction.getType()->isIntegerTy(64)) return false;
  if (is_address && !is_in_threadgroup_memory(&instruction)) return false;
  for (const Use& use : instruction.uses()) {
    const auto* user = cast<Instruction>(use.getUser());
    if (++steps > kMostUses) return false;
    if (isa<LoadInst>(user) || is_guard_select(user)) continue;
    if (isa<StoreInst>(user) && use.getOperandNo() == StoreInst::getPointerOperandIndex()) continue;
    auto guards_threadgroup_memory = [](const User* guarded) {
      return is_guard_select(guarded) && is_in_threadgroup_memory(cast<SelectInst>(guarded)->getTrueValue());
    };
    if (isa<ICmpInst>(user) && all_of(user->users(), guards_threadgroup_memory)) continue;
    switch (user->getOpcode()) {
      case Instruction::PtrToInt:
      case Instruction::Add:
      case Instruction::Sub:
      case Instruction::Mul:
      case Instruction::Shl:
      case Instruction::GetElementPtr:
        if (serves_accesses(*user, steps)) continue;
        return false;
      default: return false;
    }
  }
  return true;
}

// An address is mostly needed for the first and the last lane only, and a guard's condition for none. Their vectors are
// created on demand, where lanes access memory separately.
bool Widener::can_be_postponed(Instruction& instruction) {
  if (is_guard_select(&instruction)) return true;
  if (isa<ICmpInst>(instruction) && all_of(instruction.users(), is_guard_select)) return true;
  switch (instruction.getOpcode()) {
    case Instruction::ZExt:
    case Instruction::SExt:
    case Instruction::Trunc:
    case Instruction::PtrToInt:
    case Instruction::IntToPtr:
    case Instruction::Or:
    case Instruction::Add:
    case Instruction::Sub:
    case Instruction::Mul:
    case Instruction::Shl:
    case Instruction::GetElementPtr: {
      unsigned steps = 0;
      return code_.strides.stride_of(&instruction) || serves_accesses(instruction, steps);
    }
    default: return false;
  }
}

void Widener::widen_instruction(Instruction& instruction, IRBuilder<>& builder) try {
  // For remarks of later passes.
  builder.SetCurrentDebugLocation(instruction.getDebugLoc());
  widen_one(instruction, builder);
} catch (Refusal& refusal) {
  if (!refusal.at) refusal.at = &instruction;
  throw;
}

void Widener::widen_one(Instruction& instruction, IRBuilder<>& builder) {
  if (lanes_.known_vector(&instruction) || memory_.is_deferred(instruction))
    return;  // emitted with another instruction
  memory_.emit_operands_of(instruction, builder);
  if (is_lane(&instruction)) {
    lanes_.set_vector(&instruction, lane_numbers(instruction.getType()));
    return;
  }
  if (auto* intrinsic = dyn_cast<IntrinsicInst>(&instruction); intrinsic && is_note(*intrinsic)) return;
  if (auto* variable = dyn_cast<AllocaInst>(&instruction)) return memory_.widen_variable(*variable);
  if (std::optional<unsigned> point = convergence_point_at(instruction))
    return collectives_.widen_convergence_point(cast<CallInst>(instruction), *point, builder);
  if (LaneOperation operation = lane_operation(&instruction); operation != LaneOperation::kNone)
    return collectives_.widen(cast<CallInst>(instruction), operation, builder);
  if (is_ordering_edge_condition(instruction)) {
    lanes_.set_scalar(&instruction, builder.getFalse());
    return;
  }
  // An atomic load of a uniform address is one load: the lanes execute it at the same time.
  bool has_effect = instruction.mayWriteToMemory() || (instruction.isAtomic() && lanes_.is_divergent(&instruction));
  if (!lanes_.is_divergent(&instruction) && (!has_effect || isa<LoadInst>(instruction))) {
    auto* load = dyn_cast<LoadInst>(&instruction);
    return load && blocks_.is_if_converted(*load->getParent()) ? copy_load(*load, builder) : copy(instruction, builder);
  }
  if (auto* load = dyn_cast<LoadInst>(&instruction); load && !has_effect) return memory_.widen_load(*load, builder);
  if (auto* store = dyn_cast<StoreInst>(&instruction); store && store->isSimple())
    return memory_.widen_store(*store, builder);
  if (auto* atomic = dyn_cast<AtomicRMWInst>(&instruction)) return atomics_.widen(*atomic, builder);
  if (has_effect) return lane_loops_.for_each_lane(instruction, builder);
  if (can_be_postponed(instruction)) {
    lanes_.postpone(instruction);
    return;
  }
  if (auto* checked = dyn_cast<WithOverflowInst>(&instruction)) return arithmetic_.widen_checked(*checked, builder);
  if (Value* widened = arithmetic_.widen(instruction, builder)) {
    // What a division becomes is exact where the division is not.
    auto* result = dyn_cast<Instruction>(widened);
    if (result && (!isa<BinaryOperator>(instruction) || result->getOpcode() == instruction.getOpcode()))
      result->copyIRFlags(&instruction);
    lanes_.set_vector(&instruction, widened);
    return;
  }
  lane_loops_.for_each_lane(instruction, builder);
}

// A guarded load in an if-converted side, which also runs if no lane takes it. The guard does not protect the load
// then: LLVM may have simplified the guard by the branch's condition, and the address may be poison.
void Widener::copy_load(LoadInst& load, IRBuilder<>& builder) {
  auto* guard = cast<SelectInst>(load.getPointerOperand());
  Value* address =
      builder.CreateSelect(lanes_.any(lanes_.mask(), builder), lanes_.scalar(guard), guard->getFalseValue());
  // CodeGenPrepare would turn it into the branch that if-conversion has removed.
  if (auto* select = dyn_cast<SelectInst>(address))
    select->setMetadata(LLVMContext::MD_unpredictable, MDNode::get(lanes_.context(), {}));
  lanes_.set_scalar(&load, builder.Insert(with_operands(load, {address}), load.getName()));
}

void Widener::copy(Instruction& instruction, IRBuilder<>& builder) {
  SmallVector<Value*> operands;
  for (Value* operand : instruction.operands()) operands.push_back(lanes_.scalar(operand));
  Value* uniform_copy = builder.Insert(with_operands(instruction, operands), instruction.getName());
  lanes_.set_scalar(&instruction, uniform_copy);
}

}  // namespace kiln::widening
