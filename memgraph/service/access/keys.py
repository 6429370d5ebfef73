"""The keys of a server: made, listed, revoked, rotated, and found by their secret."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from memgraph.clock import Clock
from memgraph.errors import Conflict, NotFound, Unauthenticated
from memgraph.model.access import ApiKey, NewKey, Principal
from memgraph.model.values import validated
from memgraph.paths import KEYS_NAME
from memgraph.storage import key_file
from memgraph.storage.database import FileLock

PREFIX: Final = "mgk"
SECRET_BYTES: Final = 32
_ID_ALPHABET: Final = "0123456789abcdefghjkmnpqrstvwxyz"
_ID_CHARS: Final = 12
_NO_DIGEST: Final = "0" * 64


class KeyStore:
    """The keys under a runtime root. Thread-safe; a change by another process counts at once.

    A secret reads ``mgk_<key id>_<43 characters>``: 256 random bits, kept as SHA-256.
    """

    def __init__(self, root: Path, clock: Clock) -> None:
        self.path = root / KEYS_NAME
        self._clock = clock
        self._lock = threading.Lock()
        self._stamp: key_file.Stamp | None = None
        self._known: dict[str, tuple[ApiKey, Principal]] = {}

    def create(self, fields: dict[str, Any]) -> NewKey:
        """Make a key from the fields of ``Principal``; its secret is in the answer alone.

        Raises:
            InvalidInput: naming each field that is wrong.
        """
        with self._changing() as keys:
            made = _made(fields, self._clock.now_ms())
            keys.append(made.key)
        return made

    def listed(self) -> Sequence[ApiKey]:
        """All keys, the revoked and expired ones too, in the order they were made."""
        return [validated(ApiKey, each) for each in key_file.read(self.path)]

    def revoke(self, key_id: str) -> ApiKey:
        """End a key at once; one that is revoked stays so. Raises NotFound."""
        with self._changing() as keys:
            place = _place(keys, key_id)
            if keys[place].revoked_at is None:
                keys[place] = keys[place].model_copy(update={"revoked_at": self._clock.now_ms()})
            revoked: ApiKey = keys[place]
        return revoked

    def rotate(self, key_id: str) -> NewKey:
        """End a key and make one with the same grants and another secret.

        Raises:
            NotFound: no such key. Conflict: it is revoked.
        """
        with self._changing() as keys:
            place = _place(keys, key_id)
            old = keys[place]
            if old.revoked_at is not None:
                raise Conflict("a revoked key is not rotated; create a new one", key_id=key_id)
            now = self._clock.now_ms()
            made = _made(old.principal.model_dump(exclude={"key_id"}), now)
            keys[place] = old.model_copy(update={"revoked_at": now})
            keys.append(made.key)
        return made

    def find(self, secret: str | None) -> Principal:
        """Whose secret this is.

        Raises:
            Unauthenticated: nobody's: missing, malformed, unknown, revoked or expired.
        """
        key_id, digest = _taken_apart(secret or "")
        key, principal = self._current().get(key_id, (None, None))
        # The same work for an id that nobody has.
        same = hmac.compare_digest(digest, _NO_DIGEST if key is None else key.sha256)
        if key is None or principal is None or not same or key.revoked_at is not None:
            raise _nobody()
        if key.expires_at is not None and self._clock.now_ms() >= key.expires_at:
            raise _nobody()
        return principal

    @property
    def has_any(self) -> bool:
        """Whether there is a key that has not been revoked."""
        return any(key.revoked_at is None for key, _ in self._current().values())

    def _current(self) -> dict[str, tuple[ApiKey, Principal]]:
        with self._lock:
            found = key_file.stamp(self.path)
            if found != self._stamp:
                self._known = {each.key_id: (each, each.principal) for each in self.listed()}
                self._stamp = found
            return self._known

    @contextmanager
    def _changing(self) -> Iterator[list[ApiKey]]:
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with FileLock(self.path.with_name(f"{KEYS_NAME}.lock")).held():
            keys = list(self.listed())
            yield keys
            key_file.write(self.path, [each.model_dump(mode="json") for each in keys])


def _made(fields: dict[str, Any], now: int) -> NewKey:
    key_id = "".join(secrets.choice(_ID_ALPHABET) for _ in range(_ID_CHARS))
    secret = f"{PREFIX}_{key_id}_{secrets.token_urlsafe(SECRET_BYTES)}"
    kept = {"key_id": key_id, "sha256": _digest(secret), "created_at": now}
    return NewKey(key=validated(ApiKey, {**fields, **kept}), secret=secret)


def _place(keys: Sequence[ApiKey], key_id: str) -> int:
    for place, each in enumerate(keys):
        if each.key_id == key_id:
            return place
    raise NotFound(f"no key {key_id[:40]!r}; memgraph key list shows them", key_id=key_id[:40])


def _taken_apart(secret: str) -> tuple[str, str]:
    return secret[len(PREFIX) + 1 :][:_ID_CHARS], _digest(secret)


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _nobody() -> Unauthenticated:
    return Unauthenticated("no valid key: send one as Authorization: Bearer <key>")
