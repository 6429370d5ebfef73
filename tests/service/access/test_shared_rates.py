"""The buckets in a database, as one process sees them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from memgraph.clock import FixedClock
from memgraph.errors import InvalidConfig, MemgraphError, StorageError
from memgraph.log import EventLog, MemorySink
from memgraph.service.access.rates import RETRY_S, Grant, RateLimit, SharedRates, shared_rates
from memgraph.store import postgres
from memgraph.store.postgres import rate_table
from memgraph.store.postgres.rate_table import RateTable
from tests.postgres_servers import drop_schemas

SLOW = RateLimit("requests", 0.001, 5_000)
"""Five at once, and then nothing for as long as a test lasts."""


@pytest.fixture
def url(postgres_url: str) -> Iterator[str]:
    yield postgres_url
    drop_schemas(postgres_url)


@pytest.fixture
def table(url: str) -> RateTable:
    return RateTable(postgres.checked_url(url))


def rows(url: str) -> list[tuple[bytes, float]]:
    connection = postgres.connect(postgres.checked_url(url))
    try:
        return connection.execute("SELECT source, full_at FROM memgraph.rates").fetchall()
    finally:
        connection.close()


def test_a_bucket_gives_what_it_has_and_tells_when_there_is_more(url: str) -> None:
    one, other = shared_rates(url), shared_rates(url)
    assert one.take(SLOW, "a", 0) == (0, 0)
    assert one.take(SLOW, "a", 3) == (3, 0)
    partial = other.take(SLOW, "a", 4)
    assert partial is not None
    assert partial.tokens == 2
    assert 990 < partial.wait_s <= 1_000
    empty = one.take(SLOW, "a")
    assert empty is not None
    assert empty.tokens == 0
    assert 990 < empty.wait_s <= partial.wait_s
    assert one.take(SLOW, "b") == (1, 0)
    assert one.take(SLOW._replace(kind="refusals"), "a") == (1, 0)


def test_a_bucket_fills_with_time(table: RateTable) -> None:
    assert table.take("a", 2, interval_s=0.3, burst_s=0.6)[0] == 2
    wait_s = table.take("a", 1, interval_s=0.3, burst_s=0.6)[1]
    assert 0 < wait_s <= 0.3
    time.sleep(wait_s)
    assert table.take("a", 1, interval_s=0.3, burst_s=0.6)[0] == 1


def test_no_token_is_given_twice(url: str) -> None:
    rates = [shared_rates(url) for _ in range(4)]
    limit = RateLimit("requests", 0.01, 10_000)

    def take(number: int) -> int:
        grant = rates[number % 4].take(limit, "a", 3)
        assert grant is not None
        return grant.tokens

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(take, range(60))) == 100


HOSTILE = (
    "",
    "2001:db8::1",
    "a'; DROP TABLE memgraph.rates; --",
    "\x00\udc80",
    "x" * 100_000,
    "{tokens} %s",
)


@pytest.mark.parametrize("source", HOSTILE)
def test_any_text_is_a_source_of_sixteen_bytes(table: RateTable, url: str, source: str) -> None:
    for tokens in (1, 0):
        assert table.take(source, 1, interval_s=1_000, burst_s=1_000)[0] == tokens
    assert [len(row[0]) for row in rows(url)] == [16]


def test_a_clock_that_was_put_back_keeps_nobody_out(table: RateTable, url: str) -> None:
    table.take("a", 1, interval_s=10, burst_s=20)
    connection = postgres.connect(postgres.checked_url(url))
    connection.execute("UPDATE memgraph.rates SET full_at = full_at + 1e6")
    connection.close()
    tokens, wait_s = table.take("a", 1, interval_s=10, burst_s=20)
    assert tokens == 0
    assert wait_s <= 10


def test_full_buckets_are_deleted(
    table: RateTable, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for source in "ab":
        table.take(source, 1, interval_s=0.001, burst_s=1)
    table.take("c", 1, interval_s=1_000, burst_s=1_000)
    assert len(rows(url)) == 3
    monkeypatch.setattr(rate_table, "SWEEP_S", 0.0)
    sweeper = RateTable(postgres.checked_url(url))
    assert sweeper.take("c", 1, interval_s=1_000, burst_s=1_000)[0] == 0
    assert len(rows(url)) == 1


def test_who_waits_for_a_row_too_long_is_told(table: RateTable, url: str) -> None:
    table.take("a", 1, interval_s=1, burst_s=5)
    connection = postgres.connect(postgres.checked_url(url))
    connection.execute("BEGIN; SELECT * FROM memgraph.rates FOR UPDATE")
    try:
        began = time.monotonic()
        with pytest.raises(StorageError) as raised:
            table.take("a", 1, interval_s=1, burst_s=5)
        assert raised.value.code == "storage.busy"
        assert time.monotonic() - began >= rate_table.ANSWER_MS / 1_000
        assert table.take("b", 1, interval_s=1, burst_s=5)[0] == 1
    finally:
        connection.close()


@pytest.fixture
def role(url: str) -> Iterator[str]:
    """The URL of a user who may make nothing."""
    connection = postgres.connect(postgres.checked_url(url))
    connection.execute("CREATE ROLE memgraph_test_low LOGIN")
    yield sa.make_url(url).set(username="memgraph_test_low").render_as_string()
    connection.execute("DROP OWNED BY memgraph_test_low CASCADE; DROP ROLE memgraph_test_low")
    connection.close()


def test_a_user_who_may_make_nothing_uses_the_table_that_is_there(
    table: RateTable, url: str, role: str
) -> None:
    low = RateTable(postgres.checked_url(role))
    with pytest.raises(InvalidConfig, match="may not make or change"):
        low.take("a", 1, interval_s=1_000, burst_s=2_000)
    assert table.take("a", 1, interval_s=1_000, burst_s=2_000)[0] == 1
    with pytest.raises(InvalidConfig, match="may not make or change"):
        low.take("a", 1, interval_s=1_000, burst_s=2_000)
    connection = postgres.connect(postgres.checked_url(url))
    connection.execute(
        "GRANT USAGE ON SCHEMA memgraph TO memgraph_test_low;"
        "GRANT SELECT, INSERT, UPDATE, DELETE ON memgraph.rates TO memgraph_test_low"
    )
    connection.close()
    assert low.take("a", 2, interval_s=1_000, burst_s=2_000)[0] == 1


class Failing:
    """A table that fails until it is mended."""

    def __init__(self) -> None:
        self.asked = 0
        self.error: MemgraphError | None = StorageError("away")
        self.meanwhile: Callable[[], object] = int

    def take(
        self, _source: str, tokens: int, *, interval_s: float, burst_s: float
    ) -> tuple[int, float]:
        assert 0 < interval_s <= burst_s
        self.asked += 1
        self.meanwhile()
        if self.error is not None:
            raise self.error
        return tokens, 0.0


def test_a_database_that_fails_is_left_alone_for_a_while_and_told_of_once() -> None:
    table, times, sink = Failing(), [0.0], MemorySink()
    rates = SharedRates(table, lambda: times[-1])
    rates.log = EventLog(sink, FixedClock())
    for now in (0.0, 1.0, RETRY_S - 0.1, RETRY_S, RETRY_S + 1):
        times.append(now)
        assert rates.take(SLOW, "a") is None
        assert rates.is_away
    assert table.asked == 2
    table.error = None
    meanwhile: list[Grant | None] = []
    table.meanwhile = lambda: meanwhile or meanwhile.append(rates.take(SLOW, "b"))
    times.append(2 * RETRY_S)
    assert rates.take(SLOW, "a") == (1, 0)
    assert rates.take(SLOW, "a") == (1, 0)
    # Only one looked whether it is back.
    assert (meanwhile, table.asked) == ([None], 4)
    lines = [json.loads(line) for line in sink.lines]
    told = [(line["level"], line["shared"], line.get("reason")) for line in lines]
    assert told == [("warning", False, "away"), ("info", True, None)]
