// A map whose missing values are made once, whoever asks.
//
// The first thread that asks for a key makes its value, outside every lock; others that ask for the same key meanwhile
// wait for it, those that ask for other keys do not. A failure is remembered like a value: who asks again gets the
// same exception.
#pragma once

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>

namespace kiln {

template <typename Value>
class SingleFlight {
 public:
  struct Found {
    std::shared_ptr<const Value> value;
    bool made_now = false;  // by this call
  };

  /// The value for `key`, made by `make()`, which returns std::shared_ptr<const Value>, if there is none. Rethrows what
  /// `make` threw, now or when it was first called.
  template <typename Make>
  Found get(std::string_view key, Make&& make) {
    if (std::shared_ptr<const Value> value = find(key)) return {std::move(value), false};
    std::shared_ptr<Entry> entry;
    bool mine = false;
    {
      std::unique_lock lock(mutex_);
      auto [found, inserted] = entries_.try_emplace(std::string(key));
      if (inserted) found->second = std::make_shared<Entry>();
      entry = found->second;
      mine = inserted;
    }
    if (mine) {
      std::shared_ptr<const Value> value;
      std::exception_ptr error;
      try {
        value = make();
      } catch (...) {
        error = std::current_exception();
      }
      std::lock_guard lock(entry->mutex);
      entry->value = std::move(value);
      entry->error = error;
      entry->done = true;
      entry->changed.notify_all();
    }
    std::unique_lock lock(entry->mutex);
    entry->changed.wait(lock, [&] { return entry->done; });
    if (entry->error) std::rethrow_exception(entry->error);
    return {entry->value, mine};
  }

  /// The value for `key` if it has been made; null otherwise, also while it is being made and after a failure.
  std::shared_ptr<const Value> find(std::string_view key) const {
    std::shared_ptr<Entry> entry;
    {
      std::shared_lock lock(mutex_);
      auto found = entries_.find(key);
      if (found == entries_.end()) return nullptr;
      entry = found->second;
    }
    std::lock_guard lock(entry->mutex);
    return entry->value;
  }

  size_t size() const {
    std::shared_lock lock(mutex_);
    return entries_.size();
  }

 private:
  struct Entry {
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false;
    std::shared_ptr<const Value> value;
    std::exception_ptr error;
  };
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view key) const { return std::hash<std::string_view>()(key); }
  };

  mutable std::shared_mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<Entry>, Hash, std::equal_to<>> entries_;
};

}  // namespace kiln
