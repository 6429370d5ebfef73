"""How a later memory relates to an earlier one, told without a language model.

Each statement is laid open into names, figures, polarity, qualifiers and content words
(``relation_frame``); a pair becomes a row of features (``relation_features``) that a small learned
head weighs (``relation_model``). A contradiction is said only above a threshold chosen for
precision: a false one costs an auditor's time, a missed one leaves two memories side by side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from memgraph.classification import relation_lexicon as lexicon
from memgraph.classification.relation_features import Embed, pair_features, read_batch
from memgraph.classification.relation_frame import Statement
from memgraph.classification.relation_literals import other_literals
from memgraph.classification.relation_minimal import ONE_VALUE, literal_pair, minimal_pair
from memgraph.classification.relation_model import RelationModel, load_model
from memgraph.classification.relation_reasons import reasons, ruled_out
from memgraph.classification.relation_tokens import stem, tokenize
from memgraph.model.enums import Relation

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["RelationClassifier", "RelationGuess", "Statement", "worth_comparing"]

_BATCH: Final = 2_000
"""Pairs taken apart at once, so that memory stays bounded on long candidate lists."""
GATE_COSINE: Final = 0.45
GATE_COSINE_WITH_WORD: Final = 0.25


@dataclass(frozen=True, slots=True)
class RelationGuess:
    """What was guessed: the relation, its probability (0..1), those of all five (they sum to 1),
    and codes of the evidence, strongest first."""

    relation: Relation
    probability: float
    probabilities: Mapping[Relation, float]
    reasons: tuple[str, ...]


class RelationClassifier:
    """Guesses relations of pairs of statements. Threads may share an instance.

    Args:
        embed: turns n texts into an (n, d) float32 array of unit rows. The shipped weights were
            learned on the local static model; another model shifts the cosines they weigh.
        model: other weights than the shipped ones.
    """

    def __init__(self, embed: Embed, *, model: RelationModel | None = None) -> None:
        self._embed = embed
        self._model = model

    def classify(self, pairs: Sequence[tuple[Statement, Statement]]) -> list[RelationGuess]:
        """One guess for each (earlier, later) pair, in order."""
        guesses: list[RelationGuess] = []
        for start in range(0, len(pairs), _BATCH):
            guesses += self._classify(pairs[start : start + _BATCH])
        return guesses

    def _classify(self, pairs: Sequence[tuple[Statement, Statement]]) -> list[RelationGuess]:
        model = self._model or load_model()
        frames, vectors = read_batch(pairs, self._embed)
        rows = [pair_features(a, b, vectors) for a, b in frames]
        table, prose = model.evaluate(rows)
        return [
            _guess(pair, row, line, float(text), model)
            for pair, row, line, text in zip(pairs, rows, table, prose, strict=True)
        ]


def _guess(
    pair: tuple[Statement, Statement],
    row: Mapping[str, float],
    line: NDArray[np.float32],
    prose: float,
    model: RelationModel,
) -> RelationGuess:
    probabilities = {relation: float(p) for relation, p in zip(Relation, line, strict=True)}
    earlier, later = pair[0].text, pair[1].text
    forbidden = ruled_out(row)
    if other_literals(earlier, later):
        forbidden |= {Relation.DUPLICATE}
    evidence = reasons(row)
    relation = model.choose(probabilities, prose, forbidden)
    plain = minimal_pair(earlier, later, row)
    # Their other words are the same, so that nothing but the value could tell two things apart.
    literal = literal_pair(earlier, later) if row["asserted"] > 0 else None
    if literal is not None:
        relation, kind = literal
        told = (code for code in evidence if code != "other_version")
        evidence = (ONE_VALUE, f"value_differs:{kind}", *told)
    elif plain is not None and Relation.CONTRADICTS not in forbidden:
        relation, evidence = plain[0], (plain[1], *evidence)
    return RelationGuess(
        relation=relation,
        probability=probabilities[relation],
        probabilities=probabilities,
        reasons=evidence,
    )


def worth_comparing(a: str, b: str, cosine: float) -> bool:
    """Whether two texts have enough of a common topic to be classified at all. Pure and cheap.

    True where their vectors are alike (``cosine`` >= 0.45), or somewhat alike (>= 0.25) and a
    content word, name or identifier stands in both. What fails is unrelated or compatible.
    """
    if cosine >= GATE_COSINE:
        return True
    return cosine >= GATE_COSINE_WITH_WORD and bool(_topic(a) & _topic(b))


def _topic(text: str) -> set[str]:
    return {
        token.stem
        for token in tokenize(text)
        if token.low not in lexicon.STOP
        and token.low not in lexicon.LIGHT
        and token.low not in lexicon.NEGATORS
        and stem(token.low)
    }
