"""What becomes of the parts of a decision record when another record replaces it."""

from __future__ import annotations

import pytest
from ingest_runs import ingest

from ingest.parsers.decision_record import MAX_DECISION_CHARS
from memgraph import Orchestrator
from memgraph.model.enums import STORED_STATUSES, MemoryStatus
from memgraph.model.values import Memory

SENTENCE = "The {} of the mill is closed with a bolt at nine every evening."
DOORS = ("north door", "south door", "hatch", "loading bay", "cellar window", "attic window")


def record(number: int, status: str, *, doors: int = 30) -> str:
    """A record whose decision is longer than one memory."""
    said = [SENTENCE.format(f"{DOORS[n % 6]} {number}-{n}") for n in range(doors)]
    decision = "\n\n".join(said)
    return (
        f"# {number}. Doors {number}\n\n## Status\n\n{status}\n\n"
        f"## Context\n\nSomebody walked in on day {number}.\n\n"
        f"## Decision\n\n{decision}\n\n"
        f"## Consequences\n\nThe miller carries key number {number}.\n"
    )


def parts(orc: Orchestrator, number: int) -> dict[str, list[Memory]]:
    """The memories of a record by their role."""
    found: dict[str, list[Memory]] = {}
    for each in orc.memories.list(statuses=STORED_STATUSES, limit=200):
        title = each.attributes.get("record", each.attributes.get("title"))
        if title == f"Doors {number}":
            found.setdefault(each.attributes["role"], []).append(each)
    return found


@pytest.mark.parametrize(("newer_first", "told_by"), [(True, "old"), (False, "new")])
def test_the_rest_of_a_decision_is_replaced_with_it(
    orc: Orchestrator, newer_first: bool, told_by: str
) -> None:
    old = record(1, "Accepted" if told_by == "new" else "Superseded by [2](2.md)")
    new = record(2, "Accepted\n\nSupersedes [1](1.md)" if told_by == "new" else "Accepted")
    dropped = [("1.md", old), ("2.md", new)]
    for name, text in dropped[::-1] if newer_first else dropped:
        ingest(orc, name, text)
    replaced, standing = parts(orc, 1), parts(orc, 2)
    assert len(replaced["decision_detail"]) >= 30 * len(SENTENCE) // MAX_DECISION_CHARS
    gone = {role for role, each in replaced.items() if each[0].status is MemoryStatus.SUPERSEDED}
    assert gone == {"decision", "decision_detail"}
    assert {each.status for each in replaced["decision_detail"]} == {MemoryStatus.SUPERSEDED}
    assert {e.status for each in standing.values() for e in each} == {MemoryStatus.ACTIVE}
    trace = orc.trace(replaced["decision"][0].memory_id)
    (consequence,), (context,) = replaced["consequence"], replaced["context"]
    assert trace.stale_dependents == (consequence.memory_id,)
    # What a decision was taken for does not depend on it.
    assert orc.trace(context.memory_id).stale_grounds == ()


def test_it_is_journalled_and_stands_in_the_history(orc: Orchestrator) -> None:
    ingest(orc, "1.md", record(1, "Accepted"))
    before = parts(orc, 1)
    ingest(orc, "2.md", record(2, "Supersedes [1](1.md)"))
    (decision,), (new,) = before["decision"], parts(orc, 2)["decision"]
    for part in before["decision_detail"][::4]:
        trace = orc.trace(part.memory_id)
        told = [(each.status, each.reason) for each in trace.status_history]
        reason = f"replaced by {new.memory_id}, with {decision.memory_id} of which it is a part"
        assert told == [(MemoryStatus.ACTIVE, None), (MemoryStatus.SUPERSEDED, reason)]
        assert [each.action for each in trace.journal] == ["remember", "relate", "supersede"]


def test_amended_or_corrected_decisions_keep_their_parts(orc: Orchestrator) -> None:
    ingest(orc, "1.md", record(1, "Accepted"))
    ingest(orc, "2.md", record(2, "Accepted\n\nAmends [1](1.md)"))
    (decision,) = parts(orc, 1)["decision"]
    assert decision.status is MemoryStatus.ACTIVE
    orc.correct(decision.memory_id, "The doors stay open.", reason="a mistake")
    after = parts(orc, 1)
    assert after["decision"][0].status is MemoryStatus.SUPERSEDED
    assert {each.status for each in after["decision_detail"]} == {MemoryStatus.ACTIVE}


def test_a_part_of_two_records_stands_as_long_as_one_of_them(orc: Orchestrator) -> None:
    shared = record(1, "Accepted")
    ingest(orc, "1.md", shared)
    twin = shared.replace("# 1. Doors 1", "# 2. Doors 1").replace(
        SENTENCE.format("north door 1-0"), SENTENCE.format("north door 2-0")
    )
    ingest(orc, "2.md", twin)
    ingest(orc, "3.md", record(3, "Supersedes [1](1.md)", doors=1))
    after = parts(orc, 1)
    assert {each.status for each in after["decision"]} == {
        MemoryStatus.SUPERSEDED,
        MemoryStatus.ACTIVE,
    }
    assert {each.status for each in after["decision_detail"]} == {MemoryStatus.ACTIVE}
    ingest(orc, "4.md", record(4, "Supersedes [2](2.md)", doors=1))
    after = parts(orc, 1)
    assert {each.status for each in after["decision_detail"]} == {MemoryStatus.SUPERSEDED}
