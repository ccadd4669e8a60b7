// Maps an image (`core/cpu_image.h`) into the process.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/cpu_functions.h"
#include "core/cpu_image.h"

namespace kiln {

// An image in memory, readable and executable, never writable while it can run.
class LoadedImage {
 public:
  /// Throws InternalError where the bytes are no image of this version or call functions that Kiln does not have.
  explicit LoadedImage(std::span<const std::byte> image);
  ~LoadedImage();
  LoadedImage(const LoadedImage&) = delete;
  LoadedImage& operator=(const LoadedImage&) = delete;

  const CpuImageHeader& header() const { return header_; }
  /// Whether a thread may give up: it calls assert or __trap.
  bool may_fail() const { return may_fail_; }
  std::span<const CpuSite> sites() const;
  std::span<const uint32_t> path(const CpuSite& site) const;

  std::span<const std::byte> code() const { return {base_ + header_.code_offset, header_.code_bytes}; }

  CpuRowFunction row_function() const { return function<CpuRowFunction>(header_.run_offset); }
  CpuThreadFunction thread_function() const { return function<CpuThreadFunction>(header_.run_offset); }
  CpuSimdgroupFunction simdgroup_function() const { return function<CpuSimdgroupFunction>(header_.run_offset); }
  CpuThreadgroupFunction threadgroup_function() const {
    return header_.threadgroup_offset ? function<CpuThreadgroupFunction>(header_.threadgroup_offset) : nullptr;
  }
  CpuCombineFunction combine_function(const CpuSite& site) const {
    return site.combine_offset ? function<CpuCombineFunction>(site.combine_offset) : nullptr;
  }

 private:
  bool is_code(uint64_t offset) const;
  bool is_valid(const CpuSite& site) const;

  template <typename Function>
  Function function(uint64_t offset) const {
    return reinterpret_cast<Function>(const_cast<std::byte*>(base_) + offset);
  }

  CpuImageHeader header_{};
  const std::byte* base_ = nullptr;
  size_t mapped_bytes_ = 0;
  bool may_fail_ = false;
};

}  // namespace kiln
