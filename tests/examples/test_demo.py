"""The demo, as a person runs it, on a copy of the examples."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest
from programs import ran

from memgraph import MemoryService, MemoryStatus, MemoryType

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


def test_it_shows_the_outcome_of_every_file(shown: str) -> None:
    for file in (EXAMPLES / "story").rglob("*.*"):
        (line,) = [
            each
            for each in shown.splitlines()
            if each.startswith(str(file.relative_to(EXAMPLES / "story")))
        ]
        assert " processed " in line


def test_it_answers_with_the_source_and_fits_a_screen(shown: str) -> None:
    answer = shown.split("$ memgraph recall ")[1].split("$ memgraph")[0]
    assert "a SQLite database" in answer
    assert "0002-keep-the-loan-register-in-sqlite.md#L" in answer
    assert len(shown.splitlines()) <= 60
    assert "\x1b" not in shown


def test_it_shows_a_change_as_a_prompt_gets_it(shown: str) -> None:
    block = shown.split("$ memgraph context")[1].split("$ memgraph")[0]
    older = re.search(r"\[(\d+)\].*, probably changed by \[(\d+)\]: .*with Jonas", block)
    newer = re.search(r"\[(\d+)\].*, probably changes \[(\d+)\]: .*with Priya now", block)
    assert older is not None
    assert newer is not None
    assert older.groups() == newer.groups()[::-1]
    assert "</memory " in block
    assert re.search(r"^memgraph accept tool-library \w{6} --reason TEXT", block, re.MULTILINE)


def test_it_shows_both_sides_of_a_contradiction_with_their_sources(shown: str) -> None:
    sides = shown.split("$ memgraph contradictions")[1]
    assert "closes at 20:00" in sides
    assert "closes at 22:00" in sides
    assert "] Mon 2026-03-02, Fact (opening-hours.json): " in sides


def test_one_decision_is_replaced_and_what_is_marked_stays_active(place: Path, shown: str) -> None:
    assert shown
    with MemoryService(place / ".demo", environ={}, background=False) as service:
        library = service.orchestrator("tool-library")
        declared = [
            each.edge
            for each in library.contradictions.list(limit=100).items
            if each.edge.weight == 1
        ]
        assert len(declared) == 1
        # A record says that it is superseded, and a list that a task is done: nothing else ended.
        ended = library.memories.list(statuses=[MemoryStatus.SUPERSEDED, MemoryStatus.RETRACTED])
        assert sorted(each.content.partition(":")[0] for each in ended) == [
            "Keep the loan register in a spreadsheet (superseded)",
            "Move the old loan cards to the archive box",
        ]
        (replaced,) = library.memories.list(
            types=[MemoryType.DECISION], statuses=[MemoryStatus.SUPERSEDED]
        )
        assert "spreadsheet" in replaced.content
        assert library.verify().ok


def test_a_replaced_decision_does_not_lead_the_answer_to_another_question(
    place: Path, shown: str
) -> None:
    assert shown
    with MemoryService(place / ".demo", environ={}, background=False) as service:
        library = service.orchestrator("tool-library")
        first = library.recall("How long do we keep backups?").items[0].memory
        assert "backup" in first.content
        first = library.recall("Where is the loan register kept?").items[0].memory
        assert "SQLite database" in first.content
