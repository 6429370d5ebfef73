"""Answers: the service's values as JSON, made once."""

from __future__ import annotations

import hashlib

from fastapi import Request, Response

from memgraph.model.values import Value

JSON = "application/json"


def answered(value: Value, *, status: int = 200) -> Response:
    """A value as the body of an answer.

    The declared response model documents it; nothing validates a second time what the service made.
    """
    return Response(value.model_dump_json(), status, media_type=JSON)


def tagged(value: Value, request: Request) -> Response:
    """``answered`` with an ETag, or 304 where the asker has these very bytes."""
    response = answered(value)
    tag = f'"{hashlib.sha256(response.body).hexdigest()[:32]}"'
    asked = request.headers.get("if-none-match", "")
    if tag in [each.strip().removeprefix("W/") for each in asked.split(",")] or asked == "*":
        response = Response(status_code=304)
    response.headers["ETag"] = tag
    return response
