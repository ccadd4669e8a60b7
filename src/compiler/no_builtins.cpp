// The built-in functions that Clang's targets have: none.
//
// Clang knows some thirty kinds of machine, whether or not LLVM was built with code generators for them, and each one's
// built-in functions (`__builtin_ia32_…`) are in a table of addresses. The loader would relocate 1.3 MB of them, page
// by page, when the library is opened: a fourth of the time that opening takes. No dialect has any of these functions,
// and a body that called those of x86-64 would run on one target alone.
//
// The linker puts this function in the place of the members of clang::TargetInfo's classes that name the tables (--wrap
// in CMakeLists.txt), in what precompiles the device library too: functions are numbered, and the numbers are stored.
#include <clang/Basic/Builtins.h>

extern "C" llvm::ArrayRef<clang::Builtin::Info> kiln_no_builtins(const void* target);
llvm::ArrayRef<clang::Builtin::Info> kiln_no_builtins(const void* /*target*/) { return {}; }
