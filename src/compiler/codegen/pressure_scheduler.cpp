#include "compiler/codegen/pressure_scheduler.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/DenseSet.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>

#include <algorithm>
#include <limits>

#include "compiler/codegen/split_vectors.h"
#include "compiler/ir/cache_lines.h"

namespace kiln {
namespace {

using namespace llvm;

// Instructions of a block that is scheduled. Fewer are not worth it, more take long.
constexpr size_t kFewestInstructions = 64, kMostInstructions = 1500;

// The fewest reloads of a block that are worth it, and the most operations for each reload.
constexpr size_t kFewestReloads = 32, kMostOperationsPerReload = 8;

// The candidates for the next result, of which the one with the fewest missing instructions is taken.
constexpr size_t kMostCandidates = 24;

// Results whose computations are interleaved.
constexpr size_t kMostInterleaved = 4;

// The fewest registers that a stream loads, and stores.
constexpr size_t kFewestStreamRegisters = 12;

// Vectors of a loop that are loaded before one of them is stored.
constexpr size_t kMostVectorsTogether = 8;

// From the first instruction of a result to that of the next.
constexpr unsigned kStepsBetweenResults = 2;

// At most so many registers are few: in registers of eight numbers they hold four values of 32 lanes.
constexpr unsigned kFewRegisters = 16;

class PressureScheduler {
 public:
  PressureScheduler(BasicBlock& block, const VectorIsa& vector_isa, bool is_split)
      : block_(block), registers_(vector_isa.num_registers), lanes_(vector_isa.num_words()), is_split_(is_split) {}

  size_t count_operations() const {
    size_t count = 0;
    for (const Instruction& instruction : block_) count += registers_of(instruction);
    return count;
  }

  size_t count_reloads() const {
    SmallVector<Instruction*> order;
    for (Instruction& instruction : block_) order.push_back(&instruction);
    return count_reloads(order);
  }

  // Whether the block loads vectors, transforms and stores them, and reads nothing that is stored.
  bool is_stream() const {
    size_t loaded = 0, stored = 0;
    for (const Instruction& instruction : block_) {
      if (isa<PHINode>(instruction)) {
        if (registers_of(instruction) > 0) return false;
        continue;
      }
      if (auto* call = dyn_cast<IntrinsicInst>(&instruction); call && call->getIntrinsicID() == Intrinsic::prefetch)
        continue;
      if (is_line_load(instruction)) continue;
      if (auto* load = dyn_cast<LoadInst>(&instruction); load && load->hasMetadata(LLVMContext::MD_invariant_load)) {
        loaded += registers_of(*load);
      } else if (auto* store = dyn_cast<StoreInst>(&instruction); store && store->isSimple()) {
        stored += registers_of(*store->getValueOperand());
      } else if (is_ordered(instruction)) {
        return false;
      }
    }
    return std::min(loaded, stored) >= kFewestStreamRegisters;
  }

  // Whether the block is a loop of sums that leave most registers to the computation of what they add.
  bool is_loop_of_sums() const {
    if (!is_loop()) return false;
    unsigned sums = 0, registers = 0;
    for (const PHINode& phi : block_.phis()) {
      sums += registers_of(phi) > 0;
      registers += registers_of(phi);
    }
    return sums >= kMostInterleaved && 4 * registers <= registers_;
  }

  // Applies the new order if it needs no more reloads or, with `must_halve`, at most half as many.
  void run(bool must_halve) {
    size_t reloads = count_reloads();
    find_order();
    if (count_reloads(order_) <= (must_halve ? reloads / 2 : reloads)) apply();
  }

  void run_as_stream() {
    find_order();
    if (!(is_loop() && group())) stagger();
    apply();
  }

 private:
  bool is_loop() const { return is_contained(successors(&block_), &block_); }

  void apply() {
    for (Instruction* instruction : order_)
      if (!isa<PHINode>(instruction) && !instruction->isTerminator()) instruction->moveBefore(block_.getTerminator());
  }

  // Reloads of registers in this order, if the value with the furthest next use is always the one spilled.
  size_t count_reloads(ArrayRef<Instruction*> order) const {
    DenseMap<Value*, SmallVector<unsigned, 4>> uses;  // later ones first
    for (size_t position = order.size(); position-- > 0;) {
      if (isa<PHINode>(order[position]) || is_concatenation(*order[position])) continue;
      for (Value* operand : order[position]->operands())
        if (registers_of(*operand) > 0) uses[operand].push_back(static_cast<unsigned>(position));
    }
    SmallVector<Value*, 32> kept;
    unsigned used = 0;
    size_t reloads = 0;
    auto next_use = [&](Value* value) {
      auto found = uses.find(value);
      if (found != uses.end() && !found->second.empty()) return found->second.back();
      return is_live_after(*value) ? static_cast<unsigned>(order.size()) : 0u;
    };
    auto drop = [&](Value* value) {
      auto position = find(kept, value);
      if (position == kept.end()) return;
      kept.erase(position);
      used -= registers_of(*value);
    };
    auto take = [&](Value* value) {
      if (!is_contained(kept, value)) {
        kept.push_back(value);
        used += registers_of(*value);
      }
      while (used > registers_)
        drop(*std::max_element(kept.begin(), kept.end(), [&](Value* a, Value* b) {
          return std::pair(next_use(a), a == value) < std::pair(next_use(b), b == value);
        }));
    };
    for (size_t position = 0; position < order.size(); ++position) {
      Instruction& instruction = *order[position];
      if (!isa<PHINode>(instruction) && !is_concatenation(instruction))
        for (Value* operand : instruction.operands()) {
          auto found = uses.find(operand);
          if (found == uses.end() || found->second.empty()) continue;
          // A loaded value is a memory operand of its user.
          if (!is_contained(kept, operand) && !isa<LoadInst>(operand)) reloads += registers_of(*operand);
          while (!found->second.empty() && found->second.back() == position) found->second.pop_back();
          if (next_use(operand) != 0)
            take(operand);
          else
            drop(operand);
        }
      if (registers_of(instruction) > 0 && next_use(&instruction) != 0) take(&instruction);
    }
    return reloads;
  }

  void find_order() {
    for (PHINode& phi : block_.phis()) order_.push_back(&phi);
    find_dependences();
    SmallVector<Instruction*> roots;
    for (Instruction& instruction : block_) {
      if (isa<PHINode>(instruction) || instruction.isTerminator() || is_concatenation(instruction)) continue;
      if (is_ordered(instruction) || is_live_after(instruction)) roots.push_back(&instruction);
    }
    while (!roots.empty()) {
      size_t best = 0, fewest = std::numeric_limits<size_t>::max();
      bool has_ordered = false;
      for (size_t i = 0; i < std::min(roots.size(), kMostCandidates); ++i) {
        // Ordered accesses keep their order.
        if (is_ordered(*roots[i])) {
          if (has_ordered) continue;
          has_ordered = true;
        }
        size_t count = missing(*roots[i], fewest).size();
        if (count < fewest) {
          fewest = count;
          best = i;
        }
      }
      SmallVector<Instruction*> batch = batch_of(*roots[best], roots);
      emit_interleaved(batch);
      ends_.push_back(order_.size());
      llvm::erase_if(roots, [&](Instruction* root) { return is_contained(batch, root); });
    }
    for (Instruction& instruction : block_)
      if (!isa<PHINode>(instruction) && !instruction.isTerminator()) emit(instruction);
    order_.push_back(block_.getTerminator());
  }

  // Registers that a vector takes; 0 for other values.
  unsigned registers_of(const Value& value) const {
    auto* type = dyn_cast<FixedVectorType>(value.getType());
    if (!type || isa<Constant>(value) || is_concatenation(value) || type->getElementType()->isPointerTy()) return 0;
    uint64_t bits = type->getElementType()->isIntegerTy(1) ? uint64_t{32} * type->getNumElements()
                                                           : type->getPrimitiveSizeInBits().getFixedValue();
    return static_cast<unsigned>(divideCeil(bits, uint64_t{32} * lanes_));
  }

  // A concatenation of registers for users of the whole vector, which costs no instruction.
  bool is_concatenation(const Value& value) const {
    return is_split_ && isa<ShuffleVectorInst>(value) &&
           cast<FixedVectorType>(value.getType())->getNumElements() > lanes_;
  }

  bool is_live_after(const Value& value) const {
    return any_of(value.users(), [&](const User* user) {
      auto* instruction = cast<Instruction>(user);
      return instruction->getParent() != &block_ || isa<PHINode>(instruction) || instruction->isTerminator() ||
             (is_concatenation(*instruction) && is_live_after(*instruction));
    });
  }

  static bool is_ordered(const Instruction& instruction) {
    if (instruction.mayHaveSideEffects() || isa<AllocaInst>(instruction)) return true;
    return instruction.mayReadFromMemory() && !instruction.hasMetadata(LLVMContext::MD_invariant_load);
  }

  // Mutable memory is read and written in the original order.
  void find_dependences() {
    Instruction* written = nullptr;
    SmallVector<Instruction*> read;
    for (Instruction& instruction : block_) {
      if (isa<PHINode>(instruction) || instruction.isTerminator() || !is_ordered(instruction)) continue;
      auto& before = dependences_[&instruction];
      if (written) before.push_back(written);
      if (!instruction.mayHaveSideEffects()) {
        read.push_back(&instruction);
        continue;
      }
      append_range(before, read);
      read.clear();
      written = &instruction;
    }
  }

  template <typename Visit>
  void for_each_needed(Instruction& instruction, Visit visit) {
    for (Value* operand : instruction.operands()) {
      auto* needed = dyn_cast<Instruction>(operand);
      if (needed && needed->getParent() == &block_ && !isa<PHINode>(needed) && !emitted_.contains(needed))
        visit(*needed);
    }
    if (auto before = dependences_.find(&instruction); before != dependences_.end())
      for (Instruction* needed : before->second)
        if (!emitted_.contains(needed)) visit(*needed);
  }

  // The root and its operands that are not emitted yet; only some of them if they exceed the limit.
  DenseSet<Instruction*> missing(Instruction& root, size_t limit = std::numeric_limits<size_t>::max()) {
    SmallVector<Instruction*> worklist{&root};
    DenseSet<Instruction*> seen{&root};
    while (!worklist.empty() && seen.size() < limit) {
      Instruction* instruction = worklist.pop_back_val();
      for_each_needed(*instruction, [&](Instruction& needed) {
        if (seen.insert(&needed).second) worklist.push_back(&needed);
      });
    }
    return seen;
  }

  // The root, and other roots that share many operands with it.
  SmallVector<Instruction*> batch_of(Instruction& root, ArrayRef<Instruction*> roots) {
    SmallVector<Instruction*> batch{&root};
    if (is_ordered(root)) return batch;
    DenseSet<Instruction*> own = missing(root, kMostInstructions);
    for (Instruction* other : roots.take_front(kMostCandidates)) {
      if (batch.size() == kMostInterleaved) break;
      if (other == &root || is_ordered(*other)) continue;
      DenseSet<Instruction*> its = missing(*other, kMostInstructions);
      size_t shared = static_cast<size_t>(count_if(its, [&](Instruction* one) { return own.contains(one); }));
      if (3 * shared >= own.size() && 3 * shared >= its.size()) batch.push_back(other);
    }
    return batch;
  }

  // Emits all operands that several roots share, then the operands of each root, interleaved: one chain waits while the
  // others go on.
  void emit_interleaved(ArrayRef<Instruction*> roots) {
    if (roots.size() > 1) {
      DenseMap<Instruction*, unsigned> use_counts;
      for (Instruction* root : roots)
        for (Instruction* one : missing(*root)) ++use_counts[one];
      for (Instruction& instruction : block_)
        if (use_counts.lookup(&instruction) > 1) emit(instruction);
    }
    size_t begin = order_.size();
    SmallVector<std::pair<double, Instruction*>> merged;
    for (Instruction* root : roots) {
      size_t first = order_.size();
      emit(*root);
      for (size_t i = first; i < order_.size(); ++i)
        merged.push_back({static_cast<double>(i - first + 1) / static_cast<double>(order_.size() - first), order_[i]});
    }
    llvm::stable_sort(merged, [](const auto& a, const auto& b) { return a.first < b.first; });
    for (auto [i, one] : enumerate(merged)) order_[begin + i] = one.second;
  }

  // Each result begins a little after the previous one. Instructions are ordered by the step at which they could begin,
  // if each took one step, so several chains are in flight at a time.
  void stagger() {
    order_by_steps([](size_t chain, unsigned) { return static_cast<unsigned>(chain) * kStepsBetweenResults; });
  }

  // Computes some results at a time, step by step, and then the next ones, if registers suffice: a load after a store
  // to an address with the same low 12 bits waits for that store.
  bool group() {
    const SmallVector<Instruction*> before = order_;
    SmallVector<size_t> stored;  // before each result
    size_t count = 0, position = 0;
    for (size_t end : ends_) {
      stored.push_back(count);
      for (; position < end; ++position) count += isa<StoreInst>(order_[position]);
    }
    stored.push_back(count);
    for (size_t batch : {kMostVectorsTogether, kMostVectorsTogether / 2}) {
      size_t group = 0;
      unsigned begin = 0;
      order_by_steps([&](size_t chain, unsigned last) {
        if (stored[chain] / batch != group) group = stored[chain] / batch, begin = last + 1;
        return begin;
      });
      if (count_reloads(order_) == 0) return true;
      order_ = before;
    }
    return false;
  }

  // `first_of(chain, last)` is the step at which a result may begin: `chain` is its index, `last` the last step of all
  // before it.
  template <typename FirstOf>
  void order_by_steps(FirstOf first_of) {
    DenseMap<Instruction*, unsigned> begins;
    auto is_input = [&](const Instruction& one) { return isa<LoadInst>(one) && !is_ordered(one); };
    size_t chain = 0;
    unsigned last = 0;
    for (auto [position, instruction] : enumerate(order_)) {
      while (chain < ends_.size() && position >= ends_[chain]) ++chain;
      unsigned step = first_of(chain, last);
      auto depend_on = [&](Value* needed) {
        auto* one = dyn_cast<Instruction>(needed);
        auto found = begins.find(one);
        if (!one || found == begins.end()) return;
        // Inputs have been prefetched long before.
        bool takes_step = registers_of(*one) > 0 && !is_input(*one);
        step = std::max(step, found->second + (takes_step ? 1 : 0));
      };
      if (!isa<PHINode>(instruction))
        for (Value* operand : instruction->operands()) depend_on(operand);
      if (auto before = dependences_.find(instruction); before != dependences_.end())
        for (Instruction* other : before->second) depend_on(other);
      begins[instruction] = step;
      last = std::max(last, step);
    }
    // Inputs are loaded just before their first use.
    for (Instruction* instruction : reverse(order_)) {
      if (!is_input(*instruction)) continue;
      unsigned first = std::numeric_limits<unsigned>::max();
      for (User* user : instruction->users())
        if (auto found = begins.find(cast<Instruction>(user)); found != begins.end())
          first = std::min(first, found->second);
      if (first != std::numeric_limits<unsigned>::max()) begins[instruction] = std::max(first, begins[instruction]);
    }
    llvm::stable_sort(order_, [&](Instruction* a, Instruction* b) { return begins[a] < begins[b]; });
  }

  // Finishes the root and its operands that are not done yet, each after its own operands.
  template <typename IsDone, typename NeededOf, typename Finish>
  static void finish_in_order(Instruction& root, IsDone is_done, NeededOf needed_of, Finish finish) {
    SmallVector<Instruction*> worklist{&root};
    while (!worklist.empty()) {
      Instruction& instruction = *worklist.back();
      size_t count = worklist.size();
      if (!is_done(instruction)) {
        for (Instruction* needed : needed_of(instruction))
          if (!is_done(*needed)) worklist.push_back(needed);
        if (worklist.size() > count) continue;
        finish(instruction);
      }
      worklist.pop_back();
    }
  }

  SmallVector<Instruction*> needed_by(Instruction& instruction) {
    SmallVector<Instruction*> result;
    for_each_needed(instruction, [&](Instruction& needed) { result.push_back(&needed); });
    return result;
  }

  // The registers that the computation of the root needs at a time, as if it were a tree.
  unsigned need_of(Instruction& root) {
    auto is_known = [&](Instruction& instruction) { return needs_.contains(&instruction); };
    auto finish = [&](Instruction& instruction) {
      SmallVector<unsigned> needs;
      for (Instruction* needed : needed_by(instruction)) needs.push_back(needs_[needed]);
      llvm::sort(needs, std::greater<>());
      unsigned need = registers_of(instruction);
      for (auto [held, one] : enumerate(needs)) need = std::max(need, one + static_cast<unsigned>(held));
      needs_[&instruction] = need;
    };
    finish_in_order(root, is_known, [&](Instruction& one) { return needed_by(one); }, finish);
    return needs_[&root];
  }

  // Emits the root after its operands, of which those with the greatest need of registers come first.
  void emit(Instruction& root) {
    auto is_emitted = [&](Instruction& instruction) { return emitted_.contains(&instruction); };
    auto needed_of = [&](Instruction& instruction) {
      SmallVector<Instruction*> needed = needed_by(instruction);
      llvm::stable_sort(needed, [&](Instruction* a, Instruction* b) { return need_of(*a) < need_of(*b); });
      return needed;
    };
    auto finish = [&](Instruction& instruction) {
      emitted_.insert(&instruction);
      order_.push_back(&instruction);
    };
    finish_in_order(root, is_emitted, needed_of, finish);
  }

  BasicBlock& block_;
  unsigned registers_, lanes_;
  bool is_split_;
  DenseMap<Instruction*, SmallVector<Instruction*, 2>> dependences_;
  DenseMap<Instruction*, unsigned> needs_;
  DenseSet<Instruction*> emitted_;
  SmallVector<Instruction*> order_;
  SmallVector<size_t> ends_;  // in order_, of each batch
};

}  // namespace

void schedule_for_pressure(Function& function, const VectorIsa& vector_isa) {
  for (BasicBlock& block : function) {
    if (block.size() < kFewestInstructions || block.size() > kMostInstructions) continue;
    PressureScheduler whole(block, vector_isa, false);
    auto split = [&] {
      split_wide_vectors(block, vector_isa);
      return PressureScheduler(block, vector_isa, true);
    };
    if (whole.is_stream()) {
      split().run_as_stream();
    } else if (vector_isa.num_registers <= kFewRegisters) {
      size_t reloads = whole.count_reloads();
      if (reloads >= kFewestReloads && kMostOperationsPerReload * reloads >= whole.count_operations())
        split().run(/*must_halve=*/true);
    } else if (whole.is_loop_of_sums()) {
      split().run(/*must_halve=*/false);
    }
  }
}

}  // namespace kiln
