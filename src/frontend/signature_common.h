// What both dialects' texts have in common.
#pragma once

#include "frontend/signature.h"

namespace kiln {

/// Whether some argument of the kernel has this name, so that it is no attribute and no shape.
bool is_argument(const SignatureRequest& request, std::string_view name);

/// "custom_kernel_" and the kernel's name, its template arguments and its arguments' types, as an identifier.
std::string function_name(const SignatureRequest& request, std::string_view (*spell)(Dtype));

/// A unit with everything filled in that does not depend on the dialect; `text` holds the header.
KernelUnit begin_unit(Dialect dialect, const SignatureRequest& request);

KernelParameter make_parameter(ParameterRole role, uint32_t argument, std::string name, std::string element,
                               Dtype dtype, bool by_reference);

/// Appends the body and remembers where it stands. `unit.text` must end with a line end.
void append_body(KernelUnit& unit, const KernelText& text);

/// Numbers the lines of included files. To be called when `unit.text` is whole.
void number_included_lines(KernelUnit& unit);

}  // namespace kiln
