"""Commands that change memories: remember, relate, correct, confirm, retract, resolve."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memgraph.errors import AccessDenied, InvalidInput
from memgraph.model.enums import (
    CapturedBy,
    EdgeType,
    MemoryKind,
    MemoryType,
    Scope,
    Sensitivity,
    SourceType,
)
from memgraph.surfaces.cli.builder import OrchestratorName, choice, make_command, value
from memgraph.surfaces.cli.invocation import CommandResult, InvalidContent, invocation
from memgraph.surfaces.cli.screen import Screen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memgraph.model.values import Outcome

# Anything larger is refused by the model of a memory anyway.
MAX_STDIN_CHARS = 1_000_000

MemoryId = Annotated[str, typer.Argument(metavar="ID", help="A memory's id.", show_default=False)]
Content = Annotated[
    str,
    typer.Argument(
        metavar="CONTENT", help="The text; - reads it from standard input.", show_default=False
    ),
]
Type = Annotated[MemoryType | None, choice(MemoryType, "--type")]
Importance = Annotated[int | None, typer.Option(help="0 to 100.")]
Confidence = Annotated[float | None, typer.Option(help="0 to 1.")]
Tags = Annotated[list[str] | None, value("TAG", "Repeatable.", "--tag")]
Why = Annotated[str, typer.Option(metavar="TEXT", help="Why, for the history.", show_default=False)]


def remember(
    context: typer.Context,
    orchestrator: OrchestratorName,
    content: Content,
    memory_type: Type = None,
    kind: Annotated[MemoryKind | None, choice(MemoryKind)] = None,
    importance: Importance = None,
    confidence: Confidence = None,
    tag: Tags = None,
    summary: Annotated[str | None, value("TEXT", "Instead of one that is made.")] = None,
    sensitivity: Annotated[Sensitivity | None, choice(Sensitivity)] = None,
    scope: Annotated[Scope | None, choice(Scope)] = None,
    scope_id: Annotated[str | None, value("ID", "Of a session or project scope.")] = None,
    agent_id: Annotated[str | None, value("ID", "Whose memory it is.")] = None,
    session_id: Annotated[str | None, value("ID", "Where it was said.")] = None,
    turn_id: Annotated[str | None, value("ID", "The turn in its conversation.")] = None,
    role: Annotated[str | None, value("NAME", "Who said it.")] = None,
    event_time: Annotated[str | None, value("TIME", "When it was so, ISO 8601.")] = None,
    valid_until: Annotated[str | None, value("TIME", "Until when, ISO 8601.")] = None,
    decay_rate: Annotated[float | None, typer.Option(help="Per day; 0 protects.")] = None,
    attributes: Annotated[str | None, value("JSON", "A JSON object.")] = None,
    derived_from: Annotated[
        list[str] | None, value("ID", "A memory it follows from; repeatable.")
    ] = None,
    source_type: Annotated[SourceType | None, choice(SourceType)] = None,
    source_path: Annotated[
        str | None, value("PATH", "The file it comes from, of a folder that may be read.")
    ] = None,
    locator: Annotated[str | None, value("PLACE", "The place in that file.")] = None,
    conversation_id: Annotated[str | None, value("ID")] = None,
    workflow_run_id: Annotated[str | None, value("ID")] = None,
    step_id: Annotated[str | None, value("ID")] = None,
    captured_by: Annotated[CapturedBy | None, choice(CapturedBy)] = None,
) -> CommandResult:
    """Store one memory, and report what it repeats, updates or contradicts.

    An existing one (same text, kind, type and scope) is not stored twice.
    """
    source = _given(
        source_type=source_type,
        source_path=source_path,
        locator=locator,
        conversation_id=conversation_id,
        workflow_run_id=workflow_run_id,
        step_id=step_id,
        captured_by=captured_by,
    )
    fields = _given(
        type=memory_type,
        kind=kind,
        importance=importance,
        confidence=confidence,
        tags=tag,
        summary=summary,
        sensitivity=sensitivity,
        scope=scope,
        scope_id=scope_id,
        agent_id=agent_id,
        session_id=session_id,
        turn_id=turn_id,
        source_role=role,
        event_time=event_time,
        valid_until=valid_until,
        decay_rate=decay_rate,
        attributes=None if attributes is None else _json_object(attributes),
        derived_from=derived_from,
        source=source or None,
    )
    return _stored(context, orchestrator, {"content": _read(content), **fields})


def _stored(context: typer.Context, orchestrator: str, fields: dict[str, Any]) -> CommandResult:
    from memgraph.model.values import MemoryInput, validated

    call = invocation(context)
    memory = validated(MemoryInput, fields)
    with call.orchestrator(orchestrator) as handle:
        outcome = handle.memories.store(**memory.model_dump(exclude_unset=True))
        embedding = call.after_writing(handle)
        fallen = _fallen_grounds(handle, outcome, fields.get("derived_from", ()))
    data = {
        **outcome.model_dump(exclude={"edge_id", "code", "message"}),
        "embedding": embedding,
    }

    def show(screen: Screen) -> None:
        screen.line(f"{outcome.outcome} {outcome.memory_id}")
        for finding in _findings(outcome):
            screen.line(finding)
        for item in fallen:
            screen.line(f"it is stale already: it was derived from {item}, which holds no longer")

    return CommandResult(data, show)


def _findings(outcome: Outcome) -> list[str]:
    """Return a line for each memory that a new one updates, contradicts or repeats."""
    reasons = outcome.reasons or {}
    results = {
        "updates": outcome.updates,
        "is updated by": outcome.updated_by,
        "contradicts": outcome.contradicts,
    }
    lines = [
        f"{verb} {item}: {reasons[item]}" for verb, ids in results.items() for item in ids or ()
    ]
    if outcome.duplicate_of in reasons:
        lines.append(f"repeats {outcome.duplicate_of}: {reasons[outcome.duplicate_of]}")
    return lines


def _fallen_grounds(handle: Any, outcome: Outcome, derived_from: Sequence[str]) -> list[str]:
    """Return retracted or superseded evidence of a new memory, as far as the caller may read it."""
    if not derived_from or outcome.memory_id is None or outcome.outcome != "stored":
        return []
    try:
        result = handle.trace(outcome.memory_id).stale_grounds
    except AccessDenied:
        # A caller who may only write gets no other information.
        return []
    return [item for item in dict.fromkeys(derived_from) if item in result]


def relate(
    context: typer.Context,
    orchestrator: OrchestratorName,
    from_id: Annotated[str, typer.Argument(metavar="FROM", help="The edge's memory.")],
    edge_type: Annotated[EdgeType, typer.Argument(metavar="TYPE", case_sensitive=False)],
    to_id: Annotated[str, typer.Argument(metavar="TO", help="The memory it points at.")],
    weight: Annotated[float, typer.Option(help="0 to 1.")] = 1.0,
    reason: Annotated[str | None, value("TEXT", "Why they belong together.")] = None,
    partial: Annotated[
        bool, typer.Option("--partial", help="Updates only a part: TO stays active.")
    ] = False,
) -> CommandResult:
    """Join two memories by an edge.

    TYPE is RelatedTo, Updates, Contradicts, CausedBy or PartOf. FROM Updates TO: FROM is the newer
    one and TO becomes superseded. FROM CausedBy TO: TO is the cause. FROM PartOf TO: TO is the
    whole.
    """
    with invocation(context).orchestrator(orchestrator) as handle:
        edge_id = handle.relate(
            from_id, edge_type, to_id, weight=weight, reason=reason, partial=partial
        )
        opened = edge_type is EdgeType.UPDATES and _case(handle, from_id, to_id) == edge_id
    joined = EdgeType.CONTRADICTS if opened else edge_type
    message = _less_trusted(orchestrator, edge_id) if opened else f"joined by {edge_id}"
    data = {"edge_id": edge_id, "from_id": from_id, "to_id": to_id, "edge_type": joined.value}
    return CommandResult(data, lambda screen: screen.line(message))


def correct(
    context: typer.Context,
    orchestrator: OrchestratorName,
    memory_id: MemoryId,
    content: Content,
    reason: Why,
    memory_type: Type = None,
    importance: Importance = None,
    confidence: Confidence = None,
    tag: Tags = None,
) -> CommandResult:
    """Replace a memory's text.

    The text of a memory never changes: this stores a new one that Updates the old one, which
    becomes superseded; when the old one comes from a more trusted source, both stay, as a
    contradiction to be decided. Other fields default to those of the old one.
    """
    fields = _given(type=memory_type, importance=importance, confidence=confidence, tags=tag)
    call = invocation(context)
    with call.orchestrator(orchestrator) as handle:
        made = handle.correct(memory_id, _read(content), reason=reason, **fields)
        case = _case(handle, made, memory_id)
        embedding = call.after_writing(handle)
    data = {
        "memory_id": made,
        "replaced": memory_id if case is None else None,
        "case": case,
        "embedding": embedding,
    }
    message = f"stored {made}, which replaces {memory_id}"
    if case is not None:
        message = f"stored {made}; {_less_trusted(orchestrator, case)}"
    return CommandResult(data, lambda screen: screen.line(message))


def confirm(
    context: typer.Context, orchestrator: OrchestratorName, memory_id: MemoryId
) -> CommandResult:
    """Protect a memory: confidence 1, no decay."""
    with invocation(context).orchestrator(orchestrator) as handle:
        handle.confirm(memory_id)
    return CommandResult(
        {"memory_id": memory_id, "confidence": 1.0, "decay_rate": 0.0},
        lambda screen: screen.line(f"confirmed {memory_id}"),
    )


def retract(
    context: typer.Context,
    orchestrator: OrchestratorName,
    reason: Why,
    memory_id: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="A memory's id.", show_default=False)
    ] = None,
    restore: Annotated[
        bool, typer.Option("--restore", help="Bring back instead what was retracted.")
    ] = False,
    source: Annotated[
        str | None,
        value("SOURCE", "All from conversation:ID, run:ID, content:SHA256, a file or a folder."),
    ] = None,
    sender: Annotated[
        str | None,
        value("NAME", "All conversations in which NAME, or the actor key:ID, said or stored some."),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="With --source or --sender: do it, and do not only tell.")
    ] = False,
) -> CommandResult:
    """Retract a memory: it stays in the history and is no longer recalled.

    With --source, all memories from a source and what was derived from them alone; memories with
    another source or other evidence stay, and what only the retracted ones had replaced is active
    again. With --source and --restore, restore all that was retracted with that source. With
    --sender, the same for each conversation of a sender.
    """
    if sum(item is not None for item in (memory_id, source, sender)) != 1:
        raise typer.BadParameter("name the ID of a memory, a --source or a --sender, and one alone")
    if yes and memory_id is not None:
        raise typer.BadParameter("--yes is for a --source or a --sender")
    with invocation(context).orchestrator(orchestrator) as handle:
        if sender is not None:
            from memgraph.surfaces.cli.commands.sources import of_sender

            return of_sender(handle, sender, reason=reason, really=yes, restore=restore)
        if source is not None:
            from memgraph.surfaces.cli.commands.sources import restored, retracted

            change = restored if restore else retracted
            return change(handle, source, reason=reason, really=yes)
        result = memory_id or ""
        if restore:
            handle.restore(result, reason=reason)
        else:
            handle.retract(result, reason=reason)
        status = handle.get(result).status.value
    return CommandResult(
        {"memory_id": result, "status": status},
        lambda screen: screen.line(f"{result} is {status}"),
    )


def resolve(
    context: typer.Context,
    orchestrator: OrchestratorName,
    edge_id: Annotated[str, typer.Argument(metavar="EDGE", help="The Contradicts edge's id.")],
    reason: Why,
    winner: Annotated[str | None, value("ID", "The memory that holds.")] = None,
    reopen: Annotated[
        bool, typer.Option("--reopen", help="Take the resolution back instead.")
    ] = False,
) -> CommandResult:
    """Decide a contradiction: the other side becomes superseded, nothing is deleted."""
    if (winner is None) != reopen:
        raise typer.BadParameter("name the --winner, or --reopen, and not both")
    with invocation(context).orchestrator(orchestrator) as handle:
        if winner is None:
            handle.contradictions.reopen(edge_id, reason=reason)
        else:
            handle.contradictions.resolve(edge_id, winner=winner, reason=reason)
    message = f"reopened {edge_id}" if winner is None else f"resolved {edge_id}: {winner} holds"
    return CommandResult(
        {"edge_id": edge_id, "resolved": winner is not None, "winner": winner},
        lambda screen: screen.line(message),
    )


def _case(handle: Any, text: str, other: str) -> str | None:
    """Return the open contradiction of two memories, if it is visible."""
    ends = {text, other}
    open_ones = handle.trace(text).open_contradictions
    return next(
        (
            contradiction.edge_id
            for contradiction in open_ones
            if {contradiction.from_id, contradiction.to_id} == ends
        ),
        None,
    )


def _less_trusted(orchestrator: str, edge_id: str) -> str:
    return (
        f"it replaces nothing, a more trusted source or another author says otherwise: {edge_id}"
        f" is open, see memgraph case show {orchestrator} {edge_id}"
    )


def _given(**fields: Any) -> dict[str, Any]:
    """Return only the given values, so that the model's defaults apply to the rest."""
    return {name: value for name, value in fields.items() if value is not None}


def _read(content: str) -> str:
    if content != "-":
        return content
    try:
        text = sys.stdin.read(MAX_STDIN_CHARS)
    except UnicodeDecodeError:
        raise InvalidContent("standard input is not UTF-8") from None
    return text.removesuffix("\n")


def _json_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidInput("--attributes is not valid JSON", field="attributes") from None
    if not isinstance(value, dict):
        raise InvalidInput("--attributes is not a JSON object", field="attributes")
    return value


COMMANDS = {
    function.__name__: make_command(function, function.__name__)
    for function in (remember, relate, correct, confirm, retract, resolve)
}
