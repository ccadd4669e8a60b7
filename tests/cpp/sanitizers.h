// What tests cannot ask of a build with a sanitizer.
#pragma once

namespace kiln {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

}  // namespace kiln

/// Its `operator new` ends the process where others throw.
#define KILN_SKIP_UNLESS_NEW_THROWS() \
  if (kSanitized) GTEST_SKIP() << "the sanitizer's operator new ends the process where there is no memory"

/// Its allocator has locks that stay locked in a child if another thread held one.
#define KILN_SKIP_UNLESS_FORK_IS_SAFE() \
  if (kSanitized) GTEST_SKIP() << "the sanitizer's allocator has locks that a child may find locked"
