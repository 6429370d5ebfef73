"""Audits: the health of what is stored, changes between two times, influence."""

from __future__ import annotations

from memgraph.service.handle_auditing import AuditingHandle, HistoryHandle, InfluenceHandle
from memgraph.surfaces.http.operations import router_of

router = router_of(AuditingHandle, HistoryHandle, InfluenceHandle)
