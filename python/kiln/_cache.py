"""``python -m kiln cache``: where the cache on disk is, what is in it, and how to make it smaller."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

from kiln import _core


def size(count: int) -> str:
    """ "1.5 MiB" """
    units = ("bytes", "KiB", "MiB", "GiB", "TiB")
    number, unit = float(count), 0
    while number >= 1024 and unit + 1 < len(units):
        number /= 1024
        unit += 1
    return f"{count} bytes" if unit == 0 else f"{number:.1f} {units[unit]}"


def counted(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


def describe() -> tuple[bool, str]:
    """Whether machine code is kept on disk, and where and how much; or why not."""
    status = _core.cache_status()
    if status["mode"] == "off":
        return False, "KILN_CACHE is off"
    if status["problem"]:
        return False, status["problem"]
    detail = (
        f"{status['directory']}, {counted(status['entries'], 'kernel', 'kernels')}, {size(status['bytes'])} of "
        f"{size(status['limit_bytes'])}; {counted(status['hits'], 'hit', 'hits')}, "
        f"{counted(status['misses'], 'miss', 'misses')}"
    )
    return True, detail + ("; nothing is stored: KILN_CACHE is read" if status["mode"] == "read" else "")


def _show(as_json: bool) -> int:
    status = _core.cache_status()
    if as_json:
        print(json.dumps(status, indent=2))
        return 0
    rows = [
        ("folder", status["directory"] or "none"),
        ("kernels", status["entries"]),
        ("size", f"{size(status['bytes'])} of {size(status['limit_bytes'])}"),
        ("hits", status["hits"]),
        ("misses", status["misses"]),
    ]
    for name, value in rows:
        print(f"{name:8} {value}")
    if status["mode"] == "off":
        print("It is not used: KILN_CACHE is off.")
    elif status["problem"]:
        print(f"It is not used: {status['problem']}.")
    elif status["mode"] == "read":
        print("Nothing is stored: KILN_CACHE is read.")
    return 0


def _list(as_json: bool) -> int:
    items = _core.cache_items()
    if as_json:
        print(json.dumps(items, indent=2))
        return 0
    for item in items:
        # 0: a time in the future, when the clock was wrong.
        used = time.strftime("%Y-%m-%d %H:%M", time.localtime(item["last_used"])) if item["last_used"] else "unknown"
        what = item["problem"] or f"{item['kernel']}, {item['architecture']}, {item['engine']} engine"
        print(f"{item['id'][:12]}  {item['bytes']:9} bytes  used {used}  {what}")
    return 0


def _removed(removed: tuple[int, int], as_json: bool) -> int:
    if as_json:
        print(json.dumps({"entries": removed[0], "bytes": removed[1]}))
    else:
        print(f"removed {counted(removed[0], 'kernel', 'kernels')}, {size(removed[1])}")
    return 0


def _prune(limit: int | None, as_json: bool) -> int:
    return _removed(_core.cache_prune(_core.cache_status()["limit_bytes"] if limit is None else limit), as_json)


def _verify(as_json: bool) -> int:
    problems = _core.cache_verify()
    valid = sum(not item["problem"] for item in _core.cache_items())
    if as_json:
        print(json.dumps({"valid": valid, "problems": [item["problem"] for item in problems]}, indent=2))
    else:
        for item in problems:
            print(item["problem"])
        damaged = "; what was damaged is removed" if problems else ""
        print(f"{counted(valid, 'kernel is', 'kernels are')} undamaged{damaged}")
    return 1 if problems else 0


def main(action: str | None, *, limit: int | None, as_json: bool) -> int:
    """1 where entries are damaged (verify) or the folder cannot be used."""
    actions: dict[str | None, Callable[[], int]] = {
        None: lambda: _show(as_json),
        "list": lambda: _list(as_json),
        "prune": lambda: _prune(limit, as_json),
        "clear": lambda: _removed(_core.cache_clear(), as_json),
        "verify": lambda: _verify(as_json),
    }
    try:
        return actions[action]()
    except (RuntimeError, ValueError) as error:
        print(f"python -m kiln cache: {error}", file=sys.stderr)
        return 1


def read_size(text: str) -> int:
    """For argparse."""
    count: int | None = _core.byte_count(text)
    if count is None:
        raise ValueError(f"expected a number of bytes such as 512M or 2G but got {text!r}")
    return count
