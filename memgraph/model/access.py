"""Keys and permissions."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import Field, StringConstraints

from memgraph.model.enums import Sensitivity
from memgraph.model.values import Millis, Name, Sha256, Value

ANY: Final = "*"
"""A wildcard for every name, including future ones."""


class Permission(StrEnum):
    """A permission of a principal in an orchestrator; no permission implies another.

    ``read``: read memories in its view. ``write``: store memories, and change those in its view.
    ``audit``: verify the whole database and read the receipts. ``admin``: jobs, copies, merging of
    entities, and creating orchestrators.
    """

    READ = "read"
    WRITE = "write"
    AUDIT = "audit"
    ADMIN = "admin"


KeyId = Annotated[str, StringConstraints(pattern=r"^[0-9a-z]{12}$")]
Grants = Annotated[tuple[Name, ...], Field(max_length=1_000)]


class Principal(Value):
    """An authenticated caller and its rights; never constructed from request data.

    Attributes:
        key_id: the id of the presented key; None: no key is required, or the call is local.
        name: a label for people.
        orchestrators, project_ids, session_ids: names, or ``*``. With ``*`` for projects or
            sessions, a request must name the ones it wants to see.
        agent_id: only memories of this agent, and of none; None: of every agent.
        expires_at: the time from which the key is invalid.
    """

    key_id: KeyId | None
    name: Name
    orchestrators: Grants
    permissions: frozenset[Permission]
    clearance: Sensitivity = Sensitivity.INTERNAL
    project_ids: Grants = ()
    session_ids: Grants = ()
    agent_id: Name | None = None
    expires_at: Millis | None = None

    @property
    def actor(self) -> str:
        """The name in the journal."""
        return "local" if self.key_id is None else f"key:{self.key_id}"


class Narrowing(Value):
    """Restricts the view of a request within what was granted. None: not restricted."""

    project_ids: Grants | None = None
    session_ids: Grants | None = None
    agent_id: Name | None = None
    clearance: Sensitivity | None = None


class ApiKey(Principal):
    """A stored key, with the digest of its secret instead of the secret."""

    key_id: KeyId
    sha256: Sha256
    created_at: Millis
    revoked_at: Millis | None = None

    def state(self, now_ms: int) -> Literal["valid", "revoked", "expired"]:
        """Return the state of the key at a time."""
        if self.revoked_at is not None:
            return "revoked"
        over = self.expires_at is not None and now_ms >= self.expires_at
        return "expired" if over else "valid"

    @property
    def principal(self) -> Principal:
        return Principal.model_validate({k: getattr(self, k) for k in Principal.model_fields})


class NewKey(Value):
    """A key that was just created. ``secret`` is shown only once and is not stored."""

    key: ApiKey
    secret: str
