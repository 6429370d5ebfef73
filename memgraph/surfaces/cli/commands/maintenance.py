"""Commands for maintenance: verify, backup, restore, db, embeddings, export, import."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

from memgraph.audit.anchor import AnchorState
from memgraph.audit.journal import read_key
from memgraph.errors import (
    DatabaseCorrupt,
    ExtraMissing,
    JournalBroken,
    MemgraphError,
    ProviderError,
)
from memgraph.operations.exchange.formats import write_as
from memgraph.surfaces.cli.builder import OrchestratorName, choice, make_command, make_group, value
from memgraph.surfaces.cli.files import counted
from memgraph.surfaces.cli.invocation import CommandResult, InvalidContent, Invocation, invocation
from memgraph.surfaces.cli.screen import Screen, progress, stages

if TYPE_CHECKING:
    from memgraph.audit.findings import VerifyReport
    from memgraph.operations.maintenance.maintenance import JournalState
    from memgraph.operations.write.embedding import EmbeddingRun


class IndexPart(StrEnum):
    """The parts that can be rebuilt."""

    INDEXES = "indexes"
    FTS = "fts"
    VECTORS = "vectors"
    ENTITIES = "entities"


AcceptFindings = Annotated[
    bool,
    typer.Option("--accept-findings", help="Accept findings of the audit, except damage."),
]


def verify(
    context: typer.Context,
    orchestrator: OrchestratorName,
    accept_journal: Annotated[
        str | None,
        typer.Option(
            metavar="REASON",
            help="Anchor the journal as it is, for this reason; this is journalled.",
        ),
    ] = None,
) -> CommandResult:
    """Audit a database: pages, journal, memories, edges and indexes. Changes nothing.

    All data that is journalled or can be recomputed is compared; the guide "Contradictions and
    audit" lists the exceptions and the reasons. The last line is the result.

    Exits with 1 if there are findings. `memgraph rebuild` repairs indexes.
    """
    with invocation(context).orchestrator(orchestrator) as handle:
        if accept_journal is not None:
            handle.maintenance.accept_journal(reason=accept_journal)
        with stages("verifying") as advance:
            report = handle.verify(advance)

    def show(screen: Screen) -> None:
        checked = ", ".join(f"{count} {name}" for name, count in report.checked.items())
        screen.block(f"checked {checked.replace('_', ' ')}")
        rows = [
            (finding.code.value, finding.subject or "", finding.message)
            for finding in report.findings
        ]
        if rows:
            screen.table(("finding", "subject", "what"), rows)
        screen.line(report.summary)

    return CommandResult(
        report.as_dict(), show, None if report.ok else _findings_error(report, orchestrator)
    )


def anchor(context: typer.Context, orchestrator: OrchestratorName) -> CommandResult:
    """Print the head of the journal: the number and the seal of its last entry.

    Record it elsewhere to prove later that no earlier entry was changed.
    """
    with invocation(context).orchestrator(orchestrator) as handle:
        result = handle.maintenance.journal_state()
    data = result.as_dict()
    return CommandResult(
        data, lambda screen: screen.line(f"{orchestrator} {result.seq} {result.hash}")
    )


def repair(
    context: typer.Context,
    orchestrator: OrchestratorName,
    accept: Annotated[
        str | None,
        typer.Option(
            metavar="REASON",
            help="Continue with the remaining journal, for this reason; this is journalled.",
        ),
    ] = None,
) -> CommandResult:
    """Report the entries that a journal has lost, and accept the remaining ones.

    If the entry in the anchor is missing in the journal, all writes are refused until you decide:
    `memgraph restore` with a backup, or `--accept` to continue without the lost entries.
    """
    with invocation(context).orchestrator(orchestrator) as handle:
        result = handle.maintenance.journal_state()
        if accept is not None:
            handle.maintenance.accept_journal(reason=accept)
    line = _lost(result)
    if accept is not None:
        line += "; accepted as it is"
    broken = result.state is AnchorState.BEHIND and accept is None
    error = JournalBroken(f"{line}; run: memgraph repair {orchestrator} --accept REASON")
    data = result.as_dict() | {"accepted": accept is not None}
    return CommandResult(data, lambda screen: screen.line(line), error if broken else None)


def _lost(state: JournalState) -> str:
    ends = f"the journal of {state.orchestrator} ends at entry {state.seq:,}"
    match state.state:
        case AnchorState.AGREES:
            return f"{ends}, as recorded in its anchor: nothing is lost"
        case AnchorState.MISSING:
            return f"{ends}; it has no anchor, so it is unknown whether entries are lost"
        case AnchorState.DAMAGED:
            return f"{ends}; its anchor is damaged, so it is unknown whether entries are lost"
    if state.lost:
        entries = "1 entry is" if state.lost == 1 else f"{state.lost:,} entries are"
        return f"{ends}, but its anchor records entry {state.anchored:,}: {entries} lost"
    return f"{ends}, and entry {state.anchored:,} is not the one that its anchor records"


def backup(
    context: typer.Context,
    orchestrator: OrchestratorName,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write.")],
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    accept_findings: AcceptFindings = False,
) -> CommandResult:
    """Copy a database into one file, even while it is in use, and audit the copy."""
    with invocation(context).orchestrator(orchestrator) as handle, stages("copying") as advance:
        copy = handle.exchange.backup(
            file,
            force=force,
            accept_findings=accept_findings,
            progress=lambda done, total: advance("pages", done, total),
        )
    data = copy.as_dict()
    # A server audits the copy itself, and does not report the number of memories.
    many = f"{counted(data['memories'], 'memory', 'memories')}, " if "memories" in data else ""
    line = f"wrote {many}{copy.bytes} bytes to {copy.path}"
    return CommandResult(data, lambda screen: screen.line(line))


def restore(
    context: typer.Context,
    orchestrator: OrchestratorName,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file made by backup.")],
    reason: Annotated[str, value("TEXT", "Why, for the journal.")] = "restored a backup",
    new_name: Annotated[
        str | None,
        value("NAME", "Restore as a new orchestrator with this name; ORC is unchanged.", "--as"),
    ] = None,
    accept_findings: AcceptFindings = False,
) -> CommandResult:
    """Restore a database from a backup; a damaged backup is refused.

    The old files are moved to memory/replaced/ and never deleted.
    """
    from memgraph.operations.maintenance.maintenance import restore as put_back

    call = invocation(context)
    name = orchestrator if new_name is None else new_name
    with call.service() as service:
        # The settings that will open it; the other orchestrator's config.toml does not apply.
        chosen = service.settings(name).memory
        done = put_back(
            service.paths(name),
            file,
            clock=service.clock,
            actor=call.actor or "user",
            reason=reason,
            origin=None if new_name is None else orchestrator,
            accept_findings=accept_findings,
            url=chosen.storage.url,
        )

    def show(screen: Screen) -> None:
        many = counted(done.memories, "memory", "memories")
        screen.line(f"restored {many} of {done.orchestrator} from {done.backup}")
        if done.replaced is not None:
            screen.line(f"the old files: {done.replaced}")

    return CommandResult(done.as_dict(), show)


def migrate_store(
    context: typer.Context,
    orchestrator: OrchestratorName,
    to: Annotated[str, typer.Option(metavar="URL|file", help="A server's URL, or `file`.")],
) -> CommandResult:
    """Move an orchestrator into a file or to a server, and verify it there.

    Reads continue; writes and erasures wait until it has ended. The setting is written to the
    orchestrator's config.toml. The old store is kept. If the move is interrupted, the old store
    stays in use: run the command again.
    """
    from memgraph.operations.maintenance.move import move

    call = invocation(context)
    with call.service() as service:
        service.orchestrator(orchestrator)
        chosen = service.settings(orchestrator).memory
        done = move(
            service.paths(orchestrator),
            "" if to == "file" else to,
            source=chosen.storage.url,
            clock=service.clock,
        )

    def show(screen: Screen) -> None:
        many = counted(done.memories, "memory", "memories")
        screen.line(f"moved {many} of {done.orchestrator} to {done.target or 'a file'}, verified")
        screen.line(f"writers waited for {done.paused_ms / 1000:.1f} s")
        if done.left is not None:
            screen.line(f"the old store: {done.left}")
        if done.left is not None and done.source:
            screen.line("erasures do not cover it: drop that schema when you no longer need it")

    return CommandResult(done.as_dict(), show)


def db_upgrade(
    context: typer.Context,
    orchestrator: Annotated[
        str | None, typer.Argument(metavar="ORC", help="One orchestrator.", show_default=False)
    ] = None,
    everyone: Annotated[bool, typer.Option("--all", help="All under the root.")] = False,
) -> CommandResult:
    """Upgrade the schema of a database to this version, after a backup next to it.

    With --all, the others are upgraded even if one fails; the command then exits with 1.
    """
    from memgraph.operations.maintenance import maintenance

    if (orchestrator is None) != everyone:
        raise typer.BadParameter("name an orchestrator, or --all")
    call = invocation(context)
    done: list[dict[str, Any]] = []
    failed: list[MemgraphError] = []
    with call.service() as service:
        names = service.orchestrators() if orchestrator is None else [orchestrator]
        with progress("upgrading", len(names)) as advance:
            for name in names:
                service.orchestrator(name)
                try:
                    outcome = maintenance.upgrade(
                        service.paths(name),
                        service.clock,
                        key=read_key(service.settings(name).memory.audit.key_file, service.root),
                        url=service.settings(name).memory.storage.url,
                    ).as_dict()
                except MemgraphError as error:
                    if not everyone:
                        raise
                    failed.append(error)
                    outcome = {"orchestrator": name, "error": error.as_dict()}
                done.append(outcome)
                advance(1)
    rows = [
        (item["orchestrator"], item.get("before", ""), item.get("after", ""), _error(item))
        for item in done
    ]
    refusal = None
    if failed:
        refusal = type(failed[0])(f"{len(failed)} of {len(names)} failed: {failed[0].message}")

    def show(screen: Screen) -> None:
        screen.table(("orchestrator", "before", "after", "error"), rows)
        for item in done:
            if item.get("sealed_at"):
                screen.line(
                    f"{item['orchestrator']}: journal entry {item['sealed_at']} seals the tables"
                    " again; rows written without digests before are accepted as they are"
                )

    return CommandResult({"upgraded": done}, show, refusal)


def db_status(context: typer.Context, orchestrator: OrchestratorName) -> CommandResult:
    """Show the path of a database, its schema and its sizes."""
    call = invocation(context)
    with call.service() as service:
        handle = call.handle(service, orchestrator)
        result = handle.maintenance.stats()
        data = {
            "orchestrator": orchestrator,
            "path": str(service.paths(orchestrator).database),
            "schema": result["schema"],
            "bytes": result["bytes"],
        }
    sizes = ", ".join(f"{name} {size}" for name, size in data["bytes"].items())
    rows = [("path", data["path"]), ("schema", data["schema"]), ("bytes", sizes)]
    return CommandResult(data, lambda screen: screen.fields(rows))


def rebuild(
    context: typer.Context,
    orchestrator: OrchestratorName,
    parts: Annotated[
        list[IndexPart] | None,
        choice(IndexPart, "--part", text="Only this; repeatable. [all of them]"),
    ] = None,
) -> CommandResult:
    """Rebuild indexes: of tables, full text, vectors, entity links. No memory is changed."""
    call = invocation(context)
    with call.orchestrator(orchestrator) as handle:
        with stages("rebuilding") as advance:
            chosen = [part.value for part in parts or IndexPart]
            rows = handle.maintenance.rebuild(chosen, progress=advance)
        embedding = call.after_writing(handle)
    line = ", ".join(f"{name} {count}" for name, count in rows.items())
    return CommandResult(
        {"rows": rows, "embedding": embedding}, lambda screen: screen.line(f"rebuilt: {line}")
    )


def embeddings_status(context: typer.Context, orchestrator: OrchestratorName) -> CommandResult:
    """Show how many memories are embedded, pending or failed, and with which model."""
    with invocation(context).orchestrator(orchestrator) as handle:
        result = handle.maintenance.embeddings_status()
    rows = [
        *((name, str(count)) for name, count in result.states.items()),
        ("vectors of", _model(result.model, result.dimensions)),
        ("provider", _model(result.provider_model, result.provider_dimensions)),
        *((f"error {code}", str(count)) for code, count in result.errors.items()),
    ]

    def show(screen: Screen) -> None:
        screen.fields(rows)
        if result.mismatch is not None:
            screen.line(f"the model changed; run: memgraph embeddings rebuild {orchestrator}")

    return CommandResult(result.as_dict(), show)


def embeddings_rebuild(context: typer.Context, orchestrator: OrchestratorName) -> CommandResult:
    """Recompute all vectors with the configured model, online, or finish an interrupted rebuild."""
    with invocation(context).orchestrator(orchestrator) as handle:
        with stages("rebuilding") as advance:
            drained = handle.maintenance.rebuild_embeddings(progress=advance)
        states = handle.maintenance.embedding_states()
    return _drain_result(drained, states)


def embeddings_drain(context: typer.Context, orchestrator: OrchestratorName) -> CommandResult:
    """Embed pending memories, until none is due or the provider fails."""
    return _drain(context, orchestrator, retry=False)


def embeddings_retry(context: typer.Context, orchestrator: OrchestratorName) -> CommandResult:
    """Embed all pending memories now, including failed and postponed ones."""
    return _drain(context, orchestrator, retry=True)


def _drain(context: typer.Context, orchestrator: str, *, retry: bool) -> CommandResult:
    with invocation(context).orchestrator(orchestrator) as handle:
        if handle.settings.memory.embedding.provider == "none":
            raise InvalidContent("memory.embedding.provider is none: no embeddings can be made")
        if retry:
            handle.maintenance.retry_embeddings()
        waiting = handle.maintenance.pending_embeddings()
        with progress("embedding", waiting) as advance:
            drained = handle.maintenance.embed_pending(progress=advance)
        states = handle.maintenance.embedding_states()
    return _drain_result(drained, states)


def _drain_result(drained: EmbeddingRun, states: dict[str, int]) -> CommandResult:
    data = {
        "embedded": drained.ready,
        "failed": drained.failed,
        "states": states,
        "code": drained.error_code,
    }
    message = f"embedded {drained.ready}, failed {drained.failed}, pending {states['pending']}"
    return CommandResult(
        data, lambda screen: screen.line(message), _provider_error(drained.error_code)
    )


def _model(name: str | None, dimensions: int | None) -> str:
    if name is None:
        return "none"
    return name if dimensions is None else f"{name}, {dimensions} dimensions"


def _provider_error(code: str | None) -> MemgraphError | None:
    if code is None:
        return None
    kind = ExtraMissing if code == ExtraMissing.code else ProviderError
    return kind(f"the provider failed ({code}); the other memories stay pending")


def _findings_error(report: VerifyReport, orchestrator: str) -> MemgraphError:
    message = ", ".join(f"{count} x {code}" for code, count in sorted(report.totals.items()))
    if report.rebuildable:
        return DatabaseCorrupt(f"{message}; run: memgraph rebuild {orchestrator}")
    if all(code.startswith("journal.") for code in report.totals):
        return JournalBroken(message)
    return DatabaseCorrupt(f"{message}; restore a backup, or find out who changed it")


def _error(details: dict[str, Any]) -> str:
    error = details.get("error")
    return "" if error is None else f"{error['code']}: {error['message']}"


class ExportFormat(StrEnum):
    """The format of an export."""

    JSONL = "jsonl"
    VAULT = "vault"
    CSV = "csv"
    GRAPHML = "graphml"


def export(
    context: typer.Context,
    orchestrator: OrchestratorName,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="The file to write. [standard output]"),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    with_vectors: Annotated[
        bool, typer.Option("--with-vectors", help="Include embeddings; an import can make them.")
    ] = False,
    form: Annotated[
        ExportFormat,
        typer.Option("--format", help="jsonl can be imported; others contain memories and edges."),
    ] = ExportFormat.JSONL,
) -> CommandResult:
    """Write all data of an orchestrator, regardless of sensitivity.

    The format is JSON Lines, which can be imported, a vault of Markdown notes (a folder), CSV or
    GraphML.
    """
    call = invocation(context)
    if form is not ExportFormat.JSONL:
        if output is None or with_vectors:
            raise typer.BadParameter(f"--format {form.value} requires --output, not --with-vectors")
        return _export_as(call, orchestrator, form, output, force=force)
    if output is None and (call.as_json or sys.stdout.isatty()):
        raise typer.BadParameter("name a file with --output, or redirect standard output")
    with call.orchestrator(orchestrator) as handle:
        if output is None:
            for line in handle.exchange.export_lines(with_vectors=with_vectors):
                sys.stdout.buffer.write(line)
            return CommandResult({}, _show_nothing)
        with _total_progress("exporting") as advance:
            done = handle.exchange.export(
                output, force=force, with_vectors=with_vectors, progress=advance
            )
    line_of_text = f"wrote {_counts(done.records)} to {done.path}"
    return CommandResult(done.as_dict(), lambda screen: screen.line(line_of_text))


def _export_as(
    call: Invocation, orchestrator: str, form: ExportFormat, output: Path, *, force: bool
) -> CommandResult:
    with call.orchestrator(orchestrator) as handle, TemporaryDirectory() as folder:
        with _total_progress("exporting") as advance:
            lines = handle.exchange.export(Path(folder) / "lines", progress=advance).path
        with lines.open("rb") as source:
            count = write_as(form.value, source, output, force=force)
    data = {"orchestrator": orchestrator, "path": str(output), "memories": count}
    return CommandResult(data, lambda screen: screen.line(f"wrote {count} memories to {output}"))


def import_(
    context: typer.Context,
    orchestrator: OrchestratorName,
    file: Annotated[str, typer.Argument(metavar="FILE", help="An export; - reads standard input.")],
) -> CommandResult:
    """Import an export: ids, times, history and journal are restored.

    The orchestrator must be new or empty. A damaged or truncated export is rejected as a whole.
    """
    call = invocation(context)
    with call.service() as service, _source(file) as source:
        with _total_progress("importing") as advance:
            done = service.import_lines(
                orchestrator, source, actor=call.actor or "user", progress=advance
            )
        embedding = call.after_writing(call.handle(service, orchestrator))
    return CommandResult(
        {**done.as_dict(), "embedding": embedding},
        lambda screen: screen.line(f"imported {_counts(done.records)} into {orchestrator}"),
    )


@contextmanager
def _source(file: str) -> Iterator[BinaryIO]:
    if file == "-":
        yield sys.stdin.buffer
        return
    with Path(file).open("rb") as opened:
        yield opened


@contextmanager
def _total_progress(title: str) -> Iterator[Callable[[int], None]]:
    """Yield a callback that reports progress, and takes the total so far."""
    done = 0
    with progress(title, None) as advance:

        def told(lines: int) -> None:
            nonlocal done
            advance(lines - done)
            done = lines

        yield told


def _counts(records: dict[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in records.items()) or "nothing"


def _show_nothing(_screen: Screen) -> None:
    """Print nothing, because the exported lines are the output."""


COMMANDS: dict[str, Any] = {
    "verify": make_command(verify, "verify"),
    "anchor": make_command(anchor, "anchor"),
    "repair": make_command(repair, "repair"),
    "rebuild": make_command(rebuild, "rebuild"),
    "backup": make_command(backup, "backup"),
    "restore": make_command(restore, "restore"),
    "migrate-store": make_command(migrate_store, "migrate-store"),
    "db": make_group(
        "db",
        "Show and upgrade database schemas.",
        {"upgrade": db_upgrade, "status": db_status},
    ),
    "embeddings": make_group(
        "embeddings",
        "Show, make and rebuild embeddings.",
        {
            "status": embeddings_status,
            "drain": embeddings_drain,
            "retry": embeddings_retry,
            "rebuild": embeddings_rebuild,
        },
    ),
    "export": make_command(export, "export"),
    "import": make_command(import_, "import"),
}
