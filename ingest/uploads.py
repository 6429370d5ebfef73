"""Uploaded files: each is received into a claim, with its sender."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from ingest.claims import MAX_NAME_BYTES, IncomingFile, claims
from ingest.drop_zone import is_hidden_or_temporary
from ingest.parse import SUPPORTED_TYPES
from ingest.pipeline import MEGABYTE, IngestPipeline
from memgraph.errors import DatabaseFull, InvalidInput, RequestTooLarge, StorageError
from memgraph.model.remote import UploadResult
from memgraph.operations.orchestrator import Orchestrator


class ReceivedFile:
    """A file being received. Always ``discard`` it in the end.

    Args:
        handle: the sender's handle of the orchestrator.
        name: the file's name.
        sender: see ``Uploads``.

    Raises:
        InvalidInput: the file name is not accepted.
        StorageError: the drop zone cannot be written to, or its disk is full; also raised by the
            methods.
    """

    def __init__(self, handle: Orchestrator, name: str, sender: Mapping[str, Any]) -> None:
        check_name(name)
        self._handle, self._name, self._sender = handle, name, dict(sender)
        self._limit = handle.settings.memory.ingest.max_file_size_mb * MEGABYTE
        self._size, self._digest = 0, hashlib.sha256()
        with _on_disk():
            self._incoming = IncomingFile(handle.paths.ingest)

    def write(self, data: bytes) -> None:
        """Append data. Raises RequestTooLarge when the file exceeds the maximum size."""
        self._size += len(data)
        if self._size > self._limit:
            raise RequestTooLarge(f"a file may have at most {self._limit} bytes", limit=self._limit)
        self._digest.update(data)
        with _on_disk():
            self._incoming.file.write(data)

    def place(self) -> UploadResult:
        """Pass the file to the next run, unless its content is stored already, or waits to be."""
        sha256 = self._digest.hexdigest()
        if self._handle.ingestion.stored(sha256) is not None:
            return UploadResult(sha256=sha256, name=self._name, known="processed")
        with _on_disk():
            if uploads.waiting(self._handle.paths.ingest, sha256) is not None:
                return UploadResult(sha256=sha256, name=self._name, known="waiting")
            self._incoming.place(self._name, sender=self._sender, sha256=sha256)
        return UploadResult(sha256=sha256, name=self._name)

    def discard(self) -> None:
        """Close the file, and remove it unless it was placed."""
        self._incoming.discard()


class Uploads:
    """A server's interface for uploads; memgraph finds ``uploads`` by its entry point.

    A sender is the argument of ``Orchestrator.ingestion.on_behalf``; it is stored as JSON.
    """

    def draft(self, handle: Orchestrator, name: str, sender: Mapping[str, Any]) -> ReceivedFile:
        """Start receiving a file; see ``ReceivedFile``."""
        return ReceivedFile(handle, name, sender)

    def waiting(self, zone: Path, sha256: str) -> Mapping[str, Any] | None:
        """Return the sender of a waiting file; None if no uploaded file with this content waits."""
        return next((claim.sender for claim in claims(zone, sha256)), None)

    def some_wait(self, zone: Path) -> bool:
        """Return True when an uploaded file waits, other than for an operator."""
        return any(claim.sender is not None and claim.held is None for claim in claims(zone))

    def run(self, handle: Orchestrator, stop: Callable[[], bool]) -> None:
        """Process the drop zone. Raises the errors of ``IngestPipeline.run``."""
        # A run that goes on elsewhere must not delay the other orchestrators.
        IngestPipeline(handle, stop=stop, wait_s=0.0).run()


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
