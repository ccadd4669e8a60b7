// Extends the comparisons of bounds guards to 64 bits where the widener computes with their operands.
//
//     icmp ult i32 %index, %limit    =>    icmp ult i64 (zext %index * bytes), (zext %limit * bytes)
//
// Guards compare offsets of 64 bits in bytes, but InstCombine narrows a comparison whose operands are known to be
// small, and divides both by an element's size. If the address is `base + zext(%index) * bytes` the widener takes lanes
// for neighbors by the comparison's operands too: it subtracts from the limit how far a vector reaches, and compares
// distances between lanes with those of addresses. In fewer bits either may wrap around.
//
// Comparisons of indices that come from memory stay. Lanes do not access neighbors by these, and a vector of 32 bits is
// compared in half the time of one of 64.
//
// Rejected: extending the operands where the widener uses them. That is at eight places, and a ninth would be wrong
// unnoticed.
#pragma once

#include <llvm/IR/Function.h>

namespace kiln {

class Divergence;

/// Takes a select of an address or of zeros or a sink for a guarded access. Returns whether it has changed the
/// function. Linear in its instructions.
bool extend_guards(llvm::Function& function, const Divergence& divergence);

}  // namespace kiln
