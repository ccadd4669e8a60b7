// A map whose missing values are made once, whoever asks.
//
// The first thread that asks for a key makes its value, outside every lock; others that ask for the same key meanwhile
// wait for it, those that ask for other keys do not. A failure is remembered like a value: who asks again gets the
// same exception.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "core/fork_guard.h"

namespace kiln {

template <typename Value>
class SingleFlight {
 public:
  struct Found {
    std::shared_ptr<const Value> value;
    bool made_now = false;  // by this call
  };

  /// Whether `make` would fail with this error again, so that it need not be asked.
  using IsLasting = bool (*)(const std::exception_ptr&);

  explicit SingleFlight(IsLasting is_lasting = [](const std::exception_ptr&) { return true; })
      : is_lasting_(is_lasting) {}

  /// The value for `key`, made by `make()`, which returns std::shared_ptr<const Value>, if there is none. Rethrows what
  /// `make` threw, to all who waited for it, and later where that is lasting.
  template <typename Make>
  Found get(std::string_view key, Make&& make) {
    if (std::shared_ptr<const Value> value = find(key)) return {std::move(value), false};
    std::shared_ptr<Entry> entry;
    bool mine = false;
    {
      ForkGuard guard;
      std::unique_lock lock(mutex_);
      auto [found, inserted] = entries_.try_emplace(std::string(key));
      // After `fork` the child has only the thread that forked: what another one was making will never be done.
      mine = inserted || (!found->second->done && found->second->maker != getpid());
      if (mine) {
        try {
          found->second = std::make_shared<Entry>();
        } catch (...) {
          entries_.erase(found);
          throw;
        }
      }
      entry = found->second;
    }
    if (mine) {
      try {
        entry->value = make();
      } catch (...) {
        entry->error = std::current_exception();
      }
      if (entry->error && !is_lasting_(entry->error)) {
        ForkGuard guard;
        std::unique_lock lock(mutex_);
        if (auto found = entries_.find(key); found != entries_.end() && found->second == entry) entries_.erase(found);
      }
      entry->done = 1;
      entry->done.notify_all();
    }
    entry->done.wait(0);
    if (entry->error) std::rethrow_exception(entry->error);
    return {entry->value, mine};
  }

  /// The value for `key` if it has been made; null otherwise, also while it is being made and after a failure.
  std::shared_ptr<const Value> find(std::string_view key) const {
    std::shared_ptr<Entry> entry = entry_of(key);
    return entry && entry->done ? entry->value : nullptr;
  }

  /// Whether get() would rethrow a lasting failure.
  bool has_failed(std::string_view key) const {
    std::shared_ptr<Entry> entry = entry_of(key);
    return entry && entry->done && entry->error;
  }

  size_t size() const {
    ForkGuard guard;
    std::shared_lock lock(mutex_);
    return entries_.size();
  }

 private:
  // Nobody reads the value or the error before it is done, and nobody changes them afterwards.
  struct Entry {
    std::atomic<int> done{0};
    std::shared_ptr<const Value> value;
    std::exception_ptr error;
    const pid_t maker = getpid();
  };
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view key) const { return std::hash<std::string_view>()(key); }
  };

  std::shared_ptr<Entry> entry_of(std::string_view key) const {
    ForkGuard guard;
    std::shared_lock lock(mutex_);
    auto found = entries_.find(key);
    return found == entries_.end() ? nullptr : found->second;
  }

  const IsLasting is_lasting_;
  mutable std::shared_mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<Entry>, Hash, std::equal_to<>> entries_;
};

}  // namespace kiln
