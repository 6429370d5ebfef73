"""What another process puts into a store in tests."""

from __future__ import annotations

from pathlib import Path

from memgraph import MemoryService
from memgraph.operations.context.namespaces import ItemPut, NamespaceHandle
from memgraph.providers.fake import FakeEmbedding

PUTS = 10


def put(root: Path, worker: str) -> None:
    """Put what is this process's own, and one that others put as well."""
    with MemoryService(root, environ={}, background=False, embedding=FakeEmbedding(16)) as service:
        store = NamespaceHandle(service.orchestrator("orc-1"))
        for at in range(PUTS):
            shared = ItemPut(("users", "alice"), "shared", {"by": worker, "at": at})
            store.put_all([shared, ItemPut(("users", "alice"), f"{worker}-{at}", {"at": at})])
