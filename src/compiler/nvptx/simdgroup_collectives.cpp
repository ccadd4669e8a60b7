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

// How a combining function combines, where that is one operation in which the order of the two does not matter.
struct Operation {
  unsigned opcode = 0;  // Instruction::Add, …, or
  Intrinsic::ID intrinsic = Intrinsic::not_intrinsic;
};

// A lane's value as the function decodes it.
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

class WaitLowering {
 public:
  WaitLowering(Function& body, ArrayRef<ConvergencePoint> sites, const Masks& masks, MatrixMap map)
      : module_(*body.getParent()), sites_(sites), masks_(masks), builder_(body.getContext()) {
    IRBuilder<> builder(&*body.getEntryBlock().getFirstInsertionPt());
    lane_ = builder.CreateCall(&lane_function(module_));
    sources_ = matrix_sources(lane_, map, builder);
  }

  void run(Function& body) {
    SmallVector<CallInst*> waits, nevers;
    for (Instruction& instruction : instructions(body)) {
      if (convergence_point_at(instruction)) waits.push_back(cast<CallInst>(&instruction));
      if (calls(instruction, kNeverFunction)) nevers.push_back(cast<CallInst>(&instruction));
    }
    for (CallInst* never : nevers) {
      never->replaceAllUsesWith(builder_.getFalse());
      never->eraseFromParent();
    }
    for (CallInst* wait : waits) {
      const ConvergencePoint& site = sites_[*convergence_point_at(*wait)];
      if (site.combine && simplified_.insert(site.combine).second) simplify_combining(*site.combine);
    }
    for (CallInst* wait : waits) lower(*wait, sites_[*convergence_point_at(*wait)]);
    for (CallInst* call : combining_) {
      InlineFunctionInfo info;
      if (!InlineFunction(*call, info).isSuccess()) throw InternalError("a combining function is not inlined");
    }
  }

 private:
  void lower(CallInst& wait, const ConvergencePoint& site) {
    builder_.SetInsertPoint(&wait);
    Value* result = Constant::getNullValue(wait.getType());
    if (site.is_barrier) {
      // The first form is for whole simdgroups.
      if (masks_.barriers_are_uniform)
        builder_.CreateIntrinsic(Intrinsic::nvvm_barrier0, {}, {});
      else
        builder_.CreateIntrinsic(Intrinsic::nvvm_barrier_sync, {}, {builder_.getInt32(0)});
    } else {
      mask_ = masks_.at.at(&wait);
      result = exchange(wait, site);
    }
    wait.replaceAllUsesWith(builder_.CreateZExt(result, wait.getType()));
    wait.eraseFromParent();
  }

  Value* exchange(CallInst& wait, const ConvergencePoint& site) {
    if (site.is_product) return multiply(wait);
    Value *value = wait.getArgOperand(1), *operand = wait.getArgOperand(2);
    switch (site.exchange) {
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
    value = builder_.CreateTrunc(value, combined_type(*site.combine));
    operation_ = operation_of(*site.combine);
    in_any_order_ = operation_ || is_commutative(*site.combine);
    if (site.exchange == CpuExchange::kReduce) {
      if (Value* whole = reduce_at_once(site, value)) return whole;
      Value* all = builder_.CreateICmpEQ(mask_.active, builder_.getInt32(~0u));
      return either(wait, all, [&] { return reduce(site, value); }, [&] { return reduce_some(site, value); });
    }
    if (mask_.is_prefix) return scan(site, value);
    // The lanes before one are there where those that are missing are the last.
    Value* next = builder_.CreateAdd(mask_.active, builder_.getInt32(1));
    Value* are_first = builder_.CreateICmpEQ(builder_.CreateAnd(mask_.active, next), builder_.getInt32(0));
    return either(wait, are_first, [&] { return scan(site, value); }, [&] { return scan_some(site, value); });
  }

  // What lanes take from a matrix serves all of its products in a block.
  Value* multiply(CallInst& wait) {
    auto [first, second] = multiply_by_lanes(elements_of(wait), sources_, builder_, [&](Value* value, Value* source) {
      Value*& taken = taken_[{wait.getParent(), {value, source}}];
      if (!taken) {
        Value* bits = from_active_lane(builder_.CreateBitCast(value, builder_.getInt32Ty()), source);
        taken = builder_.CreateBitCast(bits, value->getType());
      }
      return taken;
    });
    return packed(first, second, builder_);
  }

  // ---- Pieces

  // The condition is the same in all threads that are here.
  template <typename First, typename Second>
  Value* either(CallInst& wait, Value* condition, First first, Second second) {
    Instruction *then, *otherwise;
    SplitBlockAndInsertIfThenElse(condition, &wait, &then, &otherwise);
    builder_.SetInsertPoint(then);
    Value* a = first();
    BasicBlock* after_then = builder_.GetInsertBlock();
    builder_.SetInsertPoint(otherwise);
    Value* b = second();
    BasicBlock* after_otherwise = builder_.GetInsertBlock();
    builder_.SetInsertPoint(&wait);
    PHINode* result = builder_.CreatePHI(a->getType(), 2);
    result->addIncoming(a, after_then);
    result->addIncoming(b, after_otherwise);
    return result;
  }

  Value* is_active(Value* lane) {
    Value* bit = builder_.CreateAnd(builder_.CreateLShr(mask_.active, lane), builder_.getInt32(1));
    return builder_.CreateICmpNE(bit, builder_.getInt32(0));
  }

  // 0 where that lane takes no part.
  Value* from_active_lane(Value* value, Value* source) {
    return builder_.CreateSelect(is_active(source), from_lane(value, source), Constant::getNullValue(value->getType()));
  }

  // `clamp` says how the hardware treats a place outside the simdgroup.
  Value* moved(Intrinsic::ID id, Value* value, Value* place, uint32_t clamp) {
    Type *type = value->getType(), *word = builder_.getInt32Ty();
    unsigned bits = type->getIntegerBitWidth();
    if (bits == 64) {
      Value* low = moved(id, builder_.CreateTrunc(value, word), place, clamp);
      Value* high = moved(id, builder_.CreateTrunc(builder_.CreateLShr(value, 32), word), place, clamp);
      return builder_.CreateOr(builder_.CreateZExt(low, type), builder_.CreateShl(builder_.CreateZExt(high, type), 32));
    }
    Value* wide = builder_.CreateZExt(value, word);
    Value* result = builder_.CreateIntrinsic(id, {}, {mask_.named, wide, place, builder_.getInt32(clamp)});
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

  Value* combine(const ConvergencePoint& site, Value* a, Value* b) {
    Type* whole = builder_.getInt64Ty();
    CallInst* result =
        builder_.CreateCall(site.combine, {builder_.CreateZExt(a, whole), builder_.CreateZExt(b, whole)});
    combining_.push_back(result);
    return builder_.CreateTrunc(result, a->getType());
  }

  Value* identity(const ConvergencePoint& site, Type* type) {
    return ConstantInt::get(type, APInt(64, site.identity).trunc(type->getIntegerBitWidth()));
  }

  // ---- Reductions

  // Both lanes of a pair compute the same: the lower one's value comes first, where that makes a difference.
  Value* combine_pair(const ConvergencePoint& site, Value* own, Value* other, Value* distance) {
    if (in_any_order_) return combine(site, own, other);
    Value* is_lower = builder_.CreateICmpEQ(builder_.CreateAnd(lane_, distance), builder_.getInt32(0));
    return combine(site, builder_.CreateSelect(is_lower, own, other), builder_.CreateSelect(is_lower, other, own));
  }

  // Integers have instructions for it, in which missing lanes do not count.
  Value* reduce_at_once(const ConvergencePoint& site, Value* value) {
    if (!operation_ || site.width != kWidth || value->getType()->getIntegerBitWidth() > 32) return nullptr;
    Intrinsic::ID id = whole_reduction(*operation_);
    bool is_ordered = operation_->intrinsic != Intrinsic::not_intrinsic;
    if (id == Intrinsic::not_intrinsic || (is_ordered && value->getType()->getIntegerBitWidth() != 32)) return nullptr;
    Value* wide = builder_.CreateZExt(value, builder_.getInt32Ty());
    return builder_.CreateTrunc(builder_.CreateIntrinsic(id, {}, {wide, mask_.named}), value->getType());
  }

  Value* reduce(const ConvergencePoint& site, Value* value) {
    for (uint32_t distance = 1; distance < site.width; distance *= 2)
      value = combine_pair(site, value, from_pair(value, distance), builder_.getInt32(distance));
    return value;
  }

  // All lanes of a group that has been combined have the same. Any that is there stands for the group. As a loop: five
  // steps of it in a row would be most of a kernel's code, for simdgroups that are few.
  Value* reduce_some(const ConvergencePoint& site, Value* value) {
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
    Value* there = builder_.CreateAnd(mask_.active, builder_.CreateShl(lanes, first));
    // Of no lane at all this is the last.
    Value* source = builder_.CreateBinaryIntrinsic(Intrinsic::cttz, builder_.CreateOr(there, 1u << (kWidth - 1)),
                                                   builder_.getTrue());
    Value* other = from_lane(combined, source);
    Value* is_there = builder_.CreateICmpNE(there, builder_.getInt32(0));
    other = builder_.CreateSelect(is_there, other, identity(site, value->getType()));
    Value* next = combine_pair(site, combined, other, distance);
    Value* next_distance = builder_.CreateShl(distance, 1);
    BranchInst* back =
        builder_.CreateCondBr(builder_.CreateICmpULT(next_distance, builder_.getInt32(site.width)), step, after);
    never_unroll(*back);
    distance->addIncoming(builder_.getInt32(1), before);
    distance->addIncoming(next_distance, step);
    combined->addIncoming(value, before);
    combined->addIncoming(next, step);
    builder_.SetInsertPoint(after->getTerminator());
    return next;
  }

  // ---- Scans

  Value* offset_in_group(const ConvergencePoint& site) { return builder_.CreateAnd(lane_, site.width - 1); }

  Value* scan(const ConvergencePoint& site, Value* value) {
    Value* place = offset_in_group(site);
    for (uint32_t distance = 1; distance < site.width; distance *= 2) {
      Value* has_before = builder_.CreateICmpUGE(place, builder_.getInt32(distance));
      Value* sum = combine(site, from_before(value, distance), value);
      value = builder_.CreateSelect(has_before, sum, value);
    }
    if (site.exchange == CpuExchange::kInclusiveScan) return value;
    return builder_.CreateSelect(builder_.CreateICmpNE(place, builder_.getInt32(0)), from_before(value, 1),
                                 identity(site, value->getType()));
  }

  // Each lane computes by itself what the lanes before it would have given, in the same pairs.
  Value* scan_some(const ConvergencePoint& site, Value* value) {
    uint32_t skipped = site.exchange == CpuExchange::kExclusiveScan ? 1 : 0;
    Value* place = offset_in_group(site);
    SmallVector<Value*> values, exist;
    for (uint32_t i = 0; i < site.width; ++i) {
      Value* source = builder_.CreateSub(lane_, builder_.getInt32(i + skipped));
      source = builder_.CreateAnd(source, kWidth - 1);
      Value* taken = from_lane(value, source);
      values.push_back(builder_.CreateSelect(is_active(source), taken, identity(site, value->getType())));
      exist.push_back(builder_.CreateICmpUGE(place, builder_.getInt32(i + skipped)));
    }
    for (; values.size() > 1;) {
      for (size_t i = 0; i < values.size() / 2; ++i) {
        Value* sum = combine(site, values[2 * i + 1], values[2 * i]);
        values[i] = builder_.CreateSelect(exist[2 * i + 1], sum, values[2 * i]);
        exist[i] = exist[2 * i];
      }
      values.truncate(values.size() / 2);
    }
    if (!skipped) return values[0];
    return builder_.CreateSelect(exist[0], values[0], identity(site, value->getType()));
  }

  Module& module_;
  ArrayRef<ConvergencePoint> sites_;
  const Masks& masks_;
  IRBuilder<> builder_;
  Value* lane_ = nullptr;
  MatrixSources sources_;
  DenseMap<std::pair<BasicBlock*, std::pair<Value*, Value*>>, Value*> taken_;
  SimdgroupMask mask_;
  std::optional<Operation> operation_;
  bool in_any_order_ = false;  // whether a pair may be combined the other way round
  SmallPtrSet<Function*, 4> simplified_;
  SmallVector<CallInst*> combining_;
};

}  // namespace

void lower_waits(Function& body, ArrayRef<ConvergencePoint> sites, const Masks& masks, MatrixMap map) {
  WaitLowering(body, sites, masks, map).run(body);
}

}  // namespace kiln
