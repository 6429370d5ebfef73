"""List the sources of memories, and read the lines of their files."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

from memgraph.errors import InvalidInput, NotFound
from memgraph.model.enums import IngestStatus, SourceName
from memgraph.model.influence import EvidenceReport, SourceLine, SourceLines, SourceState
from memgraph.model.sources import NamedSource, SourceInfo, SourcePage
from memgraph.model.values import Memory, StoredSource, one_of
from memgraph.paths import OrchestratorPaths
from memgraph.rules.erasure import with_marks
from memgraph.rules.sources import FilePart, FileText, part_of, texts_of
from memgraph.service.open_orchestrator import OpenOrchestrator
from memgraph.store import graph, influence, ingest_files, sources as sources_rows
from memgraph.store.ingest_files import REDACTED
from memgraph.store.items import is_id
from memgraph.store.snapshot import Snapshot
from memgraph.store.visibility import View

LISTED: Final = (SourceName.CONVERSATION, SourceName.PATH, SourceName.RUN)
"""The kinds listed by default. Content hashes are left out: their files are listed as paths."""

_SHA256: Final = re.compile(r"[0-9a-f]{64}")


def named_of(paths: OrchestratorPaths, kind: SourceName | str, name: str) -> NamedSource:
    """Return a source under the name that its memories record.

    A path in the drop zone becomes the path of the ingested file. A relative path lies in the
    folder of ingested files, and ``<orchestrator>/memory/…`` lies below the root. The file need not
    exist any more.

    Raises:
        InvalidInput: the kind is unknown, the name is empty or not a text, or the content is not a
            SHA-256.
    """
    kind = one_of(SourceName, kind, "kind")
    if not is_id(name) or not name.strip() or "\0" in name:
        raise InvalidInput("the name of a source must be non-empty text", field=kind.value)
    if kind is SourceName.PATH:
        return NamedSource(kind, _stored_path(paths, name))
    if kind is SourceName.CONTENT and not _SHA256.fullmatch(name):
        raise InvalidInput(
            "a content must be given by its SHA-256, 64 hexadecimal digits", field=kind.value
        )
    return NamedSource(kind, name)


def listing(
    snapshot: Snapshot,
    view: View,
    *,
    kind: SourceName | None,
    limit: int,
    after: str | None,
    sender: str | None = None,
) -> SourcePage:
    """Return a page of the sources of visible memories; see ``Sources.list``."""
    kinds = LISTED if kind is None else (kind,)
    place = _place(after, kinds) if after is not None else NamedSource(kinds[0], "")
    results: list[SourceInfo] = []
    for source_kind in kinds[kinds.index(place.kind) :]:
        name = place.name if source_kind is place.kind else ""
        room = limit + 1 - len(results)
        names = sources_rows.names(
            snapshot, source_kind, view, after=name, limit=room, sender=sender
        )
        infos = (
            sources_rows.info(snapshot, NamedSource(source_kind, source), view) for source in names
        )
        results.extend(source for source in infos if source is not None)
    more = len(results) > limit
    following = f"{results[limit - 1].kind.value}:{results[limit - 1].name}" if more else None
    return SourcePage(items=tuple(results[:limit]), next_after=following)


def no_source(source: NamedSource) -> NotFound:
    """Return the error for a source that is missing or hidden."""
    # The absolute path shows where a mistyped relative path was looked up.
    return NotFound(f"no memory comes from this source: {source.name[:200]}", name=source.name[:80])


def _place(after: str, kinds: tuple[SourceName, ...]) -> NamedSource:
    kind, _, name = after.partition(":")
    if kind not in {part.value for part in kinds} or not name:
        raise InvalidInput("after must be the next_after of a page", field="after")
    return NamedSource(SourceName(kind), name)


def _stored_path(paths: OrchestratorPaths, name: str) -> str:
    own = os.path.join(paths.name, "memory", "")  # noqa: PTH118 - names, which need not exist
    base = paths.root if name.startswith(own) else paths.processed
    path = os.path.realpath(os.path.join(base, name))  # noqa: PTH118
    ingest, processed, rejected = (
        os.path.realpath(part) for part in (paths.ingest, paths.processed, paths.rejected)
    )
    inside = path.startswith(ingest + os.sep)
    if inside and not f"{path}{os.sep}".startswith((processed + os.sep, rejected + os.sep)):
        path = processed + path.removeprefix(ingest)
    return path


MAX_LINES: Final = 1_000
MAX_TURNS: Final = 200
MAX_FILE_BYTES: Final = 256 * 1024 * 1024


def source_lines(opened: OpenOrchestrator, view: View, memory_id: str) -> SourceLines:
    """Return the source lines of a memory; see ``Sources.lines``."""
    with opened.database.read() as snapshot:
        memory = graph.visible_memory(snapshot, memory_id, view)
        return _Reading(opened, snapshot, view).of_all([memory])[0]


def with_lines(
    opened: OpenOrchestrator, view: View, report: EvidenceReport, *, limit: int
) -> EvidenceReport:
    """Return the report with the source lines of the ``limit`` nearest memories."""
    if not limit:
        return report
    links = [link.memory_id for link in report.links]
    # Order by distance: for a run, first what it was given; for a memory, first its evidence.
    nearest = (*report.given, *links)
    if report.memory_id is not None:
        nearest = (report.memory_id, *links, *report.given)
    ids = list(dict.fromkeys(nearest))
    with opened.database.read() as snapshot:
        # Memories erased meanwhile have no source any more.
        visible = graph.visible_memories(snapshot, ids[:limit], view)
        lines = _Reading(opened, snapshot, view).of_all(list(visible.values()))
    cut = set(report.cut_reasons) | ({"max_lines"} if len(ids) > limit else set())
    source_lines = {"lines": lines, "cut": bool(cut), "cut_reasons": tuple(sorted(cut))}
    return report.model_copy(update=source_lines)


class _File(NamedTuple):
    """A source file and what is recorded about it.

    Attributes:
        made: the ids of the memories that were stored from it.
        hidden: the parts that the reader may not see.
        text: None unless the file is ``kept``.
        redacted: whether an erasure has overwritten texts in it.
    """

    state: SourceState
    text: FileText | None = None
    made: Collection[str] = ()
    hidden: Sequence[FilePart] = ()
    redacted: bool = False


class _Reading:
    """Read source lines for memories of one snapshot.

    Each file is read once, and only one is in memory at a time.
    """

    def __init__(self, opened: OpenOrchestrator, snapshot: Snapshot, view: View) -> None:
        self._folder = opened.paths.processed
        self._snapshot = snapshot
        self._view = view

    def of_all(self, memories: Sequence[Memory]) -> tuple[SourceLines, ...]:
        """Return the source lines of the memories, in their order."""
        sources = {
            memory.source_id: memory for memory in graph.sources_of(self._snapshot, memories)
        }
        by_file: dict[tuple[str | None, str | None], list[Memory]] = {}
        for memory in memories:
            source = sources[memory.source_id]
            by_file.setdefault((source.source_path, source.content_sha256), []).append(memory)
        by_id: dict[str, SourceLines] = {}
        for (path, sha256), file_memories in by_file.items():
            file = None if path is None or sha256 is None else self._file(path, sha256)
            for memory in file_memories:
                by_id[memory.memory_id] = self._of(memory, sources[memory.source_id], file)
        return tuple(by_id[memory.memory_id] for memory in memories)

    def _of(self, memory: Memory, source: StoredSource, file: _File | None) -> SourceLines:
        turns = influence.turns_of(
            self._snapshot, memory.memory_id, self._view, limit=MAX_TURNS + 1
        )
        cut = {"max_turns"} if len(turns) > MAX_TURNS else set()
        part = part_of(source.locator)
        state = _state(memory, source, file)
        lines: Sequence[SourceLine] = ()
        if state == "kept" and part is not None and file is not None and file.text is not None:
            texts = texts_of(file.text, part, file.hidden)
            shown = with_marks if file.redacted else str
            first = islice(texts, MAX_LINES + 1)
            lines = [SourceLine(number=at, text=shown(text)) for at, text in first]
        if len(lines) > MAX_LINES:
            cut.add("max_lines")
        return SourceLines(
            memory_id=memory.memory_id,
            source=source,
            state=state,
            path=source.source_path,
            first_line=None if part is None else part.first,
            last_line=None if part is None else part.last,
            lines=tuple(lines[:MAX_LINES]),
            turns=tuple(turns[:MAX_TURNS]),
            cut=bool(cut),
            cut_reasons=tuple(sorted(cut)),
        )

    def _file(self, path: str, sha256: str) -> _File:
        record = ingest_files.get(self._snapshot, sha256)
        is_processed = record is not None and record.status is IngestStatus.PROCESSED
        manifest: Mapping[str, Any] = record.manifest if record and is_processed else {}
        items = manifest.get("items", {}).get("memories", ())
        made = {item.get("memory_id") for item in items if item.get("outcome") == "stored"} - {None}
        if not made:
            return _File("unverified")
        hidden = influence.hidden_locators(self._snapshot, sha256, self._view)
        # A locator that names no part stands for the whole file.
        parts = [part_of(locator) or FilePart() for locator in hidden]
        # An erasure overwrites lines in place, so the remaining lines keep their numbers.
        state, text = _read(self._folder, path, manifest.get(REDACTED, sha256))
        return _File(state, text, made, parts, redacted=REDACTED in manifest)


def _state(memory: Memory, source: StoredSource, file: _File | None) -> SourceState:
    if source.source_path is None:
        return "none"
    if file is None or memory.memory_id not in file.made:
        return "unverified"
    return file.state if memory.content else "erased"


def _read(folder: Path, text: str, sha256: str) -> tuple[SourceState, FileText | None]:
    """Return the state of a stored file, and its text if it has the expected digest."""
    path = _kept_path(folder, text)
    if path is None:
        return "gone", None
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        # Missing, a link or unreadable: it is not the file that ingestion put there.
        return "gone", None
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            return "gone", None
        data = file.read(MAX_FILE_BYTES) if status.st_size <= MAX_FILE_BYTES else b""
    if hashlib.sha256(data).hexdigest() != sha256:
        return "changed", None
    return "kept", FileText.of(data)


def _kept_path(folder: Path, text: str) -> Path | None:
    """Return the current path of a source's file, even if the root was moved since.

    Returns None if the file is not one that ingestion keeps, or its path contains a link.
    """
    parts = Path(text).parts
    stored = (folder.parent.name, folder.name)
    starts = [at for at in range(len(parts) - 2) if parts[at : at + 2] == stored]
    if not starts:
        return None
    inside = parts[starts[-1] + 2 :]
    real = Path(os.path.realpath(folder)).joinpath(*inside)
    return real if ".." not in inside and Path(os.path.realpath(real)) == real else None
