#include "core/settings.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <iterator>
#include <limits>

#include "core/text.h"
#include "kiln/error.h"

namespace kiln {
namespace {

[[noreturn]] void refuse(const SettingRow& row, std::string_view value) {
  throw ValueError(
      concat("environment variable ", row.variable, " has the value `", value, "`, expected ", row.values));
}

bool read_switch(const SettingRow& row, std::string_view value, std::string_view on, std::string_view off) {
  if (value != on && value != off) refuse(row, value);
  return value == on;
}

// "cache,launch" or "all".
uint32_t read_log_categories(const SettingRow& row, std::string_view value) {
  uint32_t categories = 0;
  for (std::string_view rest = value;;) {
    std::string_view name = rest.substr(0, rest.find(','));
    const auto* known = std::find(kLogCategories.begin(), kLogCategories.end(), name);
    if (name == "all")
      categories |= (1u << kLogCategories.size()) - 1;
    else if (known != kLogCategories.end())
      categories |= 1u << (known - kLogCategories.begin());
    else
      refuse(row, value);
    if (name.size() == rest.size()) return categories;
    rest.remove_prefix(name.size() + 1);
  }
}

}  // namespace

std::optional<uint64_t> read_byte_count(std::string_view text) {
  uint64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  int shift = unit.empty() ? 0 : unit == "K" ? 10 : unit == "M" ? 20 : unit == "G" ? 30 : unit == "T" ? 40 : -1;
  if (error != std::errc() || shift < 0 || number > std::numeric_limits<uint64_t>::max() >> shift) return std::nullopt;
  return number << shift;
}

Settings read_settings(const char* (*lookup)(const char*)) {
  Settings settings;
  for (const SettingRow& row : kSettingRows) {
    // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): the table's names are literals
    const char* text = lookup(row.variable.data());
    if (!text || !*text) continue;
    std::string_view value(text);
    if (row.variable == "KILN_CPU_THREADS") {
      auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), settings.cpu_threads);
      if (error != std::errc() || end != value.data() + value.size() || settings.cpu_threads < 1 ||
          settings.cpu_threads > 1024)
        refuse(row, value);
    } else if (row.variable == "KILN_CPU_ISA") {
      constexpr std::string_view kNames[] = {"sse2", "sse4", "avx2", "avx512"};
      auto name = std::find(std::begin(kNames), std::end(kNames), value);
      if (name == std::end(kNames)) refuse(row, value);
      settings.cpu_level = 1 + static_cast<int>(name - kNames);
    } else if (row.variable == "KILN_CPU_ENGINE") {
      if (value != "scalar" && value != "simd" && value != "simd-always") refuse(row, value);
      settings.cpu_engine = value;
    } else if (row.variable == "KILN_LOG") {
      settings.log_categories = read_log_categories(row, value);
    } else if (row.variable == "KILN_PASSES") {
      // `-name,-name`; the compiler knows the names.
      for (std::string_view rest = value; !rest.empty();) {
        std::string_view name = rest.substr(0, rest.find(','));
        if (name.size() < 2 || name[0] != '-' || name.size() + 1 == rest.size()) refuse(row, value);
        rest.remove_prefix(std::min(rest.size(), name.size() + 1));
      }
      settings.passes = value;
    } else if (row.variable == "KILN_PASS_LIMIT") {
      uint64_t limit = 0;
      auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), limit);
      if (error != std::errc() || end != value.data() + value.size()) refuse(row, value);
      settings.pass_limit = limit;
    } else if (row.variable == "KILN_VERIFY_PASSES") {
      settings.verify_passes = read_switch(row, value, "on", "off");
    } else if (row.variable == "KILN_BOUNDS") {
      settings.bounds = read_switch(row, value, "on", "off");
    } else if (row.variable == "KILN_SPECIALIZE") {
      settings.specialize = read_switch(row, value, "on", "off");
    } else if (row.variable == "KILN_STRICT_DEVICE") {
      settings.strict_device = read_switch(row, value, "1", "0");
    } else if (row.variable == "KILN_DUMP_DIR") {
      settings.dump_folder = value;
    } else if (row.variable == "KILN_COMPILE_MEMORY_LIMIT") {
      std::optional<uint64_t> bytes = read_byte_count(value);
      if (!bytes || *bytes < uint64_t{64} << 20) refuse(row, value);
      settings.compile_bytes = *bytes;
    } else if (row.variable == "KILN_COMPILE_TIME_LIMIT") {
      auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), settings.compile_seconds);
      if (error != std::errc() || end != value.data() + value.size() ||
          !(settings.compile_seconds >= 1 && settings.compile_seconds <= 86400))
        refuse(row, value);
    } else if (row.variable == "KILN_COMPILER") {
      settings.compiler_path = value;
    } else if (row.variable == "KILN_NVRTC") {
      settings.nvrtc_path = value;
    } else if (row.variable == "KILN_CACHE") {
      if (value != "on" && value != "read" && value != "off") refuse(row, value);
      settings.cache = value == "on" ? CacheMode::kOn : value == "read" ? CacheMode::kRead : CacheMode::kOff;
    } else if (row.variable == "KILN_CACHE_DIR") {
      settings.cache_directory = value;
    } else if (row.variable == "KILN_CACHE_SIZE") {
      std::optional<uint64_t> bytes = read_byte_count(value);
      if (!bytes || *bytes < uint64_t{1} << 20) refuse(row, value);
      settings.cache_bytes = *bytes;
    } else if (row.variable == "KILN_BUNDLE") {
      settings.bundle_path = value;
    } else if (row.variable == "KILN_CUDA_DRIVER") {
      settings.cuda_driver_path = value;
    }
  }
  return settings;
}

const Settings& settings() {
  // Never destroyed: threads may still ask when static objects are.
  static const Settings* instance =
      new Settings(read_settings([](const char* name) -> const char* { return std::getenv(name); }));
  return *instance;
}

}  // namespace kiln
