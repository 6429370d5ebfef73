"""A client of ``memgraph serve``: the library's methods, values and errors over HTTP.

``Client`` is blocking, ``AsyncClient`` asynchronous; both require the extra ``client``.
"""

from __future__ import annotations

from memgraph.errors import ExtraMissing

try:
    import httpx as _httpx  # noqa: F401 - imported only to report a missing extra
except ModuleNotFoundError:
    raise ExtraMissing.of("the client needs httpx", extra="client") from None

from memgraph.client.client import AsyncClient, Client
from memgraph.client.orchestrator import AsyncRemoteOrchestrator, RemoteOrchestrator

__all__ = ["AsyncClient", "AsyncRemoteOrchestrator", "Client", "RemoteOrchestrator"]
