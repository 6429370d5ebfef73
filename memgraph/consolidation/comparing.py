"""Which statements are worth a look at their relation, and what the classifier says of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from memgraph.classification.relations import (
    RelationClassifier,
    RelationGuess,
    Statement,
    worth_comparing,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Pair = tuple[Statement, Statement]
"""Two statements, in any order."""

# A paragraph holds several claims: what contradicts one of them does not contradict it.
MAX_STATEMENT_CHARS = 240
_ANOTHER_SENTENCE = re.compile(r"[.!?:]\s+\S|[。！？].|\n")
_QUOTED = re.compile(r"(?P<speaker>[^:“”\n]{1,80}): “(?P<said>[^“”]+)”(?: \([^()]*\))?")


class Claim(NamedTuple):
    """What a fact says; of one that only quotes somebody, the quote, and who it was."""

    text: str
    speaker: str | None = None

    def may_meet(self, other: Claim) -> bool:
        """Whether both can speak of one thing: "I like tea" of two people does not."""
        return self.speaker == other.speaker


def claim_of(content: str) -> Claim:
    """``Ann: “We chose SQLite.”`` is Ann's claim that we chose SQLite."""
    quoted = _QUOTED.fullmatch(content)
    return Claim(content) if quoted is None else Claim(quoted["said"], quoted["speaker"])


def is_one_claim(text: str) -> bool:
    """Whether a text is short and one sentence, so that a relation to it says something."""
    return len(text) <= MAX_STATEMENT_CHARS and not _ANOTHER_SENTENCE.search(text)


@dataclass(frozen=True, slots=True)
class Comparer:
    """The local model's eye for pairs of statements.

    Attributes:
        classifier: says how two statements relate.
        embed: turns n texts into an (n, d) float32 array of unit rows.
    """

    classifier: RelationClassifier
    embed: Callable[[Sequence[str]], NDArray[np.float32]]

    def on_one_topic(self, pairs: Sequence[Pair]) -> list[bool]:
        """For each pair whether it is worth the classifier's time; nearly none is."""
        texts = sorted({each.text for pair in pairs for each in pair})
        if not texts:
            return []
        vectors = self.embed(texts)
        place = {text: at for at, text in enumerate(texts)}
        return [
            worth_comparing(a.text, b.text, float(vectors[place[a.text]] @ vectors[place[b.text]]))
            for a, b in pairs
        ]

    def relations(self, pairs: Sequence[Pair]) -> list[RelationGuess | None]:
        """What is said of each pair, the earlier statement read first; None: of other things.

        Of two statements of one moment the first of the pair is the earlier.
        """
        found: list[RelationGuess | None] = [None] * len(pairs)
        kept = [at for at, worth in enumerate(self.on_one_topic(pairs)) if worth]
        guesses = self.classifier.classify([in_order(*pairs[at]) for at in kept])
        for at, guess in zip(kept, guesses, strict=True):
            found[at] = guess
        return found


def in_order(a: Statement, b: Statement) -> Pair:
    """The earlier one first; at one moment as they were given."""
    return (b, a) if (b.time_ms or 0) < (a.time_ms or 0) else (a, b)
