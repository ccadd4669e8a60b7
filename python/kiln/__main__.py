"""``python -m kiln``: ``doctor`` says what is usable here, ``run`` runs a program for MLX with Kiln's functions."""

from __future__ import annotations

import argparse
import sys


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m kiln", description=__doc__.replace("``", ""))
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    commands.add_parser(
        "doctor",
        help="which targets and array libraries are usable here, and what would make the others so",
    )

    run = commands.add_parser(
        "run",
        help="run a program with Kiln's functions in mlx.core.fast",
        usage="python -m kiln run [--metal] (PROGRAM | -m MODULE) [ARGUMENT ...]",
        description="Runs a Python program, unmodified, after kiln.mlx.install().",
        epilog="It reaches this process and those forked from it. Processes that the program starts anew, as "
        "multiprocessing does by 'spawn' and subprocess always, call kiln.mlx.install() themselves.",
    )
    run.add_argument(
        "--metal",
        action="store_true",
        help="mx.metal.is_available() is true, and where MLX has no GPU, mx.gpu means the CPU",
    )
    run.add_argument("-m", dest="module", action="store_true", help="PROGRAM is the name of a module")
    run.add_argument("program", metavar="PROGRAM")
    run.add_argument("arguments", nargs=argparse.REMAINDER, metavar="ARGUMENT")
    return parser


def main() -> int:
    options = _parser().parse_args()
    if options.command == "doctor":
        from kiln import _doctor

        return _doctor.main()
    from kiln import _run

    return _run.main(options.program, options.arguments, as_module=options.module, metal=options.metal)


if __name__ == "__main__":
    sys.exit(main())
