"""Every error that memgraph raises on purpose. Each class has one stable ``code``.

::

    MemgraphError                    memgraph.error
    ├── InvalidInput                 input.invalid
    │   ├── UnknownConfigKey         config.unknown_key
    │   └── InvalidConfig            config.invalid
    ├── NotFound                     memory.not_found
    ├── Conflict                     memory.conflict
    │   └── IllegalTransition        memory.illegal_transition
    ├── AccessDenied                 access.denied
    │   └── ConfirmationMissing      access.confirmation_missing
    ├── OrchestratorExists           orchestrator.exists
    ├── OrchestratorMissing          orchestrator.missing
    ├── MemoryDisabled               memory.disabled
    ├── StorageError                 storage.error
    │   ├── DatabaseMissing          storage.missing
    │   ├── DatabaseEmpty            storage.empty
    │   ├── DatabaseCorrupt          storage.corrupt
    │   ├── DatabaseForeign          storage.foreign
    │   ├── DatabaseReplaced         storage.replaced
    │   ├── DatabaseBusy             storage.busy
    │   ├── DatabaseFull             storage.full
    │   ├── DatabaseUnreachable      storage.unreachable
    │   │   └── OutcomeUnknown       storage.outcome_unknown
    │   ├── SchemaUnknown            storage.schema_unknown
    │   └── SqliteUnsuitable         storage.sqlite_unsuitable
    ├── ProviderError                provider.error
    │   ├── ProviderUnavailable      provider.unavailable
    │   │   ├── ExtraMissing         extra.missing
    │   │   └── MonthlyLimitReached  provider.monthly_limit
    │   ├── ProviderMissing          provider.missing
    │   ├── ProviderRejected         provider.rejected
    │   └── ProviderAnswerInvalid    provider.answer_invalid
    ├── IngestRejected               ingest.rejected
    ├── JournalBroken                journal.broken
    ├── JobFailed                    job.failed
    ├── Unauthenticated              access.unauthenticated
    ├── RequestRefused               request.refused
    │   ├── RequestTooLarge          request.too_large
    │   ├── RequestTimeout           request.timeout
    │   ├── RateLimited              request.rate_limited
    │   ├── ServerBusy               request.server_busy
    │   └── ServerEnding             request.server_ending
    ├── ServerFailed                 server.failed
    ├── RemoteError                  remote.error
    │   ├── RemoteUnavailable        remote.unavailable
    │   └── RemoteAnswerInvalid      remote.answer_invalid
    ├── ErasureUnproven              erasure.unproven
    └── BenchFailed                  bench.failed
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar, Final

DISTRIBUTION: Final = "memgraph-memory"
"""The name under which package indexes know this project."""


def without_kind(problem: str) -> str:
    """Return a validator's message without the "Value error, " that pydantic prepends."""
    return problem.replace("Value error, ", "", 1)


class MemgraphError(Exception):
    """Base class of all memgraph errors.

    Args:
        message: one sentence for a person: the problem and the remedy.
        details: JSON-serialisable values for a program (field names, ids, limits).

    Attributes:
        logged: True once the refusal has been logged, so that it is not logged twice.
        asked: the requested name, whose digest is logged; it is never returned to the caller.
    """

    code: ClassVar[str] = "memgraph.error"
    status: ClassVar[int] = 500
    """The HTTP status of a response with this error."""

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.details = details
        self.logged = False
        self.asked: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the error as every surface renders it: code, message and details."""
        return {"code": self.code, "message": self.message, "details": self.details}


class InvalidInput(MemgraphError):
    code = "input.invalid"
    status = 422


class UnknownConfigKey(InvalidInput):
    code = "config.unknown_key"
    status = 503


class InvalidConfig(InvalidInput):
    code = "config.invalid"
    status = 503


class NotFound(MemgraphError):
    code = "memory.not_found"
    status = 404


class Conflict(MemgraphError):
    code = "memory.conflict"
    status = 409


class IllegalTransition(Conflict):
    code = "memory.illegal_transition"


class AccessDenied(MemgraphError):
    code = "access.denied"
    status = 403


class ConfirmationMissing(AccessDenied):
    """A person must confirm the operation, and there is nobody to ask."""

    code = "access.confirmation_missing"


class OrchestratorExists(MemgraphError):
    code = "orchestrator.exists"
    status = 409


class OrchestratorMissing(MemgraphError):
    code = "orchestrator.missing"
    status = 404


class MemoryDisabled(MemgraphError):
    code = "memory.disabled"
    status = 503


class StorageError(MemgraphError):
    code = "storage.error"
    status = 503


class DatabaseMissing(StorageError):
    code = "storage.missing"


class DatabaseEmpty(StorageError):
    code = "storage.empty"


class DatabaseCorrupt(StorageError):
    code = "storage.corrupt"


class DatabaseForeign(StorageError):
    code = "storage.foreign"


class DatabaseReplaced(StorageError):
    code = "storage.replaced"


class DatabaseBusy(StorageError):
    code = "storage.busy"


class DatabaseFull(StorageError):
    code = "storage.full"
    status = 507


class DatabaseUnreachable(StorageError):
    """The database server does not answer, or it refuses the login."""

    code = "storage.unreachable"


class OutcomeUnknown(DatabaseUnreachable):
    """The connection broke in a commit: the write may have been done.

    A write that has a ``turn_id`` or a ``callId`` stores nothing twice when it is sent again.
    """

    code = "storage.outcome_unknown"


class SchemaUnknown(StorageError):
    code = "storage.schema_unknown"


class SqliteUnsuitable(StorageError):
    code = "storage.sqlite_unsuitable"


class ProviderError(MemgraphError):
    """A model failed. Never contains the provider's own message, which may include a key."""

    code = "provider.error"
    status = 502


class ProviderUnavailable(ProviderError):
    """The provider is temporarily unavailable (timeout, connection refused, 429, 5xx); retry."""

    code = "provider.unavailable"
    status = 503


class ExtraMissing(ProviderUnavailable):
    """An optional package is not installed; the message names the extra.

    It is a ProviderUnavailable, so code that works without a model also works without its package.
    Do not retry in the same process. ``details["extra"]`` is the name of the extra.
    """

    code = "extra.missing"

    @classmethod
    def of(cls, message: str, *, extra: str, **details: Any) -> ExtraMissing:
        """Return the error whose message ends in the command that installs the extra."""
        return cls(f"{message}: pip install '{DISTRIBUTION}[{extra}]'", extra=extra, **details)


class MonthlyLimitReached(ProviderUnavailable):
    """The tokens of ``memory.llm.monthly_tokens`` are used up; the model is not called."""

    code = "provider.monthly_limit"


class ProviderMissing(ProviderError):
    """No model is configured; ``details["key"]`` is the setting that names one."""

    code = "provider.missing"
    status = 503


class ProviderRejected(ProviderError):
    """The provider rejected the request (400, 401, 403, unknown model); do not retry unchanged."""

    code = "provider.rejected"


class ProviderAnswerInvalid(ProviderError):
    """The model's answer is unusable: wrong dimension or count, NaN, or not the requested JSON."""

    code = "provider.answer_invalid"


class IngestRejected(MemgraphError):
    """A file cannot be ingested; ``details['reason']`` is the machine-readable reason."""

    code = "ingest.rejected"
    status = 422


class JournalBroken(MemgraphError):
    code = "journal.broken"
    status = 503


class JobFailed(MemgraphError):
    """A run did not finish; ``details["cause"]`` is the code of the reason."""

    code = "job.failed"


class Unauthenticated(MemgraphError):
    """The caller has no valid key; a missing key and an invalid one get the same message."""

    code = "access.unauthenticated"
    status = 401


class RequestRefused(MemgraphError):
    """A server did not accept or did not complete a request."""

    code = "request.refused"
    status = 400


class RequestTooLarge(RequestRefused):
    """The request body is larger than ``details["limit"]`` bytes."""

    code = "request.too_large"
    status = 413


class RequestTimeout(RequestRefused):
    """The request was not received or answered in time.

    A write may have been done; sending it again stores nothing twice.
    """

    code = "request.timeout"
    status = 504


class RateLimited(RequestRefused):
    """Too many requests at a time; ``details["retry_after_s"]`` is the time to wait."""

    code = "request.rate_limited"
    status = 429


class ServerBusy(RequestRefused):
    """Too many requests are waiting; ``details["retry_after_s"]`` is the time to wait."""

    code = "request.server_busy"
    status = 503


class ServerEnding(RequestRefused):
    """The server is shutting down and did not wait for the result; a write may have been done."""

    code = "request.server_ending"
    status = 503


class ServerFailed(MemgraphError):
    """A process of a server ended with an error, or was killed at its end."""

    code = "server.failed"


class RemoteError(MemgraphError):
    """The client got no usable response from the server."""

    code = "remote.error"


class RemoteUnavailable(RemoteError):
    """The client could not connect, or the connection broke."""

    code = "remote.unavailable"


class RemoteAnswerInvalid(RemoteError):
    """The server that answered is not memgraph, or is an incompatible version."""

    code = "remote.answer_invalid"


class ErasureUnproven(MemgraphError):
    """An erasure is not finished, or a report does not prove it."""

    code = "erasure.unproven"
    status = 409


class BenchFailed(MemgraphError):
    """The benchmark process ended without a result."""

    code = "bench.failed"


@cache
def kinds_by_code() -> Mapping[str, type[MemgraphError]]:
    """Return every error class of this module by its code."""
    kinds: dict[str, type[MemgraphError]] = {}
    waiting: list[type[MemgraphError]] = [MemgraphError]
    while waiting:
        kind = waiting.pop()
        if kind.__module__ == __name__:
            kinds[kind.code] = kind
        waiting.extend(kind.__subclasses__())
    return kinds
