"""Claims: a worker owns a dropped file as soon as it has renamed the file into its claim.

::

    ingest/.claimed/<id>/lock         locked (flock) while the worker is alive
    ingest/.claimed/<id>/claim.json   the dropped path, the target, the number of attempts
    ingest/.claimed/<id>/file         the dropped file itself
    ingest/.claimed/<id>/plan.json    the parsed form of a large file, while it is stored

A worker that dies loses its lock and leaves the claim: the next run adopts it. All renames stay
within the drop zone's file system, so a file is always in exactly one place.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import secrets
import shutil
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from ingest.candidates import ParseFinding
from ingest.reasons import CHANGED, ITEM_REFUSED
from ingest.safe_files import (
    MAX_NAME_BYTES,
    FileVanished,
    _json_text,
    _written,
    is_reachable,
    numbered,
    open_parent,
    sync_folder,
    write_durably,
)

CLAIMS = ".claimed"
MANIFEST_ENDING = ".manifest.json"
_FILE = "file"
_LOCK = "lock"
_STATE = "claim.json"
_PLAN = "plan.json"
_NEW = ".new-"
_MAX_PATH_BYTES = 3_500
_ABANDONED_SECONDS = 600

Folder = Literal["processed", "rejected"]


@dataclass(slots=True)
class FileClaim:
    """A file that this worker owns.

    ``path`` is where it was dropped, as the file system spells it. ``target`` is its final place,
    relative to the drop zone, once that is decided. ``attempts`` counts the runs that began to read
    it and neither finished nor made progress. ``held`` is the SHA-256 of its content while it waits
    for an operator.
    """

    claim_id: str
    zone: Path
    path: str
    lock: int
    adopted: bool = False
    attempts: int = 0
    target: str | None = None
    started_at: int = 0
    held: str | None = None

    @property
    def directory(self) -> Path:
        return self.zone / CLAIMS / self.claim_id

    @property
    def file(self) -> Path:
        return self.directory / _FILE

    @property
    def plan_file(self) -> Path:
        return self.directory / _PLAN

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
        state = {"path": self.path, "target": self.target, "attempts": self.attempts}
        state |= {"started_at": self.started_at, "held": self.held}
        write_durably(self.directory / _STATE, state)

    def reserve(self, folder: Folder) -> None:
        """Decide the file's final place: its own path below ``folder``, numbered if that is taken.

        If a part of the path is not a folder, such as a rejected link, only the file's name is
        used.
        """
        decided = self.target is not None and self.target.startswith(f"{folder}/")
        if decided and is_reachable(self.zone, str(self.target)):
            return
        with zone_lock(self.zone):
            reserved = {state.get("target") for state in _states(self.zone, self.claim_id)}
            for number in range(1, 1_000_000):
                target = f"{folder}/{_fitting(self.path, number, self.zone / folder)}"
                place = self.zone / target
                manifest = place.with_name(place.name + MANIFEST_ENDING)
                if target not in reserved and not _exists(place) and not _exists(manifest):
                    self.target = target
                    break
            self.save()

    def finish(self) -> None:
        """Move the file to its target and remove the claim. The manifest must already exist.

        Raises:
            IngestRejected: a folder of the path has become a link.
        """
        with self._place() as (folder, name):
            with suppress(FileNotFoundError):
                os.rename(self.file, name, dst_dir_fd=folder)
            os.fsync(folder)
        self._remove()

    def drop(self) -> None:
        """Remove a claim whose file is gone."""
        self._remove()

    def write_manifest(self, manifest: Mapping[str, Any]) -> None:
        """Write the manifest next to the final place of the file.

        Raises:
            IngestRejected: a folder of the path has become a link.
        """
        text = _json_text(dict(manifest))
        with self._place() as (folder, _), _written(self.directory, text) as fresh:
            os.rename(fresh, self.manifest_file.name, dst_dir_fd=folder)
            os.fsync(folder)

    def _place(self) -> AbstractContextManager[tuple[int, str]]:
        return open_parent(self.zone, str(self.stored_file.relative_to(self.zone)), make=True)

    def begin(self) -> None:
        """Count an attempt, durably, before the file is read."""
        self.attempts += 1
        self.save()

    def has_progressed(self) -> None:
        """Reset the attempt count: only a file without progress is given up."""
        self.attempts = 0
        self.save()

    def hold(self, sha256: str) -> None:
        """Record that the file waits for an operator, and release the claim."""
        self.held = sha256
        self.save()
        self.release()

    def reset_attempts(self) -> None:
        """Clear ``held`` and the attempt count, so that the file is tried again."""
        self.held, self.attempts = None, 0

    def release_untried(self) -> None:
        """Release the claim without counting the attempt: the file did not cause the failure."""
        self.attempts = max(self.attempts - 1, 0)
        with suppress(OSError):
            self.save()
        self.release()

    def release(self) -> None:
        """Release the claim unchanged; the next run adopts it."""
        os.close(self.lock)

    def _remove(self) -> None:
        shutil.rmtree(self.directory, ignore_errors=True)
        os.close(self.lock)


def claim(zone: Path, path: str, *, at: int) -> FileClaim | None:
    """Claim a dropped file. Return None if another worker claimed it first.

    Args:
        path: relative to the drop zone, as ``discover`` returned it.
        at: the current time, milliseconds since 1970; stored as the start of the ingestion.
    """
    claims = zone / CLAIMS
    claims.mkdir(exist_ok=True, mode=0o700)
    claim_id = f"{at:013d}-{secrets.token_hex(6)}"
    fresh = claims / f"{_NEW}{claim_id}"
    fresh.mkdir(mode=0o700)
    lock = os.open(fresh / _LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    # Lock the claim before it gets its final name, so that no worker takes it for an abandoned one.
    fcntl.flock(lock, fcntl.LOCK_EX)
    fresh.rename(claims / claim_id)
    new_claim = FileClaim(claim_id, zone, path, lock, started_at=at)
    new_claim.save()
    try:
        with open_parent(zone, path) as (folder, name):
            os.rename(name, new_claim.file, src_dir_fd=folder)
    except (FileNotFoundError, FileVanished):
        new_claim.drop()
        return None
    except BaseException:
        new_claim.drop()
        raise
    sync_folder(new_claim.directory)
    return new_claim


def claim_names(zone: Path) -> list[str]:
    """Return the ids of all workers' claims: fewest attempts first, then the oldest."""
    try:
        names = os.listdir(zone / CLAIMS)  # noqa: PTH208 - names alone are needed
    except FileNotFoundError:
        return []
    tried = {name: (_read_state(zone / CLAIMS / name) or {}).get("attempts", 0) for name in names}
    return sorted(names, key=lambda name: (tried[name], name))


def adopt(zone: Path, names: Iterable[str] | None = None) -> Iterator[FileClaim]:
    """Take over the claims whose worker is gone, and yield them.

    Args:
        names: the ids of the claims that may be adopted, in order; None: all.
    """
    for name in claim_names(zone) if names is None else names:
        adopted = _adopt_one(zone, name)
        if adopted is not None:
            yield adopted


def is_claimed(zone: Path, claim_id: str) -> bool:
    """Return True while a claim still has its file, whichever worker owns it."""
    return _exists(zone / CLAIMS / claim_id / _FILE)


def claimed_paths(zone: Path, *, include_held: bool = True) -> set[str]:
    """Return the paths at which the claimed files were dropped.

    Args:
        include_held: include files that wait for an operator.
    """
    if not (zone / CLAIMS).is_dir():
        return set()
    states = _states(zone, but="")
    return {state["path"] for state in states if include_held or not state.get("held")}


def claim_states(zone: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the id and the state of each claim, of any worker, that still has its file."""
    for claim_id in claim_names(zone):
        if is_claimed(zone, claim_id):
            fallback = {"path": f"recovered-{claim_id}"}
            yield claim_id, _read_state(zone / CLAIMS / claim_id) or fallback


@contextmanager
def zone_lock(zone: Path) -> Iterator[None]:
    """Lock the drop zone against all other workers; for short operations."""
    claims = zone / CLAIMS
    claims.mkdir(exist_ok=True, mode=0o700)
    descriptor = os.open(claims / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _adopt_one(zone: Path, name: str) -> FileClaim | None:
    directory = zone / CLAIMS / name
    if name.startswith(_NEW):
        _sweep(directory)
        return None
    try:
        lock = os.open(directory / _LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        # A claim has its lock file until it is removed: this one was being removed.
        if not _exists(directory / _FILE):
            shutil.rmtree(directory, ignore_errors=True)
        return None
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(lock)
        if error.errno in (errno.EAGAIN, errno.EACCES):
            return None
        raise
    if not _exists(directory / _FILE):
        # The worker died before it had the file or after it had moved it: nothing is left to do.
        shutil.rmtree(directory, ignore_errors=True)
        os.close(lock)
        return None
    # The claim's state may be lost, but its file must not be.
    state = _read_state(directory) or {"path": f"recovered-{name}"}
    return FileClaim(
        name,
        zone,
        str(state["path"]),
        lock,
        adopted=True,
        attempts=int(state.get("attempts", 0)),
        target=state.get("target"),
        started_at=int(state.get("started_at", 0)),
        held=state.get("held"),
    )


def _sweep(directory: Path) -> None:
    """Remove an incomplete claim unless it is recent: then its worker may still complete it."""
    with suppress(FileNotFoundError):
        if time.time() - directory.stat().st_mtime > _ABANDONED_SECONDS:
            shutil.rmtree(directory, ignore_errors=True)


def _read_state(directory: Path) -> dict[str, Any] | None:
    try:
        state = json.loads((directory / _STATE).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
    return state if isinstance(state, dict) and isinstance(state.get("path"), str) else None


def _states(zone: Path, but: str) -> Iterator[dict[str, Any]]:
    for directory in (zone / CLAIMS).iterdir():
        if directory.name != but and (state := _read_state(directory)) is not None:
            yield state


def _fitting(path: str, number: int, folder: Path) -> str:
    """Return ``path``, numbered if ``number`` > 1, such that the names of the file and its manifest
    are legal.
    """
    pure = PurePosixPath(path)
    name = numbered(pure.name, number, MAX_NAME_BYTES - len(MANIFEST_ENDING))
    renamed = str(pure.with_name(name))
    # A deep path can be walked folder by folder and still be too long as a whole.
    fits = len(os.fsencode(folder / renamed)) < _MAX_PATH_BYTES and is_reachable(folder, renamed)
    return renamed if fits else name


def _exists(path: Path) -> bool:
    return os.path.lexists(path)


MANIFEST_VERSION = 1
# A manifest lists at most this many findings, so that it stays readable; its counts are complete.
MAX_FINDINGS = 1_000

Outcome = Literal["processed", "duplicate", "rejected", "held", "skipped", "failed"]


@dataclass(frozen=True, slots=True)
class FileResult:
    """The outcome of one file.

    ``processed``, ``duplicate`` (this content was stored before) and ``rejected`` are final and
    have a manifest. A ``skipped`` file stays where it is and a ``failed`` one stays claimed; the
    next run tries both again. A ``held`` file stays claimed until a run with ``retry``. ``reason``
    is a ``RejectionReason``, or the error code of a failure. ``stored_as`` and ``manifest`` are
    relative to the drop zone. ``left_out`` counts the parts of the file that are not in a memory,
    by reason. ``partial``: items that broke a rule were left out; ``counts["rejected_items"]`` is
    their number.
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
    resumed: bool = False
    partial: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON for a surface."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class IngestReport:
    """The results of a run, in processing order."""

    results: tuple[FileResult, ...] = ()

    @property
    def totals(self) -> dict[str, int]:
        """Return the number of files by outcome."""
        return dict(sorted(Counter(result.outcome for result in self.results).items()))

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON for a surface."""
        return {"files": [result.as_dict() for result in self.results], "totals": self.totals}


def summary_of(findings: Sequence[ParseFinding]) -> dict[str, Any]:
    """Return the manifest's fields for findings.

    A limited list, counts by code, the parts of the file that were left out by code, and rejected
    items.
    """
    counts: Counter[str] = Counter()
    left_out: Counter[str] = Counter()
    refused = {"memories": 0, "edges": 0}
    for finding in findings:
        counts[finding.code.value] += finding.count
        if finding.code not in CHANGED:
            left_out[finding.code.value] += finding.count
        if finding.code in ITEM_REFUSED:
            refused["edges" if (finding.locator or "").startswith("/edges/") else "memories"] += 1
    return {
        "findings": [finding.as_dict() for finding in findings[:MAX_FINDINGS]],
        "finding_counts": dict(sorted(counts.items())),
        "left_out": dict(sorted(left_out.items())),
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
