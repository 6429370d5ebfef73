"""What replaced, probably changed or contradicts memories, for the lines of a prompt.

A turn is marked like the facts that were derived from it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from memgraph.model.enums import MemoryKind, MemoryStatus
from memgraph.model.recall import Mark
from memgraph.model.values import Memory
from memgraph.rules.lines import BlockLine, known_date
from memgraph.rules.marks import MarkGraph
from memgraph.store import graph
from memgraph.store.bulletins import BulletinExcerpt
from memgraph.store.graph import Direction
from memgraph.store.recall import GraphContents
from memgraph.store.snapshot import Snapshot
from memgraph.store.visibility import STANDING, View

MAX_STEPS: Final = 2_000


@dataclass(frozen=True, slots=True)
class LineMark:
    """What became of a memory.

    Attributes:
        replaced_by: the ids of its successors: the direct ones, then those at the end of the chain.
        until: when it ended, or the replaced part of it, in milliseconds; None: it was not
            replaced, or it is unknown, as a direct successor has no date.
        in_part: other parts of it still hold.
        contradicts: the ids of active memories that contradict it, unresolved.
        probable: those of ``contradicts`` that nobody stated.
        changed_by: the ids of active memories that probably changed it, newest first; nobody
            decided it.
    """

    replaced_by: tuple[str, ...] = ()
    until: int | None = None
    in_part: bool = False
    contradicts: tuple[str, ...] = ()
    probable: frozenset[str] = frozenset()
    changed_by: tuple[str, ...] = ()


NO_MARK: Final = LineMark()


@dataclass(frozen=True, slots=True)
class Marks:
    """The marks of some memories.

    Attributes:
        by_id: the marks; memories without one are absent.
        evidence: the turns behind facts that are named or were asked for, by the fact's id.
        facts: the facts that were derived from turns, by the turn's id.
        pairs: the edges behind the marks.
    """

    by_id: Mapping[str, LineMark] = field(default_factory=dict)
    evidence: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    facts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    pairs: MarkGraph = field(default_factory=MarkGraph)

    def with_more(self, more: Marks) -> Marks:
        """Return the marks of these and more memories, of which the graph is ``more.pairs``."""
        return Marks(
            {**self.by_id, **more.by_id},
            {**self.evidence, **more.evidence},
            {**self.facts, **more.facts},
            more.pairs,
        )

    def of(self, memory_id: str) -> LineMark:
        """Return the mark of a memory."""
        return self.by_id.get(memory_id, NO_MARK)

    def listed(self, memory_id: str) -> tuple[Mark, ...]:
        """Return the marks of a memory and of the facts that were derived from it, as data."""
        own = (memory_id, *self.facts.get(memory_id, ()))
        return tuple(dict.fromkeys(mark for one in own for mark in self.pairs.marks(one)))

    def shown_as(self, memory_id: str, shown: Collection[str]) -> str | None:
        """Return the shown memory that states the same: itself, or a turn behind it; or None."""
        if memory_id in shown:
            return memory_id
        return next((turn for turn in self.evidence.get(memory_id, ()) if turn in shown), None)


def marked(line: BlockLine, marks: Marks, shown: Iterable[str]) -> BlockLine:
    """Return a line with its marks, which name only shown memories."""
    mark = marks.of(line.memory_id)
    if mark is NO_MARK:
        return line
    shown_ids = set(shown)

    def names(ids: Iterable[str]) -> tuple[str, ...]:
        named = (marks.shown_as(one, shown_ids) for one in ids)
        return tuple(dict.fromkeys(one for one in named if one not in (None, line.memory_id)))

    contradicts = names(mark.contradicts) or mark.contradicts
    stated = names(one for one in mark.contradicts if one not in mark.probable)
    is_undated = bool(mark.replaced_by) and mark.until is None
    ends = [] if is_undated else [at for at in (line.until, mark.until) if at is not None]
    return replace(
        line,
        until=min(ends, default=None),
        in_part=mark.in_part,
        replaced_by=names(mark.replaced_by) or mark.replaced_by,
        contradicts=contradicts,
        probable=mark.probable | frozenset(contradicts).difference(stated, mark.contradicts),
        changed_by=names(mark.changed_by) or mark.changed_by,
    )


def marks_of(
    snapshot: Snapshot,
    memories: Sequence[Memory | BulletinExcerpt],
    view: View,
    ties: GraphContents,
    pairs: MarkGraph | None = None,
) -> Marks:
    """Return the marks of memories, as far as the view shows the other sides.

    Args:
        ties: the kinds of links in the store; other kinds are not queried.
        pairs: the graph to which the edges of these memories are added; None: a new one.
    """
    pairs = MarkGraph() if pairs is None else pairs
    if not ties or not memories:
        return Marks(pairs=pairs)
    standing = replace(view, statuses=STANDING)
    shown = [memory.memory_id for memory in memories]
    turns = [item.memory_id for item in memories if item.kind == MemoryKind.EPISODE]
    facts_of = _derived(snapshot, turns, standing, Direction.IN) if ties.derivations else {}
    statements = list(dict.fromkeys([*shown, *_all(facts_of)]))
    chains: dict[str, tuple[str, ...]] = {}
    partial: set[str] = set()
    if not graph.PAIRED.isdisjoint(ties.edge_types):
        graph.read_pairs(snapshot, pairs, statements, view)
        graph.read_successions(snapshot, pairs, statements, standing)
        chains, partial = _chains(statements, pairs)
    others = [
        other for one in statements for other in (*pairs.opponents(one), *pairs.changed_by(one))
    ]
    evidence: dict[str, tuple[str, ...]] = {}
    if ties.derivations:
        facts = [*(item for item in shown if item not in turns), *_all(chains), *others]
        evidence = _derived(snapshot, list(dict.fromkeys(facts)), standing, Direction.OUT)
    ends = _ends(snapshot, chains, standing)
    by_id = {}
    for memory_id in shown:
        mark = _mark(memory_id, facts_of.get(memory_id, ()), chains, partial, pairs, evidence, ends)
        if mark != NO_MARK:
            by_id[memory_id] = mark
    return Marks(by_id, evidence, facts_of, pairs)


def _mark(
    memory_id: str,
    facts: Sequence[str],
    chains: Mapping[str, tuple[str, ...]],
    partial: Collection[str],
    pairs: MarkGraph,
    evidence: Mapping[str, tuple[str, ...]],
    ends: Mapping[str, int | None],
) -> LineMark:
    """Return the mark of a memory from its own links and those of its facts."""
    own = [memory_id, *facts]

    def elsewhere(ids: Iterable[str]) -> list[str]:
        # A turn that says both the old and the new is not replaced by itself.
        return [one for one in ids if memory_id not in evidence.get(one, ()) and one not in own]

    replaced = {one: chain for one in own if (chain := elsewhere(chains.get(one, ())))}
    dates = [ends[one] for one in replaced if one in ends]
    known = [date for date in dates if date is not None]
    in_part = not replaced.keys().isdisjoint(partial) or (
        memory_id not in replaced and 0 < len(replaced) < len(facts)
    )
    against = elsewhere(other for one in own for other in pairs.opponents(one))
    probable = {
        other
        for other in against
        if all(pairs.is_probable(one, other) for one in own if other in pairs.opponents(one))
    }
    # What was replaced needs no guess besides.
    standing = [one for one in own if one not in replaced or one in partial]
    changed = elsewhere(other for one in standing for other in pairs.changed_by(one))
    return LineMark(
        replaced_by=tuple(dict.fromkeys(_all(replaced))),
        until=min(known, default=None) if len(known) == len(dates) else None,
        in_part=in_part,
        contradicts=tuple(dict.fromkeys(against)),
        probable=frozenset(probable),
        changed_by=tuple(dict.fromkeys(changed)),
    )


def _ends(
    snapshot: Snapshot, chains: Mapping[str, Sequence[str]], view: View
) -> dict[str, int | None]:
    """Return when replaced memories ended, or their replaced parts; None: it is unknown."""
    firsts = {memory_id: chain[0] for memory_id, chain in chains.items()}
    memories = graph.visible_memories(snapshot, sorted({*firsts, *firsts.values()}), view)
    successors = [memories[one] for one in firsts.values() if one in memories]
    by_id = {source.source_id: source for source in graph.sources_of(snapshot, successors)}
    ends: dict[str, int | None] = {}
    for memory_id, first in firsts.items():
        memory, successor = memories.get(memory_id), memories.get(first)
        if memory is None or successor is None:
            continue
        if memory.status is not MemoryStatus.ACTIVE:
            ends[memory_id] = memory.valid_until
        elif known_date(successor, by_id[successor.source_id]) is None:
            ends[memory_id] = None
        else:
            # A part of it was replaced.
            stated = successor.stated_at
            is_later = stated >= memory.stated_at
            ends[memory_id] = stated if is_later else max(memory.created_at, successor.created_at)
    return ends


def _all(lists: Mapping[str, Iterable[str]]) -> list[str]:
    return [one for each in lists.values() for one in each]


def _derived(
    snapshot: Snapshot, ids: Sequence[str], view: View, direction: Direction
) -> dict[str, tuple[str, ...]]:
    """Return the memories derived from ``ids`` (IN), or those that they were derived from (OUT)."""
    if not ids:
        return {}
    result: dict[str, list[str]] = {}
    for step in graph.linked(snapshot, ids, view, (), direction, MAX_STEPS, derivations=True):
        result.setdefault(step.origin_id, []).append(step.memory_id)
    return {memory_id: tuple(others) for memory_id, others in result.items()}


def _chains(ids: Sequence[str], pairs: MarkGraph) -> tuple[dict[str, tuple[str, ...]], set[str]]:
    """Return the successors of replaced memories, direct ones first, and which are only partial."""
    chains = {one: found.chain for one in ids if (found := pairs.succession(one))}
    partial = {one for one in ids if one not in chains and pairs.amendments(one)}
    return chains | {one: pairs.amendments(one)[-1:] for one in partial}, partial
