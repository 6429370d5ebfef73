"""Plan an erasure: its memories, search strings and files."""

from __future__ import annotations

import json
import os
import stat
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, chain, islice
from pathlib import Path
from typing import Any, Final

from memgraph.audit.search_terms import SearchTerms
from memgraph.errors import Conflict, InvalidInput, NotFound
from memgraph.model.erasure import ErasureTarget, ErasureTargetKind
from memgraph.operations.erasure.plan import ErasurePlan
from memgraph.paths import OrchestratorPaths
from memgraph.rules.erasure import ENOUGH, names_of, stands_without, strings_of, unsought
from memgraph.rules.sources import encoding_of, line_spans, part_of
from memgraph.service.open_orchestrator import OpenOrchestrator
from memgraph.store import erasure_search as queries
from memgraph.store.erasure_search import EntityForms, MemoryToErase
from memgraph.store.snapshot import Snapshot
from memgraph.text.fold import FoldedBytes, unfolded_length

MAX_MEMORIES: Final = 100_000
_BY_SOURCE: Final = frozenset(ErasureTargetKind) - {
    ErasureTargetKind.MEMORY,
    ErasureTargetKind.ENTITY,
}
_WINDOW: Final = 64
_DISTINCT: Final = 12
_CHUNK: Final = 4_000
_SHORTEST_WORD: Final = 3
_LISTED: Final = 20


def make_plan(
    opened: OpenOrchestrator, snapshot: Snapshot, target: ErasureTarget, *, reason: str, actor: str
) -> ErasurePlan:
    """Return the plan for erasing a target, without changing anything.

    Raises:
        NotFound: the target does not exist.
        Conflict: it is already erased, or the name of an entity is ambiguous.
        InvalidInput: the reason contains text to be erased, or there are too many memories.
    """
    pks, entity = _meant(snapshot, target)
    plan = ErasurePlan(
        erasure_id=opened.ids.new("era_"),
        kind=target.kind,
        target=target.value if entity is None else entity.entity_id,
        reason=reason,
        actor=actor,
        started_at=opened.clock.now_ms(),
        asked=target.value,
    )
    note_snapshots(opened, plan)
    _close(snapshot, plan, pks)
    if len(plan.pks) > MAX_MEMORIES:
        raise InvalidInput(f"an erasure is limited to {MAX_MEMORIES:,} memories")
    alone = queries.named_only_by(snapshot, plan.pks)
    own = EntityForms("", (), ()) if entity is None else entity
    plan.entity_pks = sorted({*alone.pks, *own.pks})
    rows = queries.memories_to_erase(snapshot, plan.pks)
    plan.memory_ids = [row.memory_id for row in rows]
    lines = find_lines(opened.paths, snapshot, plan, rows)
    texts = [text for row in rows for text in (row.content, row.summary)]
    beside = [*plan.labels, *(word for row in rows for word in _said_beside(row))]
    names = {*alone.names, *own.names}
    called = names_of(names - {*alone.dates, *own.dates})
    own_strings = strings_of(texts, [*lines, *_quotes(rows)])
    spoken = strings_of(texts, [*lines, *beside])
    plan.too_short = len(names - set(called)) + unsought(texts, spoken)
    plan.entity_ids = queries.entity_ids(snapshot, plan.entity_pks)
    plan.notes = queries.written_about(snapshot, plan.pks, plan.entity_ids)
    noted = _noted(plan)
    plan.strings = list(dict.fromkeys([*called, *spoken, *noted]))
    plan.labels = sorted(set(spoken) - {*called, *own_strings, *noted})
    # Names and notes must match in full, because others may begin like them.
    merged = {*called, *noted} - set(spoken)
    plan.least = {n: len(value) for n, value in enumerate(plan.strings) if value in merged}
    look_again(snapshot, plan)
    plan.vectors = [window.hex() for window in _windows(queries.vectors_of(snapshot, plan.pks))]
    if plan.scrub(reason) != reason:
        raise InvalidInput("the reason repeats the text to be erased; use other words")
    return plan


def _noted(plan: ErasurePlan) -> list[str]:
    """Return the strings of notes, without those that also occur in the erasure's reason."""
    strings = strings_of(plan.notes)
    repeated = SearchTerms(strings, {n: len(value) for n, value in enumerate(strings)}).found_in(
        plan.reason.encode()
    )
    return [value for number, value in enumerate(strings) if number not in repeated]


def note_snapshots(opened: OpenOrchestrator, plan: ErasurePlan) -> None:
    """Add all existing snapshots of bulletins to the plan, which removes and reports them."""
    result = (
        snapshot_file.relative_to(opened.paths.directory)
        for snapshot_file in opened.board.snapshot_files()
    )
    plan.snapshots = sorted({*plan.snapshots, *map(str, result)})


def overtaken(snapshot: Snapshot, plan: ErasurePlan) -> bool:
    """Return True if the set of memories to erase has changed since the plan."""
    now = replace(plan, pks=[], kept=[])
    target = ErasureTarget(kind=plan.kind, value=plan.target)
    try:
        _close(snapshot, now, _meant(snapshot, target)[0])
    except NotFound:
        return True
    return now.pks != plan.pks


def _meant(snapshot: Snapshot, target: ErasureTarget) -> tuple[list[int], EntityForms | None]:
    if target.kind is ErasureTargetKind.ENTITY:
        results = queries.entity(snapshot, target.value)
        if not results:
            raise _no_entity(snapshot, target.value)
        if len(results) > 1:
            raise Conflict(
                "the name is ambiguous; use an id",
                candidates=[item.entity_id for item in results],
            )
        return queries.naming(snapshot, results[0]), results[0]
    pks = queries.memories_named(snapshot, target.kind, target.value)
    if pks:
        return pks, None
    labels = target.value[:80]
    earlier = queries.erased_before(snapshot, target.kind, target.value)
    if earlier is not None:
        message = f" by {earlier[0]}" if earlier else ""
        raise Conflict(
            f"it is already erased{message}", value=labels, erasure_ids=list(earlier[:10])
        )
    if target.kind is ErasureTargetKind.MEMORY:
        raise NotFound(f"no memory {labels!r}", value=labels)
    raise NotFound(f"no memory of the {target.kind.value} {labels!r}", value=labels)


def _no_entity(snapshot: Snapshot, name: str) -> NotFound:
    """Return the error for a name of no entity, with the memories that contain its words."""
    whole = queries.containing(snapshot, [name])
    partly = [pk for pk in queries.containing(snapshot, name_words(name)) if pk not in set(whole)]
    message, shown = "no entity of this id or name", name[:80]
    if not whole and not partly:
        return NotFound(f"{message}, and no memory contains {shown!r}", name=shown)
    pks = [*whole, *partly]
    rows = queries.memories_to_erase(snapshot, pks[:_LISTED])
    ids = [row.memory_id for row in sorted(rows, key=lambda row: pks.index(row.pk))]
    rest = f" and {len(pks) - len(ids)} more" if len(pks) > len(ids) else ""
    return NotFound(
        f"{message}. Memories with {shown!r}: {len(whole)}; with a word of it: {len(partly)}."
        f" Erase each by its id: {' '.join(ids)}{rest}",
        name=shown,
        contain=len(whole),
        contain_a_word=len(partly),
        memory_ids=ids,
    )


def name_words(name: str) -> list[str]:
    """Return the words of a name that are long enough to tell it from others."""
    return [word for word in name.casefold().split() if len(word) >= _SHORTEST_WORD]


def _close(snapshot: Snapshot, plan: ErasurePlan, pks: Sequence[int]) -> None:
    """Set the plan's memories, including those derived only from them, and those that are kept."""
    kept_fields: dict[str, str] = {}
    chosen = set(pks)
    if plan.kind in _BY_SOURCE:
        elsewhere = queries.said_elsewhere(snapshot, sorted(chosen), sorted(chosen))
        chosen -= elsewhere
        ids = [row.memory_id for row in queries.memories_to_erase(snapshot, sorted(elsewhere))]
        kept_fields |= dict.fromkeys(ids, "other_sources")
    first = frozenset(chosen)
    while True:
        kept_now, fresh = _derived(snapshot, chosen)
        if not fresh:
            break
        chosen |= fresh
    plan.pks, plan.derived_pks = sorted(chosen), sorted(chosen - first)
    plan.derived = len(plan.derived_pks)
    plan.kept = [
        {"memory_id": value, "why": why} for value, why in sorted((kept_fields | kept_now).items())
    ]


def _derived(snapshot: Snapshot, chosen: set[int]) -> tuple[dict[str, str], set[int]]:
    """Split the memories derived from the chosen ones into those kept, with reasons, and others."""
    results = [
        item for item in queries.derived_from(snapshot, sorted(chosen)) if item[0] not in chosen
    ]
    elsewhere = queries.said_elsewhere(snapshot, [pk for pk, _, _ in results], sorted(chosen))
    kept_part, fresh = {}, set()
    for pk, memory_id, grounds in results:
        if stands_without(grounds, chosen):
            kept_part[memory_id] = "other_grounds"
        elif pk in elsewhere:
            kept_part[memory_id] = "other_sources"
        else:
            fresh.add(pk)
    return kept_part, fresh


def _said_beside(row: MemoryToErase) -> list[str]:
    fields = [row.item_id or "", json.loads(row.tags), json.loads(row.attributes)]
    return list(_strings(fields))


def _quotes(rows: Sequence[MemoryToErase]) -> Iterator[str]:
    """Yield the sentences that memories were taken from."""
    return _strings([json.loads(row.attributes).get("quote") for row in rows])


def look_again(snapshot: Snapshot, plan: ErasurePlan) -> None:
    """Drop the strings that remaining memories also contain from a plan; this is reported.

    If a remaining memory contains the beginning of a string, a longer part must match. Repeated
    after a first attempt, because memories stored since may contain erased text too. What others
    have in tags and attributes, as the title of a document, protects only labels: the text of an
    erased memory is removed there, too.
    """
    strings, minimum, labels = plan.strings, dict(plan.least), set(plan.labels)
    texts = queries.remaining_texts(snapshot, plan.pks, plan.entity_pks)
    saying = {memory_id for _, memory_id in _lengthen(plan, texts, minimum)} - {""}
    fields = queries.remaining_fields(snapshot, plan.pks)
    beside = chain(plan.headings, chain.from_iterable(_strings(json.loads(f)) for f in fields))
    before = dict(minimum)
    for number, _ in _lengthen(plan, (("", text) for text in beside), minimum):
        if strings[number] not in labels:
            minimum[number] = max(before.get(number, 0), len(strings[number]))
    existing = {item["memory_id"] for item in plan.kept}
    plan.kept += [
        {"memory_id": item, "why": "says_it"} for item in sorted(saying) if item not in existing
    ]
    remaining = [
        number for number, value in enumerate(strings) if minimum.get(number, 0) <= len(value)
    ]
    plan.shared += len(strings) - len(remaining)
    plan.shared_strings += [
        strings[number] for number in sorted(set(range(len(strings))) - set(remaining))
    ]
    plan.strings = [strings[number] for number in remaining]
    plan.least = {
        place: minimum[number] for place, number in enumerate(remaining) if number in minimum
    }
    plan.forget_needles()


def _lengthen(
    plan: ErasurePlan, source: Iterator[tuple[str, str]], minimum: dict[int, int]
) -> Iterator[tuple[int, str]]:
    """Set how many characters tell each string from some texts that stay; yield the number of each
    string that one contains whole, with the memory's id.
    """
    needles = plan.folded
    while chunk := list(islice(source, _CHUNK)):
        texts = [FoldedBytes(text.encode()).data for _, text in chunk]
        # Joined by NUL, which no string contains.
        data, ends = b"\0".join(texts), list(accumulate(len(item) + 1 for item in texts))
        for hit in needles.hits(data):
            length = len(data[hit.start : hit.end].decode("utf-8", "ignore"))
            message = unfolded_length(plan.strings[hit.string], length + 1)
            minimum[hit.string] = max(minimum.get(hit.string, ENOUGH), message)
            if length >= len(needles.strings[hit.string]):
                yield hit.string, chunk[bisect_right(ends, hit.start)][0]


def _windows(vectors: Iterable[bytes]) -> list[bytes]:
    """Return a distinctive part of each vector, except of vectors that are mostly zeros."""
    results: dict[bytes, None] = {}
    for vector in vectors:
        for start in range(0, max(len(vector) - _WINDOW + 1, 0), _WINDOW):
            window = vector[start : start + _WINDOW]
            if len(set(window)) >= _DISTINCT:
                results[window] = None
                break
    return list(results)


_WHOLE: Final = frozenset({ErasureTargetKind.PATH, ErasureTargetKind.CONTENT})
MAX_FILE_BYTES: Final = 256_000_000
MANIFEST_ENDING: Final = ".manifest.json"


def find_lines(
    paths: OrchestratorPaths, snapshot: Snapshot, plan: ErasurePlan, rows: Sequence[MemoryToErase]
) -> list[str]:
    """Return the texts of erased memories as written in their files, and plan the edits.

    A named file is removed if no remaining memory comes from it. In other files the lines of erased
    memories are overwritten, except lines that a remaining memory cites.
    """
    texts: list[str] = []
    plan.contents = sorted({row.content_sha256 for row in rows if row.content_sha256})
    by_path: dict[str, list[MemoryToErase]] = {}
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
        kept_part = queries.remaining_locators(snapshot, path, plan.pks)
        if plan.kind in _WHOLE and not kept_part:
            plan.removals += [relative, relative + MANIFEST_ENDING]
            lines = data.decode(encoding_of(data), "replace").splitlines()
            # Memories have a heading without its marks as their title.
            plan.labels += [line.lstrip("# ") for line in lines]
            continue
        texts += _said(plan, relative, data, own, kept_part)
    return texts


def _said(
    plan: ErasurePlan,
    relative: str,
    data: bytes,
    own: Sequence[MemoryToErase],
    texts: Sequence[str],
) -> list[str]:
    lines, encoding = line_spans(data), encoding_of(data)
    count = set(chain.from_iterable(_span(item, len(lines)) for item in texts))
    statuses_wanted = set(chain.from_iterable(_span(row.locator, len(lines)) for row in own))
    erased = statuses_wanted - count
    numbers = sorted(erased)
    kept_lines = (
        "" if number in erased else data[first:last].decode(encoding, "replace")
        for number, (first, last) in enumerate(lines, 1)
    )
    plan.headings += sorted(_headings_over(kept_lines))
    if numbers:
        plan.spans[relative] = [list(run) for run in _runs(numbers)]
    places = [lines[number - 1] for number in numbers]
    results = [data[first:last].decode(encoding, "replace") for first, last in places]
    pointers = [row.locator for row in own if (row.locator or "").startswith("/")]
    return results + list(_pointed(data, pointers)) if pointers else results


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


def below(paths: OrchestratorPaths, path: str) -> str | None:
    """Return a source's path relative to the orchestrator's folder; None outside the drop zone."""
    zone = os.path.realpath(paths.ingest)
    real = os.path.realpath(path)
    if os.path.commonpath([zone, real]) != zone:
        return None
    return str(Path(paths.ingest).relative_to(paths.directory) / Path(real).relative_to(zone))


def read(path: Path) -> bytes | None:
    """Return the bytes of a regular file; None if it is missing, a link, or too large."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_FILE_BYTES:
            return None
        with open(handle, "rb", closefd=False) as file:
            return file.read()
    except OSError:
        return None
    finally:
        os.close(handle)


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
    """Yield the texts at some JSON pointers in a JSON file."""
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
            elif isinstance(value, dict) and name in value:
                value = value[name]
            else:
                value = None
                break
        yield from _strings(value)


def _strings(value: Any) -> Iterator[str]:
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
