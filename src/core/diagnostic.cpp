#include "core/diagnostic.h"

#include <algorithm>

#include "core/text.h"

namespace kiln {

std::string_view name_of(SourceText text) {
  switch (text) {
    case SourceText::kBody: return "source";
    case SourceText::kHeader: return "header";
    case SourceText::kGenerated: return "generated";
    case SourceText::kIncluded: return "included";
  }
  return "";
}

std::string_view name_of(Severity severity) {
  switch (severity) {
    case Severity::kError: return "error";
    case Severity::kWarning: return "warning";
    case Severity::kNote: return "note";
  }
  return "";
}

std::string render(const Diagnostic& d) {
  std::string out;
  if (d.line > 0) {
    out += concat(d.file.empty() ? name_of(d.text) : printable(d.file), ":", d.line, ":");
    if (d.column > 0) out += concat(d.column, ":");
    out += " ";
  }
  out += concat(name_of(d.severity), ": ", printable(d.message));
  if (d.line == 0 || d.source_line.empty()) return out;
  out += concat("\n  ", printable(d.source_line));
  if (d.column > 0 && static_cast<size_t>(d.column) <= d.source_line.size() + 1) {
    // Tabs stay tabs, so that the caret stands below its column whatever a tab's width is; a character of several
    // bytes counts once.
    std::string blank;
    for (int i = 0; i < d.column - 1; ++i) {
      char c = d.source_line[i];
      bool continues = (static_cast<unsigned char>(c) & 0xc0) == 0x80;
      if (!continues) blank += c == '\t' ? '\t' : ' ';
    }
    out += concat("\n  ", blank, "^");
  }
  return out;
}

std::string render(const CompileRemark& remark) {
  std::string position;
  if (remark.line > 0)
    position = concat(remark.file.empty() ? name_of(remark.text) : printable(remark.file), ":", remark.line, ": ");
  return concat(position, remark.pass, ": ", remark.message);
}

std::string summarize(std::string_view interface_name, std::string_view kernel_name,
                      const std::vector<Diagnostic>& diagnostics) {
  auto is_error = [](const Diagnostic& d) { return d.severity == Severity::kError; };
  auto first = std::find_if(diagnostics.begin(), diagnostics.end(), is_error);
  auto count = std::count_if(diagnostics.begin(), diagnostics.end(), is_error);
  std::string out = concat("[", interface_name, "] `", printable(kernel_name), "` does not compile.\n");
  if (first == diagnostics.end()) return out + "The compiler gave no reason.";
  out += render(*first);
  for (auto note = first + 1; note != diagnostics.end() && note->severity == Severity::kNote; ++note)
    out += concat("\n", render(*note));
  if (count > 1) out += concat("\n", count - 1, count == 2 ? " more error." : " more errors.");
  return out;
}

Diagnostic diagnostic_at(const KernelUnit& unit, int generated_line, std::string message) {
  Diagnostic diagnostic;
  diagnostic.message = std::move(message);
  SourcePosition position = unit.source_map.locate(generated_line);
  diagnostic.text = position.text;
  diagnostic.line = position.line;
  diagnostic.file = unit.path_of(position);
  bool is_included = position.text == SourceText::kIncluded;
  std::vector<std::string_view> lines = split_lines(is_included ? unit.included_files[position.file].text : unit.text);
  int line = is_included ? position.line : generated_line;
  if (line >= 1 && static_cast<size_t>(line) <= lines.size())
    diagnostic.source_line = lines[static_cast<size_t>(line) - 1];
  return diagnostic;
}

std::string unsupported_message(const KernelUnit& unit, const Diagnostic& diagnostic) {
  return concat("[", unit.dialect == Dialect::kMetal ? "metal_kernel" : "cuda_kernel", "] `", printable(unit.name),
                "` uses what is not supported.\n", render(diagnostic));
}

}  // namespace kiln
