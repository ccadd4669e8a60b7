#include "compiler/workgroup/simdgroup_loops.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/MapVector.h>
#include <llvm/ADT/SetVector.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/PostDominators.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/CycleInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/ProfDataUtils.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

#include "compiler/analysis/divergence.h"
#include "compiler/ir/loop_metadata.h"
#include "compiler/ir/metadata.h"
#include "compiler/ir/rematerialize.h"
#include "compiler/ir/simdgroup.h"
#include "compiler/ir/striped_atomics.h"
#include "core/cpu_image.h"
#include "kiln/error.h"

namespace kiln {
namespace {

using namespace llvm;

// Of CpuThreadgroupFunction, those that CpuSimdgroupFunction has not.
enum ThreadgroupParameter : unsigned { kPlaces = 3, kCount = 4 };

// A few barriers in a few loops need a few.
constexpr unsigned kMostRounds = 16;

// Instructions of loops over simdgroups that are unrolled: what mostly runs, and what rarely does, much of which falls
// away when places are known. LLVM's scheduler mixes what belongs to several simdgroups: the 840 of an RMS norm took
// a third longer, the 640 of a tree reduction gain.
constexpr size_t kMostInALoop = 750, kMostInAll = 4000;
constexpr size_t kMostRareInALoop = 2000;

// How many times as often the other way is taken.
constexpr uint64_t kRare = 100;

// Frames of known size up to this lie on the stack, where what is stored can become registers.
constexpr uint64_t kMostOnStack = 16 << 10;

// Which field of the simdgroup's record the load reads, if it is one that simdgroups have apart. Behind a record's
// values nothing but the threadgroup's memory is read.
std::optional<uint32_t> own_field(const LoadInst& load) {
  const DataLayout& layout = load.getDataLayout();
  APInt offset(64, 0);
  const Value* base = load.getPointerOperand()->stripAndAccumulateConstantOffsets(layout, offset, true);
  const auto* argument = dyn_cast<Argument>(base);
  if (!argument || argument->getArgNo() != kCpuRecord || !load.getType()->isIntegerTy(32)) return std::nullopt;
  uint64_t field = offset.getZExtValue() / sizeof(uint32_t);
  if (field < kThreadgroupPosition || field == kIndexInThreadgroup) return static_cast<uint32_t>(field);
  return std::nullopt;
}

Difference between_simdgroups(const Value& value) {
  bool is_divergent = false;
  if (const auto* argument = dyn_cast<Argument>(&value)) {
    is_divergent = argument->getArgNo() == kCpuX || argument->getArgNo() == kCpuFrame;
  } else if (const auto* load = dyn_cast<LoadInst>(&value)) {
    // Memory that does not change gives the same to all who read at one place.
    is_divergent = !load->isSimple() || !load->hasMetadata(LLVMContext::MD_invariant_load) || own_field(*load);
  } else if (const auto* call = dyn_cast<CallInst>(&value)) {
    is_divergent = !isa<IntrinsicInst>(call) || !call->doesNotAccessMemory();
  } else {
    is_divergent = isa<AllocaInst>(value) || cast<Instruction>(value).mayReadOrWriteMemory();
  }
  return is_divergent ? Difference::kSource : Difference::kInherits;
}

class SimdgroupLoops {
 public:
  SimdgroupLoops(Function& function, unsigned count, function_ref<bool(const Instruction&)> is_barrier)
      : function_(function),
        layout_(function.getDataLayout()),
        builder_(function.getContext()),
        is_barrier_(is_barrier),
        known_count_(count) {}
  ~SimdgroupLoops() { frame_stride_->deleteValue(); }
  SimdgroupLoops(const SimdgroupLoops&) = delete;
  SimdgroupLoops& operator=(const SimdgroupLoops&) = delete;

  std::optional<uint64_t> run(Function& to) {
    if (!find_steps()) return std::nullopt;
    close_regions();
    CycleInfo cycles;
    cycles.compute(function_);
    const Divergence divergence(function_, cycles, PostDominatorTree(function_), between_simdgroups);
    divergence_ = &divergence;
    if (!steps_are_taken_together()) return std::nullopt;
    DominatorTree dominators(function_);
    find_rare(dominators);
    LoopInfo loops(dominators);
    loops_ = &loops;
    places_ = to.getArg(kPlaces);
    count_ = known_count_ ? builder_.getInt32(known_count_) : static_cast<Value*>(to.getArg(kCount));
    store_choices();
    keep_values();
    replace_own_values();
    for (auto& region : regions_) repeat(*region);
    frame_bytes_ = alignTo(frame_bytes_, kCpuFrameAlignment);
    frame_stride_->replaceAllUsesWith(builder_.getInt64(frame_bytes_));
    if (known_count_ && frame_bytes_ > 0 && frame_bytes_ * known_count_ <= kMostOnStack) {
      IRBuilder<> builder(&*function_.getEntryBlock().begin());
      AllocaInst* frames = builder.CreateAlloca(ArrayType::get(builder.getInt8Ty(), frame_bytes_ * known_count_));
      frames->setAlignment(Align(kCpuFrameAlignment));
      function_.getArg(kCpuFrame)->replaceAllUsesWith(frames);
      frame_bytes_ = 0;
    }
    to.splice(to.begin(), &function_);
    for (unsigned i : {kCpuLaunch, kCpuRecord, kCpuFrame}) function_.getArg(i)->replaceAllUsesWith(to.getArg(i));
    return frame_bytes_;
  }

 private:
  // One loop over the simdgroups.
  struct Region {
    Region(BasicBlock* before, BasicBlock* first) : step(before), start(first) {}
    BasicBlock* step;
    BasicBlock* start;           // whose only predecessor is `step`
    BasicBlock* end = nullptr;   // leads to `next` only
    BasicBlock* next = nullptr;  // a step
    SmallVector<BasicBlock*> blocks;
    BasicBlock* head = nullptr;  // of the loop, once it is one
    PHINode* number = nullptr;   // the simdgroup's
    Value* frame = nullptr;
    DenseMap<uint32_t, Value*> own;  // values that a simdgroup has for itself, by their fields of its record
  };

  // A value that simdgroups have for themselves and need in other regions than that in which it is computed; a step's
  // phi is in none.
  struct Kept {
    Kept(Instruction* what, BasicBlock* where) : value(what), stored(where) {}
    Instruction* value;
    BasicBlock* stored;  // the region's last block, or the step
    SmallVector<Use*> uses;
    SmallPtrSet<BasicBlock*, 8> live;  // blocks at whose beginning a later use will need it
    uint64_t offset = 0;
  };

  // ---- Steps: blocks that are run once for the threadgroup

  bool is_step(const BasicBlock* block) const { return steps_.contains(block); }

  BasicBlock* add_step(BasicBlock* block) {
    steps_.insert(block);
    return block;
  }

  // A step for each barrier, for each branch that decides about a step, and wherever ways between steps meet.
  bool find_steps() {
    ReturnInst* end = nullptr;
    SmallVector<CallInst*> barriers;
    for (Instruction& instruction : instructions(function_)) {
      if (isa<UnreachableInst>(instruction)) return false;
      if (auto* ret = dyn_cast<ReturnInst>(&instruction)) {
        if (end) return false;
        end = ret;
      }
      if (is_barrier_(instruction)) barriers.push_back(cast<CallInst>(&instruction));
    }
    if (!end) return false;
    BasicBlock* body = &function_.getEntryBlock();
    BasicBlock* entry = BasicBlock::Create(function_.getContext(), "threadgroup", &function_, body);
    BranchInst::Create(body, entry);
    add_step(entry);
    for (CallInst* barrier : barriers) {
      BasicBlock* step = SplitBlock(barrier->getParent(), barrier);
      SplitBlock(step, barrier->getNextNode());
      step->setName("barrier");
      add_step(step);
      if (!barrier->use_empty()) return false;
      barrier->eraseFromParent();
    }
    add_step(SplitBlock(end->getParent(), end));
    for (unsigned most = 0; most < kMostRounds; ++most) {
      if (!split_branches()) return false;
      separate_steps();
      if (!find_regions()) return false;
      if (!split_joins()) return true;
    }
    return false;
  }

  // Branches on which it depends whether a step is reached.
  bool split_branches() {
    PostDominatorTree post_dominators(function_);
    if (post_dominators.root_size() != 1) return false;  // a loop without an end
    SmallVector<BasicBlock*> forks;
    for (BasicBlock& block : function_)
      if (!is_step(&block) && block.getTerminator()->getNumSuccessors() > 1) forks.push_back(&block);
    SmallSetVector<BasicBlock*, 16> waiting;
    for (BasicBlock& block : function_)
      if (is_step(&block)) waiting.insert(&block);
    SmallPtrSet<BasicBlock*, 16> deciding;
    for (unsigned i = 0; i < waiting.size(); ++i)
      for (BasicBlock* fork : forks) {
        if (deciding.contains(fork) || post_dominators.properlyDominates(waiting[i], fork)) continue;
        if (none_of(successors(fork), [&](BasicBlock* next) { return post_dominators.dominates(waiting[i], next); }))
          continue;
        deciding.insert(fork);
        waiting.insert(fork);
      }
    for (BasicBlock* fork : forks)
      if (deciding.contains(fork)) add_step(SplitBlock(fork, fork->getTerminator()));
    return true;
  }

  // Each way out of a step begins with a block of its own.
  void separate_steps() {
    SmallVector<BasicBlock*> steps;
    for (BasicBlock& block : function_)
      if (is_step(&block)) steps.push_back(&block);
    for (BasicBlock* step : steps) {
      Instruction* branch = step->getTerminator();
      for (unsigned i = 0; i < branch->getNumSuccessors(); ++i) {
        BasicBlock* next = branch->getSuccessor(i);
        if (!is_step(next) && next->getSinglePredecessor()) {
          FoldSingleEntryPHINodes(next);
          continue;
        }
        BasicBlock* between = BasicBlock::Create(function_.getContext(), "region", &function_, next);
        BranchInst::Create(next, between);
        branch->setSuccessor(i, between);
        // One of perhaps several ways from here to there.
        for (PHINode& phi : next->phis())
          phi.setIncomingBlock(static_cast<unsigned>(phi.getBasicBlockIndex(step)), between);
      }
    }
  }

  bool find_regions() {
    regions_.clear();
    region_of_.clear();
    meetings_.clear();
    for (BasicBlock& block : function_) {
      if (!is_step(&block)) continue;
      for (BasicBlock* start : successors(&block)) regions_.push_back(std::make_unique<Region>(&block, start));
    }
    bool has_two_ends = false;
    for (auto& region : regions_) {
      SmallVector<BasicBlock*> waiting{region->start};
      while (!waiting.empty()) {
        BasicBlock* block = waiting.pop_back_val();
        if (is_step(block)) {
          has_two_ends = has_two_ends || (region->next && region->next != block);
          region->next = block;
          continue;
        }
        Region*& owner = region_of_[block];
        if (owner == region.get()) continue;
        if (owner) {
          meetings_.insert(block);
          continue;
        }
        owner = region.get();
        region->blocks.push_back(block);
        append_range(waiting, successors(block));
      }
    }
    return !has_two_ends || !meetings_.empty();
  }

  // Where two regions come to the same block is a step.
  bool split_joins() {
    for (BasicBlock* block : meetings_) {
      SplitBlock(block, &*block->getFirstNonPHIIt());
      add_step(block);
    }
    return !meetings_.empty();
  }

  void close_regions() {
    for (auto& region : regions_) {
      SmallVector<BasicBlock*> before;
      for (BasicBlock* block : predecessors(region->next))
        if (region_of_.lookup(block) == region.get() && !is_contained(before, block)) before.push_back(block);
      region->end = SplitBlockPredecessors(region->next, before, ".end");
      region->blocks.push_back(region->end);
      region_of_[region->end] = region.get();
    }
  }

  bool steps_are_taken_together() const {
    return all_of(function_, [&](BasicBlock& block) {
      if (!is_step(&block) || block.getTerminator()->getNumSuccessors() < 2) return true;
      if (divergence_->is_divergent_branch(block)) return false;
      return none_of(block.getTerminator()->operands(),
                     [&](const Use& use) { return divergence_->is_divergent_at(use); });
    });
  }

  // ---- Values that simdgroups have for themselves

  Region* region_of(const BasicBlock* block) const { return region_of_.lookup(block); }

  // A phi uses the value at the end of the block before.
  static BasicBlock* block_of(const Use& use) {
    auto* user = cast<Instruction>(use.getUser());
    auto* phi = dyn_cast<PHINode>(user);
    return phi ? phi->getIncomingBlock(use) : user->getParent();
  }

  // What a step's phi chooses becomes stores in the regions before it.
  void store_choices() {
    for (BasicBlock& block : function_) {
      if (!is_step(&block)) continue;
      for (PHINode& phi : make_early_inc_range(block.phis())) {
        if (!divergence_->is_divergent(&phi)) continue;
        Value* nowhere = PoisonValue::get(builder_.getPtrTy());
        for (unsigned i = 0; i < phi.getNumIncomingValues(); ++i) {
          builder_.SetInsertPoint(phi.getIncomingBlock(i)->getTerminator());
          if (!isa<UndefValue>(phi.getIncomingValue(i)))
            choices_[&phi].push_back(
                builder_.CreateAlignedStore(phi.getIncomingValue(i), nowhere, alignment_of(phi.getType())));
          phi.setIncomingValue(i, PoisonValue::get(phi.getType()));
        }
      }
    }
  }

  void keep_values() {
    // What is the same for the threadgroup is there behind the region too, but for what a loop changes that simdgroups
    // leave in different iterations; variables have their places in frames.
    auto is_there = [&](const Use& operand) {
      return isa<AllocaInst>(operand.get()) || !divergence_->is_divergent_after_loops(operand.get());
    };
    std::vector<Kept> computed;
    for (BasicBlock& block : function_)
      for (Instruction& instruction : block) {
        if (isa<AllocaInst>(instruction) || (is_step(&block) && !isa<PHINode>(instruction))) continue;
        Kept kept(&instruction, is_step(&block) ? &block : region_of(&block)->end);
        for (Use& use : instruction.uses()) {
          Region* user = region_of(block_of(use));
          if (user && user != region_of(&block)) kept.uses.push_back(&use);
        }
        if (kept.uses.empty()) continue;
        if (!divergence_->is_divergent(&instruction) &&
            none_of(kept.uses, [&](Use* use) { return divergence_->is_divergent_at(*use); }))
          continue;
        if (can_be_rematerialized(instruction, is_there))
          computed.push_back(std::move(kept));
        else
          kept_.push_back(std::move(kept));
      }
    share_places();
    for (Kept& kept : computed)
      replace_uses(kept, [&](Region&) { return rematerialize(*kept.value, is_there, builder_); });
    for (Kept& kept : kept_) {
      Type* type = kept.value->getType();
      Align alignment = alignment_of(type);
      replace_uses(kept, [&](Region& region) {
        return builder_.CreateAlignedLoad(type, in_frame(region, kept.offset), alignment);
      });
      if (auto* phi = dyn_cast<PHINode>(kept.value); phi && is_step(phi->getParent())) {
        for (StoreInst* store : choices_[phi]) {
          Region& region = *region_of(store->getParent());
          store->setOperand(store->getPointerOperandIndex(), in_frame(region, kept.offset));
        }
        continue;
      }
      Region& region = *region_of(kept.value->getParent());
      Value* address = in_frame(region, kept.offset);
      builder_.SetInsertPoint(kept.stored->getTerminator());
      builder_.CreateAlignedStore(kept.value, address, alignment);
    }
    for (auto [use, value] : replacements_) use->set(value);
    for (auto& [phi, stores] : choices_) {
      for (StoreInst* store : stores)
        if (isa<PoisonValue>(store->getPointerOperand())) store->eraseFromParent();
      phi->replaceAllUsesWith(PoisonValue::get(phi->getType()));
      phi->eraseFromParent();
    }
  }

  // At the beginning of each block that uses the value, but before the region's loops.
  template <typename Make>
  void replace_uses(Kept& kept, Make make) {
    DenseMap<BasicBlock*, Value*> made;
    for (Use* use : kept.uses) {
      BasicBlock* block = block_of(*use);
      Region& region = *region_of(block);
      for (Loop* loop = loops_->getLoopFor(block); loop; loop = loop->getParentLoop()) {
        BasicBlock* before = loop->getLoopPreheader();
        if (before && region_of(before) == &region) block = before;
      }
      Value*& copy = made[block];
      if (!copy) {
        builder_.SetInsertPoint(block, block->getFirstInsertionPt());
        copy = make(region);
      }
      replacements_.push_back({use, copy});
    }
  }

  // ---- Frames

  // A value and the phi that takes it have one place where one of them is wanted at a time.
  void share_places() {
    DenseMap<const Value*, unsigned> index;
    for (Kept& kept : kept_) {
      index[kept.value] = static_cast<unsigned>(&kept - kept_.data());
      find_live(kept);
    }
    std::vector<unsigned> web(kept_.size());
    for (unsigned i = 0; i < web.size(); ++i) web[i] = i;
    for (auto& [phi, stores] : choices_) {
      auto place = index.find(phi);
      if (place == index.end()) continue;
      for (StoreInst*& store : stores) {
        auto value = index.find(store->getValueOperand());
        if (value == index.end()) continue;
        unsigned one = web[place->second], other = web[value->second];
        if (one != other) {
          bool is_free = true;
          for (unsigned i = 0; i < web.size(); ++i)
            for (unsigned j = 0; j < web.size(); ++j)
              if (web[i] == one && web[j] == other && is_free) is_free = !interfere(kept_[i], kept_[j]);
          if (!is_free) continue;
          for (unsigned& member : web)
            if (member == other) member = one;
        }
        // It is there already.
        Kept& source = kept_[value->second];
        llvm::erase(source.uses, &store->getOperandUse(0));
        store->eraseFromParent();
        store = nullptr;
      }
      llvm::erase(stores, nullptr);
    }
    DenseMap<unsigned, uint64_t> offsets;
    for (unsigned i = 0; i < web.size(); ++i) {
      Type* type = kept_[i].value->getType();
      auto [offset, is_new] = offsets.try_emplace(web[i], 0);
      if (is_new) offset->second = reserve(layout_.getTypeAllocSize(type), alignment_of(type));
      kept_[i].offset = offset->second;
    }
  }

  void find_live(Kept& kept) {
    SmallVector<BasicBlock*> waiting;
    for (Use* use : kept.uses) waiting.push_back(block_of(*use));
    while (!waiting.empty()) {
      BasicBlock* block = waiting.pop_back_val();
      if (block == kept.stored || !kept.live.insert(block).second) continue;
      append_range(waiting, predecessors(block));
    }
  }

  // Whether storing one of them overwrites the other.
  static bool interfere(const Kept& one, const Kept& other) {
    auto overwrites = [](const Kept& first, const Kept& second) {
      return any_of(successors(first.stored), [&](BasicBlock* next) { return second.live.contains(next); });
    };
    return one.stored == other.stored || overwrites(one, other) || overwrites(other, one);
  }

  Align alignment_of(Type* type) const { return std::min(layout_.getABITypeAlign(type), Align(kCpuFrameAlignment)); }

  uint64_t reserve(uint64_t bytes, Align alignment) {
    uint64_t offset = alignTo(frame_bytes_, alignment);
    frame_bytes_ = offset + bytes;
    return offset;
  }

  // ---- Loops

  IRBuilder<> in_head(Region& region) {
    if (!region.head) {
      region.head = BasicBlock::Create(function_.getContext(), "simdgroup", &function_, region.start);
      IRBuilder<> builder(region.head);
      region.number = builder.CreatePHI(builder.getInt32Ty(), 2, "number");
      // How far frames are apart is known when all of it is.
      Value* number = builder.CreateZExt(region.number, builder.getInt64Ty());
      region.frame = builder.CreateInBoundsGEP(builder.getInt8Ty(), function_.getArg(kCpuFrame),
                                               builder.CreateNUWMul(number, frame_stride_));
      builder.CreateBr(region.start);
    }
    return IRBuilder<>(region.head->getTerminator());
  }
  Value* in_frame(Region& region, uint64_t offset) {
    IRBuilder<> builder = in_head(region);
    return builder.CreateInBoundsGEP(builder.getInt8Ty(), region.frame, builder.getInt64(offset));
  }

  Value* own_value(Region& region, uint32_t field) {
    IRBuilder<> builder = in_head(region);
    Value*& value = region.own[field];
    if (value) return value;
    if (field == kIndexInThreadgroup || (known_count_ && field == kPositionInThreadgroup))
      return value = builder.CreateShl(region.number, Log2_32(kLanes), "", true, true);
    Value* at = builder.CreateAdd(builder.CreateMul(region.number, builder.getInt32(kCpuPlaceValues), "", true, true),
                                  builder.getInt32(field), "", true, true);
    at = builder.CreateZExt(at, builder.getInt64Ty());
    LoadInst* load =
        builder.CreateLoad(builder.getInt32Ty(), builder.CreateInBoundsGEP(builder.getInt32Ty(), places_, at));
    load->setMetadata(LLVMContext::MD_invariant_load, MDNode::get(load->getContext(), {}));
    return value = load;
  }

  // Whether nothing stays in it from one simdgroup to the next. Optimising may have moved a store to another region.
  bool is_scratch_of_a_region(const AllocaInst& variable) const {
    if (!variable.hasMetadata(kScratch) || variable.use_empty()) return false;
    SmallVector<const Value*> waiting{&variable};
    SmallPtrSet<const Value*, 8> seen;
    const Region* region = nullptr;
    while (!waiting.empty()) {
      const Value* place = waiting.pop_back_val();
      if (!seen.insert(place).second) continue;
      for (const Use& use : place->uses()) {
        const auto& user = cast<Instruction>(*use.getUser());
        if (isa<LoadInst>(user) || (isa<StoreInst>(user) && use.getOperandNo() == 1) || striped_range(user)) {
          const Region* own = region_of(user.getParent());
          if (!own || (region && region != own)) return false;
          region = own;
        } else if (isa<GetElementPtrInst, PHINode, SelectInst>(user)) {
          waiting.push_back(&user);
        } else {
          return false;
        }
      }
    }
    return true;
  }

  void replace_own_values() {
    SmallVector<AllocaInst*> variables;
    SmallVector<LoadInst*> loads;
    for (Instruction& instruction : instructions(function_)) {
      if (auto* variable = dyn_cast<AllocaInst>(&instruction)) variables.push_back(variable);
      if (auto* load = dyn_cast<LoadInst>(&instruction); load && own_field(*load)) loads.push_back(load);
    }
    BasicBlock& entry = function_.getEntryBlock();
    for (AllocaInst* variable : variables) {
      if (is_scratch_of_a_region(*variable)) {
        variable->moveBefore(&*entry.begin());
        continue;
      }
      for (User* user : make_early_inc_range(variable->users()))
        if (auto* lifetime = dyn_cast<LifetimeIntrinsic>(user)) lifetime->eraseFromParent();
      DenseMap<Region*, Value*> places;
      uint64_t more =
          variable->getAlign() <= kCpuFrameAlignment ? 0 : variable->getAlign().value() - kCpuFrameAlignment;
      uint64_t offset = reserve(variable->getAllocationSize(layout_)->getFixedValue() + more,
                                std::min(variable->getAlign(), Align(kCpuFrameAlignment)));
      for (Use& use : make_early_inc_range(variable->uses())) {
        Region& region = *region_of(block_of(use));
        Value*& place = places[&region];
        if (!place) {
          place = in_frame(region, offset + more);
          if (more)
            place = in_head(region).CreateIntrinsic(Intrinsic::ptrmask, {builder_.getPtrTy(), builder_.getInt64Ty()},
                                                    {place, builder_.getInt64(~(variable->getAlign().value() - 1))});
        }
        use.set(place);
      }
      variable->eraseFromParent();
    }
    for (LoadInst* load : loads) {
      load->replaceAllUsesWith(own_value(*region_of(load->getParent()), *own_field(*load)));
      load->eraseFromParent();
    }
    for (Use& use : make_early_inc_range(function_.getArg(kCpuX)->uses()))
      use.set(own_value(*region_of(block_of(use)), kPositionInThreadgroup));
  }

  // A region in which nothing is a simdgroup's own is run once.
  void repeat(Region& region) {
    bool has_effect = any_of(region.blocks, [](BasicBlock* block) {
      return any_of(*block, [](Instruction& instruction) { return instruction.mayHaveSideEffects(); });
    });
    if (!region.head && !has_effect) return;
    in_head(region);
    BasicBlock* step = region.step;
    step->getTerminator()->replaceSuccessorWith(region.start, region.head);
    region.end->getTerminator()->eraseFromParent();
    builder_.SetInsertPoint(region.end);
    region.number->addIncoming(builder_.getInt32(0), step);
    if (known_count_ == 1) {
      builder_.CreateBr(region.next);
      return;
    }
    Value* next = builder_.CreateAdd(region.number, builder_.getInt32(1), "", true, true);
    BranchInst* again = builder_.CreateCondBr(builder_.CreateICmpULT(next, count_), region.head, region.next);
    region.number->addIncoming(next, region.end);
    if (known_count_) unroll_small(region, *again);
  }

  // Blocks that branches rarely lead to, as those of lanes that access memory apart.
  void find_rare(DominatorTree& dominators) {
    for (BasicBlock& block : function_) {
      auto* branch = dyn_cast<BranchInst>(block.getTerminator());
      uint64_t taken, other;
      if (!branch || !branch->isConditional() || !extractBranchWeights(*branch, taken, other)) continue;
      BasicBlock* rare = nullptr;
      if (taken / kRare > other) rare = branch->getSuccessor(1);
      if (other / kRare > taken) rare = branch->getSuccessor(0);
      if (!rare || !dominators.dominates(BasicBlockEdge(&block, rare), rare)) continue;
      SmallVector<BasicBlock*> under;
      dominators.getDescendants(rare, under);
      rare_.insert(under.begin(), under.end());
    }
  }

  // What simdgroups do becomes constants then, and what they keep, registers.
  void unroll_small(const Region& region, BranchInst& again) {
    // Of loops over tiles one is enough.
    if (any_of(region.blocks, [](const BasicBlock* block) { return block->getTerminator()->hasMetadata(kTileLoop); }))
      return;
    size_t instructions = 0, rare = 0;
    for (const BasicBlock* block : region.blocks) (rare_.contains(block) ? rare : instructions) += block->size();
    instructions *= known_count_;
    rare *= known_count_;
    if (instructions > kMostInALoop || rare > kMostRareInALoop || unrolled_ + instructions > kMostInAll) return;
    unrolled_ += instructions;
    always_unroll(again);
  }

  Function& function_;
  const DataLayout& layout_;
  IRBuilder<> builder_;
  function_ref<bool(const Instruction&)> is_barrier_;
  const unsigned known_count_;  // 0: it is not
  size_t unrolled_ = 0;         // instructions of loops that will be
  SmallPtrSet<const BasicBlock*, 16> steps_;
  SetVector<BasicBlock*> meetings_;
  std::vector<std::unique_ptr<Region>> regions_;
  DenseMap<const BasicBlock*, Region*> region_of_;
  const Divergence* divergence_ = nullptr;
  LoopInfo* loops_ = nullptr;
  SmallPtrSet<const BasicBlock*, 32> rare_;
  Value *places_ = nullptr, *count_ = nullptr;
  MapVector<PHINode*, SmallVector<StoreInst*>> choices_;  // where a step's phis get their values
  std::vector<Kept> kept_;
  // Of uses, when all are known: what is computed again is followed through the code as it was.
  std::vector<std::pair<Use*, Value*>> replacements_;
  uint64_t frame_bytes_ = 0;
  // How far frames are apart, until all of them is known.
  Instruction* frame_stride_ = new FreezeInst(PoisonValue::get(Type::getInt64Ty(function_.getContext())));
};

}  // namespace

std::optional<uint64_t> loop_over_simdgroups(Function& simdgroup, const char* name, unsigned count,
                                             function_ref<bool(const Instruction&)> is_barrier) {
  LLVMContext& context = simdgroup.getContext();
  Type *pointer = PointerType::get(context, 0), *number = Type::getInt32Ty(context);
  Function* to =
      Function::Create(FunctionType::get(Type::getVoidTy(context), {pointer, pointer, pointer, pointer, number}, false),
                       GlobalValue::ExternalLinkage, name, simdgroup.getParent());
  to->copyAttributesFrom(&simdgroup);
  // Nobody else knows the frames.
  to->addParamAttr(kCpuFrame, Attribute::NoAlias);
  std::optional<uint64_t> frame_bytes = SimdgroupLoops(simdgroup, count, is_barrier).run(*to);
  if (!frame_bytes) to->eraseFromParent();
  simdgroup.eraseFromParent();
  return frame_bytes;
}

}  // namespace kiln
