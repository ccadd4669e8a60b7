#include "cache/safe_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/text.h"

namespace kiln {

std::string describe_failure(std::string_view what, const std::string& path) {
  return concat("cannot ", what, " ", printable(path), ": ", std::strerror(errno));
}

std::string why_not_trusted(FileSystem& files, int file, const std::string& path, struct stat& status) {
  if (files.fstat(file, &status) != 0) return describe_failure("look at", path);
  if (status.st_uid != geteuid() && status.st_uid != 0) return concat(printable(path), " belongs to another user");
  // Of a file with an access control list, the group's bits are what the list gives at most.
  if (status.st_mode & (S_IWGRP | S_IWOTH)) return concat(printable(path), " can be written by other users");
  return {};
}

bool read_all(FileSystem& files, int file, uint64_t offset, uint64_t size, std::vector<std::byte>& content) {
  content.resize(size);
  size_t done = 0;
  while (done < size) {
    ssize_t count = files.pread(file, content.data() + done, size - done, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    if (count == 0) {  // it has become shorter
      errno = EIO;
      return false;
    }
    done += static_cast<size_t>(count);
  }
  return true;
}

bool write_all(FileSystem& files, int file, const void* data, size_t bytes) {
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    ssize_t count = files.write(file, from, bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      if (count == 0) errno = ENOSPC;
      return false;
    }
    from += count;
    bytes -= static_cast<size_t>(count);
  }
  return true;
}

bool make_directories(FileSystem& files, const std::string& path) {
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    std::string part = path.substr(0, end);
    if (files.mkdirat(AT_FDCWD, part.c_str(), 0700) != 0 && errno != EEXIST) {
      // What is there already may lie in folders that this user cannot write, or on a file system that nobody can.
      int error = errno;
      if (end == std::string::npos || ::access(part.c_str(), F_OK) != 0) {
        errno = error;
        return false;
      }
    }
    if (end == std::string::npos) return true;
  }
}

}  // namespace kiln
