#include "compiler/lowering/input_stores.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/MapVector.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Operator.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include <algorithm>
#include <memory>
#include <numeric>

#include "compiler/ir/pass_runner.h"
#include "compiler/ir/pseudo_intrinsics.h"

namespace kiln {
namespace {

using namespace llvm;

// The offset in a variable at which an access begins: `offset` plus any multiple of `stride` bytes; 0: `offset` only.
struct Position {
  int64_t offset = 0;
  int64_t stride = 0;
};

bool may_be_equal(const Position& a, const Position& b) {
  int64_t stride = std::gcd(a.stride, b.stride), distance = a.offset - b.offset;
  return stride ? distance % stride == 0 : distance == 0;
}

// A position in a variable of the kernel; null if the address points elsewhere.
struct VariableAddress {
  Value* variable = nullptr;
  Position position;
};

struct PointerLoad {
  LoadInst* load;
  Position position;
};

class Follower {
 public:
  explicit Follower(Function& body) : layout_(body.getParent()->getDataLayout()) {}

  /// The accesses that write through what is computed from `argument`.
  SmallPtrSet<Instruction*, 8> writes_through(Argument& argument) {
    writes_.clear();
    seen_.clear();
    copied_.clear();
    add(&argument);
    while (!work_.empty()) follow(*work_.pop_back_val());
    return std::move(writes_);
  }

 private:
  void add(Value* value) {
    if (seen_.insert(value).second) work_.push_back(value);
  }

  void follow(Value& value) {
    for (Use& use : value.uses()) {
      User* user = use.getUser();
      if (auto* store = dyn_cast<StoreInst>(user)) {
        if (use.getOperandNo() == StoreInst::getPointerOperandIndex())
          writes_.insert(store);
        else
          follow_into_memory(*store);
      } else if (isa<AtomicRMWInst, AtomicCmpXchgInst>(user)) {
        // Operand 0 is the address of either.
        if (use.getOperandNo() == 0) writes_.insert(cast<Instruction>(user));
      } else if (auto* intrinsic = dyn_cast<MemIntrinsic>(user)) {
        if (use.getOperandNo() == 0) writes_.insert(intrinsic);
      } else if (carries(*user, use.getOperandNo())) {
        add(user);
      }
    }
  }

  // Whether `user` may carry the address that its operand carries.
  static bool carries(const User& user, unsigned operand) {
    if (auto* call = dyn_cast<CallInst>(&user); call && calls(*call, kElementFunction)) return operand == 0;
    if (auto* call = dyn_cast<IntrinsicInst>(&user))
      return operand == 0 && (call->getIntrinsicID() == Intrinsic::ptrmask ||
                              call->getIntrinsicID() == Intrinsic::launder_invariant_group ||
                              call->getIntrinsicID() == Intrinsic::strip_invariant_group);
    if (auto* extract = dyn_cast<ExtractValueInst>(&user)) {
      Type* type = extract->getType();
      return type->isPointerTy() || type->isIntegerTy(64) || type->isAggregateType();
    }
    switch (Operator::getOpcode(&user)) {
      case Instruction::GetElementPtr: return operand == 0;
      case Instruction::Select: return operand != 0;
      case Instruction::PHI:
      case Instruction::Freeze:
      case Instruction::BitCast:
      case Instruction::AddrSpaceCast:
      case Instruction::PtrToInt:
      case Instruction::IntToPtr:
      case Instruction::Add:
      case Instruction::Or:
      case Instruction::Xor:
      case Instruction::Trunc:
      case Instruction::ZExt:
      case Instruction::SExt:
      case Instruction::InsertValue: return true;
      case Instruction::Shl:
      case Instruction::LShr:
      case Instruction::AShr: return operand == 0;
      // A few low bits give the alignment of an address, not the address.
      case Instruction::And: {
        const auto* mask = dyn_cast<ConstantInt>(user.getOperand(1 - operand));
        return !mask || mask->getValue().ugt(0xffff);
      }
      // The difference of two addresses is a distance.
      case Instruction::Sub: return operand == 0 && !is_from_pointer(user.getOperand(1));
      default: return false;
    }
  }

  static bool is_from_pointer(const Value* number) {
    for (int steps = 0; steps < 16; ++steps) {
      switch (Operator::getOpcode(number)) {
        case Instruction::PtrToInt: return true;
        case Instruction::Add:
        case Instruction::Sub:
        case Instruction::And:
        case Instruction::Or:
        case Instruction::Freeze: number = cast<User>(number)->getOperand(0); break;
        default: return false;
      }
    }
    return false;
  }

  // ---- Pointers that are stored

  // Follows the loads that may give the address that `store` has stored.
  void follow_into_memory(StoreInst& store) {
    VariableAddress to = variable_address(store.getPointerOperand());
    if (to.variable) follow_out_of(to.variable, to.position);
  }

  void follow_out_of(Value* variable, const Position& stored) {
    for (const PointerLoad& load : loads_of(variable))
      if (may_be_equal(load.position, stored)) add(load.load);
    // A copied pointer may be at any offset of the copy.
    for (Value* copy : SmallVector<Value*>(copies_[variable]))
      if (copied_.insert(copy).second) follow_out_of(copy, {0, 1});
  }

  VariableAddress variable_address(Value* address) const {
    Position position;
    while (auto* gep = dyn_cast<GEPOperator>(address)) {
      MapVector<Value*, APInt> variables;
      APInt constant(64, 0);
      if (!gep->collectOffset(layout_, 64, variables, constant)) return {};
      position.offset += constant.getSExtValue();
      for (const auto& [index, stride] : variables) position.stride = std::gcd(position.stride, stride.getSExtValue());
      address = gep->getPointerOperand();
    }
    if (isa<AllocaInst>(address)) return {address, position};
    auto* global = dyn_cast<GlobalVariable>(address);
    return global && !global->isConstant() ? VariableAddress{address, position} : VariableAddress{};
  }

  // The loads of addresses from a variable, computed once. Also records where the variable is copied to.
  const std::vector<PointerLoad>& loads_of(Value* variable) {
    auto [entry, is_new] = loads_.try_emplace(variable);
    if (!is_new) return *entry->second;
    auto& loads = *(entry->second = std::make_unique<std::vector<PointerLoad>>());
    SmallVector<Value*>& copies = copies_[variable];
    SmallVector<Value*> work{variable};
    SmallPtrSet<Value*, 8> seen;
    while (!work.empty()) {
      Value* address = work.pop_back_val();
      if (!seen.insert(address).second) continue;
      for (User* user : address->users()) {
        if (auto* load = dyn_cast<LoadInst>(user)) {
          if (!load->getType()->isPointerTy() && !load->getType()->isIntegerTy(64)) continue;
          // Through a phi or a select of addresses the offset may be any.
          VariableAddress accessed = variable_address(load->getPointerOperand());
          loads.push_back({load, accessed.variable == variable ? accessed.position : Position{0, 1}});
        } else if (auto* transfer = dyn_cast<MemTransferInst>(user)) {
          if (transfer->getSource() != address) continue;
          if (VariableAddress to = variable_address(transfer->getDest()); to.variable) copies.push_back(to.variable);
        } else if (isa<GEPOperator, PHINode, SelectInst, FreezeInst>(user)) {
          work.push_back(user);
        }
      }
    }
    return loads;
  }

  const DataLayout& layout_;
  SmallPtrSet<Instruction*, 8> writes_;
  SmallPtrSet<Value*, 32> seen_;
  SmallVector<Value*> work_;
  DenseMap<Value*, std::unique_ptr<std::vector<PointerLoad>>> loads_;
  DenseMap<Value*, SmallVector<Value*>> copies_;
  SmallPtrSet<Value*, 8> copied_;
};

}  // namespace

std::vector<InputStore> find_input_stores(Function& body, const KernelUnit& unit) {
  Follower follower(body);
  DenseMap<Instruction*, SmallVector<uint32_t, 1>> found;
  for (uint32_t i = 0; i < unit.parameters.size(); ++i) {
    if (unit.parameters[i].is_written()) continue;
    for (Instruction* access : follower.writes_through(*body.getArg(3 * i))) found[access].push_back(i);
  }
  std::vector<InputStore> stores;
  if (found.empty()) return stores;
  for (Instruction& instruction : instructions(body))
    if (auto entry = found.find(&instruction); entry != found.end())
      for (uint32_t parameter : entry->second) stores.push_back({&instruction, parameter});
  return stores;
}

ReachableInputStores find_reachable_input_stores(Function& body, const KernelUnit& unit) {
  std::unique_ptr<Module> optimized = CloneModule(*body.getParent());
  Function& copy = *optimized->getFunction(body.getName());
  PassRunner(nullptr).run(
      "sroa,early-cse<memssa>,simplifycfg,instcombine<no-verify-fixpoint>,sccp,correlated-propagation,jump-threading,"
      "loop-mssa(loop-instsimplify,loop-rotate,licm),loop(loop-deletion,loop-unroll-full),sroa,gvn,"
      "correlated-propagation,jump-threading,instcombine<no-verify-fixpoint>,adce,simplifycfg",
      copy);
  std::vector<InputStore> stores = find_input_stores(copy, unit);
  return {std::move(optimized), std::move(stores)};
}

}  // namespace kiln
