"""Requests that try to get in some other way than by a walk."""

from __future__ import annotations

import statistics
from dataclasses import replace
from itertools import chain, product
from time import perf_counter
from typing import Any

import pytest
from canaries import PROJECTS, QUERY, TASKS, leaks, words_in
from route_walks import HERE
from served_worlds import ONE, SEEING, TWO, Ask, Built, Served
from test_routes_walked import PUBLIC

RECALL = Ask("POST", HERE + "/recall", body={"query": QUERY, "top_n": 200})
NEW = HERE + "/memories"


def test_what_anybody_may_ask_tells_no_word(server: Served) -> None:
    server.ask("everything", RECALL)
    for who in ("nobody", "operator", "everything", "public"):
        for path in sorted(PUBLIC):
            answer = server.ask(who, Ask("GET", path))
            told = [answer.text, *map(str, answer.headers.items())]
            assert words_in(told) == set(), (who, path)
            assert not any(each.memory_id in answer.text for each in server.world.canaries)


NAMES = [
    *("two", "TWO", "Two", "two.", "two..", "two%20", "%74wo", "tw%6f", "two%00", "two%0a"),
    *("two/", "%2e%2e%2ftwo", "..%2ftwo", "one%2f..%2ftwo", "one/../two", "./two", "two%5c"),
    *("ｔｗｏ", "two\u200b", "tẃo", "%ff%fetwo", "one%3fproject=two", "one%23two", "two;one"),
    *("one,two", "*", "%2a", "", "memory", "one%2fmemory", "a" * 300, "%252e%252e%252ftwo"),
]


@pytest.mark.parametrize("who", ["every scope", "a task", "nobody"])
def test_no_spelling_of_a_name_leads_to_another(server: Served, made: Built, who: str) -> None:
    forbidden = made.forbidden(SEEING["a task"].viewer)
    forbidden |= {each.word for each in server.other.canaries}
    for name in NAMES:
        answer = server.ask(who, RECALL, orchestrator=name)
        assert answer.status_code in (401, 404, 405, 307), name
        assert leaks([answer.text, *map(str, answer.headers.items())], forbidden) == set(), name


WIDENING: list[dict[str, Any]] = [
    {"project": "*"},
    {"session": "*"},
    {"project": ""},
    {"session": ["", "*"]},
    {"project": [PROJECTS[1], PROJECTS[0]]},
    {"project": f"{PROJECTS[0]},{PROJECTS[1]}"},
    {"session": [TASKS[0], TASKS[1]]},
    {"session": [TASKS[0]], "project": [*PROJECTS]},
    {"clearance": ["Restricted", "Public"]},
    {"clearance": "*"},
    {"clearance": ""},
    {"agent": "*"},
    {"agent": ""},
    {"agent": ["Kxagenb", "Kxagena"]},
    {"project_ids": [*PROJECTS], "session_ids": [*TASKS], "viewer": "all", "orchestrator": TWO},
    {"key": "x", "access_token": "x", "authorization": "x"},
]


@pytest.mark.parametrize("who", ["public", "a task", "a project", "an agent"])
def test_no_parameter_widens(server: Served, made: Built, who: str) -> None:
    forbidden = made.forbidden(SEEING[who].viewer)
    for params in WIDENING:
        answer = server.ask(who, replace(RECALL, params=params))
        assert answer.status_code in (200, 403, 422), params
        own = set(map(str, chain(*params.values())))
        assert leaks([answer.text], forbidden - own) == set(), params


SCOPES: list[dict[str, Any]] = [
    {"orchestrator_id": TWO},
    {"orchestrator": TWO},
    {"viewer": {"clearance": "Restricted"}},
    {"principal": {"orchestrators": ["*"]}},
    {"permissions": ["admin"]},
    {"created_by": "admin"},
    {"actor": "key:000000000000"},
]


def test_no_body_says_who_asks(server: Served, made: Built) -> None:
    remembering = Ask("POST", NEW, body={"content": "Mine."})
    for ask, field in product((RECALL, remembering), SCOPES):
        answer = server.ask("a task", replace(ask, body=ask.body | field))
        assert answer.status_code == 422, (ask, field)
        assert leaks([answer.text], made.forbidden(SEEING["a task"].viewer)) == set()


PLACES: list[dict[str, Any]] = [
    {"scope": "session", "scope_id": TASKS[1]},
    {"scope": "project", "scope_id": PROJECTS[0]},
    {"scope": "project", "scope_id": "anywhere"},
    {"sensitivity": "Restricted"},
    {"sensitivity": "Confidential"},
    {"agent_id": "Kxagenb"},
]


def test_nobody_writes_where_they_could_not_read(server: Served) -> None:
    server.denied()
    for path, place in product(("/memories", "/episodes"), PLACES):
        # "no scope" has no scopes and the clearance internal; "an agent" is one agent alone.
        who = "an agent" if "agent_id" in place else "no scope"
        body: Any = {"content": f"Planted at {path}."} | place
        if path == "/episodes":
            body |= {"session_id": "planted", "source_role": "user"}
        answer = server.ask(who, Ask("POST", HERE + path, body=body))
        assert answer.status_code == 403, (path, place)
        answer = server.ask(who, Ask("POST", f"{HERE}{path}/batch", body={"items": [body]}))
        (outcome,) = answer.json()["outcomes"]
        assert (outcome["memory_id"], outcome["code"]) == (None, "access.denied")
        assert len(server.denied()) == 2
    rows = server.journals[ONE].execute("SELECT content FROM memories").fetchall()
    assert not any("Planted" in content for (content,) in rows)


def test_a_key_of_one_is_no_key_of_another(server: Served) -> None:
    """Nor do two keys in one request make one that may more."""
    one, two = server.secrets["a task"], server.secrets["of another"]
    for header in (f"Bearer {one}, Bearer {two}", f"Bearer {one} {two}", f"Basic {two}", two, ""):
        for name in (ONE, TWO):
            answer = server.client.post(
                RECALL.path.replace("{orchestrator}", name),
                json=RECALL.body,
                headers={"Authorization": header},
            )
            assert answer.status_code == 401
            assert words_in([answer.text]) == set()


def test_no_header_makes_somebody_else(server: Served) -> None:
    plain = server.ask("a task", Ask("GET", HERE + "/stats"))
    for header in (
        {"X-HTTP-Method-Override": "DELETE"},
        {"X-Original-URL": "/v1/orchestrators/two/stats"},
        {"X-Rewrite-URL": "/v1/orchestrators/two/stats"},
        {"X-Forwarded-User": "admin"},
        {"X-Forwarded-Prefix": "/v1/orchestrators/two"},
        {"Cookie": f"key={server.secrets['everything']}"},
        {"X-Api-Key": server.secrets["everything"]},
        {"Forwarded": "for=127.0.0.1;host=two"},
    ):
        answer = server.ask("a task", Ask("GET", HERE + "/stats", headers=header))
        assert (answer.status_code, answer.text) == (200, plain.text), header


def test_no_page_from_elsewhere_may_ask(server: Served) -> None:
    asked = (
        ({"Host": "127.0.0.1.evil.example"}, 421),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1.evil.example"}, 403),
    )
    for path, (headers, status) in product((RECALL.path, "/mcp/one", "/healthz"), asked):
        answer = server.ask("everything", replace(RECALL, path=path, headers=headers))
        assert answer.status_code == status, (path, headers)
        assert words_in([answer.text]) == set()
        assert "access-control-allow-origin" not in answer.headers


def test_the_time_of_an_answer_does_not_tell(server: Served) -> None:
    """Hidden or absent: medians of interleaved answers are near."""
    hidden = server.world.hidden(SEEING["public"].viewer)
    ids = [each.memory_id for each in hidden]
    pairs = [(f"{NEW}/{one}", f"{NEW}/{_absent(one)}") for one in (ids * 2)[:40]]
    medians = _medians(server, "public", [[(path, ONE) for path in pair] for pair in pairs])
    assert max(medians) < 2 * min(medians)


def _medians(server: Served, who: str, pairs: list[list[tuple[str, str]]]) -> list[float]:
    """Seconds for the first and the second of each pair of paths; both are answered 404."""
    times: tuple[list[float], list[float]] = ([], [])
    for turn, pair in enumerate(pairs):
        for place in (0, 1) if turn % 2 else (1, 0):
            path, orchestrator = pair[place]
            began = perf_counter()
            answer = server.ask(who, Ask("GET", path), orchestrator)
            times[place].append(perf_counter() - began)
            assert answer.status_code == 404
    return [statistics.median(each) for each in times]


def _absent(memory_id: str) -> str:
    kind, _, rest = memory_id.partition("_")
    return f"{'ep' if kind == 'fact' else 'fact'}_{rest}"
