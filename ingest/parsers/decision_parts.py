"""The parts of a decision record: its sections, and what its head says of it and of others.

The headings are those of the published templates (Nygard's, MADR): what stands under any other
heading is kept as a detail of the decision.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from ingest.candidates import ParsedDocument
from ingest.parsers.blocks import FrontMatter, read_blocks
from ingest.parsers.file_names import dates_in_name, link_keys, number_keys, record_number, title_of
from memgraph.text.blocks import Block, HeadedSection, TextLink
from memgraph.text.dates import settled
from memgraph.text.sentences import split_sentences

Role = Literal[
    "decision", "status", "context", "drivers", "options", "consequences", "preamble", "other"
]
Effect = Literal["supersedes", "supersedes_partly", "amends"]

# In order of precedence: the "Decision drivers" are not the decision.
_ROLES: Mapping[str, Role] = {
    "options": "options",
    "alternatives": "options",
    "drivers": "drivers",
    "consequences": "consequences",
    "context": "context",
    "status": "status",
    "date": "status",
    "decision": "decision",
}
_MAX_HEADING_WORDS = 6
_MAX_STATUS_CHARS = 240
_TITLE_NUMBER = re.compile(
    r"^[\[(#]?(?:ADR|MADR|RFC)?[-_ #]*0*(\d{1,5})[\])]?\s*[-.:–—)]*\s+", re.I
)
_FIELD = re.compile(r"^([^\W\d][\w /-]{0,30}?)\s*:\s*(\S.*)$", re.DOTALL)
_PARTLY = r"(?:partly|partially|in part)"
# adr-tools writes "Superceded".
_PHRASE = re.compile(
    rf"(?P<passive>\b(?:is|are|was|were|has been|have been)\s+)?(?P<before>\b{_PARTLY}\s+)?"
    rf"\b(?P<verb>super[sc]ede|replace|amend)(?P<by>e?d\s+by|s)\b"
    rf"(?P<after>\s+(?:{_PARTLY}|parts? of))?",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r"[.,;:(\n]\s*|\band\s+")
_SELF = re.compile(r"\W*(?:this (?:ADR|record|decision|document)\s*)?", re.IGNORECASE)
_RECORD = re.compile(
    r"(?:\b(?:ADR|MADR|record|decision|RFC)s?[\s#_-]*|#)0*(\d{1,5})(?![\d.]*\d)", re.IGNORECASE
)
_BARE_NUMBER = re.compile(r"\W{0,3}0*(\d{1,5})(?=[\s.,;:)\]-]|$)")
_FILE = re.compile(r"[^\s\[\]()<>\"']{1,200}\.md\b")
_MAX_GAP_CHARS = 200
_STATUS_END = re.compile(r"\s+(?:by|on|in favou?r)\b|[^\w\s-]|\d")


@dataclass(frozen=True, slots=True)
class StatusLine:
    text: str
    links: tuple[TextLink, ...] = ()

    @property
    def status(self) -> str:
        """The status in words, without dates and other records: "Partly superseded"."""
        status = _STATUS_END.split(self.text.lstrip("*_✅❌ "))[0].strip(" -_")
        return " ".join(status.split())[:40].capitalize().replace("perceded", "perseded")


@dataclass(slots=True)
class RecordSections:
    """A record's sections with their roles, and what its head says.

    ``dates``: what its dates may mean, the most explicit first. ``unread_date``: the first that is
    not understood.
    """

    title: str
    number: int | None
    date: int | None = None
    unread_date: str | None = None
    dates: list[tuple[int, ...]] = field(default_factory=list)
    statuses: list[StatusLine] = field(default_factory=list)
    sections: list[tuple[Role, HeadedSection]] = field(default_factory=list)

    def of(self, role: Role) -> Iterator[HeadedSection]:
        """Return the sections with a role, in order."""
        return (section for each, section in self.sections if each == role)

    @property
    def status(self) -> str | None:
        """The record's status, e.g. Accepted or Partly superseded; None if it has none.

        "Superseded" takes precedence over other status lines. A template's list of choices is not
        a status.
        """
        statuses = [line.status for line in self.statuses if " | " not in line.text]
        if any(status in ("Superseded", "Replaced") for status in statuses):
            return "Superseded"
        return next(filter(None, statuses), None)


@dataclass(frozen=True, slots=True)
class RecordRelation:
    """``outgoing``: this record acts on the target; otherwise the target acts on this record."""

    targets: tuple[str, ...]
    effect: Effect
    outgoing: bool
    reason: str


def is_decision_record(parts: Sequence[HeadedSection], front: FrontMatter) -> bool:
    """Return True if the headings are those of a record.

    A record has one decision, and above or below it its status, context, options or consequences.
    Without a heading for the decision it has a status and a context.
    """
    top = min((part.level for part in parts if part.level > 1), default=0)
    roles = [_role_named(part.title) for part in parts if part.level == top]
    around = {role for role in roles if role not in (None, "decision")}
    if "status" in front.values:
        around.add("status")
    if "decision" in roles:
        return roles.count("decision") == 1 and bool(around)
    return around >= {"status", "context"}


def dissect(
    document: ParsedDocument, parts: Sequence[HeadedSection], front: FrontMatter
) -> RecordSections:
    """Give each section its role, and read the title, number, date and status lines.

    The number in the file's name takes precedence over the heading's, which is more often copied
    from another record.
    """
    path = document.path
    heading = next((part.title for part in parts if part.level == 1), None)
    number = record_number(path)
    numbered = _TITLE_NUMBER.match(f"{heading} " if heading else "")
    if number is None and numbered:
        number = int(numbered[1])
    title = front.title or heading or title_of(path).lstrip("0123456789 ") or title_of(path)
    record = RecordSections(_TITLE_NUMBER.sub("", title, count=1).strip(" .:*") or title, number)
    record.sections = [(_role(part), part) for part in parts]
    if not any(record.of("decision")):
        # What a record decides stands last before the consequences, under whatever name.
        decided = [at for at, (role, _) in enumerate(record.sections) if role == "other"][-1:]
        for at in decided:
            record.sections[at] = ("decision", record.sections[at][1])
    # Tools keep the front matter up to date, so its status takes precedence.
    record.statuses += front_lines(front, "status")
    _date(record, front.date or "", document.dates(front.date or ""))
    for role, part in record.sections:
        if role in ("preamble", "status"):
            for block in part.blocks:
                _read_head(document, record, block, is_status=role == "status")
    for line in record.statuses:
        _date(record, line.text, document.dates(line.text, alone=False))
    if record.unread_date is None or any(record.dates):
        record.dates += [document.dates(text, alone=False) for text in dates_in_name(path)]
    record.date = settled(record.dates)
    return record


def _date(record: RecordSections, text: str, readings: tuple[int, ...]) -> None:
    record.dates.append(readings)
    if len(readings) > 1:
        record.unread_date = record.unread_date or text[:80]


def front_lines(front: FrontMatter, *names: str) -> Iterator[StatusLine]:
    """Yield the values of the front matter under some names as lines, with their links."""
    for name in names:
        for value in front.values.get(name, ()):
            for block in read_blocks(value)[1]:
                yield StatusLine(block.text, block.links)


def is_head(block: Block, role: Role) -> bool:
    """Return True when a block is read as status lines, or as fields of the head."""
    found = _lines(block)
    if role == "status":
        return block.kind != "code" and all(len(line) <= _MAX_STATUS_CHARS for line in found)
    names = [_field_of(line)[0] for line in found]
    is_field = (name in ("date", "status") or _PHRASE.fullmatch(name) for name in names)
    return role == "preamble" and all(is_field)


def _role(part: HeadedSection) -> Role:
    """Return the role of the section that contains a part: that of an option is the option's.

    Sections of the decision may have roles of their own, as its consequences in MADR.
    """
    if part.level <= 1 and not part.path and _role_named(part.title) is None:
        return "preamble"
    role: Role | None = None
    for title in (*part.path, part.title):
        if role in (None, "decision"):
            role = _role_named(title) or role
    return role or "other"


def _role_named(title: str) -> Role | None:
    found = re.findall(r"[^\W\d_]+", title[:80].casefold())
    if len(found) > _MAX_HEADING_WORDS:
        return None
    return next((role for word, role in _ROLES.items() if word in found), None)


def _lines(block: Block) -> list[str]:
    if block.kind == "row":
        return block.text.split("; ")
    return [line.strip() for line in (block.raw or block.text).split("\n") if line.strip()]


def _field_of(line: str) -> tuple[str, str]:
    match = _FIELD.match(line.strip("*_ "))
    return (match[1].casefold(), match[2].strip("*_ ")) if match else ("", line)


def _read_head(
    document: ParsedDocument, record: RecordSections, block: Block, *, is_status: bool
) -> None:
    if block.kind == "code":
        return
    for line in _lines(block):
        name, value = _field_of(line)
        readings = document.dates(value)
        if name == "date" or (len(readings) == 1 and (name or is_status)):
            _date(record, value, readings)
            if not readings:
                record.unread_date = record.unread_date or value[:80]
        elif (is_status or name == "status") and len(line) <= _MAX_STATUS_CHARS:
            links = tuple(link for link in block.links if link.label and link.label in line)
            text = value if name == "status" else line
            record.statuses.append(StatusLine(text, links))


def relations(
    text: str, links: Sequence[TextLink], path: str, *, numbers: bool = False
) -> Iterator[RecordRelation]:
    """Yield what a text says about this record and another one, directly before its name.

    The phrase stands at the beginning of a clause ("Amended by …", "This ADR replaces …"). A
    passive with another subject ("these ranges have been superseded by …") concerns a part of the
    record.

    Args:
        numbers: the text is a line of the head, in which a bare number is a record.
    """
    for sentence in [text] if numbers else split_sentences(text):
        phrases = list(_PHRASE.finditer(sentence))
        # Every link is looked for, so only where it may matter.
        references = _references(sentence, links, path) if phrases else []
        first = references[0][0] if references else len(sentence)
        clause = scanned = following = 0
        for match in phrases:
            for boundary in _CLAUSE.finditer(sentence, scanned, match.start()):
                clause = boundary.end()
            # Only the first phrase of a clause can stand at its beginning.
            own = clause >= scanned and bool(_SELF.fullmatch(sentence, clause, match.start()))
            scanned = match.start()
            incoming = match["by"] != "s"
            if not own and (first < match.start() or not (incoming and match["passive"])):
                continue
            effect: Effect = "supersedes"
            if match["verb"].casefold() == "amend":
                effect = "amends"
            elif match["before"] or match["after"] or not own:
                effect = "supersedes_partly"
            end = match.end()
            while following < len(references) and references[following][0] < end:
                following += 1
            is_last = following == len(references)
            if numbers and is_last and (bare := _BARE_NUMBER.match(sentence, end)):
                at = bare.start(1)
                references.append((at, at, number_keys(int(bare[1]), path), bare[1]))
            while following < len(references):
                start, last, targets, label = references[following]
                if not _is_near(sentence, end, start):
                    break
                end = last
                following += 1
                reason = f"{' '.join(match.group().split())} {label}"[:200]
                yield RecordRelation(targets, effect, not incoming, reason)


def _is_near(sentence: str, end: int, start: int) -> bool:
    """Return True if at most one word stands between two places, and it begins no further clause
    such as "amends"."""
    if start - end > _MAX_GAP_CHARS or len(sentence[end:start].split()) > 1:
        return False
    return not (_CLAUSE.search(sentence, end, start) and _PHRASE.search(sentence, end, start))


_Reference = tuple[int, int, tuple[str, ...], str]


def _references(text: str, links: Sequence[TextLink], path: str) -> list[_Reference]:
    """Return the links, file names and record numbers in ``text``: start, end, keys and label.

    A number within a link's label belongs to the link.
    """
    references: list[_Reference] = []
    spans: list[tuple[int, int]] = []
    cursor = 0
    for link in links:
        at = text.find(link.label, cursor) if link.label else -1
        if at < 0:
            continue
        cursor = at + len(link.label)
        spans.append((at, cursor))
        if keys := link_keys(link.href, path):
            references.append((at, cursor, keys, link.label))
    for pattern in (_FILE, _RECORD):
        earlier, at, covered = sorted(spans), 0, 0
        for match in pattern.finditer(text):
            while at < len(earlier) and earlier[at][0] <= match.start():
                covered = max(covered, earlier[at][1])
                at += 1
            if match.start() < covered:
                continue
            spans.append(match.span())
            keys = (
                link_keys(match.group(), path)
                if pattern is _FILE
                else number_keys(int(match[1]), path)
            )
            if keys:
                references.append((*match.span(), keys, match.group()))
    return sorted(references)


def titled(section: HeadedSection) -> HeadedSection:
    """Return a section with its title before each block if the title is the phrase for a relation,
    such as "Superseded by"."""
    if not _PHRASE.fullmatch(section.title.strip(": ")):
        return section
    blocks = (replace(each, text=f"{section.title} {each.text}") for each in section.blocks)
    return replace(section, blocks=tuple(blocks))
