"""Dividing a budget among tiers."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given, strategies as st

from memgraph.model.enums import Scope
from memgraph.rules.budget import allocated, divided, reached, select_within

WEIGHTS = {Scope.SESSION: 0.4, Scope.PROJECT: 0.4, Scope.GLOBAL: 0.2}
weight = st.floats(0.0, 1.0) | st.sampled_from([0.0, 0.2, 0.4, 1.0])
weights = st.fixed_dictionaries(dict.fromkeys(Scope, weight)).filter(lambda w: sum(w.values()))
costs = st.lists(st.integers(0, 120), max_size=12)
Offers = dict[Scope, list[tuple[str, int]]]


@st.composite
def offers(draw: st.DrawFn) -> Offers:
    return {
        tier: [(f"{tier.value}-{at}", cost) for at, cost in enumerate(draw(costs))]
        for tier in Scope
    }


@st.composite
def mates(draw: st.DrawFn, ids: list[str]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    if len(ids) > 1:
        pairs = st.lists(st.tuples(st.sampled_from(ids), st.sampled_from(ids)), max_size=6)
        for one, other in draw(pairs):
            if one != other:
                found.setdefault(one, set()).add(other)
                found.setdefault(other, set()).add(one)
    return found


def test_the_default_shares_of_2000_are_800_800_400() -> None:
    assert divided(2_000, WEIGHTS) == {Scope.SESSION: 800, Scope.PROJECT: 800, Scope.GLOBAL: 400}


def test_the_token_that_does_not_divide_goes_to_the_largest_remainder() -> None:
    third = dict.fromkeys(Scope, 1.0)
    assert divided(1, WEIGHTS)[Scope.SESSION] == 1
    assert divided(2, WEIGHTS) == {Scope.SESSION: 1, Scope.PROJECT: 1, Scope.GLOBAL: 0}
    assert list(divided(4, third).values()) == [2, 1, 1]
    assert divided(4, {}) == dict.fromkeys(Scope, 0)


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


@given(st.data(), offers(), st.integers(0, 400), weights)
def test_within_the_budget_nothing_that_fits_is_left_out_and_no_tier_loses_its_share(
    data: st.DataObject, offered: Offers, budget: int, given_weights: dict[Scope, float]
) -> None:
    cost = {one: each for tier in offered.values() for one, each in tier}
    together = data.draw(st.just({}) | mates(list(cost)))
    wanted = {tier: sum(each for _, each in own) for tier, own in offered.items()}
    reach = reached(wanted, budget, given_weights)
    found = allocated(offered, budget, reach, together)
    spent = sum(cost[one] for one in found)
    assert spent <= budget
    for one in cost.keys() - found:
        group = ({one} | together.get(one, set())) - found
        group_cost = sum(cost[each] for each in group)
        assert spent + (cost[one] if group_cost > budget else group_cost) > budget
    if not together:
        for tier, share in reach.items():
            assert set(select_within(offered[tier], share)) <= found
    turned = {tier: offered[tier] for tier in reversed(Scope)}
    assert allocated(turned, budget, reach, dict(reversed(together.items()))) == found


def test_both_sides_of_a_contradiction_are_taken_or_none_of_them() -> None:
    offered = {Scope.PROJECT: [("one", 30)], Scope.GLOBAL: [("other", 30), ("small", 5)]}
    together = {"one": ["other"], "other": ["one"]}
    shares = {Scope.SESSION: 0, Scope.PROJECT: 30, Scope.GLOBAL: 29}
    assert allocated(offered, 59, shares, together) == {"one", "small"}
    assert allocated(offered, 64, shares, together) == {"small"}
    assert allocated(offered, 65, shares, together) == {"one", "other", "small"}
