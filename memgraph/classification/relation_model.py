"""The learned head: multinomial logistic regression over the pair features; numpy only.

A second, binary one tells pairs that look like two sentences of one running text, in which hardly
anything is contradicted or replaced. Training is ``benchmarks/train_relations.py``; the weights lie
in ``data/relations.npz``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING, Final

import numpy as np

from memgraph.model.enums import Relation

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

WEIGHTS: Final = "relations.npz"
CLIP: Final = 4.0
"""Standardised features are held within this many standard deviations: rare counts stay rare."""


@dataclass(frozen=True)
class RelationModel:
    """Weights as they are stored.

    ``features`` (n) names in order; ``mean``, ``scale`` (n); ``linear`` (n + 1, 5) and ``prose``
    (n + 1), each with its intercept last; ``threshold`` the least probability at which each
    relation may be said; ``prose_limit`` the probability of running text from which on no
    contradiction is said, and an update only at ``prose_update``.
    """

    features: tuple[str, ...]
    mean: NDArray[np.float32]
    scale: NDArray[np.float32]
    linear: NDArray[np.float32]
    prose: NDArray[np.float32]
    threshold: Mapping[Relation, float]
    prose_limit: float = 0.5
    prose_update: float = 0.9

    def evaluate(
        self, rows: Sequence[Mapping[str, float]]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """For n rows of features: (n, 5) probabilities in the order of ``Relation``, and (n)
        probabilities of running text."""
        table = np.array([[row[name] for name in self.features] for row in rows], dtype=np.float32)
        table = table.reshape(len(rows), len(self.features))
        table = np.clip((table - self.mean) / self.scale, -CLIP, CLIP)
        return _softmax(_affine(table, self.linear)), _logistic(_affine(table, self.prose))

    def choose(
        self,
        probabilities: Mapping[Relation, float],
        prose: float,
        ruled_out: frozenset[Relation] = frozenset(),
    ) -> Relation:
        """The likeliest relation that is not ruled out and reaches its threshold; compatible
        where none does."""
        least = dict(self.threshold) | dict.fromkeys(ruled_out, math.inf)
        if prose >= self.prose_limit:
            least[Relation.CONTRADICTS] = math.inf
            least[Relation.UPDATES] = max(least[Relation.UPDATES], self.prose_update)
        ranked = sorted(Relation, key=lambda r: -probabilities[r])
        return next((r for r in ranked if probabilities[r] >= least[r]), Relation.COMPATIBLE)


def _affine(table: NDArray[np.float32], weights: NDArray[np.float32]) -> NDArray[np.float32]:
    result: NDArray[np.float32] = table @ weights[:-1] + weights[-1]
    return result


def _logistic(scores: NDArray[np.float32]) -> NDArray[np.float32]:
    return (1.0 / (1.0 + np.exp(-np.clip(scores, -30.0, 30.0)))).astype(np.float32)


def _softmax(scores: NDArray[np.float32]) -> NDArray[np.float32]:
    powers = np.exp(scores - scores.max(axis=1, keepdims=True, initial=np.float32(-1e9)))
    result: NDArray[np.float32] = powers / powers.sum(axis=1, keepdims=True)
    return result


@lru_cache(maxsize=1)
def load_model() -> RelationModel:
    """The shipped weights, read once."""
    path = resources.files("memgraph.classification") / "data" / WEIGHTS
    with path.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
        return RelationModel(
            features=tuple(str(name) for name in stored["features"]),
            mean=stored["mean"].astype(np.float32),
            scale=stored["scale"].astype(np.float32),
            linear=stored["linear"].astype(np.float32),
            prose=stored["prose"].astype(np.float32),
            threshold=dict(zip(Relation, map(float, stored["threshold"]), strict=True)),
        )
