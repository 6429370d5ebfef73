"""Scores of spans, against the true ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias, TypedDict

from memgraph.errors import InvalidInput
from memgraph.model.enums import EntityType

ENTITY_LABELS: Final[tuple[str, ...]] = tuple(
    e.value for e in EntityType if e is not EntityType.OTHER
)

Span: TypeAlias = tuple[int, int, str]
"""Start and end in Unicode code points (end exclusive) and the entity type's value."""


class LabelScore(TypedDict):
    """One label: ratios in 0..1 and the counts beside them.

    ``gold`` lines carry the label, ``predicted`` were given it, ``hits`` are both.
    """

    precision: float
    recall: float
    f1: float
    gold: int
    predicted: int
    hits: int


class EntitiesScore(TypedDict):
    precision: float
    recall: float
    f1: float
    gold: int
    predicted: int
    hits: int
    per_type: dict[str, LabelScore]


def score_entities(
    gold_spans: Sequence[Iterable[Span]], predicted_spans: Sequence[Iterable[Span]]
) -> EntitiesScore:
    """Return micro precision, recall and F1 over spans, over all types and for each.

    Args:
        gold_spans: for each text its true spans, in any order.
        predicted_spans: for each text, in the same order of texts, the spans that were found.

    A hit has the same start, end and type; a span given twice for one text counts once.

    Raises:
        InvalidInput: the sequences differ in length, or a type is unknown.
    """
    _check_lengths(gold_spans, predicted_spans)
    gold: Counter[str] = Counter()
    predicted: Counter[str] = Counter()
    hits: Counter[str] = Counter()
    for expected, predictions in zip(map(set, gold_spans), map(set, predicted_spans), strict=True):
        gold.update(span[2] for span in expected)
        predicted.update(span[2] for span in predictions)
        hits.update(span[2] for span in expected & predictions)
    _check_labels([*gold, *predicted], (*ENTITY_LABELS, EntityType.OTHER.value))
    total = _score(gold.total(), predicted.total(), hits.total())
    per_type = {
        label: _score(gold[label], predicted[label], hits[label]) for label in ENTITY_LABELS
    }
    return EntitiesScore(**total, per_type=per_type)


def _score(gold: int, predicted: int, hits: int) -> LabelScore:
    return LabelScore(
        precision=_ratio(hits, predicted),
        recall=_ratio(hits, gold),
        f1=_ratio(2 * hits, gold + predicted),
        gold=gold,
        predicted=predicted,
        hits=hits,
    )


def _ratio(part: float, total: int) -> float:
    return part / total if total else 0.0


def _check_lengths(gold: Sequence[object], predicted: Sequence[object]) -> None:
    if len(gold) != len(predicted):
        raise InvalidInput(
            "Gold and predicted labels differ in number; give one prediction for each line.",
            gold=len(gold),
            predicted=len(predicted),
        )


def _check_labels(labels: Sequence[str], allowed: tuple[str, ...]) -> None:
    unknown = sorted(set(labels) - set(allowed))
    if unknown:
        raise InvalidInput(
            f"Unknown labels: {', '.join(unknown)}; known are {', '.join(allowed)}.", labels=unknown
        )
