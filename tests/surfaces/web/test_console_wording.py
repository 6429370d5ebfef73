"""How the console counts, and what it says for codes."""

from __future__ import annotations

import re

import pytest

from memgraph import MemoryService
from memgraph.surfaces.web.rendering import REMEDIES, counted, remedy


@pytest.mark.parametrize(
    ("value", "said"), [(0, "0 memories"), (1, "1 memory"), (12_345, "12,345 memories")]
)
def test_one_is_no_plural(value: int, said: str) -> None:
    assert counted(value, "memory", "memories") == said
    assert counted(value, "time") == said.replace("memories", "times").replace("memory", "time")


def test_every_code_of_health_has_words_and_something_to_do() -> None:
    told = re.findall(r"``([a-z_]+\.[a-z_]+)``", MemoryService.health.__doc__ or "")
    assert len(told) >= 10
    assert set(told) == set(REMEDIES)
    for code in told:
        assert remedy(code).endswith(".")
        assert code not in remedy(code)
    assert remedy("a_new.code") == "a new code."
