#include "compiler/lowering/promote_variables.h"

#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/ValueHandle.h>

#include <optional>
#include <utility>

#include "compiler/ir/pass_runner.h"

namespace kiln {
namespace {

using namespace llvm;

class Preparation {
 public:
  explicit Preparation(Function& function) : layout_(function.getDataLayout()) {
    SmallVector<AllocaInst*> variables;
    for (Instruction& instruction : instructions(function))
      if (auto* variable = dyn_cast<AllocaInst>(&instruction)) variables.push_back(variable);
    for (AllocaInst* variable : variables)
      if (std::optional<TypeSize> bytes = variable->getAllocationSize(layout_)) {
        bytes_ = static_cast<int64_t>(bytes->getFixedValue());
        visit(*variable);
      }
  }

  void undo() {
    for (const WeakVH& handle : hidden_) {
      auto* hidden = cast_or_null<FreezeInst>(static_cast<Value*>(handle));
      if (!hidden) continue;
      hidden->replaceAllUsesWith(hidden->getOperand(0));
      hidden->eraseFromParent();
    }
  }

 private:
  bool is_inside(int64_t offset, uint64_t size) const {
    return offset >= 0 && size <= static_cast<uint64_t>(bytes_) && offset <= bytes_ - static_cast<int64_t>(size);
  }
  uint64_t size_of(Type* type) const { return layout_.getTypeStoreSize(type).getFixedValue(); }

  void visit(AllocaInst& variable) {
    SmallVector<std::pair<Instruction*, int64_t>> addresses{{&variable, 0}};
    // Erased at the end: if a store uses an address twice, its other use may be the next in the list.
    SmallSetVector<Instruction*, 8> dead;
    SmallVector<Instruction*> doubles;
    bool has_parts = false;
    auto note = [&](Instruction& access, Type* type) {
      if (type->isDoubleTy() && !access.isVolatile())
        doubles.push_back(&access);
      else
        has_parts |= size_of(type) < sizeof(double);
    };
    while (!addresses.empty()) {
      auto [address, offset] = addresses.pop_back_val();
      for (Use& use : make_early_inc_range(address->uses())) {
        auto* user = cast<Instruction>(use.getUser());
        if (auto* gep = dyn_cast<GetElementPtrInst>(user)) {
          APInt distance(64, 0);
          if (gep->accumulateConstantOffset(layout_, distance))
            addresses.push_back({gep, offset + distance.getSExtValue()});
          else
            hide(*gep);
        } else if (isa<BitCastInst, AddrSpaceCastInst>(user)) {
          addresses.push_back({user, offset});
        } else if (auto* load = dyn_cast<LoadInst>(user)) {
          if (is_inside(offset, size_of(load->getType()))) {
            note(*load, load->getType());
            continue;
          }
          load->replaceAllUsesWith(Constant::getNullValue(load->getType()));
          dead.insert(load);
        } else if (auto* store = dyn_cast<StoreInst>(user)) {
          if (use.getOperandNo() != StoreInst::getPointerOperandIndex()) continue;
          Type* type = store->getValueOperand()->getType();
          if (is_inside(offset, size_of(type)))
            note(*store, type);
          else
            dead.insert(store);
        } else if (auto* intrinsic = dyn_cast<MemIntrinsic>(user)) {
          visit(*intrinsic, use.getOperandNo(), offset);
        } else if (isa<PHINode, SelectInst>(user)) {
          if (!is_inside(offset, largest_access(*user))) use.set(&hide_before(use));
        }
      }
    }
    for (Instruction* access : dead) access->eraseFromParent();
    if (has_parts) move_as_integers(doubles);
  }

  // Clang passes structures of 8 bytes, as float2 and half4 are, as doubles. SROA splits accesses of integers, and
  // keeps a variable in memory that is accessed as a double and in parts.
  static void move_as_integers(ArrayRef<Instruction*> accesses) {
    SmallVector<StoreInst*> stores;
    for (Instruction* access : accesses) {
      auto* load = dyn_cast<LoadInst>(access);
      if (!load) {
        stores.push_back(cast<StoreInst>(access));
        continue;
      }
      IRBuilder<> builder(load);
      LoadInst* bits = builder.CreateAlignedLoad(builder.getInt64Ty(), load->getPointerOperand(), load->getAlign());
      load->replaceAllUsesWith(builder.CreateBitCast(bits, load->getType()));
      load->eraseFromParent();
    }
    for (StoreInst* store : stores) {
      IRBuilder<> builder(store);
      // What was loaded is stored as it is.
      Value* value = store->getValueOperand();
      auto* moved = dyn_cast<BitCastInst>(value);
      const bool is_moved = moved && moved->getSrcTy()->isIntegerTy();
      store->setOperand(0, is_moved ? moved->getOperand(0) : builder.CreateBitCast(value, builder.getInt64Ty()));
    }
  }

  // All or nothing, as guards do.
  void visit(MemIntrinsic& intrinsic, unsigned operand, int64_t offset) {
    auto* length = dyn_cast<ConstantInt>(intrinsic.getLength());
    if (!length || is_inside(offset, length->getZExtValue())) return;
    if (operand == 1) {
      IRBuilder<> builder(&intrinsic);
      builder.CreateMemSet(intrinsic.getDest(), builder.getInt8(0), length, intrinsic.getDestAlign());
    }
    // Not erased, since another use of this address may be in the same call.
    intrinsic.setLength(ConstantInt::get(length->getType(), 0));
  }

  // The largest access that uses the phi or select as its address.
  uint64_t largest_access(Instruction& choice) const {
    uint64_t largest = 1;
    for (User* user : choice.users()) {
      if (auto* load = dyn_cast<LoadInst>(user)) largest = std::max(largest, size_of(load->getType()));
      if (auto* store = dyn_cast<StoreInst>(user))
        largest = std::max(largest, size_of(store->getValueOperand()->getType()));
    }
    return largest;
  }

  void hide(Instruction& address) {
    if (address.use_empty()) return;
    IRBuilder<> builder(address.getNextNode());
    auto* hidden = cast<FreezeInst>(builder.CreateFreeze(&address));
    address.replaceUsesWithIf(hidden, [&](Use& use) { return use.getUser() != hidden; });
    hidden_.emplace_back(hidden);
  }

  FreezeInst& hide_before(Use& use) {
    auto* user = cast<Instruction>(use.getUser());
    auto* phi = dyn_cast<PHINode>(user);
    IRBuilder<> builder(phi ? phi->getIncomingBlock(use)->getTerminator() : user);
    auto* hidden = cast<FreezeInst>(builder.CreateFreeze(use.get()));
    hidden_.emplace_back(hidden);
    return *hidden;
  }

  const DataLayout& layout_;
  int64_t bytes_ = 0;
  SmallVector<WeakVH> hidden_;  // SROA may erase dead ones
};

}  // namespace

void promote_variables(Module& module) {
  SmallVector<Preparation> preparations;
  for (Function& function : module)
    if (!function.isDeclaration()) preparations.emplace_back(function);
  PassRunner(nullptr).run("function(sroa<preserve-cfg>)", module);
  for (Preparation& preparation : preparations) preparation.undo();
}

}  // namespace kiln
