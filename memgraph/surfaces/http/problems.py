"""Errors as problem details (RFC 9457), with the library's own codes."""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from http import HTTPStatus
from typing import Any, Final

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.routing import Match

from memgraph import errors
from memgraph.errors import InvalidInput
from memgraph.service.access.gate import Gate
from memgraph.service.sanitizer import sanitized_error
from memgraph.surfaces.asgi import PROBLEM, problem_body, settle

MOST_PROBLEMS: Final = 20
_NAME: Final = re.compile(r"^[A-Za-z0-9_-]{1,40}$")
_SCHEMAS: Final = "#/components/schemas/"

Json = Mapping[str, Any]


class FieldNames:
    """The names that each operation of a document takes.

    Args:
        load: returns the OpenAPI document, which takes half a second; called once, at first need.
            Concurrent callers wait for it.
    """

    def __init__(self, load: Callable[[], Json]) -> None:
        self._load = load
        self._loading = threading.Lock()
        self._loaded = False
        self._schemas: Json = {}
        self._queries: dict[tuple[str, str], dict[str, bool]] = {}
        self._bodies: dict[tuple[str, str], Json] = {}

    def read(self) -> None:
        """Read the document, if it was not read yet."""
        if self._loaded:
            return
        with self._loading:
            if not self._loaded:
                self._read(self._load())
                self._loaded = True

    def _read(self, document: Json) -> None:
        self._schemas = document["components"]["schemas"]
        for path, operations in document["paths"].items():
            for method, operation in operations.items():
                self._queries[path, method] = {
                    item["name"]: item["schema"].get("type") == "array"
                    for item in operation.get("parameters", ())
                    if item["in"] == "query"
                }
                content = operation.get("requestBody", {}).get("content", {})
                self._bodies[path, method] = content.get("application/json", {}).get("schema", {})

    def require_query(self, request: Request) -> None:
        """Raise InvalidInput when a parameter is unknown to the route, or repeated."""
        # It builds the models, too: no body is to be read before that.
        self.read()
        if not request.scope["query_string"]:
            return
        names = self._queries.get(_operation(request))
        if names is None:
            return
        query = request.query_params
        problems = [
            *(
                _problem(item, f"no such parameter; {_listed(names)}")
                for item in sorted(query.keys() - names.keys())
            ),
            *(
                _problem(item, "comes once")
                for item in sorted(query.keys() & names.keys())
                if not names[item] and len(query.getlist(item)) > 1
            ),
        ]
        if problems:
            raise invalid(problems[:MOST_PROBLEMS])

    def unknown_field(self, request: Request, where: Iterable[int | str]) -> str:
        """Return the message for a field of a body that its model does not have.

        Args:
            where: the steps from the body to what holds the field.
        """
        self.read()
        results = [self._bodies.get(_operation(request), {})]
        for step in where:
            results = [inner for item in results for inner in self._below(item, step)]
        names = {
            name
            for item in results
            for part in self._plain(item)
            for name in part.get("properties", ())
        }
        return f"no such field; {_listed(names)}" if names else "no such field"

    def _below(self, schema: Json, step: int | str) -> Iterator[Json]:
        """Yield the schemas that a step of a path may lead to; the name of a model leads to that
        model.
        """
        for item in self._plain(schema):
            if isinstance(step, int):
                yield from (item[name] for name in ("items",) if name in item)
            elif step in item.get("properties", ()):
                yield item["properties"][step]
            elif step == item.get("title"):
                yield item

    def _plain(self, schema: Json) -> Iterator[Json]:
        """Yield a schema without references, as one or several."""
        if "$ref" in schema:
            yield from self._plain(self._schemas[schema["$ref"].removeprefix(_SCHEMAS)])
        elif "anyOf" in schema:
            for item in schema["anyOf"]:
                yield from self._plain(item)
        else:
            yield schema


def invalid(problems: list[dict[str, str]]) -> InvalidInput:
    """Return the error for wrong fields, each as ``{"field": …, "problem": …}``."""
    message = "; ".join(f"{problem['field']}: {problem['problem']}" for problem in problems[:5])
    return InvalidInput(f"not a valid request: {message}", problems=problems)


def told(part: object) -> str:
    """Return a step to a wrong field for the message: a made-up name may be any text."""
    text = str(part)
    return text if _NAME.match(text) else "(unknown)"


def _problem(name: str, text: str) -> dict[str, str]:
    return {"field": f"query.{told(name)}", "problem": text}


def _listed(names: Iterable[str]) -> str:
    listed = ", ".join(sorted(names))
    return f"known: {listed}" if listed else "there is none"


def _operation(request: Request) -> tuple[str, str]:
    path = getattr(request.scope.get("route"), "path_format", "")
    method = request.method.lower()
    return path, "get" if method == "head" else method


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
    return problem(sanitized_error(error, gate.service.root))


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
        names: FieldNames = request.app.state.known
        text = names.unknown_field(request, where[1:-1])
    return {"field": ".".join(told(part) for part in where), "problem": text}


def _is_json(request: Request) -> bool:
    """Return True when a body is declared as JSON."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind == "application/json" or kind.endswith("+json")
