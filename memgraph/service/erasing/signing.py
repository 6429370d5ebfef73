"""Signatures of reports: Ed25519 (RFC 8032), with the runtime root's own key.

The key is made at first use and stored under the root, readable only by its owner. Every report
contains the public key, with which anyone can verify it.
"""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Final

from memgraph.errors import Conflict, InvalidConfig, InvalidInput
from memgraph.model.erasing import ErasureReport, Signature
from memgraph.model.values import validated
from memgraph.paths import SIGNING_KEY_NAME, take_free_name
from memgraph.store.backup import fsync
from memgraph.store.rows import compact_json

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_OTHERS: Final = 0o077


def signed(report: ErasureReport, root: Path) -> ErasureReport:
    """Return the report with its signature.

    Raises:
        InvalidConfig: the key cannot be read, or others may read it.
    """
    return report.model_copy(update={"signature": sign(_said(report), root)})


def sign(said: bytes, root: Path) -> Signature:
    """Return the signature of some bytes. Raises InvalidConfig: as ``signed``."""
    key = _key(root)
    public = key.public_key().public_bytes_raw().hex()
    return Signature(public_key=public, value=key.sign(said).hex())


def check_signature(report: ErasureReport) -> bool:
    """Return True when the signature matches the report and the public key in it."""
    return report.signature is not None and fits(report.signature, _said(report))


def fits(signature: Signature, said: bytes) -> bool:
    """Return True when a signature is of these bytes, by the holder of the key that it names."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(signature.public_key))
    try:
        key.verify(bytes.fromhex(signature.value), said)
    except InvalidSignature:
        return False
    return True


def public_key(root: Path) -> str | None:
    """Return the public key of a runtime root, in hex; None: it has signed nothing yet.

    Raises:
        InvalidConfig: the key cannot be read.
    """
    found = _read(root / SIGNING_KEY_NAME)
    return None if found is None else found.public_key().public_bytes_raw().hex()


def read_report(text: str) -> ErasureReport:
    """Return the report that a text holds. Raises InvalidInput: it holds none."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise InvalidInput("this is no report of an erasure")
    return validated(ErasureReport, found)


def _said(report: ErasureReport) -> bytes:
    said = report.model_dump(mode="json", exclude={"signature"})
    # What a report has nothing of stands in none that was signed before it was known.
    if report.preview is None:
        del said["preview"]
    if not report.redactions:
        del said["redactions"]
    if not report.residue.other_case:
        del said["residue"]["other_case"]
    return compact_json(said).encode()


def _key(root: Path) -> Ed25519PrivateKey:
    path = root / SIGNING_KEY_NAME
    found = _read(path)
    if found is None:
        _make(path)
        found = _read(path)
    if found is None:
        raise InvalidConfig(f"{path} is gone")
    return found


def _read(path: Path) -> Ed25519PrivateKey | None:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InvalidConfig(f"{path} cannot be read as a key") from error
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(handle)
        if found.st_mode & _OTHERS or found.st_uid != os.geteuid():
            raise InvalidConfig(f"{path} is not its owner's alone; run: chmod 600 {path}")
        text = file.read(1_000)
    try:
        return Ed25519PrivateKey.from_private_bytes(bytes.fromhex(text.decode("ascii").strip()))
    except ValueError as error:
        raise InvalidConfig(f"{path} cannot be read as a key") from error


def _make(path: Path) -> None:
    """Create a key; when another process was first, use its key."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    with os.fdopen(os.open(draft, flags, 0o600), "w", encoding="ascii") as file:
        file.write(secrets.token_hex(32) + "\n")
    fsync(draft)
    try:
        take_free_name(draft, path)
    except Conflict:
        pass
    finally:
        draft.unlink(missing_ok=True)
    fsync(path.parent)
