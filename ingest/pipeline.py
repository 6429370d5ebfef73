"""The ingest pipeline: discover, claim, parse, extract, validate, store, manifest, move.

Each content is stored exactly once; a large file takes many short transactions. A worker may be
killed at any point: the next run continues with its claim. New files are processed first, small
ones before large ones, then interrupted ones.
"""

from __future__ import annotations

import os
import posixpath
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ingest.claims import (
    CLAIMS,
    MANIFEST_ENDING,
    MANIFEST_VERSION,
    FileClaim,
    FileResult,
    Outcome,
    claim,
    claims,
    exclusive_run,
    recorded_fields,
    remove_stale,
    summary_of,
    with_partial,
)
from ingest.drop_zone import OWN_FOLDERS, DropEntry, discover, display_path, remove_emptied
from ingest.extract import shortened, to_document, to_memories
from ingest.parse import parse_document
from ingest.propose import ModelExtractor
from ingest.reasons import RejectionReason
from ingest.safe_files import (
    FileContent,
    FileVanished,
    StillBeingWritten,
    check_safely,
    open_directory,
    open_parent,
    read_head,
    read_safely,
    written,
)
from memgraph.clock import SystemClock, iso
from memgraph.errors import DatabaseBusy, IngestRejected, MemgraphError, MemoryDisabled
from memgraph.model.sources import Document
from memgraph.paths import naming_full_disk
from memgraph.text.dates import DateOrder, date_order

if TYPE_CHECKING:
    from memgraph.operations.orchestrator import Orchestrator

# After this many attempts without progress, a file is held for an operator.
MAX_ATTEMPTS = 10
# Larger files are processed last.
LARGE_BYTES = 1_000_000
# Up to these sizes a file is stored in one transaction, without a plan file.
_SMALL = 20
_SMALL_CHARS = 20_000
MEGABYTE = 1_000_000
# The dates of a decision record are in its first lines.
HEAD_BYTES = 2_000
HELD = f"failed {MAX_ATTEMPTS} times without progress; retry it with: memgraph ingest --retry"
_COUNT_FIELDS = (
    "memories",
    "edges",
    "links_made",
    "links_waiting",
    "links_rejected",
    "to_compare",
    "rejected_items",
)


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a run, reported before, during and after each file.

    ``result`` is None before and during a file. ``total`` is the number of files known so far;
    ``steps_done`` and ``steps`` count the steps of storing the current file.
    """

    done: int
    total: int
    path: str
    result: FileResult | None = None
    steps_done: int = 0
    steps: int = 0


def place_of(item: DropEntry | FileClaim) -> str:
    """Return where a waiting file lies, relative to the drop zone."""
    return f"{CLAIMS}/{item.claim_id}/file" if isinstance(item, FileClaim) else item.path


def waiting_files(zone: Path) -> tuple[list[DropEntry | FileClaim], list[FileClaim]]:
    """Return the new files, small ones before large ones, and those that a run has begun."""

    def is_large(item: DropEntry | FileClaim) -> bool:
        try:
            return (zone / place_of(item)).lstat().st_size > LARGE_BYTES
        except OSError:
            return False

    claimed = claims(zone)
    new: list[DropEntry | FileClaim] = [
        *discover(zone),
        *(each for each in claimed if not each.started_at),
    ]
    return sorted(new, key=is_large), [each for each in claimed if each.started_at]


def read_above(
    zone: Path, claimed_files: Iterable[FileClaim], path: str, name: str
) -> bytes | None:
    """Return a file of the parent folder of ``path``, whether it waits or was processed."""
    wanted = "/".join((*path.split("/")[:-2], name))
    claimed = [place_of(each) for each in claimed_files if each.path == wanted]
    for candidate in (wanted, *claimed, f"processed/{wanted}"):
        with (
            suppress(FileVanished, StillBeingWritten, IngestRejected),
            open_parent(zone, candidate) as (parent, bare),
        ):
            return read_safely(bare, parent, max_bytes=MEGABYTE * 10).data
    return None


def heads_of(zone: Path, items: Iterable[DropEntry | FileClaim]) -> Iterator[tuple[str, bytes]]:
    """Yield the paths and the first bytes of the Markdown files among waiting ones."""
    for item in items:
        with suppress(FileVanished, IngestRejected, OSError):
            if item.path.casefold().endswith(".md"):
                with open_parent(zone, place_of(item)) as (folder, name):
                    head = read_head(name, folder, HEAD_BYTES)
                yield item.path, head


def date_orders(heads: Iterable[tuple[str, bytes]]) -> dict[str, DateOrder | None]:
    """Return the date order (day or month first) that the files of each folder reveal."""
    texts: dict[str, list[str]] = {}
    for path, head in heads:
        texts.setdefault(posixpath.dirname(path), []).append(head.decode("utf-8", "replace"))
    return {folder: date_order(each) for folder, each in texts.items()}


def same_content(recorded: Mapping[str, Any]) -> str | None:
    """Return which stored file a duplicate repeats, and its manifest; None if that is not known."""
    stored_as = recorded.get("stored_as")
    return stored_as and f"the same content as {stored_as} ({stored_as}{MANIFEST_ENDING})"


class IngestPipeline:
    """Processes the drop zone of one orchestrator. Runs of several processes take turns.

    Args:
        store: the orchestrator's handle.
        now_ms: the clock for manifests, milliseconds since 1970.
        progress: called in this thread before and after each file and during storing.
        stop: checked before each file and each part of one; the rest is left for the next run.
        retry: also process held files in the first run, which failed ten times without progress.
        wait_s: how long to wait for another run to end, seconds.
        waits: called when a run begins to wait for another one.
    """

    def __init__(
        self,
        store: Orchestrator,
        *,
        now_ms: Callable[[], int] | None = None,
        progress: Callable[[Progress], None] | None = None,
        stop: Callable[[], bool] = lambda: False,
        retry: bool = False,
        wait_s: float = 60.0,
        waits: Callable[[], None] = lambda: None,
    ) -> None:
        self.store, self.zone = store, store.paths.ingest
        self.now_ms = now_ms or SystemClock().now_ms
        self.stop = stop
        self.claims: list[FileClaim] = []
        self.extractor = ModelExtractor(store.ingestion.propose)
        self._progress, self._retry = progress, retry
        self._wait_s, self._waits = wait_s, waits
        self._emptied: set[str] = set()
        self._results: list[FileResult] = []
        self._known = 0
        self.orders: dict[str, DateOrder | None] = {}

    def run(self) -> list[FileResult]:
        """Process the files in the drop zone, then those that an earlier run did not finish.

        The results are in the order of processing.

        Raises:
            DatabaseBusy: another run did not end within ``wait_s``.
            MemoryDisabled: ``memory.ingest.enabled`` is false.
            IngestRejected: the drop zone, or one of its own folders, is a link.
            StorageError: the database failed, or the disk is full; the current file stays claimed,
                and the next run continues with it.
        """
        if not self.store.settings.memory.ingest.enabled:
            raise MemoryDisabled("ingestion is disabled: memory.ingest.enabled = false")
        for own in ("", CLAIMS, *sorted(OWN_FOLDERS)):
            with suppress(FileVanished), open_directory(os.fspath(self.zone / own)):
                pass  # raises if it is a link: files must not be moved out of the drop zone
        alone = exclusive_run(self.zone, self.stop, self._wait_s, self._waits)
        with naming_full_disk(self.zone), alone:
            return self._run()

    def _run(self) -> list[FileResult]:
        remove_stale(self.zone)
        self._emptied = set()
        self.extractor = ModelExtractor(self.store.ingestion.propose)
        self._results = []
        new, begun = waiting_files(self.zone)
        self._known = len(new)
        self.claims = [item for item in (*new, *begun) if isinstance(item, FileClaim)]
        self.orders = date_orders(heads_of(self.zone, new))
        for item in (*new, *begun):
            path = display_path(item.path)
            self.report(path)
            result = self._finish(item) if isinstance(item, FileClaim) else self._take(item)
            if result is not None:
                self._results.append(result)
                self.report(path, result)
            if self.stop():
                break
        # Files that are held again wait for the next --retry.
        self._retry = False
        remove_emptied(self.zone, self._emptied)
        return self._results

    def report(
        self, path: str, result: FileResult | None = None, at: tuple[int, int] = (0, 0)
    ) -> None:
        """Report the progress of the file at ``path`` and of the run."""
        if self._progress is not None:
            done = len(self._results)
            self._progress(Progress(done, max(self._known, done), path, result, *at))

    def _take(self, entry: DropEntry) -> FileResult | None:
        """Process one entry of the drop zone; None if it is gone."""
        path = display_path(entry.path)
        if entry.reason is not None:
            return FileResult(path, "skipped", entry.reason)
        try:
            # Checked before it is moved: a file that is still being written stays where it is.
            with open_parent(self.zone, entry.path) as (folder, name):
                check_safely(name, folder)
            claimed = claim(self.zone, entry.path, at=self.now_ms())
        except StillBeingWritten:
            return FileResult(path, "skipped", RejectionReason.STILL_BEING_WRITTEN)
        except FileVanished:
            return None
        except PermissionError:
            return FileResult(path, "skipped", RejectionReason.UNREADABLE)
        except IngestRejected as error:
            # A folder of the path became a link, so the file is not touched.
            return FileResult(path, "skipped", str(error.details["reason"]), error.message)
        if claimed is None:
            return None
        self.claims.append(claimed)
        self._emptied.add(entry.path.rpartition("/")[0])
        return self._finish(claimed)

    def _finish(self, file_claim: FileClaim) -> FileResult:
        path = display_path(file_claim.path)
        if self._retry:
            file_claim.held, file_claim.attempts = None, 0
        elif file_claim.held is not None and self.store.ingestion.stored(file_claim.held) is None:
            return FileResult(path, "skipped", RejectionReason.HELD, HELD, file_claim.held)
        try:
            result = _Work(self, self.store, file_claim, path).finish()
        except StillBeingWritten:
            file_claim.leave_untried()
            return FileResult(path, "skipped", RejectionReason.STILL_BEING_WRITTEN)
        except _LeftForLater as left:
            file_claim.leave_untried()
            return FileResult(path, "skipped", left.reason)
        except DatabaseBusy as error:
            file_claim.leave_untried()
            return FileResult(path, "failed", error.code, error.message)
        except MemgraphError:
            # A failure of the database, not of the file: all other files would fail too.
            file_claim.leave_untried()
            raise
        self.store.ingestion.log_event(
            f"ingest.{result.outcome}",
            path=result.path,
            reason=result.reason,
            sha256=result.sha256,
            manifest=result.manifest,
            resumed=result.resumed,
        )
        return result


class _LeftForLater(Exception):
    """A claimed file is left for a later run."""

    def __init__(self, reason: RejectionReason) -> None:
        self.reason = reason


@dataclass(slots=True)
class _Work:
    """The processing of one claimed file, which ends in ``processed/`` or ``rejected/``."""

    run: IngestPipeline
    store: Orchestrator
    claim: FileClaim
    display: str

    def finish(self) -> FileResult:
        content: FileContent | None = None
        attempts = self.claim.attempts
        if self.claim.sender is not None:
            # An uploaded file is stored with the permissions of its sender.
            self.store = self.store.ingestion.on_behalf(self.claim.sender)
        try:
            self.claim.begin(self.run.now_ms())
            with open_directory(str(self.claim.directory)) as folder:
                limit = self.store.settings.memory.ingest.max_file_size_mb * MEGABYTE
                content = read_safely(self.claim.file.name, folder, max_bytes=limit)
            if attempts >= MAX_ATTEMPTS and self.claim.held is None:
                return self._hold(content, attempts)
            return self._ingest(content)
        except IngestRejected as error:
            return self._reject(error, content)

    def _ingest(self, content: FileContent) -> FileResult:
        before = self.store.ingestion.stored(content.sha256)
        if before is not None:
            return self._repeated(content, before)
        # Asked before the file is parsed, which may ask a model.
        claim_id = self.claim.claim_id
        if self.store.ingestion.under_way(content.sha256, claim_id, self._is_here):
            raise _LeftForLater(RejectionReason.BEING_STORED)
        document = self._planned() or self._plan(content)
        outcome = self.store.ingestion.store(
            document, progress=self._has_progressed, stop=self.run.stop
        )
        if outcome.outcome == "begun":
            raise _LeftForLater(RejectionReason.INTERRUPTED)
        if outcome.outcome == "under_way":
            raise _LeftForLater(RejectionReason.BEING_STORED)
        if outcome.outcome == "duplicate":
            return self._repeated(content, outcome.manifest)
        resumed = self.claim.adopted and self.claim.plan_file.exists()
        return self._processed(content, outcome.manifest, resumed=resumed)

    def _has_progressed(self, done: int, total: int) -> None:
        self.claim.has_progressed()
        self.run.report(self.display, at=(done, total))

    def _is_here(self, claim_id: str) -> bool:
        """Return True for a claim of this drop zone that has its file."""
        return (self.claim.directory.with_name(claim_id) / self.claim.file.name).exists()

    def _planned(self) -> Document | None:
        """Return the stored plan of an interrupted worker, if there is one."""
        try:
            return Document.model_validate_json(self.claim.plan_file.read_bytes())
        except (FileNotFoundError, ValueError):
            return None

    def _plan(self, content: FileContent) -> Document:
        """Parse the file. The plan of a large file is saved until it is stored."""
        parsed = parse_document(
            content.data,
            self.display,
            partial(read_above, self.claim.zone, self.run.claims, self.claim.path),
            self.run.orders.get(posixpath.dirname(self.claim.path)),
        )
        self.run.extractor.extend(parsed)
        self.claim.reserve("processed", self.run.claims)
        stored_as = display_path(os.path.realpath(self.claim.stored_file))
        memories = to_memories(parsed, sha256=content.sha256, source_path=stored_as)
        manifest = {
            **self._head(content),
            "format": parsed.format,
            "title": parsed.title,
            **summary_of(parsed.findings),
        }
        document = to_document(
            parsed,
            memories,
            sha256=content.sha256,
            path=self.display,
            plan=f"{self.claim.claim_id}:{secrets.token_hex(4)}",
            manifest=manifest,
        )
        steps = len(memories) + len(document.edges) + len(document.links)
        if steps > _SMALL or sum(len(memory.content) for memory in memories) > _SMALL_CHARS:
            with written(self.claim.directory, document.model_dump_json()) as fresh:
                fresh.rename(self.claim.plan_file)
        return document

    def _processed(
        self, content: FileContent, recorded: Mapping[str, Any], *, resumed: bool = False
    ) -> FileResult:
        return self._close("processed", content, with_partial(recorded), resumed=resumed)

    def _repeated(self, content: FileContent, recorded: Mapping[str, Any]) -> FileResult:
        """Return the result for a content that is already stored.

        If an interrupted worker of this claim stored it, only the manifest is missing.
        """
        if recorded.get("claim") == self.claim.claim_id:
            return self._processed(content, recorded, resumed=True)
        first = {"path": recorded.get("path"), "stored_as": recorded.get("stored_as")}
        message = same_content(recorded)
        if self.claim.copied:
            # Its original is where it was; a further copy would be of no use.
            self.claim.remove()
            stored_as = first["stored_as"]
            if stored_as and not (self.claim.zone / stored_as).exists():
                # It was moved, or lies on another host.
                stored_as = None
            return FileResult(
                self.display,
                "duplicate",
                message=message,
                sha256=content.sha256,
                stored_as=stored_as,
                manifest=stored_as and stored_as + MANIFEST_ENDING,
            )
        self.claim.reserve("processed", self.run.claims)
        facts = {**self._head(content), "first": first, "message": message}
        return self._close("duplicate", content, facts)

    def _hold(self, content: FileContent, attempts: int) -> FileResult:
        """Retract what this claim stored of the file, and hold it until a retry is requested."""
        sha256 = content.sha256
        self.store.ingestion.give_up(sha256, self.claim.claim_id)
        manifest = {
            **self._head(content),
            "outcome": "held",
            "reason": RejectionReason.HELD.value,
            "message": HELD,
            "details": {"attempts": attempts},
        }
        self.store.ingestion.reject(sha256, path=shortened(self.display), manifest=manifest)
        self.claim.held = sha256
        self.claim.save()
        return FileResult(self.display, "held", RejectionReason.HELD, HELD, sha256)

    def _reject(self, error: IngestRejected, content: FileContent | None) -> FileResult:
        reason = str(error.details["reason"])
        # An unreadable file has no digest, unless it was computed when the file was sent.
        sha256 = content.sha256 if content else self.claim.sha256
        if sha256 is not None:
            self.store.ingestion.give_up(sha256, self.claim.claim_id)
        if self.claim.copied and self.claim.is_in("rejected"):
            self.claim.remove()
            return FileResult(self.display, "rejected", reason, error.message, sha256)
        self.claim.reserve("rejected", self.run.claims)
        manifest = {
            **self._head(content),
            "reason": reason,
            "message": error.message,
            "details": {name: value for name, value in error.details.items() if name != "reason"},
        }
        if sha256 is not None:
            self.store.ingestion.reject(sha256, path=shortened(self.display), manifest=manifest)
        return self._close("rejected", content, manifest)

    def _close(
        self,
        outcome: Outcome,
        content: FileContent | None,
        facts: Mapping[str, Any],
        *,
        resumed: bool = False,
    ) -> FileResult:
        """Write the manifest, then move the file, so that a finished file always has a manifest."""
        manifest = {
            **facts,
            "outcome": outcome,
            "resumed": resumed,
            "ended_at": iso(self.run.now_ms()),
        }
        self.claim.write_manifest(manifest)
        result = FileResult(
            self.display,
            outcome,
            sha256=None if content is None else content.sha256,
            stored_as=display_path(str(self.claim.target)),
            manifest=display_path(str(self.claim.manifest_file.relative_to(self.claim.zone))),
            counts={name: facts[name] for name in _COUNT_FIELDS if name in facts},
            resumed=resumed,
            **recorded_fields(facts),
        )
        self.claim.finish()
        return result

    def _head(self, content: FileContent | None) -> dict[str, Any]:
        """Return the fields of the manifest that are known before anything is stored."""
        return {
            "version": MANIFEST_VERSION,
            "path": self.display,
            "sha256": None if content is None else content.sha256,
            "size": None if content is None else len(content.data),
            "claim": self.claim.claim_id,
            "stored_as": display_path(str(self.claim.target)),
            "started_at": iso(self.claim.started_at),
        }
