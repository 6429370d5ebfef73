"""The keys of a server: create, list, revoke, rotate, and look up by secret."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from memgraph.clock import Clock
from memgraph.errors import Conflict, InvalidConfig, InvalidInput, NotFound, Unauthenticated
from memgraph.model.access import ApiKey, NewKey, Principal
from memgraph.model.values import validated
from memgraph.paths import KEYS_NAME
from memgraph.rules.access import check_grants
from memgraph.store import key_file

if TYPE_CHECKING:
    from memgraph.store.postgres.key_table import KeyTable

PREFIX: Final = "mgk"
SECRET_BYTES: Final = 32
_ID_ALPHABET: Final = "0123456789abcdefghjkmnpqrstvwxyz"
_ID_CHARS: Final = 12
_NO_DIGEST: Final = "0" * 64


class KeyStore:
    """The keys of a service. Thread-safe; changes by other processes apply at once.

    They are stored in a file under the runtime root, or in the database at ``url``, where all its
    servers share them.

    A secret has the form ``mgk_<key id>_<43 characters>``: 256 random bits, stored as SHA-256. If
    the file cannot be parsed, or others may read or write it, every key is refused until that is
    fixed.
    """

    def __init__(self, root: Path, clock: Clock, *, url: str = "") -> None:
        self.path = root / KEYS_NAME
        self._place = _key_table(url) if url else key_file.KeyFile(self.path)
        self._clock = clock
        self._lock = threading.Lock()
        self._stamp: key_file.Stamp | None = None
        self._known: dict[str, tuple[ApiKey, Principal]] = {}

    def create(self, fields: dict[str, Any]) -> NewKey:
        """Create a key from the fields of ``Principal``; only the result contains the secret.

        Raises:
            InvalidInput: names each invalid field, see ``rules.access.check_grants``.
            InvalidConfig: the existing keys cannot be read.
        """
        new_key = _made(fields, self._clock.now_ms())
        check_grants(new_key.key, now_ms=new_key.key.created_at)
        with self._changing() as keys:
            keys.append(new_key.key)
        return new_key

    def listed(self) -> Sequence[ApiKey]:
        """Return all keys, including revoked and expired ones, oldest first.

        Raises:
            InvalidConfig: the keys cannot be read.
        """
        # Errors of the file as a whole are raised as they are.
        entries = self._place.read()
        try:
            return [validated(ApiKey, entry) for entry in entries]
        except InvalidInput as error:
            # The original message would quote the file.
            raise InvalidConfig(
                f"{self._place} contains an entry that is not a key", path=str(self._place)
            ) from error

    def revoke(self, key_id: str) -> ApiKey:
        """Revoke a key at once; a revoked key stays revoked. Raises NotFound, InvalidConfig."""
        with self._changing(key_id) as keys:
            place = _place(keys, key_id)
            if keys[place].revoked_at is None:
                keys[place] = keys[place].model_copy(update={"revoked_at": self._clock.now_ms()})
            revoked: ApiKey = keys[place]
        return revoked

    def rotate(self, key_id: str, *, overlap_ms: int = 0, expires_at: int | None = None) -> NewKey:
        """Create a key with the same grants and a new secret, and end the old one.

        Args:
            overlap_ms: how long the old key stays valid, at most until its own expiry.
            expires_at: expiry of the new key; None: that of the old one.

        Raises:
            NotFound: no such key.
            Conflict: it is revoked or has expired.
            InvalidInput: a negative overlap, or an expiry in the past.
            InvalidConfig: the keys cannot be read.
        """
        if overlap_ms < 0:
            raise InvalidInput("an overlap must be 0 or more", field="overlap_ms")
        with self._changing(key_id) as keys:
            place = _place(keys, key_id)
            old, now = keys[place], self._clock.now_ms()
            if old.state(now) != "valid":
                raise Conflict(
                    "a revoked or expired key cannot be rotated; create a new one",
                    key_id=key_id,
                )
            fields = old.principal.model_dump(exclude={"key_id"})
            if expires_at is not None:
                fields["expires_at"] = expires_at
            new_key = _made(fields, now)
            check_grants(new_key.key, now_ms=now)
            keys[place] = _ending(old, now, overlap_ms)
            keys.append(new_key.key)
        return new_key

    def forget(self, key_id: str) -> ApiKey:
        """Remove a key that is no longer valid; journal entries keep its id.

        Raises:
            NotFound: no such key.
            Conflict: it is still valid.
            InvalidConfig: the keys cannot be read.
        """
        with self._changing(key_id) as keys:
            place = _place(keys, key_id)
            if keys[place].state(self._clock.now_ms()) == "valid":
                raise Conflict("a valid key cannot be forgotten; revoke it first", key_id=key_id)
            return keys.pop(place)

    def find(self, secret: str | None) -> Principal:
        """Return the principal of a secret.

        Raises:
            Unauthenticated: it is missing, malformed, unknown, revoked or expired.
            InvalidConfig: the keys cannot be read.
        """
        secret = secret or ""
        key_id, digest = secret[len(PREFIX) + 1 :][:_ID_CHARS], _digest(secret)
        key, principal = self._current().get(key_id, (None, None))
        # An unknown id takes as much work as a known one.
        same = hmac.compare_digest(digest, _NO_DIGEST if key is None else key.sha256)
        if key is None or principal is None or not same:
            raise nobody()
        if key.state(self._clock.now_ms()) != "valid":
            raise nobody()
        return principal

    def holder(self, key_id: str) -> Principal:
        """Return the principal of a key whose secret was checked before.

        Raises:
            Unauthenticated: the key was revoked or removed since, or has expired.
            InvalidConfig: the keys cannot be read.
        """
        key, principal = self._current().get(key_id, (None, None))
        if key is None or principal is None or key.state(self._clock.now_ms()) != "valid":
            raise nobody()
        return principal

    @property
    def has_any(self) -> bool:
        """True if at least one key is valid now; for the operator, like ``listed``.

        Raises:
            InvalidConfig: the keys cannot be read; the message names the file and a remedy.
        """
        now = self._clock.now_ms()
        return any(key.state(now) == "valid" for key in self.listed())

    def _current(self) -> dict[str, tuple[ApiKey, Principal]]:
        with self._lock:
            try:
                stamp = self._place.stamp()
                if stamp != self._stamp:
                    self._known = {key.key_id: (key, key.principal) for key in self.listed()}
                    self._stamp = stamp
            except (OSError, InvalidConfig) as error:
                # The known keys may have been revoked, so none is accepted. The caller must not
                # learn the path of the file.
                self._known, self._stamp = {}, None
                raise InvalidConfig("the keys of this server cannot be read") from error
            return self._known

    @contextmanager
    def _changing(self, key_id: str | None = None) -> Iterator[list[ApiKey]]:
        if key_id is not None:
            # Checked before anything is created, because the root may be mistyped.
            _place(self.listed(), key_id)
        with self._place.changing():
            keys = list(self.listed())
            yield keys
            self._place.write([key.model_dump(mode="json") for key in keys])


def _key_table(url: str) -> KeyTable:
    from memgraph.store.postgres import checked_url
    from memgraph.store.postgres.key_table import KeyTable

    return KeyTable(checked_url(url))


def _made(fields: dict[str, Any], now: int) -> NewKey:
    key_id = "".join(secrets.choice(_ID_ALPHABET) for _ in range(_ID_CHARS))
    secret = f"{PREFIX}_{key_id}_{secrets.token_urlsafe(SECRET_BYTES)}"
    stored_fields = {"key_id": key_id, "sha256": _digest(secret), "created_at": now}
    return NewKey(key=validated(ApiKey, {**fields, **stored_fields}), secret=secret)


def _ending(key: ApiKey, now: int, overlap_ms: int) -> ApiKey:
    if overlap_ms == 0:
        return key.model_copy(update={"revoked_at": now})
    until = now + overlap_ms
    if key.expires_at is not None:
        until = min(until, key.expires_at)
    return validated(ApiKey, key.model_dump() | {"expires_at": until})


def _place(keys: Sequence[ApiKey], key_id: str) -> int:
    for place, key in enumerate(keys):
        if key.key_id == key_id:
            return place
    raise NotFound(f"no key {key_id[:40]!r}; memgraph key list shows them", key_id=key_id[:40])


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def nobody() -> Unauthenticated:
    """Return the one error for every request without a valid key."""
    return Unauthenticated("no valid key: send one as Authorization: Bearer <key>")
