"""What is derived of an operation: its route, its place in the OpenAPI document, its client."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Annotated, Any

import httpx
import pytest
from fastapi.routing import APIRoute
from pydantic import Field

from memgraph.client import Client
from memgraph.client.operations import RemoteTarget, remote
from memgraph.client.server import Server
from memgraph.errors import InvalidInput, NotFound
from memgraph.model.access import Narrowing, Permission
from memgraph.model.operation import (
    MemoryId,
    Time,
    WireFormat,
    WireResult,
    operation,
    operation_of,
    operations_of,
)
from memgraph.model.remote import MemoryPage
from memgraph.model.values import Name, Value
from memgraph.operations.handle import Handle
from memgraph.operations.orchestrator import Orchestrator
from memgraph.surfaces.http.app import openapi
from memgraph.surfaces.http.document import PERMISSION, document
from memgraph.surfaces.http.operations import router_of

BASE = "/v1/orchestrators/orc-1"
ASK_SOMETHING = ("/recall", "/memory/forget", "/memory/listItems")
"""No field of their bodies is required, but the body is."""


class Label(Value):
    """The labels of a memory."""

    memory_id: str
    names: tuple[str, ...]
    until: int | None


class LabelHandle(Handle):
    """The toy: what an engineer writes to add an operation."""

    @operation(Permission.WRITE, "POST /memories/{memory_id}/labels")
    def label_memory(
        self,
        memory_id: MemoryId,
        names: Annotated[Sequence[str], WireFormat(tuple[Name, ...]), Field(max_length=3)],
        *,
        until: Time | None = None,
        progress: Callable[[int], None] = lambda _done: None,
    ) -> Label:
        """Label a memory.

        Args:
            names: three at most.

        Raises:
            NotFound: there is no such memory.
        """
        progress(1)
        return Label(memory_id=memory_id, names=tuple(names), until=until)

    @operation(Permission.READ, "GET /labels", id="list_labels")
    def labels(self, *, after: Annotated[str, WireFormat(name="cursor")] = "") -> None:
        """List nothing."""


def test_an_answer_with_a_field_that_nothing_fills_is_refused() -> None:
    with pytest.raises(InvalidInput, match="next_cursor; set wrap or cursor"):
        WireResult(MemoryPage)
    assert WireResult(MemoryPage, cursor=lambda memory: memory.memory_id).type is MemoryPage


def test_an_operation_is_a_route_of_the_document() -> None:
    made = document([router_of(LabelHandle)])
    told = made["paths"]["/v1/orchestrators/{orchestrator}/memories/{memory_id}/labels"]["post"]
    assert told["operationId"] == "label_memory"
    assert told["description"] == "Label a memory."
    assert told[PERMISSION] == "write"
    body = made["components"]["schemas"]["LabelMemory"]
    assert set(body["properties"]) == {"names", "until"}
    assert body["required"] == ["names"]
    assert body["properties"]["names"]["maxItems"] == 3
    listed = made["paths"]["/v1/orchestrators/{orchestrator}/labels"]["get"]
    assert "cursor" in [each["name"] for each in listed["parameters"]]


def test_a_route_calls_the_operation() -> None:
    [write, read] = [each for each in router_of(LabelHandle).routes if isinstance(each, APIRoute)]
    assert write.body_field is not None
    body = write.body_field.field_info.annotation.model_validate(  # type: ignore[union-attr]
        {"names": ["a", "b"], "until": "2026-01-02T00:00:00Z"}
    )
    orc = LabelHandle.__new__(LabelHandle)
    answer = write.endpoint(request=None, orc=orc, memory_id="fact_1", body=body)
    assert json.loads(answer.body) == {
        "memory_id": "fact_1",
        "names": ["a", "b"],
        "until": 1_767_312_000_000,
    }
    assert read.endpoint(request=None, orc=orc, cursor="").status_code == 204


def test_the_client_asks_for_the_operation() -> None:
    def reply(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        answer = {"memory_id": "fact_1", "names": ["a"], "until": None}
        return httpx.Response(200, json=answer) if request.method == "POST" else httpx.Response(204)

    sent: list[httpx.Request] = []
    server = Server("http://127.0.0.1:1", transport=httpx.MockTransport(reply))
    handle = SimpleNamespace(_remote=RemoteTarget(server, "orc-1", Narrowing()))
    label: Any = remote(LabelHandle.label_memory)
    assert label(handle, "fact_1", ["a"], until="2026-01-02").names == ("a",)
    assert sent[0].url.path == "/v1/orchestrators/orc-1/memories/fact_1/labels"
    assert json.loads(sent[0].content) == {"names": ["a"], "until": "2026-01-02T00:00:00.000Z"}
    with pytest.raises(NotFound):
        label(handle, "a/b", ["a"])
    with pytest.raises(TypeError):
        label(handle, "fact_1", ["a"], untill="2026-01-02")
    listed: Any = remote(LabelHandle.labels)
    assert listed(handle, after="lbl_7") is None
    assert dict(sent[1].url.params) == {"cursor": "lbl_7"}


def test_what_takes_anything_is_no_operation() -> None:
    def anything(self: Handle, **fields: Any) -> None: ...

    with pytest.raises(TypeError, match="fields"):
        _ = operation_of(operation(Permission.READ, "GET /x", tag="x")(anything)).parameters
    with pytest.raises(InvalidInput):
        operation_of(Handle._whole_id)


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
