"""PyTorch's tensors of NumPy's arrays and back, with strides and bfloat16."""

import ml_dtypes
import numpy as np
import torch

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


def to_torch(value, device="cpu"):
    """A tensor with the elements and, as far as PyTorch has them (not negative), the strides of an array; a number
    stays one."""
    if isinstance(value, np.generic):
        value = np.asarray(value)  # PyTorch has no scalars of its own
    if not isinstance(value, np.ndarray):
        return value
    if any(stride < 0 or stride % value.itemsize for stride in value.strides) or value.size == 0:
        value = np.ascontiguousarray(value)
    strides = [stride // value.itemsize for stride in value.strides]
    reach = 1 + sum((n - 1) * stride for n, stride in zip(value.shape, strides, strict=True)) if value.size else 0
    memory = np.lib.stride_tricks.as_strided(value, (reach,), (value.itemsize,)).copy()
    bits = memory.view(np.int16) if memory.dtype == BFLOAT16 else memory
    tensor = torch.from_numpy(bits).to(device)
    if memory.dtype == BFLOAT16:
        tensor = tensor.view(torch.bfloat16)
    return tensor.as_strided(value.shape, strides)


def to_numpy(tensor):
    tensor = tensor.detach().cpu()
    if tensor.dtype == torch.bfloat16:
        return tensor.contiguous().view(torch.int16).numpy().view(BFLOAT16)
    return tensor.numpy()


def torch_dtype(name):
    return getattr(torch, str(name))
