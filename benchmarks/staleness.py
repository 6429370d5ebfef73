"""``memgraph bench staleness``: whether what holds now is found before what held once.

The public interface with default settings and a clock that is moved from event to event; the
histories are those of ``benchmarks.histories``. Relations are stated by the writer. How
many of them the library finds by itself, in texts that come as files, is told apart.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.histories import (
    DISTRACTOR,
    MAX_HISTORIES,
    Action,
    Check,
    Event,
    History,
    Kind,
    histories,
)
from benchmarks.playing import World, by_day, moment
from memgraph.clock import FixedClock
from memgraph.errors import InvalidInput
from memgraph.ids import CountingIds
from memgraph.model.enums import EdgeType
from memgraph.model.recall import Bundle
from memgraph.model.sources import Document
from memgraph.model.values import MemoryInput
from memgraph.operations.orchestrator import Orchestrator
from memgraph.service.memory_service import MemoryService

CUTOFFS = (1, 3, 10)
UNCHANGED = "unchanged"
# How often something stale is there to compete with what holds: neither good nor bad.
CONTEST = "superseded_shown"
_FOUND_BY_RULES = {
    Action.REPLACE: EdgeType.UPDATES,
    Action.CORRECT: EdgeType.UPDATES,
    Action.AMEND: EdgeType.UPDATES,
    Action.DISPUTE: EdgeType.CONTRADICTS,
}


@dataclass(frozen=True, slots=True)
class Measured:
    """One figure for one question: whether it came out as it should."""

    measure: str
    good: bool


@dataclass(frozen=True, slots=True)
class Answered:
    """A question with what was shown of its history.

    Attributes:
        shown: keys of the history's own memories in the order of the bundle, with their ranks.
    """

    history: History
    check: Check
    mode: str
    shown: tuple[tuple[str, int], ...]
    measured: tuple[Measured, ...]

    @property
    def failed(self) -> tuple[str, ...]:
        return tuple(
            each.measure for each in self.measured if not each.good and each.measure != CONTEST
        )

    def told(self) -> dict[str, Any]:
        """A failure, in full."""
        check = {name: value for name, value in asdict(self.check).items() if value}
        texts = {each.key: each.text for each in self.history.events if each.text}
        return {
            "history": self.history.name,
            "kind": str(self.history.kind),
            "failed": list(self.failed),
            "mode": self.mode,
            **check,
            "shown": [f"{rank}: {key}" for key, rank in self.shown],
            "texts": texts,
        }


def run(
    count: int = 120,
    seed: int = 1,
    *,
    apart: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Play histories, ask their questions and score the answers.

    Args:
        count: number of histories, 1..300.
        apart: every history in an orchestrator of its own; else all of them in one.

    Returns:
        Shares of the questions: ``stale_above`` and ``stale_above_with_superseded`` (something
        stale stands above what holds, or is shown without it), ``superseded_shown`` (how often
        there is something stale to be compared), ``current@1``, ``current@3``, ``current@10``,
        ``kept@3`` (what a partial update left as it was), ``unchanged@1``, ``unchanged@3`` (the
        answers to questions about facts that nothing changed), ``open_both_sides``,
        ``resolved_unmarked``, ``as_of``; the same ``by_kind`` and ``by_wording`` with the number of
        questions; ``detected``; ``failures`` of facts that changed, in full.

    Raises:
        InvalidInput: ``count`` out of range.
    """
    if not 1 <= count <= MAX_HISTORIES:
        raise InvalidInput(f"the number of histories lies in 1..{MAX_HISTORIES}", histories=count)
    scripts = histories(count, seed)
    groups = [[each] for each in scripts] if apart else [scripts]
    answers: list[Answered] = []
    memories = 0
    clock = FixedClock()
    with (
        tempfile.TemporaryDirectory(prefix="memgraph-bench-") as root,
        MemoryService(
            root, clock=clock, ids=CountingIds(), environ={}, background=False
        ) as service,
    ):
        for at, group in enumerate(groups):
            progress(f"{len(group)} histories from {group[0].name} on")
            world = World(service.orchestrator(f"bench-{at}", create=True), clock)
            world.play(group)
            memories += sum(world.memory.maintenance.stats()["memories"]["kind"].values())
            answers.extend(each for history in group for each in ask(world, history))
        progress("relations found without being told")
        found = detected(service.orchestrator("detected", create=True), clock, scripts)
    return {
        **_shares(answers),
        "by_kind": {
            str(kind): _shares([each for each in answers if each.history.kind is kind])
            for kind in Kind
        },
        "by_wording": {
            name: _shares([each for each in answers if each.history.terse is terse])
            for name, terse in (("named", False), ("terse", True))
        },
        "detected": found,
        "histories": count,
        "memories": memories,
        "seed": seed,
        "apart": apart,
        "failures": [each.told() for each in answers if each.failed and each.mode != UNCHANGED],
    }


def ask(world: World, history: History) -> Iterator[Answered]:
    """The answers to the questions of a history, in each mode that tells something of them."""
    for check in history.checks:
        if check.as_of is not None:
            bundle = world.memory.recall(check.question, as_of=moment(check.as_of))
            yield _answered(world, history, check, "as_of", bundle)
            continue
        bundle = world.memory.recall(check.question)
        yield _answered(world, history, check, "default", bundle)
        if check.stale:
            bundle = world.memory.recall(check.question, include_superseded=True)
            yield _answered(world, history, check, "with_superseded", bundle)
    for event in history.distractors:
        if event.question:
            bundle = world.memory.recall(event.question)
            yield _unchanged(world, history, event, bundle)


def _unchanged(world: World, history: History, event: Event, bundle: Bundle) -> Answered:
    memory_id = world.ids[history.name, event.key]
    rank = bundle.ids.index(memory_id) + 1 if memory_id in bundle.ids else None
    measured = tuple(
        Measured(f"unchanged@{cutoff}", rank is not None and rank <= cutoff)
        for cutoff in CUTOFFS[:2]
    )
    check = Check(event.question, event.key)
    return Answered(history, check, UNCHANGED, ((event.key, rank or 0),), measured)


def _answered(world: World, history: History, check: Check, mode: str, bundle: Bundle) -> Answered:
    keys = {one: key for (name, key), one in world.ids.items() if name == history.name}
    shown = {
        keys[one]: rank
        for rank, one in enumerate(bundle.ids, start=1)
        if one in keys and not keys[one].startswith(DISTRACTOR)
    }
    marks = {
        keys[item.memory.memory_id]: {keys.get(one, one) for one in item.contradicted_by}
        for item in bundle.items
        if item.memory.memory_id in keys
    }
    scored = tuple(_SCORES[mode](check, shown, marks))
    return Answered(history, check, mode, tuple(shown.items()), scored)


Shown = Mapping[str, int]
Marks = Mapping[str, set[str]]


def stale_above(check: Check, shown: Shown) -> bool:
    """Whether something stale stands above what holds, or is shown without it."""
    first = shown.get(check.current or "")
    ranks = [shown[key] for key in check.stale if key in shown]
    return bool(ranks) and (first is None or min(ranks) < first)


def both_sides(check: Check, shown: Shown, marks: Marks) -> bool:
    """Whether an open contradiction is shown with both sides, each marked with the other."""
    one, other = check.current or "", check.disputed_by or ""
    there = one in shown and other in shown
    return there and other in marks[one] and one in marks[other]


def _score_default(check: Check, shown: Shown, marks: Marks) -> Iterator[Measured]:
    if check.disputed_by is not None:
        yield Measured("open_both_sides", both_sides(check, shown, marks))
        return
    if not check.stale:
        yield Measured("kept@3", shown.get(check.current or "", 99) <= 3)
        return
    yield Measured("stale_above", not stale_above(check, shown))
    if check.current is not None:
        rank = shown.get(check.current)
        for cutoff in CUTOFFS:
            yield Measured(f"current@{cutoff}", rank is not None and rank <= cutoff)
    if check.decided:
        yield Measured("resolved_unmarked", not any(marks.values()))


def _score_with_superseded(check: Check, shown: Shown, marks: Marks) -> Iterator[Measured]:
    yield Measured("stale_above_with_superseded", not stale_above(check, shown))
    if check.current is not None:
        yield Measured(CONTEST, any(key in shown for key in check.stale))
    if check.decided:
        yield Measured("resolved_unmarked", not any(marks.values()))


def _score_as_of(check: Check, shown: Shown, marks: Marks) -> Iterator[Measured]:
    """What held then comes first, and nothing is shown that came later."""
    expected = {check.current, check.disputed_by} - {None}
    first = next(iter(shown), None)
    good = first in expected and not any(key in shown for key in check.later)
    if check.disputed_by is not None:
        good = good and both_sides(check, shown, marks)
    else:
        good = good and not any(marks.values())
    yield Measured("as_of", good)


_SCORES: Mapping[str, Callable[[Check, Shown, Marks], Iterator[Measured]]] = {
    "default": _score_default,
    "with_superseded": _score_with_superseded,
    "as_of": _score_as_of,
}
# Of these the share that failed is told, of all others the share that came out well.
FAILURES = ("stale_above", "stale_above_with_superseded")
MEASURES = (
    *FAILURES,
    CONTEST,
    *(f"current@{cutoff}" for cutoff in CUTOFFS),
    "kept@3",
    *(f"unchanged@{cutoff}" for cutoff in CUTOFFS[:2]),
    "open_both_sides",
    "resolved_unmarked",
    "as_of",
)
COUNTS = ("detected", "histories", "memories", "seed", "apart")


def _shares(answers: Sequence[Answered]) -> dict[str, Any]:
    """Each figure as a share, None where nothing was asked for it; ``questions`` counts answers."""
    good: Counter[str] = Counter()
    asked: Counter[str] = Counter()
    for each in (one for answer in answers for one in answer.measured):
        asked[each.measure] += 1
        good[each.measure] += each.good
    shares: dict[str, Any] = {}
    for name in MEASURES:
        count = asked[name] - good[name] if name in FAILURES else good[name]
        shares[name] = round(count / asked[name], 4) if asked[name] else None
    return {**shares, "questions": len(answers)}


def detected(memory: Orchestrator, clock: FixedClock, scripts: Sequence[History]) -> dict[str, Any]:
    """What the library finds of the same changes by itself, when every text comes as a file.

    Returns:
        For ``Updates`` and ``Contradicts``: how many changes of that sort there were (``stated``),
        how many got such an edge (``found``), and how many other edges of that type were made
        (``other``).
    """
    world = World(memory, clock)
    made: dict[frozenset[str], set[str]] = {}
    for history, event in by_day(scripts):
        if event.text:
            world.move_to(event.day)
            world.ids[history.name, event.key] = _as_file(memory, history, event)
    memory.settle()
    for history, event in by_day(scripts):
        if event.text:
            one = world.ids[history.name, event.key]
            for edge in memory.graph.subgraph([one]).edges:
                made.setdefault(frozenset((edge.from_id, edge.to_id)), set()).add(edge.edge_type)
    found = {}
    for wanted in (EdgeType.UPDATES, EdgeType.CONTRADICTS):
        stated = [
            frozenset((world.ids[history.name, event.key], world.ids[history.name, event.other]))
            for history, event in by_day(scripts)
            if _FOUND_BY_RULES.get(event.action) is wanted
        ]
        right = sum(wanted in made.get(pair, ()) for pair in stated)
        all_of_type = sum(wanted in types for types in made.values())
        found[str(wanted)] = {"stated": len(stated), "found": right, "other": all_of_type - right}
    return found


def _as_file(memory: Orchestrator, history: History, event: Event) -> str:
    name = f"{history.name}-{event.key}"
    given = MemoryInput(
        key="line", content=event.text, type=event.type, importance=event.importance
    )
    outcome = memory.ingestion.store(
        Document(
            sha256=hashlib.sha256(name.encode()).hexdigest(),
            path=f"{name}.txt",
            memories=(given,),
            main="#line",
        )
    )
    return outcome.memories[0].memory_id or ""
