"""Benchmarks on an NVIDIA GPU: Kiln on PyTorch's arrays against kernels by hand and against other libraries."""
