from __future__ import annotations

import json
from typing import Any

import pytest

from ingest.candidates import MAX_CONFIDENCE, MAX_IMPORTANCE, ParsedDocument
from ingest.parse import parse_document
from ingest.reasons import RejectionReason, SkippedPart
from memgraph.errors import IngestRejected
from memgraph.model.enums import EdgeType, MemoryKind, MemoryType


def parse(value: Any, path: str = "chat.json") -> ParsedDocument:
    return parse_document(json.dumps(value).encode(), path)


def memory(**fields: Any) -> dict[str, Any]:
    return {"content": "Tea is served at four.", "type": "Fact"} | fields


def document(*memories: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"memories": list(memories), **fields}


def test_what_only_looks_wrong_is_taken() -> None:
    row = '{"a":"\\\\u0000 [[[ \\ud83d\\ude00","b":9223372036854775807,"c":-9223372036854775808}'
    made, _ = parse_document(f"[{row},{row}]".encode(), "x.json").candidates
    assert "\\u0000 [[[ \U0001f600" in made.content


def test_own_document() -> None:
    parsed = parse(
        document(
            memory(key="old", type="Decision", status="superseded"),
            memory(key="new", importance=80, confidence=0.5, event_time="2024-05-06", tags=["t"]),
            edges=[{"from": "new", "to": "old", "type": "Updates", "weight": 0.5, "reason": "r"}],
        )
    )
    assert parsed.format == "memories"
    assert parsed.findings == []
    old, new = parsed.candidates
    assert (new.importance, new.confidence, new.tags) == (80, 0.5, ("t",))
    assert new.event_time == 1714953600000
    assert (new.kind, new.locator) == (MemoryKind.FACT, "/memories/1")
    (edge,) = parsed.edges
    assert (edge.from_id[1:], edge.to_id[1:], edge.edge_type) == (
        new.key,
        old.key,
        EdgeType.UPDATES,
    )


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"type": "Identity"}, SkippedPart.IDENTITY_NOT_ALLOWED),
        ({"captured_by": "user"}, SkippedPart.FIELD_NOT_ALLOWED),
        *(
            (fields, SkippedPart.VALUE_INVALID)
            for fields in (
                *({"colour": "red"}, {"type": "Rumour"}, {"kind": "dream"}),
                *({"status": "retracted"}, {"importance": 101}, {"importance": "80"}),
                *({"importance": True}, {"confidence": -0.1}, {"content": ""}, {"content": "  "}),
                *({"content": "x" * 32_001}, {"event_time": "soon"}, {"scope": "session"}),
                {"attributes": {"a": "x" * 20_000}},
            )
        ),
        ({"key": "good"}, SkippedPart.KEY_REPEATED),
    ],
)
def test_an_item_that_breaks_a_rule_is_left_out_by_itself(
    fields: dict[str, Any], code: SkippedPart
) -> None:
    parsed = parse(document(memory(key="good"), memory(**fields)))
    assert [each.locator for each in parsed.candidates] == ["/memories/0"]
    assert [(each.code, each.locator) for each in parsed.findings] == [(code, "/memories/1")]


def test_the_problems_of_an_item_name_its_fields() -> None:
    wrong: list[Any] = [memory(content=" "), memory(event_time="soon"), "Tea"]
    parsed = parse(document(memory(), *wrong))
    assert [each.details["problems"] for each in parsed.findings] == [
        ["content: is only white space"],
        ["event_time: not an ISO 8601 time"],
        ["(all): Input should be a valid dictionary or instance of MemoryItem"],
    ]


@pytest.mark.parametrize(
    ("edge", "code"),
    [
        ({"from": "a", "to": "gone", "type": "PartOf"}, SkippedPart.EDGE_ENDPOINT_MISSING),
        ({"from": "a", "to": "a", "type": "PartOf"}, SkippedPart.SELF_EDGE),
        ({"from": "a", "to": "b", "type": "Updates"}, SkippedPart.EDGE_REPEATED),
        ({"from": "a", "to": "b", "type": "Likes"}, SkippedPart.VALUE_INVALID),
        ({"from": "a", "to": "b", "type": "PartOf", "weight": 2}, SkippedPart.VALUE_INVALID),
        ({"from": "a", "type": "PartOf"}, SkippedPart.VALUE_INVALID),
        ("a to b", SkippedPart.VALUE_INVALID),
    ],
)
def test_an_edge_that_breaks_a_rule_is_left_out(edge: Any, code: SkippedPart) -> None:
    good = {"from": "a", "to": "b", "type": "Updates"}
    parsed = parse(document(memory(key="a"), memory(key="b"), edges=[good, edge]))
    assert len(parsed.edges) == 1
    assert [(each.code, each.locator) for each in parsed.findings] == [(code, "/edges/1")]


def test_a_text_cannot_raise_itself() -> None:
    parsed = parse(document(memory(importance=100, confidence=1.0)))
    (made,) = parsed.candidates
    assert (made.importance, made.confidence) == (MAX_IMPORTANCE, MAX_CONFIDENCE)
    assert {each.code for each in parsed.findings} == {
        SkippedPart.IMPORTANCE_CAPPED,
        SkippedPart.CONFIDENCE_CAPPED,
    }


def test_dates_are_read_in_the_order_that_the_others_of_the_file_show() -> None:
    third, days = 1777766400000, ("03/05/2026", "25/05/2026")
    talk = [{"role": "user", "content": "It rains.", "date": day} for day in days]
    table = [{"note": "It rains.", "date": day} for day in days]
    mem0 = {"results": [{"memory": "Likes rain", "updated_at": day} for day in days]}
    for value in (talk, table, mem0):
        document = parse(value)
        assert [each.event_time for each in document.candidates] == [third, third + 22 * 86400000]
        assert document.findings == []
    (turn,) = parse({"messages": talk[:1], "date": "2026-05-12"}).candidates
    assert turn.event_time is None
    (turn,) = parse({"messages": talk[:1], "date": "2026-05-03"}).candidates
    assert turn.event_time == third
    escaped = json.dumps(talk).replace("/", "\\/").encode()
    assert parse_document(escaped, "talk.json").candidates[0].event_time == third


def test_a_transcript_with_names_ids_and_a_date() -> None:
    parsed = parse(
        {
            "conversation_id": "c",
            "session_id": "c-s2",
            "date": "1:56 pm on 8 May, 2023",
            "messages": [
                {"role": "Ann", "content": "hi", "id": "D2:1"},
                {"speaker": "Bob", "text": "hello", "timestamp": "2023-05-08T14:00:00Z"},
            ],
        }
    )
    assert parsed.format == "chat"
    ann, bob = parsed.candidates
    assert (ann.source_role, ann.content, ann.turn_id, ann.sequence) == ("Ann", "hi", "D2:1", 0)
    assert (ann.conversation_id, ann.session_id, ann.event_time) == ("c", "c-s2", 1683554160000)
    assert (bob.source_role, bob.turn_id, bob.sequence) == ("Bob", "1", 1)
    assert bob.event_time == 1683554400000
    assert (ann.kind, ann.type) == (MemoryKind.EPISODE, MemoryType.OBSERVATION)


def test_the_openai_shape() -> None:
    parsed = parse(
        [
            {"role": "system", "content": "Be brief."},
            {
                "role": "user",
                "name": "Ann",
                "content": [
                    {"type": "text", "text": "What is this?"},
                    {"type": "image_url", "image_url": {"url": "data:"}},
                ],
            },
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "t", "function": {"name": "look", "arguments": '{"x":1}'}}],
            },
            {"role": "tool", "tool_call_id": "t", "content": "a cat"},
            {"role": "assistant", "content": None},
            {"content": "nobody said this"},
            {"role": "user", "content": 42},
        ]
    )
    assert [(each.source_role, each.content) for each in parsed.candidates] == [
        ("system", "Be brief."),
        ("Ann", "What is this?"),
        ("assistant", '[calls look({"x":1})]'),
        ("tool", "a cat"),
        ("unknown", "nobody said this"),
    ]
    assert parsed.candidates[1].attributes["role"] == "user"
    assert [(each.code, each.locator) for each in parsed.findings] == [
        (SkippedPart.CONTENT_PART_SKIPPED, "/1/content/1"),
        (SkippedPart.MESSAGE_EMPTY, "/4"),
        (SkippedPart.CONTENT_PART_SKIPPED, "/6/content/0"),
    ]
    assert [each.sequence for each in parsed.candidates] == [0, 1, 2, 3, 4]


def test_invalid_messages_are_reported_and_the_others_kept() -> None:
    good, silent = {"role": "user", "content": "hi"}, {"role": "user"}
    parsed = parse({"messages": [silent, good, "some words", silent]})
    assert [each.content for each in parsed.candidates] == ["hi", "some words"]
    mails = parse({"messages": [{"from": "Ann", "text": "hi"}, {"from": "Bo", "subject": "Lunch"}]})
    assert [each.content for each in mails.candidates] == ["hi", "subject: Lunch"]
    assert [(each.code, each.locator, each.details["problems"]) for each in parsed.findings] == [
        (SkippedPart.MESSAGE_INVALID, "/messages/0", ["no text"]),
        (SkippedPart.MESSAGE_INVALID, "/messages/3", ["no text"]),
    ]
    with pytest.raises(IngestRejected) as refused:
        parse({"messages": [silent]})
    assert refused.value.details["reason"] == RejectionReason.JSON_SHAPE_UNKNOWN


def test_a_completion_and_several_conversations() -> None:
    answer = {"id": "r1", "choices": [{"message": {"role": "assistant", "content": "yes"}}]}
    assert [each.content for each in parse(answer).candidates] == ["yes"]
    two = {"conversations": [{"id": "x", "messages": [{"role": "u", "content": "a"}]}] * 2}
    parsed = parse(two)
    assert [each.locator for each in parsed.candidates] == [
        "/conversations/0/messages/0",
        "/conversations/1/messages/0",
    ]


def test_a_time_that_cannot_be_read_is_told() -> None:
    parsed = parse([{"role": "u", "content": "a", "time": "whenever"}])
    assert parsed.candidates[0].event_time is None
    assert [(each.code, each.locator) for each in parsed.findings] == [
        (SkippedPart.DATE_NOT_UNDERSTOOD, "/0/time")
    ]
