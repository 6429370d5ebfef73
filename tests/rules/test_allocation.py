"""Dividing a budget among tiers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memgraph.errors import InvalidInput
from memgraph.model.enums import Scope
from memgraph.rules.budget import allocated, divided, reached, select_within

WEIGHTS = {Scope.SESSION: 0.4, Scope.PROJECT: 0.4, Scope.GLOBAL: 0.2}
weight = st.floats(0.0, 1.0) | st.sampled_from([0.0, 0.2, 0.4, 1.0])
weights = st.fixed_dictionaries(dict.fromkeys(Scope, weight)).filter(lambda w: sum(w.values()))
budgets = st.integers(0, 400)
costs = st.lists(st.integers(0, 120), max_size=12)


@st.composite
def offers(draw: st.DrawFn) -> dict[Scope, list[tuple[str, int]]]:
    return {
        tier: [(f"{tier.value}-{at}", cost) for at, cost in enumerate(draw(costs))]
        for tier in Scope
    }


@st.composite
def mates(draw: st.DrawFn, offered: dict[Scope, list[tuple[str, int]]]) -> dict[str, set[str]]:
    ids = [one for each in offered.values() for one, _ in each]
    found: dict[str, set[str]] = {}
    if len(ids) > 1:
        pairs = st.lists(st.tuples(st.sampled_from(ids), st.sampled_from(ids)), max_size=6)
        for one, other in draw(pairs):
            if one != other:
                found.setdefault(one, set()).add(other)
                found.setdefault(other, set()).add(one)
    return found


Offers = Mapping[Scope, Sequence[tuple[str, int]]]


def ids(chosen: Mapping[Scope, Sequence[str]]) -> set[str]:
    return {one for each in chosen.values() for one in each}


def spent_by(chosen: Mapping[Scope, Sequence[str]], offered: Offers) -> dict[Scope, int]:
    return {tier: sum(dict(offered[tier])[one] for one in each) for tier, each in chosen.items()}


def test_the_default_shares_of_2000_are_800_800_400() -> None:
    assert divided(2_000, WEIGHTS) == {Scope.SESSION: 800, Scope.PROJECT: 800, Scope.GLOBAL: 400}


def test_the_token_that_does_not_divide_goes_to_the_largest_remainder() -> None:
    third = dict.fromkeys(Scope, 1.0)
    assert divided(1, WEIGHTS)[Scope.SESSION] == 1
    assert divided(2, WEIGHTS) == {Scope.SESSION: 1, Scope.PROJECT: 1, Scope.GLOBAL: 0}
    assert list(divided(4, third).values()) == [2, 1, 1]


@given(st.integers(0, 10_000_000), weights)
def test_shares_add_up_and_are_within_one_of_their_part(
    budget: int, given_weights: dict[Scope, float]
) -> None:
    shares = divided(budget, given_weights)
    total = sum(Fraction(each) for each in given_weights.values())
    assert sum(shares.values()) == budget
    for tier, share in shares.items():
        assert abs(share - Fraction(given_weights[tier]) * budget / total) < 1
    assert all(not shares[tier] for tier in Scope if not given_weights[tier])


wants = st.fixed_dictionaries(dict.fromkeys(Scope, st.just(0) | st.integers(0, 800)))


@given(wants, st.integers(0, 1_000), weights)
def test_what_a_tier_does_not_want_the_others_can_have(
    wanted: dict[Scope, int], budget: int, given_weights: dict[Scope, float]
) -> None:
    found = reached(wanted, budget, given_weights)
    heard = {tier: wanted[tier] for tier in Scope if given_weights[tier]}
    assert sum(found.values()) == min(budget, sum(heard.values()))
    for tier, share in divided(budget, given_weights).items():
        assert min(share, wanted[tier]) <= found[tier] <= heard.get(tier, 0)


def test_what_is_left_by_one_is_divided_among_those_that_want_it() -> None:
    wanted = {Scope.PROJECT: 900, Scope.GLOBAL: 900}
    assert reached(wanted, 600, WEIGHTS) == {
        Scope.SESSION: 0,
        Scope.PROJECT: 400,
        Scope.GLOBAL: 200,
    }
    assert reached({Scope.GLOBAL: 900}, 600, WEIGHTS)[Scope.GLOBAL] == 600


@given(st.data(), budgets, weights)
def test_with_shares_of_its_own_it_is_complete_and_within_the_budget(
    data: st.DataObject, budget: int, given_weights: dict[Scope, float]
) -> None:
    offered = data.draw(offers())
    wanted = {tier: sum(cost for _, cost in each) for tier, each in offered.items()}
    reach = reached(wanted, budget, given_weights)
    found = allocated(offered, budget, given_weights, first=reach)
    spent = sum(spent_by(found, offered).values())
    assert spent <= budget
    for tier, chosen in found.items():
        if given_weights[tier]:
            left = [cost for one, cost in offered[tier] if one not in chosen]
            assert all(spent + cost > budget for cost in left)
            assert set(select_within(offered[tier], reach[tier])) <= set(chosen)


@pytest.mark.parametrize("bad", [-0.1, float("nan"), float("inf")])
def test_a_share_that_is_none_is_refused(bad: float) -> None:
    with pytest.raises(InvalidInput):
        divided(10, WEIGHTS | {Scope.SESSION: bad})


def test_a_budget_below_zero_is_refused() -> None:
    with pytest.raises(InvalidInput):
        allocated({}, -1, WEIGHTS)


@given(st.data(), budgets, weights)
def test_never_above_the_budget_and_nothing_that_fits_is_left_out(
    data: st.DataObject, budget: int, given_weights: dict[Scope, float]
) -> None:
    offered = data.draw(offers())
    together = data.draw(mates(offered))
    cost = {one: each for tier in offered.values() for one, each in tier}
    there = {one for tier in Scope if given_weights[tier] for one, _ in offered[tier]}
    found = allocated(offered, budget, given_weights, together)
    spent = sum(cost[one] for one in ids(found))
    assert spent <= budget
    for one in there - ids(found):
        group = {one} | (together.get(one, set()) & there) - ids(found)
        alone = cost[one] if sum(cost[each] for each in group) > budget else None
        assert spent + (sum(cost[each] for each in group) if alone is None else alone) > budget


@given(st.data(), budgets, weights)
def test_every_tier_gets_its_own_ids_once_in_its_order(
    data: st.DataObject, budget: int, given_weights: dict[Scope, float]
) -> None:
    offered = data.draw(offers())
    found = allocated(offered, budget, given_weights, data.draw(mates(offered)))
    for tier, each in offered.items():
        order = [one for one, _ in each]
        assert found[tier] == [one for one in order if one in found[tier]]
        if not given_weights[tier]:
            assert not found[tier]


@given(offers(), budgets, weights)
def test_no_tier_loses_what_its_own_share_holds(
    offered: dict[Scope, list[tuple[str, int]]], budget: int, given_weights: dict[Scope, float]
) -> None:
    found = allocated(offered, budget, given_weights)
    for tier, share in divided(budget, given_weights).items():
        if given_weights[tier]:
            assert set(select_within(offered[tier], share)) <= set(found[tier])


@given(st.data(), budgets, weights)
def test_the_order_in_which_tiers_are_given_changes_nothing(
    data: st.DataObject, budget: int, given_weights: dict[Scope, float]
) -> None:
    offered = data.draw(offers())
    together = data.draw(mates(offered))
    expected = allocated(offered, budget, given_weights, together)
    for order in permutations(Scope):
        again = allocated(
            {tier: offered[tier] for tier in order},
            budget,
            {tier: given_weights[tier] for tier in order},
            dict(reversed(together.items())),
        )
        assert again == expected


def test_what_a_tier_leaves_goes_to_the_others() -> None:
    offered = {Scope.PROJECT: [(f"p{at}", 10) for at in range(20)], Scope.GLOBAL: [("g", 10)]}
    found = allocated(offered, 100, WEIGHTS)
    assert [len(found[tier]) for tier in Scope] == [0, 9, 1]


def test_what_is_left_is_handed_on_in_proportion() -> None:
    offered = {
        Scope.PROJECT: [(f"p{at}", 1) for at in range(100)],
        Scope.GLOBAL: [(f"g{at}", 1) for at in range(100)],
    }
    found = allocated(offered, 90, WEIGHTS)
    assert [len(found[tier]) for tier in Scope] == [0, 60, 30]


def test_both_sides_of_a_contradiction_are_taken_or_none_of_them() -> None:
    offered = {Scope.PROJECT: [("one", 30)], Scope.GLOBAL: [("other", 30), ("small", 5)]}
    together = {"one": ["other"], "other": ["one"]}
    assert ids(allocated(offered, 59, WEIGHTS, together)) == {"one", "small"}
    assert ids(allocated(offered, 64, WEIGHTS, together)) == {"small"}
    assert ids(allocated(offered, 65, WEIGHTS, together)) == {"one", "other", "small"}
