"""The files that erased memories came from, and the lines with their texts."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final

from memgraph.model.erasing import Erasable
from memgraph.paths import OrchestratorPaths
from memgraph.rules.sources import encoding_of, line_spans, part_of
from memgraph.service.erasing.plan import Plan
from memgraph.store import erasure_search as queries
from memgraph.store.erasure_search import Doomed
from memgraph.store.snapshot import Snapshot

_WHOLE: Final = frozenset({Erasable.PATH, Erasable.CONTENT})
MAX_FILE_BYTES: Final = 256_000_000
MANIFEST_ENDING: Final = ".manifest.json"


def find_lines(
    paths: OrchestratorPaths, snapshot: Snapshot, plan: Plan, rows: Sequence[Doomed]
) -> list[str]:
    """Return the texts of erased memories as their files spell them, and add the edits to the plan.

    A file is removed as a whole when it was named and nothing that stays comes from it; of others
    the lines go that no remaining memory cites.
    """
    texts: list[str] = []
    plan.contents = sorted({row.content_sha256 for row in rows if row.content_sha256})
    by_path: dict[str, list[Doomed]] = {}
    for row in rows:
        if row.source_path is not None:
            by_path.setdefault(row.source_path, []).append(row)
    for path, own in sorted(by_path.items()):
        relative = below(paths, path)
        if relative is None:
            plan.outside.append(path)
            continue
        data = read(paths.directory / relative)
        if data is None:
            continue
        kept = queries.lines_kept(snapshot, path, plan.pks)
        if plan.kind in _WHOLE and not kept:
            plan.removals += [relative, relative + MANIFEST_ENDING]
            texts += data.decode(encoding_of(data), "replace").splitlines()
            continue
        texts += _said(plan, relative, data, own, kept)
    return texts


def _said(
    plan: Plan, relative: str, data: bytes, own: Sequence[Doomed], kept: Sequence[str]
) -> list[str]:
    lines, encoding = line_spans(data), encoding_of(data)
    taken = set(chain.from_iterable(_span(each, len(lines)) for each in kept))
    wanted = set(chain.from_iterable(_span(row.locator, len(lines)) for row in own))
    numbers = sorted(wanted - taken)
    if numbers:
        plan.spans[relative] = [list(each) for each in _runs(numbers)]
    places = [lines[number - 1] for number in numbers]
    found = [data[first:last].decode(encoding, "replace") for first, last in places]
    pointers = [row.locator for row in own if (row.locator or "").startswith("/")]
    return found + list(_pointed(data, pointers)) if pointers else found


def below(paths: OrchestratorPaths, path: str) -> str | None:
    """Return a source's path in the drop zone, relative to the orchestrator's folder; None:
    elsewhere.
    """
    zone = os.path.realpath(paths.ingest)
    real = os.path.realpath(path)
    if os.path.commonpath([zone, real]) != zone:
        return None
    return str(Path(paths.ingest).relative_to(paths.directory) / Path(real).relative_to(zone))


def read(path: Path) -> bytes | None:
    """Return the bytes of a file; None: it is missing, no regular file, a link, or too large."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        try:
            return file.read() if os.fstat(handle).st_size <= MAX_FILE_BYTES else None
        except OSError:
            return None


def _span(locator: str | None, lines: int) -> Iterable[int]:
    part = part_of(locator)
    if part is None or part.pointer is not None:
        return ()
    return range(part.first or 1, min(part.last or lines, lines) + 1)


def _runs(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    first = last = numbers[0]
    for number in numbers[1:]:
        if number != last + 1:
            yield first, last
            first = number
        last = number
    yield first, last


def _pointed(data: bytes, pointers: Iterable[str | None]) -> Iterator[str]:
    """Yield the texts that JSON pointers refer to, in a JSON file."""
    try:
        document = json.loads(data)
    except ValueError:
        return
    for pointer in pointers:
        value: Any = document
        for part in (pointer or "").split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            if isinstance(value, list) and name.isdecimal() and int(name) < len(value):
                value = value[int(name)]
            elif isinstance(value, dict) and name in value:
                value = value[name]
            else:
                value = None
                break
        yield from _strings(value)


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _strings(each)
