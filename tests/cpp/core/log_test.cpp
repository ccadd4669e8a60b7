#include "core/log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace kiln {
namespace {

// What is written to standard error while `body` runs.
template <class Body>
std::string written(Body body) {
  testing::internal::CaptureStderr();
  body();
  return testing::internal::GetCapturedStderr();
}

TEST(Log, LinesBeginWithTheirCategory) {
  EXPECT_EQ(written([] { write_log_line(LogCategory::kCache, "scale: disk hit 12ab"); }),
            "kiln[cache]: scale: disk hit 12ab\n");
  EXPECT_EQ(written([] { write_log_line(LogCategory::kPasses, ""); }), "kiln[passes]: \n");
  EXPECT_EQ(written([] { write_log_line(LogCategory::kLaunch, "größe"); }), "kiln[launch]: größe\n");
}

TEST(Log, AnEventIsOneLine) {
  EXPECT_EQ(written([] { write_log_line(LogCategory::kCache, "/a\nb\t\x7f\x01"); }),
            "kiln[cache]: /a\\x0ab\\x09\\x7f\\x01\n");
}

TEST(Log, NothingIsWrittenForACategoryThatIsOff) {
  EXPECT_FALSE(is_logged(LogCategory::kCache));
  EXPECT_EQ(written([] { log(LogCategory::kCache, "never ", 1); }), "");
}

TEST(Log, KeepsErrno) {
  errno = ENOENT;
  written([] { write_log_line(LogCategory::kCache, "x"); });
  const int closed = dup(STDERR_FILENO);
  close(STDERR_FILENO);
  write_log_line(LogCategory::kCache, "x");
  const int error = errno;
  dup2(closed, STDERR_FILENO);
  close(closed);
  EXPECT_EQ(error, ENOENT);
}

TEST(Log, LinesOfSeveralThreadsDoNotMix) {
  constexpr int kThreads = 8, kLines = 200;
  const std::string rest(300, '-');
  const std::string text = written([&] {
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        for (int i = 0; i < kLines; ++i) write_log_line(LogCategory::kLaunch, concat(t, " ", i, rest));
      });
    for (std::thread& thread : threads) thread.join();
  });
  std::set<std::string> lines;
  for (std::string_view line : split_lines(text)) lines.emplace(line);
  ASSERT_EQ(lines.size(), size_t{kThreads} * kLines);
  for (int t = 0; t < kThreads; ++t)
    for (int i = 0; i < kLines; ++i) EXPECT_TRUE(lines.contains(concat("kiln[launch]: ", t, " ", i, rest)));
}

TEST(Log, TimesHaveThreeDigits) {
  EXPECT_EQ(in_milliseconds(0), "0.000 ms");
  EXPECT_EQ(in_milliseconds(0.0004), "0.000 ms");
  EXPECT_EQ(in_milliseconds(0.0006), "0.001 ms");
  EXPECT_EQ(in_milliseconds(12.3456), "12.346 ms");
  EXPECT_EQ(in_milliseconds(123456.7), "123456.700 ms");
}

}  // namespace
}  // namespace kiln
