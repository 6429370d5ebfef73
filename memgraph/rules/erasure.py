"""Find and replace erased texts. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final

from memgraph.model.values import compact_json
from memgraph.text.sentences import split_sentences

MARK: Final = "[erased]"
"""The replacement for an erased text."""
FILLER: Final = "erased "
"""What an erased text is overwritten with in files, as often as it fits and cut at the end."""
SHORTEST: Final = 12
"""The minimum length of a line to search for; shorter lines do not identify their origin."""
SHORTEST_TEXT: Final = 6
"""The minimum length of a whole text with a digit, an @ or a non-ASCII letter, such as a code."""
SHORTEST_NAME: Final = 4
"""The minimum length of a name to search for; shorter ones occur in large files by chance."""
ENOUGH: Final = 24
"""This many first characters identify a string that was cut short."""
FREE_TEXT: Final = frozenset(
    {"reason", "message", "note", "comment", "title", "text", "quote", "summary", "content"}
)
"""Fields of the journal that contain free text."""
NOTES: Final = frozenset({"reason", "message", "note", "comment"})
"""The free-text fields that comment on a memory or a decision."""
SEALS: Final = frozenset({"redacted", "hmac"})
"""Fields that prove a redaction, and contain no text."""
DIGESTS: Final = frozenset({"content_hash", "seal"})
"""Fields that are computed from the text: a short text could be guessed from them."""
_PLAIN_WORD: Final = re.compile(r"[A-Za-z_]+")
_TELLING: Final = re.compile(r"[0-9@]|[^\x00-\x7f]")
# "Fact: …", "user: …": a label that quotations of a line leave out.
_LABEL: Final = re.compile(r"[^\s:][^:\n]{0,31}: +")
ERASED: Final = "erased"
"""The field that marks a redacted entry of the journal, with the value true."""

_CUT: Final = r"erased(?: erased)* (?:erased?|eras?|er?)(?![A-Za-z])"
_FILLED: Final = re.compile(rf"{_CUT}(?:\s+{_CUT})*")
_LEFT: Final = re.compile(rf"{_FILLED.pattern}|{re.escape(MARK)}")

Scrub = Callable[[str], str]
"""Returns a text without the erased strings; the same object if it has none."""


def strings_of(texts: Iterable[str], words: Iterable[str] = ()) -> list[str]:
    """Return the strings that identify texts: the whole text, its lines and their sentences.

    Args:
        words: values of attributes, tags and files. Only phrases among them are used: a single
            word, a time, a digest or an id may occur elsewhere for other reasons. What an earlier
            erasure left in them is no text of theirs.

    Returns:
        Distinct strings, longest first. Plain words and strings shorter than ``SHORTEST`` are left
        out, except distinctive whole texts of at least ``SHORTEST_TEXT`` characters.
    """
    strings: dict[str, None] = {}
    short = set()
    for text in texts:
        strings[text.strip()] = None
        if len(text.strip()) >= SHORTEST_TEXT and _TELLING.search(text):
            short.add(text.strip())
        for line in text.splitlines():
            strings.update(dict.fromkeys(string for string in _parts(line) if _is_phrase(string)))
    for word in words:
        for part in _LEFT.split(word):
            strings.update(dict.fromkeys(string for string in _parts(part) if _is_phrase(string)))
    chosen = {
        string
        for string in strings
        if len(string) >= SHORTEST and not _PLAIN_WORD.fullmatch(string)
    }
    return sorted(chosen | short, key=lambda string: (-len(string), string))


def _parts(line: str) -> list[str]:
    parts = [line.strip(), *split_sentences(line)]
    for part in parts:
        label = _LABEL.match(part)
        if label is not None:
            parts.append(part[label.end() :])
    return parts


def _is_phrase(text: str) -> bool:
    return not text.isascii() or " " in text or "@" in text


def with_marks(text: str) -> str:
    """Return a text from a redacted file with a mark for each run of filler."""
    return _FILLED.sub(MARK, text)


def names_of(names: Iterable[str]) -> list[str]:
    """Return the distinct names that are long enough to search for."""
    return sorted({name.strip() for name in names if len(name.strip()) >= SHORTEST_NAME})


def redacted_details(text: str, scrub: Scrub, fields: Collection[str] = ()) -> str:
    """Return the redacted details of a journal entry, marked as such.

    Args:
        text: the details as a JSON object.
        scrub: removes the erased strings from a text.
        fields: the names of fields whose whole text is replaced.
    """
    return compact_json(
        {**_without(json.loads(scrubbed(text, scrub, SEALS)), fields), ERASED: True}
    )


def redacted_words(text: str) -> str:
    """Return a JSON object without its free text."""
    return compact_json(_without(json.loads(text), FREE_TEXT | DIGESTS))


def scrubbed(text: str, scrub: Scrub, kept: Collection[str] = ()) -> str:
    """Return a text without the erased strings; in JSON only strings change, so it stays valid.

    Args:
        kept: the fields of JSON objects that keep their values.

    Returns:
        The same object if it contains none of them.
    """
    if text[:1] not in ("{", "["):
        return scrub(text)
    try:
        value = json.loads(text)
        fresh = _scrubbed(value, scrub, kept)
        return text if fresh == value else compact_json(fresh)
    except (ValueError, RecursionError):
        return scrub(text)


def _scrubbed(value: Any, scrub: Scrub, kept: Collection[str]) -> Any:
    if isinstance(value, str):
        return scrubbed(value, scrub, kept)
    if isinstance(value, dict):
        # A plain word is the name of a field and is kept.
        return {
            key if _PLAIN_WORD.fullmatch(key) else scrub(key): item
            if key in kept
            else _scrubbed(item, scrub, kept)
            for key, item in value.items()
        }
    return [_scrubbed(item, scrub, kept) for item in value] if isinstance(value, list) else value


def _without(value: Any, fields: Collection[str], key: str = "") -> Any:
    if isinstance(value, str):
        return MARK if key in fields else value
    if isinstance(value, Mapping):
        return {str(name): _without(item, fields, str(name)) for name, item in value.items()}
    return [_without(item, fields, key) for item in value] if isinstance(value, list) else value


def without_note(reason: str, erased: Collection[str], notes: Collection[str]) -> str:
    """Return the reason of a status without a comment on an erased memory, after a colon.

    Args:
        erased: the erased ids; the text after such an id is a comment on it.
        notes: the comments on erased memories.
    """
    head, colon, note = reason.partition(": ")
    about = note in notes or any(word in erased for word in head.split())
    return f"{head}: {MARK}" if colon and about else reason
