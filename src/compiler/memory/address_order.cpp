#include "compiler/memory/address_order.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/DenseSet.h>
#include <llvm/ADT/MapVector.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Support/MathExtras.h>

#include <algorithm>

#include "compiler/ir/cache_lines.h"
#include "compiler/ir/load_order.h"
#include "compiler/ir/metadata.h"

namespace kiln {
namespace {

using namespace llvm;

// The hardware prefetcher handles a small number of loads.
constexpr size_t kFewestLoads = 16;

// Live registers for each register of the processor.
constexpr unsigned kMostLive = 3;

struct OrderedAccess {
  LoadInst* load;
  int64_t begin, end;  // offset from the base, in bytes
};
using Accesses = SmallVector<OrderedAccess, 0>;

size_t count_jumps(const Accesses& accesses) {
  size_t jumps = 0;
  for (size_t i = 1; i < accesses.size(); ++i)
    jumps += accesses[i].begin < accesses[i - 1].begin || accesses[i].begin > accesses[i - 1].end + kCacheLine;
  return jumps;
}

class AddressOrder {
 public:
  AddressOrder(BasicBlock& block, const VectorIsa& vector_isa)
      : block_(block),
        most_registers_(kMostLive * vector_isa.num_registers),
        register_bytes_(vector_isa.register_bytes) {}

  bool run() {
    bool has_changed = false;
    for (auto& [base, accesses] : find_accesses()) {
      if (accesses.size() < kFewestLoads || 2 * count_jumps(accesses) <= accesses.size()) continue;
      Instruction *first = accesses.front().load, *last = accesses.back().load;
      if (any_of(make_range(first->getIterator(), last->getIterator()),
                 [](const Instruction& one) { return one.mayWriteToMemory(); }))
        continue;
      llvm::stable_sort(accesses, [](const OrderedAccess& a, const OrderedAccess& b) { return a.begin < b.begin; });
      if (count_jumps(accesses) > 0) continue;
      find_order(accesses, *first);
      if (max_live_registers() > most_registers_) continue;
      apply(*base, accesses, *first);
      has_changed = true;
    }
    return has_changed;
  }

 private:
  // Grouped by the common base of their addresses, in the current order of the code.
  MapVector<Value*, Accesses> find_accesses() const {
    const DataLayout& layout = block_.getDataLayout();
    MapVector<Value*, Accesses> arrays;
    for (Instruction& instruction : block_) {
      auto* load = dyn_cast<LoadInst>(&instruction);
      if (!load || !load->isSimple() || !load->getType()->isVectorTy()) continue;
      APInt offset(64, 0);
      Value* base = load->getPointerOperand()->stripAndAccumulateConstantOffsets(layout, offset, true);
      auto bytes = static_cast<int64_t>(layout.getTypeStoreSize(load->getType()).getFixedValue());
      arrays[base].push_back({load, offset.getSExtValue(), offset.getSExtValue() + bytes});
    }
    return arrays;
  }

  // Each load, followed by the instructions that it makes computable.
  void find_order(const Accesses& accesses, Instruction& first) {
    order_.clear();
    ordered_.clear();
    for (Instruction& instruction : make_range(block_.begin(), first.getIterator())) ordered_.insert(&instruction);
    for (const OrderedAccess& access : accesses) append_with_users(*access.load);
  }

  void append_with_users(LoadInst& load) {
    SmallVector<Instruction*> worklist{&load};
    while (!worklist.empty()) {
      Instruction* instruction = worklist.pop_back_val();
      if (!ordered_.insert(instruction).second) continue;
      order_.push_back(instruction);
      for (User* user : instruction->users())
        if (can_follow(*cast<Instruction>(user))) worklist.push_back(cast<Instruction>(user));
    }
  }

  bool can_follow(const Instruction& instruction) const {
    return instruction.getParent() == &block_ && !isa<PHINode, AllocaInst>(instruction) &&
           !instruction.isTerminator() && !instruction.mayHaveSideEffects() && !instruction.mayReadFromMemory() &&
           all_of(instruction.operands(), [&](const Use& use) {
             auto* operand = dyn_cast<Instruction>(use.get());
             return !operand || operand->getParent() != &block_ || ordered_.contains(operand);
           });
  }

  uint64_t registers_of(const Value& value) const {
    if (!value.getType()->isVectorTy()) return 0;
    return divideCeil(block_.getDataLayout().getTypeStoreSize(value.getType()).getFixedValue(), register_bytes_);
  }

  uint64_t max_live_registers() const {
    uint64_t live = 0, most = 0;
    DenseMap<const Value*, unsigned> remaining_uses;
    for (const Instruction* instruction : order_) {
      remaining_uses[instruction] = instruction->getNumUses();
      live += registers_of(*instruction);
      most = std::max(most, live);
      for (const Value* operand : instruction->operands())
        if (auto found = remaining_uses.find(operand); found != remaining_uses.end() && --found->second == 0)
          live -= registers_of(*operand);
    }
    return most;
  }

  void apply(Value& base, const Accesses& accesses, Instruction& first) {
    IRBuilder<> builder(&first);
    MDNode* empty_node = MDNode::get(block_.getContext(), {});
    DenseMap<const Instruction*, int64_t> begins;
    for (const OrderedAccess& access : accesses) begins[access.load] = access.begin;
    for (Instruction* instruction : order_) {
      if (auto begin = begins.find(instruction); begin != begins.end()) {
        fence_loads(builder);
        Value* address = builder.CreatePtrAdd(&base, builder.getInt64(static_cast<uint64_t>(begin->second)));
        instruction->setOperand(0, address);
        instruction->setMetadata(kAddressOrdered, empty_node);
      }
      if (instruction == &*builder.GetInsertPoint())
        builder.SetInsertPoint(instruction->getNextNode());
      else
        instruction->moveBefore(&*builder.GetInsertPoint());
    }
  }

  BasicBlock& block_;
  unsigned most_registers_, register_bytes_;
  SmallVector<Instruction*> order_;
  DenseSet<const Instruction*> ordered_;
};

}  // namespace

PreservedAnalyses AddressOrderPass::run(Function& function, FunctionAnalysisManager&) {
  bool has_changed = false;
  for (BasicBlock& block : function) has_changed |= AddressOrder(block, isa_).run();
  if (!has_changed) return PreservedAnalyses::all();
  PreservedAnalyses preserved;
  preserved.preserveSet<CFGAnalyses>();
  return preserved;
}

}  // namespace kiln
