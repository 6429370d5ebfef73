"""The learned head: several small networks over the pair features, averaged; numpy only.

A member is a standardised linear model, or one with a hidden layer of rectified units in between.
Training is ``benchmarks/train_relations.py``; the weights lie in ``data/relations.npz``.
"""

from __future__ import annotations

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
_CLIP: Final = 4.0
"""Standardised features are held within this many standard deviations: rare counts stay rare."""


@dataclass(frozen=True)
class RelationModel:
    """Weights as they are stored.

    ``features`` (n) names in order; ``mean``, ``scale`` (n); ``linear`` (n + 1, 5) with the
    intercept last; ``hidden`` (m, n + 1, h) and ``output`` (m, h + 1, 5) for m networks;
    ``threshold`` the least probability at which each relation may be said, by relation.
    """

    features: tuple[str, ...]
    mean: NDArray[np.float32]
    scale: NDArray[np.float32]
    linear: NDArray[np.float32]
    hidden: NDArray[np.float32]
    output: NDArray[np.float32]
    share: float
    threshold: Mapping[Relation, float]

    def probabilities(self, rows: Sequence[Mapping[str, float]]) -> NDArray[np.float32]:
        """One row of five probabilities for each row of features, in the order of ``Relation``."""
        table = np.array([[row[name] for name in self.features] for row in rows], dtype=np.float32)
        table = table.reshape(len(rows), len(self.features))
        table = np.clip((table - self.mean) / self.scale, -_CLIP, _CLIP)
        mixed = (1.0 - self.share) * _softmax(_affine(table, self.linear))
        for first, second in zip(self.hidden, self.output, strict=True):
            inner = np.maximum(_affine(table, first), 0.0)
            mixed += self.share / len(self.hidden) * _softmax(_affine(inner, second))
        return mixed


def _affine(table: NDArray[np.float32], weights: NDArray[np.float32]) -> NDArray[np.float32]:
    result: NDArray[np.float32] = table @ weights[:-1] + weights[-1]
    return result


def _softmax(scores: NDArray[np.float32]) -> NDArray[np.float32]:
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
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
            hidden=stored["hidden"].astype(np.float32),
            output=stored["output"].astype(np.float32),
            share=float(stored["share"]),
            threshold=dict(zip(Relation, map(float, stored["threshold"]), strict=True)),
        )
