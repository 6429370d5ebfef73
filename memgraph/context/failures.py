"""What failed, however a program describes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from enum import Enum
from typing import Any, TypeAlias

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, to_jsonable_python

from memgraph.errors import InvalidInput

FailureSignature: TypeAlias = Mapping[str, Any] | BaseModel | Any
"""A mapping, a pydantic model or a dataclass with a ``code``: a text, a number or an enum."""


def failure_fields(failure: FailureSignature) -> tuple[str, dict[str, Any]]:
    """The code of a failure as text, and all of it as plain JSON.

    Raises:
        InvalidInput: it is none of the three, has no code, or holds what JSON cannot.
    """
    told = _fields(failure)
    code = told.get("code")
    if isinstance(code, Enum):
        code = code.value
    if isinstance(code, bool) or not isinstance(code, str | int) or code == "":
        raise InvalidInput("a failure has a code", field="failure.code")
    try:
        plain: dict[str, Any] = to_jsonable_python(told, inf_nan_mode="strings")
    except (PydanticSerializationError, ValueError, RecursionError) as error:
        raise InvalidInput("a failure holds what JSON cannot", field="failure") from error
    return str(code), plain


def _fields(failure: FailureSignature) -> dict[str, Any]:
    if isinstance(failure, BaseModel):
        return failure.model_dump()
    if isinstance(failure, Mapping):
        return dict(failure)
    if is_dataclass(failure) and not isinstance(failure, type):
        return asdict(failure)
    raise InvalidInput(
        "a failure is a mapping, a pydantic model or a dataclass with a code", field="failure"
    )
