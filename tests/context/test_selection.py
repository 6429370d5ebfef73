"""A line that does not fit is cut; none of a lower rank takes its place."""

from __future__ import annotations

from datetime import UTC

from memgraph.context.selection import BlockPlan, Candidate, filled
from memgraph.model.context import BlockFormat
from memgraph.model.enums import MemoryKind, MemoryType
from memgraph.rules.lines import BlockLine

TEXTS = (
    "Release 4.2 goes out on Thursday 12 March, please have it in by then.",
    "Legal wants the cookie banner changed, so we move release 4.2 to Tuesday 17 March.",
    "Fine by me.",
)
CANDIDATES = [
    Candidate(
        BlockLine(
            memory_id=f"ep_{rank}",
            kind=MemoryKind.EPISODE,
            type=MemoryType.OBSERVATION,
            text=text,
            at=1_779_000_000_000,
            speaker="Lena",
        )
    )
    for rank, text in enumerate(TEXTS)
]


def test_the_lines_of_any_budget_are_the_first_of_the_ranking() -> None:
    shown = []
    for budget in range(160):
        plan = BlockPlan(budget, BlockFormat.FENCED, "01234567", UTC, stems={"releas"})
        block = filled(CANDIDATES, plan)
        ids = [line.memory_id for line in block.lines]
        assert ids == [each.memory_id for each in CANDIDATES][: len(ids)]
        assert block.token_cost <= budget
        assert len(ids) + len(block.left_out) == len(CANDIDATES)
        shown.append(len(ids))
    assert shown == sorted(shown)
    assert set(shown) == {0, 1, 2, 3}


def test_what_does_not_fit_is_cut_around_the_words_of_the_question() -> None:
    plan = BlockPlan(102, BlockFormat.FENCED, "01234567", UTC, stems={"releas"})
    block = filled(CANDIDATES, plan)
    assert block.shortened == {"ep_1"}
    assert "release 4.2" in block.lines[1].text
    assert block.left_out == ("ep_2",)
