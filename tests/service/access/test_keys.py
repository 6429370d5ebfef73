"""Keys: shown once, found by their secret alone, ended at once, by whatever process."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from processes import Process

from memgraph.clock import MS_PER_DAY, FixedClock, SystemClock
from memgraph.errors import Conflict, InvalidConfig, InvalidInput, NotFound, Unauthenticated
from memgraph.model.access import Permission
from memgraph.service.access.keys import KeyStore
from memgraph.store import key_file

FIELDS: dict[str, Any] = {
    "name": "a test",
    "orchestrators": ("orc-1",),
    "permissions": frozenset({Permission.READ}),
}


@pytest.fixture
def keys(tmp_path: Path, clock: FixedClock) -> KeyStore:
    return KeyStore(tmp_path / "root", clock)


def refused(keys: KeyStore, secret: str | None) -> bool:
    """Whether nobody is let in by it; a server whose keys cannot be trusted lets nobody in."""
    try:
        keys.find(secret)
    except Unauthenticated:
        return True
    return False


def test_a_key_is_found_by_its_secret_and_its_secret_is_kept_nowhere(keys: KeyStore) -> None:
    made = keys.create({**FIELDS, "project_ids": ("p1",), "agent_id": "x"})
    found = keys.find(made.secret)
    assert (found.key_id, found.project_ids, found.agent_id) == (made.key.key_id, ("p1",), "x")
    assert found.actor == f"key:{made.key.key_id}"
    _, _, random = made.secret.split("_", 2)
    assert len(random) == 43
    assert random not in keys.path.read_text("utf-8")
    assert keys.path.stat().st_mode & 0o777 == 0o600


def test_no_other_text_is_a_secret(keys: KeyStore) -> None:
    secret = keys.create(FIELDS).secret
    one = keys.create(FIELDS).secret
    wrong = [None, "", "mgk", secret[:-1], f"{secret}a", secret.swapcase(), f" {secret}", "\ud800"]
    # The id of one key with the secret of another.
    wrong += [secret[:17] + one[17:], keys.listed()[0].sha256, keys.listed()[0].key_id]
    assert [refused(keys, each) for each in wrong] == [True] * len(wrong)
    assert not refused(keys, secret)


@given(st.text())
def test_whatever_text_is_shown_nobody_is_let_in_and_nothing_breaks(text: str) -> None:
    assert refused(KeyStore(Path("/nonexistent"), FixedClock()), text)


def test_a_revoked_key_ends_at_once_and_stays_listed(keys: KeyStore, clock: FixedClock) -> None:
    made = keys.create(FIELDS)
    assert keys.has_any
    keys.find(made.secret)
    first = keys.revoke(made.key.key_id)
    clock.advance(ms=5)
    assert keys.revoke(made.key.key_id) == first
    assert refused(keys, made.secret)
    assert not keys.has_any
    assert [each.state(clock.now_ms()) for each in keys.listed()] == ["revoked"]


def test_a_rotated_key_ends_and_the_new_one_has_its_grants(
    keys: KeyStore, clock: FixedClock
) -> None:
    old = keys.create({**FIELDS, "session_ids": ("s1",), "expires_at": clock.now_ms() + 100})
    new = keys.rotate(old.key.key_id)
    assert refused(keys, old.secret)
    kept = {"key_id", "sha256", "created_at", "revoked_at"}
    assert new.key.model_dump(exclude=kept) == old.key.model_dump(exclude=kept)
    assert keys.find(new.secret).key_id == new.key.key_id != old.key.key_id


def test_with_an_overlap_both_count_and_the_old_one_ends_with_it(
    keys: KeyStore, clock: FixedClock
) -> None:
    old = keys.create(FIELDS)
    new = keys.rotate(old.key.key_id, overlap_ms=MS_PER_DAY, expires_at=clock.now_ms() + 10**10)
    clock.advance(ms=MS_PER_DAY - 1)
    assert not refused(keys, old.secret)
    clock.advance(ms=1)
    assert refused(keys, old.secret)
    assert not refused(keys, new.secret)
    # An overlap makes no key last longer.
    ends = clock.now_ms() + 10
    short = keys.create({**FIELDS, "expires_at": ends})
    keys.rotate(short.key.key_id, overlap_ms=MS_PER_DAY)
    assert [each.expires_at for each in keys.listed()][-2:] == [ends, ends]
    keys.path.unlink()
    assert refused(keys, new.secret)


def test_what_cannot_be_rotated_leaves_the_keys_as_they_are(
    keys: KeyStore, clock: FixedClock
) -> None:
    revoked = keys.create(FIELDS).key.key_id
    keys.revoke(revoked)
    expired = keys.create({**FIELDS, "expires_at": clock.now_ms() + 1}).key.key_id
    valid = keys.create(FIELDS).key.key_id
    clock.advance(ms=1)
    before = keys.path.read_bytes()
    for key_id, options, error in (
        (revoked, {}, Conflict),
        (expired, {}, Conflict),
        (valid, {"overlap_ms": -1}, InvalidInput),
        (valid, {"expires_at": clock.now_ms()}, InvalidInput),
        ("0" * 12, {}, NotFound),
    ):
        with pytest.raises(error):
            keys.rotate(key_id, **options)
    with pytest.raises(NotFound):
        keys.revoke("0" * 12)
    assert keys.path.read_bytes() == before


def test_a_key_that_is_none_is_not_made(keys: KeyStore) -> None:
    wrong: list[dict[str, Any]] = [
        *({"orchestrators": names} for names in ((), ("*", "orc-1"), ("../orc-1",))),
        *({"permissions": ()}, {"permissions": ("root",)}, {"clearance": "Secret"}),
        *({"expires_at": 1}, {"name": ""}),
        {"key_id": "0123456789ab", "sha256": "0" * 64, "secret": "x"},
    ]
    for fields in wrong:
        with pytest.raises(InvalidInput):
            keys.create({**FIELDS, **fields})
    assert keys.listed() == []


def spoil_key(path: Path) -> None:
    held = json.loads(path.read_text("utf-8"))
    held["keys"][0]["permissions"] = ["read", "everything"]
    path.write_text(json.dumps(held), encoding="utf-8")


def replace_by(path: Path, make: Callable[[Path], object]) -> None:
    path.rename(path.with_name("elsewhere.json"))
    make(path)


SPOILERS: list[Callable[[Path], object]] = [
    lambda path: path.write_text('{"version": 1, "keys": [{"key', encoding="utf-8"),
    lambda path: path.write_text('{"version": 2, "keys": []}', encoding="utf-8"),
    spoil_key,
    lambda path: path.chmod(0o640),
    lambda path: path.chmod(0o602),
    lambda path: replace_by(path, lambda at: at.symlink_to("elsewhere.json")),
    lambda path: replace_by(path, os.mkfifo),
    lambda path: replace_by(path, Path.mkdir),
]


@pytest.mark.parametrize("spoil", SPOILERS)
def test_keys_that_cannot_be_trusted_let_nobody_in_until_they_are_mended(
    keys: KeyStore, spoil: Callable[[Path], None]
) -> None:
    made = keys.create(FIELDS)
    keys.find(made.secret)
    sound = keys.path.read_bytes()
    spoil(keys.path)
    for _ in range(2):
        with pytest.raises(InvalidConfig) as raised:
            keys.find(made.secret)
        # Who asks is not told where the file lies.
        assert str(keys.path.parent) not in json.dumps(raised.value.as_dict())
    # The operator is.
    with pytest.raises(InvalidConfig, match=r"keys\.json"):
        _ = keys.has_any
    for change in (lambda: keys.create(FIELDS), lambda: keys.revoke(made.key.key_id)):
        with pytest.raises(InvalidConfig):
            change()
    if keys.path.is_dir():
        keys.path.rmdir()
    keys.path.unlink(missing_ok=True)
    keys.path.write_bytes(sound)
    keys.path.chmod(0o600)
    keys.find(made.secret)


def test_another_users_file_is_not_believed_and_no_key_is_made_in_their_folder(
    keys: KeyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = keys.create(FIELDS).secret
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(InvalidConfig):
        keys.find(secret)
    for each in keys.path.parent.iterdir():
        each.unlink()
    with pytest.raises(InvalidConfig):
        keys.create(FIELDS)
    # Not the lock either: as another user's it would keep the server's own user out.
    assert list(keys.path.parent.iterdir()) == []


def test_more_keys_than_are_read_are_not_written(
    keys: KeyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = keys.create(FIELDS).secret
    monkeypatch.setattr(key_file, "MAX_BYTES", keys.path.stat().st_size + 10)
    with pytest.raises(InvalidConfig):
        keys.create(FIELDS)
    assert len(keys.listed()) == 1
    assert keys.find(secret)


def make_keys(root: Path, name: str, secrets: Path) -> None:
    keys = KeyStore(root, SystemClock())
    fields = {"orchestrators": ["*"], "permissions": ["read"]}
    for number in range(10):
        made = keys.create({"name": f"{name}-{number}", **fields})
        if number % 2:
            keys.revoke(made.key.key_id)
        with secrets.open("a") as file:
            file.write(f"{made.secret}\n")


def test_processes_that_change_keys_at_once_lose_none(tmp_path: Path, clock: FixedClock) -> None:
    root = tmp_path / "root"
    reader = KeyStore(root, clock)
    files = [tmp_path / f"secrets-{number}" for number in range(2)]
    makers = [Process(make_keys, root, str(n), file) for n, file in enumerate(files)]
    assert [each.wait() for each in makers] == [0] * 2
    secrets = [file.read_text().split() for file in files]
    for own in secrets:
        assert [refused(reader, each) for each in own] == [False, True] * 5
    names = [each.name for each in reader.listed()]
    assert sorted(names) == sorted(f"{one}-{number}" for one in range(2) for number in range(10))


def test_a_reader_beside_a_writer_never_meets_half_a_file(
    keys: KeyStore, clock: FixedClock
) -> None:
    from concurrent.futures import ThreadPoolExecutor

    secret = keys.create(FIELDS).secret
    other = KeyStore(keys.path.parent, clock)
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(lambda: [keys.create(FIELDS) for _ in range(30)])
        while not writing.done():
            assert not refused(other, secret)
    made = writing.result()
    assert not any(refused(other, each.secret) for each in made)
