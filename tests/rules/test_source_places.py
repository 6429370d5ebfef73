"""Which part of a file a locator names, and what of it may be shown."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from memgraph.rules.sources import FilePart, FileText, part_of, texts_of

TEXT = "one\ntwo\r\nthree\rfour\u2028five"
LINES = ["one", "two", "three", "four", "five"]
ranges = st.tuples(st.integers(1, 7), st.integers(1, 7)).map(sorted)


def shown(text: str, locator: str, *hidden: str) -> list[tuple[int | None, str]]:
    part = part_of(locator)
    assert part is not None
    hidden_parts = [one for one in map(part_of, hidden) if one is not None]
    return list(texts_of(FileText.of(text.encode()), part, hidden_parts))


@pytest.mark.parametrize("locator", [None, "", "L0-L2", "L3-L2", "L1", "l1-l2", "L1-L2#/a", "a/b"])
def test_what_names_no_part(locator: str | None) -> None:
    assert part_of(locator) is None


@given(ranges, st.lists(ranges, max_size=3))
def test_lines_are_those_of_the_range_but_for_hidden_ones(
    own: list[int], hidden: list[list[int]]
) -> None:
    found = shown(TEXT, f"L{own[0]}-L{own[1]}", *(f"L{one}-L{last}" for one, last in hidden))
    gone = {number for one, last in hidden for number in range(one, last + 1)}
    assert found == [
        (number, text)
        for number, text in enumerate(LINES, start=1)
        if own[0] <= number <= own[1] and number not in gone
    ]


@given(ranges)
def test_a_hidden_place_that_is_no_range_hides_all_lines(own: list[int]) -> None:
    assert shown(TEXT, f"L{own[0]}-L{own[1]}", "#") == []
    assert shown(TEXT, f"L{own[0]}-L{own[1]}", "/memories/0") == []


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_text_is_read_as_it_is_encoded(encoding: str) -> None:
    found = texts_of(FileText.of("eins\nzwei ü\n".encode(encoding)), FilePart(2, 2))
    assert list(found) == [(2, "zwei ü")]


VALUE: dict[str, Any] = {"memories": [{"content": "ä"}, {"a/b": {"~": [1, 2]}}], "n": 1}


@pytest.mark.parametrize(
    ("pointer", "value"),
    [
        ("/memories/0", {"content": "ä"}),
        ("/memories/1/a~1b/~0/1", 2),
        ("/n", 1),
    ],
)
def test_a_value_in_json_is_the_one_that_the_pointer_names(pointer: str, value: Any) -> None:
    lines = shown(json.dumps(VALUE), pointer)
    assert {number for number, _ in lines} == {None}
    assert json.loads("\n".join(text for _, text in lines)) == value


@pytest.mark.parametrize("pointer", ["/memories/2", "/memories/x", "/n/0", "/nothing", "/"])
def test_what_is_not_there_is_not_shown(pointer: str) -> None:
    assert shown(json.dumps(VALUE), pointer) == []
    assert shown("no json", pointer) == []


@pytest.mark.parametrize(
    ("hidden", "is_shown"),
    [
        ("/memories/0", False),
        ("/memories", False),
        ("/memories/0/content", False),
        ("L1-L1", False),
        ("#", False),
        ("/memories/1", True),
        ("/memories/00", True),
    ],
)
def test_a_value_of_which_anything_is_hidden_is_not_shown(hidden: str, is_shown: bool) -> None:
    assert bool(shown(json.dumps(VALUE), "/memories/0", hidden)) is is_shown
