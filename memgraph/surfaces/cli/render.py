"""Show results to people: one table for lists, one tree for everything else, by type of result.

A class of results may have columns (``COLUMNS``), a line (``LINES``), or a title above a branch for
each of its fields (``TITLES``). Classes are named, because importing the models takes time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Final, get_args, get_type_hints

from pydantic import PlainSerializer
from pydantic.fields import FieldInfo

from memgraph.clock import iso
from memgraph.model.values import Memory, Value
from memgraph.surfaces.cli.files import counted
from memgraph.surfaces.cli.formats import (
    NO_AGENT,
    citation,
    day,
    edge_line,
    event_period,
    memory_line,
    moment,
    outcome_of,
    short,
    show_memory,
    standing_of,
    status_of,
    summary_of,
)
from memgraph.surfaces.cli.screen import Branch, Screen

MOST_SHOWN: Final = 20
"""The maximum number of entries of a list inside of a result; ``--json`` has all."""
LINE_CHARS: Final = 160
SHORT_CHARS: Final = 30
"""The length from which on the values of a mapping stand on lines of their own."""
_MAX_COLUMNS: Final = 6
_CURSORS: Final = frozenset(("next_after", "next_cursor"))
_LOOKUPS: Final = _CURSORS | {"memories", "sources"}
"""The fields that are not shown: they describe the ids in other fields, or continue a page."""

Columns = Mapping[str, str | Callable[[Any], Any]]
"""The columns of a table by title: the name of a field, or a function of the row."""


@dataclass(frozen=True, slots=True)
class Title:
    """The line above the fields of a result.

    Attributes:
        used: the fields that the line contains, or that are not shown.
        more: properties to show as fields.
    """

    line: Callable[[Any], str]
    used: frozenset[str] = frozenset()
    more: tuple[str, ...] = ()


def _title(line: Callable[[Any], str], *used: str, more: tuple[str, ...] = ()) -> Title:
    return Title(line, frozenset(used), more)


def show_result(screen: Screen, result: Any, _: Mapping[str, Any] | None = None) -> None:
    """Print a result: a memory, a table of a list or a page, a tree, or fields and tables."""
    kind = type(result).__name__
    if result is None:
        screen.line("done")
    elif isinstance(result, Memory):
        show_memory(screen, result)
    elif isinstance(result, tuple | list):
        _show_rows(screen, result)
    elif isinstance(result, Mapping) and not any(isinstance(v, list) for v in result.values()):
        screen.fields(list(_flat(result)))
    elif kind in TITLES or kind in LINES:
        screen.tree(tree_of(result))
    elif isinstance(result, Value | Mapping) or is_dataclass(result):
        _show_fields(screen, result)
    else:
        screen.line(_text(result))


def show_table(screen: Screen, rows: Sequence[Any], columns: Columns | None = None) -> None:
    """Print rows of one type as a table; by default with the columns of this type."""
    kind = type(rows[0]).__name__
    chosen = columns or COLUMNS.get(kind) or {name: name for name in _default_columns(rows[0])}
    screen.table(
        [title.replace("_", " ") for title in chosen],
        [[_cell(row, column) for column in chosen.values()] for row in rows],
    )


def tree_of(result: Any, names: Mapping[str, Memory] | None = None) -> Branch:
    """Return a tree of a result: its line or title, and a branch for each field with a value.

    Args:
        names: memories by id, to be shown instead of their ids; by default those of the result.
    """
    known = names or getattr(result, "memory_by_id", None) or {}
    kind = type(result).__name__
    if kind in LINES:
        return Branch(LINES[kind](result, known), style=_style(result))
    values = _fields(result)
    title = TITLES.get(kind)
    is_mapping = isinstance(result, Mapping)
    if title is None and not is_mapping and all(map(_is_flat, values.values())):
        return Branch(_text(values))
    title = title or _title(lambda _: "")
    root = Branch(title.line(result), style="bold")
    hidden = title.used | (_LOOKUPS if hasattr(result, "memory_by_id") else _CURSORS)
    for name in (*values, *title.more):
        value = values[name] if name in values else getattr(result, name)
        if name not in hidden and not _is_empty(value):
            label = name if is_mapping else name.replace("_", " ")
            _add_field(root, label, value, _is_time(type(result), name), known)
    return root


def _add_field(
    root: Branch, label: str, value: Any, is_time: bool, known: Mapping[str, Memory]
) -> None:
    if is_time:
        root.add(f"{label}: {moment(value)}")
    elif _is_flat(value):
        root.add(f"{label}: {_named(value, known)}")
    elif isinstance(value, tuple | list):
        _add_list(root, label, value, known)
    else:
        branch = tree_of(value, known)
        branch.text = f"{label}: {branch.text}" if branch.text else label
        root.append(branch)


def _add_list(root: Branch, label: str, values: Sequence[Any], known: Mapping[str, Memory]) -> None:
    if all(map(_is_plain, values)) and not any(value in known for value in values):
        root.add(f"{label}: {', '.join(map(_text, values))}")
        return
    branch = root.add(f"{label} ({len(values)})")
    places: dict[str, Branch] = {}
    for value in values[:MOST_SHOWN]:
        child = Branch(_named(value, known)) if _is_plain(value) else tree_of(value, known)
        parent = branch
        if hasattr(value, "via_id"):
            # What was reached through another memory stands below it.
            parent = places.get(value.via_id, branch)
            places[value.memory_id] = child
        parent.append(child)
    if len(values) > MOST_SHOWN:
        branch.add(f"and {len(values) - MOST_SHOWN} more: --json", style="dim")


def _show_rows(screen: Screen, rows: Sequence[Any]) -> None:
    kind = type(rows[0]).__name__ if rows else ""
    if not rows:
        screen.line("nothing found")
    elif kind not in COLUMNS and (kind in TITLES or _has_rows(rows[0])):
        for row in rows:
            show_result(screen, row)
    elif _is_plain(rows[0]):
        for row in rows:
            screen.line(_text(row))
    else:
        show_table(screen, rows)


def _has_rows(row: Any) -> bool:
    """Return True for a row that itself has a field with rows."""
    return any(
        isinstance(value, tuple | list) and any(not _is_plain(item) for item in value)
        for value in _fields(row).values()
    )


def _show_fields(screen: Screen, result: Any) -> None:
    """Print the plain fields of a result, and a table or a tree for each other one."""
    values = {
        name: value
        for name, value in _fields(result).items()
        if name not in _CURSORS and name not in ("cut", "cut_reasons")
    }
    nested = {name: value for name, value in values.items() if not _is_flat(value)}
    plain = [
        (name.replace("_", " "), _cell(result, name))
        for name, value in values.items()
        if name not in nested and (not _is_empty(value) or value == 0)
    ]
    if plain:
        screen.fields(plain)
    for name, value in nested.items():
        if len(values) > 1:
            screen.heading(name.replace("_", " "))
        show_result(screen, value)
    if getattr(result, "cut", False):
        reasons = ", ".join(getattr(result, "cut_reasons", ()))
        screen.line(f"there may be more{f' (cut: {reasons})' if reasons else ': use --limit'}")


def _fields(result: Any) -> dict[str, Any]:
    if isinstance(result, Value):
        return {name: getattr(result, name) for name in type(result).model_fields}
    if is_dataclass(result):
        return {item.name: getattr(result, item.name) for item in fields(result)}
    return dict(result) if isinstance(result, Mapping) else {"": result}


def _default_columns(row: Any) -> list[str]:
    return list(_fields(row))[:_MAX_COLUMNS]


def _cell(row: Any, column: str | Callable[[Any], Any]) -> str:
    if callable(column):
        return _text(column(row))
    value = _fields(row).get(column)
    return moment(value) if _is_time(type(row), column) else _text(value)


def _is_time(kind: type, name: str) -> bool:
    """Return True if a field is a time in milliseconds."""
    if issubclass(kind, Value):
        info = kind.model_fields.get(name)
        return info is not None and _has_time(info)
    return is_dataclass(kind) and _has_time(get_type_hints(kind, include_extras=True).get(name))


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


def _is_empty(value: Any) -> bool:
    return value in (None, "", (), [], {}, 0)


def _named(value: Any, known: Mapping[str, Memory]) -> str:
    """Return a value as text; the id of a known memory as the line of the memory."""
    memory = known.get(value) if isinstance(value, str) else None
    return _text(value) if memory is None else memory_line(memory)


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Mapping):
        pairs = ((str(name).replace("_", " "), _text(item)) for name, item in value.items())
        return short(", ".join(f"{name} {text}" for name, text in pairs if text), LINE_CHARS)
    if isinstance(value, tuple | list):
        return short(", ".join(map(_text, value)), LINE_CHARS)
    if type(value).__name__ in LINES:
        return LINES[type(value).__name__](value, {})
    if isinstance(value, Value) or is_dataclass(value):
        return _text(_fields(value))
    return short(str(value), LINE_CHARS)


def _flat(value: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, str]]:
    """Yield the entries of nested mappings, with dotted names."""
    for name, item in value.items():
        if isinstance(item, Mapping):
            yield from _flat(item, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", _text(item)


def _style(value: Any) -> str:
    return "dim" if type(value).__name__ in ("StoredSource", "MemorySupport") else ""


def _joined(*parts: Any) -> str:
    return ", ".join(_text(part) for part in parts if part not in (None, "", ()))


def _because(reason: str | None) -> str:
    return f": {reason}" if reason else ""


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


def _edge(edge: Any, known: Mapping[str, Memory]) -> str:
    names = {end: _named(end, known) for end in (edge.from_id, edge.to_id)}
    return f"{edge.edge_id}: {edge_line(edge, names)}"


def _link(link: Any, known: Mapping[str, Memory]) -> str:
    how = "derived" if link.edge_type is None else link.edge_type.value
    return f"{how}: {_named(link.memory_id, known)}"


def _source_line(line: Any, _: Any) -> str:
    """Return a line of a file, shortened, with its number and its indentation."""
    indent = min(len(line.text) - len(line.text.lstrip()), LINE_CHARS // 2)
    text = " " * indent + short(line.text, LINE_CHARS - indent)
    return text if line.number is None else f"{line.number}: {text}"


def _pair(event: Any, _: Any) -> str:
    winner = f" for {event.winner_id}" if event.winner_id else ""
    sides = f"{short(event.first_text)} / {short(event.second_text)}"
    return f"{moment(event.at)}  {event.edge_id}  {event.actor or 'unknown'}{winner}: {sides}"


def _reached(run: Any, _: Any) -> str:
    when = f"{moment(run.first_at)} to {moment(run.last_at)}"
    left = f"; left afterwards: {', '.join(run.left)}" if run.left else ""
    return f"{run.name}: given {counted(run.receipts, 'time')}, {when}{left}"


REASONS: Final = {
    "confirmed": "a person confirmed it",
    "other_ended": "the other side was replaced or retracted",
    "other_stale": "the other side depends on retracted or superseded evidence",
    "more_sources": "more independent sources say it",
    "higher_confidence": "its confidence is higher",
    "newer": "it is newer",
}

LINES: Final[Mapping[str, Callable[[Any, Mapping[str, Memory]], str]]] = {
    "Memory": lambda memory, _: memory_line(memory),
    "Edge": _edge,
    "StoredSource": lambda source, _: f"from {citation(source)}",
    "MemorySupport": lambda item, _: (
        f"also stated in {citation(item.source)}, {moment(item.added_at)}"
    ),
    "FurtherSource": lambda item, known: (
        f"{_named(item.memory_id, known)}, since {moment(item.added_at)}"
    ),
    "StatusPeriod": lambda period, _: (
        f"{period.status.value} from {moment(period.since)} to {moment(period.until) or 'now'},"
        f" {period.actor}{_because(period.reason)}"
    ),
    "JournalNote": lambda note, _: short(
        f"#{note.seq} {moment(note.at)} {note.action} by {note.actor}: {_text(note.details)}",
        LINE_CHARS,
    ),
    "Link": _link,
    "Derivation": lambda item, _: f"{item.memory_id} derived from {item.derived_from_id}",
    "PremiseStep": lambda step, _: (
        f"{'derived from' if step.edge_type is None else step.edge_type.value} {step.ground_id}"
    ),
    "DeliveryCount": lambda item, _: (
        counted(item.count, "time") + (f", last {moment(item.last_at)}" if item.count else "")
    ),
    "ReceiptMention": lambda item, _: _joined(
        f"{item.receipt_id}  {item.purpose}", moment(item.at), _receivers(item), item.memory_ids
    ),
    "ReachedRun": _reached,
    "SourceLine": _source_line,
    "SourceTurn": lambda turn, _: short(
        f"{turn.speaker or 'somebody'}, {moment(turn.at)}: {turn.text}", LINE_CHARS
    ),
    "MemoryEvent": lambda event, _: (
        f"{moment(event.at)}  {event.memory_id}  {event.actor}"
        f"{f' ({event.reason})' if event.reason else ''}: {short(event.text)}"
    ),
    "PairEvent": _pair,
    "Influence": lambda item, _: _joined(
        f"{counted(item.recalls, 'time')} handed out",
        f"{counted(item.derived, 'memory', 'memories')} derived",
        *(counted(len(ids), name) for name, ids in _recipients(item) if ids),
    ),
    "SuggestionReason": lambda reason, known: (
        f"{_named(reason.favours, known)}: {REASONS.get(reason.code, reason.code)}"
        f" (+{reason.weight:.2f})"
    ),
    "RetractedMemory": lambda item, _: f"{item.memory_id}  {item.because}: {short(item.summary)}",
    "RetainedMemory": lambda item, _: f"{item.memory_id}  {item.because}: {short(item.summary)}",
    "ReinstatedMemory": lambda item, _: f"{item.memory_id}  {short(item.summary)}",
    "WeakenedMemory": lambda item, _: (
        f"{item.memory_id}  confidence {item.confidence_before:.2f} to"
        f" {item.confidence_after:.2f}: {short(item.summary)}"
    ),
    "DisputedPair": lambda item, _: f"{item.edge_id}: {item.from_id} and {item.to_id}",
    "NotErasedMemory": lambda item, _: f"{item.memory_id}  {item.why.replace('_', ' ')}",
    "RelatedEntity": lambda item, _: f"{item.canonical_name} ({item.together})",
    "EntityInfo": lambda item, _: f"{item.canonical_name}  {item.type.value}, {item.entity_id}",
    "Degraded": lambda item, _: f"degraded[{item.code}]: {item.text}",
}
"""The classes that are one line, by name; the second argument has the memories by id."""


def _recipients(item: Any) -> tuple[tuple[str, Sequence[str]], ...]:
    return (("run", item.runs), ("conversation", item.conversations))


def _of_memory(item: Any) -> str:
    return memory_line(item.memory)


def _contradiction(item: Any) -> str:
    outcome = outcome_of(item.edge)
    standing = standing_of(item.edge, moot=item.moot)
    return f"{item.edge.edge_id}  {standing}" + (f"; {outcome}" if outcome else "")


def _by_id(item: Any) -> str:
    return memory_line(item.memory_by_id[item.memory_id])


def _premise(item: Any) -> str:
    ended = "lost a contradiction" if item.ended == "lost" else item.ended
    return f"{memory_line(item.ground)}, {ended} on {day(item.ended_at)} by {item.actor}" + (
        _because(item.reason)
    )


TITLES: Final[Mapping[str, Title]] = {
    "Trace": _title(_of_memory, "memory", "cut"),
    "History": _title(_of_memory, "memory", "at"),
    "CaseSide": _title(_of_memory, "memory"),
    "StaleMemory": _title(_of_memory, "memory"),
    "InvalidPremise": _title(
        _premise, "ground", "ended", "ended_at", "actor", "reason", "replaced_by"
    ),
    "Contradiction": _title(
        _contradiction,
        *("edge", "since", "open_days", "ages_days", "resolved", "dismissed", "moot"),
    ),
    "Case": _title(_contradiction, "edge", "state", "moot", "at", "cut"),
    "Suggestion": _title(
        lambda item: (
            f"{item.winner_id} may be right ({item.confidence:.0%})"
            if item.winner_id
            else "undecided"
        ),
        *("winner_id", "confidence"),
    ),
    "Impact": _title(
        _by_id,
        *("memory_id", "hand_outs", "cut"),
        more=("own_hand_outs", "further_hand_outs"),
    ),
    "EvidenceReport": _title(
        lambda item: _by_id(item) if item.memory_id else f"run {item.workflow_run_id}",
        *("memory_id", "workflow_run_id", "cut", "supports"),
    ),
    "SourceLines": _title(
        lambda item: (
            f"{item.memory_id} from {citation(item.source)}"
            + ("" if item.state in ("kept", "none") else f" ({item.state})")
        ),
        *("memory_id", "source", "state", "path", "first_line", "last_line", "cut"),
    ),
    "Diff": _title(
        lambda item: f"after {moment(item.since)} until {moment(item.until)}",
        *("since", "until"),
    ),
    "SourceRetraction": _title(
        lambda item: (
            f"{counted(item.retracted, 'memory', 'memories')}"
            f" {'would be' if item.dry_run else 'were'} retracted"
        ),
        *("kind", "name", "dry_run"),
    ),
    "ErasureReport": _title(
        lambda item: (
            counted(len(item.memory_ids), "memory", "memories")
            + (" would be erased" if item.dry_run else f" erased, {item.erasure_id}")
        ),
        *("orchestrator", "erasure_id", "started_at", "ended_at", "dry_run"),
    ),
    "EntityProfile": _title(
        lambda item: f"{item.canonical_name}  {item.type.value}", "canonical_name", "type"
    ),
    "Receipt": _title(
        lambda item: f"{item.receipt_id}  {item.purpose or 'recall'}, {moment(item.at)}",
        *("receipt_id", "purpose", "at", "counts", "items", "answer"),
    ),
}
"""The titles of results that are shown as trees, by the name of the class."""


def _date(memory: Memory) -> str:
    return event_period(memory) or day(
        memory.created_at if memory.event_time is None else memory.event_time
    )


COLUMNS: Final[Mapping[str, Columns]] = {
    "Memory": {
        "id": "memory_id",
        "type": "type",
        "status": status_of,
        "date": _date,
        "summary": lambda memory: short(summary_of(memory)),
    },
    "EntityInfo": {
        "id": "entity_id",
        "type": "type",
        "mentions": "mention_count",
        "name": "canonical_name",
    },
    "SourceInfo": {
        name: name for name in ("kind", "name", "memories", "active", "retracted", "last_at")
    },
    "Receipt": {
        "id": "receipt_id",
        "when": "at",
        "what for": lambda receipt: receipt.purpose or "recall",
        "for whom": _receivers,
        "memories": lambda receipt: len(receipt.items),
        "query": lambda receipt: receipt.query or (receipt.query_sha256 or "")[:16],
    },
    "ReceiptItem": {
        "id": "memory_id",
        "score": lambda item: f"{item.score:.5f}",
        "legs": "legs",
        "modifiers": lambda item: {
            name: f"{value:.3f}" for name, value in item.modifiers.items() if value != 1
        },
        "reasons": "reasons",
    },
    "BulletinEntry": {
        "id": "bulletin_id",
        "first": "created_at",
        "times": "receipts",
        "sha256": lambda bulletin: bulletin.sha256[:16],
    },
    "JobRun": {
        "job": "job",
        "by": "trigger",
        "state": "state",
        "due": "due_at",
        "started": "started_at",
        "took": lambda run: (
            "" if run.ended_at is None else f"{(run.ended_at - run.started_at) / 1000:.1f} s"
        ),
        "counts": lambda run: {name: count for name, count in run.counts.items() if count},
        "remark": lambda run: ": ".join(item for item in (run.error_code, run.reason) if item),
    },
    "JobPlan": {
        "job": "job",
        "schedule": lambda plan: plan.schedule or "off",
        "time zone": "timezone",
        "next": "next_due_at",
        "overdue since": "overdue_since",
    },
    "ErasureReport": {
        "id": "erasure_id",
        "ended": "ended_at",
        "kind": "kind",
        "memories": lambda report: len(report.memory_ids),
        "by": "actor",
        "reason": "reason",
    },
    "TierItem": {
        "id": "memory_id",
        "item": lambda item: "" if item.context_item_id == item.memory_id else item.context_item_id,
        "kind": "kind",
        "importance": "importance",
        "date": lambda item: item.timestamp[:10],
        "text": lambda item: next(
            (text for text in item.payload.values() if isinstance(text, str)), item.payload
        ),
    },
    "BlockMemory": {
        "memory": "memory_id",
        "score": lambda memory: f"{memory.score:.4f}",
        "confidence": lambda memory: f"{memory.confidence:.2f}",
        "source": lambda memory: memory.citation + (", shortened" if memory.shortened else ""),
    },
    "PackedItem": {
        "memory": "memory_id",
        "tier": lambda item: item.tier.tier,
        "tokens": "token_cost",
        "why": lambda item: [*item.reasons, *(["shortened"] if item.shortened else [])],
        "text": lambda item: short(item.text),
    },
    "OmittedMemory": {
        "memory": "memory_id",
        "tier": lambda memory: memory.tier.tier,
        "tokens": "token_cost",
        "why": "reason",
    },
    "SessionInfo": {
        "id": "session_id",
        "turns": "turns",
        "pending": "pending",
        "last turn": "last_seen_at",
        "state": lambda session: (
            "consolidated"
            if session.consolidated_at is not None
            else "open"
            if session.completed_at is None
            else "completed"
        ),
    },
    "HealthMeasure": {
        "measure": "measure",
        "memories": "count",
        "of": lambda item: f"{item.of} (sample)" if item.sampled else item.of,
        "rate": lambda item: f"{item.rate:.2%}",
        "limit": lambda item: "" if item.limit is None else f"{item.limit:.2%}",
        "": lambda item: "" if item.limit is None else "too many" if item.failed else "ok",
    },
}
"""The columns of tables, by the name of the rows' class; other classes show their first fields."""
