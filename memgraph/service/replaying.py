"""Asking once more what a receipt is of, as of that moment, and telling what differs and why."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from memgraph.bulletin.generate import generate_in
from memgraph.clock import parse_time
from memgraph.context.counting import Counters
from memgraph.errors import AccessDenied, InvalidInput
from memgraph.model.context import BlockFormat, ContextRequest, Task
from memgraph.model.recall import Bundle, Degraded, RecallRequest, Then
from memgraph.model.receipts import (
    RECALL,
    Difference,
    JournalEntry,
    Receipt,
    Replay,
    bundle_bytes,
)
from memgraph.model.values import validated
from memgraph.policy.scope import Viewer
from memgraph.policy.viewers import covers, viewer_of
from memgraph.service.context import building, entity, injecting
from memgraph.service.recalling import answer
from memgraph.storage import replay_queries
from memgraph.storage.receipts import BULLETIN
from memgraph.storage.replay_queries import MOST_ENTRIES
from memgraph.storage.visibility import View

if TYPE_CHECKING:
    from memgraph.service.opened import Opened

PENDING = "vector.pending"
"""What an answer tells that was given while memories waited for their vectors."""


@dataclass(frozen=True, slots=True)
class Again:
    """What a request gives as of the moment of its receipt; ``sha256``: None: cannot be told."""

    memory_ids: tuple[str, ...]
    sha256: str | None
    degraded: tuple[Degraded, ...] = ()


def asker_of(receipt: Receipt, reader: Viewer) -> Viewer:
    """Who asked, for a reader who sees all that they saw.

    Raises:
        InvalidInput: the receipt does not say.
        AccessDenied: the reader sees less.
    """
    if not receipt.viewer:
        raise InvalidInput("the receipt does not say what its asker could see", field="receipt_id")
    asker = viewer_of(receipt.viewer)
    if not covers(reader, asker):
        raise AccessDenied(
            "what was asked may be asked again by who sees all that the asker saw: name the"
            " project, the session, the clearance",
            field="viewer",
        )
    return asker


def query_of(receipt: Receipt, given: str | None) -> str:
    """What was asked: as it is kept, or as it is given and fits the digest.

    Raises:
        InvalidInput: it is neither kept nor given, or another one is given.
    """
    digest = receipt.query_sha256
    text = receipt.query if given is None else given
    if digest is None:
        if given:
            raise InvalidInput("nothing was asked in words", field="query")
        return ""
    if hashlib.sha256(text.encode(errors="replace")).hexdigest() == digest:
        return text
    if given is not None:
        raise InvalidInput("that is not what was asked: its digest is another", field="query")
    raise InvalidInput(
        "what was asked is kept as a digest alone: name it with query=", field="query"
    )


def replayed(opened: Opened, receipt: Receipt, asker: Viewer, query: str) -> Replay:
    """Ask again and compare.

    Args:
        receipt: as it is stored.
        asker: as ``asker_of`` gives it; query: as ``query_of`` does.

    Raises:
        InvalidInput: of what this is a receipt cannot be asked again.
        StorageError: the database cannot be read.
    """
    again = _again(opened, receipt, asker, query)
    given = tuple(item.memory_id for item in receipt.items)
    differences = _differences(given, again.memory_ids)
    cut = False
    if differences and receipt.change_seq is not None:
        with opened.database.read() as connection:
            changed = replay_queries.changes_since(
                connection,
                receipt.change_seq,
                {each.memory_id for each in differences},
                View(asker),
            )
        cut = len(changed) > MOST_ENTRIES
        differences = [_explained(each, changed[:MOST_ENTRIES]) for each in differences]
    same_digest = None
    if again.sha256 is not None and receipt.sha256 is not None:
        same_digest = again.sha256 == receipt.sha256
    same = again.memory_ids == given
    return Replay(
        receipt_id=receipt.receipt_id,
        at=receipt.at,
        change_seq=receipt.change_seq,
        same=same,
        same_digest=same_digest,
        differences=tuple(differences),
        because=tuple(_because(opened, receipt, again, same=same, differences=differences)),
        cut=cut,
    )


def _again(opened: Opened, receipt: Receipt, asker: Viewer, query: str) -> Again:
    purpose = receipt.purpose
    if purpose in (RECALL, entity.PURPOSE, None):
        return _recalled(opened, receipt, asker, query)
    if purpose == injecting.PURPOSE:
        return _injected(opened, receipt, asker, query)
    if purpose == building.PURPOSE:
        return _built(opened, receipt, asker, query)
    if purpose == BULLETIN:
        return _issued(opened, receipt, asker)
    beside = [receipt.asked.get("context"), receipt.asked.get("bulletin", {}).get("receipt_id")]
    parts = ", ".join(str(one) for one in beside if one)
    instead = f"; ask for those of its parts: {parts}" if parts else ""
    raise InvalidInput(f"a receipt of {purpose} cannot be asked again{instead}", field="receipt_id")


def _recalled(opened: Opened, receipt: Receipt, asker: Viewer, query: str) -> Again:
    request = _recall_request(receipt, query)
    bundle = answer(opened, asker, request, then=_then(opened, receipt)).model_copy(
        update={"receipt_id": receipt.receipt_id}
    )
    bundle = _as_it_was(bundle, receipt)
    digest = hashlib.sha256(bundle_bytes(bundle)).hexdigest()
    return Again(bundle.ids, digest, bundle.degraded)


def _injected(opened: Opened, receipt: Receipt, asker: Viewer, query: str) -> Again:
    asked = receipt.asked
    block, _, _ = injecting.context_for(
        opened,
        asker,
        _recall_request(receipt, query),
        format=BlockFormat(asked["format"]),
        include_insight=bool(asked.get("insight", True)),
        before=injecting.Before(_then(opened, receipt), asked.get("mark", "")),
    )
    digest = hashlib.sha256(block.text.encode()).hexdigest() if "mark" in asked else None
    return Again(block.memory_ids, digest, block.degraded)


def _built(opened: Opened, receipt: Receipt, asker: Viewer, query: str) -> Again:
    asked = receipt.asked
    if "plan" not in asked:
        raise InvalidInput("the receipt does not say how its context was laid out")
    fields = _fields(ContextRequest, asked)
    request = validated(ContextRequest, {**fields, "query": query})
    task = None
    if asked.get("task_id") is not None:
        task = Task(task_id=asked["task_id"], project_id=asked.get("project_id"))
    counter, told = Counters().at_hand(request.model or asked["plan"]["model"])
    plan = building.plan_from(asked, query)
    package, _, _ = building.built(
        opened,
        asker,
        task,
        request,
        plan,
        counter,
        told,
        then=_then(opened, receipt),
    )
    # Another counter measures other texts.
    same_counter = counter.name == asked.get("counter")
    digest = hashlib.sha256(package.text.encode()).hexdigest() if same_counter else None
    ids = tuple(each.memory_id for each in package.items)
    return Again(ids, digest, package.degraded)


def _issued(opened: Opened, receipt: Receipt, asker: Viewer) -> Again:
    limits = receipt.asked.get("limits", {})
    settings = opened.settings.memory.bulletin.model_copy(update=dict(limits))
    known = _then(opened, receipt).known
    with opened.database.read() as connection:
        bulletin = generate_in(connection, asker, settings, known)
    digest = hashlib.sha256(bulletin.text.encode()).hexdigest()
    return Again(bulletin.memory_ids, digest)


def _recall_request(receipt: Receipt, query: str) -> RecallRequest:
    fields = _fields(RecallRequest, receipt.asked)
    return validated(RecallRequest, {"as_of": receipt.at, **fields, "query": query})


def _fields(kind: type[RecallRequest | ContextRequest], asked: Mapping[str, Any]) -> dict[str, Any]:
    return {name: asked[name] for name in kind.model_fields if name in asked}


def _then(opened: Opened, receipt: Receipt) -> Then:
    known = receipt.at
    if receipt.change_seq is not None:
        with opened.database.read() as connection:
            known = replay_queries.known_until(connection, receipt.change_seq, receipt.at)
    # Who asked for an earlier time did not ask for what was known by then.
    if "as_of" in receipt.asked:
        known = min(known, parse_time(receipt.asked["as_of"]))
    # Accesses just before it may have been written after it.
    told = (one for one in receipt.items if one.access_count is not None)
    return Then(receipt.at, known, {one.memory_id: one.last_accessed_at for one in told})


def _as_it_was(bundle: Bundle, receipt: Receipt) -> Bundle:
    """With what the answer knew of accesses."""
    known = {
        one.memory_id: {
            "access_count": one.access_count,
            "last_accessed_at": one.last_accessed_at,
        }
        for one in receipt.items
        if one.access_count is not None
    }
    items = tuple(
        item.model_copy(
            update={"memory": item.memory.model_copy(update=known.get(item.memory.memory_id))}
        )
        for item in bundle.items
    )
    return bundle.model_copy(update={"items": items})


def _differences(given: Sequence[str], again: Sequence[str]) -> list[Difference]:
    """What came and went, and of what is in both that which changed places with others."""
    ranks = {one: rank for rank, one in enumerate(given, start=1)}
    ranks_now = {one: rank for rank, one in enumerate(again, start=1)}
    both = [one for one in given if one in ranks_now]
    moved = {
        one
        for one, other in zip(both, (each for each in again if each in ranks), strict=True)
        if one != other
    }
    return [
        Difference(memory_id=one, rank=ranks.get(one), rank_now=ranks_now.get(one))
        for one in dict.fromkeys((*given, *again))
        if one in moved or (one in ranks) != (one in ranks_now)
    ]


def _explained(one: Difference, changed: Sequence[replay_queries.Change]) -> Difference:
    notes = tuple(
        JournalEntry(
            seq=each.seq, at=each.at, actor=each.actor, action=each.action, subject=each.subject
        )
        for each in changed
        if each.memory_id == one.memory_id
    )
    return one.model_copy(update={"because": notes})


def _because(
    opened: Opened,
    receipt: Receipt,
    again: Again,
    *,
    same: bool,
    differences: Sequence[Difference],
) -> list[str]:
    if same:
        return []
    lacked = set(receipt.asked.get("degraded", ())) ^ {each.code for each in again.degraded}
    causes = {
        "settings": receipt.settings_sha256 not in (None, opened.settings_sha256),
        "model": opened.other_model is not None,
        "embeddings": PENDING in lacked,
        "degraded": not lacked <= {PENDING},
    }
    found = [name for name, holds in causes.items() if holds]
    if not found and not all(each.because for each in differences):
        return ["index"]
    return found
