"""Show results to people: one table for lists, one outline for everything else, by type of result.

By default a value is a title, a line for each plain field, and a section for each other field. A
class may have other columns (``COLUMNS``), be one line (``LINES``), or have its own title and
fields (``DETAILS``). Classes are named, because importing the models takes time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from typing import Any, Final, get_args, get_type_hints

from pydantic import PlainSerializer
from pydantic.fields import FieldInfo

from memgraph.clock import iso
from memgraph.ids import short_id
from memgraph.model.enums import EdgeType
from memgraph.model.values import Memory, Value
from memgraph.surfaces.cli.formats import (
    NO_AGENT,
    citation,
    date_of,
    edge_line,
    journal_line,
    memory_line,
    moment,
    period_line,
    short,
    summary_of,
)
from memgraph.surfaces.cli.screen import Screen, counted

MOST_SHOWN: Final = 20
"""The maximum number of entries of a list inside of a result; ``--json`` has all."""
LINE_CHARS: Final = 160
SHORT_CHARS: Final = 30
"""The length from which on the values of a mapping stand on lines of their own."""
_MAX_COLUMNS: Final = 7
_MINUTES: Final = len("2026-01-31 08:30")
_HIDDEN: Final = frozenset(("next_after", "next_cursor", "cut", "cut_reasons"))
_NOTHING: Final[tuple[Any, ...]] = (None, "", (), [], {})

Memories = Mapping[str, Memory]
"""Memories by id, to be shown instead of their ids."""
Column = str | tuple[str, Callable[[Any], Any]]
"""A column of a table: the name of a field, or a title and a function of the row."""


@dataclass(frozen=True, slots=True)
class Detail:
    """The title of a value, or "", and its fields by label; empty ones are not shown."""

    title: str
    fields: Mapping[str, Any] = field(default_factory=dict)


def show_result(screen: Screen, result: Any) -> None:
    """Print a result: a table of a list or a page, or an outline."""
    if result is None:
        screen.line("done")
    elif isinstance(result, tuple | list):
        show_rows(screen, result)
    elif isinstance(result, Value | Mapping) or is_dataclass(result):
        show_detail(screen, result)
    else:
        screen.line(text_of(result))


def show_table(screen: Screen, rows: Sequence[Any], columns: Sequence[Column] = ()) -> None:
    """Print rows of one type as a table; by default with the columns of this type."""
    chosen = columns or COLUMNS.get(type(rows[0]).__name__) or _default_columns(rows)
    titles = [column if isinstance(column, str) else column[0] for column in chosen]
    titles[0] = "id" if titles[0].endswith("_id") else titles[0]
    cells = []
    for row in rows:
        values = fields_of(row, _MINUTES)
        cells.append(
            [
                text_of(values.get(column) if isinstance(column, str) else column[1](row))
                for column in chosen
            ]
        )
    screen.table([_TITLES.get(title, _label(title)) for title in titles], cells)


def _default_columns(rows: Sequence[Any]) -> Sequence[str]:
    """Return the first fields with values."""
    values = list(map(fields_of, rows))
    every = dict.fromkeys(name for row in values for name in row)
    names = [
        name
        for name in every
        if not any(_has_rows(row.get(name)) for row in values)
        and not all(row.get(name) in (*_NOTHING, False) for row in values)
    ]
    return (names or list(every))[:_MAX_COLUMNS]


def show_rows(screen: Screen, rows: Sequence[Any]) -> None:
    """Print a list: a table, or an entry or an outline for each value."""
    kind = type(rows[0]).__name__ if rows else ""
    if not rows:
        screen.line("nothing found")
    elif kind not in COLUMNS and _is_line(rows[0]):
        for row in rows:
            screen.entry(_line(row, {}))
    elif kind not in COLUMNS and (kind in DETAILS or _is_nested(rows[0])):
        for row in rows:
            show_detail(screen, row)
    else:
        show_table(screen, rows)


def show_detail(
    screen: Screen, result: Any, known: Memories | None = None, *, depth: int = 0
) -> None:
    """Print the title of a value, its plain fields, and a section for each other field."""
    known = known or getattr(result, "memory_by_id", None) or {}
    detail = _detail(result)
    values = detail.fields
    if detail.title:
        screen.entry(detail.title, depth=depth, style="" if depth else "bold")
        depth += 1
    elif not depth and len(values) == 1:
        [only] = values.values()
        if isinstance(only, tuple | list):
            show_rows(screen, only)
            values = {}
    if not depth:
        # A result without a title: zeros tell something, too.
        shown = {label: item for label, item in values.items() if item not in (None, "", {})}
        screen.fields(
            [(label, text_of(value)) for label, value in shown.items() if _is_flat(value)]
        )
        shown = {label: value for label, value in shown.items() if not _is_flat(value)}
    else:
        shown = {label: value for label, value in values.items() if value not in (*_NOTHING, 0)}
    for label, value in shown.items():
        if _is_flat(value):
            screen.entry(f"{label}: {_line(value, known)}", depth=depth)
        else:
            _show_section(screen, label, value, known, depth)
    if getattr(result, "cut", False):
        reasons = ", ".join(getattr(result, "cut_reasons", ()))
        text = f"there may be more{f' (cut: {reasons})' if reasons else ': use --limit'}"
        screen.entry(text, depth=depth)


def _show_section(screen: Screen, label: str, value: Any, known: Memories, depth: int) -> None:
    if not isinstance(value, tuple | list):
        line = f"{label}: {_line(value, known)}" if _is_line(value) else label
        screen.entry(line, depth=depth, style="" if depth else "bold")
        if not _is_line(value):
            show_detail(screen, value, known, depth=depth + 1)
        return
    if not _has_rows(value) and not known.keys() & {*value}:
        screen.entry(f"{label}: {', '.join(map(text_of, value)) or 'none'}", depth=depth)
        return
    if label:
        screen.entry(f"{label} ({len(value)})", depth=depth, style="bold")
    is_row = depth <= 1 and not isinstance(value[0], Detail | Mapping if depth else Detail)
    if type(value[0]).__name__ in COLUMNS or (is_row and not _is_nested(value[0])):
        show_table(screen, value[:MOST_SHOWN])
    else:
        for item in value[:MOST_SHOWN]:
            if _is_line(item):
                screen.entry(_line(item, known), depth=depth + 1)
            else:
                show_detail(screen, _titled(item, known), known, depth=depth + 1)
    if len(value) > MOST_SHOWN:
        screen.entry(f"and {len(value) - MOST_SHOWN} more: --json", depth=depth + 1, style="dim")


def _detail(result: Any) -> Detail:
    kind = type(result).__name__
    if isinstance(result, Detail):
        return result
    if kind in DETAILS:
        return DETAILS[kind](result)
    label = str if isinstance(result, Mapping) else _label
    values = {
        label(name): value for name, value in fields_of(result).items() if name not in _HIDDEN
    }
    memory = values.get("memory")
    if not isinstance(memory, Memory):
        return Detail("", values)
    return Detail(memory_line(memory), {**values, "memory": None, "at": None})


def _titled(value: Any, known: Memories) -> Any:
    """Return an item of a list with its plain fields as a title, unless it has one."""
    detail = _detail(value)
    if detail.title or isinstance(value, Mapping):
        return value
    in_line = {
        label: item for label, item in detail.fields.items() if _is_line(item) or _is_flat(item)
    }
    texts = (
        _line(item, known)
        if isinstance(item, str) or not _is_flat(item)
        else label
        if item is True
        else f"{label} {text_of(item)}"
        for label, item in in_line.items()
        if item not in (*_NOTHING, 0)
    )
    rest = {label: item for label, item in detail.fields.items() if label not in in_line}
    return Detail("  ".join(texts), rest)


def _label(name: str) -> str:
    return name.replace("_", " ")


def fields_of(value: Any, chars: int | None = None) -> dict[str, Any]:
    """Return the fields of a value by name, with times as texts of at most ``chars`` characters."""
    kind: Any = type(value)
    if isinstance(value, Mapping):
        return dict(_flattened(value))
    if isinstance(value, Value):
        names: Iterable[str] = kind.model_fields
    elif is_dataclass(value):
        names = [item.name for item in fields(value)]
    else:
        return {"": value}
    times = _times_of(kind)
    return {
        name: moment(getattr(value, name))[:chars] if name in times else getattr(value, name)
        for name in names
    }


def _flattened(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the entries of nested mappings, with dotted names."""
    for name, item in value.items():
        if isinstance(item, Mapping):
            yield from _flattened(item, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", item


@cache
def _times_of(kind: type) -> frozenset[str]:
    """Return the names of the fields that are times in milliseconds."""
    hints: Mapping[str, Any] = (
        kind.model_fields if issubclass(kind, Value) else get_type_hints(kind, include_extras=True)
    )
    return frozenset(name for name, hint in hints.items() if _has_time(hint))


def _has_time(hint: Any) -> bool:
    metadata = hint.metadata if isinstance(hint, FieldInfo) else get_args(hint)
    inner = get_args(hint.annotation) if isinstance(hint, FieldInfo) else get_args(hint)
    is_time = any(isinstance(item, PlainSerializer) and item.func is iso for item in metadata)
    return is_time or any(_has_time(item) for item in inner if get_args(item))


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float)


def _is_flat(value: Any) -> bool:
    """Return True for a value that is shown on one line."""
    if not isinstance(value, Mapping):
        return _is_plain(value)
    return all(_is_plain(item) and len(str(item)) < SHORT_CHARS for item in value.values())


def _is_line(value: Any) -> bool:
    return _is_plain(value) or type(value).__name__ in LINES


def _has_rows(value: Any) -> bool:
    """Return True for a list of values that are not plain."""
    return isinstance(value, tuple | list) and not all(map(_is_plain, value))


def _is_nested(value: Any) -> bool:
    """Return True for a value of which some fields do not fit into a table."""
    return type(value).__name__ in LINES or any(map(_has_rows, fields_of(value).values()))


def _line(value: Any, known: Memories) -> str:
    """Return a value as one line; the id of a known memory as the line of the memory."""
    if type(value).__name__ in LINES:
        return LINES[type(value).__name__](value, known)
    memory = known.get(value) if isinstance(value, str) else None
    return text_of(value) if memory is None else memory_line(memory)


def text_of(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Mapping):
        pairs = ((name, text_of(item)) for name, item in value.items())
        return short(", ".join(f"{name} {text}" for name, text in pairs if text), LINE_CHARS)
    if isinstance(value, tuple | list):
        return short(", ".join(map(text_of, value)), LINE_CHARS)
    if type(value).__name__ in LINES:
        return _line(value, {})
    if isinstance(value, Value) or is_dataclass(value):
        return text_of(fields_of(value))
    return short(str(value), LINE_CHARS)


def _receivers(value: Any) -> str:
    """Return whom a receipt is for: run, conversation and so on, as far as known."""
    asked = getattr(value, "asked", {})
    kinds = ("conversation_id", "workflow_run_id", "step_id", "task_id", "project_id", "agent_id")
    labels = ((name, getattr(value, name, None) or asked.get(name)) for name in kinds)
    return ", ".join(
        f"{name.removesuffix('_id').removeprefix('workflow_')} {item}"
        for name, item in labels
        if item and (name, item) != ("agent_id", NO_AGENT)
    )


def _edge(edge: Any, known: Memories) -> str:
    names = {end: memory_line(known[end]) for end in (edge.from_id, edge.to_id) if end in known}
    return edge_line(edge, names)


def _source_line(line: Any, _: Any) -> str:
    """Return a line of a file, shortened, with its number and its indentation."""
    indent = min(len(line.text) - len(line.text.lstrip()), LINE_CHARS // 2)
    text = " " * indent + short(line.text, LINE_CHARS - indent)
    return text if line.number is None else f"{line.number}: {text}"


def _premise(premise: Any, _: Any) -> str:
    how = premise.reason or ""
    if premise.replaced_by:
        how = f"by {', '.join(map(short_id, premise.replaced_by))}"
    ended = f"{premise.ended} {moment(premise.ended_at)} by {premise.actor}"
    return f"{memory_line(premise.ground)} ({ended}{how and f': {short(how)}'})"


LINES: Final[Mapping[str, Callable[[Any, Memories], str]]] = {
    "Memory": lambda memory, _: memory_line(memory),
    "Edge": _edge,
    "StoredSource": lambda source, _: f"from {citation(source)}",
    "MemorySupport": lambda item, _: f"from {citation(item.source)}, added {moment(item.added_at)}",
    "StatusPeriod": lambda period, _: period_line(period),
    "JournalNote": lambda note, _: journal_line(note),
    "SourceLine": _source_line,
    "SourceTurn": lambda turn, _: f"{turn.speaker or 'unknown'}, {moment(turn.at)}: {turn.text}",
    "InvalidPremise": _premise,
    "StaleMemory": lambda item, _: (
        f"{memory_line(item.memory)}; depends on {_premise(item.premise, {})}"
    ),
}
"""The classes that are one line, by name; the second argument has the memories by id."""


def links(
    items: Sequence[Any],
    known: Memories,
    stale: Iterable[str] = (),
    reasons: Mapping[str, str | None] | None = None,
) -> list[Detail]:
    """Return links as lines, each indented below the one by which it was reached.

    Args:
        reasons: why a memory was linked, by its id.
    """
    below: dict[str, list[Any]] = {}
    reached = {item.memory_id for item in items}
    for item in items:
        below.setdefault(item.via_id if item.via_id in reached else "", []).append(item)

    def line(item: Any) -> Detail:
        how = "derived" if item.edge_type is None else item.edge_type.value
        note = " (stale)" if item.memory_id in stale else ""
        text = f"{how}: {_line(item.memory_id, known)}{note}"
        reason = (reasons or {}).get(item.memory_id)
        return Detail(text, {"reason": reason or "", "": lines(item.memory_id)})

    def lines(via_id: str) -> list[Detail]:
        return list(map(line, below.pop(via_id, ())))

    return lines("")


def _trace(trace: Any) -> Detail:
    known, memory_id = trace.memory_by_id, trace.memory.memory_id
    undecided = (*trace.open_contradictions, *trace.probable_changes)
    # What replaces, causes or contains is a link already.
    others = [
        edge
        for edge in (*trace.edges_out, *trace.edges_in)
        if edge not in undecided
        and (
            edge.edge_type in (EdgeType.RELATED_TO, EdgeType.CONTRADICTS)
            or (edge.edge_type is EdgeType.UPDATES and edge.weight < 1.0)
        )
    ]
    names = {item: memory_line(memory) for item, memory in known.items()} | {memory_id: "this"}
    edges = {
        label: [Detail(edge_line(edge, names)) for edge in items]
        for label, items in (
            ("open contradictions", trace.open_contradictions),
            ("probable changes", trace.probable_changes),
            ("other edges", others),
        )
    }
    updates = [
        (edge, {edge.from_id, edge.to_id} - {memory_id})
        for edge in (*trace.edges_out, *trace.edges_in)
        if edge.edge_type is EdgeType.UPDATES and edge.weight >= 1.0
    ]
    reasons = {other: edge.reason for edge, others in updates for other in others}
    sent = trace.handed_out
    return Detail(
        memory_line(trace.memory),
        {
            "source": trace.source,
            "further sources": trace.supports,
            "independent sources": trace.independent_sources - 1 and trace.independent_sources,
            "status": trace.status_history,
            "replaced by": links(trace.replaced_by, known, reasons=reasons),
            "replaces": links(trace.replaced, known, reasons=reasons),
            "depends on": links(trace.grounds, known, trace.stale_grounds),
            "dependents": links(trace.dependents, known, trace.stale_dependents),
            **edges,
            "journal": trace.journal,
            "handed out": f"{counted(sent.count, 'time')}, last {moment(sent.last_at)}"
            if sent.count
            else "",
        },
    )


def _evidence(report: Any) -> Detail:
    known = report.memory_by_id
    read = [
        Detail(
            f"from {citation(item.source)}: {_line(item.memory_id, known)}"
            + ("" if item.state in ("none", "kept") else f" ({item.state})"),
            {"lines": item.lines, "turns": item.turns},
        )
        for item in report.lines
    ]
    title = memory_line(known[report.memory_id]) if report.memory_id else None
    return Detail(
        title or f"run {report.workflow_run_id}",
        {
            "depends on": links(report.links, known),
            "received before": report.given,
            "hand outs": report.hand_outs,
            "further sources": report.supports,
            "sources": read,
        },
    )


def _titles(line: Callable[[Any], str], *used: str) -> Callable[[Any], Detail]:
    """Return the default detail with a title; ``used`` are the fields that it contains."""
    hidden = _HIDDEN.union(used)
    return lambda item: Detail(
        line(item),
        {_label(name): value for name, value in fields_of(item).items() if name not in hidden},
    )


DETAILS: Final[Mapping[str, Callable[[Any], Detail]]] = {
    "Trace": _trace,
    "EvidenceReport": _evidence,
    "Impact": lambda impact: Detail(
        memory_line(impact.memory_by_id[impact.memory_id]),
        {
            "derived": links(impact.derived, impact.memory_by_id),
            "purposes": impact.purposes,
            "own hand outs": impact.own_hand_outs,
            "further hand outs": impact.further_hand_outs,
            "runs": impact.runs,
            "conversations": impact.conversations,
        },
    ),
    "Diff": _titles(
        lambda diff: f"after {moment(diff.since)} until {moment(diff.until)}", "since", "until"
    ),
    "SourceRetraction": _titles(
        lambda item: (
            f"{counted(item.retracted, 'memory', 'memories')}"
            f" {'would be' if item.dry_run else 'were'} retracted"
        ),
        *("kind", "name", "dry_run"),
    ),
    "ErasureReport": _titles(
        lambda item: (
            counted(len(item.memory_ids), "memory", "memories")
            + (" would be erased" if item.dry_run else f" erased, {item.erasure_id}")
        ),
        *("orchestrator", "erasure_id", "started_at", "ended_at", "dry_run"),
    ),
    "EntityProfile": _titles(
        lambda item: f"{item.canonical_name}  {item.type.value}", "canonical_name", "type"
    ),
    "Receipt": _titles(
        lambda item: f"{item.receipt_id}  {item.purpose or 'recall'}, {moment(item.at)}",
        *("receipt_id", "purpose", "at", "counts", "items", "answer"),
    ),
}
"""The titles and fields of results, by the name of the class."""


_ID: Final = ("id", lambda row: short_id(row.memory_id))
_IDS: Final = ("memories", lambda row: list(map(short_id, row.memory_ids)))
_TITLES: Final = {"actor": "by", "at": "when", "purpose": "what for"}
"""The titles of columns that are not the name of their field."""
COLUMNS: Final[Mapping[str, Sequence[Column]]] = {
    "TierItem": (
        _ID,
        ("text", lambda item: item.payload.get("text", item.payload)),
        "kind",
        ("date", lambda item: item.timestamp[:10]),
        "importance",
    ),
    "Memory": (
        _ID,
        "type",
        ("status", lambda memory: memory.shown_status.value),
        ("date", date_of),
        ("text", lambda memory: short(summary_of(memory), LINE_CHARS)),
    ),
    "Receipt": (
        "receipt_id",
        ("query", lambda item: item.query or ("(not kept)" if item.query_sha256 else "")),
        "at",
        ("memories", lambda item: len(item.items)),
        ("what for", lambda item: item.purpose or "recall"),
        ("for whom", _receivers),
    ),
    "ReceiptItem": (
        _ID,
        ("score", lambda item: f"{item.score:.5f}"),
        "legs",
        (
            "modifiers",
            lambda item: {
                name: f"{value:.3f}" for name, value in item.modifiers.items() if value != 1
            },
        ),
        "reasons",
    ),
    "ReceiptMention": ("receipt_id", "at", "purpose", ("for whom", _receivers), _IDS),
    "MemoryEvent": (_ID, "text", "type", "actor", "at", "reason"),
    "PairEvent": (
        ("id", lambda event: short_id(event.edge_id)),
        (
            "between",
            lambda event: (
                f"{short_id(event.first_id)}: {event.first_text}"
                f" / {short_id(event.second_id)}: {event.second_text}"
            ),
        ),
        "actor",
        "at",
        ("prevails", lambda event: event.winner_id and short_id(event.winner_id)),
        "reason",
    ),
    "HealthExample": (_IDS, "text"),
    "JobRun": (
        "job",
        "state",
        "started_at",
        (
            "took",
            lambda run: (
                "" if run.ended_at is None else f"{(run.ended_at - run.started_at) / 1000:.1f} s"
            ),
        ),
        "trigger",
        ("remark", lambda run: run.remark),
        ("counts", lambda run: {name: count for name, count in run.counts.items() if count}),
        "due_at",
    ),
}
"""The columns of tables, the most important first, by the name of the rows' class."""
