"""Functions of arrays in JAX: each transformation against JAX's own operations."""

import os
import pickle
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import function_definitions as definitions
import numpy as np
import pytest
import transformation_table
from function_definitions import grid_sample, mirrored, one_by_one, plain, powers, product, square, tripled

jax = pytest.importorskip("jax", reason="JAX is not installed")
jnp = jax.numpy

TARGET = "kiln_launch"


def values(*shape, dtype="float32"):
    rng = np.random.default_rng(len(shape) + sum(shape))
    return jnp.asarray(rng.normal(size=shape), dtype)


def close(got, expected, tolerance=1e-5):
    assert got.shape == expected.shape and got.dtype == expected.dtype
    assert jnp.allclose(got, expected, rtol=tolerance, atol=tolerance), (got, expected)


def loss(x):
    """Of a function between operations of JAX's."""
    return product(square(jnp.sin(x)), x).sum()


def loss_of_operations(x):
    return (jnp.sin(x) ** 2 * x).sum()


X = values(8, 5)


def both(transform, x=X, tolerance=1e-4):
    def run():
        got, expected = (jax.tree.leaves(transform(f)(x)) for f in (loss, loss_of_operations))
        for one, other in zip(got, expected, strict=True):
            close(one, other, tolerance)

    return run


def vmap():
    close(jax.vmap(square)(X), X**2)
    close(jax.vmap(square, in_axes=1, out_axes=1)(X), X**2)
    close(jax.vmap(product, in_axes=(0, None))(X, X[0]), X * X[0])
    close(jax.vmap(jax.vmap(square))(X), X**2)
    for got, expected in zip(jax.vmap(powers)(X), (X**2, X**3), strict=True):
        close(got, expected)


def sequential():
    scale = values(5)
    close(jax.vmap(one_by_one, in_axes=(0, None))(X, scale), X * scale)
    close(jax.jit(jax.vmap(one_by_one, in_axes=(1, None)))(X, jnp.ones(1)), X.T)
    assert jax.vmap(one_by_one, in_axes=(0, None))(X[:0], scale).shape == (0, 5)


def reversed_product(x, w):
    return w * x[::-1]


def grid_axis():
    """Batches of a function that knows where it is in its grid; derivatives of batches, batches of derivatives."""
    w, v = values(5), values(8, 5)
    for arrays, in_axes in (((X, v), (0, 0)), ((X, w), (0, None)), ((w, v), (None, 0)), ((X.T, w), (1, None))):
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
    close(*(f(values(3, 8, 5), values(3, 5)) for f in nested))


def scan(function):
    return lambda x: jax.lax.scan(lambda carry, _: (function(carry), None), x, None, length=3)[0]


def loops():
    close(scan(square)(X), X**8)
    close(jax.grad(lambda x: scan(square)(x).sum())(X), jax.grad(lambda x: scan(lambda y: y * y)(x).sum())(X), 1e-4)
    close(jax.lax.while_loop(lambda s: s[0] < 2, lambda s: (s[0] + 1, square(s[1])), (0, X))[1], X**4)
    close(jax.lax.cond(True, square, lambda x: x, X), X**2)


def checkpoint():
    close(jax.grad(lambda x: jax.checkpoint(loss)(x))(X), jax.grad(loss_of_operations)(X))


def donation():
    donated = X + 0
    close(jax.jit(square, donate_argnums=0)(donated), X**2)


def check_grads():
    from jax.test_util import check_grads

    jax.config.update("jax_enable_x64", True)
    try:
        check_grads(definitions.cuda_sine, (values(5, dtype="float64"),), order=2, modes=["rev"])
        check_grads(definitions.cuda_sine, (values(5, dtype="float64"),), order=1, modes=["fwd"])
    finally:
        jax.config.update("jax_enable_x64", False)


def exported(function, spec, x, expected):
    pytest.importorskip("flatbuffers", reason="jax.export needs flatbuffers")
    checks = [jax.export.DisabledSafetyCheck.custom_call(TARGET)]
    program = jax.export.export(jax.jit(function), disabled_checks=checks)(spec)
    close(jax.export.deserialize(program.serialize()).call(x), expected)


def export_any_size():
    import jax.export

    spec = jax.ShapeDtypeStruct(jax.export.symbolic_shape("n, m"), jnp.float32)
    for x in (X, values(3, 2)):
        exported(square, spec, x, x**2)
        exported(jax.grad(loss), spec, x, jax.grad(loss_of_operations)(x))


def export():
    import jax.export

    exported(square, jax.ShapeDtypeStruct((8, 5), jnp.float32), X, X**2)


def on_four_devices(program):
    """A program of JAX's in a process where it has four devices."""

    def run():
        prelude = """
            import os, sys
            os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
            os.environ["JAX_PLATFORMS"] = "cpu"
            sys.path.insert(0, {folder!r})
            import jax, jax.numpy as jnp, numpy as np
            from jax.sharding import NamedSharding, PartitionSpec as P
            from function_definitions import plain, product, square
            if not hasattr(jax, "shard_map"):  # before 0.6.1
                from jax.experimental.shard_map import shard_map
                jax.shard_map = lambda f, **options: shard_map(f, check_rep=False, **options)
            mesh = jax.make_mesh((4,), ("d",))
            x = jnp.arange(32, dtype=jnp.float32)
            sharded = jax.device_put(x, NamedSharding(mesh, P("d")))
        """
        folder = str(Path(definitions.__file__).parent)
        text = textwrap.dedent(prelude).format(folder=folder) + textwrap.dedent(program)
        done = subprocess.run(
            [sys.executable, "-c", text], capture_output=True, text=True, env=dict(os.environ), timeout=300
        )
        assert done.returncode == 0, done.stderr

    return run


shard_map = on_four_devices(
    """
    f = jax.shard_map(square, mesh=mesh, in_specs=P("d"), out_specs=P("d"))
    assert np.allclose(f(sharded), x ** 2)
    assert np.allclose(jax.jit(f)(sharded), x ** 2)
    program = jax.jit(f).lower(sharded).compile().as_text()
    assert not any(name in program for name in ("all-gather", "all-reduce", "all-to-all"))
    assert np.allclose(jax.jit(jax.grad(lambda x: f(x).sum()))(sharded), 2 * x)
    # A weight that all devices have: its gradient is the sum over them.
    g = jax.shard_map(product, mesh=mesh, in_specs=(P("d"), P()), out_specs=P("d"))
    w = jnp.arange(8, dtype=jnp.float32)
    gradient = jax.jit(jax.grad(lambda w: g(sharded, w).sum()))(w)
    assert np.allclose(gradient, x.reshape(4, 8).sum(0))
    tangent = jax.jvp(lambda w: g(sharded, w), (w,), (jnp.ones_like(w),))[1]
    assert np.allclose(tangent, x)
    """
)

# What a transformation does, by the names of the table in docs/transformations.md.
TRANSFORMATIONS: dict[str, Any] = {
    "value": lambda: close(square(X), X**2),
    "gradient": both(jax.grad),
    "gradient by finite differences": check_grads,
    "second derivative": both(lambda f: jax.grad(lambda x: jax.grad(f)(x).sum())),
    "`jax.jit`": lambda: close(jax.jit(lambda x: square(jnp.sin(x)))(X), jnp.sin(X) ** 2),
    "`jit(grad)`": both(lambda f: jax.jit(jax.grad(f))),
    "`jax.vjp`": lambda: close(jax.vjp(loss, X)[1](jnp.float32(1))[0], jax.grad(loss_of_operations)(X)),
    "`jax.jvp`": both(lambda f: lambda x: jax.jvp(f, (x,), (jnp.cos(x),))),
    "`jax.linearize`": both(lambda f: lambda x: jax.linearize(f, x)[1](jnp.cos(x))),
    "`jax.jacrev`": lambda: close(jax.jacrev(square)(X[0]), jnp.diag(2 * X[0])),
    "`jax.jacfwd`": lambda: close(jax.jacfwd(square)(X[0]), jnp.diag(2 * X[0])),
    "`jax.hessian`": both(jax.hessian, X[0]),
    "`jacrev(jacrev)`": both(lambda f: jax.jacrev(jax.jacrev(f)), X[0]),
    "`jacfwd(jacfwd)`": both(lambda f: jax.jacfwd(jax.jacfwd(f)), X[0]),
    "`jax.vmap`": vmap,
    "`jax.vmap`, one launch after the other": sequential,
    "`jax.vmap`, an axis of the grid": grid_axis,
    "`vmap(grad)`": both(lambda f: jax.vmap(jax.grad(f))),
    "`grad(vmap)`": both(lambda f: jax.grad(lambda x: jax.vmap(f)(x).sum())),
    "`vmap(jvp)`": both(lambda f: jax.vmap(lambda x: jax.jvp(f, (x,), (jnp.cos(x),)))),
    "`jit(vmap(grad))`": both(lambda f: jax.jit(jax.vmap(jax.grad(f)))),
    "`jax.lax.scan`, `while_loop`, `cond`": loops,
    "`jax.checkpoint`": checkpoint,
    "donation": donation,
    "`jax.shard_map`, with gradients": shard_map,
    "`jax.export`": export,
    "`jax.export`, any size, with gradients": export_any_size,
}

LIMITS: dict[str, str] = {}


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_transformations(name):
    TRANSFORMATIONS[name]()


def test_the_page_says_so():
    transformation_table.check("JAX", TRANSFORMATIONS, LIMITS)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("shape", [(8, 5), (1,), (0, 3)])
def test_gradients_by_dtype_and_shape(dtype, shape):
    x = values(*shape, dtype=dtype)
    got, expected = (jax.grad(lambda y, f=f: f(y).astype(jnp.float32).sum())(x) for f in (square, lambda y: y * y))
    close(got, expected, 1e-2 if dtype != "float32" else 1e-6)


@pytest.mark.parametrize("shape", [(4, 3), (1, 1), (0, 3), (2, 0)])
def test_complex_numbers(shape):
    x = jax.lax.complex(values(*shape), values(*shape) * 2)
    weights = jax.lax.complex(values(*shape) - 1, values(*shape))
    got, expected = [
        (f(x), jax.jit(f)(x), jax.vjp(f, x)[1](weights)[0], jax.jvp(f, (x,), (weights,))[1], jax.jit(jax.vmap(f))(x))
        for f in (tripled, lambda x: 3 * x)
    ]
    for one, other in zip(got, expected, strict=True):
        close(one, other)


@pytest.mark.parametrize("shape", [(0, 5), (4, 0)])
def test_empty_arrays_in_programs(shape):
    x = values(*shape)
    close(jax.jit(lambda x: square(jnp.sin(x)))(x), jnp.sin(x) ** 2)
    close(jax.jit(jax.grad(lambda x: product(square(x), x).sum()))(x), jnp.zeros(shape))
    close(jax.vmap(square)(x), x**2)
    close(jax.jit(jax.vmap(mirrored))(x, x), x * x[:, ::-1])


def test_several_outputs():
    for weights in ((1, 0), (0, 1), (2, 3)):
        close(
            jax.grad(lambda x, w=weights: sum(k * y.sum() for k, y in zip(w, powers(x), strict=True)))(X),
            jax.grad(lambda x, w=weights: (w[0] * x**2 + w[1] * x**3).sum())(X),
            1e-4,
        )
    close(jax.grad(lambda x: powers(x)[1].sum())(X), 3 * X**2, 1e-4)


def test_integer_inputs_have_no_gradient():
    function = definitions.elementwise("scale", ["x", "n"], "y[i] = x[i] * n[i];")
    function.vjp(lambda primals, cotangent, _: (product(cotangent, primals[1].astype(jnp.float32)), None))
    n = jnp.arange(8, dtype=jnp.int32)
    x = values(8)
    close(jax.grad(lambda x: function(x, n).sum())(x), n.astype(jnp.float32))


def test_grid_sample():
    """From the definition that all libraries share, against JAX's operations."""
    image, places = values(2, 9, 7, 3), values(2, 4, 5, 2) * 0.6

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

    weights = values(2, 4, 5, 3)
    for transform in (lambda f: f, jax.jit):
        close(transform(grid_sample)(image, places), own(image, places), 1e-4)
        gradients = [
            transform(jax.grad(lambda *inputs, f=f: (f(*inputs) * weights).sum(), argnums=(0, 1)))(image, places)
            for f in (grid_sample, own)
        ]
        for got, expected in zip(*gradients, strict=True):
            close(got, expected, 1e-4)


# ---- Errors.

DIFFERENTIATED = (
    "[metal_kernel] Input `x` of `plain` is differentiated (JAX, grad or jvp), and the function has neither a vjp rule nor a "
    "jvp rule: attach one with `f.vjp(rule)` or `f.jvp(rule)`."
)
BATCH = (
    "[metal_kernel] `plain` is batched (JAX, vmap), and the function has no vmap rule: attach one with `f.vmap(rule)` or "
    '`f.vmap("grid")`.'
)


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda: jax.grad(lambda x: plain(x).sum())(X), DIFFERENTIATED),
        (lambda: jax.jit(jax.grad(lambda x: plain(x).sum()))(X), DIFFERENTIATED),
        (lambda: jax.jvp(plain, (X,), (X,)), DIFFERENTIATED),
        (lambda: jax.vmap(plain)(X), BATCH),
    ],
)
def test_missing_rules(use, message):
    with pytest.raises(TypeError) as error:
        use()
    assert str(error.value) == message


def test_one_rule_of_two():
    only_vjp = definitions.elementwise("only_vjp", ["x"], "y[i] = x[i] * x[i];")
    only_vjp.vjp(lambda x, cotangent, _: 2 * product(x, cotangent))
    close(jax.grad(lambda x: only_vjp(x).sum())(X), 2 * X)
    for use in (lambda: jax.jvp(only_vjp, (X,), (X,)), lambda: jax.jit(lambda x: jax.jvp(only_vjp, (x,), (x,)))(X)):
        with pytest.raises(TypeError) as error:
            use()
        assert str(error.value) == (
            "[metal_kernel] `only_vjp` is differentiated in forward mode (JAX, jvp), and the function has no jvp rule: "
            "attach one with `f.jvp(rule)`."
        )
    only_jvp = definitions.elementwise("only_jvp", ["x"], "y[i] = x[i] * x[i];")
    copy = definitions.elementwise("copy", ["x"], "y[i] = x[i];")
    only_jvp.jvp(lambda x, tangent: 2 * x * copy(tangent))
    close(jax.jvp(only_jvp, (X,), (X,))[1], 2 * X * X)
    with pytest.raises(TypeError) as error:
        jax.grad(lambda x: only_jvp(x).sum())(X)
    assert str(error.value) == (
        "[metal_kernel] Input `x` of `copy` requires a gradient (JAX, reverse mode of a jvp rule), and the function has no "
        "vjp rule: attach one with `f.vjp(rule)`."
    )
    # Reverse mode transposes what the rule does with JAX's operations.
    with_operations = definitions.elementwise("with_operations", ["x"], "y[i] = x[i] * x[i];")
    with_operations.jvp(lambda x, tangent: 2 * x * tangent)
    close(jax.grad(lambda x: with_operations(x).sum())(X), 2 * X)


def test_wrong_gradients():
    function = definitions.elementwise("wrong", ["x"], "y[i] = x[i];")
    function.vjp(lambda x, cotangent, _: cotangent[0])
    with pytest.raises(ValueError) as error:
        jax.grad(lambda x: function(x).sum())(X)
    assert str(error.value) == (
        "[metal_kernel] The vjp rule of `wrong` gave a gradient of shape (5,) for input `x` of shape (8, 5)."
    )


def test_sharded_inputs():
    on_four_devices(
        """
        message = (
            "[metal_kernel] `square` is called in a program for 4 devices (JAX), which would gather its inputs on each of "
            "them: call it within `jax.shard_map`, or `kiln.jax.on_mesh(f, mesh, axis)` in its place after `f.sharding(…)`."
        )
        for f in (jax.jit(square), jax.jit(jax.grad(lambda x: square(x).sum()))):
            try:
                f(sharded)
                raise SystemExit("no error")
            except TypeError as error:
                assert str(error).replace("product", "square") == message, error
        """
    )()


def test_errors_of_kernels_reach_the_program():
    broken = definitions.elementwise("broken", ["x"], "y[i] = x[i] + nothing;")
    with pytest.raises(Exception, match=r"source:1:51: error: use of undeclared identifier 'nothing'"):
        jax.jit(broken)(X).block_until_ready()
    close(square(X), X**2)


def test_float64_needs_x64():
    to_double = definitions.cuda_elementwise("double", ["x"], "y[i] = x[i];")
    to_double._arguments["output_dtypes"] = ["float64"]
    with pytest.raises(ValueError, match="JAX has arrays of float64 only after"):
        to_double(X)


def test_constants_may_be_of_numpy():
    for function in (product, jax.jit(product), jax.jit(lambda a, b: product(b, a))):
        close(function(X, np.asarray(X)), X * X)
    close(jax.jit(lambda x: product(np.asarray(X), x))(X), X * X)


def test_deleted_arrays():
    x = X + 0
    x.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        square(x)


# ---- Other processes.


def test_exported_programs_run_in_other_processes(tmp_path):
    """The text is in the program: the process that runs it has not made the kernel."""
    pytest.importorskip("flatbuffers", reason="jax.export needs flatbuffers")
    import jax.export

    spec = jax.ShapeDtypeStruct(jax.export.symbolic_shape("n, m"), jnp.float32)
    checks = [jax.export.DisabledSafetyCheck.custom_call(TARGET)]
    (tmp_path / "program").write_bytes(jax.export.export(jax.jit(loss), disabled_checks=checks)(spec).serialize())
    text = f"""
        import jax, jax.export, jax.numpy as jnp
        import kiln.jax
        x = jnp.arange(6.0).reshape(3, 2)
        program = jax.export.deserialize(open({str(tmp_path / "program")!r}, "rb").read())
        print(bool(abs(program.call(x) - (jnp.sin(x) ** 2 * x).sum()) < 1e-4))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(text)], capture_output=True, text=True, timeout=300)
    assert done.stdout == "True\n", done.stderr


def test_the_persistent_cache_serves_other_processes(tmp_path):
    text = f"""
        import sys
        import jax, jax.numpy as jnp
        sys.path.insert(0, {str(Path(definitions.__file__).parent)!r})
        jax.config.update("jax_compilation_cache_dir", {str(tmp_path)!r})
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)
        from function_definitions import square
        hits = []
        jax.monitoring.register_event_listener(lambda event, **_: hits.append(event.endswith("cache_hits")))
        print(jax.jit(square)(jnp.arange(4.0)).tolist(), any(hits))
    """
    for expected in ("[0.0, 1.0, 4.0, 9.0] False\n", "[0.0, 1.0, 4.0, 9.0] True\n"):
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(text)], capture_output=True, text=True, timeout=300
        )
        assert done.stdout == expected, done.stderr


def test_functions_pickle():
    copy = pickle.loads(pickle.dumps(square))
    close(jax.grad(lambda x: copy(x).sum())(X), 2 * X)
