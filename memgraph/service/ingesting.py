"""Storing one dropped file: its memories, edges and links in one transaction, once for ever."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from memgraph.audit.journal import Entry
from memgraph.errors import MemgraphError
from memgraph.model.enums import EdgeType, IngestStatus, MemoryStatus
from memgraph.model.ingest import Document, DocumentOutcome, Link
from memgraph.model.values import EdgeInput, Outcome
from memgraph.policy.lifecycle import Action, next_status
from memgraph.service.joining import Joiner, Written
from memgraph.service.opened import Opened, Transaction
from memgraph.service.relating import Relations, find_relations
from memgraph.service.writing import Prepared
from memgraph.storage import ingest_files, memories, supports
from memgraph.storage.visibility import View

# ``attributes.role`` of what a record's decision says beyond its main memory.
DETAIL_ROLE = "decision_detail"

BY = "by"
"""Of a manifest: who had it stored, as the journal names them."""


def known(opened: Opened, sha256: str) -> tuple[IngestStatus, dict[str, Any]] | None:
    """What became of a content that was dropped before: its status and manifest."""
    with opened.database.read() as connection:
        return ingest_files.status_of(connection, sha256)


def store_document(
    opened: Opened,
    document: Document,
    actor: str,
    view: View | None = None,
    refused: Callable[[MemgraphError], None] = lambda _error: None,
) -> DocumentOutcome:
    """Store a parsed file. A content that was stored before writes nothing.

    Args:
        view: what the writer sees, and therefore may join; None: everything.
        refused: told of each item that was rejected.

    Raises:
        StorageError: nothing of it was written.
    """
    previous = known(opened, document.sha256)
    if previous is not None and previous[0] is IngestStatus.PROCESSED:
        return DocumentOutcome(outcome="duplicate", manifest=previous[1])
    prepared = [opened.writer.prepare(each) for each in document.memories]
    # The classifier is a model: it looks before the transaction, its word is written inside.
    relations = find_relations(opened, document.memories if document.relate else (), seen=view)
    with opened.transaction(actor) as transaction:
        connection = transaction.connection
        previous = ingest_files.status_of(connection, document.sha256)
        if previous is not None and previous[0] is IngestStatus.PROCESSED:
            return DocumentOutcome(outcome="duplicate", manifest=previous[1])
        written = opened.writer.store(
            connection, prepared, document.edges, at=transaction.at, actor=actor, view=view
        )
        _support(transaction, prepared, written)
        linked, waiting = _link(opened, transaction, document, written, view)
        related = _relate(opened, transaction, relations, written)
        outcome = DocumentOutcome(
            outcome="stored",
            memories=tuple(written.memories),
            edges=tuple(written.edges),
            links_made=_stored(linked),
            links_rejected=tuple(each for each in linked if each.outcome == "rejected"),
            links_waiting=waiting,
            relations=related,
        )
        told = {**_counts(outcome), **_items(outcome), BY: actor}
        manifest = {**document.manifest, **told}
        ingest_files.record(
            connection,
            document.sha256,
            path=document.path,
            status=IngestStatus.PROCESSED,
            manifest=manifest,
            at=transaction.at,
        )
        transaction.tell(written.entries)
        transaction.tell([Entry("ingest", None, {"sha256": document.sha256, **_counts(outcome)})])
    for error in written.errors:
        refused(error)
    return outcome.model_copy(update={"manifest": manifest})


def record_rejection(
    opened: Opened, sha256: str, *, path: str, manifest: Mapping[str, Any], actor: str
) -> None:
    """Note that a content was refused, and why."""
    with opened.transaction(actor) as transaction:
        previous = ingest_files.status_of(transaction.connection, sha256)
        if previous is not None and previous[0] is IngestStatus.PROCESSED:
            return
        ingest_files.record(
            transaction.connection,
            sha256,
            path=path,
            status=IngestStatus.REJECTED,
            manifest={**manifest, BY: actor},
            at=transaction.at,
        )
        transaction.tell([Entry("ingest_rejected", None, {"sha256": sha256})])


def _support(transaction: Transaction, prepared: Sequence[Prepared], written: Written) -> None:
    """What was stored before is said by this file, too: should the other one be taken back."""
    for item, outcome in zip(prepared, written.memories, strict=True):
        if outcome.outcome != "duplicate" or outcome.memory_id is None:
            continue
        source_id = item.source_id
        memories.insert_sources(transaction.connection, {source_id: item.given.source})
        if supports.add(transaction.connection, outcome.memory_id, source_id, at=transaction.at):
            transaction.tell([Entry("support", outcome.memory_id, {"source_id": source_id})])


def _link(
    opened: Opened,
    transaction: Transaction,
    document: Document,
    written: Written,
    view: View | None,
) -> tuple[list[Outcome], int]:
    """Join the file with those it names and those that waited for it.

    Gives an outcome per edge, and how many links wait for a file that has not come.
    """
    connection = transaction.connection
    edges: list[EdgeInput] = []
    waiting = 0
    main = written.ids_by_key.get((document.main or "").removeprefix("#"))
    if main is not None:
        ingest_files.add_keys(connection, main, document.document_keys)
        for row in _taken(connection, document.document_keys, view):
            edges += _edge(row.memory_id, main, row)
    for link in document.links:
        local = written.ids_by_key.get(link.local.removeprefix("#"))
        if local is None:
            continue
        target = _find(connection, link, view)
        if target is not None:
            edges += _edge(local, target, link)
        else:
            waiting += 1
            _wait(connection, local, link)
    joined = opened.writer.store(
        connection, [], edges, at=transaction.at, actor=transaction.actor, view=view
    )
    transaction.tell(joined.entries)
    for edge, outcome in zip(edges, joined.edges, strict=True):
        whole = edge.edge_type is EdgeType.UPDATES and not edge.partial
        if whole and outcome.outcome == "stored" and outcome.code is None:
            _replace_details(opened.writer.joiner, transaction, edge.from_id, edge.to_id, view)
    return joined.edges, waiting


def _taken(connection: sa.Connection, keys: Sequence[str], view: View | None) -> list[sa.Row[Any]]:
    """The links that waited for one of these names, and that the writer may make."""
    rows = ingest_files.take_waiting(connection, keys)
    if view is None:
        return rows
    seen = memories.existing_ids(connection, sorted({row.memory_id for row in rows}), view)
    for row in rows:
        if row.memory_id not in seen:
            # It waits on: whoever sees both sides may make it.
            ingest_files.wait_for(
                connection, {name: each for name, each in row._mapping.items() if name != "link_id"}
            )
    return [row for row in rows if row.memory_id in seen]


def _replace_details(
    joiner: Joiner, transaction: Transaction, new_id: str, old_id: str, view: View | None
) -> None:
    """The rest of a replaced decision's text goes with it, as far as the writer sees it.

    What a more trusted source says as well stays.

    Its context and consequences stay: they stand on a replaced ground, and are told as such.
    """
    status = next_status(MemoryStatus.ACTIVE, Action.SUPERSEDE)
    parts = ingest_files.parts_left(transaction.connection, old_id, DETAIL_ROLE)
    for part in _seen(transaction.connection, parts, view):
        if not joiner.may_replace(transaction.connection, new_id, part):
            continue
        memories.set_status(
            transaction.connection,
            part,
            status,
            at=transaction.at,
            actor=transaction.actor,
            reason=f"replaced by {new_id}, with {old_id} of which it is a part",
        )
        transaction.tell([Entry("supersede", part, {"by": new_id, "with": old_id})])


def _edge(local: str, other: str, link: Link | sa.Row[Any]) -> list[EdgeInput]:
    if local == other:
        return []
    return [
        EdgeInput(
            from_id=local if link.outgoing else other,
            to_id=other if link.outgoing else local,
            edge_type=EdgeType(link.edge_type),
            weight=link.weight,
            reason=link.reason,
            partial=link.partial,
        )
    ]


def _find(connection: sa.Connection, link: Link, view: View | None) -> str | None:
    """The memory that a link names. One that the writer does not see is not there."""
    exact = _known_as(connection, link.target, view)
    if exact:
        return exact[0]
    for key in link.fallbacks:
        loose = _known_as(connection, key, view)
        if len(loose) == 1:
            return loose[0]
    return None


def _known_as(connection: sa.Connection, key: str, view: View | None) -> list[str]:
    return _seen(connection, ingest_files.known_as(connection, key), view)


def _seen(connection: sa.Connection, ids: list[str], view: View | None) -> list[str]:
    """Those of the memories that the writer sees."""
    if view is None:
        return ids
    seen = memories.existing_ids(connection, ids, view)
    return [each for each in ids if each in seen]


def _wait(connection: sa.Connection, local: str, link: Link) -> None:
    for target in (link.target, *link.fallbacks):
        row = link.model_dump(exclude={"local", "fallbacks"}) | {"memory_id": local}
        ingest_files.wait_for(connection, row | {"target": target})


def _relate(
    opened: Opened, transaction: Transaction, relations: Relations, written: Written
) -> dict[str, int]:
    """Write what the classifier was sure of; a rejected memory takes its relations with it."""
    edges = [
        each
        for each in relations.edges
        if all(
            not end.startswith("#") or end[1:] in written.ids_by_key
            for end in (each.from_id, each.to_id)
        )
    ]
    joined = Written(ids_by_key=written.ids_by_key)
    outcomes = opened.writer.joiner.join_all(
        transaction.connection, edges, joined, at=transaction.at, actor=transaction.actor
    )
    transaction.tell(joined.entries)
    return {**relations.counts, "edges": _stored(outcomes)}


def _stored(outcomes: Sequence[Outcome]) -> int:
    return sum(each.outcome == "stored" for each in outcomes)


def _items(outcome: DocumentOutcome) -> dict[str, Any]:
    """What became of each memory and edge, with its id, in the order of the file."""
    made = [each.model_dump(mode="json", exclude_none=True) for each in outcome.memories]
    joined = [each.model_dump(mode="json", exclude_none=True) for each in outcome.edges]
    return {"items": {"memories": made, "edges": joined}}


def _counts(outcome: DocumentOutcome) -> dict[str, Any]:
    """What a manifest and the journal tell of it."""
    tallies: dict[str, int] = {}
    for each in outcome.memories:
        tallies[each.outcome] = tallies.get(each.outcome, 0) + 1
    return {
        "memories": dict(sorted(tallies.items())),
        "edges": _stored(outcome.edges),
        "links_made": outcome.links_made,
        "links_waiting": outcome.links_waiting,
        "links_rejected": [each.code for each in outcome.links_rejected],
        "relations": outcome.relations,
    }
