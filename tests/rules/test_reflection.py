"""When there is a reflection, and which goals and todos it names."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memgraph.clock import MS_PER_DAY
from memgraph.model.enums import MemoryType, Sensitivity
from memgraph.rules.conversations import (
    ReflectionPeriod,
    highest,
    is_done,
    is_finished,
    is_stale,
    is_too_soon,
    period,
)

NOW = 1_767_225_600_000
moments = st.integers(NOW - 100 * MS_PER_DAY, NOW + 100 * MS_PER_DAY)


@pytest.mark.parametrize(
    ("days_ago", "too_soon"),
    [(0, True), (5.99, True), (6, False), (7, False), (-1, True), (-5.99, True), (-300, False)],
)
def test_the_pause_between_two(days_ago: float, too_soon: bool) -> None:
    assert is_too_soon([NOW - round(days_ago * MS_PER_DAY)], NOW, 6.0) is too_soon


def test_without_another_one_or_without_a_pause_it_is_never_too_soon() -> None:
    assert not is_too_soon([], NOW, 6.0)
    assert not is_too_soon([NOW], NOW, 0.0)


@given(st.lists(moments), st.floats(0, 30))
def test_any_near_one_is_enough(others: list[int], pause: float) -> None:
    assert is_too_soon(others, NOW, pause) == any(
        is_too_soon([each], NOW, pause) for each in others
    )


def test_a_period_ends_with_what_was_stored_just_now() -> None:
    during = period(NOW, 7)
    assert during.holds(NOW)
    assert during.holds(NOW - 7 * MS_PER_DAY)
    assert not during.holds(NOW + 1)
    assert not during.holds(NOW - 7 * MS_PER_DAY - 1)


@pytest.mark.parametrize(
    ("tags", "attributes", "done"),
    [
        (("done",), {}, True),
        ((), {"done": True}, True),
        ((), {"done": 1}, False),
        (("undone",), {"done": False}, False),
    ],
)
def test_what_is_done(tags: tuple[str, ...], attributes: dict[str, Any], done: bool) -> None:
    assert is_done(tags, attributes) is done


def test_a_task_is_finished_in_the_period_in_which_it_was_marked() -> None:
    week = ReflectionPeriod(NOW - 7 * MS_PER_DAY, NOW + 1)
    assert is_finished(MemoryType.TODO, ("done",), {}, NOW, week)
    assert not is_finished(MemoryType.TODO, ("done",), {}, NOW - 8 * MS_PER_DAY, week)
    assert not is_finished(MemoryType.TODO, (), {}, NOW, week)
    assert not is_finished(MemoryType.FACT, ("done",), {}, NOW, week)


def test_a_task_is_stale_when_it_is_open_and_long_untouched() -> None:
    long_ago = NOW - 14 * MS_PER_DAY
    assert is_stale(MemoryType.GOAL, (), {}, long_ago, NOW)
    assert not is_stale(MemoryType.GOAL, (), {}, long_ago + 1, NOW)
    assert not is_stale(MemoryType.GOAL, ("done",), {}, long_ago, NOW)
    assert not is_stale(MemoryType.DECISION, (), {}, long_ago, NOW)


@given(st.sampled_from(MemoryType), moments, st.booleans())
def test_no_task_is_both(kind: MemoryType, touched: int, done: bool) -> None:
    attributes = {"done": done}
    finished = is_finished(kind, (), attributes, touched, ReflectionPeriod(0, NOW + 1))
    assert not (finished and is_stale(kind, (), attributes, touched, NOW))


def test_the_most_sensitive_one_decides() -> None:
    assert highest([]) is Sensitivity.PUBLIC
    assert highest([Sensitivity.PUBLIC, Sensitivity.INTERNAL]) is Sensitivity.INTERNAL
