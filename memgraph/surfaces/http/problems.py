"""Convert errors to problem details (RFC 9457) with the library's own codes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from fastapi import Request, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.routing import Match

from memgraph import errors
from memgraph.errors import InvalidInput
from memgraph.service.access.gate import Gate
from memgraph.service.sanitizer import sanitized_error
from memgraph.surfaces.asgi import CODE, PROBLEM, error_headers, problem_body, settle

MOST_PROBLEMS: Final = 20
_NAME: Final = re.compile(r"^[A-Za-z0-9_-]{1,40}$")


QueryNames = Mapping[tuple[str, str], Mapping[str, bool]]
"""The query parameters of routes, by path and method, each with whether it may be repeated."""


def query_names(document: Mapping[str, Any]) -> QueryNames:
    """Return the query parameters of an OpenAPI document."""
    return {
        (path, method): {
            item["name"]: item["schema"].get("type") == "array"
            for item in operation.get("parameters", ())
            if item["in"] == "query"
        }
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    }


def require_known(request: Request, names_of: QueryNames) -> None:
    """Raise InvalidInput if a query parameter is unknown to the route, or repeated."""
    path = getattr(request.scope.get("route"), "path_format", "")
    names = names_of.get((path, request.method.lower()))
    if not request.scope["query_string"] or names is None:
        return
    query = request.query_params
    allowed = f"allowed: {', '.join(sorted(names))}" if names else "none is allowed"
    problems = [
        *(
            _problem(item, f"unknown parameter; {allowed}")
            for item in sorted(query.keys() - names.keys())
        ),
        *(
            _problem(item, "must not be repeated")
            for item in sorted(query.keys() & names.keys())
            if not names[item] and len(query.getlist(item)) > 1
        ),
    ]
    if problems:
        raise invalid(problems[:MOST_PROBLEMS])


def invalid(problems: list[dict[str, str]]) -> InvalidInput:
    """Return the error for invalid fields, each as ``{"field": …, "problem": …}``."""
    message = "; ".join(f"{problem['field']}: {problem['problem']}" for problem in problems[:5])
    return InvalidInput(f"the request is invalid: {message}", problems=problems)


def told(part: object) -> str:
    """Return a part of a field's path for a message; arbitrary text becomes ``(unknown)``."""
    text = str(part)
    return text if _NAME.match(text) else "(unknown)"


def _problem(name: str, text: str) -> dict[str, str]:
    return {"field": f"query.{told(name)}", "problem": text}


BUG: Final = "an internal error occurred; the server's log has its details"

_NO_JSON: Final = "the body must be JSON: send it with Content-Type: application/json"
_MESSAGES: Final = {
    400: "the request cannot be read: its body is not JSON",
    404: "there is nothing at this address; see /openapi.json for the available routes",
    405: "this method is not allowed; see /openapi.json for the allowed ones",
}


class Problem(BaseModel):
    """An error response; all errors have this form."""

    model_config = ConfigDict(extra="forbid")

    type: str = Field(default="about:blank", examples=["about:blank"])
    title: str = Field(examples=["Not Found"])
    status: int = Field(examples=[404])
    detail: str = Field(examples=["no memory of this id"])
    code: str = Field(examples=["memory.not_found"], description="Stable; see the reference.")
    details: dict[str, Any] = Field(default_factory=dict)


def problem(request: Request, error: errors.MemgraphError, status: int | None = None) -> Response:
    """Return the response for an error; ``status`` overrides the error's own status."""
    request.scope[CODE] = error.code
    status = error.status if status is None else status
    return Response(problem_body(error, status), status, error_headers(error), media_type=PROBLEM)


async def on_memgraph_error(request: Request, error: Any) -> Response:
    """Handle a ``MemgraphError``."""
    gate: Gate = request.app.state.gate
    await settle(gate, request.scope, error)
    return problem(request, sanitized_error(error, gate.service.root))


async def on_invalid(request: Request, error: Any) -> Response:
    """Handle a ``RequestValidationError``; the response does not repeat invalid values."""
    problems = [_invalid_field(request, item) for item in error.errors()[:MOST_PROBLEMS]]
    return problem(request, invalid(problems))


async def on_http_error(request: Request, error: Any) -> Response:
    """Handle an ``HTTPException`` of the framework, such as for an unknown route or method."""
    text = _MESSAGES.get(error.status_code, HTTPStatus(error.status_code).phrase)
    answer = problem(request, errors.RequestRefused(text), error.status_code)
    answer.headers.update(error.headers or {})
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        # The framework names only the methods of the first route at an address.
        routes = [
            route
            for route in request.app.router.routes
            if route.matches(request.scope)[0] is not Match.NONE
        ]
        methods = {name for route in routes for name in getattr(route, "methods", None) or ()}
        answer.headers["Allow"] = ", ".join(sorted(methods))
    return answer


async def on_bug(request: Request, _error: Exception) -> Response:
    """Handle all other errors, without details for the client."""
    return problem(request, errors.MemgraphError(BUG))


def _invalid_field(request: Request, error: dict[str, Any]) -> dict[str, str]:
    """Return an invalid field and its problem."""
    where, text = error["loc"], errors.without_kind(error["msg"])
    if error["type"] == "json_invalid":
        where, text = ("body",), f"invalid JSON at character {error['loc'][-1] + 1:,}"
    elif where == ("body",) and error["type"] == "model_attributes_type":
        text = "Input should be an object" if _is_json(request) else _NO_JSON
    return {"field": ".".join(told(part) for part in where), "problem": text}


def _is_json(request: Request) -> bool:
    """Return True if the Content-Type of a request is JSON."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind == "application/json" or kind.endswith("+json")
