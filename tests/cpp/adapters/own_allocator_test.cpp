// A program with an allocator of its own, which tells what was allocated by another one. libkiln_compiler.so has a C++
// library of its own and does not use the program's.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <span>
#include <vector>

#include "kiln/kiln.h"

namespace {

constexpr size_t kHeader = 64;  // of each allocation, as much as any alignment that is asked for
constexpr uint64_t kOurs = 0x6f757273206f7572;

std::atomic<int64_t> foreign = 0;

void* allocate(size_t size) {
  void* memory = std::malloc(size + kHeader);
  if (!memory) throw std::bad_alloc();
  *static_cast<uint64_t*>(memory) = kOurs;
  return static_cast<char*>(memory) + kHeader;
}

void release(void* pointer) noexcept {
  if (!pointer) return;
  auto* memory = reinterpret_cast<uint64_t*>(static_cast<char*>(pointer) - kHeader);
  if (*memory != kOurs) {
    ++foreign;  // it stays allocated: whose it is cannot be known
    return;
  }
  *memory = 0;
  std::free(memory);
}

}  // namespace

void* operator new(size_t size) { return allocate(size); }
void* operator new[](size_t size) { return allocate(size); }
void operator delete(void* pointer) noexcept { release(pointer); }
void operator delete[](void* pointer) noexcept { release(pointer); }
void operator delete(void* pointer, size_t) noexcept { release(pointer); }
void operator delete[](void* pointer, size_t) noexcept { release(pointer); }

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
