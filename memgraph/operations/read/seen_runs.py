"""Runs of jobs as a reader may see them: without hidden sessions and memories."""

from __future__ import annotations

import re
from typing import Final

from memgraph.model.enums import Scope
from memgraph.model.jobs import JobRun
from memgraph.rules.echo import MEMORY_ID
from memgraph.store import memories, sessions
from memgraph.store.snapshot import Snapshot
from memgraph.store.visibility import View

_SESSION: Final = "session "
_PROJECT: Final = "project "
_IDS: Final = re.compile(rf"\b{MEMORY_ID}\b")
# A session's id may hold any of these itself.
_ENDS: Final = re.compile(r"(?=: |, )|$")


def as_seen(snapshot: Snapshot, view: View, run: JobRun) -> JobRun:
    """Return the run; about a hidden session only its time and state."""
    if run.reason is not None and not _may_see(snapshot, view, run.reason):
        return run.model_copy(update={"reason": None, "counts": {}, "rejected": ()})
    visible_parts = tuple(part for part in run.rejected if _may_see(snapshot, view, part.where))
    return (
        run
        if len(visible_parts) == len(run.rejected)
        else run.model_copy(update={"rejected": visible_parts})
    )


def _may_see(snapshot: Snapshot, view: View, place: str) -> bool:
    ids = set(_IDS.findall(place))
    if ids and memories.existing_ids(snapshot, sorted(ids), view) != ids:
        return False
    if place.startswith(_PROJECT):
        granted = view.viewer.scope_ids(Scope.PROJECT)
        return any(prefix in granted for prefix in _beginnings(place.removeprefix(_PROJECT)))
    if not place.startswith(_SESSION):
        return True
    meant = sessions.registered(snapshot, _beginnings(place.removeprefix(_SESSION)))
    # When it may be one of several, all of them, so that no hidden one is disclosed.
    return bool(meant) and all(sessions.visible(snapshot, view, session_id) for session_id in meant)


def _beginnings(text: str) -> list[str]:
    """Return the possible ids at the start of a text."""
    return [text[: end.start()] for end in _ENDS.finditer(text) if end.start()]
