"""ConsoleSessions of the console, in memory only: when the server ends, everybody is signed out."""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

from memgraph.model.access import Narrowing

MS_PER_MINUTE: Final = 60_000
MOST_SESSIONS: Final = 1_000
"""The maximum of sessions; the least recently used makes room for a new one."""
MOST_ADDRESSES: Final = 10_000
ID_BYTES: Final = 32


@dataclass(slots=True)
class Session:
    """One browser that is signed in.

    Attributes:
        key_id: of the key that it showed, whose secret is not kept; None: no key is required.
        seen_at: when it was used last, milliseconds.
        narrowings: its narrowed views, by orchestrator.
        notice: a message for the next page; empty: none.
    """

    key_id: str | None
    seen_at: int
    narrowings: dict[str, Narrowing] = field(default_factory=dict)
    notice: str = ""


class ConsoleSessions:
    """The sessions of a server, by the digest of their id. Thread-safe.

    Args:
        idle_ms: a session that was not used for so long is over.
    """

    def __init__(self, idle_ms: int) -> None:
        self._idle_ms = idle_ms
        self._known: OrderedDict[str, Session] = OrderedDict()
        self._lock = threading.Lock()

    def open(self, key_id: str | None, now_ms: int) -> tuple[str, Session]:
        """Return a new session and its id, which is kept nowhere else: 256 random bits as text."""
        session_id = secrets.token_urlsafe(ID_BYTES)
        session = Session(key_id, now_ms)
        with self._lock:
            self._known[_digest(session_id)] = session
            if len(self._known) > MOST_SESSIONS:
                self._known.popitem(last=False)
        return session_id, session

    def find(self, session_id: str | None, now_ms: int) -> Session | None:
        """Return the session of an id and mark it as used; None: there is none, or it is over."""
        if not session_id:
            return None
        digest = _digest(session_id)
        with self._lock:
            session = self._known.get(digest)
            if session is None:
                return None
            # A clock that was put back ends none.
            if now_ms - session.seen_at > self._idle_ms:
                del self._known[digest]
                return None
            session.seen_at = now_ms
            self._known.move_to_end(digest)
            return session

    def key_of(self, session_id: str, now_ms: int) -> str | None:
        """Return the key id of a valid session, without marking it as used. None: of no key."""
        with self._lock:
            session = self._known.get(_digest(session_id))
        lasts = session is not None and now_ms - session.seen_at <= self._idle_ms
        return session.key_id if session is not None and lasts else None

    def end(self, session_id: str | None) -> None:
        """End a session, if there is one."""
        with self._lock:
            self._known.pop(_digest(session_id or ""), None)


class SignIns:
    """The sign-in attempts of each address within the last minute. Thread-safe.

    Args:
        per_minute: attempts of one address, whether they succeed or not.
    """

    def __init__(self, per_minute: int) -> None:
        self._per_minute = per_minute
        self._tries: OrderedDict[str, list[int]] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, address: str, now_ms: int) -> float:
        """Take one attempt; return the seconds to wait when there is none, else 0."""
        with self._lock:
            recent = [
                item for item in self._tries.get(address, ()) if 0 <= now_ms - item < MS_PER_MINUTE
            ]
            if len(recent) >= self._per_minute:
                return (recent[0] + MS_PER_MINUTE - now_ms) / 1_000
            self._tries[address] = [*recent, now_ms]
            self._tries.move_to_end(address)
            if len(self._tries) > MOST_ADDRESSES:
                self._tries.popitem(last=False)
            return 0.0


def _digest(session_id: str) -> str:
    return hashlib.sha256(session_id.encode("utf-8", "surrogatepass")).hexdigest()
