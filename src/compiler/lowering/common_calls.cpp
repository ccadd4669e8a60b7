// sin(x) and cos(x) reduce x to the same angle. Once both are inlined, the two reductions are branches with blocks of
// their own, and no pass of LLVM's sees that they compute the same: GVN and EarlyCSE merge instructions where one
// dominates the other. A call is one instruction. So functions of their arguments alone that have branches and are
// called at several places (of Kiln's device library and of the body's own) are inlined last: everything else is, equal
// calls are merged, then those functions are inlined that no other one of them calls, and so on.
//
// Of memory, only loads between two writes are compared. Accesses are not guarded yet: what a store beyond an array has
// stored is not what a load from there gives, as EarlyCSE would have it. (Rejected: to keep calls until the accesses
// are guarded and optimised. All passes in between would have to know calls.)
//
// Linear in the instructions, in each of at most eight rounds. Loops in bodies with barriers or collectives have a
// convergent call by then, and functions with such loops are not compared.
#include "compiler/lowering/common_calls.h"

#include <llvm/ADT/MapVector.h>
#include <llvm/ADT/ScopedHashTable.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Transforms/Utils/Local.h>

#include <memory>

#include "compiler/ir/pass_runner.h"
#include "compiler/lowering/inline_all.h"
#include "compiler/lowering/promote_variables.h"

namespace kiln {
namespace {

using namespace llvm;

// A call of something that is not defined here: LLVM's or Kiln's intrinsics.
bool only_computes(const CallBase& call) {
  return call.doesNotAccessMemory() && call.doesNotThrow() && call.willReturn() && !call.isConvergent() &&
         !call.isInlineAsm() && !call.getType()->isVoidTy();
}

// What is called more deeply is inlined with the rest.
constexpr unsigned kMostRounds = 8;

class ValueFunctions {
 public:
  /// Whether the result of a call depends on its arguments alone, and nothing else happens.
  bool contains(const Function& function) { return visit(function).is_value; }
  /// Whether it, or a function that it calls, has branches.
  bool has_branches(const Function& function) { return visit(function).has_branches; }

 private:
  struct Kind {
    bool is_value, has_branches;
  };

  // Functions that call themselves have been rejected.
  Kind visit(const Function& function) {
    if (auto found = kinds_.find(&function); found != kinds_.end()) return found->second;
    Kind kind{!function.isDeclaration() && !function.getReturnType()->isVoidTy() && !function.hasAddressTaken(),
              function.size() > 1};
    for (const Instruction& instruction : instructions(function)) {
      const auto* call = dyn_cast<CallBase>(&instruction);
      const Function* callee = call ? call->getCalledFunction() : nullptr;
      if (callee && !callee->isDeclaration()) {
        Kind inner = visit(*callee);
        kind.is_value &= inner.is_value;
        kind.has_branches |= inner.has_branches;
      } else {
        kind.is_value &= is_of_values(instruction);
      }
    }
    kinds_[&function] = kind;
    return kind;
  }

  // Loads from constants and accesses of the function's own variables are.
  static bool is_of_values(const Instruction& instruction) {
    if (isa<LifetimeIntrinsic>(instruction)) return true;
    if (const auto* call = dyn_cast<CallBase>(&instruction)) {
      if (const auto* transfer = dyn_cast<MemTransferInst>(call))
        return !transfer->isVolatile() && is_own(transfer->getDest()) && is_constant_or_own(transfer->getSource());
      if (const auto* set = dyn_cast<MemSetInst>(call)) return !set->isVolatile() && is_own(set->getDest());
      return only_computes(*call);
    }
    if (const auto* load = dyn_cast<LoadInst>(&instruction))
      return load->isUnordered() && !load->isVolatile() && is_constant_or_own(load->getPointerOperand());
    if (const auto* store = dyn_cast<StoreInst>(&instruction))
      return store->isUnordered() && !store->isVolatile() && is_own(store->getPointerOperand());
    return !instruction.mayReadOrWriteMemory() && !instruction.mayThrow();
  }
  static bool is_own(const Value* pointer) { return isa<AllocaInst>(getUnderlyingObject(pointer)); }
  static bool is_constant_or_own(const Value* pointer) {
    const Value* object = getUnderlyingObject(pointer);
    const auto* variable = dyn_cast<GlobalVariable>(object);
    return isa<AllocaInst>(object) || (variable && variable->isConstant());
  }

  DenseMap<const Function*, Kind> kinds_;
};

bool takes_pointers(const Function& function) {
  return any_of(function.args(), [](const Argument& argument) { return argument.getType()->isPointerTy(); });
}

// Functions with branches that are called at several places and are given no variable.
SetVector<Function*> repeated_functions(Module& module, ValueFunctions& values) {
  MapVector<Function*, unsigned> calls;
  for (const Function& function : module)
    for (const Instruction& instruction : instructions(function))
      if (const auto* call = dyn_cast<CallInst>(&instruction))
        if (Function* callee = call->getCalledFunction(); callee && !callee->isDeclaration()) ++calls[callee];
  SetVector<Function*> repeated;
  for (auto [function, count] : calls)
    if (count > 1 && !takes_pointers(*function) && values.has_branches(*function)) repeated.insert(function);
  return repeated;
}

struct SameInstruction : DenseMapInfo<Instruction*> {
  static bool is_key(const Instruction* a) { return a != getEmptyKey() && a != getTombstoneKey(); }
  static unsigned getHashValue(const Instruction* a) {
    return static_cast<unsigned>(
        hash_combine(a->getOpcode(), a->getType(), hash_combine_range(a->value_op_begin(), a->value_op_end())));
  }
  static bool isEqual(const Instruction* a, const Instruction* b) {
    return a == b || (is_key(a) && is_key(b) && a->isIdenticalToWhenDefined(b));
  }
};

// Whether it gives the same wherever its operands are the same.
bool depends_on_operands(const Instruction& instruction) {
  if (const auto* call = dyn_cast<CallBase>(&instruction)) {
    const Function* callee = call->getCalledFunction();
    return callee && callee->isDeclaration() && only_computes(*call);
  }
  return !instruction.mayHaveSideEffects() && !instruction.mayReadOrWriteMemory();
}

// Replaces instructions, and calls of `shared`, by equal ones that dominate them.
void merge_instructions(Function& function, const SetVector<Function*>& shared) {
  using Table = ScopedHashTable<Instruction*, Instruction*, SameInstruction>;
  DominatorTree dominators(function);
  Table table;
  // Loads are the same between two writes of one block.
  DenseMap<const Instruction*, unsigned> writes_before;
  auto visit = [&](BasicBlock& block) {
    unsigned writes = 0;
    for (Instruction& instruction : make_early_inc_range(block)) {
      const bool is_load = isa<LoadInst>(instruction) && !instruction.mayHaveSideEffects();
      const auto* call = dyn_cast<CallInst>(&instruction);
      const bool is_shared = call && shared.contains(call->getCalledFunction());
      if (isa<PHINode, AllocaInst, FreezeInst>(instruction) || instruction.isTerminator()) continue;
      if (!is_shared && !is_load && !depends_on_operands(instruction)) {
        writes += instruction.mayWriteToMemory();
        continue;
      }
      Instruction* known = table.lookup(&instruction);
      if (!known || (is_load && (known->getParent() != &block || writes_before[known] != writes))) {
        table.insert(&instruction, &instruction);
        if (is_load) writes_before[&instruction] = writes;
        continue;
      }
      combineMetadataForCSE(known, &instruction, /*DoesKMove=*/true);
      known->andIRFlags(&instruction);
      instruction.replaceAllUsesWith(known);
      instruction.eraseFromParent();
    }
  };
  // The scope of a block ends after those that it dominates.
  struct Frame {
    Frame(Table& table, DomTreeNode& node) : scope(table), next(node.begin()), end(node.end()) {}
    Table::ScopeTy scope;
    DomTreeNode::iterator next, end;
  };
  SmallVector<std::unique_ptr<Frame>> frames;
  auto enter = [&](DomTreeNode& node) {
    frames.push_back(std::make_unique<Frame>(table, node));
    visit(*node.getBlock());
  };
  enter(*dominators.getRootNode());
  while (!frames.empty()) {
    Frame& frame = *frames.back();
    if (frame.next == frame.end)
      frames.pop_back();
    else
      enter(**frame.next++);
  }
}

}  // namespace

bool merge_common_calls(Module& module, StringRef root) {
  Function* function = module.getFunction(root);
  if (!function || function->isDeclaration()) return false;
  ValueFunctions before;
  if (repeated_functions(module, before).empty()) return false;
  prepare_inlining(module, root);
  PassRunner runner(nullptr);
  // First those that are given variables: without them, what a function reads and writes is its own.
  SmallVector<Function*> others;
  for (Function& other : module)
    if (other.hasFnAttribute(Attribute::AlwaysInline) && !takes_pointers(other)) {
      other.removeFnAttr(Attribute::AlwaysInline);
      others.push_back(&other);
    }
  inline_marked(module, runner);
  promote_variables(module);
  for (Function* other : others) other->addFnAttr(Attribute::AlwaysInline);
  ValueFunctions values;
  SetVector<Function*> shared = repeated_functions(module, values);
  shared.remove_if([&](Function* one) { return !values.contains(*one); });
  for (unsigned round = 0; round < kMostRounds && !shared.empty(); ++round) {
    for (Function* later : shared) later->removeFnAttr(Attribute::AlwaysInline);
    inline_marked(module, runner);
    // Arguments are compared as values.
    promote_variables(module);
    merge_instructions(*function, shared);
    // Those that another one calls stay.
    SetVector<Function*> called;
    for (Function* caller : shared)
      for (Instruction& instruction : instructions(*caller))
        if (auto* call = dyn_cast<CallInst>(&instruction); call && shared.contains(call->getCalledFunction()))
          called.insert(call->getCalledFunction());
    for (Function* done : shared)
      if (!called.contains(done)) done->addFnAttr(Attribute::AlwaysInline);
    shared = std::move(called);
  }
  return true;
}

}  // namespace kiln
