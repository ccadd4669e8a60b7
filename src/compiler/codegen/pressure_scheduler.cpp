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
#include "compiler/ir/metadata.h"

namespace kiln {
namespace {

using namespace llvm;

// Instructions of a block that is looked at. Fewer are not worth it, more take long.
constexpr size_t kFewest = 64, kMost = 1500;

// Registers that are loaded again, in all and for so many operations.
constexpr size_t kFewestReloads = 32, kOperations = 8;

// Results of which the nearest is the next one.
constexpr size_t kMostWaiting = 24;

// That are computed in turns.
constexpr size_t kMostTogether = 4;

// Registers that are loaded, and stored, at least.
constexpr size_t kFewestOfStream = 12;

// Of a loop's rows, those that are loaded before one of them is stored.
constexpr size_t kMostRowsTogether = 8;

// From the first instruction for a result to that for the next.
constexpr unsigned kStepsBetween = 2;

class ChainFinisher {
 public:
  ChainFinisher(BasicBlock& block, unsigned registers, unsigned lanes, bool is_cut)
      : block_(block), registers_(registers), lanes_(lanes), is_cut_(is_cut) {}

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

  // Whether rows are loaded, become others, and these are stored; nothing that is stored is read.
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
    return std::min(loaded, stored) >= kFewestOfStream;
  }

  // Whether it is a loop of sums that leave most registers to what makes them.
  bool is_loop_of_sums() const {
    if (!is_loop()) return false;
    unsigned sums = 0, registers = 0;
    for (const PHINode& phi : block_.phis()) {
      sums += registers_of(phi) > 0;
      registers += registers_of(phi);
    }
    return sums >= kMostTogether && 4 * registers <= registers_;
  }

  // Where the new order is better: much, or as good.
  void run(bool much) {
    size_t reloads = count_reloads();
    find_order();
    if (count_reloads(order_) <= (much ? reloads / 2 : reloads)) apply();
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

  // How many registers' loads the order costs, if always the one is stored that is wanted last.
  size_t count_reloads(ArrayRef<Instruction*> order) const {
    DenseMap<Value*, SmallVector<unsigned, 4>> uses;  // later ones first
    for (size_t place = order.size(); place-- > 0;) {
      if (isa<PHINode>(order[place]) || is_join(*order[place])) continue;
      for (Value* operand : order[place]->operands())
        if (registers_of(*operand) > 0) uses[operand].push_back(static_cast<unsigned>(place));
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
      auto place = find(kept, value);
      if (place == kept.end()) return;
      kept.erase(place);
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
    for (size_t place = 0; place < order.size(); ++place) {
      Instruction& instruction = *order[place];
      if (!isa<PHINode>(instruction) && !is_join(instruction))
        for (Value* operand : instruction.operands()) {
          auto found = uses.find(operand);
          if (found == uses.end() || found->second.empty()) continue;
          // What is in memory anyway is an operand of what uses it.
          if (!is_contained(kept, operand) && !isa<LoadInst>(operand)) reloads += registers_of(*operand);
          while (!found->second.empty() && found->second.back() == place) found->second.pop_back();
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
      if (isa<PHINode>(instruction) || instruction.isTerminator() || is_join(instruction)) continue;
      if (is_ordered(instruction) || is_live_after(instruction)) roots.push_back(&instruction);
    }
    while (!roots.empty()) {
      size_t best = 0, fewest = std::numeric_limits<size_t>::max();
      bool has_ordered = false;
      for (size_t i = 0; i < std::min(roots.size(), kMostWaiting); ++i) {
        // Those that follow one another in memory's order keep it.
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
      SmallVector<Instruction*> together = neighbours_of(*roots[best], roots);
      emit_together(together);
      ends_.push_back(order_.size());
      llvm::erase_if(roots, [&](Instruction* root) { return is_contained(together, root); });
    }
    for (Instruction& instruction : block_)
      if (!isa<PHINode>(instruction) && !instruction.isTerminator()) emit(instruction);
    order_.push_back(block_.getTerminator());
  }

  // Those that a value takes, where it is a vector's.
  unsigned registers_of(const Value& value) const {
    auto* type = dyn_cast<FixedVectorType>(value.getType());
    if (!type || isa<Constant>(value) || is_join(value) || type->getElementType()->isPointerTy()) return 0;
    uint64_t bits = type->getElementType()->isIntegerTy(1) ? uint64_t{32} * type->getNumElements()
                                                           : type->getPrimitiveSizeInBits().getFixedValue();
    return static_cast<unsigned>(divideCeil(bits, uint64_t{32} * lanes_));
  }

  // Registers that are put together for those who want the whole: nothing happens.
  bool is_join(const Value& value) const {
    return is_cut_ && isa<ShuffleVectorInst>(value) &&
           cast<FixedVectorType>(value.getType())->getNumElements() > lanes_;
  }

  bool is_live_after(const Value& value) const {
    return any_of(value.users(), [&](const User* user) {
      auto* instruction = cast<Instruction>(user);
      return instruction->getParent() != &block_ || isa<PHINode>(instruction) || instruction->isTerminator() ||
             (is_join(*instruction) && is_live_after(*instruction));
    });
  }

  static bool is_ordered(const Instruction& instruction) {
    if (instruction.mayHaveSideEffects() || isa<AllocaInst>(instruction)) return true;
    return instruction.mayReadFromMemory() && !instruction.hasMetadata(LLVMContext::MD_invariant_load);
  }

  // Memory that changes is read and written in the order that it was.
  void find_dependences() {
    Instruction* written = nullptr;
    SmallVector<Instruction*> read;
    for (Instruction& instruction : block_) {
      if (isa<PHINode>(instruction) || instruction.isTerminator() || !is_ordered(instruction)) continue;
      auto& before = before_[&instruction];
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
    if (auto before = before_.find(&instruction); before != before_.end())
      for (Instruction* needed : before->second)
        if (!emitted_.contains(needed)) visit(*needed);
  }

  // What the root wants that is not there yet, and itself; some of it where that is more than the limit.
  DenseSet<Instruction*> missing(Instruction& root, size_t limit = std::numeric_limits<size_t>::max()) {
    SmallVector<Instruction*> waiting{&root};
    DenseSet<Instruction*> seen{&root};
    while (!waiting.empty() && seen.size() < limit) {
      Instruction* instruction = waiting.pop_back_val();
      for_each_needed(*instruction, [&](Instruction& needed) {
        if (seen.insert(&needed).second) waiting.push_back(&needed);
      });
    }
    return seen;
  }

  // The root, and others that want much of what it does.
  SmallVector<Instruction*> neighbours_of(Instruction& root, ArrayRef<Instruction*> roots) {
    SmallVector<Instruction*> together{&root};
    if (is_ordered(root)) return together;
    DenseSet<Instruction*> own = missing(root, kMost);
    for (Instruction* other : roots.take_front(kMostWaiting)) {
      if (together.size() == kMostTogether) break;
      if (other == &root || is_ordered(*other)) continue;
      DenseSet<Instruction*> its = missing(*other, kMost);
      size_t shared = static_cast<size_t>(count_if(its, [&](Instruction* one) { return own.contains(one); }));
      if (3 * shared >= own.size() && 3 * shared >= its.size()) together.push_back(other);
    }
    return together;
  }

  // What several of them want first, all of it, then what each wants, in turns: one waits while the others go on.
  void emit_together(ArrayRef<Instruction*> roots) {
    if (roots.size() > 1) {
      DenseMap<Instruction*, unsigned> wanted;
      for (Instruction* root : roots)
        for (Instruction* one : missing(*root)) ++wanted[one];
      for (Instruction& instruction : block_)
        if (wanted.lookup(&instruction) > 1) emit(instruction);
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

  // Each result begins a little after the one before: in an order by when an instruction could begin, if each took one
  // step, some chains are under way at a time.
  void stagger() {
    order_by_steps([](size_t chain, unsigned) { return static_cast<unsigned>(chain) * kStepsBetween; });
  }

  // Some results at a time, step by step, and then the next ones, if registers suffice: what is loaded behind a store
  // to an address that ends with the same 12 bits waits for it.
  bool group() {
    const SmallVector<Instruction*> before = order_;
    SmallVector<size_t> stored;  // before each result
    size_t count = 0, place = 0;
    for (size_t end : ends_) {
      stored.push_back(count);
      for (; place < end; ++place) count += isa<StoreInst>(order_[place]);
    }
    stored.push_back(count);
    for (size_t together : {kMostRowsTogether, kMostRowsTogether / 2}) {
      size_t group = 0;
      unsigned begin = 0;
      order_by_steps([&](size_t chain, unsigned last) {
        if (stored[chain] / together != group) group = stored[chain] / together, begin = last + 1;
        return begin;
      });
      if (count_reloads(order_) == 0) return true;
      order_ = before;
    }
    return false;
  }

  // `first_of`: of a result's number and of the last step of those before, when it may begin.
  template <typename FirstOf>
  void order_by_steps(FirstOf first_of) {
    DenseMap<Instruction*, unsigned> begins;
    auto is_input = [&](const Instruction& one) { return isa<LoadInst>(one) && !is_ordered(one); };
    size_t chain = 0;
    unsigned last = 0;
    for (auto [place, instruction] : enumerate(order_)) {
      while (chain < ends_.size() && place >= ends_[chain]) ++chain;
      unsigned step = first_of(chain, last);
      auto wait_for = [&](Value* needed) {
        auto* one = dyn_cast<Instruction>(needed);
        auto found = begins.find(one);
        if (!one || found == begins.end()) return;
        // Inputs have been asked for long before.
        bool takes_step = registers_of(*one) > 0 && !is_input(*one);
        step = std::max(step, found->second + (takes_step ? 1 : 0));
      };
      if (!isa<PHINode>(instruction))
        for (Value* operand : instruction->operands()) wait_for(operand);
      if (auto before = before_.find(instruction); before != before_.end())
        for (Instruction* other : before->second) wait_for(other);
      begins[instruction] = step;
      last = std::max(last, step);
    }
    // They are loaded where they are wanted.
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

  // Finishes what is not done yet and is needed for the root, each behind what it needs itself.
  template <typename IsDone, typename NeededOf, typename Finish>
  static void finish_in_order(Instruction& root, IsDone is_done, NeededOf needed_of, Finish finish) {
    SmallVector<Instruction*> waiting{&root};
    while (!waiting.empty()) {
      Instruction& instruction = *waiting.back();
      size_t count = waiting.size();
      if (!is_done(instruction)) {
        for (Instruction* needed : needed_of(instruction))
          if (!is_done(*needed)) waiting.push_back(needed);
        if (waiting.size() > count) continue;
        finish(instruction);
      }
      waiting.pop_back();
    }
  }

  SmallVector<Instruction*> needed_by(Instruction& instruction) {
    SmallVector<Instruction*> result;
    for_each_needed(instruction, [&](Instruction& needed) { result.push_back(&needed); });
    return result;
  }

  // How many registers are wanted at a time to compute it, as of a tree.
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

  // What it needs first, what needs most registers before all others.
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
  bool is_cut_;
  DenseMap<Instruction*, SmallVector<Instruction*, 2>> before_;
  DenseMap<Instruction*, unsigned> needs_;
  DenseSet<Instruction*> emitted_;
  SmallVector<Instruction*> order_;
  SmallVector<size_t> ends_;  // in it, of what is computed together
};

}  // namespace

void schedule_for_pressure(Function& function, unsigned registers, unsigned lanes, bool are_few) {
  for (BasicBlock& block : function) {
    if (block.size() < kFewest || block.size() > kMost) continue;
    if (any_of(block, [](const Instruction& one) { return one.hasMetadata(kAddressOrdered); })) continue;
    ChainFinisher whole(block, registers, lanes, false);
    auto cut = [&] {
      split_wide_vectors(block, lanes);
      return ChainFinisher(block, registers, lanes, true);
    };
    if (whole.is_stream()) {
      cut().run_as_stream();
    } else if (are_few) {
      size_t reloads = whole.count_reloads();
      if (reloads >= kFewestReloads && kOperations * reloads >= whole.count_operations()) cut().run(/*much=*/true);
    } else if (whole.is_loop_of_sums()) {
      cut().run(/*much=*/false);
    }
  }
}

}  // namespace kiln
