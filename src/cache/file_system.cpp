#include "cache/file_system.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdio>
#include <ctime>

namespace kiln {

FileSystem& FileSystem::real() {
  static FileSystem* instance = new FileSystem;  // threads may still use it when static objects are destroyed
  return *instance;
}

int FileSystem::openat(int directory, const char* path, int flags, mode_t mode) {
  return ::openat(directory, path, flags | O_CLOEXEC, mode);
}
int FileSystem::close(int file) { return ::close(file); }
int FileSystem::fstat(int file, struct stat* out) { return ::fstat(file, out); }
ssize_t FileSystem::pread(int file, void* data, size_t bytes, off_t offset) {
  return ::pread(file, data, bytes, offset);
}
ssize_t FileSystem::write(int file, const void* data, size_t bytes) { return ::write(file, data, bytes); }
int FileSystem::fchmod(int file, mode_t mode) { return ::fchmod(file, mode); }
int FileSystem::flock(int file, int operation) { return ::flock(file, operation); }
int FileSystem::futimens(int file, const struct timespec times[2]) { return ::futimens(file, times); }
int FileSystem::mkdirat(int directory, const char* path, mode_t mode) { return ::mkdirat(directory, path, mode); }
int FileSystem::linkat(int directory, const char* from, const char* to) {
  return ::linkat(directory, from, directory, to, 0);
}
int FileSystem::renameat(int directory, const char* from, const char* to) {
  return ::renameat(directory, from, directory, to);
}
int FileSystem::unlinkat(int directory, const char* name) { return ::unlinkat(directory, name, 0); }
int FileSystem::clock_gettime(struct timespec* now) { return ::clock_gettime(CLOCK_REALTIME, now); }

}  // namespace kiln
