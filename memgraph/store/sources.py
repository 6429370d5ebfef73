"""What came from a source, and what stands on that. SQLite's.

A source is known by one name: a path is a file, or a folder with all below it; a conversation is
that of a source, or the session in which a turn was said. Every function works on a snapshot
or transaction that the caller holds.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from memgraph.model.enums import SourceName
from memgraph.rules.trust import Captured, Named
from memgraph.store.snapshot import Snapshot, driver
from memgraph.store.trust import CAPTURED, captured_from_row
from memgraph.store.visibility import View

# "/" is followed by "0": below a folder is what lies between the two.
BELOW: Final = (
    "(s.source_path = :name OR s.source_path >= rtrim(:name, '/') || '/'"
    " AND s.source_path < rtrim(:name, '/') || '0')"
)
_NAMED: Final = {
    SourceName.PATH: BELOW,
    SourceName.CONVERSATION: "s.conversation_id = :name",
    SourceName.RUN: "s.workflow_run_id = :name",
    SourceName.CONTENT: "s.content_sha256 = :name",
}

# Of a journal entry: it is of the act by which this source was taken back.
_TOLD_WITH: Final = (
    "json_extract(a.details, '$.source') = :kind AND json_extract(a.details, '$.name') = :name"
)
_SEVERAL: Final = 100
_OF_SOURCES: Final = (
    "SELECT DISTINCT {column} AS name FROM memory_sources"
    " WHERE {column} IS NOT NULL AND {column} > :after"
)
_NAMES: Final = {
    SourceName.PATH: _OF_SOURCES.format(column="source_path"),
    SourceName.CONVERSATION: (
        _OF_SOURCES.format(column="conversation_id")
        + " UNION SELECT session_id FROM sessions WHERE session_id > :after"
    ),
    SourceName.RUN: _OF_SOURCES.format(column="workflow_run_id"),
    SourceName.CONTENT: _OF_SOURCES.format(column="content_sha256"),
}


_SENT: Final = (
    "(m.source_role = :sender COLLATE NOCASE OR EXISTS (SELECT 1 FROM audit_log a"
    " WHERE a.subject = m.memory_id AND a.action = 'remember' AND a.actor = :sender))"
)
_BOTH_WAYS: Final = (
    ("from_memory_id", "to_memory_id"),
    ("to_memory_id", "from_memory_id"),
)
_WON: Final = "e.edge_type = 'Contradicts' AND json_extract(e.resolution, '$.winner_id') = w.id"
_DOWN: Final = tuple(
    f"went w CROSS JOIN memory_edges e ON e.{near} = w.id"
    f" CROSS JOIN memories m ON m.memory_id = e.{far} WHERE {condition}"
    for near, far, condition in (
        ("from_memory_id", "to_memory_id", "e.edge_type = 'Updates' AND e.partial = 0"),
        ("from_memory_id", "to_memory_id", _WON),
        ("to_memory_id", "from_memory_id", _WON),
    )
)
# Some memories, and those that they had replaced or won against and that were retracted before
# them: what was below one of those is held by nobody else.
_WENT: Final = "WITH RECURSIVE went (id) AS (SELECT value FROM json_each(:ids) {})".format(
    " ".join(f"UNION SELECT m.memory_id FROM {each} AND m.status = 'retracted'" for each in _DOWN)
)
_REPLACED: Final = " UNION ".join(
    f"SELECT m.memory_id AS old, w.id AS new FROM {each} AND m.status = 'superseded'"
    for each in _DOWN
)


def _of_sources(kind: SourceName) -> str:
    return (
        "SELECT o.pk FROM memory_sources s JOIN memories o ON o.source_id = s.source_id"
        f" WHERE {_NAMED[kind]}"
    )


def keys_of(kind: SourceName) -> str:
    """A query for the keys of all memories of a source; it binds ``name``."""
    found = _of_sources(kind)
    if kind is SourceName.CONVERSATION:
        found += " UNION SELECT o.pk FROM memories o WHERE o.session_id = :name"
    return found


def bound(snapshot: Snapshot, named: Named, most: int) -> int:
    """No fewer than how many memories a source has, counted up to ``most``; reads indexes alone."""
    found = f"SELECT 1 FROM ({_of_sources(named.kind)}"
    if named.kind is SourceName.CONVERSATION:
        # Some are in both: no less than there are is enough.
        found += " UNION ALL SELECT o.pk FROM memories o WHERE o.session_id = :name"
    values = {"name": named.name, "most": most}
    statement = f"SELECT count(*) FROM ({found}) LIMIT :most)"
    [(number,)] = driver(snapshot).execute(statement, values)
    return int(number)


def count(snapshot: Snapshot, named: Named, most: int) -> int:
    """How many memories of a source are not retracted, counted up to ``most``."""
    statement = (
        f"SELECT count(*) FROM (SELECT 1 FROM ({keys_of(named.kind)}) f"
        " CROSS JOIN memories m ON m.pk = f.pk WHERE m.status <> 'retracted' LIMIT :most)"
    )
    values = {"name": named.name, "most": most}
    [(found,)] = driver(snapshot).execute(statement, values)
    return int(found)


def given_by(snapshot: Snapshot, named: Named, view: View) -> list[str]:
    """The visible memories of a source that are not retracted, the oldest first."""
    found = driver(snapshot).execute(
        f"SELECT m.memory_id FROM ({keys_of(named.kind)}) f"
        f" CROSS JOIN memories m ON m.pk = f.pk"
        f" WHERE m.status <> 'retracted' AND {view.text.where('m')} ORDER BY m.pk",
        view.params | {"name": named.name},
    )
    return [one for (one,) in found]


def derived_from(
    snapshot: Snapshot, memory_ids: Collection[str], view: View
) -> dict[str, list[str]]:
    """Visible memories that are not retracted and were derived from one of these, by id.

    Each with all of its grounds that are not retracted, whoever sees those. A ground that came
    along when a memory was said again is none that it was derived from.
    """
    found = (
        driver(snapshot)
        .execute(
            "SELECT DISTINCT m.memory_id FROM json_each(:ids) f"
            " CROSS JOIN memory_derivations d ON d.derived_from_id = f.value"
            " AND d.added_at IS NULL CROSS JOIN memories m ON m.memory_id = d.memory_id"
            f" WHERE m.status <> 'retracted' AND {view.text.where('m')} ORDER BY m.pk",
            view.params | {"ids": json.dumps(list(memory_ids))},
        )
        .fetchall()
    )
    grounds: dict[str, list[str]] = {one: [] for (one,) in found}
    for one, ground in driver(snapshot).execute(
        "SELECT d.memory_id, d.derived_from_id FROM json_each(?) f"
        " CROSS JOIN memory_derivations d ON d.memory_id = f.value"
        " CROSS JOIN memories g ON g.memory_id = d.derived_from_id"
        " WHERE g.status <> 'retracted' ORDER BY d.memory_id, d.derived_from_id",
        (json.dumps(list(grounds)),),
    ):
        grounds[one].append(ground)
    return grounds


def supported(snapshot: Snapshot, memory_ids: Collection[str]) -> set[str]:
    """Those of these memories that further sources say, too."""
    found = driver(snapshot).execute(
        "SELECT DISTINCT p.memory_id FROM json_each(?) f"
        " CROSS JOIN memory_supports p ON p.memory_id = f.value AND p.ended_at IS NULL",
        (json.dumps(list(memory_ids)),),
    )
    return {one for (one,) in found}


def said_by(snapshot: Snapshot, named: Named, view: View) -> dict[str, list[str]]:
    """Visible memories of which the source is a further one, with its rows' ids, oldest first."""
    found: dict[str, list[str]] = {}
    for memory_id, source_id in driver(snapshot).execute(
        "SELECT m.memory_id, p.source_id FROM memory_sources s"
        " JOIN memory_supports p ON p.source_id = s.source_id AND p.ended_at IS NULL"
        f" JOIN memories m ON m.memory_id = p.memory_id WHERE {_NAMED[named.kind]}"
        f" AND m.status <> 'retracted' AND {view.text.where('m')} ORDER BY m.pk, p.source_id",
        view.params | {"name": named.name},
    ):
        found.setdefault(memory_id, []).append(source_id)
    return found


class Totals(NamedTuple):
    """How many visible memories a source gave, and when (milliseconds)."""

    memories: int
    active: int
    retracted: int
    first_at: int
    last_at: int


def names(
    snapshot: Snapshot,
    kind: SourceName,
    view: View,
    *,
    after: str,
    limit: int,
    sender: str | None = None,
) -> list[str]:
    """Return names of sources of a kind of which something is visible, in order, those after one.

    Args:
        sender: only those of which something visible was said by somebody of this name, in any
            case of its letters, or stored by this actor.
    """
    sent = "1" if sender is None else _SENT
    its = keys_of(kind).replace(":name", "n.name")
    found = driver(snapshot).execute(
        f"SELECT n.name FROM ({_NAMES[kind]}) n WHERE EXISTS (SELECT 1 FROM ({its}) f"
        f" CROSS JOIN memories m ON m.pk = f.pk WHERE {view.text.where('m')} AND {sent})"
        " ORDER BY n.name LIMIT :limit",
        view.params | {"after": after, "limit": limit, "sender": sender},
    )
    return [one for (one,) in found]


def is_seen(snapshot: Snapshot, named: Named, view: View) -> bool:
    """Whether a memory that came from a source is visible."""
    [(found,)] = driver(snapshot).execute(
        f"SELECT EXISTS (SELECT 1 FROM ({keys_of(named.kind)}) f"
        f" CROSS JOIN memories m ON m.pk = f.pk WHERE {view.text.where('m')})",
        view.params | {"name": named.name},
    )
    return bool(found)


def totals(snapshot: Snapshot, named: Named, view: View) -> Totals | None:
    """None: nothing of it is visible."""
    [row] = driver(snapshot).execute(
        "SELECT count(*), sum(m.status = 'active'), sum(m.status = 'retracted'),"
        f" min(m.created_at), max(m.created_at) FROM ({keys_of(named.kind)}) f"
        f" CROSS JOIN memories m ON m.pk = f.pk WHERE {view.text.where('m')}",
        view.params | {"name": named.name},
    )
    return Totals(*row) if row[0] else None


def captured(snapshot: Snapshot, named: Named, view: View) -> list[Captured]:
    """What tells how far visible memories of a source are trusted, each once, a few at most."""
    found = driver(snapshot).execute(
        f"SELECT DISTINCT {CAPTURED}, m.session_id FROM ({keys_of(named.kind)}) f"
        " CROSS JOIN memories m ON m.pk = f.pk"
        " JOIN memory_sources s ON s.source_id = m.source_id"
        f" WHERE {view.text.where('m')} LIMIT {_SEVERAL}",
        view.params | {"name": named.name},
    )
    return [captured_from_row(row) for row in found]


def summaries(snapshot: Snapshot, memory_ids: Collection[str]) -> dict[str, str]:
    """The summary of each of some memories."""
    found = driver(snapshot).execute(
        "SELECT m.memory_id, m.summary FROM json_each(?) f"
        " CROSS JOIN memories m ON m.memory_id = f.value",
        (json.dumps(list(memory_ids)),),
    )
    return dict(found.fetchall())


def replaced_by(
    snapshot: Snapshot, memory_ids: Collection[str], view: View
) -> list[tuple[str, str]]:
    """Pairs of (what is superseded, which of these replaced it or won against it), if visible.

    As one of these counts what is retracted and was replaced, or lost, by one of them.
    """
    found = driver(snapshot).execute(
        f"{_WENT} SELECT r.old, r.new FROM ({_REPLACED}) r"
        " CROSS JOIN memories m ON m.memory_id = r.old"
        " CROSS JOIN memories n ON n.memory_id = r.new"
        f" WHERE {view.text.where('m')} AND {view.text.where('n')} ORDER BY m.pk, r.new",
        view.params | {"ids": json.dumps(list(memory_ids))},
    )
    return [(old, new) for old, new in found]


class Joined(NamedTuple):
    """A contradiction."""

    edge_id: str
    from_id: str
    to_id: str


def decided_for(snapshot: Snapshot, replaced: Mapping[str, Collection[str]]) -> list[Joined]:
    """The contradictions that some memories lost to those that are named with each, by age."""
    legs = " UNION ".join(
        "SELECT e.created_at, e.edge_id, e.from_memory_id, e.to_memory_id FROM json_each(:pairs) p"
        f" CROSS JOIN memory_edges e ON e.{lost} = p.value ->> 0 AND e.{won} = p.value ->> 1"
        " AND e.edge_type = 'Contradicts' AND e.resolution ->> '$.loser_id' = p.value ->> 0"
        for lost, won in _BOTH_WAYS
    )
    pairs = [(old, new) for old, by in replaced.items() for new in by]
    found = driver(snapshot).execute(f"{legs} ORDER BY 1, 2", {"pairs": json.dumps(pairs)})
    return [Joined(*row) for _, *row in found]


def open_since(snapshot: Snapshot, won: Collection[str], view: View) -> list[Joined]:
    """Open contradictions that were last decided for one of some memories, by age.

    Told are those whose other side is visible, and active or one of these.
    """
    legs = " UNION ".join(
        "SELECT e.created_at, e.edge_id, e.from_memory_id, e.to_memory_id FROM json_each(:ids) f"
        f" CROSS JOIN memory_edges e ON e.{near} = f.value AND e.edge_type = 'Contradicts'"
        f" AND e.resolution IS NULL CROSS JOIN memories m ON m.memory_id = e.{far}"
        f" WHERE {view.text.where('m')}"
        " AND (m.status = 'active' OR m.memory_id IN (SELECT value FROM json_each(:ids)))"
        " AND (SELECT r.resolution ->> '$.winner_id' FROM memory_edge_revisions r"
        " WHERE r.edge_id = e.edge_id ORDER BY r.until DESC, r.revision_id DESC LIMIT 1) = f.value"
        for near, far in _BOTH_WAYS
    )
    values = view.params | {"ids": json.dumps(list(won))}
    found = driver(snapshot).execute(f"{legs} ORDER BY 1, 2", values)
    return [Joined(*row) for _, *row in found]


class Lost(NamedTuple):
    """A memory, the rows of a source that count for it no longer, its confidence before and after.

    ``own``: it is where the memory came from.
    """

    memory_id: str
    source_ids: tuple[str, ...]
    before: float
    after: float
    own: bool


def taken_back(snapshot: Snapshot, named: Named, view: View) -> list[str]:
    """Visible memories that are retracted because this source was taken back, by key.

    What was retracted for another reason since is none, nor is what was erased.
    """
    found = driver(snapshot).execute(
        "SELECT DISTINCT m.memory_id FROM audit_log a"
        " CROSS JOIN memories m ON m.memory_id = a.subject"
        f" WHERE a.action = 'retract' AND {_TOLD_WITH} AND m.status = 'retracted'"
        " AND m.content <> '' AND NOT EXISTS (SELECT 1 FROM audit_log b WHERE b.subject = a.subject"
        f" AND b.seq > a.seq AND b.action IN ('retract', 'restore')) AND {view.text.where('m')}"
        " ORDER BY m.pk",
        view.params | {"kind": named.kind.value, "name": named.name},
    )
    return [one for (one,) in found]


def taken_with_others(snapshot: Snapshot, memory_ids: Collection[str]) -> dict[str, Named]:
    """Those of some memories that are retracted because a source was taken back, with that.

    What was retracted for another reason since is none, nor is what was erased.
    """
    found = driver(snapshot).execute(
        "SELECT m.memory_id, a.details ->> '$.source', a.details ->> '$.name'"
        " FROM json_each(?) f CROSS JOIN memories m ON m.memory_id = f.value"
        " AND m.status = 'retracted' AND m.content <> '' CROSS JOIN audit_log a ON a.seq = ("
        "SELECT max(b.seq) FROM audit_log b WHERE b.subject = m.memory_id"
        " AND b.action IN ('retract', 'restore'))"
        " WHERE a.action = 'retract' AND a.details ->> '$.source' IS NOT NULL ORDER BY m.pk",
        (json.dumps(list(memory_ids)),),
    )
    return {one: Named(SourceName(kind), name) for one, kind, name in found}


def lost_with(snapshot: Snapshot, named: Named, view: View) -> list[Lost]:
    """What visible memories lost with a source and have not got back, the last loss first."""
    found = driver(snapshot).execute(
        "SELECT m.memory_id, a.details, json_group_array(p.source_id),"
        " max(p.source_id = m.source_id) FROM audit_log a"
        " CROSS JOIN memories m ON m.memory_id = a.subject"
        " CROSS JOIN json_each(a.details, '$.source_ids') f"
        " CROSS JOIN memory_supports p ON p.memory_id = m.memory_id AND p.source_id = f.value"
        f" WHERE a.action = 'weaken' AND {_TOLD_WITH} AND p.ended_at IS NOT NULL"
        " AND NOT EXISTS (SELECT 1 FROM audit_log b, json_each(b.details, '$.source_ids') g"
        " WHERE b.subject = a.subject AND b.seq > a.seq AND b.action = 'weaken'"
        f" AND g.value = f.value) AND {view.text.where('m')} GROUP BY a.seq ORDER BY a.seq DESC",
        view.params | {"kind": named.kind.value, "name": named.name},
    )
    losses = []
    for memory_id, details, rows, own in found:
        told = json.loads(details)["confidence"]
        source_ids = tuple(json.loads(rows))
        losses.append(Lost(memory_id, source_ids, told["before"], told["after"], bool(own)))
    return losses


# Memories by the workflow run that they come from.


def of_run(snapshot: Snapshot, workflow_run_id: str, view: View, *, limit: int) -> list[str]:
    """Ids of what a run left in the memory, the newest first, as far as the reader may see it.

    Sources are not indexed by their run: it is read off all of them.
    """
    statement = (
        "SELECT m.memory_id FROM memory_sources s JOIN memories m ON m.source_id = s.source_id"
        f" WHERE s.workflow_run_id = :run AND {view.text.where('m')}"
        " ORDER BY m.created_at DESC, m.memory_id DESC LIMIT :limit"
    )
    values = view.params | {"run": workflow_run_id, "limit": limit}
    return [row[0] for row in driver(snapshot).execute(statement, values)]
