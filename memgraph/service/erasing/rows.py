"""Erasing the rows: one transaction, in which the journal gets its tombstones, too."""

from __future__ import annotations

import hashlib
from typing import Any, Final

from memgraph.audit.journal import Entry
from memgraph.service.erasing.choosing import overtaken
from memgraph.service.erasing.plan import Plan
from memgraph.service.opened import Opened, Transaction
from memgraph.storage import erasing, erasing_queries, journal

TOMBSTONE: Final = "erase"


class Overtaken(Exception):
    """Other memories are to be erased by now than were planned."""


def erase_rows(opened: Opened, plan: Plan) -> None:
    """Take the texts out of the database, in one transaction with its tombstones.

    What an earlier try took is not taken again; what came back since, from a process that had it in
    hand, is.

    Raises:
        StorageError, Overtaken: nothing of it was done.
    """
    with opened.transaction(plan.actor) as transaction:
        again = bool(erasing.told_of(transaction.connection, plan.erasure_id))
        # What was stored since then would stay, with nothing left to tell what it was made of.
        if not again and overtaken(transaction.connection, plan):
            raise Overtaken
        with erasing.thorough(transaction.connection):
            rows = _blank(transaction, plan)
            entities = erasing.remove_entities(transaction.connection, plan.entity_pks)
            erasing.recount_entities(transaction.connection)
            for table, count in _swept(transaction, plan).items():
                rows[table] = rows.get(table, 0) + count
            redacted = erasing.redact_journal(
                transaction.connection, set(plan.memory_ids), plan.says, plan.scrub, digest
            )
        if not again or redacted:
            told = {"rows": rows, "entities": entities, "redacted": [list(e) for e in redacted]}
            _bury(transaction, plan, told, again=again)


def _blank(transaction: Transaction, plan: Plan) -> dict[str, int]:
    connection = transaction.connection
    pks = erasing_queries.standing_among(connection, plan.pks)
    erasing.retract(connection, pks, at=transaction.at, actor=plan.actor)
    return erasing.blank(connection, pks, at=transaction.at)


def _swept(transaction: Transaction, plan: Plan) -> dict[str, int]:
    bulletins = erasing.redact_bulletins(transaction.connection, set(plan.memory_ids))
    counts = erasing.sweep(transaction.connection, plan.says, plan.scrub)
    if bulletins:
        counts["bulletins"] = counts.get("bulletins", 0) + bulletins
    return counts


def _bury(transaction: Transaction, plan: Plan, told: dict[str, Any], *, again: bool) -> None:
    """A tombstone for each memory, and one for the erasure that says what was redacted."""
    head, _ = journal.head(transaction.connection)
    fallen = () if again else plan.memory_ids
    transaction.tell([Entry(TOMBSTONE, each, {"erasure_id": plan.erasure_id}) for each in fallen])
    known = {"erasure_id": plan.erasure_id, "kind": plan.kind.value, "reason": plan.reason}
    transaction.tell([Entry(TOMBSTONE, None, {**known, "memories": len(plan.memory_ids), **told})])
    erasing.note_head(transaction.connection, head + len(fallen) + 1)


def digest(text: str) -> str:
    """SHA-256 of a text, in hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
