"""Overwrite erased texts in an orchestrator's files, and search its folder for what remains.

Overwriting in place keeps line numbers, needs no second copy, and can be repeated. Files that wait
to be ingested are not changed: their digest identifies the sender.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from memgraph.model.erasure import ErasureTargetKind
from memgraph.paths import OrchestratorPaths
from memgraph.rules.erasure import FILLER
from memgraph.rules.search_terms import SearchTerms, joined
from memgraph.rules.sources import UTF8, FileText, encoding_of, line_spans, part_of
from memgraph.store import erasure
from memgraph.store.engine import Database
from memgraph.store.erasure import MemoryToErase
from memgraph.store.snapshot import Snapshot
from memgraph.store.stores import store_of

MAX_FILE_BYTES: Final = 256_000_000
MANIFEST_ENDING: Final = ".manifest.json"
Note = Callable[[str, str | None], None]
"""Called before a file of the drop zone is changed, with its digest and the one it will have."""
_WHOLE: Final = frozenset({ErasureTargetKind.PATH, ErasureTargetKind.CONTENT})
# Line ends and the mark of an encoding stay.
_STAYS: Final = re.compile(rb"(\r|\n|\xe2\x80[\xa8\xa9]|\xc2\x85|\xef\xbb\xbf)")
_MAGIC: Final = b"SQLite format 3\x00"
_SIDE: Final = ("-wal", "-shm", "-journal")
_CHUNK: Final = 1 << 24
_COPY: Final = (
    "import shutil, sys; shutil.copyfileobj(open(sys.argv[1], 'rb'), sys.stdout.buffer, 1 << 20)"
)


@dataclass
class ErasedTexts:
    """What an erasure removes from rows and files; the row ``erasing`` holds it encrypted.

    Attributes:
        target: the named target.
        asked: the texts that the erasure was asked for; ``names``: the names of what goes;
            ``own``: the texts of memories; ``labels``: what only stands beside them, as titles do.
        lines: the numbers of the lines that go from files, by path relative to the folder;
            ``removals``: the files that go as a whole.
    """

    target: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    own: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    lines: dict[str, list[int]] = field(default_factory=dict)
    removals: list[str] = field(default_factory=list)

    @property
    def strings(self) -> dict[str, None]:
        return dict.fromkeys([*self.asked, *self.names, *self.own, *self.labels])


@dataclass(slots=True)
class FoundFiles:
    """Files with erased texts, removed ones, those that cannot be read or written, and what still
    has a text; then how much was searched."""

    redacted: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    remains: list[str] = field(default_factory=list)
    files: int = 0
    tables: int = 0

    @contextmanager
    def trying(self, relative: str) -> Iterator[None]:
        """Ignore a file that disappears, and note one that cannot be read or written."""
        try:
            yield
        except FileNotFoundError:
            pass
        except OSError:
            self.refused.append(relative)


def source_files(
    paths: OrchestratorPaths,
    snapshot: Snapshot,
    kind: ErasureTargetKind,
    rows: Sequence[MemoryToErase],
    erased: ErasedTexts,
) -> tuple[list[str], list[str]]:
    """Add the lines and files to erase of those that erased memories were read from.

    A named file is removed if no remaining memory comes from it. In other files the lines of erased
    memories are overwritten, except lines that a remaining memory cites.

    Returns:
        The texts of these lines, and values of JSON; then the files outside of the drop zone,
        which stay.
    """
    texts, outside, ids = list[str](), list[str](), [row.memory_id for row in rows]
    zone = Path(os.path.realpath(paths.ingest))
    for name in sorted({row.source_path for row in rows if row.source_path is not None}):
        path = Path(os.path.realpath(name))
        if not path.is_relative_to(zone):
            outside.append(name)
            continue
        relative = str(paths.ingest.relative_to(paths.directory) / path.relative_to(zone))
        try:
            data = _whole(path)
        except OSError:
            # It is gone, or was never a file that ingestion read.
            continue
        kept = erasure.remaining_locators(snapshot, name, ids)
        if kind in _WHOLE and not kept:
            erased.removals += [relative, relative + MANIFEST_ENDING]
            continue
        own = [row.locator or "" for row in rows if row.source_path == name]
        text = _as_utf8(data)
        places = line_spans(text)
        lines = sorted(_numbers(own, len(places)) - _numbers(kept, len(places)))
        erased.lines[relative] = lines
        spans = (slice(*places[number - 1]) for number in lines)
        texts += [text[span].decode("utf-8", "replace") for span in spans]
        file = FileText.of(data)
        for pointer in own:
            if pointer.startswith("/"):
                texts += strings_in(json.loads(file.value_at(pointer) or "null"))
    return texts, outside


def _numbers(locators: Iterable[str | None], lines: int) -> set[int]:
    """Return the numbers of the lines that locators name, of so many lines."""
    parts = [part for part in map(part_of, locators) if part is not None and part.pointer is None]
    return {
        number
        for part in parts
        for number in range(part.first or 1, min(part.last or lines, lines) + 1)
    }


def strings_in(value: Any) -> Iterator[str]:
    """Yield the strings in a JSON value of any depth, in order."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            pending.extend(reversed(item.values()))
        elif isinstance(item, list):
            pending.extend(reversed(item))


def erase_files(
    paths: OrchestratorPaths,
    database: Database,
    terms: SearchTerms,
    memory_ids: Sequence[str],
    erased: ErasedTexts,
    note: Note | None,
) -> FoundFiles:
    """Overwrite erased texts in files, and remove the files that are erased entirely.

    A copy of the database that contains one of the memories is removed with its side files, since
    it cannot be edited; and so are all snapshots of bulletins.

    Args:
        note: None: nothing is changed, only found.
    """
    # Beside a server, too: there such a file is a store that a killed move left, for the next move
    # to put aside. It is searched, and so reported, but stays.
    done, own = FoundFiles(), store_of(paths).files()
    ids = SearchTerms(memory_ids, whole=memory_ids)

    def goes(path: Path) -> bool:
        if path.is_relative_to(paths.bulletins):
            return True
        if path in own or not _is_database(path):
            return False
        parts = (piece for file in _with_side_files(path) for piece in pieces(file))
        return any(ids.found_in(piece) or terms.found_in(piece) for piece in parts)

    for name in database.copies(memory_ids):
        if note is not None:
            database.remove_copy(name)
        done.removed.append(name)
    for path, relative in files_of(paths):
        with done.trying(relative):
            if relative in erased.removals:
                sha256 = _digest(_whole(path))
                if note is not None:
                    note(sha256, None)
            elif any(map(path.is_relative_to, (paths.processed, paths.rejected, paths.logs))):
                if _redact(path, terms, erased.lines.get(relative, []), note):
                    done.redacted.append(relative)
                continue
            elif not goes(path):
                continue
            for file in _with_side_files(path):
                if note is not None:
                    file.unlink()
                done.removed.append(str(file.relative_to(paths.directory)))
    return done


def search(paths: OrchestratorPaths, database: Database, terms: SearchTerms) -> FoundFiles:
    """Search all files, and the tables of a database server, for erased texts."""
    done, own = FoundFiles(), store_of(paths).files()
    for path, relative in files_of(paths):
        with done.trying(relative):
            if path in own or _is_database(path):
                found = any(terms.found_in(piece) for piece in pieces(path, terms.overlap))
            else:
                found = any(terms.hits(_as_utf8(_whole(path))))
            done.files += 1
            done.remains += [relative] * found
    for name, parts in database.contents():
        found = any(any(terms.hits(piece)) for piece in _overlapping(parts, terms.overlap))
        done.tables += 1
        done.remains += [name] * found
    return done


def files_of(paths: OrchestratorPaths) -> Iterator[tuple[Path, str]]:
    """Yield every regular file of an orchestrator, also relative to its folder; follow no links."""
    for root, folders, names in os.walk(paths.directory):
        folders.sort()
        for path in (Path(root, name) for name in sorted(names)):
            if path.is_file() and not path.is_symlink():
                yield path, str(path.relative_to(paths.directory))


def pieces(path: Path, overlap: int = 64) -> Iterator[bytes]:
    """Yield the bytes of a database's file in overlapping pieces.

    Another process reads it, because closing a file drops all locks that SQLite holds on it in
    this process.

    Raises:
        OSError: it cannot be read.
    """
    command = [sys.executable, "-I", "-S", "-c", _COPY, os.fspath(path)]
    nothing = subprocess.DEVNULL
    with subprocess.Popen(command, stdin=nothing, stdout=subprocess.PIPE, stderr=nothing) as reader:
        if reader.stdout is not None:  # it was asked for
            read = reader.stdout.read
            yield from _overlapping(iter(lambda: read(_CHUNK), b""), overlap)
    if reader.returncode:
        # SQLite's side files may disappear at any time.
        kind = OSError if path.exists() else FileNotFoundError
        raise kind(f"{path} cannot be read")


def _overlapping(parts: Iterable[bytes], overlap: int) -> Iterator[bytes]:
    """Join parts into large pieces, each of which repeats the end of the one before."""
    piece, fresh = bytearray(), 0
    for part in parts:
        piece += part
        fresh += len(part)
        if fresh >= _CHUNK:
            yield bytes(piece)
            del piece[: max(len(piece) - overlap, 0)]
            fresh = 0
    if fresh:
        yield bytes(piece)


def _is_database(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def _with_side_files(path: Path) -> list[Path]:
    """Return a file after those that SQLite keeps beside it: a log without its database is only a
    file that cannot be edited.
    """
    side_files = (path.with_name(path.name + suffix) for suffix in _SIDE)
    return [*(file for file in side_files if file.exists()), path]


def _whole(path: Path) -> bytes:
    """Return the bytes of a file. Raises OSError: it is no regular file, or too large."""
    status = path.lstat()
    if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_FILE_BYTES:
        raise OSError(f"{path} is no file of at most {MAX_FILE_BYTES:,} bytes")
    return path.read_bytes()


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _redact(path: Path, terms: SearchTerms, lines: Sequence[int], note: Note | None) -> bool:
    """Overwrite lines of a file and every occurrence of an erased text; return whether any was.

    Without ``note`` the file stays as it is.
    """
    status, data = path.stat(), _whole(path)
    fresh = _redacted(data, terms, lines)
    if fresh != data:
        if status.st_nlink > 1:
            raise PermissionError(f"{path} has another hard link elsewhere")
        if note is not None:
            # Noted first, so that the file is known even if the process is killed in between.
            note(_digest(data), _digest(fresh))
            _overwrite(path, status.st_ino, fresh)
    return fresh != data or bool(lines)


def _redacted(data: bytes, terms: SearchTerms, lines: Sequence[int]) -> bytes:
    """Return a file without erased texts and some lines, of the same length and lines."""
    text = _as_utf8(data)
    places = line_spans(text)
    whole_lines = [places[number - 1] for number in lines if number <= len(places)]
    spans = joined([*terms.spans(text), *whole_lines])
    if not spans:
        return data
    fresh = _overwritten(data, text, spans, FILLER)
    # A text may consist of the word of the filler.
    is_left = any(terms.hits(_as_utf8(fresh)))
    return _overwritten(data, text, spans, " ") if is_left else fresh


def _overwritten(data: bytes, text: bytes, spans: Sequence[tuple[int, int]], filler: str) -> bytes:
    """Return a file with filler in some spans of its text in UTF-8."""
    encoding, parts, last = encoding_of(data), list[bytes](), 0
    for start, end in spans:
        split = _STAYS.split(text[start:end])
        split[::2] = [_filled(part, encoding, filler) for part in split[::2]]
        parts += [text[last:start], *split]
        last = end
    whole = b"".join([*parts, text[last:]])
    if encoding == UTF8:
        return whole
    whole = whole.decode("utf-8", "surrogatepass").encode(encoding, "surrogatepass")
    return whole + data[len(whole) :]


def _filled(part: bytes, encoding: str, filler: str) -> bytes:
    """Return filler in ASCII with as many units of the encoding as a text in UTF-8."""
    size = len(part)
    if encoding != UTF8:
        size = len(part.decode("utf-8", "surrogatepass").encode(encoding, "surrogatepass")) // 2
    return (filler * (size // len(filler) + 1))[:size].encode()


def _as_utf8(data: bytes) -> bytes:
    encoding = encoding_of(data)
    if encoding == UTF8:
        return data
    whole = data[: len(data) // 2 * 2]
    return whole.decode(encoding, "surrogatepass").encode("utf-8", "surrogatepass")


def _overwrite(path: Path, inode: int, data: bytes) -> None:
    """Overwrite a file. Raises OSError: it is another one by now, as after a log's rotation."""
    handle = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(handle, "wb") as file:
        if os.fstat(handle).st_ino != inode:
            raise OSError(f"{path} was replaced")
        file.write(data)
        file.flush()
        os.fsync(handle)
