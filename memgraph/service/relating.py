"""How new statements relate to what is stored: candidates by text, the word of the classifier.

A relation becomes an edge and never more: what the classifier takes for a contradiction stays
open until someone resolves it, what it takes for an update leaves the older memory active. Only
short statements from different files are compared, within one scope.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import sqlalchemy as sa

from memgraph.classification.relations import RelationGuess, Statement
from memgraph.consolidation.comparing import Comparer, is_one_claim
from memgraph.model.enums import EdgeType, MemoryKind, MemoryStatus, Relation, Scope, Sensitivity
from memgraph.model.recall import RecallRequest
from memgraph.model.values import EdgeInput, MemoryInput
from memgraph.policy.scope import Viewer
from memgraph.retrieval.query import choose_terms, read
from memgraph.service.classifiers import local_embedding, relation_classifier
from memgraph.service.opened import Opened
from memgraph.storage import namespace_queries, recall_queries
from memgraph.storage.narrowing import Narrowing
from memgraph.storage.recall_queries import Candidate
from memgraph.storage.visibility import View

CANDIDATES = 8
MAX_PAIRS = 4_000
# Below the classifier's own threshold and above this it is told in the manifest, and no more.
POSSIBLE = "possibly contradicts"
POSSIBLE_FROM = 0.5

_EDGES = {
    Relation.CONTRADICTS: EdgeType.CONTRADICTS,
    Relation.UPDATES: EdgeType.UPDATES,
    Relation.DUPLICATE: EdgeType.RELATED_TO,
}


@dataclass(frozen=True, slots=True)
class Relations:
    """Edges to write (``#key`` is a memory of the batch), and how often each relation was said."""

    edges: tuple[EdgeInput, ...]
    counts: dict[str, int]


class _Pair(NamedTuple):
    key: str
    new: Statement
    stored: Candidate

    @property
    def stored_time(self) -> int:
        return self.stored.event_time or self.stored.created_at

    @property
    def in_order(self) -> tuple[Statement, Statement]:
        """(earlier, later); at the same moment the stored one is the earlier."""
        stored = Statement(self.stored.content, self.stored_time)
        return (self.new, stored) if self.new_is_earlier else (stored, self.new)

    @property
    def new_is_earlier(self) -> bool:
        return (self.new.time_ms or 0) < self.stored_time


def find_relations(
    opened: Opened, given: Sequence[MemoryInput], *, seen: View | None = None
) -> Relations:
    """What the classifier says of new memories and stored ones. Reads, and writes nothing.

    Args:
        seen: by whom the stored ones have to be seen; None: any in the place of the new one.
    """
    now = opened.clock.now_ms()
    with opened.database.read() as connection:
        pairs = list(_pairs(connection, given, now, seen))[:MAX_PAIRS]
    comparer = Comparer(relation_classifier(), local_embedding().embed)
    worth = comparer.on_one_topic([pair.in_order for pair in pairs])
    pairs = [pair for pair, kept in zip(pairs, worth, strict=True) if kept]
    guesses = comparer.classifier.classify([pair.in_order for pair in pairs])
    counts = {"compared": len(pairs)} | dict.fromkeys([*map(str, _EDGES), POSSIBLE], 0)
    edges = []
    for pair, guess in zip(pairs, guesses, strict=True):
        said = _said(guess)
        if said is not None:
            counts[said] += 1
        if guess.relation in _EDGES:
            edges.append(_edge(pair, guess))
    return Relations(tuple(edges), counts)


def _pairs(
    connection: sa.Connection, given: Sequence[MemoryInput], now: int, seen: View | None
) -> Iterator[_Pair]:
    for memory in given:
        if memory.key is None or not _is_statement(memory):
            continue
        new = Statement(memory.content, memory.event_time or now)
        for stored in _candidates(connection, memory, now, seen):
            if is_one_claim(stored.content) and stored.content != memory.content:
                yield _Pair(memory.key, new, stored)


def _is_statement(memory: MemoryInput) -> bool:
    return (
        memory.kind is MemoryKind.FACT
        and memory.status is MemoryStatus.ACTIVE
        and is_one_claim(memory.content)
    )


def _candidates(
    connection: sa.Connection, memory: MemoryInput, now: int, seen: View | None
) -> list[Candidate]:
    question = read(memory.content)
    frequencies = recall_queries.document_frequencies(connection, question.words)
    terms = choose_terms(question, frequencies, recall_queries.document_count(connection))
    if not terms.words:
        return []
    view = View(_reader(memory, seen), statuses=frozenset({MemoryStatus.ACTIVE}))
    narrowing = Narrowing(view, RecallRequest(kinds=(MemoryKind.FACT,)), now)
    found = recall_queries.by_text(connection, terms.match, narrowing, CANDIDATES)
    items = namespace_queries.items_among(connection, [each.pk for each in found])
    return [each for each in found if each.pk not in items]


def _reader(memory: MemoryInput, seen: View | None) -> Viewer:
    """Who sees the place of a memory; of those in it, what ``seen`` shows."""
    projects, sessions = _only(memory, Scope.PROJECT), _only(memory, Scope.SESSION)
    if seen is None:
        return Viewer(
            clearance=Sensitivity.RESTRICTED,
            scopes=frozenset({memory.scope}),
            project_ids=projects,
            session_ids=sessions,
        )
    # Where the candidates are chosen: hidden ones would take the places of others.
    return replace(
        seen.viewer,
        scopes=seen.viewer.scopes & {memory.scope},
        project_ids=seen.viewer.project_ids & projects,
        session_ids=seen.viewer.session_ids & sessions,
    )


def _only(memory: MemoryInput, scope: Scope) -> frozenset[str]:
    if memory.scope is not scope or memory.scope_id is None:
        return frozenset()
    return frozenset({memory.scope_id})


def _said(guess: RelationGuess) -> str | None:
    """What to count it as, a contradiction that is likely but not sure among them."""
    if guess.relation in _EDGES:
        return str(guess.relation)
    if guess.probabilities[Relation.CONTRADICTS] >= POSSIBLE_FROM:
        return POSSIBLE
    return None


def _edge(pair: _Pair, guess: RelationGuess) -> EdgeInput:
    later, earlier = f"#{pair.key}", pair.stored.memory_id
    if pair.new_is_earlier:
        later, earlier = earlier, later
    return EdgeInput(
        from_id=later,
        to_id=earlier,
        edge_type=_EDGES[guess.relation],
        weight=round(guess.probability, 3),
        reason=f"{guess.relation}, by rules: {', '.join(guess.reasons[:5])}",
        partial=guess.relation is Relation.UPDATES,
    )
