"""Show results to people: a table of rows, or a title, fields and sections, by type of result.

By default a value shows all its fields. A class may be one line (``LINES``), or show other fields
(``FIELDS``) or columns (``COLUMNS``). Classes are named, because importing the models takes time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import PurePosixPath
from typing import Any, Final

from memgraph.ids import short_id
from memgraph.model.values import Memory, Value
from memgraph.surfaces.cli.formats import (
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
_MAX_COLUMNS: Final = 7
_MINUTES: Final = len("2026-01-31 08:30")
_HIDDEN: Final = frozenset(("next_after", "next_cursor", "cut", "cut_reasons"))
_TIMES: Final = frozenset(("at", "since", "until", "time", "seen"))
"""The last words of the names of fields that are times in milliseconds."""
_NOTHING: Final[tuple[Any, ...]] = (None, "", "none", (), [], {})

Known = Mapping[str, str]
"""Texts to show instead of the ids of memories."""
Column = str | tuple[str, Callable[[Any], Any]]
"""A column of a table: the name of a field, or a title and a function of the row."""


def show_result(screen: Screen, result: Any, known: Known | None = None) -> None:
    """Print a result: rows, or a value in detail."""
    if isinstance(result, tuple | list):
        show_rows(screen, result, known or {})
    elif _is_plain(result):
        screen.line(text_of(result) or "done")
    else:
        show_detail(screen, result, known or {})


def show_rows(screen: Screen, rows: Sequence[Any], known: Known, indent: int = 0) -> None:
    """Print a list: a line or an outline for each value, or a table."""
    kind = type(rows[0]).__name__ if rows else ""
    if not rows:
        screen.line("nothing found")
    elif kind in COLUMNS:
        show_table(screen, rows, known)
    elif _is_line(rows[0]):
        for row in rows:
            screen.block(_line(row, known), indent=indent)
    elif kind in FIELDS or any(_is_nested(item) for item in fields_of(rows[0]).values()):
        for row in rows:
            show_detail(screen, row, known, indent)
    else:
        show_table(screen, rows, known)


def show_table(
    screen: Screen,
    rows: Sequence[Any],
    known: Known | None = None,
    columns: Sequence[Column] = (),
) -> None:
    """Print rows of one type as a table, with the short ids of memories and of edges."""
    values = [fields_of(row, _MINUTES) for row in rows]
    columns = [*(columns or COLUMNS.get(type(rows[0]).__name__) or _default_columns(values))]
    if known and "memory_id" in values[0]:
        columns.insert(1, ("text", lambda row: known.get(row.memory_id, "")))
    cells = [
        [
            text_of(_shown_id(column, row.get(column, getattr(item, column, None))))
            if isinstance(column, str)
            else text_of(column[1](item))
            for column in columns
        ]
        for item, row in zip(rows, values, strict=True)
    ]
    titles = [
        column.replace("_", " ") if isinstance(column, str) else column[0] for column in columns
    ]
    titles[0] = "id" if titles[0].endswith(" id") else titles[0]
    screen.table(titles, cells)


def _shown_id(name: str, value: Any, known: Known | None = None) -> Any:
    """Return a value with the short ids of memories and edges, unless it is known by its text."""
    if name.replace(" ", "_") not in _SHORT or not value or str(value) in (known or {}):
        return value
    return short_id(value) if isinstance(value, str) else list(map(short_id, value))


def _default_columns(rows: Sequence[Mapping[str, Any]]) -> Sequence[str]:
    """Return the first fields with values."""
    names = [
        name
        for name in dict.fromkeys(name for row in rows for name in row)
        if any(row.get(name) not in (*_NOTHING, False) for row in rows)
    ]
    return (names or list(rows[0]))[:_MAX_COLUMNS]


def show_detail(screen: Screen, result: Any, known: Known, indent: int = 0) -> None:
    """Print the title of a value, its plain fields, and a section for each other field."""
    by_id: Mapping[str, Memory] = getattr(result, "memory_by_id", {})
    known = {**known, **{name: memory_line(memory) for name, memory in by_id.items()}}
    values = fields_of(result)
    memory, title = values.get("memory"), None
    if isinstance(memory, Memory):
        memory_id, title = memory.memory_id, memory_line(memory)
        del values["memory"]
    else:
        memory_id = str(values.get("memory_id") or "")
        title = known.get(memory_id)
        title = "this memory" if title == "this" else title
    if type(result).__name__ in TITLES:
        title = TITLES[type(result).__name__](result)
    if title:
        screen.block(title, indent=indent, style="" if indent else "bold")
        indent += 2
        known = {**known, memory_id: "this"} if memory_id else known
        values = {name: item for name, item in values.items() if item not in (0, memory_id)}
    shown = {
        name if isinstance(result, Mapping) else _label(name): item
        for name, item in values.items()
        if item not in _NOTHING
    }
    only = next(iter(shown.values()), ())
    # A page of a list; other values, and further lists, say which of their lists it is.
    first = next((item for item in values.values() if isinstance(item, tuple | list)), ())
    is_page = type(result).__name__ not in FIELDS and isinstance(only, tuple | list)
    is_page &= not only or only is first
    if len(shown) < 2 and not title and is_page:
        show_rows(screen, only, known, indent)
        shown = {}
    flat = {name: item for name, item in shown.items() if name != _BY_ID and _is_flat(item, known)}
    texts = [(name, _line(_shown_id(name, item, known), known)) for name, item in flat.items()]
    screen.fields(texts, indent=indent)
    for label, value in shown.items():
        if label not in flat:
            _show_section(screen, label, value, known, indent)
    if getattr(result, "cut", False):
        reasons = ", ".join(getattr(result, "cut_reasons", ()))
        text = f"there may be more{f' (cut: {reasons})' if reasons else ': use --limit'}"
        screen.block(text, indent=indent)


def _show_section(screen: Screen, label: str, value: Any, known: Known, indent: int) -> None:
    if not isinstance(value, tuple | list):
        if label == _BY_ID:
            value = {short_id(memory_id): text for memory_id, text in value.items()}
        screen.block(label, indent=indent, style="bold")
        show_detail(screen, value, known, indent + 2)
        return
    if label:
        screen.block(f"{label} ({len(value)})", indent=indent, style="bold")
    show_rows(screen, value[:MOST_SHOWN], known, indent + 2)
    if len(value) > MOST_SHOWN:
        screen.block(f"and {len(value) - MOST_SHOWN} more: --json", indent=indent + 2, style="dim")


def fields_of(value: Any, chars: int | None = None) -> dict[str, Any]:
    """Return the fields of a value by name, with times as texts of at most ``chars`` characters."""
    kind: Any = type(value)
    if isinstance(value, Mapping):
        return dict(value)
    if not (isinstance(value, Value) or is_dataclass(value)):
        return {"": value}
    every = kind.model_fields if isinstance(value, Value) else [one.name for one in fields(value)]
    names = FIELDS.get(kind.__name__) or [name for name in every if name not in _HIDDEN]
    values = {name: getattr(value, name) for name in names}
    if values.get("kind") == "text" and "target" in values and not values.get("dry_run"):
        # The digest of an erased text cannot be erased.
        values["target"] = f"digest {values['target'][:8]}…"
    return {
        name: moment(item)[:chars]
        if isinstance(item, int) and name.rpartition("_")[2] in _TIMES
        else item
        for name, item in values.items()
    }


def _is_plain(value: Any) -> bool:
    return not (isinstance(value, tuple | list | Mapping | Value) or is_dataclass(value))


def _is_line(value: Any) -> bool:
    return _is_plain(value) or type(value).__name__ in LINES


def _is_nested(value: Any) -> bool:
    """Return True for a value that does not fit into a table."""
    if isinstance(value, tuple | list):
        return not all(map(_is_plain, value))
    return not _is_line(value) and any(
        name == _BY_ID or _is_nested(item) for name, item in fields_of(value).items()
    )


def _is_flat(value: Any, known: Known) -> bool:
    """Return True for a value that is shown on the line of its name."""
    if isinstance(value, tuple | list):
        return all(_is_plain(item) and item not in known for item in value)
    return _is_line(value) or (not _is_nested(value) and len(text_of(value)) < LINE_CHARS)


def _line(value: Any, known: Known) -> str:
    """Return a value as one line; the id of a known memory as its text."""
    if type(value).__name__ in LINES:
        return LINES[type(value).__name__](value, known)
    return known.get(value, " ".join(value.split())) if isinstance(value, str) else text_of(value)


def text_of(value: Any) -> str:
    """Return a value as one line of at most ``LINE_CHARS`` characters."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, tuple | list):
        return short(", ".join(map(text_of, value)), LINE_CHARS)
    if type(value).__name__ in LINES:
        return LINES[type(value).__name__](value, {})
    if _is_plain(value):
        return short(str(value), LINE_CHARS)
    label = str if isinstance(value, Mapping) else _label
    pairs = ((label(name), text_of(item)) for name, item in fields_of(value).items())
    return short(", ".join(f"{name} {text}" for name, text in pairs if text), LINE_CHARS)


def _label(name: str) -> str:
    return name.replace("_", " ")


def _source_line(line: Any, _: Known) -> str:
    """Return a line of a file, shortened, with its number and its indentation."""
    indent = min(len(line.text) - len(line.text.lstrip()), LINE_CHARS // 2)
    text = " " * indent + short(line.text, LINE_CHARS - indent)
    return text if line.number is None else f"{line.number}: {text}"


def _premise(premise: Any, _: Known) -> str:
    how = premise.reason or ""
    if premise.replaced_by:
        how = f"by {', '.join(map(short_id, premise.replaced_by))}"
    ended = f"{premise.ended} {moment(premise.ended_at)} by {premise.actor}"
    return f"{memory_line(premise.ground)} ({ended}{how and f': {short(how)}'})"


def _link(link: Any, known: Known) -> str:
    how = "derived" if link.edge_type is None else link.edge_type.value
    via = "" if link.distance == 1 else f" (by {short_id(link.via_id)})"
    return f"{how}: {_line(link.memory_id, known)}{via}"


def _suggestion(suggestion: Any) -> str:
    """Return which side of a contradiction is suggested, with its probability, and why."""
    side = "neither side, the evidence does not decide"
    if suggestion.winner_id is not None:
        side = f"{short_id(suggestion.winner_id)} is right with a probability of"
        side += f" {suggestion.confidence:.0%}"
    reasons = ", ".join(
        f"{item.code.replace('_', ' ')}: {short_id(item.favours)}" for item in suggestion.reasons
    )
    return f"{side} ({reasons})" if reasons else side


def _server(traces: Any, _: Known) -> str:
    """Return where a database server may still hold erased texts, and until when."""
    until = (
        "" if traces.wal_expected_until is None else f", about {moment(traces.wal_expected_until)}"
    )
    return (
        "not proven: what the server stores outside of its tables: write-ahead log segments before"
        f" {traces.wal_until}, until they are overwritten{until}; archived log: archive_mode is"
        f" {'on' if traces.archived else 'off'}, remove earlier archives yourself;"
        f" {counted(traces.replicas, 'replica')}, which erase, but keep their own logs;"
        " earlier backups, until they are removed"
    )


def _retraction(report: Any) -> str:
    title = counted(report.retracted, "memory", "memories")
    title += " would be retracted" if report.dry_run else " retracted"
    names = ", ".join(PurePosixPath(path).name for path in report.same_name)
    others = f"; dropped under the same name, and kept: {names}" if names else ""
    if not (report.retracted or report.kept or report.weakened):
        others = others or "; `memgraph sources` lists all sources"
        return f"{title}: none is left of this source{others}"
    return title + others + (_UNCHANGED if report.dry_run else "")


_UNCHANGED: Final = "; nothing was changed: to do it, repeat the command with --yes"
LINES: Final[Mapping[str, Callable[[Any, Known], str]]] = {
    "Memory": lambda memory, _: memory_line(memory),
    "Edge": edge_line,
    "TracedEdge": edge_line,
    "Link": _link,
    "StoredSource": lambda source, _: f"from {citation(source)}",
    "MemorySupport": lambda item, _: f"from {citation(item.source)}, added {moment(item.added_at)}",
    "StatusPeriod": lambda period, _: period_line(period),
    "JournalNote": lambda note, _: journal_line(note),
    "SourceLine": _source_line,
    "SourceTurn": lambda turn, _: f"{turn.speaker or 'unknown'}, {moment(turn.at)}: {turn.text}",
    "InvalidPremise": _premise,
    "Suggestion": lambda item, _: _suggestion(item),
    "ServerTraces": _server,
}
"""The classes that are one line, by name; the second argument has the texts of memories by id."""
TITLES: Final[Mapping[str, Callable[[Any], str]]] = {
    "SourceRetraction": _retraction,
    "ErasureReport": lambda item: (
        counted(len(item.memory_ids), "memory", "memories")
        + (f" would be erased{_UNCHANGED}" if item.dry_run else f" erased, {item.erasure_id}")
    ),
}
"""The titles of values, by the name of their class."""
FIELDS: Final[Mapping[str, Sequence[str]]] = {
    "Trace": (
        *("memory", "source", "supports", "independent_sources", "status_history"),
        *("edges_out", "edges_in", "replaced_by", "replaced", "grounds", "stale_grounds"),
        *("dependents", "stale_dependents", "journal", "handed_out"),
    ),
    "EvidenceReport": (
        *("memory_id", "workflow_run_id", "links", "refuted", "given", "hand_outs"),
        *("supports", "lines"),
    ),
    "SourceLines": ("memory_id", "source", "state", "lines", "turns"),
    "Impact": (
        *("memory_id", "derived", "purposes", "own_hand_outs", "further_hand_outs"),
        *("runs", "conversations"),
    ),
    "Case": ("sides", "suggestion", "journal"),
    "CaseSide": (
        *("memory", "source", "stored_by", "supports", "independent_sources", "said_at"),
        *("effective_confidence", "confirmed", "premise", "influence"),
    ),
    "Influence": ("recalls", "derived", "runs", "conversations"),
    "Subgraph": ("nodes", "edges", "derivations", "missing"),
}
"""The fields to show of values, by the name of their class."""
_SHORT: Final = frozenset(
    (
        *("memory_id", "memory_ids", "edge_id", "from_id", "to_id", "first_id", "second_id"),
        *("winner_id", "derived_from_id", "derived_ids"),
    )
)
_BY_ID: Final = "begins"
"""The field of texts by the ids of memories, each on a line of its own."""
_SIDE_CHARS: Final = 40


def _said(at: int | None) -> str:
    return "undated" if at is None else moment(at)[:_MINUTES]


_COUNTS: Final = ("counts", lambda run: {name: n for name, n in run.counts.items() if n})
_RANKS: Final = ("ranks", lambda item: item.legs)
_RANKS_OR_WHY: Final = (
    "ranks",
    lambda item: item.legs or (item.brought_by and f"added with {short_id(item.brought_by)}"),
)
_MODIFIERS: Final = (
    "modifiers",
    lambda item: {name: n for name, n in item.modifiers.items() if n != 1},
)
COLUMNS: Final[Mapping[str, Sequence[Column]]] = {
    "TierItem": (
        "memory_id",
        ("text", lambda item: item.payload.get("text", item.payload)),
        *("kind", "timestamp", "importance"),
    ),
    "Memory": (
        *("memory_id", "type"),
        ("status", lambda memory: memory.shown_status.value),
        ("date", date_of),
        ("text", lambda memory: short(summary_of(memory), LINE_CHARS)),
    ),
    "Receipt": (
        "receipt_id",
        ("query", lambda item: item.query or ("(not kept)" if item.query_sha256 else "")),
        "at",
        ("memories", lambda item: len(item.items)),
        *("purpose", "conversation_id", "workflow_run_id", "step_id"),
    ),
    "RecallItem": (
        ("id", lambda item: short_id(item.memory.memory_id)),
        *("score", _RANKS_OR_WHY, _MODIFIERS, "effective_confidence"),
    ),
    "ReceiptItem": ("memory_id", "score", _RANKS, _MODIFIERS, "reasons"),
    "ReceiptMention": (
        *("receipt_id", "at", "purpose", "memory_ids", "conversation_id", "workflow_run_id"),
        "step_id",
    ),
    "MemoryEvent": ("memory_id", "text", "type", "actor", "at", "reason"),
    "PairEvent": (
        "edge_id",
        (
            "pair",
            lambda item: (
                f"{short_id(item.first_id)} {short(item.first_text, _SIDE_CHARS)}"
                f" / {short_id(item.second_id)} {short(item.second_text, _SIDE_CHARS)}"
            ),
        ),
        ("winner", lambda item: short_id(item.winner_id) if item.winner_id else ""),
        "at",
        ("reason", lambda item: short(item.reason or "", _SIDE_CHARS)),
        *("actor", "edge_type"),
    ),
    "SessionInfo": (
        "session_id",
        ("first said", lambda item: _said(item.first_said_at)),
        ("last said", lambda item: _said(item.last_said_at)),
        *("turns", "pending", "completed_at", "consolidated_at"),
    ),
    "BulletinEntry": ("bulletin_id", "created_at", "change_seq", "receipts"),
    "JobRun": ("job", "state", "started_at", "ended_at", "trigger", "remark", _COUNTS, "due_at"),
}
"""The columns of tables, the most important first, by the name of the rows' class."""
