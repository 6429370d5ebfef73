"""The library and both clients: the same words, values and errors."""

from __future__ import annotations

from typing import Any

import pytest

from memgraph.errors import InvalidInput, NotFound
from memgraph.model.recall import Bundle, RecallRequest
from memgraph.model.values import Memory


def test_what_is_remembered_is_got_and_recalled(way: Any) -> None:
    memory_id = way.remember("The bakery closes at nine.", tags=["hours"], importance=70)
    assert way.remember("The bakery closes at nine.", tags=["hours"]) == memory_id
    memory = way.get(memory_id)
    assert type(memory) is Memory
    assert (memory.content, memory.tags, memory.importance) == (
        "The bakery closes at nine.",
        ("hours",),
        70,
    )
    bundle = way.recall("when does the bakery close?")
    assert type(bundle) is Bundle
    assert bundle.ids == (memory_id,)
    assert bundle.items[0].memory == memory
    assert way.recall(RecallRequest(tags=("hours",))).ids == (memory_id,)


def test_what_is_not_there_is_not_found(way: Any) -> None:
    for memory_id in ("fact_none", "", ".", "..", "a/b", "a b", "ä?#", "%2e%2e", "\ud800", "\x00"):
        with pytest.raises(NotFound):
            way.get(memory_id)


def test_a_wrong_field_is_named_alike(way: Any) -> None:
    with pytest.raises(InvalidInput) as refused:
        way.remember("", importance=101)
    assert [each["field"] for each in refused.value.details["problems"]] == [
        "content",
        "importance",
    ]
    with pytest.raises(InvalidInput):
        way.recall("")
