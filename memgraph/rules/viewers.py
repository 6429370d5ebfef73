"""Viewers as a receipt keeps them, and which of two sees more."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from memgraph.model.enums import Scope, Sensitivity
from memgraph.rules.scope import Viewer


@lru_cache(maxsize=256)
def viewer_fields(viewer: Viewer) -> Mapping[str, Any]:
    """What a viewer sees, as JSON values; not whether it is confined or is told of use."""
    return {
        "clearance": viewer.clearance.value,
        "project_ids": sorted(viewer.project_ids),
        "session_ids": sorted(viewer.session_ids),
        "scopes": sorted(scope.value for scope in viewer.scopes),
        "agent_id": viewer.agent_id,
        "shared": viewer.shared,
    }


def viewer_of(fields: Mapping[str, Any]) -> Viewer:
    """The viewer that has these fields.

    Raises:
        KeyError, InvalidInput: they are not what ``viewer_fields`` gives.
    """
    return Viewer(
        clearance=Sensitivity(fields["clearance"]),
        project_ids=frozenset(fields["project_ids"]),
        session_ids=frozenset(fields["session_ids"]),
        scopes=frozenset(Scope(each) for each in fields["scopes"]),
        agent_id=fields["agent_id"],
        shared=fields["shared"],
    )


def covers(reader: Viewer, other: Viewer) -> bool:
    """Whether a reader sees all that another viewer sees."""
    open_ = {Scope.PROJECT: other.project_ids, Scope.SESSION: other.session_ids}
    return (
        other.clearance.level <= reader.clearance.level
        # A scope without ids shows nothing.
        and all(
            scope in reader.scopes and open_.get(scope, frozenset()) <= reader.scope_ids(scope)
            for scope in other.scopes
            if open_.get(scope, True)
        )
        and _covers_agents(reader, other)
    )


def granted(fields: Mapping[str, Any], reader: Viewer) -> dict[str, Any]:
    """What a receipt may tell a reader of its viewer: ids that the reader was granted itself."""
    return {
        **fields,
        "project_ids": [one for one in fields.get("project_ids", ()) if one in reader.project_ids],
        "session_ids": [one for one in fields.get("session_ids", ()) if one in reader.session_ids],
    }


def asked_of(asked: Mapping[str, Any], reader: Viewer) -> dict[str, Any]:
    """What a receipt may tell a reader of its request: of places those that it was granted."""
    told = dict(asked)
    for name, open_ in _places(reader).items():
        if name in asked:
            told[name] = [one for one in asked[name] if one in open_]
    return told


def asks_within(asked: Mapping[str, Any], reader: Viewer) -> bool:
    """Whether a reader was granted every place that a request names."""
    return all(open_.issuperset(asked.get(name, ())) for name, open_ in _places(reader).items())


def _places(reader: Viewer) -> dict[str, frozenset[str]]:
    """What a reader was granted of what ``RecallRequest`` names."""
    return {"project_ids": reader.project_ids, "session_scope_ids": reader.session_ids}


def _covers_agents(reader: Viewer, other: Viewer) -> bool:
    if reader.agent_id is None:
        return True
    return reader.agent_id == other.agent_id and (reader.shared or not other.shared)
