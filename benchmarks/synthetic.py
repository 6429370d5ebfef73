"""Conversations made up by a seeded generator, for measuring speed: words without meaning.

What matters for speed is how often words return and how near vectors lie. So texts are shaped like
real conversations: half of the words are the commonest of the language by Zipf's law, a session
has a few topics, the words of a topic are near one another in the embedding model's own table, two
people talk to each other by name, and every conversation has names that no other one has.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

from memgraph.model.enums import CapturedBy, MemoryKind, MemoryType, SourceType
from memgraph.model.values import MemoryInput, Source
from memgraph.providers.local import MODEL_DIRECTORY

TURNS_PER_SESSION = 20
SESSIONS_PER_CONVERSATION = 25
_FIRST_TIME = 1_600_000_000_000
_MINUTE = 60_000

# The commonest words of the vocabulary, which carry grammar and not a topic.
_COMMON = 150
_TOPICS, _TOPIC_WORDS, _NEAR_WORDS, _SEED_RANKS = 1_000, 60, 36, 8_000
_TOPICS_OF_A_CONVERSATION, _TOPICS_OF_A_SESSION = 12, 3
_SPEAKERS, _PLACES = 400, 10
# How many words a turn has: log-normal, as turns of people are.
_MEDIAN_WORDS, _SPREAD, _FEWEST, _MOST = 20.0, 0.58, 3, 90
_SENTENCE = (4, 14)
# Shares of the words of a turn: grammar, the talk of every day, the topic; the rest are names.
_GRAMMAR, _EVERYDAY, _TOPICAL = 0.57, 0.22, 0.19
_BY_NAME = 0.15
_BATCH = 50
_SYLLABLES = tuple(a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "er"))


@dataclass(frozen=True, slots=True)
class Weighted:
    """Words with the sums of their weights so far, as ``random.choices`` takes them."""

    words: tuple[str, ...]
    sums: tuple[float, ...]

    @classmethod
    def by_rank(cls, words: Sequence[str], shift: float, power: float = 1.0) -> Weighted:
        """Zipf's law as Mandelbrot wrote it: the weight of rank r is 1 / (r + shift) ** power."""
        weights = (1.0 / (rank + shift) ** power for rank in range(1, len(words) + 1))
        return cls(tuple(words), tuple(accumulate(weights)))

    def some(self, chance: random.Random, count: int) -> list[str]:
        return chance.choices(self.words, cum_weights=self.sums, k=count)


@dataclass(frozen=True, slots=True)
class _Session:
    topics: tuple[Weighted, ...]
    names: Weighted
    speakers: tuple[str, str]


@dataclass(frozen=True, eq=False)
class Corpus:
    """Turns by number, and questions about them; the same seed gives the same text."""

    grammar: Weighted
    everyday: Weighted
    topics: tuple[Weighted, ...]
    popularity: Weighted
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
                source_role=self._session(session).speakers[place % 2].capitalize(),
                event_time=_FIRST_TIME + number * _MINUTE,
                importance=number % 101,
                source=Source(
                    source_type=SourceType.CHANNEL_TRANSCRIPT,
                    conversation_id=f"conversation-{session // SESSIONS_PER_CONVERSATION}",
                    captured_by=CapturedBy.SYSTEM,
                ),
            )

    def text(self, number: int) -> str:
        """What turn ``number`` says: 3 to 90 words in sentences."""
        chance = random.Random(f"{self.seed}-turn-{number}")
        session, place = divmod(number, TURNS_PER_SESSION)
        length = int(chance.lognormvariate(0.0, _SPREAD) * _MEDIAN_WORDS)
        length = min(max(length, _FEWEST), _MOST)
        said = self._said(chance, self._session(session), length)
        if chance.random() < _BY_NAME:
            said[0] = self._session(session).speakers[1 - place % 2].capitalize()
        return _sentences(chance, said)

    def question(self, number: int, size: int) -> str:
        """Question ``number`` about one of ``size`` turns: a speaker and 2 to 6 of its words."""
        chance = random.Random(f"{self.seed}-question-{number}")
        asked = chance.randrange(size)
        session, place = divmod(asked, TURNS_PER_SESSION)
        speaker = self._session(session).speakers[place % 2].capitalize()
        common = set(self.grammar.words)
        said = [word.strip(".?!") for word in self.text(asked).lower().split()]
        telling = list(dict.fromkeys(word for word in said if word not in common)) or said
        asking = chance.sample(telling, k=min(len(telling), chance.randint(2, 6)))
        return f"What did {speaker} say about the {' and the '.join(asking)}?"

    def _said(self, chance: random.Random, session: _Session, length: int) -> list[str]:
        grammar, everyday, topical = (
            int(share * length + chance.random()) for share in (_GRAMMAR, _EVERYDAY, _TOPICAL)
        )
        topic = chance.choice(session.topics)
        said = [
            *self.grammar.some(chance, grammar),
            *self.everyday.some(chance, everyday),
            *topic.some(chance, topical),
        ]
        said += session.names.some(chance, max(length - len(said), 0))
        chance.shuffle(said)
        return said

    @lru_cache(maxsize=64)  # noqa: B019 - a corpus lives as long as the process that measures
    def _session(self, session: int) -> _Session:
        group = session // SESSIONS_PER_CONVERSATION
        chance = random.Random(f"{self.seed}-conversation-{group}")
        # Some topics are everyone's: their weight falls by rank too.
        own = self.popularity.some(chance, _TOPICS_OF_A_CONVERSATION)
        speakers = chance.sample(range(_SPEAKERS), k=2)
        places = [_name(_SPEAKERS + group * _PLACES + at) for at in range(_PLACES)]
        names = (_name(speakers[0]), _name(speakers[1]))
        of_session = random.Random(f"{self.seed}-session-{session}")
        chosen = of_session.choices(own, k=_TOPICS_OF_A_SESSION)
        return _Session(
            tuple(self.topics[int(each)] for each in chosen),
            Weighted.by_rank([each.capitalize() for each in (*names, *places)], 1.0),
            names,
        )


def _name(number: int) -> str:
    """A name of its own for every number."""
    said = ""
    number += len(_SYLLABLES)
    while number:
        number, place = divmod(number, len(_SYLLABLES))
        said += _SYLLABLES[place]
    return said


def _sentences(chance: random.Random, said: Sequence[str]) -> str:
    parts = []
    at = 0
    while at < len(said):
        part = " ".join(said[at : at + chance.randint(*_SENTENCE)])
        at += part.count(" ") + 1
        parts.append(part[0].upper() + part[1:] + chance.choice("..!?."))
    return " ".join(parts)


@lru_cache(maxsize=2)
def corpus(seed: int = 1) -> Corpus:
    """The corpus of a seed."""
    given = json.loads((MODEL_DIRECTORY / "tokenizer.json").read_text(encoding="utf-8"))
    vocabulary: dict[str, int] = given["model"]["vocab"]
    # The vocabulary is ordered by frequency, the commonest first.
    ranked = [
        (word, token)
        for word, token in sorted(vocabulary.items(), key=lambda each: each[1])
        if word.isascii() and word.isalpha() and (len(word) > 1 or word in {"a", "i"})
    ]
    ranked.sort(key=lambda each: each[0] not in {"a", "i"})
    words = [word for word, _ in ranked]
    return Corpus(
        grammar=Weighted.by_rank(words[:_COMMON], 3.0),
        everyday=Weighted.by_rank(words[_COMMON:], 40.0, 1.35),
        topics=tuple(_topics(ranked, seed)),
        popularity=Weighted.by_rank([str(each) for each in range(_TOPICS)], 20.0),
        seed=seed,
    )


def _topics(ranked: Sequence[tuple[str, int]], seed: int) -> Iterator[Weighted]:
    """Topics: a word and those that the embedding model holds nearest to it."""
    import numpy as np

    content = ranked[_COMMON:]
    stored = np.load(MODEL_DIRECTORY / "vectors.npy", mmap_mode="r", allow_pickle=False)
    table = np.asarray(stored[[token for _, token in content]], dtype=np.float32)
    table /= np.maximum(np.sqrt(np.square(table).sum(axis=1, keepdims=True)), 1e-9)
    chance = random.Random(f"{seed}-topics")
    # The first topics, which are the most talked of, begin with words that are well known.
    seeds = sorted(int(_SEED_RANKS ** chance.random()) - 1 for _ in range(_TOPICS))
    words = [word for word, _ in content]
    known = Weighted.by_rank(words, 40.0)
    for start in range(0, _TOPICS, _BATCH):
        apart = -(table[seeds[start : start + _BATCH]] @ table.T)
        close = np.argpartition(apart, 2 * _NEAR_WORDS, axis=1)[:, : 2 * _NEAR_WORDS]
        for row, some in zip(apart, close, strict=True):
            # Rounded: the last bits of a sum, which differ between machines, decide nothing.
            near = some[np.lexsort((some, np.round(row[some], 4)))][:_NEAR_WORDS]
            said = [words[at] for at in near]
            said += known.some(chance, _TOPIC_WORDS - _NEAR_WORDS)
            chance.shuffle(said)
            yield Weighted.by_rank(said, 3.0)
