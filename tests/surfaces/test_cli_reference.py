"""The table of commands, what loading them costs, and their page in the docs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.core import TyperGroup

from docs.references import command_paths, derived_commands
from memgraph import MemoryService
from memgraph.surfaces.cli.app import command_names, load_command

ROOT = Path(__file__).resolve().parents[2]
DOCS = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")

HEAVY = [
    "sqlmodel",
    "sqlalchemy",
    "numpy",
    "networkx",
    "litellm",
    "alembic",
    "rich",
    "ingest",
    "memgraph.service",
    "memgraph.store",
]
# typer itself reads the arguments of a command with pydantic.
HEAVY_FOR_HELP = [*HEAVY, "pydantic"]
# The declarations of operations are looked through, and nothing behind them.
HEAVY_FOR_A_NAME = [*HEAVY, "memgraph.store.memories", "memgraph.operations.orchestrator"]


def test_no_option_of_a_command_is_a_common_one() -> None:
    """One of them would be given what is meant for the other."""
    for path in command_paths():
        name, _, inner = path.partition(" ")
        command = load_command(name)
        if isinstance(command, TyperGroup):
            command = command.commands[inner]
        for names in (
            [each.name for each in command.params],
            [each for one in command.params for each in one.opts],
        ):
            assert len(names) == len(set(names)), path


def test_the_docs_have_a_heading_and_the_data_of_every_command_and_of_no_other() -> None:
    groups = [name for name in command_names() if isinstance(load_command(name), TyperGroup)]
    headings = re.findall(r"^#+ memgraph (.+)$", DOCS, re.MULTILINE)
    assert sorted(headings) == sorted([*command_paths(), *groups])
    for path in {*command_paths()} - derived_commands().keys():
        assert f"| `{path}` |" in DOCS


@pytest.mark.parametrize(
    ("arguments", "heavy"),
    [
        (["--help"], HEAVY_FOR_HELP),
        (["no-such-command"], HEAVY_FOR_A_NAME),
        (["recall", "--help"], HEAVY),
        (["recall", "orc-1", "gate"], ["alembic", "litellm", "ingest"]),
    ],
)
def test_no_command_loads_what_it_does_not_need(
    tmp_path: Path, arguments: list[str], heavy: list[str]
) -> None:
    program = (
        "import sys; from memgraph.surfaces.cli import main; main(sys.argv[1:]);"
        f"print([each for each in {heavy} if each in sys.modules], file=sys.stderr)"
    )
    if "orc-1" in arguments:
        with MemoryService(tmp_path, environ={}, background=False) as service:
            service.create("orc-1")
    command = [sys.executable, "-c", program, "--root", str(tmp_path), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1] == "[]"
