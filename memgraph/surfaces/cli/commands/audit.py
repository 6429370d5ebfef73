"""Commands for audits and erasures: audit, erase, list-erasures."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memgraph.clock import iso
from memgraph.errors import AuditFailed, ErasureUnproven, MemgraphError
from memgraph.model.erasure import ErasurePreview, erasure_target
from memgraph.surfaces.cli.builder import OrchestratorName, make_command, value
from memgraph.surfaces.cli.commands.sources import FIELDS, named
from memgraph.surfaces.cli.files import counted, new_file
from memgraph.surfaces.cli.formats import as_json, short
from memgraph.surfaces.cli.invocation import CommandResult, invocation
from memgraph.surfaces.cli.screen import Screen, stages

if TYPE_CHECKING:
    from memgraph.model.access import HealthMeasure, StoreHealth
    from memgraph.model.erasure import ErasureReport, ServerTraces


def audit(
    context: typer.Context,
    orchestrator: OrchestratorName,
    fail_on: Annotated[
        list[str] | None,
        value(
            "NAME[=RATE]",
            "Exit with 1 if this rate is exceeded: stale=0.05, stale=5%, orphan, all. Repeatable.",
            "--fail-on",
        ),
    ] = None,
    examples: Annotated[int, typer.Option(help="Examples per measure, 0 to 100.")] = 3,
) -> CommandResult:
    """Measure the stored memories: duplicates, contradictions, stale ones, ones without a source.

    Counts the active memories that you may see, except turns of conversations. Changes nothing.
    `memgraph verify` checks whether the database itself is intact.
    """
    with invocation(context).orchestrator(orchestrator) as handle, stages("measuring") as advance:
        result = handle.audit.measure(fail_on=fail_on or (), examples=examples, progress=advance)
    return CommandResult(
        as_json(result), lambda screen: _show_audit(screen, result), _error(result)
    )


def _show_audit(screen: Screen, health: StoreHealth) -> None:
    many = counted(health.memories, "active memory", "active memories")
    screen.line(f"{many}; turns of conversations are not counted")
    rows = [_row(item) for item in health.measures]
    screen.table(("measure", "memories", "of", "rate", "limit", ""), rows)
    for measure in health.measures:
        if measure.examples:
            screen.heading(measure.measure.value)
            screen.table(
                ("memory", "with", "text"),
                [
                    (example.memory_ids[0], " ".join(example.memory_ids[1:]), example.text)
                    for example in measure.examples
                ],
            )


def _row(measure: HealthMeasure) -> tuple[str, ...]:
    limit = "" if measure.limit is None else f"{measure.limit:.2%}"
    verdict = "" if measure.limit is None else "too many" if measure.failed else "ok"
    examined = f"{measure.of} (sample)" if measure.sampled else str(measure.of)
    return (
        measure.measure.value,
        str(measure.count),
        examined,
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


WHY_KEPT = {
    "other_grounds": "has other evidence",
    "other_sources": "has other sources",
    "says_it": "says the same",
}


def erase(
    context: typer.Context,
    orchestrator: OrchestratorName,
    memory: Annotated[str | None, typer.Argument(metavar="MEMORY", help="A memory's id.")] = None,
    entity: Annotated[str | None, value("NAME", "All that names this entity, or its id.")] = None,
    text: Annotated[
        str | None, value("TEXT", "A literal text, in any case, wherever it occurs.")
    ] = None,
    # The name --session is a common option of all commands, with another meaning.
    said_in: Annotated[
        str | None, value("SESSION", "All that was said in a session or derived from it.")
    ] = None,
    source: Annotated[
        str | None,
        value("SOURCE", "All from conversation:ID, run:ID, content:SHA256, a file or a folder."),
    ] = None,
    conversation: Annotated[str | None, value("ID", "All from a conversation.")] = None,
    run: Annotated[str | None, value("ID", "All from a run of a workflow.")] = None,
    content: Annotated[str | None, value("SHA256", "All from files with this content.")] = None,
    reason: Annotated[str, value("TEXT", "Why, for the journal; do not quote the texts.")] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Erase, not only preview.")] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Also write the report to a file.")
    ] = None,
) -> CommandResult:
    """Erase texts permanently, from rows, indexes, vectors, receipts, files, logs and copies.

    Memories that were derived only from erased ones are erased, too; the report lists what stays
    and why. Ids, times and edges stay, and the journal still verifies. Without --yes nothing is
    written. The report is also an entry of the journal; `memgraph list-erasures` shows it. If the
    erasure does not finish, run it again.
    """
    by_id = {"conversation_id": conversation, "workflow_run_id": run, "content_sha256": content}
    if [memory, entity, text, said_in, source, *by_id.values()].count(None) != 7:
        raise typer.BadParameter(
            "name exactly one of MEMORY, --entity, --text, --said-in, --source, --conversation,"
            " --run and --content"
        )
    if source is not None:
        kind, name = named(source)
        by_id[FIELDS[kind]] = name
    target = erasure_target(memory_id=memory, entity=entity, text=text, session_id=said_in, **by_id)
    with nullcontext() if output is None else new_file(output) as file:
        with invocation(context).orchestrator(orchestrator) as handle, stages("erasing") as advance:
            result = handle.erasure.erase_target(
                target, reason=reason, dry_run=not yes, progress=advance
            )
        if file is not None:
            file.write(f"{result.model_dump_json(indent=2)}\n".encode())
    return CommandResult(
        as_json(result), lambda screen: _show_erased(screen, result), _unfinished(result)
    )


def _show_erased(screen: Screen, report: ErasureReport) -> None:
    verb = "would be erased" if report.dry_run else "erased"
    many = counted(len(report.memory_ids), "memory", "memories")
    screen.line(f"{many} {verb}, {report.derived} of them derived")
    if report.dry_run:
        _show_preview(screen, report)
        return
    searched = report.searched
    rows = [
        ("erasure", report.erasure_id),
        ("entities", str(report.entities)),
        ("journal entries redacted", str(report.redactions)),
        ("files redacted", " ".join(report.files_redacted) or "none"),
        ("files removed", " ".join(report.files_removed) or "none"),
        (
            "searched",
            f"{searched.strings} strings in {searched.files} files, {searched.tables} tables",
        ),
        ("remains", " ".join(report.remains) or "none"),
    ]
    screen.fields(rows)
    if report.server is not None:
        screen.heading("not proven: what the server stores outside of its tables")
        screen.fields(_traces(report.server))
    _show_rest(screen, report)


def _traces(server: ServerTraces) -> list[tuple[str, str]]:
    """Return where the texts may still exist on a server, and until when."""
    archive = "archive_mode is on" if server.archived else "archive_mode is off"
    until = server.wal_expected_until
    about = "" if until is None else f", expected about {iso(until)}"
    return [
        (
            "write-ahead log",
            f"segments before {server.wal_until}, until they are overwritten{about}",
        ),
        ("archived log", f"{archive}; remove earlier archives yourself"),
        ("replicas", f"{server.replicas} read the log; they also erase, but keep their own logs"),
        ("backups", "earlier ones, until they are removed"),
    ]


def _show_preview(screen: Screen, report: ErasureReport) -> None:
    """Show what would be erased, with the first words of the texts."""
    planned = report.preview or ErasurePreview()
    if planned.begins:
        screen.heading("would be erased")
        rows = [
            (
                memory_id,
                "derived" if memory_id in planned.derived_ids else "",
                short(planned.begins[memory_id]),
            )
            for memory_id in report.memory_ids
            if memory_id in planned.begins
        ]
        screen.table(("memory", "", "text"), rows)
        if len(report.memory_ids) > len(rows):
            screen.line(f"and {len(report.memory_ids) - len(rows)} more")
    fields = [
        ("entities", ", ".join(planned.names)),
        ("strings to search", str(report.searched.strings)),
        ("rows to be redacted", ", ".join(f"{n} of {table}" for table, n in report.rows.items())),
        ("files to be redacted", " ".join(report.files_redacted) or "none"),
        ("files to be removed", " ".join(report.files_removed) or "none"),
        ("waiting files, not changed", " ".join(planned.waiting)),
    ]
    screen.fields([field for field in fields if field[1]])
    _show_rest(screen, report)
    screen.line("nothing was written; to erase, repeat the command with --yes")


def _show_rest(screen: Screen, report: ErasureReport) -> None:
    if report.kept:
        screen.heading("would stay" if report.dry_run else "stayed")
        begins = {} if report.preview is None else report.preview.begins
        rows = [
            (memory.memory_id, WHY_KEPT[memory.why], short(begins.get(memory.memory_id, "")))
            for memory in report.kept
        ]
        screen.table(("memory", "why", "text"), rows)
    if report.outside:
        screen.heading(
            "outside of the root, not changed: source files, and what a move left on a server"
        )
        for path in report.outside:
            screen.line(path)


def _unfinished(report: ErasureReport) -> MemgraphError | None:
    if report.dry_run or report.complete:
        return None
    steps = ", ".join(report.unfinished)
    where = f" in {', '.join(report.remains)}" if report.remains else ""
    return ErasureUnproven(f"not finished ({steps}){where}; run the same command again")


COMMANDS: dict[str, Any] = {
    "audit": make_command(audit, "audit"),
    "erase": make_command(erase, "erase"),
}
