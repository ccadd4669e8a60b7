#include "compiler/passes/widen.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/DenseSet.h>
#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/UniformityAnalysis.h>
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/GetElementPtrTypeIterator.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/ReplaceConstant.h>
#include <llvm/Transforms/Scalar/Scalarizer.h>

#include <map>
#include <optional>

#include "compiler/passes/barrier_agreement.h"
#include "compiler/passes/bounds_guards.h"
#include "compiler/passes/guard_sinks.h"
#include "compiler/passes/lane_exchanges.h"
#include "compiler/passes/separate_lanes.h"
#include "compiler/passes/structure_phis.h"
#include "compiler/passes/structured_flow.h"
#include "compiler/passes/uniformity.h"
#include "compiler/passes/vector_bitcasts.h"
#include "core/text.h"

namespace kiln {
namespace {

using namespace llvm;

// Why a function cannot be widened.
struct Refusal {
  std::string reason;
};

[[noreturn]] void refuse(std::string reason) { throw Refusal{std::move(reason)}; }

// Vectors of the kernel's own as their components: they become vectors of 32.
void split_vectors(Function& function, ThreadAnalyses& analyses) {
  spell_out_bitcasts(function);
  analyses.forget(function);
  ScalarizerPassOptions options;
  options.ScalarizeLoadStore = true;
  options.ScalarizeVariableInsertExtract = true;
  options.ScalarizeMinBits = 0;
  FunctionPassManager passes;
  passes.addPass(ScalarizerPass(options));
  analyses.run(passes, function);
}

class Widener {
 public:
  Widener(Function& from, Function& to, FunctionAnalysisManager& analyses, const WidenOptions& options)
      : has_avx512_(options.has_avx512),
        sites_(options.sites),
        from_(from),
        to_(to),
        flow_(from, analyses),
        loops_(analyses.getResult<LoopAnalysis>(from)),
        dominators_(analyses.getResult<DominatorTreeAnalysis>(from)),
        layout_(from.getDataLayout()),
        context_(from.getContext()),
        mask_type_(FixedVectorType::get(Type::getInt1Ty(context_), kLanes)) {}

  void run() {
    for (auto [old_argument, new_argument] : zip(from_.args(), to_.args())) scalars_[&old_argument] = &new_argument;
    if (std::string reason = flow_.check_structure(from_); !reason.empty()) refuse(reason);
    BasicBlock* entry = BasicBlock::Create(context_, "entry", &to_);
    allocas_ = entry;
    ReversePostOrderTraversal<Function*> order(&from_);
    for (BasicBlock* block : order) begin_[block] = BasicBlock::Create(context_, block->getName(), &to_);
    for (BasicBlock* block : order) widen_block(*block);
    for (BasicBlock* block : order) complete_phis(*block);
    complete_lane_phis();
    IRBuilder<>(entry).CreateBr(begin_[&from_.getEntryBlock()]);
  }

 private:
  // ---- What differs

  bool differs(const Value* value) const { return flow_.differs(value); }
  bool is_divergent_branch(const BasicBlock& block) const { return flow_.is_divergent_branch(block); }
  bool is_divergent_loop(const Loop& loop) const { return flow_.is_divergent_loop(loop); }
  BasicBlock* join_of(BranchInst& branch) const { return flow_.join_of(branch); }

  // ---- Types and operands

  Type* vector_of(Type* type) const {
    if (!VectorType::isValidElementType(type)) refuse("a value of a type that has no vectors");
    return FixedVectorType::get(type, kLanes);
  }

  Value* scalar(Value* value) {
    if (auto found = scalars_.find(value); found != scalars_.end()) return found->second;
    if (isa<Constant, MetadataAsValue, BasicBlock>(value)) return value;
    refuse("a value that was taken to be the same in all threads");
  }

  Value* vector(Value* value, IRBuilder<>& builder) {
    if (auto found = vectors_.find(value); found != vectors_.end()) return found->second;
    if (postponed_.contains(value)) return vector_here(cast<Instruction>(*value), builder);
    if (differs(value)) refuse("a value before its definition");
    Type* type = vector_of(value->getType());
    if (auto* constant = dyn_cast<Constant>(value)) {
      if (isa<UndefValue>(constant)) return Constant::getNullValue(type);
      return ConstantVector::getSplat(ElementCount::getFixed(kLanes), constant);
    }
    return builder.CreateVectorSplat(kLanes, scalar(value));
  }

  // A place in memory is mostly wanted of the first lane and the last one only. As a vector it is made where it is
  // wanted.
  bool can_be_postponed(Instruction& instruction) {
    switch (instruction.getOpcode()) {
      case Instruction::ZExt:
      case Instruction::SExt:
      case Instruction::Trunc:
      case Instruction::PtrToInt:
      case Instruction::IntToPtr:
      case Instruction::Or:
      case Instruction::Add:
      case Instruction::Sub:
      case Instruction::Mul:
      case Instruction::Shl:
      case Instruction::GetElementPtr: return stride_of(&instruction).has_value();
      default: return false;
    }
  }

  Value* vector_here(Instruction& instruction, IRBuilder<>& builder) {
    auto made = made_in_.find({&instruction, builder.GetInsertBlock()});
    if (made != made_in_.end()) return made->second;
    Value* widened = widen_arithmetic(instruction, builder);
    if (auto* result = dyn_cast<Instruction>(widened)) result->copyIRFlags(&instruction);
    return made_in_[{&instruction, builder.GetInsertBlock()}] = widened;
  }

  Value* any(Value* mask, IRBuilder<>& builder) {
    return builder.CreateICmpNE(builder.CreateBitCast(mask, builder.getInt32Ty()), builder.getInt32(0));
  }

  static bool is_all(const Value* mask) {
    const auto* constant = dyn_cast<Constant>(mask);
    return constant && constant->isAllOnesValue();
  }

  Constant* lane_numbers(Type* type) const {
    SmallVector<Constant*> numbers;
    for (unsigned lane = 0; lane < kLanes; ++lane) numbers.push_back(ConstantInt::get(type, lane));
    return ConstantVector::get(numbers);
  }

  // ---- Masks

  Value* condition_for(const BasicBlock& from, const BasicBlock& to, IRBuilder<>& builder) {
    auto* branch = cast<BranchInst>(from.getTerminator());
    Value* condition = vector(branch->getCondition(), builder);
    return branch->getSuccessor(0) == &to ? condition : builder.CreateNot(condition);
  }

  // The lanes of the mask for which the condition holds. In others it may be poison, which an `and` would let through.
  Value* narrowed(Value* mask, Value* condition, IRBuilder<>& builder) {
    return builder.CreateLogicalAnd(mask, condition);
  }

  Value* mask_at(BasicBlock& block, IRBuilder<>& builder) {
    if (&block == &from_.getEntryBlock()) {
      Value* lanes = to_.getArg(to_.arg_size() - 1);
      return builder.CreateICmpULT(lane_numbers(builder.getInt32Ty()), builder.CreateVectorSplat(kLanes, lanes),
                                   "mask");
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

  // ---- Blocks

  void widen_block(BasicBlock& block) {
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
  void keep_results(Loop& loop, IRBuilder<>& builder) {
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
  PHINode* carrier_of(Loop& loop, Instruction& value) {
    for (PHINode& phi : loop.getHeader()->phis())
      if (differs(&phi) && phi.getIncomingValueForBlock(loop.getLoopLatch()) == &value) return &phi;
    return nullptr;
  }

  void widen_terminator(BasicBlock& block, IRBuilder<>& builder) {
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

  void close_loop(Loop& loop, BasicBlock& latch, BranchInst& branch, IRBuilder<>& builder) {
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

  // ---- Phis

  void complete_phis(BasicBlock& block) {
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

  Value* incoming(PHINode& phi, BasicBlock& before, IRBuilder<>& builder) {
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
    Value* otherwise = vector(phi.getIncomingValueForBlock(fork), builder);
    return builder.CreateSelect(masks_.at(&before), vector(value, builder), otherwise);
  }

  // ---- Instructions

  void widen_instruction(Instruction& instruction, IRBuilder<>& builder) {
    if (vectors_.contains(&instruction)) return;  // a part of a pair
    if (is_lane(&instruction)) {
      vectors_[&instruction] = lane_numbers(instruction.getType());
      return;
    }
    if (auto* intrinsic = dyn_cast<IntrinsicInst>(&instruction); intrinsic && is_note(*intrinsic)) return;
    if (auto* variable = dyn_cast<AllocaInst>(&instruction)) return widen_variable(*variable);
    if (std::optional<unsigned> site = waits_at(instruction)) return wait(cast<CallInst>(instruction), *site, builder);
    if (LaneOperation operation = lane_operation(&instruction); operation != LaneOperation::kNone)
      return exchange(cast<CallInst>(instruction), operation, builder);
    if (is_never(instruction)) {
      scalars_[&instruction] = builder.getFalse();
      return;
    }
    // An atomic load at one address is one load: the lanes are here at the same time.
    bool has_effect = instruction.mayWriteToMemory() || (instruction.isAtomic() && differs(&instruction));
    if (!differs(&instruction) && (!has_effect || isa<LoadInst>(instruction))) return copy(instruction, builder);
    if (auto* load = dyn_cast<LoadInst>(&instruction); load && !has_effect) return widen_load(*load, builder);
    if (auto* store = dyn_cast<StoreInst>(&instruction); store && store->isSimple())
      return widen_store(*store, builder);
    if (has_effect) return each_lane(instruction, builder);
    if (can_be_postponed(instruction)) {
      postponed_.insert(&instruction);
      return;
    }
    if (auto* checked = dyn_cast<WithOverflowInst>(&instruction)) return widen_checked(*checked, builder);
    if (Value* widened = widen_arithmetic(instruction, builder)) {
      if (auto* result = dyn_cast<Instruction>(widened)) result->copyIRFlags(&instruction);
      vectors_[&instruction] = widened;
      return;
    }
    each_lane(instruction, builder);
  }

  // Says something to the optimiser of one thread's code; does nothing.
  static bool is_note(const IntrinsicInst& intrinsic) {
    switch (intrinsic.getIntrinsicID()) {
      case Intrinsic::assume:
      case Intrinsic::lifetime_start:
      case Intrinsic::lifetime_end:
      case Intrinsic::experimental_noalias_scope_decl:
      case Intrinsic::dbg_declare:
      case Intrinsic::dbg_value: return true;
      default: return false;
    }
  }

  void copy(Instruction& instruction, IRBuilder<>& builder) {
    Instruction* same = instruction.clone();
    for (Use& use : same->operands()) use.set(scalar(use.get()));
    builder.Insert(same, instruction.getName());
    scalars_[&instruction] = same;
  }

  // ---- Threads that wait for one another

  static bool is_never(const Instruction& instruction) {
    const auto* call = dyn_cast<CallInst>(&instruction);
    return call && call->getCalledFunction() && call->getCalledFunction()->getName() == kNeverFunction;
  }

  // The lanes of a simdgroup are at one place anyway.
  void wait(CallInst& call, unsigned site, IRBuilder<>& builder) {
    if (!sites_[site].is_barrier) return;
    auto* same = cast<CallInst>(call.clone());
    for (unsigned i = 3; i < call.arg_size(); ++i) same->setArgOperand(i, scalar(call.getArgOperand(i)));
    Value* bits = builder.CreateBitCast(mask_, builder.getInt32Ty());
    same->setArgOperand(1, builder.CreateZExt(bits, builder.getInt64Ty()));
    same->setArgOperand(2, builder.getInt64(0));
    builder.Insert(same);
  }

  void exchange(CallInst& call, LaneOperation operation, IRBuilder<>& builder) {
    Value* lanes = vector(call.getArgOperand(0), builder);
    auto constant = [&] { return cast<ConstantInt>(call.getArgOperand(1))->getZExtValue(); };
    auto moved = [&](auto source_of) {
      SmallVector<int> sources;
      for (unsigned lane = 0; lane < kLanes; ++lane) sources.push_back(static_cast<int>(source_of(lane)));
      return builder.CreateShuffleVector(lanes, sources);
    };
    switch (operation) {
      case LaneOperation::kNone: return;
      case LaneOperation::kVote: {
        Value* votes = builder.CreateBitCast(narrowed(mask_, lanes, builder), builder.getInt32Ty());
        scalars_[&call] = votes;
        return;
      }
      case LaneOperation::kTake:
        vectors_[&call] = builder.CreateSelect(mask_, lanes, vector(call.getArgOperand(1), builder));
        return;
      case LaneOperation::kExchange: vectors_[&call] = moved([&](uint64_t lane) { return lane ^ constant(); }); return;
      case LaneOperation::kUp:
        vectors_[&call] = moved([&](uint64_t lane) { return lane < constant() ? lane : lane - constant(); });
        return;
      case LaneOperation::kFirst: scalars_[&call] = builder.CreateExtractElement(lanes, uint64_t{0}); return;
      case LaneOperation::kShuffle: {
        lanes = builder.CreateSelect(mask_, lanes, Constant::getNullValue(lanes->getType()));
        if (!differs(&call)) {
          scalars_[&call] = builder.CreateExtractElement(lanes, constant() % kLanes);
          return;
        }
        Value* last = ConstantInt::get(vector_of(builder.getInt32Ty()), kLanes - 1);
        Value* sources = builder.CreateAnd(vector(call.getArgOperand(1), builder), last);
        vectors_[&call] = permuted(lanes, sources, builder);
        return;
      }
    }
  }

  Value* permuted(Value* lanes, Value* sources, IRBuilder<>& builder) {
    if (auto* constant = dyn_cast<Constant>(sources)) {
      SmallVector<int> mask;
      for (unsigned lane = 0; lane < kLanes; ++lane)
        mask.push_back(static_cast<int>(cast<ConstantInt>(constant->getAggregateElement(lane))->getZExtValue()));
      return builder.CreateShuffleVector(lanes, mask);
    }
    auto* type = cast<FixedVectorType>(lanes->getType());
    Type* words = vector_of(builder.getInt32Ty());
    unsigned bits = type->getScalarSizeInBits();
    if (bits < 32) return builder.CreateTrunc(permuted(builder.CreateZExt(lanes, words), sources, builder), type);
    if (bits == 64) {
      Value* low = permuted(builder.CreateTrunc(lanes, words), sources, builder);
      Value* high = permuted(builder.CreateTrunc(builder.CreateLShr(lanes, 32), words), sources, builder);
      return builder.CreateOr(builder.CreateZExt(low, type), builder.CreateShl(builder.CreateZExt(high, type), 32));
    }
    if (!has_avx512_) {
      Value* place = IRBuilder<>(allocas_).CreateAlloca(words);
      builder.CreateStore(lanes, place);
      Value* addresses = builder.CreateInBoundsGEP(builder.getInt32Ty(), place, sources);
      return builder.CreateMaskedGather(words, addresses, Align(4), Constant::getAllOnesValue(mask_type_));
    }
    auto half = [&](Value* all, unsigned first) {
      SmallVector<int> mask;
      for (unsigned i = 0; i < kLanes / 2; ++i) mask.push_back(static_cast<int>(first + i));
      return builder.CreateShuffleVector(all, mask);
    };
    Value *low = half(lanes, 0), *high = half(lanes, kLanes / 2);
    auto pick = [&](unsigned first) {
      return builder.CreateIntrinsic(Intrinsic::x86_avx512_vpermi2var_d_512, {}, {low, half(sources, first), high});
    };
    SmallVector<int> both;
    for (unsigned i = 0; i < kLanes; ++i) both.push_back(static_cast<int>(i));
    return builder.CreateShuffleVector(pick(0), pick(kLanes / 2), both);
  }

  // One behind the other: a variable of each lane.
  void widen_variable(AllocaInst& variable) {
    if (!variable.isStaticAlloca() || variable.isArrayAllocation()) refuse("a variable of dynamic size");
    IRBuilder<> builder(allocas_);
    uint64_t size = alignTo(layout_.getTypeAllocSize(variable.getAllocatedType()), variable.getAlign());
    AllocaInst* all = builder.CreateAlloca(ArrayType::get(builder.getInt8Ty(), size * kLanes));
    all->setAlignment(std::max(variable.getAlign(), Align(64)));
    Value* offsets =
        builder.CreateMul(lane_numbers(builder.getInt64Ty()),
                          ConstantVector::getSplat(ElementCount::getFixed(kLanes), builder.getInt64(size)));
    vectors_[&variable] = builder.CreateGEP(builder.getInt8Ty(), all, offsets);
  }

  Value* widen_arithmetic(Instruction& instruction, IRBuilder<>& builder) {
    auto operand = [&](unsigned i) { return vector(instruction.getOperand(i), builder); };
    if (auto* cast_instruction = dyn_cast<CastInst>(&instruction))
      return builder.CreateCast(cast_instruction->getOpcode(), operand(0), vector_of(instruction.getType()));
    if (auto* comparison = dyn_cast<CmpInst>(&instruction))
      return builder.CreateCmp(comparison->getPredicate(), operand(0), operand(1));
    if (isa<SelectInst>(instruction)) {
      Value* condition = instruction.getOperand(0);
      return builder.CreateSelect(differs(condition) ? operand(0) : scalar(condition), operand(1), operand(2));
    }
    if (auto* binary = dyn_cast<BinaryOperator>(&instruction)) {
      Value* second = operand(1);
      // The optimiser may have removed what keeps a division from trapping where a branch keeps threads from it. Lanes
      // that are not here divide by 1. The maximum is there because the optimiser divides by either side of a select
      // where one is constant, and takes the division by a vector with a single 0 for impossible.
      if (binary->isIntDivRem() && !is_all(mask_) && !is_harmless_divisor(binary->getOperand(1))) {
        Value* one = ConstantInt::get(second->getType(), 1);
        second = builder.CreateBinaryIntrinsic(Intrinsic::umax, builder.CreateSelect(mask_, second, one), one);
      }
      return builder.CreateBinOp(binary->getOpcode(), operand(0), second);
    }
    if (isa<UnaryOperator>(instruction)) return builder.CreateFNeg(operand(0));
    if (isa<FreezeInst>(instruction)) return builder.CreateFreeze(operand(0));
    if (auto* address = dyn_cast<GetElementPtrInst>(&instruction)) {
      Value* pointer = address->getPointerOperand();
      SmallVector<Value*> indices;
      for (Value* index : address->indices())
        indices.push_back(differs(index) ? vector(index, builder) : scalar(index));
      Value* base = differs(pointer) ? vector(pointer, builder) : scalar(pointer);
      Value* result = builder.CreateGEP(address->getSourceElementType(), base, indices);
      return result->getType()->isVectorTy() ? result : builder.CreateVectorSplat(kLanes, result);
    }
    if (auto* call = dyn_cast<IntrinsicInst>(&instruction)) return widen_intrinsic(*call, builder);
    return nullptr;
  }

  // The result and whether it is too large for its type.
  void widen_checked(WithOverflowInst& call, IRBuilder<>& builder) {
    check_pair(call);
    Value *left = vector(call.getLHS(), builder), *right = vector(call.getRHS(), builder);
    Value* both = builder.CreateIntrinsic(call.getIntrinsicID(), {left->getType()}, {left, right});
    for (User* user : call.users())
      vectors_[user] = builder.CreateExtractValue(both, cast<ExtractValueInst>(user)->getIndices());
  }

  static bool is_harmless_divisor(const Value* divisor) {
    const auto* constant = dyn_cast<ConstantInt>(divisor);
    return constant && !constant->isZero() && !constant->isMinusOne();
  }

  Value* widen_intrinsic(IntrinsicInst& call, IRBuilder<>& builder) {
    Intrinsic::ID id = call.getIntrinsicID();
    if (!isTriviallyVectorizable(id)) return nullptr;
    SmallVector<Value*> arguments;
    SmallVector<Type*> types;
    if (isVectorIntrinsicWithOverloadTypeAtArg(id, -1)) types.push_back(vector_of(call.getType()));
    for (unsigned i = 0; i < call.arg_size(); ++i) {
      Value* argument = call.getArgOperand(i);
      bool stays = isVectorIntrinsicWithScalarOpAtArg(id, i);
      if (stays && differs(argument)) return nullptr;
      arguments.push_back(stays ? scalar(argument) : vector(argument, builder));
      if (isVectorIntrinsicWithOverloadTypeAtArg(id, i)) types.push_back(arguments.back()->getType());
    }
    return builder.CreateIntrinsic(id, types, arguments);
  }

  // ---- Memory

  // Without AVX-512 LLVM makes a branch for each lane of a gather or scatter; a loop over lanes is shorter.
  bool has_gathers(Type* type) const { return has_avx512_ && is_word(layout_.getTypeSizeInBits(type) / 8); }

  // A guarded address: where the guard allows it, else memory of zeros.
  struct Guarded {
    Value* allowed;
    Value* address;
  };
  static std::optional<Guarded> guarded(Value* pointer) {
    auto* choice = dyn_cast<SelectInst>(pointer);
    if (!choice) return std::nullopt;
    auto* zeros = dyn_cast<GlobalVariable>(choice->getFalseValue());
    if (!zeros || !zeros->getName().starts_with(kZeros)) return std::nullopt;
    return Guarded{choice->getCondition(), choice->getTrueValue()};
  }

  // ---- Lanes that follow one another in memory
  //
  // A value is a row where it grows by a constant from lane to lane, in arithmetic that may wrap. Whether it wraps is
  // asked when the code runs: what the first lane has and what the last one has are computed as numbers.

  // By how much the value grows from lane to lane.
  std::optional<int64_t> stride_of(Value* value) {
    if (!differs(value)) return 0;
    if (auto found = strides_.find(value); found != strides_.end()) return found->second;
    // A loop's value has its first one's stride unless the steps show otherwise.
    if (auto* phi = dyn_cast<PHINode>(value)) {
      Loop* loop = loops_.getLoopFor(phi->getParent());
      if (!loop || loop->getHeader() != phi->getParent()) return std::nullopt;
      std::optional<int64_t> stride = stride_of(phi->getIncomingValueForBlock(loop->getLoopPreheader()));
      strides_[value] = stride;
      if (stride && stride_of(phi->getIncomingValueForBlock(loop->getLoopLatch())) != stride) {
        strides_.clear();  // some of them were concluded from this one
        strides_[value] = std::nullopt;
        return std::nullopt;
      }
      return stride;
    }
    return strides_[value] = stride_of_result(value);
  }

  std::optional<int64_t> stride_of_result(Value* value) {
    if (is_lane(value)) return 1;
    auto* instruction = dyn_cast<Instruction>(value);
    if (!instruction) return std::nullopt;
    auto of = [&](unsigned i) { return stride_of(instruction->getOperand(i)); };
    auto same_in_all = [&](unsigned i) { return !differs(instruction->getOperand(i)); };
    switch (instruction->getOpcode()) {
      case Instruction::ZExt:
      case Instruction::SExt:
      case Instruction::Trunc:
      case Instruction::PtrToInt:
      case Instruction::IntToPtr: return of(0);
      case Instruction::Or:
        if (!cast<PossiblyDisjointInst>(instruction)->isDisjoint()) return std::nullopt;
        [[fallthrough]];
      case Instruction::Add:
        // Of two that grow, one could wrap where the other makes up for it.
        if (same_in_all(1)) return of(0);
        if (same_in_all(0)) return of(1);
        return std::nullopt;
      case Instruction::Sub:
        if (same_in_all(1)) return of(0);
        return std::nullopt;
      case Instruction::Mul:
      case Instruction::Shl: {
        auto* factor = dyn_cast<ConstantInt>(instruction->getOperand(1));
        std::optional<int64_t> stride = of(0);
        if (!factor || !stride || factor->getValue().getActiveBits() > 16) return std::nullopt;
        uint64_t by = factor->getZExtValue();
        if (instruction->getOpcode() == Instruction::Shl) {
          if (by > 16) return std::nullopt;
          by = uint64_t{1} << by;
        }
        if (*stride < 0 || static_cast<uint64_t>(*stride) * by > 1 << 16) return std::nullopt;
        return static_cast<int64_t>(*stride * by);
      }
      case Instruction::GetElementPtr: {
        // One of the operands grows: the base, or an index of an array.
        std::optional<unsigned> growing;
        for (unsigned i = 0; i < instruction->getNumOperands(); ++i)
          if (!same_in_all(i)) {
            if (growing) return std::nullopt;
            growing = i;
          }
        std::optional<int64_t> stride = of(*growing);
        if (*growing == 0 || !stride) return stride;
        auto level = gep_type_begin(instruction);
        std::advance(level, *growing - 1);
        uint64_t size = level.getSequentialElementStride(layout_);
        if (size > 1 << 16) return std::nullopt;
        return *stride * static_cast<int64_t>(size);
      }
      default: return std::nullopt;
    }
  }

  // What `lane` has, if it takes part: a value with a stride, as a number.
  Value* at_lane(Value* value, unsigned lane, IRBuilder<>& builder) {
    if (!differs(value)) return scalar(value);
    if (is_lane(value)) return ConstantInt::get(value->getType(), lane);
    if (auto* phi = dyn_cast<PHINode>(value)) {
      PHINode*& at = lane_phis_[{phi, lane}];
      if (!at) {
        at = PHINode::Create(phi->getType(), 2, phi->getName(), begin_[phi->getParent()]->begin());
        new_lane_phis_.push_back({phi, lane});
      }
      return at;
    }
    auto* instruction = cast<Instruction>(value);
    SmallVector<Value*> operands;
    for (Value* operand : instruction->operands()) operands.push_back(at_lane(operand, lane, builder));
    Instruction* one = instruction->clone();
    for (auto [use, operand] : zip(one->operands(), operands)) use.set(operand);
    one->dropPoisonGeneratingFlags();  // the lane may not take part
    builder.Insert(one);
    return one;
  }

  void complete_lane_phis() {
    while (!new_lane_phis_.empty()) {
      auto [phi, lane] = new_lane_phis_.pop_back_val();
      PHINode* at = lane_phis_[{phi, lane}];
      for (unsigned i = 0; i < phi->getNumIncomingValues(); ++i) {
        BasicBlock* before = end_[phi->getIncomingBlock(i)];
        IRBuilder<> builder(before->getTerminator());
        at->addIncoming(at_lane(phi->getIncomingValue(i), lane, builder), before);
      }
    }
  }

  // Whether the lanes' values follow one another, from the first to the last, `stride` apart.
  Value* is_row(Value* first, Value* last, uint64_t stride, IRBuilder<>& builder) {
    Type* number = builder.getInt64Ty();
    auto as_number = [&](Value* value) {
      return value->getType()->isPointerTy() ? builder.CreatePtrToInt(value, number)
                                             : builder.CreateZExt(value, number);
    };
    return builder.CreateICmpEQ(builder.CreateSub(as_number(last), as_number(first)),
                                builder.getInt64(stride * (kLanes - 1)));
  }

  // Whether the value grows from lane to lane as its stride says, whatever other values are: nothing in it can wrap.
  bool is_certain(Value* value) {
    if (!differs(value) || is_lane(value)) return true;
    auto* instruction = dyn_cast<Instruction>(value);
    if (!instruction || isa<PHINode>(instruction)) return false;
    // Addresses wrap as their distances do.
    bool is_wide = value->getType()->isPointerTy() || value->getType()->isIntegerTy(64);
    switch (instruction->getOpcode()) {
      case Instruction::Or:
      case Instruction::ZExt:
      case Instruction::SExt:
      case Instruction::PtrToInt:
      case Instruction::IntToPtr: break;
      case Instruction::GetElementPtr:
      case Instruction::Add:
      case Instruction::Sub:
      case Instruction::Mul:
      case Instruction::Shl:
        if (!is_wide) return false;
        break;
      default: return false;
    }
    return all_of(instruction->operands(), [&](Use& operand) { return is_certain(operand.get()); });
  }

  // How lanes access memory together.
  struct Row {
    uint64_t bytes;   // of an element
    uint64_t stride;  // from lane to lane
    uint64_t reach;   // from the first lane's address to the last element that is touched
  };

  // An access as one of all lanes together where they follow one another and the guard lets all of them through;
  // `together(address)` and `apart()` make the code, and what they return is chosen.
  template <typename Together, typename Apart>
  Value* by_shape(Value* pointer, Value* allowed, const Row& shape, IRBuilder<>& builder, Together together,
                  Apart apart) {
    Value *offset = nullptr, *limit = nullptr;
    if (allowed && differs(allowed)) {
      auto* comparison = dyn_cast<ICmpInst>(allowed);
      if (!comparison) return apart();
      bool is_swapped = comparison->getPredicate() == ICmpInst::ICMP_UGT;
      if (!is_swapped && comparison->getPredicate() != ICmpInst::ICMP_ULT) return apart();
      offset = comparison->getOperand(is_swapped ? 1 : 0);
      limit = comparison->getOperand(is_swapped ? 0 : 1);
      if (differs(limit) || stride_of(offset) != static_cast<int64_t>(shape.stride)) return apart();
    }
    // More than the lanes' own elements may be read only where it is known to be there.
    if (!offset && shape.reach != shape.stride * (kLanes - 1)) return apart();
    Value* first = at_lane(pointer, 0, builder);
    Value* row;
    if (offset) {
      // The address and its distance from the array's beginning grow alike.
      Value* first_offset = at_lane(offset, 0, builder);
      Value* least = builder.CreateBinaryIntrinsic(Intrinsic::usub_sat, scalar(limit), builder.getInt64(shape.reach));
      row = builder.CreateICmpULT(first_offset, least);
      if (!is_certain(offset))
        row = builder.CreateAnd(is_row(first_offset, at_lane(offset, kLanes - 1, builder), shape.stride, builder), row);
    } else {
      row = is_certain(pointer) ? builder.getTrue()
                                : is_row(first, at_lane(pointer, kLanes - 1, builder), shape.stride, builder);
      if (allowed) row = builder.CreateAnd(row, scalar(allowed));
    }
    // Without masks in memory all lanes must take part.
    if (!is_word(shape.bytes) && !has_avx512_)
      row = builder.CreateAnd(
          row, builder.CreateICmpEQ(builder.CreateBitCast(mask_, builder.getInt32Ty()), builder.getInt32(-1)));

    if (auto* known = dyn_cast<ConstantInt>(row); known && known->isOne()) return together(first);
    BasicBlock* before = builder.GetInsertBlock();
    BasicBlock* one = BasicBlock::Create(context_, "row", &to_);
    BasicBlock* many = BasicBlock::Create(context_, "lanes", &to_);
    BasicBlock* after = BasicBlock::Create(context_, "", &to_);
    one->moveAfter(before);
    many->moveAfter(one);
    after->moveAfter(many);
    builder.CreateCondBr(row, one, many, MDBuilder(context_).createBranchWeights(1000, 1));
    builder.SetInsertPoint(one);
    Value* result = together(first);
    BasicBlock* one_end = builder.GetInsertBlock();
    builder.CreateBr(after);
    builder.SetInsertPoint(many);
    Value* other = apart();
    BasicBlock* many_end = builder.GetInsertBlock();
    builder.CreateBr(after);
    builder.SetInsertPoint(after);
    if (!result) return nullptr;
    PHINode* both = builder.CreatePHI(result->getType(), 2);
    both->addIncoming(result, one_end);
    both->addIncoming(other, many_end);
    return both;
  }

  static bool is_word(uint64_t bytes) { return bytes == 4 || bytes == 8; }

  // How many elements lie from one lane's to the next one's, where that is worth other accesses than lane by lane: 1,
  // and 2, 4 or 8 words, as threads that do four elements each have it.
  uint64_t step_of(Value* pointer, uint64_t bytes) {
    std::optional<int64_t> stride = stride_of(pointer);
    if (!stride) return 0;
    for (int64_t step : {1, 2, 4, 8})
      if (*stride == step * static_cast<int64_t>(bytes))
        return step == 1 || is_word(bytes) ? static_cast<uint64_t>(step) : 0;
    return 0;
  }

  // Elements of a register.
  unsigned register_lanes(Type* element) const {
    return static_cast<unsigned>((has_avx512_ ? 64 : 32) / layout_.getTypeStoreSize(element));
  }

  // Every step-th element from the address on: registers, of which the even elements of pairs are taken, and again.
  Value* load_steps(Type* element, Value* address, uint64_t step, Align alignment, IRBuilder<>& builder) {
    unsigned width = register_lanes(element);
    auto* type = FixedVectorType::get(element, width);
    SmallVector<Value*> parts;
    for (unsigned i = 0; i < kLanes * step; i += width)
      parts.push_back(builder.CreateAlignedLoad(type, builder.CreateConstGEP1_32(element, address, i), alignment));
    SmallVector<int> even;
    for (unsigned i = 0; i < width; ++i) even.push_back(static_cast<int>(2 * i));
    for (; step > 1; step /= 2) {
      SmallVector<Value*> halves;
      for (unsigned i = 0; i < parts.size(); i += 2)
        halves.push_back(builder.CreateShuffleVector(parts[i], parts[i + 1], even));
      parts = std::move(halves);
    }
    return concatenateVectors(builder, parts);
  }

  void store_steps(Value* lanes, Value* address, uint64_t step, Align alignment, IRBuilder<>& builder) {
    Type* element = lanes->getType()->getScalarType();
    unsigned width = register_lanes(element), taken = width / static_cast<unsigned>(step);
    for (unsigned first = 0; first < kLanes; first += taken) {
      SmallVector<int> sources;
      SmallVector<Constant*> is_taken;
      for (unsigned i = 0; i < width; ++i) {
        sources.push_back(static_cast<int>(first + i / step));
        is_taken.push_back(builder.getInt1(i % step == 0));
      }
      Value* mask = builder.CreateShuffleVector(mask_, sources);
      mask = builder.CreateAnd(mask, ConstantVector::get(is_taken));
      builder.CreateMaskedStore(builder.CreateShuffleVector(lanes, sources),
                                builder.CreateConstGEP1_32(element, address, static_cast<unsigned>(first * step)),
                                alignment, mask);
    }
  }

  void widen_load(LoadInst& load, IRBuilder<>& builder) {
    if (!load.getType()->isIntegerTy(1) && differs(load.getPointerOperand())) {
      Value *pointer = load.getPointerOperand(), *allowed = nullptr;
      if (auto guard = guarded(pointer)) {
        pointer = guard->address;
        allowed = guard->allowed;
      }
      Type* type = vector_of(load.getType());
      uint64_t bytes = layout_.getTypeStoreSize(load.getType());
      Value* mask = mask_;
      uint64_t step = step_of(pointer, bytes);
      auto together = [&](Value* address) -> Value* {
        if (step > 1) return load_steps(load.getType(), address, step, load.getAlign(), builder);
        if (is_all(mask) || (!is_word(bytes) && !has_avx512_))
          return builder.CreateAlignedLoad(type, address, load.getAlign());
        return builder.CreateMaskedLoad(type, address, load.getAlign(), mask, Constant::getNullValue(type));
      };
      auto apart = [&]() -> Value* {
        widen_load_apart(load, builder);
        return vectors_[&load];
      };
      if (step == 0)
        apart();
      else
        vectors_[&load] =
            by_shape(pointer, allowed, {bytes, step * bytes, (step * kLanes - 1) * bytes}, builder, together, apart);
      return;
    }
    widen_load_apart(load, builder);
  }

  void widen_load_apart(LoadInst& load, IRBuilder<>& builder) {
    Value* pointer = load.getPointerOperand();
    if (!differs(pointer)) {
      // The same address, but a loop makes the value differ.
      auto* same = cast<LoadInst>(load.clone());
      same->setOperand(0, scalar(pointer));
      builder.Insert(same);
      vectors_[&load] = builder.CreateVectorSplat(kLanes, same);
      return;
    }
    if (!has_gathers(load.getType())) return each_lane(load, builder);
    Value* mask = mask_;
    if (auto guard = guarded(pointer)) {
      Value* allowed = vector(guard->allowed, builder);
      mask = narrowed(mask, allowed, builder);
      pointer = guard->address;
    }
    Type* type = vector_of(load.getType());
    vectors_[&load] =
        builder.CreateMaskedGather(type, vector(pointer, builder), load.getAlign(), mask, Constant::getNullValue(type));
  }

  void widen_store(StoreInst& store, IRBuilder<>& builder) {
    Value* pointer = store.getPointerOperand();
    Value* value = store.getValueOperand();
    if (!differs(pointer) && !differs(value)) {
      // A block runs only where some lane is in it.
      auto* same = cast<StoreInst>(store.clone());
      same->setOperand(0, scalar(value));
      same->setOperand(1, scalar(pointer));
      builder.Insert(same);
      return;
    }
    if (!differs(pointer)) {
      // As if lanes stored one after the other.
      Value* bits = builder.CreateBitCast(mask_, builder.getInt32Ty());
      Value* last = builder.CreateSub(builder.getInt32(31),
                                      builder.CreateBinaryIntrinsic(Intrinsic::ctlz, bits, builder.getTrue()));
      auto* one = cast<StoreInst>(store.clone());
      one->setOperand(0, builder.CreateExtractElement(vector(value, builder), last));
      one->setOperand(1, scalar(pointer));
      builder.Insert(one);
      return;
    }
    Value *address = pointer, *allowed = nullptr;
    if (auto* choice = dyn_cast<SelectInst>(pointer); choice && is_sink(choice->getFalseValue())) {
      address = choice->getTrueValue();
      allowed = choice->getCondition();
    }
    auto apart = [&]() -> Value* {
      if (!has_gathers(value->getType())) {
        each_lane(store, builder);
        return nullptr;
      }
      Value* mask = allowed ? narrowed(mask_, vector(allowed, builder), builder) : mask_;
      builder.CreateMaskedScatter(vector(value, builder), vector(address, builder), store.getAlign(), mask);
      return nullptr;
    };
    if (value->getType()->isIntegerTy(1)) {
      apart();
      return;
    }
    uint64_t bytes = layout_.getTypeStoreSize(value->getType());
    uint64_t step = step_of(address, bytes);
    // A register must reach from one lane to the next.
    if (step == 0 || (step > 1 && step > register_lanes(value->getType()))) {
      apart();
      return;
    }
    Value* lanes = vector(value, builder);
    auto together = [&](Value* first) -> Value* {
      if (step > 1)
        store_steps(lanes, first, step, store.getAlign(), builder);
      else if (is_all(mask_) || (!is_word(bytes) && !has_avx512_))
        builder.CreateAlignedStore(lanes, first, store.getAlign());
      else
        builder.CreateMaskedStore(lanes, first, store.getAlign(), mask_);
      return nullptr;
    };
    by_shape(address, allowed, {bytes, step * bytes, step * bytes * (kLanes - 1)}, builder, together, apart);
  }

  // ---- One lane after the other

  // Runs the instruction for each lane of the mask, in a loop. Its operands and results are in memory there.
  void each_lane(Instruction& instruction, IRBuilder<>& builder) {
    Type* type = instruction.getType();
    auto* pair = dyn_cast<StructType>(type);  // cmpxchg
    if (pair) check_pair(instruction);
    IRBuilder<> variables(allocas_);
    std::map<unsigned, Value*> places;
    for (unsigned i = 0; i < instruction.getNumOperands(); ++i) {
      Value* operand = instruction.getOperand(i);
      if (!differs(operand)) continue;
      Value* lanes = vector(operand, builder);
      if (lanes->getType()->getScalarType()->isIntegerTy(1))
        lanes = builder.CreateZExt(lanes, vector_of(builder.getInt8Ty()));
      Value* place = variables.CreateAlloca(lanes->getType());
      builder.CreateStore(lanes, place);
      places[i] = place;
    }
    Type* element = pair ? pair->getElementType(0) : type;
    bool is_flag = element->isIntegerTy(1);
    Type* stored = is_flag ? builder.getInt8Ty() : element;
    Value *results = nullptr, *flags = nullptr;
    if (!type->isVoidTy()) {
      results = variables.CreateAlloca(vector_of(stored));
      builder.CreateStore(Constant::getNullValue(vector_of(stored)), results);
    }
    if (pair) {
      flags = variables.CreateAlloca(vector_of(builder.getInt8Ty()));
      builder.CreateStore(Constant::getNullValue(vector_of(builder.getInt8Ty())), flags);
    }
    BasicBlock* before = builder.GetInsertBlock();
    BasicBlock* body = BasicBlock::Create(context_, "lane", &to_);
    BasicBlock* after = BasicBlock::Create(context_, "lanes.end", &to_);
    body->moveAfter(before);
    after->moveAfter(body);
    Value* bits = builder.CreateBitCast(mask_, builder.getInt32Ty());
    builder.CreateCondBr(builder.CreateICmpNE(bits, builder.getInt32(0)), body, after);

    builder.SetInsertPoint(body);
    PHINode* rest = builder.CreatePHI(builder.getInt32Ty(), 2, "rest");
    rest->addIncoming(bits, before);
    Value* lane = builder.CreateBinaryIntrinsic(Intrinsic::cttz, rest, builder.getTrue());
    Instruction* one = instruction.clone();
    for (unsigned i = 0; i < instruction.getNumOperands(); ++i) {
      Value* operand = instruction.getOperand(i);
      if (!places.contains(i)) {
        one->setOperand(i, scalar(operand));
        continue;
      }
      Type* in_memory = operand->getType()->isIntegerTy(1) ? builder.getInt8Ty() : operand->getType();
      Value* value = builder.CreateLoad(in_memory, builder.CreateGEP(in_memory, places[i], lane));
      one->setOperand(i, operand->getType()->isIntegerTy(1) ? builder.CreateTrunc(value, builder.getInt1Ty()) : value);
    }
    builder.Insert(one);
    if (results) {
      Value* value = pair ? builder.CreateExtractValue(one, 0) : one;
      if (is_flag) value = builder.CreateZExt(value, stored);
      builder.CreateStore(value, builder.CreateGEP(stored, results, lane));
    }
    if (flags)
      builder.CreateStore(builder.CreateZExt(builder.CreateExtractValue(one, 1), builder.getInt8Ty()),
                          builder.CreateGEP(builder.getInt8Ty(), flags, lane));
    Value* less = builder.CreateAnd(rest, builder.CreateSub(rest, builder.getInt32(1)));
    rest->addIncoming(less, body);
    builder.CreateCondBr(builder.CreateICmpNE(less, builder.getInt32(0)), body, after);

    builder.SetInsertPoint(after);
    auto read = [&](Value* place, Type* of, bool flag) -> Value* {
      Value* value = builder.CreateLoad(vector_of(of), place);
      return flag ? builder.CreateTrunc(value, mask_type_) : value;
    };
    if (pair) {
      for (User* user : instruction.users()) {
        auto* part = cast<ExtractValueInst>(user);
        vectors_[part] =
            part->getIndices()[0] == 0 ? read(results, stored, is_flag) : read(flags, builder.getInt8Ty(), true);
      }
    } else if (results) {
      vectors_[&instruction] = read(results, stored, is_flag);
    }
  }

  static void check_pair(Instruction& instruction) {
    if (!isa<AtomicCmpXchgInst, WithOverflowInst>(instruction)) refuse("a structure as a value");
    for (User* user : instruction.users())
      if (!isa<ExtractValueInst>(user)) refuse("a structure as a value");
  }

  struct Kept {
    Loop* loop;
    Instruction* value;
    PHINode* phi;
    Value* last;
  };

  const bool has_avx512_;
  const ArrayRef<ExchangeSite> sites_;
  Function& from_;
  Function& to_;
  StructuredFlow flow_;
  LoopInfo& loops_;
  DominatorTree& dominators_;
  const DataLayout& layout_;
  LLVMContext& context_;
  Type* mask_type_;
  BasicBlock* allocas_ = nullptr;
  Value* mask_ = nullptr;  // of the block that is being widened
  DenseMap<Value*, Value*> scalars_, vectors_;
  DenseSet<Value*> postponed_;
  DenseMap<std::pair<Instruction*, BasicBlock*>, Value*> made_in_;  // of those, in which block
  DenseMap<BasicBlock*, BasicBlock*> begin_, end_;                  // a block's first and last
  DenseMap<BasicBlock*, Value*> masks_;
  DenseMap<Loop*, PHINode*> live_;
  DenseMap<PHINode*, Value*> carried_;
  DenseSet<PHINode*> keeping_;  // loop-carried values that are wanted outside
  DenseMap<Value*, std::optional<int64_t>> strides_;
  DenseMap<std::pair<PHINode*, unsigned>, PHINode*> lane_phis_;
  SmallVector<std::pair<PHINode*, unsigned>> new_lane_phis_;
  std::vector<Kept> kept_;
};

}  // namespace

std::string widen(Function& function, const WidenOptions& options) {
  ThreadAnalyses analyses;
  hide_sinks(function);
  analyses.run("sroa,early-cse,simplifycfg,instcombine<no-verify-fixpoint>", function);
  auto give_up = [&](std::string reason) {
    function.deleteBody();
    restore_sinks(function);
    return reason;
  };
  if (std::string reason = lower_exchanges(function, options.sites); !reason.empty()) return give_up(reason);
  separate_lanes(function);
  options.keep_stage("lanes");
  split_structure_phis(function);
  split_vectors(function, analyses);
  // Loops that are unrolled make indices of private arrays constant. Others are left at their end, so that they need no
  // structuring.
  analyses.run(
      "sroa,early-cse,simplifycfg,loop-mssa(loop-instsimplify,loop-rotate,licm),loop(loop-deletion,loop-unroll-full),"
      "sroa,early-cse,simplifycfg,instcombine<no-verify-fixpoint>,sroa,adce",
      function);
  // Variables that unrolling has made values are vectors again.
  if (any_of(instructions(function), [](const Instruction& i) { return i.getType()->isVectorTy(); }))
    split_vectors(function, analyses);
  separate_lanes(function);
  analyses.forget(function);
  options.keep_stage("components");
  auto is_barrier = [&](const Instruction& instruction) {
    std::optional<unsigned> site = waits_at(instruction);
    return site && options.sites[*site].is_barrier;
  };
  if (!barriers_agree(function, analyses.functions().getResult<UniformityInfoAnalysis>(function),
                      analyses.functions().getResult<LoopAnalysis>(function), is_barrier))
    return give_up("threads may come to a threadgroup_barrier in different numbers");
  analyses.run(kStructuring, function);
  options.keep_stage("structured");
  Function* wide = Function::Create(function.getFunctionType(), function.getLinkage(), "", function.getParent());
  wide->copyAttributesFrom(&function);
  std::string reason;
  try {
    Widener(function, *wide, analyses.functions(), options).run();
  } catch (const Refusal& refusal) {
    reason = refusal.reason;
  }
  function.deleteBody();
  if (!reason.empty()) {
    wide->dropAllReferences();
    wide->eraseFromParent();
    return give_up(reason);
  }
  function.splice(function.begin(), wide);
  for (auto [to, from] : zip(function.args(), wide->args())) from.replaceAllUsesWith(&to);
  wide->eraseFromParent();
  restore_sinks(function);
  options.keep_stage("widened");
  return "";
}

}  // namespace kiln
