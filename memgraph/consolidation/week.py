"""The lines of a weekly reflection: what changed, what was decided and what is open.

Pure and deterministic. A line comes from a mark (an edge, a type, a resolution), quotes memories
and cites their ids; it is cut and escaped, because it may become part of a prompt.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from itertools import zip_longest
from typing import NamedTuple

from memgraph.clock import MS_PER_DAY
from memgraph.model.enums import MemoryKind, MemoryType
from memgraph.model.values import Memory
from memgraph.rules.blocks import cut, escape, flatten
from memgraph.rules.budget import summarise
from memgraph.rules.conversations import ReflectionPeriod, is_done
from memgraph.text.dates import MONTHS

MAX_CHARS = 4_000
MAX_SUMMARY_CHARS = 300
QUOTE_CHARS = 110
QUOTED_ALONE_CHARS = 240
MAX_LINE_CHARS = 400
MAX_LINES = 8


class WeekPart(StrEnum):
    """The sections of a reflection, in order. SAID holds a model's sentences."""

    SAID = "In short"
    CHANGED = "What changed"
    DECIDED = "What was decided"
    OPEN = "What is open"


class WeekLine(NamedTuple):
    """A line, and the memories that it quotes."""

    text: str
    memory_ids: tuple[str, ...]

    @property
    def markdown(self) -> str:
        """The line as an item of a list, with its citations and its newline."""
        cited = "".join(f" [{escape(flatten(memory_id))}]" for memory_id in self.memory_ids)
        return f"- {escape(cut(self.text, MAX_LINE_CHARS))}{cited}\n"


class MemoryPair(NamedTuple):
    """The two memories of an edge, and its weight: below 1 it is a mark, not in force."""

    first: Memory
    other: Memory
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class WeekMaterial:
    """The material of a reflection. Everybody who sees the reflection may see all of it.

    Attributes:
        memories: the facts and turns of the period, the latest first.
        changes: (later, earlier) of the period's Updates edges.
        contradictions: the sides of the open contradictions that were found in the period.
        resolved: (winner, loser) of the contradictions that were resolved in the period.
        tasks: all active goals and todos.
    """

    during: ReflectionPeriod
    now_ms: int
    memories: Sequence[Memory] = ()
    changes: Sequence[MemoryPair] = ()
    contradictions: Sequence[MemoryPair] = ()
    resolved: Sequence[MemoryPair] = ()
    tasks: Sequence[Memory] = ()


@dataclass(frozen=True, slots=True)
class WeekLines:
    """The lines of a reflection by part, with its title."""

    title: str
    lines: Mapping[WeekPart, tuple[WeekLine, ...]]

    @property
    def cited(self) -> tuple[str, ...]:
        """Return the cited ids without duplicates, in the order of the text."""
        lines = (line for part in WeekPart for line in self.lines.get(part, ()))
        return tuple(dict.fromkeys(memory_id for line in lines for memory_id in line.memory_ids))

    @property
    def text(self) -> str:
        """Return the lines as Markdown of at most ``MAX_CHARS`` characters."""
        parts = [f"# {self.title}\n"]
        for part in WeekPart:
            if self.lines.get(part):
                parts.append(f"\n## {part}\n\n")
                parts.extend(line.markdown for line in self.lines[part])
        return "".join(parts)

    @property
    def summary(self) -> str:
        """Return one line with the title and the first entry."""
        first = next((line.text for part in WeekPart for line in self.lines.get(part, ())), "")
        return cut(f"{self.title}: {first}", MAX_SUMMARY_CHARS)

    def without(self, memory_ids: Collection[str]) -> WeekLines:
        """Return a copy without the lines that cite one of ``memory_ids``."""
        remaining = {
            part: tuple(line for line in lines if not set(line.memory_ids) & set(memory_ids))
            for part, lines in self.lines.items()
        }
        return WeekLines(self.title, remaining)


def lines_of(week: WeekMaterial, sentences: Sequence[WeekLine] = ()) -> WeekLines:
    """Return the lines of a week, as many as fit; ``sentences`` are those of a model."""
    changed = [
        _pair(pair, "instead of" if pair.weight >= 1 else "probably instead of")
        for pair in week.changes
    ]
    changed += [_pair(pair, "against") for pair in week.contradictions]
    paired = {memory_id for line in changed for memory_id in line.memory_ids}
    decided = [
        _alone(memory)
        for memory in week.memories
        if memory.kind is MemoryKind.FACT and memory.type is MemoryType.DECISION
    ]
    waiting = [task for task in week.tasks if not is_done(task.tags, task.attributes)]
    offered: dict[WeekPart, Sequence[WeekLine]] = {
        WeekPart.SAID: sentences,
        WeekPart.CHANGED: changed[:MAX_LINES],
        WeekPart.DECIDED: [
            *(_pair(pair, "holds, not") for pair in week.resolved),
            *(line for line in decided if paired.isdisjoint(line.memory_ids)),
        ][:MAX_LINES],
        WeekPart.OPEN: [_open(task, week.now_ms) for task in waiting][:MAX_LINES],
    }
    return _fitting(title(week.during), offered)


def title(during: ReflectionPeriod) -> str:
    """Return the days of a period in UTC, as in ``16 to 22 November 2026``."""
    first, last = (
        datetime.fromtimestamp(ms / 1000, UTC) for ms in (during.since, during.until - 1)
    )
    begin = [str(first.day)]
    if (first.month, first.year) != (last.month, last.year):
        begin.append(MONTHS[first.month - 1])
    if first.year != last.year:
        begin.append(str(first.year))
    return f"{' '.join(begin)} to {last.day} {MONTHS[last.month - 1]} {last.year}"


def _pair(pair: MemoryPair, word: str) -> WeekLine:
    quotes = [f"“{_quote(memory, QUOTE_CHARS)}”" for memory in pair[:2]]
    return WeekLine(f" {word} ".join(quotes), (pair.first.memory_id, pair.other.memory_id))


def _alone(memory: Memory) -> WeekLine:
    return WeekLine(_quote(memory, QUOTED_ALONE_CHARS), (memory.memory_id,))


def _open(task: Memory, now_ms: int) -> WeekLine:
    days = (now_ms - max(task.created_at, task.updated_at)) // MS_PER_DAY
    since = f", for {days} days" if days > 1 else ""
    return WeekLine(f"{_alone(task).text} ({task.type.value}{since})", (task.memory_id,))


def _quote(memory: Memory, limit: int) -> str:
    return cut(memory.summary or summarise(memory.content), limit)


def _fitting(name: str, offered: Mapping[WeekPart, Sequence[WeekLine]]) -> WeekLines:
    """Take one line of each part in turn, until the next would not fit."""
    chosen: dict[WeekPart, list[WeekLine]] = {part: [] for part in WeekPart}
    remaining = MAX_CHARS - len(f"# {name}\n") - sum(len(f"\n## {part}\n\n") for part in WeekPart)
    for row in zip_longest(*(offered[part] for part in WeekPart)):
        for part, line in zip(WeekPart, row, strict=True):
            if line is not None and len(line.markdown) <= remaining:
                remaining -= len(line.markdown)
                chosen[part].append(line)
    return WeekLines(name, {part: tuple(lines) for part, lines in chosen.items()})
