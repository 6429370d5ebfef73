"""The commands expiring and reflection."""

from __future__ import annotations

from typing import Annotated

import typer

from memgraph.model.jobs import ExpiringMemory, ExpiringReport
from memgraph.surfaces.cli.builder import OrchestratorName, make_command
from memgraph.surfaces.cli.formats import as_json, day, short, summary_of
from memgraph.surfaces.cli.invocation import CommandResult, invocation
from memgraph.surfaces.cli.screen import Screen

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


COMMANDS = {
    "expiring": make_command(expiring, "expiring"),
    "reflection": make_command(reflection, "reflection"),
}
