"""docs/internals.md names modules and functions: those that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
INTERNALS = (ROOT / "docs/internals.md").read_text(encoding="utf-8")
PATHS = sorted(set(re.findall(r"`((?:\w+/)+\w+\.py)`", INTERNALS)))
ROWS = re.findall(r"^\| [^|]+ \| (`\w+`(?:, `\w+`)* in `.+`) \|$", INTERNALS, re.MULTILINE)


def _place(path: str) -> Path:
    places = [folder / path for folder in (ROOT, ROOT / "memgraph", ROOT / "memgraph/surfaces")]
    return next((place for place in places if place.is_file()), ROOT / path)


@pytest.mark.parametrize("path", PATHS)
def test_a_module_that_is_named_exists(path: str) -> None:
    assert _place(path).is_file()


@pytest.mark.parametrize("row", ROWS)
def test_a_function_that_decides_is_in_its_module(row: str) -> None:
    for names, path in re.findall(r"((?:`\w+`(?:, )?)+) in `([\w/]+\.py)`", row):
        tree = ast.parse(_place(path).read_text(encoding="utf-8"))
        functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert set(re.findall(r"\w+", names)) <= functions


def test_the_table_of_decisions_is_read() -> None:
    assert len(ROWS) >= 10
    assert len(PATHS) >= 30
