"""The relation classifier over the shipped weights and the local embedding model."""

from __future__ import annotations

import json
import os
from datetime import datetime
from pathlib import Path

import pytest

from memgraph.classification.relations import (
    RelationClassifier,
    RelationGuess,
    Statement,
    worth_comparing,
)
from memgraph.classification.score import score_pairs
from memgraph.model.enums import Relation
from memgraph.providers.embedding import embedding_provider

ROOT = Path(__file__).parents[2]
CORPUS = ROOT / "benchmarks" / "corpus"


def _ms(stamp: str) -> int:
    return int(datetime.fromisoformat(stamp.replace("Z", "+00:00")).timestamp() * 1000)


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


@pytest.mark.parametrize(
    ("a", "b", "relation"),
    [
        ("Hall 7 holds 450 people.", "No more than 90 people fit into hall 7.", "contradicts"),
        (
            "Rosa never eats fish.",
            "Rosa has tuna every day, she always has.",
            "contradicts",
        ),
        ("The kiln is fired with gas.", "The kiln was converted, it is electric now.", "updates"),
        ("Send Jo the keys.", "The keys were sent to Jo this morning.", "updates"),
        ("The rehearsal begins at 19:00.", "The rehearsal begins at 7 p.m.", "duplicate"),
        ("Rosa plays the harp.", "Viktor doesn't play the harp.", "compatible"),
        ("Rosa plays the harp.", "The invoice run failed with code 3.", "unrelated"),
    ],
)
def test_plain_pairs(classifier: RelationClassifier, a: str, b: str, relation: str) -> None:
    assert guess(classifier, a, b).relation == relation


@pytest.mark.parametrize("b", ["Does hall 7 hold 90 people?", "Hall 7 holds 90 people:"])
def test_what_claims_nothing_contradicts_nothing(classifier: RelationClassifier, b: str) -> None:
    claims = {Relation.CONTRADICTS, Relation.UPDATES, Relation.DUPLICATE}
    assert guess(classifier, "Hall 7 holds 450 people.", b).relation not in claims


def test_a_figure_that_differs_is_never_a_duplicate(classifier: RelationClassifier) -> None:
    found = guess(classifier, "The vat holds 30 litres.", "The vat holds 31 litres.")
    assert found.relation is not Relation.DUPLICATE
    assert "value_differs:number" in found.reasons


def test_lines_of_two_topics_never_contradict(classifier: RelationClassifier) -> None:
    rows = [
        json.loads(line)
        for line in (CORPUS / "relations.jsonl").read_text("utf-8").splitlines()[::16]
    ]
    pairs = [
        (Statement(one["a"]), Statement(two["b"]))
        for one, two in zip(rows, rows[7:] + rows[:7], strict=True)
    ]
    guesses = classifier.classify(pairs)
    assert sum(g.relation is Relation.CONTRADICTS for g in guesses) <= len(pairs) // 100


def test_the_labelled_lines_are_told_apart(classifier: RelationClassifier) -> None:
    shared = Path(os.environ.get("MEMGRAPH_SHARED", ROOT.parent / "shared"))
    labels = shared / "data" / "labels" / "pairs-dev.jsonl"
    if not labels.exists():
        pytest.skip("the labelled lines are not here")
    rows = [json.loads(line) for line in labels.read_text("utf-8").splitlines()]
    pairs = [tuple(Statement(r[k], _ms(r[f"{k}_time"])) for k in "ab") for r in rows]
    found = [g.relation.value for g in classifier.classify([(a, b) for a, b in pairs])]
    score = score_pairs([r["label"] for r in rows], found)
    assert score["contradicts"]["precision"] >= 0.85
    assert score["contradicts"]["recall"] >= 0.40
    assert score["duplicate"]["precision"] >= 0.95
    assert score["updates"]["precision"] >= 0.90


def test_the_gate_wants_a_common_word_or_a_high_cosine() -> None:
    assert worth_comparing("a", "b", 0.9)
    assert worth_comparing("The boiler leaks", "Boiler repaired", 0.3)
    assert not worth_comparing("The boiler leaks", "Lunch is at noon", 0.3)
    assert not worth_comparing("The boiler leaks", "Boiler repaired", 0.0)
