"""Scores are checked against counts worked out by hand and against their own definitions."""

from __future__ import annotations

import pytest

from benchmarks.label_scores import score_entities
from memgraph.errors import InvalidInput


def test_a_span_counts_only_with_its_bounds_and_type() -> None:
    gold = [[(0, 4, "person"), (8, 12, "location")], []]
    found = [[(0, 4, "person"), (8, 12, "person"), (0, 4, "person")], [(1, 2, "date")]]
    score = score_entities(gold, found)
    assert (score["gold"], score["predicted"], score["hits"]) == (2, 3, 1)
    assert score["f1"] == pytest.approx(2 / 5)
    assert score["per_type"]["person"]["precision"] == pytest.approx(0.5)
    assert score["per_type"]["location"]["recall"] == 0.0


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
