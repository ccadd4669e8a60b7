"""Calls as users write them, for mypy: what each gives, and that wrong ones are seen. Never run."""

from typing import Any, assert_type

import kiln
import kiln.mlx
import mlx.core as mx
import numpy as np

kernel = kiln.metal_kernel("double", ["x"], ["y"], "y[thread_position_in_grid.x] = 0;")
assert_type(kernel, kiln.Kernel)
assert_type(kiln.mlx.metal_kernel(name="a", input_names=["x"], output_names=("y",), source=""), kiln.Kernel)
assert_type(kiln.cuda_kernel("a", ["x"], ["y"], "", shared_memory=64), kiln.Kernel)
assert_type(kiln.metal_kernel("a", "", True, False, header=""), kiln.Kernel)

x = np.zeros(4, np.float32)
by_list = kernel(
    inputs=[x, 2.5],
    output_shapes=[(4,), x.shape],
    output_dtypes=["float32", np.float16],
    grid=(4, 1, 1),
    threadgroup=[4, 1, 1],
    template=[("T", np.float32), ("N", 3)],
    init_value=0,
)
assert_type(by_list, list[Any])
by_name = kernel(
    inputs={"x": mx.zeros(4)},
    output_shapes={"y": (4,)},
    output_dtypes={"y": mx.float32},
    grid=(4, 1, 1),
    threadgroup=(4, 1, 1),
    template={"T": mx.float32},
    stream=mx.cpu,
)
assert_type(by_name, dict[str, Any])
assert_type(
    kernel.source_for(inputs=[x], output_shapes=[(4,)], output_dtypes=["int8"], grid=(4, 1, 1), threadgroup=(4, 1, 1)),
    str,
)
compiled = kernel.compile(
    inputs=[x], output_shapes=[(4,)], output_dtypes=["int8"], grid=(4, 1, 1), threadgroup=(4, 1, 1)
)
assert_type(compiled, kiln.CompiledKernel)
assert_type(compiled.machine_code, bytes)
assert_type(kernel.history[-1].run_ms, float)

oldest = kiln.MetalKernel("a", "", (4, 1, 1), (4, 1, 1), {"y": (4,)}, {"y": "float32"})
oldest.template(T="float32", N=3)
assert_type(oldest(x=x), dict[str, Any])

with kiln.mlx.install(metal=True):
    pass

try:
    pass
except kiln.CompileError as error:
    assert_type(error.diagnostics, list[kiln.Diagnostic])
    assert_type(error.diagnostics[0].line, int)

# What is wrong: an ignored error that is none is an error.
kiln.metal_kernel("a", ["x"], ["y"])  # type: ignore[call-overload]
kiln.metal_kernel("a", ["x"], ["y"], "", atomic_outputs="yes")  # type: ignore[call-overload]
kernel(inputs=[x], output_shapes=[(4,)], output_dtypes=["int8"], grid=4, threadgroup=(4, 1, 1))  # type: ignore[call-overload]
kernel([x], [(4,)], ["int8"], (4, 1, 1), (4, 1, 1))  # type: ignore[call-overload]
kernel.source_for(inputs=[x], grid=(4, 1, 1))  # type: ignore[call-arg]
kernel.name = "b"  # type: ignore[misc]
