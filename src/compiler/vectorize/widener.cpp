#include "compiler/vectorize/widener.h"

#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/CFG.h>

#include "compiler/ir/guard_sinks.h"
#include "compiler/ir/guard_zeros.h"
#include "compiler/ir/ordering_edges.h"
#include "compiler/ir/pseudo_intrinsics.h"
#include "compiler/lowering/approximations.h"
#include "compiler/lowering/ldexp.h"

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

bool is_defined_divisor(const Value* divisor) {
  const auto* constant = dyn_cast<ConstantInt>(divisor);
  return constant && !constant->isZero() && !constant->isMinusOne();
}

bool is_ordering_edge_condition(const Instruction& instruction) { return calls(instruction, kNeverFunction); }

}  // namespace

Widener::Widener(Function& from, Function& to, FunctionAnalysisManager& analyses, const WidenOptions& options)
    : isa_(options.vector_isa),
      convergence_points_(options.sites),
      from_(from),
      flow_(from, analyses),
      loops_(analyses.getResult<LoopAnalysis>(from)),
      evolution_(analyses.getResult<ScalarEvolutionAnalysis>(from)),
      layout_(from.getDataLayout()),
      strides_(flow_, loops_, layout_),
      wrapping_(flow_, evolution_, layout_, strides_),
      patterns_(flow_, layout_, strides_, wrapping_),
      lane_sums_(flow_, layout_),
      tile_addresses_(flow_, layout_, strides_, wrapping_, patterns_),
      lanes_(to, flow_, isa_,
             [this](Instruction& instruction, IRBuilder<>& builder) { return widen_arithmetic(instruction, builder); }),
      blocks_(from, flow_, loops_, analyses.getResult<DominatorTreeAnalysis>(from), isa_, options.is_full, lanes_),
      lane_scalars_(strides_, blocks_, lanes_),
      checks_(flow_, isa_, strides_, wrapping_, patterns_, lane_scalars_, lanes_),
      strided_(isa_, lanes_),
      scratch_(lanes_),
      atomic_memory_(from, options.alone_offset, options.is_output, strides_, scratch_, lanes_),
      lane_loops_(lane_scalars_, scratch_, atomic_memory_, lanes_),
      atomics_(strides_, lane_scalars_, checks_, atomic_memory_, lane_loops_, scratch_, lanes_),
      lane_accesses_(isa_, any_of(options.sites, [](const ConvergencePoint& point) { return point.is_barrier; }),
                     strides_, lane_scalars_, checks_, lane_loops_, lanes_),
      tiles_(evolution_, tile_addresses_, lane_scalars_, lane_accesses_, lanes_),
      interleaved_(evolution_, strides_, tiles_, checks_, strided_, lane_accesses_, lanes_),
      shared_checks_(flow_, evolution_, strides_, patterns_, tiles_, interleaved_, lane_scalars_, checks_, strided_,
                     lane_loops_, scratch_, lanes_),
      zeroed_loads_(strides_, checks_, strided_, lane_accesses_, lanes_),
      pattern_accesses_(isa_, patterns_, checks_, strided_, lane_accesses_, lanes_),
      compressed_(flow_, isa_, lane_scalars_, checks_, lane_accesses_, lanes_),
      run_time_shapes_(flow_, isa_, strides_, lane_sums_, checks_, strided_, lane_accesses_, lanes_) {
  tiles_.find(from);
  for (BasicBlock& block : from) {
    interleaved_.find(block);
    shared_checks_.find(block);
  }
  zeroed_loads_.find(from, [&](LoadInst& load) { return interleaved_.contains(load) || tiles_.is_at(load); });
}

void Widener::run() {
  for (auto [old_argument, new_argument] : zip(from_.args(), lanes_.function().args()))
    lanes_.set_scalar(&old_argument, &new_argument);
  if (std::string reason = flow_.check_structure(from_); !reason.empty()) refuse(reason);
  blocks_.widen([this](Instruction& instruction, IRBuilder<>& builder) { widen_instruction(instruction, builder); });
  lane_scalars_.complete_phis();
  IRBuilder<>(&lanes_.entry()).CreateBr(blocks_.begin(&from_.getEntryBlock()));
}

// An address is mostly needed for the first and the last lane only, and a guard's condition for none. Their vectors are
// created on demand, where lanes access memory separately.
bool Widener::can_be_postponed(Instruction& instruction) {
  auto is_guard_select = [](const Value* value) {
    const auto* select = dyn_cast<SelectInst>(value);
    return select && (is_zeros(select->getFalseValue()) || is_sink(select->getFalseValue()));
  };
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
    case Instruction::GetElementPtr: return strides_.stride_of(&instruction).has_value();
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
  if (lanes_.known_vector(&instruction) || zeroed_loads_.is_sunk(instruction) || tiles_.is_deferred(instruction))
    return;  // emitted with another instruction
  zeroed_loads_.emit_sunk_loads(instruction, builder);
  if (is_lane(&instruction)) {
    lanes_.set_vector(&instruction, lane_numbers(instruction.getType()));
    return;
  }
  if (auto* intrinsic = dyn_cast<IntrinsicInst>(&instruction); intrinsic && is_note(*intrinsic)) return;
  if (auto* variable = dyn_cast<AllocaInst>(&instruction)) return widen_variable(*variable);
  if (std::optional<unsigned> point = convergence_point_at(instruction))
    return widen_convergence_point(cast<CallInst>(instruction), *point, builder);
  if (LaneOperation operation = lane_operation(&instruction); operation != LaneOperation::kNone)
    return widen_collective(cast<CallInst>(instruction), operation, builder);
  if (is_ordering_edge_condition(instruction)) {
    lanes_.set_scalar(&instruction, builder.getFalse());
    return;
  }
  // An atomic load of a uniform address is one load: the lanes execute it at the same time.
  bool has_effect = instruction.mayWriteToMemory() || (instruction.isAtomic() && lanes_.is_divergent(&instruction));
  if (!lanes_.is_divergent(&instruction) && (!has_effect || isa<LoadInst>(instruction)))
    return copy(instruction, builder);
  if (auto* load = dyn_cast<LoadInst>(&instruction); load && !has_effect) return widen_load(*load, builder);
  if (auto* store = dyn_cast<StoreInst>(&instruction); store && store->isSimple()) return widen_store(*store, builder);
  if (auto* atomic = dyn_cast<AtomicRMWInst>(&instruction)) return atomics_.widen(*atomic, builder);
  if (has_effect) return lane_loops_.for_each_lane(instruction, builder);
  if (can_be_postponed(instruction)) {
    lanes_.postpone(instruction);
    return;
  }
  if (auto* checked = dyn_cast<WithOverflowInst>(&instruction)) return widen_checked(*checked, builder);
  if (Value* widened = widen_arithmetic(instruction, builder)) {
    // What a division becomes is exact where the division is not.
    auto* result = dyn_cast<Instruction>(widened);
    if (result && (!isa<BinaryOperator>(instruction) || result->getOpcode() == instruction.getOpcode()))
      result->copyIRFlags(&instruction);
    lanes_.set_vector(&instruction, widened);
    return;
  }
  lane_loops_.for_each_lane(instruction, builder);
}

void Widener::copy(Instruction& instruction, IRBuilder<>& builder) {
  SmallVector<Value*> operands;
  for (Value* operand : instruction.operands()) operands.push_back(lanes_.scalar(operand));
  Value* uniform_copy = builder.Insert(with_operands(instruction, operands), instruction.getName());
  lanes_.set_scalar(&instruction, uniform_copy);
}

Value* Widener::widen_arithmetic(Instruction& instruction, IRBuilder<>& builder) {
  auto operand = [&](unsigned i) { return lanes_.vector(instruction.getOperand(i), builder); };
  if (auto* cast_instruction = dyn_cast<CastInst>(&instruction))
    return builder.CreateCast(cast_instruction->getOpcode(), operand(0), vector_of(instruction.getType()));
  if (auto* comparison = dyn_cast<CmpInst>(&instruction)) {
    if (Value* lanes = checks_.lanes_below(*comparison, builder)) return lanes;
    return builder.CreateCmp(comparison->getPredicate(), operand(0), operand(1));
  }
  if (isa<SelectInst>(instruction)) {
    Value* condition = instruction.getOperand(0);
    if (!lanes_.is_divergent(condition))
      if (Value* masked = zero_unless(instruction, builder)) return masked;
    return builder.CreateSelect(lanes_.is_divergent(condition) ? operand(0) : lanes_.scalar(condition), operand(1),
                                operand(2));
  }
  if (auto* binary = dyn_cast<BinaryOperator>(&instruction)) {
    if (binary->isIntDivRem())
      if (Value* widened = widen_division(*binary, builder)) return widened;
    Value* second = operand(1);
    // The optimizer may have removed a check that kept a division from trapping, because a branch keeps threads from
    // it. Inactive lanes divide by 1.
    if (binary->isIntDivRem()) {
      second = without_zeros(binary->getOperand(1), builder);
      if (!is_all(lanes_.mask()) && !is_defined_divisor(binary->getOperand(1)))
        second = builder.CreateSelect(lanes_.mask(), second, ConstantInt::get(second->getType(), 1));
    }
    return builder.CreateBinOp(binary->getOpcode(), operand(0), second);
  }
  if (isa<UnaryOperator>(instruction)) return builder.CreateFNeg(operand(0));
  if (isa<FreezeInst>(instruction)) return builder.CreateFreeze(operand(0));
  if (auto* address = dyn_cast<GetElementPtrInst>(&instruction)) {
    Value* pointer = address->getPointerOperand();
    SmallVector<Value*> indices;
    for (Value* index : address->indices())
      indices.push_back(lanes_.is_divergent(index) ? lanes_.vector(index, builder) : lanes_.scalar(index));
    Value* base = lanes_.is_divergent(pointer) ? lanes_.vector(pointer, builder) : lanes_.scalar(pointer);
    Value* result = builder.CreateGEP(address->getSourceElementType(), base, indices);
    return result->getType()->isVectorTy() ? result : builder.CreateVectorSplat(kLanes, result);
  }
  if (auto* call = dyn_cast<IntrinsicInst>(&instruction)) return widen_intrinsic(*call, builder);
  if (is_rsqrt(instruction) && isa_.estimate_rsqrt) return approximate_rsqrt(operand(0), isa_, builder);
  if (is_ldexp(instruction) && isa_.scale) return scale_by_instruction(operand(0), operand(1), isa_, builder);
  return nullptr;
}

// A divisor that is 0 in no lane. If one side of a select is constant, as in a check against dividing by 0, the
// optimizer divides by each side. It treats division by a vector with a single 0 as undefined, so neither side may
// contain a 0.
Value* Widener::without_zeros(Value* divisor, IRBuilder<>& builder, unsigned depth) {
  auto* select = dyn_cast<SelectInst>(divisor);
  if (select && lanes_.is_divergent(select) && depth < 8) {
    Value* condition = select->getCondition();
    return builder.CreateSelect(
        lanes_.is_divergent(condition) ? lanes_.vector(condition, builder) : lanes_.scalar(condition),
        without_zeros(select->getTrueValue(), builder, depth + 1),
        without_zeros(select->getFalseValue(), builder, depth + 1));
  }
  Value* lanes = lanes_.vector(divisor, builder);
  if (is_defined_divisor(divisor)) return lanes;
  return builder.CreateBinaryIntrinsic(Intrinsic::umax, lanes, ConstantInt::get(lanes->getType(), 1));
}

// A select with a uniform condition between a value and 0, as a bitwise AND. Where no instruction selects vectors by a
// scalar, the select would be a branch, which is predicted badly if the condition comes from data.
Value* Widener::zero_unless(Instruction& select, IRBuilder<>& builder) {
  auto* if_true = dyn_cast<Constant>(select.getOperand(1));
  auto* if_false = dyn_cast<Constant>(select.getOperand(2));
  bool keeps_first = if_false && if_false->isNullValue();
  if (keeps_first == (if_true && if_true->isNullValue())) return nullptr;
  Value* kept = select.getOperand(keeps_first ? 1 : 2);
  Type* type = select.getType();
  if (!lanes_.is_divergent(kept) || type->isPointerTy() || type->isIntegerTy(1)) return nullptr;
  Value* condition = lanes_.scalar(select.getOperand(0));
  if (!keeps_first) condition = builder.CreateNot(condition);
  Type* number = builder.getIntNTy(static_cast<unsigned>(type->getPrimitiveSizeInBits()));
  Value* mask = builder.CreateVectorSplat(kLanes, builder.CreateSExt(condition, number));
  Value* bits = builder.CreateBitCast(lanes_.vector(kept, builder), vector_of(number));
  return builder.CreateBitCast(builder.CreateAnd(bits, mask), vector_of(type));
}

// The results, and whether each overflows its type.
void Widener::widen_checked(WithOverflowInst& call, IRBuilder<>& builder) {
  check_pair(call);
  Value *left = lanes_.vector(call.getLHS(), builder), *right = lanes_.vector(call.getRHS(), builder);
  Value* both = builder.CreateIntrinsic(call.getIntrinsicID(), {left->getType()}, {left, right});
  for (User* user : call.users())
    lanes_.set_vector(user, builder.CreateExtractValue(both, cast<ExtractValueInst>(user)->getIndices()));
}

Value* Widener::widen_intrinsic(IntrinsicInst& call, IRBuilder<>& builder) {
  Intrinsic::ID id = call.getIntrinsicID();
  if (id == Intrinsic::fptosi_sat || id == Intrinsic::fptoui_sat) return widen_saturating_conversion(call, builder);
  if (!isTriviallyVectorizable(id)) return nullptr;
  SmallVector<Value*> arguments;
  SmallVector<Type*> types;
  if (isVectorIntrinsicWithOverloadTypeAtArg(id, -1)) types.push_back(vector_of(call.getType()));
  for (unsigned i = 0; i < call.arg_size(); ++i) {
    Value* argument = call.getArgOperand(i);
    bool is_scalar_operand = isVectorIntrinsicWithScalarOpAtArg(id, i);
    if (is_scalar_operand && lanes_.is_divergent(argument)) return nullptr;
    arguments.push_back(is_scalar_operand ? lanes_.scalar(argument) : lanes_.vector(argument, builder));
    if (isVectorIntrinsicWithOverloadTypeAtArg(id, i)) types.push_back(arguments.back()->getType());
  }
  return builder.CreateIntrinsic(id, types, arguments);
}

}  // namespace kiln::widening
