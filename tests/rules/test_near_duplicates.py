"""Finding near duplicates among many texts gives what comparing all pairs gives."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from memgraph.rules.similarity import MOST_CANDIDATES, Similarity, compare, near_duplicates

WORDS = ["the", "lift", "cellar", "door", "is", "not", "red", "10", "20", "open", "Über", "opens"]


@given(st.lists(st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join), max_size=14))
def test_it_finds_what_comparing_each_with_each_finds(texts: list[str]) -> None:
    numbered = dict(enumerate(texts))
    expected: dict[int, int] = {}
    for one, other in combinations(numbered, 2):
        if compare(texts[one], texts[other]) is Similarity.NEAR:
            expected.setdefault(other, one)
    assert near_duplicates(numbered) == expected


def test_equal_texts_are_no_near_ones_and_other_numbers_are_other_things() -> None:
    texts = {1: "The lift holds 10 people now.", 2: "The lift holds 10 people now."}
    assert near_duplicates(texts) == {}
    assert near_duplicates({1: texts[1], 5: "The lift holds 12 people now."}) == {}
    assert near_duplicates({7: texts[1], 3: "The lift now holds 10 people!"}) == {7: 3}


def test_many_texts_of_the_same_words_are_not_compared_each_with_each() -> None:
    texts = {number: f"the same seven words in every line {number}" for number in range(1_000)}
    assert len(texts) > 10 * MOST_CANDIDATES
    assert near_duplicates(texts) == {}


def test_texts_of_other_lengths_take_no_room() -> None:
    common = [f"word{number}" for number in range(20)]
    first = ["amber", "birch", *common[:5], "older"]
    long = [["amber", *common]] * 40 + [["birch", *common]] * 40
    last = ["amber", "birch", *common[:5], "newer"]
    texts = {key: " ".join(words) for key, words in enumerate([first, *long, last])}

    assert near_duplicates(texts)[len(texts) - 1] == 0
