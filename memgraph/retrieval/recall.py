"""Recall: answer a request with a bundle of memories, their reasons, edges and sources.

One read snapshot serves everything: the legs, their fusion, the modifiers, the shares of sources,
the other sides of contradictions, the edges and the sources of the items.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

from memgraph.clock import iso
from memgraph.config.schema import MemorySettings
from memgraph.ids import short_id
from memgraph.model.enums import MemoryStatus
from memgraph.model.recall import Bundle, Degraded, RecallItem, RecallRequest, RecallTrace
from memgraph.model.sources import NamedSource, source_names
from memgraph.model.values import Memory, StoredSource, built
from memgraph.retrieval.legs import LegResults, SnapshotSearch, Timed
from memgraph.retrieval.request import PreparedRequest
from memgraph.retrieval.scores import (
    CandidateStates,
    RatedCandidate,
    in_order,
    in_pairs,
    lift_agreed,
    modifier_settings,
    rate_candidate,
    read_states,
)
from memgraph.rules.budget import select_within
from memgraph.rules.lines import UNDATED, known_date
from memgraph.rules.marks import MarkGraph
from memgraph.rules.ranking import (
    MOST_BEFORE,
    MOST_OTHER_SIDES,
    MOST_REPLACED,
    FusedCandidate,
    placed,
)
from memgraph.rules.shares import (
    RIVALS,
    RIVALS_OF_FLOOD,
    PlaceClaim,
    crowding,
    flooding,
    most_of,
    rivals,
    shared,
)
from memgraph.rules.sources import citation
from memgraph.store import embeddings, graph, recall as recall_rows, supports
from memgraph.store.recall import GraphContents, RecallCandidate, RecallFilter, StoreState
from memgraph.store.snapshot import Snapshot
from memgraph.store.visibility import STANDING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memgraph.store.vector_cache import HeldVectors
    from memgraph.store.vector_index import VectorIndex

EDGES_PER_MEMORY = 10
MAX_CHANGES = 3
"""The maximum number of changes that are followed, one after another."""
SOURCE_SHARE = 0.33
"""The maximum share of an answer's places for one source, 0 to 1, while others are comparable."""
MAX_EDGES_PER_ITEM = 10
# Modifiers are applied to this many candidates beyond ``top_n``: none would rise from further down.
MODIFIED_SURPLUS = 30
CONTEXT_SURPLUS = 80

_MODEL_CHANGED = Degraded(
    code="vector.model_changed",
    text="the embedding model was changed; run: memgraph embed --rebuild",
)
_VECTORS_PENDING = Degraded(
    code="vector.pending",
    text="some memories are not embedded yet and were searched by text only",
)
RANKED_TODAY = Degraded(
    code="ranks.of_today",
    text="ranked with the weights of today: memories that fit nearly equally well may be in another"
    " order than at that time",
)


@dataclass(frozen=True, slots=True)
class Selection:
    """What a recall chose, and the snapshot that it was read from.

    Attributes:
        narrowing: the filter for the memories that the request may return.
        ties: the kinds of links in the store.
        at: the time of the recall.
        items: the recalled memories.
        degraded: the parts of recall that were not available.
        account: how it was computed, for the receipt.
        marks: the edges that were read of the items and other candidates.
        entity_pks: the entities that the query names.
    """

    snapshot: Snapshot
    narrowing: RecallFilter
    ties: GraphContents
    at: int
    items: Sequence[RecallItem] = ()
    cut_reasons: frozenset[str] = frozenset()
    degraded: tuple[Degraded, ...] = ()
    account: RecallTrace = field(default_factory=RecallTrace)
    marks: MarkGraph = field(default_factory=MarkGraph)
    entity_pks: Sequence[int] = ()


def bundled(chosen: Selection, query: str, receipt_id: str) -> Bundle:
    """Return the answer of a recall: what was chosen, with the edges around it."""
    items, reasons = chosen.items, {*chosen.cut_reasons}
    edges = []
    if chosen.ties and items:
        limit = MAX_EDGES_PER_ITEM * len(items)
        memory_ids = [item.memory.memory_id for item in items]
        view = replace(chosen.narrowing.view, statuses=STANDING)
        edges = graph.edges_around(chosen.snapshot, memory_ids, view, EDGES_PER_MEMORY, limit + 1)
        if len(edges) > limit:
            reasons.add("max_edges")
        edges = edges[:limit]
    sources = {item.source.source_id: item.source for item in items}
    return Bundle(
        receipt_id=receipt_id,
        query=query,
        at=chosen.at,
        items=tuple(items),
        edges=tuple(edges),
        sources=tuple(source for _, source in sorted(sources.items())),
        degraded=chosen.degraded,
        cut=bool(reasons),
        cut_reasons=tuple(sorted(reasons)),
        token_cost=sum(item.memory.token_cost for item in items),
    ).with_account(chosen.account)


@dataclass(slots=True)
class _Origins:
    """The names of the sources of candidates."""

    snapshot: Snapshot
    _by_id: dict[str, frozenset[NamedSource]] = field(default_factory=dict)
    _of_both: dict[tuple[str, str | None], frozenset[NamedSource]] = field(default_factory=dict)

    def look_up(self, candidates: Iterable[RecallCandidate]) -> None:
        """Read the sources that are not known yet."""
        unknown = {candidate.source_id for candidate in candidates} - self._by_id.keys()
        if unknown:
            self._by_id |= supports.names_by_source(self.snapshot, unknown)

    def names_of(self, ranked: Sequence[RatedCandidate]) -> list[frozenset[NamedSource]]:
        """Return the names of each candidate's source."""
        self.look_up(rated.candidate for rated in ranked)
        return [self.names(rated.candidate) for rated in ranked]

    def names(self, candidate: RecallCandidate) -> frozenset[NamedSource]:
        key = candidate.source_id, candidate.session_id
        if key not in self._of_both:
            own = self._by_id[candidate.source_id]
            self._of_both[key] = own | source_names(conversation=candidate.session_id)
        return self._of_both[key]


@dataclass(frozen=True, kw_only=True)
class Recall:
    """One recall on one snapshot.

    Attributes:
        narrowing: the filter for the memories that the request may return.
        now_ms: the time of the recall, for decay and recency.
        model_changed: True if the stored vectors come from another model.
        held: the vectors of this database that the process keeps in memory.
        exact: set no deadlines and compare every vector; for measurements.
        timed: measures the time of each part.
        related: return no items unless one is at least this relevant, 0..1; None: no condition.
    """

    snapshot: Snapshot
    prepared: PreparedRequest
    narrowing: RecallFilter
    state: StoreState
    settings: MemorySettings
    now_ms: int
    model_changed: bool
    held: HeldVectors | None
    exact: bool
    timed: Timed
    related: float | None

    def select(self) -> Selection:
        """Run legs, fusion and modifiers, and choose the items."""
        degraded = list(self.prepared.degraded)
        if self.model_changed:
            degraded.append(_MODEL_CHANGED)
        as_of = self.request.as_of
        if self.request.query.strip() and as_of is not None and as_of < self.now_ms:
            degraded.append(RANKED_TODAY)
        legs = self._legs()
        if self._vector is not None and self.state.has_pending:
            degraded.append(_VECTORS_PENDING)
        fused = self._relevant(legs.fused(self.settings.retrieval.rrf_k), legs)
        if self.related is not None and legs.relevance:
            best = max((legs.relevance.get(each.id, 0.0) for each in fused), default=0.0)
            fused = fused if best >= self.related else []
        ranked, states = self._modified(fused, legs)
        origins = _Origins(self.snapshot)
        ranked = self._with_shares(ranked, legs, origins)
        chosen, states = self._with_other_sides(ranked, legs, states, origins)
        items, over_budget = self._items(chosen, states, legs)
        chosen_keys = {rated.candidate.pk for rated in chosen}
        left_out = {
            "top_n": sum(candidate.id not in chosen_keys for candidate in fused),
            "budget": over_budget,
            "status": sum(pk not in chosen_keys for pk in legs.replaced),
        }
        cut_reasons = {"top_n"} if left_out["top_n"] else set()
        if over_budget:
            cut_reasons.add("token_budget")
        trace = RecallTrace(self.state.change_seq, left_out, legs.match)
        return Selection(
            self.snapshot,
            self.narrowing,
            self.state.ties,
            self.now_ms,
            items=items,
            cut_reasons=frozenset(cut_reasons),
            degraded=(*degraded, *legs.degraded),
            account=trace,
            marks=states.pairs,
            entity_pks=legs.entity_pks,
        )

    def _relevant(
        self, fused: list[FusedCandidate[int]], legs: LegResults
    ) -> list[FusedCandidate[int]]:
        floor = self.request.min_relevance
        if floor is None or not legs.relevance:
            return fused
        return [candidate for candidate in fused if legs.relevance.get(candidate.id, 0.0) >= floor]

    def _modified(
        self, fused: Sequence[FusedCandidate[int]], legs: LegResults
    ) -> tuple[list[RatedCandidate], CandidateStates]:
        """Return the best candidates by their modified scores, and their states in the graph."""
        # Replaced memories, if requested, lose half of their score, so any other may pass them.
        limit = self._top_n + MODIFIED_SURPLUS
        if self.request.include_superseded and self.state.has_replaced:
            limit = len(fused)
        agreed = legs.agreed
        considered = [
            *fused[:limit],
            *(candidate for candidate in fused[limit:] if candidate.id == agreed),
        ]
        states = CandidateStates(legs.marks)
        if self.state.ties:
            memory_ids = [legs.candidates[candidate.id].memory_id for candidate in considered]
            states = read_states(
                self.snapshot, memory_ids, self.narrowing.view, self.state.ties, states
            )
        rate = self._rater(states)
        ranked = [
            rate(legs.candidates[candidate.id], candidate.score, candidate.ranks)
            for candidate in considered
        ]
        ranked.sort(key=_by_score)
        lift_agreed(ranked, agreed)
        return ranked, states

    def _rater(self, states: CandidateStates) -> Callable[..., RatedCandidate]:
        settings = modifier_settings(of_a_time=self.request.valid_at is not None)
        exponent = self.settings.decay.exponent
        return partial(rate_candidate, settings, self.narrowing.at, exponent, states)

    def _with_shares(
        self, ranked: list[RatedCandidate], legs: LegResults, origins: _Origins
    ) -> list[RatedCandidate]:
        """Give each source at most its share of the places."""
        limit, top_n = self._share_limit, self._top_n
        crowd = crowding(origins.names_of(ranked[:top_n]), limit) if len(ranked) > limit else None
        if not crowd:
            return ranked
        names = origins.names_of(ranked)
        others = sum(crowd.isdisjoint(each) for each in names)
        is_talk = all(rated.candidate.sequence is not None for rated in ranked)
        if is_talk and not others and not supports.has_other_conversations(self.snapshot, crowd):
            return ranked
        if others < top_n - limit:
            more = self._others(ranked, legs, crowd, origins)
            ranked, names = [*ranked, *more], [*names, *origins.names_of(more)]
        relevance, flooded = legs.judge(), self._is_flooded(legs, crowd, origins)
        claims = [
            PlaceClaim(
                each,
                relevance.get(rated.candidate.pk, 0.0),
                is_turn=rated.candidate.sequence is not None and not flooded,
            )
            for each, rated in zip(names, ranked, strict=True)
        ]
        if rivals(claims, crowd) < (RIVALS_OF_FLOOD if flooded else RIVALS):
            # Turns that nobody contests take no place away.
            claims = [
                claim
                if rated.candidate.sequence is None
                else PlaceClaim(frozenset(), claim.relevance, claim.is_turn)
                for claim, rated in zip(claims, ranked, strict=True)
            ]
        order = [ranked[at] for at in shared(claims, top_n, limit)]
        return [*in_order(order[:top_n]), *order[top_n:]]

    def _is_flooded(
        self, legs: LegResults, crowd: Collection[NamedSource], origins: _Origins
    ) -> bool:
        """Return True if one of the crowd has most of what words and vectors found."""
        found = legs.found_directly
        origins.look_up(found)
        return flooding([origins.names(candidate) for candidate in found], crowd)

    def _others(
        self,
        ranked: Sequence[RatedCandidate],
        legs: LegResults,
        crowd: Collection[NamedSource],
        origins: _Origins,
    ) -> list[RatedCandidate]:
        """Return what words and vectors find outside of the crowd, ranked behind all others."""
        more = LegResults(legs.deadline)
        narrowing = self.narrowing.without_sources(crowd)
        found = legs.found_directly
        origins.look_up(found)
        # Most of what is found again is known, and whether it comes from the crowd.
        names = {candidate.pk: origins.names(candidate) for candidate in found}
        excluded = {
            each
            for each in set(names.values())
            if any(source.name in narrowing.without for source in each)
        }
        before = {each.pk: None if names[each.pk] in excluded else each for each in found}
        self._search(narrowing).fill(more, legs, self._vector, self._top_n, before)
        known = {rated.candidate.pk for rated in ranked}
        fused = [
            candidate
            for candidate in more.fused(self.settings.retrieval.rrf_k)
            if candidate.id not in known
        ]
        rate = self._rater(CandidateStates())
        rated = [
            rate(legs.candidates[candidate.id], candidate.score, candidate.ranks)
            for candidate in self._relevant(fused[: self._top_n], legs)
        ]
        return sorted(rated, key=_by_score)

    @property
    def _share_limit(self) -> int:
        """The maximum number of places for one source."""
        request, top_n = self.request, self._top_n
        if request.conversation_id or request.session_id or request.source_path:
            return top_n
        return min(most_of(SOURCE_SHARE, top_n), top_n)

    @property
    def request(self) -> RecallRequest:
        return self.prepared.request

    @property
    def _vector(self) -> NDArray[np.float32] | None:
        return None if self.model_changed else self.prepared.vector

    @property
    def _top_n(self) -> int:
        return self.request.top_n or self.settings.retrieval.top_n

    @cached_property
    def _vectors(self) -> VectorIndex:
        # Without a query vector of the same model the index in memory is not used.
        use_held = self._vector is not None and not self.exact
        return embeddings.index(self.snapshot, self.held if use_held else None)

    def _search(self, narrowing: RecallFilter) -> SnapshotSearch:
        return SnapshotSearch(
            self.snapshot,
            narrowing,
            self.settings.retrieval,
            with_replaced=self.request.as_of is not None or self.state.has_replaced,
            with_edges=bool(self.state.ties),
            top_k_context=self._top_n + CONTEXT_SURPLUS,
            exact=self.exact,
            vectors=self._vectors,
            timed=self.timed,
            judged=self.request.min_relevance is not None or self.related is not None,
        )

    def _legs(self) -> LegResults:
        question, vector = self.prepared.question, self._vector
        if not question.words and vector is None:
            legs, limit = LegResults(), self.settings.retrieval.top_k_text
            legs.put("filter", recall_rows.by_filters(self.snapshot, self.narrowing, limit))
            return legs
        return self._search(self.narrowing).gather(question, vector, self.prepared.name_keys)

    def _with_other_sides(
        self,
        ranked: Sequence[RatedCandidate],
        legs: LegResults,
        states: CandidateStates,
        origins: _Origins,
    ) -> tuple[list[RatedCandidate], CandidateStates]:
        """Return the best candidates with their companions, and the states of all of them.

        Of two memories that contradict or change one another the later is placed where the better
        of the two stood, and the earlier right behind it; so are an amendment and its memory, and a
        successor and what it replaced. Companions that would give a source more than its share are
        left out.
        """
        top_n = self._top_n
        if states.pairs.is_apart and not legs.successors:
            return list(ranked[:top_n]), states
        by_id = {rated.memory_id: rated for rated in ranked}
        first = list(by_id)[:top_n]
        outside, states = self._companions(first, by_id, states)
        candidates = {one: each.candidate for one, each in by_id.items()} | outside
        around = partial(_around, by_id=by_id, first=first, pairs=states.pairs, legs=legs)
        present = set(candidates)
        places_beside = placed(by_id, around, present, top_n)
        limit = self._share_limit
        if len(places_beside) > limit < top_n:
            origins.look_up(candidates.values())
            crowd = crowding((origins.names(candidates[one]) for one in places_beside), limit)
            crowd -= crowding(origins.names_of(ranked[:top_n]), limit)
            if crowd:
                present -= {
                    one
                    for one in candidates.keys() - set(first)
                    if not crowd.isdisjoint(origins.names(candidates[one]))
                }
                places_beside = placed(by_id, around, present, top_n)
        rate = self._rater(states)
        chosen = [
            by_id[one] if one in by_id else rate(outside[one], 0.0, {}, beside)
            for one, beside in places_beside.items()
        ]
        return in_pairs(chosen, places_beside), states

    def _companions(
        self, first: Sequence[str], known: Collection[str], states: CandidateStates
    ) -> tuple[dict[str, RecallCandidate], CandidateStates]:
        """Return what belongs beside some memories and is not known yet, and the states of all."""
        outside: dict[str, RecallCandidate] = {}
        new: Sequence[str] = first
        for _ in range(MAX_CHANGES):
            pairs = states.pairs
            missing = {
                other: None
                for one in new
                if one in pairs
                for other in (*pairs.opponents(one), *pairs.changed_by(one), *pairs.amendments(one))
                if other not in known and other not in outside
            }
            if not missing:
                break
            fetched = recall_rows.candidates_by_id(self.snapshot, list(missing), self.narrowing)
            new = [candidate.memory_id for candidate in fetched]
            outside.update(zip(new, fetched, strict=True))
            if not new:
                break
            states = read_states(self.snapshot, new, self.narrowing.view, self.state.ties, states)
        return outside, states

    def _items(
        self, chosen: Sequence[RatedCandidate], states: CandidateStates, legs: LegResults
    ) -> tuple[list[RecallItem], int]:
        """Return the items within the token budget, and how many did not fit."""
        rows = recall_rows.items(
            self.snapshot, [rated.candidate.pk for rated in chosen], self.narrowing
        )
        chosen = [rated for rated in chosen if rated.candidate.pk in rows]
        fitting: Collection[str] = [memory.memory_id for memory, _ in rows.values()]
        budget = self.request.token_budget
        if budget is not None:
            costs = [(memory.memory_id, memory.token_cost) for memory, _ in rows.values()]
            sides = {memory_id: states.pairs.opponents(memory_id) for memory_id, _ in costs}
            fitting = set(select_within(costs, budget, sides))
        successors = [pk for rated in chosen for pk in legs.successors.get(rated.candidate.pk, ())]
        unread = [pk for pk in dict.fromkeys(successors) if pk not in rows]
        further = recall_rows.items(self.snapshot, unread, self.narrowing) if unread else {}
        dated = {**rows, **further}
        items = [
            _item(
                rated,
                *rows[rated.candidate.pk],
                states,
                _replaced_by(rated.candidate, legs, dated) or states.pairs.note(rated.memory_id),
            )
            for rated in chosen
            if rated.memory_id in fitting
        ]
        return items, len(rows) - len(items)


def _by_score(rated: RatedCandidate) -> tuple[float, str]:
    return -rated.score, rated.memory_id


def _around(
    one: str,
    by_id: Mapping[str, RatedCandidate],
    first: Collection[str],
    pairs: MarkGraph,
    legs: LegResults,
) -> list[str]:
    """Return a memory's id between those placed right before it and those right behind it."""
    replaced = legs.displaced_by(by_id[one].candidate.pk)[:MOST_REPLACED]
    if one not in pairs:
        return [one, *replaced]
    amended: Sequence[str] = pairs.amendments(one)
    if len(amended) > 1:
        places = {ranked: rank for rank, ranked in enumerate(by_id)}
        amended = sorted(amended, key=lambda other: places.get(other, len(places)))
    # An earlier statement takes no place away, unless it contradicts.
    opponents = pairs.opponents(one)
    earlier = [other for other in pairs.earlier(one) if other in first or other in opponents]
    return [
        *pairs.later(one)[:MOST_OTHER_SIDES],
        *amended[:MOST_BEFORE],
        one,
        *earlier[:MOST_OTHER_SIDES],
        *replaced,
    ]


def _replaced_by(
    candidate: RecallCandidate,
    legs: LegResults,
    rows: Mapping[int, tuple[Memory, StoredSource]],
) -> str:
    """Return "replaced by …" with the short ids and dates of a memory's successors, or ""."""
    successors = legs.successors.get(candidate.pk, ())
    if candidate.status == MemoryStatus.ACTIVE.value or not successors:
        return ""

    def named(pk: int) -> str:
        successor = legs.candidates[pk]
        at = known_date(*rows[pk]) if pk in rows else None
        date = UNDATED if at is None else iso(at)[: len("2026-01-31")]
        return f"{short_id(successor.memory_id)} ({date})"

    return "replaced by " + ", ".join(map(named, successors))


def _item(
    rated: RatedCandidate,
    memory: Memory,
    source: StoredSource,
    states: CandidateStates,
    mark: str,
) -> RecallItem:
    return built(
        RecallItem,
        {
            "memory": memory,
            "source": source,
            "score": rated.score,
            "legs": dict(rated.legs),
            "modifiers": rated.factors,
            "effective_confidence": rated.effective_confidence,
            "citation": citation(memory, source),
            "contradicted_by": states.pairs.opponents(memory.memory_id),
            "marks": states.pairs.marks(memory.memory_id),
            "brought_by": rated.brought_by,
            "mark": mark,
        },
    )
