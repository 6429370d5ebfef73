"""Overwrite erased texts in an orchestrator's files, and search its folder for what remains.

Overwriting in place keeps line numbers, needs no second copy, and can be repeated. Files that wait
to be ingested are not changed: their digest identifies the sender.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import IO, Any, Final

from memgraph.model.erasure import ErasureTargetKind
from memgraph.paths import OrchestratorPaths
from memgraph.rules.erasure import fill
from memgraph.rules.search_terms import SearchTerms
from memgraph.rules.sources import UTF8, encoding_of, line_spans, part_of
from memgraph.store import erasure
from memgraph.store.engine import Database, store_of
from memgraph.store.erasure import MemoryToErase
from memgraph.store.files import draft_beside, publish
from memgraph.store.snapshot import Snapshot

MAX_FILE_BYTES: Final = 256_000_000
MANIFEST_ENDING: Final = ".manifest.json"
_WHOLE: Final = frozenset({ErasureTargetKind.PATH, ErasureTargetKind.CONTENT})
_LINE_ENDS: Final = ("\r", "\n")
_MAGIC: Final = b"SQLite format 3\x00"
_CHUNK: Final = 1 << 24
_COPY: Final = (
    "import shutil, sys; shutil.copyfileobj(open(sys.argv[1], 'rb'), sys.stdout.buffer, 1 << 20)"
)


@dataclass(slots=True)
class SourceFiles:
    """What an erasure takes from the files of its memories.

    Attributes:
        spans: of a file, relative to the folder, the lines (first and last) that go.
        removals: files that go as a whole.
        contents: the digests of the files of which something goes.
        outside: source files outside of the drop zone, which stay.
        texts: the lines that go; ``labels``: other lines of files that go as a whole;
            ``headings``: those with lines under them that stay.
    """

    spans: dict[str, list[list[int]]] = field(default_factory=dict)
    removals: list[str] = field(default_factory=list)
    contents: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    headings: list[str] = field(default_factory=list)


@dataclass(slots=True)
class FoundFiles:
    """Files relative to the folder: with erased texts, removed ones, those that could not be
    read or written, and those that are still to be ingested. ``files``, ``bytes``: how many were
    searched."""

    redacted: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    files: int = 0
    bytes: int = 0


def source_files(
    paths: OrchestratorPaths,
    snapshot: Snapshot,
    kind: ErasureTargetKind,
    rows: Sequence[MemoryToErase],
) -> SourceFiles:
    """Return what goes from the files that erased memories were read from.

    A named file is removed if no remaining memory comes from it. In other files the lines of erased
    memories are overwritten, except lines that a remaining memory cites.
    """
    result = SourceFiles(
        contents=sorted({row.content_sha256 for row in rows if row.content_sha256})
    )
    pks = [row.pk for row in rows]
    by_path: dict[str, list[MemoryToErase]] = {}
    for row in rows:
        if row.source_path is not None:
            by_path.setdefault(row.source_path, []).append(row)
    for path, own in sorted(by_path.items()):
        relative = _below(paths, path)
        if relative is None:
            result.outside.append(path)
            continue
        data = _read(paths.directory / relative)
        if data is None:
            continue
        kept = erasure.remaining_locators(snapshot, path, pks)
        if kind in _WHOLE and not kept:
            result.removals += [relative, relative + MANIFEST_ENDING]
            lines = data.decode(encoding_of(data), "replace").splitlines()
            # Memories have a heading without its marks as their title.
            result.labels += [line.lstrip("# ") for line in lines]
            continue
        _cited(result, relative, data, [row.locator for row in own], kept)
    return result


def _cited(
    result: SourceFiles,
    relative: str,
    data: bytes,
    own: Sequence[str | None],
    kept: Sequence[str | None],
) -> None:
    places, encoding = line_spans(data), encoding_of(data)
    lines = [data[first:last].decode(encoding, "replace") for first, last in places]
    stays = set(chain.from_iterable(_numbers(item, len(lines)) for item in kept))
    goes = sorted(set(chain.from_iterable(_numbers(item, len(lines)) for item in own)) - stays)
    if goes:
        result.spans[relative] = [[number, number] for number in goes]
    result.texts += [lines[number - 1] for number in goes]
    result.texts += _pointed(data, [item for item in own if (item or "").startswith("/")])
    gone = set(goes)
    result.headings += sorted(
        _headings_over("" if number in gone else line for number, line in enumerate(lines, 1))
    )


def _headings_over(lines: Iterable[str]) -> set[str]:
    """Return the headings of Markdown that have any of the lines under them."""
    above: list[tuple[int, str]] = []
    result: set[str] = set()
    for line in lines:
        text = line.lstrip("#")
        if level := len(line) - len(text):
            above = [item for item in above if item[0] < level] + [(level, text.strip())]
        elif line.strip():
            result.update(heading for _, heading in above)
    return result


def _numbers(locator: str | None, lines: int) -> Iterable[int]:
    part = part_of(locator)
    if part is None or part.pointer is not None:
        return ()
    return range(part.first or 1, min(part.last or lines, lines) + 1)


def _pointed(data: bytes, pointers: Iterable[str | None]) -> Iterator[str]:
    """Yield the texts at some JSON pointers in a JSON file."""
    if not pointers:
        return
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return
    for pointer in pointers:
        value: Any = document
        for part in (pointer or "").split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            if isinstance(value, list) and name.isdecimal() and int(name) < len(value):
                value = value[int(name)]
            else:
                value = value.get(name) if isinstance(value, dict) else None
        yield from strings_in(value)


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


def _below(paths: OrchestratorPaths, path: str) -> str | None:
    """Return a source's path relative to the orchestrator's folder; None outside the drop zone."""
    zone = os.path.realpath(paths.ingest)
    real = os.path.realpath(path)
    if os.path.commonpath([zone, real]) != zone:
        return None
    return str(Path(paths.ingest).relative_to(paths.directory) / Path(real).relative_to(zone))


def _read(path: Path) -> bytes | None:
    """Return the bytes of a regular file; None if it is missing, a link, or too large."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_FILE_BYTES:
                return None
            return file.read()
    except OSError:
        return None


def changed_contents(
    paths: OrchestratorPaths,
    snapshot: Snapshot,
    contents: Collection[str],
    removed: Collection[str],
) -> dict[str, str | None]:
    """Return the digest now of each changed source file by its former one; None if it is gone."""
    results: dict[str, str | None] = {}
    for sha256 in contents:
        for source in erasure.source_paths(snapshot, sha256):
            relative = _below(paths, source)
            if relative is None:
                continue
            data = _read(paths.directory / relative)
            now = None if data is None else hashlib.sha256(data).hexdigest()
            if now != sha256 and (now is not None or relative in removed):
                results[sha256] = now
    return results


def erase_files(
    paths: OrchestratorPaths,
    database: Database,
    terms: SearchTerms,
    memory_ids: Sequence[str],
    sources: SourceFiles,
    *,
    dry_run: bool = False,
) -> FoundFiles:
    """Overwrite erased texts in files, and remove the files that are erased entirely.

    A copy of the database that contains one of the memories is removed, since it cannot be edited,
    and so is every snapshot of a bulletin.

    Args:
        dry_run: change nothing, and look at the files that wait to be ingested, too.
    """
    done = FoundFiles()
    ids = SearchTerms(memory_ids, whole=range(len(memory_ids)))
    for name in database.copies(memory_ids):
        if not dry_run:
            database.remove_copy(name)
        done.removed.append(name)
    for path in files_of(paths):
        relative = str(path.relative_to(paths.directory))
        try:
            if any(map(path.is_relative_to, (paths.processed, paths.rejected, paths.logs))):
                if relative not in sources.removals:
                    if _redact(path, terms, sources.spans.get(relative, []), dry_run=dry_run):
                        done.redacted.append(relative)
                    continue
            elif path.is_relative_to(paths.ingest):
                if dry_run and next(terms.hits(_as_utf8(_whole(path))), None) is not None:
                    done.waiting.append(relative)
                continue
            elif not path.is_relative_to(paths.bulletins) and not (
                path not in store_of(paths).files()
                and _is_database(path)
                and any(ids.found_in(piece) or terms.found_in(piece) for piece in pieces(path))
            ):
                continue
            if not dry_run:
                wipe(path)
            done.removed.append(relative)
        except FileNotFoundError:
            continue
        except OSError:
            done.refused.append(relative)
    return done


def search(
    paths: OrchestratorPaths, database: Database, terms: SearchTerms
) -> tuple[FoundFiles, list[str], int]:
    """Search all files, and the tables of a database server, for erased texts.

    Returns:
        How much was searched, the places with a text, and the number of tables.
    """
    done, places, tables = FoundFiles(), list[str](), 0
    own = store_of(paths).files()
    for path in files_of(paths):
        relative = str(path.relative_to(paths.directory))
        try:
            if path in own or _is_database(path):
                found = set[int]()
                for piece in pieces(path, terms.overlap):
                    done.bytes += len(piece)
                    found |= terms.found_in(piece)
            else:
                data = _whole(path)
                done.bytes += len(data)
                found = {match.string for match in terms.hits(_as_utf8(data))}
        except FileNotFoundError:
            continue
        except OSError:
            done.refused.append(relative)
            continue
        done.files += 1
        if found:
            places.append(relative)
    for name, parts in database.contents():
        tables += 1
        found = set()
        for piece in _overlapping(parts, terms.overlap):
            done.bytes += len(piece)
            found |= {match.string for match in terms.hits(piece)}
        if found:
            places.append(name)
    return done, places, tables


def files_of(paths: OrchestratorPaths) -> Iterator[Path]:
    """Yield every regular file of an orchestrator; do not follow links."""
    for root, folders, names in os.walk(paths.directory):
        folders.sort()
        for name in sorted(names):
            path = Path(root, name)
            try:
                if stat.S_ISREG(path.lstat().st_mode):
                    yield path
            except FileNotFoundError:
                continue


def pieces(path: Path, overlap: int = 64) -> Iterator[bytes]:
    """Yield the bytes of a database's file in overlapping pieces.

    Another process reads it, because closing a file drops all locks that SQLite holds on it in
    this process, see ``store.files``.

    Raises:
        OSError: it cannot be read.
    """
    with _aside(path) as file:
        yield from _overlapping(iter(lambda: file.read(_CHUNK), b""), overlap)


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


@contextmanager
def _aside(path: Path) -> Iterator[IO[bytes]]:
    command = [sys.executable, "-I", "-S", "-c", _COPY, os.fspath(path)]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as reader:
        if reader.stdout is None:  # it was asked for
            raise OSError(f"{path} cannot be read")
        yield reader.stdout
    if reader.returncode:
        # SQLite's side files may disappear at any time.
        kind = OSError if path.exists() else FileNotFoundError
        raise kind(f"{path} cannot be read")


def _is_database(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def _whole(path: Path) -> bytes:
    if path.stat().st_size > MAX_FILE_BYTES:
        raise OSError(f"{path} is too large")
    return path.read_bytes()


def _redact(
    path: Path, terms: SearchTerms, lines: Sequence[Sequence[int]], *, dry_run: bool
) -> bool:
    """Overwrite lines of a file and every occurrence of an erased text; return whether any was."""
    data = _whole(path)
    encoding, places = encoding_of(data), line_spans(data)
    spans = [span for first, last in lines for span in places[first - 1 : last]]
    text = _as_utf8(data)
    for span in terms.spans(text):
        first, last = span if encoding == UTF8 else (_units(text[:place]) for place in span)
        # Line ends stay, so that the lines keep their numbers.
        spans += [
            (max(start, first), min(end, last))
            for start, end in places
            if max(start, first) < min(end, last)
        ]
    fresh = [(start, _filled(data[start:end], encoding)) for start, end in spans]
    fresh = [(start, part) for start, part in fresh if data[start : start + len(part)] != part]
    if not fresh or dry_run:
        return bool(spans)
    if path.stat().st_nlink > 1:
        raise PermissionError(f"{path} has another hard link elsewhere")
    handle = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        for start, part in fresh:
            os.pwrite(handle, part, start)
        os.fsync(handle)
    finally:
        os.close(handle)
    return True


def _as_utf8(data: bytes) -> bytes:
    encoding = encoding_of(data)
    if encoding == UTF8:
        return data
    whole = data[: len(data) // 2 * 2]
    return whole.decode(encoding, "surrogatepass").encode("utf-8", "surrogatepass")


def _units(text: bytes) -> int:
    """Return the length of a text in UTF-16 bytes."""
    return len(text.decode("utf-8", "surrogatepass").encode("utf-16-le", "surrogatepass"))


def _filled(part: bytes, encoding: str) -> bytes:
    """Return filler bytes of the same length, with the same line ends."""
    width = 1 if encoding == UTF8 else 2
    ends = {item.encode(encoding) for item in _LINE_ENDS}
    filler = bytearray(fill(len(part) // width).decode().encode(encoding))
    for place in range(0, len(filler), width):
        if part[place : place + width] in ends:
            filler[place : place + width] = part[place : place + width]
    return bytes(filler)


def wipe(path: Path) -> None:
    """Overwrite a file with zeros and remove it; a missing file is ignored."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        remaining = os.fstat(handle).st_size
        while remaining > 0:
            remaining -= os.write(handle, bytes(min(remaining, 1 << 20)))
        os.fsync(handle)
    finally:
        os.close(handle)
    path.unlink(missing_ok=True)


def note_left_on_server(paths: OrchestratorPaths, url: str, schema: str) -> None:
    """Note that a move has left a schema on a server; ``url`` is without a password."""
    places = left_on_servers(paths)
    paths.left_on_servers.parent.mkdir(parents=True, exist_ok=True)
    with draft_beside(paths.left_on_servers) as draft:
        draft.write_text(json.dumps([*places, f"{schema} on {url}"]), "utf-8")
        publish(draft, paths.left_on_servers, force=True)


def left_on_servers(paths: OrchestratorPaths) -> list[str]:
    """Return the noted schemas, as ``schema on address``, the oldest first."""
    try:
        places: list[str] = json.loads(paths.left_on_servers.read_text("utf-8"))
    except FileNotFoundError:
        return []
    return places
