// LLVM's description of a processor, which each thread keeps: making one takes as long as a small kernel's passes.
#pragma once

#include <llvm/Target/TargetMachine.h>

#include <memory>
#include <string>
#include <utility>

namespace kiln {

/// The thread's machine for one compilation. It is the thread's again when the compilation ends; one that is abandoned
/// (ir/abandonment.h) loses it.
/// `make(cpu)` returns a machine, or null; the thread keeps one for each such function.
template <auto make>
class KeptMachine {
 public:
  explicit KeptMachine(const std::string& cpu) : kept_(kept()) {
    if (kept_.machine && kept_.cpu == cpu)
      machine_ = std::move(kept_.machine);
    else
      machine_ = make(cpu);
    kept_.cpu = cpu;
  }
  ~KeptMachine() { kept_.machine = std::move(machine_); }
  KeptMachine(const KeptMachine&) = delete;
  KeptMachine& operator=(const KeptMachine&) = delete;

  explicit operator bool() const { return machine_ != nullptr; }
  llvm::TargetMachine& operator*() const { return *machine_; }
  llvm::TargetMachine* operator->() const { return machine_.get(); }

 private:
  struct Kept {
    std::string cpu;
    std::unique_ptr<llvm::TargetMachine> machine;
  };
  static Kept& kept() {
    thread_local Kept kept;
    return kept;
  }

  Kept& kept_;
  std::unique_ptr<llvm::TargetMachine> machine_;
};

}  // namespace kiln
