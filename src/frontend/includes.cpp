#include "frontend/includes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <utility>

#include "core/diagnostic.h"
#include "core/text.h"
#include "kiln/error.h"

namespace kiln {
namespace {

// An open file; -1 where it could not be opened.
class File {
 public:
  // What is no regular file (a pipe without a writer, say) does not stop.
  explicit File(const std::string& path) : descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~File() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

using FileIdentity = std::pair<dev_t, ino_t>;

// What came of an attempt to read a file.
struct ReadFile {
  std::string text;
  FileIdentity identity;
  std::string problem;      // what is wrong with it, behind "Expected `source` to be "; empty where it was read
  bool is_missing = false;  // nothing of this name, or a folder: an include is looked for elsewhere
};

bool is_metals_own(const IncludeName& name) {
  return !name.is_quoted && (name.name.starts_with("metal_") || name.name.starts_with("simd/"));
}

class KernelFileReader {
 public:
  KernelFileReader(std::string_view interface, KernelFiles& files) : interface_(interface), files_(files) {}

  // Returns the path as messages give it.
  std::string read_argument(TextArgument& argument, std::string_view name) {
    if (!argument.path) return {};
    if (first_invalid_utf8(*argument.path))
      throw ValueError(concat("[", interface_, "] Expected the path of `", name, "` to be UTF-8."));
    ReadFile file = read(*argument.path);
    if (!file.problem.empty())
      throw ValueError(concat("[", interface_, "] Expected `", name, "` to be ", file.problem));
    argument.text = std::move(file.text);
    return *argument.path;
  }

  // The files that `text` includes, and those that they include.
  std::vector<Inclusion> resolve(std::string_view text, SourceText kind, const std::string& path) {
    std::vector<Inclusion> inclusions = resolve_names(text, kind, path);
    // Files that are found meanwhile come to the end of the list.
    for (; resolved_ < files_.included.size(); ++resolved_) {
      // The list may move.
      std::string included_text = files_.included[resolved_].text, included_path = files_.included[resolved_].path;
      auto found = resolve_names(included_text, SourceText::kIncluded, included_path);
      files_.included[resolved_].inclusions = std::move(found);
    }
    return inclusions;
  }

 private:
  ReadFile read(const std::string& path) {
    ReadFile result;
    std::string shown = printable(path);
    auto fail = [&](const auto&... problem) {
      result.problem = concat(problem...);
      return std::move(result);
    };
    if (path.find('\0') != std::string::npos) {
      result.is_missing = true;
      return fail("a file but the path ", shown, " has a NUL.");
    }
    File file(path);
    struct stat status{};
    if (file.descriptor() < 0 || fstat(file.descriptor(), &status) != 0) {
      int error = errno;
      result.is_missing = error == ENOENT || error == ENOTDIR || error == ENAMETOOLONG;
      if (result.is_missing) return fail("a file but there is no ", shown, ".");
      return fail("a file that can be read but ", shown, " cannot: ", std::strerror(error), ".");
    }
    if (S_ISDIR(status.st_mode)) {
      result.is_missing = true;
      return fail("a file but ", shown, " is a folder.");
    }
    if (!S_ISREG(status.st_mode)) return fail("a file but ", shown, " is a device or a pipe.");
    result.identity = {status.st_dev, status.st_ino};
    if (by_identity_.contains(result.identity)) return result;  // it has been read
    // Some files do not tell their size.
    char buffer[65536];
    for (ssize_t count; (count = ::read(file.descriptor(), buffer, sizeof buffer)) != 0;) {
      if (count < 0) {
        if (errno == EINTR) continue;
        return fail("a file that can be read but ", shown, " cannot: ", std::strerror(errno), ".");
      }
      bytes_ += static_cast<size_t>(count);
      if (bytes_ > kMostFileBytes)
        return fail("a file that makes, with all others of the kernel, at most ", kMostFileBytes, " bytes but ", shown,
                    " is larger.");
      result.text.append(buffer, static_cast<size_t>(count));
    }
    if (std::optional<size_t> place = first_invalid_utf8(result.text))
      return fail("a file of UTF-8 but byte ", *place, " of ", shown, " is not.");
    if (result.text.starts_with("\xef\xbb\xbf")) result.text.erase(0, 3);  // a byte order mark
    return result;
  }

  std::vector<Inclusion> resolve_names(std::string_view text, SourceText kind, const std::string& path) {
    std::vector<Inclusion> inclusions;
    // Without a folder to look in there is nothing to find; most kernels are such.
    if (path.empty() && files_.include_dirs.empty()) return inclusions;
    TokenList tokens(text);
    for (const IncludeName& name : include_names(text, tokens)) {
      if (is_metals_own(name)) continue;
      std::optional<uint32_t> file;
      auto look = [&](const std::filesystem::path& folder) {
        if (!file) file = find((folder / name.name).string(), name, text, kind, path);
      };
      if (name.is_quoted && !path.empty()) look(std::filesystem::path(path).parent_path());
      for (const std::string& folder : files_.include_dirs) look(folder);
      if (file) inclusions.push_back({name.begin, name.end, *file});
    }
    return inclusions;
  }

  // Index of the included file, which is read where it is new; nothing where there is none.
  std::optional<uint32_t> find(const std::string& path, const IncludeName& name, std::string_view text, SourceText kind,
                               const std::string& from) {
    auto [known, is_new] = by_path_.try_emplace(path);
    if (!is_new) return known->second;
    ReadFile file = read(path);
    if (file.is_missing) return std::nullopt;
    if (!file.problem.empty()) refuse(file.problem, name, text, kind, from);
    auto [same, is_another] = by_identity_.try_emplace(file.identity, static_cast<uint32_t>(files_.included.size()));
    if (is_another) files_.included.push_back({path, std::move(file.text), {}});
    return known->second = same->second;
  }

  [[noreturn]] void refuse(const std::string& problem, const IncludeName& name, std::string_view text, SourceText kind,
                           const std::string& path) const {
    size_t line_begin = text.rfind('\n', name.begin) + 1;  // 0 where there is none
    std::vector<std::string_view> lines = split_lines(text.substr(0, text.find('\n', name.end)));
    Diagnostic diagnostic;
    diagnostic.message =
        concat("expected '", name.name, "' to be ", std::string_view(problem).substr(0, problem.size() - 1));
    diagnostic.text = kind;
    diagnostic.line = static_cast<int>(lines.size());
    diagnostic.column = static_cast<int>(name.begin - line_begin) + 1;
    diagnostic.source_line = lines.back();
    diagnostic.file = path;
    throw ValueError(concat("[", interface_, "] An included file cannot be used.\n", render(diagnostic)));
  }

  const std::string_view interface_;
  KernelFiles& files_;
  size_t bytes_ = 0;
  size_t resolved_ = 0;  // files whose own includes are known
  std::map<std::string, std::optional<uint32_t>, std::less<>> by_path_;
  std::map<FileIdentity, uint32_t> by_identity_;
};

}  // namespace

KernelFiles read_kernel_files(std::string_view interface, TextArgument& source, TextArgument& header,
                              std::vector<std::string> include_dirs) {
  KernelFiles files;
  files.include_dirs = std::move(include_dirs);
  KernelFileReader reader(interface, files);
  files.source_path = reader.read_argument(source, "source");
  files.header_path = reader.read_argument(header, "header");
  files.header_inclusions = reader.resolve(header.text, SourceText::kHeader, files.header_path);
  files.source_inclusions = reader.resolve(source.text, SourceText::kBody, files.source_path);
  return files;
}

std::vector<IncludeName> include_names(std::string_view text, const TokenList& tokens) {
  std::vector<IncludeName> names;
  for (size_t i = 1; i + 1 < tokens.size(); ++i) {
    if (!tokens[i].in_directive) continue;
    bool is_directive = (tokens[i].is("include") || tokens[i].is("import")) && tokens[i - 1].is("#");
    bool is_question = tokens[i].is("(") && tokens[i - 1].is("__has_include");
    const Token& next = tokens[i + 1];
    if ((!is_directive && !is_question) || !next.in_directive) continue;
    // A token that was cut by a splice stands elsewhere.
    if (next.text.data() < text.data() || next.text.data() >= text.data() + text.size()) continue;
    auto begin = static_cast<size_t>(next.text.data() - text.data());
    char closer = next.text[0] == '"' ? '"' : next.text[0] == '<' ? '>' : '\0';
    size_t end = closer ? text.find_first_of(concat(closer, '\n'), begin + 1) : std::string_view::npos;
    if (end == std::string_view::npos || text[end] == '\n') continue;
    names.push_back({begin, end + 1, closer == '"', text.substr(begin + 1, end - begin - 1)});
  }
  return names;
}

}  // namespace kiln
