// A map whose missing values are made once, whoever asks.
//
// The first thread that asks for a key makes its value, outside every lock; others that ask for the same key meanwhile
// wait for it, those that ask for other keys do not. A failure is remembered like a value: who asks again gets the
// same exception.
//
// The map may be bounded: values that nobody else holds, and failures, are then forgotten when there are too many,
// those first that were not asked for since the last time. A list in the order of use would be more exact, and every
// look-up would have to change it.
#pragma once

#include <pthread.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <exception>
#include <iterator>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "core/fork_guard.h"
#include "core/interruption.h"

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

  /// `most_idle`: how many values may be there that nobody holds.
  explicit SingleFlight(
      IsLasting is_lasting = [](const std::exception_ptr&) { return true; },
      size_t most_idle = std::numeric_limits<size_t>::max())
      : is_lasting_(is_lasting), most_idle_(most_idle), forget_at_(most_idle) {}

  /// The value for `key`, made by `make()`, which returns std::shared_ptr<const Value>, if there is none. Rethrows what
  /// `make` threw, to all who waited for it, and later where that is lasting; Interrupted to its maker only, and
  /// another one of them makes the value. Throws Interrupted itself while it waits.
  template <typename Make>
  Found get(std::string_view key, Make&& make) {
    for (;;) {
      if (std::shared_ptr<const Value> value = find(key)) return {std::move(value), false};
      if (std::optional<Found> found = make_or_wait(key, make)) return *std::move(found);
    }
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
  // The value and the error are read only once it is done, and do not change afterwards.
  struct Entry {
    std::atomic<int> done{0};
    std::shared_ptr<const Value> value;
    std::exception_ptr error;
    const pid_t maker = getpid();
    const pthread_t maker_thread = pthread_self();
    std::atomic<bool> asked_for{false};  // since the last time that something was forgotten
  };
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view key) const { return std::hash<std::string_view>()(key); }
  };

  // Nothing where its maker was interrupted, which is no failure of others.
  template <typename Make>
  std::optional<Found> make_or_wait(std::string_view key, Make& make) {
    std::shared_ptr<Entry> entry;
    bool mine = false;
    {
      ForkGuard guard;
      std::unique_lock lock(mutex_);
      if (entries_.size() >= forget_at_) forget_idle();
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
    if (!mine && !entry->done && pthread_equal(entry->maker_thread, pthread_self()))
      return Found{make(), true};  // within make(), in the handler of a signal
    if (!mine && !wait_for(*entry)) return std::nullopt;
    if (entry->error && !mine) {
      try {
        std::rethrow_exception(entry->error);
      } catch (const Interrupted&) {
        return std::nullopt;
      }
    }
    if (entry->error) std::rethrow_exception(entry->error);
    return Found{entry->value, mine};
  }

  // A thread that may be interrupted looks every millisecond: an atomic's wait has no time limit. False where the
  // handler of a signal has forked, and the maker is a thread of the parent.
  static bool wait_for(const Entry& entry) {
    if (!can_be_interrupted()) {
      entry.done.wait(0);
      return true;
    }
    for (int turn = 1; !entry.done; ++turn) {
      usleep(1000);
      if (turn % kInterruptionCheckMs != 0) continue;
      if (check_interruption()) throw Interrupted();
      if (entry.maker != getpid()) return false;
    }
    return true;
  }

  std::shared_ptr<Entry> entry_of(std::string_view key) const {
    ForkGuard guard;
    std::shared_lock lock(mutex_);
    auto found = entries_.find(key);
    if (found == entries_.end()) return nullptr;
    // Written only where that changes something: otherwise, cores would take the line from one another.
    if (!found->second->asked_for.load(std::memory_order_relaxed)) found->second->asked_for = true;
    return found->second;
  }

  // Under the lock of one who changes the map, so that nobody takes a value out of it meanwhile. Leaves half as many as
  // there may be at most.
  void forget_idle() {
    auto is_idle = [](const Entry& entry) { return entry.done && (entry.error ? true : entry.value.use_count() == 1); };
    size_t idle = 0;
    for (const auto& [key, entry] : entries_) idle += entry.use_count() == 1 && is_idle(*entry);
    for (bool also_recent : {false, true})
      for (auto item = entries_.begin(); item != entries_.end() && idle > most_idle_ / 2;) {
        Entry& entry = *item->second;
        bool goes = item->second.use_count() == 1 && is_idle(entry) && (also_recent || !entry.asked_for);
        item = goes ? entries_.erase(item) : std::next(item);
        idle -= goes;
      }
    for (const auto& [key, entry] : entries_) entry->asked_for = false;
    // Those that are held do not count.
    forget_at_ = entries_.size() - idle + most_idle_;
  }

  const IsLasting is_lasting_;
  const size_t most_idle_;
  size_t forget_at_;  // when there are so many entries
  mutable std::shared_mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<Entry>, Hash, std::equal_to<>> entries_;
};

}  // namespace kiln
