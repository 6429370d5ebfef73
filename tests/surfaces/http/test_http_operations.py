"""What is derived of an operation: its route, its place in the OpenAPI document, its client."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import httpx
import pytest
from serving_worlds import serving

from memgraph.client import Client
from memgraph.model.access import Permission
from memgraph.model.operation import operation, operation_of, operations_of
from memgraph.operations.handle import Handle
from memgraph.operations.memories import Memories
from memgraph.operations.orchestrator import Orchestrator
from memgraph.surfaces.http import app
from memgraph.surfaces.http.app import openapi
from memgraph.surfaces.http.document import PERMISSION
from memgraph.surfaces.http.operations import router_of

BASE = "/v1/orchestrators/orc-1"


def test_what_takes_anything_is_no_operation() -> None:
    def anything(self: Handle, **fields: Any) -> None: ...

    with pytest.raises(TypeError, match="fields"):
        _ = operation(Permission.READ, "GET /x", function=anything).parameters
    assert operation_of(Handle._whole_id) is None


def test_every_operation_has_its_route_and_its_method_of_the_client() -> None:
    routes = {
        each["operationId"]: each.get(PERMISSION)
        for path in openapi()["paths"].values()
        for each in path.values()
    }
    orc = Client("http://127.0.0.1:1").orchestrator("orc-1")
    found = operations_of(Orchestrator)
    assert len(found) >= 30
    for name, declared in found.items():
        assert routes[declared.id] == declared.permission.value, name
        told = inspect.signature(declared.method_of(orc))
        assert told.parameters.keys() >= declared.parameters.keys(), name


def test_a_body_of_defaults_may_be_left_out(client: httpx.Client) -> None:
    ran = client.post(f"{BASE}/jobs/decay/run")
    assert (ran.status_code, ran.json()["job"]) == (200, "decay")
    assert client.post(f"{BASE}/context").status_code == 200
    assert client.post(f"{BASE}/recall").status_code == 422


class Rivals(Handle, group="memories"):
    @operation(Permission.READ, "GET /memories/first")
    def first(self) -> int: ...

    @operation(Permission.READ, "GET /memories/first")
    def second(self) -> int: ...


def test_two_operations_of_one_route_are_an_error() -> None:
    with pytest.raises(TypeError, match="second has the route of first"):
        router_of(Rivals)


class Numbers(Handle, group="memories"):
    """A literal path that is declared after a templated one that fits it."""

    @operation(Permission.READ, "GET /memories/number", id="number_of_memories")
    def number(self) -> int:
        """Return 7."""
        return 7


def test_a_literal_path_is_reached_beside_a_templated_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Memories, "number", Numbers.number, raising=False)
    monkeypatch.setattr(app, "ROUTERS", (router_of(Orchestrator),))
    with serving(tmp_path / "root") as served:
        memory_id = served.orchestrator().remember("Seven swans swim.")
        with served.client(served.key()) as client:
            assert client.get(f"{BASE}/memories/number").json() == 7
            found = client.get(f"{BASE}/memories/{memory_id}").json()
    assert found["memory_id"] == memory_id
