"""A database of its own for each test of the graph."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from filling import Filling, fresh_database

from memgraph.store.engine import Database


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with fresh_database(tmp_path) as opened:
        yield opened


@pytest.fixture
def filling(database: Database) -> Filling:
    return Filling(database)
