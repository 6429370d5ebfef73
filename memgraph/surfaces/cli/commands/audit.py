"""The command that measures what is stored: audit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from memgraph.errors import AuditFailed
from memgraph.surfaces.cli.builder import OrchestratorName, make_command, value
from memgraph.surfaces.cli.files import counted
from memgraph.surfaces.cli.formats import as_json
from memgraph.surfaces.cli.invocation import CommandResult, invocation
from memgraph.surfaces.cli.screen import Screen, stages

if TYPE_CHECKING:
    from memgraph.model.access import HealthMeasure, StoreHealth


def audit(
    context: typer.Context,
    orchestrator: OrchestratorName,
    fail_on: Annotated[
        list[str] | None,
        value(
            "NAME[=RATE]",
            "End with 1 where this rate is above: stale=0.05, stale=5%, echo, all. Repeatable.",
            "--fail-on",
        ),
    ] = None,
    examples: Annotated[int, typer.Option(help="Of each measure, 0 to 100.")] = 3,
) -> CommandResult:
    """Measure what is stored: duplicates, contradictions, what is stale or has no source.

    Counts the active memories that you may see, without turns of conversations. Nothing is changed.
    `memgraph verify` checks whether the database itself is intact.
    """
    with invocation(context).orchestrator(orchestrator) as handle, stages("measuring") as told:
        result = handle.audit.measure(fail_on=fail_on or (), examples=examples, progress=told)
    return CommandResult(as_json(result), lambda screen: _show(screen, result), _error(result))


def _show(screen: Screen, health: StoreHealth) -> None:
    many = counted(health.memories, "active memory", "active memories")
    screen.line(f"{many}; turns of conversations are not counted")
    rows = [_row(item) for item in health.measures]
    screen.table(("measure", "memories", "of", "rate", "limit", ""), rows)
    for measure in health.measures:
        if measure.examples:
            screen.heading(measure.measure.value)
            screen.table(
                ("memory", "with", "begins"),
                [
                    (example.memory_ids[0], " ".join(example.memory_ids[1:]), example.text)
                    for example in measure.examples
                ],
            )


def _row(measure: HealthMeasure) -> tuple[str, ...]:
    limit = "" if measure.limit is None else f"{measure.limit:.2%}"
    verdict = "" if measure.limit is None else "too many" if measure.failed else "ok"
    looked_at = f"{measure.of} (sample)" if measure.sampled else str(measure.of)
    return (
        measure.measure.value,
        str(measure.count),
        looked_at,
        f"{measure.rate:.2%}",
        limit,
        verdict,
    )


def _error(health: StoreHealth) -> AuditFailed | None:
    failed = [measure for measure in health.measures if measure.failed]
    if not failed:
        return None
    message = ", ".join(f"{item.measure.value} {item.rate:.2%}" for item in failed)
    return AuditFailed(f"above their limits: {message}")


COMMANDS = {"audit": make_command(audit, "audit")}
