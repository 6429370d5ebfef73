"""Values that were, as far as an older schema tells them: for exports that were made of one."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

from memgraph.storage.statements import driver

KEPT_SINCE: Final = "0005"
"""The schema from which on every change leaves the values that were."""

# Word for word those of the migration to that schema.
_LOST: Final = """
    INSERT INTO memory_revisions
        (memory_id, until, importance, confidence, decay_rate, valid_until, tags, attributes)
    SELECT m.memory_id, lost.at, m.importance, lost.confidence, m.decay_rate,
        nullif(m.valid_until, lost.at), m.tags, m.attributes
    FROM (SELECT json_extract(resolution, '$.loser_id') AS loser_id, min(resolved_at) AS at,
            json_extract(resolution, '$.loser_prior_confidence') AS confidence
        FROM memory_edges WHERE edge_type = 'Contradicts' AND resolved_at IS NOT NULL
        GROUP BY 1) lost
    JOIN memories m ON m.memory_id = lost.loser_id
    WHERE lost.confidence IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM memory_revisions r WHERE r.memory_id = m.memory_id)
"""
_OPEN: Final = """
    INSERT INTO memory_revisions
        (memory_id, until, importance, confidence, decay_rate, valid_until, tags, attributes)
    SELECT m.memory_id, h.since, m.importance, m.confidence, m.decay_rate, NULL, m.tags,
        m.attributes
    FROM memory_status h JOIN memories m ON m.memory_id = h.memory_id
    WHERE h.until IS NULL AND h.status <> 'active' AND m.valid_until = h.since
        AND h.since > m.created_at
        AND NOT EXISTS (SELECT 1 FROM memory_revisions r WHERE r.memory_id = m.memory_id)
"""


def fill_in(connection: sa.Connection) -> None:
    """Keep the confidence before a contradiction was lost, and that an end was open before it."""
    for statement in (_LOST, _OPEN):
        driver(connection).execute(statement)
