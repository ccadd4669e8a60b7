#include "cache/bundle.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "cache/cache_test_base.h"

namespace kiln {
namespace {

class BundleTest : public CacheTest {
 protected:
  std::string file() const { return folder_ + "/kernels.bundle"; }

  void write(int entries) {
    std::map<std::string, std::vector<std::byte>> contents;
    for (int n = 0; n < entries; ++n) contents[test_id(n)] = encode_entry(test_id(n), test_entry(n));
    write_bundle(file(), {"compiler 1"}, contents);
  }

  // Why a file of this content is no bundle; empty where it is one.
  std::string problem(const std::vector<std::byte>& content) {
    write_file(file(), content);
    try {
      Bundle bundle(file());
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "";
  }
};

TEST_F(BundleTest, HasWhatWasWritten) {
  write(3);
  Bundle bundle(file());
  EXPECT_EQ(bundle.compilers(), std::vector<std::string>{"compiler 1"});
  EXPECT_EQ(bundle.size(), 3u);
  for (int n = 0; n < 3; ++n) {
    std::optional<CodeEntry> found = bundle.load(test_id(n));
    ASSERT_TRUE(found);
    EXPECT_TRUE(same(*found, test_entry(n)));
  }
  EXPECT_FALSE(bundle.load(test_id(3)));
  write(0);
  EXPECT_EQ(Bundle(file()).size(), 0u);
}

TEST_F(BundleTest, IsRefusedWhereItsHeadIsDamaged) {
  write(2);
  const std::vector<std::byte> good = read_file(file());
  const size_t head = good.size() - 2 * encode_entry(test_id(0), test_entry(0)).size();
  EXPECT_EQ(problem(good), "");
  for (size_t i = 0; i < 8 * head; ++i) {
    std::vector<std::byte> bytes = good;
    bytes[i / 8] ^= std::byte{1} << (i % 8);
    EXPECT_NE(problem(bytes), "") << "bit " << i;
  }
  for (size_t size = 0; size < head; ++size)
    EXPECT_NE(problem({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)}), "") << size;
  EXPECT_EQ(problem({}), concat(file(), " is no bundle of Kiln's"));
}

TEST_F(BundleTest, HasNoEntryThatIsDamaged) {
  write(2);
  std::vector<std::byte> bytes = read_file(file());
  bytes.back() ^= std::byte{1};
  ASSERT_EQ(problem(bytes), "");
  Bundle bundle(file());
  int found = bundle.load(test_id(0)).has_value() + bundle.load(test_id(1)).has_value();
  EXPECT_EQ(found, 1);
  // Cut off behind the head: no entry lies within.
  bytes.resize(bytes.size() - 10);
  EXPECT_EQ(problem(bytes), concat(file(), " is damaged"));
}

TEST_F(BundleTest, IsRefusedWhereOthersCouldHaveWrittenIt) {
  write(1);
  chmod(file().c_str(), 0664);
  EXPECT_THROW(
      try { Bundle bundle(file()); } catch (const std::runtime_error& error) {
        EXPECT_EQ(std::string(error.what()), concat(file(), " can be written by other users"));
        throw;
      },
      std::runtime_error);
  chmod(file().c_str(), 0644);
  FaultyFiles files;
  Bundle bundle(file(), files);
  EXPECT_TRUE(bundle.load(test_id(0)));
  files.foreign_kind = S_IFREG;  // another file in its place by now
  EXPECT_FALSE(bundle.load(test_id(0)));
  EXPECT_THROW(Bundle(file(), files), std::runtime_error);
}

TEST_F(BundleTest, ReplacesTheOneBeforeAtOnce) {
  write(1);
  int steps = 0;
  for (bool done = false; !done; ++steps) {
    int status = in_child([&] {
      FaultyFiles files;
      files.fault = FaultyFiles::Fault::kKill;
      files.at = steps;
      std::map<std::string, std::vector<std::byte>> contents;
      for (int n = 0; n < 2; ++n) contents[test_id(n)] = encode_entry(test_id(n), test_entry(n));
      write_bundle(file(), {"compiler 1"}, contents, files);
    });
    done = ended_well(status);
    EXPECT_EQ(Bundle(file()).size(), done ? 2u : 1u);
    EXPECT_TRUE(Bundle(file()).load(test_id(0)));
  }
  EXPECT_GE(steps, 5);
}

TEST_F(BundleTest, LeavesTheOneBeforeWhereItCannotBeWritten) {
  write(1);
  int steps = 0;
  for (bool done = false; !done; ++steps) {
    FaultyFiles files;
    files.fault = FaultyFiles::Fault::kError;
    files.at = steps;
    files.error = ENOSPC;
    try {
      write_bundle(file(), {"compiler 1"}, {}, files);
      done = true;
    } catch (const std::runtime_error& error) {
      EXPECT_TRUE(std::string(error.what()).ends_with(": No space left on device")) << error.what();
      EXPECT_EQ(Bundle(file()).size(), 1u);
    }
    auto left = std::filesystem::directory_iterator(folder_);
    EXPECT_EQ(std::distance(left, {}), 1) << "a temporary file is left at step " << steps;
  }
  EXPECT_GE(steps, 5);
  EXPECT_EQ(Bundle(file()).size(), 0u);
}

TEST_F(BundleTest, HasNothingWhereItBecameShorter) {
  write(2);
  Bundle bundle(file());
  std::filesystem::resize_file(file(), 1000);
  EXPECT_FALSE(bundle.load(test_id(0)) && bundle.load(test_id(1)));
  std::filesystem::remove(file());
  EXPECT_FALSE(bundle.load(test_id(0)));
}

TEST_F(BundleTest, SaysWhyItCannotBeWritten) {
  try {
    write_bundle(folder_ + "/none/kernels.bundle", {"compiler 1"}, {});
    FAIL();
  } catch (const std::runtime_error& error) {
    std::string message = error.what();
    EXPECT_TRUE(message.starts_with(concat("cannot write ", folder_, "/none/kernels.bundle.")) &&
                message.ends_with(": No such file or directory"))
        << message;
  }
}

}  // namespace
}  // namespace kiln
