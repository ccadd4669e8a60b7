#include "compiler/vectorize/row_blocks.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/MapVector.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/Transforms/Utils/LoopUtils.h>
#include <llvm/Transforms/Utils/ScalarEvolutionExpander.h>

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <vector>

#include "compiler/ir/guard_sinks.h"
#include "compiler/ir/guard_zeros.h"
#include "compiler/ir/lane_operations.h"
#include "compiler/ir/loop_metadata.h"
#include "compiler/ir/metadata.h"
#include "compiler/ir/remarks.h"
#include "compiler/vectorize/lane_strides.h"
#include "compiler/vectorize/loop_strides.h"
#include "compiler/vectorize/memory_objects.h"

namespace kiln {
namespace {

using namespace llvm;
using namespace llvm::PatternMatch;

constexpr unsigned kBlock = 16;  // iterations
// A tile of words is 2 KiB for 32 lanes, and the first-level cache has 32 or 48.
constexpr unsigned kMostTiles = 8;  // of a function
// Of a row in one register's transposition (vectorize/widener_interleaved.h).
constexpr int64_t kPartBytes = 64;
constexpr uint64_t kMostElementBytes = 4;  // of an element
// Elements from one iteration to the next: more than a part of them is skipped otherwise.
constexpr int64_t kMostElements = 4;
constexpr unsigned kMostInAddress = 24;  // instructions of the loop from which an address is computed
constexpr unsigned kLongIteration = 64;  // instructions
constexpr unsigned kMostAccesses = 128;  // in a loop
constexpr const char* kRowBlocks = "row-blocks";

// A counter or pointer of the loop.
struct Induction {
  PHINode* phi;
  Instruction* increment;
  int64_t step;  // in bytes for a pointer
};

struct RowAccess {
  Instruction* access;
  Value *pointer, *address;                  // with its guard and without
  Value* allowed;                            // by the guard; null if there is none
  int64_t step = 0;                          // bytes from one iteration to the next
  bool may_wrap = false;                     // as far as is known, a narrow index between two iterations
  SmallPtrSet<const Value*, 16> slice = {};  // of the loop, from which the pointer is computed
  AllocaInst* tile = nullptr;
  unsigned number = 0;  // in the function

  bool is_load() const { return isa<LoadInst>(access); }
};

// Whether they may be members of one structure, or neighbours in other ways.
bool is_like(const RowAccess& one, const RowAccess& other) {
  return one.step == other.step && getLoadStoreType(one.access) == getLoadStoreType(other.access) &&
         objects_of(one.address) == objects_of(other.address);
}

struct Plan {
  Loop* loop;
  const SCEV* backs = nullptr;  // iterations but one
  DenseMap<PHINode*, Induction> inductions{};
  SmallVector<RowAccess, 4> accesses = {};
};

class Planner {
 public:
  Planner(Function& function, const Divergence& divergence, FunctionAnalysisManager& analyses,
          const VectorIsa& vector_isa)
      : function_(function),
        layout_(function.getDataLayout()),
        divergence_(divergence),
        isa_(vector_isa),
        loops_(analyses.getResult<LoopAnalysis>(function)),
        dominators_(analyses.getResult<DominatorTreeAnalysis>(function)),
        evolution_(analyses.getResult<ScalarEvolutionAnalysis>(function)) {}

  std::vector<Plan> find() {
    std::vector<Plan> plans;
    unsigned num_tiles = 0;
    for (Loop* loop : loops_.getLoopsInPreorder()) {
      if (any_of(plans, [&](const Plan& plan) { return plan.loop->contains(loop); })) continue;
      std::optional<Plan> plan = plan_of(*loop);
      if (!plan || num_tiles + plan->accesses.size() > kMostTiles) continue;
      for (RowAccess& row : plan->accesses) row.number = num_tiles++;
      plans.push_back(std::move(*plan));
    }
    return plans;
  }

 private:
  std::optional<Plan> plan_of(Loop& loop) {
    BasicBlock* latch = loop.getLoopLatch();
    if (!latch || loop.getExitingBlock() != latch || !loop.getLoopPreheader() || !loop.getExitBlock() ||
        !isa<BranchInst>(latch->getTerminator()) || divergence_.is_divergent_branch(*latch) ||
        hasUnrollTransformation(&loop) != TM_Unspecified)
      return std::nullopt;
    SmallVector<Instruction*> accesses;
    if (!find_accesses(loop, accesses)) return std::nullopt;
    Plan plan{&loop};
    for (PHINode& phi : loop.getHeader()->phis())
      if (std::optional<Induction> induction = induction_of(phi, loop)) plan.inductions[&phi] = *induction;
    for (Instruction* access : accesses)
      if (std::optional<RowAccess> row = row_access_of(*access, loop, plan)) plan.accesses.push_back(std::move(*row));
    if (plan.accesses.empty()) return std::nullopt;
    drop_dependent(plan, accesses);
    drop_sparse(plan);
    if (plan.accesses.size() > kMostTiles) plan.accesses.truncate(kMostTiles);
    if (none_of(plan.accesses, [](const RowAccess& row) { return !row.is_load(); })) return std::nullopt;
    if (size_of(loop) > kLongIteration && all_of(plan.accesses, [&](const RowAccess& row) { return is_fast(row); }))
      return std::nullopt;
    const unsigned trips = evolution_.getSmallConstantTripCount(&loop);
    if (trips != 0 && trips < 2 * kBlock) return std::nullopt;
    plan.backs = evolution_.getBackedgeTakenCount(&loop);
    if (isa<SCEVCouldNotCompute>(plan.backs) || plan.backs->getType()->getScalarSizeInBits() > 64) return std::nullopt;
    return plan;
  }

  static unsigned size_of(const Loop& loop) {
    unsigned size = 0;
    for (const BasicBlock* block : loop.blocks()) size += static_cast<unsigned>(block->size());
    return size;
  }

  // Whether a gather or scatter hardly delays a long iteration.
  bool is_fast(const RowAccess& row) const {
    const LaneStride stride = strides_->of(row.address);
    return layout_.getTypeStoreSize(getLoadStoreType(row.access)) == sizeof(uint32_t) && stride.distance &&
           !rows_conflict(*stride.distance) && (row.is_load() ? isa_.has_gathers : isa_.has_scatters);
  }

  // False: something may be called, or others may see an order.
  static bool find_accesses(const Loop& loop, SmallVectorImpl<Instruction*>& accesses) {
    for (BasicBlock* block : loop.blocks())
      for (Instruction& instruction : *block) {
        if (instruction.isDebugOrPseudoInst() ||
            (isa<IntrinsicInst>(instruction) && cast<IntrinsicInst>(instruction).isAssumeLikeIntrinsic()))
          continue;
        if (const auto* call = dyn_cast<CallBase>(&instruction);
            call && (call->isConvergent() || !call->doesNotAccessMemory()))
          return false;
        if (!instruction.mayReadOrWriteMemory()) continue;
        const bool is_simple = isa<LoadInst>(instruction)    ? cast<LoadInst>(instruction).isSimple()
                               : isa<StoreInst>(instruction) ? cast<StoreInst>(instruction).isSimple()
                                                             : false;
        if (!is_simple || accesses.size() == kMostAccesses) return false;
        accesses.push_back(&instruction);
      }
    return true;
  }

  std::optional<Induction> induction_of(PHINode& phi, const Loop& loop) {
    auto* increment = dyn_cast<Instruction>(phi.getIncomingValueForBlock(loop.getLoopLatch()));
    if (!increment || !loop.contains(increment) || !evolution_.isSCEVable(phi.getType())) return std::nullopt;
    const auto* walk = dyn_cast<SCEVAddRecExpr>(evolution_.getSCEV(&phi));
    const auto* step =
        walk && walk->getLoop() == &loop ? dyn_cast<SCEVConstant>(walk->getStepRecurrence(evolution_)) : nullptr;
    if (!step || step->getAPInt().getSignificantBits() > 31) return std::nullopt;
    return Induction{&phi, increment, step->getAPInt().getSExtValue()};
  }

  std::optional<RowAccess> row_access_of(Instruction& access, const Loop& loop, const Plan& plan) {
    if (loops_.getLoopFor(access.getParent()) != &loop ||
        !dominators_.dominates(access.getParent(), loop.getLoopLatch()))
      return std::nullopt;
    Type* type = getLoadStoreType(&access);
    if (type->isVectorTy() || type->isPointerTy() || type->isIntegerTy(1) ||
        layout_.getTypeStoreSize(type) > kMostElementBytes ||
        layout_.getTypeStoreSize(type) != layout_.getTypeAllocSize(type))
      return std::nullopt;
    const auto bytes = static_cast<int64_t>(layout_.getTypeStoreSize(type).getFixedValue());
    Value* pointer = getLoadStorePointerOperand(&access);
    RowAccess row{&access, pointer, pointer, nullptr};
    if (auto* guard = dyn_cast<SelectInst>(pointer);
        guard && (is_zeros(guard->getFalseValue()) || is_sink(guard->getFalseValue()))) {
      row.address = guard->getTrueValue();
      row.allowed = guard->getCondition();
    }
    const std::optional<LoopStride> walk = loop_stride_of(row.address, loop, evolution_, layout_);
    if (!divergence_.is_divergent(row.address) || isa<AllocaInst>(getUnderlyingObject(row.address)) || !walk ||
        (row.allowed && !is_linear(row, loop)))
      return std::nullopt;
    row.step = walk->bytes;
    row.may_wrap = walk->may_wrap;
    const int64_t step = std::abs(row.step);
    if (step == 0 || step % bytes != 0 || step > kMostElements * bytes) return std::nullopt;
    if (!strides_) strides_.emplace(function_, divergence_);
    // What is nearer is in the same registers.
    const LaneStride stride = strides_->of(row.address);
    if (stride.distance && std::abs(*stride.distance) < std::max(kPartBytes + 1, kBlock * step)) return std::nullopt;
    if (!add_slice(pointer, loop, plan, row.slice)) return std::nullopt;
    return row;
  }

  // Whether a guard that allows two iterations allows those in between.
  bool is_linear(const RowAccess& row, const Loop& loop) {
    if (loop.isLoopInvariant(row.allowed)) return true;
    auto* comparison = dyn_cast<ICmpInst>(row.allowed);
    if (!comparison) return false;
    const bool is_swapped = comparison->getPredicate() == CmpInst::ICMP_UGT;
    if (!is_swapped && comparison->getPredicate() != CmpInst::ICMP_ULT) return false;
    Value *offset = comparison->getOperand(is_swapped), *limit = comparison->getOperand(!is_swapped);
    if (!offset->getType()->isIntegerTy(64) || !loop.isLoopInvariant(limit)) return false;
    const SCEV* base = evolution_.getMinusSCEV(evolution_.getSCEV(row.address), evolution_.getSCEV(offset));
    return !isa<SCEVCouldNotCompute>(base) && evolution_.isLoopInvariant(base, &loop);
  }

  bool add_slice(Value* value, const Loop& loop, const Plan& plan, SmallPtrSetImpl<const Value*>& slice) const {
    auto* instruction = dyn_cast<Instruction>(value);
    if (!instruction || !loop.contains(instruction) || !slice.insert(value).second) return true;
    if (slice.size() > kMostInAddress) return false;
    if (auto* phi = dyn_cast<PHINode>(instruction)) return plan.inductions.contains(phi);
    if (!isa<BinaryOperator, CastInst, GetElementPtrInst, ICmpInst, SelectInst, IntrinsicInst>(instruction) ||
        instruction->mayReadOrWriteMemory() || instruction->mayHaveSideEffects() ||
        loops_.getLoopFor(instruction->getParent()) != &loop)
      return false;
    return all_of(instruction->operand_values(), [&](Value* operand) { return add_slice(operand, loop, plan, slice); });
  }

  // Those that cannot move because of another access of the loop stay where they are.
  void drop_dependent(Plan& plan, ArrayRef<Instruction*> accesses) {
    SmallVector<RowAccess, 4> rows = std::move(plan.accesses);
    plan.accesses.clear();
    for (const RowAccess& row : rows) {
      const auto* conflict = find_if(accesses, [&](Instruction* other) {
        const auto* its_row = find_if(rows, [&](const RowAccess& one) { return one.access == other; });
        return other != row.access && !are_independent(row, *other, its_row == rows.end() ? nullptr : its_row);
      });
      if (conflict == accesses.end())
        plan.accesses.push_back(row);
      else
        remark(kRowBlocks, *row.access,
               "it is not moved to others of the row: another access of the loop may be of the "
               "same memory");
    }
  }

  // Parts of rows are whole: what lies between the elements of iterations is accessed in them, too.
  void drop_sparse(Plan& plan) {
    const SmallVector<RowAccess, 4> rows = plan.accesses;
    erase_if(plan.accesses, [&](const RowAccess& row) {
      const auto members = count_if(
          rows, [&](const RowAccess& other) { return other.is_load() == row.is_load() && is_like(row, other); });
      const uint64_t bytes = layout_.getTypeStoreSize(getLoadStoreType(row.access));
      return static_cast<uint64_t>(members) * bytes < static_cast<uint64_t>(std::abs(row.step));
    });
  }

  bool are_independent(const RowAccess& row, Instruction& other, const RowAccess* other_row) {
    if (row.is_load() && isa<LoadInst>(other)) return true;
    auto is_never_written = [](const Instruction& access) {
      return isa<LoadInst>(access) && access.hasMetadata(LLVMContext::MD_invariant_load);
    };
    if (is_never_written(*row.access) || is_never_written(other)) return true;
    if (!may_alias(getLoadStorePointerOperand(row.access), getLoadStorePointerOperand(&other))) return true;
    if (!other_row || row.step != other_row->step) return false;
    const auto* distance = dyn_cast<SCEVConstant>(
        evolution_.getMinusSCEV(evolution_.getSCEV(other_row->address), evolution_.getSCEV(row.address)));
    if (!distance || distance->getAPInt().getSignificantBits() > 62) return false;
    int64_t bytes = distance->getAPInt().getSExtValue();  // from the row's access to the other one, in an iteration
    const auto size = static_cast<int64_t>(layout_.getTypeStoreSize(getLoadStoreType(row.access)).getFixedValue());
    if (getLoadStoreType(row.access) != getLoadStoreType(&other)) return false;
    // A load is the first of a pair in its own iteration.
    if (bytes == 0 && row.is_load() != isa<LoadInst>(other)) {
      const Instruction *load = row.is_load() ? row.access : &other, *store = row.is_load() ? &other : row.access;
      return dominators_.dominates(load, store);
    }
    if (row.may_wrap || other_row->may_wrap) return false;
    const int64_t step = std::abs(row.step), in_iteration = ((bytes % step) + step) % step;
    // Between the elements of each other, or a whole block away.
    if (in_iteration >= size && in_iteration <= step - size) return true;
    if (std::abs(bytes) >= kBlock * step + size) return true;
    // The store comes to an address after the load.
    if (row.is_load() == isa<LoadInst>(other)) return false;
    const int64_t to_store = row.is_load() ? bytes : -bytes;
    return in_iteration == 0 && (row.step > 0 ? to_store < 0 : to_store > 0);
  }

  Function& function_;
  const DataLayout& layout_;
  const Divergence& divergence_;
  const VectorIsa& isa_;
  LoopInfo& loops_;
  DominatorTree& dominators_;
  ScalarEvolution& evolution_;
  std::optional<LaneStrides> strides_;  // where a loop asks
};

// What is not of one access may be far apart where narrow indices wrap between them: the number tells.
void mark_row(Instruction& access, const RowAccess& row) {
  Type* type = Type::getInt32Ty(access.getContext());
  access.setMetadata(kRowBlock,
                     MDNode::get(access.getContext(), ConstantAsMetadata::get(ConstantInt::get(type, row.number))));
}

// A loop's blocks, made from its plan. No analysis knows of them.
class BlockMaker {
 public:
  BlockMaker(Function& function, Plan& plan, Value* backs)
      : function_(function),
        context_(function.getContext()),
        plan_(plan),
        backs_(backs),
        number_(Type::getInt64Ty(context_)) {}

  void make() {
    Loop& loop = *plan_.loop;
    BasicBlock *preheader = loop.getLoopPreheader(), *header = loop.getHeader(), *latch = loop.getLoopLatch(),
               *exit = loop.getExitBlock();
    before_ = header;
    IRBuilder<> builder(&function_.getEntryBlock(), function_.getEntryBlock().begin());
    for (RowAccess& row : plan_.accesses)
      row.tile = builder.CreateAlloca(ArrayType::get(getLoadStoreType(row.access), kBlock), nullptr, "row.tile");
    BasicBlock *outer = new_block("row.block"), *start = new_block("row.start");
    before_ = exit;
    BasicBlock *finish = new_block("row.finish"), *outer_latch = new_block("row.next");

    // The loop over blocks, and what enters it.
    preheader->getTerminator()->replaceSuccessorWith(header, outer);
    builder.SetInsertPoint(outer);
    SmallVector<std::pair<PHINode*, PHINode*>> outer_phis;
    for (PHINode& phi : header->phis()) {
      PHINode* own = builder.CreatePHI(phi.getType(), 2);
      own->addIncoming(phi.getIncomingValueForBlock(preheader), preheader);
      outer_phis.push_back({&phi, own});
      if (plan_.inductions.contains(&phi)) starts_[&phi] = own;
    }
    PHINode* done = builder.CreatePHI(number_, 2, "row.done");
    done->addIncoming(builder.getInt64(0), preheader);
    Value* left = builder.CreateSub(backs_, done, "row.left");
    const auto* constant = dyn_cast<ConstantInt>(backs_);
    const bool are_whole = constant && (constant->getZExtValue() + 1) % kBlock == 0;
    last_ = are_whole ? static_cast<Value*>(builder.getInt64(kBlock - 1))
                      : builder.CreateBinaryIntrinsic(Intrinsic::umin, left, builder.getInt64(kBlock - 1));
    is_whole_ = are_whole ? builder.getTrue() : builder.CreateICmpUGE(left, builder.getInt64(kBlock - 1));
    counters_.resize(kBlock);
    for (auto [phi, from] : starts_)
      for (unsigned k = 0; k < kBlock; ++k) counters_[k][phi] = advanced(plan_.inductions[phi], from, k, builder);
    // In a last block some of those iterations are not there, and their counters may be poison.
    Value* outside = call_lane_operation(
        builder, LaneOperation::kVote, {builder.CreateNot(builder.CreateFreeze(fits(builder)))}, builder.getInt32Ty());
    is_whole_ = builder.CreateAnd(is_whole_, builder.CreateICmpEQ(outside, builder.getInt32(0)), "row.is_whole");
    before_ = start;
    copy_all(outer, start, /*are_loads=*/true);

    // The iterations of a block.
    builder.SetInsertPoint(start);
    builder.CreateBr(header);
    for (auto [phi, own] : outer_phis) {
      const int index = phi->getBasicBlockIndex(preheader);
      phi->setIncomingBlock(static_cast<unsigned>(index), start);
      phi->setIncomingValue(static_cast<unsigned>(index), own);
    }
    builder.SetInsertPoint(header, header->begin());
    PHINode* k = builder.CreatePHI(number_, 2, "row.k");
    k->addIncoming(builder.getInt64(0), start);
    for (RowAccess& row : plan_.accesses) move_to_tile(row, k);
    auto* back = cast<BranchInst>(latch->getTerminator());
    builder.SetInsertPoint(back);
    k->addIncoming(builder.CreateAdd(k, builder.getInt64(1), "", true, true), latch);
    BranchInst* repeat = builder.CreateCondBr(builder.CreateICmpULT(k, last_), header, finish);
    never_unroll(*repeat);
    back->eraseFromParent();

    // What they have stored, and the next block.
    before_ = outer_latch;
    copy_all(finish, outer_latch, /*are_loads=*/false);
    builder.SetInsertPoint(outer_latch);
    done->addIncoming(builder.CreateAdd(done, builder.getInt64(kBlock), "", true, true), outer_latch);
    // Behind a block that is not whole comes none.
    for (auto [phi, own] : outer_phis)
      own->addIncoming(starts_.contains(phi) ? advanced(plan_.inductions[phi], own, kBlock, builder)
                                             : phi->getIncomingValueForBlock(latch),
                       outer_latch);
    BranchInst* next = builder.CreateCondBr(builder.CreateICmpUGE(left, builder.getInt64(kBlock)), outer, exit);
    never_unroll(*next);
    exit->replacePhiUsesWith(latch, outer_latch);
  }

 private:
  using Counters = MapVector<PHINode*, Value*>;

  BasicBlock* new_block(const Twine& name) { return BasicBlock::Create(context_, name, &function_, before_); }

  // A counter's value so many iterations later. All of these run, so that what does not wrap in one of them does not
  // here.
  static Value* advanced(const Induction& induction, Value* from, uint64_t iterations, IRBuilder<>& builder) {
    const auto distance = static_cast<uint64_t>(induction.step) * iterations;
    if (distance == 0) return from;
    if (from->getType()->isPointerTy()) return builder.CreateGEP(builder.getInt8Ty(), from, builder.getInt64(distance));
    auto* number = cast<IntegerType>(from->getType());
    Constant* by = ConstantInt::getSigned(number, static_cast<int64_t>(distance));
    // The last one's increment, to what no iteration may have, is not there for the others.
    const bool is_sum = match(induction.increment, m_c_Add(m_Specific(induction.phi), m_ConstantInt())) &&
                        induction.step > 0 && iterations < kBlock &&
                        isIntN(number->getBitWidth(), static_cast<int64_t>(distance));
    return builder.CreateAdd(from, by, "", is_sum && induction.increment->hasNoUnsignedWrap(),
                             is_sum && induction.increment->hasNoSignedWrap());
  }

  // Whether a thread accesses its arrays in all iterations of a whole block, and in steps.
  Value* fits(IRBuilder<>& builder) {
    Value* all = builder.getTrue();
    auto require = [&](Value* what) { all = builder.CreateAnd(all, what); };
    for (const RowAccess& row : plan_.accesses) {
      auto at = [&](Value* value, unsigned k) { return value_at(row, value, counters_[k], builder); };
      if (row.allowed) {
        require(at(row.allowed, 0));
        require(at(row.allowed, kBlock - 1));
      }
      if (!row.may_wrap) continue;
      Value *first = builder.CreatePtrToInt(at(row.address, 0), number_),
            *last = builder.CreatePtrToInt(at(row.address, kBlock - 1), number_);
      require(builder.CreateICmpEQ(builder.CreateSub(last, first), builder.getInt64(row.step * (kBlock - 1))));
    }
    return all;
  }

  // What the value of an access's slice is in the iteration for which `counters` are.
  static Value* value_at(const RowAccess& row, Value* value, const Counters& counters, IRBuilder<>& builder) {
    DenseMap<Value*, Value*> made;
    auto at = [&](auto&& self, Value* needed) -> Value* {
      if (!row.slice.contains(needed)) return needed;
      if (auto* phi = dyn_cast<PHINode>(needed)) return counters.find(phi)->second;
      if (Value* known = made.lookup(needed)) return known;
      Instruction* copy = cast<Instruction>(needed)->clone();
      for (Use& operand : copy->operands()) operand.set(self(self, operand.get()));
      return made[needed] = builder.Insert(copy);
    };
    return at(at, value);
  }

  static Value* element_of(const RowAccess& row, Value* k, IRBuilder<>& builder) {
    return builder.CreateGEP(getLoadStoreType(row.access), row.tile, k);
  }

  static Align element_alignment(const RowAccess& row) {
    return Align(row.tile->getDataLayout().getTypeStoreSize(getLoadStoreType(row.access)).getFixedValue());
  }

  static LoadInst* load_of_tile(const RowAccess& row, Value* k, IRBuilder<>& builder) {
    LoadInst* load =
        builder.CreateAlignedLoad(getLoadStoreType(row.access), element_of(row, k, builder), element_alignment(row));
    mark_row(*load, row);
    return load;
  }

  static void store_to_tile(const RowAccess& row, Value* value, Value* k, IRBuilder<>& builder) {
    mark_row(*builder.CreateAlignedStore(value, element_of(row, k, builder), element_alignment(row)), row);
  }

  static Instruction* copied(const RowAccess& row, Value* value, Value* pointer, IRBuilder<>& builder) {
    Instruction* copy = row.access->clone();
    if (auto* store = dyn_cast<StoreInst>(copy)) {
      store->setOperand(0, value);
      store->setOperand(1, pointer);
    } else {
      copy->setOperand(0, pointer);
    }
    // Copies are beside those of other iterations, of which these say nothing.
    for (unsigned kind : {LLVMContext::MD_alias_scope, LLVMContext::MD_noalias}) copy->setMetadata(kind, nullptr);
    return builder.Insert(copy);
  }

  void move_to_tile(RowAccess& row, Value* k) {
    IRBuilder<> builder(row.access);
    if (row.is_load())
      row.access->replaceAllUsesWith(load_of_tile(row, k, builder));
    else
      store_to_tile(row, cast<StoreInst>(row.access)->getValueOperand(), k, builder);
    row.access->removeFromParent();
    removed_.push_back(row.access);
  }

  // Code from `from` to `to`, neither of which has a terminator there: the elements of all loads go to their tiles, or
  // those of tiles to memory.
  void copy_all(BasicBlock* from, BasicBlock* to, bool are_loads) {
    SmallVector<RowAccess*> rows;
    for (RowAccess& row : plan_.accesses)
      if (row.is_load() == are_loads) rows.push_back(&row);
    IRBuilder<> builder(from);
    if (rows.empty()) {
      builder.CreateBr(to);
      return;
    }
    BasicBlock *whole = new_block("row.whole"), *rest = new_block("row.rest");
    builder.CreateCondBr(is_whole_, whole, rest, MDBuilder(context_).createBranchWeights(1000, 1));
    copy_whole(rows, whole, to);
    copy_rest(rows, from, rest, to);
  }

  void copy_whole(ArrayRef<RowAccess*> rows, BasicBlock* block, BasicBlock* to) {
    IRBuilder<> builder(block);
    // Neighbours of one part are beside each other: members of a structure, and iterations.
    SmallVector<RowAccess*> left(rows);
    while (!left.empty()) {
      SmallVector<RowAccess*> bundle, others;
      for (RowAccess* row : left) (is_like(*left[0], *row) ? bundle : others).push_back(row);
      const int64_t step = std::abs(left[0]->step);
      const auto in_iteration = static_cast<unsigned>(bundle.size());
      const uint64_t bytes = element_alignment(*left[0]).value();
      // As many elements as a part has, if nothing is between them.
      const bool is_full = left[0]->step > 0 && in_iteration * bytes == static_cast<uint64_t>(step);
      // All parts are equal.
      const auto part = static_cast<unsigned>(std::gcd(
          kBlock * in_iteration, is_full ? kPartBytes / bytes : in_iteration * bit_floor(uint64_t(kPartBytes / step))));
      for (unsigned first = 0; first < kBlock * in_iteration; first += part) {
        SmallVector<std::pair<Value*, Value*>> moved;  // values and where they go
        SmallVector<std::pair<RowAccess*, unsigned>> which;
        for (unsigned i = first; i < first + part; ++i) {
          const unsigned k = i / in_iteration;
          assert(k < kBlock);
          RowAccess* row = bundle[i % in_iteration];
          Value* pointer = value_at(*row, row->address, counters_[k], builder);
          Value* value = nullptr;
          if (row->is_load()) {
            Instruction* load = copied(*row, nullptr, pointer, builder);
            mark_row(*load, *row);
            value = load;
          } else {
            value = load_of_tile(*row, builder.getInt64(k), builder);
          }
          moved.push_back({value, pointer});
          which.push_back({row, k});
        }
        for (auto [what, of] : zip_equal(moved, which)) {
          if (of.first->is_load())
            store_to_tile(*of.first, what.first, builder.getInt64(of.second), builder);
          else
            mark_row(*copied(*of.first, what.first, what.second, builder), *of.first);
        }
      }
      left = std::move(others);
    }
    builder.CreateBr(to);
  }

  void copy_rest(ArrayRef<RowAccess*> rows, BasicBlock* from, BasicBlock* block, BasicBlock* to) {
    IRBuilder<> builder(block);
    Counters counters;
    for (auto [phi, start] : starts_) {
      PHINode* counter = builder.CreatePHI(phi->getType(), 2);
      counter->addIncoming(start, from);
      counters[phi] = counter;
    }
    PHINode* k = builder.CreatePHI(number_, 2);
    k->addIncoming(builder.getInt64(0), from);
    for (RowAccess* row : rows) {
      Value* pointer = value_at(*row, row->pointer, counters, builder);
      if (row->is_load())
        store_to_tile(*row, copied(*row, nullptr, pointer, builder), k, builder);
      else
        copied(*row, load_of_tile(*row, k, builder), pointer, builder);
    }
    for (auto [phi, counter] : counters)
      cast<PHINode>(counter)->addIncoming(advanced(plan_.inductions[phi], counter, 1, builder), block);
    k->addIncoming(builder.CreateAdd(k, builder.getInt64(1), "", true, true), block);
    never_unroll(*builder.CreateCondBr(builder.CreateICmpULT(k, last_), block, to));
  }

 public:
  ~BlockMaker() {
    for (Instruction* access : removed_) access->deleteValue();
  }

 private:
  Function& function_;
  LLVMContext& context_;
  Plan& plan_;
  Value* backs_;
  Type* number_;
  BasicBlock* before_ = nullptr;       // where new blocks go
  Counters starts_;                    // in a block's first iteration
  SmallVector<Counters, 0> counters_;  // in each of its iterations
  // Of a block: its last iteration; whether it has all of them, and all accesses are in bounds.
  Value *last_ = nullptr, *is_whole_ = nullptr;
  SmallVector<Instruction*> removed_;
};

}  // namespace

bool make_row_blocks(Function& function, const Divergence& divergence, FunctionAnalysisManager& analyses,
                     const VectorIsa& vector_isa) {
  std::vector<Plan> plans = Planner(function, divergence, analyses, vector_isa).find();
  if (plans.empty()) return false;
  auto& evolution = analyses.getResult<ScalarEvolutionAnalysis>(function);
  SCEVExpander expander(evolution, function.getDataLayout(), "row");
  SmallVector<std::pair<Plan*, Value*>> expanded;
  for (Plan& plan : plans) {
    Instruction* at = plan.loop->getLoopPreheader()->getTerminator();
    if (!expander.isSafeToExpandAt(plan.backs, at)) continue;
    const SCEV* wide = evolution.getNoopOrZeroExtend(plan.backs, Type::getInt64Ty(function.getContext()));
    expanded.push_back({&plan, expander.expandCodeFor(wide, wide->getType(), at)});
  }
  for (auto [plan, backs] : expanded) BlockMaker(function, *plan, backs).make();
  return !expanded.empty();
}

}  // namespace kiln
