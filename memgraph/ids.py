"""Identifiers: a prefix for the kind, and 26 characters that sort by time (ULID).

Format: Crockford base32 of 48 bits of milliseconds and 80 random bits, as in the ULID spec.
"""

from __future__ import annotations

import os
import threading
from typing import Protocol

from memgraph.clock import Clock

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_RANDOM_BITS = 80
_RANDOM_BYTES = _RANDOM_BITS // 8
_IDS_AT_ONCE = 64
# Two characters at a time, the last two first.
_PAIRS = tuple(first + second for first in _ALPHABET for second in _ALPHABET)
_SHIFTS = range(120, -1, -10)


SHORT_CHARS = 8
"""The last characters of an id: 40 of its 80 random bits."""


def short_id(memory_id: str) -> str:
    """Return the short form of an id for prompts, which look-ups also accept."""
    return memory_id[-SHORT_CHARS:]


class IdSource(Protocol):
    def new(self, prefix: str) -> str:
        """Return a new id that starts with ``prefix`` and sorts after every earlier one."""
        ...


def encode_ulid(value: int) -> str:
    """Return 128 bits as 26 characters, most significant first."""
    return "".join([_PAIRS[(value >> shift) & 1023] for shift in _SHIFTS])


def first_ulid(ms: int) -> str:
    """Return the 26 characters that sort before every id made at that time or later."""
    return encode_ulid(max(ms, 0) << _RANDOM_BITS)


class UlidSource:
    """Monotonic within a process: ids of the same millisecond sort in the order of creation."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last = 0
        self._lock = threading.Lock()
        self._random = b""
        self._drawn_by = 0

    def new(self, prefix: str) -> str:
        with self._lock:
            fresh = max(self._clock.now_ms(), 0) << _RANDOM_BITS | self._chance()
            self._last = max(fresh, self._last + 1)
            return prefix + encode_ulid(self._last)

    def _chance(self) -> int:
        # A system call for each id costs ten times as much. A fork must not repeat its parent's.
        if len(self._random) < _RANDOM_BYTES or self._drawn_by != os.getpid():
            self._random = os.urandom(_IDS_AT_ONCE * _RANDOM_BYTES)
            self._drawn_by = os.getpid()
        drawn, self._random = self._random[:_RANDOM_BYTES], self._random[_RANDOM_BYTES:]
        return int.from_bytes(drawn, "big")


class CountingIds:
    """Predictable ids for tests: a counter."""

    def __init__(self) -> None:
        self._next = 0

    def new(self, prefix: str) -> str:
        self._next += 1
        return prefix + encode_ulid(self._next)
