"""The rule of ``memgraph.rules.scope`` as a WHERE clause, with status and as-of.

Every reader joins ``memories`` under an alias and puts the condition where the rows are chosen,
before any ranking, limit or count.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from memgraph.ids import first_ulid
from memgraph.model.enums import MemoryStatus, Scope
from memgraph.rules.scope import Viewer, predicate
from memgraph.store.rows import EDGE_FIELDS, MEMORY_FIELDS

REVISED = ("importance", "confidence", "decay_rate", "valid_until", "tags", "attributes")
"""Columns of ``memories`` whose earlier values are kept in ``memory_revisions``."""
_RECEIPTS = "rcl_"
# So many receipts of one memory are looked at for its last access before a time.
_MOST_RECEIPTS = 20
_RETRACTED = MemoryStatus.RETRACTED
STANDING = frozenset({MemoryStatus.ACTIVE, MemoryStatus.SUPERSEDED})
_USE = ("access_count", "last_accessed_at")
"""What a viewer is told of use that it may not have seen."""


@dataclass(frozen=True, slots=True)
class View:
    """What a reader sees: who, at which time, and memories of which status then.

    Attributes:
        as_of: milliseconds; None: as it is now. A memory stored later is not there; of one that
            changed later, status and values are those that it had at the end of that
            millisecond. So are the edges.
        statuses: shown statuses, those of ``as_of`` if it is given; None: all three.
    """

    viewer: Viewer
    as_of: int | None = None
    statuses: frozenset[MemoryStatus] | None = None

    def where(self, alias: str) -> str:
        """The condition on a row of ``memories``; it binds ``params``."""
        terms = [_scope_condition(self.viewer, alias)]
        if self.as_of is not None:
            terms.append(f"{alias}.created_at <= :view_as_of")
        if self.statuses is not None:
            terms.append(f"{self.status(alias)} IN ({_quoted(self.statuses)})")
        elif self.as_of is not None:
            terms.append(f"{self.status(alias)} IS NOT NULL")
        if self.as_of is not None or self.statuses is None or _RETRACTED in self.statuses:
            terms.append(_unburied(alias))
        return " AND ".join(terms)

    def unerased(self, alias: str) -> str:
        """Whether a memory says anything still: what was erased has no text at any time."""
        if self.as_of is None:
            return "1"
        # Erased ones are retracted: of most rows no text is read.
        return f"({alias}.status <> 'retracted' OR {alias}.content <> '')"

    def edge_where(self, alias: str) -> str:
        """The condition on a row of ``memory_edges``; ``where`` holds for its ends."""
        return "1" if self.as_of is None else f"{alias}.created_at <= :view_as_of"

    def derived_where(self, alias: str) -> str:
        """The condition on a row of ``memory_derivations``; ``where`` holds for its ends."""
        if self.as_of is None:
            return "1"
        return f"({alias}.added_at IS NULL OR {alias}.added_at <= :view_as_of)"

    def status(self, alias: str) -> str:
        """The status that a memory has, or had: an expression."""
        if self.as_of is None:
            return f"{alias}.status"
        # Most memories are as they were: only of the others the history is read.
        return (
            f"CASE WHEN {alias}.updated_at <= :view_as_of THEN {alias}.status ELSE"
            f" (SELECT h.status FROM memory_status h WHERE h.memory_id = {alias}.memory_id"
            " AND h.since <= :view_as_of AND (h.until IS NULL OR h.until > :view_as_of)"
            " ORDER BY h.since DESC, h.status_id DESC LIMIT 1) END"
        )

    def value(self, column: str, alias: str) -> str:
        """What one of ``REVISED`` columns holds, or held: an expression."""
        now = f"{alias}.{column}"
        if self.as_of is None:
            return now
        kept = f"FROM memory_revisions r WHERE r.memory_id = {alias}.memory_id"
        first = f"SELECT r.{column} {kept} AND r.until > :view_as_of"
        first = f"({first} ORDER BY r.until, r.revision_id LIMIT 1)"
        unchanged = f"{alias}.updated_at <= :view_as_of"
        if column == "decay_rate":
            # A migration changed rates and left ``updated_at`` as it was.
            return f"coalesce({first}, {now})"
        if column == "valid_until":
            # None is a value: whether there is a revision has to be asked.
            changed = f"EXISTS (SELECT 1 {kept} AND r.until > :view_as_of)"
            return f"CASE WHEN {unchanged} OR NOT {changed} THEN {now} ELSE {first} END"
        return f"CASE WHEN {unchanged} THEN {now} ELSE coalesce({first}, {now}) END"

    def confidence(self, alias: str) -> str:
        """The stored confidence that a memory has, or had."""
        return self.value("confidence", alias)

    def last_accessed(self, alias: str) -> str:
        """Return when a memory was last used, in milliseconds, as far as receipts tell it.

        Of a use after the view's time the last one before it is looked for in the newest
        receipts before that, and in what counts as one: that it was restored, or said again.
        Without any, nobody had used the memory.
        """
        now = f"{alias}.last_accessed_at"
        if self.as_of is None:
            return now
        # Looks at the past are no use, nor are bulletins of before they were counted.
        asked = (
            "{0}.created_at < :view_as_of AND {0}.request ->> '$.as_of' IS NULL"
            " AND ({0}.purpose IS NOT 'bulletin' OR {0}.request ->> '$.used')"
        )
        mine = f"memory_id = {alias}.memory_id"
        return (
            f"CASE WHEN {now} < :view_as_of THEN {now} ELSE (SELECT max(x.at) FROM (SELECT max("
            "r.created_at, coalesce((SELECT max(a.created_at) FROM recalls a"
            f" WHERE a.same_as = r.recall_id AND {asked.format('a')}), 0)) AS at FROM"
            " (SELECT r.recall_id, r.created_at FROM recall_items i"
            " CROSS JOIN recalls r ON r.recall_id = i.recall_id"
            f" WHERE i.{mine} AND i.recall_id < :view_receipt"
            f" AND {asked.format('r')}"
            f" ORDER BY i.recall_id DESC LIMIT {_MOST_RECEIPTS}) r"
            f" UNION ALL SELECT h.since FROM memory_status h WHERE h.{mine}"
            f" AND h.status = 'active' AND h.since > {alias}.created_at AND h.since < :view_as_of"
            f" UNION ALL SELECT l.at FROM audit_log l WHERE l.subject = {alias}.memory_id"
            " AND l.action = 'strengthen' AND l.at < :view_as_of) x) END"
        )

    def updated(self, alias: str) -> str:
        """When a memory was changed last, or had been; a confirmation of what was left no trace."""
        now = f"{alias}.updated_at"
        if self.as_of is None:
            return now
        mine = f"x.memory_id = {alias}.memory_id AND x"
        return (
            f"CASE WHEN {now} <= :view_as_of THEN {now} ELSE max({alias}.created_at,"
            f" coalesce((SELECT max(x.since) FROM memory_status x WHERE {mine}.since"
            " <= :view_as_of), 0),"
            f" coalesce((SELECT max(x.until) FROM memory_revisions x WHERE {mine}.until"
            " <= :view_as_of), 0)) END"
        )

    def attributes(self, alias: str) -> str:
        """The attributes of a memory; of those that it won against, the visible ones alone."""
        held = self._attributes_then(alias)
        won = (
            "SELECT CASE WHEN count(*) THEN json_group_array(w.memory_id) END"
            f" FROM json_each({held}, '$.supersedes') s"
            f" CROSS JOIN memories w ON w.memory_id = s.value"
            f" WHERE {_scope_condition(self.viewer, 'w')}"
        )
        # A null in the patch takes the key away.
        return (
            f"CASE WHEN instr({held}, '\"supersedes\"') = 0 THEN {held}"
            f" ELSE json_patch({held}, json_object('supersedes', json(({won})))) END"
        )

    def _attributes_then(self, alias: str) -> str:
        held = self.value("attributes", alias)
        if self.as_of is None:
            return held
        # The stamp of enriching is no change of a memory, and leaves no revision.
        return (
            f"CASE WHEN {alias}.attributes ->> '$.enriched_at' > :view_as_of"
            f" THEN json_remove({held}, '$.enriched_at', '$.enriched_names') ELSE {held} END"
        )

    def memory_columns(self, alias: str) -> str:
        """``MEMORY_FIELDS`` as they are, or were; they bind ``params``."""
        as_it_was = {
            "status": self.status(alias),
            "attributes": self.attributes(alias),
            "last_accessed_at": self.last_accessed(alias),
            "updated_at": self.updated(alias),
            **({} if self.viewer.sees_use else dict.fromkeys(_USE, "NULL")),
            **{name: self.value(name, alias) for name in REVISED if name != "attributes"},
        }
        return ", ".join(as_it_was.get(name, f"{alias}.{name}") for name in MEMORY_FIELDS)

    def edge_columns(self, alias: str) -> str:
        """``EDGE_FIELDS`` as they are, or were."""
        as_it_was = {
            "partial": self._edge_value("partial", alias),
            "resolved_at": self.resolved_at(alias),
            "resolution": self.resolution(alias),
        }
        return ", ".join(as_it_was.get(name, f"{alias}.{name}") for name in EDGE_FIELDS)

    def partial(self, alias: str) -> str:
        """Whether an Updates edge replaces, or replaced, only a part: an expression."""
        return self._edge_value("partial", alias)

    def resolved_at(self, alias: str) -> str:
        """When a contradiction was decided, None while it is, or was, open: an expression."""
        if self.as_of is None:
            return f"{alias}.resolved_at"
        # An edge that was decided before anything was kept has its last decision alone.
        held = self._edge_value("resolved_at", alias)
        return f"CASE WHEN ({held}) <= :view_as_of THEN ({held}) END"

    def resolution(self, alias: str) -> str:
        """How a contradiction was decided; see ``resolved_at``."""
        if self.as_of is None:
            return f"{alias}.resolution"
        held = self._edge_value("resolution", alias)
        return f"CASE WHEN {self.resolved_at(alias)} IS NOT NULL THEN {held} END"

    def _edge_value(self, column: str, alias: str) -> str:
        if self.as_of is None:
            return f"{alias}.{column}"
        kept = (
            f"FROM memory_edge_revisions r WHERE r.edge_id = {alias}.edge_id"
            " AND r.until > :view_as_of"
        )
        first = f"(SELECT r.{column} {kept} ORDER BY r.until, r.revision_id LIMIT 1)"
        return f"CASE WHEN EXISTS (SELECT 1 {kept}) THEN {first} ELSE {alias}.{column} END"

    @property
    def params(self) -> dict[str, Any]:
        """Named values for ``where``; more than one clause may bind them."""
        values = _scope_values(self.viewer) | {"view_as_of": self.as_of}
        if self.as_of is not None:
            values["view_receipt"] = _RECEIPTS + first_ulid(self.as_of)
        return values


def _unburied(alias: str) -> str:
    """A memory that has its tombstone and its text still is not there until the text is gone."""
    # An erased one is retracted: of most rows neither the text nor the journal is read.
    tombstone = f"buried.subject = {alias}.memory_id AND buried.action = 'erase'"
    return (
        f"({alias}.status <> 'retracted' OR {alias}.content = ''"
        f" OR NOT EXISTS (SELECT 1 FROM audit_log buried WHERE {tombstone}))"
    )


@lru_cache(maxsize=256)
def _scope_values(viewer: Viewer) -> dict[str, Any]:
    rule = predicate(viewer)
    by_scope: dict[Scope, list[str]] = {Scope.PROJECT: [], Scope.SESSION: []}
    for scope, scope_id in rule.grants:
        if scope_id is not None:
            by_scope[scope].append(scope_id)
    return {
        "view_agent_id": rule.agent_id,
        "view_project_ids": json.dumps(by_scope[Scope.PROJECT]),
        "view_session_ids": json.dumps(by_scope[Scope.SESSION]),
    }


@lru_cache(maxsize=256)
def _scope_condition(viewer: Viewer, alias: str) -> str:
    rule = predicate(viewer)
    granted = []
    scopes = {scope for scope, _ in rule.grants}
    # The text depends on which scopes are granted, not on the ids, so that statements are reused.
    for scope in sorted(scopes):
        if scope is Scope.GLOBAL:
            granted.append(f"{alias}.scope = 'global'")
        else:
            granted.append(
                f"{alias}.scope = '{scope.value}' AND {alias}.scope_id IN"
                f" (SELECT value FROM json_each(:view_{scope.value}_ids))"
            )
    if not granted or not rule.sensitivities:
        # A plain 0 would make the planner forget the other terms, and with them partial indexes.
        return f"{alias}.scope = ''"
    terms = [
        f"{alias}.sensitivity IN ({_quoted(rule.sensitivities)})",
        f"({' OR '.join(granted)})",
    ]
    if rule.agent_id is not None:
        own = f"{alias}.agent_id = :view_agent_id"
        terms.append(f"({alias}.agent_id IS NULL OR {own})" if rule.shared else own)
    return " AND ".join(terms)


def _quoted(values: Collection[str]) -> str:
    # Members of our own enums; should another text come here, it stays a text.
    quoted = (str(value).replace("'", "''") for value in values)
    return ", ".join(f"'{value}'" for value in sorted(quoted))
