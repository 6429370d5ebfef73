"""The bucket of each source."""

from __future__ import annotations

import asyncio
import threading
import time

from hypothesis import given
from hypothesis import strategies as st

from memgraph.service.access.rates import SharedRates
from memgraph.surfaces.http.limits import (
    BURST_S,
    LOT_S,
    MOST_KNOWN,
    PATIENCE_S,
    Lot,
    RequestSender,
    SharedBuckets,
    TokenBuckets,
)

TIMES = st.lists(st.floats(0, 10), min_size=1, max_size=60).map(sorted)


@given(per_second=st.integers(1, 20), times=TIMES)
def test_never_more_than_a_burst_and_the_rate(per_second: int, times: list[float]) -> None:
    rates = TokenBuckets(per_second)
    taken = [now for now in times if rates.take("one", now) == 0]
    for start in taken:
        for end in taken:
            within = sum(start <= each <= end for each in taken)
            assert start > end or within <= (end - start + BURST_S) * per_second + 1e-6


@given(per_second=st.integers(1, 20), times=TIMES)
def test_who_waits_as_told_is_let_in(per_second: int, times: list[float]) -> None:
    rates = TokenBuckets(per_second)
    for now in times:
        wait = rates.take("one", now)
        if wait > 0:
            assert rates.take("one", now + wait + 1e-6) == 0
            return


def test_a_whole_burst_is_let_in_at_once() -> None:
    rates = TokenBuckets(5)
    waits = [rates.take("one", 0.0) for _ in range(11)]
    assert waits[:10] == [0.0] * 10
    assert waits[10] > 0
    assert rates.take("other", 0.0) == 0


def test_no_more_sources_are_kept_than_needed() -> None:
    rates = TokenBuckets(1)
    for n in range(MOST_KNOWN + 10):
        rates.take(str(n), 0.0)
    assert len(rates._full_at) == MOST_KNOWN


class Bucket:
    """What all processes share: gives as many tokens as it has."""

    def __init__(self, per_second: float) -> None:
        self.interval_s = 1 / per_second
        self.full_at = 0.0

    def take(self, tokens: int, now: float) -> tuple[int, float]:
        until = max(self.full_at, now)
        granted = min(tokens, int((now + BURST_S - until) / self.interval_s + 1e-6))
        self.full_at = until + granted * self.interval_s
        return granted, max(self.full_at + self.interval_s - BURST_S - now, 0.0)


def ask(lot: Lot, bucket: Bucket, now: float) -> float:
    """Take one request as a process does; return the seconds to wait."""
    wait_s = lot.take(now)
    if wait_s is None:
        lot.fill(*bucket.take(lot.next_size(now), now), now)
        wait_s = lot.take(now)
    assert wait_s is not None
    return wait_s


@given(
    per_second=st.integers(1, 100),
    asked=st.lists(st.tuples(st.floats(0, 10), st.integers(0, 3)), max_size=200).map(sorted),
)
def test_lots_let_no_more_in_than_the_bucket_and_themselves(
    per_second: int, asked: list[tuple[float, int]]
) -> None:
    bucket, largest = Bucket(per_second), max(int(per_second * LOT_S), 1)
    lots = [Lot(largest) for _ in range(4)]
    taken = [now for now, number in asked if ask(lots[number], bucket, now) == 0]
    for start in taken:
        within = [now for now in taken if now >= start]
        for count, end in enumerate(within, 1):
            assert count <= (end - start + BURST_S) * per_second + len(lots) * largest + 1e-6


@given(per_second=st.integers(1, 500), processes=st.integers(1, 8), share=st.floats(0.1, 0.99))
def test_who_stays_below_the_rate_is_never_refused(
    per_second: int, processes: int, share: float
) -> None:
    bucket, largest = Bucket(per_second), max(int(per_second * LOT_S), 1)
    # Of a rate of one the processes would hold more than the bucket has.
    lots = [Lot(largest) for _ in range(min(processes, per_second))]
    for number in range(1_000):
        now = number / (per_second * share)
        assert ask(lots[number % len(lots)], bucket, now) == 0


@given(per_second=st.integers(1, 100), pauses=st.lists(st.floats(0, 1), max_size=60))
def test_who_waits_as_a_lot_says_is_let_in(per_second: int, pauses: list[float]) -> None:
    bucket, lot, now = Bucket(per_second), Lot(max(int(per_second * LOT_S), 1)), 0.0
    for pause in pauses:
        now += pause
        for _ in range(4):
            if wait_s := ask(lot, bucket, now):
                assert ask(lot, bucket, now + wait_s / 2) > 0
                now += wait_s + 1e-6
                assert ask(lot, bucket, now) == 0


def test_lots_grow_while_they_are_used_up_quickly() -> None:
    lot, sizes = Lot(8), []
    for now in (0.0, 0.1, 0.2, 0.3, 0.4, 1.0, 1.1, 2.0, 3.0, 4.0, 5.0):
        sizes.append(lot.next_size(now))
        lot.fill(sizes[-1], 0.0, now)
        assert lot.next_size(now) == 0
        while lot.take(now) == 0:
            continue
    assert sizes == [1, 2, 4, 8, 8, 4, 8, 4, 2, 1, 1]


def test_an_empty_bucket_is_not_asked_by_every_request() -> None:
    lot = Lot(8)
    lot.next_size(0.0)
    lot.fill(0, 0.001, 0.0)
    assert lot.take(0.0) == LOT_S
    assert lot.next_size(LOT_S / 2) == 0
    assert lot.take(LOT_S) is None


class Table:
    """Gives what is asked for, after some time in a thread."""

    def __init__(self, lasts_s: float = 0.01) -> None:
        self.lasts_s = lasts_s
        self.threads: list[int] = []

    def take(self, _source: str, tokens: int, **_: float) -> tuple[int, float]:
        self.threads.append(threading.get_ident())
        time.sleep(self.lasts_s)
        return tokens, 0.0


def asked_at_once(shared: SharedRates, number: int) -> list[float]:
    """What so many requests of one source that come together have to wait."""

    async def ask_all() -> list[float]:
        buckets = SharedBuckets(shared, 800, time.monotonic)
        sender = RequestSender("one", None, known=True)
        return await asyncio.gather(*(buckets.take(sender) for _ in range(number)))

    return asyncio.run(ask_all())


def test_requests_share_lots_that_threads_take() -> None:
    table = Table()
    assert asked_at_once(SharedRates(table), 64) == [0.0] * 64
    # 1, 2, 4, … and not one for each request.
    assert len(table.threads) < 20
    assert threading.get_ident() not in table.threads


def test_a_database_that_does_not_answer_holds_requests_up_once() -> None:
    table = Table(lasts_s=3 * PATIENCE_S)
    shared = SharedRates(table)
    began = time.monotonic()
    assert asked_at_once(shared, 64) == [0.0] * 64
    assert shared.is_away
    assert asked_at_once(shared, 64) == [0.0] * 64
    assert time.monotonic() - began < 3 * table.lasts_s
    assert len(table.threads) == 1


def test_strangers_of_many_addresses_do_not_hold_up_a_key() -> None:
    table = Table(lasts_s=0.05)

    async def ask_all() -> float:
        buckets = SharedBuckets(SharedRates(table), 800, time.monotonic)
        strangers = [RequestSender(str(number), None, known=False) for number in range(200)]
        waiting = [asyncio.create_task(buckets.take(stranger)) for stranger in strangers]
        await asyncio.sleep(table.lasts_s)
        began = time.monotonic()
        await buckets.take(RequestSender("key", "k", known=True))
        lasted = time.monotonic() - began
        assert not all(task.done() for task in waiting)
        assert set(await asyncio.gather(*waiting)) == {0.0}
        return lasted

    # All strangers need 2.5 seconds, four at a time.
    assert asyncio.run(ask_all()) < 1.0
    assert len(table.threads) == 201
