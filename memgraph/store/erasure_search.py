"""What an erasure reads: the memories that are meant, what was derived from them, all their texts.

Nothing is hidden from it: whoever erases is an operator, as one who makes a copy is.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final, NamedTuple

from memgraph.model.enums import EntityType
from memgraph.model.erasing import Erasable
from memgraph.rules.erasure import free_texts
from memgraph.store.snapshot import Snapshot, driver
from memgraph.store.text_index import saying

_BY_SOURCE = (
    "SELECT pk FROM memories WHERE source_id IN (SELECT source_id FROM memory_sources s {})"
)
_CHOSEN: Final = {
    Erasable.MEMORY: "SELECT pk FROM memories WHERE memory_id = ?1",
    # What was said there, what belongs to it alone, and what was drawn from it.
    Erasable.SESSION: "SELECT pk FROM memories WHERE session_id = ?1 UNION"
    " SELECT pk FROM memories WHERE scope = 'session' AND scope_id = ?1 UNION "
    + _BY_SOURCE.format("WHERE s.conversation_id = ?1"),
    # A folder stands for all that lies below it.
    Erasable.PATH: _BY_SOURCE.format(
        "WHERE s.source_path = ?1 OR substr(s.source_path, 1, length(?1) + 1) = ?1 || '/'"
    ),
    # As sources are listed: a conversation may be a session in which turns were stored.
    Erasable.CONVERSATION: "SELECT pk FROM memories WHERE session_id = ?1 UNION "
    + _BY_SOURCE.format("WHERE s.conversation_id = ?1"),
    Erasable.RUN: _BY_SOURCE.format("WHERE s.workflow_run_id = ?1"),
    Erasable.CONTENT: _BY_SOURCE.format("WHERE s.content_sha256 = ?1"),
}
_LISTED: Final = "(SELECT value FROM json_each(?))"


class Entity(NamedTuple):
    """An entity with all that means it: those merged into it, and how they are written.

    ``dates``: those of the names that are no more than a date.
    """

    entity_id: str
    pks: tuple[int, ...]
    names: tuple[str, ...]
    dates: tuple[str, ...] = ()


class Doomed(NamedTuple):
    """A memory that is to be erased, with its texts."""

    pk: int
    memory_id: str
    content: str
    summary: str
    status: str
    item_id: str | None
    tags: str
    attributes: str
    source_id: str
    source_path: str | None
    locator: str | None
    content_sha256: str | None


_DOOMED = (
    "SELECT m.pk, m.memory_id, m.content, m.summary, m.status, m.item_id, m.tags, m.attributes,"
    " m.source_id, s.source_path, s.locator, s.content_sha256 FROM memories m"
    f" JOIN memory_sources s ON s.source_id = m.source_id WHERE m.pk IN {_LISTED} ORDER BY m.pk"
)
# What the erased ones come from: each column's values are found once, whatever number they are.
_ERASED = (
    " NOT IN (SELECT {0} FROM memories g JOIN memory_sources s ON s.source_id = g.source_id"
    f" WHERE g.pk IN {_LISTED} AND {{0}} IS NOT NULL)"
)
_ORIGINS: Final = (
    ("source_id", "s.source_id"),
    ("source_path", "s.source_path"),
    ("conversation_id", "s.conversation_id"),
    ("conversation_id", "g.session_id"),
    ("workflow_run_id", "s.workflow_run_id"),
    ("content_sha256", "s.content_sha256"),
)
# Whether another source says it: one that shares neither file nor talk nor run with an erased one.
_ELSEWHERE = (
    f"SELECT m.pk FROM memories m WHERE m.pk IN {_LISTED} AND EXISTS (SELECT 1"
    " FROM memory_supports p JOIN memory_sources o ON o.source_id = p.source_id"
    " WHERE p.memory_id = m.memory_id AND p.ended_at IS NULL AND "
    + " AND ".join(f"coalesce(o.{one}{_ERASED.format(other)}, 1)" for one, other in _ORIGINS)
    + ")"
)
_DERIVED = (
    "SELECT DISTINCT m.pk, m.memory_id FROM memory_derivations d"
    " JOIN memories m ON m.memory_id = d.memory_id"
    f" WHERE d.derived_from_id IN (SELECT memory_id FROM memories WHERE pk IN {_LISTED})"
    " AND m.content <> '' ORDER BY m.pk"
)
_GROUNDS = (
    "SELECT g.pk FROM memory_derivations d JOIN memories g ON g.memory_id = d.derived_from_id"
    " WHERE d.memory_id = ? AND g.content <> ''"
)
# What says a text or a name by right, because it stays.
_STANDING: Final = (
    ("SELECT memory_id, content, summary, item_id FROM memories WHERE pk NOT IN", "memories"),
    ("SELECT '', source_role FROM memories WHERE pk NOT IN", "memories"),
    ("SELECT '', canonical_name FROM entities WHERE pk NOT IN", "entities"),
    ("SELECT '', alias FROM entity_aliases WHERE entity_pk NOT IN", "entities"),
)
_IDS: Final = f"(SELECT memory_id FROM memories WHERE pk IN {_LISTED})"
_JOINED: Final = f"from_memory_id IN {_IDS} OR to_memory_id IN {_IDS}"
_JOINED_EDGES: Final = f"(SELECT edge_id FROM memory_edges WHERE {_JOINED})"
# The words of whoever changed an erased memory or decided about it; each takes the keys so often.
_WRITTEN_ABOUT: Final = (
    f"SELECT reason FROM memory_edges WHERE {_JOINED}",
    f"SELECT json_extract(resolution, '$.reason') FROM memory_edges WHERE {_JOINED}",
    "SELECT json_extract(resolution, '$.reason') FROM memory_edge_revisions"
    f" WHERE edge_id IN {_JOINED_EDGES}",
    f"SELECT reason FROM memory_status WHERE memory_id IN {_IDS}",
)
_ENTRIES_ABOUT: Final = (
    f"SELECT details FROM audit_log WHERE subject IN {_IDS}",
    "SELECT details FROM audit_log WHERE action IN ('relate', 'resolve', 'reopen', 'dismiss')"
    f" AND json_extract(details, '$.edge_id') IN {_JOINED_EDGES}",
)
# The same of what stays: who wrote the same words there did not mean what is erased.
_WRITTEN_ELSEWHERE: Final = (
    f"SELECT reason FROM memory_edges WHERE NOT ({_JOINED})",
    f"SELECT json_extract(resolution, '$.reason') FROM memory_edges WHERE NOT ({_JOINED})",
    f"SELECT reason FROM memory_status WHERE memory_id NOT IN {_IDS} AND memory_id NOT IN"
    f" (SELECT from_memory_id FROM memory_edges WHERE {_JOINED} UNION"
    f" SELECT to_memory_id FROM memory_edges WHERE {_JOINED})",
)
# Names of places and of who did something: ids, which stay.
_PLACES = (
    "SELECT source_path, conversation_id, workflow_run_id, step_id, locator, captured_by"
    " FROM memory_sources",
    "SELECT DISTINCT agent_id, session_id, scope_id FROM memories",
    "SELECT DISTINCT actor FROM audit_log",
)


def chosen(snapshot: Snapshot, kind: Erasable, value: str) -> list[int]:
    """Keys of the memories that are named so, but those that are erased already."""
    found = [pk for (pk,) in driver(snapshot).execute(_CHOSEN[kind], (value,))]
    return standing_among(snapshot, found)


def standing_among(snapshot: Snapshot, pks: Sequence[int]) -> list[int]:
    """Those that have a text."""
    listed = driver(snapshot).execute(
        f"SELECT pk FROM memories WHERE pk IN {_LISTED} AND content <> '' ORDER BY pk",
        (json.dumps(list(pks)),),
    )
    return [pk for (pk,) in listed]


def entity(snapshot: Snapshot, named: str) -> list[Entity]:
    """Entities that have this id or, in any case, this name; each with whatever means it."""
    execute = driver(snapshot).execute
    ids = execute(
        "SELECT DISTINCT coalesce(e.merged_into, e.entity_id) FROM entities e"
        " LEFT JOIN entity_aliases a ON a.entity_pk = e.pk"
        " WHERE e.entity_id = ?1 OR e.canonical_name = ?1 COLLATE NOCASE"
        " OR a.alias = ?1 COLLATE NOCASE ORDER BY 1",
        (named,),
    )
    return [_entity(snapshot, entity_id) for (entity_id,) in ids.fetchall()]


def _entity(snapshot: Snapshot, entity_id: str) -> Entity:
    execute = driver(snapshot).execute
    rows = execute(
        "SELECT pk, canonical_name, type FROM entities WHERE entity_id = ?1 OR merged_into = ?1",
        (entity_id,),
    ).fetchall()
    pks = tuple(pk for pk, *_ in rows)
    aliases = execute(
        f"SELECT alias FROM entity_aliases WHERE entity_pk IN {_LISTED}", (json.dumps(pks),)
    )
    names = sorted({name for _, name, _ in rows} | {alias for (alias,) in aliases})
    dated = all(kind == EntityType.DATE for *_, kind in rows)
    return Entity(entity_id, pks, tuple(names), tuple(names) if dated else ())


def naming(snapshot: Snapshot, found: Entity) -> list[int]:
    """Memories that are linked to an entity, or say one of its names."""
    execute = driver(snapshot).execute
    linked = execute(
        f"SELECT memory_pk FROM memory_entities WHERE entity_pk IN {_LISTED}",
        (json.dumps(found.pks),),
    )
    pks = {pk for (pk,) in linked}
    for name in found.names:
        if any(each.isalnum() for each in name):
            said = execute(
                "SELECT rowid FROM memory_fts WHERE memory_fts MATCH ?", (saying([name]),)
            )
            pks |= {pk for (pk,) in said}
    return standing_among(snapshot, sorted(pks))


def named_only_by(snapshot: Snapshot, pks: Sequence[int]) -> Entity:
    """The entities that nothing but these memories names, and how they are written, as one."""
    listed = json.dumps(list(pks))
    rows = (
        driver(snapshot)
        .execute(
            "SELECT e.pk FROM entities e WHERE EXISTS (SELECT 1 FROM memory_entities l"
            f" WHERE l.entity_pk = e.pk AND l.memory_pk IN {_LISTED}) AND NOT EXISTS"
            " (SELECT 1 FROM memory_entities l WHERE l.entity_pk = e.pk"
            f" AND l.memory_pk NOT IN {_LISTED})",
            (listed, listed),
        )
        .fetchall()
    )
    found = [_with_merged(snapshot, pk) for (pk,) in rows]
    return Entity(
        "",
        tuple(pk for each in found for pk in each.pks),
        tuple(name for each in found for name in each.names),
        tuple(name for each in found for name in each.dates),
    )


def _with_merged(snapshot: Snapshot, pk: int) -> Entity:
    [(entity_id,)] = driver(snapshot).execute("SELECT entity_id FROM entities WHERE pk = ?", (pk,))
    return _entity(snapshot, entity_id)


def derived_from(snapshot: Snapshot, pks: Sequence[int]) -> list[tuple[int, str, set[int]]]:
    """Standing memories derived from any of these: key, id, keys of its grounds that stand."""
    execute = driver(snapshot).execute
    found = execute(_DERIVED, (json.dumps(list(pks)),)).fetchall()
    return [
        (pk, memory_id, {ground for (ground,) in execute(_GROUNDS, (memory_id,))})
        for pk, memory_id in found
    ]


def said_elsewhere(snapshot: Snapshot, pks: Sequence[int], erased: Sequence[int]) -> set[int]:
    """Those of the first that a source says, too, which has nothing to do with the erased ones."""
    if not pks:
        return set()
    given = json.dumps(list(pks)), *[json.dumps(list(erased))] * len(_ORIGINS)
    return {pk for (pk,) in driver(snapshot).execute(_ELSEWHERE, given)}


def doomed(snapshot: Snapshot, pks: Sequence[int]) -> list[Doomed]:
    """The memories with these keys and all that they say."""
    found = driver(snapshot).execute(_DOOMED, (json.dumps(list(pks)),))
    return [Doomed._make(row) for row in found]


def standing_texts(
    snapshot: Snapshot, pks: Collection[int], entities: Collection[int]
) -> Iterator[tuple[str, str]]:
    """(memory id or nothing, text) of all that is not erased and may say the same by right.

    Args:
        pks, entities: keys of the memories and the entities that are to be erased.
    """
    without = {"memories": json.dumps(sorted(pks)), "entities": json.dumps(sorted(entities))}
    for statement, table in _STANDING:
        cursor = driver(snapshot).execute(f"{statement} {_LISTED}", (without[table],))
        for memory_id, *texts in cursor:
            yield from ((memory_id, text) for text in texts if text)
    for statement in _PLACES:
        for row in driver(snapshot).execute(statement):
            yield from (("", text) for text in row if text)


def entity_ids(snapshot: Snapshot, pks: Sequence[int]) -> list[str]:
    """Return the ids of entities, in order."""
    found = driver(snapshot).execute(
        f"SELECT entity_id FROM entities WHERE pk IN {_LISTED} ORDER BY 1", (json.dumps(list(pks)),)
    )
    return [entity_id for (entity_id,) in found]


def written_about(snapshot: Snapshot, pks: Sequence[int], entities: Sequence[str]) -> list[str]:
    """Return what was written about memories and entities: the free texts of edges, decisions,
    statuses and entries of the journal, each once, in order.

    Left out is what stands, as a whole, beside memories that have nothing to do with them.

    Args:
        pks: keys of the memories.
        entities: ids of the entities.
    """
    listed = json.dumps(list(pks))

    def run(statement: str) -> Any:
        return driver(snapshot).execute(statement, (listed,) * statement.count("json_each(?)"))

    found = {text for statement in _WRITTEN_ABOUT for (text,) in run(statement) if text}
    entries = [row for statement in _ENTRIES_ABOUT for row in run(statement)]
    entries += driver(snapshot).execute(
        f"SELECT details FROM audit_log WHERE subject IN {_LISTED}", (json.dumps(list(entities)),)
    )
    for (details,) in entries:
        found.update(free_texts(details))
    for statement in _WRITTEN_ELSEWHERE:
        found.difference_update(text for (text,) in run(statement))
    return sorted(found)


def vectors_of(snapshot: Snapshot, pks: Sequence[int]) -> list[bytes]:
    """The canonical vectors of these memories."""
    found = driver(snapshot).execute(
        f"SELECT vector FROM memory_embeddings WHERE memory_pk IN {_LISTED} AND vector IS NOT NULL",
        (json.dumps(list(pks)),),
    )
    return [bytes(vector) for (vector,) in found]


def source_paths(snapshot: Snapshot, sha256: str) -> list[str]:
    """Under which paths a content lies."""
    found = driver(snapshot).execute(
        "SELECT DISTINCT source_path FROM memory_sources"
        " WHERE content_sha256 = ? AND source_path IS NOT NULL ORDER BY 1",
        (sha256,),
    )
    return [path for (path,) in found]


def lines_kept(snapshot: Snapshot, path: str, pks: Sequence[int]) -> list[str]:
    """Where in a file the memories lie that stay: locators."""
    found: Any = driver(snapshot).execute(
        "SELECT DISTINCT s.locator FROM memories m JOIN memory_sources s"
        " ON s.source_id = m.source_id WHERE s.source_path = ? AND s.locator IS NOT NULL"
        f" AND m.content <> '' AND m.pk NOT IN {_LISTED}",
        (path, json.dumps(list(pks))),
    )
    return [locator for (locator,) in found]


def erased_before(snapshot: Snapshot, kind: Erasable, value: str) -> tuple[str, ...] | None:
    """The erasures that took the memories that are named so; None: there never were any."""
    pks = [pk for (pk,) in driver(snapshot).execute(_CHOSEN[kind], (value,))]
    if not pks:
        return None
    found = driver(snapshot).execute(
        "SELECT json_extract(details, '$.erasure_id'), max(seq) FROM audit_log"
        " WHERE action = 'erase' AND subject IN"
        f" (SELECT memory_id FROM memories WHERE pk IN {_LISTED}) GROUP BY 1 ORDER BY 2 DESC",
        (json.dumps(pks),),
    )
    return tuple(erasure_id for erasure_id, _ in found)


def beginnings(snapshot: Snapshot, ids: Sequence[str], characters: int) -> dict[str, str]:
    """Of memories how their texts begin, in the order of their ids."""
    found = driver(snapshot).execute(
        f"SELECT memory_id, substr(content, 1, ?) FROM memories WHERE memory_id IN {_LISTED}"
        " ORDER BY memory_id",
        (characters, json.dumps(list(ids))),
    )
    return dict(found.fetchall())


def entity_names(snapshot: Snapshot) -> list[str]:
    """Every name of an entity, each once, in order."""
    found = driver(snapshot).execute(
        "SELECT canonical_name FROM entities UNION SELECT alias FROM entity_aliases ORDER BY 1"
    )
    return [name for (name,) in found]
