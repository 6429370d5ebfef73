"""What the derived commands add to their operations: options, printing, and what can follow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from memgraph.errors import (
    AccessDenied,
    AuditFailed,
    DatabaseCorrupt,
    ErasureUnproven,
    ExtraMissing,
    JobFailed,
    JournalBroken,
    MemgraphError,
    ProviderError,
)
from memgraph.ids import short_id
from memgraph.model.enums import EdgeType
from memgraph.surfaces.cli.commands import methods
from memgraph.surfaces.cli.formats import NO_AGENT, decisions, moment, with_short
from memgraph.surfaces.cli.invocation import Invocation
from memgraph.surfaces.cli.shows import Call

if TYPE_CHECKING:
    from memgraph.audit.findings import VerifyReport
    from memgraph.model.access import StoreHealth
    from memgraph.model.context import ContextBlock
    from memgraph.model.conversation import SessionInfo
    from memgraph.model.erasure import ErasureReport
    from memgraph.model.graph import Case
    from memgraph.model.receipts import Receipt
    from memgraph.model.sources import SourceRetraction
    from memgraph.model.values import Edge, Memory
    from memgraph.operations.maintenance.operations import JournalState

TEXTS_SHOWN: Final = 50
"""The number of a receipt's memories whose text is shown; each needs a request."""
_DRY_RUN = typer.Option("--dry-run/--yes", help="Only report what would happen, or do it.")


def _embedded_unless_dry(
    call: Invocation, handle: Any, done: Mapping[str, Any], arguments: Call
) -> dict[str, Any]:
    return {} if arguments["dry_run"] else _embedded(call, handle, done, arguments)


def _failed_run(done: Mapping[str, Any], _: Call) -> MemgraphError | None:
    for ran in done.get("runs", ()):
        if ran.failed:
            return JobFailed(f"{ran.job} {ran.state}: {ran.remark}", cause=ran.error_code)
    return None


def _entries_lost(state: JournalState, call: Call) -> MemgraphError | None:
    from memgraph.audit.anchor import AnchorState

    if state.state is not AnchorState.BEHIND or call["accepted"]:
        return None
    return JournalBroken(
        f"the anchor records entry {state.anchored}, but the journal ends at entry {state.seq}"
        f" or differs; run: memgraph repair {call['orchestrator']} --accept REASON"
    )


def _provider_failed(done: Mapping[str, Any], _: Call) -> MemgraphError | None:
    code = done["code"]
    if code is None:
        return None
    kind = ExtraMissing if code == ExtraMissing.code else ProviderError
    reason = (done["message"] or code).rstrip(".")
    return kind(f"{reason}; the memories stay pending")


def _said(call: Invocation, handle: Any, memory_id: str, arguments: Call) -> dict[str, Any]:
    embedded = _embedded(call, handle, memory_id, arguments)
    return {"session_id": arguments["session_id"], **embedded}


def _embedded(call: Invocation, handle: Any, _: Any, __: Call) -> dict[str, Any]:
    return {"embedding": call.after_writing(handle)}


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


def _correction(new_id: str, call: Call) -> str:
    if call["case"] is None:
        return f"stored {new_id}, which replaces {call['memory_id']}"
    return f"stored {new_id}; {_contradicting(call)}"


def _related(_: Invocation, handle: Any, edge_id: str, call: Call) -> dict[str, Any]:
    updates = call["edge_type"] is EdgeType.UPDATES
    case = _case_of(handle, call["from_id"], call["to_id"]) if updates else None
    return {"case": edge_id if case == edge_id else None}


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


def _decidable(edges: Callable[[Any, Call], Iterable[Edge]]) -> Callable[[Any, Call], list[str]]:
    """Return the hint that decides the first of some edges of a result."""
    return lambda result, call: decisions(call["orchestrator"], edges(result, call))


def _pairs(_: Invocation, handle: Any, memory: Memory, call: Call) -> dict[str, Any]:
    """Return the open contradictions and marks of a memory."""
    page = handle.contradictions.list(memory_id=memory.memory_id, as_of=call["as_of"], limit=10)
    return {"pairs": page.items}


def _after_case(case: Case, call: Call) -> Sequence[str]:
    if call["as_of"] is not None:
        return ()
    if case.state != "open":
        return _undo(case, call)
    name = call["orchestrator"]
    lines = [line for line in decisions(name, [case.edge]) if "memgraph case" not in line]
    if case.edge.weight >= 1.0:
        lines.append(f"if both are valid: memgraph dismiss {name} {call['edge_id']} --reason TEXT")
    return lines


def _undo(_: Any, call: Call) -> Sequence[str]:
    return (f"to undo: memgraph reopen {call['orchestrator']} {call['edge_id']} --reason TEXT",)


def _marked(handle: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the mark that is accepted; None if the key may only write."""
    try:
        return {"mark": handle.contradictions.get(values["edge_id"], names=False).edge}
    except AccessDenied:
        return {"mark": None}


def _undo_acceptance(_: Any, call: Call) -> Sequence[str]:
    mark, name = call["mark"], call["orchestrator"]
    if mark is None:
        return ()
    if mark.edge_type is EdgeType.CONTRADICTS:
        return _undo(_, call)
    later, earlier = short_id(mark.from_id), short_id(mark.to_id)
    return (
        f"to take the later statement back: memgraph retract {name} {later} --reason TEXT,"
        f" then memgraph restore-memory {name} {earlier} --reason TEXT",
    )


def _unchanged(result: SourceRetraction | ErasureReport, _: Call) -> Sequence[str]:
    return ["nothing was changed; to do it, repeat the command with --yes"] * result.dry_run


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


def _above_limits(health: StoreHealth, _: Call) -> AuditFailed | None:
    failed = [f"{item.measure.value} {item.rate:.2%}" for item in health.measures if item.failed]
    return AuditFailed(f"above their limits: {', '.join(failed)}") if failed else None


def _opened(name: str, values: Mapping[str, Any], options: list[str]) -> None:
    """Let the reader see the session or the project that is named."""
    if values[name] is not None:
        options.append(values[name])


def _of_tier(call: Invocation, values: dict[str, Any]) -> None:
    seen = {"task": call.session, "project": call.project}
    _opened("scope_id", values, seen.get(values["tier"], []))


def _no_memory(memories: Sequence[Memory], call: Call) -> Sequence[str]:
    name = call["orchestrator"]
    return () if memories else (f'to store one: memgraph remember {name} "what to remember"',)


def _texts(_: Invocation, handle: Any, receipt: Receipt, __: Call) -> dict[str, Any]:
    """Return the first memories of a receipt, by id."""
    memories = [handle.get(item.memory_id) for item in receipt.items[:TEXTS_SHOWN]]
    return {"texts": {memory.memory_id: memory for memory in memories}}


def _emptiness(_: Invocation, __: Any, block: ContextBlock, ___: Call) -> dict[str, Any]:
    """Return why a block is empty, or None."""
    reason = "budget_too_small" if block.left_out else "nothing_known"
    return {"empty": None if block.memories else reason}


def _more_sessions(sessions: Sequence[SessionInfo], call: Call) -> Sequence[str]:
    if len(sessions) < call["limit"]:
        return ()
    return (f"more: --before {sessions[-1].cursor}",)


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
        "before": _marked,
        "hint": _undo_acceptance,
    },
    "audit": {"failure": _above_limits, "defaults": {"examples": 3}},
    "bulletins": {"reach": True},
    "case": {"hint": _after_case},
    "context": {
        "defaults": {"prompt": ""},
        "flags": {"explain": "Show which memories these are, and why."},
        # Private memories of other agents are left out, also where no agent is named.
        "prepare": lambda call, values: values.update(
            agent_id=values["agent_id"] or call.actor or NO_AGENT
        ),
        "extra": _emptiness,
    },
    "confirm": {"done": "confirmed {memory_id}"},
    "contradictions": {"hint": _decidable(lambda page, _: [item.edge for item in page.items])},
    "correct": {"extra": _corrected, "done": _correction},
    "dismiss": {"done": "dismissed {edge_id}", "hint": _undo},
    "embed": {
        "method": methods.embed,
        "hint": lambda done, call: (
            [f"the model changed; run: memgraph embed {call['orchestrator']} --rebuild"]
            * bool(done["mismatch"])
        ),
        "failure": _provider_failed,
    },
    "end-session": {"done": "{session_id} is completed"},
    "get": {
        "read": _pairs,
        "hint": _decidable(lambda _, call: [item.edge for item in call["pairs"]]),
    },
    "grounds": {"defaults": {"lines": 20}, "reach": True},
    "impact": {"reach": True},
    "jobs": {"method": methods.jobs},
    "list": {
        "flags": {"all": "Memories of every status."},
        "prepare": lambda _, values: values.update({"statuses": []} if values["all"] else {}),
        "hint": _no_memory,
    },
    "promote": {
        "method": methods.promote,
        "prepare": lambda call, values: _opened("scope_id", values, call.project),
        "extra": _embedded,
    },
    "recall": {"flags": {"explain": "Show the rank in each leg and every modifier."}},
    "rebuild": {"method": methods.rebuild, "extra": _embedded},
    "receipt": {"read": _texts},
    "receipts": {"reach": True},
    "reflection": {
        "done": lambda memory, _: memory.content if memory else "there is no reflection yet"
    },
    "relate": {
        "extra": _related,
        "done": lambda edge_id, call: (
            f"connected by {edge_id}" if call["case"] is None else _contradicting(call)
        ),
    },
    "remember": {"extra": _embedded},
    "repair": {
        "method": methods.repair,
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
        "method": methods.run,
        "prepare": lambda call, values: _opened("session_id", values, call.session),
        "extra": _embedded_unless_dry,
        "failure": _failed_run,
    },
    "say": {
        "options": {
            "source_role": typer.Option("--role", metavar="NAME", help="The speaker."),
        },
        "defaults": {"source_role": "user"},
        "extra": _said,
        "done": lambda memory_id, _: f"stored {with_short(memory_id)}",
    },
    "trace": {
        "hint": _decidable(lambda trace, _: [*trace.open_contradictions, *trace.probable_changes])
    },
    "sessions": {"hint": _more_sessions},
    "stats": {"method": methods.stats},
    "verify": {"method": methods.verify, "failure": _unsound},
    "tier": {
        "options": {
            "tier": Annotated[str, typer.Argument(metavar="TIER", help="task, project or global.")]
        },
        "prepare": _of_tier,
    },
}
"""The arguments of ``command_of`` by command; for the others its defaults fit."""
