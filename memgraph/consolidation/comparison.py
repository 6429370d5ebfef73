"""Find the stored memories that a new one may change, and say whether one author said both."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from itertools import combinations, islice
from typing import Final, NamedTuple, Self

from memgraph.model.conversation import PERSONS
from memgraph.model.enums import CapturedBy, MemoryKind, SourceType
from memgraph.store import comparisons
from memgraph.store.comparisons import ComparedMemory, ComparisonLocation
from memgraph.store.sessions import ComparisonPlace
from memgraph.store.snapshot import Snapshot
from memgraph.store.text_index import cjk_bigrams
from memgraph.text.lexicon import STOP_WORDS
from memgraph.text.stem import fold, stem, words

MAX_CANDIDATES: Final = 12
MAX_MATCHING_ROWS: Final = 100
"""Words are searched for individually while at most this many memories contain them."""
MAX_COMMON_ROWS: Final = 3_000
MAX_PAIRS: Final = 6
"""The number of pairs of more frequent words; one word of each is within MAX_COMMON_ROWS."""
MAX_WORDS: Final = 40
_USER: Final = "user"


class StatementAuthor(NamedTuple):
    """The author of a statement: a speaker, a file, or who stored it; None if unknown."""

    name: str | None
    is_file: bool = False

    @classmethod
    def of(cls, memory: ComparedMemory, speakers: Collection[str | None]) -> Self:
        """Return the author of a memory.

        Args:
            speakers: its speaker, or those of the turns that it was derived from.
        """
        named = {speaker.strip().casefold() for speaker in speakers if speaker}
        if named:
            [*names] = {_USER if name in PERSONS else name for name in named}
            return cls(names[0] if len(names) == 1 else None)
        if memory.source_type == SourceType.CHANNEL_TRANSCRIPT.value:
            # An extractor is not the author of a fact that it found in a conversation.
            return cls(None if memory.captured_by == CapturedBy.EXTRACTOR else memory.captured_by)
        if path := memory.source_path or memory.content_sha256:
            return cls(path, is_file=True)
        is_user = memory.captured_by == CapturedBy.USER
        return cls(_USER if is_user else f"{memory.captured_by}:{memory.agent_id}")

    def is_same(self, other: StatementAuthor) -> bool:
        """Return True if both are known and equal."""
        return self.name is not None and self == other


class NewStatement(NamedTuple):
    """A text to find candidates for.

    Attributes:
        memory_id: its id if it is stored.
        document: digest of its file; it is not compared with other statements of that file.
        entity_pks: keys of the entities that it names.
        near: keys of the memories with the nearest vectors, nearest first.
        before: only memories with lower keys are compared; None: all.
        known: the ids of memories that are not compared with it.
    """

    content: str
    place: ComparisonPlace
    memory_id: str | None = None
    document: str | None = None
    entity_pks: tuple[int, ...] = ()
    near: tuple[int, ...] = ()
    before: int | None = None
    known: frozenset[str] = frozenset()


def find_candidates(
    snapshot: Snapshot,
    new: NewStatement,
    *,
    at: int,
    limit: int = MAX_CANDIDATES,
    marked: bool = True,
    kind: MemoryKind | None = None,
) -> list[ComparedMemory]:
    """Return the stored memories that a statement may change, the most promising first.

    First come the nearest by vector, then those that share words or an entity with it. Memories
    that an edge or a derivation joins with it need no comparison.

    Args:
        at: now, in milliseconds; memories that have expired by then are left out.
        marked: leave out those that only a mark joins with it.
        kind: only memories of this kind; None: facts and turns.
    """
    location = ComparisonLocation(new.place, at, new.before)
    near = comparisons.memories_by_key(snapshot, new.near, location) if new.near else []
    sharing = _sharing_words(snapshot, new, location, limit if kind is None else 4 * limit)
    if new.entity_pks:
        sharing += comparisons.memories_of_entities(
            snapshot, new.entity_pks, location, max(limit // 4, 1)
        )
    if kind is not None:
        near = [memory for memory in near if memory.kind == kind]
        sharing = [memory for memory in sharing if memory.kind == kind]
    # A third of the places is for those that share words or names.
    ordered = [*near[: limit - limit // 3], *sharing, *near]
    found = {memory.memory_id: memory for memory in ordered if not _is_beside(new, memory)}
    if new.memory_id is not None and found:
        for joined in comparisons.joined_ids(snapshot, new.memory_id, found, marked=marked):
            del found[joined]
    return list(found.values())[:limit]


def _is_beside(new: NewStatement, memory: ComparedMemory) -> bool:
    """Return True for a statement of the same document, or one that is known."""
    is_of_file = new.document is not None and new.document == memory.document
    return is_of_file or memory.memory_id in new.known


def _sharing_words(
    snapshot: Snapshot, new: NewStatement, location: ComparisonLocation, limit: int
) -> list[ComparedMemory]:
    question = _search_words(new.content)
    from memgraph.store import text_search  # loads numpy

    frequencies = text_search.find(snapshot, question).frequencies
    match = _match_expression(question, frequencies)
    if match is None:
        return []
    found = comparisons.memories_by_text(snapshot, match, location, 2 * limit)
    return _most_alike(question, frequencies, found, limit)


def _search_words(text: str) -> Mapping[str, str]:
    every = _words(text)
    found = {stem(word): word for word in every if word not in STOP_WORDS} or {
        stem(word): word for word in every
    }
    return dict(islice(found.items(), MAX_WORDS))


def _words(text: str) -> list[str]:
    return [*cjk_bigrams(fold(text)), *words(text)]


def _match_expression(words: Mapping[str, str], frequencies: Mapping[str, int]) -> str | None:
    """Return an FTS5 expression of the rare words and of pairs of the others.

    If there are neither, it is the rarest word.
    """
    counts = {word: frequencies[word] for word in words if word in frequencies}
    if not counts:
        return None
    rare_words, rows = [], 0
    for word, frequency in counts.items():
        if rows + frequency <= MAX_MATCHING_ROWS:
            rare_words.append(word)
            rows += frequency
    pairs = (
        (first, second)
        for first, second in combinations([word for word in counts if word not in rare_words], 2)
        if min(counts[first], counts[second]) <= MAX_COMMON_ROWS
    )
    parts = [f'"{words[word]}"' for word in rare_words]
    parts += [f'("{words[a]}" AND "{words[b]}")' for a, b in islice(pairs, MAX_PAIRS)]
    return " OR ".join(parts or [f'"{words[min(counts, key=lambda word: counts[word])]}"'])


def _most_alike(
    question: Mapping[str, str],
    frequencies: Mapping[str, int],
    found: Sequence[ComparedMemory],
    limit: int,
) -> list[ComparedMemory]:
    """Return the memories most similar to a question.

    A shared word weighs more if it is rare; the score falls with the number of words in a memory.
    """
    weights = {
        term: 1 / math.log(2 + frequencies[term]) for term in question if term in frequencies
    }

    def score(memory: ComparedMemory) -> float:
        own = {stem(word) for word in _words(memory.content)}
        shared = sum(weight for term, weight in weights.items() if term in own)
        return shared / math.sqrt(4 + len(own))

    return sorted(found, key=lambda memory: (-score(memory), -memory.pk))[:limit]
