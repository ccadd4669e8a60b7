"""The hand-written types of the extension modules, against the modules themselves.

`make types` has mypy check the package and all calls of it, `make stubs` compares the rest.
"""

import ast
import importlib
from pathlib import Path
from typing import Any

import kiln
import pytest
from nanobind.stubgen import StubGen


def _parameters(function):
    """Each parameter: kind, name, and whether it has a default. Names do not count where they cannot be used."""
    arguments = function.args
    positional = [("positional", None)] * (len(arguments.posonlyargs) + len(arguments.args))
    defaults = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    return positional, {argument.arg: default is not None for argument, default in defaults}


def _contents(text):
    """What a stub defines: functions with their parameters, by name, of all overloads; properties; variables."""
    found: dict[str, Any] = {}

    def visit(node, prefix):
        for child in node.body:
            if isinstance(child, ast.ClassDef):
                found[prefix + child.name] = "class"
                visit(child, f"{prefix}{child.name}.")
            elif isinstance(child, ast.FunctionDef):
                is_property = any(isinstance(d, ast.Name) and d.id == "property" for d in child.decorator_list)
                what: Any = "property" if is_property else _parameters(child)
                known = found.setdefault(prefix + child.name, what)
                if known != what:
                    # The module has one signature for all overloads: what one of them lacks may be left out.
                    (positional, first), (_, second) = known, what
                    merged = {name: first.get(name, True) or second.get(name, True) for name in {**first, **second}}
                    found[prefix + child.name] = (positional, merged)
            elif isinstance(child, ast.AnnAssign):
                assert isinstance(child.target, ast.Name)
                if not child.target.id.startswith("_"):
                    found[prefix + child.target.id] = "variable"

    visit(ast.parse(text), "")
    return {name: what for name, what in found.items() if not name.endswith("__repr__")}


@pytest.mark.parametrize("name", ["_core", "_mlx"])
def test_stubs_say_what_the_modules_have(name):
    if name == "_mlx":
        importlib.import_module("kiln.mlx")
    generator = StubGen(importlib.import_module(f"kiln.{name}"), quiet=True)
    generator.put(generator.module)
    ours = Path(kiln.__file__).with_name(f"{name}.pyi").read_text()
    assert _contents(ours) == _contents(generator.get())


def test_the_package_says_that_it_has_types():
    assert Path(kiln.__file__).with_name("py.typed").exists()
