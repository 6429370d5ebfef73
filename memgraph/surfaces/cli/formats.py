"""Format memories and edges as text for the commands."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from memgraph.clock import MS_PER_DAY, iso
from memgraph.rules.lifecycle import contradiction_state
from memgraph.surfaces.cli.files import counted, plain
from memgraph.surfaces.cli.screen import Screen

if TYPE_CHECKING:
    from memgraph.model.values import Edge, Memory, Source, Value

SUMMARY_CHARS = 80
_PROCESSED = "/memory/ingest/processed/"


def as_json(value: Value) -> dict[str, Any]:
    """Return a value as plain JSON; times are ISO 8601."""
    return value.model_dump(mode="json")


def short(text: str, limit: int = SUMMARY_CHARS) -> str:
    """Return a text as one line of at most ``limit`` characters."""
    flat = plain(" ".join(text.split()))
    return flat if len(flat) <= limit else flat[: limit - 1].rstrip() + "…"


def day(ms: int | None) -> str:
    """Return the date (UTC) of a time, or an empty string."""
    return "" if ms is None else iso(ms)[:10]


def moment(ms: int | None) -> str:
    """Return a time to the second in the time zone of this machine, or an empty string.

    A date without a time is stored as midnight UTC, so midnight UTC is shown as a date.
    """
    if ms is None:
        return ""
    if ms % MS_PER_DAY == 0:
        return day(ms)
    try:
        local = datetime.fromtimestamp(ms // 1000, UTC).astimezone()
    except (OverflowError, ValueError):  # near the limits of the calendar
        return f"{iso(ms)[:19].replace('T', ' ')} UTC"
    return local.strftime("%Y-%m-%d %H:%M:%S %Z")


def summary_of(memory: Memory) -> str:
    return memory.summary or memory.content


def status_of(memory: Memory) -> str:
    """Return the status as one word."""
    return memory.shown_status.value


def memory_line(memory: Memory) -> str:
    """Return a memory as one line: id, type, status unless active, and its first words."""
    status = status_of(memory)
    status_note = "" if status == "active" else f", {status}"
    beginning = f": {short(summary_of(memory))}" if memory.content else ""
    return f"{memory.memory_id}  {memory.type.value}{status_note}{beginning}"


def below_drop_zone(path: str) -> str:
    """Return an ingested file's path relative to the drop zone, as commands expect it.

    Other paths are returned unchanged.
    """
    return path.rpartition(_PROCESSED)[2]


def citation(source: Source) -> str:
    """Return a source as one line: its file, conversation, run or step, else its type."""
    parts = []
    if source.source_path is not None:
        path = below_drop_zone(source.source_path)
        parts.append(f"{path}#{source.locator or ''}".removesuffix("#"))
    for name, value in (
        ("conversation", source.conversation_id),
        ("run", source.workflow_run_id),
        ("step", source.step_id),
    ):
        if value is not None:
            parts.append(f"{name} {value}")
    if not parts:
        parts.append(f"{source.source_type.value} by {source.captured_by.value}")
    return ", ".join(parts)


def edge_line(edge: Edge, names: Mapping[str, str] | None = None) -> str:
    """Return an edge as one line: its ends, its type, and its state.

    Args:
        names: texts to show instead of memory ids.
    """
    notes = []
    if edge.partial:
        notes.append("partial")
    if edge.resolved_at is not None:
        notes.append(contradiction_state(edge.resolution))
    if edge.reason:
        notes.append(short(edge.reason))
    suffix = f" ({'; '.join(notes)})" if notes else ""
    from_name, to_name = ((names or {}).get(end, end) for end in (edge.from_id, edge.to_id))
    return f"{from_name} {edge.edge_type.value} {to_name}{suffix}"


def standing_of(edge: Edge, *, moot: bool) -> str:
    """Return the state of a contradiction with its dates."""
    since = day(edge.created_at)
    if edge.resolved_at is not None:
        state = contradiction_state(edge.resolution)
        return f"{state} on {day(edge.resolved_at)}, raised on {since}"
    return f"open since {since}" + (", moot: one side is no longer in force" if moot else "")


def outcome_of(edge: Edge) -> str | None:
    """Return the resolution of a contradiction with its reason; None while it is open."""
    resolution = edge.resolution
    if resolution is None:
        return None
    dismissed = contradiction_state(resolution) == "dismissed"
    outcome = "no contradiction" if dismissed else f"{resolution.get('winner_id', '?')} prevails"
    return f"{outcome}: {resolution.get('reason', '')}"


def show_memory(screen: Screen, memory: Memory) -> None:
    """Print a memory's whole content and all fields that have a value."""
    screen.heading(f"{memory.memory_id}  {memory.type.value}, {status_of(memory)}")
    screen.block(memory.content or "[erased]", indent=2)
    screen.fields([(name, value) for name, value in _fields(memory) if value])


def _fields(memory: Memory) -> list[tuple[str, str]]:
    scope = memory.scope.value + (f" {memory.scope_id}" if memory.scope_id else "")
    return [
        ("kind", memory.kind.value),
        ("importance", str(memory.importance)),
        ("confidence", f"{memory.confidence:g}"),
        ("decay rate", f"{memory.decay_rate:g} per day"),
        ("sensitivity", memory.sensitivity.value),
        ("scope", scope),
        ("agent", memory.agent_id or ""),
        ("session", memory.session_id or ""),
        ("turn", memory.turn_id or ""),
        ("speaker", memory.source_role or ""),
        ("event time", moment(memory.event_time)),
        ("created", moment(memory.created_at)),
        ("updated", moment(memory.updated_at)),
        ("valid until", moment(memory.valid_until)),
        ("accessed", counted(memory.access_count, "time") if memory.access_count else ""),
        ("tags", ", ".join(memory.tags)),
        ("attributes", str(memory.attributes) if memory.attributes else ""),
        ("source", memory.source_id),
    ]
