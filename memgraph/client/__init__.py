"""A client of ``memgraph serve``: the library's methods, values and errors over HTTP.

``Client`` blocks, ``AsyncClient`` is awaited; both come with the extra ``client``.
"""

from __future__ import annotations

from memgraph.errors import ExtraMissing

try:
    import httpx as _httpx  # noqa: F401 - asked for by name, so that what is missing can be told
except ModuleNotFoundError:
    raise ExtraMissing.of("the client needs httpx", extra="client") from None

from memgraph.client.client import AsyncClient, Client
from memgraph.client.orchestrator import AsyncRemoteOrchestrator, RemoteOrchestrator

__all__ = ["AsyncClient", "AsyncRemoteOrchestrator", "Client", "RemoteOrchestrator"]
