// Every environment variable that Kiln reads, in one table.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kiln {

// What the cache on disk may do.
enum class CacheMode : uint8_t { kOff, kRead, kOn };

// What KILN_LOG may ask for (core/log.h), and the names there.
enum class LogCategory : uint8_t { kPasses, kCache, kLaunch };
inline constexpr std::array<std::string_view, 3> kLogCategories = {"passes", "cache", "launch"};

struct Settings {
  int cpu_threads = 0;  // 0: what the machine offers
  int cpu_level = 4;    // the highest level of x86-64 that is used
  std::string cpu_engine = "simd";
  std::string passes;                  // "-prefetch,-cluster-stores": those that are switched off
  std::optional<uint64_t> pass_limit;  // empty: every pass
  bool verify_passes = false;
  std::string dump_folder;  // empty: none
  bool bounds = true;       // the default of compile_options["bounds"]
  bool specialize = true;   // the default of compile_options["specialize"]
  bool strict_device = false;
  uint64_t compile_bytes = uint64_t{4} << 30;  // that a compilation may take
  double compile_seconds = 120;                // likewise
  std::string compiler_path;                   // empty: beside libkiln.so
  std::string nvrtc_path;                      // empty: looked for (`targets/cuda/nvrtc_library.h`)
  CacheMode cache = CacheMode::kOn;
  std::string cache_directory;               // empty: the user's (`cache/disk_cache.h`)
  uint64_t cache_bytes = uint64_t{1} << 30;  // the size that the cache is kept to
  std::string bundle_path;                   // empty: none
  std::string cuda_driver_path;              // empty: the system's (`targets/cuda/driver.cpp`)
  uint32_t log_categories = 0;               // a bit for each LogCategory
};

struct SettingRow {
  std::string_view variable;
  std::string_view values;  // for documentation
  std::string_view meaning;
};

inline constexpr std::array<SettingRow, 20> kSettingRows = {{
    {"KILN_CPU_THREADS", "a number from 1 to 1024",
     "how many threads a launch on the CPU uses, the caller's counted; by default as many as the process may use"},
    {"KILN_CPU_ISA", "sse2, sse4, avx2 or avx512",
     "the instruction set that compiled code uses at most, the processor permitting; by default avx512"},
    {"KILN_CPU_ENGINE", "scalar, simd or simd-always",
     "how the threads of a kernel are run on the CPU: one after the other, or a simdgroup at a time where the kernel "
     "and the processor (AVX2) permit it; simd leaves to the scalar engine what would take long to compile or is "
     "estimated to be faster there, "
     "simd-always does not; by default simd"},
    {"KILN_BOUNDS", "on or off",
     "whether accesses outside an argument are guarded where a kernel's compile_options do not say; by default on"},
    {"KILN_SPECIALIZE", "on or off",
     "whether shapes become constants in machine code where a kernel's compile_options do not say; by default on"},
    {"KILN_STRICT_DEVICE", "0 or 1",
     "1: a kernel that is asked to run on a device which this machine lacks raises an error and does not run on the "
     "CPU"},
    {"KILN_DUMP_DIR", "a path",
     "a folder in which each kernel that is compiled leaves its generated text, its code after each stage and the "
     "compiler's messages; it is made where it does not exist"},
    {"KILN_LOG", "passes, cache, launch, several of them such as cache,launch, or all",
     "what is written to standard error, a line for each event: which passes of the compiler fired and why others did "
     "not, where machine code was found and what is compiled, each launch; by default nothing"},
    {"KILN_PASSES", "names of passes, each after a minus sign, such as -prefetch,-cluster-stores",
     "passes of the compiler that are switched off; python -m kiln show --parts passes lists their names; results do "
     "not depend on them; by default none"},
    {"KILN_PASS_LIMIT", "a number from 0",
     "how many passes that can be switched off run in a compilation, in their order; the one at which a result becomes "
     "wrong is found by bisecting; by default all"},
    {"KILN_VERIFY_PASSES", "on or off",
     "whether LLVM IR is verified after each pass of the compiler, which takes time; by default off"},
    {"KILN_COMPILE_MEMORY_LIMIT", "a number of bytes such as 512M or 2G, from 64M",
     "the memory that compiling one kernel may take; beyond it compiling raises an UnsupportedError; by default 4G"},
    {"KILN_COMPILE_TIME_LIMIT", "a number of seconds from 1 to 86400",
     "the time that compiling one kernel may take; beyond it compiling raises an UnsupportedError; by default 120"},
    {"KILN_COMPILER", "a path", "the compiler library to open; by default libkiln_compiler.so beside libkiln.so"},
    {"KILN_NVRTC", "a path",
     "the library of NVIDIA's run-time compiler to open, which compiles CUDA bodies; by default libnvrtc.so of a "
     "toolkit or an installed package"},
    {"KILN_CACHE", "on, read or off",
     "whether machine code is kept on disk for later processes; read: what is there is used and nothing is changed; by "
     "default on"},
    {"KILN_CACHE_DIR", "a path",
     "the folder of the cache on disk; by default kiln in $XDG_CACHE_HOME, or in ~/.cache where that is not set"},
    {"KILN_CACHE_SIZE", "a number of bytes such as 512M or 2G, from 1M",
     "the size that the cache on disk is kept to; by default 1G"},
    {"KILN_BUNDLE", "a path", "a file of machine code that python -m kiln compile made; by default none"},
    {"KILN_CUDA_DRIVER", "a path", "NVIDIA's driver library to open; by default the system's libcuda.so.1"},
}};

/// The settings of this process, read when first asked for. Throws ValueError where a variable has no valid value.
const Settings& settings();

/// "512M": a number, and perhaps K, M, G or T for 2^10, 2^20, 2^30 or 2^40 times as many; nothing for other text and
/// for what does not fit.
std::optional<uint64_t> read_byte_count(std::string_view text);

/// Reads them from `lookup`, which returns null for a variable that is not set.
Settings read_settings(const char* (*lookup)(const char*));

}  // namespace kiln
