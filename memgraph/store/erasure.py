"""Find the memories that an erasure covers and every row that repeats their texts, and change them.

No memory is hidden from an erasure, because only operators erase. Rows that something refers to
stay, without their texts. Every text column of every table is searched, unless it is one of
``_STANDING`` or of a key, so that a new table is searched, too.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from enum import Enum, auto
from functools import cache
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from memgraph.errors import DatabaseCorrupt
from memgraph.model.enums import EntityType, MemoryStatus, Scope, SourceName
from memgraph.model.erasure import ErasureTargetKind, UndoneErasure
from memgraph.rules.erasure import (
    DIGESTS,
    ERASED,
    FREE_TEXT,
    MARK,
    NOTES,
    redacted_details,
    redacted_words,
    scrubbed,
    without_note,
)
from memgraph.rules.search_terms import SearchTerms
from memgraph.store import embeddings, entities, metadata, postings, sources, tables, text_index
from memgraph.store.memories import set_statuses
from memgraph.store.snapshot import JournalledTransaction, Snapshot, Transaction
from memgraph.store.statements import Column, among, each, greatest, member, prepared, value

ACTION: Final = "erase"
"""The action of the entries of an erasure: one for each memory, and one for each transaction."""
REPORT: Final = "erasure"
"""The action of the entry with the report."""
RESTORE: Final = "restore"
"""The action of the entry of a restore, which lists the erasures that it undid."""
UNDONE: Final = "erasure.undone"
UNKNOWN: Final = "erasure.unknown"
"""The codes of restores that undid erasures; ``UNKNOWN``: the replaced database was unreadable."""
ACCEPT: Final = "accept_journal"
"""The action of the entry by which an operator accepts the journal as it is."""
UNFINISHED_KEY: Final = "erasing"
"""The row of an erasure that is not finished."""
ERASED_KEY: Final = "erased_through"
"""The head of the journal at the last erasure. Texts built from an earlier head are invalid."""
_PAGE: Final = 2_000


# -- the memories and entities that go -------------------------------------------------------------


class MemoryToErase(NamedTuple):
    """A memory to erase, with its texts and its source."""

    pk: int
    memory_id: str
    content: str
    summary: str
    item_id: str | None
    tags: str
    attributes: str
    source_path: str | None
    locator: str | None


class EntityForms(NamedTuple):
    """Entities, with those merged into them, and their names, except those of mere dates."""

    pks: frozenset[int]
    ids: frozenset[str]
    names: frozenset[str]


def named(snapshot: Snapshot, kind: ErasureTargetKind, name: str) -> dict[str, bool]:
    """Return the named memories; True: it is erased already."""
    m = tables.memories
    if kind is ErasureTargetKind.MEMORY:
        is_named = m.c.memory_id == value("name")
    elif kind is ErasureTargetKind.SESSION:
        is_named = m.c.pk.in_(sources.keys_of(SourceName.CONVERSATION))
        # Also memories in the session's own scope.
        is_named |= (m.c.scope == Scope.SESSION) & (m.c.scope_id == value("name"))
    else:
        is_named = m.c.pk.in_(sources.keys_of(SourceName(kind.value)))
    query = sa.select(m.c.memory_id, m.c.content == "").where(is_named)
    return {memory_id: bool(erased) for memory_id, erased in snapshot.rows(query, name=name)}


def saying(snapshot: Snapshot, terms: SearchTerms) -> set[str]:
    """Return the memories that contain one of the terms in their texts or as their speaker."""
    m, ids = tables.memories, set[str]()
    texts = sa.select(m.c.memory_id, m.c.content, m.c.summary, m.c.source_role)
    for page in snapshot.pages(texts.where(m.c.content != ""), _PAGE):
        joined = ["\n\n".join(text for text in row[1:] if text) for row in page]
        ids.update(page[place][0] for place, _ in terms.among(joined))
    return ids


def linked(snapshot: Snapshot, entity_pks: Collection[int]) -> set[str]:
    """Return the memories that are linked to entities, without erased ones."""
    m, link = tables.memories, tables.links
    naming = sa.select(link.c.memory_pk).where(among(link.c.entity_pk, "pks"))
    query = sa.select(m.c.memory_id).where(m.c.pk.in_(naming), m.c.content != "")
    return set(snapshot.column(query, pks=sorted(entity_pks)))


def derived_from(snapshot: Snapshot, memory_ids: Collection[str]) -> dict[str, set[str]]:
    """Return the memories derived from some, each with all of its evidence; no erased ones."""
    d, o = tables.derivations.alias("d"), tables.derivations.alias("o")
    m, g = tables.memories.alias("m"), tables.memories.alias("g")
    joined = d.join(m, m.c.memory_id == d.c.memory_id).join(o, o.c.memory_id == m.c.memory_id)
    query = (
        sa.select(m.c.memory_id, g.c.memory_id)
        .select_from(joined.join(g, g.c.memory_id == o.c.derived_from_id))
        .where(among(d.c.derived_from_id, "ids"), m.c.content != "", g.c.content != "")
    )
    evidence: dict[str, set[str]] = {}
    for memory_id, ground in snapshot.rows(query, ids=sorted(memory_ids)):
        evidence.setdefault(memory_id, set()).add(ground)
    return evidence


def memories_to_erase(snapshot: Snapshot, memory_ids: Collection[str]) -> list[MemoryToErase]:
    """Return memories with all their texts, in the order of storing."""
    m, s = tables.memories.alias("m"), tables.sources.alias("s")
    columns = (m.c[name] if name in m.c else s.c[name] for name in MemoryToErase._fields)
    query = sa.select(*columns).select_from(m.join(s, s.c.source_id == m.c.source_id))
    query = query.where(among(m.c.memory_id, "ids")).order_by(m.c.pk)
    return [MemoryToErase(*row) for row in snapshot.rows(query, ids=sorted(memory_ids))]


def entity_forms(snapshot: Snapshot, entity_ids: Collection[str]) -> EntityForms:
    """Return entities with all their names."""
    e, a = tables.entities, tables.aliases
    query = sa.select(e.c.pk, e.c.entity_id, e.c.type, e.c.canonical_name, a.c.alias)
    query = query.select_from(e.outerjoin(a, a.c.entity_pk == e.c.pk))
    query = query.where(among(e.c.entity_id, "ids") | among(e.c.merged_into, "ids"))
    rows = snapshot.rows(query, ids=sorted(entity_ids))
    named = [names for _, _, kind, *names in rows if kind != EntityType.DATE]
    return EntityForms(
        frozenset(pk for pk, *_ in rows),
        frozenset(entity_id for _, entity_id, *_ in rows),
        frozenset(name for names in named for name in names if name),
    )


def entities_called(snapshot: Snapshot, terms: SearchTerms) -> set[str]:
    """Return the ids of the entities with a name or an alias that contains one of the terms."""
    e, a = tables.entities, tables.aliases
    target = sa.func.coalesce(e.c.merged_into, e.c.entity_id)
    query = sa.select(target, e.c.canonical_name, a.c.alias)
    query = query.select_from(e.outerjoin(a, a.c.entity_pk == e.c.pk))
    rows = snapshot.rows(query)
    found = terms.among([f"{name}\n\n{alias or ''}" for _, name, alias in rows])
    return {rows[place][0] for place, _ in found}


def named_only_by(snapshot: Snapshot, memory_ids: Collection[str]) -> set[str]:
    """Return the ids of the entities that only these memories mention."""
    e, link = tables.entities.alias("e"), tables.links.alias("l")
    m = tables.memories.alias("m")
    these = link.c.memory_pk.in_(sa.select(m.c.pk).where(among(m.c.memory_id, "ids")))
    mentioned = sa.exists().where(link.c.entity_pk == e.c.pk).correlate(e)
    target = sa.func.coalesce(e.c.merged_into, e.c.entity_id)
    query = sa.select(target).where(mentioned.where(these), ~mentioned.where(~these))
    return set(snapshot.column(query, ids=sorted(memory_ids)))


# -- what stays -----------------------------------------------------------------------------------


class Standing(Enum):
    """A text that stays: a memory or name, what accompanies a memory, or an id of something."""

    TEXT = auto()
    FIELD = auto()
    PLACE = auto()


_SOURCE: Final = "source_path conversation_id workflow_run_id step_id locator captured_by"
_STANDING: Final = (
    (Standing.TEXT, "memories", "memory_id", "content summary item_id source_role"),
    (Standing.TEXT, "entities", "pk", "canonical_name"),
    (Standing.TEXT, "entity_aliases", "entity_pk", "alias"),
    (Standing.FIELD, "memories", "memory_id", "tags attributes"),
    (Standing.PLACE, "memories", "", "agent_id session_id scope_id"),
    (Standing.PLACE, "memory_sources", "", _SOURCE),
    (Standing.PLACE, "audit_log", "", "actor"),
)
"""The texts that stay, as (kind, table, key, columns). Those of erased memories and entities go,
but not the ids of their places."""


def standing(
    snapshot: Snapshot, memory_ids: Collection[str], entity_pks: Collection[int]
) -> Iterator[tuple[Standing, list[tuple[str, str]]]]:
    """Yield pages of (memory id or "", text) of what stays when these are erased."""
    gone = {"memories": sorted(memory_ids)}
    for kind, table, key, columns in _STANDING:
        t = tables.memories.metadata.tables[table]
        texts = [t.c[name] for name in columns.split()]
        owner = t.c.memory_id if (kind, table) == (Standing.TEXT, "memories") else sa.literal("")
        query = sa.select(owner, *texts)
        # Fields and places repeat; texts do not.
        query = query if kind is Standing.TEXT else query.distinct()
        if key:
            query = query.where(~among(t.c[key], "gone"))
        values = {"gone": gone.get(table, sorted(entity_pks))} if key else {}
        for page in snapshot.pages(query, _PAGE, values):
            yield kind, [(memory_id, text) for memory_id, *row in page for text in row if text]
    # What erasures leave says a text like "erased", too.
    yield Standing.TEXT, [("", text) for text in (MARK, *sorted(text_digests(snapshot)))]


def remaining_locators(
    snapshot: Snapshot, path: str, memory_ids: Collection[str]
) -> list[str | None]:
    """Return the locators of the memories from a file that are not to be erased."""
    m, s = tables.memories.alias("m"), tables.sources.alias("s")
    query = sa.select(s.c.locator).select_from(m.join(s, s.c.source_id == m.c.source_id))
    query = query.where(s.c.source_path == value("path"), m.c.content != "")
    query = query.where(~among(m.c.memory_id, "ids"))
    return snapshot.column(query, path=path, ids=sorted(memory_ids))


# -- the rows of erased memories -------------------------------------------------------------------


_EDGES: Final = (tables.edges, tables.edge_states)


def _joins_given(of: sa.Table = tables.edges) -> Column:
    """Return the condition that a row of ``_EDGES`` is of an edge of one of the bound memories."""
    e = tables.edges
    ends = among(e.c.from_memory_id, "ids") | among(e.c.to_memory_id, "ids")
    return ends if of is e else of.c.edge_id.in_(sa.select(e.c.edge_id).where(ends))


def blank(
    transaction: JournalledTransaction, rows: Sequence[MemoryToErase], entity_pks: Collection[int]
) -> Counter[str]:
    """Retract memories, and remove every text from them, from the rows that belong to them, and
    the entities with their names.

    Returns:
        The number of changed rows by table, without zeros.
    """
    m, h, n = tables.memories, tables.statuses, tables.entities
    c, k, w, link = tables.comparisons, tables.document_keys, tables.pending_links, tables.links
    pks, ids = [row.pk for row in rows], [row.memory_id for row in rows]
    due = among(m.c.memory_id, "ids") & (m.c.status != MemoryStatus.RETRACTED)
    if unretracted := transaction.column(sa.select(m.c.memory_id).where(due), ids=ids):
        set_statuses(transaction, unretracted, MemoryStatus.RETRACTED, reason="erased")
    embeddings.forget(transaction, pks)
    nothing = dict.fromkeys(("search_terms", "item_id", "source_role"))
    nothing |= {"content": "", "summary": "", "tags": "[]", "attributes": "{}", "token_cost": 0}
    nothing |= {"content_hash": "erased:" + m.c.memory_id}
    nothing |= {"updated_at": greatest(m.c.updated_at, value("at"))}
    statements: list[sa.Update | sa.Delete] = [
        sa.update(m).where(among(m.c.memory_id, "ids")).values(nothing),
        *(
            sa.update(e).where(e.c.reason.is_not(None), _joins_given(e)).values(reason=MARK)
            for e in _EDGES
        ),
        sa.update(h).where(among(h.c.memory_id, "ids")).values(reason="erased"),
        sa.delete(c).where(among(c.c.memory_pk, "pks")),
        sa.delete(w).where(among(w.c.memory_id, "ids")),
        sa.delete(k).where(among(k.c.memory_id, "ids")),
        *(
            sa.delete(column.table).where(among(column, "entities"))
            for column in (link.c.entity_pk, tables.aliases.c.entity_pk, n.c.pk)
        ),
    ]
    values = {"ids": ids, "pks": pks, "entities": sorted(entity_pks), "at": transaction.at}
    counts = Counter({"memory_embeddings": len(pks)})
    for statement in statements:
        counts[str(statement.table)] += transaction.write(statement, values)
    postings.remove(transaction, pks)
    entities.recount(transaction, entities.unlink_memories(transaction, pks))
    return +counts


# -- other rows that repeat an erased text, or are about what is erased ----------------------------


_Row = tuple[str, tuple[Any, ...]]
Changes = dict[_Row, dict[str, Any]]
"""The new values of rows, by table and primary key; a row without any is deleted."""


class Gone(NamedTuple):
    """The ids of the memories and entities that are erased.

    ``others``: the ids of their edges, and comments that were written about them alone.
    """

    memories: frozenset[str] = frozenset()
    entities: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()


_NOTHING: Final = Gone()


def gone_with(snapshot: Snapshot, memory_ids: Collection[str], entity_ids: Collection[str]) -> Gone:
    """Return what is erased with memories and entities."""
    edge_ids = snapshot.column(
        sa.select(tables.edges.c.edge_id).where(_joins_given()), ids=sorted(memory_ids)
    )
    h, own, others = tables.statuses, set[str](), set[str]()
    query = sa.select(h.c.memory_id, h.c.reason).where(h.c.reason.is_not(None)).distinct()
    for memory_id, reason in snapshot.cursor(query):
        (own if memory_id in memory_ids else others).add(reason.partition(": ")[2])
    about = frozenset({*edge_ids, *own - others})
    return Gone(frozenset(memory_ids), frozenset(entity_ids), about - {""})


JOURNAL: Final = "audit_log"
_KEYS: Final = ("_id", "_key", "_hash", "sha256", "actor", "path", "search_terms")
"""The endings of columns whose values identify something or are computed."""


@cache
def searched_columns() -> dict[str, tuple[str, ...]]:
    """Return the columns, by table, whose texts are searched and changed row by row."""
    kept = {
        (table, name)
        for kind, table, _, columns in _STANDING
        if kind is not Standing.FIELD
        for name in columns.split()
    }
    searched = {
        table.name: tuple(
            column.name
            for column in table.c
            if isinstance(column.type, sa.Text)
            and not (column.primary_key or column.foreign_keys or column.name.endswith(_KEYS))
            and (table.name, column.name) not in kept
        )
        for table in tables.memories.metadata.sorted_tables
        if table.name != JOURNAL
    }
    return {table: columns for table, columns in searched.items() if columns}


def changes(snapshot: Snapshot, terms: SearchTerms, gone: Gone = _NOTHING) -> Changes:
    """Return the changes of all rows that repeat an erased text or are about what is erased.

    Read it after ``blank``.
    """
    entries, notes = _entries(snapshot, terms, gone)
    result = dict(_repeating(snapshot, terms))
    for key, values in _rows_about(snapshot, gone, notes) if gone.memories else ():
        result[key] = result.get(key, {}) | values
    return result | entries


def _repeating(snapshot: Snapshot, terms: SearchTerms) -> Iterator[tuple[_Row, dict[str, Any]]]:
    """Yield the changes of the rows with an erased text, except those of the journal."""
    for name, columns in searched_columns().items():
        table = tables.memories.metadata.tables[name]
        keys = list(table.primary_key)
        query = sa.select(*keys, *(table.c[column] for column in columns))
        if table is tables.metadata:
            query = query.where(table.c.key != UNFINISHED_KEY)
        for page in snapshot.pages(query, _PAGE):
            texts = ["\n".join(text for text in row[len(keys) :] if text) for row in page]
            for place in sorted({place for place, _ in terms.among(texts)}):
                before = dict(zip(columns, page[place][len(keys) :], strict=True))
                after = {
                    column: scrubbed(text, terms.scrub) for column, text in before.items() if text
                }
                changed = {column: text for column, text in after.items() if text != before[column]}
                # A pending link to an erased file has no target.
                if changed:
                    yield (
                        (name, tuple(page[place][: len(keys)])),
                        {} if "target" in changed else changed,
                    )


def _entries(snapshot: Snapshot, terms: SearchTerms, gone: Gone) -> tuple[Changes, set[str]]:
    """Return the changes of journal entries with an erased text or about what is erased, and the
    comments in the latter.
    """
    log, entries, notes = tables.audit_log, Changes(), set[str]()
    ids = gone.memories | gone.entities
    query = sa.select(log.c.seq, log.c.action, log.c.subject, log.c.details).order_by(log.c.seq)
    for page in snapshot.pages(query, _PAGE):
        repeats = {place for place, _ in terms.among([details for *_, details in page])}
        for place, (seq, action, subject, text) in enumerate(page):
            fields = frozenset[str]()
            if ids and action not in (ACTION, REPORT):
                details = json.loads(text)
                named = {item for item in details.values() if isinstance(item, str)}
                if subject in ids:
                    fields = FREE_TEXT | DIGESTS
                elif not named.isdisjoint(ids | gone.others):
                    fields = NOTES
                notes.update(str(details[name]) for name in fields & NOTES & details.keys())
            if fields or place in repeats:
                redacted = redacted_details(text, terms.scrub, fields)
                if redacted != text:
                    entries[JOURNAL, (seq,)] = {"details": redacted}
    return entries, notes


def _rows_about(
    snapshot: Snapshot, gone: Gone, notes: Collection[str]
) -> Iterator[tuple[_Row, dict[str, Any]]]:
    """Yield the changes of rows that were made of erased memories, whatever their text.

    These are bulletins, summaries of entities, queries, answers, and the reasons of decisions.
    """
    b, r, i, n = tables.bulletins, tables.recalls, tables.recall_items, tables.entities
    h, e, ids = tables.statuses, tables.edges, sorted(gone.memories)

    def rows(query: sa.ClauseElement) -> list[Any]:
        return snapshot.rows(query, ids=ids)

    cited = each(b.c.memory_ids, "i")
    cites = sa.exists().select_from(cited).where(among(cited.c.value, "ids")).correlate(b)
    for (bulletin_id,) in rows(sa.select(b.c.bulletin_id).where(cites)):
        yield (b.name, (bulletin_id,)), {"body": MARK}
    for pk, summary in rows(sa.select(n.c.pk, n.c.summary).where(n.c.summary.is_not(None))):
        if gone.memories.intersection(json.loads(summary)["read"]):
            yield (n.name, (pk,)), {"summary": None}
    citing = sa.select(i.c.recall_id).where(among(i.c.memory_id, "ids"))
    profile = sa.func.json_each(r.c.request, sa.literal_column("'$.profile.memory_ids'"))
    about = profile.table_valued("value", name="p")
    of_profile = sa.exists().select_from(about).where(among(about.c.value, "ids")).correlate(r)
    is_about = sa.func.coalesce(r.c.same_as, r.c.recall_id).in_(citing) | of_profile
    is_about &= (r.c.query != "") | r.c.answer.is_not(None)
    for recall_id, answer in rows(sa.select(r.c.recall_id, r.c.answer).where(is_about)):
        redacted = None if answer is None else redacted_words(answer)
        yield (r.name, (recall_id,)), {"query": "", "answer": redacted}
    for t in _EDGES:
        decided = sa.select(t.c.resolution, *t.primary_key)
        for text, *key in rows(decided.where(t.c.resolution.is_not(None), _joins_given(t))):
            yield (t.name, tuple(key)), {"resolution": redacted_words(text)}
    neighbours = sa.union(
        sa.select(e.c.from_memory_id).where(among(e.c.to_memory_id, "ids")),
        sa.select(e.c.to_memory_id).where(among(e.c.from_memory_id, "ids")),
    )
    # The edge of a replacement may lead to an earlier successor, which was retracted since.
    query = sa.select(h.c.status_id, h.c.reason, h.c.memory_id.in_(neighbours))
    for status_id, reason, is_beside in rows(query.where(h.c.reason.contains(": "))):
        kept = without_note(reason, gone.memories, notes if is_beside else ())
        if kept != reason:
            yield (h.name, (status_id,)), {"reason": kept}


@prepared
def _change(name: str, columns: tuple[str, ...]) -> sa.Update | sa.Delete:
    table = tables.memories.metadata.tables[name]
    its = [column == value(f"key_{place}") for place, column in enumerate(table.primary_key)]
    if not columns:
        return sa.delete(table).where(*its)
    return sa.update(table).where(*its).values({name: value(f"new_{name}") for name in columns})


def apply(transaction: Transaction, changes: Changes) -> None:
    """Change rows, in the transaction in which they were read."""
    for (name, key), values in changes.items():
        bound = {f"key_{place}": part for place, part in enumerate(key)}
        bound |= {f"new_{column}": text for column, text in values.items()}
        _change(name, tuple(values)).write(transaction, bound)
    own = [(key[0], row) for (name, key), row in changes.items() if name == tables.memories.name]
    retagged = {pk for pk, values in own if "tags" in values}
    # Of the attributes only the metadata of items are indexed.
    described = [pk for pk, values in own if "attributes" in values]
    reworded = text_index.rewrite_search_terms_of(transaction, described)
    postings.remove(transaction, sorted(retagged.union(reworded)))


def redacted(snapshot: Snapshot, seqs: Collection[int]) -> list[tuple[int, str, str]]:
    """Return the number, the seal and the details of journal entries."""
    log = tables.audit_log
    query = sa.select(log.c.seq, log.c.hash, log.c.details).where(among(log.c.seq, "seqs"))
    return [tuple(row) for row in snapshot.rows(query.order_by(log.c.seq), seqs=sorted(seqs))]


# -- what others ask about erasures ----------------------------------------------------------------


def erased_through(snapshot: Snapshot) -> int:
    """Return the head of the journal at the last erasure, or 0 without an erasure."""
    return int(metadata.get(snapshot, ERASED_KEY) or 0)


def erasures_of(snapshot: Snapshot, memory_ids: Collection[str]) -> dict[str, str]:
    """Return those of the memories that are erased, each with the id of its erasure."""
    log = tables.audit_log
    query = sa.select(log.c.subject, member(log.c.details, "erasure_id"))
    query = query.where(log.c.action == ACTION, among(log.c.subject, sorted(memory_ids)))
    return dict(snapshot.rows(query.order_by(log.c.seq)))


def erasures_by_id(snapshot: Snapshot) -> dict[str, UndoneErasure]:
    """Return all erasures by id, also an unfinished one and those that a restore has undone.

    Raises:
        DatabaseCorrupt: the record of one cannot be read.
    """
    return {item.erasure_id: item for _, items in _recorded(snapshot) for item in items}


def undone(snapshot: Snapshot) -> list[UndoneErasure]:
    """Return the erasures that a restore has undone and that are still to be done again.

    Those of which memories came back are done once none of these has a text.

    Raises:
        DatabaseCorrupt: the record of one cannot be read.
    """
    waiting = list[UndoneErasure]()
    for action, items in _recorded(snapshot):
        again = {(item.kind, item.target) for item in items if action == REPORT}
        waiting = [item for item in waiting if (item.kind, item.target) not in again]
        waiting += items if action == RESTORE else ()
    came_back = {item.erasure_id for item in waiting if item.restored}
    again_due = to_do_again(restored(snapshot, waiting))
    return [item for item in again_due if item.restored or item.erasure_id not in came_back]


def unknown_at(snapshot: Snapshot) -> int | None:
    """Return when a restore undid erasures that are not known, unless that was accepted since."""
    log = tables.audit_log
    query = sa.select(log.c.at, log.c.action, member(log.c.details, "code"))
    query = query.where(log.c.subject.is_(None), log.c.action.in_((RESTORE, ACCEPT)))
    query = query.where(sa.func.json_valid(log.c.details)).order_by(log.c.seq.desc())
    for at, action, code in snapshot.cursor(query):
        if action == ACCEPT or code == UNKNOWN:
            return None if action == ACCEPT else int(at)
    return None


def text_digests(snapshot: Snapshot) -> set[str]:
    """Return the digests by which erasures of texts are known, as far as they can be read."""
    digests = set[str]()
    # An erasure is possible although the journal is damaged.
    with suppress(DatabaseCorrupt):
        for _, items in _recorded(snapshot):
            digests.update(item.target for item in items if item.kind is ErasureTargetKind.TEXT)
    return digests


def restored(snapshot: Snapshot, erasures: Collection[UndoneErasure]) -> list[UndoneErasure]:
    """Return erasures with the number of their memories that have a text in this database."""
    m, ids = tables.memories, sorted({each for item in erasures for each in item.memory_ids})
    query = sa.select(m.c.memory_id).where(among(m.c.memory_id, "ids"), m.c.content != "")
    present = set(snapshot.column(query, ids=ids)) if ids else set()
    return [
        item.model_copy(update={"restored": len(present.intersection(item.memory_ids))})
        for item in erasures
    ]


def to_do_again(erasures: Collection[UndoneErasure]) -> list[UndoneErasure]:
    """Return those whose memories have a text, and those of a text, which need no memory."""
    return [item for item in erasures if item.restored or item.kind is ErasureTargetKind.TEXT]


def _recorded(snapshot: Snapshot) -> Iterator[tuple[str, list[UndoneErasure]]]:
    """Yield the erasures of each report and restore in the journal, and an unfinished one."""
    log, names = tables.audit_log, UndoneErasure.model_fields.keys() - {"restored"}
    # The condition on the subject has an index.
    query = sa.select(log.c.action, log.c.details).where(log.c.subject.is_(None))
    query = query.where(log.c.action.in_((REPORT, RESTORE))).order_by(log.c.seq)
    unfinished = metadata.get(snapshot, UNFINISHED_KEY)
    rows = [*snapshot.rows(query), *([(UNFINISHED_KEY, unfinished)] if unfinished else ())]
    for action, text in rows:
        try:
            entry = json.loads(text)
            listed = entry.get("undone", ()) if action == RESTORE else [entry.get("report", entry)]
            # A report has no number of restored memories.
            fields = [
                {name: item[name] for name in names} | {"restored": item.get("restored", 0)}
                for item in listed
            ]
            items = list(map(UndoneErasure.model_validate, fields))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            message = "the record of an erasure cannot be read; run: memgraph verify"
            raise DatabaseCorrupt(message) from error
        yield action, items


def unfinished(snapshot: Snapshot) -> dict[str, Any] | None:
    """Return the report and the encrypted texts of an erasure that is not finished, if any is."""
    text = metadata.get(snapshot, UNFINISHED_KEY)
    return None if text is None else dict(json.loads(text))


def reports(snapshot: Snapshot, limit: int) -> list[dict[str, Any]]:
    """Return the reports of the latest erasures, the newest first."""
    log = tables.audit_log
    query = sa.select(log.c.details).where(log.c.action == REPORT).order_by(log.c.seq.desc())
    texts = snapshot.column(query.limit(value("limit")), limit=limit)
    # A later erasure may have redacted the reason.
    return [{k: v for k, v in json.loads(text).items() if k != ERASED} for text in texts]
