"""The files that are being ingested.

Whoever ingests a file first moves it into a claim; copied and uploaded files are written into one::

    ingest/.claimed/<id>/claim.json   the dropped path, the target, the sender, the attempts
    ingest/.claimed/<id>/file         the dropped file itself
    ingest/.claimed/<id>/plan.json    the parsed form of a large file, while it is stored

Runs exclude one another. A run that is killed leaves its claim, and the next run continues with it.
All moves are renames within one file system, so a file is always in exactly one place.
"""

from __future__ import annotations

import fcntl
import filecmp
import json
import os
import secrets
import shutil
import stat
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any, Final, Literal, Self

from ingest.candidates import ParseFinding
from ingest.reasons import CHANGED, ITEM_REFUSED, RejectionReason, SkippedPart
from ingest.safe_files import FileVanished, json_text, open_parent, sync_folder, written
from memgraph.errors import DatabaseBusy

CLAIMS: Final = ".claimed"
MANIFEST_ENDING: Final = ".manifest.json"
INCOMING: Final = ".incoming-"
STALE_SECONDS: Final = 86_400
LOCK_PAUSE_S: Final = 0.05
_STATE: Final = "claim.json"
MAX_NAME_BYTES: Final = 255
_MAX_PATH_BYTES: Final = 3_500
_SAVED: Final = (
    *("path", "target", "attempts", "started_at", "held"),
    *("sender", "sha256", "copied"),
)

Folder = Literal["processed", "rejected"]


@dataclass(slots=True)
class FileClaim:
    """A file that is being ingested, or waits for it.

    ``path`` is where it was dropped, relative to the drop zone, as the file system spells it.
    ``target`` is its final place, once that is decided. ``attempts`` counts the runs that began to
    read it and neither finished nor made progress; ``started_at`` is the time of the first, or 0.
    ``held`` is the SHA-256 of its content while it waits for an operator. An uploaded file has a
    ``sender``, whose permissions apply to it, and a ``sha256``. ``copied``: its original lies
    elsewhere. ``adopted``: it is not from this run.
    """

    claim_id: str
    zone: Path
    path: str
    target: str | None = None
    attempts: int = 0
    started_at: int = 0
    held: str | None = None
    sender: Mapping[str, Any] | None = None
    sha256: str | None = None
    copied: bool = False
    adopted: bool = False

    @property
    def directory(self) -> Path:
        return self.zone / CLAIMS / self.claim_id

    @property
    def file(self) -> Path:
        return self.directory / "file"

    @property
    def plan_file(self) -> Path:
        return self.directory / "plan.json"

    @property
    def stored_file(self) -> Path:
        """The final place of the file. Raises ValueError before ``reserve``."""
        if self.target is None:
            raise ValueError("the claim's target is not decided yet")
        return self.zone / self.target

    @property
    def manifest_file(self) -> Path:
        """The final place of its manifest. Raises ValueError before ``reserve``."""
        return self.stored_file.with_name(self.stored_file.name + MANIFEST_ENDING)

    def save(self) -> None:
        """Write the state that a later run needs, durably."""
        state = {name: getattr(self, name) for name in _SAVED}
        with written(self.directory, json_text(state)) as fresh:
            fresh.rename(self.directory / _STATE)
        sync_folder(self.directory)

    def reserve(self, folder: Folder, others: Iterable[FileClaim] = ()) -> None:
        """Decide the file's final place: its own path below ``folder``, numbered if that is taken
        or reserved by one of ``others``.

        If a part of the path is not a folder, such as a rejected link, only the file's name is
        used.
        """
        decided = self.target is not None and self.target.startswith(f"{folder}/")
        if decided and is_reachable(self.zone, str(self.target)):
            return
        reserved = {other.target for other in others if other.claim_id != self.claim_id}
        for number in range(1, 1_000_000):
            self.target = f"{folder}/{_fitting(self.path, number, self.zone / folder)}"
            taken = map(os.path.lexists, (self.stored_file, self.manifest_file))
            if self.target not in reserved and not any(taken):
                break
        self.save()

    def is_in(self, folder: Folder) -> bool:
        """Return True if ``folder`` has the same content already, from the same path."""
        for number in range(1, 1_000_000):
            earlier = self.zone / folder / _fitting(self.path, number, self.zone / folder)
            try:
                if filecmp.cmp(earlier, self.file, shallow=False):
                    return True
            except OSError:
                # It is missing, or cannot be compared.
                return False
        return False

    def write_manifest(self, manifest: Mapping[str, Any]) -> None:
        """Write the manifest next to the final place of the file.

        Raises:
            IngestRejected: a folder of the path has become a link.
        """
        text = json_text(dict(manifest))
        with self._place() as (folder, _), written(self.directory, text) as fresh:
            os.rename(fresh, self.manifest_file.name, dst_dir_fd=folder)
            os.fsync(folder)

    def finish(self) -> None:
        """Move the file to its target and remove the claim. The manifest must already exist.

        Raises:
            IngestRejected: a folder of the path has become a link.
        """
        with self._place() as (folder, name):
            with suppress(FileNotFoundError):
                os.rename(self.file, name, dst_dir_fd=folder)
            os.fsync(folder)
        self.remove()

    def _place(self) -> AbstractContextManager[tuple[int, str]]:
        return open_parent(self.zone, str(self.target), make=True)

    def remove(self) -> None:
        """Remove the claim's folder."""
        shutil.rmtree(self.directory, ignore_errors=True)

    def begin(self, at: int) -> None:
        """Count an attempt, durably, before the file is read."""
        self.attempts += 1
        self.started_at = self.started_at or at
        self.save()

    def has_progressed(self) -> None:
        """Reset the attempt count: only a file without progress is given up."""
        if self.attempts:
            self.attempts = 0
            self.save()

    def leave_untried(self) -> None:
        """Leave the file for the next run without counting the attempt: it did not cause it."""
        self.attempts = max(self.attempts - 1, 0)
        with suppress(OSError):
            self.save()


class IncomingFile:
    """A file that is being copied or uploaded. ``discard`` it in the end, whatever became of it."""

    def __init__(self, zone: Path) -> None:
        self._zone = zone
        self._id = secrets.token_hex(8)
        self._folder = zone / CLAIMS / f"{INCOMING}{self._id}"
        self._folder.mkdir(parents=True, mode=0o700)
        self.file = (self._folder / "file").open("xb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.discard()

    def place(
        self, path: str, *, sender: Mapping[str, Any] | None = None, sha256: str | None = None
    ) -> None:
        """Pass the complete file to the next run, durably, as if dropped at ``path``."""
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.close()
        claim_id = f"{time.time_ns() // 1_000_000:013d}-{sha256 or ''}-{self._id}"
        # Written under the hidden name: what is not complete is no claim.
        waiting = FileClaim(
            self._folder.name, self._zone, path, sender=sender, sha256=sha256, copied=not sender
        )
        waiting.save()
        self._folder.rename(self._zone / CLAIMS / claim_id)
        sync_folder(self._zone / CLAIMS)

    def discard(self) -> None:
        """Close the file, and remove it unless it was placed."""
        # On a full disk the last bytes cannot be written, which does not matter here.
        with suppress(OSError):
            self.file.close()
        shutil.rmtree(self._folder, ignore_errors=True)


@contextmanager
def exclusive_run(
    zone: Path,
    stop: Callable[[], bool],
    wait_s: float,
    waits: Callable[[], None] = lambda: None,
) -> Iterator[None]:
    """Wait until no other run ingests this drop zone, and exclude others.

    Args:
        stop: checked while waiting; waiting ends when it returns True.
        wait_s: the longest wait, seconds.
        waits: called once if another run goes on, before waiting for it.

    Raises:
        DatabaseBusy: another run goes on, or its process is stopped.
    """
    (zone / CLAIMS).mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(zone / CLAIMS / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    until, waiting = time.monotonic() + wait_s, False
    try:
        while True:
            # Polled, because a blocking flock waits for a stopped process without end.
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if stop() or time.monotonic() >= until:
                    raise DatabaseBusy(
                        "another run is ingesting this drop zone; try again when it has ended"
                    ) from None
            if not waiting:
                waiting = True
                waits()
            time.sleep(LOCK_PAUSE_S)
        yield
    finally:
        os.close(descriptor)


def claim(zone: Path, path: str, *, at: int) -> FileClaim | None:
    """Move a dropped file into a claim. Return None if it is gone.

    Args:
        path: relative to the drop zone, as ``discover`` returned it.
        at: the current time, milliseconds since 1970; stored as the start of the ingestion.
    """
    new = FileClaim(f"{at:013d}-{secrets.token_hex(8)}", zone, path, started_at=at)
    new.directory.mkdir(parents=True, mode=0o700)
    try:
        new.save()
        with open_parent(zone, path) as (folder, name):
            os.rename(name, new.file, src_dir_fd=folder)
    except (FileNotFoundError, FileVanished):
        new.remove()
        return None
    except BaseException:
        new.remove()
        raise
    sync_folder(new.directory)
    return new


def claims(zone: Path, sha256: str | None = None) -> list[FileClaim]:
    """Return the claims that have their file: fewest attempts first, then the oldest.

    Args:
        sha256: only those of uploaded files with this content.
    """
    try:
        names = os.listdir(zone / CLAIMS)  # noqa: PTH208 - names alone are needed
    except FileNotFoundError:
        return []
    wanted = (name for name in sorted(names) if not sha256 or sha256 in name)
    read = [_read(zone, name) for name in wanted if not name.startswith(".")]
    present = [claim for claim in read if os.path.lexists(claim.file)]
    return sorted(present, key=lambda claim: claim.attempts)


def _read(zone: Path, claim_id: str) -> FileClaim:
    """Return a claim; its state may be lost, but its file must not be.

    Raises:
        OSError: the state exists and cannot be read now.
    """
    state: Any = None
    with suppress(FileNotFoundError, ValueError):
        state = json.loads((zone / CLAIMS / claim_id / _STATE).read_text(encoding="ascii"))
    if not isinstance(state, dict) or not isinstance(state.get("path"), str):
        state = {"path": f"recovered-{claim_id}", "started_at": 1}
    saved = {name: state[name] for name in _SAVED if name in state}
    return FileClaim(claim_id, zone, **saved, adopted=True)


def remove_stale(zone: Path) -> None:
    """Remove what killed runs, copies and uploads left; call it in an ``exclusive_run``."""
    for folder in (zone / CLAIMS).iterdir():
        with suppress(FileNotFoundError):
            status = folder.lstat()
            if not stat.S_ISDIR(status.st_mode):
                continue
            if folder.name.startswith(INCOMING):
                gone = time.time() - status.st_mtime > STALE_SECONDS
            else:
                # It died before it had the file or after it had moved it.
                gone = not os.path.lexists(folder / "file")
            if gone:
                shutil.rmtree(folder, ignore_errors=True)


def is_reachable(folder: Path, path: str) -> bool:
    """Return True if every parent of a path below a folder is a folder or is missing."""
    for part in PurePosixPath(path).parts[:-1]:
        folder /= part
        try:
            mode = folder.lstat().st_mode
        except FileNotFoundError:
            return True
        if not stat.S_ISDIR(mode):
            return False
    return True


def _fitting(path: str, number: int, folder: Path) -> str:
    """Return ``path``, with ``~<number>`` from 2 on, such that the names of the file and of its
    manifest are legal.
    """
    pure = PurePosixPath(path)
    stem, suffix = pure.stem, pure.suffix
    mark = f"~{number}" if number > 1 else ""
    limit = MAX_NAME_BYTES - len(MANIFEST_ENDING) - len(mark)
    if len(os.fsencode(suffix)) > limit // 2:
        stem, suffix = pure.name, ""
    while len(os.fsencode(stem + suffix)) > limit:
        stem = stem[:-1]
    name = f"{stem}{mark}{suffix}"
    renamed = str(pure.with_name(name))
    # A deep path can be walked folder by folder and still be too long as a whole.
    fits = len(os.fsencode(folder / renamed)) < _MAX_PATH_BYTES and is_reachable(folder, renamed)
    return renamed if fits else name


MANIFEST_VERSION = 1
# A manifest lists at most this many findings, so that it stays readable; its counts are complete.
MAX_FINDINGS = 1_000
# A result has the texts of at most this many dates.
MAX_DATES = 3

Outcome = Literal["processed", "duplicate", "rejected", "held", "skipped", "failed"]


@dataclass(frozen=True, slots=True)
class FileResult:
    """The outcome of one file.

    ``processed``, ``duplicate`` (this content was stored before) and ``rejected`` are final and
    have a manifest. A ``skipped`` file stays where it is and a ``failed`` one stays claimed; the
    next run tries both again. A ``held`` file stays claimed until a run with ``retry``. ``reason``
    is a ``RejectionReason``, or the error code of a failure. ``stored_as`` and ``manifest`` are
    relative to the drop zone; a copy that is a duplicate has those of the stored file, and the
    message of each duplicate names them. ``left_out`` counts the parts of the file that are not in
    a memory, by reason. ``partial``: items that broke a rule were left out;
    ``counts["rejected_items"]`` is their number. ``unread_dates`` are the first dates that were not
    understood.
    """

    path: str
    outcome: Outcome
    reason: str | None = None
    message: str | None = None
    sha256: str | None = None
    stored_as: str | None = None
    manifest: str | None = None
    counts: Mapping[str, Any] = field(default_factory=dict)
    findings: Mapping[str, int] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)
    unread_dates: tuple[str, ...] = ()
    resumed: bool = False
    partial: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON for a surface."""
        return asdict(self)


def summary_of(findings: Sequence[ParseFinding]) -> dict[str, Any]:
    """Return the manifest's fields for findings.

    A limited list, counts by code, the parts of the file that were left out by code, and rejected
    items.
    """
    counts: Counter[str] = Counter()
    refused = {"memories": 0, "edges": 0}
    for finding in findings:
        counts[finding.code.value] += finding.count
        if finding.code in ITEM_REFUSED:
            refused["edges" if (finding.locator or "").startswith("/edges/") else "memories"] += 1
    return {
        "findings": [finding.as_dict() for finding in findings[:MAX_FINDINGS]],
        "finding_counts": dict(sorted(counts.items())),
        "left_out": {code: counts[code] for code in sorted(counts) if code not in CHANGED},
        "rejected_items": refused,
    }


def with_partial(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the manifest of a stored file, with ``partial`` and all rejected items counted.

    Some items break a rule of the file's format, others a rule of the database, which is only known
    when they are stored.
    """
    refused = dict(manifest.get("rejected_items", {}))
    for kind, items in manifest.get("items", {}).items():
        refused[kind] = refused.get(kind, 0) + sum(e["outcome"] == "rejected" for e in items)
    return {**manifest, "rejected_items": refused, "partial": any(refused.values())}


def recorded_fields(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a ``FileResult`` that a manifest records."""
    refused = sum(manifest.get("rejected_items", {}).values())
    unread = (
        each["details"]["text"]
        for each in manifest.get("findings", ())
        if each["code"] == SkippedPart.DATE_NOT_UNDERSTOOD and "text" in each.get("details", {})
    )
    left_out = f"invalid items of the file that were left out: {refused}"
    return {
        "reason": manifest.get("reason", RejectionReason.PARTIAL if refused else None),
        "message": manifest.get("message", left_out if refused else None),
        "findings": manifest.get("finding_counts", {}),
        "left_out": manifest.get("left_out", {}),
        "unread_dates": tuple(islice(unread, MAX_DATES)),
        "partial": bool(refused),
    }
