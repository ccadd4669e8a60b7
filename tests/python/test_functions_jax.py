"""Functions of arrays in JAX: each transformation against JAX's own operations."""

import pickle
import subprocess
import sys
import textwrap
from pathlib import Path

import function_definitions as definitions
import numpy as np
import pytest
import transformation_table
from function_definitions import plain, product, square

jax = pytest.importorskip("jax", reason="JAX is not installed")
from jax_transformations import TARGET, Programs, close, loss, on_devices  # noqa: E402

jnp = jax.numpy

PROGRAMS = Programs("cpu")
TRANSFORMATIONS = PROGRAMS.transformations
X = PROGRAMS.x
values = PROGRAMS.values
LIMITS: dict[str, str] = {}


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_transformations(name):
    TRANSFORMATIONS[name]()


def test_the_page_says_so():
    transformation_table.check("JAX", TRANSFORMATIONS, LIMITS)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("shape", [(8, 5), (1,), (0, 3)])
def test_gradients_by_dtype_and_shape(dtype, shape):
    PROGRAMS.here(lambda: PROGRAMS.gradients(dtype, shape))()


@pytest.mark.parametrize("shape", [(4, 3), (1, 1), (0, 3), (2, 0)])
def test_complex_numbers(shape):
    PROGRAMS.here(lambda: PROGRAMS.complex_numbers(shape))()


@pytest.mark.parametrize("shape", [(0, 5), (4, 0)])
def test_empty_arrays_in_programs(shape):
    PROGRAMS.here(lambda: PROGRAMS.empty_arrays(shape))()


def test_several_outputs():
    PROGRAMS.here(lambda: PROGRAMS.several_outputs())()


def test_integer_inputs_have_no_gradient():
    function = definitions.elementwise("scale", ["x", "n"], "y[i] = x[i] * n[i];")
    function.vjp(lambda primals, cotangent, _: (product(cotangent, primals[1].astype(jnp.float32)), None))
    n = jnp.arange(8, dtype=jnp.int32)
    x = values(8)
    close(jax.grad(lambda x: function(x, n).sum())(x), n.astype(jnp.float32))


def test_grid_sample():
    PROGRAMS.here(lambda: PROGRAMS.grid_sample())()


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
    on_devices(
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
        """,
        4,
    )


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
