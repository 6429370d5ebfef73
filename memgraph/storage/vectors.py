"""The vector index: a vec0 table of canonical vectors, derived and rebuildable."""

from __future__ import annotations

from typing import Any


def create_index(connection: Any, dimensions: int) -> None:
    """Make the empty index for vectors of ``dimensions`` numbers."""
    connection.execute(
        f"CREATE VIRTUAL TABLE memory_vectors USING vec0("
        f"memory_pk INTEGER PRIMARY KEY, embedding float[{int(dimensions)}] distance_metric=cosine)"
    )
    connection.execute(
        "INSERT OR REPLACE INTO memory_metadata (key, value) VALUES ('embedding_dimensions', ?)",
        (str(dimensions),),
    )
