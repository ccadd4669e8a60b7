"""Which tests of a long matrix are part of `make test`: the others have the mark `long`, and `make test-all` runs them too.

The part is the same each time, and has some of each group, so that no kind of body is left out.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest
from bodies import Body


def sampled(names: Iterable[Any], every: int, group: Callable[[Any], Any] = lambda name: None) -> list[Any]:
    """Parameters of a test: of each group the first, and each `every`th from there, are without the mark."""
    seen: Counter[Any] = Counter()
    parameters = []
    for name in names:
        of = group(name)
        parameters.append(pytest.param(name, marks=[pytest.mark.long] if seen[of] % every else []))
        seen[of] += 1
    return parameters


def covering(bodies: Mapping[str, Body]) -> list[Any]:
    """Parameters of a test: names of bodies, in order. Without the mark is a body of each module, and as many as it takes
    for each construct of `tests/constructs.toml` that one of the bodies has; short ones first, since they compile fast."""
    chosen, seen = set(), set[str]()
    for body in sorted(bodies.values(), key=lambda body: len(body.header) + len(body.source)):
        new = {body.subject, *body.constructs} - seen
        if new:
            chosen.add(body.name)
            seen |= new
    return [pytest.param(name, marks=[] if name in chosen else [pytest.mark.long]) for name in bodies]
