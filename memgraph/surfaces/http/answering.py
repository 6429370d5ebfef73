"""Answers: the service's values serialised as JSON, once."""

from __future__ import annotations

import hashlib
from typing import Final, TypeVar

from fastapi import Request, Response
from pydantic import TypeAdapter

from memgraph.model.values import Value

JSON: Final = "application/json"
T = TypeVar("T")


def answered(value: Value, *, status: int = 200) -> Response:
    """Return a value as the body of an answer.

    The declared response model documents it; the service's values are not validated again.
    """
    return Response(value.__pydantic_serializer__.to_json(value), status, media_type=JSON)


def answered_as(adapter: TypeAdapter[T], value: T) -> Response:
    """Return ``answered`` for a value that is no ``Value``, such as a dataclass."""
    return Response(adapter.dump_json(value), media_type=JSON)


def tagged(response: Response, request: Request) -> Response:
    """Return an answer with an ETag of its bytes, or 304 when the client has these bytes."""
    tag = f'"{hashlib.sha256(response.body).hexdigest()[:32]}"'
    if _names(request.headers.get("if-none-match", ""), tag):
        response = Response(status_code=304)
    response.headers["ETag"] = tag
    return response


def done() -> Response:
    """Return the empty answer to a change."""
    return Response(status_code=204)


def _names(asked: str, tag: str) -> bool:
    return asked.strip() == "*" or tag in [
        each.strip().removeprefix("W/") for each in asked.split(",")
    ]
