"""Tiers and promotion on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

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
        *("--project-id", "web", "--session", "t1", "--reason", "it holds for all"),
    )
    assert (first["promoted"], first["to"]) == (old, "project")
    second = cli.json("promote", "orc-1", first["memory_id"], "--to", "global", "--project", "web")
    assert cli.json("show", "orc-1", second["memory_id"])["memories"][0]["scope"] == "global"
    told = cli.json("tier", "orc-1", "--task", "t1")
    assert (told["tier"], told["scope_id"], told["count"]) == ("task", "t1", 1)
    assert told["items"][0]["context_item_id"] == old
    told = cli.json("tier", "orc-1", "--project", "web")
    assert (told["tier"], told["scope_id"], told["count"]) == ("project", "web", 1)
    assert told["items"][0]["payload"] == {"text": "The parser drops the last line."}
    assert cli.json("tier", "orc-1", "--global")["count"] == 1
    shown = cli("tier", "orc-1", "--global").out
    assert "global: 1 items" in shown
    assert "The parser drops the last line." in shown


def test_the_newest_items_come_first(cli: CommandLine) -> None:
    for number in range(3):
        cli.remember(f"Lesson {number}.", *PROJECT, "--event-time", f"2026-01-0{number + 1}")
    told = cli.json("tier", "orc-1", "--project", "web", "--limit", "2")
    assert [each["payload"]["text"] for each in told["items"]] == ["Lesson 2.", "Lesson 1."]
    assert told["count"] == 3


def test_what_takes_a_persons_consent_takes_yes(cli: CommandLine) -> None:
    old = cli.remember("Answers are short.", *PROJECT, "--type", "Preference")
    up = ("promote", "orc-1", old, "--to", "global", "--project-id", "web")
    error = cli.error(*up)
    assert error["code"] == "access.confirmation_missing"
    assert "Answers are short." in error["message"]
    assert "--yes" in error["message"]
    assert cli(*up).code == 1
    assert cli.json("tier", "orc-1", "--global")["count"] == 0
    assert cli.json(*up, "--yes")["to"] == "global"


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--to", "global", "--session", "t1"], "memory.conflict"),
        (["--to", "project", "--session", "t1"], "input.invalid"),
        (["--to", "project", "--project-id", "web"], "memory.not_found"),
        (["--to", "task", "--session", "t1"], "cli.usage"),
        (["--session", "t1"], "cli.usage"),
    ],
)
def test_what_cannot_be_promoted_says_why(cli: CommandLine, options: list[str], code: str) -> None:
    old = cli.remember("The parser drops the last line.", *TASK)
    assert cli.error("promote", "orc-1", old, *options)["code"] == code


@pytest.mark.parametrize(
    "options",
    [[], ["--task", "t1", "--global"], ["--project", "a", "--project", "b"],
     ["--task", "t1", "--project", "a"], ["--global", "--limit", "0"]],
)  # fmt: skip
def test_a_tier_is_one(cli: CommandLine, options: list[str]) -> None:
    assert cli.error("tier", "orc-1", *options)["code"] == "input.invalid"
