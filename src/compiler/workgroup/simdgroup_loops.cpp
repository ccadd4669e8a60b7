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
#include "compiler/ir/remarks.h"
#include "compiler/ir/rematerialize.h"
#include "compiler/ir/simdgroup.h"
#include "compiler/ir/striped_atomics.h"
#include "core/cpu_functions.h"
#include "core/cpu_image.h"
#include "kiln/error.h"

namespace kiln {
namespace {

using namespace llvm;

constexpr const char* kName = "simdgroup-loops";

// Parameters of CpuThreadgroupFunction that CpuSimdgroupFunction lacks.
enum ThreadgroupParameter : unsigned { kPositions = 3, kCount = 4 };

// A few barriers in a few loops need a few.
constexpr unsigned kMostRounds = 16;

// Instructions of unrolled loops over simdgroups, in likely and in rare blocks. Many rare ones fold away once positions
// are constants. LLVM's scheduler interleaves several simdgroups: the 840 instructions of an RMS norm took a third
// longer, the 640 of a tree reduction gain.
constexpr size_t kMostInALoop = 750, kMostInAll = 4000;
constexpr size_t kMostRareInALoop = 2000;

// How many times as often the other successor is taken.
constexpr uint64_t kRare = 100;

// Frames of known size up to this are stack variables, which can be promoted to registers.
constexpr uint64_t kMostOnStack = 16 << 10;

// The field of the simdgroup's record that the load reads, if simdgroups differ in it. Beyond the record's values only
// the address of threadgroup memory is read.
std::optional<uint32_t> simdgroup_field(const LoadInst& load) {
  const DataLayout& layout = load.getDataLayout();
  APInt offset(64, 0);
  const Value* base = load.getPointerOperand()->stripAndAccumulateConstantOffsets(layout, offset, true);
  const auto* argument = dyn_cast<Argument>(base);
  if (!argument || argument->getArgNo() != kCpuRecord || !load.getType()->isIntegerTy(32)) return std::nullopt;
  uint64_t field = offset.getZExtValue() / sizeof(uint32_t);
  if (is_divergent_value(field)) return static_cast<uint32_t>(field);
  return std::nullopt;
}

Difference between_simdgroups(const Value& value) {
  bool is_divergent = false;
  if (const auto* argument = dyn_cast<Argument>(&value)) {
    is_divergent = argument->getArgNo() == kCpuX || argument->getArgNo() == kCpuFrame;
  } else if (const auto* load = dyn_cast<LoadInst>(&value)) {
    // Invariant memory yields the same value for every load of an address.
    is_divergent = !load->isSimple() || !load->hasMetadata(LLVMContext::MD_invariant_load) || simdgroup_field(*load);
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
    if (!find_serial_blocks()) {
      remark(kName, function_, "simdgroups suspend at barriers: ", why_);
      return std::nullopt;
    }
    close_regions();
    CycleInfo cycles;
    cycles.compute(function_);
    const Divergence divergence(function_, cycles, PostDominatorTree(function_), between_simdgroups);
    divergence_ = &divergence;
    if (!serial_branches_are_uniform()) return std::nullopt;  // and a remark says so
    DominatorTree dominators(function_);
    find_rare(dominators);
    LoopInfo loops(dominators);
    loops_ = &loops;
    positions_ = to.getArg(kPositions);
    count_ = known_count_ ? builder_.getInt32(known_count_) : static_cast<Value*>(to.getArg(kCount));
    lower_serial_phis();
    spill_values();
    replace_simdgroup_values();
    for (auto& region : regions_) emit_loop(*region);
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
    Region(BasicBlock* before, BasicBlock* first) : serial(before), start(first) {}
    BasicBlock* serial;
    BasicBlock* start;           // its only predecessor is `serial`
    BasicBlock* end = nullptr;   // its only successor is `next`
    BasicBlock* next = nullptr;  // a serial block
    SmallVector<BasicBlock*> blocks;
    BasicBlock* head = nullptr;  // the loop's header, once there is a loop
    PHINode* number = nullptr;   // the simdgroup's index
    Value* frame = nullptr;
    DenseMap<uint32_t, Value*> simdgroup_values;  // per-simdgroup values, by their field of the record
  };

  // A divergent value that is used in other regions than its own. A phi of a serial block is in no region.
  struct Spilled {
    Spilled(Instruction* what, BasicBlock* where) : value(what), stored(where) {}
    Instruction* value;
    BasicBlock* stored;  // the region's last block, or the serial block
    SmallVector<Use*> uses;
    SmallPtrSet<BasicBlock*, 8> live;  // blocks that it is live into
    uint64_t offset = 0;
  };

  // ---- Serial blocks, which run once for the threadgroup

  bool is_serial(const BasicBlock* block) const { return serial_blocks_.contains(block); }

  BasicBlock* add_serial(BasicBlock* block) {
    serial_blocks_.insert(block);
    return block;
  }

  // Makes serial blocks: at each barrier, at each branch that decides whether one is reached, and at each join of paths
  // from several of them.
  bool find_serial_blocks() {
    ReturnInst* end = nullptr;
    SmallVector<CallInst*> barriers;
    for (Instruction& instruction : instructions(function_)) {
      if (isa<UnreachableInst>(instruction)) return fail("the kernel has an end that is not reached");
      if (auto* ret = dyn_cast<ReturnInst>(&instruction)) {
        if (end) return fail("the kernel has several ends");
        end = ret;
      }
      if (is_barrier_(instruction)) barriers.push_back(cast<CallInst>(&instruction));
    }
    if (!end) return fail("the kernel has no end");
    BasicBlock* body = &function_.getEntryBlock();
    BasicBlock* entry = BasicBlock::Create(function_.getContext(), "threadgroup", &function_, body);
    BranchInst::Create(body, entry);
    add_serial(entry);
    for (CallInst* barrier : barriers) {
      BasicBlock* serial = SplitBlock(barrier->getParent(), barrier);
      SplitBlock(serial, barrier->getNextNode());
      serial->setName("barrier");
      add_serial(serial);
      if (!barrier->use_empty()) return fail("the result of a barrier is used");
      barrier->eraseFromParent();
    }
    add_serial(SplitBlock(end->getParent(), end));
    for (unsigned most = 0; most < kMostRounds; ++most) {
      if (!split_branches()) return false;
      isolate_serial_blocks();
      if (!find_regions()) return false;
      if (!split_joins()) return true;
    }
    return fail("barriers are in too many branches and loops");
  }

  bool fail(const char* why) {
    why_ = why;
    return false;
  }

  // Branches that decide whether a serial block is reached.
  bool split_branches() {
    PostDominatorTree post_dominators(function_);
    if (post_dominators.root_size() != 1) return fail("a loop has no end");
    SmallVector<BasicBlock*> branches;
    for (BasicBlock& block : function_)
      if (!is_serial(&block) && block.getTerminator()->getNumSuccessors() > 1) branches.push_back(&block);
    SmallSetVector<BasicBlock*, 16> worklist;
    for (BasicBlock& block : function_)
      if (is_serial(&block)) worklist.insert(&block);
    SmallPtrSet<BasicBlock*, 16> deciding;
    for (unsigned i = 0; i < worklist.size(); ++i)
      for (BasicBlock* branch : branches) {
        if (deciding.contains(branch) || post_dominators.properlyDominates(worklist[i], branch)) continue;
        if (none_of(successors(branch), [&](BasicBlock* next) { return post_dominators.dominates(worklist[i], next); }))
          continue;
        deciding.insert(branch);
        worklist.insert(branch);
      }
    for (BasicBlock* branch : branches)
      if (deciding.contains(branch)) add_serial(SplitBlock(branch, branch->getTerminator()));
    return true;
  }

  // Gives each edge out of a serial block a first block of its own.
  void isolate_serial_blocks() {
    SmallVector<BasicBlock*> serial_blocks;
    for (BasicBlock& block : function_)
      if (is_serial(&block)) serial_blocks.push_back(&block);
    for (BasicBlock* serial : serial_blocks) {
      Instruction* branch = serial->getTerminator();
      for (unsigned i = 0; i < branch->getNumSuccessors(); ++i) {
        BasicBlock* next = branch->getSuccessor(i);
        if (!is_serial(next) && next->getSinglePredecessor()) {
          FoldSingleEntryPHINodes(next);
          continue;
        }
        BasicBlock* between = BasicBlock::Create(function_.getContext(), "region", &function_, next);
        BranchInst::Create(next, between);
        branch->setSuccessor(i, between);
        // There may be several edges from one block to the other.
        for (PHINode& phi : next->phis())
          phi.setIncomingBlock(static_cast<unsigned>(phi.getBasicBlockIndex(serial)), between);
      }
    }
  }

  bool find_regions() {
    regions_.clear();
    region_of_.clear();
    joins_.clear();
    for (BasicBlock& block : function_) {
      if (!is_serial(&block)) continue;
      for (BasicBlock* start : successors(&block)) regions_.push_back(std::make_unique<Region>(&block, start));
    }
    bool has_two_successors = false;
    for (auto& region : regions_) {
      SmallVector<BasicBlock*> worklist{region->start};
      while (!worklist.empty()) {
        BasicBlock* block = worklist.pop_back_val();
        if (is_serial(block)) {
          has_two_successors = has_two_successors || (region->next && region->next != block);
          region->next = block;
          continue;
        }
        Region*& owner = region_of_[block];
        if (owner == region.get()) continue;
        if (owner) {
          joins_.insert(block);
          continue;
        }
        owner = region.get();
        region->blocks.push_back(block);
        append_range(worklist, successors(block));
      }
    }
    return !has_two_successors || !joins_.empty();
  }

  // A block that two regions reach becomes a serial block.
  bool split_joins() {
    for (BasicBlock* block : joins_) {
      SplitBlock(block, &*block->getFirstNonPHIIt());
      add_serial(block);
    }
    return !joins_.empty();
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

  bool serial_branches_are_uniform() const {
    return all_of(function_, [&](BasicBlock& block) {
      if (!is_serial(&block) || block.getTerminator()->getNumSuccessors() < 2) return true;
      const Instruction& branch = *block.getTerminator();
      const bool is_uniform =
          !divergence_->is_divergent_branch(block) &&
          none_of(branch.operands(), [&](const Use& use) { return divergence_->is_divergent_at(use); });
      if (!is_uniform)
        remark(
            kName, branch,
            "simdgroups suspend at barriers: this branch decides whether one is reached, and simdgroups may differ in "
            "it");
      return is_uniform;
    });
  }

  // ---- Divergent values

  Region* region_of(const BasicBlock* block) const { return region_of_.lookup(block); }

  // A phi uses the value at the end of the incoming block.
  static BasicBlock* block_of(const Use& use) {
    auto* user = cast<Instruction>(use.getUser());
    auto* phi = dyn_cast<PHINode>(user);
    return phi ? phi->getIncomingBlock(use) : user->getParent();
  }

  // Replaces the incoming values of a serial block's phis by stores in the regions before it.
  void lower_serial_phis() {
    for (BasicBlock& block : function_) {
      if (!is_serial(&block)) continue;
      for (PHINode& phi : make_early_inc_range(block.phis())) {
        if (!divergence_->is_divergent(&phi)) continue;
        Value* unknown_address = PoisonValue::get(builder_.getPtrTy());
        for (unsigned i = 0; i < phi.getNumIncomingValues(); ++i) {
          builder_.SetInsertPoint(phi.getIncomingBlock(i)->getTerminator());
          if (!isa<UndefValue>(phi.getIncomingValue(i)))
            phi_stores_[&phi].push_back(
                builder_.CreateAlignedStore(phi.getIncomingValue(i), unknown_address, alignment_of(phi.getType())));
          phi.setIncomingValue(i, PoisonValue::get(phi.getType()));
        }
      }
    }
  }

  void spill_values() {
    // Values uniform over the threadgroup are available after their region, too, unless they change in a loop that
    // simdgroups leave in different iterations. Variables have slots in frames.
    auto is_available = [&](const Use& operand) {
      return isa<AllocaInst>(operand.get()) || !divergence_->is_divergent_after_loops(operand.get());
    };
    std::vector<Spilled> rematerialized;
    for (BasicBlock& block : function_)
      for (Instruction& instruction : block) {
        if (isa<AllocaInst>(instruction) || (is_serial(&block) && !isa<PHINode>(instruction))) continue;
        Spilled spilled(&instruction, is_serial(&block) ? &block : region_of(&block)->end);
        for (Use& use : instruction.uses()) {
          Region* user = region_of(block_of(use));
          if (user && user != region_of(&block)) spilled.uses.push_back(&use);
        }
        if (spilled.uses.empty()) continue;
        if (!divergence_->is_divergent(&instruction) &&
            none_of(spilled.uses, [&](Use* use) { return divergence_->is_divergent_at(*use); }))
          continue;
        if (can_be_rematerialized(instruction, is_available))
          rematerialized.push_back(std::move(spilled));
        else
          spilled_.push_back(std::move(spilled));
      }
    share_slots();
    for (Spilled& spilled : rematerialized)
      replace_uses(spilled, [&](Region&) { return rematerialize(*spilled.value, is_available, builder_); });
    for (Spilled& spilled : spilled_) {
      Type* type = spilled.value->getType();
      Align alignment = alignment_of(type);
      replace_uses(spilled, [&](Region& region) {
        return builder_.CreateAlignedLoad(type, in_frame(region, spilled.offset), alignment);
      });
      if (auto* phi = dyn_cast<PHINode>(spilled.value); phi && is_serial(phi->getParent())) {
        for (StoreInst* store : phi_stores_[phi]) {
          Region& region = *region_of(store->getParent());
          store->setOperand(store->getPointerOperandIndex(), in_frame(region, spilled.offset));
        }
        continue;
      }
      Region& region = *region_of(spilled.value->getParent());
      Value* address = in_frame(region, spilled.offset);
      builder_.SetInsertPoint(spilled.stored->getTerminator());
      builder_.CreateAlignedStore(spilled.value, address, alignment);
    }
    for (auto [use, value] : replacements_) use->set(value);
    for (auto& [phi, stores] : phi_stores_) {
      for (StoreInst* store : stores)
        if (isa<PoisonValue>(store->getPointerOperand())) store->eraseFromParent();
      phi->replaceAllUsesWith(PoisonValue::get(phi->getType()));
      phi->eraseFromParent();
    }
  }

  // At the start of each block that uses the value, but hoisted out of the region's loops.
  template <typename Make>
  void replace_uses(Spilled& spilled, Make make) {
    DenseMap<BasicBlock*, Value*> copies;
    for (Use* use : spilled.uses) {
      BasicBlock* block = block_of(*use);
      Region& region = *region_of(block);
      for (Loop* loop = loops_->getLoopFor(block); loop; loop = loop->getParentLoop()) {
        BasicBlock* before = loop->getLoopPreheader();
        if (before && region_of(before) == &region) block = before;
      }
      Value*& copy = copies[block];
      if (!copy) {
        builder_.SetInsertPoint(block, block->getFirstInsertionPt());
        copy = make(region);
      }
      replacements_.push_back({use, copy});
    }
  }

  // ---- Frames

  // A phi and its incoming values share a slot if they are not live at the same time.
  void share_slots() {
    DenseMap<const Value*, unsigned> index;
    for (Spilled& spilled : spilled_) {
      index[spilled.value] = static_cast<unsigned>(&spilled - spilled_.data());
      find_live(spilled);
    }
    std::vector<unsigned> web(spilled_.size());
    for (unsigned i = 0; i < web.size(); ++i) web[i] = i;
    for (auto& [phi, stores] : phi_stores_) {
      auto phi_index = index.find(phi);
      if (phi_index == index.end()) continue;
      for (StoreInst*& store : stores) {
        auto value_index = index.find(store->getValueOperand());
        if (value_index == index.end()) continue;
        unsigned one = web[phi_index->second], other = web[value_index->second];
        if (one != other) {
          bool is_free = true;
          for (unsigned i = 0; i < web.size(); ++i)
            for (unsigned j = 0; j < web.size(); ++j)
              if (web[i] == one && web[j] == other && is_free) is_free = !interfere(spilled_[i], spilled_[j]);
          if (!is_free) continue;
          for (unsigned& member : web)
            if (member == other) member = one;
        }
        // The slot holds the value already.
        Spilled& source = spilled_[value_index->second];
        llvm::erase(source.uses, &store->getOperandUse(0));
        store->eraseFromParent();
        store = nullptr;
      }
      llvm::erase(stores, nullptr);
    }
    DenseMap<unsigned, uint64_t> offsets;
    for (unsigned i = 0; i < web.size(); ++i) {
      Type* type = spilled_[i].value->getType();
      auto [offset, is_new] = offsets.try_emplace(web[i], 0);
      if (is_new) offset->second = reserve(layout_.getTypeAllocSize(type), alignment_of(type));
      spilled_[i].offset = offset->second;
    }
  }

  void find_live(Spilled& spilled) {
    SmallVector<BasicBlock*> worklist;
    for (Use* use : spilled.uses) worklist.push_back(block_of(*use));
    while (!worklist.empty()) {
      BasicBlock* block = worklist.pop_back_val();
      if (block == spilled.stored || !spilled.live.insert(block).second) continue;
      append_range(worklist, predecessors(block));
    }
  }

  // Whether storing one of them overwrites the other.
  static bool interfere(const Spilled& one, const Spilled& other) {
    auto overwrites = [](const Spilled& first, const Spilled& second) {
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
      // The distance between frames is known once all slots are assigned.
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

  Value* simdgroup_value(Region& region, uint32_t field) {
    IRBuilder<> builder = in_head(region);
    Value*& value = region.simdgroup_values[field];
    if (value) return value;
    if (field == kIndexInThreadgroup || (known_count_ && field == kPositionInThreadgroup))
      return value = builder.CreateShl(region.number, Log2_32(kLanes), "", true, true);
    Value* at = builder.CreateAdd(builder.CreateMul(region.number, builder.getInt32(kCpuPlaceValues), "", true, true),
                                  builder.getInt32(field), "", true, true);
    at = builder.CreateZExt(at, builder.getInt64Ty());
    LoadInst* load =
        builder.CreateLoad(builder.getInt32Ty(), builder.CreateInBoundsGEP(builder.getInt32Ty(), positions_, at));
    load->setMetadata(LLVMContext::MD_invariant_load, MDNode::get(load->getContext(), {}));
    return value = load;
  }

  // Whether the variable carries nothing from one simdgroup to the next. Optimisation may have moved a store to another
  // region.
  bool is_scratch_of_a_region(const AllocaInst& variable) const {
    if (!variable.hasMetadata(kScratch) || variable.use_empty()) return false;
    SmallVector<const Value*> worklist{&variable};
    SmallPtrSet<const Value*, 8> seen;
    const Region* region = nullptr;
    while (!worklist.empty()) {
      const Value* address = worklist.pop_back_val();
      if (!seen.insert(address).second) continue;
      for (const Use& use : address->uses()) {
        const auto& user = cast<Instruction>(*use.getUser());
        if (isa<LoadInst>(user) || (isa<StoreInst>(user) && use.getOperandNo() == 1) || striped_range(user)) {
          const Region* owner = region_of(user.getParent());
          if (!owner || (region && region != owner)) return false;
          region = owner;
        } else if (isa<GetElementPtrInst, PHINode, SelectInst>(user)) {
          worklist.push_back(&user);
        } else {
          return false;
        }
      }
    }
    return true;
  }

  void replace_simdgroup_values() {
    SmallVector<AllocaInst*> variables;
    SmallVector<LoadInst*> loads;
    for (Instruction& instruction : instructions(function_)) {
      if (auto* variable = dyn_cast<AllocaInst>(&instruction)) variables.push_back(variable);
      if (auto* load = dyn_cast<LoadInst>(&instruction); load && simdgroup_field(*load)) loads.push_back(load);
    }
    BasicBlock& entry = function_.getEntryBlock();
    for (AllocaInst* variable : variables) {
      if (is_scratch_of_a_region(*variable)) {
        variable->moveBefore(&*entry.begin());
        continue;
      }
      for (User* user : make_early_inc_range(variable->users()))
        if (auto* lifetime = dyn_cast<LifetimeIntrinsic>(user)) lifetime->eraseFromParent();
      DenseMap<Region*, Value*> addresses;
      uint64_t more =
          variable->getAlign() <= kCpuFrameAlignment ? 0 : variable->getAlign().value() - kCpuFrameAlignment;
      uint64_t offset = reserve(variable->getAllocationSize(layout_)->getFixedValue() + more,
                                std::min(variable->getAlign(), Align(kCpuFrameAlignment)));
      for (Use& use : make_early_inc_range(variable->uses())) {
        Region& region = *region_of(block_of(use));
        Value*& address = addresses[&region];
        if (!address) {
          address = in_frame(region, offset + more);
          if (more)
            address =
                in_head(region).CreateIntrinsic(Intrinsic::ptrmask, {builder_.getPtrTy(), builder_.getInt64Ty()},
                                                {address, builder_.getInt64(~(variable->getAlign().value() - 1))});
        }
        use.set(address);
      }
      variable->eraseFromParent();
    }
    for (LoadInst* load : loads) {
      load->replaceAllUsesWith(simdgroup_value(*region_of(load->getParent()), *simdgroup_field(*load)));
      load->eraseFromParent();
    }
    for (Use& use : make_early_inc_range(function_.getArg(kCpuX)->uses()))
      use.set(simdgroup_value(*region_of(block_of(use)), kPositionInThreadgroup));
  }

  // A region without per-simdgroup values and side effects runs once.
  void emit_loop(Region& region) {
    bool has_effect = any_of(region.blocks, [](BasicBlock* block) {
      return any_of(*block, [](Instruction& instruction) { return instruction.mayHaveSideEffects(); });
    });
    if (!region.head && !has_effect) return;
    in_head(region);
    BasicBlock* serial = region.serial;
    serial->getTerminator()->replaceSuccessorWith(region.start, region.head);
    region.end->getTerminator()->eraseFromParent();
    builder_.SetInsertPoint(region.end);
    region.number->addIncoming(builder_.getInt32(0), serial);
    if (known_count_ == 1) {
      builder_.CreateBr(region.next);
      return;
    }
    Value* next = builder_.CreateAdd(region.number, builder_.getInt32(1), "", true, true);
    BranchInst* latch_branch = builder_.CreateCondBr(builder_.CreateICmpULT(next, count_), region.head, region.next);
    region.number->addIncoming(next, region.end);
    if (known_count_) unroll_small(region, *latch_branch);
  }

  // Blocks that branches rarely lead to, such as scalarized accesses.
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

  // Unrolling turns what identifies a simdgroup into constants, and frames into registers.
  void unroll_small(const Region& region, BranchInst& latch_branch) {
    // Loops over tiles are not unrolled: one copy is enough.
    if (any_of(region.blocks, [](const BasicBlock* block) { return block->getTerminator()->hasMetadata(kTileLoop); }))
      return;
    size_t instructions = 0, rare = 0;
    for (const BasicBlock* block : region.blocks) (rare_.contains(block) ? rare : instructions) += block->size();
    instructions *= known_count_;
    rare *= known_count_;
    // LLVM would peel an iteration off, and what is deferred to the loop's end needs all of them in one loop.
    if (instructions > kMostInALoop || rare > kMostRareInALoop || unrolled_ + instructions > kMostInAll)
      return never_unroll(latch_branch);
    unrolled_ += instructions;
    always_unroll(latch_branch, known_count_);
  }

  Function& function_;
  const DataLayout& layout_;
  IRBuilder<> builder_;
  function_ref<bool(const Instruction&)> is_barrier_;
  const unsigned known_count_;                         // 0: unknown
  size_t unrolled_ = 0;                                // instructions of loops to be unrolled
  const char* why_ = "a block leads to two barriers";  // serial blocks are not found
  SmallPtrSet<const BasicBlock*, 16> serial_blocks_;
  SetVector<BasicBlock*> joins_;
  std::vector<std::unique_ptr<Region>> regions_;
  DenseMap<const BasicBlock*, Region*> region_of_;
  const Divergence* divergence_ = nullptr;
  LoopInfo* loops_ = nullptr;
  SmallPtrSet<const BasicBlock*, 32> rare_;
  Value *positions_ = nullptr, *count_ = nullptr;
  MapVector<PHINode*, SmallVector<StoreInst*>> phi_stores_;  // the stores of each serial block's phi
  std::vector<Spilled> spilled_;
  // Replaced uses, applied at the end: rematerialization follows operands through the original code.
  std::vector<std::pair<Use*, Value*>> replacements_;
  uint64_t frame_bytes_ = 0;
  // A placeholder for the distance between frames.
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
  // Only this function accesses the frames.
  to->addParamAttr(kCpuFrame, Attribute::NoAlias);
  std::optional<uint64_t> frame_bytes = SimdgroupLoops(simdgroup, count, is_barrier).run(*to);
  if (!frame_bytes) to->eraseFromParent();
  simdgroup.eraseFromParent();
  return frame_bytes;
}

}  // namespace kiln
