"""``python -m kiln show``: what Kiln makes of the body in a file, without running it."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import kiln
from kiln import _core, _kernels

# What can be asked for, in the order in which it is printed.
PARTS = (
    *("text", "clang", "guarded", "lanes", "components", "structured", "widened", "optimized"),
    *("assembly", "passes", "remarks", "sizes"),
)

# Before the name of a pass: LLVM IR after its last run.
AFTER = "after:"


class Argument(NamedTuple):
    """One input or output as the command line describes it: ``x:float32:4x5``."""

    name: str
    dtype: str
    shape: tuple[int, ...]


def argument(text: str) -> Argument:
    """Reads ``NAME:DTYPE[:SHAPE]``. Raises ValueError."""
    name, *rest = text.split(":")
    if not 1 <= len(rest) <= 2:
        raise ValueError(f"expected NAME:DTYPE or NAME:DTYPE:SHAPE, such as x:float32:4x5, but got {text!r}")
    if _core.dtype_name(rest[0]) is None:
        raise ValueError(f"{rest[0]!r} is no dtype, in {text!r}; those are {', '.join(_core.DTYPES)}")
    shape: tuple[int, ...] = ()
    if len(rest) == 2:
        if not re.fullmatch(r"\d+(x\d+)*", rest[1], re.ASCII):
            raise ValueError(f"expected a shape such as 4x5 but got {rest[1]!r}, in {text!r}")
        shape = tuple(int(dimension) for dimension in rest[1].split("x"))
    return Argument(name, rest[0], shape)


def template(text: str) -> tuple[str, str | int | bool]:
    """Reads ``NAME=VALUE``: a dtype, an int, true or false. Raises ValueError."""
    name, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"expected NAME=VALUE, such as T=float32 or N=4, but got {text!r}")
    if value in ("true", "false"):
        return name, value == "true"
    if re.fullmatch(r"[+-]?\d+", value, re.ASCII):
        return name, int(value)
    if _core.dtype_name(value) is None:
        raise ValueError(f"{value!r} is neither a dtype nor an int nor true or false, in {text!r}")
    return name, value


def _compile_options(options: Any) -> dict[str, Any]:
    chosen: dict[str, Any] = {"math_mode": options.math_mode, "include_dirs": options.include_dir}
    if options.bounds:
        chosen["bounds"] = options.bounds
    if options.specialize:
        chosen["specialize"] = options.specialize == "on"
    return chosen


def describe(options: Any) -> dict[str, Any]:
    """What was asked for, as JSON can have it. Raises what making and compiling the kernel raise."""
    if options.dialect is None:
        options.dialect = "cuda" if Path(options.body).suffix in (".cu", ".cuh") else "metal"
    interface: Callable[..., kiln.Kernel] = getattr(_kernels, f"{options.dialect}_kernel")
    if options.dialect == "cuda" and options.atomic_outputs:
        raise ValueError("--atomic-outputs is for the dialect metal")
    own = {"atomic_outputs": options.atomic_outputs} if options.dialect == "metal" else {}
    kernel = interface(
        name=options.name or Path(options.body).stem,
        input_names=[described.name for described in options.input],
        output_names=[described.name for described in options.output],
        source=Path(options.body),
        header=Path(options.header) if options.header else "",
        ensure_row_contiguous=not options.strided,
        compile_options=_compile_options(options),
        **own,
    )
    call: dict[str, Any] = {
        "input_shapes": [described.shape for described in options.input],
        "input_dtypes": [described.dtype for described in options.input],
        "output_shapes": [described.shape for described in options.output],
        "output_dtypes": [described.dtype for described in options.output],
        "template": options.template,
        "grid": options.grid,
        "threadgroup": options.threadgroup,
    }
    result: dict[str, Any] = {"name": kernel.name, "dialect": options.dialect}
    if "text" in options.parts:
        result["text"] = kernel.source_for(**call)
    if set(options.parts) == {"text"}:
        return result
    compiled = kernel.compile(**call)
    result |= {
        "target": compiled.target,
        "architecture": compiled.architecture,
        "engine": compiled.engine,
        "engine_reason": compiled.engine_reason,
        "diagnostics": [found._asdict() for found in compiled.diagnostics],
    }
    after = [part for part in options.parts if part.startswith(AFTER)]
    if chosen := [part for part in PARTS[1:-3] if part in options.parts] + after:
        stages = compiled.stages(after=[part.removeprefix(AFTER) for part in after])
        for part in chosen:
            if part not in stages:
                raise ValueError(
                    f"no pass {part.removeprefix(AFTER)!r} ran"
                    if part in after
                    else f"the {compiled.engine} engine has no stage {part!r}"
                )
            result[part] = stages[part]
    if "passes" in options.parts:
        fields = ("name", "function", "fired", "number", "switched_off", "ms", "instructions_before")
        result["passes"] = [
            {field: getattr(one, field) for field in (*fields, "instructions_after")} for one in compiled.passes()
        ]
    if "remarks" in options.parts:
        result["remarks"] = [
            {field: getattr(one, field) for field in ("name", "message", "text", "line", "file")}
            for one in compiled.remarks()
        ]
    if "sizes" in options.parts:
        result["sizes"] = {
            "code_bytes": compiled.code_bytes,
            "threadgroup_memory_bytes": compiled.threadgroup_memory_bytes,
            "thread_memory_bytes": compiled.thread_memory_bytes,
        }
    return result


def _warnings(result: dict[str, Any]) -> list[dict[str, Any]]:
    return [found for found in result.get("diagnostics", ()) if found["severity"] == "warning"]


def _print_sizes(result: dict[str, Any]) -> None:
    print(f"{result['name']}: {result['target']}, {result['architecture']}, {result['engine']} engine")
    rows = {
        "machine code and constants": result["sizes"]["code_bytes"],
        "threadgroup memory": result["sizes"]["threadgroup_memory_bytes"],
        "memory of a waiting thread": result["sizes"]["thread_memory_bytes"],
    }
    for what, size in rows.items():
        print(f"  {what:26} {size:8} bytes")
    if warnings := _warnings(result):
        print(f"  {'warnings':26} {len(warnings):8}")


def _print_passes(result: dict[str, Any]) -> None:
    """A line for each run of a pass: its number for KILN_PASS_LIMIT, whether it fired, instructions, time."""
    print("    no.  fired          instructions       ms  pass, function")
    for one in result["passes"]:
        number = one["number"] or ""
        fired = "off" if one["switched_off"] else "yes" if one["fired"] else "no"
        change = "" if one["switched_off"] else f"{one['instructions_before']} -> {one['instructions_after']}"
        print(f"  {number:>5}  {fired:5} {change:>21} {one['ms']:8.2f}  {one['name']} {one['function']}".rstrip())


def _print_remarks(result: dict[str, Any]) -> None:
    """A line for each remark: its position, if that is known, the pass, the reason."""
    for one in result["remarks"]:
        where = f"{one['file'] or one['text']}:{one['line']}: " if one["line"] else ""
        print(f"{where}{one['name']}: {one['message']}")


def _fail(options: Any, reason: str, diagnostics: Sequence[kiln.Diagnostic] = ()) -> int:
    if options.json:
        print(json.dumps({"error": reason, "diagnostics": [found._asdict() for found in diagnostics]}, indent=2))
    else:
        print(f"python -m kiln show: {reason}", file=sys.stderr)
    return 1


def main(options: Any) -> int:
    """Prints what was asked for. 1 where the kernel is wrong or a file cannot be read; the reason goes to stderr or,
    as JSON, to stdout."""
    try:
        result = describe(options)
    except (ValueError, TypeError, kiln.CompileError, kiln.UnsupportedError) as error:
        diagnostics = error.diagnostics if isinstance(error, kiln.CompileError) else []
        return _fail(options, str(error), diagnostics)
    if options.json:
        print(json.dumps(result, indent=2))
        return 0
    shown = [part for part in PARTS[:-3] if part in options.parts]
    shown += [part for part in options.parts if part.startswith(AFTER)]
    shown += [part for part in PARTS[-3:] if part in options.parts]
    for part in shown:
        if len(shown) > 1 and part != "sizes":
            print(f"==== {part}")
        if part == "sizes":
            _print_sizes(result)
        elif part == "passes":
            _print_passes(result)
        elif part == "remarks":
            _print_remarks(result)
        else:
            print(result[part].rstrip("\n"))
    # stdout has what was asked for, and no more.
    for found in _warnings(result):
        where = f"{found['file'] or found['text']}:{found['line']}:{found['column']}"
        print(f"{where}: warning: {found['message']}", file=sys.stderr)
    return 0
