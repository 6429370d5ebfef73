"""The rule of ``memgraph.policy.scope`` as a WHERE clause, with status and as-of.

Every reader joins ``memories`` under an alias and puts the condition where the rows are chosen,
before any ranking, limit or count.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from memgraph.model.enums import MemoryStatus, Scope
from memgraph.policy.scope import Viewer, predicate
from memgraph.storage.rows import MEMORY_FIELDS

STANDING = frozenset({MemoryStatus.ACTIVE, MemoryStatus.SUPERSEDED})


@dataclass(frozen=True, slots=True)
class View:
    """What a reader sees: who, at which time, and memories of which status then.

    Attributes:
        as_of: milliseconds; None: as it is now. A memory stored later is not there, one that was
            replaced or retracted later is as it was.
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
        return " AND ".join(terms)

    def edge_where(self, alias: str) -> str:
        """The condition on a row of ``memory_edges``; ``where`` holds for its ends."""
        return "1" if self.as_of is None else f"{alias}.created_at <= :view_as_of"

    def status(self, alias: str) -> str:
        """The status that a memory has, or had: an expression."""
        if self.as_of is None:
            return f"{alias}.status"
        return (
            f"(SELECT h.status FROM memory_status h WHERE h.memory_id = {alias}.memory_id"
            " AND h.since <= :view_as_of AND (h.until IS NULL OR h.until > :view_as_of)"
            " ORDER BY h.since DESC, h.status_id DESC LIMIT 1)"
        )

    def confidence(self, alias: str) -> str:
        """The stored confidence that a memory has, or had before it lost a contradiction."""
        if self.as_of is None:
            return f"{alias}.confidence"
        # Of several that it lost the first counts; min() picks the row that the CASE reads.
        return (
            "coalesce((SELECT CASE WHEN min(l.resolved_at) > :view_as_of"
            " THEN json_extract(l.resolution, '$.loser_prior_confidence') END"
            f" FROM memory_edges l WHERE l.edge_type = 'Contradicts' AND"
            f" (l.from_memory_id = {alias}.memory_id OR l.to_memory_id = {alias}.memory_id)"
            f" AND json_extract(l.resolution, '$.loser_id') = {alias}.memory_id),"
            f" {alias}.confidence)"
        )

    def attributes(self, alias: str) -> str:
        """The attributes of a memory; of those that it won against, the visible ones alone."""
        won = (
            "SELECT CASE WHEN count(*) THEN json_group_array(w.memory_id) END"
            f" FROM json_each({alias}.attributes, '$.supersedes') s"
            f" CROSS JOIN memories w ON w.memory_id = s.value"
            f" WHERE {_scope_condition(self.viewer, 'w')}"
        )
        # A null in the patch takes the key away.
        return (
            f"CASE WHEN instr({alias}.attributes, '\"supersedes\"') = 0 THEN {alias}.attributes"
            f" ELSE json_patch({alias}.attributes, json_object('supersedes', json(({won})))) END"
        )

    def memory_columns(self, alias: str) -> str:
        """``MEMORY_FIELDS``, status and confidence as they were; they bind ``params``."""
        as_it_was = {
            "status": self.status(alias),
            "confidence": self.confidence(alias),
            "attributes": self.attributes(alias),
        }
        return ", ".join(as_it_was.get(name, f"{alias}.{name}") for name in MEMORY_FIELDS)

    @property
    def params(self) -> dict[str, Any]:
        """Named values for ``where``; more than one clause may bind them."""
        return _scope_values(self.viewer) | {"view_as_of": self.as_of}


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
