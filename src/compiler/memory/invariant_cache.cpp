#include "compiler/memory/invariant_cache.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/DenseSet.h>
#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Support/MathExtras.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/Local.h>

#include "compiler/ir/likely.h"
#include "compiler/ir/metadata.h"
#include "compiler/ir/remarks.h"
#include "core/cpu_functions.h"
#include "core/cpu_image.h"

namespace kiln {
namespace {

using namespace llvm;

constexpr const char* kInvariantCache = "invariant-cache";

// Vector operations that a loop saves for each value that it loads instead. A table does not pay off for fewer.
constexpr size_t kFewestComputed = 2;

// At least one in so many of a loop's operations must be saved.
constexpr size_t kOperations = 16;

// Total of all tables, which should stay in a cache with the other data.
constexpr uint64_t kMostTableBytes = 64 << 10;

// Flags before the tables, one for each: whether it has been filled.
constexpr size_t kMostTables = kCpuTableFlagBytes / sizeof(uint32_t);

class InvariantCache {
 public:
  InvariantCache(Function& function, FunctionAnalysisManager& analyses)
      : function_(function),
        layout_(function.getDataLayout()),
        loops_(analyses.getResult<LoopAnalysis>(function)),
        evolution_(analyses.getResult<ScalarEvolutionAnalysis>(function)) {}

  uint64_t run() {
    for (BasicBlock* block : ReversePostOrderTraversal<Function*>(&function_))
      for (Instruction& instruction : *block)
        if (is_invariant(instruction, launch_invariants_)) launch_invariants_.insert(&instruction);
    // All loops are analyzed before one is changed.
    SmallVector<Table> tables;
    uint64_t bytes = 0;
    for (Loop* loop : loops_.getLoopsInPreorder()) {
      std::optional<Table> table = table_of(*loop);
      if (!table || tables.size() == kMostTables || bytes + table->bytes() > kMostTableBytes) continue;
      bytes += table->bytes();
      tables.push_back(std::move(*table));
    }
    for (Table& table : tables) make(table);
    return tables.empty() ? 0 : bytes_;
  }

 private:
  struct Table {
    uint64_t bytes() const { return entry_bytes * iterations; }

    BasicBlock *before, *block;  // the loop's predecessor, and its only block
    uint64_t iterations;
    SmallVector<Instruction*> invariants;  // in program order
    SmallVector<Instruction*> cached;      // those of the invariants that other instructions use
    SmallVector<uint64_t> offsets = {};    // of the cached values, in an iteration's entry
    uint64_t entry_bytes = 0;
  };

  using ValueSet = DenseSet<const Value*>;

  // Whether all simdgroups of the launch compute the same value.
  static bool is_invariant(const Instruction& instruction, const ValueSet& invariants) {
    return only_computes(instruction) && all_of(instruction.operands(), [&](const Use& use) {
             const auto* argument = dyn_cast<Argument>(use);
             return isa<Constant>(use) || (argument && argument->getArgNo() == kCpuLaunch) || invariants.contains(use);
           });
  }

  // An induction variable with a constant start and a constant step.
  static bool is_counter(const Instruction& instruction, const BasicBlock& loop) {
    const auto* phi = dyn_cast<PHINode>(&instruction);
    BinaryOperator* next;
    Value *first, *step;
    return phi && phi->getParent() == &loop && matchSimpleRecurrence(phi, next, first, step) &&
           next->getOpcode() == Instruction::Add && isa<ConstantInt>(first) && isa<ConstantInt>(step);
  }

  static bool only_computes(const Instruction& instruction) {
    if (const auto* load = dyn_cast<LoadInst>(&instruction))
      return load->isSimple() && load->hasMetadata(LLVMContext::MD_invariant_load);
    if (const auto* call = dyn_cast<CallInst>(&instruction))
      return isa<IntrinsicInst>(call) && call->doesNotAccessMemory() && !call->isConvergent();
    return !isa<PHINode, AllocaInst>(instruction) && !instruction.isTerminator() &&
           !instruction.mayReadOrWriteMemory() && !instruction.mayHaveSideEffects();
  }

  static bool computes(const Instruction& one) {
    return isa<FixedVectorType>(one.getType()) && !isa<LoadInst, PHINode>(one);
  }

  // A remark on a loop that has none of the form that tables need, although it computes enough.
  void note_unsuited(const Loop& loop, StringRef why) const {
    if (!keeps_remarks(function_) || !loop.isInnermost()) return;
    ValueSet invariants = launch_invariants_;
    size_t computed = 0;
    for (BasicBlock* block : loop.blocks())
      for (Instruction& instruction : *block) {
        if (!is_counter(instruction, *loop.getHeader()) && !is_invariant(instruction, invariants)) continue;
        invariants.insert(&instruction);
        computed += computes(instruction);
      }
    if (computed >= kFewestComputed)
      remark(kInvariantCache, loop, "not in this loop: ", why.str(), "; ", computed,
             " of its vector operations give the same in all threadgroups");
  }

  std::optional<Table> table_of(Loop& loop) {
    BasicBlock* block = loop.getHeader();
    if (loop.getNumBlocks() != 1 || pred_size(block) != 2) {
      note_unsuited(loop, "it has branches");
      return std::nullopt;
    }
    Table table{loop.getLoopPredecessor(), block, evolution_.getSmallConstantTripCount(&loop), {}, {}};
    if (table.iterations < 2 || !table.before) {
      note_unsuited(loop, "how often it runs is not known");
      return std::nullopt;
    }
    ValueSet invariants = launch_invariants_;
    for (Instruction& instruction : *block) {
      if (!is_counter(instruction, *block) && !is_invariant(instruction, invariants)) continue;
      invariants.insert(&instruction);
      table.invariants.push_back(&instruction);
    }
    for (Instruction* instruction : table.invariants)
      if (computes(*instruction) && !all_of(instruction->users(), [&](const User* user) {
            return cast<Instruction>(user)->getParent() == block && invariants.contains(user);
          }))
        table.cached.push_back(instruction);
    const auto computed =
        static_cast<size_t>(count_if(table.invariants, [&](Instruction* one) { return computes(*one); }));
    const auto operations = static_cast<size_t>(count_if(*block, computes));
    if (table.cached.empty() || computed < kFewestComputed * table.cached.size() ||
        computed * kOperations < operations) {
      if (!table.cached.empty())
        remark(kInvariantCache, loop, "not in this loop: a table with ", table.cached.size(),
               table.cached.size() == 1 ? " value" : " values", " an iteration would save only ", computed, " of its ",
               operations, " vector operations");
      return std::nullopt;
    }
    uint64_t largest = 1;
    for (Instruction* cached : table.cached) {
      const uint64_t bytes = layout_.getTypeAllocSize(cached->getType());
      if (!layout_.typeSizeEqualsStoreSize(cached->getType()->getScalarType())) return std::nullopt;
      largest = std::max(largest, alignment_of(*cached).value());
      table.offsets.push_back(alignTo(table.entry_bytes, alignment_of(*cached)));
      table.entry_bytes = table.offsets.back() + bytes;
    }
    table.entry_bytes = alignTo(table.entry_bytes, largest);
    if (table.entry_bytes > kMostTableBytes || table.iterations > kMostTableBytes || table.bytes() > kMostTableBytes) {
      remark(kInvariantCache, loop, "not in this loop: its table would have ", table.iterations, " entries of ",
             table.entry_bytes, " bytes, which is more than ", kMostTableBytes);
      return std::nullopt;
    }
    return table;
  }

  Align alignment_of(const Value& value) const {
    return std::min(layout_.getABITypeAlign(value.getType()), Align(kCpuFrameAlignment));
  }

  void make(Table& table) {
    LLVMContext& context = function_.getContext();
    Type* flag_type = Type::getInt32Ty(context);
    IRBuilder<> builder(context);
    auto in_tables = [&](uint64_t offset) {
      return builder.CreateConstInBoundsGEP1_64(builder.getInt8Ty(), function_.getArg(kCpuTables), offset);
    };
    const uint64_t flag = sizeof(uint32_t) * count_++, entries = alignTo(bytes_, kCpuFrameAlignment);
    bytes_ = entries + table.bytes();
    // Before the loop: fill the table unless it has been filled.
    BasicBlock* check = SplitEdge(table.before, table.block);
    check->setName("table");
    BasicBlock* loop = table.block;
    BasicBlock* fill = BasicBlock::Create(context, "fill", &function_, loop);
    BasicBlock* filled = BasicBlock::Create(context, "filled", &function_, loop);
    BasicBlock* enter = BasicBlock::Create(context, "enter", &function_, loop);
    check->getTerminator()->eraseFromParent();
    builder.SetInsertPoint(check);
    Value* is_filled = builder.CreateIsNotNull(builder.CreateLoad(flag_type, in_tables(flag)));
    mark_likely(*builder.CreateCondBr(is_filled, enter, fill));
    emit_fill_loop(table, *check, *fill, *filled, entries);
    builder.SetInsertPoint(filled);
    builder.CreateStore(ConstantInt::get(flag_type, 1), in_tables(flag));
    builder.CreateBr(enter);
    builder.SetInsertPoint(enter);
    builder.CreateBr(loop);
    for (PHINode& phi : loop->phis()) phi.replaceIncomingBlockWith(check, enter);

    builder.SetInsertPoint(loop, loop->begin());
    PHINode* offset = builder.CreatePHI(builder.getInt64Ty(), 2, "row");
    builder.SetInsertPoint(loop, loop->getFirstInsertionPt());
    Value* entry = builder.CreateInBoundsGEP(builder.getInt8Ty(), in_tables(entries), offset);
    offset->addIncoming(builder.getInt64(0), enter);
    for (auto [cached, at] : zip_equal(table.cached, table.offsets)) {
      builder.SetInsertPoint(cached);
      LoadInst* load = builder.CreateAlignedLoad(
          cached->getType(), builder.CreateConstInBoundsGEP1_64(builder.getInt8Ty(), entry, at), alignment_of(*cached));
      load->setMetadata(kFromInvariantCache, MDNode::get(context, {}));
      cached->replaceAllUsesWith(load);
    }
    builder.SetInsertPoint(loop->getTerminator());
    offset->addIncoming(builder.CreateAdd(offset, builder.getInt64(table.entry_bytes), "", true, true), loop);
    for (Instruction* instruction : reverse(table.invariants))
      if (isInstructionTriviallyDead(instruction)) instruction->eraseFromParent();
  }

  // Emits a loop over the iterations that computes the invariants.
  void emit_fill_loop(const Table& table, BasicBlock& before, BasicBlock& fill, BasicBlock& exit, uint64_t entries) {
    IRBuilder<> builder(&fill);
    PHINode* offset = builder.CreatePHI(builder.getInt64Ty(), 2, "row");
    offset->addIncoming(builder.getInt64(0), &before);
    DenseMap<Value*, Value*> copies;
    SmallVector<PHINode*> counters;
    for (Instruction* instruction : table.invariants) {
      Instruction* copy = instruction->clone();
      builder.Insert(copy);
      copies[instruction] = copy;
      if (auto* phi = dyn_cast<PHINode>(copy)) {
        counters.push_back(phi);
        continue;
      }
      for (Use& operand : copy->operands())
        if (Value* other = copies.lookup(operand.get())) operand.set(other);
    }
    for (PHINode* phi : counters)
      for (unsigned i = 0; i < 2; ++i) {
        const bool is_next = phi->getIncomingBlock(i) == table.block;
        phi->setIncomingBlock(i, is_next ? &fill : &before);
        if (is_next) phi->setIncomingValue(i, copies.lookup(phi->getIncomingValue(i)));
      }
    Value* entry = builder.CreateInBoundsGEP(
        builder.getInt8Ty(),
        builder.CreateConstInBoundsGEP1_64(builder.getInt8Ty(), function_.getArg(kCpuTables), entries), offset);
    for (auto [cached, at] : zip_equal(table.cached, table.offsets))
      builder.CreateAlignedStore(copies.lookup(cached),
                                 builder.CreateConstInBoundsGEP1_64(builder.getInt8Ty(), entry, at),
                                 alignment_of(*cached));
    Value* next = builder.CreateAdd(offset, builder.getInt64(table.entry_bytes), "", true, true);
    offset->addIncoming(next, &fill);
    Value* is_last = builder.CreateICmpEQ(next, builder.getInt64(table.bytes()));
    builder.CreateCondBr(is_last, &exit, &fill);
  }

  Function& function_;
  const DataLayout& layout_;
  LoopInfo& loops_;
  ScalarEvolution& evolution_;
  ValueSet launch_invariants_;  // in every iteration
  size_t count_ = 0;
  uint64_t bytes_ = kCpuTableFlagBytes;
};

}  // namespace

uint64_t cache_invariants(Function& function, FunctionAnalysisManager& analyses) {
  return InvariantCache(function, analyses).run();
}

}  // namespace kiln
