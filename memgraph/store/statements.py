"""Statements as expressions over the tables: compiled once, then handed to the driver.

An expression that SQLAlchemy compiles for each call costs 30 to 170 µs; the driver takes a text
that it knows with 3. So a statement is built by a function marked ``prepared``, whose arguments
are its shape, and compiled when a shape is first asked for. Values that are known when it is built
are literals, which partial indexes need; what changes is a ``value``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from json import JSONEncoder
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import sqlalchemy as sa

# PostgreSQL's own would load all its drivers; INSERT … ON CONFLICT is the same in either.
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.sql.functions import FunctionElement, GenericFunction
from sqlalchemy.sql.selectable import Join

from memgraph.store.snapshot import Snapshot, Transaction

if TYPE_CHECKING:
    from memgraph.store.engine import Engine

P = ParamSpec("P")
T = TypeVar("T")
Column = sa.ColumnElement[Any]
SHAPES = 256
"""The number of shapes of one statement that are kept."""
_json = JSONEncoder().encode


class _JsonParameter(sa.BindParameter[Any]):
    """A value that is bound as a JSON array: any collection, or a text that is JSON already."""

    inherit_cache = True
    plain: Callable[[Any], Any] = list


class _JsonObject(_JsonParameter):
    """A value that is bound as a JSON object."""

    inherit_cache = True
    plain = dict


def rendered(expression: sa.ClauseElement, engine: Engine) -> str:
    """Return the text of an expression, with ``:name`` for each ``value``."""
    return str(expression.compile(dialect=engine.dialect))


class CompiledStatement:
    """A statement, compiled once for an engine.

    Values are plain: an enum's member takes the driver 10 µs more. Lists are bound as JSON.
    """

    __slots__ = ("_expression", "_json", "_texts")

    def __init__(self, expression: sa.ClauseElement) -> None:
        self._expression = expression
        self._texts: dict[Engine, str] = {}
        # The names of the values that are bound as JSON, and what makes them plain.
        self._json: tuple[tuple[str, Callable[[Any], Any]], ...] = ()

    def text(self, engine: Engine) -> str:
        """Return the SQL that an engine's driver executes."""
        text = self._texts.get(engine)
        if text is None:
            compiled = self._expression.compile(dialect=engine.dialect)
            binds: Mapping[str, Any] = getattr(compiled, "binds", {})
            self._json = tuple(
                (name, type(bind).plain)
                for name, bind in binds.items()
                if isinstance(bind, _JsonParameter)
            )
            text = self._texts[engine] = str(compiled)
        return text

    def rows(
        self, snapshot: Snapshot, values: Mapping[str, Any] | None = None, **more: Any
    ) -> list[Any]:
        """Return all rows, which are tuples."""
        rows: list[Any] = self._execute(snapshot, values, more).fetchall()
        return rows

    def mapped(
        self,
        make: Callable[[Any], T],
        snapshot: Snapshot,
        values: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> list[T]:
        """Return ``make(row)`` for each row."""
        return [make(row) for row in self._execute(snapshot, values, more).fetchall()]

    def row(self, snapshot: Snapshot, values: Mapping[str, Any] | None = None, **more: Any) -> Any:
        """Return the first row; None: there is none."""
        return self._execute(snapshot, values, more).fetchone()

    def column(
        self, snapshot: Snapshot, values: Mapping[str, Any] | None = None, **more: Any
    ) -> list[Any]:
        """Return the first value of every row."""
        return [first for first, *_ in self._execute(snapshot, values, more)]

    def scalar(
        self, snapshot: Snapshot, values: Mapping[str, Any] | None = None, **more: Any
    ) -> Any:
        """Return the first value of the first row; None: there is no row."""
        row = self._execute(snapshot, values, more).fetchone()
        return None if row is None else row[0]

    def cursor(
        self, snapshot: Snapshot, values: Mapping[str, Any] | None = None, **more: Any
    ) -> Any:
        """Return the driver's cursor, for more rows than should be in memory at once."""
        return self._execute(snapshot, values, more)

    def write(
        self, transaction: Transaction, values: Mapping[str, Any] | None = None, **more: Any
    ) -> int:
        """Return how many rows were written."""
        count: int = self._execute(transaction, values, more).rowcount
        return count

    def write_all(self, transaction: Transaction, values: Iterable[Mapping[str, Any]]) -> None:
        """Execute the statement once for each mapping."""
        transaction.driver.executemany(self.text(transaction.engine), values)

    def _execute(
        self, snapshot: Snapshot, values: Mapping[str, Any] | None, more: dict[str, Any]
    ) -> Any:
        text = self._texts.get(snapshot.engine) or self.text(snapshot.engine)
        bound = {**values, **more} if values else more
        for name, plain in self._json:
            items = bound[name]
            if items is not None and type(items) is not str:
                bound[name] = _json(plain(items))
        return snapshot.driver.execute(text, bound)


def prepared(build: Callable[P, sa.ClauseElement]) -> Callable[P, CompiledStatement]:
    """Compile the statement that a function builds once for each combination of its arguments.

    The arguments are its shape: hashable and few, such as a view's shape or a flag. Everything else
    is bound as a ``value``.
    """

    @lru_cache(maxsize=SHAPES)
    def kept(*shape: Any, **options: Any) -> CompiledStatement:
        return CompiledStatement(build(*shape, **options))

    return kept  # type: ignore[return-value]  # a cache has no parameters of its own


def value(name: str, type_: Any = None) -> Column:
    """Return the parameter for a value that is bound when the statement is executed.

    Args:
        type_: needed only where the statement compares it with NULL.
    """
    return sa.bindparam(name, type_=type_)


class JsonEach(GenericFunction[Any]):
    """The elements of a JSON array as rows: ``key`` (their order) and ``value``."""

    name = "json_each"
    inherit_cache = True


class JsonNumbers(JsonEach):
    """The same where the elements are whole numbers."""

    name = "json_numbers"
    inherit_cache = True


class JsonMembers(JsonEach):
    """The members of a JSON object as rows: ``key`` and ``value``, which is a whole number."""

    name = "json_members"
    inherit_cache = True


class ChangedSince(GenericFunction[Any]):
    """The memories that have changed since a time, as rows: ``memory_id``; see ``bulletins``."""

    name = "changed_since"
    inherit_cache = True


def listed(name: str, alias: str, *, numbers: bool = False) -> Any:
    """Return a table of the elements of a list that is bound as ``name``.

    Its columns are ``value`` and ``key``, which counts from 0.

    Args:
        numbers: whether the elements are whole numbers; else they are texts or arrays.
    """
    kind = JsonNumbers if numbers else JsonEach
    return kind(_JsonParameter(name)).table_valued("value", "key", name=alias)


def members(name: str, alias: str) -> Any:
    """Return a table of the members of a mapping to whole numbers that is bound as ``name``."""
    return JsonMembers(_JsonObject(name)).table_valued("value", "key", name=alias)


def each(array: Column, alias: str, key: str | None = None) -> Any:
    """Return a table of the elements of a JSON array; see ``listed``.

    Args:
        key: of the member that is the array; None: it is the whole value.
    """
    path: list[Column] = [] if key is None else [sa.literal_column(f"'$.{key}'")]
    return JsonEach(array, *path).table_valued("value", "key", name=alias)


def among(column: Column, name: str) -> Column:
    """Return whether a column's value is in a list that is bound as ``name``."""
    kind = JsonNumbers if isinstance(column.type, sa.Integer) else JsonEach
    return column.in_(sa.select(sa.column("value")).select_from(kind(_JsonParameter(name))))


def is_untrue(condition: Column) -> Column:
    """Return whether a condition is false or NULL."""
    return condition.is_not(sa.true())


def holds_all(array: Column, name: str) -> Column:
    """Return whether a JSON array has every element of a list that is bound as ``name``."""
    required, stored = listed(name, "wanted"), each(array, "held")
    return ~sa.exists().where(required.c.value.not_in(sa.select(stored.c.value)))


class OrderedJoin(Join):
    """A join that the planner executes from left to right."""

    inherit_cache = True


def ordered(first: Any, *joined: tuple[Any, Column]) -> Any:
    """Join tables in this order: each row is looked up from those before it.

    Args:
        first: the table that is read first.
        joined: further tables, each with its condition.
    """
    join = first
    for table, condition in joined:
        join = OrderedJoin(join, table, condition)
    return join


class Construct(FunctionElement[Any]):
    """A construct that each engine's ``dialect`` renders its own way.

    Its type is that of its first column, unless another one is named.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.inherit_cache = True

    def __init__(self, *columns: Column, type_: Any = None) -> None:
        super().__init__(*columns)
        self.type = columns[0].type if type_ is None else type_


class Unindexed(Construct):
    """A column whose index the planner leaves alone."""

    name = "unindexed"


class GreatestOf(Construct):
    """The greatest of some values; NULL where one of them is."""

    name = "greatest"


class LeastOf(Construct):
    """The least of some values; NULL where one of them is."""

    name = "least"


class JsonMember(Construct):
    name = "member"


class JsonElement(Construct):
    name = "element"


class FirstValue(Construct):
    """The value of a column in that row of a group where another column is least.

    Select that least value, too, and no other extreme.
    """

    name = "of_first"


class LastValue(Construct):
    """The value of a column in that row of a group where another is greatest."""

    name = "of_last"


class StoredText(Construct):
    """A column to order by, for an engine that does not read in the order of a join."""

    name = "as_read"


class RawText(Construct):
    """A text as it is stored: as bytes where the engine may hold bytes that are no text."""

    name = "raw_text"


class WholeNumber(Construct):
    """The whole number that a value of JSON is."""

    name = "whole_number"

    def __init__(self, text: Column) -> None:
        super().__init__(text, type_=sa.Integer())


class LastNumber(Construct):
    name = "last_number"


def arguments(construct: FunctionElement[Any], compiler: Any, options: Any) -> list[str]:
    """Return the arguments of a construct, rendered by a dialect's compiler."""
    return [compiler.process(clause, **options) for clause in construct.clauses]


unindexed, greatest, least = Unindexed, GreatestOf, LeastOf
of_first, of_last = FirstValue, LastValue
as_read, raw_text, whole_number = StoredText, RawText, WholeNumber


class RowPlace(sa.ColumnClause[int]):
    """The place of a row in its table."""

    inherit_cache = True


def place_of(table: sa.FromClause) -> Column:
    """Return the place of a row in the order in which a table's rows were stored."""
    return RowPlace("place", sa.Integer, _selectable=table)


def member(column: Column, key: str, type_: Any = None) -> Column:
    """Return a member of a JSON object; NULL where there is none.

    Args:
        key: its name; ``one.two`` is a member of a member.
        type_: what it is; None: a text.
    """
    return JsonMember(column, sa.literal(key), type_=type_)


def element(array: Column, index: int) -> Column:
    """Return an element of a JSON array, counted from 0; see ``member``."""
    return JsonElement(array, sa.literal(index))


def replacing(table: sa.Table) -> sa.Insert:
    """Insert a row by the names of all columns, or replace the row of the same key."""
    row = insert(table).values({column.name: value(column.name) for column in table.columns})
    rest = {
        column.name: row.excluded[column.name] for column in table.columns if not column.primary_key
    }
    return row.on_conflict_do_update(index_elements=list(table.primary_key), set_=rest)


def last_number(table: sa.Table) -> sa.Select[Any]:
    """Select the highest key that a table's rows ever had; NULL: none."""
    names = (sa.literal(item.name, sa.Text()) for item in (table, *table.primary_key))
    return sa.select(LastNumber(*names, type_=sa.Integer()))


@prepared
def _row_count(table: str) -> sa.Select[Any]:
    return sa.select(sa.func.count()).select_from(sa.table(table))


def row_count(snapshot: Snapshot, table: str) -> int:
    """Return how many rows a table has, by its name in the database."""
    return int(_row_count(table).scalar(snapshot))
