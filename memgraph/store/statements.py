"""Statements as SQLAlchemy expressions, compiled once and then executed by the driver.

Executing an expression through SQLAlchemy costs 30 to 170 µs per call; executing a cached text with
the driver costs 3. So a statement is built by a function decorated with ``prepared``, whose
arguments are its shape, and is compiled at the first use of each shape. Values known at build time
become literals, which partial indexes need; all other values are parameters (``value``).

A statement that is executed once per operation is instead built where it is used, with its values
(``bound``), and passed to a method of the snapshot; see ``BuiltStatement``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from json import JSONEncoder
from typing import TYPE_CHECKING, Any, Final, NamedTuple, ParamSpec, TypeVar

import sqlalchemy as sa

# PostgreSQL's ``insert`` would load all of its drivers; ON CONFLICT is the same in both dialects.
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.sql.functions import FunctionElement, GenericFunction
from sqlalchemy.sql.selectable import Join
from sqlalchemy.util import LRUCache

from memgraph.model.columns import stored_type

if TYPE_CHECKING:
    from memgraph.store.engine import Engine
    from memgraph.store.snapshot import Snapshot, Transaction

P = ParamSpec("P")
T = TypeVar("T")
Column = sa.ColumnElement[Any]
SHAPES = 256
"""The number of compiled shapes that are cached per statement."""
_json = JSONEncoder().encode
_KEYS: Final = {
    "memories": "memory_id",
    "memory_edges": "edge_id",
    "memory_sources": "source_id",
    "entities": "entity_id",
}


class _JsonParameter(sa.BindParameter[Any]):
    """A parameter that is bound as a JSON array: a collection, or a string of encoded JSON."""

    inherit_cache = True


@dataclass(slots=True)
class SkippedRows:
    """The rows that a reader leaves out.

    Attributes:
        found: True once a value of a wrong type was found.
        damaged: the ids of rows with such a value, as far as they were read with it.
        ids: the ids of the rows that were left out; rows that contain one are left out, too.
    """

    found: bool = False
    damaged: set[str] = field(default_factory=set)
    ids: set[str] = field(default_factory=set)


class ResultColumn(NamedTuple):
    """A column of a result: its name, its table, and the Python types of its values.

    The types are None for an expression without a known type.
    """

    name: str
    table: str
    types: type | tuple[type, ...] | None


class SoundRows:
    """A cursor without the rows that have values of wrong types, or ids of such rows.

    Args:
        skipped: receives the rows that are left out.
    """

    def __init__(self, cursor: Any, columns: Sequence[ResultColumn], skipped: SkippedRows) -> None:
        self._cursor = cursor
        self._columns = columns
        self._skipped = skipped

    def __iter__(self) -> Iterator[Any]:
        return filter(self._is_sound, self._cursor)

    def fetchall(self) -> list[Any]:
        return list(self)

    def fetchone(self) -> Any:
        return next(iter(self), None)

    def _is_sound(self, row: Sequence[Any]) -> bool:
        cells = list(zip(self._columns, row, strict=True))
        # An expression without a known type never has a value of bytes.
        wrong = {
            column.table
            for column, cell in cells
            if cell is not None and not isinstance(cell, column.types or (str, int, float))
        }
        ids = self._skipped.ids
        tables = wrong | {
            column.table for column, cell in cells if isinstance(cell, str) and cell in ids
        }
        if not tables:
            return True
        own = {
            cell
            for column, cell in cells
            if column.table in tables
            and column.name == _KEYS.get(column.table)
            and isinstance(cell, str)
        }
        if wrong:
            self._skipped.found = True
            self._skipped.damaged |= own
        ids |= own
        return False


Values = Mapping[str, Any] | None


class Executed(ABC):
    """Executes a statement on a snapshot; one of them is the object, the other the first argument.

    Values are passed as a mapping, by name, or both. Pass plain values, because binding an enum
    member takes 10 µs more. Lists are bound as JSON.
    """

    __slots__ = ()

    @abstractmethod
    def _execute(self, other: Any, values: Values, more: dict[str, Any], /) -> Any: ...

    def cursor(self, other: Any, values: Values = None, /, **more: Any) -> Any:
        """Return the driver's cursor, to stop before the last row."""
        return self._execute(other, values, more)

    def rows(self, other: Any, values: Values = None, /, **more: Any) -> list[Any]:
        """Return all rows as tuples."""
        rows: list[Any] = self._execute(other, values, more).fetchall()
        return rows

    def mapped(
        self, make: Callable[[Any], T], other: Any, values: Values = None, /, **more: Any
    ) -> list[T]:
        """Return ``make(row)`` for each row."""
        return list(map(make, self._execute(other, values, more).fetchall()))

    def row(self, other: Any, values: Values = None, /, **more: Any) -> Any:
        """Return the first row, or None if there is no row."""
        return self._execute(other, values, more).fetchone()

    def column(self, other: Any, values: Values = None, /, **more: Any) -> list[Any]:
        """Return the first value of every row."""
        return [first for first, *_ in self._execute(other, values, more)]

    def scalar(self, other: Any, values: Values = None, /, **more: Any) -> Any:
        """Return the first value of the first row, or None if there is no row."""
        row = self._execute(other, values, more).fetchone()
        return None if row is None else row[0]


class CompiledStatement(Executed):
    """A statement that is compiled once per engine."""

    __slots__ = ("_expression", "_json", "_texts")

    def __init__(self, expression: sa.ClauseElement) -> None:
        self._expression = expression
        self._texts: dict[Engine, str] = {}
        # The names of the values that are bound as JSON.
        self._json: tuple[str, ...] = ()

    def text(self, engine: Engine) -> str:
        """Return the SQL for an engine's driver."""
        text = self._texts.get(engine)
        if text is None:
            compiled = self._expression.compile(dialect=engine.dialect)
            binds: Mapping[str, Any] = getattr(compiled, "binds", {})
            self._json = tuple(
                name for name, bind in binds.items() if isinstance(bind, _JsonParameter)
            )
            text = self._texts[engine] = str(compiled)
        return text

    def write(self, transaction: Transaction, values: Values = None, /, **more: Any) -> int:
        """Execute the statement and return the number of rows it affected."""
        count: int = self._execute(transaction, values, more).rowcount
        return count

    def write_all(self, transaction: Transaction, values: Iterable[Mapping[str, Any]]) -> None:
        """Execute the statement once for each mapping."""
        transaction.driver.executemany(self.text(transaction.engine), values)

    def _execute(self, snapshot: Snapshot, values: Values, more: dict[str, Any], /) -> Any:
        text = self._texts.get(snapshot.engine) or self.text(snapshot.engine)
        params = {**values, **more} if values else more
        for name in self._json:
            items = params[name]
            if items is not None and type(items) is not str:
                params[name] = _json(list(items))
        return self._run(snapshot, text, params)

    def _run(self, snapshot: Snapshot, text: str, params: Mapping[str, Any]) -> Any:
        cursor = snapshot.driver.execute(text, params)
        if snapshot.skipped is None or not isinstance(self._expression, sa.SelectBase):
            return cursor
        columns = list(map(_result_column, self._expression.exported_columns))
        return SoundRows(cursor, columns, snapshot.skipped)


class BuiltStatement(CompiledStatement):
    """A statement that is built where it is used, with its values (``bound``).

    The SQL of statements of one shape is compiled once per engine.
    """

    __slots__ = ("_cache_key", "_shape")

    def __init__(self, expression: sa.ClauseElement) -> None:
        super().__init__(expression)
        key = expression._generate_cache_key()
        assert key is not None, "the constructs of a statement have cache keys"
        # Constants are literals in the SQL, and so belong to the shape.
        constants = (
            tuple(item.value) if isinstance(item.value, list) else item.value
            for item in key.bindparams
            if not item.required
        )
        self._cache_key = key
        self._shape = (key.key, *constants)

    def _execute(self, snapshot: Snapshot, values: Values, more: dict[str, Any], /) -> Any:
        return self._run(snapshot, *self.compiled(snapshot, values, more))

    def compiled(
        self, snapshot: Snapshot, values: Values, more: Mapping[str, Any]
    ) -> tuple[str, dict[str, Any]]:
        """Return the SQL for a snapshot's driver, and the values that it binds."""
        shape = (snapshot.engine, *self._shape)
        compiled: Any = _COMPILED.get(shape)
        if compiled is None:
            dialect, key = snapshot.engine.dialect, self._cache_key
            compiled = _COMPILED[shape] = self._expression.compile(dialect=dialect, cache_key=key)
        extracted = self._cache_key.bindparams
        params: dict[str, Any] = compiled.construct_params(
            extracted_parameters=extracted, _check=False
        )
        params.update(values or {}, **more)
        for bind, name in compiled.bind_names.items():
            if isinstance(bind, _JsonParameter) and not isinstance(params[name], str | None):
                params[name] = _json(list(params[name]))
        return str(compiled), params


_COMPILED: LRUCache[Any, Any] = LRUCache(1_000)


def _result_column(column: Column) -> ResultColumn:
    bases = [base.table for base in column.base_columns if isinstance(base, sa.Column)]
    table = str(bases[0].name) if bases and isinstance(bases[0], sa.Table) else ""
    is_raw = isinstance(getattr(column, "element", column), RawText)
    types = (str, bytes) if is_raw else stored_type(column.type)
    return ResultColumn(getattr(column, "name", ""), table, types)


def prepared(build: Callable[P, sa.ClauseElement]) -> Callable[P, CompiledStatement]:
    """Decorate a function that builds a statement; compile it once per combination of arguments.

    The arguments are the shape of the statement. They must be hashable and have few values, such as
    the shape of a view or a flag. Everything else is bound as a ``value``.
    """

    @lru_cache(maxsize=SHAPES)
    def kept(*shape: Any, **options: Any) -> CompiledStatement:
        return CompiledStatement(build(*shape, **options))

    return kept  # type: ignore[return-value]  # a cache has no parameters of its own


def value(name: str, type_: Any = None) -> Column:
    """Return a parameter, whose value is bound when the statement is executed.

    Args:
        type_: its SQL type, needed only if the statement compares it with NULL.
    """
    return sa.bindparam(name, type_=type_)


def bound(item: Any) -> Column:
    """Return a value that a ``BuiltStatement`` passes to the driver."""
    return sa.BindParameter(None, item, sa.types.NULLTYPE, required=True, unique=True)


class JsonEach(GenericFunction[Any]):
    """The elements of a JSON array as rows: ``key`` (their order) and ``value``."""

    name = "json_each"
    inherit_cache = True


class JsonNumbers(JsonEach):
    """The elements of a JSON array of integers as rows."""

    name = "json_numbers"
    inherit_cache = True


Listed = str | Collection[Any]
"""The name that a list is bound as, or the list; see ``value`` and ``bound``."""


def _array(items: Listed) -> _JsonParameter:
    if isinstance(items, str):
        return _JsonParameter(items)
    return _JsonParameter(None, items, sa.types.NULLTYPE, required=True, unique=True)


def listed(items: Listed, alias: str, *, numbers: bool = False) -> Any:
    """Return a table of the elements of a list.

    Its columns are ``value`` and ``key``, the position from 0.

    Args:
        numbers: True if the elements are integers; otherwise they are strings or arrays.
    """
    kind = JsonNumbers if numbers else JsonEach
    return kind(_array(items)).table_valued("value", "key", name=alias)


def each(array: Column, alias: str, key: str | None = None) -> Any:
    """Return a table of the elements of a JSON array; see ``listed``.

    Args:
        key: the key of the member that contains the array; None: the value is the array.
    """
    path: list[Column] = [] if key is None else [sa.literal_column(f"'$.{key}'")]
    return JsonEach(array, *path).table_valued("value", "key", name=alias)


def among(column: Column, items: Listed) -> Column:
    """Return the condition that a column's value is in a list."""
    kind = JsonNumbers if isinstance(column.type, sa.Integer) else JsonEach
    return column.in_(sa.select(sa.column("value")).select_from(kind(_array(items))))


def is_untrue(condition: Column) -> Column:
    """Return the condition that another one is false or NULL."""
    return condition.is_not(sa.true())


def holds_all(array: Column, items: Listed) -> Column:
    """Return the condition that a JSON array has every element of a list, which is not empty."""
    required, stored = listed(items, "wanted"), each(array, "held")
    # Most arrays are empty: those need not be parsed.
    return (array != "[]") & ~sa.exists().where(required.c.value.not_in(sa.select(stored.c.value)))


class OrderedJoin(Join):
    """A join that the planner must execute from left to right."""

    inherit_cache = True


def ordered(first: Any, *joined: tuple[Any, Column]) -> Any:
    """Join tables in this order, so that each is looked up from the ones before it.

    Args:
        first: the table to read first.
        joined: further tables, each with its join condition.
    """
    join = first
    for table, condition in joined:
        join = OrderedJoin(join, table, condition)
    return join


class Construct(FunctionElement[Any]):
    """A construct that each engine's ``dialect`` renders in its own way.

    Its type is that of its first column, unless ``type_`` is set.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.inherit_cache = True

    def __init__(self, *columns: Column, type_: Any = None) -> None:
        super().__init__(*columns)
        self.type = columns[0].type if type_ is None else type_


class Unindexed(Construct):
    """A column for which the planner must not use an index."""

    name = "unindexed"


class GreatestOf(Construct):
    """The greatest of several values; NULL if any of them is NULL."""

    name = "greatest"


class LeastOf(Construct):
    """The least of several values; NULL if any of them is NULL."""

    name = "least"


class JsonMember(Construct):
    name = "member"


class JsonElement(Construct):
    name = "element"


class StoredText(Construct):
    """A column to order by, on engines that do not keep the order of the joined rows."""

    name = "as_read"


class RawText(Construct):
    """A text as it is stored; read as bytes if the engine may store invalid text."""

    name = "raw_text"


def arguments(construct: FunctionElement[Any], compiler: Any, options: Any) -> list[str]:
    """Return the arguments of a construct, rendered by a dialect's compiler."""
    return [compiler.process(clause, **options) for clause in construct.clauses]


unindexed, greatest, least = Unindexed, GreatestOf, LeastOf
as_read, raw_text = StoredText, RawText


class RowPlace(sa.ColumnClause[int]):
    """The position of a row in the order in which the rows of its table were stored."""

    inherit_cache = True


def place_of(table: sa.FromClause) -> Column:
    """Return the position of a row in the order in which the rows of a table were stored."""
    return RowPlace("place", sa.Integer, _selectable=table)


def member(column: Column, key: str, type_: Any = None) -> Column:
    """Return a member of a JSON object; NULL if it does not exist.

    Args:
        key: the key of the member; ``one.two`` is a nested member.
        type_: its SQL type; None: text.
    """
    return JsonMember(column, sa.literal(key), type_=type_)


def element(array: Column, index: int, type_: Any = None) -> Column:
    """Return the element of a JSON array at an index from 0; see ``member``."""
    return JsonElement(array, sa.literal(index), type_=type_)


def replacing(table: sa.Table) -> sa.Insert:
    """Insert a row by the names of all columns, or replace the row with the same key."""
    row = insert(table).values({column.name: value(column.name) for column in table.columns})
    rest = {
        column.name: row.excluded[column.name] for column in table.columns if not column.primary_key
    }
    return row.on_conflict_do_update(index_elements=list(table.primary_key), set_=rest)


@prepared
def _row_count(table: str) -> sa.Select[Any]:
    return sa.select(sa.func.count()).select_from(sa.table(table))


def row_count(snapshot: Snapshot, table: str) -> int:
    """Return the number of rows in a table.

    Args:
        table: its name in the database.
    """
    return int(_row_count(table).scalar(snapshot))
