"""Format times, memories, edges and sources as text for people."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime

from memgraph.clock import is_mere_date, iso
from memgraph.ids import short_id
from memgraph.model.conversation import HAPPENED
from memgraph.model.enums import EdgeType
from memgraph.model.graph import JournalNote, TracedEdge
from memgraph.model.values import Edge, Memory, Source, StatusPeriod
from memgraph.rules.lifecycle import contradiction_state
from memgraph.rules.similarity import MEMORY_ID
from memgraph.surfaces.cli.screen import plain
from memgraph.text.dates import period_of

SUMMARY_CHARS = 80
_PROCESSED = "/memory/ingest/processed/"


def short(text: str, limit: int = SUMMARY_CHARS) -> str:
    """Return a text as one line of at most ``limit`` characters."""
    flat = plain(" ".join(text.split()))
    return flat if len(flat) <= limit else flat[: limit - 1].rstrip() + "…"


def day(ms: int | None) -> str:
    """Return the date (UTC) of a time, or an empty string."""
    return "" if ms is None else iso(ms)[:10]


def moment(ms: int | None) -> str:
    """Return a time to the second in the time zone of this machine, or an empty string.

    A date without a time of day is shown as a date.
    """
    if ms is None:
        return ""
    if is_mere_date(ms):
        return day(ms)
    try:
        local = datetime.fromtimestamp(ms // 1000, UTC).astimezone()
    except (OverflowError, ValueError):  # near the limits of the calendar
        return f"{iso(ms)[:19].replace('T', ' ')} UTC"
    return local.strftime("%Y-%m-%d %H:%M:%S %Z")


def summary_of(memory: Memory) -> str:
    return memory.summary or memory.content


def memory_line(memory: Memory) -> str:
    """Return a memory as one line: short id, type, status unless active, and its first words."""
    status = memory.shown_status.value
    status_note = "" if status == "active" else f", {status}"
    beginning = f": {short(summary_of(memory))}" if memory.content else ""
    return f"{short_id(memory.memory_id)}  {memory.type.value}{status_note}{beginning}"


def citation(source: Source) -> str:
    """Return a source as one line: its file, conversation, run or step, else its type.

    An ingested file is relative to the drop zone, as commands expect it.
    """
    path = (source.source_path or "").rpartition(_PROCESSED)[2]
    parts = (
        f"{path}#{source.locator or ''}".strip("#"),
        *(
            f"{name} {value}"
            for name, value in (
                ("conversation", source.conversation_id),
                ("run", source.workflow_run_id),
                ("step", source.step_id),
            )
            if value is not None
        ),
    )
    origin = f"{source.source_type.value} by {source.captured_by.value}"
    return ", ".join(filter(None, parts)) or origin


def with_short(memory_id: str | None) -> str:
    """Return the id of a memory with its short id, which commands accept."""
    return "" if memory_id is None else f"{memory_id} (#{short_id(memory_id)})"


def edge_line(edge: Edge, names: Mapping[str, str] | None = None) -> str:
    """Return an edge as one line: its ends, what one is to the other, and its state.

    A contradiction or a mark is shown with its short id, by which it is decided, and an open mark
    with its probability, too.

    Args:
        names: texts to show instead of short ids, by memory id.
    """
    notes = []
    if edge.is_open_mark:
        notes.append(f"{edge.weight:.0%}, {short_id(edge.edge_id)}")
    elif edge.edge_type is EdgeType.CONTRADICTS:
        notes.append(short_id(edge.edge_id))
    if contradiction_state(edge.resolution) == "dismissed":
        notes.append("dismissed")
    elif reason := reason_of(edge):
        notes.append(short(reason))
    if isinstance(edge, TracedEdge) and edge.undone_at is not None:
        notes.append(f"undone on {day(edge.undone_at)}")
    suffix = f" ({'; '.join(notes)})" if notes else ""
    first, second = ((names or {}).get(end, short_id(end)) for end in (edge.from_id, edge.to_id))
    return f"{first} {edge.relation} {second}{suffix}"


def reason_of(edge: Edge) -> str | None:
    """Return the reason of an edge; None if it only quotes the other statement, as a mark's."""
    quotes = edge.weight < 1.0 and (edge.reason or "").startswith("probably ")
    return None if quotes else edge.reason


def journal_line(note: JournalNote) -> str:
    """Return an entry of the journal as one line: when, what, by whom and why."""
    reason = note.details.get("reason")
    return f"{moment(note.at)}  {note.action} by {note.actor}" + (f": {reason}" if reason else "")


def period_line(period: StatusPeriod) -> str:
    """Return a status as one line: since when, by whom and why, with the short ids of memories."""
    why = re.sub(MEMORY_ID, lambda found: short_id(found[0]), period.reason or "")
    return f"{moment(period.since)}  {period.status.value} by {period.actor}{why and f': {why}'}"


def event_period(memory: Memory) -> str:
    """Return the year or the month of a memory's event, if no day is known; else an empty text."""
    return period_of(memory.attributes.get(HAPPENED), memory.event_time)


def date_of(memory: Memory, source: Source | None = None) -> str:
    """Return when it happened, or else when it was said; a file may have no date."""
    from memgraph.rules.lines import UNDATED, known_date

    at = memory.said_at if source is None else known_date(memory, source)
    return event_period(memory) or day(at) or UNDATED
