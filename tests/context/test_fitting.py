"""Texts that are cut."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memgraph.context.assembly import CUT, shortened

WORDS = ("heron", "nests", "of", "the", "reeds", "Straße", "quay")
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=200).map(" ".join)
asked = st.frozensets(st.sampled_from([each.casefold() for each in WORDS]))


@example("heron heron heron the", 20, frozenset())
@given(texts, st.integers(20, 400), asked)
def test_whole_words_of_the_text_in_their_order_and_no_more_than_were_asked_for(
    text: str, kept: int, words: frozenset[str]
) -> None:
    short = shortened(text, kept, words)
    parts = short.split(CUT)
    assert len(parts) <= 3
    assert sum(len(part) for part in parts) <= max(kept, 0)
    at = 0
    for part in parts:
        assert set(part.split()) <= set(WORDS)
        at = text.index(part, at) + len(part)
    assert text.startswith(parts[0])
    assert text.endswith(parts[-1])
    if len(text) <= kept:
        assert short == text


@given(st.text(max_size=300), st.integers(20, 200), st.frozensets(st.text(max_size=5)))
def test_any_text_can_be_cut(text: str, kept: int, words: frozenset[str]) -> None:
    assert len(shortened(text, kept, words)) <= max(kept, 0) + 2 * len(CUT)


def test_a_script_without_blanks_is_cut_anywhere() -> None:
    assert shortened("記" * 100, 30) == "記" * 20 + CUT + "記" * 10


@pytest.mark.parametrize("at", [3, 20, 150, 280])
def test_the_place_of_a_word_is_kept_wherever_it_is(at: int) -> None:
    words = ["middle"] * 300
    words[at] = "heron"
    short = shortened(" ".join(words), 150, {"heron", "middle", "nowhere"})
    assert "heron" in short
    assert short.startswith("middle middle")


def test_of_several_places_the_one_with_most_words_is_kept() -> None:
    words = ["middle"] * 300
    words[80] = "heron"
    words[180:182] = "heron", "nests"
    assert "heron nests" in shortened(" ".join(words), 150, {"heron", "nests"})


def test_words_at_the_ends_move_nothing() -> None:
    text = "heron " + "middle " * 200 + "the heron and all"
    assert shortened(text, 150, {"heron"}) == shortened(text, 150)
