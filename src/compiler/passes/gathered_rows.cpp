#include "compiler/passes/gathered_rows.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>

#include "compiler/passes/bounds_guards.h"
#include "compiler/passes/cache_lines.h"

namespace kiln {
namespace {

using namespace llvm;

constexpr unsigned kAhead = 8;  // iterations
constexpr unsigned kMostInstructions = 120;

// What leads from a loop's counter to addresses, once more for a later iteration.
class Ahead {
 public:
  Ahead(const Loop& loop, PHINode& counter, const ConstantInt& step) : loop_(loop), counter_(counter), step_(step) {}

  // Whether it is another one in another iteration, and can be computed ahead; and whether what is read leads to it.
  bool is_found(const Value* value) { return kind_of(value) == Kind::kRead; }

  Value* of(Value* value) {
    if (kind_of(value) == Kind::kSame) return value;
    if (Value* known = made_.lookup(value)) return known;
    auto* instruction = cast<Instruction>(value);
    IRBuilder<> builder(instruction->getParent(), isa<PHINode>(instruction)
                                                      ? instruction->getParent()->getFirstInsertionPt()
                                                      : std::next(instruction->getIterator()));
    if (instruction == &counter_)
      return made_[value] = builder.CreateAdd(value, ConstantInt::get(value->getType(), kAhead * step_.getZExtValue()));
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
    if (!instruction || !loop_.contains(instruction)) return Kind::kSame;
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
    return counts && phi.getParent() != loop_.getHeader() ? Kind::kSame : Kind::kUnknown;
  }

  // The later iteration may not come: what is read must be there for any number.
  static bool can_be_ahead(const Instruction& instruction) {
    if (const auto* load = dyn_cast<LoadInst>(&instruction)) {
      const auto* chosen = dyn_cast<SelectInst>(load->getPointerOperand());
      return load->hasMetadata(LLVMContext::MD_invariant_load) && chosen &&
             (is_zeros(chosen->getTrueValue()) || is_zeros(chosen->getFalseValue()));
    }
    return isSafeToSpeculativelyExecute(&instruction);
  }

  const Loop& loop_;
  PHINode& counter_;
  const ConstantInt& step_;
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

bool ask_ahead(Loop& loop) {
  auto [counter, step] = counter_of(loop);
  if (!counter) return false;
  Ahead ahead(loop, *counter, *step);
  SmallVector<std::pair<Value*, int64_t>> rows;  // and their bytes
  for (BasicBlock* block : loop.blocks())
    for (Instruction& instruction : *block) {
      auto* load = dyn_cast<LoadInst>(&instruction);
      if (!load || !load->isSimple() || !load->getType()->isVectorTy()) continue;
      Value* place = usual_place(load->getPointerOperand());
      if (place && ahead.is_found(place))
        rows.push_back(
            {place, static_cast<int64_t>(load->getDataLayout().getTypeStoreSize(load->getType()).getFixedValue())});
    }
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
  bool has_changed = false;
  for (Loop* loop : analyses.getResult<LoopAnalysis>(function)) has_changed |= ask_ahead(*loop);
  return has_changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
}

}  // namespace kiln
