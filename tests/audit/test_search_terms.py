"""Many strings found at once, however they are written down."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memgraph.audit.search_terms import SearchTerms
from memgraph.rules.erasure import ENOUGH, MARK

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=12)
NOISE = st.binary(max_size=200)
WAYS = (
    lambda text: text,
    lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    lambda text: json.dumps(text)[1:-1],
)


@given(TEXTS, NOISE, NOISE, st.sampled_from(range(3)))
def test_a_string_is_found_in_every_spelling(
    text: str, before: bytes, after: bytes, way: int
) -> None:
    written = WAYS[way](text).encode()
    assert SearchTerms([text]).found_in(before + written + after) == {0}


@given(TEXTS, st.binary(max_size=40))
def test_a_json_text_inside_of_another_is_found(text: str, before: bytes) -> None:
    details = json.dumps({"answer": json.dumps({"content": text})}).encode()
    assert SearchTerms([text]).found_in(before + details) == {0}


@given(st.lists(TEXTS, min_size=1, max_size=5), TEXTS)
def test_a_scrubbed_text_says_none_of_the_strings(strings: list[str], around: str) -> None:
    needles = SearchTerms(strings)
    text = around.join(strings)
    remainder = needles.scrub(text)
    assert remainder != text
    assert MARK in remainder
    assert all(string not in remainder for string in strings if MARK not in string)


@given(TEXTS, TEXTS)
@example("000000000000", "\ue000")
@example("nnnnnnnnnnnn", "\n")
@example("\\" * 13, '"')
@example("e9 is how it begins", "\u00e9")
def test_a_scrubbed_json_text_is_one_still(text: str, other: str) -> None:
    details = json.dumps({"a": [f"{other}{text}{other}"], "b": 1})
    assert json.loads(SearchTerms([text]).scrub(details))["b"] == 1


@pytest.mark.parametrize(
    ("text", "said", "remainder"),
    [
        ("name of the vault", r"C:\name of the vault", "C:" + MARK),
        ("name of the vault", r"C:\\name of the vault", r"C:\\" + MARK),
        ("the vault \\", r"the vault \nand more", MARK + "and more"),
        ("the vault \\", r"the vault \\nand more", MARK + "nand more"),
        ("00e9 of the vault", r"\u00e9 of the vault", MARK),
        ("of the vault", r"\u00e9of the vault\n", r"\u00e9" + MARK + r"\n"),
        ("of the vault", r"\xof the vault\q", r"\x" + MARK + r"\q"),
    ],
)
def test_an_escape_goes_whole_or_stays(text: str, said: str, remainder: str) -> None:
    assert SearchTerms([text]).scrub(said) == remainder


@given(st.text('abc äß\n"\\', min_size=60, max_size=90), st.integers(ENOUGH, 59))
def test_a_text_that_was_cut_short_is_found_by_its_beginning(text: str, length: int) -> None:
    cut = text[:length] + "…"
    assert SearchTerms([text]).found_in(cut.encode()) == {0}
    assert text[:ENOUGH] not in SearchTerms([text]).scrub(cut)


def test_what_is_unlike_is_not_found() -> None:
    needles = SearchTerms(["The vault lies under the attic stairs"])
    assert needles.found_in(b"The vault lies under") == set()
    assert needles.found_in(b"the vault lies under the attic stairs") == set()
    assert needles.scrub("The vault is open") == "The vault is open"


def test_a_longer_beginning_is_asked_for_where_another_text_begins_so() -> None:
    text = "The vault lies under the attic stairs"
    needles = SearchTerms([text], {0: len("The vault lies under the ") + 1})
    assert needles.found_in(b"The vault lies under the cellar") == set()
    assert needles.found_in(text.encode()) == {0}


@pytest.mark.parametrize("size", [1 << 22, (1 << 22) + 7, 3 * (1 << 22) + 1])
def test_nothing_is_missed_where_pieces_meet(size: int) -> None:
    text = b"a needle in a very large stack of hay"
    data = bytearray(size + len(text))
    for start in (0, (1 << 22) - 3, (1 << 22) - len(text), size):
        data[start : start + len(text)] = text
        assert SearchTerms([text.decode()]).found_in(bytes(data)) == {0}
        data[start : start + len(text)] = bytes(len(text))
    assert SearchTerms([text.decode()]).found_in(bytes(data)) == set()


def test_bytes_are_found_as_they_are() -> None:
    blob = bytes(range(64))
    needles = SearchTerms(["some words of some text"], blobs=[blob])
    assert needles.found_in(b"..." + blob) == {1}
    assert needles.found_in(b"..." + blob[:-1]) == set()
    assert len(needles) == 2
