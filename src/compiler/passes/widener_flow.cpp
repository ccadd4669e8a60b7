#include "compiler/passes/widener.h"

namespace kiln::widening {

Value* Widener::condition_for(const BasicBlock& from, const BasicBlock& to, IRBuilder<>& builder) {
  auto* branch = cast<BranchInst>(from.getTerminator());
  Value* condition = vector(branch->getCondition(), builder);
  return branch->getSuccessor(0) == &to ? condition : builder.CreateNot(condition);
}

// The lanes of the mask for which the condition holds. In others it may be poison, which an `and` would let through.
Value* Widener::narrowed(Value* mask, Value* condition, IRBuilder<>& builder) {
  return builder.CreateLogicalAnd(mask, condition);
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
    PHINode* phi = builder.CreatePHI(mask_type_, 2, "live");
    phi->addIncoming(masks_.at(preheader), end_.at(preheader));
    return live_[loop] = phi;
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
    Type* type = differs(&phi) ? vector_of(phi.getType()) : phi.getType();
    (differs(&phi) ? vectors_ : scalars_)[&phi] = builder.CreatePHI(type, phi.getNumIncomingValues(), phi.getName());
  }
  mask_ = masks_[&block] = mask_at(block, builder);
  if (is_header && is_divergent_loop(*loop)) keep_results(*loop, builder);
  for (Instruction& instruction : block)
    if (!isa<PHINode>(instruction) && !instruction.isTerminator()) widen_instruction(instruction, builder);
  end_[&block] = builder.GetInsertBlock();
  widen_terminator(block, builder);
}

// Values of a divergent loop that are wanted outside: each lane's is that of its last iteration.
void Widener::keep_results(Loop& loop, IRBuilder<>& builder) {
  for (BasicBlock* block : loop.blocks())
    for (Instruction& instruction : *block) {
      bool is_wanted = any_of(instruction.users(),
                              [&](const User* user) { return !loop.contains(cast<Instruction>(user)->getParent()); });
      if (!is_wanted) continue;
      if (PHINode* carrier = carrier_of(loop, instruction)) {
        keeping_.insert(carrier);
        kept_.push_back({&loop, &instruction, cast<PHINode>(vectors_[carrier]), nullptr});
        continue;
      }
      Type* type = vector_of(instruction.getType());
      PHINode* kept = builder.CreatePHI(type, 2, "kept");
      kept->addIncoming(Constant::getNullValue(type), end_.at(loop.getLoopPreheader()));
      kept_.push_back({&loop, &instruction, kept, nullptr});
    }
}

// The value that goes round with the result: what a lane had when it left is there already.
PHINode* Widener::carrier_of(Loop& loop, Instruction& value) {
  for (PHINode& phi : loop.getHeader()->phis())
    if (differs(&phi) && phi.getIncomingValueForBlock(loop.getLoopLatch()) == &value) return &phi;
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
  Value* wanted = narrowed(mask_, condition_for(block, *side, builder), builder);
  builder.CreateCondBr(any(wanted, builder), begin_[side], begin_[join]);
}

void Widener::close_loop(Loop& loop, BasicBlock& latch, BranchInst& branch, IRBuilder<>& builder) {
  // Each lane that is in the loop decides here.
  if (mask_ != live_.at(&loop)) refuse("a loop whose end some of its threads do not reach");
  BasicBlock* header = loop.getHeader();
  BasicBlock* exit = branch.getSuccessor(branch.getSuccessor(0) == header ? 1 : 0);
  Value* stays = narrowed(mask_, condition_for(latch, *header, builder), builder);
  live_[&loop]->addIncoming(stays, builder.GetInsertBlock());
  for (PHINode& phi : header->phis())
    if (differs(&phi)) {
      Value* next = vector(phi.getIncomingValueForBlock(&latch), builder);
      // A lane that has left goes on with values that nobody asks for.
      carried_[&phi] = keeping_.contains(&phi) ? builder.CreateSelect(mask_, next, vectors_[&phi]) : next;
    }
  for (Kept& kept : kept_)
    if (kept.loop == &loop) {
      if (PHINode* carrier = carrier_of(loop, *kept.value)) {
        kept.last = carried_[carrier];
        continue;
      }
      kept.last = builder.CreateSelect(mask_, vector(kept.value, builder), kept.phi);
      kept.phi->addIncoming(kept.last, builder.GetInsertBlock());
    }
  end_[&latch] = builder.GetInsertBlock();
  builder.CreateCondBr(any(stays, builder), begin_[header], begin_[exit]);
}

void Widener::complete_phis(BasicBlock& block) {
  for (PHINode& phi : block.phis()) {
    if (!differs(&phi)) {
      auto* widened = cast<PHINode>(scalars_[&phi]);
      for (unsigned i = 0; i < phi.getNumIncomingValues(); ++i)
        widened->addIncoming(scalar(phi.getIncomingValue(i)), end_[phi.getIncomingBlock(i)]);
      continue;
    }
    auto* widened = cast<PHINode>(vectors_[&phi]);
    for (unsigned i = 0; i < phi.getNumIncomingValues(); ++i) {
      BasicBlock* before = phi.getIncomingBlock(i);
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

}  // namespace kiln::widening
