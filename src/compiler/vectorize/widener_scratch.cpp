#include "compiler/vectorize/widener_scratch.h"

#include "compiler/ir/metadata.h"

namespace kiln::widening {

// Above this size scratch memory is reused. Below it each use has its own, so that loop invariants can be stored before
// the loop.
static constexpr uint64_t kMaxScratch = 64 << 10;

AllocaInst* Scratch::acquire(Type* type) {
  if (SmallVector<AllocaInst*>& unused = unused_[type]; bytes_ > kMaxScratch && !unused.empty())
    return unused.pop_back_val();
  bytes_ += lanes_.layout().getTypeAllocSize(type);
  AllocaInst* slot = lanes_.allocate(type);
  slot->setMetadata(kScratch, MDNode::get(lanes_.context(), {}));
  return slot;
}

}  // namespace kiln::widening
