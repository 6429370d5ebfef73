"""Render memories as text for a prompt: one line for each, in one form everywhere.

Pure and deterministic: the same lines, format and mark give the same text. No text can end its line
or the block, or look like the number of another line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from itertools import combinations
from pathlib import PurePosixPath
from typing import Any

from memgraph.clock import is_mere_date
from memgraph.errors import InvalidInput
from memgraph.model.context import BlockFormat
from memgraph.model.conversation import BESIDE, HAPPENED
from memgraph.model.entities import EntityProfile
from memgraph.model.enums import MemoryKind, MemoryStatus, MemoryType
from memgraph.model.values import Memory, Source, StoredSource, one_of
from memgraph.rules.blocks import (
    BLOCK_INTRO,
    FENCE_INTRO,
    FENCE_TAG,
    LIST_MESSAGE,
    LIST_TITLE,
    MARK_DIGITS,
    SECTION_INSIGHT,
    SECTION_TITLE,
    label,
    one_line,
    record_text,
)
from memgraph.rules.budget import counted, token_cost
from memgraph.rules.contradictions import MOST_NAMED
from memgraph.rules.sources import part_of
from memgraph.text.dates import in_words, period_of
from memgraph.text.sentences import split_sentences

UNDATED = "undated"
_MARK = re.compile(rf"[0-9]{{{MARK_DIGITS}}}")
_IN_JSON = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DROP_ZONE = ("ingest", "processed")
_PATH_PARTS = 2
_QUOTED_CHARS = 40
MAX_NAMES = 10
ZERO_MARK = "0" * MARK_DIGITS
"""Stands for a mark where tokens are counted: each costs the same."""
# Numbers have three characters at most in all but the largest blocks.
_WIDEST = 100


@dataclass(frozen=True, slots=True)
class BlockLine:
    """A memory as a line of a prompt.

    Attributes:
        at: when it was said or written, in milliseconds; None: unknown.
        stored_at: when it was stored, in milliseconds; it is shown if ``at`` is unknown.
        beside: the time of a turn next to it, by which it is sorted if ``at`` is unknown.
        speaker: the speaker of a turn; "" for other memories, which show their type.
        place: the file and the line that it comes from, or "".
        period: the year or the month of ``at``, if no day is known, such as ``2024-05``; or "".
        until: when it ceased to be valid, in milliseconds; None: it has not, or it is unknown.
        ended: it ceased to be valid at an unknown time.
        in_part: only a part of it was replaced.
        replaced_by, replaces, contradicts: ids of other memories.
        probable: those of ``contradicts`` that nobody stated.
        changed_by, changes: ids of memories that probably changed it, and the reverse.
        notes: what else its head says, for instance the status of a decision.
        handle: the short id at the end of the line, by which tools refer to it; "" for none.
        quotes: what it probably changed, where that has no line of its own.
        together: what belongs to the same matter and has no line of its own.
    """

    memory_id: str
    kind: MemoryKind
    type: MemoryType
    text: str
    at: int | None
    speaker: str = ""
    place: str = ""
    period: str = ""
    until: int | None = None
    ended: bool = False
    in_part: bool = False
    replaced_by: tuple[str, ...] = ()
    replaces: tuple[str, ...] = ()
    contradicts: tuple[str, ...] = ()
    probable: frozenset[str] = frozenset()
    changed_by: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    handle: str = ""
    quotes: tuple[BlockLine, ...] = ()
    together: tuple[BlockLine, ...] = ()
    stored_at: int | None = None
    beside: int | None = None

    @property
    def who(self) -> str:
        """The speaker, or else the type with its place."""
        if self.speaker:
            return self.speaker
        name = "Reflection" if self.kind is MemoryKind.REFLECTION else self.type.value
        return f"{name} ({self.place})" if self.place else name

    def day(self, zone: tzinfo) -> str:
        """Return its date, as exactly as it is known; if it is not, also that of storing it."""
        if self.period:
            return in_words(self.period)
        if self.at is None and self.stored_at is not None:
            return f"{UNDATED}, stored {date_of(self.stored_at, zone)}"
        return date_of(self.at, zone)

    @property
    def others(self) -> tuple[str, ...]:
        """The ids of all memories that its marks name."""
        return (
            *self.replaced_by,
            *self.replaces,
            *self.contradicts,
            *self.changed_by,
            *self.changes,
        )


def line_of(
    memory: Memory, source: StoredSource, text: str | None = None, *, handle: str = ""
) -> BlockLine:
    """Return the line of a memory, without marks.

    Args:
        text: the text to show instead of the whole content.
        handle: the short id at the end of the line; "" for none.
    """
    beside = memory.attributes.get(BESIDE)
    return BlockLine(
        memory_id=memory.memory_id,
        kind=memory.kind,
        type=memory.type,
        text=memory.content if text is None else text,
        at=known_date(memory, source),
        stored_at=memory.created_at,
        handle=handle,
        speaker=speaker_of(memory.kind, memory.source_role),
        place=""
        if memory.kind is MemoryKind.REFLECTION
        else place_of(source.source_path, source.locator, memory.attributes.get("section")),
        period=period_of(memory.attributes.get(HAPPENED), memory.event_time),
        beside=beside if isinstance(beside, int) else None,
        until=memory.valid_until,
        ended=memory.valid_until is None and memory.status is not MemoryStatus.ACTIVE,
    )


def known_date(memory: Memory, source: Source) -> int | None:
    """Return when a memory was said, in milliseconds; None if it is from a file without a date."""
    undated = memory.event_time is None and source.source_path is not None
    return None if undated else memory.said_at


def speaker_of(kind: str, role: str | None) -> str:
    """Return the speaker of a memory; "" without one."""
    if role is None or kind == MemoryKind.REFLECTION:
        return ""
    name = label(role)
    return name.capitalize() if name in ("user", "assistant", "system", "tool") else name


def place_of(source_path: str | None, locator: str | None, section: object = None) -> str:
    """Return a file, the first line and its heading, for instance ``trip.md:9, Shopping list``.

    Of a file in the drop zone the folder is shown too, never where the drop zone itself lies.
    """
    if not source_path:
        return ""
    parts = PurePosixPath(source_path).parts
    zone = max((at for at, part in enumerate(parts) if part in _DROP_ZONE), default=len(parts) - 2)
    path = label("/".join(parts[zone + 1 :][-_PATH_PARTS:])) or "file"
    part = part_of(locator)
    place = path if part is None or part.first is None else f"{path}:{part.first}"
    heading = label(section) if isinstance(section, str) else ""
    return f"{place}, {heading}" if heading else place


def in_time(lines: Iterable[BlockLine]) -> list[BlockLine]:
    """Return lines oldest first, ties by id; undated ones first, or beside their neighbour."""
    return sorted(lines, key=_time_key)


def _time_key(line: BlockLine) -> tuple[bool, int, str]:
    time = line.beside if line.at is None else line.at
    return time is not None, time or 0, line.memory_id


def named(lines: Sequence[BlockLine]) -> list[BlockLine]:
    """Let both lines of a replacement or a change name each other, if both are in the block."""
    inside = {line.memory_id for line in lines}
    replaces: dict[str, list[str]] = {}
    changes: dict[str, list[str]] = {}
    newer: dict[str, tuple[str, ...]] = {}
    later: dict[str, tuple[str, ...]] = {}
    for line in lines:
        newer[line.memory_id] = tuple(one for one in line.replaced_by if one in inside)[:1]
        later[line.memory_id] = tuple(one for one in line.changed_by if one in inside)[:MOST_NAMED]
        for one in newer[line.memory_id]:
            replaces.setdefault(one, []).append(line.memory_id)
        for one in later[line.memory_id]:
            changes.setdefault(one, []).append(line.memory_id)
    return [
        replace(
            line,
            replaced_by=newer[line.memory_id] or line.replaced_by[:1],
            replaces=tuple(replaces.get(line.memory_id, ())),
            changed_by=later[line.memory_id] or line.changed_by[:1],
            changes=tuple(changes.get(line.memory_id, ())),
        )
        for line in lines
    ]


def render(
    lines: Sequence[BlockLine],
    format: BlockFormat,  # noqa: A002  the word that requests and settings have for it
    *,
    mark: str,
    zone: tzinfo = UTC,
    head: str = "",
) -> str:
    """Render memories, oldest first, as a block that ends in a newline; "" if there is nothing.

    A reflection of several lines keeps them, each as an item.

    - ``fenced``: an introduction, ``<memory mark>``, for each memory a line such as ``[2] Mon
      2024-01-08, Decision (adr/0004.md:9), until 2024-05-01, see [3]: text``, ``</memory mark>``.
    - ``list``: ``[Relevant Memory]``, ``- text`` for each, and ``[User Message]``.
    - ``sections``: ``## Relevant memory`` with a line such as ``- Mon 2024-01-08, Evan: text`` for
      each, and ``## Weekly insight`` with a line for each sentence of a reflection.

    Args:
        mark: 6 digits; only ``fenced`` shows it.
        zone: the time zone of the dates.
        head: lines of a fenced block before all others, each with its newline.

    Raises:
        InvalidInput: the mark or the format is invalid.
    """
    one_of(BlockFormat, format, "format")
    if not _MARK.fullmatch(mark):
        raise InvalidInput(f"a mark must be {MARK_DIGITS} digits", field="mark")
    if not lines and not head:
        return ""
    if format == BlockFormat.FENCED:
        return fenced(head + records(lines, zone), mark, BLOCK_INTRO)
    if format == BlockFormat.LIST:
        items = "".join(
            f"- {text}\n"
            for line in lines
            for text in (*map(one_line, _texts(line)[:-1]), _listed(line, lines, zone))
        )
        return f"{LIST_TITLE}\n{items}\n{LIST_MESSAGE}\n"
    insights = [line for line in lines if line.kind is MemoryKind.REFLECTION]
    others = [line for line in lines if line.kind is not MemoryKind.REFLECTION]
    items = "".join(
        f"- {line.day(zone)}, {one_line(line.who)}: {_listed(line, lines, zone)}\n"
        for line in others
    )
    sentences = "".join(
        f"- {one_line(sentence)}\n"
        for line in insights
        for part in _texts(line)
        for sentence in split_sentences(part)
    )
    parts = ((SECTION_TITLE, items), (SECTION_INSIGHT, sentences))
    return "\n".join(f"{title}\n{body}" for title, body in parts if body)


def fenced(body: str, mark: str, intro: str = FENCE_INTRO) -> str:
    """Return lines between the marks of a block, after the introduction.

    The next mark that the lines do not contain is taken, unless they contain all.
    """
    if mark in body:
        taken = {body[at : at + MARK_DIGITS] for at in range(len(body))}
        steps = range(1, 10**MARK_DIGITS)
        others = (f"{(int(mark) + one) % 10**MARK_DIGITS:0{MARK_DIGITS}}" for one in steps)
        mark = next((other for other in others if other not in taken), mark)
    return f"{intro}\n<{FENCE_TAG} {mark}>\n{body}</{FENCE_TAG} {mark}>\n"


def records(lines: Sequence[BlockLine], zone: tzinfo = UTC, first: int = 1) -> str:
    """Return the numbered lines of a fenced block, each with its newline.

    Args:
        first: the number of the first line.
    """
    numbers = {line.memory_id: number for number, line in enumerate(lines, start=first)}
    timed = _disagreeing_days(lines, zone)
    return "".join(
        record(line, numbers, zone, with_time=bool(line.others) and line.day(zone) in timed)
        for line in lines
    )


def record(
    line: BlockLine, numbers: Mapping[str, int], zone: tzinfo, *, with_time: bool = False
) -> str:
    """Return a line with its newline.

    Args:
        numbers: the numbers of the lines, which its marks name.
        with_time: show the time of day, too, if it is known.
    """
    when = line.day(zone)
    if with_time and line.at is not None and not is_mere_date(line.at):
        when += f" {_moment(line.at, zone):%H:%M}"
    marks = _marks(line, lambda memory_id: _number(numbers, memory_id), zone)
    quotes = "".join(f" (probably changes {_quote(one, zone)})" for one in line.quotes)
    quotes += "".join(f" (with {_quote(one, zone)})" for one in line.together)
    head = f"[{numbers[line.memory_id]}] {when}, {line.who}{''.join(f', {one}' for one in marks)}"
    texts = _texts(line)
    text = f" {record_text(texts[0])}"
    if len(texts) > 1:
        text = "".join(f"\n  - {record_text(one)}" for one in texts)
    return f"{head}:{text}{quotes}{_handle(line)}\n"


def _texts(line: BlockLine) -> list[str]:
    """Return the lines of a reflection, or the text of another memory without its speaker."""
    parts = line.text.splitlines() if line.kind is MemoryKind.REFLECTION else []
    if line.speaker and line.text.startswith(f"{line.speaker}:"):
        parts = [line.text.removeprefix(f"{line.speaker}:")]
    return [part.strip().removeprefix("- ") for part in parts if part.strip()] or [line.text]


def _quote(line: BlockLine, zone: tzinfo) -> str:
    return f"{line.day(zone)}: {record_text(_texts(line)[-1])}{_handle(line)}"


def _handle(line: BlockLine) -> str:
    return f" #{line.handle}" if line.handle else ""


def profile_line(entity: EntityProfile, zone: tzinfo) -> str:
    """Return what is known about an entity as one line of a fenced block, with its newline."""
    parts = [f"{label(entity.canonical_name)}, {entity.type.value}"]
    for title, names in (
        ("also called", entity.aliases),
        ("named beside", [one.canonical_name for one in entity.related]),
        ("could also mean", [one.canonical_name for one in entity.candidates]),
    ):
        if shown := [name for one in names[:MAX_NAMES] if (name := label(one))]:
            parts.append(f"{title} {', '.join(shown)}")
    dates = (date_of(at, zone)[len("Mon ") :] for at in (entity.first_seen, entity.last_seen))
    parts.append(f"mentions: {entity.mention_count}, {' to '.join(dict.fromkeys(dates))}")
    if entity.summary is not None:
        parts.append(record_text(entity.summary))
    return "; ".join(parts) + "\n"


@lru_cache(maxsize=4_096)
def cost_of(line: BlockLine, format: BlockFormat, zone: tzinfo = UTC) -> int:  # noqa: A002
    """Return the tokens of a line in a block; its number and its marks are the widest possible."""
    if format == BlockFormat.FENCED:
        numbers = dict.fromkeys((line.memory_id, *line.others), _WIDEST)
        return token_cost(record(line, numbers, zone))
    return token_cost(render([line], format, mark=ZERO_MARK, zone=zone)) - frame_cost(format, ())


def frame_cost(format: BlockFormat, lines: Iterable[BlockLine]) -> int:  # noqa: A002
    """Return the tokens of a block of some lines besides these."""
    if format == BlockFormat.FENCED:
        return counted(fenced("", ZERO_MARK, BLOCK_INTRO))
    if format == BlockFormat.LIST:
        return counted(f"{LIST_TITLE}\n{LIST_MESSAGE}")
    return counted(SECTION_TITLE) + (counted(SECTION_INSIGHT) if has_insight(lines) else 0)


def has_insight(lines: Iterable[BlockLine]) -> bool:
    """Return True if one of the lines is a reflection, which has a section of its own."""
    return any(line.kind is MemoryKind.REFLECTION for line in lines)


def _disagreeing_days(lines: Sequence[BlockLine], zone: tzinfo) -> set[str]:
    """Return the days on which two lines replace, change or contradict each other."""
    days: dict[str, list[BlockLine]] = {}
    for line in lines:
        if line.others and line.at is not None and not line.period:
            days.setdefault(line.day(zone), []).append(line)
    return {
        day
        for day, of_day in days.items()
        for one, other in combinations(of_day, 2)
        if one.memory_id in other.others or other.memory_id in one.others
    }


def _marks(line: BlockLine, name: Callable[[str], str], zone: tzinfo) -> list[str]:
    """Return what the head of a line says about other lines.

    Args:
        name: returns how the line of a memory is named, or "" if it is not in the block.
    """
    marks = list(line.notes)
    newer = _named(line.replaced_by, name)
    part = "in part " if line.in_part else ""
    if line.until is not None:
        marks.append(f"{part}until {date_of(line.until, zone)[len('Mon ') :]}")
        marks += [f"see {newer}"] if newer else []
    elif line.replaced_by:
        marks.append(f"{part}replaced" + (f" by {newer}" if newer else ""))
    elif line.ended:
        marks.append(f"ended, {UNDATED}")
    if older := _named(line.replaces, name):
        marks.append(f"replaces {older}")
    probable = [one for one in line.contradicts if one in line.probable]
    stated = [one for one in line.contradicts if one not in line.probable]
    for sure, against in (("", stated), ("probably ", probable)):
        if against:
            others = _named(against, name)
            marks.append(f"{sure}contradicts {others}" if others else f"{sure}contradicted")
    if line.changed_by:
        later = _named(line.changed_by, name)
        marks.append("probably changed" + (f" by {later}" if later else ""))
    if earlier := _named(line.changes, name):
        marks.append(f"probably changes {earlier}")
    return marks


def _named(memory_ids: Iterable[str], name: Callable[[str], str]) -> str:
    return " ".join(dict.fromkeys(filter(None, map(name, memory_ids))))


def _number(numbers: Mapping[str, int], memory_id: str) -> str:
    return f"[{numbers[memory_id]}]" if memory_id in numbers else ""


def _listed(line: BlockLine, lines: Sequence[BlockLine], zone: tzinfo) -> str:
    """Return a text as an item of Markdown; marks quote the beginning of the other texts."""
    texts = {other.memory_id: other.text for other in lines}
    marks = _marks(line, lambda one: _beginning(texts[one]) if one in texts else "", zone)
    return one_line(_texts(line)[-1]) + (f" ({', '.join(marks)})" if marks else "")


def _beginning(text: str) -> str:
    words = one_line(text)
    return f"“{words}”" if len(words) <= _QUOTED_CHARS else f"“{words[:_QUOTED_CHARS].rstrip()}…”"


@lru_cache(maxsize=4_096)
def date_of(at: int | None, zone: tzinfo) -> str:
    """Return weekday and date, or that they are unknown."""
    if at is None:
        return UNDATED
    moment = _moment(at, zone)
    return f"{_WEEKDAYS[moment.weekday()]} {moment.date().isoformat()}"


def _moment(at: int, zone: tzinfo) -> datetime:
    moment = _EPOCH + timedelta(milliseconds=at)
    if is_mere_date(at):
        return moment
    try:
        return moment.astimezone(zone)
    except (OverflowError, ValueError):
        # On the first and the last day that a date can have.
        return moment


def as_json(value: Any) -> str:
    """Return a value as one line of JSON in which no text can open or close a mark or a tag."""
    return json.dumps(value, ensure_ascii=False).translate(_IN_JSON)
