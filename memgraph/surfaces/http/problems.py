"""Errors as problem details (RFC 9457), with the library's own codes."""

from __future__ import annotations

import math
from http import HTTPStatus
from typing import Any, Final

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.routing import Match

from memgraph import errors
from memgraph.service.access.gate import Gate
from memgraph.service.sanitizer import outward
from memgraph.surfaces.host_checks import PROBLEM, problem_body
from memgraph.surfaces.http.unknown_fields import MOST_PROBLEMS, FieldNames, invalid, told
from memgraph.surfaces.refusals import settle

BUG: Final = "something went wrong inside; the server's log says where"

_NO_JSON: Final = "it is read as JSON: send it with Content-Type: application/json"
_SAID: Final = {
    400: "the request cannot be read: its body is not JSON",
    404: "there is nothing at this address; /openapi.json tells what there is",
    405: "not with this method; /openapi.json tells with which",
}

# The most specific class decides.
STATUS: Final[dict[type[errors.MemgraphError], int]] = {
    errors.MemgraphError: 500,
    errors.InvalidInput: 422,
    errors.InvalidConfig: 503,
    errors.UnknownConfigKey: 503,
    errors.NotFound: 404,
    errors.OrchestratorMissing: 404,
    errors.Conflict: 409,
    errors.OrchestratorExists: 409,
    errors.KeyReused: 422,
    errors.AnswerLost: 409,
    errors.AccessDenied: 403,
    errors.QuotaReached: 409,
    errors.Unauthenticated: 401,
    errors.MemoryDisabled: 503,
    errors.StorageError: 503,
    errors.DatabaseFull: 507,
    errors.ProviderError: 502,
    errors.ProviderUnavailable: 503,
    errors.IngestRejected: 422,
    errors.ImportRejected: 422,
    errors.JournalBroken: 503,
    errors.ErasureUnproven: 409,
    errors.AuditFailed: 409,
    errors.RequestRefused: 400,
    errors.RequestTooLarge: 413,
    errors.RequestTimeout: 504,
    errors.RateLimited: 429,
    errors.ServerBusy: 503,
    errors.ServerEnding: 503,
}


class Problem(BaseModel):
    """An error, in one shape for all."""

    model_config = ConfigDict(extra="forbid")

    type: str = Field(default="about:blank", examples=["about:blank"])
    title: str = Field(examples=["Not Found"])
    status: int = Field(examples=[404])
    detail: str = Field(examples=["no memory of this id"])
    code: str = Field(examples=["memory.not_found"], description="Stable; see the reference.")
    details: dict[str, Any] = Field(default_factory=dict)


def status_of(error: errors.MemgraphError) -> int:
    """Return the HTTP status for an error of the library."""
    return next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)


def problem(error: errors.MemgraphError, status: int | None = None) -> Response:
    """Return the answer for an error; its status is the error's own, if no other is given."""
    status = status_of(error) if status is None else status
    answer = Response(problem_body(error, status), status, media_type=PROBLEM)
    if isinstance(error, errors.Unauthenticated):
        answer.headers["WWW-Authenticate"] = "Bearer"
    wait = error.details.get("retry_after_s")
    if wait is not None:
        answer.headers["Retry-After"] = str(math.ceil(wait))
    return answer


async def on_memgraph_error(request: Request, error: Exception) -> Response:
    """Handle every error that the library raises on purpose."""
    if not isinstance(error, errors.MemgraphError):
        raise error
    gate: Gate = request.app.state.gate
    await settle(gate, request.scope, error)
    return problem(outward(error, gate.service.root))


async def on_invalid(request: Request, error: Exception) -> Response:
    """Handle requests that do not match their route; their content is not repeated."""
    if not isinstance(error, RequestValidationError):
        raise error
    return problem(invalid([_wrong(request, item) for item in error.errors()[:MOST_PROBLEMS]]))


async def on_http_error(request: Request, error: Exception) -> Response:
    """Handle the framework's own errors: no such route, no such method."""
    if not isinstance(error, HTTPException):
        raise error
    text = _SAID.get(error.status_code, HTTPStatus(error.status_code).phrase)
    answer = problem(errors.RequestRefused(text), error.status_code)
    answer.headers.update(error.headers or {})
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        answer.headers["Allow"] = ", ".join(_methods(request))
    return answer


async def on_bug(_request: Request, _error: Exception) -> Response:
    """Handle every other error, without details for the client."""
    return problem(errors.MemgraphError(BUG))


def _methods(request: Request) -> list[str]:
    """Return the methods of an address; the framework knows only those of its first route."""
    result: set[str] = set()
    for route in request.app.router.routes:
        if route.matches(request.scope)[0] is not Match.NONE:
            result |= getattr(route, "methods", None) or set()
    return sorted(result)


def _wrong(request: Request, error: dict[str, Any]) -> dict[str, str]:
    """Return the wrong field and its problem."""
    where, text = error["loc"], errors.without_kind(error["msg"])
    if error["type"] == "json_invalid":
        where, text = ("body",), f"no valid JSON: it breaks at character {error['loc'][-1] + 1:,}"
    elif where == ("body",) and error["type"] == "model_attributes_type":
        text = "Input should be an object" if _is_json(request) else _NO_JSON
    elif error["type"] == "extra_forbidden" and where[0] == "body":
        known: FieldNames = request.app.state.known
        text = known.unknown_field(request, where[1:-1])
    return {"field": ".".join(told(part) for part in where), "problem": text}


def _is_json(request: Request) -> bool:
    """Return True when a body is declared as JSON."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind == "application/json" or kind.endswith("+json")
