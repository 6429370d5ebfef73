"""Every tool and resource that an agent is offered over MCP, asked by everybody."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from canaries import EVERYTHING, QUERY, leaks, words_in
from route_walks import View
from served_worlds import OUTSIDE, PEOPLE, Ask, Built, Served, served
from test_routes_walked import BRIEFLY

HEADERS = {
    "accept": "application/json, text/event-stream",
    "content-type": "application/json",
    "mcp-protocol-version": "2025-06-18",
}
CODES = ("memory.not_found", "access.denied", "orchestrator.missing")
Calls = Callable[[View], Iterator[dict[str, Any]]]


def _ids(view: View, own: int) -> list[str]:
    return [*view.own[own : own + 2], *view.hidden]


TOOLS: dict[str, Calls] = {
    "search_memory": lambda view: (
        {"query": each, "limit": 50} for each in (QUERY, "launch", *view.words[:4])
    ),
    "correct_fact": lambda view: (
        {"memory_id": each, "new_content": "Something else."} for each in _ids(view, 0)
    ),
    "confirm_fact": lambda view: ({"memory_id": each} for each in _ids(view, 2)),
    "forget": lambda view: ({"memory_id": each} for each in view.hidden),
    "get_entity_info": lambda view: (
        {"name": each} for each in (view.world.seen(view.viewer)[0].word, *view.words)
    ),
    "memory_stats": lambda view: iter([{}]),
    # The last one: what it says itself is told by the others.
    "remember_fact": lambda view: (
        {"content": f"{each} is told again by an agent.", "entity_names": [each]}
        for each in ("Nobody", *view.words[:2])
    ),
}
RESOURCES: dict[str, Calls] = {
    "memgraph://bulletin": lambda view: iter([{}]),
}


@pytest.fixture
def server(made: Built, tmp_path: Path) -> Iterator[Served]:
    with served(made, tmp_path / "copy") as running:
        yield running


def rpc(method: str, **params: Any) -> Ask:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return Ask("POST", "/mcp/{orchestrator}", {"tools": "all"}, body=body, headers=HEADERS)


def asks(view: View) -> Iterator[Ask]:
    for uri, calls in RESOURCES.items():
        for given in calls(view):
            yield rpc("resources/read", uri=uri.format(**given))
    for tool, calls in TOOLS.items():
        for arguments in calls(view):
            yield rpc("tools/call", name=tool, arguments=arguments)


def _seen_by(server: Served, who: str) -> View:
    viewer = PEOPLE[who].viewer
    return View(server.world, server.other, viewer, server.made)


def _listed(server: Served, method: str, key: str) -> list[dict[str, Any]]:
    return server.ask("everything", rpc(method)).json()["result"][key]


def denied(answer: httpx.Response) -> bool:
    """Whether an answer refuses something that there may be."""
    told = answer.json()
    if "error" in told:
        return told["error"].get("data", {}).get("code") in CODES
    if not told["result"].get("isError"):
        return False
    return json.loads(told["result"]["content"][0]["text"])["error"]["code"] in CODES


def test_everything_that_is_offered_is_walked(server: Served) -> None:
    resources = {each["uri"] for each in _listed(server, "resources/list", "resources")}
    assert {each["name"] for each in _listed(server, "tools/list", "tools")} == TOOLS.keys()
    assert resources == RESOURCES.keys()


AGENTS = ("no scope", "public", "a task", "an agent", "read alone", "write alone")


@pytest.mark.parametrize("who", AGENTS)
def test_an_agent_is_told_and_changes_nothing_hidden(server: Served, made: Built, who: str) -> None:
    view = _seen_by(server, who)
    forbidden = made.forbidden(view.viewer)
    hidden = {each.memory_id for each in server.world.hidden(view.viewer)}
    before = server.rows(hidden)
    for ask in list(asks(view))[:: 3 if who in BRIEFLY else 1]:
        answer = server.ask(who, ask)
        assert answer.status_code < 500, (ask, answer.text)
        told = [answer.text, *map(str, answer.headers.items())]
        assert leaks(told, forbidden) - leaks([ask.said()], forbidden) == set(), ask
        assert len(server.denied()) == int(denied(answer)), (ask, answer.text)
    assert server.rows(hidden) == before


def test_who_may_not_enter_is_told_the_same(server: Served) -> None:
    for who, outside in OUTSIDE.items():
        answers = [server.ask(who, ask) for ask in asks(_seen_by(server, who))]
        assert len({answer.text for answer in answers}) == 1, who
        assert {answer.status_code for answer in answers} == {outside.knocks}, who
        logged = [each[0] for each in server.denied()]
        assert logged == (["one"] * len(answers) if outside.knocks == 404 else []), who


def test_every_walk_leads_somewhere(server: Served) -> None:
    """Each shows an owner what would be a leak to others."""
    view = _seen_by(server, "no scope")
    forbidden = server.world.forbidden(EVERYTHING)
    assert not forbidden
    words: dict[str, set[str]] = {}
    for ask in asks(view):
        answer = server.ask("everything", ask)
        name = ask.body["params"].get("name") or ask.body["params"]["uri"].split("/")[2]
        words.setdefault(name, set()).update(words_in([answer.text]))
    quiet = {name for name, told in words.items() if not told}
    # These tell of ids and numbers alone.
    assert quiet <= {
        *("remember_fact", "correct_fact", "confirm_fact", "forget"),
        *("memory_stats", "manifest"),
    }
