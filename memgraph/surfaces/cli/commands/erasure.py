"""Erasing texts, and checking erasure reports: erase, erasure verify."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memgraph.errors import ErasureUnproven, InvalidInput, MemgraphError
from memgraph.model.erasure import ErasurePreview, erasure_target
from memgraph.surfaces.cli.builder import OrchestratorName, make_command, make_group, value
from memgraph.surfaces.cli.commands.sources import FIELDS, named
from memgraph.surfaces.cli.files import new_file
from memgraph.surfaces.cli.formats import as_json, short
from memgraph.surfaces.cli.invocation import CommandResult, InvalidContent, invocation
from memgraph.surfaces.cli.screen import Screen, stages
from memgraph.surfaces.cli.text import counted

if TYPE_CHECKING:
    from memgraph.model.erasure import ErasureReport, ServerTraces

WHY_KEPT = {
    "other_grounds": "has other evidence",
    "other_sources": "has other sources",
    "says_it": "says the same",
}


def erase(
    context: typer.Context,
    orchestrator: OrchestratorName,
    memory: Annotated[str | None, typer.Argument(metavar="MEMORY", help="Its id.")] = None,
    entity: Annotated[str | None, value("NAME", "All that names it; an id or a name.")] = None,
    # --session is what every command takes: whose memories are seen.
    said_in: Annotated[
        str | None, value("SESSION", "All that was said in a session, or drawn from it.")
    ] = None,
    source: Annotated[
        str | None,
        value("SOURCE", "All from conversation:ID, run:ID, content:SHA256, a file or a folder."),
    ] = None,
    conversation: Annotated[str | None, value("ID", "All that came from a conversation.")] = None,
    run: Annotated[str | None, value("ID", "All that came from a run of a workflow.")] = None,
    content: Annotated[
        str | None, value("SHA256", "All that came from a file of these bytes.")
    ] = None,
    reason: Annotated[str, value("TEXT", "Why; journalled. It repeats nothing of the text.")] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Do it. Without, only show it.")] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the report to a file, too.")
    ] = None,
) -> CommandResult:
    """Erase texts permanently: rows, indexes, vectors, receipts, files, logs, copies beside them.

    What was derived from the erased memories alone is erased, too; the report lists what stays and
    why. Ids, times and edges stay, and the journal still verifies. Without --yes nothing is
    written. The report is signed; `memgraph erasure verify` checks it. Run it again when it is
    unfinished.
    """
    by_id = {"conversation_id": conversation, "workflow_run_id": run, "content_sha256": content}
    if [memory, entity, said_in, source, *by_id.values()].count(None) != 6:
        raise typer.BadParameter(
            "name one thing: a MEMORY, --entity, --said-in, --source, --conversation, --run or"
            " --content"
        )
    if source is not None:
        kind, name = named(source)
        by_id[FIELDS[kind]] = name
    target = erasure_target(memory_id=memory, entity=entity, session_id=said_in, **by_id)
    with nullcontext() if output is None else new_file(output) as file:
        with invocation(context).orchestrator(orchestrator) as handle, stages("erasing") as told:
            found = handle.erasure.erase_target(
                target, reason=reason, dry_run=not yes, progress=told
            )
        if file is not None:
            file.write(f"{found.model_dump_json(indent=2)}\n".encode())
    return CommandResult(as_json(found), lambda screen: _show(screen, found), _unfinished(found))


def verify(
    context: typer.Context,
    report: Annotated[Path, typer.Argument(metavar="REPORT", help="The file of a report.")],
    public_key: Annotated[
        str | None, value("HEX", "The public key that must have signed it.")
    ] = None,
) -> CommandResult:
    """Check an erasure report: its signature, its signer, and the journal's record of it.

    Without --public-key it is compared with the key of this root. If the orchestrator is under this
    root, its journal must have the tombstones that the report names.
    """
    from memgraph.operations.erasure.signatures import check_report, read_report

    given = invocation(context)
    text = report.read_text(encoding="utf-8")
    try:
        found = read_report(text)
    except InvalidInput as error:
        raise InvalidContent(error.message, **error.details) from None
    with given.service() as service:
        told = check_report(service, found, key=public_key)
    data: dict[str, Any] = {"erasure_id": found.erasure_id, **told.as_dict()}

    def show(screen: Screen) -> None:
        screen.fields(_checked_rows(data))

    return CommandResult(data, show, None if told.ok else ErasureUnproven(told.problem))


def _checked_rows(told: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the result of checking a report, in words."""
    known = {True: "yes", False: "no", None: "none is known here"}
    journals = {"agrees": "has the tombstones", "disagrees": "says something else"}
    return [
        ("erasure", told["erasure_id"]),
        ("as it was signed", known[told["signature"]]),
        ("signed by", told["signed_by"] or "nobody"),
        ("with the expected key", known[told["known"]]),
        ("journal", journals.get(told["journal"], "is not under this root")),
        ("finished", known[told["complete"]]),
        ("residue", str(told["residue"])),
        ("a proof", known[told["ok"]]),
    ]


def _show(screen: Screen, found: ErasureReport) -> None:
    verb = "would be erased" if found.dry_run else "erased"
    many = counted(len(found.memory_ids), "memory", "memories")
    screen.line(f"{many} {verb}, {found.derived} of them derived")
    if found.dry_run:
        _show_preview(screen, found)
        return
    rows = [
        ("erasure", found.erasure_id),
        ("entities", str(found.entities)),
        ("journal entries redacted", str(found.journal_redacted)),
        ("files redacted", " ".join(found.files_redacted) or "none"),
        ("files removed", " ".join(found.files_removed) or "none"),
        ("strings looked for", str(found.residue.strings)),
        ("residue", f"{found.residue.hits} in {_scanned(found)}"),
    ]
    screen.fields(rows)
    if found.server is not None:
        screen.heading("not proven: what the server keeps beyond its tables")
        screen.fields(_traces(found.server))
    _show_rest(screen, found)
    if found.complete:
        place = f"memory/erasures/{found.erasure_id}.json"
        screen.line(f"the report is kept as {place}; to check it: memgraph erasure verify")


def _scanned(found: ErasureReport) -> str:
    tables = found.residue.tables
    return f"{found.residue.files} files" + (f" and {tables} tables" if tables else "")


def _traces(server: ServerTraces) -> list[tuple[str, str]]:
    """Return what may still hold the texts, and until when."""
    archive = "archive_mode is on" if server.archived else "archive_mode is off"
    return [
        ("write-ahead log", f"segments before {server.wal_until}, until they are recycled"),
        ("archived log", f"{archive}; what was archived before is yours to remove"),
        ("replicas", f"{server.replicas} read the log; they follow, and have logs of their own"),
        ("backups", "those taken before, until they are removed"),
    ]


def _show_preview(screen: Screen, found: ErasureReport) -> None:
    """Show what would be erased, by the beginnings of its texts; a dry run has no erasure id."""
    told = found.preview or ErasurePreview()
    if told.begins:
        screen.heading("would be erased")
        rows = [
            (each, "derived" if each in told.derived_ids else "", short(told.begins[each]))
            for each in found.memory_ids
            if each in told.begins
        ]
        screen.table(("memory", "", "text"), rows)
        if len(found.memory_ids) > len(rows):
            screen.line(f"and {len(found.memory_ids) - len(rows)} more")
    fields = [
        ("entities", str(found.entities)),
        ("strings looked for", str(found.residue.strings)),
        ("files to be redacted", " ".join(found.files_redacted) or "none"),
        ("files to be removed", " ".join(found.files_removed) or "none"),
        ("files that wait and are not touched", " ".join(told.waiting)),
        ("similar names, not meant", ", ".join(told.similar)),
    ]
    screen.fields([each for each in fields if each[1]])
    _show_rest(screen, found)
    screen.line("nothing was written; to erase, give the same command with --yes")


def _show_rest(screen: Screen, found: ErasureReport) -> None:
    if found.residue.other_case:
        screen.heading("written with other capitals, and not touched")
        for each in found.residue.other_case:
            screen.line(f"{each.file}: {counted(each.count, 'place')}")
    if found.kept:
        screen.heading("would stay" if found.dry_run else "stayed")
        begins = {} if found.preview is None else found.preview.begins
        rows = [
            (one.memory_id, WHY_KEPT[one.why], short(begins.get(one.memory_id, "")))
            for one in found.kept
        ]
        screen.table(("memory", "why", "text"), rows)
    if found.outside:
        screen.heading("source files outside of the root, not touched")
        for path in found.outside:
            screen.line(path)


def _unfinished(found: ErasureReport) -> MemgraphError | None:
    if found.dry_run or found.complete:
        return None
    told = ", ".join(found.unfinished)
    where = f" in {', '.join(found.residue.places)}" if found.residue.places else ""
    return ErasureUnproven(f"not finished ({told}){where}; run the same again")


COMMANDS = {
    "erase": make_command(erase, "erase"),
    "erasure": make_group("erasure", "Check reports of erasures.", {"verify": verify}),
}
