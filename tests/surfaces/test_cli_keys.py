"""What an operator does with keys at the command line."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from conftest import CommandLine

GRANTS = ("--orchestrator", "orc-1", "--permission", "read")


def states(cli: CommandLine) -> dict[str, str]:
    return {each["key_id"]: each["state"] for each in cli.json("key", "list")["keys"]}


@pytest.fixture
def full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that can be made, on a disk without room for what it is to hold."""
    target = tmp_path / "app.key"
    opened = os.open

    def opening(path: Any, *arguments: Any, **options: Any) -> int:
        handle = opened(path, *arguments, **options)
        if Path(path) == target:
            os.close(handle)
            return opened("/dev/full", os.O_WRONLY)
        return handle

    monkeypatch.setattr(os, "open", opening)
    return target


def test_no_key_is_made_or_ended_whose_secret_cannot_be_kept(cli: CommandLine, full: Path) -> None:
    assert cli.error("key", "create", "app", *GRANTS, "-o", str(full))["code"] == "cli.system"
    assert states(cli) == {}
    assert not full.exists()
    key_id = cli.json("key", "create", "app", *GRANTS)["key_id"]
    assert cli.error("key", "rotate", key_id, "-o", str(full))["code"] == "cli.system"
    assert states(cli) == {key_id: "valid"}


def test_a_file_holds_a_secret_and_nothing_else(cli: CommandLine, tmp_path: Path) -> None:
    printed = cli.json("key", "create", "app", *GRANTS)["secret"]
    target = tmp_path / "app.key"
    cli.json("key", "create", "app", *GRANTS, "-o", str(target))
    kept = target.read_text("ascii")
    assert kept == f"{kept.strip()}\n"
    assert len(kept.strip()) == len(printed)


def test_a_key_that_is_not_there_makes_no_root_and_no_file(
    empty: CommandLine, tmp_path: Path
) -> None:
    target = tmp_path / "app.key"
    for command in (["revoke"], ["rotate", "-o", str(target)], ["forget"]):
        assert empty.error("key", *command, "0" * 12)["code"] == "memory.not_found"
        assert not empty.root.exists(), command
        assert not target.exists()


def test_a_key_for_an_orchestrator_that_is_not_there_is_made_with_a_note(cli: CommandLine) -> None:
    made = cli("key", "create", "app", *GRANTS, "--orchestrator", "nosuch")
    assert (made.code, made.err.count("\n")) == (0, 1)
    assert "no orchestrator nosuch yet" in made.err
    for names in (["orc-1"], ["*"]):
        given = [part for each in names for part in ("--orchestrator", each)]
        assert cli("key", "create", "app", *given, "--permission", "read").err == ""
