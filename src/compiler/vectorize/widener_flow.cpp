#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/CFG.h>

#include "compiler/ir/likely.h"
#include "compiler/ir/simdgroup.h"
#include "compiler/vectorize/widener.h"

namespace kiln::widening {

namespace {

// Instructions of a side that is run without asking whether a lane wants it.
constexpr unsigned kMostOfAShortSide = 8;

bool is_cheap(const Instruction& instruction) {
  if (instruction.mayReadOrWriteMemory() || !isSafeToSpeculativelyExecute(&instruction)) return false;
  if (const auto* call = dyn_cast<CallInst>(&instruction)) {
    Intrinsic::ID id = call->getIntrinsicID();
    return id == Intrinsic::fma || id == Intrinsic::fabs || id == Intrinsic::smin || id == Intrinsic::smax ||
           id == Intrinsic::umin || id == Intrinsic::umax;
  }
  unsigned opcode = instruction.getOpcode();
  return opcode != Instruction::FDiv && opcode != Instruction::FRem;
}

}  // namespace

Value* Widener::condition_for(const BasicBlock& from, const BasicBlock& to, IRBuilder<>& builder) {
  auto* branch = cast<BranchInst>(from.getTerminator());
  Value* condition = vector(branch->getCondition(), builder);
  return branch->getSuccessor(0) == &to ? condition : builder.CreateNot(condition);
}

// The lanes of the mask for which the condition holds. In others it may be poison, which an `and` would let through.
Value* Widener::narrowed(Value* mask, Value* condition, IRBuilder<>& builder) {
  if (Value* words = as_words_.lookup(mask))
    return mask_of_words(
        builder.CreateSelect(builder.CreateFreeze(condition), words, Constant::getNullValue(words->getType())),
        builder);
  return builder.CreateLogicalAnd(mask, condition);
}

Value* Widener::mask_of_words(Value* words, IRBuilder<>& builder) {
  Value* mask = builder.CreateICmpSLT(words, Constant::getNullValue(words->getType()));
  as_words_[mask] = words;
  return mask;
}

Value* Widener::mask_at(BasicBlock& block, IRBuilder<>& builder) {
  if (&block == &from_.getEntryBlock()) {
    if (is_full_) return Constant::getAllOnesValue(mask_type_);
    Value* lanes = to_.getArg(to_.arg_size() - 1);
    return builder.CreateICmpULT(lane_numbers(builder.getInt32Ty()), builder.CreateVectorSplat(kLanes, lanes), "mask");
  }
  Loop* loop = loops_.getLoopFor(&block);
  if (loop && loop->getHeader() == &block) {
    BasicBlock* preheader = loop->getLoopPreheader();
    if (!is_divergent_loop(*loop)) return masks_.at(preheader);
    Value* before = masks_.at(preheader);
    Type* words = vector_of(builder.getInt32Ty());
    if (!has_avx512_) {
      Value* known = as_words_.lookup(before);
      before = known ? known : IRBuilder<>(end_.at(preheader)->getTerminator()).CreateSExt(before, words);
    }
    PHINode* phi = builder.CreatePHI(has_avx512_ ? mask_type_ : words, 2, "live");
    phi->addIncoming(before, end_.at(preheader));
    live_[loop] = phi;
    return has_avx512_ ? phi : nullptr;
  }
  BasicBlock* dominator = dominators_.getNode(&block)->getIDom()->getBlock();
  Loop* left = nullptr;  // the outermost loop that ends before this block
  for (Loop* other = loops_.getLoopFor(dominator); other && !other->contains(&block); other = other->getParentLoop())
    left = other;
  if (left) return masks_.at(left->getLoopPreheader());
  if (BasicBlock* before = block.getSinglePredecessor()) {
    Value* mask = masks_.at(before);
    if (!is_divergent_branch(*before)) return mask;
    return narrowed(mask, condition_for(*before, block, builder), builder);
  }
  return masks_.at(dominator);
}

void Widener::widen_block(BasicBlock& block) {
  IRBuilder<> builder(begin_[&block]);
  Loop* loop = loops_.getLoopFor(&block);
  bool is_header = loop && loop->getHeader() == &block;
  // Phis come first: those of the block, then those of masks.
  for (PHINode& phi : block.phis()) {
    Type* type = is_divergent(&phi) ? vector_of(phi.getType()) : phi.getType();
    (is_divergent(&phi) ? vectors_ : scalars_)[&phi] =
        builder.CreatePHI(type, phi.getNumIncomingValues(), phi.getName());
  }
  mask_ = mask_at(block, builder);
  if (is_header && is_divergent_loop(*loop)) keep_results(*loop, builder);
  if (!mask_) mask_ = mask_of_words(live_.at(loop), builder);
  masks_[&block] = mask_;
  for (Instruction& instruction : block)
    if (!isa<PHINode>(instruction) && !instruction.isTerminator()) widen_instruction(instruction, builder);
  end_[&block] = builder.GetInsertBlock();
  widen_terminator(block, builder);
}

// Whether the branch has a side that is shorter than asking for it. No memory is accessed there, and what lanes compute
// that do not want it is chosen away at the join.
bool Widener::runs_always(BasicBlock& fork) const {
  if (!is_divergent_branch(fork)) return false;
  Loop* loop = loops_.getLoopFor(&fork);
  if (loop && loop->getLoopLatch() == &fork) return false;
  auto* branch = cast<BranchInst>(fork.getTerminator());
  BasicBlock* join = join_of(*branch);
  BasicBlock* side = branch->getSuccessor(branch->getSuccessor(0) == join ? 1 : 0);
  return side->getSinglePredecessor() == &fork && side->getSingleSuccessor() == join && pred_size(join) == 2 &&
         loops_.getLoopFor(side) == loop && loops_.getLoopFor(join) == loop && side->phis().empty() &&
         side->size() <= kMostOfAShortSide + 1 &&
         all_of(*side, [](const Instruction& one) { return one.isTerminator() || is_cheap(one); });
}

// Of a block at which such a branch's side joins: the side.
BasicBlock* Widener::side_before(BasicBlock& block) const {
  BasicBlock* fork = dominators_.getNode(&block)->getIDom()->getBlock();
  if (!runs_always(*fork)) return nullptr;
  auto* branch = cast<BranchInst>(fork->getTerminator());
  if (join_of(*branch) != &block) return nullptr;
  return branch->getSuccessor(branch->getSuccessor(0) == &block ? 1 : 0);
}

std::optional<Widener::Result> Widener::result_of(Loop& loop, Instruction& value) const {
  BasicBlock* latch = loop.getLoopLatch();
  auto* choice = dyn_cast<PHINode>(&value);
  if (!choice || choice->getParent() != latch || latch == loop.getHeader()) return std::nullopt;
  BasicBlock* side = side_before(*latch);
  if (!side) return std::nullopt;
  BasicBlock* fork = side->getSinglePredecessor();
  auto* carried = dyn_cast<PHINode>(choice->getIncomingValueForBlock(fork));
  if (!carried || carried->getParent() != loop.getHeader()) return std::nullopt;
  Value* next = choice->getIncomingValueForBlock(side);
  // Lanes that go round have been in the side.
  auto* round = dyn_cast<PHINode>(carried->getIncomingValueForBlock(latch));
  if (!round || round->getParent() != latch || round->getIncomingValueForBlock(side) != next ||
      !isa<UndefValue>(round->getIncomingValueForBlock(fork)))
    return std::nullopt;
  return Result{carried, side, next};
}

// Values of a divergent loop that are wanted outside: each lane's is that of its last iteration.
void Widener::keep_results(Loop& loop, IRBuilder<>& builder) {
  for (BasicBlock* block : loop.blocks())
    for (Instruction& instruction : *block) {
      bool is_used = any_of(instruction.users(),
                            [&](const User* user) { return !loop.contains(cast<Instruction>(user)->getParent()); });
      if (!is_used) continue;
      if (PHINode* carrier = carrier_of(loop, instruction)) {
        keeping_.insert(carrier);
        kept_.push_back({&loop, &instruction, cast<PHINode>(vectors_[carrier]), nullptr});
        continue;
      }
      Type* type = vector_of(instruction.getType());
      if (std::optional<Result> result = result_of(loop, instruction)) {
        PHINode* phi;
        if (is_divergent(result->carried)) {
          phi = cast<PHINode>(vectors_[result->carried]);
        } else {
          BasicBlock* before = end_.at(loop.getLoopPreheader());
          IRBuilder<> before_builder(before->getTerminator());
          phi = builder.CreatePHI(type, 2, "kept");
          phi->addIncoming(vector(result->carried->getIncomingValueForBlock(loop.getLoopPreheader()), before_builder),
                           before);
        }
        kept_.push_back({&loop, &instruction, phi, nullptr, result->side, result->next});
        continue;
      }
      PHINode* kept = builder.CreatePHI(type, 2, "kept");
      kept->addIncoming(Constant::getNullValue(type), end_.at(loop.getLoopPreheader()));
      kept_.push_back({&loop, &instruction, kept, nullptr});
    }
}

// The value that goes round with the result: what a lane had when it left is there already.
PHINode* Widener::carrier_of(Loop& loop, Instruction& value) {
  for (PHINode& phi : loop.getHeader()->phis())
    if (is_divergent(&phi) && phi.getIncomingValueForBlock(loop.getLoopLatch()) == &value) return &phi;
  return nullptr;
}

void Widener::widen_terminator(BasicBlock& block, IRBuilder<>& builder) {
  Instruction* terminator = block.getTerminator();
  if (isa<ReturnInst>(terminator)) {
    builder.CreateRetVoid();
    return;
  }
  if (isa<UnreachableInst>(terminator)) {
    builder.CreateUnreachable();
    return;
  }
  auto* branch = cast<BranchInst>(terminator);
  if (!branch->isConditional()) {
    builder.CreateBr(begin_[branch->getSuccessor(0)]);
    return;
  }
  if (!is_divergent_branch(block)) {
    builder.CreateCondBr(scalar(branch->getCondition()), begin_[branch->getSuccessor(0)],
                         begin_[branch->getSuccessor(1)]);
    return;
  }
  Loop* loop = loops_.getLoopFor(&block);
  if (loop && loop->getLoopLatch() == &block) {
    close_loop(*loop, block, *branch, builder);
    return;
  }
  BasicBlock* join = join_of(*branch);
  BasicBlock* side = branch->getSuccessor(branch->getSuccessor(0) == join ? 1 : 0);
  if (runs_always(block)) {
    builder.CreateBr(begin_[side]);
    return;
  }
  Value* wanted = narrowed(mask_, condition_for(block, *side, builder), builder);
  builder.CreateCondBr(any(wanted, builder), begin_[side], begin_[join]);
}

void Widener::close_loop(Loop& loop, BasicBlock& latch, BranchInst& branch, IRBuilder<>& builder) {
  // Each lane that is in the loop decides here.
  PHINode* live = live_.at(&loop);
  if (mask_ != live && as_words_.lookup(mask_) != live) refuse("a loop whose end some of its threads do not reach");
  BasicBlock* header = loop.getHeader();
  BasicBlock* exit = branch.getSuccessor(branch.getSuccessor(0) == header ? 1 : 0);
  Value *stays = nullptr, *also = nullptr;
  // Where all that do not come from the side leave, the others' condition is left, which may be the same for them.
  auto* choice = dyn_cast<PHINode>(branch.getCondition());
  BasicBlock* side = choice && choice->getParent() == &latch && &latch != header ? side_before(latch) : nullptr;
  if (side) {
    bool leaves = branch.getSuccessor(0) == exit;
    auto* of_others = dyn_cast<ConstantInt>(choice->getIncomingValueForBlock(side->getSinglePredecessor()));
    if (of_others && of_others->isOne() == leaves) {
      Value* condition = choice->getIncomingValueForBlock(side);
      stays = masks_.at(side);
      if (is_divergent(condition)) {
        Value* lanes = vector(condition, builder);
        stays = narrowed(stays, leaves ? builder.CreateNot(lanes) : lanes, builder);
      } else {
        also = leaves ? builder.CreateNot(scalar(condition)) : scalar(condition);
      }
    }
  }
  if (!stays) stays = narrowed(mask_, condition_for(latch, *header, builder), builder);
  Value* words = as_words_.lookup(stays);
  live->addIncoming(words ? words : stays, builder.GetInsertBlock());
  for (Kept& kept : kept_)
    if (kept.loop == &loop && kept.side) {
      kept.last = builder.CreateSelect(masks_.at(kept.side), vector(kept.next, builder), kept.phi);
      Result result = *result_of(loop, *kept.value);
      if (is_divergent(result.carried))
        carried_[result.carried] = kept.last;
      else
        kept.phi->addIncoming(kept.last, builder.GetInsertBlock());
    }
  for (PHINode& phi : header->phis())
    if (is_divergent(&phi) && !carried_.contains(&phi)) {
      Value* next = vector(phi.getIncomingValueForBlock(&latch), builder);
      // A lane that has left goes on with values that nobody asks for.
      carried_[&phi] = keeping_.contains(&phi) ? builder.CreateSelect(mask_, next, vectors_[&phi]) : next;
    }
  for (Kept& kept : kept_)
    if (kept.loop == &loop && !kept.side) {
      if (PHINode* carrier = carrier_of(loop, *kept.value)) {
        kept.last = carried_[carrier];
        continue;
      }
      kept.last = builder.CreateSelect(mask_, vector(kept.value, builder), kept.phi);
      kept.phi->addIncoming(kept.last, builder.GetInsertBlock());
    }
  end_[&latch] = builder.GetInsertBlock();
  Value* goes_on = any(stays, builder);
  // Where no lane is in the side, what it computes may be poison.
  if (also) goes_on = builder.CreateLogicalAnd(goes_on, also);
  builder.CreateCondBr(goes_on, begin_[header], begin_[exit]);
}

void Widener::complete_phis(BasicBlock& block) {
  if (block.phis().empty()) return;
  BasicBlock* side = &block == &from_.getEntryBlock() ? nullptr : side_before(block);
  BasicBlock* never = side ? side->getSinglePredecessor() : nullptr;  // no way leads from there any more
  for (PHINode& phi : block.phis()) {
    if (!is_divergent(&phi)) {
      auto* widened = cast<PHINode>(scalars_[&phi]);
      for (unsigned i = 0; i < phi.getNumIncomingValues(); ++i)
        if (phi.getIncomingBlock(i) != never)
          widened->addIncoming(scalar(phi.getIncomingValue(i)), end_[phi.getIncomingBlock(i)]);
      continue;
    }
    auto* widened = cast<PHINode>(vectors_[&phi]);
    for (unsigned i = 0; i < phi.getNumIncomingValues(); ++i) {
      BasicBlock* before = phi.getIncomingBlock(i);
      if (before == never) continue;
      IRBuilder<> builder(end_[before]->getTerminator());
      widened->addIncoming(incoming(phi, *before, builder), end_[before]);
    }
  }
}

Value* Widener::incoming(PHINode& phi, BasicBlock& before, IRBuilder<>& builder) {
  BasicBlock& block = *phi.getParent();
  Value* value = phi.getIncomingValueForBlock(&before);
  Loop* loop = loops_.getLoopFor(&block);
  bool is_header = loop && loop->getHeader() == &block;
  if (is_header) {
    auto found = carried_.find(&phi);
    return &before == loop->getLoopLatch() && found != carried_.end() ? found->second : vector(value, builder);
  }
  // Out of a loop: what each lane had when it left.
  for (const Kept& kept : kept_)
    if (kept.value == value && kept.loop->contains(&before) && !kept.loop->contains(&block)) return kept.last;
  // At the join of a divergent branch, from its side: what the lanes that did not take it had.
  BasicBlock* fork = dominators_.getNode(&block)->getIDom()->getBlock();
  bool joins = &before != fork && is_divergent_branch(*fork) && loops_.getLoopFor(fork) == loop &&
               join_of(*cast<BranchInst>(fork->getTerminator())) == &block;
  if (!joins) return vector(value, builder);
  if (phi.getNumIncomingValues() != 2 || phi.getBasicBlockIndex(fork) < 0) refuse("a join of more than two sides");
  // Structuring gives what nobody asks for to the lanes that another branch takes elsewhere.
  if (isa<UndefValue>(phi.getIncomingValueForBlock(fork))) return vector(value, builder);
  Value* otherwise = vector(phi.getIncomingValueForBlock(fork), builder);
  return builder.CreateSelect(masks_.at(&before), vector(value, builder), otherwise);
}

// What the code that runs has made: both make as many values.
Widener::Values Widener::either(const Fork& fork, IRBuilder<>& builder, Maker one, Maker other) {
  BasicBlock* sides[] = {BasicBlock::Create(context_, fork.one, &to_), BasicBlock::Create(context_, fork.other, &to_)};
  BasicBlock* after = BasicBlock::Create(context_, "", &to_);
  sides[0]->moveAfter(builder.GetInsertBlock());
  sides[1]->moveAfter(sides[0]);
  after->moveAfter(sides[1]);
  builder.CreateCondBr(fork.condition, sides[0], sides[1], fork.is_likely ? likely_first(context_) : nullptr);
  Values made[2];
  for (unsigned i : {0, 1}) {
    builder.SetInsertPoint(sides[i]);
    made[i] = i == 0 ? one() : other();
    sides[i] = builder.GetInsertBlock();
    builder.CreateBr(after);
  }
  builder.SetInsertPoint(after);
  Values results;
  for (auto [result, another] : zip_equal(made[0], made[1])) {
    PHINode* phi = builder.CreatePHI(result->getType(), 2);
    phi->addIncoming(result, sides[0]);
    phi->addIncoming(another, sides[1]);
    results.push_back(phi);
  }
  return results;
}

}  // namespace kiln::widening
