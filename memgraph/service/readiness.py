"""Whether an orchestrator is healthy and ready."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from memgraph.audit import anchor
from memgraph.errors import (
    DatabaseCorrupt,
    DatabaseReplaced,
    InvalidInput,
    MemgraphError,
    MemoryDisabled,
    StorageError,
)
from memgraph.graph.stale import find_stale
from memgraph.log import EventLog
from memgraph.model.access import HealthExample, HealthMeasure, Measure, StoreHealth
from memgraph.model.enums import MemoryKind
from memgraph.model.jobs import LastJob, Ready, Standing
from memgraph.paths import Stamp, global_config_file, stamp_of
from memgraph.rules.dedup import near_duplicates
from memgraph.rules.echo import line_hashes
from memgraph.rules.schedule import fails, limits_of, rate_of
from memgraph.service.life.echoes import catch_up
from memgraph.service.opened import Opened
from memgraph.service.outward import outward
from memgraph.store import echoes, embeddings, health, jobs, provisioning
from memgraph.store.health import EXCERPT_CHARS, Found, Known
from memgraph.store.snapshot import Snapshot
from memgraph.store.visibility import View

if TYPE_CHECKING:
    from memgraph.service.memory_service import MemoryService
    from memgraph.store.snapshot import Snapshot


VERIFY: Final = "run: memgraph verify, then memgraph restore with a backup"
REMEDIES: Final[Mapping[str, str]] = {
    "embedding.model_changed": "Vectors are of another model than the settings name:"
    " run memgraph embeddings rebuild, or set the model back.",
    "embedding.failing": "Vectors of some memories could not be made: see to the model,"
    " then run memgraph embeddings retry.",
    "comparison.failing": "The model that compares facts fails: see to memory.llm."
    " Facts wait for it.",
    "extra.missing": "A model is to be asked through litellm, which is not installed:"
    " install the extra, or choose another provider.",
    "reranker.failing": "The reranker fails, and recalls go without it: see to its model.",
    "entities.failing": "The model that names entities fails: see to its settings.",
    "receipts.dropped": "Receipts of some hand-outs were not kept: see the server's log.",
    "events.failing": "Events could not be handed on: see to those who receive them.",
    "jobs.failing": "The last run of a job failed: its record under Jobs says why.",
    "ingest.held": "A dropped file was begun ten times and got no further:"
    " run memgraph ingest --retry to have it tried again.",
    "jobs.overdue": "A job is due for more than a day: see that a worker runs.",
    "erasure.unfinished": "An erasure was begun and not finished:"
    " run the same memgraph erase again to finish it.",
    "journal.unanchored": "The journal's anchor is missing or damaged:"
    " run memgraph repair, then accept the journal as it is.",
    "verify.failed": "The last nightly audit found something: run memgraph verify.",
    "storage.full": "The last write found no room: free some space on the disk.",
}
"""The meaning and remedy of each code of work that is not getting done."""
LOOK_S: Final = 0.25
"""Seconds that one check may spend opening databases."""
FRESH_MS: Final = 60_000
"""Milliseconds after which an orchestrator is checked though no file has changed."""
REST_S: Final = 1.0
"""Seconds during which a check returns the previous result."""


@dataclass(frozen=True, slots=True)
class _Found:
    """The cached state of an orchestrator.

    ``oldest``: since when its first memory waits; ``trouble``: the error that calls had met before.
    """

    stamp: Stamp | None
    standing: Standing
    oldest: int | None
    trouble: str | None = None


class Readiness:
    """Checks the orchestrators of a service without opening them all. Thread-safe."""

    def __init__(self, service: MemoryService) -> None:
        self._service = service
        self._found: dict[str, _Found] = {}
        # Kept, because to make a thousand paths takes longer than to look at the files.
        self._files: dict[str, tuple[Path, ...]] = {}
        self._lock = threading.Lock()
        self._looked_at: float | None = None
        self._troubles = -1

    def usable(self) -> bool:
        """Return True when the root exists and its folders can be read and written."""
        root = self._service.root
        return root.is_dir() and os.access(root, os.R_OK | os.W_OK | os.X_OK)

    def look(self) -> Ready:
        """Return the state of each orchestrator; opens changed ones, for ``LOOK_S`` at most."""
        try:
            return self._looked() if self.usable() else Ready(status="unusable")
        except OSError:
            # It may have gone a moment ago, or no file can be opened any more.
            return Ready(status="unusable")

    def _looked(self) -> Ready:
        with self._lock:
            rested = self._looked_at is None or time.monotonic() - self._looked_at >= REST_S
            troubles = self._service.troubles.changes
            # Errors that a call has met are reported at once.
            if rested or troubles != self._troubles:
                self._bring_up_to_date()
                self._looked_at, self._troubles = time.monotonic(), troubles
            names = sorted(self._found)
            standings = tuple(self._told(name) for name in names)
        free = shutil.disk_usage(self._service.root).free
        return Ready(status="ready", disk_free_bytes=free, orchestrators=standings)

    def _bring_up_to_date(self) -> None:
        names = self._service.orchestrators()
        for gone in set(self._found) - set(names):
            del self._found[gone], self._files[gone]
        changed, stale = [], []
        now = self._service.clock.now_ms()
        for name in names:
            known = self._found.setdefault(
                name, _Found(None, Standing(orchestrator=name, status="unknown"), None)
            )
            if known.stamp != self._stamp(name) or self._damaged(name, known):
                changed.append(known)
            # A clock that was set back is no reason to rest for long.
            elif not 0 <= now - (known.standing.looked_at or 0) < FRESH_MS:
                stale.append(known)
        until = time.monotonic() + LOOK_S
        for group in (changed, stale):
            for known in sorted(group, key=lambda one: one.standing.looked_at or 0):
                if time.monotonic() >= until:
                    return
                name = known.standing.orchestrator
                self._found[name] = self._probed(name)

    def _damaged(self, name: str, known: _Found) -> bool:
        """Return True when the damage that calls have met has changed: reading changes no file."""
        if self._service.troubles.code(name) != known.trouble:
            return True
        with self._service.if_open(name) as opened:
            damaged = opened is not None and opened.damage is not None
        return damaged and known.standing.status != "disabled"

    def _probed(self, name: str) -> _Found:
        now = self._service.clock.now_ms()
        # As they were before the look: what changes meanwhile is looked at again.
        stamp, trouble = self._stamp(name), self._service.troubles.code(name)
        oldest = None
        try:
            with self._service.if_open(name) as opened:
                if opened is None:
                    standing, oldest = self._of_closed(name)
                else:
                    opened.require_sound()
                    codes = opened.shortcomings()
                    with opened.database.read() as snapshot:
                        standing, oldest = _read(snapshot, name, codes)
        except DatabaseReplaced as error:
            # After a restore: the next look opens the file that is there now.
            self._service.forget(name)
            standing, stamp = self._disabled(name, error), None
        except MemgraphError as error:
            standing = self._disabled(name, error)
        # An error caused by its data concerns only that one: the others are still reported.
        except Exception as error:  # noqa: BLE001 - whatever it is, see above
            told = DatabaseCorrupt(f"its rows cannot be read ({type(error).__name__}); {VERIFY}")
            standing = self._disabled(name, told)
        looked = standing.model_copy(update={"looked_at": now})
        return _Found(stamp, looked, oldest, trouble)

    def _of_closed(self, name: str) -> tuple[Standing, int | None]:
        """Return the state of a closed one, opened outside the pool, which would close another."""
        chosen = self._service.settings(name).memory
        if not chosen.enabled:
            raise MemoryDisabled("memory is switched off: memory.enabled = false")
        database = provisioning.open_database(
            self._service.paths(name).database,
            name,
            synchronous=chosen.storage.synchronous,
            busy_timeout_ms=chosen.storage.busy_timeout_ms,
        )
        try:
            anchored = anchor.read_state(
                anchor.anchor_path(database.path, chosen.audit.anchor_path)
            )
            with database.read() as snapshot:
                anchor.require_held(snapshot, anchored, name)
                return _read(snapshot, name, [])
        finally:
            database.close()

    def _told(self, name: str) -> Standing:
        found = self._found[name]
        if found.oldest is None:
            return found.standing
        waited_s = max(self._service.clock.now_ms() - found.oldest, 0) / 1_000
        return found.standing.model_copy(update={"oldest_pending_s": waited_s})

    def _disabled(self, name: str, error: MemgraphError) -> Standing:
        advice = outward(error, self._service.root).message
        return Standing(orchestrator=name, status="disabled", codes=(error.code,), advice=advice)

    def _stamp(self, name: str) -> Stamp | None:
        """Return its files' stamp; None: they cannot be read, which must not affect the others."""
        if name not in self._files:
            paths = self._service.paths(name)
            wal = paths.database.with_name(f"{paths.database.name}-wal")
            settings = (global_config_file(self._service.root), paths.config_file)
            self._files[name] = (paths.database, wal, *settings)
        try:
            return stamp_of(*self._files[name])
        except OSError:
            return None


def _read(snapshot: Snapshot, name: str, codes: list[str]) -> tuple[Standing, int | None]:
    last = next(iter(jobs.latest(snapshot, 1)), None)
    standing = Standing(
        orchestrator=name,
        status="degraded" if codes else "ready",
        codes=tuple(codes),
        pending=embeddings.pending_count(snapshot),
        last_job=None
        if last is None
        else LastJob(
            job=last.job, state=last.state, ended_at=last.ended_at, error_code=last.error_code
        ),
    )
    return standing, embeddings.oldest_pending(snapshot)


MAX_SAMPLE: Final = 20_000
"""The maximum number of texts compared with one another, or with what was handed out."""
MAX_EXAMPLES: Final = 100
MAX_STALE: Final = 20_000
MAX_ENDINGS: Final = 100_000
"""The maximum number of memories counted that depend on retracted evidence."""
_HASHES_AT_ONCE = 500
_TURN = MemoryKind.EPISODE.id_prefix

Told = Callable[[str, int, int], None]


class _Rate(NamedTuple):
    number: int
    of: int
    found: Sequence[Found]
    sampled: bool = False


def store_health(
    opened: Opened,
    view: View,
    *,
    fail_on: Sequence[str] = (),
    examples: int = 5,
    progress: Told = lambda _part, _done, _total: None,
) -> StoreHealth:
    """Measure; nothing is changed. See ``AuditingHandle.audit``.

    Raises:
        InvalidInput: an invalid limit, or ``examples`` outside 0..100.
    """
    if not 0 <= examples <= MAX_EXAMPLES:
        raise InvalidInput(f"examples lies between 0 and {MAX_EXAMPLES}", field="examples")
    limits = limits_of(fail_on)
    # What was handed out a moment ago counts, too.
    opened.receipts.flush()
    catch_up(opened)
    taken: dict[Measure, _Rate] = {}
    with opened.database.read() as snapshot:
        measuring = _Measuring(snapshot, view, examples)
        for measure, rate in measuring.rates().items():
            progress(f"measuring {measure}", len(taken), len(Measure))
            taken[measure] = rate()
    # Comparing texts takes seconds, and no snapshot is held for it.
    progress(f"measuring {Measure.NEAR_DUPLICATE}", len(taken), len(Measure))
    taken[Measure.NEAR_DUPLICATE] = measuring.near_duplicates()
    progress("measuring", len(Measure), len(Measure))
    measures = tuple(_measured(each, taken[each], limits) for each in Measure)
    return StoreHealth(
        orchestrator=opened.database.orchestrator_id,
        at=opened.clock.now_ms(),
        memories=measuring.known,
        measures=measures,
        ok=not any(each.failed for each in measures),
    )


class _Measuring:
    """One audit on one snapshot."""

    def __init__(self, snapshot: Snapshot, view: View, examples: int) -> None:
        self._snapshot = snapshot
        self._view = view
        self._examples = examples
        self.known = health.known_count(snapshot, view)
        self._sample = health.sample(snapshot, view, MAX_SAMPLE)

    def rates(self) -> Mapping[Measure, Callable[[], _Rate]]:
        """Return the functions for the measures that are read from the snapshot."""
        return {
            Measure.DUPLICATE: lambda: self._of_known(health.doubled),
            Measure.CONTRADICTION: lambda: self._of_known(health.contradicted),
            Measure.STALE: self._stale,
            Measure.UNSOURCED: lambda: self._of_known(health.unsourced),
            Measure.ORPHAN: lambda: self._of_known(health.orphans),
            Measure.UNEMBEDDED: self._unembedded,
            Measure.ECHO: self._echoes,
        }

    def _of_known(self, ask: Callable[[Snapshot, View, int], tuple[int, list[Found]]]) -> _Rate:
        count, found = ask(self._snapshot, self._view, self._examples)
        return _Rate(count, self.known, found)

    def _stale(self) -> _Rate:
        """Measure all stale memories, up to the bound."""
        page = find_stale(self._snapshot, self._view, limit=MAX_STALE, max_looks=MAX_ENDINGS)
        fallen = [each for each in page.items if not each.memory_id.startswith(_TURN)]
        texts = health.beginnings(
            self._snapshot, [each.memory_id for each in fallen[: self._examples]]
        )
        found = [
            Found(each.memory_id, each.ground_id, texts[each.memory_id])
            for each in fallen[: self._examples]
        ]
        return _Rate(len(fallen), self.known, found, sampled=page.cut or page.place is not None)

    def _unembedded(self) -> _Rate:
        active = health.active_count(self._snapshot, self._view)
        count, found = health.unembedded(self._snapshot, self._view, self._examples)
        return _Rate(count, active, found)

    def near_duplicates(self) -> _Rate:
        """Measure near duplicates within each place: other projects and agents do not count."""
        sample = {each.pk: each for each in self._sample}
        places: dict[str, dict[int, str]] = {}
        for each in self._sample:
            places.setdefault(each.place, {})[each.pk] = each.content
        pairs = {
            pk: other for texts in places.values() for pk, other in near_duplicates(texts).items()
        }
        shown = sorted(pairs, reverse=True)[: self._examples]
        found = [_found(sample[pk], sample[pairs[pk]].memory_id) for pk in shown]
        return self._of_sample(len(pairs), found)

    def _echoes(self) -> _Rate:
        """Measure memories of which every line had been handed out before they were stored."""
        sample = self._sample
        lines = {each.pk: line_hashes(each.content) for each in sample}
        handed = self._handed_out({one for each in lines.values() for one in each})
        found = [
            each
            for each in sample
            if lines[each.pk]
            and all(handed.get(one, each.created_at) < each.created_at for one in lines[each.pk])
        ]
        shown = [_found(each, None) for each in found[::-1][: self._examples]]
        return self._of_sample(len(found), shown)

    def _handed_out(self, hashes: set[int]) -> dict[int, int]:
        """Return when each line was handed out first."""
        wanted = sorted(hashes)
        found: dict[int, int] = {}
        for start in range(0, len(wanted), _HASHES_AT_ONCE):
            part = echoes.find(self._snapshot, wanted[start : start + _HASHES_AT_ONCE])
            found |= {one: first for one, (first, _) in part.items()}
        return found

    def _of_sample(self, count: int, found: Sequence[Found]) -> _Rate:
        looked_at = len(self._sample)
        return _Rate(count, looked_at, found, sampled=looked_at < self.known)


def _found(each: Known, other_id: str | None) -> Found:
    return Found(each.memory_id, other_id, each.content[:EXCERPT_CHARS])


def _measured(measure: Measure, rate: _Rate, limits: Mapping[Measure, float]) -> HealthMeasure:
    share = rate_of(rate.number, rate.of)
    return HealthMeasure(
        measure=measure,
        count=rate.number,
        of=rate.of,
        rate=share,
        sampled=rate.sampled,
        examples=tuple(
            HealthExample(
                memory_ids=tuple(one for one in (each.memory_id, each.other_id) if one is not None),
                text=" ".join(each.text.split()),
            )
            for each in rate.found
        ),
        limit=limits.get(measure),
        failed=fails(measure, share, limits),
    )


class Troubles:
    """Errors by the orchestrator's name, from the first one until its file is opened again.

    Args:
        log_of: the log of an orchestrator, which records each trouble once.
    """

    def __init__(self, log_of: Callable[[str], EventLog]) -> None:
        self._log_of = log_of
        self._codes: dict[str, str] = {}
        self._lock = threading.Lock()
        self.changes = 0
        """How often one of them changed."""

    def code(self, name: str) -> str | None:
        """Return the code of the current error; None: there is none."""
        return self._codes.get(name)

    def met(self, name: str, error: StorageError) -> None:
        """Record an error; the same one again changes nothing."""
        if self._note(name, error.code):
            self._log_of(name).failure("database.unusable", error)

    def over(self, name: str) -> None:
        """Clear the error: the file was opened without one."""
        self._note(name, None)

    def _note(self, name: str, code: str | None) -> bool:
        with self._lock:
            if self._codes.get(name) == code:
                return False
            if code is None:
                del self._codes[name]
            else:
                self._codes[name] = code
            self.changes += 1
            return True
