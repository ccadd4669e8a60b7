"""Every body of `tests/bodies` on a GPU: against its reference and, those in Metal, bit for bit against the CPU."""

import functools

import bodies
import kiln
import numpy as np
import pytest
from gpu import needs_gpu
from launch_bodies import BODIES, launch, launch_numpy, shows_negative_strides

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch_arrays import to_numpy, to_torch, torch_dtype  # noqa: E402

pytestmark = needs_gpu

by_name = pytest.mark.parametrize("name", BODIES)
CUDA_BODIES = {body.name: body for body in bodies.all_cuda_bodies()}


@functools.cache
def expected_of(name):
    return BODIES[name].expected()


def check(body, outputs):
    expected = expected_of(body.name)
    problems = [body.mismatch(name, got, expected[name]) for name, got in zip(expected, outputs, strict=True)]
    assert not any(problems), "\n".join(filter(None, problems))


def launch_torch(body, inputs):
    with torch.device("cuda"):  # for those without arrays among their inputs
        outputs = launch(body, kiln.metal_kernel, inputs, torch_dtype)
    assert all(output.is_cuda for output in outputs)
    return [to_numpy(output) for output in outputs]


def skip_without_its_strides(body):
    if shows_negative_strides(body):
        pytest.skip("PyTorch has no negative strides")


@by_name
def test_reference(name):
    body = BODIES[name]
    skip_without_its_strides(body)
    inputs = [to_torch(value, "cuda") for value in body.inputs().values()]
    before = [to_numpy(value).tobytes() if isinstance(value, torch.Tensor) else None for value in inputs]
    check(body, launch_torch(body, inputs))
    for key, value, bytes_before in zip(body.inputs(), inputs, before, strict=True):
        assert bytes_before is None or to_numpy(value).tobytes() == bytes_before, f"{key} was written"


def adds_floats_atomically(body):
    """Whether the order of additions, which nobody fixes, shows."""
    has_floats = any(dtype in ("float32", "float16", "bfloat16") for _, dtype in body.outputs.values())
    return has_floats and "atomic_fetch" in body.header + body.source


@by_name
def test_same_bits_as_on_the_cpu(name):
    body = BODIES[name]
    if body.compile_options.get("math_mode", "safe") != "safe" or adds_floats_atomically(body):
        pytest.skip("nobody promises the same bits")
    skip_without_its_strides(body)
    inputs = list(body.inputs().values())
    on_gpu = launch_torch(body, [to_torch(value, "cuda") for value in inputs])
    on_cpu = launch_numpy(body, inputs)
    for output, gpu, cpu in zip(body.outputs, on_gpu, on_cpu, strict=True):
        parts = [(gpu, cpu)] if gpu.dtype.kind != "c" else [(gpu.real, cpu.real), (gpu.imag, cpu.imag)]
        for a, b in parts:
            bits = f"u{a.dtype.itemsize}"
            same = np.ascontiguousarray(a).view(bits) == np.ascontiguousarray(b).view(bits)
            if a.dtype.kind not in "biu":
                same |= (a != a) & (b != b)
            wrong = np.argwhere(~same)
            assert not wrong.size, (
                f"{output}: {len(wrong)} of {same.size} elements differ, the first at {wrong[0].tolist()}: "
                f"{a[tuple(wrong[0])]!r} on the GPU, {b[tuple(wrong[0])]!r} on the CPU"
            )


# ---- Memory safety (docs/language.md 5.1): what lies around arguments is not read and not written


@by_name
def test_surroundings_do_not_show(name):
    body = BODIES[name]
    if body.compile_options.get("bounds") == "off":
        pytest.skip("it has no guards")
    skip_without_its_strides(body)
    room = 4096  # bytes on each side, of a value that would show
    inputs = []
    for value in body.inputs().values():
        if isinstance(value, np.ndarray) and value.flags.c_contiguous and value.size:
            memory = torch.full((room * 2 + value.nbytes,), 0xA5, dtype=torch.uint8, device="cuda")
            inside = memory[room : room + value.nbytes]
            inside.copy_(to_torch(np.frombuffer(value.tobytes(), np.uint8).copy(), "cuda"))
            inputs.append(inside.view(torch_dtype(value.dtype)).view(value.shape))
        else:
            inputs.append(to_torch(value, "cuda"))
    check(body, launch_torch(body, inputs))


# ---- CUDA


@pytest.mark.parametrize("name", CUDA_BODIES)
def test_cuda_reference(name):
    body = CUDA_BODIES[name]
    kernel = kiln.cuda_kernel(
        body.name,
        list(body.inputs()),
        list(body.outputs),
        body.source,
        body.header,
        body.ensure_row_contiguous,
        body.shared_memory,
        dict(body.compile_options),
    )
    call = functools.partial(
        kernel,
        inputs=[to_torch(value, "cuda") for value in body.inputs().values()],
        template=[(k, torch_dtype(v) if isinstance(v, bodies.Dtype) else v) for k, v in body.template],
        grid=body.grid,
        threadgroup=body.threadgroup,
        output_shapes=[shape for shape, _ in body.outputs.values()],
        output_dtypes=[torch_dtype(dtype) for _, dtype in body.outputs.values()],
        init_value=body.init_value,
    )
    try:
        with torch.device("cuda"):  # for those without arrays among their inputs
            outputs = call()
    except kiln.CompileError as error:
        if "cannot open source file" in str(error):
            pytest.skip("CUDA's headers, which this body includes, are not all installed")
        raise
    assert all(output.is_cuda for output in outputs)
    expected = body.expected()
    got = [to_numpy(output) for output in outputs]
    problems = [body.mismatch(key, value, expected[key]) for key, value in zip(expected, got, strict=True)]
    assert not any(problems), "\n".join(filter(None, problems))
