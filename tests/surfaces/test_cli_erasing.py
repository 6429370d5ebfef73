"""The command that erases."""

from __future__ import annotations

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


def test_a_dry_run_shows_what_goes_and_what_stays(cli: CommandLine) -> None:
    cli.remember("Jonas Weber looks after the machines.")
    other = cli.remember("The bakery of Ada Okafor closes at noon.")
    secret = cli.remember("Ada Okafor keeps the spare key under the third flower pot.")
    cli.remember("Tom Reed told: Ada Okafor keeps the spare key under the third flower pot.")
    cli.remember("Bruno Okafor bakes with Nora Quill.")
    told = cli.json("erase", "orc-1", "--memory-id", secret, *WHY)
    assert told["preview"]["begins"][secret].startswith("Ada Okafor keeps")
    looked = cli("erase", "orc-1", "--memory-id", secret, *WHY).out
    for each in (secret, "Ada Okafor keeps the spare", "says_it"):
        assert each in looked
    named = cli.json("erase", "orc-1", "--entity", "Ada Okafor", *WHY)
    assert other in named["memory_ids"]
    assert "Ada Okafor" in named["preview"]["names"]
    assert "Ada Okafor" in cli("erase", "orc-1", "--entity", "Ada Okafor", *WHY).out
    done = cli.json("erase", "orc-1", "--memory-id", secret, "--yes", *WHY)
    assert done["preview"] is None
