"""Refusals, told where an auditor looks for them: in the log and in the journal."""

from __future__ import annotations

import hashlib

from memgraph.audit.journal import Entry
from memgraph.errors import AccessDenied, StorageError
from memgraph.service.opened import Opened

ACTION = "deny"


def tell_denial(
    opened: Opened, *, actor: str, field: str, asked: str | None = None, code: str | None = None
) -> None:
    """Log a refusal and enter it into the journal of the orchestrator that refused.

    It tells no content and no name: of what was asked for it holds a digest, by which an auditor
    who knows the name finds it again. A refusal stands even where its entry cannot be written.

    Args:
        actor: who asked.
        field: what was asked for: ``task``, ``project``, ``orchestrator`` …; never a text from
            outside.
        asked: its name.
        code: of the error; by default ``access.denied``.
    """
    told = {"field": field, "code": code or AccessDenied.code}
    if asked is not None:
        told["asked_sha256"] = hashlib.sha256(asked.encode("utf-8", "surrogatepass")).hexdigest()
    opened.log.warning(AccessDenied.code, actor=actor, **told)
    try:
        with opened.transaction(actor) as transaction:
            transaction.tell([Entry(ACTION, None, told)])
    except StorageError as error:
        opened.log.failure("access.denied.journal", error)
