"""Files sent over HTTP: taken whole or not at all, ingested within the bounds of who sent them."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from serving_worlds import Served, serving

from ingest import pipeline
from ingest.claims import FileClaim, claims
from ingest.pipeline import IngestPipeline
from ingest.reasons import RejectionReason, refuse
from ingest.uploads import uploads
from memgraph.model.enums import STORED_STATUSES, Sensitivity
from memgraph.operations.ingestion import uploads as worker
from memgraph.operations.ingestion.uploads import DropZoneWorker
from memgraph.operations.orchestrator import Orchestrator
from memgraph.rules.scope import Viewer
from memgraph.surfaces.http.envelope import Envelope

FILES = "/v1/orchestrators/orc-1/ingest/files"
EVERYTHING = Viewer(clearance=Sensitivity.RESTRICTED, project_ids=frozenset({"apollo"}))
NOTE = b"# Canteen\n\nThe canteen opens at eleven.\n"


def a_file_of(*memories: dict[str, Any]) -> bytes:
    given = [{"type": "Fact", **each} for each in memories]
    return json.dumps({"memories": given}).encode()


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.fixture
def sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """A server whose drop zones are worked off when a test says so: ``work_off``."""
    monkeypatch.setattr(DropZoneWorker, "wake", lambda _intake, _name: None)
    with serving(tmp_path / "root", config={"memory.ingest.max_file_size_mb": 1}) as made:
        made.orchestrator()
        yield made


def work_off(served: Served) -> None:
    IngestPipeline(served.service.orchestrator("orc-1", actor="ingest")).run()


def upload(client: httpx.Client, name: str, data: bytes, **params: str) -> dict[str, Any]:
    answer = client.put(f"{FILES}/{name}", content=data, params=params)
    assert answer.status_code == 202, answer.text
    return answer.json()


def left_behind(served: Served) -> list[str]:
    zone = served.service.paths("orc-1").ingest
    return sorted(
        each.name for each in zone.rglob("*") if each.is_file() and "lock" not in each.name
    )


def test_a_file_waits_and_then_has_a_manifest(sent: Served) -> None:
    with sent.client(sent.key()) as client:
        told = upload(client, "canteen.md", NOTE)
        assert told == {"sha256": sha256(NOTE), "name": "canteen.md", "known": None}
        at = f"{FILES}/{told['sha256']}"
        assert client.get(at).json()["status"] == "waiting"
        work_off(sent)
        found = client.get(at).json()
        assert (found["status"], found["manifest"]["path"]) == ("processed", "canteen.md")
        assert client.get(FILES).json() == {"items": [found], "next_cursor": None}
    ids = [each["memory_id"] for each in found["manifest"]["items"]["memories"]]
    assert any("eleven" in sent.orchestrator().get(each).content for each in ids)


def test_the_same_content_twice_says_so(sent: Served) -> None:
    with sent.client(sent.key()) as client:
        upload(client, "one.md", NOTE)
        assert upload(client, "two.md", NOTE)["known"] == "waiting"
        work_off(sent)
        assert upload(client, "three.md", NOTE)["known"] == "processed"
    assert left_behind(sent) == ["one.md", "one.md.manifest.json"]


def test_a_bad_name_is_refused_and_leaves_nothing(sent: Served) -> None:
    invalid = (".hidden.md", "~$draft.md", "a.exe", "a", "a%5Cb.md", "a%00.md", "a%0A.md")
    invalid += ("%20a.md", f"{'x' * 300}.md")
    with sent.client(sent.key()) as client:
        for name in invalid:
            answer = client.put(f"{FILES}/{name}", content=NOTE)
            assert (answer.status_code, answer.json()["code"]) == (422, "input.invalid"), name
        for name in ("..%2Fx.md", "%2Fetc%2Fx.md", "../x.md"):
            assert client.put(f"{FILES}/{name}", content=NOTE).status_code == 404, name
    assert left_behind(sent) == []


def test_a_file_that_is_too_large_is_refused_with_and_without_a_length(sent: Served) -> None:
    def pieces() -> Iterator[bytes]:
        for _ in range(11):
            yield b"x" * 100_000

    with sent.client(sent.key()) as client:
        for content in (b"x" * 1_000_001, pieces()):
            answer = client.put(f"{FILES}/big.txt", content=content)
            assert (answer.status_code, answer.json()["code"]) == (413, "request.too_large")
    assert left_behind(sent) == []


def test_what_is_sent_is_stored_within_the_bounds_of_the_sender(sent: Served) -> None:
    data = a_file_of(
        {"content": "The canteen is on the ground floor.", "sensitivity": "Public"},
        {"content": "The merger is called Bluebird.", "sensitivity": "Restricted"},
        {"content": "Apollo lands in July.", "scope": "project", "scope_id": "apollo"}
        | {"sensitivity": "Public"},
    )
    # The same file, dropped by hand, has no bounds.
    zone = sent.service.paths("orc-1").ingest
    with sent.client(sent.key(clearance=Sensitivity.PUBLIC, project_ids=("zeus",))) as client:
        told = upload(client, "facts.json", data)
        work_off(sent)
        found = client.get(f"{FILES}/{told['sha256']}").json()
    orc = sent.service.orchestrator("orc-1", viewer=EVERYTHING)
    stored = orc.memories.list(statuses=STORED_STATUSES)
    assert [each.content for each in stored] == ["The canteen is on the ground floor."]
    outcomes = [each["outcome"] for each in found["manifest"]["items"]["memories"]]
    assert outcomes == ["stored", "rejected", "rejected"]
    (zone / "dropped.json").write_bytes(data + b"\n")
    work_off(sent)
    assert len(orc.memories.list()) == 3
    sent_one, dropped = (orc.ingestion.stored(sha256(each)) for each in (data, data + b"\n"))
    assert sent_one["by"].startswith("key:")
    assert dropped["by"] == "ingest"


def test_bounds_hold_for_what_is_sent_again_while_its_twin_is_set_aside(
    sent: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second one comes when the first has its final place, and its sender is not forgotten."""
    data = a_file_of({"content": "The merger is called Bluebird.", "sensitivity": "Restricted"})
    ended = FileClaim.finish
    with sent.client(sent.key(clearance=Sensitivity.PUBLIC)) as client:

        def refusing(*_: object) -> None:
            raise refuse(RejectionReason.JSON_INVALID, "not today")

        def finish(claim: FileClaim) -> None:
            ended(claim)
            assert upload(client, "again.json", data)["known"] is None

        with monkeypatch.context() as patch:
            patch.setattr(FileClaim, "finish", finish)
            patch.setattr(pipeline, "parse_document", refusing)
            upload(client, "facts.json", data)
            work_off(sent)
        assert client.get(f"{FILES}/{sha256(data)}").json()["status"] == "rejected"
        work_off(sent)
    orc = sent.service.orchestrator("orc-1", viewer=EVERYTHING)
    assert list(orc.memories.list()) == []
    taken = orc.ingestion.stored(sha256(data))
    assert taken is not None
    assert taken["by"].startswith("key:")
    assert left_behind(sent) == [
        *("again.json", "again.json.manifest.json"),
        *("facts.json", "facts.json.manifest.json"),
    ]


def test_a_file_is_there_for_who_sees_all_of_it(sent: Served) -> None:
    public = {"content": "The canteen is on the ground floor.", "sensitivity": "Public"}
    secret = {"content": "The merger is called Bluebird.", "sensitivity": "Restricted"}
    data = a_file_of(public, secret)
    with sent.client(sent.key()) as sender, sent.client(sent.key()) as other:
        upload(sender, "facts.json", data)
        work_off(sent)
        assert other.get(f"{FILES}/{sha256(data)}").status_code == 200
        # A sender who asks with a narrower view learns of what that shows, and no number beside.
        narrowed = sender.get(f"{FILES}/{sha256(data)}", params={"clearance": "Public"}).json()
    items = narrowed["manifest"]["items"]["memories"]
    assert len(items) == 1
    assert "memories" not in narrowed["manifest"]


def test_what_was_rejected_is_told_to_the_sender_and_to_who_sees_everything(sent: Served) -> None:
    with sent.client(sent.key(project_ids=())) as sender, sent.client(sent.key()) as whole:
        upload(sender, "broken.json", b"{")
        work_off(sent)
        at = f"{FILES}/{sha256(b'{')}"
        assert sender.get(at).json()["manifest"]["reason"] == "json_invalid"
        assert whole.get(at).json()["status"] == "rejected"
        with sent.client(sent.key(project_ids=())) as other:
            assert other.get(at).status_code == 404


def test_pages_of_files(sent: Served) -> None:
    with sent.client(sent.key()) as client:
        for number in range(5):
            upload(client, f"{number}.md", b"The canteen has %d doors.\n" % number)
            work_off(sent)
        seen: list[str] = []
        cursor: str | None = None
        while True:
            params = {"limit": "2"} | ({} if cursor is None else {"cursor": cursor})
            page = client.get(FILES, params=params).json()
            seen += [each["manifest"]["path"] for each in page["items"]]
            cursor = page["next_cursor"]
            if cursor is None:
                break
    assert seen == [f"{number}.md" for number in (4, 3, 2, 1, 0)]


@contextmanager
def half_sent(served: Served) -> Iterator[socket.socket]:
    """A connection on which half of a file arrives."""
    head = f"PUT {FILES}/a.md HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {served.key()}"
    with served.connect() as raw:
        raw.sendall(f"{head}\r\ncontent-length: 1000\r\n\r\nhalf".encode())
        yield raw


def test_a_sender_who_goes_away_is_no_bug(sent: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    told, bugs = threading.Event(), []
    monkeypatch.setattr(Envelope, "_log_request", lambda *_args: told.set())
    monkeypatch.setattr(Envelope, "_log_bug", lambda _envelope, error, _id: bugs.append(error))
    with half_sent(sent):
        pass
    assert told.wait(20)
    assert bugs == []
    assert left_behind(sent) == []


def test_a_file_that_does_not_arrive_in_time_is_told_so(tmp_path: Path) -> None:
    with serving(tmp_path / "root", config={"memory.server.request_timeout_s": 0.2}) as served:
        served.orchestrator()
        with half_sent(served) as raw:
            assert raw.recv(1_000).startswith(b"HTTP/1.1 408 ")
        assert left_behind(served) == []


@pytest.mark.parametrize(
    ("number", "status", "code"),
    [(errno.ENOSPC, 507, "storage.full"), (errno.EIO, 503, "storage.error")],
)
def test_a_disk_that_takes_no_file_is_told_without_a_path(
    sent: Served, monkeypatch: pytest.MonkeyPatch, number: int, status: int, code: str
) -> None:
    def fail(path: Path) -> None:
        raise OSError(number, os.strerror(number), str(path))

    monkeypatch.setattr("ingest.claims.sync_folder", fail)
    with sent.client(sent.key()) as client:
        answer = client.put(f"{FILES}/a.md", content=NOTE)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert str(sent.service.root) not in answer.text


def test_ingestion_that_is_switched_off_takes_nothing(tmp_path: Path) -> None:
    with serving(tmp_path / "root", config={"memory.ingest.enabled": False}) as served:
        served.orchestrator()
        with served.client(served.key()) as client:
            answer = client.put(f"{FILES}/a.md", content=NOTE)
    assert (answer.status_code, answer.json()["code"]) == (503, "memory.disabled")


def test_the_server_itself_works_off_what_is_sent_and_what_was_left(tmp_path: Path) -> None:
    with serving(tmp_path / "root") as served:
        served.orchestrator()
        done = threading.Event()
        ran = DropZoneWorker._is_done

        def reported(intake: DropZoneWorker, name: str) -> bool:
            is_done = ran(intake, name)
            done.set()
            return is_done

        with pytest.MonkeyPatch.context() as patch, served.client(served.key()) as client:
            patch.setattr(DropZoneWorker, "wake", lambda _intake, _name: None)
            upload(client, "left.md", NOTE)
            patch.undo()
            patch.setattr(DropZoneWorker, "_is_done", reported)
            served.service.intake.wake_waiting()
            assert done.wait(30)
            assert client.get(f"{FILES}/{sha256(NOTE)}").json()["status"] == "processed"
    assert claims(served.service.paths("orc-1").ingest) == []


def test_a_drop_zone_that_cannot_be_processed_is_retried_by_one_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_go, has_come = threading.Event(), threading.Semaphore(0)
    passes: list[str] = []

    def without_disk(handle: Orchestrator, _stop: object) -> None:
        passes.append(handle.name)
        has_come.release()
        may_go.wait(30)
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(type(uploads), "run", lambda _uploads, *given: without_disk(*given))
    monkeypatch.setattr(worker, "RETRY_S", 60.0)
    with serving(tmp_path / "root") as served:
        for name in ("orc-1", "orc-2"):
            served.orchestrator(name)
        intake = served.service.intake
        with served.client(served.key()) as client:
            upload(client, "left.md", NOTE)
        assert has_come.acquire(timeout=30)
        before = threading.active_count()
        for _ in range(150):
            intake.wake("orc-1")
            intake.wake("orc-2")
        may_go.set()
        assert all(has_come.acquire(timeout=30) for _ in range(2))
        assert not has_come.acquire(timeout=0.3)
        assert threading.active_count() <= before
        assert sorted(passes) == ["orc-1", "orc-1", "orc-2"]
        # What failed is retried without another wake, after a while.
        monkeypatch.setattr(worker, "RETRY_S", 0.01)
        intake.wake("orc-2")
        assert all(has_come.acquire(timeout=30) for _ in range(3))
        assert passes[3:6] == ["orc-2"] * 3
