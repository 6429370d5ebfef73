"""Fill a block with ranked memories until its budget of tokens is spent. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from typing import Final

from memgraph.context.excerpts import excerpt
from memgraph.model.context import BlockFormat
from memgraph.rules.budget import counted, token_cost
from memgraph.rules.lines import BlockLine, cost_of, frame_cost, has_insight, in_time, named, render

ROOMS: Final = ((5, 120), (10, 60))
"""(rank, tokens): so many tokens may the texts up to a rank have, if not everything fits."""
LEAST_ROOM: Final = 40
"""The tokens of every further text."""
_LEAST_LINE = 20
"""The fewest tokens of a cut text; with less left after a miss, the budget counts as spent."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A line that may go into a block.

    Attributes:
        beside: ids of the candidates without which it must not be shown.
        against: ids of the candidates that contradict it, unresolved. They are shown together,
            unless no block of this size could hold them: then each goes in on its own, and its mark
            says that it is contradicted.
    """

    line: BlockLine
    beside: tuple[str, ...] = ()
    against: tuple[str, ...] = ()

    @property
    def memory_id(self) -> str:
        return self.line.memory_id


@dataclass(frozen=True, slots=True)
class BlockPlan:
    """How a block is filled and written.

    Attributes:
        budget_tokens: the most tokens of the whole text.
        mark: the mark of the fence, 6 digits.
        stems: the stems of the question's words, around which long texts are cut.
        max_lines: the most lines; None: as many as fit.
        head: see ``render``.
    """

    budget_tokens: int
    format: BlockFormat
    mark: str
    zone: tzinfo
    stems: Collection[str] = ()
    max_lines: int | None = None
    head: str = ""

    def text_of(self, lines: Sequence[BlockLine]) -> str:
        """Return the block of some lines, in order of time."""
        ordered = in_time(lines)
        return render(ordered, self.format, mark=self.mark, zone=self.zone, head=self.head)

    def cut(self, line: BlockLine, limit: int) -> BlockLine:
        """Return a line with about ``limit`` tokens of its text at most."""
        text = excerpt(line.text, limit, self.stems)
        return line if text == line.text else replace(line, text=text)

    def cost_of(self, line: BlockLine) -> int:
        """Return the tokens of one line."""
        return cost_of(line, self.format, self.zone)


@dataclass(frozen=True, slots=True)
class FilledBlock:
    """The lines of a block in the order of the text, and the text.

    Attributes:
        shortened: ids of the memories of which only a part is shown.
        left_out: ids of the candidates that did not fit, in rank order.
    """

    lines: tuple[BlockLine, ...] = ()
    text: str = ""
    token_cost: int = 0
    shortened: frozenset[str] = frozenset()
    left_out: tuple[str, ...] = ()


def filled(candidates: Sequence[Candidate], plan: BlockPlan) -> FilledBlock:
    """Choose the best candidates that fit the budget, and write them in order of time.

    If not all fit, long texts are cut to the sentences that match the question, and the last lines
    to what is left. A line of which, with what it must stand beside, nothing useful fits is passed
    over, and others fill the rest, but none that fits only because it is short: "Fine by me" must
    not stand for the new date. What is left of the budget in the end goes to cut texts, best first.

    Args:
        candidates: best first, each memory once.
    """
    by_id = {candidate.memory_id: candidate for candidate in candidates}
    filling = Filling(plan, {candidate.memory_id: candidate.line for candidate in candidates})
    fits_whole = sum(plan.cost_of(candidate.line) for candidate in candidates) <= filling.room
    passed_over = False
    alone: set[str] = set()
    for candidate in candidates:
        if candidate.memory_id not in alone and candidate.against:
            sides = _group(candidate, by_id, (), alone)
            if not filling.could_hold(sides):
                alone.update(line.memory_id for line in sides)
        group = _group(candidate, by_id, filling.shown, alone)
        if not group:
            continue
        number = len(filling.shown)
        if plan.max_lines is not None and number + len(group) > plan.max_lines:
            continue
        limit = None
        if not fits_whole:
            limit = next((tokens for last, tokens in ROOMS if number < last), LEAST_ROOM)
        lines, cost = filling.fitting(group, limit)
        missing = sum(max(_LEAST_LINE - counted(line.text), 0) for line in lines)
        if cost + (missing if number and passed_over else 0) > filling.budget:
            if number and filling.room < _LEAST_LINE:
                break
            passed_over = True
            continue
        filling.put(lines, cost)
    filling.grow()
    shown = named(list(filling.shown.values()))
    return FilledBlock(
        tuple(in_time(shown)),
        filling.text,
        filling.cost if shown else 0,
        frozenset(line.memory_id for line in shown if filling.is_cut(line)),
        tuple(one for one in by_id if one not in filling.shown),
    )


def _group(
    candidate: Candidate,
    by_id: Mapping[str, Candidate],
    placed: Collection[str],
    alone: Collection[str],
) -> list[BlockLine]:
    """Return a line with all that it must stand beside and that is not placed yet.

    Nothing, if it is placed or something that it needs is no candidate.

    Args:
        alone: ids of those that need not stand beside what contradicts them.
    """
    group: dict[str, BlockLine] = {}
    pending = [candidate]
    while pending:
        one = pending.pop(0)
        if one.memory_id in group or one.memory_id in placed:
            continue
        group[one.memory_id] = one.line
        others = (*one.beside, *(() if one.memory_id in alone else one.against))
        if any(other not in by_id for other in others):
            return []
        pending += [by_id[other] for other in others]
    return list(group.values())


class Filling:
    """The lines of a block that is being filled, and what they cost as printed.

    Attributes:
        shown: the lines by id, best first.
        cost: the tokens of the whole text.
    """

    def __init__(self, plan: BlockPlan, whole: Mapping[str, BlockLine]) -> None:
        self.plan = plan
        self.budget = plan.budget_tokens
        self.shown: dict[str, BlockLine] = {}
        self.cost = frame_cost(plan.format, whole.values()) + counted(plan.head)
        self._whole = whole
        self._named: set[str] = set()
        # The first line of either section brings its title.
        self._titled = plan.format is BlockFormat.SECTIONS and has_insight(whole.values())

    @property
    def room(self) -> int:
        return self.budget - self.cost

    def cost_with(self, lines: Sequence[BlockLine]) -> int:
        """Return the tokens of the whole text with some more lines, or others in their place."""
        # Lines that name each other cost more or less together: their marks, times, quotations.
        if self._titled or any(line.others or line.memory_id in self._named for line in lines):
            together = self.shown | {line.memory_id: line for line in lines}
            return token_cost(self.plan.text_of(named(list(together.values()))))
        before = [self.shown[one.memory_id] for one in lines if one.memory_id in self.shown]
        cost_of = self.plan.cost_of
        return self.cost + sum(map(cost_of, lines)) - sum(map(cost_of, before))

    def put(self, lines: Sequence[BlockLine], cost: int) -> None:
        self.shown.update((line.memory_id, line) for line in lines)
        self._named.update(other for line in lines for other in line.others)
        self.cost = cost

    @property
    def text(self) -> str:
        """The block; "" without any line."""
        return self.plan.text_of(named(list(self.shown.values()))) if self.shown else ""

    def is_cut(self, line: BlockLine) -> bool:
        """Return True if a part of the text is missing in a line."""
        return line.text != self._whole[line.memory_id].text

    def _cut(self, line: BlockLine, limit: int) -> BlockLine:
        return self.plan.cut(self._whole[line.memory_id], limit)

    def fitting(self, group: Sequence[BlockLine], limit: int | None) -> tuple[list[BlockLine], int]:
        """Return the lines, cut to ``limit`` tokens each and to what the room has for them, and the
        tokens of the text with them; it exceeds the budget if too little of them would be left.
        """
        lines = [line if limit is None else self._cut(line, limit) for line in group]
        cost = self.cost_with(lines)
        share = (self.budget - cost + sum(counted(line.text) for line in lines)) // len(lines)
        while cost > self.budget:
            share = max(share, _LEAST_LINE)
            lines = [self._cut(line, share) for line in group]
            cost = self.cost_with(lines)
            if share == _LEAST_LINE:
                break
            # A cut text may cost a little more than its share.
            share -= max(cost - self.budget, 1)
        return lines, cost

    def could_hold(self, lines: Sequence[BlockLine]) -> bool:
        """Return True if a block of these lines alone, each cut to the least, is small enough."""
        if self.plan.max_lines is not None and len(lines) > self.plan.max_lines:
            return False
        least = [self._cut(line, _LEAST_LINE) for line in lines]
        return token_cost(self.plan.text_of(named(least))) <= self.budget

    def grow(self) -> None:
        """Give the remaining tokens to cut texts, best first."""
        for line in list(self.shown.values()):
            if self.is_cut(line) and self.room >= _LEAST_LINE:
                longer = self._cut(line, counted(line.text) + self.room)
                cost = self.cost_with([longer])
                if self.cost < cost <= self.budget:
                    self.put([longer], cost)
