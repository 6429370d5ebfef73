"""Effective confidence and retiring."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, strategies as st

from memgraph.clock import MS_PER_DAY
from memgraph.model.enums import CapturedBy, MemoryKind, MemoryStatus, MemoryType, SourceType
from memgraph.model.values import Source
from memgraph.rules.decay import days_idle, effective_confidence, rate_of, should_retire

RATE = 0.1
INFERRED = Source(captured_by=CapturedBy.EXTRACTOR)


def rate(**fields: Any) -> float:
    """The rate of a fact that a machine inferred, but for what is given."""
    given = {
        "kind": MemoryKind.FACT,
        "memory_type": MemoryType.FACT,
        "importance": 50,
        "source": INFERRED,
        "inferred_rate": RATE,
    }
    return rate_of(**(given | fields))


def test_only_what_a_machine_inferred_decays() -> None:
    for source_type in SourceType:
        for captured_by in CapturedBy:
            source = Source(source_type=source_type, captured_by=captured_by)
            inferred = captured_by is CapturedBy.EXTRACTOR
            decays = inferred and source_type is not SourceType.INGEST_FILE
            assert rate(source=source) == (RATE if decays else 0.0)
    assert {kind for kind in MemoryKind if rate(kind=kind)} == {MemoryKind.FACT}
    lasting = {each for each in MemoryType if not rate(memory_type=each)}
    assert {each.value for each in lasting} == {"Identity", "Preference", "Decision", "Goal"}


def test_what_is_important_does_not_decay() -> None:
    assert [rate(importance=each) for each in (79, 80, 100)] == [RATE, 0.0, 0.0]


confidences = st.floats(0, 1)
rates = st.floats(0, 10)
days_ = st.floats(0, 100_000)
exponents = st.floats(0.1, 2)


def test_the_formula_by_hand() -> None:
    assert effective_confidence(0.8, 0.1, 10) == pytest.approx(0.8 * math.exp(-1))
    assert effective_confidence(1.0, 0.1, 32, exponent=0.8) == pytest.approx(math.exp(-1.6))


@given(confidences, rates, days_, days_, exponents)
def test_time_never_raises_it(c: float, rate: float, d: float, more: float, e: float) -> None:
    assert effective_confidence(c, rate, d + more, e) <= effective_confidence(c, rate, d, e)


def test_days_count_from_the_last_access_else_from_creation() -> None:
    now = 1_000 * MS_PER_DAY
    assert days_idle(now, now - 4 * MS_PER_DAY, None) == 4.0
    assert days_idle(now, now - 4 * MS_PER_DAY, now - MS_PER_DAY // 2) == 0.5
    assert days_idle(now, now + 1, None) == 0.0


@given(confidences, rates, days_, st.floats(0, 1))
def test_retiring_is_falling_under_the_threshold(c: float, rate: float, d: float, t: float) -> None:
    retired = should_retire(
        kind=MemoryKind.FACT,
        status=MemoryStatus.ACTIVE,
        confidence=c,
        decay_rate=rate,
        days=d,
        threshold=t,
    )
    assert retired == (rate > 0 and effective_confidence(c, rate, d) < t)
