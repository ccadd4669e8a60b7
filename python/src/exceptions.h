// Kiln's exceptions as Python's (`kiln/errors.py`).
#pragma once

namespace kiln::python {

/// Makes nanobind translate Kiln's exceptions, in every module that shares this one's nanobind domain.
void register_exceptions();

}  // namespace kiln::python
