"""The week in lines, without a model: what stood in the middle, what fell out, what is left to do.

Pure and deterministic. Every line quotes memories and cites their ids; it is flattened, cut and
escaped as a bulletin's line is, because it may come to stand in a prompt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from itertools import zip_longest
from math import log2
from typing import NamedTuple

from memgraph.clock import MS_PER_DAY
from memgraph.model.enums import EdgeType, MemoryKind
from memgraph.model.values import Memory
from memgraph.relations.statement import Statement
from memgraph.rules.budget import summarise
from memgraph.rules.bulletin import LayoutEntry, render_line
from memgraph.rules.conversations import ReflectionPeriod, is_finished, is_stale
from memgraph.rules.similarity import jaccard, word_set
from memgraph.text.dates import MONTHS

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
        return [memory for memory in self.memories if memory.kind is MemoryKind.FACT]


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
            memory_id
            for part in DigestPart
            for line in self.lines.get(part, ())
            for memory_id in line.memory_ids
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

    def without(self, memory_ids: Collection[str]) -> WeekDigest:
        """Return the same without the lines that cite one of ``memory_ids``."""
        remaining = {
            part: tuple(line for line in lines if not set(line.memory_ids) & set(memory_ids))
            for part, lines in self.lines.items()
        }
        return WeekDigest(self.title, self.headline, remaining)


def digest(week: WeekMaterial, observations: Sequence[LayoutEntry] = ()) -> WeekDigest:
    """Return the lines of a week, the most telling of each part, as many as fit.

    Args:
        observations: a model's lines about the week; they replace the most central memories.
    """
    paired = [
        (
            DigestPart.CONTRADICTIONS,
            [_pair(memory, "against", other) for memory, other in _of(week, True)],
        ),
        (DigestPart.REPLACED, [_pair(new, "instead of", old) for new, old in _of(week, False)]),
        (DigestPart.FINISHED, _finished(week)),
        (DigestPart.STALE, _stale(week)),
    ]
    cited = {memory for _, lines in paired for line in lines for memory in line.memory_ids}
    first = (
        (DigestPart.SAID, list(observations))
        if observations
        else (DigestPart.CENTRAL, _central(week, cited))
    )
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
    types = Counter(memory.type.value for memory in facts)
    listed = ", ".join(
        _counted(*memory)
        for memory in sorted(types.items(), key=lambda entry: (-entry[1], entry[0]))
    )
    sessions = {memory.session_id for memory in week.memories if memory.session_id is not None}
    number = max(week.total, len(facts))
    begun = _counted("new memory", number)
    if number > len(facts):
        begun += f", the last {len(facts)} looked at"
    where = f" from {_counted('conversation', len(sessions))}" if sessions else ""
    return f"{begun}{where}{f': {listed}' if listed else ''}."


def by_centrality(week: WeekMaterial) -> list[Memory]:
    """Return the facts of the week, the most central first, then its turns, the latest first."""
    ranks = central({memory.memory_id: preference(memory) for memory in week.memories}, week.ties)
    # Rounded: two that the graph does not tell apart are ordered by their ids.
    facts = sorted(
        week.facts, key=lambda memory: (-round(ranks[memory.memory_id], 12), memory.memory_id)
    )
    return facts + [memory for memory in week.memories if memory.kind is MemoryKind.EPISODE]


def preference(memory: Memory) -> float:
    """Return how much a memory counts by itself: importance (at least 1) by confidence, turns a
    tenth.
    """
    share = 1.0 if memory.kind is MemoryKind.FACT else TURN_SHARE
    return share * max(memory.importance, 1) * max(memory.confidence, 0.01)


def _central(week: WeekMaterial, excluded: Collection[str]) -> list[LayoutEntry]:
    lines: list[LayoutEntry] = []
    wordings: list[frozenset[str]] = []
    for memory in by_centrality(week):
        if memory.kind is MemoryKind.EPISODE or len(lines) == MOST_LINES[DigestPart.CENTRAL]:
            break
        words = word_set(Statement.of(memory.content).text)
        if memory.memory_id in excluded or any(jaccard(words, other) > ALIKE for other in wordings):
            continue
        wordings.append(words)
        lines.append(LayoutEntry(_quote(memory, QUOTED_ALONE_CHARS), (memory.memory_id,)))
    return lines


def _of(week: WeekMaterial, contradictions: bool) -> list[tuple[Memory, Memory]]:
    pairs = week.contradictions if contradictions else week.replaced
    return sorted(
        pairs,
        key=lambda pair: (
            -max(each.importance for each in pair),
            *(memory.memory_id for memory in pair),
        ),
    )


def _finished(week: WeekMaterial) -> list[LayoutEntry]:
    done = [
        task
        for task in week.tasks
        if is_finished(task.type, task.tags, task.attributes, _touched(task), week.during)
    ]
    done.sort(key=lambda task: (-task.importance, task.memory_id))
    return [LayoutEntry(_quote(task, QUOTED_ALONE_CHARS), (task.memory_id,)) for task in done]


def _stale(week: WeekMaterial) -> list[LayoutEntry]:
    stale = [
        task
        for task in week.tasks
        if is_stale(task.type, task.tags, task.attributes, _touched(task), week.now_ms)
    ]
    stale.sort(key=lambda task: (-task.importance, _touched(task), task.memory_id))
    lines = []
    for task in stale:
        days = (week.now_ms - _touched(task)) // MS_PER_DAY
        text = f"{_quote(task, QUOTED_ALONE_CHARS)} ({task.type.value}, untouched for {days} days)"
        lines.append(LayoutEntry(text, (task.memory_id,)))
    return lines


def _pair(memory: Memory, word: str, other: Memory) -> LayoutEntry:
    text = f"{_marked(memory)} {word} {_marked(other)}"
    return LayoutEntry(text, (memory.memory_id, other.memory_id))


def _marked(memory: Memory) -> str:
    """Return a memory in quotation marks; a quotation has its own."""
    text = _quote(memory, QUOTE_CHARS)
    return text if Statement.of(memory.content).speaker else f"“{text}”"


def _quote(memory: Memory, limit: int) -> str:
    return _cut(memory.summary or summarise(memory.content), limit)


def _cut(text: str, limit: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def _touched(memory: Memory) -> int:
    return max(memory.created_at, memory.updated_at)


def _counted(name: str, number: int) -> str:
    """``1 fact``, ``2 memories``."""
    singular = name.lower()
    many = f"{singular[:-1]}ies" if singular.endswith("y") else f"{singular}s"
    return f"{number} {singular if number == 1 else many}"


def _fitting(frame: WeekDigest, offered: Mapping[DigestPart, Sequence[LayoutEntry]]) -> WeekDigest:
    """One line of each part in turn, until one would not fit."""
    chosen: dict[DigestPart, list[LayoutEntry]] = {part: [] for part in DigestPart}
    remaining = MAX_CHARS - len(frame.text) - sum(len(f"\n## {part}\n\n") for part in DigestPart)
    for row in zip_longest(*(offered.get(part, ()) for part in DigestPart)):
        for part, line in zip(DigestPart, row, strict=True):
            if line is None:
                continue
            remaining -= len(render_line(line, MAX_LINE_CHARS))
            if remaining < 0:
                break
            chosen[part].append(line)
    lines = {part: tuple(entries) for part, entries in chosen.items()}
    return WeekDigest(frame.title, frame.headline, lines)


# A contradiction or a replacement says the most about a week, mere kinship the least.
EDGE_WEIGHTS: Mapping[EdgeType, float] = {
    EdgeType.CONTRADICTS: 1.0,
    EdgeType.UPDATES: 1.0,
    EdgeType.CAUSED_BY: 0.8,
    EdgeType.PART_OF: 0.8,
    EdgeType.RELATED_TO: 0.5,
}
DERIVATION_WEIGHT = 0.5
DAMPING = 0.85
ROUNDS = 50


class WeightedEdge(NamedTuple):
    """Two nodes and how strongly they are joined; it has no direction."""

    one: str
    other: str
    weight: float


def edge_ties(edges: Iterable[tuple[str, str, EdgeType, float]]) -> list[WeightedEdge]:
    """Edges (from, to, type, weight 0..1) as ties."""
    return [
        WeightedEdge(first, second, EDGE_WEIGHTS[kind] * weight)
        for first, second, kind, weight in edges
    ]


def derivation_ties(pairs: Iterable[tuple[str, str]]) -> list[WeightedEdge]:
    return [WeightedEdge(first, second, DERIVATION_WEIGHT) for first, second in pairs]


def entity_ties(links: Iterable[tuple[str, str]]) -> list[WeightedEdge]:
    """Links (entity, memory) as ties; the more memories name an entity, the less each tie tells.

    Weight: 1 / log2(1 + n), where n >= 2 memories name it; one that a single memory names joins
    nothing.
    """
    by_entity: dict[str, list[str]] = {}
    for entity, memory_id in links:
        by_entity.setdefault(entity, []).append(memory_id)
    return [
        WeightedEdge(f"entity:{entity}", memory, 1.0 / log2(1 + len(memories)))
        for entity, memories in by_entity.items()
        if len(memories) > 1
        for memory in memories
    ]


def central(preference: Mapping[str, float], ties: Sequence[WeightedEdge]) -> dict[str, float]:
    """Return the centrality of each node; the values of all nodes and entities add up to 1.

    Source: Page, Brin, Motwani, Winograd, "The PageRank Citation Ranking", 1998; personalised: the
    walk begins anew at a memory with the chance of its preference.

    Args:
        preference: the memories, each with a value >= 0; not all 0.
        ties: between memories and entities; those with an unknown end that is no entity do nothing.

    Returns:
        The memories of ``preference`` alone.
    """
    total = sum(preference[memory_id] for memory_id in sorted(preference))
    if total <= 0.0:
        return dict.fromkeys(preference, 0.0)
    places = {
        tie
        for tie in ties
        if tie.weight > 0.0
        and tie.other in preference
        and (tie.one in preference or tie.one.startswith("entity:"))
    }
    nodes = sorted({*preference, *(tie.one for tie in places)})
    place = {node: index for index, node in enumerate(nodes)}
    joined = [(place[tie.one], place[tie.other], tie.weight) for tie in sorted(places)]
    strength = [0.0] * len(nodes)
    for first, second, weight in joined:
        strength[first] += weight
        strength[second] += weight
    begin = [preference.get(node, 0.0) / total for node in nodes]
    rank = begin
    for _ in range(ROUNDS):
        # What has no ties gives its share back to the beginning.
        lost = sum(rank[index] for index, memory_id in enumerate(strength) if memory_id == 0.0)
        following = [(1.0 - DAMPING + DAMPING * lost) * memory_id for memory_id in begin]
        for first, second, weight in joined:
            following[second] += DAMPING * rank[first] * weight / strength[first]
            following[first] += DAMPING * rank[second] * weight / strength[second]
        rank = following
    return {node: rank[place[node]] for node in preference}
