"""The data of a confidence timeline, from a memory's history and its recalls."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from itertools import pairwise
from typing import Final

from memgraph.model.history import History
from memgraph.model.influence import Impact
from memgraph.surfaces.pictures.timelines import Held

QUIET: Final = frozenset({"bulletin", "on_diagnostics"})
"""Purposes of receipts that count as no access; nor does one that asks how it was then."""


def held_of(history: History, accesses: Iterable[int]) -> list[Held]:
    """Return the stored confidences in order, each from an access or a change to the next one.

    The last one ends when the history was read.

    Args:
        accesses: milliseconds, in any order; as far as receipts are kept.
    """
    created, now_ms = history.memory.created_at, history.at
    last = history.memory.last_accessed_at
    times = {created, *accesses} | (set() if last is None else {last})
    seen = sorted(each for each in times if created <= each <= now_ms)
    held: list[Held] = []
    for period in history.values:
        until = now_ms if period.until is None else period.until
        marks = [period.since, *(each for each in seen if period.since < each < until), until]
        held += [
            Held(
                since=since,
                until=end,
                confidence=period.confidence,
                decay_rate=period.decay_rate,
                idle_since=seen[max(bisect_right(seen, since) - 1, 0)],
            )
            for since, end in pairwise(marks)
        ]
    return held


def accesses_of(found: Impact) -> list[int]:
    """Return the times at which the memory was handed out in a way that counts as an access."""
    return [
        each.at
        for each in found.hand_outs
        if found.memory_id in each.memory_ids and each.purpose not in QUIET and each.as_of is None
    ]
