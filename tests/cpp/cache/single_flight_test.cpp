#include "cache/single_flight.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <latch>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/text.h"

namespace kiln {
namespace {

using Flight = SingleFlight<int>;

std::shared_ptr<const int> boxed(int value) { return std::make_shared<const int>(value); }

TEST(SingleFlight, MakesAValueOnce) {
  Flight flight;
  int made = 0;
  auto make = [&] { return boxed(++made); };
  Flight::Found first = flight.get("a", make), second = flight.get("a", make);
  EXPECT_EQ(*first.value, 1);
  EXPECT_TRUE(first.made_now);
  EXPECT_EQ(second.value, first.value);
  EXPECT_FALSE(second.made_now);
  EXPECT_EQ(made, 1);
}

TEST(SingleFlight, TellsKeysApart) {
  Flight flight;
  // Keys are bytes: a zero ends none.
  const std::string_view keys[] = {"", "a", "b", "ab", std::string_view("a\0b", 3), std::string_view("a\0", 2)};
  for (size_t i = 0; i < std::size(keys); ++i) flight.get(keys[i], [&] { return boxed(static_cast<int>(i)); });
  EXPECT_EQ(flight.size(), std::size(keys));
  for (size_t i = 0; i < std::size(keys); ++i) EXPECT_EQ(*flight.find(keys[i]), static_cast<int>(i));
}

TEST(SingleFlight, FindsOnlyWhatHasBeenMade) {
  Flight flight;
  EXPECT_EQ(flight.find("a"), nullptr);
  flight.get("a", [&] {
    EXPECT_EQ(flight.find("a"), nullptr);  // it is being made
    return boxed(1);
  });
  EXPECT_EQ(*flight.find("a"), 1);
}

TEST(SingleFlight, RemembersFailures) {
  Flight flight;
  int made = 0;
  auto fail = [&]() -> std::shared_ptr<const int> {
    ++made;
    throw std::out_of_range("no such value");
  };
  for (int round = 0; round < 3; ++round) {
    try {
      flight.get("a", fail);
      FAIL();
    } catch (const std::out_of_range& error) {
      EXPECT_STREQ(error.what(), "no such value");
    }
  }
  EXPECT_EQ(made, 1);
  EXPECT_EQ(flight.find("a"), nullptr);
  EXPECT_EQ(*flight.get("b", [] { return boxed(2); }).value, 2);
}

TEST(SingleFlight, HoldsNobodyUpWhoWantsAnotherKey) {
  Flight flight;
  std::latch begun(1), may_end(1);
  std::thread slow([&] {
    flight.get("slow", [&] {
      begun.count_down();
      may_end.wait();
      return boxed(1);
    });
  });
  begun.wait();
  // All of this ends although "slow" is still being made.
  for (int i = 0; i < 100; ++i) EXPECT_EQ(*flight.get(std::to_string(i), [&] { return boxed(i); }).value, i);
  EXPECT_EQ(flight.find("slow"), nullptr);
  EXPECT_EQ(flight.size(), 101u);
  may_end.count_down();
  slow.join();
  EXPECT_EQ(*flight.find("slow"), 1);
}

TEST(SingleFlight, LetsOthersWaitForAValueThatIsBeingMade) {
  constexpr int kWaiters = 8;
  Flight flight;
  std::latch begun(1), may_end(1);
  std::atomic<int> made = 0;
  auto make = [&] {
    ++made;
    begun.count_down();
    may_end.wait();
    return boxed(7);
  };
  std::vector<std::future<Flight::Found>> found;
  found.push_back(std::async(std::launch::async, [&] { return flight.get("a", make); }));
  begun.wait();
  std::latch asking(kWaiters);
  for (int i = 0; i < kWaiters; ++i)
    found.push_back(std::async(std::launch::async, [&] {
      asking.count_down();
      return flight.get("a", make);
    }));
  asking.wait();
  may_end.count_down();
  int made_now = 0;
  for (auto& future : found) {
    Flight::Found result = future.get();
    EXPECT_EQ(*result.value, 7);
    made_now += result.made_now;
  }
  EXPECT_EQ(made, 1);
  EXPECT_EQ(made_now, 1);
}

TEST(SingleFlight, GivesAFailureToThoseWhoWait) {
  constexpr int kWaiters = 4;
  Flight flight;
  std::latch begun(1), may_end(1);
  std::atomic<int> made = 0;
  auto fail = [&]() -> std::shared_ptr<const int> {
    ++made;
    begun.count_down();
    may_end.wait();
    throw std::runtime_error("broken");
  };
  auto ask = [&] {
    try {
      flight.get("a", fail);
      return std::string("nothing was thrown");
    } catch (const std::runtime_error& error) {
      return std::string(error.what());
    }
  };
  std::vector<std::future<std::string>> results;
  results.push_back(std::async(std::launch::async, ask));
  begun.wait();
  for (int i = 0; i < kWaiters; ++i) results.push_back(std::async(std::launch::async, ask));
  may_end.count_down();
  for (auto& result : results) EXPECT_EQ(result.get(), "broken");
  EXPECT_EQ(made, 1);
}

TEST(SingleFlight, MayBeAskedFromWithin) {
  Flight flight;
  Flight::Found outer =
      flight.get("outer", [&] { return boxed(1 + *flight.get("inner", [] { return boxed(1); }).value); });
  EXPECT_EQ(*outer.value, 2);
}

TEST(SingleFlight, MakesEachValueOnceForManyThreads) {
  constexpr int kThreads = 8, kKeys = 200;
  Flight flight;
  std::vector<std::atomic<int>> made(kKeys);
  std::atomic<int> made_now = 0;
  std::latch start(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      start.arrive_and_wait();
      for (int i = 0; i < kKeys; ++i) {
        int key = (i * 7 + t * 31) % kKeys;
        Flight::Found found = flight.get(std::to_string(key), [&] {
          ++made[key];
          return boxed(key);
        });
        EXPECT_EQ(*found.value, key);
        made_now += found.made_now;
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (int key = 0; key < kKeys; ++key) EXPECT_EQ(made[key], 1) << key;
  EXPECT_EQ(made_now, kKeys);
  EXPECT_EQ(flight.size(), static_cast<size_t>(kKeys));
}

TEST(SingleFlight, ForgetsFailuresThatDoNotLast) {
  Flight flight([](const std::exception_ptr&) { return false; });
  auto fail = []() -> std::shared_ptr<const int> { throw std::runtime_error("not now"); };
  EXPECT_THROW(flight.get("a", fail), std::runtime_error);
  EXPECT_FALSE(flight.has_failed("a"));
  EXPECT_EQ(flight.size(), 0u);
  EXPECT_EQ(*flight.get("a", [] { return boxed(3); }).value, 3);
}

TEST(SingleFlight, KnowsWhatHasFailed) {
  Flight flight;
  EXPECT_FALSE(flight.has_failed("a"));
  EXPECT_THROW(flight.get("a", []() -> std::shared_ptr<const int> { throw std::runtime_error("never"); }),
               std::runtime_error);
  flight.get("b", [] { return boxed(1); });
  EXPECT_TRUE(flight.has_failed("a"));
  EXPECT_FALSE(flight.has_failed("b"));
}

constexpr SingleFlight<int>::IsLasting kAll = [](const std::exception_ptr&) { return true; };

TEST(SingleFlight, ForgetsWhatNobodyHolds) {
  Flight flight(kAll, 10);
  std::vector<std::shared_ptr<const int>> held;
  for (int i = 0; i < 20; ++i) held.push_back(flight.get(concat("held ", i), [&] { return boxed(i); }).value);
  for (int i = 0; i < 1000; ++i) {
    flight.get(std::to_string(i), [&] { return boxed(i); });
    EXPECT_LE(flight.size(), 30u);
  }
  for (int i = 0; i < 20; ++i) EXPECT_EQ(flight.find(concat("held ", i)), held[static_cast<size_t>(i)]);
  EXPECT_EQ(*flight.find("999"), 999);
  EXPECT_EQ(flight.find("0"), nullptr);
  EXPECT_TRUE(flight.get("0", [] { return boxed(0); }).made_now);
}

TEST(SingleFlight, ForgetsLastWhatIsAskedFor) {
  Flight flight(kAll, 10);
  flight.get("often", [] { return boxed(1); });
  for (int i = 0; i < 1000; ++i) {
    flight.get(std::to_string(i), [&] { return boxed(i); });
    ASSERT_NE(flight.find("often"), nullptr) << i;
  }
}

TEST(SingleFlight, ForgetsFailuresWhereThereAreMany) {
  Flight flight(kAll, 10);
  for (int i = 0; i < 100; ++i)
    EXPECT_THROW(flight.get(std::to_string(i), []() -> std::shared_ptr<const int> { throw std::runtime_error("no"); }),
                 std::runtime_error);
  EXPECT_LE(flight.size(), 10u);
  EXPECT_TRUE(flight.has_failed("99"));
}

TEST(SingleFlight, ForgetsNothingThatIsBeingMade) {
  Flight flight(kAll, 4);
  std::latch begun(1), may_end(1);
  std::thread slow([&] {
    EXPECT_EQ(*flight
                   .get("slow",
                        [&] {
                          begun.count_down();
                          may_end.wait();
                          return boxed(1);
                        })
                   .value,
              1);
  });
  begun.wait();
  for (int i = 0; i < 100; ++i) flight.get(std::to_string(i), [&] { return boxed(i); });
  std::thread waiter([&] { EXPECT_FALSE(flight.get("slow", [] { return boxed(2); }).made_now); });
  may_end.count_down();
  slow.join();
  waiter.join();
}

TEST(SingleFlight, MakesAnewInAChildWhatItsParentIsMaking) {
  Flight flight;
  flight.get("done", [] { return boxed(1); });
  std::latch begun(1), may_end(1);
  std::thread slow([&] {
    flight.get("slow", [&] {
      begun.count_down();
      may_end.wait();
      return boxed(1);
    });
  });
  begun.wait();
  pid_t child = fork();
  if (child == 0) {
    alarm(20);
    bool anew = *flight.get("slow", [] { return boxed(2); }).value == 2;
    bool kept = *flight.get("done", [] { return boxed(2); }).value == 1;
    _exit(anew && kept ? 0 : 1);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  may_end.count_down();
  slow.join();
  EXPECT_EQ(*flight.find("slow"), 1);
}

}  // namespace
}  // namespace kiln
