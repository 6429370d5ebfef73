"""An entry comes back from its parts as it was, and every part can be stored."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memgraph.errors import InvalidInput
from memgraph.model.conversation import ConversationEntry
from memgraph.model.values import MAX_CONTENT_CHARS, EpisodeInput
from memgraph.rules.conversations import MAX_LABEL_CHARS, entry_of, part_place, parts_of

ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()))
LONG = st.builds(
    lambda text, times: text * times,
    st.text("ab \n\t\x00é😀\ud800", min_size=1, max_size=5),
    st.integers(0, 40_000),
)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=10,
)


def stored(entry: ConversationEntry) -> list[EpisodeInput]:
    """The parts as valid episodes."""
    return [
        EpisodeInput(
            session_id="s", source_role="user", content=part.content, attributes=part.attributes
        )
        for part in parts_of(entry)
    ]


def back(episodes: list[EpisodeInput]) -> ConversationEntry:
    return entry_of([(one.content, one.attributes) for one in episodes])


def dumped(value: Any) -> str:
    return json.dumps(value)


@given(JSON, ANY_TEXT | LONG)
@example({"b": 1, "a": [1.0, 10**40, -0.0]}, "")
@example(["\\" * 8_000, '"' * 8_000], "x")
@example(None, " " * (MAX_CONTENT_CHARS + 1) + "x")
@example(None, "a" * MAX_CONTENT_CHARS + " ")
@example(None, "a" * (2 * MAX_CONTENT_CHARS) + "\x00")
def test_it_comes_back_as_it_was(record: Any, text: str) -> None:
    found = back(stored(ConversationEntry(record, text, "person")))
    assert (dumped(found.record), found.text) == (dumped(record), text)


@given(st.integers(0, 60_000), st.integers(0, 3 * MAX_CONTENT_CHARS))
def test_parts_are_numbered(chars_of_record: int, chars_of_text: int) -> None:
    parts = parts_of(ConversationEntry("r" * chars_of_record, "t" * chars_of_text, "agent"))
    places = [part_place(part.attributes) for part in parts]
    assert places == [(place, len(parts)) for place in range(len(parts))]
    assert "".join(part.content for part in parts if part.said) == "t" * chars_of_text


def test_a_long_text_is_cut_between_words() -> None:
    words = [f"word{number}" for number in range(8_000)]
    said = [
        part.content
        for part in parts_of(ConversationEntry(None, " ".join(words), "person"))
        if part.said
    ]
    assert len(said) > 1
    assert [word for content in said for word in content.split()] == words


@pytest.mark.parametrize("text", ["\x00", "\ud800", " \n ", "a\x00b", "\ud800 c"])
def test_what_is_readable_of_an_odd_text_can_be_recalled(text: str) -> None:
    [part] = parts_of(ConversationEntry({}, text, "person", label="a message"))
    readable = " ".join(text.replace("\x00", " ").replace("\ud800", " ").split())
    assert (part.content, part.said) == (readable or "a message", bool(readable))


def test_a_label_is_one_short_line() -> None:
    [part] = parts_of(ConversationEntry({}, label="call\nof \x00a tool " + "x" * 500))
    assert part.content.startswith("call of a tool x")
    assert len(part.content) == MAX_LABEL_CHARS


@pytest.mark.parametrize("record", [float("nan"), {1, 2}, object(), [b"bytes"]])
def test_what_is_no_json_is_refused(record: Any) -> None:
    with pytest.raises(InvalidInput):
        parts_of(ConversationEntry(record))


def test_a_text_without_a_speaker_is_refused() -> None:
    with pytest.raises(InvalidInput, match="speaker"):
        parts_of(ConversationEntry({}, "said by nobody"))


@pytest.mark.parametrize("attributes", [{}, {"entry": "another's"}, {"entry": {"of": 1}}])
def test_other_episodes_hold_no_part(attributes: dict[str, Any]) -> None:
    assert part_place(attributes) is None
