"""Write the weekly digest without a model: central facts, changes, and finished and stale tasks.

Pure and deterministic. Every line quotes memories and cites their ids. It is
flattened, cut and escaped, because it may become part of a prompt.
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
from memgraph.rules.blocks import cut, escape, flatten
from memgraph.rules.budget import summarise
from memgraph.rules.conversations import ReflectionPeriod, is_finished, is_stale
from memgraph.rules.similarity import jaccard, word_set
from memgraph.text.dates import MONTHS

MAX_CHARS = 4_000
MAX_SUMMARY_CHARS = 300
# The maximum length of one quotation; a line may contain two.
QUOTE_CHARS = 110
QUOTED_ALONE_CHARS = 240
MAX_LINE_CHARS = 400
# Facts with a higher word overlap (Jaccard) than this count as repetitions.
ALIKE = 0.5
# Turns are not quoted, but they add weight to the facts derived from them.
TURN_SHARE = 0.1


class DigestLine(NamedTuple):
    """A line of a digest, and the memories that it quotes."""

    text: str
    memory_ids: tuple[str, ...]

    @property
    def markdown(self) -> str:
        """The line as an item of a list, with its citations and its newline."""
        cited = "".join(f" [{escape(flatten(memory_id))}]" for memory_id in self.memory_ids)
        return f"- {escape(cut(self.text, MAX_LINE_CHARS))}{cited}\n"


class DigestPart(StrEnum):
    """The sections of a digest, in order. SAID holds a model's sentences and replaces CENTRAL."""

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
    """The material of a reflection. Everybody who sees the reflection may see all of it.

    Attributes:
        memories: the facts and turns of the period.
        ties: weighted edges between the memories and their entities.
        contradictions: pairs of memories whose open contradiction was found in the period.
        replaced: pairs (new, old) of memories that were replaced in the period.
        tasks: all active goals and todos.
        total: the number of facts of the period, if ``memories`` holds only a part of them.
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
    """The lines of a reflection by part, with a title and a headline.

    Attributes:
        headline: one line about the whole week, without citations.
    """

    title: str
    headline: str
    lines: Mapping[DigestPart, tuple[DigestLine, ...]] = field(default_factory=dict)

    @property
    def cited(self) -> tuple[str, ...]:
        """Return the cited ids without duplicates, in the order of the text."""
        every = (
            memory_id
            for part in DigestPart
            for line in self.lines.get(part, ())
            for memory_id in line.memory_ids
        )
        return tuple(dict.fromkeys(every))

    @property
    def text(self) -> str:
        """Return the digest as Markdown of at most ``MAX_CHARS`` characters."""
        parts = [f"# {self.title}\n\n{self.headline}\n"]
        for part in DigestPart:
            if self.lines.get(part):
                parts.append(f"\n## {part}\n\n")
                parts.extend(line.markdown for line in self.lines[part])
        return "".join(parts)

    @property
    def summary(self) -> str:
        """Return one line with the title, the headline and the first entry."""
        first = next((line.text for part in DigestPart for line in self.lines.get(part, ())), "")
        return _cut(f"{self.title}: {self.headline} {first}", MAX_SUMMARY_CHARS)

    def without(self, memory_ids: Collection[str]) -> WeekDigest:
        """Return a copy without the lines that cite one of ``memory_ids``."""
        remaining = {
            part: tuple(line for line in lines if not set(line.memory_ids) & set(memory_ids))
            for part, lines in self.lines.items()
        }
        return WeekDigest(self.title, self.headline, remaining)


def digest(week: WeekMaterial, observations: Sequence[DigestLine] = ()) -> WeekDigest:
    """Return the digest of a week: the most important lines of each part, as many as fit.

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


def headline(week: WeekMaterial) -> str:
    """Describe the number of new memories, by type, and of their conversations."""
    facts = week.facts
    types = Counter(memory.type.value for memory in facts)
    listed = ", ".join(
        _counted(*memory)
        for memory in sorted(types.items(), key=lambda entry: (-entry[1], entry[0]))
    )
    sessions = {memory.session_id for memory in week.memories if memory.session_id is not None}
    number = max(week.total, len(facts))
    total = _counted("new memory", number)
    if number > len(facts):
        total += f", of which the last {len(facts)} were examined"
    where = f" from {_counted('conversation', len(sessions))}" if sessions else ""
    return f"{total}{where}{f': {listed}' if listed else ''}."


def by_centrality(week: WeekMaterial) -> list[Memory]:
    """Return the facts of the week, most central first, then its turns, latest first."""
    ranks = central({memory.memory_id: preference(memory) for memory in week.memories}, week.ties)
    # Rounded, so that facts of equal centrality are ordered by their ids.
    facts = sorted(
        week.facts, key=lambda memory: (-round(ranks[memory.memory_id], 12), memory.memory_id)
    )
    return facts + [memory for memory in week.memories if memory.kind is MemoryKind.EPISODE]


def preference(memory: Memory) -> float:
    """Return a memory's own weight: importance (at least 1) times confidence; a tenth for turns."""
    share = 1.0 if memory.kind is MemoryKind.FACT else TURN_SHARE
    return share * max(memory.importance, 1) * max(memory.confidence, 0.01)


def _central(week: WeekMaterial, excluded: Collection[str]) -> list[DigestLine]:
    lines: list[DigestLine] = []
    wordings: list[frozenset[str]] = []
    for memory in by_centrality(week):
        if memory.kind is MemoryKind.EPISODE or len(lines) == MOST_LINES[DigestPart.CENTRAL]:
            break
        words = word_set(Statement.of(memory.content).text)
        if memory.memory_id in excluded or any(jaccard(words, other) > ALIKE for other in wordings):
            continue
        wordings.append(words)
        lines.append(DigestLine(_quote(memory, QUOTED_ALONE_CHARS), (memory.memory_id,)))
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


def _finished(week: WeekMaterial) -> list[DigestLine]:
    done = [
        task
        for task in week.tasks
        if is_finished(task.type, task.tags, task.attributes, _touched(task), week.during)
    ]
    done.sort(key=lambda task: (-task.importance, task.memory_id))
    return [DigestLine(_quote(task, QUOTED_ALONE_CHARS), (task.memory_id,)) for task in done]


def _stale(week: WeekMaterial) -> list[DigestLine]:
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
        lines.append(DigestLine(text, (task.memory_id,)))
    return lines


def _pair(memory: Memory, word: str, other: Memory) -> DigestLine:
    text = f"{_marked(memory)} {word} {_marked(other)}"
    return DigestLine(text, (memory.memory_id, other.memory_id))


def _marked(memory: Memory) -> str:
    """Return the text of a memory in quotation marks, unless it is already a quotation."""
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
    """Return a number with its noun, as in ``1 fact`` and ``2 memories``."""
    singular = name.lower()
    plural = f"{singular[:-1]}ies" if singular.endswith("y") else f"{singular}s"
    return f"{number} {singular if number == 1 else plural}"


def _fitting(frame: WeekDigest, offered: Mapping[DigestPart, Sequence[DigestLine]]) -> WeekDigest:
    """Fill the digest with one line of each part in turn, until the next would not fit."""
    chosen: dict[DigestPart, list[DigestLine]] = {part: [] for part in DigestPart}
    remaining = MAX_CHARS - len(frame.text) - sum(len(f"\n## {part}\n\n") for part in DigestPart)
    for row in zip_longest(*(offered.get(part, ()) for part in DigestPart)):
        for part, line in zip(DigestPart, row, strict=True):
            if line is None:
                continue
            remaining -= len(line.markdown)
            if remaining < 0:
                break
            chosen[part].append(line)
    lines = {part: tuple(entries) for part, entries in chosen.items()}
    return WeekDigest(frame.title, frame.headline, lines)


# Contradictions and replacements matter most in a digest, related memories least.
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
    """An undirected, weighted edge between two nodes."""

    one: str
    other: str
    weight: float


def edge_ties(edges: Iterable[tuple[str, str, EdgeType, float]]) -> list[WeightedEdge]:
    """Convert edges (from, to, type, weight 0..1) to weighted edges."""
    return [
        WeightedEdge(first, second, EDGE_WEIGHTS[kind] * weight)
        for first, second, kind, weight in edges
    ]


def derivation_ties(pairs: Iterable[tuple[str, str]]) -> list[WeightedEdge]:
    return [WeightedEdge(first, second, DERIVATION_WEIGHT) for first, second in pairs]


def entity_ties(links: Iterable[tuple[str, str]]) -> list[WeightedEdge]:
    """Convert links (entity, memory) to weighted edges.

    The weight is 1 / log2(1 + n) for an entity that n >= 2 memories name: frequent entities say
    less. An entity that only one memory names is ignored.
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

    Source: Page, Brin, Motwani, Winograd, "The PageRank Citation Ranking", 1998, personalised: the
    walk restarts at a memory with a probability proportional to its preference.

    Args:
        preference: a value >= 0 for each memory; if all are 0, so are the results.
        ties: edges between memories and entities; edges to unknown memories are ignored.

    Returns:
        The centrality of the memories in ``preference``, without the entities.
    """
    total = sum(preference[strength_of] for strength_of in sorted(preference))
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
        # Nodes without edges return their rank to the restart distribution.
        lost = sum(rank[index] for index, strength_of in enumerate(strength) if strength_of == 0.0)
        following = [(1.0 - DAMPING + DAMPING * lost) * strength_of for strength_of in begin]
        for first, second, weight in joined:
            following[second] += DAMPING * rank[first] * weight / strength[first]
            following[first] += DAMPING * rank[second] * weight / strength[second]
        rank = following
    return {node: rank[place[node]] for node in preference}
