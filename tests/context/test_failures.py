"""A failure is taken from whatever a program describes it with."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from memgraph.context.stores import failure_fields
from memgraph.errors import InvalidInput


class Code(Enum):
    TIMEOUT = "timeout"


class Model(BaseModel):
    code: Code
    at: datetime


@dataclass
class Data:
    code: Code
    path: Path
    attempts: list[int] = field(default_factory=list)


AT = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (Model(code=Code.TIMEOUT, at=AT), {"code": "timeout", "at": "2026-01-02T00:00:00Z"}),
        (Data(Code.TIMEOUT, Path("a/b"), [1]), {"code": "timeout", "path": "a/b", "attempts": [1]}),
        ({"code": "timeout", "stage": 2}, {"code": "timeout", "stage": 2}),
        ({"code": Code.TIMEOUT}, {"code": "timeout"}),
    ],
)
def test_code_and_fields(failure: Any, told: dict[str, Any]) -> None:
    assert failure_fields(failure) == ("timeout", told)


def test_a_number_is_a_code_too() -> None:
    assert failure_fields({"code": 404}) == ("404", {"code": 404})


@pytest.mark.parametrize(
    "failure",
    [{}, {"code": None}, {"code": ""}, {"code": True}, {"code": 1.5}, "timeout", Data, None, 7],
)
def test_without_a_code_it_is_no_failure(failure: Any) -> None:
    with pytest.raises(InvalidInput):
        failure_fields(failure)


def test_what_json_cannot_hold_is_refused() -> None:
    with pytest.raises(InvalidInput):
        failure_fields({"code": "x", "what": object()})
