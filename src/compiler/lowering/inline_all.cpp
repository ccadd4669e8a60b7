#include "compiler/lowering/inline_all.h"

#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/ValueHandle.h>

#include "compiler/lowering/promote_variables.h"

namespace kiln {
namespace {

// A kernel's accesses may violate what C++ guarantees of references and arguments: they are guarded later, so LLVM must
// not exploit these attributes before. Fast mode's attribute that no argument is a NaN or an infinity would defeat
// functions that test for them.
constexpr llvm::Attribute::AttrKind kAssumptions[] = {
    llvm::Attribute::NoUndef,         llvm::Attribute::NonNull,
    llvm::Attribute::Dereferenceable, llvm::Attribute::DereferenceableOrNull,
    llvm::Attribute::Range,           llvm::Attribute::NoFPClass};

template <typename Attributed>
void drop_assumptions(Attributed& item, unsigned parameters) {
  for (llvm::Attribute::AttrKind kind : kAssumptions) {
    for (unsigned i = 0; i < parameters; ++i) item.removeParamAttr(i, kind);
    item.removeRetAttr(kind);
  }
}

}  // namespace

// Where a callee's arguments are constants, the inliner computes what it copies, and an element beyond a constant array
// is poison to it. It is zero, as the guards have it that are inserted later.
void inline_marked(llvm::Module& module, PassRunner& runner) {
  llvm::SmallVector<llvm::WeakVH> hidden;
  for (llvm::GlobalVariable& variable : module.globals())
    if (variable.isConstant() && variable.hasInitializer() && !variable.getName().contains("6__kiln")) {
      variable.setConstant(false);
      hidden.emplace_back(&variable);
    }
  runner.run("always-inline", module);
  for (const llvm::WeakVH& variable : hidden)
    if (variable) llvm::cast<llvm::GlobalVariable>(static_cast<llvm::Value*>(variable))->setConstant(true);
}

void prepare_inlining(llvm::Module& module, llvm::StringRef root) {
  for (llvm::Function& function : module) {
    drop_assumptions(function, static_cast<unsigned>(function.arg_size()));
    if (function.isDeclaration()) continue;
    for (llvm::Instruction& instruction : llvm::instructions(function))
      if (auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction)) {
        drop_assumptions(*call, call->arg_size());
        call->removeFnAttr(llvm::Attribute::NoInline);
      }
    function.removeFnAttr(llvm::Attribute::NoInline);
    function.removeFnAttr(llvm::Attribute::OptimizeNone);
    bool is_callback = function.getName().starts_with("_ZN6__kiln") && function.hasAddressTaken();
    function.setComdat(nullptr);
    if (function.getName() == root) {
      function.setLinkage(llvm::GlobalValue::ExternalLinkage);
      function.removeFnAttr(llvm::Attribute::AlwaysInline);
      continue;
    }
    function.setLinkage(llvm::GlobalValue::InternalLinkage);
    if (!is_callback) function.addFnAttr(llvm::Attribute::AlwaysInline);
  }
  // Code and constants are one image: a variable that another module might also define is accessed through a table
  // (GOT), which does not exist.
  for (llvm::GlobalVariable& variable : module.globals())
    if (!variable.isDeclaration() && !variable.getName().starts_with("llvm.")) {
      variable.setComdat(nullptr);
      variable.setLinkage(llvm::GlobalValue::InternalLinkage);
    }
}

void inline_all(llvm::Module& module, llvm::StringRef root) {
  prepare_inlining(module, root);
  // Promotes arguments first: a callee with a constant argument is then inlined without its dead branches.
  promote_variables(module);
  PassRunner runner(nullptr);
  inline_marked(module, runner);
  runner.run("globaldce", module);
  promote_variables(module);
}

}  // namespace kiln
