"""Two stores that differ in what is hidden alone answer alike, field by field.

Nothing of the hidden side may show: neither a text nor a count, a time or an id. Scores are not
compared: see "Ranking" in docs/security.md.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from serving_worlds import Served, serving, whole_app
from test_mcp_walked import RESOURCES, TOOLS, rpc

from memgraph import MemoryService, Orchestrator, Sensitivity, Viewer
from memgraph.clock import FixedClock
from memgraph.ids import CountingIds
from memgraph.model.enums import EdgeType
from memgraph.surfaces.http.app import openapi

HERE = "/v1/orchestrators/{orchestrator}"
QUERY = "Who waters the ferns on Friday?"
OWNER = Viewer(Sensitivity.RESTRICTED, frozenset({"web"}), frozenset({"monday"}))
VIEWERS: dict[str, dict[str, Any]] = {
    "public": {"clearance": "Public", "project_ids": ["web"], "session_ids": ["monday"]},
    "no scope": {"clearance": "Internal", "project_ids": [], "session_ids": []},
}
NUMBERS = {"seq", "change_seq"}
"""Places in the journal, which is one for all; see "Ids" in docs/security.md."""
NOT_ASKED = {
    HERE + "/export": "a copy of everything: for an operator",
    HERE + "/backup": "as above",
    HERE + "/jobs": "for an operator",
    HERE + "/jobs/plans": "as above",
    HERE + "/ingest/files/{sha256}": "of a file that somebody sent",
    HERE + "/status": "for an operator",
}


POSTED: dict[str, dict[str, Any]] = {
    "/recall": {"query": QUERY, "top_n": 50},
    "/context": {"query": QUERY, "budget_tokens": 5_000},
    "/context/block": {"prompt": QUERY},
    "/ask": {"question": QUERY},
    "/entities/info": {"name": "Mira Holm", "limit": 50},
    "/subgraph": {"ids": ["{memory_id}"], "hops": 3},
    "/sources/info": {"kind": "conversation", "name": "talk"},
}
"""Bodies of routes that answer a question; the first makes the receipt of the second."""
WRITING = {"remember_fact", "correct_fact", "confirm_fact", "forget"}
ARGUMENTS: dict[str, dict[str, Any]] = {
    "search_memory": {"query": QUERY, "limit": 50},
    "context": {"message": QUERY},
    "get_entity_info": {"name": "Mira Holm"},
    "memory_stats": {},
}
"""Of tools and prompts."""
RANK = re.compile(r"\.(score|legs\.\w+)$")
"""See "Ranking" in docs/security.md."""


def shown(orc: Orchestrator) -> dict[str, str]:
    """What everybody here sees; gives names for what addresses ask for."""
    fields: dict[str, Any] = {"sensitivity": "Public", "source": {"conversation_id": "talk"}}
    one = orc.remember("Mira waters the ferns on Friday", type="Fact", **fields)
    two = orc.remember("Every fern stands in the hall", type="Fact", **fields)
    edge = orc.relate(one, EdgeType.CONTRADICTS, two)
    orc.save_episode(
        "I told Mira Holm of the ferns.",
        session_id="talk",
        source_role="user",
        sensitivity="Public",
    )
    orc.sessions.end("talk")
    receipt = orc.recall(QUERY).receipt_id
    orc.bulletin()
    return {"memory_id": one, "edge_id": edge, "receipt_id": receipt, "tier": "global"}


def hidden(orc: Orchestrator, names: Mapping[str, str]) -> None:
    """What neither of the two sees, about and around what they see."""
    secret = orc.remember(
        "I told Mira Holm where the key is, under a fern", sensitivity="Restricted"
    )
    orc.relate(secret, EdgeType.CAUSED_BY, names["memory_id"])
    orc.relate(secret, EdgeType.CONTRADICTS, names["memory_id"])
    for _ in range(3):
        assert len(orc.recall(QUERY).items) > 1
        orc.bulletin()
    orc.save_episode(
        "The key is under it.", session_id="talk", source_role="user", sensitivity="Restricted"
    )
    orc.sessions.end("talk")
    orc.remember("Ferns of the task", scope="session", scope_id="friday", sensitivity="Restricted")


def ids_from(start: int) -> CountingIds:
    ids = CountingIds()
    for _ in range(start):
        ids.new("")
    return ids


@contextmanager
def stored(root: Path, clock: FixedClock, start: int) -> Iterator[Orchestrator]:
    """The store as an owner uses it, with ids of its own from a number on."""
    options: dict[str, Any] = {"environ": {}, "background": False, "clock": clock}
    with MemoryService(root, ids=ids_from(start), **options) as service:
        yield service.orchestrator("one", create=True, viewer=OWNER)


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, Served, Any]]:
    folder = tmp_path_factory.mktemp("twins")
    clock = FixedClock()
    with stored(folder / "plain", clock, 0) as orc:
        names = shown(orc)
    shutil.copytree(folder / "plain", folder / "more")
    clock.advance(days=0.5)
    with stored(folder / "more", clock, 50_000) as orc:
        hidden(orc, names)
    clock.advance(days=0.5)
    for each in ("plain", "more"):
        with stored(folder / each, clock, 90_000) as orc:
            orc.remember("Ferns like rain", type="Fact", sensitivity="Public")
    clock.advance(days=0.5)
    with (
        serving(folder / "plain", app_of=whole_app, clock=clock, ids=ids_from(200_000)) as plain,
        serving(folder / "more", app_of=whole_app, clock=clock, ids=ids_from(200_000)) as more,
    ):
        yield plain, more, names


def paths() -> list[str]:
    return [
        path
        for path, methods in openapi()["paths"].items()
        if "get" in methods and path.startswith(HERE + "/") and path not in NOT_ASKED
    ]


def answer(served: Served, fields: dict[str, Any], path: str, names: Mapping[str, str]) -> Any:
    secret = served.key(permissions=["read", "audit"], orchestrators=["one"], **fields)
    address = path.format(orchestrator="one", bulletin_id="bul_" + "0" * 26, **names)
    params = {"since": "2020-01-01T00:00:00Z"} if path.endswith("/diff") else {}
    if path.endswith("/grounds"):
        params = {"memory_id": names["memory_id"]}
    with served.client(secret) as client:
        given = client.get(address, params=params)
    # A key has a name of its own in each of the two.
    return given.status_code, json.loads(re.sub(r"key:\w+", "key", given.text))


def fields_of(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Every field of an answer and where it stands."""
    if isinstance(value, dict):
        for name, each in value.items():
            if name not in NUMBERS:
                yield from fields_of(each, f"{place}.{name}")
    elif isinstance(value, list | tuple):
        yield f"{place}.length", len(value)
        for number, each in enumerate(value):
            yield from fields_of(each, f"{place}[{number}]")
    else:
        yield place, value


@pytest.mark.parametrize("who", VIEWERS)
def test_no_field_tells_of_what_is_hidden(twins: Any, who: str) -> None:
    plain, more, names = twins
    for path in paths():
        one, other = (answer(each, VIEWERS[who], path, names) for each in (plain, more))
        assert dict(fields_of(one)) == dict(fields_of(other)), path


def asked_in_bodies(names: Mapping[str, str]) -> Iterator[tuple[str, Any, Mapping[str, str]]]:
    """(address, body, headers) of every question that is sent as a body, MCP's among them."""
    for path, body in POSTED.items():
        yield HERE + path, body, {}
    asked = {"sha256": "0" * 64, **names}
    calls = [rpc("resources/read", uri=each.format(**asked)) for each in RESOURCES]
    chosen = sorted(TOOLS.keys() - WRITING)
    calls += [rpc("tools/call", name=each, arguments=ARGUMENTS[each]) for each in chosen]
    for call in calls:
        yield f"{call.path}?tools=all", call.body, call.headers


@pytest.mark.parametrize("who", VIEWERS)
def test_no_answer_to_a_body_tells_of_what_is_hidden(twins: Any, who: str) -> None:
    *both, names = twins
    known = [dict(names), dict(names)]
    keys = [
        each.key(permissions=["read", "audit"], orchestrators=["one"], **VIEWERS[who])
        for each in both
    ]
    for address, body, headers in asked_in_bodies(names):
        answers = []
        for served, key, named in zip(both, keys, known, strict=True):
            with served.client(key, headers=dict(headers)) as client:
                given = client.post(filled(address, named), json=filled(body, named))
            assert given.status_code == 200, (address, given.text)
            told = given.json()
            named["own_receipt"] = told.get("receipt_id") or named.get("own_receipt", "")
            answers.append({name: one for name, one in fields_of(told) if not RANK.search(name)})
        assert answers[0] == answers[1], (address, body)


def filled(value: Any, names: Mapping[str, str]) -> Any:
    """Put names in place of their ``{name}``."""
    text = json.dumps(value)
    for name, one in {"orchestrator": "one", **names}.items():
        text = text.replace(f"{{{name}}}", one)
    return json.loads(text)


def test_the_owner_is_told_of_the_difference(twins: Any) -> None:
    """Else the test above would say nothing."""
    plain, more, names = twins
    everything = {"clearance": "Restricted", "project_ids": ["*"], "session_ids": ["*"]}
    for path in ("/memories/{memory_id}", "/memories/{memory_id}/trace", "/sessions", "/receipts"):
        one, other = (answer(each, everything, HERE + path, names) for each in (plain, more))
        assert dict(fields_of(one)) != dict(fields_of(other)), path
