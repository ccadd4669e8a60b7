// The compiler as the rest of Kiln sees it. It lives in a shared object of its own, `libkiln_compiler.so`, which is
// opened when a kernel is first compiled; this header is all that both sides share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/kernel_unit.h"
#include "kiln/compilation.h"
#include "kiln/device.h"
#include "kiln/error.h"

namespace kiln {

// What machine code is made for.
struct TargetSpec {
  DeviceKind kind = DeviceKind::kCpu;
  std::string cpu = {};                     // LLVM's name of the processor or level: "x86-64-v3", "sm_90"
  std::string engine = {};                  // kCpu: what KILN_CPU_ENGINE says (core/settings.h)
  std::string passes = {};                  // names of passes that do not run, as KILN_PASSES has them
  std::optional<uint64_t> pass_limit = {};  // as KILN_PASS_LIMIT has it

  bool operator==(const TargetSpec&) const = default;
};

// Whether the SIMD engine is tried first.
inline bool prefers_simd(const TargetSpec& target) { return target.engine.starts_with("simd"); }

// What a compilation may take. 0: any amount.
struct CompileLimits {
  uint64_t bytes = 0;
  double seconds = 0;
  uint64_t allocations = 0;  // for tests, which end a compilation at each of its points
};

struct CompileRequest {
  const KernelUnit& unit;
  TargetSpec target;
  bool keep_stages = false;  // fill CompileResult::stages and CompileResult::passes
  CompileLimits limits = {};
  bool verify_passes = false;                // after each: where the IR is not valid, the status is kInternal
  std::vector<std::string> keep_after = {};  // passes after which the IR is kept too, as the stage "after:<name>"
  bool keep_remarks = false;                 // fill CompileResult::passes and CompileResult::remarks
};

enum class CompileStatus : uint8_t {
  kOk,
  kInvalid,      // the text is not valid in its dialect
  kUnsupported,  // it is, but this target cannot run it
  kTooLarge,     // it takes more memory or time than its limits, or recursion that is too deep; report.log says what
  kOutOfMemory,  // the system has no more memory
  kInternal,     // Kiln's own defect
};

struct CompileResult {
  CompileStatus status = CompileStatus::kOk;
  CompileReport report;           // warnings too
  std::vector<std::byte> binary;  // an image: kCpu `core/cpu_image.h`, kNvidia `core/gpu_image.h`
  std::string engine;             // "scalar", "simd"
  std::string engine_reason;      // why this one
  // Inputs that the body writes although they were not writable, by number; ascending
  // (KernelUnit::allows_input_stores).
  std::vector<uint32_t> written_inputs;
  std::vector<CompileStage> stages;
  std::vector<CompilePass> passes;
  std::vector<CompileRemark> remarks;
};

class Compiler {
 public:
  virtual ~Compiler() = default;

  /// Never throws for what stands in the unit. Throws MissingCompilerError where it opens a library that is not there.
  /// May be called from any thread with a large stack (`core/job_threads.h`), by several at once.
  virtual CompileResult compile(const CompileRequest& request) = 0;

  /// Everything besides unit and target that the result depends on: LLVM's version and a digest of the device library.
  virtual std::string identity() const = 0;

  /// Frees what a function above has returned, and leaves it empty. What a library has allocated it must free itself:
  /// a program may bring an `operator new` of its own, which the library's C++ library, linked into it, does not know.
  virtual void release(CompileResult& result) const { CompileResult(std::move(result)); }
  virtual void release(std::string& text) const { std::string(std::move(text)); }
};

// A compiler's library is not installed, or cannot be used; whoever mends that needs no new process.
class MissingCompilerError : public UnsupportedError {
 public:
  using UnsupportedError::UnsupportedError;
};

// The one function that libkiln_compiler.so exports. Returns null where the caller was built for another interface.
// The object is the caller's; `delete` it through the base class.
inline constexpr uint32_t kCompilerInterfaceVersion = 8;
inline constexpr const char* kCompilerFactoryName = "kiln_make_compiler";
extern "C" {
using CompilerFactory = Compiler* (*)(uint32_t interface_version);
}

}  // namespace kiln
