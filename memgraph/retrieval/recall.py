"""Recall: a question in, a bundle of memories with reasons, edges and sources out.

The query is embedded first, with no transaction open. Then one read snapshot serves everything:
the legs, their fusion, the modifiers, the pairs of contradictions, the edges and the sources.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final

from memgraph.clock import iso
from memgraph.config.schema import MemorySettings
from memgraph.ids import IdSource, short_id
from memgraph.model.enums import MemoryStatus, TrustTier
from memgraph.model.recall import (
    AS_STORED,
    Accesses,
    Bundle,
    Degraded,
    RecallItem,
    RecallRequest,
    RecallTrace,
    ReplayMoment,
)
from memgraph.model.values import Memory, StoredSource
from memgraph.retrieval import candidate_states
from memgraph.retrieval.candidate_states import CandidateStates
from memgraph.retrieval.citation import citation
from memgraph.retrieval.legs import LegResults, SnapshotSearch
from memgraph.retrieval.request import Embed, NameKeys, PreparedRequest, narrowed, prepared
from memgraph.retrieval.scores import RatedCandidate, distrusted, in_order, lift_agreed, rating
from memgraph.retrieval.timer import Timed, untimed
from memgraph.rules.budget import select_within
from memgraph.rules.ranking import (
    MOST_BEFORE,
    MOST_OTHER_SIDES,
    MOST_REPLACED,
    FusedCandidate,
    placed,
    reciprocal_rank_fusion,
)
from memgraph.rules.scope import Viewer
from memgraph.rules.trust import (
    CaptureFacts,
    NamedSource,
    PlaceClaim,
    TrustRules,
    contested,
    crowding,
    flooding,
    most_of,
    shared,
)
from memgraph.store import embeddings, graph
from memgraph.store import recall as recall_rows
from memgraph.store import trust as trust_rows
from memgraph.store.engine import Database
from memgraph.store.recall import RecallCandidate, RecallFilter, StoreState
from memgraph.store.rows import built
from memgraph.store.snapshot import Snapshot
from memgraph.store.visibility import STANDING, View

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memgraph.store.ports import HeldVectors, TextMatches, VectorIndex

RECEIPT_PREFIX = "rcl_"
ALWAYS: Final = nullcontext()
EDGES_PER_MEMORY = 10
MAX_EDGES_PER_ITEM = 10
# So many more than are asked for are modified and sorted: no modifier lifts one from below.
MODIFIED_SURPLUS = 30
CONTEXT_SURPLUS = 80

_MODEL_CHANGED = Degraded(
    code="vector.model_changed",
    text="the embedding model was changed; run: memgraph embeddings rebuild",
)
_WEIGHED_TODAY = Degraded(
    code="ranks.of_today",
    text="words, names and vectors weigh as they do today: what fits nearly equally well may stand"
    " in another order than it did then",
)


def recall(
    database: Database,
    request: RecallRequest,
    *,
    viewer: Viewer,
    settings: MemorySettings,
    embed: Embed | None,
    name_keys: NameKeys | None,
    now_ms: int,
    ids: IdSource,
    clock: Callable[[], int] | None = None,
    model_changed: Callable[[StoreState], bool] | None = None,
    exact: bool = False,
    held: HeldVectors | None = None,
    timed: Timed = untimed,
    turn: AbstractContextManager[object] = ALWAYS,
    then: ReplayMoment | None = None,
) -> Bundle:
    """Answer a request.

    Args:
        viewer: what the caller may see; the request narrows it.
        embed: texts to vectors, as ``EmbeddingProvider.embed``; None: there is no model to ask.
        name_keys: the canonical names in a text, as the entities of the database are keyed.
        now_ms: the time of the recall, for decay and recency.
        clock: read instead once the snapshot stands, so that the answer holds nothing of later.
        model_changed: whether the vectors of a state come from another model than ``embed``'s.
        exact: leave no term out and compare every vector, whatever it costs; for measuring.
        held: the vectors of this database that the process keeps.
        timed: told how long each part takes.
        turn: entered once the query is embedded, left with the answer.
        then: when the request was asked first, if it is asked once more.

    Raises:
        AccessDenied: the request reaches further than ``viewer``.
        StorageError: the database cannot be read.
    """
    narrowing = narrowed(request, viewer, now_ms, then)
    with timed("prepare"):
        asked_ms = now_ms if then is None else then.at
        asked = prepared(request, asked_ms, embed=embed, name_keys=name_keys)
    with turn, database.read() as snapshot:
        state = recall_rows.read(snapshot)
        if then is not None:
            now_ms = then.at
        elif clock is not None:
            now_ms = clock()
            narrowing = narrowed(request, viewer, now_ms)
        return _Answer(
            snapshot,
            asked,
            settings,
            narrowing,
            now_ms,
            exact,
            held,
            _model_has_changed(state, model_changed),
            timed,
            then,
            state,
        ).bundle(ids.new(RECEIPT_PREFIX))


def recalled(
    snapshot: Snapshot,
    asked: PreparedRequest,
    narrowing: RecallFilter,
    state: StoreState,
    *,
    settings: MemorySettings,
    now_ms: int,
    model_changed: Callable[[StoreState], bool] | None = None,
    held: HeldVectors | None = None,
    timed: Timed = untimed,
    then: ReplayMoment | None = None,
) -> tuple[tuple[RecallItem, ...], tuple[Degraded, ...], RecallTrace]:
    """The items of a bundle, on a snapshot that the caller holds, what they had to do without, and
    how they came about.

    Args: as of `recall`.
    """
    changed = _model_has_changed(state, model_changed)
    answer = _Answer(
        snapshot, asked, settings, narrowing, now_ms, False, held, changed, timed, then, state
    )
    found = answer.found()
    return tuple(found.items), found.degraded, found.account


def _model_has_changed(
    state: StoreState, model_changed: Callable[[StoreState], bool] | None
) -> bool:
    return model_changed is not None and model_changed(state)


@dataclass(frozen=True, slots=True)
class _Found:
    items: list[RecallItem]
    cut_reasons: set[str]
    degraded: tuple[Degraded, ...]
    account: RecallTrace


@dataclass(slots=True)
class _Origins:
    """The origins of candidates.

    Attributes:
        low: keys of those of low trust.
    """

    snapshot: Snapshot
    low: Collection[int] = ()
    _sources: dict[str, CaptureFacts] = field(default_factory=dict)
    _names: dict[str, frozenset[NamedSource]] = field(default_factory=dict)

    def look_up(self, some: Iterable[RecallCandidate]) -> None:
        """Look up the sources of those that are not known yet."""
        unknown = {each.source_id for each in some} - self._sources.keys()
        if unknown:
            found = trust_rows.sources_by_id(self.snapshot, unknown)
            self._sources |= found
            self._names |= {source_id: each.names for source_id, each in found.items()}

    def captured(self, each: RecallCandidate) -> CaptureFacts:
        return self._sources[each.source_id]._replace(session_id=each.session_id)

    def names(self, each: RecallCandidate) -> frozenset[NamedSource]:
        names = self._names[each.source_id]
        return (
            names if each.session_id is None else names | CaptureFacts.of_session(each.session_id)
        )

    def claims(
        self, some: Sequence[RatedCandidate], relevance: Mapping[int, float], *, turns: bool
    ) -> list[PlaceClaim]:
        """Return the claim of each; turns are bounded where ``turns`` or low trust says so."""
        return [
            PlaceClaim(
                self.names(each.candidate),
                relevance.get(each.candidate.pk, 0.0),
                turns or each.candidate.sequence is None or each.candidate.pk in self.low,
            )
            for each in some
        ]


@dataclass(frozen=True)
class _Answer:
    """One recall on one snapshot."""

    snapshot: Snapshot
    asked: PreparedRequest
    settings: MemorySettings
    narrowing: RecallFilter
    now_ms: int
    exact: bool
    held: HeldVectors | None
    model_changed: bool
    timed: Timed
    then: ReplayMoment | None
    state: StoreState

    def bundle(self, receipt_id: str) -> Bundle:
        found = self.found()
        items, reasons = found.items, found.cut_reasons
        edges = []
        if self.state.ties and items:
            most = MAX_EDGES_PER_ITEM * len(items)
            names = [item.memory.memory_id for item in items]
            view = self.narrowing.view
            around = View(view.viewer, view.as_of, STANDING)
            edges = graph.edges_around(self.snapshot, names, around, EDGES_PER_MEMORY, most + 1)
            if len(edges) > most:
                reasons.add("max_edges")
            edges = edges[:most]
        return Bundle(
            receipt_id=receipt_id,
            query=self.request.query,
            at=self.now_ms,
            items=tuple(items),
            edges=tuple(edges),
            sources=tuple(
                sorted(
                    {item.source.source_id: item.source for item in items}.values(),
                    key=lambda each: each.source_id,
                )
            ),
            degraded=found.degraded,
            cut=bool(reasons),
            cut_reasons=tuple(sorted(reasons)),
            token_cost=sum(item.memory.token_cost for item in items),
        ).with_account(found.account)

    def found(self) -> _Found:
        told = list(self.asked.degraded)
        if self.model_changed:
            told.append(_MODEL_CHANGED)
        if self._asks_of_earlier:
            told.append(_WEIGHED_TODAY)
        legs = self._legs()
        if self._vector is not None and self.state.has_pending:
            told.append(
                Degraded(
                    code="vector.pending",
                    text="some memories are not embedded yet and were found by their words alone",
                )
            )
        fused = self._fused(legs)
        floor = self.request.min_relevance
        if floor is not None and legs.relevance:
            fused = [each for each in fused if legs.relevance.get(each.id, 0.0) >= floor]
        top_n = self._top_n
        # A replaced memory, shown on demand, is worth half: it may let anyone pass.
        most = len(fused) if self.request.include_superseded else top_n + MODIFIED_SURPLUS
        agreed = legs.agreed
        considered = [*fused[:most], *(each for each in fused[most:] if each.id == agreed)]
        stand = CandidateStates()
        if self.state.ties:
            names = [legs.candidates[each.id].memory_id for each in considered]
            stand = candidate_states.standing(
                self.snapshot, names, self.narrowing.view, self.state.ties
            )
        rate = rating(self.narrowing.at, self.settings, stand, self._accessed).rated
        ranked = [rate(legs.candidates[each.id], each.score, each.ranks) for each in considered]
        ranked.sort(key=lambda each: (-each.modified.score, each.candidate.memory_id))
        lift_agreed(ranked, agreed)
        ranked = self._with_shares(ranked, legs, top_n)
        chosen, stand = self._with_other_sides(ranked, legs, stand, top_n)
        shown = {each.candidate.pk for each in chosen}
        items, over_budget = self._items(chosen, stand, legs)
        left_out = {
            "top_n": sum(each.id not in shown for each in fused),
            "budget": over_budget,
            "status": sum(pk not in shown for pk in legs.replaced),
        }
        reasons_of = {"top_n": "top_n", "budget": "token_budget"}
        reasons = {named for one, named in reasons_of.items() if left_out[one]}
        account = RecallTrace(self.state.change_seq, left_out, legs.match)
        return _Found(items, reasons, (*told, *legs.degraded), account)

    def _with_shares(
        self, ranked: list[RatedCandidate], legs: LegResults, top_n: int
    ) -> list[RatedCandidate]:
        """Return the ranked with a share of the places for each source, and each source's trust."""
        trust = TrustRules.of(self.settings.trust)
        if self.state.has_trusted:
            trust = trust_rows.with_told(self.snapshot, trust)
        most = most_of(self.settings.retrieval.source_share, top_n)
        asked = self.request
        named = asked.conversation_id or asked.session_id or asked.source_path
        if trust.uniform and (named or len(ranked) <= most):
            return ranked
        # Where every source is trusted alike, only what comes first has to be looked at.
        looked_at = [each.candidate for each in (ranked[:top_n] if trust.uniform else ranked)]
        origins = _Origins(self.snapshot)
        origins.look_up(looked_at)
        if TrustTier.LOW in trust.tiers:
            low = {
                one.pk for one in looked_at if trust.tier(origins.captured(one)) is TrustTier.LOW
            }
            origins.low = low
            ranked = [distrusted(one) if one.candidate.pk in low else one for one in ranked]
            ranked.sort(key=lambda each: (-each.modified.score, each.candidate.memory_id))
        if named or most >= top_n:
            return ranked
        return self._bounded(ranked, legs, origins, top_n, most)

    def _bounded(
        self,
        ranked: list[RatedCandidate],
        legs: LegResults,
        origins: _Origins,
        top_n: int,
        most: int,
    ) -> list[RatedCandidate]:
        """Return the ranked with at most ``most`` of the first places for each source.

        Where one source crowds the others out of all candidates, they are searched for without it.
        """
        first = ranked[:top_n]
        crowd = crowding(origins.claims(first, {}, turns=True), most)
        if not crowd:
            return ranked
        turns_alone = not crowding(origins.claims(first, {}, turns=False), most)
        flooded = self._is_flooded(legs, crowd, origins)
        if turns_alone and not flooded:
            return ranked
        before = ranked
        relevance = dict(legs.judge())
        origins.look_up(each.candidate for each in ranked)
        if sum(not crowd & origins.names(each.candidate) for each in ranked) < top_n - most:
            more = self._legs(self.narrowing.without_sources(crowd), legs.matches)
            known = {each.candidate.pk for each in ranked}
            rate = rating(self.narrowing.at, self.settings, CandidateStates(), self._accessed).rated
            ranked = ranked + [
                rate(more.candidates[one.id], one.score, one.ranks)
                for one in self._fused(more)[:top_n]
                if one.id not in known
            ]
            ranked.sort(key=lambda each: (-each.modified.score, each.candidate.memory_id))
            legs.candidates.update(more.candidates)
            relevance = dict(more.judge()) | relevance
            origins.look_up(each.candidate for each in ranked)
        turns = flooded and contested(origins.claims(ranked, relevance, turns=True), crowd)
        if turns_alone and not turns:
            return before
        claims = origins.claims(ranked, relevance, turns=turns)
        return in_order([ranked[at] for at in shared(claims, top_n, most)])

    def _is_flooded(
        self, legs: LegResults, crowd: Collection[NamedSource], origins: _Origins
    ) -> bool:
        """Return whether one talk of several holds most of what words and vectors found."""
        keys = [pk for leg in ("text", "vector") for pk in legs.ranked.get(leg, ())]
        found = [legs.candidates[pk] for pk in keys]
        origins.look_up(found)
        return flooding(
            [origins.names(each) for each in found], crowd
        ) and trust_rows.has_other_talks(self.snapshot, crowd)

    @property
    def request(self) -> RecallRequest:
        return self.asked.request

    @property
    def _vector(self) -> NDArray[np.float32] | None:
        return None if self.model_changed else self.asked.vector

    @property
    def _asks_of_earlier(self) -> bool:
        """Return True when ranks may differ from those of the time that is asked for."""
        as_of = self.request.as_of
        return bool(self.request.query.strip()) and as_of is not None and as_of < self.now_ms

    @property
    def _accessed(self) -> Accesses:
        return AS_STORED if self.then is None else self.then.accessed

    @property
    def _top_n(self) -> int:
        return self.request.top_n or self.settings.retrieval.top_n

    @cached_property
    def _vectors(self) -> VectorIndex:
        # Without the model of the index nobody knows whether it tells of all that is seen.
        use_held = self._vector is not None and not self.exact
        return embeddings.index(self.snapshot, self.held if use_held else None)

    def _legs(
        self, narrowing: RecallFilter | None = None, matches: TextMatches | None = None
    ) -> LegResults:
        """Search, within ``narrowing`` instead of the answer's own where one is given.

        Args:
            matches: what holds the words of the question, where an earlier search looked it up.
        """
        narrowing = narrowing or self.narrowing
        retrieval = self.settings.retrieval
        with_replaced = self.request.as_of is not None or self.state.has_replaced
        search = SnapshotSearch(
            self.snapshot,
            narrowing,
            retrieval,
            with_replaced,
            bool(self.state.ties),
            self._top_n + CONTEXT_SURPLUS,
            self.exact,
            self._vectors,
            self.timed,
            self.request.min_relevance is not None,
        )
        question, vector = self.asked.question, self._vector
        if not question.words and vector is None:
            legs = LegResults()
            legs.put(
                "filter",
                recall_rows.by_filters(self.snapshot, narrowing, retrieval.top_k_text),
            )
            return legs
        return search.gather(question, vector, self.asked.name_keys, matches)

    def _fused(self, legs: LegResults) -> list[FusedCandidate[int]]:
        retrieval = self.settings.retrieval
        weights = retrieval.weights.model_dump()
        return reciprocal_rank_fusion(legs.ranked, retrieval.rrf_k, weights)

    def _with_other_sides(
        self, ranked: Sequence[RatedCandidate], legs: LegResults, stand: CandidateStates, top_n: int
    ) -> tuple[list[RatedCandidate], CandidateStates]:
        """Return the best ``top_n``, and how all of them stand in the graph.

        Both sides of an open contradiction stand together, the later first. What amended a memory
        stands right before it, what it replaced right behind it.
        """
        if stand.is_apart and not legs.successors:
            return list(ranked[:top_n]), stand
        by_id = {each.candidate.memory_id: each for each in ranked}
        places = {one: rank for rank, one in enumerate(by_id)}
        amended_by = {
            one: sorted(each, key=lambda one: places.get(one, len(places)))[:MOST_BEFORE]
            for one, each in stand.amended_by.items()
        }
        lacking = [
            other
            for each in ranked[:top_n]
            for one in (each.candidate.memory_id,)
            for other in (*stand.conflicts.opponents(one), *amended_by.get(one, ()))
            if other not in by_id
        ]
        outside = {}
        if lacking:
            fetched = recall_rows.candidates_by_id(
                self.snapshot, list(dict.fromkeys(lacking)), self.narrowing
            )
            outside = {each.memory_id: each for each in fetched}
        if outside:
            stand |= candidate_states.standing(
                self.snapshot, list(outside), self.narrowing.view, self.state.ties
            )
        before = {
            one: (*stand.conflicts.later(one)[:MOST_OTHER_SIDES], *amended_by.get(one, ()))
            for one in by_id
        }
        behind = {
            one: (
                *stand.conflicts.earlier(one)[:MOST_OTHER_SIDES],
                *legs.displaced_by(each.candidate.pk)[:MOST_REPLACED],
            )
            for one, each in by_id.items()
        }
        shown = placed(list(by_id), before, behind, by_id.keys() | outside.keys(), top_n)
        rate = rating(self.narrowing.at, self.settings, stand, self._accessed).rated
        chosen = [
            by_id[one] if one in by_id else rate(outside[one], 0.0, {}, beside)
            for one, beside in shown.items()
        ]
        return chosen, stand

    def _items(
        self, chosen: Sequence[RatedCandidate], stand: CandidateStates, legs: LegResults
    ) -> tuple[list[RecallItem], int]:
        """The chosen as they are handed out, as far as the token budget goes; how many it left."""
        found = recall_rows.items(
            self.snapshot, [each.candidate.pk for each in chosen], self.narrowing
        )
        left_out: tuple[str, ...] = ()
        budget = self.request.token_budget
        if budget is not None:
            costs = [(one.memory_id, one.token_cost) for one, _ in found.values()]
            sides = {one: stand.conflicts.opponents(one) for one, _ in costs}
            left_out = select_within(costs, budget, sides).left_out
        items = [
            _item(
                each,
                *found[each.candidate.pk],
                stand,
                _replaced_by(each.candidate, legs)
                or stand.conflicts.mark(each.candidate.memory_id),
            )
            for each in chosen
            if each.candidate.memory_id not in left_out
        ]
        return items, len(left_out)


def _replaced_by(each: RecallCandidate, legs: LegResults) -> str:
    """Return "replaced by …", with the short id and the date of what replaced a memory."""
    after = [legs.candidates[one] for one in legs.successors.get(each.pk, ())]
    if each.status == MemoryStatus.ACTIVE.value or not after:
        return ""
    return "replaced by " + ", ".join(
        f"{short_id(one.memory_id)} ({iso(_time_of(one))[: len('2026-01-31')]})" for one in after
    )


def _time_of(each: RecallCandidate) -> int:
    return each.created_at if each.event_time is None else each.event_time


def _item(
    each: RatedCandidate,
    memory: Memory,
    source: StoredSource,
    stand: CandidateStates,
    mark: str,
) -> RecallItem:
    return built(
        RecallItem,
        {
            "memory": memory,
            "source": source,
            "score": each.modified.score,
            "legs": dict(each.legs),
            "modifiers": each.modified.factors,
            "effective_confidence": each.effective_confidence,
            "citation": citation(memory, source),
            "contradicted_by": stand.conflicts.opponents(memory.memory_id),
            "brought_by": each.brought_by,
            "mark": mark,
        },
    )
