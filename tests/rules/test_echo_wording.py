"""A sentence is covered only where nothing in it is new."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memgraph.rules.similarity import WordSplitter

WORDS = WordSplitter(lambda word: word.casefold().rstrip("s").removesuffix("ed"))


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("You moved to Graz in May", "Mira moved to Graz in May."),
        ("MIRA MOVED TO GRAZ", "Mira moved to Graz in May with two cats."),
        ("Mira doesn't eat fish", "Mira does not eat fish."),
        ("Mira can't eat nuts", "Mira cannot eat nuts."),
        ("Mira won't sell the flat", "Mira will not sell the flat."),
        ("You still rent the blue flat", "She likes tea. Mira rents the blue flat."),
        ("Mira plans to sell the flat", "Mira plans to sell the flat because of the noise."),
        ("The rent is 640 euros", "Mira: the rent is 640 euros a month"),
    ],
)
def test_other_words_for_the_same(said: str, text: str) -> None:
    assert WORDS.says_nothing_new(said, text)


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("You moved to Linz in May", "Mira moved to Graz in May."),
        ("Mira moved to Graz in June", "Mira moved to Graz in May."),
        ("Mira does not eat fish", "Mira eats fish."),
        ("Mira eats fish", "Mira does not eat fish."),
        ("Mira can eat nuts", "Mira cannot eat nuts."),
        ("Mira sold the flat", "Mira plans to sell the flat."),
        ("Mira sells the flat", "Mira plans to sell the flat."),
        ("Mira moved to Paris", "Mira moved from Paris to Graz."),
        ("Ida manages Mira at work", "Mira manages Ida at work."),
        ("The rent is 46.0 euros", "The rent is 4.60 euros."),
        ("Mira has a grey cat named Ito", "Mira has a black cat named Ito."),
        ("You live in Graz", "Ida's parents live in Graz."),
        ("You live in Graz", "His parents live in Graz."),
        ("Mira lives in Graz", "Ida lives in Graz. Mira lives in Linz."),
        ("Graz", "Mira lives in Graz."),
    ],
)
def test_something_new(said: str, text: str) -> None:
    assert not WORDS.says_nothing_new(said, text)


def test_clauses_can_be_judged_by_themselves() -> None:
    said = "You moved to Graz in May, and you keep a cat named Ito; the rent is 640"
    assert WORDS.clauses(said) == [
        "You moved to Graz in May",
        "you keep a cat named Ito",
        "the rent is 640",
    ]
    assert WORDS.clauses("Mira and Ida moved to Graz") == ["Mira Ida moved to Graz"]


@given(st.text(max_size=300), st.text(max_size=300))
def test_any_texts(said: str, text: str) -> None:
    assert WORDS.says_nothing_new(said, text) in (True, False)
    wording = WORDS.wording(said)
    assert all(term and '"' not in term for term in wording.terms)
