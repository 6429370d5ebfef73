"""The type classifier: its answers on plain lines, its shape, and that its weights are current."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from benchmarks.label_scores import score_types
from memgraph.errors import ProviderAnswerInvalid
from memgraph.model.enums import MemoryType
from memgraph.providers import memory_types
from memgraph.providers.embedding import embedding_provider
from memgraph.providers.memory_types import (
    CUES_FILE,
    MAX_CHARACTERS,
    TYPE_LABELS,
    TypeClassifier,
    features,
    tokenize,
)

ROOT = Path(__file__).parents[2]
CORPUS = ROOT / "benchmarks" / "corpus" / "types.jsonl"
SHARED = Path(os.environ.get("MEMGRAPH_SHARED", ROOT.parent / "shared"))
DEV = SHARED / "data" / "labels" / "types-dev.jsonl"

PLAIN = {
    "We decided to replace the queue with a table.": MemoryType.DECISION,
    "Tilda hates long meetings and prefers a short mail.": MemoryType.PREFERENCE,
    "My name is Tilda and I am the office manager.": MemoryType.IDENTITY,
    "The lift broke down last Tuesday at nine.": MemoryType.EVENT,
    "It seems that the lift has been getting slower lately.": MemoryType.OBSERVATION,
    "Our goal is to have no late deliveries by 2029.": MemoryType.GOAL,
    "Please call the lift company before Friday.": MemoryType.TODO,
    "The lift carries at most 450 kg.": MemoryType.FACT,
    "Thanks, have a nice evening!": None,
    "Where did you put the lift's manual?": None,
    "Wir haben beschlossen, den Aufzug zu ersetzen.": MemoryType.DECISION,
    "Il faut appeler le plombier demain.": MemoryType.TODO,
}


@pytest.fixture(scope="module")
def classifier() -> TypeClassifier:
    return TypeClassifier(embedding_provider("local").embed)


def test_plain_lines_get_their_type(classifier: TypeClassifier) -> None:
    guesses = classifier.classify(list(PLAIN))
    assert {text: guess.type for text, guess in zip(PLAIN, guesses, strict=True)} == PLAIN


def test_words_alone_suffice_for_plain_lines() -> None:
    guesses = TypeClassifier().classify(list(PLAIN))
    right = sum(guess.type == kind for guess, kind in zip(guesses, PLAIN.values(), strict=True))
    assert right >= len(PLAIN) - 2


def test_a_line_is_judged_alike_alone_and_among_others(classifier: TypeClassifier) -> None:
    together = classifier.classify(list(PLAIN))
    alone = [classifier.classify([text])[0] for text in PLAIN]
    assert [g.type for g in together] == [g.type for g in alone]
    assert [g.probability for g in together] == pytest.approx([g.probability for g in alone], 1e-4)


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=80))
def test_any_text_gets_a_distribution(text: str) -> None:
    (guess,) = TypeClassifier().classify([text])
    assert set(guess.probabilities) == set(TYPE_LABELS)
    assert sum(guess.probabilities.values()) == pytest.approx(1.0, abs=1e-5)
    assert guess.probability == max(guess.probabilities.values())
    assert guess.label == (guess.type.value if guess.type else "none")


@given(st.text(max_size=60))
def test_features_have_no_repetition_and_depend_on_the_text_alone(text: str) -> None:
    found = features(text)
    assert len(found) == len(set(found))
    assert found == features(text)


def test_no_texts_give_no_guesses(classifier: TypeClassifier) -> None:
    assert classifier.classify([]) == []


def test_only_the_beginning_of_a_line_counts() -> None:
    beginning = "We decided to keep the old lift. " * 20
    assert features(beginning[:MAX_CHARACTERS]) == features(beginning + "Call me tomorrow! " * 9)


def test_contractions_are_written_out() -> None:
    assert [t.lower for t in tokenize("I won’t, we're")] == ["i", "will", "not", ",", "we", "are"]


def test_an_embedding_of_another_dimension_is_left_out() -> None:
    def other(texts: Sequence[str]) -> NDArray[np.float32]:
        return np.ones((len(texts), 3), dtype=np.float32)

    text = list(PLAIN)[:1]
    assert TypeClassifier(other).classify(text) == TypeClassifier().classify(text)


def test_an_embedding_of_the_wrong_shape_is_refused() -> None:
    with pytest.raises(ProviderAnswerInvalid):
        TypeClassifier(lambda texts: np.ones((7, 256), dtype=np.float32)).classify(["a", "b"])


def test_the_weights_were_trained_from_the_present_corpus_and_cues() -> None:
    with np.load(memory_types.WEIGHTS_FILE) as data:
        sources = data["sources"].tolist()
    present = [hashlib.sha256(path.read_bytes()).hexdigest() for path in (CORPUS, CUES_FILE)]
    assert sources == present
    assert memory_types.WEIGHTS_FILE.stat().st_size < 1_500_000


def test_the_corpus_has_many_distinct_lines_of_every_label() -> None:
    rows = [json.loads(line) for line in CORPUS.read_text(encoding="utf-8").splitlines()]
    assert len({row["text"].casefold() for row in rows}) == len(rows) >= 1_200
    for label in TYPE_LABELS:
        assert sum(row["type"] == label for row in rows) >= 130


@pytest.mark.skipif(not DEV.exists(), reason="the labelled lines are not at hand")
def test_held_out_lines_are_typed_well(classifier: TypeClassifier) -> None:
    rows = [json.loads(line) for line in DEV.read_text(encoding="utf-8").splitlines()]
    found = [guess.label for guess in classifier.classify([row["text"] for row in rows])]
    assert score_types([row["type"] for row in rows], found)["macro_f1"] >= 0.82


@pytest.mark.skipif(not DEV.exists(), reason="the labelled lines are not at hand")
def test_the_corpus_repeats_no_held_out_line() -> None:
    held_out = {json.loads(line)["text"].casefold() for line in DEV.read_text().splitlines()}
    corpus = {json.loads(line)["text"].casefold() for line in CORPUS.read_text().splitlines()}
    # One-word replies ("ok", "lol") cannot be invented anew.
    assert {text for text in corpus & held_out if len(text.split()) > 2} == set()
