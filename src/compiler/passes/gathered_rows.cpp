#include "compiler/passes/gathered_rows.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/MapVector.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/PostDominators.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>

#include <algorithm>
#include <cstdint>

#include "compiler/passes/bounds_guards.h"
#include "compiler/passes/cache_lines.h"
#include "compiler/passes/locked_rows.h"
#include "compiler/passes/widen.h"
#include "core/cpu_image.h"

namespace kiln {
namespace {

using namespace llvm;

constexpr unsigned kAhead = 8;  // iterations, or simdgroups
constexpr unsigned kMostInstructions = 120;

// What leads from a loop's counter to addresses, once more for a later iteration. Without a loop, from a parameter of
// the function for a later call.
class Ahead {
 public:
  Ahead(const Loop* loop, Value& counter, uint64_t step, const PostDominatorTree& always)
      : loop_(loop), counter_(counter), step_(step), always_(always) {}

  // Whether it is another one in another iteration, and can be computed ahead; and whether what is read leads to it.
  bool is_found(const Value* value) { return kind_of(value) == Kind::kRead; }

  Value* of(Value* value) {
    if (kind_of(value) == Kind::kSame) return value;
    if (Value* known = made_.lookup(value)) return known;
    if (value == &counter_) {
      IRBuilder<> builder(first_block(), first_block()->getFirstNonPHIOrDbgOrAlloca());
      return made_[value] = builder.CreateAdd(value, ConstantInt::get(value->getType(), kAhead * step_));
    }
    auto* instruction = cast<Instruction>(value);
    IRBuilder<> builder(instruction->getParent(), std::next(instruction->getIterator()));
    SmallVector<Value*> operands;
    for (Value* operand : instruction->operands()) operands.push_back(of(operand));
    Instruction* later = instruction->clone();
    for (auto [use, operand] : zip(later->operands(), operands)) use.set(operand);
    later->dropPoisonGeneratingAnnotations();
    return made_[value] = builder.Insert(later);
  }

 private:
  // In another iteration of the loop.
  enum class Kind {
    kSame,
    kComputed,  // from the counter
    kRead,      // from what is read
    kUnknown,
  };

  Kind kind_of(const Value* value) {
    if (value == &counter_) return Kind::kComputed;
    const auto* instruction = dyn_cast<Instruction>(value);
    if (!instruction || (loop_ && !loop_->contains(instruction))) return Kind::kSame;
    if (const auto* phi = dyn_cast<PHINode>(instruction)) return kind_of_phi(*phi);
    if (auto known = kinds_.find(value); known != kinds_.end()) return known->second;
    Kind kind = Kind::kSame;
    for (const Value* operand : instruction->operands()) kind = std::max(kind, kind_of(operand));
    if (kind != Kind::kSame && !can_be_ahead(*instruction)) kind = Kind::kUnknown;
    if (kind == Kind::kComputed && isa<LoadInst>(instruction)) kind = Kind::kRead;
    if (kind != Kind::kSame && ++instructions_ > kMostInstructions) kind = Kind::kUnknown;
    return kinds_[value] = kind;
  }

  // A counter of a loop inside is the same in all iterations of this one. Of other phis nothing is known.
  Kind kind_of_phi(const PHINode& phi) const {
    BinaryOperator* next;
    Value *first, *step;
    const bool counts = matchSimpleRecurrence(&phi, next, first, step) && next->getOpcode() == Instruction::Add &&
                        isa<Constant>(first) && isa<Constant>(step);
    return counts && !(loop_ && phi.getParent() == loop_->getHeader()) ? Kind::kSame : Kind::kUnknown;
  }

  // The later iteration may not come: what is read must be there for any number. A guard behind a branch knows of this
  // iteration which way it went, and may ask less than another one has to.
  bool can_be_ahead(const Instruction& instruction) const {
    if (const auto* load = dyn_cast<LoadInst>(&instruction)) {
      const auto* chosen = dyn_cast<SelectInst>(load->getPointerOperand());
      return load->hasMetadata(LLVMContext::MD_invariant_load) && chosen &&
             (is_zeros(chosen->getTrueValue()) || is_zeros(chosen->getFalseValue())) &&
             always_.dominates(load->getParent(), first_block());
    }
    return isSafeToSpeculativelyExecute(&instruction);
  }

  BasicBlock* first_block() const {
    return loop_ ? loop_->getHeader() : &cast<Argument>(counter_).getParent()->getEntryBlock();
  }

  const Loop* loop_;
  Value& counter_;
  const uint64_t step_;
  const PostDominatorTree& always_;
  DenseMap<const Value*, Kind> kinds_;
  DenseMap<const Value*, Value*> made_;
  unsigned instructions_ = 0;
};

// Where a row mostly is, of places that its guard chooses from.
Value* usual_place(Value* place) {
  for (;;) {
    SmallVector<Value*> places;
    if (auto* phi = dyn_cast<PHINode>(place))
      append_range(places, phi->incoming_values());
    else if (auto* chosen = dyn_cast<SelectInst>(place))
      places = {chosen->getTrueValue(), chosen->getFalseValue()};
    else
      return place;
    erase_if(places, [](const Value* one) { return isa<AllocaInst>(one) || is_zeros(one); });
    if (places.size() != 1) return nullptr;
    place = places[0];
  }
}

// The first number to which something is added in each iteration, and what.
std::pair<PHINode*, const ConstantInt*> counter_of(const Loop& loop) {
  for (PHINode& phi : loop.getHeader()->phis()) {
    BinaryOperator* next;
    Value *first, *step;
    if (!matchSimpleRecurrence(&phi, next, first, step) || next->getOpcode() != Instruction::Add) continue;
    if (const auto* constant = dyn_cast<ConstantInt>(step)) return {&phi, constant};
  }
  return {};
}

struct Row {
  Value* place = nullptr;  // of none, or where it is not known
  int64_t bytes = 0;
};

Row row_of(Instruction& instruction) {
  if (auto* load = dyn_cast<LoadInst>(&instruction)) {
    if (!load->isSimple() || !load->getType()->isVectorTy()) return {};
    const TypeSize bytes = load->getDataLayout().getTypeStoreSize(load->getType());
    return {usual_place(load->getPointerOperand()), static_cast<int64_t>(bytes.getFixedValue())};
  }
  return {locked_row(instruction), kLanes * sizeof(float)};
}

template <class Blocks>
bool ask_ahead(const Blocks& blocks, Ahead ahead) {
  MapVector<Value*, int64_t> rows;  // their places and bytes
  for (BasicBlock* block : blocks)
    for (Instruction& instruction : *block)
      if (auto [place, bytes] = row_of(instruction); place && ahead.is_found(place))
        rows[place] = std::max(rows[place], bytes);
  for (auto [place, bytes] : rows) {
    auto* later = cast<Instruction>(ahead.of(place));
    IRBuilder<> builder(later->getParent(), std::next(later->getIterator()));
    for (int64_t at = 0; at < bytes; at += kCacheLine)
      ask_for_line(builder, builder.CreateConstGEP1_64(builder.getInt8Ty(), later, static_cast<uint64_t>(at)));
  }
  return !rows.empty();
}

}  // namespace

PreservedAnalyses GatheredRowsPass::run(Function& function, FunctionAnalysisManager& analyses) {
  const auto& always = analyses.getResult<PostDominatorTreeAnalysis>(function);
  bool has_changed = false;
  for (Loop* loop : analyses.getResult<LoopAnalysis>(function))
    if (auto [counter, step] = counter_of(*loop); counter)
      has_changed |= ask_ahead(loop->blocks(), Ahead(loop, *counter, step->getZExtValue(), always));
  return has_changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
}

PreservedAnalyses AddedRowsPass::run(Function& function, FunctionAnalysisManager& analyses) {
  if (none_of(instructions(function), locked_row)) return PreservedAnalyses::all();
  const auto& always = analyses.getResult<PostDominatorTreeAnalysis>(function);
  const bool has_changed = ask_ahead(make_pointer_range(function), {nullptr, *function.getArg(kCpuX), kLanes, always});
  return has_changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
}

}  // namespace kiln
