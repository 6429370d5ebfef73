"""Independent sources strengthen, repetition hardly, a copy not at all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memgraph.rules.evidence import (
    CEILING,
    MAX_AGAIN,
    Origin,
    SupportCount,
    independent_sources,
    strengthened,
    support_of,
)

SESSIONS = st.lists(st.sampled_from("abcde"), max_size=12)
CONFIDENCES = st.floats(0.0, 1.0)
SUPPORTS = st.builds(SupportCount, st.integers(1, 12), st.integers(0, MAX_AGAIN))


def talk(name: str, speaker: str = "", day: int = 0, words: str = "", path: str = "") -> Origin:
    return Origin(
        conversation_id=name,
        source_path=path or None,
        speakers=frozenset({speaker} - {""}),
        days=frozenset({day} if speaker else ()),
        words=frozenset({words} - {""}),
    )


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


def test_a_speaker_is_one_source_however_often() -> None:
    same_day = [talk(f"s-{n}", "user", 1) for n in range(9)]
    assert support_of([talk("s", "user", 1)], same_day) == SupportCount(1, 0)
    later = [talk(f"s-{n}", "user", n) for n in range(9)]
    assert support_of([talk("s", "user", 0)], later) == SupportCount(1, MAX_AGAIN)
    assert support_of([talk("s", "user", 0)], [talk("t", "ann", 0)]) == SupportCount(2, 0)


def test_a_copy_under_another_name_is_no_source() -> None:
    own = talk("a", "ann", 1, "hash", "/drop/a.txt")
    assert support_of([own], [talk("b", "anne", 1, "hash", "/drop/b.txt")]) == SupportCount(1)
    assert support_of([own], [talk("b", "anne", 2, "hash", "/drop/b.txt")]) == SupportCount(1)
    assert support_of([own], [talk("b", "anne", 2, "hash")]) == SupportCount(1, 1)
    assert support_of([own], [talk("b", "anne", 2, "other", "/drop/b.txt")]) == SupportCount(2)


@given(CONFIDENCES, SUPPORTS)
def test_confidence_grows_with_sources_and_stays_below_certainty(
    base: float, support: SupportCount
) -> None:
    grown = strengthened(base, SupportCount(1), support)
    assert base <= grown <= max(base, CEILING)
    assert grown <= strengthened(
        base, SupportCount(1), SupportCount(support.sources + 1, support.again)
    )


@given(CONFIDENCES, SUPPORTS, st.integers(0, 9))
def test_step_by_step_comes_to_the_same(base: float, support: SupportCount, further: int) -> None:
    more = SupportCount(support.sources + further, support.again)
    steps = strengthened(strengthened(base, SupportCount(1), support), support, more)
    assert steps == pytest.approx(strengthened(base, SupportCount(1), more))
