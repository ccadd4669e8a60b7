"""What JAX's transformations do with functions of arrays, against JAX's own operations, on a device.

The tests run the programs on the CPU (`test_functions_jax.py`) and on a GPU (`test_gpu_transformations.py`); the table in
docs/transformations.md has their names.
"""

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import function_definitions as definitions
import jax
import numpy as np
import pytest
from function_definitions import grid_sample, mirrored, one_by_one, powers, product, square, tripled
from jax import numpy as jnp

TARGET = "kiln_launch"


def close(got, expected, tolerance=1e-5):
    assert got.shape == expected.shape and got.dtype == expected.dtype and got.devices() == expected.devices()
    assert jnp.allclose(got, expected, rtol=tolerance, atol=tolerance), (got, expected)


def loss(x):
    """Of a function between operations of JAX's."""
    return product(square(jnp.sin(x)), x).sum()


def loss_of_operations(x):
    return (jnp.sin(x) ** 2 * x).sum()


def reversed_product(x, w):
    return w * x[::-1]


def scan(function):
    return lambda x: jax.lax.scan(lambda carry, _: (function(carry), None), x, None, length=3)[0]


def on_devices(program: str, count: int, device: str = "cpu") -> None:
    """Runs a program of JAX's in a process where it has several devices: a GPU's are there, the CPU's are made."""
    prelude = """
        import os, sys
        count, device = {count}, {device!r}
        if device == "cpu":
            os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={{count}}"
            os.environ["JAX_PLATFORMS"] = "cpu"
        sys.path.insert(0, {folder!r})
        import jax, jax.numpy as jnp, numpy as np
        from jax.sharding import NamedSharding, PartitionSpec as P
        from function_definitions import plain, product, square
        if not hasattr(jax, "shard_map"):  # before 0.6.1
            from jax.experimental.shard_map import shard_map
            jax.shard_map = lambda f, **options: shard_map(f, check_rep=False, **options)
        mesh = jax.make_mesh((count,), ("d",), devices=jax.devices(device)[:count])
        x = jnp.arange(32, dtype=jnp.float32)
        sharded = jax.device_put(x, NamedSharding(mesh, P("d")))
    """
    folder = str(Path(definitions.__file__).parent)
    text = textwrap.dedent(prelude).format(folder=folder, count=count, device=device) + textwrap.dedent(program)
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, env=dict(os.environ), timeout=300
    )
    assert done.returncode == 0, done.stderr


SHARD_MAP = """
    f = jax.shard_map(square, mesh=mesh, in_specs=P("d"), out_specs=P("d"))
    assert np.allclose(f(sharded), x ** 2)
    assert np.allclose(jax.jit(f)(sharded), x ** 2)
    program = jax.jit(f).lower(sharded).compile().as_text()
    assert not any(name in program for name in ("all-gather", "all-reduce", "all-to-all"))
    assert np.allclose(jax.jit(jax.grad(lambda x: f(x).sum()))(sharded), 2 * x)
    # A weight that all devices have: its gradient is the sum over them.
    g = jax.shard_map(product, mesh=mesh, in_specs=(P("d"), P()), out_specs=P("d"))
    w = jnp.arange(32 // count, dtype=jnp.float32)
    gradient = jax.jit(jax.grad(lambda w: g(sharded, w).sum()))(w)
    assert np.allclose(gradient, x.reshape(count, -1).sum(0))
    tangent = jax.jvp(lambda w: g(sharded, w), (w,), (jnp.ones_like(w),))[1]
    assert np.allclose(tangent, x)
"""


class Programs:
    """Programs whose arrays are on a device of JAX's, ``cpu`` or ``cuda``."""

    def __init__(self, device: str) -> None:
        self.name = device
        self.device = jax.devices(device)[0]
        self.x = self.values(8, 5)

    def values(self, *shape: int, dtype: Any = "float32") -> Any:
        rng = np.random.default_rng(len(shape) + sum(shape))
        with jax.default_device(self.device):
            return jax.device_put(jnp.asarray(rng.normal(size=shape), dtype), self.device)

    @property
    def transformations(self) -> dict[str, Callable[[], None]]:
        """What a transformation does, by the names of the table in docs/transformations.md."""
        x = self.x
        programs: dict[str, Callable[[], None]] = {
            "value": lambda: close(square(x), x**2),
            "gradient": self.both(jax.grad),
            "gradient by finite differences": self.check_grads,
            "second derivative": self.both(lambda f: jax.grad(lambda x: jax.grad(f)(x).sum())),
            "`jax.jit`": lambda: close(jax.jit(lambda x: square(jnp.sin(x)))(x), jnp.sin(x) ** 2),
            "`jit(grad)`": self.both(lambda f: jax.jit(jax.grad(f))),
            "`jax.vjp`": lambda: close(jax.vjp(loss, x)[1](jnp.float32(1))[0], jax.grad(loss_of_operations)(x)),
            "`jax.jvp`": self.both(lambda f: lambda x: jax.jvp(f, (x,), (jnp.cos(x),))),
            "`jax.linearize`": self.both(lambda f: lambda x: jax.linearize(f, x)[1](jnp.cos(x))),
            "`jax.jacrev`": lambda: close(jax.jacrev(square)(x[0]), jnp.diag(2 * x[0])),
            "`jax.jacfwd`": lambda: close(jax.jacfwd(square)(x[0]), jnp.diag(2 * x[0])),
            "`jax.hessian`": self.both(jax.hessian, x[0]),
            "`jacrev(jacrev)`": self.both(lambda f: jax.jacrev(jax.jacrev(f)), x[0]),
            "`jacfwd(jacfwd)`": self.both(lambda f: jax.jacfwd(jax.jacfwd(f)), x[0]),
            "`jax.vmap`": self.vmap,
            "`jax.vmap`, one launch after the other": self.sequential,
            "`jax.vmap`, an axis of the grid": self.grid_axis,
            "`vmap(grad)`": self.both(lambda f: jax.vmap(jax.grad(f))),
            "`grad(vmap)`": self.both(lambda f: jax.grad(lambda x: jax.vmap(f)(x).sum())),
            "`vmap(jvp)`": self.both(lambda f: jax.vmap(lambda x: jax.jvp(f, (x,), (jnp.cos(x),)))),
            "`jit(vmap(grad))`": self.both(lambda f: jax.jit(jax.vmap(jax.grad(f)))),
            "`jax.lax.scan`, `while_loop`, `cond`": self.loops,
            "`jax.checkpoint`": self.checkpoint,
            "donation": self.donation,
            "`jax.shard_map`, with gradients": self.shard_map,
            "`jax.export`": self.export,
            "`jax.export`, any size, with gradients": self.export_any_size,
        }
        return {name: self.here(program) for name, program in programs.items()}

    def here(self, program: Callable[[], None]) -> Callable[[], None]:
        """With the device as JAX's default one, for arrays that programs make themselves."""

        def run() -> None:
            with jax.default_device(self.device):
                program()

        return run

    def both(self, transform: Any, x: Any = None, tolerance: float = 1e-4) -> Callable[[], None]:
        def run() -> None:
            given = self.x if x is None else x
            got, expected = (jax.tree.leaves(transform(f)(given)) for f in (loss, loss_of_operations))
            for one, other in zip(got, expected, strict=True):
                close(one, other, tolerance)

        return run

    def vmap(self) -> None:
        close(jax.vmap(square)(self.x), self.x**2)
        close(jax.vmap(square, in_axes=1, out_axes=1)(self.x), self.x**2)
        close(jax.vmap(product, in_axes=(0, None))(self.x, self.x[0]), self.x * self.x[0])
        close(jax.vmap(jax.vmap(square))(self.x), self.x**2)
        for got, expected in zip(jax.vmap(powers)(self.x), (self.x**2, self.x**3), strict=True):
            close(got, expected)

    def sequential(self) -> None:
        scale = self.values(5)
        close(jax.vmap(one_by_one, in_axes=(0, None))(self.x, scale), self.x * scale)
        close(jax.jit(jax.vmap(one_by_one, in_axes=(1, None)))(self.x, jnp.ones(1)), self.x.T)
        assert jax.vmap(one_by_one, in_axes=(0, None))(self.x[:0], scale).shape == (0, 5)

    def grid_axis(self) -> None:
        """Batches of a function that knows where it is in its grid; derivatives of batches, batches of derivatives."""
        w, v = self.values(5), self.values(8, 5)
        for arrays, in_axes in (
            ((self.x, v), (0, 0)),
            ((self.x, w), (0, None)),
            ((w, v), (None, 0)),
            ((self.x.T, w), (1, None)),
        ):
            batched, expected = (jax.vmap(f, in_axes=in_axes) for f in (mirrored, reversed_product))
            close(jax.jit(batched)(*arrays), expected(*arrays))
            for got, wanted in zip(
                *[jax.grad(lambda *a, f=f: (f(*a) ** 2).sum(), argnums=(0, 1))(*arrays) for f in (batched, expected)],
                strict=True,
            ):
                close(got, wanted, 1e-4)
            for got, wanted in zip(
                *[
                    jax.vmap(jax.grad(lambda *a, f=f: (f(*a) ** 2).sum(), argnums=(0, 1)), in_axes=in_axes)(*arrays)
                    for f in (mirrored, reversed_product)
                ],
                strict=True,
            ):
                close(got, wanted, 1e-4)
            got, wanted = (jax.jvp(f, arrays, arrays) for f in (batched, expected))
            close(got[1], wanted[1])
        nested = [jax.vmap(jax.vmap(f, in_axes=(0, None)), in_axes=(0, 0)) for f in (mirrored, reversed_product)]
        close(*(f(self.values(3, 8, 5), self.values(3, 5)) for f in nested))

    def loops(self) -> None:
        close(scan(square)(self.x), self.x**8)
        close(
            jax.grad(lambda x: scan(square)(x).sum())(self.x),
            jax.grad(lambda x: scan(lambda y: y * y)(x).sum())(self.x),
            1e-4,
        )
        close(jax.lax.while_loop(lambda s: s[0] < 2, lambda s: (s[0] + 1, square(s[1])), (0, self.x))[1], self.x**4)
        close(jax.lax.cond(True, square, lambda x: x, self.x), self.x**2)

    def checkpoint(self) -> None:
        close(jax.grad(lambda x: jax.checkpoint(loss)(x))(self.x), jax.grad(loss_of_operations)(self.x))

    def donation(self) -> None:
        donated = self.x + 0
        close(jax.jit(square, donate_argnums=0)(donated), self.x**2)

    def check_grads(self) -> None:
        from jax.test_util import check_grads

        jax.config.update("jax_enable_x64", True)
        try:
            check_grads(definitions.cuda_sine, (self.values(5, dtype="float64"),), order=2, modes=["rev"])
            check_grads(definitions.cuda_sine, (self.values(5, dtype="float64"),), order=1, modes=["fwd"])
        finally:
            jax.config.update("jax_enable_x64", False)

    def exported(self, function: Any, spec: Any, x: Any, expected: Any) -> None:
        pytest.importorskip("flatbuffers", reason="jax.export needs flatbuffers")
        checks = [jax.export.DisabledSafetyCheck.custom_call(TARGET)]
        program = jax.export.export(jax.jit(function), platforms=[self.name], disabled_checks=checks)(spec)
        close(jax.export.deserialize(program.serialize()).call(x), expected)

    def export_any_size(self) -> None:
        import jax.export

        spec = jax.ShapeDtypeStruct(jax.export.symbolic_shape("n, m"), jnp.float32)
        for x in (self.x, self.values(3, 2)):
            self.exported(square, spec, x, x**2)
            self.exported(jax.grad(loss), spec, x, jax.grad(loss_of_operations)(x))

    def export(self) -> None:
        import jax.export

        self.exported(square, jax.ShapeDtypeStruct((8, 5), jnp.float32), self.x, self.x**2)

    def shard_map(self) -> None:
        count = 4 if self.name == "cpu" else min(4, len(jax.devices(self.name)))
        if count == 3:
            count = 2
        if count < 2:
            pytest.skip("there is one device")
        on_devices(SHARD_MAP, count, self.name)

    # ---- By dtype and shape.

    def gradients(self, dtype: str, shape: tuple[int, ...]) -> None:
        x = self.values(*shape, dtype=dtype)
        got, expected = (jax.grad(lambda y, f=f: f(y).astype(jnp.float32).sum())(x) for f in (square, lambda y: y * y))
        close(got, expected, 1e-2 if dtype != "float32" else 1e-6)

    def complex_numbers(self, shape: tuple[int, ...]) -> None:
        x = jax.lax.complex(self.values(*shape), self.values(*shape) * 2)
        weights = jax.lax.complex(self.values(*shape) - 1, self.values(*shape))
        got, expected = [
            (
                f(x),
                jax.jit(f)(x),
                jax.vjp(f, x)[1](weights)[0],
                jax.jvp(f, (x,), (weights,))[1],
                jax.jit(jax.vmap(f))(x),
            )
            for f in (tripled, lambda x: 3 * x)
        ]
        for one, other in zip(got, expected, strict=True):
            close(one, other)

    def empty_arrays(self, shape: tuple[int, ...]) -> None:
        x = self.values(*shape)
        close(jax.jit(lambda x: square(jnp.sin(x)))(x), jnp.sin(x) ** 2)
        close(jax.jit(jax.grad(lambda x: product(square(x), x).sum()))(x), jnp.zeros(shape))
        close(jax.vmap(square)(x), x**2)
        close(jax.jit(jax.vmap(mirrored))(x, x), x * x[:, ::-1])

    def several_outputs(self) -> None:
        for weights in ((1, 0), (0, 1), (2, 3)):
            close(
                jax.grad(lambda x, w=weights: sum(k * y.sum() for k, y in zip(w, powers(x), strict=True)))(self.x),
                jax.grad(lambda x, w=weights: (w[0] * x**2 + w[1] * x**3).sum())(self.x),
                1e-4,
            )
        close(jax.grad(lambda x: powers(x)[1].sum())(self.x), 3 * self.x**2, 1e-4)

    def grid_sample(self) -> None:
        """From the definition that all libraries share, against JAX's operations."""
        image, places = self.values(2, 9, 7, 3), self.values(2, 4, 5, 2) * 0.6

        def own(image, places):
            _, height, width, _ = image.shape
            x, y = (((places[..., k] + 1) * size - 1) / 2 for k, size in ((0, width), (1, height)))
            left, top = jnp.floor(x), jnp.floor(y)
            result = 0
            for dx in (0, 1):
                for dy in (0, 1):
                    column, row = left + dx, top + dy
                    share = (1 - abs(x - column)) * (1 - abs(y - row))
                    inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
                    batch = jnp.arange(image.shape[0])[:, None, None]
                    at = image[batch, row.clip(0, height - 1).astype(int), column.clip(0, width - 1).astype(int)]
                    result += (share * inside)[..., None] * at
            return result

        weights = self.values(2, 4, 5, 3)
        for transform in (lambda f: f, jax.jit):
            close(transform(grid_sample)(image, places), own(image, places), 1e-4)
            gradients = [
                transform(jax.grad(lambda *inputs, f=f: (f(*inputs) * weights).sum(), argnums=(0, 1)))(image, places)
                for f in (grid_sample, own)
            ]
            for got, expected in zip(*gradients, strict=True):
                close(got, expected, 1e-4)
