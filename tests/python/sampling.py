"""Which tests of a long matrix are part of `make test`: the others have the mark `long`, and `make test-all` runs them too.

The part is the same each time, and has some of each group, so that no kind of body is left out.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import pytest


def sampled(names: Iterable[Any], every: int, group: Callable[[Any], Any] = lambda name: None) -> list[Any]:
    """Parameters of a test: of each group the first, and each `every`th from there, are without the mark."""
    seen: Counter[Any] = Counter()
    parameters = []
    for name in names:
        of = group(name)
        parameters.append(pytest.param(name, marks=[pytest.mark.long] if seen[of] % every else []))
        seen[of] += 1
    return parameters
