"""The demo, as a person runs it, on a copy of the examples."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from memgraph import MemoryKind, MemoryService, MemoryStatus, MemoryType

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
    done = subprocess.run(
        [sys.executable, place / "examples" / "demo.py"],
        capture_output=True,
        text=True,
        env=kept,
        check=False,
    )
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


def test_it_answers_three_questions_with_their_sources(shown: str) -> None:
    answers = shown.split("$ memgraph recall ")[1:]
    assert len(answers) == 4
    first_of_each = [each.split("2. ")[0] for each in answers]
    assert "a SQLite database" in first_of_each[0]
    assert "0002-keep-the-loan-register-in-sqlite.md#L" in first_of_each[0]
    assert "on Fridays" in first_of_each[1]
    assert "opening-hours.json#/memories/" in first_of_each[1]
    assert "nightly backup" in answers[2].split("# The bulletin")[0]


def test_it_shows_the_bulletin_and_the_trace_of_the_contradiction(shown: str) -> None:
    bulletin = shown.split("$ memgraph bulletin")[1]
    assert "## Open todos" in bulletin
    assert "open contradictions" in shown
    assert "Two volunteers take the late shift" in shown.split("$ memgraph trace")[1]
    assert "\x1b" not in shown


def test_it_answers_an_auditor(shown: str) -> None:
    case = shown.split("$ memgraph case show")[1].split("$ memgraph trace")[0]
    assert "closes at 20:00" in case
    assert "closes at 22:00" in case
    impact = shown.split("$ memgraph impact")[1].split("$ memgraph grounds")[0]
    assert "Two volunteers take the late shift" in impact
    grounds = shown.split("$ memgraph grounds")[1].split("$ memgraph stale")[0]
    assert "opening-hours.json" in grounds
    assert "contradiction" in shown.split("$ memgraph audit")[1]


def test_it_shows_what_a_prompt_gets(shown: str) -> None:
    block = shown.split("$ memgraph context")[1].split("$ memgraph contradictions")[0]
    assert "0002-keep-the-loan-register-in-sqlite.md:" in block
    assert "</memory " in block


def test_conversations_become_facts_with_their_turns_and_a_contradiction(
    place: Path, shown: str
) -> None:
    facts = shown.split("--session-id desk-2026-06-08")[1].split("$ memgraph")[0]
    assert "short answers." in facts
    assert "open on Sundays by August." in facts
    assert "belt grinder" not in facts
    assert "nothing expires before" in shown
    with MemoryService(place / ".demo", environ={}, background=False) as service:
        library = service.orchestrator("tool-library")
        [marked] = [
            each
            for each in library.contradictions.list(text="deposit").items
            if each.first.content == "The deposit for power tools is 50 euros."
        ]
        assert marked.second.content == "The deposit for power tools is 80 euros."
        (liked,) = (
            each
            for each in library.memories.list(types=[MemoryType.PREFERENCE])
            if "short answers" in each.content and each.kind is MemoryKind.FACT
        )
        traced = library.trace(liked.memory_id)
        said_in = {traced.memory_by_id[link.memory_id].session_id for link in traced.grounds}
        assert said_in == {"desk-2026-06-08", "desk-2026-06-09"}


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


def test_it_shows_an_everyday_change_and_a_year(shown: str) -> None:
    told = shown.split("The spare key of the depot is with Jonas now.", 1)[1]
    answers = told.split("$ memgraph recall")[1].split("# A year later")[0]
    newer, older = answers.index("with Jonas now"), answers.index("with Mira")
    assert newer < older
    assert answers.count("probably change") == 2
    year = re.search(r"(\d+) memories were active before, (\d+) are now", told)
    assert year is not None
    assert year[1] == year[2]
