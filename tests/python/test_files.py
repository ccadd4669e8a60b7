"""docs/language.md 1.7: kernels in files, and what they include."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import kiln
import kiln.mlx
import mlx.core as mx
import numpy as np
import pytest
from interfaces import INTERFACES

X = np.arange(8, dtype=np.float32)
CALL = {
    "inputs": [X],
    "output_shapes": [(8,)],
    "output_dtypes": ["float32"],
    "grid": (8, 1, 1),
    "threadgroup": (8, 1, 1),
}


def raised(error, function, /, *arguments, **keywords):
    with pytest.raises(error) as caught:
        function(*arguments, **keywords)
    assert type(caught.value) is error
    return caught.value


def python(folder, *arguments, status=0, **environment):
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == status, done.stderr
    return done


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, empty."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(**files):
    """Files of the current folder; `__` stands for `/`, and `_` at the end of a name's first part for its dot."""
    for name, text in files.items():
        path = Path(name.replace("__", "/").replace("_", "."))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, newline="")


def make(source="k.metal", header="", **options):
    source = Path(source) if isinstance(source, str) and source.endswith(".metal") else source
    return kiln.metal_kernel("k", ["x"], ["y"], source, header=header, compile_options=options)


def compile_error(kernel, **changes):
    error = raised(kiln.CompileError, kernel, **(CALL | changes))
    begin = "[metal_kernel] `k` does not compile.\n"
    assert str(error).startswith(begin)
    return str(error).removeprefix(begin), error


INCREMENT = "uint i = thread_position_in_grid.x;\nout[i] = x[i] + 1;"


@pytest.mark.parametrize("interface", INTERFACES, ids=lambda interface: interface.label)
def test_every_interface_takes_a_path(interface, folder):
    body = "int i = blockIdx.x; out[i] = ADD(x[i]);" if interface.generation == "cuda" else (
        "uint i = thread_position_in_grid.x;\nout[i] = ADD(x[i]);"
    )  # fmt: skip
    write(k_metal=body, k_h="#define ADD(a) (a + 1)\n")
    made = {"source": Path("k.metal"), "header": Path("k.h")}
    text = interface.call("source_for", made=made)
    assert text == interface.call("source_for", made={"source": body, "header": "#define ADD(a) (a + 1)\n"})
    if interface.generation != "cuda":
        assert interface.first(interface.call(made=made)).tolist() == (np.arange(8) + 1).tolist()


def test_a_path_may_be_positional_in_the_dictionary_generation(folder):
    write(k_metal=INCREMENT)
    kernel = kiln.metal_kernel("k", Path("k.metal"))
    out = kernel(
        inputs={"x": X}, output_shapes={"out": (8,)}, output_dtypes={"out": "float32"}, grid=(8, 1, 1),
        threadgroup=(8, 1, 1),
    )  # fmt: skip
    assert out["out"].tolist() == (X + 1).tolist()


class Named:
    def __init__(self, path):
        self.path = path

    def __fspath__(self):
        return self.path


def test_whatever_has_a_path_is_one(folder):
    write(k_metal="y[0] = 3;")
    for path in (Path("k.metal"), folder / "k.metal", Named("k.metal"), Named(b"k.metal")):
        assert make(path)(**CALL)[0][0] == 3
    # A string is text, and one that can only be a path is refused.
    for text in ("k.metal", " kernels/my kernel.cuh\n", "/tmp/k.hpp", "k.txt", "k-2.metal"):
        for argument in ("source", "header"):
            names: dict[str, Any] = {"source": "", argument: text}
            for interface, make_kernel in (("metal_kernel", kiln.metal_kernel), ("cuda_kernel", kiln.cuda_kernel)):
                with pytest.raises(ValueError) as error:
                    make_kernel("k", input_names=["x"], output_names=["y"], **names)
                path = text.strip()
                assert str(error.value) == (
                    f"[{interface}] Expected `{argument}` to be text but got the path {path!r}: write "
                    f"pathlib.Path({path!r}) for the file."
                )
    for text in ("y[0] = s.h", "// see k.metal", '#include "k.h"', "y[0] = 3; // k.metal", "k", "a\nb.h"):
        kiln.metal_kernel("k", ["x"], ["y"], text)
    own = RuntimeError("mine")

    class Refuses:
        def __fspath__(self):
            raise own

    assert raised(RuntimeError, make, Refuses()) is own


def test_includes_beside_the_file_and_in_folders(folder):
    write(
        k__body_metal='#include <metal_stdlib>\n#include "steps.h"\nuint i = thread_position_in_grid.x;\n'
        'float v = x[i];\n#include "sub/step.h"\n#include "step.h"\ny[i] = TIMES(v);',
        k__steps_h='#define TIMES(a) (FACTOR * a)\n#include "factor.h"\n',
        k__sub__step_h="v = v + 1;\n",
        include__step_h="v = v * 10;\n",
        include__factor_h="#define FACTOR 2\n",
        other__factor_h="#define FACTOR 3\n",
    )
    kernel = make("k/body.metal", include_dirs=["include", Path("other")])
    assert kernel(**CALL)[0].tolist() == (2 * 10 * (X + 1)).tolist()
    kernel = make("k/body.metal", include_dirs=["other", "include"])
    assert kernel(**CALL)[0].tolist() == (3 * 10 * (X + 1)).tolist()


def test_text_includes_from_folders_only(folder):
    write(a_h="#define A 5\n", include__b_h="#define B 6\n")
    body = "y[0] = A + B;"
    assert make(body, '#include "a.h"\n#include <b.h>', include_dirs=[".", "include"])(**CALL)[0][0] == 11
    message, _ = compile_error(make(body, '#include "a.h"\n'))
    assert message == (
        "header:1:10: error: 'a.h' file not found; text is in no folder, and `include_dirs` names none\n"
        '  #include "a.h"\n           ^'
    )


def test_a_header_that_defines_functions(folder):
    write(
        k_metal="uint i = thread_position_in_grid.x;\ny[i] = twice(x + i);",
        k_h='#include "twice.h"\n',
        twice_h="#pragma once\n#include <metal_stdlib>\nusing namespace metal;\n"
        "template <typename T>\nT twice(const device T* a) {\n  threadgroup T shared_[1];\n  return 2 * *a;\n}\n"
        # An overload that differs in the address space only is merged, as in a header.
        "template <typename T>\nT twice(const constant T* a) {\n  threadgroup T shared_[1];\n  return 2 * *a;\n}\n",
    )
    assert make("k.metal", Path("k.h"))(**CALL)[0].tolist() == (2 * X).tolist()


def test_guards_and_once(folder):
    write(
        k_metal="y[0] = A;",
        k_h='#include "a.h"\n#include "a.h"\n#include "b.h"\n#include "sub/../b.h"\n',
        a_h="#ifndef A_H\n#define A_H\nconstant int A = 1;\n#include \"b.h\"\n#endif",
        b_h="#pragma once\nconstant int B = 1;\n#include \"a.h\"\n",
        sub__c_h="",
    )  # fmt: skip
    assert make("k.metal", Path("k.h"))(**CALL)[0][0] == 1


def test_has_include(folder):
    write(
        k_metal='#if __has_include("a.h") && !__has_include("b.h") && !__has_include(<a.h>)\n#include "a.h"\n#endif\n'
        "y[0] = A;",
        a_h="#define A 4\n",
    )
    assert make()(**CALL)[0][0] == 4


def test_what_is_missing_is_an_error_where_the_preprocessor_comes_to_it(folder):
    write(
        k__body_metal='#if 0\n#include "missing.h"\n#endif\n#if OTHER\n#  include "a.h"\n#else\n#  include "b.h"\n#endif\n',
        k__b_h='y[0] = 1;\n\t#include <missing.h> // größer\n',
    )  # fmt: skip
    message, error = compile_error(make("k/body.metal", include_dirs=["include"]))
    assert message == (
        "k/b.h:2:11: error: 'missing.h' file not found in include\n  \t#include <missing.h> // größer\n  \t         ^"
    )
    assert error.diagnostics[0] == kiln.Diagnostic(
        "error", "'missing.h' file not found in include", "included", 2, 11, "\t#include <missing.h> // größer", "k/b.h"
    )
    message, _ = compile_error(make("k/body.metal", "#define OTHER 1\n", include_dirs=["include", "more"]))
    assert message == (
        "k/body.metal:5:12: error: 'a.h' file not found in k, include, more\n  #  include \"a.h\"\n             ^"
    )
    write(body_metal='#include "a.h"')
    message, _ = compile_error(make("body.metal"))
    assert message == "body.metal:1:10: error: 'a.h' file not found in .\n  #include \"a.h\"\n           ^"
    write(body_metal="#include <a.h>")
    message, _ = compile_error(make("body.metal"))
    assert message == (
        "body.metal:1:10: error: 'a.h' file not found; <…> is looked for in `include_dirs`, which names no folder\n"
        "  #include <a.h>\n           ^"
    )


def test_files_that_include_themselves_for_ever(folder):
    write(k_metal='#include "a.h"\n', a_h='#include "b.h"\n', b_h='#include "a.h"\n')
    message, _ = compile_error(make())
    assert message.startswith('b.h:1:10: error: #include nested too deeply\n  #include "a.h"\n           ^')


def test_the_compilers_own_files_cannot_be_included(folder):
    for name in ("kernel.metal", "kiln.cpp", "kiln/device_library.h", "kiln/device_library.pch"):
        message, _ = compile_error(make(f'#include "{name}"\ny[0] = 1;'))
        assert message.startswith(f"source:1:10: error: '{name}' file not found"), message


def test_errors_name_the_file(folder):
    write(
        k__body_metal='uint i = thread_position_in_grid.x;\r\n\ty[i] = größe(x[i]);\r\n',
        k__head_h='#include "sub/a.h"\nfloat größe(float a) { return f(a) + b; }\n',
        k__sub__a_h="#pragma once\nfloat f(float a) {\n\treturn a.x; // größer\n}\n",
    )  # fmt: skip
    kernel = make("k/body.metal", Path("k/head.h"))
    message, error = compile_error(kernel)
    assert message == (
        "k/sub/a.h:3:10: error: member reference base type 'float' is not a structure or union\n"
        "  \treturn a.x; // größer\n  \t        ^\n"
        "1 more error."
    )
    second = error.diagnostics[1]
    assert (second.text, second.file, second.line, second.column) == ("header", "k/head.h", 2, 40)
    assert second.source_line == "float größe(float a) { return f(a) + b; }"
    write(k__sub__a_h="#pragma once\nfloat f(float a) { return a; }\nconstant float b = 1;\n")
    # The kernel is what the files were when it was made.
    assert compile_error(kernel)[0] == message
    kernel = make("k/body.metal", Path("k/head.h"))
    assert kernel(**CALL)[0].tolist() == (X + 1).tolist()
    write(k__body_metal="\ty[0] = nothing;")
    message, _ = compile_error(make("k/body.metal"))
    assert (
        message == "k/body.metal:1:9: error: use of undeclared identifier 'nothing'\n  \ty[0] = nothing;\n  \t       ^"
    )
    # From elsewhere the same texts are the same kernel, and yet name their own files.
    write(other__body_metal="\ty[0] = nothing;")
    message, _ = compile_error(make("other/body.metal"))
    assert message.startswith("other/body.metal:1:9: error: ")
    assert str(raised(kiln.CompileError, kiln.metal_kernel("k", ["x"], ["y"], "\ty[0] = nothing;"), **CALL)).endswith(
        "source:1:9: error: use of undeclared identifier 'nothing'\n  \ty[0] = nothing;\n  \t       ^"
    )


def test_a_note_may_be_in_another_file(folder):
    write(k_metal="y[0] = half_of(x[0]);", k_h="template <typename T>\nT half_of(T a) {\n  return a.y;\n}")
    message, _ = compile_error(make("k.metal", '#include "k.h"\n', include_dirs=["."]))
    assert message == (
        "./k.h:3:11: error: member reference base type 'float' is not a structure or union\n    return a.y;\n            ^\n"
        "k.metal:1:8: note: in instantiation of function template specialization 'half_of<float>' requested here\n"
        "  y[0] = half_of(x[0]);\n         ^"
    )  # fmt: skip


def test_a_macro_of_an_included_file(folder):
    write(k_metal='#include "k.h"\ny[0] = ADD(x[0]);', k_h="\n#define ADD(a) (a + nothing)\n")
    message, _ = compile_error(make())
    assert message == (
        "k.metal:2:8: error: use of undeclared identifier 'nothing'\n  y[0] = ADD(x[0]);\n         ^\n"
        "k.h:2:21: note: expanded from macro 'ADD'\n  #define ADD(a) (a + nothing)\n                      ^"
    )


def test_functions_in_a_file_that_the_body_includes(folder):
    write(k_metal='#include "k.h"\ny[0] = f();', k_h="float f() { return 1; }\n")
    message, _ = compile_error(make())
    assert message == (
        "k.h:1:11: error: function definition is not allowed here; what the body includes is inside of the kernel's "
        "function: include this in `header`\n  float f() { return 1; }\n            ^\n1 more error."
    )


def test_what_is_not_supported_names_the_file(folder):
    write(k_metal='#include "k.h"\ny[0] = 1;', k_h="\ntexture2d<float> t;\n")
    error = raised(kiln.UnsupportedError, make(), **CALL)
    assert str(error) == (
        "[metal_kernel] `k` uses what is not supported.\n"
        "k.h:2:1: error: 'texture2d': textures are not supported\n  texture2d<float> t;\n  ^"
    )


def test_brackets_of_files(folder):
    write(
        k_metal='#include "begin.h"\n y[0] = 1;\n#include "end.h"\n',
        begin_h="for (int i = 0; i < 2; ++i) {\n",
        end_h="}\n",
    )
    assert make()(**CALL)[0][0] == 1
    write(end_h="} }\n")
    message, _ = compile_error(make())
    assert message == "end.h:1:3: error: nothing opens this '}'\n  } }\n    ^"
    write(k_metal='#include "begin.h"\n y[0] = 1;\n')
    message, _ = compile_error(make())
    assert (
        message
        == "begin.h:1:29: error: nothing closes this '{'\n  for (int i = 0; i < 2; ++i) {\n                              ^"
    )


def test_a_barrier_of_a_file(folder):
    barrier = "threadgroup_barrier(mem_flags::mem_threadgroup);"
    write(
        k_metal=f"uint i = thread_position_in_grid.x;\nif (i < 3) {{\n#include \"wait.h\"\n}}\ny[i] = 1;\n{barrier}",
        wait_h=f"\n\n  {barrier}\n",
    )  # fmt: skip
    error = raised(kiln.DeviceError, make(), **CALL)
    assert str(error) == (
        "kernel `k`: only 3 of 8 threads reach the threadgroup_barrier in line 3 of wait.h; the launch was ended"
    )
    write(k_metal=f"uint i = thread_position_in_grid.x;\nif (i < 3) {barrier}\ny[i] = 1;\n{barrier}")
    error = raised(kiln.DeviceError, make(), **CALL)
    assert "threadgroup_barrier in line 2 of k.metal;" in str(error)


def test_what_is_included_is_not_searched_for_uses(folder):
    write(k_metal='#include "k.h"\ny[0] = 1;', k_h="uint i = thread_position_in_grid.x;\n")
    message, _ = compile_error(make())
    assert message == (
        "k.h:1:10: error: use of undeclared identifier 'thread_position_in_grid'; only the body has it, where the body "
        "itself names it\n  uint i = thread_position_in_grid.x;\n           ^"
    )
    # But what it names is there: swizzles, functions that step back, functions that wait.
    write(
        k_metal='uint3 p = thread_position_in_grid;\n#include "k.h"\ny[p.x] = v;',
        k_h="float4 four = float4(p.x, 1, 2, 3); float v = simd_sum(four.abgr.wx.y + erf(0.0f) + four.zyxw.r - 2);\n",
    )
    assert make()(**CALL)[0].tolist() == [8.0 * 3] * 8
    write(k_metal="y[0] = erf(1.0f);", k_h="float erf(float a) { return 7 * a; }\n")
    assert make("k.metal", '#include "k.h"', include_dirs=["."])(**CALL)[0][0] == 7


def test_the_text_that_is_printed_is_the_files(folder, capfd):
    body = '#include "k.h"\r\n\ty[0] = A;'
    write(k_metal=body, k_h="#define A 1\n")
    kernel = make()
    assert f" {{\n{body}\n}}\n" in kernel.source_for(**CALL)
    kernel(**CALL, verbose=True)
    sys.stdout.flush()
    assert body in capfd.readouterr().out.replace("\r\r", "\r")
    assert kernel.compile(**CALL).source == kernel.source_for(**CALL)


@pytest.mark.parametrize("interface", INTERFACES, ids=lambda interface: interface.label)
def test_files_that_cannot_be_read(interface, folder):
    (folder / "latin.metal").write_bytes(b"// gr\xf6\xdf")
    (folder / "good.metal").write_text('#include "latin.metal"\n')
    (folder / "many").mkdir()
    os.truncate(os.open("large.metal", os.O_CREAT | os.O_WRONLY, 0o600), 2**24 + 1)
    for argument in ("source", "header"):
        for path, message in (
            ("missing.metal", "a file but there is no missing.metal."),
            ("good.metal/k", "a file but there is no good.metal/k."),
            ("many", "a file but many is a folder."),
            ("latin.metal", "a file of UTF-8 but byte 5 of latin.metal is not."),
            (
                "large.metal",
                "a file that makes, with all others of the kernel, at most 16777216 bytes but large.metal is larger.",
            ),
            ("/dev/zero", "a file but /dev/zero is a device or a pipe."),
            ("a\0b", "a path in UTF-8 but got 'a\\x00b'."),
            ("\udcff", "a path in UTF-8 but got '\\udcff'."),
        ):
            error = raised(ValueError, interface.make, **{argument: Path(path)})
            assert str(error) == f"{interface.prefix} Expected `{argument}` to be {message}"
    error = raised(ValueError, interface.make, source=Path("good.metal"))
    assert str(error) == (
        f"{interface.prefix} An included file cannot be used.\n"
        "good.metal:1:10: error: expected 'latin.metal' to be a file of UTF-8 but byte 5 of latin.metal is not\n"
        '  #include "latin.metal"\n           ^'
    )


def test_a_kernel_in_a_file_is_the_same_kernel_on_disk_wherever_it_lies(folder):
    (folder / "make.py").write_text(
        "import sys\nimport kiln\nimport numpy as np\nfrom pathlib import Path\n"
        "kernel = kiln.metal_kernel('k', ['x'], ['y'], Path(sys.argv[1]))\n"
        "(y,) = kernel(inputs=[np.zeros(1, np.float32)], output_shapes=[(1,)], output_dtypes=['float32'],\n"
        "              grid=(1, 1, 1), threadgroup=(1, 1, 1))\n"
        "print(y[0], kernel.history[0].code)\n"
    )
    write(one__k_metal='#include "a.h"\ny[0] = A;', one__a_h="#define A 1\n")
    write(two__k_metal='#include "a.h"\ny[0] = A;', two__a_h="#define A 1\n")
    environment = {"KILN_CACHE": "on", "KILN_CACHE_DIR": str(folder / "cache")}
    assert python(folder, "make.py", "one/k.metal", **environment).stdout == "1.0 compiled\n"
    assert python(folder, "make.py", "two/k.metal", **environment).stdout == "1.0 disk\n"
    write(two__a_h="#define A 2\n")
    assert python(folder, "make.py", "two/k.metal", **environment).stdout == "2.0 compiled\n"
    write(two__a_h="#define A 1\n")
    assert python(folder, "make.py", "two/k.metal", **environment).stdout == "1.0 disk\n"


def test_a_recording_has_the_files(folder):
    (folder / "program.py").write_text(
        "import kiln\nimport numpy as np\nfrom pathlib import Path\n"
        "kernel = kiln.metal_kernel('k', ['x'], ['y'], Path('k/k.metal'), header='#include <b.h>',\n"
        "                           compile_options={'include_dirs': ['include']})\n"
        "(y,) = kernel(inputs=[np.zeros(1, np.float32)], output_shapes=[(1,)], output_dtypes=['float32'],\n"
        "              grid=(1, 1, 1), threadgroup=(1, 1, 1))\n"
        "print(y[0], kernel.history[0].code)\n"
    )
    write(k__k_metal='#include "a.h"\ny[0] = A + B;', k__a_h="#define A 1\n", include__b_h="#define B 2\n")
    environment = {"KILN_CACHE": "on", "KILN_CACHE_DIR": str(folder / "cache")}
    done = python(folder, "-m", "kiln", "record", "--output", "k.json", "program.py", KILN_CACHE="off")
    assert done.stdout == "3.0 compiled\n"
    (recorded,) = json.loads((folder / "k.json").read_text())["kernels"]
    assert [file[:2] for file in recorded["files"]["included"]] == [
        ["include/b.h", "#define B 2\n"],
        ["k/a.h", "#define A 1\n"],
    ]
    # It is compiled where the files are not.
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    done = python(elsewhere, "-m", "kiln", "compile", str(folder / "k.json"), **environment)
    assert done.stdout == f"compiled 1, found 0 that were compiled before; {folder}/cache has it\n"
    assert python(folder, "program.py", **environment).stdout == "3.0 disk\n"
    # What is in no text is damage.
    recorded["files"]["source_inclusions"] = [[9, 900, 0]]
    content = {"format": "Kiln recording", "version": 1, "kernels": [recorded]}
    (folder / "k.json").write_text(json.dumps(content))
    done = python(folder, "-m", "kiln", "compile", "k.json", status=1, **environment)
    assert done.stderr == "python -m kiln compile: k.json is damaged\n"


def test_export_of_a_kernel_in_a_file(folder):
    write(k_metal=INCREMENT, with_h="#define ONE 1\n", other_metal='#include "with.h"\n' + INCREMENT)

    def function(a, path):
        # MLX's own type knows strings only.
        make: Any = mx.fast.metal_kernel
        kernel = make("k", ["x"], ["out"], Path(path))
        return kernel(
            inputs=[a], output_shapes=[(8,)], output_dtypes=[mx.float32], grid=(8, 1, 1), threadgroup=(8, 1, 1),
            stream=mx.gpu,
        )  # fmt: skip

    with kiln.mlx.install(metal=True):
        mx.export_function("k.mlxfn", lambda a: function(a, "k.metal"), mx.array(X))
        error = raised(
            kiln.UnsupportedError, mx.export_function, "k.mlxfn", lambda a: function(a, "other.metal"), mx.array(X)
        )
    assert str(error) == "[metal_kernel] `k` includes files, and what is exported cannot."


def test_include_dirs_are_read_in_any_sequence(folder):
    write(include__a_h="#define A 1\n")
    for folders in (["include"], ("include",), [Path("include")], [str(folder / "include")], ["nowhere", "include"]):
        assert make("y[0] = A;", "#include <a.h>", include_dirs=folders)(**CALL)[0][0] == 1
