"""The state of all orchestrators of a root, cheap for any number of them.

The state of each one is cached until its files change, or for a minute, because jobs become overdue
and a failed disk recovers without a change of files. A check opens only a few, changed ones first
and among them the least recently checked, so that its cost is bounded; for the others it returns
the cached state.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Mapping
from contextlib import closing
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from memgraph.audit import anchor
from memgraph.audit.findings import AnchorState
from memgraph.config.schema import ScheduleSettings
from memgraph.errors import (
    DatabaseCorrupt,
    DatabaseFull,
    DatabaseReplaced,
    ExtraMissing,
    MemgraphError,
    MemoryDisabled,
)
from memgraph.model.jobs import OrchestratorState, ServiceReadiness
from memgraph.operations.write.embedding import NOTHING_TO_EMBED, model_mismatch
from memgraph.providers.options import LITELLM_PREFIX
from memgraph.service import job_runs
from memgraph.service.open_orchestrator import OpenOrchestrator
from memgraph.service.sanitizer import sanitized_error
from memgraph.store import comparisons, embeddings, erasure, ingest_files, metadata
from memgraph.store.snapshot import Snapshot

if TYPE_CHECKING:
    from memgraph.service.memory_service import MemoryService

VERIFY: Final = "run: memgraph verify, then memgraph restore with a backup"
REMEDIES: Final[Mapping[str, str]] = {
    "embedding.model_changed": "The vectors come from another model than the configured one:"
    " run memgraph embed --rebuild, or set the model back.",
    "embedding.failing": "Some memories could not be embedded: check the model,"
    " then run memgraph embed --retry.",
    "comparison.failing": "The model that compares facts fails: check memory.llm."
    " New facts wait until it works.",
    "model.failing": "The last call of the language model failed: run memgraph config check."
    " Pages and new facts wait until it works.",
    "provider.monthly_limit": "The month's tokens are used up: raise memory.llm.monthly_tokens."
    " Pages and new facts wait until the next month.",
    "extra.missing": "A configured model requires litellm, which is not installed:"
    " install the extra, or choose another provider.",
    "entities.failing": "The model that detects entities fails: check its settings.",
    "receipts.dropped": "Some receipts were not kept: see the server's log.",
    "jobs.failing": "The last run of a job failed: its record under Jobs gives the reason.",
    "ingest.held": "The ingestion of a file was started ten times without success:"
    " run memgraph ingest --retry to try it again.",
    "jobs.overdue": "A job has been due for more than a day: check that a worker runs.",
    "erasure.unfinished": "An erasure was started and not finished:"
    " run the same memgraph erase again to finish it.",
    erasure.UNDONE: "A restore undid erasures:"
    " run memgraph erasures, then erase again what it lists as undone: the same target, or the"
    " listed memories by their whole ids, which memgraph get shows.",
    erasure.UNKNOWN: "A restore replaced a database that could not be read, so the erasures that it"
    " undid are not known: erase again what was erased since the backup, then run memgraph repair"
    " with --accept.",
    "journal.unanchored": "The journal's anchor is missing or damaged:"
    " run memgraph repair, then accept the journal as it is.",
    "verify.failed": "The last nightly audit found something, or an entry of the journal cannot be"
    " read: run memgraph verify.",
    "storage.full": "The disk was full at the last write: free some space.",
}
"""The meaning and the remedy of each code of a degraded orchestrator."""
LOOK_S: Final = 0.25
"""The maximum time, in seconds, that one check may spend opening databases."""
FRESH_MS: Final = 60_000
"""Milliseconds after which an orchestrator is checked even if no file has changed."""


def shortcomings(opened: OpenOrchestrator) -> list[str]:
    """Return the codes of current problems, such as failing jobs; see ``REMEDIES``.

    Raises:
        StorageError: the database cannot be read.
    """
    anchored = anchor.read(opened.anchor_file)
    with opened.database.read() as snapshot:
        state = anchor.compare(snapshot, anchored, opened.anchor_file)
        codes = _stored_shortcomings(
            snapshot, state, opened.settings.memory.schedule, opened.clock.now_ms()
        )
        if model_mismatch(snapshot, opened.embedding) is not None:
            codes.append("embedding.model_changed")
        if opened.llm is not None or opened.settings.memory.extractor.provider != "none":
            codes += opened.model_meter.shortcomings(snapshot)
    if opened.database.is_full:
        codes.append(DatabaseFull.code)
    if _lacks_litellm(opened):
        codes.append(ExtraMissing.code)
    if opened.naming.fast_failure is not None:
        codes.append("entities.failing")
    if opened.receipts.dropped:
        codes.append("receipts.dropped")
    return codes


def _stored_shortcomings(
    snapshot: Snapshot, anchored: AnchorState, schedules: ScheduleSettings, now_ms: int
) -> list[str]:
    """Return the codes that show in the rows and the anchor alone, without a provider."""
    codes = []
    if anchored in (AnchorState.MISSING, AnchorState.DAMAGED):
        codes.append("journal.unanchored")
    try:
        if erasure.undone(snapshot):
            codes.append(erasure.UNDONE)
        if erasure.unknown_at(snapshot) is not None:
            codes.append(erasure.UNKNOWN)
        is_readable = True
    except DatabaseCorrupt:
        is_readable = False
    if metadata.last_verification(snapshot).totals or not is_readable:
        codes.append("verify.failed")
    if set(embeddings.error_counts(snapshot)) - {NOTHING_TO_EMBED}:
        codes.append("embedding.failing")
    if comparisons.is_failing(snapshot):
        codes.append("comparison.failing")
    if metadata.get(snapshot, erasure.UNFINISHED_KEY) is not None:
        codes.append("erasure.unfinished")
    if ingest_files.is_any_held(snapshot):
        codes.append("ingest.held")
    return codes + job_runs.shortcomings(snapshot, schedules, now_ms)


def _lacks_litellm(opened: OpenOrchestrator) -> bool:
    providers = (opened.embedding, opened.llm)
    names = [provider.name for provider in providers if provider is not None]
    names.append(opened.settings.memory.extractor.provider)
    return any(name.startswith(LITELLM_PREFIX) for name in names) and not find_spec("litellm")


class Readiness:
    """Checks the orchestrators of a service without opening them all. Thread-safe."""

    def __init__(self, service: MemoryService) -> None:
        self._service = service
        # The last known states, each with what it depends on.
        self._known: dict[str, tuple[OrchestratorState, object]] = {}
        self._lock = threading.Lock()

    def usable(self) -> bool:
        """Return True when the root exists and its folders can be read and written."""
        root = self._service.root
        return root.is_dir() and os.access(root, os.R_OK | os.W_OK | os.X_OK)

    def look(self) -> ServiceReadiness:
        """Return the state of each orchestrator; opens changed ones, for ``LOOK_S`` at most."""
        try:
            if not self.usable():
                return ServiceReadiness(status="unusable")
            with self._lock:
                self._bring_up_to_date()
                states = tuple(self._known[name][0] for name in sorted(self._known))
            free = shutil.disk_usage(self._service.root).free
        except OSError:
            # The root may have just been removed, or no more files can be opened.
            return ServiceReadiness(status="unusable")
        return ServiceReadiness(status="ready", disk_free_bytes=free, orchestrators=states)

    def _bring_up_to_date(self) -> None:
        names = self._service.names_known(self._known)
        for removed in set(self._known) - set(names):
            del self._known[removed]
        now, due = self._service.clock.now_ms(), []
        for name in names:
            unknown = OrchestratorState(orchestrator=name, status="unknown"), None
            state, before = self._known.setdefault(name, unknown)
            looked_at, stamp = state.looked_at or 0, self._stamp(name)
            # With a clock that was set back the state counts as old, too.
            if stamp != before or not 0 <= now - looked_at < FRESH_MS:
                due.append((stamp == before, looked_at, name, stamp))
        until = time.monotonic() + LOOK_S
        for _, _, name, stamp in sorted(due):
            if time.monotonic() >= until:
                return
            # The stamp from before the check, so that a change during it leads to another one.
            self._known[name] = self._state(name, now), stamp

    def _state(self, name: str, now_ms: int) -> OrchestratorState:
        error: MemgraphError
        try:
            with self._service.pool.if_open(name) as opened:
                if opened is None or self._service.is_elsewhere(opened):
                    return self._of_closed(name, now_ms)
                opened.require_sound()
                codes = shortcomings(opened)
                with opened.database.read() as snapshot:
                    return _read(snapshot, name, codes, now_ms)
        except DatabaseReplaced:
            # After a restore: what is open is the old file.
            self._service.forget(name)
            return self._state(name, now_ms)
        except MemgraphError as known:
            error = known
        # An error in the data of one orchestrator must not hide the others.
        except Exception as unknown:  # noqa: BLE001 - whatever it is, see above
            kind = type(unknown).__name__
            error = DatabaseCorrupt(f"its rows cannot be read ({kind}); {VERIFY}")
        return OrchestratorState(
            orchestrator=name,
            status="disabled",
            codes=(error.code,),
            advice=sanitized_error(error, self._service.root).message,
            looked_at=now_ms,
        )

    def _of_closed(self, name: str, now_ms: int) -> OrchestratorState:
        """Return the state of a closed orchestrator, opened outside the pool to evict no other.

        It has the codes that its rows and its anchor show. Those of models, buffers and the disk
        need an open orchestrator.
        """
        chosen = self._service.settings(name).memory
        if not chosen.enabled:
            raise MemoryDisabled("memory is disabled: memory.enabled = false")
        path = anchor.anchor_path(self._service.paths(name).database, chosen.audit.anchor_path)
        with closing(self._service.located(name).store.open(chosen.storage)) as database:
            anchored = anchor.read(path)
            with database.read() as snapshot:
                state = anchor.require_held(snapshot, anchored, path, name)
                codes = _stored_shortcomings(snapshot, state, chosen.schedule, now_ms)
                return _read(snapshot, name, codes, now_ms)

    def _stamp(self, name: str) -> object:
        """Return what a state depends on: the files, and the error that calls have met."""
        try:
            place = self._service.located(name)
            files = place.store.stamp(), place.settings
        except (OSError, MemgraphError):
            files = None
        failure = self._service.pool.failure(name)
        return files, failure and failure.code


def _read(snapshot: Snapshot, name: str, codes: list[str], now_ms: int) -> OrchestratorState:
    oldest = embeddings.oldest_pending(snapshot)
    return OrchestratorState(
        orchestrator=name,
        status="degraded" if codes else "ready",
        codes=tuple(codes),
        pending=embeddings.pending_count(snapshot),
        oldest_pending_s=None if oldest is None else max(now_ms - oldest, 0) / 1_000,
        looked_at=now_ms,
    )
