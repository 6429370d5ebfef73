"""Errors as pages, with the library's own codes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from starlette.responses import Response

from memgraph import errors
from memgraph.errors import MemgraphError

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


def failure_page(console: Console, error: MemgraphError, status: int) -> Response:
    """The page that tells of an error."""
    title = HTTPStatus(status).phrase
    answer = console.show("failure.html", None, status=status, error=error, title=title)
    wait_s = error.details.get("retry_after_s")
    if wait_s is not None:
        answer.headers["Retry-After"] = str(math.ceil(wait_s))
    return answer
