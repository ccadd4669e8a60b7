#include "core/settings.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "core/text.h"
#include "kiln/error.h"

namespace kiln {
namespace {

// What read_settings sees as the environment; it takes a plain function.
std::map<std::string, std::string> g_environment;

const char* look_up(const char* name) {
  auto found = g_environment.find(name);
  return found == g_environment.end() ? nullptr : found->second.c_str();
}

Settings read(std::map<std::string, std::string> environment) {
  g_environment = std::move(environment);
  return read_settings(&look_up);
}

std::string refusal(const std::string& variable, const std::string& value) {
  try {
    read({{variable, value}});
  } catch (const ValueError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(Settings, HaveDefaults) {
  Settings settings = read({});
  EXPECT_EQ(settings.cpu_threads, 0);
  EXPECT_EQ(settings.cpu_level, 4);
  EXPECT_EQ(settings.cpu_engine, "simd");
  EXPECT_EQ(settings.dump_folder, "");
  EXPECT_TRUE(settings.bounds);
  EXPECT_TRUE(settings.specialize);
  EXPECT_FALSE(settings.strict_device);
  EXPECT_EQ(settings.compile_bytes, uint64_t{4} << 30);
  EXPECT_EQ(settings.compile_seconds, 120);
  EXPECT_EQ(settings.compiler_path, "");
  EXPECT_EQ(settings.cache, CacheMode::kOn);
  EXPECT_EQ(settings.cache_directory, "");
  EXPECT_EQ(settings.cache_bytes, uint64_t{1} << 30);
  EXPECT_EQ(settings.bundle_path, "");
  EXPECT_EQ(settings.cuda_driver_path, "");
}

TEST(Settings, KeepTheirDefaultsWhereAVariableIsEmpty) {
  Settings settings = read({{"KILN_CPU_THREADS", ""}, {"KILN_BOUNDS", ""}, {"KILN_STRICT_DEVICE", ""}});
  EXPECT_EQ(settings.cpu_threads, 0);
  EXPECT_TRUE(settings.bounds);
  EXPECT_FALSE(settings.strict_device);
}

TEST(Settings, AreRead) {
  Settings settings = read({{"KILN_CPU_THREADS", "12"},
                            {"KILN_BOUNDS", "off"},
                            {"KILN_STRICT_DEVICE", "1"},
                            {"KILN_COMPILER", "/a b/compiler.so"}});
  EXPECT_EQ(settings.cpu_threads, 12);
  EXPECT_FALSE(settings.bounds);
  EXPECT_TRUE(settings.strict_device);
  EXPECT_EQ(settings.compiler_path, "/a b/compiler.so");
  EXPECT_TRUE(read({{"KILN_BOUNDS", "on"}}).bounds);
  EXPECT_FALSE(read({{"KILN_SPECIALIZE", "off"}}).specialize);
  EXPECT_EQ(read({{"KILN_CPU_ISA", "sse2"}}).cpu_level, 1);
  EXPECT_EQ(read({{"KILN_CPU_ISA", "sse4"}}).cpu_level, 2);
  EXPECT_EQ(read({{"KILN_CPU_ISA", "avx2"}}).cpu_level, 3);
  EXPECT_EQ(read({{"KILN_CPU_ISA", "avx512"}}).cpu_level, 4);
  EXPECT_EQ(read({{"KILN_CPU_ENGINE", "simd"}}).cpu_engine, "simd");
  EXPECT_EQ(read({{"KILN_CPU_ENGINE", "simd-always"}}).cpu_engine, "simd-always");
  EXPECT_EQ(read({{"KILN_PASSES", "-prefetch,-cluster-stores"}}).passes, "-prefetch,-cluster-stores");
  EXPECT_EQ(read({{"KILN_PASS_LIMIT", "0"}}).pass_limit, 0u);
  EXPECT_EQ(read({{"KILN_PASS_LIMIT", "12"}}).pass_limit, 12u);
  EXPECT_TRUE(read({{"KILN_VERIFY_PASSES", "on"}}).verify_passes);
  EXPECT_FALSE(read({{"KILN_VERIFY_PASSES", "off"}}).verify_passes);
  EXPECT_EQ(read({{"KILN_CPU_ENGINE", "scalar"}}).cpu_engine, "scalar");
  EXPECT_FALSE(read({{"KILN_STRICT_DEVICE", "0"}}).strict_device);
  EXPECT_EQ(read({{"KILN_CPU_THREADS", "1"}}).cpu_threads, 1);
  EXPECT_EQ(read({{"KILN_CPU_THREADS", "1024"}}).cpu_threads, 1024);
}

TEST(Settings, OfTheCacheAreRead) {
  Settings settings = read({{"KILN_CACHE", "read"},
                            {"KILN_CACHE_DIR", "/a b/cache"},
                            {"KILN_CACHE_SIZE", "3M"},
                            {"KILN_BUNDLE", "app.kiln"},
                            {"KILN_CUDA_DRIVER", "/opt/libcuda.so.1"}});
  EXPECT_EQ(settings.cache, CacheMode::kRead);
  EXPECT_EQ(settings.cache_directory, "/a b/cache");
  EXPECT_EQ(settings.cache_bytes, uint64_t{3} << 20);
  EXPECT_EQ(settings.bundle_path, "app.kiln");
  EXPECT_EQ(settings.cuda_driver_path, "/opt/libcuda.so.1");
  EXPECT_EQ(read({{"KILN_CACHE", "off"}}).cache, CacheMode::kOff);
  EXPECT_EQ(read({{"KILN_CACHE", "on"}}).cache, CacheMode::kOn);
  EXPECT_EQ(read({{"KILN_CACHE_SIZE", "1048576"}}).cache_bytes, uint64_t{1} << 20);
}

TEST(Settings, RefuseSizesThatAreNone) {
  for (const char* value : {"0", "-1", "1048575", "1023K", "M", "1MB", "1 M", "1m", "1.5G", "99999999999999999999",
                            "18446744073709551615T", "16777216T"})
    EXPECT_EQ(refusal("KILN_CACHE_SIZE", value), concat("environment variable KILN_CACHE_SIZE has the value `", value,
                                                        "`, expected a number of bytes such as 512M or 2G, from 1M"));
  EXPECT_EQ(read_byte_count("16777215T"), uint64_t{16777215} << 40);
  for (const char* value : {"ON", "1", "write"})
    EXPECT_EQ(refusal("KILN_CACHE", value),
              concat("environment variable KILN_CACHE has the value `", value, "`, expected on, read or off"));
}

TEST(Settings, RefuseNumbersOfThreadsThatAreNone) {
  for (const char* value : {"0", "-1", "1025", "two", "4x", " 4", "4 ", "+4", "1e2", "99999999999999999999"})
    EXPECT_EQ(refusal("KILN_CPU_THREADS", value), concat("environment variable KILN_CPU_THREADS has the value `", value,
                                                         "`, expected a number from 1 to 1024"));
}

TEST(Settings, OfCompilationsAreRead) {
  Settings settings = read({{"KILN_COMPILE_MEMORY_LIMIT", "512M"}, {"KILN_COMPILE_TIME_LIMIT", "2.5"}});
  EXPECT_EQ(settings.compile_bytes, uint64_t{512} << 20);
  EXPECT_EQ(settings.compile_seconds, 2.5);
  for (const char* value : {"0", "63M", "-1", "4GB"})
    EXPECT_EQ(refusal("KILN_COMPILE_MEMORY_LIMIT", value),
              concat("environment variable KILN_COMPILE_MEMORY_LIMIT has the value `", value,
                     "`, expected a number of bytes such as 512M or 2G, from 64M"));
  for (const char* value : {"0", "0.5", "-1", "nan", "1s", "86401"})
    EXPECT_EQ(refusal("KILN_COMPILE_TIME_LIMIT", value),
              concat("environment variable KILN_COMPILE_TIME_LIMIT has the value `", value,
                     "`, expected a number of seconds from 1 to 86400"));
}

TEST(Settings, RefuseSwitchesThatAreNeither) {
  for (const char* value : {"ON", "1", "true", "on "})
    EXPECT_EQ(refusal("KILN_BOUNDS", value),
              concat("environment variable KILN_BOUNDS has the value `", value, "`, expected on or off"));
  for (const char* value : {"AVX2", "avx", "3"})
    EXPECT_EQ(refusal("KILN_CPU_ISA", value), concat("environment variable KILN_CPU_ISA has the value `", value,
                                                     "`, expected sse2, sse4, avx2 or avx512"));
  for (const char* value : {"SIMD", "on", "always", "simd-"})
    EXPECT_EQ(refusal("KILN_CPU_ENGINE", value), concat("environment variable KILN_CPU_ENGINE has the value `", value,
                                                        "`, expected scalar, simd or simd-always"));
  for (const char* value : {"2", "on", "yes"})
    EXPECT_EQ(refusal("KILN_STRICT_DEVICE", value),
              concat("environment variable KILN_STRICT_DEVICE has the value `", value, "`, expected 0 or 1"));
}

TEST(Settings, OfTheLogAreRead) {
  auto bit = [](LogCategory category) { return 1u << static_cast<unsigned>(category); };
  EXPECT_EQ(read({}).log_categories, 0u);
  EXPECT_EQ(read({{"KILN_LOG", "cache"}}).log_categories, bit(LogCategory::kCache));
  EXPECT_EQ(read({{"KILN_LOG", "launch,passes"}}).log_categories,
            bit(LogCategory::kLaunch) | bit(LogCategory::kPasses));
  EXPECT_EQ(read({{"KILN_LOG", "all"}}).log_categories, 7u);
  EXPECT_EQ(read({{"KILN_LOG", "cache,all"}}).log_categories, 7u);
  for (const char* value : {"Cache", "cache,", ",cache", "cache launch", "on", "1", "-cache"})
    EXPECT_EQ(refusal("KILN_LOG", value),
              concat("environment variable KILN_LOG has the value `", value,
                     "`, expected passes, cache, launch, several of them such as cache,launch, or all"));
}

TEST(Settings, AreAllInTheTable) {
  // read_settings asks for what the table lists, and for nothing else.
  static std::vector<std::string> asked;
  asked.clear();
  read_settings([](const char* name) -> const char* {
    asked.emplace_back(name);
    return nullptr;
  });
  std::vector<std::string> listed;
  for (const SettingRow& row : kSettingRows) {
    listed.emplace_back(row.variable);
    EXPECT_FALSE(row.values.empty() || row.meaning.empty());
  }
  EXPECT_EQ(asked, listed);
}

}  // namespace
}  // namespace kiln
