"""The tables of the postings; see ``postings``. Migrations make them by hand."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

SCHEMA: Final = sa.MetaData()

segments: Final = sa.Table(
    "text_segments",
    SCHEMA,
    sa.Column("segment", sa.Integer, primary_key=True),
    sa.Column("stamp", sa.Integer, nullable=False),
    sa.Column("first_pk", sa.Integer, nullable=False),
    sa.Column("documents", sa.Integer, nullable=False),
    sa.Column("tokens", sa.Integer, nullable=False),
    sa.Column("lengths", sa.LargeBinary, nullable=False),
    sa.Column("marks", sa.LargeBinary, nullable=False),
)
postings: Final = sa.Table(
    "text_postings",
    SCHEMA,
    sa.Column("segment", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("term", sa.Text, primary_key=True),
    sa.Column("postings", sa.LargeBinary, nullable=False),
)
changes: Final = sa.Table(
    "text_changes",
    SCHEMA,
    sa.Column("seq", sa.Integer, primary_key=True),
    sa.Column("pk", sa.Integer, nullable=False, unique=True),
)
