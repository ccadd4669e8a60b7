"""Kernels on PyTorch's tensors in the CPU's memory. What GPUs do is in test_gpu_torch.py."""

from typing import Any

import kiln
import numpy as np
import pytest
from kiln import _doctor
from launch_bodies import BODIES, launch, shows_negative_strides

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch_arrays import to_numpy, to_torch, torch_dtype  # noqa: E402

# As types that a class can be derived from.
Function: Any = torch.autograd.Function
Module_: Any = torch.nn.Module
Tensor: Any = torch.Tensor

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


# PyTorch has no negative strides.
WITH_ITS_STRIDES = [name for name, body in BODIES.items() if not shows_negative_strides(body)]


@pytest.mark.parametrize("name", WITH_ITS_STRIDES)
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


GRADIENT = (
    "Input `x` requires a gradient, which would end at the kernel: `kernel.function(…)` makes a function with a gradient; or "
    "pass `x.detach()`, or call the kernel within torch.no_grad() or in the forward of a torch.autograd.Function."
)


def message_of(error, function, *arguments):
    """What the call raises, without its prefix. A right call follows it."""
    with pytest.raises(error) as raised:
        function(*arguments)
    assert torch.equal(call(COPY, eight()), eight())
    assert str(raised.value).startswith("[metal_kernel] ")
    return str(raised.value).removeprefix("[metal_kernel] ")


@pytest.mark.parametrize(
    "make",
    [
        lambda: eight(requires_grad=True),
        lambda: eight(requires_grad=True) * 2,
        lambda: eight(requires_grad=True)[None, ::2],
        lambda: torch.nn.Parameter(eight()),
        lambda: torch.nn.Linear(8, 1).weight,
        lambda: torch.complex(eight(), eight()).requires_grad_().conj(),
    ],
    ids=["leaf", "result", "view", "parameter", "module", "conjugate"],
)
def test_refuses_a_tensor_that_requires_a_gradient(make):
    x = make()
    arguments = {"output_shapes": [x.shape], "output_dtypes": [x.dtype]}
    assert message_of(TypeError, lambda: call(COPY, x, **arguments)) == GRADIENT
    assert message_of(TypeError, lambda: COPY.compile(inputs=[x], grid=8, threadgroup=8, **arguments)) == GRADIENT
    with torch.no_grad():
        y = call(COPY, x, grid=(x.numel(),), **arguments)
    assert not y.requires_grad
    assert torch.equal(y, x.detach())
    assert torch.equal(call(COPY, x.detach(), grid=(x.numel(),), **arguments), x.detach())


def test_in_an_autograd_function():
    class Double(Function):
        @staticmethod
        def forward(ctx, x):
            return call(COPY, x) * 2

        @staticmethod
        def backward(ctx, cotangent):
            return call(COPY, cotangent.contiguous()) * 2

    x = eight(requires_grad=True)
    (Double.apply(x) + 3 * x).sum().backward()
    assert torch.equal(x.grad, torch.full((8,), 5.0))


def test_in_an_operator_of_torch_library():
    @torch.library.custom_op("kiln_tests::copy", mutates_args=(), schema="(Tensor x) -> Tensor")
    def copy(x):
        return call(COPY, x)

    assert torch.equal(copy(eight(requires_grad=True)).detach(), eight())


TRANSFORMED = (
    "Input `x` is a value in a function that torch.func transforms ({}), and has no memory of its own: "
    "`kernel.function(…)` makes a function that can be transformed; or call the kernel outside of that function."
)
TRACED = (
    "Input `x` is traced by {}, which would miss the kernel: call it outside of what is traced, or make a function with "
    "`kernel.function(…)`."
)
PROXY = TRACED.format("torch.fx (make_fx, torch.export)")


def copy(x):
    return call(COPY, x)


def make_fx(mode, **options):
    from torch.fx.experimental.proxy_tensor import make_fx

    return lambda: make_fx(copy, tracing_mode=mode, **options)(eight())


def in_module():
    class Module(Module_):
        def forward(self, x):
            return copy(x)

    return Module()


def forward_mode():
    from torch.autograd import forward_ad

    with forward_ad.dual_level():
        return copy(forward_ad.make_dual(eight(), eight()))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda: torch.func.vmap(copy)(torch.ones(2, 8)), TRANSFORMED.format("vmap")),
        (lambda: torch.func.vmap(torch.func.vmap(copy))(torch.ones(2, 2, 8)), TRANSFORMED.format("vmap")),
        (lambda: torch.func.grad(lambda x: copy(x).sum())(eight()), TRANSFORMED.format("grad, vjp, jvp")),
        (lambda: torch.func.jacrev(copy)(eight()), TRANSFORMED.format("grad, vjp, jvp")),
        (lambda: torch.func.jvp(copy, (eight(),), (eight(),)), TRANSFORMED.format("grad, vjp, jvp")),
        (lambda: torch.func.functionalize(copy)(eight()), TRANSFORMED.format("functionalize")),
        (lambda: torch.jit.trace(copy, (eight(),)), TRACED.format("torch.jit.trace")),
        (make_fx("real"), PROXY),
        (make_fx("fake"), PROXY),
        (make_fx("symbolic"), PROXY),
        (make_fx("real", pre_dispatch=True), PROXY),
        (
            lambda: torch.export.export(in_module(), (eight(),), strict=False),
            "Input `x` is read within FakeTensorMode, where new tensors have no elements: call the kernel outside of it, "
            "or make a function with `kernel.function(…)`.",
        ),
        (
            forward_mode,
            "Input `x` has a tangent (torch.autograd.forward_ad), which would end at the kernel: `kernel.function(…)` "
            "makes a function with tangents; or pass the `primal` that `unpack_dual(x)` gives.",
        ),
        (
            lambda: copy(torch._to_functional_tensor(eight())),
            "Input `x` is a functional tensor, as torch.compile makes them, and has no memory of its own: "
            "`kernel.function(…)` makes a function that can be traced; or call the kernel outside of what is traced.",
        ),
    ],
    ids=[
        *("vmap", "vmap twice", "grad", "jacrev", "jvp", "functionalize", "jit.trace", "make_fx real", "make_fx fake"),
        *("make_fx symbolic", "make_fx before dispatch", "export", "forward mode", "functional"),
    ],
)
def test_refuses_what_a_transformation_would_miss(function, message):
    assert message_of(TypeError, function) == message


def test_tracing_without_tensors_names_the_call():
    seven = kiln.metal_kernel("k", [], ["y"], "y[0] = 7;")
    arguments: dict[str, Any] = {"inputs": [], "output_shapes": [(1,)], "output_dtypes": [torch.float32]}
    arguments |= {"grid": 1, "threadgroup": 1}
    with pytest.raises(TypeError) as error, pytest.warns(Warning):
        torch.jit.trace(lambda x: x + seven(**arguments)[0], (eight(),))
    assert str(error.value) == (
        "[metal_kernel] The call is traced by torch.jit.trace, which would miss the kernel: call it outside of what is "
        "traced, or make a function with `kernel.function(…)`."
    )


def test_constants_in_functions_that_are_transformed():
    c = eight()
    gradient = torch.func.grad(lambda x: (x * copy(c)).sum())(eight())
    assert torch.equal(gradient, c)
    assert torch.equal(torch.func.functionalize(lambda x: x * copy(c))(eight()), c * c)
    assert torch.equal(torch.func.vmap(lambda x: x * copy(c))(torch.ones(2, 8)), c.expand(2, 8))
    assert torch.equal(torch.func.jvp(lambda x: x * copy(c), (c,), (c,))[1], c * c)


def test_under_a_mode_of_the_programs_own():
    from torch.utils._python_dispatch import TorchDispatchMode

    class Counts(TorchDispatchMode):
        calls = 0

        def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
            self.calls += 1
            return function(*arguments, **(keywords or {}))

    with Counts() as mode:
        assert torch.equal(copy(eight()), eight())
    assert mode.calls > 0


def freed():
    x = eight()
    x.untyped_storage().resize_(0)
    return x


def wrapper():
    class Wrapper(Tensor):
        @staticmethod
        def __new__(cls, x):
            return torch.Tensor._make_wrapper_subclass(cls, x.shape, dtype=x.dtype)

        __torch_dispatch__ = classmethod(lambda cls, function, types, arguments=(), keywords=None: NotImplemented)

    return Wrapper(eight())


def test_refuses_tensors_without_memory():
    null = "has no memory: the address of its elements is null, as after its storage was resized or freed."
    assert message_of(TypeError, copy, freed()) == f"Input `x` {null}"
    given = {"outputs": [freed()], "grid": 8, "threadgroup": 8}
    assert message_of(TypeError, lambda: COPY(inputs=[eight()], **given)) == f"Output `y` {null}"
    assert message_of(TypeError, copy, wrapper()) == (
        "Input `x` is a test_torch.Wrapper, a tensor without memory of its own, and kernels take plain tensors."
    )
    assert call(COPY, torch.zeros(0), output_shapes=[(0,)], grid=0).numel() == 0
    assert torch.equal(copy(torch._efficientzerotensor(8)), torch.zeros(8))


def given(x, y, kernel=COPY):
    return kernel(inputs=[x], outputs=[y], grid=8, threadgroup=8)


def test_given_outputs_raise_their_version():
    y = torch.zeros(8)
    given(eight(), y)
    given(eight(), y.detach())
    given(eight(), y.view(2, 4))
    assert y._version == 3
    x = eight(requires_grad=True)
    z = x.exp()
    given(eight(), z.detach())
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()
    two = kiln.metal_kernel("k", "y[0] = x[0]; z[0] = x[1];")
    outputs = {"y": torch.zeros(1), "z": torch.zeros(1)}
    two(inputs={"x": eight()}, outputs=outputs, grid=1, threadgroup=1)
    assert [tensor._version for tensor in outputs.values()] == [1, 1]
    scalar = torch.tensor(3.0)
    kiln.metal_kernel("k", ["x"], ["y"], "y[0] = x[2];")(inputs=[eight()], outputs=[scalar], grid=1, threadgroup=1)
    assert (scalar.item(), scalar._version) == (2, 1)


def test_given_outputs_that_require_a_gradient():
    leaf = torch.nn.Parameter(torch.zeros(8))
    message = "Output `y` requires a gradient, which a kernel does not know of; `.detach()` gives a tensor that can be written."
    for y in (leaf, leaf * 2, leaf.view(8)):
        assert message_of(ValueError, given, eight(), y) == message
    with torch.no_grad():  # as optimizers write parameters
        given(eight(), leaf)
    assert torch.equal(leaf.detach(), eight())
    assert leaf._version == 1


def test_inference_tensors():
    with torch.inference_mode():
        x = eight()
        y = torch.zeros(8)
        given(x, y)
    assert torch.equal(call(COPY, y), eight())
    assert message_of(ValueError, given, eight(), y) == (
        "Output `y` is an inference tensor, which PyTorch writes within torch.inference_mode() only; `.clone()` gives a "
        "tensor that can be written."
    )


# Appends in place: `writable_inputs`.
APPEND: Any = kiln.metal_kernel(
    "append", ["cache"], ["y"], INDEX + "((device float*)cache)[i] = cache[i] + 1; y[i] = cache[i];",
    compile_options={"writable_inputs": ["cache"]},
)  # fmt: skip


def test_inputs_that_are_written_raise_their_version():
    cache = torch.zeros(8)
    for written in (cache, cache.detach(), cache.view(2, 4)):
        assert torch.equal(call(APPEND, written), cache)
    assert (cache[7].item(), cache._version) == (3, 3)
    x = eight(requires_grad=True)
    z = x.exp()
    call(APPEND, z.detach())
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()
    leaf = torch.nn.Parameter(torch.zeros(8))
    with torch.no_grad():
        call(APPEND, leaf)
    assert (leaf[0].item(), leaf._version) == (1, 1)


def test_inputs_that_cannot_be_written():
    cannot = "Input `cache` is to be written in place, but is "
    own = "Input `cache` requires a gradient, which a kernel does not know of; `.detach()` gives a tensor that can be written."
    assert message_of(ValueError, call, APPEND, eight(requires_grad=True)) == own
    assert message_of(ValueError, call, APPEND, torch.zeros(16)[::2]) == (
        cannot + "not row-contiguous, and `ensure_row_contiguous` would have a copy written."
    )
    assert message_of(ValueError, call, APPEND, torch.zeros(1).expand(8)) == (
        cannot + "broadcast: its elements share memory."
    )
    with torch.inference_mode():
        inference = torch.zeros(8)
        call(APPEND, inference)
    assert inference[0] == 1
    assert message_of(ValueError, call, APPEND, inference).startswith("Input `cache` is an inference tensor, which")
    cache = torch.zeros(8)
    with pytest.raises(ValueError, match="`cache`"):
        call(APPEND, cache, outputs=[cache])
    assert torch.equal(cache, torch.zeros(8))


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
            "them, and has no elements; `kernel.function(…)` makes a function that can be compiled, and "
            "torch.compiler.disable keeps a function that calls kernels out of what is compiled.",
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


def test_doctor_tries_the_compiler_with_it_alone(monkeypatch):
    def is_missing():
        raise ImportError("not here")

    for other in ("_numpy", "_mlx"):
        monkeypatch.setattr(_doctor, other, is_missing)
    rows = {row.name: row for group in _doctor.findings().values() for row in group}
    for name in ("libkiln_compiler.so", "cpu", "torch"):
        assert rows[name].usable, rows[name].detail
