"""The sources of memories, for one reader, and their trust."""

from __future__ import annotations

import os
import re
from typing import Final

from memgraph.errors import InvalidInput, NotFound
from memgraph.model.enums import SourceName
from memgraph.model.sources import MAX_SOURCES, SourceInfo, SourcePage, TrustedSource
from memgraph.paths import OrchestratorPaths
from memgraph.rules.trust import Named, Trust, lowest
from memgraph.store import sources as sources_rows
from memgraph.store import trust as trust_rows
from memgraph.store.items import is_id
from memgraph.store.snapshot import Snapshot
from memgraph.store.trust import TrustRow
from memgraph.store.visibility import View

LISTED: Final = (SourceName.CONVERSATION, SourceName.PATH, SourceName.RUN)
"""The kinds listed by default: a content is listed with its path."""

_SHA256: Final = re.compile(r"[0-9a-f]{64}")


def kind_of(kind: SourceName | str) -> SourceName:
    """Return the kind of a source. Raises InvalidInput: an unknown one."""
    try:
        return SourceName(kind)
    except ValueError:
        told = ", ".join(SourceName)
        raise InvalidInput(f"a source is named by one of: {told}", field="kind") from None


def named_of(paths: OrchestratorPaths, kind: SourceName | str, name: str) -> Named:
    """Return a source as memories name it.

    A path of the drop zone is where the file is after it was ingested, and a relative one is below
    that; ``<orchestrator>/memory/…`` is below the root. The file need not exist any more.

    Raises:
        InvalidInput: no such kind, an empty name or one that is no text, or no SHA-256.
    """
    kind = kind_of(kind)
    if not is_id(name) or not name.strip() or "\0" in name:
        raise InvalidInput("the name of a source is a text that is not empty", field=kind.value)
    if kind is SourceName.PATH:
        return Named(kind, _stored_path(paths, name))
    if kind is SourceName.CONTENT and not _SHA256.fullmatch(name):
        raise InvalidInput("a content is named by its SHA-256, 64 digits", field=kind.value)
    return Named(kind, name)


def listing(
    snapshot: Snapshot,
    trust: Trust,
    view: View,
    *,
    kind: SourceName | None,
    limit: int,
    after: str | None,
    sender: str | None = None,
) -> SourcePage:
    """Return a page of the sources of visible memories; see ``SourcesHandle.sources``."""
    if not 1 <= limit <= MAX_SOURCES:
        raise InvalidInput(f"limit: 1 to {MAX_SOURCES}", field="limit")
    kinds = LISTED if kind is None else (kind,)
    place = _place(after, kinds) if after is not None else Named(kinds[0], "")
    found: list[SourceInfo] = []
    for each in kinds[kinds.index(place.kind) :]:
        name = place.name if each is place.kind else ""
        room = limit + 1 - len(found)
        names = sources_rows.names(snapshot, each, view, after=name, limit=room, sender=sender)
        infos = (info_of(snapshot, trust, Named(each, one), view) for one in names)
        found.extend(one for one in infos if one is not None)
    more = len(found) > limit
    following = f"{found[limit - 1].kind.value}:{found[limit - 1].name}" if more else None
    return SourcePage(items=tuple(found[:limit]), next_after=following)


def info_of(snapshot: Snapshot, trust: Trust, named: Named, view: View) -> SourceInfo | None:
    """Return one source; None: it has no visible memory. ``trust`` has the operators'
    assignment.
    """
    totals = sources_rows.totals(snapshot, named, view)
    if totals is None:
        return None
    sources = sources_rows.captured(snapshot, named, view)
    quotas = {quota.named: quota.most for one in sources for quota in trust.quotas(one)}
    told = any(trust.is_told(one) for one in sources)
    return SourceInfo(
        kind=named.kind,
        name=named.name,
        **totals._asdict(),
        tier=lowest(trust.tier(one) for one in sources),
        told=told,
        inherited=told and named not in trust.told,
        limit=quotas.get(named),
    )


def no_source(named: Named) -> NotFound:
    """Return the error for a source that is missing or hidden."""
    # The absolute path shows where a mistyped relative one was searched.
    return NotFound(f"no memory came from this source: {named.name[:200]}", name=named.name[:80])


def trusted_from_row(row: TrustRow) -> TrustedSource:
    """Return an operator's trust assignment in its public form."""
    return TrustedSource(
        kind=row.named.kind,
        name=row.named.name,
        tier=row.trusted.tier,
        max_memories=row.trusted.max_memories,
        set_at=row.set_at,
        actor=row.actor,
        reason=row.reason,
    )


def trusted(snapshot: Snapshot) -> list[TrustedSource]:
    """Return all operators' trust assignments, by kind and name."""
    return [trusted_from_row(each) for each in trust_rows.told(snapshot)]


def told_of(snapshot: Snapshot, named: Named) -> TrustedSource | None:
    """Return the operators' trust assignment for exactly this source."""
    return next((one for one in trusted(snapshot) if (one.kind, one.name) == named), None)


def _place(after: str, kinds: tuple[SourceName, ...]) -> Named:
    kind, _, name = after.partition(":")
    if kind not in {each.value for each in kinds} or not name:
        raise InvalidInput("this is no next_after of a page", field="after")
    return Named(SourceName(kind), name)


def _stored_path(paths: OrchestratorPaths, name: str) -> str:
    own = os.path.join(paths.name, "memory", "")  # noqa: PTH118 - names, which need not exist
    base = paths.root if name.startswith(own) else paths.processed
    path = os.path.realpath(os.path.join(base, name))  # noqa: PTH118
    ingest, processed, rejected = (
        os.path.realpath(each) for each in (paths.ingest, paths.processed, paths.rejected)
    )
    inside = path.startswith(ingest + os.sep)
    if inside and not f"{path}{os.sep}".startswith((processed + os.sep, rejected + os.sep)):
        path = processed + path.removeprefix(ingest)
    return path
