"""Comparing times: what changed between two, and over the life of one memory."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from memgraph.surfaces.cli.building import OrchestratorName, make_command
from memgraph.surfaces.cli.commands.shaping import as_json, moment, short
from memgraph.surfaces.cli.invocation import Report, invocation
from memgraph.surfaces.cli.screen import Branch, Screen

if TYPE_CHECKING:
    from memgraph.model.graph import Diff, History, MemoryEvent, PairEvent

_OF_MEMORIES = ("learnt", "replaced", "retracted", "restored")
_OF_PAIRS = ("contradicted", "resolved", "dismissed", "reopened")


def diff(
    context: typer.Context,
    orchestrator: OrchestratorName,
    since: Annotated[str, typer.Argument(metavar="T1", help="After this time, ISO 8601.")],
    until: Annotated[
        str | None, typer.Argument(metavar="[T2]", help="Up to this time, ISO 8601; or until now.")
    ] = None,
    limit: Annotated[int, typer.Option(help="1 to 1000: of each list.")] = 100,
) -> Report:
    """Show what was learnt, replaced, retracted, contradicted and decided between two times."""
    with invocation(context).orchestrator(orchestrator) as handle:
        found = handle.diff(since, until, limit=limit)
    return Report(as_json(found), lambda screen: _show_diff(screen, found))


def history(
    context: typer.Context,
    orchestrator: OrchestratorName,
    memory_id: Annotated[str, typer.Argument(metavar="ID", help="A memory's id.")],
) -> Report:
    """Show every status and every value that a memory had, with their times."""
    with invocation(context).orchestrator(orchestrator) as handle:
        found = handle.history(memory_id)
    return Report(as_json(found), lambda screen: _show_history(screen, found))


def _show_diff(screen: Screen, found: Diff) -> None:
    root = Branch(f"after {moment(found.since)} until {moment(found.until)}", style="bold")
    for name in _OF_MEMORIES:
        _add(root, found, name, map(_memory_line, getattr(found, name)))
    for name in _OF_PAIRS:
        _add(root, found, name, map(_pair_line, getattr(found, name)))
    moved = (
        f"{each.memory_id}  {each.before:.2f} to {each.after:.2f}: {short(each.text)}"
        for each in found.confidence
    )
    _add(root, found, "confidence", moved)
    root.add(f"turns said ({found.counts['said']})", style="dim")
    screen.tree(root)
    if found.cut:
        screen.line("there is more: --limit, or times that lie closer together")


def _add(root: Branch, found: Diff, name: str, lines: Iterable[str]) -> None:
    count = found.counts[name]
    branch = root.add(f"{name} ({count})", style="cyan" if count else "dim")
    for line in lines:
        branch.add(line)


def _memory_line(event: MemoryEvent) -> str:
    why = f" ({event.reason})" if event.reason else ""
    return f"{moment(event.at)}  {event.memory_id}  {event.actor}{why}: {short(event.text)}"


def _pair_line(event: PairEvent) -> str:
    by = event.actor or "unknown"
    for_whom = f" for {event.winner_id}" if event.winner_id else ""
    why = f" ({event.reason})" if event.reason else ""
    sides = f"{short(event.first_text)} / {short(event.second_text)}"
    return f"{moment(event.at)}  {event.edge_id}  {by}{for_whom}{why}: {sides}"


def _show_history(screen: Screen, found: History) -> None:
    screen.table(
        ("since", "until", "status", "by", "reason"),
        [
            (
                moment(each.since),
                moment(each.until),
                each.status.value,
                each.actor,
                each.reason or "",
            )
            for each in found.periods
        ],
    )
    screen.line()
    screen.table(
        ("since", "until", "confidence", "importance", "decay", "valid until"),
        [
            (
                moment(each.since),
                moment(each.until),
                f"{each.confidence:.2f}",
                str(each.importance),
                f"{each.decay_rate:g}",
                moment(each.valid_until),
            )
            for each in found.values
        ],
    )


COMMANDS = {
    "diff": make_command(diff, "diff"),
    "history": make_command(history, "history"),
}
