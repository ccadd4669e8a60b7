#include "cache/disk_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <stdexcept>
#include <thread>

#include "core/text.h"

namespace kiln {
namespace {

// The version of the format is in the folder's name too: another version has another folder.
constexpr const char* kEntriesFolder = "v1";
constexpr std::string_view kTemporaryPrefix = ".tmp-";
constexpr const char* kHits = "hits";
constexpr const char* kMisses = "misses";
constexpr int64_t kUsedAgainAfterSeconds = 3600;
// A sweep after this part of the limit was written; it leaves an eighth of the limit free.
constexpr double kSweepsPerLimit = 16;

std::string temporary_name() {
  uint64_t random = 0;
  if (getrandom(&random, sizeof random, GRND_NONBLOCK) != static_cast<ssize_t>(sizeof random))
    random = reinterpret_cast<uintptr_t>(&random) ^ static_cast<uint64_t>(getpid());
  char digits[17] = {};
  std::to_chars(digits, digits + 16, random, 16);
  return concat(kTemporaryPrefix, getpid(), "-", digits);
}

}  // namespace

DiskCacheOptions DiskCacheOptions::of_process() {
  DiskCacheOptions options;
  options.mode = settings().cache;
  options.limit_bytes = settings().cache_bytes;
  options.directory = settings().cache_directory;
  auto below = [&](const char* variable, std::string_view name) {
    const char* folder = std::getenv(variable);
    // A relative one is to be ignored, by the XDG specification.
    if (options.directory.empty() && folder && *folder == '/') options.directory = concat(folder, "/", name);
  };
  below("XDG_CACHE_HOME", "kiln");
  below("HOME", ".cache/kiln");
  return options;
}

DiskCache::DiskCache(DiskCacheOptions options, FileSystem& files)
    : options_([&] {
        // The program may change its working directory.
        if (!options.directory.empty() && options.directory.front() != '/') {
          std::unique_ptr<char, decltype(&std::free)> current(getcwd(nullptr, 0), &std::free);
          options.directory = current ? concat(current.get(), "/", options.directory) : std::string();
        }
        while (options.directory.size() > 1 && options.directory.back() == '/') options.directory.pop_back();
        return std::move(options);
      }()),
      files_(files) {}

std::string DiskCache::path(std::string_view name) const {
  return name.empty() ? concat(options_.directory, "/", kEntriesFolder)
                      : concat(options_.directory, "/", kEntriesFolder, "/", name);
}

FileDescriptor DiskCache::open_entries(bool make, std::string& problem, int* error) const {
  if (options_.directory.empty()) {
    problem = "there is no folder for it: neither KILN_CACHE_DIR nor XDG_CACHE_HOME nor HOME says one";
    return {};
  }
  const std::string& root = options_.directory;
  auto open = [&](int directory, const char* name, const std::string& shown, int flags, auto make_it) {
    FileDescriptor folder(files_, files_.openat(directory, name, O_RDONLY | O_DIRECTORY | flags, 0));
    if (!folder && errno == ENOENT && make) {
      if (!make_it() && errno != EEXIST) {
        if (error) *error = errno;
        problem = describe_failure("make", shown);
        return FileDescriptor();
      }
      folder = FileDescriptor(files_, files_.openat(directory, name, O_RDONLY | O_DIRECTORY | flags, 0));
    }
    if (!folder) {
      if (error) *error = errno;
      if (make || errno != ENOENT) problem = describe_failure("open", shown);
      return folder;
    }
    struct stat status;
    problem = why_not_trusted(files_, folder.get(), shown, status);
    return problem.empty() ? std::move(folder) : FileDescriptor();
  };
  // The whole may be a link to where there is room; what is behind it must be the user's all the same.
  FileDescriptor folder = open(AT_FDCWD, root.c_str(), root, 0, [&] { return make_directories(files_, root); });
  if (!folder) return folder;
  return open(folder.get(), kEntriesFolder, path(), O_NOFOLLOW,
              [&] { return files_.mkdirat(folder.get(), kEntriesFolder, 0700) == 0; });
}

FileDescriptor DiskCache::open_entries_or_throw() const {
  std::string problem;
  FileDescriptor directory = open_entries(/*make=*/false, problem);
  if (!problem.empty()) throw std::runtime_error(problem);
  return directory;
}

// Whatever stands there: a fifo must not let the process wait, a link must not lead elsewhere.
DiskCache::Examined DiskCache::examine(int directory, std::string_view id, CodeEntry& entry) const {
  Examined result;
  std::string name(id);
  result.file = FileDescriptor(files_, files_.openat(directory, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0));
  if (!result.file) {
    if (errno == ENOENT) return result;
    result.presence = Presence::kUnusable;
    result.problem = errno == ELOOP ? concat(printable(path(id)), " is a link") : describe_failure("open", path(id));
    return result;
  }
  result.presence = Presence::kUnusable;
  result.problem = why_not_trusted(files_, result.file.get(), path(id), result.status);
  if (!result.problem.empty()) return result;
  if (!S_ISREG(result.status.st_mode)) {
    result.problem = concat(printable(path(id)), " is not a file");
    return result;
  }
  auto size = static_cast<uint64_t>(result.status.st_size);
  std::vector<std::byte> content;
  if (size <= kMostEntryBytes) {
    if (!read_all(files_, result.file.get(), 0, size, content)) {
      result.problem = describe_failure("read", path(id));
      return result;
    }
    result.state = decode_entry(content, id, entry);
  }
  result.presence = Presence::kRead;
  if (result.state == EntryState::kDamaged) result.problem = concat(printable(path(id)), " is damaged");
  if (result.state == EntryState::kOtherVersion)
    result.problem = concat(printable(path(id)), " is an entry of another version of Kiln");
  return result;
}

std::optional<CodeEntry> DiskCache::load(std::string_view id, std::string* problem) {
  std::string unused;
  std::string& reason = problem ? *problem : unused;
  if (options_.mode == CacheMode::kOff) {
    if (problem) reason = "KILN_CACHE is off";
    return std::nullopt;
  }
  // Made here already, where a miss is counted.
  FileDescriptor directory = open_entries(/*make=*/options_.mode == CacheMode::kOn && !read_only_, reason);
  if (!directory) return std::nullopt;
  CodeEntry entry;
  Examined examined = examine(directory.get(), id, entry);
  bool found = examined.presence == Presence::kRead && examined.state == EntryState::kValid;
  if (options_.mode == CacheMode::kOn) {
    count(directory.get(), found ? kHits : kMisses);
    if (found) mark_used(examined);
    if (examined.presence == Presence::kRead && examined.state == EntryState::kDamaged)
      remove_same(directory.get(), std::string(id), examined.status);
  }
  if (found) return entry;
  reason = std::move(examined.problem);
  return std::nullopt;
}

// Another process may have put a valid entry there since this one was read.
void DiskCache::remove_same(int directory, const std::string& name, const struct stat& status) const {
  FileDescriptor now(files_, files_.openat(directory, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0));
  struct stat current;
  if (!now || files_.fstat(now.get(), &current) != 0) return;
  if (current.st_ino == status.st_ino && current.st_dev == status.st_dev) files_.unlinkat(directory, name.c_str());
}

void DiskCache::mark_used(const Examined& examined) const {
  struct timespec now;
  if (files_.clock_gettime(&now) != 0) return;
  int64_t age = static_cast<int64_t>(now.tv_sec) - static_cast<int64_t>(examined.status.st_mtim.tv_sec);
  if (age >= 0 && age < kUsedAgainAfterSeconds) return;
  const struct timespec times[2] = {now, now};
  files_.futimens(examined.file.get(), times);  // of root's entries it cannot be changed
}

void DiskCache::count(int directory, const char* what) const {
  FileDescriptor file(files_,
                      files_.openat(directory, what, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0600));
  if (file) files_.write(file.get(), "+", 1);
}

DiskCache::Claim::~Claim() {
  if (!file_) return;
  // Processes that have the file open get its lock and then look for the entry.
  files_->unlinkat(directory_.get(), name_.c_str());
  // Explicitly: a process that was forked meanwhile has the file open, too.
  files_->flock(file_.get(), LOCK_UN);
}

DiskCache::Claim DiskCache::claim(std::string_view id, std::chrono::milliseconds limit, bool& is_there) {
  is_there = false;
  if (options_.mode != CacheMode::kOn || read_only_) return {};
  std::string problem;
  FileDescriptor directory = open_entries(/*make=*/true, problem);
  if (!directory) return {};
  // A sweep removes it if no process holds its lock.
  std::string name = concat(kTemporaryPrefix, "claim-", id);
  FileDescriptor file(files_,
                      files_.openat(directory.get(), name.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0600));
  if (!file) return {};
  auto entry_is_there = [&] {
    struct stat status;
    return fstatat(directory.get(), std::string(id).c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
  };
  constexpr std::chrono::milliseconds kPause{2};
  for (std::chrono::milliseconds waited{0};; waited += kPause) {
    if (files_.flock(file.get(), LOCK_EX | LOCK_NB) == 0) {
      is_there = entry_is_there();
      return {files_, std::move(directory), std::move(file), std::move(name)};
    }
    if (errno != EWOULDBLOCK || waited >= limit) return {};
    std::this_thread::sleep_for(kPause);
    if ((is_there = entry_is_there())) return {};
  }
}

void DiskCache::discard(std::string_view id) {
  if (options_.mode != CacheMode::kOn) return;
  std::string problem;
  if (FileDescriptor directory = open_entries(/*make=*/false, problem))
    files_.unlinkat(directory.get(), std::string(id).c_str());
}

std::string DiskCache::store(std::string_view id, const CodeEntry& entry) {
  if (options_.mode == CacheMode::kOff) return "KILN_CACHE is off";
  if (options_.mode == CacheMode::kRead) return "KILN_CACHE is read";
  if (read_only_) return concat(printable(options_.directory), " is on a read-only file system");
  std::vector<std::byte> content = encode_entry(id, entry);
  if (content.size() > std::min(options_.limit_bytes, kMostEntryBytes))
    return concat("its ", content.size(), " bytes are more than the cache takes");
  bool again = false;
  std::string problem = try_store(id, content, again);
  // A sweep may have taken the temporary file between its making and its lock, and a user the whole folder.
  if (again) problem = try_store(id, content, again);
  return problem;
}

std::string DiskCache::try_store(std::string_view id, const std::vector<std::byte>& content, bool& again) {
  std::string problem;
  int error = 0;
  FileDescriptor directory = open_entries(/*make=*/true, problem, &error);
  if (!directory) {
    if (error == EROFS) read_only_ = true;
    again = error == ENOENT;
    return problem;
  }
  std::string name = temporary_name();
  FileDescriptor file(files_,
                      files_.openat(directory.get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
  if (!file) {
    if (errno == EROFS) read_only_ = true;
    return describe_failure("write", path(name));
  }
  // Whoever holds the lock lives: sweeps leave the file alone.
  files_.flock(file.get(), LOCK_EX | LOCK_NB);
  // The process's mask may have taken the user's own rights.
  if (files_.fchmod(file.get(), 0600) != 0 || !write_all(files_, file.get(), content.data(), content.size()))
    problem = describe_failure("write", path(name));
  else
    problem = publish(directory.get(), name, std::string(id), error);
  again = error == ENOENT;
  files_.unlinkat(directory.get(), name.c_str());
  if (!problem.empty()) return problem;

  // The first 32 bits of the id, as good as random, decide.
  uint64_t random = 0;
  std::from_chars(id.data(), id.data() + 8, random, 16);
  double part = static_cast<double>(content.size()) / static_cast<double>(options_.limit_bytes);
  if (static_cast<double>(random) < part * kSweepsPerLimit * 0x1p32) sweep(directory.get());
  return {};
}

std::string DiskCache::publish(int directory, const std::string& temporary, const std::string& id, int& error) const {
  error = 0;
  if (files_.linkat(directory, temporary.c_str(), id.c_str()) == 0) return {};
  bool replace = false;
  if (errno == EEXIST) {
    CodeEntry there;
    Examined examined = examine(directory, id, there);
    if (examined.presence == Presence::kRead && examined.state == EntryState::kValid) return {};
    if (examined.presence == Presence::kRead && examined.state == EntryState::kOtherVersion) return examined.problem;
    replace = true;  // damaged, a link, another user's: nobody can use it
  }
  // Not every file system has hard links; renaming replaces an equal entry there at worst.
  if ((replace || errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS || errno == EMLINK) &&
      files_.renameat(directory, temporary.c_str(), id.c_str()) == 0)
    return {};
  error = errno;
  return describe_failure("write", path(id));
}

std::vector<DiskCache::Name> DiskCache::names(int directory, bool remove_abandoned) const {
  std::vector<Name> result;
  int file = files_.openat(directory, ".", O_RDONLY | O_DIRECTORY, 0);
  if (file < 0) return result;
  struct Close {
    void operator()(DIR* open) const { closedir(open); }
  };
  std::unique_ptr<DIR, Close> stream(fdopendir(file));
  if (!stream) {
    files_.close(file);
    return result;
  }
  struct timespec now{};
  files_.clock_gettime(&now);
  while (const dirent* item = readdir(stream.get())) {
    std::string_view name = item->d_name;
    if (name.starts_with(kTemporaryPrefix)) {
      if (!remove_abandoned) continue;
      FileDescriptor temporary(files_, files_.openat(directory, item->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0));
      if (temporary && files_.flock(temporary.get(), LOCK_EX | LOCK_NB) == 0) files_.unlinkat(directory, item->d_name);
      continue;
    }
    struct stat status;
    if (!is_entry_id(name) || fstatat(directory, item->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    int64_t last_used = static_cast<int64_t>(status.st_mtim.tv_sec);
    if (last_used > static_cast<int64_t>(now.tv_sec)) last_used = 0;
    result.push_back({std::string(name), static_cast<uint64_t>(status.st_size), last_used});
  }
  // Those that were used last first; of one time, in an order that all processes have.
  std::sort(result.begin(), result.end(), [](const Name& a, const Name& b) {
    return a.last_used != b.last_used ? a.last_used > b.last_used : a.name < b.name;
  });
  return result;
}

DiskCache::Removed DiskCache::remove_oldest(int directory, uint64_t keep_bytes) const {
  Removed removed;
  std::vector<Name> all = names(directory, /*remove_abandoned=*/true);
  uint64_t total = 0;
  for (const Name& name : all) total += name.bytes;
  // Nothing to keep: empty files, too.
  for (; !all.empty() && (total > keep_bytes || keep_bytes == 0); all.pop_back()) {
    if (files_.unlinkat(directory, all.back().name.c_str()) == 0) {
      ++removed.entries;
      removed.bytes += all.back().bytes;
    }
    total -= all.back().bytes;
  }
  return removed;
}

void DiskCache::sweep(int directory) const {
  // Of the folder itself, so that no file is needed. Whoever holds it does the same; where there are no locks, two may.
  if (files_.flock(directory, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return;
  uint64_t total = 0;
  for (const Name& name : names(directory, /*remove_abandoned=*/true)) total += name.bytes;
  if (total > options_.limit_bytes) remove_oldest(directory, options_.limit_bytes - options_.limit_bytes / 8);
  files_.flock(directory, LOCK_UN);
}

DiskCache::Status DiskCache::status() const {
  Status result;
  FileDescriptor directory = open_entries(/*make=*/false, result.problem);
  if (!directory) return result;
  for (const Name& name : names(directory.get(), /*remove_abandoned=*/false)) {
    ++result.entries;
    result.bytes += name.bytes;
  }
  auto size_of_file = [&](const char* name) -> uint64_t {
    struct stat status;
    return fstatat(directory.get(), name, &status, AT_SYMLINK_NOFOLLOW) == 0 ? static_cast<uint64_t>(status.st_size)
                                                                             : 0;
  };
  result.hits = size_of_file(kHits);
  result.misses = size_of_file(kMisses);
  return result;
}

std::vector<DiskCache::Item> DiskCache::items() const {
  std::vector<Item> result;
  FileDescriptor directory = open_entries_or_throw();
  if (!directory) return result;
  for (Name& name : names(directory.get(), /*remove_abandoned=*/false)) {
    Item item;
    Examined examined = examine(directory.get(), name.name, item.entry);
    if (examined.presence == Presence::kMissing) continue;  // since then
    item.entry.binary.clear();
    item.state = examined.state;
    item.problem = std::move(examined.problem);
    item.id = std::move(name.name);
    item.bytes = name.bytes;
    item.last_used = name.last_used;
    result.push_back(std::move(item));
  }
  return result;
}

DiskCache::Removed DiskCache::prune(uint64_t bytes) {
  FileDescriptor directory = open_entries_or_throw();
  return directory ? remove_oldest(directory.get(), bytes) : Removed();
}

DiskCache::Removed DiskCache::clear() {
  FileDescriptor directory = open_entries_or_throw();
  if (!directory) return {};
  Removed removed = remove_oldest(directory.get(), 0);
  files_.unlinkat(directory.get(), kHits);
  files_.unlinkat(directory.get(), kMisses);
  return removed;
}

std::vector<DiskCache::Item> DiskCache::remove_damaged() {
  std::vector<Item> result;
  FileDescriptor directory = open_entries_or_throw();
  if (!directory) return result;
  for (const Name& name : names(directory.get(), /*remove_abandoned=*/true)) {
    Item item;
    Examined examined = examine(directory.get(), name.name, item.entry);
    if (examined.problem.empty()) continue;
    item.id = name.name;
    item.bytes = name.bytes;
    item.last_used = name.last_used;
    item.state = examined.state;
    item.problem = std::move(examined.problem);
    item.entry = {};
    if (examined.presence == Presence::kRead && item.state == EntryState::kDamaged)
      remove_same(directory.get(), name.name, examined.status);
    result.push_back(std::move(item));
  }
  return result;
}

}  // namespace kiln
