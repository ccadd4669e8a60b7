#!/usr/bin/env python3
"""Builds Kiln and installs the package into the environment that runs this script.

The build folder is kept, so that a second run compiles only what has changed. Its path is written to
build/.stamps/build-dir, for CMake and ctest. Ninja's counter is shown while the build runs, and all that pip, CMake and
Ninja print is in build/install.log, whose end is shown where something fails.
"""

import os
import re
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STEP = re.compile(r"\s*\[(\d+)/(\d+)\] ")


def follow(command: list[str], log: Path, environment: dict[str, str]) -> int:
    """Runs the command, keeps its output in `log` and shows Ninja's counter: one line that changes on a terminal, else
    a line for each tenth of the steps. Returns the exit status.
    """
    terminal, begin, tenth, shown = sys.stdout.isatty(), time.monotonic(), -1, False
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment) as run,
        log.open("w") as copy,
    ):
        assert run.stdout is not None
        for line in run.stdout:
            copy.write(line)
            if not (match := STEP.match(line)):
                continue
            done, steps = int(match[1]), int(match[2])
            text = f"[{done}/{steps}] {time.monotonic() - begin:.0f} s"
            if terminal:
                print(f"\r{text} ", end="", flush=True)
                shown = True
            elif done * 10 // steps != tenth:
                tenth = done * 10 // steps
                print(text, flush=True)
    if shown:
        print()
    return run.returncode


def main() -> int:
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}{getattr(sys, 'abiflags', '')}"
    build_dir = ROOT / "build" / tag
    stamps = ROOT / "build" / ".stamps"
    stamps.mkdir(parents=True, exist_ok=True)
    log = ROOT / "build" / "install.log"
    status = follow(
        [
            *(sys.executable, "-m", "pip", "install", "--verbose", "--no-build-isolation", "--no-deps"),
            *("--force-reinstall", "--config-settings", f"build-dir={build_dir}", str(ROOT)),
        ],
        log,
        # cmake and ninja of the environment come first.
        {**os.environ, "PATH": f"{sysconfig.get_path('scripts')}:{os.environ['PATH']}"},
    )
    if status:
        print("".join(log.read_text().splitlines(keepends=True)[-60:]), end="")
        print(f"the build failed; all that it printed is in {log}")
        return status
    (stamps / "build-dir").write_text(f"{build_dir}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
