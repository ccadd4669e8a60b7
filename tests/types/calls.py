"""Calls as users write them, for mypy: what each gives, and that wrong ones are seen. Never run."""

from typing import Any, assert_type

import kiln
import kiln.mlx
import ml_dtypes
import mlx.core as mx
import numpy as np

# ---- Making kernels

kernel = kiln.metal_kernel("double", ["x"], ["y"], "y[thread_position_in_grid.x] = 0;")
assert_type(kernel, kiln.Kernel)
assert_type(kiln.mlx.metal_kernel(name="a", input_names=["x"], output_names=("y",), source=""), kiln.Kernel)
assert_type(kiln.cuda_kernel("a", ["x"], ["y"], "", shared_memory=64), kiln.Kernel)
assert_type(kiln.mlx.cuda_kernel("a", [], ["y"], "", compile_options=None), kiln.Kernel)
assert_type(kiln.metal_kernel("a", "", True, False, header=""), kiln.Kernel)
assert_type(kiln.metal_kernel("a", source="", compile_options={"bounds": "off", "specialize": False}), kiln.Kernel)
assert_type(kiln.metal_kernel("a", source="", compile_options={"writable_inputs": ["x"]}), kiln.Kernel)

# ---- Calls

x = np.zeros(4, np.float32)
by_list = kernel(
    inputs=[x, 2.5, 3, True, 1j, np.float32(1)],
    output_shapes=[(4,), x.shape, [2, np.int64(3)], ()],
    output_dtypes=["float32", np.float16, x.dtype, ml_dtypes.bfloat16],
    grid=(4, np.int32(1), x.shape[0]),
    threadgroup=[4, 1, 1],
    template=[("T", np.float32), ("N", 3), ("M", np.int8(3)), ("F", True), ("U", "bfloat16")],
    init_value=0,
)
assert_type(by_list, list[Any])
by_name = kernel(
    inputs={"x": mx.zeros(4), "n": 3},
    output_shapes={"y": (4,), "z": [2, 2]},
    output_dtypes={"y": mx.float32, "z": "int8"},
    grid=(4, 1, 1),
    threadgroup=(4, 1, 1),
    template={"T": mx.float32, "N": 3},
    stream=mx.cpu,
)
assert_type(by_name, dict[str, Any])
array = mx.zeros((4, 4))
(result,) = kernel(
    inputs=(array, array[0]),
    output_shapes=(array.shape,),
    output_dtypes=(array.dtype,),
    grid=array.size,
    threadgroup=(min(array.size, 256), 1, 1),
    template=None,
    init_value=np.float32(1),
    verbose=False,
    stream=mx.default_stream(mx.cpu),
)
gradient: mx.array = 2 * result
assert_type(
    kernel.source_for(inputs=[x], output_shapes=[(4,)], output_dtypes=["int8"], grid=(4, 1, 1), threadgroup=(4, 1, 1)),
    str,
)
compiled = kernel.compile(
    inputs={"x": x}, output_shapes={"y": (4,)}, output_dtypes={"y": "int8"}, grid=(4, 1, 1), threadgroup=(4, 1, 1)
)
assert_type(compiled, kiln.CompiledKernel)
described = kernel.compile(
    input_shapes=[(4,), ()],
    input_dtypes=["float32", np.float32],
    output_shapes=[(4,)],
    output_dtypes=[mx.float32],
    grid=4,
    threadgroup=4,
    target="nvidia:0",
)
assert_type(described, kiln.CompiledKernel)
text = kernel.source_for(
    input_shapes={"x": (4,)}, input_dtypes={"x": "int8"}, output_shapes={}, output_dtypes={}, grid=4, threadgroup=4
)
assert_type(text, str)
assert_type((kernel.source, kernel.header), tuple[str, str])
assert_type(kernel.input_names, list[str] | None)
assert_type(kernel.output_names, list[str] | None)
assert_type(kernel.options, dict[str, Any])
assert_type(compiled.machine_code, bytes)
assert_type(compiled.stages(), dict[str, str])
assert_type(compiled.passes(), list[kiln.CompilePass])
assert_type(compiled.remarks(), list[kiln.CompileRemark])
assert_type(kernel.history, list[kiln.Launch])
assert_type(kernel.history[-1].run_ms, float)

oldest = kiln.MetalKernel("a", "", (4, 1, 1), [np.int64(4), 1, 1], {"y": (np.int64(4),)}, {"y": "float32"})
assert_type(kiln.mlx.MetalKernel("a", "", (4, 1, 1), (4, 1, 1), {}, {}, init_value=np.float32(0))(), dict[str, Any])
oldest.template(T="float32", N=3)
assert_type((oldest.source, oldest.header), tuple[str, str])
assert_type(oldest.output_names, list[str])
assert_type(oldest.options, dict[str, Any])
assert_type(oldest(x=x), dict[str, Any])

# ---- In MLX's place


def within() -> list[Any]:
    with kiln.mlx.install(metal=True):
        # What follows would be missing if the block could swallow an exception.
        return by_list


kiln.mlx.install()
kiln.mlx.uninstall()

# ---- Errors

try:
    within()
except kiln.CompileError as error:
    assert_type(error.diagnostics, list[kiln.Diagnostic])
    assert_type(error.diagnostics[0].line, int)
except (kiln.UnsupportedError, kiln.DeviceError, kiln.errors.InternalError) as error:
    assert_type(str(error), str)

# ---- What is wrong: an ignored error that is none is an error

kiln.metal_kernel("a", ["x"], ["y"])  # type: ignore[call-overload]
kiln.metal_kernel("a", ["x"], ["y"], "", atomic_outputs="yes")  # type: ignore[call-overload]
kiln.metal_kernel("a", "", ["x"], ["y"])  # type: ignore[call-overload]
kiln.metal_kernel("a", ["x"], ["y"], "", bounds="off")  # type: ignore[call-overload]
kiln.cuda_kernel("a", ["x"], ["y"], "", atomic_outputs=True)  # type: ignore[call-arg]
kernel(inputs=[x], output_shapes=[(4,)], output_dtypes=["int8"], grid=4.5, threadgroup=(4, 1, 1))  # type: ignore[call-overload]
kernel(inputs=[x], output_shapes=[4], output_dtypes=["int8"], grid=(4, 1, 1), threadgroup=(4, 1, 1))  # type: ignore[list-item]
kernel(inputs=x, output_shapes=[(4,)], output_dtypes=["int8"], grid=(4, 1, 1), threadgroup=(4, 1, 1))  # type: ignore[call-overload]
kernel(inputs=[x], output_shapes=[(4,)], output_dtypes=["int8"], grid=(4.0, 1, 1), threadgroup=(4, 1, 1))  # type: ignore[arg-type]
kernel(inputs=[x], output_shapes={"y": (4,)}, output_dtypes=["int8"], grid=(4, 1, 1), threadgroup=(4, 1, 1))  # type: ignore[call-overload]
kernel([x], [(4,)], ["int8"], (4, 1, 1), (4, 1, 1))  # type: ignore[call-overload]
kernel.source_for(inputs=[x], grid=(4, 1, 1))  # type: ignore[call-overload]
kernel.compile(input_shapes=[(4,)], output_shapes=[(4,)], output_dtypes=["int8"], grid=4, threadgroup=4)  # type: ignore[call-overload]
kernel(input_shapes=[(4,)], output_shapes=[(4,)], output_dtypes=["int8"], grid=4, threadgroup=4)  # type: ignore[call-overload]
right: dict[str, Any] = {}
kernel(**right, template=["T"])  # type: ignore[list-item]
kernel(**right, init_value="1")  # type: ignore[call-overload]
kernel(**right, init_value=1j)  # type: ignore[call-overload]
kernel.compile(**right, inits_value=1)  # type: ignore[call-overload]
kernel.name = "b"  # type: ignore[misc]
kernel.source = ""  # type: ignore[misc]
kiln.mlx.install(metal="no")  # type: ignore[arg-type]
oldest.template(float)  # type: ignore[call-arg]
