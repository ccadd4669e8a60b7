"""What PyTorch's transformations do with functions of arrays, against PyTorch's own operations, on a device.

The tests run the programs on the CPU (`test_functions_torch.py`) and on a GPU (`test_gpu_transformations.py`); the table
in docs/transformations.md has their names.
"""

import tempfile
from collections.abc import Callable
from typing import Any

import function_definitions as definitions
import numpy as np
import torch
from function_definitions import grid_sample, mirrored, one_by_one, powers, product, square, tripled
from transformation_table import LibraryLimit

from bench import stored_programs

Module: Any = torch.nn.Module


def close(got, expected, tolerance=1e-5):
    assert got.shape == expected.shape and got.dtype == expected.dtype and got.device == expected.device
    assert torch.allclose(got, expected, rtol=tolerance, atol=tolerance), (got, expected)


def loss(x):
    """Of a function between operations of PyTorch's."""
    return product(square(torch.sin(x)), x).sum()


def loss_of_operations(x):
    return (torch.sin(x) ** 2 * x).sum()


def reversed_product(x, w):
    return w * x.flip(0)


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


class Programs:
    """Programs whose arrays are on a device of PyTorch's."""

    def __init__(self, device: str) -> None:
        self.device = torch.device(device, 0) if device == "cuda" else torch.device(device)
        self.x = self.values(8, 5)

    def values(self, *shape: int, dtype: str = "float32") -> Any:
        rng = np.random.default_rng(len(shape) + sum(shape))
        return torch.from_numpy(rng.normal(size=shape)).to(getattr(torch, dtype)).to(self.device)

    @property
    def transformations(self) -> dict[str, Callable[[], None]]:
        """What a transformation does, by the names of the table in docs/transformations.md."""
        x = self.x
        return {
            "value": lambda: close(square(x), x**2),
            "gradient": lambda: close(gradient(loss, x), gradient(loss_of_operations, x)),
            "gradient by finite differences": self.gradcheck,
            "second derivative": self.double_backward,
            "`torch.func.grad`": lambda: self.func(torch.func.grad),
            "`torch.func.vjp`": lambda: close(
                torch.func.vjp(loss, x)[1](torch.tensor(1.0, device=self.device))[0], gradient(loss_of_operations, x)
            ),
            "`torch.func.jvp`": self.jvp,
            "`torch.func.jacrev`": lambda: self.func(torch.func.jacrev),
            "`torch.func.jacfwd`": lambda: self.func(torch.func.jacfwd),
            "`torch.func.hessian`": lambda: self.func(torch.func.hessian),
            "`torch.vmap`": self.vmap,
            "`torch.vmap`, one launch after the other": self.sequential,
            "`torch.vmap`, an axis of the grid": self.grid_axis,
            "`vmap(grad)`": lambda: close(*(torch.vmap(torch.func.grad(f))(x) for f in (loss, loss_of_operations))),
            "`grad(vmap)`": lambda: close(
                gradient(lambda x: torch.vmap(square)(x).sum(), x), gradient(lambda x: (x**2).sum(), x)
            ),
            '`torch.compile(fullgraph=True, backend="eager")`': lambda: self.compile_with("eager", False),
            '`torch.compile(fullgraph=True, backend="aot_eager")`': lambda: self.compile_with("aot_eager", False),
            "`torch.compile(fullgraph=True)`": lambda: self.compile_with("inductor", False),
            "`torch.compile(fullgraph=True, dynamic=True)`": lambda: self.compile_with("inductor", True),
            "`compile(vmap)`": lambda: close(compiled(torch.vmap(square))(x), x**2),
            "`compile(func.grad)`": lambda: close(compiled(torch.func.grad(loss))(x), gradient(loss_of_operations, x)),
            "`compile(vmap(func.grad))`": lambda: close(
                compiled(torch.vmap(torch.func.grad(loss)))(x), gradient(loss_of_operations, x)
            ),
            "`torch.export`, any size": lambda: self.exported(False),
            "`torch.export(strict=True)`, any size": lambda: self.exported(True),
            "`torch.export` of `torch.vmap`, any size": self.exported_batches,
            "AOTInductor, any size": self.aot_inductor,
            "`torch.library.opcheck`": self.opcheck,
            "activation checkpoint": self.checkpoint,
            "meta tensors": self.meta,
            "fake tensors": self.fake_tensors,
            "`torch.func.functionalize`": lambda: close(torch.func.functionalize(square)(x), x**2),
            "`make_fx`": self.make_fx,
            "`torch.inference_mode`": self.inference_mode,
        }

    def exported(self, strict: bool) -> None:
        program = torch.export.export(Model(), (self.x,), dynamic_shapes=({0: torch.export.Dim("n")},), strict=strict)
        for n in (3, 8):
            x = self.values(n, 5)
            close(program.module()(x), torch.sin(x) ** 2 + x * x)

    def exported_batches(self) -> None:
        batch, size = torch.export.Dim("batch"), torch.export.Dim("size")
        for function, own in ((square, lambda x: x * x), (lambda x: mirrored(x, x), lambda x: x * x.flip(0))):
            model = Module()
            model.forward = lambda x, function=function: torch.vmap(function)(x)
            for strict in (False, True):
                program = torch.export.export(
                    model, (self.x,), dynamic_shapes=({0: batch, 1: size},), strict=strict
                ).module()
                for shape in ((8, 5), (3, 7), (4, 2)):
                    x = self.values(*shape)
                    close(program(x), torch.vmap(own)(x))
        for function in (product, one_by_one):
            model = Module()
            model.forward = lambda x, w, function=function: torch.vmap(function, in_dims=(0, None))(x, w)
            arrays = self.x, self.values(5)
            close(torch.export.export(model, arrays).module()(*arrays), arrays[0] * arrays[1])

    def gradcheck(self) -> None:
        x = self.values(5, dtype="float64").requires_grad_()
        assert torch.autograd.gradcheck(definitions.cuda_sine, (x,), check_forward_ad=True)
        assert torch.autograd.gradgradcheck(definitions.cuda_sine, (x,))

    def double_backward(self) -> None:
        def second(function):
            x = self.x.clone().requires_grad_()
            (first,) = torch.autograd.grad(function(x), x, create_graph=True)
            return torch.autograd.grad(first.sum(), x)[0]

        close(second(loss), second(loss_of_operations))

    def compile_with(self, backend: str, dynamic: bool) -> None:
        forward = compiled(lambda x: square(torch.sin(x)), backend=backend, dynamic=dynamic)
        backward = compiled(loss, backend=backend, dynamic=dynamic)
        for shape in ((8, 5), (3, 7), (2, 1)) if dynamic else ((8, 5),):
            x = self.values(*shape)
            close(forward(x), torch.sin(x) ** 2)
            close(gradient(backward, x), gradient(loss_of_operations, x))

    def func(self, transform: Any) -> None:
        close(transform(loss)(self.x), transform(loss_of_operations)(self.x))

    def jvp(self) -> None:
        x = self.x
        got = torch.func.jvp(loss, (x,), (torch.ones_like(x),))
        expected = torch.func.jvp(loss_of_operations, (x,), (torch.ones_like(x),))
        close(got[0], expected[0])
        close(got[1], expected[1])

    def vmap(self) -> None:
        x = self.x
        close(torch.vmap(square)(x), x**2)
        close(torch.vmap(square, in_dims=1, out_dims=1)(x), x**2)
        close(torch.vmap(product, in_dims=(0, None))(x, x[0]), x * x[0])
        close(torch.vmap(torch.vmap(square))(x), x**2)
        for got, expected in zip(torch.vmap(powers)(x), (x**2, x**3), strict=True):
            close(got, expected)

    def sequential(self) -> None:
        x, scale = self.x, self.values(5)
        close(torch.vmap(one_by_one, in_dims=(0, None))(x, scale), x * scale)
        close(torch.vmap(one_by_one, in_dims=(1, None))(x, torch.ones(1, device=self.device)), x.T)
        assert torch.vmap(one_by_one, in_dims=(0, None))(x[:0], scale).shape == (0, 5)

    def grid_axis(self) -> None:
        """Batches of a function that knows where it is in its grid; derivatives of batches, batches of derivatives."""
        x, w, v = self.x, self.values(5), self.values(8, 5)
        for arrays, in_dims in (((x, v), (0, 0)), ((x, w), (0, None)), ((w, v), (None, 0)), ((x.T, w), (1, None))):
            batched, expected = (torch.vmap(f, in_dims=in_dims) for f in (mirrored, reversed_product))
            close(batched(*arrays), expected(*arrays))
            for i in (0, 1):
                got, wanted = (
                    torch.func.grad(lambda *a, f=f: (f(*a) ** 2).sum(), argnums=i)(*arrays) for f in (batched, expected)
                )
                close(got, wanted, 1e-4)
            per_element = [
                torch.vmap(torch.func.grad(lambda *a, f=f: (f(*a) ** 2).sum(), argnums=(0, 1)), in_dims=in_dims)(
                    *arrays
                )
                for f in (mirrored, reversed_product)
            ]
            for got, wanted in zip(*per_element, strict=True):
                close(got, wanted, 1e-4)
            tangents = tuple(torch.ones_like(a) for a in arrays)
            got, wanted = (torch.func.jvp(f, arrays, tangents) for f in (batched, expected))
            close(got[1], wanted[1])
        stack = self.values(3, 8, 5)
        nested = [torch.vmap(torch.vmap(f, in_dims=(0, None)), in_dims=(0, 0)) for f in (mirrored, reversed_product)]
        close(*(f(stack, self.values(3, 5)) for f in nested))
        close(compiled(torch.vmap(mirrored))(x, v), v * x.flip(1))
        close(compiled(torch.vmap(mirrored), dynamic=True)(x, v), v * x.flip(1))

    def aot_inductor(self) -> None:
        if self.device.type != "cpu" and (fault := stored_programs.fault_of_packages(self.device.type)):
            raise LibraryLimit(fault)
        with tempfile.TemporaryDirectory() as folder:
            program = torch.export.export(Model(), (self.x,), dynamic_shapes=({0: torch.export.Dim("n")},))
            path = torch._inductor.aoti_compile_and_package(program, package_path=f"{folder}/model.pt2")
            model = torch._inductor.aoti_load_package(path)
            for n in (3, 8):
                x = self.values(n, 5)
                close(model(x), torch.sin(x) ** 2 + x * x)

    def opcheck(self) -> None:
        from kiln._functions_torch import _static_arguments

        for inputs in ([self.x], [self.x.clone().requires_grad_()]):
            _, text, sizes = _static_arguments(square, inputs)
            torch.library.opcheck(torch.ops.kiln.launch.default, (text, [inputs[0].detach()], sizes))

    def checkpoint(self) -> None:
        from torch.utils.checkpoint import checkpoint

        close(
            gradient(lambda x: checkpoint(loss, x, use_reentrant=False), self.x), gradient(loss_of_operations, self.x)
        )

    def meta(self) -> None:
        y = square(self.x.to("meta"))
        assert y.is_meta and y.shape == self.x.shape and y.dtype == self.x.dtype

    def fake_tensors(self) -> None:
        from torch._subclasses.fake_tensor import FakeTensorMode

        with FakeTensorMode() as mode:
            y = square(mode.from_tensor(self.x))
            assert y.shape == self.x.shape and y.device == self.device

    def make_fx(self) -> None:
        from torch.fx.experimental.proxy_tensor import make_fx

        for mode in ("real", "fake", "symbolic"):
            for before_dispatch in (False, True):
                graph = make_fx(square, tracing_mode=mode, pre_dispatch=before_dispatch)(self.x)
                assert graph.code.count("kiln.launch") == 1
                close(graph(self.x + 1), (self.x + 1) ** 2)

    def inference_mode(self) -> None:
        with torch.inference_mode():
            close(square(self.x), self.x**2)

    # ---- By dtype and shape.

    def gradients(self, dtype: str, shape: tuple[int, ...]) -> None:
        x = self.values(*shape).to(getattr(torch, dtype))

        def gradient_of(function):
            y = x.clone().requires_grad_()
            (gradient,) = torch.autograd.grad(function(y).sum(), y)
            return gradient

        close(gradient_of(square), gradient_of(lambda y: y * y), tolerance=1e-2 if dtype != "float32" else 1e-6)

    def complex_numbers(self, shape: tuple[int, ...]) -> None:
        x = torch.complex(self.values(*shape), self.values(*shape) * 2)
        weights = torch.complex(self.values(*shape) - 1, self.values(*shape))
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

    def empty_arrays(self, shape: tuple[int, ...]) -> None:
        x = self.values(*shape)
        zeros = torch.zeros(shape, device=self.device)
        for dynamic in (False, True):
            close(compiled(lambda x: square(torch.sin(x)), dynamic=dynamic)(x), torch.sin(x) ** 2)
            close(gradient(compiled(loss, dynamic=dynamic), x), zeros)
        close(torch.vmap(square)(x), x**2)
        close(torch.vmap(mirrored)(x, x), x * x.flip(1))
        close(torch.func.grad(loss)(x), zeros)

    def several_outputs(self) -> None:
        def gradient_of(function):
            x = self.x.clone().requires_grad_()
            return torch.autograd.grad(function(x), x)[0]

        # Of one output alone the other's cotangent is zero.
        for weights in ((1, 0), (0, 1), (2, 3)):
            close(
                gradient_of(lambda x, w=weights: sum(k * y.sum() for k, y in zip(w, powers(x), strict=True))),
                gradient_of(lambda x, w=weights: (w[0] * x**2 + w[1] * x**3).sum()),
                1e-4,
            )

    def grid_sample(self) -> None:
        """From the definition that all libraries share, against PyTorch's own."""
        image, places = self.values(2, 9, 7, 3), self.values(2, 4, 5, 2) * 0.6

        def own(image, places):
            result = torch.nn.functional.grid_sample(
                image.permute(0, 3, 1, 2), places, mode="bilinear", padding_mode="zeros", align_corners=False
            )
            return result.permute(0, 2, 3, 1)

        weights = self.values(2, 4, 5, 3)

        def gradients(function):
            inputs = [x.clone().requires_grad_() for x in (image, places)]
            result = function(*inputs)
            return [result.detach(), *torch.autograd.grad((result * weights).sum(), inputs)]

        for got, expected in zip(gradients(grid_sample), gradients(own), strict=True):
            close(got, expected, 1e-4)
        for got, expected in zip(gradients(compiled(grid_sample)), gradients(own), strict=True):
            close(got, expected, 1e-4)
