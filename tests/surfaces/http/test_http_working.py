"""Contexts, tiers, forgetting, copies and making orchestrators, over HTTP."""

from __future__ import annotations

import queue
import socket
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NoReturn
from unittest.mock import Mock

import denial_lines
import httpx
import pytest
from serving_worlds import Served, serving

from memgraph.errors import DatabaseBusy, StorageError
from memgraph.model.access import Permission
from memgraph.model.enums import Sensitivity
from memgraph.operations.orchestrator import Orchestrator
from memgraph.service import job_runs
from memgraph.service.memory_service import MOST_AT_ONCE, CopyLimiter
from memgraph.surfaces.http import limits

BASE = "/v1/orchestrators/orc-1"


def denials(served: Served) -> int:
    """Count the lines of refusals."""
    return len(denial_lines.denials(served.service.root))


def test_a_context_opens_only_what_the_view_names(served: Served, client: httpx.Client) -> None:
    placed = {"task_id": "task-1", "metadata": {"project_id": "p"}}
    before = denials(served)
    for task, params in (
        ("task-1", {"session": "task-2"}),
        (placed, {"session": "task-1", "project": "q"}),
    ):
        answer = client.post(f"{BASE}/context", json={"task": task}, params=params)
        assert (answer.status_code, answer.json()["code"]) == (403, "access.denied")
    assert denials(served) == before + 2


def test_a_copy_is_what_the_library_gives_and_leaves_no_file(
    served: Served, client: httpx.Client, tmp_path: Path
) -> None:
    exported = client.get(f"{BASE}/export")
    assert exported.headers["content-type"].startswith("application/x-ndjson")
    lines = list(served.orchestrator().exchange.export_lines())
    # The first line has the time, the last the number of all.
    assert exported.content.splitlines(keepends=True)[1:] == lines[1:]
    copy = tmp_path / "copy.db"
    copy.write_bytes(client.get(f"{BASE}/backup").content)
    with sqlite3.connect(copy) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
    assert list((served.service.root / ".outgoing").iterdir()) == []


@pytest.fixture
def given_back(monkeypatch: pytest.MonkeyPatch) -> queue.SimpleQueue[bool]:
    """Has an entry for each copy that was given back; copies are larger than a socket takes."""
    ended: queue.SimpleQueue[bool] = queue.SimpleQueue()
    made = CopyLimiter.copied

    @contextmanager
    def told(copies: CopyLimiter, write: Callable[[Path], object]) -> Iterator[BinaryIO]:
        try:
            with made(copies, write) as file:
                yield file
        finally:
            ended.put(file.closed)

    def large(_orc: Orchestrator, target: Path, **_options: object) -> None:
        with target.open("wb") as file:
            file.truncate(64_000_000)

    monkeypatch.setattr(CopyLimiter, "copied", told)
    monkeypatch.setattr(Orchestrator.exchange, "export", large)
    return ended


@contextmanager
def asked_for_a_copy(served: Served) -> Iterator[socket.socket]:
    """A connection on which an export begins to arrive."""
    head = f"GET {BASE}/export HTTP/1.1\r\nhost: localhost\r\n"
    with served.connect() as raw:
        raw.sendall(f"{head}authorization: Bearer {served.key()}\r\n\r\n".encode())
        assert raw.recv(15).startswith(b"HTTP/1.1 200")
        yield raw


def test_a_copy_whose_asker_goes_away_is_given_back(
    served: Served, given_back: queue.SimpleQueue[bool]
) -> None:
    for _ in range(MOST_AT_ONCE + 1):
        with asked_for_a_copy(served):
            pass
        assert given_back.get(timeout=20)


def test_who_takes_nothing_of_a_copy_is_left(
    tmp_path: Path, given_back: queue.SimpleQueue[bool]
) -> None:
    config = {"memory.server.request_timeout_s": 0.3}
    with serving(tmp_path / "root", config=config) as served:
        served.orchestrator()
        with asked_for_a_copy(served) as raw:
            assert given_back.get(timeout=20)
            # What was promised does not come.
            taken = 0
            while piece := raw.recv(1 << 20):
                taken += len(piece)
            assert taken < 64_000_000


def test_jobs_audits_and_copies_leave_threads_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    going, over = threading.Semaphore(0), threading.Event()

    def slow(_orc: Orchestrator, *_args: object, **_options: object) -> NoReturn:
        going.release()
        assert over.wait(20)
        raise DatabaseBusy("it was long enough")

    for kind, name in (
        (Orchestrator, "verify"),
        (Orchestrator.jobs, "run"),
        (Orchestrator.exchange, "export"),
    ):
        monkeypatch.setattr(kind, name, slow)
    asked = [("POST", "verify"), ("POST", "jobs/decay/run"), ("GET", "export")]

    def ask(client: httpx.Client, method: str, path: str) -> httpx.Response:
        body = {} if path.startswith("jobs") else None
        return client.request(method, f"{BASE}/{path}", json=body)

    monkeypatch.setattr(limits, "THREADS", 12)
    with serving(tmp_path / "root") as few:
        few.orchestrator()
        with few.client(few.key()) as client, ThreadPoolExecutor() as threads:
            working = [threads.submit(ask, client, *each) for each in asked]
            for _ in asked:
                assert going.acquire(timeout=20)
            refused = [ask(client, *each) for each in asked]
            looked = client.get(f"{BASE}/stats")
            over.set()
            assert {each.result().json()["code"] for each in working} == {DatabaseBusy.code}
        assert looked.status_code == 200
        assert {each.json()["code"] for each in refused} == {"request.server_busy"}
        assert {int(each.headers["retry-after"]) for each in refused} == {5}


def test_a_copy_is_for_those_from_whom_nothing_is_hidden(served: Served) -> None:
    before = denials(served)
    asked: list[tuple[dict[str, Any], dict[str, str]]] = [
        *(({"project_ids": ("p",)}, {}), ({"clearance": Sensitivity.CONFIDENTIAL}, {})),
        *(({"agent_id": "scout"}, {}), ({"permissions": {Permission.READ, Permission.AUDIT}}, {})),
        # Nor for a request that narrows what its key may see.
        ({}, {"clearance": "Public"}),
    ]
    for fields, params in asked:
        with served.client(served.key(**fields)) as client:
            for what in ("export", "backup"):
                answer = client.get(f"{BASE}/{what}", params=params)
                assert (answer.status_code, answer.json()["code"]) == (403, "access.denied")
    assert denials(served) == before + 2 * len(asked)


def test_orchestrators_are_made_by_admins_of_their_names(served: Served) -> None:
    at = "/v1/orchestrators"
    with served.client(served.key(orchestrators=("mine",))) as client:
        made = client.post(at, json={"name": "mine"})
        assert (made.status_code, made.json()) == (201, {"name": "mine"})
        again = client.post(at, json={"name": "mine"})
        assert (again.status_code, again.json()["code"]) == (409, "orchestrator.exists")
        assert str(served.service.root) not in again.text
        before = denials(served)
        there, absent = (client.post(at, json={"name": each}) for each in ("orc-1", "other"))
        assert (there.status_code, there.json()) == (absent.status_code, absent.json())
        assert there.json()["code"] == "orchestrator.missing"
        assert denials(served) == before + 1
        assert client.get(at).json() == {"items": [{"name": "mine"}]}
    with served.client(served.key(permissions={Permission.WRITE})) as client:
        assert client.post(at, json={"name": "theirs"}).status_code == 403
    assert "theirs" not in served.service.orchestrators()


def test_why_a_run_failed_is_told_without_where_the_root_lies(
    served: Served, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = served.service.paths("orc-1").database
    failing = Mock(side_effect=StorageError(f"{file} is damaged"))
    monkeypatch.setattr(job_runs, "_work", failing)
    told, listed = client.post(f"{BASE}/jobs/decay/run"), client.get(f"{BASE}/jobs")
    for answer, run in ((listed, listed.json()["runs"][0]), (told, told.json())):
        assert run["reason"].endswith("memory.db is damaged")
        assert str(served.service.root) not in answer.text
