// Bodies whose grid is a part of the launch's: one of a batch of grids that lie one after the other along z, or the
// whole of which the launch is a slice.
//
// The body is not changed. It stands in a block of its own, before which its names are declared anew: pointers to its
// element of the batch, positions and sizes of its own grid. So every engine and target runs it as any other body, and
// what it computes has the bits that it has in a launch of its own.
//
// Rejected: a grid offset in the launch. A program for several devices has one text (`jax.shard_map`), in which the
// device's index is a value in the device's memory, and a launch would have to wait for it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "frontend/signature.h"

namespace kiln {

/// The parameters of a part, inputs of 32-bit numbers after the body's own. Of a batch, in threads and threadgroups of
/// one grid, along z; the elements of an output of one grid are `kiln_size_` and the output's name.
inline constexpr std::string_view kPartDepth = "kiln_depth", kPartDepthGroups = "kiln_depth_groups";
/// Of a slice, along its axis: where it begins; the whole grid; and a threadgroup, which may be larger than the slice.
inline constexpr std::string_view kSliceBegin = "kiln_slice_begin", kSliceGroup = "kiln_slice_group",
                                  kSliceThreads = "kiln_slice_threads", kSliceGroups = "kiln_slice_groups",
                                  kSliceGroupThreads = "kiln_slice_group_threads";

std::string part_size_name(std::string_view output);

/// The names of a part's parameters, in their order.
std::vector<std::string> part_inputs(const GridPart& part, const std::vector<std::string>& output_names);

/// Throws UnsupportedError with the line of what sees the launch's grid and not the body's.
void check_part(Dialect dialect, const KernelText& text, std::string_view kernel_name);

// What stands around the body.
class PartText {
 public:
  PartText(Dialect dialect, const SignatureRequest& request) : dialect_(dialect), request_(request) {}

  bool is_batched(size_t input) const {
    return input < request_.part.batched_inputs.size() && request_.part.batched_inputs[input];
  }

  /// The attributes of Metal's that the function needs: the body's and what these are computed from.
  bool needs(std::string_view attribute, bool body_uses) const;

  /// A name of the body's: its declaration there, and its value, computed with the function's parameters.
  void declare(std::string_view type, std::string_view name, std::string_view value);

  /// The pointer of a batched argument; `stride` is what lies between two elements of the batch.
  void declare_pointer(std::string_view type, std::string_view name, std::string_view stride);

  void declare_output(std::string_view type, std::string_view name);

  /// CUDA's Shape or Strides of a batched input.
  void declare_without_first(std::string_view type, std::string_view name);

  /// Positions and sizes. `body_uses`: of Metal's attributes.
  template <typename Uses>
  void declare_positions(const Uses& body_uses) {
    if (dialect_ == Dialect::kMetal)
      for (std::string_view name : kPositions)
        if (body_uses(name)) declare_attribute(name);
    if (dialect_ == Dialect::kCuda) declare_block_positions();
  }

  std::string before() const;
  std::string after() const;

  /// A parameter of the part, as an expression.
  std::string parameter(std::string_view name) const;

 private:
  static constexpr std::string_view kPositions[] = {"dispatch_quadgroups_per_threadgroup",
                                                    "dispatch_simdgroups_per_threadgroup",
                                                    "dispatch_threads_per_threadgroup",
                                                    "grid_size",
                                                    "thread_position_in_grid",
                                                    "threadgroup_position_in_grid",
                                                    "threadgroups_per_grid",
                                                    "threads_per_grid"};

  void declare_attribute(std::string_view name);
  void declare_block_positions();
  // A vector whose component along `axis` is `value`.
  std::string with_component(std::string_view type, std::string_view vector, int axis, std::string_view value) const;

  Dialect dialect_;
  const SignatureRequest& request_;
  std::string outer_, inner_;
};

}  // namespace kiln
