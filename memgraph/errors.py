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
    ├── QuotaReached                 source.quota_reached
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
    │   ├── SchemaOutdated           storage.schema_outdated
    │   ├── SchemaTooNew             storage.schema_too_new
    │   └── SqliteUnsuitable         storage.sqlite_unsuitable
    ├── ProviderError                provider.error
    │   ├── ProviderUnavailable      provider.unavailable
    │   │   └── ExtraMissing         extra.missing
    │   ├── ProviderRejected         provider.rejected
    │   └── ProviderAnswerInvalid    provider.answer_invalid
    ├── IngestRejected               ingest.rejected
    ├── ImportRejected               import.rejected
    ├── JournalBroken                journal.broken
    ├── JobFailed                    job.failed
    ├── ToolRefused                  tool.refused
    ├── Unauthenticated              access.unauthenticated
    ├── RequestRefused               request.refused
    │   ├── RequestTooLarge          request.too_large
    │   ├── RequestTimeout           request.timeout
    │   ├── RateLimited              request.rate_limited
    │   ├── ServerBusy               request.server_busy
    │   ├── ServerEnding             request.server_ending
    │   ├── KeyReused                request.key_reused
    │   └── AnswerLost               request.answer_lost
    ├── RemoteError                  remote.error
    │   ├── RemoteUnavailable        remote.unavailable
    │   └── RemoteAnswerInvalid      remote.answer_invalid
    ├── WebhookFailed                webhook.failed
    ├── AuditFailed                  audit.failed
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
    """Return a validator's message without the class of error that pydantic and typer prepend."""
    return problem.replace("Value error, ", "", 1)


class MemgraphError(Exception):
    """Root of the tree.

    Args:
        message: one sentence for a person: the problem and the remedy.
        details: values a program may want (field names, ids, limits); JSON-serialisable.

    Attributes:
        journalled: True when this refusal is in the journal already, so that it is entered once.
        asked: the name of what was refused, for its digest in the journal; no answer contains it.
    """

    code: ClassVar[str] = "memgraph.error"

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.details = details
        self.journalled = False
        self.asked: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the shape in which every surface renders an error."""
        return {"code": self.code, "message": self.message, "details": self.details}


class InvalidInput(MemgraphError):
    code = "input.invalid"


class UnknownConfigKey(InvalidInput):
    code = "config.unknown_key"


class InvalidConfig(InvalidInput):
    code = "config.invalid"


class NotFound(MemgraphError):
    code = "memory.not_found"


class Conflict(MemgraphError):
    code = "memory.conflict"


class IllegalTransition(Conflict):
    code = "memory.illegal_transition"


class AccessDenied(MemgraphError):
    code = "access.denied"


class ConfirmationMissing(AccessDenied):
    """A person's consent is required and cannot be requested."""

    code = "access.confirmation_missing"


class QuotaReached(MemgraphError):
    """A source has reached its limit of ``details["limit"]`` memories."""

    code = "source.quota_reached"


class OrchestratorExists(MemgraphError):
    code = "orchestrator.exists"


class OrchestratorMissing(MemgraphError):
    code = "orchestrator.missing"


class MemoryDisabled(MemgraphError):
    code = "memory.disabled"


class StorageError(MemgraphError):
    code = "storage.error"


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


class DatabaseUnreachable(StorageError):
    """The server of the database does not answer or refuses the login."""

    code = "storage.unreachable"


class SchemaOutdated(StorageError):
    code = "storage.schema_outdated"


class SchemaTooNew(StorageError):
    code = "storage.schema_too_new"


class SqliteUnsuitable(StorageError):
    code = "storage.sqlite_unsuitable"


class ProviderError(MemgraphError):
    """A model failed. Never carries the provider's own text: it may contain a key."""

    code = "provider.error"


class ProviderUnavailable(ProviderError):
    """Worth trying again later: timeout, connection refused, 429, 5xx."""

    code = "provider.unavailable"


class ExtraMissing(ProviderUnavailable):
    """A package that only some parts need is not installed; the message names the extra.

    Whoever goes on without a model that cannot be reached goes on without its package, too. Not
    worth trying again in the same process. ``details["extra"]`` is the name of the extra.
    """

    code = "extra.missing"

    @classmethod
    def of(cls, message: str, *, extra: str, **details: Any) -> ExtraMissing:
        """Return the error whose message ends in the command that installs the extra."""
        return cls(f"{message}: pip install '{DISTRIBUTION}[{extra}]'", extra=extra, **details)


class ProviderRejected(ProviderError):
    """Not worth trying again unchanged: 401, 403, 400, unknown model."""

    code = "provider.rejected"


class ProviderAnswerInvalid(ProviderError):
    """The answer is unusable: wrong dimension, NaN, wrong count, not the requested JSON."""

    code = "provider.answer_invalid"


class IngestRejected(MemgraphError):
    """A dropped file that cannot be taken; ``details['reason']`` is its machine-readable reason."""

    code = "ingest.rejected"


class ImportRejected(MemgraphError):
    """An export that cannot be imported; ``details`` has ``reason`` and, mostly, ``line``."""

    code = "import.rejected"


class JournalBroken(MemgraphError):
    code = "journal.broken"


class WebhookFailed(MemgraphError):
    """The receiver of a webhook did not take an event."""

    code = "webhook.failed"


class JobFailed(MemgraphError):
    """A run did not finish; ``details["cause"]`` is the code of the reason."""

    code = "job.failed"


class ToolRefused(MemgraphError):
    """A tool of a language model answered with an error; ``details["cause"]`` is its code."""

    code = "tool.refused"


class Unauthenticated(MemgraphError):
    """The caller is unknown: no key, or none that is valid; both read the same."""

    code = "access.unauthenticated"


class RequestRefused(MemgraphError):
    """A server did not accept a request, whatever its purpose."""

    code = "request.refused"


class RequestTooLarge(RequestRefused):
    """Its body is larger than ``details["limit"]`` bytes."""

    code = "request.too_large"


class RequestTimeout(RequestRefused):
    """The request did not arrive, or was not answered, in time. A write may have been done: it can
    be sent again with the same Idempotency-Key.
    """

    code = "request.timeout"


class RateLimited(RequestRefused):
    """Too many at a time; ``details["retry_after_s"]`` is the time to wait."""

    code = "request.rate_limited"


class ServerBusy(RequestRefused):
    """Too many requests wait already; ``details["retry_after_s"]`` as above."""

    code = "request.server_busy"


class ServerEnding(RequestRefused):
    """The server is shutting down, and aborted its own wait; a write may be done."""

    code = "request.server_ending"


class KeyReused(RequestRefused):
    """The Idempotency-Key was used with another request before."""

    code = "request.key_reused"


class AnswerLost(RequestRefused):
    """The write with this Idempotency-Key was done, and its answer was lost in a crash.

    ``details["memory_ids"]`` names what it wrote.
    """

    code = "request.answer_lost"


class RemoteError(MemgraphError):
    """A client got no usable answer from a server."""

    code = "remote.error"


class RemoteUnavailable(RemoteError):
    """No connection, or it broke."""

    code = "remote.unavailable"


class RemoteAnswerInvalid(RemoteError):
    """The answering server is not memgraph, or another version of it."""

    code = "remote.answer_invalid"


class ErasureUnproven(MemgraphError):
    """An erasure is not finished, or a report is no proof of one."""

    code = "erasure.unproven"


class AuditFailed(MemgraphError):
    """A rate of the store is above its limit."""

    code = "audit.failed"


class BenchFailed(MemgraphError):
    """The measuring process ended without an answer."""

    code = "bench.failed"


@cache
def kinds_by_code() -> Mapping[str, type[MemgraphError]]:
    """Return every error of this tree by its code, without a surface's own errors."""
    kinds: dict[str, type[MemgraphError]] = {}
    waiting: list[type[MemgraphError]] = [MemgraphError]
    while waiting:
        kind = waiting.pop()
        if kind.__module__ == __name__:
            kinds[kind.code] = kind
        waiting.extend(kind.__subclasses__())
    return kinds
