"""List memories with superseded or retracted evidence, by the evidence that ended last."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from memgraph.errors import InvalidInput
from memgraph.graph.redaction import without_hidden
from memgraph.model.enums import EdgeType, MemoryStatus
from memgraph.model.graph import EndedHow, InvalidPremise, PremiseStep, StaleMemory, StalePage
from memgraph.rules.evidence import Dependency, broken_paths
from memgraph.rules.scope import DEFAULT_VIEWER, Viewer
from memgraph.store import evidence, graph
from memgraph.store.engine import Database
from memgraph.store.evidence import EndedMemory
from memgraph.store.snapshot import Snapshot
from memgraph.store.visibility import View

MAX_LOOKS: Final = 10_000
"""The maximum number of endings that one page examines."""
# Endings are examined in batches. The first is small, for it may already fill a short page.
_AT_FIRST: Final = 8
_AT_ONCE: Final = 256
# Evidence is looked up for this many memories at once: that of more could exceed a step's limit.
_NAMES_AT_ONCE: Final = 50
_PLACE: Final = re.compile(r"(-?[0-9]{1,15})\.([^.\s]{1,200})\.([^.\s]{0,200})")


class RetractedEvidence(NamedTuple):
    """A memory with superseded or retracted evidence.

    ``since``: the time at which the evidence ended, in milliseconds.
    """

    since: int
    ground_id: str
    memory_id: str
    path: tuple[Dependency, ...]

    @property
    def place(self) -> StaleCursor:
        return StaleCursor(self.since, self.ground_id, self.memory_id)


class StaleCursor(NamedTuple):
    """The end of a page. With an empty ``memory_id``, the next page begins after this evidence."""

    since: int
    ground_id: str
    memory_id: str

    def __str__(self) -> str:
        return ".".join(map(str, self))


class StaleSearch(NamedTuple):
    """Stale memories, and the ``place`` where the next page begins; None: there are no more."""

    items: tuple[RetractedEvidence, ...]
    place: StaleCursor | None
    cut: bool


def list_stale(
    database: Database,
    *,
    viewer: Viewer = DEFAULT_VIEWER,
    limit: int = 50,
    after: str | None = None,
    as_of: int | None = None,
) -> StalePage:
    """Return active memories that depend on ended evidence, each once, with the path to it.

    Args:
        limit: the page size, 1 to 500.
        after: ``next_after`` of the previous page.
        as_of: list the memories that were stale at this time, in milliseconds; None: now.

    Raises:
        InvalidInput: ``after`` is not from a page.
        StorageError: the database cannot be read.
    """
    place = None if after is None else _place(after)
    view = View(viewer, as_of)
    with database.read() as snapshot:
        search = find_stale(snapshot, view, limit=limit, after=place)
        ids = [item.memory_id for item in search.items]
        memories = graph.visible_memories(snapshot, ids, view)
        premises = described(snapshot, {item.memory_id: item.path for item in search.items}, view)
    return StalePage(
        items=tuple(
            StaleMemory(memory=memories[memory_id], premise=premises[memory_id])
            for memory_id in ids
        ),
        next_after=None if search.place is None else str(search.place),
        cut=search.cut,
        cut_reasons=("max_rows",) if search.cut else (),
    )


def _place(after: str) -> StaleCursor:
    match = _PLACE.fullmatch(after)
    if match is None:
        raise InvalidInput("after must be the next_after of a page", field="after")
    return StaleCursor(int(match[1]), match[2], match[3])


def find_stale(
    snapshot: Snapshot,
    view: View,
    *,
    limit: int,
    after: StaleCursor | None = None,
    max_looks: int = MAX_LOOKS,
    max_rows: int = evidence.MAX_ROWS,
) -> StaleSearch:
    """Find the memories of ``list_stale`` in the caller's snapshot, as ids only.

    Args:
        max_looks: the maximum number of endings to examine.
        max_rows: the maximum number of dependent memories to read in one step.
    """
    reading = _StalePageBuilder(snapshot, view, limit, after, max_rows)
    place = None if after is None else EndedMemory(after.since, after.ground_id)
    if place is not None and after is not None and after.memory_id:
        # The last page may have ended among the dependents of one ending: examine it again.
        reading.add([place])
    count, at_once = 0, _AT_FIRST
    while count < max_looks and len(reading.items) <= limit:
        looks = min(at_once, max_looks - count)
        met, following = evidence.newest_endings(snapshot, view, after=place, looks=looks)
        reading.add(met)
        if following is None:
            return reading.found(None)
        place, count, at_once = following, count + looks, min(2 * at_once, _AT_ONCE)
    return reading.found(None if place is None else StaleCursor(place.since, place.memory_id, ""))


class _StalePageBuilder:
    """Builds a page of stale memories, by their evidence, newest ending first."""

    def __init__(
        self,
        snapshot: Snapshot,
        view: View,
        limit: int,
        after: StaleCursor | None,
        max_rows: int,
    ) -> None:
        self.items: list[RetractedEvidence] = []
        self._snapshot = snapshot
        self._view = view
        self._limit = limit
        self._after = after
        self._max_rows = max_rows
        self._seen: set[str] = set()
        self._cut = False

    def found(self, cursor: StaleCursor | None) -> StaleSearch:
        """Return the page. ``cursor``: where the next one begins if all results fit on this one."""
        if len(self.items) > self._limit:
            cursor = self.items[self._limit - 1].place
        return StaleSearch(tuple(self.items[: self._limit]), cursor, self._cut)

    def add(self, grounds: Sequence[EndedMemory]) -> None:
        """Add the memories that depend on this evidence, and on none that ended later, until
        full.
        """
        unsupported = self._on(grounds)
        while unsupported and len(self.items) <= self._limit:
            # No more than fit: many memories may depend on the same evidence.
            room = self._limit + 1 - len(self.items)
            page, unsupported = unsupported[:room], unsupported[room:]
            self.items += self._listed_here(page)

    def _on(self, grounds: Sequence[EndedMemory]) -> list[RetractedEvidence]:
        ids = [ground.memory_id for ground in grounds]
        refuted = evidence.refuted_among(self._snapshot, ids, self._view)
        bases, cut = evidence.dependents(
            self._snapshot, refuted, self._view, max_rows=self._max_rows
        )
        self._cut = self._cut or cut
        paths = {} if bases is None else broken_paths(bases, refuted)
        active = evidence.active_among(self._snapshot, paths, self._view)
        retracted = [
            RetractedEvidence(
                refuted[path[-1].ground_id].since, path[-1].ground_id, memory_id, path
            )
            for memory_id in active
            for path in (paths[memory_id],)
        ]
        retracted = [
            ground
            for ground in retracted
            if ground.memory_id not in self._seen
            and (self._after is None or ground.place < self._after)
        ]
        self._seen.update(ground.memory_id for ground in retracted)
        return sorted(retracted, key=lambda ground: ground.place, reverse=True)

    def _listed_here(self, unsupported: Sequence[RetractedEvidence]) -> list[RetractedEvidence]:
        """Return the memories that no earlier page lists: evidence that ended later comes first."""
        if self._after is None:
            return list(unsupported)
        names = [item.memory_id for item in unsupported]
        paths: dict[str, tuple[Dependency, ...]] = {}
        for start in range(0, len(names), _NAMES_AT_ONCE):
            batch = names[start : start + _NAMES_AT_ONCE]
            paths |= evidence.broken_evidence(self._snapshot, batch, self._view)
        return [
            item
            for item in unsupported
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
    endings = evidence.end_reasons(snapshot, ids, view)
    reasons = without_hidden(snapshot, view, [endings[memory_id].reason for memory_id in ids])
    reason_of = dict(zip(ids, reasons, strict=True))
    return {
        key: InvalidPremise(
            ground=grounds[path[-1].ground_id],
            path=tuple(_step(step) for step in path),
            ended=_ended_how(grounds[path[-1].ground_id].status, endings[path[-1].ground_id].lost),
            ended_at=endings[path[-1].ground_id].at,
            actor=endings[path[-1].ground_id].actor,
            reason=reason_of[path[-1].ground_id],
            replaced_by=tuple(sorted(refuted[path[-1].ground_id].replaced_by)),
        )
        for key, path in paths.items()
    }


def _step(basis: Dependency) -> PremiseStep:
    return PremiseStep(
        memory_id=basis.dependent_id,
        ground_id=basis.ground_id,
        edge_type=None if basis.edge_type is None else EdgeType(basis.edge_type),
        edge_id=basis.edge_id or None,
    )


def _ended_how(status: MemoryStatus, lost: bool) -> EndedHow:
    if status is MemoryStatus.RETRACTED:
        return "retracted"
    return "lost" if lost else "replaced"
