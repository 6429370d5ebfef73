"""An adapter without its package says which extra brings it."""

from __future__ import annotations

import sys
from importlib import import_module

import pytest

from memgraph.errors import ExtraMissing


@pytest.mark.parametrize(
    ("adapter", "package", "extra"),
    [
        ("pydantic_ai", "pydantic_ai", "pydantic-ai"),
    ],
)
def test_the_extra_is_named(
    monkeypatch: pytest.MonkeyPatch, adapter: str, package: str, extra: str
) -> None:
    module = f"memgraph.surfaces.adapters.{adapter}"
    monkeypatch.delitem(sys.modules, module, raising=False)
    # What stands there as None cannot be imported.
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ExtraMissing, match=rf"memgraph-memory\[{extra}\]") as told:
        import_module(module)
    assert told.value.details == {"extra": extra}
