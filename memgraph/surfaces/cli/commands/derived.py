"""What the derived commands add to their operations: options, printing, and what can follow."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from pydantic import Field

from memgraph.errors import (
    AccessDenied,
    AuditFailed,
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
from memgraph.model.enums import EdgeType, JobName, MarkKind, Sensitivity
from memgraph.model.operation import Time
from memgraph.surfaces.cli.files import counted
from memgraph.surfaces.cli.formats import (
    NO_AGENT,
    SHORT_IDS,
    below_drop_zone,
    day,
    decisions,
    edge_line,
    event_period,
    moment,
    short,
    show_memory,
    show_pairs,
    summary_of,
    with_short,
)
from memgraph.surfaces.cli.invocation import InvalidContent, Invocation, read_stdin, read_text
from memgraph.surfaces.cli.render import COLUMNS, show_table, tree_of
from memgraph.surfaces.cli.screen import Screen, note

if TYPE_CHECKING:
    from memgraph.audit.findings import VerifyReport
    from memgraph.model.access import StoreHealth
    from memgraph.model.context import Answer, BuiltBulletin, ContextBlock
    from memgraph.model.conversation import SessionInfo
    from memgraph.model.erasure import ErasureReport
    from memgraph.model.graph import Case, ContradictionPage, Trace
    from memgraph.model.recall import Bundle, Mark, RecallItem
    from memgraph.model.receipts import Receipt
    from memgraph.model.sources import SourceRetraction
    from memgraph.model.values import Memory, Outcome
    from memgraph.operations.maintenance.operations import JournalState

Progress = Callable[[str, int, int], None]
Call = Mapping[str, Any]
"""The arguments of a command by name, with ``orchestrator`` and what was added to its data."""
TEXT_CHARS: Final = 400
TEXTS_SHOWN: Final = 50
"""The number of a receipt's memories whose text is shown; each needs a request."""
MORE: Final = {
    "max_edges": "there are more edges; see them with memgraph subgraph",
    "token_budget": "more memories match; raise --token-budget",
    "top_n": "more memories match; raise --top-n",
}
"""The remedy for each of ``Bundle.cut_reasons``."""
_NAME = typer.Argument(metavar="NAME", help="A name, a nickname or an id.", show_default=False)
_DRY_RUN = typer.Option("--dry-run/--yes", help="Only report what would happen, or do it.")
_CONTENT = typer.Argument(
    metavar="CONTENT", help="The text; - reads it from standard input.", show_default=False
)
_MESSAGE = typer.Argument(
    metavar="MESSAGE",
    help="The message; - reads standard input. [the most important memories]",
    show_default=False,
)
_QUERY = typer.Argument(
    metavar="QUERY",
    help="A question or words; - reads standard input. Optional if there are filters.",
    show_default=False,
)


class IndexPart(StrEnum):
    """The parts that can be rebuilt."""

    INDEXES = "indexes"
    FTS = "fts"
    VECTORS = "vectors"
    ENTITIES = "entities"


# Commands for methods that are no operations, because no server or not every server offers them.


def sessions(
    handle: Any,
    *,
    pending: bool | None = None,
    before: str | None = None,
    limit: Annotated[int, Field(ge=1, le=1000)] = 50,
) -> Any:
    """List conversations, latest activity first, with their number of unconsolidated turns.

    Args:
        pending: only those that wait for consolidation, or only the others.
        before: continue after the last id of the previous page.
    """
    return handle.sessions.list(pending=pending, before=before, limit=limit)


def say(
    handle: Any,
    content: str | None = None,
    *,
    session_id: str | None = None,
    source_role: str = "user",
    turn_id: str | None = None,
    event_time: Time | None = None,
    sensitivity: Sensitivity | None = None,
    file: str | None = None,
) -> Any:
    """Store a turn of a conversation, or the turns of a file.

    The first turn of a new session completes all open ones.

    Args:
        session_id: the conversation. [the value of --session, if only one]
        source_role: the speaker.
        turn_id: the turn's id in the session.
        event_time: when it was said, ISO 8601.
        file: many turns, one JSON object with content per line; - is standard input. The options
            apply to turns without such a field.
    """
    if (content is None) == (file is None):
        raise InvalidInput("give either CONTENT or --file")
    fields = {"turn_id": turn_id, "event_time": event_time, "sensitivity": sensitivity}
    common: dict[str, Any] = {"session_id": session_id, "source_role": source_role}
    common |= {name: value for name, value in fields.items() if value is not None}
    if file is None:
        if session_id is None:
            raise InvalidInput("--session-id: is missing", field="session_id")
        memory_id = handle.save_episode(content, **common)
        return {"memory_id": memory_id, "session_id": session_id}
    if session_id is None:
        del common["session_id"]
    turns = list(_turns(file))
    outcomes = handle.save_episodes({**common, **turn} for _, turn in turns)
    results = [
        {"line": line, **outcome.model_dump(exclude={"edge_id"})}
        for (line, _), outcome in zip(turns, outcomes, strict=True)
    ]
    return {
        "outcomes": results,
        "rejected": sum(item["outcome"] == "rejected" for item in results),
    }


def _turns(file: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the turns of a file of JSON Lines with their line numbers. Raises InvalidContent."""
    text = read_stdin() if file == "-" else read_text(Path(file))
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                turn = json.loads(line)
            except (ValueError, RecursionError):
                turn = None
            if not isinstance(turn, dict):
                raise InvalidContent(f"line {number} is not a JSON object")
            yield number, turn


def _only_session(call: Invocation, values: dict[str, Any]) -> None:
    if values["session_id"] is None and len(call.session) == 1:
        values["session_id"] = call.session[0]


def _show_said(screen: Screen, done: Mapping[str, Any], _: Call) -> None:
    if "memory_id" in done:
        screen.line(f"stored {with_short(done['memory_id'])}")
        return
    screen.line(f"stored {counted(len(done['outcomes']) - done['rejected'], 'turn')}")
    for item in done["outcomes"]:
        if item["outcome"] == "rejected":
            screen.line(f"line {item['line']}: rejected, {item['message']}")


def _rejected_turns(done: Mapping[str, Any], _: Call) -> MemgraphError | None:
    rejected = done.get("rejected", 0)
    total = len(done.get("outcomes", ()))
    return InvalidInput(f"{rejected} of {total} turns were rejected") if rejected else None


def jobs(handle: Any, *, limit: Annotated[int, Field(ge=1, le=1000)] = 20) -> Any:
    """Show when each job is due next, and the latest runs."""
    return {"plans": handle.jobs.plans(), "runs": handle.jobs.list(limit=limit)}


def run(
    handle: Any,
    job: JobName,
    *,
    session_id: str | None = None,
    now: Time | None = None,
    dry_run: bool = False,
    progress: Progress,
) -> Any:
    """Run a job now, regardless of its schedule. Exits with 1 if the run fails.

    Args:
        session_id: consolidate only this session, even if it has not ended.
        now: run as if it were this time, ISO 8601; writes are dated so.
        dry_run: consolidation: show what it would do, write nothing.
    """
    if not dry_run:
        return {"runs": [handle.jobs.run(job, session_id=session_id, now=now, progress=progress)]}
    if job is not JobName.CONSOLIDATION:
        raise InvalidInput("--dry-run requires a consolidation", field="dry_run")
    reports = handle.jobs.consolidate(session_id, dry_run=True, now=now, progress=progress)
    return {"sessions": reports}


def _in_session(call: Invocation, values: dict[str, Any]) -> None:
    """Let the reader see the session that is consolidated."""
    if values["session_id"] is not None:
        call.session.append(values["session_id"])


def _embedded_unless_dry(
    call: Invocation, handle: Any, done: Mapping[str, Any], arguments: Call
) -> dict[str, Any]:
    return {} if arguments["dry_run"] else _embedded(call, handle, done, arguments)


def _failed_run(done: Mapping[str, Any], _: Call) -> MemgraphError | None:
    for ran in done.get("runs", ()):
        if ran.failed:
            reason = ": ".join(item for item in (ran.error_code, ran.reason) if item)
            return JobFailed(f"{ran.job} {ran.state}: {reason}", cause=ran.error_code)
    return None


def stats(handle: Any) -> Any:
    """Count everything stored, hidden memories too, with the sizes on disk.

    On a server this requires the permission admin.
    """
    return handle.maintenance.stats()


def verify(handle: Any, progress: Progress) -> Any:
    """Audit a database: pages, journal, memories, edges and indexes. Changes nothing.

    All data that is journalled or can be recomputed is compared; the guide "Audit" lists the
    exceptions and the reasons. The last line is the result.

    Exits with 1 if there are findings. `memgraph rebuild` repairs indexes.
    """
    return handle.verify(progress)


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


def _entries_lost(state: JournalState, call: Call) -> MemgraphError | None:
    from memgraph.audit.anchor import AnchorState

    if state.state is not AnchorState.BEHIND or call["accepted"]:
        return None
    return JournalBroken(
        f"the anchor records entry {state.anchored}, but the journal ends at entry {state.seq}"
        f" or differs; run: memgraph repair {call['orchestrator']} --accept REASON"
    )


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
        waiting, done = handle.maintenance.pending_embeddings(), 0

        def advance(steps: int) -> None:
            nonlocal done
            done += steps
            progress("embedding", done, waiting)

        drained = handle.maintenance.embed_pending(progress=advance)
    result = {"embedded": drained.ready, "failed": drained.failed, "code": drained.error_code}
    return result | handle.maintenance.embeddings_status().as_dict()


def _rebuildable(done: Mapping[str, Any], call: Call) -> Sequence[str]:
    name = call["orchestrator"]
    return (f"the model changed; run: memgraph embed {name} --rebuild",) * bool(done["mismatch"])


def _provider_failed(done: Mapping[str, Any], _: Call) -> MemgraphError | None:
    code = done["code"]
    if code is None:
        return None
    kind = ExtraMissing if code == ExtraMissing.code else ProviderError
    return kind(f"the provider failed ({code}); the other memories stay pending")


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


def _opened_project(call: Invocation, values: dict[str, Any]) -> None:
    """Let the handle open the project to which a memory is promoted."""
    if values["scope_id"] is not None:
        call.project.append(values["scope_id"])


def subgraph(
    handle: Any,
    ids: list[str],
    *,
    hops: Annotated[int, Field(ge=1, le=4)] = 1,
    max_nodes: Annotated[int, Field(ge=1, le=2000)] = 200,
    edge_types: list[EdgeType] = [],  # noqa: B006  the option's default, never changed
    as_of: str | None = None,
    retracted: bool = False,
) -> Any:
    """Show the memories around the named ones, and the edges between them, up to the limits.

    Args:
        ids: where to start.
        edge_types: follow only these types; repeatable.
        as_of: as of this time, ISO 8601.
        retracted: include retracted memories.
    """
    return handle.graph.subgraph(
        ids,
        hops=hops,
        max_nodes=max_nodes,
        edge_types=edge_types or None,
        as_of=as_of,
        retracted=retracted,
    )


def _show_subgraph(screen: Screen, subgraph: Any, _: Call) -> None:
    hops = {"hops": lambda memory: subgraph.distances[memory.memory_id]}
    if subgraph.nodes:
        show_table(screen, subgraph.nodes, {**COLUMNS["Memory"], **hops})
    for edge in subgraph.edges:
        screen.line(f"  {edge_line(edge)}")
    if subgraph.missing:
        screen.line(f"not found: {', '.join(subgraph.missing)}", style="yellow")
    if subgraph.cut:
        screen.line(f"cut: {', '.join(subgraph.cut_reasons)}", style="yellow")


def _embedded(call: Invocation, handle: Any, _: Any, __: Call) -> dict[str, Any]:
    return {"embedding": call.after_writing(handle)}


def _show_stored(screen: Screen, outcome: Outcome, call: Call) -> None:
    screen.line(f"{outcome.outcome} {with_short(outcome.memory_id)}")
    for other, reason in outcome.reasons.items():
        screen.line(f"repeats {other}: {reason}")
    for item in call["stale_evidence"]:
        screen.line(f"it is already stale: its evidence {item} was retracted or superseded")


def _stale_evidence(_: Invocation, handle: Any, outcome: Outcome, call: Call) -> dict[str, Any]:
    """Return the retracted or superseded evidence of a new memory, if the caller may read it."""
    evidence, stale_ids = call.get("derived_from", ()), ()
    if evidence and outcome.memory_id is not None and outcome.outcome == "stored":
        trace = _trace(handle, outcome.memory_id)
        stale_ids = () if trace is None else trace.stale_grounds
    return {"stale_evidence": [item for item in dict.fromkeys(evidence) if item in stale_ids]}


def _trace(handle: Any, memory_id: str) -> Any:
    """Return a trace; None if the key may only write."""
    try:
        return handle.trace(memory_id)
    except AccessDenied:
        return None


def _case_of(handle: Any, memory_id: str, other_id: str) -> str | None:
    """Return the id of the open contradiction between two memories, or None."""
    ends = {memory_id, other_id}
    trace = _trace(handle, memory_id)
    edges = () if trace is None else trace.open_contradictions
    return next((edge.edge_id for edge in edges if {edge.from_id, edge.to_id} == ends), None)


def _corrected(call: Invocation, handle: Any, new_id: str, arguments: Call) -> dict[str, Any]:
    case = _case_of(handle, new_id, arguments["memory_id"])
    return {"case": case, **_embedded(call, handle, new_id, arguments)}


def _show_correction(screen: Screen, new_id: str, call: Call) -> None:
    if call["case"] is None:
        screen.line(f"stored {new_id}, which replaces {call['memory_id']}")
    else:
        screen.line(f"stored {new_id}; {_contradicting(call)}")


def _related(_: Invocation, handle: Any, edge_id: str, call: Call) -> dict[str, Any]:
    updates = call["edge_type"] is EdgeType.UPDATES
    case = _case_of(handle, call["from_id"], call["to_id"]) if updates else None
    return {"case": edge_id if case == edge_id else None}


def _show_relation(screen: Screen, edge_id: str, call: Call) -> None:
    screen.line(f"connected by {edge_id}" if call["case"] is None else _contradicting(call))


def _contradicting(call: Call) -> str:
    return (
        "it replaces nothing, because another author contradicts it:"
        f" {call['case']} is open, see memgraph case {call['orchestrator']} {call['case']}"
    )


def _had_replaced(_: Invocation, handle: Any, __: Any, call: Call) -> dict[str, Any]:
    trace = _trace(handle, call["memory_id"])
    links = () if trace is None else trace.replaced
    return {"replaced": [link.memory_id for link in links if link.distance == 1]}


def _restorable(_: Any, call: Call) -> list[str]:
    restore = f"memgraph restore-memory {call['orchestrator']}"
    return [
        f"it had replaced {old}, which stays superseded; to restore that one:"
        f" {restore} {old} --reason TEXT"
        for old in call["replaced"]
    ]


def _show_contradictions(screen: Screen, page: ContradictionPage, call: Call) -> None:
    if not page.items:
        screen.line("nothing to decide" if not call["resolved"] else "nothing found")
    show_pairs(screen, page.items)


def _decidable(page: ContradictionPage, call: Call) -> Sequence[str]:
    return decisions(call["orchestrator"], [item.edge for item in page.items])


def _pairs(_: Invocation, handle: Any, memory: Memory, call: Call) -> dict[str, Any]:
    """Return the open contradictions and marks of a memory."""
    page = handle.contradictions.list(memory_id=memory.memory_id, as_of=call["as_of"], limit=10)
    return {"pairs": page.items}


def _show_memory(screen: Screen, memory: Memory, call: Call) -> None:
    show_memory(screen, memory)
    if call["pairs"]:
        screen.line()
    show_pairs(screen, call["pairs"])


def _memory_decisions(_: Memory, call: Call) -> Sequence[str]:
    return decisions(call["orchestrator"], [item.edge for item in call["pairs"]])


def _trace_decisions(trace: Trace, call: Call) -> Sequence[str]:
    return decisions(call["orchestrator"], [*trace.open_contradictions, *trace.probable_changes])


def _after_case(case: Case, call: Call) -> Sequence[str]:
    orchestrator, edge_id = call["orchestrator"], call["edge_id"]
    if call["as_of"] is not None:
        return ()
    if case.state != "open":
        return _undo(case, call)
    return (
        f"to decide: memgraph resolve {orchestrator} {edge_id} --winner ID --reason TEXT",
        f"if both are valid: memgraph dismiss {orchestrator} {edge_id} --reason TEXT",
    )


def _undo(_: Any, call: Call) -> Sequence[str]:
    return (f"to undo: memgraph reopen {call['orchestrator']} {call['edge_id']} --reason TEXT",)


def _undo_acceptance(_: Any, call: Call) -> Sequence[str]:
    name = call["orchestrator"]
    return (
        f"to undo: memgraph retract {name} LATER --reason TEXT,"
        f" then memgraph restore-memory {name} EARLIER --reason TEXT;"
        f" for a contradiction: memgraph reopen {name} {call['edge_id']} --reason TEXT",
    )


def _unchanged(result: SourceRetraction | ErasureReport, _: Call) -> Sequence[str]:
    return ("nothing was changed; to do it, repeat the command with --yes",) * result.dry_run


def _left_on_a_server(report: ErasureReport, call: Call) -> Sequence[str]:
    """Return where a database server may still hold erased texts, and until when."""
    server = report.server
    if report.dry_run or server is None:
        return _unchanged(report, call)
    until = server.wal_expected_until
    about = "" if until is None else f", expected about {moment(until)}"
    return (
        "not proven: what the server stores outside of its tables",
        f"write-ahead log: segments before {server.wal_until}, until they are overwritten{about}",
        f"archived log: archive_mode is {'on' if server.archived else 'off'};"
        " remove earlier archives yourself",
        f"replicas: {server.replicas} read the log; they also erase, but keep their own logs",
        "backups: earlier ones, until they are removed",
    )


def _unproven(report: ErasureReport, _: Call) -> MemgraphError | None:
    if report.dry_run or report.complete:
        return None
    where = f" in {', '.join(report.remains)}" if report.remains else ""
    steps = ", ".join(report.unfinished)
    return ErasureUnproven(f"not finished ({steps}){where}; run the same command again")


def _show_health(screen: Screen, health: StoreHealth, _: Call) -> None:
    many = counted(health.memories, "active memory", "active memories")
    screen.line(f"{many}; turns of conversations are not counted")
    show_table(screen, health.measures)
    for measure in health.measures:
        if measure.examples:
            screen.heading(measure.measure.value)
            show_table(screen, measure.examples)


def _above_limits(health: StoreHealth, _: Call) -> AuditFailed | None:
    failed = [f"{item.measure.value} {item.rate:.2%}" for item in health.measures if item.failed]
    return AuditFailed(f"above their limits: {', '.join(failed)}") if failed else None


def _of_tier(call: Invocation, values: dict[str, Any]) -> None:
    """Let the reader see the tier that is listed."""
    if values["scope_id"] is not None:
        seen = {"task": call.session, "project": call.project}.get(values["tier"])
        if seen is not None:
            seen.append(values["scope_id"])


def _every_status(_: Invocation, values: dict[str, Any]) -> None:
    if values["all"]:
        values["statuses"] = []


def _no_memory(memories: Sequence[Memory], call: Call) -> Sequence[str]:
    name = call["orchestrator"]
    return () if memories else (f'to store one: memgraph remember {name} "what to remember"',)


def _show_bulletin(screen: Screen, built: BuiltBulletin, _: Call) -> None:
    screen.raw_lines(built.bulletin.text)
    if built.warning is not None:
        note(f"warning[{built.warning}]: {built.cause}")


def _show_reflection(screen: Screen, memory: Memory | None, _: Call) -> None:
    screen.block("there is no reflection yet" if memory is None else memory.content)


def _texts(_: Invocation, handle: Any, receipt: Receipt, __: Call) -> dict[str, Any]:
    """Return the first memories of a receipt, by id."""
    memories = [handle.get(item.memory_id) for item in receipt.items[:TEXTS_SHOWN]]
    return {"texts": {memory.memory_id: memory for memory in memories}}


def _show_receipt(screen: Screen, receipt: Receipt, call: Call) -> None:
    screen.tree(tree_of(receipt))
    if receipt.items:
        text = {"text": lambda item: _beginning(call["texts"].get(item.memory_id))}
        show_table(screen, receipt.items, {**COLUMNS["ReceiptItem"], **text})
    else:
        screen.line("no memory of a context or a recall")
    if receipt.answer is not None:
        for name, text in (
            ("answer", receipt.answer["text"]),
            ("block", receipt.answer["block"]["text"]),
        ):
            screen.line()
            screen.heading(name)
            screen.block(text)


def _show_answer(screen: Screen, answer: Answer, _: Call) -> None:
    screen.block(answer.text)
    if answer.citations:
        screen.line()
    for line in dict.fromkeys(citation.line for citation in answer.citations):
        screen.block(line)
    for degradation in answer.degraded:
        note(f"degraded[{degradation.code}]: {degradation.text}")


def _beginning(memory: Memory | None) -> str:
    return "" if memory is None else short(summary_of(memory)) or "[erased]"


def _show_bundle(screen: Screen, bundle: Bundle, call: Call) -> None:
    if not bundle.items:
        screen.line("no memory matches")
    places = {item.memory.memory_id: f"[{n}]" for n, item in enumerate(bundle.items, start=1)}
    for item in bundle.items:
        _show_item(screen, item, places)
    marks = {mark.edge_id for item in bundle.items for mark in item.marks}
    edges = [
        edge
        for edge in bundle.edges
        if edge.edge_id not in marks and {edge.from_id, edge.to_id} <= places.keys()
    ]
    if edges:
        screen.heading("edges")
        for edge in edges:
            screen.block(edge_line(edge, places), indent=2)
    if call["explain"]:
        _show_explanation(screen, bundle)
    first = bundle.items[0].memory.memory_id if bundle.items else None
    of_first = [edge for edge in bundle.edges if first in (edge.from_id, edge.to_id)]
    for line in decisions(call["orchestrator"], of_first):
        screen.line(line)
    if any(map(_odds, (mark for item in bundle.items for mark in item.marks))):
        screen.line(SHORT_IDS, style="dim")
    for degradation in bundle.degraded:
        note(f"degraded[{degradation.code}]: {degradation.text}")
    if bundle.cut:
        note("; ".join(MORE[reason] for reason in bundle.cut_reasons))


def _show_item(screen: Screen, item: RecallItem, places: Mapping[str, str]) -> None:
    memory = item.memory
    at = memory.event_time if memory.event_time is not None else memory.created_at
    when = event_period(memory) or day(at)
    status = "" if memory.status.value == "active" else f", {memory.status.value}"
    speaker = "" if memory.source_role is None else f", {memory.source_role}"
    place = places[memory.memory_id]
    screen.heading(f"{place} {memory.memory_id}  {memory.type.value}{status}, {when}{speaker}")
    # The texts of records and documents begin with a title on its own line.
    title, _, text = memory.content.strip().partition("\n")
    for part in (title, text) if text else (memory.content,):
        screen.block(short(part, TEXT_CHARS), indent=3)
    screen.line(f"   from {below_drop_zone(item.citation)}", style="dim")
    for mark in item.marks:
        other = places.get(mark.memory_id) or f"#{short_id(mark.memory_id)}"
        screen.line(f"   {mark.relation} {other}{_odds(mark)}", style="yellow")
    if item.brought_by is not None:
        brought_by = places.get(item.brought_by) or f"#{short_id(item.brought_by)}"
        screen.line(f"   shown because of {brought_by}", style="dim")


def _odds(mark: Mark) -> str:
    """Return the probability of a mark and its short id; "" for what is in force."""
    if mark.kind in (MarkKind.REPLACES, MarkKind.REPLACED_BY):
        return ""
    odds = f"{mark.weight:.0%}, " if mark.weight < 1.0 else ""
    return f" ({odds}{short_id(mark.edge_id)})"


def _show_explanation(screen: Screen, bundle: Bundle) -> None:
    """Show the rank in every leg (empty if it did not find the memory), and every modifier."""
    legs = sorted({leg for item in bundle.items for leg in item.legs})
    modifiers = list(dict.fromkeys(name for item in bundle.items for name in item.modifiers))
    names = (name.replace("_", " ") for name in modifiers)
    screen.line()
    screen.table(
        ("#", "score", *legs, *names, "effective confidence"),
        [
            (
                str(place),
                f"{item.score:.5f}",
                *(str(item.legs.get(leg, "")) for leg in legs),
                *(f"{item.modifiers.get(name, 1.0):.3f}" for name in modifiers),
                f"{item.effective_confidence:.3f}",
            )
            for place, item in enumerate(bundle.items, start=1)
        ],
    )
    screen.line(f"receipt {bundle.receipt_id}, about {bundle.token_cost} tokens")


def _reading_agent(call: Invocation, values: dict[str, Any]) -> None:
    """Leave out private memories of other agents, also where no agent is named."""
    values["agent_id"] = values["agent_id"] or call.actor or NO_AGENT


def _emptiness(_: Invocation, __: Any, block: ContextBlock, ___: Call) -> dict[str, Any]:
    """Return why a block is empty, or None."""
    reason = "budget_too_small" if block.left_out else "nothing_known"
    return {"empty": None if block.memories else reason}


def _show_block(screen: Screen, block: ContextBlock, call: Call) -> None:
    screen.raw_lines(block.text)
    if call["explain"]:
        if block.memories:
            show_table(screen, list(block.memories.values()))
        screen.line(
            f"receipt {block.receipt_id}, {block.token_cost} tokens by {block.counter},"
            f" {block.left_out} left out"
        )
    if call["empty"] == "budget_too_small":
        note(f"empty[{call['empty']}]: the budget is too small for any of {block.left_out}")
    elif call["empty"] is not None:
        note(f"empty[{call['empty']}]: no visible memory relates to this")
    for degradation in block.degraded:
        note(f"degraded[{degradation.code}]: {degradation.text}")


def _more_sessions(sessions: Sequence[SessionInfo], call: Call) -> Sequence[str]:
    if len(sessions) < call["limit"]:
        return ()
    return (f"more: --before {sessions[-1].session_id}",)


def _show_audit(screen: Screen, report: VerifyReport, _: Call) -> None:
    checked = ", ".join(
        f"{count} {name.replace('_', ' ')}" for name, count in report.checked.items()
    )
    screen.block(f"checked {checked}")
    rows = [(item.code.value, item.subject or "", item.message) for item in report.findings]
    if rows:
        screen.table(("finding", "subject", "what"), rows)
    screen.line(report.summary)


def _unsound(report: VerifyReport, call: Call) -> MemgraphError | None:
    if report.ok:
        return None
    message = ", ".join(f"{count} x {code}" for code, count in sorted(report.totals.items()))
    if report.rebuildable:
        return DatabaseCorrupt(f"{message}; run: memgraph rebuild {call['orchestrator']}")
    if all(code.startswith("journal.") for code in report.totals):
        return JournalBroken(message)
    return DatabaseCorrupt(f"{message}; restore a backup, or find out who changed it")


CUSTOM: Final[Mapping[str, Mapping[str, Any]]] = {
    "accept": {
        "done": "accepted {edge_id}: the later statement replaces the earlier",
        "hint": _undo_acceptance,
    },
    "ask": {"show": _show_answer},
    "audit": {"show": _show_health, "failure": _above_limits, "defaults": {"examples": 3}},
    "bulletin": {"show": _show_bulletin},
    "bulletins": {"reach": True},
    "case": {"hint": _after_case},
    "context": {
        "options": {"prompt": _MESSAGE},
        "defaults": {"prompt": ""},
        "flags": {"explain": "Show which memories these are, and why."},
        "prepare": _reading_agent,
        "extra": _emptiness,
        "show": _show_block,
    },
    "confirm": {"done": "confirmed {memory_id}"},
    "contradictions": {"show": _show_contradictions, "hint": _decidable},
    "correct": {
        "options": {"content": _CONTENT},
        "extra": _corrected,
        "show": _show_correction,
    },
    "dismiss": {"done": "dismissed {edge_id}", "hint": _undo},
    "embed": {"method": embed, "hint": _rebuildable, "failure": _provider_failed},
    "end-session": {"done": "{session_id} is completed"},
    "entity": {"options": {"name_or_id": _NAME}},
    "get": {"read": _pairs, "show": _show_memory, "hint": _memory_decisions},
    "grounds": {"defaults": {"lines": 20}, "reach": True},
    "impact": {"reach": True},
    "issued-bulletin": {"show": lambda screen, issued, _: screen.raw_lines(issued.body)},
    "jobs": {"method": jobs},
    "list": {
        "flags": {"all": "Memories of every status."},
        "prepare": _every_status,
        "hint": _no_memory,
    },
    "promote": {"method": promote, "prepare": _opened_project, "extra": _embedded},
    "protect-entity": {"options": {"name_or_id": _NAME}},
    "recall": {
        "options": {"query": _QUERY},
        "flags": {"explain": "Show the rank in each leg and every modifier."},
        "show": _show_bundle,
    },
    "rebuild": {"method": rebuild, "extra": _embedded},
    "receipt": {"read": _texts, "show": _show_receipt},
    "receipts": {"reach": True},
    "reflection": {"show": _show_reflection},
    "relate": {"extra": _related, "show": _show_relation},
    "remember": {
        "options": {"content": _CONTENT},
        "extra": _embedded,
        "read": _stale_evidence,
        "show": _show_stored,
    },
    "repair": {
        "method": repair,
        "extra": lambda _, __, ___, call: {"accepted": call["accept"] is not None},
        "failure": _entries_lost,
    },
    "reopen": {"done": "reopened {edge_id}"},
    "resolve": {"done": "resolved {edge_id}: {winner} wins", "hint": _undo},
    "restore-memory": {"done": "restored {memory_id}"},
    "retract": {
        "done": "retracted {memory_id}",
        "read": _had_replaced,
        "hint": _restorable,
    },
    "retract-source": {"options": {"dry_run": _DRY_RUN}, "hint": _unchanged},
    "erase": {
        "options": {"dry_run": _DRY_RUN},
        "hint": _left_on_a_server,
        "failure": _unproven,
    },
    "run": {
        "method": run,
        "prepare": _in_session,
        "extra": _embedded_unless_dry,
        "failure": _failed_run,
    },
    "say": {
        "method": say,
        "options": {
            "content": _CONTENT,
            "source_role": typer.Option("--role", metavar="NAME", help="The speaker."),
        },
        "prepare": _only_session,
        "extra": _embedded,
        "show": _show_said,
        "failure": _rejected_turns,
    },
    "trace": {"hint": _trace_decisions},
    "sessions": {
        "method": sessions,
        "hint": _more_sessions,
    },
    "subgraph": {"method": subgraph, "show": _show_subgraph},
    "stats": {"method": stats},
    "verify": {"method": verify, "show": _show_audit, "failure": _unsound},
    "tier": {
        "options": {
            "tier": Annotated[str, typer.Argument(metavar="TIER", help="task, project or global.")]
        },
        "prepare": _of_tier,
    },
}
"""The arguments of ``command_of`` by command; for the others its defaults fit."""
