"""Every command of the command line, on a root and on a server: nothing hidden is told."""

from __future__ import annotations

import shutil
from collections.abc import Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pysqlite3
import pytest
from canaries import EVERYTHING, leaks, words_in
from command_walks import BY_THEMSELVES, COMMAND_WALKS, OPERATORS, OPERATORS_HERE, Line, elsewhere
from route_walks import View
from sampling import third
from served_worlds import ONE, OWNERS, PEOPLE, SEEING, SOON, Built
from serving_worlds import REMOTE, serving

from memgraph import Viewer
from memgraph.clock import FixedClock
from memgraph.providers.fake import FakeEmbedding
from memgraph.surfaces.cli import main
from memgraph.surfaces.cli.app import command_names
from memgraph.surfaces.cli.reference import command_paths, derived_commands

SERVER_OPTIONS: dict[str, Any] = {
    "clock": FixedClock(SOON + 500),
    "embedding": FakeEmbedding(16),
}


@dataclass
class Walker:
    """Runs command lines on a copy of the world."""

    made: Built
    root: Path
    capture: pytest.CaptureFixture[str]

    def run(self, line: Line, *options: str) -> tuple[int, str]:
        """Exit code, and all that was printed."""
        self.capture.readouterr()
        code = main([*line, *options])
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

    def view(self, viewer: Viewer) -> View:
        return View(self.made.world, self.made.other, viewer, self.made.made)


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
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    shutil.copytree(made.root, tmp_path / "root")
    return Walker(made, tmp_path / "root", capsys)


HERE = COMMAND_WALKS.keys() - OPERATORS_HERE.keys()
ON_A_SERVER = REMOTE | derived_commands().keys()
THERE = COMMAND_WALKS.keys() & ON_A_SERVER


def lines_of(view: View, commands: Set[str]) -> list[tuple[str, Line]]:
    """Command lines by what their command is called."""
    return [
        (command, line)
        for command, lines in COMMAND_WALKS.items()
        if command in commands
        for line in lines(view)
    ]


def options_of(viewer: Viewer, line: Line) -> list[str]:
    """The common options that let a command line see what a viewer sees."""
    options = ["--clearance", viewer.clearance.value]
    if line[0] in BY_THEMSELVES:
        return options
    for name, ids in (("--project", viewer.project_ids), ("--session", viewer.session_ids)):
        options += [word for each in sorted(ids) for word in (name, each)]
    return options


def test_every_command_is_walked() -> None:
    assert {each.split()[0] for each in command_paths()} == set(command_names())
    # Benchmarks measure on data of their own.
    paths = {path for path in command_paths() if not path.startswith("bench ")}
    assert paths | derived_commands().keys() == COMMAND_WALKS.keys() | OPERATORS.keys()
    assert COMMAND_WALKS.keys() & OPERATORS.keys() == set()
    assert COMMAND_WALKS.keys() >= ON_A_SERVER
    assert OPERATORS_HERE.keys() <= ON_A_SERVER


@pytest.mark.parametrize(("who", "form"), [("public", "--json"), ("a task", "")])
def test_nothing_hidden_is_told_on_a_root(walker: Walker, who: str, form: str) -> None:
    viewer = SEEING[who].viewer
    before, forbidden = walker.rows(viewer), walker.made.forbidden(viewer)
    for _, line in third(lines_of(walker.view(viewer), HERE), len(form)):
        options = ["--root", str(walker.root), *options_of(viewer, line)]
        _told_nothing(walker, forbidden, line, [*options, form] if form else options)
    assert before
    assert walker.rows(viewer) == before


@pytest.mark.parametrize(("who", "form"), [("public", ""), ("a project", "--json")])
def test_nothing_hidden_is_told_by_a_server(walker: Walker, who: str, form: str) -> None:
    viewer = SEEING[who].viewer
    before, forbidden = walker.rows(viewer), walker.made.forbidden(viewer)
    with serving(walker.root, **SERVER_OPTIONS) as running:
        options = ["--server", running.url, "--key", walker.made.secrets[who]]
        options += [form] if form else []
        view = walker.view(viewer)
        lines = [*elsewhere(view), *(line for _, line in lines_of(view, THERE))]
        for line in third(lines, len(form)):
            _told_nothing(walker, forbidden, line, options)
    assert before
    assert walker.rows(viewer) == before


def _told_nothing(
    walker: Walker, forbidden: frozenset[str], line: Line, options: list[str]
) -> None:
    code, told = walker.run(line, *options)
    # A wrong command line would prove nothing.
    assert code in (0, 1), (line, told)
    assert "Traceback" not in told
    assert leaks([told], forbidden) - leaks(line, forbidden) == set(), line
    # Who sees a part is given no copy of everything.
    assert [*Path.cwd().iterdir()] == []


@pytest.mark.parametrize("where", ["root", "server"])
def test_every_walk_leads_somewhere(walker: Walker, where: str) -> None:
    """An owner is shown by each command what others are not, or told that it was done."""
    view = walker.view(SEEING["no scope"].viewer)
    commands = HERE if where == "root" else THERE
    done: set[str] = set()
    words: set[str] = set()
    with serving(walker.root, **SERVER_OPTIONS) as running:
        keys = [walker.made.secrets[each] for each in OWNERS]
        more = [(line[0], line) for line in elsewhere(view)]
        for command, line in [*lines_of(view, commands), *more]:
            here = ["--root", str(walker.root), *options_of(EVERYTHING, line)]
            there = [["--server", running.url, "--key", each] for each in keys]
            for options in [here] if where == "root" else there:
                if command not in done:
                    code, told = walker.run(line, *options)
                    words |= words_in([told])
                    done |= {command} if code == 0 else set()
    assert done >= commands
    assert words & walker.made.forbidden(view.viewer)


@pytest.mark.parametrize("who", ["nobody", "garbage", "revoked", "expired", "of another"])
def test_who_may_not_enter_is_told_nothing(walker: Walker, who: str) -> None:
    view = walker.view(PEOPLE[who].viewer)
    with serving(walker.root, **SERVER_OPTIONS) as running:
        options = ["--server", running.url, "--key", walker.made.secrets.get(who, "none")]
        for command in ("recall", "list", "export", "stats"):
            line = next(COMMAND_WALKS[command](view))
            code, told = walker.run(line, *options)
            assert code == 1
            assert words_in([told]) == set()
