"""List contradictions, and read one as a case: both sides, their evidence and a suggestion."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from memgraph.clock import MAX_MS, MS_PER_DAY
from memgraph.errors import InvalidInput, NotFound
from memgraph.graph.premises import described
from memgraph.graph.redaction import journal_notes
from memgraph.graph.walk import Walk
from memgraph.model.enums import EdgeType, MemoryStatus
from memgraph.model.graph import (
    Case,
    CaseSide,
    Contradiction,
    ContradictionPage,
    Influence,
    InvalidPremise,
    JournalNote,
)
from memgraph.model.values import Edge, Memory, StoredSource
from memgraph.rules.contradictions import suggest
from memgraph.rules.decay import confidence_at
from memgraph.rules.evidence import BASIS_EDGES, MAX_HOPS, independent_sources
from memgraph.rules.lifecycle import contradiction_state, is_change_mark, replaced_end
from memgraph.rules.lines import known_date
from memgraph.store import edges, evidence, graph, influence, journal, supports
from memgraph.store.edges import ContradictionFilter
from memgraph.store.graph import Direction
from memgraph.store.items import is_id
from memgraph.store.snapshot import Snapshot
from memgraph.store.visibility import View

MAX_SOUGHT_CHARS: Final = 200
"""Maximum characters of a search text."""
_PLACE: Final = re.compile(r"([0-9]{1,15})\.([!-~]{1,200})")


def list_contradictions(
    snapshot: Snapshot,
    view: View,
    *,
    now_ms: int,
    resolved: bool = False,
    limit: int = 50,
    after: str | None = None,
    text: str | None = None,
    **criteria: Any,
) -> ContradictionPage:
    """Return a page of contradictions and marks of changes; see ``Contradictions.list``.

    Open ones are ordered by the time they were found, resolved ones by their resolution.

    Args:
        now_ms: used only for ages.
        after: ``next_after`` of the previous page, which stays valid when its last edge changes.
        criteria: the other fields of ``ContradictionFilter``.

    Raises:
        InvalidInput: ``text`` or ``memory_id`` has more than 200 characters or cannot be stored,
            or ``after`` is not from a page.
    """
    wanted = ContradictionFilter(tuple((text or "").split()), **criteria)
    for field, value in (("text", text), ("memory_id", wanted.memory_id)):
        if value and (len(value) > MAX_SOUGHT_CHARS or "\0" in value or not is_id(value)):
            message = f"{field} must have at most {MAX_SOUGHT_CHARS} storable characters"
            raise InvalidInput(message, field=field)
    place = None
    if after is not None:
        match = _PLACE.fullmatch(after)
        if match is None:
            raise InvalidInput("after must be the next_after of a page", field="after")
        place = int(match[1]), match[2]
    rows = edges.contradictions(
        snapshot, view, resolved=resolved, limit=limit + 1, after=place, criteria=wanted
    )
    page = rows[:limit]
    ends = {end for edge in page for end in (edge.from_id, edge.to_id)}
    memories = graph.visible_memories(snapshot, ends, view)
    by_id = {source.source_id: source for source in graph.sources_of(snapshot, memories.values())}
    at = now_ms if view.as_of is None else view.as_of
    items = tuple(
        _describe(edge, memories[edge.from_id], memories[edge.to_id], by_id, at) for edge in page
    )
    cursor = None
    if len(rows) > limit:
        last = page[-1]
        time = last.resolved_at if resolved else last.created_at
        cursor = f"{time}.{last.edge_id}"
    return ContradictionPage(items=items, next_after=cursor)


def _describe(
    edge: Edge, left: Memory, right: Memory, sources: dict[str, StoredSource], now_ms: int
) -> Contradiction:
    """Combine a contradiction or a mark, and its two memories, into one value."""
    first, second = _in_order(edge, (left, right))
    ended = now_ms if edge.resolved_at is None else edge.resolved_at
    return Contradiction(
        edge=edge,
        first=first,
        second=second,
        sources=(sources[first.source_id], sources[second.source_id]),
        state=contradiction_state(edge.resolution),
        open_days=max(ended - edge.created_at, 0) / MS_PER_DAY,
        moot=_is_moot(edge, (first, second)),
    )


def _is_moot(edge: Edge, sides: Iterable[Memory]) -> bool:
    """Return True if nothing is left to decide, or if the decision has no effect any more."""
    active = {side.memory_id for side in sides if side.status is MemoryStatus.ACTIVE}
    if edge.resolution is None:
        return active != {edge.from_id, edge.to_id}
    return replaced_end(edge) in active


def _in_order(edge: Edge, ends: Iterable[Memory]) -> list[Memory]:
    """Return the older memory and the newer one; of a change, the changed one and its successor."""
    if edge.edge_type is EdgeType.UPDATES:
        return sorted(ends, key=lambda memory: memory.memory_id == edge.from_id)
    return sorted(ends, key=lambda memory: (memory.created_at, memory.memory_id))


MAX_RECEIPTS: Final = 200
"""The maximum number of receipts that are read for each side."""
MAX_LISTED: Final = 20
"""The maximum number of receipts, of runs and of conversations listed for each side."""
MAX_JOURNAL: Final = 200
MAX_DERIVED: Final = 2_000
"""The maximum number of memories that are counted as derived from each side."""


@dataclass(frozen=True, slots=True)
class CaseReader:
    """Reads the cases of contradictions and of marks of changes on a snapshot.

    Attributes:
        _at: the time of the case, in milliseconds.
        _exponent: the exponent of the decay.
        _names: list the receipts, runs and conversations, not only their numbers.
    """

    _snapshot: Snapshot
    _view: View
    _at: int
    _exponent: float
    _names: bool

    @property
    def _until(self) -> int:
        return MAX_MS if self._view.as_of is None else self._view.as_of

    def of(self, edge_id: str) -> Case:
        """Return a case; see ``Contradictions.get``."""
        snapshot, view = self._snapshot, self._view
        edge = self._edge(edge_id)
        ids = sorted((edge.from_id, edge.to_id))
        memories = graph.visible_memories(snapshot, ids, view)
        sources = graph.sources_of(snapshot, memories.values())
        by_id = {source.source_id: source for source in sources}
        paths = evidence.broken_evidence(snapshot, ids, view)
        premises = described(snapshot, paths, view)
        in_order = _in_order(edge, memories.values())
        first, second = (
            self._side(
                memory,
                by_id[memory.source_id],
                premises.get(memory.memory_id),
            )
            for memory in in_order
        )
        state = contradiction_state(edge.resolution)
        journal = self._journal(edge)
        # It rests on values of today.
        is_suggested = state == "open" and not is_change_mark(edge) and self._view.as_of is None
        return Case(
            edge=edge,
            state=state,
            moot=_is_moot(edge, in_order),
            sides=(first, second),
            suggestion=suggest(first, second) if is_suggested else None,
            journal=journal[-MAX_JOURNAL:],
            at=self._at,
            cut=len(journal) > MAX_JOURNAL or first.influence.cut or second.influence.cut,
        )

    def _edge(self, edge_id: str) -> Edge:
        """Return the edge as of the view's time. Raises NotFound unless both ends are visible."""
        snapshot, view = self._snapshot, self._view
        known = edges.get(snapshot, edge_id)
        ends = {known.from_id, known.to_id}
        if len(graph.visible_memories(snapshot, ends, view)) < len(ends):
            raise edges.missing(edge_id)
        was_decidable = is_change_mark(known) or known.resolution is not None
        if known.edge_type is not EdgeType.CONTRADICTS and not was_decidable:
            kind = known.edge_type.value
            message = f"{edge_id} is a {kind} edge, neither a contradiction nor a mark"
            raise NotFound(message, edge_id=edge_id)
        for edge in graph.edges_among(snapshot, ends, view, [known.edge_type], 4):
            if edge.edge_id == edge_id:
                return edge
        raise edges.missing(edge_id)

    def _side(
        self,
        memory: Memory,
        source: StoredSource,
        premise: InvalidPremise | None,
    ) -> CaseSide:
        snapshot, memory_id = self._snapshot, memory.memory_id
        own, added = supports.origins(snapshot, memory_id, until=self._until)
        return CaseSide(
            memory=memory,
            source=source,
            stored_by=journal.author_of(snapshot, memory_id),
            supports=supports.further(snapshot, [memory_id], until=self._until),
            independent_sources=independent_sources(own, added),
            said_at=known_date(memory, source),
            effective_confidence=confidence_at(memory, self._at, self._exponent),
            confirmed=edges.was_confirmed(snapshot, memory_id, until=self._until),
            premise=premise,
            influence=self._influence(memory_id),
        )

    def _influence(self, memory_id: str) -> Influence:
        snapshot, view = self._snapshot, self._view
        mentions = influence.receipts_naming(
            snapshot, [memory_id], view, limit=MAX_RECEIPTS + 1, until=self._until
        )
        recalls = mentions[:MAX_RECEIPTS]
        runs = sorted({recall.workflow_run_id for recall in recalls if recall.workflow_run_id})
        talks = sorted({recall.conversation_id for recall in recalls if recall.conversation_id})
        walk = Walk(snapshot, view, BASIS_EDGES, MAX_HOPS, MAX_DERIVED, derivations=True)
        listed = MAX_LISTED if self._names else 0
        longest = max(len(recalls), len(runs), len(talks)) if self._names else 0
        return Influence(
            recalls=len(recalls),
            receipts=tuple(recall.receipt_id for recall in recalls[:listed]),
            runs=tuple(runs[:listed]),
            conversations=tuple(talks[:listed]),
            derived=len(walk.links([memory_id], Direction.IN)),
            cut=walk.too_many or len(mentions) > MAX_RECEIPTS or longest > MAX_LISTED,
        )

    def _journal(self, edge: Edge) -> tuple[JournalNote, ...]:
        rows = graph.journal_about(self._snapshot, [edge], MAX_JOURNAL + 1, until=self._until)
        return journal_notes(self._snapshot, self._view, rows)
