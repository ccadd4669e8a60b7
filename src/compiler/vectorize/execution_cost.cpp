#include "compiler/vectorize/execution_cost.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/ProfDataUtils.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "compiler/ir/guard_zeros.h"
#include "compiler/ir/metadata.h"
#include "compiler/ir/simdgroup.h"
#include "compiler/vectorize/lane_strides.h"
#include "compiler/vectorize/register_tables.h"
#include "core/text.h"

namespace kiln {
namespace {

using namespace llvm;

// The estimate must be by so much in favour of the scalar engine.
constexpr double kMargin = 2.2;

// ---- Cycles of a simdgroup; the header explains them

constexpr double kArithmeticCycles = 0.7, kWideProductCycles = 3, kGatherCycles = 60, kSerializedCycles = 130,
                 kCacheMissCycles = 14, kBranchCycles = 5, kJoinCycles = 1, kConditionCycles = 1.5,
                 kUniformCycles = 0.4;

// A register of 64 bytes is divided, and loaded or stored in pieces, as two of 32 bytes are.
double division_cycles(const VectorIsa& isa) { return isa.register_bytes > 32 ? 14 : 8; }
double interleaved_cycles(const VectorIsa& isa) { return isa.register_bytes > 32 ? 5 : 4; }

// An element of 4 bytes of a part of a row, and one of the tiles that parts go to.
constexpr double kRowCycles = 16, kTileCycles = 1, kWordBytes = 4;

// For each register of a constant table.
constexpr double kTableCycles = 1.5;

// An interleaved access loads whole registers.
constexpr int64_t kMostInterleaved = 8;

// ---- Cycles of a thread

constexpr double kThreadArithmeticCycles = 0.5, kThreadDivisionCycles = 4, kThreadAccessCycles = 0.8,
                 kThreadBranchCycles = 5, kThreadUniformCycles = 0.35;

// ---- Frequencies

constexpr double kUnknownTrips = 16, kMostTrips = 4096;
constexpr double kSlowestOfCounters = 1.5, kSlowestOfSearches = 4;
constexpr double kReturnProbability = 0.1;
constexpr unsigned kShortReturn = 8;  // instructions of a block that only returns

struct Frequency {
  double thread = 0, simdgroup = 0;
};

class Frequencies {
 public:
  Frequencies(Function& function, const Divergence& divergence, FunctionAnalysisManager& analyses)
      : loops_(analyses.getResult<LoopAnalysis>(function)),
        dominators_(analyses.getResult<DominatorTreeAnalysis>(function)),
        post_dominators_(analyses.getResult<PostDominatorTreeAnalysis>(function)),
        evolution_(analyses.getResult<ScalarEvolutionAnalysis>(function)),
        divergence_(divergence) {
    DenseMap<const BasicBlock*, Frequency> incoming;
    incoming[&function.getEntryBlock()] = {1, 1};
    for (BasicBlock* block : ReversePostOrderTraversal<Function*>(&function)) {
      Frequency own = incoming.lookup(block);
      // Edges of one branch that meet again are no more than what came to the branch.
      if (const DomTreeNode* node = dominators_.getNode(block); node && node->getIDom()) {
        const Frequency most = in_iteration_.lookup(node->getIDom()->getBlock());
        own = {std::min(own.thread, most.thread), std::min(own.simdgroup, most.simdgroup)};
      }
      in_iteration_[block] = own;
      const unsigned edges = edges_within_loop(*block);
      for (const BasicBlock* next : successors(block)) {
        const Frequency edge = along(*block, *next, edges, own);
        Frequency& sum = incoming[next];
        sum = {sum.thread + edge.thread, sum.simdgroup + edge.simdgroup};
      }
    }
  }

  Frequency of(const BasicBlock* block) {
    Frequency result = in_iteration_.lookup(block);
    for (const Loop* loop = loop_of(block); loop; loop = loop->getParentLoop()) {
      const Frequency trips = trips_of(*loop);
      result = {result.thread * trips.thread, result.simdgroup * trips.simdgroup};
    }
    return result;
  }

  const Loop* loop_of(const BasicBlock* block) const { return loops_.getLoopFor(block); }

 private:
  Frequency trips_of(const Loop& loop) {
    auto [known, is_new] = trips_.try_emplace(&loop);
    if (!is_new) return known->second;
    const unsigned constant = evolution_.getSmallConstantTripCount(&loop);
    const double trips = constant ? std::min<double>(constant, kMostTrips) : kUnknownTrips;
    SmallVector<BasicBlock*> exiting;
    loop.getExitingBlocks(exiting);
    const bool is_divergent =
        any_of(exiting, [&](const BasicBlock* block) { return divergence_.is_divergent_branch(*block); });
    // Besides the counter.
    const bool searches = exiting.size() > 1 && any_of(exiting, [&](const BasicBlock* block) {
                            return divergence_.is_divergent_branch(*block) && depends_on_load(*block, loop);
                          });
    return known->second = {trips, trips * (searches ? kSlowestOfSearches : is_divergent ? kSlowestOfCounters : 1)};
  }

  // Whether a load of this iteration is an operand of the branch's condition.
  static bool depends_on_load(const BasicBlock& block, const Loop& loop) {
    const auto* branch = dyn_cast<BranchInst>(block.getTerminator());
    const auto* condition = branch && branch->isConditional() ? dyn_cast<CmpInst>(branch->getCondition()) : nullptr;
    return condition && any_of(condition->operands(), [&](const Use& operand) {
             const auto* load = dyn_cast<LoadInst>(operand.get());
             return load && loop.contains(load);
           });
  }

  unsigned edges_within_loop(const BasicBlock& from) const {
    const Loop* loop = loop_of(&from);
    return static_cast<unsigned>(
        count_if(successors(&from), [&](const BasicBlock* next) { return !loop || loop->contains(next); }));
  }

  // Along one of the block's `edges` edges within its loop, or one that leaves the loop.
  Frequency along(const BasicBlock& from, const BasicBlock& to, unsigned edges, Frequency own) const {
    const Loop* loop = loop_of(&from);
    if (loop && loop->getHeader() == &to) return {};  // a back edge
    if (loop && !loop->contains(&to)) {
      // What enters a loop leaves it.
      while (loop->getParentLoop() && !loop->getParentLoop()->contains(&to)) loop = loop->getParentLoop();
      return in_iteration_.lookup(loop->getHeader());
    }
    if (edges == 1 || post_dominators_.dominates(&to, &from)) return own;
    double share = 1.0 / edges;
    // What is rare, such as a last block of iterations.
    uint64_t first, second;
    if (edges == 2 && extractBranchWeights(*from.getTerminator(), first, second) && first + second > 0) {
      share = static_cast<double>(from.getTerminator()->getSuccessor(0) == &to ? first : second) /
              static_cast<double>(first + second);
    } else if (edges == 2) {
      const bool other_returns =
          any_of(successors(&from), [&](const BasicBlock* next) { return next != &to && only_returns(*next); });
      share = only_returns(to) ? kReturnProbability : other_returns ? 1 - kReturnProbability : share;
    }
    return {own.thread * share, divergence_.is_divergent_branch(from) ? own.simdgroup : own.simdgroup * share};
  }

  static bool only_returns(const BasicBlock& block) {
    return isa<ReturnInst>(block.getTerminator()) && block.size() < kShortReturn;
  }

  const LoopInfo& loops_;
  const DominatorTree& dominators_;
  const PostDominatorTree& post_dominators_;
  ScalarEvolution& evolution_;
  const Divergence& divergence_;
  DenseMap<const BasicBlock*, Frequency> in_iteration_;  // of the innermost loop around the block
  DenseMap<const Loop*, Frequency> trips_;
};

// The type by whose size an operation takes registers.
Type* operated_type(const Instruction& instruction) {
  if (isa<PHINode, SelectInst>(instruction) || instruction.getNumOperands() == 0) return instruction.getType();
  return instruction.getOperand(0)->getType();
}

class CostFinder {
 public:
  CostFinder(Function& function, const Divergence& divergence, FunctionAnalysisManager& analyses,
             const VectorIsa& vector_isa)
      : function_(function),
        divergence_(divergence),
        isa_(vector_isa),
        layout_(function.getDataLayout()),
        frequencies_(function, divergence, analyses),
        strides_(function, divergence) {}

  ExecutionCost find() {
    for (const BasicBlock& block : function_) {
      times_ = frequencies_.of(&block);
      for (const Instruction& instruction : block) {
        if (instruction.isDebugOrPseudoInst()) continue;
        if (instruction.isTerminator()) {
          if (divergence_.is_divergent_branch(block)) add(cost_.branches, kBranchCycles, kThreadBranchCycles);
        } else if (instruction.isAtomic()) {
          add(cost_.indexed, kSerializedCycles, kThreadAccessCycles);
        } else if (const Value* pointer = getLoadStorePointerOperand(&instruction);
                   pointer && divergence_.is_divergent(pointer)) {
          add_access(instruction, unguarded(pointer));
        } else if (!divergence_.is_divergent(&instruction)) {
          add(cost_.arithmetic, kUniformCycles, kThreadUniformCycles);
        } else {
          add_operation(instruction);
        }
      }
    }
    return cost_;
  }

 private:
  void add(double& simdgroup, double cycles, double thread_cycles) {
    simdgroup += times_.simdgroup * cycles;
    cost_.threads += times_.thread * thread_cycles * kLanes;
  }

  double registers(double bytes) const { return std::max(1.0, kLanes * bytes / isa_.register_bytes); }

  void add_access(const Instruction& access, const Value* pointer) {
    const auto* store = dyn_cast<StoreInst>(&access);
    Type* type = store ? store->getValueOperand()->getType() : access.getType();
    const auto bytes = static_cast<int64_t>(layout_.getTypeStoreSize(type).getFixedValue());
    const auto* variable = dyn_cast<AllocaInst>(getUnderlyingObject(pointer));
    if (access.hasMetadata(kRowBlock) && variable) {
      // One thread after the other has no tiles.
      add(cost_.arithmetic, kTileCycles * registers(static_cast<double>(bytes)), 0);
      return;
    }
    if (access.hasMetadata(kRowBlock) || access.hasMetadata(kRowPart)) {
      add(cost_.arithmetic, kRowCycles * static_cast<double>(bytes) / kWordBytes, kThreadAccessCycles);
      return;
    }
    const LaneStride stride = strides_.of(pointer);
    const bool is_private = variable && !variable->hasMetadata(kUniform);
    // Lanes with one index have adjacent elements of private arrays.
    if (stride.distance && std::abs(*stride.distance) <= (is_private ? 0 : kMostInterleaved * bytes)) {
      add(cost_.arithmetic, interleaved_cycles(isa_) * registers(static_cast<double>(bytes)), kThreadAccessCycles);
      return;
    }
    const auto size = static_cast<uint64_t>(bytes);
    if (!store)
      if (const auto table = register_table_of(pointer, size, layout_, isa_)) {
        const double held = std::ceil(static_cast<double>(table->words.size()) / isa_.num_words());
        add(cost_.arithmetic, kTableCycles * held * registers(kWordBytes), kThreadAccessCycles);
        return;
      }
    const bool is_indexed = store ? isa_.stores_by_index(size) : isa_.loads_by_index(size);
    add(variable ? cost_.private_arrays : cost_.indexed, is_indexed ? kGatherCycles : kSerializedCycles,
        kThreadAccessCycles);
    if (!is_private && stride.distance && rows_conflict(*stride.distance) && frequencies_.loop_of(access.getParent()))
      cost_.conflicts += times_.simdgroup * kCacheMissCycles * kLanes;
  }

  void add_operation(const Instruction& instruction) {
    if (isa<CastInst, GetElementPtrInst, FreezeInst>(instruction) && !isa<FPToSIInst, FPToUIInst>(instruction)) return;
    Type* type = operated_type(instruction);
    const double bytes = type->isSized() ? static_cast<double>(layout_.getTypeStoreSize(type).getFixedValue()) : 4;
    switch (instruction.getOpcode()) {
      case Instruction::PHI: add(cost_.branches, kJoinCycles * registers(bytes), 0); return;
      case Instruction::FDiv:
      case Instruction::FRem:
      case Instruction::UDiv:
      case Instruction::SDiv:
      case Instruction::URem:
      case Instruction::SRem:
        add(cost_.arithmetic, division_cycles(isa_) * registers(bytes), kThreadDivisionCycles);
        return;
      default: break;
    }
    if (strides_.of(&instruction).is_affine) {
      add(cost_.arithmetic, kUniformCycles, kThreadArithmeticCycles);
    } else if (type->isIntegerTy(1) || type->isPointerTy()) {
      add(cost_.arithmetic, kConditionCycles, kThreadArithmeticCycles);
    } else {
      const bool is_wide_product = instruction.getOpcode() == Instruction::Mul && bytes == 8;
      add(cost_.arithmetic, (kArithmeticCycles + (is_wide_product ? kWideProductCycles : 0)) * registers(bytes),
          kThreadArithmeticCycles);
    }
  }

  Function& function_;
  const Divergence& divergence_;
  const VectorIsa& isa_;
  const DataLayout& layout_;
  Frequencies frequencies_;
  const LaneStrides strides_;
  ExecutionCost cost_;
  Frequency times_;  // of the block that is visited
};

}  // namespace

ExecutionCost execution_cost(Function& function, const Divergence& divergence, FunctionAnalysisManager& analyses,
                             const VectorIsa& vector_isa) {
  return CostFinder(function, divergence, analyses, vector_isa).find();
}

std::string refuse_by_execution_cost(const ExecutionCost& cost) {
  const double simdgroup = cost.simdgroup();
  if (simdgroup <= kMargin * cost.threads) return "";
  const double most = std::max({cost.arithmetic, cost.indexed, cost.private_arrays, cost.conflicts, cost.branches});
  const char* cause = most == cost.conflicts
                          ? "each thread walks a row of its own, and the rows evict one another from the cache"
                      : most == cost.private_arrays ? "its threads index private arrays by numbers of their own"
                      : most == cost.indexed ? "most of its time is spent on accesses that differ from lane to lane"
                                             : "its threads take different paths";
  return concat("vectors would not pay: ", cause, " (estimated cycles of a simdgroup: ", std::llround(simdgroup),
                ", of its threads one after the other: ", std::llround(cost.threads), ")");
}

}  // namespace kiln
