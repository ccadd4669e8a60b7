// cooperative_groups: what bodies use of <cooperative_groups.h> and its reduce.h, scan.h and memcpy_async.h.
//
// Groups are blocks, tiles of at most a warp, and the lanes that happen to be together. There is no barrier of a whole
// grid, since kernels are not launched for one, and no cluster; bodies that need more get CUDA's headers, and on the
// CPU are refused.
#ifdef __KILN_CPU_CUDA
#define __KILN_CPU_UNAVAILABLE(WHY) __attribute__((unavailable(WHY " not supported on the CPU")))
#endif
// The CPU's barriers and collectives are told the line of the call: alone, and behind other parameters.
#ifdef __KILN_CPU_CUDA
#define __KILN_LINE_PARAMETER __KILN_CALLERS_LINE
#define __KILN_THEN_LINE_PARAMETER , __KILN_CALLERS_LINE
#define __KILN_LINE line
#define __KILN_THEN_LINE , line
#else
#define __KILN_LINE_PARAMETER
#define __KILN_THEN_LINE_PARAMETER
#define __KILN_LINE
#define __KILN_THEN_LINE
#endif
namespace __kiln {
// Lanes exchange words: what is no number is sent in pieces of four bytes.
template <typename T>
inline constexpr bool is_word = false;
#define __KILN_WORD(TYPE) \
  template <>             \
  inline constexpr bool is_word<TYPE> = true;
__KILN_WORD(int)
__KILN_WORD(unsigned)
__KILN_WORD(long)
__KILN_WORD(unsigned long)
__KILN_WORD(long long)
__KILN_WORD(unsigned long long)
__KILN_WORD(float)
__KILN_WORD(double)

// What sends a word. (Older versions of NVRTC take lambdas without __device__ for the host's.)
#define __KILN_SENDER(NAME, FUNCTION)                                  \
  struct NAME {                                                        \
    unsigned mask, at, width;                                          \
    template <typename T>                                              \
    __device__ __forceinline__                                         \
    T operator()(T word __KILN_THEN_LINE_PARAMETER) const {            \
      return FUNCTION(mask, word, at, width __KILN_THEN_LINE);         \
    }                                                                  \
  };
__KILN_SENDER(from_lane, __shfl_sync)
__KILN_SENDER(from_below, __shfl_up_sync)
__KILN_SENDER(from_above, __shfl_down_sync)
__KILN_SENDER(from_xor, __shfl_xor_sync)

template <typename Send, typename T>
__device__ __forceinline__ T exchange(const T& value, unsigned mask, unsigned at,
                                          unsigned width __KILN_THEN_LINE_PARAMETER) {
  Send send{mask, at, width};
  if constexpr (is_word<T>) {
    return send(value __KILN_THEN_LINE);
  } else {
    constexpr int kWords = (sizeof(T) + 3) / 4;
    union Pieces {
      unsigned words[kWords];
      T value;
      __device__ Pieces() : words{} {}
    } from, to;
    from.value = value;
#pragma unroll
    for (int i = 0; i < kWords; ++i) to.words[i] = send(from.words[i] __KILN_THEN_LINE);
    return to.value;
  }
}

#ifndef __KILN_CPU_CUDA
__device__ __forceinline__ unsigned lane() {
  unsigned lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane;
}
#endif
__device__ __forceinline__ unsigned rank_in_block() {
  return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
}
__device__ __forceinline__ unsigned threads_in_block() { return blockDim.x * blockDim.y * blockDim.z; }
}  // namespace __kiln

namespace cooperative_groups {

class grid_group {
 public:
  __device__ static unsigned long long block_rank() {
    return (blockIdx.z * static_cast<unsigned long long>(gridDim.y) + blockIdx.y) * gridDim.x + blockIdx.x;
  }
  __device__ static unsigned long long num_blocks() {
    return static_cast<unsigned long long>(gridDim.x) * gridDim.y * gridDim.z;
  }
  __device__ static unsigned long long thread_rank() {
    return block_rank() * __kiln::threads_in_block() + __kiln::rank_in_block();
  }
  __device__ static unsigned long long num_threads() { return num_blocks() * __kiln::threads_in_block(); }
  __device__ static unsigned long long size() { return num_threads(); }
  __device__ static dim3 group_dim() { return gridDim; }
  __device__ static dim3 dim_blocks() { return gridDim; }
  __device__ static dim3 block_index() { return blockIdx; }
#ifdef __KILN_CPU_CUDA
  __KILN_CPU_UNAVAILABLE("barriers of a whole grid are") static void sync(__KILN_CALLERS_LINE);
  __KILN_CPU_UNAVAILABLE("barriers of a whole grid are") static bool is_valid();
#endif
};
__device__ __forceinline__ grid_group this_grid() { return {}; }

class thread_block {
 public:
  // To arrive is to say nothing yet: who waits, waits for all.
  struct arrival_token {};
  __device__ static void sync(__KILN_LINE_PARAMETER) { __syncthreads(__KILN_LINE); }
  __device__ static arrival_token barrier_arrive() { return {}; }
#ifdef __KILN_CPU_CUDA
  static void barrier_wait(arrival_token&&, __KILN_CALLERS_LINE) { __syncthreads(line); }
#else
  __device__ static void barrier_wait(arrival_token&&) { __syncthreads(); }
#endif
  __device__ static unsigned thread_rank() { return __kiln::rank_in_block(); }
  __device__ static unsigned num_threads() { return __kiln::threads_in_block(); }
  __device__ static unsigned size() { return num_threads(); }
  __device__ static dim3 group_index() { return blockIdx; }
  __device__ static dim3 thread_index() { return threadIdx; }
  __device__ static dim3 group_dim() { return blockDim; }
  __device__ static dim3 dim_threads() { return blockDim; }
};
__device__ __forceinline__ thread_block this_thread_block() { return {}; }

namespace details {
// Lanes of a warp, one behind the other: a tile.
template <unsigned Size>
struct tile_lanes {
  __device__ static unsigned first() { return __kiln::lane() & ~(Size - 1); }
  __device__ static unsigned mask() { return Size == 32 ? 0xffffffffu : ((1u << (Size & 31)) - 1) << first(); }
};
}  // namespace details

template <unsigned Size, typename Parent = void>
class thread_block_tile {
  static_assert(Size >= 1 && Size <= 32 && (Size & (Size - 1)) == 0, "a tile has 1, 2, 4, 8, 16 or 32 threads");
  using lanes = details::tile_lanes<Size>;

 public:
  __device__ thread_block_tile(unsigned group_rank, unsigned group_count) : rank_(group_rank), count_(group_count) {}
  // A tile is a tile, whatever it is cut from.
  template <typename Other>
  __device__ thread_block_tile(const thread_block_tile<Size, Other>& other)
      : rank_(other.meta_group_rank()), count_(other.meta_group_size()) {}

  __device__ void sync(__KILN_LINE_PARAMETER) const { __syncwarp(lanes::mask() __KILN_THEN_LINE); }
  __device__ static unsigned thread_rank() { return __kiln::lane() & (Size - 1); }
  __device__ static constexpr unsigned num_threads() { return Size; }
  __device__ static constexpr unsigned size() { return Size; }
  __device__ unsigned meta_group_rank() const { return rank_; }
  __device__ unsigned meta_group_size() const { return count_; }

  template <typename T>
  __device__ T shfl(T value, int source __KILN_THEN_LINE_PARAMETER) const {
    return __kiln::exchange<__kiln::from_lane>(value, lanes::mask(), source, Size __KILN_THEN_LINE);
  }
  template <typename T>
  __device__ T shfl_down(T value, unsigned distance __KILN_THEN_LINE_PARAMETER) const {
    return __kiln::exchange<__kiln::from_above>(value, lanes::mask(), distance, Size __KILN_THEN_LINE);
  }
  template <typename T>
  __device__ T shfl_up(T value, unsigned distance __KILN_THEN_LINE_PARAMETER) const {
    return __kiln::exchange<__kiln::from_below>(value, lanes::mask(), distance, Size __KILN_THEN_LINE);
  }
  template <typename T>
  __device__ T shfl_xor(T value, unsigned mask __KILN_THEN_LINE_PARAMETER) const {
    return __kiln::exchange<__kiln::from_xor>(value, lanes::mask(), mask, Size __KILN_THEN_LINE);
  }
  __device__ int any(int predicate __KILN_THEN_LINE_PARAMETER) const {
    return __any_sync(lanes::mask(), predicate __KILN_THEN_LINE);
  }
  __device__ int all(int predicate __KILN_THEN_LINE_PARAMETER) const {
    return __all_sync(lanes::mask(), predicate __KILN_THEN_LINE);
  }
  __device__ unsigned ballot(int predicate __KILN_THEN_LINE_PARAMETER) const {
    return __ballot_sync(lanes::mask(), predicate __KILN_THEN_LINE) >> lanes::first();
  }
  template <typename T>
  __device__ unsigned match_any(T value __KILN_THEN_LINE_PARAMETER) const {
    return __match_any_sync(lanes::mask(), value __KILN_THEN_LINE) >> lanes::first();
  }
  template <typename T>
  __device__ unsigned match_all(T value, int& predicate __KILN_THEN_LINE_PARAMETER) const {
    return __match_all_sync(lanes::mask(), value, &predicate __KILN_THEN_LINE) >> lanes::first();
  }

 private:
  unsigned rank_, count_;
};

// Lanes in any place; the rank is a lane's number among them.
class coalesced_group {
 public:
  template <unsigned Size, typename Parent>
  __device__ coalesced_group(const thread_block_tile<Size, Parent>& g)
      : mask_(details::tile_lanes<Size>::mask()), rank_(g.meta_group_rank()), count_(g.meta_group_size()) {}
  __device__ explicit coalesced_group(unsigned mask, unsigned group_rank = 0, unsigned group_count = 1)
      : mask_(mask), rank_(group_rank), count_(group_count) {}

  __device__ void sync(__KILN_LINE_PARAMETER) const { __syncwarp(mask_ __KILN_THEN_LINE); }
  __device__ unsigned num_threads() const { return __popc(mask_); }
  __device__ unsigned size() const { return num_threads(); }
  __device__ unsigned thread_rank() const { return __popc(mask_ & ((1u << __kiln::lane()) - 1)); }
  __device__ unsigned meta_group_rank() const { return rank_; }
  __device__ unsigned meta_group_size() const { return count_; }

  template <typename T>
  __device__ T shfl(T value, unsigned source __KILN_THEN_LINE_PARAMETER) const {
    return from_rank(value, source < num_threads() ? source : 0 __KILN_THEN_LINE);
  }
  template <typename T>
  __device__ T shfl_down(T value, unsigned distance __KILN_THEN_LINE_PARAMETER) const {
    unsigned source = thread_rank() + distance;
    return from_rank(value, source < num_threads() ? source : thread_rank() __KILN_THEN_LINE);
  }
  template <typename T>
  __device__ T shfl_up(T value, unsigned distance __KILN_THEN_LINE_PARAMETER) const {
    return from_rank(value, thread_rank() >= distance ? thread_rank() - distance : thread_rank() __KILN_THEN_LINE);
  }
  __device__ int any(int predicate __KILN_THEN_LINE_PARAMETER) const {
    return __any_sync(mask_, predicate __KILN_THEN_LINE);
  }
  __device__ int all(int predicate __KILN_THEN_LINE_PARAMETER) const {
    return __all_sync(mask_, predicate __KILN_THEN_LINE);
  }
  __device__ unsigned ballot(int predicate __KILN_THEN_LINE_PARAMETER) const {
    return packed(__ballot_sync(mask_, predicate __KILN_THEN_LINE));
  }
  template <typename T>
  __device__ unsigned match_any(T value __KILN_THEN_LINE_PARAMETER) const {
    return packed(__match_any_sync(mask_, value __KILN_THEN_LINE));
  }
  template <typename T>
  __device__ unsigned match_all(T value, int& predicate __KILN_THEN_LINE_PARAMETER) const {
    return packed(__match_all_sync(mask_, value, &predicate __KILN_THEN_LINE));
  }
  __device__ unsigned lane_mask() const { return mask_; }

 private:
  template <typename T>
  __device__ T from_rank(T value, unsigned rank __KILN_THEN_LINE_PARAMETER) const {
    unsigned lane = __fns(mask_, 0, static_cast<int>(rank) + 1);
    return __kiln::exchange<__kiln::from_lane>(value, mask_, lane, 32 __KILN_THEN_LINE);
  }
  // Bits of lanes as bits of ranks.
  __device__ unsigned packed(unsigned lanes) const {
    unsigned bits = 0, rank = 0;
    for (unsigned rest = mask_; rest != 0; rest &= rest - 1, ++rank) bits |= ((lanes >> (__ffs(rest) - 1)) & 1) << rank;
    return bits;
  }

  unsigned mask_, rank_, count_;
};
__device__ __forceinline__ coalesced_group coalesced_threads(__KILN_LINE_PARAMETER) {
  return coalesced_group(__activemask(__KILN_LINE));
}

// Any of them, for functions that take a group whatever it is.
class thread_group {
 public:
  __device__ thread_group(const thread_block&) : mask_(0), size_(thread_block::size()), rank_(thread_block::thread_rank()) {}
  __device__ thread_group(const coalesced_group& g) : mask_(g.lane_mask()), size_(g.size()), rank_(g.thread_rank()) {}
  template <unsigned Size, typename Parent>
  __device__ thread_group(const thread_block_tile<Size, Parent>& g)
      : mask_(details::tile_lanes<Size>::mask()), size_(Size), rank_(g.thread_rank()) {}
  // A part of a block.
  __device__ thread_group(unsigned mask, unsigned size, unsigned rank) : mask_(mask), size_(size), rank_(rank) {}

  __device__ void sync(__KILN_LINE_PARAMETER) const {
    if (mask_ == 0)
      __syncthreads(__KILN_LINE);
    else
      __syncwarp(mask_ __KILN_THEN_LINE);
  }
  __device__ unsigned size() const { return size_; }
  __device__ unsigned num_threads() const { return size_; }
  __device__ unsigned thread_rank() const { return rank_; }

 private:
  unsigned mask_;  // 0: the block
  unsigned size_, rank_;
};

#ifdef __KILN_CPU_CUDA
template <unsigned Size, typename Group>
__KILN_CPU_UNAVAILABLE("tiles of more than a warp are")
typename ::__kiln::enable_if<(Size > 32), thread_block_tile<32, Group>>::type tiled_partition(const Group&);
template <unsigned Size, typename = typename ::__kiln::enable_if<(Size <= 32)>::type>
#else
template <unsigned Size>
#endif
__device__ __forceinline__ thread_block_tile<Size, thread_block> tiled_partition(const thread_block& g) {
  return {g.thread_rank() / Size, (g.size() + Size - 1) / Size};
}
template <unsigned Size, unsigned From, typename Parent>
__device__ __forceinline__ thread_block_tile<Size, thread_block_tile<From, Parent>> tiled_partition(
    const thread_block_tile<From, Parent>& g) {
  static_assert(Size <= From, "a tile is cut from one that is larger");
  return {g.thread_rank() / Size, From / Size};
}
// With a size that is not constant: 1, 2, 4, 8, 16 or 32.
__device__ inline thread_group tiled_partition(const thread_block& g, unsigned size) {
  unsigned first = __kiln::lane() & ~(size - 1), rank = __kiln::lane() & (size - 1);
  return thread_group(size == 32 ? 0xffffffffu : ((1u << size) - 1) << first, size, rank);
}
__device__ inline thread_group tiled_partition(const thread_group& g, unsigned size) {
  unsigned rank = g.thread_rank() & (size - 1), first = __kiln::lane() - rank;
  return thread_group(size == 32 ? 0xffffffffu : ((1u << size) - 1) << first, size, rank);
}
// Each `size` of those that are together, by their ranks.
__device__ inline coalesced_group tiled_partition(const coalesced_group& g, unsigned size) {
  unsigned mask = 0, rank = 0, part = g.thread_rank() / size;
  for (unsigned rest = g.lane_mask(); rest != 0; rest &= rest - 1, ++rank)
    if (rank / size == part) mask |= rest & (0u - rest);
  return coalesced_group(mask, part, (g.size() + size - 1) / size);
}
// Those with the same label, of integers; parts are numbered by their lowest lanes.
template <typename Group, typename Label>
__device__ __forceinline__ coalesced_group labeled_partition(const Group& g, Label label __KILN_THEN_LINE_PARAMETER) {
  coalesced_group all(g);
  unsigned own = 0, rank = 0, parts = 0;
  for (unsigned rest = all.lane_mask(); rest != 0; ++parts) {
    unsigned first = __ffs(rest) - 1;
    Label one = __kiln::exchange<__kiln::from_lane>(label, all.lane_mask(), first, 32 __KILN_THEN_LINE);
    unsigned same = __ballot_sync(all.lane_mask(), label == one __KILN_THEN_LINE);
    if (label == one) own = same, rank = parts;
    rest &= ~same;
  }
  return coalesced_group(own, rank, parts);
}
template <typename Group>
__device__ __forceinline__ coalesced_group binary_partition(const Group& g, bool predicate __KILN_THEN_LINE_PARAMETER) {
  coalesced_group all(g);
  unsigned yes = __ballot_sync(all.lane_mask(), predicate __KILN_THEN_LINE);
  return coalesced_group(predicate ? yes : all.lane_mask() & ~yes, predicate ? 0 : 1, 2);
}
__device__ __forceinline__ thread_block_tile<1> this_thread() { return {0, 1}; }

template <typename Group>
__device__ __forceinline__ void sync(const Group& g __KILN_THEN_LINE_PARAMETER) {
  g.sync(__KILN_LINE);
}
template <typename Group>
__device__ __forceinline__ auto thread_rank(const Group& g) {
  return g.thread_rank();
}
template <typename Group>
__device__ __forceinline__ auto group_size(const Group& g) {
  return g.size();
}

template <typename T>
struct plus {
  __device__ T operator()(T a, T b) const { return a + b; }
};
template <typename T>
struct less {
  __device__ T operator()(T a, T b) const { return b < a ? b : a; }
};
template <typename T>
struct greater {
  __device__ T operator()(T a, T b) const { return a < b ? b : a; }
};
template <typename T>
struct bit_and {
  __device__ T operator()(T a, T b) const { return a & b; }
};
template <typename T>
struct bit_or {
  __device__ T operator()(T a, T b) const { return a | b; }
};
template <typename T>
struct bit_xor {
  __device__ T operator()(T a, T b) const { return a ^ b; }
};

// All of them get the result. In a tile pairs are joined at lane distances Size / 2, …, 2, 1.
template <unsigned Size, typename Parent, typename T, typename Operation>
__device__ T reduce(const thread_block_tile<Size, Parent>& g, T value, Operation operation __KILN_THEN_LINE_PARAMETER) {
#pragma unroll
  for (unsigned distance = Size / 2; distance > 0; distance /= 2)
    value = operation(value, g.shfl_xor(value, distance __KILN_THEN_LINE));
  return value;
}
template <typename T, typename Operation>
__device__ T reduce(const coalesced_group& g, T value, Operation operation __KILN_THEN_LINE_PARAMETER) {
  unsigned size = g.size(), rank = g.thread_rank();
  for (unsigned distance = 1; distance < size; distance *= 2) {
    T other = g.shfl_down(value, distance __KILN_THEN_LINE);
    if (rank % (2 * distance) == 0 && rank + distance < size) value = operation(value, other);
  }
  return g.shfl(value, 0 __KILN_THEN_LINE);
}

// Up to and with the thread, and up to it. The first one's exclusive result is T().
template <typename Group, typename T, typename Operation>
__device__ T inclusive_scan(const Group& g, T value, Operation operation __KILN_THEN_LINE_PARAMETER) {
  unsigned rank = g.thread_rank(), size = g.num_threads();
  for (unsigned distance = 1; distance < size; distance *= 2) {
    T below = g.shfl_up(value, distance __KILN_THEN_LINE);
    if (rank >= distance) value = operation(below, value);
  }
  return value;
}
template <typename Group, typename T>
__device__ T inclusive_scan(const Group& g, T value __KILN_THEN_LINE_PARAMETER) {
  return inclusive_scan(g, value, plus<T>() __KILN_THEN_LINE);
}
template <typename Group, typename T, typename Operation>
__device__ T exclusive_scan(const Group& g, T value, Operation operation __KILN_THEN_LINE_PARAMETER) {
  T below = g.shfl_up(inclusive_scan(g, value, operation __KILN_THEN_LINE), 1 __KILN_THEN_LINE);
  return g.thread_rank() == 0 ? T() : below;
}
template <typename Group, typename T>
__device__ T exclusive_scan(const Group& g, T value __KILN_THEN_LINE_PARAMETER) {
  return exclusive_scan(g, value, plus<T>() __KILN_THEN_LINE);
}

// One of the group calls the function.
template <typename Group, typename F>
__device__ void invoke_one(const Group& g, F&& function) {
  if (g.thread_rank() == 0) function();
}
template <typename Group, typename F>
__device__ auto invoke_one_broadcast(const Group& g, F&& function __KILN_THEN_LINE_PARAMETER) {
  decltype(function()) result{};
  if (g.thread_rank() == 0) result = function();
  return g.shfl(result, 0 __KILN_THEN_LINE);
}

// Copies of a group together, done when the call returns; who waits for them waits for the group.
template <typename Group, typename T>
__device__ void memcpy_async(const Group& g, T* to, const T* from, size_t bytes) {
  for (size_t i = g.thread_rank(); i < bytes / sizeof(T); i += g.size()) to[i] = from[i];
  // The rest are bytes.
  size_t whole = bytes / sizeof(T) * sizeof(T);
  for (size_t i = whole + g.thread_rank(); i < bytes; i += g.size())
    reinterpret_cast<char*>(to)[i] = reinterpret_cast<const char*>(from)[i];
}
template <typename Group>
__device__ __forceinline__ void wait(const Group& g __KILN_THEN_LINE_PARAMETER) {
  g.sync(__KILN_LINE);
}
template <unsigned Stages, typename Group>
__device__ __forceinline__ void wait_prior(const Group& g __KILN_THEN_LINE_PARAMETER) {
  g.sync(__KILN_LINE);
}

}  // namespace cooperative_groups
