"""Fill a block with ranked memories until its budget of tokens is spent. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from itertools import accumulate, chain
from typing import Final

from memgraph.context.excerpts import excerpt
from memgraph.model.context import BlockFormat
from memgraph.rules.blocks import BLOCK_INTRO
from memgraph.rules.budget import counted, token_cost
from memgraph.rules.lines import (
    BlockLine,
    cost_of,
    fenced,
    frame_cost,
    in_time,
    named,
    records,
    render,
)

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
    """

    line: BlockLine
    beside: tuple[str, ...] = ()

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
        head: lines within the fence before all others, each with its newline.
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
        if self.head:
            return fenced(self.head + records(in_time(lines), self.zone), self.mark, BLOCK_INTRO)
        return render(in_time(lines), self.format, mark=self.mark, zone=self.zone)

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
    room = plan.budget_tokens - frame_cost(plan.format) - counted(plan.head)
    lines = {candidate.memory_id: candidate.line for candidate in candidates}
    fits_whole = all(used <= room for used in accumulate(map(plan.cost_of, lines.values())))
    groups: list[list[BlockLine]] = []
    placed: set[str] = set()
    passed_over = False
    for candidate in candidates:
        if candidate.memory_id in placed:
            continue
        group = _group(candidate, by_id, placed)
        if group is None:
            continue
        if plan.max_lines is not None and len(placed) + len(group) > plan.max_lines:
            continue
        limit = None
        if not fits_whole:
            limit = next((tokens for last, tokens in ROOMS if len(placed) < last), LEAST_ROOM)
        cut, cost = _fitting(group, limit, room, plan)
        if any(line.others for line in cut):
            # Lines that name each other cost more or less together: their marks, times, quotations.
            text = plan.text_of(named([*chain(*groups), *cut]))
            cost = token_cost(text) - (plan.budget_tokens - room)
        missing = sum(max(_LEAST_LINE - counted(line.text), 0) for line in cut)
        if cost + (missing if placed and passed_over else 0) > room:
            if placed and room < _LEAST_LINE:
                break
            passed_over = True
            continue
        room -= cost
        groups.append(cut)
        placed.update(line.memory_id for line in cut)
    groups = _grown(groups, lines, room, plan)
    return _written(groups, by_id, plan)


def _group(
    candidate: Candidate, by_id: Mapping[str, Candidate], placed: Collection[str]
) -> list[BlockLine] | None:
    """Return a line with all that it must stand beside and that is not placed yet.

    None if something that it needs is no candidate.
    """
    group: dict[str, BlockLine] = {}
    pending = [candidate]
    while pending:
        one = pending.pop(0)
        if one.memory_id in group or one.memory_id in placed:
            continue
        group[one.memory_id] = one.line
        if any(other not in by_id for other in one.beside):
            return None
        pending += [by_id[other] for other in one.beside]
    return list(group.values())


def _cut(line: BlockLine, limit: int | None, plan: BlockPlan) -> BlockLine:
    if limit is None:
        return line
    text = excerpt(line.text, limit, plan.stems)
    return line if text == line.text else replace(line, text=text)


def _fitting(
    group: Sequence[BlockLine], limit: int | None, room: int, plan: BlockPlan
) -> tuple[list[BlockLine], int]:
    """Return the lines, cut to ``limit`` tokens each and to what the room has for them, and their
    cost; it exceeds the room if too little of them would be left.
    """
    lines = [_cut(line, limit, plan) for line in group]
    cost = sum(map(plan.cost_of, lines))
    share = (room - cost + sum(counted(line.text) for line in lines)) // len(lines)
    while cost > room:
        share = max(share, _LEAST_LINE)
        lines = [_cut(line, share, plan) for line in group]
        cost = sum(map(plan.cost_of, lines))
        if share == _LEAST_LINE:
            break
        # A cut text may cost a little more than its share.
        share -= max(cost - room, 1)
    return lines, cost


def _grown(
    groups: Sequence[list[BlockLine]], whole: Mapping[str, BlockLine], room: int, plan: BlockPlan
) -> list[list[BlockLine]]:
    """Give the remaining tokens to cut texts, best first."""
    result = []
    for group in groups:
        grown = []
        for line in group:
            uncut = whole[line.memory_id]
            longer = line
            if line.text != uncut.text and room >= _LEAST_LINE:
                longer = _cut(uncut, counted(line.text) + room, plan)
                more = plan.cost_of(longer) - plan.cost_of(line)
                longer, room = (longer, room - more) if 0 < more <= room else (line, room)
            grown.append(longer)
        result.append(grown)
    return result


def _written(
    groups: list[list[BlockLine]], by_id: Mapping[str, Candidate], plan: BlockPlan
) -> FilledBlock:
    """Write the groups; as long as the text exceeds the budget, drop the last group."""
    while groups:
        lines = named([line for group in groups for line in group])
        text = plan.text_of(lines)
        cost = counted(text)
        if cost <= plan.budget_tokens:
            inside = {line.memory_id for line in lines}
            return FilledBlock(
                tuple(in_time(lines)),
                text,
                cost,
                frozenset(
                    line.memory_id for line in lines if line.text != by_id[line.memory_id].line.text
                ),
                tuple(one for one in by_id if one not in inside),
            )
        groups.pop()
    return FilledBlock(left_out=tuple(by_id))
