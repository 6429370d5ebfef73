from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memgraph.model.recall import RecallItem
from memgraph.surfaces.web.charts import scored


def item(score: float, legs: dict[str, int], modifiers: dict[str, float]) -> RecallItem:
    """An item of which only the figures matter."""
    return RecallItem.model_construct(
        score=score, legs=legs, modifiers=modifiers, contradicted_by=(), brought_by=None
    )


ITEMS = st.builds(
    item,
    st.floats(0, 10),
    st.dictionaries(st.sampled_from(["text", "vector", "graph"]), st.integers(1, 400)),
    st.dictionaries(st.sampled_from(["recency", "status"]), st.floats(0.01, 1.1)),
)


@given(st.lists(ITEMS, max_size=8))
def test_bars_stay_within_their_frames(items: list[RecallItem]) -> None:
    found = scored(items)
    assert [each.item for each in found] == items
    for each in found:
        assert all(0 <= bar.percent <= 100 for bar in (each.score, *each.legs, *each.modifiers))


@given(st.lists(ITEMS, min_size=1, max_size=8))
def test_the_better_the_place_the_fuller_the_bar(items: list[RecallItem]) -> None:
    bars = {bar.text: bar.percent for each in scored(items) for bar in each.legs}
    ranks = sorted({rank for each in items for rank in each.legs.values()})
    shares = [bars[f"place {rank:,}"] for rank in ranks]
    assert shares == sorted(shares, reverse=True)


def test_a_score_is_told_before_and_after_what_changed_it() -> None:
    [found] = scored([item(0.45, {"text": 1}, {"recency": 0.9, "status": 1.0})])
    assert found.fused == pytest.approx(0.5)
    [lowered] = found.modifiers
    assert (lowered.name, lowered.text, lowered.lowers) == ("recency", "× 0.900", True)
    assert found.score.percent == 100
