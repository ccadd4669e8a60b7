#include "compiler/analysis/offset_zeros.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/GetElementPtrTypeIterator.h>
#include <llvm/Support/KnownBits.h>

#include <algorithm>
#include <bit>

namespace kiln {

using namespace llvm;

unsigned known_zeros_added(GEPOperator& address, const DataLayout& layout, unsigned most) {
  unsigned zeros = most;
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

unsigned known_zeros_of_offset(Value& pointer, const DataLayout& layout, unsigned most) {
  unsigned zeros = most;
  Value* value = &pointer;
  for (;;) {
    if (auto* address = dyn_cast<GEPOperator>(value)) {
      zeros = std::min(zeros, known_zeros_added(*address, layout, most));
      value = address->getPointerOperand();
    } else if (Operator::getOpcode(value) == Instruction::AddrSpaceCast) {
      value = cast<Operator>(value)->getOperand(0);
    } else {
      return isa<Argument, AllocaInst, GlobalVariable>(value) ? zeros : 0;
    }
  }
}

}  // namespace kiln
