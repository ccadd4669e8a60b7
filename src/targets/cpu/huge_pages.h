// Large pages for large outputs.
//
// An output is fresh memory, which the system gives out page by page when it is first touched. With pages of 4 KB that
// costs more than the writing: a fill of 268 MB takes 77 ms and more, a third of that with pages of 2 MB. Systems give
// these only where asked.
#pragma once

#include <cstddef>

namespace kiln {

/// Asks for large pages for the memory [data, data + bytes). Does nothing where that is too little or not possible.
void use_huge_pages(void* data, size_t bytes) noexcept;

}  // namespace kiln
