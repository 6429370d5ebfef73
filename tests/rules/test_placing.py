"""What belongs together stands together, and nothing is shown twice."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given, strategies as st

from memgraph.rules.ranking import placed

IDS = st.sampled_from("abcdefgh")
BESIDE = st.dictionaries(IDS, st.lists(IDS, max_size=3), max_size=4)


def around(
    before: dict[str, list[str]], behind: dict[str, list[str]]
) -> Callable[[str], list[str]]:
    return lambda one: [*before.get(one, ()), one, *behind.get(one, ())]


def test_without_company_the_rank_decides() -> None:
    assert placed("abc", around({}, {}), "abc", 2) == {"a": "a", "b": "b"}


def test_company_stands_beside_the_first_that_has_it() -> None:
    found = placed("abcd", around({"b": ["d"]}, {"a": ["c"], "d": ["a"]}), "abcd", 4)
    assert list(found) == ["a", "c", "d", "b"]
    assert found == {"a": "a", "c": "a", "d": "b", "b": "b"}


def test_what_cannot_be_shown_takes_no_place() -> None:
    assert list(placed("abc", around({}, {"a": ["x", "y"]}), "abcy", 3)) == ["a", "y", "b"]


@given(st.lists(IDS, unique=True), BESIDE, BESIDE, st.sets(IDS), st.integers(0, 9))
def test_nothing_is_lost_before_the_last_place(
    ranked: list[str],
    before: dict[str, list[str]],
    behind: dict[str, list[str]],
    there: set[str],
    top_n: int,
) -> None:
    found = list(placed(ranked, around(before, behind), there, top_n))
    everything = list(placed(ranked, around(before, behind), there, 100))
    assert found == everything[:top_n]
    assert set(everything) <= there
    assert set(ranked) & there <= set(everything)
