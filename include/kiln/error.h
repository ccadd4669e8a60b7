// The exceptions of Kiln. The type says what is at fault: the call (ValueError, TypeError), the kernel (CompileError,
// UnsupportedError), the launch or the device (DeviceError), or Kiln itself (InternalError).
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace kiln {

/// An argument of the right kind with a wrong value. Nothing ran.
class ValueError : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

/// An argument of the wrong kind. Nothing ran.
class TypeError : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

/// The text that a diagnostic points into.
enum class SourceText : uint8_t {
  kBody,       ///< the `source` argument
  kHeader,     ///< the `header` argument
  kGenerated,  ///< the text that Kiln wrote around them: the signature
  kIncluded,   ///< a file that one of them includes
};

enum class Severity : uint8_t { kError, kWarning, kNote };

/// One message about a kernel's text.
struct Diagnostic {
  Severity severity = Severity::kError;
  std::string message;  ///< lower-case start, no full stop
  SourceText text = SourceText::kBody;
  int line = 0;             ///< 1-based; 0 if the position is unknown
  int column = 0;           ///< 1-based, in bytes; 0 if the position is unknown
  std::string source_line;  ///< the caller's line, without its line end
  std::string file = {};    ///< the path of the file with the text; empty for a string
};

/// The results of a failed compilation.
struct CompileReport {
  std::vector<Diagnostic> diagnostics;  ///< in the compiler's order; `what()` shows the first error
  std::string generated_source;         ///< the whole text that was compiled, as `verbose=True` prints it
  std::string log;                      ///< the compiler's output, including notes about its own headers
};

/// The body or the header is not valid in its dialect.
class CompileError : public std::runtime_error {
 public:
  CompileError(const std::string& message, std::shared_ptr<const CompileReport> report)
      : std::runtime_error(message), report_(std::move(report)) {}

  /// Never null; shared with copies of this exception.
  const std::shared_ptr<const CompileReport>& report() const { return report_; }

 private:
  std::shared_ptr<const CompileReport> report_;
};

/// A body that is valid in its dialect but not supported on this target. The message names the construct and its line.
class UnsupportedError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The device failed while a kernel ran, or the kernel did something that ends a launch, such as waiting at different
/// barriers. The contents of the launch's outputs are unspecified.
class DeviceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A defect of Kiln itself.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

}  // namespace kiln
