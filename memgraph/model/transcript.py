"""What a framework keeps of a conversation beside what was said."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from memgraph.model.speaking import ToldAs


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a conversation.

    Attributes:
        record: any JSON value; comes back equal, with keys in their order.
        text: what was said in it, comes back exactly; "": nothing was said.
        speaker: who said it; needed with a text, and not told when it comes back.
        label: a line for people where nothing was said.
    """

    record: Any
    text: str = ""
    speaker: ToldAs | None = None
    label: str = "entry"
