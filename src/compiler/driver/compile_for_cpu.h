// A unit to an image for the CPU.
#pragma once

#include "core/compiler.h"

namespace kiln {

CompileResult compile_for_cpu(const CompileRequest& request);

}  // namespace kiln
