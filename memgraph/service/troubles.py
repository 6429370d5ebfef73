"""Which orchestrators' files cannot be used, as those met it who were at work on them.

A file is opened without reading all of it, and what only reads changes none: that it is damaged is
known to the one who meets it, and told here to the log and to who tells how everything stands.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from memgraph.errors import StorageError
from memgraph.log import EventLog


class Troubles:
    """By the orchestrator's name, from the first error on until its file was opened again.

    Args:
        log_of: the log of an orchestrator, which is told once of each trouble.
    """

    def __init__(self, log_of: Callable[[str], EventLog]) -> None:
        self._log_of = log_of
        self._codes: dict[str, str] = {}
        self._lock = threading.Lock()
        self.changes = 0
        """How often one of them changed."""

    def code(self, name: str) -> str | None:
        """The code of the error that stands; None: no trouble is known."""
        return self._codes.get(name)

    def met(self, name: str, error: StorageError) -> None:
        """Note an error; the same one again changes nothing."""
        if self._note(name, error.code):
            self._log_of(name).failure("database.unusable", error)

    def over(self, name: str) -> None:
        """Its file was opened, and nothing is known against it."""
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
