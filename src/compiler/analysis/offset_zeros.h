// Known low zero bits of what an address computation adds to its base: the offset is a multiple of a power of two.
#pragma once

#include <llvm/IR/DataLayout.h>
#include <llvm/IR/Operator.h>

namespace kiln {

/// At most `most`.
unsigned known_zeros_added(llvm::GEPOperator& address, const llvm::DataLayout& layout, unsigned most);

/// The same of all that is added to the object in which the pointer is; 0 where the object is not known to be one.
unsigned known_zeros_of_offset(llvm::Value& pointer, const llvm::DataLayout& layout, unsigned most);

}  // namespace kiln
