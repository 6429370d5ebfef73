"""Time as a value that is passed in. Stored times are whole milliseconds since 1970, UTC."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Protocol

from memgraph.errors import InvalidInput

MS_PER_DAY = 86_400_000
# The range of datetime, the years 0001 to 9999; other values would fail only when they are read.
MIN_MS = -62_135_596_800_000
MAX_MS = 253_402_300_799_999


class MachineZone(tzinfo):
    """The time zone of this machine, as ``TZ`` or its configuration says."""

    def fromutc(self, dt: datetime) -> datetime:
        return dt.replace(tzinfo=UTC).astimezone()

    def utcoffset(self, dt: datetime | None) -> timedelta | None:
        return None if dt is None else dt.replace(tzinfo=None).astimezone().utcoffset()

    def dst(self, dt: datetime | None) -> timedelta | None:
        return None if dt is None else dt.replace(tzinfo=None).astimezone().dst()

    def tzname(self, dt: datetime | None) -> str | None:
        return None if dt is None else dt.replace(tzinfo=None).astimezone().tzname()


class Clock(Protocol):
    def now_ms(self) -> int:
        """Milliseconds since 1970-01-01T00:00Z."""
        ...


class SystemClock:
    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000


class FixedClock:
    """A clock for tests that stands still until it is moved."""

    def __init__(self, now_ms: int = 1_767_225_600_000) -> None:
        self._now_ms = now_ms

    def now_ms(self) -> int:
        return self._now_ms

    def advance(self, *, ms: int = 0, days: float = 0.0) -> None:
        self._now_ms += ms + round(days * MS_PER_DAY)


def is_mere_date(ms: int) -> bool:
    """Return True for midnight UTC, as which a date without a time of day is stored."""
    return ms % MS_PER_DAY == 0


# An answer contains about 170 times, most of them twice, and its receipt repeats them all.
@lru_cache(maxsize=4_096)
def iso(ms: int) -> str:
    """Return milliseconds as ISO 8601 in UTC, e.g. 2026-01-01T00:00:00.000Z."""
    seconds, rest = divmod(ms, 1000)
    # Takes a third of the time of ``strftime``.
    stamp = datetime.fromtimestamp(seconds, UTC).isoformat()[: len("2026-01-01T00:00:00")]
    return f"{stamp}.{rest:03d}Z"


def parse_time(text: str | float | datetime) -> int:
    """Return milliseconds from ISO 8601 text, a datetime, or a whole number of milliseconds.
    Without a zone it is UTC.

    Raises:
        InvalidInput: not a time, or outside the years 0001 to 9999.
    """
    if isinstance(text, bool) or not isinstance(text, str | int | float | datetime):
        raise InvalidInput("a time must be ISO 8601 text or milliseconds since 1970")
    if isinstance(text, float):
        if not text.is_integer():
            message = f"milliseconds must be a whole number; the time {text} has a fraction"
            raise InvalidInput(message)
        text = int(text)
    if isinstance(text, int):
        ms = text
    else:
        try:
            moment = text if isinstance(text, datetime) else datetime.fromisoformat(text)
        except ValueError as error:
            raise InvalidInput(
                "not an ISO 8601 time, e.g. 2026-01-31 or 2026-01-31T08:30:00Z"
            ) from error
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        delta = moment - datetime(1970, 1, 1, tzinfo=UTC)
        ms = (delta.days * 86_400 + delta.seconds) * 1000 + delta.microseconds // 1000
    if not MIN_MS <= ms <= MAX_MS:
        raise InvalidInput("a time must be between the years 0001 and 9999", value=ms)
    return ms
