"""Commands for cases and changes over time: case, stale, diff, history."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from memgraph.errors import AccessDenied, ExtraMissing
from memgraph.operations.graph import Graph
from memgraph.operations.groups import HistoryOperations
from memgraph.surfaces.cli.builder import OrchestratorName, make_command, make_group, value
from memgraph.surfaces.cli.files import counted, write_whole
from memgraph.surfaces.cli.formats import (
    as_json,
    citation,
    day,
    memory_line,
    moment,
    outcome_of,
    short,
    standing_of,
    summary_of,
)
from memgraph.surfaces.cli.invocation import CommandResult, invocation
from memgraph.surfaces.cli.operations import command_of
from memgraph.surfaces.cli.screen import Branch, Screen

if TYPE_CHECKING:
    from memgraph.model.graph import (
        Case,
        CaseSide,
        Diff,
        History,
        InvalidPremise,
        MemoryEvent,
        PairEvent,
        StaleMemory,
        StalePage,
        Suggestion,
    )
    from memgraph.model.influence import SourceLines

EdgeId = Annotated[str, typer.Argument(metavar="EDGE", help="The Contradicts edge's id.")]
Why = Annotated[str, typer.Option(metavar="TEXT", help="Why, for the history.", show_default=False)]
AsOf = Annotated[str | None, value("TIME", "As of this time, ISO 8601.")]
REASONS: Final = {
    "confirmed": "a person confirmed it",
    "other_ended": "the other side was replaced or retracted",
    "other_stale": "the other side depends on retracted or superseded evidence",
    "more_sources": "more independent sources say it",
    "higher_confidence": "its confidence is higher",
    "newer": "it is newer",
}


def show_case(
    context: typer.Context, orchestrator: OrchestratorName, edge_id: EdgeId, as_of: AsOf = None
) -> CommandResult:
    """Show a contradiction: both sides, the evidence for each, and possible decisions.

    `memgraph resolve` decides for a side, or reopens it.
    """
    with invocation(context).orchestrator(orchestrator) as handle:
        result = handle.contradictions.get(edge_id, as_of=as_of)

    def show(screen: Screen) -> None:
        screen.tree(_case_tree(result))
        if as_of is None:
            for line in _next_commands(result, orchestrator):
                screen.line(line)

    return CommandResult(as_json(result), show)


def dismiss_case(
    context: typer.Context, orchestrator: OrchestratorName, edge_id: EdgeId, reason: Why
) -> CommandResult:
    """Dismiss a contradiction: both sides are valid, and it is not raised again.

    `memgraph resolve --reopen` undoes it.
    """
    with invocation(context).orchestrator(orchestrator) as handle:
        handle.contradictions.dismiss(edge_id, reason=reason)
    message = f"dismissed {edge_id}; {_undo(orchestrator, edge_id)}"
    return CommandResult(
        {"edge_id": edge_id, "state": "dismissed"}, lambda screen: screen.line(message)
    )


def export_case(
    context: typer.Context,
    orchestrator: OrchestratorName,
    edge_id: EdgeId,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The file to write.")
    ],
    as_of: AsOf = None,
) -> CommandResult:
    """Write a contradiction as a self-contained HTML file, to keep or to print."""
    with invocation(context).orchestrator(orchestrator) as handle:
        result = handle.contradictions.get(edge_id, as_of=as_of)
        lines = _lines(handle, result)
        text = _document(result, handle.name, lines)
    write_whole(output, text)
    data = {"edge_id": edge_id, "state": result.state, "path": str(output)}
    return CommandResult(
        data, lambda screen: screen.line(f"wrote the case of {edge_id} to {output}")
    )


def _show_stale(screen: Screen, page: StalePage, _: Mapping[str, Any]) -> None:
    if not page.items:
        screen.line("no memory depends on superseded or retracted evidence")
    for item in page.items:
        screen.tree(_stale_tree(item))
    if page.cut:
        screen.line(f"cut: {', '.join(page.cut_reasons)}", style="yellow")
    if page.next_after is not None:
        screen.line(f"more: --after {page.next_after}")


def _lines(handle: Any, case: Case) -> dict[str, SourceLines]:
    """Return the source lines of both sides by memory id; empty if the key may not audit."""
    try:
        return {
            side.memory.memory_id: handle.sources.lines(side.memory.memory_id)
            for side in case.sides
        }
    except AccessDenied:
        return {}


def _document(case: Case, orchestrator: str, lines: dict[str, SourceLines]) -> str:
    try:
        from memgraph.surfaces.web.export import case_document
    except ModuleNotFoundError as error:
        raise ExtraMissing.of("case export needs the extra server", extra="server") from error
    return case_document(case, orchestrator=orchestrator, lines=lines)


def _next_commands(case: Case, orchestrator: str) -> tuple[str, ...]:
    """Return the commands that can follow for a case."""
    edge_id = case.edge.edge_id
    if case.state != "open":
        return (_undo(orchestrator, edge_id),)
    return (
        f"to decide: memgraph resolve {orchestrator} {edge_id} --winner ID --reason TEXT",
        f"if both are valid: memgraph case dismiss {orchestrator} {edge_id} --reason TEXT",
    )


def _undo(orchestrator: str, edge_id: str) -> str:
    return f"to undo: memgraph resolve {orchestrator} {edge_id} --reopen --reason TEXT"


def _case_tree(case: Case) -> Branch:
    root = Branch(f"{case.edge.edge_id}  {standing_of(case.edge, moot=case.moot)}", style="bold")
    if case.edge.reason:
        root.add(f"raised because: {case.edge.reason}")
    for side in case.sides:
        _add_side(root, side)
    outcome = outcome_of(case.edge)
    if outcome is not None:
        root.add(outcome, style="green")
    if case.suggestion is not None:
        _add_suggestion(root, case.suggestion)
    journal = root.add("journal")
    for entry in case.journal:
        reason = entry.details.get("reason")
        text = f": {reason}" if reason else ""
        journal.add(short(f"{moment(entry.at)} {entry.action} by {entry.actor}{text}", 160))
    if case.cut:
        root.add("the counts are incomplete", style="yellow")
    return root


def _add_side(root: Branch, side: CaseSide) -> None:
    branch = root.add(memory_line(side.memory))
    branch.add(f"from {citation(side.source)}", style="dim")
    for support in side.supports:
        branch.add(
            f"also stated in {citation(support.source)}, {moment(support.added_at)}", style="dim"
        )
    confirmed = ", confirmed" if side.confirmed else ""
    sources = counted(side.independent_sources, "independent source")
    confidence = f"confidence {side.effective_confidence:.2f}"
    branch.add(f"{sources}, {confidence}{confirmed}, of {day(side.said_at)}")
    reach = side.influence
    lines = [counted(reach.recalls, "time") + " handed out"]
    lines += [counted(len(reach.runs), "run")] if reach.runs else []
    lines += [counted(len(reach.conversations), "conversation")] if reach.conversations else []
    lines += [f"{counted(reach.derived, 'memory', 'memories')} derived"] if reach.derived else []
    branch.add(", ".join(lines))
    if side.premise is not None:
        _add_premise(branch, side.premise)


def _add_suggestion(root: Branch, suggestion: Suggestion) -> None:
    outcome = f"{suggestion.winner_id} may be right" if suggestion.winner_id else "undecided"
    branch = root.add(f"suggestion: {outcome} ({suggestion.confidence:.0%})", style="green")
    for reason in suggestion.reasons:
        branch.add(
            f"{reason.favours}: {REASONS.get(reason.code, reason.code)} (+{reason.weight:.2f})"
        )


def _stale_tree(memory: StaleMemory) -> Branch:
    root = Branch(memory_line(memory.memory), style="bold")
    _add_premise(root, memory.premise)
    return root


def _add_premise(branch: Branch, premise: InvalidPremise) -> None:
    """Add the path to the evidence, each step below the one before."""
    for step in premise.path:
        relation = "derived from" if step.edge_type is None else f"{step.edge_type.value}"
        branch = branch.add(f"{relation} {step.ground_id}")
    reason = f": {premise.reason}" if premise.reason else ""
    ended = "lost a contradiction" if premise.ended == "lost" else premise.ended
    branch.add(f"{ended} on {day(premise.ended_at)} by {premise.actor}{reason}", style="yellow")
    branch.add(short(summary_of(premise.ground)), style="dim")


_MEMORY_EVENTS = ("learnt", "replaced", "retracted", "restored")
_PAIR_EVENTS = ("contradicted", "resolved", "dismissed", "reopened")


def _show_diff(screen: Screen, diff: Diff, _: Mapping[str, Any]) -> None:
    root = Branch(f"after {moment(diff.since)} until {moment(diff.until)}", style="bold")
    for name in _MEMORY_EVENTS:
        _add(root, diff, name, map(_memory_line, getattr(diff, name)))
    for name in _PAIR_EVENTS:
        _add(root, diff, name, map(_pair_line, getattr(diff, name)))
    root.add(f"turns ({diff.counts['said']})", style="dim")
    screen.tree(root)
    if diff.cut:
        screen.line("there is more: use --limit, or a shorter period")


def _add(root: Branch, diff: Diff, name: str, lines: Iterable[str]) -> None:
    count = diff.counts[name]
    branch = root.add(f"{name} ({count})", style="cyan" if count else "dim")
    for line in lines:
        branch.add(line)


def _memory_line(event: MemoryEvent) -> str:
    reason = f" ({event.reason})" if event.reason else ""
    return f"{moment(event.at)}  {event.memory_id}  {event.actor}{reason}: {short(event.text)}"


def _pair_line(event: PairEvent) -> str:
    by = event.actor or "unknown"
    winner = f" for {event.winner_id}" if event.winner_id else ""
    reason = f" ({event.reason})" if event.reason else ""
    sides = f"{short(event.first_text)} / {short(event.second_text)}"
    return f"{moment(event.at)}  {event.edge_id}  {by}{winner}{reason}: {sides}"


def _show_history(screen: Screen, history: History, _: Mapping[str, Any]) -> None:
    screen.table(
        ("since", "until", "status", "by", "reason"),
        [
            (
                moment(period.since),
                moment(period.until),
                period.status.value,
                period.actor,
                period.reason or "",
            )
            for period in history.periods
        ],
    )


COMMANDS: dict[str, Any] = {
    "case": make_group(
        "case",
        "Show, dismiss and export a contradiction as a case.",
        {
            "show": show_case,
            "dismiss": dismiss_case,
            "export": export_case,
        },
    ),
    "stale": make_command(
        command_of(
            Graph.stale,
            _show_stale,
            text="List active memories that depend on superseded or retracted evidence, with the"
            " path.\n\nSorted by when the evidence ended, newest first.",
        ),
        "stale",
    ),
    "diff": make_command(
        command_of(
            HistoryOperations.diff,
            _show_diff,
            options={
                "since": typer.Argument(metavar="T1", help="After this time, ISO 8601."),
                "until": typer.Argument(metavar="[T2]", help="Up to this time, ISO 8601. [now]"),
            },
            text="Show the memories that were learnt, replaced, retracted, contradicted or"
            " decided between two times.",
        ),
        "diff",
    ),
    "history": make_command(
        command_of(
            HistoryOperations.get,
            _show_history,
            text="Show every status that a memory had, with their times.",
        ),
        "history",
    ),
}
