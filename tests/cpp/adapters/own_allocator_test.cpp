// A program with an allocator of its own, which tells what was allocated by another one. libkiln_compiler.so has a C++
// library of its own and does not use the program's.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <span>
#include <vector>

#include "kiln/kiln.h"

namespace {

constexpr size_t kHeader = 64;  // before what is allocated, at least
constexpr uint64_t kOurs = 0x6f757273206f7572;

std::atomic<int64_t> foreign = 0;

size_t header_for(std::align_val_t alignment) { return std::max(kHeader, static_cast<size_t>(alignment)); }

void* allocate(size_t size, std::align_val_t alignment) noexcept {
  const size_t header = header_for(alignment);
  if (size > PTRDIFF_MAX - 2 * header) return nullptr;
  auto* memory = static_cast<char*>(std::aligned_alloc(header, (size + 2 * header - 1) / header * header));
  if (!memory) return nullptr;
  *reinterpret_cast<uint64_t*>(memory + header - kHeader) = kOurs;
  return memory + header;
}

void* allocate_or_throw(size_t size, std::align_val_t alignment) {
  void* memory = allocate(size, alignment);
  if (!memory) throw std::bad_alloc();
  return memory;
}

void release(void* pointer, std::align_val_t alignment) noexcept {
  if (!pointer) return;
  auto* mark = reinterpret_cast<uint64_t*>(static_cast<char*>(pointer) - kHeader);
  if (*mark != kOurs) {
    ++foreign;  // it stays allocated: whose it is cannot be known
    return;
  }
  *mark = 0;
  std::free(static_cast<char*>(pointer) - header_for(alignment));
}

constexpr std::align_val_t kDefault{__STDCPP_DEFAULT_NEW_ALIGNMENT__};

}  // namespace

// All forms. The C++ library's own call the first two; a sanitizer's do not, and would give memory of the sanitizer's
// to these functions.
void* operator new(size_t size) { return allocate_or_throw(size, kDefault); }
void* operator new[](size_t size) { return allocate_or_throw(size, kDefault); }
void* operator new(size_t size, const std::nothrow_t&) noexcept { return allocate(size, kDefault); }
void* operator new[](size_t size, const std::nothrow_t&) noexcept { return allocate(size, kDefault); }
void* operator new(size_t size, std::align_val_t alignment) { return allocate_or_throw(size, alignment); }
void* operator new[](size_t size, std::align_val_t alignment) { return allocate_or_throw(size, alignment); }
void* operator new(size_t size, std::align_val_t a, const std::nothrow_t&) noexcept { return allocate(size, a); }
void* operator new[](size_t size, std::align_val_t a, const std::nothrow_t&) noexcept { return allocate(size, a); }
void operator delete(void* pointer) noexcept { release(pointer, kDefault); }
void operator delete[](void* pointer) noexcept { release(pointer, kDefault); }
void operator delete(void* pointer, size_t) noexcept { release(pointer, kDefault); }
void operator delete[](void* pointer, size_t) noexcept { release(pointer, kDefault); }
void operator delete(void* pointer, const std::nothrow_t&) noexcept { release(pointer, kDefault); }
void operator delete[](void* pointer, const std::nothrow_t&) noexcept { release(pointer, kDefault); }
void operator delete(void* pointer, std::align_val_t alignment) noexcept { release(pointer, alignment); }
void operator delete[](void* pointer, std::align_val_t alignment) noexcept { release(pointer, alignment); }
void operator delete(void* pointer, size_t, std::align_val_t alignment) noexcept { release(pointer, alignment); }
void operator delete[](void* pointer, size_t, std::align_val_t alignment) noexcept { release(pointer, alignment); }

namespace {

kiln::Kernel doubled(const char* source) { return kiln::metal_kernel("doubled", {"x"}, {"y"}, source); }

kiln::KernelCall call_with(const std::vector<float>& x) {
  return {.inputs = {x},
          .output_shapes = {{3}},
          .output_dtypes = {kiln::Dtype::kFloat32},
          .grid = {3, 1, 1},
          .threadgroup = {3, 1, 1}};
}

TEST(OwnAllocator, FreesWhatItHasAllocated) {
  std::vector<float> x = {1, 2, 3};
  kiln::Kernel right = doubled("uint i = thread_position_in_grid.x; y[i] = 2 * x[i];");
  std::vector<kiln::Tensor> outputs = right(call_with(x));
  std::span<const float> y = outputs[0].values<float>();
  EXPECT_EQ(std::vector<float>(y.begin(), y.end()), (std::vector<float>{2, 4, 6}));
  EXPECT_FALSE(right.compile(call_with(x)).stages().empty());
  // A message, its place and the line that it is about.
  EXPECT_THROW(doubled("y[0] = a_name_that_is_too_long_for_a_short_string;")(call_with(x)), kiln::CompileError);
  EXPECT_EQ(foreign, 0);
}

}  // namespace
