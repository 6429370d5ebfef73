"""The legs of a recall: text, vectors, entities, successions, graph, and context."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

from memgraph.config.schema import RetrievalSettings
from memgraph.model.enums import MemoryStatus
from memgraph.model.recall import Degraded
from memgraph.retrieval.relevance import DISTANCE, CandidatePool, in_order, rank, relevance_of
from memgraph.retrieval.request import ParsedQuery, QueryTerms, choose_terms
from memgraph.rules.marks import MarkGraph
from memgraph.rules.ranking import FusedCandidate, reciprocal_rank_fusion
from memgraph.store import entities, graph, recall
from memgraph.store.engine import Deadline, DeadlinePassed
from memgraph.store.recall import CandidateReader, RecallCandidate, RecallFilter
from memgraph.store.snapshot import Snapshot
from memgraph.store.visibility import STANDING, View

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memgraph.store.text_search import TextMatches
    from memgraph.store.vector_index import VectorIndex


Timed = Callable[[str], AbstractContextManager[object]]
"""Returns a context manager that measures the time of a block for a named part; never raises."""

# An entity with more mentions does not distinguish memories, and reading them is slow.
MAX_MENTIONS = 5_000
# A replaced memory leads to its successor if it contains a word of the question, or if it is among
# this many nearest by vector.
NEAREST_THAT_SPEAK = 3
DEADLINE_MS = 1_000
"""The time limit of a leg; a slower leg is left out."""
NO_DEADLINE_MS = 86_400_000
WEIGHTS: Mapping[str, float] = {
    "text": 0.5,
    "vector": 0.25,
    "entity": 0.25,
    "graph": 0.5,
    "succession": 0.75,
    "context": 20.0,
}
"""The weight of each leg in the rank fusion, >= 0; a leg of weight 0 is not run. ``graph`` finds
memories that are linked to good candidates, ``succession`` those that replaced a match, with the
weight of the two legs that found it, and ``context`` ranks the results of all other legs."""
LOADING = 10
"""Loading the vectors may take this many times the deadline."""
TOP_K_ENTITY = 50
# Neighbouring turns are read for this many results of each leg.
NEIGHBOURED = 10
SEEDS = 15
EDGES_PER_SEED = 8
# The share of a memory's terms that counts for a linked memory, and for its successor.
LINK_SHARE, SUCCESSOR_SHARE = 0.5, 0.9


@dataclass(slots=True)
class LegResults:
    """The results of the legs: candidates by key, and the ranked keys of every leg.

    Attributes:
        deadline: limits how long the statements of a leg may take, in milliseconds.
        first: the key of the best result of every leg, which may be a superseded memory.
        replaced: the superseded memories among the results; they lead to their successors.
        successors: for each key in ``replaced``, the keys of its active successors.
        marks: the edges that were read of the candidates; the recall adds more.
        links: (key, other key, weight), see ``CandidatePool``.
        match: see ``RecallTrace``.
        relevance: 0..1 by key; empty until ``judge`` is called.
        pool, terms: the input of the context leg; None if it did not run.
        matches: the memories that contain words of the question; None if the lookup timed out.
        entity_pks: the entities that the question names.
        reader: the reader of the text leg and of the vector leg.
    """

    deadline: Deadline = field(default=lambda _: nullcontext())
    candidates: dict[int, RecallCandidate] = field(default_factory=dict)
    ranked: dict[str, list[int]] = field(default_factory=dict)
    degraded: list[Degraded] = field(default_factory=list)
    first: dict[str, int] = field(default_factory=dict)
    replaced: dict[int, RecallCandidate] = field(default_factory=dict)
    successors: dict[int, list[int]] = field(default_factory=dict)
    marks: MarkGraph = field(default_factory=MarkGraph)
    links: list[tuple[int, int, float]] = field(default_factory=list)
    match: str | None = ""
    relevance: dict[int, float] = field(default_factory=dict)
    pool: CandidatePool | None = None
    terms: QueryTerms | None = None
    matches: TextMatches | None = None
    entity_pks: Sequence[int] = ()
    reader: CandidateReader | None = None

    def judge(self) -> Mapping[int, float]:
        """Return the relevance of each candidate, 0..1 by key; empty without a context leg."""
        if not self.relevance and self.pool is not None and self.terms is not None:
            judged: list[float] = relevance_of(self.pool, self.terms).tolist()
            pks = (candidate.pk for candidate in self.pool.candidates)
            self.relevance = dict(zip(pks, judged, strict=True))
        return self.relevance

    def fused(self, k: int) -> list[FusedCandidate[int]]:
        """Return all candidates by weighted reciprocal rank fusion, best first."""
        return reciprocal_rank_fusion(self.ranked, k, WEIGHTS)

    def put(self, name: str, candidates: Sequence[RecallCandidate]) -> None:
        """Add a leg's candidates, best first; a leg without candidates is omitted."""
        if candidates:
            self.candidates |= {candidate.pk: candidate for candidate in candidates}
            self.ranked[name] = [candidate.pk for candidate in candidates]

    @property
    def found_directly(self) -> list[RecallCandidate]:
        """The results of words and of vectors, one after the other."""
        pks = (pk for leg in ("text", "vector") for pk in self.ranked.get(leg, ()))
        return [self.candidates[pk] for pk in pks]

    @property
    def agreed(self) -> int | None:
        """The key of the memory that is first by text and by vectors, or None.

        A successor stands for what it replaced.
        """
        text, vector = (
            pk if pk is None else next(iter(self.successors.get(pk, ())), pk)
            for pk in (self.first.get("text"), self.first.get("vector"))
        )
        return text if text == vector else None

    def displaced_by(self, pk: int) -> list[str]:
        """Return the ids of the candidates that a memory replaced, newest first."""
        old = [key for key, successors in self.successors.items() if pk in successors]
        return [
            self.candidates[key].memory_id for key in sorted(old)[::-1] if key in self.candidates
        ]

    def degrade(self, code: str, text: str) -> None:
        self.degraded.append(Degraded(code=code, text=text))


@dataclass(frozen=True)
class SnapshotSearch:
    """A search on one snapshot.

    Attributes:
        narrowing: the filter for results; its statuses are those that may be shown.
        with_replaced: also search superseded memories, to find their successors.
        with_edges: True if the store has edges to follow.
        top_k_context: the maximum number of candidates of the context leg.
        exact: no deadlines apply.
        vectors: the vector index of the snapshot.
        timed: measures the time of each leg.
        judged: compute the relevance of the candidates.
    """

    snapshot: Snapshot
    narrowing: RecallFilter
    settings: RetrievalSettings
    with_replaced: bool
    with_edges: bool
    top_k_context: int
    exact: bool
    vectors: VectorIndex
    timed: Timed
    judged: bool

    def gather(
        self,
        question: ParsedQuery,
        query_vector: NDArray[np.float32] | None,
        name_keys: Collection[str],
    ) -> LegResults:
        """Run all legs with a weight above 0."""
        with self.snapshot.engine.deadlines(self.snapshot) as deadline:
            return self._gathered(LegResults(deadline), question, query_vector, name_keys)

    def fill(
        self,
        more: LegResults,
        legs: LegResults,
        query_vector: NDArray[np.float32] | None,
        limit: int,
        known: Mapping[int, RecallCandidate | None],
    ) -> None:
        """Search words and vectors again with this narrowing, and judge both searches together.

        Args:
            more: receives the ranked keys.
            legs: the first search; it receives the candidates and their relevance.
            known: the candidates of the first search by key; None if this narrowing excludes one.
        """
        pool, terms = legs.pool, legs.terms
        if pool is None or terms is None:
            return
        statuses = self.narrowing.view.statuses
        is_narrower = statuses is not None and statuses <= STANDING
        within = legs.reader if is_narrower else None
        reader = CandidateReader(self.snapshot, self.narrowing, known, within)
        with self.snapshot.engine.deadlines(self.snapshot) as deadline:
            more.deadline = deadline
            if legs.matches is not None and terms.stems and self._weighs("text"):
                with self.timed("text"), self._bounded("text", more):
                    found = recall.by_text(legs.matches, terms.stems, reader, limit)
                    more.put("text", found)
            if query_vector is not None and self._weighs("vector"):
                with self.timed("vector"), self._bounded("vector", more):
                    found = recall.by_vector(query_vector, reader, limit, self.vectors)
                    more.put("vector", found)
        new = {pk: each for pk, each in more.candidates.items() if pk not in legs.candidates}
        if not new:
            legs.judge()
            return
        legs.candidates.update(new)
        members = {candidate.pk: candidate for candidate in pool.candidates} | new
        candidates = in_order(list(members.values()))
        stored = None
        if query_vector is not None:
            stored = self.vectors.vectors([candidate.pk for candidate in candidates])
        legs.pool = CandidatePool(candidates, [], stored, query_vector)
        legs.relevance = {}
        legs.judge()

    def _gathered(
        self,
        legs: LegResults,
        question: ParsedQuery,
        query_vector: NDArray[np.float32] | None,
        name_keys: Collection[str],
    ) -> LegResults:
        legs.reader = self._standing if self._looks_at_replaced else self._shown
        matches = legs.matches = self._matches(question, legs)
        terms = choose_terms(question, {}, 0)
        if matches is not None:
            terms = choose_terms(question, matches.frequencies, matches.documents)
        if terms.stems:
            viewer = self.narrowing.view.viewer
            sees_all = matches is not None and recall.sees_all(matches, viewer)
            legs.match = None if sees_all else terms.match
        if matches is not None and terms.stems and self._weighs("text"):
            self._leg(legs, "text", lambda n, by: recall.by_text(matches, terms.stems, by, n))
        if query_vector is not None and self._weighs("vector") and self._has_loaded(legs):
            vector, index = query_vector, self.vectors
            self._leg(legs, "vector", lambda n, by: recall.by_vector(vector, by, n, index))
        if name_keys and self._weighs("entity"):
            with self.timed("entity"), self._bounded("entity", legs):
                # A name holds, though the memory that said it was retracted.
                view = View(self.narrowing.view.viewer, self.narrowing.view.as_of)
                legs.entity_pks = entities.known_by(self.snapshot, name_keys, view)
        if pks := legs.entity_pks:
            self._leg(legs, "entity", lambda n, by: recall.by_entities(pks, MAX_MENTIONS, by, n))
        best = list(dict.fromkeys(pk for leg in legs.ranked.values() for pk in leg[:NEIGHBOURED]))
        if legs.replaced:
            with self.timed("succession"), self._bounded("succession", legs):
                self._succession(legs)
        if self.with_edges and legs.candidates and self._weighs("graph"):
            with self.timed("graph"), self._bounded("graph", legs):
                self._graph(legs)
        if legs.candidates and self._weighs("context"):
            with self.timed("context"):
                around = recall.neighbours(self.snapshot, best, self.narrowing, DISTANCE)
                self._context(legs, around, question, terms, query_vector)
        return legs

    @cached_property
    def _shown(self) -> CandidateReader:
        return CandidateReader(self.snapshot, self.narrowing)

    @cached_property
    def _standing(self) -> CandidateReader:
        return CandidateReader(self.snapshot, self.narrowing.with_statuses(STANDING))

    def _has_loaded(self, legs: LegResults) -> bool:
        """Load the vectors, which is slow at the first recall; return False on a timeout."""
        if self.vectors.is_loaded:
            return True
        # Once per process: enough for a single command.
        with self.timed("vector"), self._bounded("vector", legs, LOADING * DEADLINE_MS):
            self.vectors.load()
            return True
        return False

    def _graph(self, legs: LegResults) -> None:
        """Add the neighbours of the best candidates, ranked by the sum of weight / (k + rank)."""
        fused = reciprocal_rank_fusion(legs.ranked, self.settings.rrf_k, limit=SEEDS)
        seeds = {legs.candidates[candidate.id].memory_id: candidate.id for candidate in fused}
        steps = graph.strongest_neighbours(
            self.snapshot, list(seeds), self.narrowing.view, None, EDGES_PER_SEED
        )
        places = {memory_id: rank for rank, memory_id in enumerate(seeds, start=1)}
        gains: dict[str, list[float]] = {}
        for step in steps:
            gain = step.weight / (self.settings.rrf_k + places[step.origin_id])
            gains.setdefault(step.memory_id, []).append(gain)
        score = {memory_id: math.fsum(shares) for memory_id, shares in gains.items()}
        order = sorted(score, key=lambda key: (-score[key], key))[: self.settings.top_k_text]
        joined = recall.candidates_by_id(self.snapshot, order, self.narrowing)
        legs.put("graph", joined)
        keys = {candidate.memory_id: candidate.pk for candidate in joined}
        for step in steps:
            if step.memory_id in keys:
                key, seed = keys[step.memory_id], seeds[step.origin_id]
                legs.links.append((key, seed, LINK_SHARE * step.weight))

    def _matches(self, question: ParsedQuery, legs: LegResults) -> TextMatches | None:
        """Return the memories that contain words of a question; None on a timeout."""
        # This loads numpy.
        from memgraph.store import text_search

        if question.cut:
            legs.degrade("query.cut", "the query is very long; only its beginning was searched")
        with self.timed("words"), self._bounded("text", legs):
            return text_search.find(self.snapshot, question.words.keys())
        return None

    def _leg(
        self,
        legs: LegResults,
        name: str,
        run: Callable[[int, CandidateReader], list[RecallCandidate]],
    ) -> None:
        limit = self._limit(name)
        candidates: list[RecallCandidate] = []
        first: list[RecallCandidate] = []
        starved = False
        with self.timed(name), self._bounded(name, legs):
            if self._looks_at_replaced:
                wide = limit + limit // 2
                both = run(wide, self._standing)
                candidates = [candidate for candidate in both if self._is_shown(candidate)]
                first = both[:1]
                speak = both[:NEAREST_THAT_SPEAK] if name == "vector" else both
                replaced = (
                    candidate
                    for candidate in speak
                    if candidate.status != MemoryStatus.ACTIVE.value
                )
                legs.replaced.update((candidate.pk, candidate) for candidate in replaced)
                starved = len(candidates) < limit and len(both) == wide
            if not self._looks_at_replaced or starved:
                candidates = run(limit, self._shown)
        legs.put(name, candidates[:limit])
        legs.first.update((name, candidate.pk) for candidate in first or candidates[:1])

    def _is_shown(self, candidate: RecallCandidate) -> bool:
        statuses = self.narrowing.view.statuses
        return statuses is None or candidate.status in statuses

    def _weighs(self, leg: str) -> bool:
        return WEIGHTS[leg] > 0.0

    @property
    def _looks_at_replaced(self) -> bool:
        return self.with_replaced and self._weighs("succession")

    def _limit(self, name: str) -> int:
        if name == "text":
            return self.settings.top_k_text
        return self.settings.top_k_vector if name == "vector" else TOP_K_ENTITY

    @contextmanager
    def _bounded(
        self, leg: str, legs: LegResults, deadline_ms: int | None = None
    ) -> Iterator[None]:
        """Stop a leg at its deadline and report it as degraded."""
        limit = NO_DEADLINE_MS if self.exact else deadline_ms or DEADLINE_MS
        try:
            with legs.deadline(limit):
                yield
        except DeadlinePassed:
            legs.degrade(
                f"{leg}.deadline", f"the {leg} leg took longer than {limit} ms and was stopped"
            )

    def _succession(self, legs: LegResults) -> None:
        """Add the active successors of superseded candidates, in the same order."""
        replaced = [candidate.memory_id for candidate in legs.replaced.values()]
        view = self.narrowing.with_statuses(STANDING).view
        graph.read_successions(self.snapshot, legs.marks, replaced, view)
        successions = ((one, legs.marks.succession(one)) for one in replaced)
        ends = {one: succession.ends for one, succession in successions if succession}
        ids = dict.fromkeys(memory_id for end_ids in ends.values() for memory_id in end_ids)
        successors = [
            candidate
            for candidate in recall.candidates_by_id(self.snapshot, list(ids), self.narrowing)
            if candidate.status == MemoryStatus.ACTIVE.value
        ]
        legs.put("succession", successors)
        keys = {candidate.memory_id: candidate.pk for candidate in successors}
        for pk, old in legs.replaced.items():
            legs.successors[pk] = [keys[end] for end in ends.get(old.memory_id, ()) if end in keys]
            legs.links.extend((successor, pk, SUCCESSOR_SHARE) for successor in legs.successors[pk])

    def _context(
        self,
        legs: LegResults,
        around: Sequence[RecallCandidate],
        question: ParsedQuery,
        terms: QueryTerms,
        query_vector: NDArray[np.float32] | None,
    ) -> None:
        members = {
            **legs.replaced,
            **legs.candidates,
            **{candidate.pk: candidate for candidate in around},
        }
        pool = in_order(list(members.values()))
        stored = None
        if query_vector is not None:
            stored = self.vectors.vectors([candidate.pk for candidate in pool])
        candidates = CandidatePool(pool, legs.links, stored, query_vector)
        order = rank(candidates, question, terms)
        legs.pool, legs.terms = candidates, terms
        if self.judged:
            legs.judge()
        # A successor takes the place of the memory it replaced: its own words may match poorly.
        successors = legs.successors
        if successors:
            order = list(
                dict.fromkeys(key for pk in order for key in (*successors.get(pk, ()), pk))
            )
        visible = (members[pk] for pk in order if self._is_shown(members[pk]))
        legs.put("context", list(islice(visible, self.top_k_context)))
