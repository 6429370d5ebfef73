"""The webhook: what is posted, its signature, and what becomes of what is not taken."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from processes import wait_until

from ingest.pipeline import IngestPipeline
from memgraph import MemoryService, Orchestrator
from memgraph.clock import FixedClock
from memgraph.config.server import WebhookSettings
from memgraph.errors import InvalidConfig, ProviderError
from memgraph.service import job_runs as jobs
from memgraph.service.event_delivery import SUBSCRIBER
from memgraph.service.worker import Worker
from memgraph.surfaces.cli import main

OLD, NEW = (base64.b64encode(bytes([each]) * 32).decode() for each in (1, 2))
NOW = 1_900_000_000_000
ATTEMPTS = 6


@dataclass
class Receiver:
    """A server on loopback that takes what is posted, or answers otherwise."""

    status: int = 204
    location: str | None = None
    got: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    url: str = ""

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(body) for _, body in self.got]


@pytest.fixture
def receive() -> Iterator[Callable[[], Receiver]]:
    servers: list[ThreadingHTTPServer] = []

    def make() -> Receiver:
        made = Receiver()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                made.got.append(({k.lower(): v for k, v in self.headers.items()}, body))
                self.send_response(made.status)
                if made.location is not None:
                    self.send_header("location", made.location)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        servers.append(server)
        made.url = f"http://127.0.0.1:{server.server_port}/hook?team=1"
        return made

    yield make
    for each in servers:
        each.shutdown()
        each.server_close()


@dataclass
class World:
    """An orchestrator with a webhook, and a worker that is called by hand."""

    service: MemoryService
    orc: Orchestrator
    worker: Worker
    clock: FixedClock
    receiver: Receiver
    secrets: Path

    def work(self, after_ms: int = 0) -> None:
        self.clock.advance(ms=after_ms)
        self.worker._seen.clear()
        self.worker.once()

    def reject(self, name: str = "bad.json") -> None:
        (self.orc.paths.ingest / name).write_text('{"a": "' + name)
        IngestPipeline(self.orc, settle_seconds=0).run()


def config(receiver: Receiver, secrets: Path) -> dict[str, Any]:
    webhook = {"url": receiver.url, "secret_file": str(secrets)}
    schedule = dict.fromkeys(
        ("enrichment", "consolidation", "decay", "reflection", "verification"), ""
    )
    return {"memory": {"webhook": webhook, "schedule": schedule, "embedding": {"provider": "none"}}}


@pytest.fixture
def world(tmp_path: Path, receive: Callable[[], Receiver]) -> Iterator[World]:
    secrets = tmp_path / "secrets"
    secrets.write_text(f"whsec_{OLD}\n")
    secrets.chmod(0o600)
    receiver, clock = receive(), FixedClock(NOW)
    with MemoryService(
        tmp_path / "root",
        environ={},
        background=False,
        clock=clock,
        config=config(receiver, secrets),
    ) as service:
        orc = service.orchestrator("orc-1", create=True)
        worker = Worker(service)
        made = World(service, orc, worker, clock, receiver, secrets)
        made.work()
        yield made
        worker.close()


def signed(headers: dict[str, str], body: bytes, secret: str) -> str:
    """The signature as a receiver computes it."""
    content = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    digest = hmac.new(base64.b64decode(secret), content, hashlib.sha256).digest()
    return "v1," + base64.b64encode(digest).decode()


def test_contradictions_rejected_files_and_failed_jobs_are_posted_and_signed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = world.orc.remember("The shop closes at 20:00.")
    ben = world.service.orchestrator("orc-1", actor="ben")
    other = ben.remember("The shop closes at 22:00.")
    world.reject()

    def fail(*_: Any) -> Any:
        raise ProviderError("no model")

    monkeypatch.setattr(jobs, "_work", fail)
    run = world.orc.jobs.run("decay")
    world.work()
    found, rejected, failed = world.receiver.bodies
    assert [each["type"] for each in (found, rejected, failed)] == [
        "memory.contradiction_found",
        "ingest.file_rejected",
        "job.failed",
    ]
    assert {found["data"]["from_id"], found["data"]["to_id"]} == {one, other}
    assert rejected["data"]["reason"] == "json_truncated"
    assert world.orc.ingestion.get(rejected["data"]["sha256"]).status == "rejected"
    assert failed["data"] == {
        "orchestrator": "orc-1",
        "run_id": run.run_id,
        "job": "decay",
        "error_code": "provider.error",
    }
    assert found["timestamp"] == "2030-03-17T17:46:40.000Z"
    for headers, body in world.receiver.got:
        assert headers["webhook-signature"] == signed(headers, body, OLD)
        assert headers["webhook-timestamp"] == str(NOW // 1000)
        assert b"closes" not in body
    assert len({headers["webhook-id"] for headers, _ in world.receiver.got}) == 3
    world.work(60_000)
    assert len(world.receiver.got) == 3


def test_what_is_not_taken_comes_again_with_the_same_id_and_later(world: World) -> None:
    world.receiver.status = 500
    world.reject()
    world.work()
    world.work(900)
    assert len(world.receiver.got) == 1
    world.receiver.status = 200
    world.work(200)
    (first, _), (second, body) = world.receiver.got
    assert first["webhook-id"] == second["webhook-id"]
    assert int(second["webhook-timestamp"]) > int(first["webhook-timestamp"])
    assert second["webhook-signature"] == signed(second, body, OLD)
    assert world.orc.events.failures() == []


def test_after_six_attempts_it_is_put_aside_and_sent_again_when_asked(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.receiver.status = 503
    world.reject()
    for _ in range(ATTEMPTS):
        world.work(700_000)
    assert len(world.receiver.got) == ATTEMPTS
    [failure] = world.orc.events.failures()
    assert (failure.subscriber, failure.error_code) == (SUBSCRIBER, "webhook.failed")
    # What follows is not held up.
    world.receiver.status = 200
    world.reject("worse.json")
    world.work(1_000)
    assert len(world.receiver.got) == ATTEMPTS + 1
    assert world.worker.retry("orc-1", SUBSCRIBER) == 1
    assert world.orc.events.failures() == []
    assert world.receiver.got[-1][0]["webhook-id"] == world.receiver.got[0][0]["webhook-id"]


def test_a_command_lists_what_was_put_aside_and_sends_it_again(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world.receiver.status = 503
    world.reject()
    for _ in range(ATTEMPTS):
        world.work(700_000)
    world.worker.close()
    root = ["--root", str(tmp_path / "root")]
    assert main([*root, "webhook", "retry", "orc-1"]) == 1
    assert "memory.webhook.url" in capsys.readouterr().err
    (tmp_path / "root" / "memgraph.toml").write_text(
        f'[memory.webhook]\nurl = "{world.receiver.url}"\nsecret_file = "{world.secrets}"\n'
    )
    assert main([*root, "webhook", "failures", "orc-1"]) == 0
    listed = capsys.readouterr().out
    assert "ingest.file_rejected" in listed
    assert "webhook.failed" in listed
    assert main([*root, "webhook", "retry", "orc-1"]) == 1
    assert "webhook.failed" in capsys.readouterr().err
    world.receiver.status = 200
    assert main([*root, "webhook", "retry", "orc-1"]) == 0
    assert capsys.readouterr().out == "1 accepted, 0 still set aside\n"


def test_a_command_posts_a_signed_test(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = ["--root", str(tmp_path / "root")]
    assert main([*root, "webhook", "test", "orc-1"]) == 1
    assert "memory.webhook.url and memory.webhook.secret_file" in capsys.readouterr().err
    (tmp_path / "root" / "memgraph.toml").write_text(
        f'[memory.webhook]\nurl = "{world.receiver.url}"\nsecret_file = "{world.secrets}"\n'
    )
    assert main([*root, "webhook", "test", "orc-1"]) == 0
    told = capsys.readouterr().out
    assert told.startswith(f"{world.receiver.url} accepted memgraph.test in ")
    assert "ingest.file_rejected" in told
    headers, body = world.receiver.got[-1]
    assert headers["webhook-signature"] == signed(headers, body, OLD)
    sent = json.loads(body)
    assert (sent["type"], sent["data"]) == ("memgraph.test", {"orchestrator": "orc-1"})
    world.receiver.status = 401
    assert main([*root, "webhook", "test", "orc-1"]) == 1
    assert "the receiver answered 401" in capsys.readouterr().err
    assert world.orc.events.failures() == []


def test_a_redirect_is_not_followed(world: World, receive: Callable[[], Receiver]) -> None:
    elsewhere = receive()
    world.receiver.status, world.receiver.location = 307, elsewhere.url
    world.reject()
    for _ in range(ATTEMPTS):
        world.work(700_000)
    assert len(world.receiver.got) == ATTEMPTS
    assert elsewhere.got == []
    assert len(world.orc.events.failures()) == 1


def test_secrets_are_changed_without_a_restart(world: World) -> None:
    world.secrets.write_text(f"whsec_{NEW}\nwhsec_{OLD}\n")
    world.reject("one.json")
    world.work()
    headers, body = world.receiver.got[-1]
    both = f"{signed(headers, body, NEW)} {signed(headers, body, OLD)}"
    assert headers["webhook-signature"] == both
    world.secrets.write_text(NEW)
    world.reject("two.json")
    world.work()
    headers, body = world.receiver.got[-1]
    assert headers["webhook-signature"] == signed(headers, body, NEW)


@pytest.mark.parametrize("damage", ["gone", "open", "short", "noise", "empty"])
def test_without_good_secrets_nothing_is_sent(world: World, damage: str) -> None:
    if damage == "gone":
        world.secrets.unlink()
    elif damage == "open":
        world.secrets.chmod(0o644)
    else:
        text = {"short": "AAAA", "noise": "not base64!", "empty": ""}[damage]
        world.secrets.write_text(text)
    world.reject()
    for _ in range(ATTEMPTS):
        world.work(700_000)
    assert world.receiver.got == []
    [failure] = world.orc.events.failures()
    assert failure.error_code in ("webhook.failed", "config.invalid")


def test_a_receiver_that_is_not_there_is_a_failure(world: World) -> None:
    world.reject()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("socket.create_connection", refuse)
        world.work()
    assert world.receiver.got == []
    world.work(2_000)
    assert len(world.receiver.got) == 1


def refuse(*_: Any, **__: Any) -> Any:
    raise ConnectionRefusedError


def test_events_wait_while_nobody_works(world: World) -> None:
    world.worker.close()
    world.reject()
    again = Worker(world.service)
    again.once()
    again.close()
    assert [each["type"] for each in world.receiver.bodies] == ["ingest.file_rejected"]


def test_a_service_with_a_background_posts_in_a_thread_of_its_own(
    tmp_path: Path, receive: Callable[[], Receiver]
) -> None:
    secrets = tmp_path / "secrets"
    secrets.write_text(OLD)
    secrets.chmod(0o600)
    receiver = receive()
    chosen = config(receiver, secrets)
    with MemoryService(tmp_path / "root", environ={}, config=chosen) as service:
        orc = service.orchestrator("orc-1", create=True)
        worker = Worker(service)
        worker.once()
        (orc.paths.ingest / "bad.json").write_text("{")
        IngestPipeline(orc, settle_seconds=0).run()
        worker.once()
        wait_until(lambda: bool(receiver.got))
        worker.close()
    assert [each["type"] for each in receiver.bodies] == ["ingest.file_rejected"]


def test_a_receiver_in_the_settings_is_taken_up_without_a_restart(
    tmp_path: Path, receive: Callable[[], Receiver]
) -> None:
    secrets = tmp_path / "secrets"
    secrets.write_text(OLD)
    secrets.chmod(0o600)
    first, second = receive(), receive()
    with MemoryService(tmp_path / "root", environ={}, background=False) as service:
        orc = service.orchestrator("orc-1", create=True)
        worker = Worker(service)
        worker.once()
        for receiver in (first, second):
            orc.paths.config_file.write_text(
                f'[memory.webhook]\nurl = "{receiver.url}"\nsecret_file = "{secrets}"\n'
            )
            worker.once()
            (orc.paths.ingest / "bad.json").write_text('{"x": "' + receiver.url)
            IngestPipeline(orc, settle_seconds=0).run()
            worker.once()
        worker.close()
    assert (len(first.got), len(second.got)) == (1, 1)


@pytest.mark.parametrize(
    "url", ["https://hooks.example/x", "http://127.0.0.1:9/", "http://[::1]/", "http://localhost:1"]
)
def test_receivers_that_are_allowed(url: str) -> None:
    assert WebhookSettings(url=url, secret_file="/s").url == url


@pytest.mark.parametrize(
    "url",
    [
        "http://hooks.example/x",
        "http://10.0.0.1/",
        "http://127.0.0.1.example/",
        "https://user:secret@hooks.example/",
        "https://",
        "ftp://127.0.0.1/",
        "https://hooks.example:port/",
    ],
)
def test_receivers_that_are_refused(tmp_path: Path, url: str) -> None:
    chosen = {"memory": {"webhook": {"url": url, "secret_file": "/s"}}}
    with (
        pytest.raises(InvalidConfig),
        MemoryService(tmp_path, environ={}, config=chosen) as service,
    ):
        service.settings()


def test_a_receiver_without_a_secret_is_refused(tmp_path: Path) -> None:
    chosen = {"memory": {"webhook": {"url": "https://hooks.example/"}}}
    with (
        pytest.raises(InvalidConfig, match="secret_file"),
        MemoryService(tmp_path, environ={}, config=chosen) as service,
    ):
        service.settings()
