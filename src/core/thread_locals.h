// Where the memory of thread-local variables comes from, and that there is some.
//
// The C library allocates the thread-local variables of a library that was opened while the program ran when a thread
// first comes to one of them, and ends the process where there is no memory for them. No code can be told of it. So the
// variables of libkiln.so and of what is linked with it use the model `initial-exec`: they lie in the static block of
// every thread, which is allocated with the thread. That block has some hundred bytes for all libraries that are opened
// later, so Kiln's variables are small and point at what is not.
//
// (The compiler's option for it would serve the C++ library's variables too, to which `std::call_once` comes. Where
// another module has loaded that library before and used them, as PyTorch does, they lie elsewhere, and Kiln could not
// be loaded.)
//
// LLVM's are of the first kind, and so are the C++ library's. Where a thread is about to come to them, Kiln asks here
// first.
#pragma once

#include <cstdlib>

/// Before `thread_local`.
#define KILN_STATIC_TLS [[gnu::tls_model("initial-exec")]]

namespace kiln {

/// Whether this thread's memory allocator has room for the thread-local variables of a library or two. What was
/// allocated to find out is free again, for them.
inline bool has_memory_for_thread_locals() noexcept {
  constexpr size_t kEnough = 4096;  // LLVM and Clang have 200 bytes
  void* volatile memory = std::malloc(kEnough);
  std::free(memory);
  return memory != nullptr;
}

}  // namespace kiln
