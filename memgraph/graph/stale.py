"""List memories with superseded or retracted evidence, by the evidence that ended last."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Final, NamedTuple

from memgraph.clock import MAX_MS
from memgraph.errors import InvalidInput
from memgraph.graph.redaction import without_hidden
from memgraph.model.enums import EdgeType, MemoryStatus
from memgraph.model.graph import EndedHow, InvalidPremise, PremiseStep, StaleMemory, StalePage
from memgraph.rules.evidence import Dependency, broken_paths
from memgraph.rules.lifecycle import EndOfLife
from memgraph.store import evidence, graph
from memgraph.store.evidence import EndedMemory
from memgraph.store.memories import existing_ids
from memgraph.store.snapshot import Snapshot
from memgraph.store.visibility import ACTIVE, View

MAX_LOOKS: Final = 10_000
"""The maximum number of endings that one page examines."""
# Endings are examined in batches. The first is small, for it may already fill a short page.
_AT_FIRST: Final = 8
_AT_ONCE: Final = 256
# Evidence is looked up for this many memories at once: that of more could exceed a step's limit.
_NAMES_AT_ONCE: Final = 50
_PLACE: Final = re.compile(r"(-?[0-9]{1,15})\.([^.\s]{1,200})\.([^.\s]{0,200})")


Place = tuple[int, str, str]
"""The end of a page: the time at which evidence ended in milliseconds, its id, and a memory's.

Without a memory, the next page begins after this evidence."""


class RetractedEvidence(NamedTuple):
    """A memory with superseded or retracted evidence, which ended at ``since``: see `Place`."""

    since: int
    ground_id: str
    memory_id: str
    path: tuple[Dependency, ...]


class StaleSearch(NamedTuple):
    """Stale memories, and the ``place`` where the next page begins; None: there are no more."""

    items: tuple[RetractedEvidence, ...]
    place: Place | None
    cut: bool


def list_stale(
    snapshot: Snapshot, view: View, *, limit: int = 50, after: str | None = None
) -> StalePage:
    """Return active memories that depend on ended evidence; see ``Graph.stale``.

    Raises InvalidInput: ``after`` is not from a page.
    """
    place: Place | None = None
    if after is not None:
        match = _PLACE.fullmatch(after)
        if match is None:
            raise InvalidInput("after must be the next_after of a page", field="after")
        place = (int(match[1]), match[2], match[3])
    search = find_stale(snapshot, view, limit=limit, after=place)
    ids = [item.memory_id for item in search.items]
    memories = graph.visible_memories(snapshot, ids, view)
    premises = described(snapshot, {item.memory_id: item.path for item in search.items}, view)
    return StalePage(
        items=tuple(
            StaleMemory(memory=memories[memory_id], premise=premises[memory_id])
            for memory_id in ids
        ),
        next_after=None if search.place is None else ".".join(map(str, search.place)),
        cut=search.cut,
    )


def find_stale(
    snapshot: Snapshot,
    view: View,
    *,
    limit: int,
    after: Place | None = None,
    max_looks: int = MAX_LOOKS,
    max_rows: int = evidence.MAX_ROWS,
) -> StaleSearch:
    """Find the memories of ``list_stale`` in the caller's snapshot, as ids only.

    At most ``max_looks`` endings are examined, and ``max_rows`` dependent memories in one step.
    """
    place = None if after is None else EndedMemory(*after[:2])
    items: list[RetractedEvidence] = []
    seen: set[str] = set()
    cut = False
    # The last page may have ended among the dependents of one ending: examine it again.
    endings = [place] if place and after and after[2] else []
    count, at_once = 0, _AT_FIRST
    following = place
    while True:
        unlisted, is_cut = _on(snapshot, endings, view, seen, after, max_rows)
        cut = cut or is_cut
        while unlisted and len(items) <= limit:
            # No more than fit: many memories may depend on the same evidence.
            room = limit + 1 - len(items)
            page, unlisted = unlisted[:room], unlisted[room:]
            items += page if after is None else _not_before(snapshot, page, view)
        if count >= max_looks or len(items) > limit or (count and following is None):
            break
        looks = min(at_once, max_looks - count)
        endings, following = evidence.newest_endings(snapshot, view, after=following, looks=looks)
        count, at_once = count + looks, min(2 * at_once, _AT_ONCE)
    cursor = None if following is None else (following.since, following.memory_id, "")
    if len(items) > limit:
        cursor = items[limit - 1][:3]
    return StaleSearch(tuple(items[:limit]), cursor, cut)


def _on(
    snapshot: Snapshot,
    grounds: Sequence[EndedMemory],
    view: View,
    seen: set[str],
    after: Place | None,
    max_rows: int,
) -> tuple[list[RetractedEvidence], bool]:
    """Return the memories that depend on this evidence and were not seen, and whether it was cut.

    The latest ending comes first. Evidence that ended later is examined first, so that ``seen``,
    to which these memories are added, leaves out what depends on it.
    """
    if not grounds:
        return [], False
    refuted = evidence.refuted_among(snapshot, [ground.memory_id for ground in grounds], view)
    bases, cut = evidence.dependents(snapshot, refuted, view, max_rows=max_rows)
    if bases is None:
        return [], cut
    paths = broken_paths(bases, refuted)
    retracted = []
    active = View(view.viewer, view.as_of, ACTIVE)
    for memory_id in sorted(existing_ids(snapshot, paths, active)):
        ground = paths[memory_id][-1].ground_id
        item = RetractedEvidence(refuted[ground].since, ground, memory_id, paths[memory_id])
        if memory_id not in seen and (after is None or item[:3] < after):
            retracted.append(item)
    seen.update(item.memory_id for item in retracted)
    return sorted(retracted, key=lambda item: item[:3], reverse=True), cut


def _not_before(
    snapshot: Snapshot, items: Sequence[RetractedEvidence], view: View
) -> list[RetractedEvidence]:
    """Return the memories that no earlier page lists: evidence that ended later comes first."""
    names = [item.memory_id for item in items]
    paths: dict[str, tuple[Dependency, ...]] = {}
    for start in range(0, len(names), _NAMES_AT_ONCE):
        paths |= evidence.broken_evidence(snapshot, names[start : start + _NAMES_AT_ONCE], view)
    return [
        item
        for item in items
        if item.memory_id in paths and paths[item.memory_id][-1].ground_id == item.ground_id
    ]


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
