"""HEAD, as GET is answered; and requests that leave their body out."""

from __future__ import annotations

import httpx
import pytest
from serving_worlds import Served

from memgraph.surfaces.http.app import openapi

ASK_SOMETHING = ("/recall", "/memory/forget", "/memory/listItems")
"""No field of their bodies is required, but the body is."""
BASE = "/v1/orchestrators/orc-1"
NO_VALUES = {"/export", "/backup"}


def document_paths() -> list[str]:
    here = "/v1/orchestrators/{orchestrator}"
    found = [path for path, each in openapi()["paths"].items() if "get" in each]
    return [
        path.removeprefix(here) for path in found if path.startswith(here) and "{" not in path[34:]
    ]


def test_head_is_get_without_its_body(served: Served, client: httpx.Client) -> None:
    memory_id = served.orchestrator().remember("The lock is green.")
    at = f"{BASE}/memories/{memory_id}"
    got, asked = client.get(at), client.head(at)
    assert (asked.status_code, asked.content) == (200, b"")
    for name in ("etag", "content-length", "content-type"):
        assert asked.headers[name] == got.headers[name]
    known = {"If-None-Match": got.headers["etag"]}
    assert client.head(at, headers=known).status_code == 304
    assert client.head(f"{BASE}/memories/none").status_code == 404
    assert client.head(at, params={"projekt": "x"}).status_code == 422
    assert client.head("/healthz").status_code == 200


@pytest.mark.parametrize("path", document_paths())
def test_head_is_for_values_alone(client: httpx.Client, path: str) -> None:
    answer = client.head(BASE + path)
    assert answer.content == b""
    assert (answer.status_code == 405) is (path in NO_VALUES)


def test_head_is_refused_as_get_is(served: Served) -> None:
    with served.client(served.key(permissions={"write"})) as writer, served.client() as nobody:
        assert writer.head(f"{BASE}/memories").status_code == 403
        assert nobody.head(f"{BASE}/memories").status_code == 401


def test_a_body_of_defaults_may_be_left_out(client: httpx.Client) -> None:
    ran = client.post(f"{BASE}/jobs/decay/run")
    assert (ran.status_code, ran.json()["runs"][0]["job"]) == (200, "decay")
    assert client.post(f"{BASE}/context").status_code == 200
    assert client.post(f"{BASE}/recall").status_code == 422


def test_bodies_that_lack_nothing_are_optional() -> None:
    document = openapi()
    for path, operations in document["paths"].items():
        wanted = operations.get("post", {}).get("requestBody", {})
        reference = wanted.get("content", {}).get("application/json", {}).get("schema", {})
        if "$ref" not in reference or path.endswith(ASK_SOMETHING):
            continue
        schema = document["components"]["schemas"][reference["$ref"].rpartition("/")[2]]
        assert bool(wanted.get("required")) is bool(schema.get("required")), path
