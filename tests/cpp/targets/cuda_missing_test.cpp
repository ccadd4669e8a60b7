// A machine without NVIDIA's driver: nothing asks for it but what needs it.
#include <gtest/gtest.h>

#include <cstdlib>

#include "core/text.h"
#include "kiln/error.h"
#include "runtime/context.h"

namespace kiln {
namespace {

[[maybe_unused]] const int g_set = setenv("KILN_CUDA_DRIVER", "/nowhere/libcuda.so.1", 1);

TEST(CudaDriver, IsNamedWhereItIsMissing) {
  Context context;
  EXPECT_EQ(context.target({}).name(), "cpu");
  try {
    context.target({DeviceKind::kNvidia, 0});
    FAIL();
  } catch (const DeviceError& error) {
    EXPECT_STREQ(error.what(),
                 "NVIDIA's driver is missing: /nowhere/libcuda.so.1: cannot open shared object file: No such file or "
                 "directory. Installing NVIDIA's driver brings it, and KILN_CUDA_DRIVER names another file.");
  }
}

}  // namespace
}  // namespace kiln
