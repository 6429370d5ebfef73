"""When there is a reflection, and which goals and todos are done."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from memgraph.clock import MS_PER_DAY
from memgraph.model.enums import Sensitivity
from memgraph.rules.conversations import highest, is_done, is_too_soon

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


def test_the_most_sensitive_one_decides() -> None:
    assert highest([]) is Sensitivity.PUBLIC
    assert highest([Sensitivity.PUBLIC, Sensitivity.INTERNAL]) is Sensitivity.INTERNAL
