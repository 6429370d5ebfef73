"""Making a bulletin from the database.

Equal journal heads give equal bytes: no clock is read, and data that changes without a journal
entry (when a memory was last read) is not used. "Uncertain" therefore refers to the stored
confidence, and expiry is judged at the time of the last change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from itertools import zip_longest
from pathlib import PurePosixPath

from memgraph.bulletin.document import composed, view_key
from memgraph.clock import MS_PER_DAY
from memgraph.config.schema import BulletinSettings
from memgraph.graph.stale import find_stale
from memgraph.model.context import Bulletin
from memgraph.rules.bulletin import UNDATED, BulletinSection, LayoutEntry, stands_alone
from memgraph.rules.contradictions import Conflicts, in_order
from memgraph.rules.scope import Viewer
from memgraph.store import bulletins
from memgraph.store import bulletins as queries
from memgraph.store.bulletins import BulletinExcerpt
from memgraph.store.engine import Database
from memgraph.store.snapshot import Snapshot
from memgraph.store.visibility import View

# A line with its citation takes about 100 characters, and at least three sections share the room.
_CHARS_PER_OFFERED_LINE = 300
_FEWEST_LINES = 10
_EPOCH = date(1970, 1, 1).toordinal()
_MAX_STATUS_CHARS = 40
# The newest endings, and so many that stand on them: in a store with more it takes no longer.
_ENDINGS_LOOKED_AT = 200
_STANDING_READ = 200
_SECTIONS: Mapping[BulletinSection, queries.SectionQuery] = {
    BulletinSection.KNOWLEDGE_SUMMARY: queries.KNOWLEDGE,
    BulletinSection.ACTIVE_GOALS: queries.GOALS,
    BulletinSection.OPEN_TODOS: queries.OPEN_TODOS,
    BulletinSection.RECENT_DECISIONS: queries.DECISIONS,
    BulletinSection.PREFERENCE_PROFILE: queries.PREFERENCES,
}


def generate(database: Database, viewer: Viewer, settings: BulletinSettings) -> Bulletin:
    """Return the bulletin of what the viewer may see now.

    Raises:
        StorageError: the database cannot be read.
    """
    with database.read() as snapshot:
        return generate_in(snapshot, viewer, settings)


def generate_in(
    snapshot: Snapshot,
    viewer: Viewer,
    settings: BulletinSettings,
    as_of: int | None = None,
) -> Bulletin:
    """Return the bulletin of ``generate`` on the snapshot of a reader.

    Args:
        as_of: milliseconds; the bulletin of that time, byte for byte. None: that of now.
    """
    seq, at, _ = queries.journal_head(snapshot, as_of)
    view = View(viewer, as_of)
    if as_of is not None:
        bulletins.prepare(snapshot, as_of)
    most = max(settings.max_chars // _CHARS_PER_OFFERED_LINE, _FEWEST_LINES)
    open_ = queries.open_conflicts(snapshot, view)
    conflicts = Conflicts.of((each.first, each.second) for each in open_)
    offered: dict[BulletinSection, list[LayoutEntry]] = {}
    for section, place in _SECTIONS.items():
        if section is BulletinSection.RECENT_DECISIONS:
            found = queries.decisions(snapshot, view, at, settings.min_confidence)
        else:
            floor = 0.0 if section is BulletinSection.KNOWLEDGE_SUMMARY else settings.min_confidence
            found = place.read(snapshot, view, at, floor)
            found = _persons_first(found)
        fitting = [one for one in found if _is_shown(one)]
        offered[section] = [_in_section(one, section, conflicts) for one in fitting[:most]]
    totals = {one: place.total(snapshot, view, at) for one, place in _SECTIONS.items()}
    # A contradiction takes two lines' room.
    pairs = [in_order((one.first, one.second)) for one in open_]
    shown = pairs[: most // 2]
    stale = find_stale(
        snapshot, view, limit=most, max_looks=_ENDINGS_LOOKED_AT, max_rows=_STANDING_READ
    )
    names = [side.memory_id for pair in shown for side in pair]
    texts = queries.excerpts(snapshot, view, names + [one.memory_id for one in stale.items], at)
    # What fell with its ground in one and the same file is no news.
    fallen = [
        one for one in stale.items if one.memory_id in texts and texts[one.memory_id].path is None
    ]
    doubts = queries.UNCERTAIN.read(snapshot, view, at, 0.0)
    offered[BulletinSection.CONFLICTS_AND_UNCERTAINTIES] = [
        *_in_turn(
            [
                _conflict(texts[later.memory_id], texts[earlier.memory_id])
                for later, earlier in shown
                if later.memory_id in texts and earlier.memory_id in texts
            ],
            [
                _line(texts[one.memory_id], f"Its evidence was withdrawn on {_day(one.since)}: ")
                for one in fallen[: most // 4]
            ],
        ),
        *(
            _line(one, f"Uncertain ({one.confidence:.2f}): ")
            for one in doubts[:most]
            if _is_shown(one)
        ),
    ]
    doubtful = queries.UNCERTAIN.total(snapshot, view, at)
    totals[BulletinSection.CONFLICTS_AND_UNCERTAINTIES] = len(pairs) + len(fallen) + doubtful
    key = view_key(viewer, settings)
    return composed(offered, settings, change_seq=seq, key=key, totals=totals)


def _in_section(
    one: BulletinExcerpt, section: BulletinSection, conflicts: Conflicts
) -> LayoutEntry:
    """Return the line of a memory, with what contradicts it."""
    lead = _until(one)
    if section is BulletinSection.KNOWLEDGE_SUMMARY:
        lead = f"{one.type}: "
    elif section is BulletinSection.RECENT_DECISIONS:
        lead = _date(one) + _status(one)
    elif one.path is not None:
        lead = _date(one) + lead
    return _line(one, lead, conflicts.mark(one.memory_id))


def _persons_first(found: Sequence[BulletinExcerpt]) -> list[BulletinExcerpt]:
    """Sort what persons said first, then files: the best of each file, then its second best …"""
    of_file: Counter[str] = Counter()
    places = {}
    for one in found:
        if one.path is not None:
            of_file[one.path] += 1
            places[one.memory_id] = of_file[one.path]
    return sorted(found, key=lambda one: places.get(one.memory_id, 0))


def _is_shown(one: BulletinExcerpt) -> bool:
    return one.path is None or stands_alone(one.text)


def _in_turn(*kinds: list[LayoutEntry]) -> Iterator[LayoutEntry]:
    """Return one of each kind in turns while any is left, so that no kind takes all places."""
    return (line for row in zip_longest(*kinds) for line in row if line is not None)


def _line(one: BulletinExcerpt, lead: str, mark: str = "") -> LayoutEntry:
    file = None if one.path is None else PurePosixPath(one.path).name or "file"
    return LayoutEntry(one.text, (one.memory_id,), lead, file, mark)


def _conflict(later: BulletinExcerpt, earlier: BulletinExcerpt) -> LayoutEntry:
    return replace(_line(later, _date(later)), against=_line(earlier, _date(earlier)))


def _until(one: BulletinExcerpt) -> str:
    return "" if one.valid_until is None else f"(until {_day(one.valid_until)}) "


def _date(one: BulletinExcerpt) -> str:
    return f"{UNDATED if one.at is None else _day(one.at)} "


def _status(one: BulletinExcerpt) -> str:
    # Stored attributes are free: only a short text is a status.
    status = one.decision_status
    return f"({status[:_MAX_STATUS_CHARS]}) " if isinstance(status, str) and status else ""


def _day(ms: int) -> str:
    """Return the date in UTC; five times as fast as via a full timestamp."""
    return date.fromordinal(_EPOCH + ms // MS_PER_DAY).isoformat()
