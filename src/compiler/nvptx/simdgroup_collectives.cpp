#include "compiler/nvptx/simdgroup_collectives.h"

#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include <optional>

#include "compiler/ir/loop_metadata.h"
#include "compiler/ir/ordering_edges.h"
#include "compiler/ir/pseudo_intrinsics.h"
#include "compiler/ir/simdgroup.h"
#include "compiler/lowering/combine_functions.h"
#include "kiln/error.h"

namespace kiln {
namespace {

using namespace llvm;
using namespace llvm::PatternMatch;

constexpr unsigned kWidth = 32;

// The operation of a combining function that is one commutative operation.
struct Operation {
  unsigned opcode = 0;  // Instruction::Add, …, or
  Intrinsic::ID intrinsic = Intrinsic::not_intrinsic;
};

// A lane's value without the casts by which the function decodes it.
const Value* decoded(const Value* value) {
  while (isa<TruncInst, BitCastInst>(value)) value = cast<Instruction>(value)->getOperand(0);
  return value;
}

std::optional<Operation> operation_of(const Function& combine) {
  if (combine.size() != 1) return std::nullopt;
  const auto* end = dyn_cast<ReturnInst>(combine.getEntryBlock().getTerminator());
  const Value* value = end ? end->getReturnValue() : nullptr;
  while (value && (isa<ZExtInst, BitCastInst>(value) || match(value, m_And(m_Value(), m_LowBitMask()))))
    value = cast<Instruction>(value)->getOperand(0);
  const auto* instruction = dyn_cast_or_null<Instruction>(value);
  if (!instruction || !instruction->isCommutative()) return std::nullopt;
  const Value *first = decoded(instruction->getOperand(0)), *second = decoded(instruction->getOperand(1));
  const Value *a = combine.getArg(0), *b = combine.getArg(1);
  if (!((first == a && second == b) || (first == b && second == a))) return std::nullopt;
  if (isa<BinaryOperator>(instruction)) return Operation{instruction->getOpcode()};
  if (const auto* call = dyn_cast<IntrinsicInst>(instruction)) return Operation{0, call->getIntrinsicID()};
  return std::nullopt;
}

Intrinsic::ID whole_reduction(const Operation& operation) {
  switch (operation.intrinsic) {
    case Intrinsic::smin: return Intrinsic::nvvm_redux_sync_min;
    case Intrinsic::smax: return Intrinsic::nvvm_redux_sync_max;
    case Intrinsic::umin: return Intrinsic::nvvm_redux_sync_umin;
    case Intrinsic::umax: return Intrinsic::nvvm_redux_sync_umax;
    default: break;
  }
  switch (operation.opcode) {
    case Instruction::Add: return Intrinsic::nvvm_redux_sync_add;
    case Instruction::And: return Intrinsic::nvvm_redux_sync_and;
    case Instruction::Or: return Intrinsic::nvvm_redux_sync_or;
    case Instruction::Xor: return Intrinsic::nvvm_redux_sync_xor;
    default: return Intrinsic::not_intrinsic;
  }
}

class CollectiveLowering {
 public:
  CollectiveLowering(Function& body, ArrayRef<ConvergencePoint> points, const Masks& masks, MatrixMap map)
      : module_(*body.getParent()), points_(points), masks_(masks), builder_(body.getContext()) {
    IRBuilder<> builder(&*body.getEntryBlock().getFirstInsertionPt());
    lane_ = builder.CreateCall(&lane_function(module_));
    sources_ = matrix_sources(lane_, map, builder);
  }

  void run(Function& body) {
    SmallVector<CallInst*> convergence_calls, fake_conditions;
    for (Instruction& instruction : instructions(body)) {
      if (convergence_point_at(instruction)) convergence_calls.push_back(cast<CallInst>(&instruction));
      if (calls(instruction, kNeverFunction)) fake_conditions.push_back(cast<CallInst>(&instruction));
    }
    for (CallInst* fake_condition : fake_conditions) {
      fake_condition->replaceAllUsesWith(builder_.getFalse());
      fake_condition->eraseFromParent();
    }
    for (CallInst* call : convergence_calls) {
      const ConvergencePoint& point = points_[*convergence_point_at(*call)];
      if (point.combine && simplified_.insert(point.combine).second) simplify_combining(*point.combine);
    }
    for (CallInst* call : convergence_calls) lower(*call, points_[*convergence_point_at(*call)]);
    for (CallInst* call : combining_) {
      InlineFunctionInfo info;
      if (!InlineFunction(*call, info).isSuccess()) throw InternalError("a combining function is not inlined");
    }
  }

 private:
  void lower(CallInst& call, const ConvergencePoint& point) {
    builder_.SetInsertPoint(&call);
    Value* result = Constant::getNullValue(call.getType());
    if (point.is_barrier) {
      // The first form requires whole simdgroups.
      if (masks_.barriers_are_uniform)
        builder_.CreateIntrinsic(Intrinsic::nvvm_barrier0, {}, {});
      else
        builder_.CreateIntrinsic(Intrinsic::nvvm_barrier_sync, {}, {builder_.getInt32(0)});
    } else {
      mask_ = masks_.at.at(&call);
      result = collective(call, point);
    }
    call.replaceAllUsesWith(builder_.CreateZExt(result, call.getType()));
    call.eraseFromParent();
  }

  Value* collective(CallInst& call, const ConvergencePoint& point) {
    if (point.is_product) return multiply(call);
    Value *value = call.getArgOperand(1), *operand = call.getArgOperand(2);
    switch (point.exchange) {
      case CpuExchange::kNone:
        builder_.CreateIntrinsic(Intrinsic::nvvm_bar_warp_sync, {}, {mask_.named});
        return builder_.getInt64(0);
      case CpuExchange::kShuffle: {
        Value* source = builder_.CreateAnd(builder_.CreateTrunc(operand, builder_.getInt32Ty()), kWidth - 1);
        return from_active_lane(narrow(value), source);
      }
      case CpuExchange::kBallot:
        return builder_.CreateIntrinsic(Intrinsic::nvvm_vote_ballot_sync, {},
                                        {mask_.named, builder_.CreateICmpNE(value, builder_.getInt64(0))});
      case CpuExchange::kReduce:
      case CpuExchange::kInclusiveScan:
      case CpuExchange::kExclusiveScan: break;
    }
    value = builder_.CreateTrunc(value, combining_type(*point.combine));
    operation_ = operation_of(*point.combine);
    may_swap_ = operation_ || is_commutative(*point.combine);
    if (point.exchange == CpuExchange::kReduce) {
      if (Value* whole = reduce_at_once(point, value)) return whole;
      Value* all = builder_.CreateICmpEQ(mask_.active, builder_.getInt32(~0u));
      return either(call, all, [&] { return reduce(point, value); }, [&] { return reduce_active(point, value); });
    }
    if (mask_.is_prefix) return scan(point, value);
    // If the missing lanes are the last ones, all lanes before an active one are active.
    Value* next = builder_.CreateAdd(mask_.active, builder_.getInt32(1));
    Value* are_first = builder_.CreateICmpEQ(builder_.CreateAnd(mask_.active, next), builder_.getInt32(0));
    return either(call, are_first, [&] { return scan(point, value); }, [&] { return scan_active(point, value); });
  }

  // Matrix elements fetched from other lanes serve all products of the matrix in a block.
  Value* multiply(CallInst& call) {
    auto [first, second] = multiply_by_lanes(elements_of(call), sources_, builder_, [&](Value* value, Value* source) {
      Value*& fetched = fetched_[{call.getParent(), {value, source}}];
      if (!fetched) {
        Value* bits = from_active_lane(builder_.CreateBitCast(value, builder_.getInt32Ty()), source);
        fetched = builder_.CreateBitCast(bits, value->getType());
      }
      return fetched;
    });
    return packed(first, second, builder_);
  }

  // ---- Helpers

  // The condition is uniform over the active threads.
  template <typename First, typename Second>
  Value* either(CallInst& call, Value* condition, First first, Second second) {
    Instruction *then, *otherwise;
    SplitBlockAndInsertIfThenElse(condition, &call, &then, &otherwise);
    builder_.SetInsertPoint(then);
    Value* a = first();
    BasicBlock* after_then = builder_.GetInsertBlock();
    builder_.SetInsertPoint(otherwise);
    Value* b = second();
    BasicBlock* after_otherwise = builder_.GetInsertBlock();
    builder_.SetInsertPoint(&call);
    PHINode* result = builder_.CreatePHI(a->getType(), 2);
    result->addIncoming(a, after_then);
    result->addIncoming(b, after_otherwise);
    return result;
  }

  Value* is_active(Value* lane) {
    Value* bit = builder_.CreateAnd(builder_.CreateLShr(mask_.active, lane), builder_.getInt32(1));
    return builder_.CreateICmpNE(bit, builder_.getInt32(0));
  }

  // 0 if that lane is inactive.
  Value* from_active_lane(Value* value, Value* source) {
    return builder_.CreateSelect(is_active(source), from_lane(value, source), Constant::getNullValue(value->getType()));
  }

  // `clamp` determines how the hardware treats a source outside the simdgroup.
  Value* moved(Intrinsic::ID id, Value* value, Value* source, uint32_t clamp) {
    Type *type = value->getType(), *word = builder_.getInt32Ty();
    unsigned bits = type->getIntegerBitWidth();
    if (bits == 64) {
      Value* low = moved(id, builder_.CreateTrunc(value, word), source, clamp);
      Value* high = moved(id, builder_.CreateTrunc(builder_.CreateLShr(value, 32), word), source, clamp);
      return builder_.CreateOr(builder_.CreateZExt(low, type), builder_.CreateShl(builder_.CreateZExt(high, type), 32));
    }
    Value* wide = builder_.CreateZExt(value, word);
    Value* result = builder_.CreateIntrinsic(id, {}, {mask_.named, wide, source, builder_.getInt32(clamp)});
    return builder_.CreateTrunc(result, type);
  }
  Value* from_lane(Value* value, Value* lane) {
    return moved(Intrinsic::nvvm_shfl_sync_idx_i32, value, lane, kWidth - 1);
  }
  Value* from_pair(Value* value, uint32_t distance) {
    return moved(Intrinsic::nvvm_shfl_sync_bfly_i32, value, builder_.getInt32(distance), kWidth - 1);
  }
  Value* from_before(Value* value, uint32_t distance) {
    return moved(Intrinsic::nvvm_shfl_sync_up_i32, value, builder_.getInt32(distance), 0);
  }

  Value* combine(const ConvergencePoint& point, Value* a, Value* b) {
    Type* whole = builder_.getInt64Ty();
    CallInst* result =
        builder_.CreateCall(point.combine, {builder_.CreateZExt(a, whole), builder_.CreateZExt(b, whole)});
    combining_.push_back(result);
    return builder_.CreateTrunc(result, a->getType());
  }

  Value* identity(const ConvergencePoint& point, Type* type) {
    return ConstantInt::get(type, APInt(64, point.identity).trunc(type->getIntegerBitWidth()));
  }

  // ---- Reductions

  // Both lanes of a pair compute the same result: the lower one's value comes first, if the order matters.
  Value* combine_pair(const ConvergencePoint& point, Value* own, Value* other, Value* distance) {
    if (may_swap_) return combine(point, own, other);
    Value* is_lower = builder_.CreateICmpEQ(builder_.CreateAnd(lane_, distance), builder_.getInt32(0));
    return combine(point, builder_.CreateSelect(is_lower, own, other), builder_.CreateSelect(is_lower, other, own));
  }

  // Integers have instructions for reductions, which ignore missing lanes.
  Value* reduce_at_once(const ConvergencePoint& point, Value* value) {
    if (!operation_ || point.width != kWidth || value->getType()->getIntegerBitWidth() > 32) return nullptr;
    Intrinsic::ID id = whole_reduction(*operation_);
    bool is_ordered = operation_->intrinsic != Intrinsic::not_intrinsic;
    if (id == Intrinsic::not_intrinsic || (is_ordered && value->getType()->getIntegerBitWidth() != 32)) return nullptr;
    Value* wide = builder_.CreateZExt(value, builder_.getInt32Ty());
    return builder_.CreateTrunc(builder_.CreateIntrinsic(id, {}, {wide, mask_.named}), value->getType());
  }

  Value* reduce(const ConvergencePoint& point, Value* value) {
    for (uint32_t distance = 1; distance < point.width; distance *= 2)
      value = combine_pair(point, value, from_pair(value, distance), builder_.getInt32(distance));
    return value;
  }

  // All lanes of a combined group hold the same value, so any active lane represents the group. This is a loop: five
  // unrolled steps would be most of a kernel's code, for simdgroups that are few.
  Value* reduce_active(const ConvergencePoint& point, Value* value) {
    BasicBlock* before = builder_.GetInsertBlock();
    BasicBlock* after = before->splitBasicBlock(builder_.GetInsertPoint());
    BasicBlock* step = BasicBlock::Create(builder_.getContext(), "step", before->getParent(), after);
    before->getTerminator()->setSuccessor(0, step);
    builder_.SetInsertPoint(step);
    PHINode* distance = builder_.CreatePHI(builder_.getInt32Ty(), 2);
    PHINode* combined = builder_.CreatePHI(value->getType(), 2);
    Value* last = builder_.CreateSub(distance, builder_.getInt32(1));
    Value* first = builder_.CreateAnd(builder_.CreateXor(lane_, distance), builder_.CreateNot(last));
    Value* lanes = builder_.CreateSub(builder_.CreateShl(builder_.getInt32(1), distance), builder_.getInt32(1));
    Value* active_in_group = builder_.CreateAnd(mask_.active, builder_.CreateShl(lanes, first));
    // If no lane of the group is active, this is the last lane.
    Value* source = builder_.CreateBinaryIntrinsic(
        Intrinsic::cttz, builder_.CreateOr(active_in_group, 1u << (kWidth - 1)), builder_.getTrue());
    Value* other = from_lane(combined, source);
    Value* has_active = builder_.CreateICmpNE(active_in_group, builder_.getInt32(0));
    other = builder_.CreateSelect(has_active, other, identity(point, value->getType()));
    Value* next = combine_pair(point, combined, other, distance);
    Value* next_distance = builder_.CreateShl(distance, 1);
    BranchInst* back =
        builder_.CreateCondBr(builder_.CreateICmpULT(next_distance, builder_.getInt32(point.width)), step, after);
    never_unroll(*back);
    distance->addIncoming(builder_.getInt32(1), before);
    distance->addIncoming(next_distance, step);
    combined->addIncoming(value, before);
    combined->addIncoming(next, step);
    builder_.SetInsertPoint(after->getTerminator());
    return next;
  }

  // ---- Scans

  Value* offset_in_group(const ConvergencePoint& point) { return builder_.CreateAnd(lane_, point.width - 1); }

  Value* scan(const ConvergencePoint& point, Value* value) {
    Value* offset = offset_in_group(point);
    for (uint32_t distance = 1; distance < point.width; distance *= 2) {
      Value* has_before = builder_.CreateICmpUGE(offset, builder_.getInt32(distance));
      Value* sum = combine(point, from_before(value, distance), value);
      value = builder_.CreateSelect(has_before, sum, value);
    }
    if (point.exchange == CpuExchange::kInclusiveScan) return value;
    return builder_.CreateSelect(builder_.CreateICmpNE(offset, builder_.getInt32(0)), from_before(value, 1),
                                 identity(point, value->getType()));
  }

  // Each lane computes by itself what the lanes before it would have contributed, in the same pairs.
  Value* scan_active(const ConvergencePoint& point, Value* value) {
    uint32_t skipped = point.exchange == CpuExchange::kExclusiveScan ? 1 : 0;
    Value* offset = offset_in_group(point);
    SmallVector<Value*> values, exist;
    for (uint32_t i = 0; i < point.width; ++i) {
      Value* source = builder_.CreateSub(lane_, builder_.getInt32(i + skipped));
      source = builder_.CreateAnd(source, kWidth - 1);
      Value* fetched = from_lane(value, source);
      values.push_back(builder_.CreateSelect(is_active(source), fetched, identity(point, value->getType())));
      exist.push_back(builder_.CreateICmpUGE(offset, builder_.getInt32(i + skipped)));
    }
    for (; values.size() > 1;) {
      for (size_t i = 0; i < values.size() / 2; ++i) {
        Value* sum = combine(point, values[2 * i + 1], values[2 * i]);
        values[i] = builder_.CreateSelect(exist[2 * i + 1], sum, values[2 * i]);
        exist[i] = exist[2 * i];
      }
      values.truncate(values.size() / 2);
    }
    if (!skipped) return values[0];
    return builder_.CreateSelect(exist[0], values[0], identity(point, value->getType()));
  }

  Module& module_;
  ArrayRef<ConvergencePoint> points_;
  const Masks& masks_;
  IRBuilder<> builder_;
  Value* lane_ = nullptr;
  MatrixSources sources_;
  DenseMap<std::pair<BasicBlock*, std::pair<Value*, Value*>>, Value*> fetched_;
  SimdgroupMask mask_;
  std::optional<Operation> operation_;
  bool may_swap_ = false;  // whether the operands of a pair may be swapped
  SmallPtrSet<Function*, 4> simplified_;
  SmallVector<CallInst*> combining_;
};

}  // namespace

void lower_convergence_points(Function& body, ArrayRef<ConvergencePoint> points, const Masks& masks, MatrixMap map) {
  CollectiveLowering(body, points, masks, map).run(body);
}

}  // namespace kiln
