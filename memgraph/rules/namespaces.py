"""Items of a key-value store as memories: their ids, and the encoding of their values.

An item is a JSON object under a namespace (a path of labels) and a key. Its memory's ``item_id``
contains both, so that one index finds an item, and all items below a namespace are one range.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from memgraph.errors import InvalidInput
from memgraph.model.values import MAX_CONTENT_CHARS, MAX_NAME_CHARS

Namespace = tuple[str, ...]

ITEM_TAG: Final = "store-item"
"""The tag of every item, see ``is_item``."""
ROOT: Final = "store/"
"""The prefix of every ``item_id``."""
MAX_LABELS: Final = 60
MAX_DEPTH: Final = 100
"""The maximum depth of nested objects and lists in a value."""

_AFTER_ROOT = "store0"
_PLAIN = (str, bool, int, type(None))
_ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-f]{4})')
_SPACES = {"\\n": "\n", "\\t": "\t", "\\r": "\r"}
_DECODER = json.JSONDecoder(strict=False)


def checked(namespace: Sequence[str]) -> Namespace:
    """Check that the labels of a namespace can be joined by dots, and return it.

    Raises:
        InvalidInput: a label is empty, not text, or contains a dot; or there are over 60 labels.
    """
    for label in namespace:
        if not isinstance(label, str) or not label or "." in label:
            raise InvalidInput(
                "a label of a namespace must be non-empty text without dots", field="namespace"
            )
    if len(namespace) > MAX_LABELS:
        raise InvalidInput(f"a namespace has at most {MAX_LABELS} labels", field="namespace")
    return tuple(namespace)


def item_id(namespace: Namespace, key: str) -> str:
    """Return ``store/users.alice..prefs`` for ``("users", "alice")`` and ``prefs``.

    No label is empty or contains a dot, so the first two dots end the namespace, for any key.

    Raises:
        InvalidInput: see ``checked``; or the id would be longer than 512 characters.
    """
    item = f"{ROOT}{'.'.join(checked(namespace))}..{key}"
    if len(item) > MAX_NAME_CHARS:
        raise InvalidInput(
            f"a namespace and a key together are at most {MAX_NAME_CHARS - len(ROOT) - 2}"
            " characters",
            field="key",
        )
    return item


def parse_item_id(text: str) -> tuple[Namespace, str]:
    """Return the namespace and the key of an ``item_id`` of this module."""
    path, _, key = text.removeprefix(ROOT).partition("..")
    return tuple(path.split(".")) if path else (), key


def is_item(item_id: str | None, tags: Collection[str]) -> bool:
    """Return True if a memory is an item, which is not a statement.

    The tag alone is not enough: documents and models may give their statements any tags.
    """
    return ITEM_TAG in tags and (item_id or "").startswith(ROOT)


def within(prefix: Namespace) -> tuple[str, str]:
    """Return the range [first, last) of all item ids in and below a namespace, by code point."""
    if not checked(prefix):
        return ROOT, _AFTER_ROOT
    path = ROOT + ".".join(prefix)
    # "/" is the character after ".".
    return f"{path}.", f"{path}/"


def after(namespace: Namespace) -> str:
    """Return the exclusive upper bound of the item ids directly in this namespace."""
    return f"{ROOT}{'.'.join(namespace)}./"


def tags_of(namespace: Namespace, *, searched: bool) -> tuple[str, ...]:
    """Return the tags of an item, with those of all its namespaces if it is ``searched``."""
    below = range(len(namespace) + 1) if searched else ()
    return (ITEM_TAG, *(search_tag(namespace[:depth]) for depth in below))


def search_tag(prefix: Namespace) -> str:
    """Return the tag of the searchable items in and below a namespace."""
    return ROOT + ".".join(prefix)


def value_text(value: Mapping[str, Any]) -> str:
    """Return a value as JSON with literal line breaks and tabs, for ``value_of``.

    With escaped line breaks the first word of a line would begin with the ``n`` of the escape, and
    a search would not find it.

    Raises:
        InvalidInput: it is not plain JSON, nested deeper than 100, or over 32,000 characters.
    """
    plain = _ESCAPE.sub(lambda match: _SPACES.get(match[0], match[0]), plain_text(value))
    if len(plain) > MAX_CONTENT_CHARS:
        raise InvalidInput(
            f"a value is at most {MAX_CONTENT_CHARS:,} characters as JSON", field="value"
        )
    return plain


def plain_text(value: Mapping[str, Any]) -> str:
    """Return a value as JSON. Raises InvalidInput if it could not be restored unchanged."""
    if not isinstance(value, Mapping):
        raise InvalidInput("a value must be a JSON object", field="value")
    _check(value, 0)
    try:
        # After the check the only type unknown to json is a mapping of another class.
        text = json.dumps(dict(value), ensure_ascii=False, default=dict)
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidInput("a value contains a lone surrogate", field="value") from None
    except ValueError:
        raise InvalidInput("a number in a value is too long", field="value") from None
    return text


def value_of(text: str) -> dict[str, Any]:
    """Return the value that ``value_text`` or ``plain_text`` wrote. Raises ValueError."""
    return dict(_DECODER.decode(text))


def _check(value: Any, depth: int) -> None:
    """Raise InvalidInput if JSON would change a value, or cannot represent it."""
    if isinstance(value, _PLAIN):
        return
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidInput("a number in a value is not finite", field="value")
        return
    if depth == MAX_DEPTH:
        raise InvalidInput(f"a value must not be nested deeper than {MAX_DEPTH}", field="value")
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise InvalidInput("the keys of a value must be text", field="value")
        for item in value.values():
            _check(item, depth + 1)
    elif isinstance(value, list | tuple):
        for item in value:
            _check(item, depth + 1)
    else:
        raise InvalidInput(f"a {type(value).__name__} is not JSON", field="value")
