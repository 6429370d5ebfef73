"""Convert items of the OpenAI Agents SDK to transcript entries and back, without the SDK.

An item is an input or output of a model in the format of OpenAI's Responses API. The text of user
and assistant messages becomes the entry's text; other messages, tool calls and their outputs,
handoffs and reasoning have no text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from memgraph.errors import InvalidInput
from memgraph.model.conversation import ConversationEntry, DeclaredRole

_SPEAKERS: Final[Mapping[str, DeclaredRole]] = {"user": "person", "assistant": "agent"}
_TEXT_OF: Final = {
    "input_text": "text",
    "output_text": "text",
    "text": "text",
    "refusal": "refusal",
}
_BETWEEN: Final = "\n"


def entry_of(item: Any) -> ConversationEntry:
    """Convert an item to an entry.

    Raises:
        InvalidInput: the item is not a JSON object.
    """
    try:
        # Normalised to what is returned later: tuples become lists, keys become strings.
        shape = json.loads(json.dumps(item, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput("an item must be a plain JSON object", field="items") from error
    if not isinstance(shape, dict):
        raise InvalidInput("an item must be a plain JSON object", field="items")
    texts = []
    for holder, key in _slots(shape):
        texts.append(holder[key])
        holder[key] = ""
    full_text = _BETWEEN.join(texts)
    if not full_text:
        return ConversationEntry([shape, [0] * len(texts)], label=_label(shape))
    return ConversationEntry(
        [shape, [len(text) for text in texts]],
        text=full_text,
        speaker=_SPEAKERS[shape["role"]],
        label=_label(shape),
    )


def item_of(entry: ConversationEntry) -> dict[str, Any]:
    """Convert an entry back to its item."""
    shape: dict[str, Any]
    shape, lengths = entry.record
    start = 0
    for (holder, key), length in zip(_slots(shape), lengths, strict=True):
        holder[key] = entry.text[start : start + length]
        start += length + len(_BETWEEN)
    return shape


def text_of(item: Mapping[str, Any]) -> str:
    """Return the text of a user or an assistant in an item; empty for other items."""
    return _BETWEEN.join(holder[key] for holder, key in _slots(item))


def _slots(item: Mapping[str, Any]) -> list[tuple[Any, str]]:
    """Return the locations of a message's texts as (object, key) pairs."""
    if item.get("type", "message") != "message" or str(item.get("role")) not in _SPEAKERS:
        return []
    content = item.get("content")
    if isinstance(content, str):
        return [(item, "content")]
    parts = content if isinstance(content, list) else []
    results = ((part, _TEXT_OF.get(str(part.get("type")))) for part in parts if _is_object(part))
    return [(part, key) for part, key in results if key and isinstance(part.get(key), str)]


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _label(item: Mapping[str, Any]) -> str:
    """Return a label for people: the kind of the item, and the tool's name if it has one."""
    kind = item.get("type") or f"message of {item.get('role')}"
    name = item.get("name")
    return f"{kind}: {name}" if isinstance(name, str) else str(kind)
