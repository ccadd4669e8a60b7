// Options of a compilation, and the compiler's stages, passes and remarks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kiln/error.h"

namespace kiln {

/// The arithmetic on floats. kSafe is IEEE arithmetic as written, and gives the same bits on every engine and target.
/// kRelaxed and kFast permit what Metal's modes of these names permit.
enum class MathMode : uint8_t { kSafe, kRelaxed, kFast };

struct CompileOptions {
  MathMode math_mode = MathMode::kSafe;
  /// Whether accesses are guarded: outside an argument's array a load gives zero and a store does nothing. Without
  /// guards such an access is undefined. Empty: the environment variable KILN_BOUNDS decides; the default is guarded.
  std::optional<bool> bounds = {};
  /// Whether shapes become constants in machine code, for the first four combinations that a kernel is called with, and
  /// on a GPU the grid and the sizes of arrays, too, and the threads of a threadgroup, for the first 16 sizes.
  /// Empty: KILN_SPECIALIZE decides; the default is true.
  std::optional<bool> specialize = {};
  /// Folders to search for `#include <…>`, in this order, and for an `#include "…"` that is not in the folder of the
  /// including file. Files are read when the kernel is made.
  std::vector<std::string> include_dirs = {};
  /// Inputs that the body may write through a cast, such as a cache to which a launch appends; they are written in
  /// place. A store or an atomic through any other input is an UnsupportedError that names the line. Each must be an
  /// array in writable memory, row-contiguous unless `ensure_row_contiguous` is false, without a stride of 0, and must
  /// not overlap another array of the call (ValueError).
  std::vector<std::string> writable_inputs = {};

  bool operator==(const CompileOptions&) const = default;
};

/// One stage of a compilation before machine code.
struct CompileStage {
  std::string name;  ///< "clang", "guarded", …, "optimized": LLVM IR; "assembly", "ptx": the target's assembly language
  std::string text;
};

/// One run of a pass of the compiler.
struct CompilePass {
  std::string name;      ///< "prefetch"; LLVM's passes are named as in its `opt -passes=…`: "early-cse,simplifycfg"
  std::string function;  ///< the LLVM function that it ran on; empty for the module
  bool fired = false;    ///< whether it changed the code
  /// Its number for KILN_PASS_LIMIT, from 1; 0 for a pass that correctness needs, which cannot be switched off.
  uint32_t number = 0;
  bool switched_off = false;  ///< by KILN_PASSES or KILN_PASS_LIMIT: it did not run
  double ms = 0;
  uint64_t instructions_before = 0, instructions_after = 0;  ///< of the function or the module
};

/// The reason why an optional pass of the compiler did not apply where one would expect it, or the code that a slow
/// access became.
struct CompileRemark {
  std::string pass;                     ///< a name as in CompilePass::name: "prefetch"
  std::string message;                  ///< lower-case start, no full stop
  SourceText text = SourceText::kBody;  ///< the text that contains the line
  int line = 0;                         ///< 1-based; 0 if the line is unknown
  std::string file = {};                ///< the path of the file with the text; empty for a string
};

}  // namespace kiln
