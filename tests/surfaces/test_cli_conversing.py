"""say and sessions on the command line."""

from __future__ import annotations

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
