"""What plain sentences are about, and where their verbs stand."""

from __future__ import annotations

import pytest

from memgraph.consolidation.statements import About, subject_of
from memgraph.consolidation.words import words_of


@pytest.mark.parametrize(
    ("text", "about", "verb"),
    [
        ("Greta is allergic to wasps.", About.NAME, "is"),
        ("Greta no longer teaches.", About.NAME, "teaches"),
        ("Greta quit on Monday.", About.NAME, "quit"),
        ("Greta and Olaf share a desk.", About.NAME, "share"),
        ("Grandma's knee is better.", About.NAME, "is"),
        ("The gate to the yard is green.", About.THING, "is"),
        ("The old scanner jams.", About.THING, "jams"),
        ("Every invoice needs a number.", About.THING, "needs"),
        ("Our supplier wants cash.", About.OWN, "wants"),
        ("We are shut on Sundays.", About.WE, "are"),
        ("Parcels come at noon.", About.NOUN, "come"),
        ("Music is everything.", About.NOUN, "is"),
    ],
)
def test_a_subject_is_followed_by_its_verb(text: str, about: About, verb: str) -> None:
    words = words_of(text)
    subject = subject_of(text, words)
    assert subject is not None
    assert (subject.about, words[subject.verb].lower) == (about, verb)


@pytest.mark.parametrize(
    "text",
    [
        "The answer is wrong.",
        "The second one was fine.",
        "Of the two, take one.",
        "Lovely weather.",
    ],
)
def test_what_is_only_of_the_talk_has_no_subject(text: str) -> None:
    assert subject_of(text, words_of(text)) is None
