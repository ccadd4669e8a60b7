#include "compiler/codegen/lane_loop_splitting.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SetVector.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/PatternMatch.h>

#include "compiler/ir/simdgroup.h"

namespace kiln {
namespace {

using namespace llvm;

constexpr unsigned kParts = 2, kPartLanes = kLanes / kParts;

bool is_wide(const Type* type) {
  const auto* vector = dyn_cast<FixedVectorType>(type);
  return vector && vector->getNumElements() == kLanes;
}

// The insertelement of a splat.
bool is_splat_insertion(const Instruction& instruction) {
  const auto* insertion = dyn_cast<InsertElementInst>(&instruction);
  return insertion && all_of(insertion->users(), [](const User* user) { return getSplatValue(cast<Value>(user)); });
}

// A test whether any lane has its bit set, or a number other than 0.
bool is_predicate(const Instruction& instruction) {
  const Value* tested = nullptr;
  if (const auto* bits = dyn_cast<BitCastInst>(&instruction)) tested = bits->getOperand(0);
  if (const auto* call = dyn_cast<IntrinsicInst>(&instruction))
    if (call->getIntrinsicID() == Intrinsic::vector_reduce_or) tested = call->getArgOperand(0);
  if (!tested || !is_wide(tested->getType()) || instruction.getType()->isVectorTy()) return false;
  if (isa<BitCastInst>(instruction) && !tested->getType()->getScalarType()->isIntegerTy(1)) return false;
  return all_of(instruction.users(), [](const User* user) {
    return match(user, PatternMatch::m_c_ICmp(PatternMatch::m_Value(), PatternMatch::m_Zero())) &&
           cast<ICmpInst>(user)->isEquality();
  });
}

// Whether each lane's result depends on that lane alone.
bool is_lane_wise(const Instruction& instruction) {
  auto is_wide_or_alone = [](const Use& use) { return is_wide(use->getType()) || !use->getType()->isVectorTy(); };
  if (!is_wide(instruction.getType()) || !all_of(instruction.operands(), is_wide_or_alone)) return false;
  if (isa<BinaryOperator, UnaryOperator, CmpInst, SelectInst, FreezeInst>(instruction)) return true;
  if (isa<CastInst>(instruction)) return is_wide(instruction.getOperand(0)->getType());
  const auto* call = dyn_cast<IntrinsicInst>(&instruction);
  return call && isTriviallyVectorizable(call->getIntrinsicID()) &&
         all_of(call->args(), [](const Use& argument) { return is_wide(argument->getType()); });
}

class LoopSplitter {
 public:
  LoopSplitter(Loop& loop, const VectorIsa& vector_isa, bool may_have_collectives)
      : loop_(loop), block_(loop.getHeader()), isa_(vector_isa), may_have_collectives_(may_have_collectives) {}

  bool run() {
    before_ = loop_.getLoopPreheader();
    auto* branch = dyn_cast<BranchInst>(block_->getTerminator());
    if (loop_.getNumBlocks() != 1 || !before_ || !branch || !branch->isConditional() || !can_be_split()) return false;
    BasicBlock* exit = branch->getSuccessor(branch->getSuccessor(0) == block_ ? 1 : 0);
    Function* function = block_->getParent();
    LLVMContext& context = function->getContext();
    BasicBlock* end = before_;
    for (unsigned part = 0; part < kParts; ++part) {
      BasicBlock* after = BasicBlock::Create(context, "part", function, exit);
      BasicBlock* loop = make_loop(part, *end, *after);
      if (part == 0)
        before_->getTerminator()->replaceSuccessorWith(block_, loop);
      else
        BranchInst::Create(loop, end);
      end = after;
    }
    IRBuilder<> builder(BranchInst::Create(exit, end));
    for (Instruction& instruction : *block_) {
      Value* whole = nullptr;
      for (Use& use : make_early_inc_range(instruction.uses())) {
        auto* user = cast<Instruction>(use.getUser());
        if (user->getParent() == block_) continue;
        if (!whole) {
          SmallVector<Value*> parts;
          for (auto& made : made_) parts.push_back(made.lookup(&instruction));
          whole = concatenateVectors(builder, parts);
        }
        use.set(whole);
      }
    }
    exit->replacePhiUsesWith(block_, end);
    for (Instruction& instruction : *block_) instruction.dropAllReferences();
    block_->eraseFromParent();
    return true;
  }

 private:
  bool can_be_split() const {
    SmallSetVector<const Value*, 16> kept;
    unsigned lane_wise = 0, uniform = 0;
    for (Instruction& instruction : *block_) {
      bool is_used_outside =
          any_of(instruction.users(), [&](const User* user) { return cast<Instruction>(user)->getParent() != block_; });
      if (is_used_outside && (!is_wide(instruction.getType()) || is_splat_insertion(instruction))) return false;
      if (isa<PHINode>(instruction)) {
        if (!is_wide(instruction.getType()) && instruction.getType()->isVectorTy()) return false;
        if (is_wide(instruction.getType())) kept.insert(&instruction);
        continue;
      }
      if (instruction.isTerminator()) continue;
      // Two loads of an address must give the same value.
      auto* load = dyn_cast<LoadInst>(&instruction);
      if (instruction.mayHaveSideEffects() || (instruction.mayReadFromMemory() && !(load && load->isSimple())))
        return false;
      bool is_uniform = none_of(instruction.operands(), [](const Use& use) { return use->getType()->isVectorTy(); }) &&
                        !instruction.getType()->isVectorTy();
      if (is_uniform) {
        if (isa<CallInst>(instruction) && !isa<IntrinsicInst>(instruction)) return false;
        ++uniform;
        continue;
      }
      if (getSplatValue(&instruction) || is_splat_insertion(instruction)) continue;
      if (is_predicate(instruction)) {
        if (may_have_collectives_) return false;
        continue;
      }
      if (!is_lane_wise(instruction)) return false;
      ++lane_wise;
      for (const Use& use : instruction.operands())
        if (is_from_outside(use) && !isa<Constant>(use.get()) && is_wide(use->getType()) && !getSplatValue(use.get()))
          kept.insert(use.get());
    }
    uint64_t registers = 0;
    for (const Value* value : kept)
      registers += std::max<uint64_t>(1, value->getType()->getPrimitiveSizeInBits() / 8 / isa_.register_bytes);
    return registers > isa_.num_registers && lane_wise >= uniform;
  }

  bool is_from_outside(const Value* value) const {
    const auto* instruction = dyn_cast<Instruction>(value);
    return !instruction || instruction->getParent() != block_;
  }

  static Type* part_of(Type* type) {
    return is_wide(type) ? FixedVectorType::get(type->getScalarType(), kPartLanes) : type;
  }

  BasicBlock* make_loop(unsigned which, BasicBlock& before, BasicBlock& after) {
    BasicBlock* copy = BasicBlock::Create(block_->getContext(), block_->getName(), block_->getParent(), &after);
    IRBuilder<> builder(copy), outside(block_->getContext());
    if (Instruction* terminator = before.getTerminator())
      outside.SetInsertPoint(terminator);
    else
      outside.SetInsertPoint(&before);
    make_part(which, builder, outside);
    auto* branch = cast<BranchInst>(block_->getTerminator()->clone());
    branch->setCondition(part_of(branch->getCondition(), which, outside));
    for (unsigned i = 0; i < 2; ++i) branch->setSuccessor(i, branch->getSuccessor(i) == block_ ? copy : &after);
    builder.Insert(branch);
    for (PHINode& phi : block_->phis()) {
      auto* one = cast<PHINode>(made_[which][&phi]);
      one->addIncoming(part_of(phi.getIncomingValueForBlock(before_), which, outside), &before);
      one->addIncoming(part_of(phi.getIncomingValueForBlock(block_), which, outside), copy);
    }
    return copy;
  }

  // Creates the part outside of the loop if the value is defined outside.
  Value* part_of(Value* value, unsigned which, IRBuilder<>& outside) {
    auto& made = made_[which];
    if (auto found = made.find(value); found != made.end()) return found->second;
    if (!is_wide(value->getType())) return value;
    if (Value* splat = getSplatValue(value)) return made[value] = outside.CreateVectorSplat(kPartLanes, splat);
    return made[value] = outside.CreateShuffleVector(value, createSequentialMask(which * kPartLanes, kPartLanes, 0));
  }

  void make_part(unsigned which, IRBuilder<>& builder, IRBuilder<>& outside) {
    BasicBlock* copy = builder.GetInsertBlock();
    auto& made = made_[which];
    auto part = [&](Value* value) { return part_of(value, which, outside); };
    for (Instruction& instruction : *block_) {
      if (instruction.isTerminator() || is_splat_insertion(instruction)) continue;
      if (isa<PHINode>(instruction)) {
        auto* phi = PHINode::Create(part_of(instruction.getType()), 2, instruction.getName());
        made[&instruction] = phi;
        phi->insertBefore(*copy, copy->getFirstNonPHIIt());
      } else if (Value* splat = is_wide(instruction.getType()) ? getSplatValue(&instruction) : nullptr) {
        made[&instruction] = builder.CreateVectorSplat(kPartLanes, part(splat));
      } else if (is_predicate(instruction)) {
        auto* call = dyn_cast<CallInst>(&instruction);
        Value* tested = part(call ? call->getArgOperand(0) : instruction.getOperand(0));
        Value* any = call ? static_cast<Value*>(builder.CreateOrReduce(tested))
                          : builder.CreateBitCast(tested, builder.getIntNTy(kPartLanes));
        made[&instruction] = builder.CreateZExtOrTrunc(any, instruction.getType());
      } else if (auto* call = dyn_cast<IntrinsicInst>(&instruction); call && is_wide(call->getType())) {
        SmallVector<Value*> arguments;
        SmallVector<Type*> types;
        Intrinsic::ID id = call->getIntrinsicID();
        if (isVectorIntrinsicWithOverloadTypeAtArg(id, -1)) types.push_back(part_of(call->getType()));
        for (unsigned i = 0; i < call->arg_size(); ++i) {
          arguments.push_back(part(call->getArgOperand(i)));
          if (isVectorIntrinsicWithOverloadTypeAtArg(id, i)) types.push_back(arguments.back()->getType());
        }
        CallInst* one = builder.CreateIntrinsic(id, types, arguments);
        one->copyIRFlags(call);
        made[&instruction] = one;
      } else {
        Instruction* one = instruction.clone();
        for (Use& use : one->operands()) use.set(part(use.get()));
        one->mutateType(part_of(instruction.getType()));
        made[&instruction] = builder.Insert(one);
      }
    }
  }

  Loop& loop_;
  BasicBlock* block_;
  BasicBlock* before_ = nullptr;
  const VectorIsa& isa_;
  bool may_have_collectives_;
  DenseMap<Value*, Value*> made_[kParts];
};

}  // namespace

PreservedAnalyses LaneLoopSplittingPass::run(Function& function, FunctionAnalysisManager& analyses) {
  SmallVector<Loop*> loops;
  for (Loop* loop : analyses.getResult<LoopAnalysis>(function).getLoopsInPreorder())
    if (loop->isInnermost()) loops.push_back(loop);
  bool changed = false;
  for (Loop* loop : loops) changed |= LoopSplitter(*loop, isa_, may_have_collectives_).run();
  return changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
}

}  // namespace kiln
