"""The classifiers, joined with the model their weights were learned on.

That is always the local one, whatever provider fills the vector index. They were learned on single
statements that somebody meant to be remembered; the sentences of documents are typed by their form
(`memgraph.policy.statement_forms`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from memgraph.classification.types import TypeClassifier
from memgraph.model.enums import MemoryType
from memgraph.providers.embedding import EmbeddingProvider, embedding_provider


@cache
def local_embedding() -> EmbeddingProvider:
    """The shipped model; one for the process."""
    return embedding_provider("local")


@cache
def type_classifier() -> TypeClassifier:
    return TypeClassifier(local_embedding().embed)


def classify_types(texts: Sequence[str]) -> list[tuple[MemoryType | None, float]]:
    """For each text what it is worth remembering as (None: nothing), and how likely, 0..1."""
    return [(guess.type, guess.probability) for guess in type_classifier().classify(texts)]
