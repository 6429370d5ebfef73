"""Read and write the file with a server's access keys, which only its owner may read.

The file is replaced as a whole. It contains digests of 256-bit secrets, so that the secrets cannot
be recovered from it.
"""

from __future__ import annotations

import json
import os
import secrets
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from memgraph.errors import Conflict, InvalidConfig
from memgraph.paths import ERASURE_KEY_NAME, KEYS_LOCK_NAME, naming_full_disk
from memgraph.store.files import FileLock, draft_beside, publish

VERSION: Final = 1
MAX_BYTES: Final = 64_000_000
OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
Stamp = tuple[int, ...]


def parsed(text: str | bytes, place: str) -> list[dict[str, Any]]:
    """Return the keys in a text made by ``rendered``.

    Args:
        text: the text or its bytes.
        place: the file or table of the text, for error messages.

    Raises:
        InvalidConfig: the text contains no list of keys.
    """
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidConfig(f"{place} is not valid JSON", path=place) from error
    if not isinstance(content, dict) or content.get("version") != VERSION:
        raise InvalidConfig(f"{place} was written by another version of memgraph", path=place)
    keys = content.get("keys")
    if not isinstance(keys, list) or not all(isinstance(key, dict) for key in keys):
        raise InvalidConfig(
            f"{place} has no list of keys; restore it or create new keys", path=place
        )
    return keys


def rendered(keys: Sequence[dict[str, Any]], place: str) -> str:
    """Return keys as the text of a key file.

    Raises:
        InvalidConfig: the text would be larger than ``read`` accepts.
    """
    text = json.dumps({"version": VERSION, "keys": list(keys)}, indent=1)
    if len(text) > MAX_BYTES:
        raise InvalidConfig(f"{place} would be over {MAX_BYTES:,} bytes", path=place)
    return text


def own_bytes(path: Path) -> bytes:
    """Return the content of a file that only its owner may read.

    Symbolic links are not followed, and opening a pipe does not block.

    Raises:
        InvalidConfig: it belongs to another user, others may read or change it, or it is not a
            regular file.
        OSError: it cannot be read.
    """
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    with os.fdopen(os.open(path, flags), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_BYTES:
            raise InvalidConfig(f"{path} is not a key file", path=str(path))
        if status.st_uid != os.geteuid():
            raise InvalidConfig(
                f"{path} does not belong to the user of this process", path=str(path)
            )
        if status.st_mode & OTHERS:
            raise InvalidConfig(
                f"{path} may be read or changed by others; run: chmod 600 {path}", path=str(path)
            )
        return file.read(MAX_BYTES)


def erasure_key(root: Path) -> bytes | None:
    """Return the secret that seals the redactions of a runtime root; None if it has none yet.

    Raises:
        InvalidConfig: it cannot be read, or others may read it.
    """
    path = root / ERASURE_KEY_NAME
    try:
        return own_bytes(path).strip()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InvalidConfig(f"{path} cannot be read as a key", path=str(path)) from error


def made_erasure_key(root: Path) -> bytes:
    """Return the secret that seals redactions; create it if the root has none.

    Raises:
        InvalidConfig: see ``erasure_key``.
    """
    key, path = erasure_key(root), root / ERASURE_KEY_NAME
    if key is not None:
        return key
    with draft_beside(path) as draft, suppress(Conflict):  # another process has created it
        draft.write_text(secrets.token_hex(32) + "\n", "ascii")
        publish(draft, path, force=False)
    return own_bytes(path).strip()


class KeyFile:
    """The keys under a runtime root."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __str__(self) -> str:
        return str(self.path)

    def stamp(self) -> Stamp | None:
        """Return a stamp that changes when the file or its mode changes; None without a file.

        Raises:
            OSError: the file's status cannot be read.
        """
        try:
            status = self.path.lstat()
        except FileNotFoundError:
            return None
        return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns

    def read(self) -> list[dict[str, Any]]:
        """Return the keys as JSON objects; an empty list without a file.

        Raises:
            InvalidConfig: it is not a key file, or users other than its owner may read or write it.
        """
        try:
            text = own_bytes(self.path)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise InvalidConfig(f"{self} cannot be read", path=str(self)) from error
        return parsed(text, str(self))

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Hold the lock for changing the keys; create the folder of the file.

        Raises:
            InvalidConfig: the folder belongs to another user, whose server could not read the file.
        """
        folder = self.path.parent
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        # Check the owner first: a lock file of another user would lock the server out.
        if folder.stat().st_uid != os.geteuid():
            raise InvalidConfig(
                f"{folder} belongs to another user; run the command as that user", path=str(folder)
            )
        with naming_full_disk(folder), FileLock(self.path.with_name(KEYS_LOCK_NAME)).held():
            yield

    def write(self, keys: Sequence[dict[str, Any]]) -> None:
        """Replace the file durably.

        Raises:
            InvalidConfig: the file would be larger than ``read`` accepts; it is not changed.
        """
        text = rendered(keys, str(self))
        with draft_beside(self.path) as draft:
            draft.write_text(text, "ascii")
            publish(draft, self.path, force=True)


LEAST_KEY: Final = 32
"""The minimum length of a journal's key, bytes."""


def journal_key(chosen: str, root: Path) -> bytes | None:
    """Return the key that seals the journals, or None if none is configured.

    Args:
        chosen: the path of ``memory.audit.key_file``; empty: no key.
        root: the runtime root; the file must lie outside it.

    Raises:
        InvalidConfig: the file cannot be read, has less than 32 bytes, lies inside the root, or is
            readable by other users.
    """
    if not chosen:
        return None
    path = Path(chosen).expanduser()
    if Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root)):
        raise InvalidConfig(
            f"{path} must lie outside the root whose journals it seals", path=str(path)
        )
    try:
        key = own_bytes(path).strip()
    except OSError as error:
        raise InvalidConfig(f"{path} cannot be read as a key", path=str(path)) from error
    if len(key) < LEAST_KEY:
        raise InvalidConfig(f"{path} must hold at least {LEAST_KEY} bytes", path=str(path))
    return key
