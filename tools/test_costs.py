"""What each file of the Python tests costs: a plugin for pytest, which prints the table of docs/design/testing.md.

    PYTHONPATH=tools nice .venv/bin/python -m pytest -p test_costs -n 2 --dist worksteal -m "not long" tests/python

(`make test-costs`.)
Counts processor time, which other work on the machine changes little: that of the test's process, and of all that it has
started, also where they serve several tests. Works with pytest-xdist; finding the tests is a row of its own.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_TICKS = os.sysconf("SC_CLK_TCK")
_costs: Counter[str] = Counter()


def _times() -> dict[int, tuple[int, int]]:
    """Of each process: its parent, and its ticks with those of the children that it has waited for."""
    found = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it has ended
            found[int(folder.name)] = (int(fields[1]), sum(map(int, fields[11:15])))
    return found


def _seconds() -> float:
    """Of this process and its descendants."""
    times = _times()
    children: dict[int, list[int]] = {}
    for process, (parent, _) in times.items():
        children.setdefault(parent, []).append(process)
    ticks, pending = 0, [os.getpid()]
    while pending:
        process = pending.pop()
        ticks += times[process][1]
        pending += children.get(process, [])
    return ticks / _TICKS


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    is_controller = session.config.pluginmanager.hasplugin("dsession")
    before = _seconds()
    result = yield
    if not is_controller:
        _costs["finding the tests"] += _seconds() - before  # type: ignore[assignment]
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    before = _seconds()
    result = yield
    _costs[item.path.name] += _seconds() - before  # type: ignore[assignment]
    return result


def pytest_sessionfinish(session: pytest.Session) -> None:
    if (output := getattr(session.config, "workeroutput", None)) is not None:
        output["costs"] = dict(_costs)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    _costs.update(node.workeroutput["costs"])


def pytest_terminal_summary(terminalreporter: Any) -> None:
    terminalreporter.section("seconds of processor time")
    for name, seconds in _costs.most_common():
        terminalreporter.write_line(f"| `{name}` | {seconds:.0f} |")
    terminalreporter.write_line(f"| together | {sum(_costs.values()):.0f} |")
