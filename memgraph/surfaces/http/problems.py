"""Errors as problem details (RFC 9457), with the library's own codes."""

from __future__ import annotations

from typing import Any, Final

from fastapi import Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from memgraph import errors

MEDIA_TYPE: Final = "application/problem+json"

# The most special class that an error is of decides.
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
    errors.Unauthenticated: 401,
    errors.MemoryDisabled: 503,
    errors.StorageError: 503,
    errors.DatabaseFull: 507,
    errors.ProviderError: 502,
    errors.ProviderUnavailable: 503,
    errors.IngestRejected: 422,
    errors.ImportRejected: 422,
    errors.JournalBroken: 503,
    errors.RequestRefused: 400,
    errors.RequestTooLarge: 413,
    errors.RequestTimeout: 504,
    errors.RateLimited: 429,
}


class Problem(BaseModel):
    """What went wrong, in one shape for every error."""

    model_config = ConfigDict(extra="forbid")

    type: str = Field(default="about:blank", examples=["about:blank"])
    title: str = Field(examples=["Not Found"])
    status: int = Field(examples=[404])
    detail: str = Field(examples=["no memory of this id"])
    code: str = Field(examples=["memory.not_found"], description="Stable; see the reference.")
    details: dict[str, Any] = Field(default_factory=dict)


def status_of(error: errors.MemgraphError) -> int:
    """The HTTP status for an error of the library."""
    return next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)


def problem(error: errors.MemgraphError) -> JSONResponse:
    """The answer that tells of an error."""
    from http import HTTPStatus

    status = status_of(error)
    told = Problem(
        title=HTTPStatus(status).phrase,
        status=status,
        detail=error.message,
        code=error.code,
        details=error.details,
    )
    return JSONResponse(told.model_dump(mode="json"), status, media_type=MEDIA_TYPE)


async def on_memgraph_error(_request: Request, error: Exception) -> JSONResponse:
    """The handler of every error that the library raises on purpose."""
    if not isinstance(error, errors.MemgraphError):
        raise error
    return problem(error)
