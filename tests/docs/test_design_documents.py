"""docs/design-documents.md lists what five documents ask for: its names and tests exist."""

from __future__ import annotations

import re
import sqlite3
import sys
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from inspect import get_annotations
from pathlib import Path
from typing import Any

import pytest

import memgraph
from docs.references import command_paths
from memgraph.config.loader import keys
from memgraph.errors import ExtraMissing
from memgraph.operations.tools.tools import TOOLS
from memgraph.surfaces.http.app import openapi

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/design-documents.md").read_text(encoding="utf-8")
DOCUMENTS = ROOT.parent / "shared" / "spec"
SECTIONS = re.findall(r"^## (\d{3}): .+\n((?:(?!^## ).*\n)*)", PAGE, re.MULTILINE)
CELL = re.compile(r"(?<!\\)\|")
SPAN = re.compile(r"`([^`]+)`")

# Products, examples and local variables in the documents.
NO_NAMES = re.findall(
    r"\w+",
    """
    FadeMem InMemory MemGPT MemoryOS OpenAI SingleRunner TypeScript spaCy sqlalchemy_session
    agent_engine bug_fix ep_001 ep_047 ep_112 project_alpha ros_workspace web_app
    all_items budget_allocation content_rowid current_cost current_tokens db_path default_factory
    event_bus file_path final_output global_items item_value items_sorted new_conf old_memory_id
    op_value project_items task_items to_evict total_cost ContextItems __init__
    """,
)


def _rows() -> Iterator[tuple[str, list[str]]]:
    """Return (document, cells) of every row of the five tables."""
    for document, text in SECTIONS:
        table = [line for line in text.splitlines() if line.startswith("|")]
        for line in table[2:]:
            yield document, [cell.strip() for cell in CELL.split(line)[1:-1]]


ROWS = list(_rows())
NAMES = sorted({name for _, cells in ROWS for name in SPAN.findall(cells[1])})
TESTS = sorted({test for _, cells in ROWS for test in SPAN.findall(cells[2])})


@pytest.fixture(scope="module")
def columns(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """Return the columns of each table and view of a new store."""
    with memgraph.MemoryService(tmp_path_factory.mktemp("root")) as service:
        service.create("store")
        connection = sqlite3.connect(service.paths("store").database)
    named = connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")
    tables = {
        table: {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
        for (table,) in named
    }
    connection.close()
    return tables


def _member(thing: Any, path: list[str]) -> bool:
    """Return whether a member exists; a field without a default is known by its annotation."""
    for name in path:
        if not hasattr(thing, name):
            bases = getattr(thing, "__mro__", ())
            return path[-1] == name and any(name in get_annotations(base) for base in bases)
        member = getattr(thing, name)
        # A group of operations, such as ``Orchestrator.contexts``.
        thing = getattr(member, "kind", member)
    return True


def _importable(path: list[str]) -> bool:
    for end in range(len(path), 0, -1):
        try:
            module = import_module(".".join(path[:end]))
        except ModuleNotFoundError:
            continue
        except ExtraMissing:
            return end == len(path)
        return _member(module, path[end:])
    return False


def _exists(name: str, columns: dict[str, set[str]]) -> bool:
    head, *rest = name.split(".")
    if name.startswith("memgraph "):
        return name.removeprefix("memgraph ") in command_paths()
    if " /" in name:
        method, path = name.split(" ")
        return method.lower() in openapi()["paths"].get(path, ())
    if head == "orc":
        return _member(memgraph.Orchestrator, rest)
    if head in ("memgraph", "ingest"):
        return _importable([head, *rest])
    if head in columns:
        return all(column in columns[head] for column in rest)
    if head in memgraph.__all__:
        return _member(memgraph, [head, *rest])
    return name in keys() or name in TOOLS


def test_every_name_of_the_page_exists(columns: dict[str, set[str]]) -> None:
    assert not [name for name in NAMES if not _exists(name, columns)]


def test_every_test_of_the_page_exists() -> None:
    assert not [test for test in TESTS if not _is_test(test)]


def _is_test(name: str) -> bool:
    path, _, function = name.partition("::")
    if not path.startswith("tests/") or not (ROOT / path).is_file():
        return False
    return not function or f"def {function}(" in (ROOT / path).read_text(encoding="utf-8")


def test_every_row_works_or_differs_for_a_reason() -> None:
    """It prints how many rows do, which the page says, too."""
    assert {document for document, _ in ROWS} == {"000", "001", "002", "003", "004"}
    counts = Counter[str]()
    for document, cells in ROWS:
        assert len(cells) == 4, (document, cells)
        named, differs = bool(SPAN.findall(cells[1]) or SPAN.findall(cells[2])), bool(cells[3])
        assert named or differs, (document, cells)
        assert "missing" not in cells[3].lower(), (document, cells)
        counts["as asked" if not differs else "otherwise" if named else "not"] += 1
    told = (
        f"Of {len(ROWS)} rows {counts['as asked']} work as asked, {counts['otherwise']} work with"
        f" the difference that is named, and {counts['not']} are left out for the reason that is"
        " named."
    )
    sys.stdout.write(f"{told}\n")
    assert told in " ".join(PAGE.split())


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def test_every_name_of_a_document_is_in_its_table() -> None:
    """Words with an underscore or a capital inside, and what a document defines, are names."""
    if not DOCUMENTS.is_dir():
        pytest.skip("the documents are not beside this repository")
    name_like = re.compile(
        r"\b[a-z]+(?:_[a-z0-9]+)+\b|\b[A-Za-z]+[a-z][A-Z]\w*\b|(?<=class )\w+|(?<=def )\w+"
    )
    known = {number: {*re.findall(r"\w+", text), *NO_NAMES} for number, text in SECTIONS}
    missing = {
        (file.name[:3], name)
        for file in sorted(DOCUMENTS.glob("*.txt"))
        for name in name_like.findall(file.read_text(encoding="utf-8"))
        if not {name, _snake(name)} & known[file.name[:3]]
    }
    assert not missing
