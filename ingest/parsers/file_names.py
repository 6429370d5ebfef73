"""Names derived from a file's path: its keys for links, its record number, its session."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from urllib.parse import unquote

_NUMBER = re.compile(r"(?:m?adr[-_ ]?)?0*(\d{1,5})(?=[-_. ]|$)", re.IGNORECASE)
_DAY = re.compile(r"(?<!\d)(\d{4})([-_.]?)(\d{2})\2(\d{2})(?!\d)")
_SESSION = re.compile(r"^(.+?)[-_ .]+(?:session|part|chat)[-_ ]*\d+$", re.IGNORECASE)
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:")
_TYPES = (".md", ".txt", ".json")


def document_keys(path: str, number: int | None = None) -> tuple[str, ...]:
    """Return the keys by which other files may link to ``path`` (relative to the drop zone, with
    ``/``).

    ``path:`` is the exact path, ``name:`` the file name alone, and ``record:`` the number of the
    record, in its folder or in any folder.
    """
    folder, name = posixpath.split(path)
    keys = [f"path:{path.casefold()}", f"name:{name.casefold()}"]
    if number is not None:
        keys += [f"record:{folder.casefold()}#{number}", f"record:#{number}"]
    return tuple(dict.fromkeys(keys))


def link_keys(href: str, path: str) -> tuple[str, ...]:
    """Return the keys for a link in the file ``path``, strictest first.

    The result is empty if the link does not lead to a file of a supported type.
    """
    bare = unquote(href.split("#", 1)[0].split("?", 1)[0]).strip()
    if not bare.casefold().endswith(_TYPES) or not bare.isprintable() or len(bare) > 300:
        return ()
    name = f"name:{posixpath.basename(bare).casefold()}"
    if _SCHEME.match(bare) or bare.startswith("/"):
        return (name,)
    target = posixpath.normpath(posixpath.join(posixpath.dirname(path), bare))
    if target.startswith("..") or len(target) > 500:
        return (name,)
    return (f"path:{target.casefold()}", name)


def number_keys(number: int, path: str) -> tuple[str, ...]:
    """Return the keys for a record that is referred to only by its number."""
    folder = posixpath.dirname(path).casefold()
    return tuple(dict.fromkeys((f"record:{folder}#{number}", f"record:#{number}")))


def record_number(path: str) -> int | None:
    """Return the number at the start of a file's name, as in ``0015-dns.md`` or ``ADR-015.md``."""
    name = posixpath.basename(path)
    match = None if _DAY.match(name) else _NUMBER.match(name)
    return int(match[1]) if match else None


def dates_in_name(path: str) -> Iterator[str]:
    """Yield what may be dates in the names of a file and of its folder."""
    for name in reversed(path.split("/")[-2:]):
        for match in _DAY.finditer(name):
            yield f"{match[1]}-{match[3]}-{match[4]}"
    yield title_of(path)


def session_name(path: str) -> str:
    """Return the default session of a transcript: its path without the extension."""
    return str(PurePosixPath(path).with_suffix(""))[-200:] or "session"


def conversation_name(session: str) -> str:
    """Return the conversation of a session: ``team`` for ``team-session-03``, in any folder.

    A session without such a number is returned unchanged.
    """
    match = _SESSION.match(posixpath.basename(session))
    return match[1] if match else session


def title_of(path: str) -> str:
    """Return a title for a file that has none."""
    return " ".join(re.split(r"[-_\s]+", PurePosixPath(path).stem)).strip() or "untitled"
