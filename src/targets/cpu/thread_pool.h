// The threads that CPU launches are spread over.
//
// A job is a number of pieces. The caller and the pool's workers claim pieces until none is left; the caller returns
// when all are done. Jobs may be submitted by several threads at once and from within a piece; a worker takes part in
// whichever job needs it. After `fork` the child gets workers of its own.
//
// Each participant has a share of neighbouring pieces, and claims others' only behind its own. Where all take part,
// that is the same at each job of as many pieces: what a launch has left in a processor's cache is there for the next
// one. One counter for all gave pieces to whoever came first.
//
// Pieces make progress independently of one another: where a piece waits for another that nobody has begun, because
// all workers wait, more threads are added until something moves, as far as the system gives any. That is what lets
// threadgroups wait for one another through atomics.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/thread_stack.h"

namespace kiln {

class ThreadPool {
 public:
  /// Runs in one participant: claims pieces with `next()` until it returns false.
  class Claims {
   public:
    /// The next pieces [begin, end) of this job; false when there are none left.
    bool next(uint64_t& begin, uint64_t& end);
    /// Nobody claims any more pieces.
    void stop();

   private:
    friend class ThreadPool;
    struct Job* job_;
    size_t share_;  // that it claims from
    bool has_piece_ = false;
    Claims(struct Job& job, size_t participant);
  };
  using Participant = std::function<void(Claims&)>;

  struct Work {
    uint64_t pieces = 0;
    uint64_t pieces_per_claim = 1;
    bool pieces_may_wait = false;  // for one another
    // Called now and then by the caller while it waits for the others. Throws nothing.
    std::function<void()> while_waiting = {};
  };

  /// The pool of this process, with as many threads (the caller counted) as `usable_threads()` says when it is first
  /// asked for.
  static ThreadPool& shared();

  /// Has fewer threads where the system refuses some.
  explicit ThreadPool(unsigned threads);
  ~ThreadPool();

  unsigned threads() const { return threads_; }

  /// Calls `participant` in the caller and in as many workers as there is work for. Returns when all have returned.
  /// Rethrows the first exception of any.
  void run(const Work& work, const Participant& participant);

 private:
  void worker_loop(size_t participant);
  void watch_loop();
  void take_part(struct Job& job, size_t participant);
  void add_helpers(struct Job& job);

  unsigned threads_;
  std::mutex mutex_;
  std::condition_variable work_arrived_, work_left_, watch_;
  std::list<struct Job*> jobs_;  // that may have unclaimed pieces
  std::vector<Thread> workers_;
  std::vector<Thread> watcher_;  // one, once there is something to watch
  std::vector<Thread> helpers_;  // added while pieces waited for one another
  unsigned watched_jobs_ = 0;
  bool stopping_ = false;
};

/// Whole processors that the control group grants, rounded up, by the files in the folder where the system shows them
/// (of either version); 0 where it sets no limit.
unsigned quota_threads(const std::string& control_groups);

/// How many threads this process may use: the affinity mask's, the control group's quota, KILN_CPU_THREADS.
unsigned usable_threads();

}  // namespace kiln
