"""Replace the ids of hidden memories with a placeholder wherever a text of a reader names them."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from typing import Any, Final, TypeVar

import sqlalchemy as sa

from memgraph.model.enums import MemoryKind
from memgraph.model.values import Edge
from memgraph.store.snapshot import Snapshot
from memgraph.store.statements import prepared
from memgraph.store.visibility import View, memories_listed

HIDDEN: Final = "(not visible)"

_PREFIXES: Final = tuple(kind.id_prefix for kind in MemoryKind)
_PREFIX: Final = f"(?:{'|'.join(_PREFIXES)})"
# In JSON: one word that begins like an id, or an id inside a reason such as "lost to fact_…".
_ID: Final = re.compile(
    rf"""(?:(?<=^")|(?<=[^\\]")){_PREFIX}(?:[^"\\\s]|\\.)*(?=")|{_PREFIX}[0-9A-Z]{{26}}"""
)

JsonT = TypeVar("JsonT")


@prepared
def _visible_ids(view: View) -> sa.Select[Any]:
    m, joined = memories_listed()
    return sa.select(m.c.memory_id).select_from(joined).where(view.where(m))


def without_hidden(
    snapshot: Snapshot, view: View, values: Sequence[JsonT], shown: Collection[str] = ()
) -> list[JsonT]:
    """Return the JSON values with the ids of hidden memories replaced.

    A reason that belongs to a hidden memory may quote it: beside a hidden id it is replaced whole,
    and what follows a hidden id inside it ("lost to fact_…: it is too old") is cut off.

    Args:
        view: the reader's; memories of every status are visible.
        shown: ids that are known to be visible.
    """
    texts = {
        place: json.dumps(value)
        for place, value in enumerate(values)
        if value is not None and not _is_plain(value)
    }
    ids = {memory_id for text in texts.values() for memory_id in _ID.findall(text)}
    ids = ids.difference(shown)
    result = list(values)
    if ids:
        reader = View(view.viewer, view.as_of)
        hidden = ids.difference(
            _visible_ids(reader.shape).column(snapshot, reader.params, ids=sorted(ids))
        )
        for place, text in texts.items():
            readable = _ID.sub(lambda match: HIDDEN if match[0] in hidden else match[0], text)
            result[place] = _unquoted(values[place], json.loads(readable))
    return result


def _is_plain(value: Any) -> bool:
    """Return True for a text that contains no id; most do not."""
    return isinstance(value, str) and not any(prefix in value for prefix in _PREFIXES)


def _unquoted(was: Any, now: Any) -> Any:
    if was == now:
        return now
    if isinstance(now, str):
        return now[: now.index(HIDDEN) + len(HIDDEN)]
    if isinstance(now, dict):
        inner = {name: item for name, item in now.items() if isinstance(item, dict)}
        readable = now | {name: _unquoted(was.get(name), item) for name, item in inner.items()}
        if isinstance(now.get("reason"), str):
            beside = any(_names_other(was.get(name), now[name]) for name in now if name != "reason")
            readable["reason"] = HIDDEN if beside else _unquoted(was["reason"], now["reason"])
        return readable
    return now


def _names_other(was: Any, now: Any) -> bool:
    """Return True if a value named a hidden memory, other than in a reason."""
    if isinstance(was, dict) and isinstance(now, dict):
        return any(_names_other(was.get(name), now[name]) for name in now if name != "reason")
    return bool(was != now)


def readable_edges(snapshot: Snapshot, view: View, edges: Sequence[Edge]) -> list[Edge]:
    """Return edges between visible memories without the ids of hidden ones in their reasons."""
    texts = [text for edge in edges for text in (edge.reason, edge.resolution)]
    ends = {end for edge in edges if edge.resolution for end in (edge.from_id, edge.to_id)}
    readable = without_hidden(snapshot, view, texts, ends)
    if readable == texts:
        return list(edges)
    return [
        edge.model_copy(update={"reason": reason, "resolution": resolution})
        for edge, reason, resolution in zip(edges, readable[::2], readable[1::2], strict=True)
    ]
