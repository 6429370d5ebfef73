"""Let existing memories decay as their origin, type and importance say"""

from __future__ import annotations

import hashlib
import json

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

# One after all that happened under the earlier rates.
MOMENT = """
    SELECT 1 + max(coalesce((SELECT max(at) FROM audit_log), 0),
        coalesce((SELECT max(created_at) FROM recalls), 0))
"""
# A fact that consolidation took from the words of a person: of a name, of a user, or of a turn that
# was stored as a person's.
QUOTED = """
    s.source_type = 'channel_transcript' AND json_extract(m.attributes, '$.quote') IS NOT NULL
    AND json_extract(m.attributes, '$.model') IS NULL AND EXISTS (
        SELECT 1 FROM memory_derivations d JOIN memories t ON t.memory_id = d.derived_from_id
        WHERE d.memory_id = m.memory_id AND t.kind = 'episode'
        AND CASE coalesce(json_extract(t.attributes, '$.told_as'), '')
            WHEN 'person' THEN 1 WHEN 'agent' THEN 0
            ELSE coalesce(lower(trim(t.source_role)), '') NOT IN ('', 'assistant', 'agent', 'ai',
                'bot', 'chatbot', 'model', 'system', 'tool', 'function', 'developer') END)
"""
LASTING = f"""
    UPDATE memories SET decay_rate = 0.0 WHERE kind = 'fact' AND decay_rate > 0 AND (
        type IN ('Identity', 'Preference', 'Decision', 'Goal') OR importance >= 80
        OR pk IN (SELECT m.pk FROM memories m JOIN memory_sources s ON s.source_id = m.source_id
            WHERE m.kind = 'fact' AND (s.captured_by <> 'extractor'
            OR s.source_type = 'ingest_file' OR ({QUOTED}))))
"""
# The trigger kept the earlier rates until the last change of each memory; they held until now.
HELD = "UPDATE memory_revisions SET until = :moment WHERE revision_id > :last"
APPEND = """
    INSERT INTO audit_log (seq, at, actor, action, subject, details, hash)
    VALUES (:seq, :at, 'migration', 'rates', NULL, :details, :hash)
"""


def upgrade() -> None:
    change_rates(op.get_bind())


def change_rates(connection: sa.Connection) -> None:
    """Also called for the rows of an export that an earlier schema made."""
    last = _scalar(connection, "SELECT coalesce(max(revision_id), 0) FROM memory_revisions")
    changed = connection.execute(sa.text(LASTING)).rowcount
    if not changed:
        return
    moment = _scalar(connection, MOMENT)
    connection.execute(sa.text(HELD), {"moment": moment, "last": last})
    _journal(connection, moment, changed)


def _journal(connection: sa.Connection, at: int, changed: int) -> None:
    """Append one entry, sealed as ``memgraph.audit.journal`` seals."""
    row = connection.execute(
        sa.text("SELECT seq, hash FROM audit_log ORDER BY seq DESC LIMIT 1")
    ).first()
    seq, previous = (row.seq + 1, row.hash) if row else (1, "")
    details = _json({"memories": changed})
    sealed = _json([seq, at, "migration", "rates", None, details])
    seal = hashlib.sha256(f"{previous}\n{sealed}".encode()).hexdigest()
    connection.execute(sa.text(APPEND), {"seq": seq, "at": at, "details": details, "hash": seal})


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def _scalar(connection: sa.Connection, statement: str) -> int:
    return int(connection.execute(sa.text(statement)).scalar_one())


def downgrade() -> None:
    """The earlier rates stay in ``memory_revisions``; nothing of the schema changed."""
