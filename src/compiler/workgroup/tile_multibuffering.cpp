#include "compiler/workgroup/tile_multibuffering.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SetVector.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/AssumptionCache.h>
#include <llvm/Analysis/CFG.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/PostDominators.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/Transforms/Utils/LoopSimplify.h>
#include <llvm/Transforms/Utils/LoopUtils.h>

#include <array>

#include "compiler/ir/loop_metadata.h"
#include "compiler/ir/metadata.h"
#include "compiler/ir/remarks.h"
#include "compiler/ir/striped_atomics.h"
#include "core/cpu_functions.h"
#include "core/cpu_image.h"

namespace kiln {
namespace {

using namespace llvm;

// Total of a batch's tiles: a first-level cache has 32 KiB or more, and simdgroups keep their sums there. A few large
// tiles may take twice that.
constexpr uint64_t kMostBytes = 16 << 10;
constexpr uint64_t kMostTiles = 16, kFewTiles = 3;
constexpr uint64_t kTileAlignment = 64;

// Instructions rematerialized for one set of values.
constexpr unsigned kMostRematerialized = 64;

// Results are grouped: all pairs of groups are considered for each merge.
constexpr size_t kMostResults = 64;
// Each group executes the reading part once more. Sums computed from one another do not fit into a few groups.
constexpr size_t kMostGroups = 8;

// Instructions of an unrolled inner loop, in all groups together, and its trip count.
constexpr size_t kMostUnrolled = 640;
constexpr unsigned kLargestTripCount = 16;

enum class Memory { kThreadgroup, kOther, kUnknown };

bool is_threadgroup_memory(const Value* value) {
  const auto* load = dyn_cast<LoadInst>(value);
  if (!load || !load->getType()->isPointerTy()) return false;
  APInt offset(64, 0);
  const Value* base = load->getPointerOperand()->stripAndAccumulateConstantOffsets(load->getDataLayout(), offset, true);
  const auto* argument = dyn_cast<Argument>(base);
  return argument && argument->getArgNo() == kCpuRecord && offset == offsetof(CpuThread, threadgroup_memory);
}

bool is_pointer(const Value* value) { return value->getType()->isPtrOrPtrVectorTy(); }

// An address computed from others, which remain its operands.
bool is_address_arithmetic(const Value* value) {
  return isa<GetElementPtrInst, InsertElementInst, ShuffleVectorInst, ExtractElementInst, SelectInst>(value);
}

// The scratch variable that an address points into, which is written where it is read; or null.
const AllocaInst* scratch_of(const Value* address) {
  const auto* variable = dyn_cast<AllocaInst>(getUnderlyingObject(address));
  return variable && variable->hasMetadata(kScratch) ? variable : nullptr;
}

// All scratch variables that an address may point into: lanes' elements in a row are at an address, others' are copied
// to scratch, and one load reads either.
SmallVector<const AllocaInst*> scratch_variables(const Value* address) {
  SmallVector<const Value*> objects;
  getUnderlyingObjects(address, objects, nullptr, /*MaxLookup=*/0);
  SmallVector<const AllocaInst*> variables;
  for (const Value* object : objects)
    if (auto* variable = dyn_cast<AllocaInst>(object); variable && variable->hasMetadata(kScratch))
      variables.push_back(variable);
  return variables;
}

// The stores to a variable; nothing if there may be others.
std::optional<SmallVector<const StoreInst*>> stores_to(const AllocaInst& variable) {
  SmallVector<const StoreInst*> stores;
  SmallVector<const Value*> worklist{&variable};
  while (!worklist.empty())
    for (const Use& use : worklist.pop_back_val()->uses()) {
      const User* user = use.getUser();
      if (isa<GetElementPtrInst>(user))
        worklist.push_back(user);
      else if (isa<PHINode>(user) && all_of(user->users(), [](const User* one) { return isa<LoadInst>(one); }))
        continue;
      else if (auto* store = dyn_cast<StoreInst>(user); store && use.getOperandNo() == store->getPointerOperandIndex())
        stores.push_back(store);
      else if (!isa<LoadInst>(user))
        return std::nullopt;
    }
  return stores;
}

// The memory that the pointers point to from which an address is computed.
Memory memory_of(const Value* address) {
  SmallVector<const Value*> worklist{address};
  SmallPtrSet<const Value*, 8> seen;
  std::optional<Memory> memory;
  while (!worklist.empty()) {
    const Value* value = worklist.pop_back_val();
    if (!seen.insert(value).second) continue;
    if (is_address_arithmetic(value) || isa<PHINode>(value)) {
      for (const Value* operand : cast<Instruction>(value)->operands())
        if (is_pointer(operand)) worklist.push_back(operand);
      continue;
    }
    Memory one = Memory::kUnknown;
    // Scalarized lanes have their addresses in variables.
    const auto* load = dyn_cast<LoadInst>(value);
    if (const AllocaInst* variable = load ? scratch_of(load->getPointerOperand()) : nullptr) {
      std::optional<SmallVector<const StoreInst*>> stores = stores_to(*variable);
      if (!stores) return Memory::kUnknown;
      for (const StoreInst* store : *stores) {
        if (!is_pointer(store->getValueOperand())) return Memory::kUnknown;
        worklist.push_back(store->getValueOperand());
      }
      continue;
    }
    // Zeros for lanes without an address.
    if (isa<Constant>(value)) continue;
    if (auto* variable = dyn_cast<AllocaInst>(value); variable && variable->hasMetadata(kScratch)) continue;
    if (is_threadgroup_memory(value)) {
      one = Memory::kThreadgroup;
    } else if (isa<Argument, AllocaInst>(value)) {
      one = Memory::kOther;
    } else if (load) {
      // An argument's pointer. Other loaded pointers are unknown.
      if (load->hasMetadata(LLVMContext::MD_invariant_load)) one = Memory::kOther;
    }
    if (memory && *memory != one) return Memory::kUnknown;
    memory = one;
  }
  return memory.value_or(Memory::kOther);
}

// Whether an address in threadgroup memory can be recomputed for other memory.
bool can_be_moved_to_a_tile(const Value* address) {
  if (is_threadgroup_memory(address)) return true;
  if (!is_address_arithmetic(address)) return false;
  return all_of(cast<Instruction>(address)->operands(), [](const Value* operand) {
    return !is_pointer(operand) || memory_of(operand) == Memory::kOther || can_be_moved_to_a_tile(operand);
  });
}

struct Access {
  const Value* address;
  const Value* mask = nullptr;  // of lanes
  bool writes = false;
};

// Simple accesses to one address, or to an address for each lane.
std::optional<Access> access_of(const Instruction& instruction) {
  if (const auto* load = dyn_cast<LoadInst>(&instruction); load && load->isSimple())
    return Access{load->getPointerOperand(), nullptr, false};
  if (const auto* store = dyn_cast<StoreInst>(&instruction); store && store->isSimple())
    return Access{store->getPointerOperand(), nullptr, true};
  const auto* call = dyn_cast<IntrinsicInst>(&instruction);
  if (!call) return std::nullopt;
  switch (call->getIntrinsicID()) {
    case Intrinsic::masked_load:
    case Intrinsic::masked_gather: return Access{call->getArgOperand(0), call->getArgOperand(2), false};
    case Intrinsic::masked_store:
    case Intrinsic::masked_scatter: return Access{call->getArgOperand(1), call->getArgOperand(3), true};
    default: return std::nullopt;
  }
}

class TileLoop {
 public:
  TileLoop(Loop& loop, LoopInfo& loops, DominatorTree& dominators, uint64_t bytes, const VectorIsa& vector_isa,
           function_ref<bool(const Instruction&)> is_barrier)
      : loop_(loop),
        loops_(loops),
        dominators_(dominators),
        function_(*loop.getHeader()->getParent()),
        builder_(function_.getContext()),
        is_barrier_(is_barrier),
        isa_(vector_isa),
        tile_bytes_(alignTo(bytes, kTileAlignment)),
        tiles_(std::min(kMostTiles,
                        std::max(kMostBytes / tile_bytes_, std::min(kFewTiles, 2 * kMostBytes / tile_bytes_)))) {}

  bool is_candidate() {
    if (tiles_ < 2) return note("two tiles have more than the bytes that the first-level cache has room for");
    if (loop_.getParentLoop() || !loop_.getLoopLatch() || !find_barriers())
      return note("it does not have two barriers, of which each is reached in each iteration");
    if (none_of(loop_.getHeader()->phis(), [](const PHINode& phi) { return phi.getType()->isVectorTy(); }))
      return note("it keeps no sums in registers");
    return true;
  }

  // For a candidate. Blocks are split even if the transformation fails.
  GlobalVariable* run() {
    if (!split_parts()) {
      note("it is left elsewhere than at its end");
      return nullptr;
    }
    if (!find_roles()) {
      note("it does more than to write a tile, wait, read the tile and wait");
      return nullptr;
    }
    if (!only_loop_uses_tiles()) {
      note("threadgroup memory is written before the loop, or read after it");
      return nullptr;
    }
    if (!written_addresses_are_invariant()) {
      note("the tile is written at an index, or under a condition, that changes from iteration to iteration");
      return nullptr;
    }
    if (!find_loop_dependences()) {
      note("what it writes depends on its sums, or its sums depend on one another");
      return nullptr;
    }
    make_batches();
    return buffer_;
  }

 private:
  // The loop's blocks in order of execution: its phis, three parts with barriers between them, its end.
  static constexpr unsigned kParts = 3;

  // A remark, if the loop has barriers.
  bool note(const char* why) const {
    if (keeps_remarks(function_) && any_of(loop_.blocks(), [&](const BasicBlock* block) {
          return any_of(*block, [&](const Instruction& instruction) { return is_barrier_(instruction); });
        }))
      remark("tile-multibuffering", loop_, "not this loop: ", why);
    return false;
  }

  bool find_barriers() {
    for (BasicBlock* block : loop_.blocks())
      for (Instruction& instruction : *block) {
        if (!is_barrier_(instruction)) continue;
        if (loops_.getLoopFor(block) != &loop_ || barriers_.size() == 2 || !instruction.use_empty()) return false;
        barriers_.push_back(&instruction);
      }
    if (barriers_.size() != 2) return false;
    if (dominators_.dominates(barriers_[1], barriers_[0])) std::swap(barriers_[0], barriers_[1]);
    return dominators_.dominates(barriers_[0], barriers_[1]);
  }

  bool split_parts() {
    simplifyLoop(&loop_, &dominators_, &loops_, nullptr, nullptr, nullptr, /*PreserveLCSSA=*/false);
    formLCSSARecursively(loop_, dominators_, &loops_, nullptr);
    BasicBlock* latch = loop_.getLoopLatch();
    if (loop_.getParentLoop() || !loop_.isLoopSimplifyForm() || loop_.getExitingBlock() != latch ||
        !loop_.getExitBlock())
      return false;
    auto* branch = dyn_cast<BranchInst>(latch->getTerminator());
    if (!branch || !branch->isConditional() || !dominators_.dominates(barriers_[1]->getParent(), latch)) return false;
    exit_ = loop_.getExitBlock();
    before_ = loop_.getLoopPreheader();
    head_ = loop_.getHeader();
    SplitBlock(head_, &*head_->getFirstNonPHIIt(), &dominators_, &loops_);
    before_part_[0] = head_;
    for (unsigned i = 0; i < 2; ++i) {
      BasicBlock* block = SplitBlock(barriers_[i]->getParent(), barriers_[i], &dominators_, &loops_);
      SplitBlock(block, barriers_[i]->getNextNode(), &dominators_, &loops_);
      before_part_[i + 1] = after_part_[i] = block;
    }
    latch = loop_.getLoopLatch();
    end_ = after_part_[2] = SplitBlock(latch, latch->getTerminator(), &dominators_, &loops_);
    for (unsigned part = 0; part < kParts; ++part) {
      SmallVector<BasicBlock*> worklist(successors(before_part_[part]));
      while (!worklist.empty()) {
        BasicBlock* block = worklist.pop_back_val();
        if (block == after_part_[part] || !part_of_.try_emplace(block, part).second) continue;
        append_range(worklist, successors(block));
      }
    }
    return true;
  }

  std::optional<unsigned> part_of(const Value* value) const {
    const auto* instruction = dyn_cast<Instruction>(value);
    if (!instruction) return std::nullopt;
    auto found = part_of_.find(const_cast<BasicBlock*>(instruction->getParent()));
    return found == part_of_.end() ? std::nullopt : std::optional(found->second);
  }

  bool is_in_loop(const Value* value) const {
    const auto* instruction = dyn_cast<Instruction>(value);
    return instruction && loop_.contains(instruction);
  }

  // Finds the part that writes the tile and the part that reads it. The others only compute.
  bool find_roles() {
    std::array<bool, kParts> writes{}, reads{};
    if (any_of(head_->phis(), [](const PHINode& phi) { return is_pointer(&phi) && memory_of(&phi) != Memory::kOther; }))
      return false;
    for (auto [block, part] : part_of_)
      for (Instruction& instruction : *block) {
        if (instruction.isTerminator()) {
          if (!isa<BranchInst>(instruction)) return false;
          continue;
        }
        if (!can_be_moved(instruction)) return false;
        std::optional<Access> access = access_of(instruction);
        if (!access) continue;
        for (const AllocaInst* variable : scratch_variables(access->address))
          if (!is_only_in(*variable, part)) return false;
        if (scratch_of(access->address)) {
          if (access->writes) scratch_writes_.push_back(&instruction);
          continue;
        }
        // Invariant memory.
        if (instruction.hasMetadata(LLVMContext::MD_invariant_load)) continue;
        Memory memory = memory_of(access->address);
        if (memory == Memory::kUnknown) return false;
        if (access->writes) {
          if (memory != Memory::kThreadgroup) return false;
          writes[part] = true;
          writes_.push_back(&instruction);
        } else if (memory == Memory::kThreadgroup) {
          reads[part] = true;
        }
      }
    if (llvm::count(writes, true) != 1 || llvm::count(reads, true) != 1) return false;
    writer_ = static_cast<unsigned>(llvm::find(writes, true) - writes.begin());
    reader_ = static_cast<unsigned>(llvm::find(reads, true) - reads.begin());
    // One barrier before the tile is read, and one before it is overwritten.
    return reader_ == writer_ + 1;
  }

  bool is_only_in(const AllocaInst& variable, unsigned part) const {
    SmallVector<const Value*> worklist{&variable};
    SmallPtrSet<const Value*, 8> seen;
    while (!worklist.empty())
      for (const User* user : worklist.pop_back_val()->users()) {
        if (part_of(user) != part) return false;
        if (isa<GetElementPtrInst, PHINode>(user) && seen.insert(user).second) worklist.push_back(user);
      }
    return true;
  }

  // Whether the instruction may run for several iterations before the parts after it do.
  bool can_be_moved(const Instruction& instruction) const {
    // A tile's address must not be observable.
    for (const Value* operand : instruction.operands()) {
      if (!is_pointer(operand) || memory_of(operand) == Memory::kOther) continue;
      if (!is_in_loop(operand) && !can_be_moved_to_a_tile(operand)) return false;
      // Those of the loop's head are not threadgroup memory.
      if (is_address_arithmetic(&instruction) || isa<PHINode>(instruction)) continue;
      auto* store = dyn_cast<StoreInst>(&instruction);
      bool is_stored = store && store->getValueOperand() == operand;
      if (!access_of(instruction) || (is_stored && !scratch_of(store->getPointerOperand()))) return false;
    }
    if (is_threadgroup_memory(&instruction)) return false;
    if (access_of(instruction)) return true;
    return !instruction.mayReadOrWriteMemory() && !instruction.mayThrow() && instruction.willReturn() &&
           !isa<AllocaInst>(instruction);
  }

  // Whether only the loop uses its tiles: no code that may execute before it writes threadgroup memory, and no code
  // after it reads any.
  bool only_loop_uses_tiles() const {
    for (BasicBlock& block : function_) {
      if (loop_.contains(&block)) continue;
      for (Instruction& instruction : block) {
        if (!instruction.mayReadOrWriteMemory() || is_barrier_(instruction)) continue;
        std::optional<Access> access = access_of(instruction);
        const Value* address = access ? access->address : striped_range(instruction);
        if (auto* operation = dyn_cast<AtomicRMWInst>(&instruction)) address = operation->getPointerOperand();
        if (auto* cmpxchg = dyn_cast<AtomicCmpXchgInst>(&instruction)) address = cmpxchg->getPointerOperand();
        if (address && memory_of(address) == Memory::kOther) continue;
        bool is_before = isPotentiallyReachable(&block, before_, nullptr, &dominators_, &loops_);
        bool is_after = isPotentiallyReachable(exit_, &block, nullptr, &dominators_, &loops_);
        if (!access || memory_of(access->address) == Memory::kUnknown) {
          if (is_before || is_after) return false;
        } else if (access->writes ? is_before : is_after) {
          return false;
        }
      }
    }
    return true;
  }

  // Whether the instruction reads a variable whose contents vary by iteration.
  static bool reads_varying(const Instruction& instruction, const SmallPtrSetImpl<const Value*>& varying,
                            const SmallPtrSetImpl<const BasicBlock*>& conditional) {
    std::optional<Access> access = access_of(instruction);
    if (!access || access->writes) return false;
    return any_of(scratch_variables(access->address), [&](const AllocaInst* variable) {
      std::optional<SmallVector<const StoreInst*>> stores = stores_to(*variable);
      return !stores || any_of(*stores, [&](const StoreInst* store) {
        return conditional.contains(store->getParent()) || varying.contains(store->getValueOperand()) ||
               varying.contains(store->getPointerOperand());
      });
    });
  }

  // Whether the tile's addresses, and the masks of lanes that write them, are invariant in the loop.
  bool written_addresses_are_invariant() {
    PostDominatorTree post_dominators(function_);
    SmallPtrSet<const Value*, 32> varying;
    SmallPtrSet<const BasicBlock*, 8> conditional;  // blocks that are not executed in each iteration
    for (PHINode& phi : head_->phis()) varying.insert(&phi);
    for (bool changed = true; changed;) {
      changed = false;
      for (BasicBlock* block : loop_.blocks()) {
        if (block == head_ || block == end_) continue;
        for (Instruction& instruction : *block) {
          if (varying.contains(&instruction)) continue;
          if (!conditional.contains(block) && !reads_varying(instruction, varying, conditional) &&
              none_of(instruction.operands(), [&](const Value* operand) { return varying.contains(operand); }))
            continue;
          varying.insert(&instruction);
          changed = true;
          if (!instruction.isTerminator() || instruction.getNumSuccessors() < 2) continue;
          auto* node = post_dominators.getNode(block);
          if (!node || !node->getIDom() || !node->getIDom()->getBlock()) return false;
          BasicBlock* join = node->getIDom()->getBlock();
          for (PHINode& phi : join->phis()) varying.insert(&phi);
          SmallVector<const BasicBlock*> worklist(successors(block));
          while (!worklist.empty()) {
            const BasicBlock* side = worklist.pop_back_val();
            if (side == join) continue;
            if (!loop_.contains(side)) return false;
            if (conditional.insert(side).second) append_range(worklist, successors(side));
          }
        }
      }
    }
    return none_of(writes_, [&](const Instruction* write) {
      std::optional<Access> access = access_of(*write);
      return conditional.contains(write->getParent()) || varying.contains(access->address) ||
             (access->mask && varying.contains(access->mask));
    });
  }

  // ---- Dependences of each loop

  static bool is_cheap(const Instruction& instruction) {
    if (const auto* operation = dyn_cast<BinaryOperator>(&instruction)) return !operation->isIntDivRem();
    if (const auto* call = dyn_cast<IntrinsicInst>(&instruction))
      return !call->mayReadOrWriteMemory() && isSafeToSpeculativelyExecute(call);
    return isa<GetElementPtrInst, CastInst, CmpInst, SelectInst, InsertElementInst, ExtractElementInst,
               ShuffleVectorInst, FreezeInst>(instruction);
  }

  using PhiSet = SmallPtrSet<const PHINode*, 8>;

  // The instructions that values depend on.
  struct Dependences {
    PhiSet phis;  // of the head
    SmallPtrSet<const Instruction*, 16> reads;
    SetVector<Instruction*> rematerialized;  // instructions of the omitted part
  };

  // Whether the values can be computed without the part.
  bool find_dependences(unsigned part, SmallVector<const Value*> worklist, Dependences& dependences) const {
    SmallPtrSet<const Value*, 32> seen;
    while (!worklist.empty()) {
      const Value* value = worklist.pop_back_val();
      if (!is_in_loop(value) || !seen.insert(value).second) continue;
      auto* instruction = const_cast<Instruction*>(cast<Instruction>(value));
      if (part_of(instruction) == part) {
        if (!is_cheap(*instruction)) return false;
        dependences.rematerialized.insert(instruction);
        if (dependences.rematerialized.size() > kMostRematerialized) return false;
      }
      if (auto* phi = dyn_cast<PHINode>(instruction); phi && phi->getParent() == head_) {
        dependences.phis.insert(phi);
        worklist.push_back(phi->getIncomingValueForBlock(end_));
        continue;
      }
      if (access_of(*instruction)) dependences.reads.insert(instruction);
      append_range(worklist, instruction->operands());
    }
    return true;
  }

  SmallVector<const Value*> roots_without(unsigned part) const {
    SmallVector<const Value*> roots{end_->getTerminator()};
    for (auto [block, block_part] : part_of_)
      if (block_part != part) roots.push_back(block->getTerminator());
    for (const Instruction* write : scratch_writes_)
      if (part_of(write) != part) roots.push_back(write);
    return roots;
  }

  bool find_loop_dependences() {
    SmallVector<const Value*> roots = roots_without(reader_);
    append_range(roots, writes_);
    if (!find_dependences(reader_, roots, writer_dependences_)) return false;
    // Otherwise nothing is gained.
    if (none_of(head_->phis(), [&](const PHINode& phi) { return is_sum(&phi); })) return false;
    Dependences common;
    if (!find_dependences(writer_, roots_without(writer_), common)) return false;
    // The loop's live-out values, each with its dependences.
    std::vector<Group> results;
    auto add = [&](Value* value) {
      if (!is_in_loop(value) || any_of(results, [&](const Group& one) { return one.results[0] == value; })) return true;
      results.push_back({common, {value}});
      return find_dependences(writer_, {value}, results.back().dependences);
    };
    for (PHINode& phi : head_->phis())
      if (!add(phi.getIncomingValueForBlock(end_))) return false;
    for (PHINode& phi : exit_->phis())
      if (!add(phi.getIncomingValueForBlock(end_))) return false;
    group_results(std::move(results));
    if (groups_.size() > kMostGroups) return false;
    find_unrolled();
    return true;
  }

  // Unrolling makes addresses constants and removes the counter.
  void find_unrolled() {
    TargetLibraryInfoImpl library(Triple(function_.getParent()->getTargetTriple()));
    TargetLibraryInfo info(library);
    AssumptionCache assumptions(function_);
    ScalarEvolution evolution(function_, info, assumptions, dominators_, loops_);
    for (Loop* inner : loop_.getLoopsInPreorder()) {
      BasicBlock* block = inner->getHeader();
      if (inner->getNumBlocks() != 1 || part_of(block->getTerminator()) != reader_) continue;
      unsigned trip_count = evolution.getSmallConstantTripCount(inner);
      if (trip_count > 0 && trip_count <= kLargestTripCount && trip_count * block->size() <= kMostUnrolled)
        unrolled_.push_back(block);
    }
  }

  bool is_sum(const PHINode* phi) const {
    return phi->getType()->isVectorTy() && !writer_dependences_.phis.contains(phi);
  }

  // Results that are computed together.
  struct Group {
    Dependences dependences;
    SmallVector<Value*> results;
  };

  uint64_t registers_of(const PhiSet& one, const PhiSet& other) const {
    auto of = [&](const PHINode* phi) {
      uint64_t bytes = phi->getType()->getPrimitiveSizeInBits() / 8;
      return phi->getType()->isVectorTy() ? std::max<uint64_t>(1, bytes / isa_.register_bytes) : 0;
    };
    uint64_t registers = 0;
    for (const PHINode* phi : one) registers += of(phi);
    for (const PHINode* phi : other)
      if (!one.contains(phi)) registers += of(phi);
    return registers;
  }

  static void add_to(Group& group, const Group& other) {
    group.dependences.phis.insert(other.dependences.phis.begin(), other.dependences.phis.end());
    group.dependences.reads.insert(other.dependences.reads.begin(), other.dependences.reads.end());
    group.dependences.rematerialized.insert(other.dependences.rematerialized.begin(),
                                            other.dependences.rematerialized.end());
    append_range(group.results, other.results);
  }

  // Sums that do not fit into registers are computed in groups that do. Greedily merges the two groups that share the
  // largest fraction of their loads. For matrix products this yields square blocks.
  void group_results(std::vector<Group> results) {
    PhiSet all;
    for (Group& one : results) all.insert(one.dependences.phis.begin(), one.dependences.phis.end());
    bool is_many = registers_of(all, {}) > isa_.num_registers * 3 / 4 && results.size() <= kMostResults;
    uint64_t most = isa_.num_registers / 2;
    while (is_many) {
      std::optional<std::pair<size_t, size_t>> best;
      size_t best_shared = 0, best_all = 1;
      for (size_t i = 0; i < results.size(); ++i)
        for (size_t j = i + 1; j < results.size(); ++j) {
          const Dependences &one = results[i].dependences, &other = results[j].dependences;
          auto shared =
              static_cast<size_t>(count_if(one.reads, [&](auto* read) { return other.reads.contains(read); }));
          size_t all = std::max<size_t>(1, one.reads.size() + other.reads.size() - shared);
          if ((best && shared * best_all <= best_shared * all) || registers_of(one.phis, other.phis) > most) continue;
          best = {i, j};
          best_shared = shared;
          best_all = all;
        }
      if (!best) break;
      add_to(results[best->first], results[best->second]);
      results.erase(results.begin() + static_cast<std::ptrdiff_t>(best->second));
    }
    if (!is_many)
      while (results.size() > 1) {
        add_to(results.front(), results.back());
        results.pop_back();
      }
    groups_ = std::move(results);
    for (size_t i = 0; i < groups_.size(); ++i)
      for (Value* value : groups_[i].results) group_of_.try_emplace(value, i);
  }

  // ---- Transformation

  // A copy of the loop without one part, which runs for each tile of a batch.
  struct Copy {
    ValueToValueMapTy map;
    BasicBlock *head = nullptr, *end = nullptr;
    PHINode* tile = nullptr;
  };

  void make_batches() {
    LLVMContext& context = function_.getContext();
    auto* type = ArrayType::get(Type::getInt8Ty(context), tiles_ * tile_bytes_);
    buffer_ = new GlobalVariable(*function_.getParent(), type, false, GlobalValue::InternalLinkage,
                                 PoisonValue::get(type), "__kiln_tiles");
    buffer_->setAlignment(Align(kTileAlignment));
    auto block = [&](const char* name) { return BasicBlock::Create(context, name, &function_, head_); };
    BasicBlock *batch = block("batch"), *loaded = block("loaded");
    auto insert_barrier = [&] {
      Instruction* barrier = barriers_[0]->clone();
      // A loop over simdgroups ignores the barrier's instance.
      for (Use& operand : barrier->operands())
        if (is_in_loop(operand.get())) operand.set(Constant::getNullValue(operand->getType()));
      builder_.Insert(barrier);
    };

    builder_.SetInsertPoint(batch);
    DenseMap<PHINode*, PHINode*> carried;
    for (PHINode& phi : head_->phis()) {
      carried[&phi] = builder_.CreatePHI(phi.getType(), 2, phi.getName());
      carried[&phi]->addIncoming(phi.getIncomingValueForBlock(before_), before_);
    }
    if (writer_ > 0) insert_barrier();
    Copy writer;
    make_copy(writer, reader_, writer_dependences_, ".written");
    std::vector<Copy> readers(groups_.size());
    for (auto [reader, group] : zip(readers, groups_)) make_copy(reader, writer_, group.dependences, "");
    builder_.CreateBr(writer.head);
    before_->getTerminator()->replaceSuccessorWith(head_, batch);
    auto* branch = cast<BranchInst>(end_->getTerminator());
    bool continues_if_true = branch->getSuccessor(0) == head_;
    auto condition_of = [&](Copy& copy) {
      Value* condition = mapped(copy.map, branch->getCondition());
      return continues_if_true ? condition : builder_.CreateNot(condition);
    };

    builder_.SetInsertPoint(writer.end);
    Value* count = next_tile(writer, *batch);
    never_unroll(*builder_.CreateCondBr(
        builder_.CreateLogicalAnd(condition_of(writer), builder_.CreateICmpNE(count, builder_.getInt64(tiles_))),
        writer.head, loaded));

    builder_.SetInsertPoint(loaded);
    insert_barrier();
    BasicBlock* last = loaded;
    for (Copy& reader : readers) {
      builder_.CreateBr(reader.head);
      BasicBlock* done = block("read");
      builder_.SetInsertPoint(reader.end);
      auto* back = builder_.CreateCondBr(builder_.CreateICmpNE(next_tile(reader, *last), count), reader.head, done);
      never_unroll(*back);
      back->setMetadata(kTileLoop, MDNode::get(context, {}));
      for (PHINode& phi : head_->phis()) {
        auto* copy = dyn_cast<PHINode>(mapped(reader.map, &phi));
        if (!copy) continue;
        copy->addIncoming(carried[&phi], last);
        copy->addIncoming(mapped(reader.map, phi.getIncomingValueForBlock(end_)), reader.end);
      }
      builder_.SetInsertPoint(last = done);
      // Each group gets a loop over the simdgroups of its own: other groups' results occupy no registers meanwhile.
      if (&reader != &readers.back() || writer_ == 0) insert_barrier();
    }
    builder_.CreateCondBr(condition_of(readers.back()), batch, exit_);

    auto result = [&](Value* value) {
      return is_in_loop(value) ? mapped(readers[group_of_.lookup(value)].map, value) : value;
    };
    for (PHINode& phi : head_->phis()) {
      Value* next = phi.getIncomingValueForBlock(end_);
      carried[&phi]->addIncoming(result(next), last);
      if (!writer_dependences_.phis.contains(&phi)) continue;
      auto* copy = cast<PHINode>(mapped(writer.map, &phi));
      copy->addIncoming(carried[&phi], batch);
      copy->addIncoming(mapped(writer.map, next), writer.end);
    }
    for (PHINode& phi : exit_->phis()) {
      auto from = static_cast<unsigned>(phi.getBasicBlockIndex(end_));
      phi.setIncomingValue(from, result(phi.getIncomingValue(from)));
      phi.setIncomingBlock(from, last);
    }
    for (Copy& reader : readers)
      for (BasicBlock* inner : unrolled_)
        if (BasicBlock* copy = cast_or_null<BasicBlock>(mapped_or_null(reader.map, inner)))
          always_unroll(*cast<BranchInst>(copy->getTerminator()));
    SmallVector<BasicBlock*> old(loop_.blocks());
    for (BasicBlock* one : old)
      for (Instruction& instruction : *one) instruction.dropAllReferences();
    for (BasicBlock* one : old) one->eraseFromParent();
  }

  static Value* mapped_or_null(ValueToValueMapTy& map, const Value* value) {
    auto found = map.find(value);
    return found == map.end() ? nullptr : static_cast<Value*>(found->second);
  }

  static Value* mapped(ValueToValueMapTy& map, Value* value) {
    auto found = map.find(value);
    return found == map.end() ? value : static_cast<Value*>(found->second);
  }

  Value* next_tile(Copy& copy, BasicBlock& before) {
    Value* next = builder_.CreateAdd(copy.tile, builder_.getInt64(1), "", true, true);
    copy.tile->addIncoming(builder_.getInt64(0), &before);
    copy.tile->addIncoming(next, copy.end);
    return next;
  }

  // The caller adds the incoming values of the head's phis, and the last block's terminator.
  void make_copy(Copy& copy, unsigned without, const Dependences& dependences, const char* suffix) {
    IRBuilder<>::InsertPointGuard guard(builder_);
    SmallVector<BasicBlock*> blocks;
    for (BasicBlock* block : loop_.blocks()) {
      auto part = part_of_.find(block);
      if (part != part_of_.end() && part->second == without) continue;
      BasicBlock* one = CloneBasicBlock(block, copy.map, suffix, &function_);
      copy.map[block] = one;
      blocks.push_back(one);
    }
    copy.head = cast<BasicBlock>(copy.map[head_]);
    copy.end = cast<BasicBlock>(copy.map[end_]);
    builder_.SetInsertPoint(copy.head, copy.head->begin());
    copy.tile = builder_.CreatePHI(builder_.getInt64Ty(), 2, "tile");
    builder_.SetInsertPoint(copy.head->getTerminator());
    Value* memory = builder_.CreateInBoundsGEP(builder_.getInt8Ty(), buffer_,
                                               builder_.CreateNUWMul(copy.tile, builder_.getInt64(tile_bytes_)));
    for (BasicBlock* block : loop_.blocks())
      for (Instruction& instruction : *block)
        for (Value* operand : instruction.operands())
          if (!is_in_loop(operand) && is_pointer(operand) && memory_of(operand) == Memory::kThreadgroup)
            in_tile(operand, memory, copy.map);
    // In the order of their operands.
    auto* from = cast<BasicBlock>(copy.map[before_part_[without]]);
    builder_.SetInsertPoint(from->getTerminator());
    for (Instruction* instruction : dependences.rematerialized) rematerialize(*instruction, dependences, copy.map);
    for (auto [block, part] : part_of_)
      if (part == without)
        for (Instruction& instruction : *block)
          if (!copy.map.count(&instruction) && !instruction.getType()->isVoidTy())
            copy.map[&instruction] = PoisonValue::get(instruction.getType());
    from->getTerminator()->setSuccessor(0, after_part_[without]);
    for (Instruction* barrier : barriers_) {
      cast<Instruction>(copy.map[barrier])->eraseFromParent();
      copy.map.erase(barrier);
    }
    for (BasicBlock* block : blocks)
      for (Instruction& instruction : *block)
        if (block != copy.head || !isa<PHINode>(instruction))
          RemapInstruction(&instruction, copy.map, RF_NoModuleLevelChanges | RF_IgnoreMissingLocals);
    for (PHINode& phi : head_->phis()) {
      auto* one = cast<PHINode>(copy.map[&phi]);
      while (one->getNumIncomingValues() > 0) one->removeIncomingValue(0u, false);
      if (dependences.phis.contains(&phi)) continue;
      // Its users are not needed.
      one->replaceAllUsesWith(PoisonValue::get(one->getType()));
      copy.map[&phi] = PoisonValue::get(one->getType());
      one->eraseFromParent();
    }
    copy.end->getTerminator()->eraseFromParent();
  }

  Value* rematerialize(Instruction& instruction, const Dependences& dependences, ValueToValueMapTy& map) {
    if (auto found = map.find(&instruction); found != map.end()) return found->second;
    Instruction* one = instruction.clone();
    for (Use& operand : one->operands()) {
      auto* value = dyn_cast<Instruction>(operand.get());
      if (value && dependences.rematerialized.contains(value)) rematerialize(*value, dependences, map);
      operand.set(mapped(map, operand.get()));
    }
    builder_.Insert(one);
    map[&instruction] = one;
    return one;
  }

  // An address in threadgroup memory that was computed before the loop.
  Value* in_tile(Value* address, Value* memory, ValueToValueMapTy& map) {
    if (auto found = map.find(address); found != map.end()) return found->second;
    Value* tile_address = memory;
    if (!is_threadgroup_memory(address)) {
      Instruction* one = cast<Instruction>(address)->clone();
      for (Use& operand : one->operands())
        if (is_pointer(operand.get()) && memory_of(operand.get()) == Memory::kThreadgroup)
          operand.set(in_tile(operand.get(), memory, map));
      tile_address = builder_.Insert(one);
    }
    map[address] = tile_address;
    return tile_address;
  }

  Loop& loop_;
  LoopInfo& loops_;
  DominatorTree& dominators_;
  Function& function_;
  IRBuilder<> builder_;
  function_ref<bool(const Instruction&)> is_barrier_;
  const VectorIsa& isa_;
  const uint64_t tile_bytes_, tiles_;
  SmallVector<Instruction*, 2> barriers_;
  BasicBlock *before_ = nullptr, *head_ = nullptr, *end_ = nullptr, *exit_ = nullptr;
  std::array<BasicBlock*, kParts> before_part_{}, after_part_{};
  MapVector<BasicBlock*, unsigned> part_of_;
  SmallVector<const Instruction*> writes_, scratch_writes_;
  unsigned writer_ = 0, reader_ = 0;
  Dependences writer_dependences_;
  std::vector<Group> groups_;
  DenseMap<const Value*, size_t> group_of_;
  SmallVector<BasicBlock*> unrolled_;  // single-block loops in the reading part
  GlobalVariable* buffer_ = nullptr;
};

}  // namespace

TileMultibuffering multibuffer_tiles(Function& simdgroup, uint64_t bytes, const VectorIsa& vector_isa,
                                     function_ref<bool(const Instruction&)> is_barrier) {
  TileMultibuffering result;
  if (bytes == 0) return result;
  DominatorTree dominators(simdgroup);
  LoopInfo loops(dominators);
  const std::vector<Loop*> candidates = loops.getTopLevelLoops();
  for (Loop* loop : candidates) {
    TileLoop tiles(*loop, loops, dominators, bytes, vector_isa, is_barrier);
    if (!tiles.is_candidate()) continue;
    result.changed = true;
    result.tiles = tiles.run();
    // The loop analyses describe the function before the change. One changed loop is enough.
    if (result.tiles) break;
  }
  return result;
}

}  // namespace kiln
