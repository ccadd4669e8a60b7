#include "compiler/versioning/function_versioning.h"

#include <llvm/ADT/PointerIntPair.h>
#include <llvm/Analysis/CFG.h>
#include <llvm/Analysis/PostDominators.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include <cstdlib>
#include <optional>

#include "compiler/ir/likely.h"
#include "compiler/ir/metadata.h"
#include "compiler/ir/remarks.h"
#include "compiler/ir/simdgroup.h"
#include "compiler/versioning/versioning.h"

namespace kiln {
namespace {

using namespace llvm;
using namespace llvm::PatternMatch;

// Bytes from the lowest access to an array to the end of the highest one.
constexpr uint64_t kLongestReach = uint64_t{1} << 40;

constexpr const char* kFunctionVersioning = "function-versioning";

class FunctionScope : public VersioningScope {
 public:
  FunctionScope(Function& group, FunctionAnalysisManager& analyses, unsigned fewest)
      : group_(group),
        fewest_(fewest),
        insertion_point_(*end_of_prologue(group)),
        dominators_(analyses.getResult<DominatorTreeAnalysis>(group)),
        post_dominators_(analyses.getResult<PostDominatorTreeAnalysis>(group)),
        evolution_(analyses.getResult<ScalarEvolutionAnalysis>(group)) {
    require_no_early_exits();
  }

  // The fast copy.
  Function* function() const { return fast_; }

 private:
  struct Requirement {
    Value* condition;
    bool value;
  };

  // Only checks that always execute, or do where no lane has left before: a check under a condition may fail where the
  // condition is false, e.g. of an access which that condition keeps in bounds.
  bool always_executes(const BranchInst& check) const { return always_executed_.contains(check.getParent()); }

  // `if (x >= width || y >= height) return;` before everything else: all lanes go on, or the fast version does not run.
  // Then what comes after the exit always executes, and no mask is left.
  void require_no_early_exits() {
    const BasicBlock* end = nullptr;
    bool is_early = true;  // A later condition may be the body's last one, as in `if (lane == 0) y[i] = sum;`.
    for (BasicBlock* block = insertion_point_.getParent(); block && block != end;) {
      always_executed_.insert(block);
      auto* node = post_dominators_.getNode(block)->getIDom();
      BasicBlock* next = node ? node->getBlock() : nullptr;
      BasicBlock* rest = is_early ? after_early_exit(*block, next) : nullptr;
      if (rest) end = next;  // an exit in the rest leads there, or farther
      is_early = is_early && (rest || succ_size(block) == 1);
      block = rest ? rest : next;
    }
  }

  // Where the block's branch goes on, if its other side only leads to the end, and where all lanes can
  // be required to go on.
  BasicBlock* after_early_exit(BasicBlock& block, BasicBlock* exit) {
    auto* branch = dyn_cast<BranchInst>(block.getTerminator());
    if (!exit || !branch || !branch->isConditional() || check_of(block) || !does_nothing_from(*exit)) return nullptr;
    const unsigned side = branch->getSuccessor(0) == exit ? 1 : 0;
    BasicBlock* rest = branch->getSuccessor(side);
    if (branch->getSuccessor(1 - side) != exit || rest == exit || !rest->getSinglePredecessor()) return nullptr;
    // A mask with a bit that is set, where all are.
    ICmpInst::Predicate predicate;
    Value* mask;
    const bool goes_on_if = side == 0;
    const bool tests_mask = match(branch->getCondition(), m_ICmp(predicate, m_BitCast(m_Value(mask)), m_Zero())) &&
                            predicate == (goes_on_if ? ICmpInst::ICMP_NE : ICmpInst::ICMP_EQ) && is_mask(mask);
    SmallVector<Requirement> known;
    if (tests_mask ? !decompose(mask, true, known) : !decompose(branch->getCondition(), goes_on_if, known))
      return nullptr;
    exits_.append(known);
    return rest;
  }

  // After the first that does something no other exit is looked for, so that each block is looked at once.
  bool does_nothing_from(BasicBlock& block) {
    SmallVector<BasicBlock*> left{&block};
    while (!left.empty()) {
      BasicBlock* next = left.pop_back_val();
      if (!does_nothing_.insert(next).second) continue;
      if (any_of(*next, [](const Instruction& i) { return i.mayHaveSideEffects(); })) return false;
      append_range(left, successors(next));
    }
    return true;
  }

  static bool is_mask(const Value* value) {
    const auto* type = dyn_cast<FixedVectorType>(value->getType());
    return type && type->getElementType()->isIntegerTy(1) && type->getNumElements() == kLanes;
  }

  bool require(BranchInst& check, bool value) override {
    return always_executes(check) && require(check.getCondition(), value);
  }

  bool may_keep(BranchInst& check) override {
    remark(kFunctionVersioning, check,
           always_executes(check) ? "this check stays: it depends on memory, on a loop or on a branch"
                                  : "this check stays: it is made under a condition");
    return true;
  }

  bool is_enough(size_t hoisted) override {
    if (hoisted < fewest_)
      remark(kFunctionVersioning, group_, "not this kernel: ", hoisted,
             " of its checks can be made first, and fewer than ", fewest_, " are not worth a second function");
    return hoisted >= fewest_;
  }

  // A number of fewer bits, extended and multiplied by a constant, that is compared with a limit below which the number
  // does not wrap. Then distances between such numbers are those between the extended ones.
  struct Extension {
    const SCEV* number;
    unsigned opcode;
    uint64_t scale;

    bool has_kind_of(const Extension& other) const {
      return opcode == other.opcode && scale == other.scale && number->getType() == other.number->getType();
    }
  };

  // Indices at known distances of which each is below the limit by more than its reach. One check covers them: that of
  // the lowest index, with the farthest reach. Then no index between them wraps.
  struct Range {
    Value* lowest;
    const SCEV* number;  // of `lowest`
    Value* limit;
    const SCEV* limit_number;
    uint64_t reach;
    std::optional<Extension> extension;  // of `lowest`
  };

  // The end of the code that executes first and exactly once. It writes nothing, so the function can still be abandoned
  // there for the other version.
  static Instruction* end_of_prologue(Function& function) {
    for (BasicBlock* block = &function.getEntryBlock();;) {
      for (Instruction& instruction : *block)
        if (instruction.mayHaveSideEffects() || instruction.isTerminator()) {
          auto* branch = dyn_cast<BranchInst>(&instruction);
          BasicBlock* next = branch && branch->isUnconditional() ? branch->getSuccessor(0) : nullptr;
          if (!next || !next->getSinglePredecessor()) return &instruction;
          block = next;
          break;
        }
    }
  }

  bool require(Value* condition, bool value) {
    SmallVector<Requirement> known;
    if (!decompose(condition, value, known)) return false;
    // Many checks depend on the same numbers.
    for (const Requirement& part : known)
      if (required_.insert({part.condition, part.value}).second && !add_range(part)) requirements_.push_back(part);
    return true;
  }

  // What it takes for a condition, of one thread or of all lanes, to have the value. Nothing that is constant.
  bool decompose(Value* condition, bool value, SmallVectorImpl<Requirement>& known) {
    Value *one, *other;
    if (auto* constant = dyn_cast<Constant>(condition))
      return value ? constant->isAllOnesValue() : constant->isNullValue();
    if (match(condition, m_Not(m_Value(one)))) return decompose(one, !value, known);
    if (value ? match(condition, m_LogicalAnd(m_Value(one), m_Value(other)))
              : match(condition, m_LogicalOr(m_Value(one), m_Value(other))))
      return decompose(one, value, known) && decompose(other, value, known);
    if (Value* splat = is_mask(condition) ? getSplatValue(condition) : nullptr) return decompose(splat, value, known);
    known.push_back({condition, value});
    return can_be_hoisted(condition);
  }

  // Whether the value can be computed from values available at the start, without memory accesses.
  bool can_be_hoisted(Value* value) {
    auto* instruction = dyn_cast<Instruction>(value);
    if (!instruction || dominators_.dominates(instruction, &insertion_point_)) return true;
    auto [found, is_new] = can_be_hoisted_.try_emplace(instruction, false);
    if (!is_new) return found->second;
    // It must not be poison either, where the original code would not have reached it.
    bool is_arithmetic = !isa<PHINode>(instruction) && !instruction->mayReadOrWriteMemory() &&
                         isSafeToSpeculativelyExecute(instruction) &&
                         !canCreatePoison(cast<Operator>(instruction), /*ConsiderFlagsAndMetadata=*/false);
    return is_arithmetic && all_of(instruction->operands(), [&](Use& use) { return can_be_hoisted(use.get()); }) &&
           (can_be_hoisted_[instruction] = true);
  }

  bool add_range(const Requirement& known) {
    auto* comparison = dyn_cast<ICmpInst>(known.condition);
    if (!comparison || !known.value || comparison->getPredicate() != ICmpInst::ICMP_ULT) return false;
    Value *number = comparison->getOperand(0), *limit = comparison->getOperand(1);
    uint64_t reach = 0, less;
    Value* from;
    while (match(limit, m_Intrinsic<Intrinsic::usub_sat>(m_Value(from), m_ConstantInt(less))) &&
           less <= kLongestReach) {
      reach += less;
      limit = from;
    }
    if (!number->getType()->isIntegerTy(64) || reach > kLongestReach) return false;
    const SCEV *scev = evolution_.getSCEV(number), *limit_number = evolution_.getSCEV(limit);
    const std::optional<Extension> extension = extension_of(number, limit);
    for (Range& range : ranges_) {
      if (range.limit_number != limit_number) continue;
      std::optional<int64_t> known_distance = distance_of(scev, range.number);
      if (!known_distance && extension && range.extension && extension->has_kind_of(*range.extension))
        if (std::optional<int64_t> numbers = distance_of(extension->number, range.extension->number))
          known_distance = *numbers * static_cast<int64_t>(extension->scale);
      if (!known_distance || static_cast<uint64_t>(std::abs(*known_distance)) > kLongestReach) continue;
      const int64_t bytes = *known_distance;
      uint64_t gap = static_cast<uint64_t>(std::abs(bytes));
      if (bytes < 0) {
        range.reach = std::max(reach, range.reach + gap);
        range.lowest = number;
        range.number = scev;
        range.extension = extension;
      } else {
        range.reach = std::max(range.reach, reach + gap);
      }
      return true;
    }
    ranges_.push_back({number, scev, limit, limit_number, reach, extension});
    return true;
  }

  std::optional<int64_t> distance_of(const SCEV* one, const SCEV* other) {
    auto* distance = dyn_cast<SCEVConstant>(evolution_.getMinusSCEV(one, other));
    if (!distance) return std::nullopt;
    return distance->getAPInt().getSExtValue();
  }

  std::optional<Extension> extension_of(Value* number, Value* limit) {
    uint64_t scale = 1, by;
    Value *from, *narrow;
    for (;; number = from) {
      if (match(number, m_Shl(m_Value(from), m_ConstantInt(by))) && by <= 16)
        scale <<= by;
      else if (match(number, m_Mul(m_Value(from), m_ConstantInt(by))) && by != 0 && by <= 1 << 16)
        scale *= by;
      else
        break;
      if (scale > 1 << 16) return std::nullopt;
    }
    if (!match(number, m_ZExtOrSExt(m_Value(narrow))) || narrow->getType()->isIntegerTy(1)) return std::nullopt;
    const auto opcode = cast<Instruction>(number)->getOpcode();
    const unsigned bits = narrow->getType()->getIntegerBitWidth() - (opcode == Instruction::SExt);
    const APInt end = APInt(64, scale).shl(bits);
    if (bits > 32 || evolution_.getUnsignedRangeMax(evolution_.getSCEV(limit)).ugt(end)) return std::nullopt;
    return Extension{evolution_.getSCEV(narrow), opcode, scale};
  }

  // The original becomes the slow version.
  void copy() override {
    LLVMContext& context = group_.getContext();
    SmallVector<Type*> types;
    for (Argument& argument : group_.args()) types.push_back(argument.getType());
    fast_ = Function::Create(FunctionType::get(Type::getInt1Ty(context), types, false), GlobalValue::InternalLinkage,
                             group_.getName() + ".whole", group_.getParent());
    for (auto [argument, copy] : zip(group_.args(), fast_->args())) copies_[&argument] = &copy;
    SmallVector<ReturnInst*> returns;
    CloneFunctionInto(fast_, &group_, copies_, CloneFunctionChangeType::LocalChangesOnly, returns);
    fast_->setDSOLocal(true);  // whatever the original is, which it has copied that from
    for (ReturnInst* from : returns)
      ReplaceInstWithInst(from, ReturnInst::Create(context, ConstantInt::getTrue(context)));
    cloned_insertion_point_ = cast<Instruction>(copies_[&insertion_point_]);
  }

  Value* expand() override {
    IRBuilder<> builder(cloned_insertion_point_);
    Value* all = builder.getTrue();
    auto add = [&](Value* part) { all = builder.CreateAnd(all, part); };
    for (auto [condition, value] : requirements_) {
      Value* part = hoist(condition);
      add(value ? part : builder.CreateNot(part));
    }
    // These are known from here on, for each use of theirs.
    for (auto [condition, value] : exits_) {
      Value *part = hoist(condition), *bits = part;
      if (is_mask(part)) bits = builder.CreateBitCast(part, builder.getIntNTy(kLanes));
      auto known = [&](Type* type) { return value ? Constant::getAllOnesValue(type) : Constant::getNullValue(type); };
      Value* test = builder.CreateICmpEQ(bits, known(bits->getType()));
      part->replaceUsesWithIf(known(part->getType()),
                              [&](Use& use) { return use.getUser() != bits && use.getUser() != test; });
      // Of several parts one may be poison where another does not hold.
      add(builder.CreateFreeze(test));
    }
    for (const Range& range : ranges_) {
      Value *lowest = hoist(range.lowest), *limit = hoist(range.limit);
      Value* reduced_limit = builder.CreateBinaryIntrinsic(Intrinsic::usub_sat, limit, builder.getInt64(range.reach));
      add(builder.CreateICmpULT(lowest, reduced_limit));
    }
    return all;
  }

  void select(Value* condition) override {
    LLVMContext& context = group_.getContext();
    BasicBlock* other = BasicBlock::Create(context, "other", fast_);
    ReturnInst::Create(context, ConstantInt::getFalse(context), other);
    mark_likely(branch_at(*cloned_insertion_point_, condition, *other));
    Argument* lanes = fast_->getArg(static_cast<unsigned>(fast_->arg_size()) - 1);
    lanes->replaceAllUsesWith(ConstantInt::get(lanes->getType(), kLanes));
  }

  BranchInst& in_fast_copy(BranchInst& check) override { return cast<BranchInst>(*copies_[&check]); }

  // The clone of a value, hoisted to the start.
  Value* hoist(Value* value) {
    auto* instruction = dyn_cast<Instruction>(value);
    if (!instruction) return isa<Argument>(value) ? static_cast<Value*>(copies_[value]) : value;
    auto* copy = cast<Instruction>(copies_[value]);
    if (dominators_.dominates(instruction, &insertion_point_) || !moved_.insert(instruction).second) return copy;
    for (Use& use : instruction->operands()) hoist(use.get());
    copy->moveBefore(cloned_insertion_point_);
    // The flags hold only at the original position.
    copy->dropPoisonGeneratingFlags();
    return copy;
  }

  Function& group_;
  const unsigned fewest_;
  Instruction& insertion_point_;
  DominatorTree& dominators_;
  PostDominatorTree& post_dominators_;
  ScalarEvolution& evolution_;
  SmallPtrSet<const BasicBlock*, 16> always_executed_;
  SmallPtrSet<const BasicBlock*, 16> does_nothing_;  // of exits so far: nothing is done from here on
  DenseMap<Instruction*, bool> can_be_hoisted_;
  SmallVector<Requirement> requirements_, exits_;
  DenseSet<PointerIntPair<Value*, 1, bool>> required_;
  SmallVector<Range> ranges_;
  Function* fast_ = nullptr;
  ValueToValueMapTy copies_;
  Instruction* cloned_insertion_point_ = nullptr;
  DenseSet<Instruction*> moved_;
};

// Whether it fails at most at the ends of an array: an offset below a limit, and 32 lanes without a wrap between them.
bool is_check_of_bounds(Value* condition) {
  Value *one, *other;
  if (match(condition, m_One())) return true;
  if (match(condition, m_LogicalAnd(m_Value(one), m_Value(other))))
    return is_check_of_bounds(one) && is_check_of_bounds(other);
  auto* comparison = dyn_cast<ICmpInst>(condition);
  if (!comparison || !comparison->getOperand(0)->getType()->isIntegerTy(64)) return false;
  return comparison->getPredicate() == ICmpInst::ICMP_ULT ||
         (comparison->getPredicate() == ICmpInst::ICMP_EQ && isa<ConstantInt>(comparison->getOperand(1)));
}

bool is_variable(const Value* pointer) { return isa<AllocaInst>(getUnderlyingObject(pointer)); }

// Of the lanes, with elements that a mask can select.
bool can_be_masked(const StoreInst& store, const VectorIsa& vector_isa) {
  const auto* type = dyn_cast<FixedVectorType>(store.getValueOperand()->getType());
  if (!store.isSimple() || !store.hasMetadata(kOfLanes) || !type) return false;
  const uint64_t bits = store.getDataLayout().getTypeSizeInBits(type->getElementType());
  return bits == 32 || bits == 64 || (vector_isa.masks_small_elements && (bits == 8 || bits == 16));
}

// A masked store or scatter of the lanes; else null.
IntrinsicInst* masked_write(Instruction& instruction) {
  auto* call = dyn_cast<IntrinsicInst>(&instruction);
  if (!call || !call->hasMetadata(kOfLanes)) return nullptr;
  const Intrinsic::ID id = call->getIntrinsicID();
  return id == Intrinsic::masked_store || id == Intrinsic::masked_scatter ? call : nullptr;
}

// One of all lanes becomes a store, which is returned.
StoreInst* store_all_lanes(IntrinsicInst& masked) {
  if (masked.getIntrinsicID() != Intrinsic::masked_store || !match(masked.getArgOperand(3), m_AllOnes()))
    return nullptr;
  const Align align = cast<ConstantInt>(masked.getArgOperand(2))->getAlignValue();
  StoreInst* store = IRBuilder<>(&masked).CreateAlignedStore(masked.getArgOperand(0), masked.getArgOperand(1), align);
  store->setAAMetadata(masked.getAAMetadata());
  masked.eraseFromParent();
  return store;
}

// Masked stores are slow on some processors, and a store in a branch would keep the values' registers live until there.
// So simdgroups with fewer threads store to a variable first.
void mask_store(StoreInst& store, Value* is_full, Value* mask) {
  Value *values = store.getValueOperand(), *address = store.getPointerOperand();
  BasicBlock& entry = store.getFunction()->getEntryBlock();
  auto* variable = IRBuilder<>(&entry, entry.begin()).CreateAlloca(values->getType());
  IRBuilder<> builder(&store);
  store.setOperand(StoreInst::getPointerOperandIndex(), builder.CreateSelect(is_full, address, variable));
  const AAMDNodes aliases = store.getAAMetadata();
  store.setAAMetadata(AAMDNodes());
  builder.SetInsertPoint(SplitBlockAndInsertIfThen(builder.CreateNot(is_full), std::next(store.getIterator()),
                                                   /*Unreachable=*/false));
  Value* stored = builder.CreateLoad(values->getType(), variable);
  builder.CreateMaskedStore(stored, address, store.getAlign(), mask)->setAAMetadata(aliases);
}

}  // namespace

bool take_fewer_threads(Function& fast, const VectorIsa& vector_isa) {
  for (BasicBlock& block : fast) {
    const auto* result = dyn_cast<ReturnInst>(block.getTerminator());
    if (!result || !match(result->getReturnValue(), m_Zero())) continue;
    const BasicBlock* before = block.getSinglePredecessor();
    const auto* branch = before ? dyn_cast<BranchInst>(before->getTerminator()) : nullptr;
    if (!branch || !branch->isConditional() || !is_check_of_bounds(branch->getCondition())) return false;
  }
  SmallVector<std::pair<const BasicBlock*, const BasicBlock*>> back_edges;
  FindFunctionBackedges(fast, back_edges);
  if (!back_edges.empty()) return false;
  SmallVector<StoreInst*> stores;
  SmallVector<IntrinsicInst*> masked;
  for (Instruction& instruction : instructions(fast)) {
    if (!instruction.mayHaveSideEffects()) continue;
    auto* store = dyn_cast<StoreInst>(&instruction);
    if (store && is_variable(store->getPointerOperand())) continue;
    if (store && can_be_masked(*store, vector_isa))
      stores.push_back(store);
    else if (IntrinsicInst* write = masked_write(instruction))
      masked.push_back(write);
    else
      return false;
  }
  Argument* threads = fast.getArg(static_cast<unsigned>(fast.arg_size()) - 1);
  IRBuilder<> builder(&*fast.getEntryBlock().getFirstNonPHIOrDbgOrAlloca());
  SmallVector<Constant*> lanes;
  for (unsigned lane = 0; lane < kLanes; ++lane) lanes.push_back(builder.getInt32(lane));
  Value* mask = builder.CreateICmpULT(ConstantVector::get(lanes), builder.CreateVectorSplat(kLanes, threads));
  Value* is_full = builder.CreateICmpEQ(threads, builder.getInt32(kLanes));
  for (IntrinsicInst* write : masked) {
    if (StoreInst* store = store_all_lanes(*write)) {
      stores.push_back(store);
      continue;
    }
    builder.SetInsertPoint(write);
    write->setArgOperand(3, builder.CreateLogicalAnd(mask, write->getArgOperand(3)));
  }
  for (StoreInst* store : stores) mask_store(*store, is_full, mask);
  return true;
}

Function* make_fast_version(Function& group, FunctionAnalysisManager& analyses, unsigned fewest) {
  const SmallVector<BranchInst*> checks = checks_of(group);
  if (checks.size() < fewest) {
    if (!checks.empty())
      remark(kFunctionVersioning, group, "not this kernel: it has ", checks.size(),
             checks.size() == 1 ? " check" : " checks", ", and fewer than ", fewest,
             " are not worth a second function");
    return nullptr;
  }
  FunctionScope scope(group, analyses, fewest);
  return scope.version(checks) ? scope.function() : nullptr;
}

}  // namespace kiln
