"""Preview of an ingestion run, for ``memgraph ingest --dry-run``. Nothing is written."""

from __future__ import annotations

import hashlib
import posixpath
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ingest.candidates import Format, ParsedDocument
from ingest.claims import FileClaim, FileResult, Outcome, recorded_fields, summary_of
from ingest.drop_zone import DropEntry, FileToCopy, choose, display_path
from ingest.extract import to_memories
from ingest.parse import Above, parse_document
from ingest.pipeline import (
    HEAD_BYTES,
    HELD,
    MAX_ATTEMPTS,
    MEGABYTE,
    date_orders,
    heads_of,
    place_of,
    read_above,
    same_content,
    waiting_files,
)
from ingest.reasons import RejectionReason
from ingest.safe_files import FileVanished, StillBeingWritten, open_parent, read_safely
from memgraph.errors import IngestRejected, MemoryDisabled

if TYPE_CHECKING:
    from memgraph.operations.orchestrator import Orchestrator

RECOGNISED: Final[Mapping[Format, str]] = {
    "decision_record": "decision record",
    "markdown": "Markdown notes",
    "transcript": "conversation as text",
    "prose": "plain text",
    "chat": "conversation as JSON",
    "memories": "memgraph document",
    "observations": "records as JSON",
}
UNKNOWN_JSON: Final = "unknown JSON"


@dataclass(frozen=True, slots=True)
class FilePreview(FileResult):
    """The expected result of a file.

    ``memories`` is the maximum number of new memories, and ``types`` that number by memory type:
    memories that are stored already are not stored again. ``edges`` includes links to other files.
    """

    recognised: str | None = None
    memories: int = 0
    types: Mapping[str, int] = field(default_factory=dict)
    edges: int = 0


def preview(
    store: Orchestrator, paths: Iterable[Path] = (), *, retry: bool = False
) -> tuple[list[FilePreview], list[FileToCopy]]:
    """Return previews of the given files and the drop zone, and the files that would not be copied.

    A model that is configured as the extractor is not called.

    Raises:
        MemoryDisabled: ``memory.ingest.enabled`` is false.
        IngestRejected: the drop zone is a link.
    """
    if not store.settings.memory.ingest.enabled:
        raise MemoryDisabled("ingestion is disabled: memory.ingest.enabled = false")
    files = list(choose(paths))
    previewer = _Preview(store, files)
    not_copied: list[FileToCopy] = []
    previews: list[FilePreview] = []
    for chosen in files:
        result = previewer.named(chosen) if chosen.reason is None else chosen.reason
        if isinstance(result, RejectionReason):
            not_copied.append(FileToCopy(chosen.source, chosen.relative, result))
        else:
            previews.append(result)
    return [*previews, *previewer.waiting(retry=retry)], not_copied


def label(document: ParsedDocument) -> str:
    """Return the name of a file's format for people."""
    if document.origin is None or document.format in ("decision_record", "transcript"):
        return RECOGNISED[document.format]
    return f"{document.origin} {'note' if document.format == 'markdown' else 'export'}"


def _heads(files: Iterable[FileToCopy]) -> Iterator[tuple[str, bytes]]:
    """Yield the paths and the first bytes of the Markdown files that would be copied."""
    for file in files:
        if file.reason is None and file.source.suffix.casefold() == ".md" and file.source.is_file():
            with suppress(OSError), file.source.open("rb") as opened:
                yield file.relative.as_posix(), opened.read(HEAD_BYTES)


class _Preview:
    def __init__(self, store: Orchestrator, files: Sequence[FileToCopy]) -> None:
        self._store = store
        self._zone = store.paths.ingest
        self._max_bytes = store.settings.memory.ingest.max_file_size_mb * MEGABYTE
        self._seen: dict[str, str] = {}
        self._new, self._begun = waiting_files(self._zone)
        self._orders = date_orders([*_heads(files), *heads_of(self._zone, self._new)])

    def named(self, chosen: FileToCopy) -> FilePreview | RejectionReason:
        """Return the preview of a file that would be copied, or the reason why it would not."""
        path = chosen.relative.as_posix()
        if not chosen.source.is_file():
            return RejectionReason.NOT_REGULAR_FILE

        def above(name: str) -> bytes | None:
            if len(chosen.relative.parts) > 1:
                with suppress(OSError):
                    return (chosen.source.parent.parent / name).read_bytes()
            return read_above(self._zone, (), path, name)

        try:
            with chosen.source.open("rb") as file:
                data = file.read(self._max_bytes + 1)
        except OSError:
            return RejectionReason.UNREADABLE
        if len(data) > self._max_bytes:
            message = f"the file is larger than {self._max_bytes} bytes"
            return FilePreview(path, "rejected", RejectionReason.TOO_LARGE, message)
        return self._content(display_path(path), data, above)

    def waiting(self, *, retry: bool) -> Iterator[FilePreview]:
        """Yield the previews of the files that wait, and of those that a run has begun."""
        items = (*self._new, *self._begun)
        claimed = [item for item in items if isinstance(item, FileClaim)]
        for item in items:
            path = display_path(item.path)
            if isinstance(item, DropEntry) and item.reason is not None:
                yield FilePreview(path, "skipped", item.reason)
            elif isinstance(item, FileClaim) and not retry and item.attempts >= MAX_ATTEMPTS:
                outcome: Outcome = "held" if item.held is None else "skipped"
                yield FilePreview(path, outcome, RejectionReason.HELD, HELD)
            else:
                above = partial(read_above, self._zone, claimed, item.path)
                with suppress(FileVanished):
                    yield self._file(place_of(item), path, above)

    def _file(self, path: str, display: str, above: Above) -> FilePreview:
        try:
            with open_parent(self._zone, path) as (folder, name):
                data = read_safely(name, folder, max_bytes=self._max_bytes).data
        except StillBeingWritten:
            return FilePreview(display, "skipped", RejectionReason.STILL_BEING_WRITTEN)
        except IngestRejected as error:
            return _rejected(display, error)
        return self._content(display, data, above)

    def _content(self, display: str, data: bytes, above: Above) -> FilePreview:
        sha256 = hashlib.sha256(data).hexdigest()
        stored = self._store.ingestion.stored(sha256)
        try:
            order = self._orders.get(posixpath.dirname(display))
            parsed = parse_document(data, display, above, order)
            memories = to_memories(parsed, sha256=sha256, source_path=display)
        except IngestRejected as error:
            return _rejected(display, error, sha256)
        if stored is not None or sha256 in self._seen:
            seen = f"the same content as {self._seen.get(sha256)}"
            return FilePreview(
                display,
                "duplicate",
                message=seen if stored is None else same_content(stored),
                recognised=label(parsed),
                sha256=sha256,
            )
        self._seen[sha256] = display
        keys = {f"#{memory.key}" for memory in memories}
        edges = sum({edge.from_id, edge.to_id} <= keys for edge in parsed.edges)
        return FilePreview(
            display,
            "processed",
            sha256=sha256,
            **recorded_fields(summary_of(parsed.findings)),
            recognised=label(parsed),
            memories=len(memories),
            types=dict(sorted(Counter(memory.type.value for memory in memories).items())),
            edges=edges + len(parsed.links),
        )


def _rejected(display: str, error: IngestRejected, sha256: str | None = None) -> FilePreview:
    reason = str(error.details["reason"])
    label = UNKNOWN_JSON if reason == RejectionReason.JSON_SHAPE_UNKNOWN else None
    shape = error.details.get("found")
    message = f"{error.message}; this is {shape}" if shape else error.message
    return FilePreview(display, "rejected", reason, message, sha256, recognised=label)
