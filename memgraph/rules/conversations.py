"""Conversations: which sessions turns open and complete; events that follow."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import zip_longest
from typing import Any, Final

from memgraph.clock import MS_PER_DAY
from memgraph.errors import InvalidInput
from memgraph.model.conversation import ConversationEntry
from memgraph.model.enums import MemoryType, Sensitivity
from memgraph.model.values import MAX_CONTENT_CHARS


class SessionState(StrEnum):
    """OPEN: more turns are expected. COMPLETED: it waits until it is CONSOLIDATED."""

    OPEN = "open"
    COMPLETED = "completed"
    CONSOLIDATED = "consolidated"


@dataclass(slots=True)
class SessionTransition:
    """The effect of a batch of turns on sessions.

    Attributes:
        completes: for each turn, the sessions that it completes, in the order they opened.
        open: the sessions that are open after the batch.
        done: those that were completed on the way, open again or not.
    """

    completes: list[tuple[str, ...]] = field(default_factory=list)
    open: set[str] = field(default_factory=set)
    done: set[str] = field(default_factory=set)


def follow(
    turns: Sequence[str], followed: Collection[str], open_now: Iterable[str]
) -> SessionTransition:
    """Turns as they are said, in order, each given by its session.

    Args:
        followed: sessions that were registered before, of those in ``turns``.
        open_now: all sessions that are open; needed only where a turn begins a session.
    """
    course = SessionTransition()
    going_on = dict.fromkeys(open_now)
    registered = set(followed)
    for session_id in turns:
        over: tuple[str, ...] = ()
        if session_id not in registered:
            registered.add(session_id)
            over = tuple(session for session in going_on if session != session_id)
            course.done.update(over)
            going_on.clear()
        going_on[session_id] = None
        course.completes.append(over)
    course.open.update(going_on)
    return course


def taken_over(turns: Iterable[str], states: Mapping[str, SessionState]) -> list[str]:
    """Turns that are taken over from elsewhere: the sessions that are complete with them.

    A session that is open here stays so, and one that waits for its consolidation was told to be
    complete before.
    """
    waiting = (SessionState.OPEN, SessionState.COMPLETED)
    return [
        session_id for session_id in dict.fromkeys(turns) if states.get(session_id) not in waiting
    ]


# How an entry of a conversation becomes episodes and comes back as it was.


ATTRIBUTE: Final = "entry"
CHUNK_CHARS: Final = 7_000
"""As a text within the JSON of attributes it has twice its length at most: below their limit."""

MAX_LABEL_CHARS: Final = 200
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class EntryPart:
    """One of the episodes that hold an entry.

    Attributes:
        said: whether the content is what was said; else it is the label.
        attributes: what the episode is stored with.
    """

    content: str
    said: bool
    attributes: dict[str, Any]


def parts_of(entry: ConversationEntry) -> list[EntryPart]:
    """Return the episodes that hold an entry, in order; at least one.

    Raises:
        InvalidInput: the record is no JSON, or nobody said the text.
    """
    if entry.text and entry.speaker is None:
        raise InvalidInput("a text needs a speaker", field="speaker")
    exact = _cut(entry.text)
    if not entry.text or (not _UNSTORABLE.search(entry.text) and all(map(str.strip, exact))):
        columns = [entry.record]
    else:
        # An episode cannot hold this text as it is: it holds what is readable of it.
        columns = [entry.record, entry.text]
        exact = _cut(" ".join(_UNSTORABLE.sub(" ", entry.text).split()))
    chunks = _chunks(_json(columns))
    count = max(len(chunks), len(exact))
    label = " ".join(_UNSTORABLE.sub(" ", entry.label).split())[:MAX_LABEL_CHARS] or "entry"
    return [
        EntryPart(
            content=verbatim or (label if count == 1 else f"{label} ({place + 1} of {count})"),
            said=bool(verbatim),
            attributes={
                ATTRIBUTE: {
                    "part": place,
                    "of": count,
                    "said": bool(verbatim),
                    "record": chunk or "",
                }
            },
        )
        for place, (verbatim, chunk) in enumerate(zip_longest(exact, chunks))
    ]


def part_place(attributes: Mapping[str, Any]) -> tuple[int, int] | None:
    """Return which part of how many an episode holds; None: it holds no part of an entry."""
    match attributes.get(ATTRIBUTE):
        case {"part": int(place), "of": int(count), "said": bool(), "record": str()}:
            return place, count
    return None


def entry_of(parts: Sequence[tuple[str, Mapping[str, Any]]]) -> ConversationEntry:
    """Return the entry that these episodes hold: content and attributes of all of them, in order.

    Raises:
        ValueError, TypeError: they hold none, whatever their attributes say.
    """
    rows = [(content, attributes[ATTRIBUTE]) for content, attributes in parts]
    record, *text = json.loads("".join(fields["record"] for _, fields in rows))
    verbatim = "".join(content for content, fields in rows if fields["said"])
    return ConversationEntry(record, text[0] if text else verbatim)


def _json(value: Any) -> str:
    try:
        # Plain ASCII: what no column can hold (NUL, half a pair) is written with a backslash.
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(
            "an entry of a conversation must be plain JSON", field="record"
        ) from error


def _chunks(text: str) -> list[str]:
    return [text[at : at + CHUNK_CHARS] for at in range(0, len(text), CHUNK_CHARS)]


def _cut(text: str) -> list[str]:
    """Pieces that an episode can hold, cut behind white space where there is some."""
    return list(_pieces(text))


def _pieces(text: str) -> Iterator[str]:
    start = 0
    while len(text) - start > MAX_CONTENT_CHARS:
        end = start + MAX_CONTENT_CHARS
        space = max(text.rfind(mark, start, end) for mark in (" ", "\n"))
        end = space + 1 if space > start else end
        yield text[start:end]
        start = end
    if start < len(text):
        yield text[start:]


MOST_ATTEMPTS = 6
FIRST_PAUSE_MS = 1_000
GROWTH = 5

DAY_MS = 86_400_000
# What every subscriber has had stays a little for one that asks to begin at the start.
KEEP_TAKEN_MS = DAY_MS
MOST_TAKEN = 10_000
# What a subscriber has not had waits for it, but not for ever: it may never come back.
KEEP_WAITING_MS = 30 * DAY_MS
MOST_WAITING = 1_000_000
MOST_PARKED = 10_000


def pause_ms(attempts: int) -> int:
    """Return how long to wait after so many attempts: 1 s, 5 s, 25 s, 2 min, 10 min."""
    return int(FIRST_PAUSE_MS * GROWTH ** (max(attempts, 1) - 1))


def gives_up(attempts: int) -> bool:
    """Return True when an event that was tried so often is put aside."""
    return attempts >= MOST_ATTEMPTS


def removable_through(*, last: int, consolidated: int, aged: int, expired: int) -> int:
    """Return the number up to which events may be removed; 0: none.

    Args:
        last: the newest event's number.
        consolidated: up to there every subscriber has had them; without subscribers it is ``last``.
        aged: up to there they are older than ``KEEP_TAKEN_MS``.
        expired: up to there they are older than ``KEEP_WAITING_MS``.
    """
    return max(min(consolidated, max(aged, last - MOST_TAKEN)), expired, last - MOST_WAITING, 0)


WEEKLY = "weekly"
"""The tag of the reflections that the job makes."""

DONE_TAG = "done"
STALE_DAYS = 14.0
CLEARANCE = Sensitivity.INTERNAL
"""A reflection is made of memories up to this: it is shown to everybody who may see that much."""

# Below the 50 of a memory that says nothing of itself: a reflection repeats others, and where the
# most important come first it comes after them.
IMPORTANCE = 30
DIGEST_CONFIDENCE, MODEL_CONFIDENCE = 0.9, 0.6


@dataclass(frozen=True, slots=True)
class ReflectionPeriod:
    """The period of a reflection: ``since`` <= a time < ``until``, milliseconds."""

    since: int
    until: int

    def holds(self, at_ms: int) -> bool:
        return self.since <= at_ms < self.until


def period(now_ms: int, days: float) -> ReflectionPeriod:
    """Return the days before now; what is stored at this very moment belongs to it."""
    return ReflectionPeriod(now_ms - round(days * MS_PER_DAY), now_ms + 1)


def is_too_soon(others_at_ms: Iterable[int], now_ms: int, min_days_between: float) -> bool:
    """Return True when a reflection is so near that there is no other one to be made.

    One that lies a little in the future counts, since clocks differ; one that lies further ahead
    than the pause was made by a clock that was wrong, and would stop all others for as long.
    """
    pause = min_days_between * MS_PER_DAY
    return any(abs(now_ms - moment) < pause for moment in others_at_ms)


def is_done(tags: Collection[str], attributes: Mapping[str, Any]) -> bool:
    """Return whether a goal or todo is done: by the tag ``done`` or ``attributes.done``."""
    return DONE_TAG in tags or attributes.get("done") is True


def is_finished(
    memory_type: MemoryType,
    tags: Collection[str],
    attributes: Mapping[str, Any],
    touched_ms: int,
    during: ReflectionPeriod,
) -> bool:
    """Return True when a goal or todo was done in the period."""
    return _is_task(memory_type) and is_done(tags, attributes) and during.holds(touched_ms)


def is_stale(
    memory_type: MemoryType,
    tags: Collection[str],
    attributes: Mapping[str, Any],
    touched_ms: int,
    now_ms: int,
    days: float = STALE_DAYS,
) -> bool:
    """Return True when a goal or todo is open and was not touched for ``days``.

    Args:
        touched_ms: when it was stored or last changed. That it was recalled does not count: it
            says that somebody looked, not that somebody worked on it.
    """
    if not _is_task(memory_type) or is_done(tags, attributes):
        return False
    return now_ms - touched_ms >= days * MS_PER_DAY


def highest(sensitivities: Iterable[Sensitivity]) -> Sensitivity:
    """Return the highest of several sensitivities; Public of none."""
    return max(sensitivities, key=lambda sensitivity: sensitivity.level, default=Sensitivity.PUBLIC)


def _is_task(memory_type: MemoryType) -> bool:
    return memory_type in (MemoryType.GOAL, MemoryType.TODO)
