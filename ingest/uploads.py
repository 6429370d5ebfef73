"""Uploaded files: written to the drop zone under a hidden name, then renamed."""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from ingest.claims import zone_lock
from ingest.drop_zone import (
    INCOMING,
    any_waiting,
    free_name,
    is_hidden_or_temporary,
    note_sender,
    waiting,
)
from ingest.parse import SUPPORTED_TYPES
from ingest.pipeline import IngestPipeline
from ingest.safe_files import (
    MAX_NAME_BYTES,
    sync_folder,
)
from memgraph.errors import DatabaseFull, InvalidInput, RequestTooLarge, StorageError
from memgraph.model.enums import IngestStatus
from memgraph.model.remote import UploadResult
from memgraph.operations.orchestrator import Orchestrator

_MEGABYTE: Final = 1_000_000


class ReceivedFile:
    """A file being received. Always ``discard`` it in the end.

    Args:
        handle: the sender's handle of the orchestrator.
        name: the file's name in the drop zone.
        sender: see ``Uploads``.

    Raises:
        InvalidInput: the file name is not accepted.
        StorageError: the drop zone cannot be written to, or its disk is full; also raised by the
            methods.
    """

    def __init__(self, handle: Orchestrator, name: str, sender: Mapping[str, Any]) -> None:
        check_name(name)
        self._handle, self._name, self._sender = handle, name, dict(sender)
        self._zone = handle.paths.ingest
        self._limit = handle.settings.memory.ingest.max_file_size_mb * _MEGABYTE
        self._size, self._digest = 0, hashlib.sha256()
        self._path = self._zone / f"{INCOMING}{secrets.token_hex(8)}"
        with _on_disk():
            self._zone.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._file = self._path.open("xb")

    def write(self, data: bytes) -> None:
        """Append data. Raises RequestTooLarge when the file exceeds the maximum size."""
        self._size += len(data)
        if self._size > self._limit:
            raise RequestTooLarge(f"a file may have at most {self._limit} bytes", limit=self._limit)
        self._digest.update(data)
        with _on_disk():
            self._file.write(data)

    def place(self) -> UploadResult:
        """Move the file into the drop zone.

        Content that is stored already, or waits to be, is reported and not dropped again.
        """
        with _on_disk():
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
        sha256 = self._digest.hexdigest()
        before = self._handle.ingestion.known(sha256)
        if before is not None and before[0] is IngestStatus.PROCESSED:
            return UploadResult(sha256=sha256, name=self._name, known="processed")
        with _on_disk(), zone_lock(self._zone):
            if waiting(self._zone, sha256) is not None:
                return UploadResult(sha256=sha256, name=self._name, known="waiting")
            target = str(free_name(self._zone, Path(self._name)))
            # Record the sender first: a file without one would be stored without restrictions.
            note_sender(self._zone, sha256, path=target, sender=self._sender)
            self._path.rename(self._zone / target)
            sync_folder(self._zone)
        return UploadResult(sha256=sha256, name=target)

    def discard(self) -> None:
        """Close the file, and remove it unless it was dropped."""
        # On a full disk the last bytes cannot be written, which does not matter here.
        with suppress(OSError):
            self._file.close()
        self._path.unlink(missing_ok=True)


class Uploads:
    """A server's interface for uploads; memgraph finds ``uploads`` by its entry point.

    A sender is the argument of ``Orchestrator.ingestion.on_behalf``; it is stored as JSON.
    """

    def draft(self, handle: Orchestrator, name: str, sender: Mapping[str, Any]) -> ReceivedFile:
        """Start receiving a file; see ``ReceivedFile``."""
        return ReceivedFile(handle, name, sender)

    def waiting(self, zone: Path, sha256: str) -> Mapping[str, Any] | None:
        """Return the sender of a waiting file; None if no file with this content waits."""
        return waiting(zone, sha256)

    def some_wait(self, zone: Path) -> bool:
        """Return True when any uploaded file waits."""
        return any_waiting(zone)

    def run(self, handle: Orchestrator, stop: Callable[[], bool]) -> None:
        """Process the drop zone. Raises the errors of ``IngestPipeline.run``."""
        IngestPipeline(handle, stop=stop).run()


uploads: Final = Uploads()


def check_name(name: str) -> None:
    """Check that a file of this name is accepted.

    Raises:
        InvalidInput: it has a folder, is hidden or temporary, is of another type, or too long.
    """
    plain = name.isprintable() and not set(name) & {"/", "\\"} and name == name.strip()
    if not plain or is_hidden_or_temporary(name) or len(os.fsencode(name)) > MAX_NAME_BYTES:
        raise InvalidInput("name must be a plain file name, without folder or dot", field="name")
    if not name.casefold().endswith(SUPPORTED_TYPES):
        raise InvalidInput(f"name must end in {', '.join(SUPPORTED_TYPES)}", field="name")


@contextmanager
def _on_disk() -> Iterator[None]:
    """Translate disk errors into errors that do not reveal a path of this machine."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DatabaseFull("the disk has no space for the file") from error
        raise StorageError(f"the file cannot be stored: {error.strerror}") from error
