"""A name found in a text, and how overlapping finds are settled."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from memgraph.model.enums import EntityType


@dataclass(frozen=True, slots=True)
class EntitySpan:
    """``text[start:end]`` of the searched text; offsets are Unicode code points, end exclusive.

    Attributes:
        confidence: 0..1, how sure the rule is that found it; comparable between rules.
    """

    text: str
    start: int
    end: int
    type: EntityType
    confidence: float


def merge(spans: Iterable[EntitySpan]) -> list[EntitySpan]:
    """Keep spans that do not overlap, in order of their start.

    Of two that overlap the more confident is kept, then the longer, then the earlier.
    """
    given = list(spans)
    if len(given) < 2:
        return given
    ranked = sorted(given, key=lambda s: (-s.confidence, s.start - s.end, s.start, s.type.value))
    kept: list[EntitySpan] = []
    taken: set[int] = set()
    for span in ranked:
        # Spans are short (bounded by the rules), so marking positions keeps this linear.
        positions = range(span.start, span.end)
        if taken.isdisjoint(positions):
            taken.update(positions)
            kept.append(span)
    return sorted(kept, key=lambda s: s.start)
