// The built-in functions that Clang's targets have (`__builtin_ia32_…`): none.
//
// Clang knows some thirty kinds of machine, whether or not LLVM was built with code generators for them, and of most it
// has the built-in functions in a table of addresses. The loader would relocate 1.3 MB of them, page by page, when the
// library is opened: a fourth of the time that opening takes. No dialect has any of these functions, and a body that
// called those of x86-64 would run on one target alone.
//
// The linker puts this function in the place of the members of clang::TargetInfo's classes that name the tables (--wrap
// in CMakeLists.txt), in what precompiles the device library too: functions are numbered, and the numbers are stored.
#include <clang/Basic/Builtins.h>

llvm::ArrayRef<clang::Builtin::Info> no_builtins(const void* target) asm("kiln_no_builtins");
llvm::ArrayRef<clang::Builtin::Info> no_builtins(const void* /*target*/) { return {}; }
