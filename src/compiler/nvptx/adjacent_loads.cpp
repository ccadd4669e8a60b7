#include "compiler/nvptx/adjacent_loads.h"

#include <llvm/ADT/MapVector.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>

#include <cstdint>
#include <map>
#include <tuple>

#include "compiler/ir/guard_zeros.h"
#include "compiler/nvptx/alignments.h"

namespace kiln {
namespace {

using namespace llvm;

constexpr uint64_t kVectorBytes = 16;  // of the widest access

struct GuardedLoad {
  LoadInst* load;
  SelectInst* guard;
  int64_t offset;   // in bytes, from the group's base
  unsigned number;  // in the block's order
};

// What the loads of a vector have in common.
struct Group {
  Value *base, *condition;
  Type* type;
  bool is_constant;  // the memory does not change while the launch runs

  bool operator<(const Group& other) const {
    return std::tie(base, condition, type, is_constant) <
           std::tie(other.base, other.condition, other.type, other.is_constant);
  }
};

class AdjacentLoads {
 public:
  explicit AdjacentLoads(const DataLayout& layout) : layout_(layout) {}

  bool run(BasicBlock& block) {
    unsigned number = 0;
    for (Instruction& instruction : block) {
      if (auto* load = dyn_cast<LoadInst>(&instruction)) add(*load, ++number);
      if (instruction.mayWriteToMemory()) flush(/*with_constant=*/false);
    }
    flush(/*with_constant=*/true);
    for (Instruction* load : dead_) load->eraseFromParent();
    const bool has_changed = !dead_.empty();
    dead_.clear();
    groups_.clear();
    return has_changed;
  }

 private:
  void add(LoadInst& load, unsigned number) {
    auto* guard = dyn_cast<SelectInst>(load.getPointerOperand());
    Type* type = load.getType();
    if (!guard || !load.isSimple() || !is_zeros(guard->getFalseValue())) return;
    if (!type->isFloatTy() && !type->isIntegerTy(32) && !type->isIntegerTy(16) && !type->isHalfTy()) return;
    APInt offset(64, 0);
    Value* base = guard->getTrueValue()->stripAndAccumulateConstantOffsets(layout_, offset, /*AllowNonInbounds=*/true);
    Group group{base, guard->getCondition(), type, load.hasMetadata(LLVMContext::MD_invariant_load)};
    groups_[group].push_back({&load, guard, offset.getSExtValue(), number});
  }

  void flush(bool with_constant) {
    for (auto& [group, loads] : groups_) {
      if (group.is_constant && !with_constant) continue;
      merge(group, loads);
      loads.clear();
    }
  }

  void merge(const Group& group, SmallVectorImpl<GuardedLoad>& loads) {
    if (loads.size() < 2) return;
    const uint64_t bytes = layout_.getTypeStoreSize(group.type);
    stable_sort(loads, [](const GuardedLoad& a, const GuardedLoad& b) { return a.offset < b.offset; });
    const Align base_alignment = known_alignment(*group.base, layout_);
    for (size_t first = 0; first < loads.size();) {
      size_t count = 1;
      for (uint64_t length = kVectorBytes / bytes; length > 1 && count == 1; length /= 2)
        if (are_adjacent(ArrayRef(loads).drop_front(first), length, bytes, base_alignment)) count = length;
      if (count > 1) load_together(group, ArrayRef(loads).slice(first, count), bytes);
      first += count;
    }
  }

  static bool are_adjacent(ArrayRef<GuardedLoad> loads, uint64_t count, uint64_t bytes, Align base_alignment) {
    if (loads.size() < count) return false;
    const int64_t lowest = loads[0].offset;
    for (uint64_t i = 0; i < count; ++i)
      if (loads[i].offset != lowest + static_cast<int64_t>(i * bytes)) return false;
    return commonAlignment(base_alignment, static_cast<uint64_t>(lowest)).value() >= count * bytes;
  }

  void load_together(const Group& group, ArrayRef<GuardedLoad> loads, uint64_t bytes) {
    const GuardedLoad& first = *min_element(loads, [](const auto& a, const auto& b) { return a.number < b.number; });
    auto* type = FixedVectorType::get(group.type, static_cast<unsigned>(loads.size()));
    IRBuilder<> builder(first.load);
    Value* address = builder.CreatePtrAdd(group.base, builder.getInt64(static_cast<uint64_t>(loads[0].offset)));
    address = builder.CreateAddrSpaceCast(address, first.guard->getType());
    Value* guarded = builder.CreateSelect(group.condition, address, first.guard->getFalseValue());
    LoadInst* whole = builder.CreateAlignedLoad(type, guarded, Align(bytes * loads.size()));
    if (group.is_constant) whole->setMetadata(LLVMContext::MD_invariant_load, MDNode::get(type->getContext(), {}));
    for (auto [i, single] : enumerate(loads)) {
      single.load->replaceAllUsesWith(builder.CreateExtractElement(whole, i));
      dead_.push_back(single.load);
    }
  }

  const DataLayout& layout_;
  MapVector<Group, SmallVector<GuardedLoad, 4>, std::map<Group, unsigned>> groups_;
  SmallVector<Instruction*> dead_;
};

}  // namespace

bool merge_adjacent_loads(Function& function) {
  bool has_changed = false;
  AdjacentLoads loads(function.getDataLayout());
  for (BasicBlock& block : function) has_changed |= loads.run(block);
  return has_changed;
}

}  // namespace kiln
