// The whole compiler on one unit, held to what it promises of any text.
#pragma once

#include <string>

#include "core/compiler.h"

namespace kiln {

/// Compiles for this machine's kind. What is wrong: a failure that is none of the kernel's, one without an error or a
/// first line that names what a user cannot know. Empty where nothing is.
std::string problem_of(Compiler& compiler, const KernelUnit& unit);

}  // namespace kiln
