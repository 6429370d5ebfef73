"""The status of a decision record and its relations: superseded, amended, accepted, rejected."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from ingest.parsers.blocks import TextLink
from ingest.parsers.decision_parts import StatusLine
from ingest.parsers.file_names import link_keys, number_keys
from memgraph.operations.read.sentences import split_sentences

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
_WORDS = re.compile(
    r"\b(?:not\s+(?:accepted|approved)|(?:partly|partially|in\s+part)\s+super[sc]eded|super[sc]eded|"
    r"replaced|obsoleted?|deprecated|rejected|declined|withdrawn|abandoned|retired|accepted|"
    r"approved|agreed|adopted|implemented|decided|proposed|proposal|draft|pending|in\s+review|"
    r"under\s+discussion|in\s+progress|on\s+hold|wip|rfc|open|final|active|done|amended)\b",
    re.IGNORECASE,
)
_WHOLLY = re.compile(
    r"(?<!partly )(?<!partially )(?<!in part )\b(?:super[sc]eded|replaced|obsoleted?)\b",
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
ACCEPTED = frozenset(_ACCEPTED.split(", "))
OPEN = frozenset(_OPEN.split(", "))
DROPPED = frozenset(_DROPPED.split(", "))


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
    """Return the record's status as written, e.g. Accepted, Partly superseded; None without one.

    Being superseded counts before earlier statuses. A template's list of choices is no status.
    """
    told = [line.text for line in statuses if " | " not in line.text]
    for text in told:
        if is_wholly_superseded(text):
            return "Superseded"
    for text in told:
        if match := _WORDS.search(text):
            return " ".join(match.group().split()).capitalize()
    first = " ".join(told[0].split())[:40] if told else ""
    return first or None


def is_wholly_superseded(text: str) -> bool:
    """Return True when a status line states that the whole record was replaced."""
    match = _WHOLLY.search(text)
    if match is None or " | " in text or _DOUBT.search(text[: match.start()]):
        return False
    around = text[: match.start()] + text[match.end() : match.end() + 20]
    return re.search(_PARTLY, around, re.IGNORECASE) is None


def head_relations(lines: Sequence[StatusLine], path: str) -> Iterator[RecordRelation]:
    """Yield relations from status lines, fields and link sections, where a bare number is a
    record.
    """
    for line in lines:
        text, links = _with_markdown_links(line)
        references = _references(text, links, path)
        matches = _phrases(text)
        for place, (match, outgoing) in enumerate(matches):
            end = matches[place + 1][0].start() if place + 1 < len(matches) else len(text)
            scope = [each for each in references if match.end() <= each.start < end]
            if not scope and (bare := _BARE_NUMBER.match(text[match.end() : end])):
                number = int(bare[1])
                scope = [_Reference(match.end(), number_keys(number, path), bare[1])]
            for reference in scope:
                yield RecordRelation(
                    reference.targets, _effect(match), outgoing, _reason(match, reference)
                )


def body_relations(text: str, links: Sequence[TextLink], path: str) -> Iterator[RecordRelation]:
    """Yield relations from running text: only those that are about this record and certain.

    A passive ("these ranges have been superseded by …") refers to a part of the record.
    """
    for sentence in split_sentences(text):
        references = _references(sentence, links, path)
        if not references:
            continue
        for match, outgoing in _phrases(sentence):
            before = sentence[: match.start()]
            follows = [each for each in references if each.start >= match.end()]
            third_party = any(each.start < match.start() for each in references)
            if not follows or third_party or _DOUBT.search(before):
                continue
            effect = _effect(match)
            whole = outgoing and _SELF.search(before) is not None
            if effect == "supersedes" and not whole:
                effect = "supersedes_partly"
            yield RecordRelation(follows[0].targets, effect, outgoing, _reason(match, follows[0]))


def _phrases(text: str) -> list[tuple[re.Match[str], bool]]:
    found = [(match, False) for match in _BY.finditer(text)]
    found += [(match, True) for match in _OF.finditer(text)]
    return sorted(found, key=lambda each: each[0].start())


def _effect(match: re.Match[str]) -> Effect:
    if match["verb"].casefold().startswith("amend"):
        return "amends"
    return "supersedes_partly" if match["before"] or match["after"] else "supersedes"


def _reason(match: re.Match[str], reference: _Reference) -> str:
    return f"{' '.join(match.group().split()).rstrip(':')} {reference.label}"[:200]


def _with_markdown_links(line: StatusLine) -> tuple[str, tuple[TextLink, ...]]:
    """Return front matter with its links as Markdown; elsewhere they are parsed already."""
    typed = tuple(TextLink(match[1], match[2]) for match in _MD_LINK.finditer(line.text))
    if not typed:
        return line.text, line.links
    return _MD_LINK.sub(lambda match: match[1], line.text), (*line.links, *typed)


def _references(text: str, links: Sequence[TextLink], path: str) -> list[_Reference]:
    """Return links and record numbers in ``text`` by place; a number in a link's label is the
    link's.
    """
    found: list[_Reference] = []
    taken: list[tuple[int, int]] = []
    cursor = 0
    for link in links:
        keys = link_keys(link.href, path)
        at = text.find(link.label, cursor) if link.label else -1
        if at < 0:
            continue
        cursor = at + len(link.label)
        taken.append((at, cursor))
        if keys:
            found.append(_Reference(at, keys, link.label))
    for match in _FILE.finditer(text):
        if not _inside(match.start(), taken) and (keys := link_keys(match.group(), path)):
            taken.append(match.span())
            found.append(_Reference(match.start(), keys, match.group()))
    for match in _RECORD.finditer(text):
        if not _inside(match.start(), taken):
            number = int(match[1])
            found.append(_Reference(match.start(), number_keys(number, path), match.group()))
    return sorted(found, key=lambda each: each.start)


def _inside(position: int, spans: Sequence[tuple[int, int]]) -> bool:
    return any(start <= position < end for start, end in spans)
