"""Console pages for memories and entities: the lists, the search, and one of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from starlette.responses import RedirectResponse, Response

from memgraph.errors import AccessDenied, Conflict, InvalidInput, NotFound
from memgraph.ids import EDGE_PREFIX, RECEIPT_PREFIX
from memgraph.model.access import Permission
from memgraph.model.enums import MemoryKind, MemoryStatus, MemoryType
from memgraph.model.recall import Bundle
from memgraph.model.receipts import CONSOLE
from memgraph.model.values import MAX_NAME_CHARS, Memory, StoredSource
from memgraph.operations.orchestrator import Orchestrator
from memgraph.retrieval.recall import RANKED_TODAY
from memgraph.surfaces.web.render import words
from memgraph.surfaces.web.requests import MAX_QUERY_CHARS, ConsolePage, Visit

PER_PAGE: Final = 25
MOST_ENTITIES: Final = 200
OF_ENTITY: Final = 50
HAND_OUTS: Final = 50
ANY: Final = "any"
FILTERS: Final = ("q", "type", "kind", "status", "tag", "session", "source", "since", "until")
PREFIXES: Final = {
    "fact_": "memories",
    "ep_": "memories",
    "ref_": "memories",
    EDGE_PREFIX: "contradictions",
    RECEIPT_PREFIX: "answers",
}
"""The pages that show a record, by the beginning of its id."""
ULID_CHARS: Final = 26


def listing(visit: Visit) -> Response:
    """Show one page of memories, newest first, or the results of a search, best first.

    A search for an id leads to the page of its record.
    """
    orc = visit.enter()
    question = visit.query("q")[:MAX_QUERY_CHARS]
    for prefix, place in PREFIXES.items():
        if question.startswith(prefix) and len(question) == len(prefix) + ULID_CHARS:
            return RedirectResponse(visit.link(place, question), 303)
    # Without a status, a list shows active memories, and a search also superseded ones.
    status = visit.query("status", ANY if question else MemoryStatus.ACTIVE.value)
    statuses = _chosen(MemoryStatus, status)
    filters: dict[str, Any] = {
        "types": _chosen(MemoryType, visit.query("type")),
        "kinds": _chosen(MemoryKind, visit.query("kind")),
        "tags": (visit.query("tag"),) if visit.query("tag") else (),
        "session_id": visit.query("session") or None,
        "source_path": _whole_path(visit, visit.query("source")),
    }
    since, until = visit.moment("since"), visit.moment("until", ends=True)
    bundle, following = None, None
    if question:
        times = {"event_after": since, "event_before": until}
        bundle = _search(visit, orc, question, **filters, **times)
        memories: Sequence[Memory] = [
            item.memory
            for item in bundle.items
            if not statuses or item.memory.shown_status in statuses
        ]
    else:
        memories = orc.memories.list(
            before=visit.query("before") or None,
            limit=PER_PAGE + 1,
            statuses=statuses,
            since=since,
            until=until,
            as_of=visit.as_of,
            **filters,
        )
        last = memories[PER_PAGE - 1].memory_id if len(memories) > PER_PAGE else None
        following = visit.following(before=last)
        memories = memories[:PER_PAGE]
    return visit.show(
        "memories.html",
        following=following,
        memories=memories,
        bundle=bundle,
        # A search of the present is one as of now, so that it does not count as an access.
        problems=[
            problem
            for problem in (() if bundle is None else bundle.degraded)
            if visit.as_of is not None or problem.code != RANKED_TODAY.code
        ],
        scored={} if bundle is None else {item.memory.memory_id: item for item in bundle.items},
        sources=_sources_of(visit, orc, memories),
        question=question,
        state=status,
        filtered=any(visit.query(name) for name in FILTERS[1:]),
        filters=FILTERS,
        may_write=visit.may_decide,
    )


def _whole_path(visit: Visit, name: str) -> str | None:
    """Return the stored path of a source; links shorten paths below the root."""
    root = visit.gate.service.root
    return str(root / name) if name.startswith(f"{visit.orchestrator}/") else name or None


def _search(visit: Visit, orc: Orchestrator, question: str, **filters: Any) -> Bundle:
    """Recall memories; recalls of the console do not count as accesses."""
    return orc.recall(
        question,
        top_n=PER_PAGE,
        as_of=visit.console.now_ms() if visit.as_of is None else visit.as_of,
        include_superseded=True,
        for_step_id=CONSOLE,
        **filters,
    )


def _sources_of(
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


def by_id(orc: Orchestrator, ids: Sequence[str]) -> dict[str, Memory]:
    """Return the memories that exist and are visible, by id, in one read."""
    if not ids:
        return {}
    result = orc.graph.subgraph(ids, max_nodes=len(ids), retracted=True)
    return {node.memory_id: node for node in result.nodes}


def decide(visit: Visit) -> Response:
    """Retract or confirm the selected memories, each in its own transaction, for one reason."""
    orc = visit.enter(Permission.WRITE)
    decision, reason = visit.form.get("decision"), visit.form.get("reason", "").strip()
    actions = {
        "retract": lambda memory_id: orc.retract(memory_id, reason=reason),
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


def memory(visit: Visit) -> Response:
    """Show everything about one memory."""
    orc = visit.enter()
    memory_id = visit.path("memory_id")
    trace = orc.trace(memory_id, as_of=visit.as_of)
    impact = None
    if visit.may(Permission.AUDIT):
        auditor = visit.enter(Permission.AUDIT)
        impact = auditor.graph.impact(memory_id, max_nodes=HAND_OUTS, as_of=visit.as_of)
    return visit.show(
        "memory.html",
        trace=trace,
        memory=trace.memory,
        lines=visit.lines(memory_id),
        impact=impact,
    )


def entities(visit: Visit) -> Response:
    """Show the entities that visible memories name, most mentioned first."""
    orc = visit.enter()
    prefix = visit.query("prefix")[:MAX_NAME_CHARS]
    rows = orc.entities.list(prefix=prefix, limit=MOST_ENTITIES + 1)
    return visit.show(
        "entities.html", entities=rows[:MOST_ENTITIES], prefix=prefix, cut=len(rows) > MOST_ENTITIES
    )


def entity(visit: Visit) -> Response:
    """Show an entity with its names, the memories that name it, and related entities."""
    orc = visit.enter()
    return visit.show(
        "entity.html", entity=orc.entities.get(visit.path("entity_id"), limit=OF_ENTITY)
    )


def _chosen(enum: Any, value: str) -> list[Any]:
    """Return the selected enum member as a list; an empty list means all."""
    if value in ("", ANY):
        return []
    try:
        return [enum(value)]
    except ValueError:
        raise InvalidInput(f"unknown {words(enum.__name__)}", field=enum.__name__) from None


PAGES: Final = (
    ConsolePage("/{orchestrator}/memories", listing, timed=True),
    ConsolePage("/{orchestrator}/memories", decide, "POST"),
    ConsolePage("/{orchestrator}/memories/{memory_id}", memory, timed=True),
    ConsolePage("/{orchestrator}/entities", entities),
    ConsolePage("/{orchestrator}/entities/{entity_id}", entity),
)
