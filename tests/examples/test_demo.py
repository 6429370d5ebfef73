"""The demo, as a person runs it, on a copy of the examples."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest
from programs import ran

from memgraph import MemoryService, MemoryStatus

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo")
    shutil.copytree(EXAMPLES, folder / "examples")
    return folder


@pytest.fixture(scope="module")
def shown(place: Path) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MEMGRAPH_")}
    kept["COLUMNS"] = "200"  # no line is wrapped in the middle of what is looked for
    done = ran([str(place / "examples" / "demo.py")], env=kept)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_shows_files_an_answer_a_change_and_a_contradiction(shown: str) -> None:
    for file in (EXAMPLES / "story").rglob("*.*"):
        name = str(file.relative_to(EXAMPLES / "story"))
        (line,) = [each for each in shown.splitlines() if each.startswith(name)]
        assert " processed " in line
    answer = shown.split("$ memgraph recall ")[1].split("$ memgraph")[0]
    assert "a SQLite database" in answer
    assert "decisions/0002-keep-the-loan-register-in-sqlite.md:" in answer
    block = shown.split("$ memgraph context")[1].split("$ memgraph")[0]
    older = re.search(r"\[(\d+)\].*, probably changed by \[(\d+)\]: .*with Jonas", block)
    newer = re.search(r"\[(\d+)\].*, probably changes \[(\d+)\]: .*with Priya now", block)
    assert older is not None
    assert newer is not None
    assert older.groups() == newer.groups()[::-1]
    assert "</memory " in block
    assert re.search(r"^memgraph accept tool-library \w{6} --reason TEXT", block, re.MULTILINE)
    sides = shown.split("$ memgraph contradictions")[1]
    assert "closes at 20:00" in sides
    assert "closes at 22:00" in sides
    assert "] Mon 2026-03-02, Fact (opening-hours.json): " in sides
    assert len(shown.splitlines()) <= 60
    assert "\x1b" not in shown


def test_one_decision_is_replaced_and_what_is_marked_stays_active(place: Path, shown: str) -> None:
    assert shown
    with MemoryService(place / ".demo", environ={}, background=False) as service:
        library = service.orchestrator("tool-library")
        marks = library.contradictions.list(limit=100).items
        assert [each.edge.weight for each in marks].count(1) == 1
        # A record says that it is superseded, and a list that a task is done: nothing else ended.
        ended = library.memories.list(statuses=[MemoryStatus.SUPERSEDED, MemoryStatus.RETRACTED])
        assert sorted(each.content.partition(":")[0] for each in ended) == [
            "Keep the loan register in a spreadsheet (superseded)",
            "Move the old loan cards to the archive box",
        ]
        assert library.verify().ok
        # A replaced decision does not lead the answer to another question.
        for question, answer in (
            ("How long do we keep backups?", "backup"),
            ("Where is the loan register kept?", "SQLite database"),
        ):
            assert answer in library.recall(question).items[0].memory.content
