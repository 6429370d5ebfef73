"""Read and write facts about a store by key, such as its orchestrator and schema revision."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from memgraph.errors import SchemaUnknown
from memgraph.model.values import compact_json
from memgraph.store import tables
from memgraph.store.snapshot import Snapshot, Transaction
from memgraph.store.statements import bound, prepared, replacing, value


@prepared
def _get() -> sa.Select[Any]:
    facts = tables.metadata.c
    return sa.select(facts.value).where(facts.key == value("key"))


def get(snapshot: Snapshot, key: str) -> str | None:
    """Return the value of a key; None if it is not set."""
    text = _get().scalar(snapshot, key=key)
    return None if text is None else str(text)


@prepared
def _put() -> sa.Insert:
    return replacing(tables.metadata)


def put(transaction: Transaction, key: str, value: str) -> None:
    """Set the value of a key."""
    _put().write(transaction, key=key, value=value)


def drop(transaction: Transaction, key: str) -> None:
    """Remove a key if it exists."""
    transaction.write(sa.delete(tables.metadata).where(tables.metadata.c.key == bound(key)))


# The owner of the store.

ORCHESTRATOR_KEY = "orchestrator_id"


def begin(transaction: Transaction, orchestrator_id: str, dimensions: int, now_ms: int) -> None:
    """Write the facts about a new store."""
    put(transaction, ORCHESTRATOR_KEY, orchestrator_id)
    put(transaction, "created_at", str(now_ms))
    put(transaction, "embedding_dimensions", str(dimensions))


def adopt(transaction: Transaction, orchestrator_id: str) -> None:
    """Assign the store to an orchestrator."""
    put(transaction, ORCHESTRATOR_KEY, orchestrator_id)
    m, name = tables.memories, value("name")
    update = sa.update(m).where(m.c.orchestrator_id != name).values(orchestrator_id=name)
    transaction.write(update, name=orchestrator_id)


# The schema of the store.

SCHEMA_HEAD = "0001_dd02dbd6"
"""The revision of the migration; it ends with a digest of the schema, so another one is refused."""
_VERSION = sa.table("alembic_version", sa.column("version_num", sa.Text))


def revision(snapshot: Snapshot) -> str | None:
    """Return the revision of the last migration; None if none has run."""
    number: str | None = snapshot.scalar(sa.select(_VERSION.c.version_num))
    return number


def require_head(current: str) -> None:
    """Raise SchemaUnknown if a revision differs from this version's."""
    if current != SCHEMA_HEAD:
        raise SchemaUnknown(
            f"the schema is {current or 'not named'}, which this version of memgraph does not know:"
            " use the version that made it",
            found=current,
            needed=SCHEMA_HEAD,
        )


# The result of the last verification by a worker.

_VERIFIED: Final = "verified"


class LastVerification(NamedTuple):
    """The result of the last verification.

    Attributes:
        at: the time in milliseconds; 0: never.
        totals: the number of findings by code.
        seen: (seq, seal) of the journal entry that was anchored at the last verification without
            findings; None: there was none.
    """

    at: int = 0
    totals: Mapping[str, int] = {}
    seen: tuple[int, str] | None = None


def last_verification(snapshot: Snapshot) -> LastVerification:
    """Return the result of the last verification by a worker."""
    text = get(snapshot, _VERIFIED)
    if text is None:
        return LastVerification()
    result = json.loads(text)
    seen = result["seen"] and (int(result["seen"][0]), str(result["seen"][1]))
    return LastVerification(int(result["at"]), result["totals"], seen)


def note_verification(
    transaction: Transaction, at: int, totals: Mapping[str, int], seen: tuple[int, str] | None
) -> None:
    """Store the result of a verification; see ``LastVerification``."""
    verification = {"at": at, "totals": dict(totals), "seen": seen}
    put(transaction, _VERIFIED, compact_json(verification))
