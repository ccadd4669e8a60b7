// Which names the arguments of a kernel may have.
#pragma once

#include <string>
#include <string_view>

#include "core/kernel_unit.h"

namespace kiln {

/// Whether `name` is a keyword of the dialect, so that no argument can have it.
bool is_keyword(Dialect dialect, std::string_view name);

/// `text` as (part of) an identifier: each character that an identifier cannot have becomes `_`.
std::string to_identifier(std::string_view text);

}  // namespace kiln
