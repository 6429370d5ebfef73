"""Schemas that moves have left on servers, where no erasure reaches them."""

from __future__ import annotations

import json

from memgraph.paths import OrchestratorPaths
from memgraph.store.files import draft_beside, publish


def note_left_on_server(paths: OrchestratorPaths, url: str, schema: str) -> None:
    """Note that a move has left a schema on a server; ``url`` is without a password."""
    places = left_on_servers(paths)
    paths.left_on_servers.parent.mkdir(parents=True, exist_ok=True)
    with draft_beside(paths.left_on_servers) as draft:
        draft.write_text(json.dumps([*places, f"{schema} on {url}"]), "utf-8")
        publish(draft, paths.left_on_servers, force=True)


def left_on_servers(paths: OrchestratorPaths) -> list[str]:
    """Return the noted schemas, as ``schema on address``, the oldest first."""
    try:
        places: list[str] = json.loads(paths.left_on_servers.read_text("utf-8"))
    except FileNotFoundError:
        return []
    return places
