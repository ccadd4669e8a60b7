// Translates Clang's diagnostics to Kiln's: positions in the caller's text, names of the dialect.
#pragma once

#include <clang/Basic/Diagnostic.h>

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/kernel_unit.h"
#include "kiln/error.h"

namespace kiln {

// The file that contains a unit's text. Included files are in the same folder.
inline const char* kernel_file(const KernelUnit& unit) {
  return unit.dialect == Dialect::kMetal ? "kernel.metal" : "kernel.cu";
}

/// Collects Clang's diagnostics about a unit.
///
/// A message without a position in the unit's files (for example, an error inside the device library) moves to the
/// innermost of its notes that has one, which is the use in the caller's text. A message inside a macro is reported
/// where the macro is used, with a note at its position in the macro.
class DiagnosticCollector : public clang::DiagnosticConsumer {
 public:
  explicit DiagnosticCollector(const KernelUnit& unit);
  ~DiagnosticCollector() override;

  void BeginSourceFile(const clang::LangOptions& options, const clang::Preprocessor* preprocessor) override;
  void EndSourceFile() override;
  void HandleDiagnostic(clang::DiagnosticsEngine::Level level, const clang::Diagnostic& info) override;

  /// One of Kiln's own diagnostics at a location that Clang knows.
  Diagnostic at(const clang::SourceManager& sources, clang::SourceLocation location, std::string message) const;
  /// One of Kiln's own diagnostics at a line of the generated text.
  Diagnostic at_line(int generated_line, std::string message) const;

  /// The line of a location in the unit's text, or in a file that it includes (core/source_map.h). `location` must not
  /// be in a macro. `#line` directives are ignored.
  std::optional<int> line_of(const clang::SourceManager& sources, clang::SourceLocation location) const;

  /// All collected diagnostics, in order. Those without a position in the caller's text are omitted if an error has
  /// one; notes without any position are always omitted.
  std::vector<Diagnostic> take();
  /// Uses of functions that the device library declares unavailable, and address spaces that Clang has not applied.
  /// take() no longer returns them.
  std::vector<Diagnostic> take_unsupported();
  bool has_unsupported() const;
  /// Warnings about the caller's text, each followed by its notes, in order. They are not reported with errors.
  std::vector<Diagnostic> take_warnings();
  std::string take_log();

 private:
  struct Entry {
    Diagnostic diagnostic;
    clang::SourceLocation location;
    bool has_position = false;  // in the caller's text
    bool is_unsupported = false;
    // A call that matches no function; false once a candidate in the device library fails for a reason other than the
    // number of arguments.
    bool is_call_without_match = false;
    std::set<int> arguments_taken;  // by candidates in the device library
  };

  static void note_unsupported(Entry& entry);
  bool is_of_component(const clang::Diagnostic& info) const;
  void explain_temporary(llvm::StringRef note, const clang::SourceManager& sources);
  void explain_pointer(llvm::StringRef note, const clang::SourceManager& sources);
  /// The input with dimensions, or the output, of this name; or null.
  const KernelParameter* find_array(llvm::StringRef name) const;
  bool is_lost_address_space(const clang::Diagnostic& info, llvm::StringRef message);
  void handle_warning(const clang::Diagnostic& info);
  void drop_comma_warning(const clang::Diagnostic& info);
  void add_warning(const clang::Diagnostic& info, Severity severity, llvm::StringRef message);
  void move_to_end_of_text(int& line, int& column) const;
  bool set_position(const clang::SourceManager& sources, clang::SourceLocation location, Diagnostic& diagnostic) const;
  /// The message with the dialect's types, without Kiln's internal names, and with advice for the user.
  std::string in_users_words(std::string message, unsigned id, const clang::SourceManager* sources,
                             clang::SourceLocation location, const Diagnostic& located) const;
  /// The suffix of the error for a missing file: where the front end searched for it.
  std::string search_path_suffix(const Diagnostic& missing) const;
  /// The suffix of an error about an operand that programs often take for something else, or nothing: an input without
  /// dimensions, which Metal's text passes as a number and CUDA's as a pointer; a position, which has three
  /// coordinates; an output of atomics; an array, where an element is meant.
  std::string operand_suffix(const clang::Diagnostic& info, std::string_view message) const;
  void add_macro_note(const clang::SourceManager& sources, clang::SourceLocation location, const Diagnostic& error);
  /// Suggests names that Kiln's signature provides, and never a C++ keyword.
  std::string with_better_suggestion(std::string message, bool& is_dropped) const;

  const KernelUnit& unit_;
  const clang::Preprocessor* preprocessor_ = nullptr;
  // Location of a name that Clang replaced by a keyword, which is not suggested. Later messages there are redundant.
  clang::SourceLocation dropped_keyword_;
  std::vector<std::string_view> lines_;  // of the unit's text
  std::vector<Entry> entries_;
  std::vector<Diagnostic> warnings_;
  bool is_in_warning_ = false;    // the last diagnostic was a warning or a note of one
  bool is_warning_kept_ = false;  // that warning is about the caller's text
  std::string log_;
  struct LogPrinter;
  std::unique_ptr<LogPrinter> printer_;
};

/// Types by Metal's names: `half` for `_Float16`, `float3` for `vec<float, 3>`, `uint` for `unsigned int`.
std::string in_metal_words(std::string message);

}  // namespace kiln
