#include "compiler/nvptx/alignments.h"

#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/GetElementPtrTypeIterator.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Operator.h>
#include <llvm/Support/KnownBits.h>

#include <algorithm>
#include <bit>

namespace kiln {
namespace {

using namespace llvm;

constexpr unsigned kMostZeros = 4;  // no access needs more than 16 bytes

// Trailing zeros of the offset that the address computation adds to its base.
unsigned zeros_added(GEPOperator& address, const DataLayout& layout) {
  unsigned zeros = kMostZeros;
  for (auto index = gep_type_begin(address); index != gep_type_end(address); ++index) {
    uint64_t bytes;
    unsigned more = 0;
    if (StructType* structure = index.getStructTypeOrNull()) {
      bytes = layout.getStructLayout(structure)->getElementOffset(
          static_cast<unsigned>(cast<ConstantInt>(index.getOperand())->getZExtValue()));
    } else {
      bytes = index.getSequentialElementStride(layout);
      more = computeKnownBits(index.getOperand(), layout).countMinTrailingZeros();
    }
    if (bytes != 0) zeros = std::min(zeros, static_cast<unsigned>(std::countr_zero(bytes)) + more);
  }
  return zeros;
}

}  // namespace

Align known_alignment(Value& start, const DataLayout& layout) {
  unsigned zeros = kMostZeros;
  SmallPtrSet<Value*, 8> seen;
  SmallVector<Value*> work{&start};
  while (!work.empty()) {
    Value* pointer = work.pop_back_val();
    if (!seen.insert(pointer).second) continue;
    if (auto* address = dyn_cast<GEPOperator>(pointer)) {
      zeros = std::min(zeros, zeros_added(*address, layout));
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

void reduce_alignments_to_known(Function& function) {
  const DataLayout& layout = function.getDataLayout();
  for (Instruction& instruction : instructions(function)) {
    // An atomic cannot be split.
    if (instruction.isAtomic()) continue;
    if (auto* load = dyn_cast<LoadInst>(&instruction); load && load->getAlign() > Align(1))
      load->setAlignment(std::min(load->getAlign(), known_alignment(*load->getPointerOperand(), layout)));
    else if (auto* store = dyn_cast<StoreInst>(&instruction); store && store->getAlign() > Align(1))
      store->setAlignment(std::min(store->getAlign(), known_alignment(*store->getPointerOperand(), layout)));
  }
}

}  // namespace kiln
