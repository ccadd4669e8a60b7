// The build ID of a shared object: a digest of its content, which the linker writes into it as a note.
//
// It stands for all that a compiler's output depends on besides its input: its code, LLVM's, the device library, the
// flags that it gives to Clang. Reading it costs three small reads; a digest of our own would need the library's 100
// MB.
#pragma once

#include <string>

namespace kiln {

/// As hexadecimal digits; empty where the file cannot be read, is no ELF object for this kind of machine, or has none.
std::string build_id_of_file(const std::string& path);

/// That of the loaded object which the address lies in; empty where it has none.
std::string build_id_of_loaded(const void* address);

}  // namespace kiln
