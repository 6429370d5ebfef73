"""The command that measures what is stored: audit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from memgraph.errors import AuditFailed
from memgraph.surfaces.cli.builder import OrchestratorName, make_command, value
from memgraph.surfaces.cli.formats import as_json
from memgraph.surfaces.cli.invocation import CommandResult, invocation
from memgraph.surfaces.cli.screen import Screen, stages
from memgraph.surfaces.cli.text import counted

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
        found = handle.audit.measure(fail_on=fail_on or (), examples=examples, progress=told)
    return CommandResult(as_json(found), lambda screen: _show(screen, found), _error(found))


def _show(screen: Screen, found: StoreHealth) -> None:
    many = counted(found.memories, "active memory", "active memories")
    screen.line(f"{many}; turns of conversations are not counted")
    rows = [_row(each) for each in found.measures]
    screen.table(("measure", "memories", "of", "rate", "limit", ""), rows)
    for measure in found.measures:
        if measure.examples:
            screen.heading(measure.measure.value)
            screen.table(
                ("memory", "with", "begins"),
                [
                    (one.memory_ids[0], " ".join(one.memory_ids[1:]), one.text)
                    for one in measure.examples
                ],
            )


def _row(each: HealthMeasure) -> tuple[str, ...]:
    limit = "" if each.limit is None else f"{each.limit:.2%}"
    verdict = "" if each.limit is None else "too many" if each.failed else "ok"
    looked_at = f"{each.of} (sample)" if each.sampled else str(each.of)
    return (each.measure.value, str(each.count), looked_at, f"{each.rate:.2%}", limit, verdict)


def _error(found: StoreHealth) -> AuditFailed | None:
    failed = [each for each in found.measures if each.failed]
    if not failed:
        return None
    told = ", ".join(f"{each.measure.value} {each.rate:.2%}" for each in failed)
    return AuditFailed(f"above their limits: {told}")


COMMANDS = {"audit": make_command(audit, "audit")}
