"""How a CUDA body of `tests/bodies` is launched on the CPU."""

import functools

import bodies
import kiln

CUDA_BODIES = {body.name: body for body in bodies.all_cuda_bodies()}


@functools.cache
def kernel_of(name):
    body = CUDA_BODIES[name]
    return kiln.cuda_kernel(
        name=body.name,
        input_names=list(body.inputs()),
        output_names=list(body.outputs),
        source=body.source,
        header=body.header,
        ensure_row_contiguous=body.ensure_row_contiguous,
        shared_memory=body.shared_memory,
        compile_options=dict(body.compile_options),
    )


def launch(body):
    """The outputs, of NumPy's arrays."""
    dtype_of = bodies.CUDA_DTYPES.__getitem__
    return kernel_of(body.name)(
        inputs=list(body.inputs().values()),
        template=[(k, dtype_of(v) if isinstance(v, bodies.Dtype) else v) for k, v in body.template],
        grid=body.grid,
        threadgroup=body.threadgroup,
        output_shapes=[shape for shape, _ in body.outputs.values()],
        output_dtypes=[dtype_of(dtype) for _, dtype in body.outputs.values()],
        init_value=body.init_value,
    )
