"""Echo detection: recognise delivered memories when they come back as input."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from memgraph.clock import MS_PER_DAY
from memgraph.consolidation.agent_tools import PageTurn
from memgraph.consolidation.echo_filter import EchoFilter, EchoRemainder
from memgraph.rules.similarity import cited_ids, cited_short_ids, line_hashes
from memgraph.service.open_orchestrator import OpenOrchestrator
from memgraph.store import echoes
from memgraph.store.echoes import EchoBacklog, HandedOutMemory

# A conversation that repeats a text later than this is treated as a new source.
LINES_KEPT_MS = 365 * MS_PER_DAY

# The number of recalls and texts per transaction, which takes some milliseconds.
BATCH = 64
# The size of the cache of hashes: the same memories are recalled repeatedly.
MAX_CACHED = 20_000


def echo_filter(opened: OpenOrchestrator, turns: Sequence[PageTurn] = ()) -> EchoFilter:
    """Return the filter for a page of turns, after hashing all delivered lines.

    Pending receipts of this process are written first. Receipts that are pending in another
    process are not included; their lines are recognised only if a memory contains them.

    Raises:
        StorageError: the filter could not be built.
    """
    opened.receipts.flush()
    catch_up(opened)
    return EchoFilter(opened.database, turns)


def catch_up(opened: OpenOrchestrator, stop: Callable[[], bool] = lambda: False) -> int:
    """Hash the lines of delivered recalls and texts; return the number of these.

    It is idempotent: it may be interrupted, and several processes may run it. Deliveries during a
    run are left for the next one.

    Raises:
        StorageError: the remaining deliveries stay pending.
    """
    hashes = _Hashes()
    done = 0
    while not stop():
        with opened.database.read() as snapshot:
            pending = echoes.oldest(snapshot, BATCH)
        if pending is None:
            break
        lines = _lines(pending, hashes)
        with opened.database.write(durable=False) as transaction:
            echoes.record(transaction, lines)
            done += echoes.remove(transaction, pending.through)
        if pending.number < BATCH:
            break
    return done


def record_handed_out(opened: OpenOrchestrator, lines: Sequence[str], *, at_ms: int) -> bool:
    """Record lines that were delivered by other means than a recall or a bulletin.

    They are buffered and written with the receipts, outside the caller's request. Returns True
    when the buffer should be flushed.
    """
    return opened.receipts.add_text("\n".join(lines), at_ms)


def without_own_output(opened: OpenOrchestrator, text: str) -> EchoRemainder:
    """Return the text of a file without lines that this memory wrote; line numbers stay.

    Raises:
        StorageError: the text could not be checked.
    """
    if not cited_ids(text) and not cited_short_ids(text):
        return EchoRemainder(text)
    return echo_filter(opened).without_marked(text)


def forget_old_lines(opened: OpenOrchestrator, *, now_ms: int) -> int:
    """Remove lines that were not delivered for ``LINES_KEPT_MS``; return their number.

    Even afterwards, a repeated text is not a new source while a memory with that text is active.
    """
    catch_up(opened)
    with opened.database.write(durable=False) as transaction:
        return echoes.forget(transaction, now_ms - LINES_KEPT_MS)


class _Hashes:
    """Caches the line hashes of memories, whose texts never change."""

    def __init__(self) -> None:
        self._known: dict[int, frozenset[int]] = {}

    def of(self, memory: HandedOutMemory) -> frozenset[int]:
        hashes = self._known.get(memory.pk)
        if hashes is None:
            hashes = line_hashes(memory.content) | line_hashes(memory.summary or "")
            if len(self._known) >= MAX_CACHED:
                self._known.clear()
            self._known[memory.pk] = hashes
        return hashes


def _lines(pending: EchoBacklog, hashes: _Hashes) -> list[tuple[int, int, int]]:
    """Return each line's hash with the first and last time it was delivered."""
    groups: Iterable[tuple[frozenset[int], int, int]] = (
        *((hashes.of(item), item.first_at, item.last_at) for item in pending.recalled),
        *((line_hashes(text), at, at) for text, at in pending.texts),
    )
    times: dict[int, tuple[int, int]] = {}
    for lines, first_at, last_at in groups:
        for line_hash in lines:
            first, last = times.get(line_hash, (first_at, last_at))
            times[line_hash] = min(first, first_at), max(last, last_at)
    return [(line_hash, first, last) for line_hash, (first, last) in sorted(times.items())]
