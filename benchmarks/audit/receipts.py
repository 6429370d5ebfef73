"""Receipts of a year, written as rows: how they are made is not what is measured here."""

from __future__ import annotations

import hashlib
import json
import random
from typing import TYPE_CHECKING, Any, Final

from memgraph.rules.scope import Viewer, viewer_fields

if TYPE_CHECKING:
    from benchmarks.audit.stores import Store
    from memgraph.store.snapshot import Transaction

ITEMS = 10
# So many facts are handed out again and again; every third item is one of them.
POPULAR = 200
BULLETINS, CITED = 200, 40
# Of twenty receipts: one of a bulletin, one that repeats the receipt before it.
_PURPOSES: Final = ("recall", "on_user_message", "build_context", "on_workflow_start")
_HEAD: Final = (
    "INSERT INTO recalls (recall_id, created_at, query, request, purpose, actor, conversation_id,"
    " workflow_run_id, step_id, query_sha256, change_seq, viewer, left_out, sha256, same_as,"
    " bulletin_id) VALUES (?, ?, '', ?, ?, 'bench', ?, ?, ?, ?, 1, ?, '{}', ?, ?, ?)"
)
_VIEWER: Final = json.dumps(viewer_fields(Viewer()))
_ITEM: Final = (
    "INSERT INTO recall_items (recall_id, rank, memory_id, score, explanation)"
    ' VALUES (?, ?, ?, ?, \'{"legs": {"semantic": 1}, "modifiers": {}}\')'
)
_BULLETIN: Final = (
    "INSERT INTO bulletins (bulletin_id, created_at, change_seq, view_key, viewer, sha256,"
    " memory_ids, body) VALUES (?, ?, ?, 'global', ?, ?, ?, ?)"
)


def hand_out(transaction: Transaction, store: Store, count: int) -> None:
    """Write so many receipts, spread over the year, of memories that were there then."""
    chance = random.Random("receipts")
    execute = transaction.driver
    bulletins = _bulletins(execute, store, chance)
    first: dict[str, str] = {}
    heads: list[tuple[Any, ...]] = []
    items: list[tuple[Any, ...]] = []
    for number in range(count):
        share = (number + 1) / count
        at = store.first_at + int((store.last_at - store.first_at) * share)
        receipt_id = f"rcl_{number:026d}"
        there = max(int(len(store.facts) * share), ITEMS)
        given: list[str] = []
        bulletin_id = repeats = None
        if number % 20 == 7:
            bulletin_id = f"bul_{int(share * (BULLETINS - 1)):026d}"
            repeats = first.setdefault(bulletin_id, receipt_id)
            if repeats == receipt_id:
                repeats, given = None, bulletins[bulletin_id]
        elif number % 20 == 3:
            repeats = f"rcl_{number - 1:026d}"
        else:
            given = _chosen(chance, store, there)
        heads.append(_head(chance, receipt_id, at, repeats, bulletin_id))
        items += [(receipt_id, rank, one, 0.5) for rank, one in enumerate(given, start=1)]
    execute.executemany(_HEAD, heads)
    execute.executemany(_ITEM, items)


def _head(
    chance: random.Random, receipt_id: str, at: int, repeats: str | None, bulletin_id: str | None
) -> tuple[Any, ...]:
    purpose = "bulletin" if bulletin_id is not None else chance.choice(_PURPOSES)
    run = f"run-{chance.randrange(1_000)}" if chance.random() < 0.5 else None
    conversation = None if run else f"conversation-{chance.randrange(200)}"
    digest = hashlib.sha256(receipt_id.encode()).hexdigest()
    told = {"workflow_run_id": run, "conversation_id": conversation, "purpose": purpose}
    request = json.dumps({name: value for name, value in told.items() if value is not None})
    step = f"step-{chance.randrange(4)}" if run else None
    return (
        receipt_id,
        at,
        request,
        purpose,
        conversation,
        run,
        step,
        digest,
        _VIEWER,
        digest,
        repeats,
        bulletin_id,
    )


def _chosen(chance: random.Random, store: Store, there: int) -> list[str]:
    found: dict[str, None] = {}
    popular = store.facts[: min(POPULAR, there)]
    while len(found) < ITEMS:
        often = chance.random() < 1 / 3
        found[chance.choice(popular) if often else store.facts[chance.randrange(there)]] = None
    return list(found)


def _bulletins(execute: Any, store: Store, chance: random.Random) -> dict[str, list[str]]:
    """What each bulletin cites, by its id."""
    rows = []
    for number in range(BULLETINS):
        share = (number + 1) / BULLETINS
        at = store.first_at + int((store.last_at - store.first_at) * share)
        there = max(int(len(store.facts) * share), CITED)
        cited = chance.sample(store.facts[:there], k=min(CITED, there))
        body = "\n".join(f"- {one}" for one in cited)
        digest = hashlib.sha256(body.encode()).hexdigest()
        rows.append((f"bul_{number:026d}", at, number, _VIEWER, digest, json.dumps(cited), body))
    execute.executemany(_BULLETIN, rows)
    return {row[0]: json.loads(row[5]) for row in rows}
