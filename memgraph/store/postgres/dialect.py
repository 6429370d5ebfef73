"""Render the constructs of ``memgraph.store.statements`` for PostgreSQL.

Statements return the same as in SQLite: booleans are numbers in Python, texts are compared byte by
byte, and integers have 64 bits.
"""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any, Final

import psycopg
import sqlalchemy as sa
from sqlalchemy.dialects.postgresql.base import PGTypeCompiler
from sqlalchemy.dialects.postgresql.psycopg import PGCompiler_psycopg, PGDialect_psycopg
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql import operators
from sqlalchemy.sql.functions import coalesce

from memgraph.store.statements import (
    Construct,
    GreatestOf,
    JsonEach,
    JsonElement,
    JsonMember,
    JsonNumbers,
    LeastOf,
    OrderedJoin,
    RawText,
    RowPlace,
    StoredText,
    Unindexed,
    arguments,
)
from memgraph.store.text_index import PhraseMatches

PLACE: Final = "place"
"""The column with the row number, in tables without an integer key."""
# The names of JSON types in SQLite's ``json_type``.
_TYPE_OF: Final = (
    "CASE jsonb_typeof({0}) WHEN 'string' THEN 'text' WHEN 'number' THEN"
    " CASE WHEN {0}::text ~ '[.eE]' THEN 'real' ELSE 'integer' END"
    " WHEN 'boolean' THEN {0}::text ELSE jsonb_typeof({0}) END"
)

_SIGNS: Final = {operators.eq: "=", operators.is_distinct_from: "IS DISTINCT FROM"}


def extracted(document: str) -> str:
    """Return the SQL that converts a jsonb value to text as SQLite does: booleans as 0 or 1."""
    return (
        f"(CASE {document} WHEN CAST('true' AS jsonb) THEN '1' WHEN CAST('false' AS jsonb) THEN '0'"
        f" ELSE {document} #>> '{{}}' END)"
    )


class _Types(PGTypeCompiler):
    def visit_INTEGER(self, type_: Any, **_: Any) -> str:  # noqa: ARG002, N802
        return "BIGINT"

    def visit_TEXT(self, type_: Any, type_expression: Any = None, **_: Any) -> str:  # noqa: ARG002, N802
        # Only the definition of a column has a collation.
        return 'TEXT COLLATE "C"' if isinstance(type_expression, sa.Column) else "TEXT"

    visit_VARCHAR = visit_TEXT  # noqa: N815

    def visit_FLOAT(self, type_: Any, **_: Any) -> str:  # noqa: ARG002, N802
        return "DOUBLE PRECISION"


class _Compiler(PGCompiler_psycopg):
    def _listed(self, clauses: Any, options: Any) -> list[str]:
        return [self.process(clause, **options) for clause in clauses]

    def _on_conflict_target(self, clause: Any, **options: Any) -> Any:
        # The statements use SQLite's Insert, which has no ``constraint_target``.
        target = SimpleNamespace(
            constraint_target=None,
            inferred_target_elements=clause.inferred_target_elements,
            inferred_target_whereclause=clause.inferred_target_whereclause,
        )
        return super()._on_conflict_target(target, **options)  # type: ignore[no-untyped-call]

    def visit_instr_func(self, function: Any, **options: Any) -> str:
        return f"strpos({', '.join(self._listed(function.clauses, options))})"

    def visit_substr_func(self, function: Any, **options: Any) -> str:
        text, start, *_ = function.clauses
        place = getattr(start, "value", None)
        if isinstance(place, int) and place < 0:
            return f"right({self.process(text, **options)}, {-place})"
        first, *numbers = self._listed(function.clauses, options)
        return f"substr({', '.join([first, *(f'CAST({item} AS INTEGER)' for item in numbers)])})"

    def visit_log2_func(self, function: Any, **options: Any) -> str:
        [number] = self._listed(function.clauses, options)
        return f"(ln(CAST({number} AS DOUBLE PRECISION)) / ln(CAST(2 AS DOUBLE PRECISION)))"

    def visit_json_func(self, function: Any, **options: Any) -> str:
        [text] = self._listed(function.clauses, options)
        return f"CAST({text} AS jsonb)"

    def visit_json_valid_func(self, function: Any, **options: Any) -> str:
        [text] = self._listed(function.clauses, options)
        return f"({text} IS JSON)"

    def visit_json_array_func(self, function: Any, **options: Any) -> str:
        return f"jsonb_build_array({', '.join(self._listed(function.clauses, options))})"

    def visit_json_object_func(self, function: Any, **options: Any) -> str:
        return f"jsonb_build_object({', '.join(self._listed(function.clauses, options))})"

    def visit_json_group_array_func(self, function: Any, **options: Any) -> str:
        [value] = self._listed(function.clauses, options)
        return f"coalesce(jsonb_agg({value}), '[]')"

    def visit_json_group_object_func(self, function: Any, **options: Any) -> str:
        key, value = self._listed(function.clauses, options)
        return f"coalesce(jsonb_object_agg({key}, {value}), '{{}}')"

    def visit_json_extract_func(self, function: Any, **options: Any) -> str:
        document, path = function.clauses
        return extracted(self._found(document, path, options))

    def visit_json_type_func(self, function: Any, **options: Any) -> str:
        document, path = function.clauses
        return f"({_TYPE_OF.format(self._found(document, path, options))})"

    def visit_json_patch_func(self, function: Any, **options: Any) -> str:
        # Only for patches without nested objects. A null in the patch removes a member.
        document, patch = self._listed(function.clauses, options)
        keys = f"ARRAY(SELECT jsonb_object_keys(CAST({patch} AS jsonb)))"
        rest = f"CAST({document} AS jsonb) - {keys}"
        return f"CAST(({rest}) || jsonb_strip_nulls(CAST({patch} AS jsonb)) AS text)"

    def _found(self, document: Any, path: Any, options: Any) -> str:
        """Return the SQL for a member as jsonb; the path is a literal, ``$.a.b``."""
        steps = path.value.removeprefix("$.").replace(".", ",")
        return f"(CAST({self.process(document, **options)} AS jsonb) #> '{{{steps}}}')"

    def visit_binary(self, binary: Any, *rest: Any, **options: Any) -> Any:
        if binary.operator is operators.in_op and _is_of_list(binary.right):
            # An array makes the server use the index, whatever its estimate for the list.
            left, right = (
                self.process(binary.left, **options),
                self.process(binary.right, **options),
            )
            return f"{left} = ANY (ARRAY{right})"
        number = getattr(binary.right, "value", None)
        if getattr(binary.left, "name", None) == "json_extract" and isinstance(number, int):
            # ``extracted`` returns a text, so compare with a text.
            left = self.process(binary.left, **options)
            return f"{left} {_SIGNS[binary.operator]} '{number}'"
        return super().visit_binary(binary, *rest, **options)  # type: ignore[no-untyped-call]

    def visit_cte(self, cte: Any, *rest: Any, **options: Any) -> Any:
        if cte.recursive:
            self._recursive = {**getattr(self, "_recursive", {}), id(cte.element): cte.name}
        return super().visit_cte(cte, *rest, **options)

    def visit_compound_select(self, cs: Any, *rest: Any, **options: Any) -> Any:
        text: str = super().visit_compound_select(cs, *rest, **options)  # type: ignore[no-untyped-call]
        name = getattr(self, "_recursive", {}).get(id(cs))
        if name is None or len(cs.selects) == 2:
            return text
        # A recursive CTE may refer to itself only once, so the other legs share that reference.
        first, *legs = re.split(r"\s+UNION\s+", text)
        further = " UNION ".join(re.sub(rf"\b{name}\b", "found_last", leg) for leg in legs)
        return f"{first} UNION (WITH found_last AS (SELECT * FROM {name}) {further})"

    def visit_select(self, select_stmt: Any, *rest: Any, **options: Any) -> Any:
        if not self.stack:
            select_stmt = in_order(select_stmt)
        return super().visit_select(select_stmt, *rest, **options)  # type: ignore[no-untyped-call]

    def limit_clause(self, select: Any, **options: Any) -> str:
        text: str = super().limit_clause(select, **options)  # type: ignore[no-untyped-call]
        limit = select._limit_clause
        if getattr(limit, "value", None) == -1:
            return text.replace("LIMIT -1", "")
        if isinstance(limit, sa.BindParameter) and limit.required:
            # In SQLite, a limit of -1 means no limit.
            bound = self.process(limit, **options)
            text = text.replace(f"LIMIT {bound}", f"LIMIT nullif({bound}, -1)")
        return text


class _PreparedCompiler(_Compiler):
    def visit_bindparam(self, bindparam: Any, *rest: Any, **options: Any) -> Any:
        # Render constants as literals. A ``value`` is a required parameter and stays one.
        if not bindparam.required:
            options["literal_binds"] = True
        return super().visit_bindparam(bindparam, *rest, **options)  # type: ignore[no-untyped-call]


class Dialect(PGDialect_psycopg):
    """The PostgreSQL dialect for connections that begin their transactions themselves."""

    statement_compiler = _Compiler
    type_compiler_cls = _Types
    supports_statement_cache = True

    def __init__(self, **options: Any) -> None:
        super().__init__(dbapi=psycopg, **options)  # type: ignore[no-untyped-call]
        self._backslash_escapes = False


class _Prepared(Dialect):
    statement_compiler = _PreparedCompiler
    supports_statement_cache = True


DIALECT: Final = _Prepared()


def _is_of_list(subquery: Any) -> bool:
    """Return True if a subquery reads first from a list that is a parameter."""
    select = getattr(subquery, "element", subquery)
    joins: Any = getattr(select, "_from_obj", ())
    if len(joins) != 1 or select._limit_clause is not None:
        return False
    first: Any = joins[0]
    while isinstance(first, sa.sql.selectable.Join):
        first = first.left
    element: Any = getattr(first, "element", first)
    return isinstance(element, JsonEach) and isinstance(
        next(iter(element.clauses)), sa.BindParameter
    )


def in_order(select: sa.Select[Any]) -> sa.Select[Any]:
    """Add the order in which SQLite returns the rows of a join that starts with a list.

    Other statements are returned unchanged.
    """
    if select._order_by_clauses or select._group_by_clauses or select._distinct:
        return select
    if len(select._from_obj) != 1:
        return select
    tables: list[Any] = []
    join: Any = select._from_obj[0]
    while isinstance(join, sa.sql.selectable.Join):
        tables.insert(0, join.right)
        join = join.left
    if not isinstance(getattr(join, "element", None), JsonEach) or not tables:
        return select
    places = [
        RowPlace("place", sa.Integer, _selectable=table)
        for table in tables
        if isinstance(getattr(table, "element", table), sa.Table)
    ]
    return select.order_by(join.c.key, *places)


@compiles(JsonEach, "postgresql")
def _json_each(construct: JsonEach, compiler: Any, **options: Any) -> str:
    return _elements(construct, compiler, options, 'e.value COLLATE "C"')


@compiles(JsonNumbers, "postgresql")
def _json_numbers(construct: JsonNumbers, compiler: Any, **options: Any) -> str:
    return _elements(construct, compiler, options, "CAST(e.value AS BIGINT)")


def _elements(construct: JsonEach, compiler: Any, options: Any, value: str) -> str:
    array, *path = construct.clauses
    document = f"CAST({compiler.process(array, **options)} AS json)"
    if path:
        [step] = path
        document = f"({document} -> '{step.name.strip(chr(39)).removeprefix('$.')}')"
    if not isinstance(array, sa.BindParameter):
        document = (
            f"CASE json_typeof({document}) WHEN 'array' THEN {document}"
            f" WHEN 'object' THEN '[]' ELSE json_build_array({document}) END"
        )
    return (
        f"LATERAL (SELECT {value} AS value, e.place - 1 AS key"
        f" FROM json_array_elements_text({document}) WITH ORDINALITY AS e(value, place))"
    )


@compiles(OrderedJoin, "postgresql")
def _join(join: OrderedJoin, compiler: Any, **options: Any) -> str:
    inner = options | {"asfrom": True, "from_linter": None}
    left = join.left._compiler_dispatch(compiler, **inner)
    right = join.right._compiler_dispatch(compiler, **inner)
    on = compiler.process(join.onclause)
    if not isinstance(getattr(join.right, "element", join.right), sa.Table):
        return f"{left} JOIN {right} ON {on}"
    # LATERAL with OFFSET 0 forces an index lookup for each row on the left, whatever the estimates.
    table: Any = join.right
    name = compiler.preparer.format_alias(table, table.name)
    return f"{left} JOIN LATERAL (SELECT * FROM {right} WHERE {on} OFFSET 0) AS {name} ON true"


@compiles(Unindexed, "postgresql")
@compiles(StoredText, "postgresql")
@compiles(RawText, "postgresql")
def _column(construct: Construct, compiler: Any, **options: Any) -> str:
    [column] = arguments(construct, compiler, options)
    return column


@compiles(GreatestOf, "postgresql")
@compiles(LeastOf, "postgresql")
def _extreme(construct: GreatestOf | LeastOf, compiler: Any, **options: Any) -> str:
    values = arguments(construct, compiler, options)
    # PostgreSQL ignores NULL here, but SQLite returns it. Every coalesce() among them ends with a
    # value and is never NULL: asking would compute it twice.
    items = zip(construct.clauses, values, strict=True)
    nullable = [text for item, text in items if not isinstance(item, coalesce)]
    are_known = " AND ".join(f"{text} IS NOT NULL" for text in nullable) or "true"
    return f"CASE WHEN {are_known} THEN {construct.name}({', '.join(values)}) END"


@compiles(JsonMember, "postgresql")
def _member(construct: JsonMember, compiler: Any, **options: Any) -> str:
    column, key = construct.clauses
    document = f"CAST({compiler.process(column, **options)} AS jsonb)"
    steps = key.value.split(".")
    return _typed(f"({document} #>> '{{{','.join(steps)}}}')", construct, compiler)


@compiles(JsonElement, "postgresql")
def _element(construct: JsonElement, compiler: Any, **options: Any) -> str:
    array, index = construct.clauses
    text = f"(CAST({compiler.process(array, **options)} AS json) ->> {index.value})"
    return _typed(text, construct, compiler)


def _typed(text: str, construct: Construct, compiler: Any) -> str:
    """Return the SQL that converts a text to the type of a construct."""
    if isinstance(construct.type, sa.String | sa.types.NullType):
        return f'{text} COLLATE "C"'
    return f"CAST({text} AS {compiler.dialect.type_compiler_instance.process(construct.type)})"


@compiles(PhraseMatches, "postgresql")
def _phrase_matches(construct: PhraseMatches, compiler: Any, **options: Any) -> str:
    [match] = arguments(construct, compiler, options)
    query = f"CAST({match} AS tsquery)"
    return (
        f"(SELECT w.pk, -ts_rank(w.words, {query}) AS rank FROM memory_words AS w"
        f" WHERE w.words @@ {query})"
    )


@compiles(RowPlace, "postgresql")
def _place(place: RowPlace, compiler: Any, **options: Any) -> str:
    table: Any = place.table
    base = getattr(table, "element", table)
    number = numbered(base)
    column = sa.column(PLACE if number is None else number.name, sa.Integer, _selectable=table)
    return str(compiler.process(column, **options))


def numbered(table: sa.Table) -> sa.Column[Any] | None:
    """Return the integer primary key of a table; None if it has none."""
    keys = list(table.primary_key)
    is_one = len(keys) == 1 and isinstance(keys[0].type, sa.Integer) and not keys[0].foreign_keys
    return keys[0] if is_one else None
