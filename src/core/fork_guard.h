// `fork` copies the memory of a process and, of its threads, the one that called it. What another thread was changing
// stays half changed in the child, and what it had locked stays locked. So a thread says where it changes or locks what
// others share, and `fork` waits until none is there.
//
// (Taking every lock before `fork` would need a list of all of them, and making them anew in the child would leave what
// they protect as it was.)
#pragma once

namespace kiln {

/// For the time of a scope in which the thread waits for no other that may need such a scope to go on. Scopes nest.
class ForkGuard {
 public:
  ForkGuard();
  ~ForkGuard();
  ForkGuard(const ForkGuard&) = delete;
  ForkGuard& operator=(const ForkGuard&) = delete;
};

}  // namespace kiln
