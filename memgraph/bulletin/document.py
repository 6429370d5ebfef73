"""A bulletin as it is handed out and kept."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated

from pydantic import Field

from memgraph.config.schema import BulletinSettings
from memgraph.model.values import Value
from memgraph.policy import bulletin as policy
from memgraph.policy.scope import Viewer, predicate

Count = Annotated[int, Field(ge=0)]


class BulletinLine(Value):
    """One entry: a memory's text, or what is said of two, with the ids it comes from."""

    text: str
    memory_ids: tuple[str, ...]


class Bulletin(Value):
    """The six sections and their Markdown.

    Attributes:
        sections: chosen lines by section name, all six present; texts are not escaped here.
        text: the Markdown, at most ``max_chars`` characters.
        change_seq: the last journal entry it tells of; 0 for one of nothing.
        view_key: of whom it was made for and how large; see ``view_key``.
        size: characters of ``text``.
        left_out: by section, lines that were at hand and did not fit. A section is offered one
            line for every 300 characters of the limit, so this is not a count of what is stored.
    """

    sections: dict[str, tuple[BulletinLine, ...]]
    text: str
    change_seq: Count
    view_key: str
    size: Count
    left_out: dict[str, Count]

    @property
    def memory_ids(self) -> tuple[str, ...]:
        """Every id cited, once, in the order of the text."""
        cited = (
            one for lines in self.sections.values() for line in lines for one in line.memory_ids
        )
        return tuple(dict.fromkeys(cited))


def composed(
    offered: Mapping[policy.Section, list[policy.Line]],
    settings: BulletinSettings,
    *,
    change_seq: int,
    key: str,
) -> Bulletin:
    """The bulletin of what is on offer; pure. Built without validation, being made of our own."""
    chosen = policy.compose(offered, settings.max_chars, settings.max_line_chars)
    return Bulletin.model_construct(
        sections={
            section.value: tuple(
                BulletinLine.model_construct(text=line.text, memory_ids=line.memory_ids)
                for line in chosen.lines[section]
            )
            for section in policy.Section
        },
        text=chosen.markdown,
        change_seq=change_seq,
        view_key=key,
        size=len(chosen.markdown),
        left_out={
            section.value: chosen.totals[section] - len(chosen.lines[section])
            for section in policy.Section
        },
    )


def view_key(viewer: Viewer, settings: BulletinSettings) -> str:
    """16 hexadecimal digits that tell apart who sees what, and under which limits."""
    return _view_key(viewer, settings.max_chars, settings.max_line_chars)


@lru_cache(maxsize=256)
def _view_key(viewer: Viewer, max_chars: int, max_line_chars: int) -> str:
    seen = f"{predicate(viewer)!r} {max_chars} {max_line_chars}"
    return hashlib.sha256(seen.encode()).hexdigest()[:16]
