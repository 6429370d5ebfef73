"""Scores are checked against counts worked out by hand and against their own definitions."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from benchmarks.label_scores import score_entities
from memgraph.errors import InvalidInput

span = st.tuples(
    st.integers(0, 3), st.integers(4, 6), st.sampled_from(["person", "date", "location"])
)
texts_of_spans = st.lists(st.tuples(st.sets(span), st.sets(span)))


def test_a_span_counts_only_with_its_bounds_and_type() -> None:
    gold = [[(0, 4, "person"), (8, 12, "location")], []]
    found = [[(0, 4, "person"), (8, 12, "person"), (0, 4, "person")], [(1, 2, "date")]]
    score = score_entities(gold, found)
    assert (score["gold"], score["predicted"], score["hits"]) == (2, 3, 1)
    assert score["f1"] == pytest.approx(2 / 5)
    assert score["per_type"]["person"]["precision"] == pytest.approx(0.5)
    assert score["per_type"]["location"]["recall"] == 0.0


@given(texts_of_spans)
def test_finding_exactly_the_gold_spans_is_perfect(
    texts: list[tuple[set[tuple[int, int, str]], set[tuple[int, int, str]]]],
) -> None:
    gold = [g for g, _ in texts]
    perfect = score_entities(gold, gold)
    assert perfect["f1"] == (1.0 if any(gold) else 0.0)
    other = score_entities(gold, [p for _, p in texts])
    assert sum(s["hits"] for s in other["per_type"].values()) == other["hits"]


@pytest.mark.parametrize(
    "call",
    [
        lambda: score_entities([[]], []),
        lambda: score_entities([[(0, 1, "animal")]], [[]]),
    ],
)
def test_what_cannot_be_scored_is_refused(call) -> None:  # type: ignore[no-untyped-def] # lambdas
    with pytest.raises(InvalidInput):
        call()
