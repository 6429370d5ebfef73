"""Parse plain text: as a conversation if it looks like one, otherwise as a note."""

from __future__ import annotations

from ingest.candidates import ParsedDocument
from ingest.parsers.blocks import FrontMatter
from ingest.parsers.notes import parse_note
from ingest.parsers.transcript import is_transcript, parse_transcript
from memgraph.text.blocks import read_lines, sections
from memgraph.text.dates import DateOrder, read_date

_HEAD_LINES = 10
_DATE_FIELDS = ("date", "datum", "fecha", "sent")


def parse_text(document: ParsedDocument, order: DateOrder | None = None) -> None:
    """Add the episodes of a transcript, or the lines and paragraphs of a note.

    A date on a line of its own dates the following text; a field "Date:" at the top, all of it.
    """
    if is_transcript(document.text):
        parse_transcript(document, document.text, order)
        return
    document.format = "prose"
    source = document.text.split("\n")
    parts, dated = sections(read_lines(source)), _date_at_head(source, order)
    parse_note(document, parts, source, FrontMatter(), order, event_time=dated)


def _date_at_head(source: list[str], order: DateOrder | None) -> int | None:
    for line in source[:_HEAD_LINES]:
        name, colon, value = line.partition(":")
        if not colon or not line.strip():
            return None
        if name.strip().casefold() in _DATE_FIELDS:
            return read_date(value, alone=False, order=order)
    return None
