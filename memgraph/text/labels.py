"""The labels and headings by which a writer says what a statement is: "TODO: …", "Decisions"."""

from __future__ import annotations

import re
from collections.abc import Mapping

from memgraph.model.enums import MemoryType

_MAX_LABEL_CHARS = 60

# A label of one to three words, with or without emphasis around it, its colon, and the text.
LABEL = re.compile(
    r"^(?:\*\*|__)?([A-Za-z][A-Za-z_/-]*(?: [A-Za-z]+){0,2})(?:\*\*|__)?"
    r"\s*:(?:\*\*|__)?(?:\s+(.*))?$"
)

NAMES: Mapping[str, MemoryType] = {
    "decision": MemoryType.DECISION,
    "decided": MemoryType.DECISION,
    "resolution": MemoryType.DECISION,
    "todo": MemoryType.TODO,
    "to do": MemoryType.TODO,
    "task": MemoryType.TODO,
    "action": MemoryType.TODO,
    "action item": MemoryType.TODO,
    "next step": MemoryType.TODO,
    "follow up": MemoryType.TODO,
    "goal": MemoryType.GOAL,
    "objective": MemoryType.GOAL,
    "fact": MemoryType.FACT,
    "preference": MemoryType.PREFERENCE,
    "event": MemoryType.EVENT,
    "observation": MemoryType.OBSERVATION,
    "finding": MemoryType.OBSERVATION,
    "identity": MemoryType.IDENTITY,
}


def type_named(name: str) -> MemoryType | None:
    """Return the type for a label, heading or key, in singular or plural; None if unknown."""
    words = " ".join(re.sub(r"[-_/]+", " ", name).casefold().split())
    for form in (words, words.removesuffix("s")):
        if form in NAMES:
            return NAMES[form]
    return MemoryType.IDENTITY if words == "identities" else None


def read_label(text: str) -> tuple[MemoryType, str] | None:
    """Return the type that the label of a text gives, and the text without it.

    "TODO: call Anna" is the Todo "call Anna". A label that says more is kept: "TODO (Ana): call".
    """
    label, colon, rest = text.partition(":")
    if not colon or not any(map(str.isalnum, rest)) or len(label) > _MAX_LABEL_CHARS:
        return None
    mark = next((mark for mark in ("**", "__") if label.startswith(mark)), "")
    bare = label.strip("*_ ")
    if (kind := type_named(bare)) is not None:
        return kind, rest.removeprefix(mark).strip()
    kind = type_named(bare.partition("(")[0].partition(" for ")[0])
    return None if kind is None else (kind, text)
