"""Statements that differ in one value, or in a "not"; and those that only look so."""

from __future__ import annotations

import pytest

from memgraph.classification.relation_minimal import ONE_NEGATION, ONE_VALUE
from memgraph.classification.relations import RelationClassifier, Statement
from memgraph.model.enums import Relation
from memgraph.service.classifiers import relation_classifier

DAY = 86_400_000


@pytest.fixture(scope="module")
def classifier() -> RelationClassifier:
    return relation_classifier()


@pytest.mark.parametrize(
    ("earlier", "later", "reason"),
    [
        ("The fee for a locker is 12 euros.", "The fee for a locker is 15 euros.", ONE_VALUE),
        (
            "Guests may stay for 10 nights.",
            "We agreed that guests may stay for 12 nights.",
            ONE_VALUE,
        ),
        ("The pool opens at 7:00 on Sundays.", "The pool opens at 9:30 on Sundays.", ONE_VALUE),
        ("Tamar lives in Tbilisi.", "Tamar lives in Porto.", ONE_VALUE),
        ("Bruno's manager is Ines.", "Bruno's manager is Katrin.", ONE_VALUE),
        ("Ola works at Brightwater.", "Ola does not work at Brightwater.", ONE_NEGATION),
        ("The lift isn't locked at night.", "The lift is locked at night.", ONE_NEGATION),
        ("The deadline is on 3 March.", "The deadline is on 4 March.", ONE_VALUE),
        ("The colour of the door is red.", "The colour of the door is green.", ONE_VALUE),
        ("Tamar's favourite dish is soup.", "Tamar's favourite dish is rice.", ONE_VALUE),
        ("Hugo can't swim.", "Hugo can swim.", None),
    ],
)
def test_one_value_or_one_not_apart_is_a_contradiction(
    classifier: RelationClassifier, earlier: str, later: str, reason: str | None
) -> None:
    [guess] = classifier.classify([(Statement(earlier, 0), Statement(later, 9 * DAY))])
    if reason is None:
        # Too few words to be sure that both speak of one thing.
        assert ONE_NEGATION not in guess.reasons
        return
    assert guess.relation is Relation.CONTRADICTS
    assert guess.reasons[0] == reason


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("Tamar lives in Tbilisi.", "Tamar lives in Porto now."),
        ("Tamar works at Brightwater.", "Tamar no longer works at Brightwater."),
        ("The fee for a locker is 12 euros.", "The fee for a locker is now 15 euros."),
    ],
)
def test_a_word_of_change_makes_it_an_update(
    classifier: RelationClassifier, earlier: str, later: str
) -> None:
    [guess] = classifier.classify([(Statement(earlier, 0), Statement(later, 9 * DAY))])
    assert guess.relation is Relation.UPDATES


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("The pool opens at 7:00 on Sundays.", "The pool opens at 7:00 on Mondays."),
        ("Tamar bought 3 lamps at the market.", "Tamar bought 5 lamps at the market."),
        ("Ticket 611 is waiting for an answer.", "Ticket 612 is waiting for an answer."),
        ("Release 2.4.1 is supported by us.", "Release 2.5.0 is supported by us."),
        ("Tamar likes the sea in Porto.", "Tamar likes the sea in Lagos."),
        ("Tamar is tall for her age.", "Tamar is clever for her age."),
        ("Ines lives in Porto.", "Bruno lives in Porto."),
        ("Hall 3 is free on Sunday morning.", "Hall 4 is free on Sunday morning."),
        ("Ines was paid 30 euros for it.", "Ines was paid 40 euros for it."),
        ("In 2024 the choir has 20 members.", "In 2025 the choir has 20 members."),
        ("Room 4 is on the second floor.", "Room 5 is on the second floor."),
        ("Server 3 stands in the cellar.", "Server 4 stands in the cellar."),
        ("Invoice 1001 is still unpaid.", "Invoice 1002 is still unpaid."),
        ("Tamar is in the office on 3 March.", "Tamar is in the office on 4 March."),
        ("One of the founders is Tamar.", "One of the founders is Bruno."),
        ("Tamar's friend is Ines.", "Tamar's friend is Katrin."),
        ("A good place for lunch is Luigi.", "A good place for lunch is Marco."),
        ("Tamar's sister is older.", "Tamar's sister is taller."),
        ("Tamar's car is fast.", "Tamar's car is red."),
        ("Tamar's hobby is chess.", "Tamar's hobby is sailing."),
        ("Tamar has 2 cats at home.", "Tamar has 3 dogs at home."),
    ],
)
def test_another_thing_time_or_event_is_none(
    classifier: RelationClassifier, earlier: str, later: str
) -> None:
    [guess] = classifier.classify([(Statement(earlier, 0), Statement(later, 9 * DAY))])
    assert not {ONE_VALUE, ONE_NEGATION} & set(guess.reasons)
    assert guess.relation is not Relation.CONTRADICTS


def test_the_same_sentence_is_no_contradiction_of_itself(classifier: RelationClassifier) -> None:
    same = Statement("The fee for a locker is 12 euros.", 0)
    [guess] = classifier.classify([(same, same)])
    assert guess.relation is not Relation.CONTRADICTS
