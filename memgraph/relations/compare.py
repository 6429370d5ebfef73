"""Compare two statements by a few exact rules. Pure: no IO, no model, no clock."""

from __future__ import annotations

from dataclasses import dataclass

from memgraph.model.enums import Relation
from memgraph.relations.statement import Statement


@dataclass(frozen=True, slots=True)
class Finding:
    """A relation between an earlier and a later statement.

    Attributes:
        relation: DUPLICATE (each follows from the other), UPDATES (the later one replaces the
            earlier one, or states that something changed) or CONTRADICTS (both claim to hold, and
            cannot).
        changed: the later statement itself says that the world changed ("moved to", "no longer").
        reason: the evidence in words for a person, such as
            "same subject and attribute, other value: 30 days / 90 days"; never empty.
    """

    relation: Relation
    reason: str
    changed: bool = False


def compare(earlier: Statement, later: Statement) -> Finding | None:
    """Return how ``later`` relates to ``earlier``, or None where the rules are not sure.

    Two statements with other values for one attribute are CONTRADICTS with ``changed`` False;
    who may replace whose word is decided by the caller, who knows the authors.
    """
    if earlier.speaker == later.speaker and _words(earlier.text) == _words(later.text):
        return Finding(Relation.DUPLICATE, "the same words")
    return None


def _words(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(".!")
