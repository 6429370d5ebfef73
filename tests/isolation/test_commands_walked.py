"""Every command of the command line on a root: nothing hidden is told to who says what they see."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pysqlite3
import pytest
from canaries import EVERYTHING, leaks, words_in
from command_walks import BY_THEMSELVES, COMMAND_WALKS, OPERATORS, Line
from route_walks import View
from sampling import third
from served_worlds import ONE, SEEING, Built

from docs.references import command_paths, derived_commands
from memgraph import Viewer
from memgraph.surfaces.cli import main


@dataclass
class Walker:
    """Runs command lines on a copy of the world."""

    made: Built
    root: Path
    capture: pytest.CaptureFixture[str]

    def run(self, line: Line, *options: str) -> tuple[int, str]:
        """Exit code, and all that was printed."""
        self.capture.readouterr()
        code = main([*line, "--root", str(self.root), *options])
        captured = self.capture.readouterr()
        return code, captured.out + captured.err

    def rows(self, viewer: Viewer) -> dict[str, tuple[Any, ...]]:
        """Memories that are hidden from somebody, as they are stored."""
        hidden = {each.memory_id for each in self.made.world.hidden(viewer)}
        path = self.root / ONE / "memory" / "memory.db"
        with pysqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
            found = database.execute("SELECT memory_id, * FROM memories").fetchall()
        database.close()
        return {row[0]: row for row in found if row[0] in hidden}

    def lines(self, viewer: Viewer) -> list[Line]:
        view = View(self.made.world, self.made.other, viewer, self.made.made)
        return [line for lines in COMMAND_WALKS.values() for line in lines(view)]


@pytest.fixture
def walker(
    made: Built,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Walker:
    for name in ("MEMGRAPH_ROOT", "MEMGRAPH_SERVER", "MEMGRAPH_KEY", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "400")
    shutil.copytree(made.root, tmp_path / "root")
    return Walker(made, tmp_path / "root", capsys)


def options_of(viewer: Viewer, line: Line) -> list[str]:
    """The common options that let a command line see what a viewer sees."""
    options = ["--clearance", viewer.clearance.value]
    if line[0] in BY_THEMSELVES:
        return options
    for name, ids in (("--project", viewer.project_ids), ("--session", viewer.session_ids)):
        options += [word for each in sorted(ids) for word in (name, each)]
    return options


def test_every_command_is_walked() -> None:
    # Benchmarks measure on data of their own.
    paths = {path for path in command_paths() if not path.startswith("bench ")}
    assert paths | derived_commands().keys() == COMMAND_WALKS.keys() | OPERATORS.keys()
    assert COMMAND_WALKS.keys() & OPERATORS.keys() == set()


@pytest.mark.parametrize(("who", "form"), [("public", "--json"), ("a task", "")])
def test_nothing_hidden_is_told_on_a_root(walker: Walker, who: str, form: str) -> None:
    viewer = SEEING[who].viewer
    before, forbidden = walker.rows(viewer), walker.made.forbidden(viewer)
    for line in third(walker.lines(viewer), len(form)):
        code, told = walker.run(line, *options_of(viewer, line), *filter(None, [form]))
        # A wrong command line would prove nothing.
        assert code in (0, 1), (line, told)
        assert "Traceback" not in told
        assert leaks([told], forbidden) - leaks(line, forbidden) == set(), line
    assert before
    assert walker.rows(viewer) == before


def test_every_walk_leads_somewhere(walker: Walker) -> None:
    """An owner is shown by each command what others are not, or told that it was done."""
    viewer = SEEING["no scope"].viewer
    done: set[str] = set()
    words: set[str] = set()
    for line in walker.lines(viewer):
        if line[0] not in done:
            code, told = walker.run(line, *options_of(EVERYTHING, line))
            words |= words_in([told])
            done |= {line[0]} if code == 0 else set()
    assert COMMAND_WALKS.keys() - done == set()
    assert words & walker.made.forbidden(viewer)
