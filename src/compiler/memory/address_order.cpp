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

// A processor sees for itself what few rows are.
constexpr size_t kFewestRows = 16;

// Registers wanted at a time, for each that there is.
constexpr unsigned kMostLive = 3;

struct Row {
  LoadInst* load;
  int64_t begin, end;  // behind the base, in bytes
};
using Rows = SmallVector<Row, 0>;

size_t count_jumps(const Rows& rows) {
  size_t jumps = 0;
  for (size_t i = 1; i < rows.size(); ++i)
    jumps += rows[i].begin < rows[i - 1].begin || rows[i].begin > rows[i - 1].end + kCacheLine;
  return jumps;
}

class AddressOrder {
 public:
  AddressOrder(BasicBlock& block, unsigned most_registers, unsigned register_bytes)
      : block_(block), most_registers_(most_registers), register_bytes_(register_bytes) {}

  bool run() {
    bool has_changed = false;
    for (auto& [base, rows] : find_rows()) {
      if (rows.size() < kFewestRows || 2 * count_jumps(rows) <= rows.size()) continue;
      Instruction *first = rows.front().load, *last = rows.back().load;
      if (any_of(make_range(first->getIterator(), last->getIterator()),
                 [](const Instruction& one) { return one.mayWriteToMemory(); }))
        continue;
      llvm::stable_sort(rows, [](const Row& a, const Row& b) { return a.begin < b.begin; });
      if (count_jumps(rows) > 0) continue;
      find_order(rows, *first);
      if (count_registers() > most_registers_) continue;
      apply(*base, rows, *first);
      has_changed = true;
    }
    return has_changed;
  }

 private:
  // By what their addresses have in common, as they are read now.
  MapVector<Value*, Rows> find_rows() const {
    const DataLayout& layout = block_.getDataLayout();
    MapVector<Value*, Rows> arrays;
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

  // Each row, and what it lets be computed.
  void find_order(const Rows& rows, Instruction& first) {
    order_.clear();
    placed_.clear();
    for (Instruction& instruction : make_range(block_.begin(), first.getIterator())) placed_.insert(&instruction);
    for (const Row& row : rows) place(*row.load);
  }

  void place(LoadInst& load) {
    SmallVector<Instruction*> made{&load};
    while (!made.empty()) {
      Instruction* instruction = made.pop_back_val();
      if (!placed_.insert(instruction).second) continue;
      order_.push_back(instruction);
      for (User* user : instruction->users())
        if (can_follow(*cast<Instruction>(user))) made.push_back(cast<Instruction>(user));
    }
  }

  bool can_follow(const Instruction& instruction) const {
    return instruction.getParent() == &block_ && !isa<PHINode, AllocaInst>(instruction) &&
           !instruction.isTerminator() && !instruction.mayHaveSideEffects() && !instruction.mayReadFromMemory() &&
           all_of(instruction.operands(), [&](const Use& use) {
             auto* operand = dyn_cast<Instruction>(use.get());
             return !operand || operand->getParent() != &block_ || placed_.contains(operand);
           });
  }

  uint64_t registers_of(const Value& value) const {
    if (!value.getType()->isVectorTy()) return 0;
    return divideCeil(block_.getDataLayout().getTypeStoreSize(value.getType()).getFixedValue(), register_bytes_);
  }

  // Wanted at a time.
  uint64_t count_registers() const {
    uint64_t used = 0, most = 0;
    DenseMap<const Value*, unsigned> wanted;
    for (const Instruction* instruction : order_) {
      wanted[instruction] = instruction->getNumUses();
      used += registers_of(*instruction);
      most = std::max(most, used);
      for (const Value* operand : instruction->operands())
        if (auto found = wanted.find(operand); found != wanted.end() && --found->second == 0)
          used -= registers_of(*operand);
    }
    return most;
  }

  void apply(Value& base, const Rows& rows, Instruction& first) {
    IRBuilder<> builder(&first);
    MDNode* nothing = MDNode::get(block_.getContext(), {});
    DenseMap<const Instruction*, int64_t> begins;
    for (const Row& row : rows) begins[row.load] = row.begin;
    for (Instruction* instruction : order_) {
      if (auto begin = begins.find(instruction); begin != begins.end()) {
        fence_loads(builder);
        Value* place = builder.CreatePtrAdd(&base, builder.getInt64(static_cast<uint64_t>(begin->second)));
        instruction->setOperand(0, place);
        instruction->setMetadata(kAddressOrdered, nothing);
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
  DenseSet<const Instruction*> placed_;
};

}  // namespace

PreservedAnalyses AddressOrderPass::run(Function& function, FunctionAnalysisManager&) {
  bool has_changed = false;
  for (BasicBlock& block : function) has_changed |= AddressOrder(block, kMostLive * registers_, register_bytes_).run();
  if (!has_changed) return PreservedAnalyses::all();
  PreservedAnalyses preserved;
  preserved.preserveSet<CFGAnalyses>();
  return preserved;
}

}  // namespace kiln
