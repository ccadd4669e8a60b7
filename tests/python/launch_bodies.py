"""How a body of `tests/bodies` is launched, with the arrays of any library."""

import functools
import re

import bodies
import kiln
import numpy as np

BODIES = {body.name: body for body in bodies.all_bodies()}


def shows_strides(body):
    """Whether it shows the strides of an input that does not lie in memory in order."""
    return body.reads_around and not all(np.asarray(value).flags.c_contiguous for value in body.inputs().values())


def shows_negative_strides(body):
    return body.reads_around and any(
        stride < 0 for value in body.inputs().values() for stride in np.asarray(value).strides
    )


@functools.cache
def kernel_of(name, make):
    body = BODIES[name]
    return make(
        name=body.name,
        input_names=list(body.inputs()),
        output_names=list(body.outputs),
        source=body.source,
        header=body.header,
        ensure_row_contiguous=body.ensure_row_contiguous,
        atomic_outputs=body.atomic_outputs,
        compile_options=dict(body.compile_options),
    )


@functools.cache
def compiled(name):
    """For what a body without template arguments is called with, and nothing has run."""
    body = BODIES[name]
    return kernel_of(name, kiln.metal_kernel).compile(
        inputs=list(body.inputs().values()),
        grid=body.grid,
        threadgroup=body.threadgroup,
        output_shapes=[shape for shape, _ in body.outputs.values()],
        output_dtypes=[bodies.DTYPES[dtype] for _, dtype in body.outputs.values()],
    )


def optimized_function(name, function):
    """Of a body that `compiled` takes, as IR."""
    (code,) = re.findall(rf"^define [^\n]*@{function}\(.*?^}}", compiled(name).stages()["optimized"], re.M | re.S)
    return code


def launch(body, make, inputs, dtype_of):
    """The outputs. `make` is a `metal_kernel`; `dtype_of` gives a dtype in the library's own terms."""
    return kernel_of(body.name, make)(
        inputs=inputs,
        template=[(k, dtype_of(v) if isinstance(v, bodies.Dtype) else v) for k, v in body.template],
        grid=body.grid,
        threadgroup=body.threadgroup,
        output_shapes=[shape for shape, _ in body.outputs.values()],
        output_dtypes=[dtype_of(dtype) for _, dtype in body.outputs.values()],
        init_value=body.init_value,
    )


def launch_numpy(body, inputs):
    return launch(body, kiln.metal_kernel, inputs, bodies.DTYPES.__getitem__)


def result(name):
    """What a body gives with NumPy's arrays, on which engine, and why there."""
    body = BODIES[name]
    outputs = launch_numpy(body, list(body.inputs().values()))
    launched = kernel_of(name, kiln.metal_kernel).history[-1]
    return outputs, launched.engine, launched.engine_reason
