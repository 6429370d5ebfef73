"""Constant SQL for what is written often.

SQLAlchemy takes about 200 µs to build, key and process a statement of its own, several times what
SQLite needs for it; a text that is made once goes straight to the driver. It binds plain values:
an enum's member takes it 10 µs more than the member's value.
"""

from __future__ import annotations

from collections.abc import Sequence


def insert_into(table: str, columns: Sequence[str], *, or_ignore: bool = False) -> str:
    """An INSERT whose values are given by column name; with ``or_ignore`` a known row stays."""
    verb = "INSERT OR IGNORE" if or_ignore else "INSERT"
    values = ", ".join(f":{column}" for column in columns)
    return f"{verb} INTO {table} ({', '.join(columns)}) VALUES ({values})"
