"""A model proposes, rules decide."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memgraph.model.enums import MemoryType
from memgraph.rules.proposals import MAX_PROPOSALS, judge

TEXT = "Ana said: we go with Postgres for the billing service. Lunch was fine."


def proposal(**changes: Any) -> dict[str, Any]:
    fields = {
        "content": "Billing uses Postgres.",
        "type": "Decision",
        "importance": 70,
        "confidence": 0.8,
        "quote": "we go with Postgres",
    }
    return fields | changes


def test_a_quoted_proposal_is_taken_with_its_place() -> None:
    accepted, rejected = judge({"memories": [proposal()]}, TEXT)
    assert rejected == ()
    assert accepted[0].type is MemoryType.DECISION
    assert TEXT[accepted[0].start : accepted[0].end] == "we go with Postgres"


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"quote": "we go with MySQL"}, "quote_not_in_text"),
        ({"quote": "we"}, "quote"),
        ({"type": "Identity"}, "type"),
        ({"type": ["Decision"]}, "type"),
        ({"importance": 100}, "importance"),
        ({"importance": True}, "importance"),
        ({"confidence": 1.0}, "confidence"),
        ({"confidence": float("nan")}, "confidence"),
        ({"content": " "}, "content"),
        ({"content": "x" * 2_000}, "content"),
        ({"captured_by": "user"}, "fields"),
    ],
)
def test_what_breaks_a_rule_is_refused_by_itself(changes: dict[str, Any], code: str) -> None:
    accepted, rejected = judge({"memories": [proposal(**changes), proposal()]}, TEXT)
    assert [each.content for each in accepted] == ["Billing uses Postgres."]
    assert [(each.index, each.code) for each in rejected] == [(0, code)]


def test_a_thousand_proposals_are_cut() -> None:
    many = [proposal(content=f"number {n}") for n in range(1_000)]
    accepted, rejected = judge({"memories": many}, TEXT)
    assert len(accepted) == MAX_PROPOSALS
    assert rejected[-1].code == "too_many_proposals"


json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=12,
)


@given(json_values, st.lists(json_values, max_size=3))
def test_nonsense_is_never_taken(answer: Any, items: list[Any]) -> None:
    for each in (answer, {"memories": items}):
        accepted, rejected = judge(each, TEXT)
        assert accepted == ()
        assert rejected or each == {"memories": []}
