"""A contradiction as a case: both sides with their evidence, and possible decisions."""

from __future__ import annotations

from typing import Final

from memgraph.clock import MAX_MS
from memgraph.errors import NotFound
from memgraph.graph.redaction import journal_notes
from memgraph.graph.stale import described
from memgraph.model.enums import EdgeType, MemoryStatus, TrustTier
from memgraph.model.graph import (
    Case,
    CaseSide,
    Influence,
    InvalidPremise,
    JournalNote,
    MemorySupport,
    Suggestion,
    SuggestionReason,
)
from memgraph.model.values import Edge, Memory, StoredSource
from memgraph.rules.contradictions import SideFacts, suggest
from memgraph.rules.decay import confidence_at
from memgraph.rules.evidence import independent_sources
from memgraph.rules.lifecycle import contradiction_state
from memgraph.rules.scope import DEFAULT_VIEWER, Viewer
from memgraph.rules.trust import TrustRules
from memgraph.store import edges, evidence, graph, influence
from memgraph.store import trust as trust_rows
from memgraph.store.engine import Database
from memgraph.store.graph import Direction
from memgraph.store.snapshot import Snapshot
from memgraph.store.visibility import View

MAX_RECEIPTS: Final = 200
"""Receipts of one side that are read."""
MAX_LISTED: Final = 20
"""Receipts, runs and conversations of one side that are listed, of each."""
MAX_JOURNAL: Final = 200


def read_case(
    database: Database,
    edge_id: str,
    *,
    now_ms: int,
    exponent: float,
    trust: TrustRules,
    viewer: Viewer = DEFAULT_VIEWER,
    as_of: int | None = None,
    names: bool = True,
) -> Case:
    """Return the case of a Contradicts edge, in whatever state.

    Args:
        now_ms: milliseconds; for decay.
        exponent: of the decay.
        trust: the settings' tiers; operators' assignments are added.
        as_of: milliseconds; the case as it was then. None: now.
        names: of the receipts, runs and conversations that a side reached; False: only counts.

    Raises:
        NotFound: there is no such contradiction, or the reader may not see one of its sides.
        StorageError: the database cannot be read.
    """
    with database.read() as snapshot:
        at = now_ms if as_of is None else as_of
        return _Reading(snapshot, View(viewer, as_of), trust, at, exponent, names).of(edge_id)


class _Reading:
    """Builds one case, on one snapshot."""

    def __init__(
        self,
        snapshot: Snapshot,
        view: View,
        trust: TrustRules,
        at: int,
        exponent: float,
        names: bool,
    ) -> None:
        self._snapshot = snapshot
        self._view = view
        self._trust = trust
        self._at = at
        self._exponent = exponent
        self._names = names

    def of(self, edge_id: str) -> Case:
        snapshot, view = self._snapshot, self._view
        edge = self._edge(edge_id)
        ids = sorted((edge.from_id, edge.to_id))
        memories = graph.visible_memories(snapshot, ids, view)
        sources = graph.sources_of(snapshot, memories.values())
        by_id = {source.source_id: source for source in sources}
        paths = evidence.broken_evidence(snapshot, ids, view)
        premises = described(snapshot, paths, view)
        tiers = self._tiers(ids)
        in_order = sorted(
            memories.values(), key=lambda memory: (memory.created_at, memory.memory_id)
        )
        first, second = (
            self._side(
                memory,
                by_id[memory.source_id],
                tiers[memory.memory_id],
                premises.get(memory.memory_id),
            )
            for memory in in_order
        )
        state = contradiction_state(edge.resolution)
        journal = self._journal(edge)
        return Case(
            edge=edge,
            state=state,
            moot=state == "open"
            and {memory.status for memory in in_order} != {MemoryStatus.ACTIVE},
            sides=(first, second),
            suggestion=_suggestion(first, second) if state == "open" else None,
            journal=journal[-MAX_JOURNAL:],
            at=self._at,
            cut=len(journal) > MAX_JOURNAL or first.influence.cut or second.influence.cut,
        )

    def _tiers(self, ids: list[str]) -> dict[str, tuple[TrustTier, bool]]:
        """Return the trust tier of each side, and whether it is of the time of the case."""
        snapshot, then = self._snapshot, self._view.as_of
        if then is not None:
            return trust_rows.protections_then(snapshot, self._trust, ids, then)
        trust = trust_rows.with_assigned(snapshot, self._trust)
        protections = trust_rows.protections(snapshot, trust, ids)
        return {memory_id: (tier, True) for memory_id, tier in protections.items()}

    def _edge(self, edge_id: str) -> Edge:
        """Return the edge as the view sees it: it is missing when one of its ends is."""
        snapshot, view = self._snapshot, self._view
        known = edges.get(snapshot, edge_id)
        ends = {known.from_id, known.to_id}
        if len(graph.visible_memories(snapshot, ends, view)) < len(ends):
            raise edges.missing(edge_id)
        among = graph.edges_among(snapshot, ends, view, [EdgeType.CONTRADICTS], 4)
        for edge in among:
            if edge.edge_id == edge_id:
                return edge
        if known.edge_type is not EdgeType.CONTRADICTS:
            message = f"{edge_id} is a {known.edge_type.value} edge, no contradiction"
            raise NotFound(message, edge_id=edge_id)
        raise edges.missing(edge_id)

    def _side(
        self,
        memory: Memory,
        source: StoredSource,
        tier: tuple[TrustTier, bool],
        premise: InvalidPremise | None,
    ) -> CaseSide:
        snapshot, memory_id = self._snapshot, memory.memory_id
        until = MAX_MS if self._view.as_of is None else self._view.as_of
        own, added = trust_rows.origins(snapshot, memory_id, until=until)
        return CaseSide(
            memory=memory,
            source=source,
            supports=tuple(
                MemorySupport(source=further_source, added_at=at)
                for at, further_source in trust_rows.further(snapshot, memory_id, until=until)
            ),
            independent_sources=independent_sources(own, added),
            said_at=memory.created_at if memory.event_time is None else memory.event_time,
            effective_confidence=confidence_at(memory, self._at, self._exponent),
            trust=tier[0],
            trust_is_todays=not tier[1],
            confirmed=edges.was_confirmed(snapshot, memory_id, until=self._view.as_of),
            premise=premise,
            influence=self._influence(memory_id),
        )

    def _influence(self, memory_id: str) -> Influence:
        snapshot, view = self._snapshot, self._view
        until = MAX_MS if view.as_of is None else view.as_of
        mentions = influence.receipts_naming(
            snapshot, [memory_id], view, limit=MAX_RECEIPTS + 1, until=until
        )
        recalls = mentions[:MAX_RECEIPTS]
        runs = sorted({recall.workflow_run_id for recall in recalls if recall.workflow_run_id})
        talks = sorted({recall.conversation_id for recall in recalls if recall.conversation_id})
        walk = evidence.walk(snapshot, [memory_id], view, Direction.IN)
        listed = MAX_LISTED if self._names else 0
        longest = max(len(recalls), len(runs), len(talks)) if self._names else 0
        return Influence(
            recalls=len(recalls),
            receipts=tuple(recall.receipt_id for recall in recalls[:listed]),
            runs=tuple(runs[:listed]),
            conversations=tuple(talks[:listed]),
            derived=len({link.dependent_id for link in walk.bases} - {memory_id}),
            cut=walk.cut or len(mentions) > MAX_RECEIPTS or longest > MAX_LISTED,
        )

    def _journal(self, edge: Edge) -> tuple[JournalNote, ...]:
        rows = edges.journal_of_edge(
            self._snapshot, edge, until=self._view.as_of, limit=MAX_JOURNAL + 1
        )
        return journal_notes(self._snapshot, self._view, rows)


def _suggestion(first: CaseSide, second: CaseSide) -> Suggestion:
    suggested = suggest(_facts(first), _facts(second))
    return Suggestion(
        winner_id=suggested.winner_id,
        confidence=suggested.confidence,
        reasons=tuple(
            SuggestionReason(
                code=reason_.ground, favours=reason_.favours, weight=round(reason_.weight, 3)
            )
            for reason_ in suggested.reasons
        ),
    )


def _facts(side: CaseSide) -> SideFacts:
    return SideFacts(
        memory_id=side.memory.memory_id,
        said_at=side.said_at,
        independent_sources=side.independent_sources,
        trust=side.trust.level,
        effective_confidence=side.effective_confidence,
        confirmed=side.confirmed,
        active=side.memory.status is MemoryStatus.ACTIVE,
        stale=side.premise is not None,
    )
