"""Parse conversations in plain text: ``Name: words``, with dates in headings or next to names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ingest.candidates import MAX_TURN_CHARS, ParsedDocument, lines, split_long, summarize
from ingest.parsers.file_names import conversation_name, session_name
from ingest.reasons import SkippedPart
from memgraph.model.conversation import BESIDE
from memgraph.model.enums import MemoryKind, MemoryType
from memgraph.text.dates import date_readings, settled

EPISODE_IMPORTANCE = 30
EPISODE_CONFIDENCE = 0.9
_MAX_NAME_CHARS = 48
_MAX_NAME_WORDS = 4

_DATE = r"\d{1,4}[-./]\d{1,2}[-./]\d{1,4}[ ,T]{1,2}"
_TIME = rf"(?:{_DATE})?\d{{1,2}}[:.]\d{{2}}(?:[:.]\d{{2}})?(?: ?[AaPp]\.?[Mm]\.?)?"
# A day without a time has its year, so that it is no version such as 1.2.3.
_DAY = r"(?:\d{4}[-./]\d\d?[-./]\d\d?|\d\d?[-./]\d\d?[-./]\d{4}|\d\d?/\d\d?/\d\d)"
_STAMP = re.compile(rf"^(?:\[({_TIME}|{_DAY})\]|({_TIME}|{_DAY}))(?:\s+-)?\s+")
_ONLY_DAY = re.compile(_DAY)
_DATED = re.compile(_DATE)
_IRC = re.compile(r"^<([^<>]{1,48})>\s+(?=\S)")
_TURN = re.compile(
    rf"^(?:[-*] )?(?:\*\*|__)?(?P<name>[^\W_][^:*<>|]{{0,47}}?)"
    rf"(?:\s*[(\[](?P<time>{_TIME})[)\]])?(?:\*\*|__)?:(?:\*\*|__)?(?:\s+|$)"
)
_HEADING = re.compile(
    r"^(?:#{1,6}\s+(?P<hash>.+?)\s*#*|[-=*_]{2,}\s*(?P<rule>[^-=*_].*?)\s*[-=*_]{2,})$"
)
_SESSION_WORD = re.compile(r"^(?:session|conversation|chat|day|meeting|call|part)\b", re.IGNORECASE)
_RULE = re.compile(r"^[-=*_]{3,}$")
_ROLES = frozenset(
    ("user", "assistant", "system", "human", "ai", "bot", "agent", "tool", "customer", "support")
)
_LABEL_WORDS = (
    "note notes todo fixme date status subject from to cc bcc re fw warning caution important "
    "tip hint example examples e.g i.e title author version license licence name "
    "description summary http https ftp file see source sources reference references url link "
    "address phone email tel fax usage output input result results error info debug key value "
    "type id context decision consequences deadline priority tags owner attendees agenda "
    "location where when who what why how ps p.s update edit question answer q a step "
    "warnung hinweis achtung beispiel datum betreff von an titel"
)
_LABELS = frozenset(_LABEL_WORDS.split())


@dataclass(slots=True)
class Conversation:
    """Adds the turns of a conversation to a document."""

    document: ParsedDocument
    _next: Counter[str] = field(default_factory=Counter)

    def add(
        self,
        text: str,
        where: str,
        *,
        speaker: str,
        session: str,
        conversation: str,
        event_time: int | None,
        turn_id: str | None = None,
        attributes: Mapping[str, Any] | None = None,
        numbered: bool = True,
    ) -> None:
        """Append a turn, in pieces when it is long.

        Args:
            numbered: number the turn by its position in this file's session; False: leave the
                number to the store, for a session that continues across files.
        """
        pieces = split_long(text, MAX_TURN_CHARS)
        if not pieces:
            self.document.report(SkippedPart.MESSAGE_EMPTY, where)
        if len(pieces) > 1:
            self.document.report(SkippedPart.CONTENT_SPLIT, where, {"pieces": len(pieces)})
        for piece in pieces:
            sequence = self._next[session]
            self._next[session] += 1
            self.document.add(
                piece,
                where,
                type=MemoryType.OBSERVATION,
                kind=MemoryKind.EPISODE,
                summary=summarize(f"{speaker}: {piece}"),
                importance=EPISODE_IMPORTANCE,
                confidence=EPISODE_CONFIDENCE,
                event_time=event_time,
                conversation_id=conversation,
                session_id=session,
                sequence=sequence if numbered else None,
                turn_id=turn_id or str(sequence),
                source_role=speaker,
                tags=("conversation",),
                attributes={"speaker": speaker, **(attributes or {})},
            )


def place_undated(document: ParsedDocument) -> None:
    """Let the undated turns of a conversation keep their places among its dated ones; report them.

    Their time stays unknown. ``BESIDE`` is that of the turn above, or else of the one below.
    """
    turns = document.candidates
    beside: dict[int, int] = {}
    for places in (range(len(turns)), reversed(range(len(turns)))):
        times: dict[str | None, int] = {}
        for place in places:
            turn = turns[place]
            if turn.event_time is not None:
                times[turn.session_id] = turn.event_time
            elif turn.session_id in times:
                beside.setdefault(place, times[turn.session_id])
    for place, time in beside.items():
        attributes = {**turns[place].attributes, BESIDE: time}
        turns[place] = replace(turns[place], attributes=attributes)
    for place in sorted(beside)[:1]:
        document.report(SkippedPart.DATE_MISSING, turns[place].locator, count=len(beside))


@dataclass(frozen=True, slots=True)
class _Line:
    """A line that begins a turn: the speaker, the text of the timestamp, and the rest."""

    name: str
    stamp: str
    text: str


@dataclass(frozen=True, slots=True)
class _Session:
    """A session: its time, and the line of its date; ``unread``: the date if its order is unknown.

    ``line`` is 0 if it has no date.
    """

    time: int | None = None
    line: int = 0
    unread: str | None = None


@dataclass(slots=True)
class _Turn:
    name: str
    first: int
    last: int
    session: int
    stamp: str = ""
    texts: list[str] = field(default_factory=list)


def is_transcript(text: str) -> bool:
    """Return True if ``text`` is mainly turns of a conversation, judging by its first 400 lines."""
    opened: list[_Line] = []
    filled = 0
    dated = False
    first_is_turn: bool | None = None
    for number, raw in enumerate(text.split("\n", 400)[:400]):
        line = raw.strip()
        if not line or _RULE.match(line):
            continue
        is_date = _date_heading(line) is not None
        if is_date or (first_is_turn is None and line.startswith("#")):
            dated = dated or is_date
            continue
        turn = _open_turn(line)
        first_is_turn = turn is not None if first_is_turn is None else first_is_turn
        filled += 1
        if turn is not None:
            opened.append(turn)
        elif number > 50 and not opened:
            return False
    return bool(first_is_turn) and _looks_spoken(opened, filled, dated)


def parse_transcript(document: ParsedDocument, text: str) -> None:
    """Add each turn as an episode, in order; a dated heading begins a session.

    ``event_time`` is that of the heading, unless the turn has a date of its own; ``sequence``
    counts the turns of a session from 0. A date whose order is unknown is reported.
    """
    document.format = "transcript"
    turns, sessions = _read_turns(document, text)
    used = sorted({turn.session for turn in turns})
    base = session_name(document.path)
    names = {
        session: base if len(used) == 1 else f"{base}#{place}"
        for place, session in enumerate(used, start=1)
    }
    conversation = Conversation(document)
    unread = [(each.line, each.unread) for each in sessions if each.unread is not None]
    for turn in turns:
        session = sessions[turn.session]
        own = document.dates(turn.stamp)
        moment = settled([own], session.time)
        if (moment is None or not own) and _DATED.match(f"{turn.stamp} "):
            unread.append((turn.first, turn.stamp))
            # Who reads the turn may understand it.
            turn.texts[0] = f"{turn.stamp} {turn.texts[0]}"
        conversation.add(
            "\n".join(turn.texts).strip(),
            lines(turn.first, turn.last),
            speaker=turn.name,
            session=names[turn.session],
            conversation=conversation_name(base),
            event_time=moment,
            attributes={"section": session.unread} if session.unread else None,
        )
    for line, stamp in sorted(unread)[:1]:
        document.report_date(stamp, lines(line, line), count=len(unread))


def _read_turns(document: ParsedDocument, text: str) -> tuple[list[_Turn], list[_Session]]:
    turns: list[_Turn] = []
    sessions = [_Session()]
    for number, raw in enumerate(text.split("\n"), start=1):
        line = raw.strip()
        current = turns[-1] if turns and turns[-1].session == len(sessions) - 1 else None
        if not line or _RULE.match(line):
            if current is not None:
                current.texts.append("")
            continue
        date = _date_heading(line)
        moment = None if date is None else settled([document.dates(date)])
        if moment is None and line == date and current is not None and current.texts[-1]:
            date = None  # the end of a sentence, as far as can be known
        heading = _HEADING.match(line)
        if date is not None or (
            heading and _SESSION_WORD.match(heading["hash"] or heading["rule"])
        ):
            # A date below the heading of a session is its date.
            if current is not None or sessions[-1].line:
                sessions.append(_Session())
            if date is not None:
                sessions[-1] = _Session(moment, number, date if moment is None else None)
        elif (turn := _open_turn(line)) is not None:
            session = len(sessions) - 1
            turns.append(_Turn(turn.name, number, number, session, turn.stamp, [turn.text]))
        elif current is not None:
            current.texts.append(line)
            current.last = number
        else:
            document.title = document.title or line.lstrip("#= ").strip() or None
            if not line.startswith("#"):
                turns.append(_Turn("narrator", number, number, len(sessions) - 1, texts=[line]))
    return turns, sessions


def _date_heading(line: str) -> str | None:
    """Return the date of a line that is only a date, whether or not its order is known."""
    if len(line) > 100 or not any(char.isdigit() for char in line):
        return None
    heading = _HEADING.match(line)
    bare = (heading["hash"] or heading["rule"]) if heading else line.strip("[]()*_ ")
    return bare if date_readings(bare) else None


def _open_turn(line: str) -> _Line | None:
    head = line[:160]
    stamp = ""
    if match := _STAMP.match(head):
        stamp = match[1] or match[2]
        head = head[match.end() :]
    if match := _IRC.match(head):
        name, time, end = match[1].strip(), None, match.end()
    elif match := _TURN.match(head):
        name, time, end = match["name"].strip(), match["time"], match.end()
    else:
        return None
    if not _is_name(name):
        return None
    text = line[len(line[:160]) - len(head) + end :].strip()
    return _Line(name, stamp or time or "", text)


def _is_name(name: str) -> bool:
    words = name.split()
    if not words or len(name) > _MAX_NAME_CHARS or len(words) > _MAX_NAME_WORDS:
        return False
    if name.casefold() in _LABELS or name[-1] in ".!?,;":
        return False
    return any(char.isalpha() for char in name)


def _looks_spoken(opened: list[_Line], filled: int, dated: bool) -> bool:
    names = Counter(line.name for line in opened)
    if len(opened) < 2 or len(opened) * 5 < filled:
        return False
    # A list of dated lines is no conversation.
    days = [line for line in opened if line.stamp and _ONLY_DAY.fullmatch(line.stamp)]
    stamps = [line.stamp for line in opened if line.stamp and line not in days]
    if dated or len(stamps) == len(opened) or any(map(_DATED.match, stamps)):
        return True
    if any(name.casefold() in _ROLES for name in names) and len(names) > 1:
        return True
    words = sum(len(line.text.split()) for line in opened)
    if len(names) * 2 <= len(opened) + 1 and max(names.values()) > 1:
        # Amounts and other short entries below days are a ledger.
        is_list = len(days) == len(opened) and words <= 2 * len(opened)
        return not is_list and (len(opened) * 2 >= filled or len(names) <= 4)
    # With every name used only once it is a list of keys and values, unless lines are sentences.
    are_names = all(word[0].isupper() for name in names for word in name.split())
    return len(opened) == filled and words >= 4 * len(opened) and are_names
