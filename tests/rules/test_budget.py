"""The token estimate and the choice under a token budget."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from memgraph.rules.budget import select_within, token_cost

costed = st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 50)), unique_by=lambda i: i[0])


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        ("", 0),
        (" \n\t", 0),
        ("memory", 1),
        ("memories", 2),
        ("1234", 2),
        ("a b.", 3),
        ("память", 3),
        ("记忆", 2),
        ("😀", 3),
        ("snake_case", 3),
        ("CamelCase", 2),
        ("HTTPS", 2),
        ("QWxhZGRpbg", 4),
        ("misunderstandings", 4),
        ("Haftpflichtversicherungsnachweis", 11),
    ],
)
def test_the_formula(text: str, cost: int) -> None:
    assert token_cost(text) == cost


@given(st.text(max_size=200), st.text(max_size=200))
def test_joining_with_a_space_adds_up(left: str, right: str) -> None:
    assert token_cost(f"{left} {right}") == token_cost(left) + token_cost(right)


@given(st.text(max_size=200))
def test_bounded_by_the_length(text: str) -> None:
    assert bool(text.strip()) == (token_cost(text) > 0)
    assert token_cost(text) <= 3 * len(text)


@given(costed, st.integers(0, 500))
def test_rank_order_is_kept_and_the_best_that_fits_is_in(
    items: list[tuple[int, int]], budget: int
) -> None:
    selection = select_within(items, budget)
    order = [one for one, _ in items]
    assert selection == [one for one in order if one in selection]
    spent = 0
    for one, cost in items:
        assert (one in selection) == (cost <= budget - spent or cost == 0)
        spent += cost if one in selection else 0


def test_a_negative_cost_buys_nothing() -> None:
    assert select_within([("a", -100), ("b", 60)], 50) == ["a"]
