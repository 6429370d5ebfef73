"""Find the store of an orchestrator: a file, or a schema on a server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memgraph.errors import InvalidConfig

if TYPE_CHECKING:
    from memgraph.paths import OrchestratorPaths
    from memgraph.store.engine import Store
    from memgraph.store.postgres.stores import PostgresStores


def server_of(url: str) -> PostgresStores:
    """Return the server for a ``memory.storage.url``, without connecting.

    Raises:
        InvalidConfig: it is not the address of a server.
        ExtraMissing: the extra for its engine is not installed.
    """
    from memgraph.store.postgres import checked_url
    from memgraph.store.postgres.stores import PostgresStores

    return PostgresStores(checked_url(url))


def store_of(paths: OrchestratorPaths, url: str = "") -> Store:
    """Return the store of an orchestrator, without opening it.

    Args:
        url: ``memory.storage.url``; empty: the store is a file.

    Raises:
        InvalidConfig: the URL names a server, but the orchestrator is stored in a file.
        ExtraMissing: the extra for the server's engine is not installed.
    """
    if url:
        if paths.database.exists() and not paths.moving.exists():
            raise InvalidConfig(
                f"memory.storage.url names a server, but {paths.name} is stored in a file; clear"
                " the setting for this orchestrator",
                field="memory.storage.url",
            )
        from memgraph.store.postgres import checked_url
        from memgraph.store.postgres.stores import PostgresStore

        return PostgresStore(checked_url(url), paths.name)
    from memgraph.store.sqlite.stores import SqliteStore

    return SqliteStore(paths.database, paths.name)
