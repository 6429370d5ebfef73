"""Whom a request counts for."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus

from memgraph.surfaces.guarding import Message, Scope, Send, shown_key
from memgraph.surfaces.http.rates import MOST_KNOWN
from memgraph.surfaces.scopes import AUTHENTICATED


@dataclass(frozen=True, slots=True)
class Source:
    """Who sent a request.

    Attributes:
        name: what it counts for: the digest of a key, the visitor of a page, or an address.
        secret: what was shown as a key.
        known: whether it was found to be one before, or the visitor is signed in.
    """

    name: str
    secret: str | None
    known: bool


class Sources:
    """Whom a request counts for: its key once that was found to be one, else its address.

    Keys are known by the digest of their secret: no file is read for a request that is refused.

    Args:
        visitor: whom one without a key counts for by its session; None: its address.
    """

    def __init__(self, visitor: Callable[[Scope], str | None] = lambda _scope: None) -> None:
        self._known: OrderedDict[str, None] = OrderedDict()
        self._visitor = visitor

    def of(self, scope: Scope) -> Source:
        """Who sent a request, as far as its head tells."""
        secret = shown_key(scope)
        if secret is not None:
            digest = _digest(secret)
            if digest in self._known:
                return Source(digest, secret, known=True)
        elif (visitor := self._visitor(scope)) is not None:
            return Source(visitor, None, known=True)
        client = scope.get("client")
        return Source("" if client is None else str(client[0]), secret, known=False)

    def learning(self, scope: Scope, source: Source, send: Send) -> Send:
        """Passes an answer on, and notes whether the key was one."""
        secret = source.secret
        if secret is None:
            return send

        async def learnt(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._note(_digest(secret), scope, message["status"])
            await send(message)

        return learnt

    def _note(self, digest: str, scope: Scope, status: int) -> None:
        if scope.get(AUTHENTICATED):
            self._known[digest] = None
            self._known.move_to_end(digest)
            if len(self._known) > MOST_KNOWN:
                self._known.popitem(last=False)
        elif status == HTTPStatus.UNAUTHORIZED:
            # Other answers may be given before the key is looked at.
            self._known.pop(digest, None)


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("latin-1")).hexdigest()
