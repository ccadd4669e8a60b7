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
  CollectiveLowering(Function& function, ArrayRef<ConvergencePoint> sites)
      : module_(*function.getParent()),
        entry_(function.getEntryBlock()),
        sites_(sites),
        builder_(function.getContext()) {}

  std::string run(Function& function) {
    SmallVector<CallInst*> waits;
    for (Instruction& instruction : instructions(function))
      if (std::optional<unsigned> site = convergence_point_at(instruction))
        if (sites_[*site].is_product || sites_[*site].exchange != CpuExchange::kNone)
          waits.push_back(cast<CallInst>(&instruction));
    for (CallInst* wait : waits) {
      const ConvergencePoint& site = sites_[*convergence_point_at(*wait)];
      if (site.combine && !simplify(*site.combine)) return "a reduction whose function branches";
    }
    for (CallInst* wait : waits) lower(*wait, sites_[*convergence_point_at(*wait)]);
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

  // A question about the lane's place, `ask(place, builder)`. Not the body's lane: what branches say of that holds in
  // the lanes that are here, and the others compute here too. At the beginning, since an answer that stood on a way
  // which only some lanes take would be undefined in the others when another exchange used it again.
  template <typename Ask>
  Value* of_place(Ask ask) {
    if (!place_) {
      Function& place =
          pseudo_intrinsic(module_, kCollectiveLaneFunction, FunctionType::get(builder_.getInt32Ty(), false));
      set_no_side_effects(place);
      place_ = IRBuilder<>(&entry_, entry_.getFirstInsertionPt()).CreateCall(&place);
    }
    IRBuilder<> builder(place_->getNextNode());
    return ask(place_, builder);
  }

  Value* combine(const ConvergencePoint& site, Value* a, Value* b) {
    Type* whole = builder_.getInt64Ty();
    CallInst* result =
        builder_.CreateCall(site.combine, {builder_.CreateZExt(a, whole), builder_.CreateZExt(b, whole)});
    combining_.push_back(result);
    return builder_.CreateTrunc(result, a->getType());
  }

  void lower(CallInst& wait, const ConvergencePoint& site) {
    builder_.SetInsertPoint(&wait);
    if (site.is_product) return multiply(wait);
    Value *value = wait.getArgOperand(1), *operand = wait.getArgOperand(2);
    Value* result = nullptr;
    switch (site.exchange) {
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
        value = builder_.CreateTrunc(value, combined_type(*site.combine));
        Value* taken = call(LaneOperation::kTake, value, {ConstantInt::get(value->getType(), site.identity)});
        result = site.exchange == CpuExchange::kReduce ? reduce(site, taken) : scan(site, taken);
        break;
      }
    }
    wait.replaceAllUsesWith(builder_.CreateZExt(result, builder_.getInt64Ty()));
    mark_iteration(wait);
    wait.eraseFromParent();
  }

  void multiply(CallInst& wait) {
    MatrixElements elements = elements_of(wait);
    auto element = [&](unsigned i) {
      return call(LaneOperation::kMultiply, elements.a[0], {elements.a[1], elements.b[i], elements.c[i]});
    };
    Value* first = element(0);
    wait.replaceAllUsesWith(packed(first, element(1), builder_));
    wait.eraseFromParent();
  }

  // Both lanes of a pair compute the same: the lower one's value comes first, where that makes a difference.
  Value* reduce(const ConvergencePoint& site, Value* value) {
    bool in_any_order = is_commutative(*site.combine);
    for (uint32_t distance = 1; distance < site.width; distance *= 2) {
      Value* other = call(LaneOperation::kExchange, value, {builder_.getInt32(distance)});
      if (in_any_order) {
        value = combine(site, value, other);
        continue;
      }
      Value* is_lower = of_place([&](Value* place, IRBuilder<>& builder) {
        return builder.CreateICmpEQ(builder.CreateAnd(place, distance), builder.getInt32(0));
      });
      Value* first = builder_.CreateSelect(is_lower, value, other);
      Value* second = builder_.CreateSelect(is_lower, other, value);
      value = combine(site, first, second);
    }
    return site.width == kLanes ? call(LaneOperation::kFirst, value) : value;
  }

  Value* scan(const ConvergencePoint& site, Value* value) {
    auto is_at_least = [&](uint32_t distance) {
      return of_place([&](Value* place, IRBuilder<>& builder) {
        return builder.CreateICmpUGE(builder.CreateAnd(place, site.width - 1), builder.getInt32(distance));
      });
    };
    for (uint32_t distance = 1; distance < site.width; distance *= 2) {
      Value* before = call(LaneOperation::kUp, value, {builder_.getInt32(distance)});
      value = builder_.CreateSelect(is_at_least(distance), combine(site, before, value), value);
    }
    if (site.exchange == CpuExchange::kInclusiveScan) return value;
    Value* before = call(LaneOperation::kUp, value, {builder_.getInt32(1)});
    return builder_.CreateSelect(is_at_least(1), before, ConstantInt::get(value->getType(), site.identity));
  }

  Module& module_;
  BasicBlock& entry_;
  CallInst* place_ = nullptr;  // the lane's
  ArrayRef<ConvergencePoint> sites_;
  IRBuilder<> builder_;
  SmallPtrSet<Function*, 4> simplified_;
  SmallVector<CallInst*> combining_;
};

}  // namespace

std::string lower_collectives(Function& function, ArrayRef<ConvergencePoint> sites) {
  return CollectiveLowering(function, sites).run(function);
}

}  // namespace kiln
