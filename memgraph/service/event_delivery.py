"""Events of an orchestrator for observers (new contradictions, ended jobs) and for webhooks.

Nothing is queued in the database for an observer, and nothing stays open between two calls. A
position consists of the ids of the last contradiction and the last run that were reported, which
the reader knows: row numbers would reveal the amount of hidden activity.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import os
import ssl
import time
from collections.abc import Sequence
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from memgraph import __version__
from memgraph.clock import Clock, iso
from memgraph.config.server import WebhookSettings
from memgraph.errors import InvalidInput, WebhookFailed
from memgraph.model.events import ContradictionFound, DeliveredEvent
from memgraph.model.values import MAX_NAME_CHARS, Value
from memgraph.operations.handle import Handle
from memgraph.paths import Stamp
from memgraph.service.events import Subscriber
from memgraph.service.sanitizer import without_root
from memgraph.store import edges
from memgraph.store import jobs as jobs_rows
from memgraph.store.engine import store_of
from memgraph.store.jobs import as_seen
from memgraph.store.key_file import own_bytes

if TYPE_CHECKING:
    from memgraph.operations.orchestrator import Orchestrator
    from memgraph.store.snapshot import Snapshot

JOB_ENDED: Final = "job.ended"
PAGE: Final = 64
"""The maximum number of events of each kind per call; the next call returns more."""

MAX_RUNS: Final = 100_000
_MAX_POSITION_CHARS: Final = 4 * MAX_NAME_CHARS
SETTLED_NS: Final = 3_000_000_000
"""The longest time, in nanoseconds, from the write of a commit until it can be read."""


class ObservedEvent(Value):
    """An event.

    Attributes:
        topic: ``memory.contradiction_found`` or ``job.ended``.
        position: the position after this event, from which an observer gets later events.
        data: for a contradiction ``at``, ``edge_id``, ``from_id`` and ``to_id``; for a job its run.
    """

    topic: str
    position: str
    data: dict[str, Any]


class EventReader(Handle):
    """Reports events to one reader, from now or from a position. Not thread-safe.

    A contradiction is reported when both sides are visible. A run may be reported twice when a
    reader continues from a position: its id shows that.

    Args:
        handle: the handle whose view applies.
        jobs: True to report runs as well.
        position: the position of the last event that the reader received; None: from now on.

    Raises:
        InvalidInput: the position is invalid.
    """

    def __init__(self, handle: Handle, *, jobs: bool, position: str | None = None) -> None:
        super().__init__(handle._service, handle.name, viewer=handle.viewer, actor=handle.actor)
        self._jobs = jobs
        self._stamp: Stamp | None = None
        self._told: set[str] = set()
        # Without a last contradiction, all visible ones are new.
        self._place = 0
        self._edge_id, self._run_id = (None, "") if position is None else _read(position)
        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            self._service.stores.add(opened.settings.memory.storage.url)
            if position is None:
                self._begin_now(snapshot)
            elif self._edge_id is not None:
                last = edges.last_contradiction(snapshot, self._view, self._edge_id)
                self._place = 0 if last is None else last.place

    @property
    def position(self) -> str:
        """The position of this reader, as an opaque string."""
        text = json.dumps([self._edge_id, self._run_id], separators=(",", ":"))
        return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")

    def look(self, *, thoroughly: bool = False) -> Sequence[ObservedEvent]:
        """Return the events since the last call.

        Args:
            thoroughly: read even if the files show no write; for an occasional check.

        Raises:
            StorageError: the database cannot be read.
        """
        stamp = self._stamp_of_store()
        if stamp is not None and stamp == self._stamp and not thoroughly:
            return ()
        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            events = [*self._contradictions(snapshot), *self._runs(snapshot)]
        # After a full page there may be more events, and a very recent write may not be readable
        # yet: in both cases the next call reads even without a change.
        is_last = stamp is not None and len(events) < PAGE and not _is_fresh(stamp)
        self._stamp = stamp if is_last else None
        return events

    def _begin_now(self, snapshot: Snapshot) -> None:
        self._place = edges.last_place(snapshot)
        newest = edges.last_contradiction(snapshot, self._view)
        self._edge_id = None if newest is None else newest.edge_id
        if self._jobs:
            self._run_id = jobs_rows.settled(snapshot)
            later = jobs_rows.ended_since(snapshot, self._run_id, MAX_RUNS)
            self._told = {run.run_id for run in later}

    def _contradictions(self, snapshot: Snapshot) -> list[ObservedEvent]:
        events = []
        for contradiction in edges.open_contradictions(snapshot, self._view, self._place, PAGE):
            self._place, self._edge_id = contradiction.place, contradiction.edge_id
            data = {"at": iso(contradiction.created_at), "edge_id": contradiction.edge_id}
            ends = {"from_id": contradiction.from_id, "to_id": contradiction.to_id}
            events.append(self._happening(ContradictionFound.topic, data | ends))
        return events

    def _runs(self, snapshot: Snapshot) -> list[ObservedEvent]:
        if not self._jobs:
            return []
        events = []
        settled = jobs_rows.settled(snapshot)
        for run in jobs_rows.ended_since(snapshot, self._run_id, PAGE + len(self._told)):
            # A run that ended is reported at once, but the position waits for earlier ones to end.
            if run.run_id <= settled:
                self._run_id = run.run_id
            if run.run_id not in self._told:
                self._told.add(run.run_id)
                visible_run = as_seen(snapshot, self._view, run)
                payload = without_root(visible_run.model_dump(mode="json"), self._service.root)
                events.append(self._happening(JOB_ENDED, payload))
        self._told = {run_id for run_id in self._told if run_id > self._run_id}
        return events

    def _happening(self, topic: str, data: dict[str, Any]) -> ObservedEvent:
        return ObservedEvent.model_construct(topic=topic, position=self.position, data=data)

    def _stamp_of_store(self) -> Stamp | None:
        url = self._service.settings(self.name).memory.storage.url
        return store_of(self._service.paths(self.name), url).stamp()


def _read(position: str) -> tuple[str | None, str]:
    refused = InvalidInput("invalid position; leave it out to begin now", field="last-event-id")
    if len(position) > _MAX_POSITION_CHARS:
        raise refused
    try:
        padded = position.encode("ascii") + b"=" * (-len(position) % 4)
        edge_id, run_id = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (ValueError, TypeError, RecursionError):
        raise refused from None
    if not isinstance(edge_id, str | None) or not isinstance(run_id, str):
        raise refused
    return edge_id, run_id


def _is_fresh(stamp: Stamp) -> bool:
    newest = max((part[0] for part in stamp if part is not None), default=0)
    return newest > time.time_ns() - SETTLED_NS


SUBSCRIBER: Final = "webhook"
CLAIM_MS: Final = 120_000
TEST: Final = "memgraph.test"
_PREFIX: Final = "whsec_"
_LEAST_BYTES: Final = 24


def subscriber(handle: Orchestrator, clock: Clock, *, threaded: bool) -> Subscriber | None:
    """Return the subscriber that posts an orchestrator's events; None if it has no webhook."""
    chosen = handle.settings.memory.webhook
    if not chosen.url:
        return None
    send = partial(deliver, chosen, handle.name, clock)
    return Subscriber(SUBSCRIBER, send, tuple(sorted(chosen.topics)), CLAIM_MS, threaded=threaded)


def deliver(
    chosen: WebhookSettings, orchestrator: str, clock: Clock, event: DeliveredEvent
) -> None:
    """Post an event; it is delivered if the receiver answers with 2xx.

    Raises:
        WebhookFailed: the receiver did not accept it, or the secrets cannot be read.
    """
    data = {"orchestrator": orchestrator, **event.event.model_dump(mode="json")}
    # The id is the same in every attempt, so that the receiver can detect repetitions.
    name = f"{orchestrator}\n{event.seq}\n{event.at}".encode()
    delivery_id = f"evt_{hashlib.sha256(name).hexdigest()[:32]}"
    post(chosen, clock, delivery_id, event.event.topic, event.at, data)


def send_test(chosen: WebhookSettings, orchestrator: str, clock: Clock) -> None:
    """Post an event of the topic ``memgraph.test``, which says nothing about memories.

    Raises:
        WebhookFailed: the receiver did not accept it, or the secrets cannot be read.
    """
    delivery_id = f"evt_{os.urandom(16).hex()}"
    post(chosen, clock, delivery_id, TEST, clock.now_ms(), {"orchestrator": orchestrator})


def post(
    chosen: WebhookSettings,
    clock: Clock,
    delivery_id: str,
    topic: str,
    at: int,
    data: dict[str, Any],
) -> None:
    """Post a signed body. Redirects are not followed, and proxies are not used.

    Raises:
        WebhookFailed: there was no 2xx response, or the secrets cannot be read.
    """
    body = json.dumps({"type": topic, "timestamp": iso(at), "data": data}).encode()
    stamp = str(clock.now_ms() // 1_000)
    headers = {
        "Content-Type": "application/json",
        "User-Agent": f"memgraph/{__version__}",
        "webhook-id": delivery_id,
        "webhook-timestamp": stamp,
        "webhook-signature": signatures(secrets(chosen), delivery_id, stamp, body),
    }
    parts = urlsplit(chosen.url)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    host = parts.hostname or ""
    connection: HTTPConnection
    if parts.scheme == "https":
        context = ssl.create_default_context()
        connection = HTTPSConnection(host, parts.port, timeout=chosen.timeout_s, context=context)
    else:
        connection = HTTPConnection(host, parts.port, timeout=chosen.timeout_s)
    try:
        connection.request("POST", path, body, headers)
        status = connection.getresponse().status
    except (OSError, HTTPException) as error:
        raise WebhookFailed(f"the receiver cannot be reached: {type(error).__name__}") from error
    finally:
        connection.close()
    if not 200 <= status < 300:
        raise WebhookFailed(f"the receiver answered {status}", status=status)


def signatures(keys: Sequence[bytes], delivery_id: str, stamp: str, body: bytes) -> str:
    """Return a signature of each key: HMAC-SHA256 over the id, the timestamp and the body."""
    content = f"{delivery_id}.{stamp}.".encode() + body
    digests = (hmac.digest(key, content, "sha256") for key in keys)
    return " ".join(f"v1,{base64.b64encode(digest).decode()}" for digest in digests)


def secrets(chosen: WebhookSettings) -> list[bytes]:
    """Return the keys in the file of secrets, which may have changed since the last delivery.

    Raises:
        WebhookFailed: it cannot be read, others may read it, or a line is not a secret.
    """
    path = Path(chosen.secret_file).expanduser()
    try:
        lines = own_bytes(path).decode("ascii").split()
        keys = [base64.b64decode(line.removeprefix(_PREFIX), validate=True) for line in lines]
    except (OSError, UnicodeDecodeError, binascii.Error) as error:
        raise WebhookFailed(f"{path} cannot be read as secrets") from error
    if not keys or any(len(line) < _LEAST_BYTES for line in keys):
        raise WebhookFailed(f"{path} must contain base64 secrets of {_LEAST_BYTES} bytes or more")
    return keys
