"""The classifier of lines: which of the eight memory types a line has, or none.

A multinomial logistic regression over the features of `types_features` and the static embedding of
the line. Only numpy is used here; the weights are made by ``benchmarks/train_types.py`` from
``benchmarks/corpus/types.jsonl``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np

from memgraph.classification.score import NONE_LABEL, TYPE_LABELS
from memgraph.classification.types_features import MAX_CHARACTERS, features
from memgraph.errors import ProviderAnswerInvalid
from memgraph.model.enums import MemoryType

if TYPE_CHECKING:
    from numpy.typing import NDArray

Embed: TypeAlias = "Callable[[Sequence[str]], NDArray[np.float32]]"
"""Turns n texts into an (n, d) array of unit rows (zero rows for what cannot be embedded)."""

# Bounds the gathered weights to a few megabytes.
_BATCH: Final = 256

WEIGHTS_FILE: Final = Path(__file__).parent / "data" / "types_weights.npz"


@dataclass(frozen=True, slots=True)
class TypeGuess:
    """The likeliest type of a line.

    Attributes:
        type: None when the line is not worth remembering.
        probability: of ``type``, 0..1.
        probabilities: of all nine labels, summing to 1; ``"none"`` is the ninth.
    """

    type: MemoryType | None
    probability: float
    probabilities: Mapping[str, float]

    @property
    def label(self) -> str:
        """The type's value, or ``"none"``."""
        return self.type.value if self.type is not None else NONE_LABEL


class TypeWeights(NamedTuple):
    """A trained model. Rows of the tables are features, columns the labels of `TYPE_LABELS`.

    Attributes:
        rows: feature name -> row of ``table``.
        table: float32 (features, 9), for sparse features present in a text.
        dense: float32 (d, 9), for the embedding; (0, 9) for a model of words alone.
        bias: float32 (9,).
    """

    rows: Mapping[str, int]
    table: NDArray[np.float32]
    dense: NDArray[np.float32]
    bias: NDArray[np.float32]


class TypeClassifier:
    """Assigns memory types to lines. Threads may share an instance.

    Args:
        embed: the embedding the weights were trained with (the ``local`` provider's ``embed``).
            Without it, or where its dimension is not that of the weights, words alone decide.
    """

    def __init__(self, embed: Embed | None = None) -> None:
        self._embed = embed

    def classify(self, texts: Sequence[str]) -> list[TypeGuess]:
        """Return the guess for every text, in order.

        Raises:
            ProviderAnswerInvalid: the embedding function returned no table of ``len(texts)`` rows.
        """
        if not texts:
            return []
        vectors = self._vectors(texts)
        weights = load_weights("both" if vectors is not None else "words")
        return [_guess(row) for row in probabilities(weights, texts, vectors)]

    def _vectors(self, texts: Sequence[str]) -> NDArray[np.float32] | None:
        if self._embed is None:
            return None
        vectors = self._embed([text[:MAX_CHARACTERS] for text in texts])
        if vectors.ndim != 2 or len(vectors) != len(texts):
            raise ProviderAnswerInvalid(
                f"The embedding function returned shape {vectors.shape} for {len(texts)} texts.",
                reason="shape",
            )
        return vectors if vectors.shape[1] == len(load_weights("both").dense) else None


def probabilities(
    weights: TypeWeights, texts: Sequence[str], vectors: NDArray[np.float32] | None
) -> NDArray[np.float32]:
    """Return the softmax of the label scores, shape (n, 9), columns as in `TYPE_LABELS`.

    A text's sparse features are scaled to a vector of norm 1, as in training.
    """
    scores = np.zeros((len(texts), len(TYPE_LABELS)), dtype=np.float32)
    for start in range(0, len(texts), _BATCH):
        _add_sparse(weights, texts[start : start + _BATCH], scores[start : start + _BATCH])
    if vectors is not None:
        scores += vectors @ weights.dense
    scores += weights.bias
    scores -= scores.max(axis=1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=1, keepdims=True)
    return scores


def _add_sparse(weights: TypeWeights, texts: Sequence[str], scores: NDArray[np.float32]) -> None:
    """Add to each row of ``scores`` its text's feature weights, scaled to a row of norm 1."""
    rows = weights.rows
    row_lists = [[rows[name] for name in features(text) if name in rows] for text in texts]
    filled = [at for at, rows_of_text in enumerate(row_lists) if rows_of_text]
    if not filled:
        return
    sizes = np.array([len(row_lists[at]) for at in filled])
    flat = np.fromiter(
        (row for rows_of_text in row_lists for row in rows_of_text), np.intp, int(sizes.sum())
    )
    # reduceat needs non-empty segments, hence the texts without any known feature stay out.
    sums = np.add.reduceat(weights.table[flat], np.cumsum(sizes) - sizes)
    scores[filled] += sums / np.sqrt(sizes, dtype=np.float32)[:, None]


def _guess(row: NDArray[np.float32]) -> TypeGuess:
    values = dict(zip(TYPE_LABELS, row.tolist(), strict=True))
    best = TYPE_LABELS[int(row.argmax())]
    return TypeGuess(
        type=None if best == NONE_LABEL else MemoryType(best),
        probability=values[best],
        probabilities=values,
    )


@cache
def load_weights(model: str) -> TypeWeights:
    """Return the shipped weights: ``"both"`` uses words and the embedding, ``"words"`` words
    alone.
    """
    with np.load(WEIGHTS_FILE, allow_pickle=False) as data:
        names: list[str] = json.loads(bytes(data["names"]).decode("utf-8"))
        table = data[f"{model}_table"].astype(np.float32)
        dense = data[f"{model}_dense"].astype(np.float32)
        bias = data[f"{model}_bias"].astype(np.float32)
    return TypeWeights({name: row for row, name in enumerate(names)}, table, dense, bias)
