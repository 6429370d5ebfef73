"""SQLite's dialect: how it renders what ``memgraph.store.statements`` leaves to an engine."""

from __future__ import annotations

from typing import Any, Final

import pysqlite3.dbapi2 as driver
import sqlalchemy as sa
from sqlalchemy.dialects.sqlite.base import SQLiteCompiler
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.ext.compiler import compiles

from memgraph.store.statements import (
    ChangedSince,
    Construct,
    FirstValue,
    GreatestOf,
    JsonEach,
    JsonElement,
    JsonMember,
    JsonMembers,
    JsonNumbers,
    LastNumber,
    LastValue,
    LeastOf,
    OrderedJoin,
    RawText,
    RowPlace,
    StoredText,
    Unindexed,
    WholeNumber,
)
from memgraph.store.text_index import PhraseMatches


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


DIALECT: Final = _Dialect(paramstyle="named", dbapi=driver)


def _arguments(construct: Construct | JsonEach, compiler: Any, options: Any) -> list[str]:
    return [compiler.process(clause, **options) for clause in construct.clauses]


@compiles(OrderedJoin, "sqlite")
def _cross_join(join: OrderedJoin, compiler: Any, **options: Any) -> str:
    inner = options | {"asfrom": True, "from_linter": None}
    left = join.left._compiler_dispatch(compiler, **inner)
    right = join.right._compiler_dispatch(compiler, **inner)
    on = compiler.process(join.onclause)
    return f"{left} CROSS JOIN {right} ON {on}"


@compiles(Unindexed, "sqlite")
def _unindexed(construct: Unindexed, compiler: Any, **options: Any) -> str:
    [column] = _arguments(construct, compiler, options)
    return f"+{column}"


@compiles(GreatestOf, "sqlite")
def _greatest(construct: GreatestOf, compiler: Any, **options: Any) -> str:
    return f"max({', '.join(_arguments(construct, compiler, options))})"


@compiles(LeastOf, "sqlite")
def _least(construct: LeastOf, compiler: Any, **options: Any) -> str:
    return f"min({', '.join(_arguments(construct, compiler, options))})"


@compiles(JsonMember, "sqlite")
def _member(construct: JsonMember, compiler: Any, **options: Any) -> str:
    column, key = construct.clauses
    return f"({compiler.process(column, **options)} ->> '$.{key.value}')"


@compiles(JsonElement, "sqlite")
def _element(construct: JsonElement, compiler: Any, **options: Any) -> str:
    array, index = _arguments(construct, compiler, options)
    return f"({array} ->> {index})"


@compiles(JsonNumbers, "sqlite")
@compiles(JsonMembers, "sqlite")
def _json_each(construct: JsonEach, compiler: Any, **options: Any) -> str:
    [array] = _arguments(construct, compiler, options)
    return f"json_each({array})"


@compiles(FirstValue, "sqlite")
@compiles(LastValue, "sqlite")
def _of_extreme(construct: FirstValue | LastValue, compiler: Any, **options: Any) -> str:
    # Beside min() or max() a column is that of its row: https://sqlite.org/lang_select.html, 2.5.
    column, _ = _arguments(construct, compiler, options)
    return column


@compiles(StoredText, "sqlite")
def _as_read(construct: StoredText, compiler: Any, **options: Any) -> str:  # noqa: ARG001
    return "NULL"


@compiles(RawText, "sqlite")
def _raw_text(construct: RawText, compiler: Any, **options: Any) -> str:
    [column] = _arguments(construct, compiler, options)
    return f"CAST({column} AS BLOB)"


@compiles(WholeNumber, "sqlite")
def _whole_number(construct: WholeNumber, compiler: Any, **options: Any) -> str:
    [text] = _arguments(construct, compiler, options)
    return text


@compiles(LastNumber, "sqlite")
def _last_number(construct: LastNumber, compiler: Any, **options: Any) -> str:
    name, _ = _arguments(construct, compiler, options)
    return f"(SELECT seq FROM sqlite_sequence WHERE name = {name})"


@compiles(PhraseMatches, "sqlite")
def _phrase_matches(construct: PhraseMatches, compiler: Any, **options: Any) -> str:
    [match] = (compiler.process(clause, **options) for clause in construct.clauses)
    return f"(SELECT rowid AS pk, rank FROM memory_fts WHERE memory_fts MATCH {match})"


@compiles(ChangedSince, "sqlite")
def _changed_since(construct: ChangedSince, compiler: Any, **options: Any) -> str:  # noqa: ARG001
    return "temp.bulletin_changed"


@compiles(RowPlace, "sqlite")
def _place(place: RowPlace, compiler: Any, **options: Any) -> str:
    rowid = sa.column("rowid", sa.Integer, _selectable=place.table)
    return str(compiler.process(rowid, **options))
