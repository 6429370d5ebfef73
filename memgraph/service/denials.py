"""Log and count refusals, for auditors."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final, NamedTuple

from memgraph.errors import AccessDenied, MemgraphError, NotFound
from memgraph.log import EventLog, RotatingFile

if TYPE_CHECKING:
    from memgraph.service.memory_service import MemoryService

ASKED: Final = ("memory_id", "edge_id", "receipt_id", "session_id", "name", "sha256", "key")
"""The keys in the details of an error that may have the requested id or name."""


class Denial(NamedTuple):
    """A refusal.

    Attributes:
        field: the kind of thing requested: ``task``, ``project``, ``orchestrator`` …; never text
            from the request.
        asked: the requested name.
        code: the code of the error.
    """

    field: str
    asked: str | None = None
    code: str = AccessDenied.code

    @classmethod
    def of(cls, error: MemgraphError) -> Denial:
        """Return the refusal that an error tells of."""
        if not isinstance(error, NotFound):
            return cls(str(error.details.get("field", "write")), error.asked, error.code)
        names = (str(error.details[item]) for item in ASKED if item in error.details)
        return cls("id", next(names, None), error.code)

    @property
    def details(self) -> dict[str, str]:
        """Return the details to log: no content, and only the digest of the name."""
        details = {"field": self.field, "code": self.code}
        if self.asked is not None:
            name = self.asked.encode("utf-8", "surrogatepass")
            details["asked_sha256"] = hashlib.sha256(name).hexdigest()
        return details


def record_denial(service: MemoryService, name: str, denial: Denial, *, actor: str) -> None:
    """Write a refusal to the log of the orchestrator that refused, and count it.

    The line has only a digest of the requested name, by which an auditor who knows it can find it.
    It does not matter whether the orchestrator can be opened.

    Args:
        name: the orchestrator, which exists.
        actor: the requester.
    """
    try:
        log = service.log_of(name)
    except (MemgraphError, OSError):
        # Its settings cannot be read.
        file = RotatingFile(service.paths(name).log_file)
        log = EventLog(file, service.clock, orchestrator=name)
    log.warning(AccessDenied.code, actor=actor, **denial.details)
    service.meters.count("denials", denial.field)
