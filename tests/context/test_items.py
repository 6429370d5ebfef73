from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from item_worlds import item, items

from memgraph import MemoryService, Orchestrator
from memgraph.context.items import (
    MAX_DEPTH,
    RECORD,
    RESERVED,
    checked,
    equal,
    item_of,
    memory_input_of,
    type_of,
)
from memgraph.errors import InvalidInput
from memgraph.model.context import ContextItem
from memgraph.model.enums import CapturedBy, MemoryType, Scope, SourceType
from memgraph.model.values import Memory, MemoryInput
from memgraph.rules.budget import token_cost
from memgraph.store import enrichment as enriching

PLACES = {Scope.SESSION: "t-1", Scope.PROJECT: "web", Scope.GLOBAL: None}


def as_stored(given: MemoryInput, **fields: Any) -> Memory:
    """The memory that comes back, its attributes as the database has them."""
    shared = {name: value for name, value in given if name in Memory.model_fields}
    return Memory.model_validate(
        shared
        | {
            "memory_id": "fact_1",
            "orchestrator_id": "orc-1",
            "summary": "",
            "created_at": 5,
            "updated_at": 5,
            "access_count": 0,
            "last_accessed_at": None,
            "decay_rate": 0.0,
            "attributes": json.loads(json.dumps(given.attributes)),
            "content_hash": "",
            "token_cost": token_cost(given.content),
            "source_id": "src_1",
        }
        | fields
    )


@settings(max_examples=60)
@given(items(), st.sampled_from(Scope))
def test_an_item_comes_back_as_it_went(one: ContextItem, tier: Scope) -> None:
    stored = memory_input_of(checked(one), tier, PLACES[tier])

    assert equal(item_of(as_stored(stored)), one)


@settings(max_examples=60)
@given(items())
def test_an_items_text_is_stored_once(one: ContextItem) -> None:
    stored = memory_input_of(one, Scope.PROJECT, "web")

    assert stored.content not in [
        value for name, value in stored.attributes.items() if one.payload.get(name) != value
    ]
    whole = stored.attributes.get(RECORD, {}).get("text", "text") is None
    assert json.loads(stored.content) == one.payload if whole else stored.attributes != one.payload


def test_what_a_memory_can_say_itself_is_not_said_twice() -> None:
    one = item(
        kind="todo",
        payload={"text": "Write the docs", "done": False},
        token_cost=token_cost("Write the docs"),
    )

    stored = memory_input_of(one, Scope.PROJECT, "web")

    assert stored.content == "Write the docs"
    assert stored.attributes == {"done": False}
    assert (stored.type, stored.importance, stored.item_id) == (MemoryType.TODO, 50, "i-1")
    assert (stored.scope, stored.scope_id) == (Scope.PROJECT, "web")
    assert stored.source.captured_by is CapturedBy.SYSTEM


def test_what_a_memory_cannot_say_is_kept_beside_it() -> None:
    one = item(timestamp="2026-01-01T01:00:00+01:00", importance=0.555, token_cost=None)

    stored = memory_input_of(one, Scope.SESSION, "t-1")

    assert stored.attributes[RECORD] == {
        "text": "decision",
        "source": "project/web",
        "timestamp": "2026-01-01T01:00:00+01:00",
        "importance": 0.555,
        "token_cost": None,
    }
    assert stored.importance == 56
    assert stored.source.source_type is SourceType.WORKFLOW_OUTPUT


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("decision", MemoryType.DECISION),
        ("preference", MemoryType.PREFERENCE),
        ("tool_output", MemoryType.OBSERVATION),
        ("Decision", MemoryType.FACT),
        ("a word of one's own", MemoryType.FACT),
    ],
)
def test_kinds_are_stored_as_the_types_nearest_to_them(kind: str, expected: MemoryType) -> None:
    assert type_of(kind) is expected


@pytest.mark.parametrize("blank", ["", "  \n", "a\x00b"])
def test_a_text_that_no_memory_can_have_stands_in_the_whole_payload(blank: str) -> None:
    one = item(payload={"text": blank})

    stored = memory_input_of(one, Scope.PROJECT, "web")

    assert json.loads(stored.content) == {"text": blank}
    assert item_of(as_stored(stored)).payload == {"text": blank}


def test_a_payload_over_the_attributes_bound_becomes_the_text() -> None:
    one = item(payload={"text": "short", "log": "x" * 15_000})

    stored = memory_input_of(one, Scope.PROJECT, "web")

    assert json.loads(stored.content) == one.payload
    assert item_of(as_stored(stored)).payload == one.payload


def test_a_memory_that_never_was_an_item_reads_as_one(service: MemoryService) -> None:
    orc = service.orchestrator("orc-1", create=True)
    memory_id = orc.remember(
        "Deploys wait for Ann",
        type="Decision",
        importance=80,
        tags=["ops"],
        attributes={"decision_status": "final"},
        event_time="2026-01-02T03:04:05Z",
    )

    found = item_of(orc.get(memory_id))

    assert found == ContextItem(
        context_item_id=memory_id,
        kind="decision",
        source="global",
        timestamp="2026-01-02T03:04:05.000Z",
        tags=("ops",),
        importance=0.8,
        token_cost=token_cost("Deploys wait for Ann"),
        payload={"text": "Deploys wait for Ann", "decision_status": "final"},
    )


def test_an_attribute_by_the_name_of_the_text_hides_nothing(orc: Orchestrator) -> None:
    memory_id = orc.remember("said", attributes={"text": "quoted"})

    found = item_of(orc.get(memory_id))

    assert found.payload == {"text": "said", "attributes": {"text": "quoted"}}


@given(
    st.fixed_dictionaries(
        {},
        optional={
            name: st.sampled_from([None, True, "", "x", 5, -1, 0.25, "2026-02-30", [1], {"a": 1}])
            for name in ("text", "kind", "source", "timestamp", "importance", "token_cost")
        },
    )
    | st.sampled_from([None, 3, "x", []])
)
def test_notes_that_somebody_else_made_break_nothing(record: Any) -> None:
    given_ = memory_input_of(item(), Scope.PROJECT, "web")
    memory = as_stored(given_, attributes={RECORD: record, "a": 1})

    found = item_of(memory)

    assert ContextItem.model_validate(found.model_dump()) == found
    assert given_.content in found.payload.values()


def test_the_stores_own_notes_are_no_payload() -> None:
    assert {enriching.ENRICHED_AT, enriching.ENRICHED_NAMES, "supersedes"} < RESERVED

    stored = memory_input_of(item(), Scope.PROJECT, "web")
    noted = {key: ["fact_2"] for key in RESERVED - {RECORD}}
    memory = as_stored(stored, attributes=stored.attributes | noted)

    assert item_of(memory) == item()


@pytest.mark.parametrize(
    ("payload", "told"),
    [
        ({"n": float("nan")}, "JSON"),
        ({"n": float("inf")}, "JSON"),
        ({"n": {1, 2}}, "JSON"),
        ({"n": "\ud800"}, "surrogate"),
        ({"n": "x" * 20_000}, "16000"),
        ({"n": json.loads("[" * 200 + "]" * 200)}, "nested"),
    ],
)
def test_what_cannot_be_stored_is_refused_before_it_is_kept(
    payload: dict[str, Any], told: str
) -> None:
    unchecked = item().model_copy(update={"payload": payload})

    with pytest.raises(InvalidInput, match="payload.*" + told):
        checked(unchecked)


def test_the_deepest_payload_is_stored() -> None:
    deep = {"n": json.loads("[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1))}

    stored = memory_input_of(checked(item(payload=deep)), Scope.GLOBAL, None)

    assert item_of(as_stored(stored)).payload == deep


def test_more_tags_than_a_memory_has_are_refused() -> None:
    with pytest.raises(InvalidInput, match="tags"):
        checked(item(tags=tuple(map(str, range(65)))))
