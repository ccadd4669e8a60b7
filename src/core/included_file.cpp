#include "core/included_file.h"

#include <charconv>

#include "core/text.h"

namespace kiln {
namespace {

constexpr std::string_view kPrefix = "kiln_include_";

}  // namespace

std::string included_name(size_t file) { return concat(kPrefix, file); }

std::optional<size_t> included_index(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  size_t index;
  auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return index;
}

std::string with_included_names(std::string_view text, const std::vector<Inclusion>& inclusions) {
  std::string result;
  size_t copied = 0;
  for (const Inclusion& inclusion : inclusions) {
    result += text.substr(copied, inclusion.begin - copied);
    result += concat('"', included_name(inclusion.file), '"');
    copied = inclusion.end;
  }
  return result += text.substr(copied);
}

}  // namespace kiln
