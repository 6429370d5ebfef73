"""Commands for maintenance: repair, upgrade, embed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from memgraph.audit.anchor import AnchorState
from memgraph.audit.journal import read_key
from memgraph.errors import (
    ExtraMissing,
    JournalBroken,
    MemgraphError,
    ProviderError,
)
from memgraph.surfaces.cli.builder import OrchestratorName, make_command
from memgraph.surfaces.cli.files import counted
from memgraph.surfaces.cli.invocation import CommandResult, InvalidContent, invocation
from memgraph.surfaces.cli.screen import Screen, progress, stages

if TYPE_CHECKING:
    from memgraph.operations.maintenance.maintenance import JournalState


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
    """Show the head of a journal: the number and the seal of its last entry, and what is lost.

    Record the head elsewhere to prove later that no earlier entry was changed.

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
    head = f"{orchestrator} {result.seq} {result.hash}"
    broken = result.state is AnchorState.BEHIND and accept is None
    error = JournalBroken(f"{line}; run: memgraph repair {orchestrator} --accept REASON")
    data = result.as_dict() | {"accepted": accept is not None}

    def show(screen: Screen) -> None:
        screen.line(head)
        screen.line(line)

    return CommandResult(data, show, error if broken else None)


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


def upgrade(
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


def embed(
    context: typer.Context,
    orchestrator: OrchestratorName,
    retry: Annotated[
        bool, typer.Option("--retry", help="Include failed and postponed ones.")
    ] = False,
    rebuild: Annotated[
        bool,
        typer.Option(
            "--rebuild",
            help="All memories again, with the configured model, online; or finish such a rebuild.",
        ),
    ] = False,
) -> CommandResult:
    """Embed pending memories, until none is due or the provider fails."""
    with invocation(context).orchestrator(orchestrator) as handle:
        if handle.settings.memory.embedding.provider == "none":
            raise InvalidContent("memory.embedding.provider is none: no embeddings can be made")
        if rebuild:
            with stages("rebuilding") as advance_stage:
                drained = handle.maintenance.rebuild_embeddings(progress=advance_stage)
        else:
            if retry:
                handle.maintenance.retry_embeddings()
            waiting = handle.maintenance.pending_embeddings()
            with progress("embedding", waiting) as advance:
                drained = handle.maintenance.embed_pending(progress=advance)
        status = handle.maintenance.embeddings_status()
    data = {
        "embedded": drained.ready,
        "failed": drained.failed,
        "code": drained.error_code,
        **status.as_dict(),
    }
    pending = status.states["pending"]
    message = f"embedded {drained.ready}, failed {drained.failed}, pending {pending}"

    def show(screen: Screen) -> None:
        screen.line(message)
        screen.line(f"vectors of {_model(status.model, status.dimensions)}")
        for code, count in status.errors.items():
            screen.line(f"{counted(count, 'error')} {code}")
        if status.mismatch is not None:
            screen.line(f"the model changed; run: memgraph embed {orchestrator} --rebuild")

    return CommandResult(data, show, _provider_error(drained.error_code))


def _model(name: str | None, dimensions: int | None) -> str:
    if name is None:
        return "none"
    return name if dimensions is None else f"{name}, {dimensions} dimensions"


def _provider_error(code: str | None) -> MemgraphError | None:
    if code is None:
        return None
    kind = ExtraMissing if code == ExtraMissing.code else ProviderError
    return kind(f"the provider failed ({code}); the other memories stay pending")


def _error(details: dict[str, Any]) -> str:
    error = details.get("error")
    return "" if error is None else f"{error['code']}: {error['message']}"


COMMANDS: dict[str, Any] = {
    "repair": make_command(repair, "repair"),
    "upgrade": make_command(upgrade, "upgrade"),
    "embed": make_command(embed, "embed"),
}
