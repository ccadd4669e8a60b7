// A process that ends, and a system call that fails, at every step of storing and loading; and many processes at once.
#include <gtest/gtest.h>

#include <algorithm>

#include "cache/cache_test_base.h"

namespace kiln {
namespace {

using Fault = FaultyFiles::Fault;

class DiskCacheFaults : public CacheTest {
 protected:
  // What holds whatever happened: another process finds nothing or the whole entry, can store it, and removes what was
  // left behind.
  void expect_sound(const std::string& where) {
    SCOPED_TRACE(where);
    EXPECT_TRUE(is_there(0)) << "an entry that was there before is lost";
    is_there(1);  // asserts that it is the right one
    DiskCache cache(options());
    EXPECT_EQ(cache.store(test_id(1), test_entry(1)), "");
    EXPECT_TRUE(is_there(1));
    cache.prune(1 << 30);
    EXPECT_EQ(temporary_files(), std::vector<std::string>());
    EXPECT_EQ(cache.status().entries, 2u);
  }

  void begin() {
    std::filesystem::remove_all(root());
    ASSERT_EQ(DiskCache(options()).store(test_id(0), test_entry(0)), "");
  }
};

TEST_F(DiskCacheFaults, KilledAtEveryStepOfStoring) {
  int steps = 0;
  for (bool done = false; !done; ++steps) {
    begin();
    int status = in_child([&] {
      FaultyFiles files;
      files.fault = Fault::kKill;
      files.at = steps;
      DiskCache(options(), files).store(test_id(1), test_entry(1));
    });
    done = ended_well(status);
    ASSERT_TRUE(done || was_killed(status)) << status;
    expect_sound(concat("killed at step ", steps));
  }
  EXPECT_GE(steps, 10);
}

TEST_F(DiskCacheFaults, KilledAtEveryStepOfTheFirstStore) {
  int steps = 0;
  for (bool done = false; !done; ++steps) {
    std::filesystem::remove_all(root());
    int status = in_child([&] {
      FaultyFiles files;
      files.fault = Fault::kKill;
      files.at = steps;
      DiskCache(options(), files).store(test_id(1), test_entry(1));
    });
    done = ended_well(status);
    is_there(1);
    EXPECT_EQ(DiskCache(options()).store(test_id(1), test_entry(1)), "") << steps;
    EXPECT_TRUE(is_there(1));
  }
  EXPECT_GE(steps, 12);
}

TEST_F(DiskCacheFaults, KilledAtEveryStepOfReplacingWhatIsDamaged) {
  int steps = 0;
  for (bool done = false; !done; ++steps) {
    begin();
    DiskCache(options()).store(test_id(1), test_entry(1));
    write_file(path(1), {});
    int status = in_child([&] {
      FaultyFiles files;
      files.fault = Fault::kKill;
      files.at = steps;
      DiskCache cache(options(), files);
      if (!cache.load(test_id(1))) cache.store(test_id(1), test_entry(1));
    });
    done = ended_well(status);
    expect_sound(concat("killed at step ", steps));
  }
  EXPECT_GE(steps, 15);
}

TEST_F(DiskCacheFaults, KilledAtEveryStepOfASweep) {
  int steps = 0;
  for (bool done = false; !done; ++steps) {
    begin();
    DiskCache(options()).store(test_id(1), test_entry(1));
    int status = in_child([&] {
      FaultyFiles files;
      files.fault = Fault::kKill;
      files.at = steps;
      DiskCache(options(), files).prune(1);
    });
    done = ended_well(status);
    for (int n : {0, 1}) is_there(n);
    EXPECT_EQ(DiskCache(options()).remove_damaged().size(), 0u);
  }
  EXPECT_GE(steps, 5);
}

TEST_F(DiskCacheFaults, EveryCallOfStoringFails) {
  for (Fault fault : {Fault::kError, Fault::kErrorsFromThen})
    for (int error : {ENOSPC, EDQUOT, EIO, EACCES, EROFS, EMFILE, ENOENT, EPERM, ELOOP}) {
      int steps = 0;
      for (bool done = false; !done; ++steps) {
        begin();
        FaultyFiles files;
        files.fault = fault;
        files.at = steps;
        files.error = error;
        DiskCache cache(options(), files);
        std::string reason = cache.store(test_id(1), test_entry(1));
        done = files.calls <= steps;
        EXPECT_TRUE(!reason.empty() || is_there(1)) << "said to be stored";
        expect_sound(concat(std::strerror(error), " at step ", steps));
      }
      EXPECT_GE(steps, 10);
    }
}

// What cannot be read today may be readable tomorrow.
TEST_F(DiskCacheFaults, ErrorsOfLoadingDeleteNothing) {
  for (Fault fault : {Fault::kError, Fault::kErrorsFromThen})
    for (int error : {EIO, EACCES, EMFILE, ENOMEM, ESTALE, ENOENT}) {
      int steps = 0;
      for (bool done = false; !done; ++steps) {
        begin();
        FaultyFiles files;
        files.fault = fault;
        files.at = steps;
        files.error = error;
        DiskCache cache(options(), files);
        std::optional<CodeEntry> found = cache.load(test_id(0));
        EXPECT_TRUE(!found || same(*found, test_entry(0)));
        done = files.calls <= steps;
        EXPECT_TRUE(is_there(0)) << std::strerror(error) << " at step " << steps;
      }
      EXPECT_GE(steps, 5);
    }
}

TEST_F(DiskCacheFaults, ManyProcessesStoreAndLoadTheSame) {
  constexpr int kProcesses = 64, kEntries = 100;
  // Some are damaged meanwhile, and one process clears all.
  std::vector<pid_t> children;
  for (int p = 0; p < kProcesses; ++p) {
    pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(100);
      DiskCache cache(options());
      int wrong = 0;
      for (int i = 0; i < kEntries; ++i) {
        int n = (i * 37 + p * 11) % kEntries;
        size_t bytes = 500 + 100 * static_cast<size_t>(n);
        std::optional<CodeEntry> found = cache.load(test_id(n));
        if (found && !same(*found, test_entry(n, bytes))) ++wrong;
        if (!found && !cache.store(test_id(n), test_entry(n, bytes)).empty()) ++wrong;
        if (p % 8 == 0 && i % 10 == 0) {
          int file = open(path(n).c_str(), O_WRONLY | O_CLOEXEC);
          if (file >= 0 && pwrite(file, "damage", 6, 150) < 0) ++wrong;
          if (file >= 0) close(file);
        }
        if (p == 5 && i == 50) cache.prune(20000);
      }
      _exit(wrong == 0 ? 0 : 1);
    }
    children.push_back(child);
  }
  for (pid_t child : children) {
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(ended_well(status)) << status;
  }
  DiskCache cache(options());
  cache.remove_damaged();
  for (int n = 0; n < kEntries; ++n) {
    is_there(n, 500 + 100 * static_cast<size_t>(n));
    EXPECT_EQ(cache.store(test_id(n), test_entry(n, 500 + 100 * static_cast<size_t>(n))), "");
  }
  EXPECT_EQ(cache.status().entries, static_cast<uint64_t>(kEntries));
  EXPECT_EQ(cache.remove_damaged().size(), 0u);
  EXPECT_EQ(temporary_files(), std::vector<std::string>());
}

}  // namespace
}  // namespace kiln
