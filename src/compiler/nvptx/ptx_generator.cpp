#include "compiler/nvptx/ptx_generator.h"

#include <llvm/IR/LegacyPassManager.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/raw_ostream.h>

#include <mutex>

#include "compiler/nvptx/padded_constants.h"
#include "kiln/error.h"

extern "C" {
void LLVMInitializeNVPTXTarget();
void LLVMInitializeNVPTXTargetInfo();
void LLVMInitializeNVPTXTargetMC();
void LLVMInitializeNVPTXAsmPrinter();
}

namespace kiln {

std::unique_ptr<llvm::TargetMachine> make_gpu_machine(const std::string& architecture) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  std::string error;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(kGpuTriple, error);
  if (!target) throw InternalError("LLVM has no NVPTX target: " + error);
  std::unique_ptr<llvm::MCSubtargetInfo> known(target->createMCSubtargetInfo(kGpuTriple, "", ""));
  if (!known || !known->isCPUStringValid(architecture)) return nullptr;
  llvm::TargetOptions options;
  // LLVM then writes mul.rn and add.rn, which ptxas does not contract either (docs/language.md 4.1).
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  options.ExceptionModel = llvm::ExceptionHandling::None;
  // Drivers accept PTX 8.0 from CUDA 12.0 on.
  return std::unique_ptr<llvm::TargetMachine>(
      target->createTargetMachine(kGpuTriple, architecture, /*Features=*/"+ptx80", options, llvm::Reloc::PIC_,
                                  std::nullopt, llvm::CodeGenOptLevel::Default));
}

std::string generate_ptx(llvm::Module& module, llvm::TargetMachine& machine) {
  write_padding_as_bytes(module);
  llvm::SmallVector<char, 0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::AssemblyFile, /*DisableVerify=*/true))
    throw InternalError("LLVM cannot write PTX");
  passes.run(module);
  return {text.data(), text.size()};
}

}  // namespace kiln
