"""Build the OpenAPI document: FastAPI's, with the parameters and errors of all operations."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
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
from memgraph.surfaces.asgi import PROBLEM
from memgraph.surfaces.http.problems import Problem

DESCRIPTION: Final = (
    "Long-term memory for agent orchestrators. Keys are sent as `Authorization: Bearer <key>`;"
    " errors are problem details (RFC 9457) with the library's own codes."
)
PERMISSION: Final = "x-permission"
"""The field of an operation with the permission it requires; ``any``: any valid key will do."""


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
        "description": "The name of the orchestrator.",
        "schema": {"type": "string", "examples": ["orc-1"]},
    },
    _query("project", _NAMES, "Only these projects; an empty value means no project."),
    _query("session", _NAMES, "Only these sessions; an empty value means no session."),
    _query("agent", _NAME, "Only memories of this agent or of no agent."),
    _query("clearance", {"enum": [*Sensitivity]}, "Only memories up to this sensitivity."),
)
"""The common parameters of all operations on an orchestrator; ``access.entering`` reads them."""
_SCHEMAS: Final = "#/components/schemas/"
PROBLEMS: Final[dict[int | str, dict[str, Any]]] = {
    "default": {
        "description": "Error",
        "content": {PROBLEM: {"schema": {"$ref": f"{_SCHEMAS}{Problem.__name__}"}}},
    }
}
"""The response of an operation that fails, with any status; also for a route's ``responses=``."""


def document(routers: Iterable[APIRouter]) -> dict[str, Any]:
    """Return the OpenAPI document of routers, with the common parameters and errors.

    This also builds the pydantic models of all bodies, so that the first request need not wait.
    """
    all_routes = [route for router in routers for route in router.routes]
    routes = [route for route in all_routes if isinstance(route, APIRoute)]
    with warnings.catch_warnings():
        # Pydantic builds our models here, at their first use, and would warn about the aliases
        # that FastAPI attaches to bodies.
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
                _complete(operation, permission_of(route.dependant))
    return schema


def permission_of(dependant: Dependant) -> Permission | None:
    """Return the permission that a route requires; None if any key, or no key, will do."""
    own = getattr(dependant.call, "permission", None)
    inherited = (permission_of(dependency) for dependency in dependant.dependencies)
    return next((item for item in (own, *inherited) if item is not None), None)


def _complete(operation: dict[str, Any], permission: Permission | None) -> None:
    operation["security"] = [{"key": []}]
    operation[PERMISSION] = "any" if permission is None else permission.value
    if permission is not None:
        operation["parameters"] = [*NARROWING, *operation.get("parameters", ())]
    # FastAPI's own form of an invalid request.
    operation["responses"].pop("422", None)
    operation["responses"] |= PROBLEMS
