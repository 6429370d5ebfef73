"""Receive files from the network into the drop zone, and process it in the background.

The file reader is loaded through an entry point, since this package does not know file formats.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Protocol

from memgraph.errors import InvalidInput, MemgraphError, MemoryDisabled
from memgraph.model.values import ActorReason, validated
from memgraph.rules.scope import Viewer

if TYPE_CHECKING:
    from memgraph.model.remote import UploadResult
    from memgraph.operations.orchestrator import Orchestrator
    from memgraph.service.memory_service import MemoryService

ENTRY_POINTS: Final = "memgraph.ingest"
ENTRY_POINT: Final = "uploads"
ACTOR: Final = "ingest"
"""The journal's actor for files that were copied into the drop zone by hand."""
RETRY_S: Final = 5.0
"""The seconds after which unprocessed files are retried."""
PATIENCE_S: Final = 10.0
"""The seconds that ``stop`` waits for the current file."""


class UploadDraft(Protocol):
    """A file being received. ``discard`` must always be called at the end."""

    def write(self, data: bytes) -> None: ...

    def place(self) -> UploadResult: ...

    def discard(self) -> None: ...


@cache
def uploads() -> Any:
    """Return the installed file reader; see ``ingest.uploads``.

    Raises:
        MemoryDisabled: there is none.
    """
    from importlib.metadata import entry_points

    for entry_point in entry_points(group=ENTRY_POINTS, name=ENTRY_POINT):
        return entry_point.load()
    raise MemoryDisabled(
        f"no file reader is installed: no package has the entry point {ENTRY_POINTS}"
    )


def sender_of(handle: Orchestrator) -> dict[str, Any]:
    """Return the actor and the viewer of a handle as JSON, to record who sent a file."""
    viewer: dict[str, Any] = {}
    for field in fields(Viewer):
        value = getattr(handle.viewer, field.name)
        viewer[field.name] = sorted(value) if isinstance(value, frozenset) else value
    return {"actor": handle.actor, "viewer": viewer}


def viewer_of_sender(sender: Mapping[str, Any]) -> tuple[Viewer, str]:
    """Return the viewer and the actor recorded by ``sender_of``. Raises InvalidInput."""
    try:
        actor = validated(ActorReason, {"actor": sender["actor"]}).actor
        return Viewer(**sender["viewer"]), actor
    except (KeyError, TypeError) as error:
        raise InvalidInput("sender is not a valid sender of files", field="sender") from error


def draft(handle: Orchestrator, name: str) -> UploadDraft:
    """Start receiving a file for an orchestrator, with the permissions of a handle.

    Raises:
        MemoryDisabled: ``memory.ingest.enabled`` is false, or no file reader is installed.
        InvalidInput: the file name is not accepted.
    """
    if not handle.settings.memory.ingest.enabled:
        raise MemoryDisabled("ingestion is disabled: memory.ingest.enabled = false")
    received: UploadDraft = uploads().draft(handle, name, sender_of(handle))
    return received


class DropZoneWorker:
    """Processes the drop zones of a service in a thread, one after the other."""

    def __init__(self, service: MemoryService) -> None:
        self._service = service
        # Guards all of the following.
        self._changed = threading.Condition()
        # When each orchestrator is processed next, by the monotonic clock.
        self._due: dict[str, float] = {}
        self._thread: threading.Thread | None = None
        self._stopping = False

    def wake(self, name: str) -> None:
        """Schedule the processing of an orchestrator's drop zone."""
        now = time.monotonic()
        with self._changed:
            if self._stopping:
                return
            if self._thread is None or not self._thread.is_alive():
                thread = threading.Thread(target=self._run, name="memgraph-intake", daemon=True)
                thread.start()
                self._thread = thread
            self._due[name] = min(self._due.get(name, now), now)
            self._changed.notify()

    def wake_waiting(self) -> None:
        """Schedule the drop zones that contain unprocessed sent files."""
        for name in self._service.orchestrators():
            if uploads().some_wait(self._service.paths(name).ingest):
                self.wake(name)

    def stop(self) -> None:
        """Stop after the current file; the rest is left for the next process."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
            thread = self._thread
        # A thread cannot wait for itself.
        if thread is not None and thread is not threading.current_thread():
            thread.join(PATIENCE_S)

    def _run(self) -> None:
        while (name := self._next()) is not None:
            if not self._is_done(name):
                with self._changed:
                    self._due.setdefault(name, time.monotonic() + RETRY_S)

    def _next(self) -> str | None:
        """Wait for the next orchestrator that is due and return it; None to stop."""
        with self._changed:
            while not self._stopping:
                name = min(self._due, key=self._due.__getitem__, default="")
                remaining_s = self._due[name] - time.monotonic() if name else None
                if remaining_s is not None and remaining_s <= 0:
                    del self._due[name]
                    return name
                self._changed.wait(remaining_s)
        return None

    def _is_done(self, name: str) -> bool:
        """Process an orchestrator's drop zone; return True if there is nothing to retry."""
        try:
            handle = self._service.orchestrator(name, actor=ACTOR)
            uploads().run(handle, lambda: self._stopping)
            return not uploads().some_wait(handle.paths.ingest)
        except (MemgraphError, OSError) as error:
            self._log_failure(name, error)
            with suppress(OSError):
                return not self._service.paths(name).memory.exists()
            return False
        # Log an unexpected error and continue with the other files.
        except Exception as error:  # noqa: BLE001 - the thread must survive any error
            self._log_failure(name, error)
            return True

    def _log_failure(self, name: str, error: Exception) -> None:
        try:
            with self._service.opened(name) as opened:
                opened.log.failure("ingest.upload", error)
        except (MemgraphError, OSError):
            # It cannot be opened; its users get the error, and /readyz reports it.
            return
