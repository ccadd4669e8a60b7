// What identifies machine code: everything that it depends on, and nothing else. Stable between processes.
#pragma once

#include <string>
#include <string_view>

#include "core/compiler.h"
#include "core/kernel_unit.h"

namespace kiln {

/// 64 hexadecimal digits. `compiler_identity` is Compiler::identity().
std::string binary_id(const KernelUnit& unit, const TargetSpec& target, std::string_view compiler_identity);

}  // namespace kiln
