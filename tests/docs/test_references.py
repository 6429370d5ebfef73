"""What is generated in the docs is as the code says."""

from __future__ import annotations

import pytest

from docs import references


@pytest.mark.parametrize("name", ["cli.md", "http.md", "mcp.md", "configuration.md"])
def test_the_docs_hold_what_is_generated(name: str) -> None:
    kept = (references.FOLDER / name).read_text(encoding="utf-8")
    assert kept == references.pages()[name], "make references writes it"
