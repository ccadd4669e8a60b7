#include "compiler/passes/widen.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/DenseSet.h>
#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/PostDominators.h>
#include <llvm/Analysis/UniformityAnalysis.h>
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Scalar/Scalarizer.h>

#include <map>
#include <optional>

#include "compiler/passes/bounds_guards.h"
#include "compiler/passes/uniformity.h"
#include "core/text.h"

namespace kiln {
namespace {

using namespace llvm;

// Why a function cannot be widened.
struct Refusal {
  std::string reason;
};

[[noreturn]] void refuse(std::string reason) { throw Refusal{std::move(reason)}; }

bool is_lane(const Value* value) {
  const auto* call = dyn_cast<CallInst>(value);
  return call && call->getCalledFunction() && call->getCalledFunction()->getName() == kLaneFunction;
}

class Widener {
 public:
  Widener(Function& from, Function& to, FunctionAnalysisManager& analyses)
      : from_(from),
        to_(to),
        uniformity_(analyses.getResult<UniformityInfoAnalysis>(from)),
        loops_(analyses.getResult<LoopAnalysis>(from)),
        dominators_(analyses.getResult<DominatorTreeAnalysis>(from)),
        post_dominators_(analyses.getResult<PostDominatorTreeAnalysis>(from)),
        layout_(from.getDataLayout()),
        context_(from.getContext()),
        mask_type_(FixedVectorType::get(Type::getInt1Ty(context_), kLanes)) {}

  void run() {
    for (auto [old_argument, new_argument] : zip(from_.args(), to_.args())) scalars_[&old_argument] = &new_argument;
    find_divergent();
    check_structure();
    BasicBlock* entry = BasicBlock::Create(context_, "entry", &to_);
    allocas_ = entry;
    ReversePostOrderTraversal<Function*> order(&from_);
    for (BasicBlock* block : order) begin_[block] = BasicBlock::Create(context_, block->getName(), &to_);
    for (BasicBlock* block : order) widen_block(*block);
    for (BasicBlock* block : order) complete_phis(*block);
    IRBuilder<>(entry).CreateBr(begin_[&from_.getEntryBlock()]);
  }

 private:
  // ---- What differs

  bool differs(const Value* value) const { return differing_.contains(value); }

  void find_divergent() {
    for (Instruction& instruction : instructions(from_))
      if (uniformity_.isDivergent(&instruction)) differing_.insert(&instruction);
    // What leaves a loop that lanes leave in different iterations differs.
    for (Loop* loop : loops_.getLoopsInPreorder()) {
      if (!is_divergent_loop(*loop)) continue;
      SmallVector<BasicBlock*> exits;
      loop->getUniqueExitBlocks(exits);
      for (BasicBlock* exit : exits)
        for (PHINode& phi : exit->phis()) differing_.insert(&phi);
    }
    for (bool changed = true; changed;) {
      changed = false;
      for (Instruction& instruction : instructions(from_)) {
        if (differs(&instruction)) continue;
        if (any_of(instruction.operands(), [&](const Use& use) { return differs(use.get()); })) {
          differing_.insert(&instruction);
          changed = true;
        }
      }
    }
  }

  bool is_divergent_branch(const BasicBlock& block) const {
    const auto* branch = dyn_cast<BranchInst>(block.getTerminator());
    return branch && branch->isConditional() && differs(branch->getCondition());
  }

  bool is_divergent_loop(const Loop& loop) const {
    SmallVector<BasicBlock*> exiting;
    loop.getExitingBlocks(exiting);
    return any_of(exiting, [&](BasicBlock* block) { return is_divergent_branch(*block); });
  }

  // ---- What structuring promises

  void check_structure() {
    for (BasicBlock& block : from_) {
      if (!isa<BranchInst, ReturnInst, UnreachableInst>(block.getTerminator())) refuse("a branch of an unknown kind");
      if (!is_divergent_branch(block)) continue;
      auto* branch = cast<BranchInst>(block.getTerminator());
      Loop* loop = loops_.getLoopFor(&block);
      bool leaves = loop && (!loop->contains(branch->getSuccessor(0)) || !loop->contains(branch->getSuccessor(1)));
      if (leaves && loop->getLoopLatch() != &block) refuse("a loop that threads leave in its middle");
      if (!leaves && !join_of(*branch)) refuse("a branch without a join");
    }
    for (Loop* loop : loops_.getLoopsInPreorder()) {
      if (!loop->getLoopPreheader() || !loop->getLoopLatch()) refuse("a loop with several entries or latches");
      if (is_divergent_loop(*loop) && !loop->getExitingBlock()) refuse("a loop with several exits");
    }
  }

  // The successor at which both sides of a divergent branch meet.
  BasicBlock* join_of(BranchInst& branch) const {
    for (BasicBlock* successor : branch.successors())
      if (post_dominators_.dominates(successor, branch.getParent())) return successor;
    return nullptr;
  }

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
    if (differs(value)) refuse("a value before its definition");
    Type* type = vector_of(value->getType());
    if (auto* constant = dyn_cast<Constant>(value)) {
      if (isa<UndefValue>(constant)) return Constant::getNullValue(type);
      return ConstantVector::getSplat(ElementCount::getFixed(kLanes), constant);
    }
    return builder.CreateVectorSplat(kLanes, scalar(value));
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

  Value* mask_at(BasicBlock& block, IRBuilder<>& builder) {
    if (&block == &from_.getEntryBlock()) {
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
      return builder.CreateAnd(mask, condition_for(*before, block, builder), "mask");
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
        bool is_wanted = any_of(instruction.users(), [&](const User* user) {
          return !loop.contains(cast<Instruction>(user)->getParent());
        });
        if (!is_wanted) continue;
        Type* type = vector_of(instruction.getType());
        PHINode* kept = builder.CreatePHI(type, 2, "kept");
        kept->addIncoming(Constant::getNullValue(type), end_.at(loop.getLoopPreheader()));
        kept_.push_back({&loop, &instruction, kept, nullptr});
      }
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
    Value* wanted = builder.CreateAnd(mask_, condition_for(block, *side, builder));
    builder.CreateCondBr(any(wanted, builder), begin_[side], begin_[join]);
  }

  void close_loop(Loop& loop, BasicBlock& latch, BranchInst& branch, IRBuilder<>& builder) {
    // Each lane that is in the loop decides here.
    if (mask_ != live_.at(&loop)) refuse("a loop whose end some of its threads do not reach");
    BasicBlock* header = loop.getHeader();
    BasicBlock* exit = branch.getSuccessor(branch.getSuccessor(0) == header ? 1 : 0);
    Value* stays = builder.CreateAnd(mask_, condition_for(latch, *header, builder), "stays");
    live_[&loop]->addIncoming(stays, builder.GetInsertBlock());
    for (Kept& kept : kept_)
      if (kept.loop == &loop) {
        kept.last = builder.CreateSelect(mask_, vector(kept.value, builder), kept.phi);
        kept.phi->addIncoming(kept.last, builder.GetInsertBlock());
      }
    for (PHINode& phi : header->phis())
      if (differs(&phi)) {
        Value* next = vector(phi.getIncomingValueForBlock(&latch), builder);
        carried_[&phi] = builder.CreateSelect(mask_, next, vectors_[&phi]);
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
    bool has_effect = instruction.mayWriteToMemory() || instruction.isAtomic();
    if (!differs(&instruction) && !has_effect) return copy(instruction, builder);
    if (auto* load = dyn_cast<LoadInst>(&instruction); load && !has_effect) return widen_load(*load, builder);
    if (auto* store = dyn_cast<StoreInst>(&instruction); store && store->isSimple()) return widen_store(*store, builder);
    if (has_effect) return each_lane(instruction, builder);
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

  // One behind the other: a variable of each lane.
  void widen_variable(AllocaInst& variable) {
    if (!variable.isStaticAlloca() || variable.isArrayAllocation()) refuse("a variable of dynamic size");
    IRBuilder<> builder(allocas_);
    uint64_t size = alignTo(layout_.getTypeAllocSize(variable.getAllocatedType()), variable.getAlign());
    AllocaInst* all = builder.CreateAlloca(ArrayType::get(builder.getInt8Ty(), size * kLanes));
    all->setAlignment(std::max(variable.getAlign(), Align(64)));
    Value* offsets =
        builder.CreateMul(lane_numbers(builder.getInt64Ty()), ConstantVector::getSplat(ElementCount::getFixed(kLanes), builder.getInt64(size)));
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
    if (auto* binary = dyn_cast<BinaryOperator>(&instruction))
      return builder.CreateBinOp(binary->getOpcode(), operand(0), operand(1));
    if (isa<UnaryOperator>(instruction)) return builder.CreateFNeg(operand(0));
    if (isa<FreezeInst>(instruction)) return builder.CreateFreeze(operand(0));
    if (auto* address = dyn_cast<GetElementPtrInst>(&instruction)) {
      Value* pointer = address->getPointerOperand();
      SmallVector<Value*> indices;
      for (Value* index : address->indices()) indices.push_back(differs(index) ? vector(index, builder) : scalar(index));
      Value* base = differs(pointer) ? vector(pointer, builder) : scalar(pointer);
      Value* result = builder.CreateGEP(address->getSourceElementType(), base, indices);
      return result->getType()->isVectorTy() ? result : builder.CreateVectorSplat(kLanes, result);
    }
    if (auto* call = dyn_cast<IntrinsicInst>(&instruction)) return widen_intrinsic(*call, builder);
    return nullptr;
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

  static bool has_gathers(Type* type, const DataLayout& layout) {
    return layout.getTypeSizeInBits(type) == 32 || layout.getTypeSizeInBits(type) == 64;
  }

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

  void widen_load(LoadInst& load, IRBuilder<>& builder) {
    Value* pointer = load.getPointerOperand();
    if (!differs(pointer)) {
      // The same address, but a loop makes the value differ.
      auto* same = cast<LoadInst>(load.clone());
      same->setOperand(0, scalar(pointer));
      builder.Insert(same);
      vectors_[&load] = builder.CreateVectorSplat(kLanes, same);
      return;
    }
    if (!has_gathers(load.getType(), layout_)) return each_lane(load, builder);
    Value* mask = mask_;
    if (auto guard = guarded(pointer)) {
      Value* allowed = vector(guard->allowed, builder);
      mask = builder.CreateAnd(mask, allowed);
      pointer = guard->address;
    }
    Type* type = vector_of(load.getType());
    vectors_[&load] = builder.CreateMaskedGather(type, vector(pointer, builder), load.getAlign(), mask,
                                                 Constant::getNullValue(type));
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
      Value* last = builder.CreateSub(builder.getInt32(31), builder.CreateBinaryIntrinsic(Intrinsic::ctlz, bits, builder.getTrue()));
      auto* one = cast<StoreInst>(store.clone());
      one->setOperand(0, builder.CreateExtractElement(vector(value, builder), last));
      one->setOperand(1, scalar(pointer));
      builder.Insert(one);
      return;
    }
    if (!has_gathers(value->getType(), layout_)) return each_lane(store, builder);
    builder.CreateMaskedScatter(vector(value, builder), vector(pointer, builder), store.getAlign(), mask_);
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
      if (lanes->getType()->getScalarType()->isIntegerTy(1)) lanes = builder.CreateZExt(lanes, vector_of(builder.getInt8Ty()));
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
    if (!isa<AtomicCmpXchgInst>(instruction)) refuse("a structure as a value");
    for (User* user : instruction.users())
      if (!isa<ExtractValueInst>(user)) refuse("a structure as a value");
  }

  struct Kept {
    Loop* loop;
    Instruction* value;
    PHINode* phi;
    Value* last;
  };

  Function& from_;
  Function& to_;
  UniformityInfo& uniformity_;
  LoopInfo& loops_;
  DominatorTree& dominators_;
  PostDominatorTree& post_dominators_;
  const DataLayout& layout_;
  LLVMContext& context_;
  Type* mask_type_;
  BasicBlock* allocas_ = nullptr;
  Value* mask_ = nullptr;  // of the block that is being widened
  DenseSet<const Value*> differing_;
  DenseMap<Value*, Value*> scalars_, vectors_;
  DenseMap<BasicBlock*, BasicBlock*> begin_, end_;  // a block's first and last
  DenseMap<BasicBlock*, Value*> masks_;
  DenseMap<Loop*, PHINode*> live_;
  DenseMap<PHINode*, Value*> carried_;
  std::vector<Kept> kept_;
};

}  // namespace

std::string widen(Function& function) {
  ThreadAnalyses analyses;
  {
    // Vectors of the kernel's own as their components: they become vectors of 32.
    ScalarizerPassOptions options;
    options.ScalarizeLoadStore = true;
    options.ScalarizeVariableInsertExtract = true;
    options.ScalarizeMinBits = 0;
    FunctionPassManager passes;
    passes.addPass(ScalarizerPass(options));
    analyses.run(passes, function);
  }
  analyses.run(
      "sroa,early-cse,simplifycfg,instcombine<no-verify-fixpoint>,sroa,adce,"
      "lower-switch,mergereturn,fix-irreducible,loop-simplify,unify-loop-exits,structurizecfg,"
      "sroa<preserve-cfg>,early-cse,loop-simplify,lcssa",
      function);
  Function* wide = Function::Create(function.getFunctionType(), function.getLinkage(), "", function.getParent());
  wide->copyAttributesFrom(&function);
  std::string reason;
  try {
    Widener(function, *wide, analyses.functions()).run();
  } catch (const Refusal& refusal) {
    reason = refusal.reason;
  }
  function.deleteBody();
  if (!reason.empty()) {
    wide->dropAllReferences();
    wide->eraseFromParent();
    return reason;
  }
  function.splice(function.begin(), wide);
  for (auto [to, from] : zip(function.args(), wide->args())) from.replaceAllUsesWith(&to);
  wide->eraseFromParent();
  return "";
}

}  // namespace kiln
