#include "targets/cpu/row_updates.h"

#include <immintrin.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>

#include "core/cpu_image.h"

// Who calls has AVX2.
#define KILN_AVX2 __attribute__((target("avx2"), always_inline)) inline

namespace kiln {
namespace {

constexpr int64_t kFloat = sizeof(float);
constexpr int64_t kRowLanes = 32;
constexpr uint32_t kAllLanes = ~uint32_t{0};

// A thread that holds a lock may have lost its processor.
constexpr unsigned kFewestTurns = 256;

void acquire(CpuStripedLock& lock) {
  std::atomic_ref<uint32_t> is_held(lock.is_held);
  unsigned turns = 0;
  while (is_held.exchange(1, std::memory_order_acquire) != 0) {
    while (is_held.load(std::memory_order_relaxed) != 0) {
      _mm_pause();
      if (++turns % kFewestTurns == 0) sched_yield();
    }
  }
}

void release(CpuStripedLock& lock) { std::atomic_ref<uint32_t>(lock.is_held).store(0, std::memory_order_release); }

// Bytes lie where one lock is enough, or two that are next to one another. All take them in the same order.
class HeldBytes {
 public:
  HeldBytes(CpuStripedLock* locks, int64_t first, int64_t last)
      : first_(lock_of(locks, first)), second_(lock_of(locks, last)) {
    if (first_ > second_) std::swap(first_, second_);
    acquire(*first_);
    if (second_ != first_) acquire(*second_);
  }
  ~HeldBytes() {
    if (second_ != first_) release(*second_);
    release(*first_);
  }
  HeldBytes(const HeldBytes&) = delete;
  HeldBytes& operator=(const HeldBytes&) = delete;

 private:
  static CpuStripedLock* lock_of(CpuStripedLock* locks, int64_t place) {
    // Fibonacci hashing (Knuth, The Art of Computer Programming 3, 6.4): images' rows lie multiples of many bytes
    // apart.
    constexpr uint64_t kGolden = 0x9E3779B97F4A7C15;
    return &locks[static_cast<uint64_t>(place / kCpuLockedBytes) * kGolden >>
                  (64 - std::bit_width(kCpuStripedLocks - 1))];
  }

  CpuStripedLock *first_, *second_;
};
static_assert(kRowLanes * kFloat <= kCpuLockedBytes && std::has_single_bit(kCpuStripedLocks));

struct Add {
  static KILN_AVX2 __m256 of(__m256 before, __m256 operand) { return _mm256_add_ps(before, operand); }
  static KILN_AVX2 __m128 of(__m128 before, __m128 operand) { return _mm_add_ps(before, operand); }
};

struct Subtract {
  static KILN_AVX2 __m256 of(__m256 before, __m256 operand) { return _mm256_sub_ps(before, operand); }
  static KILN_AVX2 __m128 of(__m128 before, __m128 operand) { return _mm_sub_ps(before, operand); }
};

// How many lanes begin within so many bytes.
int64_t lanes_in(int64_t bytes) { return (std::clamp<int64_t>(bytes, 0, kRowLanes * kFloat) + kFloat - 1) / kFloat; }

// From the first one that is not before the array to the last one in it. Offsets of what is far outside wrap.
uint32_t lanes_within(int64_t offset, int64_t limit) {
  auto minus = [](int64_t a, int64_t b) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
  };
  uint64_t behind = ~uint64_t{0} << lanes_in(minus(limit, offset));
  uint64_t before = ~uint64_t{0} << lanes_in(minus(0, offset));
  return static_cast<uint32_t>(before & ~behind);
}

template <typename Operation>
KILN_AVX2 void update_held(float* row, const float* operands, uint32_t lanes) {
  constexpr int kRegister = 8;
  if (lanes == kAllLanes) {
    for (int first = 0; first < kRowLanes; first += kRegister)
      _mm256_storeu_ps(row + first, Operation::of(_mm256_loadu_ps(row + first), _mm256_loadu_ps(operands + first)));
    return;
  }
  if (std::has_single_bit(lanes)) {
    int lane = std::countr_zero(lanes);
    _mm_store_ss(row + lane, Operation::of(_mm_load_ss(row + lane), _mm_load_ss(operands + lane)));
    return;
  }
  const __m256i bits = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
  for (int first = 0; first < kRowLanes; first += kRegister) {
    __m256i own = _mm256_set1_epi32(static_cast<int>(lanes >> first & 255));
    __m256i mask = _mm256_cmpeq_epi32(_mm256_and_si256(own, bits), bits);
    __m256 before = _mm256_maskload_ps(row + first, mask), operand = _mm256_maskload_ps(operands + first, mask);
    _mm256_maskstore_ps(row + first, mask, Operation::of(before, operand));
  }
}

template <typename Operation, typename Word>
KILN_AVX2 void exchange(void* place, Word operand) {
  auto number = [](Word word) { return _mm_castsi128_ps(_mm_cvtsi64_si128(static_cast<int64_t>(word))); };
  std::atomic_ref<Word> word(*static_cast<Word*>(place));
  Word before = word.load(std::memory_order_relaxed), after;
  do {
    after = static_cast<Word>(_mm_cvtsi128_si64(_mm_castps_si128(Operation::of(number(before), number(operand)))));
  } while (!word.compare_exchange_weak(before, after, std::memory_order_seq_cst, std::memory_order_relaxed));
}

template <typename Operation>
KILN_AVX2 void update_shared(float* row, const float* operands, uint32_t lanes) {
  if (lanes == kAllLanes && reinterpret_cast<uintptr_t>(row) % sizeof(uint64_t) == 0) {
    for (int lane = 0; lane < kRowLanes; lane += 2) {
      uint64_t pair;
      __builtin_memcpy(&pair, operands + lane, sizeof pair);
      exchange<Operation, uint64_t>(row + lane, pair);
    }
    return;
  }
  for (; lanes != 0; lanes &= lanes - 1) {
    int lane = std::countr_zero(lanes);
    exchange<Operation, uint32_t>(row + lane, std::bit_cast<uint32_t>(operands[lane]));
  }
}

template <typename Operation>
__attribute__((target("avx2"))) void update(const CpuLaunch* launch, float* row, const float* operands, uint32_t lanes,
                                            int64_t offset, int64_t limit, int64_t place) {
  lanes &= lanes_within(offset, limit);
  if (lanes == 0) return;
  if (!launch || !launch->striped_locks) return update_shared<Operation>(row, operands, lanes);
  HeldBytes held(launch->striped_locks, place + std::countr_zero(lanes) * kFloat,
                 place + (kRowLanes - std::countl_zero(lanes)) * kFloat - 1);
  update_held<Operation>(row, operands, lanes);
}

}  // namespace

const void* find_row_update(std::string_view name) {
  auto address = [](CpuRowUpdate function) { return reinterpret_cast<const void*>(function); };
  if (name == kAddToRow) return address(update<Add>);
  if (name == kSubtractFromRow) return address(update<Subtract>);
  return nullptr;
}

}  // namespace kiln
