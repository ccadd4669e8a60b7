// The scalar engine: one thread after the other.
//
// Where no thread waits for another, a threadgroup is a loop over its threads. Otherwise each thread is a coroutine,
// cut wherever it waits (`passes/split_at_waits.cpp`); the target's scheduler (`targets/cpu/group_scheduler.cpp`) calls
// it until it has returned. It is slow and simple: it follows the specification's words on reconvergence literally, and
// other engines are held against it.
//
// Coroutines, not threads with stacks of their own: a waiting thread costs its live values and an indirect call, and
// sanitizers understand them. Their frames are memory of the scheduler's, 64-byte aligned, so that vectors of any width
// may live in them.
#include <llvm/ADT/SCCIterator.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/ReplaceConstant.h>

#include "compiler/clang_frontend.h"
#include "compiler/cpu/engine.h"
#include "compiler/cpu/engine_support.h"
#include "compiler/metal/token_rewriter.h"
#include "compiler/passes/inline_all.h"
#include "compiler/passes/masked_loads.h"
#include "compiler/passes/matrix_products.h"
#include "compiler/passes/pass_runner.h"
#include "compiler/passes/split_at_waits.h"
#include "core/text.h"
#include "kiln/error.h"

namespace kiln {
namespace {

using namespace llvm;

constexpr const char* kThreadFunction = "__kiln_thread";
constexpr const char* kRowFunction = "__kiln_row";

class ScalarEngine : public CpuEngine {
 public:
  std::string text(const KernelUnit& unit) const override {
    std::string arguments;
    for (size_t i = 0; i < unit.parameters.size(); ++i) {
      std::string argument = concat("launch->arguments[", i, "].");
      arguments += concat(argument, "data, ", argument, "first, ", argument, "end, ");
    }
    return concat("extern \"C\" void ", kThreadFunction,
                  "(const __kiln::Launch* launch, __kiln::Thread* thread, void* frame) {\n  ", kBodyFunction, "(",
                  arguments, "thread);\n}\n",
                  // The device library declares the structures of core/cpu_image.h a second time.
                  "static_assert(sizeof(__kiln::Argument) == ", sizeof(CpuArgument),
                  " && sizeof(__kiln::Launch) == ", sizeof(CpuLaunch),
                  " && sizeof(__kiln::Thread) == ", sizeof(CpuThread),
                  " && __builtin_offsetof(__kiln::Thread, site) == ", offsetof(CpuThread, site),
                  " && __builtin_offsetof(__kiln::Thread, entry) == ", offsetof(CpuThread, entry),
                  " && static_cast<unsigned>(__kiln::Exchange::exclusive_scan) == ",
                  static_cast<uint32_t>(CpuExchange::kExclusiveScan), ");\n");
  }

  EngineOutput lower(Module& module, const KernelUnit& unit, TargetMachine& machine,
                     StageKeeper /*keep_stage*/) override {
    EngineOutput output;
    output.engine = "scalar";
    output.reason = "KILN_CPU_ENGINE asks for it";
    Function& body = *module.getFunction(kBodyFunction);
    expand_matrix_products(body);
    output.sites = number_exchange_sites(body);
    output.kind = output.sites.empty() ? CpuImageKind::kLoop : CpuImageKind::kCoroutines;
    for (size_t i = 0; i < output.sites.size(); ++i) {
      Function* combine = output.sites[i].combine;
      if (combine) combine->setLinkage(GlobalValue::ExternalLinkage);
      output.combine_functions.push_back(combine ? combine->getName().str() : "");
    }
    bool has_atomics = any_of(instructions(body), [](const Instruction& i) { return i.isAtomic(); });
    output.may_spin = may_spin(body);
    Value* record = body.getArg(body.arg_size() - 1);
    lower_values(body, record, output.kind);
    output.threadgroup_memory_bytes = lower_threadgroup_memory(module, body, record, output.kind);
    Function& thread = *module.getFunction(kThreadFunction);
    describe_arguments(thread, unit);
    if (output.kind == CpuImageKind::kLoop) {
      output.run_function = kRowFunction;
      inline_into_callers(module, {&thread});
      Function& row = *module.getFunction(kRowFunction);
      hoist_arguments(row);
      // So that what is there at the beginning is known to be there until the end.
      row.setDoesNotFreeMemory();
      if (!has_atomics) row.setNoSync();
      inline_into_callers(module, {&body});
      optimize(module, machine);
    } else {
      output.run_function = kThreadFunction;
      module.getFunction(kRowFunction)->eraseFromParent();
      inline_into_callers(module, {&body});
      optimize(module, machine);
      output.frame_bytes = split_at_waits(thread);
      PassRunner(&machine).run("early-cse,simplifycfg", thread);
    }
    for (Function& function : module) mask_at_loads(function);
    output.private_bytes = output.frame_bytes + largest_stack(module);
    return output;
  }
};

}  // namespace

std::unique_ptr<CpuEngine> make_scalar_engine() { return std::make_unique<ScalarEngine>(); }

}  // namespace kiln
