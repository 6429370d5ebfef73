"""What stands on a ground that was replaced or taken back: listed by the ground that ended last."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import sqlalchemy as sa

from memgraph.errors import InvalidInput
from memgraph.graph.hidden import without_hidden
from memgraph.model.cases import EndedHow, Premise, PremiseStep, Stale, StalePage
from memgraph.model.enums import MemoryStatus
from memgraph.policy.premises import Basis
from memgraph.policy.scope import DEFAULT_VIEWER, Viewer
from memgraph.storage import graph_queries, premise_queries
from memgraph.storage.database import Database
from memgraph.storage.graph_queries import Direction
from memgraph.storage.premise_queries import Ended
from memgraph.storage.visibility import View

MAX_PAGE: Final = 500
MAX_LOOKS: Final = 10_000
"""Endings that one page looks at."""
_AT_ONCE: Final = 500
_PLACE: Final = re.compile(r"(-?[0-9]{1,15})\.([^.\s]{1,200})\.([^.\s]{0,200})")


class Fallen(NamedTuple):
    """A memory that stands on a refuted ground. ``since``: when that ended, milliseconds."""

    since: int
    ground_id: str
    memory_id: str
    path: tuple[Basis, ...]

    @property
    def place(self) -> Place:
        return Place(self.since, self.ground_id, self.memory_id)


class Place(NamedTuple):
    """Where a page ended; an empty ``memory_id``: behind all that stands on that ground."""

    since: int
    ground_id: str
    memory_id: str

    def __str__(self) -> str:
        return ".".join(map(str, self))


class Found(NamedTuple):
    """Some that fell; ``place``: where to go on, None: there are no more."""

    items: tuple[Fallen, ...]
    place: Place | None
    cut: bool


def list_stale(
    database: Database,
    *,
    viewer: Viewer = DEFAULT_VIEWER,
    limit: int = 50,
    after: str | None = None,
    as_of: int | None = None,
) -> StalePage:
    """Active memories that stand on a ground that no longer holds, each once, with the way to it.

    Args:
        limit: 1 to 500.
        after: ``next_after`` of the page before.
        as_of: milliseconds; as it was then.

    Raises:
        InvalidInput: ``limit`` or ``after`` is not one of the above.
        StorageError: the database cannot be read.
    """
    if not 1 <= limit <= MAX_PAGE:
        raise InvalidInput(f"limit lies between 1 and {MAX_PAGE}", field="limit", value=limit)
    place = None if after is None else _place(after)
    view = View(viewer, as_of)
    with database.read() as connection:
        found = find_stale(connection, view, limit=limit, after=place)
        ids = [each.memory_id for each in found.items]
        memories = graph_queries.visible_memories(connection, ids, view)
        premises = described(connection, {each.memory_id: each.path for each in found.items}, view)
    return StalePage(
        items=tuple(Stale(memory=memories[one], premise=premises[one]) for one in ids),
        next_after=None if found.place is None else str(found.place),
        cut=found.cut,
        cut_reasons=("max_rows",) if found.cut else (),
    )


def _place(after: str) -> Place:
    told = _PLACE.fullmatch(after)
    if told is None:
        raise InvalidInput("after is the next_after of a page", field="after")
    return Place(int(told[1]), told[2], told[3])


def find_stale(
    connection: sa.Connection,
    view: View,
    *,
    limit: int,
    after: Place | None = None,
    max_looks: int = MAX_LOOKS,
    max_rows: int = premise_queries.MAX_ROWS,
) -> Found:
    """As ``list_stale``, on a snapshot that the caller holds, and by ids alone.

    Args:
        max_looks: endings that are looked at.
        max_rows: of what stands on some of them, that are read of one step.
    """
    items: list[Fallen] = []
    cut = False
    place = None if after is None else Ended(after.since, after.ground_id)
    # A page may end amid what stands on one ground: that one is looked at again.
    again = [] if place is None or after is None or not after.memory_id else [place]
    for looked in range(0, max_looks, _AT_ONCE):
        met, following = premise_queries.newest_endings(
            connection, view, after=place, looks=min(_AT_ONCE, max_looks - looked)
        )
        fallen, more = _standing_on(connection, [*again, *met], view, max_rows)
        items += (each for each in fallen if after is None or each.place < after)
        cut = cut or more
        if len(items) > limit:
            return Found(tuple(items[:limit]), items[limit - 1].place, cut)
        if following is None:
            return Found(tuple(items), None, cut)
        place, again = following, []
    behind = None if place is None else Place(place.since, place.memory_id, "")
    return Found(tuple(items), behind, cut)


def _standing_on(
    connection: sa.Connection, grounds: Sequence[Ended], view: View, max_rows: int
) -> tuple[list[Fallen], bool]:
    """What stands on some grounds and on none that ended later, the newest ground first."""
    ids = [each.memory_id for each in grounds]
    gone = premise_queries.refuted_among(connection, ids, view)
    walk = premise_queries.walked(connection, list(gone), view, Direction.IN, max_rows=max_rows)
    above = {each.dependent_id for each in walk.bases}
    standing = premise_queries.active_among(connection, above, view)
    # From above, as everybody looks: of all its grounds the one that ended last counts.
    paths = premise_queries.broken(connection, standing, view)
    found = [
        Fallen(gone[path[-1].ground_id].since, path[-1].ground_id, one, path)
        for one, path in paths.items()
        if path[-1].ground_id in gone
    ]
    return sorted(found, key=lambda each: each.place, reverse=True), walk.cut


def described(
    connection: sa.Connection, paths: Mapping[str, Sequence[Basis]], view: View
) -> dict[str, Premise]:
    """The premise at the end of each path, by the key of the path. Hidden ids are blanked out."""
    anyone = View(view.viewer, view.as_of)
    ids = sorted({path[-1].ground_id for path in paths.values()})
    grounds = graph_queries.visible_memories(connection, ids, anyone)
    gone = premise_queries.refuted_among(connection, ids, view)
    told = premise_queries.told_endings(connection, ids, view)
    reasons = without_hidden(connection, view, [told[one].reason for one in ids])
    reason_of = dict(zip(ids, reasons, strict=True))
    return {
        key: Premise(
            ground=grounds[path[-1].ground_id],
            path=tuple(_step(each) for each in path),
            ended=_how(grounds[path[-1].ground_id].status, told[path[-1].ground_id].lost),
            ended_at=gone[path[-1].ground_id].since,
            actor=told[path[-1].ground_id].actor,
            reason=reason_of[path[-1].ground_id],
            replaced_by=tuple(sorted(gone[path[-1].ground_id].replaced_by)),
        )
        for key, path in paths.items()
    }


def _step(basis: Basis) -> PremiseStep:
    return PremiseStep(
        memory_id=basis.dependent_id,
        ground_id=basis.ground_id,
        edge_type=basis.edge_type,
        edge_id=basis.edge_id or None,
    )


def _how(status: MemoryStatus, lost: bool) -> EndedHow:
    if status is MemoryStatus.RETRACTED:
        return "retracted"
    return "lost" if lost else "replaced"
