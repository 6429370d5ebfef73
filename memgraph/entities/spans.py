"""Names found in a text, and the resolution of overlaps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from memgraph.model.enums import EntityType


@dataclass(frozen=True, slots=True)
class EntitySpan:
    """``text[start:end]`` of the searched text; offsets are Unicode code points, end exclusive.

    Attributes:
        confidence: 0..1, of the rule that found it; comparable between rules.
        provider: the provider that found it.
    """

    text: str
    start: int
    end: int
    type: EntityType
    confidence: float
    provider: str = "regex"


def merge(spans: Iterable[EntitySpan]) -> list[EntitySpan]:
    """Return spans that do not overlap, in order of their start.

    Of two that overlap the one of the better provider is kept, then the more confident, the longer,
    the earlier. What rules read from a form (an address, a date) goes before all.
    """
    candidates = list(spans)
    if len(candidates) < 2:
        return candidates
    ranked = sorted(
        candidates, key=lambda s: (-_rank(s), -s.confidence, s.start - s.end, s.start, s.type.value)
    )
    chosen: list[EntitySpan] = []
    covered: set[int] = set()
    for span in ranked:
        # Spans are short (bounded by the rules), so marking positions keeps this linear.
        positions = range(span.start, span.end)
        if covered.isdisjoint(positions):
            covered.update(positions)
            chosen.append(span)
    return sorted(chosen, key=lambda s: s.start)


def _rank(span: EntitySpan) -> int:
    if span.type not in _NAMED:
        return len(_RANKS)
    # A pipeline calls phones and meals products and works of art: it names them, and no more.
    return (
        0 if span.provider == "spacy" and span.type is EntityType.OTHER else _RANKS[span.provider]
    )


_RANKS: Final = {"regex": 0, "spacy": 1, "llm": 2}
_NAMED: Final = frozenset(
    (
        EntityType.PERSON,
        EntityType.PROJECT,
        EntityType.ORGANIZATION,
        EntityType.LOCATION,
        EntityType.OTHER,
    )
)
