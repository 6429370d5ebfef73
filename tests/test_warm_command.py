"""The command that is forked does what the installed one does."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from warm_command import warm_command

Answer = tuple[int, str, str]
"""Exit code, standard output, standard error."""
Run = Callable[[Path, str], Answer]
INSTALLED = Path(sys.executable).parent
FULL = Path("/dev/full")


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """In a folder whose path is longer than any address of a socket may be."""
    folder = tmp_path_factory.mktemp("warm") / ("long" * 30)
    folder.mkdir()
    with warm_command(folder) as programs:
        yield programs


@pytest.fixture
def answer(tmp_path: Path) -> Run:
    """Runs a line of the shell with the ``memgraph`` of a folder."""

    def run(programs: Path, line: str) -> Answer:
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=tmp_path,
            env={
                **os.environ,
                "MEMGRAPH_ROOT": str(tmp_path / "root"),
                "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            },
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    return run


LINES = {2: "memgraph --version && memgraph nope", 1: f"memgraph --version >{FULL}"}


@pytest.mark.parametrize(("code", "line"), LINES.items())
def test_answers_are_those_of_the_installed_command(
    warm: Path, answer: Run, code: int, line: str
) -> None:
    if str(FULL) in line and not FULL.exists():
        pytest.skip(f"needs {FULL}")
    forked = answer(warm, line)
    assert forked == answer(INSTALLED, line)
    assert forked[0] == code
    assert "Traceback" not in forked[2]


def test_nothing_is_loaded_from_where_a_command_runs(
    warm: Path, answer: Run, tmp_path: Path
) -> None:
    # It is loaded for the first list that is shown.
    (tmp_path / "rich.py").write_text("raise SystemExit('taken for the package')")
    assert answer(warm, "memgraph init orc-1 && memgraph sessions orc-1")[0] == 0
