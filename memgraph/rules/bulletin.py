"""The bulletin: six sections of lines under a hard size limit.

Pure and deterministic: the same lines and limit give the same text. The lines have the form of a
block's lines, with one numbering through all sections; each memory has one line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from enum import StrEnum
from itertools import islice, zip_longest

from memgraph.model.context import BulletinLine
from memgraph.rules.blocks import cut, mark_from
from memgraph.rules.lines import BlockLine, fenced, named, record, records

MAX_CHARS = 4_000
MAX_LINE_CHARS = 240

MOST_COUNTED = 1_000
"""For more entries in a section the heading says "over 1000"."""
_NOTHING = "Nothing is known yet.\n"
_LINK = re.compile(r"https?://\S+|www\.\S+")


class BulletinSection(StrEnum):
    """The sections, in the order in which they are rendered."""

    KNOWLEDGE_SUMMARY = "knowledge_summary"
    ACTIVE_GOALS = "active_goals"
    OPEN_TODOS = "open_todos"
    RECENT_DECISIONS = "recent_decisions"
    PREFERENCE_PROFILE = "preference_profile"
    CONFLICTS_AND_UNCERTAINTIES = "conflicts_and_uncertainties"

    @property
    def heading(self) -> str:
        """The text of its heading."""
        return _HEADINGS[self]


_HEADINGS = {
    BulletinSection.KNOWLEDGE_SUMMARY: "Knowledge",
    BulletinSection.ACTIVE_GOALS: "Active goals",
    BulletinSection.OPEN_TODOS: "Open todos",
    BulletinSection.RECENT_DECISIONS: "Recent decisions",
    BulletinSection.PREFERENCE_PROFILE: "Preferences",
    BulletinSection.CONFLICTS_AND_UNCERTAINTIES: "Open contradictions and doubts",
}
KEPT_LONGEST = (
    BulletinSection.ACTIVE_GOALS,
    BulletinSection.OPEN_TODOS,
    BulletinSection.RECENT_DECISIONS,
)
ROWS_BEFORE_OTHERS = 2
"""After this many goals, todos and decisions each of the other sections gets an entry."""
_OTHERS = (
    BulletinSection.CONFLICTS_AND_UNCERTAINTIES,
    BulletinSection.KNOWLEDGE_SUMMARY,
    BulletinSection.PREFERENCE_PROFILE,
)

Entry = tuple[BlockLine, ...]
"""Lines that go in together: a memory, or both sides of a replacement or a contradiction.

A line may stand for several memories, see ``BlockLine.together``."""


@dataclass(frozen=True, slots=True)
class BulletinLayout:
    """The chosen lines of a bulletin, and its text.

    Attributes:
        lines: the lines of every section, as printed.
        left_out: the number of entries of each section that are not shown.
        text: the rendered text, within the limit of characters.
    """

    lines: Mapping[BulletinSection, tuple[BulletinLine, ...]]
    left_out: Mapping[BulletinSection, int]
    text: str


def compose(
    offered: Mapping[BulletinSection, Sequence[Entry]],
    max_chars: int = MAX_CHARS,
    max_line_chars: int = MAX_LINE_CHARS,
    totals: Mapping[BulletinSection, int] | None = None,
    zone: tzinfo = UTC,
) -> BulletinLayout:
    """Choose entries under the limit and render them.

    Goals, todos and decisions come first, one of each in turn. After every ``ROWS_BEFORE_OTHERS``
    rounds follow one contradiction, one piece of knowledge and one preference. Choosing stops at
    the first entry that does not fit, so a larger limit only ever adds lines.

    Args:
        offered: entries by section, most important first; an absent section is empty.
        max_chars: the limit of the text, >= 0. If the headings alone exceed it, the text is empty.
        max_line_chars: >= 1; longer texts of memories are cut and end in an ellipsis.
        totals: the number of entries of each section; by default the number offered.
        zone: the time zone of the dates.
    """
    stated = totals or {}
    counts = {
        part: max(stated.get(part, 0), sum(map(_number, offered.get(part, ()))))
        for part in BulletinSection
    }
    lines = {line.memory_id: line for entries in offered.values() for e in entries for line in e}
    lines = {line.memory_id: _cut(line, max_line_chars) for line in named(list(lines.values()))}
    widest = dict.fromkeys(lines, len(lines))
    remaining = max_chars - len(_text(_headings(counts, counts).values()))
    chosen: list[tuple[BulletinSection, Entry]] = []
    shown: set[str] = set()
    for section, entry in _by_priority(offered):
        new = [lines[one] for one in _ids(entry) if one not in shown]
        room = sum(len(record(one, widest, zone, with_time=bool(one.others))) for one in new)
        room += 0 if new else len(_see(entry, widest))
        if room > remaining:
            break
        remaining -= room
        shown.update(line.memory_id for line in new)
        chosen.append((section, entry))
    while True:
        layout = _layout(chosen, lines, counts, zone)
        if len(layout.text) <= max_chars:
            return layout
        if not chosen:
            return replace(layout, text="")
        # A line may name another one than was reckoned with.
        chosen.pop()


def is_bare(text: str) -> bool:
    """Return True for a text that is only a link or a heading."""
    return text.lstrip().startswith("#") or not any(map(str.isalpha, _LINK.sub("", text)))


def _cut(line: BlockLine, max_chars: int) -> BlockLine:
    quotes = tuple(_cut(one, max(max_chars // 2, 1)) for one in line.quotes)
    together = tuple(_cut(one, max(max_chars // 2, 1)) for one in line.together)
    return replace(line, text=cut(line.text, max_chars), quotes=quotes, together=together)


def _layout(
    chosen: Sequence[tuple[BulletinSection, Entry]],
    lines: Mapping[str, BlockLine],
    totals: Mapping[BulletinSection, int],
    zone: tzinfo,
) -> BulletinLayout:
    """Print the chosen entries; a memory of two sections stands in that which comes first."""
    places: dict[BulletinSection, list[str | Entry]] = {part: [] for part in BulletinSection}
    counts = dict.fromkeys(BulletinSection, 0)
    shown: set[str] = set()
    for section, entry in chosen:
        counts[section] += _number(entry)
        new = [one for one in _ids(entry) if one not in shown]
        shown.update(new)
        places[section] += new
        if not new and section is BulletinSection.CONFLICTS_AND_UNCERTAINTIES:
            places[section].append(entry)
    ids = [place for places_ in places.values() for place in places_ if isinstance(place, str)]
    numbers = {memory_id: number for number, memory_id in enumerate(ids, 1)}
    printed = records(named([lines[one] for one in ids]), zone).split("\n")
    shown_lines = {
        section: tuple(
            BulletinLine.model_construct(
                text=printed[numbers[place] - 1],
                memory_ids=(place, *_ids(lines[place].quotes), *_ids(lines[place].together)),
            )
            if isinstance(place, str)
            else BulletinLine.model_construct(
                text=_see(place, numbers).rstrip(), memory_ids=tuple(_ids(place))
            )
            for place in places[section]
        )
        for section in BulletinSection
    }
    headings = _headings(counts, totals)
    body = [
        heading + "".join(f"{line.text}\n" for line in shown_lines[section])
        for section, heading in headings.items()
    ]
    left_out = {section: totals[section] - counts[section] for section in BulletinSection}
    return BulletinLayout(shown_lines, left_out, _text(body or [_NOTHING]))


def _number(entry: Entry) -> int:
    """Return the number of entries that one stands for."""
    return 1 + sum(len(line.together) for line in entry)


def _ids(entry: Entry) -> list[str]:
    return [line.memory_id for line in entry]


def _see(entry: Entry, numbers: Mapping[str, int]) -> str:
    """Return a reference to lines of other sections, with its newline."""
    return f"See {' and '.join(f'[{numbers[one]}]' for one in _ids(entry))}.\n"


def _by_priority(
    offered: Mapping[BulletinSection, Sequence[Entry]],
) -> Iterator[tuple[BulletinSection, Entry]]:
    others = _rows(_OTHERS, offered)
    for number, row in enumerate(_rows(KEPT_LONGEST, offered), 1):
        yield from row
        if number % ROWS_BEFORE_OTHERS == 0:
            for entry in islice(others, 1):
                yield from entry
    for row in others:
        yield from row


def _rows(
    sections: Sequence[BulletinSection], offered: Mapping[BulletinSection, Sequence[Entry]]
) -> Iterator[list[tuple[BulletinSection, Entry]]]:
    """Yield rows of one entry per section, as long as any section has one."""
    for row in zip_longest(*(offered.get(section, ()) for section in sections)):
        pairs = zip(sections, row, strict=True)
        yield [(section, entry) for section, entry in pairs if entry is not None]


def _headings(
    counts: Mapping[BulletinSection, int], totals: Mapping[BulletinSection, int]
) -> dict[BulletinSection, str]:
    """Return the headings of the sections that have entries, shown or left out."""
    return {
        section: f"## {section.heading} ({counts[section]} of {_total(totals[section])})\n"
        for section in BulletinSection
        if totals[section]
    }


def _total(total: int) -> str:
    return f"over {MOST_COUNTED}" if total > MOST_COUNTED else str(total)


def _text(sections: Iterable[str]) -> str:
    """Return the sections between marks that come from them, so that equal content is equal."""
    body = "\n".join(sections)
    return fenced(body, mark_from(body))
