// The SIMD engine: the threads of a simdgroup at once, as vectors of 32 (`passes/widen.h`).
//
// A row of threads is cut into pieces of 32; the last one runs under a mask. What the engine cannot take, the scalar
// one does, and EngineOutput says why.
#include <llvm/IR/ConstantRange.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include "compiler/clang_frontend.h"
#include "compiler/cpu/engine.h"
#include "compiler/cpu/engine_support.h"
#include "compiler/metal/token_rewriter.h"
#include "compiler/passes/pass_runner.h"
#include "compiler/passes/small_floats.h"
#include "compiler/passes/uniformity.h"
#include "compiler/passes/widen.h"
#include "core/text.h"
#include "kiln/error.h"

namespace kiln {
namespace {

using namespace llvm;

constexpr const char* kGroupFunction = "__kiln_simdgroup";
constexpr const char* kRowFunction = "__kiln_simd_row";

class SimdEngine : public CpuEngine {
 public:
  std::string text(const KernelUnit& unit) const override {
    std::string arguments;
    for (size_t i = 0; i < unit.parameters.size(); ++i) {
      std::string argument = concat("launch->arguments[", i, "].");
      arguments += concat(argument, "data, ", argument, "first, ", argument, "end, ");
    }
    return concat(scalar_->text(unit), "extern \"C\" void ", kGroupFunction,
                  "(const __kiln::Launch* launch, __kiln::Thread* first, uint x, uint lanes) {\n  ", kBodyFunction, "(",
                  arguments, "first);\n}\nextern \"C\" void ", kRowFunction,
                  "(const __kiln::Launch* launch, __kiln::Thread* first, uint count) {\n",
                  "  for (uint x = 0; x < count; x += 32) ", kGroupFunction, "(launch, first, x, count - x);\n}\n");
  }

  EngineOutput lower(Module& module, const KernelUnit& unit, TargetMachine& machine) override {
    std::string reason = refusal(module, machine);
    if (reason.empty()) reason = widen_group(module, unit, machine.getTargetCPU() == "x86-64-v4");
    if (reason.empty() && stack_of(*module.getFunction(kGroupFunction)) > kCpuPrivateMemoryLimit)
      reason = "the private variables of 32 threads take too much memory";
    if (!reason.empty()) {
      for (const char* name : {kRowFunction, kGroupFunction, kLaneFunction})
        if (Function* function = module.getFunction(name)) function->eraseFromParent();
      EngineOutput output = scalar_->lower(module, unit, machine);
      output.reason = concat("the SIMD engine does not take it: ", reason);
      return output;
    }
    for (const char* name : {"__kiln_row", "__kiln_thread", kBodyFunction}) module.getFunction(name)->eraseFromParent();
    EngineOutput output;
    output.engine = "simd";
    output.reason = "the body is taken by the SIMD engine";
    output.run_function = kRowFunction;
    Function& row = *module.getFunction(kRowFunction);
    bool has_atomics =
        any_of(instructions(*module.getFunction(kGroupFunction)), [](const Instruction& i) { return i.isAtomic(); });
    output.may_spin = may_spin(*module.getFunction(kGroupFunction));
    row.setDoesNotFreeMemory();
    if (!has_atomics) row.setNoSync();
    for (Function* function : {&row, module.getFunction(kGroupFunction)}) {
      function->addFnAttr("prefer-vector-width", "512");
      function->addFnAttr("min-legal-vector-width", "512");
    }
    inline_into_callers(module, {module.getFunction(kGroupFunction)});
    optimize(module, machine);
    output.private_bytes = largest_stack(module);
    return output;
  }

 private:
  static std::string refusal(const Module& module, const TargetMachine& machine) {
    if (machine.getTargetCPU() != "x86-64-v3" && machine.getTargetCPU() != "x86-64-v4") return "it needs AVX2";
    for (const Instruction& instruction : instructions(*module.getFunction(kBodyFunction))) {
      const auto* call = dyn_cast<CallInst>(&instruction);
      if (!call || !call->getCalledFunction()) continue;
      StringRef name = call->getCalledFunction()->getName();
      if (name == "__kiln_exchange" || name == "__kiln_threadgroup_barrier") return "threads wait for one another";
    }
    for (const GlobalVariable& variable : module.globals())
      if (variable.getSection() == kThreadgroupSection) return "it has threadgroup memory";
    return "";
  }

  static std::string widen_group(Module& module, const KernelUnit& unit, bool has_avx512) {
    Function& body = *module.getFunction(kBodyFunction);
    Function& group = *module.getFunction(kGroupFunction);
    ValueToValueMapTy map;
    Function* copy = CloneFunction(&body, map);
    number_exchange_sites(*copy);  // the marks of loops
    describe_arguments(group, unit);
    call_of_body(group).setCalledFunction(copy);
    inline_into_callers(module, {copy});
    // The inliner has removed the copy.
    lower_positions(group, unit.rows_are_simdgroups);
    // A vector of bfloats, too, would become calls of a function for each.
    remove_bfloat(group);
    return widen(group, has_avx512);
  }

  // A thread's place in its row is the first one's and its lane.
  static void lower_positions(Function& group, bool rows_are_simdgroups) {
    Value *record = group.getArg(1), *x = group.getArg(2);
    auto* lane_function = cast<Function>(
        group.getParent()->getOrInsertFunction(kLaneFunction, Type::getInt32Ty(group.getContext())).getCallee());
    lane_function->setDoesNotAccessMemory();
    lane_function->setDoesNotThrow();
    lane_function->setWillReturn();
    lane_function->setSpeculatable();
    lane_function->addRangeRetAttr(ConstantRange(APInt(32, 0), APInt(32, kLanes)));
    for (Instruction& instruction : make_early_inc_range(instructions(group))) {
      auto* call = dyn_cast<CallInst>(&instruction);
      if (!call || !call->getCalledFunction() || call->getCalledFunction()->getName() != "__kiln_value") continue;
      IRBuilder<> builder(call);
      uint64_t which = cast<ConstantInt>(call->getArgOperand(0))->getZExtValue();
      auto in_record = [&] {
        LoadInst* load = builder.CreateLoad(
            builder.getInt32Ty(),
            builder.CreateInBoundsGEP(builder.getInt32Ty(), record, builder.getInt32(static_cast<uint32_t>(which))));
        load->setMetadata(LLVMContext::MD_invariant_load, MDNode::get(load->getContext(), {}));
        return load;
      };
      // What is known to be a multiple of 32 lets the optimiser divide the simdgroup's place from the lane's: x / 64 is
      // the same in all lanes then.
      auto multiple = [&](Value* number) { return builder.CreateAnd(number, builder.getInt32(~31u)); };
      Value* value;
      if (which == kPositionInThreadgroup)
        value = builder.Insert(
            BinaryOperator::CreateDisjoint(Instruction::Or, multiple(x), builder.CreateCall(lane_function)));
      else if (which == kIndexInThreadgroup)
        value = builder.CreateAdd(builder.CreateAdd(in_record(), x), builder.CreateCall(lane_function));
      else if (which == kFullThreadsPerThreadgroup && rows_are_simdgroups)
        value = multiple(in_record());
      else
        value = in_record();
      call->replaceAllUsesWith(value);
      call->eraseFromParent();
    }
  }

  std::unique_ptr<CpuEngine> scalar_ = make_scalar_engine();
};

}  // namespace

std::unique_ptr<CpuEngine> make_simd_engine() { return std::make_unique<SimdEngine>(); }

}  // namespace kiln
