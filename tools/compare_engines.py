"""Runs random bodies on both engines and compares every bit; makes what differs small.

    tools/compare_engines.py 0 20000                 bodies whose threads work together, by seed
    tools/compare_engines.py 0 20000 --kind alone    bodies whose threads go their own ways
    tools/compare_engines.py 0 2000 --kind tiles     bodies with a loop over tiles in threadgroup memory
    tools/compare_engines.py 0 2000 --kind sums      bodies in which threadgroups add up
    tools/compare_engines.py 0 2000 --kind exchanges bodies whose threads exchange values in threadgroup memory
    tools/compare_engines.py 17 18 --reduce          the fewest statements of one that still differ

A process for each engine runs body after body, since settings are read when a process starts. One that ends or hangs
names its body by that, and another goes on behind it. Work on `tests/python/random_waiting_bodies.py`,
`random_bodies.py`, `random_tile_bodies.py`, `random_sum_bodies.py` and `random_exchange_bodies.py`, which write the
bodies; `tests/python/test_instruction_sets.py` and `test_random_exchanges.py` run some of them at each change.

Rejected: a reducer on C++'s grammar. The bodies have a statement in each line, so deleting lines and blocks, and then
replacing what parentheses enclose, does.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import pickle
import select
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

TESTS = Path(__file__).parent.parent / "tests" / "python"
SECONDS = 60  # for one body


class Outcome(NamedTuple):
    outputs: list[Any] | None  # None: it did not come to an end
    engine: str
    message: str  # why this engine, or what went wrong


class Runner:
    """A process with one engine."""

    def __init__(self, kind: str, settings: dict[str, str]) -> None:
        self.kind = kind
        self.settings = settings
        self.process: subprocess.Popen[bytes] | None = None
        self.ran = 0

    def run(self, seed: int, source: str | None) -> Outcome:
        if self.ran >= 300:  # code is kept until a process ends
            self.stop()
        if self.process is None:
            self.errors = tempfile.TemporaryFile()  # noqa: SIM115 (as long as the process)
            self.process = subprocess.Popen(
                [sys.executable, __file__, "--worker", self.kind],
                env={**os.environ, "KILN_VERIFY_PASSES": "on", **self.settings},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self.errors,
            )
            self.ran = 0
        self.ran += 1
        assert self.process.stdin and self.process.stdout
        with contextlib.suppress(BrokenPipeError):
            send(self.process.stdin, (seed, source))
        ready, _, _ = select.select([self.process.stdout], [], [], SECONDS)
        if not ready:
            self.stop()
            return Outcome(None, "", f"more than {SECONDS} s")
        try:
            return Outcome(*receive(self.process.stdout))
        except EOFError:
            code = self.process.wait()
            self.errors.seek(0)
            said = self.errors.read().decode(errors="replace")[-600:]
            self.stop()
            return Outcome(None, "", f"{signal.Signals(-code).name if code < 0 else code}: {said}")

    def stop(self) -> None:
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None


def send(stream: Any, value: Any) -> None:
    data = pickle.dumps(value)
    stream.write(struct.pack("<Q", len(data)) + data)
    stream.flush()


def receive(stream: Any) -> Any:
    size = stream.read(8)
    if len(size) < 8:
        raise EOFError
    return pickle.loads(stream.read(struct.unpack("<Q", size)[0]))


def module_of(kind: str) -> Any:
    sys.path.insert(0, str(TESTS))
    import random_bodies
    import random_exchange_bodies
    import random_sum_bodies
    import random_tile_bodies
    import random_waiting_bodies

    return {
        "together": random_waiting_bodies,
        "alone": random_bodies,
        "tiles": random_tile_bodies,
        "sums": random_sum_bodies,
        "exchanges": random_exchange_bodies,
    }[kind]


def work(kind: str) -> None:
    """Runs bodies until there are no more."""
    module = module_of(kind)
    results = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while True:
        try:
            seed, source = receive(sys.stdin.buffer)
        except EOFError:
            return
        try:
            outputs, launch = module.run(module.Body(seed), source)
            send(results, (outputs, launch.engine, launch.engine_reason))
        except Exception as error:
            send(results, (None, "", f"{type(error).__name__}: {error}"))


class Comparison:
    def __init__(self, kind: str, isa: str) -> None:
        self.kind = kind
        self.scalar = Runner(kind, {"KILN_CPU_ENGINE": "scalar"})
        self.simd = Runner(kind, {"KILN_CPU_ENGINE": "simd-always", **({"KILN_CPU_ISA": isa} if isa else {})})

    def problem(self, seed: int, source: str | None = None) -> tuple[str, str]:
        """What is wrong, in a word and in full; two empty strings where nothing is."""
        import numpy as np

        ours, theirs = self.simd.run(seed, source), self.scalar.run(seed, source)
        if theirs.outputs is None:
            # Not a matter of engines, unless only one of them finds it.
            return ("", "") if ours.message == theirs.message else ("scalar", theirs.message)
        if ours.outputs is None:
            return "stops", ours.message
        if ours.engine != "simd":
            return "refused", ours.message
        for name, a, b in zip(names_of(self.kind, ours.outputs), theirs.outputs, ours.outputs, strict=True):
            bits = f"u{a.dtype.itemsize}"
            wrong = (a.view(bits) != b.view(bits)) & ~((a != a) & (b != b))
            if wrong.any():
                places = np.flatnonzero(wrong)
                first = ", ".join(f"[{k}] {a[k]} {b[k]}" for k in places[:4])
                return "differs", f"{name}, {len(places)} places: {first} (scalar, simd)"
        return "", ""


def names_of(kind: str, outputs: list[Any]) -> list[str]:
    if kind == "exchanges":
        return ["total", "y", "kept"][: len(outputs)]
    names = ["out", "w8", "w16", "wf", "w64", "wv", "scratch", "mine", "total"]
    return {1: ["out"], 2: ["y", "sums"], 3: ["y", "z", "total"]}.get(len(outputs), names)


# ---- Fewer statements


def block_end(lines: list[str], begin: int) -> int:
    """The line that closes the block that a line opens, behind all its `else`s."""
    depth = 0
    for k in range(begin, len(lines)):
        line = lines[k].split("//")[0].rstrip()
        if line.startswith("}"):
            depth -= 1
        if line.endswith("{"):
            depth += 1
        if depth == 0:
            return k
    return begin


def without_statements(lines: list[str]) -> Iterator[list[str]]:
    """With one statement less, large ones first: what can be deleted, and blocks that stand for their contents."""
    spans = [(k, block_end(lines, k)) for k, line in enumerate(lines) if not line.startswith("}")]
    for begin, end in sorted(spans, key=lambda span: span[0] - span[1]):
        if begin == end and "WAIT" in lines[begin] and "threadgroup " not in lines[begin]:
            continue
        yield lines[:begin] + lines[end + 1 :]
        if end > begin:
            inner = [k for k in range(begin + 1, end) if not lines[k].startswith("} else")]
            yield lines[:begin] + [lines[k] for k in inner] + lines[end + 1 :]


def operands(text: str) -> list[str]:
    """Those of an operator in the middle; none of one that keeps an index in its range."""
    depth = 0
    for place, character in enumerate(text):
        depth += (character in "([") - (character in ")]")
        if depth == 0 and character == " ":
            operator, _, rest = text[place + 1 :].partition(" ")
            return [text[:place], rest] if operator in {"+", "-", "*", "/", "|", "^", "<<", ">>"} else []
    return []


def without_terms(lines: list[str]) -> Iterator[list[str]]:
    """With what one pair of parentheses encloses made shorter, long ones first. What may be a place in an array stays
    in its range: nobody wants to see a race or an index outside."""
    spans = []
    for number, line in enumerate(lines):
        if line.startswith(("uint ", "uint3 ", "threadgroup ")):
            continue
        opened = []
        for place, character in enumerate(line):
            if character == "(":
                opened.append(place)
            elif character == ")" and opened:
                spans.append((number, opened.pop(), place))
    for number, begin, end in sorted(spans, key=lambda span: span[1] - span[2]):
        line = lines[number]
        enclosed = line[begin + 1 : end]
        if "~31u" in enclosed:  # the first thread of a simdgroup
            continue
        for shorter in ("1", *operands(enclosed)):
            if len(enclosed) > len(shorter):
                yield [*lines[:number], f"{line[: begin + 1]}{shorter}{line[end:]}", *lines[number + 1 :]]
        if line[begin - 1 : begin] in {" ", "("} and enclosed.isidentifier():
            yield [*lines[:number], f"{line[:begin]}{enclosed}{line[end + 1 :]}", *lines[number + 1 :]]


def reduced(source: str, still_wrong: Callable[[str], bool], until: float) -> str:
    lines = source.split("\n")
    for changes in (without_statements, without_terms, without_statements):
        found = True
        while found and time.monotonic() < until:
            found = False
            # From where the last deletion was: what was tried before it is unlikely to go now.
            tried = 0
            candidates = changes(lines)
            while (candidate := next(candidates, None)) is not None and time.monotonic() < until:
                tried += 1
                if still_wrong("\n".join(candidate)):
                    lines, found = candidate, True
                    candidates = changes(lines)
                    for _ in range(max(0, tried - 3)):
                        next(candidates, None)
                    tried = max(0, tried - 3)
    return "\n".join(lines)


def compare_seeds(
    compare: Comparison, module: Any, arguments: argparse.Namespace, counts: Counter[str], started: float
) -> None:
    for seed in range(arguments.first, arguments.end):
        if time.monotonic() - started > arguments.seconds:
            break
        word, text = compare.problem(seed)
        counts[word or "agree"] += 1
        if not word:
            continue
        print(f"seed {seed} {word}: {text}", flush=True)
        if arguments.reduce:
            body = module.Body(seed)
            source = getattr(body, "source", None) or body.text
            same_problem = lambda text, seed=seed, word=word: compare.problem(seed, text)[0] == word  # noqa: E731
            print(reduced(source, same_problem, time.monotonic() + 150))
            print(f"grid {getattr(body, 'grid', '')} threadgroup {getattr(body, 'threadgroup', '')}\n", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("first", type=int, nargs="?", default=0)
    parser.add_argument("end", type=int, nargs="?", default=1000)
    parser.add_argument("--kind", choices=["together", "alone", "tiles", "sums", "exchanges"], default="together")
    parser.add_argument("--isa", default="", help="of the SIMD engine; the processor's best")
    parser.add_argument("--reduce", action="store_true", help="print the smallest body that still fails")
    parser.add_argument("--seconds", type=float, default=1e9, help="stop behind so many")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        work(arguments.worker)
        return 0
    module = module_of(arguments.kind)
    compare = Comparison(arguments.kind, arguments.isa)
    counts: Counter[str] = Counter()
    started = time.monotonic()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt):
        compare_seeds(compare, module, arguments, counts, started)
    seconds = time.monotonic() - started
    print(f"seeds {arguments.first} to {arguments.first + sum(counts.values()) - 1}: {dict(counts)}, {seconds:.0f} s")
    compare.scalar.stop()
    compare.simd.stop()
    return 0 if set(counts) <= {"agree"} else 1


if __name__ == "__main__":
    sys.exit(main())
