"""Orchestrators whose files cannot be used, as reported by the calls that failed.

A file is opened without reading all of it, and reading changes no file: only the call that meets
damage knows of it, and reports it here, for the log and for the readiness check.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from memgraph.errors import StorageError
from memgraph.log import EventLog


class OpenFailures:
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
