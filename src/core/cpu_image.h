// The format of machine code for the CPU, between the compiler that writes it and the target that maps and runs it.
//
// An image is position-independent code and constants in one block of bytes. It is mapped readable and executable and
// is never written once it can run. What it needs from outside it reaches through a table of addresses at its end,
// which the loader fills in before it makes the image executable.
//
// The same holds for constants that are addresses within the image: they are offsets until the loader adds its place.
//
//   CpuImageHeader | CpuSite[] | uint32_t paths[] | import names | code and constants | import slots | uint64_t
//   addresses[]
//
// All offsets are bytes from the header's start. The functions are in core/cpu_functions.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "core/thread_values.h"

namespace kiln {

inline constexpr uint32_t kCpuImageMagic = 0x314c4e4b;  // "KNL1"
inline constexpr uint32_t kCpuImageVersion = 15;

enum class CpuImageKind : uint32_t {
  kLoop = 0,        // no thread waits for another: one function runs a row of threads
  kCoroutines = 1,  // threads wait for one another: one coroutine a thread, driven by the target
  kSimdgroups = 2,  // the same, but for a simdgroup: it waits at barriers only, if there are any
};

struct CpuImageHeader {
  uint32_t magic;
  uint32_t version;
  uint64_t total_bytes;
  CpuImageKind kind;
  uint32_t site_count;
  uint64_t sites_offset;
  uint64_t paths_offset;
  uint64_t import_names_offset;  // import_count strings, each ended by '\0'
  uint64_t import_slots_offset;  // import_count addresses of 8 bytes
  uint32_t import_count;
  uint32_t max_loop_depth;      // counters that a waiting thread stores
  uint64_t run_offset;          // CpuRowFunction, CpuThreadFunction or CpuSimdgroupFunction
  uint64_t threadgroup_offset;  // kSimdgroups: CpuThreadgroupFunction, where there is one; else 0
  uint64_t code_offset;
  uint64_t code_bytes;
  uint64_t threadgroup_memory_bytes;
  uint32_t threadgroup_simdgroups;  // the simdgroups that CpuThreadgroupFunction is made for; 0: any threadgroup
  uint32_t threadgroup_width;       // and their threads in x, all in one plane
  // Memory that CpuThreadFunction or CpuSimdgroupFunction needs for one call, CpuThreadgroupFunction for each
  // simdgroup.
  uint64_t frame_bytes;
  uint32_t may_spin;  // a loop reads an atomic: threadgroups may wait for one another
  uint32_t address_count;
  uint64_t addresses_offset;  // address_count offsets of 8 bytes within code and constants that are such addresses
  uint32_t joins_rows;  // kLoop: threads know nothing of their threadgroup; rows of neighbours in x may be run as one
  uint32_t takes_rows;  // kLoop: a call may run several rows of a threadgroup
  uint32_t uses_striped_locks;  // CpuLaunch::striped_locks are used where there are any
  uint32_t polls;               // a loop is not known to end, and reads CpuLaunch::poll_word
  uint64_t stack_bytes;         // that the code takes of the stack of the thread that runs it; at most kCpuStackLimit
};

// What the threads of a simdgroup that wait at a site do with their values, which travel as 64 bits. Lanes that take no
// part count as ones that hold the identity. Of two lanes that are combined, the lower one's value comes first, and
// both of a pair get the one result: it decides which of two zeros is the smaller one and which of two NaNs remains.
enum class CpuExchange : uint32_t {
  kNone = 0,           // they only wait
  kShuffle = 1,        // the value of the lane that the second operand names; 0 where that lane takes no part
  kBallot = 2,         // each lane's bit: whether its value is not 0
  kReduce = 3,         // combined in pairs at lane xor 1, 2, 4, ... within groups of `width` lanes
  kInclusiveScan = 4,  // combined at lane distances 1, 2, 4, ... within groups of `width` lanes
  kExclusiveScan = 5,  // that of the lane before; the identity in the first lane of a group
};

// One place where threads wait for one another. A waiting thread's position in time is the path to the site: for each
// enclosing loop its place in the program and the number of the iteration, then the site's own place. Paths compare
// lexicographically; smaller is earlier.
struct CpuSite {
  uint32_t is_barrier;  // of the threadgroup; otherwise it joins threads of one simdgroup
  CpuExchange exchange;
  uint32_t width;        // kReduce and scans: lanes of a group, a power of two, at most 32
  uint32_t line;         // of the generated text
  uint32_t loop_depth;   // enclosing loops
  uint32_t path_offset;  // index into paths: loop_depth + 1 places
  // 0: acts on the threads that execute the same dynamic instance. kCpuYield: waits for nothing, but lets others run.
  // Otherwise a `_sync` function of CUDA's: waits for the lanes that its mask names, the upper half of each lane's
  // operand, until those that have not returned wait with the same function and mask, at whichever site.
  uint32_t function;
  uint32_t unused;          // 0
  uint64_t identity;        // kReduce and scans: of the combining function
  uint64_t combine_offset;  // kReduce and scans: CpuCombineFunction; else 0
};

inline constexpr uint32_t kCpuYield = ~0u;

// Equal code is equal bytes: no padding, whose bytes would be any.
static_assert(std::has_unique_object_representations_v<CpuImageHeader> &&
              std::has_unique_object_representations_v<CpuSite>);

// One argument of a launch: where its elements are, and which bytes around `data` belong to it.
struct CpuArgument {
  void* data;
  int64_t first_byte;  // relative to data; negative where strides are
  int64_t end_byte;    // one past the last
};

// Of those who change floats of a launch's own outputs in rows; each in a cache line of its own.
struct alignas(64) CpuStripedLock {
  uint32_t is_held;
};
// Bytes of an array that have one lock, and how many locks a launch has: which one is theirs is hashed.
inline constexpr int64_t kCpuLockedBytes = 128;
inline constexpr uint64_t kCpuStripedLocks = 512;

struct CpuLaunch {
  const CpuArgument* arguments;
  uint32_t threads_per_grid[3];
  uint32_t threads_per_threadgroup[3];  // of a full threadgroup
  uint32_t threadgroups_per_grid[3];
  uint32_t is_alone;  // one thread of the process runs all of it, and nobody else uses its outputs meanwhile
  uint32_t prefetches_to_second_cache;  // of the processor: lines that are asked for early are better asked for there
  CpuStripedLock* striped_locks;  // kCpuStripedLocks, all free; null where others than the launch may use its outputs
  // Where this is not 0, CpuAttendFunction is called, and tells whether the launch is to end.
  const uint32_t* poll_word;
  void* attendant;  // CpuAttendFunction's
};

// Returns 1 where the caller is to return at once, 0 where it goes on.
using CpuAttendFunction = uint32_t (*)(const CpuLaunch*);
inline constexpr const char* kAttendFunction = "__kiln_attend";

// What the threads of a simdgroup exchange.
struct CpuPayload {
  uint64_t values[32];
  uint64_t operands[32];
  uint64_t results[32];
};

struct CpuThread {
  uint32_t values[kThreadValueNumbers];
  uint32_t site;      // where the thread waits: 1 + index into sites; kReturned when it has returned
  uint32_t entry;     // where CpuThreadFunction goes on; kBegin before it was called
  uint32_t* counts;   // iteration numbers of the loops around the site, outermost first
  uint64_t* payload;  // &CpuPayload::values[lane]
  char* threadgroup_memory;

  static constexpr uint32_t kReturned = 0;
  static constexpr uint32_t kBegin = 0;
};

// For each lane of the bits `lanes` that begins within the bytes from 0 to `limit`, where the row begins at `offset`:
// adds the float behind `operands` to the one behind `row`, or subtracts it, while nobody else changes it. All that
// change the array are such functions with `launch`, which says whether there are locks, and `place`, how many bytes
// `row` is behind the array; or `launch` is null.
using CpuRowUpdate = void (*)(const CpuLaunch* launch, float* row, const float* operands, uint32_t lanes,
                              int64_t offset, int64_t limit, int64_t place);
inline constexpr const char* kAddToRow = "__kiln_add_to_row";
inline constexpr const char* kSubtractFromRow = "__kiln_subtract_from_row";
using CpuCombineFunction = uint64_t (*)(uint64_t, uint64_t);

// Numbers for each of CpuThreadgroupFunction's places: x, y and z, and one that makes four.
inline constexpr uint32_t kCpuPlaceValues = 4;

inline constexpr size_t kCpuFrameAlignment = 64;

// The most private memory of a thread. It lies on the stacks of the threads that run threadgroups, which may be a few
// MiB; where threads of a threadgroup wait for one another, the frames of all 1024 are there at once, for each core.
inline constexpr uint64_t kCpuPrivateMemoryLimit = 256 << 10;

// The most that compiled code takes of a stack. The threads that run it have more (`core/job_threads.h`).
inline constexpr uint64_t kCpuStackLimit = 3 << 20;

}  // namespace kiln
