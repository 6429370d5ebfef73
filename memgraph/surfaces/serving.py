"""`memgraph serve`: the surfaces of one process put together, from its start to its end."""

from __future__ import annotations

from memgraph.errors import InvalidConfig
from memgraph.service.access.gate import Gate
from memgraph.service.access.keys import KeyStore
from memgraph.service.memory_service import MemoryService

LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


def serve(service: MemoryService) -> None:
    """Serve until SIGTERM or SIGINT.

    Raises:
        InvalidConfig: it would be open to those who have no key.
    """
    import uvicorn

    from memgraph.surfaces.http.app import create_app

    chosen = service.settings().memory.server
    keys = KeyStore(service.root, service.clock)
    if chosen.host not in LOOPBACK and (not keys.has_any or not chosen.allowed_hosts):
        raise InvalidConfig(
            "an address that others reach takes a key (memgraph key create) and "
            "memory.server.allowed_hosts",
            host=chosen.host,
        )
    keyless = chosen.allow_without_key and chosen.host in LOOPBACK
    app = create_app(Gate(service, keys, keyless=keyless))
    uvicorn.run(app, host=chosen.host, port=chosen.port, access_log=False, log_config=None)
