"""The OpenAPI document tells of what there is."""

from __future__ import annotations

from typing import Any

from fastapi.routing import APIRoute

from memgraph.model.access import Permission
from memgraph.surfaces.http.app import ROUTERS, openapi
from memgraph.surfaces.http.document import PERMISSION


def operations() -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (method, path, operation)
        for path, operations in openapi()["paths"].items()
        for method, operation in operations.items()
    ]


def test_every_route_is_in_the_document() -> None:
    routes = {
        (method.lower(), route.path_format)
        for router in ROUTERS
        for route in router.routes
        if isinstance(route, APIRoute) and route.include_in_schema
        for method in route.methods or ()
    }
    assert routes == {(method, path) for method, path, _ in operations()}


def test_operations_have_names_of_their_own() -> None:
    names = [operation["operationId"] for *_, operation in operations()]
    assert len(set(names)) == len(names)


def test_schemas_have_names_of_their_own() -> None:
    # Of two that share one, each is called by its module: clients made from the document break.
    assert [name for name in openapi()["components"]["schemas"] if "__" in name] == []


def test_operations_on_an_orchestrator_tell_their_permission() -> None:
    for _, path, operation in operations():
        if not path.startswith("/v1/orchestrators/{orchestrator}"):
            continue
        assert operation[PERMISSION] in set(Permission), path
