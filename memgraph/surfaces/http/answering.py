"""Answers: the service's values as JSON, made once."""

from __future__ import annotations

import hashlib
from typing import Final, TypeVar

from fastapi import Request, Response
from pydantic import TypeAdapter

from memgraph.model.values import Value

JSON: Final = "application/json"
T = TypeVar("T")


def answered(value: Value, *, status: int = 200) -> Response:
    """A value as the body of an answer.

    The declared response model documents it; nothing validates a second time what the service made.
    """
    return Response(value.__pydantic_serializer__.to_json(value), status, media_type=JSON)


def answered_as(adapter: TypeAdapter[T], value: T) -> Response:
    """``answered`` for what is no ``Value``, such as a dataclass."""
    return Response(adapter.dump_json(value), media_type=JSON)


def tagged(response: Response, request: Request) -> Response:
    """An answer with an ETag of its bytes, or 304 where the asker has these very bytes."""
    tag = f'"{hashlib.sha256(response.body).hexdigest()[:32]}"'
    if _names(request.headers.get("if-none-match", ""), tag):
        response = Response(status_code=304)
    response.headers["ETag"] = tag
    return response


def done() -> Response:
    """The answer to a change that has nothing to tell."""
    return Response(status_code=204)


def _names(asked: str, tag: str) -> bool:
    return asked.strip() == "*" or tag in [
        each.strip().removeprefix("W/") for each in asked.split(",")
    ]
