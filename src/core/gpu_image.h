// The format of code for an NVIDIA GPU, between the compilers that write it and the target that loads and launches it.
//
//   GpuImageHeader | name of the entry, ended by '\0' | code
//
// All offsets are bytes from the header's start.
//
// A launch passes one block of bytes (CU_LAUNCH_PARAM_BUFFER_POINTER). For a Metal body it is the function's only
// parameter, a structure passed by value: GpuGeometry, then what each parameter of the unit needs. For a CUDA body it
// is the function's own parameters, as C lays them out. Both come from gpu_block_layout(), so that compiler and target
// cannot differ. Shapes and strides travel in the block, not behind pointers: the block lies in constant memory, and a
// launch copies nothing else to the GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/kernel_unit.h"
#include "core/thread_values.h"

namespace kiln {

inline constexpr uint32_t kGpuImageMagic = 0x31474e4b;  // "KNG1"
inline constexpr uint32_t kGpuImageVersion = 1;

enum class GpuCodeKind : uint32_t {
  kPtx = 0,    // PTX, ended by '\0'; the driver makes machine code of it for any GPU of its architecture and later ones
  kCubin = 1,  // machine code for one architecture
};

struct GpuImageHeader {
  uint32_t magic;
  uint32_t version;
  uint64_t total_bytes;
  GpuCodeKind kind;
  uint32_t block_bytes;  // of GpuBlockLayout, which the code was made for
  uint64_t entry_offset;
  uint64_t code_offset;
  uint64_t code_bytes;
  // Threadgroup memory of a Metal body. It is dynamic ("extern __shared__"), so that it may exceed 48 KB; a CUDA body's
  // own lies in its machine code.
  uint64_t threadgroup_memory_bytes;
};

// One input or output of a Metal body in the block.
struct GpuArgument {
  uint64_t address;    // in the GPU's memory
  int64_t first_byte;  // of the bytes that belong to it, relative to address; negative where strides are
  int64_t end_byte;    // one past the last
};

// What a Metal body's positions are computed from. Its size is a multiple of 8, since arguments follow.
struct alignas(8) GpuGeometry {
  uint32_t threads_per_grid[3];
  uint32_t threads_per_threadgroup[3];  // of a full threadgroup
  uint32_t threadgroups_per_grid[3];
  // 1: the threadgroups lie in the hardware grid's x one after the other, x fastest, because their number in y or z is
  // more than the hardware takes (65,535). 0: the hardware grid is threadgroups_per_grid.
  uint32_t is_linear;
};
// All values that are the same for the whole grid come from the block.
static_assert(offsetof(GpuGeometry, is_linear) == numbers_of(ThreadValueScope::kGrid) * sizeof(uint32_t),
              "add the value of a grid to GpuGeometry, and fill it in cuda_target.cpp");

// Where each parameter of a unit lies in the block.
struct GpuBlockLayout {
  std::vector<uint32_t> offsets;  // of each parameter of the unit, in bytes
  uint32_t bytes = 0;             // of the whole block; a multiple of 8

  // The most bytes of all parameters that every driver and GPU takes.
  static constexpr uint32_t kLimit = 4096;
};

/// The block of a unit's launches. Metal: GpuGeometry; a GpuArgument for each input and output, whatever it points to;
/// int[kPaddedDimensions], int64_t[kPaddedDimensions], int for shape, strides, ndim, at a multiple of 8, and nothing
/// (an offset of no meaning) where the unit has their values. CUDA: a pointer of 8 bytes for each input and output;
/// int[kMaxCudaDimensions], int64_t[kMaxCudaDimensions], int for shape, strides, ndim, each at a multiple of its
/// element's size.
GpuBlockLayout gpu_block_layout(const KernelUnit& unit);

}  // namespace kiln
