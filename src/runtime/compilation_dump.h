// What compiling a kernel went through, as files for who develops Kiln or a kernel (KILN_DUMP_DIR).
#pragma once

#include <string>

#include "core/compiler.h"

namespace kiln {

/// Writes `<folder>/<kernel's name>-<number>/`: generated.metal, each stage as <nn>-<stage>.ll or .s, log.txt and
/// engine.txt. The number is the first that is free, so that nothing is overwritten. Throws ValueError where a file
/// cannot be written.
void dump_compilation(const std::string& folder, const KernelUnit& unit, const CompileResult& result);

}  // namespace kiln
