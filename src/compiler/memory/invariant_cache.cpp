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
#include <llvm/IR/MDBuilder.h>
#include <llvm/Support/MathExtras.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/Local.h>

#include "compiler/ir/metadata.h"
#include "core/cpu_image.h"

namespace kiln {
namespace {

using namespace llvm;

// Operations on vectors that a loop does no more, for each value that it loads instead. Fewer are not worth a table.
constexpr size_t kFewestComputed = 2;

// A loop's operations of which at least one is done no more.
constexpr size_t kOperations = 16;

// Of all tables, which are to stay in a cache with what else is read.
constexpr uint64_t kMostBytes = 64 << 10;

// Before the tables, for each whether it has been filled.
constexpr size_t kMostTables = kCpuTableFlagBytes / sizeof(uint32_t);

class LaunchTables {
 public:
  LaunchTables(Function& function, FunctionAnalysisManager& analyses)
      : function_(function),
        layout_(function.getDataLayout()),
        loops_(analyses.getResult<LoopAnalysis>(function)),
        evolution_(analyses.getResult<ScalarEvolutionAnalysis>(function)) {}

  uint64_t run() {
    for (BasicBlock* block : ReversePostOrderTraversal<Function*>(&function_))
      for (Instruction& instruction : *block)
        if (is_invariant(instruction, common_)) common_.insert(&instruction);
    // Loops are all looked at before one is changed.
    SmallVector<Table> tables;
    uint64_t bytes = 0;
    for (Loop* loop : loops_.getLoopsInPreorder()) {
      std::optional<Table> table = table_of(*loop);
      if (!table || tables.size() == kMostTables || bytes + table->bytes() > kMostBytes) continue;
      bytes += table->bytes();
      tables.push_back(std::move(*table));
    }
    for (Table& table : tables) make(table);
    return tables.empty() ? 0 : bytes_;
  }

 private:
  struct Table {
    uint64_t bytes() const { return row * iterations; }

    BasicBlock *before, *block;  // one that leads to the loop, and the loop's
    uint64_t iterations;
    SmallVector<Instruction*> alike;     // in their order
    SmallVector<Instruction*> kept;      // of those: what others use
    SmallVector<uint64_t> offsets = {};  // of what is kept, in a row for an iteration
    uint64_t row = 0;                    // bytes
  };

  using Alike = DenseSet<const Value*>;

  // Whether all simdgroups of the launch compute the same.
  static bool is_invariant(const Instruction& instruction, const Alike& alike) {
    return only_computes(instruction) && all_of(instruction.operands(), [&](const Use& use) {
             const auto* argument = dyn_cast<Argument>(use);
             return isa<Constant>(use) || (argument && argument->getArgNo() == kCpuLaunch) || alike.contains(use);
           });
  }

  // A number that begins with a constant and changes by one.
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

  std::optional<Table> table_of(Loop& loop) {
    BasicBlock* block = loop.getHeader();
    if (loop.getNumBlocks() != 1 || pred_size(block) != 2) return std::nullopt;
    Table table{loop.getLoopPredecessor(), block, evolution_.getSmallConstantTripCount(&loop), {}, {}};
    if (table.iterations < 2 || !table.before) return std::nullopt;
    Alike alike = common_;
    auto computes = [](const Instruction& one) {
      return isa<FixedVectorType>(one.getType()) && !isa<LoadInst, PHINode>(one);
    };
    for (Instruction& instruction : *block) {
      if (!is_counter(instruction, *block) && !is_invariant(instruction, alike)) continue;
      alike.insert(&instruction);
      table.alike.push_back(&instruction);
    }
    for (Instruction* instruction : table.alike)
      if (computes(*instruction) && !all_of(instruction->users(), [&](const User* user) {
            return cast<Instruction>(user)->getParent() == block && alike.contains(user);
          }))
        table.kept.push_back(instruction);
    const auto computed = static_cast<size_t>(count_if(table.alike, [&](Instruction* one) { return computes(*one); }));
    const auto operations = static_cast<size_t>(count_if(*block, computes));
    if (table.kept.empty() || computed < kFewestComputed * table.kept.size() || computed * kOperations < operations)
      return std::nullopt;
    uint64_t largest = 1;
    for (Instruction* kept : table.kept) {
      const uint64_t bytes = layout_.getTypeAllocSize(kept->getType());
      if (!layout_.typeSizeEqualsStoreSize(kept->getType()->getScalarType())) return std::nullopt;
      largest = std::max(largest, alignment_of(*kept).value());
      table.offsets.push_back(alignTo(table.row, alignment_of(*kept)));
      table.row = table.offsets.back() + bytes;
    }
    table.row = alignTo(table.row, largest);
    if (table.row > kMostBytes || table.iterations > kMostBytes) return std::nullopt;
    return table;
  }

  Align alignment_of(const Value& value) const {
    return std::min(layout_.getABITypeAlign(value.getType()), Align(kCpuFrameAlignment));
  }

  void make(Table& table) {
    LLVMContext& context = function_.getContext();
    Type* flag_type = Type::getInt32Ty(context);
    IRBuilder<> builder(context);
    auto in_frame = [&](uint64_t offset) {
      return builder.CreateConstInBoundsGEP1_64(builder.getInt8Ty(), function_.getArg(kCpuFrame), offset);
    };
    const uint64_t flag = sizeof(uint32_t) * count_++, rows = alignTo(bytes_, kCpuFrameAlignment);
    bytes_ = rows + table.bytes();
    // Before the loop: fill the table where that has not been done.
    BasicBlock* ask = SplitEdge(table.before, table.block);
    ask->setName("table");
    BasicBlock* loop = table.block;
    BasicBlock* fill = BasicBlock::Create(context, "fill", &function_, loop);
    BasicBlock* filled = BasicBlock::Create(context, "filled", &function_, loop);
    BasicBlock* enter = BasicBlock::Create(context, "enter", &function_, loop);
    ask->getTerminator()->eraseFromParent();
    builder.SetInsertPoint(ask);
    Value* is_filled = builder.CreateIsNotNull(builder.CreateLoad(flag_type, in_frame(flag)));
    builder.CreateCondBr(is_filled, enter, fill, MDBuilder(context).createBranchWeights(1000, 1));
    fill_rows(table, *ask, *fill, *filled, rows);
    builder.SetInsertPoint(filled);
    builder.CreateStore(ConstantInt::get(flag_type, 1), in_frame(flag));
    builder.CreateBr(enter);
    builder.SetInsertPoint(enter);
    builder.CreateBr(loop);
    for (PHINode& phi : loop->phis()) phi.replaceIncomingBlockWith(ask, enter);

    builder.SetInsertPoint(loop, loop->begin());
    PHINode* offset = builder.CreatePHI(builder.getInt64Ty(), 2, "row");
    builder.SetInsertPoint(loop, loop->getFirstInsertionPt());
    Value* row = builder.CreateInBoundsGEP(builder.getInt8Ty(), in_frame(rows), offset);
    offset->addIncoming(builder.getInt64(0), enter);
    for (auto [kept, at] : zip_equal(table.kept, table.offsets)) {
      builder.SetInsertPoint(kept);
      LoadInst* load = builder.CreateAlignedLoad(
          kept->getType(), builder.CreateConstInBoundsGEP1_64(builder.getInt8Ty(), row, at), alignment_of(*kept));
      load->setMetadata(kFromInvariantCache, MDNode::get(context, {}));
      kept->replaceAllUsesWith(load);
    }
    builder.SetInsertPoint(loop->getTerminator());
    offset->addIncoming(builder.CreateAdd(offset, builder.getInt64(table.row), "", true, true), loop);
    for (Instruction* instruction : reverse(table.alike))
      if (isInstructionTriviallyDead(instruction)) instruction->eraseFromParent();
  }

  // A loop over the iterations, of what is alike.
  void fill_rows(const Table& table, BasicBlock& before, BasicBlock& fill, BasicBlock& behind, uint64_t rows) {
    IRBuilder<> builder(&fill);
    PHINode* offset = builder.CreatePHI(builder.getInt64Ty(), 2, "row");
    offset->addIncoming(builder.getInt64(0), &before);
    DenseMap<Value*, Value*> copies;
    SmallVector<PHINode*> counters;
    for (Instruction* instruction : table.alike) {
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
    Value* row = builder.CreateInBoundsGEP(
        builder.getInt8Ty(), builder.CreateConstInBoundsGEP1_64(builder.getInt8Ty(), function_.getArg(kCpuFrame), rows),
        offset);
    for (auto [kept, at] : zip_equal(table.kept, table.offsets))
      builder.CreateAlignedStore(copies.lookup(kept), builder.CreateConstInBoundsGEP1_64(builder.getInt8Ty(), row, at),
                                 alignment_of(*kept));
    Value* next = builder.CreateAdd(offset, builder.getInt64(table.row), "", true, true);
    offset->addIncoming(next, &fill);
    Value* is_last = builder.CreateICmpEQ(next, builder.getInt64(table.bytes()));
    builder.CreateCondBr(is_last, &behind, &fill);
  }

  Function& function_;
  const DataLayout& layout_;
  LoopInfo& loops_;
  ScalarEvolution& evolution_;
  Alike common_;  // whatever the iteration
  size_t count_ = 0;
  uint64_t bytes_ = kCpuTableFlagBytes;
};

}  // namespace

PreservedAnalyses InvariantCachePass::run(Function& function, FunctionAnalysisManager& analyses) {
  bytes_ = LaunchTables(function, analyses).run();
  return bytes_ == 0 ? PreservedAnalyses::all() : PreservedAnalyses::none();
}

}  // namespace kiln
