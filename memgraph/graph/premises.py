"""Describe the superseded or retracted evidence on which memories depend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile

from memgraph.clock import MAX_MS
from memgraph.model.enums import EdgeType, MemoryStatus
from memgraph.model.graph import EndedHow, InvalidPremise, PremiseStep
from memgraph.rules.evidence import Dependency
from memgraph.rules.lifecycle import EndOfLife
from memgraph.store import evidence, graph
from memgraph.store.redaction import without_hidden
from memgraph.store.snapshot import Snapshot
from memgraph.store.visibility import View


def described(
    snapshot: Snapshot, paths: Mapping[str, Sequence[Dependency]], view: View
) -> dict[str, InvalidPremise]:
    """Return the invalid premise at the end of each path, by key, without hidden ids."""
    any_status = View(view.viewer, view.as_of)
    ids = sorted({path[-1].ground_id for path in paths.values()})
    grounds = graph.visible_memories(snapshot, ids, any_status)
    refuted = evidence.refuted_among(snapshot, ids, view)
    endings = {
        memory_id: _original(snapshot, memory_id, ending, view)
        for memory_id, ending in evidence.endings(snapshot, ids, view).items()
    }
    reasons = without_hidden(snapshot, view, [endings[memory_id].reason for memory_id in ids])
    reason_of = dict(zip(ids, reasons, strict=True))
    premises = {}
    for key, path in paths.items():
        ground_id = path[-1].ground_id
        ending = endings[ground_id]
        ended: EndedHow = "lost" if ending.lost else "replaced"
        if grounds[ground_id].status is MemoryStatus.RETRACTED:
            ended = "retracted"
        premises[key] = InvalidPremise(
            ground=grounds[ground_id],
            path=tuple(
                PremiseStep(
                    memory_id=step.dependent_id,
                    ground_id=step.ground_id,
                    edge_type=None if step.edge_type is None else EdgeType(step.edge_type),
                    edge_id=step.edge_id or None,
                )
                for step in path
            ),
            ended=ended,
            ended_at=ending.since,
            actor=ending.actor,
            reason=reason_of[ground_id],
            replaced_by=tuple(sorted(refuted[ground_id].replaced_by)),
        )
    return premises


def _original(snapshot: Snapshot, memory_id: str, ending: EndOfLife, view: View) -> EndOfLife:
    """Return how a superseded memory ended before it was retracted and restored."""
    if ending.status is not MemoryStatus.SUPERSEDED:
        return ending
    until = MAX_MS if view.as_of is None else view.as_of
    newest_first = reversed(graph.status_history(snapshot, memory_id, until=until))
    ended = takewhile(lambda period: period.status is not MemoryStatus.ACTIVE, newest_first)
    *_, first = (period for period in ended if period.status is MemoryStatus.SUPERSEDED)
    return ending._replace(since=first.since, actor=first.actor, reason=first.reason)
