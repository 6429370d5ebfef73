"""What is decided by a word alone is what all the rules together would say."""

from __future__ import annotations

from unittest.mock import patch

from hypothesis import example, given
from hypothesis import strategies as st

from memgraph.entities import names
from memgraph.entities.gazetteer import gazetteer
from memgraph.entities.words import read_words

LISTS = gazetteer()
SEPARATORS = (" ", " ", " ", ". ", "! ", ", ", ": ", "\n", " & ", " (", "'s ", "\u00a0", "-", "… ")
ODD = (
    "Foo-Bar",
    "BillingHub",
    "O'Brien",
    "l’Opéra",
    "v2",
    "12",
    "A_b",
    "É",
    "et al",
    "Hafenstraße",
)


def written() -> st.SearchStrategy[str]:
    """A word of the lists, or any other, in any case."""
    listed = [
        st.sampled_from(sorted(words))
        for words in (
            LISTS.given,
            LISTS.surnames,
            LISTS.places,
            LISTS.organizations,
            LISTS.ordinary,
            *LISTS.cues.values(),
        )
    ]
    word = st.one_of(*listed, st.sampled_from(ODD), st.text(min_size=1, max_size=9))
    return st.one_of(word, word.map(str.capitalize), word.map(str.lower))


def texts() -> st.SearchStrategy[str]:
    parts = st.lists(st.tuples(written(), st.sampled_from(SEPARATORS)), max_size=12)
    return parts.map(lambda found: "".join(word + gap for word, gap in found))


@given(texts())
@example("Walking et al. met Dr. Suddenly. Bank of America said it.")
@example("Dr's Velmar. Nr. Tolmar was here")
def test_a_word_alone_says_what_all_rules_say(text: str) -> None:
    quick = list(names.find_names(text, []))
    with patch.object(names, "_alone", return_value=None):
        assert quick == list(names.find_names(text, []))


@given(texts(), st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20)), max_size=3))
def test_words_stand_where_they_say_and_outside_what_is_covered(
    text: str, ranges: list[tuple[int, int]]
) -> None:
    covered = sorted((start, start + length) for start, length in ranges)
    sentence = read_words(text, covered)
    done = 0
    for word in sentence.words(0, len(sentence)):
        assert text[word.start : word.end] == word.text
        assert word.start >= done
        assert all(word.end <= low or word.start >= high for low, high in covered)
        done = word.end


def test_a_first_word_alone_is_read_without_its_surroundings() -> None:
    with patch.object(names, "_run_length", side_effect=AssertionError):
        assert list(names.find_names("Walking was fine. Then we slept. Because!", [])) == []
