#include "compiler/x86/code_generator.h"

#include <llvm/IR/LegacyPassManager.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include <mutex>

#include "compiler/ir/entry.h"
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

// Vectors as wide as the engines make them. Functions have no wish of their own (`drop_processor`): each set of wishes
// is another subtarget, of which LLVM makes tables of half a megabyte.
constexpr const char* kFeatures = "-prefer-256-bit";

// LLVM has no other interface to it.
void set_llvm_option(llvm::StringRef name, llvm::StringRef value) {
  auto& options = llvm::cl::getRegisteredOptions();
  auto option = options.find(name);
  if (option == options.end() || option->second->addOccurrence(0, name, value))
    throw InternalError(concat("LLVM has no option ", name.str()));
}

}  // namespace

std::unique_ptr<llvm::TargetMachine> make_cpu_machine(const std::string& cpu) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    // The scheduler compares each access to memory with those before it, up to this many of them, and its time grows
    // with their cube: a product of matrices that is written out took seconds. LLVM's thousand is for smaller code.
    set_llvm_option("dag-maps-huge-region", "64");
    // CodeGenPrepare starts again from the first block whenever it has made a branch of a select, and guards are
    // selects, unless the function has more blocks than this: then it visits only blocks that have changed. The code is
    // the same.
    set_llvm_option("cgpp-huge-func", "0");
    // It would compute masks' bits in registers for masks. Of 440 bodies it changed one, and it takes up to a sixteenth
    // of a compilation to look.
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
