"""The scripts in tools/ fail where they should."""

import base64
import hashlib
import importlib.util
import json
import lzma
import os
import re
import sys
import types
import zipfile
from pathlib import Path

import bodies
import numpy as np
import pytest
from kiln import _core

TOOLS = Path(__file__).parent.parent.parent / "tools"


def tool(name):
    spec = importlib.util.spec_from_file_location(name, TOOLS / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# ---- check_layers.py

RIGHT = {
    "include/kiln/dtype.h": "#include <cstdint>\n",
    "src/core/layout.h": '#include "kiln/dtype.h"\n#include <core/other.h>\n',
    "src/core/other.h": "",
    "src/runtime/run.cpp": '#include "core/layout.h"\n#include "run.h"\n',
    "src/runtime/run.h": "#include <vector>\n",
    "python/src/module.cpp": "#include <nanobind/nanobind.h>\n#include <mlx/array.h>\n",
}


def layers(tmp_path, monkeypatch, capsys, files=None):
    module = tool("check_layers")
    monkeypatch.setattr(module, "ROOT", tmp_path)
    for path, text in {**RIGHT, **(files or {})}.items():
        path = tmp_path / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    status = module.main()
    return status, capsys.readouterr().out


def test_right_layers(tmp_path, monkeypatch, capsys):
    assert layers(tmp_path, monkeypatch, capsys) == (0, "layers: 6 files, every include is allowed\n")


@pytest.mark.parametrize(
    ("path", "text", "problem"),
    [
        (
            "src/core/up.h",
            '\n#include "runtime/run.h"\n',
            "src/core/up.h:2: src/core may not include runtime/run.h, which belongs to src/runtime",
        ),
        (
            "src/core/up.h",
            "  #  include <runtime/run.h>\n",
            "src/core/up.h:1: src/core may not include runtime/run.h, which belongs to src/runtime",
        ),
        (
            "src/core/llvm.cpp",
            "#include <llvm/IR/Module.h>\n",
            "src/core/llvm.cpp:1: src/core may not include llvm/IR/Module.h",
        ),
        (
            "src/runtime/test.cpp",
            '#include "tests/held.h"\n',
            "src/runtime/test.cpp:1: src/runtime may not include tests/held.h, which belongs to no layer",
        ),
        (
            "src/new/thing.cc",
            "",
            "src/new/thing.cc: belongs to no layer; ALLOWED in tools/check_layers.py has none for its folder",
        ),
        (
            "src/runtime/kinds.cpp",
            "  if (call.device.kind ==  DeviceKind::kCpu) return;\n",
            "src/runtime/kinds.cpp:1: compares kinds of devices; a property belongs into core/device_traits.h",
        ),
    ],
)
def test_wrong_layers(path, text, problem, tmp_path, monkeypatch, capsys):
    files = {path: text, "tests/held.h": ""}
    assert layers(tmp_path, monkeypatch, capsys, files) == (1, f"{problem}\n")


# ---- check_passes.py

PASS_FILES = {
    "src/compiler/pipeline.cpp": '  // pipeline.run("name", …)\n  pipeline.run(\n      "lower", f, [&] {});\n'
    '  pipeline.run_pass(optional("prefetch"), Prefetch(), f);\n',
    "src/compiler/opt/kiln_opt.cpp": '      {"lower", [](Function& f, State&) {}},\n',
    "src/compiler/ir/preconditions.cpp": '      {"lower", {&kInlined}},\n      {"prefetch", {&kHasNoLanes, &kInlined}},\n',
    **{f"tests/compiler/{room}/{name}/{file}.ll": f"; RUN: kiln-opt --passes={name} %s | FileCheck %s\n; CHECK-NOT: call\n"
       for room, name in [("lowering", "lower"), ("memory", "prefetch")] for file in "abc"},
}  # fmt: skip


def passes(tmp_path, files=None, untested=(), unconditional=()):
    for path, text in {**PASS_FILES, **(files or {})}.items():
        path = tmp_path / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text) if text is not None else path.unlink(missing_ok=True)
    return tool("check_passes").problems(
        tmp_path, dict.fromkeys(untested, "a reason"), dict.fromkeys(unconditional, "a reason")
    )


def test_passes_with_tests_and_preconditions(tmp_path):
    assert passes(tmp_path) == []
    assert passes(tmp_path, {"tests/compiler/ir/preconditions/a.ll": "; what is around all passes\n"}) == []


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        (
            {"tests/compiler/lowering/lower/c.ll": None},
            "tests/compiler/lowering/lower: 2 of 3 files; a pass has one in which it fires, one in which it must not, and "
            "a border",
        ),
        (
            {"tests/compiler/lowering/lower/c.ll": "; RUN: kiln-opt --passes=lower-switch %s | FileCheck %s\n; CHECK: a\n"},
            "tests/compiler/lowering/lower/c.ll: no RUN line runs lower",
        ),
        (
            {"tests/compiler/lowering/lower/c.ll": "; RUN: kiln-opt --passes=lower %s | FileCheck %s\n; OTHER: a\n"},
            "tests/compiler/lowering/lower/c.ll: has no line for FileCheck",
        ),
        (
            {"src/compiler/opt/kiln_opt.cpp": '      {"fresh", [](Function& f, State&) {}},\n'},
            "fresh: has no folder tests/compiler/<room>/fresh/\n"
            "fresh: src/compiler/ir/preconditions.cpp has no row of what it takes for granted",
        ),
        (
            {"tests/compiler/memory/old/a.ll": ""},
            "tests/compiler/memory/old: there is no such pass",
        ),
        (
            {"src/compiler/ir/preconditions.cpp": PASS_FILES["src/compiler/ir/preconditions.cpp"] + '  {"old", {&kInlined}},\n'},
            "old: has preconditions, but there is no such pass",
        ),
    ],
)  # fmt: skip
def test_passes_without_tests_or_preconditions(files, problem, tmp_path):
    assert passes(tmp_path, files) == problem.split("\n")


def test_passes_that_need_neither(tmp_path):
    fresh = {"src/compiler/opt/kiln_opt.cpp": '      {"fresh", [](Function& f, State&) {}},\n'}
    assert passes(tmp_path, fresh, ["fresh"], ["fresh"]) == []
    assert passes(tmp_path, fresh, ["fresh", "lower", "gone"], ["fresh", "lower"]) == [
        "lower: has tests; remove it from UNTESTED",
        "lower: has preconditions; remove it from UNCONDITIONAL",
        "gone: there is no such pass; remove it from UNTESTED and UNCONDITIONAL",
    ]


# ---- check_words.py

NAMED = {
    "src/compiler/memory/prefetch.h": "// asks what is behind\nint row = 0, place = 0, ways = 0;\n",
    "src/compiler/memory/prefetch.cpp": '#include <fork/usual.h>\nauto text = "asked, wanted"; /* apart */ char c = \'"\';\n',
    "src/compiler/memory/llvm.cpp": "loops.forgetLoop(loop); token.is(clang::tok::question); int task, basket, kForkliftSize;\n",
}


def words(tmp_path, monkeypatch, capsys, files=None, allowed_machines=()):
    module = tool("check_words")
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "ALLOWED_MACHINES", dict.fromkeys(allowed_machines, "a reason"))
    for path, text in {**NAMED, **(files or {})}.items():
        path = tmp_path / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    status = module.main()
    return status, capsys.readouterr().out


def test_names_without_refused_words(tmp_path, monkeypatch, capsys):
    assert words(tmp_path, monkeypatch, capsys) == (0, "words: names use the field's\n")


@pytest.mark.parametrize(
    ("path", "text", "problem"),
    [
        ("a.h", "/*\n*/ bool asks_first();\n", "a.h:2: `asks` in `asks_first`; use instead: check, guard or predicate"),
        ("a.cpp", "struct SlowFork {};\n", "a.cpp:1: `fork` in `SlowFork`; use instead: branch"),
        ("a.cpp", "int kMostAgain = 2'000, b;\n", "a.cpp:1: `again` in `kMostAgain`; use instead: rematerialize"),
        ("a.cpp", "bool is_same_in_all();\n", "a.cpp:1: `same_in_all` in `is_same_in_all`; use instead: uniform"),
        ("row_locks.h", "", "row_locks.h: `row_locks` in the name of this file; use instead: striped atomics"),
    ],
)
def test_refused_words_in_names(path, text, problem, tmp_path, monkeypatch, capsys):
    status, out = words(tmp_path, monkeypatch, capsys, {f"src/compiler/ir/{path}": text})
    assert status == 1
    assert out.startswith(f"src/compiler/ir/{problem}")
    assert out.endswith("(docs/glossary.md)\n")
    assert out.count("\n") == 1


# Beside the rooms of one processor, in a path, and in the middle of other words.
MACHINE_TEXTS = {
    "x86/avx512.h": "// AVX-512\n",
    "nvptx/a.cpp": "Intrinsic::nvvm_rsqrt_approx_f; // PTX\n",
    "driver/a.cpp": 'if (cpu == "x86-64-v4" || cpu == "sm_90") {}\n',
    "pipeline.cpp": "bool has_avx512;\n",
    "pipeline.h": "// NVIDIA\n",
    "vectorize/a.cpp": '#include "compiler/x86/a.h"\n// nvptx/kernel_entry.h\nint asm_1, prism_2, descriptor, assess2;\n',
}


def machines(tmp_path, monkeypatch, capsys, files, allowed=()):
    files = {f"src/compiler/{path}": text for path, text in {**MACHINE_TEXTS, **files}.items()}
    return words(tmp_path, monkeypatch, capsys, files, allowed_machines=allowed)


def test_instruction_sets_in_the_rooms_of_a_processor(tmp_path, monkeypatch, capsys):
    status, out = machines(tmp_path, monkeypatch, capsys, {})
    assert (status, out) == (0, "words: names use the field's\n")


@pytest.mark.parametrize(
    ("path", "text", "name"),
    [
        ("a.h", "\nbool has_gathers();  // as AVX2 has\n", ":2: `AVX2`"),
        ("a.h", "bool has_avx512_;\n", ":1: `avx512_`"),
        (
            "a.cpp",
            "builder.CreateIntrinsic(Intrinsic::x86_avx512_vpermi2var_d_512);\n",
            ":1: `x86_avx512_vpermi2var_d_512`",
        ),
        ("a.cpp", "#include <llvm/IR/IntrinsicsNVPTX.h>\n", ":1: `NVPTX`"),
        ("a.cpp", "#include <llvm/IR/IntrinsicsX86.h>\n", ":1: `X86`"),
        ("a.cpp", 'bool is_wide = cpu == "x86-64-v4";\n', ":1: `x86`"),
        ("a.cpp", 'std::string_view architecture = "sm_90a";\n', ":1: `sm_90a`"),
        ("a.cpp", "case DeviceKind::kNvidia: break;\n", ":1: `Nvidia`"),
        ("a.h", "// PTX's rule\n", ":1: `PTX`"),
        ("a.h", "// twice as fast on an H100\n", ":1: `H100`"),
        ("a.cpp", "int zmm_count, ymm0, gymmer;\n", ":1: `zmm_count`"),
        ("sse2.cpp", "", ": `sse2`"),
    ],
)
def test_instruction_sets_and_gpus_elsewhere(path, text, name, tmp_path, monkeypatch, capsys):
    status, out = machines(tmp_path, monkeypatch, capsys, {f"memory/{path}": text})
    assert status == 1
    assert out.startswith(f"src/compiler/memory/{path}{name} is an instruction set or a GPU; name the property")
    assert out.count("\n") == 1


def test_instruction_sets_that_are_allowed(tmp_path, monkeypatch, capsys):
    files = {"ir/a.h": 'auto triple = "x86_64-linux";\n'}
    allowed = [("ir/a.h", '"x86_64-linux"')]
    assert machines(tmp_path, monkeypatch, capsys, files, allowed)[0] == 0
    assert machines(tmp_path, monkeypatch, capsys, {"ir/a.h": ""}, allowed) == (
        1,
        'src/compiler/ir/a.h: no longer contains `"x86_64-linux"`; remove it from ALLOWED_MACHINES\n',
    )
    assert all(reason for reason in tool("check_words").ALLOWED_MACHINES.values())


# ---- check_constructs.py

TABLE = """
[functions]
exp = "e to a power."
sqrt = "The square root."
several = { is = "Of vectors.", tokens = "" }
later = { is = "Not there.", later = "it is refused" }
[simdgroup]
sum = "The sum."
quad_sum = "The sum over a quadgroup."
"""

BODIES = {
    "functions.exp functions.several": "out[0] = exp(1.0);",
    "functions.sqrt": "out[0] = root(x[0]);",
    "simdgroup.sum simdgroup.quad_sum": "out[0] = simd_sum(1) + quad_sum(1);",
}
HEADER = "float root(float x) { return metal::sqrt(x); }"


def made(texts):
    return [
        bodies.Body(f"body{number}", text, np.zeros, {}, (1, 1, 1), (1, 1, 1), tuple(rows.split()), header=HEADER)
        for number, (rows, text) in enumerate(texts.items())
    ]


@pytest.mark.parametrize(
    ("change", "problems"),
    [
        ({}, []),
        (
            {"functions.exp functions.several": "out[0] = exponential(1.0);  // exp"},
            ["functions.exp: body0 has no `exp`"],
        ),
        (
            {"simdgroup.sum simdgroup.quad_sum": "out[0] = sum(1);"},
            ["simdgroup.sum: body2 has no `simd_sum`", "simdgroup.quad_sum: body2 has no `quad_sum`"],
        ),
        ({"functions.tan": "tan"}, ["functions.tan: body3 names it, the table does not"]),
        ({"functions.later": "later(1);"}, ["functions.later: is to come later, but body3 proves it"]),
        ({"functions.sqrt": ...}, ["functions.sqrt: no body proves it"]),
    ],
)
def test_constructs(change, problems, tmp_path):
    module = tool("check_constructs")
    (tmp_path / "constructs.toml").write_text(TABLE)
    table = module.read_table(tmp_path / "constructs.toml")
    texts = {rows: text for rows, text in {**BODIES, **change}.items() if text is not ...}
    assert sorted(module.problems_of(table, made(texts))) == sorted(problems)


def test_constructs_of_cuda(tmp_path):
    module = tool("check_constructs")
    rows = '[cuda_warp]\n__all_sync = "All."\n[cuda_structure]\nloops = "Loops."\n[cuda_math]\nexp = { is = "e.", tokens = "expf exp" }\n'
    (tmp_path / "constructs.toml").write_text(TABLE + rows)
    table = module.read_table(tmp_path / "constructs.toml")
    metal = made(BODIES)
    whole = made(
        {"cuda_warp.__all_sync cuda_structure.loops cuda_math.exp": "y[0] = __all_sync(~0u, 1) + expf(1) + exp(1.0);"}
    )
    assert module.problems_of_both(table, metal, whole) == []
    # Metal's bodies prove nothing of CUDA's, and a body must have every name of its row.
    assert sorted(
        module.problems_of_both(table, metal + made({"cuda_structure.loops": ""}), made({"cuda_math.exp": "expf(1);"}))
    ) == [
        "cuda_math.exp: body0 has no `exp`",
        "cuda_structure.loops: body0 names it, the table does not",
        "cuda_structure.loops: no body proves it",
        "cuda_warp.__all_sync: no body proves it",
    ]


def test_a_row_without_a_sentence(tmp_path):
    (tmp_path / "constructs.toml").write_text('[functions]\nexp = "e to a power"\n')
    with pytest.raises(SystemExit) as raised:
        tool("check_constructs").read_table(tmp_path / "constructs.toml")
    assert str(raised.value) == "constructs.toml: functions.exp has no sentence"


# ---- write_translations.py


def test_translations():
    translations_of = tool("write_translations").translations_of
    constructs = {"functions": {"exp": "e to a power.", "sqrt": "The root."}}
    texts = {"functions": {"cpu": "a", "nvidia": "b", "sqrt": {"nvidia": "sqrt.rn"}}}
    assert translations_of(constructs, texts) == {
        ("functions", "exp"): ("a", "b"),
        ("functions", "sqrt"): ("a", "sqrt.rn"),
    }
    with pytest.raises(SystemExit) as raised:
        translations_of(constructs, {"functions": {**texts["functions"], "tan": {"cpu": "c"}}})
    assert str(raised.value) == "docs/translations.toml: functions has no ['tan']"
    with pytest.raises(SystemExit) as raised:
        translations_of({**constructs, "types": {}}, texts)
    assert str(raised.value) == "only one of the two tables has sections ['types']"


# ---- install_package.py, run_tidy.py


@pytest.mark.parametrize("status", [0, 3])
def test_a_build_shows_its_counter_and_keeps_what_it_prints(status, tmp_path, capsys):
    printed = ["Configuring", "[1/40] one", "  [2/40] two", "[8/40] three", "a warning", "[40/40] four"]
    program = f"import sys; print({chr(10).join(printed)!r}); sys.exit({status})"
    log = tmp_path / "log"
    assert tool("install_package").follow([sys.executable, "-c", program], log, dict(os.environ)) == status
    assert log.read_text().splitlines() == printed
    shown = [line.split("]")[0] + "]" for line in capsys.readouterr().out.splitlines()]
    assert shown == ["[1/40]", "[8/40]", "[40/40]"], "a line for each tenth"


def test_files_of_a_unity_build_are_checked_together_and_alone(tmp_path):
    run_tidy = tool("run_tidy")
    text, files = run_tidy.ROOT / "src/core/text.cpp", run_tidy.ROOT / "src/core/dtype.cpp"
    unity = tmp_path / "core.dir" / "Unity" / "unity_core.cxx"
    unity.parent.mkdir(parents=True)
    unity.write_text(f'/* made */\n#include "{text}"\n#include "{files}"\n')
    test = run_tidy.ROOT / "tests/cpp/core/text_test.cpp"
    commands = [
        {"directory": str(tmp_path), "file": str(file), "command": f"c++ -fno-reorder-blocks-and-partition -c {name}"}
        for file, name in ((unity, "core.dir/Unity/unity_core.cxx"), (test, test))
    ]
    (tmp_path / "compile_commands.json").write_text(json.dumps(commands))
    units = run_tidy.units_of(tmp_path)
    assert [(unit.file, unit.sources) for unit in units] == [(unity, [text, files])], "tests are not checked"
    assert units[0].command["arguments"] == ["c++", "-c", "core.dir/Unity/unity_core.cxx"]
    alone = run_tidy.unit_for(run_tidy.ROOT / "src/core/text.h", units)
    assert (alone.file, alone.command["arguments"]) == (text, ["c++", "-c", str(text)])
    assert run_tidy.unit_for(run_tidy.ROOT / "src/core/no_such_file.cpp", units) is None


# ---- arrange_code.py, profile_compiler.py


@pytest.mark.parametrize("fails", [False, True])
def test_a_library_is_replaced_only_by_what_bolt_has_finished(fails, tmp_path, capsys):
    bolt, profile, library = tmp_path / "bolt", tmp_path / "profile.xz", tmp_path / "library.so"
    bolt.write_text(
        "#!/bin/sh\n"
        "echo 'BOLT-INFO: 2 out of 3 functions in the binary (66.7%) have non-empty execution profile'\n"
        'cat "$1" "${2#-data=}" > "$4"\n'
        f"exit {int(fails)}\n"
    )
    bolt.chmod(0o755)
    profile.write_bytes(lzma.compress(b" arranged"))
    library.write_text("linked")
    tool("arrange_code").arrange(str(bolt), profile, library)
    assert library.read_text() == ("linked" if fails else "linked arranged")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bolt", "library.so", "profile.xz"]
    said = "BOLT-INFO: 2 out of 3 functions in the binary (66.7%) have non-empty execution profile\n"
    assert capsys.readouterr().out == (
        f"warning: library.so stays as it was linked; {bolt} says:\n{said}\n"
        if fails
        else "arranged 2 functions of library.so\n"
    )


def test_a_reduced_profile_has_what_was_counted():
    def function(name, blocks):
        return f"  - name:            '{name}'\n    fid:             1\n    nblocks:         9\n    blocks:\n{blocks}"

    def block(number, rest, digest="        hash:            0xAB\n"):
        return f"      - bid:             {number}\n        insns:           3\n{digest}{rest}"

    executed = "        exec:            {}\n        succ:            [ {} ]\n"
    head = "---\nfunctions:\n"
    profile = (
        head
        + function(
            "_ZN4llvm1fEv",
            block(0, executed.format(1237, "{ bid: 1, cnt: 1237, mis: 5 }, { bid: 2, cnt: 0 }"))
            + block(1, "        succ:            [ { bid: 2, cnt: 0 } ]\n")
            + block(2, "        calls:           [ { off: 0x3, fid: 8, cnt: 5 } ]\n"),
        )
        + function("_ZN4kiln1gEv", block(0, executed.format(3, "{ bid: 1, cnt: 0 }, { bid: 2, cnt: 3 }")))
    )
    assert tool("profile_compiler").reduced(profile) == (
        head
        + function(
            "_ZN4llvm1fEv",
            block(0, executed.format(1024, "{ bid: 1, cnt: 1024 }"), "")
            + block(2, "        calls:           [ { off: 0x3, fid: 8, cnt: 4 } ]\n", ""),
        )
        + function("_ZN4kiln1gEv", block(0, executed.format(3, "{ bid: 2, cnt: 3 }"), ""))
    )


# ---- Versions that are written twice


def test_the_tools_before_a_commit_are_those_of_make_lint():
    root = TOOLS.parent
    pins = re.findall(r"^(ruff|clang-format)==(\S+)$", (root / "tests/requirements.txt").read_text(), re.MULTILINE)
    hooks = re.findall(r"(ruff|clang-format)\S*\n\s*rev: v(\S+)", (root / ".pre-commit-config.yaml").read_text())
    assert len(pins) == 2
    assert sorted(pins) == sorted(hooks)


# ---- write_lists.py


def test_lists_are_written_where_a_page_marks_them():
    module = tool("write_lists")
    page = "A\n<!-- constructs: literals -->\nold\n<!-- end -->\nB\n<!-- headers -->\n<!-- end -->\n"
    made = module.with_lists(page)
    assert made.startswith("A\n<!-- constructs: literals -->\n\n* `1.0` is a float; there is no double.\n")
    assert "\n\n<!-- end -->\nB\n<!-- headers -->\n\n| | |\n|---|---|\n| `kiln/kiln.h` | All of Kiln" in made
    assert module.with_lists(made) == made
    assert module.with_lists("no marks\n") == "no marks\n"
    assert "\n| `fork`, `forks` | branch |\n" in module.with_lists("<!-- words -->\n<!-- end -->\n")


@pytest.mark.parametrize(
    ("section", "name", "row", "label"),
    [
        ("simdgroup", "sum", "The sum.", "`simd_sum`"),
        ("simdgroup", "quad_sum", "The sum.", "`quad_sum`"),
        ("types", "float4", "Four floats.", "`float4`"),
        ("types", "swizzle_read", "`v.zyx`.", "swizzle read"),
        ("types", "uniform", {"is": "A value.", "tokens": "uniform make_uniform"}, "`uniform`, `make_uniform`"),
        ("traits", "is_same", "Whether two types are one.", "`is_same`"),
    ],
)
def test_labels_are_as_bodies_write_them(section, name, row, label):
    assert tool("write_lists").label(section, name, row) == label


# ---- reference_text.py

DOCSTRING = """Doubles.

Takes ``x``.

Example:
  >>> import kiln
  >>> double(2)
  4
  >>> double(
  ...     [1],
  ... )
  [1, ...]

Args:
  x, y (list): numbers, of
    which there may be none.
  options: a dict of

    * ``a``: one.

Returns:
  A number::

      4

Raises:
  ValueError: ``x`` is wrong.
  kiln.DeviceError, MemoryError: it failed.

Afterwards.
"""
MARKDOWN = """Doubles.

Takes `x`.

```python
import kiln

print(repr(double(2)))
```

```text
4
```

```python
print(
    double(
        [1],
    )
)
```

```text
[1, …]
```

**Arguments**

* `x`, `y` (list): numbers, of
  which there may be none.
* `options`: a dict of

  * `a`: one.

**Returns**: A number::

    4

**Raises**

* `ValueError`: `x` is wrong.
* `kiln.DeviceError`, `MemoryError`: it failed.

Afterwards."""


def test_docstrings_as_markdown():
    assert tool("reference_text").markdown(DOCSTRING) == MARKDOWN


HEADER_TEXT = """// A header.
#pragma once

namespace kiln {

class Other;

namespace detail {

/// Not public.
int hidden();

}  // namespace detail

/// Kinds.
enum class Kind : uint8_t {
  kOne,
  kTwo,  ///< the second
};

/// A class,
/// in two lines.
class Box : public Base {
 public:
  using Base::Base;
  Box() = default;
  /// Makes one.
  template <typename T>
    requires(!std::same_as<T, bool>)
  explicit Box(T value, int count = 0) : value_(value) {
    if (count) value_ = f(count);
  }
  ~Box();
  int size() const { return size_; }  ///< how many; in
                                      ///< elements
  std::array<int, 2> grid = {1, 2};
  /// A rule.
  std::function<std::vector<int>(const Other& first,
                                 int second)>
      rule = nullptr;
  using Sizes = std::function<std::pair<int, int>(
      const Other& other)>;
  /// Calls.
  int operator()(const Other& other) const;

 private:
  friend int f(int,
               int);
  int size_;
};

/// A number.
template <typename T>
concept Number = std::integral<T> && requires { { T() } -> Other; };

/// The sum.
inline int sum(int a,
               int b);

}  // namespace kiln
"""


def test_the_declarations_of_a_header():
    assert list(tool("reference_text").declarations(HEADER_TEXT)) == [
        (0, "enum class Kind : uint8_t", "Kinds."),
        (1, "kOne", ""),
        (1, "kTwo", "the second"),
        (0, "class Box : public Base", "A class,\nin two lines."),
        (
            1,
            "template <typename T> requires(!std::same_as<T, bool>) explicit Box(T value, int count = 0)",
            "Makes one.",
        ),
        (1, "int size() const", "how many; in\nelements"),
        (1, "std::array<int, 2> grid = {1, 2}", ""),
        (1, "std::function<std::vector<int>(const Other& first, int second)> rule = nullptr", "A rule."),
        (1, "using Sizes = std::function<std::pair<int, int>(const Other& other)>", ""),
        (1, "int operator()(const Other& other) const", "Calls."),
        (0, "template <typename T> concept Number", "A number."),
        (0, "inline int sum(int a, int b)", "The sum."),
    ]


# ---- write_srgb_tables.py


def test_srgb_tables_are_nearest_and_exact():
    module = tool("write_srgb_tables")
    for byte in (0, 1, 10, 11, 128, 255):
        exact = float(module.linear(module.mpf(byte) / 255))
        value = np.float32(module.nearest(module.mpf(exact)))
        assert abs(float(value) - exact) <= float(np.spacing(value)) / 2
    for index in (1, 2, 11, 128, 255):
        at = module.threshold(index)
        below = np.nextafter(at, np.float32(-1))
        results = [int(module.srgb(module.mpf(float(v))) * 255 + module.mpf("0.5")) for v in (below, at)]
        assert results == [index - 1, index]


# ---- check_docs.py

REFUSING = """\
const char* unsupported_keyword(int keyword) {
  switch (keyword) {
    case 1: return "jumps to labels are not supported";
    case 2: return "exceptions are not supported";
  }
}

const char* unsupported_reason(int before, int name) {
  if (name) return "textures are not supported";
  return nullptr;
}
"""
CUDA_REFUSING = """\
const char* unsupported_keyword(int keyword, int before) {
  return before ? nullptr : "a kernel cannot allocate memory on the CPU";
}

const char* unsupported_in_cuda(int token) {
  return "managed variables are not supported on the CPU";
}
"""
SAID = {
    "README.md": "Metal, CUDA, an x86-64 CPU or an\nNVIDIA GPU, NumPy and MLX. Textures: none.\n\n```python\n",
    "docs/index.md": "Metal, CUDA, an x86-64 CPU or an NVIDIA GPU, NumPy, MLX.\n",
    "docs/limits.md": "# Limits\n\nNo textures; `KILN_BOUNDS=off`.\n",
    "docs/dialects/metal.md": "# Metal\n\n## Refused\n\nTextures, exceptions, `goto`.\n",
    "docs/dialects/cuda.md": "# CUDA\n\n`new` and `__managed__`; a `DeviceError`.\n",
    "python/kiln/__init__.py": '"""Metal, CUDA, an x86-64 CPU or an NVIDIA GPU, NumPy, MLX."""\n',
    "python/kiln/_libraries.py": 'Library("numpy", "numpy", "NumPy", "")\nLibrary("mlx", "mlx", "MLX", "")\n',
    "python/src/core_module.cpp": "",
    "include/kiln/error.h": "class DeviceError : public std::runtime_error {};\n",
    "src/core/compiler.h": "class MissingCompilerError : public UnsupportedError {};\n",
    "src/core/settings.h": '    {"KILN_BOUNDS", "on or off",\n',
    "src/compiler/clang/token_rewriter.cpp": REFUSING,
    "src/compiler/clang/dialects/cuda_tokens.cpp": CUDA_REFUSING,
}


def document_problems(tmp_path, changes):
    for name, text in {**SAID, **changes}.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tool("check_docs").problems(tmp_path)


def test_documents_that_say_what_the_code_has(tmp_path):
    assert document_problems(tmp_path, {}) == []


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"python/kiln/__init__.py": '"""Metal, CUDA, an x86-64 CPU or an NVIDIA GPU, NumPy."""\n'}, "help(kiln) does not name MLX"),
        ({"docs/index.md": "Metal, an x86-64 CPU or an NVIDIA GPU, NumPy, MLX."}, "docs/index.md does not name CUDA"),
        ({"docs/limits.md": "# Limits\n\nNone.\n"}, "docs/limits.md does not name what unsupported_reason refuses: textures are not supported"),
        ({"docs/dialects/cuda.md": "# CUDA\n\n`new`.\n"}, "docs/dialects/cuda.md does not name what unsupported_in_cuda refuses: managed variables are not supported on the CPU"),
        ({"docs/more.md": "# More\n\n## Empty\n\n## Full\n\nText.\n"}, "docs/more.md: nothing is below `Empty`"),
        ({"docs/more.md": "# More\n\n:::{filter}\n:::\n"}, "docs/more.md: nothing is below `More`"),
        ({"docs/more.md": "# More\n\n`KILN_BOUND` is off.\n"}, "docs/more.md names KILN_BOUND, which is no setting"),
        ({"include/kiln/a.h": "/// Throws LaunchError.\n"}, "include/kiln/a.h names LaunchError, which nothing raises"),
        ({"include/kiln/a.h": "/// It throws in this version.\n"}, "include/kiln/a.h says what is so in this version"),
    ],
)  # fmt: skip
def test_documents_that_do_not(tmp_path, changes, problem):
    assert document_problems(tmp_path, changes) == [problem]


def test_sections_that_a_site_fills_are_empty_and_others_are_not():
    empty = tool("check_docs").empty_sections
    assert list(empty("# A\n\n## B\n\n```python\nx\n```\n\n## C\n\n:::{code-block} cpp\ny\n:::\n")) == []
    assert list(empty("# A\n\n<!-- constructs: types -->\n<!-- end -->\n")) == ["A"]
    assert list(empty(":::{include} ../ARCHITECTURE.md\n:::\n")) == []


# ---- build_wheels.py, test_wheels.py


def wheel(path, tag, files):
    names = {"kiln_jit-1.dist-info/WHEEL": f"Wheel-Version: 1.0\nTag: {tag}-linux_x86_64\n", **files}
    names["kiln_jit-1.dist-info/RECORD"] = ""
    with zipfile.ZipFile(path / f"kiln_jit-1-{tag}-linux_x86_64.whl", "w") as archive:
        for name, content in names.items():
            archive.writestr(name, content)
    return path / f"kiln_jit-1-{tag}-linux_x86_64.whl"


def test_a_wheel_has_a_module_for_each_version_of_mlx(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(TOOLS))
    build_wheels = tool("build_wheels")
    newest = build_wheels.mlx_parts.PARTS[-1].serves
    made = wheel(tmp_path, "cp311-cp311", {f"kiln/_mlx-{newest}.cpython-311-x86_64-linux-gnu.so": "newest"})
    library = tmp_path / "build" / "lib" / "libkiln.so.1"
    library.parent.mkdir(parents=True)
    library.touch()

    def build_part(part, python, given):
        assert (python, given) == (tmp_path / "python", library)
        built = tmp_path / f"_mlx-{part.serves}.cpython-311-x86_64-linux-gnu.so"
        built.write_text(part.serves)
        return built

    monkeypatch.setattr(build_wheels.mlx_parts, "build_part", build_part)
    build_wheels.add_mlx_parts(made, types.SimpleNamespace(folder=tmp_path, in_environment=tmp_path / "python"))
    with zipfile.ZipFile(made) as archive:
        content = {name: archive.read(name).decode() for name in archive.namelist() if "_mlx" in name}
        record = archive.read("kiln_jit-1.dist-info/RECORD").decode()
    assert content == {
        f"kiln/_mlx-{part.serves}.cpython-311-x86_64-linux-gnu.so": "newest" if part.serves == newest else part.serves
        for part in build_wheels.mlx_parts.PARTS
    }
    assert all(f"{name},sha256=" in record for name in content)


def test_the_modules_for_mlx_cover_its_versions_once(monkeypatch):
    mlx_parts = tool("mlx_parts")
    ends = [tuple(map(int, end.split("."))) for part in mlx_parts.PARTS for end in (part.first, part.last)]
    assert ends == sorted(ends)
    assert [mlx_parts.part_for(version) for version in mlx_parts.VERSIONS][-1] == mlx_parts.PARTS[-1]
    pinned = re.search(r"^mlx\[cpu\]==(.*)$", (TOOLS.parent / "requirements.txt").read_text(), re.MULTILINE)
    assert pinned and pinned[1] == mlx_parts.PARTS[-1].last == mlx_parts.VERSIONS[-1]
    nanobind = re.search(r"^nanobind==(.*)$", (TOOLS.parent / "requirements.txt").read_text(), re.MULTILINE)
    assert nanobind and nanobind[1] == mlx_parts.PARTS[-1].nanobind


def test_a_wheel_of_the_stable_interface_has_the_modules_of_each_python(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(TOOLS))
    build_wheels = tool("build_wheels")
    monkeypatch.setattr(build_wheels, "FOLDER", tmp_path)
    core = tmp_path / "_core.abi3.so"
    core.write_bytes(b"stable")
    library = {"kiln/libkiln.so.1": "library"}
    wheels = [
        wheel(
            tmp_path,
            f"cp3{minor}-cp3{minor}",
            {
                **library,
                f"kiln/_core.cpython-3{minor}-x86_64-linux-gnu.so": f"core {minor}",
                f"kiln/_mlx-0.32.4.cpython-3{minor}-x86_64-linux-gnu.so": f"mlx {minor}",
                "kiln/mlx.py": str(minor),
            },
        )
        for minor in (12, 13)
    ]
    merged = build_wheels.merge(wheels, core)
    assert merged.name == "kiln_jit-1-cp312-abi3-linux_x86_64.whl"
    with zipfile.ZipFile(merged) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    record = content.pop("kiln_jit-1.dist-info/RECORD").decode().splitlines()
    assert content.pop("kiln_jit-1.dist-info/WHEEL") == b"Wheel-Version: 1.0\nTag: cp312-abi3-linux_x86_64\n"
    assert content == {
        "kiln/libkiln.so.1": b"library",
        "kiln/_core.abi3.so": b"stable",
        "kiln/_core.cpython-312-x86_64-linux-gnu.so": b"core 12",
        "kiln/_core.cpython-313-x86_64-linux-gnu.so": b"core 13",
        "kiln/_mlx-0.32.4.cpython-312-x86_64-linux-gnu.so": b"mlx 12",
        "kiln/_mlx-0.32.4.cpython-313-x86_64-linux-gnu.so": b"mlx 13",
        "kiln/mlx.py": b"12",
    }
    stable = hashlib.sha256(b"stable").digest()
    line = f"kiln/_core.abi3.so,sha256={base64.urlsafe_b64encode(stable).decode().rstrip('=')},6"
    assert line in record and "kiln_jit-1.dist-info/RECORD,," in record
    assert len(record) == len(content) + 2


@pytest.mark.parametrize(
    ("name", "minors"),
    [
        ("kiln_jit-0.1.0-cp311-cp311-manylinux_2_36_x86_64.whl", [11]),
        ("kiln_jit-0.1.0-cp312-abi3-manylinux_2_36_x86_64.whl", [12, 13, 14, 15]),
    ],
)
def test_which_wheel_is_for_which_python(name, minors, monkeypatch):
    monkeypatch.syspath_prepend(str(TOOLS))
    test_wheels = tool("test_wheels")
    assert [minor for minor in range(10, 16) if test_wheels.fits(Path(name), (3, minor))] == minors


def test_pythons_that_wheels_are_built_for(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(TOOLS))
    build_wheels = tool("build_wheels")
    here = build_wheels.ask(Path(sys.executable))
    assert here == (Path(sys.executable), sys.version_info[:2])
    other = tmp_path / "python"
    for printed in ("pypy 3 11 0", "cpython 3 14 1", ""):
        other.write_text(f"#!/bin/sh\necho '{printed}'\n")
        other.chmod(0o755)
        assert build_wheels.ask(other) is None


def test_a_wheel_that_needs_what_a_system_may_lack(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(TOOLS))
    test_wheels = tool("test_wheels")
    library = Path(_core.__file__)
    made = tmp_path / "kiln_jit-1-cp311-cp311-linux_x86_64.whl"
    with zipfile.ZipFile(made, "w") as archive:
        archive.write(library, f"kiln/{library.name}")
        archive.write(library.with_name("libkiln_compiler.so"), "kiln/libkiln_compiler.so")
        archive.writestr("other/file.py", "")
        archive.writestr("kiln/py.typed", "")
        archive.writestr("kiln/cmake/kiln-config.cmake", "")
    # Before auditwheel has copied it beside the compiler.
    assert test_wheels.problems_of(made, tmp_path / "contents") == [
        "other/file.py lies outside the package",
        "kiln/include/kiln/kiln.h is missing",
        "libkiln_compiler.so needs libzstd.so.1",
    ]


def test_the_first_program_is_that_of_the_readme(monkeypatch):
    monkeypatch.syspath_prepend(str(TOOLS))
    program = tool("test_wheels").first_program()
    assert "import numpy" in program and "kiln.metal_kernel(" in program
    program = tool("test_wheels").first_program("cpp")
    assert program.startswith("#include <kiln/kiln.h>\n") and "int main()" in program


# ---- measure_coverage.py


def test_tables_of_the_compilers_coverage():
    module = tool("measure_coverage")
    files = {
        "src/compiler/ir/sections.h": module.Lines({1, 2, 3}, set()),
        "src/compiler/lowering/ldexp.cpp": module.Lines(set(range(1, 10)), {10, 11}),
        "src/compiler/clang/dialects/tokens.cpp": module.Lines({1}, {2}),
        "src/compiler/pipeline.cpp": module.Lines(set(range(1000)), {2000}),
    }
    assert module.compiler_tables(files) == (
        "| folder | lines | reached |\n| --- | --- | --- |\n"
        "| `clang/` | 2 | 50.0 % |\n| `ir/` | 3 | 100.0 % |\n| `lowering/` | 11 | 81.8 % |\n"
        "| beside the folders | 1,001 | 99.9 % |\n| together | 1,017 | 99.6 % |\n\n"
        "Files of which less than 90 % are reached:\n\n"
        "| file | lines | reached |\n| --- | --- | --- |\n"
        "| `clang/dialects/tokens.cpp` | 2 | 50.0 % |\n| `lowering/ldexp.cpp` | 11 | 81.8 % |\n\n"
    )
    everything = module.compiler_tables({"src/compiler/ir/sections.h": files["src/compiler/ir/sections.h"]})
    assert everything.endswith("| together | 3 | 100.0 % |\n\n") and "less than" not in everything


def test_tests_of_the_compilers_coverage_are_there():
    module = tool("measure_coverage")
    assert len(set(module.COMPILER_TESTS)) == len(module.COMPILER_TESTS)
    assert all((Path(__file__).parent / f"test_{name}.py").exists() for name in module.COMPILER_TESTS)
    assert module._TABLES.search(module.REASONS.read_text())
