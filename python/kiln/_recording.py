"""``python -m kiln record`` writes down which kernels a program compiles, and ``compile`` compiles them ahead.

The file has kernels as they were made and the dtypes and shapes that they were called with, not what came of them: a
later version of Kiln reads it, and each machine compiles for itself.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

from kiln import _cache, _core, _libraries, _run
from kiln._core import Kernel
from kiln.errors import CompileError, UnsupportedError

_FORMAT = "Kiln recording"
_VERSION = 1


def record(
    program: str, arguments: list[str], *, as_module: bool, metal: bool, output: str, mac: str | None = None
) -> int:
    """Runs a program as ``run`` does and writes its kernels at its end, however it ends. The program's exit status is
    this process's."""
    # Before the program has run for hours.
    try:
        file = open(output, "w")  # noqa: SIM115
    except OSError as error:
        print(f"python -m kiln record: {error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    _core.start_recording()
    status = 0

    def write(may_wait: bool) -> None:
        if may_wait:
            _run.wait_for_mlx()
        kernels = _core.recorded_kernels()
        json.dump({"format": _FORMAT, "version": _VERSION, "kernels": kernels}, file, indent=1)
        file.write("\n")
        file.flush()
        if status:
            return  # there was no program to run, which was said
        calls = sum(len(kernel["calls"]) for kernel in kernels)
        # The standard output is the program's.
        print(
            f"python -m kiln record: wrote {_cache.counted(len(kernels), 'kernel', 'kernels')} with "
            f"{_cache.counted(calls, 'call', 'calls')} to {output}",
            file=sys.stderr,
            flush=True,
        )

    with file, _run.writing_at_the_end(write):
        status = _run.main(program, arguments, as_module=as_module, metal=metal, mac=mac, command="record")
    return status


class _Unreadable(Exception):
    """What is wrong with a recording."""


def _read(path: str) -> list[dict[str, Any]]:
    try:
        with open(path) as file:
            content = json.load(file)
    except OSError as error:
        raise _Unreadable(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise _Unreadable(f"{path} is no recording: {error}") from None
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise _Unreadable(f"{path} is no recording of python -m kiln record")
    if content.get("version") != _VERSION:
        raise _Unreadable(f"{path} was written by another version of Kiln, which writes recordings in another form")
    kernels = content.get("kernels")
    if not isinstance(kernels, list):
        raise _Unreadable(f"{path} is damaged")
    return kernels


def _calls(kernels: list[dict[str, Any]], path: str, *, general: bool) -> Iterator[tuple[Kernel, dict[str, Any]]]:
    """Each kernel with each of its calls; where ``general``, also with code for any shape, and
    for any launch."""
    for recorded in kernels:
        try:
            calls = recorded["calls"]
            kernel = Kernel(**{key: value for key, value in recorded.items() if key != "calls"}, library="")
            for call in calls:
                variants = [{**call, "grid": tuple(call["grid"]), "threadgroup": tuple(call["threadgroup"])}]
                if general:
                    variants.append({**variants[0], "specialized": False})
                    variants.append({**variants[1], "grid": (1, 1, 1), "threadgroup": (1, 1, 1)})
                for i, variant in enumerate(variants):
                    if variant not in variants[:i]:
                        yield kernel, variant
        except (KeyError, TypeError, AttributeError):
            raise _Unreadable(f"{path} is damaged") from None


def compile_recorded(path: str, *, architectures: list[str], bundle: str | None) -> int:
    """Compiles what a recording has for each of the architectures; by default for this machine's. Into the cache on disk
    or, where it is named, a bundle. 1 where something could not be compiled or stored."""
    entries: dict[str, bytes] = {}
    compilers: set[str] = set()
    seen: set[str] = set()
    made = found = stored = 0
    problems: list[str] = []
    _libraries.tell_library_folders()
    try:
        for kernel, call in _calls(_read(path), path, general=bundle is not None):
            for architecture in architectures or [""]:
                try:
                    id, compiler, code, not_stored, content = _core.compile_ahead(
                        kernel=kernel, architecture=architecture, **call
                    )
                except (CompileError, UnsupportedError) as error:
                    problems.append(str(error))
                    continue
                except TypeError:
                    raise _Unreadable(f"{path} is damaged") from None
                if id in seen:
                    continue
                seen.add(id)
                made += code == "compiled"
                found += code != "compiled"
                compilers.add(compiler)
                if bundle is not None:
                    entries[id] = content
                elif not_stored:
                    problems.append(f"`{kernel.name}` was not stored: {not_stored}")
                else:
                    stored += code != "bundle"
        if bundle is not None and entries:
            # Kiln's and NVRTC, unless one is replaced at this moment: then what it has made is not found.
            _core.write_bundle(bundle, sorted(compilers), entries)
    except (_Unreadable, ValueError, RuntimeError) as error:
        print(f"python -m kiln compile: {error}", file=sys.stderr)
        return 1
    for problem in dict.fromkeys(problems):
        print(f"python -m kiln compile: {problem}", file=sys.stderr)
    where = ""
    if entries:
        where = f"; {bundle} has {_cache.counted(len(entries), 'entry', 'entries')}"
    elif stored:
        where = f"; {_core.cache_status()['directory']} has {'it' if stored == 1 else 'them'}"
    print(f"compiled {made}, found {found} that were compiled before{where}")
    return 1 if problems else 0
