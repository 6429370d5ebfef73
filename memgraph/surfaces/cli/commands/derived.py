"""What the derived commands add to their operations: options, data, errors, other functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from pydantic import Field

from memgraph.errors import (
    AccessDenied,
    ConfirmationMissing,
    DatabaseCorrupt,
    ErasureUnproven,
    ExtraMissing,
    InvalidInput,
    JobFailed,
    JournalBroken,
    MemgraphError,
    ProviderError,
)
from memgraph.ids import short_id
from memgraph.model.context import ContextBlock
from memgraph.model.enums import EdgeType, IndexPart
from memgraph.model.operation import Progress
from memgraph.model.values import Memory
from memgraph.surfaces.cli.formats import with_short
from memgraph.surfaces.cli.invocation import InvalidContent, Invocation
from memgraph.surfaces.cli.operations import Custom
from memgraph.surfaces.cli.screen import counted
from memgraph.surfaces.cli.shows import Call

if TYPE_CHECKING:
    from memgraph.audit.findings import JournalState, VerifyReport
    from memgraph.model.erasure import ErasureReport
    from memgraph.model.jobs import JobRun
    from memgraph.model.receipts import Receipt

TEXTS_SHOWN: Final = 50
"""The number of a receipt's memories whose text is shown; each needs a request."""


def _failed_run(run: JobRun, _: Call) -> MemgraphError | None:
    if not run.failed:
        return None
    return JobFailed(f"{run.job} {run.state}: {run.remark}", cause=run.error_code)


def _entries_lost(state: JournalState, call: Call) -> MemgraphError | None:
    from memgraph.audit.findings import AnchorState

    if state.state is not AnchorState.BEHIND or call["accepted"]:
        return None
    return JournalBroken(
        f"the anchor records entry {state.anchored}, but the journal ends at entry {state.seq}"
        f" or differs; run: memgraph repair {call['orchestrator']} --accept REASON"
    )


def _accepted(state: JournalState, call: Call) -> str | None:
    """Return what was accepted of a journal; None if nothing was."""
    if not call["accepted"]:
        return None
    what = f"its anchor {state.state}"
    if state.state == "behind":
        lost = counted(state.lost or 0, "acknowledged entry", "acknowledged entries")
        what = f"{lost} after it lost" if state.lost else "entries replaced by others"
    return f"accepted the journal, which ends at entry {state.seq}: {what}"


def _provider_failed(done: Mapping[str, Any], _: Call) -> MemgraphError | None:
    code = done["code"]
    if code is None:
        return None
    kind = ExtraMissing if code == ExtraMissing.code else ProviderError
    reason = (done["message"] or code).rstrip(".")
    return kind(f"{reason}; the memories stay pending")


def _embedded(call: Invocation, handle: Any, _: Any, arguments: Call) -> dict[str, Any]:
    return {} if arguments.get("dry_run") else {"embedding": call.after_writing(handle)}


def _case_of(handle: Any, memory_id: str, other_id: str) -> str | None:
    """Return the id of the open contradiction between two memories; None if the key only writes."""
    try:
        edges = handle.trace(memory_id).open_contradictions
    except AccessDenied:
        return None
    ends = {memory_id, other_id}
    return next((edge.edge_id for edge in edges if {edge.from_id, edge.to_id} == ends), None)


def _corrected(call: Invocation, handle: Any, new_id: str, arguments: Call) -> dict[str, Any]:
    case = _case_of(handle, new_id, arguments["memory_id"])
    return {"case": case, **_embedded(call, handle, new_id, arguments)}


def _related(_: Invocation, handle: Any, edge_id: str, call: Call) -> dict[str, Any]:
    updates = call["edge_type"] is EdgeType.UPDATES
    case = _case_of(handle, call["from_id"], call["to_id"]) if updates else None
    return {"case": edge_id if case == edge_id else None}


def _contradicted(done: str) -> Callable[[str, Call], str]:
    """Return the text for a change, which another author's statement may leave undecided."""

    def text(new_id: str, call: Call) -> str:
        if call["case"] is None:
            return done.format(new_id=new_id, **call)
        return (
            f"stored {new_id}; it replaces nothing, because another author contradicts it:"
            f" see memgraph case {call['orchestrator']} {call['case']}"
        )

    return text


def _decided(done: str) -> Callable[[None, Call], str]:
    """Return the text for a decision, with the short ids of what was decided."""
    return lambda _, call: done.format_map(
        {name: short_id(item) for name, item in call.items() if isinstance(item, str)}
    )


def _pairs(_: Invocation, handle: Any, memory: Memory, call: Call) -> dict[str, Any]:
    """Return the open contradictions and marks of a memory."""
    page = handle.contradictions.list(memory_id=memory.memory_id, as_of=call["as_of"], limit=10)
    return {"pairs": page.items}


def _unproven(report: ErasureReport, _: Call) -> MemgraphError | None:
    if report.dry_run or report.complete:
        return None
    where = f" in {', '.join(report.remains)}" if report.remains else ""
    steps = ", ".join(report.unfinished)
    return ErasureUnproven(f"not finished ({steps}){where}; run the same command again")


def _opened(name: str, values: Mapping[str, Any], options: list[str]) -> None:
    """Let the reader see the session or the project that is named."""
    if values[name] is not None:
        options.append(values[name])


def _of_tier(call: Invocation, values: dict[str, Any]) -> None:
    seen = {"task": call.session, "project": call.project}
    _opened("scope_id", values, seen.get(values["tier"], []))


def _texts(_: Invocation, handle: Any, receipt: Receipt, __: Call) -> dict[str, Any]:
    """Return the first memories of a receipt, by id."""
    memories = [handle.get(item.memory_id) for item in receipt.items[:TEXTS_SHOWN]]
    return {"known": {memory.memory_id: memory for memory in memories}}


def _sources(_: Invocation, handle: Any, memories: Sequence[Memory], call: Call) -> dict[str, Any]:
    """Return the sources of undated memories, by id: a file may have no date."""
    # Memories share their sources, and only those without a time of their own need them.
    by_source = {item.source_id: item.memory_id for item in memories if item.event_time is None}
    if not by_source:
        return {}
    limits = {"max_nodes": len(by_source), "edge_types": (), "retracted": True}
    around = handle.graph.subgraph([*by_source.values()], as_of=call["as_of"], **limits)
    return {"sources": {source.source_id: source for source in around.sources}}


def _emptiness(_: Invocation, __: Any, block: ContextBlock, ___: Call) -> dict[str, Any]:
    """Return why a block is empty, or None."""
    reason = "budget_too_small" if block.left_out else "nothing_known"
    return {"empty": None if block.memories else reason}


def _unsound(report: VerifyReport, call: Call) -> MemgraphError | None:
    if report.ok:
        return None
    message = ", ".join(f"{count} x {code}" for code, count in sorted(report.totals.items()))
    if report.rebuildable:
        return DatabaseCorrupt(f"{message}; run: memgraph rebuild {call['orchestrator']}")
    if all(code.startswith("journal.") for code in report.totals):
        return JournalBroken(message)
    return DatabaseCorrupt(f"{message}; restore a backup, or find out who changed it")


# Commands for methods that are no operations, because not every server offers them. The first
# argument is the handle of an orchestrator; see ``command_of`` for the others.


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
        drained = handle.settle(progress=progress).embedded
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


CUSTOM: Final[Mapping[str, Custom]] = {
    "accept": Custom(done=_decided("accepted {edge_id}: the newer memory replaces the older")),
    "backup": Custom(method=backup),
    "bulletins": Custom(reach=True),
    "context": Custom(
        defaults={"prompt": ""},
        flags={"explain": "Show which memories these are, and why."},
        # Private memories of other agents are left out where an agent is named.
        prepare=lambda call, values: values.update(agent_id=values["agent_id"] or call.actor),
        extra=_emptiness,
    ),
    "correct": Custom(
        extra=_corrected,
        done=_contradicted("stored {new_id}, which replaces {memory_id}"),
    ),
    "dismiss": Custom(done=_decided("dismissed {edge_id}: both sides are valid")),
    "embed": Custom(method=embed, failure=_provider_failed),
    "export": Custom(method=export),
    "get": Custom(read=_pairs),
    "grounds": Custom(defaults={"lines": 20}, reach=True),
    "impact": Custom(reach=True),
    "jobs": Custom(method=jobs),
    "list": Custom(
        flags={"all": "Memories of every status."},
        prepare=lambda _, values: values.update({"statuses": []} if values["all"] else {}),
        read=_sources,
    ),
    "promote": Custom(
        method=promote,
        prepare=lambda call, values: _opened("scope_id", values, call.project),
        extra=_embedded,
    ),
    "recall": Custom(flags={"explain": "Show the rank in each leg and every modifier."}),
    "rebuild": Custom(method=rebuild, extra=_embedded),
    "receipt": Custom(read=_texts),
    "receipts": Custom(reach=True),
    "reflection": Custom(
        done=lambda memory, _: memory.content if memory else "there is no reflection yet"
    ),
    "relate": Custom(extra=_related, done=_contradicted("connected by {new_id}")),
    "remember": Custom(extra=_embedded),
    "reopen": Custom(done=_decided("reopened {edge_id}: it is open again")),
    "repair": Custom(
        method=repair,
        extra=lambda _, __, ___, call: {"accepted": call["accept"] is not None},
        failure=_entries_lost,
        done=_accepted,
    ),
    "erase": Custom(failure=_unproven),
    "resolve": Custom(done=_decided("resolved {edge_id}: {winner} prevails")),
    "run": Custom(
        prepare=lambda call, values: _opened("session_id", values, call.session),
        extra=_embedded,
        failure=_failed_run,
    ),
    "say": Custom(
        options={
            "source_role": typer.Option("--role", metavar="NAME", help="The speaker."),
        },
        defaults={"source_role": "user"},
        extra=lambda call, handle, new_id, given: {
            "session_id": given["session_id"],
            **_embedded(call, handle, new_id, given),
        },
        done=lambda memory_id, _: f"stored {with_short(memory_id)}",
    ),
    "verify": Custom(failure=_unsound),
    "tier": Custom(prepare=_of_tier),
}
"""What commands add to their operations; the others add nothing."""
