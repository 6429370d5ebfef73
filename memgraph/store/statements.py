"""Statements as expressions over the tables: compiled once, then handed to the driver.

An expression that SQLAlchemy compiles for each call costs 30 to 170 µs; the driver takes a text
that it knows with 3. So a statement is built by a function marked ``prepared``, whose arguments
are its shape, and compiled when a shape is first asked for. Values that are known when it is built
are literals, which partial indexes need; what changes is a ``value``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ParamSpec

import sqlalchemy as sa

# PostgreSQL's own would load all its drivers; INSERT … ON CONFLICT is the same in either.
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.sql.functions import FunctionElement, GenericFunction
from sqlalchemy.sql.selectable import Join

from memgraph.store.snapshot import Snapshot, Transaction

if TYPE_CHECKING:
    from memgraph.store.engine import Engine

P = ParamSpec("P")
Column = sa.ColumnElement[Any]
SHAPES = 256
"""So many shapes of one statement are kept."""


def rendered(expression: sa.ClauseElement, engine: Engine) -> str:
    """Return the text of an expression, with ``:name`` for each ``value``."""
    return str(expression.compile(dialect=engine.dialect))


class CompiledStatement:
    """A statement, compiled once for an engine.

    Values are plain: an enum's member takes the driver 10 µs more.
    """

    __slots__ = ("_expression", "_texts")

    def __init__(self, expression: sa.ClauseElement) -> None:
        self._expression = expression
        self._texts: dict[Engine, str] = {}

    def text(self, engine: Engine) -> str:
        """Return what an engine's driver executes."""
        text = self._texts.get(engine)
        if text is None:
            text = self._texts[engine] = rendered(self._expression, engine)
        return text

    def rows(
        self, snapshot: Snapshot, values: Mapping[str, Any] | None = None, **more: Any
    ) -> list[Any]:
        """Return all rows, which are tuples."""
        rows: list[Any] = self._execute(snapshot, values, more).fetchall()
        return rows

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
        return snapshot.driver.execute(text, {**values, **more} if values else more)


def prepared(build: Callable[P, sa.ClauseElement]) -> Callable[P, CompiledStatement]:
    """Keep what a function builds, once for each of its arguments.

    The arguments are hashable and few: a view's shape, a flag. What they leave open is a ``value``.
    """

    @lru_cache(maxsize=SHAPES)
    def kept(*shape: Any, **named: Any) -> CompiledStatement:
        return CompiledStatement(build(*shape, **named))

    return kept  # type: ignore[return-value]  # a cache has no parameters of its own


def value(name: str, type_: Any = None) -> Column:
    """Return the place of a value that is given when the statement is executed.

    Args:
        type_: what it is, where the statement asks whether it is NULL; None: that shows.
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


def listed(name: str, alias: str, *, numbers: bool = False) -> Any:
    """Return a table of the elements of a JSON array that is given as ``name``.

    Its columns are ``value`` and ``key``, which counts from 0.

    Args:
        numbers: whether the elements are whole numbers; else they are texts or arrays.
    """
    kind = JsonNumbers if numbers else JsonEach
    return kind(value(name)).table_valued("value", "key", name=alias)


def members(name: str, alias: str) -> Any:
    """Return a table of the members of a JSON object of whole numbers that is given as ``name``."""
    return JsonMembers(value(name)).table_valued("value", "key", name=alias)


def each(array: Column, alias: str, key: str | None = None) -> Any:
    """Return a table of the elements of a JSON array; see ``listed``.

    Args:
        key: of the member that is the array; None: it is the whole value.
    """
    path: list[Column] = [] if key is None else [sa.literal_column(f"'$.{key}'")]
    return JsonEach(array, *path).table_valued("value", "key", name=alias)


def among(column: Column, name: str) -> Column:
    """Return whether a column's value is in a JSON array that is given as ``name``."""
    kind = JsonNumbers if isinstance(column.type, sa.Integer) else JsonEach
    return column.in_(sa.select(sa.column("value")).select_from(kind(value(name))))


def is_untrue(condition: Column) -> Column:
    """Return whether a condition is false or NULL."""
    return condition.is_not(sa.true())


def holds_all(array: Column, name: str) -> Column:
    """Return whether a JSON array holds all that a JSON array has that is given as ``name``."""
    wanted, held = listed(name, "wanted"), each(array, "held")
    return ~sa.exists().where(wanted.c.value.not_in(sa.select(held.c.value)))


class OrderedJoin(Join):
    """A join that the planner executes from left to right."""

    inherit_cache = True


def ordered(first: Any, *joined: tuple[Any, Column]) -> Any:
    """Join tables so that each row is looked up from those before it.

    Args:
        first: the table that is read first.
        joined: further tables, each with its condition.
    """
    join = first
    for table, condition in joined:
        join = OrderedJoin(join, table, condition)
    return join


class Construct(FunctionElement[Any]):
    """A construct that each dialect renders its own way, see ``compiles`` in the engine's
    ``dialect``.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.inherit_cache = True

    def __init__(self, *columns: Column, type_: Any = None) -> None:
        super().__init__(*columns)
        if type_ is not None:
            self.type = type_


class Unindexed(Construct):
    name = "unindexed"


class GreatestOf(Construct):
    name = "greatest"


class LeastOf(Construct):
    name = "least"


class JsonMember(Construct):
    name = "member"


class JsonElement(Construct):
    name = "element"


class FirstValue(Construct):
    name = "of_first"


class LastValue(Construct):
    name = "of_last"


class StoredText(Construct):
    name = "as_read"


class RawText(Construct):
    name = "raw_text"


class WholeNumber(Construct):
    name = "whole_number"


class LastNumber(Construct):
    name = "last_number"


class RowPlace(sa.ColumnClause[int]):
    """The place of a row in its table."""

    inherit_cache = True


def unindexed(column: Column) -> Column:
    """Return a column whose index the planner leaves alone."""
    return Unindexed(column, type_=column.type)


def greatest(*columns: Column) -> Column:
    """Return the greatest of some values; NULL where one of them is."""
    return GreatestOf(*columns, type_=columns[0].type)


def least(*columns: Column) -> Column:
    """Return the least of some values; NULL where one of them is."""
    return LeastOf(*columns, type_=columns[0].type)


def of_first(column: Column, by: Column) -> Column:
    """Return the value in the row of a group where ``by`` is least; select that least value, too,
    and no other extreme."""
    return FirstValue(column, by, type_=column.type)


def of_last(column: Column, by: Column) -> Column:
    """Return the value in the row of a group where ``by`` is greatest; see ``of_first``."""
    return LastValue(column, by, type_=column.type)


def as_read(column: Column) -> Column:
    """Return what to order by, for an engine that does not read in the order of a join."""
    return StoredText(column, type_=column.type)


def place_of(table: sa.FromClause) -> Column:
    """Return the place of a row in the order in which a table's rows were stored."""
    return RowPlace("place", sa.Integer, _selectable=table)


def member(column: Column, key: str, type_: Any = None) -> Column:
    """Return a member of a JSON object; NULL where there is none.

    Args:
        key: its name; ``one.two`` is a member of a member.
        type_: what it is; None: a text.
    """
    return JsonMember(column, sa.literal(key), type_=column.type if type_ is None else type_)


def element(array: Column, index: int) -> Column:
    """Return an element of a JSON array, counted from 0; see ``member``."""
    return JsonElement(array, sa.literal(index), type_=array.type)


def raw_text(column: Column) -> Column:
    """Return a text as it is stored, as bytes where the engine may hold bytes that are none."""
    return RawText(column, type_=column.type)


def whole_number(text: Column) -> Column:
    """Return the whole number that a value of JSON is."""
    return WholeNumber(text, type_=sa.Integer())


def replacing(table: sa.Table) -> sa.Insert:
    """Insert a row, given by the names of all columns; it takes the place of one of its key."""
    row = insert(table).values({each.name: value(each.name) for each in table.columns})
    rest = {each.name: row.excluded[each.name] for each in table.columns if not each.primary_key}
    return row.on_conflict_do_update(index_elements=list(table.primary_key), set_=rest)


def last_number(table: sa.Table) -> sa.Select[Any]:
    """Select the highest key that a table's rows ever had, also removed ones; NULL: it had none."""
    names = (sa.literal(each.name, sa.Text()) for each in (table, *table.primary_key))
    return sa.select(LastNumber(*names, type_=sa.Integer()))
