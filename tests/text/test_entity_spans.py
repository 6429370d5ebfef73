"""Settling overlaps, and the canonical form of names."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, strategies as st

from memgraph.model.enums import EntityType
from memgraph.text.names import EntitySpan, canonical, merge


def make_span(
    start: int, end: int, confidence: float = 0.5, kind: EntityType = EntityType.PERSON
) -> EntitySpan:
    return EntitySpan("x" * (end - start), start, end, kind, confidence)


spans = st.builds(
    lambda start, length, confidence: make_span(start, start + length, confidence),
    st.integers(0, 30),
    st.integers(1, 8),
    st.sampled_from([0.2, 0.5, 0.9]),
)


def test_the_more_confident_span_wins() -> None:
    sure, long = make_span(2, 5, 0.9), make_span(0, 9, 0.5)
    assert merge([long, sure]) == [sure]


def test_among_equals_the_longer_then_the_earlier_wins() -> None:
    assert merge([make_span(0, 3), make_span(2, 8)]) == [make_span(2, 8)]
    assert merge([make_span(2, 5), make_span(0, 3)]) == [make_span(0, 3)]


def test_neighbours_both_stay_in_order() -> None:
    assert merge([make_span(3, 6), make_span(0, 3)]) == [make_span(0, 3), make_span(3, 6)]


@given(st.lists(spans, max_size=12))
def test_what_is_left_out_overlaps_something_at_least_as_sure(
    given_spans: list[EntitySpan],
) -> None:
    kept = merge(given_spans)
    assert all(a.end <= b.start for a, b in itertools.pairwise(kept))
    for span in given_spans:
        rivals = [k for k in kept if k.start < span.end and span.start < k.end]
        assert span in kept or any(k.confidence >= span.confidence for k in rivals)
    assert merge(reversed(given_spans)) == kept


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("  Marta   KOWALSKA ", "marta kowalska"),
        ("Marta's", "marta"),
        ("Marta’s,", "marta"),
        ("Ｏｓｐｒｅｙ", "osprey"),
        ("Straße", "strasse"),
        ("@Jo", "@jo"),
        ("“Basalt”.", "basalt"),
        (" . ", ""),
    ],
)
def test_names_have_one_canonical_form(name: str, form: str) -> None:
    assert canonical(name) == form


@given(st.text(max_size=40))
def test_the_canonical_form_is_its_own(name: str) -> None:
    assert canonical(canonical(name)) == canonical(name)
