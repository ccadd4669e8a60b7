#include "compiler/lowering/lane_collectives.h"

#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include "compiler/ir/lane_operations.h"
#include "compiler/ir/pseudo_intrinsics.h"
#include "compiler/ir/simdgroup.h"
#include "compiler/lowering/combine_functions.h"
#include "compiler/lowering/convergence_points.h"
#include "compiler/lowering/matrix_products.h"
#include "core/text.h"
#include "kiln/error.h"

namespace kiln {
namespace {

using namespace llvm;

class CollectiveLowering {
 public:
  CollectiveLowering(Function& function, ArrayRef<ConvergencePoint> points)
      : module_(*function.getParent()),
        entry_(function.getEntryBlock()),
        points_(points),
        builder_(function.getContext()) {}

  std::string run(Function& function) {
    SmallVector<CallInst*> collectives;
    for (Instruction& instruction : instructions(function))
      if (std::optional<unsigned> point = convergence_point_at(instruction))
        if (points_[*point].is_product || points_[*point].exchange != CpuExchange::kNone)
          collectives.push_back(cast<CallInst>(&instruction));
    for (CallInst* collective : collectives) {
      const ConvergencePoint& point = points_[*convergence_point_at(*collective)];
      if (point.combine && !simplify(*point.combine)) return "a reduction whose function branches";
    }
    for (CallInst* collective : collectives) lower(*collective, points_[*convergence_point_at(*collective)]);
    for (CallInst* call : combining_) {
      InlineFunctionInfo info;
      if (!InlineFunction(*call, info).isSuccess()) throw InternalError("a combining function is not inlined");
    }
    return "";
  }

 private:
  bool simplify(Function& combine) {
    if (simplified_.insert(&combine).second) simplify_combining(combine);
    return combine.size() == 1;
  }

  Value* call(LaneOperation operation, Value* value, std::initializer_list<Value*> rest, Type* result) {
    SmallVector<Value*> arguments{value};
    arguments.append(rest);
    return call_lane_operation(builder_, operation, arguments, result);
  }
  Value* call(LaneOperation operation, Value* value, std::initializer_list<Value*> rest = {}) {
    return call(operation, value, rest, value->getType());
  }

  // A value `compute(lane, builder)` of the lane's number. Not of the body's lane: what branches imply about that one
  // holds in active lanes only, and inactive lanes execute this code too. Computed at the entry: a value under a
  // divergent branch would be undefined in the other lanes if another collective reused it.
  template <typename Compute>
  Value* of_lane(Compute compute) {
    if (!lane_) {
      Function& function =
          pseudo_intrinsic(module_, kCollectiveLaneFunction, FunctionType::get(builder_.getInt32Ty(), false));
      lane_ = IRBuilder<>(&entry_, entry_.getFirstInsertionPt()).CreateCall(&function);
    }
    IRBuilder<> builder(lane_->getNextNode());
    return compute(lane_, builder);
  }

  Value* combine(const ConvergencePoint& point, Value* a, Value* b) {
    Type* whole = builder_.getInt64Ty();
    CallInst* result =
        builder_.CreateCall(point.combine, {builder_.CreateZExt(a, whole), builder_.CreateZExt(b, whole)});
    combining_.push_back(result);
    return builder_.CreateTrunc(result, a->getType());
  }

  void lower(CallInst& collective, const ConvergencePoint& point) {
    builder_.SetInsertPoint(&collective);
    if (point.is_product) return multiply(collective);
    Value *value = collective.getArgOperand(1), *operand = collective.getArgOperand(2);
    Value* result = nullptr;
    switch (point.exchange) {
      case CpuExchange::kNone: throw InternalError("there is nothing to exchange");
      case CpuExchange::kShuffle:
        result = call(LaneOperation::kShuffle, narrow(value), {builder_.CreateTrunc(operand, builder_.getInt32Ty())});
        break;
      case CpuExchange::kBallot:
        result =
            call(LaneOperation::kVote, builder_.CreateICmpNE(value, builder_.getInt64(0)), {}, builder_.getInt32Ty());
        break;
      case CpuExchange::kReduce:
      case CpuExchange::kInclusiveScan:
      case CpuExchange::kExclusiveScan: {
        value = builder_.CreateTrunc(value, combining_type(*point.combine));
        Value* taken = call(LaneOperation::kTake, value, {ConstantInt::get(value->getType(), point.identity)});
        result = point.exchange == CpuExchange::kReduce ? reduce(point, taken) : scan(point, taken);
        break;
      }
    }
    collective.replaceAllUsesWith(builder_.CreateZExt(result, builder_.getInt64Ty()));
    mark_iteration(collective);
    collective.eraseFromParent();
  }

  void multiply(CallInst& collective) {
    MatrixElements elements = elements_of(collective);
    auto element = [&](unsigned i) {
      return call(LaneOperation::kMultiply, elements.a[0], {elements.a[1], elements.b[i], elements.c[i]});
    };
    Value* first = element(0);
    collective.replaceAllUsesWith(packed(first, element(1), builder_));
    collective.eraseFromParent();
  }

  // Both lanes of a pair compute the same result: the lower lane's value comes first if the order matters.
  Value* reduce(const ConvergencePoint& point, Value* value) {
    bool in_any_order = is_commutative(*point.combine);
    for (uint32_t distance = 1; distance < point.width; distance *= 2) {
      Value* other = call(LaneOperation::kExchange, value, {builder_.getInt32(distance)});
      if (in_any_order) {
        value = combine(point, value, other);
        continue;
      }
      Value* is_lower = of_lane([&](Value* lane, IRBuilder<>& builder) {
        return builder.CreateICmpEQ(builder.CreateAnd(lane, distance), builder.getInt32(0));
      });
      Value* first = builder_.CreateSelect(is_lower, value, other);
      Value* second = builder_.CreateSelect(is_lower, other, value);
      value = combine(point, first, second);
    }
    return point.width == kLanes ? call(LaneOperation::kFirst, value) : value;
  }

  Value* scan(const ConvergencePoint& point, Value* value) {
    auto is_at_least = [&](uint32_t distance) {
      return of_lane([&](Value* lane, IRBuilder<>& builder) {
        return builder.CreateICmpUGE(builder.CreateAnd(lane, point.width - 1), builder.getInt32(distance));
      });
    };
    for (uint32_t distance = 1; distance < point.width; distance *= 2) {
      Value* before = call(LaneOperation::kUp, value, {builder_.getInt32(distance)});
      value = builder_.CreateSelect(is_at_least(distance), combine(point, before, value), value);
    }
    if (point.exchange == CpuExchange::kInclusiveScan) return value;
    Value* before = call(LaneOperation::kUp, value, {builder_.getInt32(1)});
    return builder_.CreateSelect(is_at_least(1), before, ConstantInt::get(value->getType(), point.identity));
  }

  Module& module_;
  BasicBlock& entry_;
  CallInst* lane_ = nullptr;  // the lane's number
  ArrayRef<ConvergencePoint> points_;
  IRBuilder<> builder_;
  SmallPtrSet<Function*, 4> simplified_;
  SmallVector<CallInst*> combining_;
};

}  // namespace

std::string lower_collectives(Function& function, ArrayRef<ConvergencePoint> points) {
  return CollectiveLowering(function, points).run(function);
}

}  // namespace kiln
