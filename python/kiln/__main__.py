"""``python -m kiln``: ``doctor`` says what is usable here, ``run`` runs a program for MLX with Kiln's functions,
``show`` shows what Kiln makes of a body, ``cache`` says what is compiled already, ``record`` and ``compile`` compile
ahead, ``cpp`` prints a compiler's options for programs in C++."""

from __future__ import annotations

import argparse
import functools
import os
import sys
from collections.abc import Callable
from typing import Any

from kiln import _core


def _reads(read: Callable[[str], Any]) -> Callable[[str], Any]:
    """For argparse, which drops the message of a plain ValueError."""

    @functools.wraps(read)
    def reader(text: str) -> Any:
        try:
            return read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return reader


def _threads(text: str) -> tuple[int, ...]:
    sizes = text.split(",")
    if len(sizes) > 3 or not all(size.isascii() and size.isdigit() for size in sizes):
        raise ValueError(f"expected one to three numbers such as 32,8,1 but got {text!r}")
    return (*(int(size) for size in sizes), 1, 1)[:3]


def _add_doctor(commands: Any) -> None:
    doctor = commands.add_parser(
        "doctor",
        help="which targets and array libraries are usable here, and what would make the others so",
        description="Tries the compiler, the targets and the array libraries, and says for what is not usable why, and "
        "what would make it so.",
        epilog="Exit status: 0 where the compiler, a target and an array library are usable, else 1.",
    )
    doctor.add_argument("--settings", action="store_true", help="list all settings, not only those that are set")
    doctor.add_argument("--json", action="store_true", help="print JSON, with all settings")


def _add_mac(command: argparse.ArgumentParser, help: str) -> None:
    # Without a value it is written `--mac=` by _written_out: argparse would take PROGRAM for one.
    command.add_argument("--mac", metavar="PACKAGE,...", nargs="?", const="", help=help)


def _written_out(arguments: list[str]) -> list[str]:
    """The command line with ``--mac=`` for a ``--mac`` that stands alone before the program."""
    for i, argument in enumerate(arguments):
        if i > 0 and not argument.startswith("-") and arguments[i - 1] not in ("--report", "--output"):
            break  # the program; what follows is its own
        if i > 0 and argument == "--mac":
            arguments = [*arguments[:i], "--mac=", *arguments[i + 1 :]]
    return arguments


def _add_run(commands: Any) -> None:
    run = commands.add_parser(
        "run",
        help="run a program with Kiln's functions in mlx.core.fast",
        usage="python -m kiln run [--metal] [--mac[=PACKAGE,...]] [--report FILE] [--summary]\n"
        "                          (PROGRAM | -m MODULE) [ARGUMENT ...]",
        description="Runs a Python program, unmodified, after kiln.mlx.install().",
        epilog="It reaches this process and those forked from it. Processes that the program starts anew, as "
        "multiprocessing does by 'spawn' and subprocess always, call kiln.mlx.install() themselves.",
    )
    run.add_argument(
        "--metal",
        action="store_true",
        help="mx.metal.is_available() is true, and where MLX has no GPU, mx.gpu means the CPU",
    )
    _add_mac(
        run,
        "as --metal, and the program and these packages see a Mac in sys.platform, platform.system(), "
        "platform.machine() and str(mx.default_device()); by default the packages that make kernels, and their tests",
    )
    run.add_argument(
        "--report",
        metavar="FILE",
        help="at the end, write the launches of each kernel and their totals to this file, as JSON; also where a signal "
        "ends the program",
    )
    run.add_argument(
        "--summary",
        action="store_true",
        help="likewise, print a table of the kernels to the standard error, those that ran longest first",
    )
    run.add_argument("-m", dest="module", action="store_true", help="PROGRAM is the name of a module")
    run.add_argument("program", metavar="PROGRAM")
    arguments = run.add_argument("arguments", nargs=argparse.REMAINDER, metavar="ARGUMENT")
    # There may be none; argparse would say that they are missing where PROGRAM is.
    arguments.required = False


def _add_show(commands: Any) -> None:
    from kiln import _show

    def parts(text: str) -> list[str]:
        chosen = text.split(",")
        for part in chosen:
            if part not in _show.PARTS and not part.startswith(_show.AFTER):
                raise ValueError(f"{part!r} is none of {', '.join(_show.PARTS)}")
        return chosen

    show = commands.add_parser(
        "show",
        help="show the generated text, LLVM IR, assembly and sizes of the body in a file",
        description="Compiles the body of a kernel for given dtypes and shapes, and shows what comes of it. Runs "
        "nothing.",
        epilog="Example: python -m kiln show scale.metal --input x:float32:1024x64 --input factor:float32 "
        "--output y:float32:1024x64 --template N=4 --parts assembly,sizes",
    )
    show.add_argument("body", metavar="FILE", help="the body of the kernel")
    show.add_argument("--name", help="the kernel's name; by default the file's")
    show.add_argument("--header", metavar="FILE", help="text that stands before the kernel's function")
    show.add_argument(
        "--include-dir",
        metavar="FOLDER",
        action="append",
        default=[],
        help="a folder in which #include is looked for, besides that of the file in which it stands. May be repeated",
    )
    for kind in ("input", "output"):
        show.add_argument(
            f"--{kind}",
            metavar="NAME:DTYPE[:SHAPE]",
            type=_reads(_show.argument),
            action="append",
            default=[],
            help=f"an {kind}, such as x:float32:4x5; without a shape it has no dimensions. May be repeated",
        )
    show.add_argument(
        "--template",
        metavar="NAME=VALUE",
        type=_reads(_show.template),
        action="append",
        default=[],
        help="a template argument: a dtype, an int, true or false. May be repeated",
    )
    show.add_argument("--dialect", choices=("metal", "cuda"), help="by default cuda for a file .cu, else metal")
    show.add_argument("--grid", metavar="X,Y,Z", type=_reads(_threads), default=(1, 1, 1), help="by default 1,1,1")
    show.add_argument(
        "--threadgroup", metavar="X,Y,Z", type=_reads(_threads), default=(1, 1, 1), help="by default 1,1,1"
    )
    show.add_argument("--strided", action="store_true", help="ensure_row_contiguous=False")
    show.add_argument("--atomic-outputs", action="store_true", help="outputs are device atomic<T>*")
    show.add_argument("--math-mode", choices=("safe", "relaxed", "fast"), default="safe", help="by default safe")
    show.add_argument("--bounds", choices=("on", "off"), help="whether accesses outside an argument are guarded")
    show.add_argument("--specialize", choices=("on", "off"), help="whether shapes become constants")
    show.add_argument(
        "--parts",
        metavar="PART[,PART]",
        type=_reads(parts),
        default=["text", "sizes"],
        help="what to show, of text (the generated text); clang, guarded, optimized (LLVM IR as Clang made it, with "
        "accesses guarded, and as code for a launch); lanes, components, structured, widened (stages of the SIMD "
        "engine); assembly; passes (what each pass of the compiler did, and how long it took); remarks (why passes "
        "did not fire); after:PASS (LLVM IR after the last run of that pass); sizes; by default text,sizes",
    )
    show.add_argument("--json", action="store_true", help="print JSON, also of a compile error")


def _add_cache(commands: Any) -> None:
    from kiln import _cache

    cache = commands.add_parser(
        "cache",
        help="show, prune, clear or verify the machine code that is kept on disk",
        description="Without an action: where the cache is, how large, and how often kernels were found in it (hits) or "
        "had to be compiled (misses).",
    )
    cache.add_argument(
        "action",
        nargs="?",
        choices=("list", "prune", "clear", "verify"),
        metavar="ACTION",
        help="list: each kernel, those that were used last first; prune: remove those that were used longest ago until "
        "the rest fits; clear: remove all; verify: check each, and remove what is damaged",
    )
    cache.add_argument(
        "--size",
        metavar="SIZE",
        type=_reads(_cache.read_size),
        help="for prune: what is left at most, such as 100M; by default KILN_CACHE_SIZE",
    )
    cache.add_argument("--json", action="store_true", help="print JSON")


def _add_record(commands: Any) -> None:
    record = commands.add_parser(
        "record",
        help="run a program, and write down its kernels so that they can be compiled ahead",
        usage="python -m kiln record [--metal] [--mac[=PACKAGE,...]] [--output FILE]\n"
        "                             (PROGRAM | -m MODULE) [ARGUMENT ...]",
        description="Runs a Python program as run does. At its end, writes the kernels that it compiled, with the dtypes "
        "and shapes of their calls, to a file that compile takes.",
    )
    record.add_argument("--metal", action="store_true", help="as for run")
    _add_mac(record, "as for run")
    record.add_argument("--output", metavar="FILE", default="kernels.json", help="by default kernels.json")
    record.add_argument("-m", dest="module", action="store_true", help="PROGRAM is the name of a module")
    record.add_argument("program", metavar="PROGRAM")
    record.add_argument("arguments", nargs=argparse.REMAINDER, metavar="ARGUMENT")


def _add_compile(commands: Any) -> None:
    compile_ = commands.add_parser(
        "compile",
        help="compile the kernels of a recording ahead",
        description="Compiles the kernels that record has written down: into the cache on disk, or into a bundle, which "
        "is one file that KILN_BUNDLE names on other machines.",
        epilog="Exit status: 0 where all is compiled and stored, else 1.",
    )
    compile_.add_argument("recording", metavar="FILE", help="what record has written")
    compile_.add_argument(
        "--architecture",
        metavar="NAME",
        action="append",
        default=[],
        help="what to compile for: x86-64, x86-64-v2, x86-64-v3, x86-64-v4, sm_80, sm_86, sm_87, sm_89, sm_90 or sm_90a; "
        "by default this machine. May be repeated",
    )
    compile_.add_argument("--bundle", metavar="FILE", help="write all machine code to this file")


def _add_cpp(commands: Any) -> None:
    cpp = commands.add_parser(
        "cpp",
        help="print the compiler's options for a program in C++",
        description="Prints the options with which a C++ compiler builds a program that uses this installation of Kiln.",
        epilog="Example: c++ -O2 main.cpp $(python -m kiln cpp) -o main",
    )
    cpp.add_argument(
        "--cmake-dir",
        action="store_true",
        help="print the folder that find_package(kiln) of CMake takes as kiln_DIR or in CMAKE_PREFIX_PATH",
    )


def _parser() -> argparse.ArgumentParser:
    description = " ".join((__doc__ or "").replace("``", "").split())
    parser = argparse.ArgumentParser(prog="python -m kiln", description=description)
    parser.add_argument("--version", action="version", version=f"Kiln {_core.version}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for add in (_add_doctor, _add_run, _add_show, _add_cache, _add_record, _add_compile, _add_cpp):
        add(commands)
    return parser


_PRINTING = ("doctor", "show", "cache", "cpp")


def _prints(options: argparse.Namespace) -> int:
    """The commands that print. Where nobody reads what they print any more, as behind ``| head``, they end."""
    try:
        if options.command == "doctor":
            from kiln import _doctor

            status = _doctor.main(as_json=options.json, every_setting=options.settings)
        elif options.command == "cache":
            from kiln import _cache

            status = _cache.main(options.action, limit=options.size, as_json=options.json)
        elif options.command == "cpp":
            from kiln import _cpp

            status = _cpp.main(cmake_dir=options.cmake_dir)
        else:
            from kiln import _show

            status = _show.main(options)
        sys.stdout.flush()
    except BrokenPipeError:
        # The interpreter flushes once more when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return status


def main() -> int:
    arguments = sys.argv[1:]
    if arguments[:1] in (["run"], ["record"]):
        arguments = _written_out(arguments)
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.command is None:
        parser.print_help()
        return 0
    if options.command in _PRINTING:
        return _prints(options)
    if options.command == "record":
        from kiln import _recording

        return _recording.record(
            options.program,
            options.arguments,
            as_module=options.module,
            metal=options.metal,
            mac=options.mac,
            output=options.output,
        )
    if options.command == "compile":
        from kiln import _recording

        return _recording.compile_recorded(options.recording, architectures=options.architecture, bundle=options.bundle)
    from kiln import _run

    return _run.main(
        options.program,
        options.arguments,
        as_module=options.module,
        metal=options.metal,
        mac=options.mac,
        report=options.report,
        summary=options.summary,
    )


if __name__ == "__main__":
    sys.exit(main())
