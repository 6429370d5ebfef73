"""The schema of an orchestrator: the tables of the models, with triggers and further tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.schema import CreateIndex, CreateTable

from memgraph.model.columns import JSON
from memgraph.model.tables import metadata
from memgraph.store.postgres import row_changes
from memgraph.store.postgres.dialect import DIALECT, PLACE, extracted, numbered
from memgraph.store.tables import postings_schema

_TEXT_INDEX: Final = (
    "content source_role tags search_terms",
    "content source_role tags search_terms scope scope_id sensitivity",
)
_WORDS: Final = (
    "CREATE TABLE memory_words (pk BIGINT PRIMARY KEY, words tsvector NOT NULL)",
    "CREATE INDEX ix_memory_words_words ON memory_words USING gin (words) WITH (fastupdate = off)",
    "ALTER TABLE memory_words ALTER words SET STATISTICS 0",
    "CREATE TABLE memory_words_due (pk BIGINT PRIMARY KEY)",
    "CREATE TABLE alembic_version (version_num text PRIMARY KEY)",
)

# The names of the design documents, as in the initial migration for SQLite.
_VIEWS: Final = {
    "memory_items": """
        SELECT m.memory_id AS memory_item_id, m.agent_id,
            CASE m.kind WHEN 'episode' THEN 'EpisodicMemory' ELSE 'SemanticMemory' END AS tier,
            CASE m.scope WHEN 'session' THEN 'SessionScope' WHEN 'project' THEN 'ProjectScope'
                ELSE 'GlobalScope' END AS scope,
            CASE s.captured_by WHEN 'user' THEN 'UserSource' WHEN 'system' THEN 'SystemSource'
                ELSE 'AgentSource' END AS source,
            m.content, CAST(m.attributes AS jsonb) ->> 'metadata_json' AS metadata_json,
            m.turn_id AS generated_by_turn_id, m.session_id, m.sensitivity, m.created_at,
            m.updated_at
        FROM memories AS m JOIN memory_sources AS s ON s.source_id = m.source_id
        WHERE m.agent_id IS NOT NULL AND m.status = 'active'
    """,
    "vec_memories": """
        SELECT m.memory_id, e.vector AS embedding
        FROM memory_embeddings AS e JOIN memories AS m ON m.pk = e.memory_pk
        WHERE e.state = 'ready'
    """,
    "sessions_consolidations": ("SELECT session_id, first_seen_at, consolidated_at FROM sessions"),
}


def _differs(names: str) -> str:
    return " OR ".join(f"OLD.{item} IS DISTINCT FROM NEW.{item}" for item in names.split())


_BODIES: Final[dict[str, tuple[str, str]]] = {
    "text_changes_update": (
        f"AFTER UPDATE OF {', '.join(_TEXT_INDEX[1].split())}",
        f"BEGIN IF {_differs(_TEXT_INDEX[1])} THEN"
        " DELETE FROM text_changes WHERE pk = NEW.pk;"
        " INSERT INTO text_changes (pk) VALUES (NEW.pk);"
        " END IF; RETURN NULL; END",
    ),
    "text_changes_delete": (
        "AFTER DELETE",
        "BEGIN DELETE FROM text_changes WHERE pk = OLD.pk;"
        " INSERT INTO text_changes (pk) VALUES (OLD.pk); RETURN NULL; END",
    ),
    "memory_words_insert": (
        "AFTER INSERT",
        "BEGIN INSERT INTO memory_words_due VALUES (NEW.pk) ON CONFLICT DO NOTHING;"
        " RETURN NULL; END",
    ),
    "memory_words_update": (
        f"AFTER UPDATE OF {', '.join(_TEXT_INDEX[0].split())}",
        f"BEGIN IF {_differs(_TEXT_INDEX[0])} THEN"
        " INSERT INTO memory_words_due VALUES (NEW.pk) ON CONFLICT DO NOTHING;"
        " END IF; RETURN NULL; END",
    ),
    "memory_words_delete": (
        "AFTER DELETE",
        "BEGIN INSERT INTO memory_words_due VALUES (OLD.pk) ON CONFLICT DO NOTHING;"
        " RETURN NULL; END",
    ),
}


@cache
def tables() -> tuple[sa.Table, ...]:
    """Return the tables of the models and of the postings as they are here, referenced ones first.

    A table without an integer key has the additional column ``PLACE`` for row numbers.
    """
    own = sa.MetaData(naming_convention=metadata.naming_convention)
    for table in (*metadata.sorted_tables, *postings_schema.sorted_tables):
        _adapt(table.to_metadata(own))
    return tuple(own.sorted_tables)


def _adapt(table: sa.Table) -> None:
    for constraint in list(table.constraints):
        if isinstance(constraint, sa.CheckConstraint) and "json_valid(" in str(constraint.sqltext):
            table.constraints.remove(constraint)
    for column in table.columns:
        if column.info.get(JSON):
            # Refuse JSON that the server cannot parse, such as an escaped NUL: it would break
            # every query.
            name, parsed = column.name, f'CAST("{column.name}" AS jsonb)'
            check = f'"{name}" IS NULL OR {parsed} IS NOT NULL'
            table.append_constraint(sa.CheckConstraint(check, name=f"{name}_json"))
    key = numbered(table)
    if key is None:
        place = sa.Column(PLACE, sa.Integer, sa.Identity(always=True), unique=True)
        table.append_column(place)
    else:
        key.identity = sa.Identity()
    for index in table.indexes:
        where = index.dialect_options["sqlite"]["where"]
        if where is not None:
            index.dialect_options["postgresql"]["where"] = sa.text(_condition(str(where)))


def statements(head: str) -> Iterator[str]:
    """Yield the DDL of a schema; names are resolved by the search path.

    Args:
        head: the schema revision.
    """
    for table in tables():
        yield str(CreateTable(table).compile(dialect=DIALECT))
        for index in sorted(table.indexes, key=lambda index: str(index.name)):
            yield str(CreateIndex(index).compile(dialect=DIALECT))
        yield from _without_statistics(table)
    yield from _WORDS
    # A view with an offset cannot be written.
    yield from (f"CREATE VIEW {name} AS {query} OFFSET 0" for name, query in _VIEWS.items())
    yield f"INSERT INTO alembic_version VALUES ('{head}')"
    for name, (event, body) in _BODIES.items():
        yield f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $body${body}$body$"
        yield f"CREATE TRIGGER {name} {event} ON memories FOR EACH ROW EXECUTE FUNCTION {name}()"
    yield from row_changes.statements()


def _without_statistics(table: sa.Table) -> Iterator[str]:
    """Yield the DDL that keeps texts out of the server's statistics, which an erasure cannot clean.

    The planner does not need them: unindexed columns never select an index, and names of entities
    have only one.
    """
    indexed = {column.name for index in table.indexes for column in index.columns}
    is_named = table.name.startswith("entit")
    for column in table.columns:
        is_known = column.primary_key or column.foreign_keys or column.name in indexed
        if isinstance(column.type, sa.String) and (is_named or not is_known):
            yield f'ALTER TABLE {table.name} ALTER "{column.name}" SET STATISTICS 0'


def _condition(text: str) -> str:
    done = re.compile(r"json_extract\((\w+), '\$\.(\w+)'\) IS NOT (\d)")

    def compared(match: re.Match[str]) -> str:
        column, name, number = match.groups()
        extract = extracted(f"(CAST({column} AS jsonb) #> '{{{name}}}')")
        return f"{extract} IS DISTINCT FROM '{number}'"

    return done.sub(compared, text.replace("instr(", "strpos("))


def expected() -> dict[str, str]:
    """Return what ``described`` returns for a new schema."""
    results = {}
    for table in tables():
        columns = (
            f"{column.name} {column.type.compile(dialect=DIALECT).lower()}"
            for column in table.columns
        )
        results[f"table {table.name}"] = ", ".join(columns)
        results |= {f"index {index.name}": table.name for index in table.indexes}
    results |= {
        "table memory_words": "pk bigint, words tsvector",
        "table memory_words_due": "pk bigint",
        "index ix_memory_words_words": "memory_words",
    }
    bodies = {name: body for name, (_, body) in _BODIES.items()}
    return results | {
        f"trigger {name}": body for name, body in (bodies | row_changes.triggers()).items()
    }


_DESCRIBED: Final = """
    SELECT 'table ' || c.relname,
        string_agg(a.attname || ' ' || format_type(a.atttypid, a.atttypmod), ', ' ORDER BY a.attnum)
    FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid
    WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'
        AND a.attnum > 0 AND NOT a.attisdropped AND c.relname <> 'alembic_version'
    GROUP BY c.relname
    UNION ALL
    SELECT 'index ' || i.relname, t.relname
    FROM pg_index AS x JOIN pg_class AS i ON i.oid = x.indexrelid
        JOIN pg_class AS t ON t.oid = x.indrelid
    WHERE i.relnamespace = current_schema()::regnamespace AND i.relname LIKE 'ix%'
    UNION ALL
    SELECT 'trigger ' || t.tgname, p.prosrc
    FROM pg_trigger AS t JOIN pg_proc AS p ON p.oid = t.tgfoid
        JOIN pg_class AS c ON c.oid = t.tgrelid
    WHERE c.relnamespace = current_schema()::regnamespace AND NOT t.tgisinternal
        AND t.tgenabled <> 'D'
"""


def described(connection: Any) -> dict[str, str]:
    """Return the columns of each table, the table of each index and the body of each trigger."""
    return {
        str(name): str(text) for name, text in connection.execute(_DESCRIBED.replace("%%", "%"))
    }
