#include "targets/cpu/huge_pages.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstdint>

namespace kiln {
namespace {

constexpr uintptr_t kHugePage = uintptr_t{2} << 20;

}  // namespace

void use_huge_pages(void* data, size_t bytes) noexcept {
  // Only pages that lie within it: the others' memory is not ours to speak of.
  uintptr_t begin = (reinterpret_cast<uintptr_t>(data) + kHugePage - 1) & ~(kHugePage - 1);
  uintptr_t end = (reinterpret_cast<uintptr_t>(data) + bytes) & ~(kHugePage - 1);
  if (begin >= end) return;
  int before = errno;
  madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
  errno = before;
}

}  // namespace kiln
