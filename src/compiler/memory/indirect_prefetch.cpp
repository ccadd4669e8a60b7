#include "compiler/memory/indirect_prefetch.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/MapVector.h>
#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/PostDominators.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/ir/cache_lines.h"
#include "compiler/ir/guard_zeros.h"
#include "compiler/ir/invariant_loads.h"
#include "compiler/ir/likely.h"
#include "compiler/ir/simdgroup.h"
#include "compiler/ir/striped_atomics.h"
#include "compiler/workgroup/thread_coarsening.h"
#include "core/cpu_image.h"

namespace kiln {
namespace {

using namespace llvm;

constexpr unsigned kAhead = 8;  // iterations, or simdgroups
constexpr unsigned kMostInstructions = 120;

// What leads from a loop's counter to addresses, once more for a later iteration. Without a loop, from a parameter of
// the function for a later call. With pieces, as it is for the first of them, before their loop.
class Ahead {
 public:
  Ahead(const Loop* loop, Value& counter, uint64_t step, const PostDominatorTree& always, CoarsenedLoop pieces = {})
      : loop_(loop), counter_(counter), step_(step), always_(always), pieces_(pieces) {}

  // Whether it is another one in another iteration, and can be computed ahead; and whether what is read leads to it.
  bool is_found(const Value* value) { return kind_of(value) == Kind::kRead; }

  bool is_known(const Value* value) { return kind_of(value) != Kind::kUnknown; }

  // The same where nothing that is read in another iteration leads to it.
  bool is_computed(const Value* value) { return kind_of(value) == Kind::kComputed; }

  bool is_same(const Value* value) { return kind_of(value) == Kind::kSame; }

  bool depends_on_half(const Value* value) {
    const auto* instruction = dyn_cast<Instruction>(value);
    if (!instruction || !pieces_.contain(*instruction)) return false;
    if (isa<PHINode>(instruction)) return instruction == pieces_.piece;
    if (auto known = by_piece_.find(value); known != by_piece_.end()) return known->second;
    bool is_divergent = any_of(instruction->operands(), [&](const Use& operand) { return depends_on_half(operand); });
    return by_piece_[value] = is_divergent;
  }

  Value* of(Value* value) {
    if (kind_of(value) == Kind::kSame) return value;
    if (Value* known = made_.lookup(value)) return known;
    if (value == &counter_) {
      IRBuilder<> builder(first_block(), first_block()->getFirstNonPHIOrDbgOrAlloca());
      return made_[value] = builder.CreateAdd(value, ConstantInt::get(value->getType(), kAhead * step_));
    }
    if (value == pieces_.piece) return ConstantInt::get(value->getType(), 0);
    auto* instruction = cast<Instruction>(value);
    SmallVector<Value*> operands;
    for (Value* operand : instruction->operands()) operands.push_back(of(operand));
    const bool is_in_coarsened_loop = pieces_.contain(*instruction);
    IRBuilder<> builder(instruction->getParent(), std::next(instruction->getIterator()));
    if (is_in_coarsened_loop) builder.SetInsertPoint(pieces_.insertion_point());
    if (Value* number = any_number(*instruction, operands[0], builder)) return made_[value] = number;
    if (is_in_coarsened_loop) return made_[value] = copy_before(pieces_, *instruction, operands);
    Instruction* later = instruction->clone();
    for (auto [use, operand] : zip(later->operands(), operands)) use.set(operand);
    later->dropPoisonGeneratingAnnotations();
    return made_[value] = builder.Insert(later);
  }

  bool is_of_a_piece() const { return loop_ && !pieces_.loop; }

  bool is_before_pieces(const Instruction& place) const { return pieces_.loop && &place == pieces_.insertion_point(); }

  // Where what belongs to `instruction` is had for both iterations.
  Instruction* behind(Instruction& instruction) const {
    if (pieces_.contain(instruction)) return pieces_.insertion_point();
    auto* later = cast_or_null<Instruction>(made_.lookup(&instruction));
    return (later ? later : &instruction)->getNextNode();
  }

 private:
  // What is asked for need not be right. A conversion that does not saturate takes a fifth of the instructions; what
  // does not fit is the place of no row.
  static Value* any_number(const Instruction& instruction, Value* real, IRBuilder<>& builder) {
    const auto* call = dyn_cast<IntrinsicInst>(&instruction);
    if (!call) return nullptr;
    switch (call->getIntrinsicID()) {
      case Intrinsic::fptosi_sat: return builder.CreateFreeze(builder.CreateFPToSI(real, call->getType()));
      case Intrinsic::fptoui_sat: return builder.CreateFreeze(builder.CreateFPToUI(real, call->getType()));
      default: return nullptr;
    }
  }

  // In another iteration of the loop.
  enum class Kind {
    kSame,
    kPlaced,    // the same, except for the piece, but in the loop over pieces
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
    Kind kind = pieces_.contain(*instruction) ? Kind::kPlaced : Kind::kSame;
    for (const Value* operand : instruction->operands()) kind = std::max(kind, kind_of(operand));
    if (kind != Kind::kSame && !can_be_ahead(*instruction)) kind = Kind::kUnknown;
    if (kind == Kind::kComputed && isa<LoadInst>(instruction)) kind = Kind::kRead;
    if (kind != Kind::kSame && ++instructions_ > kMostInstructions) kind = Kind::kUnknown;
    return kinds_[value] = kind;
  }

  // A counter of a loop inside is the same in all iterations of this one. Of other phis nothing is known.
  Kind kind_of_phi(const PHINode& phi) const {
    if (pieces_.contain(phi)) return &phi == pieces_.piece ? Kind::kPlaced : Kind::kUnknown;
    BinaryOperator* next;
    Value *first, *step;
    const bool counts = matchSimpleRecurrence(&phi, next, first, step) && next->getOpcode() == Instruction::Add &&
                        isa<Constant>(first) && isa<Constant>(step);
    return counts && !(loop_ && phi.getParent() == loop_->getHeader()) ? Kind::kSame : Kind::kUnknown;
  }

  // The later iteration may not come: what is read must be there for any number. A guard behind a branch knows of this
  // iteration which way it went, and may ask less than another one has to.
  bool can_be_ahead(const Instruction& instruction) {
    if (const auto* load = dyn_cast<LoadInst>(&instruction)) {
      const auto* chosen = dyn_cast<SelectInst>(load->getPointerOperand());
      return load->hasMetadata(LLVMContext::MD_invariant_load) && chosen &&
             (is_zeros(chosen->getTrueValue()) || is_zeros(chosen->getFalseValue())) &&
             always_.dominates(load->getParent(), first_block()) && !depends_on_half(load);
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
  const CoarsenedLoop pieces_;
  DenseMap<const Value*, Kind> kinds_;
  DenseMap<const Value*, bool> by_piece_;
  DenseMap<const Value*, Value*> made_;
  unsigned instructions_ = 0;
};

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
  Instruction* place = nullptr;  // its address, mostly, of those that a guard chooses from; of no row, null
  SelectInst* choice = nullptr;  // of zeros instead, where the user's code does without the row
  int64_t bytes = 0;
  bool is_written = false;  // and nothing else

  // Another one at the same place.
  void join(const Row& row) {
    // A store has no zeros to choose.
    if (is_written) choice = row.choice;
    if (!row.is_written && choice != row.choice) choice = nullptr;
    is_written = is_written && row.is_written;
    bytes = std::max(bytes, row.bytes);
  }
};

Row row_of(Instruction& instruction) {
  Value* place = striped_range(instruction);
  int64_t bytes = kLanes * sizeof(float);
  const auto* load = dyn_cast<LoadInst>(&instruction);
  const auto* store = dyn_cast<StoreInst>(&instruction);
  const bool is_simple = (load && load->isSimple()) || (store && store->isSimple());
  if (is_simple && getLoadStoreType(&instruction)->isVectorTy()) {
    place = getLoadStorePointerOperand(&instruction);
    Type* type = getLoadStoreType(&instruction);
    bytes = static_cast<int64_t>(instruction.getDataLayout().getTypeStoreSize(type).getFixedValue());
  }
  SelectInst* choice = nullptr;
  while (isa_and_nonnull<PHINode, SelectInst>(place)) {
    SmallVector<Value*> places;
    choice = dyn_cast<SelectInst>(place);
    if (choice)
      places = {choice->getTrueValue(), choice->getFalseValue()};
    else
      append_range(places, cast<PHINode>(place)->incoming_values());
    if (none_of(places, is_zeros)) choice = nullptr;
    erase_if(places, [](const Value* one) { return isa<AllocaInst>(one) || is_zeros(one); });
    place = places.size() == 1 ? places[0] : nullptr;
  }
  return {dyn_cast_or_null<Instruction>(place), choice, bytes, store != nullptr};
}

// An address as an array's beginning and the number of an element, before it is as wide as an address.
struct Element {
  Value* array = nullptr;
  Value* number = nullptr;
  int64_t bytes = 0;

  static Element at(const Instruction& place) {
    const auto* address = dyn_cast<GetElementPtrInst>(&place);
    if (!address || address->getNumIndices() != 1) return {};
    const auto* wide = dyn_cast<CastInst>(address->getOperand(1));
    if (!isa_and_nonnull<SExtInst, ZExtInst>(wide)) return {};
    TypeSize bytes = place.getDataLayout().getTypeAllocSize(address->getSourceElementType());
    return {address->getOperand(0), wide->getOperand(0), static_cast<int64_t>(bytes.getFixedValue())};
  }
};

// Lines to ask for, all that are asked for at one place together.
class Asks {
 public:
  void add(Instruction& place, bool is_before_pieces, Value& address, int64_t offset) {
    Lines& lines = lines_[&place];
    lines.are_before_pieces = is_before_pieces;
    lines.parts.push_back({&address, offset});
  }

  // Before pieces for the cache that the launch says, which is a branch that other places are too small for; else for
  // `elsewhere`. False if there are none.
  bool ask(Function& function, Cache elsewhere) {
    Value* asks_second = nullptr;
    for (auto& [place, lines] : lines_) {
      if (!lines.are_before_pieces) {
        check_at(*place, lines, elsewhere);
        continue;
      }
      if (!asks_second) asks_second = says_second(function);
      Instruction *second, *first;
      SplitBlockAndInsertIfThenElse(asks_second, place->getIterator(), &second, &first);
      check_at(*second, lines, Cache::kSecond);
      check_at(*first, lines, Cache::kFirst);
    }
    return !lines_.empty();
  }

 private:
  struct Lines {
    bool are_before_pieces = false;
    SmallVector<std::pair<Value*, int64_t>> parts;
  };

  static Value* says_second(Function& function) {
    BasicBlock& entry = function.getEntryBlock();
    IRBuilder<> builder(&entry, entry.getFirstNonPHIOrDbgOrAlloca());
    return builder.CreateIsNotNull(load_invariant(builder, builder.getInt32Ty(), function.getArg(kCpuLaunch),
                                                  offsetof(CpuLaunch, asks_second_cache)));
  }

  static void check_at(Instruction& place, const Lines& lines, Cache cache) {
    IRBuilder<> builder(&place);
    for (auto [address, offset] : lines.parts)
      prefetch_line(builder, builder.CreateConstGEP1_64(builder.getInt8Ty(), address, static_cast<uint64_t>(offset)),
                    cache);
  }

  MapVector<Instruction*, Lines> lines_;
};

// Rows as far apart in each iteration as in the others, which are asked for by the address of the first.
class Neighbours {
 public:
  Neighbours(const Row& row, Ahead& ahead) : first_(row), ahead_(ahead) { add(row, 0); }

  // False if it is none of them.
  bool take(const Row& row, const Ahead& ahead, ScalarEvolution& evolution, const DominatorTree& before) {
    if (&ahead != &ahead_ || !before.dominates(first_.place->getParent(), row.place->getParent())) return false;
    Element one = Element::at(*first_.place), other = Element::at(*row.place);
    if (!one.array || one.array != other.array || one.bytes != other.bytes ||
        one.number->getType() != other.number->getType())
      return false;
    const auto* distance =
        dyn_cast<SCEVConstant>(evolution.getMinusSCEV(evolution.getSCEV(other.number), evolution.getSCEV(one.number)));
    if (!distance) return false;
    add(row, distance->getAPInt().getSExtValue() * one.bytes);
    return true;
  }

  void ask(Asks& asks) {
    Value* later = ahead_.of(first_.place);
    Instruction* place = ahead_.behind(*first_.place);
    Value* array = Element::at(*first_.place).array;
    if (array && ahead_.is_same(array) && are_choices_ && !(choices_.size() > 1 && !ahead_.is_before_pieces(*place))) {
      // The array's beginning, which is there soon, instead of rows of which nobody reads any.
      place = ahead_.behind(*choices_[0]);
      IRBuilder<> builder(place);
      Value* unread = nullptr;
      for (SelectInst* choice : choices_) {
        Value* is_unread = ahead_.of(choice->getCondition());
        if (!is_zeros(choice->getTrueValue())) is_unread = builder.CreateNot(is_unread);
        unread = unread ? builder.CreateAnd(unread, is_unread) : is_unread;
      }
      later = builder.CreateSelect(unread, array, later);
    }
    auto ask = [&](int64_t at) { asks.add(*place, ahead_.is_before_pieces(*place), *later, at); };
    llvm::sort(parts_);
    for (size_t i = 0, next; i < parts_.size(); i = next) {
      auto [begin, end] = parts_[i];
      for (next = i + 1; next < parts_.size() && parts_[next].first <= end; ++next)
        end = std::max(end, parts_[next].second);
      for (int64_t at = begin; at < end; at += kCacheLine) ask(at);
      // In one line more, where the array does not begin with a line. Of a run's piece the other one asks for it.
      if (!ahead_.is_of_a_piece()) ask(end - 1);
    }
  }

 private:
  void add(const Row& row, int64_t begin) {
    are_choices_ = are_choices_ && row.choice && ahead_.is_known(row.choice->getCondition()) &&
                   !ahead_.depends_on_half(row.choice->getCondition());
    if (are_choices_ &&
        none_of(choices_, [&](const SelectInst* choice) { return is_same_choice(*choice, *row.choice); }))
      choices_.push_back(row.choice);
    const int64_t pieces = ahead_.depends_on_half(row.place) ? kCoarsenedThreads / kLanes : 1;  // one behind the other
    parts_.emplace_back(begin, begin + pieces * row.bytes);
  }

  static bool is_same_choice(const SelectInst& one, const SelectInst& other) {
    return one.getCondition() == other.getCondition() && is_zeros(one.getTrueValue()) == is_zeros(other.getTrueValue());
  }

  const Row first_;
  Ahead& ahead_;
  bool are_choices_ = true;  // for each row
  SmallVector<SelectInst*> choices_;
  SmallVector<std::pair<int64_t, int64_t>> parts_;  // in bytes behind the first row's address
};

// `edge_to`: what computes a row's address ahead, if anything does.
template <class Way>
void find_ahead(Function& function, const Loop* loop, Way edge_to, Asks& asks, FunctionAnalysisManager& analyses) {
  const auto& before = analyses.getResult<DominatorTreeAnalysis>(function);
  auto& evolution = analyses.getResult<ScalarEvolutionAnalysis>(function);
  DenseMap<const Instruction*, Row> found;  // by their places
  ReversePostOrderTraversal<Function*> order(&function);
  for (BasicBlock* block : order)
    for (Instruction& instruction : *block)
      if (Row row = row_of(instruction); row.place && !(loop && !loop->contains(block)))
        found.try_emplace(row.place, row).first->second.join(row);
  // Those that are written only with others that are read, without which a processor is ahead of them itself. They come
  // last, so that they do not use up what may be computed ahead.
  std::vector<Neighbours> rows;
  for (bool are_written : {false, true}) {
    if (are_written && rows.empty()) return;
    for (BasicBlock* block : order)
      for (Instruction& instruction : *block) {
        auto row = found.find(&instruction);
        if (row == found.end() || row->second.is_written != are_written) continue;
        Ahead* way = edge_to(row->second);
        if (way && none_of(rows, [&](Neighbours& some) { return some.take(row->second, *way, evolution, before); }))
          rows.emplace_back(row->second, *way);
      }
  }
  for (Neighbours& some : rows) some.ask(asks);
}

// Whether nothing but guards may come between.
bool comes_usually(const BasicBlock* block, const BasicBlock* behind, const PostDominatorTree& always) {
  while (!always.dominates(block, behind)) {
    const BasicBlock* before = block->getSinglePredecessor();
    const auto* fork = before ? dyn_cast<BranchInst>(before->getTerminator()) : nullptr;
    std::optional<unsigned> usual = fork ? likely_successor(*fork) : std::nullopt;
    if (!usual || fork->getSuccessor(*usual) != block) return false;
    block = before;
  }
  return true;
}

}  // namespace

PreservedAnalyses IndirectPrefetchPass::run(Function& function, FunctionAnalysisManager& analyses) {
  const auto& always = analyses.getResult<PostDominatorTreeAnalysis>(function);
  Asks asks;
  for (Loop* loop : analyses.getResult<LoopAnalysis>(function)) {
    auto [counter, step] = counter_of(*loop);
    if (!counter) continue;
    const CoarsenedLoop pieces = coarsened_loop_of(*loop);
    Ahead of_run(loop, *counter, step->getZExtValue(), always, pieces),
        of_half(loop, *counter, step->getZExtValue(), always);
    auto edge_to = [&](const Row& row) -> Ahead* {
      auto leads_to = [&](Ahead& ahead) {
        return row.is_written ? ahead.is_computed(row.place) : ahead.is_found(row.place);
      };
      if (pieces.loop && comes_usually(row.place->getParent(), pieces.loop->getHeader(), always) && leads_to(of_run))
        return &of_run;
      return leads_to(of_half) ? &of_half : nullptr;
    };
    find_ahead(function, loop, edge_to, asks, analyses);
  }
  return asks.ask(function, Cache::kFirst) ? PreservedAnalyses::none() : PreservedAnalyses::all();
}

PreservedAnalyses AtomicPrefetchPass::run(Function& function, FunctionAnalysisManager& analyses) {
  if (none_of(instructions(function), striped_range)) return PreservedAnalyses::all();
  Ahead ahead(nullptr, *function.getArg(kCpuX), kLanes, analyses.getResult<PostDominatorTreeAnalysis>(function));
  auto edge_to = [&](const Row& row) { return !row.is_written && ahead.is_found(row.place) ? &ahead : nullptr; };
  Asks asks;
  find_ahead(function, nullptr, edge_to, asks, analyses);
  return asks.ask(function, Cache::kSecond) ? PreservedAnalyses::none() : PreservedAnalyses::all();
}

}  // namespace kiln
