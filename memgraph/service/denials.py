"""Log and count refusals, for auditors."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from memgraph.errors import AccessDenied, MemgraphError, NotFound
from memgraph.log import EventLog, RotatingFile

if TYPE_CHECKING:
    from memgraph.service.memory_service import MemoryService

ASKED: Final = ("memory_id", "edge_id", "receipt_id", "session_id", "name", "sha256", "key")
"""The keys in the details of an error that may have the requested id or name."""


def record_denial(
    service: MemoryService,
    name: str,
    error: MemgraphError,
    *,
    actor: str,
    field: str | None = None,
    asked: str | None = None,
) -> None:
    """Write a refusal to the log of the orchestrator that refused, count it, and mark it as logged.

    The line has only a digest of the requested name, by which an auditor who knows it can find it.
    It does not matter whether the orchestrator can be opened.

    Args:
        name: the orchestrator, which exists.
        actor: the requester.
        field: the kind of thing requested: ``task``, ``project``, ``orchestrator`` …; never text
            from the request. None: that of the error, with the name that it gives.
        asked: the requested name.
    """
    if field is None:
        field, asked = str(error.details.get("field", "write")), error.asked
        if isinstance(error, NotFound):
            names = (str(error.details[item]) for item in ASKED if item in error.details)
            field, asked = "id", next(names, None)
    details = {"field": field, "code": error.code}
    if asked is not None:
        digest = hashlib.sha256(asked.encode("utf-8", "surrogatepass"))
        details["asked_sha256"] = digest.hexdigest()
    try:
        log = service.log_of(name)
    except (MemgraphError, OSError):
        # Its settings cannot be read.
        file = RotatingFile(service.paths(name).log_file)
        log = EventLog(file, service.clock, orchestrator=name)
    log.warning(AccessDenied.code, actor=actor, **details)
    service.meters.count("denials", field)
    error.logged = True
