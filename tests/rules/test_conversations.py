"""Rules that decide when conversations are completed."""

from __future__ import annotations

from hypothesis import given, strategies as st

from memgraph.rules.conversations import SessionState, follow, taken_over

SESSIONS = st.sampled_from("abcde")


def test_a_new_session_completes_those_that_are_open() -> None:
    course = follow(["c", "c"], followed=(), open_now=["a", "b"])
    assert course.completes == [("a", "b"), ()]
    assert course.done == {"a", "b"}
    assert course.open == {"c"}


def test_a_turn_of_a_known_session_completes_none_and_opens_its_own() -> None:
    course = follow(["a"], followed=["a"], open_now=())
    assert course.completes == [()]
    assert (course.open, course.done) == ({"a"}, set())


def test_a_session_that_goes_on_after_it_was_completed_is_open_and_told_again() -> None:
    course = follow(["b", "a", "c"], followed=["a"], open_now=["a"])
    assert course.completes == [("a",), (), ("b", "a")]
    assert course.open == {"c"}


@given(turns=st.lists(SESSIONS, max_size=12), before=st.lists(SESSIONS, max_size=12))
def test_a_batch_does_what_its_turns_do_one_by_one(turns: list[str], before: list[str]) -> None:
    known, going_on = set(before), list(dict.fromkeys(before))
    told, still = [], list(going_on)
    seen = set(known)
    for turn in turns:
        one = follow([turn], seen, still)
        told += one.completes
        still = [*still, *(one.open - set(still))] if turn in seen else list(one.open)
        seen.add(turn)
    whole = follow(turns, known, going_on)
    assert [set(each) for each in whole.completes] == [set(each) for each in told]
    assert whole.open == set(still)
    # Every open session is still open, or its completion was reported.
    assert set(going_on) | set(turns) <= whole.open | whole.done


def test_turns_from_elsewhere_complete_their_sessions_once() -> None:
    known = {
        "open": SessionState.OPEN,
        "waits": SessionState.COMPLETED,
        "known": SessionState.CONSOLIDATED,
    }
    assert taken_over(["new", "open", "waits", "known", "new"], known) == ["new", "known"]
