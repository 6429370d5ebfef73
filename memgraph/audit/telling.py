"""The status and values of a memory that a journal entry records. Pure.

Entries of earlier releases record less; what they omit is no contradiction.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from memgraph.rules.erasure import is_redacted
from memgraph.rules.lifecycle import QUIET, lost_to

VALUES: Final = ("importance", "confidence", "decay_rate")
"""Numbers of a memory that are journalled when it is stored."""
UNKNOWN: Final = None
ERASED_REASON: Final = "erased"
"""The reason of every period of an erased memory."""
_REPLACED_ITEM: Final = "replaced by a newer item of its id"
# Written to six places after the point; the text of a number may be read with one bit less.
_PRECISION: Final = 1e-9


def reasons(action: str, subject: str | None, told: Mapping[str, Any]) -> frozenset[str] | None:
    """Return the possible reasons of a status that an entry records; None: any.

    Args:
        action, subject, told: of the entry; ``told`` are its details.
    """
    if action == "erase":
        return frozenset({ERASED_REASON})
    if is_redacted(told):
        return UNKNOWN
    if action == "supersede":
        return _replaced(told)
    reason = told.get("reason")
    if not isinstance(reason, str):
        return UNKNOWN
    if action == "resolve":
        return frozenset({lost_to(str(subject), reason)})
    if action == "reopen":
        # What housekeeping had retracted before it lost is retracted so again.
        return QUIET | {f"contradiction reopened: {reason}"}
    if "source" in told:
        back = "brought back" if action == "restore" else "taken back"
        return frozenset({f"its source was {back}: {reason}"})
    return frozenset({reason})


def _replaced(told: Mapping[str, Any]) -> frozenset[str] | None:
    by = told.get("by")
    if not isinstance(by, str):
        return UNKNOWN
    if "with" in told:
        return frozenset({f"replaced by {by}, with {told['with']} of which it is a part"})
    return frozenset({f"replaced by {by}", _REPLACED_ITEM})


def confidence_after(action: str, told: Mapping[str, Any]) -> Any:
    """Return the confidence of a memory after an entry; None: it is not recorded."""
    if action == "confirm":
        return 1.0
    if action in ("resolve", "reopen"):
        return told.get("loser_confidence")
    changed = told.get("confidence")
    return changed.get("after") if isinstance(changed, Mapping) else UNKNOWN


def differing(stored: Mapping[str, Any], told: Mapping[str, Any]) -> list[str]:
    """Return the names of the values that differ from the recorded ones."""
    return [
        name
        for name, value in stored.items()
        if told.get(name) is not UNKNOWN and not _same(value, told[name])
    ]


def _same(stored: Any, told: Any) -> bool:
    try:
        return bool(abs(stored - told) <= _PRECISION)
    except TypeError:
        return False
