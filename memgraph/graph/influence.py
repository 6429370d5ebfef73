"""The influence of a memory, and the evidence behind a memory or a run.

Both follow derivations, causes and parts, and include the receipts. A receipt shows what a caller
was given, not its effect; memories that a run or a conversation stored later are reported only as
such.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from memgraph.clock import MAX_MS
from memgraph.errors import NotFound
from memgraph.graph.walk import Walk
from memgraph.model.enums import SourceName
from memgraph.model.graph import Link
from memgraph.model.influence import EvidenceReport, Impact, ReachedRun, ReceiptMention
from memgraph.model.sources import NamedSource
from memgraph.model.values import Memory
from memgraph.rules.evidence import BASIS_EDGES
from memgraph.rules.lifecycle import refuted
from memgraph.store import graph, influence, sources as sources_rows, supports
from memgraph.store.evidence import endings
from memgraph.store.graph import Direction
from memgraph.store.influence import Place
from memgraph.store.snapshot import Snapshot
from memgraph.store.visibility import View

MAX_NODES = 1_000
MAX_DEPTH = 12
MAX_LEFT = 10
"""The maximum number of memories listed for each run or conversation."""
MAX_LEAVING = 20
"""The maximum number of runs, and of conversations, whose memories are listed."""


def impact(snapshot: Snapshot, view: View, memory_id: str, *, max_nodes: int = MAX_NODES) -> Impact:
    """Return what a memory reached, up to the time of the view; see ``Graph.impact``."""
    reading = _Reading(snapshot, view, max_nodes)
    memory = graph.visible_memory(snapshot, memory_id, view)
    derived = reading.links([memory_id], Direction.IN)
    memory_ids = [memory_id, *(link.memory_id for link in derived)]
    until = MAX_MS if view.as_of is None else view.as_of
    hand_outs = reading.bounded(
        influence.receipts_naming(snapshot, memory_ids, view, limit=max_nodes + 1, until=until)
    )
    runs = _reached(reading, "workflow_run_id", hand_outs)
    conversations = _reached(reading, "conversation_id", hand_outs)
    remembered = {memory_id for reach in (*runs, *conversations) for memory_id in reach.left}
    shown = list(dict.fromkeys((*memory_ids, *sorted(remembered))))
    memories = graph.visible_memories(snapshot, shown, view)
    return Impact(
        memory_id=memory.memory_id,
        derived=derived,
        hand_outs=hand_outs,
        purposes=dict(sorted(Counter(mention.purpose for mention in hand_outs).items())),
        runs=runs,
        conversations=conversations,
        memories=tuple(memories.values()),
        cut=bool(reading.cut),
        cut_reasons=tuple(sorted(reading.cut)),
    )


def grounds(
    snapshot: Snapshot,
    view: View,
    *,
    memory_id: str | None = None,
    workflow_run_id: str | None = None,
    max_nodes: int = MAX_NODES,
) -> EvidenceReport:
    """Return the evidence of a memory, or of what a run was given; see ``Graph.grounds``.

    Exactly one of the ids is given.
    """
    reading = _Reading(snapshot, view, max_nodes)
    if memory_id is not None:
        memory = graph.visible_memory(snapshot, memory_id, view)
        links = reading.links([memory_id], Direction.OUT)
        hand_outs = reading.bounded(_receipts_before(reading, memory))
    else:
        hand_outs = _receipts_of(reading, str(workflow_run_id))
        links = reading.links(_received_ids(hand_outs), Direction.OUT)
    return _evidence_report(reading, memory_id, workflow_run_id, hand_outs, links)


@dataclass(slots=True)
class _Reading:
    """One snapshot and its limits; ``cut`` collects those that were reached."""

    snapshot: Snapshot
    view: View
    max_nodes: int
    cut: set[str] = field(default_factory=set)

    def links(self, seeds: Sequence[str], direction: Direction) -> tuple[Link, ...]:
        """Return the evidence of memories (OUT), or what depends on them (IN)."""
        walk = Walk(
            self.snapshot, self.view, BASIS_EDGES, MAX_DEPTH, self.max_nodes, derivations=True
        )
        links = walk.links(seeds, direction)
        self.cut.update(walk.reasons("max_nodes"))
        return links

    def bounded(self, mentions: Sequence[ReceiptMention]) -> tuple[ReceiptMention, ...]:
        """Return at most ``max_nodes`` receipts, and record whether any were left out."""
        if len(mentions) > self.max_nodes:
            self.cut.add("max_receipts")
        return tuple(mentions[: self.max_nodes])


def _reached(
    reading: _Reading, place: Place, hand_outs: Iterable[ReceiptMention]
) -> tuple[ReachedRun, ...]:
    """Return the runs or conversations that received memories, latest first."""
    times: dict[str, list[int]] = {}
    for mention in hand_outs:
        name = getattr(mention, place)
        if name is not None:
            times.setdefault(name, []).append(mention.at)
    last_first = sorted(times.items(), key=lambda entry: (-max(entry[1]), entry[0]))
    if len(last_first) > MAX_LEAVING:
        reading.cut.add("max_left")
    since = {name: min(moments) for name, moments in last_first[:MAX_LEAVING]}
    memories_left: dict[str, list[str]] = {}
    for name, memory_id in influence.stored_by(
        reading.snapshot, place, since, reading.view, limit=MAX_LEFT + 1
    ):
        memories_left.setdefault(name, []).append(memory_id)
    if any(len(ids) > MAX_LEFT for ids in memories_left.values()):
        reading.cut.add("max_left")
    return tuple(
        ReachedRun(
            name=name,
            receipts=len(moments),
            first_at=min(moments),
            last_at=max(moments),
            left=tuple(memories_left.get(name, ())[:MAX_LEFT]),
        )
        for name, moments in last_first
    )


def _receipts_before(reading: _Reading, memory: Memory) -> list[ReceiptMention]:
    """Return what a memory's run or conversation had been given before it was stored."""
    [source] = graph.sources_of(reading.snapshot, [memory])
    by_receipt: dict[str, ReceiptMention] = {}
    places: tuple[tuple[Place, str | None], ...] = (
        ("workflow_run_id", source.workflow_run_id),
        ("conversation_id", source.conversation_id),
    )
    for place, name in places:
        if name is not None:
            mentions = influence.receipts_for(
                reading.snapshot,
                place,
                name,
                reading.view,
                limit=reading.max_nodes + 1,
                before=memory.created_at,
            )
            by_receipt |= {mention.receipt_id: mention for mention in mentions}
    return sorted(by_receipt.values(), key=lambda item: (item.at, item.receipt_id), reverse=True)


def _receipts_of(reading: _Reading, workflow_run_id: str) -> tuple[ReceiptMention, ...]:
    """Return what a run was given. Raises NotFound: nothing of it is visible."""
    snapshot, view = reading.snapshot, reading.view
    hand_outs = influence.receipts_for(
        snapshot, "workflow_run_id", workflow_run_id, view, limit=reading.max_nodes + 1
    )
    run = NamedSource(SourceName.RUN, workflow_run_id)
    if not hand_outs and sources_rows.info(snapshot, run, view) is None:
        name = workflow_run_id[:80]
        message = f"no run {name!r}: no receipt and no memory belongs to it"
        raise NotFound(message, workflow_run_id=name)
    return reading.bounded(hand_outs)


def _received_ids(hand_outs: Iterable[ReceiptMention]) -> list[str]:
    return list(
        dict.fromkeys(memory_id for mention in hand_outs for memory_id in mention.memory_ids)
    )


def _evidence_report(
    reading: _Reading,
    memory_id: str | None,
    workflow_run_id: str | None,
    hand_outs: tuple[ReceiptMention, ...],
    links: tuple[Link, ...],
) -> EvidenceReport:
    snapshot = reading.snapshot
    memory_ids = _received_ids(hand_outs)
    ids = [*([] if memory_id is None else [memory_id]), *(link.memory_id for link in links)]
    memories = graph.visible_memories(
        snapshot, list(dict.fromkeys((*ids, *memory_ids))), reading.view
    )
    ended = endings(snapshot, list(memories), reading.view)
    return EvidenceReport(
        memory_id=memory_id,
        workflow_run_id=workflow_run_id,
        hand_outs=hand_outs,
        given=tuple(key for key in memory_ids if key in memories),
        links=links,
        supports=supports.further(snapshot, list(memories)),
        refuted=tuple(sorted(key for key, ending in ended.items() if refuted(ending))),
        lines=(),
        memories=tuple(memories.values()),
        sources=graph.sources_of(snapshot, memories.values()),
        cut=bool(reading.cut),
        cut_reasons=tuple(sorted(reading.cut)),
    )
