"""What was being written at the moment of an answer is no part of it, when it is asked again."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from working import put

from memgraph import MemoryService, Orchestrator
from memgraph.clock import FixedClock
from memgraph.model.enums import MemoryStatus
from memgraph.store import memories
from memgraph.store.receipts import known_until
from memgraph.store.snapshot import NewEntry

QUERY = "When does the harbour close?"
SECOND = 1_000
# Of a query's words nothing is kept.
ASKED = {"bulletin": None, "recall": QUERY, "get_context": QUERY, "build_context": QUERY}


@contextmanager
def being_retracted(service: MemoryService, clock: FixedClock, memory_id: str) -> Iterator[None]:
    """A change that began before the block and is done after it."""
    with service.opened("orc-1") as opened, opened.transaction("writer") as transaction:
        clock.advance(ms=SECOND)
        yield
        memories.set_status(transaction, memory_id, MemoryStatus.RETRACTED, reason="it was told")
        transaction.record([NewEntry(action="retract", subject=memory_id, details={})])


def handed_out(orc: Orchestrator) -> dict[str, str | None]:
    """Receipts by what they are of. Another thread asks: this one is writing."""

    def ask() -> dict[str, str | None]:
        return {
            "bulletin": orc.bulletin().receipt_id,
            "recall": orc.recall(QUERY).receipt_id,
            "get_context": orc.context(QUERY).receipt_id,
            "build_context": orc.contexts.build(None, query=QUERY).receipt_id,
        }

    with ThreadPoolExecutor(1) as other:
        return other.submit(ask).result()


def told_again(orc: Orchestrator, given: dict[str, str | None]) -> set[str]:
    """Those of which a replay has the same items in the same bytes."""
    replays = {
        purpose: orc.receipts.replay(receipt_id or "", query=ASKED[purpose])
        for purpose, receipt_id in given.items()
    }
    return {purpose for purpose, found in replays.items() if found.same and found.same_digest}


def test_a_change_that_was_being_written_was_not_known(
    service: MemoryService, orc: Orchestrator, clock: FixedClock
) -> None:
    gone = put(orc, "The harbour closes at nine.")
    put(orc, "The harbour opens at six.", derived_from=[gone])
    clock.advance(ms=SECOND)
    with being_retracted(service, clock, gone):
        given = handed_out(orc)
    clock.advance(ms=SECOND)
    assert told_again(orc, given) == set(given)


def test_a_change_within_the_millisecond_of_the_answer_was_not_known(
    orc: Orchestrator, clock: FixedClock
) -> None:
    gone = put(orc, "The harbour closes at nine.")
    clock.advance(ms=SECOND)
    given = handed_out(orc)
    orc.retract(gone, reason="it was told")
    clock.advance(ms=SECOND)
    assert told_again(orc, given) == set(given)


def test_an_answer_of_a_clock_that_was_set_back_knew_what_was_stored(
    orc: Orchestrator, clock: FixedClock
) -> None:
    put(orc, "The harbour closes at nine.")
    clock.advance(ms=-SECOND)
    given = handed_out(orc)
    clock.advance(ms=10 * SECOND)
    assert told_again(orc, given) == set(given)


def test_a_context_is_dated_when_its_snapshot_stands(
    service: MemoryService, orc: Orchestrator, clock: FixedClock
) -> None:
    put(orc, "The harbour closes at nine.")
    clock.advance(ms=SECOND)

    class Waiting:
        def __enter__(self) -> None:
            clock.advance(ms=SECOND)
            put(orc, "The harbour closes when the mate goes home.")
            clock.advance(ms=SECOND)

        def __exit__(self, *_: object) -> None:
            pass

    with service.opened("orc-1") as opened:
        turns, opened.turns = opened.turns, Waiting()  # type: ignore[assignment]
        package = orc.contexts.build(None, query=QUERY)
        opened.turns = turns
    assert package.at >= max(each.memory.created_at for each in orc.recall(QUERY).items)
    assert len(package.items) == 2


@pytest.mark.parametrize(
    ("seq", "at", "known"),
    [
        # The entries are of 100, 200 and 300.
        (0, 50, 50),
        (0, 150, 99),
        (1, 150, 150),
        (1, 200, 199),
        (1, 250, 199),
        (2, 150, 200),
        (3, 400, 400),
    ],
)
def test_all_entries_until_one_are_known_and_none_after_it(
    service: MemoryService, orc: Orchestrator, clock: FixedClock, seq: int, at: int, known: int
) -> None:
    start = clock.now_ms()
    for number in range(3):
        clock.advance(ms=100)
        put(orc, f"The harbour closes at {number}.")
    with service.opened("orc-1") as opened, opened.database.read() as connection:
        assert known_until(connection, seq, start + at) == start + known
