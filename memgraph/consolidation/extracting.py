"""Facts from the turns of a conversation, by rules and the type classifier alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from memgraph.consolidation.turns import Turn
from memgraph.model.defaults import DEFAULT_IMPORTANCE
from memgraph.model.enums import MemoryType
from memgraph.policy.sentences import split_sentences

Classify: TypeAlias = "Callable[[Sequence[str]], Sequence[tuple[MemoryType | None, float]]]"
"""For each text its type (None: nothing to remember) and how likely that is, 0..1."""


@dataclass(frozen=True, slots=True)
class FactCandidate:
    """A fact that may be remembered.

    Attributes:
        content: stands alone: who, what, when.
        type: never Identity.
        importance: 0..90; ``confidence`` 0..0.7.
        event_time: noon UTC of the day it tells of, where it tells one.
        evidence: memory ids of the turns it rests on, the earliest first.
        quote: the sentence as it was said.
        attributes: ``speaker``, ``quote`` and more.
    """

    content: str
    type: MemoryType
    importance: int
    confidence: float
    event_time: int | None
    evidence: tuple[str, ...]
    quote: str
    attributes: dict[str, Any] = field(default_factory=dict)


class RuleExtractor:
    """Reads a page of turns.

    Args:
        classify: the type classifier, called once per page.
    """

    def __init__(self, classify: Classify) -> None:
        self._classify = classify

    def extract(
        self, turns: Sequence[Turn], *, before: Sequence[Turn] = (), limit: int
    ) -> list[FactCandidate]:
        """At most ``limit`` facts of ``turns``, in the order they were said.

        ``before``: turns before the page, read for what they say of it, never a source.
        """
        said = [(turn, each) for turn in turns for each in split_sentences(turn.content)]
        texts = [f"{turn.source_role}: “{each}”" for turn, each in said]
        found = []
        for (turn, quote), text, (kind, likely) in zip(
            said, texts, self._classify([quote for _, quote in said]), strict=True
        ):
            if kind is None or quote.endswith("?"):
                continue
            given = MemoryType.FACT if kind is MemoryType.IDENTITY else kind
            found.append(
                (
                    -likely,
                    len(found),
                    FactCandidate(
                        content=text,
                        type=given,
                        importance=DEFAULT_IMPORTANCE[given],
                        confidence=0.5,
                        event_time=None,
                        evidence=(turn.memory_id,),
                        quote=quote,
                        attributes={"speaker": turn.source_role, "quote": quote},
                    ),
                )
            )
        best = sorted(found, key=lambda each: each[:2])[:limit]
        return [each for _, _, each in sorted(best, key=lambda each: each[1])]
