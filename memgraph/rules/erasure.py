"""Find and replace erased texts. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final

from memgraph.text.sentences import split_sentences

MARK: Final = "[erased]"
"""The replacement for an erased text."""
SHORTEST: Final = 12
"""The minimum length of a line to search for; shorter lines do not identify their origin."""
SHORTEST_TEXT: Final = 6
"""The minimum length of a whole text with a digit, an @ or a non-ASCII letter, such as a code."""
SHORTEST_NAME: Final = 4
"""The minimum length of a name to search for; shorter ones occur in large files by chance."""
ENOUGH: Final = 24
"""This many first characters identify a string that was cut short."""
LONG: Final = 20
"""The minimum length of a phrase that is searched regardless of case."""
LONG_WORDS: Final = 3
"""The minimum number of words of a shorter phrase that is searched regardless of case."""
FREE_TEXT: Final = frozenset(
    {"reason", "message", "note", "comment", "title", "text", "quote", "summary", "content"}
)
"""Fields of the journal that contain free text."""
NOTES: Final = frozenset({"reason", "message", "note", "comment"})
"""The free-text fields that comment on a memory or a decision."""
DIGESTS: Final = frozenset({"content_hash", "seal"})
"""Fields that are computed from the text: a short text could be guessed from them."""
_PLAIN_WORD: Final = re.compile(r"[A-Za-z_]+")
_TELLING: Final = re.compile(r"[0-9@]|[^\x00-\x7f]")
# "Fact: …", "user: …": a label that quotations of a line leave out.
_LABEL: Final = re.compile(r"[^\s:][^:\n]{0,31}: +")
compact_json = json.JSONEncoder(
    ensure_ascii=False, sort_keys=True, allow_nan=False, separators=(",", ":")
).encode
ERASED: Final = "erased"
"""The field that marks a redacted entry of the journal, with the value true."""

Scrub = Callable[[str], str]
"""Returns a text without the erased strings; the same object if it has none."""


def strings_of(texts: Iterable[str], words: Iterable[str] = ()) -> list[str]:
    """Return the strings that identify texts: the whole text, its lines and their sentences.

    Args:
        words: values of attributes, tags and files. Only phrases among them are used: a single
            word, a time, a digest or an id may occur elsewhere for other reasons.

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
        strings.update(dict.fromkeys(string for string in _parts(word) if _is_phrase(string)))
    chosen = {
        string
        for string in strings
        if len(string) >= SHORTEST and not _PLAIN_WORD.fullmatch(string)
    }
    return sorted(chosen | short, key=lambda string: (-len(string), string))


def unsought(texts: Iterable[str], strings: Iterable[str]) -> int:
    """Return the number of texts that are not searched as a whole because they identify nothing."""
    return len({text.strip() for text in texts} - {"", *strings})


def _parts(line: str) -> list[str]:
    parts = [line.strip(), *split_sentences(line)]
    for part in parts:
        label = _LABEL.match(part)
        if label is not None:
            parts.append(part[label.end() :])
    return parts


def _is_phrase(text: str) -> bool:
    return not text.isascii() or " " in text or "@" in text


def is_long(text: str) -> bool:
    """Return True for a phrase that is distinctive in any case; a single name is not."""
    return " " in text.strip() and (len(text) >= LONG or len(text.split()) >= LONG_WORDS)


def names_of(names: Iterable[str]) -> list[str]:
    """Return the distinct names that are long enough to search for."""
    return sorted({name.strip() for name in names if len(name.strip()) >= SHORTEST_NAME})


def fill(length: int) -> bytes:
    """Return ``length`` bytes to overwrite a text in a file, without line ends."""
    return (b"erased " * (length // 7 + 1))[:length]


def redacted_details(text: str, scrub: Scrub, *, own: bool) -> str:
    """Return the redacted details of a journal entry, marked as such; see ``is_redacted``.

    Args:
        text: the details as a JSON object.
        scrub: removes the erased strings from a text.
        own: the entry is about an erased memory or one of its edges: all free text and all digests
            of the text are replaced.
    """
    return compact_json({**_object(scrubbed(text, scrub), own), ERASED: True})


def redacted_words(text: str, scrub: Scrub) -> str:
    """Redact a JSON object outside the journal like a journal entry of an erased memory."""
    return compact_json(_object(scrubbed(text, scrub), own=True))


def scrubbed(text: str, scrub: Scrub) -> str:
    """Return a text without the erased strings; in JSON only strings change, so it stays valid.

    Returns:
        The same object if it contains none of them.
    """
    if text[:1] not in ("{", "["):
        return scrub(text)
    try:
        value = json.loads(text)
        fresh = _scrubbed(value, scrub)
        return text if fresh == value else compact_json(fresh)
    except (ValueError, RecursionError):
        return scrub(text)


def _scrubbed(value: Any, scrub: Scrub) -> Any:
    if isinstance(value, str):
        remaining = scrubbed(value, scrub)
        written = compact_json(remaining)[1:-1]
        if "\\" not in written or value[:1] in ("{", "["):
            return remaining
        # An erased string may match only the escaped form, so the escaped form is scrubbed too.
        return json.loads(f'"{scrub(written)}"')
    if isinstance(value, dict):
        # A plain word is the name of a field and is kept.
        return {
            key if _PLAIN_WORD.fullmatch(key) else scrub(key): _scrubbed(item, scrub)
            for key, item in value.items()
        }
    return [_scrubbed(item, scrub) for item in value] if isinstance(value, list) else value


def is_redacted(details: Mapping[str, Any]) -> bool:
    """Return True if details are marked as redacted."""
    return details.get(ERASED) is True


def _object(text: str, own: bool) -> dict[str, Any]:
    fields = json.loads(text)
    return {str(key): _without_words(item, own, str(key)) for key, item in fields.items()}


def _without_words(value: Any, own: bool, key: str = "") -> Any:
    if isinstance(value, str):
        return MARK if own and key in FREE_TEXT | DIGESTS else value
    if isinstance(value, Mapping):
        return {str(name): _without_words(item, own, str(name)) for name, item in value.items()}
    if isinstance(value, list):
        return [_without_words(item, own, key) for item in value]
    return value


def free_texts(details: str) -> list[str]:
    """Return the comments on a memory in the details (JSON) of a journal entry."""
    fields = json.loads(details)
    return [text for name, text in fields.items() if name in NOTES and isinstance(text, str)]


def without_notes(reason: str, erased: Collection[str], notes: Collection[str]) -> str:
    """Return the reason of a status without comments on erased memories.

    Args:
        erased: the erased ids; the text after such an id is a comment on it.
        notes: comments on erased memories; a reason may end with one.
    """
    head, colon, note = reason.partition(": ")
    if not colon:
        return MARK if reason in notes else reason
    about = any(word in erased for word in head.split())
    return f"{head}: {MARK}" if about or note in notes or reason in notes else reason


def stands_without(grounds: Collection[int], erased: Collection[int]) -> bool:
    """Return True if a derived memory also depends on evidence that is not erased."""
    return not set(grounds) <= set(erased)
