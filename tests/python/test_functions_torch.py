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
import pytest
import transformation_table
from function_definitions import plain, product, square

from bench import stored_programs

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch_transformations import Model, Module, Programs, close, compiled, gradient, loss  # noqa: E402

PROGRAMS = Programs("cpu")
TRANSFORMATIONS = PROGRAMS.transformations
X = PROGRAMS.x
values = PROGRAMS.values


class Square(Module):
    def forward(self, x):
        return square(x)


VERSION = tuple(int(part) for part in torch.__version__.split(".")[:2])


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_transformations(name):
    TRANSFORMATIONS[name]()


def test_the_page_says_so():
    transformation_table.check("PyTorch", TRANSFORMATIONS, {})


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("shape", [(8, 5), (1,), (0, 3)])
def test_gradients_by_dtype_and_shape(dtype, shape):
    PROGRAMS.gradients(dtype, shape)


@pytest.mark.parametrize("shape", [(4, 3), (1, 1), (0, 3), (2, 0)])
def test_complex_numbers(shape):
    PROGRAMS.complex_numbers(shape)


@pytest.mark.parametrize("shape", [(0, 5), (4, 0)])
def test_empty_arrays_in_programs(shape):
    PROGRAMS.empty_arrays(shape)


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
    PROGRAMS.several_outputs()


def test_grid_sample():
    PROGRAMS.grid_sample()


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


@pytest.mark.parametrize(
    ("device", "fault"),
    [
        ("cpu", None),
        (
            "nothing",
            rf"the library itself cannot: in PyTorch {re.escape(torch.__version__)}, `torch\.ones` of a program of "
            r"PyTorch's operations for nothing fails: RuntimeError: Expected one of cpu, .*",
        ),
    ],
)
def test_faults_of_compiled_packages_without_kiln(device, fault):
    """Where PyTorch's own packages cannot be used the tables say so, and benchmarks leave them out."""
    found = stored_programs.fault_of_packages(device)
    assert re.fullmatch(fault or "None", str(found))


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


def test_a_program_that_compiles_nothing_does_not_import_dynamo():
    """Which takes a second, and keeps a process group alive that `destroy_process_group` should end: Gloo's threads can abort
    the process then."""
    text = f"""
        import sys
        import torch
        import torch.distributed as distributed
        sys.path.insert(0, {str(Path(definitions.__file__).parent)!r})
        from pathlib import Path
        from function_definitions import square

        distributed.init_process_group("gloo", rank=0, world_size=1, store=distributed.HashStore())
        x = torch.arange(4.0, requires_grad=True)
        square(x).sum().backward()
        distributed.all_reduce(x.grad)
        print(square(x.detach()).tolist(), x.grad.tolist(), torch.vmap(square)(torch.ones(2, 2)).tolist())
        distributed.destroy_process_group()
        threads = [(task / "comm").read_text() for task in Path("/proc/self/task").iterdir()]
        print("torch._dynamo" in sys.modules, sum("gloo_runloop" in name for name in threads))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(text)], capture_output=True, text=True, timeout=300)
    assert done.stdout == "[0.0, 1.0, 4.0, 9.0] [0.0, 2.0, 4.0, 6.0] [[1.0, 1.0], [1.0, 1.0]]\nFalse 0\n", done.stderr


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
