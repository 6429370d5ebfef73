"""JSON: the project's own document, a conversation, or anything else."""

from __future__ import annotations

from ingest.candidates import Finding, ParsedDocument
from ingest.parsers.chat_json import find_chats, parse_chats
from ingest.parsers.memories_json import is_memories_document, parse_memories
from ingest.parsers.records_json import parse_records
from ingest.parsers.strict_json import load_json


def parse_json(text: str, path: str, findings: tuple[Finding, ...] = ()) -> ParsedDocument:
    """The document in the shape that it has.

    Raises:
        IngestRejected: not strict JSON, or a document of memories that breaks the rules.
    """
    value = load_json(text)
    if is_memories_document(value):
        return parse_memories(value, path, findings)
    if chats := find_chats(value):
        return parse_chats(chats, path, findings)
    return parse_records(value, path, findings)
