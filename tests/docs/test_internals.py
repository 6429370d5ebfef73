"""docs/internals.md names modules and functions: those that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
INTERNALS = (ROOT / "docs/internals.md").read_text(encoding="utf-8")
PATHS = sorted(set(re.findall(r"`((?:\w+/)+\w+\.py)`", INTERNALS)))
ROWS = re.findall(r"^\| [^|]+ \| (`\w+`(?:, `\w+`)* in `.+`) \|$", INTERNALS, re.MULTILINE)


def _place(path: str) -> Path:
    places = [folder / path for folder in (ROOT, ROOT / "memgraph", ROOT / "memgraph/surfaces")]
    return next((place for place in places if place.is_file()), ROOT / path)


def test_the_modules_that_are_named_exist() -> None:
    assert len(PATHS) >= 30
    assert [path for path in PATHS if not _place(path).is_file()] == []


def test_the_functions_that_decide_are_in_their_modules() -> None:
    assert len(ROWS) >= 10
    named = re.findall(r"((?:`\w+`(?:, )?)+) in `([\w/]+\.py)`", "\n".join(ROWS))
    for names, path in named:
        tree = ast.parse(_place(path).read_text(encoding="utf-8"))
        functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert set(re.findall(r"\w+", names)) <= functions, path
