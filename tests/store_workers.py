"""What another process puts into a store in tests."""

from __future__ import annotations

import sys
from pathlib import Path

from memgraph import MemoryService
from memgraph.providers.fake import FakeEmbedding
from memgraph.service.context.namespaces import ItemPut, NamespaceHandle

PUTS = 10


def main() -> None:
    """Arguments: the root, and a number for this process."""
    root, worker = Path(sys.argv[1]), sys.argv[2]
    with MemoryService(root, environ={}, background=False, embedding=FakeEmbedding(16)) as service:
        store = NamespaceHandle(service.orchestrator("orc-1"))
        for at in range(PUTS):
            shared = ItemPut(("users", "alice"), "shared", {"by": worker, "at": at})
            store.put_all([shared, ItemPut(("users", "alice"), f"{worker}-{at}", {"at": at})])


if __name__ == "__main__":
    main()
