"""How much of what takes long a run of the tests does: a part, or with ``make check`` all of it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

WHOLE = bool(os.environ.get("MEMGRAPH_TEST_WHOLE"))
"""Whether nothing is left out."""

T = TypeVar("T")


def often(times: int) -> int:
    """Return how often to do what is left to chance: a quarter of the times."""
    return times if WHOLE else max(times // 4, 1)


def third(steps: Sequence[T], start: int) -> Sequence[T]:
    """Return every third step from ``start`` on, at least one.

    Walks that begin at 0, 1 and 2 take every step together.
    """
    return steps if WHOLE else steps[start % 3 :: 3] or steps[:1]
