"""Long outputs of tools, cut to what an item holds: the beginning, a mark, and the end."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final

from memgraph.errors import InvalidInput

MAX_OUTPUT_CHARS: Final = 12_000
"""Maximum characters of an output as JSON; with its other fields it fits into a payload."""

_HEAD_PARTS, _PARTS = 2, 3


def output_payload(output: Any) -> tuple[str, dict[str, Any]]:
    """Return the text of an output, and the payload for it.

    For a text or other plain JSON within ``MAX_OUTPUT_CHARS``: ``output``, unchanged. Else
    ``output`` is its text (JSON for what was no text) with the middle left out, ``shortened`` is
    true, ``length`` counts its characters and ``sha256`` is that of all of it as UTF-8.

    Raises:
        InvalidInput: it is no plain JSON.
    """
    written = _json(output)
    text = output if isinstance(output, str) else written
    if len(written) <= MAX_OUTPUT_CHARS:
        return text, {"output": output}
    shortened_text = shortened(text, MAX_OUTPUT_CHARS)
    return shortened_text, {
        "output": shortened_text,
        "shortened": True,
        "length": len(text),
        "sha256": hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest(),
    }


def shortened(text: str, limit: int) -> str:
    """Return the text, or its first two thirds and last third around a mark.

    It has at most ``limit`` characters as JSON, in which a control character takes six.
    """
    room = limit
    result = text
    while len(_json(result)) > limit:
        head = room * _HEAD_PARTS // _PARTS
        tail = room - head
        mark = f"\n[… {len(text) - room:,} characters left out …]\n"
        result = text[:head] + mark + text[len(text) - tail :]
        room = room * 9 // 10
    return result


def _json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=True)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput("an output must be text or plain JSON", field="output") from error
