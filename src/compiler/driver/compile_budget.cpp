#include "compiler/driver/compile_budget.h"

#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdlib>
#include <exception>
#include <limits>
#include <new>

#include "core/text.h"

namespace kiln {
namespace {

// llvm::DenseMap's smallest table.
constexpr size_t kSmallBytes = 512;
constexpr size_t kReserveBytes = size_t{32} << 20;
// Of the thread's stack, for what LLVM does between two allocations.
constexpr size_t kStackReserveBytes = size_t{1} << 20;
// What a compilation that has been ended may still take for its clean-up before it is ended again.
constexpr int64_t kMoreBytes = int64_t{64} << 20;
constexpr std::chrono::seconds kMoreTime{10};
constexpr uint32_t kCallsPerCheck = 256;

thread_local CompileBudget* t_budget = nullptr;

uintptr_t lowest_frame() {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return 0;
  void* low = nullptr;
  size_t bytes = 0;
  pthread_attr_getstack(&attributes, &low, &bytes);
  pthread_attr_destroy(&attributes);
  auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0)), lowest = reinterpret_cast<uintptr_t>(low);
  if (here - lowest >= bytes) return 0;  // not the thread's own stack
  return lowest + kStackReserveBytes < here ? lowest + kStackReserveBytes : 0;
}

}  // namespace

CompileBudget::CompileBudget(const CompileLimits& limits)
    : limits_(limits),
      most_(limits.bytes ? static_cast<int64_t>(limits.bytes) : std::numeric_limits<int64_t>::max() / 2),
      end_(limits.seconds > 0 ? Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                                   std::chrono::duration<double>(limits.seconds))
                              : Clock::time_point::max()),
      lowest_frame_(lowest_frame()) {
  void* reserve = mmap(nullptr, kReserveBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserve == MAP_FAILED) throw std::bad_alloc();
  reserve_ = reserve;
  t_budget = this;
}

CompileBudget::~CompileBudget() {
  t_budget = nullptr;
  if (reserve_) munmap(reserve_, kReserveBytes);
}

std::string CompileBudget::describe() const {
  switch (excess_) {
    case CompileExcess::kMemory:
      return concat("compiling it takes more than the ", limits_.bytes, " bytes of KILN_COMPILE_MEMORY_LIMIT");
    case CompileExcess::kTime:
      return concat("compiling it takes more than the ", limits_.seconds, " seconds of KILN_COMPILE_TIME_LIMIT");
    case CompileExcess::kStack: return "its expressions, statements or types nest too deep";
    default: return "";
  }
}

void CompileBudget::note(CompileExcess excess) noexcept {
  if (excess_ == CompileExcess::kNone) excess_ = excess;
  is_due_ = true;
}

// A second exception while the first one is on its way would end the process.
bool CompileBudget::may_throw() const noexcept { return std::uncaught_exceptions() == 0; }

bool CompileBudget::refuses(size_t bytes) noexcept {
  if (++calls_ % kCallsPerCheck == 0 && Clock::now() >= end_) {
    note(CompileExcess::kTime);
    end_ = Clock::now() + kMoreTime;
  }
  if (live_ + static_cast<int64_t>(bytes) > most_) {
    note(CompileExcess::kMemory);
    // An allocation that is too large by itself may fail whatever its size: its container has no table of the size yet.
    bool is_huge = bytes > limits_.bytes / 2 && limits_.bytes > 0;
    most_ = live_ + kMoreBytes + (is_huge ? 0 : static_cast<int64_t>(bytes));
    if (is_huge && may_throw()) return true;
  }
  if (reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) < lowest_frame_) note(CompileExcess::kStack);
  if (!is_due_ || bytes >= kSmallBytes || !may_throw()) return false;
  is_due_ = false;
  return true;
}

bool CompileBudget::frees_reserve() noexcept {
  note(CompileExcess::kSystemMemory);
  if (!reserve_) return false;
  munmap(reserve_, kReserveBytes);
  reserve_ = nullptr;
  return true;
}

namespace {

// `allocate()` is the system's function.
template <typename Allocate>
void* allocate_within_budget(size_t bytes, const Allocate& allocate) {
  CompileBudget* budget = t_budget;
  if (!budget) return allocate();
  if (budget->refuses(bytes)) {
    errno = ENOMEM;
    return nullptr;
  }
  void* memory = allocate();
  if (!memory && bytes > 0 && budget->frees_reserve()) memory = allocate();
  if (memory) budget->add(malloc_usable_size(memory));
  return memory;
}

}  // namespace
}  // namespace kiln

extern "C" {
void* __real_malloc(size_t bytes);
void* __real_calloc(size_t count, size_t bytes);
void* __real_realloc(void* memory, size_t bytes);
void* __real_aligned_alloc(size_t alignment, size_t bytes);
int __real_posix_memalign(void** memory, size_t alignment, size_t bytes);
void __real_free(void* memory);

void* __wrap_malloc(size_t bytes) {
  return kiln::allocate_within_budget(bytes, [=] { return __real_malloc(bytes); });
}

void* __wrap_calloc(size_t count, size_t bytes) {
  size_t all;
  if (__builtin_mul_overflow(count, bytes, &all)) return nullptr;
  return kiln::allocate_within_budget(all, [=] { return __real_calloc(count, bytes); });
}

void* __wrap_realloc(void* memory, size_t bytes) {
  kiln::CompileBudget* budget = kiln::t_budget;
  size_t before = budget && memory ? malloc_usable_size(memory) : 0;
  void* moved = kiln::allocate_within_budget(bytes, [=] { return __real_realloc(memory, bytes); });
  if (budget && (moved || bytes == 0)) budget->remove(before);
  return moved;
}

void* __wrap_aligned_alloc(size_t alignment, size_t bytes) {
  return kiln::allocate_within_budget(bytes, [=] { return __real_aligned_alloc(alignment, bytes); });
}

int __wrap_posix_memalign(void** memory, size_t alignment, size_t bytes) {
  int error = 0;
  void* made = kiln::allocate_within_budget(bytes, [&]() -> void* {
    void* place = nullptr;
    error = __real_posix_memalign(&place, alignment, bytes);
    return error == 0 ? place : nullptr;
  });
  if (!made) return error != 0 ? error : ENOMEM;
  *memory = made;
  return 0;
}

void __wrap_free(void* memory) {
  if (kiln::CompileBudget* budget = kiln::t_budget; budget && memory) budget->remove(malloc_usable_size(memory));
  __real_free(memory);
}
}
