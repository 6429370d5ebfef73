"""Writes under a claim: noted with what they write, or not at all."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memgraph import MemoryService, Orchestrator
from memgraph.clock import FixedClock
from memgraph.errors import InvalidInput, KeyReused
from memgraph.model.enums import Sensitivity
from memgraph.rules.scope import Viewer
from memgraph.service.idempotency import (
    KEPT_MS,
    MAX_KEY_CHARS,
    MOST_IDS,
    MOST_WAITING,
    CachedAnswer,
    ClaimTaken,
    RequestClaim,
    claiming,
)
from memgraph.service.open_orchestrator import OpenOrchestrator
from memgraph.store.idempotency import CompletedRequest
from memgraph.store.snapshot import NewEntry
from memgraph.store.visibility import View

pytestmark = pytest.mark.engines

PRINTABLE = st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=20)
PARTS = st.lists(st.binary(max_size=6), max_size=4)


@pytest.fixture
def opened(service: MemoryService, orc: Orchestrator) -> Iterator[OpenOrchestrator]:
    with service.opened(orc.name) as found:
        yield found


def claim(key: str = "k", request: bytes = b"body", actor: str = "key:1") -> RequestClaim:
    return RequestClaim.of(actor, key, request)


def done(opened: OpenOrchestrator, of: RequestClaim) -> CompletedRequest:
    found = opened.answers.find(of)
    assert isinstance(found, CompletedRequest)
    return found


@given(PRINTABLE, PRINTABLE, PARTS, PARTS)
def test_different_requests_have_different_digests(
    key: str, other_key: str, request: list[bytes], other: list[bytes]
) -> None:
    one, two = RequestClaim.of("a", key, *request), RequestClaim.of("a", other_key, *other)
    assert (one.key_sha256 == two.key_sha256) is (key == other_key)
    assert (one.request_sha256 == two.request_sha256) is (request == other)


@given(PRINTABLE)
def test_a_key_is_its_askers(key: str) -> None:
    assert RequestClaim.of("a", key).key_sha256 != RequestClaim.of("b", key).key_sha256


@pytest.mark.parametrize("key", ["", "x" * (MAX_KEY_CHARS + 1), "ü", "a\nb", "\x7f"])
def test_what_is_no_key_is_refused(key: str) -> None:
    with pytest.raises(InvalidInput):
        RequestClaim.of("a", key)


def test_a_claim_is_durable_with_its_write(opened: OpenOrchestrator, orc: Orchestrator) -> None:
    mine = claim()
    with claiming(mine):
        memory_id = orc.remember("once")
    assert mine.made
    assert done(opened, claim()).memory_ids == (memory_id,)


def test_a_write_that_is_undone_leaves_no_claim(
    opened: OpenOrchestrator, orc: Orchestrator
) -> None:
    mine = claim()

    def fail() -> None:
        with opened.transaction("x") as transaction:
            transaction.record([NewEntry("remember", "mem_1")])
            raise ZeroDivisionError

    with claiming(mine), pytest.raises(ZeroDivisionError):
        fail()
    assert (mine.made, mine.memory_ids) == (False, ())
    assert opened.answers.find(mine) is None


def test_the_second_writes_nothing(opened: OpenOrchestrator, orc: Orchestrator) -> None:
    with claiming(claim()):
        orc.remember("the first")
    before = orc.memories.list()
    with claiming(claim()), pytest.raises(ClaimTaken):
        orc.remember("the second")
    assert orc.memories.list() == before


def test_several_transactions_of_a_request_are_one_claim(
    opened: OpenOrchestrator, orc: Orchestrator
) -> None:
    mine = claim()
    with claiming(mine):
        ids = [orc.remember(f"number {n}") for n in range(3)]
        orc.retract(ids[0], reason="no")
    assert done(opened, mine).memory_ids == tuple(ids)


def test_a_load_in_threads_is_under_the_claim(opened: OpenOrchestrator, orc: Orchestrator) -> None:
    mine = claim()
    with claiming(mine):
        outcomes = orc.remember_many({"content": f"line {n}"} for n in range(2_500))
    ids = [each.memory_id for each in outcomes]
    assert list(done(opened, mine).memory_ids) == ids[:MOST_IDS]


def test_what_memgraph_notes_by_itself_is_no_write_of_a_request(
    opened: OpenOrchestrator, orc: Orchestrator
) -> None:
    mine = claim()
    with claiming(mine):
        opened.receipts.flush()
        opened.upkeep.run()
    assert not mine.made
    assert opened.answers.find(mine) is None


def test_an_answer_is_there_at_once_and_after_it_is_written(
    opened: OpenOrchestrator, orc: Orchestrator
) -> None:
    mine = claim()
    with claiming(mine):
        orc.confirm(orc.remember("answered"))
    opened.answers.keep(mine, 201, "told")
    assert opened.answers.find(claim()) == CachedAnswer(201, "told")
    with pytest.raises(KeyReused):
        opened.answers.find(claim(request=b"another"))
    opened.answers.flush()
    assert opened.answers.find(claim()) == CachedAnswer(201, "told")
    with pytest.raises(KeyReused):
        opened.answers.find(claim(request=b"another"))


def test_closing_writes_the_answers(service: MemoryService, orc: Orchestrator) -> None:
    mine = claim()
    with claiming(mine):
        orc.remember("answered")
    with service.opened(orc.name) as opened:
        opened.answers.keep(mine, 204, "")
    service.forget(orc.name)
    with service.opened(orc.name) as again:
        assert again.answers.find(claim()) == CachedAnswer(204, "")


def test_many_answers_are_to_be_written(opened: OpenOrchestrator) -> None:
    due = [opened.answers.keep(claim(f"k{n}"), 200, "") for n in range(MOST_WAITING)]
    assert due == [False] * (MOST_WAITING - 1) + [True]


def test_after_its_time_a_key_is_free(
    opened: OpenOrchestrator, orc: Orchestrator, clock: FixedClock
) -> None:
    with claiming(claim()):
        first = orc.remember("the first")
    opened.answers.keep(claim(), 201, "first")
    opened.answers.flush()
    clock.advance(ms=KEPT_MS)
    assert opened.answers.find(claim(request=b"another")) is None
    with claiming(claim(request=b"another")):
        second = orc.remember("the second")
    found = done(opened, claim(request=b"another"))
    assert (found.memory_ids, found.status) == ((second,), None)
    assert first != second


def test_a_claim_counts_from_when_it_was_asked_for(
    service: MemoryService, opened: OpenOrchestrator, orc: Orchestrator
) -> None:
    """What is done as if it were another time is no older, or younger, for that."""
    now = opened.clock.now_ms()
    mine = claim()
    mine.at = now
    with service.at(now - 2 * KEPT_MS) as then, claiming(mine):
        then.orchestrator(orc.name).remember("two days ago")
    assert done(opened, claim()).created_at == now


def test_a_job_of_another_time_removes_no_claim(
    opened: OpenOrchestrator, orc: Orchestrator
) -> None:
    with claiming(claim()):
        orc.remember("now")
    orc.jobs.run("decay", now=opened.clock.now_ms() + 2 * KEPT_MS)
    assert done(opened, claim()).memory_ids


def test_ids_are_told_to_who_sees_them(opened: OpenOrchestrator, orc: Orchestrator) -> None:
    with claiming(claim()):
        orc.remember("open")
        orc.remember("hidden", sensitivity=Sensitivity.RESTRICTED)
    whole, less = (
        opened.answers.find(claim(), View(Viewer(clearance=clearance)))
        for clearance in (Sensitivity.RESTRICTED, Sensitivity.INTERNAL)
    )
    assert isinstance(whole, CompletedRequest)
    assert isinstance(less, CompletedRequest)
    assert len(whole.memory_ids) == 2
    assert less.memory_ids == whole.memory_ids[:1]


def test_a_request_that_wrote_nothing_may_have_an_answer(opened: OpenOrchestrator) -> None:
    opened.answers.keep(claim(), 200, "{}")
    opened.answers.flush()
    assert opened.answers.find(claim()) == CachedAnswer(200, "{}")
    with claiming(claim()), pytest.raises(ClaimTaken), opened.transaction("x"):
        pass
