"""Statements as expressions over the tables: compiled once, then handed to the driver.

An expression that SQLAlchemy compiles for each call costs 30 to 170 µs; the driver takes a text
that it knows with 3. So a statement is built by a function marked ``prepared``, whose arguments
are its shape, and compiled when a shape is first asked for. Values that are known when it is built
are literals, which partial indexes need; what changes is a ``value``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, ParamSpec

import sqlalchemy as sa
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.dialects.sqlite.base import SQLiteCompiler
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import GenericFunction
from sqlalchemy.sql.selectable import Join

from memgraph.store.snapshot import Snapshot, Transaction

P = ParamSpec("P")
Column = sa.ColumnElement[Any]
SHAPES = 256
"""So many shapes of one statement are kept."""


class _Compiler(SQLiteCompiler):
    def visit_bindparam(self, bindparam: Any, *rest: Any, **options: Any) -> Any:
        # A ``value`` has none yet: it is required.
        if not bindparam.required:
            options["literal_binds"] = True
        return super().visit_bindparam(bindparam, *rest, **options)  # type: ignore[no-untyped-call]

    def visit_unary(self, unary: Any, *rest: Any, **options: Any) -> Any:
        text = super().visit_unary(unary, *rest, **options)  # type: ignore[no-untyped-call]
        if unary.operator is sa.sql.operators.exists:
            # Where all columns are named, an index that has those in question would not do.
            return text.replace("EXISTS (SELECT * ", "EXISTS (SELECT 1 ", 1)
        return text

    def get_from_hint_text(self, table: Any, text: Any) -> Any:  # noqa: ARG002
        return text


class _Dialect(SQLiteDialect_pysqlite):
    statement_compiler = _Compiler
    supports_statement_cache = True


_DIALECT = _Dialect(paramstyle="named")


def rendered(expression: sa.ClauseElement) -> str:
    """Return the text of an expression, with ``:name`` for each ``value``."""
    return str(expression.compile(dialect=_DIALECT))


class Statement:
    """A compiled statement. Values are plain: an enum's member takes the driver 10 µs more."""

    __slots__ = ("text",)

    def __init__(self, expression: sa.ClauseElement) -> None:
        self.text = rendered(expression)

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
        transaction.driver.executemany(self.text, values)

    def _execute(
        self, snapshot: Snapshot, values: Mapping[str, Any] | None, more: dict[str, Any]
    ) -> Any:
        return snapshot.driver.execute(self.text, {**values, **more} if values else more)


def prepared(build: Callable[P, sa.ClauseElement]) -> Callable[P, Statement]:
    """Compile what a function builds, once for each of its arguments.

    The arguments are hashable and few: a view's shape, a flag. What they leave open is a ``value``.
    """

    @lru_cache(maxsize=SHAPES)
    def compiled(*shape: Any, **named: Any) -> Statement:
        return Statement(build(*shape, **named))

    return compiled  # type: ignore[return-value]  # a cache has no parameters of its own


def value(name: str) -> Column:
    """Return the place of a value that is given when the statement is executed."""
    return sa.bindparam(name)


class _JsonEach(GenericFunction[Any]):
    """The elements of a JSON array as rows: ``key`` (their order) and ``value``."""

    name = "json_each"
    inherit_cache = True


def listed(name: str, alias: str) -> Any:
    """Return a table of the elements of a JSON array that is given as ``name``.

    Its columns are ``value`` and ``key``, which counts from 0.
    """
    return each(value(name), alias)


def each(array: Column, alias: str, key: str | None = None) -> Any:
    """Return a table of the elements of a JSON array; see ``listed``.

    Args:
        key: of the member that is the array; None: it is the whole value.
    """
    path: list[Column] = [] if key is None else [sa.literal_column(f"'$.{key}'")]
    return _JsonEach(array, *path).table_valued("value", "key", name=alias)


def among(column: Column, name: str) -> Column:
    """Return whether a column's value is in a JSON array that is given as ``name``."""
    return column.in_(sa.select(sa.column("value")).select_from(_JsonEach(value(name))))


def is_untrue(condition: Column) -> Column:
    """Return whether a condition is false or NULL."""
    return condition.is_not(sa.true())


def holds_all(array: Column, name: str) -> Column:
    """Return whether a JSON array holds all that a JSON array has that is given as ``name``."""
    wanted, held = listed(name, "wanted"), each(array, "held")
    return ~sa.exists().where(wanted.c.value.not_in(sa.select(held.c.value)))


class _OrderedJoin(Join):
    """A join that the planner executes from left to right."""

    inherit_cache = True


@compiles(_OrderedJoin, "sqlite")
def _cross_join(join: _OrderedJoin, compiler: Any, **options: Any) -> str:
    inner = options | {"asfrom": True, "from_linter": None}
    left = join.left._compiler_dispatch(compiler, **inner)
    right = join.right._compiler_dispatch(compiler, **inner)
    on = compiler.process(join.onclause)
    return f"{left} CROSS JOIN {right} ON {on}"


def ordered(first: Any, *joined: tuple[Any, Column]) -> Any:
    """Join tables so that each row is looked up from those before it.

    Args:
        first: the table that is read first.
        joined: further tables, each with its condition.
    """
    join = first
    for table, condition in joined:
        join = _OrderedJoin(join, table, condition)
    return join


def unindexed(column: Column) -> Column:
    """Return a column whose index the planner leaves alone."""
    return sa.sql.elements.UnaryExpression(column, operator=sa.sql.operators.custom_op("+"))


def greatest(*columns: Column) -> Column:
    """Return the greatest of some values; NULL where one of them is."""
    return sa.func.max(*columns)


def least(*columns: Column) -> Column:
    """Return the least of some values; NULL where one of them is."""
    return sa.func.min(*columns)


def place_of(table: sa.FromClause) -> Column:
    """Return the place of a row in the order in which a table's rows were stored."""
    return sa.column("rowid", sa.Integer, _selectable=table)


def member(column: Column, key: str) -> Column:
    """Return a member of a JSON object, as text or number; NULL where there is none."""
    return column.op("->>")(sa.literal_column(f"'$.{key}'"))


def element(array: Column, index: int) -> Column:
    """Return an element of a JSON array, counted from 0; see ``member``."""
    return array.op("->>")(sa.literal(index))


def replacing(table: sa.Table) -> sa.Insert:
    """Insert a row, given by the names of all columns; it takes the place of one of its key."""
    row = insert(table).values({each.name: value(each.name) for each in table.columns})
    rest = {each.name: row.excluded[each.name] for each in table.columns if not each.primary_key}
    return row.on_conflict_do_update(index_elements=list(table.primary_key), set_=rest)


def last_number(table: sa.Table) -> sa.Select[Any]:
    """Select the highest key that a table's rows ever had, also removed ones; none: it had none."""
    given = sa.table("sqlite_sequence", sa.column("name", sa.Text), sa.column("seq"))
    return sa.select(given.c.seq).where(given.c.name == table.name)
