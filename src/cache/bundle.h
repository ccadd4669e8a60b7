// Machine code that was compiled ahead, in one file: for machines that have no compiler, or shall not wait for it.
//
//   "KILNBNDL" | checksum | version | size of the head | compilers | number of entries | (id | offset | size) ... |
//   entries
//
// The compilers are one text of a line for each. Numbers, texts and the checksum are as in an entry
// (`cache/code_entry.h`); the checksum is over the head behind it. Each entry has its own checksum, which is checked
// when it is used. A bundle says which compilers made it, Kiln's and NVRTC, so that the ids of kernels can be told
// where there is no compiler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cache/code_entry.h"
#include "cache/file_system.h"

namespace kiln {

class Bundle {
 public:
  /// Reads the head. Throws std::runtime_error with the reason where the file cannot be used: it cannot be read, is
  /// damaged, or is not safe from other users.
  explicit Bundle(std::string path, FileSystem& files = FileSystem::real());

  const std::string& path() const { return path_; }
  /// What identified the compilers that made what it has.
  const std::vector<std::string>& compilers() const { return compilers_; }
  size_t size() const { return places_.size(); }

  /// The entry of this id; nothing where there is none, and where it is damaged or cannot be read.
  std::optional<CodeEntry> load(const std::string& id) const;

 private:
  struct Place {
    uint64_t offset, bytes;
  };

  const std::string path_;
  FileSystem& files_;
  std::vector<std::string> compilers_;
  std::map<std::string, Place, std::less<>> places_;
};

/// Writes a bundle of encoded entries by id; replaces a file of that name. Throws
/// std::runtime_error.
void write_bundle(const std::string& path, const std::vector<std::string>& compilers,
                  const std::map<std::string, std::vector<std::byte>>& entries, FileSystem& files = FileSystem::real());

}  // namespace kiln
