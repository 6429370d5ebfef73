"""What must be shared before one statement may replace or contradict another."""

from __future__ import annotations

import pytest

from memgraph.classification.relation_features import pair_features, read_batch
from memgraph.classification.relation_frame import Statement
from memgraph.classification.relation_reasons import ruled_out
from memgraph.classification.relations import RelationClassifier
from memgraph.model.enums import Relation
from memgraph.providers.embedding import embedding_provider

CLAIMS = {Relation.CONTRADICTS, Relation.UPDATES, Relation.DUPLICATE}


def features(a: str, b: str) -> dict[str, float]:
    ((frames,), vectors) = read_batch(
        [(Statement(a), Statement(b))], embedding_provider("local").embed
    )
    return pair_features(*frames, vectors)


OTHER_THING = [
    ("Ada Byron rents a boat.", "Ada Lorne rents a canoe from now on."),
    ("Ada Byron rents a boat.", "Cleo Byron no longer rents a boat."),
    ("The upper field grows barley.", "The walled field was sown with oats."),
    ("The Oslo sales desk opens at nine.", "The Oslo repair desk opens at ten now."),
    ("Ada is the head of Bert Lowe.", "The head of Carl Munk is Ada."),
    ("We sell project Heron One under MIT.", "We sell project Heron East under MIT."),
    ("The paint of project Heron is blue.", "The paint of project Walnut is green now."),
]


@pytest.mark.parametrize(("a", "b"), OTHER_THING)
def test_of_two_things_no_claim_is_made(a: str, b: str) -> None:
    for one, two in ((a, b), (b, a)):
        row = features(one, two)
        assert row["other_thing"] == 1.0
        assert ruled_out(row) >= CLAIMS


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("Ada Byron rents a boat.", "Byron rents a canoe now."),
        ("The upper field grows barley.", "The upper field grows oats now."),
        ("The upper field grows barley.", "From now on the field grows oats."),
        ("Ada is the head of Bert Lowe.", "The head of Bert Lowe is Carl now."),
        ("The vat holds 30 litres.", "The vat holds 31 litres."),
        ("We run Postgres.", "We run MySQL now."),
    ],
)
def test_one_thing_is_not_taken_for_two(a: str, b: str) -> None:
    assert features(a, b)["other_thing"] == 0.0


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("The Oslo desk is painted grey.", "The Oslo desk hired a juggler from now on."),
        ("Ada Byron grew up in Porto.", "Nowadays Ada Byron snores."),
    ],
)
def test_words_of_a_change_replace_no_other_fact(a: str, b: str) -> None:
    row = features(a, b)
    assert row["apart"] == 1.0
    assert Relation.UPDATES in ruled_out(row)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("The Oslo desk opens at 9:00.", "The Oslo desk now welcomes guests from 10:30."),
        ("Ada Byron lives in Porto.", "Ada Byron moved to Lisbon."),
        ("The bell is red.", "The bell was painted green."),
    ],
)
def test_values_of_one_sort_meet(a: str, b: str) -> None:
    assert features(a, b)["apart"] == 0.0


def test_a_statement_that_says_nothing_new_replaces_nothing() -> None:
    row = features("Ada Byron plays the harp.", "Scratch that, Ada Byron from now on.")
    assert row["nothing_new"] == 1.0
    assert Relation.UPDATES in ruled_out(row)


def test_an_acronym_does_not_make_a_statement_german() -> None:
    row = features("We publish project Heron East under MIT.", "Project Walnut East is late.")
    assert row["other_name"] == 1.0


def test_near_misses_get_no_claim_and_true_ones_keep_theirs() -> None:
    classifier = RelationClassifier(embedding_provider("local").embed)
    pairs = [(Statement(a), Statement(b)) for a, b in OTHER_THING]
    assert not CLAIMS & {each.relation for each in classifier.classify(pairs)}
    kept = [
        (
            "The upper barn is painted grey.",
            "The upper barn was painted green, it is no longer grey.",
        ),
        ("Ada Byron comes by bus.", "Ada Byron comes by train now, she gave up the bus."),
    ]
    found = classifier.classify([(Statement(a), Statement(b)) for a, b in kept])
    assert [each.relation for each in found] == [Relation.UPDATES] * 2
