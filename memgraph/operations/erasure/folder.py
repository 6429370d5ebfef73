"""Overwrite erased texts in an orchestrator's files, and scan its folder for what remains.

Overwriting in place keeps line numbers, needs no second copy, and can be repeated. Files that wait
to be ingested are not changed: their digest identifies the sender.
"""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final, NamedTuple

from memgraph.audit.search_terms import SearchTerms
from memgraph.model.erasure import CaseVariant, Residue
from memgraph.operations.erasure.choice import below, read
from memgraph.operations.erasure.plan import ErasurePlan, wipe
from memgraph.paths import OrchestratorPaths
from memgraph.rules.erasure import fill
from memgraph.rules.sources import UTF8, encoding_of, line_spans
from memgraph.service.open_orchestrator import OpenOrchestrator
from memgraph.store import erasure_search, files
from memgraph.store.engine import Database, store_of
from memgraph.text.fold import FoldedBytes

# Reading files; the database's own files are read by another process.


_CHUNK: Final = 1 << 24
_COPY: Final = (
    "import shutil, sys; shutil.copyfileobj(open(sys.argv[1], 'rb'), sys.stdout.buffer, 1 << 20)"
)


def pieces(path: Path, overlap: int, *, aside: bool = False) -> Iterator[bytes]:
    """Yield the bytes of a file in overlapping pieces.

    Args:
        overlap: the number of bytes by which a piece repeats the end of the one before.
        aside: read in another process, because closing a file drops all locks that SQLite holds
            on it in this process, see ``store.files``.

    Raises:
        OSError: it cannot be read.
    """
    with files.without_sqlite(path) as may_be_read:
        small = _read_small(path) if may_be_read and not aside else None
    if small is not None:
        yield from [small] if small else []
        return
    with _aside(path) as file:
        yield from _overlapping(iter(lambda: file.read(_CHUNK), b""), overlap)


def _overlapping(parts: Iterable[bytes], overlap: int) -> Iterator[bytes]:
    """Join parts into large pieces, each of which repeats the end of the one before."""
    piece = bytearray()
    fresh = 0
    for part in parts:
        piece += part
        fresh += len(part)
        if fresh >= _CHUNK:
            yield bytes(piece)
            del piece[: max(len(piece) - overlap, 0)]
            fresh = 0
    if fresh:
        yield bytes(piece)


def _read_small(path: Path) -> bytes | None:
    """Return a file's bytes while SQLite is kept from opening it; None if it is large."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        return file.read() if os.fstat(handle).st_size <= _CHUNK else None


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


_MAGIC: Final = b"SQLite format 3\x00"
_LINE_ENDS: Final = ("\r", "\n")


@dataclass(slots=True)
class ErasedFiles:
    """The changed files, relative to the folder. ``refused``: files that could not be written."""

    redacted: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


class FilesToErase(NamedTuple):
    """The files that a dry run finds. ``waiting``: matching files that are not ingested yet."""

    files: ErasedFiles
    waiting: tuple[str, ...]
    other_case: tuple[CaseVariant, ...]


class _Said(NamedTuple):
    """The matches in a piece of a file; ``other_case`` counts matches that ignore case."""

    length: int
    strings: set[int]
    other_case: int


def erase_files(paths: OrchestratorPaths, plan: ErasurePlan, database: Database) -> ErasedFiles:
    """Overwrite erased texts in files, and remove files that are erased entirely.

    A copy of the database that contains one of the memories is removed, since it cannot be edited.
    Snapshots of bulletins were removed before, and are reported here.
    """
    done = ErasedFiles()
    for relative in plan.removals:
        if (paths.directory / relative).is_file():
            wipe(paths.directory / relative)
            done.removed.append(relative)
    done.removed.extend(
        snapshot for snapshot in plan.snapshots if not (paths.directory / snapshot).exists()
    )
    for name in database.copies(plan.memory_ids):
        database.remove_copy(name)
        done.removed.append(name)
    terms = SearchTerms(plan.memory_ids)
    for path in files_of(paths):
        relative = str(path.relative_to(paths.directory))
        if path == paths.database or _waits(paths, path):
            continue
        try:
            if _is_database(path):
                if any(terms.found_in(piece) for piece in pieces(path, terms.overlap)):
                    _remove_database(path)
                    done.removed.append(relative)
            elif _redact(path, plan, relative):
                done.redacted.append(relative)
        except FileNotFoundError:
            continue
        except OSError:
            done.refused.append(relative)
    return done


def files_of(paths: OrchestratorPaths) -> Iterator[Path]:
    """Yield every regular file of an orchestrator except erasure plans; do not follow links."""
    for root, folders, names in os.walk(paths.directory):
        folders[:] = sorted(folder for folder in folders if Path(root, folder) != paths.erasing)
        for name in sorted(names):
            path = Path(root, name)
            try:
                if stat.S_ISREG(path.lstat().st_mode):
                    yield path
            except FileNotFoundError:
                continue


def scan(paths: OrchestratorPaths, plan: ErasurePlan, database: Database) -> Residue:
    """Search all files of the folder, and the tables of a database server, for erased strings."""
    places, hits, files, size = [], set[int](), 0, 0
    unread: list[str] = []
    cased: list[CaseVariant] = []
    for path in files_of(paths):
        relative = str(path.relative_to(paths.directory))
        result, other_case = set[int](), 0
        try:
            for said in _said_in(path, plan, aside=of_database(paths, relative)):
                result |= said.strings
                other_case += said.other_case
                size += said.length
        except FileNotFoundError:
            continue
        except OSError:
            unread.append(relative)
            continue
        files += 1
        if result:
            hits |= result
            places.append(relative)
        if other_case:
            cased.append(CaseVariant(file=relative, count=other_case))
    tables = 0
    for name, parts in database.contents():
        tables += 1
        result = set()
        for piece in _overlapping(parts, _overlap(plan)):
            result |= plan.needles.found_in(piece)
            size += len(piece)
        if result:
            hits |= result
            places.append(name)
    return Residue(
        strings=len(plan.needles),
        too_short=plan.too_short,
        shared=plan.shared,
        files=files,
        tables=tables,
        bytes=size,
        hits=len(hits),
        places=tuple(places),
        unread=tuple(unread),
        other_case=tuple(cased),
    )


def would_erase(paths: OrchestratorPaths, plan: ErasurePlan, database: Database) -> FilesToErase:
    """Return what ``erase_files`` would change and what would remain, without writing."""
    done, waiting, cased = ErasedFiles(), list[str](), list[CaseVariant]()
    entries = (*plan.removals, *plan.snapshots)
    removed = [item for item in entries if (paths.directory / item).is_file()]
    done.removed += [*removed, *database.copies(plan.memory_ids)]
    terms = SearchTerms(plan.memory_ids)
    for path in files_of(paths):
        relative = str(path.relative_to(paths.directory))
        if of_database(paths, relative) or relative in removed:
            continue
        try:
            if _is_database(path):
                if any(terms.found_in(piece) for piece in pieces(path, terms.overlap)):
                    done.removed.append(relative)
                continue
            texts = list(_said_in(path, plan))
            if relative in plan.spans or any(item.strings for item in texts):
                (waiting if _waits(paths, path) else done.redacted).append(relative)
            if other_case := sum(item.other_case for item in texts):
                cased.append(CaseVariant(file=relative, count=other_case))
        except FileNotFoundError:
            continue
        except OSError:
            done.refused.append(relative)
    return FilesToErase(done, tuple(waiting), tuple(cased))


def _said_in(path: Path, plan: ErasurePlan, *, aside: bool = False) -> Iterator[_Said]:
    encoding = None if aside or _is_database(path) else UTF8
    overlap = _overlap(plan)
    for number, piece in enumerate(pieces(path, overlap, aside=aside)):
        result, cased = plan.needles.found_in(piece), 0
        if encoding is not None:
            encoding = encoding_of(piece) if number == 0 else encoding
            folded = FoldedBytes(_as_utf8(piece, encoding)).data
            result |= plan.folded.found_in(folded)
            cased = _of_other_case(folded, plan)
            if number and cased:
                # Subtract the matches in the overlap, which the piece before has counted.
                cased -= _of_other_case(FoldedBytes(_as_utf8(piece[:overlap], encoding)).data, plan)
        yield _Said(len(piece), result, max(cased, 0))


def _of_other_case(folded: bytes, plan: ErasurePlan) -> int:
    """Return the number of matches of long strings that differ in letter case."""
    as_it_is, of_any_case = plan.cased
    text = folded.decode("utf-8", "surrogateescape").casefold()
    places = of_any_case.spans(text.encode("utf-8", "surrogateescape"))
    return max(len(places) - len(as_it_is.spans(folded)), 0) if places else 0


def of_database(paths: OrchestratorPaths, place: str) -> bool:
    """Return True for a file of the database itself."""
    return paths.directory / place in store_of(paths).files()


def _waits(paths: OrchestratorPaths, path: Path) -> bool:
    """Return True for files that are not changed here: those to ingest, and SQLite's side files."""
    if path.is_relative_to(paths.ingest):
        done = (paths.processed, paths.rejected)
        return not any(path.is_relative_to(folder) for folder in done)
    return path.name.startswith(paths.database.name + "-") and path.parent == paths.memory


def _redact(path: Path, plan: ErasurePlan, relative: str) -> bool:
    """Overwrite the spans of a file and every other occurrence of an erased string."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        data = file.read()
        links = os.fstat(handle).st_nlink
    encoding = encoding_of(data)
    spans = [_aligned(span, encoding) for span in plan.needles.spans(data)]
    spans += _line_spans(data, plan.spans.get(relative, []))
    spans += _wrapped(data, encoding, plan.folded)
    fresh = [(start, _filled(data[start:end], encoding)) for start, end in spans]
    fresh = [(start, part) for start, part in fresh if data[start : start + len(part)] != part]
    if not fresh:
        return bool(spans)
    if links > 1:
        raise PermissionError(f"{relative} has another hard link elsewhere")
    handle = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        for start, part in fresh:
            os.pwrite(handle, part, start)
        os.fsync(handle)
    finally:
        os.close(handle)
    return True


def _aligned(span: tuple[int, int], encoding: str) -> tuple[int, int]:
    """Shift a UTF-16 span that matched at an odd offset by one byte."""
    if encoding == UTF8 or span[0] % 2 == 0:
        return span
    shift = 1 if encoding == "utf-16-le" else -1
    return span[0] + shift, span[1] + shift


def _overlap(plan: ErasurePlan) -> int:
    """Return the overlap in bytes, an even number with room for folded white space."""
    return 4 * max(plan.needles.overlap, plan.folded.overlap)


def _as_utf8(data: bytes, encoding: str) -> bytes:
    if encoding == UTF8:
        return data
    merged = data[: len(data) // 2 * 2]
    return merged.decode(encoding, "surrogatepass").encode("utf-8", "surrogatepass")


def _wrapped(data: bytes, encoding: str, needles: SearchTerms) -> Iterator[tuple[int, int]]:
    """Yield the spans of strings that cross line ends, one span per line."""
    text = _as_utf8(data, encoding)
    folded = FoldedBytes(text)
    results = [folded.span(start, end) for start, end in needles.spans(folded.data)]
    if not results:
        return
    lines = line_spans(data)
    starts = [start for start, _ in lines]
    for item in results:
        first, last = item if encoding == UTF8 else (_units(text[:place]) for place in item)
        for start, end in lines[max(bisect_right(starts, first) - 1, 0) :]:
            if start >= last:
                break
            if max(start, first) < min(end, last):
                yield max(start, first), min(end, last)


def _units(text: bytes) -> int:
    """Return the length of a text in UTF-16 bytes."""
    return len(text.decode("utf-8", "surrogatepass").encode("utf-16-le", "surrogatepass"))


def _line_spans(data: bytes, lines: list[list[int]]) -> Iterator[tuple[int, int]]:
    """Yield the start and end of lines in a file; line numbers begin at 1."""
    if not lines:
        return
    places = line_spans(data)
    for first, last in lines:
        yield from places[first - 1 : last]


def _filled(part: bytes, encoding: str) -> bytes:
    """Return filler bytes of the same length, with the same line ends."""
    width = 1 if encoding == UTF8 else 2
    ends = {item.encode(encoding) for item in _LINE_ENDS}
    kept_part = bytearray(fill(len(part) // width).decode().encode(encoding))
    for place in range(0, len(kept_part), width):
        if part[place : place + width] in ends:
            kept_part[place : place + width] = part[place : place + width]
    return bytes(kept_part)


def _is_database(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def _remove_database(path: Path) -> None:
    for ending in ("-wal", "-shm", ""):
        wipe(path.with_name(path.name + ending))


def contents_of(opened: OpenOrchestrator, plan: ErasurePlan) -> dict[str, str | None]:
    """Return the current digest of each changed file, by its former digest; None if removed.

    Unchanged files are left out.
    """
    results: dict[str, str | None] = {}
    for sha256 in plan.contents:
        with opened.database.read() as snapshot:
            sources = erasure_search.source_paths(snapshot, sha256)
        for source in sources:
            relative = below(opened.paths, source)
            if relative is None:
                continue
            data = read(opened.paths.directory / relative)
            now = None if data is None else hashlib.sha256(data).hexdigest()
            if now != sha256 and (now is not None or relative in plan.removals):
                results[sha256] = now
    return results
