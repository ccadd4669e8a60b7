"""Kernels on PyTorch's tensors in the CPU's memory. What GPUs do is in test_gpu_torch.py."""

from typing import Any

import kiln
import numpy as np
import pytest
from launch_bodies import BODIES, launch

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch_arrays import to_numpy, to_torch, torch_dtype  # noqa: E402

INDEX = "uint i = thread_position_in_grid.x; "
COPY: Any = kiln.metal_kernel("copy", ["x"], ["y"], INDEX + "y[i] = x[i];")


def call(kernel, x, **changes):
    keywords = {
        "inputs": [x],
        "grid": (8, 1, 1),
        "threadgroup": (8, 1, 1),
        "output_shapes": [(8,)],
        "output_dtypes": [torch.float32],
    }
    if "outputs" in changes:
        del keywords["output_shapes"], keywords["output_dtypes"]
    return kernel(**{**keywords, **changes})[0]


def eight(**options):
    return torch.arange(8, dtype=torch.float32, **options)


@pytest.mark.parametrize("name", BODIES)
def test_bodies(name):
    body = BODIES[name]
    inputs = [to_torch(value) for value in body.inputs().values()]
    outputs = [to_numpy(output) for output in launch(body, kiln.metal_kernel, inputs, torch_dtype)]
    expected = body.expected()
    problems = [body.mismatch(output, got, expected[output]) for output, got in zip(expected, outputs, strict=True)]
    assert not any(problems), "\n".join(filter(None, problems))


def test_results_are_tensors():
    y = call(COPY, eight())
    assert type(y) is torch.Tensor
    assert torch.equal(y, eight())


def test_views_are_read_as_they_are():
    by_strides = kiln.metal_kernel(
        "k", ["x"], ["y"], INDEX + "y[i] = x[elem_to_loc(i, x_shape, x_strides, x_ndim)];", ensure_row_contiguous=False
    )
    matrix = torch.arange(64, dtype=torch.float32).view(8, 8)
    for view in (matrix[:, 3], matrix.T[2], matrix[::4, ::2], torch.ones(1).expand(8)):
        for kernel in (COPY, by_strides):
            assert torch.equal(call(kernel, view, output_shapes=[view.shape]), view)


def test_conjugate_and_negative_views_are_read_as_what_they_are():
    z = torch.complex(eight(), eight() + 1)
    assert torch.equal(call(COPY, z.conj(), output_dtypes=["complex64"]), z.conj().resolve_conj())
    imaginary = z.conj().imag
    assert imaginary.is_neg()
    assert torch.equal(call(COPY, imaginary), imaginary.resolve_neg())


def test_gradients_end_at_a_kernel():
    x = eight(requires_grad=True)
    y = call(COPY, x)
    assert not y.requires_grad
    assert torch.equal(y, x.detach())
    assert torch.equal(call(COPY, torch.nn.Parameter(eight())), eight())


def test_given_outputs():
    y = torch.empty(8)
    assert call(COPY, eight(), outputs=[y]) is y
    assert torch.equal(y, eight())
    by_name = kiln.metal_kernel("k", "y[0] = x[3]; z[0] = 7;")
    outputs = {"y": torch.zeros(1), "z": torch.zeros(1, dtype=torch.int8)}
    result = by_name(inputs={"x": eight()}, outputs=outputs, grid=(1, 1, 1), threadgroup=(1, 1, 1))
    assert result == outputs and result["y"] is outputs["y"]
    assert (outputs["y"].item(), outputs["z"].item()) == (3, 7)


def test_without_inputs_the_device_is_torchs_default():
    kernel = kiln.metal_kernel("k", [], ["y"], INDEX + "y[i] = i;")
    (y,) = kernel(inputs=[], output_shapes=[(8,)], output_dtypes=[torch.float32], grid=(8, 1, 1), threadgroup=(8, 1, 1))
    assert torch.equal(y, eight())


def test_in_torch_compile():
    def double(x):
        return call(COPY, x + x) + 1

    assert torch.equal(torch.compile(double, backend="eager")(eight()), 2 * eight() + 1)


def fake(x):
    from torch._subclasses import FakeTensorMode

    return FakeTensorMode().from_tensor(x)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: eight().to_sparse(),
            "Input `x` has layout torch.sparse_coo, and kernels take dense tensors: `.to_dense()` gives one.",
        ),
        (lambda: torch.empty(8, device="meta"), "Input `x` is on the device meta, and has no elements."),
        (
            lambda: torch.quantize_per_tensor(eight(), 0.1, 0, torch.qint8),
            "Input `x` is quantised, and kernels take plain tensors: `.dequantize()` gives one.",
        ),
        (
            lambda: torch.nested.nested_tensor([eight(), eight()]),
            "Input `x` is a nested tensor, and kernels take dense ones: `.to_padded_tensor(0)` gives one.",
        ),
        (
            lambda: eight().to(torch.complex128),
            "Input `x` has dtype torch.complex128, which no kernel can take.",
        ),
        (
            lambda: eight().to(torch.float8_e5m2),
            "Input `x` has dtype torch.float8_e5m2, which no kernel can take.",
        ),
        (
            lambda: fake(eight()),
            "Input `x` is a stand-in for a tensor (torch._subclasses.fake_tensor.FakeTensor), as torch.compile makes "
            "them, and has no elements; torch.compiler.disable keeps a function that calls kernels out of what is "
            "compiled.",
        ),
        (
            lambda: np.zeros(8, np.float32),
            None,
        ),
    ],
    ids=["sparse", "meta", "quantised", "nested", "complex128", "float8", "fake", "numpy"],
)
@pytest.mark.filterwarnings("ignore")
def test_refuses_what_memory_does_not_show(make, message):
    x = make()
    if message is None:
        with pytest.raises(TypeError) as error:
            call(kiln.metal_kernel("k", ["x", "z"], ["y"], ""), x, inputs=[eight(), x])
        message = "Expected all `inputs` to be arrays of one library but got arrays of torch and numpy."
    else:
        with pytest.raises(TypeError) as error:
            call(COPY, x)
    assert str(error.value) == f"[metal_kernel] {message}"
    assert torch.equal(call(COPY, eight()), eight())


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        (
            {"stream": 3},
            ValueError,
            "`stream` has no meaning for PyTorch tensors on the CPU, whose kernels run at once.",
        ),
        ({"inputs": ["x"]}, TypeError, "Expected `inputs` to be PyTorch tensors or numbers but got str for `x`."),
        (
            {"outputs": []},
            ValueError,
            "Expected `outputs` to have size 1 but got size 0.",
        ),
        ({"outputs": 3}, TypeError, "Expected `outputs` to be a list of arrays but got int."),
        ({"outputs": ["y"]}, TypeError, "Expected `outputs` to be PyTorch tensors but got str for `y`."),
        (
            {"outputs": [torch.zeros(16)[::2]]},
            ValueError,
            "Output `y` is not row-contiguous.",
        ),
        (
            {"outputs": [torch.zeros(8, requires_grad=True)]},
            ValueError,
            "Output `y` requires a gradient, which a kernel does not know of; `.detach()` gives a tensor that can be "
            "written.",
        ),
        (
            {"outputs": [torch.zeros(8, dtype=torch.complex64).conj()]},
            ValueError,
            "Output `y` is a view that cannot be written.",
        ),
    ],
)
def test_refuses_wrong_calls(changes, error, message):
    x = eight()
    if changes.get("inputs") == ["x"]:
        changes = {"inputs": ["x"], "output_dtypes": [torch.float32]}
    with pytest.raises(error) as raised:
        call(COPY, x, **changes)
    assert str(raised.value) == f"[metal_kernel] {message}"
    assert torch.equal(call(COPY, x), x)


def test_refuses_outputs_that_are_read():
    memory = torch.arange(12, dtype=torch.float32)
    with pytest.raises(ValueError) as error:
        call(COPY, memory[:8], outputs=[memory[4:]])
    assert str(error.value) == "[metal_kernel] The memory of input `x` and of output `y` overlap."
    two = kiln.metal_kernel("k", [], ["y", "z"], "y[0] = z[0] = 1;")
    with pytest.raises(ValueError) as error:
        two(inputs=[], outputs=[memory[:4], memory[3:5]], grid=(1, 1, 1), threadgroup=(1, 1, 1))
    assert str(error.value) == "[metal_kernel] The memory of output `y` and of output `z` overlap."


def test_refuses_shapes_beside_outputs():
    with pytest.raises(TypeError) as error:
        COPY(inputs=[eight()], outputs=[eight()], output_shapes=[(8,)], grid=(8, 1, 1), threadgroup=(8, 1, 1))
    assert str(error.value) == "[metal_kernel] The call has `outputs`, from which `output_shapes` follows."
