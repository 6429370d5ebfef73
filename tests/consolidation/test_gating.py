"""What speaks of one thing, and which differences a relation may be claimed for."""

from __future__ import annotations

import pytest

from memgraph.classification.relations import RelationGuess
from memgraph.consolidation.comparing import claim_of, is_one_claim
from memgraph.consolidation.gating import of_one_thing, says_the_same, shared, stands
from memgraph.model.enums import Relation


def guess(relation: Relation, *reasons: str) -> RelationGuess:
    odds = dict.fromkeys(Relation, 0.05) | {relation: 0.8}
    return RelationGuess(relation, 0.8, odds, reasons)


def test_names_are_no_common_content() -> None:
    assert shared("Ann lives in Berlin.", "Ann works in Berlin.").words == 0
    assert shared("Ann lives in Berlin.", "Ann lives in Munich.").words == 1


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Ann lives in Berlin.", "Ann lives in Munich.", True),
        ("The build takes 10 minutes.", "The build takes 25 minutes.", True),
        ("Bob works at Siemens.", "Bob no longer works at Siemens.", True),
        ("Bob works at Siemens.", "Bob works at Bosch.", True),
        ("Bob works at Siemens.", "Bob painted a large picture of a horse.", False),
        ("Ann lives in Berlin with two cats.", "Bob lives in Berlin with two cats.", False),
        ("Today Ann lives in Berlin.", "Ann lives in Munich.", True),
        ("Jon has two dogs and a garden.", "Jon practises dance routines every day.", False),
        ("Ann adopted a pup at the shelter.", "Ann gave a talk at the town hall.", False),
    ],
)
def test_one_thing_needs_a_common_attribute(one: str, other: str, same: bool) -> None:
    assert of_one_thing(one, other) is same
    assert of_one_thing(other, one) is same


@pytest.mark.parametrize(
    ("reasons", "kept"),
    [
        (("same_subject", "value_differs:number"), True),
        (("same_subject", "negation_flip"), True),
        (("same_subject", "value_differs:date"), True),
        (("same_subject", "change_marker"), False),
        (("value_differs:number",), False),
        (("same_subject", "other_subject", "negation_flip"), False),
    ],
)
def test_an_edge_needs_one_subject_and_a_difference(reasons: tuple[str, ...], kept: bool) -> None:
    said = guess(Relation.UPDATES, *reasons)
    assert stands(said, "The build takes 10 minutes.", "The build takes 25 minutes.") is kept


def test_two_things_that_happened_on_two_days_are_two_things() -> None:
    said = guess(Relation.UPDATES, "same_subject", "value_differs:date")
    one = "Ann won a tournament last week (week of 2023-01-10)."
    other = "Ann won a tournament yesterday (2023-08-21)."
    assert not stands(said, one, other)
    assert stands(said, "The release is on 3 May.", "The release is on 9 May.")


def test_a_paraphrase_differs_in_nothing_that_has_a_name() -> None:
    one, other = "Ann opened an online clothing store.", "Ann's online clothing store is open."
    assert says_the_same(guess(Relation.DUPLICATE, "same_subject"), one, other)
    flipped = guess(Relation.DUPLICATE, "same_subject", "negation_flip")
    assert not says_the_same(flipped, one, other)
    assert not says_the_same(guess(Relation.COMPATIBLE, "same_subject"), one, other)


def test_a_quote_is_the_claim_of_its_speaker() -> None:
    ann, bob = claim_of("Ann: “We chose SQLite.”"), claim_of("Bob: “We chose SQLite.”")
    assert (ann.text, ann.speaker) == ("We chose SQLite.", "Ann")
    assert is_one_claim(ann.text)
    assert not ann.may_meet(bob)
    assert not is_one_claim("Ann: “We chose SQLite.”")
