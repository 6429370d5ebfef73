"""say and sessions on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # A fixture's class: pytest gives it, nothing is imported for it.
    from conftest import CommandLine


def sessions(cli: CommandLine, *options: str) -> dict[str, tuple[int, bool]]:
    """Turns of each session, and whether it is open."""
    found = cli.json("sessions", "orc-1", *options)["items"]
    return {each["session_id"]: (each["turns"], each["completed_at"] is None) for each in found}


def test_say_stores_a_turn(cli: CommandLine) -> None:
    told = cli.json("say", "orc-1", "Hello.", "--session-id", "s-1", "--role", "Anna")
    shown = cli.json("get", "orc-1", told["memory_id"])
    assert told["session_id"] == "s-1"
    assert (shown["content"], shown["session_id"], shown["source_role"], shown["kind"]) == (
        "Hello.",
        "s-1",
        "Anna",
        "episode",
    )


def test_say_uses_the_session_of_the_reader_when_none_is_named(cli: CommandLine) -> None:
    cli.json("say", "orc-1", "Hello.", "--session", "s-1")
    assert sessions(cli) == {"s-1": (1, True)}
    assert cli.error("say", "orc-1", "Hello.")["code"] == "input.invalid"


def test_a_file_of_turns_gets_an_outcome_for_each_line(cli: CommandLine, tmp_path: Path) -> None:
    lines = [
        json.dumps({"content": "One.", "source_role": "bot"}),
        "",
        json.dumps({"content": "Two.", "session_id": "s-2", "event_time": "2026-01-02T03:04:05Z"}),
        json.dumps({"content": ""}),
    ]
    path = tmp_path / "turns.jsonl"
    path.write_text("\n".join(lines))
    error = cli.error("say", "orc-1", "--file", str(path), "--session-id", "s-1")
    told = error["details"]
    assert (error["code"], told["rejected"]) == ("input.invalid", 1)
    assert [(each["line"], each["outcome"]) for each in told["outcomes"]] == [
        (1, "stored"),
        (3, "stored"),
        (4, "rejected"),
    ]
    assert sessions(cli) == {"s-1": (1, False), "s-2": (1, True)}
    two = cli.json("get", "orc-1", told["outcomes"][1]["memory_id"])
    assert (two["source_role"], two["event_time"]) == ("user", "2026-01-02T03:04:05.000Z")


def test_turns_come_from_standard_input_too(cli: CommandLine) -> None:
    stdin = "".join(json.dumps({"content": f"Turn {at}."}) + "\n" for at in range(3))
    told = cli.json("say", "orc-1", "--file", "-", "--session-id", "s", stdin=stdin)
    assert (len(told["outcomes"]), told["rejected"]) == (3, 0)
    assert (
        "stored 3 turns" in cli("say", "orc-1", "--file", "-", "--session-id", "s", stdin=stdin).out
    )


def test_a_file_with_a_line_that_is_no_turn_is_refused_as_a_whole(cli: CommandLine) -> None:
    for line in ("no JSON", '["no", "object"]'):
        stdin = json.dumps({"content": "One."}) + "\n" + line
        error = cli.error("say", "orc-1", "--file", "-", "--session-id", "s", stdin=stdin)
        assert (error["code"], error["message"]) == ("cli.unusable", "line 2 is not a JSON object")
    assert sessions(cli) == {}


def test_say_takes_a_text_or_a_file(cli: CommandLine) -> None:
    for arguments in ((), ("Hello.", "--file", "-")):
        assert cli("say", "orc-1", *arguments, "--session-id", "s").code == 2
