#include "compiler/ir/pipeline.h"

#include <llvm/ADT/StringExtras.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>

#include "compiler/ir/preconditions.h"
#include "core/text.h"
#include "kiln/error.h"

namespace kiln {
namespace {

// Of one function, or of the module where the name is empty or the function is gone.
uint64_t count_instructions(const llvm::Module& module, llvm::StringRef function) {
  const llvm::Function* one = function.empty() ? nullptr : module.getFunction(function);
  return one ? one->getInstructionCount() : module.getInstructionCount();
}

// A number that changes with the code, for this process: it is made from the addresses of instructions, blocks, types
// and constants, which are unique. It sees neither metadata nor alignments. (LLVM's StructuralHash took a tenth of a
// compilation that verifies its passes, and takes an instruction that is replaced by one like it for the same.)
class Fingerprint {
 public:
  explicit Fingerprint(const llvm::Module& module) {
    for (const llvm::GlobalVariable& variable : module.globals()) {
      add(&variable);
      if (variable.hasInitializer()) add(variable.getInitializer());
    }
    for (const llvm::Function& function : module) {
      add(&function);
      add(function.getAttributes().getRawPointer());
      for (const llvm::BasicBlock& block : function) {
        add(&block);
        for (const llvm::Instruction& instruction : block) add_instruction(instruction);
      }
    }
  }
  uint64_t value() const { return value_; }

 private:
  void add(uint64_t number) {
    value_ = (value_ ^ number) * 0x9e3779b97f4a7c15u;
    value_ ^= value_ >> 29;
  }
  void add(const void* address) { add(reinterpret_cast<uintptr_t>(address)); }

  void add_instruction(const llvm::Instruction& instruction) {
    add(&instruction);
    add(instruction.getType());
    add(uint64_t{instruction.getOpcode()} << 8 | instruction.getRawSubclassOptionalData());
    for (const llvm::Use& operand : instruction.operands()) add(operand.get());
    if (const auto* phi = llvm::dyn_cast<llvm::PHINode>(&instruction))
      for (const llvm::BasicBlock* block : phi->blocks()) add(block);
    else if (const auto* compare = llvm::dyn_cast<llvm::CmpInst>(&instruction))
      add(uint64_t{compare->getPredicate()});
    else if (const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction))
      add(call->getAttributes().getRawPointer());
    else if (const auto* address = llvm::dyn_cast<llvm::GetElementPtrInst>(&instruction))
      add(address->getSourceElementType());
    else if (const auto* shuffle = llvm::dyn_cast<llvm::ShuffleVectorInst>(&instruction))
      for (const int index : shuffle->getShuffleMask()) add(uint64_t(uint32_t(index)));
    else if (const auto* extract = llvm::dyn_cast<llvm::ExtractValueInst>(&instruction))
      for (const unsigned index : extract->indices()) add(uint64_t{index});
    else if (const auto* insert = llvm::dyn_cast<llvm::InsertValueInst>(&instruction))
      for (const unsigned index : insert->indices()) add(uint64_t{index});
  }

  uint64_t value_ = 0;
};

uint64_t fingerprint(const llvm::Module& module) { return Fingerprint(module).value(); }

std::string complaints_of(const llvm::Module& module) {
  std::string complaints;
  llvm::raw_string_ostream stream(complaints);
  return llvm::verifyModule(module, &stream) ? complaints : std::string();
}

void refuse_wrong_order(const char* pass, const char* claim) {
  if (claim) throw InternalError(concat("the pass ", pass, " takes for granted that ", claim));
}

}  // namespace

void Pipeline::test_preconditions(const char* name, const llvm::Module& module) {
  refuse_wrong_order(name, broken_precondition(name, module));
}

void Pipeline::test_preconditions(const char* name, const llvm::Function& function) {
  refuse_wrong_order(name, broken_precondition(name, function));
}

void Pipeline::erase(llvm::Function& function) {
  if (runner_) runner_->invalidate(function);
  function.eraseFromParent();
}

bool Pipeline::is_switched_off(const char* name, uint32_t number) const {
  const TargetSpec& target = request_.target;
  if (target.pass_limit && number > *target.pass_limit) return true;
  if (target.passes.empty()) return false;
  for (llvm::StringRef off : llvm::split(target.passes, ','))
    if (off.drop_front() == name) return true;
  return false;
}

void Pipeline::note_switched_off(const char* name, uint32_t number, llvm::StringRef function) {
  if (!keeps_passes()) return;
  CompilePass pass;
  pass.name = name;
  pass.function = function.str();
  pass.number = number;
  pass.switched_off = true;
  result_.passes.push_back(std::move(pass));
}

Pipeline::Run Pipeline::begin(llvm::StringRef function, const llvm::Module& module) const {
  Run run;
  if (!is_observed()) return run;
  run.fingerprint = fingerprint(module);
  run.instructions = count_instructions(module, function);
  run.function = function.str();
  run.start = Clock::now();
  return run;
}

void Pipeline::end(const char* name, uint32_t number, const Run& run, const llvm::Module& module,
                   std::optional<bool> fired) {
  if (!is_observed()) return;
  const bool has_changed = run.fingerprint != fingerprint(module);
  if (keeps_passes()) {
    CompilePass pass;
    pass.ms = std::chrono::duration<double, std::milli>(Clock::now() - run.start).count();
    pass.name = name;
    pass.function = run.function;
    pass.number = number;
    pass.instructions_before = run.instructions;
    pass.instructions_after = count_instructions(module, run.function);
    pass.fired = fired.value_or(has_changed);
    result_.passes.push_back(std::move(pass));
    if (llvm::is_contained(request_.keep_after, name)) keep_stage(concat("after:", name), module);
  }
  if (!verifies()) return;
  // Most passes change nothing, and verification takes longer than the fingerprint, which does not see metadata.
  if (!has_changed && fired != true) return;
  if (std::string complaints = complaints_of(module); !complaints.empty())
    throw InternalError(concat("after the pass ", name, " the LLVM IR is not valid: ", complaints));
  // What the runner knows of the function may be wrong then.
  if (fired == false && has_changed)
    throw InternalError(concat("the pass ", name, " has changed the code and says that it has not"));
}

void Pipeline::keep_stage(const std::string& name, const llvm::Module& module) {
  if (!request_.keep_stages) return;
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream, /*AAW=*/nullptr);
  if (std::string complaints = complaints_of(module); !complaints.empty())
    stream << "; This is no valid IR: " << complaints;
  result_.stages.push_back({name, std::move(text)});
}

}  // namespace kiln
