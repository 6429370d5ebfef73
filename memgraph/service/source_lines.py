"""The very lines that a memory was read from, and the turns that it rests on.

Lines are read from the files that ingestion keeps in ``processed/``, and only from one that still
has the digest under which the memory was stored; the manifest of that content must say that it
made this memory. Whoever may name any file, digest and lines as the source of what it stores could
read by this what it may not see. Lines that a hidden memory was read from as well are left out.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from memgraph.errors import InvalidInput, NotFound
from memgraph.model.enums import IngestStatus
from memgraph.model.influence import Grounds, Line, SourceLines, SourceState
from memgraph.model.values import Memory, StoredSource
from memgraph.policy.source_places import Part, part_of, texts_of
from memgraph.service.opened import Opened
from memgraph.storage import graph_queries, influence_queries, ingest_files
from memgraph.storage.visibility import View

MAX_LINES: Final = 1_000
MAX_TURNS: Final = 200
MAX_OF_GROUNDS: Final = 1_000
MAX_FILE_BYTES: Final = 256 * 1024 * 1024


class _Kept(NamedTuple):
    """What is left of a file: its bytes if they are the ones that were read."""

    state: SourceState
    data: bytes = b""


def source_lines(opened: Opened, view: View, memory_id: str) -> SourceLines:
    """See ``InfluenceHandle.source_lines``.

    Raises:
        NotFound: there is none, or the view does not show it; both sound the same.
    """
    with opened.database.read() as connection:
        found = graph_queries.visible_memories(connection, [memory_id], view)
        if memory_id not in found:
            raise NotFound(f"no memory {memory_id[:80]!r}", memory_id=memory_id[:80])
        return _Reading(opened, connection, view).of(found[memory_id])


def with_lines(opened: Opened, view: View, found: Grounds, *, most: int) -> Grounds:
    """The same with the lines of the ``most`` nearest memories.

    Raises:
        InvalidInput: ``most`` lies outside of 0..1,000.
    """
    if not isinstance(most, int) or not 0 <= most <= MAX_OF_GROUNDS:
        raise InvalidInput(f"lines lies between 0 and {MAX_OF_GROUNDS:,}", field="lines")
    if not most:
        return found
    own = () if found.memory_id is None else (found.memory_id,)
    ids = list(dict.fromkeys((*own, *found.given, *(each.memory_id for each in found.links))))
    with opened.database.read() as connection:
        reading = _Reading(opened, connection, view)
        lines = tuple(reading.of(found.memory_by_id[one]) for one in ids[:most])
    cut = set(found.cut_reasons) | ({"max_lines"} if len(ids) > most else set())
    told = {"lines": lines, "cut": bool(cut), "cut_reasons": tuple(sorted(cut))}
    return found.model_copy(update=told)


class _Reading:
    """Lines of memories on one snapshot; a file of several memories is read once."""

    def __init__(self, opened: Opened, connection: sa.Connection, view: View) -> None:
        self._folder = opened.paths.processed
        self._connection = connection
        self._view = view
        self._files: dict[tuple[str, str], _Kept] = {}

    def of(self, memory: Memory) -> SourceLines:
        [source] = graph_queries.sources_of(self._connection, [memory])
        turns = influence_queries.turns_of(
            self._connection, memory.memory_id, self._view, limit=MAX_TURNS + 1
        )
        cut = {"max_turns"} if len(turns) > MAX_TURNS else set()
        part = part_of(source.locator)
        kept = self._kept(memory, source)
        lines: Sequence[Line] = ()
        if kept.state == "kept" and part is not None:
            lines = self._lines(source, part, kept.data)
        if len(lines) > MAX_LINES:
            cut.add("max_lines")
        return SourceLines(
            memory_id=memory.memory_id,
            source=source,
            state=kept.state,
            path=source.source_path,
            first_line=None if part is None else part.first,
            last_line=None if part is None else part.last,
            lines=tuple(lines[:MAX_LINES]),
            turns=tuple(turns[:MAX_TURNS]),
            cut=bool(cut),
            cut_reasons=tuple(sorted(cut)),
        )

    def _kept(self, memory: Memory, source: StoredSource) -> _Kept:
        path, sha256 = source.source_path, source.content_sha256
        if path is None:
            return _Kept("none")
        manifest = {} if sha256 is None else self._manifest(sha256)
        if sha256 is None or not _made(manifest, memory.memory_id):
            return _Kept("unverified")
        if not memory.content or manifest.get("erased"):
            return _Kept("erased")
        if (path, sha256) not in self._files:
            # An erasure overwrites lines in place: those that are left are where they were.
            digest = manifest.get("redacted", {}).get("sha256", sha256)
            self._files[path, sha256] = _read(self._folder, path, digest)
        return self._files[path, sha256]

    def _manifest(self, sha256: str) -> Mapping[str, Any]:
        """What is kept of a content that was taken; empty: none was."""
        known = ingest_files.status_of(self._connection, sha256)
        return known[1] if known is not None and known[0] is IngestStatus.PROCESSED else {}

    def _lines(self, source: StoredSource, part: Part, data: bytes) -> list[Line]:
        hidden = influence_queries.hidden_locators(
            self._connection, source.content_sha256 or "", self._view
        )
        return [Line(number=at, text=text) for at, text in texts_of(data, part, _parts(hidden))]


def _made(manifest: Mapping[str, Any], memory_id: str) -> bool:
    """Whether a memory was stored of the content that a manifest tells of."""
    made = manifest.get("items", {}).get("memories", ())
    return any(
        each.get("memory_id") == memory_id and each.get("outcome") == "stored" for each in made
    )


def _parts(locators: Iterable[str | None]) -> list[Part]:
    """Places that may not be shown; of one that is not told it may be the whole file."""
    return [part_of(each) or Part() for each in locators]


def _read(folder: Path, told: str, sha256: str) -> _Kept:
    """The bytes of a file that ingestion keeps, if they have that digest."""
    path = _kept_path(folder, told)
    if path is None:
        return _Kept("gone")
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        # Not there, a link, or not to be read: it is not what ingestion has put there.
        return _Kept("gone")
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            return _Kept("gone")
        if status.st_size > MAX_FILE_BYTES:
            return _Kept("changed")
        data = file.read(MAX_FILE_BYTES)
    if hashlib.sha256(data).hexdigest() != sha256:
        return _Kept("changed")
    return _Kept("kept", data)


def _kept_path(folder: Path, told: str) -> Path | None:
    """Where the file of a source lies now: a root may have been moved since.

    None: it does not lie among the files that ingestion keeps, or a link leads there.
    """
    parts = Path(told).parts
    kept = (folder.parent.name, folder.name)
    places = [at for at in range(len(parts) - 2) if parts[at : at + 2] == kept]
    if not places:
        return None
    inside = parts[places[-1] + 2 :]
    real = Path(os.path.realpath(folder)).joinpath(*inside)
    return real if ".." not in inside and Path(os.path.realpath(real)) == real else None
