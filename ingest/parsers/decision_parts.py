"""The parts of a decision record: the role of each heading, its title, date and status lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ingest.parsers.blocks import Block, FrontMatter, HeadedSection, TextLink
from ingest.parsers.file_names import (
    date_in_name,
    link_keys,
    number_keys,
    record_number,
    title_of,
)
from memgraph.text.dates import DateOrder, read_date
from memgraph.text.sentences import split_sentences

Role = Literal[
    "decision",
    "status",
    "context",
    "drivers",
    "options",
    "consequences",
    "actions",
    "date",
    "relation",
    "preamble",
    "other",
]

_NAMES: tuple[tuple[Role, str], ...] = (
    (
        "decision",
        r"(?:the |our |final )?decisions?(?: outcome| made| taken| result| details?)?"
        r"|what (?:we|was|is|has been) decided|decided|entscheidung|décision|decisión",
    ),
    ("status", r"status|state|estado|statut"),
    (
        "context",
        r"contexts?(?: and .*)?|.*background|(?:the )?problems?(?: statement| description)?"
        r"|(?:the )?issues?|motivation|rationale|reasons?|reasoning|justification|why"
        r"|kontext|ausgangslage|contexte|contexto|what(?:'s| is) the problem",
    ),
    (
        "drivers",
        r"(?:decision |key )?drivers|forces|(?:decision |evaluation )?criteria|assumptions"
        r"|constraints",
    ),
    (
        "options",
        r"(?:considered |possible |available |other |alternative )?(?:options?|alternatives?"
        r"|solutions|positions|approaches)(?: (?:considered|evaluated|analysis))?"
        r"|(?:option|alternative) (?:\d+|[a-z])\b.*|pros (?:and|&) cons.*|rejected .*",
    ),
    (
        "consequences",
        r"(?:positive |negative |neutral |general |expected )?consequences?|implications"
        r"|impacts?|resulting context|results|outcomes|konsequenzen|folgen|auswirkungen"
        r"|conséquences|consecuencias|advantages|disadvantages|benefits|drawbacks|downsides"
        r"|trade-?offs|risks|pros|cons",
    ),
    ("actions", r"actions?|action items|next steps|follow-?ups?|to-?dos?"),
    ("date", r"date|datum|fecha"),
    (
        "relation",
        r"super[sc]edes|super[sc]eded by|replaces|replaced by|amends|amended by|links?|related.*"
        r"|more information|see also|references?|further reading|resources",
    ),
)
_ROLES = tuple((role, re.compile(names)) for role, names in _NAMES)
# These headings mark the decision only if no heading of the record has the role ``decision``.
_WEAK_DECISION = re.compile(
    r"(?:the )?(?:proposal|proposed (?:solution|change|decision|approach)|what(?:'s| is) proposed"
    r"|solution|outcome|resolution|chosen (?:option|solution)|recommendation|conclusion)"
)
_EDGES = re.compile(r"^[\W\d_]+|[\W_]+$")
_OPTIONAL = re.compile(r"\((?:optional)\)", re.IGNORECASE)
_TITLE_NUMBER = re.compile(
    r"^[\[(#]?(?:ADR|MADR|RFC)?[-_ #]*0*(\d{1,5})[\])]?\s*[-.:–—)]*\s+", re.I
)
_FIELD = re.compile(r"^([^\W\d][\w /-]{0,30}?)\s*:\s*(\S.*)$", re.DOTALL)
RELATION_FIELDS = (
    "supersedes",
    "superseded by",
    "superseded-by",
    "replaces",
    "replaced by",
    "replaced-by",
    "amends",
    "amended by",
    "amended-by",
)
# In order of precedence: the date of the decision, then those of the text's creation and update.
_DATE_FIELDS = (
    *("date", "datum", "fecha", "decided", "decided on", "decision date", "date decided"),
    *("accepted", "approved", "created", "date created", "creation date", "proposed on"),
    *("last updated", "updated", "last modified"),
)
_PEOPLE_FIELDS = (
    *("deciders", "decision-makers", "decision makers", "consulted", "informed"),
    *("author", "authors", "owner", "owners"),
)
_FIELDS = frozenset(
    (*RELATION_FIELDS, *_DATE_FIELDS, *_PEOPLE_FIELDS, "status", "state", "technical story", "tags")
)
_MAX_STATUS_CHARS = 240


@dataclass(frozen=True, slots=True)
class StatusLine:
    text: str
    links: tuple[TextLink, ...] = ()


@dataclass(slots=True)
class RecordSections:
    """A record's sections with their roles, and the fields of its head.

    ``dates`` has the text of each date field, by the field's name.
    """

    title: str
    number: int | None
    date: int | None = None
    dates: dict[str, str] = field(default_factory=dict)
    statuses: list[StatusLine] = field(default_factory=list)
    relations: list[StatusLine] = field(default_factory=list)
    fields: dict[str, str] = field(default_factory=dict)
    sections: list[tuple[Role, HeadedSection]] = field(default_factory=list)

    def of(self, *roles: Role) -> Iterator[HeadedSection]:
        """Return the sections with one of the roles, in order."""
        return (section for role, section in self.sections if role in roles)


def is_decision_record(parts: Sequence[HeadedSection], path: str) -> bool:
    """Return True if the headings follow a known template of decision records."""
    names = [_bare(part.title) for part in parts]
    roles = {_named_role(name) for name in names}
    frame = roles & {"status", "context", "consequences", "drivers", "options"}
    named_as_record = record_number(path) is not None or any(
        folder.casefold() in ("adr", "adrs", "decisions", "decision-records")
        for folder in path.split("/")[:-1]
    )
    numbered = any(part.level == 1 and _TITLE_NUMBER.match(f"{part.title} ") for part in parts)
    recognised = named_as_record or numbered or date_in_name(path) is not None
    # Minutes list "Decisions"; a record has one.
    if any(_named_role(name) == "decision" and not name.endswith("decisions") for name in names):
        return bool(frame) or recognised
    if "decision" in roles:
        return bool(frame) and (named_as_record or numbered)
    if any(_WEAK_DECISION.fullmatch(name) for name in names):
        return len(frame) >= 2 or (recognised and bool(frame))
    return "status" in roles and (len(frame) >= 2 or recognised)


def dissect(
    parts: Sequence[HeadedSection], front: FrontMatter, path: str, order: DateOrder | None = None
) -> RecordSections:
    """Give each section its role, and read the title, number, date and status lines.

    The number in the file's name takes precedence over the heading's, which is more often copied
    from another record.
    """
    heading = next((part.title for part in parts if part.level == 1), None)
    number = record_number(path)
    numbered = _TITLE_NUMBER.match(f"{heading} " if heading else "")
    if number is None and numbered:
        number = int(numbered[1])
    title = front.title or heading or title_of(path).lstrip("0123456789 ") or title_of(path)
    anatomy = RecordSections(_TITLE_NUMBER.sub("", title, count=1).strip(" .:*") or title, number)
    strong = any(_named_role(_bare(part.title)) == "decision" for part in parts)
    for part in parts:
        role = _role(part, strong)
        anatomy.sections.append((role, part))
        if role == "preamble":
            _read_fields(anatomy, part.blocks)
        elif role == "status":
            _read_fields(anatomy, part.blocks, status=True)
        elif role == "date" and part.blocks:
            anatomy.dates["date"] = part.blocks[0].text
        elif role == "relation":
            _read_relations(anatomy, part)
    _read_front(anatomy, front)
    anatomy.date = _date(anatomy, path, order)
    return anatomy


def is_field(block: Block) -> bool:
    """Return True when a block of the head consists of fields."""
    return all(_field_of(line) is not None for line in _lines(block))


def is_status_block(block: Block) -> bool:
    """Return True when a block of the status section is read as status lines."""
    return block.kind != "code" and all(len(line) <= _MAX_STATUS_CHARS for line in _lines(block))


def is_decision_heading(title: str) -> bool:
    """Return True when a heading only announces the decision."""
    name = _bare(title)
    return _named_role(name) == "decision" or _WEAK_DECISION.fullmatch(name) is not None


def _role(part: HeadedSection, strong: bool) -> Role:
    chain = [_own_role(title, strong) for title in (*part.path, part.title)]
    # The pros and cons of an option are not consequences of the decision.
    if "options" in chain and chain[-1] in (None, "consequences", "options", "context"):
        return "options"
    if part.level <= 1 and not part.path and chain[-1] is None:
        return "preamble"
    # A heading without a role of its own inherits the role of the section that contains it.
    return next((role for role in reversed(chain) if role is not None), "other")


def _own_role(title: str, strong: bool) -> Role | None:
    name = _bare(title)
    if not strong and _WEAK_DECISION.fullmatch(name):
        return "decision"
    return _named_role(name)


def _named_role(name: str) -> Role | None:
    return next((role for role, names in _ROLES if names.fullmatch(name)), None)


def _bare(title: str) -> str:
    name = _OPTIONAL.sub("", title[:80].replace("’", "'"))
    return " ".join(_EDGES.sub("", name).casefold().split())


def _lines(block: Block) -> list[str]:
    if block.kind == "row":
        return block.text.split("; ")
    return [line.strip() for line in (block.raw or block.text).split("\n") if line.strip()]


def _field_of(line: str) -> tuple[str, str] | None:
    match = _FIELD.match(line.strip("*_ "))
    if match is None or match[1].casefold() not in _FIELDS:
        return None
    return match[1].casefold(), match[2].strip("*_ ")


def _read_fields(anatomy: RecordSections, blocks: Sequence[Block], *, status: bool = False) -> None:
    """Read the fields of the head, or the lines of the status section."""
    for block in blocks:
        if status and block.kind == "code":
            continue
        for line in _lines(block):
            name, value = _field_of(line) or ("", line)
            links = tuple(link for link in block.links if link.label and link.label in line)
            if name in _DATE_FIELDS and not (status and read_date(value) is None):
                anatomy.dates.setdefault(name, value)
            elif status or name in ("status", "state"):
                text = value if name == "status" or not status else line
                if len(text) <= _MAX_STATUS_CHARS:
                    anatomy.statuses.append(StatusLine(text, links))
            elif name in RELATION_FIELDS:
                anatomy.relations.append(StatusLine(f"{name} {value}", links))
            elif name:
                anatomy.fields[name] = value[:200]


def _read_relations(anatomy: RecordSections, part: HeadedSection) -> None:
    prefix = _bare(part.title)
    prefix = f"{prefix} " if prefix in RELATION_FIELDS or prefix.startswith("superce") else ""
    for block in part.blocks:
        if block.kind != "code":
            anatomy.relations.append(StatusLine(prefix + block.text, block.links))


def _read_front(anatomy: RecordSections, front: FrontMatter) -> None:
    # Tools keep the front matter up to date, so its status takes precedence.
    anatomy.statuses[:0] = [StatusLine(text) for text in front.values.get("status", ())]
    for name in RELATION_FIELDS:
        for value in front.values.get(name.replace(" ", "-"), ()) if " " not in name else ():
            anatomy.relations.append(StatusLine(f"{name.replace('-', ' ')} {value}"))
    for name in _PEOPLE_FIELDS:
        if people := front.values.get(name):
            anatomy.fields[name] = ", ".join(people)[:200]
    for name in _DATE_FIELDS:
        if date := front.first(name.replace(" ", "-")):
            anatomy.dates[name] = date


def _date(anatomy: RecordSections, path: str, order: DateOrder | None) -> int | None:
    """Return the day of the decision, from its fields, its status lines or its file's name."""
    for name in sorted(anatomy.dates, key=_DATE_FIELDS.index):
        moment = read_date(anatomy.dates[name], order=order)
        if moment is not None:
            return moment
    for line in anatomy.statuses:
        moment = read_date(line.text, alone=False, order=order)
        if moment is not None:
            return moment
    return None if anatomy.dates else date_in_name(path)


Effect = Literal["supersedes", "supersedes_partly", "amends"]

_PARTLY = r"(?:partly|partially|in part|parts? of)"
# adr-tools writes "Superceded"; both spellings are common.
_BY = re.compile(
    rf"(?P<before>{_PARTLY}\s+)?(?P<verb>supersede|supercede|replace|obsolete|amende?|"
    rf"override|overridde|deprecate)[dn]?\s+(?P<after>{_PARTLY}\s+)?"
    rf"(?:by|with|in\s+favou?r\s+of)\b[\s:]*",
    re.IGNORECASE,
)
_OF = re.compile(
    rf"(?P<before>{_PARTLY}\s+)?\b(?P<verb>supersede|supercede|replace|obsolete|amend|override)s\b"
    rf"\s*(?P<after>{_PARTLY})?[\s:]*",
    re.IGNORECASE,
)
_RECORD = re.compile(
    r"(?:\b(?:ADR|MADR|record|decision|RFC)s?[\s#_-]*|#)0*(\d{1,5})(?![\d.]*\d)", re.IGNORECASE
)
_BARE_NUMBER = re.compile(r"^\W{0,3}0*(\d{1,5})(?=[\s.,;:)\]-]|$)")
_MD_LINK = re.compile(r"\[([^\[\]]{0,200})\]\(([^()\s]{1,300})\)")
_FILE = re.compile(r"[^\s\[\]()<>\"']{1,200}\.md\b")
_DOUBT = re.compile(
    r"\b(?:not|never|n't|should|would|could|might|may|must|can|will|until|if|whether|propos\w*)\b",
    re.IGNORECASE,
)
_SELF = re.compile(
    r"\b(?:this|the present)\s+(?:ADR|record|decision|document|proposal)\b|^(?:we|it)\b",
    re.IGNORECASE,
)
_ACCEPTED = (
    "accepted, approved, agreed, adopted, implemented, decided, final, active, done, amended"
)
_OPEN = (
    "proposed, proposal, draft, pending, in review, under discussion, in progress, on hold, wip, "
    "rfc, open"
)
_DROPPED = "rejected, declined, withdrawn, abandoned, retired, not accepted, not approved"
_REPLACED = (
    "partly superseded, partly superceded, partially superseded, partially superceded, "
    "in part superseded, in part superceded, superseded, superceded, replaced, obsolete, "
    "obsoleted, deprecated"
)
ACCEPTED = frozenset(_ACCEPTED.split(", "))
OPEN = frozenset(_OPEN.split(", "))
DROPPED = frozenset(_DROPPED.split(", "))
# Those of several words first: "not accepted" before "accepted".
_STATUSES = sorted({*ACCEPTED, *OPEN, *DROPPED, *_REPLACED.split(", ")}, key=len, reverse=True)
_WORDS = re.compile(rf"\b(?:{'|'.join(_STATUSES)})\b".replace(" ", r"\s+"), re.IGNORECASE)
_WHOLLY = re.compile(
    r"(?<!partly )(?<!partially )(?<!in part )\b(?:super[sc]eded|replaced|obsoleted?)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class RecordRelation:
    """``outgoing``: this record acts on the target; otherwise the target acts on this record."""

    targets: tuple[str, ...]
    effect: Effect
    outgoing: bool
    reason: str


@dataclass(frozen=True, slots=True)
class _Reference:
    start: int
    targets: tuple[str, ...]
    label: str


def status_word(statuses: Sequence[StatusLine]) -> str | None:
    """Return the record's status, e.g. Accepted or Partly superseded; None if it has none.

    "Superseded" takes precedence over other status lines. A template's list of choices is not a
    status.
    """
    texts = [line.text for line in statuses if " | " not in line.text]
    for text in texts:
        if is_wholly_superseded(text):
            return "Superseded"
    for text in texts:
        if match := _WORDS.search(text):
            return " ".join(match.group().split()).capitalize()
    first = " ".join(texts[0].split())[:40] if texts else ""
    return first or None


def is_wholly_superseded(text: str) -> bool:
    """Return True when a status line states that the whole record was replaced."""
    match = _WHOLLY.search(text)
    if match is None or " | " in text or _DOUBT.search(text[: match.start()]):
        return False
    around = text[: match.start()] + text[match.end() : match.end() + 20]
    return re.search(_PARTLY, around, re.IGNORECASE) is None


def head_relations(lines: Sequence[StatusLine], path: str) -> Iterator[RecordRelation]:
    """Yield relations from status lines, fields and link sections.

    A bare number in them refers to a record.
    """
    for line in lines:
        text, links = _with_markdown_links(line)
        references = _references(text, links, path)
        matches = _phrases(text)
        for place, (match, outgoing) in enumerate(matches):
            end = matches[place + 1][0].start() if place + 1 < len(matches) else len(text)
            scope = [item for item in references if match.end() <= item.start < end]
            if not scope and (bare := _BARE_NUMBER.match(text[match.end() : end])):
                number = int(bare[1])
                scope = [_Reference(match.end(), number_keys(number, path), bare[1])]
            for reference in scope:
                yield RecordRelation(
                    reference.targets, _effect(match), outgoing, _reason(match, reference)
                )


def body_relations(text: str, links: Sequence[TextLink], path: str) -> Iterator[RecordRelation]:
    """Yield relations from running text: only certain ones that concern this record.

    A passive ("these ranges have been superseded by …") concerns only a part of the record.
    """
    for sentence in split_sentences(text):
        references = _references(sentence, links, path)
        if not references:
            continue
        for match, outgoing in _phrases(sentence):
            before = sentence[: match.start()]
            follows = [reference for reference in references if reference.start >= match.end()]
            third_party = any(reference.start < match.start() for reference in references)
            if not follows or third_party or _DOUBT.search(before):
                continue
            effect = _effect(match)
            about_record = outgoing and _SELF.search(before) is not None
            if effect == "supersedes" and not about_record:
                effect = "supersedes_partly"
            yield RecordRelation(follows[0].targets, effect, outgoing, _reason(match, follows[0]))


def _phrases(text: str) -> list[tuple[re.Match[str], bool]]:
    phrases = [(match, False) for match in _BY.finditer(text)]
    phrases += [(match, True) for match in _OF.finditer(text)]
    return sorted(phrases, key=lambda phrase: phrase[0].start())


def _effect(match: re.Match[str]) -> Effect:
    if match["verb"].casefold().startswith("amend"):
        return "amends"
    return "supersedes_partly" if match["before"] or match["after"] else "supersedes"


def _reason(match: re.Match[str], reference: _Reference) -> str:
    return f"{' '.join(match.group().split()).rstrip(':')} {reference.label}"[:200]


def _with_markdown_links(line: StatusLine) -> tuple[str, tuple[TextLink, ...]]:
    """Extract the Markdown links of front matter; the links of other lines are already parsed."""
    typed = tuple(TextLink(match[1], match[2]) for match in _MD_LINK.finditer(line.text))
    if not typed:
        return line.text, line.links
    return _MD_LINK.sub(lambda match: match[1], line.text), (*line.links, *typed)


def _references(text: str, links: Sequence[TextLink], path: str) -> list[_Reference]:
    """Return the links, file names and record numbers in ``text``, in order of position.

    A number within a link's label belongs to the link.
    """
    references: list[_Reference] = []
    spans: list[tuple[int, int]] = []
    cursor = 0
    for link in links:
        keys = link_keys(link.href, path)
        at = text.find(link.label, cursor) if link.label else -1
        if at < 0:
            continue
        cursor = at + len(link.label)
        spans.append((at, cursor))
        if keys:
            references.append(_Reference(at, keys, link.label))
    for match in _FILE.finditer(text):
        if not _inside(match.start(), spans) and (keys := link_keys(match.group(), path)):
            spans.append(match.span())
            references.append(_Reference(match.start(), keys, match.group()))
    for match in _RECORD.finditer(text):
        if not _inside(match.start(), spans):
            number = int(match[1])
            references.append(_Reference(match.start(), number_keys(number, path), match.group()))
    return sorted(references, key=lambda reference: reference.start)


def _inside(position: int, spans: Sequence[tuple[int, int]]) -> bool:
    return any(start <= position < end for start, end in spans)
