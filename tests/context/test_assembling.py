"""Candidates in, a context out."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from memgraph.context.assembly import AssembledContext, ContextPlan, assembled
from memgraph.context.candidates import ContextCandidate
from memgraph.context.excerpts import content_stems
from memgraph.model.context import BlockFormat, TierShares
from memgraph.model.enums import MemoryKind, MemoryStatus, MemoryType, Scope, Sensitivity
from memgraph.model.values import Memory, StoredSource
from memgraph.rules.blocks import LIST_MESSAGE, LIST_TITLE
from memgraph.rules.budget import token_cost
from memgraph.rules.lines import line_of
from memgraph.rules.similarity import content_hash

MARK = "012345"


def candidate(number: int, tier: Scope, text: str = "", **fields: Any) -> ContextCandidate:
    """``number`` is its id and its time; ``fields``: of the candidate, and its importance."""
    content = text or f"What is known by the number {number}."
    memory = Memory.model_construct(
        memory_id=f"fact_{number:04d}",
        kind=fields.pop("kind", MemoryKind.FACT),
        type=MemoryType.FACT,
        content=content,
        importance=fields.pop("importance", 50),
        status=MemoryStatus.ACTIVE,
        sensitivity=Sensitivity.INTERNAL,
        scope=tier,
        scope_id=None if tier is Scope.GLOBAL else "x",
        item_id=None,
        source_role=None,
        valid_until=None,
        event_time=None,
        created_at=1_000 * number,
        tags=(),
        attributes={},
        content_hash=content_hash(content),
        token_cost=token_cost(content),
    )
    line = line_of(memory, StoredSource(source_id="src_1"))
    return ContextCandidate(memory, tier, "manual", line, 1.0, **fields)


def plan(budget: int = 2_000, **fields: Any) -> ContextPlan:
    given_: dict[str, Any] = {
        "budget_tokens": budget,
        "shares": TierShares(),
        "head_tail": 2,
        "format": BlockFormat.LIST,
        "max_items": 100,
        "mark": MARK,
        "zone": UTC,
        "stems": content_stems(fields.get("query", "")),
    }
    return ContextPlan(**(given_ | fields))


def numbers(found: AssembledContext, tier: Scope | None = None) -> list[int]:
    return [int(each.memory_id[5:]) for each in found.items if tier in (None, each.tier)]


def reasons(found: AssembledContext) -> dict[int, tuple[str, ...]]:
    return {int(each.memory_id[5:]): each.reasons for each in found.items}


def left_out(found: AssembledContext) -> dict[int, str]:
    return {int(each.memory_id[5:]): each.reason for each in found.left_out}


@st.composite
def several(draw: st.DrawFn) -> list[ContextCandidate]:
    count = draw(st.integers(0, 30))
    texts = st.text(min_size=1, max_size=300)
    pairs = {}
    for one, other in draw(st.lists(st.tuples(st.integers(0, 29), st.integers(0, 29)), max_size=4)):
        if one != other:
            pairs[one], pairs[other] = f"fact_{other:04d}", f"fact_{one:04d}"
    return [
        candidate(
            number,
            draw(st.sampled_from(Scope)),
            draw(texts),
            importance=draw(st.integers(0, 100)),
            recalled=draw(st.none() | st.just(number + 1)),
            against=(pairs[number],) if number in pairs else (),
        )
        for number in range(count)
    ]


@settings(max_examples=50)
@given(
    several(), st.integers(0, 1_500), st.sampled_from(BlockFormat), st.integers(1, 20), st.randoms()
)
def test_within_the_budget_complete_and_independent_of_order(
    given_: list[ContextCandidate],
    budget: int,
    form: BlockFormat,
    most: int,
    chance: random.Random,
) -> None:
    wanted = plan(budget, format=form, max_items=most)
    found = assembled(given_, wanted)
    assert found.token_cost == token_cost(found.text) <= budget
    assert len(found.items) <= most
    heads = {BlockFormat.FENCED: r"\[\d+\] ", BlockFormat.LIST: "- ", BlockFormat.SECTIONS: "- "}
    lines = re.findall(f"^{heads[form]}", found.text, re.MULTILINE)
    assert len(lines) == len(found.items)
    assert bool(found.items) == bool(found.text)
    assert 0.0 <= found.compression_ratio <= 1.0
    shown = [each.memory_id for each in found.items]
    assert sorted([*shown, *(each.memory_id for each in found.left_out)]) == sorted(
        each.memory.memory_id for each in given_
    )
    assert sum(each.chosen for each in found.tiers.values()) == len(shown)
    chance.shuffle(given_)
    assert assembled(given_, wanted) == found


def test_a_budget_too_small_for_the_marks_gives_an_empty_text() -> None:
    given_ = [candidate(1, Scope.SESSION)]
    found = assembled(given_, plan(30, format=BlockFormat.FENCED))
    assert (found.text, found.items, found.token_cost) == ("", (), 0)
    assert left_out(found) == {1: "too_large"}


def test_the_first_and_last_of_a_task_come_before_its_others_and_stand_in_time_order() -> None:
    given_ = [candidate(at, Scope.SESSION, importance=0) for at in range(10)]
    given_ += [candidate(20, Scope.PROJECT)]
    given_[5] = candidate(5, Scope.SESSION, importance=100, recalled=1)
    room_for_five = 5 * token_cost("- What is known by the number 0.") + token_cost(
        LIST_TITLE + LIST_MESSAGE
    )
    found = assembled(given_[:10], plan(room_for_five))
    assert numbers(found) == [0, 1, 5, 8, 9]
    assert reasons(found) == {
        0: ("head",),
        1: ("head",),
        5: ("recall:1",),
        8: ("tail",),
        9: ("tail",),
    }
    assert numbers(assembled(given_, plan())) == [*range(10), 20]


def test_within_a_tier_relevance_and_importance_count_by_their_ranks() -> None:
    given_ = [
        candidate(1, Scope.PROJECT, importance=10, recalled=1),
        candidate(2, Scope.PROJECT, importance=90),
        candidate(3, Scope.PROJECT, importance=95, recalled=2),
        candidate(4, Scope.PROJECT, importance=5),
    ]
    found = assembled(given_, plan())
    assert numbers(found) == [1, 2, 3, 4]
    assert reasons(found)[2] == ("importance",)
    best = [numbers(assembled(given_, plan(max_items=most))) for most in (1, 2, 3)]
    assert best == [[3], [1, 3], [1, 2, 3]]


def test_a_text_that_is_too_long_is_cut_to_its_first_sentences() -> None:
    text = "In the beginning it rained. " + "Then it rained again, for days. " * 1_000 + "The end."
    found = assembled([candidate(1, Scope.PROJECT, text)], plan(400))
    [item] = found.items
    assert item.shortened
    assert item.text.startswith("In the beginning it rained. Then")
    assert item.text.endswith(" …")
    assert 300 < found.token_cost <= 400
    assert found.compression_ratio < 0.1


@settings(max_examples=50)
@given(several(), st.integers(0, 1_500), st.sampled_from(BlockFormat))
def test_only_what_is_above_all_that_its_tier_can_have_is_cut(
    given_: list[ContextCandidate], budget: int, form: BlockFormat
) -> None:
    found = assembled(given_, plan(budget, format=form))
    by_id = {each.memory.memory_id: each for each in given_}
    for item in found.items:
        if item.shortened:
            whole = by_id[item.memory_id]
            [alone] = assembled([whole], plan(50_000, format=form)).items
            assert alone.token_cost > found.tiers[item.tier].share_tokens
            assert found.token_cost - item.token_cost + alone.token_cost > budget


def test_what_is_left_goes_to_a_text_that_was_cut() -> None:
    long = "words of some length " * 100
    given_ = [candidate(0, Scope.PROJECT, long), candidate(1, Scope.GLOBAL, "Short.")]
    found = assembled(given_, plan(300))
    assert 280 <= found.token_cost <= 300
    assert numbers(found) == [0, 1]


def test_a_text_that_is_cut_keeps_the_sentence_that_was_asked_for() -> None:
    filler = "Nobody remembers what else there was to say. " * 100
    text = f"In the beginning it rained. {filler}That is where the heron nests. {filler}"
    wanted = plan(200, query="Where does the heron nest?")
    [item] = assembled([candidate(1, Scope.PROJECT, text)], wanted).items
    assert item.text.startswith("In the beginning it rained.")
    assert "That is where the heron nests." in item.text


def test_a_turn_and_a_fact_of_the_same_words_are_the_fact() -> None:
    turns = [
        candidate(at, Scope.SESSION, "The same.", kind=MemoryKind.EPISODE, recalled=at)
        for at in (1, 2)
    ]
    found = assembled([*turns, candidate(3, Scope.GLOBAL, "The same.")], plan())
    assert numbers(found) == [3]
    assert reasons(found) == {3: ("recall:1",)}
    assert left_out(found) == {1: "duplicate", 2: "duplicate"}
    assert numbers(assembled(turns, plan())) == [1]


def test_what_says_no_more_than_the_question_is_left_out() -> None:
    given_ = [
        candidate(1, Scope.GLOBAL, "where is the KEY", recalled=1),
        candidate(2, Scope.GLOBAL, "Where is the key? Under the mat."),
    ]
    found = assembled(given_, plan(query="Where is the key?"))
    assert numbers(found) == [2]
    assert left_out(found) == {1: "query"}
    assert found.left_out_reasons == {"query": 1}
    assert numbers(assembled(given_, plan())) == [1, 2]


def test_equal_texts_are_shown_once_nearest_to_the_task() -> None:
    given_ = [candidate(at, tier, "The same.") for at, tier in enumerate(reversed(Scope))]
    found = assembled(given_, plan())
    assert numbers(found) == [2]
    assert left_out(found) == {0: "duplicate", 1: "duplicate"}


def test_a_tier_without_a_share_is_not_considered() -> None:
    given_ = [candidate(at, tier) for at, tier in enumerate(Scope)]
    shares = TierShares(task=1.0, project=0.0, global_tier=0.0)
    found = assembled(given_, plan(shares=shares))
    assert numbers(found) == [0]
    assert found.left_out_count == 0


def test_of_many_the_best_are_taken_in_turns() -> None:
    given_ = [
        candidate(10 * place + at, tier) for place, tier in enumerate(Scope) for at in range(9)
    ]
    found = assembled(given_, plan(max_items=5))
    assert [len(numbers(found, tier)) for tier in Scope] == [2, 2, 1]
    assert set(left_out(found).values()) == {"max_items"}


def test_both_sides_of_an_open_contradiction_or_none() -> None:
    long = "A thing that was said by someone about something else. " * 4
    one = token_cost(f"- 1 {long}")
    given_ = [
        candidate(1, Scope.PROJECT, f"1 {long}", recalled=2, against=("fact_0002",)),
        candidate(2, Scope.GLOBAL, f"2 {long}", beside="fact_0001", against=("fact_0001",)),
        candidate(3, Scope.GLOBAL, "Short."),
        candidate(4, Scope.PROJECT, f"4 {long}", recalled=1),
    ]
    found = assembled(given_, plan(2_000))
    assert sorted(numbers(found)) == [1, 2, 3, 4]
    assert reasons(found)[2] == ("beside:fact_0001",)
    almost = assembled(given_, plan(3 * one))
    assert sorted(numbers(almost)) == [3, 4]
    assert left_out(almost) == {1: "over_budget", 2: "over_budget"}


@pytest.mark.parametrize("form", BlockFormat)
def test_lines_that_name_each_other_are_counted_as_they_are_printed(form: BlockFormat) -> None:
    given_ = []
    for at in range(20):
        # Each even one and the next contradict each other; a list quotes the other text.
        other = f"fact_{at ^ 1:04d}"
        made = candidate(at, Scope.PROJECT, f"Shed {at:02d}.", recalled=at + 1, against=(other,))
        given_.append(replace(made, line=replace(made.line, contradicts=(other,))))
    whole = assembled(given_, plan(5_000, format=form)).token_cost
    step = (whole - assembled(given_[:2], plan(5_000, format=form)).token_cost) // 9
    for left_out_pairs in range(1, 9):
        budget = whole - left_out_pairs * step
        found = assembled(given_, plan(budget, format=form))
        assert (len(found.items), found.token_cost) == (20 - 2 * left_out_pairs, budget)
        assert found.token_cost == token_cost(found.text)
        assert assembled(given_, plan(budget - 1, format=form)).token_cost == budget - step


def test_what_the_marks_of_lines_push_out_is_cut() -> None:
    given_ = []
    for one, other in ((0, 1), (1, 0)):
        text = f"Shed {one} is open. " + "It was said to be so. " * 10
        made = candidate(one, Scope.PROJECT, text, against=(f"fact_{other:04d}",))
        given_.append(replace(made, line=replace(made.line, contradicts=made.against)))
    whole = assembled(given_, plan(5_000)).token_cost
    found = assembled(given_, plan(whole - 1))
    assert numbers(found) == [0, 1]
    assert [item.shortened for item in found.items] == [True, True]
    assert whole - 25 < found.token_cost < whole


def test_of_a_contradiction_that_no_context_of_a_size_could_hold_each_side_goes_in_alone() -> None:
    given_ = []
    for one, other in ((0, 1), (1, 0)):
        made = candidate(one, Scope.PROJECT, f"Shed {one} is open.", against=(f"fact_{other:04d}",))
        given_.append(replace(made, line=replace(made.line, contradicts=made.against)))
    whole = assembled(given_, plan(5_000)).token_cost
    assert len(assembled(given_, plan(whole)).items) == 2
    found = assembled(given_, plan(whole - 1))
    assert len(found.items) == 1
    assert "(contradicted)" in found.text


def test_only_the_best_of_what_was_left_out_are_listed() -> None:
    given_: Sequence[ContextCandidate] = [candidate(at, Scope.PROJECT) for at in range(300)]
    found = assembled(given_, plan(0))
    assert (len(found.left_out), found.left_out_count) == (200, 300)
    assert found.left_out_reasons == {"too_large": 300}
