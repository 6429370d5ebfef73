"""A bulletin as it is handed out and kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field

from memgraph.model.values import Value

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


@dataclass(frozen=True, slots=True)
class Issued:
    """A bulletin and how it came about.

    Attributes:
        warning: None: it tells of the present. ``bulletin.stale``: the last good one, maybe older
            than the last change. ``bulletin.empty``: there was none.
        cause: the code of the error behind the warning.
        receipt_id: of its receipt; None: none could be made.
    """

    bulletin: Bulletin
    warning: str | None = None
    cause: str | None = None
    receipt_id: str | None = field(default=None, compare=False)
