// The function of a simdgroup while it is made: what each of one thread's values has become in it, and the mask of the
// block that is being widened.
//
// A uniform value has become a scalar, a divergent one a vector of kLanes elements. A postponed value has neither: it
// is an address or a guard, of which most accesses need a single lane, and its vector is made where one is needed.
//
// All parts of the widener that create instructions work on this class. Look-ups take constant time.
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/DenseSet.h>
#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "compiler/analysis/structured_flow.h"
#include "compiler/ir/simdgroup.h"
#include "compiler/ir/vector_isa.h"

namespace kiln::widening {

using namespace llvm;

using Values = SmallVector<Value*>;
using Emitter = function_ref<Values()>;

// Why a function cannot be widened.
struct Refusal {
  std::string reason;
  const Instruction* at = nullptr;  // that is not widened; null: unknown
};

[[noreturn]] void refuse(std::string reason);

/// A copy, not inserted yet. Its operands are created before it, so that a refusal among them leaks no copy.
Instruction* with_operands(const Instruction& instruction, ArrayRef<Value*> operands);

/// Of kLanes elements. Refuses types that have no vectors.
Type* vector_of(Type* type);

/// Of the lanes' integers, the elements from a byte on.
Value* elements_at(Value* integers, uint64_t byte, Type* element, IRBuilder<>& builder);

/// 0, 1, 2, …
Constant* lane_numbers(Type* type);

inline bool is_word(uint64_t bytes) { return bytes == 4 || bytes == 8; }

inline bool is_all(const Value* mask) {
  const auto* constant = dyn_cast<Constant>(mask);
  return constant && constant->isAllOnesValue();
}

/// The mask's lanes; none if they are not known.
SmallVector<unsigned> lanes_of(const Value* mask);
std::optional<unsigned> only_lane(const Value* mask);

/// The lane that is active if any is, as on one side of a branch on a lane's number and something else.
std::optional<unsigned> only_possible_lane(const Value* mask);

// A branch on a uniform condition, with code on both sides.
struct IfElse {
  Value* condition;
  const char *then_name, *else_name;  // the blocks' names
  bool is_likely = true;              // otherwise it gets no branch weights
};

class Lanes {
 public:
  /// `emit_postponed` computes the vector of a postponed value from its operands. Here is a cycle: arithmetic needs its
  /// operands, and an operand may be postponed arithmetic.
  Lanes(Function& to, const StructuredFlow& flow, const VectorIsa& isa,
        std::function<Value*(Instruction&, IRBuilder<>&)> emit_postponed);

  // ---- Values

  bool is_divergent(const Value* value) const { return flow_.is_divergent(value); }

  /// What a uniform value has become.
  Value* scalar(Value* value);
  /// The vector of any value: what a divergent one has become, or a splat.
  Value* vector(Value* value, IRBuilder<>& builder);
  /// What a divergent value has become if it was set; otherwise null.
  Value* known_vector(const Value* value) const { return vectors_.lookup(value); }

  void set_scalar(const Value* value, Value* made) { scalars_[value] = made; }
  void set_vector(const Value* value, Value* made) { vectors_[value] = made; }
  void postpone(const Instruction& instruction) { postponed_.insert(&instruction); }
  bool is_postponed(const Value* value) const { return postponed_.contains(value); }

  // ---- Masks

  /// Of the block, or of the part of it that is being emitted.
  Value* mask() const { return mask_; }
  void set_mask(Value* mask) { mask_ = mask; }

  Value* any(Value* mask, IRBuilder<>& builder) const;
  /// The lanes of the mask for which the condition holds. In others it may be poison, which an `and` would propagate.
  Value* narrowed(Value* mask, Value* condition, IRBuilder<>& builder);
  /// Without mask registers a loop's mask is kept as words.
  Value* mask_of_words(Value* words, IRBuilder<>& builder);
  Value* words_of_mask(const Value* mask) const { return word_masks_.lookup(mask); }
  /// An i1: whether all lanes are active.
  Value* all_active(IRBuilder<>& builder) const;
  /// The mask's bits, an i32.
  Value* mask_bits(IRBuilder<>& builder) const { return builder.CreateBitCast(mask_, builder.getInt32Ty()); }
  Value* lanes_of_mask(unsigned first, unsigned count, IRBuilder<>& builder) const;

  // ---- Blocks

  Function& function() const { return to_; }
  const DataLayout& layout() const { return layout_; }
  LLVMContext& context() const { return to_.getContext(); }

  /// The block of allocas. It dominates all others.
  BasicBlock& entry() const { return *entry_; }
  AllocaInst* allocate(Type* type) const { return IRBuilder<>(entry_).CreateAlloca(type); }
  BasicBlock* create_block(const Twine& name, BasicBlock* after) const;

  /// Emits both sides and phis of their results. Both must return equally many values.
  Values create_if_else(const IfElse& branch, IRBuilder<>& builder, Emitter emit_then, Emitter emit_else);

  /// A scope is a block of the thread's code, or a side of create_if_else() within one. What is emitted in a scope
  /// dominates the rest of it.
  void begin_scope();
  unsigned scope() const { return scopes_.back(); }
  bool is_in_scope(unsigned scope) const { return is_contained(scopes_, scope); }

  // ---- What the processor has for lanes

  const VectorIsa& vector_isa() const { return isa_; }
  /// Masked loads and stores of elements of so many bytes.
  bool can_mask(uint64_t bytes) const { return is_word(bytes) || isa_.masks_small_elements; }
  bool has_gathers(Type* type) const { return isa_.has_gathers && is_word(layout_.getTypeSizeInBits(type) / 8); }
  /// Whether the lanes' bytes or pairs of bytes are gathered as parts of words, each of which is in one word.
  bool gathers_words_of(const LoadInst& load) const {
    const uint64_t bytes = layout_.getTypeStoreSize(load.getType());
    return isa_.gathers_always_pay && !load.getType()->isIntegerTy(1) && (bytes == 1 || bytes == 2) &&
           bytes * 8 == layout_.getTypeSizeInBits(load.getType()) && load.getAlign().value() >= bytes;
  }
  bool is_gathered(const LoadInst& load) const { return has_gathers(load.getType()) || gathers_words_of(load); }
  bool has_scatters(Type* type) const { return isa_.has_scatters && is_word(layout_.getTypeSizeInBits(type) / 8); }
  /// Lanes' elements per register.
  unsigned register_lanes(Type* element) const {
    return std::min(isa_.num_elements(layout_.getTypeStoreSize(element)), kLanes);
  }

 private:
  Value* postponed_vector(Instruction& instruction, IRBuilder<>& builder);

  Function& to_;
  const StructuredFlow& flow_;
  const VectorIsa& isa_;
  const DataLayout& layout_;
  const std::function<Value*(Instruction&, IRBuilder<>&)> emit_postponed_;
  BasicBlock* entry_;
  Value* mask_ = nullptr;
  DenseMap<const Value*, Value*> scalars_, vectors_;
  DenseSet<const Value*> postponed_;
  DenseMap<std::pair<const Instruction*, BasicBlock*>, Value*> made_in_block_;  // vectors of these, by block
  // Without mask registers: loop masks as words, since vector registers hold the masks of blends. LLVM would pack bits
  // to bytes at every block boundary.
  DenseMap<const Value*, Value*> word_masks_;
  SmallVector<unsigned> scopes_;  // those that are open, outermost first
  unsigned num_scopes_ = 0;
};

}  // namespace kiln::widening
