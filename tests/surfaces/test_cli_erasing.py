"""The command that erases."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conftest import CommandLine
else:
    CommandLine = object

WHY = ("--reason", "asked for")


def test_what_was_said_in_a_session_is_erased_by_its_name(cli: CommandLine) -> None:
    cli("init", "orc-1")
    cli("say", "orc-1", "My badge says 4711, and I live at Elm Row.", "--session-id", "tuesday")
    told = cli.json("erase", "orc-1", "--session-id", "tuesday", *WHY)
    assert (told["kind"], told["target"], len(told["memory_ids"])) == ("session", "tuesday", 1)


def test_an_erased_memory_is_shown_as_that(cli: CommandLine) -> None:
    gone = cli.remember("The baker sleeps above the shop.")
    looked = cli("erase", "orc-1", "--memory-id", gone, *WHY).out
    assert "nothing was changed" in looked
    assert "era_" not in looked
    done = cli.json("erase", "orc-1", "--memory-id", gone, "--yes", *WHY)
    shown = cli("get", "orc-1", gone).out
    assert "erased" in shown
    assert "retracted" not in shown
    listed = cli("list", "orc-1", "--all").out
    assert "erased" in listed
    assert "retracted" not in listed
    assert gone in cli("list", "orc-1", "--status", "erased").out
    assert gone not in cli("list", "orc-1", "--status", "retracted").out
    again = cli("erase", "orc-1", "--memory-id", gone, "--yes", *WHY)
    assert done["erasure_id"] in again.err


def test_a_dry_run_shows_what_goes_and_what_stays(cli: CommandLine) -> None:
    cli.remember("Jonas Weber looks after the machines.")
    other = cli.remember("The bakery of Ada Okafor closes at noon.")
    secret = cli.remember("Ada Okafor keeps the spare key under the third flower pot.")
    cli.remember("Tom Reed told: Ada Okafor keeps the spare key under the third flower pot.")
    cli.remember("Bruno Okafor bakes with Nora Quill.")
    told = cli.json("erase", "orc-1", "--memory-id", secret, *WHY)
    assert told["preview"]["begins"][secret].startswith("Ada Okafor keeps")
    looked = cli("erase", "orc-1", "--memory-id", secret, *WHY).out
    for each in (secret, "Ada Okafor keeps the spare", "says it"):
        assert each in looked
    named = cli.json("erase", "orc-1", "--entity", "Ada Okafor", *WHY)
    assert other in named["memory_ids"]
    assert "Ada Okafor" in named["preview"]["names"]
    assert "Ada Okafor" in cli("erase", "orc-1", "--entity", "Ada Okafor", *WHY).out
    done = cli.json("erase", "orc-1", "--memory-id", secret, "--yes", *WHY)
    assert done["preview"] is None


def test_a_person_who_is_no_entity_is_erased_by_the_name_as_a_text(cli: CommandLine) -> None:
    whole = cli.remember("The captain is called piet maas on board.")
    other = cli.remember("The single ticket costs 7 euros.")
    error = cli.error("erase", "orc-1", "--entity", "Piet Maas", *WHY)
    assert error["code"] == "memory.not_found"
    assert "name it as a text" in error["message"]
    named = ("erase", "orc-1", "--text", "Piet Maas", *WHY)
    assert whole in cli(*named).out
    assert cli.json(*named, "--yes")["memory_ids"] == [whole]
    assert cli.json(*named)["memory_ids"] == []
    assert [item["memory_id"] for item in cli.json("list", "orc-1")["items"]] == [other]


def test_a_backup_after_an_erasure_becomes_another_orchestrator(
    cli: CommandLine, tmp_path: Path
) -> None:
    kept = cli.remember("The shop sells bread.")
    gone = cli.remember("The baker sleeps above the shop.")
    assert cli("erase", "orc-1", "--memory-id", gone, "--yes", *WHY).code == 0
    file, other = str(tmp_path / "orc-1.backup"), tmp_path / "other"
    assert cli("backup", "orc-1", file).code == 0
    assert cli.json("restore", "orc-1", file, "--as", "orc-2")["findings"] == {}
    assert cli.json("verify", "orc-2")["findings"] == []
    assert cli.json("get", "orc-2", kept)["content"] == "The shop sells bread."
    elsewhere = ("--root", str(other), "restore", "orc-1", file, "--as", "orc-2")
    refused = cli(*elsewhere).err
    for part in ("journal.redaction_unproven", "erasure.key", "--accept-findings"):
        assert part in refused
    assert not (other / "orc-2").exists()
    (other).mkdir(exist_ok=True)
    shutil.copy(cli.root / "erasure.key", other)
    assert cli(*elsewhere).code == 0
