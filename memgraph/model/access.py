"""Keys and who may do what; the health of a store."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import Field, StringConstraints

from memgraph.model.enums import Sensitivity
from memgraph.model.values import Millis, Name, Value

ANY: Final = "*"
"""In place of a name: every one, those that come later too."""


class Permission(StrEnum):
    """A permission of a principal in an orchestrator; none of them contains another.

    ``read``: whatever its view shows. ``write``: remember and change what its view shows.
    ``audit``: look at the whole database's integrity and the receipts. ``admin``: jobs, copies,
    merging of entities, and making orchestrators.
    """

    READ = "read"
    WRITE = "write"
    AUDIT = "audit"
    ADMIN = "admin"


KeyId = Annotated[str, StringConstraints(pattern=r"^[0-9a-z]{12}$")]
Grants = Annotated[tuple[Name, ...], Field(max_length=1_000)]


class Principal(Value):
    """Somebody who asks, and what was granted to them; never taken from a request.

    Attributes:
        key_id: of the key that they showed; None: keys are not asked for, or the call is local.
        name: for people.
        orchestrators, project_ids, session_ids: names, or ``*``. Where projects or sessions are
            ``*`` a request names those that it is about, else it sees none.
        agent_id: narrows to this agent's memories and those of no agent; None: every agent's.
        expires_at: from then on the key is none.
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
    """The narrowing of a request's view; it never exceeds what was granted. None: all of it."""

    project_ids: Grants | None = None
    session_ids: Grants | None = None
    agent_id: Name | None = None
    clearance: Sensitivity | None = None


class ApiKey(Principal):
    """A key as it is kept: the digest of its secret, never the secret itself."""

    key_id: KeyId
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
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
    """A key that was just made. ``secret`` is shown this once; nothing keeps it."""

    key: ApiKey
    secret: str


Rate = Annotated[float, Field(ge=0.0, le=1.0)]
Count = Annotated[int, Field(ge=0)]


class HealthMetric(StrEnum):
    """A measure of an audit, in the order of the report."""

    DUPLICATE = "duplicate"
    NEAR_DUPLICATE = "near_duplicate"
    CONTRADICTION = "contradiction"
    STALE = "stale"
    UNSOURCED = "unsourced"
    ORPHAN = "orphan"
    UNEMBEDDED = "unembedded"
    ECHO = "echo"


class HealthExample(Value):
    """A memory that counts, and the other one where it takes two.

    Attributes:
        text: the beginning of what the first one says, on one line.
    """

    memory_ids: tuple[str, ...]
    text: str


class HealthMeasure(Value):
    """One rate.

    Attributes:
        count, of: how many memories count, of how many that were looked at.
        sampled: only a part was looked at, chosen by key and so the same every time.
        limit: the highest rate that passes; None: any does.
        failed: the rate is above the limit.
    """

    measure: HealthMetric
    count: Count
    of: Count
    rate: Rate
    sampled: bool
    examples: tuple[HealthExample, ...]
    limit: Rate | None = None
    failed: bool = False


class StoreHealth(Value):
    """All rates of what one reader sees.

    Attributes:
        memories: active ones that are no raw turns; most rates are shares of them.
        ok: no rate is above its limit.
    """

    orchestrator: str
    at: Millis
    memories: Count
    measures: tuple[HealthMeasure, ...]
    ok: bool
