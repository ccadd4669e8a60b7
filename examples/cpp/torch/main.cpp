// Runs a model that PyTorch's AOTInductor has stored, with a kernel in it, without Python: main model.pt2
//
// export_model.py stores it. The package has the kernel's text; machine code is compiled when it is first launched, or
// found in the cache on disk or in a bundle.
#include <ATen/ATen.h>
#include <kiln/torch.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <vector>

namespace {

float expected(float x) {
  float s = std::sin(x);
  return 2 * s / (1 + std::exp(-s));
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s model.pt2\n", argv[0]);
    return 2;
  }
  kiln::register_torch_operator();
  torch::inductor::AOTIModelPackageLoader model(argv[1]);
  for (int64_t rows : {3, 8}) {
    at::Tensor x = at::arange(rows * 5, at::kFloat).reshape({rows, 5});
    std::vector<at::Tensor> inputs{x};
    at::Tensor y = model.run(inputs).at(0);
    float worst = 0;
    for (int64_t i = 0; i < y.numel(); ++i)
      worst = std::max(worst, std::abs(y.const_data_ptr<float>()[i] - expected(static_cast<float>(i))));
    std::printf("%lld x %lld: %s\n", static_cast<long long>(y.size(0)), static_cast<long long>(y.size(1)),
                worst < 1e-5f ? "right" : "wrong");
  }
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
