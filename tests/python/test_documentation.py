"""The documentation: every block of code does what its page says, every link leads somewhere, every name is explained.

`documentation.py` says what a block's language means.
"""

from __future__ import annotations

import datetime
import doctest
import importlib.util
import inspect
import json
import re
import subprocess
import sys
import types
import zlib

import kiln
import kiln.mlx
import numpy as np
import pytest
from documentation import (
    DIAGRAMS,
    LANGUAGES,
    OUTPUTS,
    PROGRAMS,
    ROOT,
    Block,
    Session,
    code_blocks,
    commands,
    continued,
    headings,
    links,
    matches,
    needed,
    pages,
)
from kiln import _core, _kernels

PAGES = pages()

# Commands that a page shows and that no test runs. Of `make`, the targets must be there.
SHOWN_ONLY = re.compile(
    r"(sudo |TESTS_\w+=\w+ )?(apt-get|git|pip|make|cmake|c\+\+|export|\.|\.venv/\S+|build/\S+)( |$)"
)


@pytest.mark.parametrize("page", PAGES)
def test_every_block_has_a_language_that_the_tests_know(page):
    blocks = code_blocks(page)
    assert [block.place for block in blocks if block.language not in LANGUAGES] == []
    free = [
        block.place
        for before, block in zip([None, *blocks], blocks, strict=False)
        if block.language in OUTPUTS
        and not block.file_name
        and (before is None or before.language not in PROGRAMS or before.file_name)
    ]
    assert len(free) == DIAGRAMS.get(page, 0), f"shown by no program: {free}"


def _run_python(session: Session, page: str) -> None:
    """Runs a page for its names only; its own test checks what it prints."""
    if before := continued(page):
        _run_python(session, before)
    for block in code_blocks(page, "python"):
        if not block.file_name:
            session.python(block)


def _check_output(block: Block, shown: Block | None, printed: str, raised: str | None) -> None:
    if shown is None:
        assert raised is None, f"{block.place} raises, and the page does not say so:\n{raised}"
        assert printed == "", f"{block.place} prints what the page does not show:\n{printed}"
    else:
        assert matches(shown.text, printed), (
            f"{shown.place} is not what {block.place} prints:\n{printed}\n{raised or ''}"
        )


@pytest.mark.parametrize("page", [page for page in PAGES if code_blocks(page)])
def test_blocks_do_what_the_page_says(page, tmp_path):
    for module in needed(page):
        pytest.importorskip(module, reason=f"{page} needs {module}")
    blocks = code_blocks(page)
    with Session(tmp_path) as session:
        if before := continued(page):
            _run_python(session, before)
        for block, following in zip(blocks, [*blocks[1:], None], strict=True):
            if block.file_name:
                (tmp_path / block.file_name).write_text(block.text)
            elif block.language == "python":
                is_shown = following is not None and following.language in OUTPUTS and not following.file_name
                _check_output(block, following if is_shown else None, *session.python(block))
            elif block.language == "console":
                for command, shown in commands(block):
                    if SHOWN_ONLY.match(command):
                        continue
                    printed, status = session.console(command)
                    assert matches(shown, printed), f"{block.place}: {command} prints\n{printed}"
                    assert status == 0 or shown, f"{block.place}: {command} ends with status {status}"


def test_the_notebook_of_the_tutorial_does_what_it_shows(tmp_path):
    cells = json.loads((ROOT / "examples/tutorial.ipynb").read_text())["cells"]
    code = [(number, cell) for number, cell in enumerate(cells) if cell["cell_type"] == "code"]
    assert len(code) > 30
    with Session(tmp_path) as session:
        for number, cell in code:
            block = Block("examples/tutorial.ipynb", number, "python", "".join(cell["source"]) + "\n")
            shown = "".join(line for output in cell["outputs"] for line in output["text"])
            printed, raised = session.python(block)
            assert (raised is not None) == ("raises-exception" in cell["metadata"].get("tags", [])), raised
            assert matches(shown, printed), f"cell {number} prints\n{printed}"


def test_the_notebook_is_written_from_the_pages():
    done = subprocess.run([sys.executable, ROOT / "tools/write_notebook.py", "--check"], check=False)
    assert done.returncode == 0


def test_every_make_target_that_a_page_names_is_there():
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {
        (page, target)
        for page in PAGES
        for target in re.findall(r"(?:`|\$ |^)make ([\w-]+)", (ROOT / page).read_text())
    }
    assert {target for _, target in named} >= {"build", "demo", "test", "docs"}
    assert [(page, target) for page, target in named if target not in targets] == []


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_somewhere(page):
    lost = []
    for file, place in links(page):
        is_page = file.endswith(".md") and (ROOT / file).exists()
        if not (ROOT / file).exists() or (place and not (is_page and place in headings(file))):
            lost.append(f"{file}#{place}" if place else file)
    assert lost == []


# ---- What the pages say of the package


def test_the_page_of_environment_variables_has_the_table_of_settings():
    rows = re.findall(
        r"^\| `(KILN_\w+)` \| (.*) \| (.*) \|$", (ROOT / "docs/reference/environment.md").read_text(), re.M
    )
    assert rows == [tuple(row) for row in _core.settings()]


# What gives the messages that docs/errors.md lists as frequent: a body, a header, and whether outputs are atomic.
FREQUENT = {
    "use of undeclared identifier 'x_shape'; only the body has it, where the body itself names it": (
        "y[0] = f();", "int f() { return x_shape[0]; }", False,
    ),
    "use of undeclared identifier 'y_shape'; only inputs with dimensions have a shape, strides and ndim": (
        "y[0] = y_shape[0];", "", False,
    ),
    "function definition is not allowed here": ("float f() { return 1; }\ny[0] = f();", "", False),
    "the body is a whole kernel; give only what its braces hold": (
        "kernel void f(device float* a [[buffer(0)]]) { a[0] = 1; }", "", False,
    ),
    "a variable in threadgroup memory cannot have an initial value": ("threadgroup float t[2] = {1, 2};", "", False),
    "no viable conversion from 'uint3' to 'uint'": (
        "uint i = thread_position_in_grid;", "", False,
    ),
    "no matching function for call to 'atomic_fetch_add_explicit'": (
        "atomic_fetch_add_explicit(&y[0], 1.0f, memory_order_relaxed);", "", False,
    ),
    "no viable overloaded '+='": ("y[0] += x[0];", "", True),
    "use of undeclared identifier 'expf'": ("y[0] = expf(x[0]);", "", False),
    "use of undeclared identifier 'std'": ("y[0] = std::exp(x[0]);", "", False),
    "subscripted value is not an array, pointer, or vector": ("y[0] = number[0];", "", False),
    "use of undeclared identifier 'T'": ("y[0] = T(1);", "", False),
    "read-only variable is not assignable": ("x[0] = 1;", "", False),
    "'double' is not supported in Metal": ("y[0] = double(1);", "", False),
    "call to 'max' is ambiguous": ("y[0] = max(thread_position_in_grid.x, 1);", "", False),
    "invalid operands to binary expression": ("y[0] = x * 2;", "", False),
}  # fmt: skip
FREQUENT_IN_CUDA = {
    "comparison between pointer and integer": "y[0] = number < 2;",
    "no matching function for call to 'atomicAdd'": "__shared__ long long sum;\natomicAdd(&sum, 1LL);",
    "use of undeclared identifier '__shfl_down'; use '__shfl_down_sync', which takes a mask": (
        "y[0] = __shfl_down(x[0], 1);"
    ),
}


def test_frequent_errors_are_those_that_bodies_give():
    table = (ROOT / "docs/errors.md").read_text().partition("Frequent messages:")[2].partition("\n\nTo find")[0]
    assert sorted(re.findall(r"^\| `([^`]+)`", table, re.M)) == sorted([*FREQUENT, *FREQUENT_IN_CUDA])
    kernels = {
        message: kiln.metal_kernel("example", ["x", "number"], ["y"], source, header, atomic_outputs=atomic_outputs)
        for message, (source, header, atomic_outputs) in FREQUENT.items()
    }
    kernels |= {
        message: kiln.cuda_kernel("example", ["x", "number"], ["y"], source)
        for message, source in FREQUENT_IN_CUDA.items()
    }
    for message, kernel in kernels.items():
        with pytest.raises(kiln.CompileError) as raised:
            kernel.compile(
                inputs=[np.ones(8, np.float32), 1.0],
                output_shapes=[(1,)],
                output_dtypes=["float32"],
                grid=(1, 1, 1),
                threadgroup=(1, 1, 1),
            )
        assert raised.value.diagnostics[0].message.startswith(message)


EXAMPLES = {
    "kiln.metal_kernel": kiln.metal_kernel,
    "kiln.cuda_kernel": kiln.cuda_kernel,
    "kiln.MetalKernel": kiln.MetalKernel,
    "kiln.Kernel.__call__": kiln.Kernel.__call__,
    "kiln.Kernel.compile": kiln.Kernel.compile,
    "kiln.CompileError": kiln.CompileError,
    "kiln.mlx.install": kiln.mlx.install,
    "kiln.mlx.metal_kernel": kiln.mlx.metal_kernel,
}


def docstring(thing) -> str:
    text = inspect.getdoc(thing)
    assert text
    return text


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_examples_of_docstrings(name):
    example = doctest.DocTestParser().get_doctest(docstring(EXAMPLES[name]), {}, name, None, None)
    assert example.examples
    report: list[str] = []
    result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(example, out=report.append)
    assert result.failed == 0, "".join(report)


@pytest.mark.parametrize("function", [kiln.metal_kernel, kiln.cuda_kernel, kiln.MetalKernel], ids=lambda f: f.__name__)
def test_help_explains_every_parameter(function):
    explained = re.findall(r"^ +(\w+(?:, \w+)*): ", docstring(function).partition("Args:")[2], re.MULTILINE)
    names = {name for line in explained for name in line.split(", ")}
    assert set(inspect.signature(function).parameters) - names == set()


def test_help_explains_every_compile_option():
    explained = re.findall(r"^ +\* ``(\w+)``: ", docstring(kiln.metal_kernel), re.MULTILINE)
    assert tuple(explained) == _kernels._COMPILE_OPTIONS


def test_help_explains_every_keyword_of_a_call():
    signature, _, text = docstring(kiln.Kernel.__call__).partition("\n")
    keywords = re.findall(r"(\w+)(?:=\w+)?[,)]", signature.partition("*, ")[2])
    explained = re.findall(r"^  (\w+) \(.*?\): ", text, re.MULTILINE)
    assert explained == keywords


def test_the_reference_has_every_docstring():
    spec = importlib.util.spec_from_file_location("write_lists", ROOT / "tools/write_lists.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name in ("python", "cpp"):
        page = (ROOT / f"docs/reference/{name}.md").read_text()
        assert module.with_lists(page) == page, f"docs/reference/{name}.md: tools/write_lists.py writes it"
    page = (ROOT / "docs/reference/python.md").read_text()
    for name in kiln.__all__:
        thing = getattr(kiln, name)
        if isinstance(thing, type | types.FunctionType):
            assert f"\n### `kiln.{name}`\n" in page
        assert " ".join(docstring(thing).split("\n\n")[0].replace("``", "`").split()) in " ".join(page.split())


def test_the_reference_has_every_declaration_of_the_headers():
    page = (ROOT / "docs/reference/cpp.md").read_text()
    for header in (ROOT / "include/kiln").glob("*.h"):
        public = re.sub(r"namespace detail \{.*\}  // namespace detail", "", header.read_text(), flags=re.DOTALL)
        for comment in re.findall(r"///<? ?(.+)$", public, re.MULTILINE):
            assert comment in page, f"{header.name}: {comment}"


# ---- What the pages say of measurements


def _medians(figures: object) -> list[float]:
    if not isinstance(figures, dict):
        return []
    if "median_ms" in figures:
        return [figures["median_ms"]]
    return [median for value in figures.values() for median in _medians(value)]


def test_measured_figures_are_those_of_the_last_run():
    results = json.loads((ROOT / "bench/results/cpu.json").read_text())["figures"]
    page = (ROOT / "docs/measured.md").read_text()
    medians = set(_medians(results))
    assert len(medians) >= 20
    # Launches are in microseconds however long they are.
    forms = {ms: (f"{ms:.3g} ms" if ms < 100 else f"{ms:.0f} ms", f"{1e3 * ms:.2f} µs") for ms in medians}
    assert [ms for ms, both in forms.items() if not any(f" {form} (" in page for form in both)] == []


def test_the_readmes_figures_are_measured():
    section = (ROOT / "README.md").read_text().partition("## Measured")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (CPU|GPU): (.*)$", section, re.MULTILINE)
    figures = [(target, figure) for target, row in rows for figure in re.findall(r"[0-9.]+ (?:ms|µs)", row)]
    assert len(figures) >= 15
    page = (ROOT / "docs/measured.md").read_text()
    gpu = set(_medians(json.loads((ROOT / "bench/results/gpu.json").read_text())["figures"]))
    on_gpu = {form for ms in gpu for form in (f"{ms:.3f} ms", f"{ms:.3g} ms", f"{ms:.0f} ms")}
    lost = [
        figure
        for target, figure in figures
        if (figure not in on_gpu if target == "GPU" else f" {figure} (" not in page)
    ]
    assert lost == []


def test_the_readme_names_the_dates_of_its_measurements():
    readme = (ROOT / "README.md").read_text()
    for name in ("cpu", "gpu"):
        date = datetime.date.fromisoformat(json.loads((ROOT / f"bench/results/{name}.json").read_text())["date"])
        assert f"({date.day} {date:%B %Y})" in readme


def test_the_start_page_shows_the_demonstrations_table(tmp_path):
    # The same rows and columns; the numbers are one machine's.
    pytest.importorskip("matplotlib")
    program = """if True:
        from demo.main import table
        from demo.learn import LearnReport
        from demo.warp import WarpReport
        times = {f"{way} {what}": 1.0 for way in ("operations", "kernel") for what in ("forward", "vjp")}
        print(table((1, 1, 3), WarpReport(0.1, 0.1, times), LearnReport([1.0, 0.1], [1.0] * 6, (1.0,) * 6, "MLX 0.32.4"), {}))
    """
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    (shown,) = (
        shown
        for block in code_blocks("docs/start.md", "console")
        for command, shown in commands(block)
        if command == "make demo"
    )

    def form(text: str) -> list[str]:
        return [re.sub(r"-?\d[\d.]*(e[-+]\d+)?", "0", " ".join(line.split())) for line in text.split("\n")]

    rows = form(done.stdout)
    assert len(form(shown)) > 10
    assert [row for row in form(shown) if row not in [*rows, "…"]] == []


# ---- The site


def test_the_site_has_every_page(site):
    below = [page.removeprefix("docs/").removesuffix(".md") for page in PAGES if page.startswith("docs/")]
    assert [page for page in below if not (site / f"{page}.html").exists()] == []


def _public(owner: type) -> set[str]:
    names = {name for name in vars(owner) if not name.startswith("_")} | set(getattr(owner, "__annotations__", {}))
    return names | ({"__call__"} & set(vars(owner)))


def test_the_reference_has_every_public_name(site):
    _, _, _, _, packed = (site / "objects.inv").read_bytes().split(b"\n", 4)
    explained = set(re.findall(r"^(\S+) py:\w+ ", zlib.decompress(packed).decode(), re.MULTILINE))
    wanted = {"kiln.mlx", "kiln.mlx.install", "kiln.mlx.uninstall"}
    for name in kiln.__all__:
        thing = getattr(kiln, name)
        wanted.add(f"kiln.{name}")
        if isinstance(thing, type):
            wanted |= {f"kiln.{name}.{member}" for member in _public(thing)}
    for name in ("metal_kernel", "cuda_kernel", "MetalKernel"):
        wanted.add(f"kiln.mlx.{name}")
    assert wanted - explained == set()


# ---- What reads the pages


@pytest.mark.parametrize(
    ("shown", "printed", "equal"),
    [
        ("a\nb\n", "a\nb\n", True),
        ("a\nb\n", "a\n", False),
        ("a …\n", "a 1.5 ms\n", True),
        ("a …\n", "b 1.5 ms\n", False),
        ("a …\n", "a 1\n2\n", False),
        ("a\n…\nb\n", "a\n1\n2\nb\n", True),
        ("a\n…\nb\n", "a\nb\n", True),
        ("a\n…\n", "b\n1\n", False),
        ("it took 1.2 ms\n", "it took 34.5 ms\n", True),
        ("it took 1.2 m\n", "it took 34.5 m\n", False),
        ("a.b(c)\n", "a+b(c)\n", False),
        ("", "a\n", False),
        ("", "", True),
    ],
)
def test_what_counts_as_equal(shown, printed, equal):
    assert matches(shown, printed) == equal
