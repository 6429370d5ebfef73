"""Parse conversations in plain text: ``Name: words``, with dates in headings or next to names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ingest.candidates import (
    MAX_TURN_CHARS,
    Format,
    IngestCandidate,
    KeySource,
    ParsedDocument,
    ParseFinding,
    lines,
    split_long,
    summarize,
)
from ingest.parsers.file_names import conversation_name, document_keys, session_name, title_of
from ingest.reasons import SkippedPart
from memgraph.model.enums import MemoryKind, MemoryType
from memgraph.text.dates import read_date

EPISODE_IMPORTANCE = 30
EPISODE_CONFIDENCE = 0.9
_MAX_NAME_CHARS = 48
_MAX_NAME_WORDS = 4

_DATE = r"\d{1,4}[-./]\d{1,2}[-./]\d{1,4}[ ,T]{1,2}"
_TIME = rf"(?:{_DATE})?\d{{1,2}}[:.]\d{{2}}(?:[:.]\d{{2}})?(?: ?[AaPp]\.?[Mm]\.?)?"
_STAMP = re.compile(rf"^(?:\[({_TIME})\]|({_TIME}))(?:\s+-)?\s+")
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
    "tip hint example examples example: e.g i.e title author version license licence name "
    "description summary http https ftp file see source sources reference references url link "
    "address phone email tel fax usage output input result results error info debug key value "
    "type id context decision consequences deadline priority tags owner attendees agenda "
    "location where when who what why how ps p.s update edit question answer q a step "
    "warnung hinweis achtung beispiel datum betreff von an titel"
)
_LABELS = frozenset(_LABEL_WORDS.split())


@dataclass(slots=True)
class ParsedConversation:
    """The episodes of a conversation file, and what was left out."""

    path: str
    findings: list[ParseFinding]
    candidates: list[IngestCandidate] = field(default_factory=list)
    keys: KeySource = field(default_factory=KeySource)
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
        pieces = list(split_long(text, MAX_TURN_CHARS))
        if not pieces:
            self.findings.append(ParseFinding(SkippedPart.MESSAGE_EMPTY, where))
        if len(pieces) > 1:
            self.findings.append(
                ParseFinding(SkippedPart.CONTENT_SPLIT, where, {"pieces": len(pieces)})
            )
        for piece in pieces:
            sequence = self._next[session]
            self._next[session] += 1
            self.candidates.append(
                IngestCandidate(
                    self.keys.new(),
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
            )

    def document(self, format_: Format, title: str | None = None) -> ParsedDocument:
        """Return the episodes as a document."""
        return ParsedDocument(
            format_,
            tuple(self.candidates),
            findings=tuple(self.findings),
            title=title or title_of(self.path),
            main_key=self.candidates[0].key if self.candidates else None,
            document_keys=document_keys(self.path),
        )


@dataclass(frozen=True, slots=True)
class _Line:
    """A line that begins a turn: the speaker, the text of the timestamp, and the rest."""

    name: str
    stamp: str | None
    text: str


@dataclass(slots=True)
class _Turn:
    name: str
    first: int
    last: int
    session: int
    event_time: int | None
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
        if _heading_time(line) is not None or (first_is_turn is None and line.startswith("#")):
            dated = dated or _heading_time(line) is not None
            continue
        turn = _open_turn(line)
        first_is_turn = turn is not None if first_is_turn is None else first_is_turn
        filled += 1
        if turn is not None:
            opened.append(turn)
        elif number > 50 and not opened:
            return False
    return bool(first_is_turn) and _looks_spoken(opened, filled, dated)


def parse_transcript(
    text: str, path: str, findings: tuple[ParseFinding, ...] = ()
) -> ParsedDocument:
    """Return each turn as an episode, in order; a dated heading begins a session.

    ``event_time`` is that of the heading, unless the turn has a date of its own; ``sequence``
    counts the turns of a session from 0.
    """
    turns, starts, title = _read_turns(text)
    used = sorted({turn.session for turn in turns})
    base = session_name(path)
    names = {
        session: base if len(used) == 1 else f"{base}#{place}"
        for place, session in enumerate(used, start=1)
    }
    conversation = ParsedConversation(path, list(findings))
    for turn in turns:
        conversation.add(
            "\n".join(turn.texts).strip(),
            lines(turn.first, turn.last),
            speaker=turn.name,
            session=names[turn.session],
            conversation=conversation_name(base),
            event_time=turn.event_time if turn.event_time is not None else starts[turn.session],
        )
    return replace(conversation.document("transcript"), title=title)


def _read_turns(text: str) -> tuple[list[_Turn], list[int | None], str | None]:
    turns: list[_Turn] = []
    starts: list[int | None] = [None]
    title: str | None = None
    for number, raw in enumerate(text.split("\n"), start=1):
        line = raw.strip()
        if not line or _RULE.match(line):
            if turns and turns[-1].texts and turns[-1].session == len(starts) - 1:
                turns[-1].texts.append("")
            continue
        moment = _heading_time(line)
        if moment is not None:
            _begin_session(turns, starts, moment)
            continue
        heading = _HEADING.match(line)
        if heading and _SESSION_WORD.match(heading["hash"] or heading["rule"]):
            _begin_session(turns, starts, None)
            continue
        turn = _open_turn(line)
        if turn is not None:
            event_time = read_date(turn.stamp) if turn.stamp else None
            turns.append(_Turn(turn.name, number, number, len(starts) - 1, event_time, [turn.text]))
        elif turns and turns[-1].session == len(starts) - 1:
            turns[-1].texts.append(line)
            turns[-1].last = number
        else:
            title = title or line.lstrip("#= ").strip() or None
            if not line.startswith("#"):
                turns.append(_Turn("narrator", number, number, len(starts) - 1, None, [line]))
    return turns, starts, title


def _begin_session(turns: list[_Turn], starts: list[int | None], moment: int | None) -> None:
    """Begin a session, or date the current one if it has neither turns nor a date yet."""
    fresh = not turns or turns[-1].session != len(starts) - 1
    if fresh and starts[-1] is None:
        starts[-1] = moment
    else:
        starts.append(moment)


def _heading_time(line: str) -> int | None:
    """Return the time of a line that is only a date."""
    if len(line) > 100 or not any(char.isdigit() for char in line):
        return None
    heading = _HEADING.match(line)
    return read_date((heading["hash"] or heading["rule"]) if heading else line.strip("[]()*_ "))


def _open_turn(line: str) -> _Line | None:
    head = line[:160]
    stamp: str | None = None
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
    return _Line(name, stamp or time, text)


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
    if dated or all(line.stamp for line in opened):
        return True
    if any(name.casefold() in _ROLES for name in names) and len(names) > 1:
        return True
    if len(names) * 2 <= len(opened) + 1 and max(names.values()) > 1:
        return len(opened) * 2 >= filled or len(names) <= 4
    # With every name used only once it is a list of keys and values, unless lines are sentences.
    words = sum(len(line.text.split()) for line in opened)
    return len(opened) == filled and words >= 4 * len(opened) and _named(names)


def _named(names: Counter[str]) -> bool:
    return all(word[0].isupper() for name in names for word in name.split())
