// A kernel object: a body, and the machine code for each combination of argument types that it was called with.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cache/single_flight.h"
#include "core/array_layout.h"
#include "frontend/cooperation.h"
#include "frontend/signature.h"
#include "kiln/compilation.h"
#include "runtime/call.h"
#include "runtime/context.h"
#include "runtime/history.h"
#include "runtime/kernel_spec.h"

namespace kiln {

// Machine code for one combination, with the text that it was made from. `unit` says whether it is for one shape only.
struct Variant {
  KernelUnit unit;
  std::shared_ptr<const Binary> binary;
  Target* target = nullptr;  // where it runs; the context's
  std::vector<Dtype> input_dtypes, output_dtypes;

  bool is_specialized() const {
    return unit.has_known_sizes() ||
           std::any_of(unit.parameters.begin(), unit.parameters.end(),
                       [](const KernelParameter& parameter) { return !parameter.values.empty(); });
  }
};

// Which of many combinations get code of their own: the first few of a group.
class FirstFew {
 public:
  explicit FirstFew(size_t most) : most_(most) {}

  /// Whether the member is one of them. `is_new`: it was not before.
  bool admit(std::string_view group, std::string_view member, bool& is_new);
  /// There is no such code after all.
  void give_back(std::string_view group, std::string_view member);

 private:
  const size_t most_;
  std::mutex mutex_;
  std::map<std::string, std::set<std::string, std::less<>>, std::less<>> members_;
};

// A kernel whose body uses shapes, strides or ranks has code of its own for each of the first few, in which they are
// constants; for later ones it has code that reads them. On a GPU a kernel with bounds guards has code of its own for
// the first few combinations of a grid and arrays' sizes, too: most of its guards are proved redundant then.
class KernelObject {
 public:
  /// For how many combinations of shapes there is code of its own. (With one or two, a program that alternates between
  /// a batch and a remainder, forward and in training, would lose; each costs compiling.)
  static constexpr size_t kMostSpecialized = 4;
  /// The same for the threads of a threadgroup, on a GPU: as many as a program tries that looks for the fastest.
  static constexpr size_t kMostThreadgroups = 16;

  /// Throws ValueError for names that cannot be arguments' names, and for no output.
  explicit KernelObject(KernelSpec spec, Context& context = Context::shared());
  KernelObject(const KernelObject&) = delete;
  KernelObject& operator=(const KernelObject&) = delete;

  const KernelSpec& spec() const { return spec_; }
  /// Unique in the process, and never used again.
  uint64_t number() const { return number_; }
  const History& history() const { return history_; }

  /// Throws what is wrong with a call: ValueError, TypeError, UnsupportedError. Runs and compiles nothing.
  void check(const Call& call) const;

  /// The part of check() that depends on more than what code is found by: counts, shapes, strides, the grid.
  void check_sizes(const Call& call) const;

  /// The generated text for a call that check() has accepted.
  KernelUnit unit_for(const Call& call) const;

  // The code for a call, and where it came from.
  struct Found {
    std::shared_ptr<const Variant> variant;
    CodeSource source = CodeSource::kMemory;
  };
  /// For a call that check_sizes() has accepted. Where nothing is found, checks the rest and compiles. Throws
  /// ValueError, CompileError, UnsupportedError.
  Found find_or_compile(const Call& call);

  /// Code for a call of these types on `target`, which need not be this machine's; for its shapes where `specialized`.
  /// It is stored, not loaded. Throws what check() and find_or_compile() throw.
  MadeCode compile_ahead(const Call& call, const TargetSpec& target, bool specialized) const;

  /// Whether there may be code for a call's shapes.
  bool may_specialize(const Call& call) const;

  /// Whether a launch reads a row-contiguous copy of the input.
  bool copies(const InputArray& input) const {
    return spec_.ensure_row_contiguous && !is_row_contiguous(input.shape, input.strides);
  }

  /// Whether the kernel's options name any inputs to be written, and whether they name this one.
  bool writes_inputs() const { return !spec_.compile_options.writable_inputs.empty(); }
  bool is_writable(std::string_view input) const {
    return std::ranges::find(spec_.compile_options.writable_inputs, input) !=
           spec_.compile_options.writable_inputs.end();
  }

  /// Throws where an input that the kernel's options name cannot be written in place, as far as its shape and strides
  /// tell: ValueError. Part of check_sizes().
  void check_writable_inputs(const Call& call) const;

  /// What a program that runs as on a Mac is to be told once of a kernel that writes inputs; empty for all others, and
  /// where it was told. `retract_input_write_warning`: it was not told.
  std::string input_write_warning(const Call& call, const Variant& variant);
  void retract_input_write_warning() { has_warned_of_input_writes_ = false; }

  /// The names of a call's inputs and outputs, wherever they were given.
  const std::string& input_name(const Call& call, size_t i) const { return input_names(call)[i]; }
  const std::string& output_name(const Call& call, size_t i) const { return output_names(call)[i]; }

  /// The threadgroup that a launch runs with: the call's, or another one where no thread sees the difference and short
  /// rows of the grid share simdgroups in it.
  Extent3 threadgroup_of_launch(const Call& call) const;

  void record(const LaunchRecord& record) { history_.add(record); }
  Context& context() const { return context_; }

 private:
  // What the body sees of an input beside its elements.
  static constexpr std::string_view kShapeSuffixes[] = {"_shape", "_strides", "_ndim"};
  // What says the form of the launch, at the end of what is general in a call's key.
  static constexpr size_t kFormBytes = sizeof(uint64_t);

  // kernel_object.cpp: finds code, or has it made.
  std::span<const std::string> input_names(const Call& call) const;
  std::span<const std::string> output_names(const Call& call) const;
  SingleFlight<Binary>::Found find_or_make_binary(KernelUnit& unit, Target& target) const;

  // kernel_variant.cpp: what code is made for.
  bool is_for_nvrtc(const Call& call) const;
  /// What of the call's form code is made for, on its device.
  LaunchForm form_for_code(const Call& call) const;
  uint32_t row_threads_for_code(const LaunchForm& form) const;
  /// The threads of a full threadgroup, where code may be made for them. Else zeros.
  std::array<uint16_t, 3> known_threads(const Call& call) const;
  // Parts of one text: what is general, the threads, the shapes that the body uses, and sizes with the grid.
  struct CallKey {
    std::string_view all;
    size_t general_bytes, thread_bytes, shape_bytes;

    std::string_view general() const { return all.substr(0, general_bytes); }
    std::string_view general_with_threads() const { return all.substr(0, general_bytes + thread_bytes); }
    std::string_view threads() const { return all.substr(general_bytes, thread_bytes); }
    std::string_view shapes() const { return all.substr(general_bytes + thread_bytes, shape_bytes); }
    std::string_view sizes() const { return all.substr(general_bytes + thread_bytes + shape_bytes); }
    std::string_view without_sizes() const { return all.substr(0, general_bytes + thread_bytes + shape_bytes); }
    /// The key of code that is made for these.
    std::string with(bool threads, bool shapes, bool sizes) const;
  };
  CallKey call_key(const Call& call) const;
  bool uses_shape_of(const Call& call, size_t input) const;
  bool is_batched(size_t input) const {
    return input < spec_.part.batched_inputs.size() && spec_.part.batched_inputs[input];
  }
  bool body_uses_shape_of(const std::string& name) const;
  void set_known_shapes(KernelUnit& unit, const Call& call) const;
  /// Whether code may be made for the call's grid and how many bytes each array has.
  bool may_know_sizes(const Call& call) const;
  void set_known_sizes(KernelUnit& unit, const Call& call) const;

  // kernel_checks.cpp: what is wrong with the kernel or a call.
  void check_text(const std::string& text, std::string_view what) const;
  void check_name(const std::string& name, std::string_view what) const;
  void check_input(const InputArray& input, const std::string& name) const;
  void check_writable_names(std::span<const std::string> inputs) const;
  void check_output(const OutputArray& output, const std::string& name) const;
  void check_types(const Call& call) const;
  // Whether the compiler of the call's device has the guards that the options want.
  void check_guards(const Call& call) const;
  void check_distinct(std::span<const std::string> inputs, std::span<const std::string> outputs,
                      std::span<const TemplateArgument> template_arguments) const;

  const uint64_t number_;
  const KernelSpec spec_;
  Context& context_;
  const KernelText text_;
  bool may_specialize_ = false;      // on what a launch has
  bool specializes_ = false;         // on shapes
  bool knows_threadgroups_ = false;  // code is made for the threads of a threadgroup
  bool sees_threadgroups_ = true;    // threads know in which threadgroup they are, or work together
  Cooperation cooperation_;
  std::vector<bool> uses_shape_;                // of each input, where the kernel has their names
  SingleFlight<Variant> variants_{is_lasting};  // by call_key
  std::atomic<bool> has_warned_of_input_writes_{false};
  FirstFew shapes_{kMostSpecialized}, sizes_{kMostSpecialized}, threadgroups_{kMostThreadgroups};
  History history_;
};

/// What `verbose` prints.
std::string verbose_text(const KernelUnit& unit);

}  // namespace kiln
