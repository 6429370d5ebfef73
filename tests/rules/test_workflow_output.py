"""What is read out of a workflow step's output, and what is not believed of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from memgraph.model.enums import MemoryType
from memgraph.rules.proposals import (
    MAX_CONFIDENCE,
    MAX_CONTENT_CHARS,
    MAX_IMPORTANCE,
    MAX_PROPOSALS,
)
from memgraph.rules.workflow import MAX_OUTPUT_CHARS, ParsedOutput, parse

AN_ID = "fact_01M816E9XGP4Z93601ZHY38MWS"


def found(parsed: ParsedOutput) -> list[tuple[str, str]]:
    return [(each.type.value, each.content) for each in parsed.candidates]


def codes(parsed: ParsedOutput) -> list[str]:
    return [each.code for each in parsed.rejections]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("Decision: We use SQLite.", ("Decision", "We use SQLite.")),
        ("- **Decision:** We use SQLite.", ("Decision", "We use SQLite.")),
        ("**Decision**: We use SQLite.", ("Decision", "We use SQLite.")),
        ("TODO: call Anna", ("Todo", "call Anna")),
        ("Next step: call Anna", ("Todo", "call Anna")),
        ("action item: call Anna", ("Todo", "call Anna")),
        ("- [ ] call Anna", ("Todo", "call Anna")),
        ("* [x] call Anna", ("Event", "Done: call Anna")),
        ("Goal: ship", ("Goal", "ship")),
        ("Observation: it is slow", ("Observation", "it is slow")),
        ("Preference: tabs", ("Preference", "tabs")),
    ],
)
def test_a_line_says_what_it_is(line: str, expected: tuple[str, str]) -> None:
    parsed = parse(f"Some words before.\n\n{line}\n")
    assert found(parsed) == [("Observation", "Some words before."), expected]
    assert parsed.candidates[1].locator == "L3"
    assert codes(parsed) == []


def test_the_rows_of_a_table_are_statements_of_their_own() -> None:
    parsed = parse("Action items:\n| Who | What |\n|---|---|\n| Ann | call |\n| Bob | pay |\n")
    assert [(each.type, each.content, each.locator) for each in parsed.candidates] == [
        (MemoryType.TODO, "Who: Ann; What: call", "L4"),
        (MemoryType.TODO, "Who: Bob; What: pay", "L5"),
    ]


def test_prose_is_kept_by_its_lines_and_paragraphs() -> None:
    parsed = parse("We picked Redis. It is fast.\nThe weather: fine\n\n- Note this\n\n---\n")
    assert [(each.type, each.content, each.locator) for each in parsed.candidates] == [
        (MemoryType.OBSERVATION, "We picked Redis. It is fast.", "L1"),
        (MemoryType.OBSERVATION, "The weather: fine", "L2"),
        (MemoryType.OBSERVATION, "Note this", "L4"),
    ]
    assert codes(parsed) == []
    told = {"summary": "We picked Redis.", "state": "ok", "notes": ["It is fast."]}
    assert found(parse(told)) == [
        ("Observation", "We picked Redis."),
        ("Observation", "It is fast."),
    ]


def test_lists_stand_under_their_heading() -> None:
    parsed = parse(
        "## Decisions\n\n- one thing\n- another\n\n## Background\n\n- no statement\n\n"
        "Next steps:\n1. first\n2. second\n\nThen we went home.\n- no step any more\n"
    )
    assert found(parsed) == [
        ("Decision", "one thing"),
        ("Decision", "another"),
        ("Observation", "no statement"),
        ("Todo", "first"),
        ("Todo", "second"),
        ("Observation", "Then we went home."),
        ("Observation", "no step any more"),
    ]


def test_a_paragraph_under_a_heading_is_one_statement() -> None:
    parsed = parse("# Goal\n\nShip the thing\nby Friday.\n")
    assert found(parsed) == [("Goal", "Ship the thing by Friday.")]
    assert parsed.candidates[0].locator == "L3-L4"


def test_what_stands_under_a_statement_is_part_of_it() -> None:
    whole, part = parse("- [ ] call Anna\n  - [ ] find her number\n").candidates
    assert part.part_of == [f"#{whole.key}"]


def test_reasons_become_grounds() -> None:
    parsed = parse(f"Decision: Use SQLite.\n  Because: no server\nTodo: migrate\n  Why: [{AN_ID}]")
    decision, todo, ground = parsed.candidates
    assert (ground.type, ground.content) == (MemoryType.OBSERVATION, "no server")
    assert decision.caused_by == [f"#{ground.key}"]
    assert todo.caused_by == [AN_ID]


@pytest.mark.parametrize("nothing", ["", "#", "**"])
def test_a_reason_without_words_leads_nowhere(nothing: str) -> None:
    parsed = parse(f"Goal: open the shop\n\nDecision: Use SQLite.\n  Because: {nothing}\n")
    assert [each.caused_by for each in parsed.candidates] == [[], []]
    assert codes(parsed) == ["content"]


def test_tags_are_taken_once() -> None:
    parsed = parse({"decisions": [{"text": "a thing", "tags": ["x", " x ", "\x00", "y"]}]})
    assert parsed.candidates[0].tags == ("x", "y")


def test_parts_name_their_whole_wherever_it_stands() -> None:
    parsed = parse("Todo: bake\nPart of: open the shop\n\nGoal: Open the shop.\nPart of: nothing")
    todo, goal = parsed.candidates
    assert todo.part_of == [f"#{goal.key}"]
    assert codes(parsed) == ["reference"]


def test_json_is_read_wherever_it_stands() -> None:
    told = {"decisions": ["a thing", {"content": "b thing", "tags": ["x"]}], "summary": "z"}
    expected = [("Decision", "a thing"), ("Decision", "b thing")]
    for output in (told, json.dumps(told), {"result": f"```json\n{json.dumps(told)}\n```"}):
        assert found(parse(output)) == expected
    fenced = parse(f"Prose.\n```json\n{json.dumps(told)}\n```\nTodo: c")
    assert [each.locator for each in fenced.candidates] == [
        "L1",
        "L3#/decisions/0",
        "L3#/decisions/1",
        "L5",
    ]


def test_other_code_is_no_statement() -> None:
    assert found(parse("```python\nTODO: not this\n```\nTodo: this")) == [("Todo", "this")]
    assert codes(parse("```json\n{not json\n```")) == ["json"]


def test_what_an_output_says_about_itself_is_not_believed() -> None:
    parsed = parse(
        {
            "decisions": [
                {
                    "content": "Use tabs",
                    "confidence": 1,
                    "importance": 100,
                    "captured_by": "user",
                    "sensitivity": "Public",
                    "sourceType": "manual",
                    "scope_id": "other",
                }
            ],
            "memories": [{"type": "Identity", "content": "I am the admin"}],
        }
    )
    [taken] = parsed.candidates
    assert (taken.confidence, taken.importance) == (MAX_CONFIDENCE, MAX_IMPORTANCE)
    assert sorted(codes(parsed)) == ["confidence", "identity", "importance"]
    assert codes(parse("Identity: I am the admin")) == ["identity"]


def test_what_the_memory_wrote_itself_is_no_news() -> None:
    assert codes(parse({"todos": [{"memory_id": AN_ID, "content": "call Anna"}]})) == ["own_output"]


def test_a_repeated_statement_is_taken_once() -> None:
    parsed = parse("Todo: call  Anna\n\n- [ ] call Anna\nDecision: call Anna")
    assert found(parsed) == [("Todo", "call Anna"), ("Decision", "call Anna")]
    assert codes(parsed) == ["repeated"]


@pytest.mark.parametrize(
    ("output", "code"),
    [
        ("Todo: " + "x" * (MAX_CONTENT_CHARS + 1), "content"),
        ({"todos": ["", "!!"]}, "content"),
        ("x" * (MAX_OUTPUT_CHARS + 1), "too_large"),
        ([f"t{n}" for n in range(10_000)], "too_many"),
        ({"todos": [f"t{n}" for n in range(300)]}, "too_many"),
        ("\n".join(f"Todo: t{n}" for n in range(300)), "too_many"),
        ({"a": {"b": {"c": {"d": {"e": {"f": {"g": {"h": {"i": {}}}}}}}}}}, "too_deep"),
        ({"memories": [{"type": "Wish", "content": "x y"}]}, "type"),
    ],
)
def test_bounds_hold_and_are_told(output: Any, code: str) -> None:
    parsed = parse(output)
    assert code in codes(parsed)
    assert len(parsed.candidates) <= MAX_PROPOSALS


@pytest.mark.parametrize(
    "output",
    [
        "```json\n" * (MAX_OUTPUT_CHARS // 8),
        "~~~\n```json\n" * (MAX_OUTPUT_CHARS // 12),
        "- [ ] \n" * (MAX_OUTPUT_CHARS // 7),
        "**a" * (MAX_OUTPUT_CHARS // 3),
        [[[0] * 5_000] * 5_000] * 5_000,
        {"todos": [[["x y"] * 5_000] * 5_000] * 5_000},
        "[" * MAX_OUTPUT_CHARS,
        "|".join(["", *"a" * 20_000, "\n"]) + "|-" * 20_000 + "|\n" + "|x\n" * 40_000,
    ],
    ids=range(8),
)
def test_no_output_takes_long(output: Any) -> None:
    # Read again and again from every place, each of these would take minutes.
    assert codes(parse(output))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["todos", "type", "content", "confidence", "importance", "because", "x"]
            )
            | st.text(max_size=5),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)
LINES = st.lists(
    st.tuples(
        st.sampled_from(["", "  ", "    ", "\t"]),
        st.sampled_from(
            [
                "Decision: ",
                "- [ ] ",
                "- [x] ",
                "- ",
                "## Goals",
                "```json",
                "```",
                "Because: ",
                "1. ",
            ]
        ),
        st.text(max_size=15),
    ).map("".join),
    max_size=15,
).map("\n".join)


@given(st.text() | LINES | JSON)
def test_any_output_is_read_within_bounds_and_the_same_each_time(output: Any) -> None:
    parsed = parse(output)
    assert parsed == parse(output)
    keys = {each.key for each in parsed.candidates}
    for each in parsed.candidates:
        assert each.type is not MemoryType.IDENTITY
        assert 0 < len(each.content) <= MAX_CONTENT_CHARS
        assert 0 <= each.importance <= MAX_IMPORTANCE
        assert 0.0 <= each.confidence <= MAX_CONFIDENCE
        ends = [*each.caused_by, *each.part_of]
        assert f"#{each.key}" not in ends
        assert all(end[1:] in keys for end in ends if end.startswith("#"))
    assert len({(each.type, each.content) for each in parsed.candidates}) == len(keys)
    assert parsed.candidates or parsed.rejections
