// Programs of PyTorch's that have kernels in them, in C++: what torch.export and AOTInductor have stored calls the
// operator `kiln::launch`, and this registers it. Nothing of PyTorch is needed to compile or link it.
//
//     kiln::register_torch_operator();
//     torch::inductor::AOTIModelPackageLoader model("model.pt2");
//     std::vector<at::Tensor> outputs = model.run({x});
//
// A program that cannot be changed loads the library libkiln_torch.so, which registers the operator when it is loaded.
#pragma once

namespace kiln {

/// Registers the operator `kiln::launch` with the PyTorch of this process, for the CPU and for NVIDIA's GPUs. The
/// kernels of a stored program are made from their texts when they are first launched; machine code is found on disk or
/// in a bundle, or compiled. No Python is needed. Once is enough; more calls do nothing.
///
/// Throws UnsupportedError if the process has not loaded PyTorch 2.10 or later (`libtorch_cpu.so`), and DeviceError if
/// PyTorch refuses the operator.
void register_torch_operator();

}  // namespace kiln
