#include "compiler/driver/compile_for_nvidia.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/Transforms/Scalar/Scalarizer.h>
#include <llvm/Transforms/Utils/Local.h>

#include <cstring>

#include "compiler/analysis/uniformity.h"
#include "compiler/codegen/extension_uses.h"
#include "compiler/driver/thread_code.h"
#include "compiler/ir/convergence_point.h"
#include "compiler/ir/entry.h"
#include "compiler/ir/guard_sinks.h"
#include "compiler/ir/pass_runner.h"
#include "compiler/ir/pseudo_intrinsics.h"
#include "compiler/lowering/convergence_points.h"
#include "compiler/lowering/masked_loads.h"
#include "compiler/lowering/small_floats.h"
#include "compiler/nvptx/alignments.h"
#include "compiler/nvptx/exact_operations.h"
#include "compiler/nvptx/flat_branches.h"
#include "compiler/nvptx/kernel_entry.h"
#include "compiler/nvptx/predicated_accesses.h"
#include "compiler/nvptx/ptx_generator.h"
#include "compiler/nvptx/simdgroup_collectives.h"
#include "compiler/nvptx/simdgroup_masks.h"
#include "compiler/nvptx/tensor_products.h"
#include "compiler/nvptx/threadgroup_memory.h"
#include "core/gpu_image.h"
#include "core/text.h"
#include "kiln/error.h"

namespace kiln {
namespace {

using namespace llvm;

// Each thread keeps its machine: making one takes longer than using it for a small kernel's passes.
TargetMachine* gpu_machine(const std::string& architecture) {
  thread_local std::string made_for;
  thread_local std::unique_ptr<TargetMachine> machine;
  if (!machine || made_for != architecture) {
    machine = make_gpu_machine(architecture);
    made_for = architecture;
  }
  return machine.get();
}

std::vector<std::byte> write_gpu_image(const std::string& ptx, const std::string& entry, const KernelUnit& unit,
                                       uint64_t threadgroup_memory_bytes) {
  GpuImageHeader header{};
  header.magic = kGpuImageMagic;
  header.version = kGpuImageVersion;
  header.kind = GpuCodeKind::kPtx;
  header.block_bytes = gpu_block_layout(unit).bytes;
  header.entry_offset = sizeof(header);
  header.code_offset = header.entry_offset + entry.size() + 1;
  header.code_bytes = ptx.size() + 1;
  header.total_bytes = header.code_offset + header.code_bytes;
  header.threadgroup_memory_bytes = threadgroup_memory_bytes;
  std::vector<std::byte> image(header.total_bytes);
  std::memcpy(image.data(), &header, sizeof(header));
  std::memcpy(image.data() + header.entry_offset, entry.c_str(), entry.size() + 1);
  std::memcpy(image.data() + header.code_offset, ptx.c_str(), ptx.size() + 1);
  return image;
}

// Matrices in arrays become values while a product is one instruction still, and those of a block are seen together.
void unroll_products(Function& body) {
  ThreadAnalyses(Lanes::kIndependent)
      .run(
          "sroa,early-cse,simplifycfg,loop-mssa(loop-instsimplify,loop-rotate,licm),"
          "loop(loop-deletion,loop-unroll-full),sroa,early-cse,simplifycfg,instcombine<no-verify-fixpoint>",
          body);
}

// Whether instructions for matrices may be used, which round sums as they like, and how elements are given out.
struct TensorProducts {
  bool are_allowed;
  MatrixMap map;
};

// Ways that are never taken, as far as constants tell, go: a block behind which only a return is left is in no loop.
void remove_known_branches(Function& body) {
  ThreadAnalyses(Lanes::kIndependent).run("instsimplify", body);
  bool has_changed = false;
  for (BasicBlock& block : body) has_changed |= ConstantFoldTerminator(&block, /*DeleteDeadConditions=*/true);
  if (has_changed) removeUnreachableBlocks(body);
}

// Replaces what stands for exchanges and barriers. Returns why it cannot be done, or nothing.
std::string lower_simdgroup_collectives(Function& body, const TensorProducts& products) {
  bool exchanges = any_of(instructions(body), [](const Instruction& instruction) {
    return is_matrix_product(instruction) || calls(instruction, kCollectiveFunction);
  });
  std::vector<ConvergencePoint> sites =
      number_convergence_points(body, exchanges ? LoopEnds::kKept : LoopEnds::kCounted);
  if (sites.empty()) return "";
  if (exchanges) {
    remove_known_branches(body);
    if (keep_collectives_in_loops(body) == InLoops::kLost) return kLostCollective;
  }
  separate_index(body);
  if (any_of(sites, [](const ConvergencePoint& site) { return site.is_product; })) {
    unroll_products(body);
    if (keep_collectives_in_loops(body) == InLoops::kLost) return kLostCollective;
  }
  Masks masks = find_masks(body, sites);
  if (!masks.refusal.empty()) return masks.refusal;
  if (products.are_allowed) multiply_by_tensor_cores(body, sites, masks, products.map);
  lower_waits(body, sites, masks, products.map);
  return "";
}

// Of vectors only pairs of 16 bits have instructions. LLVM would make pairs of three components too, the last one of
// which is anything; here what is left over is a number. Loads and stores stay whole.
void split_vectors(Function& kernel, PassRunner& runner) {
  ScalarizerPassOptions options;
  options.ScalarizeLoadStore = false;
  options.ScalarizeMinBits = 32;
  FunctionPassManager passes;
  passes.addPass(ScalarizerPass(options));
  runner.run(passes, kernel);
}

// As the CPU's (engine_support.h), and then address spaces: a pointer's space is looked for once guards' offsets have
// become arithmetic of integers.
void optimize(Module& module, Function& kernel, TargetMachine& machine) {
  PassRunner runner(&machine);
  runner.run(
      "function(early-cse<memssa>,simplifycfg,"
      "loop-mssa(loop-instsimplify,loop-rotate,licm),loop(loop-deletion,loop-unroll-full),sroa,"
      "gvn<no-pre>,instcombine<no-verify-fixpoint>,dse,adce,simplifycfg,"
      "loop-unroll<O2;no-runtime>,instsimplify),globaldce",
      module);
  read_parameters(kernel);
  mask_at_loads(kernel);
  split_vectors(kernel, runner);
  runner.run("generic-to-nvvm,function(infer-address-spaces,sroa,early-cse,adce)", module);
}

int number_of(const std::string& architecture) {
  return std::atoi(architecture.c_str() + std::string_view("sm_").size());
}

// Of GPUs, LLVM 19 knows no newer ones than sm_90; they take what is made for that one.
std::string known_architecture(const std::string& architecture) {
  return number_of(architecture) > 90 ? "sm_90" : architecture;
}

}  // namespace

CompileResult compile_for_nvidia(const CompileRequest& request) {
  const KernelUnit& unit = request.unit;
  CompileResult result;
  result.report.generated_source = unit.text;
  const std::string architecture = known_architecture(request.target.cpu);
  TargetMachine* machine = gpu_machine(architecture);
  if (!machine) throw InternalError(concat("LLVM does not know ", request.target.cpu));
  if (uint32_t bytes = gpu_block_layout(unit).bytes; bytes > GpuBlockLayout::kLimit) {
    refuse(result, concat("the kernel's arguments, with shapes and strides, take ", bytes,
                          " bytes; an NVIDIA GPU takes ", GpuBlockLayout::kLimit));
    return result;
  }

  LLVMContext context;
  std::unique_ptr<Module> module = make_thread_code(request, "x86-64", machine->createDataLayout(), context, result);
  if (!module) return result;
  module->setTargetTriple(kGpuTriple);
  Function& body = *module->getFunction(kBodyFunction);
  drop_volatile_atomics(body);
  hide_sinks(body);
  TensorProducts products{unit.math_mode != MathMode::kSafe && number_of(architecture) >= 80, matrix_map(request)};
  if (std::string refusal = lower_simdgroup_collectives(body, products); !refusal.empty()) {
    refuse(result,
           concat("the kernel's threads exchange values where Kiln cannot tell which of them are there: ", refusal));
    return result;
  }
  move_threadgroup_variables(*module);
  Function& kernel = make_kernel_entry(*module, unit);
  std::string entry = kernel.getName().str();
  read_parameters(kernel);
  optimize(*module, kernel, *machine);
  compare_with_ends(kernel, unit);
  claim_known_alignments(kernel);
  flatten_short_branches(kernel);
  predicate_accesses(kernel);
  use_hardware_operations(kernel, unit.math_mode);
  uint64_t threadgroup_bytes = lay_out_threadgroup_memory(*module);
  if (uint64_t limit = threadgroup_memory_limit(architecture); threadgroup_bytes > limit) {
    refuse(result, concat("the kernel needs ", threadgroup_bytes, " bytes of threadgroup memory, and a GPU of ",
                          request.target.cpu, " has ", limit));
    return result;
  }
  if (!check_variables(*module, result)) return result;
  share_sinks(*module);
  remove_bfloat(*module);
  for (Function& function : *module) truncate_extended_values(function);
  keep_stage(request, *module, "optimized", result);
  std::string ptx = generate_ptx(*module, *machine);
  if (request.keep_stages) result.stages.push_back({"ptx", ptx});
  result.binary = write_gpu_image(ptx, entry, unit, threadgroup_bytes);
  result.engine = "ptx";
  result.engine_reason = "the only one";
  return result;
}

}  // namespace kiln
