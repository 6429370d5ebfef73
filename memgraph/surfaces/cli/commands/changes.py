"""Commands that change memories, and those for tiers, expiry and the reflection."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memgraph.errors import AccessDenied, ConfirmationMissing, InvalidInput, NotFound
from memgraph.model.enums import (
    CapturedBy,
    EdgeType,
    MemoryKind,
    MemoryType,
    Scope,
    Sensitivity,
    SourceType,
)
from memgraph.model.jobs import ExpiringMemory, ExpiringReport
from memgraph.surfaces.cli.builder import OrchestratorName, choice, make_command, value
from memgraph.surfaces.cli.files import counted
from memgraph.surfaces.cli.formats import as_json, day, short, summary_of
from memgraph.surfaces.cli.invocation import CommandResult, InvalidContent, Invocation, invocation
from memgraph.surfaces.cli.screen import Screen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memgraph.model.context import ContextItem
    from memgraph.model.enums import Scope
    from memgraph.model.values import Outcome
    from memgraph.operations.orchestrator import Orchestrator

# The model of a memory rejects anything larger.
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
    summary: Annotated[str | None, value("TEXT", "Instead of a generated one.")] = None,
    sensitivity: Annotated[Sensitivity | None, choice(Sensitivity)] = None,
    scope: Annotated[Scope | None, choice(Scope)] = None,
    scope_id: Annotated[str | None, value("ID", "The session or project of the scope.")] = None,
    agent_id: Annotated[str | None, value("ID", "The agent that owns it.")] = None,
    session_id: Annotated[str | None, value("ID", "The session it was said in.")] = None,
    turn_id: Annotated[str | None, value("ID", "The turn's id in the session.")] = None,
    role: Annotated[str | None, value("NAME", "The speaker.")] = None,
    event_time: Annotated[str | None, value("TIME", "When it happened, ISO 8601.")] = None,
    valid_until: Annotated[str | None, value("TIME", "The end of its validity, ISO 8601.")] = None,
    decay_rate: Annotated[float | None, typer.Option(help="Per day; 0: no decay.")] = None,
    attributes: Annotated[str | None, value("JSON", "A JSON object.")] = None,
    derived_from: Annotated[
        list[str] | None, value("ID", "A memory that it is derived from; repeatable.")
    ] = None,
    source_type: Annotated[SourceType | None, choice(SourceType)] = None,
    source_path: Annotated[
        str | None, value("PATH", "The file it comes from, in an allowed folder.")
    ] = None,
    locator: Annotated[str | None, value("PLACE", "The place in that file.")] = None,
    conversation_id: Annotated[str | None, value("ID")] = None,
    workflow_run_id: Annotated[str | None, value("ID")] = None,
    step_id: Annotated[str | None, value("ID")] = None,
    captured_by: Annotated[CapturedBy | None, choice(CapturedBy)] = None,
) -> CommandResult:
    """Store one memory, and report which ones it repeats, updates or contradicts.

    A memory with the same text, kind, type and scope is not stored again.
    """
    source = _without_none(
        source_type=source_type,
        source_path=source_path,
        locator=locator,
        conversation_id=conversation_id,
        workflow_run_id=workflow_run_id,
        step_id=step_id,
        captured_by=captured_by,
    )
    fields = _without_none(
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
        stale_evidence = _stale_evidence(handle, outcome, fields.get("derived_from", ()))
    data = {
        **outcome.model_dump(exclude={"edge_id", "code", "message"}),
        "embedding": embedding,
    }

    def show(screen: Screen) -> None:
        screen.line(f"{outcome.outcome} {outcome.memory_id}")
        for other, reason in outcome.reasons.items():
            screen.line(f"repeats {other}: {reason}")
        for item in stale_evidence:
            screen.line(f"it is already stale: its evidence {item} was retracted or superseded")

    return CommandResult(data, show)


def _stale_evidence(handle: Any, outcome: Outcome, derived_from: Sequence[str]) -> list[str]:
    """Return the retracted or superseded evidence of a new memory, if the caller may read it."""
    if not derived_from or outcome.memory_id is None or outcome.outcome != "stored":
        return []
    try:
        stale_ids = handle.trace(outcome.memory_id).stale_grounds
    except AccessDenied:
        # A caller with only write permission gets no other information.
        return []
    return [item for item in dict.fromkeys(derived_from) if item in stale_ids]


def relate(
    context: typer.Context,
    orchestrator: OrchestratorName,
    from_id: Annotated[str, typer.Argument(metavar="FROM", help="The edge's first memory.")],
    edge_type: Annotated[EdgeType, typer.Argument(metavar="TYPE", case_sensitive=False)],
    to_id: Annotated[str, typer.Argument(metavar="TO", help="The memory it points to.")],
    weight: Annotated[float, typer.Option(help="0 to 1.")] = 1.0,
    reason: Annotated[str | None, value("TEXT", "Why they are related.")] = None,
    partial: Annotated[
        bool, typer.Option("--partial", help="FROM updates only a part of TO, which stays active.")
    ] = False,
) -> CommandResult:
    """Connect two memories by an edge.

    TYPE is RelatedTo, Updates, Contradicts, CausedBy or PartOf. FROM Updates TO: FROM is the newer
    one and TO becomes superseded. FROM CausedBy TO: TO is the cause. FROM PartOf TO: TO is the
    whole.
    """
    with invocation(context).orchestrator(orchestrator) as handle:
        edge_id = handle.relate(
            from_id, edge_type, to_id, weight=weight, reason=reason, partial=partial
        )
        is_contradiction = (
            edge_type is EdgeType.UPDATES and _case(handle, from_id, to_id) == edge_id
        )
    stored_type = EdgeType.CONTRADICTS if is_contradiction else edge_type
    message = (
        _contradiction_message(orchestrator, edge_id)
        if is_contradiction
        else f"connected by {edge_id}"
    )
    data = {"edge_id": edge_id, "from_id": from_id, "to_id": to_id, "edge_type": stored_type.value}
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

    The text of a memory never changes: this stores a new memory that Updates the old one, which
    becomes superseded. A confined key cannot replace what another actor stored: both stay active,
    as a contradiction to decide. Other fields default to those of the old memory.
    """
    fields = _without_none(type=memory_type, importance=importance, confidence=confidence, tags=tag)
    call = invocation(context)
    with call.orchestrator(orchestrator) as handle:
        new_id = handle.correct(memory_id, _read(content), reason=reason, **fields)
        case = _case(handle, new_id, memory_id)
        embedding = call.after_writing(handle)
    data = {
        "memory_id": new_id,
        "replaced": memory_id if case is None else None,
        "case": case,
        "embedding": embedding,
    }
    message = f"stored {new_id}, which replaces {memory_id}"
    if case is not None:
        message = f"stored {new_id}; {_contradiction_message(orchestrator, case)}"
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
        bool, typer.Option("--restore", help="Restore this memory instead of retracting it.")
    ] = False,
    source: Annotated[
        str | None,
        value("SOURCE", "All from conversation:ID, run:ID, content:SHA256, a file or a folder."),
    ] = None,
    sender: Annotated[
        str | None,
        value("NAME", "All conversations with memories from the speaker NAME or the actor key:ID."),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="With --source or --sender: do it, not only preview it.")
    ] = False,
) -> CommandResult:
    """Retract a memory: it stays in the history and is no longer recalled.

    With --source, retract all memories from a source and those derived only from them. Memories
    with another source or other evidence stay, and memories that only the retracted ones had
    replaced become active again. With --sender, do the same for each conversation of a sender.
    """
    if sum(item is not None for item in (memory_id, source, sender)) != 1:
        raise typer.BadParameter("name exactly one: the ID of a memory, --source or --sender")
    if yes and memory_id is not None:
        raise typer.BadParameter("--yes requires --source or --sender")
    if restore and memory_id is None:
        raise typer.BadParameter("--restore requires the ID of a memory")
    with invocation(context).orchestrator(orchestrator) as handle:
        if sender is not None:
            from memgraph.surfaces.cli.commands.sources import of_sender

            return of_sender(handle, sender, reason=reason, really=yes)
        if source is not None:
            from memgraph.surfaces.cli.commands.sources import retracted

            return retracted(handle, source, reason=reason, really=yes)
        result = memory_id or ""
        if restore:
            handle.restore(result, reason=reason)
        else:
            handle.retract(result, reason=reason)
        history = handle.trace(result)
    status = history.memory.status.value
    direct = [] if restore else [link for link in history.replaced if link.distance == 1]
    replaced = [link.memory_id for link in direct]

    def show(screen: Screen) -> None:
        screen.line(f"{result} is {status}")
        for old in replaced:
            screen.line(f"it had replaced {old}, which stays superseded; to restore that one:")
            screen.line(f"memgraph retract {orchestrator} {old} --restore --reason TEXT")

    return CommandResult({"memory_id": result, "status": status, "replaced": replaced}, show)


def resolve(
    context: typer.Context,
    orchestrator: OrchestratorName,
    edge_id: Annotated[str, typer.Argument(metavar="EDGE", help="The Contradicts edge's id.")],
    reason: Why,
    winner: Annotated[str | None, value("ID", "The memory that is right.")] = None,
    reopen: Annotated[bool, typer.Option("--reopen", help="Undo the resolution instead.")] = False,
) -> CommandResult:
    """Decide a contradiction: the other memory becomes superseded, and nothing is deleted."""
    if (winner is None) != reopen:
        raise typer.BadParameter("use either --winner or --reopen")
    with invocation(context).orchestrator(orchestrator) as handle:
        if winner is None:
            handle.contradictions.reopen(edge_id, reason=reason)
        else:
            handle.contradictions.resolve(edge_id, winner=winner, reason=reason)
    message = f"reopened {edge_id}" if winner is None else f"resolved {edge_id}: {winner} wins"
    return CommandResult(
        {"edge_id": edge_id, "resolved": winner is not None, "winner": winner},
        lambda screen: screen.line(message),
    )


def _case(handle: Any, memory_id: str, other_id: str) -> str | None:
    """Return the id of the open contradiction between two memories, or None."""
    ends = {memory_id, other_id}
    contradictions = handle.trace(memory_id).open_contradictions
    return next(
        (
            contradiction.edge_id
            for contradiction in contradictions
            if {contradiction.from_id, contradiction.to_id} == ends
        ),
        None,
    )


def _contradiction_message(orchestrator: str, edge_id: str) -> str:
    return (
        "it replaces nothing, because another author contradicts it:"
        f" {edge_id} is open, see memgraph case show {orchestrator} {edge_id}"
    )


def _without_none(**fields: Any) -> dict[str, Any]:
    """Return the values that are not None, so that the model's defaults apply to the others."""
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


ITEM_COLUMNS = ("id", "item", "kind", "importance", "date", "text")


class PromotionTier(StrEnum):
    """The targets of a promotion."""

    PROJECT = "project"
    GLOBAL = "global"


def promote(
    context: typer.Context,
    orchestrator: OrchestratorName,
    memory_id: Annotated[
        str, typer.Argument(metavar="ID", help="A memory's id.", show_default=False)
    ],
    to: Annotated[PromotionTier, choice(PromotionTier, "--to", text="The next higher tier.")],
    task_id: Annotated[str | None, value("ID", "The memory's task.", "--task")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Confirm without being asked.")] = False,
    reason: Annotated[str, value("TEXT", "Why, for the journal.")] = "",
) -> CommandResult:
    """Promote a task's memory to its project, or a project's to global.

    `memgraph tier` lists the ids. Name the memory's place with --task or --project; with --to
    project, --project is the target. Promoting a preference or an identity to global requires
    --yes.
    """
    call = invocation(context)
    target = None
    if to is PromotionTier.PROJECT:
        if len(call.project) != 1:
            raise typer.BadParameter("--to project requires one --project ID: the target")
        target = call.project[0]
    if task_id is not None:
        call.session.append(task_id)
    with call.orchestrator(orchestrator) as handle:
        new_id = _promote(handle, memory_id, to, target, yes=yes, reason=reason)
        embedding = call.after_writing(handle)
    data = {"memory_id": new_id, "promoted": memory_id, "to": to.value, "embedding": embedding}
    return CommandResult(
        data, lambda screen: screen.line(f"promoted {memory_id} to {to.value}: {new_id}")
    )


def tier(
    context: typer.Context,
    orchestrator: OrchestratorName,
    task_id: Annotated[str | None, value("ID", "List this task's items.", "--task")] = None,
    everywhere: Annotated[
        bool, typer.Option("--global", help="List the items of the global tier.")
    ] = False,
    limit: Annotated[int, typer.Option(help="1 to 1000000.")] = 50,
) -> CommandResult:
    """List the items of a task (--task), a project (--project) or the global tier (--global).

    Newest items first. Name one of the three; --project ID is the project to list. The column id
    has the memory's id, for promote, show and trace; item is the id that its owner gave it.
    """
    call = invocation(context)
    scope, scope_id = _selected_tier(call, task_id, everywhere=everywhere)
    if task_id is not None:
        call.session.append(task_id)
    with call.orchestrator(orchestrator) as handle:
        count, results = _tier_items(call, handle, scope, scope_id, limit)
    items = [{**as_json(item), "memory_id": memory_id} for memory_id, item in results]
    data = {"tier": scope.tier, "scope_id": scope_id, "count": count, "items": items}

    def show(screen: Screen) -> None:
        screen.heading(f"{scope.tier} {scope_id or ''}".strip() + f": {counted(count, 'item')}")
        screen.table(ITEM_COLUMNS, [_row(*element) for element in results])

    return CommandResult(data, show)


def _tier_items(
    call: Invocation, handle: Orchestrator, scope: Scope, scope_id: str | None, limit: int
) -> tuple[int, list[tuple[str, ContextItem]]]:
    """Return the number of items, and the newest ones with the ids of their memories."""
    if call.server_url is not None:
        page = handle.contexts.tier(scope, scope_id, limit=limit)
        return page.count, [(item.memory_id, item) for item in page.items]
    from memgraph.operations.context.database_backend import DatabaseBackend

    backend = DatabaseBackend(handle, scope, scope_id)
    items = backend.query_held({}, limit=limit)
    return backend.count(), [(memory.memory_id, memory.item) for memory in items]


def _promote(
    handle: Orchestrator,
    memory_id: str,
    to: PromotionTier,
    target: str | None,
    *,
    yes: bool,
    reason: str,
) -> str | None:
    questions: list[str] = []

    def consent(question: str) -> bool:
        questions.append(question)
        if not yes:
            raise ConfirmationMissing("not confirmed")
        return True

    try:
        return handle.contexts.promote(
            memory_id, to.value, target, confirmation_callback=consent, reason=reason
        )
    except ConfirmationMissing:
        raise ConfirmationMissing(
            f"{questions[0]} If so, use --yes.", memory_id=memory_id
        ) from None
    except NotFound as error:
        # The message does not reveal whether the memory exists.
        hint = f"{error.message}; name its task or project with --task or --project"
        raise NotFound(hint, **error.details) from None


def _selected_tier(
    call: Invocation, task_id: str | None, *, everywhere: bool
) -> tuple[Scope, str | None]:
    """Return the tier that the options select, and the id of its task or project."""
    from memgraph.model.enums import Scope

    tiers = [(Scope.PROJECT, item) for item in call.project]
    tiers += [] if task_id is None else [(Scope.SESSION, task_id)]
    if len(tiers) + everywhere != 1:
        raise typer.BadParameter("name one tier: --task ID, --project ID or --global")
    return (Scope.GLOBAL, None) if everywhere else tiers[0]


def _row(memory_id: str, item: ContextItem) -> tuple[str, ...]:
    name = "" if item.context_item_id == memory_id else item.context_item_id
    importance = "" if item.importance is None else f"{item.importance:g}"
    text = next((element for element in item.payload.values() if isinstance(element, str)), "")
    date = item.timestamp[:10]
    return (memory_id, name, item.kind, importance, date, short(text or str(item.payload)))


_LEVELS = "▁▂▃▄▅▆▇█"
_EXPIRED = "·"


def expiring(
    context: typer.Context,
    orchestrator: OrchestratorName,
    days: Annotated[float, typer.Option(help="The days to look ahead.")] = 30.0,
    limit: Annotated[int, typer.Option(help="How many to list, 0 to 1000; all are counted.")] = 50,
) -> CommandResult:
    """Show the facts that will expire unless they are used, soonest first.

    Only inferred facts expire, never what a person, a file or a record stated.

    The curve shows the effective confidence from now to the last day; a dot means that the fact has
    expired by then. To keep a memory, recall it, or keep it permanently with `memgraph confirm`.
    """
    with invocation(context).orchestrator(orchestrator) as handle:
        result = handle.memories.expiring(days=days, limit=limit)
    return CommandResult(as_json(result), lambda screen: _show(screen, result))


def reflection(context: typer.Context, orchestrator: OrchestratorName) -> CommandResult:
    """Print the latest weekly reflection that you may see.

    `memgraph run reflection` creates one.
    """
    with invocation(context).orchestrator(orchestrator) as handle:
        result = handle.memories.latest_reflection()

    def show(screen: Screen) -> None:
        if result is None:
            screen.line("there is no reflection yet")
        else:
            screen.block(result.content)

    return CommandResult({"reflection": None if result is None else as_json(result)}, show)


def _show(screen: Screen, report: ExpiringReport) -> None:
    if not report.total:
        screen.line(f"nothing expires before {day(report.until)}")
        return
    many = "memory expires" if report.total == 1 else "memories expire"
    screen.heading(f"{report.total} {many} before {day(report.until)} unless used")
    rows = [
        (
            item.memory.memory_id,
            day(item.expires_at),
            f"{item.confidence_now:.2f} → {item.confidence_then:.2f}",
            curve(item, report.threshold),
            short(summary_of(item.memory)),
        )
        for item in report.items
    ]
    if rows:
        screen.table(("id", "expires on", "confidence", "until then", "summary"), rows)
    if len(rows) < report.total:
        screen.line(f"{report.total - len(rows)} more: --limit {min(report.total, 1000)}")


def curve(memory: ExpiringMemory, threshold: float) -> str:
    """Draw a curve of confidences as a line of block characters; full height means 1."""
    return "".join(_block(item, threshold) for item in memory.course)


def _block(confidence: float, threshold: float) -> str:
    if confidence < threshold:
        return _EXPIRED
    return _LEVELS[min(int(confidence * len(_LEVELS)), len(_LEVELS) - 1)]


COMMANDS: dict[str, Any] = {
    "remember": make_command(remember, "remember"),
    "relate": make_command(relate, "relate"),
    "correct": make_command(correct, "correct"),
    "confirm": make_command(confirm, "confirm"),
    "retract": make_command(retract, "retract"),
    "resolve": make_command(resolve, "resolve"),
    "promote": make_command(promote, "promote"),
    "tier": make_command(tier, "tier"),
    "expiring": make_command(expiring, "expiring"),
    "reflection": make_command(reflection, "reflection"),
}
