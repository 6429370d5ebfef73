"""What is hidden is answered as what is not there: in status, headers and every byte of the body.

Each request of the walks that names something hidden is sent a second time with a name of the same
shape that nothing has. Their answers differ in that name alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from canaries import AGENTS as AGENT_IDS, World
from route_walks import HERE, WALKS, View
from sampling import third
from served_worlds import SEEING, Ask, Built, Served, served
from test_mcp_walked import AGENTS, asks as mcp_asks
from test_routes_walked import in_order

ID = re.compile(r"\b([a-z]+)_[0-9A-HJKMNP-TV-Z]{26}\b")
WORD = re.compile(r"Kx[a-z]{5}")
SKIPPED_HEADERS = {"date", "x-request-id", "content-length"}
OTHER_KIND = {"fact": "ep", "ep": "ref", "ref": "fact"}
ASKERS = ("public", "a task")
TOLD = {("POST", HERE + "/episodes"), ("POST", HERE + "/episodes/batch")}
"""Who would write into a conversation that is hidden from them is refused: see docs/security.md."""
BY_NAME = ("GET", HERE + "/sources")
"""Its cursor is a place among names, which need not be there: it is asked for the place beside."""
GROWING = {("POST", HERE + "/turns/message")}
"""Each message is stored, so the next one is answered from more."""
BY_MEANING = {"query", "prompt", "question", "message"}
"""Texts that are compared with those of memories: another text is another question."""


@pytest.fixture
def server(made: Built, tmp_path: Path) -> Iterator[Served]:
    with served(made, tmp_path / "copy") as running:
        yield running


def twins(server: Served, who: str) -> dict[str, str]:
    """For each name that is hidden from somebody one that nothing has."""
    hidden: set[str] = {*server.made["contradictions"], server.made["receipt"]}
    hidden |= {server.made["far_receipt"], server.made["far_file"]}
    hidden |= {server.made["bulletin"], server.made["far_bulletin"]}
    viewer = SEEING[who].viewer
    hidden |= {each.sha256 for each in server.files if each.hidden_from(viewer)}
    for world in (server.world, server.other):
        hidden |= world.forbidden(viewer) if world is server.world else _all(world)
    seen = {each.memory_id for each in server.world.seen(viewer)}
    hidden |= {
        edge
        for world in (server.world, server.other)
        for edge, one, other in world.edges
        if not {one, other} <= seen
    }
    hidden -= viewer.session_ids | viewer.project_ids | {viewer.agent_id}
    if viewer.agent_id is None:
        # Whoever is no agent sees the memories of all, and so their names.
        hidden -= {*AGENT_IDS}
    found = {each: _twin(each, number) for number, each in enumerate(sorted(hidden))}
    assert len(set(found.values())) == len(found)
    return found


def beside(server: Served, names: Mapping[str, str]) -> dict[str, str]:
    """For each hidden talk's word the one behind it in the order of names; nothing has it."""
    words = {word for world in (server.world, server.other) for word in _all(world)}
    talks = {word for each in server.world.sessions for word in WORD.findall(each)}
    found = {each: f"{each[:-1]}b" for each in sorted(talks & names.keys())}
    assert found
    assert not words & {*found.values()}
    order = sorted(words | {*found.values()})
    assert all(order[order.index(one) + 1] == other for one, other in found.items())
    return found


def _all(world: World) -> set[str]:
    return {word for each in world.canaries for word in (*each.words, each.memory_id)}


def _twin(name: str, number: int) -> str:
    if name.startswith("Kx"):
        letters = "".join(chr(97 + int(digit)) for digit in f"{number:04}")
        return f"Kxz{letters}"[: len(name)].ljust(len(name), "z")
    prefix, _, rest = name.partition("_")
    if prefix in OTHER_KIND:
        # The same time: a memory of that time is another one.
        return f"{OTHER_KIND[prefix]}_{rest}"
    if "_" in name:
        return f"{name.partition('_')[0]}_{number:026}"
    return f"{number:0{len(name)}x}"


def exchanged(ask: Ask, names: Mapping[str, str]) -> Ask:
    """The same request about what is not there."""
    told = json.dumps([ask.path, ask.params, ask.body])
    for hidden in _named(told, names):
        told = told.replace(hidden, names[hidden])
    path, params, body = json.loads(told)
    return replace(ask, path=path, params=params, body=body)


def _named(told: str, names: Mapping[str, str]) -> list[str]:
    words = set(re.findall(r"Kx[a-z]+|[a-z]+_[0-9A-Z]{26}|\b[0-9a-f]{64}\b", told))
    return sorted(words & names.keys())


def normal(server: Served, who: str, ask: Ask, names: Mapping[str, str]) -> tuple[Any, ...]:
    """What an answer tells, without the names that the asker gave and what is new every time."""
    answer = server.ask(who, ask)
    # Entities' names are told casefolded.
    body = _any_of(frozenset(names.items())).sub("(name)", answer.text)
    if ask.method != "GET":
        body = ID.sub(r"\1", body)
    headers = {k: v for k, v in answer.headers.items() if k not in SKIPPED_HEADERS}
    return answer.status_code, headers, body


@cache
def _any_of(names: frozenset[tuple[str, str]]) -> re.Pattern[str]:
    told = {text for pair in names for each in pair for text in (each, each.casefold())}
    return re.compile("|".join(map(re.escape, sorted(told, key=len, reverse=True))))


def _by_meaning(fields: Any) -> bool:
    return isinstance(fields, dict) and bool(BY_MEANING & fields.keys())


@pytest.mark.parametrize("who", ASKERS)
def test_hidden_and_absent_are_answered_alike(server: Served, who: str) -> None:
    names = twins(server, who)
    view = View(server.world, server.other, SEEING[who].viewer, server.made)
    places = beside(server, names)
    compared: set[tuple[str, str]] = set()
    different = []
    for at, route in enumerate(in_order(server)):
        for ask in third([*WALKS[route](view)], at):
            absent = exchanged(ask, places if route == BY_NAME else names)
            if absent == ask or _by_meaning(ask.body) or route in TOLD | GROWING:
                continue
            compared.add(route)
            hidden_told, absent_told = (normal(server, who, each, names) for each in (ask, absent))
            if hidden_told != absent_told:
                different.append((ask, absent, hidden_told, absent_told))
    assert different == []
    assert len(compared) >= 20
    assert BY_NAME in compared


@pytest.mark.parametrize("who", AGENTS)
def test_an_agent_is_answered_alike_about_hidden_and_absent(server: Served, who: str) -> None:
    names = twins(server, who)
    view = View(server.world, server.other, SEEING[who].viewer, server.made)
    compared: set[str] = set()
    different = []
    for ask in mcp_asks(view):
        absent = exchanged(ask, names)
        told = ask.body["params"]
        if absent == ask or _by_meaning(told.get("arguments")):
            continue
        compared.add(told.get("name") or told["uri"].rpartition("/")[0])
        hidden_told, absent_told = (normal(server, who, each, names) for each in (ask, absent))
        if hidden_told != absent_told:
            different.append((ask, absent, hidden_told, absent_told))
    assert different == []
    assert compared == {
        *("correct_fact", "confirm_fact", "forget", "get_entity_info", "remember_fact"),
    }
