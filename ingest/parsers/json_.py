"""JSON by its structure: memories, conversations, exports of other tools, or a table of records."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from ingest.candidates import (
    MAX_PASSAGE_CHARS,
    IngestCandidate,
    KeySource,
    ParsedDocument,
    ParseFinding,
    split_long,
)
from ingest.dates import read_json_time
from ingest.parsers.chat_exports import is_chatgpt, is_claude, parse_chatgpt, parse_claude
from ingest.parsers.chat_json import find_chats, parse_chats
from ingest.parsers.file_names import document_keys, title_of
from ingest.parsers.memories_json import (
    is_mem0,
    is_memories_document,
    parse_mem0,
    parse_memories,
)
from ingest.parsers.slack import Above, is_slack_day, is_slack_list, no_file_above, parse_slack_day
from ingest.parsers.strict_json import load_json
from ingest.reasons import RejectionReason, refuse
from memgraph.model.enums import MemoryType

SHAPES: Final = (
    '{"memories": [...]}, {"messages": [...]}, an export of ChatGPT, Claude, Slack or mem0,'
    " or a list of records with the same plain fields"
)
_RECORD_IMPORTANCE: Final = 30
_RECORD_CONFIDENCE: Final = 0.8
_WHEN: Final = ("timestamp", "time", "date", "datetime", "created_at", "updated_at")


def parse_json(
    text: str, path: str, findings: tuple[ParseFinding, ...] = (), above: Above = no_file_above
) -> ParsedDocument:
    """Return the document for the structure of the JSON.

    Args:
        above: reads a file of the parent folder of ``path``.

    Raises:
        IngestRejected: not strict JSON, a document of memories that breaks the rules, or
            json_shape_unknown.
    """
    value = load_json(text)
    if is_memories_document(value):
        return parse_memories(value, path, findings)
    if is_mem0(value):
        return replace(parse_mem0(value, path, findings), origin="mem0")
    if is_chatgpt(value):
        return replace(parse_chatgpt(value, path, findings), origin="ChatGPT")
    if is_claude(value):
        return replace(parse_claude(value, path, findings), origin="Claude")
    if is_slack_day(value):
        return replace(parse_slack_day(value, path, findings, above), origin="Slack")
    if chats := find_chats(value):
        return parse_chats(chats, path, findings)
    if is_slack_list(value):
        return replace(_document((), path, findings), origin="Slack")
    if value in ([], {}):
        return _document((), path, findings)
    if _are_records(value):
        return _document(tuple(_records(value)), path, findings)
    raise refuse(
        RejectionReason.JSON_SHAPE_UNKNOWN,
        f"the JSON has none of the known shapes: {SHAPES}",
        found=_described(value),
    )


def _are_records(value: Any) -> bool:
    """Return True for a table: at least two objects with the same plain fields."""
    if not isinstance(value, list) or len(value) < 2:
        return False
    return all(
        isinstance(each, dict)
        and each.keys() == value[0].keys()
        and not any(isinstance(field, dict | list) for field in each.values())
        and any(isinstance(field, str) and field.strip() for field in each.values())
        for each in value
    )


def _records(value: list[dict[str, Any]]) -> Iterator[IngestCandidate]:
    keys = KeySource()
    for place, record in enumerate(value):
        fields = [
            f"{' '.join(name.split())[:200]}: {_text(field)}"
            for name, field in record.items()
            if field is not None and _text(field)
        ]
        times = (read_json_time(record.get(name)) for name in _WHEN)
        moment = next((time for time in times if time is not None), None)
        for piece in split_long("; ".join(fields), MAX_PASSAGE_CHARS):
            yield IngestCandidate(
                keys.new(),
                piece,
                f"/{place}",
                type=MemoryType.OBSERVATION,
                importance=_RECORD_IMPORTANCE,
                confidence=_RECORD_CONFIDENCE,
                event_time=moment,
                tags=("json",),
            )


def _text(field: Any) -> str:
    return field.strip() if isinstance(field, str) else json.dumps(field)


def _document(
    made: tuple[IngestCandidate, ...], path: str, findings: tuple[ParseFinding, ...]
) -> ParsedDocument:
    return ParsedDocument(
        "observations",
        made,
        findings=findings,
        title=title_of(path),
        main_key=made[0].key if made else None,
        document_keys=document_keys(path),
    )


def _described(value: Any) -> str:
    if isinstance(value, dict):
        names = ", ".join(name[:40] for name in list(value)[:10])
        return f"an object with the fields {names}"
    if isinstance(value, list):
        kinds = sorted({type(each).__name__ for each in value[:1000]})
        return f"a list of {len(value)} items: {', '.join(kinds)}"
    return "a single value"
