"""The OpenAPI document: FastAPI's, with what all operations have in common."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any, Final

from fastapi import APIRouter
from fastapi.dependencies.models import Dependant
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from pydantic.warnings import UnsupportedFieldAttributeWarning

from memgraph import __version__
from memgraph.model.access import Permission
from memgraph.model.enums import Sensitivity
from memgraph.model.values import MAX_NAME_CHARS
from memgraph.service.idempotency import MAX_KEY_CHARS
from memgraph.surfaces.asgi import PROBLEM
from memgraph.surfaces.http.problems import Problem

DESCRIPTION: Final = (
    "Long-term memory for agent orchestrators. Keys are sent as `Authorization: Bearer <key>`;"
    " errors are problem details (RFC 9457) with the library's own codes."
)
ALWAYS: Final = (400, 401, 403, 404, 408, 413, 421, 422, 429, 500, 503, 504)
"""Statuses of problems that any operation may answer with."""
WHEN_WRITING: Final = (409, 502, 507)
"""Additional ones, for every operation that is not a GET."""
NOT_MODIFIED: Final[dict[int | str, dict[str, Any]]] = {
    304: {"description": "The asker has it already: If-None-Match named its ETag."}
}
"""For ``responses=`` of a route that answers with ``tagged``."""

PERMISSION: Final = "x-permission"
"""The document's key for an operation's permission, or ``any`` key."""


def _query(name: str, schema: Mapping[str, Any], description: str) -> dict[str, Any]:
    details = {"name": name, "in": "query", "required": False, "description": description}
    return {**details, "schema": schema}


_NAME: Final = {"type": "string", "minLength": 1, "maxLength": MAX_NAME_CHARS}
_NAMES: Final = {"type": "array", "items": {**_NAME, "minLength": 0}, "maxItems": 1_000}
NARROWING: Final = (
    {
        "name": "orchestrator",
        "in": "path",
        "required": True,
        "description": "Its name.",
        "schema": {"type": "string", "examples": ["orc-1"]},
    },
    _query("project", _NAMES, "Only these projects; an empty one: none."),
    _query("session", _NAMES, "Only these sessions; an empty one: none."),
    _query("agent", _NAME, "Only this agent's and nobody's."),
    _query("clearance", {"enum": [*Sensitivity]}, "Nothing of a higher sensitivity."),
)
"""The query parameters of every operation on an orchestrator; ``entering`` reads them."""
_ONCE: Final = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "The same request with the same key is done once, and answered alike for 24 h.",
    "schema": {"type": "string", "minLength": 1, "maxLength": MAX_KEY_CHARS, "pattern": "^[!-~]+$"},
}
_SCHEMAS: Final = "#/components/schemas/"


def problem_answers(*statuses: int) -> dict[str, Any]:
    """Return answers with a problem, as OpenAPI describes them; also for a route's
    ``responses=``.
    """
    return {str(status): _answer(HTTPStatus(status).phrase) for status in statuses}


def document(routers: Iterable[APIRouter]) -> dict[str, Any]:
    """Return the OpenAPI document of routers, with the answers of every error in it.

    Building it builds the models of all bodies and answers, so that a first request need not wait.
    """
    every = [route for router in routers for route in router.routes]
    routes = [route for route in every if isinstance(route, APIRoute)]
    with warnings.catch_warnings():
        # FastAPI gives its names of bodies to pydantic, which builds our models at their first
        # use, which is here, and would tell of names that are of no use to it.
        warnings.simplefilter("ignore", UnsupportedFieldAttributeWarning)
        schema = get_openapi(
            title="memgraph",
            version=__version__,
            description=DESCRIPTION,
            routes=routes,
        )
    schemas = schema.setdefault("components", {}).setdefault("schemas", {})
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    schemas["Problem"] = Problem.model_json_schema(ref_template=_SCHEMAS + "{model}")
    schema["components"]["securitySchemes"] = {
        "key": {"type": "http", "scheme": "bearer", "description": "memgraph key create"}
    }
    for route in routes:
        for method in route.methods or ():
            if route.path_format.startswith("/v1/") and route.include_in_schema:
                operation = schema["paths"][route.path_format][method.lower()]
                _complete(operation, method.lower(), permission_of(route.dependant))
    return schema


def permission_of(dependant: Dependant) -> Permission | None:
    """Return the permission that a route's handle requires; None: any key, or none."""
    result = getattr(dependant.call, "permission", None)
    inner = (permission_of(dependency) for dependency in dependant.dependencies)
    return next((item for item in (result, *inner) if item is not None), None)


def _complete(operation: dict[str, Any], method: str, permission: Permission | None) -> None:
    operation["security"] = [{"key": []}]
    operation[PERMISSION] = "any" if permission is None else permission.value
    if permission is not None:
        operation["parameters"] = [*NARROWING, *operation.get("parameters", ())]
    if method == "post" and permission in (Permission.WRITE, Permission.ADMIN):
        operation["parameters"].append(_ONCE)
    further = () if method == "get" else WHEN_WRITING
    message: Mapping[str, Any] = operation["responses"]
    own = {k: v for k, v in message.items() if not (k == "422" and _is_fastapis(v))}
    operation["responses"] = {**problem_answers(*sorted((*ALWAYS, *further))), **own}


def _is_fastapis(answer: Mapping[str, Any]) -> bool:
    schema = answer.get("content", {}).get("application/json", {}).get("schema", {})
    return bool(schema == {"$ref": _SCHEMAS + "HTTPValidationError"})


def _answer(description: str) -> dict[str, Any]:
    schema = {"$ref": _SCHEMAS + Problem.__name__}
    return {"description": description, "content": {PROBLEM: {"schema": schema}}}
