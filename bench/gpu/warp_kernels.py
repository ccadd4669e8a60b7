"""Kernels for Warp, which reads their text."""

import warp


@warp.kernel
def exp_of(x: warp.array(dtype=float), out: warp.array(dtype=float)):  # type: ignore[valid-type]
    i = warp.tid()
    out[i] = warp.exp(x[i])
