"""Which receipts and bulletins there are, what became too old of them, and what no asker saw.

What is in a receipt is read by ``storage.receipts``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final, NamedTuple

import sqlalchemy as sa

from memgraph.policy.scope import Reason, ScopeFacts, Viewer, visible
from memgraph.storage.narrowing import Narrowing
from memgraph.storage.receipts import BULLETIN, covered
from memgraph.storage.statements import driver
from memgraph.storage.visibility import View

# Of the newest memories with the words of a query, and of those that its asker might not see.
MOST_MET: Final = 64
MOST_HIDDEN: Final = 20

_COLUMNS: Final = frozenset({"purpose", "workflow_run_id", "conversation_id"})
_DELETE_ITEMS = "DELETE FROM recall_items WHERE recall_id IN (SELECT value FROM json_each(?))"
_DELETE = "DELETE FROM recalls WHERE recall_id IN (SELECT value FROM json_each(?))"
# What a kept one repeats has the items of both.
_OLD = (
    "SELECT r.recall_id FROM recalls r WHERE (r.created_at < :since"
    " OR (r.created_at, r.recall_id) <= (SELECT created_at, recall_id FROM recalls"
    " ORDER BY created_at DESC, recall_id DESC LIMIT 1 OFFSET :keep))"
    " AND NOT EXISTS (SELECT 1 FROM recalls k WHERE k.same_as = r.recall_id)"
    " ORDER BY r.created_at, r.recall_id LIMIT :limit"
)
_DELETE_BULLETINS = (
    "DELETE FROM bulletins WHERE bulletin_id IN (SELECT b.bulletin_id FROM bulletins b"
    " WHERE NOT EXISTS (SELECT 1 FROM recalls r WHERE r.bulletin_id = b.bulletin_id) LIMIT ?)"
)
_HANDED_OUT = (
    f"(SELECT count(*) FROM recalls r WHERE r.bulletin_id = b.bulletin_id"
    f" AND r.purpose = '{BULLETIN}')"
)
_BULLETIN = "b.bulletin_id, b.created_at, b.change_seq, b.sha256"


class IssuedBulletin(NamedTuple):
    """A bulletin that was handed out; ``receipts``: how often."""

    bulletin_id: str
    created_at: int
    change_seq: int
    sha256: str
    receipts: int


class BulletinText(NamedTuple):
    """What a bulletin was, and what its reader could see."""

    memory_ids: tuple[str, ...]
    body: str


def newest(
    connection: sa.Connection, asked: Mapping[str, str], *, most: int, before: str | None = None
) -> Iterator[str]:
    """Ids of the ``most`` newest receipts that were asked for just that.

    Args:
        asked: texts by keys of ``Receipt.asked``; empty: every receipt.
        before: only receipts older than this one, which may have been removed since.
    """
    terms, values = ["1"], {"most": most, "before": before}
    within = ["1"]
    for at, (key, value) in enumerate(asked.items()):
        values |= {f"key{at}": key, f"value{at}": value}
        if key in _COLUMNS:
            within.append(f"{key} = :value{at}")
        else:
            # No index knows it, so only so many are looked at.
            terms.append(f"json_extract(request, '$.' || :key{at}) = :value{at}")
    if before is not None:
        within.append(
            "(created_at, recall_id) < ((SELECT created_at FROM recalls"
            " WHERE recall_id <= :before ORDER BY recall_id DESC LIMIT 1), :before)"
        )
    statement = (
        "SELECT recall_id FROM (SELECT recall_id, created_at, request FROM recalls"
        f" WHERE {' AND '.join(within)} ORDER BY created_at DESC, recall_id DESC LIMIT :most)"
        f" WHERE {' AND '.join(terms)} ORDER BY created_at DESC, recall_id DESC"
    )
    return (one for (one,) in driver(connection).execute(statement, values))


def are_more_than(connection: sa.Connection, number: int) -> bool:
    """Whether there are more receipts than so many."""
    statement = "SELECT 1 FROM recalls LIMIT 1 OFFSET ?"
    return driver(connection).execute(statement, (number,)).fetchone() is not None


def any_old(connection: sa.Connection, *, keep: int, since: int) -> bool:
    """Whether ``remove_old`` would remove any."""
    found = driver(connection).execute(_OLD, {"keep": keep, "since": since, "limit": 1})
    return found.fetchone() is not None


def remove_old(connection: sa.Connection, *, keep: int, since: int, limit: int) -> int:
    """Remove the oldest receipts, at most ``limit``; gives how many.

    One that a later one repeats stays until the last of these is gone.

    Args:
        keep: so many of the newest stay, unless they are older than ``since``, milliseconds.
    """
    execute = driver(connection).execute
    found = execute(_OLD, {"keep": keep, "since": since, "limit": limit}).fetchall()
    if found:
        ids = json.dumps([one for (one,) in found])
        execute(_DELETE_ITEMS, (ids,))
        execute(_DELETE, (ids,))
    return len(found)


def remove_bulletins(connection: sa.Connection, limit: int) -> int:
    """Remove bulletins, at most ``limit``, that no receipt is of any longer; gives how many."""
    return int(driver(connection).execute(_DELETE_BULLETINS, (limit,)).rowcount)


def bulletins(
    connection: sa.Connection, view: View, *, limit: int, before: str | None, most: int
) -> list[IssuedBulletin]:
    """Bulletins for readers who saw no more than the view shows, newest first.

    Args:
        before: only those with a lower id: ids grow with time.
        most: so many of the newest are looked at.
    """
    statement = (
        f"SELECT {_BULLETIN}, {_HANDED_OUT}, b.viewer FROM (SELECT * FROM bulletins"
        " WHERE bulletin_id < coalesce(:before, 'bul_~') ORDER BY bulletin_id DESC LIMIT :most) b"
        f" WHERE {_shows(view)} ORDER BY b.bulletin_id DESC"
    )
    values = {**view.params, "before": before, "most": most}
    rows = driver(connection).execute(statement, values)
    shown = (
        IssuedBulletin._make(head)
        for *head, viewer in rows
        if covered(view.viewer, head[0], viewer)
    )
    return list(islice(shown, limit))


def are_more_bulletins(connection: sa.Connection, before: str | None, most: int) -> bool:
    """Whether there are more than so many with a lower id than ``before``."""
    statement = "SELECT 1 FROM bulletins WHERE bulletin_id < coalesce(?, 'bul_~') LIMIT 1 OFFSET ?"
    return driver(connection).execute(statement, (before, most)).fetchone() is not None


def bulletin(
    connection: sa.Connection, view: View, bulletin_id: str
) -> tuple[IssuedBulletin, BulletinText] | None:
    """A bulletin for a reader who saw no more than the view shows; None: there is none."""
    statement = (
        f"SELECT {_BULLETIN}, {_HANDED_OUT}, b.viewer, b.memory_ids, b.body FROM bulletins b"
        f" WHERE b.bulletin_id = :bulletin_id AND {_shows(view)}"
    )
    values = {**view.params, "bulletin_id": bulletin_id}
    row = driver(connection).execute(statement, values).fetchone()
    if row is None:
        return None
    *head, viewer, memory_ids, body = row
    if not covered(view.viewer, bulletin_id, viewer):
        return None
    return IssuedBulletin._make(head), BulletinText(tuple(json.loads(memory_ids)), body)


def hidden_matches(
    connection: sa.Connection, match: str, narrowing: Narrowing
) -> dict[str, list[str]]:
    """Active memories that the words and the filters would have let answer, but not the view.

    Args:
        match: an FTS5 expression; of the newest that fulfil it ``MOST_MET`` are looked at.
        narrowing: as of the answer; what was stored after it is not met.

    Returns:
        Ids by reason, ``scope`` and ``clearance``, newest first, ``MOST_HIDDEN`` together at most.
    """
    view = narrowing.view
    anyones = Narrowing(_Anyones(view.viewer), narrowing.request, narrowing.at)
    statement = (
        "SELECT m.memory_id, m.scope, m.scope_id, m.sensitivity, m.agent_id FROM (SELECT rowid AS"
        f" pk FROM memory_fts WHERE memory_fts MATCH :match ORDER BY rowid DESC LIMIT {MOST_MET})"
        f" f CROSS JOIN memories m ON m.pk = f.pk WHERE ({View(view.viewer).where('m')}) IS NOT"
        f" TRUE AND m.created_at <= :met_at AND {anyones.where('m')}"
        f" ORDER BY m.pk DESC LIMIT {MOST_HIDDEN}"
    )
    found: dict[str, list[str]] = {"scope": [], "clearance": []}
    values = anyones.params | {"match": match, "met_at": narrowing.at}
    for memory_id, *facts in driver(connection).execute(statement, values):
        found[_reason(view.viewer, ScopeFacts(*facts))].append(memory_id)
    return found


class _Anyones(View):
    """Whoever looks."""

    def where(self, alias: str) -> str:
        return f"{alias}.status = 'active'"


def _reason(viewer: Viewer, facts: ScopeFacts) -> str:
    told = (Reason.SENSITIVITY_ABOVE_CLEARANCE, Reason.SENSITIVITY_UNKNOWN)
    return "clearance" if visible(viewer, facts).reason in told else "scope"


def _shows(view: View) -> str:
    return (
        "NOT EXISTS (SELECT 1 FROM json_each(b.memory_ids) j"
        " CROSS JOIN memories m ON m.memory_id = j.value"
        f" WHERE ({view.where('m')}) IS NOT TRUE)"
    )
