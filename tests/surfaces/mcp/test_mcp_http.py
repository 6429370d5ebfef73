"""MCP over HTTP: each request shows its key, and nothing else opens anything."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import httpx
import pytest
from denial_lines import denials
from fastapi import FastAPI
from mcp_worlds import HEADERS, remote_agent
from pydantic import TypeAdapter
from serving_worlds import Served, serving, whole_app

from memgraph.log import EventLog, MemorySink
from memgraph.service.access.gate import Gate
from memgraph.surfaces.http import limits
from memgraph.surfaces.mcp.server import BUG

PATH = "/mcp/orc-1"
INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


@pytest.fixture(scope="module")
def logged() -> MemorySink:
    """The lines of the server's log."""
    return MemorySink()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, logged: MemorySink) -> Iterator[Served]:
    def app_of(gate: Gate) -> FastAPI:
        app = whole_app(gate)
        app.state.log = EventLog(logged, gate.service.clock)
        return app

    config = {"memory": {"server": {"max_body_bytes": 20_000}}}
    with serving(tmp_path_factory.mktemp("mcp") / "root", app_of=app_of, config=config) as running:
        running.orchestrator("orc-1").remember("The vault is behind the oak panel.")
        running.orchestrator("orc-2").remember("Kxsecret lies elsewhere.")
        yield running


def message(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def post(
    served: Served,
    secret: str | None,
    body: Any = None,
    *,
    path: str = PATH,
    **headers: str,
) -> httpx.Response:
    """One message of 2025 without a handshake; by default a listing of the tools."""
    body = message("tools/list") if body is None else body
    shown = {each.replace("_", "-"): value for each, value in headers.items()}
    with served.client(secret) as client:
        return client.post(path, json=body, headers={**HEADERS, **shown})


def test_nobody_without_a_key_is_answered(served: Served) -> None:
    revoked = served.key()
    assert post(served, revoked).status_code == 200
    served.keys.revoke(revoked.split("_")[1])
    for secret in (None, "garbage", revoked):
        for method, params in {"initialize": INITIALIZE, "tools/list": {}, "nonsense": {}}.items():
            told = post(served, secret, message(method, **params))
            assert (told.status_code, told.headers["www-authenticate"]) == (401, "Bearer")
            assert told.json()["error"]["data"]["code"] == "access.unauthenticated"


def test_there_is_no_session_to_take_over(served: Served) -> None:
    begun = post(served, served.key(), message("initialize", **INITIALIZE))
    assert begun.status_code == 200
    assert "mcp-session-id" not in begun.headers
    other = served.key(orchestrators=["orc-2"])
    told = post(served, other, mcp_session_id="0123456789abcdef")
    assert told.status_code == 404
    assert post(served, None, mcp_session_id="0123456789abcdef").status_code == 401


def test_an_orchestrator_of_others_answers_like_one_that_is_not_there(served: Served) -> None:
    secret = served.key(orchestrators=["orc-1"])
    others = post(served, secret, path="/mcp/orc-2")
    absent = post(served, secret, path="/mcp/orc-9")
    badly = post(served, secret, path="/mcp/..%2Forc-2")
    none = post(served, secret, path="/mcp/")
    assert {each.status_code for each in (others, absent, badly, none)} == {404}
    assert len({each.content for each in (others, absent, badly, none)}) == 1
    assert others.json()["error"]["data"]["code"] == "orchestrator.missing"
    logged = [each["actor"] for each in denials(served.service.root, "orc-2")]
    assert logged.count(f"key:{secret.split('_')[1]}") == 1


def test_the_query_narrows_and_never_widens(served: Served) -> None:
    secret = served.key(project_ids=["web"], clearance="Internal")
    for query, status in {
        "project=web": 200,
        "project=web&project=other": 403,
        "clearance=Restricted": 403,
        "clearance=Secret": 422,
        "clearance=Public&clearance=Internal": 422,
        "projects=web": 422,
        "scope=planet": 422,
        "tools=none": 422,
        "key=mgk_something": 422,
    }.items():
        assert post(served, secret, path=f"{PATH}?{query}").status_code == status, query


def test_where_the_root_lies_is_told_to_no_agent(tmp_path: Path) -> None:
    with serving(tmp_path / "root", app_of=whole_app) as damaged:
        damaged.orchestrator()
        damaged.service.forget("orc-1")
        damaged.service.paths("orc-1").database.write_bytes(b"")
        call = message("tools/call", name="get_entity_info", arguments={"name": "x"})
        told = post(damaged, damaged.key(), call)
        assert "is empty; restore a backup" in told.text
        assert "memory.db" in told.text
        assert str(tmp_path) not in told.text


def test_messages_are_posted(served: Served) -> None:
    with served.client(served.key()) as client, served.client() as nobody:
        for method in ("GET", "DELETE"):
            told = client.request(method, PATH, headers=HEADERS)
            assert (told.status_code, told.headers["allow"]) == (405, "POST")
            assert nobody.request(method, PATH, headers=HEADERS).status_code == 401


def test_what_is_no_message_is_refused_in_peace(served: Served) -> None:
    bodies = (
        b"",
        b"{",
        b"\xff\xfe",
        b'{"jsonrpc": "2.0", "id": {}, "method": "ping"}',
        b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": []}',
        b"[" * 5_000,
        b'[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]',
        json.dumps(message("tools/call", name="x" * 20_000)).encode(),
    )
    with served.client(served.key()) as client:
        for body, version in product(bodies, ({}, {"mcp-protocol-version": "1999-01-01"})):
            told = client.post(PATH, content=body, headers={**HEADERS, **version})
            # One without an id that counts is a note that nobody answers.
            assert told.status_code == 202 or 400 <= told.status_code < 500, body[:60]
        assert told.status_code == 413
        assert client.post(PATH, json=message("ping"), headers=HEADERS).status_code == 200


def foreign(*_args: object, **_named: object) -> None:
    raise RuntimeError("Kxsecret of somebody else")


def invalid(*_args: object, **_named: object) -> None:
    """pydantic's error looks like that of a message which cannot be read."""
    TypeAdapter(int).validate_python("Kxsecret of somebody else")


@pytest.mark.parametrize(
    ("fail", "error"), [(foreign, "RuntimeError"), (invalid, "ValidationError")]
)
def test_an_error_that_nobody_foresaw_tells_nothing(
    served: Served,
    logged: MemorySink,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    fail: Any,
    error: str,
) -> None:
    monkeypatch.setattr("memgraph.operations.life.profiles.profile", fail)
    call = message("tools/call", name="get_entity_info", arguments={"name": "x"})
    told = post(served, served.key(), call)
    assert told.json()["error"] == {"code": -32603, "message": BUG}
    with (
        remote_agent(f"{served.url}{PATH}", served.key(), "auto") as agent,
        pytest.raises(Exception, match=BUG),
    ):
        agent.do("call_tool", "get_entity_info", {"name": "x"})
    lines = [each for each in map(json.loads, logged.lines) if each["event"] == "mcp.bug"]
    assert [each["error"] for each in lines[-2:]] == [error] * 2
    assert "Kxsecret" not in caplog.text + "".join(logged.lines)


def test_what_takes_too_long_keeps_its_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else those who ask again and again would have more and more work done at once."""
    at_work: list[None] = []
    most: list[int] = []
    begun, over = threading.Event(), threading.Event()

    def slow(*_args: object, **_named: object) -> dict[str, Any]:
        at_work.append(None)
        most.append(len(at_work))
        begun.set()
        over.wait(20)
        at_work.pop()
        return {}

    monkeypatch.setattr("memgraph.operations.life.profiles.profile", slow)
    monkeypatch.setattr(limits, "THREADS", 3)
    config = {"memory.server.request_timeout_s": 0.3}
    with serving(tmp_path / "root", app_of=whole_app, config=config) as running:
        running.orchestrator("orc-1")
        secret = running.key()
        asked = message("tools/call", name="get_entity_info", arguments={"name": "x"})
        with ThreadPoolExecutor(8) as pool:
            told = list(pool.map(lambda _: post(running, secret, asked).status_code, range(8)))
        assert begun.wait(20)
        over.set()
    assert set(told) == {504}
    assert max(most) <= 3


def test_without_keys_everything_is_open_where_that_was_asked_for(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    root = tmp_path_factory.mktemp("keyless") / "root"
    with serving(root, keyless=True, app_of=whole_app) as running:
        orc = running.orchestrator("orc-1")
        with remote_agent(f"{running.url}{PATH}", None) as agent:
            stored = agent.call("remember_fact", content="Owls hunt at night.")["memory_id"]
        assert orc.trace(stored).journal[0].actor == "local"
        assert post(running, "garbage").status_code == 401


def test_askers_at_the_same_time_see_their_own(served: Served) -> None:
    orc = served.service.orchestrator("orc-3", create=True)
    words = {"web": "Kxwebxx", "shop": "Kxshopx"}
    for project, word in words.items():
        orc.remember(f"{word} holds the ledger.", scope="project", scope_id=project)
    secrets = {each: served.key(project_ids=[each]) for each in words}
    asked = message("tools/call", name="search_memory", arguments={"query": "ledger"})

    def ask(project: str) -> tuple[str, str]:
        return project, post(served, secrets[project], asked, path="/mcp/orc-3").text

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, [*words] * 8))
    for project, text in answers:
        assert {each for each in words.values() if each in text} == {words[project]}
