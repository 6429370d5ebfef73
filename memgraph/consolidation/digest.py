"""The week in lines, without a model: what stood in the middle, what fell out, what is left to do.

Pure and deterministic. Every line quotes memories and cites their ids; it is flattened, cut and
escaped as a bulletin's line is, because it may come to stand in a prompt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from itertools import zip_longest

from memgraph.clock import MS_PER_DAY
from memgraph.consolidation.centrality import WeightedEdge, central
from memgraph.model.enums import MemoryKind
from memgraph.model.values import Memory
from memgraph.relations.statement import Statement
from memgraph.rules.budget import summarise
from memgraph.rules.bulletin import LayoutEntry, render_line
from memgraph.rules.dedup import jaccard, word_set
from memgraph.rules.reflection import ReflectionPeriod, is_finished, is_stale
from memgraph.text.periods import MONTHS

MAX_CHARS = 4_000
MAX_SUMMARY_CHARS = 300
# Of one memory in a line; a line may tell of two.
QUOTE_CHARS = 110
QUOTED_ALONE_CHARS = 240
MAX_LINE_CHARS = 400
# Two that share more of their words than that say one thing twice.
ALIKE = 0.5
# A turn lends weight to what came of it; it is not quoted.
TURN_SHARE = 0.1


class DigestPart(StrEnum):
    """In the order in which they are written. SAID: a model's sentences, in place of CENTRAL."""

    SAID = "In short"
    CENTRAL = "What it was about"
    CONTRADICTIONS = "Contradictions to decide"
    REPLACED = "What changed"
    FINISHED = "Done"
    STALE = "Still waiting"


MOST_LINES: Mapping[DigestPart, int] = {
    DigestPart.SAID: 20,
    DigestPart.CENTRAL: 8,
    DigestPart.CONTRADICTIONS: 5,
    DigestPart.REPLACED: 5,
    DigestPart.FINISHED: 5,
    DigestPart.STALE: 5,
}


@dataclass(frozen=True, slots=True)
class WeekMaterial:
    """The material of a reflection; all of it may be shown to whoever sees the reflection.

    Attributes:
        memories: of the period, facts and turns.
        ties: what joins them, and the entities between them.
        contradictions: open ones that were found in the period, each with both sides.
        replaced: what took the place of another in the period, each with what it replaced.
        tasks: active goals and todos, of any time.
        total: how many facts the period brought, should they be more than ``memories`` holds.
    """

    during: ReflectionPeriod
    now_ms: int
    memories: Sequence[Memory]
    ties: Sequence[WeightedEdge] = ()
    contradictions: Sequence[tuple[Memory, Memory]] = ()
    replaced: Sequence[tuple[Memory, Memory]] = ()
    tasks: Sequence[Memory] = ()
    total: int = 0

    @property
    def facts(self) -> list[Memory]:
        return [each for each in self.memories if each.kind is MemoryKind.FACT]


@dataclass(frozen=True, slots=True)
class WeekDigest:
    """The lines of a reflection by part, and what stands above them.

    Attributes:
        headline: one line about the week as a whole; cites nothing.
    """

    title: str
    headline: str
    lines: Mapping[DigestPart, tuple[LayoutEntry, ...]] = field(default_factory=dict)

    @property
    def cited(self) -> tuple[str, ...]:
        """Every id, once, in the order of the text."""
        every = (
            one
            for part in DigestPart
            for line in self.lines.get(part, ())
            for one in line.memory_ids
        )
        return tuple(dict.fromkeys(every))

    @property
    def text(self) -> str:
        """Markdown, at most ``MAX_CHARS`` characters."""
        parts = [f"# {self.title}\n\n{self.headline}\n"]
        for part in DigestPart:
            if self.lines.get(part):
                parts.append(f"\n## {part}\n\n")
                parts.extend(render_line(line, MAX_LINE_CHARS) for line in self.lines[part])
        return "".join(parts)

    @property
    def summary(self) -> str:
        """One line: when, how much, and what stood first."""
        first = next((line.text for part in DigestPart for line in self.lines.get(part, ())), "")
        return _cut(f"{self.title}: {self.headline} {first}", MAX_SUMMARY_CHARS)

    def without(self, gone: Collection[str]) -> WeekDigest:
        """The same without the lines that cite one of ``gone``."""
        kept = {
            part: tuple(line for line in lines if not set(line.memory_ids) & set(gone))
            for part, lines in self.lines.items()
        }
        return WeekDigest(self.title, self.headline, kept)


def digest(week: WeekMaterial, said: Sequence[LayoutEntry] = ()) -> WeekDigest:
    """The lines of a week, the most telling of each part, as many as fit.

    Args:
        said: what a model made of the week; it stands in place of the most central memories.
    """
    paired = [
        (
            DigestPart.CONTRADICTIONS,
            [_pair(one, "against", other) for one, other in _of(week, True)],
        ),
        (DigestPart.REPLACED, [_pair(new, "instead of", old) for new, old in _of(week, False)]),
        (DigestPart.FINISHED, _finished(week)),
        (DigestPart.STALE, _stale(week)),
    ]
    told = {one for _, lines in paired for line in lines for one in line.memory_ids}
    first = (DigestPart.SAID, list(said)) if said else (DigestPart.CENTRAL, _central(week, told))
    offered = dict([first, *paired])
    cut = {part: lines[: MOST_LINES[part]] for part, lines in offered.items()}
    return _fitting(WeekDigest(title(week.during), headline(week)), cut)


def title(during: ReflectionPeriod) -> str:
    """``16 to 22 November 2026``: the days of a period, UTC."""
    first, last = (
        datetime.fromtimestamp(ms / 1000, UTC) for ms in (during.since, during.until - 1)
    )
    begin = [str(first.day)]
    if (first.month, first.year) != (last.month, last.year):
        begin.append(MONTHS[first.month - 1])
    if first.year != last.year:
        begin.append(str(first.year))
    return f"{' '.join(begin)} to {last.day} {MONTHS[last.month - 1]} {last.year}"


def headline(week: WeekMaterial) -> str:
    """Return how many memories of which type came, and from how many conversations."""
    facts = week.facts
    types = Counter(each.type.value for each in facts)
    listed = ", ".join(_counted(*each) for each in sorted(types.items(), key=_most_first))
    sessions = {each.session_id for each in week.memories if each.session_id is not None}
    number = max(week.total, len(facts))
    begun = _counted("new memory", number)
    if number > len(facts):
        begun += f", the last {len(facts)} looked at"
    where = f" from {_counted('conversation', len(sessions))}" if sessions else ""
    return f"{begun}{where}{f': {listed}' if listed else ''}."


def by_centrality(week: WeekMaterial) -> list[Memory]:
    """The facts of the week, the most central first, then its turns, the latest first."""
    ranks = central({each.memory_id: preference(each) for each in week.memories}, week.ties)
    # Rounded: two that the graph does not tell apart are ordered by their ids.
    facts = sorted(week.facts, key=lambda each: (-round(ranks[each.memory_id], 12), each.memory_id))
    return facts + [each for each in week.memories if each.kind is MemoryKind.EPISODE]


def preference(one: Memory) -> float:
    """Return how much a memory counts by itself: importance (at least 1) by confidence, turns a
    tenth.
    """
    share = 1.0 if one.kind is MemoryKind.FACT else TURN_SHARE
    return share * max(one.importance, 1) * max(one.confidence, 0.01)


def _central(week: WeekMaterial, told: Collection[str]) -> list[LayoutEntry]:
    lines: list[LayoutEntry] = []
    said: list[frozenset[str]] = []
    for each in by_centrality(week):
        if each.kind is MemoryKind.EPISODE or len(lines) == MOST_LINES[DigestPart.CENTRAL]:
            break
        words = word_set(Statement.of(each.content).text)
        if each.memory_id in told or any(jaccard(words, other) > ALIKE for other in said):
            continue
        said.append(words)
        lines.append(LayoutEntry(_quote(each, QUOTED_ALONE_CHARS), (each.memory_id,)))
    return lines


def _of(week: WeekMaterial, contradictions: bool) -> list[tuple[Memory, Memory]]:
    found = week.contradictions if contradictions else week.replaced
    return sorted(
        found,
        key=lambda pair: (-max(each.importance for each in pair), *(one.memory_id for one in pair)),
    )


def _finished(week: WeekMaterial) -> list[LayoutEntry]:
    done = [
        each
        for each in week.tasks
        if is_finished(each.type, each.tags, each.attributes, _touched(each), week.during)
    ]
    done.sort(key=lambda each: (-each.importance, each.memory_id))
    return [LayoutEntry(_quote(each, QUOTED_ALONE_CHARS), (each.memory_id,)) for each in done]


def _stale(week: WeekMaterial) -> list[LayoutEntry]:
    stale = [
        each
        for each in week.tasks
        if is_stale(each.type, each.tags, each.attributes, _touched(each), week.now_ms)
    ]
    stale.sort(key=lambda each: (-each.importance, _touched(each), each.memory_id))
    lines = []
    for each in stale:
        days = (week.now_ms - _touched(each)) // MS_PER_DAY
        text = f"{_quote(each, QUOTED_ALONE_CHARS)} ({each.type.value}, untouched for {days} days)"
        lines.append(LayoutEntry(text, (each.memory_id,)))
    return lines


def _pair(one: Memory, word: str, other: Memory) -> LayoutEntry:
    text = f"{_marked(one)} {word} {_marked(other)}"
    return LayoutEntry(text, (one.memory_id, other.memory_id))


def _marked(one: Memory) -> str:
    """Return a memory in quotation marks; a quotation has its own."""
    text = _quote(one, QUOTE_CHARS)
    return text if Statement.of(one.content).speaker else f"“{text}”"


def _quote(one: Memory, limit: int) -> str:
    return _cut(one.summary or summarise(one.content), limit)


def _cut(text: str, limit: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def _touched(one: Memory) -> int:
    return max(one.created_at, one.updated_at)


def _counted(name: str, number: int) -> str:
    """``1 fact``, ``2 memories``."""
    one = name.lower()
    many = f"{one[:-1]}ies" if one.endswith("y") else f"{one}s"
    return f"{number} {one if number == 1 else many}"


def _most_first(entry: tuple[str, int]) -> tuple[int, str]:
    return -entry[1], entry[0]


def _fitting(frame: WeekDigest, offered: Mapping[DigestPart, Sequence[LayoutEntry]]) -> WeekDigest:
    """One line of each part in turn, until one would not fit."""
    chosen: dict[DigestPart, list[LayoutEntry]] = {part: [] for part in DigestPart}
    left = MAX_CHARS - len(frame.text) - sum(len(f"\n## {part}\n\n") for part in DigestPart)
    for row in zip_longest(*(offered.get(part, ()) for part in DigestPart)):
        for part, line in zip(DigestPart, row, strict=True):
            if line is None:
                continue
            left -= len(render_line(line, MAX_LINE_CHARS))
            if left < 0:
                break
            chosen[part].append(line)
    lines = {part: tuple(each) for part, each in chosen.items()}
    return WeekDigest(frame.title, frame.headline, lines)
