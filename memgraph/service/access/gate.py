"""The gate: authenticates a request and opens an orchestrator's handle for it."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict, deque
from collections.abc import Sequence
from functools import partial
from typing import Final

from memgraph.errors import (
    AccessDenied,
    InvalidInput,
    MemgraphError,
    NotFound,
    OrchestratorMissing,
    RateLimited,
)
from memgraph.log import open_log
from memgraph.model.access import ANY, Narrowing, Permission, Principal
from memgraph.model.enums import Sensitivity
from memgraph.operations.handle import RefusalNote
from memgraph.operations.orchestrator import Orchestrator
from memgraph.rules.access import Refusal, grants, refusal, sees_whole, viewer_of
from memgraph.service.access.keys import KeyStore, nobody
from memgraph.service.access.rates import RateLimit, SharedRates, shared_rates
from memgraph.service.denials import NOT_JOURNALLED, Denial, record_denials
from memgraph.service.memory_service import MemoryService

# How often a key may be refused: each refusal is a journal entry, so their number is bounded.


WINDOW_MS: Final = 60_000
MAX_ACTORS: Final = 10_000
"""Actors whose refusals are remembered; there are as many as keys."""
LOOK_MS: Final = 1_000
"""The maximum age, in milliseconds, of a process's knowledge of refusals by other servers."""


class RefusalCounter:
    """Counts the refusals of each actor within a minute. Thread-safe.

    The count is checked before a request is handled: concurrent requests pass together, and the
    items of one batch are refused together, so an actor may exceed the limit a little.

    Args:
        per_minute: the limit for one actor; at the limit it waits until the oldest refusal is a
            minute old.
        shared: counts the refusals of all servers; None: they are counted in memory only.
    """

    def __init__(self, per_minute: int, shared: SharedRates | None = None) -> None:
        self._per_minute = per_minute
        self._lock = threading.Lock()
        self._times: OrderedDict[str, deque[int]] = OrderedDict()
        self._shared = shared
        self._limit = RateLimit.of_minute("refusals", per_minute)
        # For each actor: the time of the last lookup, and until when it waits.
        self._waits: OrderedDict[str, tuple[int, int]] = OrderedDict()

    def add(self, actor: str, now: int) -> None:
        """Add a refusal at a time, in milliseconds."""
        with self._lock:
            times = self._times.setdefault(actor, deque(maxlen=self._per_minute))
            times.append(now)
            self._times.move_to_end(actor)
            while len(self._times) > MAX_ACTORS:
                self._times.popitem(last=False)
        if self._shared is not None:
            self._look_up(self._shared, actor, now, tokens=1)

    def check(self, actor: str, now: int) -> None:
        """Check that an actor has refusals left.

        Raises:
            RateLimited: it has none left; ``details["retry_after_s"]`` (1..60) is the time to wait.
        """
        wait_ms = self._own_wait(actor, now) or self._shared_wait(actor, now)
        if wait_ms > 0:
            wait_s = -(-wait_ms // 1_000)
            raise RateLimited(
                f"too many requests with this key were refused; wait {wait_s} s",
                retry_after_s=wait_s,
            )

    def _own_wait(self, actor: str, now: int) -> int:
        with self._lock:
            times = self._times.get(actor)
            if times is None or len(times) < self._per_minute:
                return 0
            since = now - times[0]
        # A clock that was set back also ends the minute.
        return WINDOW_MS - since if 0 <= since < WINDOW_MS else 0

    def _shared_wait(self, actor: str, now: int) -> int:
        if self._shared is None:
            return 0
        with self._lock:
            looked_at, until = self._waits.get(actor, (now - LOOK_MS, now))
        if not 0 <= now - looked_at < LOOK_MS:
            until = self._look_up(self._shared, actor, now, tokens=0)
        return until - now

    def _look_up(self, shared: SharedRates, actor: str, now: int, *, tokens: int) -> int:
        """Take tokens from the shared bucket; return until when the actor waits."""
        grant = shared.take(self._limit, actor, tokens)
        until = now if grant is None else now + math.ceil(grant.wait_s * 1_000)
        with self._lock:
            self._waits[actor] = now, until
            self._waits.move_to_end(actor)
            if len(self._waits) > MAX_ACTORS:
                self._waits.popitem(last=False)
        return until


KEYLESS: Final = Principal(
    key_id=None,
    name="local",
    orchestrators=(ANY,),
    permissions=frozenset(Permission),
    clearance=Sensitivity.RESTRICTED,
    project_ids=(ANY,),
    session_ids=(ANY,),
)
"""The principal of a request to a server that requires no key."""

FLOOR_S: Final = 0.25
"""The response for a missing or a foreign orchestrator is sent at a multiple of this."""


class Gate:
    """Authenticates requests and opens handles that see what the principal was granted.

    Attributes:
        rates: the rates shared by the servers of one database; None: this server counts alone.
        refusals: counts the refusals of each key.

    Args:
        keyless: accept requests without a key as ``KEYLESS``; for a loopback address only.
    """

    def __init__(self, service: MemoryService, keys: KeyStore, *, keyless: bool = False) -> None:
        self.service = service
        self.keys = keys
        self.keyless = keyless
        self.rates = shared_rates(keys.url) if keys.url else None
        per_minute = service.settings().memory.server.refusals_per_minute
        self.refusals = RefusalCounter(per_minute, self.rates)

    def authenticate(self, secret: str | None) -> Principal:
        """Return the principal of a secret. Raises Unauthenticated, InvalidConfig (see
        ``KeyStore.find``).
        """
        if secret is None and self.keyless:
            return KEYLESS
        return self.keys.find(secret)

    def enter(
        self,
        principal: Principal,
        name: str,
        permission: Permission,
        narrowing: Narrowing | None = None,
    ) -> Orchestrator:
        """Return the handle for one request; refusals are journalled before they are raised.

        Raises:
            OrchestratorMissing: there is no orchestrator of this name, or the principal may not use
                it: both get the same answer, see ``pause_s``.
            AccessDenied: the principal lacks the permission, or asks for more than its grants.
            RateLimited: it was refused too often within a minute; nothing was read.
            Unauthenticated: the key has expired.
        """
        now = self.service.clock.now_ms()
        self.refusals.check(principal.actor, now)
        refused = refusal(principal, name, permission, now_ms=now)
        if refused is Refusal.EXPIRED:
            raise nobody()
        try:
            handle = self.service.orchestrator(name, actor=principal.actor)
        except (InvalidInput, OrchestratorMissing, OSError):
            self.refusals.add(principal.actor, now)
            raise _missing() from None
        if refused is Refusal.ORCHESTRATOR:
            self._record(principal, handle.name, _missing(), field="orchestrator")
            raise _missing()
        if refused is Refusal.PERMISSION:
            denied = AccessDenied(f"this takes the permission {permission}", permission=permission)
            self._record(principal, handle.name, denied, field=f"permission.{permission}")
            raise denied
        try:
            viewer = viewer_of(principal, narrowing or Narrowing())
        except AccessDenied as error:
            field = str(error.details["field"])
            refused_name = _beyond(principal, narrowing or Narrowing(), field)
            self._record(principal, handle.name, error, field=field, requested=refused_name)
            raise
        return Orchestrator(
            self.service,
            handle.name,
            viewer=viewer,
            actor=principal.actor,
            recorder=partial(self._record_all, principal, handle.name),
            permissions=principal.permissions,
            whole=sees_whole(principal, viewer),
        )

    def miss(self, principal: Principal, orchestrator: str, *errors: MemgraphError) -> None:
        """Journal the errors of a handle that are refusals, before the response is sent.

        Call it for every error that ends a request through a handle of ``enter``, and for the
        errors of a batch that the surface turned into outcomes. Errors that are not refusals, or
        already journalled, are ignored. It does not raise if the journal cannot be written: the
        request is refused anyway. It waits for the disk, so call it in a thread.

        Args:
            orchestrator: the name that was passed to ``enter``.
        """
        refusals = [error for error in errors if isinstance(error, AccessDenied | NotFound)]
        self._record_all(
            principal,
            orchestrator,
            [RefusalNote.of(error) for error in refusals if not error.journalled],
        )

    def pause_s(self, error: MemgraphError, took_s: float) -> float:
        """Return how long a surface must wait, without holding a thread, before it sends an error.

        A missing orchestrator is detected at once, a foreign one may need a journal entry in its
        database: both responses are sent at a multiple of ``FLOOR_S``, so that the time reveals
        nothing.

        Args:
            took_s: seconds since the request arrived.

        Returns:
            Seconds, 0 to ``FLOOR_S``; 0 for any other error.
        """
        if not isinstance(error, OrchestratorMissing):
            return 0.0
        return FLOOR_S - took_s % FLOOR_S

    def create(self, principal: Principal, name: str) -> None:
        """Create an orchestrator for an admin who was granted its name.

        Raises:
            OrchestratorMissing: the name was not granted, whether the orchestrator exists or not.
            AccessDenied: the principal may not create orchestrators.
            OrchestratorExists, InvalidInput: as ``MemoryService.create``.
            RateLimited, Unauthenticated: as ``enter``.
        """
        now = self.service.clock.now_ms()
        self.refusals.check(principal.actor, now)
        refused = refusal(principal, name, Permission.ADMIN, now_ms=now)
        if refused is Refusal.EXPIRED:
            raise nobody()
        if refused is None:
            self.service.create(name)
            return
        permission = Permission.ADMIN
        error = (
            _missing()
            if refused is Refusal.ORCHESTRATOR
            else AccessDenied(f"this takes the permission {permission}", permission=permission)
        )
        if name in self.service.orchestrators():
            field = (
                "orchestrator" if refused is Refusal.ORCHESTRATOR else f"permission.{permission}"
            )
            self._record(principal, name, error, field=field)
        else:
            self.refusals.add(principal.actor, now)
        raise error

    def orchestrators(self, principal: Principal) -> Sequence[str]:
        """Return the names of the existing orchestrators that the principal may use, sorted."""
        return [
            name for name in self.service.orchestrators() if grants(principal.orchestrators, name)
        ]

    def _record(
        self,
        principal: Principal,
        name: str,
        error: MemgraphError,
        *,
        field: str,
        requested: str | None = None,
    ) -> None:
        self._record_all(
            principal, name, [RefusalNote(error, Denial(field, requested, error.code))]
        )

    def _record_all(self, principal: Principal, name: str, refused: Sequence[RefusalNote]) -> None:
        """Count refusals, and journal them if the orchestrator can be written."""
        if not refused:
            return
        now = self.service.clock.now_ms()
        for note in refused:
            note.error.journalled = True
            self.refusals.add(principal.actor, now)
        try:
            with self.service.opened(name) as opened:
                record_denials(opened, [note.denial for note in refused], actor=principal.actor)
        except (MemgraphError, OSError) as error:
            # The journal cannot be written, so the log has to do.
            log = open_log(self.service.paths(name).log_file, self.service.clock, orchestrator=name)
            log.failure(NOT_JOURNALLED, error, actor=principal.actor)


def _beyond(principal: Principal, narrowing: Narrowing, field: str) -> str:
    """Return the first name of a narrowing that was not granted."""
    names = getattr(narrowing, field)
    if not isinstance(names, tuple):
        return str(names)
    if ANY in names:
        return ANY
    return next(str(name) for name in names if name not in getattr(principal, field))


def _missing() -> OrchestratorMissing:
    return OrchestratorMissing("no such orchestrator, or it is not yours")
