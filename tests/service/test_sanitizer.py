"""Where the root lies is told to nobody outside."""

from __future__ import annotations

from pathlib import Path

import pytest

from memgraph.errors import DatabaseMissing, InvalidConfig, NotFound
from memgraph.service.sanitizer import sanitized_error, without_root

ROOT = Path("/srv/secret place/mem+graph")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f"no database at {ROOT}/orc/memory.db; run", "no database at orc/memory.db; run"),
        (f"{ROOT}: gone", ": gone"),
        (str(ROOT), ""),
        (f"{ROOT}-other/x", f"{ROOT}-other/x"),
        ("nothing of paths", "nothing of paths"),
    ],
)
def test_files_are_named_as_they_lie_below_the_root(text: str, told: str) -> None:
    assert without_root(text, ROOT) == told
    assert without_root({"a": [text, (text,)], "b": 1}, ROOT) == {"a": [told, (told,)], "b": 1}


def test_an_error_keeps_all_but_the_place() -> None:
    error = DatabaseMissing(f"no database at {ROOT}/a.db", path=f"{ROOT}/a.db", errno="ENOENT")
    error.logged = True
    told = sanitized_error(error, ROOT)
    assert type(told) is DatabaseMissing
    assert told.message == "no database at a.db"
    assert (told.details, told.logged) == ({"path": "a.db", "errno": "ENOENT"}, True)
    assert str(ROOT) in error.message


def test_files_elsewhere_are_told_by_their_names() -> None:
    error = InvalidConfig("/etc/m/c.toml: /etc/m is odd", origin="/etc/m/c.toml", folder="/etc/m")
    told = sanitized_error(error, ROOT)
    assert (told.message, told.details) == ("c.toml: m is odd", {"origin": "c.toml", "folder": "m"})
    told = sanitized_error(NotFound("no such memory", id="a/b"), ROOT)
    assert (told.message, told.details) == ("no such memory", {"id": "a/b"})
