"""Errors as pages, with the library's own codes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from memgraph import errors
from memgraph.errors import InvalidInput, MemgraphError
from memgraph.surfaces.scopes import CODE, ENTERED
from memgraph.surfaces.web import cookies
from memgraph.surfaces.web.visiting import PLACE, VISIT, Visit

if TYPE_CHECKING:
    from memgraph.surfaces.web.app import Console

# The most special class that an error is of decides.
_STATUS: Final[Mapping[type[MemgraphError], int]] = {
    errors.InvalidInput: 422,
    errors.InvalidConfig: 503,
    errors.NotFound: 404,
    errors.OrchestratorMissing: 404,
    errors.Conflict: 409,
    errors.AccessDenied: 403,
    errors.Unauthenticated: 401,
    errors.MemoryDisabled: 503,
    errors.StorageError: 503,
    errors.ProviderError: 503,
    errors.IngestRejected: 422,
    errors.JournalBroken: 503,
    errors.RequestRefused: 403,
    errors.RequestTooLarge: 413,
    errors.RateLimited: 429,
    errors.ServerBusy: 503,
    errors.ServerEnding: 503,
    MemgraphError: 500,
}


def status_of(error: MemgraphError) -> int:
    """The HTTP status of the page that tells of an error."""
    return next(_STATUS[kind] for kind in type(error).__mro__ if kind in _STATUS)


def failure_page(console: Console, request: Request, error: MemgraphError, status: int) -> Response:
    """The page that tells of an error, with the menu of the orchestrator where it was let in."""
    visit = _visit(request)
    request.scope[CODE] = error.code
    fields = {"error": error, "title": HTTPStatus(status).phrase, "back": _back(request, visit)}
    answer = console.show("failure.html", visit, status=status, **fields)
    wait_s = error.details.get("retry_after_s")
    if wait_s is not None:
        answer.headers["Retry-After"] = str(math.ceil(wait_s))
    return answer


def _visit(request: Request) -> Visit | None:
    """The visit, if the orchestrator let it in: else its menu would tell that there is one."""
    visit: Visit | None = request.scope.get(VISIT)
    if visit is None or ENTERED not in request.scope:
        return None
    try:
        visit.as_of  # noqa: B018 - it is kept; the links of the page are as of it
    except InvalidInput:
        visit.as_of = None
    return visit


def _back(request: Request, visit: Visit | None) -> str:
    """The page of the console that led here, else the first one there is."""
    own = f"{PLACE}/" if visit is None else visit.link()
    came = urlsplit(request.headers.get("referer", ""))
    target = came.path + (f"?{came.query}" if came.query else "")
    here = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    if came.netloc != request.headers.get("host") or cookies.own_target(target) != target:
        return own
    return own if target == here and request.method != "POST" else target
