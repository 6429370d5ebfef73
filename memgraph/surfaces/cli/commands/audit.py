"""Commands for audits and erasures: audit, erase, erasure verify."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memgraph.errors import AuditFailed, ErasureUnproven, InvalidInput, MemgraphError
from memgraph.model.erasure import ErasurePreview, erasure_target
from memgraph.surfaces.cli.builder import OrchestratorName, make_command, make_group, value
from memgraph.surfaces.cli.commands.sources import FIELDS, named
from memgraph.surfaces.cli.files import counted, new_file
from memgraph.surfaces.cli.formats import as_json, short
from memgraph.surfaces.cli.invocation import CommandResult, InvalidContent, invocation
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
    written. The report is signed; `memgraph erasure verify` checks it. If the erasure does not
    finish, run it again.
    """
    by_id = {"conversation_id": conversation, "workflow_run_id": run, "content_sha256": content}
    if [memory, entity, said_in, source, *by_id.values()].count(None) != 6:
        raise typer.BadParameter(
            "name exactly one of MEMORY, --entity, --said-in, --source, --conversation, --run and"
            " --content"
        )
    if source is not None:
        kind, name = named(source)
        by_id[FIELDS[kind]] = name
    target = erasure_target(memory_id=memory, entity=entity, session_id=said_in, **by_id)
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


def verify(
    context: typer.Context,
    report: Annotated[Path, typer.Argument(metavar="REPORT", help="The file with the report.")],
    public_key: Annotated[
        str | None, value("HEX", "The public key that must have signed it.")
    ] = None,
) -> CommandResult:
    """Check an erasure report: its signature, its signer, and the journal's record of it.

    Without --public-key the signer must be this root. If the orchestrator is under this root, its
    journal must have the tombstones that the report names.
    """
    from memgraph.operations.erasure.signatures import check_report, read_report

    call = invocation(context)
    text = report.read_text(encoding="utf-8")
    try:
        result = read_report(text)
    except InvalidInput as error:
        raise InvalidContent(error.message, **error.details) from None
    with call.service() as service:
        check = check_report(service, result, key=public_key)
    data: dict[str, Any] = {"erasure_id": result.erasure_id, **check.as_dict()}

    def show(screen: Screen) -> None:
        screen.fields(_checked_rows(data))

    return CommandResult(data, show, None if check.ok else ErasureUnproven(check.problem))


def _checked_rows(details: dict[str, Any]) -> list[tuple[str, str]]:
    """Describe the result of checking a report."""
    by_id = {True: "yes", False: "no", None: "unknown"}
    journals = {"agrees": "has the tombstones", "disagrees": "does not match the report"}
    return [
        ("erasure", details["erasure_id"]),
        ("signature valid", by_id[details["signature"]]),
        ("signed by", details["signed_by"] or "nobody"),
        ("expected key", by_id[details["known"]]),
        ("journal", journals.get(details["journal"], "is not under this root")),
        ("finished", by_id[details["complete"]]),
        ("residue", str(details["residue"])),
        ("proves the erasure", by_id[details["ok"]]),
    ]


def _show_erased(screen: Screen, report: ErasureReport) -> None:
    verb = "would be erased" if report.dry_run else "erased"
    many = counted(len(report.memory_ids), "memory", "memories")
    screen.line(f"{many} {verb}, {report.derived} of them derived")
    if report.dry_run:
        _show_preview(screen, report)
        return
    rows = [
        ("erasure", report.erasure_id),
        ("entities", str(report.entities)),
        ("journal entries redacted", str(report.journal_redacted)),
        ("files redacted", " ".join(report.files_redacted) or "none"),
        ("files removed", " ".join(report.files_removed) or "none"),
        ("strings searched", str(report.residue.strings)),
        ("residue", f"{report.residue.hits} in {_scanned(report)}"),
    ]
    screen.fields(rows)
    if report.server is not None:
        screen.heading("not proven: what the server stores outside of its tables")
        screen.fields(_traces(report.server))
    _show_rest(screen, report)
    if report.complete:
        place = f"memory/erasures/{report.erasure_id}.json"
        screen.line(f"the report is stored as {place}; to check it: memgraph erasure verify")


def _scanned(report: ErasureReport) -> str:
    tables = report.residue.tables
    return f"{report.residue.files} files" + (f" and {tables} tables" if tables else "")


def _traces(server: ServerTraces) -> list[tuple[str, str]]:
    """Return where the texts may still exist on a server, and until when."""
    archive = "archive_mode is on" if server.archived else "archive_mode is off"
    return [
        ("write-ahead log", f"segments before {server.wal_until}, until they are recycled"),
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
        ("entities", str(report.entities)),
        ("strings to search", str(report.residue.strings)),
        ("strings that remain elsewhere", "; ".join(map(short, planned.shared))),
        ("rows to be redacted", ", ".join(f"{n} of {table}" for table, n in planned.rows.items())),
        ("files to be redacted", " ".join(report.files_redacted) or "none"),
        ("files to be removed", " ".join(report.files_removed) or "none"),
        ("waiting files, not changed", " ".join(planned.waiting)),
        ("similar names, not included", ", ".join(planned.similar)),
    ]
    screen.fields([field for field in fields if field[1]])
    if planned.changed_ids:
        screen.heading("would stay, with erased strings removed from tags or attributes")
        changed = [(item, short(planned.begins.get(item, ""))) for item in planned.changed_ids]
        screen.table(("memory", "text"), changed)
    _show_rest(screen, report)
    screen.line("nothing was written; to erase, repeat the command with --yes")


def _show_rest(screen: Screen, report: ErasureReport) -> None:
    if report.residue.other_case:
        screen.heading("written in another case, not changed")
        for item in report.residue.other_case:
            screen.line(f"{item.file}: {counted(item.count, 'place')}")
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
    where = f" in {', '.join(report.residue.places)}" if report.residue.places else ""
    return ErasureUnproven(f"not finished ({steps}){where}; run the same command again")


COMMANDS: dict[str, Any] = {
    "audit": make_command(audit, "audit"),
    "erase": make_command(erase, "erase"),
    "erasure": make_group("erasure", "Check reports of erasures.", {"verify": verify}),
}
