"""The log of a server process: JSON lines in ``<root>/logs/server.log``, written by one thread.

Log records of libraries are reduced to the location and the class of the error, since their texts
may contain data from clients.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from memgraph.clock import Clock
from memgraph.config.schema import LogSettings
from memgraph.log import EventLog, LineSink, RotatingFile, bug_fields

MOST_WAITING: Final = 10_000
"""The maximum number of queued lines; further lines are dropped and counted."""


def server_log_file(root: Path) -> Path:
    """Return the path of the log file for the servers of a root."""
    return root / "logs" / "server.log"


class QueuedLog:
    """Queues lines for a writer thread, so that logging does not wait for the disk."""

    def __init__(self, sink: LineSink) -> None:
        self.dropped = 0
        self._sink = sink
        self._lines: queue.Queue[str | None] = queue.Queue(MOST_WAITING)
        self._thread = threading.Thread(target=self._work, name="memgraph-log", daemon=True)
        self._thread.start()

    def write(self, line: str) -> None:
        try:
            self._lines.put_nowait(line)
        except queue.Full:
            self.dropped += 1

    def close(self) -> None:
        """Write the queued lines, and stop the thread."""
        self._lines.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (line := self._lines.get()) is not None:
            self._sink.write(line)


@contextmanager
def server_log(root: Path, clock: Clock, chosen: LogSettings) -> Iterator[EventLog]:
    """Yield the log of a server, which also gets log records of libraries and thread errors."""
    path = server_log_file(root)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    sink = QueuedLog(RotatingFile(path))
    log = EventLog(sink, clock, level=chosen.level)
    try:
        with _capture_logging(log):
            yield log
    finally:
        sink.close()


@contextmanager
def _capture_logging(log: EventLog) -> Iterator[None]:
    """Redirect Python's logging, and uncaught errors of threads, to the log."""
    handler, handlers_before = _Handler(log), logging.root.handlers[:]
    hook_before = threading.excepthook
    logging.root.handlers[:] = [handler]
    threading.excepthook = lambda ended: _thread_failed(log, ended)
    try:
        yield
    finally:
        logging.root.handlers[:] = handlers_before
        threading.excepthook = hook_before


class _Handler(logging.Handler):
    """Logs the logger's name and the location and class of an error, without its text."""

    def __init__(self, log: EventLog) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        at = f"{record.module}:{record.lineno}"
        error = record.exc_info[1] if record.exc_info else None
        if error is None:
            self._log.warning("library", logger=record.name, at=at)
        else:
            self._log.error("library", logger=record.name, **bug_fields(error))


def _thread_failed(log: EventLog, ended: threading.ExceptHookArgs) -> None:
    if ended.exc_value is not None:
        log.error("thread", **bug_fields(ended.exc_value))
