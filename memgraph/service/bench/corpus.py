"""Conversations made up by a seeded generator, for measuring speed: words without meaning.

Words are those of the local model's vocabulary, by Zipf's law; every session has words of its own
that return, so that its turns and questions belong together as they do in real ones.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass

from memgraph.model.enums import CapturedBy, MemoryKind, MemoryType, SourceType
from memgraph.model.values import MemoryInput, Source
from memgraph.providers.local import MODEL_DIRECTORY

TURNS_PER_SESSION = 20
_FIRST_TIME = 1_600_000_000_000
_MINUTE = 60_000
_SPEAKERS = ("Ana", "Ben", "Cid", "Dora", "Emil", "Fay")
_SHORTEST_WORD = 3


@dataclass(frozen=True, slots=True)
class Corpus:
    """Turns by number, and questions about them; the same seed gives the same text."""

    words: tuple[str, ...]
    weights: tuple[float, ...]
    seed: int

    def turns(self, start: int, count: int) -> Iterator[MemoryInput]:
        """Turns ``start`` to ``start + count - 1``."""
        for number in range(start, start + count):
            session, place = divmod(number, TURNS_PER_SESSION)
            yield MemoryInput(
                content=self.text(number),
                kind=MemoryKind.EPISODE,
                type=MemoryType.OBSERVATION,
                session_id=f"session-{session}",
                sequence=place,
                source_role=_SPEAKERS[(session + place % 2) % len(_SPEAKERS)],
                event_time=_FIRST_TIME + number * _MINUTE,
                importance=number % 101,
                source=Source(
                    source_type=SourceType.CHANNEL_TRANSCRIPT,
                    conversation_id=f"conversation-{session % 100}",
                    captured_by=CapturedBy.SYSTEM,
                ),
            )

    def text(self, number: int) -> str:
        """What turn ``number`` says: 8 to 30 words."""
        chance = random.Random(f"{self.seed}-turn-{number}")
        topic = self._topic(number // TURNS_PER_SESSION)
        common = chance.choices(self.words, cum_weights=self.weights, k=chance.randint(4, 15))
        said = common + chance.choices(topic, k=len(common))
        chance.shuffle(said)
        return " ".join(said).capitalize() + "."

    def question(self, number: int, size: int) -> str:
        """Question ``number`` about one of ``size`` turns: 3 to 7 of its words, in a sentence."""
        chance = random.Random(f"{self.seed}-question-{number}")
        said = self.text(chance.randrange(size)).lower().rstrip(".").split()
        asked = chance.sample(said, k=min(len(said), chance.randint(3, 7)))
        return f"What did they say about the {' and the '.join(asked)}?"

    def _topic(self, session: int) -> list[str]:
        chance = random.Random(f"{self.seed}-session-{session}")
        return chance.sample(self.words, k=25)


def corpus(seed: int = 1) -> Corpus:
    """The corpus of a seed."""
    given = json.loads((MODEL_DIRECTORY / "tokenizer.json").read_text(encoding="utf-8"))
    vocabulary: dict[str, int] = given["model"]["vocab"]
    # The vocabulary is ordered by frequency, the commonest first.
    words = tuple(
        word
        for word, _ in sorted(vocabulary.items(), key=lambda each: each[1])
        if len(word) >= _SHORTEST_WORD and word.isascii() and word.isalpha()
    )
    weights = []
    total = 0.0
    for rank in range(len(words)):
        total += 1.0 / (rank + 10)
        weights.append(total)
    return Corpus(words, tuple(weights), seed)
