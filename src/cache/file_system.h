// The calls of the operating system that the cache makes, so that tests can let each of them fail, or end the process
// before it, and can give files to other users without being root. Each is the system's function of its name: -1 and
// errno where it fails.
#pragma once

#include <dirent.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>

namespace kiln {

class FileSystem {
 public:
  virtual ~FileSystem() = default;

  /// The operating system's own.
  static FileSystem& real();

  virtual int openat(int directory, const char* path, int flags, mode_t mode);
  virtual int close(int file);
  virtual int fstat(int file, struct stat* out);
  virtual ssize_t pread(int file, void* data, size_t bytes, off_t offset);
  virtual ssize_t write(int file, const void* data, size_t bytes);
  virtual int fchmod(int file, mode_t mode);
  virtual int flock(int file, int operation);
  virtual int futimens(int file, const struct timespec times[2]);
  virtual int mkdirat(int directory, const char* path, mode_t mode);
  virtual int linkat(int directory, const char* from, const char* to);
  virtual int renameat(int directory, const char* from, const char* to);
  virtual int unlinkat(int directory, const char* name);
  virtual int clock_gettime(struct timespec* now);
};

}  // namespace kiln
