#include "compiler/nvptx/padded_constants.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/DataLayout.h>
#include <llvm/IR/DerivedTypes.h>

#include <utility>
#include <vector>

namespace kiln {
namespace {

using namespace llvm;

bool has_padded_vectors(Type* type, const DataLayout& layout) {
  if (auto* array = dyn_cast<ArrayType>(type)) return has_padded_vectors(array->getElementType(), layout);
  if (auto* structure = dyn_cast<StructType>(type))
    return any_of(structure->elements(), [&](Type* element) { return has_padded_vectors(element, layout); });
  return isa<FixedVectorType>(type) && layout.getTypeAllocSize(type) != layout.getTypeStoreSize(type);
}

// A constant's bytes in memory, and the addresses among them. Padding and undefined bytes are zeros.
class ConstantBytes {
 public:
  ConstantBytes(const Constant& constant, const DataLayout& layout)
      : context_(constant.getContext()), layout_(layout), bytes_(layout.getTypeAllocSize(constant.getType())) {
    write(constant, 0);
  }

  /// The constant without padding.
  Constant* constant() const {
    if (addresses_.empty()) return ConstantDataArray::get(context_, bytes_);
    std::vector<Constant*> parts;
    size_t from = 0;
    auto add_bytes = [&](size_t end) {
      if (end > from) parts.push_back(ConstantDataArray::get(context_, ArrayRef(bytes_).slice(from, end - from)));
    };
    for (const auto& [offset, address] : addresses_) {
      add_bytes(offset);
      parts.push_back(const_cast<Constant*>(address));
      from = offset + layout_.getTypeStoreSize(address->getType());
    }
    add_bytes(bytes_.size());
    return ConstantStruct::getAnon(context_, parts, /*Packed=*/true);
  }

 private:
  // `offset` is in bits: elements of a vector may be smaller than a byte.
  void write(const Constant& constant, size_t offset) {
    Type* type = constant.getType();
    if (isa<UndefValue>(constant) || constant.isNullValue()) return;
    // An address, or an integer computed from one.
    if (type->isPointerTy() || isa<ConstantExpr>(constant)) {
      addresses_.emplace_back(offset / 8, &constant);
    } else if (auto* structure = dyn_cast<StructType>(type)) {
      const StructLayout* structure_layout = layout_.getStructLayout(structure);
      for (unsigned i = 0; i < structure->getNumElements(); ++i)
        write(*constant.getAggregateElement(i), offset + structure_layout->getElementOffsetInBits(i));
    } else if (auto* array = dyn_cast<ArrayType>(type)) {
      size_t bits = layout_.getTypeAllocSizeInBits(array->getElementType());
      for (unsigned i = 0; i < array->getNumElements(); ++i) write(*constant.getAggregateElement(i), offset + i * bits);
    } else if (auto* vector = dyn_cast<FixedVectorType>(type)) {
      size_t bits = layout_.getTypeSizeInBits(vector->getElementType());
      for (unsigned i = 0; i < vector->getNumElements(); ++i)
        write(*constant.getAggregateElement(i), offset + i * bits);
    } else {
      auto* number = dyn_cast<ConstantFP>(&constant);
      APInt bits = number ? number->getValueAPF().bitcastToAPInt() : cast<ConstantInt>(constant).getValue();
      for (unsigned bit = 0; bit < bits.getBitWidth(); ++bit)
        if (bits[bit]) bytes_[(offset + bit) / 8] |= static_cast<uint8_t>(1 << (offset + bit) % 8);
    }
  }

  LLVMContext& context_;
  const DataLayout& layout_;
  std::vector<uint8_t> bytes_;
  std::vector<std::pair<size_t, const Constant*>> addresses_;
};

}  // namespace

void write_padding_as_bytes(Module& module) {
  const DataLayout& layout = module.getDataLayout();
  for (GlobalVariable& variable : make_early_inc_range(module.globals())) {
    if (!variable.hasInitializer() || isa<UndefValue>(variable.getInitializer()) ||
        variable.getInitializer()->isNullValue() || !has_padded_vectors(variable.getValueType(), layout))
      continue;
    Constant* unpadded = ConstantBytes(*variable.getInitializer(), layout).constant();
    auto* table =
        new GlobalVariable(module, unpadded->getType(), variable.isConstant(), variable.getLinkage(), unpadded, "",
                           &variable, variable.getThreadLocalMode(), variable.getAddressSpace());
    table->setAlignment(layout.getValueOrABITypeAlignment(variable.getAlign(), variable.getValueType()));
    table->takeName(&variable);
    variable.replaceAllUsesWith(table);
    variable.eraseFromParent();
  }
}

}  // namespace kiln
