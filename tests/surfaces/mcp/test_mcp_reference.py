"""docs/mcp.md is what the server says of itself."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import pytest

from memgraph.errors import ExtraMissing
from memgraph.surfaces.mcp.reference import reference

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "mcp.md"


def test_the_document_holds_the_reference() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    told = text[text.index("## Tools") :]
    assert told == reference(), "make references writes docs/mcp.md"


def test_without_its_packages_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp_types", None)
    for name in [each for each in sys.modules if each.startswith("memgraph.surfaces.mcp")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ExtraMissing, match="memgraph-memory\\[server\\]"):
        import_module("memgraph.surfaces.mcp.stdio")
