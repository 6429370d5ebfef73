"""The chain of a journal from which an erasure took words: sound as it left it, and only so."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from erasing_worlds import filled

from memgraph import Orchestrator


@pytest.fixture
def erased(orc: Orchestrator) -> Orchestrator:
    orc.erasure.erase(memory_id=filled(orc).secret, reason="asked for", dry_run=False)
    return orc


def change(orc: Orchestrator, statement: str, *values: object) -> None:
    with (
        orc._service.opened(orc.name) as opened,
        opened.database.write() as connection,
    ):
        assert connection.exec_driver_sql(statement, values).rowcount > 0


def codes(orc: Orchestrator) -> set[str]:
    return set(orc.verify().totals)


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        (
            "UPDATE audit_log SET details = json_set(details, '$.note', 'x')"
            " WHERE json_extract(details, '$.erased') AND action = 'remember'",
            "journal.entry_changed",
        ),
        (
            "UPDATE audit_log SET details = '{\"erased\":true}' WHERE seq ="
            " (SELECT min(seq) FROM audit_log WHERE json_extract(details, '$.erased') IS NULL)",
            "journal.entry_changed",
        ),
        (
            "UPDATE memories SET content = 'Put in by hand.' WHERE content = ''",
            "memory.content_damaged",
        ),
    ],
    ids=["changed again", "no tombstone", "filled again"],
)
def test_what_an_erasure_left_may_not_be_changed(
    erased: Orchestrator, statement: str, code: str
) -> None:
    change(erased, statement)
    assert code in codes(erased)


@pytest.mark.parametrize(
    "shorten", [lambda told: told[1:], lambda told: [[*told[0][:2], "0" * 64], *told[1:]]]
)
def test_a_tombstone_is_sealed_as_any_entry(
    erased: Orchestrator, shorten: Callable[[list[object]], list[object]]
) -> None:
    with (
        erased._service.opened(erased.name) as opened,
        opened.database.read() as connection,
    ):
        [(seq, details)] = connection.exec_driver_sql(
            "SELECT seq, details FROM audit_log WHERE action = 'erase' AND subject IS NULL"
            " AND details ->> '$.redacted' <> '[]'"
        ).all()
    told = json.loads(details)
    forged = json.dumps(told | {"redacted": shorten(told["redacted"])})
    change(erased, "UPDATE audit_log SET details = ? WHERE seq = ?", forged, seq)
    assert "journal.entry_changed" in codes(erased)


def test_a_row_that_is_emptied_without_an_erasure_is_found(orc: Orchestrator) -> None:
    orc.retract(orc.remember("Some text that stands."), reason="wrong")
    change(orc, "UPDATE memories SET content = '', search_terms = NULL")
    assert "memory.content_damaged" in codes(orc)
