// A stand-in for NVIDIA's driver, for machines without a GPU. It records which of its functions are called, keeps
// "device memory" in this process, and fails as tests tell it to. It runs no kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace kiln {

struct FakeLaunch {
  unsigned grid[3], block[3], dynamic_bytes;
  void* stream;
  void* context;  // that was current
  std::vector<std::byte> block_of_arguments;
};

struct FakeDriver {
  // What it is
  int version = 13000;
  int devices = 2;
  int major = 9, minor = 0;
  int has_memory_pools = 1;
  int most_threads = 1024, static_memory = 0, registers = 32;
  std::map<std::string, int> status;  // what a function returns; 0 where it does its work

  // What it has met
  std::vector<std::string> calls;  // but for those that ask for the current context and for errors' texts
  std::vector<FakeLaunch> launches;
  std::vector<std::string> capture_modes;  // while code was loaded
  std::string linked, loaded, entry;       // the last code and the name in it
  size_t allocated = 0, freed = 0;
  std::map<int, int> attributes;  // of functions, that were set

  /// Forgets what it has met.
  void clear() {
    calls.clear();
    launches.clear();
    capture_modes.clear();
    attributes.clear();
    linked = loaded = entry = {};
    allocated = freed = 0;
  }
};

// The one of this process; the library exports it by this name.
using FakeDriverFunction = FakeDriver* (*)();
inline constexpr const char* kFakeDriverFunction = "kiln_fake_driver";

}  // namespace kiln
