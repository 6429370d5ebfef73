"""Entities."""

from __future__ import annotations

from memgraph.service.handle_entities import EntitiesHandle
from memgraph.surfaces.http.operations import router_of

router = router_of(EntitiesHandle)
