"""Errors over HTTP: every one a problem with a stable code, none with what was sent."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from serving_worlds import Served

from memgraph import errors
from memgraph.operations.orchestrator import Orchestrator
from memgraph.surfaces.http.problems import Problem

BASE = "/v1/orchestrators/orc-1"
CANARY = "zq7canary"


def kinds(root: type[errors.MemgraphError]) -> list[type[errors.MemgraphError]]:
    return [root, *(each for kind in root.__subclasses__() for each in kinds(kind))]


# Those of the command line never leave it.
SERVED = [each for each in kinds(errors.MemgraphError) if ".surfaces.cli" not in each.__module__]


def test_every_error_has_a_status() -> None:
    # Only what is nobody's doing, and what never leaves a server, is said to be a bug.
    bugs = {errors.MemgraphError, errors.JobFailed, errors.BenchFailed, errors.ServerFailed}
    bugs |= {each for each in SERVED if issubclass(each, errors.RemoteError)}
    assert all(400 <= each.status <= 599 for each in SERVED)
    assert {each for each in SERVED if each.status == 500} == bugs


@pytest.mark.parametrize(
    ("method", "path", "sent", "status"),
    [
        ("POST", "/memories", {"json": {"content": [CANARY]}}, 422),
        ("POST", "/memories", {"json": {"content": "x", f"{CANARY} as a name": 1}}, 422),
        ("POST", "/memories", {"json": {"content": "x", "event_time": CANARY}}, 422),
        ("POST", "/memories", {"json": {"content": "x", "attributes": {CANARY: "\ud800"}}}, 422),
        ("POST", "/memories", {"json": {"content": f"{CANARY}\x00"}}, 422),
        ("POST", "/memories", {"json": CANARY}, 422),
        ("POST", "/memories", {"content": f'{{"content": "{CANARY}'.encode()}, 422),
        ("POST", "/memories", {"content": CANARY.encode() + b"\xff\xfe"}, 400),
        ("POST", "/memories", {"content": b"[" * 100_000}, 400),
        ("POST", "/memories", {"content": b'{"content": NaN, "\\r\\nSet-Cookie: a=b": 1}'}, 422),
        ("POST", "/memories", {"content": b""}, 422),
        ("POST", "/memories", {"content": b'{"content": "' + b"a" * 3_000_000 + b'"}'}, 422),
        ("GET", "/memories", {"params": {"limit": CANARY}}, 422),
        ("GET", "/memories", {"params": {"clearance": CANARY}}, 422),
        ("GET", "/memories", {"params": {"cursor": f"{CANARY}\x00"}}, 422),
        ("GET", "/contradictions", {"params": {"as_of": CANARY}}, 422),
        ("GET", f"/nothing/{CANARY}", {}, 404),
        ("PATCH", "/memories", {"content": CANARY.encode()}, 405),
    ],
)
def test_what_was_sent_is_not_repeated(
    client: httpx.Client, method: str, path: str, sent: dict[str, Any], status: int
) -> None:
    if "json" in sent:
        # httpx encodes no lone surrogates; a hostile client does.
        sent = {"content": json.dumps(sent["json"]).encode()}
    headers = {"content-type": "application/json"}
    answer = client.request(method, BASE + path, headers=headers, **sent)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert Problem.model_validate_json(answer.content).status == status
    assert CANARY not in answer.text + str(answer.headers)
    assert "set-cookie" not in answer.headers


def test_a_bug_is_told_by_its_class_alone(
    served: Served, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError(CANARY)

    monkeypatch.setattr(Orchestrator, "get", broken)
    answer = client.get(f"{BASE}/memories/x")
    assert (answer.status_code, answer.json()["code"]) == (500, "memgraph.error")
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["x-request-id"]
    assert CANARY not in answer.text


@pytest.mark.parametrize(
    ("path", "methods"),
    [
        ("/memories", "GET, POST"),
        ("/ingest/files/x.md", "GET, PUT"),
        ("/recall", "POST"),
    ],
)
def test_an_address_tells_all_its_methods(client: httpx.Client, path: str, methods: str) -> None:
    answer = client.delete(f"/v1/orchestrators/orc-1{path}")
    assert (answer.status_code, answer.headers["allow"]) == (405, methods)
