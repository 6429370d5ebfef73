"""Generate a bulletin from the database.

Equal journal heads give equal bytes: no clock is read, and data that changes without a journal
entry, such as the time of the last access, is not used. "Confidence" therefore refers to the stored
confidence, and expiry is judged at the time of the last change.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, tzinfo
from functools import lru_cache
from itertools import zip_longest

from memgraph.clock import iso
from memgraph.config.schema import BulletinSettings
from memgraph.graph.marks import Marks, marked, marks_of
from memgraph.ids import short_id
from memgraph.model.context import Bulletin
from memgraph.model.enums import EdgeType, MemoryKind, MemoryType
from memgraph.rules import bulletin as policy
from memgraph.rules.blocks import label
from memgraph.rules.bulletin import BulletinSection, Entry, is_bare
from memgraph.rules.contradictions import MOST_NAMED, in_order
from memgraph.rules.lines import BlockLine, place_of, speaker_of
from memgraph.rules.scope import Viewer, predicate
from memgraph.store import bulletins as queries, evidence, graph, recall as recall_rows
from memgraph.store.bulletins import BulletinExcerpt
from memgraph.store.snapshot import Snapshot
from memgraph.store.visibility import ACTIVE, STANDING, View
from memgraph.text.dates import period_of

MIN_CONFIDENCE = 0.5
"""Goals, todos, decisions and preferences with lower confidence, 0 to 1, are only uncertain."""
# A line takes about 100 characters, and at least three sections share the space.
_CHARS_PER_OFFERED_LINE = 300
_FEWEST_LINES = 10
_MAX_STATUS_CHARS = 40
_MOST_QUOTED = 2
"""The number of earlier statements in the line of the one that probably changed them."""
_MOST_LINKED = 10
_EDGES_READ = 500
"""How many edges are read to find what belongs to one matter: of each memory, and in all."""
_SECTIONS: Mapping[BulletinSection, queries.SectionQuery] = {
    BulletinSection.KNOWLEDGE_SUMMARY: queries.KNOWLEDGE,
    BulletinSection.ACTIVE_GOALS: queries.GOALS,
    BulletinSection.OPEN_TODOS: queries.OPEN_TODOS,
    BulletinSection.RECENT_DECISIONS: queries.DECISIONS,
    BulletinSection.PREFERENCE_PROFILE: queries.PREFERENCES,
}
_SHOWN_AS_THEY_ARE = frozenset(
    {
        MemoryType.GOAL,
        MemoryType.TODO,
        MemoryType.DECISION,
        MemoryType.PREFERENCE,
        MemoryType.IDENTITY,
    }
)


@dataclass(slots=True)
class _Material:
    """The memories of a bulletin, and what the heads of their lines say besides."""

    snapshot: Snapshot
    view: View
    at: int
    excerpts: dict[str, BulletinExcerpt] = field(default_factory=dict)
    notes: dict[str, list[str]] = field(default_factory=dict)
    marks: Marks = field(default_factory=Marks)
    together: dict[str, list[str]] = field(default_factory=dict)

    def add(self, excerpts: Iterable[BulletinExcerpt]) -> None:
        self.excerpts.update((excerpt.memory_id, excerpt) for excerpt in excerpts)

    def note(self, memory_id: str, text: str) -> None:
        self.notes.setdefault(memory_id, []).append(text)

    def read_marks(self) -> None:
        """Read the marks of all memories, and the memories that replaced some of them."""
        ties = recall_rows.read(self.snapshot).ties
        view = replace(self.view, statuses=ACTIVE)
        self.marks = marks_of(self.snapshot, [*self.excerpts.values()], view, ties)
        named = {
            other
            for one in self.excerpts
            for other in (self._end(one), self._later(one), *self._earlier(one))
        }
        if missing := sorted(named - self.excerpts.keys()):
            found = queries.excerpts(self.snapshot, self.view, missing, self.at)
            self.add(found.values())
            more = marks_of(self.snapshot, [*found.values()], view, ties, self.marks.pairs)
            self.marks = self.marks.with_more(more)

    def joined(self, excerpts: Sequence[BulletinExcerpt]) -> list[BulletinExcerpt]:
        """Return the first of the memories of each matter; its line has the others, too.

        A matter is a connected component of causes and replacements. A memory with a mark or a note
        keeps a line of its own.
        """
        matter = self._matters([excerpt.memory_id for excerpt in excerpts])
        heads: dict[int, str] = {}
        first = []
        for excerpt in excerpts:
            one = excerpt.memory_id
            is_plain = one not in self.marks.by_id and one not in self.marks.pairs
            if one not in matter or not is_plain or one in self.notes:
                first.append(excerpt)
                continue
            beside = self.together.setdefault(heads.setdefault(matter[one], one), [])
            if one == heads[matter[one]]:
                first.append(excerpt)
                continue
            beside.append(one)
            if len(beside) == _MOST_QUOTED:
                del heads[matter[one]]
        return first

    def _matters(self, memory_ids: Sequence[str]) -> dict[str, int]:
        """Return the number of the connected component of each memory that has one."""
        view = replace(self.view, statuses=STANDING)
        edges = graph.edges_around(self.snapshot, memory_ids, view, _MOST_LINKED, _EDGES_READ)
        joining = (
            edge
            for edge in edges
            if edge.edge_type is EdgeType.CAUSED_BY
            or (edge.edge_type is EdgeType.UPDATES and edge.weight >= 1.0)
        )
        return self.marks.pairs.components(joining)

    def entry(self, memory_id: str, *beside: str) -> Entry:
        """Return the lines of memories, before each the line of the one that replaced it.

        What was probably changed has no line of its own: the later line quotes it.
        """
        ids: dict[str, None] = {}
        for one in (memory_id, *beside):
            for each in (self._end(one), one):
                later = self._later(each)
                ids.setdefault(later if later in self.excerpts else each)
        return tuple(self._line(one) for one in ids if one in self.excerpts)

    def _later(self, memory_id: str) -> str:
        """Return what probably changed a memory, the newest; a side of a contradiction stays."""
        mark = self.marks.of(memory_id)
        return memory_id if mark.contradicts else next(iter(mark.changed_by), memory_id)

    def _earlier(self, memory_id: str) -> tuple[str, ...]:
        return self.marks.pairs.changes(memory_id)[:_MOST_QUOTED]

    def _end(self, memory_id: str) -> str:
        """Return what replaced a memory in the end, or else the memory."""
        mark = self.marks.of(memory_id)
        if not mark.replaced_by or mark.in_part:
            return memory_id
        end = mark.replaced_by[-1]
        return self.marks.shown_as(end, self.excerpts.keys()) or end

    def _line(self, memory_id: str) -> BlockLine:
        line = self._plain(memory_id)
        quoted = [
            one
            for one in self._earlier(memory_id)
            if one in self.excerpts and self._later(one) == memory_id
        ]
        together = map(self._plain, self.together.get(memory_id, ()))
        return replace(line, quotes=tuple(map(self._plain, quoted)), together=tuple(together))

    def _plain(self, memory_id: str) -> BlockLine:
        excerpt = self.excerpts[memory_id]
        line = marked(
            BlockLine(
                memory_id=memory_id,
                kind=MemoryKind(excerpt.kind),
                type=MemoryType(excerpt.type),
                text=excerpt.text,
                at=excerpt.at,
                stored_at=excerpt.created_at,
                speaker=speaker_of(excerpt.kind, excerpt.source_role),
                place=place_of(excerpt.path, excerpt.locator, excerpt.section),
                period=period_of(excerpt.happened, excerpt.event_time),
                until=excerpt.valid_until,
                notes=(*_status(excerpt), *self.notes.get(memory_id, ())),
                handle=short_id(memory_id),
            ),
            self.marks,
            self.excerpts.keys(),
        )
        shown = [one for one in line.contradicts if one in self.excerpts]
        return replace(line, contradicts=tuple(shown[:MOST_NAMED]) or line.contradicts[:1])


def generate_in(
    snapshot: Snapshot,
    viewer: Viewer,
    settings: BulletinSettings,
    as_of: int | None = None,
    zone: tzinfo = UTC,
) -> Bulletin:
    """Return the bulletin for a viewer, read from a snapshot.

    Args:
        as_of: the time whose bulletin is reproduced byte for byte, milliseconds; None: now.
        zone: the time zone of the dates.
    """
    seq, at, _ = queries.journal_head(snapshot, as_of)
    view = View(viewer, as_of)
    limit = max(settings.max_chars // _CHARS_PER_OFFERED_LINE, _FEWEST_LINES)
    material = _Material(snapshot, view, at)
    listed: dict[BulletinSection, list[BulletinExcerpt]] = {}
    for section, place in _SECTIONS.items():
        if section is BulletinSection.RECENT_DECISIONS:
            excerpts = queries.decisions(snapshot, view, at, MIN_CONFIDENCE)
        else:
            excerpts = _persons_first(place.read(snapshot, view, at, MIN_CONFIDENCE))
        listed[section] = [excerpt for excerpt in excerpts if _is_shown(excerpt)][:limit]
        material.add(listed[section])
    totals = {section_: place.total(snapshot, view, at) for section_, place in _SECTIONS.items()}
    # A contradiction takes two lines.
    open_ = queries.open_conflicts(snapshot, view)
    pairs = [tuple(side.memory_id for side in in_order((one.first, one.second))) for one in open_]
    sides = [side for pair in pairs[: limit // 2] for side in pair]
    texts = queries.excerpts(snapshot, view, sides, at)
    doubts = [
        doubt
        for doubt in queries.UNCERTAIN.read(snapshot, view, at, 0.0)[:limit]
        if _is_shown(doubt)
    ]
    doubted = {doubt.memory_id: doubt for doubt in doubts}
    since = _withdrawn(snapshot, view, material.excerpts | texts | doubted)
    unsupported = sorted(since, key=lambda one: (-since[one], one))[: limit // 4]
    for memory_id in unsupported:
        material.note(memory_id, f"evidence withdrawn {iso(since[memory_id])[:10]}")
    for doubt in doubts:
        material.note(doubt.memory_id, f"confidence {doubt.confidence:.2f}")
    material.add(texts[one] for one in sides if one in texts)
    material.add(doubts)
    material.read_marks()
    knowledge = BulletinSection.KNOWLEDGE_SUMMARY
    listed[knowledge] = material.joined(listed[knowledge])
    offered: dict[BulletinSection, list[Entry]] = {
        section: [material.entry(excerpt.memory_id) for excerpt in excerpts]
        for section, excerpts in listed.items()
    }
    offered[BulletinSection.CONFLICTS_AND_UNCERTAINTIES] = [
        *_in_turn(
            [material.entry(*pair) for pair in pairs[: limit // 2] if {*pair} <= texts.keys()],
            [material.entry(memory_id) for memory_id in unsupported],
        ),
        *(material.entry(one) for one in doubted if one not in unsupported),
    ]
    doubtful = queries.UNCERTAIN.total(snapshot, view, at)
    totals[BulletinSection.CONFLICTS_AND_UNCERTAINTIES] = (
        len(pairs) + len(since.keys() - doubted.keys()) + doubtful
    )
    key = view_key(viewer, settings, zone)
    return composed(offered, settings, change_seq=seq, key=key, totals=totals, zone=zone)


def _withdrawn(
    snapshot: Snapshot, view: View, excerpts: Mapping[str, BulletinExcerpt]
) -> dict[str, int]:
    """Return when the evidence of memories was replaced or retracted, in ms, by memory id.

    Memories from files are left out: their evidence comes from the same file and ends with it.
    """
    said = [memory_id for memory_id, excerpt in excerpts.items() if excerpt.path is None]
    paths = evidence.broken_evidence(snapshot, said, view)
    grounds = {memory_id: path[-1].ground_id for memory_id, path in paths.items()}
    refuted = evidence.refuted_among(snapshot, set(grounds.values()), view)
    return {memory_id: refuted[ground].since for memory_id, ground in grounds.items()}


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
    return excerpt.path is None or excerpt.type in _SHOWN_AS_THEY_ARE or not is_bare(excerpt.text)


def _in_turn(*kinds: list[Entry]) -> Iterator[Entry]:
    """Interleave the kinds, so that none of them takes all places."""
    return (entry for row in zip_longest(*kinds) for entry in row if entry is not None)


def _status(excerpt: BulletinExcerpt) -> tuple[str, ...]:
    # An attribute may have any value: only text is a status, and a long one is cut.
    status = excerpt.decision_status
    if excerpt.type != MemoryType.DECISION or not isinstance(status, str):
        return ()
    shown = label(status, _MAX_STATUS_CHARS)
    return (shown,) if shown else ()


def composed(
    offered: Mapping[BulletinSection, Sequence[Entry]],
    settings: BulletinSettings,
    *,
    change_seq: int,
    key: str,
    totals: Mapping[BulletinSection, int] | None = None,
    zone: tzinfo = UTC,
) -> Bulletin:
    """Compose a bulletin from candidate lines. Pure.

    Args:
        totals: see ``policy.compose``.
    """
    layout = policy.compose(offered, settings.max_chars, totals=totals, zone=zone)
    # Built without validation, because all values are our own.
    return Bulletin.model_construct(
        sections={section.value: layout.lines[section] for section in BulletinSection},
        text=layout.text,
        change_seq=change_seq,
        view_key=key,
        size=len(layout.text),
        left_out={section.value: layout.left_out[section] for section in BulletinSection},
    )


def view_key(viewer: Viewer, settings: BulletinSettings, zone: tzinfo = UTC) -> str:
    """Return 16 hexadecimal digits that identify a view, its limit and its time zone."""
    return _view_key(viewer, settings.max_chars, str(zone))


@lru_cache(maxsize=256)
def _view_key(viewer: Viewer, max_chars: int, zone: str) -> str:
    key = f"{predicate(viewer)!r} {max_chars} {zone}"
    return hashlib.sha256(key.encode()).hexdigest()[:16]
