#include "compiler/driver/compile_budget.h"

#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>

#include <cerrno>
#include <csetjmp>
#include <cstdlib>
#include <exception>
#include <limits>
#include <new>

#include "compiler/ir/abandonment.h"
#include "core/text.h"

namespace kiln {
namespace {

// llvm::DenseMap's smallest table.
constexpr size_t kSmallBytes = 512;
constexpr size_t kReserveBytes = size_t{32} << 20;
// Of the thread's stack, for what LLVM does between two allocations.
constexpr size_t kStackReserveBytes = size_t{1} << 20;
constexpr uint64_t kCallsPerCheck = 256;

thread_local CompileBudget* t_budget = nullptr;
// Locks that the thread holds, and static variables that it is initializing.
thread_local int t_locks = 0;

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
    case CompileExcess::kAllocations:
      return concat("compiling it takes more than ", limits_.allocations, " allocations");
    case CompileExcess::kStack: return "its expressions, statements or types nest too deep";
    default: return "";
  }
}

bool CompileBudget::run(llvm::function_ref<void()> compile) {
  if (setjmp(end_of_run_) != 0) return false;
  compile();
  return true;
}

void CompileBudget::abandon(bool frees) noexcept {
  is_ending_ = true;
  WhenAbandoned::abandon(frees);
  t_locks = 0;
  std::longjmp(end_of_run_, 1);
}

void CompileBudget::give_up(const char* reason) {
  CompileBudget* budget = t_budget;
  if (!budget || budget->is_ending_) std::abort();  // there is no compilation, or no way to free its memory
  budget->reason_ = reason;
  budget->abandon(/*frees=*/true);
}

void CompileBudget::note(CompileExcess excess) noexcept {
  if (excess_ == CompileExcess::kNone) excess_ = excess;
  is_due_ = true;
}

// An exception of Kiln's that is on its way ends the compilation as it is.
bool CompileBudget::may_end() const noexcept { return t_locks == 0 && std::uncaught_exceptions() == 0; }

void CompileBudget::check(size_t bytes) noexcept {
  if (is_ending_) return;
  if (++calls_ == limits_.allocations) note(CompileExcess::kAllocations);
  if (calls_ % kCallsPerCheck == 0 && Clock::now() >= end_) note(CompileExcess::kTime);
  if (live_ + static_cast<int64_t>(bytes) > most_) {
    note(CompileExcess::kMemory);
    // The system need not have as much.
    if (limits_.bytes > 0 && bytes > limits_.bytes / 2 && may_end()) abandon(/*frees=*/false);
  }
  if (reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) < lowest_frame_) note(CompileExcess::kStack);
  if (is_due_ && bytes < kSmallBytes && may_end()) abandon(/*frees=*/true);
}

bool CompileBudget::frees_reserve() noexcept {
  if (is_ending_) return false;
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
  budget->check(bytes);
  void* memory = allocate();
  if (!memory && bytes > 0 && budget->frees_reserve()) memory = allocate();
  if (memory) budget->add(malloc_usable_size(memory));
  return memory;
}

int count_lock(int error) {
  if (error == 0) ++t_locks;
  return error;
}

int count_unlock(int error) {
  if (error == 0) --t_locks;
  return error;
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
int __real_pthread_mutex_lock(pthread_mutex_t* mutex);
int __real_pthread_mutex_trylock(pthread_mutex_t* mutex);
int __real_pthread_mutex_unlock(pthread_mutex_t* mutex);
int __real_pthread_rwlock_rdlock(pthread_rwlock_t* lock);
int __real_pthread_rwlock_wrlock(pthread_rwlock_t* lock);
int __real_pthread_rwlock_unlock(pthread_rwlock_t* lock);
int __real_pthread_once(pthread_once_t* once, void (*function)());
int __real___cxa_guard_acquire(void* guard);
void __real___cxa_guard_release(void* guard);
void __real___cxa_guard_abort(void* guard);

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

int __wrap_pthread_mutex_lock(pthread_mutex_t* mutex) { return kiln::count_lock(__real_pthread_mutex_lock(mutex)); }
int __wrap_pthread_mutex_trylock(pthread_mutex_t* mutex) {
  return kiln::count_lock(__real_pthread_mutex_trylock(mutex));
}
int __wrap_pthread_mutex_unlock(pthread_mutex_t* mutex) {
  return kiln::count_unlock(__real_pthread_mutex_unlock(mutex));
}
int __wrap_pthread_rwlock_rdlock(pthread_rwlock_t* lock) {
  return kiln::count_lock(__real_pthread_rwlock_rdlock(lock));
}
int __wrap_pthread_rwlock_wrlock(pthread_rwlock_t* lock) {
  return kiln::count_lock(__real_pthread_rwlock_wrlock(lock));
}
int __wrap_pthread_rwlock_unlock(pthread_rwlock_t* lock) {
  return kiln::count_unlock(__real_pthread_rwlock_unlock(lock));
}

int __wrap_pthread_once(pthread_once_t* once, void (*function)()) {
  struct Lock {
    Lock() { ++kiln::t_locks; }
    ~Lock() { --kiln::t_locks; }
  } lock;
  return __real_pthread_once(once, function);
}

int __wrap___cxa_guard_acquire(void* guard) {
  const int acquired = __real___cxa_guard_acquire(guard);
  kiln::t_locks += acquired;
  return acquired;
}
void __wrap___cxa_guard_release(void* guard) {
  __real___cxa_guard_release(guard);
  --kiln::t_locks;
}
void __wrap___cxa_guard_abort(void* guard) {
  __real___cxa_guard_abort(guard);
  --kiln::t_locks;
}
}
