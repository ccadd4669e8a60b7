// Removes the target-specific built-in functions of Clang (`__builtin_ia32_…`).
//
// Clang knows some thirty targets, whether or not LLVM was built with code generators for them, and for most of them it
// has a table of addresses of built-in functions. The loader would relocate 1.3 MB of these, page by page, when the
// library is opened: a quarter of the time that opening takes. No dialect has any of these functions, and a body that
// called a processor's own would run on only one target.
//
// The linker substitutes this function for the members of clang::TargetInfo's classes that return the tables (--wrap in
// CMakeLists.txt), in kiln_precompile too, since the precompiled header stores the numbers of built-in functions.
#include <clang/Basic/Builtins.h>

llvm::ArrayRef<clang::Builtin::Info> no_builtins(const void* target) asm("kiln_no_builtins");
llvm::ArrayRef<clang::Builtin::Info> no_builtins(const void* /*target*/) { return {}; }
