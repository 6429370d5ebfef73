"""The anatomy of a decision record: what each heading holds, its title, date and status lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ingest.dates import read_date
from ingest.parsers.blocks import Block, Link, Section
from ingest.parsers.front_matter import FrontMatter
from ingest.parsers.naming import record_number

Role = Literal[
    "decision", "status", "context", "consequences", "date", "relation", "preamble", "other"
]

_NAMES: Mapping[Role, tuple[str, ...]] = {
    "decision": (
        "decision",
        "decisions",
        "the decision",
        "our decision",
        "decision outcome",
        "decision made",
        "decision taken",
        "entscheidung",
        "décision",
        "decisión",
    ),
    "status": ("status", "state", "estado", "statut"),
    "context": (
        "context",
        "context and problem statement",
        "context and background",
        "background",
        "problem",
        "problem statement",
        "issue",
        "motivation",
        "kontext",
        "ausgangslage",
        "contexte",
        "contexto",
    ),
    "consequences": (
        "consequences",
        "consequence",
        "positive consequences",
        "negative consequences",
        "neutral consequences",
        "implications",
        "impact",
        "resulting context",
        "konsequenzen",
        "folgen",
        "auswirkungen",
        "conséquences",
        "consecuencias",
    ),
    "date": ("date", "datum", "fecha"),
    "relation": (
        "supersedes",
        "supercedes",
        "superseded by",
        "superceded by",
        "replaces",
        "replaced by",
        "amends",
        "amended by",
        "links",
        "related",
        "related decisions",
        "related records",
        "more information",
        "see also",
    ),
}
# They name the decision only in a record that has no heading of the first kind.
_WEAK_DECISION = frozenset(
    ("proposal", "proposed solution", "solution", "outcome", "resolution", "chosen option")
)
_ROLE_OF: Mapping[str, Role] = {name: role for role, names in _NAMES.items() for name in names}
_EDGES = re.compile(r"^[\W\d_]+|[\W_]+$")
_TITLE_NUMBER = re.compile(
    r"^[\[(#]?(?:ADR|MADR|RFC)?[-_ #]*0*(\d{1,5})[\])]?\s*[-.:–—)]*\s+", re.I
)
_FIELD = re.compile(r"^([^\W\d][\w /-]{0,30}?)\s*:\s*(\S.*)$", re.DOTALL)
_FIELDS = frozenset(
    (
        "date",
        "status",
        "decided",
        "decided on",
        "datum",
        "deciders",
        "decision-makers",
        "decision makers",
        "consulted",
        "informed",
        "author",
        "authors",
        "owner",
        "supersedes",
        "superseded by",
        "superseded-by",
        "replaces",
        "replaced by",
        "amends",
        "amended by",
        "technical story",
        "tags",
    )
)
RELATION_FIELDS = (
    "supersedes",
    "superseded by",
    "superseded-by",
    "replaces",
    "replaced by",
    "amends",
    "amended by",
    "amended-by",
    "replaced-by",
)
_MAX_STATUS_CHARS = 240


@dataclass(frozen=True, slots=True)
class StatusLine:
    text: str
    links: tuple[Link, ...] = ()
    line: int = 1


@dataclass(slots=True)
class Anatomy:
    """A record's sections under their roles, and what its head says."""

    title: str
    number: int | None
    date: int | None = None
    date_text: str | None = None
    statuses: list[StatusLine] = field(default_factory=list)
    relations: list[StatusLine] = field(default_factory=list)
    fields: dict[str, str] = field(default_factory=dict)
    sections: list[tuple[Role, Section]] = field(default_factory=list)

    def of(self, role: Role) -> Iterator[Section]:
        """The sections with that role, in order."""
        return (section for each, section in self.sections if each == role)


def is_decision_record(parts: Sequence[Section], path: str) -> bool:
    """Whether the headings are those of a decision record in one of the common templates."""
    names = {_bare(part.title) for part in parts}
    roles = {_ROLE_OF[name] for name in names if name in _ROLE_OF}
    frame = roles & {"status", "context", "consequences"}
    named = record_number(path) is not None or any(
        folder.casefold() in ("adr", "adrs", "decisions") for folder in path.split("/")[:-1]
    )
    numbered = any(part.level == 1 and _TITLE_NUMBER.match(part.title) for part in parts)
    if "decision" in roles:
        return bool(frame) or named or numbered
    weak = bool(names & _WEAK_DECISION)
    if weak:
        return len(frame) >= 2
    return "status" in roles and (len(frame) >= 2 or named or numbered)


def dissect(parts: Sequence[Section], front: FrontMatter, path: str) -> Anatomy:
    """Give each section its role and read title, number, date and status lines.

    The file's name numbers a record before its heading does: headings are copied more often.
    """
    heading = next((part.title for part in parts if part.level == 1), None)
    strong = any(_ROLE_OF.get(_bare(part.title)) == "decision" for part in parts)
    numbered = _TITLE_NUMBER.match(f"{heading} " if heading else "")
    number = record_number(path)
    if number is None and numbered:
        number = int(numbered[1])
    title = front.title or heading or path.rsplit("/", 1)[-1].rsplit(".", 1)[0].replace("-", " ")
    anatomy = Anatomy(_TITLE_NUMBER.sub("", title, count=1).strip() or title, number)
    for part in parts:
        role = _role(part, strong)
        anatomy.sections.append((role, part))
        if role == "preamble":
            _read_fields(anatomy, part.blocks)
        elif role == "status":
            _read_status(anatomy, part.blocks)
        elif role == "date" and part.blocks:
            _take_date(anatomy, part.blocks[0].text)
        elif role == "relation":
            _read_relations(anatomy, part)
    _read_front(anatomy, front)
    return anatomy


def is_field(block: Block) -> bool:
    """Whether a block of the head is made of fields and nothing else."""
    return all(_field_of(line) is not None for line in _lines(block))


def _role(part: Section, strong: bool) -> Role:
    own = _own_role(part.title, strong)
    if own is not None:
        return own
    if part.level <= 1 and not part.path:
        return "preamble"
    # A heading without a role of its own continues the section that it stands in.
    for title in reversed(part.path):
        above = _own_role(title, strong)
        if above is not None:
            return above
    return "other"


def _own_role(title: str, strong: bool) -> Role | None:
    name = _bare(title)
    if not strong and name in _WEAK_DECISION:
        return "decision"
    return _ROLE_OF.get(name)


def _bare(title: str) -> str:
    return " ".join(_EDGES.sub("", title[:80]).casefold().split())


def _lines(block: Block) -> list[str]:
    if block.kind == "row":
        return block.text.split("; ")
    return [line.strip() for line in (block.raw or block.text).split("\n") if line.strip()]


def _field_of(line: str) -> tuple[str, str] | None:
    match = _FIELD.match(line)
    if match is None or match[1].casefold() not in _FIELDS:
        return None
    return match[1].casefold(), match[2].strip()


def _read_fields(anatomy: Anatomy, blocks: Sequence[Block]) -> None:
    for block in blocks:
        for line in _lines(block):
            found = _field_of(line)
            if found is None:
                continue
            name, value = found
            links = tuple(link for link in block.links if link.label and link.label in line)
            if name == "status":
                anatomy.statuses.append(StatusLine(value, links, block.first))
            elif name in RELATION_FIELDS:
                anatomy.relations.append(StatusLine(f"{name} {value}", links, block.first))
            elif name in ("date", "datum", "decided", "decided on"):
                _take_date(anatomy, value)
            else:
                anatomy.fields[name] = value[:200]


def _read_status(anatomy: Anatomy, blocks: Sequence[Block]) -> None:
    for block in blocks:
        if block.kind == "code":
            continue
        for line in _lines(block):
            found = _field_of(line)
            if found is not None and found[0] == "date":
                _take_date(anatomy, found[1])
                continue
            text = found[1] if found is not None and found[0] == "status" else line
            links = tuple(link for link in block.links if link.label and link.label in line)
            if len(text) <= _MAX_STATUS_CHARS:
                anatomy.statuses.append(StatusLine(text, links, block.first))


def _read_relations(anatomy: Anatomy, part: Section) -> None:
    prefix = _bare(part.title)
    prefix = f"{prefix} " if prefix in RELATION_FIELDS or prefix.startswith("superce") else ""
    for block in part.blocks:
        if block.kind != "code":
            anatomy.relations.append(StatusLine(prefix + block.text, block.links, block.first))


def _read_front(anatomy: Anatomy, front: FrontMatter) -> None:
    # The front matter is what a tool keeps up to date, so its status is the first to count.
    statuses = [StatusLine(text) for text in front.values.get("status", ())]
    anatomy.statuses[:0] = statuses
    for name in RELATION_FIELDS:
        for value in front.values.get(name.replace(" ", "-"), ()) if " " not in name else ():
            anatomy.relations.append(StatusLine(f"{name.replace('-', ' ')} {value}"))
    for name in ("decision-makers", "deciders", "consulted", "informed", "author", "authors"):
        if given := front.values.get(name):
            anatomy.fields[name] = ", ".join(given)[:200]
    if date := front.first("date", "created"):
        _take_date(anatomy, date)


def _take_date(anatomy: Anatomy, text: str) -> None:
    moment = read_date(text)
    if moment is not None:
        anatomy.date = moment
    anatomy.date_text = text[:80]
