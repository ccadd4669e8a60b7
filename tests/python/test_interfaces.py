"""The interfaces, and how a program reaches them."""

from __future__ import annotations

import importlib.machinery
import importlib.metadata
import inspect
import os
import re
import subprocess
import sys
import textwrap
import threading
import typing
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kiln
import kiln.mlx
import ml_dtypes
import mlx.core as mx
import mlx_text
import numpy as np
import pytest
from kiln import _core, _doctor, _kernels, _libraries

INDEX = "uint i = thread_position_in_grid.x;\n"
DOUBLE_IT = INDEX + "out[i] = x[i] * 2;"
EIGHT = np.arange(8, dtype=np.float32)
ENGINE_REASON = "the default" if _core.cpu_engine() == "simd" else "the SIMD engine does not take it: it needs AVX2"


def make(source=DOUBLE_IT, inputs=("x",), outputs=("out",), name="k", module=kiln, **keywords) -> kiln.Kernel:
    return module.metal_kernel(name, list(inputs), list(outputs), source, **keywords)


def call(kernel, inputs, shape=(8,), dtype="float32", method="__call__", **keywords):
    size = int(np.prod(shape))
    right = {"grid": (size, 1, 1), "threadgroup": (min(size, 256) or 1, 1, 1)}
    return getattr(kernel, method)(
        **{"inputs": inputs, "output_shapes": [shape], "output_dtypes": [dtype], **right, **keywords}
    )


def python(*arguments, cwd=None, environment=None):
    """A Python of its own; what it prints, and how it ends."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
    )


def script(text, **keywords):
    return python("-c", textwrap.dedent(text), **keywords)


# ---- the list generation


def parameters(function):
    return [
        parameter.name if parameter.default is parameter.empty else (parameter.name, parameter.default)
        for parameter in inspect.signature(function).parameters.values()
    ]


NAMED = ["name", "input_names", "output_names", "source", ("header", ""), ("ensure_row_contiguous", True)]


@pytest.mark.parametrize("module", [kiln, kiln.mlx])
def test_the_signatures(module):
    options = ("compile_options", None)
    assert parameters(module.metal_kernel) == [*NAMED, ("atomic_outputs", False), options]
    assert parameters(module.cuda_kernel) == [*NAMED, ("shared_memory", 0), options]
    assert parameters(module.MetalKernel)[:8] == [
        *("name", "source", "grid", "threadgroup", "output_shapes", "output_dtypes"),
        *(("ensure_row_contiguous", True), ("verbose", False)),
    ]
    assert parameters(module.MetalKernel)[8:] == [
        ("header", ""),
        ("atomic_outputs", False),
        ("init_value", None),
        ("compile_options", None),
    ]


def test_the_signature_of_a_call():
    keywords = (
        "*, inputs, output_shapes=None, output_dtypes=None, grid, threadgroup, template=None, init_value=None, "
        "verbose=False, stream=None, outputs=None"
    )
    assert (kiln.Kernel.__call__.__doc__ or "").splitlines()[0] == f"__call__(self, {keywords})"
    assert str(inspect.signature(make())) == f"({keywords})"
    # Of the class there is none: kernels are made by functions.
    with pytest.raises(ValueError):
        inspect.signature(kiln.Kernel)
    described = f"{keywords}, input_shapes=None, input_dtypes=None, target=None".replace("inputs,", "inputs=None,")
    for method, result in (("source_for", "str"), ("compile", "CompiledKernel")):
        assert str(inspect.signature(getattr(kiln.Kernel, method))) == f"(self, {described}) -> '{result}'"
        assert str(inspect.signature(getattr(make(), method))) == f"({described}) -> '{result}'"
        assert getattr(kiln.Kernel, method).__qualname__ == f"Kernel.{method}"


@pytest.mark.parametrize("module", [kiln, kiln.mlx])
def test_what_makes_kernels_is_a_function(module):
    for name in ("metal_kernel", "cuda_kernel"):
        function = getattr(module, name)
        assert inspect.isfunction(function) and function.__name__ == name
        assert "Example:" in (function.__doc__ or "")
        assert inspect.signature(function).return_annotation == "Kernel"
    assert [len(inspect.signature(f).parameters) for f in typing.get_overloads(_kernels.metal_kernel)] == [8, 6]


def test_all_arguments_by_position():
    kernel = kiln.metal_kernel(
        "k",
        ["x"],
        ["out"],
        "atomic_fetch_add_explicit(&out[0], twice(x[x_strides[0] * 3]), memory_order_relaxed);",
        "float twice(float a) { return 2 * a; }",
        False,
        True,
        {"math_mode": "safe"},
    )
    (out,) = call(kernel, [EIGHT[::-1]], shape=(1,), init_value=0, grid=(5, 1, 1))
    np.testing.assert_array_equal(out, [5 * 2 * 4])


@pytest.mark.parametrize("kind", [list, tuple])
def test_lists_may_be_tuples(kind):
    kernel = kiln.metal_kernel("k", kind(["x"]), kind(["out"]), DOUBLE_IT)
    result = kernel(
        inputs=kind([EIGHT]),
        output_shapes=kind([kind([8])]),
        output_dtypes=kind(["float32"]),
        grid=kind([8, 1, 1]),
        threadgroup=kind([8, 1, 1]),
        template=kind([kind(["N", 3])]),
    )
    assert type(result) is list
    np.testing.assert_array_equal(result[0], EIGHT * 2)


def test_ints_may_be_anything_with_an_index():
    (out,) = call(make(), [EIGHT], shape=(np.int64(8),), grid=np.array([8, 1, 1]), threadgroup=(np.uint8(8), True, 1))
    np.testing.assert_array_equal(out, EIGHT * 2)


# The items of such a sequence live only as long as somebody holds them.
def test_inputs_may_be_a_sequence_that_makes_its_items():
    rows = np.arange(24, dtype=np.float32).reshape(3, 8)
    kernel = make(INDEX + "out[i] = a[i] + b[i] * 10 + c[i] * 100;", inputs="abc")
    for _ in range(100):
        (out,) = call(kernel, rows)
        np.testing.assert_array_equal(out, rows[0] + rows[1] * 10 + rows[2] * 100)


def test_inputs_may_change_hands_while_the_kernel_runs():
    kernel = make("float s = 0; for (int j = 0; j < 20000000; ++j) s = s * 0.5f + x[j % 8]; out[0] = s;")
    expected = call(kernel, [EIGHT.copy()], shape=(1,))[0]
    inputs = [EIGHT.copy()]
    results = []
    thread = threading.Thread(target=lambda: results.append(call(kernel, inputs, shape=(1,))))
    thread.start()
    while thread.is_alive():
        inputs[0] = np.full(8, -1, np.float32)
        inputs[0] = EIGHT.copy()
    thread.join()
    # Whichever array it took, the kernel saw that one whole.
    other = call(kernel, [np.full(8, -1, np.float32)], shape=(1,))[0]
    assert results[0][0] in (expected, other)


def test_init_value_fills_all_outputs_first():
    kernel = make("if (thread_position_in_grid.x == 0) { a[1] = 7; b[0] = 9; }", outputs=["a", "b"])
    a, b = kernel(
        inputs=[EIGHT],
        output_shapes=[(3,), (2, 2)],
        output_dtypes=["float32", "int8"],
        grid=(4, 1, 1),
        threadgroup=(4, 1, 1),
        init_value=3,
    )
    np.testing.assert_array_equal(a, np.array([3, 7, 3], np.float32))
    np.testing.assert_array_equal(b, np.array([[9, 3], [3, 3]], np.int8))


def test_templates():
    source = INDEX + "T sum = 0; for (int j = 0; j < N; ++j) sum += F ? x[i] : T(1); out[i] = sum;"
    kernel = make(source)
    for flag, n in [(True, 3), (False, -2), (False, 5)]:
        (out,) = call(kernel, [EIGHT], template=[("T", np.int32), ("N", n), ("F", flag)])
        np.testing.assert_array_equal(out, (EIGHT if flag else np.ones(8)) * max(n, 0))


# ---- the dictionary generation


def by_name(kernel, **keywords):
    right = {
        "inputs": {"inp": EIGHT},
        "output_shapes": {"out": (8,)},
        "output_dtypes": {"out": "float32"},
        "grid": (8, 1, 1),
        "threadgroup": (8, 1, 1),
    }
    return kernel(**{**right, **keywords})


@pytest.mark.parametrize(
    "kernel",
    [
        kiln.metal_kernel("k", INDEX + "out[i] = T(inp[i]) * 2;"),
        kiln.metal_kernel("k", source=INDEX + "out[i] = T(inp[i]) * 2;"),
        kiln.metal_kernel(name="k", source=INDEX + "out[i] = T(inp[i]) * 2;"),
    ],
)
def test_the_dictionary_generation(kernel):
    result = by_name(kernel, template={"T": np.float32})
    assert list(result) == ["out"]
    np.testing.assert_array_equal(result["out"], EIGHT * 2)
    # A list of pairs says the same.
    np.testing.assert_array_equal(by_name(kernel, template=[("T", np.float32)])["out"], EIGHT * 2)


def test_arguments_and_outputs_of_the_dictionary_generation_come_in_the_dictionaries_order():
    kernel = kiln.metal_kernel("k", INDEX + "z[i] = b[i]; y[i] = a[i];")
    keywords: dict[str, Any] = {
        "inputs": {"b": EIGHT, "a": EIGHT + 1},
        "output_shapes": {"z": (8,), "y": (8,)},
        "output_dtypes": {"y": "int32", "z": "float32"},  # in any order
        "grid": (8, 1, 1),
        "threadgroup": (8, 1, 1),
    }
    text = kernel.source_for(**keywords)
    places = [text.index(f" {name} [[buffer(") for name in "bazy"]
    assert places == sorted(places)
    result = kernel(**keywords)
    assert list(result) == ["z", "y"]
    np.testing.assert_array_equal(result["z"], EIGHT)
    np.testing.assert_array_equal(result["y"], np.arange(1, 9, dtype=np.int32))
    assert result["y"].dtype == np.int32


def test_all_arguments_of_the_dictionary_generation_by_position():
    source = "atomic_fetch_add_explicit(&out[0], ONE, memory_order_relaxed); (void)inp_strides;"
    kernel = kiln.metal_kernel("k", source, False, True, "#define ONE 1\n")
    result = by_name(kernel, output_shapes={"out": (1,)}, output_dtypes={"out": "int32"}, init_value=5)
    np.testing.assert_array_equal(result["out"], [13])


def test_the_rest_of_a_call_of_the_dictionary_generation(capsys):
    kernel = kiln.metal_kernel("k", "if (thread_position_in_grid.x > 8) out[0] = 1;")
    result = by_name(kernel, init_value=4, verbose=True)
    np.testing.assert_array_equal(result["out"], np.full(8, 4, np.float32))
    text = kernel.source_for(
        inputs={"inp": EIGHT},
        output_shapes={"out": (8,)},
        output_dtypes={"out": "float32"},
        grid=(8, 1, 1),
        threadgroup=(8, 1, 1),
    )
    assert capsys.readouterr().out == f"Generated source code for `k`:\n```\n{text}\n```\n"


def test_one_kernel_of_the_dictionary_generation_takes_other_names_each_time():
    kernel = kiln.metal_kernel("k", INDEX + "FIRST[i] = 1;", header="#define FIRST out\n")
    np.testing.assert_array_equal(by_name(kernel)["out"], np.ones(8))
    result = by_name(kernel, inputs={"other": EIGHT, "more": 3})
    np.testing.assert_array_equal(result["out"], np.ones(8))


def test_the_dictionary_generation_with_mlx_arrays():
    kernel = kiln.mlx.metal_kernel("k", INDEX + "out[i] = inp[i] * 2;")
    result = by_name(kernel, inputs={"inp": mx.array(EIGHT)}, output_dtypes={"out": mx.float32}, stream=mx.cpu)
    assert isinstance(result["out"], mx.array)
    np.testing.assert_array_equal(np.array(result["out"]), EIGHT * 2)


# ---- the class generation


def class_kernel(source, module=kiln, **keywords):
    right = {
        "name": "myexp",
        "source": source,
        "grid": (8, 1, 1),
        "threadgroup": (8, 1, 1),
        "output_shapes": {"out": (8,)},
        "output_dtypes": {"out": "float32"},
    }
    return module.MetalKernel(**{**right, **keywords})


CLASS_TEXT = """\
template <typename T, int N, bool FLAG>
[[kernel]] void FUNCTION(
  const device float16_t* inp [[buffer(0)]],
  const constant int* inp_shape [[buffer(1)]],
  const constant size_t* inp_strides [[buffer(2)]],
  const constant int& inp_ndim [[buffer(3)]],
  const constant int32_t& n [[buffer(4)]],
  device float* out [[buffer(5)]],
  uint3 thread_position_in_grid [[thread_position_in_grid]]) {
uint i = thread_position_in_grid.x;
out[i] = T(inp[i]) * N;
}

template [[host_name("FUNCTION")]] [[kernel]] decltype(FUNCTION<float, 4, 1>) FUNCTION<float, 4, 1>;
"""


def test_the_text_of_the_class_generation_passes_shapes_always():
    kernel = class_kernel(INDEX + "out[i] = T(inp[i]) * N;")
    kernel.template(T=np.float32, N=4, FLAG=True)
    text = kernel.source_for(inp=EIGHT.astype(np.float16), n=3)
    assert " ".join(CLASS_TEXT.split()) == mlx_text.normalized(text)


def test_the_class_generation():
    kernel = class_kernel(INDEX + "out[i] = T(inp[i]) * N;")
    assert kernel.name == "myexp"
    kernel.template(T=np.float32, N=4)
    result = kernel(inp=EIGHT)
    assert list(result) == ["out"]
    np.testing.assert_array_equal(result["out"], EIGHT * 4)
    # Later templates replace earlier ones.
    kernel.template(T=np.int32, N=-1)
    np.testing.assert_array_equal(kernel(inp=EIGHT)["out"], -EIGHT)
    assert [launch.code for launch in kernel.history] == ["compiled", "compiled"]
    assert kernel.compile(inp=EIGHT).source == kernel.source_for(inp=EIGHT)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_the_class_generation_indexes_with_strides_of_size_t(dtype):
    kernel = class_kernel(
        INDEX + "uint loc = elem_to_loc(i, inp_shape, inp_strides, inp_ndim);\nout[i] = inp[loc];",
        output_shapes={"out": (4, 6)},
        grid=(24, 1, 1),
        ensure_row_contiguous=False,
    )
    whole = np.arange(8 * 6, dtype=dtype).reshape(8, 6)
    for view in (whole[::2], whole[1:5], np.ascontiguousarray(whole[:6, :4]).T):
        np.testing.assert_array_equal(kernel(inp=view)["out"], view)


def test_the_rest_of_the_class_generation(capsys):
    kernel = class_kernel(
        "atomic_fetch_add_explicit(&out[thread_position_in_grid.x % 2], ONE, memory_order_relaxed);",
        header="#define ONE 1\n",
        atomic_outputs=True,
        init_value=10,
        verbose=True,
        output_dtypes={"out": "int32"},
        output_shapes={"out": (3,)},
        compile_options={"bounds": "on"},
    )
    np.testing.assert_array_equal(kernel()["out"], [14, 14, 10])
    assert capsys.readouterr().out == f"Generated source code for `myexp`:\n```\n{kernel.source_for()}\n```\n"
    assert repr(kernel) == "<kiln.MetalKernel `myexp`>"


def test_the_class_generation_with_mlx_arrays():
    kernel = class_kernel(INDEX + "out[i] = inp[i];", module=kiln.mlx, output_dtypes={"out": mx.float16})
    result = kernel(inp=mx.array(EIGHT))["out"]
    assert result.dtype == mx.float16
    np.testing.assert_array_equal(np.array(result), EIGHT)


def test_arguments_of_the_class_generation_may_have_any_name():
    kernel = class_kernel("out[thread_position_in_grid.x] = self * arguments;")
    kernel.template(self="float32")
    assert "template <typename self>" in kernel.source_for(arguments=EIGHT)
    kernel.template()
    for method in (kernel, kernel.source_for, kernel.compile):
        result = method(self=2.0, arguments=1.5)
    assert result.code_bytes > 0
    np.testing.assert_array_equal(kernel(self=2.0, arguments=1.5)["out"], np.full(8, 3))


# ---- in MLX's place

FAST = ("metal_kernel", "cuda_kernel", "MetalKernel")
# MLX's types know one generation, and say of kernels that they are objects.
fast: Any = mx.fast


def mlx_state():
    names = [*((mx.fast, name) for name in FAST), (mx, "export_function"), (mx, "exporter"), (mx, "gpu")]
    return [getattr(module, name, None) for module, name in [*names, (mx.metal, "is_available")]]


@pytest.fixture
def untouched():
    before = mlx_state()
    yield before
    kiln.mlx.uninstall()
    assert mlx_state() == before


def test_install_and_uninstall(untouched):
    assert not hasattr(mx.fast, "MetalKernel")
    kiln.mlx.install()
    kernel = fast.metal_kernel(name="k", input_names=["x"], output_names=["out"], source=DOUBLE_IT)
    (out,) = call(kernel, [mx.array(EIGHT)], dtype=mx.float32)
    np.testing.assert_array_equal(np.array(out), EIGHT * 2)
    assert (kernel.name, len(kernel.history)) == ("k", 1)
    assert "out[i] = x[i] * 2;" in call(kernel, [mx.array(EIGHT)], method="source_for")
    assert fast.MetalKernel is kiln.mlx.MetalKernel
    cuda = mx.fast.cuda_kernel("k", ["x"], ["out"], "out[threadIdx.x] = x[threadIdx.x] * 3;")
    (out,) = call(cuda, [mx.array(EIGHT)], dtype=mx.float32)
    np.testing.assert_array_equal(np.array(out), EIGHT * 3)
    installed = mlx_state()
    assert all(during is not before for during, before in zip(installed[:5], untouched[:5], strict=True))
    kiln.mlx.install()  # once more changes nothing
    assert mlx_state() == installed
    kiln.mlx.uninstall()
    assert mlx_state() == untouched
    kiln.mlx.uninstall()
    # What was made goes on.
    np.testing.assert_array_equal(np.array(call(kernel, [mx.array(EIGHT)], dtype=mx.float32)[0]), EIGHT * 2)


def test_installed_functions_take_all_generations(untouched):
    kiln.mlx.install()
    old = fast.metal_kernel("k", INDEX + "out[i] = inp[i] * 2;")
    result = by_name(old, inputs={"inp": mx.array(EIGHT)}, output_dtypes={"out": mx.float32})
    np.testing.assert_array_equal(np.array(result["out"]), EIGHT * 2)
    oldest = class_kernel(INDEX + "out[i] = inp[i] * 2;", module=mx.fast, output_dtypes={"out": mx.float32})
    np.testing.assert_array_equal(np.array(oldest(inp=mx.array(EIGHT))["out"]), EIGHT * 2)


def test_install_for_a_block(untouched):
    with kiln.mlx.install():
        assert mx.fast.metal_kernel is not untouched[0]
        from mlx.core.fast import metal_kernel
    assert mlx_state() == untouched
    # A function that was taken out of the block goes on as it was.
    kernel = metal_kernel("k", ["x"], ["out"], DOUBLE_IT)
    np.testing.assert_array_equal(np.array(call(kernel, [mx.array(EIGHT)], dtype=mx.float32)[0]), EIGHT * 2)


def test_a_block_within_an_installation_takes_back_only_what_it_brought(untouched):
    kiln.mlx.install()
    installed = mlx_state()
    with kiln.mlx.install():
        assert mlx_state() == installed
    assert mlx_state() == installed
    with kiln.mlx.install(metal=True):
        assert mx.metal.is_available()
        with kiln.mlx.install(metal=True):
            pass
        assert mx.metal.is_available()
    assert mlx_state() == installed


def test_a_block_ends_with_an_error(untouched):
    with pytest.raises(ZeroDivisionError), kiln.mlx.install(metal=True):
        raise ZeroDivisionError
    assert mlx_state() == untouched


def test_uninstall_within_a_block(untouched):
    with kiln.mlx.install():
        kiln.mlx.uninstall()
        assert mlx_state() == untouched
    assert mlx_state() == untouched


def test_without_metal_the_gates_stay_closed(untouched):
    with kiln.mlx.install():
        assert not mx.metal.is_available()
        assert mx.default_device() != mx.gpu


@pytest.mark.skipif(mx.is_available(mx.Device(mx.gpu)), reason="MLX has a GPU here, and it stays what mx.gpu means")
def test_the_gates_that_programs_ask(untouched):
    with kiln.mlx.install(metal=True):
        assert mx.metal.is_available()
        assert mx.default_device() == mx.gpu
        assert mx.is_available(mx.gpu)
        # Devices, streams and comparisons that are written for a GPU.
        assert mx.Device(mx.gpu) == mx.Device(mx.cpu)
        with mx.stream(mx.gpu):
            assert mx.array([1, 2]).sum().item() == 3
        stream = mx.new_stream(mx.gpu)
        assert stream.device == mx.gpu
        assert mx.add(1, 2, stream=stream).item() == 3
        assert mx.default_stream(mx.gpu) == mx.default_stream(mx.cpu)
        kernel = mx.fast.metal_kernel("k", ["x"], ["out"], DOUBLE_IT)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            (out,) = call(kernel, [mx.array(EIGHT)], dtype=mx.float32, stream=mx.gpu)
            np.testing.assert_array_equal(np.array(out), EIGHT * 2)
    assert not mx.metal.is_available()


PROGRAM = """
import os
import sys

import mlx.core as mx

if __name__ == "__main__":
    kernel = mx.fast.metal_kernel(
        name="twice", input_names=["x"], output_names=["out"],
        source="uint i = thread_position_in_grid.x; out[i] = x[i] * 2;",
    )
    (out,) = kernel(
        inputs=[mx.arange(3)], grid=(3, 1, 1), threadgroup=(3, 1, 1), output_shapes=[(3,)], output_dtypes=[mx.int32],
    )
    print(out.tolist(), sys.argv, sys.path[0], mx.metal.is_available(), mx.default_device() == mx.gpu)
    if "fail" in sys.argv:
        raise ValueError("the program's own")
    if "exit" in sys.argv:
        sys.exit(7)
    if "say" in sys.argv:
        sys.exit("some words")
"""


@pytest.fixture
def program(tmp_path):
    (tmp_path / "prog.py").write_text(PROGRAM)
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "__init__.py").write_text("")
    (tmp_path / "pack" / "__main__.py").write_text(PROGRAM)
    return tmp_path


def test_run_a_program(program):
    path = str(program / "prog.py")
    done = python("-m", "kiln", "run", path, "--metal", "-m", "x", cwd="/")
    assert done.stderr == ""
    assert done.stdout == f"[0, 2, 4] {[path, '--metal', '-m', 'x']} {program} False False\n"
    assert done.returncode == 0


def test_run_a_program_by_a_relative_path(program):
    done = python("-m", "kiln", "run", "prog.py", cwd=program)
    assert done.stdout == f"[0, 2, 4] ['prog.py'] {program} False False\n"


def test_run_a_module(program):
    done = python("-m", "kiln", "run", "-m", "pack", "a", "--b", cwd=program)
    assert done.stderr == ""
    main = str(program / "pack" / "__main__.py")
    assert done.stdout == f"[0, 2, 4] {[main, 'a', '--b']} {program} False False\n"


def test_run_with_the_gates_open(program):
    for arguments in (("--metal", "prog.py"), ("--metal", "-m", "prog"), ("-m", "--metal", "prog")):
        done = python("-m", "kiln", "run", *arguments, cwd=program)
        assert done.stdout.endswith(" True True\n"), done


def test_a_programs_exit_status_is_runs(program):
    assert python("-m", "kiln", "run", "prog.py", "exit", cwd=program).returncode == 7
    said = python("-m", "kiln", "run", "prog.py", "say", cwd=program)
    assert (said.returncode, said.stderr) == (1, "some words\n")


def test_a_programs_errors_are_told_by_its_own_lines(program):
    failed = python("-m", "kiln", "run", "prog.py", "fail", cwd=program)
    assert failed.returncode == 1
    line = 1 + PROGRAM.splitlines().index('        raise ValueError("the program\'s own")')
    assert failed.stderr.endswith(
        f'prog.py", line {line}, in <module>\n    raise ValueError("the program\'s own")\n'
        "ValueError: the program's own\n"
    )


def test_run_what_is_not_there(tmp_path):
    missing = python("-m", "kiln", "run", "missing.py", cwd=tmp_path)
    assert (missing.returncode, missing.stdout) == (2, "")
    assert missing.stderr == "python -m kiln run: no such file: missing.py\n"
    (tmp_path / "folder").mkdir()
    folder = python("-m", "kiln", "run", "folder", cwd=tmp_path)
    assert (folder.returncode, folder.stdout) == (1, "")
    assert folder.stderr == "python -m kiln run: can't find '__main__' module in 'folder'\n"
    module = python("-m", "kiln", "run", "-m", "missing", cwd=tmp_path)
    assert module.returncode == 1
    assert module.stderr == "python -m kiln run: no module named missing\n"
    assert "'spawn'" in python("-m", "kiln", "run", "--help").stdout
    nothing = python("-m", "kiln", "run", cwd=tmp_path)
    assert nothing.returncode == 2
    assert nothing.stderr.startswith(
        "usage: python -m kiln run [--metal] [--mac[=PACKAGE,...]] [--report FILE] [--summary]\n"
        "                          (PROGRAM | -m MODULE) [ARGUMENT ...]\n"
    )


def test_doctor():
    done = python("-m", "kiln", "doctor", "--settings")
    assert (done.returncode, done.stderr) == (0, "")
    lines = {line.split()[0]: line for line in done.stdout.splitlines() if line.startswith("  ")}
    assert done.stdout.startswith(f"Kiln {kiln.__version__}, Python ")
    for name in ("libkiln_compiler.so", "cpu", "numpy", "mlx"):
        assert " usable " in lines[name] and "not usable" not in lines[name]
    assert re.search(rf"\n +Kiln has modules for MLX .*\b{re.escape(importlib.metadata.version('mlx'))}\b", done.stdout)
    # What is there differs from machine to machine; what is not says how to get it.
    for name, remedy in (
        ("torch", "pip install torch"),
        ("jax", "pip install jax"),
        ("cupy", "pip install cupy-cuda13x"),
    ):
        assert " usable " in lines[name] and ("not usable" not in lines[name] or remedy in lines[name])
    assert " usable " in lines["nvidia"]
    for variable in ("KILN_CPU_THREADS", "KILN_BOUNDS", "KILN_STRICT_DEVICE", "KILN_COMPILER"):
        assert f"{variable} is not set" in lines[variable]


def test_doctor_says_what_is_missing(tmp_path):
    (tmp_path / "mlx").mkdir()
    (tmp_path / "mlx" / "__init__.py").write_text("raise ImportError('no MLX here')")
    done = python(
        *("-m", "kiln", "doctor"),
        environment={"KILN_COMPILER": "/nowhere/compiler.so", "PYTHONPATH": str(tmp_path), "KILN_CPU_THREADS": "2"},
    )
    assert done.returncode == 1
    lines = {line.split()[0]: line for line in done.stdout.splitlines() if line.startswith("  ")}
    assert "not usable" in lines["libkiln_compiler.so"] and "/nowhere/compiler.so" in lines["libkiln_compiler.so"]
    # Nothing runs without the compiler.
    assert "not usable" in lines["cpu"] and ", 2 threads, " in lines["cpu"]
    assert lines["mlx"].endswith(f"not usable  {NO_MLX}")
    assert "KILN_COMPILER = /nowhere/compiler.so" in lines["KILN_COMPILER"]


# ---- a GPU that MLX does not have

ON_GPU = """
    import warnings
    import mlx.core as mx
    import kiln.mlx
    kernel = kiln.mlx.metal_kernel("k", ["x"], ["out"], "out[0] = x[0] + 1;")
    def launch(**keywords):
        (out,) = kernel(inputs=[mx.array([2.0])], output_shapes=[(1,)], output_dtypes=[mx.float32], grid=(1, 1, 1),
                        threadgroup=(1, 1, 1), **keywords)
        return out.item()
    warnings.simplefilter("always")
"""
NO_GPU = pytest.mark.skipif(mx.is_available(mx.Device(mx.gpu)), reason="MLX has a GPU here")


@NO_GPU
def test_a_kernel_for_a_gpu_runs_on_the_cpu_and_warns_once():
    done = script(
        ON_GPU
        + """
    print(launch(stream=mx.gpu), launch(stream=mx.Device(mx.gpu)), launch(stream=mx.cpu), launch())
    """
    )
    assert done.stdout == "3.0 3.0 3.0 3.0\n"
    warning = (
        "RuntimeWarning: [metal_kernel] MLX has no GPU here: kernels that are to run on it run on the CPU. "
        "KILN_STRICT_DEVICE=1 makes this an error."
    )
    assert done.stderr.count(warning) == 1
    # It names the line of the call.
    assert done.stderr.startswith("<string>:")


@NO_GPU
def test_a_kernel_for_a_gpu_warns_at_the_callers_line_after_install():
    done = script(
        ON_GPU.replace("kiln.mlx.metal_kernel(", "kiln.mlx.install(); kernel = mx.fast.metal_kernel(")
        + "    print(launch(stream=mx.gpu))"
    )
    assert done.stdout == "3.0\n"
    assert done.stderr.startswith("<string>:")


@NO_GPU
def test_strictly_a_kernel_for_a_gpu_is_an_error():
    done = script(
        ON_GPU
        + """
    for keywords in ({"stream": mx.gpu}, {"stream": mx.cpu}):
        try:
            print(launch(**keywords))
        except kiln.UnsupportedError as error:
            print(error)
    """,
        environment={"KILN_STRICT_DEVICE": "1"},
    )
    assert done.stderr == ""
    assert done.stdout == (
        "[metal_kernel] The kernel is to run on MLX's GPU, and MLX has no GPU here. Without KILN_STRICT_DEVICE=1 it "
        "would run on the CPU.\n3.0\n"
    )


# ---- whose arrays come out, and which may go in

ONE = make("out[0] = 1;", inputs=[])
OF_X = make("out[0] = x[0];")


def test_results_belong_to_the_library_of_the_first_array():
    assert type(call(OF_X, [EIGHT], dtype=mx.float32)[0]) is np.ndarray
    assert type(call(OF_X, [mx.array(EIGHT)], dtype=np.float32)[0]) is mx.array
    both = make("out[0] = x + y[0];", inputs=["x", "y"])
    for other in (2.5, np.float32(2.5), True):
        assert type(call(both, [other, mx.array(EIGHT)])[0]) is mx.array
        assert type(call(both, [other, EIGHT])[0]) is np.ndarray


def test_without_arrays_results_belong_to_the_library_of_the_dtypes():
    assert type(call(ONE, [], dtype=mx.float32)[0]) is mx.array
    assert type(call(ONE, [], dtype=np.float32)[0]) is np.ndarray
    assert type(call(ONE, [], dtype=np.dtype(np.float32))[0]) is np.ndarray
    assert type(call(ONE, [], dtype="float32")[0]) is np.ndarray
    scalar = make("out[0] = x;")
    assert type(call(scalar, [2.5], dtype=mx.float32)[0]) is mx.array
    # Those of the template count, too.
    assert type(call(ONE, [], dtype="float32", template=[("T", mx.float16)])[0]) is mx.array


@pytest.mark.parametrize("inputs", [[mx.array(EIGHT)], [EIGHT], [np.float32(3)], [3.0]])
@pytest.mark.parametrize("dtype", [np.float32, "float32", mx.float32])
def test_kiln_mlx_always_gives_mlx_arrays(inputs, dtype):
    kernel = make("out[0] = 1;", module=kiln.mlx)
    (out,) = call(kernel, inputs, shape=(1,), dtype=dtype)
    assert type(out) is mx.array
    assert out.tolist() == [1]


def test_kiln_mlx_takes_numpy_arrays_of_any_size():
    kernel = make(module=kiln.mlx)
    for size in (1, 8, 100):
        x = np.arange(size, dtype=np.float32)
        np.testing.assert_array_equal(np.array(call(kernel, [x], shape=(size,))[0]), x * 2)
    # An array without dimensions is an array, not a number.
    text = call(make("out[0] = x;", module=kiln.mlx), [np.array(3, np.uint8)], shape=(1,), method="source_for")
    assert "const constant uint8_t& x [[buffer(0)]]" in text


VIEWS: dict[str, Callable[[Any], Any]] = {
    "whole": lambda a: a,
    "sliced": lambda a: a[1:3, 2:],
    "stepped": lambda a: a[::2, ::3],
    "transposed": lambda a: a.T,
    "broadcast": lambda a: np.broadcast_to(a[1], (4, 6)),
    "reversed": lambda a: a[::-1, ::-1],
    "reversed and stepped": lambda a: a[::-2, 4:0:-1],
    "empty": lambda a: a[:0],
    "fortran": np.asfortranarray,
    "read-only": lambda a: np.lib.stride_tricks.as_strided(a, writeable=False),
    "new axis": lambda a: a[:, None, ::2],
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("contiguous", [True, False])
def test_views_of_numpy_arrays(view, contiguous):
    x = VIEWS[view](np.arange(24, dtype=np.float32).reshape(4, 6))
    before = x.copy()
    index = "i" if contiguous else "elem_to_loc<int64_t>(i, x_shape, x_strides, x_ndim)"
    kernel = make(INDEX + f"out[i] = x[{index}] * 2;", ensure_row_contiguous=contiguous)
    (out,) = call(kernel, [x], shape=x.shape)
    np.testing.assert_array_equal(out, x * 2)
    np.testing.assert_array_equal(x, before)
    assert out.flags.c_contiguous and out.flags.owndata and out.flags.writeable


def test_numpy_arrays_that_are_not_laid_out_as_the_machine_wants_them():
    swapped = EIGHT.astype(">f4")
    np.testing.assert_array_equal(call(make(), [swapped])[0], EIGHT * 2)
    unaligned = np.frombuffer(b"\0" + EIGHT.tobytes(), np.uint8)[1:].view(np.float32)
    assert not unaligned.flags.aligned
    np.testing.assert_array_equal(call(make(), [unaligned])[0], EIGHT * 2)
    # Strides that are no whole elements.
    packed = np.zeros(8, np.dtype([("flag", np.uint8), ("value", np.float32)]))
    packed["value"] = EIGHT
    kernel = make(INDEX + "out[i] = x[i * x_strides[0]] * 2;", ensure_row_contiguous=False)
    np.testing.assert_array_equal(call(kernel, [packed["value"]])[0], EIGHT * 2)


class Matrix(np.ndarray):
    pass


def test_subclasses_of_numpys_array():
    (out,) = call(make(), [EIGHT.view(Matrix)])
    assert type(out) is np.ndarray
    np.testing.assert_array_equal(out, EIGHT * 2)


DTYPES = {
    "bool": "bool",
    **{f"{sign}int{bits}": f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "float16": "float16_t",
    "bfloat16": "bfloat16_t",
    "float32": "float",
    "complex64": "complex64_t",
}


def numpy_dtype(name):
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype_goes_through(name):
    kernel = make(INDEX + "out[i] = x[i];")
    dtype = numpy_dtype(name)
    values = np.array([0, 1, 1, 0, 1, 0, 0, 1, 1]).astype(dtype) if name == "bool" else np.arange(9).astype(dtype)
    (out,) = call(kernel, [values], shape=(9,), dtype=name)
    assert out.dtype == dtype
    np.testing.assert_array_equal(out, values)
    assert f"const device {DTYPES[name]}* x" in call(kernel, [values], shape=(9,), dtype=name, method="source_for")

    array = mx.array([bool(v) for v in values]) if name == "bool" else mx.arange(9).astype(getattr(mx, name))
    (out,) = call(kernel, [array], shape=(9,), dtype=name)
    assert out.dtype == array.dtype
    assert mx.array_equal(out, array).item()


class Index:
    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value


SCALARS = [
    (True, "bool", 1),
    (False, "bool", 0),
    (0, "int32_t", 0),
    (2**31 - 1, "int32_t", 2**31 - 1),
    (-(2**31), "int32_t", -(2**31)),
    (2**31, "int64_t", 2**31),
    (-(2**63), "int64_t", -(2**63)),
    (2.5, "float", 2.5),
    (float("-inf"), "float", float("-inf")),
    (1.5 - 2j, "complex64_t", 1.5 - 2j),
    (Index(7), "int32_t", 7),
    (Index(2**40), "int64_t", 2**40),
    (np.bool_(True), "bool", 1),
    (np.int8(-7), "int8_t", -7),
    (np.int16(-300), "int16_t", -300),
    (np.int32(7), "int32_t", 7),
    (np.int64(7), "int64_t", 7),
    (np.longlong(7), "int64_t", 7),
    (np.uint8(200), "uint8_t", 200),
    (np.uint16(2**16 - 1), "uint16_t", 2**16 - 1),
    (np.uint32(2**32 - 1), "uint32_t", 2**32 - 1),
    (np.uint64(2**64 - 1), "uint64_t", 2**64 - 1),
    (np.float16(2.5), "float16_t", 2.5),
    (np.float32(0.1), "float", float(np.float32(0.1))),
    # As in MLX's own kernels; Metal has no double.
    (np.float64(2.5), "float", 2.5),
    (np.complex64(1 - 2j), "complex64_t", 1 - 2j),
    (np.complex128(1 - 2j), "complex64_t", 1 - 2j),
    (np.array(7, np.int16), "int16_t", 7),
    (np.arange(3, dtype=np.uint8)[1], "uint8_t", 1),
]


@pytest.mark.parametrize("module", [kiln, kiln.mlx])
@pytest.mark.parametrize(("value", "metal", "expected"), SCALARS)
def test_numbers_among_the_inputs(module, value, metal, expected):
    kernel = make("out[0] = x;", module=module)
    dtype = next(name for name, spelling in DTYPES.items() if spelling == metal)
    text = call(kernel, [value], shape=(1,), dtype=dtype, method="source_for")
    assert f"const constant {metal}& x [[buffer(0)]]" in text
    assert np.array(call(kernel, [value], shape=(1,), dtype=dtype)[0]).tolist() == [expected]


def test_kernels_without_inputs_and_without_elements():
    kernel = make(INDEX + "out[i] = i;", inputs=[])
    np.testing.assert_array_equal(call(kernel, [], shape=(8,))[0], EIGHT)
    assert call(kernel, [], shape=(0, 3))[0].shape == (0, 3)
    assert call(kernel, [], shape=())[0].shape == ()


# ---- dtypes


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        *((name, numpy_dtype(name)) for name in DTYPES),
        *((numpy_dtype(name), numpy_dtype(name)) for name in DTYPES),
        *((numpy_dtype(name).type, numpy_dtype(name)) for name in DTYPES),
        *((getattr(mx, "bool_" if name == "bool" else name), numpy_dtype(name)) for name in DTYPES),
        (np.intp, np.dtype(np.int64)),
        (np.longlong, np.dtype(np.int64)),
        (np.dtype(">f4"), np.dtype(np.float32)),
    ],
)
def test_dtypes_of_any_library_or_strings(given, expected):
    kernel = make("out[0] = T(1);")
    (out,) = call(kernel, [EIGHT], shape=(1,), dtype=given, template=[("T", given)])
    assert out.dtype == expected
    assert out.astype(np.complex64).tolist() == [1]


@pytest.mark.parametrize(
    "given", [bool, int, float, complex, np.complex128, np.longdouble, np.str_, object, "<f4", "f4"]
)
def test_what_is_no_dtype(given):
    with pytest.raises((TypeError, ValueError), match="`output_dtypes`"):
        call(make(), [EIGHT], dtype=given)


# ---- looking inside


def test_source_for_is_what_verbose_prints_and_what_is_compiled(capsys):
    for module, x in ((kiln, EIGHT), (kiln.mlx, mx.array(EIGHT))):
        kernel = make(module=module, name="any name")
        text = call(kernel, [x], method="source_for")
        assert capsys.readouterr().out == ""
        call(kernel, [x], verbose=True)
        assert capsys.readouterr().out == f"Generated source code for `any name`:\n```\n{text}\n```\n"
        compiled = call(kernel, [x], method="compile")
        assert compiled.source == text
        assert len(kernel.history) <= 1  # with MLX the result was not asked for


def test_source_for_runs_and_compiles_nothing():
    kernel = make("this is no Metal at all")
    assert "this is no Metal at all" in call(kernel, [EIGHT], method="source_for")
    assert kernel.history == []


def test_what_compile_returns():
    kernel = make("threadgroup float shared[64];\nshared[0] = x[0];\n" + DOUBLE_IT + "\nout[0] += shared[1];")
    compiled = call(kernel, [EIGHT], method="compile")
    assert isinstance(compiled, kiln.CompiledKernel)
    assert kernel.history == []
    assert compiled.target == "cpu"
    assert compiled.architecture.startswith("x86-64")
    assert compiled.engine == _core.cpu_engine()
    assert compiled.engine_reason == ENGINE_REASON
    assert compiled.threadgroup_memory_bytes == 256
    assert type(compiled.machine_code) is bytes
    assert 0 < len(compiled.machine_code) == compiled.code_bytes
    assert compiled.compile_ms > 0
    assert repr(compiled) == (
        f"<kiln.CompiledKernel `k` for {compiled.architecture}, {compiled.code_bytes} bytes of code>"
    )
    # The launch finds it.
    call(kernel, [EIGHT])
    assert [launch.code for launch in kernel.history] == ["memory"]


def test_the_history():
    kernel = make(INDEX + "out[i] = x[i] * 2 + 17.0f;")
    assert kernel.history == []
    call(kernel, [EIGHT])
    call(kernel, [EIGHT])
    call(kernel, [EIGHT.astype(np.int32)])
    call(kernel, [EIGHT[:7]], shape=(7,))  # in another address space
    call(kernel, [np.tile(EIGHT, 3)], shape=(24,))  # other shapes are the same code
    history = kernel.history
    assert [launch.code for launch in history] == ["compiled", "memory", "compiled", "compiled", "memory"]
    for launch in history:
        assert isinstance(launch, kiln.Launch)
        assert (launch.target, launch.engine, launch.engine_reason) == ("cpu", _core.cpu_engine(), ENGINE_REASON)
        assert launch.specialized is False
        assert (launch.compile_ms > 0) == (launch.code == "compiled")
        assert launch.run_ms > 0
    # Another kernel object with the same meaning finds the code, too.
    again = make(INDEX + "out[i] = x[i] * 2 + 17.0f;")
    call(again, [EIGHT])
    assert [launch.code for launch in again.history] == ["memory"]


def test_the_history_keeps_the_last_thousand():
    kernel = make(INDEX + "out[i] = x[i] * 2 + 18.0f;")
    for _ in range(1003):
        call(kernel, [EIGHT])
    history = kernel.history
    assert len(history) == 1000
    assert {launch.code for launch in history} == {"memory"}


def test_launches_of_lazy_arrays_are_listed_when_they_ran():
    kernel = make(module=kiln.mlx)
    (out,) = call(kernel, [mx.array(EIGHT)])
    assert kernel.history == []
    mx.eval(out)
    assert len(kernel.history) == 1


def test_kernels_show_their_names():
    assert repr(make(name="my kernel")) == "<kiln.Kernel `my kernel`>"
    assert make(name="my kernel").name == "my kernel"


# ---- settings

SETTING = """
    import numpy as np
    import kiln
    kernel = kiln.metal_kernel("k", ["x"], ["out"], "out[0] = x[i_at];", header="constant int i_at = 100;\\n")
    def launch(kernel=kernel):
        return kernel(inputs=[np.ones(8, np.float32)], output_shapes=[(1,)], output_dtypes=["float32"],
                      grid=(1, 1, 1), threadgroup=(1, 1, 1))
"""


@pytest.mark.parametrize("threads", [1, 3])
def test_the_number_of_threads(threads):
    done = script("from kiln import _core\nprint(_core.cpu_threads())", environment={"KILN_CPU_THREADS": str(threads)})
    assert done.stdout == f"{threads}\n", done


@pytest.mark.parametrize(
    ("variable", "value", "expected"),
    [
        ("KILN_CPU_THREADS", "0", "a number from 1 to 1024"),
        ("KILN_CPU_THREADS", "many", "a number from 1 to 1024"),
        ("KILN_BOUNDS", "maybe", "on or off"),
    ],
)
def test_a_setting_with_a_value_that_it_cannot_have(variable, value, expected):
    done = script(
        """
    import kiln
    for _ in range(2):
        try:
            kiln.metal_kernel("k", ["x"], ["out"], "out[0] = 1;")
        except ValueError as error:
            print(error)
    """,
        environment={variable: value},
    )
    message = f"environment variable {variable} has the value `{value}`, expected {expected}\n"
    assert done.stdout == message * 2, done


def test_guards_are_the_settings_where_a_kernel_does_not_say():
    text = (
        SETTING
        + """
    for options in (None, {"bounds": "on"}, {"bounds": "off"}):
        kernel = kiln.metal_kernel("k", ["x"], ["out"], "uint i = thread_position_in_grid.x; out[i] = x[i];",
                                   compile_options=options)
        print(kernel.compile(inputs=[np.ones(8, np.float32)], output_shapes=[(8,)], output_dtypes=["float32"],
                             grid=(8, 1, 1), threadgroup=(8, 1, 1)).code_bytes)
    """
    )
    by_default, on, off = script(text).stdout.split()
    assert by_default == on
    assert int(off) < int(on)
    assert script(text, environment={"KILN_BOUNDS": "off"}).stdout.split() == [off, on, off]
    assert script(text, environment={"KILN_BOUNDS": "on"}).stdout.split() == [on, on, off]


def test_a_compiler_that_is_not_there():
    done = script(
        SETTING
        + """
    for _ in range(2):
        try:
            launch()
        except kiln.UnsupportedError as error:
            print(error)
    """,
        environment={"KILN_COMPILER": "/nowhere/compiler.so"},
    )
    message = (
        "Kiln's compiler is missing: /nowhere/compiler.so: cannot open shared object file: No such file or directory. "
        "Expected /nowhere/compiler.so; installing Kiln again brings it, and KILN_COMPILER names another file.\n"
    )
    assert done.stdout == message * 2, done


def test_a_compiler_that_is_none():
    done = script(
        SETTING
        + """
    try:
        launch()
    except kiln.UnsupportedError as error:
        print(error)
    """,
        environment={"KILN_COMPILER": "libm.so.6"},
    )
    assert done.stdout == (
        "libm.so.6 belongs to another version of Kiln; installing Kiln again brings one that fits\n"
    ), done


# ---- importing


def test_kiln_does_not_import_array_libraries():
    done = script("import sys, kiln\nprint([n for n in ('numpy', 'mlx', 'ml_dtypes') if n in sys.modules])")
    assert done.stdout == "[]\n", done


NO_MLX = "MLX is not installed: pip install 'mlx[cpu]==0.32.4' (no MLX here)"
NO_NUMPY = "NumPy is not installed: pip install numpy (no NumPy here)"


def test_without_mlx_kiln_serves_numpy(tmp_path):
    (tmp_path / "mlx").mkdir()
    (tmp_path / "mlx" / "__init__.py").write_text("raise ImportError('no MLX here')")
    done = script(
        SETTING
        + """
    print(launch())
    try:
        import kiln.mlx
    except ImportError as error:
        print(error)
    """,
        environment={"PYTHONPATH": str(tmp_path)},
    )
    assert done.stdout == f"[array([0.], dtype=float32)]\n{NO_MLX}\n", done


def test_without_mlx_no_program_is_run(tmp_path):
    (tmp_path / "mlx").mkdir()
    (tmp_path / "mlx" / "__init__.py").write_text("raise ImportError('no MLX here')")
    (tmp_path / "prog.py").write_text("print('ran')")
    done = python("-m", "kiln", "run", "prog.py", cwd=tmp_path, environment={"PYTHONPATH": str(tmp_path)})
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"python -m kiln run: {NO_MLX}\n")


def test_another_version_of_mlx_says_which_parts_are_there():
    done = script(
        """
    import mlx.core
    mlx.core.__version__ = "0.29.4"
    try:
        import kiln.mlx
    except ImportError as error:
        print(error)
    """
    )
    there = importlib.metadata.version("mlx")
    assert done.stdout == (
        f"Kiln's part for MLX is not there for version 0.29.4; those that are there: {there}. pip install "
        "'mlx[cpu]==0.32.4' brings a version that Kiln is built for, and installing Kiln from its sources builds for "
        "the one there.\n"
    ), done


PARTS = ("0.30.0", "0.30.1-0.30.3", "0.30.4-0.31.1", "0.32.4", "0.32.10", "0.33.0.dev20261127+0a1b2c")


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("0.30.0", "0.30.0"),
        ("0.30.1", "0.30.1-0.30.3"),
        ("0.30.2", "0.30.1-0.30.3"),
        ("0.30.6", "0.30.4-0.31.1"),
        ("0.31.1", "0.30.4-0.31.1"),
        ("0.32.4", "0.32.4"),
        ("0.32.10", "0.32.10"),
        ("0.33.0.dev20261127+0a1b2c", "0.33.0.dev20261127+0a1b2c"),
        ("0.33.0", None),
        ("0.31.2", None),
        ("0.29.9", None),
        ("0.32.4.dev20261127", None),
        ("1.0.0", None),
    ],
)
def test_the_part_for_mlx_is_chosen_by_its_version(version, expected, tmp_path, monkeypatch):
    suffix = importlib.machinery.EXTENSION_SUFFIXES[0]
    for part in PARTS:
        (tmp_path / f"_mlx-{part}{suffix}").touch()
    (tmp_path / "_mlx-0.31.2.cpython-399-x86_64-linux-gnu.so").touch()  # another Python's
    monkeypatch.setattr(_libraries, "__file__", str(tmp_path / "_libraries.py"))
    assert tuple(_libraries.mlx_parts()) == PARTS
    if expected is not None:
        assert _libraries._mlx_part_for(version).name == f"_mlx-{expected}{suffix}"
        return
    there = "0.30.0, 0.30.1 to 0.30.3, 0.30.4 to 0.31.1, 0.32.4, 0.32.10, 0.33.0.dev20261127+0a1b2c"
    with pytest.raises(
        ImportError, match=re.escape(f"not there for version {version}; those that are there: {there}.")
    ):
        _libraries._mlx_part_for(version)


def test_a_part_for_mlx_that_cannot_be_loaded_says_so(tmp_path, monkeypatch):
    broken = tmp_path / f"_mlx-{importlib.metadata.version('mlx')}{importlib.machinery.EXTENSION_SUFFIXES[0]}"
    broken.write_text("no library")
    monkeypatch.setattr(_libraries, "__file__", str(tmp_path / "_libraries.py"))
    monkeypatch.delitem(sys.modules, "kiln._mlx", raising=False)
    with pytest.raises(ImportError, match=r"Kiln's part for MLX cannot be loaded: .*brings MLX anew\."):
        _libraries.import_mlx()


def test_a_python_for_which_the_wheel_has_no_part_for_mlx_says_so():
    done = script(
        """
    import sys
    import kiln
    sys.version_info = (3, 99, 0)
    try:
        import kiln.mlx
    except ImportError as error:
        print(error)
    """
    )
    here = f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert done.stdout == (
        f"This wheel of Kiln has no part for MLX for Python 3.99, only for {here}. Kernels take the arrays of other "
        "libraries; `pip install .` in a clone of Kiln builds the part for this Python.\n"
    ), done


def test_a_type_of_ml_dtypes_is_numpys_wherever_it_comes_first():
    done = script(
        """
    import kiln
    import ml_dtypes
    kernel = kiln.metal_kernel("k", [], ["out"], "out[0] = 1.5;")
    (out,) = kernel(inputs=[], output_shapes=[(1,)], output_dtypes=[ml_dtypes.bfloat16], grid=(1, 1, 1),
                    threadgroup=(1, 1, 1))
    print(type(out).__module__, out.dtype, out)
    """
    )
    assert done.stdout == "numpy bfloat16 [1.5]\n", done


@pytest.fixture
def without_numpy(tmp_path):
    (tmp_path / "numpy").mkdir()
    (tmp_path / "numpy" / "__init__.py").write_text("raise ImportError('no NumPy here')")
    return {"PYTHONPATH": str(tmp_path)}


def test_without_numpy_kiln_serves_mlx(without_numpy):
    done = script(
        """
    import kiln
    import mlx.core as mx
    kernel = kiln.metal_kernel("k", ["x"], ["out"], "out[0] = 2 * x;")
    call = {"inputs": [3], "output_shapes": [(1,)], "grid": (1, 1, 1), "threadgroup": (1, 1, 1)}
    print(kernel(output_dtypes=[mx.float32], **call))
    try:
        kernel(output_dtypes=["float32"], **call)
    except ImportError as error:
        print(error)
    """,
        environment=without_numpy,
    )
    assert done.stdout == f"[array([6], dtype=float32)]\n{NO_NUMPY}\n", done


def test_doctor_without_numpy(without_numpy):
    done = python("-m", "kiln", "doctor", environment=without_numpy)
    lines = {line.split()[0]: line for line in done.stdout.splitlines() if line.startswith("  ")}
    assert lines["numpy"].endswith(f"not usable  {NO_NUMPY}")
    for name in ("libkiln_compiler.so", "cpu", "mlx"):
        assert "not usable" not in lines[name]
    assert (done.returncode, done.stderr) == (0, "")


def test_doctor_without_any_array_library(without_numpy, tmp_path):
    for library, title in (("mlx", "MLX"), ("torch", "PyTorch"), ("jax", "JAX")):
        (tmp_path / library).mkdir()
        (tmp_path / library / "__init__.py").write_text(f"raise ImportError('no {title} here')")
    done = python("-m", "kiln", "doctor", environment=without_numpy)
    lines = {line.split()[0]: line for line in done.stdout.splitlines() if line.startswith("  ")}
    assert lines["libkiln_compiler.so"].endswith("not usable  cannot be tried without an array library; see below")
    assert lines["numpy"].endswith(f"not usable  {NO_NUMPY}")
    assert lines["mlx"].endswith(f"not usable  {NO_MLX}")
    assert (done.returncode, done.stderr) == (1, "")


def test_doctor_needs_no_metadata(monkeypatch):
    """A library may be there without pip having installed it."""

    def version(package):
        raise importlib.metadata.PackageNotFoundError(package)

    monkeypatch.setattr(importlib.metadata, "version", version)
    found = {row.name: row for row in _doctor.findings()["Array libraries"]}
    for name in ("numpy", "mlx"):
        assert found[name].usable
        assert found[name].detail.startswith("of unknown version, with")


def test_what_compiling_went_through_is_kept_in_a_folder(tmp_path):
    """KILN_DUMP_DIR: each kernel that is compiled leaves a folder, also one that does not compile."""
    folder = tmp_path / "not" / "there"
    program = textwrap.dedent(
        """
        import kiln
        call = {"inputs": [], "output_shapes": [(1,)], "output_dtypes": ["float32"], "grid": (1, 1, 1)}
        one = kiln.metal_kernel("a/b", [], ["y"], "y[0] = 1;")
        for _ in range(2):
            one(**call, threadgroup=(1, 1, 1))
        kiln.metal_kernel("a/b", [], ["y"], "y[0] = 2;")(**call, threadgroup=(1, 1, 1))
        try:
            kiln.metal_kernel("wrong", [], ["y"], "y[0] = z;")(**call, threadgroup=(1, 1, 1))
        except kiln.CompileError:
            pass
        """
    )
    environment = {**os.environ, "KILN_DUMP_DIR": str(folder)}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)
    assert sorted(path.name for path in folder.iterdir()) == ["a_b-0", "a_b-1", "wrong-0"]
    stages = ["clang", "guarded", "lanes", "components", "structured", "widened", "optimized"]
    if _core.cpu_engine() == "scalar":
        stages[2:6] = []
    names = [f"{number:02}-{stage}.ll" for number, stage in enumerate(stages, 1)]
    names += [f"{len(names) + 1:02}-assembly.s", "engine.txt", "generated.metal", "log.txt"]
    assert sorted(path.name for path in (folder / "a_b-0").iterdir()) == names
    assert "y[0] = 1;" in (folder / "a_b-0" / "generated.metal").read_text()
    assert "ret" in (folder / "a_b-0" / names[-4]).read_text()
    assert (folder / "a_b-0" / "engine.txt").read_text() == f"{_core.cpu_engine()}: {ENGINE_REASON}\n"
    assert "undeclared identifier 'z'" in (folder / "wrong-0" / "log.txt").read_text()

    (tmp_path / "file").write_text("")
    environment["KILN_DUMP_DIR"] = str(tmp_path / "file" / "folder")
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "ValueError: environment variable KILN_DUMP_DIR names a folder that cannot be written to: "
        f"`{tmp_path}/file/folder`: Not a directory"
    )


def test_what_is_kept_of_compiling_does_not_change_the_code(tmp_path):
    """Values have names in the stages. The scalar engine's code is that for x86-64."""
    program = textwrap.dedent(
        """
        import hashlib, sys
        sys.path[:0] = sys.argv[1:]
        import kiln
        from gpu_code import code_of_body
        from launch_bodies import BODIES, kernel_of
        for name in ("barrier_in_a_loop", "compare_and_exchange", "top_k"):
            for architecture in ("x86-64", "x86-64-v3", "x86-64-v4", "sm_90"):
                entry = code_of_body(BODIES[name], kernel_of(name, kiln.metal_kernel), architecture)
                code = entry[entry.index(b".version" if architecture == "sm_90" else b"KNL1"):]
                print(name, architecture, len(code) > 500, hashlib.sha256(code).hexdigest())
        """
    )
    folder = Path(__file__).parent

    def codes(**settings):
        environment = {key: value for key, value in os.environ.items() if key != "KILN_DUMP_DIR"} | settings
        command = [sys.executable, "-c", program, str(folder), str(folder.parent)]
        done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
        assert done.stdout.count("True") == 12
        return done.stdout

    assert codes() == codes(KILN_DUMP_DIR=str(tmp_path))
    assert "%old" in (tmp_path / "compare_and_exchange-0" / "01-clang.ll").read_text()
