// Runs the passes of one compilation, each under its name.
//
// compiler/pipeline.cpp says which passes run, in which order and why. This class does around each of them what is the
// same for all: it tests what the pass takes for granted (compiler/ir/preconditions.h), verifies the IR, keeps it where
// it was asked for, notes what the pass did and how long it took, and leaves out what KILN_PASSES and KILN_PASS_LIMIT
// switch off.
#pragma once

#include <llvm/IR/Module.h>

#include <chrono>
#include <concepts>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "compiler/ir/pass_runner.h"
#include "core/compiler.h"

namespace kiln {

/// An optional pass, which KILN_PASSES may switch off: results do not depend on it.
struct OptionalPass {
  const char* name;
};

class Pipeline {
 public:
  /// Both must outlive the pipeline. `result` gets stages and passes where `request` wants them.
  Pipeline(const CompileRequest& request, CompileResult& result) : request_(request), result_(result) {}
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  /// Runs a pass that correctness needs, on a function or a module. `pass()` returns whether it changed the code, or
  /// something else, or nothing. What the runner knows of the function is forgotten.
  template <class Unit, std::invocable Pass>
  auto run(const char* name, Unit& unit, Pass&& pass) -> std::invoke_result_t<Pass> {
    return run_counted<Effect::kUnknown>(name, /*number=*/0, unit, std::forward<Pass>(pass));
  }

  /// The same of an optional pass. Returns a default value where it is switched off.
  template <class Unit, std::invocable Pass>
  auto run(OptionalPass optional, Unit& unit, Pass&& pass) -> std::invoke_result_t<Pass> {
    const uint32_t number = ++optional_passes_;
    if (is_switched_off(optional.name, number)) {
      note_switched_off(optional.name, number, name_of(unit));
      return std::invoke_result_t<Pass>();
    }
    return run_counted<Effect::kUnknown>(optional.name, number, unit, std::forward<Pass>(pass));
  }

  /// A question that correctness needs answered. It changes no code; analyses stay.
  template <class Unit, std::invocable Pass>
  auto query(const char* name, Unit& unit, Pass&& pass) -> std::invoke_result_t<Pass> {
    return run_counted<Effect::kNone>(name, /*number=*/0, unit, std::forward<Pass>(pass));
  }

  /// LLVM's passes, under their own names. Analyses that they preserve stay.
  bool run_llvm(const char* passes, llvm::Function& function) {
    return run_counted<Effect::kByRunner>(passes, 0, function, [&] { return runner_->run(passes, function); });
  }
  bool run_llvm(const char* passes, llvm::Module& module) {
    return run_counted<Effect::kByRunner>(passes, 0, module, [&] { return runner_->run(passes, module); });
  }

  /// An optional pass with the interface of LLVM's new pass manager. Analyses that it preserves stay.
  template <class Pass>
  bool run_pass(OptionalPass optional, Pass pass, llvm::Function& function) {
    const uint32_t number = ++optional_passes_;
    if (is_switched_off(optional.name, number)) {
      note_switched_off(optional.name, number, name_of(function));
      return false;
    }
    return run_counted<Effect::kByRunner>(optional.name, number, function,
                                          [&] { return runner_->run_pass(std::move(pass), function); });
  }

  /// Makes `runner` the one whose analyses passes use, until the result is destroyed.
  class Use {
   public:
    Use(Pipeline& pipeline, PassRunner& runner) : pipeline_(pipeline), previous_(pipeline.runner_) {
      pipeline.runner_ = &runner;
    }
    ~Use() { pipeline_.runner_ = previous_; }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    Pipeline& pipeline_;
    PassRunner* previous_;
  };
  [[nodiscard]] Use use(PassRunner& runner) { return Use(*this, runner); }
  PassRunner& runner() { return *runner_; }
  llvm::FunctionAnalysisManager& analyses() { return runner_->functions(); }

  /// Erases a function and what is known of it.
  void erase(llvm::Function& function);

  /// Keeps the module's text as a stage, where the request wants stages.
  void keep_stage(const std::string& name, const llvm::Module& module);

  const CompileRequest& request() const { return request_; }
  CompileResult& result() { return result_; }

 private:
  using Clock = std::chrono::steady_clock;

  // What a pass does to the code, and to what the runner knows of it.
  enum class Effect { kNone, kByRunner, kUnknown };

  struct Run {
    Clock::time_point start;
    uint64_t instructions = 0, fingerprint = 0;
    std::string function;
  };

  template <Effect effect, class Unit, class Pass>
  auto run_counted(const char* name, uint32_t number, Unit& unit, Pass&& pass) -> std::invoke_result_t<Pass> {
    using Result = std::invoke_result_t<Pass>;
    llvm::Module& module = module_of(unit);
    if (verifies()) test_preconditions(name, unit);
    const Run run = begin(name_of(unit), module);
    auto finish = [&](std::optional<bool> fired) {
      if (effect == Effect::kUnknown && runner_) invalidate(unit);
      end(name, number, run, module, effect == Effect::kNone ? std::optional(false) : fired);
    };
    if constexpr (std::is_void_v<Result>) {
      pass();
      finish(std::nullopt);
    } else {
      Result value = pass();
      if constexpr (std::is_same_v<Result, bool>)
        finish(value);
      else
        finish(std::nullopt);
      return value;
    }
  }

  static llvm::Module& module_of(llvm::Module& module) { return module; }
  static llvm::Module& module_of(llvm::Function& function) { return *function.getParent(); }
  static llvm::StringRef name_of(const llvm::Module&) { return {}; }
  static llvm::StringRef name_of(const llvm::Function& function) { return function.getName(); }
  void invalidate(llvm::Module&) { runner_->invalidate_all(); }
  void invalidate(llvm::Function& function) { runner_->invalidate(function); }

  bool verifies() const { return kIsDebugBuild || request_.verify_passes; }
  bool keeps_passes() const { return request_.keep_stages || request_.keep_remarks; }
  bool is_observed() const { return keeps_passes() || verifies(); }
  bool is_switched_off(const char* name, uint32_t number) const;
  static void test_preconditions(const char* name, const llvm::Module& module);
  static void test_preconditions(const char* name, const llvm::Function& function);
  void note_switched_off(const char* name, uint32_t number, llvm::StringRef function);
  Run begin(llvm::StringRef function, const llvm::Module& module) const;
  void end(const char* name, uint32_t number, const Run& run, const llvm::Module& module, std::optional<bool> fired);

#ifdef NDEBUG
  static constexpr bool kIsDebugBuild = false;
#else
  static constexpr bool kIsDebugBuild = true;
#endif
  const CompileRequest& request_;
  CompileResult& result_;
  PassRunner* runner_ = nullptr;
  uint32_t optional_passes_ = 0;  // so far, those that were switched off too
};

}  // namespace kiln
