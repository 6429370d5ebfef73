"""Trace a memory: its sources, its changes, its evidence and its dependents."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from memgraph.clock import MAX_MS
from memgraph.graph.redaction import journal_notes, status_periods
from memgraph.graph.walk import Walk
from memgraph.model.enums import EdgeType, MemoryStatus
from memgraph.model.graph import DeliveryCount, JournalNote, Link, Trace, TracedEdge
from memgraph.model.values import Edge, Memory, StatusPeriod
from memgraph.rules.evidence import BASIS_EDGES, broken_paths, independent_sources
from memgraph.rules.lifecycle import is_change_mark, replaced_end
from memgraph.store import evidence, graph, influence, supports
from memgraph.store.graph import Direction
from memgraph.store.snapshot import Snapshot
from memgraph.store.visibility import View

MAX_DEPTH = 12
MAX_LINKS = 200
MAX_EDGES = 200
MAX_JOURNAL = 200
MAX_RECEIPTS = 10_000

_UPDATES = frozenset({EdgeType.UPDATES})
_CONTRADICTS = frozenset({EdgeType.CONTRADICTS})


def trace(snapshot: Snapshot, view: View, memory_id: str) -> Trace:
    """Return everything about a memory that the view shows.

    Each list has at most 200 entries, each chain at most 12 steps, and at most 10,000 receipts are
    counted; ``cut_reasons`` names the limits that were reached. Raises NotFound: the memory does
    not exist or is hidden from the reader; the message is the same.
    """
    return _TraceBuilder(snapshot, view).of(memory_id)


class _TraceBuilder:
    """Builds a trace from one snapshot."""

    def __init__(self, snapshot: Snapshot, view: View) -> None:
        self._snapshot = snapshot
        self._view = view
        self._until = MAX_MS if view.as_of is None else view.as_of
        self._cut: set[str] = set()
        self._histories: dict[str, tuple[StatusPeriod, ...]] = {}

    def of(self, memory_id: str) -> Trace:
        snapshot, view = self._snapshot, self._view
        memory = graph.visible_memory(snapshot, memory_id, view)
        behind = Walk(snapshot, view, BASIS_EDGES, MAX_DEPTH, MAX_LINKS, derivations=True)
        grounds = behind.links([memory_id], Direction.OUT)
        dependents = behind.links([memory_id], Direction.IN)
        chain = Walk(snapshot, view, _UPDATES, MAX_DEPTH, MAX_LINKS)
        replaced = chain.links([memory_id], Direction.OUT)
        replaced_by = chain.links([memory_id], Direction.IN)
        self._cut.update(behind.reasons("max_links"), chain.reasons("max_links"))
        edges_out, edges_in = self._edges(memory_id)
        mentioned = {
            link.memory_id for link in (*grounds, *dependents, *replaced, *replaced_by)
        } | {end for edge in (*edges_out, *edges_in) for end in (edge.from_id, edge.to_id)}
        memories = graph.visible_memories(snapshot, sorted(mentioned | {memory_id}), view)
        sources = graph.sources_of(snapshot, memories.values())
        ended = [memory_id for memory_id, one in memories.items() if not _is_active(one)]
        refuted = evidence.refuted_among(snapshot, ended, view)
        family = {memory_id, *(link.memory_id for link in dependents)}
        stale: Collection[str] = ()
        if behind.graph is not None:
            below = {one: ending for one, ending in refuted.items() if one in family}
            stale = broken_paths(behind.graph, below, max_hops=MAX_DEPTH)
        return Trace(
            memory=memory,
            source=next(item for item in sources if item.source_id == memory.source_id),
            supports=supports.further(snapshot, [memory_id], until=self._until),
            independent_sources=independent_sources(
                *supports.origins(snapshot, memory_id, until=self._until)
            ),
            status_history=status_periods(snapshot, view, memory_id, until=self._until),
            edges_out=self._traced(edges_out, memories),
            edges_in=self._traced(edges_in, memories),
            grounds=grounds,
            dependents=dependents,
            replaced=self._standing(replaced, memories, Direction.OUT),
            replaced_by=self._standing(replaced_by, memories, Direction.IN),
            open_contradictions=self._open_contradictions(memory_id),
            probable_changes=tuple(
                edge
                for edge in (*edges_in, *edges_out)
                if is_change_mark(edge) and edge.resolved_at is None
            ),
            stale_grounds=tuple(link.memory_id for link in grounds if link.memory_id in refuted),
            stale_dependents=tuple(
                link.memory_id
                for link in dependents
                if link.memory_id in stale and _is_active(memories[link.memory_id])
            ),
            journal=self._journal(memory_id, (*edges_out, *edges_in)),
            handed_out=self._handed_out(memory_id),
            memories=tuple(memories.values()),
            sources=sources,
            cut=bool(self._cut),
            cut_reasons=tuple(sorted(self._cut)),
        )

    def _edges(
        self, memory_id: str, edge_types: Collection[EdgeType] | None = None
    ) -> tuple[tuple[Edge, ...], tuple[Edge, ...]]:
        """Return the edges from a memory, and those to it, strongest first."""
        most = MAX_EDGES + 1
        edges = graph.edges_around(
            self._snapshot, [memory_id], self._view, most, 2 * most, edge_types
        )
        edges_out = tuple(edge for edge in edges if edge.from_id == memory_id)
        edges_in = tuple(edge for edge in edges if edge.to_id == memory_id)
        if max(len(edges_out), len(edges_in)) > MAX_EDGES:
            self._cut.add("max_edges")
        return edges_out[:MAX_EDGES], edges_in[:MAX_EDGES]

    def _traced(
        self, edges: Collection[Edge], memories: Mapping[str, Memory]
    ) -> tuple[TracedEdge, ...]:
        """Return edges with the time at which what they replaced became active again."""
        traced = []
        for edge in edges:
            undone_at, older = None, replaced_end(edge)
            if older is not None:
                newer = edge.to_id if older == edge.from_id else edge.from_id
                undone_at = self._undone_at(memories[newer], [older])
            traced.append(TracedEdge(**dict(edge), undone_at=undone_at))
        return tuple(traced)

    def _standing(
        self, links: Collection[Link], memories: Mapping[str, Memory], direction: Direction
    ) -> tuple[Link, ...]:
        """Return the links of replacements that were not undone."""
        vias = {link.memory_id: link.via_id for link in links}
        standing = []
        for link in links:
            path = [link.memory_id]
            while path[-1] in vias:
                path.append(vias[path[-1]])
            newer, *older = path if direction is Direction.IN else (path[-1], *path[:-1])
            if self._undone_at(memories[newer], older) is None:
                standing.append(link)
        return tuple(standing)

    def _undone_at(self, newer: Memory, older: Collection[str]) -> int | None:
        """Return when one of the older memories became active again, which a newer one replaced.

        That undoes the replacement if the newer memory had been retracted; None: it stands.
        """
        if newer.status is not MemoryStatus.RETRACTED:
            return None
        retracted_at = self._periods(newer.memory_id)[-1].since
        returns = [
            period.since
            for memory_id in older
            for period in self._periods(memory_id)[1:]
            if period.status is MemoryStatus.ACTIVE and period.since >= retracted_at
        ]
        return min(returns, default=None)

    def _periods(self, memory_id: str) -> tuple[StatusPeriod, ...]:
        if memory_id not in self._histories:
            periods = graph.status_history(self._snapshot, memory_id, until=self._until)
            self._histories[memory_id] = periods
        return self._histories[memory_id]

    def _open_contradictions(self, memory_id: str) -> tuple[Edge, ...]:
        edges_out, edges_in = self._edges(memory_id, _CONTRADICTS)
        open_pairs = [edge for edge in (*edges_out, *edges_in) if edge.resolved_at is None]
        return tuple(sorted(open_pairs, key=lambda edge: (edge.created_at, edge.edge_id)))

    def _journal(self, memory_id: str, edges: Collection[Edge]) -> tuple[JournalNote, ...]:
        rows = graph.journal_about(
            self._snapshot, edges, MAX_JOURNAL + 1, until=self._until, memory_id=memory_id
        )
        if len(rows) > MAX_JOURNAL:
            self._cut.add("max_journal")
            rows = rows[1:]
        return journal_notes(self._snapshot, self._view, rows)

    def _handed_out(self, memory_id: str) -> DeliveryCount:
        """Count the visible receipts that contain a memory."""
        mentions = influence.receipts_naming(
            self._snapshot, [memory_id], self._view, limit=MAX_RECEIPTS + 1, until=self._until
        )
        if len(mentions) > MAX_RECEIPTS:
            self._cut.add("max_receipts")
        if not mentions:
            return DeliveryCount(count=0, last_at=None, last_recall_id=None)
        return DeliveryCount(
            count=min(len(mentions), MAX_RECEIPTS),
            last_at=mentions[0].at,
            last_recall_id=mentions[0].receipt_id,
        )


def _is_active(memory: Memory) -> bool:
    return memory.status is MemoryStatus.ACTIVE
