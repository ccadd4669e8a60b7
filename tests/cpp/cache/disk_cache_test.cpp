// What the cache keeps, whom it trusts, and what it removes.
#include "cache/disk_cache.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/time.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <thread>

#include "cache/cache_test_base.h"

namespace kiln {
namespace {

class DiskCacheTest : public CacheTest {};

TEST_F(DiskCacheTest, KeepsWhatWasStored) {
  DiskCache cache(options());
  EXPECT_FALSE(cache.load(test_id(1)));
  EXPECT_EQ(cache.store(test_id(1), test_entry(1)), "");
  EXPECT_TRUE(is_there(1));
  EXPECT_FALSE(is_there(2));
  EXPECT_EQ(cache.store(test_id(1), test_entry(1)), "");  // it is there already
  EXPECT_EQ(temporary_files(), std::vector<std::string>());
}

TEST_F(DiskCacheTest, IsTheUsersAlone) {
  mode_t before = umask(0);
  DiskCache cache({CacheMode::kOn, root() + "/a/b", 1 << 30});
  EXPECT_EQ(cache.store(test_id(1), test_entry(1)), "");
  umask(before);
  auto mode = [&](const std::string& path) {
    struct stat status{};
    EXPECT_EQ(lstat((root() + path).c_str(), &status), 0) << path;
    return status.st_mode & 0777;
  };
  for (const char* folder : {"", "/a", "/a/b", "/a/b/v1"}) EXPECT_EQ(mode(folder), 0700u) << folder;
  EXPECT_EQ(mode("/a/b/v1/" + test_id(1)), 0600u);
  // Whatever the mask takes away.
  before = umask(0277);
  EXPECT_EQ(cache.store(test_id(2), test_entry(2)), "");
  umask(before);
  EXPECT_EQ(mode("/a/b/v1/" + test_id(2)), 0600u);
}

TEST_F(DiskCacheTest, OneMakesAnEntryAndOthersWait) {
  using std::chrono::milliseconds;
  DiskCache cache(options());
  bool is_there = true;
  std::optional<DiskCache::Claim> claim(cache.claim(test_id(1), milliseconds(0), is_there));
  EXPECT_FALSE(is_there);
  EXPECT_EQ(temporary_files().size(), 1u);
  // Another entry is not waited for, and a holder that does not come to an end for so long.
  EXPECT_EQ((static_cast<void>(cache.claim(test_id(2), milliseconds(0), is_there)), is_there), false);
  EXPECT_EQ((static_cast<void>(cache.claim(test_id(1), milliseconds(4), is_there)), is_there), false);
  std::thread other([&] {
    bool found = false;
    static_cast<void>(DiskCache(options()).claim(test_id(1), milliseconds(1'000'000), found));
    EXPECT_TRUE(found);
  });
  EXPECT_EQ(cache.store(test_id(1), test_entry(1)), "");
  other.join();
  // Who comes before the claim ends and after the entry was stored.
  static_cast<void>(cache.claim(test_id(1), milliseconds(1'000'000), is_there));
  EXPECT_TRUE(is_there);
  claim.reset();
  EXPECT_EQ(temporary_files(), std::vector<std::string>());
  static_cast<void>(cache.claim(test_id(1), milliseconds(0), is_there));
  EXPECT_TRUE(is_there);
}

TEST_F(DiskCacheTest, WhoWaitsGoesOnWhereTheHolderMakesNothing) {
  DiskCache cache(options());
  bool is_there = true;
  std::optional<DiskCache::Claim> claim(cache.claim(test_id(1), std::chrono::milliseconds(0), is_there));
  std::thread other([&] {
    bool found = true;
    static_cast<void>(DiskCache(options()).claim(test_id(1), std::chrono::milliseconds(1'000'000), found));
    EXPECT_FALSE(found);
  });
  claim.reset();
  other.join();
  EXPECT_EQ(temporary_files(), std::vector<std::string>());
}

TEST_F(DiskCacheTest, CountsHitsAndMisses) {
  DiskCache cache(options());
  EXPECT_FALSE(cache.load(test_id(1)));
  cache.store(test_id(1), test_entry(1));
  EXPECT_TRUE(cache.load(test_id(1)));
  EXPECT_TRUE(cache.load(test_id(1)));
  EXPECT_FALSE(cache.load(test_id(2)));
  DiskCache::Status status = DiskCache(options()).status();
  EXPECT_EQ(status.problem, "");
  EXPECT_EQ(status.hits, 2u);
  EXPECT_EQ(status.misses, 2u);
  EXPECT_EQ(status.entries, 1u);
  EXPECT_EQ(status.bytes, encode_entry(test_id(1), test_entry(1)).size());
}

TEST_F(DiskCacheTest, ReadsOnlyWhereItShallWriteNothing) {
  DiskCache(options()).store(test_id(1), test_entry(1));
  DiskCacheOptions reading = options();
  reading.mode = CacheMode::kRead;
  DiskCache cache(reading);
  EXPECT_TRUE(cache.load(test_id(1)));
  EXPECT_EQ(cache.store(test_id(2), test_entry(2)), "KILN_CACHE is read");
  std::vector<std::byte> bytes = read_file(path(1));
  bytes.back() ^= std::byte{1};
  write_file(path(1), bytes);
  EXPECT_FALSE(cache.load(test_id(1)));
  cache.discard(test_id(1));
  EXPECT_TRUE(std::filesystem::exists(path(1)));
  EXPECT_EQ(cache.status().hits, 0u);
}

TEST_F(DiskCacheTest, MakesNoFolderToRead) {
  DiskCache cache({CacheMode::kRead, root(), 1 << 30});
  EXPECT_FALSE(cache.load(test_id(1)));
  EXPECT_EQ(cache.status().problem, "");
  EXPECT_FALSE(std::filesystem::exists(root()));
}

TEST_F(DiskCacheTest, DoesNothingWhereItIsOff) {
  DiskCache(options()).store(test_id(1), test_entry(1));
  DiskCacheOptions off = options();
  off.mode = CacheMode::kOff;
  DiskCache cache(off);
  EXPECT_FALSE(cache.load(test_id(1)));
  EXPECT_EQ(cache.store(test_id(2), test_entry(2)), "KILN_CACHE is off");
  EXPECT_FALSE(is_there(2));
}

TEST_F(DiskCacheTest, SaysThatThereIsNoFolder) {
  DiskCache cache({CacheMode::kOn, "", 1 << 30});
  EXPECT_FALSE(cache.load(test_id(1)));
  EXPECT_EQ(cache.store(test_id(1), test_entry(1)),
            "there is no folder for it: neither KILN_CACHE_DIR nor XDG_CACHE_HOME nor HOME says one");
}

TEST_F(DiskCacheTest, StaysWhereItWasWhenTheProgramMoves) {
  int status = in_child([&] {
    ASSERT_EQ(chdir(folder_.c_str()), 0);
    DiskCache cache({CacheMode::kOn, "cache/", 1 << 30});
    ASSERT_EQ(chdir("/"), 0);
    ASSERT_EQ(cache.options().directory, root());
    ASSERT_EQ(cache.store(test_id(1), test_entry(1)), "");
  });
  EXPECT_TRUE(ended_well(status));
  EXPECT_TRUE(is_there(1));
}

// ---- What is damaged

TEST_F(DiskCacheTest, DeletesWhatIsDamaged) {
  DiskCache cache(options());
  const std::vector<std::byte> good = encode_entry(test_id(1), test_entry(1));
  auto damage = [&](std::vector<std::byte> bytes) {
    ASSERT_EQ(cache.store(test_id(1), test_entry(1)), "");
    write_file(path(1), bytes);
    EXPECT_FALSE(cache.load(test_id(1)));
    EXPECT_FALSE(std::filesystem::exists(path(1)));
    EXPECT_EQ(cache.store(test_id(1), test_entry(1)), "");
    EXPECT_TRUE(is_there(1));
  };
  damage({});
  damage({good.begin(), good.end() - 1});
  damage({good.begin(), good.begin() + 40});
  for (size_t at : {size_t{0}, size_t{20}, size_t{75}, size_t{300}, good.size() - 1}) {
    std::vector<std::byte> flipped = good;
    flipped[at] ^= std::byte{16};
    damage(flipped);
  }
  damage(encode_entry(test_id(2), test_entry(2)));  // another entry's content
}

TEST_F(DiskCacheTest, ReplacesWhatIsDamagedWhereNobodyHasRead) {
  DiskCache cache(options());
  cache.store(test_id(1), test_entry(1));
  write_file(path(1), {});
  EXPECT_EQ(cache.store(test_id(1), test_entry(1)), "");
  EXPECT_TRUE(is_there(1));
}

TEST_F(DiskCacheTest, LeavesEntriesOfAnotherVersion) {
  DiskCache cache(options());
  cache.store(test_id(1), test_entry(1));
  const std::vector<std::byte> own = read_file(path(1));
  for (int version : {2, 4}) {
    std::vector<std::byte> bytes = own;
    bytes[72] = static_cast<std::byte>(version);  // the version
    Sha256 hash;
    hash.add_bytes(bytes.data() + 72, bytes.size() - 72);
    std::string sum = hash.hex();
    std::memcpy(bytes.data() + 8, sum.data(), 64);
    write_file(path(1), bytes);
    EXPECT_FALSE(cache.load(test_id(1)));
    EXPECT_EQ(cache.store(test_id(1), test_entry(1)), concat(path(1), " is an entry of another version of Kiln"));
    EXPECT_EQ(read_file(path(1)), bytes);
    std::vector<DiskCache::Item> found = cache.remove_damaged();
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].problem, concat(path(1), " is an entry of another version of Kiln"));
    EXPECT_EQ(read_file(path(1)), bytes);
  }
}

TEST_F(DiskCacheTest, LeavesFoldersOfALaterVersion) {
  DiskCache cache(options());
  cache.store(test_id(1), test_entry(1));
  std::filesystem::create_directory(root() + "/v2");
  write_file(root() + "/v2/" + test_id(1), {});
  cache.clear();
  EXPECT_TRUE(std::filesystem::exists(root() + "/v2/" + test_id(1)));
}

TEST_F(DiskCacheTest, VerifiesAll) {
  DiskCache cache(options());
  for (int n = 0; n < 5; ++n) cache.store(test_id(n), test_entry(n));
  write_file(path(3), {});
  std::vector<DiskCache::Item> problems = cache.remove_damaged();
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].id, test_id(3));
  EXPECT_EQ(problems[0].problem, concat(path(3), " is damaged"));
  EXPECT_FALSE(std::filesystem::exists(path(3)));
  EXPECT_EQ(cache.remove_damaged().size(), 0u);
  EXPECT_EQ(cache.items().size(), 4u);
}

// ---- Whom it trusts

TEST_F(DiskCacheTest, RefusesFoldersThatOthersCanWrite) {
  for (const char* below : {"", "/v1"})
    for (mode_t mode : {0770, 0707, 0777, 01777}) {
      DiskCache cache(options());
      chmod((root() + "/v1").c_str(), 0700);
      chmod(root().c_str(), 0700);
      ASSERT_EQ(cache.store(test_id(1), test_entry(1)), "");
      ASSERT_EQ(chmod((root() + below).c_str(), mode), 0);
      EXPECT_FALSE(cache.load(test_id(1)));
      std::string reason = concat(root(), below, " can be written by other users");
      EXPECT_EQ(cache.store(test_id(2), test_entry(2)), reason);
      EXPECT_EQ(cache.status().problem, reason);
      EXPECT_THROW(cache.clear(), std::runtime_error);
    }
  chmod(root().c_str(), 0700);
  chmod((root() + "/v1").c_str(), 0755);  // others may read
  EXPECT_TRUE(is_there(1));
}

TEST_F(DiskCacheTest, RefusesFoldersOfOthers) {
  DiskCache(options()).store(test_id(1), test_entry(1));
  FaultyFiles files;
  files.foreign_kind = S_IFDIR;
  DiskCache cache(options(), files);
  EXPECT_FALSE(cache.load(test_id(1)));
  EXPECT_EQ(cache.store(test_id(2), test_entry(2)), concat(root(), " belongs to another user"));
}

TEST_F(DiskCacheTest, RefusesEntriesOfOthers) {
  DiskCache(options()).store(test_id(1), test_entry(1));
  FaultyFiles files;
  files.foreign_kind = S_IFREG;
  DiskCache cache(options(), files);
  EXPECT_FALSE(cache.load(test_id(1)));
  EXPECT_TRUE(std::filesystem::exists(path(1)));
}

TEST_F(DiskCacheTest, RefusesEntriesThatRootGaveToOthers) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a file to another user";
  DiskCache cache(options());
  cache.store(test_id(1), test_entry(1));
  ASSERT_EQ(chown(path(1).c_str(), 65534, 65534), 0);
  EXPECT_FALSE(cache.load(test_id(1)));
  EXPECT_EQ(cache.store(test_id(1), test_entry(1)), "");  // the folder is the user's, and so is what stands there now
  EXPECT_TRUE(is_there(1));
  ASSERT_EQ(chown(root().c_str(), 65534, 65534), 0);
  EXPECT_FALSE(cache.load(test_id(1)));
}

TEST_F(DiskCacheTest, RefusesEntriesThatOthersCanWrite) {
  DiskCache cache(options());
  for (mode_t mode : {0620, 0602, 0666}) {
    ASSERT_EQ(cache.store(test_id(1), test_entry(1)), "");
    ASSERT_EQ(chmod(path(1).c_str(), mode), 0);
    EXPECT_FALSE(cache.load(test_id(1)));
  }
  EXPECT_EQ(cache.store(test_id(1), test_entry(1)), "");
  EXPECT_TRUE(is_there(1));
}

TEST_F(DiskCacheTest, FollowsNoLinkToAnEntry) {
  DiskCache cache(options());
  cache.store(test_id(1), test_entry(1));
  std::string elsewhere = folder_ + "/elsewhere";
  std::filesystem::rename(path(1), elsewhere);
  std::filesystem::create_symlink(elsewhere, path(1));
  const std::vector<std::byte> before = read_file(elsewhere);
  EXPECT_FALSE(cache.load(test_id(1)));
  EXPECT_EQ(cache.store(test_id(1), test_entry(1)), "");
  EXPECT_FALSE(std::filesystem::is_symlink(path(1)));
  EXPECT_TRUE(is_there(1));
  EXPECT_EQ(read_file(elsewhere), before);
}

TEST_F(DiskCacheTest, FollowsNoLinkToItsFolder) {
  std::filesystem::create_directories(folder_ + "/elsewhere");
  std::filesystem::create_directory(root());
  chmod(root().c_str(), 0700);
  std::filesystem::create_directory_symlink(folder_ + "/elsewhere", root() + "/v1");
  DiskCache cache(options());
  EXPECT_EQ(cache.store(test_id(1), test_entry(1)), concat("cannot open ", root(), "/v1: Not a directory"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_ + "/elsewhere"));
  // The whole may be a link: to a disk with more room.
  std::filesystem::remove(root() + "/v1");
  std::filesystem::remove(root());
  chmod((folder_ + "/elsewhere").c_str(), 0755);
  std::filesystem::create_directory_symlink(folder_ + "/elsewhere", root());
  EXPECT_EQ(cache.store(test_id(1), test_entry(1)), "");
  EXPECT_TRUE(is_there(1));
}

TEST_F(DiskCacheTest, FollowsNoLinkWhereItCounts) {
  DiskCache cache(options());
  cache.store(test_id(1), test_entry(1));
  write_file(folder_ + "/elsewhere", {});
  std::filesystem::create_symlink(folder_ + "/elsewhere", root() + "/v1/hits");
  EXPECT_TRUE(cache.load(test_id(1)));
  EXPECT_EQ(std::filesystem::file_size(folder_ + "/elsewhere"), 0u);
}

TEST_F(DiskCacheTest, WaitsForNoPipeAndReadsNoFolder) {
  DiskCache cache(options());
  cache.store(test_id(1), test_entry(1));
  ASSERT_EQ(mkfifo(path(2).c_str(), 0600), 0);
  EXPECT_FALSE(cache.load(test_id(2)));
  EXPECT_EQ(cache.store(test_id(2), test_entry(2)), "");
  EXPECT_TRUE(is_there(2));
  std::filesystem::create_directory(path(3));
  EXPECT_FALSE(cache.load(test_id(3)));
  EXPECT_EQ(cache.store(test_id(3), test_entry(3)), concat("cannot write ", path(3), ": Is a directory"));
}

// ---- Disks that are full, folders that cannot be written

TEST_F(DiskCacheTest, GoesOnWhereTheDiskIsFull) {
  DiskCache(options()).store(test_id(1), test_entry(1));
  int status = in_child([&] {
    // Files may have 100 bytes at most: what is written ends in the middle of an entry.
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit limit{100, 100};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    DiskCache cache(options());
    std::string reason = cache.store(test_id(2), test_entry(2));
    ASSERT_TRUE(reason.ends_with(": File too large")) << reason;
    ASSERT_TRUE(cache.load(test_id(1)).has_value());
    ASSERT_EQ(temporary_files(), std::vector<std::string>());
  });
  EXPECT_TRUE(ended_well(status));
  EXPECT_TRUE(is_there(1));
  EXPECT_FALSE(is_there(2));
}

// As another user than root, whom no rights stop.
void become_nobody(const std::string& folder) {
  if (geteuid() != 0) return;
  ASSERT_EQ(chown(folder.c_str(), 65534, 65534), 0);
  ASSERT_EQ(setresuid(65534, 65534, 65534), 0);
}

TEST_F(DiskCacheTest, ReadsFromAFolderThatItCannotWrite) {
  int status = in_child([&] {
    become_nobody(folder_);
    DiskCache cache(options());
    ASSERT_EQ(cache.store(test_id(1), test_entry(1)), "");
    ASSERT_EQ(chmod((root() + "/v1").c_str(), 0500), 0);
    ASSERT_TRUE(cache.load(test_id(1)).has_value());
    std::string reason = cache.store(test_id(2), test_entry(2));
    ASSERT_TRUE(reason.starts_with(concat("cannot write ", root(), "/v1/.tmp-"))) << reason;
    ASSERT_TRUE(reason.ends_with(": Permission denied")) << reason;
    ASSERT_EQ(chmod((root() + "/v1").c_str(), 0700), 0);
    ASSERT_EQ(cache.store(test_id(2), test_entry(2)), "");
  });
  EXPECT_TRUE(ended_well(status));
}

TEST_F(DiskCacheTest, SaysWhereItCannotMakeItsFolder) {
  int status = in_child([&] {
    become_nobody(folder_);
    ASSERT_EQ(chmod(folder_.c_str(), 0500), 0);
    DiskCache cache(options());
    ASSERT_EQ(cache.store(test_id(1), test_entry(1)), concat("cannot make ", root(), ": Permission denied"));
    ASSERT_EQ(chmod(folder_.c_str(), 0700), 0);
  });
  EXPECT_TRUE(ended_well(status));
}

TEST_F(DiskCacheTest, ReadsRootsEntriesAsAnotherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can make entries of root's";
  DiskCache(options()).store(test_id(1), test_entry(1));
  chmod(folder_.c_str(), 0755);
  chmod(root().c_str(), 0755);
  chmod((root() + "/v1").c_str(), 0755);
  chmod(path(1).c_str(), 0644);
  int status = in_child([&] {
    ASSERT_EQ(setresuid(65534, 65534, 65534), 0);
    DiskCache cache(options());
    ASSERT_TRUE(cache.load(test_id(1)).has_value());
    ASSERT_NE(cache.store(test_id(2), test_entry(2)), "");
  });
  EXPECT_TRUE(ended_well(status));
}

TEST_F(DiskCacheTest, AsksAReadOnlyFileSystemOnce) {
  DiskCache(options()).store(test_id(1), test_entry(1));
  FaultyFiles files;
  files.only_writing = true;
  files.fault = FaultyFiles::Fault::kErrorsFromThen;
  files.at = 0;
  files.error = EROFS;
  DiskCache cache(options(), files);
  std::string reason = cache.store(test_id(2), test_entry(2));
  EXPECT_TRUE(reason.ends_with(": Read-only file system")) << reason;
  int calls = files.calls;
  EXPECT_EQ(cache.store(test_id(3), test_entry(3)), concat(root(), " is on a read-only file system"));
  EXPECT_EQ(files.calls, calls);
  EXPECT_TRUE(cache.load(test_id(1)));
}

TEST_F(DiskCacheTest, StoresWhereThereAreNoHardLinks) {
  FaultyFiles files;
  struct WithoutLinks : FaultyFiles {
    int linkat(int, const char*, const char*) override {
      errno = EPERM;
      return -1;
    }
  } without;
  DiskCache cache(options(), without);
  EXPECT_EQ(cache.store(test_id(1), test_entry(1)), "");
  EXPECT_TRUE(is_there(1));
  EXPECT_EQ(temporary_files(), std::vector<std::string>());
}

TEST_F(DiskCacheTest, MakesItsFolderAnewWhereItWasRemoved) {
  DiskCache cache(options());
  cache.store(test_id(1), test_entry(1));
  std::filesystem::remove_all(root());
  EXPECT_FALSE(cache.load(test_id(1)));
  EXPECT_EQ(cache.store(test_id(1), test_entry(1)), "");
  EXPECT_TRUE(is_there(1));
}

// ---- How large it becomes

void set_time(const std::string& path, int64_t seconds) {
  struct timespec times[2] = {{seconds, 0}, {seconds, 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0) << path;
}

int64_t time_of(const std::string& path) {
  struct stat status{};
  EXPECT_EQ(stat(path.c_str(), &status), 0) << path;
  return status.st_mtim.tv_sec;
}

TEST_F(DiskCacheTest, RemovesWhatWasUsedLongestAgo) {
  FaultyFiles files;
  DiskCache cache(options(), files);
  for (int n = 0; n < 8; ++n) {
    cache.store(test_id(n), test_entry(n));
    set_time(path(n), 1'000'000 + n);
  }
  EXPECT_TRUE(cache.load(test_id(2)));  // used now
  uint64_t each = std::filesystem::file_size(path(0));
  DiskCache::Removed removed = cache.prune(3 * each);
  EXPECT_EQ(removed.entries, 5u);
  EXPECT_EQ(removed.bytes, 5 * each);
  for (int n : {2, 6, 7}) EXPECT_TRUE(is_there(n)) << n;
  for (int n : {0, 1, 3, 4, 5}) EXPECT_FALSE(is_there(n)) << n;
}

TEST_F(DiskCacheTest, ListsWhatWasUsedLastFirst) {
  DiskCache cache(options());
  for (int n = 0; n < 3; ++n) {
    cache.store(test_id(n), test_entry(n));
    set_time(path(n), 1'000'000 + (n * 2) % 3);
  }
  std::vector<DiskCache::Item> items = cache.items();
  ASSERT_EQ(items.size(), 3u);
  EXPECT_EQ(items[0].entry.kernel, "kernel 1");
  EXPECT_EQ(items[1].entry.kernel, "kernel 2");
  EXPECT_EQ(items[2].entry.kernel, "kernel 0");
  EXPECT_EQ(items[0].last_used, 1'000'002);
  EXPECT_EQ(items[0].problem, "");
  EXPECT_TRUE(items[0].entry.binary.empty());
}

TEST_F(DiskCacheTest, IsSweptAsItGrows) {
  DiskCacheOptions small = options();
  uint64_t each = encode_entry(test_id(0), test_entry(0, 1000)).size();
  small.limit_bytes = 100 * each;
  DiskCache cache(small);
  uint64_t most = 0;
  for (int n = 0; n < 1000; ++n) {
    ASSERT_EQ(cache.store(test_id(n), test_entry(n, 1000)), "");
    if (n % 10 == 0) most = std::max(most, cache.status().bytes);
  }
  EXPECT_LE(most, small.limit_bytes * 3 / 2);
  EXPECT_GE(most, small.limit_bytes * 3 / 4);
}

TEST_F(DiskCacheTest, IsSweptWhereThereAreNoLocks) {
  struct WithoutLocks : FaultyFiles {
    int flock(int, int) override {
      errno = ENOLCK;
      return -1;
    }
  } files;
  DiskCacheOptions small = options();
  small.limit_bytes = 50 * encode_entry(test_id(0), test_entry(0)).size();
  DiskCache cache(small, files);
  for (int n = 0; n < 300; ++n) ASSERT_EQ(cache.store(test_id(n), test_entry(n)), "");
  EXPECT_LE(cache.status().bytes, small.limit_bytes * 3 / 2);
}

TEST_F(DiskCacheTest, TakesNothingThatIsLargerThanItself) {
  DiskCacheOptions small = options();
  small.limit_bytes = 1000;
  DiskCache cache(small);
  std::string reason = cache.store(test_id(1), test_entry(1, 2000));
  EXPECT_TRUE(reason.starts_with("its 2") && reason.ends_with(" bytes are more than the cache takes")) << reason;
}

TEST_F(DiskCacheTest, IsCleared) {
  DiskCache cache(options());
  for (int n = 0; n < 3; ++n) cache.store(test_id(n), test_entry(n));
  write_file(path(1), {});
  cache.load(test_id(0));
  EXPECT_EQ(cache.clear().entries, 3u);
  DiskCache::Status status = cache.status();
  EXPECT_EQ(status.entries, 0u);
  EXPECT_EQ(status.hits, 0u);
  EXPECT_EQ(cache.store(test_id(1), test_entry(1)), "");
  EXPECT_EQ(DiskCache({CacheMode::kOn, folder_ + "/none", 1000}).clear().entries, 0u);
}

TEST_F(DiskCacheTest, LeavesTemporaryFilesOfTheLiving) {
  // A process that is stopped in the middle of writing, and one that was killed there.
  DiskCache(options()).store(test_id(0), test_entry(0));
  pid_t stopped = fork();
  if (stopped == 0) {
    struct Stopping : FaultyFiles {
      int linkat(int directory, const char* from, const char* to) override {
        raise(SIGSTOP);
        return FileSystem::linkat(directory, from, to);
      }
    } files;
    DiskCache cache({CacheMode::kOn, root(), 1 << 30}, files);
    _exit(cache.store(test_id(1), test_entry(1)).empty() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(stopped, &status, WUNTRACED), stopped);
  ASSERT_TRUE(WIFSTOPPED(status)) << status;
  ASSERT_TRUE(was_killed(in_child([&] {
    FaultyFiles files;
    files.only_writing = true;
    files.fault = FaultyFiles::Fault::kKill;
    files.at = 4;  // in the middle of the entry
    DiskCache(options(), files).store(test_id(2), test_entry(2));
  })));
  EXPECT_EQ(temporary_files().size(), 2u);
  DiskCache(options()).prune(1 << 30);
  EXPECT_EQ(temporary_files().size(), 1u);
  kill(stopped, SIGCONT);
  ASSERT_EQ(waitpid(stopped, &status, 0), stopped);
  EXPECT_TRUE(ended_well(status));
  EXPECT_TRUE(is_there(1));
  EXPECT_EQ(temporary_files().size(), 0u);
}

// ---- Clocks that jump

TEST_F(DiskCacheTest, KeepsWhatFitsWhateverTheClockSays) {
  FaultyFiles files;
  DiskCache cache(options(), files);
  for (int n = 0; n < 5; ++n) ASSERT_EQ(cache.store(test_id(n), test_entry(n)), "");
  for (int64_t now : {int64_t{0}, int64_t{4'000'000'000}, int64_t{1'000'000'000}, int64_t{2'000'000'000}}) {
    files.now = now;
    for (int n = 0; n < 5; ++n) EXPECT_TRUE(cache.load(test_id(n))) << n;
    EXPECT_EQ(cache.prune(1 << 30).entries, 0u);
  }
}

TEST_F(DiskCacheTest, TakesTimesInTheFutureForLongAgo) {
  FaultyFiles files;
  DiskCache cache(options(), files);
  for (int n = 0; n < 4; ++n) {
    cache.store(test_id(n), test_entry(n));
    set_time(path(n), files.now - 7200);
  }
  set_time(path(0), files.now + 1'000'000);  // used when the clock was ahead, and not since
  set_time(path(1), files.now + 1'000'000);
  EXPECT_TRUE(cache.load(test_id(1)));  // used since
  EXPECT_EQ(time_of(path(1)), files.now);
  EXPECT_EQ(cache.items().back().id, test_id(0));
  EXPECT_EQ(cache.items().back().last_used, 0);
  EXPECT_EQ(cache.prune(3 * std::filesystem::file_size(path(0))).entries, 1u);
  EXPECT_FALSE(is_there(0));
  for (int n : {1, 2, 3}) EXPECT_TRUE(is_there(n)) << n;
}

TEST_F(DiskCacheTest, RemembersUseToTheHour) {
  FaultyFiles files;
  DiskCache cache(options(), files);
  cache.store(test_id(1), test_entry(1));
  set_time(path(1), files.now - 3599);
  EXPECT_TRUE(cache.load(test_id(1)));
  EXPECT_EQ(time_of(path(1)), files.now - 3599);
  set_time(path(1), files.now - 3600);
  EXPECT_TRUE(cache.load(test_id(1)));
  EXPECT_EQ(time_of(path(1)), files.now);
}

}  // namespace
}  // namespace kiln
