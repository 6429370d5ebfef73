"""The command that stores turns of conversations: say."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Annotated, Any

import typer

from memgraph.errors import InvalidInput
from memgraph.model.enums import Sensitivity
from memgraph.surfaces.cli.builder import OrchestratorName, choice, make_command, value
from memgraph.surfaces.cli.files import counted
from memgraph.surfaces.cli.formats import with_short
from memgraph.surfaces.cli.invocation import CommandResult, InvalidContent, Invocation, invocation
from memgraph.surfaces.cli.screen import Screen

# A memory with all its fields is never longer.
MAX_LINE_CHARS = 1_000_000


def say(
    context: typer.Context,
    orchestrator: OrchestratorName,
    text: Annotated[
        str | None, typer.Argument(metavar="TEXT", help="What was said.", show_default=False)
    ] = None,
    session_id: Annotated[
        str | None, value("ID", "The conversation. [the value of --session, if only one]")
    ] = None,
    role: Annotated[str | None, value("NAME", "The speaker. [user]")] = None,
    turn_id: Annotated[str | None, value("ID", "The turn's id in the session.")] = None,
    event_time: Annotated[str | None, value("TIME", "When it was said, ISO 8601.")] = None,
    sensitivity: Annotated[Sensitivity | None, choice(Sensitivity)] = None,
    file: Annotated[
        str | None,
        value("FILE", "Many turns, one JSON object with content per line; - is standard input."),
    ] = None,
) -> CommandResult:
    """Store one or more turns of a conversation.

    The first turn of a new session completes all open ones. If an object in --file lacks one of the
    fields session_id, source_role, turn_id, event_time and sensitivity, the option applies.
    """
    if (text is None) == (file is None):
        raise typer.BadParameter("give either TEXT or --file")
    call = invocation(context)
    fields = {
        "session_id": session_id or _only_session(call),
        "source_role": role or "user",
        "turn_id": turn_id,
        "event_time": event_time,
        "sensitivity": sensitivity,
    }
    common = {name: field for name, field in fields.items() if field is not None}
    if text is not None:
        return _store_turn(call, orchestrator, {**common, "content": text})
    return _store_turns(call, orchestrator, str(file), common)


def _store_turn(call: Invocation, orchestrator: str, fields: dict[str, Any]) -> CommandResult:
    from memgraph.model.values import EpisodeInput, validated

    turn = validated(EpisodeInput, fields)
    with call.orchestrator(orchestrator) as handle:
        memory_id = handle.save_episode(**dict(turn))
        embedding = call.after_writing(handle)
    data = {"memory_id": memory_id, "session_id": turn.session_id, "embedding": embedding}
    return CommandResult(data, lambda screen: screen.line(f"stored {with_short(memory_id)}"))


def _store_turns(
    call: Invocation, orchestrator: str, file: str, common: dict[str, Any]
) -> CommandResult:
    invalid: list[dict[str, Any]] = []
    lines: list[int] = []
    with call.orchestrator(orchestrator) as handle, _open_turns(file) as source:
        outcomes = handle.save_episodes(_turns(source, common, lines, invalid))
        embedding = call.after_writing(handle)
    stored = [
        {"line": line, **outcome.model_dump(exclude={"edge_id"})}
        for line, outcome in zip(lines, outcomes, strict=True)
    ]
    entries = sorted([*stored, *invalid], key=lambda entry: int(entry["line"]))
    rejected = [item for item in entries if item["outcome"] == "rejected"]
    data = {"outcomes": entries, "rejected": len(rejected), "embedding": embedding}
    error = None
    if rejected:
        error = InvalidInput(f"{len(rejected)} of {len(entries)} lines were rejected")

    def show(screen: Screen) -> None:
        screen.line(f"stored {counted(len(entries) - len(rejected), 'turn')}")
        for item in rejected:
            screen.line(f"line {item['line']}: rejected, {item['message']}")

    return CommandResult(data, show, error)


def _turns(
    source: IO[str], common: dict[str, Any], lines: list[int], refused: list[dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Yield the turns of a file; add line numbers to ``lines`` and invalid lines to ``refused``."""
    number = 0
    while line := source.readline(MAX_LINE_CHARS + 1):
        number += 1
        if len(line) > MAX_LINE_CHARS:
            raise InvalidContent(f"line {number} is longer than {MAX_LINE_CHARS:,} characters")
        if not line.strip():
            continue
        try:
            result = json.loads(line)
        except (ValueError, RecursionError):
            result = None
        if isinstance(result, dict):
            lines.append(number)
            yield {**common, **result}
        else:
            outcome = {"outcome": "rejected", "memory_id": None, "code": InvalidInput.code}
            refused.append({"line": number, **outcome, "message": "not a JSON object"})


@contextmanager
def _open_turns(file: str) -> Iterator[IO[str]]:
    try:
        if file == "-":
            yield sys.stdin
            return
        with Path(file).open(encoding="utf-8") as stream:
            yield stream
    except UnicodeDecodeError:
        raise InvalidContent("the turns are not UTF-8") from None


def _only_session(call: Invocation) -> str | None:
    return call.session[0] if len(call.session) == 1 else None


COMMANDS: dict[str, Any] = {
    "say": make_command(say, "say"),
}
