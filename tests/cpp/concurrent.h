// Threads of a test.
#pragma once

#include <exception>
#include <latch>
#include <thread>
#include <vector>

namespace kiln {

/// Calls function(number) in `count` threads that begin together, numbered from 0. Rethrows what one of them threw.
template <typename Function>
void in_threads(int count, const Function& function) {
  std::latch start(count);
  std::vector<std::exception_ptr> errors(static_cast<size_t>(count));
  std::vector<std::thread> threads;
  for (int number = 0; number < count; ++number)
    threads.emplace_back([&, number] {
      start.arrive_and_wait();
      try {
        function(number);
      } catch (...) {
        errors[static_cast<size_t>(number)] = std::current_exception();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

}  // namespace kiln
