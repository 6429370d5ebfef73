"""Making a bulletin from the database.

Equal journal heads give equal bytes: no clock is asked, and what changes without a journal entry
(when a memory was last read) is not looked at. Stored confidence is therefore what "uncertain"
means here, and expiry is judged at the time of the last change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date
from itertools import zip_longest

import sqlalchemy as sa

from memgraph.bulletin.document import composed, view_key
from memgraph.clock import MS_PER_DAY
from memgraph.config.schema import BulletinSettings
from memgraph.graph.stale import Fallen, find_stale
from memgraph.model.bulletin import Bulletin
from memgraph.policy.bulletin import Line, Section
from memgraph.policy.scope import Viewer
from memgraph.storage import bulletin_past
from memgraph.storage import bulletin_queries as queries
from memgraph.storage.bulletin_queries import ConflictExcerpt, Excerpt
from memgraph.storage.database import Database
from memgraph.storage.visibility import View

# A line with its citation takes about 100 characters, and at least three sections share the room.
_CHARS_PER_OFFERED_LINE = 300
_FEWEST_LINES = 10
_EPOCH = date(1970, 1, 1).toordinal()
_MAX_STATUS_CHARS = 40
# The newest endings, and so many that stand on them: in a store with more it takes no longer.
_ENDINGS_LOOKED_AT = 200
_STANDING_READ = 200
# Room for the words between the two sides of a conflict.
_CONFLICT_WORDS = 40


def generate(database: Database, viewer: Viewer, settings: BulletinSettings) -> Bulletin:
    """The bulletin of what the viewer may see now.

    Raises:
        StorageError: the database cannot be read.
    """
    with database.read() as connection:
        return generate_in(connection, viewer, settings)


def generate_in(
    connection: sa.Connection,
    viewer: Viewer,
    settings: BulletinSettings,
    as_of: int | None = None,
) -> Bulletin:
    """``generate`` on the snapshot of a reader.

    Args:
        as_of: milliseconds; the bulletin of that time, byte for byte. None: that of now.
    """
    seq, at, _ = queries.journal_head(connection, as_of)
    view = View(viewer, as_of)
    if as_of is not None:
        bulletin_past.prepare(connection, as_of)
    most = max(settings.max_chars // _CHARS_PER_OFFERED_LINE, _FEWEST_LINES)
    # A conflict takes two lines' room.
    conflicts = queries.open_conflicts(connection, view, most // 2)
    fallen = find_stale(
        connection, view, limit=most // 4, max_looks=_ENDINGS_LOOKED_AT, max_rows=_STANDING_READ
    ).items
    texts = queries.excerpts(connection, view, [each.memory_id for each in fallen], at)
    doubts = queries.uncertain(connection, view, at, most - len(conflicts) - len(texts))
    offered = {
        Section.KNOWLEDGE_SUMMARY: [
            Line(f"{one.type}: {one.text}", (one.memory_id,))
            for one in queries.knowledge(connection, view, at, most)
        ],
        Section.ACTIVE_GOALS: _lines(queries.goals(connection, view, at, most)),
        Section.OPEN_TODOS: _lines(queries.open_todos(connection, view, at, most)),
        Section.RECENT_DECISIONS: [
            _decision(one) for one in queries.decisions(connection, view, at, most)
        ],
        Section.PREFERENCE_PROFILE: _lines(queries.preferences(connection, view, at, most)),
        Section.CONFLICTS_AND_UNCERTAINTIES: [
            *_in_turn(
                [_conflict(one, settings.max_line_chars) for one in conflicts],
                [_stale(one, texts[one.memory_id]) for one in fallen if one.memory_id in texts],
            ),
            *(_doubt(one) for one in doubts),
        ],
    }
    return composed(offered, settings, change_seq=seq, key=view_key(viewer, settings))


def _in_turn(*kinds: list[Line]) -> Iterator[Line]:
    """One of each as long as any is left: of a few places no kind takes all."""
    return (line for row in zip_longest(*kinds) for line in row if line is not None)


def _lines(found: Iterable[Excerpt]) -> list[Line]:
    return [Line(_until(one) + one.text, (one.memory_id,)) for one in found]


def _until(one: Excerpt) -> str:
    return "" if one.valid_until is None else f"(until {_day(one.valid_until)}) "


def _decision(one: Excerpt) -> Line:
    day = _day(one.created_at if one.event_time is None else one.event_time)
    # Stored attributes are free: only a short text is a status.
    status = one.decision_status
    told = f" ({status[:_MAX_STATUS_CHARS]})" if isinstance(status, str) and status else ""
    return Line(f"{day}{told} {one.text}", (one.memory_id,))


def _conflict(one: ConflictExcerpt, max_line_chars: int) -> Line:
    room = max((max_line_chars - _CONFLICT_WORDS) // 2, 1)
    first, second = _cut(one.first_text, room), _cut(one.second_text, room)
    text = f'Open since {_day(one.created_at)}: "{first}" against "{second}"'
    return Line(text, (one.first_id, one.second_id))


def _stale(one: Fallen, excerpt: Excerpt) -> Line:
    # What fell is not said again: it may have been poison.
    return Line(f"On fallen ground since {_day(one.since)}: {excerpt.text}", (one.memory_id,))


def _doubt(one: Excerpt) -> Line:
    return Line(f"Uncertain ({one.confidence:.2f}): {one.text}", (one.memory_id,))


def _cut(text: str, room: int) -> str:
    flat = " ".join(text[: 4 * room].split())
    return flat if len(flat) <= room else flat[: room - 1].rstrip() + "…"


def _day(ms: int) -> str:
    """The date in UTC; five times as fast as by way of a whole timestamp."""
    return date.fromordinal(_EPOCH + ms // MS_PER_DAY).isoformat()
