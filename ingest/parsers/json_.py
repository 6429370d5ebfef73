"""Parse JSON by its structure: memories, conversations, exports of other tools, or records."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, NoReturn

from ingest.candidates import MAX_PASSAGE_CHARS, ParsedDocument, split_long
from ingest.parsers.chats import (
    CHATGPT,
    CLAUDE,
    find_chats,
    is_chatgpt,
    is_claude,
    is_slack_day,
    is_slack_list,
    parse_chats,
    parse_export,
    parse_slack_day,
    slack_users,
)
from ingest.parsers.memories import is_mem0, is_memories_document, parse_mem0, parse_memories
from ingest.parsers.notes import CONFIDENCE, add_line, join_parts
from ingest.parsers.passages import passages
from ingest.reasons import RejectionReason, refuse
from memgraph.errors import IngestRejected
from memgraph.model.enums import MemoryType
from memgraph.text.blocks import read_lines, sections
from memgraph.text.dates import settled
from memgraph.text.labels import type_named

Above = Callable[[str], str | None]
"""Returns the text of a file in the folder above the current file's; None if it does not exist."""
SHAPES: Final = (
    '{"memories": [...]}, {"messages": [...]}, an export of ChatGPT, Claude, Slack or mem0,'
    " or a list of records with the same plain fields"
)
_RECORD_IMPORTANCE: Final = 30
# A longer text is read by its lines.
_MAX_FIELD_CHARS: Final = 200
# Files with the names of Slack's users, next to the channels' folders.
_SLACK_USERS: Final = ("users.json", "org_users.json")
_TIME_FIELDS: Final = ("timestamp", "time", "date", "datetime", "created_at", "updated_at")


def parse_json(document: ParsedDocument, above: Above) -> None:
    """Parse JSON with the parser for its structure.

    Args:
        above: reads a file in the folder above the one that contains the file.

    Raises:
        IngestRejected: not strict JSON, an invalid document of memories, or json_shape_unknown.
    """
    value = load_json(document.text)
    if is_mem0(value):
        parse_mem0(document, value)
    elif is_memories_document(value):
        parse_memories(document, value)
    elif is_chatgpt(value):
        parse_export(document, value, CHATGPT)
    elif is_claude(value):
        parse_export(document, value, CLAUDE)
    elif is_slack_day(value):
        names = (_names_in(above(name) or "[]") for name in _SLACK_USERS)
        parse_slack_day(document, value, dict(user for each in names for user in each.items()))
    elif chats := find_chats(value):
        parse_chats(document, chats)
    elif is_slack_list(value):
        document.format, document.origin = "observations", "Slack"
    elif value in ([], {}):
        document.format = "observations"
    elif (are_records := _are_records(value)) or _has_prose(value):
        document.format = "observations"
        _read(document, value)
        if document.candidates and not are_records:
            join_parts(document, document.candidates[0])
    else:
        raise refuse(
            RejectionReason.JSON_SHAPE_UNKNOWN,
            f"the JSON has no known shape; expected {SHAPES}",
            found=_described(value),
        )


@lru_cache(maxsize=4)
def _names_in(users: str) -> Mapping[str, str]:
    """Return the names in users.json by id; cached, since all days of an export read this file."""
    try:
        return slack_users(load_json(users))
    except IngestRejected:
        return {}


def _are_records(value: Any) -> bool:
    """Return True for a table: at least two objects with the same plain fields."""
    if not isinstance(value, list) or len(value) < 2:
        return False
    return all(
        isinstance(record, dict)
        and record.keys() == value[0].keys()
        and not any(isinstance(field, dict | list) for field in record.values())
        and any(isinstance(field, str) and field.strip() for field in record.values())
        for record in value
    )


def _has_prose(value: Any) -> bool:
    """Return True if a string in the value has words."""
    if isinstance(value, dict):
        return any(map(_has_prose, value.values()))
    if isinstance(value, list):
        return any(map(_has_prose, value))
    return isinstance(value, str) and " " in value.strip()


def _read(
    document: ParsedDocument,
    value: Any,
    pointer: str = "",
    above: tuple[str, ...] = (),
    moment: int | None = None,
) -> None:
    """Add a value at a pointer, below the names ``above`` it: a line for the short fields of an
    object, and the lines of prose.
    """
    if isinstance(value, dict):
        _read_object(document, value, pointer, above, moment)
    elif isinstance(value, list):
        for place, item in enumerate(value):
            _read(document, item, f"{pointer}/{place}", above, moment)
    elif text := _text(value):
        source = text.split("\n")
        for part in sections(read_lines(source)):
            section = (*above, *part.path, *filter(None, (part.title,)))
            for passage in passages(part.blocks, source):
                add_line(
                    document,
                    passage,
                    event_time=moment,
                    tags=("json",),
                    section=section,
                    locator=pointer or "#",
                )


def _read_object(
    document: ParsedDocument,
    value: dict[str, Any],
    pointer: str,
    above: tuple[str, ...],
    moment: int | None,
) -> None:
    times = (document.json_times(value.get(name)) for name in _TIME_FIELDS)
    moment = settled(times, moment)
    short = {name: item for name, item in value.items() if _is_short(name, item)}
    fields = [f"{_name(name)}: {_text(item)}" for name, item in short.items() if _text(item)]
    for piece in split_long("; ".join(fields), MAX_PASSAGE_CHARS):
        document.add(
            piece,
            pointer or "#",
            type=MemoryType.OBSERVATION,
            importance=_RECORD_IMPORTANCE,
            confidence=CONFIDENCE,
            event_time=moment,
            tags=("json",),
            attributes={"section": " / ".join(above)} if above else {},
        )
    for name, item in value.items():
        if name not in short:
            inner = f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}"
            _read(document, item, inner, (*above, _name(name)), moment)


def _is_short(name: str, item: Any) -> bool:
    """Return True for a field that is read together with the others of its object."""
    if isinstance(item, dict | list) or type_named(name) is not None:
        return False
    return not isinstance(item, str) or ("\n" not in item and len(item) <= _MAX_FIELD_CHARS)


def _name(name: str) -> str:
    return " ".join(name.split())[:200]


def _text(field: Any) -> str:
    if field is None:
        return ""
    return field.strip() if isinstance(field, str) else json.dumps(field)


def _described(value: Any) -> str:
    if isinstance(value, dict):
        names = ", ".join(name[:40] for name in list(value)[:10])
        return f"an object with the fields {names}"
    if isinstance(value, list):
        kinds = sorted({type(item).__name__ for item in value[:1000]})
        return f"a list of {len(value)} items: {', '.join(kinds)}"
    return "a single value"


MAX_DEPTH = 64
MAX_INTEGER = 2**63 - 1
_MAX_DIGITS = 19

# A string, or a bracket. The closing quote may be missing, so that no position is tried twice.
_MARK = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[\]{}]', re.DOTALL)
_ESCAPED = re.compile(r"\\u(?:[dD][89a-fA-F]|0000)")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def load_json(text: str) -> Any:
    """Parse strict JSON.

    Raises:
        IngestRejected: json_invalid (also for NaN, an integer beyond 64 bits, a float that
            overflows, NUL and half a surrogate pair), json_duplicate_key or json_too_deep (over
            ``MAX_DEPTH``).
    """
    _check_depth(text)
    try:
        value = json.loads(
            text,
            object_pairs_hook=_unique,
            parse_constant=_no_constant,
            parse_int=_integer,
            parse_float=_number,
        )
    except json.JSONDecodeError as error:
        raise refuse(
            RejectionReason.JSON_INVALID,
            "the file is not JSON, or it was truncated: "
            f"{error.msg} in line {error.lineno}, column {error.colno}",
            line=error.lineno,
            column=error.colno,
            problem=error.msg,
        ) from None
    if _ESCAPED.search(text) and any(map(_UNSTORABLE.search, _strings(value))):
        raise refuse(
            RejectionReason.JSON_INVALID,
            "NUL and half of a surrogate pair are not characters of a text",
        )
    return value


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for item in value if isinstance(value, list | dict) else ():
        yield from _strings(item)
    for item in value.values() if isinstance(value, dict) else ():
        yield from _strings(item)


def _check_depth(text: str) -> None:
    """Check the depth before parsing, since only the interpreter's stack limits the parser."""
    depth = 0
    for match in _MARK.finditer(text):
        mark = text[match.start()]
        if mark in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                raise refuse(
                    RejectionReason.JSON_TOO_DEEP,
                    f"the JSON is nested deeper than {MAX_DEPTH} levels",
                    limit=MAX_DEPTH,
                )
        elif mark in "]}":
            depth -= 1


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        names = Counter(name for name, _ in pairs)
        raise refuse(
            RejectionReason.JSON_DUPLICATE_KEY,
            "an object has the same field twice",
            field=names.most_common(1)[0][0][:80].encode("utf-8", "replace").decode(),
        )
    return fields


def _no_constant(_: str) -> NoReturn:
    raise refuse(RejectionReason.JSON_INVALID, "NaN and Infinity are not JSON numbers")


def _integer(digits: str) -> int:
    value = int(digits) if len(digits.lstrip("-")) <= _MAX_DIGITS else MAX_INTEGER + 1
    if not -MAX_INTEGER - 1 <= value <= MAX_INTEGER:
        raise _too_large()
    return value


def _number(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise _too_large()
    return value


def _too_large() -> IngestRejected:
    return refuse(RejectionReason.JSON_INVALID, "a number is too large: write it as text")
