"""The webhook of an orchestrator: posts events, signed as Standard Webhooks are.

It is a subscriber of the outbox: what the receiver does not take comes again after 1 s, 5 s, 25 s,
2 and 10 minutes, and is then put aside until somebody has it sent again.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import os
import ssl
from collections.abc import Sequence
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from memgraph import __version__
from memgraph.clock import Clock, iso
from memgraph.config.server import WebhookSettings
from memgraph.errors import WebhookFailed
from memgraph.model.events import DeliveredEvent
from memgraph.service.events import Subscriber
from memgraph.store.key_file import own_bytes

if TYPE_CHECKING:
    from memgraph.operations.orchestrator import Orchestrator

SUBSCRIBER: Final = "webhook"
CLAIM_MS: Final = 120_000
TEST: Final = "memgraph.test"
_PREFIX: Final = "whsec_"
_LEAST_BYTES: Final = 24


def subscriber(handle: Orchestrator, clock: Clock, *, threaded: bool) -> Subscriber | None:
    """Return the subscriber that posts an orchestrator's events; None: it has no webhook."""
    chosen = handle.settings.memory.webhook
    if not chosen.url:
        return None
    send = partial(deliver, chosen, handle.name, clock)
    return Subscriber(SUBSCRIBER, send, tuple(sorted(chosen.topics)), CLAIM_MS, threaded=threaded)


def deliver(
    chosen: WebhookSettings, orchestrator: str, clock: Clock, event: DeliveredEvent
) -> None:
    """Post one event; it is taken when the receiver answers with 2xx.

    Raises:
        WebhookFailed: it did not, or the secrets cannot be read.
    """
    data = {"orchestrator": orchestrator, **event.event.model_dump(mode="json")}
    # The same when it comes again, so that the receiver can tell.
    name = f"{orchestrator}\n{event.seq}\n{event.at}".encode()
    delivery_id = f"evt_{hashlib.sha256(name).hexdigest()[:32]}"
    post(chosen, clock, delivery_id, event.event.topic, event.at, data)


def send_test(chosen: WebhookSettings, orchestrator: str, clock: Clock) -> None:
    """Post an event of the topic ``memgraph.test``, which says nothing about memories.

    Raises:
        WebhookFailed: the receiver did not take it, or the secrets cannot be read.
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
        WebhookFailed: no answer of 2xx, or the secrets cannot be read.
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
        WebhookFailed: it cannot be read, others may read it, or a line is no secret.
    """
    path = Path(chosen.secret_file).expanduser()
    try:
        lines = own_bytes(path).decode("ascii").split()
        keys = [base64.b64decode(line.removeprefix(_PREFIX), validate=True) for line in lines]
    except (OSError, UnicodeDecodeError, binascii.Error) as error:
        raise WebhookFailed(f"{path} cannot be read as secrets") from error
    if not keys or any(len(line) < _LEAST_BYTES for line in keys):
        raise WebhookFailed(f"{path} has to hold secrets of {_LEAST_BYTES} bytes or more, base64")
    return keys
