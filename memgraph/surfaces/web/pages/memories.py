"""The console's pages of memories: lists, the search, comparisons, and one memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, Final

from starlette.responses import RedirectResponse, Response

from memgraph.clock import iso
from memgraph.errors import AccessDenied, Conflict, InvalidInput, NotFound
from memgraph.graph.cases import MAX_SOUGHT_CHARS
from memgraph.model.access import Permission
from memgraph.model.enums import MemoryKind, MemoryStatus, MemoryType
from memgraph.model.receipts import CONSOLE
from memgraph.model.values import Memory, StoredSource
from memgraph.operations.orchestrator import Orchestrator
from memgraph.surfaces.web.charts import ribbon
from memgraph.surfaces.web.render import words
from memgraph.surfaces.web.requests import MAX_QUERY_CHARS, ConsolePage, Visit

PER_PAGE: Final = 25
FOUND: Final = 50
HAND_OUTS: Final = 50
ANY: Final = "any"
FILTERS: Final = ("q", "type", "kind", "status", "tag", "session", "source", "since", "until")


def listing(visit: Visit) -> Response:
    """Show one page of memories, newest first and filtered, or the results of a search."""
    orc = visit.enter()
    # Without a status, the page shows active memories.
    status = visit.query("status", MemoryStatus.ACTIVE.value)
    narrowing: dict[str, Any] = {
        "types": _chosen(MemoryType, visit.query("type")),
        "kinds": _chosen(MemoryKind, visit.query("kind")),
        "statuses": _chosen(MemoryStatus, status),
        "tags": (visit.query("tag"),) if visit.query("tag") else (),
        "as_of": visit.as_of,
        "session_id": visit.query("session") or None,
        "since": visit.moment("since"),
        "until": visit.moment("until", ends=True),
        "source_path": _whole_path(visit, visit.query("source")),
    }
    question = visit.query("q")
    memories: Sequence[Memory]
    following: dict[str, str | None] | None = None
    size = visit.size(PER_PAGE)
    if question:
        memories = answers_to(visit, orc, question, min(size, FOUND))
    else:
        memories = orc.memories.list(
            before=visit.query("before") or None, limit=size + 1, **narrowing
        )
        more = len(memories) > size
        memories = memories[:size]
        following = {"before": memories[-1].memory_id} if more else None
    sources = sources_of(visit, orc, memories)
    return visit.listing(
        "memories.html",
        lambda: [_row(memory, sources) for memory in memories],
        following=following,
        memories=memories,
        sources=sources,
        question=question,
        state=ANY if question else status,
        filtered=any(visit.query(name) for name in FILTERS[1:]),
        filters=FILTERS,
        may_write=visit.may_decide,
    )


def _whole_path(visit: Visit, name: str) -> str | None:
    """Return the stored path of a source; links shorten paths below the root."""
    root = visit.gate.service.root
    return str(root / name) if name.startswith(f"{visit.orchestrator}/") else name or None


def answers_to(visit: Visit, orc: Orchestrator, question: str, limit: int) -> list[Memory]:
    """Return the memories that a recall finds; recalls of the console do not count as accesses."""
    bundle = orc.recall(
        question[:MAX_QUERY_CHARS],
        top_n=limit,
        as_of=visit.console.now_ms() if visit.as_of is None else visit.as_of,
        include_superseded=True,
        for_step_id=CONSOLE,
    )
    return [item.memory for item in bundle.items]


def sources_of(
    visit: Visit, orc: Orchestrator, memories: Sequence[Memory]
) -> dict[str, StoredSource]:
    """Return the sources of some memories, by source id."""
    if not memories:
        return {}
    ids = [memory.memory_id for memory in memories]
    around = orc.graph.subgraph(
        ids, hops=1, max_nodes=len(ids), edge_types=(), as_of=visit.as_of, retracted=True
    )
    return {source.source_id: source for source in around.sources}


def _row(memory: Memory, sources: Mapping[str, StoredSource]) -> dict[str, Any]:
    source = sources.get(memory.source_id)
    return {
        "memory_id": memory.memory_id,
        "type": memory.type.value,
        "kind": memory.kind.value,
        "status": memory.shown_status.value,
        "content": memory.content,
        "confidence": memory.confidence,
        "importance": memory.importance,
        "said_at": None if memory.event_time is None else iso(memory.event_time),
        "stored_at": iso(memory.created_at),
        "session_id": memory.session_id,
        "source_path": source and source.source_path,
        "locator": source and source.locator,
        "tags": list(memory.tags),
    }


def decide(visit: Visit) -> Response:
    """Retract or confirm the selected memories, each in its own transaction, for one reason."""
    orc = visit.enter(Permission.WRITE)
    decision, reason = visit.form.get("decision"), visit.form.get("reason", "").strip()
    actions = {
        "retract": lambda memory_id: orc.retract(memory_id, reason=visit.required("reason")),
        "confirm": orc.confirm,
    }
    if decision not in actions:
        raise InvalidInput("decision must be retract or confirm", field="decision")
    if decision == "retract" and not reason:
        raise InvalidInput("a reason is required", field="reason")
    return bulk(visit, actions[decision], visit.link("memories"))


def bulk(visit: Visit, decide: Callable[[str], Any], back: str) -> Response:
    """Apply a decision to each selected row, and report those that failed."""
    if not visit.chosen or visit.form.get("sure") != "yes":
        raise InvalidInput(
            "select at least one row, and tick “Apply to all selected rows”", field="sure"
        )
    problems, refusals = [], []
    for chosen in dict.fromkeys(visit.chosen):
        try:
            decide(chosen)
        except (Conflict, InvalidInput, NotFound, AccessDenied) as error:
            refusals.append(error)
            problems.append(f"{chosen[:40]}: {error.message}")
    visit.gate.miss(visit.principal, visit.orchestrator, *refusals)
    done = len(set(visit.chosen)) - len(problems)
    message = f"{done} updated." + (
        f" {len(problems)} failed: {'; '.join(problems[:5])}" if problems else ""
    )
    return visit.go(back, message)


def compare(visit: Visit) -> Response:
    """Show two memories side by side, with the words that differ."""
    orc = visit.enter()
    chosen = [item for item in visit.request.query_params.getlist("chosen") if item][:2]
    traces = [orc.trace(memory_id, as_of=visit.as_of) for memory_id in chosen]
    texts = [trace.memory.content.split() for trace in traces]
    return visit.show(
        "compare.html",
        traces=traces,
        chosen=chosen,
        words=_differing(*texts) if len(texts) == 2 else (),
        lines=visit.lines(*(trace.memory.memory_id for trace in traces)),
    )


def _differing(first: list[str], second: list[str]) -> tuple[list[tuple[bool, str]], ...]:
    """Return each text as runs of words, each with True where the other text differs."""
    sides: tuple[list[tuple[bool, str]], ...] = ([], [])
    matcher = SequenceMatcher(None, first[:MOST_WORDS], second[:MOST_WORDS], autojunk=False)
    for tag, i, j, m, n in matcher.get_opcodes():
        for side, run in zip(sides, (first[i:j], second[m:n]), strict=True):
            if run:
                side.append((tag != "equal", " ".join(run)))
    return sides


MOST_WORDS: Final = 1_000


def memory(visit: Visit) -> Response:
    """Show everything about one memory."""
    orc = visit.enter()
    memory_id = visit.path("memory_id")
    trace = orc.trace(memory_id, as_of=visit.as_of)
    now = visit.console.now_ms() if visit.as_of is None else visit.as_of
    impact = None
    if visit.may(Permission.AUDIT):
        auditor = visit.enter(Permission.AUDIT)
        impact = auditor.graph.impact(memory_id, max_nodes=HAND_OUTS, as_of=visit.as_of)
    return visit.show(
        "memory.html",
        trace=trace,
        memory=trace.memory,
        lines=visit.lines(memory_id),
        periods=ribbon(trace.status_history, now),
        impact=impact,
        may_write=visit.may_decide,
    )


def decide_mark(visit: Visit) -> Response:
    """Accept or dismiss the mark of a change."""
    orc = visit.enter(Permission.WRITE)
    decision = visit.form.get("decision", "")
    decisions = {"accept": orc.contradictions.accept, "dismiss": orc.contradictions.dismiss}
    if decision not in decisions:
        raise InvalidInput("decision must be accept or dismiss", field="decision")
    decisions[decision](visit.required("edge_id"), reason=visit.required("reason"))
    return visit.go(visit.link("memories", visit.path("memory_id")), f"The change is {decision}ed.")


def _chosen(enum: Any, value: str) -> list[Any]:
    """Return the selected enum member as a list; an empty list means all."""
    if value in ("", ANY):
        return []
    try:
        return [enum(value)]
    except ValueError:
        raise InvalidInput(f"unknown {words(enum.__name__)}", field=enum.__name__) from None


# One search over everything.

SHOWN: Final = 10
LOOKED_AT: Final = 100
"""The number of newest sessions and receipts that the search compares."""
PREFIXES: Final = {
    "fact_": "memories",
    "ep_": "memories",
    "ref_": "memories",
    "edge_": "contradictions",
    "rcl_": "receipts",
    "bul_": "bulletins",
}
ULID_CHARS: Final = 26


def search(visit: Visit) -> Response:
    """Search every kind of record for a text; redirect an id to its page."""
    orc = visit.enter()
    text = visit.query("q")[:MAX_SOUGHT_CHARS]
    for prefix, place in PREFIXES.items():
        if text.startswith(prefix) and len(text) == len(prefix) + ULID_CHARS:
            return RedirectResponse(visit.link(place, text), 303)
    names = ("pages", "memories", "contradictions", "entities", "sessions", "sources", "receipts")
    results = dict.fromkeys(names, ()) | (_parts(visit, orc, text) if text else {})
    return visit.show("search.html", text=text, results=results, any_results=any(results.values()))


def _parts(visit: Visit, orc: Orchestrator, text: str) -> dict[str, Any]:
    sought = text.casefold()
    parts: dict[str, Any] = {
        "pages": [section for section in visit.sections if sought in section.title.casefold()],
        "memories": answers_to(visit, orc, text, SHOWN),
        "contradictions": orc.contradictions.list(
            text=text, limit=SHOWN, as_of=visit.as_of, changes=False
        ).items,
        "entities": orc.entities.list(prefix=text, limit=SHOWN),
        "sessions": [
            session
            for session in orc.sessions.list(limit=LOOKED_AT)
            if sought in session.session_id.casefold()
        ][:SHOWN],
    }
    if visit.may(Permission.AUDIT):
        parts["sources"] = orc.memories.paths(text, limit=SHOWN)
        receipts = orc.receipts.list(limit=LOOKED_AT).receipts
        parts["receipts"] = [
            receipt
            for receipt in receipts
            if any(
                sought in (name or "").casefold()
                for name in (receipt.query, receipt.conversation_id, receipt.workflow_run_id)
            )
        ][:SHOWN]
    return parts


PAGES: Final = (
    ConsolePage("/{orchestrator}/memories", listing, timed=True),
    ConsolePage("/{orchestrator}/memories", decide, "POST"),
    ConsolePage("/{orchestrator}/compare", compare, timed=True),
    ConsolePage("/{orchestrator}/memories/{memory_id}", memory, timed=True),
    ConsolePage("/{orchestrator}/memories/{memory_id}", decide_mark, "POST"),
    ConsolePage("/{orchestrator}/search", search, timed=True),
)
