"""The memory's own output, pasted whole into a turn: fences, bulletins, recalls as JSON or text."""

from __future__ import annotations

import json
import re
from typing import Any

from memgraph.policy.bulletin import Section
from memgraph.policy.echo import MEMORY_ID

# As prompts are fenced: ``<data-`` and the hex digits of a random word.
_FENCE = re.compile(r"<(data)-([0-9a-f]{16})>")
_SECTIONS = "|".join(Section)
_TITLE = re.compile(rf"^#+ Memory bulletin$|^#+ (?:{_SECTIONS}) \(\d+ of \d+\)$")
_CITED_ITEM = re.compile(rf"^[-*•] .*\[{MEMORY_ID}\]$")
_RECALLED = re.compile(rf"^\d+\. {MEMORY_ID}\s+[A-Z][a-z]+\b")
_RECEIPT_ID = r"rcl_[0-9A-Z]{26}"
_OUR_ID = re.compile(rf"(?:{MEMORY_ID}|{_RECEIPT_ID})\Z")
_ID_IN_JSON = re.compile(rf'"(?:{MEMORY_ID}|{_RECEIPT_ID})"')
_NESTED = ("memory", "items", "results", "memories", "facts")
_JSON_LINE = re.compile(r'^\s*(?:["{}\[\],]|-?\d|true\b|false\b|null\b)')
# Our keys come early in what we write.
_HEAD = 400
# A text may be full of braces; so many are tried.
_MAX_JSON = 50
_MAX_DEPTH = 4


def without_own_output(text: str) -> tuple[str, int]:
    """A text without what only this memory writes, and how many blocks that were.

    Removed are fenced blocks, the headings of a bulletin and the cited items under them, entries
    of a recall as the command line prints them, and JSON values with the id of a memory or a
    receipt. Line ends stay, so that line numbers do.
    """
    unfenced, fences = _without_fences(text)
    bare, values = _without_json(unfenced)
    kept, blocks = _without_listings(bare)
    return kept, fences + values + blocks


def _without_fences(text: str) -> tuple[str, int]:
    kept: list[str] = []
    start = found = 0
    for opening in _FENCE.finditer(text):
        if opening.start() < start:
            continue
        closing = f"</{opening[1]}-{opening[2]}>"
        end = text.find(closing, opening.end())
        if end < 0:
            continue
        end += len(closing)
        kept += (text[start : opening.start()], _line_ends(text, opening.start(), end))
        start = end
        found += 1
    kept.append(text[start:])
    return "".join(kept), found


def _without_json(text: str) -> tuple[str, int]:
    if not _ID_IN_JSON.search(text):
        return text, 0
    decoder = json.JSONDecoder()
    kept: list[str] = []
    start = found = 0
    place = -1
    for _ in range(_MAX_JSON):
        place = _next_brace(text, max(place + 1, start))
        if place < 0:
            break
        try:
            value, end = decoder.raw_decode(text, place)
            ours = _is_ours(value)
        except (ValueError, RecursionError):
            ours, end = _ID_IN_JSON.search(text, place, place + _HEAD) is not None, place
            if not ours:
                continue
            # Cut off or changed by whoever pasted it: what looks like JSON goes.
            end = _json_lines_end(text, place)
        if ours:
            kept += (text[start:place], _line_ends(text, place, end))
            start = end
            found += 1
        else:
            place = end - 1
    kept.append(text[start:])
    return "".join(kept), found


def _json_lines_end(text: str, start: int) -> int:
    end = start
    for line in text[start:].splitlines(keepends=True):
        if end > start and line.strip() and not _JSON_LINE.match(line):
            break
        end += len(line)
    return end


def _next_brace(text: str, start: int) -> int:
    places = [place for mark in "{[" if (place := text.find(mark, start)) >= 0]
    return min(places, default=-1)


def _line_ends(text: str, start: int, end: int) -> str:
    return "\n" * text.count("\n", start, end)


def _is_ours(value: Any, depth: int = 0) -> bool:
    if depth > _MAX_DEPTH:
        return False
    if isinstance(value, list):
        return bool(value) and all(_is_ours(each, depth + 1) for each in value)
    if not isinstance(value, dict):
        return False
    ids = [value.get(key) for key in ("memory_id", "receipt_id", "id")]
    ids += value["memory_ids"][:1] if isinstance(value.get("memory_ids"), list) else []
    if any(isinstance(each, str) and _OUR_ID.match(each) for each in ids):
        return True
    return any(_is_ours(value[key], depth + 1) for key in _NESTED if key in value)


def _without_listings(text: str) -> tuple[str, int]:
    """Bulletins and printed recalls, line by line."""
    kept: list[str] = []
    blocks = 0
    state = ""
    for line in text.split("\n"):
        bare = line.strip()
        kept.append("")
        if _TITLE.match(bare):
            blocks += state != "bulletin"
            state = "bulletin"
        elif _RECALLED.match(bare):
            blocks += 1
            state = "recall"
        elif state and not bare:
            continue
        elif not (
            (state == "bulletin" and _CITED_ITEM.match(bare))
            # Under its heading an entry stands three columns in.
            or (state == "recall" and line.startswith("   "))
        ):
            state = ""
            kept[-1] = line
    return ("\n".join(kept), blocks) if blocks else (text, 0)
