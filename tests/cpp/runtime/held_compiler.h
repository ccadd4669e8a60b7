// A compiler that tests can hold.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "core/compiler.h"
#include "runtime/compiler_library.h"

namespace kiln {

// What a test and its compiler share; the compiler belongs to the context.
class CompilerHold {
 public:
  /// Compiles of texts that contain `mark` wait until release().
  explicit CompilerHold(std::string mark) : mark_(std::move(mark)) {}

  /// Returns when `count` compiles are waiting.
  void wait_until_held(int count = 1) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return held_ >= count; });
  }
  void release() {
    std::lock_guard lock(mutex_);
    released_ = true;
    changed_.notify_all();
  }
  /// How often the compiler was asked.
  int compiles() const { return compiles_; }

 private:
  friend class HeldCompiler;
  void compile(const std::string& text) {
    ++compiles_;
    if (text.find(mark_) == std::string::npos) return;
    std::unique_lock lock(mutex_);
    ++held_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return released_; });
  }

  const std::string mark_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int held_ = 0;
  bool released_ = false;
  std::atomic<int> compiles_ = 0;
};

// Behind the futures of a test: where it ends early, they would wait for ever for what is held.
struct Release {
  CompilerHold& hold;
  ~Release() { hold.release(); }
};

// The library's compiler, with a hold before it.
class HeldCompiler : public Compiler {
 public:
  explicit HeldCompiler(std::shared_ptr<CompilerHold> hold) : hold_(std::move(hold)) {}

  CompileResult compile(const CompileRequest& request) override {
    hold_->compile(request.unit.text);
    return library_.get().compile(request);
  }
  std::string identity() const override { return "held"; }

 private:
  std::shared_ptr<CompilerHold> hold_;
  CompilerLibrary library_;
};

}  // namespace kiln
