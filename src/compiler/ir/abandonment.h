// What a compilation that is abandoned still frees.
//
// A compilation that exceeds its limits, or that LLVM gives up, ends in the middle of Clang's or LLVM's work
// (driver/compile_budget.h). Their frames are left without being unwound, since they are compiled without exceptions:
// no destructor runs, and what they have allocated is lost. Most of it is instructions and Clang's syntax tree. These
// are freed before the frames are left, while everything that refers to them, such as value handles in LLVM's frames,
// is still there.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/IR/Module.h>

#include <functional>

namespace kiln {

/// Calls a function if this thread's compilation is abandoned during the object's life. The last one made comes first.
class WhenAbandoned {
 public:
  /// `free` must outlive the object. It allocates nothing that it keeps and throws nothing.
  explicit WhenAbandoned(llvm::function_ref<void()> free) : free_(free), next_(t_last) { t_last = this; }
  ~WhenAbandoned() { t_last = next_; }
  WhenAbandoned(const WhenAbandoned&) = delete;
  WhenAbandoned& operator=(const WhenAbandoned&) = delete;

  /// Forgets all objects of this thread; `calls`: after it has called their functions.
  static void abandon(bool calls) noexcept;

 private:
  static thread_local WhenAbandoned* t_last;

  const llvm::function_ref<void()> free_;
  WhenAbandoned* const next_;
};

/// Frees the functions of a module. Constants, types and metadata stay: they are the context's, whose tables may have
/// an entry that is being made.
class FunctionsFreedWhenAbandoned {
 public:
  explicit FunctionsFreedWhenAbandoned(llvm::Module& module) : module_(module) {}

 private:
  llvm::Module& module_;
  const std::function<void()> free_ = [this] {
    for (llvm::Function& function : module_) function.dropAllReferences();
  };
  const WhenAbandoned when_{free_};
};

}  // namespace kiln
