"""The YAML block at the head of a Markdown file, read as plain strings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import yaml

from ingest.candidates import MAX_NAME_CHARS, MAX_TAGS, ParseFinding, clean_tags
from ingest.dates import read_date
from ingest.reasons import SkippedPart

_MAX_CHARS = 16_000
_MAX_DEPTH = 20
# Escapes can make what the file itself may not hold: NUL, controls, lone surrogates.
_UNSTORABLE = re.compile("[\x00-\x08\x0b-\x1f\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """``values`` maps lower-cased names (``-`` for ``_`` and space) to the strings given."""

    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    findings: tuple[ParseFinding, ...] = ()

    def first(self, *names: str) -> str | None:
        """Return the first string under the first existing one of ``names``."""
        for name in names:
            if strings := self.values.get(name):
                return strings[0]
        return None

    def with_tags(self, tags: tuple[str, ...]) -> FrontMatter:
        """Return the same with further tags from the text."""
        if not tags:
            return self
        return replace(self, values={**self.values, "tags": (*self.values.get("tags", ()), *tags)})

    @property
    def title(self) -> str | None:
        return self.first("title")

    @property
    def tags(self) -> tuple[str, ...]:
        strings = (*self.values.get("tags", ()), *self.values.get("keywords", ()))
        return clean_tags(part.strip().lstrip("#") for tag in strings for part in tag.split(","))

    @property
    def aliases(self) -> tuple[str, ...]:
        """Return other names of the document, by which notes link to it."""
        strings = (*self.values.get("aliases", ()), *self.values.get("alias", ()))
        names = (part.strip()[:MAX_NAME_CHARS] for string in strings for part in string.split(","))
        return tuple(dict.fromkeys(name for name in names if name))[:MAX_TAGS]

    @property
    def event_time(self) -> int | None:
        """Return the date in milliseconds; None without a readable one."""
        date = self.first("date", "created", "last-modified")
        return None if date is None else read_date(date)


def read_front_matter(text: str) -> FrontMatter:
    """Read strings and lists of strings; deeper values are ignored."""
    if not text.strip():
        return FrontMatter()
    if len(text) > _MAX_CHARS or _too_deep(text):
        return FrontMatter(findings=(ParseFinding(SkippedPart.FRONT_MATTER_INVALID, "L1-L1"),))
    try:
        # BaseLoader makes strings only: no dates, numbers or objects from a dropped file.
        loaded = yaml.load(text, Loader=yaml.BaseLoader)
    except (yaml.YAMLError, ValueError, OverflowError):
        # ValueError: an escape beyond Unicode, which the YAML reader does not check.
        return FrontMatter(findings=(ParseFinding(SkippedPart.FRONT_MATTER_INVALID, "L1-L1"),))
    if not isinstance(loaded, dict):
        return FrontMatter(findings=(ParseFinding(SkippedPart.FRONT_MATTER_INVALID, "L1-L1"),))
    values: dict[str, tuple[str, ...]] = {}
    for name, value in loaded.items():
        if not isinstance(name, str):
            continue
        items = value if isinstance(value, list) else [value]
        strings = tuple(
            item.strip()
            for item in items
            if isinstance(item, str) and item.strip() and not _UNSTORABLE.search(item)
        )
        values["-".join(name.casefold().replace("_", " ").replace("-", " ").split())] = strings
    return FrontMatter(values)


def _too_deep(text: str) -> bool:
    """Return True when brackets, indentation or dashes nest deeper than the YAML reader's stack
    allows.
    """
    flow = sum(text.count(mark) for mark in "[{")
    indents = {len(line) - len(line.lstrip(" ")) for line in text.split("\n")}
    inline = max((line.count("- ") + line.count("? ") for line in text.split("\n")), default=0)
    return flow > 10 * _MAX_DEPTH or len(indents) > _MAX_DEPTH or inline > _MAX_DEPTH
