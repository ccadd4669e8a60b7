"""Kernels for Triton."""

import triton
import triton.language as tl


@triton.jit
def exp_of(x, out, count, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.exp(tl.load(x + i, mask=i < count)), mask=i < count)


@triton.jit
def next_one(x, out, count, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < count) + 1, mask=i < count)
