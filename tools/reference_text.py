"""The reference as Markdown: docstrings of the installed package, and the comments of the public C++ headers.

tools/write_lists.py puts these texts into docs/reference, so that one reads them in the repository as on the site. The
site's domain of Python objects finds them by their headings (docs/site_parts.py). Sphinx's autodoc was the alternative:
its texts are on the site alone, and its docstrings are reStructuredText in pages that are Markdown.
"""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent

# ---- Docstrings

# The sections of a docstring, and what their first lines are called on a page. Those with names have items of the form
# "name, name: text".
_SECTIONS = {"Example": "", "Args": "Arguments", "Returns": "Returns", "Raises": "Raises"}
_NAMED = ("Args", "Raises")

_MODULES = ("errors", "mlx")


def _spans(text: str) -> str:
    return re.sub(r"``(.+?)``", r"`\1`", text, flags=re.DOTALL)


def _example(text: str) -> str:
    """Doctest's examples as blocks of code, each with what it prints, which the tests of pages run."""
    blocks: list[str] = []
    source = ""
    for example in doctest.DocTestParser().get_examples(text):
        statement = example.source
        if not example.want:
            source += statement
            continue
        # A page shows what is printed.
        parsed = ast.parse(statement)
        last = parsed.body[-1]
        if isinstance(last, ast.Expr) and not statement.startswith("print("):
            # A list prints as its representation; whether other values do is not known here.
            shown = statement.rstrip() if example.want.startswith("[") else f"repr({statement.rstrip()})"
            if "\n" in shown:
                shown = f"\n{textwrap.indent(shown, '    ')}\n"
            statement = f"print({shown})\n"
        want = example.want.replace("...", "…").rstrip("\n")
        # As Ruff formats it.
        code = re.sub(r"\A((?:import .*\n)+)", r"\1\n", source + statement)
        blocks.append(f"```python\n{code}```\n\n```text\n{want}\n```")
        source = ""
    assert not source, f"an example that prints nothing: {source}"
    return "\n\n".join(blocks)


def _items(text: str) -> str:
    """ "name, kiln.Other: what it is" as a list. Lines that belong to an item are indented."""
    lines = []
    for line in text.split("\n"):
        item = re.match(r"([\w.]+(?:, [\w.]+)*)( \(.*?\))?: ", line)
        if item:
            names = ", ".join(f"`{name}`" for name in item[1].split(", "))
            lines.append(f"* {names}{item[2] or ''}: {line[item.end() :]}")
        else:
            lines.append(line)
    return "\n".join(lines)


def markdown(docstring: str) -> str:
    """A docstring in Google's style as Markdown."""
    parts = re.split(rf"^({'|'.join(_SECTIONS)}):\n", docstring, flags=re.MULTILINE)
    found = [_spans(parts[0].strip()).replace("::\n", ":\n")]
    for name, body in zip(parts[1::2], parts[2::2], strict=True):
        # The section ends at the first line that is not indented.
        inside = re.match(r"(?:(?:  .*)?\n)*(?:  .*)?", body)
        assert inside
        text, after = textwrap.dedent(inside[0]).strip("\n"), body[inside.end() :].strip()
        if name == "Example":
            found.append(_example(text))
        elif name in _NAMED:
            found.append(f"**{_SECTIONS[name]}**\n\n{_spans(_items(text))}")
        else:
            found.append(f"**{_SECTIONS[name]}**: {_spans(text)}")
        if after:
            found.append(_spans(after))
    return "\n\n".join(found)


def _signature(thing: Any, documented: str) -> tuple[str, str]:
    """The parameters of a function as a page shows them, and its docstring. Compiled functions begin their docstring
    with the signature."""
    compiled = re.match(r"\w+(\(.*\))(?: -> .*)?\n", documented)
    if compiled:
        return re.sub(r"^\(self(?:, )?", "(", compiled[1]), documented[compiled.end() :].strip()
    parameters = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for parameter in inspect.signature(thing).parameters.values()
        if parameter.name != "self"
    ]
    shown = str(inspect.Signature(parameters)).replace("(/, ", "(").replace("'", '"')
    return re.sub(r"collections\.abc\.\w+\[\w+\]", "", shown), documented


def _attributes_of(thing: type) -> dict[str, str]:
    """Attributes of a class that are annotations in its source, with the texts that stand below them."""
    path = inspect.getsourcefile(thing)
    if path is None:  # a compiled class
        return {}
    found = {}
    for node in ast.parse(Path(path).read_text()).body:
        if not isinstance(node, ast.ClassDef) or node.name != thing.__name__:
            continue
        for attribute, text in zip(node.body, node.body[1:], strict=False):
            is_text = isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant)
            if isinstance(attribute, ast.AnnAssign) and is_text:
                found[ast.unparse(attribute.target)] = inspect.cleandoc(str(ast.literal_eval(ast.unparse(text))))
    return found


def _method(name: str, method: Any) -> str:
    parameters, documented = _signature(method, inspect.getdoc(method) or "")
    last = name.rpartition(".")[2]
    called = "f" if name == "kiln.Function.__call__" else "kernel"
    return f"#### `{name}`\n\n`{called if last == '__call__' else last}{parameters}`\n\n{markdown(documented)}"


def described(name: str) -> str:
    """A public name of the package (``Kernel``, ``mlx.install``) and, of a class, its members."""
    full = f"kiln.{name}"
    if name in _MODULES:
        return markdown(inspect.getdoc(importlib.import_module(full)) or "")
    module, _, last = full.rpartition(".")
    thing = getattr(importlib.import_module(module), last)
    documented = inspect.getdoc(thing) or ""
    if not isinstance(thing, type):
        parameters, documented = _signature(thing, documented)
        return f"### `{full}`\n\n`{last}{parameters}`\n\n{markdown(documented)}"
    found = [f"### `{full}`"]
    if inspect.isfunction(vars(thing).get("__init__")) and not issubclass(thing, Exception):
        found.append(f"`{last}{_signature(thing, '')[0]}`")
    found.append(markdown(documented))
    attributes = _attributes_of(thing)
    methods = []
    for member_name, member in vars(thing).items():
        if isinstance(member, property):
            attributes[member_name] = inspect.getdoc(member) or ""
        elif callable(member) and (member_name == "__call__" or not member_name.startswith("_")):
            methods.append(_method(f"{full}.{member_name}", member))
    if attributes:
        items = (f"* `{attribute}`: {_spans(text)}".replace("\n", "\n  ") for attribute, text in attributes.items())
        found.append("**Attributes**\n\n" + "\n".join(items))
    return "\n\n".join(found + methods)


# ---- Headers

_ACCESS = re.compile(r"\s*(public|private|protected):")
_NO_DECLARATION = re.compile(r"(class|struct) \w+;|namespace\b|using (?!.* = )")
_SCOPE = re.compile(r"\s*(?:enum )?(?:class|struct) (\w+)[^;(]*\{$")


def _code(lines: list[str]) -> str:
    """A declaration in one line, without the body or the initialisers of a function."""
    text = " ".join(" ".join(lines).split()).rstrip(",;").replace("( ", "(")
    if " concept " in text:
        return text.split(" = ")[0]
    # Parentheses that do not hold the parameters.
    start = max((match.end() for match in re.finditer(r"operator\(\)|requires\([^()]*\)", text)), default=0)
    # Those between angle brackets are part of a type: `std::function<int(int)> f`.
    depth = angles = 0
    for index in range(start, len(text)):
        if depth == 0 and text[index] in "<>":
            angles += 1 if text[index] == "<" else -1
        if angles > 0:
            continue
        depth += (text[index] == "(") - (text[index] == ")")
        if depth == 0 and text[index] == ")":
            # What follows the parameters is a qualifier, an initialiser or a body.
            rest = re.match(r"( const)?( noexcept)?( = default)?", text[index + 1 :])
            assert rest
            return text[: index + 1] + rest[0]
    # Initialisers of variables and enumerators stay, bodies of types go.
    return text if " = " in text or text.startswith("enum") else text.split(" {")[0]


def declarations(header: str) -> Iterator[tuple[int, str, str]]:
    """Depth, text and comment of each public class, function, variable and constant of a header. Where several share a
    comment, it stands with the first of them."""
    found: list[tuple[int, str, list[str]]] = []
    comment: list[str] = []
    lines: list[str] = []
    # Of each class that is open: the depth of braces around it, and whether what follows in it is public.
    classes: list[tuple[int, bool]] = []
    braces = 0
    detail: int | None = None  # the depth around namespace detail, in it
    for line in header.splitlines():
        if re.match(r"\s*(#|//(?!/))", line):
            continue
        code, _, trailing = line.partition("///<")
        if not code.strip() and trailing:
            found[-1][2].append(trailing.strip())
            continue
        if code.strip().startswith("///"):
            comment.append(code.strip().removeprefix("///").removeprefix(" "))
            continue
        code = re.sub(r"//.*", "", code).rstrip()
        stripped = code.strip()
        is_public = detail is None and all(public for _, public in classes)
        if re.match(r"namespace detail\b", stripped):
            detail = braces
        elif match := _ACCESS.match(code):
            classes[-1] = (classes[-1][0], match[1] == "public")
        elif not stripped or (not lines and _NO_DECLARATION.match(stripped)):
            comment = comment if stripped else []
        elif not lines and _SCOPE.match(code):
            if is_public:
                found.append((len(classes), stripped.removesuffix("{").strip(), comment))
            comment = []
            classes.append((braces, "class" not in code.replace("enum class", "enum")))
        elif lines or stripped not in ("}", "};"):
            lines.append(code)
            text = " ".join(lines)
            balanced = text.count("(") == text.count(")") and text.count("{") == text.count("}")
            if balanced and code.endswith((";", "}", ",")) and not text.rstrip().endswith(">"):
                shown = _code(lines)
                if is_public and not re.match(r"~|friend\b|template <.*> struct \w+<|.*= (delete|default)$", shown):
                    if trailing.strip():
                        comment.append(trailing.strip())
                    found.append((len(classes), shown, comment))
                lines, comment = [], []
        braces += code.count("{") - code.count("}")
        while classes and braces <= classes[-1][0]:
            classes.pop()
        if detail is not None and stripped and braces <= detail and not stripped.startswith("namespace"):
            detail = None
    for depth, shown, texts in found:
        yield depth, shown, "\n".join(texts)


def headers_in_order() -> list[str]:
    """The public C++ headers, in the order in which kiln.h includes them, then those that it does not."""
    folder = ROOT / "include" / "kiln"
    included = re.findall(r'#include "kiln/(\S+)"', (folder / "kiln.h").read_text())
    return [*included, *sorted(path.name for path in folder.glob("*.h") if path.name not in {*included, "kiln.h"})]


def header_reference() -> str:
    found = []
    for name in headers_in_order():
        text = (ROOT / "include" / "kiln" / name).read_text()
        found.append(f"### `kiln/{name}`\n")
        for depth, code, comment in declarations(text):
            indent = "  " * depth
            body = textwrap.indent(comment.strip(), indent + "  ").strip()
            found.append(f"{indent}* `{code}`" + (f": {body}" if body else ""))
        found.append("")
    return "\n".join(found).rstrip()
