"""Functions of arrays on several devices: PyTorch's DTensors in two processes, JAX's arrays on four devices."""

import os
import re
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import kiln
import numpy as np
import pytest
from function_definitions import product, square

# The sum of a matrix's columns, weighted: its rows can be anywhere.
DEFINITIONS = """
    import sys
    sys.path.insert(0, {tests!r})
    import kiln
    from function_definitions import product, square

    column_sums = kiln.metal_kernel(
        "column_sums",
        ["a", "w"],
        ["y"],
        \"\"\"
            uint i = thread_position_in_grid.x;
            float sum = 0;
            for (int k = 0; k < a_shape[0]; ++k) sum += a[k * a_shape[1] + i] * w[i];
            y[i] = sum;
        \"\"\",
    ).function(
        output_shapes=lambda a, w: [w.shape],
        output_dtypes=lambda a, w: [w.dtype],
        grid=lambda a, w: w.size,
        threadgroup=64,
    )

    @column_sums.vjp
    def column_sums_vjp(primals, cotangent, _):
        a, w = primals
        xp = kiln.array_namespace(a)
        return xp.broadcast_to(cotangent * w, a.shape), a.sum(0) * cotangent

    column_sums.sharding(inputs=[0, None], outputs=["sum"])
    product.sharding(inputs=[0, 0], outputs=[0])

    # Its results say where its threads are.
    positions = kiln.metal_kernel(
        "positions",
        ["x"],
        ["y"],
        "uint i = thread_position_in_grid.x; y[i] = x[i] * threads_per_grid.x + threadgroup_position_in_grid.x;",
    ).function(
        output_shapes=lambda x: [x.shape],
        output_dtypes=lambda x: [x.dtype],
        grid=lambda x: x.size,
        threadgroup=16,
        init_value=0,
    )
"""


def program(text):
    tests = str(Path(__file__).parent)
    return textwrap.dedent(DEFINITIONS).format(tests=tests) + textwrap.dedent(text)


def run(command, **environment):
    done = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, timeout=300, env={**os.environ, **environment}
    )
    assert done.returncode == 0, done.stderr[-5000:]
    return done.stdout


# ---- PyTorch.


def in_two_processes(text, tmp_path):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    file = tmp_path / "program.py"
    begin = """
        import torch
        import torch.distributed as distributed
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor

        distributed.init_process_group("gloo")
        rank, count = distributed.get_rank(), distributed.get_world_size()
        mesh = init_device_mesh("cpu", (count,))
        torch.manual_seed(0)
        a, w = torch.randn(6, 5), torch.randn(5)

        def close(got, expected):
            assert torch.allclose(got, expected, rtol=1e-4, atol=1e-4), (got, expected)
    """
    end = 'print("done", flush=True)\ndistributed.destroy_process_group()\n'
    file.write_text(program(textwrap.dedent(begin) + textwrap.dedent(text) + end))
    output = run(["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(file)])
    assert output.count("done") == 2


def test_tensors_of_pytorch_follow_the_sharding(tmp_path):
    in_two_processes(
        """
        cut = distribute_tensor(a, mesh, [Shard(0)]).requires_grad_()
        whole = distribute_tensor(w, mesh, [Replicate()]).requires_grad_()
        y = column_sums(cut, whole)
        assert y.placements == (Partial(),)
        close(y.full_tensor().detach(), a.sum(0) * w)
        (y.full_tensor() ** 2).sum().backward()
        expected = [x.clone().requires_grad_() for x in (a, w)]
        ((expected[0].sum(0) * expected[1]) ** 2).sum().backward()
        close(cut.grad.full_tensor(), expected[0].grad)
        close(whole.grad.full_tensor(), expected[1].grad)
        assert cut.grad.placements == (Shard(0),)

        # Cut along the same axis, or whole: the second is cut too.
        for other in (Shard(0), Replicate()):
            z = product(cut, distribute_tensor(2 * a, mesh, [other]))
            assert z.placements == (Shard(0),)
            close(z.full_tensor().detach(), 2 * a * a)
        # All whole: so is the result.
        whole = distribute_tensor(a, mesh, [Replicate()])
        assert product(whole, whole).placements == (Replicate(),)
        # Plain calls are as ever.
        close(product(a, a), a * a)
        """,
        tmp_path,
    )


def test_without_a_sharding_tensors_of_pytorch_are_an_error(tmp_path):
    in_two_processes(
        """
        try:
            square(distribute_tensor(a, mesh, [Shard(0)]))
        except TypeError as error:
            assert str(error) == (
                "[metal_kernel] Input `x` of `square` is a DTensor (PyTorch), and the function has no sharding: say with "
                "`f.sharding(inputs, outputs)` how it is divided."
            ), error
        else:
            raise AssertionError("no error")
        """,
        tmp_path,
    )


def test_processes_of_pytorch_run_slices(tmp_path):
    in_two_processes(
        """
        for size in (256, 250, 7):
            x = torch.arange(float(size))
            part = positions.shard(rank, count)(x)
            distributed.all_reduce(part)
            assert torch.equal(part, positions(x))
            compiled = torch.compile(positions.shard(rank, count), fullgraph=True, backend="aot_eager", dynamic=True)(x)
            distributed.all_reduce(compiled)
            assert torch.equal(compiled, positions(x))
        """,
        tmp_path,
    )


# ---- JAX.


def on_four_devices(text, tmp_path):
    pytest.importorskip("jax", reason="JAX is not installed")
    begin = """
        import jax
        import jax.numpy as jnp
        import kiln.jax
        from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

        if hasattr(jax, "shard_map"):
            shard_map = jax.shard_map
        else:
            from jax.experimental.shard_map import shard_map as experimental
            shard_map = lambda f, **options: experimental(f, check_rep=False, **options)
        mesh = Mesh(jax.devices(), ("d",))
        a, w = jax.random.normal(jax.random.key(0), (8, 5)), jax.random.normal(jax.random.key(1), (5,))

        def on(x, *spec):
            return jax.device_put(x, NamedSharding(mesh, P(*spec)))

        def close(got, expected):
            assert jnp.allclose(got, expected, rtol=1e-4, atol=1e-4), (got, expected)

        def message_of(function, *arguments):
            try:
                function(*arguments)
            except (TypeError, ValueError) as error:
                return str(error)
    """
    file = tmp_path / "program.py"
    file.write_text(program(textwrap.dedent(begin) + textwrap.dedent(text) + 'print("done")\n'))
    assert run([str(file)], XLA_FLAGS="--xla_force_host_platform_device_count=4", JAX_PLATFORMS="cpu") == "done\n"


def test_arrays_of_jax_follow_the_sharding(tmp_path):
    on_four_devices(
        """
        close(column_sums(on(a, "d"), on(w)), a.sum(0) * w)
        close(column_sums(on(a), on(w)), a.sum(0) * w)
        result = product(on(a, "d"), on(2 * a))
        assert result.sharding.spec == P("d")
        close(result, 2 * a * a)

        on_all = kiln.jax.on_mesh(column_sums, mesh, "d")
        gradient = jax.jit(jax.grad(lambda a, w: (on_all(a, w) ** 2).sum(), argnums=(0, 1)))
        expected = jax.grad(lambda a, w: ((a.sum(0) * w) ** 2).sum(), argnums=(0, 1))(a, w)
        for got, wanted in zip(gradient(on(a, "d"), on(w)), expected):
            close(got, wanted)
        text = gradient.lower(on(a, "d"), on(w)).compile().as_text()
        assert "all-reduce" in text and "all-gather" not in text
        """,
        tmp_path,
    )


def test_what_jax_would_gather_is_an_error(tmp_path):
    on_four_devices(
        """
        assert message_of(square, on(a, "d")) == (
            "[metal_kernel] Input `x` of `square` lies on several devices (JAX), and the function has no sharding: say with "
            "`f.sharding(inputs, outputs)` how it is divided, or call it within `jax.shard_map`."
        )
        message = message_of(product, on(a.T, None, "d"), on(a.T))
        assert message.startswith("[metal_kernel] The inputs of `product` are cut as ["), message
        assert message.endswith("], and its sharding cuts them along the axes [0, 0].".replace("], and", "] (JAX), and"))
        message = message_of(jax.jit(product), on(a, "d"), on(a, "d"))
        assert "call it within `jax.shard_map`, or `kiln.jax.on_mesh(f, mesh, axis)` in its place" in message
        assert message_of(kiln.jax.on_mesh, square, mesh, "d") == (
            "[metal_kernel] `square` has no sharding: say with `f.sharding(inputs, outputs)` how it is divided."
        )
        """,
        tmp_path,
    )


def test_devices_of_jax_run_slices(tmp_path):
    on_four_devices(
        """
        def sliced(x):
            return jax.lax.psum(positions.shard(jax.lax.axis_index("d"), 4)(x), "d")

        together = jax.jit(shard_map(sliced, mesh=mesh, in_specs=P(), out_specs=P()))
        x = jax.random.normal(jax.random.key(3), (256,))
        assert (together(x) == positions(x)).all()
        assert "all-gather" not in together.lower(x).compile().as_text()
        assert message_of(together, x[:250]) == (
            "[metal_kernel] `positions` has 250 threads along x in threadgroups of 16, which 4 devices of one program "
            "cannot share evenly."
        )
        """,
        tmp_path,
    )


# ---- What needs no library.


@pytest.mark.parametrize(
    ("inputs", "outputs", "message"),
    [
        ([0], [0], "Expected `inputs` to have a value for each of a, b."),
        ([0, 0], [], "Expected `outputs` to have a value for each of y."),
        ([0, "sum"], [0], "Expected `inputs` to be axes or None but got 'sum'."),
        ([0, -1], [0], "Expected `inputs` to be axes or None but got -1."),
        ([0, 0], [None], "Expected `outputs` to be axes or 'sum' but got None."),
        ([None, None], [0], "Expected `inputs` to have an axis along which an input is cut."),
    ],
)
def test_wrong_shardings(inputs, outputs, message):
    with pytest.raises(ValueError) as error:
        product.sharding(inputs, outputs)
    assert str(error.value) == f"[metal_kernel] {message}"


def test_a_sharding_changes_nothing_on_one_device():
    function = kiln.metal_kernel(
        "twice", ["x"], ["y"], "uint i = thread_position_in_grid.x; y[i] = 2 * x[i];"
    ).function(output_shapes=lambda x: [x.shape], output_dtypes=["float32"], grid=lambda x: x.size, threadgroup=64)
    assert function.sharding([0], [0]) is function
    x = np.arange(5, dtype=np.float32)
    assert np.array_equal(function(x), 2 * x)
    assert square(x).shape == (5,)


# ---- The examples.

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "distributed"


def fitted(output, who):
    """That the fit converged, as with other numbers of devices."""
    (line,) = [line for line in output.splitlines() if "loss" in line]
    match = re.fullmatch(rf"{who}: loss (\S+) -> (\S+)", line)
    assert match, line
    first, last = match.groups()
    assert float(first) == pytest.approx(0.037956, abs=1e-5) and float(last) == pytest.approx(0.000146, rel=0.1)


@pytest.mark.parametrize("count", [1, 2])
def test_the_fit_in_pytorch(count):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(count)]
    fitted(run([*launcher, str(EXAMPLES / "fit_torch.py")]), f"{count} processes")


def test_the_fit_in_jax():
    pytest.importorskip("jax", reason="JAX is not installed")
    fitted(run([str(EXAMPLES / "fit_jax.py")], JAX_PLATFORMS="cpu"), "4 devices")


def test_the_fit_in_several_processes_of_jax():
    pytest.importorskip("jax", reason="JAX is not installed")
    with socket.socket() as free:
        free.bind(("localhost", 0))
        address = f"localhost:{free.getsockname()[1]}"
    environment = {
        **os.environ,
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": "--xla_force_host_platform_device_count=2",
    }
    running = [
        subprocess.Popen(
            [sys.executable, str(EXAMPLES / "fit_jax.py"), address, "2", str(process)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for process in range(2)
    ]
    outputs = [process.communicate(timeout=300) for process in running]
    assert [process.returncode for process in running] == [0, 0], outputs
    fitted(outputs[0][0], "4 devices")


def test_the_fit_in_mlx():
    pytest.importorskip("mlx.core")
    launch = "from mlx._distributed_utils.launch import main; main()"
    arguments = ["-n", "2", "--backend", "ring", sys.executable, str(EXAMPLES / "fit_mlx.py")]
    fitted(run(["-c", launch, *arguments]), "2 processes")


def test_blocks_in_the_workers_of_dask():
    pytest.importorskip("distributed", reason="Dask is not installed")
    assert run([str(EXAMPLES / "map_blocks.py")]) == "8 blocks on 2 workers: as on one\n"
