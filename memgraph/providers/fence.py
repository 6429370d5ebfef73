"""Text from outside in a prompt: fenced, so that what it asks for stays a part of the data."""

from __future__ import annotations

import json


def fenced(text: str, mark: str) -> str:
    """The text as one JSON string on a line of its own, between marks that it cannot know.

    Args:
        mark: a random word, made for this prompt alone.
    """
    escaped = json.dumps(text).replace("<", "\\u003c").replace(">", "\\u003e")
    return f"<data-{mark}>\n{escaped}\n</data-{mark}>"
