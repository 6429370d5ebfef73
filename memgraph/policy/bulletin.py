"""The bulletin: six sections under a hard size limit, and their Markdown.

Pure and deterministic: the same lines and limit give the same text. Every line is one memory's
text on one line of Markdown with the ids it came from; nothing in a memory's text can end the
line, start a heading, a list, a code block or HTML, or look like a citation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice, zip_longest
from typing import Any

from memgraph.model.enums import MemoryType

MAX_CHARS = 4_000
MAX_LINE_CHARS = 240

_TITLE = "# Memory bulletin\n"
_ELLIPSIS = "…"
# Backslash escapes of CommonMark. & only where it would begin an entity.
_INLINE = re.compile(r"[\\`<>\[\]]|&(?=#|\w+;)")
# Printable for Python, and yet never seen: what Unicode calls default ignorable. Whole messages
# for a model have been hidden in variation selectors.
_IGNORABLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff]"
)
# Signs that compatibility forms make one of these: [ ] < > ` \
_LOOKALIKES = re.compile(
    "[\u1fef\ufe47\ufe48\ufe64\ufe65\ufe68\uff1c\uff1e\uff3b\uff3c\uff3d\uff40]"
)
_BLOCK_START = re.compile(r"^(?:[-+*=#~|_:]|\d{1,9}(?=[.)]))")


class Section(StrEnum):
    """In the order in which they are written."""

    KNOWLEDGE_SUMMARY = "knowledge_summary"
    ACTIVE_GOALS = "active_goals"
    OPEN_TODOS = "open_todos"
    RECENT_DECISIONS = "recent_decisions"
    PREFERENCE_PROFILE = "preference_profile"
    CONFLICTS_AND_UNCERTAINTIES = "conflicts_and_uncertainties"


KEPT_LONGEST = (Section.ACTIVE_GOALS, Section.OPEN_TODOS, Section.RECENT_DECISIONS)
ROWS_PER_CONFLICT = 3
"""After so many goals, so many todos and so many decisions one conflict has its place."""
_KEPT_NEXT = (
    Section.CONFLICTS_AND_UNCERTAINTIES,
    Section.PREFERENCE_PROFILE,
    Section.KNOWLEDGE_SUMMARY,
)

SECTION_OF_TYPE: Mapping[MemoryType, Section] = {
    MemoryType.FACT: Section.KNOWLEDGE_SUMMARY,
    MemoryType.IDENTITY: Section.KNOWLEDGE_SUMMARY,
    MemoryType.EVENT: Section.KNOWLEDGE_SUMMARY,
    MemoryType.OBSERVATION: Section.KNOWLEDGE_SUMMARY,
    MemoryType.GOAL: Section.ACTIVE_GOALS,
    MemoryType.TODO: Section.OPEN_TODOS,
    MemoryType.DECISION: Section.RECENT_DECISIONS,
    MemoryType.PREFERENCE: Section.PREFERENCE_PROFILE,
}


@dataclass(frozen=True, slots=True)
class Line:
    """One entry: any text, and the ids of the memories it comes from (at least one)."""

    text: str
    memory_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Bulletin:
    """What was chosen.

    Attributes:
        lines: every section, its chosen lines in the order given.
        totals: how many lines each section was offered.
        markdown: the rendered text; at most the limit in characters.
    """

    lines: Mapping[Section, tuple[Line, ...]]
    totals: Mapping[Section, int]
    markdown: str

    @property
    def memory_ids(self) -> tuple[str, ...]:
        """Every id cited, once, in the order of the text."""
        cited = (
            one for section in Section for line in self.lines[section] for one in line.memory_ids
        )
        return tuple(dict.fromkeys(cited))

    def as_dict(self) -> dict[str, Any]:
        """JSON: for each section its lines, and how many were offered."""
        return {
            section.value: {
                "total": self.totals[section],
                "items": [
                    {"text": line.text, "memory_ids": list(line.memory_ids)}
                    for line in self.lines[section]
                ],
            }
            for section in Section
        }


def compose(
    offered: Mapping[Section, Sequence[Line]],
    max_chars: int = MAX_CHARS,
    max_line_chars: int = MAX_LINE_CHARS,
) -> Bulletin:
    """Chooses lines under the limit and renders them.

    Goals, todos and decisions come first, one of each in turn, and one conflict after every
    ``ROWS_PER_CONFLICT`` of them: whoever reads many decisions must hear that some are disputed.
    Then the other conflicts, preferences and knowledge, in turn. Choosing stops at the first line
    that no longer fits, so a larger limit only ever adds lines.

    Args:
        offered: lines by section, most important first; an absent section is empty.
        max_chars: >= 0, of the Markdown. Under the size of the empty frame the text is empty.
        max_line_chars: >= 1; longer texts are cut and end in an ellipsis.
    """
    totals = {section: len(offered.get(section, ())) for section in Section}
    rendered: dict[Section, list[str]] = {section: [] for section in Section}
    left = max_chars - _frame_size(totals)
    if left >= 0:
        for section, line in _by_priority(offered):
            text = render_line(line, max_line_chars)
            if len(text) > left:
                break
            left -= len(text)
            rendered[section].append(text)
    chosen = {
        section: tuple(offered.get(section, ())[: len(rendered[section])]) for section in Section
    }
    fits = _frame_size(totals) <= max_chars
    return Bulletin(chosen, totals, _render(rendered, totals) if fits else "")


def render_line(line: Line, max_line_chars: int = MAX_LINE_CHARS) -> str:
    """One list item ending in a newline: the flattened, cut and escaped text, and its citations."""
    # Looking at the head alone bounds the work on a text of any length.
    head = line.text[: 4 * max_line_chars]
    text = flatten(head)
    if len(text) > max_line_chars or len(head) < len(line.text):
        text = text[: max_line_chars - 1].rstrip() + _ELLIPSIS
    cited = "".join(f" [{escape(flatten(one))}]" for one in line.memory_ids)
    return f"- {escape(text)}{cited}\n"


def flatten(text: str) -> str:
    """One line: control characters and line ends become spaces; format characters, and what is
    never drawn, vanish.
    """
    text = without_ignorable(text)
    if not text.isprintable():
        text = "".join(_printable(character) for character in text)
    return " ".join(text.split())


def without_ignorable(text: str) -> str:
    """A text without what Unicode calls default ignorable."""
    return text if text.isascii() else _IGNORABLE.sub("", text)


def escape(text: str) -> str:
    """Markdown escapes for a flattened text that stands at the start of a list item; also of what
    passes for a bracket or a backtick.
    """
    escaped = _INLINE.sub(r"\\\g<0>", text)
    if not escaped.isascii():
        escaped = _LOOKALIKES.sub(r"\\\g<0>", escaped)
    start = _BLOCK_START.match(escaped)
    if start is None:
        return escaped
    # "1." is escaped before the dot, everything else before itself.
    at = start.end() if start.group()[0].isdigit() else 0
    return f"{escaped[:at]}\\{escaped[at:]}"


def _printable(character: str) -> str:
    if character.isprintable():
        return character
    # isspace: spaces of every width and line ends; below U+00A0: the remaining control characters.
    return " " if character.isspace() or character < "\xa0" else ""


def _by_priority(offered: Mapping[Section, Sequence[Line]]) -> Iterator[tuple[Section, Line]]:
    disputed = Section.CONFLICTS_AND_UNCERTAINTIES
    conflicts = iter(offered.get(disputed, ()))
    for number, row in enumerate(_rows(KEPT_LONGEST, offered), 1):
        yield from row
        if number % ROWS_PER_CONFLICT == 0:
            yield from ((disputed, line) for line in islice(conflicts, 1))
    for row in _rows(_KEPT_NEXT, {**offered, disputed: tuple(conflicts)}):
        yield from row


def _rows(
    sections: Sequence[Section], offered: Mapping[Section, Sequence[Line]]
) -> Iterator[list[tuple[Section, Line]]]:
    """One line of each section, as long as any has one."""
    for row in zip_longest(*(offered.get(section, ()) for section in sections)):
        pairs = zip(sections, row, strict=True)
        yield [(section, line) for section, line in pairs if line is not None]


def _heading(section: Section, shown: int, total: int) -> str:
    return f"\n## {section.value} ({shown} of {total})\n"


def _frame_size(totals: Mapping[Section, int]) -> int:
    """Characters of title and headings when everything is shown: never less than what is needed."""
    return len(_TITLE) + sum(len(_heading(section, n, n)) for section, n in totals.items())


def _render(rendered: Mapping[Section, Sequence[str]], totals: Mapping[Section, int]) -> str:
    parts = [_TITLE]
    for section in Section:
        lines = rendered[section]
        parts.append(_heading(section, len(lines), totals[section]))
        parts.extend(lines)
    return "".join(parts)
