// libkiln_torch.so, for programs that are not Kiln's: `dlopen` or `torch.ops.load_library` of it, and the operator is
// there.
#include <cstdio>
#include <exception>

#include "kiln/torch.h"

namespace {

// Nothing is thrown into the loader.
[[maybe_unused]] const bool g_is_registered = [] {
  try {
    kiln::register_torch_operator();
    return true;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "libkiln_torch.so: %s\n", error.what());
    return false;
  }
}();

}  // namespace
