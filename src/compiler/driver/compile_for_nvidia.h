// A Metal unit to an image for an NVIDIA GPU.
#pragma once

#include "core/compiler.h"

namespace kiln {

CompileResult compile_for_nvidia(const CompileRequest& request);

}  // namespace kiln
