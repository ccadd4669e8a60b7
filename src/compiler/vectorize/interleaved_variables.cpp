#include "compiler/vectorize/interleaved_variables.h"

#include <llvm/ADT/MapVector.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/Utils/Local.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Operator.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

#include <algorithm>
#include <optional>

#include "compiler/ir/loop_metadata.h"
#include "compiler/ir/metadata.h"
#include "compiler/ir/remarks.h"
#include "compiler/ir/simdgroup.h"

namespace kiln {
namespace {

using namespace llvm;

// Elements that a fill stores one after the other; more are stored in a loop.
constexpr uint64_t kMostFilled = 8;

constexpr const char* kPass = "interleaved-variables";

// A fill of a variable, whose elements of so many bytes lie interleaved now.
struct Fill {
  MemSetInst* fill;
  uint64_t element;
};

class Interleaver {
 public:
  Interleaver(AllocaInst& variable, SmallVectorImpl<Fill>& fills)
      : variable_(variable), layout_(variable.getDataLayout()), all_fills_(fills) {}

  bool run() {
    const std::optional<TypeSize> bytes = variable_.getAllocationSize(layout_);
    if (!variable_.isStaticAlloca() || variable_.isArrayAllocation() || !bytes || bytes->isZero()) return false;
    if (const char* reason = find_uses()) {
      if (has_variable_index_) remark(kPass, variable_, "each thread keeps its own array in one piece: ", reason);
      return false;
    }
    // Otherwise it becomes registers, or nothing reads it.
    if (!has_variable_index_ || element_ == 0) return false;
    if (!are_whole_elements()) {
      remark(kPass, variable_, "each thread keeps its own array in one piece: its elements overlap");
      return false;
    }
    replace(alignTo(*bytes, element_));
    return true;
  }

 private:
  // Collects the addresses that are computed from the variable. Returns why it must stay as it is, or null.
  const char* find_uses() {
    SmallVector<std::pair<Value*, bool>> left{{&variable_, false}};  // and whether it is chosen by a guard
    while (!left.empty()) {
      auto [address, is_chosen] = left.pop_back_val();
      for (User* user : address->users()) {
        auto* instruction = cast<Instruction>(user);
        if (auto* load = dyn_cast<LoadInst>(instruction)) {
          if (!load->isSimple() || !is_access_of_element(load->getType())) return "its elements differ in size";
          loads_.push_back(load);
        } else if (auto* store = dyn_cast<StoreInst>(instruction)) {
          if (store->getValueOperand() == address) return "its address is stored";
          if (!store->isSimple() || !is_access_of_element(store->getValueOperand()->getType()))
            return "its elements differ in size";
          stores_.push_back(store);
        } else if (auto* gep = dyn_cast<GetElementPtrInst>(instruction)) {
          if (is_chosen) return "an address is computed from one that a condition chooses";
          has_variable_index_ |= !gep->hasAllConstantIndices();
          addresses_.push_back(gep);
          left.push_back({gep, false});
        } else if (auto* select = dyn_cast<SelectInst>(instruction)) {
          // The other side is memory of zeros or a sink, which all lanes share.
          Value* other = select->getTrueValue() == address ? select->getFalseValue() : select->getTrueValue();
          if (!isa<GlobalVariable>(other)) return "a condition chooses between its address and another";
          left.push_back({select, true});
        } else if (auto* intrinsic = dyn_cast<IntrinsicInst>(instruction);
                   intrinsic && intrinsic->isLifetimeStartOrEnd()) {
          ended_.push_back(intrinsic);
        } else if (auto* fill = dyn_cast<MemSetInst>(instruction)) {
          if (is_chosen || fill->isVolatile() || !isa<ConstantInt>(fill->getLength()) ||
              !isa<Constant>(fill->getValue()))
            return "it is filled with a value or length that is no constant";
          fills_.push_back(fill);
        } else {
          return "its address is used otherwise than by loads and stores";
        }
      }
    }
    return nullptr;
  }

  bool is_access_of_element(Type* type) {
    const uint64_t bytes = layout_.getTypeStoreSize(type);
    if (type->isIntegerTy(1) || !VectorType::isValidElementType(type) || bytes != layout_.getTypeAllocSize(type))
      return false;
    if (element_ == 0) element_ = bytes;
    return element_ == bytes;
  }

  // Whether each offset is one of whole elements.
  bool are_whole_elements() const {
    for (const GetElementPtrInst* address : addresses_) {
      MapVector<Value*, APInt> variable_offsets;
      APInt constant_offset(64, 0);
      if (!cast<GEPOperator>(address)->collectOffset(layout_, 64, variable_offsets, constant_offset)) return false;
      if (constant_offset.srem(static_cast<int64_t>(element_)) != 0) return false;
      for (const auto& [index, factor] : variable_offsets)
        if (factor.srem(static_cast<int64_t>(element_)) != 0) return false;
    }
    return all_of(fills_, [&](const MemSetInst* fill) {
      const uint64_t bytes = cast<ConstantInt>(fill->getLength())->getZExtValue();
      return bytes % element_ == 0;
    });
  }

  void replace(uint64_t bytes) {
    IRBuilder<> builder(&variable_);
    Type* byte = builder.getInt8Ty();
    auto* all = builder.CreateAlloca(ArrayType::get(byte, bytes * kLanes));
    all->setAlignment(Align(64));
    mark_uniform(*all);
    builder.SetInsertPoint(std::next(all->getIterator()));
    Value* lane = builder.CreateZExt(builder.CreateCall(&lane_function(*variable_.getModule())), builder.getInt64Ty());
    Value* own = builder.CreateGEP(byte, all, builder.CreateMul(lane, builder.getInt64(element_)), variable_.getName());
    for (IntrinsicInst* ended : ended_) ended->eraseFromParent();
    // An address's operands come before it in the list.
    for (GetElementPtrInst* address : addresses_) {
      builder.SetInsertPoint(address);
      Value* offset = emitGEPOffset(&builder, layout_, address, /*NoAssumptions=*/true);
      Value* base = address->getPointerOperand() == &variable_ ? own : address->getPointerOperand();
      Value* scaled = builder.CreateGEP(byte, base, builder.CreateMul(offset, builder.getInt64(kLanes)));
      scaled->takeName(address);
      address->replaceAllUsesWith(scaled);
    }
    for (GetElementPtrInst* address : reverse(addresses_)) address->eraseFromParent();
    // The array as a whole may have been aligned to more than its elements are now.
    for (LoadInst* load : loads_) load->setAlignment(std::min(load->getAlign(), Align(element_)));
    for (StoreInst* store : stores_) store->setAlignment(std::min(store->getAlign(), Align(element_)));
    variable_.replaceAllUsesWith(own);
    for (MemSetInst* fill : fills_) all_fills_.push_back({fill, element_});
    variable_.eraseFromParent();
  }

  AllocaInst& variable_;
  const DataLayout& layout_;
  SmallVectorImpl<Fill>& all_fills_;
  uint64_t element_ = 0;  // bytes
  bool has_variable_index_ = false;
  SmallVector<GetElementPtrInst*> addresses_;
  SmallVector<LoadInst*> loads_;
  SmallVector<StoreInst*> stores_;
  SmallVector<IntrinsicInst*> ended_;
  SmallVector<MemSetInst*> fills_;
};

void expand(const Fill& fill) {
  IRBuilder<> builder(fill.fill);
  Type* number = builder.getIntNTy(static_cast<unsigned>(fill.element) * 8);
  const APInt byte = cast<ConstantInt>(fill.fill->getValue())->getValue();
  Constant* value = ConstantInt::get(number, APInt::getSplat(number->getIntegerBitWidth(), byte));
  const uint64_t count = cast<ConstantInt>(fill.fill->getLength())->getZExtValue() / fill.element;
  auto store = [&](Value* i) {
    Value* offset = builder.CreateMul(i, builder.getInt64(fill.element * kLanes));
    Value* to = builder.CreateGEP(builder.getInt8Ty(), fill.fill->getDest(), offset);
    builder.CreateAlignedStore(value, to, Align(fill.element));
  };
  if (count > kMostFilled) {
    auto [inside, i] = SplitBlockAndInsertSimpleForLoop(builder.getInt64(count), fill.fill);
    never_unroll(*cast<BranchInst>(inside->getParent()->getTerminator()));
    builder.SetInsertPoint(inside);
    store(i);
  } else {
    for (uint64_t i = 0; i < count; ++i) store(builder.getInt64(i));
  }
  fill.fill->eraseFromParent();
}

}  // namespace

bool interleave_variables(Function& function) {
  SmallVector<AllocaInst*> variables;
  for (Instruction& instruction : instructions(function))
    if (auto* variable = dyn_cast<AllocaInst>(&instruction)) variables.push_back(variable);
  bool has_changed = false;
  SmallVector<Fill> fills;
  for (AllocaInst* variable : variables) has_changed |= Interleaver(*variable, fills).run();
  // Loops come last: they end the block of the variables.
  for (const Fill& fill : fills) expand(fill);
  return has_changed;
}

}  // namespace kiln
