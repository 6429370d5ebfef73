"""Independent sources strengthen, repetition does not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memgraph.policy.support import (
    CEILING,
    Origin,
    base_confidence,
    independent_sources,
    strengthened,
    supported_confidence,
)

SESSIONS = st.lists(st.sampled_from("abcde"), max_size=12)
CONFIDENCES = st.floats(0.0, 1.0)


def talk(name: str) -> Origin:
    return Origin(conversation_id=name)


@given(SESSIONS)
def test_every_conversation_counts_once(said: list[str]) -> None:
    own = talk("a")
    count = independent_sources([own], [talk(each) for each in said])
    assert count == len({"a", *said})


def test_two_sessions_of_one_file_are_one_source() -> None:
    own = Origin(conversation_id="a", source_path="/drop/talk.txt")
    other = Origin(conversation_id="b", source_path="/drop/talk.txt")
    assert independent_sources([own], [other]) == 1
    assert independent_sources([own], [Origin(conversation_id="b")]) == 2


def test_what_names_no_place_is_no_further_source() -> None:
    assert independent_sources([talk("a")], [Origin()]) == 1
    assert independent_sources([Origin()], [talk("a")]) == 2


@given(CONFIDENCES, st.integers(1, 30))
def test_confidence_grows_with_sources_and_stays_below_certainty(base: float, n: int) -> None:
    one, more = supported_confidence(base, n), supported_confidence(base, n + 1)
    assert base <= one <= more
    assert more <= max(base, CEILING)


@given(st.floats(0.0, CEILING), st.integers(1, 12))
def test_the_base_is_not_lost(base: float, n: int) -> None:
    assert base_confidence(supported_confidence(base, n), n) == pytest.approx(base, abs=1e-6)


@given(CONFIDENCES, st.integers(1, 9), st.integers(0, 9))
def test_step_by_step_comes_to_the_same(base: float, n: int, further: int) -> None:
    at_once = strengthened(supported_confidence(base, n), n, n + further)
    assert at_once == pytest.approx(supported_confidence(base, n + further))


@given(CONFIDENCES, st.integers(1, 9))
def test_no_further_source_changes_nothing(confidence: float, n: int) -> None:
    assert strengthened(confidence, n, n) == confidence
