"""The relation classifier over the shipped weights and the local embedding model."""

from __future__ import annotations

import pytest

from memgraph.classification.relations import (
    RelationClassifier,
    RelationGuess,
    Statement,
    worth_comparing,
)
from memgraph.model.enums import Relation
from memgraph.providers.embedding import embedding_provider


@pytest.fixture(scope="module")
def classifier() -> RelationClassifier:
    return RelationClassifier(embedding_provider("local").embed)


def guess(classifier: RelationClassifier, a: str, b: str) -> RelationGuess:
    return classifier.classify(
        [(Statement(a, 1_750_000_000_000), Statement(b, 1_751_000_000_000))]
    )[0]


def test_probabilities_cover_the_five_relations_and_sum_to_one(
    classifier: RelationClassifier,
) -> None:
    found = guess(classifier, "The gate opens at nine.", "The gate opens at 9:00.")
    assert set(found.probabilities) == set(Relation)
    assert sum(found.probabilities.values()) == pytest.approx(1.0, abs=1e-4)
    assert found.probability == found.probabilities[found.relation]


def test_guesses_stand_in_the_order_of_the_pairs_and_do_not_depend_on_the_batch(
    classifier: RelationClassifier,
) -> None:
    texts = [
        ("Lockers are emptied on Fridays.", "Lockers aren't emptied on Fridays any more."),
        ("The lamp is red.", "Quarterly tax is due in May."),
    ]
    pairs = [(Statement(a), Statement(b)) for a, b in texts]
    together = [g.relation for g in classifier.classify(pairs)]
    assert together == [classifier.classify([pair])[0].relation for pair in pairs]
    assert together == [Relation.UPDATES, Relation.UNRELATED]


def test_no_pairs_give_no_guesses(classifier: RelationClassifier) -> None:
    assert classifier.classify([]) == []


@pytest.mark.parametrize("text", ["", " ", "?!", "…", "0", "\ud83d", "no " * 400, "東京"])
def test_any_text_is_taken(classifier: RelationClassifier, text: str) -> None:
    if text == "\ud83d":
        text = text.encode("utf-8", "replace").decode()
    assert guess(classifier, text, "The gate opens at nine.").relation in Relation
    assert guess(classifier, text, text).relation in Relation


def test_the_gate_wants_a_common_word_or_a_high_cosine() -> None:
    assert worth_comparing("a", "b", 0.9)
    assert worth_comparing("The boiler leaks", "Boiler repaired", 0.3)
    assert not worth_comparing("The boiler leaks", "Lunch is at noon", 0.3)
    assert not worth_comparing("The boiler leaks", "Boiler repaired", 0.0)
