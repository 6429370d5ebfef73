"""Return the ingested files that a reader may see.

A manifest names memories and counts them, so a file is visible to readers who see every memory made
from it, and to its sender. A file without memories (rejected or empty) is visible to its sender,
and to readers from whom nothing is hidden. A sender still sees only the memories in its view.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from memgraph.errors import InvalidInput, NotFound
from memgraph.model.enums import IngestStatus
from memgraph.model.remote import IngestedFile, IngestPage
from memgraph.model.tables import IngestFileRow
from memgraph.operations.ingestion.ingest import BY
from memgraph.service.open_orchestrator import OpenOrchestrator
from memgraph.store import ingest_files, memories
from memgraph.store.snapshot import Snapshot
from memgraph.store.visibility import View

BLOCK: Final = 16
"""The minimum number of rows read at a time, when most are hidden."""
Place = tuple[int, str]
_CURSOR: Final = re.compile(r"([0-9]{1,16})\.([0-9a-f]{64})")

TOLD: Final = (
    "version",
    "path",
    "size",
    "format",
    "title",
    "started_at",
    "memories",
    "edges",
    "partial",
    "rejected_items",
    "findings",
    "finding_counts",
    "reason",
    "message",
    "details",
    "items",
)
"""The fields of a manifest that are returned: no paths, and no references to other files that may
be hidden (links and relations).
"""


@dataclass(frozen=True, slots=True)
class FileReader:
    """A reader of files.

    Attributes:
        actor: files that it sent are visible to it; None: no file is visible for that reason.
        everything: True when nothing in the orchestrator is hidden from it.
    """

    view: View
    actor: str | None
    everything: bool


def seen_file(opened: OpenOrchestrator, sha256: str, reader: FileReader) -> IngestedFile | None:
    """Return the record of an ingested file; None if it does not exist or is hidden."""
    with opened.database.read() as snapshot:
        row = ingest_files.get(snapshot, sha256)
        return None if row is None else _seen(snapshot, row, reader)


def seen_files(
    opened: OpenOrchestrator, reader: FileReader, *, limit: int, after: str | None = None
) -> IngestPage:
    """Return a page of files, latest first; see ``Ingestion.list``.

    A cursor holds a time and a digest, so that files dropped again or hidden meanwhile do no harm.
    """
    files: list[IngestedFile] = []
    places: list[Place] = []
    place = None if after is None else _place(after)
    with opened.database.read() as snapshot:
        while len(files) <= limit:
            # Manifests may be large, so read little more than one page.
            page = ingest_files.before(snapshot, place, max(limit + 1 - len(files), BLOCK))
            if not page:
                break
            place = page[-1].recorded_at, page[-1].sha256
            for row in page:
                file = _seen(snapshot, row, reader)
                if file is not None:
                    files.append(file)
                    places.append((row.recorded_at, row.sha256))
    following = _cursor(places[limit - 1]) if len(files) > limit else None
    return IngestPage(items=tuple(files[:limit]), next_cursor=following)


def _cursor(place: Place) -> str:
    recorded_at, sha256 = place
    return f"{recorded_at}.{sha256}"


def _place(cursor: str) -> Place:
    match = _CURSOR.fullmatch(cursor)
    if match is None:
        raise InvalidInput("not a cursor; use the next_cursor of the page before", field="cursor")
    return int(match[1]), match[2]


def no_file(sha256: str) -> NotFound:
    """Return the error for a file that is missing or hidden."""
    return NotFound("no dropped file of this content", sha256=sha256[:64])


def _seen(snapshot: Snapshot, row: IngestFileRow, reader: FileReader) -> IngestedFile | None:
    memory_ids = _memory_ids(row.manifest)
    visible_ids = memories.existing_ids(snapshot, sorted(memory_ids), reader.view)
    is_visible = memory_ids == visible_ids and bool(memory_ids)
    is_sent = reader.actor is not None and row.manifest.get(BY) == reader.actor
    if not (is_visible or is_sent or (not memory_ids and reader.everything)):
        return None
    details: dict[str, Any] = {name: row.manifest[name] for name in TOLD if name in row.manifest}
    return IngestedFile(
        sha256=row.sha256,
        status=_status(row),
        at=row.recorded_at,
        manifest=details if memory_ids == visible_ids else _without_hidden(details, visible_ids),
    )


def _status(row: IngestFileRow) -> Literal["processed", "held", "rejected"]:
    if row.status is IngestStatus.PROCESSED:
        return "processed"
    return "held" if row.manifest.get("reason") == ingest_files.HELD else "rejected"


def _memory_ids(manifest: Mapping[str, Any]) -> set[str]:
    items: Sequence[Mapping[str, Any]] = manifest.get("items", {}).get("memories", ())
    return {item["memory_id"] for item in items if item.get("memory_id")}


def _without_hidden(manifest: dict[str, Any], visible: set[str]) -> dict[str, Any]:
    """Return the manifest without hidden memories and the counts that would reveal them."""
    items = [item for item in manifest["items"]["memories"] if item.get("memory_id") in visible]
    counts = {
        name: manifest[name] for name in manifest if name not in ("memories", "edges", "items")
    }
    return counts | {"items": {"memories": items}}
