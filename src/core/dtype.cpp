#include "core/dtype_table.h"

namespace kiln {

size_t size_of(Dtype dtype) { return row_of(dtype).size; }

std::string_view name_of(Dtype dtype) { return row_of(dtype).name; }

std::optional<Dtype> dtype_from_name(std::string_view name) {
  for (const DtypeRow& row : kDtypes)
    if (row.name == name) return row.dtype;
  return std::nullopt;
}

}  // namespace kiln
