// A cache in a folder of its own, entries to put there, and a file system that fails or ends the process on demand.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "cache/code_entry.h"
#include "cache/disk_cache.h"
#include "core/sha256.h"
#include "core/text.h"

namespace kiln {

/// The id of the n-th entry.
inline std::string test_id(int n) {
  Sha256 hash;
  hash.add(static_cast<uint64_t>(n));
  return hash.hex();
}

inline CodeEntry test_entry(int n, size_t binary_bytes = 200) {
  CodeEntry entry;
  entry.compiler = "compiler 1";
  entry.target = {DeviceKind::kCpu, "x86-64-v3"};
  entry.kernel = concat("kernel ", n);
  entry.source = concat("// the text of ", n);
  entry.engine = "scalar";
  entry.engine_reason = "the only engine";
  entry.written_inputs = {0, 3};
  entry.compile_ms = 12.5 + n;
  for (size_t i = 0; i < binary_bytes; ++i)
    entry.binary.push_back(static_cast<std::byte>(i * 7 + static_cast<size_t>(n)));
  return entry;
}

inline bool same(const CodeEntry& a, const CodeEntry& b) {
  return a.compiler == b.compiler && a.target == b.target && a.kernel == b.kernel && a.source == b.source &&
         a.engine == b.engine && a.engine_reason == b.engine_reason && a.compile_ms == b.compile_ms &&
         a.written_inputs == b.written_inputs && a.binary == b.binary;
}

inline std::vector<std::byte> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> bytes((std::istreambuf_iterator<char>(file)), {});
  const auto* data = reinterpret_cast<const std::byte*>(bytes.data());
  return {data, data + bytes.size()};
}

inline void write_file(const std::string& path, const std::vector<std::byte>& bytes) {
  // A new file: some file systems write one that was truncated to the disk at once.
  std::filesystem::remove(path);
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  file.close();
  ASSERT_TRUE(file.good()) << path;
  chmod(path.c_str(), 0600);
}

/// Runs `function` in a child process and returns its wait status; an assertion that fails there ends it with 1.
inline int in_child(const std::function<void()>& function) {
  pid_t child = fork();
  if (child == 0) {
    alarm(60);
    function();
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

inline bool ended_well(int status) { return WIFEXITED(status) && WEXITSTATUS(status) == 0; }
inline bool was_killed(int status) { return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL; }

// Counts the calls that are made of it, those that only read too, and does something at one of them. Its clock stands.
class FaultyFiles : public FileSystem {
 public:
  enum class Fault { kNone, kKill, kError, kErrorsFromThen };
  Fault fault = Fault::kNone;
  int at = -1;                // which call, from 0
  int error = EIO;            // for kError and kErrorsFromThen
  bool only_writing = false;  // count and fail only calls that change something
  int calls = 0;
  // Whose files are: of those that these bits of the mode and this kind match.
  mode_t foreign_kind = 0;      // S_IFREG, S_IFDIR; 0: none
  int64_t now = 2'000'000'000;  // what the clock says, in seconds since 1970

  int openat(int directory, const char* path, int flags, mode_t mode) override {
    return fails(flags & (O_CREAT | O_WRONLY)) ? -1 : FileSystem::openat(directory, path, flags, mode);
  }
  int fstat(int file, struct stat* out) override {
    if (fails(false)) return -1;
    int result = FileSystem::fstat(file, out);
    if (result == 0 && foreign_kind && (out->st_mode & S_IFMT) == foreign_kind) out->st_uid = geteuid() + 1;
    return result;
  }
  ssize_t pread(int file, void* data, size_t bytes, off_t offset) override {
    return fails(false) ? -1 : FileSystem::pread(file, data, bytes, offset);
  }
  ssize_t write(int file, const void* data, size_t bytes) override {
    // In pieces, so that each lies between two steps.
    size_t piece = std::min<size_t>(bytes, 100);
    return fails(true) ? -1 : FileSystem::write(file, data, piece);
  }
  int fchmod(int file, mode_t mode) override { return fails(true) ? -1 : FileSystem::fchmod(file, mode); }
  int flock(int file, int operation) override { return fails(true) ? -1 : FileSystem::flock(file, operation); }
  int futimens(int file, const struct timespec times[2]) override {
    return fails(true) ? -1 : FileSystem::futimens(file, times);
  }
  int mkdirat(int directory, const char* path, mode_t mode) override {
    return fails(true) ? -1 : FileSystem::mkdirat(directory, path, mode);
  }
  int linkat(int directory, const char* from, const char* to) override {
    return fails(true) ? -1 : FileSystem::linkat(directory, from, to);
  }
  int renameat(int directory, const char* from, const char* to) override {
    return fails(true) ? -1 : FileSystem::renameat(directory, from, to);
  }
  int unlinkat(int directory, const char* name) override {
    return fails(true) ? -1 : FileSystem::unlinkat(directory, name);
  }
  int clock_gettime(struct timespec* time) override {
    *time = {static_cast<time_t>(now), 0};
    return 0;
  }

 private:
  bool fails(bool writes) {
    if (only_writing && !writes) return false;
    int now = calls++;
    if (fault == Fault::kNone || now < at || (now > at && fault != Fault::kErrorsFromThen)) return false;
    if (fault == Fault::kKill) raise(SIGKILL);
    errno = error;
    return true;
  }
};

class CacheTest : public testing::Test {
 protected:
  CacheTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "kiln-cache-test-XXXXXX").string();
    folder_ = mkdtemp(pattern.data()) ? pattern : "";
  }
  ~CacheTest() override {
    std::error_code ignored;
    if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
  }
  void SetUp() override { ASSERT_NE(folder_, "") << std::strerror(errno); }

  DiskCacheOptions options() const { return {CacheMode::kOn, root(), uint64_t{1} << 30}; }
  /// The cache's folder; missing at first.
  std::string root() const { return folder_ + "/cache"; }
  /// Where the n-th entry is.
  std::string path(int n) const { return root() + "/v1/" + test_id(n); }

  std::vector<std::string> temporary_files() const {
    std::vector<std::string> found;
    if (std::filesystem::exists(root() + "/v1"))
      for (const auto& item : std::filesystem::directory_iterator(root() + "/v1"))
        if (item.path().filename().string().starts_with(".tmp-")) found.push_back(item.path().filename().string());
    return found;
  }

  /// Whether a process that has nothing in memory finds the n-th entry as it was stored.
  bool is_there(int n, size_t binary_bytes = 200) const {
    DiskCache cache(options());
    std::optional<CodeEntry> found = cache.load(test_id(n));
    EXPECT_TRUE(!found || same(*found, test_entry(n, binary_bytes))) << "an entry of other content";
    return found.has_value();
  }

  std::string folder_;
};

}  // namespace kiln
