"""Following the drop zone: a run at the start, and one after every change."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

from ingest.claims import CLAIMS
from ingest.discover import OWN_FOLDERS
from ingest.manifest import IngestReport
from ingest.pipeline import IngestPipeline

# Also without a change: what was being written, or waited for a busy database, is tried again.
RETRY_SECONDS = 5.0


def watch(
    pipeline: IngestPipeline,
    stop: threading.Event,
    *,
    retry_seconds: float = RETRY_SECONDS,
    debounce_ms: int = 200,
) -> Iterator[IngestReport]:
    """Reports of the runs in which something was done, until ``stop`` is set.

    Raises:
        StorageError, MemoryDisabled: as ``IngestPipeline.run``.
    """
    from watchfiles import watch as watch_files

    pipeline.zone.mkdir(parents=True, exist_ok=True)
    own = {pipeline.zone / name for name in (*OWN_FOLDERS, CLAIMS)}
    changes = watch_files(
        pipeline.zone,
        watch_filter=lambda _, path: _is_drop(Path(path), own),
        debounce=debounce_ms,
        stop_event=stop,
        rust_timeout=max(1, int(retry_seconds * 1000)),
        yield_on_timeout=True,
        raise_interrupt=False,
    )
    # What is dropped before the watcher listens is found by the retry.
    report = pipeline.run()
    if _something(report):
        yield report
    for _ in changes:
        report = pipeline.run()
        if _something(report):
            yield report


def _is_drop(path: Path, own: set[Path]) -> bool:
    return path not in own and own.isdisjoint(path.parents)


def _something(report: IngestReport) -> bool:
    return any(each.outcome != "skipped" for each in report.results)
