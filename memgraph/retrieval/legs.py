"""The legs of a recall: each finds candidates in its own way and ranks them."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

import pysqlite3.dbapi2 as sqlite
import sqlalchemy as sa

from memgraph.config.schema import RetrievalSettings
from memgraph.model.enums import MemoryStatus
from memgraph.model.recall import Degraded
from memgraph.policy.ranking import reciprocal_rank_fusion
from memgraph.retrieval import context
from memgraph.retrieval.many_matches import best_of_many
from memgraph.retrieval.query import (
    MAX_TERMS,
    RANKED_AT_ONCE,
    Question,
    Terms,
    choose_terms,
    most_matching_rows,
)
from memgraph.retrieval.timing import Timed, untimed
from memgraph.storage import graph_queries, recall_graph, recall_queries
from memgraph.storage.narrowing import Narrowing
from memgraph.storage.recall_queries import Candidate
from memgraph.storage.vector_cache import HeldVectors
from memgraph.storage.vector_search import FEW_OF_MANY, Vectors
from memgraph.storage.visibility import STANDING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ACTIVE = frozenset({MemoryStatus.ACTIVE})
# An entity that is named everywhere tells little, and walking all its memories costs much.
MAX_MENTIONS = 5_000
MAX_SUCCESSION_STEPS = 5
NO_DEADLINE_MS = 86_400_000
TOP_K_ENTITY = 50
MAX_STEPS = 1_000
# Where the words stand in so many, matches are cut down to what is seen, if that is little.
MANY_ROWS = 2_000
# The neighbours of so many of each leg are looked at.
NEIGHBOURED = 10
SEEDS = 15
EDGES_PER_SEED = 8
# How much of what a memory says counts for one that is joined to it, and for one that replaced it.
LINK_SHARE, SUCCESSOR_SHARE = 0.5, 0.9


@dataclass(slots=True)
class Legs:
    """What the legs found: candidates by key, and the ranked keys of every leg.

    Attributes:
        replaced: superseded memories that were found; they speak for their successors.
        successors: what replaced each of them and holds now, by key.
        links: (one, other, weight) by key, see ``context.Pool``.
        match: the words searched for, as an FTS5 expression; empty: none.
        relevance: 0..1 by key, where it was asked for.
    """

    candidates: dict[int, Candidate] = field(default_factory=dict)
    ranked: dict[str, list[int]] = field(default_factory=dict)
    degraded: list[Degraded] = field(default_factory=list)
    replaced: dict[int, Candidate] = field(default_factory=dict)
    successors: dict[int, list[int]] = field(default_factory=dict)
    links: list[tuple[int, int, float]] = field(default_factory=list)
    match: str = ""
    relevance: dict[int, float] = field(default_factory=dict)

    def put(self, name: str, found: Sequence[Candidate]) -> None:
        """A leg's candidates, best first; a leg that found nothing is left out."""
        if found:
            self.candidates.update((each.pk, each) for each in found)
            self.ranked[name] = [each.pk for each in found]

    def displaced_by(self, pk: int) -> list[str]:
        """Ids of what a memory replaced, the newest first, as far as it is to be shown."""
        old = [one for one, after in self.successors.items() if pk in after]
        return [
            self.candidates[one].memory_id for one in sorted(old)[::-1] if one in self.candidates
        ]

    def tell(self, code: str, text: str) -> None:
        self.degraded.append(Degraded(code=code, text=text))


@dataclass(frozen=True)
class Search:
    """One search on the snapshot of a reader.

    Attributes:
        narrowing: what may be shown; its statuses are those of the answer.
        with_replaced: superseded memories are looked at too, for the sake of their successors.
        with_edges: there are edges to follow.
        top_k_context: candidates that the context leg ranks.
        exact: nothing is left out for the sake of speed.
        held: vectors kept from recall to recall.
        timed: told how long each leg takes.
        judged: tell the relevance of what is found.
    """

    connection: sa.Connection
    narrowing: Narrowing
    settings: RetrievalSettings
    with_replaced: bool
    with_edges: bool
    top_k_context: int
    exact: bool
    held: HeldVectors | None = None
    timed: Timed = untimed
    judged: bool = False

    def gather(
        self,
        question: Question,
        query_vector: NDArray[np.float32] | None,
        name_keys: Collection[str],
    ) -> Legs:
        """Run all legs that weigh anything; one of weight 0 brings no candidates either."""
        legs = Legs()
        terms = self._terms(question, legs)
        if terms.stems:
            legs.match = terms.match
        if terms.stems and self._weighs("text"):
            if terms.rows > RANKED_AT_ONCE and (terms.after or terms.searched == 1):
                legs.tell("text.newest", "the words stand in very many memories, the newest count")
            self._leg(legs, "text", lambda limit, by: self._text(terms, limit, by))
        if query_vector is not None and self._weighs("vector"):
            self._leg(legs, "vector", lambda limit, by: self._vector(query_vector, limit, by))
        if name_keys and self._weighs("entity"):
            self._leg(legs, "entity", lambda limit, by: self._entity(name_keys, limit, by))
        found = list(dict.fromkeys(pk for leg in legs.ranked.values() for pk in leg[:NEIGHBOURED]))
        if legs.replaced:
            self._within(legs, "succession", self._succession)
        if self.with_edges and legs.candidates and self._weighs("graph"):
            self._within(legs, "graph", self._graph)
        if legs.candidates and self._weighs("context"):
            with self.timed("context"):
                around = recall_queries.neighbours(
                    self.connection, found, self.narrowing, context.DISTANCE
                )
                self._context(legs, around, question, terms, query_vector)
        return legs

    def _graph(self, legs: Legs) -> None:
        """What is joined by edges to the best candidates so far: the sum of weight / (k + rank)."""
        fused = reciprocal_rank_fusion(legs.ranked, self.settings.rrf_k)[:SEEDS]
        seeds = {legs.candidates[each.id].memory_id: each.id for each in fused}
        steps = graph_queries.strongest_neighbours(
            self.connection, list(seeds), self.narrowing.view, None, EDGES_PER_SEED
        )
        places = {one: rank for rank, one in enumerate(seeds, start=1)}
        gains: dict[str, list[float]] = {}
        for step in steps:
            gain = step.weight / (self.settings.rrf_k + places[step.origin_id])
            gains.setdefault(step.memory_id, []).append(gain)
        score = {one: math.fsum(each) for one, each in gains.items()}
        order = sorted(score, key=lambda one: (-score[one], one))[: self.settings.top_k_text]
        joined = recall_queries.candidates_by_id(self.connection, order, self.narrowing)
        legs.put("graph", joined)
        keys = {each.memory_id: each.pk for each in joined}
        for step in steps:
            if step.memory_id in keys:
                one, other = keys[step.memory_id], seeds[step.origin_id]
                legs.links.append((one, other, LINK_SHARE * step.weight))

    def _terms(self, question: Question, legs: Legs) -> Terms:
        if question.cut:
            legs.tell("query.cut", "the query is very long; its beginning was searched for")
        frequencies: dict[str, int] = {}
        with recall_queries.deadline(
            self.connection, self._deadline_ms, recall_queries.STEPS_OF_VOCABULARY
        ):
            try:
                frequencies = recall_queries.document_frequencies(
                    self.connection, question.words.keys()
                )
            except sqlite.Error as error:
                self._expired_or_raise(error, "text", legs)
        documents = recall_queries.document_count(self.connection)
        most = documents * MAX_TERMS if self.exact else most_matching_rows(documents)
        return choose_terms(question, frequencies, documents, most)

    def _leg(
        self,
        legs: Legs,
        name: str,
        run: Callable[[int, Narrowing], list[Candidate]],
    ) -> None:
        limit = self._limit(name)
        found: list[Candidate] = []
        starved = False
        with self.timed(name), recall_queries.deadline(self.connection, self._deadline_ms):
            try:
                if self._looks_at_replaced:
                    wide = limit + limit // 2
                    both = run(wide, self.narrowing.with_statuses(STANDING))
                    found = [each for each in both if self._is_shown(each)]
                    gone = (each for each in both if each.status != MemoryStatus.ACTIVE.value)
                    legs.replaced.update((each.pk, each) for each in gone)
                    starved = len(found) < limit and len(both) == wide
                if not self._looks_at_replaced or starved:
                    found = run(limit, self.narrowing)
            except sqlite.Error as error:
                self._expired_or_raise(error, name, legs)
        legs.put(name, found[:limit])

    def _within(self, legs: Legs, name: str, run: Callable[[Legs], None]) -> None:
        with self.timed(name), recall_queries.deadline(self.connection, self._deadline_ms):
            try:
                run(legs)
            except sqlite.Error as error:
                self._expired_or_raise(error, name, legs)

    @cached_property
    def _read(self) -> Vectors:
        # The context leg compares what the vector leg has read, and some more.
        return Vectors(self.connection, None if self.exact else self.held)

    def _is_shown(self, found: Candidate) -> bool:
        statuses = self.narrowing.view.statuses
        return statuses is None or found.status in statuses

    def _weighs(self, leg: str) -> bool:
        weight: float = getattr(self.settings.weights, leg)
        return weight > 0.0

    @property
    def _looks_at_replaced(self) -> bool:
        return self.with_replaced and self._weighs("succession")

    @property
    def _deadline_ms(self) -> int:
        return NO_DEADLINE_MS if self.exact else self.settings.deadline_ms

    def _limit(self, name: str) -> int:
        if name == "text":
            return self.settings.top_k_text
        return self.settings.top_k_vector if name == "vector" else TOP_K_ENTITY

    def _expired_or_raise(self, error: sqlite.Error, leg: str, legs: Legs) -> None:
        if not recall_queries.expired(error):
            raise error
        legs.tell(
            f"{leg}.deadline",
            f"the {leg} leg took longer than {self.settings.deadline_ms} ms and was given up",
        )

    def _text(self, terms: Terms, limit: int, narrowing: Narrowing) -> list[Candidate]:
        few = self._few(terms, narrowing)
        if few is not None or (terms.rows > RANKED_AT_ONCE and not self.exact):
            documents = recall_queries.document_count(self.connection)
            return best_of_many(self.connection, terms, documents, narrowing, limit, few)
        return recall_queries.by_text(self.connection, terms.match, narrowing, limit)

    def _few(self, terms: Terms, narrowing: Narrowing) -> NDArray[np.int64] | None:
        """What a reader sees who sees little of much, where many memories hold the words."""
        if self.exact or terms.rows < MANY_ROWS or narrowing.view.as_of is not None:
            return None
        most = int(FEW_OF_MANY * recall_queries.document_count(self.connection))
        return recall_queries.seen_by(self.connection, narrowing, self._read, most)

    def _vector(
        self, query: NDArray[np.float32], limit: int, narrowing: Narrowing
    ) -> list[Candidate]:
        return recall_queries.by_vector(
            self.connection, query, narrowing, limit, compare_all=self.exact, read=self._read
        )

    def _entity(self, keys: Collection[str], limit: int, narrowing: Narrowing) -> list[Candidate]:
        known = recall_queries.entities_named(self.connection, keys)
        weights = {
            pk: 1.0 / math.log2(2 + mentions)
            for pk, mentions in known.items()
            if mentions <= MAX_MENTIONS
        }
        return recall_queries.by_entities(self.connection, weights, narrowing, limit)

    def _succession(self, legs: Legs) -> None:
        """What replaced the superseded ones that were found, in their order."""
        ends = self._successors(list(legs.replaced.values()))
        wanted = dict.fromkeys(one for at in ends.values() for one in at)
        found = [
            each
            for each in recall_queries.candidates_by_id(
                self.connection, list(wanted), self.narrowing
            )
            if each.status == MemoryStatus.ACTIVE.value
        ]
        legs.put("succession", found)
        keys = {each.memory_id: each.pk for each in found}
        for pk, each in legs.replaced.items():
            legs.successors[pk] = [keys[one] for one in ends[each.memory_id] if one in keys]
            legs.links.extend((one, pk, SUCCESSOR_SHARE) for one in legs.successors[pk])

    def _successors(self, replaced: Sequence[Candidate]) -> dict[str, list[str]]:
        """The ends of the chains of replacements and lost contradictions that begin at these."""
        view = self.narrowing.with_statuses(STANDING).view
        ends = {each.memory_id: [each.memory_id] for each in replaced}
        frontier = set(ends)
        for _ in range(MAX_SUCCESSION_STEPS):
            following: dict[str, list[str]] = {}
            for old, new in recall_graph.replacements(
                self.connection, sorted(frontier), view, MAX_STEPS
            ):
                following.setdefault(old, []).append(new)
            if not following:
                break
            for start, at in ends.items():
                ends[start] = list(
                    dict.fromkeys(after for one in at for after in following.get(one, [one]))
                )
            frontier = {one for each in following.values() for one in each}
        return ends

    def _context(
        self,
        legs: Legs,
        around: Sequence[Candidate],
        question: Question,
        terms: Terms,
        query_vector: NDArray[np.float32] | None,
    ) -> None:
        members = {**legs.replaced, **legs.candidates, **{each.pk: each for each in around}}
        pool = context.in_order(list(members.values()))
        stored = None if query_vector is None else self._read.of([each.pk for each in pool])
        found = context.Pool(pool, legs.links, stored, query_vector)
        order = context.rank(found, question, terms)
        if self.judged:
            judged = context.relevance(found, terms)
            legs.relevance = {each.pk: float(one) for each, one in zip(pool, judged, strict=True)}
        # What replaced a memory stands where that one would: its own words may hardly fit.
        places = dict.fromkeys(one for pk in order for one in (*legs.successors.get(pk, ()), pk))
        shown = (members[pk] for pk in places if self._is_shown(members[pk]))
        legs.put("context", list(islice(shown, self.top_k_context)))
