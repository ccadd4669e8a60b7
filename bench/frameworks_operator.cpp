// An operator of PyTorch's with the parameters of kiln::launch that only allocates its result, and one of a tensor
// alone: what a program of torch.compile's takes for any operator in C++.
#include <ATen/ATen.h>
#include <torch/library.h>

namespace {

std::vector<at::Tensor> empty_launch(std::string, at::TensorList inputs, at::IntArrayRef sizes) {
  return {at::empty(sizes.slice(0, 1), inputs[0].options())};
}

at::Tensor empty_tensor(const at::Tensor& x) { return at::empty_like(x); }

}  // namespace

TORCH_LIBRARY(bench_empty, library) {
  library.def("launch(str text, Tensor[] inputs, SymInt[] sizes) -> Tensor[]", {at::Tag::pt2_compliant_tag});
  library.def("tensor(Tensor x) -> Tensor", {at::Tag::pt2_compliant_tag});
  for (auto key : {c10::DispatchKey::CPU, c10::DispatchKey::CUDA}) {
    library.impl("launch", torch::dispatch(key, empty_launch));
    library.impl("tensor", torch::dispatch(key, empty_tensor));
  }
}
