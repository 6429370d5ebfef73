"""How many refusals an actor has in a minute."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from hypothesis import given
from hypothesis import strategies as st

from memgraph.errors import RateLimited
from memgraph.service.access.gate import MAX_ACTORS, WINDOW_MS, RefusalCounter


def limited(refusals: RefusalCounter, actor: str, now: int) -> int | None:
    """How many seconds it has to wait; None: it has refusals left."""
    try:
        refusals.check(actor, now)
    except RateLimited as error:
        return int(error.details["retry_after_s"])
    return None


def test_after_so_many_it_waits_until_the_oldest_is_a_minute_old() -> None:
    refusals = RefusalCounter(3)
    for now in (0, 10_000, 20_000):
        assert limited(refusals, "a", now) is None
        refusals.add("a", now)
    assert limited(refusals, "a", 20_000) == 40
    assert limited(refusals, "a", 59_999) == 1
    assert limited(refusals, "b", 20_000) is None
    assert limited(refusals, "a", 60_000) is None
    refusals.add("a", 60_000)
    assert limited(refusals, "a", 60_000) == 10


def test_a_clock_that_was_put_back_keeps_nobody_out() -> None:
    refusals = RefusalCounter(1)
    refusals.add("a", 10**12)
    assert limited(refusals, "a", 10) is None


@given(st.integers(1, 5), st.lists(st.integers(0, 30_000), max_size=60))
def test_no_minute_holds_more_of_who_asks_before(limit: int, pauses: list[int]) -> None:
    refusals, now, let = RefusalCounter(limit), 0, list[int]()
    for pause in pauses:
        now += pause
        wait = limited(refusals, "a", now)
        recent = [each for each in let if now - each < WINDOW_MS]
        assert (wait is None) is (len(recent) < limit)
        if wait is None:
            refusals.add("a", now)
            let.append(now)
        else:
            assert limited(refusals, "a", now + wait * 1_000) is None


def test_threads_are_all_counted_and_actors_without_end_take_no_memory_without_end() -> None:
    refusals = RefusalCounter(200)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: refusals.add("a", 0), range(200)))
    assert limited(refusals, "a", 0) == 60
    for number in range(MAX_ACTORS):
        refusals.add(f"key-{number}", 0)
    assert limited(refusals, "a", 0) is None
