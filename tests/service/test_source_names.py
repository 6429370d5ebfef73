"""By what sources are named: what is no name is refused, in every word that takes one."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

from memgraph import Orchestrator
from memgraph.errors import InvalidInput
from memgraph.model.enums import SourceName

KEYWORDS = {
    SourceName.PATH: "path",
    SourceName.CONVERSATION: "conversation_id",
    SourceName.RUN: "workflow_run_id",
    SourceName.CONTENT: "content_sha256",
}
WORDS: dict[str, Callable[[Orchestrator, SourceName, Any], object]] = {
    "source": lambda orc, kind, name: orc.sources.get(kind, name),
    "retract_source": lambda orc, kind, name: orc.sources.retract(
        **{KEYWORDS[kind]: name}, reason="asked"
    ),
}


NO_NAMES = ("", " ", "a\x00b", "lone \ud800 surrogate", 5, ["a"])


def test_what_is_no_name_of_a_source_is_refused(orc: Orchestrator) -> None:
    for kind, name in product(SourceName, NO_NAMES):
        for call in WORDS.values():
            with pytest.raises(InvalidInput):
                call(orc, kind, name)


def test_what_is_no_kind_of_source_is_refused(orc: Orchestrator) -> None:
    calls: tuple[Callable[[Any], object], ...] = (
        lambda kind: orc.sources.list(kind=kind),
        lambda kind: orc.sources.get(kind, "a"),
    )
    for kind, call in product(("", "file", "Path", 5), calls):
        with pytest.raises(InvalidInput, match="path, conversation, run, content"):
            call(kind)
