"""Generate identifiers: a prefix for the kind, and a ULID of 26 characters that sorts by time.

A ULID is the Crockford base32 encoding of 48 bits of milliseconds and 80 random bits.
"""

from __future__ import annotations

import os
import threading
from typing import Final, Protocol

from memgraph.clock import Clock

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_RANDOM_BITS = 80
_RANDOM_BYTES = _RANDOM_BITS // 8
_IDS_AT_ONCE = 64
# Encode two characters at a time, from the most significant bits.
_PAIRS = tuple(first + second for first in _ALPHABET for second in _ALPHABET)
_SHIFTS = range(120, -1, -10)

BULLETIN_PREFIX: Final = "bul_"
EDGE_PREFIX: Final = "edge_"
ENTITY_PREFIX: Final = "ent_"
ERASURE_PREFIX: Final = "era_"
PACKAGE_PREFIX: Final = "ctx_"
RECEIPT_PREFIX: Final = "rcl_"
RUN_PREFIX: Final = "run_"
SOURCE_PREFIX: Final = "src_"
"""The beginnings of ids; ``MemoryKind.id_prefix`` has those of memories."""

SHORT_CHARS = 6
"""The least length of a short id: the last characters of an id, which encode 30 random bits."""


def short_id(memory_id: str, chars: int = SHORT_CHARS) -> str:
    """Return the short form of an id, for prompts: its last characters in lower case.

    Lookups accept it in any case, with or without ``#`` before it.
    ``memgraph.store.memories.short_ids`` returns forms that only one memory has.
    """
    return memory_id[-chars:].lower()


class IdSource(Protocol):
    def new(self, prefix: str) -> str:
        """Return a new id that starts with ``prefix`` and sorts after every earlier one."""
        ...


def encode_ulid(value: int) -> str:
    """Return 128 bits as 26 characters, most significant first."""
    return "".join([_PAIRS[(value >> shift) & 1023] for shift in _SHIFTS])


class UlidSource:
    """Creates ids that sort by creation, even within a millisecond. Monotonic per process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last = 0
        self._lock = threading.Lock()
        self._random = b""
        self._drawn_by = 0

    def new(self, prefix: str) -> str:
        with self._lock:
            # One system call per id is ten times slower. A fork must not reuse its parent's bytes.
            if len(self._random) < _RANDOM_BYTES or self._drawn_by != os.getpid():
                self._random = os.urandom(_IDS_AT_ONCE * _RANDOM_BYTES)
                self._drawn_by = os.getpid()
            drawn, self._random = self._random[:_RANDOM_BYTES], self._random[_RANDOM_BYTES:]
            time = max(self._clock.now_ms(), 0) << _RANDOM_BITS
            self._last = max(time | int.from_bytes(drawn, "big"), self._last + 1)
            return prefix + encode_ulid(self._last)


class CountingIds:
    """Generates predictable ids from a counter, for tests."""

    def __init__(self) -> None:
        self._next = 0

    def new(self, prefix: str) -> str:
        self._next += 1
        return prefix + encode_ulid(self._next)
