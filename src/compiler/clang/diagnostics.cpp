#include "compiler/clang/diagnostics.h"

#include <clang/Basic/DiagnosticSema.h>
#include <clang/Basic/SourceManager.h>
#include <clang/Frontend/TextDiagnosticPrinter.h>
#include <clang/Lex/LexDiagnostic.h>
#include <clang/Lex/Lexer.h>
#include <clang/Lex/Preprocessor.h>
#include <clang/Parse/ParseDiagnostic.h>
#include <llvm/ADT/SmallString.h>
#include <llvm/ADT/StringSwitch.h>
#include <llvm/Support/raw_ostream.h>

#include <algorithm>

#include "compiler/clang/dialects/cuda_tokens.h"
#include "compiler/clang/threadgroup_variables.h"
#include "core/attribute_table.h"
#include "core/diagnostic.h"
#include "core/text.h"

namespace kiln {
namespace {

// Keeps only the sentence of "static assertion failed due to requirement '…': <sentence>".
void keep_assertion(std::string& message) {
  if (!message.starts_with("static assertion failed")) return;
  bool has_requirement = message.find("requirement '") != std::string::npos;
  std::string_view before = has_requirement ? "': " : ": ";
  if (size_t at = message.find(before); at != std::string::npos) message.erase(0, at + before.size());
}

// The text between the first pair of quotes at or after `from`.
std::string_view quoted_in(std::string_view message, size_t from = 0) {
  size_t open = message.find('\'', from);
  if (open == std::string_view::npos) return {};
  size_t close = message.find('\'', open + 1);
  return close == std::string_view::npos ? std::string_view() : message.substr(open + 1, close - open - 1);
}

}  // namespace

// Metal's equivalent of a name of CUDA's; null for other names.
const char* metal_equivalent(llvm::StringRef name) {
  return llvm::StringSwitch<const char*>(name)
      .Case("threadIdx", "thread_position_in_threadgroup")
      .Case("blockIdx", "threadgroup_position_in_grid")
      .Case("blockDim", "threads_per_threadgroup")
      .Case("gridDim", "threadgroups_per_grid")
      .Case("warpSize", "threads_per_simdgroup")
      .Case("__syncthreads", "threadgroup_barrier(mem_flags::mem_threadgroup)")
      .Case("__syncwarp", "simdgroup_barrier(mem_flags::mem_none)")
      .Case("__shared__", "threadgroup")
      .Case("std", "metal")
      .Default(nullptr);
}

// CUDA's equivalent of a name of Metal's; null for other names.
const char* cuda_equivalent(llvm::StringRef name) {
  return llvm::StringSwitch<const char*>(name)
      .Case("thread_position_in_grid", "blockIdx * blockDim + threadIdx")
      .Case("thread_position_in_threadgroup", "threadIdx")
      .Case("threadgroup_position_in_grid", "blockIdx")
      .Case("threads_per_threadgroup", "blockDim")
      .Case("threadgroups_per_grid", "gridDim")
      .Case("threads_per_simdgroup", "warpSize")
      .Case("threadgroup_barrier", "__syncthreads()")
      .Case("simdgroup_barrier", "__syncwarp()")
      .Case("threadgroup", "__shared__")
      .Case("uchar", "unsigned char")
      .Case("ushort", "unsigned short")
      .Case("uint", "unsigned")
      .Case("ulong", "unsigned long long")
      .Case("simd_sum", "__reduce_add_sync")
      .Case("simd_shuffle", "__shfl_sync")
      .Case("simd_shuffle_xor", "__shfl_xor_sync")
      .Case("simd_shuffle_down", "__shfl_down_sync")
      .Case("simd_shuffle_up", "__shfl_up_sync")
      .Default(nullptr);
}

constexpr std::string_view kPassVariable =
    "; a component of a vector cannot be an argument that a function writes to: pass a variable";
constexpr std::string_view kForOneElement = "[i] for one";
constexpr std::string_view kAddressOfProperty = "address of property expression requested";

bool holds_atomics(const KernelParameter& parameter) { return parameter.element.starts_with("atomic<"); }

// The number of arguments that a candidate takes, from its note; nothing if the note gives another reason.
std::optional<int> arguments_taken(llvm::StringRef note) {
  size_t at = note.find("requires ");
  if (at == llvm::StringRef::npos || note.find(" provided", at) == llvm::StringRef::npos) return std::nullopt;
  note = note.drop_front(at + std::string_view("requires ").size());
  // Default arguments in the device library are lines for messages, which callers do not pass.
  note.consume_front("at least ");
  if (note.starts_with("single argument") || note.starts_with("argument")) return 1;
  int count;
  return note.consumeInteger(10, count) ? std::nullopt : std::optional(count);
}

// Renders diagnostics as Clang does, for `.log`.
struct DiagnosticCollector::LogPrinter {
  explicit LogPrinter(std::string& log)
      : stream(log), options(new clang::DiagnosticOptions), printer(stream, options.get()) {}
  llvm::raw_string_ostream stream;
  llvm::IntrusiveRefCntPtr<clang::DiagnosticOptions> options;
  clang::TextDiagnosticPrinter printer;
};

DiagnosticCollector::DiagnosticCollector(const KernelUnit& unit)
    : unit_(unit), lines_(split_lines(unit.text)), printer_(std::make_unique<LogPrinter>(log_)) {}

DiagnosticCollector::~DiagnosticCollector() = default;

void DiagnosticCollector::BeginSourceFile(const clang::LangOptions& options, const clang::Preprocessor* preprocessor) {
  preprocessor_ = preprocessor;
  printer_->printer.BeginSourceFile(options, preprocessor);
}

void DiagnosticCollector::EndSourceFile() { printer_->printer.EndSourceFile(); }

// Clang reports a token missing at the end of the body or the header at Kiln's text after it. Moves the position back.
void DiagnosticCollector::move_to_end_of_text(int& line, int& column) const {
  const SourceMap& map = unit_.source_map;
  int first = 0;
  if (line == map.body_first_line + map.body_lines && column == 1)
    first = map.body_first_line;
  else if (line == map.header_lines + 1)
    first = 1;
  else
    return;
  for (int last = line - 1; last >= first; --last) {
    size_t end = lines_[last - 1].find_last_not_of(" \t\v\f\r");
    if (end == std::string_view::npos) continue;
    line = last;
    column = static_cast<int>(end) + 2;
    return;
  }
}

std::optional<int> DiagnosticCollector::line_of(const clang::SourceManager& sources,
                                                clang::SourceLocation location) const {
  clang::OptionalFileEntryRef file = sources.getFileEntryRefForID(sources.getFileID(location));
  if (!file) return std::nullopt;
  llvm::StringRef name = file->getName();
  name.consume_front("./");
  int line = static_cast<int>(sources.getSpellingLineNumber(location));
  if (name == kernel_file(unit_)) return line;
  std::optional<size_t> index = included_index(name);
  if (!index || *index >= unit_.included_files.size()) return std::nullopt;
  // The file's first line is Kiln's `#line`.
  return unit_.source_map.included_first_lines[*index] + line - 2;
}

bool DiagnosticCollector::set_position(const clang::SourceManager& sources, clang::SourceLocation location,
                                       Diagnostic& diagnostic) const {
  if (location.isInvalid()) return false;
  // A location inside a macro becomes that of the macro's use, or of the argument in the kernel's text.
  location = sources.getFileLoc(location);
  std::optional<int> found = line_of(sources, location);
  if (!found) return false;
  int line = *found;
  int column = static_cast<int>(sources.getSpellingColumnNumber(location));
  // A note is about what stands there, such as the declaration of a template argument.
  if (diagnostic.severity != Severity::kNote) move_to_end_of_text(line, column);
  Diagnostic located = at_line(line, "");
  diagnostic.text = located.text;
  diagnostic.line = located.line;
  diagnostic.source_line = std::move(located.source_line);
  diagnostic.file = std::move(located.file);
  diagnostic.column = column;
  return true;
}

Diagnostic DiagnosticCollector::at_line(int generated_line, std::string message) const {
  return diagnostic_at(unit_, generated_line, std::move(message));
}

Diagnostic DiagnosticCollector::at(const clang::SourceManager& sources, clang::SourceLocation location,
                                   std::string message) const {
  Diagnostic diagnostic;
  set_position(sources, location, diagnostic);
  diagnostic.message = std::move(message);
  return diagnostic;
}

std::string DiagnosticCollector::in_users_words(std::string message, unsigned id, const clang::SourceManager* sources,
                                                clang::SourceLocation location, const Diagnostic& located) const {
  // The attribute for an address space (compiler/clang/threadgroup_variables.h) is not part of a type's identity.
  const std::string space = concat(" __attribute__((", kThreadgroupAttribute, "))");
  for (size_t at; (at = message.find(space)) != std::string::npos;) message.erase(at, space.size());
  message = unit_.dialect == Dialect::kMetal ? in_metal_words(std::move(message)) : in_cuda_words(std::move(message));
  // Clang names a lambda's type by its location.
  constexpr std::string_view kLambda = "(lambda at ";
  for (size_t at = 0; (at = message.find(kLambda, at)) != std::string::npos; at += kLambda.size()) {
    size_t end = message.find(')', at);
    if (end == std::string::npos) break;
    message.replace(at, end + 1 - at, "lambda");
  }
  llvm::StringRef function = unit_.entry;
  function = function.take_until([](char c) { return c == '<'; });
  // Clang names a CUDA function without its namespace in some messages.
  llvm::StringRef unqualified = function.drop_front(function.rfind(':') + 1);
  for (std::string_view whole :
       {std::string_view(unit_.entry), std::string_view(function), std::string_view(unqualified)})
    for (size_t at; (at = message.find(concat("'", whole, "'"))) != std::string::npos;)
      message.replace(at, whole.size() + 2, "the kernel");

  constexpr std::string_view kVoid = "void function the kernel";
  if (message.starts_with(kVoid)) message.replace(0, kVoid.size(), "the kernel");

  llvm::StringRef text_at_position = located.source_line;
  text_at_position = text_at_position.drop_front(
      std::min<size_t>(text_at_position.size(), static_cast<size_t>(std::max(located.column, 1) - 1)));
  bool in_body = located.text == SourceText::kBody;
  bool is_included_by_body = false;
  if (located.text == SourceText::kIncluded && sources) {
    clang::SourceLocation position = sources->getFileLoc(location), from;
    for (; (from = sources->getIncludeLoc(sources->getFileID(position))).isValid(); position = from)
      if (std::optional<int> line = line_of(*sources, from))
        is_included_by_body = unit_.source_map.locate(*line).text == SourceText::kBody;
  }
  const char* hint = in_body ? "; the body is inside of the kernel's function: write this into `header`"
                     : is_included_by_body
                         ? "; what the body includes is inside of the kernel's function: include this "
                           "in `header`"
                         : nullptr;
  switch (id) {
    case clang::diag::err_function_definition_not_allowed:
    case clang::diag::err_template_outside_namespace_or_class_scope:
      if (hint) message += hint;
      break;
    case clang::diag::err_expected_expression:
      if (hint && text_at_position.starts_with("template")) message = concat("a template is not allowed here", hint);
      break;
    case clang::diag::err_typecheck_assign_const:
      if (message == "read-only variable is not assignable") message += "; inputs and constants cannot be written";
      break;
    case clang::diag::err_typecheck_address_of:
      // Components are properties, which is no word of Metal.
      if (unit_.dialect == Dialect::kMetal && message.starts_with(kAddressOfProperty))
        message = "address of vector element requested";
      break;
    case clang::diag::err_unknown_typename:
      if (const bool is_metal = unit_.dialect == Dialect::kMetal;
          const char* equivalent = (is_metal ? metal_equivalent : cuda_equivalent)(quoted_in(message)))
        message += concat("; in ", is_metal ? "Metal" : "CUDA", " it is '", equivalent, "'");
      break;
    case clang::diag::err_ovl_no_viable_function_in_call:
      if (llvm::StringRef name = quoted_in(message);
          name.starts_with("atomic_") && name.ends_with("_explicit") &&
          std::none_of(unit_.parameters.begin(), unit_.parameters.end(), holds_atomics))
        message += "; it takes the address of an atomic, and outputs are atomics with `atomic_outputs=True`";
      break;
    case clang::diag::err_ovl_ambiguous_call: message += "; convert the arguments to one type"; break;
    default: break;
  }
  return message;
}

// Detects lost address spaces. Attributes carry them to Clang's declarations (compiler/clang/threadgroup_variables.h).
// A diagnostic that names one means that Clang has not applied it, and the variable would lie in the wrong memory.
bool DiagnosticCollector::is_lost_address_space(const clang::Diagnostic& info, llvm::StringRef message) {
  bool is_shared = message.contains("'__kiln_shared__'");
  if (!is_shared && !message.contains(concat("'", kThreadgroupAttribute, "'"))) return false;
  Entry entry;
  if (info.hasSourceManager())
    entry.has_position = set_position(info.getSourceManager(), info.getLocation(), entry.diagnostic);
  entry.diagnostic.message = concat(is_shared ? "'__shared__'" : "'threadgroup'", " is not supported here");
  entry.is_unsupported = true;
  entries_.push_back(std::move(entry));
  return true;
}

void DiagnosticCollector::handle_warning(const clang::Diagnostic& info) {
  is_in_warning_ = true;
  is_warning_kept_ = false;
  llvm::SmallString<128> message;
  info.FormatDiagnostic(message);
  // Clang expects this attribute on pointers, but applies it to the type anyway, which is enough here.
  if (info.getID() == clang::diag::warn_noderef_on_non_pointer_or_array) return;
  if (is_lost_address_space(info, message)) return;
  if (info.getID() == clang::diag::warn_unused_comma_left_operand) drop_comma_warning(info);
  // add_warning() drops warnings about the device library and about the text around the body.
  add_warning(info, Severity::kWarning, message);
}

// For a left operand without effect, as in `x[i, 0]`, Clang has just warned of "possible misuse of comma operator
// here", with a note at that operand. One warning is enough, so the earlier one is dropped.
void DiagnosticCollector::drop_comma_warning(const clang::Diagnostic& info) {
  Diagnostic operand;
  if (warnings_.size() < 2 || !info.hasSourceManager() ||
      !set_position(info.getSourceManager(), info.getLocation(), operand))
    return;
  const Diagnostic &warning = warnings_[warnings_.size() - 2], &note = warnings_.back();
  if (warning.message.starts_with("possible misuse of comma") && note.severity == Severity::kNote &&
      note.text == operand.text && note.line == operand.line && note.column == operand.column)
    warnings_.resize(warnings_.size() - 2);
}

void DiagnosticCollector::add_warning(const clang::Diagnostic& info, Severity severity, llvm::StringRef message) {
  Diagnostic diagnostic;
  diagnostic.severity = severity;
  if (!info.hasSourceManager() || !set_position(info.getSourceManager(), info.getLocation(), diagnostic)) return;
  if (diagnostic.text == SourceText::kGenerated) return;
  diagnostic.message =
      in_users_words(message.str(), info.getID(), &info.getSourceManager(), info.getLocation(), diagnostic);
  // Each instance of a template repeats the warning.
  auto is_duplicate = [&](const Diagnostic& other) {
    return other.text == diagnostic.text && other.line == diagnostic.line && other.column == diagnostic.column &&
           other.file == diagnostic.file && other.message == diagnostic.message;
  };
  if (severity == Severity::kWarning) {
    if (std::any_of(warnings_.begin(), warnings_.end(), is_duplicate)) return;
    is_warning_kept_ = true;
  }
  warnings_.push_back(std::move(diagnostic));
}

std::vector<Diagnostic> DiagnosticCollector::take_warnings() { return std::move(warnings_); }

bool DiagnosticCollector::has_unsupported() const {
  return std::any_of(entries_.begin(), entries_.end(), [](const Entry& entry) { return entry.is_unsupported; });
}

void DiagnosticCollector::HandleDiagnostic(clang::DiagnosticsEngine::Level level, const clang::Diagnostic& info) {
  clang::DiagnosticConsumer::HandleDiagnostic(level, info);
  if (level == clang::DiagnosticsEngine::Ignored) return;
  if (level == clang::DiagnosticsEngine::Warning || level == clang::DiagnosticsEngine::Remark)
    return handle_warning(info);
  if (level == clang::DiagnosticsEngine::Note && is_in_warning_) {
    llvm::SmallString<128> note;
    info.FormatDiagnostic(note);
    if (is_warning_kept_) add_warning(info, Severity::kNote, note);
    return;
  }
  is_in_warning_ = false;
  // An error kept Clang from the last function, where Kiln's own pragma ends (compiler/clang/threadgroup_variables.h).
  if (info.getID() == clang::diag::err_pragma_attribute_no_pop_eof) return;
  printer_->printer.HandleDiagnostic(level, info);
  // There may be a hundred of these notes for operators on numbers.
  if (info.getID() == clang::diag::note_ovl_builtin_candidate) return;
  if (dropped_keyword_.isValid() && info.getLocation() == dropped_keyword_) return;

  llvm::SmallString<128> message;
  info.FormatDiagnostic(message);
  if (is_lost_address_space(info, message)) return;
  Entry entry;
  entry.location = info.getLocation();
  entry.diagnostic.severity = level == clang::DiagnosticsEngine::Note ? Severity::kNote : Severity::kError;
  if (info.hasSourceManager())
    entry.has_position = set_position(info.getSourceManager(), info.getLocation(), entry.diagnostic);
  const clang::SourceManager* sources = info.hasSourceManager() ? &info.getSourceManager() : nullptr;
  entry.diagnostic.message =
      in_users_words(message.str().str(), info.getID(), sources, info.getLocation(), entry.diagnostic);
  if (level >= clang::DiagnosticsEngine::Error && entry.has_position)
    entry.diagnostic.message += operand_suffix(info, entry.diagnostic.message);
  if ((info.getID() == clang::diag::err_typecheck_addrof_temporary ||
       info.getID() == clang::diag::ext_typecheck_addrof_temporary) &&
      is_of_component(info))
    entry.diagnostic.message = "address of vector element requested";
  if (info.getID() == clang::diag::err_lvalue_reference_bind_to_temporary && is_of_component(info))
    entry.diagnostic.message = "non-const reference cannot bind to vector element";
  if (info.getID() == clang::diag::note_ovl_candidate_bad_value_category)
    explain_temporary(message, info.getSourceManager());
  if (message.str().ends_with("dereference the argument with *")) explain_pointer(message, info.getSourceManager());
  if (info.getID() == clang::diag::err_unavailable_message) note_unsupported(entry);
  if (info.getID() == clang::diag::err_ovl_no_viable_function_in_call) entry.is_call_without_match = true;
  if (info.getID() == clang::diag::err_undeclared_var_use ||
      info.getID() == clang::diag::err_undeclared_var_use_suggest) {
    bool is_dropped = false;
    entry.diagnostic.message = with_better_suggestion(std::move(entry.diagnostic.message), is_dropped);
    if (is_dropped) dropped_keyword_ = info.getLocation();
  }
  // Clang suggests any name in scope; drop suggestions of the device library's internal names.
  if (size_t suggestion = entry.diagnostic.message.find("; did you mean ");
      suggestion != std::string::npos &&
      quoted_in(entry.diagnostic.message, suggestion).find("__kiln") != std::string_view::npos)
    entry.diagnostic.message.resize(suggestion);
  if (info.getID() == clang::diag::err_pp_file_not_found && entry.has_position)
    entry.diagnostic.message += search_path_suffix(entry.diagnostic);
  // Static assertions of the device library are sentences written for its users.
  if (!entry.has_position) keep_assertion(entry.diagnostic.message);

  // The caller cannot see candidates in the device library, so only their numbers of arguments are reported.
  if (entry.diagnostic.severity == Severity::kNote && !entry.has_position)
    for (auto earlier = entries_.rbegin(); earlier != entries_.rend(); ++earlier) {
      if (earlier->diagnostic.severity == Severity::kNote) continue;
      std::optional<int> taken = arguments_taken(entry.diagnostic.message);
      if (taken)
        earlier->arguments_taken.insert(*taken);
      else
        earlier->is_call_without_match = false;
      break;
    }

  // A note in the caller's text gives its position to the preceding message, if that has none.
  if (entry.diagnostic.severity == Severity::kNote && entry.has_position)
    for (auto earlier = entries_.rbegin(); earlier != entries_.rend(); ++earlier) {
      if (earlier->diagnostic.severity == Severity::kNote) continue;
      if (!earlier->has_position) {
        std::string text = std::move(earlier->diagnostic.message);
        Severity severity = earlier->diagnostic.severity;
        bool is_unsupported = earlier->is_unsupported;
        *earlier = entry;
        earlier->is_unsupported = is_unsupported;
        earlier->diagnostic.message = std::move(text);
        earlier->diagnostic.severity = severity;
        return;
      }
      break;
    }
  entries_.push_back(std::move(entry));
  const Entry& added = entries_.back();
  if (added.has_position && added.diagnostic.severity == Severity::kError && info.getLocation().isMacroID())
    add_macro_note(info.getSourceManager(), info.getLocation(), Diagnostic(added.diagnostic));
}

// Whether the text of a temporary ends with the name of a vector's component or swizzle. Those of a class are
// variables.
bool names_component(llvm::StringRef text) {
  text = text.rtrim();
  if (text.ends_with("]")) text = text.take_front(text.rfind('[')).rtrim();
  const size_t dot = text.find_last_of(".>");
  if (dot == llvm::StringRef::npos || (text[dot] == '>' && !text.take_front(dot).ends_with("-"))) return false;
  const llvm::StringRef name = text.drop_front(dot + 1).ltrim();
  return !name.empty() && name.size() <= 4 &&
         (name.find_first_not_of("xyzw") == llvm::StringRef::npos ||
          name.find_first_not_of("rgba") == llvm::StringRef::npos);
}

// An argument of the call that begins the text, counted from 0; empty if there is none.
llvm::StringRef argument_of_call(llvm::StringRef text, unsigned index) {
  size_t begin = text.find('(');
  int depth = 0;
  for (size_t i = begin; i < text.size(); ++i) {
    if (llvm::StringRef("([{").contains(text[i])) ++depth;
    const bool ends = llvm::StringRef(")]}").contains(text[i]) && --depth == 0;
    if (!ends && (text[i] != ',' || depth != 1)) continue;
    if (index-- == 0) return text.slice(begin + 1, i);
    if (ends) break;
    begin = i;
  }
  return {};
}

// The argument that a candidate's note means: "… for 1st argument", after `before`.
llvm::StringRef argument_of_note(llvm::StringRef note, llvm::StringRef before, const clang::SourceManager& sources,
                                 clang::SourceLocation call) {
  const size_t at = note.find(before);
  unsigned number = 0;
  if (at == llvm::StringRef::npos || note.drop_front(at + before.size()).consumeInteger(10, number) || number == 0)
    return {};
  call = sources.getFileLoc(call);
  const llvm::StringRef text = sources.getBufferData(sources.getFileID(call)).drop_front(sources.getFileOffset(call));
  return argument_of_call(text, number - 1).trim();
}

// The name left of the `=` before this location; empty if there is another expression.
llvm::StringRef assigned_name(const clang::SourceManager& sources, clang::SourceLocation location) {
  location = sources.getFileLoc(location);
  llvm::StringRef text = sources.getBufferData(sources.getFileID(location)).take_front(sources.getFileOffset(location));
  text = text.rtrim();
  if (!text.consume_back("=")) return {};
  text = text.rtrim();
  const llvm::StringRef rest = text.rtrim("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
  return rest.rtrim().ends_with(".") || rest.rtrim().ends_with(">") ? llvm::StringRef() : text.drop_front(rest.size());
}

std::string pointer_hint(const KernelParameter& array) {
  return concat("; `", array.name, "` is a pointer to the elements: write ", array.name, kForOneElement);
}

bool DiagnosticCollector::is_of_component(const clang::Diagnostic& info) const {
  return unit_.dialect == Dialect::kMetal && llvm::any_of(info.getRanges(), [&](const clang::CharSourceRange& range) {
           return names_component(clang::Lexer::getSourceText(clang::CharSourceRange::getTokenRange(range.getAsRange()),
                                                              info.getSourceManager(), preprocessor_->getLangOpts()));
         });
}

// A note says that a candidate takes a reference, for which the argument is a temporary: tells what that means of the
// error before it.
void DiagnosticCollector::explain_temporary(llvm::StringRef note, const clang::SourceManager& sources) {
  auto error = std::find_if(entries_.rbegin(), entries_.rend(),
                            [](const Entry& entry) { return entry.diagnostic.severity == Severity::kError; });
  if (error == entries_.rend() || unit_.dialect != Dialect::kMetal) return;
  std::string& message = error->diagnostic.message;
  if (message.starts_with("no viable overloaded '") && message.ends_with("='")) {
    message = "expression is not assignable";
    return;
  }
  if (!message.starts_with("no matching function") || message.ends_with(kPassVariable)) return;
  if (names_component(argument_of_note(note, "expects an lvalue for ", sources, error->location)))
    message += kPassVariable;
}

// A note says that a candidate takes a number, for which the argument is a pointer.
void DiagnosticCollector::explain_pointer(llvm::StringRef note, const clang::SourceManager& sources) {
  auto error = std::find_if(entries_.rbegin(), entries_.rend(),
                            [](const Entry& entry) { return entry.diagnostic.severity == Severity::kError; });
  if (error == entries_.rend() || !error->has_position) return;
  std::string& message = error->diagnostic.message;
  if (!message.starts_with("no matching function") || message.ends_with(kForOneElement)) return;
  if (const KernelParameter* array = find_array(argument_of_note(note, "' for ", sources, error->location)))
    message += pointer_hint(*array);
}

const KernelParameter* DiagnosticCollector::find_array(llvm::StringRef name) const {
  auto is_array = [&](const KernelParameter& parameter) {
    if (parameter.name != std::string_view(name)) return false;
    return parameter.role == ParameterRole::kOutput ||
           (parameter.role == ParameterRole::kInput &&
            !llvm::is_contained(unit_.missing_names, concat(parameter.name, "_shape")));
  };
  auto found = llvm::find_if(unit_.parameters, is_array);
  return found == unit_.parameters.end() ? nullptr : &*found;
}

std::string DiagnosticCollector::search_path_suffix(const Diagnostic& missing) const {
  // The front end searches only for names written in the directive itself; it does not expand macros.
  char opener = missing.column > 0 && static_cast<size_t>(missing.column) <= missing.source_line.size()
                    ? missing.source_line[missing.column - 1]
                    : '\0';
  if (opener != '"' && opener != '<') return "; the name of a file must stand in its directive, in one piece";
  std::vector<std::string> folders = unit_.include_dirs;
  if (opener == '"' && !missing.file.empty()) {
    size_t slash = missing.file.rfind('/');
    folders.insert(folders.begin(), slash == std::string::npos ? "." : missing.file.substr(0, slash));
  }
  if (!folders.empty()) return " in " + join(folders, ", ");
  return opener == '"' ? "; text is in no folder, and `include_dirs` names none"
                       : "; <…> is looked for in `include_dirs`, which names no folder";
}

std::string DiagnosticCollector::operand_suffix(const clang::Diagnostic& info, std::string_view message) const {
  bool is_metal = unit_.dialect == Dialect::kMetal;
  auto parameter_of = [&](llvm::StringRef name) {
    auto found = std::find_if(unit_.parameters.begin(), unit_.parameters.end(), [&](const KernelParameter& parameter) {
      return parameter.name == std::string_view(name);
    });
    return found == unit_.parameters.end() ? nullptr : &*found;
  };
  // "assigning to 'float' from …", "cannot initialize a variable of type 'float' with …": of an element, no pointer.
  const bool is_conversion = (info.getID() == clang::diag::err_typecheck_convert_incompatible ||
                              info.getID() == clang::diag::err_init_conversion_failed) &&
                             !llvm::StringRef(quoted_in(message)).ends_with("*");
  if (info.getID() == clang::diag::err_typecheck_convert_incompatible && !is_conversion)
    if (const KernelParameter* array = find_array(assigned_name(info.getSourceManager(), info.getLocation()));
        array && array->role == ParameterRole::kOutput)
      return pointer_hint(*array);
  for (const clang::CharSourceRange& range : info.getRanges()) {
    llvm::StringRef operand = clang::Lexer::getSourceText(clang::CharSourceRange::getTokenRange(range.getAsRange()),
                                                          info.getSourceManager(), preprocessor_->getLangOpts());
    auto is_position = [&](const AttributeRow& row) { return row.is_vector && row.name == std::string_view(operand); };
    if (is_metal && std::any_of(kAttributes.begin(), kAttributes.end(), is_position))
      return concat("; it has three coordinates: write ", operand.str(), ".x");
    if (const KernelParameter* output = parameter_of(operand.split('[').first); output && holds_atomics(*output))
      return concat("; `", output->name, "` holds atomics, since `atomic_outputs` is set: use ",
                    "atomic_fetch_add_explicit or atomic_store_explicit");
    const KernelParameter* parameter = parameter_of(operand);
    if (!parameter) continue;
    const bool is_array = find_array(operand) != nullptr;
    if (is_array && (info.getID() == clang::diag::err_typecheck_invalid_operands || is_conversion))
      return pointer_hint(*parameter);
    if (parameter->role != ParameterRole::kInput || is_array ||
        (is_metal && info.getID() != clang::diag::err_typecheck_subscript_value))
      continue;
    return is_metal ? concat("; `", parameter->name, "` has no dimensions and is a number in a Metal body: write ",
                             parameter->name)
                    : concat("; `", parameter->name, "` has no dimensions and is a pointer in a CUDA body: write ",
                             parameter->name, "[0]");
  }
  return {};
}

void DiagnosticCollector::add_macro_note(const clang::SourceManager& sources, clang::SourceLocation location,
                                         const Diagnostic& error) {
  Entry note;
  note.diagnostic.severity = Severity::kNote;
  note.has_position = set_position(sources, sources.getSpellingLoc(location), note.diagnostic);
  bool is_elsewhere = note.diagnostic.text != error.text || note.diagnostic.line != error.line ||
                      note.diagnostic.column != error.column;
  if (!note.has_position || !is_elsewhere) return;
  note.diagnostic.message =
      concat("expanded from macro '",
             clang::Lexer::getImmediateMacroName(location, sources, preprocessor_->getLangOpts()).str(), "'");
  entries_.push_back(std::move(note));
}

std::string DiagnosticCollector::with_better_suggestion(std::string message, bool& is_dropped) const {
  llvm::StringRef name = quoted_in(message);
  size_t suggestion = message.find("; did you mean ");
  std::string_view suggested = suggestion == std::string::npos ? std::string_view() : quoted_in(message, suggestion);
  bool is_keyword =
      !suggested.empty() && preprocessor_->getIdentifierInfo(suggested)->isKeyword(preprocessor_->getLangOpts());
  is_dropped = is_keyword;

  bool is_metal = unit_.dialect == Dialect::kMetal;
  if (const char* equivalent = is_metal ? metal_equivalent(name) : cuda_equivalent(name))
    return concat("use of undeclared identifier '", name.str(), "'; in ", is_metal ? "Metal" : "CUDA", " it is '",
                  equivalent, "'");
  // Older versions of CUDA had these.
  if (!is_metal &&
      llvm::is_contained({"__shfl", "__shfl_up", "__shfl_down", "__shfl_xor", "__any", "__all", "__ballot"}, name))
    return concat("use of undeclared identifier '", name.str(), "'; use '", name.str(), "_sync', which takes a mask");
  // For these names Clang suggests the same name in the kernel's function, or the shape of another argument.
  auto is_in = [&](const std::vector<std::string>& names) {
    return std::find(names.begin(), names.end(), name.str()) != names.end();
  };
  auto is_name = [&](const AttributeRow& attribute) { return is_metal && attribute.name == std::string_view(name); };
  if (is_in(unit_.offered_names) || std::any_of(kAttributes.begin(), kAttributes.end(), is_name))
    return concat("use of undeclared identifier '", name.str(),
                  "'; only the body has it, where the body itself names it");
  if (is_in(unit_.missing_names))
    return concat("use of undeclared identifier '", name.str(), "'; only inputs with dimensions have a shape, strides ",
                  "and ndim");

  // The edit distance that Clang allows, and at most that of its own suggestion.
  unsigned max_distance = (static_cast<unsigned>(name.size()) + 2) / 3;
  if (!suggested.empty() && !is_keyword) max_distance = std::min(max_distance, name.edit_distance(suggested));
  std::string_view best;
  auto consider = [&](std::string_view candidate) {
    unsigned distance = name.edit_distance(candidate, /*AllowReplacements=*/true, max_distance + 1);
    if (distance > max_distance || (distance == max_distance && !best.empty())) return;
    max_distance = distance;
    best = candidate;
  };
  if (is_metal)
    for (const AttributeRow& attribute : kAttributes) consider(attribute.name);
  for (const std::string& offered : unit_.offered_names) consider(offered);
  if (best.empty() && !is_keyword) return message;
  std::string result = concat("use of undeclared identifier '", name.str(), "'");
  return best.empty() ? result : concat(result, "; did you mean '", best, "'?");
}

std::vector<Diagnostic> DiagnosticCollector::take() {
  // If the caller's text has an error, diagnostics elsewhere only repeat that the kernel cannot be compiled.
  auto is_in_caller_text = [](const Entry& entry) {
    return entry.has_position && entry.diagnostic.text != SourceText::kGenerated;
  };
  bool has_error_in_caller_text = std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return is_in_caller_text(entry) && entry.diagnostic.severity == Severity::kError;
  });
  for (Entry& entry : entries_) {
    if (!entry.is_call_without_match || entry.arguments_taken.empty()) continue;
    std::vector<std::string> counts;
    for (int count : entry.arguments_taken) counts.push_back(std::to_string(count));
    entry.diagnostic.message += concat("; it takes ", join(counts, " or "),
                                       counts == std::vector<std::string>{"1"} ? " argument" : " arguments");
  }
  std::vector<Diagnostic> result;
  for (Entry& entry : entries_)
    if (has_error_in_caller_text ? is_in_caller_text(entry)
                                 : entry.has_position || entry.diagnostic.severity != Severity::kNote)
      result.push_back(std::move(entry.diagnostic));
  entries_.clear();
  return result;
}

// Handles "'sync' is unavailable: why" for a function that the device library declares unavailable.
void DiagnosticCollector::note_unsupported(Entry& entry) {
  constexpr std::string_view kBefore = "' is unavailable: ", kNow = "': ";
  std::string& message = entry.diagnostic.message;
  size_t at = message.find(kBefore);
  if (at == std::string::npos || !message.ends_with(" on the CPU")) return;
  message.replace(at, kBefore.size(), kNow);
  // Name a template without its arguments.
  if (size_t angle = message.find('<'); angle < at) message.erase(angle, at - angle);
  entry.is_unsupported = true;
}

std::vector<Diagnostic> DiagnosticCollector::take_unsupported() {
  std::vector<Diagnostic> result;
  for (Entry& entry : entries_)
    if (entry.is_unsupported) result.push_back(std::move(entry.diagnostic));
  std::erase_if(entries_, [](const Entry& entry) { return entry.is_unsupported; });
  return result;
}

std::string DiagnosticCollector::take_log() {
  printer_->stream.flush();
  return std::move(log_);
}

namespace {

bool is_word_part(char c) { return isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// Replaces `from` where it is not part of a longer word.
void replace_words(std::string& message, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = message.find(from, at)) != std::string::npos;) {
    size_t end = at + from.size();
    bool begins = at == 0 || !is_word_part(from.front()) || !is_word_part(message[at - 1]);
    bool ends = end == message.size() || !is_word_part(from.back()) || !is_word_part(message[end]);
    if (begins && ends) message.replace(at, from.size(), to);
    at += begins && ends ? to.size() : 1;
  }
}

constexpr std::string_view kScalars[] = {"bool", "char", "uchar", "short", "ushort", "int",
                                         "uint", "long", "ulong", "half",  "bfloat", "float"};

// Whether Metal itself uses this name for a type.
bool is_metal_type(llvm::StringRef name) {
  if (name.ends_with("_t") && llvm::StringSwitch<bool>(name)
                                  .Cases("int8_t", "uint8_t", "int16_t", "uint16_t", "int32_t", "uint32_t", true)
                                  .Cases("int64_t", "uint64_t", "float16_t", "bfloat16_t", "complex64_t", true)
                                  .Cases("size_t", "ptrdiff_t", true)
                                  .Default(false))
    return true;
  name.consume_front("const ");
  name.consume_front("packed_");
  if (!name.empty() && name.back() >= '2' && name.back() <= '4') name = name.drop_back();
  return std::find(std::begin(kScalars), std::end(kScalars), std::string_view(name)) != std::end(kScalars);
}

// Reduces "'A' (aka 'B')" to the name that a user would write.
void choose_names(std::string& message) {
  constexpr std::string_view kAka = "' (aka '";
  for (size_t at = 0; (at = message.find(kAka, at)) != std::string::npos;) {
    size_t open = message.rfind('\'', at - 1), second = at + kAka.size(), close = message.find("')", second);
    if (open == std::string::npos || close == std::string::npos) return;
    std::string first = message.substr(open + 1, at - open - 1), meaning = message.substr(second, close - second);
    bool keeps_first = first == meaning || is_metal_type(first);
    bool keeps_second = first.find("decltype(") != std::string::npos || first.find("__kiln") != std::string::npos;
    if (keeps_first || keeps_second) message.replace(open + 1, close + 1 - open, (keeps_first ? first : meaning) + "'");
    at = open + 1 + (keeps_first || keeps_second ? 0 : at - open + 1);
  }
}

}  // namespace

std::string in_metal_words(std::string message) {
  for (auto [clang_word, metal_word] : {std::pair<std::string_view, std::string_view>("_Float16", "half"),
                                        {"__bf16", "bfloat"},
                                        {"unsigned char", "uchar"},
                                        {"unsigned short", "ushort"},
                                        {"unsigned int", "uint"},
                                        {"unsigned long", "ulong"},
                                        {"complex_t<float>", "complex64_t"}})
    replace_words(message, clang_word, metal_word);
  for (std::string_view scalar : kScalars)
    for (int n = 2; n <= 4; ++n) {
      std::string vector = concat(scalar, n);
      replace_words(message, concat("metal::vec<", scalar, ", ", n, ">"), vector);
      replace_words(message, concat("vec<", scalar, ", ", n, ">"), vector);
    }
  choose_names(message);
  return message;
}

}  // namespace kiln
