#include "compiler/x86/code_generator.h"

#include <llvm/IR/LegacyPassManager.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include <mutex>

#include "compiler/ir/entry.h"
#include "compiler/ir/llvm_options.h"
#include "core/text.h"
#include "kiln/error.h"

extern "C" {
void LLVMInitializeX86Target();
void LLVMInitializeX86TargetInfo();
void LLVMInitializeX86TargetMC();
void LLVMInitializeX86AsmPrinter();
}

namespace kiln {

namespace {

// Vectors as wide as the engines make them. Functions have no target attributes of their own (`drop_processor`): LLVM
// would make a subtarget, with tables of half a megabyte, for each set of them.
constexpr const char* kFeatures = "-prefer-256-bit";

}  // namespace

std::unique_ptr<llvm::TargetMachine> make_cpu_machine(const std::string& cpu) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    // The scheduler compares each access to memory with up to this many earlier ones, and its time grows with their
    // cube: an unrolled product of matrices took seconds. LLVM's default of a thousand is for smaller code.
    set_llvm_option("dag-maps-huge-region", "64");
    // CodeGenPrepare restarts at the first block whenever it has turned a select into a branch, and guards are selects.
    // In a function with more blocks than this it visits only blocks that have changed. The code is the same.
    set_llvm_option("cgpp-huge-func", "0");
    // Domain reassignment would compute mask bits in mask registers. It changed one of 440 bodies, and its analysis
    // takes up to a sixteenth of a compilation.
    set_llvm_option("disable-x86-domain-reassignment", "true");
  });
  std::string error;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(kFrontendTriple, error);
  if (!target) throw InternalError("LLVM has no x86 target: " + error);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;  // no contraction: docs/language.md 4.1
  options.ExceptionModel = llvm::ExceptionHandling::None;
  options.EmitStackSizeSection = true;  // image_writer.cpp reads it
  std::unique_ptr<llvm::TargetMachine> machine(target->createTargetMachine(kFrontendTriple, cpu, kFeatures, options,
                                                                           llvm::Reloc::PIC_, llvm::CodeModel::Small,
                                                                           llvm::CodeGenOptLevel::Default));
  if (!machine) throw InternalError(concat("LLVM cannot generate code for ", cpu));
  return machine;
}

namespace {

llvm::SmallVector<char, 0> generate(llvm::Module& module, llvm::TargetMachine& machine, llvm::CodeGenFileType type) {
  llvm::SmallVector<char, 0> file;
  llvm::raw_svector_ostream stream(file);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr, type, /*DisableVerify=*/true))
    throw InternalError("LLVM cannot write code for x86");
  passes.run(module);
  return file;
}

}  // namespace

llvm::SmallVector<char, 0> generate_object(llvm::Module& module, llvm::TargetMachine& machine) {
  return generate(module, machine, llvm::CodeGenFileType::ObjectFile);
}

std::string generate_assembly(const llvm::Module& module, llvm::TargetMachine& machine) {
  std::unique_ptr<llvm::Module> copy = llvm::CloneModule(module);
  llvm::SmallVector<char, 0> text = generate(*copy, machine, llvm::CodeGenFileType::AssemblyFile);
  return {text.data(), text.size()};
}

}  // namespace kiln
