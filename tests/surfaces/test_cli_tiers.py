"""Tiers and promotion on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conftest import CommandLine
else:
    CommandLine = object

TASK = ("--scope", "session", "--scope-id", "t1")
PROJECT = ("--scope", "project", "--scope-id", "web")


def test_a_memory_goes_up_a_step_at_a_time(cli: CommandLine) -> None:
    old = cli.remember("The parser drops the last line.", *TASK)
    first = cli.json(
        *("promote", "orc-1", old, "--to", "project"),
        *("--scope-id", "web", "--session", "t1", "--reason", "it holds for all"),
    )
    assert (first["promoted"], first["to"]) == (old, "project")
    second = cli.json("promote", "orc-1", first["memory_id"], "--to", "global", "--project", "web")
    assert cli.json("get", "orc-1", second["memory_id"])["scope"] == "global"
    told = cli.json("tier", "orc-1", "task", "t1")
    assert (told["tier"], told["scope_id"], told["count"]) == ("task", "t1", 1)
    assert told["items"][0]["context_item_id"] == told["items"][0]["memory_id"] == old
    told = cli.json("tier", "orc-1", "project", "web")
    assert (told["tier"], told["scope_id"], told["count"]) == ("project", "web", 1)
    assert told["items"][0]["payload"] == {"text": "The parser drops the last line."}
    assert cli.json("tier", "orc-1", "global")["count"] == 1
    shown = cli("tier", "orc-1", "global").out
    assert "count  1\n" in shown
    assert "The parser drops the last line." in shown


def test_what_takes_a_persons_consent_takes_yes(cli: CommandLine) -> None:
    old = cli.remember("Answers are short.", *PROJECT, "--type", "Preference")
    up = ("promote", "orc-1", old, "--to", "global", "--project", "web")
    error = cli.error(*up)
    assert error["code"] == "access.confirmation_missing"
    assert "Answers are short." in error["message"]
    assert "--yes" in error["message"]
    assert cli(*up).code == 1
    assert cli.json("tier", "orc-1", "global")["count"] == 0
    assert cli.json(*up, "--yes")["to"] == "global"
