#include "compiler/nvptx/alignments.h"

#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Operator.h>

#include <algorithm>

#include "compiler/analysis/offset_zeros.h"
#include "compiler/ir/metadata.h"

namespace kiln {
namespace {

using namespace llvm;

constexpr unsigned kMostZeros = 4;  // no access needs more than 16 bytes

}  // namespace

Align known_alignment(Value& start, const DataLayout& layout) {
  unsigned zeros = kMostZeros;
  SmallPtrSet<Value*, 8> seen;
  SmallVector<Value*> work{&start};
  while (!work.empty()) {
    Value* pointer = work.pop_back_val();
    if (!seen.insert(pointer).second) continue;
    if (auto* address = dyn_cast<GEPOperator>(pointer)) {
      zeros = std::min(zeros, known_zeros_added(*address, layout, kMostZeros));
      work.push_back(address->getPointerOperand());
    } else if (auto* phi = dyn_cast<PHINode>(pointer)) {
      work.append(phi->op_begin(), phi->op_end());
    } else if (auto* select = dyn_cast<SelectInst>(pointer)) {
      work.push_back(select->getTrueValue());
      work.push_back(select->getFalseValue());
    } else if (Operator::getOpcode(pointer) == Instruction::AddrSpaceCast || isa<FreezeInst>(pointer)) {
      work.push_back(cast<Operator>(pointer)->getOperand(0));
    } else {
      zeros = std::min(zeros, static_cast<unsigned>(Log2(pointer->getPointerAlignment(layout))));
    }
  }
  return Align(uint64_t{1} << zeros);
}

void set_known_alignments(Function& function) {
  const DataLayout& layout = function.getDataLayout();
  for (Instruction& instruction : instructions(function)) {
    // An atomic cannot be split.
    if (instruction.isAtomic() || instruction.hasMetadata(kAligned)) continue;
    if (auto* load = dyn_cast<LoadInst>(&instruction))
      load->setAlignment(known_alignment(*load->getPointerOperand(), layout));
    else if (auto* store = dyn_cast<StoreInst>(&instruction))
      store->setAlignment(known_alignment(*store->getPointerOperand(), layout));
  }
}

}  // namespace kiln
