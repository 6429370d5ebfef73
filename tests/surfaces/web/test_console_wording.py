"""How the console counts."""

from __future__ import annotations

import pytest

from memgraph.surfaces.web.rendering import counted


@pytest.mark.parametrize(
    ("value", "said"), [(0, "0 memories"), (1, "1 memory"), (12_345, "12,345 memories")]
)
def test_one_is_no_plural(value: int, said: str) -> None:
    assert counted(value, "memory", "memories") == said
    assert counted(value, "time") == said.replace("memories", "times").replace("memory", "time")
