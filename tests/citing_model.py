"""A model that says every line of the block that it reads, for tests of who is told what."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar
from unittest.mock import patch

from memgraph import Sensitivity
from memgraph.operations.life.models import LanguageModel

_LINE = re.compile(r"^\[(\d+)\] .*?: (.*)$", re.MULTILINE)


class CitingCompletion:
    """Answers a question with the text of each line, citing it."""

    name: ClassVar[str] = "fake"

    def complete_json(self, system: str, user: str, schema: Mapping[str, Any]) -> Any:
        lines = [(int(number), text) for number, text in _LINE.findall(user)]
        return {"answered": True, "sentences": [{"text": t, "lines": [n]} for n, t in lines]}


@contextmanager
def citing() -> Iterator[None]:
    """Let ``ask`` use such a model, which may read everything."""
    model = LanguageModel(CitingCompletion(), Sensitivity.RESTRICTED)
    with patch("memgraph.operations.context.answer.required_model", lambda _opened: model):
        yield
