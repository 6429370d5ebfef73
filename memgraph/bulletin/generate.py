"""Generate a bulletin from the database.

Equal journal heads give equal bytes: no clock is read, and data that changes without a journal
entry, such as the time of the last access, is not used. "Uncertain" therefore refers to the stored
confidence, and expiry is judged at the time of the last change.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import lru_cache
from itertools import zip_longest
from pathlib import PurePosixPath

from memgraph.clock import MS_PER_DAY
from memgraph.config.schema import BulletinSettings
from memgraph.graph.stale import find_stale
from memgraph.model.context import Bulletin, BulletinLine
from memgraph.rules import bulletin as policy
from memgraph.rules.bulletin import UNDATED, BulletinSection, LayoutEntry, stands_alone
from memgraph.rules.contradictions import Conflicts, in_order
from memgraph.rules.scope import Viewer, predicate
from memgraph.store import bulletins
from memgraph.store import bulletins as queries
from memgraph.store.bulletins import BulletinExcerpt
from memgraph.store.engine import Database
from memgraph.store.snapshot import Snapshot
from memgraph.store.visibility import View

# A line with its citation takes about 100 characters, and at least three sections share the space.
_CHARS_PER_OFFERED_LINE = 300
_FEWEST_LINES = 10
_EPOCH = date(1970, 1, 1).toordinal()
_MAX_STATUS_CHARS = 40
# Limits on the ended evidence that is read, newest first, and on the memories that depend on it, so
# that a large store takes no longer.
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
    """Return the current bulletin for a viewer.

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
    """Return the bulletin for a viewer, read from a snapshot.

    Args:
        as_of: the time whose bulletin is reproduced byte for byte, milliseconds; None: now.
    """
    seq, at, _ = queries.journal_head(snapshot, as_of)
    view = View(viewer, as_of)
    if as_of is not None:
        bulletins.prepare(snapshot, as_of)
    limit = max(settings.max_chars // _CHARS_PER_OFFERED_LINE, _FEWEST_LINES)
    open_ = queries.open_conflicts(snapshot, view)
    conflicts = Conflicts.of((pair.first, pair.second) for pair in open_)
    offered: dict[BulletinSection, list[LayoutEntry]] = {}
    for section, place in _SECTIONS.items():
        if section is BulletinSection.RECENT_DECISIONS:
            excerpts = queries.decisions(snapshot, view, at, settings.min_confidence)
        else:
            floor = 0.0 if section is BulletinSection.KNOWLEDGE_SUMMARY else settings.min_confidence
            excerpts = place.read(snapshot, view, at, floor)
            excerpts = _persons_first(excerpts)
        fitting = [excerpt for excerpt in excerpts if _is_shown(excerpt)]
        offered[section] = [_in_section(excerpt, section, conflicts) for excerpt in fitting[:limit]]
    totals = {section_: place.total(snapshot, view, at) for section_, place in _SECTIONS.items()}
    # A contradiction takes two lines.
    pairs = [in_order((pair.first, pair.second)) for pair in open_]
    listed = pairs[: limit // 2]
    stale = find_stale(
        snapshot, view, limit=limit, max_looks=_ENDINGS_LOOKED_AT, max_rows=_STANDING_READ
    )
    names = [side.memory_id for pair in listed for side in pair]
    texts = queries.excerpts(
        snapshot, view, names + [memory.memory_id for memory in stale.items], at
    )
    # Leave out memories from files: their evidence comes from the same file and ends with it.
    unsupported = [
        memory
        for memory in stale.items
        if memory.memory_id in texts and texts[memory.memory_id].path is None
    ]
    doubts = queries.UNCERTAIN.read(snapshot, view, at, 0.0)
    offered[BulletinSection.CONFLICTS_AND_UNCERTAINTIES] = [
        *_in_turn(
            [
                _conflict(texts[later.memory_id], texts[earlier.memory_id])
                for later, earlier in listed
                if later.memory_id in texts and earlier.memory_id in texts
            ],
            [
                _line(
                    texts[memory.memory_id], f"Its evidence was withdrawn on {_day(memory.since)}: "
                )
                for memory in unsupported[: limit // 4]
            ],
        ),
        *(
            _line(doubt, f"Uncertain ({doubt.confidence:.2f}): ")
            for doubt in doubts[:limit]
            if _is_shown(doubt)
        ),
    ]
    doubtful = queries.UNCERTAIN.total(snapshot, view, at)
    totals[BulletinSection.CONFLICTS_AND_UNCERTAINTIES] = len(pairs) + len(unsupported) + doubtful
    key = view_key(viewer, settings)
    return composed(offered, settings, change_seq=seq, key=key, totals=totals)


def _in_section(
    excerpt: BulletinExcerpt, section: BulletinSection, conflicts: Conflicts
) -> LayoutEntry:
    """Return the line of a memory, marked with what contradicts it."""
    lead = _until(excerpt)
    if section is BulletinSection.KNOWLEDGE_SUMMARY:
        lead = f"{excerpt.type}: "
    elif section is BulletinSection.RECENT_DECISIONS:
        lead = _date(excerpt) + _status(excerpt)
    elif excerpt.path is not None:
        lead = _date(excerpt) + lead
    return _line(excerpt, lead, conflicts.mark(excerpt.memory_id))


def _persons_first(excerpts: Sequence[BulletinExcerpt]) -> list[BulletinExcerpt]:
    """Put what persons said first, then the best of each file, then the second best of each …"""
    of_file: Counter[str] = Counter()
    places = {}
    for excerpt in excerpts:
        if excerpt.path is not None:
            of_file[excerpt.path] += 1
            places[excerpt.memory_id] = of_file[excerpt.path]
    return sorted(excerpts, key=lambda excerpt: places.get(excerpt.memory_id, 0))


def _is_shown(excerpt: BulletinExcerpt) -> bool:
    return excerpt.path is None or stands_alone(excerpt.text)


def _in_turn(*kinds: list[LayoutEntry]) -> Iterator[LayoutEntry]:
    """Interleave the kinds, so that none of them takes all places."""
    return (line for row in zip_longest(*kinds) for line in row if line is not None)


def _line(excerpt: BulletinExcerpt, lead: str, mark: str = "") -> LayoutEntry:
    file = None if excerpt.path is None else PurePosixPath(excerpt.path).name or "file"
    return LayoutEntry(excerpt.text, (excerpt.memory_id,), lead, file, mark)


def _conflict(later: BulletinExcerpt, earlier: BulletinExcerpt) -> LayoutEntry:
    return replace(_line(later, _date(later)), against=_line(earlier, _date(earlier)))


def _until(excerpt: BulletinExcerpt) -> str:
    return "" if excerpt.valid_until is None else f"(until {_day(excerpt.valid_until)}) "


def _date(excerpt: BulletinExcerpt) -> str:
    return f"{UNDATED if excerpt.at is None else _day(excerpt.at)} "


def _status(excerpt: BulletinExcerpt) -> str:
    # An attribute may have any value: only text is a status, and a long one is cut.
    status = excerpt.decision_status
    return f"({status[:_MAX_STATUS_CHARS]}) " if isinstance(status, str) and status else ""


def _day(ms: int) -> str:
    """Return the date in UTC; five times as fast as via a full timestamp."""
    return date.fromordinal(_EPOCH + ms // MS_PER_DAY).isoformat()


def composed(
    offered: Mapping[policy.BulletinSection, list[policy.LayoutEntry]],
    settings: BulletinSettings,
    *,
    change_seq: int,
    key: str,
    totals: Mapping[policy.BulletinSection, int] | None = None,
) -> Bulletin:
    """Compose a bulletin from candidate lines. Pure.

    Args:
        totals: see ``policy.compose``.
    """
    chosen = policy.compose(offered, settings.max_chars, settings.max_line_chars, totals)
    # Built without validation, because all values are our own.
    return Bulletin.model_construct(
        sections={
            section.value: tuple(
                BulletinLine.model_construct(
                    text=line.plain(settings.max_line_chars), memory_ids=line.cited
                )
                for line in chosen.lines[section]
            )
            for section in policy.BulletinSection
        },
        text=chosen.markdown,
        change_seq=change_seq,
        view_key=key,
        size=len(chosen.markdown),
        left_out={
            section.value: chosen.totals[section] - len(chosen.lines[section])
            for section in policy.BulletinSection
        },
    )


def view_key(viewer: Viewer, settings: BulletinSettings) -> str:
    """Return 16 hexadecimal digits that identify a view and its limits."""
    limits = (settings.max_chars, settings.max_line_chars, settings.min_confidence)
    return _view_key(viewer, limits)


@lru_cache(maxsize=256)
def _view_key(viewer: Viewer, limits: tuple[float, ...]) -> str:
    key = f"{predicate(viewer)!r} {limits}"
    return hashlib.sha256(key.encode()).hexdigest()[:16]
