"""Rules for conversations: session states, entries as episodes, and reflections."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import zip_longest
from typing import Any, Final

from memgraph.clock import MS_PER_DAY
from memgraph.errors import InvalidInput
from memgraph.model.conversation import ConversationEntry
from memgraph.model.enums import Sensitivity
from memgraph.model.values import MAX_CONTENT_CHARS


class SessionState(StrEnum):
    """OPEN: more turns are expected. COMPLETED: waiting for consolidation."""

    OPEN = "open"
    COMPLETED = "completed"
    CONSOLIDATED = "consolidated"


@dataclass(slots=True)
class SessionTransition:
    """The effect of a batch of turns on sessions.

    Attributes:
        completes: for each turn, the sessions that it completes, in the order they opened.
        open: the sessions that are open after the batch.
        done: the sessions that were completed by the batch, even if they are open again.
    """

    completes: list[tuple[str, ...]] = field(default_factory=list)
    open: set[str] = field(default_factory=set)
    done: set[str] = field(default_factory=set)


def follow(
    turns: Sequence[str], followed: Collection[str], open_now: Iterable[str]
) -> SessionTransition:
    """Return the effect of a batch of live turns: a new session completes all open ones.

    Args:
        turns: the session id of each turn, in order.
        followed: the sessions in ``turns`` that are already registered.
        open_now: all open sessions; needed only if a turn begins a session.
    """
    transition = SessionTransition()
    open_sessions = dict.fromkeys(open_now)
    registered = set(followed)
    for session_id in turns:
        completed: tuple[str, ...] = ()
        if session_id not in registered:
            registered.add(session_id)
            completed = tuple(session for session in open_sessions if session != session_id)
            transition.done.update(completed)
            open_sessions.clear()
        open_sessions[session_id] = None
        transition.completes.append(completed)
    transition.open.update(open_sessions)
    return transition


def taken_over(turns: Iterable[str], states: Mapping[str, SessionState]) -> list[str]:
    """Return the sessions that are complete once these imported turns are stored.

    An open session stays open, and a completed one was already reported as complete.
    """
    waiting = (SessionState.OPEN, SessionState.COMPLETED)
    return [
        session_id for session_id in dict.fromkeys(turns) if states.get(session_id) not in waiting
    ]


# Convert an entry of a conversation to episodes and back without loss.


ATTRIBUTE: Final = "entry"
CHUNK_CHARS: Final = 7_000
"""Escaped within the JSON of attributes, a chunk at most doubles in length: below their limit."""

MAX_LABEL_CHARS: Final = 200
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class EntryPart:
    """One of the episodes in which an entry is stored.

    Attributes:
        said: True if the content is text of the entry; False if it is the label.
        attributes: the attributes of the episode.
    """

    content: str
    said: bool
    attributes: dict[str, Any]


def parts_of(entry: ConversationEntry) -> list[EntryPart]:
    """Split an entry into episodes, in order; at least one.

    Raises:
        InvalidInput: the record is not plain JSON, or a text has no speaker.
    """
    if entry.text and entry.speaker is None:
        raise InvalidInput("a text needs a speaker", field="speaker")
    exact = _cut(entry.text)
    if not entry.text or (not _UNSTORABLE.search(entry.text) and all(map(str.strip, exact))):
        columns = [entry.record]
    else:
        # This text cannot be stored as it is: the episode gets a readable version of it.
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
    """Return the index of an episode's part and the number of parts; None if it is not a part."""
    match attributes.get(ATTRIBUTE):
        case {"part": int(place), "of": int(count), "said": bool(), "record": str()}:
            return place, count
    return None


def entry_of(parts: Sequence[tuple[str, Mapping[str, Any]]]) -> ConversationEntry:
    """Restore an entry from the content and attributes of all its episodes, in order.

    Raises:
        ValueError, TypeError: the episodes do not form an entry.
    """
    rows = [(content, attributes[ATTRIBUTE]) for content, attributes in parts]
    record, *text = json.loads("".join(fields["record"] for _, fields in rows))
    verbatim = "".join(content for content, fields in rows if fields["said"])
    return ConversationEntry(record, text[0] if text else verbatim)


def _json(value: Any) -> str:
    try:
        # Plain ASCII: characters that cannot be stored (NUL, lone surrogates) are escaped.
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(
            "an entry of a conversation must be plain JSON", field="record"
        ) from error


def _chunks(text: str) -> list[str]:
    return [text[at : at + CHUNK_CHARS] for at in range(0, len(text), CHUNK_CHARS)]


def _cut(text: str) -> list[str]:
    """Split a text into pieces of the size of an episode, after white space if possible."""
    pieces = []
    while len(text) > MAX_CONTENT_CHARS:
        space = max(text.rfind(mark, 0, MAX_CONTENT_CHARS) for mark in (" ", "\n"))
        end = space + 1 if space > 0 else MAX_CONTENT_CHARS
        pieces.append(text[:end])
        text = text[end:]
    return [*pieces, text] if text else pieces


WEEKLY = "weekly"
"""The tag of reflections made by the weekly job."""

DONE_TAG = "done"
CLEARANCE = Sensitivity.INTERNAL
"""The highest sensitivity of memories in a reflection, which every reader with it may see."""

# Below the default of 50: a reflection repeats other memories and should rank after them.
IMPORTANCE = 30
LISTED_CONFIDENCE, MODEL_CONFIDENCE = 0.9, 0.6


@dataclass(frozen=True, slots=True)
class ReflectionPeriod:
    """The period of a reflection: ``since`` <= a time < ``until``, milliseconds."""

    since: int
    until: int

    def holds(self, at_ms: int) -> bool:
        return self.since <= at_ms < self.until


def period(now_ms: int, days: float) -> ReflectionPeriod:
    """Return the last ``days`` days; a memory that is stored right now is included."""
    return ReflectionPeriod(now_ms - round(days * MS_PER_DAY), now_ms + 1)


def is_too_soon(others_at_ms: Iterable[int], now_ms: int, min_days_between: float) -> bool:
    """Return True if another reflection is too near in time to make a new one.

    A reflection slightly in the future counts, because clocks differ. One further ahead than the
    pause is ignored: its clock was wrong, and it would block all others until then.
    """
    pause = min_days_between * MS_PER_DAY
    return any(abs(now_ms - moment) < pause for moment in others_at_ms)


def is_done(tags: Collection[str], attributes: Mapping[str, Any]) -> bool:
    """Return True if a goal or todo is done: it has the tag ``done``, or ``attributes.done``."""
    return DONE_TAG in tags or attributes.get("done") is True


def highest(sensitivities: Iterable[Sensitivity]) -> Sensitivity:
    """Return the highest of several sensitivities; Public if there are none."""
    return max(sensitivities, key=lambda sensitivity: sensitivity.level, default=Sensitivity.PUBLIC)
