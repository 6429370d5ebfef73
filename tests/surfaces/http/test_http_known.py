"""Parameters and fields that nobody knows are refused by name; what they hold is not repeated."""

from __future__ import annotations

import re

import httpx
from serving_worlds import Served

from memgraph.surfaces.http.app import openapi

BASE = "/v1/orchestrators/orc-1"
NARROWING = {"project", "session", "agent", "clearance"}
HELD = "zq7held"
OPERATIONS = [
    (method, path, {each["name"] for each in operation["parameters"] if each["in"] == "query"})
    for path, operations in openapi()["paths"].items()
    if path.startswith("/v1/")
    for method, operation in operations.items()
    for operation in [{"parameters": (), **operation}]
]


def problems(answer: httpx.Response) -> list[dict[str, str]]:
    assert (answer.status_code, answer.json()["code"]) == (422, "input.invalid"), answer.text
    assert HELD not in answer.text
    return answer.json()["details"]["problems"]


def test_every_operation_refuses_parameters_that_it_does_not_know(client: httpx.Client) -> None:
    for method, path, known in OPERATIONS:
        at = re.sub(r"\{\w+\}", "x", path.replace("{orchestrator}", "orc-1"))
        (problem,) = problems(client.request(method, at, params={"projekt": HELD}))
        assert problem["field"] == "query.projekt"
        listed = f"allowed: {', '.join(sorted(known))}" if known else "none is allowed"
        assert problem["problem"] == f"unknown parameter; {listed}"
        assert ("{orchestrator}" in path) is (known >= NARROWING), path


def test_what_is_one_comes_once(client: httpx.Client) -> None:
    for name in ("agent", "limit"):
        answer = client.get(f"{BASE}/memories", params=[(name, "1"), (name, "1")])
        assert problems(answer) == [{"field": f"query.{name}", "problem": "must not be repeated"}]
    many = client.get(f"{BASE}/memories", params=[("project", "1"), ("project", "1")])
    assert "must not be repeated" not in many.text
    refused = client.get(f"{BASE}/memories?kind=preference&kind=fact")
    assert (refused.status_code, refused.json()["details"]) == (422, {"field": "kind"})


def test_a_misspelt_parameter_widens_no_view(served: Served, client: httpx.Client) -> None:
    orc = served.orchestrator()
    orc.remember("The mill stands still.", agent_id="a")
    assert client.get(f"{BASE}/memories", params={"agent": "b"}).json()["items"] == []
    for query in ("Agent=b", "agent=b&agent=a", "agent=b&agnet=a", "agent%20=b"):
        problems(client.get(f"{BASE}/memories?{query}"))


def test_a_field_that_nobody_knows_is_named(client: httpx.Client) -> None:
    (problem,) = problems(client.post(f"{BASE}/context", json={"qeury": HELD}))
    assert problem == {"field": "body.qeury", "problem": "Extra inputs are not permitted"}


def test_a_body_that_is_not_said_to_be_json_is_told_how_to_be(client: httpx.Client) -> None:
    sent = f'{{"content": "{HELD}"}}'.encode()
    for headers in ({}, {"Content-Type": "text/plain"}):
        answer = client.post(f"{BASE}/memories", content=sent, headers=headers)
        (problem,) = problems(answer)
        assert problem["field"] == "body"
        assert "Content-Type: application/json" in problem["problem"]


def test_json_that_breaks_is_told_where(client: httpx.Client) -> None:
    headers = {"Content-Type": "application/json"}
    answer = client.post(f"{BASE}/memories", content=b'{"content": }', headers=headers)
    (problem,) = problems(answer)
    assert problem == {"field": "body", "problem": "invalid JSON at character 13"}
    (problem,) = problems(client.post(f"{BASE}/memories", content=b"[1]", headers=headers))
    assert problem == {"field": "body", "problem": "Input should be an object"}
