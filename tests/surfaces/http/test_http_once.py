"""Idempotency-Key over HTTP: done once, answered alike, whatever happens in between."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from serving_worlds import PATIENCE_S, Served, serving

from memgraph.clock import FixedClock
from memgraph.errors import MemoryDisabled
from memgraph.service.background import BackgroundWork
from memgraph.service.idempotency import KEPT_MS
from memgraph.service.open_orchestrator import OpenOrchestrator
from memgraph.surfaces.http import idempotency as once

BASE = "/v1/orchestrators/orc-1"
EPISODES = f"{BASE}/episodes"


@pytest.fixture
def turns(tmp_path: Path) -> Iterator[Served]:
    with serving(tmp_path / "root", clock=FixedClock()) as made:
        made.orchestrator()
        yield made


@pytest.fixture
def recorder(turns: Served) -> Iterator[httpx.Client]:
    with turns.client(turns.key()) as made:
        yield made


def turn(text: str = "hello") -> dict[str, Any]:
    """An episode: two of the same text are two."""
    return {"content": text, "session_id": "s1", "source_role": "user"}


def say(client: httpx.Client, key: str | None, text: str = "hello", **more: Any) -> httpx.Response:
    headers = {} if key is None else {"idempotency-key": key}
    return client.post(EPISODES, json=turn(text) | more, headers=headers)


def said(served: Served) -> int:
    return len(served.orchestrator().memories.list(limit=1_000))


def test_the_same_request_is_done_once(turns: Served, recorder: httpx.Client) -> None:
    first, again = say(recorder, "k1"), say(recorder, "k1")
    assert (first.status_code, again.status_code) == (201, 201)
    assert (first.content, said(turns)) == (again.content, 1)
    assert "idempotency-replayed" not in first.headers
    assert again.headers["idempotency-replayed"] == "true"
    assert again.headers["content-type"] == "application/json"
    assert say(recorder, "k2").json() != first.json()
    assert say(recorder, None).status_code == 201
    assert said(turns) == 3


def test_an_empty_answer_is_kept_too(recorder: httpx.Client) -> None:
    memory_id = say(recorder, None).json()["memory_id"]
    path, headers = f"{BASE}/memories/{memory_id}/retract", {"idempotency-key": "k"}
    answers = [recorder.post(path, json={"reason": "no"}, headers=headers) for _ in range(2)]
    assert [each.status_code for each in answers] == [204, 204], "retracting twice is a conflict"
    assert answers[1].content == b""


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (EPISODES, turn("another")),
        (f"{BASE}/memories", {"content": "x"}),
        (EPISODES + "?clearance=Restricted", None),
    ],
)
def test_another_request_with_the_key_is_refused(
    turns: Served, recorder: httpx.Client, path: str, body: dict[str, Any]
) -> None:
    say(recorder, "k")
    answer = recorder.post(path, json=body, headers={"idempotency-key": "k"})
    assert (answer.status_code, answer.json()["code"]) == (422, "request.key_reused")
    assert said(turns) == 1


def test_a_key_is_one_askers_own(turns: Served, recorder: httpx.Client) -> None:
    say(recorder, "k")
    with turns.client(turns.key()) as other:
        assert "idempotency-replayed" not in say(other, "k", "mine").headers
    assert said(turns) == 2


def test_what_was_refused_may_be_asked_again(turns: Served, recorder: httpx.Client) -> None:
    refused = say(recorder, "k", derived_from=["mem_00000000000000000000000000"])
    assert refused.status_code == 404
    assert say(recorder, "k").status_code == 201
    assert said(turns) == 1


def test_what_was_answered_is_not_told_to_who_may_no_more(turns: Served) -> None:
    secret = turns.key()
    with turns.client(secret) as client:
        say(client, "k")
        turns.keys.revoke(secret.split("_")[1])
        assert say(client, "k").status_code == 401


@pytest.mark.parametrize("key", ["", "x" * 256, "caf\u00e9"])
def test_a_key_that_is_none_is_refused(turns: Served, recorder: httpx.Client, key: str) -> None:
    answer = recorder.post(EPISODES, json=turn(), headers=[(b"idempotency-key", key.encode())])
    assert (answer.status_code, answer.json()["code"]) == (422, "input.invalid")
    assert said(turns) == 0


def test_a_key_counts_for_a_day(turns: Served, recorder: httpx.Client) -> None:
    clock = turns.service.clock
    assert isinstance(clock, FixedClock)
    first = say(recorder, "k")
    clock.advance(ms=KEPT_MS - 1)
    assert say(recorder, "k").json() == first.json()
    clock.advance(ms=1)
    assert say(recorder, "k").json() != first.json()
    assert say(recorder, "k", "another").status_code == 422
    assert said(turns) == 2


def test_at_the_same_time_one_does_it_and_the_others_have_its_answer(
    turns: Served, recorder: httpx.Client
) -> None:
    together = threading.Barrier(8)

    def ask(_: int) -> httpx.Response:
        together.wait(PATIENCE_S)
        return say(recorder, "k")

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, range(8)))
    assert [each.status_code for each in answers] == [201] * 8
    assert len({each.content for each in answers}) == 1
    assert sum("idempotency-replayed" not in each.headers for each in answers) == 1
    assert said(turns) == 1


def test_two_servers_do_it_once(tmp_path: Path) -> None:
    with (
        serving(tmp_path / "root", keyless=True) as one,
        serving(tmp_path / "root", keyless=True) as other,
        one.client() as here,
        other.client() as there,
    ):
        one.orchestrator()
        together = threading.Barrier(2)

        def ask(client: httpx.Client, key: str) -> httpx.Response:
            together.wait(PATIENCE_S)
            return say(client, key)

        with ThreadPoolExecutor(2) as pool:
            for n in range(10):
                answers = list(pool.map(ask, (here, there), (f"k{n}", f"k{n}")))
                assert [each.status_code for each in answers] == [201, 201]
                assert answers[0].content == answers[1].content
        assert said(one) == 10


def test_a_batch_of_a_thousand_is_done_once(turns: Served, recorder: httpx.Client) -> None:
    body = {"items": [turn(f"line {n}") for n in range(1_000)]}
    headers = {"idempotency-key": "k"}
    answers = [recorder.post(f"{EPISODES}/batch", json=body, headers=headers) for _ in range(2)]
    assert answers[0].content == answers[1].content
    assert len(turns.orchestrator().memories.list(limit=1_000)) == 1_000
    with turns.service.opened("orc-1") as opened, opened.database.read() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM memories").scalar() == 1_000


def test_a_refusal_takes_no_key(turns: Served) -> None:
    secret = turns.key(permissions=frozenset({"write"}), clearance="Internal")
    with turns.client(secret) as client:
        assert say(client, "k", sensitivity="Restricted").status_code == 403
        assert say(client, "k").status_code == 201
    assert said(turns) == 1


def test_an_answer_that_cannot_be_kept_is_given_all_the_same(
    turns: Served, recorder: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memgraph.errors import DatabaseFull
    from memgraph.service.idempotency import AnswerCache

    def full(_answers: AnswerCache) -> None:
        raise DatabaseFull("the disk is full")

    monkeypatch.setattr(AnswerCache, "flush", full)
    first = say(recorder, "k")
    assert first.status_code == 201
    assert say(recorder, "k").content == first.content


def test_an_answer_is_given_though_nothing_can_be_kept(
    turns: Served, recorder: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(*_given: object) -> None:
        raise MemoryDisabled("it was closed meanwhile")

    monkeypatch.setattr(once, "_store_answer", closed)
    monkeypatch.setattr(once, "_PATIENCE_MS", 0)
    assert say(recorder, "k").status_code == 201
    assert say(recorder, "k").json()["code"] == "request.answer_lost"
    assert said(turns) == 1


def test_what_writes_no_memory_is_done_once_too(turns: Served, recorder: httpx.Client) -> None:
    path, headers = f"{BASE}/jobs/decay/run", {"idempotency-key": "k"}
    answers = [recorder.post(path, json={}, headers=headers) for _ in range(2)]
    assert [each.status_code for each in answers] == [200, 200]
    assert answers[0].content == answers[1].content
    assert len(turns.orchestrator().jobs.list()) == 1


def test_a_job_of_another_time_is_done_once_now(turns: Served, recorder: httpx.Client) -> None:
    say(recorder, None, "I moved to Bergen in May.")
    headers = {"idempotency-key": "k"}
    body = {"now": turns.service.clock.now_ms() - 2 * KEPT_MS}
    path = f"{BASE}/jobs/consolidation/run"
    answers = [recorder.post(path, json=body, headers=headers) for _ in range(2)]
    assert answers[0].content == answers[1].content
    assert len(turns.orchestrator().jobs.list()) == 1


def test_an_answer_that_another_server_is_about_to_write_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BackgroundWork, "LATER_S", 1.1)
    given = {"keyless": True, "background": True}
    with (
        serving(tmp_path / "root", **given) as one,
        serving(tmp_path / "root", **given) as other,
        one.client() as here,
        other.client() as there,
    ):
        one.orchestrator()
        # The first of them is written with what else there is to do.
        for n in range(3):
            answers = [say(client, f"k{n}") for client in (here, there)]
            assert [each.status_code for each in answers] == [201, 201]
            assert answers[0].content == answers[1].content


def test_ended_between_write_and_answer_it_tells_what_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, left = tmp_path / "root", tmp_path / "left"

    async def end_here(_turn: once.KeyedRequest, _status: int, _body: bytes) -> None:
        # What a process that is killed now would leave: the write is done, nothing was answered.
        subprocess.run(["cp", "-a", root, left], check=True)

    with serving(root, keyless=True) as served, served.client() as client:
        served.orchestrator()
        with monkeypatch.context() as patch:
            patch.setattr(once.KeyedRequest, "keep", end_here)
            written = say(client, "k").json()["memory_id"]
    monkeypatch.setattr(once, "_PATIENCE_MS", 0)
    with serving(left, keyless=True) as served, served.client() as client:
        answers = [say(client, "k") for _ in range(2)]
        [stored] = served.orchestrator().memories.list()
        assert stored.memory_id == written
        for each in answers:
            assert (each.status_code, each.json()["code"]) == (409, "request.answer_lost")
            assert each.json()["details"]["memory_ids"] == [written]
        assert say(client, "k2").status_code == 201


def test_keys_are_forgotten_by_upkeep(turns: Served, recorder: httpx.Client) -> None:
    def rows(opened: OpenOrchestrator) -> int:
        with opened.database.read() as connection:
            found = connection.exec_driver_sql("SELECT count(*) FROM idempotency_keys").scalar()
        return int(found or 0)

    clock = turns.service.clock
    assert isinstance(clock, FixedClock)
    say(recorder, "old")
    clock.advance(ms=KEPT_MS // 2)
    say(recorder, "young")
    with turns.service.opened("orc-1") as opened:
        assert rows(opened) == 2
        clock.advance(ms=KEPT_MS // 2)
        opened.upkeep.run()
        assert rows(opened) == 1
