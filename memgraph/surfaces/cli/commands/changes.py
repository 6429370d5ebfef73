"""Changes: remember, correct, retract, resolve and their kin; tiers, expiry, reflection."""

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
        stale_evidence = _fallen_grounds(handle, outcome, fields.get("derived_from", ()))
    data = {
        **outcome.model_dump(exclude={"edge_id", "code", "message"}),
        "embedding": embedding,
    }

    def show(screen: Screen) -> None:
        screen.line(f"{outcome.outcome} {outcome.memory_id}")
        for finding in _findings(outcome):
            screen.line(finding)
        for item in stale_evidence:
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
        message = f"stored {new_id}; {_less_trusted(orchestrator, case)}"
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
        history = handle.trace(result)
    status = history.memory.status.value
    direct = [] if restore else [link for link in history.replaced if link.distance == 1]
    replaced = [link.memory_id for link in direct]

    def show(screen: Screen) -> None:
        screen.line(f"{result} is {status}")
        for old in replaced:
            screen.line(f"it had replaced {old}, which stays superseded; to bring that back:")
            screen.line(f"memgraph retract {orchestrator} {old} --restore --reason TEXT")

    return CommandResult({"memory_id": result, "status": status, "replaced": replaced}, show)


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
    to: Annotated[PromotionTier, choice(PromotionTier, "--to", text="A step up from where it is.")],
    task_id: Annotated[str | None, value("ID", "The task that it is of.", "--task")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="You consent to what would be asked.")] = False,
    reason: Annotated[str, value("TEXT", "Why, for the journal.")] = "",
) -> CommandResult:
    """Promote a task's memory to its project, or a project's to global.

    ID is a memory's, as `memgraph tier` lists it. Name its place with --task or --project; with
    --to project, --project is the target. Making a preference or an identity global requires --yes.
    """
    call = invocation(context)
    target = None
    if to is PromotionTier.PROJECT:
        if len(call.project) != 1:
            raise typer.BadParameter("--to project takes one --project ID: where it goes")
        target = call.project[0]
    if task_id is not None:
        call.session.append(task_id)
    with call.orchestrator(orchestrator) as handle:
        new_id = _promoted(handle, memory_id, to, target, yes=yes, reason=reason)
        embedding = call.after_writing(handle)
    data = {"memory_id": new_id, "promoted": memory_id, "to": to.value, "embedding": embedding}
    return CommandResult(
        data, lambda screen: screen.line(f"promoted {memory_id} to {to.value}: {new_id}")
    )


def tier(
    context: typer.Context,
    orchestrator: OrchestratorName,
    task_id: Annotated[str | None, value("ID", "What a task holds.", "--task")] = None,
    everywhere: Annotated[
        bool, typer.Option("--global", help="What holds in every project.")
    ] = False,
    limit: Annotated[int, typer.Option(help="1 to 1000000.")] = 50,
) -> CommandResult:
    """List the items of a task (--task), a project (--project) or the global tier (--global).

    Newest items first. Name one of the three: --project ID is here the project that is listed. The
    id is the memory's, which promote, show and trace take; item is its owner's name for it.
    """
    call = invocation(context)
    which, scope_id = _named(call, task_id, everywhere=everywhere)
    if task_id is not None:
        call.session.append(task_id)
    with call.orchestrator(orchestrator) as handle:
        count, results = _held(call, handle, which, scope_id, limit)
    items = [{**as_json(item), "memory_id": memory_id} for memory_id, item in results]
    data = {"tier": which.tier, "scope_id": scope_id, "count": count, "items": items}

    def show(screen: Screen) -> None:
        screen.heading(f"{which.tier} {scope_id or ''}".strip() + f": {counted(count, 'item')}")
        screen.table(ITEM_COLUMNS, [_row(*element) for element in results])

    return CommandResult(data, show)


def _held(
    call: Invocation, handle: Orchestrator, which: Scope, scope_id: str | None, limit: int
) -> tuple[int, list[tuple[str, ContextItem]]]:
    """Return how many items there are, and the newest of them with their memories."""
    if call.server_url is not None:
        page = handle.contexts.tier(which, scope_id, limit=limit)
        return page.count, [(item.memory_id, item) for item in page.items]
    from memgraph.operations.context.database_backend import DatabaseBackend

    backend = DatabaseBackend(handle, which, scope_id)
    items = backend.query_held({}, limit=limit)
    return backend.count(), [(memory.memory_id, memory.item) for memory in items]


def _promoted(
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
            f"{questions[0]} If so, say --yes.", memory_id=memory_id
        ) from None
    except NotFound as error:
        # The same whether there is one or not.
        hint = f"{error.message}; say which task or project it is of with --task or --project"
        raise NotFound(hint, **error.details) from None


def _named(call: Invocation, task_id: str | None, *, everywhere: bool) -> tuple[Scope, str | None]:
    """Return the tier that the options name, and the id of its task or project."""
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
_GONE = "·"


def expiring(
    context: typer.Context,
    orchestrator: OrchestratorName,
    days: Annotated[float, typer.Option(help="How far to look ahead.")] = 30.0,
    limit: Annotated[int, typer.Option(help="0 to 1000 are listed; all are counted.")] = 50,
) -> CommandResult:
    """Show the facts that will expire unless they are used, soonest first.

    Only inferred facts expire: never what a person, a file or a record stated.

    The curve is the effective confidence from now to the last day; a dot: it is retired by then. To
    keep a memory, recall it, or `memgraph confirm` it for good.
    """
    with invocation(context).orchestrator(orchestrator) as handle:
        result = handle.memories.expiring(days=days, limit=limit)
    return CommandResult(as_json(result), lambda screen: _show(screen, result))


def reflection(context: typer.Context, orchestrator: OrchestratorName) -> CommandResult:
    """Print the latest weekly reflection that you may see.

    `memgraph run reflection` makes one.
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
    """Return a curve of confidences as a line of blocks, full height being 1."""
    return "".join(_block(item, threshold) for item in memory.course)


def _block(confidence: float, threshold: float) -> str:
    if confidence < threshold:
        return _GONE
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
