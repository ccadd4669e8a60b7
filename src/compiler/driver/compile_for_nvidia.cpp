#include "compiler/driver/compile_for_nvidia.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/Transforms/Scalar/Scalarizer.h>
#include <llvm/Transforms/Utils/Local.h>

#include <algorithm>
#include <cstring>

#include "compiler/driver/kept_machine.h"
#include "compiler/driver/thread_code.h"
#include "compiler/ir/abandonment.h"
#include "compiler/ir/pseudo_intrinsics.h"
#include "compiler/nvptx/approximations.h"
#include "compiler/nvptx/ptx_generator.h"
#include "compiler/nvptx/threadgroup_memory.h"
#include "compiler/pipeline.h"
#include "core/gpu_image.h"
#include "core/text.h"
#include "kiln/error.h"

namespace kiln {
namespace {

using namespace llvm;

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

int number_of(const std::string& architecture) {
  return std::atoi(architecture.c_str() + std::string_view("sm_").size());
}

// Of GPUs, LLVM 19 knows no newer ones than sm_90; they take what is made for that one.
std::string known_architecture(const std::string& architecture) {
  return number_of(architecture) > 90 ? "sm_90" : architecture;
}

// How the code gives out matrices' elements. Instructions have a map of their own, which serves where those
// instructions may be used and the body does not look at single elements.
MatrixMap matrix_map(const KernelUnit& unit) {
  if (unit.math_mode == MathMode::kSafe) return MatrixMap::kApple;
  bool are_seen = unit.pastes_tokens || std::ranges::binary_search(unit.identifiers, "thread_elements");
  return are_seen ? MatrixMap::kApple : MatrixMap::kTensor;
}

}  // namespace

CompileResult compile_for_nvidia(const CompileRequest& request) {
  const KernelUnit& unit = request.unit;
  CompileResult result;
  result.report.generated_source = unit.text;
  const std::string architecture = known_architecture(request.target.cpu);
  const KeptMachine<make_gpu_machine> machine(architecture);
  if (!machine) throw InternalError(concat("LLVM does not know ", request.target.cpu));
  if (uint32_t bytes = gpu_block_layout(unit).bytes; bytes > GpuBlockLayout::kLimit) {
    refuse(result, concat("the kernel's arguments, with shapes and strides, take ", bytes,
                          " bytes; an NVIDIA GPU takes ", GpuBlockLayout::kLimit));
    return result;
  }

  Pipeline pipeline(request, result);
  LLVMContext context;
  const ThreadTarget thread{.cpu = "x86-64",
                            .layout = machine->createDataLayout(),
                            .vector_isa = {},
                            .matrix_map = matrix_map(unit),
                            .approximate = approximate_for_gpu,
                            .round_rsqrt = round_rsqrt_for_gpu};
  std::unique_ptr<Module> module = make_thread_code(pipeline, thread, context);
  if (!module) return result;
  const FunctionsFreedWhenAbandoned freed(*module);
  module->setTargetTriple(kGpuTriple);
  const GpuLowering lowering = lower_for_nvidia(pipeline, *module, *machine, architecture, thread.matrix_map);
  if (!lowering.refusal.empty()) {
    refuse(result, concat("the kernel's threads exchange values where Kiln cannot tell which of them are there: ",
                          lowering.refusal));
    return result;
  }
  if (uint64_t limit = threadgroup_memory_limit(architecture); lowering.threadgroup_memory_bytes > limit) {
    refuse(result, concat("the kernel needs ", lowering.threadgroup_memory_bytes,
                          " bytes of threadgroup memory, and a GPU of ", request.target.cpu, " has ", limit));
    return result;
  }
  if (!check_variables(*module, result)) return result;
  prepare_for_ptx(pipeline, *module);
  refuse_pseudo_intrinsics(*module, &PseudoIntrinsic::gpu);
  pipeline.keep_stage("optimized", *module);
  std::string ptx = generate_ptx(*module, *machine);
  if (request.keep_stages) result.stages.push_back({"ptx", ptx});
  result.binary = write_gpu_image(ptx, lowering.entry, unit, lowering.threadgroup_memory_bytes);
  result.engine = "ptx";
  result.engine_reason = "the only one";
  return result;
}

}  // namespace kiln
