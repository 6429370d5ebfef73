"""Messages: how they are read, how they wait, and which of them were answered."""

from __future__ import annotations

import os
import queue
import re
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

WAITING = 32  # whoever brings one more waits with it

_LINE = re.compile(r"(?P<channel>[\w.-]+)/(?P<speaker>[^:]+): *(?P<text>.*\S)")


@dataclass(frozen=True)
class Message:
    """What was said in a channel. The id is the same when the line is read again."""

    message_id: str
    channel: str
    speaker: str
    text: str


def read(lines: Iterable[str], name: str) -> Iterator[Message]:
    """The messages in lines ``channel/speaker: text``; ``#`` begins a remark; else ValueError."""
    for number, line in enumerate(lines, start=1):
        said = line.strip()
        if not said or said.startswith("#"):
            continue
        match = _LINE.fullmatch(said)
        if match is None:
            raise ValueError(f"{name}, line {number}: not of the form channel/speaker: text")
        digest = sha256(said.encode()).hexdigest()[:8]
        yield Message(f"{name}-{number}-{digest}", **match.groupdict())


class Inbox:
    """A bounded queue between the channels and the orchestrator, filled by a thread."""

    def __init__(self, messages: Iterable[Message]) -> None:
        self._waiting: queue.Queue[Message | None] = queue.Queue(WAITING)
        self._failed: ValueError | None = None
        threading.Thread(target=self._fill, args=(messages,), daemon=True).start()

    def __iter__(self) -> Iterator[Message]:
        while (message := self._waiting.get()) is not None:
            yield message
        if self._failed is not None:
            raise self._failed

    def _fill(self, messages: Iterable[Message]) -> None:
        try:
            for message in messages:
                self._waiting.put(message)
        except ValueError as error:
            self._failed = error
        self._waiting.put(None)


class Answered:
    """Which messages were answered, in a file that outlives the process.

    One that was answered and not yet noted when the process died is answered once more; the memory
    holds it once all the same, for its id is the same.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("a+", encoding="utf-8")
        self._file.seek(0)
        *lines, cut_off = self._file.read().split("\n")
        self._ids = set(lines)
        if cut_off:  # by a crash: no id, and not to be the beginning of the next one
            self._file.write("\n")

    def __contains__(self, message: Message) -> bool:
        return message.message_id in self._ids

    def note(self, message: Message) -> None:
        self._ids.add(message.message_id)
        self._file.write(f"{message.message_id}\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()
