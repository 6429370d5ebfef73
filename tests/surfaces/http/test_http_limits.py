"""What a server refuses before anything looks at it; through a real socket, byte by byte."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import httpx
import pytest
from serving_worlds import PATIENCE_S, Served, serving

from memgraph.surfaces.http import limits
from memgraph.surfaces.http.limits import MAX_WAITING, THREADS

MEMORIES = "/v1/orchestrators/orc-1/memories"
LIMIT = 2_000


@contextmanager
def limited(
    root: Path, *, threads: int = THREADS, waiting: int = MAX_WAITING, **settings: Any
) -> Iterator[Served]:
    config = {f"memory.server.{name}": value for name, value in settings.items()}
    with (
        patch.multiple(limits, THREADS=threads, MAX_WAITING=waiting),
        serving(root / "root", config=config) as served,
    ):
        served.orchestrator()
        yield served


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with limited(
        tmp_path_factory.mktemp("small"),
        max_body_bytes=LIMIT,
        allowed_hosts=("memory.example",),
        allowed_origins=("https://console.example",),
    ) as served:
        yield served


@pytest.fixture(scope="module")
def roomy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with limited(tmp_path_factory.mktemp("roomy")) as served:
        yield served


def raw(served: Served, sent: bytes) -> tuple[int, dict[str, str], dict[str, Any]]:
    """Send bytes and read the answer until the server closes: status, headers, JSON."""
    with served.connect() as connection:
        connection.sendall(sent)
        answer = b"".join(iter(lambda: connection.recv(65_536), b""))
    head, _, body = answer.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = {k.lower(): v for k, v in (line.split(": ", 1) for line in lines)}
    return int(first.split()[1]), headers, json.loads(body)


def request(*lines: str, key: str | None, body: bytes = b"") -> bytes:
    """The head of a write, and what comes of its body."""
    shown = [] if key is None else [f"Authorization: Bearer {key}"]
    head = [f"POST {MEMORIES} HTTP/1.1", "Host: localhost", *shown]
    return "\r\n".join([*head, "Content-Type: application/json", *lines, "", ""]).encode() + body


CHUNKED = "Transfer-Encoding: chunked"


def test_a_large_body_of_who_has_no_key_is_not_read(roomy: Served) -> None:
    for size, key in product(("Content-Length: 70000", CHUNKED), (None, "mgk_wrong")):
        status, headers, told = raw(roomy, request(size, key=key))
        assert (status, told["code"]) == (401, "access.unauthenticated")
        assert headers["www-authenticate"] == "Bearer"


def test_a_large_body_is_taken_with_the_first_request_of_a_key(roomy: Served) -> None:
    items = [{"content": f"{n} " + "x" * 2_000} for n in range(50)]
    with roomy.client(roomy.key()) as client:
        answer = client.post(f"{MEMORIES}/batch", json={"items": items})
    assert [each["outcome"] for each in answer.json()["outcomes"]] == ["stored"] * 50


def test_bodies_that_come_slowly_take_no_place_of_others(tmp_path: Path) -> None:
    with limited(tmp_path, threads=1, waiting=3) as served, ExitStack() as held:
        key = served.key()
        # Of large ones, which take memory, there are as many as places.
        for size, who in (("10", None), ("70000", key)):
            slow = request(f"Content-Length: {size}", key=who)
            for _ in range(4):
                held.enter_context(served.connect()).sendall(slow)
        with served.client(key) as client:
            over = time.monotonic() + PATIENCE_S
            large = {"items": [{"content": "x" * 30_000}] * 3}
            while client.post(f"{MEMORIES}/batch", json=large).status_code != 503:
                assert time.monotonic() < over
            assert client.post(MEMORIES, json={"content": "mine"}).status_code == 201


def test_the_largest_body_is_taken_and_no_larger_one(small: Served) -> None:
    piece = b"%x\r\n%s\r\n" % (1_000, b"x" * 1_000)
    for size, body in ((f"Content-Length: {LIMIT + 1}", b""), (CHUNKED, piece * 3 + b"0\r\n\r\n")):
        status, headers, told = raw(small, request(size, key=small.key(), body=body))
        assert (status, told["code"]) == (413, "request.too_large")
        assert told["details"] == {"limit": LIMIT}
        assert headers["content-type"] == "application/problem+json"
    rest = LIMIT - len(json.dumps({"content": ""}))
    with small.client(small.key()) as client:
        answer = client.post(MEMORIES, content=json.dumps({"content": "x" * rest}))
        assert answer.status_code == 422, "no content type, no JSON"
        answer = client.post(MEMORIES, json={"content": "x" * (rest - 10)})
        assert answer.status_code == 201


@pytest.mark.parametrize("to", [MEMORIES, "/mcp/orc-1"])
@pytest.mark.parametrize(
    "body",
    [
        b'{"content": "one", "content": "two"}',
        b'{"content": "one", "c\\u006fntent": "two"}',
        b'{"content": "one", "tags": [{"a": {"b": 1, "b": 2}}]}',
        '{"content": "one"}'.encode("utf-16-le"),
    ],
)
def test_json_that_two_parsers_would_read_differently_is_refused(
    roomy: Served, body: bytes, to: str
) -> None:
    head = {"content-type": "application/json; charset=utf-8"}
    with roomy.client(roomy.key()) as client:
        before = client.get(MEMORIES).text
        answer = client.post(to, content=body, headers=head)
        assert (answer.status_code, answer.json()["code"]) == (422, "input.invalid")
        assert client.get(MEMORIES).text == before


def test_a_body_that_does_not_come_is_not_waited_for(tmp_path: Path) -> None:
    with limited(tmp_path, request_timeout_s=0.3) as hurried:
        for header in ("Content-Length: 100", CHUNKED):
            status, headers, told = raw(hurried, request(header, key=hurried.key()))
            assert (status, told["code"]) == (408, "request.timeout")
            assert headers["connection"] == "close"


def test_pages_that_may_ask_are_let_in_by_their_browser(small: Served) -> None:
    page = {"origin": "https://console.example"}
    with small.client() as client:
        asked = client.options(MEMORIES, headers={**page, "access-control-request-method": "POST"})
    assert asked.is_success
    assert "authorization" in asked.headers["access-control-allow-headers"]
    with small.client(small.key(), headers=page) as client:
        answer = client.get(f"{MEMORIES}")
    assert answer.headers["access-control-allow-origin"] == page["origin"]
    assert "retry-after" in answer.headers["access-control-expose-headers"]


def test_every_answer_is_private_and_has_an_id(small: Served) -> None:
    with small.client(small.key()) as client:
        answers = [
            client.get(MEMORIES),
            client.get(f"{MEMORIES}/nothing"),
            client.get("/nowhere"),
            client.post(MEMORIES, content=b"x" * (LIMIT + 1)),
            client.delete(MEMORIES),
        ]
    assert [each.status_code for each in answers] == [200, 404, 404, 413, 405]
    for each in answers:
        assert each.headers["cache-control"] == "no-store"
        assert each.headers["x-content-type-options"] == "nosniff"
        assert len(each.headers["x-request-id"]) == 32
    for each in answers[1:]:
        assert each.headers["content-type"] == "application/problem+json"
        assert each.json()["status"] == each.status_code
    assert len({each.headers["x-request-id"] for each in answers}) == len(answers)


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ("3fa85f64-5717-4562-b3fc-2c963f66afa6", True),
        *((each, False) for each in ("tell this", "a\tb", "abc", "x" * 5_000, "a;b=c")),
    ],
)
def test_an_id_from_outside_is_taken_if_it_is_one(small: Served, given: str, taken: bool) -> None:
    with small.client() as client:
        answer = client.get("/nowhere", headers={"x-request-id": given})
    assert (answer.headers["x-request-id"] == given) is taken
    assert len(answer.headers["x-request-id"]) < 200


class Gateway:
    """Holds whoever asks for contradictions until it is let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from memgraph.operations.orchestrator import Orchestrator

        self.entered = threading.Semaphore(0)
        self.open = threading.Event()
        whole = Orchestrator.contradictions.list

        def held(orc: Orchestrator, **given: Any) -> Any:
            self.entered.release()
            assert self.open.wait(PATIENCE_S)
            return whole(orc, **given)

        monkeypatch.setattr(Orchestrator.contradictions, "list", held)


def test_more_than_can_wait_are_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway = Gateway(monkeypatch)
    path = "/v1/orchestrators/orc-1/contradictions"
    answers: list[httpx.Response] = []
    with limited(tmp_path, threads=1, waiting=0) as served, served.client(served.key()) as one:
        busy = threading.Thread(target=lambda: answers.append(one.get(path)))
        busy.start()
        assert gateway.entered.acquire(timeout=PATIENCE_S)
        with served.client(served.key()) as other:
            refused = other.get(path)
            assert (refused.status_code, refused.json()["code"]) == (503, "request.server_busy")
            assert refused.headers["retry-after"] == "1"
            assert other.get("/healthz").status_code == 200
            gateway.open.set()
            busy.join(PATIENCE_S)
            assert answers[0].status_code == 200
            assert other.get(path).status_code == 200


def test_a_request_that_timed_out_is_finished_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway = Gateway(monkeypatch)
    path = "/v1/orchestrators/orc-1/contradictions"
    with (
        limited(tmp_path, threads=1, waiting=0, request_timeout_s=0.2) as served,
        served.client(served.key()) as client,
    ):
        late = client.get(path)
        assert (late.status_code, late.json()["code"]) == (504, "request.timeout")
        assert client.get(path).status_code == 503, "its thread is not free yet"
        gateway.open.set()
        assert gateway.entered.acquire(timeout=PATIENCE_S)


def test_a_write_that_timed_out_in_the_queue_is_not_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway = Gateway(monkeypatch)
    with (
        limited(tmp_path, threads=1, waiting=5, request_timeout_s=1.0) as served,
        served.client(served.key()) as client,
    ):
        assert client.get("/v1/orchestrators/orc-1/contradictions").status_code == 504
        late = client.post(MEMORIES, json={"content": "too late"})
        assert (late.status_code, late.json()["code"]) == (504, "request.timeout")
        gateway.open.set()
        stored = client.post(MEMORIES, json={"content": "in time"})
        assert stored.status_code == 201, "behind the one that waited"
        assert [each.content for each in served.orchestrator().memories.list()] == ["in time"]
