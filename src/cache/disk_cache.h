// Machine code on disk, shared by all processes of a user.
//
// A folder with a file for each entry, named by its id, which says everything that the code depends on. So an entry
// never changes: it is written to a temporary name, published by a hard link, which fails where it is there already,
// and read whole and checked before anything of it is used. That needs no locks: a process that is killed while it
// writes leaves a temporary file, which the next sweep removes.
//
// * Nothing wrong is run: an entry has a checksum over all of it, its id, and the text that it was made from. One that
//   is damaged is deleted. An error of the disk or of rights deletes nothing.
// * What it cannot do it leaves: no failure reaches the caller but as the reason that something was not stored.
// * The folder is opened anew each time. A kept descriptor would be closed by programs that close all they inherit, and
//   would be some other file's then; opening takes some microseconds.
// * Nothing is flushed to the disk (fsync): a power failure may damage new entries, which the checksum tells. Flushing
//   would take as long as compiling.
// * The least recently used entries are removed when the folder has become too large: by one process at a time, after
//   a sixteenth of the size has been written, on average. Which store sweeps follows from the entry's id, which is as
//   good as random; a count would have to be shared, and a time would need clocks that do not jump.
// * An entry's time of modification is when it was last used, to the hour. Where it lies in the future the clock was
//   wrong; it counts as long ago.
// * Hits and misses of all processes are the sizes of two files, to which each process appends a byte: that is atomic.
// * Processes that start together, such as one for each GPU, need the same entries at the same time. The one that makes
//   an entry holds a lock on a temporary file with the entry's name. Only speed depends on that lock.
//
// SQLite or one large file were the alternatives: both need locks, on which a stopped process lets all others wait, and
// which network file systems do not all have.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cache/code_entry.h"
#include "cache/safe_files.h"
#include "core/settings.h"

namespace kiln {

struct DiskCacheOptions {
  CacheMode mode = CacheMode::kOn;
  std::string directory;                     // made where it is missing; empty: there is none
  uint64_t limit_bytes = uint64_t{1} << 30;  // what it is kept to

  /// What the settings and the environment say.
  static DiskCacheOptions of_process();
};

class DiskCache {
 public:
  explicit DiskCache(DiskCacheOptions options, FileSystem& files = FileSystem::real());

  const DiskCacheOptions& options() const { return options_; }

  /// The entry of this id if there is one that may be used. Deletes a damaged one. `problem`, if it is not null, gets
  /// the reason why what is there, or the folder, is not used; it stays empty where the entry is only missing. Never
  /// throws but std::bad_alloc.
  std::optional<CodeEntry> load(std::string_view id, std::string* problem = nullptr);

  /// Stores an entry. Empty where it is there now, else why it is not. Never throws but std::bad_alloc.
  std::string store(std::string_view id, const CodeEntry& entry);

  /// Held by the process that makes an entry, until it is destroyed. Others wait for it in claim().
  class Claim {
   public:
    Claim() = default;
    Claim(FileSystem& files, FileDescriptor directory, FileDescriptor file, std::string name)
        : files_(&files), directory_(std::move(directory)), file_(std::move(file)), name_(std::move(name)) {}
    Claim(Claim&& other) = default;
    Claim& operator=(Claim&& other) = delete;
    ~Claim();

   private:
    FileSystem* files_ = nullptr;
    FileDescriptor directory_, file_;
    std::string name_;
  };

  /// For a process that is about to make an entry. If another process is making it, waits until that one has stored it
  /// or has ended, but at most `limit`, so that a stopped process does not hold up others. `is_there` is set to whether
  /// the entry exists. Without effect if nothing is stored or if files have no locks. Throws only std::bad_alloc.
  Claim claim(std::string_view id, std::chrono::milliseconds limit, bool& is_there);

  /// Deletes an entry whose content turned out to be of no use.
  void discard(std::string_view id);

  struct Status {
    std::string problem;  // why nothing is read; empty where it can be, or where the folder is not there yet
    uint64_t entries = 0;
    uint64_t bytes = 0;  // sizes of the entries
    uint64_t hits = 0;   // since the folder was made or cleared; of all processes
    uint64_t misses = 0;
  };
  Status status() const;

  struct Item {
    std::string id;
    uint64_t bytes = 0;
    int64_t last_used = 0;  // seconds since 1970; 0 where that lies in the future
    EntryState state = EntryState::kDamaged;
    std::string problem;  // why it is not used; empty where it is valid
    CodeEntry entry;      // without machine code
  };
  /// All entries, those that were used last first; reads and checks each.
  std::vector<Item> items() const;

  struct Removed {
    uint64_t entries = 0;
    uint64_t bytes = 0;
  };
  /// Removes entries that were used longest ago until those that are left have at most this size, and what processes
  /// left that were killed while they wrote. Throws std::runtime_error where the folder cannot be used.
  Removed prune(uint64_t bytes);

  /// Removes all entries, and begins to count hits and misses anew. Throws as prune() does.
  Removed clear();

  /// Deletes those entries that are damaged and returns what items() says of them. Throws as prune() does.
  std::vector<Item> remove_damaged();

 private:
  enum class Presence : uint8_t { kMissing, kUnusable, kRead };
  struct Examined {
    Presence presence = Presence::kMissing;
    EntryState state = EntryState::kDamaged;  // where it was read
    std::string problem;                      // where it is not valid
    struct stat status{};
    FileDescriptor file;
  };
  struct Name {
    std::string name;
    uint64_t bytes;
    int64_t last_used;
  };

  // The folder that holds the entries; else the reason why it cannot be used, empty where it is only missing, and
  // errno.
  FileDescriptor open_entries(bool make, std::string& problem, int* error = nullptr) const;
  FileDescriptor open_entries_or_throw() const;
  Examined examine(int directory, std::string_view id, CodeEntry& entry) const;
  std::string publish(int directory, const std::string& temporary, const std::string& id, int& error) const;
  std::string try_store(std::string_view id, const std::vector<std::byte>& content, bool& again);
  void remove_same(int directory, const std::string& name, const struct stat& status) const;
  void mark_used(const Examined& examined) const;
  void count(int directory, const char* what) const;
  void sweep(int directory) const;
  Removed remove_oldest(int directory, uint64_t keep_bytes) const;
  std::vector<Name> names(int directory, bool remove_abandoned) const;
  std::string path(std::string_view name = {}) const;

  const DiskCacheOptions options_;
  FileSystem& files_;
  std::atomic<bool> read_only_ = false;  // the file system is: nothing was or will be stored
};

}  // namespace kiln
