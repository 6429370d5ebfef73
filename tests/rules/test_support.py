"""Independent sources strengthen; repetition and copies do not."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from memgraph.model.sources import source_names
from memgraph.rules.evidence import CEILING, Origin, independent_sources, strengthened

SESSIONS = st.lists(st.sampled_from("abcde"), max_size=12)
CONFIDENCES = st.floats(0.0, 1.0)
SOURCES = st.integers(1, 12)


def talk(name: str, speaker: str = "", words: str = "", path: str = "") -> Origin:
    return Origin(
        source_names(conversation=name, path=path),
        speakers=frozenset({speaker} - {""}),
        words=frozenset({words} - {""}),
    )


@given(SESSIONS)
def test_every_conversation_counts_once(said: list[str]) -> None:
    own = talk("a")
    count = independent_sources([own], [talk(each) for each in said])
    assert count == len({"a", *said})


def test_two_sessions_of_one_file_are_one_source() -> None:
    own, other = talk("a", path="/drop/talk.txt"), talk("b", path="/drop/talk.txt")
    assert independent_sources([own], [other]) == 1
    assert independent_sources([own], [talk("b")]) == 2


def test_what_names_no_place_is_no_further_source() -> None:
    assert independent_sources([talk("a")], [Origin()]) == 1
    assert independent_sources([Origin()], [talk("a")]) == 2


def test_a_speaker_is_one_source_however_often() -> None:
    assert independent_sources([talk("s", "user")], [talk(f"s-{n}", "user") for n in range(9)]) == 1
    assert independent_sources([talk("s", "user")], [talk("t", "ann")]) == 2


def test_a_copy_under_another_name_is_no_source() -> None:
    own = talk("a", "ann", "hash", "/drop/a.txt")
    assert independent_sources([own], [talk("b", "anne", "hash", "/drop/b.txt")]) == 1
    assert independent_sources([own], [talk("b", "anne", "hash")]) == 1
    assert independent_sources([own], [talk("b", "anne", "other", "/drop/b.txt")]) == 2


@given(CONFIDENCES, SOURCES)
def test_confidence_grows_with_sources_and_stays_below_certainty(base: float, number: int) -> None:
    grown = strengthened(base, 1, number)
    assert base <= grown <= max(base, CEILING)
    assert grown <= strengthened(base, 1, number + 1)
    assert strengthened(base, number, 1) == base


@given(CONFIDENCES, SOURCES, st.integers(0, 9))
def test_step_by_step_comes_to_the_same(base: float, number: int, further: int) -> None:
    steps = strengthened(strengthened(base, 1, number), number, number + further)
    assert steps == pytest.approx(strengthened(base, 1, number + further))
