"""Echo detection: recognising what the memory handed out when it comes back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from memgraph.clock import MS_PER_DAY
from memgraph.consolidation.agent_tools import PageTurn
from memgraph.consolidation.echo_filter import EchoFilter, EchoRemainder
from memgraph.rules.similarity import cited_ids, cited_short_ids, line_hashes
from memgraph.service.open_orchestrator import OpenOrchestrator
from memgraph.store import echoes
from memgraph.store.echoes import EchoBacklog, HandedOutMemory

# Who keeps a text at hand for longer without being told it anew is not a conversation any more.
LINES_KEPT_MS = 365 * MS_PER_DAY

# Recalls and texts whose lines are recorded in one transaction: some milliseconds.
BATCH = 64
# The same memories are recalled again and again.
MAX_CACHED = 20_000


def echo_filter(opened: OpenOrchestrator, turns: Sequence[PageTurn] = ()) -> EchoFilter:
    """Return the filter for a page of turns, after hashing all that was handed out.

    Pending receipts of this process are written first; those that wait in another process are not
    known here yet: of these only what memories contain is recognised.

    Raises:
        StorageError: no filter could be made.
    """
    opened.receipts.flush()
    catch_up(opened)
    return EchoFilter(opened.database, turns)


def catch_up(opened: OpenOrchestrator, stop: Callable[[], bool] = lambda: False) -> int:
    """Hash the lines of what was handed out; return the number of recalls and texts.

    An interrupted run is repeated, and several processes may run it: a line that is recorded twice
    does not change. What is written meanwhile is left for the next run.

    Raises:
        StorageError: what is not done yet still waits.
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
    """Record lines that were handed out otherwise than by a recall or a bulletin.

    They are kept in memory and written with the receipts, outside the caller's request. Returns
    True when there is enough to be written.
    """
    return opened.receipts.add_text("\n".join(lines), at_ms)


def without_own_output(opened: OpenOrchestrator, text: str) -> EchoRemainder:
    """Return the text of a file without what this memory wrote, line numbers unchanged.

    Raises:
        StorageError: nothing was decided.
    """
    if not cited_ids(text) and not cited_short_ids(text):
        return EchoRemainder(text)
    return echo_filter(opened).without_marked(text)


def forget_old_lines(opened: OpenOrchestrator, *, now_ms: int) -> int:
    """Remove lines that were not handed out for ``LINES_KEPT_MS``; return how many.

    What an agent repeats after that is still no source while a memory with that text is active.
    """
    catch_up(opened)
    with opened.database.write(durable=False) as transaction:
        return echoes.forget(transaction, now_ms - LINES_KEPT_MS)


class _Hashes:
    """The hashes of memories, computed once each: texts never change."""

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
    """Return every line once: its hash, and when it was handed out first and last."""
    handed: Iterable[tuple[frozenset[int], int, int]] = (
        *((hashes.of(item), item.first_at, item.last_at) for item in pending.recalled),
        *((line_hashes(text), at, at) for text, at in pending.texts),
    )
    times: dict[int, tuple[int, int]] = {}
    for lines, first_at, last_at in handed:
        for line_hash in lines:
            first, last = times.get(line_hash, (first_at, last_at))
            times[line_hash] = min(first, first_at), max(last, last_at)
    return [(line_hash, first, last) for line_hash, (first, last) in sorted(times.items())]
