"""Sentence ends and the properties of a sentence's form, re-exported for users of the service."""

from __future__ import annotations

from memgraph.text.sentences import split_sentences
from memgraph.text.statement_forms import (
    addresses_model,
    ground_of,
    hangs,
    is_complete,
    is_instruction,
    is_placeholder,
    is_rule,
    points_elsewhere,
    stands_alone,
    type_of,
)

__all__ = [
    "addresses_model",
    "ground_of",
    "hangs",
    "is_complete",
    "is_instruction",
    "is_placeholder",
    "is_rule",
    "points_elsewhere",
    "split_sentences",
    "stands_alone",
    "type_of",
]
