"""Runs command lines in this process, over a root of their own."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from memgraph import MemoryService
from memgraph.surfaces.cli import main


@dataclass(frozen=True)
class Ran:
    """A command line that ended."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> dict[str, Any]:
        """What a successful ``--json`` printed."""
        assert (self.code, self.err) == (0, "")
        assert self.out.count("\n") == 1
        told = json.loads(self.out)
        assert told["ok"] is True
        return told["data"]

    @property
    def error(self) -> dict[str, Any]:
        """What a failed ``--json`` printed."""
        assert self.code != 0
        assert self.out == ""
        assert self.err.count("\n") == 1
        told = json.loads(self.err)
        assert told["ok"] is False
        return told["error"]


class CommandLine:
    """``memgraph`` over one root; ``json`` adds the option and gives what it printed."""

    def __init__(
        self, root: Path, capture: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch
    ) -> None:
        self.root = root
        self._capture = capture
        self._patch = patch

    def __call__(self, *arguments: str, stdin: str = "") -> Ran:
        given = io.BytesIO(stdin.encode("utf-8", "surrogatepass"))
        self._patch.setattr("sys.stdin", io.TextIOWrapper(given, "utf-8", "surrogatepass"))
        self._capture.readouterr()
        code = main([*arguments])
        captured = self._capture.readouterr()
        return Ran(code, captured.out, captured.err)

    def json(self, *arguments: str, stdin: str = "") -> dict[str, Any]:
        return self(*arguments, "--json", stdin=stdin).data

    def error(self, *arguments: str, stdin: str = "") -> dict[str, Any]:
        return self(*arguments, "--json", stdin=stdin).error

    def remember(self, content: str, *options: str) -> str:
        """Stores a memory in orc-1 and gives its id."""
        return str(self.json("remember", "orc-1", content, *options)["memory_id"])

    def database(self, name: str = "orc-1") -> Path:
        return self.root / name / "memory" / "memory.db"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root with the orchestrator orc-1, for a server."""
    with MemoryService(tmp_path / "root", environ={}, background=False) as service:
        service.create("orc-1")
    return tmp_path / "root"


@pytest.fixture
def empty(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> CommandLine:
    """A root without an orchestrator."""
    root = tmp_path / "root"
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MEMGRAPH_ROOT", str(root))
    return CommandLine(root, capsys, monkeypatch)


@pytest.fixture
def cli(empty: CommandLine) -> CommandLine:
    """A root with the orchestrator orc-1."""
    assert empty("init", "orc-1").code == 0
    return empty


@pytest.fixture
def contradiction(cli: CommandLine) -> Callable[[], tuple[str, str, str]]:
    """Makes an open contradiction; gives both memories and the edge."""

    def make() -> tuple[str, str, str]:
        one = cli.remember("The shop closes at 20:00.")
        other = cli.remember("Customers are served until 22:00.")
        edge = cli.json("relate", "orc-1", other, "Contradicts", one)["edge_id"]
        return one, other, str(edge)

    return make
