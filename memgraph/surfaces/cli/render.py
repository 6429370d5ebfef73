"""Show results to people: one table for lists, one tree for everything else, by type of result.

By default a value is a line of its plain fields, with a branch or a table for each other field. A
class may have other columns (``COLUMNS``), another line (``LINES``), or a title above a branch for
each of its fields (``TITLES``). Classes are named, because importing the models takes time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Final, NamedTuple, get_args, get_type_hints

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
_MAX_COLUMNS: Final = 7
_CURSORS: Final = frozenset(("next_after", "next_cursor"))
_LOOKUPS: Final = _CURSORS | {"memories", "sources"}
"""The fields that are not shown: they describe the ids in other fields, or continue a page."""

Columns = Mapping[str, str | Callable[[Any], Any]]
"""The columns of a table by title: the name of a field, or a function of the row."""


class Title(NamedTuple):
    """The line above the fields of a result.

    Attributes:
        used: the fields that the line contains, or that are not shown.
        more: properties to show as fields.
    """

    line: Callable[[Any], str]
    used: Sequence[str] = ()
    more: Sequence[str] = ()


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
    elif kind in TITLES or kind in LINES or isinstance(getattr(result, "memory", None), Memory):
        screen.tree(tree_of(result))
    elif isinstance(result, Value | Mapping) or is_dataclass(result):
        _show_fields(screen, result)
    else:
        screen.line(_text(result))


def show_table(screen: Screen, rows: Sequence[Any], columns: Columns | None = None) -> None:
    """Print rows of one type as a table; by default with the columns of this type."""
    chosen = columns or COLUMNS.get(type(rows[0]).__name__) or _default_columns(rows)
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
        return Branch(LINES[kind](result, known))
    values = _fields(result)
    title = TITLES.get(kind)
    if title is None and isinstance(values.get("memory"), Memory):
        title = Title(lambda item: memory_line(item.memory), ("memory", "at", "cut"))
    if title is not None:
        root = Branch(title.line(result), style="bold")
    else:
        root = Branch("" if isinstance(result, Mapping) else _line(result, known))
    hidden = {*(title.used if title else ()), *_CURSORS}
    hidden |= _LOOKUPS if hasattr(result, "memory_by_id") else set()
    for name in (*values, *(title.more if title else ())):
        value = values[name] if name in values else getattr(result, name)
        in_line = title is None and not isinstance(result, Mapping) and _is_in_line(value)
        if name not in hidden and not _is_empty(value) and not in_line:
            label = name if isinstance(result, Mapping) else _label(name)
            _add_field(root, label, value, _is_time(type(result), name), known)
    return root


def _line(value: Any, known: Mapping[str, Memory]) -> str:
    """Return the plain fields of a value as one line: texts as they are, others with their name."""
    parts = []
    for name, item in _fields(value).items():
        if _is_empty(item) or not _is_in_line(item) or (name, item) == ("state", "none"):
            continue
        if type(item).__name__ in LINES:
            parts.append(LINES[type(item).__name__](item, known))
        elif isinstance(item, str):
            parts.append(_named(short(item), known))
        else:
            text = moment(item) if _is_time(type(value), name) else _text(item)
            parts.append(
                text if name == "at" else _label(name) if item is True else f"{_label(name)} {text}"
            )
    return "  ".join(parts)


def _is_in_line(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return all(map(_is_plain, value))
    return _is_flat(value) or type(value).__name__ in LINES


def _label(name: str) -> str:
    return name.replace("_", " ")


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
    elif kind not in COLUMNS and (kind in TITLES or any(map(_has_rows, _fields(rows[0]).values()))):
        for row in rows:
            show_result(screen, row)
    elif _is_plain(rows[0]):
        for row in rows:
            screen.line(_text(row))
    else:
        show_table(screen, rows)


def _has_rows(value: Any) -> bool:
    """Return True for a list of values that are not plain."""
    return isinstance(value, tuple | list) and not all(map(_is_plain, value))


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


def _default_columns(rows: Sequence[Any]) -> Columns:
    """Return the first fields, but those with rows; an id that comes first is never split."""
    fields_of = list(map(_fields, rows))
    every = dict.fromkeys(name for row in fields_of for name in row)
    names = [name for name in every if not any(_has_rows(row.get(name)) for row in fields_of)]
    first, *others = names[:_MAX_COLUMNS]
    return {"id" if first.endswith("_id") else first: first} | {name: name for name in others}


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
        pairs = ((name, _text(item)) for name, item in value.items())
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
        elif item is not None:
            yield f"{prefix}{name}", _text(item)


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


LINES: Final[Mapping[str, Callable[[Any, Mapping[str, Memory]], str]]] = {
    "Memory": lambda memory, _: memory_line(memory),
    "Edge": _edge,
    "StoredSource": lambda source, _: f"from {citation(source)}",
    "JournalNote": lambda note, _: short(
        f"#{note.seq} {moment(note.at)} {note.action} by {note.actor}: {_text(note.details)}",
        LINE_CHARS,
    ),
    "Link": _link,
    "SourceLine": _source_line,
}
"""The classes that are one line, by name; the second argument has the memories by id."""


def _contradiction(item: Any) -> str:
    outcome = outcome_of(item.edge)
    standing = standing_of(item.edge, moot=item.moot)
    return f"{item.edge.edge_id}  {standing}" + (f"; {outcome}" if outcome else "")


def _by_id(item: Any) -> str:
    return memory_line(item.memory_by_id[item.memory_id])


TITLES: Final[Mapping[str, Title]] = {
    "Contradiction": Title(
        _contradiction, ("edge", "since", "open_days", "ages_days", "resolved", "dismissed", "moot")
    ),
    "Case": Title(_contradiction, ("edge", "state", "moot", "at", "cut")),
    "Impact": Title(
        _by_id, ("memory_id", "hand_outs", "cut"), ("own_hand_outs", "further_hand_outs")
    ),
    "EvidenceReport": Title(
        lambda item: _by_id(item) if item.memory_id else f"run {item.workflow_run_id}",
        ("memory_id", "workflow_run_id", "cut", "supports"),
    ),
    "Diff": Title(
        lambda item: f"after {moment(item.since)} until {moment(item.until)}", ("since", "until")
    ),
    "SourceRetraction": Title(
        lambda item: (
            f"{counted(item.retracted, 'memory', 'memories')}"
            f" {'would be' if item.dry_run else 'were'} retracted"
        ),
        ("kind", "name", "dry_run"),
    ),
    "ErasureReport": Title(
        lambda item: (
            counted(len(item.memory_ids), "memory", "memories")
            + (" would be erased" if item.dry_run else f" erased, {item.erasure_id}")
        ),
        ("orchestrator", "erasure_id", "started_at", "ended_at", "dry_run"),
    ),
    "EntityProfile": Title(
        lambda item: f"{item.canonical_name}  {item.type.value}", ("canonical_name", "type")
    ),
    "Receipt": Title(
        lambda item: f"{item.receipt_id}  {item.purpose or 'recall'}, {moment(item.at)}",
        ("receipt_id", "purpose", "at", "counts", "items", "answer"),
    ),
}
"""The titles of results that are shown as trees, by the name of the class."""


def _date(memory: Memory) -> str:
    return event_period(memory) or day(
        memory.created_at if memory.event_time is None else memory.event_time
    )


COLUMNS: Final[Mapping[str, Columns]] = {
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
    "Memory": {
        "id": "memory_id",
        "type": "type",
        "status": status_of,
        "date": _date,
        "summary": lambda memory: short(summary_of(memory)),
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
        "remark": lambda run: run.remark,
    },
}
"""The columns of tables, by the name of the rows' class; other classes show their first fields."""
