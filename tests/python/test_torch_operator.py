"""PyTorch's operator `kiln::launch`, which is written in C++: programs without Python, errors, threads, processes."""

import concurrent.futures
import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import function_definitions as definitions
import kiln
import pytest
from function_definitions import square

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from kiln import _core, _cpp, _functions_torch  # noqa: E402 (after PyTorch)

ROOT = Path(__file__).resolve().parent.parent.parent
EXAMPLE = ROOT / "examples/cpp/torch"
PACKAGE = Path(kiln.__file__).parent
IS_NATIVE = _functions_torch._is_native

native = pytest.mark.skipif(not IS_NATIVE, reason="PyTorch before 2.10 takes no such operator in C++")

Module: Any = torch.nn.Module


def launch(function, *inputs):
    """As compiled programs call it."""
    _, text, sizes = _functions_torch._static_arguments(function, list(inputs))
    return torch.ops.kiln.launch.default(text, list(inputs), sizes)


def dispatch(function, *inputs):
    """The same by PyTorch's dispatcher, which calls with names go to."""
    _, text, sizes = _functions_torch._static_arguments(function, list(inputs))
    return torch.ops.kiln.launch.default(text, inputs=list(inputs), sizes=sizes)


both = pytest.mark.parametrize("launch", [launch, dispatch])


def elementwise(name, body, **keywords):
    kernel = kiln.metal_kernel(name, ["x"], ["y"], definitions.INDEX + body)
    arguments: dict[str, Any] = {
        "output_shapes": lambda x: [x.shape],
        "output_dtypes": lambda x: [x.dtype],
        "grid": lambda x: (x.size, 1, 1),
        "threadgroup": (64, 1, 1),
    }
    return kernel.function(**{**arguments, **keywords})


def test_versions_from_2_10_have_it_in_cpp():
    version = tuple(int(part) for part in torch.__version__.split(".")[:2])
    assert (version >= (2, 10)) == IS_NATIVE


# ---- Programs in C++.


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.pt2"
    subprocess.run([sys.executable, EXAMPLE / "export_model.py", path], check=True, timeout=300, capture_output=True)
    return path


def build(source, out, options=()):
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    torch_folder = Path(torch.__file__).parent
    command: list[Any] = [
        *(compiler, "-std=c++20", "-O0", source, "-o", out),
        *(f"-isystem{torch_folder / 'include'}", f"-isystem{torch_folder / 'include/torch/csrc/api/include'}"),
        *(f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}",),
        *(
            f"-L{torch_folder / 'lib'}",
            "-Wl,--no-as-needed",
            "-ltorch",
            "-ltorch_cpu",
            "-lc10",
            f"-Wl,-rpath,{torch_folder / 'lib'}",
        ),
        # What a wheel's libraries need of NVIDIA's is found by themselves.
        "-Wl,--unresolved-symbols=ignore-in-shared-libs",
        *options,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr


def run_program(*command, **environment):
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "KILN_CACHE": "off", **environment},
    )
    return done.returncode, done.stdout, done.stderr


@native
def test_a_program_in_cpp_runs_a_package_without_python(model, tmp_path):
    build(EXAMPLE / "main.cpp", tmp_path / "program", _cpp.options(PACKAGE))
    assert run_program(tmp_path / "program", model) == (0, "3 x 5: right\n8 x 5: right\n", "")


# It knows nothing of Kiln.
SERVER = r"""
#include <ATen/ATen.h>
#include <dlfcn.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

int main(int, char** argv) {
  if (!dlopen(argv[1], RTLD_NOW)) return std::puts(dlerror()), 1;
  torch::inductor::AOTIModelPackageLoader model(argv[2], "model", false, 4);
  at::Tensor x = at::arange(15, at::kFloat).reshape({3, 5});
  at::Tensor expected = at::sigmoid(at::sin(x)) * at::sin(x) * 2;
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int i = 0; i < 32; ++i)
    threads.emplace_back([&] {
      for (int n = 0; n < 20; ++n) {
        std::vector<at::Tensor> inputs{x};
        right += at::allclose(model.run(inputs).at(0), expected, 1e-5, 1e-5);
      }
    });
  for (std::thread& thread : threads) thread.join();
  std::ifstream maps("/proc/self/maps");
  std::string text(std::istreambuf_iterator<char>(maps), {});
  std::cout << right << (text.find("libpython") == std::string::npos ? " without" : " with") << " Python\n";
}
"""


@native
def test_a_program_that_loads_the_library_by_its_name(model, tmp_path):
    (tmp_path / "server.cpp").write_text(SERVER)
    build(tmp_path / "server.cpp", tmp_path / "server", ["-ldl", "-pthread"])
    assert run_program(tmp_path / "server", PACKAGE / "libkiln_torch.so", model) == (0, "640 without Python\n", "")


def test_a_program_without_pytorch_is_told(tmp_path):
    (tmp_path / "program.cpp").write_text("""
        #include <kiln/torch.h>
        #include <cstdio>
        #include <exception>
        int main() try {
          kiln::register_torch_operator();
        } catch (const std::exception& error) {
          std::puts(error.what());
        }
    """)
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    subprocess.run(
        [compiler, tmp_path / "program.cpp", "-o", tmp_path / "program", *_cpp.options(PACKAGE)],
        check=True,
        timeout=300,
    )
    message = (
        "[kiln] Expected PyTorch 2.10 or later, but this process has not loaded a libtorch_cpu.so that has its stable "
        "interface."
    )
    assert run_program(tmp_path / "program") == (0, message + "\n", "")
    # Of a library that is loaded nothing can be thrown.
    done = subprocess.run(
        [sys.executable, "-c", f"import ctypes; ctypes.CDLL({str(PACKAGE / 'libkiln_torch.so')!r})"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", f"libkiln_torch.so: {message}\n")


def test_without_pytorch_nothing_of_it_is_loaded():
    script = """
        import sys
        import kiln
        kernel = kiln.metal_kernel("k", ["x"], ["y"], "y[0] = x;")
        kernel.function(output_shapes=[(1,)], output_dtypes=["int32"], grid=(1, 1, 1), threadgroup=(1, 1, 1))(1)
        print([name for name in sys.modules if name.partition(".")[0] == "torch"], "/libtorch" in open("/proc/self/maps").read())
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=60)
    assert done.stdout == "[] False\n", done.stderr


# ---- What it is given.


@both
def test_inputs_that_are_not_row_contiguous(launch):
    x = torch.arange(24.0).reshape(4, 6)
    for view in (x.T, x[:, ::2], x[1:, 1:], x[:1].expand(3, 6), x.reshape(2, 2, 6).permute(2, 0, 1)):
        (y,) = launch(square, view)
        assert torch.equal(y, view * view) and y.is_contiguous()


@both
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "int64", "float16", "bfloat16", "float32", "complex64"])
def test_dtypes(launch, dtype):
    copy = elementwise("copy", "y[i] = x[i];")
    x = (torch.arange(6) % 3).to(getattr(torch, dtype))
    (y,) = launch(copy, x)
    assert y.dtype == x.dtype and torch.equal(y, x)


@both
def test_marks_beside_the_memory(launch):
    """A conjugate and a negative are marks that PyTorch resolves before."""
    copy = elementwise("copy", "y[i] = x[i];")
    x = torch.tensor([1 + 2j, 3 - 4j], dtype=torch.complex64)
    assert torch.equal(launch(copy, x.conj())[0], x.conj().resolve_conj())
    assert torch.equal(launch(copy, x.conj().imag)[0], -x.imag)
    assert torch.equal(launch(copy, torch._efficientzerotensor((3,)))[0], torch.zeros(3))


@pytest.mark.parametrize("value", [3, -2.5, float("inf"), float("-inf"), 1e-30, -0.0, True])
@both
def test_initial_values(launch, value):
    nothing = elementwise("nothing", "if (x[i] > 1e30f) y[i] = 0;", init_value=value)
    (y,) = launch(nothing, torch.ones(3))
    expected = torch.full((3,), float(value))
    assert torch.equal(y, expected) and torch.equal(torch.signbit(y), torch.signbit(expected))
    assert torch.isnan(launch(elementwise("nans", "", init_value=float("nan")), torch.ones(2))[0]).all()


@both
def test_template_arguments(launch):
    function = elementwise(
        "scaled",
        "y[i] = FLAG ? T(x[i] * N) : T(0);",
        output_dtypes=["int32"],
        template=[("T", "int32"), ("N", -3), ("FLAG", True)],
    )
    assert torch.equal(launch(function, torch.arange(4.0))[0], torch.arange(4, dtype=torch.int32) * -3)


def test_texts_with_any_letters():
    function = elementwise("letters", '// ein Übermaß, 光, 🎈, "quoted" \\ and\ttabs\ny[i] = x[i];')
    _, text, sizes = _functions_torch._static_arguments(function, [torch.ones(3)])
    # Another text of the same kernel, which no function has made known: read in C++.
    parts = json.loads(text)
    parts["function"] = "none"
    for escaped in (True, False):
        other = json.dumps(parts, ensure_ascii=escaped)
        assert torch.equal(torch.ops.kiln.launch(other, [torch.ones(3)], sizes)[0], torch.ones(3))


@native
@pytest.mark.parametrize(
    "change",
    [
        lambda text: "",
        lambda text: text[:-1],
        lambda text: text + "}",
        lambda text: text.replace('"float32"', '"float99"'),
        lambda text: text.replace('"metal"', '"wood"'),
        lambda text: text.replace('"outputs"', '"results"'),
        lambda text: text.replace('"header":""', '"header":3'),
        lambda text: "[" * 100000,
        lambda text: text.replace(",1]]", ",-1]]"),
    ],
)
def test_texts_of_another_version(change):
    _, text, sizes = _functions_torch._static_arguments(square, [torch.ones(3)])
    assert change(text) != text
    with pytest.raises(
        ValueError, match=r"^\[kiln\] The text of a launch cannot be read, as another version of Kiln may "
    ):
        torch.ops.kiln.launch.default(change(text), [torch.ones(3)], sizes)


@native
def test_wrong_sizes():
    _, text, sizes = _functions_torch._static_arguments(square, [torch.ones(3)])
    with pytest.raises(ValueError) as error:
        torch.ops.kiln.launch.default(text, [torch.ones(3)], sizes[1:])
    assert str(error.value) == "[kiln] A launch of `square` has 6 sizes, and its outputs and its grid have 7."


# ---- Calls of plain tensors pass the dispatcher by, unless something looks at it.


@native
def test_what_passes_the_dispatcher_by():
    """The same launch by a call that would notice, were it given to the dispatcher."""
    dispatched = []
    call = _core.make_torch_call(lambda *arguments, **names: dispatched.append((arguments, names)))
    x = torch.ones(3)
    _, text, sizes = _functions_torch._static_arguments(square, [x])
    launch(square, x)

    def passes(*arguments, **names):
        dispatched.clear()
        outputs = call(*arguments, **names)
        if dispatched:
            assert dispatched == [(arguments, names)] and outputs is None
            return False
        assert len(outputs) == 1 and torch.equal(outputs[0], torch.ones(3))
        return True

    assert passes(text, [x], sizes)
    with torch.no_grad():
        assert passes(text, [torch.nn.Parameter(x)], sizes)
    with torch.device("cpu"):  # as torch.set_default_device does
        assert passes(text, [x], sizes)
    assert not passes(text, [x], sizes=sizes)
    assert not passes(text, (x,), sizes)
    assert not passes(text, [x], sizes[1:])
    assert not passes(text, [x], [2**70, *sizes[1:]])
    assert not passes(text, [x], [True, *sizes[1:]])
    assert not passes(text, [], sizes)
    assert not passes(text, [None], sizes)
    assert not passes(text + " ", [x], sizes)
    assert not passes(text, [torch.nn.Parameter(x)], sizes)
    assert not passes(text, [x.to("meta")], sizes)
    assert not passes(text, [torch._efficientzerotensor((3,))], sizes)
    assert not passes(text, [torch.ones(3, dtype=torch.float64).to(torch.complex64).conj().imag], sizes)
    with torch.autograd.forward_ad.dual_level():
        assert not passes(text, [x], sizes)
    assert passes(text, [x], sizes)


def launches_of(events):
    return [event for event in events if "kiln" in event]


def direct(function, x):
    """A call of the kernel itself."""
    return function._kernel(
        inputs=[x], output_shapes=[x.shape], output_dtypes=[x.dtype], grid=(x.numel(), 1, 1), threadgroup=(64, 1, 1)
    )


def with_gradient(function, x):
    return function(x.clone().requires_grad_())


COMPILED = torch.compile(lambda x: square(torch.sin(x)), fullgraph=True)
PROFILED = [
    (direct, ["kiln::square"]),
    (lambda function, x: function(x), ["kiln::square"]),
    (with_gradient, ["kiln::square"]),
    (launch, ["kiln::launch", "kiln::square"]),
    (dispatch, ["kiln::launch", "kiln::square"]),
    (lambda _, x: COMPILED(x), ["kiln::launch", "kiln::square"]),
]


@native
@pytest.mark.parametrize(("call", "expected"), PROFILED)
def test_profilers_see_launches(call, expected):
    call(square, torch.ones(3))
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        call(square, torch.ones(3))
    assert launches_of(event.name for event in profile.events()) == expected


@native
@pytest.mark.parametrize(("call", "expected"), PROFILED)
def test_observers_see_launches(call, expected, tmp_path):
    call(square, torch.ones(3))
    observer = torch.profiler.ExecutionTraceObserver()
    observer.register_callback(str(tmp_path / "trace.json"))
    observer.start()
    call(square, torch.ones(3))
    observer.stop()
    observer.unregister_callback()
    trace = json.loads((tmp_path / "trace.json").read_text())
    assert sorted(launches_of(node["name"] for node in trace["nodes"])) == expected


@native
def test_profilers_see_launches_that_fail():
    broken = elementwise("broken", "y[i] = x[i] + nothing;")
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        for call in (direct, dispatch):
            with pytest.raises(kiln.CompileError):
                call(broken, torch.ones(3))
        with torch.profiler.record_function("after"):
            direct(square, torch.ones(3))
    events = {event.name: event for event in profile.events()}
    # Each range ends with its launch: what came later does not lie in it.
    assert events["kiln::square"].cpu_parent.name == "after" and events["after"].cpu_parent is None


def test_modes_see_launches():
    seen = []
    function_mode: Any = torch.overrides.TorchFunctionMode
    dispatch_mode: Any = torch.utils._python_dispatch.TorchDispatchMode

    class Functions(function_mode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            seen.append(str(function))
            return function(*args, **(kwargs or {}))

    class Dispatches(dispatch_mode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.append(str(function))
            return function(*args, **(kwargs or {}))

    x = torch.ones(3)
    _, text, sizes = _functions_torch._static_arguments(square, [x])
    for mode in (Functions, Dispatches):
        seen.clear()
        with mode():
            (y,) = torch.ops.kiln.launch.default(text, [x], sizes)
        assert seen == ["kiln.launch.default"] and torch.equal(y, x)


def test_tensors_of_other_kinds():
    parameter = torch.nn.Parameter(torch.full((3,), 2.0))
    with torch.no_grad():
        (y,) = launch(square, parameter)
    assert type(y) is torch.Tensor and torch.equal(y, torch.full((3,), 4.0)) and not y.requires_grad
    with pytest.raises(TypeError, match="An input of a launch of a stored program requires a gradient"):
        launch(square, parameter)

    tensor: Any = torch.Tensor

    class Own(tensor):
        pass

    assert torch.equal(
        launch(square, torch.full((3,), 3.0).as_subclass(Own))[0].as_subclass(torch.Tensor), 9 * torch.ones(3)
    )
    with torch.inference_mode():
        (y,) = launch(square, torch.ones(3))
        assert y.is_inference()
    (y,) = launch(square, torch.ones(3, device="meta"))
    assert y.is_meta and y.shape == (3,)
    y = torch.vmap(lambda x: launch(square, x)[0])(torch.arange(6.0).reshape(2, 3))
    assert torch.equal(y, torch.arange(6.0).reshape(2, 3) ** 2)
    assert torch.equal(launch(square, torch.ones(0))[0], torch.ones(0))
    with pytest.raises(RuntimeError, match="found type 'list'"):
        launch_text = _functions_torch._static_arguments(square, [torch.ones(3)])[1]
        torch.ops.kiln.launch.default(launch_text, [None], [3, 3, 1, 1, 3, 1, 1])


@pytest.mark.parametrize("count", [1, 5, 11, 12, 13, 20])
@both
def test_launches_of_many_inputs(launch, count):
    names = [f"x{i}" for i in range(count)]
    kernel = kiln.metal_kernel(
        "sum", names, ["y"], definitions.INDEX + f"y[i] = {' + '.join(f'{n}[i]' for n in names)};"
    )
    total = kernel.function(
        output_shapes=lambda *x: [x[0].shape],
        output_dtypes=["float32"],
        grid=lambda *x: (x[0].size, 1, 1),
        threadgroup=64,
    )
    assert torch.equal(
        launch(total, *[torch.full((5,), float(i)) for i in range(count)])[0], torch.full((5,), count * (count - 1) / 2)
    )


# ---- Errors have the types of a kernel's.


@both
def test_errors_of_a_body(launch):
    for call in (launch, lambda f, x: torch.compile(f, fullgraph=True, backend="aot_eager")(x)):
        torch._dynamo.reset()
        with pytest.raises(kiln.CompileError) as error:
            call(elementwise("wrong", "y[i] = nothing;"), torch.ones(3))
        assert error.value.diagnostics[0].message == "use of undeclared identifier 'nothing'"
        with pytest.raises(kiln.UnsupportedError, match="x"):
            call(elementwise("writes", "((device float*)x)[i] = 0; y[i] = 0;"), torch.ones(9))
        with pytest.raises(ValueError, match=r"^\[metal_kernel\] .*2048"):
            call(elementwise("large", "y[i] = x[i];", threadgroup=(2048, 1, 1)), torch.ones(3))
    # What was wrong leaves nothing behind.
    assert torch.equal(launch(square, torch.full((3,), 3.0))[0], torch.full((3,), 9.0))


def test_dtypes_that_no_kernel_takes():
    copy = elementwise("copy", "y[i] = x[i];")
    _, text, sizes = _functions_torch._static_arguments(copy, [torch.ones(3)])
    with pytest.raises(TypeError, match="dtype"):
        torch.ops.kiln.launch.default(text, [torch.ones(3, dtype=torch.complex128)], sizes)


def test_an_interruption():
    script = f"""
        import signal, sys, threading, time
        import torch
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        from test_torch_operator import elementwise, launch

        class Late(Exception):
            pass

        def handler(*_):
            raise Late("it takes too long")

        endless = elementwise("endless", "uint k = 0; while (x[i] > 0) ++k; y[i] = k;")
        launch(endless, torch.zeros(64))
        for handle, expected in ((signal.default_int_handler, KeyboardInterrupt), (handler, Late)):
            signal.signal(signal.SIGINT, handle)
            threading.Timer(0.5, lambda: signal.raise_signal(signal.SIGINT)).start()
            try:
                launch(endless, torch.ones(64))
            except expected as error:
                print(type(error).__name__)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=120)
    assert done.stdout == "KeyboardInterrupt\nLate\n", done.stderr


# ---- Threads and processes.


def test_many_threads_compile_and_launch():
    def work(t):
        x = torch.full((100 + t % 3,), float(t))
        for n in range(8):
            function = elementwise(f"threads_{n}", f"y[i] = x[i] + {n};")
            assert torch.equal(launch(function, x)[0], x + n)
        return t

    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        assert sorted(pool.map(work, range(64))) == list(range(64))


def test_children_that_are_forked_while_others_launch():
    script = f"""
        import os, sys, threading
        import torch
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        from test_torch_operator import elementwise, launch, square

        x, ends = torch.arange(64.0), threading.Event()
        def work(t):
            n = 0
            while not ends.is_set():
                launch(elementwise(f"k{{t}}_{{n % 20}}", f"y[i] = x[i] + {{t}} + {{n % 20}};"), x)
                n += 1
        threads = [threading.Thread(target=work, args=(t,)) for t in range(4)]
        for thread in threads:
            thread.start()
        for n in range(10):
            pid = os.fork()
            if pid == 0:
                right = torch.equal(launch(square, x)[0], x * x)
                right &= torch.equal(launch(elementwise(f"child{{n}}", "y[i] = x[i] + 7;"), x)[0], x + 7)
                os._exit(0 if right else 1)
            assert os.waitpid(pid, 0)[1] == 0
        ends.set()
        for thread in threads:
            thread.join()
        print("done")
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=200)
    assert done.stdout == "done\n", done.stderr


def test_the_end_of_the_process():
    """(While other threads run operators, PyTorch's own abort.)"""
    script = f"""
        import atexit, sys, threading
        import torch
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        from test_torch_operator import elementwise, launch, square

        x = torch.arange(8.0)
        late = elementwise("late", "y[i] = x[i] + 1;")
        def at_the_end():
            print(torch.equal(launch(square, x)[0], x * x), torch.equal(launch(late, x)[0], x + 1))
        atexit.register(at_the_end)
        threading.Thread(target=lambda: [launch(square, torch.ones(1000)) for _ in range(1000)]).start()
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True True\n", "")


def test_launches_of_compiled_programs_are_in_the_history():
    function = elementwise("counted", "y[i] = x[i];")
    launch(function, torch.ones(3))
    assert [entry.grid for entry in function._kernel.history] == [(3, 1, 1)]
