"""Render the console's templates. All values are escaped as text."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections import Counter
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import jinja2
from markupsafe import Markup
from starlette.responses import Response
from starlette.staticfiles import StaticFiles

from memgraph.clock import iso
from memgraph.model.enums import MemoryKind, MemoryStatus, MemoryType
from memgraph.rules.blocks import without_ignorable
from memgraph.service.readiness import REMEDIES
from memgraph.service.sanitizer import without_root

FOLDER: Final = Path(__file__).parent
ORDINARY: Final = "\n\r\t\u200c\u200d"
"""Invisible characters that occur in ordinary text and in emoji."""
SIGNS_OF_NUMBERS: Final = frozenset(
    "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"
)
"""Visible format characters: Unicode's Prepended_Concatenation_Mark."""
LOOKS: Final = "\ufe0e\ufe0f"
"""Variation selectors, which render a symbol as text or as an emoji, and are ignored elsewhere."""
SIGNS: Final = ("So", "Sm", "Po", "Nd")
"""Categories of characters that may have both renderings: symbols, and characters of keycaps."""
BRAILLE_BLANK: Final = "\u2800"
FEW_NAMES: Final = 8


class Assets(StaticFiles):
    """The static files. Their URL contains a digest of all of them, so that browsers keep them."""

    def __init__(self, folder: Path = FOLDER / "static") -> None:
        super().__init__(directory=folder)
        digest = hashlib.sha256()
        for path in sorted(item for item in folder.rglob("*") if item.is_file()):
            body = path.read_bytes()
            digest.update(f"{path.relative_to(folder)}\0{len(body)}\0".encode() + body)
        self.version = digest.hexdigest()[:16]

    def file_response(self, *args: Any, **values: Any) -> Response:
        response = super().file_response(*args, **values)
        response.headers["Cache-Control"] = "public, max-age=31536000, immutable"
        return response


def environment(values: Mapping[str, Any], root: Path | None = None) -> jinja2.Environment:
    """Return the Jinja environment of the console's templates; an undefined name is an error.

    Args:
        values: variables that are available in every template.
        root: paths below this folder are shown relative to it; None: paths are shown in full.
    """
    env = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    env.filters |= {
        "without_root": (lambda path: path)
        if root is None
        else (lambda path: without_root(path, root)),
        "when": when,
        "number": number,
        "counted": counted,
        "remedy": remedy,
        "figure": figure,
        "plain_json": plain_json,
        "noted": noted,
        "words": words,
        "short": short,
        "tail": tail,
        "unseen": unseen,
    }
    env.globals |= {
        "types": [item.value for item in MemoryType],
        "kinds": [item.value for item in MemoryKind],
        "statuses": [item.value for item in MemoryStatus],
    }
    env.globals |= values
    return env


def moment(ms: int | None) -> str:
    """Return a time in UTC such as ``2025-06-01 12:00:05``; a dash for None."""
    return "–" if ms is None else iso(ms)[:19].replace("T", " ")


def when(ms: int | None) -> Markup:
    """Return ``moment`` as a ``time`` element, with the full time as its tooltip."""
    if ms is None:
        return Markup('<span class="none">–</span>')
    return Markup('<time datetime="{0}" title="{0}">{1}</time>').format(iso(ms), moment(ms))


def number(value: int) -> str:
    """Return a number with thousands separators: ``12,345``."""
    return f"{value:,}"


def counted(value: int, text: str, many: str | None = None) -> str:
    """Return a number with its noun: ``1 memory``, ``12,345 memories``.

    Args:
        many: the plural; None: ``text`` with an s.
    """
    return f"{value:,} {text if value == 1 else many or text + 's'}"


def remedy(code: str) -> str:
    """Return the meaning and remedy of a health code; for an unknown code, the code as words."""
    return REMEDIES.get(code) or words(code.replace(".", " ")) + "."


def figure(value: float | None) -> str:
    """Return a score, or a measure between 0 and 1, with two to four decimals; a dash for None."""
    return "–" if value is None else f"{value:.4f}".rstrip("0").ljust(4, "0")


def plain_json(value: Any) -> str:
    """Return a value as indented JSON."""
    return json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True, default=str)


def noted(value: Any) -> str:
    """Return a value of a manifest as text: ``stored 6, duplicate 2``, ``yes``, ``none``.

    Counts of 0 are omitted.
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return number(value)
    if isinstance(value, Mapping):
        counted = (item for item in value.items() if item[1] is False or item[1] != 0)
        value = [f"{words(name)} {noted(item)}" for name, item in counted]
    if isinstance(value, list | tuple):
        return ", ".join(map(noted, value)) or "none"
    return "none" if value is None else str(value)


def words(name: str) -> str:
    """Return an identifier as words: ``CausedBy`` as ``caused by``, ``top_n`` as ``top n``."""
    parts = "".join(f" {item}" if item.isupper() else item for item in name).replace("_", " ")
    return " ".join(parts.lower().split())


def short(text: str, limit: int = 160) -> str:
    """Return a text as one line of at most ``limit`` characters; an ellipsis marks a cut."""
    flat = " ".join(text[: limit * 2].split())
    return (
        flat if len(flat) <= limit and len(text) <= limit * 2 else flat[: limit - 1].rstrip() + "…"
    )


def tail(path: str) -> str:
    """Return the last two components of a path."""
    return "/".join(path.rsplit("/", 2)[-2:])


def unseen(text: str) -> list[str]:
    """Return the invisible characters of a text: ``U+202E right-to-left override (2)``.

    A language model reads them although a person does not see them.
    """
    counter = Counter(
        value
        for before, value in pairwise(f" {text}")
        if _is_unseen(value) and not (value in LOOKS and unicodedata.category(before) in SIGNS)
    )
    lines = [
        f"U+{ord(value):04X} {unicodedata.name(value, 'control').lower()} ({count:,})"
        for value, count in counter.most_common(FEW_NAMES)
    ]
    return lines + ([f"{len(counter) - FEW_NAMES:,} more"] if len(counter) > FEW_NAMES else [])


def _is_unseen(character: str) -> bool:
    if character in ORDINARY or character in SIGNS_OF_NUMBERS:
        return False
    category = unicodedata.category(character)
    return (
        category in ("Cc", "Cf", "Zl", "Zp")
        or character == BRAILLE_BLANK
        or not without_ignorable(character)
    )
