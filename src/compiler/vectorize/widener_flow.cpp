#include "compiler/vectorize/widener_flow.h"

#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/CFG.h>

#include "compiler/ir/guard_zeros.h"

namespace kiln::widening {

namespace {

// A side that costs more runs only if any lane takes it. A divergent instruction has some four registers, each of which
// costs as much as a uniform instruction.
constexpr unsigned kMaxIfConverted = 64, kDivergent = 4;

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

ControlFlow::ControlFlow(ThreadCode& code, bool is_full, Lanes& lanes)
    : from_(code.function),
      flow_(code.flow),
      loops_(code.loops),
      dominators_(code.dominators),
      isa_(lanes.vector_isa()),
      is_full_(is_full),
      lanes_(lanes) {}

void ControlFlow::widen(WidenInstruction widen_instruction) {
  ReversePostOrderTraversal<Function*> order(&from_);
  for (BasicBlock* block : order)
    begin_[block] = BasicBlock::Create(lanes_.context(), block->getName(), &lanes_.function());
  for (BasicBlock* block : post_order(&from_))  // inner branches first
    if (std::optional<ConvertedSide> side = converted_side(*block)) {
      if_converted_.insert(side->blocks.begin(), side->blocks.end());
      converted_[block] = std::move(*side);
    }
  for (BasicBlock* block : order) widen_block(*block, widen_instruction);
  for (BasicBlock* block : order) complete_phis(*block);
}

Value* ControlFlow::condition_for(const BasicBlock& from, const BasicBlock& to, IRBuilder<>& builder) {
  auto* branch = cast<BranchInst>(from.getTerminator());
  Value* condition = lanes_.vector(branch->getCondition(), builder);
  return branch->getSuccessor(0) == &to ? condition : builder.CreateNot(condition);
}

Value* ControlFlow::mask_at(BasicBlock& block, IRBuilder<>& builder) {
  if (&block == &from_.getEntryBlock()) {
    if (is_full_) return Constant::getAllOnesValue(vector_of(Type::getInt1Ty(lanes_.context())));
    Value* lanes = lanes_.function().getArg(lanes_.function().arg_size() - 1);
    return builder.CreateICmpULT(lane_numbers(builder.getInt32Ty()), builder.CreateVectorSplat(kLanes, lanes), "mask");
  }
  Loop* loop = loops_.getLoopFor(&block);
  if (loop && loop->getHeader() == &block) {
    BasicBlock* preheader = loop->getLoopPreheader();
    if (!flow_.is_divergent_loop(*loop)) return masks_.at(preheader);
    Value* before = masks_.at(preheader);
    Type* words = vector_of(builder.getInt32Ty());
    if (!isa_.has_mask_registers) {
      Value* known = lanes_.words_of_mask(before);
      before = known ? known : IRBuilder<>(end_.at(preheader)->getTerminator()).CreateSExt(before, words);
    }
    PHINode* phi =
        builder.CreatePHI(isa_.has_mask_registers ? vector_of(Type::getInt1Ty(lanes_.context())) : words, 2, "live");
    phi->addIncoming(before, end_.at(preheader));
    loop_masks_[loop] = phi;
    return isa_.has_mask_registers ? phi : nullptr;
  }
  BasicBlock* dominator = dominators_.getNode(&block)->getIDom()->getBlock();
  Loop* left = nullptr;  // the outermost loop that ends before this block
  for (Loop* other = loops_.getLoopFor(dominator); other && !other->contains(&block); other = other->getParentLoop())
    left = other;
  if (left) return masks_.at(left->getLoopPreheader());
  if (BasicBlock* before = block.getSinglePredecessor()) {
    Value* mask = masks_.at(before);
    if (!flow_.is_divergent_branch(*before)) return mask;
    return lanes_.narrowed(mask, condition_for(*before, block, builder), builder);
  }
  return masks_.at(dominator);
}

void ControlFlow::widen_block(BasicBlock& block, WidenInstruction widen_instruction) {
  IRBuilder<> builder(begin_[&block]);
  Loop* loop = loops_.getLoopFor(&block);
  bool is_header = loop && loop->getHeader() == &block;
  // Phis come first: the block's, then those of masks.
  for (PHINode& phi : block.phis()) {
    Type* type = lanes_.is_divergent(&phi) ? vector_of(phi.getType()) : phi.getType();
    PHINode* widened = builder.CreatePHI(type, phi.getNumIncomingValues(), phi.getName());
    if (lanes_.is_divergent(&phi))
      lanes_.set_vector(&phi, widened);
    else
      lanes_.set_scalar(&phi, widened);
  }
  lanes_.set_mask(mask_at(block, builder));
  if (is_header && flow_.is_divergent_loop(*loop)) create_live_out_phis(*loop, builder);
  if (!lanes_.mask()) lanes_.set_mask(lanes_.mask_of_words(loop_masks_.at(loop), builder));
  masks_[&block] = lanes_.mask();
  lanes_.begin_scope();
  for (Instruction& instruction : block)
    if (!isa<PHINode>(instruction) && !instruction.isTerminator()) widen_instruction(instruction, builder);
  end_[&block] = builder.GetInsertBlock();
  widen_terminator(block, builder);
}

// A load that reads zeros if its address is out of bounds, and if no lane is active (Widener::copy_load()).
bool ControlFlow::is_guarded_uniform_load(const Instruction& instruction) const {
  auto* load = dyn_cast<LoadInst>(&instruction);
  if (!load || !load->isSimple() || lanes_.is_divergent(load)) return false;
  auto* guard = dyn_cast<SelectInst>(load->getPointerOperand());
  return guard && is_zeros(guard->getFalseValue());
}

std::optional<unsigned> ControlFlow::cost_without_test(const BasicBlock& block) const {
  unsigned cost = 0;
  for (const Instruction& instruction : block) {
    if (instruction.isTerminator()) break;
    if (!isa<PHINode>(instruction) && !is_cheap(instruction) && !is_guarded_uniform_load(instruction))
      return std::nullopt;
    cost += lanes_.is_divergent(&instruction) ? kDivergent : 1;
    if (cost > kMaxIfConverted) return std::nullopt;
  }
  return cost;
}

// The side of a divergent branch, if it can run without a test. It accesses no memory except by guarded uniform loads,
// its branches are if-converted, and selects at the join discard the results of lanes that do not take it.
std::optional<ControlFlow::ConvertedSide> ControlFlow::converted_side(BasicBlock& branch_block) const {
  if (!flow_.is_divergent_branch(branch_block)) return std::nullopt;
  Loop* loop = loops_.getLoopFor(&branch_block);
  if (loop && loop->getLoopLatch() == &branch_block) return std::nullopt;
  auto* branch = cast<BranchInst>(branch_block.getTerminator());
  BasicBlock* join = flow_.join_of(*branch);
  if (pred_size(join) != 2 || loops_.getLoopFor(join) != loop) return std::nullopt;
  BasicBlock* block = branch->getSuccessor(branch->getSuccessor(0) == join ? 1 : 0);
  if (block->getSinglePredecessor() != &branch_block) return std::nullopt;
  ConvertedSide side{{}, nullptr, 0};
  for (;;) {
    if (loops_.getLoopFor(block) != loop) return std::nullopt;
    std::optional<unsigned> cost = cost_without_test(*block);
    if (!cost) return std::nullopt;
    side.blocks.push_back(block);
    side.cost += *cost;
    auto inner = converted_.find(block);
    if (inner != converted_.end()) side.cost += inner->second.cost;
    if (side.cost > kMaxIfConverted) return std::nullopt;
    if (inner != converted_.end()) {
      block = inner->second.last->getSingleSuccessor();
      continue;
    }
    BasicBlock* next = block->getSingleSuccessor();
    if (next == join) {
      side.last = block;
      return side;
    }
    if (!next || next->getSinglePredecessor() != block) return std::nullopt;
    block = next;
  }
}

// The last block of the if-converted side that joins at the block, or null.
BasicBlock* ControlFlow::if_converted_side(BasicBlock& block) const {
  auto found = converted_.find(dominators_.getNode(&block)->getIDom()->getBlock());
  return found != converted_.end() && found->second.last->getSingleSuccessor() == &block ? found->second.last : nullptr;
}

std::optional<ControlFlow::CarriedResult> ControlFlow::carried_result_of(Loop& loop, Instruction& value) const {
  BasicBlock* latch = loop.getLoopLatch();
  auto* merged = dyn_cast<PHINode>(&value);
  if (!merged || merged->getParent() != latch || latch == loop.getHeader()) return std::nullopt;
  BasicBlock* side = if_converted_side(*latch);
  if (!side) return std::nullopt;
  BasicBlock* branch_block = dominators_.getNode(latch)->getIDom()->getBlock();
  auto* carried = dyn_cast<PHINode>(merged->getIncomingValueForBlock(branch_block));
  if (!carried || carried->getParent() != loop.getHeader()) return std::nullopt;
  Value* next = merged->getIncomingValueForBlock(side);
  // Lanes that stay in the loop have taken the side.
  auto* back_edge_phi = dyn_cast<PHINode>(carried->getIncomingValueForBlock(latch));
  if (!back_edge_phi || back_edge_phi->getParent() != latch || back_edge_phi->getIncomingValueForBlock(side) != next ||
      !isa<UndefValue>(back_edge_phi->getIncomingValueForBlock(branch_block)))
    return std::nullopt;
  return CarriedResult{carried, side, next};
}

// Live-out values of a divergent loop: each lane's value comes from its last iteration.
void ControlFlow::create_live_out_phis(Loop& loop, IRBuilder<>& builder) {
  for (BasicBlock* block : loop.blocks())
    for (Instruction& instruction : *block) {
      bool is_used = any_of(instruction.users(),
                            [&](const User* user) { return !loop.contains(cast<Instruction>(user)->getParent()); });
      if (!is_used) continue;
      if (PHINode* carrier = carrier_of(loop, instruction)) {
        live_out_phis_.insert(carrier);
        live_outs_.push_back({&loop, &instruction, cast<PHINode>(lanes_.known_vector(carrier)), nullptr});
        continue;
      }
      Type* type = vector_of(instruction.getType());
      if (std::optional<CarriedResult> result = carried_result_of(loop, instruction)) {
        PHINode* phi;
        if (lanes_.is_divergent(result->carried)) {
          phi = cast<PHINode>(lanes_.known_vector(result->carried));
        } else {
          BasicBlock* before = end_.at(loop.getLoopPreheader());
          IRBuilder<> before_builder(before->getTerminator());
          phi = builder.CreatePHI(type, 2, "kept");
          phi->addIncoming(
              lanes_.vector(result->carried->getIncomingValueForBlock(loop.getLoopPreheader()), before_builder),
              before);
        }
        live_outs_.push_back({&loop, &instruction, phi, nullptr, result->side, result->next});
        continue;
      }
      PHINode* live_out = builder.CreatePHI(type, 2, "kept");
      live_out->addIncoming(Constant::getNullValue(type), end_.at(loop.getLoopPreheader()));
      live_outs_.push_back({&loop, &instruction, live_out, nullptr});
    }
}

// The header phi that carries the value: it already keeps what a lane had when it left.
PHINode* ControlFlow::carrier_of(Loop& loop, Instruction& value) const {
  for (PHINode& phi : loop.getHeader()->phis())
    if (lanes_.is_divergent(&phi) && phi.getIncomingValueForBlock(loop.getLoopLatch()) == &value) return &phi;
  return nullptr;
}

void ControlFlow::widen_terminator(BasicBlock& block, IRBuilder<>& builder) {
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
  if (!flow_.is_divergent_branch(block)) {
    builder.CreateCondBr(lanes_.scalar(branch->getCondition()), begin_[branch->getSuccessor(0)],
                         begin_[branch->getSuccessor(1)]);
    return;
  }
  Loop* loop = loops_.getLoopFor(&block);
  if (loop && loop->getLoopLatch() == &block) {
    close_loop(*loop, block, *branch, builder);
    return;
  }
  BasicBlock* join = flow_.join_of(*branch);
  BasicBlock* side = branch->getSuccessor(branch->getSuccessor(0) == join ? 1 : 0);
  if (converted_.contains(&block)) {
    builder.CreateBr(begin_[side]);
    return;
  }
  Value* side_mask = lanes_.narrowed(lanes_.mask(), condition_for(block, *side, builder), builder);
  builder.CreateCondBr(lanes_.any(side_mask, builder), begin_[side], begin_[join]);
}

void ControlFlow::close_loop(Loop& loop, BasicBlock& latch, BranchInst& branch, IRBuilder<>& builder) {
  // Each lane that is in the loop must reach the latch.
  PHINode* loop_mask = loop_masks_.at(&loop);
  if (lanes_.mask() != loop_mask && lanes_.words_of_mask(lanes_.mask()) != loop_mask)
    refuse("a loop whose end some of its threads do not reach");
  BasicBlock* header = loop.getHeader();
  BasicBlock* exit = branch.getSuccessor(branch.getSuccessor(0) == header ? 1 : 0);
  Value *staying = nullptr, *uniform_condition = nullptr;
  // If all lanes that skip the side leave, only the side's own condition matters, which may be uniform.
  auto* condition_phi = dyn_cast<PHINode>(branch.getCondition());
  BasicBlock* side =
      condition_phi && condition_phi->getParent() == &latch && &latch != header ? if_converted_side(latch) : nullptr;
  if (side) {
    bool exits_if_true = branch.getSuccessor(0) == exit;
    auto* skipping_condition = dyn_cast<ConstantInt>(
        condition_phi->getIncomingValueForBlock(dominators_.getNode(&latch)->getIDom()->getBlock()));
    if (skipping_condition && skipping_condition->isOne() == exits_if_true) {
      Value* condition = condition_phi->getIncomingValueForBlock(side);
      staying = masks_.at(side);
      if (lanes_.is_divergent(condition)) {
        Value* lanes = lanes_.vector(condition, builder);
        staying = lanes_.narrowed(staying, exits_if_true ? builder.CreateNot(lanes) : lanes, builder);
      } else {
        uniform_condition = exits_if_true ? builder.CreateNot(lanes_.scalar(condition)) : lanes_.scalar(condition);
      }
    }
  }
  if (!staying) staying = lanes_.narrowed(lanes_.mask(), condition_for(latch, *header, builder), builder);
  Value* words = lanes_.words_of_mask(staying);
  loop_mask->addIncoming(words ? words : staying, builder.GetInsertBlock());
  for (LiveOut& live_out : live_outs_)
    if (live_out.loop == &loop && live_out.side) {
      live_out.last =
          builder.CreateSelect(masks_.at(live_out.side), lanes_.vector(live_out.next, builder), live_out.phi);
      CarriedResult result = *carried_result_of(loop, *live_out.value);
      if (lanes_.is_divergent(result.carried))
        carried_[result.carried] = live_out.last;
      else
        live_out.phi->addIncoming(live_out.last, builder.GetInsertBlock());
    }
  for (PHINode& phi : header->phis())
    if (lanes_.is_divergent(&phi) && !carried_.contains(&phi)) {
      Value* next = lanes_.vector(phi.getIncomingValueForBlock(&latch), builder);
      // A lane that has left continues with dead values.
      carried_[&phi] =
          live_out_phis_.contains(&phi) ? builder.CreateSelect(lanes_.mask(), next, lanes_.known_vector(&phi)) : next;
    }
  for (LiveOut& live_out : live_outs_)
    if (live_out.loop == &loop && !live_out.side) {
      if (PHINode* carrier = carrier_of(loop, *live_out.value)) {
        live_out.last = carried_[carrier];
        continue;
      }
      live_out.last = builder.CreateSelect(lanes_.mask(), lanes_.vector(live_out.value, builder), live_out.phi);
      live_out.phi->addIncoming(live_out.last, builder.GetInsertBlock());
    }
  end_[&latch] = builder.GetInsertBlock();
  Value* continues = lanes_.any(staying, builder);
  // If no lane is in the side, its values may be poison.
  if (uniform_condition) continues = builder.CreateLogicalAnd(continues, uniform_condition);
  builder.CreateCondBr(continues, begin_[header], begin_[exit]);
}

void ControlFlow::complete_phis(BasicBlock& block) {
  if (block.phis().empty()) return;
  BasicBlock* side = &block == &from_.getEntryBlock() ? nullptr : if_converted_side(block);
  // The branch's edge to the join no longer exists.
  BasicBlock* removed_pred = side ? dominators_.getNode(&block)->getIDom()->getBlock() : nullptr;
  for (PHINode& phi : block.phis()) {
    if (!lanes_.is_divergent(&phi)) {
      auto* widened = cast<PHINode>(lanes_.scalar(&phi));
      for (unsigned i = 0; i < phi.getNumIncomingValues(); ++i)
        if (phi.getIncomingBlock(i) != removed_pred)
          widened->addIncoming(lanes_.scalar(phi.getIncomingValue(i)), end_[phi.getIncomingBlock(i)]);
      continue;
    }
    auto* widened = cast<PHINode>(lanes_.known_vector(&phi));
    for (unsigned i = 0; i < phi.getNumIncomingValues(); ++i) {
      BasicBlock* before = phi.getIncomingBlock(i);
      if (before == removed_pred) continue;
      IRBuilder<> builder(end_[before]->getTerminator());
      widened->addIncoming(incoming(phi, *before, builder), end_[before]);
    }
  }
}

Value* ControlFlow::incoming(PHINode& phi, BasicBlock& before, IRBuilder<>& builder) {
  BasicBlock& block = *phi.getParent();
  Value* value = phi.getIncomingValueForBlock(&before);
  Loop* loop = loops_.getLoopFor(&block);
  bool is_header = loop && loop->getHeader() == &block;
  if (is_header) {
    auto found = carried_.find(&phi);
    return &before == loop->getLoopLatch() && found != carried_.end() ? found->second : lanes_.vector(value, builder);
  }
  // Out of a loop: each lane's value when it left.
  for (const LiveOut& live_out : live_outs_)
    if (live_out.value == value && live_out.loop->contains(&before) && !live_out.loop->contains(&block))
      return live_out.last;
  // From a divergent branch's side to its join: lanes that did not take the side keep the other value.
  BasicBlock* branch_block = dominators_.getNode(&block)->getIDom()->getBlock();
  bool is_join = &before != branch_block && flow_.is_divergent_branch(*branch_block) &&
                 loops_.getLoopFor(branch_block) == loop &&
                 flow_.join_of(*cast<BranchInst>(branch_block->getTerminator())) == &block;
  if (!is_join) return lanes_.vector(value, builder);
  if (phi.getNumIncomingValues() != 2 || phi.getBasicBlockIndex(branch_block) < 0)
    refuse("a join of more than two sides");
  // Structuring gives an undefined value, which is dead, to lanes that another branch takes elsewhere.
  if (isa<UndefValue>(phi.getIncomingValueForBlock(branch_block))) return lanes_.vector(value, builder);
  Value* otherwise = lanes_.vector(phi.getIncomingValueForBlock(branch_block), builder);
  return builder.CreateSelect(masks_.at(&before), lanes_.vector(value, builder), otherwise);
}

}  // namespace kiln::widening
