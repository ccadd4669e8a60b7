// How a kernel is compiled beyond what its text says, and what comes before its machine code.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kiln/error.h"

namespace kiln {

/// What arithmetic on floats may do. kSafe keeps IEEE behaviour, and gives the same bits on every engine and target;
/// kRelaxed and kFast allow what Metal's modes of these names allow.
enum class MathMode : uint8_t { kSafe, kRelaxed, kFast };

struct CompileOptions {
  MathMode math_mode = MathMode::kSafe;
  /// Whether an access outside an argument's array loads zero or does nothing. Without it such an access is undefined.
  /// Empty: as the environment variable KILN_BOUNDS says; by default they are guarded.
  std::optional<bool> bounds = {};
  /// Whether shapes become constants in machine code, for the first four combinations that a kernel is called with.
  /// Empty: as KILN_SPECIALIZE says; by default they do.
  std::optional<bool> specialize = {};
  /// Folders in which `#include "…"`, where the file is not beside the one that includes it, and `#include <…>` are
  /// looked for, in this order. Files are read when the kernel is made.
  std::vector<std::string> include_dirs = {};
  /// Inputs that the body may write through a cast, such as a cache that a launch appends to; they are written in
  /// place. A store or an atomic through any other input is an UnsupportedError that names the line. Each must be an
  /// array in memory that may be written, row-contiguous unless `ensure_row_contiguous` is false, without a stride of
  /// 0, and overlap no other array of the call (ValueError).
  std::vector<std::string> writable_inputs = {};

  bool operator==(const CompileOptions&) const = default;
};

/// What compiling made of a kernel on the way to machine code.
struct CompileStage {
  std::string name;  ///< "clang", "guarded", …, "optimized": LLVM IR; "assembly", "ptx": the target's assembly language
  std::string text;
};

/// One run of a pass of the compiler.
struct CompilePass {
  std::string name;      ///< "prefetch"; LLVM's passes are named as in its `opt -passes=…`: "early-cse,simplifycfg"
  std::string function;  ///< the LLVM function that it ran on; empty: the module
  bool fired = false;    ///< whether it changed the code
  /// Its number for KILN_PASS_LIMIT, from 1; 0: correctness needs it, so that it cannot be switched off.
  uint32_t number = 0;
  bool switched_off = false;  ///< by KILN_PASSES or KILN_PASS_LIMIT: it did not run
  double ms = 0;
  uint64_t instructions_before = 0, instructions_after = 0;  ///< LLVM's, of the function or the module
};

/// Why an optional pass of the compiler did not fire where one would expect it to, or what an access that takes long
/// was made into.
struct CompileRemark {
  std::string pass;                     ///< as CompilePass::name: "prefetch"
  std::string message;                  ///< lower-case start, no full stop
  SourceText text = SourceText::kBody;  ///< that the line is of
  int line = 0;                         ///< 1-based; 0: no line is known
  std::string file = {};                ///< the path of the file that holds the text; empty where it is no file
};

}  // namespace kiln
