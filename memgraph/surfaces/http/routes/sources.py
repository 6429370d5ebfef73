"""Sources: their memories, their trust, retracting them."""

from __future__ import annotations

from memgraph.service.handle_sources import SourcesHandle
from memgraph.surfaces.http.operations import router_of

router = router_of(SourcesHandle)
