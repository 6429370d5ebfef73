"""Commands for methods that are no operations, because not every server offers them.

The first argument is the handle of an orchestrator; see ``command_of`` for the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field

from memgraph.errors import ConfirmationMissing, InvalidInput
from memgraph.model.enums import IndexPart
from memgraph.model.operation import Progress
from memgraph.surfaces.cli.invocation import InvalidContent


def jobs(handle: Any, *, limit: Annotated[int, Field(ge=1, le=1000)] = 20) -> Any:
    """Show when each job is due next, and the latest runs."""
    return {"plans": handle.jobs.plans(), "runs": handle.jobs.list(limit=limit)}


def rebuild(handle: Any, *, parts: Sequence[IndexPart] = (), progress: Progress) -> Any:
    """Rebuild indexes: of tables, full text, vectors, entity links. No memory is changed.

    Args:
        parts: only this; repeatable.
    """
    chosen = [part.value for part in parts or IndexPart]
    return handle.maintenance.rebuild(chosen, progress=progress)


def repair(handle: Any, *, accept: str | None = None) -> Any:
    """Show the head of a journal: the number and the seal of its last entry, and what is lost.

    Record the head elsewhere to prove later that no earlier entry was changed.

    If the entry in the anchor is missing in the journal, all writes are refused until you decide:
    `memgraph restore` with a backup, or `--accept` to continue without the lost entries.

    Args:
        accept: continue with the remaining journal, for this reason; this is journalled.
    """
    state = handle.maintenance.journal_state()
    if accept is not None:
        handle.maintenance.accept_journal(reason=accept)
    return state


def embed(handle: Any, *, retry: bool = False, rebuild: bool = False, progress: Progress) -> Any:
    """Embed pending memories, until none is due or the provider fails.

    Args:
        retry: include failed and postponed ones.
        rebuild: all memories again, with the configured model, online; or finish such a rebuild.
    """
    if handle.settings.memory.embedding.provider == "none":
        raise InvalidContent("memory.embedding.provider is none: no embeddings can be made")
    if rebuild:
        drained = handle.maintenance.rebuild_embeddings(progress=progress)
    else:
        if retry:
            handle.maintenance.retry_embeddings()
        drained = handle.maintenance.embed_pending(progress=progress)
    result = {"embedded": drained.ready, "failed": drained.failed, "code": drained.error_code}
    result["message"] = drained.error
    return result | handle.maintenance.embeddings_status().model_dump()


def backup(
    handle: Any,
    file: str,
    *,
    force: bool = False,
    accept_findings: bool = False,
    progress: Progress,
) -> Any:
    """Copy a database into one file, even while it is in use, and audit the copy.

    Args:
        file: the file to write.
        force: replace an existing file.
        accept_findings: accept findings of the audit, except damage.
    """
    # A server takes no such option: its handle has no settings, and says so.
    options = {"accept_findings": True} if accept_findings and handle.settings else {}
    return handle.exchange.backup(
        _named(file),
        force=force,
        progress=progress,
        **options,
    )


def export(
    handle: Any,
    file: str,
    *,
    force: bool = False,
    with_vectors: bool = False,
    progress: Progress,
) -> Any:
    """Write all data of an orchestrator as JSON Lines, regardless of sensitivity.

    To copy an orchestrator, use backup and restore.

    Args:
        file: the file to write.
        force: replace an existing file.
        with_vectors: include embeddings.
    """
    return handle.exchange.export(
        _named(file),
        force=force,
        with_vectors=with_vectors,
        progress=progress,
    )


def _named(file: str) -> str:
    """Return the name of a file to write; raise InvalidInput for the sign of standard output."""
    if file == "-":
        raise InvalidInput("standard output cannot be written to: name a file", field="file")
    return file


class PromotionTier(StrEnum):
    """The targets of a promotion."""

    PROJECT = "project"
    GLOBAL = "global"


def promote(
    handle: Any,
    memory_id: str,
    *,
    to: PromotionTier,
    scope_id: str | None = None,
    yes: bool = False,
    reason: str = "",
) -> Any:
    """Promote a task's memory to its project, or a project's to global.

    `memgraph tier` lists the ids. Name the memory's place with --session (its task) or --project.
    Promoting a preference or an identity to global requires --yes.

    Args:
        to: the next higher tier.
        scope_id: the project, for --to project.
        yes: confirm without being asked.
    """

    questions: list[str] = []

    def consent(question: str) -> bool:
        questions.append(question)
        return yes

    new_id = handle.contexts.promote(
        memory_id, to.value, scope_id, confirmation_callback=consent, reason=reason
    )
    if new_id is None:
        raise ConfirmationMissing(f"{questions[0]} If so, use --yes.", memory_id=memory_id)
    return {"memory_id": new_id, "promoted": memory_id, "to": to.value}
