"""Refusals, told where an auditor looks for them: in the log and in the journal."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from memgraph.audit.journal import Entry
from memgraph.errors import AccessDenied, MemgraphError

if TYPE_CHECKING:
    from memgraph.service.opened import JournalledTransaction, Opened

ACTION: Final = "deny"
WINDOW_MS: Final = 60_000
"""How long equal refusals of one actor are counted before the count is journalled."""
MAX_WINDOWS: Final = 100
"""Different refusals that are told apart at a time; of more their names are not told."""

NOT_JOURNALLED: Final = "access.denied.journal"

_DIGEST: Final = "asked_sha256"


class Denial(NamedTuple):
    """One refusal.

    Attributes:
        field: what was asked for: ``task``, ``project``, ``orchestrator`` …; never a text from
            outside.
        asked: its name.
        code: of the error.
    """

    field: str
    asked: str | None = None
    code: str = AccessDenied.code

    @property
    def told(self) -> dict[str, str]:
        """What log and journal hold: no content and no name, but the digest of the name."""
        told = {"field": self.field, "code": self.code}
        if self.asked is not None:
            name = self.asked.encode("utf-8", "surrogatepass")
            told[_DIGEST] = hashlib.sha256(name).hexdigest()
        return told


class _Refusal(NamedTuple):
    actor: str
    told: tuple[tuple[str, str], ...]


@dataclass(slots=True)
class _Window:
    """Since when a refusal is counted, and how often it came that no entry tells of yet."""

    since: int
    times: int


class DenialBook:
    """Every refusal in the journal, and never more entries than time goes by.

    The first of its kind is journalled at once. Those that are equal to it within a minute are
    counted, and journalled as one entry with ``times`` when the minute is over. Where more than
    ``MAX_WINDOWS`` different ones came within a minute, the others are one kind for each actor and
    field: ``asked_sha256`` is ``various`` there. So one process writes a few hundred entries a
    minute at most, whatever it is asked for. A count is lost with a process that is killed.

    Args:
        transaction: a change of the orchestrator by an actor.
    """

    def __init__(
        self, transaction: Callable[[str], AbstractContextManager[JournalledTransaction]]
    ) -> None:
        self._transaction = transaction
        self._windows: dict[_Refusal, _Window] = {}
        self._lock = threading.Lock()

    def add(self, actor: str, told: Mapping[str, str], now: int) -> None:
        """Count a refusal, and journal what is due. Raises StorageError: it was only counted."""
        with self._lock:
            due = self._due(now)
            refusal = self._told_apart(_Refusal(actor, tuple(told.items())))
            if refusal in self._windows:
                self._windows[refusal].times += 1
            else:
                self._windows[refusal] = _Window(now, 0)
                # Of the minute that is over some may be left to tell.
                due.setdefault(refusal, _Window(now, 0)).times += 1
        self._write(due)

    def add_at_once(self, actor: str, told: Sequence[Mapping[str, str]], now: int) -> None:
        """Journal each refusal as an entry of its own; they are durable when this returns.

        Raises:
            StorageError: they were counted, and the next ``flush`` tells of them.
        """
        try:
            with self._transaction(actor) as transaction:
                transaction.tell([Entry(ACTION, None, dict(each)) for each in told])
        except MemgraphError:
            for each in told:
                self._keep({_Refusal(actor, tuple(each.items())): _Window(now, 1)})
            raise

    def flush(self, now: int | None = None) -> None:
        """Journal what was counted; with ``now`` where its minute is over. Raises StorageError."""
        with self._lock:
            if now is None:
                due = {each: one for each, one in self._windows.items() if one.times}
                self._windows.clear()
            else:
                due = self._due(now)
        self._write(due)

    def _due(self, now: int) -> dict[_Refusal, _Window]:
        # A clock that was put back ends a minute, too.
        over = {
            each: one for each, one in self._windows.items() if not 0 <= now - one.since < WINDOW_MS
        }
        for each in over:
            del self._windows[each]
        return {each: one for each, one in over.items() if one.times}

    def _write(self, due: Mapping[_Refusal, _Window]) -> None:
        left = dict(due)
        try:
            for actor, some in groupby(sorted(due), key=lambda each: each.actor):
                refusals = list(some)
                with self._transaction(actor) as transaction:
                    transaction.tell([_entry(each, due[each]) for each in refusals])
                for each in refusals:
                    del left[each]
        finally:
            self._keep(left)

    def _keep(self, left: Mapping[_Refusal, _Window]) -> None:
        """Count what could not be journalled; the next try tells it."""
        with self._lock:
            for each, one in left.items():
                kept = self._told_apart(each)
                self._windows.setdefault(kept, _Window(one.since, 0)).times += one.times

    def _told_apart(self, refusal: _Refusal) -> _Refusal:
        """The refusal, or where there are too many different ones its kind."""
        if refusal in self._windows or len(self._windows) < MAX_WINDOWS:
            return refusal
        return refusal._replace(told=tuple({**dict(refusal.told), _DIGEST: "various"}.items()))


def _entry(refusal: _Refusal, window: _Window) -> Entry:
    told: dict[str, Any] = dict(refusal.told)
    if window.times > 1:
        told |= {"times": window.times, "since": window.since}
    return Entry(ACTION, None, told)


def tell_denial(
    opened: Opened, *, actor: str, field: str, asked: str | None = None, code: str | None = None
) -> None:
    """Log a refusal and enter it into the journal of the orchestrator that refused.

    It tells no content and no name: of what was asked for it holds a digest, by which an auditor
    who knows the name finds it again. A refusal stands even where its entry cannot be written.
    Equal ones within a minute are one entry more, see ``DenialBook``.

    Args:
        actor: who asked.
        field, asked, code: see ``Denial``.
    """
    told = Denial(field, asked, code or AccessDenied.code).told
    opened.log.warning(AccessDenied.code, actor=actor, **told)
    opened.meters.denied(field)
    try:
        opened.denials.add(actor, told, opened.clock.now_ms())
    except MemgraphError as error:
        opened.log.failure(NOT_JOURNALLED, error)


def tell_each(opened: Opened, denials: Sequence[Denial], *, actor: str) -> None:
    """``tell_denial`` of several, each with an entry of its own that is durable on return.

    Whoever calls it bounds how often.
    """
    told = [each.told for each in denials]
    for each in told:
        opened.log.warning(AccessDenied.code, actor=actor, **each)
    for denial in denials:
        opened.meters.denied(denial.field)
    try:
        opened.denials.add_at_once(actor, told, opened.clock.now_ms())
    except MemgraphError as error:
        opened.log.failure(NOT_JOURNALLED, error)
