"""Effective confidence and retiring."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memgraph.clock import MAX_MS, MS_PER_DAY
from memgraph.model.enums import CapturedBy, MemoryKind, MemoryStatus, MemoryType, SourceType
from memgraph.model.values import Source
from memgraph.rules.decay import (
    days_idle,
    effective_confidence,
    expires_at,
    rate_of,
    should_retire,
)

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


NOW = 1_767_225_600_000


def test_the_day_it_expires_by_hand() -> None:
    # exp(-0.1 d) = 0.05 at d = 10 ln 20 = 29.957...
    end = expires_at(1.0, 0.1, NOW)
    assert end is not None
    assert (end - NOW) / MS_PER_DAY == pytest.approx(10 * math.log(20), abs=1e-7)
    slow = expires_at(1.0, 0.1, NOW, exponent=0.8)
    assert slow is not None
    assert (slow - NOW) / MS_PER_DAY == pytest.approx((10 * math.log(20)) ** 1.25, abs=1e-7)


@given(
    confidences,
    st.floats(0, 10),
    st.integers(-(10**13), 10**13),
    st.floats(0, 1),
    st.floats(0.1, 3),
)
@example(1.0, 1.0, 0, 2.2250738585e-313, 1.0)
def test_it_retires_from_that_millisecond_on_and_not_before(
    c: float, rate: float, since: int, threshold: float, e: float
) -> None:
    def retired(at_ms: int) -> bool:
        return should_retire(
            kind=MemoryKind.FACT,
            status=MemoryStatus.ACTIVE,
            confidence=c,
            decay_rate=rate,
            days=days_idle(at_ms, since, None),
            threshold=threshold,
            exponent=e,
        )

    end = expires_at(c, rate, since, threshold, e)
    if end is None:
        assert not retired(MAX_MS - 1_000)
    else:
        assert end >= since
        assert retired(end)
        assert end == since or not retired(end - 1)


def test_what_does_not_decay_or_has_no_threshold_never_expires() -> None:
    assert expires_at(0.0, 0.0, NOW) is None
    assert expires_at(0.1, 5.0, NOW, threshold=0.0) is None
    assert expires_at(1.0, 1e-300, NOW, exponent=0.1) is None
