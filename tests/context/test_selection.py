"""A line that does not fit is cut; what ranks lower fills a block, but does not stand for it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC

from hypothesis import given, strategies as st

from memgraph.context.excerpts import excerpt
from memgraph.context.selection import BlockPlan, Candidate, filled
from memgraph.model.context import BlockFormat
from memgraph.model.enums import MemoryKind, MemoryType
from memgraph.rules.budget import token_cost
from memgraph.rules.lines import BlockLine

TEXTS = (
    "Release 4.2 goes out on Thursday 12 March, please have it in by then.",
    "Legal wants the cookie banner changed, so we move release 4.2 to Tuesday 17 March.",
    "Fine by me.",
)


def candidates_of(texts: Iterable[str]) -> list[Candidate]:
    return [
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
        for rank, text in enumerate(texts)
    ]


CANDIDATES = candidates_of(TEXTS)


def test_a_remark_stands_for_nothing_better_that_can_be_cut() -> None:
    shown = []
    for budget in range(160):
        plan = BlockPlan(budget, BlockFormat.FENCED, "012345", UTC, stems={"releas"})
        block = filled(CANDIDATES, plan)
        shown.append(tuple(line.memory_id for line in block.lines))
        assert block.token_cost <= budget
        assert len(block.lines) + len(block.left_out) == len(CANDIDATES)
    # The remark alone where of no other line enough would be left.
    first, second, remark = (each.memory_id for each in CANDIDATES)
    in_order = [(), (remark,), (first,), (first, second), (first, second, remark)]
    assert list(dict.fromkeys(shown)) == in_order
    assert shown.count((remark,)) < 15


def test_the_head_is_counted_and_cut_texts_take_what_is_left() -> None:
    texts = [" ".join(f"Line {number} of text {at}." for number in range(100)) for at in range(2)]
    plan = BlockPlan(600, BlockFormat.FENCED, "012345", UTC, head="[0] 2026, profile of Ann: x\n")
    block = filled(candidates_of(texts), plan)
    assert plan.head in block.text
    assert 580 < block.token_cost <= 600
    assert block.token_cost == token_cost(block.text)


words = st.sampled_from(("heron", "boat", "net.", "no", "Straßen", "1234", "記憶", "\n"))
texts = st.lists(words, min_size=1, max_size=200).map(" ".join).filter(str.strip)


@given(st.lists(texts, min_size=1, max_size=12), st.integers(0, 400), st.data())
def test_a_block_is_within_its_budget_and_holds_something_if_anything_fits(
    texts: list[str], budget: int, data: st.DataObject
) -> None:
    candidates = candidates_of(texts)
    ids = [each.memory_id for each in candidates]
    candidates = [
        Candidate(each.line, tuple(data.draw(st.lists(st.sampled_from(ids), max_size=2))))
        for each in candidates
    ]
    plan = BlockPlan(budget, BlockFormat.FENCED, "012345", UTC, stems={"heron"})
    block = filled(candidates, plan)
    assert block.token_cost <= budget
    assert {line.memory_id for line in block.lines} | set(block.left_out) == set(ids)
    shown = {line.memory_id for line in block.lines}
    assert all(shown.issuperset(each.beside) for each in candidates if each.memory_id in shown)
    alone = [each.line for each in candidates if not set(each.beside) - {each.memory_id}]
    shortest = [replace(line, text=excerpt(line.text, 20, plan.stems)) for line in alone]
    fits = any(token_cost(plan.text_of([line])) <= budget for line in shortest)
    assert block.lines or not fits


def test_what_does_not_fit_is_cut_around_the_words_of_the_question() -> None:
    plan = BlockPlan(90, BlockFormat.FENCED, "012345", UTC, stems={"releas"})
    first, second, remark = TEXTS
    block = filled(
        candidates_of([first, f"{second} Nobody else has asked for more.", remark]), plan
    )
    assert block.shortened == {"ep_1"}
    assert "release 4.2" in block.lines[1].text
    assert block.left_out == ("ep_2",)
