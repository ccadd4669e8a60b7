// Opening what will be executed.
//
// Who can write a file of machine code decides what this process does. So nothing is used but what this user or root
// owns and nobody else can write, and that is asked of the open descriptor: a name may mean another file a moment
// later. Entries and the cache's own folder are never reached through links. A checksum cannot replace this, for
// whoever writes the code can write its checksum.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cache/file_system.h"

namespace kiln {

class FileDescriptor {
 public:
  FileDescriptor() = default;
  FileDescriptor(FileSystem& files, int number) : files_(&files), number_(number) {}
  FileDescriptor(FileDescriptor&& other) noexcept : files_(other.files_), number_(std::exchange(other.number_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(files_, other.files_);
    std::swap(number_, other.number_);
    return *this;
  }
  ~FileDescriptor() {
    if (number_ >= 0) files_->close(number_);
  }

  int get() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }

 private:
  FileSystem* files_ = nullptr;
  int number_ = -1;
};

/// "cannot open /a/b: Permission denied", of errno.
std::string describe_failure(std::string_view what, const std::string& path);

/// Why what is open must not be used: "/a/b belongs to another user", "/a/b can be written by other users". Empty where
/// it may. `path` is for the message. An error of fstat is a reason too.
std::string why_not_trusted(FileSystem& files, int file, const std::string& path, struct stat& status);

/// The whole content. False, and errno, where it cannot be read or changes meanwhile.
bool read_all(FileSystem& files, int file, uint64_t offset, uint64_t size, std::vector<std::byte>& content);

/// Writes all bytes. False, and errno, where it cannot.
bool write_all(FileSystem& files, int file, const void* data, size_t bytes);

/// Makes a folder and those above it, with rights for this user only, where they are missing. False, and errno.
bool make_directories(FileSystem& files, const std::string& path);

}  // namespace kiln
