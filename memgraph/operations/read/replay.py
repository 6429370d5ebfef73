"""Replay the request of a receipt as of its time, and explain the differences."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from memgraph.bulletin.generate import generate_in
from memgraph.clock import parse_time
from memgraph.context.token_counters import TokenCounters
from memgraph.errors import AccessDenied, InvalidInput
from memgraph.model.context import BlockFormat, ContextPackage, ContextRequest, Task
from memgraph.model.recall import Bundle, Degraded, RecallRequest, ReplayMoment
from memgraph.model.receipts import (
    ANSWERS,
    RECALL,
    Difference,
    JournalEntry,
    Receipt,
    Replay,
    bundle_bytes,
)
from memgraph.model.values import validated
from memgraph.operations.context import builder as building
from memgraph.operations.context import entity
from memgraph.operations.context import injection as injecting
from memgraph.operations.read.recall import answer, answers_of
from memgraph.rules.scope import Viewer, covers, viewer_of
from memgraph.service.turns.prompts import joined
from memgraph.store import receipts
from memgraph.store.receipts import BULLETIN, MOST_ENTRIES
from memgraph.store.visibility import View

if TYPE_CHECKING:
    from memgraph.model.context import Bulletin
    from memgraph.service.open_orchestrator import OpenOrchestrator

PENDING = "vector.pending"
"""The degradation code of an answer given while memories were waiting for their vectors."""


@dataclass(frozen=True, slots=True)
class ReplayedAnswer:
    """The result of a replayed request.

    Attributes:
        sha256: the digest of the result; None if it is not comparable.
        lacked: the degradation codes that only one of the two answers has.
    """

    memory_ids: tuple[str, ...]
    sha256: str | None
    lacked: frozenset[str] = frozenset()


def asker_of(receipt: Receipt, reader: Viewer) -> Viewer:
    """Return the viewer of a receipt's caller, if the reader sees everything it saw.

    Raises:
        InvalidInput: the receipt does not record the viewer.
        AccessDenied: the reader sees less.
    """
    if not receipt.viewer:
        raise InvalidInput("the receipt does not record its caller's view", field="receipt_id")
    asker = viewer_of(receipt.viewer)
    if not covers(reader, asker):
        raise AccessDenied(
            "a replay needs a handle that sees everything the original caller saw: use its project,"
            " session and clearance",
            field="viewer",
        )
    return asker


def query_of(receipt: Receipt, query: str | None) -> str:
    """Return the query of a receipt: ``query`` after checking its digest, or the stored one.

    Raises:
        InvalidInput: the query is neither stored nor given, or a different one is given.
    """
    digest = receipt.query_sha256
    text = receipt.query if query is None else query
    if digest is None:
        if query:
            raise InvalidInput("the request had no query", field="query")
        return ""
    if hashlib.sha256(text.encode(errors="replace")).hexdigest() == digest:
        return text
    if query is not None:
        raise InvalidInput(
            "the query differs from the original: the digests do not match", field="query"
        )
    raise InvalidInput(
        "the receipt keeps only a digest of the query: pass the query as query=", field="query"
    )


def replayed(
    opened: OpenOrchestrator, receipt: Receipt, reader: Viewer, query: str | None
) -> Replay:
    """Repeat the request of a receipt and compare the results.

    Args:
        receipt: the receipt as it is stored.
        reader: the viewer of the caller.
        query: the query, if the receipt keeps only its digest.

    Raises:
        InvalidInput: as in ``query_of``, or this kind of receipt cannot be replayed.
        AccessDenied: the reader sees less than the original caller.
        StorageError: the database cannot be read.
    """
    asker = asker_of(receipt, reader)
    replay = _again(opened, receipt, reader, query_of(receipt, query))
    original = _given(opened, receipt)
    differences = _differences(original, replay.memory_ids)
    cut = False
    if differences and receipt.change_seq is not None:
        with opened.database.read() as snapshot:
            changed = receipts.changes_since(
                snapshot,
                receipt.change_seq,
                {difference.memory_id for difference in differences},
                View(asker),
            )
        cut = len(changed) > MOST_ENTRIES
        differences = [_explained(difference, changed[:MOST_ENTRIES]) for difference in differences]
    same_digest = None
    if replay.sha256 is not None and receipt.sha256 is not None:
        same_digest = replay.sha256 == receipt.sha256
    same = replay.memory_ids == original
    return Replay(
        receipt_id=receipt.receipt_id,
        at=receipt.at,
        change_seq=receipt.change_seq,
        same=same,
        same_digest=same_digest,
        differences=tuple(differences),
        because=tuple(_because(opened, receipt, replay, same=same, differences=differences)),
        cut=cut,
    )


def _again(
    opened: OpenOrchestrator, receipt: Receipt, reader: Viewer, query: str
) -> ReplayedAnswer:
    purpose, asker = receipt.purpose, asker_of(receipt, reader)
    if purpose in (RECALL, entity.PURPOSE, None):
        return _recalled(opened, receipt, asker, query)
    if purpose == injecting.PURPOSE:
        return _injected(opened, receipt, asker, query)
    if purpose == building.PURPOSE:
        return _built(opened, receipt, asker, query)
    if purpose == BULLETIN:
        return _issued(opened, receipt, asker)
    if "bulletin" in receipt.asked:
        return _shown(opened, receipt, reader, query)
    raise InvalidInput(f"a receipt of {purpose} cannot be replayed", field="receipt_id")


def _given(opened: OpenOrchestrator, receipt: Receipt) -> tuple[str, ...]:
    """Return the memories that were handed out; for a turn, those of its bulletin come first, then
    those of its context.
    """
    cited = receipt.asked.get("bulletin", {}).get("memory_ids", ())
    context = _context_of(opened, receipt)
    items = (receipt if context is None else context).items
    return tuple(dict.fromkeys((*cited, *(item.memory_id for item in items))))


def _context_of(opened: OpenOrchestrator, receipt: Receipt) -> Receipt | None:
    """Return the receipt of a turn's context; None if there is no context or it is not a turn."""
    receipt_id = receipt.asked.get("context")
    if receipt_id is None:
        return None
    with opened.database.read() as snapshot:
        stored_receipt = receipts.read(snapshot, receipt_id)
    if stored_receipt is None:
        raise InvalidInput(
            f"the receipt of the turn's context, {receipt_id}, no longer exists",
            field="receipt_id",
        )
    return stored_receipt.receipt


def _recalled(
    opened: OpenOrchestrator, receipt: Receipt, asker: Viewer, query: str
) -> ReplayedAnswer:
    request = _recall_request(receipt, query)
    bundle = answer(opened, asker, request, then=_then(opened, receipt)).model_copy(
        update={"receipt_id": receipt.receipt_id}
    )
    if ANSWERS in receipt.asked:
        bundle = answers_of(bundle, query, receipt.asked[ANSWERS])
    bundle = _as_it_was(bundle, receipt)
    digest = hashlib.sha256(bundle_bytes(bundle)).hexdigest()
    return ReplayedAnswer(bundle.ids, digest, _lacked(receipt, bundle.degraded))


def _injected(
    opened: OpenOrchestrator, receipt: Receipt, asker: Viewer, query: str
) -> ReplayedAnswer:
    request = receipt.asked
    block, _, _ = injecting.context_for(
        opened,
        asker,
        _recall_request(receipt, query),
        format=BlockFormat(request["format"]),
        include_insight=bool(request.get("insight", True)),
        before=injecting.EarlierBlock(_then(opened, receipt), request.get("mark", "")),
    )
    digest = hashlib.sha256(block.text.encode()).hexdigest() if "mark" in request else None
    return ReplayedAnswer(block.memory_ids, digest, _lacked(receipt, block.degraded))


def _built(opened: OpenOrchestrator, receipt: Receipt, asker: Viewer, query: str) -> ReplayedAnswer:
    package = _package(opened, receipt, asker, query)
    digest = hashlib.sha256(package.text.encode()).hexdigest()
    ids = tuple(item.memory_id for item in package.items)
    lacked = _lacked(receipt, package.degraded)
    return ReplayedAnswer(ids, digest if _counts_as(receipt, package) else None, lacked)


def _shown(
    opened: OpenOrchestrator, receipt: Receipt, reader: Viewer, query: str
) -> ReplayedAnswer:
    """Replay a turn: its bulletin, with the recorded or else current limits, and its context."""
    bulletin = _bulletin(opened, receipt, asker_of(receipt, reader))
    context = _context_of(opened, receipt)
    if context is None:
        digest = hashlib.sha256(bulletin.text.encode()).hexdigest()
        return ReplayedAnswer(bulletin.memory_ids, digest)
    package = _package(opened, context, asker_of(context, reader), query)
    digest = hashlib.sha256(joined(bulletin.text, package).encode()).hexdigest()
    ids = (*bulletin.memory_ids, *(item.memory_id for item in package.items))
    lacked = _lacked(context, package.degraded)
    expected = digest if _counts_as(context, package) else None
    return ReplayedAnswer(tuple(dict.fromkeys(ids)), expected, lacked)


def _package(
    opened: OpenOrchestrator, receipt: Receipt, asker: Viewer, query: str
) -> ContextPackage:
    asked_fields = receipt.asked
    if "plan" not in asked_fields:
        raise InvalidInput("the receipt does not record the layout of its context")
    fields = _fields(ContextRequest, asked_fields)
    request = validated(ContextRequest, {**fields, "query": query})
    task = None
    if asked_fields.get("task_id") is not None:
        task = Task(task_id=asked_fields["task_id"], project_id=asked_fields.get("project_id"))
    counter, notes = TokenCounters().at_hand(request.model or asked_fields["plan"]["model"])
    plan = building.plan_from(asked_fields, query)
    package, _, _ = building.built(
        opened,
        asker,
        task,
        request,
        plan,
        counter,
        notes,
        then=_then(opened, receipt),
    )
    return package


def _counts_as(receipt: Receipt, package: ContextPackage) -> bool:
    """Return True if both texts were measured by the same token counter, so they are comparable."""
    return package.counter == receipt.asked.get("counter")


def _lacked(receipt: Receipt, degraded: Iterable[Degraded]) -> frozenset[str]:
    return frozenset(receipt.asked.get("degraded", ())) ^ {
        degradation.code for degradation in degraded
    }


def _issued(opened: OpenOrchestrator, receipt: Receipt, asker: Viewer) -> ReplayedAnswer:
    bulletin = _bulletin(opened, receipt, asker)
    digest = hashlib.sha256(bulletin.text.encode()).hexdigest()
    return ReplayedAnswer(bulletin.memory_ids, digest)


def _bulletin(opened: OpenOrchestrator, receipt: Receipt, asker: Viewer) -> Bulletin:
    limits = receipt.asked.get("limits", {})
    settings = opened.settings.memory.bulletin.model_copy(update=dict(limits))
    known_at = _then(opened, receipt).known
    with opened.database.read() as snapshot:
        return generate_in(snapshot, asker, settings, known_at)


def _recall_request(receipt: Receipt, query: str) -> RecallRequest:
    fields = _fields(RecallRequest, receipt.asked)
    return validated(RecallRequest, {"as_of": receipt.at, **fields, "query": query})


def _fields(
    kind: type[RecallRequest | ContextRequest], request: Mapping[str, Any]
) -> dict[str, Any]:
    return {name: request[name] for name in kind.model_fields if name in request}


def _then(opened: OpenOrchestrator, receipt: Receipt) -> ReplayMoment:
    known_at = receipt.at
    if receipt.change_seq is not None:
        with opened.database.read() as snapshot:
            known_at = receipts.known_until(snapshot, receipt.change_seq, receipt.at)
    # A request with ``as_of`` returned only what was known by that earlier time.
    if "as_of" in receipt.asked:
        known_at = min(known_at, parse_time(receipt.asked["as_of"]))
    # Accesses just before the recall may have been written only after it.
    counted = (item for item in receipt.items if item.access_count is not None)
    return ReplayMoment(
        receipt.at, known_at, {item.memory_id: item.last_accessed_at for item in counted}
    )


def _as_it_was(bundle: Bundle, receipt: Receipt) -> Bundle:
    """Return the bundle with the access data that its receipt recorded."""
    known_items = {
        item.memory_id: {
            "access_count": item.access_count,
            "last_accessed_at": item.last_accessed_at,
        }
        for item in receipt.items
        if item.access_count is not None
    }
    items = tuple(
        item.model_copy(
            update={"memory": item.memory.model_copy(update=known_items.get(item.memory.memory_id))}
        )
        for item in bundle.items
    )
    return bundle.model_copy(update={"items": items})


def _differences(original: Sequence[str], replayed_ids: Sequence[str]) -> list[Difference]:
    """Return the memories that were added, removed, or changed their relative rank."""
    ranks = {memory_id: rank for rank, memory_id in enumerate(original, start=1)}
    ranks_now = {memory_id: rank for rank, memory_id in enumerate(replayed_ids, start=1)}
    both = [memory_id for memory_id in original if memory_id in ranks_now]
    moved = {
        before
        for before, other in zip(
            both, (memory_id for memory_id in replayed_ids if memory_id in ranks), strict=True
        )
        if before != other
    }
    return [
        Difference(
            memory_id=memory_id, rank=ranks.get(memory_id), rank_now=ranks_now.get(memory_id)
        )
        for memory_id in dict.fromkeys((*original, *replayed_ids))
        if memory_id in moved or (memory_id in ranks) != (memory_id in ranks_now)
    ]


def _explained(difference: Difference, changed: Sequence[receipts.JournalledChange]) -> Difference:
    notes = tuple(
        JournalEntry(
            seq=change.seq,
            at=change.at,
            actor=change.actor,
            action=change.action,
            subject=change.subject,
        )
        for change in changed
        if change.memory_id == difference.memory_id
    )
    return difference.model_copy(update={"because": notes})


def _because(
    opened: OpenOrchestrator,
    receipt: Receipt,
    answer: ReplayedAnswer,
    *,
    same: bool,
    differences: Sequence[Difference],
) -> list[str]:
    if same:
        return []
    conditions = {
        "settings": receipt.settings_sha256 not in (None, opened.settings_sha256),
        "model": opened.other_model is not None,
        "embeddings": PENDING in answer.lacked,
        "degraded": not answer.lacked <= {PENDING},
    }
    names = [name for name, is_true in conditions.items() if is_true]
    if not names and not all(difference.because for difference in differences):
        return ["index"]
    return names
