"""Which receipts there are, newest first. What is in one is read by ``storage.receipts``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import sqlalchemy as sa

from memgraph.storage.statements import driver

# Ids grow with time. No index knows for whom a receipt was, so only so many are looked at.
_NEWEST = "SELECT recall_id, request FROM recalls ORDER BY recall_id DESC LIMIT :most"


def newest(connection: sa.Connection, asked: Mapping[str, str], *, most: int) -> Iterator[str]:
    """Ids of those of the ``most`` newest receipts that were asked for just that.

    Args:
        asked: texts by keys of ``Receipt.asked``; empty: every receipt.
    """
    terms = [f"json_extract(request, '$.' || :key{at}) = :value{at}" for at, _ in enumerate(asked)]
    values: dict[str, Any] = {"most": most}
    for at, (key, value) in enumerate(asked.items()):
        values |= {f"key{at}": key, f"value{at}": value}
    statement = (
        f"SELECT recall_id FROM ({_NEWEST}) WHERE {' AND '.join(['1', *terms])}"
        " ORDER BY recall_id DESC"
    )
    return (one for (one,) in driver(connection).execute(statement, values))


def are_more_than(connection: sa.Connection, number: int) -> bool:
    """Whether there are more receipts than so many."""
    statement = "SELECT 1 FROM recalls LIMIT 1 OFFSET ?"
    return driver(connection).execute(statement, (number,)).fetchone() is not None
