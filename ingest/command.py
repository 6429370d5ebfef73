"""The command ``memgraph ingest``: copy files into the drop zone, and turn them into memories.

memgraph finds the function by its entry point and adds it to the command line. This package imports
no surface: an ``Invocation`` and a ``Screen`` are untyped here.
"""

from __future__ import annotations

import signal
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from ingest.claims import FileResult
from ingest.drop_zone import FileToCopy, stage
from ingest.pipeline import IngestPipeline, Progress
from ingest.reasons import RejectionReason, SkippedPart
from memgraph.errors import IngestRejected, MemgraphError

if TYPE_CHECKING:
    from ingest.preview import FilePreview
    from memgraph.operations.orchestrator import Orchestrator


WATCH_SECONDS = 2.0
"""The time between two runs of --watch."""


def watch(
    pipeline: IngestPipeline, stop: threading.Event, *, every_s: float = WATCH_SECONDS
) -> Iterator[list[FileResult]]:
    """Run the pipeline every two seconds until ``stop`` is set; yield reports with results.

    Raises:
        StorageError, MemoryDisabled: as ``IngestPipeline.run``.
    """
    while not stop.is_set():
        report = pipeline.run()
        if any(result.outcome != "skipped" for result in report):
            yield report
        stop.wait(every_s)


# The number of past results that --watch keeps.
MAX_KEPT = 1_000
MAX_ROWS = 40
Row = tuple[str, ...]
_File = TypeVar("_File", bound="FileResult")
PREVIEW_COLUMNS = ("file", "outcome", "recognised as", "memories", "reason")
COUNTED = ("memories", "edges")
COLUMNS = ("file", "outcome", *COUNTED, "reason")


@dataclass(slots=True)
class CommandAnswer:
    """The result of a command: JSON data, a function to show it, and the error for exit code 1."""

    data: dict[str, Any]
    show: Callable[[Any], None]
    error: MemgraphError | None = None


def command(
    context: typer.Context,
    orchestrator: Annotated[
        str, typer.Argument(metavar="ORC", help="The orchestrator's name.", show_default=False)
    ],
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="PATH",
            exists=True,
            help="Files, and folders to search for .txt, .md and .json; they are first copied "
            "into the drop zone.",
            show_default=False,
        ),
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Watch the drop zone until interrupted.")
    ] = False,
    retry: Annotated[
        bool,
        typer.Option("--retry", help="Also retry held files, which failed ten times."),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Show what would happen to each file; write nothing."),
    ] = False,
) -> CommandAnswer:
    """Turn dropped files into memories.

    Processes the files in the drop zone, <root>/ORC/memory/ingest/. Every file is moved to
    processed/ or rejected/ below it, with a manifest that records the outcome and the reason. The
    same content is processed only once. The exit code is 1 when a file was rejected, held or
    failed.
    """
    cli: Any = context.find_root().obj
    if dry_run and watch:
        raise typer.BadParameter("--dry-run cannot be combined with --watch")
    with cli.orchestrator(orchestrator) as handle:
        if dry_run:
            return _previewed(handle, paths or [], retry=retry)
        skipped = stage(paths or [], handle.paths.ingest)
        results = (_watch if watch else _run_once)(cli, handle, retry=retry)
        embedding = cli.after_writing(handle)
        zone = handle.paths.ingest
    totals = dict(sorted(Counter(result.outcome for result in results).items()))
    not_copied = _not_copied(skipped)
    data = {
        "files": [result.as_dict() for result in results],
        "totals": totals,
        "not_copied": not_copied,
        "embedding": embedding,
    }

    def show(screen: Any) -> None:
        if not watch:
            _table(screen, COLUMNS, results, _row)
        _show_not_copied(screen, not_copied)
        summary = ", ".join(f"{count} {outcome}" for outcome, count in totals.items())
        memories, edges = (sum(_stored(result, name) for result in results) for name in COUNTED)
        if memories or edges:
            counts = f"{memories:,} memor{'y' if memories == 1 else 'ies'} and {edges:,} edge"
            summary = f"{summary}: {counts}{'' if edges == 1 else 's'} stored"
        screen.line(summary or f"the drop zone is empty: name files, or copy them to {zone}")

    # With --watch, failures were already shown as they occurred.
    return CommandAnswer(data, show, None if watch else _refusal(results))


def _previewed(handle: Orchestrator, paths: Sequence[Path], *, retry: bool) -> CommandAnswer:
    from ingest.preview import preview

    previews, skipped = preview(handle, paths, retry=retry)
    not_copied = _not_copied(skipped)
    totals = dict(sorted(Counter(preview.outcome for preview in previews).items()))
    data = {
        "files": [planned.as_dict() for planned in previews],
        "totals": totals,
        "not_copied": not_copied,
    }

    def show(screen: Any) -> None:
        _table(screen, PREVIEW_COLUMNS, previews, _preview_row)
        _show_not_copied(screen, not_copied)
        counts = ", ".join(f"{count} {outcome}" for outcome, count in totals.items())
        kinds = Counter(file.recognised for file in previews if file.recognised)
        if len(previews) > MAX_ROWS:
            screen.fields([(str(count), kind) for kind, count in kinds.most_common()])
        screen.line(f"dry run, nothing was written; expected: {counts or 'nothing'}")

    return CommandAnswer(data, show, _refusal(previews))


def _preview_row(file: FilePreview) -> tuple[str, ...]:
    types = ", ".join(f"{count} {name}" for name, count in file.types.items())
    return (file.path, file.outcome, file.recognised or "", types, _why(file))


def _not_copied(files: Sequence[FileToCopy]) -> list[dict[str, str]]:
    return [{"path": str(file.source), "reason": str(file.reason)} for file in files]


def _show_not_copied(screen: Any, files: Sequence[Mapping[str, str]]) -> None:
    for file in files:
        screen.line(f"not copied ({file['reason']}): {file['path']}", style="yellow")


def _run_once(line: Any, handle: Orchestrator, *, retry: bool) -> list[FileResult]:
    with _pipeline(line, handle, retry=retry) as pipeline:
        return list(pipeline.run())


def _watch(line: Any, handle: Orchestrator, *, retry: bool) -> list[FileResult]:
    """Show the results of each run; return the latest ones when interrupted."""
    results: deque[FileResult] = deque(maxlen=MAX_KEPT)
    stop = threading.Event()
    screen = None if line.as_json else line.screen()
    with _stopped_by_signals(stop), _pipeline(line, handle, retry=retry) as pipeline:
        if screen is not None:
            screen.line(f"watching {pipeline.zone}; stop with Ctrl-C")
        for report in watch(pipeline, stop):
            results.extend(report)
            line.after_writing(handle)
            if screen is not None:
                _table(screen, COLUMNS, report, _row)
    return list(results)


@contextmanager
def _pipeline(line: Any, handle: Orchestrator, *, retry: bool) -> Iterator[IngestPipeline]:
    with line.stages("ingesting") as show:

        def progress(at: Progress) -> None:
            stored = f"{at.steps_done:,} of {at.steps:,} of " if at.steps else ""
            show(f"{stored}{at.path}", at.done, at.total)

        yield IngestPipeline(
            handle,
            progress=progress,
            retry=retry,
            waits=lambda: line.note("another run ingests this drop zone; waiting for it to end"),
        )


@contextmanager
def _stopped_by_signals(stop: threading.Event) -> Iterator[None]:
    """Set ``stop`` on Ctrl-C or SIGTERM, so that the current run finishes first."""
    names = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, lambda *_: stop.set()) for number in names]
    try:
        yield
    finally:
        for number, handler in zip(names, before, strict=True):
            # None: it was not set from Python.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


def _row(file: FileResult) -> tuple[str, ...]:
    counts = (str(_stored(file, name)) if name in file.counts else "" for name in COUNTED)
    return (file.path, file.outcome, *counts, _why(file))


def _table(
    screen: Any, columns: Sequence[str], files: Sequence[_File], row: Callable[[_File], Row]
) -> None:
    """Show every file, or, if there are many, only those that need attention."""
    listed = files if len(files) <= MAX_ROWS else [file for file in files if file.reason]
    if listed:
        screen.table(columns, [row(file) for file in listed[:MAX_ROWS]])
    if omitted := len(files) - len(listed[:MAX_ROWS]):
        more = "more " if listed else ""
        screen.line(f"{omitted:,} {more}files need no attention; --json lists all")


def _why(file: FileResult) -> str:
    """Return why a file was not stored, or not all of it as new, and what was not understood."""
    message = None if file.left_out else file.message  # it only counts them
    why = ": ".join(filter(None, (file.reason, message)))
    noted = ", ".join(
        f"{count} {code}" for code, count in file.findings.items() if code not in file.left_out
    )
    if file.unread_dates:
        code = SkippedPart.DATE_NOT_UNDERSTOOD.value
        noted = noted.replace(code, f"{code} ({', '.join(map(repr, file.unread_dates))})")
    again = file.counts.get("memories", {}).get("duplicate", 0)
    known = f"{again} known already" if again else ""
    return "; ".join(filter(None, (why, known, _left_out(file.left_out), noted)))


def _left_out(counts: Mapping[str, int]) -> str:
    """Return the parts of a file that are not in a memory: ``left out: 3 (2 picture, 1 rule)``."""
    if not counts:
        return ""
    reasons = ", ".join(f"{count} {reason}" for reason, count in counts.items())
    return f"left out: {sum(counts.values())} ({reasons})"


def _stored(file: FileResult, name: str) -> int:
    """Return the number of new memories or edges of a file."""
    value = file.counts.get(name, 0)
    if name == "edges":
        return int(value) + int(file.counts.get("links_made", 0))
    return int(value.get("stored", 0) if isinstance(value, dict) else value)


def _refusal(results: Sequence[FileResult]) -> IngestRejected | None:
    refused = [
        result
        for result in results
        if result.outcome in ("rejected", "failed") or result.reason == RejectionReason.HELD
    ]
    if not refused:
        return None
    return IngestRejected(f"{len(refused)} of {len(results)} files could not be ingested")
