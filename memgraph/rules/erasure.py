"""Find and replace erased texts. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final

from memgraph.text.sentences import split_sentences

MARK: Final = "[erased]"
"""What stands where a text was."""
SHORTEST: Final = 12
"""Characters of a line that is looked for by itself; shorter ones say nothing of whose they are."""
SHORTEST_TEXT: Final = 6
"""Characters of a whole text that has a digit, an @ or a letter beyond ASCII, as codes have."""
SHORTEST_NAME: Final = 4
"""Characters of a name that is looked for; in a large file shorter ones stand by chance."""
ENOUGH: Final = 24
"""So many first characters of a string betray it, where it was cut short."""
LONG: Final = 20
"""Characters of a phrase that says the same in any case of its letters."""
LONG_WORDS: Final = 3
"""Words of a shorter one that does."""
FREE_TEXT: Final = frozenset(
    {"reason", "message", "note", "comment", "title", "text", "quote", "summary", "content"}
)
"""Fields of the journal that somebody wrote in their own words."""
NOTES: Final = frozenset({"reason", "message", "note", "comment"})
"""Those of them that are about a memory or a decision, rather than its own words."""
DIGESTS: Final = frozenset({"content_hash", "seal"})
"""Fields that are made of the text alone: of a short text they can be guessed."""
_PLAIN_WORD: Final = re.compile(r"[A-Za-z_]+")
_TELLING: Final = re.compile(r"[0-9@]|[^\x00-\x7f]")
# "Fact: …", "user: …": who quotes a line leaves that out.
_LABEL: Final = re.compile(r"[^\s:][^:\n]{0,31}: +")
compact_json = json.JSONEncoder(
    ensure_ascii=False, sort_keys=True, allow_nan=False, separators=(",", ":")
).encode
ERASED: Final = "erased"
"""The field that a redacted entry of the journal has, with the value true."""

Scrub = Callable[[str], str]
"""Gives a text without the erased strings; the same object where it has none."""


def strings_of(texts: Iterable[str], words: Iterable[str] = ()) -> list[str]:
    """Return the strings that betray some texts: each whole, each of its lines, each of their
    sentences.

    Args:
        words: of attributes, tags and files: those of them that are phrases count. A lone word, a
            time, a digest or an id stands elsewhere for reasons of its own.

    Returns:
        Each once, the longest first; no plain word, and none that is shorter than ``SHORTEST``
        characters, but for whole texts of ``SHORTEST_TEXT`` that no other thing looks like.
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
    """Return how many texts are not looked for as a whole: they say nothing of whose they are."""
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
    """Return True when a string is told from others in any case of its letters, as no name is."""
    return " " in text.strip() and (len(text) >= LONG or len(text.split()) >= LONG_WORDS)


def names_of(names: Iterable[str]) -> list[str]:
    """Return the names that are long enough to be looked for, each once."""
    return sorted({name.strip() for name in names if len(name.strip()) >= SHORTEST_NAME})


def fill(length: int) -> bytes:
    """Bytes that take a text's place in a file: words where there is room, never a line end."""
    return (b"erased " * (length // 7 + 1))[:length]


def redacted_details(text: str, scrub: Scrub, *, own: bool) -> str:
    """Return the details of a journal entry without what was erased, marked as such; see
    ``is_redacted``.

    Args:
        text: their JSON, an object.
        scrub: takes the erased strings out of any text.
        own: the entry is about an erased memory or an edge of one: free text goes whatever it
            says, and so do digests of the text.
    """
    return compact_json({**_object(scrubbed(text, scrub), own), ERASED: True})


def redacted_words(text: str, scrub: Scrub) -> str:
    """Return a JSON object as it stands beside the journal, redacted as its entry of an erased
    memory.
    """
    return compact_json(_object(scrubbed(text, scrub), own=True))


def scrubbed(text: str, scrub: Scrub) -> str:
    """Return a text without the erased strings; of JSON the words alone, so that it stays what it
    is.

    Returns:
        The same object where it has none of them.
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
        # A string that begins with the end of an escape stands in the JSON, and in no word of it.
        return json.loads(f'"{scrub(written)}"')
    if isinstance(value, dict):
        # A plain word is a field's name.
        return {
            key if _PLAIN_WORD.fullmatch(key) else scrub(key): _scrubbed(item, scrub)
            for key, item in value.items()
        }
    return [_scrubbed(item, scrub) for item in value] if isinstance(value, list) else value


def is_redacted(details: Mapping[str, Any]) -> bool:
    """Return True when details say that something was taken out of them."""
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
    """Return what somebody wrote about a memory in the details (JSON) of a journal entry."""
    fields = json.loads(details)
    return [text for name, text in fields.items() if name in NOTES and isinstance(text, str)]


def without_notes(reason: str, erased: Collection[str], notes: Collection[str]) -> str:
    """Return the reason of a status without what was written about erased memories.

    Args:
        erased: ids; what follows after one of them is said about it.
        notes: what was written about them; a reason may end with one.
    """
    head, colon, note = reason.partition(": ")
    if not colon:
        return MARK if reason in notes else reason
    about = any(word in erased for word in head.split())
    return f"{head}: {MARK}" if about or note in notes or reason in notes else reason


def stands_without(grounds: Collection[int], erased: Collection[int]) -> bool:
    """Return True when a memory that was derived from several rests on one that is not erased."""
    return not set(grounds) <= set(erased)
