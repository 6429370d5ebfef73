"""What goes wrong: codes, exit codes, where it is told, and that nothing is touched."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import CommandLine

BAD_NAMES = ["..", "a/b", "", "\x1b[31m"]

NEEDING_A_DATABASE = [
    ("list",),
    ("get", "fact_1"),
    ("recall", "question"),
    ("remember", "text"),
    ("verify",),
    ("embed",),
    ("ingest",),
]


def with_name(command: tuple[str, ...], name: str) -> list[str]:
    """The arguments, with the orchestrator's name behind the command's own."""
    return [command[0], name, *command[1:]]


def garbled(database: Path) -> None:
    database.write_bytes(b"not a database, but as long as one. " * 400)


def fingerprint(folder: Path) -> dict[str, str]:
    """Every file below a folder but logs and locks, with a digest of its content."""
    return {
        str(each.relative_to(folder)): hashlib.sha256(each.read_bytes()).hexdigest()
        for each in sorted(folder.rglob("*"))
        if each.is_file() and not each.name.endswith((".log", ".lock"))
    }


def test_an_unknown_orchestrator_or_a_bad_name_makes_nothing(empty: CommandLine) -> None:
    for command in NEEDING_A_DATABASE:
        error = empty.error(*with_name(command, "nobody"))
        assert error["code"] == "orchestrator.missing", command
        assert "memgraph init nobody" in error["message"]
    for name in BAD_NAMES:
        for command in (("init", "--", name), ("list", "--", name)):
            ran = empty("--json", *command)
            assert (ran.code, ran.error["code"]) == (2, "input.invalid"), name
    assert not empty.root.exists()


def test_damage_is_named_and_left_alone(cli: CommandLine) -> None:
    garbled(cli.database())
    before = fingerprint(cli.root)
    for command in NEEDING_A_DATABASE:
        ran = cli(*with_name(command, "orc-1"), "--json")
        assert (ran.code, ran.error["code"]) == (1, "storage.corrupt")
    assert fingerprint(cli.root) == before


def test_a_damaged_orchestrator_is_disabled_and_the_others_go_on(cli: CommandLine) -> None:
    assert cli("init", "orc-2").code == 0
    garbled(cli.database("orc-2"))
    error = cli.error("health")
    assert error["code"] == "memory.disabled"
    states = {each["orchestrator"]: each["status"] for each in error["details"]["orchestrators"]}
    assert states == {"orc-1": "ready", "orc-2": "disabled"}
    assert cli.json("health", "orc-1")["orchestrators"][0]["status"] == "ready"


def test_a_value_that_is_not_allowed_ends_with_2_and_its_code(cli: CommandLine) -> None:
    before = cli.json("stats", "orc-1")["journal_entries"]
    for arguments in (
        ["remember", "orc-1", "x", "--attributes", "{"],
        ["remember", "orc-1", "x", "--attributes", "[" * 100_000],
        ["remember", "orc-1", "a\x00b"],
        ["remember", "orc-1", "\ud800"],
        ["relate", "orc-1", "a", "Updates", "a"],
    ):
        ran = cli(*arguments, "--json")
        assert (ran.code, ran.error["code"]) == (2, "input.invalid"), str(arguments)[:60]
        assert "Value error" not in ran.err
    assert cli.json("stats", "orc-1")["journal_entries"] == before


def test_an_error_for_a_person_is_one_line_that_cannot_act(cli: CommandLine) -> None:
    ran = cli("get", "orc-1", "fact_\x1b[2J\u202e\nerror[storage.full]: no")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("error[memory.not_found]: ")
    assert ran.err.count("\n") == 1
    assert "\x1b" not in ran.err
    assert "\u202e" not in ran.err


def test_input_that_is_not_text_is_refused(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    source = tmp_path / "latin-1.txt"
    source.write_bytes(b"Gr\xfc\xdfe")
    with source.open(encoding="utf-8") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        from memgraph.surfaces.cli import main

        assert main(["remember", "orc-1", "-"]) == 1


@pytest.mark.parametrize("command", ["remember", "recall"])
def test_of_a_text_that_is_too_long_no_more_is_read_than_shows_it(
    cli: CommandLine, command: str
) -> None:
    error = cli.error(command, "orc-1", "-", stdin="x" * 3_000_000)
    assert error["code"] == "input.invalid"
    assert len(sys.stdin.read()) == 3_000_000 - 2_000_002


def test_a_wrong_setting_is_named_by_every_command(cli: CommandLine) -> None:
    file = cli.root / "orc-1" / "memory" / "config.toml"
    file.write_text("[memory.retrieval]\ntop = 5\n", encoding="utf-8")
    for command in (["list", "orc-1"], ["config", "show", "orc-1"], ["recall", "orc-1", "x"]):
        error = cli.error(*command)
        assert error["code"] == "config.unknown_key"
        assert error["details"]["key"] == "memory.retrieval.top"
    checked = cli.error("config", "check")
    assert checked["details"]["problems"][0]["orchestrator"] == "orc-1"
