"""Receipts of what was handed out; past bulletins; replays."""

from __future__ import annotations

from memgraph.service.handle_auditing import ReceiptsHandle
from memgraph.surfaces.http.operations import router_of

router = router_of(ReceiptsHandle)
