"""Functions of arrays in PyTorch: each transformation against PyTorch's own operations."""

import os
import pickle
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import function_definitions as definitions
import kiln
import numpy as np
import pytest
import transformation_table
from function_definitions import grid_sample, mirrored, one_by_one, plain, powers, product, square, tripled

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

Module: Any = torch.nn.Module


def values(*shape, dtype="float32"):
    rng = np.random.default_rng(len(shape) + sum(shape))
    return torch.from_numpy(rng.normal(size=shape)).to(getattr(torch, dtype))


def close(got, expected, tolerance=1e-5):
    assert got.shape == expected.shape and got.dtype == expected.dtype
    assert torch.allclose(got, expected, rtol=tolerance, atol=tolerance), (got, expected)


def loss(x):
    """Of a function between operations of PyTorch's."""
    return product(square(torch.sin(x)), x).sum()


def loss_of_operations(x):
    return (torch.sin(x) ** 2 * x).sum()


X = values(8, 5)


def gradient(function, x):
    x = x.clone().requires_grad_()
    function(x).backward()
    return x.grad


def compiled(function, **options):
    torch._dynamo.reset()
    return torch.compile(function, fullgraph=True, **options)


class Model(Module):
    def forward(self, x):
        return square(torch.sin(x)) + product(x, x)


class Square(Module):
    def forward(self, x):
        return square(x)


def exported(strict):
    program = torch.export.export(Model(), (X,), dynamic_shapes=({0: torch.export.Dim("n")},), strict=strict)
    for n in (3, 8):
        x = values(n, 5)
        close(program.module()(x), torch.sin(x) ** 2 + x * x)


def autograd():
    close(gradient(loss, X), gradient(loss_of_operations, X))


def gradcheck():
    x = values(5, dtype="float64").requires_grad_()
    assert torch.autograd.gradcheck(definitions.cuda_sine, (x,), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(definitions.cuda_sine, (x,))


def double_backward():
    def second(function):
        x = X.clone().requires_grad_()
        (first,) = torch.autograd.grad(function(x), x, create_graph=True)
        return torch.autograd.grad(first.sum(), x)[0]

    close(second(loss), second(loss_of_operations))


def compile_with(backend, dynamic):
    def run():
        forward = compiled(lambda x: square(torch.sin(x)), backend=backend, dynamic=dynamic)
        backward = compiled(loss, backend=backend, dynamic=dynamic)
        for shape in ((8, 5), (3, 7), (2, 1)) if dynamic else ((8, 5),):
            x = values(*shape)
            close(forward(x), torch.sin(x) ** 2)
            close(gradient(backward, x), gradient(loss_of_operations, x))

    return run


def func(transform, *arguments):
    def run():
        got, expected = (transform(f)(X, *arguments) for f in (loss, loss_of_operations))
        close(got, expected)

    return run


def jvp():
    got = torch.func.jvp(loss, (X,), (torch.ones_like(X),))
    expected = torch.func.jvp(loss_of_operations, (X,), (torch.ones_like(X),))
    close(got[0], expected[0])
    close(got[1], expected[1])


def vmap():
    close(torch.vmap(square)(X), X**2)
    close(torch.vmap(square, in_dims=1, out_dims=1)(X), X**2)
    close(torch.vmap(product, in_dims=(0, None))(X, X[0]), X * X[0])
    close(torch.vmap(torch.vmap(square))(X), X**2)
    for got, expected in zip(torch.vmap(powers)(X), (X**2, X**3), strict=True):
        close(got, expected)


def sequential():
    scale = values(5)
    close(torch.vmap(one_by_one, in_dims=(0, None))(X, scale), X * scale)
    close(torch.vmap(one_by_one, in_dims=(1, None))(X, torch.ones(1)), X.T)
    assert torch.vmap(one_by_one, in_dims=(0, None))(X[:0], scale).shape == (0, 5)


def reversed_product(x, w):
    return w * x.flip(0)


def grid_axis():
    """Batches of a function that knows where it is in its grid; derivatives of batches, batches of derivatives."""
    w, v = values(5), values(8, 5)

    for arrays, in_dims in (((X, v), (0, 0)), ((X, w), (0, None)), ((w, v), (None, 0)), ((X.T, w), (1, None))):
        batched, expected = (torch.vmap(f, in_dims=in_dims) for f in (mirrored, reversed_product))
        close(batched(*arrays), expected(*arrays))
        for i in (0, 1):
            got, wanted = (
                torch.func.grad(lambda *a, f=f: (f(*a) ** 2).sum(), argnums=i)(*arrays) for f in (batched, expected)
            )
            close(got, wanted, 1e-4)
        per_element = [
            torch.vmap(torch.func.grad(lambda *a, f=f: (f(*a) ** 2).sum(), argnums=(0, 1)), in_dims=in_dims)(*arrays)
            for f in (mirrored, reversed_product)
        ]
        for got, wanted in zip(*per_element, strict=True):
            close(got, wanted, 1e-4)
        tangents = tuple(torch.ones_like(a) for a in arrays)
        got, wanted = (torch.func.jvp(f, arrays, tangents) for f in (batched, expected))
        close(got[1], wanted[1])
    stack = values(3, 8, 5)
    nested = [torch.vmap(torch.vmap(f, in_dims=(0, None)), in_dims=(0, 0)) for f in (mirrored, reversed_product)]
    close(*(f(stack, values(3, 5)) for f in nested))
    close(compiled(torch.vmap(mirrored))(X, v), v * X.flip(1))
    close(compiled(torch.vmap(mirrored), dynamic=True)(X, v), v * X.flip(1))


def compile_vmap():
    close(compiled(torch.vmap(square))(X), X**2)


def aot_inductor():
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        program = torch.export.export(Model(), (X,), dynamic_shapes=({0: torch.export.Dim("n")},))
        path = torch._inductor.aoti_compile_and_package(program, package_path=f"{folder}/model.pt2")
        model = torch._inductor.aoti_load_package(path)
        for n in (3, 8):
            x = values(n, 5)
            close(model(x), torch.sin(x) ** 2 + x * x)


def opcheck():
    from kiln._functions_torch import _static_arguments

    for inputs in ([X], [X.clone().requires_grad_()]):
        _, text, sizes = _static_arguments(square, inputs)
        torch.library.opcheck(torch.ops.kiln.launch.default, (text, [inputs[0].detach()], sizes))


def checkpoint():
    from torch.utils.checkpoint import checkpoint

    close(gradient(lambda x: checkpoint(loss, x, use_reentrant=False), X), gradient(loss_of_operations, X))


def meta():
    y = square(X.to("meta"))
    assert y.is_meta and y.shape == X.shape and y.dtype == X.dtype


def fake_tensors():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode() as mode:
        y = square(mode.from_tensor(X))
        assert y.shape == X.shape


def functionalize():
    close(torch.func.functionalize(square)(X), X**2)


def make_fx():
    from torch.fx.experimental.proxy_tensor import make_fx

    for mode in ("real", "fake", "symbolic"):
        for before_dispatch in (False, True):
            graph = make_fx(square, tracing_mode=mode, pre_dispatch=before_dispatch)(X)
            assert graph.code.count("kiln.launch") == 1
            close(graph(X + 1), (X + 1) ** 2)


def inference_mode():
    with torch.inference_mode():
        close(square(X), X**2)


# What a transformation does, by the names of the table in docs/transformations.md.
TRANSFORMATIONS: dict[str, Any] = {
    "value": lambda: close(square(X), X**2),
    "gradient": autograd,
    "gradient by finite differences": gradcheck,
    "second derivative": double_backward,
    "`torch.func.grad`": func(torch.func.grad),
    "`torch.func.vjp`": lambda: close(
        torch.func.vjp(loss, X)[1](torch.tensor(1.0))[0], gradient(loss_of_operations, X)
    ),
    "`torch.func.jvp`": jvp,
    "`torch.func.jacrev`": func(torch.func.jacrev),
    "`torch.func.jacfwd`": func(torch.func.jacfwd),
    "`torch.func.hessian`": func(torch.func.hessian),
    "`torch.vmap`": vmap,
    "`torch.vmap`, one launch after the other": sequential,
    "`torch.vmap`, an axis of the grid": grid_axis,
    "`vmap(grad)`": lambda: close(*(torch.vmap(torch.func.grad(f))(X) for f in (loss, loss_of_operations))),
    "`grad(vmap)`": lambda: close(
        gradient(lambda x: torch.vmap(square)(x).sum(), X), gradient(lambda x: (x**2).sum(), X)
    ),
    '`torch.compile(fullgraph=True, backend="eager")`': compile_with("eager", False),
    '`torch.compile(fullgraph=True, backend="aot_eager")`': compile_with("aot_eager", False),
    "`torch.compile(fullgraph=True)`": compile_with("inductor", False),
    "`torch.compile(fullgraph=True, dynamic=True)`": compile_with("inductor", True),
    "`compile(vmap)`": compile_vmap,
    "`compile(func.grad)`": lambda: close(compiled(torch.func.grad(loss))(X), gradient(loss_of_operations, X)),
    "`compile(vmap(func.grad))`": lambda: close(
        compiled(torch.vmap(torch.func.grad(loss)))(X), gradient(loss_of_operations, X)
    ),
    "`torch.export`, any size": lambda: exported(False),
    "`torch.export(strict=True)`, any size": lambda: exported(True),
    "AOTInductor, any size": aot_inductor,
    "`torch.library.opcheck`": opcheck,
    "activation checkpoint": checkpoint,
    "meta tensors": meta,
    "fake tensors": fake_tensors,
    "`torch.func.functionalize`": functionalize,
    "`make_fx`": make_fx,
    "`torch.inference_mode`": inference_mode,
}

VERSION = tuple(int(part) for part in torch.__version__.split(".")[:2])


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_transformations(name):
    TRANSFORMATIONS[name]()


def test_the_page_says_so():
    transformation_table.check("PyTorch", TRANSFORMATIONS, {})


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("shape", [(8, 5), (1,), (0, 3)])
def test_gradients_by_dtype_and_shape(dtype, shape):
    x = values(*shape).to(getattr(torch, dtype))

    def gradient_of(function):
        y = x.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(function(y).sum(), y)
        return gradient

    close(gradient_of(square), gradient_of(lambda y: y * y), tolerance=1e-2 if dtype != "float32" else 1e-6)


@pytest.mark.parametrize("shape", [(4, 3), (1, 1), (0, 3), (2, 0)])
def test_complex_numbers(shape):
    x = torch.complex(values(*shape), values(*shape) * 2)
    weights = torch.complex(values(*shape) - 1, values(*shape))
    got, expected = [
        (f(x), torch.func.vjp(f, x)[1](weights)[0], torch.func.jvp(f, (x,), (weights,))[1], torch.vmap(f)(x))
        for f in (tripled, lambda x: 3 * x)
    ]
    for one, other in zip(got, expected, strict=True):
        close(one, other)
    for function in (compiled(tripled, backend="aot_eager"), compiled(tripled, backend="aot_eager", dynamic=True)):
        y = x.clone().requires_grad_()
        (function(y) * weights).sum().abs().backward()
        z = x.clone().requires_grad_()
        (3 * z * weights).sum().abs().backward()
        close(y.grad, z.grad)


@pytest.mark.parametrize("shape", [(0, 5), (4, 0)])
def test_empty_arrays_in_programs(shape):
    x = values(*shape)
    for dynamic in (False, True):
        close(compiled(lambda x: square(torch.sin(x)), dynamic=dynamic)(x), torch.sin(x) ** 2)
        close(gradient(compiled(loss, dynamic=dynamic), x), torch.zeros(shape))
    close(torch.vmap(square)(x), x**2)
    close(torch.vmap(mirrored)(x, x), x * x.flip(1))
    close(torch.func.grad(loss)(x), torch.zeros(shape))


Dataset: Any = torch.utils.data.Dataset


class Squares(Dataset):
    def __init__(self, function):
        self.function = function

    def __len__(self):
        return 6

    def __getitem__(self, index):
        return self.function(torch.arange(4.0) + index)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_of_a_data_loader(method):
    square(torch.ones(4))  # the parent has launched, and has threads
    loader = torch.utils.data.DataLoader(Squares(square), batch_size=3, num_workers=2, multiprocessing_context=method)
    batches = torch.cat(list(loader))
    close(batches, (torch.arange(4.0) + torch.arange(6.0)[:, None]) ** 2)


def test_other_shapes_compile_nothing_again():
    function = compiled(loss, backend="aot_eager", dynamic=True)
    function(values(8, 5))
    counters = torch._dynamo.utils.counters["stats"]
    graphs = counters["unique_graphs"]
    function(values(3, 7))
    function(values(30, 7))
    assert counters["unique_graphs"] == graphs


def test_several_outputs():
    def gradient_of(function):
        x = X.clone().requires_grad_()
        return torch.autograd.grad(function(x), x)[0]

    # Of one output alone the other's cotangent is zero.
    for weights in ((1, 0), (0, 1), (2, 3)):
        close(
            gradient_of(lambda x, w=weights: sum(k * y.sum() for k, y in zip(w, powers(x), strict=True))),
            gradient_of(lambda x, w=weights: (w[0] * x**2 + w[1] * x**3).sum()),
            1e-4,
        )


def test_grid_sample():
    """From the definition that all libraries share, against PyTorch's own."""
    image, places = values(2, 9, 7, 3), values(2, 4, 5, 2) * 0.6

    def own(image, places):
        result = torch.nn.functional.grid_sample(
            image.permute(0, 3, 1, 2), places, mode="bilinear", padding_mode="zeros", align_corners=False
        )
        return result.permute(0, 2, 3, 1)

    weights = values(2, 4, 5, 3)

    def gradients(function):
        inputs = [x.clone().requires_grad_() for x in (image, places)]
        result = function(*inputs)
        return [result.detach(), *torch.autograd.grad((result * weights).sum(), inputs)]

    for got, expected in zip(gradients(grid_sample), gradients(own), strict=True):
        close(got, expected, 1e-4)
    for got, expected in zip(gradients(compiled(grid_sample)), gradients(own), strict=True):
        close(got, expected, 1e-4)


# ---- Errors.

GRADIENT = (
    "[metal_kernel] Input `x` of `plain` requires a gradient (PyTorch, autograd), and the function has no vjp rule: attach "
    "one with `f.vjp(rule)`."
)
TANGENT = (
    "[metal_kernel] Input `x` of `plain` has a tangent (PyTorch, forward mode), and the function has no jvp rule: attach one "
    "with `f.jvp(rule)`."
)
BATCH = (
    "[metal_kernel] `plain` is batched (PyTorch, vmap), and the function has no vmap rule: attach one with `f.vmap(rule)` "
    'or `f.vmap("grid")`.'
)


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda: plain(X.clone().requires_grad_()), GRADIENT),
        (lambda: torch.func.grad(lambda x: plain(x).sum())(X), GRADIENT),
        (lambda: torch.func.jvp(plain, (X,), (X,)), TANGENT),
        (lambda: torch.func.jacfwd(plain)(X), TANGENT),
        (lambda: torch.vmap(plain)(X), BATCH),
        (lambda: compiled(plain)(X.clone().requires_grad_()), GRADIENT),
        (lambda: compiled(torch.vmap(plain))(X), BATCH),
    ],
)
def test_missing_rules(use, message):
    with pytest.raises(Exception) as error:
        use()
    if VERSION < (2, 9) and "Observed exception" in str(error.value):
        return  # Dynamo does not tell which
    # Dynamo has a report of its own around it.
    assert str(error.value) == message or message in str(error.value) or message in str(error.value.__cause__)


def test_without_a_gradient_no_rule_is_needed():
    x = X.clone().requires_grad_()
    with torch.no_grad():
        close(plain(x), X**2)
    close(compiled(plain)(X), X**2)
    close(plain(x.detach()), X**2)


def test_wrong_gradients():
    function = definitions.elementwise("wrong", ["x"], "y[i] = x[i];")
    function.vjp(lambda x, cotangent, _: cotangent[0])
    with pytest.raises(ValueError) as error:
        gradient(lambda x: function(x).sum(), X)
    assert str(error.value) == (
        "[metal_kernel] The vjp rule of `wrong` gave a gradient of shape (5,) for input `x` of shape (8, 5)."
    )
    function.vjp(lambda x, cotangent, _: (cotangent, cotangent))
    with pytest.raises(ValueError) as error:
        gradient(lambda x: function(x).sum(), X)
    assert str(error.value) == (
        "[metal_kernel] Expected the vjp rule of `wrong` to return a value for each of 1 input but got 2."
    )


def test_arrays_of_other_libraries():
    for x in (X, X.clone().requires_grad_()):
        with pytest.raises(TypeError, match=r"^\[metal_kernel\] Expected .*`inputs` to be "):
            product(x, X.numpy())


def test_numbers_among_tensors():
    function = definitions.elementwise("scaled", ["x", "s"], "y[i] = x[i] * s;")
    function.vjp(lambda primals, cotangent, _: (cotangent * primals[1], None))
    for transform in (lambda f: f, compiled):
        close(gradient(transform(lambda x: function(x, 3.0).sum()), X), torch.full_like(X, 3.0))


def test_rules_may_have_no_gradient():
    function = definitions.elementwise("half", ["a", "b"], "y[i] = a[i] + b[i];")
    function.vjp(lambda primals, cotangent, _: (cotangent, None))
    a, b = X.clone().requires_grad_(), X.clone().requires_grad_()
    function(a, b).sum().backward()
    close(a.grad, torch.ones_like(X))
    assert b.grad is None


def test_stored_programs_have_no_gradient():
    """A program is exported without its rules; a gradient would end in it, and nothing would say so."""
    program = torch.export.export(Model(), (X,))
    x = X.clone().requires_grad_()
    with pytest.raises(TypeError, match=r"^\[kiln\] An input of a launch of a stored program requires a gradient, "):
        program.module()(x)
    with torch.no_grad():
        close(program.module()(x), torch.sin(X) ** 2 + X * X)


# ---- Other processes.

PROGRAM = """
    import sys
    import torch
    import kiln.torch
    sys.path = [path for path in sys.path if not path.endswith("tests/python")]
    x = torch.arange(6.0).reshape(3, 2)
    program = {load}
    print((program(x) - (torch.sin(x) ** 2 + x * x)).abs().max().item() < 1e-5)
"""


def run_elsewhere(load, folder):
    program = Path(folder) / "program.py"
    program.write_text(textwrap.dedent(PROGRAM).format(load=load))
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, env=dict(os.environ), timeout=300)
    assert done.stdout == "True\n", done.stderr


def test_exported_programs_run_in_other_processes(tmp_path):
    program = torch.export.export(Model(), (X,), dynamic_shapes=({0: torch.export.Dim("n"), 1: torch.export.Dim("m")},))
    torch.export.save(program, tmp_path / "program.pt2")
    run_elsewhere(f"torch.export.load({str(tmp_path / 'program.pt2')!r}).module()", tmp_path)


def test_compiled_packages_run_in_other_processes(tmp_path):
    program = torch.export.export(Model(), (X,), dynamic_shapes=({0: torch.export.Dim("n"), 1: torch.export.Dim("m")},))
    path = torch._inductor.aoti_compile_and_package(program, package_path=str(tmp_path / "model.pt2"))
    run_elsewhere(f"torch._inductor.aoti_load_package({path!r})", tmp_path)


def test_a_program_may_begin_with_a_compiled_call():
    """Kiln's part for PyTorch is imported while Dynamo reads the call."""
    text = f"""
        import sys
        import torch
        sys.path.insert(0, {str(Path(definitions.__file__).parent)!r})
        from function_definitions import square
        x = torch.arange(4.0)
        print(torch.compile(lambda x: square(x), fullgraph=True, backend="aot_eager")(x).tolist())
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(text)], capture_output=True, text=True, timeout=300)
    assert done.stdout == "[0.0, 1.0, 4.0, 9.0]\n", done.stderr


@pytest.mark.parametrize("count", [1, 2, 3, 40])
def test_a_gradient_of_functions_of_several_inputs(count):
    """Their rules call functions themselves, where no gradient is wanted: PyTorch up to 2.11 counts their arguments."""
    names = [f"x{i}" for i in range(count)]
    total = definitions.elementwise(f"sum_of_{count}", names, f"y[i] = {' + '.join(f'{name}[i]' for name in names)};")
    copy = definitions.elementwise(
        f"last_of_{count}", ["cotangent", *names[1:]], f"y[i] = cotangent[i]{' + 0 * x1[i]' if count > 1 else ''};"
    )
    total.vjp(lambda primals, cotangent, _: (copy(cotangent, *primals[1:]) if count > 1 else copy(cotangent),) * count)
    xs = [values(3, 4) for _ in range(count)]
    function = compiled(lambda first: total(first, *xs[1:]).sum(), backend="eager")
    close(gradient(function, xs[0]), torch.ones(3, 4))
    with torch.no_grad():
        close(compiled(total, backend="eager")(*xs), sum(xs))


def test_copies_leave_the_original_where_it_is():
    """A traced launch names its function, whose rule for batches may be called for later. A copy has the same name."""
    program = torch.export.export(Square(), (X[0],)).module()
    assert pickle.loads(pickle.dumps(square))._reference == square._reference
    close(torch.vmap(program)(X), X**2)


def test_functions_pickle():
    copy = pickle.loads(pickle.dumps(square))
    close(gradient(lambda x: copy(x).sum(), X), 2 * X)


# ---- Plain calls, which name the remedy.


def test_plain_calls_name_functions():
    kernel: Any = kiln.metal_kernel("k", ["x"], ["y"], definitions.INDEX + "y[i] = x[i];")
    with pytest.raises(TypeError) as error:
        kernel(
            inputs=[X.clone().requires_grad_()],
            output_shapes=[X.shape],
            output_dtypes=[X.dtype],
            grid=(40, 1, 1),
            threadgroup=(40, 1, 1),
        )
    assert re.search(r"`kernel\.function\(…\)` makes a function with a gradient", str(error.value)), str(error.value)
