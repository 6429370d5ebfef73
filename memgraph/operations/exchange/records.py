"""The records of an export: the columns of each line, and how they are written and checked.

A line is a JSON object: ``record`` names its kind, every other field is a column of its table.
Times are integers, milliseconds since 1970. Internal keys (``pk``) are left out: a line refers to
memories and entities by their ids.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, NamedTuple

from memgraph.clock import MAX_MS, MIN_MS
from memgraph.errors import ImportRejected
from memgraph.model.columns import Table, python_type
from memgraph.model.tables import metadata
from memgraph.model.values import MAX_CONTENT_CHARS, MAX_SUMMARY_CHARS
from memgraph.store import whole_tables
from memgraph.store.rows import json_text
from memgraph.store.statements import CompiledStatement

MAX_DEPTH: Final = 64
MAX_INTEGER: Final = 2**63 - 1


def refused(reason: str, message: str) -> ImportRejected:
    return ImportRejected(message, reason=reason)


def loads(text: str) -> dict[str, Any]:
    """Parse a JSON object without duplicate keys, NaN, huge numbers, deep nesting or bad
    characters.

    Raises:
        ImportRejected: with the reason.
    """
    try:
        value = json.loads(
            text,
            object_pairs_hook=_unique,
            parse_constant=_no_constant,
            parse_int=_integer,
            parse_float=_float,
        )
    except RecursionError:
        raise refused("nesting", "nested too deeply") from None
    except ValueError:
        raise refused("syntax", "not a JSON object") from None
    if not isinstance(value, dict):
        raise refused("syntax", "not a JSON object")
    # Only escapes can produce bad characters, and only many brackets deep nesting.
    if "\\u" in text or "\x00" in text or text.count("[") + text.count("{") > MAX_DEPTH:
        _check_value(value, MAX_DEPTH)
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise refused("duplicate_key", "an object names the same field twice")
    return result


def _no_constant(_name: str) -> float:
    raise refused("number", "NaN and Infinity are not JSON numbers")


def _integer(digits: str) -> int:
    if len(digits) > 20 or not -MAX_INTEGER - 1 <= int(digits) <= MAX_INTEGER:
        raise refused("number", "an integer beyond 64 bits")
    return int(digits)


def _float(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise refused("number", "a number that is too large")
    return number


def _check_value(value: Any, depth: int) -> None:
    if depth == 0:
        raise refused("nesting", "nested too deeply")
    if isinstance(value, str):
        _check_text(value)
    elif isinstance(value, list):
        for item in value:
            _check_value(item, depth - 1)
    elif isinstance(value, dict):
        for key, item in value.items():
            _check_text(key)
            _check_value(item, depth - 1)


def _check_text(text: str) -> None:
    if "\x00" in text:
        raise refused("value", "a NUL character")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise refused("value", "a lone surrogate") from None


class _Column(NamedTuple):
    """What a field of a line may hold.

    Attributes:
        kind: its type; ``list`` or ``dict`` for JSON.
        choices: the values of an enum; otherwise empty.
        limit: the maximum length of a text, or None.
    """

    field: str
    kind: type
    is_optional: bool
    choices: tuple[str, ...]
    limit: int | None

    def checked(self, value: Any) -> Any:
        """Return the value to store. Raises ImportRejected."""
        field, kind = self.field, self.kind
        if value is None:
            if self.is_optional:
                return None
            raise refused("value", f"{field} is missing")
        if kind in (list, dict):
            return self._json(value)
        if self.choices:
            if value not in self.choices:
                raise refused("value", f"{field} must be one of: {', '.join(self.choices)}")
            return value
        # Not isinstance: True must not pass as an int.
        given = type(value)
        if given is not (str if kind is bytes else kind) and (kind, given) != (float, int):
            raise refused("value", f"{field} is not of its type")
        if kind is bytes:
            try:
                return base64.b64decode(value, validate=True)
            except ValueError:
                raise refused("value", f"{field} is not base64") from None
        if kind is int and field in _TIMES and not MIN_MS <= value <= MAX_MS:
            raise refused("value", f"{field} lies outside of the years 0001 to 9999")
        if self.limit is not None and len(value) > self.limit:
            raise refused("value", f"{field} is longer than {self.limit} characters")
        return value

    def _json(self, value: Any) -> str:
        """Return JSON as a text; if it is given as a text, that keeps its spelling."""
        text = json_text(value)
        if isinstance(value, str):
            # Wrapped, so that lists are read by the same strict rules as objects.
            text, wrapped = value, loads(f'{{"value":{value}}}')
            if wrapped.keys() != {"value"}:
                raise refused("syntax", f"{self.field} is not JSON")
            value = wrapped["value"]
        if not isinstance(value, self.kind):
            raise refused("value", f"{self.field} is not a JSON {self.kind.__name__}")
        if isinstance(value, list) and not all(isinstance(tag, str) for tag in value):
            raise refused("value", "a tag is not a text")
        return text


encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode

_JSON_COLUMNS: Final[Mapping[str, type]] = {
    "tags": list,
    "attributes": dict,
    "resolution": dict,
    "manifest": dict,
}
_TIMES: Final = frozenset(
    {"at", "since", "until", "event_time", "valid_until", "created_at", "updated_at"}
    | {"last_accessed_at", "resolved_at", "first_seen_at", "last_seen_at", "consolidated_at"}
    | {"recorded_at", "completed_at", "added_at"}
)
# Fields of unlimited length; any other text is limited.
_LONG: Final = frozenset({"details", "manifest", "body", "query", "request", "explanation"})
_MAX_CHARS: Final[Mapping[tuple[str, str], int]] = {("memories", "summary"): MAX_SUMMARY_CHARS}

_COLUMNS: dict[tuple[str, str], _Column] = {}


@dataclass(frozen=True, slots=True)
class RecordMapping:
    """The mapping of one kind of line to one table.

    Attributes:
        fields: the columns in the order of the line.
        select: the statement that reads them, in the order of the export.
        insert: the statement that writes them back, by named values.
    """

    name: str
    table: Table
    fields: tuple[str, ...]
    select: CompiledStatement
    insert: CompiledStatement

    def write(self, row: tuple[Any, ...]) -> bytes:
        """Return a row as a line.

        Raises:
            ValueError: it contains NaN or an infinity.
        """
        line: dict[str, Any] = {"record": self.name}
        for field, value in zip(self.fields, row, strict=True):
            line[field] = self._shown(field, value)
        return encode(line).encode() + b"\n"

    def read(self, line: dict[str, Any]) -> dict[str, Any]:
        """Check a line and return the values to store.

        Raises:
            ImportRejected: a field is missing, unknown or not valid for its column.
        """
        field_names = line.keys() - {"record"}
        if field_names != set(self.fields):
            odd = sorted(field_names ^ set(self.fields))
            raise refused("fields", f"missing or unknown fields: {', '.join(odd)[:200]}")
        return {field: self._stored(field, line[field]) for field in self.fields}

    def _shown(self, field: str, value: Any) -> Any:
        if isinstance(value, bytes):
            return base64.b64encode(value).decode()
        if value is not None and field in _JSON_COLUMNS:
            parsed = json.loads(value)
            # JSON that we would write differently stays text, so that it is restored unchanged.
            return parsed if json_text(parsed) == value else value
        if value is not None and self._type(field) is bool:
            return bool(value)
        return value

    def _type(self, field: str) -> type:
        return python_type(self.table, field)

    def _stored(self, field: str, value: Any) -> Any:
        column = _COLUMNS.get((self.name, field))
        if column is None:
            column = _COLUMNS[self.name, field] = self._column(field)
        return column.checked(value)

    def _column(self, field: str) -> _Column:
        column, kind = self.table.c.get(field), self._type(field)
        is_limited = kind is str and field not in _LONG
        limit = _MAX_CHARS.get((self.table.name, field), MAX_CONTENT_CHARS)
        return _Column(
            field,
            _JSON_COLUMNS.get(field, kind),
            column is not None and bool(column.nullable) and self.name != "embedding",
            tuple(item.value for item in kind) if issubclass(kind, StrEnum) else (),
            limit if is_limited else None,
        )


def _record(
    name: str,
    table: str,
    *order: str,
    without: tuple[str, ...] = (),
    refers: Mapping[str, str] | None = None,
    extra: tuple[str, ...] = (),
    state: str | None = None,
) -> RecordMapping:
    """Return the record of a table.

    Args:
        order: the columns that sort the lines.
        without: columns to omit.
        refers: maps a key column to the field of the line that has the id instead.
        extra: columns that are not in the line; the import fills them.
        state: export only rows in this state, which is not in the line; None: all.
    """
    refers = refers or {}
    result = metadata.tables[table]
    hidden = {*without, *extra, *(() if state is None else ("state",))}
    names = [column.name for column in result.c if column.name not in hidden]
    columns = tuple((name, refers.get(name, name)) for name in names)
    return RecordMapping(
        name=name,
        table=result,
        fields=tuple(field for _, field in columns),
        select=whole_tables.rows(table, columns, order, state),
        insert=whole_tables.insertion(table, columns, extra, state),
    )


# Ordered so that no record refers to a later one.
RECORDS: Final[tuple[RecordMapping, ...]] = (
    _record("source", "memory_sources", "source_id"),
    _record(
        "memory",
        "memories",
        "pk",
        extra=("pk", "orchestrator_id", "search_terms"),
    ),
    _record("edge", "memory_edges", "edge_id"),
    _record("derivation", "memory_derivations", "memory_id", "derived_from_id"),
    _record("support", "memory_supports", "memory_id", "source_id"),
    _record("status", "memory_status", "status_id", without=("status_id",)),
    _record("entity", "entities", "pk", without=("pk",)),
    _record(
        "alias",
        "entity_aliases",
        "alias_key",
        "entity_pk",
        refers={"entity_pk": "entity_id"},
    ),
    _record(
        "mention",
        "memory_entities",
        "memory_pk",
        "entity_pk",
        refers={"entity_pk": "entity_id", "memory_pk": "memory_id"},
    ),
    _record("session", "sessions", "session_id"),
    _record("ingest_file", "ingest_files", "sha256"),
    _record("document_key", "ingest_document_keys", "document_key", "memory_id"),
    _record("pending_link", "ingest_pending_links", "link_id", without=("link_id",)),
    _record("recall", "recalls", "recall_id"),
    _record("recall_item", "recall_items", "recall_id", "rank"),
    _record("bulletin", "bulletins", "bulletin_id"),
    _record("job_run", "job_runs", "run_id", without=("renewed_at",)),
    _record("journal", "audit_log", "seq"),
    _record(
        "embedding",
        "memory_embeddings",
        "memory_pk",
        without=("attempts", "next_attempt_at", "error_code", "visibility"),
        refers={"memory_pk": "memory_id"},
        state="ready",
    ),
)
