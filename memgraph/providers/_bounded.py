"""Limits on the answer that an HTTP client reads. Loaded with litellm, which brings httpx."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

import httpx

MAX_ANSWER_BYTES: Final = 4_000_000
"""Longest body that is read."""


class _Bounded(httpx.SyncByteStream):
    def __init__(self, stream: httpx.SyncByteStream, seconds: float) -> None:
        self._stream = stream
        self._until = time.monotonic() + seconds

    def __iter__(self) -> Iterator[bytes]:
        received = 0
        for chunk in self._stream:
            received += len(chunk)
            if received > MAX_ANSWER_BYTES:
                raise ValueError("the answer is too long")
            if time.monotonic() > self._until:
                raise httpx.ReadTimeout("the answer comes too slowly")
            yield chunk

    def close(self) -> None:
        self._stream.close()


def bound(client: httpx.Client, seconds: float) -> None:
    """Let a client give up on a body of over `MAX_ANSWER_BYTES`, or over ``seconds`` in coming.

    The client's own timeout begins anew with every byte.
    """

    def wrap(response: httpx.Response) -> None:
        if isinstance(response.stream, httpx.SyncByteStream):
            response.stream = _Bounded(response.stream, seconds)

    hooks = client.event_hooks
    client.event_hooks = {**hooks, "response": [*hooks.get("response", []), wrap]}
