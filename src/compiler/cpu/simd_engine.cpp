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
#include "compiler/passes/forward_stores.h"
#include "compiler/passes/lane_exchanges.h"
#include "compiler/passes/pass_runner.h"
#include "compiler/passes/reuse_barriers.h"
#include "compiler/passes/simdgroup_loops.h"
#include "compiler/passes/small_floats.h"
#include "compiler/passes/split_at_waits.h"
#include "compiler/passes/split_loops.h"
#include "compiler/passes/uniformity.h"
#include "compiler/passes/widen.h"
#include "core/text.h"
#include "kiln/error.h"

namespace kiln {
namespace {

using namespace llvm;

constexpr const char* kGroupFunction = "__kiln_simdgroup";
constexpr const char* kThreadgroupFunction = "__kiln_threadgroup";
constexpr const char* kRowFunction = "__kiln_simd_row";

class SimdEngine : public CpuEngine {
 public:
  std::string text(const KernelUnit& unit) const override {
    std::string arguments;
    for (size_t i = 0; i < unit.parameters.size(); ++i) {
      std::string argument = concat("launch->arguments[", i, "].");
      arguments += concat(argument, "data, ", argument, "first, ", argument, "end, ");
    }
    return concat(
        scalar_->text(unit), "extern \"C\" void ", kGroupFunction,
        "(const __kiln::Launch* launch, __kiln::Thread* first, void* frame, unsigned x, unsigned lanes) {\n  ",
        kBodyFunction, "(", arguments, "first);\n}\nextern \"C\" void ", kRowFunction,
        "(const __kiln::Launch* launch, __kiln::Thread* first, unsigned count) {\n",
        // Whole simdgroups need no masks.
        "  unsigned x = 0;\n  for (; x + 32 <= count; x += 32) ", kGroupFunction,
        "(launch, first, nullptr, x, 32);\n  if (x < count) ", kGroupFunction,
        "(launch, first, nullptr, x, count - x);\n}\n");
  }

  EngineOutput lower(Module& module, const KernelUnit& unit, TargetMachine& machine, StageKeeper keep_stage) override {
    std::string reason = refusal(machine);
    std::vector<ExchangeSite> sites;
    if (reason.empty()) reason = widen_group(module, unit, machine.getTargetCPU() == "x86-64-v4", sites, keep_stage);
    if (reason.empty() && stack_of(*module.getFunction(kGroupFunction)) > kCpuPrivateMemoryLimit)
      reason = "the private variables of 32 threads take too much memory";
    if (!reason.empty()) {
      for (const char* name : {kRowFunction, kGroupFunction, kLaneFunction})
        if (Function* function = module.getFunction(name)) function->eraseFromParent();
      EngineOutput output = scalar_->lower(module, unit, machine, keep_stage);
      output.reason = concat("the SIMD engine does not take it: ", reason);
      return output;
    }
    for (const char* name : {"__kiln_row", "__kiln_thread", kBodyFunction}) module.getFunction(name)->eraseFromParent();
    EngineOutput output;
    output.engine = "simd";
    output.reason = "the default";
    Function& group = *module.getFunction(kGroupFunction);
    Function& row = *module.getFunction(kRowFunction);
    output.threadgroup_memory_bytes =
        lower_threadgroup_memory(module, group, group.getArg(1), CpuImageKind::kSimdgroups);
    output.may_spin = may_spin(group);
    bool has_atomics = any_of(instructions(group), [](const Instruction& i) { return i.isAtomic(); });
    for (Function* function : {&row, &group}) {
      function->addFnAttr("prefer-vector-width", "512");
      function->addFnAttr("min-legal-vector-width", "512");
      // Otherwise registers for which there is no room go to places that cross cache lines.
      function->addFnAttr("stackrealign");
      function->setDoesNotFreeMemory();
    }
    if (sites.empty()) {
      output.run_function = kRowFunction;
      if (!has_atomics) row.setNoSync();
      inline_into_callers(module, {&group});
      optimize(module, machine);
      bool has_avx512 = machine.getTargetCPU() == "x86-64-v4";
      FunctionPassManager splitting;
      splitting.addPass(SplitLoopsPass(has_avx512 ? 32 : 16, has_avx512 ? 64 : 32));
      PassRunner(&machine).run(splitting, row);
    } else {
      output.kind = CpuImageKind::kSimdgroups;
      output.run_function = kGroupFunction;
      row.eraseFromParent();
      bool has_barriers = any_of(sites, [](const ExchangeSite& site) { return site.is_barrier; });
      Function* full = has_barriers ? full_simdgroup(group, unit.simdgroups) : nullptr;
      optimize(module, machine);
      if (has_barriers) {
        // What waits keeps its number; what is exchanged has become instructions.
        for (ExchangeSite& site : sites) site.combine = nullptr, site.exchange = CpuExchange::kNone;
        output.combine_functions.resize(sites.size());
        output.sites = std::move(sites);
        // Taken before what waits is cut.
        std::optional<uint64_t> frame = loop_over_simdgroups(
            *full, kThreadgroupFunction, unit.simdgroups, [](const Instruction& i) { return waits_at(i).has_value(); });
        output.frame_bytes = std::max(split_at_waits(group), frame.value_or(0));
        PassRunner runner(&machine);
        runner.run("early-cse,simplifycfg", group);
        if (frame) {
          output.threadgroup_function = kThreadgroupFunction;
          output.threadgroup_simdgroups = unit.simdgroups;
          Function& threadgroup = *module.getFunction(kThreadgroupFunction);
          runner.run(kLoopsPipeline, threadgroup);
          if (unit.simdgroups != 0) {
            FunctionPassManager forwarding;
            forwarding.addPass(ForwardStoresPass());
            runner.run(forwarding, threadgroup);
          }
          runner.run(kLastPipeline, threadgroup);
        }
      }
    }
    output.private_bytes = (output.frame_bytes + largest_stack(module)) / kLanes;
    return output;
  }

 private:
  // Values that loops over simdgroups have in common leave them; loops that are left without anything to do go.
  static constexpr const char* kLoopsPipeline =
      "early-cse<memssa>,simplifycfg,loop-mssa(licm),loop(loop-deletion,loop-unroll-full),sroa,simplifycfg,gvn<no-pre>,"
      "instcombine<no-verify-fixpoint>";
  static constexpr const char* kLastPipeline = "dse,adce,simplifycfg";

  // The same for simdgroups without threads that are missing: no masks are needed where all threads go.
  // Of a threadgroup that is a row of `count` simdgroups, where that is not 0.
  static Function* full_simdgroup(Function& group, unsigned count) {
    ValueToValueMapTy map;
    Function* full = CloneFunction(&group, map);
    Argument* lanes = full->getArg(full->arg_size() - 1);
    lanes->replaceAllUsesWith(ConstantInt::get(lanes->getType(), kLanes));
    if (count == 0) return full;
    for (Instruction& instruction : make_early_inc_range(instructions(*full))) {
      auto* load = dyn_cast<LoadInst>(&instruction);
      if (!load || !load->getType()->isIntegerTy(32)) continue;
      APInt offset(64, 0);
      Value* base = load->getPointerOperand()->stripAndAccumulateConstantOffsets(load->getDataLayout(), offset, true);
      if (base != full->getArg(1)) continue;
      uint64_t field = offset.getZExtValue() / sizeof(uint32_t);
      std::optional<uint32_t> value;
      if (field == kPositionInThreadgroup + 1 || field == kPositionInThreadgroup + 2) value = 0;
      if (field == kThreadsPerThreadgroup) value = count * kLanes;
      if (field == kThreadsPerThreadgroup + 1 || field == kThreadsPerThreadgroup + 2) value = 1;
      if (!value) continue;
      load->replaceAllUsesWith(ConstantInt::get(load->getType(), *value));
      load->eraseFromParent();
    }
    return full;
  }

  static std::string refusal(const TargetMachine& machine) {
    if (machine.getTargetCPU() != "x86-64-v3" && machine.getTargetCPU() != "x86-64-v4") return "it needs AVX2";
    return "";
  }

  static std::string widen_group(Module& module, const KernelUnit& unit, bool has_avx512,
                                 std::vector<ExchangeSite>& sites, StageKeeper keep_stage) {
    Function& body = *module.getFunction(kBodyFunction);
    Function& group = *module.getFunction(kGroupFunction);
    ValueToValueMapTy map;
    Function* copy = CloneFunction(&body, map);
    add_reuse_barriers(*copy);
    sites = number_exchange_sites(*copy, LoopEnds::kKept);
    describe_arguments(group, unit);
    call_of_body(group).setCalledFunction(copy);
    inline_into_callers(module, {copy});
    // The inliner has removed the copy.
    lower_positions(group, !sites.empty(), unit.rows_are_simdgroups, unit.simdgroups);
    // A vector of bfloats, too, would become calls of a function for each.
    remove_bfloat(group);
    return widen(group, {has_avx512, sites, offsetof(CpuLaunch, is_alone), keep_stage});
  }

  // A thread's place in its row is the first one's and its lane. Where threads wait, `group` is one simdgroup, which
  // may go over several rows.
  // `simdgroups` are those of a threadgroup that is one row of them, where it is not 0: a power of two.
  static void lower_positions(Function& group, bool threads_wait, bool rows_are_simdgroups, unsigned simdgroups) {
    Value *record = group.getArg(1), *x = group.getArg(3);
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
      auto recorded = [&](uint64_t value) {
        LoadInst* load = builder.CreateLoad(
            builder.getInt32Ty(),
            builder.CreateInBoundsGEP(builder.getInt32Ty(), record, builder.getInt32(static_cast<uint32_t>(value))));
        load->setMetadata(LLVMContext::MD_invariant_load, MDNode::get(load->getContext(), {}));
        return load;
      };
      auto in_record = [&] { return recorded(which); };
      // What is known to be a multiple of 32 lets the optimiser divide the simdgroup's place from the lane's: x / 64 is
      // the same in all lanes then. Where it must be less than a known number of threads, comparisons with lengths fall
      // away.
      auto multiple = [&](Value* number) { return builder.CreateAnd(number, builder.getInt32(~31u)); };
      auto place = [&](Value* number) {
        return simdgroups ? builder.CreateAnd(number, builder.getInt32((simdgroups - 1) * kLanes)) : multiple(number);
      };
      auto index_in_simdgroups = [&] {
        return builder.Insert(BinaryOperator::CreateDisjoint(Instruction::Or, place(recorded(kIndexInThreadgroup)),
                                                             builder.CreateCall(lane_function)));
      };
      // Exact for a threadgroup's at most 1024 threads: what is rounded is at least 1/2048 away from a whole number.
      // Vectors have no division of integers.
      auto quotient = [&](Value* number, Value* divisor) {
        Type* real = builder.getFloatTy();
        Value* middle = builder.CreateFAdd(builder.CreateUIToFP(number, real), ConstantFP::get(real, 0.5));
        Value* inverse = builder.CreateFDiv(ConstantFP::get(real, 1), builder.CreateUIToFP(divisor, real));
        return builder.CreateFPToUI(builder.CreateFMul(middle, inverse), builder.getInt32Ty());
      };
      auto remainder = [&](Value* number, Value* divisor) {
        return builder.CreateSub(number, builder.CreateMul(quotient(number, divisor), divisor));
      };
      Value* value;
      if (threads_wait && which == kIndexInThreadgroup)
        value = index_in_simdgroups();
      else if (simdgroups && (which == kPositionInThreadgroup + 1 || which == kPositionInThreadgroup + 2))
        value = builder.getInt32(0);
      else if (threads_wait && !rows_are_simdgroups && which == kPositionInThreadgroup)
        value = remainder(index_in_simdgroups(), recorded(kThreadsPerThreadgroup));
      else if (threads_wait && !rows_are_simdgroups && which == kPositionInThreadgroup + 1)
        value = remainder(quotient(index_in_simdgroups(), recorded(kThreadsPerThreadgroup)),
                          recorded(kThreadsPerThreadgroup + 1));
      else if (threads_wait && !rows_are_simdgroups && which == kPositionInThreadgroup + 2)
        value = quotient(quotient(index_in_simdgroups(), recorded(kThreadsPerThreadgroup)),
                         recorded(kThreadsPerThreadgroup + 1));
      else if (which == kPositionInThreadgroup)
        value = builder.Insert(
            BinaryOperator::CreateDisjoint(Instruction::Or, place(x), builder.CreateCall(lane_function)));
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
