// All of Kiln that needs no array library. <kiln/mlx.h> has what needs MLX.
#pragma once

#if __cplusplus < 202002L
#error "Kiln's headers are written in C++20: compile with -std=c++20"
#endif

#include "kiln/compilation.h"  // IWYU pragma: export
#include "kiln/device.h"       // IWYU pragma: export
#include "kiln/dtype.h"        // IWYU pragma: export
#include "kiln/element.h"      // IWYU pragma: export
#include "kiln/error.h"        // IWYU pragma: export
#include "kiln/kernel.h"       // IWYU pragma: export
#include "kiln/launch.h"       // IWYU pragma: export
#include "kiln/tensor.h"       // IWYU pragma: export
#include "kiln/torch.h"        // IWYU pragma: export
